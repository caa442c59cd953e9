//! A filter that says "certainly not here" or "perhaps". It only saves reads: a "perhaps" is always looked up in the run.

use super::fingerprint::Fingerprint;
use super::limits::FILTER_BITS_PER_KEY;

const LINE_WORDS: usize = 8;
/// Bits set for each key: six times nine bits choose among the 512 bits of a line.
const PROBES: u32 = 6;

/// A Bloom filter whose bits for one key share a cache line.
///
/// ```text
///   | line of 64 bytes … |   line = high half of the fingerprint scaled to the number of lines, so that a filter filled in
///                            sorted order is filled from front to back;
///                            bits = six groups of nine bits of its low half
/// ```
pub(super) struct Filter {
    words: Vec<u64>,
}

impl Filter {
    pub fn new(keys: u64) -> Filter {
        Filter { words: vec![0; Filter::bytes_for(keys) / 8] }
    }

    pub fn bytes_for(keys: u64) -> usize {
        (keys.saturating_mul(FILTER_BITS_PER_KEY)).div_ceil(LINE_WORDS as u64 * 64).max(1) as usize * LINE_WORDS * 8
    }

    /// A filter as it was stored; `None` if it cannot have been.
    pub fn from_bytes(bytes: &[u8]) -> Option<Filter> {
        let whole = !bytes.is_empty() && bytes.len().is_multiple_of(LINE_WORDS * 8);
        whole.then(|| Filter { words: bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect() })
    }

    pub fn write(&self, into: &mut Vec<u8>) {
        for word in &self.words {
            into.extend_from_slice(&word.to_le_bytes());
        }
    }

    pub fn bytes(&self) -> usize {
        self.words.len() * 8
    }

    pub fn insert(&mut self, key: Fingerprint) {
        let line = self.line(key);
        let mut bits = key as u64;
        for _ in 0..PROBES {
            line_word(&mut self.words[line..line + LINE_WORDS], bits);
            bits >>= 9;
        }
    }

    pub fn may_hold(&self, key: Fingerprint) -> bool {
        let line = &self.words[self.line(key)..][..LINE_WORDS];
        let mut bits = key as u64;
        let mut held = 1;
        for _ in 0..PROBES {
            held &= line[(bits >> 6) as usize & 7] >> (bits & 63);
            bits >>= 9;
        }
        held & 1 == 1
    }

    fn line(&self, key: Fingerprint) -> usize {
        let lines = (self.words.len() / LINE_WORDS) as u128;
        (((key >> 64) * lines) >> 64) as usize * LINE_WORDS
    }
}

fn line_word(line: &mut [u64], bits: u64) {
    line[(bits >> 6) as usize & 7] |= 1 << (bits & 63);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u64) -> Fingerprint {
        let hash = blake3::hash(&n.to_le_bytes());
        u128::from_be_bytes(hash.as_bytes()[..16].try_into().unwrap())
    }

    #[test]
    fn what_was_put_in_is_held_and_little_else() {
        let mut filter = Filter::new(20_000);
        (0..20_000).for_each(|n| filter.insert(key(n)));
        let mut bytes = Vec::new();
        filter.write(&mut bytes);
        let again = Filter::from_bytes(&bytes).unwrap();
        assert!((0..20_000).all(|n| again.may_hold(key(n))));
        let wrong = (20_000..120_000).filter(|n| again.may_hold(key(*n))).count();
        assert!(wrong < 2_000, "{wrong} of 100,000");
    }

    #[test]
    fn bytes_that_are_no_filter() {
        assert!(Filter::from_bytes(&[]).is_none());
        assert!(Filter::from_bytes(&[0; 63]).is_none());
    }
}
