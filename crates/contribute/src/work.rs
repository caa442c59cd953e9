//! Finished work, on disk until the node has acknowledged it.
//!
//! ```text
//! work/<bundle>.part    while it is made;  work/<bundle>.done    ready to be returned
//!   frame | length 4 | line (postcard) | length 4 | exchange (postcard) |   one for each URL, in the order of fetching
//! ```
//! A process that is killed leaves whole files or parts; parts are thrown away, for the node gives their URLs out again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::limits::{BUNDLE_URLS_MAX, FRAME_BYTES_MAX, ROBOTS_HOPS_MAX};
use crate::message::Fetched;

/// The folder.
#[derive(Clone, Debug)]
pub struct Work {
    folder: PathBuf,
}

/// A bundle that is being made.
pub struct Part {
    file: File,
    path: PathBuf,
    done: PathBuf,
    count: usize,
}

/// A bundle that is ready: what goes to the node first, and where the exchanges are.
pub struct Ready {
    file: File,
    path: PathBuf,
    /// What was seen.
    pub fetched: Vec<Fetched>,
    places: Vec<(u64, usize)>,
}

impl Work {
    /// In this folder. Parts of an earlier run are thrown away.
    pub fn open(folder: &Path) -> io::Result<Work> {
        let folder = folder.join("work");
        fs::create_dir_all(&folder)?;
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "part") {
                fs::remove_file(path)?;
            }
        }
        Ok(Work { folder })
    }

    /// Bundles that are ready.
    pub fn ready(&self) -> Vec<u64> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut ids: Vec<u64> = names.filter_map(|name| name.strip_suffix(".done")?.parse().ok()).collect();
        ids.sort_unstable();
        ids
    }

    /// Bytes of all of it.
    pub fn bytes(&self) -> u64 {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
    }

    /// Begins a bundle.
    pub fn begin(&self, id: u64) -> io::Result<Part> {
        let (path, done) = (self.folder.join(format!("{id}.part")), self.folder.join(format!("{id}.done")));
        let file = OpenOptions::new().create(true).truncate(true).write(true).open(&path)?;
        Ok(Part { file, path, done, count: 0 })
    }

    /// Opens a bundle that is ready; `None` if it is damaged, and then it is gone.
    pub fn load(&self, id: u64) -> io::Result<Option<Ready>> {
        let path = self.folder.join(format!("{id}.done"));
        let file = File::open(&path)?;
        match Ready::read(file, path.clone()) {
            Ok(ready) => Ok(Some(ready)),
            Err(_damaged) => fs::remove_file(path).map(|()| None),
        }
    }
}

impl Part {
    /// One more URL.
    pub fn add(&mut self, fetched: &Fetched, whole: &[u8]) -> io::Result<()> {
        let line = postcard::to_stdvec(fetched).map_err(io::Error::other)?;
        let mut frame = Vec::with_capacity(line.len() + whole.len() + 8);
        for part in [&line[..], whole] {
            frame.extend_from_slice(&u32::try_from(part.len()).map_err(io::Error::other)?.to_le_bytes());
            frame.extend_from_slice(part);
        }
        self.count += 1;
        self.file.write_all(&frame)
    }

    /// It is ready, and stays so when this process is killed.
    pub fn finish(self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, &self.done)
    }

    /// Nothing came of it.
    pub fn abandon(self) {
        let _gone_already = fs::remove_file(&self.path);
    }

    /// Has nothing been added?
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Ready {
    fn read(mut file: File, path: PathBuf) -> io::Result<Ready> {
        let length = file.metadata()?.len();
        let (mut at, mut fetched, mut places) = (0, Vec::new(), Vec::new());
        let mut part = |at: &mut u64, skip: bool| -> io::Result<(u64, Vec<u8>, usize)> {
            let mut size = [0; 4];
            file.seek(SeekFrom::Start(*at))?;
            file.read_exact(&mut size)?;
            let size = u32::from_le_bytes(size) as usize;
            let begin = *at + 4;
            if size > FRAME_BYTES_MAX || begin + size as u64 > length {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let mut bytes = vec![0; if skip { 0 } else { size }];
            file.read_exact(&mut bytes)?;
            *at = begin + size as u64;
            Ok((begin, bytes, size))
        };
        while at < length && fetched.len() < BUNDLE_URLS_MAX + ROBOTS_HOPS_MAX {
            let (_, line, _) = part(&mut at, false)?;
            let (begin, _, size) = part(&mut at, true)?;
            fetched.push(postcard::from_bytes(&line).map_err(io::Error::other)?);
            places.push((begin, size));
        }
        Ok(Ready { file, path, fetched, places })
    }

    /// The exchange of one of its URLs, as it was kept: few are wanted, and only those are packed.
    pub fn whole(&mut self, number: u16) -> io::Result<Vec<u8>> {
        let at = self.fetched.iter().position(|fetched| fetched.number == number);
        let (begin, size) = at.and_then(|at| self.places.get(at).copied()).ok_or(io::ErrorKind::NotFound)?;
        let mut bytes = vec![0; size];
        self.file.seek(SeekFrom::Start(begin))?;
        self.file.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// The node has it, or does not want it.
    pub fn forget(self) -> io::Result<()> {
        fs::remove_file(self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_finished_survives_and_what_is_not_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let work = Work::open(folder.path()).unwrap();
        let fetched = |number| Fetched { number, status: 200, ..Fetched::default() };
        let mut part = work.begin(7).unwrap();
        part.add(&fetched(0), b"first").unwrap();
        part.add(&fetched(3), b"").unwrap();
        part.finish().unwrap();
        work.begin(8).unwrap().add(&fetched(0), b"lost").unwrap();
        let work = Work::open(folder.path()).unwrap();
        assert_eq!(work.ready(), [7]);
        let mut ready = work.load(7).unwrap().unwrap();
        assert_eq!(ready.fetched, [fetched(0), fetched(3)]);
        assert_eq!((ready.whole(0).unwrap(), ready.whole(3).unwrap()), (b"first".to_vec(), Vec::new()));
        assert!(ready.whole(1).is_err() && work.bytes() > 0);
        ready.forget().unwrap();
        assert!(work.ready().is_empty());
        fs::write(folder.path().join("work/9.done"), b"\xff\xff\xff\xff damage").unwrap();
        assert!(work.load(9).unwrap().is_none() && work.ready().is_empty());
    }
}
