//! TLS for the portal: a certificate chain and a key from PEM files.

use crate::server::Error;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// What accepts TLS connections.
pub fn acceptor(chain: &Path, key: &Path) -> Result<TlsAcceptor, Error> {
    let wrong = |path: &Path, why: &dyn std::fmt::Display| Error::Setting {
        what: format!("cannot use {}: {why}", path.display()),
    };
    let certificates = CertificateDer::pem_file_iter(chain).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = certificates.map_err(|error| wrong(chain, &error))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(chain, &error))?
        .with_no_client_auth()
        .with_single_cert(certificates, secret)
        .map_err(|error| wrong(chain, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
