//! TLS as a sink speaks it: certificates are checked against the system's roots (`SSL_CERT_FILE` names others).

use std::sync::{Arc, OnceLock};

use rustls::{ClientConfig, RootCertStore};

/// The one configuration, read at the first use.
pub fn config() -> Result<Arc<ClientConfig>, String> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    let read = || {
        let mut roots = RootCertStore::empty();
        // Single certificates that cannot be read are not missed as long as others can.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err("this system has no root certificates; install ca-certificates".to_owned());
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = versions.map_err(|error| error.to_string())?;
        Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
    };
    CONFIG.get_or_init(read).clone()
}
