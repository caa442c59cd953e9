//! Blocks of runs that were read lately: one place for each, the newer one takes it.

use super::error::Result;
use super::limits::BLOCK_BYTES;
use super::run::Run;

pub(super) struct Blocks {
    places: usize,
    /// Run and block that each place holds. Empty, like the bytes, until something was read.
    held: Vec<Option<(u64, u64)>>,
    bytes: Vec<u8>,
}

impl Blocks {
    pub fn new(bytes: usize) -> Blocks {
        Blocks { places: (bytes / BLOCK_BYTES).max(1), held: Vec::new(), bytes: Vec::new() }
    }

    pub fn get(&mut self, run: &Run, block: u64) -> Result<&[u8]> {
        if self.held.is_empty() {
            self.held.resize(self.places, None);
            self.bytes.resize(self.places * BLOCK_BYTES, 0);
        }
        let mixed = (run.id.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ block).wrapping_mul(0xd1b5_4a32_d192_ed03);
        let place = ((u128::from(mixed) * self.places as u128) >> 64) as usize;
        let bytes = &mut self.bytes[place * BLOCK_BYTES..][..BLOCK_BYTES];
        if self.held[place] != Some((run.id, block)) {
            self.held[place] = None;
            run.read(block, bytes)?;
            self.held[place] = Some((run.id, block));
        }
        Ok(bytes)
    }

    pub fn memory_bytes(&self) -> usize {
        self.places * BLOCK_BYTES + self.places * size_of::<Option<(u64, u64)>>()
    }
}
