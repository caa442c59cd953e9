//! A filter that says "certainly not here" or "perhaps": a Bloom filter whose bits for one key share a cache line.

use crate::limits::FILTER_BITS_PER_KEY;

const LINE_BYTES: usize = 64;
/// Bits set for each key: six times nine bits of the hash choose among the 512 bits of a line.
const PROBES: u32 = 6;

/// ```text
///   | lines of 64 bytes … |   line = high half of the hash scaled to the number of lines;
///                             bits = six groups of nine bits of the low 54 bits of the hash
/// ```
pub struct Filter {
    lines: Vec<u8>,
}

impl Filter {
    /// A filter over these hashes, of which equal ones count once if they stand together.
    pub fn build(hashes: &[u64]) -> Filter {
        let lines = (hashes.len() * FILTER_BITS_PER_KEY).div_ceil(LINE_BYTES * 8).max(1);
        let mut filter = Filter { lines: vec![0; lines * LINE_BYTES] };
        for hash in hashes {
            let line = filter.line_of(*hash);
            for bit in bits_of(*hash) {
                filter.lines[line + bit / 8] |= 1 << (bit % 8);
            }
        }
        filter
    }

    /// A filter as it was stored; `None` if it cannot have been.
    pub fn from_bytes(bytes: &[u8]) -> Option<Filter> {
        (!bytes.is_empty() && bytes.len().is_multiple_of(LINE_BYTES)).then(|| Filter { lines: bytes.to_vec() })
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.lines
    }

    fn line_of(&self, hash: u64) -> usize {
        let lines = (self.lines.len() / LINE_BYTES) as u64;
        (((hash >> 32) * lines) >> 32) as usize * LINE_BYTES
    }

    /// False only if no key with this hash was put in.
    pub fn may_contain(&self, hash: u64) -> bool {
        let line = self.line_of(hash);
        bits_of(hash).all(|bit| self.lines[line + bit / 8] & (1 << (bit % 8)) != 0)
    }
}

fn bits_of(hash: u64) -> impl Iterator<Item = usize> {
    // The high half chose the line; mixing keeps the bits independent of it.
    let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..PROBES).map(move |probe| ((mixed >> (9 * probe)) & 511) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xxhash_rust::xxh3::xxh3_64;

    #[test]
    fn what_was_put_in_is_found_and_the_rest_mostly_is_not() {
        let hash = |n: u32| xxh3_64(&n.to_le_bytes());
        let filter = Filter::build(&(0..20_000).map(hash).collect::<Vec<_>>());
        let filter = Filter::from_bytes(filter.as_bytes()).unwrap();
        assert!((0..20_000).all(|n| filter.may_contain(hash(n))));
        let wrong = (20_000..120_000).filter(|n| filter.may_contain(hash(*n))).count();
        assert!(wrong < 2_500, "{wrong} of 100,000 absent keys pass");
        assert!(Filter::build(&[]).as_bytes().len() == LINE_BYTES);
        assert!(Filter::from_bytes(&[]).is_none() && Filter::from_bytes(&[0; 65]).is_none());
    }
}
