//! Checking: is everything what it says it is? Reads, and changes nothing.
//!
//! A segment is read three times: its bytes against the seal, its records against the standard and their digests, and what
//! they are against the sidecar. The first finds any change, the second says where, the third what answers may be wrong.

use std::collections::VecDeque;
use std::fs::File;
use std::io::BufRead;
use std::os::unix::fs::FileExt;
use std::path::Path;

use skep_warc::{Options, Reader, Rule, Severity, check_record, wacz};

use crate::archive::Archive;
use crate::catalog::{self, Segment, State};
use crate::collect::sidecar_fault;
use crate::collections::{Candidate, CollectionFile};
use crate::describe::describe;
use crate::error::{Error, Result};
use crate::finding::Finding;
use crate::identity::hex;
use crate::keeper::hash;
use crate::layout::{self, HalfSlice, Layout, SegmentName, sidecar_of};
use crate::limits::NOTE_BYTES_MAX;
use crate::opening::replaced_finding;
use crate::recover;
use crate::remove::Removal;
use crate::rewrite::{closing_of, sealed_entries};
use crate::sidecar::{Entry, Note, SidecarReader};
use crate::views::Mark;

/// How the gzip member of a closing record begins: its lengths follow.
const CLOSING_MEMBER: [u8; 16] = [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 12, 0, b's', b'l', 8, 0];

impl Archive {
    /// Checks every segment against its closing record, the standard, its digests and its sidecar, every removal's
    /// signature, and the files of collections against what they were. Each finding is told as it is found.
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
            let (path, sidecar) = (&segment.path, sidecar_of(&segment.path));
            let grows = segment.state == State::Open;
            // Behind what the sidecar of a growing segment names, a record may be just being written.
            let named =
                if grows { recover::covered(&sidecar, segment.name)?.map(|covered| covered.bytes) } else { None };
            let wrong = |error| Error::io("cannot read", path, error);
            let mut reader = Reader::at(path, 0, named, Options::strict()).map_err(wrong)?;
            records(&mut reader, path, Severity::Violation, tell)?;
            let mut reader = Reader::at(path, 0, named, Options::recover()).map_err(wrong)?;
            // In a network a copy's removals bind nobody here: where it came as a copy, its sidecar names them as records like others.
            let binds = !self.listener().joint || segment.name.id.writer == self.writer();
            compare(&mut reader, path, &sidecar, segment.name, Expected { grows, binds }, tell)?;
        }
        for file in self.collections().files() {
            collection_file(self.layout(), file, tell)?;
            let seen = self.views().mark(file.name().id)?;
            collection_sidecar(self.layout(), file, seen, tell)?;
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
            return Ok(vec![Finding::wrong(sidecar_of(path), None, "sidecar", error.to_string())]);
        }
        Err(error) => return Err(error),
    };
    let last = entries.last().map_or(0, |entry| entry.offset);
    let wrong = |what: String| Finding::wrong(path, Some(last), "seal", what);
    let sealed_bytes = entries.last().map_or(0, Entry::end);
    let bytes = path.metadata().map_err(|error| Error::io("cannot look at", path, error))?.len();
    if bytes < sealed_bytes {
        return Ok(vec![wrong(format!("was sealed with {sealed_bytes} bytes, has {bytes}"))]);
    }
    let closing = match closing_of(segment, &entries) {
        Ok(closing) => closing,
        Err(error) => return Ok(vec![wrong(error.to_string())]),
    };
    let mut findings = Vec::new();
    if bytes > sealed_bytes {
        findings.push(wrong(format!("was sealed with {sealed_bytes} bytes, has {bytes}")));
    }
    if !is_as_written(segment, &entries)? {
        findings.push(wrong("the closing record is not stored as it was written".into()));
    }
    if closing.segment != segment.name || closing.half != segment.half {
        findings.push(wrong(format!("was sealed as {} in half-slice {}", closing.segment, closing.half)));
    }
    let number = entries.last().map_or(0, |entry| entry.record);
    if (closing.records, closing.bytes) != (number, last) {
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

/// Whether the member of the closing record begins as every closing record does. The seal covers all bytes before it and the
/// signature what it says; the fields of its member that no reader looks at are covered here.
fn is_as_written(segment: &Segment, entries: &[Entry]) -> Result<bool> {
    let Some(last) = entries.last() else { return Ok(false) };
    let mut member = vec![0; last.length.min(NOTE_BYTES_MAX as u64) as usize];
    let read = File::open(&segment.path).and_then(|file| file.read_exact_at(&mut member, last.offset));
    read.map_err(|error| Error::io("cannot read", &segment.path, error))?;
    let record_bytes = member.last_chunk::<4>().copied().unwrap_or_default();
    let begin = [&CLOSING_MEMBER[..], &(member.len() as u32).to_le_bytes(), &record_bytes].concat();
    Ok(member.starts_with(&begin))
}

/// Holds every record against the standard and its digests; what is at least as severe as `least` is told.
pub(crate) fn records(reader: &mut Reader, path: &Path, least: Severity, tell: &mut dyn FnMut(Finding)) -> Result<()> {
    let wrong = |error| Error::io("cannot read", path, error);
    loop {
        let more = match reader.next().map_err(wrong)? {
            Some(mut record) => {
                check_record(&mut record).map_err(wrong)?;
                record.finish().map_err(wrong)?;
                true
            }
            None => false,
        };
        for found in reader.take_findings() {
            let of_digests = matches!(found.rule, Rule::DigestBlock | Rule::DigestPayload);
            if found.rule.severity() >= least || of_digests {
                let what = match found.detail.as_str() {
                    "" => found.rule.text().to_string(),
                    detail => format!("{} ({detail})", found.rule.text()),
                };
                tell(Finding::wrong(path, Some(found.offset), found.rule.id(), what));
            }
        }
        if !more {
            return Ok(());
        }
    }
}

/// What may be so without being wrong.
#[derive(Clone, Copy)]
struct Expected {
    /// Records may stand behind those that the sidecar names.
    grows: bool,
    /// Removals are named as such.
    binds: bool,
}

/// Compares the records of a segment with its sidecar, one by one. What is damaged was told before.
fn compare(
    reader: &mut Reader,
    path: &Path,
    sidecar: &Path,
    name: SegmentName,
    Expected { grows, binds }: Expected,
    tell: &mut dyn FnMut(Finding),
) -> Result<()> {
    let Some(mut named) = SidecarReader::open(sidecar, name)? else {
        tell(Finding::wrong(sidecar, None, "sidecar", "is missing or belongs to another file"));
        return Ok(());
    };
    let wrong = |error| Error::io("cannot read", path, error);
    let mut waiting: VecDeque<Entry> = VecDeque::new();
    let mut number = 0;
    let mut damaged = false;
    while let Some(mut record) = reader.next().map_err(wrong)? {
        let head = record.head().clone();
        let note = describe(&head, &mut record as &mut dyn BufRead).map_err(wrong)?.filed_in(HalfSlice::holding(path));
        let offset = record.offset();
        let end = record.finish().map_err(wrong)?;
        if end.damaged {
            damaged = true;
            continue;
        }
        if let Note::Removal(block) = &note
            && let Err(what) = removal_in(block, name)
        {
            tell(Finding::wrong(path, Some(offset), "removal", what));
        }
        let entry = loop {
            match waiting.pop_front() {
                // A record that damage hides.
                Some(entry) if damaged && entry.offset < offset => {}
                Some(entry) => break Some(entry),
                None => match named.next_frame()? {
                    Some(entries) => waiting.extend(entries),
                    None => break None,
                },
            }
        };
        let Some(entry) = entry else {
            if !grows && named.torn().is_none() {
                tell(Finding::wrong(path, Some(offset), "sidecar", "the sidecar does not name this record"));
            }
            break;
        };
        number = if damaged { entry.record } else { number };
        let note = match note {
            Note::Removal(_) if !binds && entry.note == Note::Plain => Note::Plain,
            note => note,
        };
        let found = Entry::place(name.id, number, offset, end.length, note);
        if found != entry {
            tell(Finding::wrong(path, Some(offset), "sidecar", "the sidecar says something else of this record"));
        }
        number = entry.record.saturating_add(1);
        damaged = false;
    }
    if let Some(entry) = waiting.pop_front().filter(|_| !damaged) {
        tell(Finding::wrong(path, Some(entry.offset), "sidecar", "the sidecar names a record that is not there"));
    }
    if let Some(torn) = named.torn() {
        tell(Finding::wrong(sidecar, Some(named.valid_length()), "sidecar", torn.to_string()));
    }
    Ok(())
}

/// What is wrong with a removal, if anything is: it hides nothing then.
fn removal_in(block: &[u8], segment: SegmentName) -> Result<(), String> {
    let removal = Removal::parse(block)?;
    match removal.writer == segment.id.writer {
        true => Ok(()),
        false => Err(format!("signed by {}, not by the writer of the segment; it hides nothing", removal.writer)),
    }
}

/// A file from elsewhere is what it was when it was added. A copy is this archive's to keep: its bytes are read too, and
/// what they always had against the standard is not told again.
fn collection_file(layout: &Layout, file: &CollectionFile, tell: &mut dyn FnMut(Finding)) -> Result<()> {
    let path = file.location(layout);
    let copied = file.is_copy();
    let what = match Candidate::look(&path) {
        Err(error) => error.to_string(),
        Ok(now) if now.size != file.size => {
            format!("had {} bytes when it was added, has {} now", file.size, now.size)
        }
        Ok(now) if !copied && now.modified_ms != file.modified_ms => "was modified after it was added".to_string(),
        Ok(_) if copied => return copy(&path, file, tell),
        Ok(_) => return Ok(()),
    };
    tell(Finding::wrong(path, None, "collection", what));
    Ok(())
}

/// The sidecar of such a file is whole, and says no less than when the views saw it.
fn collection_sidecar(
    layout: &Layout,
    file: &CollectionFile,
    seen: Option<Mark>,
    tell: &mut dyn FnMut(Finding),
) -> Result<()> {
    let path = layout.collection_sidecar(file.number);
    if let Some(fault) = sidecar_fault(layout, file)? {
        tell(Finding::wrong(&path, None, "sidecar", fault.to_string()));
        return Ok(());
    }
    let bytes = path.metadata().map_err(|error| Error::io("cannot look at", &path, error))?.len();
    if let Some(seen) = seen.filter(|seen| bytes < seen.sidecar_bytes) {
        let what = format!("had {} bytes when it was read last, has {bytes}", seen.sidecar_bytes);
        tell(Finding::wrong(&path, Some(bytes), "sidecar", what));
    }
    Ok(())
}

fn copy(path: &Path, file: &CollectionFile, tell: &mut dyn FnMut(Finding)) -> Result<()> {
    let wrong = |error| Error::io("cannot read", path, error);
    if let Some(known) = &file.blake3 {
        let found = File::open(path).and_then(|open| hash(&open, file.size)).map_err(wrong)?;
        if *known != hex(&found) {
            tell(Finding::wrong(
                path,
                None,
                "collection",
                "the bytes are not those that were added: their BLAKE3 differs",
            ));
        }
    }
    let packaged = file.kind == "wacz";
    let readers = match packaged {
        true => wacz::archives(path).and_then(|entries| {
            entries.iter().map(|entry| entry.reader(path, Options::strict())).collect::<std::io::Result<Vec<_>>>()
        }),
        false => Reader::open(path, Options::strict()).map(|reader| vec![reader]),
    };
    match readers {
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            tell(Finding::wrong(path, None, "collection", error.to_string()));
            Ok(())
        }
        readers => {
            readers.map_err(wrong)?.iter_mut().try_for_each(|reader| records(reader, path, Severity::Damage, tell))
        }
    }
}
