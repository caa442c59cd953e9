//! Keys, signatures and hashes, and the one trait through which everything is signed and checked.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};

/// A public Ed25519 key: of a node (and then also its address), of an owner, or of an invitation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key(pub [u8; 32]);

impl Key {
    /// The first four bytes in hexadecimal, for people.
    pub fn short(&self) -> String {
        hex(&self.0[..4])
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

impl FromStr for Key {
    type Err = ();

    fn from_str(text: &str) -> Result<Key, ()> {
        unhex(text).map(Key).ok_or(())
    }
}

/// A BLAKE3 hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// Of bytes, under a name that says what they are: equal bytes of different meaning have different hashes.
    pub fn of(meaning: &str, bytes: &[u8]) -> Hash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&[meaning.len() as u8]).update(meaning.as_bytes()).update(bytes);
        Hash(*hasher.finalize().as_bytes())
    }

    /// The first eight bytes as a number.
    pub fn number(&self) -> u64 {
        u64::from_be_bytes(self.0[..8].try_into().expect("a hash has eight bytes"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0[..4]))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// A signature; what it covers is always a meaning and bytes, see [`signed`].
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature([u8; 32], [u8; 32]);

impl Signature {
    /// From its 64 bytes.
    pub fn from_bytes(bytes: [u8; 64]) -> Signature {
        let (low, high) = bytes.split_at(32);
        Signature(low.try_into().expect("half of 64"), high.try_into().expect("half of 64"))
    }

    /// Its 64 bytes.
    pub fn to_bytes(self) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[..32].copy_from_slice(&self.0);
        bytes[32..].copy_from_slice(&self.1);
        bytes
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0[..4]))
    }
}

/// Who signs, and how signatures are checked. A node has one; large simulations have a cheaper one than Ed25519.
pub trait Seal: Send + Sync {
    /// The public key of the signer.
    fn key(&self) -> Key;
    /// Signs with the key.
    fn sign(&self, bytes: &[u8]) -> Signature;
    /// Whether a signature is that of a key over bytes.
    fn verify(&self, key: &Key, bytes: &[u8], signature: &Signature) -> bool;
}

/// A seal that is passed around.
pub type SealRef = Arc<dyn Seal>;

/// The seal of real networks.
pub struct Ed25519(SigningKey);

impl Ed25519 {
    /// The seal of a secret.
    pub fn from_secret(secret: &[u8; 32]) -> Ed25519 {
        Ed25519(SigningKey::from_bytes(secret))
    }
}

impl Seal for Ed25519 {
    fn key(&self) -> Key {
        Key(self.0.verifying_key().to_bytes())
    }

    fn sign(&self, bytes: &[u8]) -> Signature {
        Signature::from_bytes(self.0.sign(bytes).to_bytes())
    }

    fn verify(&self, key: &Key, bytes: &[u8], signature: &Signature) -> bool {
        let Ok(key) = VerifyingKey::from_bytes(&key.0) else { return false };
        key.verify_strict(bytes, &ed25519_dalek::Signature::from_bytes(&signature.to_bytes())).is_ok()
    }
}

/// What is signed of a thing: its meaning, so that no signature serves for something else, and its encoding.
///
/// ```text
/// | length of the meaning 1 | meaning | postcard |
/// ```
pub fn signed<T: Serialize>(meaning: &str, thing: &T) -> Vec<u8> {
    let mut bytes = vec![meaning.len() as u8];
    bytes.extend_from_slice(meaning.as_bytes());
    postcard::to_extend(thing, bytes).expect("plain data encodes")
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Exactly `N` bytes from hexadecimal digits.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; N];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_serves_one_meaning_one_key_and_one_text() {
        let (one, other) = (Ed25519::from_secret(&[1; 32]), Ed25519::from_secret(&[2; 32]));
        let bytes = signed("skep record", &7u32);
        let signature = one.sign(&bytes);
        assert!(other.verify(&one.key(), &bytes, &signature));
        assert!(!other.verify(&other.key(), &bytes, &signature));
        assert!(!other.verify(&one.key(), &signed("skep vote", &7u32), &signature));
        assert!(!other.verify(&one.key(), &signed("skep record", &8u32), &signature));
        assert!(!other.verify(&Key([0; 32]), &bytes, &signature), "a weak key signs nothing");
        assert_eq!(one.key().to_string().parse(), Ok(one.key()));
        assert_eq!("xyz".parse::<Key>(), Err(()));
    }
}
