//! A filter that says "certainly not here" or "perhaps". It only saves reads: a "perhaps" is always looked up in the run.

use super::fingerprint::Fingerprint;
use super::limits::FILTER_BITS_PER_KEY;

const LINE_BYTES: usize = 64;
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
    lines: Vec<Line>,
}

/// Aligned, so that a look at one key waits for one line of memory.
#[derive(Clone, Default)]
#[repr(align(64))]
struct Line([u64; 8]);

impl Filter {
    pub fn new(keys: u64) -> Filter {
        Filter { lines: vec![Line::default(); Filter::bytes_for(keys) / LINE_BYTES] }
    }

    pub fn bytes_for(keys: u64) -> usize {
        keys.saturating_mul(FILTER_BITS_PER_KEY).div_ceil(LINE_BYTES as u64 * 8).max(1) as usize * LINE_BYTES
    }

    /// A filter as it was stored; `None` if it cannot have been.
    pub fn from_bytes(bytes: &[u8]) -> Option<Filter> {
        let (lines, rest) = bytes.as_chunks::<LINE_BYTES>();
        let line = |bytes: &[u8; LINE_BYTES]| {
            let mut line = Line::default();
            line.0.iter_mut().zip(bytes.as_chunks().0).for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
            line
        };
        (rest.is_empty() && !lines.is_empty()).then(|| Filter { lines: lines.iter().map(line).collect() })
    }

    pub fn write(&self, into: &mut Vec<u8>) {
        for word in self.lines.iter().flat_map(|line| line.0) {
            into.extend_from_slice(&word.to_le_bytes());
        }
    }

    pub fn bytes(&self) -> usize {
        self.lines.len() * LINE_BYTES
    }

    pub fn insert(&mut self, key: Fingerprint) {
        let line = self.line(key);
        let mut bits = key as u64;
        for _ in 0..PROBES {
            self.lines[line].0[(bits >> 6) as usize & 7] |= 1 << (bits & 63);
            bits >>= 9;
        }
    }

    pub fn may_hold(&self, key: Fingerprint) -> bool {
        let line = &self.lines[self.line(key)].0;
        let mut bits = key as u64;
        let mut held = 1;
        for _ in 0..PROBES {
            held &= line[(bits >> 6) as usize & 7] >> (bits & 63);
            bits >>= 9;
        }
        held & 1 == 1
    }

    fn line(&self, key: Fingerprint) -> usize {
        (((key >> 64) * self.lines.len() as u128) >> 64) as usize
    }
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
