//! The way through what is selected: file by file, record by record, and then what revisits refer to outside of it.

use super::Summary;
use super::ready::{self, Ready};
use crate::failure::{Failure, Result};
use crate::get::original_of;
use crate::job::Tell;
use crate::node::originals::Originals;
use crate::sorted::Sorted;
use skep_archive::captures::Query;
use skep_archive::{Archive, Capture, CaptureKind, Holding, Position, Selection, is_listed};
use skep_portal::Access;
use skep_portal::access::May;
use std::collections::{BTreeMap, HashSet};

/// What is selected, and who may have it.
pub struct Walk<'a> {
    pub archive: &'a Archive,
    selection: Selection,
    access: Access,
    now_ms: i64,
    files: Vec<Holding>,
    /// The files of the collection, where one is selected.
    inside: Option<HashSet<u32>>,
    /// What other nodes hold.
    others: Originals,
}

/// How often progress is told: this many times in all, or after so many bytes.
const PROGRESS_STEPS: u64 = 1000;
const PROGRESS_BYTES_MIN: u64 = 1 << 20;
/// Originals that other nodes hold and that are taken along.
const ELSEWHERE_MAX: usize = 100_000;
/// Records that could not be taken along and are named one by one.
const NAMED_MAX: u64 = 20;

impl<'a> Walk<'a> {
    pub fn new(
        archive: &'a Archive,
        selection: Selection,
        access: Access,
        now_ms: i64,
        others: Originals,
    ) -> Result<Walk<'a>> {
        let files = archive.holding(&selection)?;
        let inside = selection.collection.as_ref().map(|name| {
            let collections = archive.collections();
            collections.files().iter().filter(|file| file.collection == *name).map(|file| file.number).collect()
        });
        Ok(Walk { archive, selection, access, now_ms, files, inside, others })
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Whether a capture may be given away.
    pub fn shows(&self, capture: &Capture) -> bool {
        self.access.shows(capture, May::Read, self.now_ms)
    }

    fn holds(&self, capture: &Capture) -> bool {
        let position = capture.position;
        let inside = self.inside.as_ref();
        self.selection.holds(capture)
            && inside.is_none_or(|files| position.writer.0 == 0 && files.contains(&position.segment))
    }

    /// Every capture that is selected, in the order in which it stands in its file; with what was asked and noted.
    pub fn each_capture(
        &self,
        tell: &mut dyn Tell,
        mut look: impl FnMut(&Capture, &mut dyn Tell) -> Result<()>,
    ) -> Result<()> {
        let mut progress = Progress::of(&self.files);
        let shows = |capture: &Capture| self.shows(capture);
        for file in &self.files {
            self.archive.each_selected(file.id, &self.selection, &shows, |capture| -> Result<()> {
                look(capture, tell)?;
                if is_listed(capture) {
                    progress.add(capture.length, tell);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Every capture that is selected and listed, by URL and then by time.
    pub fn each_by_url(
        &self,
        tell: &mut dyn Tell,
        mut look: impl FnMut(&Capture, &mut dyn Tell) -> Result<()>,
    ) -> Result<()> {
        let mut query = Query::new(self.selection.matching());
        (query.from_ms, query.to_ms) = (self.selection.from_ms, self.selection.to_ms);
        let mut progress = Progress::of(&self.files);
        for capture in self.archive.views().captures.query(&query)? {
            let capture = capture?;
            if self.holds(&capture) && self.shows(&capture) {
                look(&capture, tell)?;
                progress.add(capture.length, tell);
            }
        }
        Ok(())
    }

    /// Every record that is selected, ready to be written, and then the originals of revisits that lie outside.
    pub fn each_record(
        &self,
        summary: &mut Summary,
        tell: &mut dyn Tell,
        mut put: impl FnMut(&Ready, Option<&Capture>) -> Result<()>,
    ) -> Result<()> {
        let mut encoder = ready::encoder();
        let mut outside = Sorted::default();
        let mut elsewhere: BTreeMap<Position, Capture> = BTreeMap::new();
        self.each_capture(tell, |capture, tell| {
            let mut stored = match self.archive.read_capture(capture) {
                Ok(stored) => stored,
                Err(error) => return left(summary, tell, capture.position, &error),
            };
            match ready::make(&mut stored, Some(&capture.key), &mut encoder)? {
                Ok(ready) => {
                    summary.records += 1;
                    summary.captures += u64::from(is_listed(capture));
                    put(&ready, Some(capture))?;
                }
                Err(why) => return left(summary, tell, capture.position, &why),
            }
            if capture.kind == CaptureKind::Revisit {
                match original_of(self.archive, capture, &|original| self.shows(original))? {
                    Some(original) if !self.holds(&original) => outside.extend([sortable(original.position)])?,
                    Some(_) => {}
                    None => match self.others.named(self.archive, capture)? {
                        Some(original) if self.shows(&original) && elsewhere.len() < ELSEWHERE_MAX => {
                            elsewhere.insert(original.position, original);
                        }
                        _ => summary.without_original += 1,
                    },
                }
            }
            Ok(())
        })?;
        outside.each(|line| {
            let position = unsortable(line)?;
            let mut stored = match self.archive.read(position) {
                Ok(stored) => stored,
                Err(error) => return left(summary, tell, position, &error),
            };
            match ready::make(&mut stored, None, &mut encoder)? {
                Ok(ready) => {
                    summary.records += 1;
                    summary.originals += 1;
                    put(&ready, None)
                }
                Err(why) => left(summary, tell, position, &why),
            }
        })?;
        for (position, original) in elsewhere {
            let mut stored = match self.others.record(&original) {
                Ok(stored) => stored,
                Err(why) => {
                    left(summary, tell, position, &why)?;
                    continue;
                }
            };
            match ready::make(&mut stored, Some(&original.key), &mut encoder)? {
                Ok(ready) => {
                    summary.records += 1;
                    summary.originals += 1;
                    put(&ready, None)?;
                }
                Err(why) => left(summary, tell, position, &why)?,
            }
        }
        Ok(())
    }
}

/// How far the way is, and how much of it is behind.
struct Progress {
    total: u64,
    step: u64,
    done: u64,
    told: u64,
}

impl Progress {
    fn of(files: &[Holding]) -> Progress {
        let total: u64 = files.iter().map(|file| file.bytes).sum();
        Progress { total, step: (total / PROGRESS_STEPS).max(PROGRESS_BYTES_MIN), done: 0, told: 0 }
    }

    fn add(&mut self, bytes: u64, tell: &mut dyn Tell) {
        self.done += bytes;
        if self.done >= self.told + self.step {
            self.told = self.done;
            tell.progress(self.done.min(self.total), self.total);
        }
    }
}

/// A record that is not taken along is counted, and told of while they are few.
pub fn left(summary: &mut Summary, tell: &mut dyn Tell, position: Position, why: &dyn std::fmt::Display) -> Result<()> {
    summary.left_out += 1;
    match summary.left_out {
        count if count <= NAMED_MAX => tell.talk(&format!("record {position} is left out: {why}")),
        count if count == NAMED_MAX + 1 => tell.talk("more are left out; the summary counts them"),
        _ => {}
    }
    Ok(())
}

/// A position as text that sorts as positions do.
fn sortable(position: Position) -> String {
    format!("{:08x} {:08x} {:08x}", position.writer.0, position.segment, position.record)
}

fn unsortable(line: &str) -> Result<Position> {
    let parts: Vec<u32> = line.split(' ').filter_map(|part| u32::from_str_radix(part, 16).ok()).collect();
    match parts[..] {
        [writer, segment, record] => Ok(Position { writer: skep_archive::WriterKey(writer), segment, record }),
        _ => Err(Failure::new("what was sorted on disk came back otherwise")),
    }
}
