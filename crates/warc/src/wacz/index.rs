//! The index of a package: sorted CDXJ lines in compressed blocks, and a short list that says where each block begins, so that a
//! reader over a network fetches the list and then one block for a question.
//!
//! ```text
//!   index.cdx.gz   | gzip member of up to 1024 lines | gzip member | …
//!   index.idx      !meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}
//!                  org,example)/ 20200102030405 {"offset": 0, "length": 812, "digest": "sha256:…", "filename": "index.cdx.gz"}
//! ```

use crate::digest::{Algorithm, Digest};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fmt::Write as _;
use std::io::{self, Write};

/// The name of the file of blocks.
pub const BLOCKS: &str = "index.cdx.gz";
/// The name of the list.
pub const LIST: &str = "index.idx";
/// Lines of a block.
const BLOCK_LINES: usize = 1024;
/// Bytes of a block, where lines are long.
const BLOCK_BYTES: usize = 1 << 20;

/// An index on its way to `out`.
pub struct Index<W> {
    out: W,
    offset: u64,
    block: Vec<u8>,
    lines: usize,
    first: String,
    list: String,
}

impl<W: Write> Index<W> {
    /// Begins an index.
    pub fn new(out: W) -> Index<W> {
        let list = format!("!meta 0 {{\"format\": \"cdxj-gzip-1.0\", \"filename\": \"{BLOCKS}\"}}\n");
        Index { out, offset: 0, block: Vec::new(), lines: 0, first: String::new(), list }
    }

    /// Adds a line, without its line end. Lines come in order.
    pub fn push(&mut self, line: &str) -> io::Result<()> {
        if self.lines == 0 {
            // Key and time, which is what readers compare with.
            let end = line.match_indices(' ').nth(1).map_or(line.len(), |(at, _)| at);
            self.first = line[..end].to_owned();
        }
        self.block.extend_from_slice(line.as_bytes());
        self.block.push(b'\n');
        self.lines += 1;
        if self.lines >= BLOCK_LINES || self.block.len() >= BLOCK_BYTES { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> io::Result<()> {
        if self.lines == 0 {
            return Ok(());
        }
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&self.block)?;
        let member = gzip.finish()?;
        let (offset, length) = (self.offset, member.len());
        let digest = Digest::of(Algorithm::Sha256, &member).hex();
        let first = &self.first;
        let _ = writeln!(
            self.list,
            "{first} {{\"offset\": {offset}, \"length\": {length}, \"digest\": \"sha256:{digest}\", \"filename\": \"{BLOCKS}\"}}"
        );
        self.out.write_all(&member)?;
        self.offset += length as u64;
        self.block.clear();
        self.lines = 0;
        Ok(())
    }

    /// Writes what is left; returns the list.
    pub fn finish(mut self) -> io::Result<String> {
        self.end_block()?;
        Ok(self.list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_block_is_found_by_the_list_and_read_alone() {
        let line = |n: usize| format!("org,example)/{n:05} 20200102030405 {{\"url\": \"http://example.org/{n}\"}}");
        let mut blocks = Vec::new();
        let mut index = Index::new(&mut blocks);
        (0..2500).for_each(|n| index.push(&line(n)).unwrap());
        let list = index.finish().unwrap();
        let entries: Vec<&str> = list.lines().skip(1).collect();
        assert_eq!(entries.len(), 3);
        let (key, place) = entries[1].split_once(" {").unwrap();
        assert_eq!(key, "org,example)/01024 20200102030405");
        let place: serde_json::Value = serde_json::from_str(&format!("{{{place}")).unwrap();
        let (offset, length) = (place["offset"].as_u64().unwrap() as usize, place["length"].as_u64().unwrap() as usize);
        let mut text = String::new();
        flate2::read::GzDecoder::new(&blocks[offset..offset + length]).read_to_string(&mut text).unwrap();
        assert!(text.starts_with(&line(1024)) && text.ends_with(&format!("{}\n", line(2047))));
        let mut whole = String::new();
        flate2::read::MultiGzDecoder::new(&blocks[..]).read_to_string(&mut whole).unwrap();
        assert_eq!(whole.lines().count(), 2500);
    }

    #[test]
    fn an_index_of_nothing_is_an_empty_one() {
        let mut blocks = Vec::new();
        assert_eq!(Index::new(&mut blocks).finish().unwrap().lines().count(), 1);
        assert!(blocks.is_empty());
    }
}
