//! The fingerprint of a URL or of a host, by which it is recognised.
//!
//! Why this is exact: a fingerprint is 128 bits of BLAKE3 under a key that only this archive has. Without the key nobody can
//! look for two URLs with one fingerprint, so only chance is left, and chance needs about 2^64 URLs for one collision: among
//! the 2^40 - 1 entries that can be numbered at all, the probability that any two collide is below 2^-49 (n²/2 pairs, each
//! 2^-128). That is less than the probability that the disk returns a wrong block with a right checksum.
//!
//! The number of the crawl is hashed with the URL: each crawl of an archive has entries of its own, and one crawl that hears a
//! URL which another knows gets a new entry, with its own depth, state and pass.

/// 128 bits, ordered as a number.
pub(super) type Fingerprint = u128;

/// Makes fingerprints under one key.
pub(super) struct Fingerprints {
    key: [u8; 32],
}

const URL: u8 = 1;
const HOST: u8 = 2;
const CHECK: u8 = 3;

impl Fingerprints {
    pub fn new(key: [u8; 32]) -> Fingerprints {
        Fingerprints { key }
    }

    pub fn of_url(&self, crawl: u16, url: &str) -> Fingerprint {
        self.of(URL, crawl, url.as_bytes())
    }

    pub fn of_host(&self, crawl: u16, host_key: &str) -> Fingerprint {
        self.of(HOST, crawl, host_key.as_bytes())
    }

    /// What a checkpoint keeps of the key: enough to see that another key is used, not enough to find it.
    pub fn of_key(&self) -> Fingerprint {
        self.of(CHECK, 0, b"skep registry")
    }

    /// One call to BLAKE3 over `| what 1 | crawl 2 | text |`: for most URLs the bytes are put together on the stack.
    fn of(&self, what: u8, crawl: u16, text: &[u8]) -> Fingerprint {
        const SHORT: usize = 256;
        let [low, high] = crawl.to_le_bytes();
        let hash = if text.len() <= SHORT - 3 {
            let mut bytes = [0; SHORT];
            bytes[..3].copy_from_slice(&[what, low, high]);
            bytes[3..3 + text.len()].copy_from_slice(text);
            blake3::keyed_hash(&self.key, &bytes[..3 + text.len()])
        } else {
            let mut hasher = blake3::Hasher::new_keyed(&self.key);
            hasher.update(&[what, low, high]).update(text);
            hasher.finalize()
        };
        let (half, _) = hash.as_bytes().split_first_chunk::<16>().expect("BLAKE3 has 32 bytes");
        u128::from_be_bytes(*half)
    }
}

/// The fingerprint of a URL in a crawl, for records that name URLs by it; see [`Registry::find`](super::Registry::find).
pub fn fingerprint_of(key: &[u8; 32], crawl: u16, url: &str) -> [u8; 16] {
    Fingerprints::new(*key).of_url(crawl, url).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_crawl_and_text_all_count() {
        let (one, other) = (Fingerprints::new([1; 32]), Fingerprints::new([2; 32]));
        let url = "https://example.org/";
        assert_eq!(one.of_url(7, url), one.of_url(7, url));
        assert_ne!(one.of_url(7, url), one.of_url(8, url));
        assert_ne!(one.of_url(7, url), one.of_host(7, url));
        assert_ne!(one.of_url(7, url), other.of_url(7, url));
        assert_ne!(one.of_key(), other.of_key());
    }

    #[test]
    fn long_and_short_texts_are_hashed_alike() {
        let fingerprints = Fingerprints::new([9; 32]);
        for length in [252, 253, 254, 5000] {
            let text = "u".repeat(length);
            let mut bytes = vec![URL, 3, 0];
            bytes.extend_from_slice(text.as_bytes());
            let hash = blake3::keyed_hash(&[9; 32], &bytes);
            let expected = u128::from_be_bytes(hash.as_bytes()[..16].try_into().unwrap());
            assert_eq!(fingerprints.of_url(3, &text), expected, "{length}");
        }
    }
}
