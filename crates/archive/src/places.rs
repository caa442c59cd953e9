//! Where the records of a segment begin. The sidecar says it; what is remembered is where in the sidecar to look.
//!
//! ```text
//!   sidecar    | entry | entry | … 64 of them, or 32 KiB … | entry | …
//!                ▲ milestone                                ▲ milestone: 24 bytes
//! ```
//! A look-up reads the stretch between two milestones. The open segment of a crawl that goes on for days would fill any table of
//! every record.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::layout::SegmentName;
use crate::limits::{STRETCH_BYTES, STRETCH_ENTRIES};
use crate::sidecar::{HEADER_BYTES, Placed, SidecarReader, each_placed};

/// Offset and length of a record, and how many before it begin at the same offset.
type Found = (u64, u64, u32);

/// An entry of a sidecar from which others can be reached.
#[derive(Debug, Clone, Copy)]
struct Milestone {
    /// The byte of the sidecar at which it begins.
    at: u64,
    record: u32,
    /// Entries of its frame from there on.
    left: u32,
    /// Records before it that begin at the same offset.
    nth: u32,
}

/// The milestones of one sidecar.
#[derive(Debug, Default)]
struct Table {
    milestones: Vec<Milestone>,
    /// The last entry seen, and how many records before it begin at the same offset.
    last: Option<(Placed, u32)>,
    /// Entries since the last milestone.
    entries: u32,
    /// The frame boundary up to which the sidecar was read.
    sidecar_bytes: u64,
}

impl Table {
    /// Reads what the sidecar has more than when it was read last.
    fn learn(&mut self, path: &Path, name: SegmentName) -> Result<()> {
        let from = self.sidecar_bytes.max(HEADER_BYTES);
        let Some(mut sidecar) = SidecarReader::open_at(path, name, from)? else { return Ok(()) };
        while sidecar.next_placed(|placed| self.pass(placed))? {}
        self.sidecar_bytes = sidecar.valid_length();
        Ok(())
    }

    fn pass(&mut self, placed: &Placed) {
        let nth = match self.last {
            Some((last, nth)) if last.offset == placed.offset => nth + 1,
            _ => 0,
        };
        // An entry begins where the one before it ended: by now it is known how long that one was.
        let last_at = self.last.map_or(0, |(last, _)| last.at);
        let far = self.milestones.last().is_none_or(|milestone| {
            self.entries >= STRETCH_ENTRIES
                || placed.at - milestone.at >= STRETCH_BYTES
                || placed.at - last_at >= STRETCH_BYTES
        });
        if far {
            self.milestones.push(Milestone { at: placed.at, record: placed.record, left: placed.left, nth });
            self.entries = 0;
        }
        self.entries += 1;
        self.last = Some((*placed, nth));
    }

    /// Where to look for a record that was passed.
    fn stretch(&self, record: u32) -> Option<Stretch> {
        self.last.filter(|(last, _)| last.record >= record)?;
        let after = self.milestones.partition_point(|milestone| milestone.record <= record);
        let from = self.milestones[..after].last().copied()?;
        let to = self.milestones.get(after).map_or(self.sidecar_bytes, |next| next.at);
        Some(Stretch { from, to })
    }

    fn weight(&self) -> usize {
        self.milestones.capacity() * size_of::<Milestone>() + size_of::<Table>()
    }
}

/// A stretch of a sidecar, from one milestone to the next.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    from: Milestone,
    to: u64,
}

/// What a stretch says.
enum Said {
    Found(Found),
    NotThere,
    /// The sidecar is not the one that was read.
    Changed,
}

impl Stretch {
    fn look(&self, path: &Path, record: u32) -> Result<Said> {
        let unreadable = |error| Error::io("cannot read", path, error);
        let mut bytes = vec![0; self.to.saturating_sub(self.from.at) as usize];
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Said::Changed),
            Err(error) => return Err(unreadable(error)),
        };
        match file.read_exact_at(&mut bytes, self.from.at) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(Said::Changed),
            Err(error) => return Err(unreadable(error)),
        }
        let mut said = Said::NotThere;
        let mut before: Option<(u64, u32)> = None;
        let whole = each_placed(&bytes, self.from.at, self.from.left, |placed| {
            let nth = match before {
                None if placed.record != self.from.record => {
                    said = Said::Changed;
                    return ControlFlow::Break(());
                }
                None => self.from.nth,
                Some((offset, nth)) if offset == placed.offset => nth + 1,
                Some(_) => 0,
            };
            before = Some((placed.offset, nth));
            if placed.record == record {
                said = Said::Found((placed.offset, placed.length, nth));
            }
            if placed.record >= record { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        Ok(if whole { said } else { Said::Changed })
    }
}

/// Tables of the segments asked about last, bounded in memory.
pub struct Places {
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    tables: HashMap<SegmentName, Table>,
    order: VecDeque<SegmentName>,
    bytes: usize,
    bytes_max: usize,
}

impl Places {
    /// Remembers no more than this; always the segment that was asked about last.
    pub fn new(bytes_max: usize) -> Places {
        Places { tables: Mutex::new(Tables { bytes_max, ..Tables::default() }) }
    }

    /// The place of a record by the sidecar at `path`; reads the sidecar where it has grown since.
    pub fn find(&self, path: &Path, name: SegmentName, record: u32) -> Result<Option<Found>> {
        // A sidecar that changed is read again from its beginning, once.
        for _ in 0..2 {
            let Some(stretch) = self.held().stretch(path, name, record)? else { return Ok(None) };
            match stretch.look(path, record)? {
                Said::Found(found) => return Ok(Some(found)),
                Said::NotThere => return Ok(None),
                Said::Changed => drop(self.held().take(name)),
            }
        }
        Ok(None)
    }

    fn held(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    fn stretch(&mut self, path: &Path, name: SegmentName, record: u32) -> Result<Option<Stretch>> {
        if let Some(stretch) = self.tables.get(&name).and_then(|table| table.stretch(record)) {
            return Ok(Some(stretch));
        }
        let mut table = self.take(name).unwrap_or_default();
        table.learn(path, name)?;
        let stretch = table.stretch(record);
        self.keep(name, table);
        Ok(stretch)
    }

    fn take(&mut self, name: SegmentName) -> Option<Table> {
        let table = self.tables.remove(&name)?;
        self.bytes -= table.weight();
        self.order.retain(|other| *other != name);
        Some(table)
    }

    fn keep(&mut self, name: SegmentName, table: Table) {
        self.bytes += table.weight();
        self.tables.insert(name, table);
        self.order.push_back(name);
        while self.bytes > self.bytes_max && self.order.len() > 1 {
            if let Some(oldest) = self.order.front().copied() {
                self.take(oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WriterKey;
    use crate::layout::SegmentId;
    use crate::sidecar::{Entry, Note, SidecarWriter};

    fn name(number: u32) -> SegmentName {
        SegmentName { id: SegmentId { writer: WriterKey(7), number }, generation: 0 }
    }

    /// Records of which every tenth has a long note, every hundredth is not there, and some begin together.
    fn entries(from: u32, to: u32) -> Vec<Entry> {
        let there = (from..to).filter(|record| record % 100 != 50);
        let entry = |record: u32| {
            let note = match record % 10 {
                0 => Note::Heard(vec![1; record as usize % 997 * 100]),
                1 | 2 => Note::Plain,
                _ => Note::Checks(b"a line".to_vec()),
            };
            Entry::place(name(0).id, record, u64::from(record / 3) * 1000, 900, note)
        };
        there.map(entry).collect()
    }

    fn expected(record: u32, of: &[Entry]) -> Option<Found> {
        let entry = of.iter().find(|entry| entry.record == record)?;
        let before = of.iter().filter(|other| other.record < record && other.offset == entry.offset).count();
        Some((entry.offset, entry.length, before as u32))
    }

    #[test]
    fn every_record_is_found_while_the_sidecar_grows_in_frames_of_any_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.idx");
        let mut writer = SidecarWriter::create(&path, name(0)).unwrap();
        let places = Places::new(1 << 20);
        let (mut written, mut step) = (0, 1);
        while written < 3_000 {
            writer.append(&entries(written, written + step)).unwrap();
            written += step;
            step = step * 2 % 701;
            let all = entries(0, written);
            for record in (0..written + 3).rev().step_by(17) {
                assert_eq!(places.find(&path, name(0), record).unwrap(), expected(record, &all), "record {record}");
            }
        }
        let all = entries(0, written);
        for record in 0..written + 3 {
            assert_eq!(places.find(&path, name(0), record).unwrap(), expected(record, &all), "record {record}");
        }
        let table = &places.held().tables[&name(0)];
        let most =
            all.len() / STRETCH_ENTRIES as usize + 2 * path.metadata().unwrap().len() as usize / STRETCH_BYTES as usize;
        assert!(table.milestones.len() <= most + 2, "{} milestones", table.milestones.len());
    }

    #[test]
    fn a_sidecar_that_was_written_again_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.idx");
        let places = Places::new(1 << 20);
        let all = entries(0, 2_000);
        for frame in [2_000, 3, 999] {
            let mut writer = SidecarWriter::create(&path, name(0)).unwrap();
            all.chunks(frame).for_each(|chunk| writer.append(chunk).unwrap());
            for record in [0, 1, 500, 1_949, 1_951, 1_999] {
                assert_eq!(places.find(&path, name(0), record).unwrap(), expected(record, &all), "record {record}");
            }
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(places.find(&path, name(0), 5).unwrap(), None);
    }

    #[test]
    fn many_segments_share_the_memory_of_few() {
        let folder = tempfile::tempdir().unwrap();
        let all = entries(0, 2_000);
        let places = Places::new(8 << 10);
        for number in 0..40 {
            let path = folder.path().join(format!("{number}.idx"));
            SidecarWriter::create(&path, name(number)).unwrap().append(&all).unwrap();
            assert_eq!(places.find(&path, name(number), 1_234).unwrap(), expected(1_234, &all));
            let tables = places.held();
            assert_eq!(tables.bytes, tables.tables.values().map(Table::weight).sum::<usize>());
            assert!(tables.bytes <= 8 << 10 || tables.tables.len() == 1, "{} bytes", tables.bytes);
        }
    }
}
