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

    fn certificate(&self, name: &str) -> Option<CertifiedKey> {
        let mut params = CertificateParams::new(vec![name.to_string()]).ok()?;
        params.distinguished_name.push(DnType::CommonName, "skep-testweb host");
        params.use_authority_key_identifier_extension = true;
        let certificate: CertificateDer<'static> = params.signed_by(&self.host_key, &self.issuer).ok()?.der().clone();
        let key = ring::sign::any_supported_type(&self.host_key_der).ok()?;
        Some(CertifiedKey::new(vec![certificate], key))
    }
}

/// Gives each host that speaks TLS its certificate, by the name the client asks for.
struct Certificates {
    authority: Arc<Authority>,
    world: Arc<World>,
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
        let key = Arc::new(self.authority.certificate(&name)?);
        made.insert(name, key.clone());
        Some(key)
    }
}

/// The settings of the TLS side of a web.
pub fn settings(authority: Arc<Authority>, world: Arc<World>) -> Result<Arc<ServerConfig>, rustls::Error> {
    let certificates = Certificates { authority, world, made: Mutex::new(HashMap::new()) };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certificates));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
