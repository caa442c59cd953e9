//! A running SHA-1 that can go side by side with another (see `lanes.rs`).

use super::lanes::{BLOCK_BYTES, State, compress_both};
use sha1::block_api::compress;

/// Length of the digest.
const DIGEST_BYTES: usize = 20;

/// Where the length stands in the last block.
const LENGTH_AT: usize = BLOCK_BYTES - 8;

/// SHA-1 of what was taken so far.
#[derive(Debug, Clone)]
pub(super) struct Sha1 {
    state: State,
    /// Bytes taken.
    length: u64,
    /// The beginning of a block that is not whole yet: `length % BLOCK_BYTES` bytes.
    pending: [u8; BLOCK_BYTES],
}

impl Sha1 {
    pub fn new() -> Sha1 {
        let state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
        Sha1 { state, length: 0, pending: [0; BLOCK_BYTES] }
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        let (blocks, rest) = self.complete(bytes).as_chunks();
        compress(&mut self.state, blocks);
        self.keep(rest);
    }

    /// Takes the next bytes of two messages, faster than one after the other.
    pub fn update_both(one: &mut Sha1, one_bytes: &[u8], other: &mut Sha1, other_bytes: &[u8]) {
        let (one_blocks, one_rest) = one.complete(one_bytes).as_chunks();
        let (other_blocks, other_rest) = other.complete(other_bytes).as_chunks();
        compress_both([&mut one.state, &mut other.state], [one_blocks, other_blocks]);
        one.keep(one_rest);
        other.keep(other_rest);
    }

    /// Counts the bytes, completes the block at hand with the first of them and returns the others. The block stays open only when
    /// none are left.
    fn complete<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let filled = self.filled();
        self.length = self.length.wrapping_add(bytes.len() as u64);
        if filled == 0 {
            return bytes;
        }
        let (first, rest) = bytes.split_at(bytes.len().min(BLOCK_BYTES - filled));
        self.pending[filled..filled + first.len()].copy_from_slice(first);
        if filled + first.len() == BLOCK_BYTES {
            compress(&mut self.state, std::slice::from_ref(&self.pending));
        }
        rest
    }

    /// Less than a block, at the beginning of a new one unless it is nothing.
    fn keep(&mut self, rest: &[u8]) {
        self.pending[..rest.len()].copy_from_slice(rest);
    }

    fn filled(&self) -> usize {
        (self.length % BLOCK_BYTES as u64) as usize
    }

    /// The digest of all bytes taken.
    pub fn finish(mut self) -> [u8; DIGEST_BYTES] {
        let bits = self.length.wrapping_mul(8);
        let filled = self.filled();
        self.pending[filled] = 0x80;
        self.pending[filled + 1..].fill(0);
        if filled >= LENGTH_AT {
            compress(&mut self.state, std::slice::from_ref(&self.pending));
            self.pending.fill(0);
        }
        self.pending[LENGTH_AT..].copy_from_slice(&bits.to_be_bytes());
        compress(&mut self.state, std::slice::from_ref(&self.pending));
        let mut digest = [0; DIGEST_BYTES];
        for (bytes, word) in digest.as_chunks_mut::<4>().0.iter_mut().zip(self.state) {
            *bytes = word.to_be_bytes();
        }
        digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha1::Digest as _;

    /// A small generator (xorshift64*), so that a seed names a run for ever.
    struct Chance(u64);

    impl Chance {
        fn below(&mut self, bound: usize) -> usize {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
        }
    }

    fn text(length: usize) -> Vec<u8> {
        (0..length as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 23) as u8).collect()
    }

    fn expected(bytes: &[u8]) -> [u8; DIGEST_BYTES] {
        sha1::Sha1::digest(bytes).into()
    }

    #[test]
    fn every_length_up_to_some_blocks_at_every_split() {
        let text = text(300);
        for length in 0..=text.len() {
            let all = &text[..length];
            let expected = expected(all);
            for split in 0..=length {
                let mut hasher = Sha1::new();
                hasher.update(&all[..split]);
                hasher.update(&all[split..]);
                assert_eq!(hasher.finish(), expected, "{length} bytes, split at {split}");
            }
        }
    }

    #[test]
    fn a_message_and_its_tail_side_by_side_from_every_offset() {
        let text = text(1100);
        for length in [0, 1, 63, 64, 65, 127, 128, 129, 640, 1000, 1100] {
            let all = &text[..length];
            for head in 0..=length.min(200) {
                let (mut whole, mut tail) = (Sha1::new(), Sha1::new());
                Sha1::update_both(&mut whole, all, &mut tail, &all[head..]);
                assert_eq!(whole.finish(), expected(all), "{length} bytes, head of {head}");
                assert_eq!(tail.finish(), expected(&all[head..]), "{length} bytes, behind a head of {head}");
            }
        }
    }

    #[test]
    fn unrelated_messages_in_any_pieces() {
        let text = text(1 << 16);
        for seed in 1..=500 {
            let mut chance = Chance(seed);
            let (mut one, mut other) = (Sha1::new(), Sha1::new());
            let (mut one_all, mut other_all) = (Vec::new(), Vec::new());
            for _ in 0..chance.below(12) {
                let mut piece = || {
                    let from = chance.below(text.len());
                    let most = [3, 70, 1000, 10_000][chance.below(4)];
                    &text[from..text.len().min(from + chance.below(most))]
                };
                let (a, b) = (piece(), piece());
                match chance.below(4) {
                    0 => {
                        one.update(a);
                        one_all.extend_from_slice(a);
                    }
                    1 => {
                        other.update(b);
                        other_all.extend_from_slice(b);
                    }
                    _ => {
                        Sha1::update_both(&mut one, a, &mut other, b);
                        one_all.extend_from_slice(a);
                        other_all.extend_from_slice(b);
                    }
                }
            }
            assert_eq!(one.finish(), expected(&one_all), "seed {seed}");
            assert_eq!(other.finish(), expected(&other_all), "seed {seed}");
        }
    }
}
