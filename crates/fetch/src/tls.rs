//! TLS: any certificate is accepted, judged after the handshake, and the verdict is recorded. The handshake itself stays
//! real: whoever answers holds the key of the certificate it shows.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, Error, HandshakeKind, InvalidMessage,
    OtherError, ProtocolVersion, RootCertStore, SignatureScheme,
};
use skep_url::Url;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::fault::{Fault, TlsFault};
use crate::limits::{TLS_SESSIONS_MAX, TLS_VERDICTS_MAX};
use crate::settings::{Settings, SetupError};

/// A TLS session, as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// `tls/1.3` or `tls/1.2`, as `WARC-Protocol` says it.
    pub protocol: &'static str,
    /// The name of the cipher suite in the registry of IANA.
    pub cipher_suite: String,
    /// What a browser would have warned of: a word, a colon, and a sentence. `None`: the certificate is good.
    pub fault: Option<String>,
    /// Certificates shown, together.
    pub chain_bytes: usize,
    /// A session from before was taken up again.
    pub resumed: bool,
}

/// Verdicts are kept this long: a certificate can expire meanwhile.
const VERDICT_MS: u64 = 3_600_000;

/// The client's side of TLS, with its sessions for resumption.
pub(crate) struct Client {
    config: Arc<ClientConfig>,
    roots_pem: Option<Vec<u8>>,
    /// Made at the first handshake: reading the system's roots takes a while.
    verifier: OnceLock<Result<Arc<WebPkiServerVerifier>, String>>,
    verdicts: Mutex<HashMap<String, Verdict>>,
}

struct Verdict {
    chain: Vec<CertificateDer<'static>>,
    fault: Option<String>,
    until: Instant,
}

impl Client {
    /// Reads the authorities to trust now: later it may not be possible any more.
    pub fn prepare(&self) {
        self.verifier.get_or_init(|| verifier(self.roots_pem.as_deref()));
    }

    pub fn new(settings: &Settings) -> Client {
        let provider = Arc::new(ring::default_provider());
        let accepting = Accepting {
            algorithms: provider.signature_verification_algorithms,
            chain_bytes_max: settings.limits.chain_bytes_max,
        };
        let versions = [&rustls::version::TLS13, &rustls::version::TLS12];
        let builder = ClientConfig::builder_with_provider(provider);
        // This provider speaks both versions, so the only error there is cannot be met.
        let builder = builder.with_protocol_versions(&versions).expect("ring speaks TLS 1.2 and 1.3");
        let mut config =
            builder.dangerous().with_custom_certificate_verifier(Arc::new(accepting)).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = Resumption::in_memory_sessions(TLS_SESSIONS_MAX);
        Client {
            config: Arc::new(config),
            roots_pem: settings.roots_pem.clone(),
            verifier: OnceLock::new(),
            verdicts: Mutex::new(HashMap::new()),
        }
    }

    /// Shakes hands with the server of `url` over a connection that stands.
    pub async fn connect(&self, url: &Url, socket: TcpStream) -> Result<(TlsStream<TcpStream>, Tls), Fault> {
        let host = url.host_name().trim_end_matches('.');
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(bare.to_owned())
            .map_err(|_| Fault::Tls(TlsFault::Other("the host name cannot stand in a certificate".to_owned())))?;
        let connector = TlsConnector::from(self.config.clone());
        let stream = connector.connect(name.clone(), socket).await.map_err(|error| Fault::Tls(fault_of(&error)))?;
        let session = stream.get_ref().1;
        let chain = session.peer_certificates().unwrap_or_default();
        let tls = Tls {
            protocol: match session.protocol_version() {
                Some(ProtocolVersion::TLSv1_3) => "tls/1.3",
                _ => "tls/1.2",
            },
            cipher_suite: session
                .negotiated_cipher_suite()
                .map_or_else(String::new, |suite| format!("{:?}", suite.suite()).replacen("TLS13_", "TLS_", 1)),
            fault: self.judge(host, &name, chain),
            chain_bytes: chain.iter().map(|certificate| certificate.len()).sum(),
            resumed: session.handshake_kind() == Some(HandshakeKind::Resumed),
        };
        Ok((stream, tls))
    }

    /// What is wrong with this chain for this host. Verdicts are remembered: most connections show what the last one showed.
    fn judge(&self, host: &str, name: &ServerName<'_>, chain: &[CertificateDer<'_>]) -> Option<String> {
        let now = Instant::now();
        let mut verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verdict) = verdicts.get(host)
            && now < verdict.until
            && verdict.chain == chain
        {
            return verdict.fault.clone();
        }
        let fault = self.verify(name, chain);
        if verdicts.len() >= TLS_VERDICTS_MAX {
            verdicts.clear();
        }
        let chain = chain.iter().map(|certificate| certificate.clone().into_owned()).collect();
        let until = now + Duration::from_millis(VERDICT_MS);
        verdicts.insert(host.to_owned(), Verdict { chain, fault: fault.clone(), until });
        fault
    }

    fn verify(&self, name: &ServerName<'_>, chain: &[CertificateDer<'_>]) -> Option<String> {
        let verifier = match self.verifier.get_or_init(|| verifier(self.roots_pem.as_deref())) {
            Ok(verifier) => verifier,
            Err(why) => return Some(format!("unverified: {why}")),
        };
        let Some((first, others)) = chain.split_first() else {
            return Some("no-certificate: the server showed no certificate".to_owned());
        };
        let error = verifier.verify_server_cert(first, others, name, &[], UnixTime::now()).err()?;
        Some(describe(&error, chain))
    }
}

fn describe(error: &Error, chain: &[CertificateDer<'_>]) -> String {
    let Error::InvalidCertificate(certificate_error) = error else { return format!("unverified: {error}") };
    let word = match certificate_error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "not-yet-valid",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => "wrong-host",
        CertificateError::UnknownIssuer if chain.len() == 1 => "unknown-issuer-or-self-signed",
        CertificateError::UnknownIssuer => "unknown-issuer",
        CertificateError::BadEncoding => "bad-encoding",
        CertificateError::BadSignature => "bad-signature",
        CertificateError::Revoked => "revoked",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => "wrong-purpose",
        CertificateError::Other(OtherError(other)) if other.to_string().contains("CaUsedAsEndEntity") => "self-signed",
        _ => "unverified",
    };
    format!("{word}: {error}")
}

/// The certificates of a PEM file; an error when there is none or one is no certificate.
pub(crate) fn read_roots(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, SetupError> {
    let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match roots {
        Ok(roots) if !roots.is_empty() => Ok(roots),
        _ => Err(SetupError("the file with authorities holds no certificate in PEM form".to_owned())),
    }
}

fn verifier(roots_pem: Option<&[u8]>) -> Result<Arc<WebPkiServerVerifier>, String> {
    let mut store = (*native_roots()).clone();
    for root in roots_pem.map(read_roots).transpose().map_err(|error| error.to_string())?.unwrap_or_default() {
        store.add(root).map_err(|error| error.to_string())?;
    }
    if store.is_empty() {
        return Err("this machine has no list of trusted authorities; install ca-certificates".to_owned());
    }
    let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
    WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider).build().map_err(|error| error.to_string())
}

/// The roots of the system, read once per process.
fn native_roots() -> Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let load = || {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(store)
    };
    ROOTS.get_or_init(load).clone()
}

/// Accepts every chain that is not too long; checks signatures of the handshake.
struct Accepting {
    algorithms: WebPkiSupportedAlgorithms,
    chain_bytes_max: usize,
}

impl fmt::Debug for Accepting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Accepting")
    }
}

/// Tells our own refusal from all others.
#[derive(Debug)]
struct ChainTooLarge;

impl fmt::Display for ChainTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the certificates are longer than accepted")
    }
}

impl std::error::Error for ChainTooLarge {}

impl ServerCertVerifier for Accepting {
    fn verify_server_cert(
        &self,
        first: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let bytes = first.len() + others.iter().map(|certificate| certificate.len()).sum::<usize>();
        if bytes > self.chain_bytes_max {
            return Err(Error::Other(OtherError(Arc::new(ChainTooLarge))));
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn fault_of(error: &io::Error) -> TlsFault {
    let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) else {
        return match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                TlsFault::Closed
            }
            _ => TlsFault::Other(error.to_string()),
        };
    };
    match error {
        Error::Other(OtherError(other)) if other.is::<ChainTooLarge>() => TlsFault::ChainTooLarge,
        Error::InvalidMessage(
            InvalidMessage::CertificatePayloadTooLarge | InvalidMessage::HandshakePayloadTooLarge,
        ) => TlsFault::ChainTooLarge,
        Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion) => TlsFault::Legacy(error.to_string()),
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => TlsFault::NotTls,
        Error::PeerIncompatible(_) => TlsFault::Legacy(error.to_string()),
        Error::AlertReceived(
            AlertDescription::ProtocolVersion
            | AlertDescription::HandshakeFailure
            | AlertDescription::InsufficientSecurity,
        ) => TlsFault::Legacy(error.to_string()),
        other => TlsFault::Other(other.to_string()),
    }
}
