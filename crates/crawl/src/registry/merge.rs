//! Several runs become one, a few fingerprints at a time, so that no single call waits for the whole of it.

use super::error::Result;
use super::filter::Filter;
use super::fingerprint::Fingerprint;
use super::limits::{BLOCK_BYTES, BLOCK_KEYS, MERGE_BLOCKS};
use super::run::{Run, Writer, fingerprint, number};
use std::path::PathBuf;

pub(super) struct Merge {
    /// The level of the runs that go into it.
    pub level: u32,
    /// The runs that go into it, by their ids.
    pub inputs: Vec<u64>,
    cursors: Vec<Cursor>,
    writer: Writer,
}

/// How far one input was read.
struct Cursor {
    keys: u64,
    next: u64,
    /// Blocks read ahead; the first of them has this number.
    buffer: Vec<u8>,
    first_block: u64,
}

impl Cursor {
    fn new(run: &Run) -> Cursor {
        Cursor { keys: run.keys, next: 0, buffer: Vec::new(), first_block: 0 }
    }

    fn fill(&mut self, run: &Run) -> Result<()> {
        let block = self.next / BLOCK_KEYS as u64;
        let held = (self.buffer.len() / BLOCK_BYTES) as u64;
        if self.next < self.keys && !(self.first_block..self.first_block + held).contains(&block) {
            let left = self.keys.div_ceil(BLOCK_KEYS as u64) - block;
            self.buffer.resize(left.min(MERGE_BLOCKS as u64) as usize * BLOCK_BYTES, 0);
            self.first_block = block;
            run.read(block, &mut self.buffer)?;
        }
        Ok(())
    }

    fn peek(&self) -> Option<(Fingerprint, u64)> {
        if self.next == self.keys {
            return None;
        }
        let block = (self.next / BLOCK_KEYS as u64 - self.first_block) as usize;
        let (block, index) = (&self.buffer[block * BLOCK_BYTES..], (self.next % BLOCK_KEYS as u64) as usize);
        Some((fingerprint(block, index), number(block, index)))
    }
}

impl Merge {
    pub fn begin(inputs: &[&Run], path: PathBuf, id: u64, level: u32, filter: Option<Filter>) -> Result<Merge> {
        let mut cursors: Vec<Cursor> = inputs.iter().map(|run| Cursor::new(run)).collect();
        for (cursor, run) in cursors.iter_mut().zip(inputs) {
            cursor.fill(run)?;
        }
        let writer = Writer::create(path, id, level + 1, filter)?;
        Ok(Merge { level, inputs: inputs.iter().map(|run| run.id).collect(), cursors, writer })
    }

    /// Merges up to this many fingerprints; says whether all are merged. The runs are those it began with, in that order.
    pub fn step(&mut self, runs: &[&Run], count: u64) -> Result<bool> {
        for _ in 0..count {
            let least = self.cursors.iter().enumerate().filter_map(|(at, cursor)| Some((cursor.peek()?, at))).min();
            let Some(((key, number), at)) = least else { return Ok(true) };
            self.writer.push(key, number)?;
            self.cursors[at].next += 1;
            self.cursors[at].fill(runs[at])?;
        }
        Ok(false)
    }

    pub fn finish(self, fences_max: usize) -> Result<Run> {
        self.writer.finish(fences_max)
    }

    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    pub fn memory_bytes(&self) -> usize {
        self.writer.memory_bytes() + self.cursors.iter().map(|cursor| cursor.buffer.capacity()).sum::<usize>()
    }
}
