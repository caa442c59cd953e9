//! Entries by their fingerprints: check lines name URLs so.

use super::error::Result;
use super::fingerprint::Fingerprints;
use super::{EntryNumber, Registry};

/// The fingerprint that a URL has under this key.
pub fn fingerprint_of(key: &[u8; 32], crawl: u16, url: &str) -> [u8; 16] {
    Fingerprints::new(*key).of_url(crawl, url).to_be_bytes()
}

impl Registry {
    /// The entry with this fingerprint, if it is known.
    pub fn find(&mut self, fingerprint: [u8; 16]) -> Result<Option<EntryNumber>> {
        self.doing(|registry| registry.seen_urls.find(u128::from_be_bytes(fingerprint)))
    }
}
