//! The key under which URLs have fingerprints: a setting, because a rebuild must find the same ones.

use std::path::Path;

use serde::{Deserialize, Serialize};
use skep_archive::settings as files;

use crate::canonical::canonical;
use crate::chance;
use crate::error::{Error, Result};

/// The key, made once per archive. A hostile site that does not know it cannot make two URLs look alike.
#[derive(Clone, Debug)]
pub struct RegistryKey(pub [u8; 32]);

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    key: String,
}

const VERSION: u32 = 1;

impl RegistryKey {
    /// Reads the key of an archive, if it has one.
    pub fn known(settings_folder: &Path) -> Result<Option<RegistryKey>> {
        let path = settings_folder.join("registry.toml");
        let Some(File { key, .. }) = files::load::<File>(&path, VERSION)? else { return Ok(None) };
        let key = blake3::Hash::from_hex(&key)
            .map_err(|_| Error::Settings { what: format!("{} holds no key", path.display()) })?;
        Ok(Some(RegistryKey(*key.as_bytes())))
    }

    /// Reads the key of an archive, or makes it.
    pub fn load(settings_folder: &Path) -> Result<RegistryKey> {
        if let Some(key) = RegistryKey::known(settings_folder)? {
            return Ok(key);
        }
        let key = RegistryKey(chance::draw()?);
        key.store(settings_folder)?;
        Ok(key)
    }

    pub(crate) fn store(&self, settings_folder: &Path) -> Result<()> {
        let key = blake3::Hash::from_bytes(self.0).to_hex().to_string();
        Ok(files::store(&settings_folder.join("registry.toml"), &File { version: VERSION, key }, 0o600)?)
    }

    /// By what check lines name a URL.
    pub fn fingerprint(&self, crawl: u16, url: &str) -> [u8; 16] {
        crate::registry::fingerprint_of(&self.0, crawl, &canonical(url))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        assert!(RegistryKey::known(folder.path()).unwrap().is_none());
        let key = RegistryKey::load(folder.path()).unwrap();
        assert_eq!(RegistryKey::load(folder.path()).unwrap().0, key.0);
        assert_ne!(key.0, [0; 32]);
    }
}
