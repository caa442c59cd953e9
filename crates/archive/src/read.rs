//! Reading one record again: by position through the sidecar, or by place with proof that it is the one meant.

use std::path::{Path, PathBuf};

use skep_warc::{Head, Options, Reader, Record};

use crate::archive::Place;
use crate::capture::{Capture, Digest};
use crate::describe::kind_of;
use crate::error::{Error, Result};

/// A record in its file, opened at its first byte, or at that of the compressed member that holds it among others.
pub struct Stored {
    path: PathBuf,
    offset: u64,
    length: u64,
    reader: Reader,
    wanted: Wanted,
}

/// Which of the records at a place is meant. There is one, unless somebody compressed several together.
#[derive(Debug, Clone)]
enum Wanted {
    /// The one with so many before it.
    Nth(u32),
    /// The one that a capture says it is; the first if none is.
    Like(Box<Capture>),
    /// It was handed out.
    Done,
}

impl Wanted {
    fn is(&self, head: &Head, nth: u32) -> bool {
        match self {
            Wanted::Nth(wanted) => nth == *wanted,
            Wanted::Like(capture) => resembles(head, capture),
            Wanted::Done => false,
        }
    }
}

/// Whether a record may be that of a capture, by its head. Times are compared by the second: some indexes know no more.
fn resembles(head: &Head, capture: &Capture) -> bool {
    let digest = head.text("WARC-Payload-Digest").and_then(|text| text.parse::<Digest>().ok());
    kind_of(head) == Some(capture.kind)
        && head.target_uri().is_some_and(|uri| String::from_utf8_lossy(uri) == capture.url)
        && head.date_ms().is_some_and(|time| time.div_euclid(1000) == capture.time_ms.div_euclid(1000))
        && digest.is_none_or(|digest| capture.digest.is_none_or(|other| other == digest))
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "record at byte {} of {}", self.offset, self.path.display())
    }
}

impl Stored {
    /// The record of `length` bytes at `offset`.
    pub fn open(path: &Path, offset: u64, length: u64) -> Result<Stored> {
        Stored::new(path, offset, length, Wanted::Nth(0))
    }

    /// The record at a place.
    pub fn at(place: &Place) -> Result<Stored> {
        Stored::new(&place.path, place.offset, place.length, Wanted::Nth(place.nth))
    }

    /// The record of a capture, where the capture says it is in this file.
    pub fn of(path: &Path, capture: &Capture) -> Result<Stored> {
        Stored::new(path, capture.offset, capture.length, Wanted::Like(Box::new(capture.clone())))
    }

    fn new(path: &Path, offset: u64, length: u64, wanted: Wanted) -> Result<Stored> {
        let reader = Reader::at(path, offset, Some(length), Options::recover())
            .map_err(|error| Error::io("cannot open", path, error))?;
        Ok(Stored { path: path.to_path_buf(), offset, length, reader, wanted })
    }

    /// The file it is in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it begins in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How many bytes it takes there; with those compressed together with it, if there are any.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The record: its head, and its block to be read as a stream. A second call gives `NotFound`.
    pub fn record(&mut self) -> Result<Record<'_>> {
        let (path, offset) = (self.path.clone(), self.offset);
        let mut found = self.find()?;
        if !found && matches!(self.wanted, Wanted::Like(_)) {
            // Some indexes spell a target otherwise than its record: the place is all there is to go by.
            *self = Stored::open(&path, offset, self.length)?;
            found = self.find()?;
        }
        self.wanted = Wanted::Done;
        let none = || Error::Record { path, offset, what: "no record begins here".into() };
        self.reader.current().filter(|_| found).ok_or_else(none)
    }

    /// Whether this is so of the head of any record here.
    pub(crate) fn any(&mut self, is_so: &dyn Fn(&Head) -> bool) -> Result<bool> {
        while let Some(record) = self.reader.next().map_err(|error| Error::io("cannot read", &self.path, error))? {
            if is_so(record.head()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Steps to the record that is wanted.
    fn find(&mut self) -> Result<bool> {
        let mut nth = 0;
        while let Some(record) = self.reader.next().map_err(|error| Error::io("cannot read", &self.path, error))? {
            if record.offset() != self.offset {
                return Ok(false);
            }
            if self.wanted.is(record.head(), nth) {
                return Ok(true);
            }
            nth += 1;
        }
        Ok(false)
    }

    /// The record, if its target is `url`: for places that came from an index and may be stale.
    pub fn record_of(&mut self, url: &[u8]) -> Result<Record<'_>> {
        let (path, offset) = (self.path.clone(), self.offset);
        let record = self.record()?;
        match record.head().target_uri() {
            Some(found) if found == url => Ok(record),
            found => {
                let found = found.map_or("no target".into(), |found| String::from_utf8_lossy(found).into_owned());
                let what = format!("the record here is about {found}, not about {}", String::from_utf8_lossy(url));
                Err(Error::Record { path, offset, what })
            }
        }
    }
}
