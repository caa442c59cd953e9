//! Who writes: an Ed25519 key pair, and the short writer key that names segments.

use std::path::Path;

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use skep_warc::write::RecordId;

use crate::capture::WriterKey;
use crate::error::{Error, Result};
use crate::settings;

/// The version of `settings/writer.key` that this program writes.
const KEY_VERSION: u32 = 1;
/// The file under `settings`.
pub const KEY_FILE: &str = "writer.key";

/// The key pair with which an archive signs closing records and removals.
#[derive(Clone)]
pub struct Identity {
    signing: SigningKey,
}

#[derive(Serialize, Deserialize)]
struct KeyFile {
    version: u32,
    secret: String,
}

impl Identity {
    /// The identity of a secret.
    pub fn from_secret(secret: [u8; 32]) -> Identity {
        Identity { signing: SigningKey::from_bytes(&secret) }
    }

    /// Reads `settings/writer.key`; without one, makes it from `secret`. A secret whose writer key would be
    /// `00000000` (the name of files from elsewhere) is passed over for its BLAKE3.
    pub fn load_or_create(folder: &Path, secret: impl FnOnce() -> Result<[u8; 32]>) -> Result<Identity> {
        let path = folder.join(KEY_FILE);
        if let Some(identity) = Identity::load(folder)? {
            return Ok(identity);
        }
        let mut secret = secret()?;
        while Identity::from_secret(secret).writer() == WriterKey(0) {
            secret = *blake3::hash(&secret).as_bytes();
        }
        settings::store(&path, &KeyFile { version: KEY_VERSION, secret: hex(&secret) }, 0o600)?;
        Ok(Identity::from_secret(secret))
    }

    /// Reads `settings/writer.key`; `None` if there is none yet.
    pub fn load(folder: &Path) -> Result<Option<Identity>> {
        let path = folder.join(KEY_FILE);
        let Some(file) = settings::load::<KeyFile>(&path, KEY_VERSION)? else { return Ok(None) };
        let secret = unhex::<32>(&file.secret).ok_or_else(|| {
            Error::damaged(&path, 0, "the secret is not 64 hexadecimal digits", "put the file back from a copy")
        })?;
        Ok(Some(Identity::from_secret(secret)))
    }

    /// The short name of the writer in segment names and positions.
    pub fn writer(&self) -> WriterKey {
        writer_of(&self.public())
    }

    /// The public key.
    pub fn public(&self) -> [u8; 32] {
        self.signing.verifying_key().to_bytes()
    }

    /// The secret, for whoever speaks to other nodes under this key.
    pub fn secret(&self) -> [u8; 32] {
        self.signing.to_bytes()
    }

    /// Signs `text`.
    pub fn sign(&self, text: &[u8]) -> [u8; 64] {
        self.signing.sign(text).to_bytes()
    }
}

/// The writer key of a public key: the first four bytes of its BLAKE3.
pub fn writer_of(public: &[u8; 32]) -> WriterKey {
    let hash = blake3::hash(public);
    let [a, b, c, d, ..] = *hash.as_bytes();
    WriterKey(u32::from_be_bytes([a, b, c, d]))
}

/// Whether `signature` is that of the owner of `public` over `text`.
pub fn verifies(public: &[u8; 32], text: &[u8], signature: &[u8; 64]) -> bool {
    VerifyingKey::from_bytes(public).is_ok_and(|key| key.verify_strict(text, &Signature::from_bytes(signature)).is_ok())
}

/// Thirty-two bytes from the system's source of randomness.
pub fn fresh_secret() -> Result<[u8; 32]> {
    use std::io::Read;
    let mut secret = [0; 32];
    let source = Path::new("/dev/urandom");
    std::fs::File::open(source)
        .and_then(|mut file| file.read_exact(&mut secret))
        .map_err(|error| Error::io("cannot read", source, error))?;
    Ok(secret)
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        text.extend([byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0')));
        text
    })
}

/// Reads exactly `N` bytes of lower- or upper-case hexadecimal.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    unhex_all(text)?.try_into().ok()
}

/// Reads any number of bytes of hexadecimal.
pub fn unhex_all(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

/// A record id that follows from what it names, so that the same record always has the same one:
/// 16 bytes of the BLAKE3 of `parts`, as a UUID.
pub fn record_id(parts: &[&[u8]]) -> RecordId {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    let mut id = [0; 16];
    id.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    RecordId::uuid(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_made_once_kept_private_and_signs() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let made = Identity::load_or_create(dir.path(), || Ok([7; 32])).unwrap();
        let read = Identity::load_or_create(dir.path(), || panic!("made twice")).unwrap();
        assert_eq!((made.public(), made.writer()), (read.public(), read.writer()));
        let mode = dir.path().join(KEY_FILE).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let signature = made.sign(b"text");
        assert!(verifies(&made.public(), b"text", &signature));
        assert!(!verifies(&made.public(), b"texT", &signature));
        assert!(!verifies(&[0; 32], b"text", &signature));
    }

    #[test]
    fn hexadecimal_reads_back_and_refuses_the_rest() {
        assert_eq!(hex(&[0, 0x9a, 0xff]), "009aff");
        assert_eq!(unhex::<3>("009aFF"), Some([0, 0x9a, 0xff]));
        assert_eq!((unhex::<3>("009af"), unhex::<1>("0g"), unhex::<1>("é")), (None, None, None));
    }

    #[test]
    fn record_ids_are_uuids_that_follow_from_their_parts() {
        let id = record_id(&[b"a", b"bc"]);
        assert_eq!(id, record_id(&[b"a", b"bc"]));
        assert_ne!(id, record_id(&[b"ab", b"c"]));
        assert_eq!(id.as_uri().len(), "urn:uuid:".len() + 36);
    }
}
