//! The bytes of an answer: in memory while they are few, then in a file that has no name and vanishes with its handle.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// The exact bytes of an answer.
#[derive(Debug)]
pub enum Spool {
    /// All in memory.
    Memory(Vec<u8>),
    /// All in a file without a name.
    File {
        /// Its position is anywhere.
        file: File,
        /// How many bytes it holds.
        length: u64,
    },
}

impl Default for Spool {
    fn default() -> Spool {
        Spool::Memory(Vec::new())
    }
}

impl Spool {
    /// How many bytes.
    pub fn len(&self) -> u64 {
        match self {
            Spool::Memory(bytes) => bytes.len() as u64,
            Spool::File { length, .. } => *length,
        }
    }

    /// None at all?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All bytes, where they are in memory.
    pub fn as_slice(&self) -> Option<&[u8]> {
        match self {
            Spool::Memory(bytes) => Some(bytes),
            Spool::File { .. } => None,
        }
    }

    /// The bytes from `offset` on. Each reader has a position of its own.
    pub fn reader(&self, offset: u64) -> SpoolReader<'_> {
        SpoolReader { spool: self, at: offset }
    }

    /// At most `bytes_max` bytes from `offset` on, copied only where they are in a file.
    pub fn bytes(&self, offset: u64, bytes_max: u64) -> io::Result<Cow<'_, [u8]>> {
        let from = offset.min(self.len());
        let to = from.saturating_add(bytes_max).min(self.len());
        match self {
            Spool::Memory(bytes) => Ok(Cow::Borrowed(&bytes[from as usize..to as usize])),
            Spool::File { .. } => {
                let mut out = Vec::with_capacity((to - from) as usize);
                self.reader(from).take(to - from).read_to_end(&mut out)?;
                Ok(Cow::Owned(out))
            }
        }
    }
}

/// Reads a [`Spool`].
#[derive(Debug, Clone)]
pub struct SpoolReader<'a> {
    spool: &'a Spool,
    at: u64,
}

impl Read for SpoolReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = match self.spool {
            Spool::Memory(bytes) => {
                let rest = &bytes[(self.at.min(bytes.len() as u64)) as usize..];
                let read = rest.len().min(into.len());
                into[..read].copy_from_slice(&rest[..read]);
                read
            }
            Spool::File { file, length } => {
                let most = usize::try_from(length.saturating_sub(self.at)).unwrap_or(usize::MAX).min(into.len());
                // The position of the file is shared by all readers, so it is set before each read.
                let mut file: &File = file;
                file.seek(SeekFrom::Start(self.at))?;
                file.read(&mut into[..most])?
            }
        };
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for SpoolReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.spool.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a position before the beginning"))?;
        Ok(self.at)
    }
}

/// A spool that grows.
#[derive(Debug)]
pub(crate) struct Spooling {
    /// What is not in the file yet: all, until there is a file.
    pub memory: Vec<u8>,
    file: Option<File>,
    written: u64,
}

impl Spooling {
    pub fn new(room: usize) -> Spooling {
        Spooling { memory: Vec::with_capacity(room), file: None, written: 0 }
    }

    /// Empties the memory into the file.
    pub fn spill(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(tempfile::tempfile()?);
        }
        if let Some(file) = &mut self.file {
            file.write_all(&self.memory)?;
        }
        self.written += self.memory.len() as u64;
        self.memory.clear();
        Ok(())
    }

    /// The spool, and the error that kept its last bytes from it.
    pub fn finish(mut self) -> (Spool, Option<io::Error>) {
        if self.file.is_none() {
            return (Spool::Memory(self.memory), None);
        }
        let error = self.spill().err();
        match self.file {
            Some(file) => (Spool::File { file, length: self.written }, error),
            None => (Spool::Memory(self.memory), error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_reads_like_memory() {
        let bytes: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
        let mut spooling = Spooling::new(0);
        for piece in bytes.chunks(30_000) {
            spooling.memory.extend_from_slice(piece);
            spooling.spill().unwrap();
        }
        let (spool, error) = spooling.finish();
        assert!(error.is_none() && spool.as_slice().is_none());
        assert_eq!(spool.len(), 100_000);
        let memory = Spool::Memory(bytes.clone());
        for (offset, most) in [(0, 10), (99_990, 100), (100_000, 1), (200_000, 1), (5, u64::MAX)] {
            assert_eq!(spool.bytes(offset, most).unwrap(), memory.bytes(offset, most).unwrap());
        }
        let (mut one, mut two) = (spool.reader(0), spool.reader(50_000));
        let (mut first, mut second) = ([0; 7], [0; 7]);
        one.read_exact(&mut first).unwrap();
        two.read_exact(&mut second).unwrap();
        one.read_exact(&mut first).unwrap();
        assert_eq!((&first[..], &second[..]), (&bytes[7..14], &bytes[50_000..50_007]));
    }
}
