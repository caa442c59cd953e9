//! The records of the archive that mean something to crawls, in the order in which they were written.
//!
//! Several segments are written side by side, one for each half-slice. Within one, the order of the records is the order in which
//! they were folded; between them time decides, so that a rebuild hears of a URL first where the crawl did:
//!
//! ```text
//!   half 0   seg 1 ─────────────── seg 3 ──────▶ ┐
//!                                                ├─ by time ─▶ each
//!   half 1   seg 2 ── seg 4 ───────────────────▶ ┘
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io::{BufRead, Read};

use skep_archive::layout::HalfSlice;
use skep_archive::sidecar::{Entry, SidecarReader};
use skep_archive::{Archive, Capture, CaptureKind, Note, Position, layout};

use crate::checks;
use crate::error::{Error, Result};
use crate::limits::META_BYTES_MAX;
use crate::metadata;

/// A segment: whose, and which.
pub type Segment = (u64, u64);

/// A record that means something to crawls.
pub enum Recorded<'r> {
    /// The metadata of a visit, and the answer it stands behind.
    Answer(Option<&'r Capture>, &'r Capture, Vec<u8>, Position),
    /// Visits that brought nothing.
    Checks(&'r [u8], Position),
    /// URLs that were heard of otherwise than on a page, and the half-slice in which that is said.
    Heard(&'r [u8], HalfSlice, Position),
    /// Anything else.
    Other(Position),
}

/// Goes through the records of those of the archive's segments that `of` names, in each from the one that `from` says on.
pub fn each_record(
    archive: &Archive,
    of: &dyn Fn(&skep_archive::Segment) -> bool,
    from: &dyn Fn(&Segment) -> u32,
    each: &mut dyn FnMut(Recorded<'_>) -> Result<()>,
) -> Result<()> {
    let mut segments: BTreeMap<_, VecDeque<skep_archive::Segment>> = BTreeMap::new();
    for segment in archive.segments().into_iter().filter(of) {
        segments.entry((segment.name.id.writer, segment.half)).or_default().push_back(segment);
    }
    let mut lanes: Vec<Lane> = segments.into_values().map(Lane::new).collect();
    let mut next = BinaryHeap::new();
    for (number, lane) in lanes.iter_mut().enumerate() {
        if lane.advance(from)? {
            next.push(Reverse((lane.time_ms, number)));
        }
    }
    while let Some(Reverse((_, number))) = next.pop() {
        let lane = &mut lanes[number];
        lane.give(each)?;
        if lane.advance(from)? {
            next.push(Reverse((lane.time_ms, number)));
        }
    }
    Ok(())
}

/// Goes through the metadata of all visits that the archive keeps.
pub fn each_metadata(archive: &Archive, each: &mut dyn FnMut(&Capture, &metadata::Meta)) -> Result<()> {
    each_record(archive, &|_| true, &|_| 0, &mut |record| {
        if let Recorded::Answer(_, capture, block, _) = record
            && let Ok(meta) = metadata::parse(&block)
        {
            each(capture, &meta);
        }
        Ok(())
    })
}

/// The segments of one half-slice, one after the other.
struct Lane {
    waiting: VecDeque<skep_archive::Segment>,
    open: Option<(skep_archive::Segment, SidecarReader)>,
    entries: VecDeque<Entry>,
    /// The latest time so far: a visit that took long stands behind later ones, and was folded after them.
    time_ms: i64,
    answer: Option<Box<Capture>>,
}

impl Lane {
    fn new(waiting: VecDeque<skep_archive::Segment>) -> Lane {
        Lane { waiting, open: None, entries: VecDeque::new(), time_ms: i64::MIN, answer: None }
    }

    /// Goes to the next record that is to be given; says whether there is one.
    fn advance(&mut self, from: &dyn Fn(&Segment) -> u32) -> Result<bool> {
        loop {
            while let Some(entry) = self.entries.front() {
                let time_ms = match &entry.note {
                    Note::Capture(capture) => Some(capture.time_ms),
                    Note::Checks(block) => checks::last_ms(block),
                    _ => None,
                };
                self.time_ms = self.time_ms.max(time_ms.unwrap_or(i64::MIN));
                let is_new = self.open.as_ref().is_some_and(|(segment, _)| {
                    let id = segment.name.id;
                    entry.record >= from(&(id.writer.0.into(), id.number.into()))
                });
                if is_new {
                    return Ok(true);
                }
                // The answer may be folded already, and its metadata not.
                if let Some(Entry { note: Note::Capture(capture), .. }) = self.entries.pop_front() {
                    self.remember(capture);
                }
            }
            let frame = match &mut self.open {
                Some((_, sidecar)) => sidecar.next_frame()?,
                None => None,
            };
            match frame {
                Some(entries) => self.entries = entries.into(),
                None => {
                    let Some(segment) = self.waiting.pop_front() else { return Ok(false) };
                    let sidecar = SidecarReader::open(&layout::sidecar_of(&segment.path), segment.name)?;
                    self.open = sidecar.map(|sidecar| (segment, sidecar));
                    self.answer = None;
                }
            }
        }
    }

    fn remember(&mut self, capture: Box<Capture>) {
        if matches!(capture.kind, CaptureKind::Response | CaptureKind::Revisit) {
            self.answer = Some(capture);
        }
    }

    fn give(&mut self, each: &mut dyn FnMut(Recorded<'_>) -> Result<()>) -> Result<()> {
        let (Some(entry), Some((segment, _))) = (self.entries.pop_front(), &self.open) else { return Ok(()) };
        let id = segment.name.id;
        let position = Position { writer: id.writer, segment: id.number, record: entry.record };
        match entry.note {
            Note::Capture(capture) if capture.kind == CaptureKind::Metadata => {
                let block = block_of(&segment.path, entry.offset, entry.length)?;
                let answer = self.answer.take().filter(|answer| answer.url == capture.url);
                each(Recorded::Answer(answer.as_deref(), &capture, block, position))
            }
            Note::Capture(capture) => {
                self.remember(capture);
                each(Recorded::Other(position))
            }
            Note::Checks(block) => each(Recorded::Checks(&block, position)),
            Note::Heard(block) => each(Recorded::Heard(&block, segment.half, position)),
            _ => each(Recorded::Other(position)),
        }
    }
}

fn block_of(path: &std::path::Path, offset: u64, length: u64) -> Result<Vec<u8>> {
    let mut stored = skep_archive::Stored::open(path, offset, length)?;
    let mut record = stored.record()?;
    let mut block = Vec::new();
    let read = (&mut record as &mut dyn BufRead).take(META_BYTES_MAX as u64).read_to_end(&mut block);
    read.map_err(|error| Error::io("cannot read", path, error))?;
    Ok(block)
}
