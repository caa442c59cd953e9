//! The key of a URL: what captures are sorted by.

/// The sort key of a URL: the hash of its site, then its SURT.
///
/// ```text
///   | site hash 4 BE | SURT … |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    bytes: Vec<u8>,
}

impl Key {
    /// A key from its two parts.
    pub fn from_parts(site_hash: u32, surt: &str) -> Key {
        let mut bytes = Vec::with_capacity(4 + surt.len());
        bytes.extend_from_slice(&site_hash.to_be_bytes());
        bytes.extend_from_slice(surt.as_bytes());
        Key { bytes }
    }

    /// The bytes that sort.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The hash of the site.
    pub fn site_hash(&self) -> u32 {
        self.bytes.first_chunk::<4>().map_or(0, |b| u32::from_be_bytes(*b))
    }

    /// The SURT.
    pub fn surt(&self) -> &str {
        std::str::from_utf8(self.bytes.get(4..).unwrap_or_default()).unwrap_or_default()
    }
}
