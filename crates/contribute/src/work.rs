//! Finished work, on disk until the node has acknowledged it.
//!
//! ```text
//! work/<node>-<bundle>.part    while it is made;  work/<node>-<bundle>.done    ready to be returned
//!   node  | the first 8 bytes of its key, as 16 hexadecimal digits
//!   frame | length 4 | line (postcard) | length 4 | exchange (postcard) |   one for each URL, in the order of fetching
//! ```
//! A process that is killed leaves whole files or parts; parts are thrown away, for the node gives their URLs out again. What was fetched for
//! one node is told to no other.

use std::cell::{Cell, RefCell};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::limits::{BUNDLE_URLS_MAX, FRAME_BYTES_MAX, ROBOTS_HOPS_MAX, WORK_KEPT_MS};
use crate::message::{Fetched, Request};
use crate::node::hex;

/// For which node: the first bytes of its key.
pub type Whose = [u8; 8];

/// The folder.
#[derive(Debug)]
pub struct Work {
    folder: PathBuf,
    /// Bundles that are ready, in the order in which they became so.
    ready: RefCell<Vec<(Whose, u64, Instant)>>,
    /// The node that is spoken to.
    whose: Cell<Whose>,
    /// Bytes of all of it, ready or not.
    bytes: Rc<Cell<u64>>,
}

/// A bundle that is being made.
pub struct Part {
    whose: Whose,
    id: u64,
    file: BufWriter<File>,
    path: PathBuf,
    bytes: u64,
    all_bytes: Rc<Cell<u64>>,
    is_ready: bool,
}

/// Exchanges are gathered until there are so many bytes: a process that is killed loses the part anyway.
const GATHERED_BYTES: usize = 128 << 10;
/// Read at once of a file, where a line begins: most lines are shorter.
const LINE_BYTES: usize = 256;

/// A bundle that is ready: what goes to the node first, and where the exchanges are.
pub struct Ready {
    whose: Whose,
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
        let (mut ids, mut bytes): (Vec<(Whose, u64)>, u64) = (Vec::new(), 0);
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            let known = path.file_stem().and_then(|stem| named(stem.to_str()?));
            match (path.extension().and_then(|extension| extension.to_str()), known) {
                (Some("done"), Some(known)) => {
                    ids.push(known);
                    bytes += entry.metadata()?.len();
                }
                (Some("part" | "done"), _) => fs::remove_file(path)?,
                _ => {}
            }
        }
        ids.sort_unstable();
        let ready = ids.into_iter().map(|(whose, id)| (whose, id, Instant::now())).collect();
        let (ready, whose) = (RefCell::new(ready), Cell::default());
        Ok(Work { folder, ready, whose, bytes: Rc::new(Cell::new(bytes)) })
    }

    /// This node is spoken to now. What is for others is forgotten when it is so old that they do not wait for it.
    pub fn is_for(&self, whose: Whose) -> io::Result<()> {
        self.whose.set(whose);
        let others: Vec<_> = self.ready.borrow().iter().filter(|(other, ..)| *other != whose).copied().collect();
        for (other, id, _) in others {
            let age = fs::metadata(self.done(other, id)).and_then(|file| file.modified()).map(|made| made.elapsed());
            // A clock that was put back says nothing of its age.
            if age.is_ok_and(|age| age.is_ok_and(|age| age >= Duration::from_millis(WORK_KEPT_MS))) {
                self.remove(other, id)?;
            }
        }
        Ok(())
    }

    fn ready_for(&self) -> Vec<(u64, Instant)> {
        let ready = self.ready.borrow();
        let these = ready.iter().filter(|(whose, ..)| *whose == self.whose.get());
        these.map(|(_, id, since)| (*id, *since)).collect()
    }

    /// Bundles that are ready for the node that is spoken to.
    pub fn ready(&self) -> Vec<u64> {
        self.ready_for().into_iter().map(|(id, _)| id).collect()
    }

    /// Is nothing ready for it?
    pub fn is_empty(&self) -> bool {
        self.ready_for().is_empty()
    }

    /// How long the oldest of them has been waiting.
    pub fn waits_for(&self) -> Option<Duration> {
        self.ready_for().first().map(|(_, since)| since.elapsed())
    }

    /// Bytes of all of it.
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    fn done(&self, whose: Whose, id: u64) -> PathBuf {
        self.folder.join(format!("{}-{id}.done", hex(&whose)))
    }

    /// Begins a bundle of this node.
    pub fn begin(&self, whose: Whose, id: u64) -> io::Result<Part> {
        let path = self.done(whose, id).with_extension("part");
        let file = BufWriter::with_capacity(GATHERED_BYTES, File::create(&path)?);
        Ok(Part { whose, id, file, path, bytes: 0, all_bytes: self.bytes.clone(), is_ready: false })
    }

    /// A bundle is ready, and stays so when this process is killed.
    pub fn finish(&self, mut part: Part) -> io::Result<()> {
        part.file.flush()?;
        part.file.get_ref().sync_data()?;
        fs::rename(&part.path, self.done(part.whose, part.id))?;
        part.is_ready = true;
        self.ready.borrow_mut().push((part.whose, part.id, Instant::now()));
        Ok(())
    }

    /// Opens a bundle that is ready; `None` if it is damaged, and then it is gone.
    pub fn load(&self, id: u64) -> io::Result<Option<Ready>> {
        let whose = self.whose.get();
        match File::open(self.done(whose, id)).and_then(|file| Ready::read(whose, id, file)) {
            Ok(ready) => Ok(Some(ready)),
            Err(_damaged) => self.remove(whose, id).map(|()| None),
        }
    }

    /// The node has it, or does not want it.
    pub fn forget(&self, ready: Ready) -> io::Result<()> {
        self.remove(ready.whose, ready.id)
    }

    fn remove(&self, whose: Whose, id: u64) -> io::Result<()> {
        self.ready.borrow_mut().retain(|(of, ready, _)| (*of, *ready) != (whose, id));
        let path = self.done(whose, id);
        let bytes = fs::metadata(&path).map_or(0, |metadata| metadata.len());
        self.bytes.set(self.bytes.get().saturating_sub(bytes));
        match fs::remove_file(path) {
            // Its owner may have cleared it away.
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
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

    /// Has nothing been added?
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Bytes of what has been added.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Part {
    /// Nothing came of it: what is not whole takes no room.
    fn drop(&mut self) {
        if !self.is_ready {
            let _gone_already = fs::remove_file(&self.path);
            self.all_bytes.set(self.all_bytes.get().saturating_sub(self.bytes));
        }
    }
}

impl Ready {
    fn read(whose: Whose, id: u64, file: File) -> io::Result<Ready> {
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
        Ok(Ready { whose, id, file, fetched, places })
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

/// For which node, and which bundle.
fn named(stem: &str) -> Option<(Whose, u64)> {
    let (whose, id) = stem.split_once('-')?;
    let whose = u64::from_str_radix(whose, 16).ok().filter(|_| whose.len() == 16)?;
    Some((whose.to_be_bytes(), id.parse().ok()?))
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

    const A: Whose = [1; 8];

    #[test]
    fn what_is_finished_survives_and_what_is_not_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let work = Work::open(folder.path()).unwrap();
            work.is_for(A).unwrap();
            work
        };
        let work = open();
        let fetched = |number| Fetched { number, status: 200, ..Fetched::default() };
        let mut part = work.begin(A, 7).unwrap();
        part.add(&fetched(0), b"first").unwrap();
        part.add(&fetched(3), b"").unwrap();
        assert!(work.is_empty() && work.waits_for().is_none());
        work.finish(part).unwrap();
        assert_eq!(work.ready(), [7]);
        let mut lost = work.begin(A, 8).unwrap();
        lost.add(&fetched(0), b"lost").unwrap();
        std::mem::forget(lost);
        let work = open();
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
        let mut long = work.begin(A, 10).unwrap();
        let line = Fetched { url: "http://a.test/".repeat(100), ..fetched(1) };
        long.add(&line, &[b'x'; 3 * GATHERED_BYTES]).unwrap();
        work.finish(long).unwrap();
        assert_eq!(work.bytes(), on_disk());
        let long = work.load(10).unwrap().unwrap();
        assert_eq!((&long.fetched[0], long.piece(1, 7, 2)), (&line, Some((3 * GATHERED_BYTES as u64, b"xx".to_vec()))));
        work.forget(long).unwrap();
        let before = work.bytes();
        let mut part = work.begin(A, 11).unwrap();
        part.add(&fetched(0), b"nothing comes of it").unwrap();
        drop(part);
        assert_eq!((work.bytes(), on_disk()), (before, before), "and no room is taken by it");
        work.forget(ready).unwrap();
        assert_eq!(work.bytes(), 0);
        assert!(work.is_empty() && open().is_empty());
        fs::write(folder.path().join("work/0101010101010101-9.done"), b"\xff\xff\xff\xff damage").unwrap();
        let work = open();
        assert!(work.load(9).unwrap().is_none() && work.is_empty());
        let mut cleared = work.begin(A, 12).unwrap();
        cleared.add(&fetched(0), b"").unwrap();
        work.finish(cleared).unwrap();
        fs::remove_file(work.done(A, 12)).unwrap();
        assert!(work.load(12).unwrap().is_none() && work.is_empty(), "its owner cleared it away");
    }

    #[test]
    fn what_was_fetched_for_one_node_is_told_to_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let work = Work::open(folder.path()).unwrap();
        work.is_for(A).unwrap();
        for whose in [A, [2; 8]] {
            let mut part = work.begin(whose, 7).unwrap();
            part.add(&Fetched { status: u16::from(whose[0]), ..Fetched::default() }, b"").unwrap();
            work.finish(part).unwrap();
        }
        assert_eq!((work.ready(), work.load(7).unwrap().unwrap().fetched[0].status), (vec![7], 1));
        work.forget(work.load(7).unwrap().unwrap()).unwrap();
        assert!(work.is_empty());
        let work = Work::open(folder.path()).unwrap();
        work.is_for([2; 8]).unwrap();
        assert_eq!((work.ready(), work.load(7).unwrap().unwrap().fetched[0].status), (vec![7], 2));
        // What nobody waits for any more goes.
        let file = File::options().write(true).open(work.done([2; 8], 7)).unwrap();
        file.set_modified(std::time::SystemTime::now() - Duration::from_millis(WORK_KEPT_MS)).unwrap();
        work.is_for(A).unwrap();
        assert_eq!(work.bytes(), 0);
    }
}
