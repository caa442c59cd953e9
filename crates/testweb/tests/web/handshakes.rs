//! TLS that is not as it should be, seen by a client that verifies.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use skep_testweb::{Behaviour, HostPlan, Hostile, Plan, Proof, Row, Scheme, Shape, Web};

use crate::client::{Client, serve};

fn web(hostile: Hostile) -> Web {
    let host = HostPlan::generated("a.test", Shape::pages(3)).scheme(Scheme::Https);
    serve(Plan::new(1).host(host.behaving(Behaviour::hostile(hostile))))
}

fn proof(web: &Web) -> Proof {
    loop {
        let proof = web.proof("a.test").unwrap();
        if proof.under_way == 0 {
            return proof;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn each_certificate_has_its_fault() {
    for (form, word) in [
        ("expired", "Expired"),
        ("future", "NotValidYet"),
        ("self-signed", "UnknownIssuer"),
        ("wrong-host", "NotValidForName"),
        ("no-name", "NotValidForName"),
    ] {
        let web = web(Hostile::new(Row::Tls).form(form));
        let address = web.address("a.test").unwrap();
        let refused = Client::secure(address, "a.test", web.authority_pem()).err().expect(form).to_string();
        assert!(
            refused.contains(word) || refused.to_lowercase().replace(' ', "").contains(&word.to_lowercase()),
            "{form}: {refused}"
        );
        let proof = proof(&web);
        assert_eq!((proof.forms[form], proof.connections, proof.requests), (1, 1, 0));
    }
}

#[test]
fn handshakes_end_in_alerts_clear_text_and_silence() {
    for form in ["legacy", "unrecognised", "clear-text", "closed"] {
        let web = web(Hostile::new(Row::Tls).form(form));
        let address = web.address("a.test").unwrap();
        assert!(Client::secure(address, "a.test", web.authority_pem()).is_err(), "{form}");
        let proof = proof(&web);
        assert_eq!((proof.forms[form], proof.connections, proof.requests), (1, 1, 0), "{form}");
        assert_eq!(proof.bytes > 0, form != "closed", "{form}");
    }
}

/// The first message of a handshake with `a.test`.
fn hello(web: &Web) -> Vec<u8> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(web.authority_pem().as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(std::sync::Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("a.test").unwrap();
    let mut tls = ClientConnection::new(std::sync::Arc::new(config), name).unwrap();
    let mut hello = Vec::new();
    tls.write_tls(&mut hello).unwrap();
    hello
}

#[test]
fn a_chain_is_longer_than_anyone_needs() {
    let web = web(Hostile::new(Row::Tls).form("long-chain"));
    let address = web.address("a.test").unwrap();
    // Whether a client takes it or not is the client's affair; what matters is what is sent.
    let _ = Client::secure(address, "a.test", web.authority_pem());
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(&hello(&web)).unwrap();
    let mut seen = vec![0; 100 * 1024];
    stream.read_exact(&mut seen).unwrap();
    drop(stream);
    assert_eq!(proof(&web).forms["long-chain"], 2);
}

#[test]
fn handshakes_that_drip_or_never_come_are_measured() {
    for (hostile, form) in [
        (Hostile::new(Row::Silent).form("handshake"), "handshake"),
        (Hostile::new(Row::Tls).form("dripping").ms(1), "dripping"),
    ] {
        let web = web(hostile);
        let mut stream = TcpStream::connect(web.address("a.test").unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(&hello(&web)).unwrap();
        while web.proof("a.test").unwrap().under_way == 0 {
            std::thread::yield_now();
        }
        if form == "dripping" {
            stream.read_exact(&mut [0; 20]).unwrap();
        }
        std::thread::sleep(Duration::from_millis(30)); // the time that must be found again in the proof
        drop(stream);
        let proof = proof(&web);
        assert_eq!((proof.forms[form], proof.given_up), (1, 1), "{form}");
        assert!(proof.held_ms >= 30, "{proof:?}");
        assert_eq!(proof.bytes >= 20, form == "dripping");
    }
}
