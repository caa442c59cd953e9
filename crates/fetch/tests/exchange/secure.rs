//! TLS: every certificate is taken, and what a browser would say about it is told.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use skep_fetch::{Ask, Settings};
use skep_url::Url;

use crate::server::{Server, bytes, fault, fetcher, get, notes};

const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        Authority { pem: params.self_signed(&key).unwrap().pem(), issuer: Issuer::new(params, key) }
    }

    /// A certificate for `name`, expired if `years` say so.
    fn certificate(&self, name: &str, from: i32, to: i32) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(to, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
    }
}

fn self_signed(name: &str) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap();
    (vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
}

/// Speaks TLS with this certificate and answers every request; `answer` empty: closes without a goodbye after a head.
pub fn serve(chain: (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), answer: &'static str) -> Server {
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain.0, chain.1)
        .unwrap();
    let config = Arc::new(config);
    Server::start(move |_, peer| {
        speak(config.clone(), &mut peer.stream, answer);
    })
}

/// One TLS session on the server's side.
pub fn speak(config: Arc<ServerConfig>, stream: &mut std::net::TcpStream, answer: &str) {
    let session = rustls::ServerConnection::new(config).unwrap();
    let mut tls = rustls::StreamOwned::new(session, stream.try_clone().unwrap());
    let (mut request, mut byte) = (Vec::new(), [0]);
    while matches!(tls.read(&mut byte), Ok(1)) {
        request.push(byte[0]);
        if request.ends_with(b"\r\n\r\n") {
            request.clear();
            if tls.write_all(answer.as_bytes()).is_err() || !answer.contains("Content-Length") {
                return;
            }
        }
    }
}

pub fn any_config() -> Arc<ServerConfig> {
    let (chain, key) = self_signed("a.test");
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    Arc::new(builder.with_single_cert(chain, key).unwrap())
}

fn url() -> Url {
    Url::parse("https://a.test/").unwrap()
}

fn settings(server: &Server, roots: &Authority) -> Settings {
    let mut settings = server.settings();
    settings.roots_pem = Some(roots.pem.clone().into_bytes());
    settings
}

#[tokio::test]
async fn certificates_are_judged_and_taken() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    for (chain, wanted) in [
        (ours.certificate("a.test", 2020, 2090), None),
        (ours.certificate("a.test", 2020, 2021), Some("expired")),
        (ours.certificate("a.test", 2080, 2090), Some("not-yet-valid")),
        (ours.certificate("b.test", 2020, 2090), Some("wrong-host")),
        (other.certificate("a.test", 2020, 2090), Some("unknown-issuer")),
        (self_signed("a.test"), Some("unknown-issuer")),
    ] {
        let length: usize = chain.0.iter().map(|certificate| certificate.len()).sum();
        let server = serve(chain, ANSWER);
        let exchange = get(settings(&server, &ours), &url()).await;
        assert_eq!((fault(&exchange), bytes(&exchange)), ("", ANSWER.as_bytes().to_vec()), "{wanted:?}");
        let tls = exchange.tls.unwrap();
        assert_eq!((tls.protocol, tls.chain_bytes), ("tls/1.3", length));
        assert!(tls.cipher_suite.starts_with("TLS_") && !tls.cipher_suite.contains("TLS13"), "{}", tls.cipher_suite);
        match wanted {
            None => assert_eq!(tls.fault, None),
            Some(word) => {
                assert!(tls.fault.as_ref().is_some_and(|f| f.starts_with(word)), "{wanted:?}: {:?}", tls.fault)
            }
        }
    }
}

#[tokio::test]
async fn sessions_are_kept_and_taken_up_again() {
    let authority = Authority::new("ours");
    let server = serve(authority.certificate("a.test", 2020, 2090), ANSWER);
    let (fetcher, url) = (fetcher(settings(&server, &authority)), url());
    let mut session = fetcher.session(&url);
    for number in 0..3 {
        let exchange = session.get(&Ask::new(&url)).await;
        assert_eq!((fault(&exchange), exchange.reused), ("", number > 0));
        assert!(!exchange.tls.unwrap().resumed);
    }
    assert_eq!(server.connections(), 1);
    let exchange = fetcher.session(&url).get(&Ask::new(&url)).await;
    let tls = exchange.tls.unwrap();
    assert_eq!((tls.resumed, &tls.fault), (true, &None));
}

#[tokio::test]
async fn an_end_without_goodbye_is_an_end() {
    let authority = Authority::new("ours");
    let server = serve(authority.certificate("a.test", 2020, 2090), "HTTP/1.1 200 OK\r\n\r\nhello");
    let exchange = get(settings(&server, &authority), &url()).await;
    assert_eq!((fault(&exchange), notes(&exchange), exchange.body_bytes()), ("", vec!["tls-unclosed"], 5));
}

#[tokio::test]
async fn what_is_no_tls_says_what_it_is() {
    // An alert "protocol version", a hello of TLS 1.0, and a server that speaks HTTP on the wrong port.
    let hello = [&[0x16, 3, 1, 0, 42, 2, 0, 0, 38, 3, 1][..], &[7; 32], &[0, 0, 0x2f, 0]].concat();
    for (answer, wanted) in [
        (vec![0x15, 3, 1, 0, 2, 2, 70], "legacy-tls"),
        (vec![0x15, 3, 3, 0, 2, 2, 40], "legacy-tls"),
        (hello, "legacy-tls"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "not-tls"),
        (Vec::new(), "tls-closed"),
    ] {
        let server = Server::start(move |_, peer| {
            let mut hello = [0; 5];
            let _ = peer.stream.read_exact(&mut hello);
            let mut rest = vec![0; usize::from(u16::from_be_bytes([hello[3], hello[4]]))];
            let _ = peer.stream.read_exact(&mut rest);
            peer.send(&answer);
        });
        let exchange = get(server.settings(), &url()).await;
        assert_eq!(fault(&exchange), wanted, "{:?}", exchange.fault);
        assert!(exchange.request.is_empty());
    }
}

#[tokio::test]
async fn handshakes_have_a_clock_and_chains_a_bound() {
    let silent = Server::start(|_, peer| peer.until_closed());
    let mut impatient = silent.settings();
    impatient.limits.handshake_ms = 50;
    assert_eq!(fault(&get(impatient, &url()).await), "timeout-handshake");

    let authority = Authority::new("ours");
    let (chain, key) = authority.certificate("a.test", 2020, 2090);
    let long: Vec<_> = std::iter::repeat_n(chain[0].clone(), 10).collect();
    let server = serve((long, key), ANSWER);
    let mut narrow = settings(&server, &authority);
    narrow.limits.chain_bytes_max = 2_000;
    assert_eq!(fault(&get(narrow, &url()).await), "tls-chain-too-large");
}
