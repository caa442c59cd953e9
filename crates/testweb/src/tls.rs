//! Certificates: an authority made when the web starts, and a certificate for each host when it is first asked for.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::limits;
use crate::world::World;

/// The authority of one web. Nothing outside the tests that ask for it trusts it, and its key is never written.
pub struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
    // One key serves all hosts: making one per host would cost more than it proves.
    host_key: KeyPair,
    host_key_der: PrivateKeyDer<'static>,
}

impl Authority {
    /// Makes a new authority.
    pub fn new() -> Result<Authority, rcgen::Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, "skep-testweb authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let pem = params.self_signed(&key)?.pem();
        let host_key = KeyPair::generate()?;
        let host_key_der = PrivateKeyDer::Pkcs8(host_key.serialize_der().into());
        Ok(Authority { pem, issuer: Issuer::new(params, key), host_key, host_key_der })
    }

    /// Its certificate.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for a server of this name, and its key, for programs that read both from files.
    pub fn for_server(&self, name: &str) -> Result<[String; 2], rcgen::Error> {
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&self.host_key, &self.issuer)?;
        Ok([certificate.pem(), self.host_key.serialize_pem()])
    }

    fn certificate(&self, name: &str, fault: Option<Fault>) -> Option<CertifiedKey> {
        let names = match fault {
            Some(Fault::WrongHost) => vec!["another-host.test".to_string()],
            Some(Fault::NoName) => Vec::new(),
            _ => vec![name.to_string()],
        };
        let mut params = CertificateParams::new(names).ok()?;
        params.distinguished_name.push(DnType::CommonName, "skep-testweb host");
        match fault {
            Some(Fault::Expired) => {
                params.not_before = rcgen::date_time_ymd(2019, 1, 1);
                params.not_after = rcgen::date_time_ymd(2020, 1, 1);
            }
            Some(Fault::Future) => {
                params.not_before = rcgen::date_time_ymd(2090, 1, 1);
                params.not_after = rcgen::date_time_ymd(2091, 1, 1);
            }
            _ => {}
        }
        let mut chain: Vec<CertificateDer<'static>> = Vec::new();
        if fault == Some(Fault::SelfSigned) {
            chain.push(params.self_signed(&self.host_key).ok()?.der().clone());
        } else {
            params.use_authority_key_identifier_extension = true;
            chain.push(params.signed_by(&self.host_key, &self.issuer).ok()?.der().clone());
        }
        if fault == Some(Fault::LongChain) {
            let names: Vec<String> =
                (0..500).map(|n| format!("one-of-very-many-names-{n:03}.long-chain.test")).collect();
            let link = CertificateParams::new(names).ok()?.signed_by(&self.host_key, &self.issuer).ok()?.der().clone();
            while chain.iter().map(|link| link.len()).sum::<usize>() < LONG_CHAIN_BYTES {
                chain.push(link.clone());
            }
        }
        let key = ring::sign::any_supported_type(&self.host_key_der).ok()?;
        Some(CertifiedKey::new(chain, key))
    }
}

/// Bytes of certificates that are too many.
const LONG_CHAIN_BYTES: usize = 100 * 1024;

/// What is wrong with a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Expired,
    Future,
    SelfSigned,
    WrongHost,
    NoName,
    LongChain,
}

impl Fault {
    /// By the name of its form.
    pub fn named(form: &str) -> Option<Fault> {
        Some(match form {
            "expired" => Fault::Expired,
            "future" => Fault::Future,
            "self-signed" => Fault::SelfSigned,
            "wrong-host" => Fault::WrongHost,
            "no-name" => Fault::NoName,
            "long-chain" => Fault::LongChain,
            _ => return None,
        })
    }
}

/// Gives each host that speaks TLS its certificate, by the name the client asks for.
struct Certificates {
    authority: Arc<Authority>,
    world: Arc<World>,
    fault: Option<Fault>,
    made: Mutex<HashMap<String, Arc<CertifiedKey>>>,
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificates")
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name()?.to_ascii_lowercase();
        self.world.host(&name).filter(|host| host.secure())?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = made.get(&name) {
            return Some(key.clone());
        }
        if made.len() >= limits::CERTIFICATES_MAX {
            made.clear(); // making one again is cheap; keeping all is not
        }
        let key = Arc::new(self.authority.certificate(&name, self.fault)?);
        made.insert(name, key.clone());
        Some(key)
    }
}

/// The settings of the TLS side of a web, or of a host whose certificates are not as they should be.
pub fn settings(
    authority: Arc<Authority>,
    world: Arc<World>,
    fault: Option<Fault>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let certificates = Certificates { authority, world, fault, made: Mutex::new(HashMap::new()) };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certificates));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
