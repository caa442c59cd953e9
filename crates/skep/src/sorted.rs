//! Lines in order, in bounded memory.

use crate::failure::{Failure, Result};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufWriter, Write};

/// Lines in order and each once: what is more than fits in memory is sorted in pieces on disk.
#[derive(Default)]
pub struct Sorted {
    lines: Vec<String>,
    bytes: usize,
    pieces: Vec<std::fs::File>,
    total_bytes: u64,
}

/// Bytes of lines kept in memory.
const SORT_BYTES_MAX: usize = 64 << 20;

impl Sorted {
    pub fn extend(&mut self, lines: impl IntoIterator<Item = String>) -> Result<()> {
        for line in lines {
            self.bytes += line.len() + size_of::<String>();
            self.total_bytes += line.len() as u64 + 1;
            self.lines.push(line);
            if self.bytes > SORT_BYTES_MAX {
                self.spill().map_err(|error| {
                    Failure::new("cannot sort on disk").because(error).hint("TMPDIR names a folder with more room")
                })?;
            }
        }
        Ok(())
    }

    /// How many bytes all lines have, those that stand twice included.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    fn spill(&mut self) -> io::Result<()> {
        let mut file = tempfile::tempfile()?;
        self.sort();
        let mut out = BufWriter::new(&mut file);
        for line in self.lines.drain(..) {
            writeln!(out, "{line}")?;
        }
        out.flush()?;
        drop(out);
        io::Seek::rewind(&mut file)?;
        self.pieces.push(file);
        self.bytes = 0;
        Ok(())
    }

    /// A file that was named twice gives its lines once.
    fn sort(&mut self) {
        self.lines.sort_unstable();
        self.lines.dedup();
    }

    /// Shows every line, in order and once.
    pub fn each(mut self, mut look: impl FnMut(&str) -> Result<()>) -> Result<()> {
        self.sort();
        if self.pieces.is_empty() {
            return self.lines.iter().try_for_each(|line| look(line));
        }
        let failed = |error| Failure::new("cannot sort on disk").because(error);
        self.spill().map_err(failed)?;
        let mut sources: Vec<_> =
            self.pieces.into_iter().map(|file| io::BufRead::lines(io::BufReader::new(file))).collect();
        let mut heap = BinaryHeap::new();
        for (index, source) in sources.iter_mut().enumerate() {
            heap.extend(source.next().transpose().map_err(failed)?.map(|line| Reverse((line, index))));
        }
        let mut last = String::new();
        while let Some(Reverse((line, index))) = heap.pop() {
            if line != last {
                look(&line)?;
                last = line;
            }
            heap.extend(sources[index].next().transpose().map_err(failed)?.map(|line| Reverse((line, index))));
        }
        Ok(())
    }
}
