//! The file of a run: blocks of sorted entries, pages that say where each block begins, and a directory of the pages.
//!
//! ```text
//!   | magic 8 | block … | page | block … | page | … | directory | footer 64 |           numbers little-endian
//!
//!   page        one for each section of up to 256 blocks
//!     | offset of the first block 8 | blocks varint | for each block: | length 4 | rows 4 | xxh3 8 |
//!       shared varint | rest length varint | rest … |                  first key, front-coded against the one before
//!     | filter … |                                                     of the keys looked for, to the page's end
//!   directory
//!     | for each section: | page offset 8 | page length 4 | page xxh3 8 | blocks 4 | first key: length varint, bytes |
//!   footer
//!     | entries 8 | distinct keys 8 | blocks 4 | sections 4 | directory offset 8 | directory length 8 | directory xxh3 8 |
//!       codec 1 | version 1 | zero 6 |  … up to byte 56: xxh3 of the 56 bytes before … 8 |
//! ```
//!
//! Every byte is covered: blocks by their page, pages by the directory, the directory by the footer, the footer by
//! itself. A run is never modified. It is read with `pread`, so that a file cut short is an error and not a signal,
//! and so that memory in use is what the cache holds.

use super::bits::{Bytes, put_varint};
use super::filter::Filter;
use crate::limits::{BLOCK_BYTES_MAX, DIRECTORY_BYTES_MAX, PAGE_BYTES_MAX, SECTION_BLOCKS};
use crate::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"skep-run";
const VERSION: u8 = 1;
const FOOTER_BYTES: usize = 64;
const REBUILD: &str = "`skep rebuild` drops the views and builds them again from the records";

/// What a finished run holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunFacts {
    /// Entries.
    pub entries: u64,
    /// Distinct keys that are looked for: URLs, digests.
    pub distinct: u64,
    /// Size of the file.
    pub bytes: u64,
}

/// Byte strings side by side in one allocation.
#[derive(Default)]
pub struct Strings {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Strings {
    pub fn with_capacity(strings: usize, bytes: usize) -> Strings {
        Strings { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(strings) }
    }

    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len() as u32);
    }

    pub fn get(&self, index: usize) -> &[u8] {
        let begin = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.bytes[begin..self.ends[index] as usize]
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Memory taken.
    pub fn weight(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * 4
    }

    /// How many strings stand before the first one for which `before` is false.
    pub fn partition_point(&self, before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if before(self.get(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// How many leading bytes are equal.
pub fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[derive(Clone, Copy)]
struct BlockAt {
    offset: u64,
    length: u32,
    rows: u32,
    sum: u64,
}

/// Writes one run, block by block. Memory is bounded by one section and the directory.
pub struct RunWriter {
    path: PathBuf,
    file: BufWriter<File>,
    offset: u64,
    blocks: Vec<BlockAt>,
    firsts: Strings,
    hashes: Vec<u64>,
    directory: Vec<u8>,
    sections: u32,
    all_blocks: u32,
    entries: u64,
    distinct: u64,
    last_hash: Option<u64>,
    page: Vec<u8>,
}

impl RunWriter {
    /// Begins a run in a file that must not exist.
    pub fn create(path: &Path) -> Result<RunWriter> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(|error| Error::io("cannot create", path, error))?;
        let mut writer = RunWriter {
            path: path.to_path_buf(),
            file: BufWriter::with_capacity(1 << 18, file),
            offset: 0,
            blocks: Vec::with_capacity(SECTION_BLOCKS),
            firsts: Strings::default(),
            hashes: Vec::new(),
            directory: Vec::new(),
            sections: 0,
            all_blocks: 0,
            entries: 0,
            distinct: 0,
            last_hash: None,
            page: Vec::new(),
        };
        writer.put(MAGIC)?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| Error::io("cannot write", &self.path, error))?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Appends a block: its first key, its rows, the hashes of the keys that are looked for in it, in order.
    pub fn block(&mut self, first: &[u8], payload: &[u8], rows: usize, hashes: &[u64]) -> Result<()> {
        if payload.len() > BLOCK_BYTES_MAX {
            return Err(Error::Refused { why: format!("a block of {} bytes is too long for a run", payload.len()) });
        }
        self.firsts.push(first);
        self.blocks.push(BlockAt {
            offset: self.offset,
            length: payload.len() as u32,
            rows: rows as u32,
            sum: xxh3_64(payload),
        });
        // A key whose rows go over several blocks counts once, but each section's filter must know it.
        let continued = usize::from(!hashes.is_empty() && self.last_hash == hashes.first().copied());
        self.distinct += (hashes.len() - continued) as u64;
        self.last_hash = hashes.last().copied().or(self.last_hash);
        self.hashes.extend_from_slice(if self.blocks.len() > 1 { &hashes[continued..] } else { hashes });
        self.entries += rows as u64;
        self.put(payload)?;
        if self.blocks.len() == SECTION_BLOCKS { self.end_section() } else { Ok(()) }
    }

    fn end_section(&mut self) -> Result<()> {
        let Some(first_block) = self.blocks.first() else { return Ok(()) };
        let mut page = std::mem::take(&mut self.page);
        page.clear();
        page.extend_from_slice(&first_block.offset.to_le_bytes());
        put_varint(&mut page, self.blocks.len() as u64);
        let mut previous: &[u8] = &[];
        for (index, block) in self.blocks.iter().enumerate() {
            page.extend_from_slice(&block.length.to_le_bytes());
            page.extend_from_slice(&block.rows.to_le_bytes());
            page.extend_from_slice(&block.sum.to_le_bytes());
            let first = self.firsts.get(index);
            let shared = shared_prefix(previous, first);
            put_varint(&mut page, shared as u64);
            put_varint(&mut page, (first.len() - shared) as u64);
            page.extend_from_slice(&first[shared..]);
            previous = first;
        }
        page.extend_from_slice(Filter::build(&self.hashes).as_bytes());
        let first = self.firsts.get(0);
        self.directory.extend_from_slice(&self.offset.to_le_bytes());
        self.directory.extend_from_slice(&(page.len() as u32).to_le_bytes());
        self.directory.extend_from_slice(&xxh3_64(&page).to_le_bytes());
        self.directory.extend_from_slice(&(self.blocks.len() as u32).to_le_bytes());
        put_varint(&mut self.directory, first.len() as u64);
        self.directory.extend_from_slice(first);
        self.sections += 1;
        self.all_blocks += self.blocks.len() as u32;
        self.put(&page)?;
        self.page = page;
        self.blocks.clear();
        self.firsts.clear();
        self.hashes.clear();
        Ok(())
    }

    /// Writes what is left and syncs the file; the folder is synced by the caller, once for all runs it writes.
    pub fn finish(mut self, codec: u8) -> Result<RunFacts> {
        self.end_section()?;
        let directory = std::mem::take(&mut self.directory);
        let mut footer = Vec::with_capacity(FOOTER_BYTES);
        footer.extend_from_slice(&self.entries.to_le_bytes());
        footer.extend_from_slice(&self.distinct.to_le_bytes());
        footer.extend_from_slice(&self.all_blocks.to_le_bytes());
        footer.extend_from_slice(&self.sections.to_le_bytes());
        footer.extend_from_slice(&self.offset.to_le_bytes());
        footer.extend_from_slice(&(directory.len() as u64).to_le_bytes());
        footer.extend_from_slice(&xxh3_64(&directory).to_le_bytes());
        footer.extend_from_slice(&[codec, VERSION, 0, 0, 0, 0, 0, 0]);
        footer.extend_from_slice(&xxh3_64(&footer).to_le_bytes());
        self.put(&directory)?;
        self.put(&footer)?;
        let failed = |error| Error::io("cannot write", &self.path, error);
        self.file.flush().map_err(failed)?;
        self.file.get_ref().sync_all().map_err(failed)?;
        Ok(RunFacts { entries: self.entries, distinct: self.distinct, bytes: self.offset })
    }
}

/// What one section knows: where its blocks are and which keys may be in them.
pub struct Page {
    blocks: Vec<BlockAt>,
    firsts: Strings,
    filter: Filter,
}

impl Page {
    /// Memory taken.
    pub fn weight(&self) -> usize {
        self.blocks.capacity() * size_of::<BlockAt>() + self.firsts.weight() + self.filter.as_bytes().len() + 64
    }

    fn read(bytes: &[u8], blocks: usize) -> Option<Page> {
        let mut bytes = Bytes(bytes);
        let mut offset = bytes.u64()?;
        if bytes.count(SECTION_BLOCKS)? != blocks {
            return None;
        }
        let mut page = Page {
            blocks: Vec::with_capacity(blocks),
            firsts: Strings::with_capacity(blocks, blocks * 96),
            filter: Filter::build(&[]),
        };
        let mut first = Vec::new();
        for _ in 0..blocks {
            let (length, rows, sum) = (bytes.u32()?, bytes.u32()?, bytes.u64()?);
            page.blocks.push(BlockAt { offset, length, rows, sum });
            offset = offset.checked_add(u64::from(length))?;
            let shared = bytes.count(first.len())?;
            first.truncate(shared);
            let rest = bytes.count(usize::from(u16::MAX))?;
            first.extend_from_slice(bytes.take(rest)?);
            page.firsts.push(&first);
        }
        page.filter = Filter::from_bytes(bytes.0)?;
        Some(page)
    }
}

struct Section {
    page_offset: u64,
    page_length: u32,
    page_sum: u64,
    /// Number of the section's first block in the run.
    first_block: u32,
}

/// An open run.
pub struct Run {
    number: u64,
    path: PathBuf,
    file: File,
    facts: RunFacts,
    blocks: u32,
    sections: Vec<Section>,
    firsts: Strings,
}

impl Run {
    /// Opens a run and reads its directory; nothing else is read yet.
    pub fn open(path: &Path, number: u64, codec: u8) -> Result<Run> {
        let file = File::open(path).map_err(|error| {
            if error.kind() == std::io::ErrorKind::NotFound {
                Error::damaged(path, 0, "the file is missing", REBUILD)
            } else {
                Error::io("cannot open", path, error)
            }
        })?;
        let bytes = file.metadata().map_err(|error| Error::io("cannot open", path, error))?.len();
        let mut run = Run {
            number,
            path: path.to_path_buf(),
            file,
            facts: RunFacts { entries: 0, distinct: 0, bytes },
            blocks: 0,
            sections: Vec::new(),
            firsts: Strings::default(),
        };
        run.read_directory(codec)?;
        Ok(run)
    }

    fn read_directory(&mut self, codec: u8) -> Result<()> {
        let bytes = self.facts.bytes;
        let footer_at = bytes.checked_sub(FOOTER_BYTES as u64).filter(|at| *at >= MAGIC.len() as u64);
        let footer_at = footer_at.ok_or_else(|| self.damaged(bytes, "the file is too short for a run"))?;
        if self.exact(0, MAGIC.len())? != MAGIC {
            return Err(self.damaged(0, "the file is not a run"));
        }
        let footer = self.exact(footer_at, FOOTER_BYTES)?;
        let wrong_footer = || self.damaged(footer_at, "the footer is not what was written");
        let mut fields = Bytes(&footer);
        let parts = (|| {
            Some((
                (fields.u64()?, fields.u64()?, fields.u32()?, fields.u32()?),
                (fields.u64()?, fields.u64()?, fields.u64()?),
                (fields.u8()?, fields.u8()?, fields.take(6)?, fields.u64()?),
            ))
        })();
        let Some(((entries, distinct, blocks, sections), (at, length, sum), (found_codec, version, _, footer_sum))) =
            parts
        else {
            return Err(wrong_footer());
        };
        if footer_sum != xxh3_64(&footer[..FOOTER_BYTES - 8]) {
            return Err(wrong_footer());
        }
        if version > VERSION {
            return Err(Error::Newer { path: self.path.clone(), found: version.into(), known: VERSION.into() });
        }
        if found_codec != codec {
            return Err(self.damaged(footer_at, "the run holds another kind of entry"));
        }
        let length =
            usize::try_from(length).ok().filter(|length| *length <= DIRECTORY_BYTES_MAX).ok_or_else(wrong_footer)?;
        let directory = self.exact(at, length)?;
        if xxh3_64(&directory) != sum {
            return Err(self.damaged(at, "the directory is not what was written"));
        }
        self.facts.entries = entries;
        self.facts.distinct = distinct;
        self.blocks = blocks;
        let mut fields = Bytes(&directory);
        let mut first_block = 0u32;
        for _ in 0..sections {
            let section = (|| {
                let (page_offset, page_length, page_sum) = (fields.u64()?, fields.u32()?, fields.u64()?);
                let section = Section { page_offset, page_length, page_sum, first_block };
                let in_section = fields.u32().filter(|count| (1..=SECTION_BLOCKS as u32).contains(count))?;
                first_block = first_block.checked_add(in_section)?;
                let first_length = fields.count(usize::from(u16::MAX))?;
                self.firsts.push(fields.take(first_length)?);
                (page_length as usize <= PAGE_BYTES_MAX).then_some(section)
            })();
            self.sections.push(section.ok_or_else(|| self.damaged(at, "the directory does not list its sections"))?);
        }
        if first_block != blocks {
            return Err(self.damaged(at, "the directory does not list every block"));
        }
        Ok(())
    }

    /// The run's number among the runs of its view.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the run holds.
    pub fn facts(&self) -> RunFacts {
        self.facts
    }

    /// Blocks in the run.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// An error that names this run and what helps.
    pub fn damaged(&self, offset: u64, what: &str) -> Error {
        Error::damaged(&self.path, offset, what, REBUILD)
    }

    fn exact(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        self.exact_padded(offset, length, 0)
    }

    fn exact_padded(&self, offset: u64, length: usize, padding: usize) -> Result<Vec<u8>> {
        // A length from a damaged file must not decide how much memory is taken.
        if offset.checked_add(length as u64).is_none_or(|end| end > self.facts.bytes) {
            return Err(self.damaged(offset, "the file ends before what it should hold"));
        }
        let mut bytes = vec![0; length + padding];
        self.file.read_exact_at(&mut bytes[..length], offset).map_err(|error| {
            if error.kind() == std::io::ErrorKind::UnexpectedEof {
                self.damaged(offset, "the file ends before what it should hold")
            } else {
                Error::io("cannot read", &self.path, error)
            }
        })?;
        Ok(bytes)
    }

    /// The section in which the last block beginning at or before `key` stands; 0 if all begin after it.
    pub fn section_of(&self, key: &[u8]) -> usize {
        self.firsts.partition_point(|first| first <= key).saturating_sub(1)
    }

    /// The section of a block.
    pub fn section_of_block(&self, block: u32) -> usize {
        self.sections.partition_point(|section| section.first_block <= block).saturating_sub(1)
    }

    /// Reads and checks a page.
    pub fn page(&self, section: usize) -> Result<Page> {
        let Some(at) = self.sections.get(section) else {
            return Err(self.damaged(0, "the run has fewer sections than were asked for"));
        };
        let next = self.sections.get(section + 1).map_or(self.blocks, |next| next.first_block);
        let bytes = self.exact(at.page_offset, at.page_length as usize)?;
        if xxh3_64(&bytes) != at.page_sum {
            return Err(self.damaged(at.page_offset, "a page is not what was written"));
        }
        Page::read(&bytes, (next - at.first_block) as usize)
            .ok_or_else(|| self.damaged(at.page_offset, "a page does not list its blocks"))
    }

    /// The last block of `section` that begins at or before `key`; its first block if all begin after it.
    pub fn block_of(&self, section: usize, page: &Page, key: &[u8]) -> u32 {
        let within = page.firsts.partition_point(|first| first <= key).saturating_sub(1);
        self.sections[section].first_block + within as u32
    }

    /// The key with which the block after this one begins, if there is one.
    pub fn next_first<'a>(&'a self, section: usize, page: &'a Page, block: u32) -> Option<&'a [u8]> {
        let next = (block - self.sections[section].first_block) as usize + 1;
        if next < page.firsts.len() {
            Some(page.firsts.get(next))
        } else {
            (section + 1 < self.firsts.len()).then(|| self.firsts.get(section + 1))
        }
    }

    /// Whether rows whose key begins with `prefix` and has this hash may be in `block` or right after it.
    pub fn may_contain(&self, section: usize, page: &Page, block: u32, prefix: &[u8], hash: u64) -> bool {
        page.filter.may_contain(hash)
            || self.next_first(section, page, block).is_some_and(|first| first.starts_with(prefix))
    }

    /// Reads and checks a block; `padding` zero bytes follow it. Also says how many rows it has.
    pub fn block(&self, section: usize, page: &Page, block: u32, padding: usize) -> Result<(Vec<u8>, usize)> {
        let within = (block - self.sections[section].first_block) as usize;
        let Some(at) = page.blocks.get(within) else {
            return Err(self.damaged(0, "the run has fewer blocks than were asked for"));
        };
        if at.length as usize > BLOCK_BYTES_MAX {
            return Err(self.damaged(at.offset, "a block is longer than any that is written"));
        }
        let bytes = self.exact_padded(at.offset, at.length as usize, padding)?;
        if xxh3_64(&bytes[..at.length as usize]) != at.sum {
            return Err(self.damaged(at.offset, "a block is not what was written"));
        }
        Ok((bytes, at.rows as usize))
    }

    /// Where a block begins in the file, for messages.
    pub fn block_offset(&self, section: usize, page: &Page, block: u32) -> u64 {
        page.blocks.get((block - self.sections[section].first_block) as usize).map_or(0, |at| at.offset)
    }
}
