//! The undo journal: the bytes that pages had at the last checkpoint, kept before they are overwritten.
//!
//! ```text
//!   | checkpoint 8 | file 1, 0 7 | page 8 | bytes of the page 4,096 | checksum 8 | …
//! ```
//! A page is overwritten only after its entry here was synced. So an entry that is torn, or that belongs to another checkpoint,
//! ends the journal: what follows was never acted upon. Undoing twice does the same as undoing once.

use super::append::open_at_least;
use super::codec::{get, set};
use super::error::{Error, Result};
use super::limits::PAGE_BYTES;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

const HEAD_BYTES: usize = 24;
const CHECKSUM_AT: usize = HEAD_BYTES + PAGE_BYTES;
const ENTRY_BYTES: usize = CHECKSUM_AT + 8;
/// Entries written at a time.
const BATCH: usize = 64;

pub(super) struct Journal {
    file: File,
    path: PathBuf,
    written: u64,
    buffer: Vec<u8>,
    unsynced: bool,
}

impl Journal {
    /// Opens the journal and returns what has to be undone to be back at this checkpoint.
    pub fn open(path: PathBuf, checkpoint: u64) -> Result<(Journal, Undo)> {
        let found = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        let file = open_at_least(&path, found)?;
        let again = file.try_clone().map_err(|error| Error::io("cannot open", &path, error))?;
        let undo =
            Undo { file: io::BufReader::with_capacity(BATCH * ENTRY_BYTES, again), path: path.clone(), checkpoint };
        Ok((Journal { file, path, written: 0, buffer: Vec::new(), unsynced: false }, undo))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn append(&mut self, checkpoint: u64, file: u8, page: u64, bytes: &[u8; PAGE_BYTES]) -> Result<()> {
        let at = self.buffer.len();
        self.buffer.resize(at + ENTRY_BYTES, 0);
        let entry = &mut self.buffer[at..];
        set(entry, 0, 8, checkpoint);
        entry[8] = file;
        set(entry, 16, 8, page);
        entry[HEAD_BYTES..CHECKSUM_AT].copy_from_slice(bytes);
        let sum = xxh3_64(&entry[..CHECKSUM_AT]);
        set(entry, CHECKSUM_AT, 8, sum);
        self.unsynced = true;
        if self.buffer.len() >= BATCH * ENTRY_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.file
            .write_all_at(&self.buffer, self.written)
            .map_err(|error| Error::io("cannot write", &self.path, error))?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    pub fn sync(&mut self) -> Result<()> {
        if self.unsynced {
            self.flush()?;
            self.file.sync_data().map_err(|error| Error::io("cannot sync", &self.path, error))?;
            self.unsynced = false;
        }
        Ok(())
    }

    /// Forgets everything: a new checkpoint stands, or everything was undone.
    pub fn clear(&mut self) -> Result<()> {
        self.buffer.clear();
        self.unsynced = false;
        self.written = 0;
        self.file.set_len(0).map_err(|error| Error::io("cannot cut", &self.path, error))
    }
}

/// The entries to undo, in the order they were written.
pub(super) struct Undo {
    file: io::BufReader<File>,
    path: PathBuf,
    checkpoint: u64,
}

impl Iterator for Undo {
    type Item = Result<(u8, u64, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut entry = vec![0; ENTRY_BYTES];
        match self.file.read_exact(&mut entry) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return None,
            Err(error) => return Some(Err(Error::io("cannot read", &self.path, error))),
            Ok(()) => {}
        }
        let whole = get(&entry, CHECKSUM_AT, 8) == xxh3_64(&entry[..CHECKSUM_AT]);
        if !whole || get(&entry, 0, 8) != self.checkpoint {
            return None;
        }
        let (file, page) = (entry[8], get(&entry, 16, 8));
        entry.drain(..HEAD_BYTES);
        entry.truncate(PAGE_BYTES);
        Some(Ok((file, page, entry)))
    }
}
