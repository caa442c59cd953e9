//! A run: an immutable file of sorted fingerprints, each with the number it stands for.
//!
//! ```text
//!   | block 512 … | filter … | fence 8 … | footer 56 |
//!
//!   block    | fingerprint 16 × 24 | number 5 × 24 | checksum, seeded with the block's number 8 |   rising; the last filled up with FF
//!   fence    the high half of a block's first fingerprint, one for each block
//!   footer   | magic 8 | keys 8 | level 4, 0 4 | filter bytes 8 | checksum of filter and fences 8 | 0 8 | checksum 8 |
//! ```
//! Fingerprints are spread evenly, so the fences that share their highest bits are one or two, whatever the length of the run: a list of
//! where such groups begin leads to the fence, and a look-up reads one block.

use super::blocks::Blocks;
use super::codec::{get, set};
use super::error::{Error, Result};
use super::filter::Filter;
use super::fingerprint::Fingerprint;
use super::limits::{BLOCK_BYTES, BLOCK_KEYS};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

const MAGIC: &[u8; 8] = b"skeprun1";
const FOOTER_BYTES: usize = 56;
const NUMBERS_AT: usize = BLOCK_KEYS * 16;
const CHECKSUM_AT: usize = NUMBERS_AT + BLOCK_KEYS * 5;
/// Fills the last block; no number is as large.
const NO_NUMBER: u64 = (1 << 40) - 1;
/// Bytes written at a time.
const WRITE_BYTES: usize = 256 << 10;

/// A finished run, open for looking up.
pub(super) struct Run {
    pub id: u64,
    pub level: u32,
    pub keys: u64,
    pub file_bytes: u64,
    pub filter: Option<Filter>,
    fences: Fences,
    file: File,
    path: PathBuf,
}

impl Run {
    /// Opens a run that a checkpoint names. The filter is loaded where there is room for it.
    pub fn open(path: &Path, id: u64, keys: u64, filter_bytes_max: usize, fences_max: usize) -> Result<Run> {
        let file = File::open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::damaged(path, "the checkpoint names it, but it is not there"),
            _ => Error::io("cannot open", path, error),
        })?;
        let file_bytes = file.metadata().map_err(|error| Error::io("cannot look at", path, error))?.len();
        let read = |at: u64, bytes: &mut [u8]| {
            file.read_exact_at(bytes, at).map_err(|error| Error::io("cannot read", path, error))
        };
        let mut footer = [0; FOOTER_BYTES];
        let footer_at = file_bytes.checked_sub(FOOTER_BYTES as u64);
        let footer_at = footer_at.ok_or_else(|| Error::damaged(path, "it ends too early"))?;
        read(footer_at, &mut footer)?;
        if &footer[..8] != MAGIC || get(&footer, 48, 8) != xxh3_64(&footer[..48]) {
            return Err(Error::damaged(path, "its footer does not match its checksum"));
        }
        let (found, filter_bytes) = (get(&footer, 8, 8), get(&footer, 24, 8));
        let blocks = found.div_ceil(BLOCK_KEYS as u64);
        let blocks_bytes = blocks.saturating_mul(BLOCK_BYTES as u64);
        let expected = blocks_bytes.saturating_add(filter_bytes).saturating_add(blocks.saturating_mul(8));
        if found != keys || footer_at != expected {
            return Err(Error::damaged(path, "its length is not the one it was written with"));
        }
        let mut tail = vec![0; (footer_at - blocks_bytes) as usize];
        read(blocks_bytes, &mut tail)?;
        if xxh3_64(&tail) != get(&footer, 32, 8) {
            return Err(Error::damaged(path, "its filter does not match its checksum"));
        }
        let (filter, fences) = tail.split_at(filter_bytes as usize);
        let fences = Fences::new(fences, fences_max);
        let filter = (filter.len() <= filter_bytes_max).then(|| Filter::from_bytes(filter)).flatten();
        let level = get(&footer, 16, 4) as u32;
        Ok(Run { id, level, keys, file_bytes, filter, fences, file, path: path.to_owned() })
    }

    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|error| Error::io("cannot sync", &self.path, error))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn memory_bytes(&self) -> usize {
        self.fences.memory_bytes() + self.filter.as_ref().map_or(0, Filter::bytes)
    }

    fn blocks(&self) -> u64 {
        self.keys.div_ceil(BLOCK_KEYS as u64)
    }

    /// The number that stands with a fingerprint.
    pub fn find(&self, key: Fingerprint, blocks: &mut Blocks) -> Result<Option<u64>> {
        if self.keys == 0 || self.filter.as_ref().is_some_and(|filter| !filter.may_hold(key)) {
            return Ok(None);
        }
        let (first, last) = self.fences.around((key >> 64) as u64);
        let stride = self.fences.stride;
        let mut low = (first * stride) as u64;
        let mut high = (((last + 1) * stride) as u64).min(self.blocks());
        // Mostly one block is left. Between fences that are far apart the place is halved.
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fingerprint(blocks.get(self, middle)?, 0) <= key {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(find_in(blocks.get(self, low)?, key))
    }

    /// Reads blocks and checks them.
    pub fn read(&self, block: u64, into: &mut [u8]) -> Result<()> {
        self.file
            .read_exact_at(into, block * BLOCK_BYTES as u64)
            .map_err(|error| Error::io("cannot read", &self.path, error))?;
        for (block, bytes) in (block..).zip(into.chunks_exact(BLOCK_BYTES)) {
            if get(bytes, CHECKSUM_AT, 8) != checksum(bytes, block) {
                return Err(Error::damaged(&self.path, format!("block {block} does not match its checksum")));
            }
        }
        Ok(())
    }
}

/// Where in a run a fingerprint may be.
struct Fences {
    /// Every `stride`-th fence.
    every: Vec<u64>,
    stride: usize,
    /// By the highest bits of a fence: the first fence that has these or higher ones. One entry more says how many fences there are.
    groups: Vec<u32>,
    /// How far a fence is shifted to have only those bits.
    shift: u32,
}

impl Fences {
    fn new(bytes: &[u8], fences_max: usize) -> Fences {
        let (all, _) = bytes.as_chunks();
        let stride = all.len().div_ceil(fences_max).max(1);
        let every: Vec<u64> = all.iter().step_by(stride).map(|fence| u64::from_le_bytes(*fence)).collect();
        // About as many groups as fences.
        let bits = every.len().max(2).ilog2();
        let shift = u64::BITS - bits;
        let mut groups = Vec::with_capacity((1 << bits) + 1);
        for (at, fence) in every.iter().enumerate() {
            let group = (fence >> shift) as usize;
            // Fences of a damaged file need not rise; the blocks behind them are checked when they are read.
            if group >= groups.len() {
                groups.resize(group + 1, at as u32);
            }
        }
        groups.resize((1 << bits) + 1, every.len() as u32);
        Fences { every, stride, groups, shift }
    }

    /// The first and the last fence behind which fingerprints with this high half may stand.
    fn around(&self, high: u64) -> (usize, usize) {
        let group = (high >> self.shift) as usize;
        let (from, to) = (self.groups[group] as usize, self.groups[group + 1] as usize);
        let within = &self.every[from..to];
        // Neighbours may share the half that fences keep: then the key is behind any of these fences, or before the first.
        let first = from + within.partition_point(|fence| *fence < high);
        let after = from + within.partition_point(|fence| *fence <= high);
        (first.saturating_sub(1), after.saturating_sub(1))
    }

    fn memory_bytes(&self) -> usize {
        self.every.len() * 8 + self.groups.len() * 4
    }
}

fn checksum(bytes: &[u8], block: u64) -> u64 {
    xxh3_64_with_seed(&bytes[..CHECKSUM_AT], block)
}

pub(super) fn fingerprint(block: &[u8], index: usize) -> Fingerprint {
    let (bytes, _) = block[index * 16..].split_first_chunk().expect("a block holds this many");
    u128::from_le_bytes(*bytes)
}

pub(super) fn number(block: &[u8], index: usize) -> u64 {
    get(block, NUMBERS_AT + index * 5, 5)
}

fn find_in(block: &[u8], key: Fingerprint) -> Option<u64> {
    let (keys, _) = block[..NUMBERS_AT].as_chunks::<16>();
    let index = keys.partition_point(|found| u128::from_le_bytes(*found) < key);
    let found = index < BLOCK_KEYS && fingerprint(block, index) == key;
    found.then(|| number(block, index)).filter(|number| *number != NO_NUMBER)
}

/// Writes a run in the order of its fingerprints.
pub(super) struct Writer {
    id: u64,
    level: u32,
    file: File,
    path: PathBuf,
    written: u64,
    /// Whole blocks that wait to be written, and the one being filled.
    buffer: Vec<u8>,
    block: [u8; BLOCK_BYTES],
    in_block: usize,
    keys: u64,
    fences: Vec<u8>,
    filter: Option<Filter>,
}

impl Writer {
    /// The filter is filled as the keys come, if there is one.
    pub fn create(path: PathBuf, id: u64, level: u32, filter: Option<Filter>) -> Result<Writer> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.map_err(|error| Error::io("cannot create", &path, error))?;
        Ok(Writer {
            id,
            level,
            file,
            path,
            written: 0,
            buffer: Vec::with_capacity(WRITE_BYTES + BLOCK_BYTES),
            block: [0xff; BLOCK_BYTES],
            in_block: 0,
            keys: 0,
            fences: Vec::new(),
            filter,
        })
    }

    pub fn filter_bytes(&self) -> usize {
        self.filter.as_ref().map_or(0, Filter::bytes)
    }

    pub fn memory_bytes(&self) -> usize {
        self.filter_bytes() + self.fences.capacity() + self.buffer.capacity()
    }

    pub fn push(&mut self, key: Fingerprint, number: u64) -> Result<()> {
        if self.in_block == 0 {
            self.fences.extend_from_slice(&((key >> 64) as u64).to_le_bytes());
        }
        self.block[self.in_block * 16..][..16].copy_from_slice(&key.to_le_bytes());
        set(&mut self.block, NUMBERS_AT + self.in_block * 5, 5, number);
        if let Some(filter) = &mut self.filter {
            filter.insert(key);
        }
        self.in_block += 1;
        self.keys += 1;
        if self.in_block == BLOCK_KEYS { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> Result<()> {
        let number = (self.written + self.buffer.len() as u64) / BLOCK_BYTES as u64;
        let sum = checksum(&self.block, number);
        set(&mut self.block, CHECKSUM_AT, 8, sum);
        self.buffer.extend_from_slice(&self.block);
        self.block = [0xff; BLOCK_BYTES];
        self.in_block = 0;
        if self.buffer.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.file
            .write_all_at(&self.buffer, self.written)
            .map_err(|error| Error::io("cannot write", &self.path, error))?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Closes the run. It is not synced: the next checkpoint does that before it names it.
    pub fn finish(mut self, fences_max: usize) -> Result<Run> {
        if self.in_block > 0 {
            self.end_block()?;
        }
        self.flush()?;
        if let Some(filter) = &self.filter {
            filter.write(&mut self.buffer);
        }
        let filter_bytes = self.buffer.len() as u64;
        self.buffer.extend_from_slice(&self.fences);
        let mut footer = [0; FOOTER_BYTES];
        footer[..8].copy_from_slice(MAGIC);
        set(&mut footer, 8, 8, self.keys);
        set(&mut footer, 16, 4, u64::from(self.level));
        set(&mut footer, 24, 8, filter_bytes);
        set(&mut footer, 32, 8, xxh3_64(&self.buffer));
        let sum = xxh3_64(&footer[..48]);
        set(&mut footer, 48, 8, sum);
        self.buffer.extend_from_slice(&footer);
        self.flush()?;
        let fences = Fences::new(&self.fences, fences_max);
        Ok(Run {
            id: self.id,
            level: self.level,
            keys: self.keys,
            file_bytes: self.written,
            filter: self.filter,
            fences,
            file: self.file,
            path: self.path,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(count: u64) -> Vec<(Fingerprint, u64)> {
        let key = |n: u64| u128::from_be_bytes(blake3::hash(&n.to_le_bytes()).as_bytes()[..16].try_into().unwrap());
        let mut keys: Vec<_> = (0..count).map(|n| (key(n), n)).collect();
        // Neighbours that share the half that fences keep, across block borders too.
        keys.extend((0..100).map(|n| ((77u128 << 64) | u128::from(n), count + n)));
        keys.sort();
        keys
    }

    fn write(path: &Path, keys: &[(Fingerprint, u64)], fences_max: usize) -> Run {
        let filter = Some(Filter::new(keys.len() as u64));
        let mut writer = Writer::create(path.to_owned(), 1, 2, filter).unwrap();
        keys.iter().for_each(|(key, number)| writer.push(*key, *number).unwrap());
        writer.finish(fences_max).unwrap()
    }

    #[test]
    fn every_key_is_found_with_and_without_filter_and_with_few_fences() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let keys = keys(3_000);
        for fences_max in [usize::MAX, 7, 1] {
            let written = write(&path, &keys, fences_max);
            for filter_bytes_max in [usize::MAX, 0] {
                let run = Run::open(&path, 1, keys.len() as u64, filter_bytes_max, fences_max).unwrap();
                assert_eq!(run.filter.is_some(), filter_bytes_max > 0);
                assert_eq!((run.level, run.file_bytes), (2, written.file_bytes));
                let mut blocks = Blocks::new(1 << 20);
                for (key, number) in &keys {
                    assert_eq!(run.find(*key, &mut blocks).unwrap(), Some(*number));
                    assert_eq!(run.find(key ^ (1 << 40), &mut blocks).unwrap(), None);
                }
                assert_eq!(run.find(0, &mut blocks).unwrap(), None);
                assert_eq!(run.find(Fingerprint::MAX, &mut blocks).unwrap(), None);
            }
        }
    }

    #[test]
    fn any_flipped_byte_is_an_error_and_never_a_wrong_answer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let keys = keys(200);
        write(&path, &keys, 100);
        let whole = std::fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(11) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            std::fs::write(&path, &bytes).unwrap();
            let Ok(run) = Run::open(&path, 1, keys.len() as u64, usize::MAX, 100) else { continue };
            let mut blocks = Blocks::new(1 << 16);
            for (key, number) in &keys {
                if let Ok(found) = run.find(*key, &mut blocks) {
                    assert_eq!(found, Some(*number), "byte {at}");
                }
            }
        }
        for length in (0..whole.len()).step_by(41) {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(Run::open(&path, 1, keys.len() as u64, usize::MAX, 100).is_err());
        }
    }
}
