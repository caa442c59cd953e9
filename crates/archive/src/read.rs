//! Reading one record again: by position through the sidecar, or by place with proof that it is the one meant.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use skep_warc::{Options, Reader, Record};

use crate::error::{Error, Result};
use crate::layout::SegmentName;
use crate::limits::TABLES_BYTES_MAX;
use crate::sidecar::{HEADER_BYTES, SidecarReader};

/// A record in its file, opened at its first byte.
pub struct Stored {
    path: PathBuf,
    offset: u64,
    reader: Reader,
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "record at byte {} of {}", self.offset, self.path.display())
    }
}

impl Stored {
    /// The record of `length` bytes at `offset`.
    pub fn open(path: &Path, offset: u64, length: u64) -> Result<Stored> {
        let reader = Reader::at(path, offset, Some(length), Options::recover())
            .map_err(|error| Error::io("cannot open", path, error))?;
        Ok(Stored { path: path.to_path_buf(), offset, reader })
    }

    /// The file it is in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it begins in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The record: its head, and its block to be read as a stream. A second call gives `NotFound`.
    pub fn record(&mut self) -> Result<Record<'_>> {
        let (path, offset) = (self.path.clone(), self.offset);
        match self.reader.next() {
            Ok(Some(record)) if record.offset() == offset => Ok(record),
            Ok(_) => Err(Error::Record { path, offset, what: "no record begins here".into() }),
            Err(error) => Err(Error::io("cannot read", &path, error)),
        }
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

/// Where each record of a segment begins and how long it is.
#[derive(Debug, Default)]
pub struct Table {
    places: Vec<(u32, u64, u64)>,
    sidecar_bytes: u64,
}

impl Table {
    /// Offset and length of a record.
    pub fn get(&self, record: u32) -> Option<(u64, u64)> {
        let at = self.places.binary_search_by_key(&record, |place| place.0).ok()?;
        Some((self.places[at].1, self.places[at].2))
    }

    fn weight(&self) -> usize {
        self.places.len() * size_of::<(u32, u64, u64)>() + 64
    }
}

/// Tables of the segments read last, bounded in memory.
#[derive(Debug, Default)]
pub struct Tables {
    tables: HashMap<SegmentName, Arc<Table>>,
    order: VecDeque<SegmentName>,
    bytes: usize,
}

impl Tables {
    /// The place of a record by the sidecar at `path`; reads the sidecar where it has grown since.
    pub fn find(&mut self, path: &Path, name: SegmentName, record: u32) -> Result<Option<(u64, u64)>> {
        if let Some(place) = self.tables.get(&name).and_then(|table| table.get(record)) {
            return Ok(Some(place));
        }
        let known = self.take(name);
        let mut table = known.and_then(|table| Arc::try_unwrap(table).ok()).unwrap_or_default();
        let from = table.sidecar_bytes.max(HEADER_BYTES);
        let Some(mut sidecar) = SidecarReader::open_at(path, name, from)? else { return Ok(None) };
        while let Some(entries) = sidecar.next_frame()? {
            table.places.extend(entries.iter().map(|entry| (entry.record, entry.offset, entry.length)));
        }
        table.sidecar_bytes = sidecar.valid_length();
        let place = table.get(record);
        self.keep(name, table);
        Ok(place)
    }

    fn take(&mut self, name: SegmentName) -> Option<Arc<Table>> {
        let table = self.tables.remove(&name)?;
        self.bytes -= table.weight();
        self.order.retain(|other| *other != name);
        Some(table)
    }

    fn keep(&mut self, name: SegmentName, table: Table) {
        self.bytes += table.weight();
        self.tables.insert(name, Arc::new(table));
        self.order.push_back(name);
        while self.bytes > TABLES_BYTES_MAX && self.order.len() > 1 {
            if let Some(oldest) = self.order.front().copied() {
                self.take(oldest);
            }
        }
    }
}
