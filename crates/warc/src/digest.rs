//! Digests as WARC fields carry them: `sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ`.
//!
//! The standard leaves algorithm and encoding open, so files hold every mixture: base32 with and without padding, in either
//! case, hexadecimal, base64, algorithm names with and without a hyphen, and no name at all. Reading accepts them all and
//! compares *values*; writing gives the one form that every tool verifies: lower-case name, colon, upper-case base32 with padding.

mod check;
mod lanes;
mod sha1;

use std::fmt;
use std::str::FromStr;

use self::sha1::Sha1;
use data_encoding::{BASE32, BASE32_NOPAD, BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER_PERMISSIVE};
use sha2::Digest as _;

pub use check::{BlockCheck, CheckedDigests, Declared, Payload, PayloadMatch};

/// Length of the longest digest known here (SHA-512), in bytes.
const DIGEST_BYTES_MAX: usize = 64;

/// A digest algorithm found in archives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// 16 bytes; only in old files.
    Md5,
    /// 20 bytes; what nearly all archives and indexes use.
    Sha1,
    /// 32 bytes.
    Sha256,
    /// 64 bytes.
    Sha512,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Algorithm; 4] = [Algorithm::Md5, Algorithm::Sha1, Algorithm::Sha256, Algorithm::Sha512];

    /// Length of a digest in bytes.
    pub const fn length_bytes(self) -> usize {
        match self {
            Algorithm::Md5 => 16,
            Algorithm::Sha1 => 20,
            Algorithm::Sha256 => 32,
            Algorithm::Sha512 => 64,
        }
    }

    /// The name as written before the colon.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Md5 => "md5",
            Algorithm::Sha1 => "sha1",
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha512 => "sha512",
        }
    }

    fn from_name(name: &str) -> Option<Algorithm> {
        let plain: String = name.chars().filter(|c| !matches!(c, '-' | '_')).map(|c| c.to_ascii_lowercase()).collect();
        Algorithm::ALL.into_iter().find(|a| a.name() == plain)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A digest value with its algorithm. Two digests are equal when these are, however they were spelled.
#[derive(Clone, Copy)]
pub struct Digest {
    algorithm: Algorithm,
    bytes: [u8; DIGEST_BYTES_MAX],
}

impl Digest {
    /// A digest from its bytes; `None` when their number is not the algorithm's.
    pub fn new(algorithm: Algorithm, bytes: &[u8]) -> Option<Digest> {
        if bytes.len() != algorithm.length_bytes() {
            return None;
        }
        let mut all = [0; DIGEST_BYTES_MAX];
        all[..bytes.len()].copy_from_slice(bytes);
        Some(Digest { algorithm, bytes: all })
    }

    /// The digest of `bytes`.
    pub fn of(algorithm: Algorithm, bytes: &[u8]) -> Digest {
        let mut hasher = Hasher::new(algorithm);
        hasher.update(bytes);
        hasher.finish()
    }

    /// Its algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.algorithm.length_bytes()]
    }

    /// Reads a digest as found in a header field or an index, in any of the spellings in use.
    ///
    /// The length of the value decides between base32, hexadecimal and base64. Without an algorithm's name it decides that too;
    /// 32 characters are SHA-1 in base32, unless they can only be an MD5 in hexadecimal.
    pub fn parse(text: &str) -> Result<Digest, DigestError> {
        let text = text.trim();
        let (name, value) = match text.split_once(':') {
            Some((name, value)) => (Some(name.trim()), value.trim()),
            None => (None, text),
        };
        let value = value.trim_end_matches('=');
        match name.filter(|n| !n.is_empty()) {
            Some(name) => {
                let algorithm =
                    Algorithm::from_name(name).ok_or_else(|| DigestError::UnknownAlgorithm(name.to_owned()))?;
                decode(algorithm, value).ok_or(DigestError::BadValue(algorithm))
            }
            // SHA-1 before MD5: an unnamed value is nearly always from a CDX, which means SHA-1.
            None => [Algorithm::Sha1, Algorithm::Sha256, Algorithm::Sha512, Algorithm::Md5]
                .into_iter()
                .find_map(|algorithm| decode(algorithm, value))
                .ok_or(DigestError::Unrecognised),
        }
    }

    /// The value alone in upper-case base32, as CDX files have it. SHA-1 needs no padding; the others get theirs, without which
    /// warcio and FastWARC take the value for another encoding.
    pub fn base32(&self) -> String {
        BASE32.encode(self.as_bytes())
    }

    /// The value alone in lower-case hexadecimal.
    pub fn hex(&self) -> String {
        HEXLOWER_PERMISSIVE.encode(self.as_bytes())
    }
}

/// Decodes `value` (padding removed) if it is one of the encodings of a digest of `algorithm`.
fn decode(algorithm: Algorithm, value: &str) -> Option<Digest> {
    let length = algorithm.length_bytes();
    let bytes = if value.len() == (length * 8).div_ceil(5) {
        BASE32_NOPAD.decode(value.to_ascii_uppercase().as_bytes()).ok()?
    } else if value.len() == length * 2 {
        HEXLOWER_PERMISSIVE.decode(value.as_bytes()).ok()?
    } else if value.len() == (length * 8).div_ceil(6) {
        BASE64_NOPAD.decode(value.as_bytes()).or_else(|_| BASE64URL_NOPAD.decode(value.as_bytes())).ok()?
    } else {
        return None;
    };
    Digest::new(algorithm, &bytes)
}

impl PartialEq for Digest {
    fn eq(&self, other: &Digest) -> bool {
        self.algorithm == other.algorithm && self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Digest {}

impl std::hash::Hash for Digest {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.algorithm.hash(state);
        self.as_bytes().hash(state);
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm, self.base32())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Digest, DigestError> {
        Digest::parse(text)
    }
}

/// Why a digest could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DigestError {
    /// The name before the colon is none of the known ones: the digest may be right, but cannot be verified here.
    UnknownAlgorithm(String),
    /// The value is not a digest of that algorithm in any encoding.
    BadValue(Algorithm),
    /// No name, and the value has the shape of no known digest.
    Unrecognised,
}

impl fmt::Display for DigestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DigestError::UnknownAlgorithm(name) => write!(f, "unknown digest algorithm {name:?}"),
            DigestError::BadValue(algorithm) => {
                write!(f, "the value is not a {algorithm} digest in any known encoding")
            }
            DigestError::Unrecognised => f.write_str("not a digest: no algorithm is named and the length fits none"),
        }
    }
}

impl std::error::Error for DigestError {}

/// A running digest.
#[derive(Debug, Clone)]
pub struct Hasher(State);

#[derive(Debug, Clone)]
enum State {
    Md5(md5::Md5),
    Sha1(Sha1),
    Sha256(sha2::Sha256),
    Sha512(sha2::Sha512),
}

impl Hasher {
    /// A digest of nothing yet.
    pub fn new(algorithm: Algorithm) -> Hasher {
        Hasher(match algorithm {
            Algorithm::Md5 => State::Md5(md5::Md5::new()),
            Algorithm::Sha1 => State::Sha1(Sha1::new()),
            Algorithm::Sha256 => State::Sha256(sha2::Sha256::new()),
            Algorithm::Sha512 => State::Sha512(sha2::Sha512::new()),
        })
    }

    /// Which algorithm runs.
    pub fn algorithm(&self) -> Algorithm {
        match self.0 {
            State::Md5(_) => Algorithm::Md5,
            State::Sha1(_) => Algorithm::Sha1,
            State::Sha256(_) => Algorithm::Sha256,
            State::Sha512(_) => Algorithm::Sha512,
        }
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Md5(h) => h.update(bytes),
            State::Sha1(h) => h.update(bytes),
            State::Sha256(h) => h.update(bytes),
            State::Sha512(h) => h.update(bytes),
        }
    }

    /// Takes the next bytes of two digests. Two of SHA-1 take little more time than one.
    pub fn update_both(one: &mut Hasher, one_bytes: &[u8], other: &mut Hasher, other_bytes: &[u8]) {
        if let (State::Sha1(one), State::Sha1(other)) = (&mut one.0, &mut other.0) {
            return Sha1::update_both(one, one_bytes, other, other_bytes);
        }
        one.update(one_bytes);
        other.update(other_bytes);
    }

    /// The digest of all bytes taken.
    pub fn finish(self) -> Digest {
        let algorithm = self.algorithm();
        let digest = match self.0 {
            State::Md5(h) => Digest::new(algorithm, &h.finalize()),
            State::Sha1(h) => Digest::new(algorithm, &h.finish()),
            State::Sha256(h) => Digest::new(algorithm, &h.finalize()),
            State::Sha512(h) => Digest::new(algorithm, &h.finalize()),
        };
        digest.expect("a hasher gives its algorithm's length")
    }
}
