//! Finished work, on disk until the node has acknowledged it.
//!
//! ```text
//! work/<bundle>.part    while it is made;  work/<bundle>.done    ready to be returned
//!   frame | length 4 | line (postcard) | length 4 | exchange (postcard) |   one for each URL, in the order of fetching
//! ```
//! A process that is killed leaves whole files or parts; parts are thrown away, for the node gives their URLs out again.

use std::cell::{Cell, RefCell};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::limits::{BUNDLE_URLS_MAX, FRAME_BYTES_MAX, ROBOTS_HOPS_MAX};
use crate::message::{Fetched, Request};

/// The folder.
#[derive(Debug)]
pub struct Work {
    folder: PathBuf,
    /// Bundles that are ready, in the order in which they became so.
    ready: RefCell<Vec<(u64, Instant)>>,
    /// Bytes of all of it, ready or not.
    bytes: Rc<Cell<u64>>,
}

/// A bundle that is being made.
pub struct Part {
    id: u64,
    file: BufWriter<File>,
    path: PathBuf,
    bytes: u64,
    all_bytes: Rc<Cell<u64>>,
}

/// Exchanges are gathered until there are so many bytes: a process that is killed loses the part anyway.
const GATHERED_BYTES: usize = 128 << 10;
/// Read at once of a file, where a line begins: most lines are shorter.
const LINE_BYTES: usize = 256;

/// A bundle that is ready: what goes to the node first, and where the exchanges are.
pub struct Ready {
    /// Its number.
    pub id: u64,
    file: File,
    /// What was seen.
    pub fetched: Vec<Fetched>,
    places: Vec<(u64, usize)>,
}

impl Work {
    /// In this folder. Parts of an earlier run are thrown away.
    pub fn open(folder: &Path) -> io::Result<Work> {
        let folder = folder.join("work");
        fs::create_dir_all(&folder)?;
        let (mut ids, mut bytes): (Vec<u64>, u64) = (Vec::new(), 0);
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            let number: Option<u64> = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("part") => fs::remove_file(path)?,
                Some("done") => {
                    ids.extend(number);
                    bytes += entry.metadata()?.len();
                }
                _ => {}
            }
        }
        ids.sort_unstable();
        let ready = ids.into_iter().map(|id| (id, Instant::now())).collect();
        Ok(Work { folder, ready: RefCell::new(ready), bytes: Rc::new(Cell::new(bytes)) })
    }

    /// Bundles that are ready.
    pub fn ready(&self) -> Vec<u64> {
        self.ready.borrow().iter().map(|(id, _)| *id).collect()
    }

    /// Is nothing ready?
    pub fn is_empty(&self) -> bool {
        self.ready.borrow().is_empty()
    }

    /// How long the oldest of them has been waiting.
    pub fn waits_for(&self) -> Option<Duration> {
        self.ready.borrow().first().map(|(_, since)| since.elapsed())
    }

    /// Bytes of all of it.
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    fn done(&self, id: u64) -> PathBuf {
        self.folder.join(format!("{id}.done"))
    }

    /// Begins a bundle.
    pub fn begin(&self, id: u64) -> io::Result<Part> {
        let path = self.folder.join(format!("{id}.part"));
        let file = BufWriter::with_capacity(GATHERED_BYTES, File::create(&path)?);
        Ok(Part { id, file, path, bytes: 0, all_bytes: self.bytes.clone() })
    }

    /// A bundle is ready, and stays so when this process is killed.
    pub fn finish(&self, mut part: Part) -> io::Result<()> {
        part.file.flush()?;
        part.file.get_ref().sync_data()?;
        fs::rename(&part.path, self.done(part.id))?;
        self.ready.borrow_mut().push((part.id, Instant::now()));
        Ok(())
    }

    /// Opens a bundle that is ready; `None` if it is damaged, and then it is gone.
    pub fn load(&self, id: u64) -> io::Result<Option<Ready>> {
        match Ready::read(id, File::open(self.done(id))?) {
            Ok(ready) => Ok(Some(ready)),
            Err(_damaged) => self.remove(id).map(|()| None),
        }
    }

    /// The node has it, or does not want it.
    pub fn forget(&self, ready: Ready) -> io::Result<()> {
        self.remove(ready.id)
    }

    fn remove(&self, id: u64) -> io::Result<()> {
        self.ready.borrow_mut().retain(|(ready, _)| *ready != id);
        let path = self.done(id);
        let bytes = fs::metadata(&path).map_or(0, |metadata| metadata.len());
        fs::remove_file(path)?;
        self.bytes.set(self.bytes.get().saturating_sub(bytes));
        Ok(())
    }
}

impl Part {
    /// One more URL.
    pub fn add(&mut self, fetched: &Fetched, whole: &[u8]) -> io::Result<()> {
        let line = postcard::to_stdvec(fetched).map_err(io::Error::other)?;
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).map(u32::to_le_bytes).map_err(io::Error::other);
        let head = [&length(&line)?[..], &line, &length(whole)?].concat();
        let more = (head.len() + whole.len()) as u64;
        self.bytes += more;
        self.all_bytes.set(self.all_bytes.get() + more);
        self.file.write_all(&head)?;
        self.file.write_all(whole)
    }

    /// Nothing came of it.
    pub fn abandon(self) {
        let _gone_already = fs::remove_file(&self.path);
        self.all_bytes.set(self.all_bytes.get().saturating_sub(self.bytes));
    }

    /// Has nothing been added?
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

impl Ready {
    fn read(id: u64, file: File) -> io::Result<Ready> {
        let length = file.metadata()?.len();
        let (mut at, mut fetched, mut places) = (0, Vec::new(), Vec::new());
        while at < length && fetched.len() < BUNDLE_URLS_MAX + ROBOTS_HOPS_MAX {
            // Both lengths and the line between them: mostly one look at the file.
            let mut bytes = read_at(&file, at, LINE_BYTES, length)?;
            let line_bytes = size(&bytes, 0)?;
            if bytes.len() < 4 + line_bytes + 4 {
                bytes = read_at(&file, at, 4 + line_bytes + 4, length)?;
            }
            let size = size(&bytes, 4 + line_bytes)?;
            let begin = at + 4 + line_bytes as u64 + 4;
            at = begin + size as u64;
            if at > length {
                return Err(io::ErrorKind::InvalidData.into());
            }
            fetched.push(postcard::from_bytes(&bytes[4..4 + line_bytes]).map_err(io::Error::other)?);
            places.push((begin, size));
        }
        Ok(Ready { id, file, fetched, places })
    }

    /// What goes to the node first.
    pub fn results(&self) -> Request {
        Request::Results { bundle: self.id, results: self.fetched.clone() }
    }

    /// At most so many bytes of the exchange of one of its URLs, and how many there are in all: few are wanted, and only those are read.
    pub fn piece(&self, number: u16, offset: u64, most: usize) -> Option<(u64, Vec<u8>)> {
        let at = self.fetched.iter().position(|fetched| fetched.number == number)?;
        let (begin, size) = self.places.get(at).copied()?;
        let left = (size as u64).checked_sub(offset).filter(|left| *left > 0)?;
        let mut bytes = vec![0; usize::try_from(left).ok()?.min(most)];
        self.file.read_exact_at(&mut bytes, begin + offset).ok()?;
        Some((size as u64, bytes))
    }
}

/// Bytes of a file from a place on, so many or as many as there are.
fn read_at(file: &File, at: u64, most: usize, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; most.min(usize::try_from(length - at).unwrap_or(most))];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

/// A length that stands at this place.
fn size(bytes: &[u8], at: usize) -> io::Result<usize> {
    let size = bytes.get(at..).and_then(|rest| rest.first_chunk()).map(|size| u32::from_le_bytes(*size) as usize);
    size.filter(|size| *size <= FRAME_BYTES_MAX).ok_or_else(|| io::ErrorKind::InvalidData.into())
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
        assert!(work.is_empty() && work.waits_for().is_none());
        work.finish(part).unwrap();
        assert_eq!(work.ready(), [7]);
        work.begin(8).unwrap().add(&fetched(0), b"lost").unwrap();
        let work = Work::open(folder.path()).unwrap();
        assert_eq!(work.ready(), [7]);
        let ready = work.load(7).unwrap().unwrap();
        assert_eq!(ready.results(), Request::Results { bundle: 7, results: vec![fetched(0), fetched(3)] });
        assert_eq!(ready.piece(0, 0, 3), Some((5, b"fir".to_vec())));
        assert_eq!(ready.piece(0, 3, 100), Some((5, b"st".to_vec())));
        assert!(ready.piece(0, 5, 1).is_none() && ready.piece(3, 0, 1).is_none() && ready.piece(1, 0, 1).is_none());
        let on_disk = || {
            fs::read_dir(folder.path().join("work"))
                .unwrap()
                .map(|entry| entry.unwrap().metadata().unwrap().len())
                .sum::<u64>()
        };
        assert_eq!(work.bytes(), on_disk());
        let mut long = work.begin(10).unwrap();
        let line = Fetched { url: "http://a.test/".repeat(100), ..fetched(1) };
        long.add(&line, &[b'x'; 3 * GATHERED_BYTES]).unwrap();
        work.finish(long).unwrap();
        assert_eq!(work.bytes(), on_disk());
        let long = work.load(10).unwrap().unwrap();
        assert_eq!((&long.fetched[0], long.piece(1, 7, 2)), (&line, Some((3 * GATHERED_BYTES as u64, b"xx".to_vec()))));
        work.forget(long).unwrap();
        work.begin(11).unwrap().abandon();
        work.forget(ready).unwrap();
        assert_eq!(work.bytes(), 0);
        assert!(work.is_empty() && Work::open(folder.path()).unwrap().is_empty());
        fs::write(folder.path().join("work/9.done"), b"\xff\xff\xff\xff damage").unwrap();
        let work = Work::open(folder.path()).unwrap();
        assert!(work.load(9).unwrap().is_none() && work.is_empty());
    }
}
