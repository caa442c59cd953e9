//! A file that only grows: what was written stays, and opening cuts off what is younger than the checkpoint.

use super::error::{Error, Result};
use super::limits::APPEND_BUFFER_BYTES;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub(super) struct Append {
    file: File,
    path: PathBuf,
    written: u64,
    buffer: Vec<u8>,
}

impl Append {
    /// Opens the file at the length a checkpoint names.
    pub fn open(path: PathBuf, length: u64) -> Result<Append> {
        let file = open_at_least(&path, length)?;
        Ok(Append { file, path, written: length, buffer: Vec::new() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length, with what still waits in memory.
    pub fn length(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Appends and says where.
    pub fn append(&mut self, bytes: &[u8]) -> Result<u64> {
        let at = self.length();
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= APPEND_BUFFER_BYTES {
            self.flush()?;
        }
        Ok(at)
    }

    fn flush(&mut self) -> Result<()> {
        self.file
            .write_all_at(&self.buffer, self.written)
            .map_err(|error| Error::io("cannot write", &self.path, error))?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    pub fn read(&self, at: u64, into: &mut [u8]) -> Result<()> {
        let end = at.checked_add(into.len() as u64).filter(|end| *end <= self.length());
        if end.is_none() {
            return Err(Error::damaged(&self.path, format!("something is said to be at {at}, beyond its end")));
        }
        // The part on disk, then the part in memory.
        let on_disk = self.written.saturating_sub(at).min(into.len() as u64) as usize;
        let (disk, memory) = into.split_at_mut(on_disk);
        self.file.read_exact_at(disk, at).map_err(|error| Error::io("cannot read", &self.path, error))?;
        if !memory.is_empty() {
            let from = (at + on_disk as u64 - self.written) as usize;
            memory.copy_from_slice(&self.buffer[from..from + memory.len()]);
        }
        Ok(())
    }

    pub fn sync(&mut self) -> Result<u64> {
        self.flush()?;
        self.file.sync_data().map_err(|error| Error::io("cannot sync", &self.path, error))?;
        Ok(self.written)
    }

    pub fn memory_bytes(&self) -> usize {
        self.buffer.capacity()
    }
}

/// Opens or creates a file and cuts it to a length that it must have had.
pub(super) fn open_at_least(path: &Path, length: u64) -> Result<File> {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
    let file = file.map_err(|error| Error::io("cannot open", path, error))?;
    let found = file.metadata().map_err(|error| Error::io("cannot look at", path, error))?.len();
    if found < length {
        return Err(Error::damaged(path, format!("it has {found} bytes, the checkpoint counted {length}")));
    }
    if found > length {
        file.set_len(length).map_err(|error| Error::io("cannot cut", path, error))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_younger_than_the_checkpoint_is_cut_off_and_what_is_missing_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = Append::open(path.clone(), 0).unwrap();
        assert_eq!(log.append(b"kept").unwrap(), 0);
        assert_eq!(log.sync().unwrap(), 4);
        assert_eq!(log.append(b"lost").unwrap(), 4);
        let mut bytes = [0; 6];
        log.read(1, &mut bytes).unwrap();
        assert_eq!(&bytes, b"eptlos");
        assert!(log.read(4, &mut [0; 5]).is_err());
        log.flush().unwrap();
        assert_eq!(Append::open(path.clone(), 4).unwrap().length(), 4);
        assert_eq!(std::fs::read(&path).unwrap(), b"kept");
        assert!(matches!(Append::open(path, 5), Err(Error::Damaged { .. })));
    }
}
