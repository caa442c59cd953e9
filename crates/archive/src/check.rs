//! Checking: is everything what it says it is? Reads, and changes nothing.

use std::fs::File;
use std::io::BufRead;
use std::path::Path;

use skep_warc::{Options, Reader};

use crate::archive::Archive;
use crate::catalog::{self, Segment, State};
use crate::collections::{Candidate, CollectionFile};
use crate::describe::describe;
use crate::error::{Error, Result};
use crate::finding::Finding;
use crate::keeper::hash;
use crate::layout::{self, Layout, SegmentName, sidecar_of};
use crate::opening::replaced_finding;
use crate::recover;
use crate::remove::Removal;
use crate::rewrite::{closing_of, sealed_entries};
use crate::sidecar::{Entry, Note, SidecarReader};

impl Archive {
    /// Checks every segment against its closing record and its sidecar, every removal's signature, and the files of
    /// collections against what they were. Each finding is told as it is found.
    pub fn check(&self, tell: &mut dyn FnMut(Finding)) -> Result<()> {
        self.settle()?;
        let walk = layout::walk(self.layout())?;
        for stray in walk.strays {
            tell(Finding::wrong(stray, None, "stray", "is nothing that belongs into an archive"));
        }
        // A segment that was rewritten has one file; more of them were brought back by a copy.
        let sealed =
            |found: &layout::Found| self.segments().iter().any(|s| s.path == found.path && s.state == State::Sealed);
        let chosen = catalog::choose(walk.found, sealed);
        chosen.replaced.iter().chain(&chosen.invalid).for_each(|file| tell(replaced_finding(file)));
        for segment in self.segments() {
            // Between this list and its turn, a segment may have been rewritten; then the new one was checked when made.
            if !segment.path.exists()
                && self.segments().iter().any(|now| now.name.id == segment.name.id && *now != segment)
            {
                continue;
            }
            if segment.state == State::Sealed {
                seal(&segment)?.into_iter().for_each(&mut *tell);
            }
            records(&segment.path, &sidecar_of(&segment.path), segment.name, segment.state == State::Open, tell)?;
        }
        for file in self.collections().files() {
            collection_file(self.layout(), file).into_iter().for_each(&mut *tell);
        }
        Ok(())
    }
}

/// What is wrong with the seal of a segment: its closing record, and whether the bytes before it are what it says.
pub(crate) fn seal(segment: &Segment) -> Result<Vec<Finding>> {
    let path = &segment.path;
    let entries = match sealed_entries(segment) {
        Ok(entries) => entries,
        Err(error @ Error::Damaged { .. }) => {
            return Ok(vec![Finding::wrong(path, None, "sidecar", error.to_string())]);
        }
        Err(error) => return Err(error),
    };
    let last = entries.last().map_or(0, |entry| entry.offset);
    let wrong = |what: String| Finding::wrong(path, Some(last), "seal", what);
    let closing = match closing_of(segment, &entries) {
        Ok(closing) => closing,
        Err(error) => return Ok(vec![wrong(error.to_string())]),
    };
    let mut findings = Vec::new();
    if closing.segment != segment.name || closing.half != segment.half {
        findings.push(wrong(format!("was sealed as {} in half-slice {}", closing.segment, closing.half)));
    }
    if (closing.records as usize, closing.bytes) != (entries.len() - 1, last) {
        let (records, bytes) = (closing.records, closing.bytes);
        findings.push(wrong(format!("was sealed after {records} records and {bytes} bytes, not here")));
    }
    let file = File::open(path).map_err(|error| Error::io("cannot open", path, error))?;
    let found = hash(&file, last).map_err(|error| Error::io("cannot read", path, error))?;
    if found != closing.blake3 {
        findings.push(wrong("the bytes are not those that were sealed: their BLAKE3 differs".into()));
    }
    Ok(findings)
}

/// Compares the records of a file with its sidecar, one by one.
fn records(path: &Path, sidecar: &Path, name: SegmentName, grows: bool, tell: &mut dyn FnMut(Finding)) -> Result<()> {
    let Some(mut named) = SidecarReader::open(sidecar, name)? else {
        tell(Finding::wrong(sidecar, None, "sidecar", "is missing or belongs to another file"));
        return Ok(());
    };
    let wrong = |error| Error::io("cannot read", path, error);
    // Behind what the sidecar of a growing segment names, a record may be just being written.
    let named_bytes = if grows { recover::covered(sidecar, name)?.map(|covered| covered.bytes) } else { None };
    let mut reader = Reader::at(path, 0, named_bytes, Options::recover()).map_err(wrong)?;
    let mut waiting: std::collections::VecDeque<Entry> = Default::default();
    let mut number = 0;
    while let Some(mut record) = reader.next().map_err(wrong)? {
        let head = record.head().clone();
        let note = describe(&head, &mut record as &mut dyn BufRead).map_err(wrong)?;
        let offset = record.offset();
        let end = record.finish().map_err(wrong)?;
        if end.damaged {
            tell(Finding::wrong(path, Some(offset), "record", "is not whole"));
            continue;
        }
        if let Note::Removal(block) = &note
            && let Err(what) = Removal::parse(block)
        {
            tell(Finding::wrong(path, Some(offset), "removal", what));
        }
        while waiting.is_empty() {
            match named.next_frame()? {
                Some(entries) => waiting.extend(entries),
                None => break,
            }
        }
        let Some(entry) = waiting.pop_front() else {
            if !grows {
                tell(Finding::wrong(path, Some(offset), "sidecar", "the sidecar does not name this record"));
            }
            return Ok(());
        };
        let found = Entry::place(name.id, number, offset, end.length, note);
        if found != entry {
            tell(Finding::wrong(path, Some(offset), "sidecar", "the sidecar says something else of this record"));
        }
        number = entry.record.saturating_add(1);
    }
    for finding in reader.take_findings() {
        tell(Finding::wrong(path, Some(finding.offset), "record", finding.to_string()));
    }
    if let Some(entry) = waiting.pop_front() {
        tell(Finding::wrong(path, Some(entry.offset), "sidecar", "the sidecar names a record that is not there"));
    }
    if let Some(torn) = named.torn() {
        tell(Finding::wrong(sidecar, Some(named.valid_length()), "sidecar", torn.to_string()));
    }
    Ok(())
}

fn collection_file(layout: &Layout, file: &CollectionFile) -> Option<Finding> {
    let path = file.location(layout);
    match Candidate::look(&path) {
        Err(error) => Some(Finding::wrong(path, None, "collection", error.to_string())),
        Ok(now) if now.size != file.size => {
            let what = format!("had {} bytes when it was added, has {} now", file.size, now.size);
            Some(Finding::wrong(path, None, "collection", what))
        }
        Ok(now) if file.path == file.from && now.modified_ms != file.modified_ms => {
            Some(Finding::wrong(path, None, "collection", "was modified after it was added"))
        }
        Ok(_) => None,
    }
}
