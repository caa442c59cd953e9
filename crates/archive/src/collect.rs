//! Adding files from elsewhere: each gets a number and a sidecar, then the views fold the sidecar like any other.
//!
//! ```text
//!  judge ─▶ number ─▶ (copy) ─▶ write collections/N.idx.part ─▶ sync, rename        per file, on any thread
//!                                          commit: collections.toml, then the views  for many files at once
//! ```
//! A crash before the commit leaves sidecars without a file, which the next addition of that number replaces.

use std::fs::File;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::{MutexGuard, PoisonError};

use skep_warc::{Head, Options, Reader, Severity, wacz};

use crate::archive::{Archive, Shared};
use crate::collections::{Candidate, CollectionFile, Collections, Verdict};
use crate::describe::describe;
use crate::error::{Error, Result};
use crate::finding::Finding;
use crate::identity::hex;
use crate::keeper::hash;
use crate::layout::{Layout, part_of};
use crate::limits::REPLAY_BATCH_ENTRIES;
use crate::recover::Covered;
use crate::replay::Replay;
use crate::settings;
use crate::sidecar::{Entry, HEADER_BYTES, Note, REBUILD, SidecarReader, SidecarWriter};
use crate::views::{Mark, Views};

/// A package of WARC files.
const WACZ: &str = "wacz";
/// A WARC file that is known by an index of it.
const CDXJ: &str = "cdxj";

/// Files on their way into the archive.
pub struct Additions<'a> {
    shared: &'a Shared,
    /// Numbers are given out and entered by one at a time.
    _turn: MutexGuard<'a, ()>,
    collections: Collections,
    next: u32,
    finished: Vec<CollectionFile>,
}

/// What came of a file that should be added.
pub enum Addition {
    /// It was added before and is as it was: nothing to do.
    Already(CollectionFile),
    /// It was added before and has changed since. It is left out; what the archive knows of it may be wrong.
    Changed(CollectionFile),
    /// It is new; its records are to be pushed.
    New(Adding),
}

/// One file whose records are being described.
pub struct Adding {
    file: CollectionFile,
    location: PathBuf,
    sidecar: PathBuf,
    writer: SidecarWriter,
    entries: Vec<Entry>,
    records: u64,
}

impl Archive {
    /// Begins to add files, as soon as nobody else does.
    pub fn additions(&self) -> Result<Additions<'_>> {
        let turn = self.shared.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let collections = self.collections();
        let next = collections.files().last().map_or(1, |file| file.number.saturating_add(1));
        Ok(Additions { shared: &self.shared, _turn: turn, collections, next, finished: Vec::new() })
    }
}

impl<'a> Additions<'a> {
    /// Begins with one file. `kind` is `warc`, `arc`, `wacz` or `cdxj`. With `copy` it is copied into the archive first.
    pub fn begin(&mut self, path: &Path, collection: &str, kind: &str, copy: bool) -> Result<Addition> {
        let candidate = Candidate::look(path)?;
        let known = self.finished.iter().find(|file| file.from == candidate.path).cloned();
        match known.map_or_else(|| self.collections.judge(&candidate), Verdict::Already) {
            Verdict::Already(file) => Ok(Addition::Already(file)),
            Verdict::Changed(file) => Ok(Addition::Changed(file)),
            Verdict::New(_) => {
                let number = self.next;
                self.next += 1;
                let layout = &self.shared.layout;
                let (path, blake3) = match copy {
                    true => copy_in(layout, &candidate.path, number).map(|(path, hash)| (path, Some(hash)))?,
                    false => (candidate.path.clone(), None),
                };
                let file = CollectionFile {
                    number,
                    collection: collection.to_string(),
                    path,
                    from: candidate.path,
                    size: candidate.size,
                    modified_ms: candidate.modified_ms,
                    kind: kind.to_string(),
                    blake3,
                };
                Ok(Addition::New(Adding::begin(layout, file)?))
            }
        }
    }

    /// Takes back a file whose records have all been pushed.
    pub fn end(&mut self, adding: Adding) -> Result<u64> {
        let records = adding.records;
        self.finished.push(adding.finish()?);
        Ok(records)
    }

    /// Makes the files ended so far part of the archive and lets the views fold them. Others may follow. Returns what the
    /// views could not list.
    pub fn commit(&mut self) -> Result<Vec<Finding>> {
        let shared = self.shared;
        let mut finished = std::mem::take(&mut self.finished);
        finished.sort_by_key(|file| file.number);
        let mut current = shared.collections.write().unwrap_or_else(PoisonError::into_inner);
        let mut collections = current.clone();
        finished.iter().try_for_each(|file| collections.push(file.clone()))?;
        collections.store(&shared.layout)?;
        *current = collections.clone();
        drop(current);
        self.collections = collections;
        let mut batch = Replay::new(&shared.views);
        let mut findings = Vec::new();
        for file in &finished {
            findings.extend(replay(&shared.layout, file, &shared.views, &mut batch)?);
        }
        batch.finish()?;
        shared.views.tend()?;
        Ok(findings)
    }

    /// Adds an ARC, WARC or WACZ file as a whole: begin, describe every record, end. `progress` is told the bytes read.
    pub fn add(&mut self, path: &Path, collection: &str, copy: bool, progress: &mut dyn FnMut(u64)) -> Result<Added> {
        let kind = kind_of(path)?;
        Ok(match self.begin(path, collection, kind, copy)? {
            Addition::Already(file) => Added::Already(file),
            Addition::Changed(file) => Added::Changed(file),
            Addition::New(mut adding) => {
                let Objections { findings, damaged } = adding.describe_all(progress)?;
                let file = adding.file.clone();
                let records = self.end(adding)?;
                Added::New { file, records, findings, damaged }
            }
        })
    }
}

/// What came of [`Additions::add`].
#[derive(Debug)]
pub enum Added {
    /// Nothing to do.
    Already(CollectionFile),
    /// Left out because it changed since it was added.
    Changed(CollectionFile),
    /// Added.
    New {
        /// The file.
        file: CollectionFile,
        /// Records in it.
        records: u64,
        /// What the reader objected to, as text.
        findings: Vec<String>,
        /// Some of it means that bytes were passed over, or a record is not whole.
        damaged: bool,
    },
}

/// What was wrong with a file.
#[derive(Default)]
struct Objections {
    findings: Vec<String>,
    damaged: bool,
}

impl Objections {
    /// Takes what a reader objected to.
    fn take(&mut self, reader: &mut Reader, inside: &str) {
        for finding in reader.take_findings() {
            self.damaged |= finding.rule.severity() == Severity::Damage;
            self.findings.push(format!("{inside}{finding}"));
        }
    }
}

impl Adding {
    fn begin(layout: &Layout, file: CollectionFile) -> Result<Adding> {
        let sidecar = layout.collection_sidecar(file.number);
        let writer = SidecarWriter::create(&part_of(&sidecar), file.name())?;
        let location = file.location(layout);
        Ok(Adding { file, location, sidecar, writer, entries: Vec::new(), records: 0 })
    }

    /// The file as it will be listed.
    pub fn file(&self) -> &CollectionFile {
        &self.file
    }

    /// Where its bytes are.
    pub fn location(&self) -> &Path {
        &self.location
    }

    /// Adds a record: its ordinal in the file, where it stands, what it is. Ordinals ascend.
    pub fn push(&mut self, record: u32, offset: u64, length: u64, note: Note) -> Result<()> {
        self.entries.push(Entry::place(self.file.name().id, record, offset, length, note));
        self.records += 1;
        match self.entries.len() {
            REPLAY_BATCH_ENTRIES => self.flush(),
            _ => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.writer.append(&std::mem::take(&mut self.entries))
    }

    /// What is not needed of a body is stepped over where the file allows it; a check reads all of it.
    fn describe_all(&mut self, progress: &mut dyn FnMut(u64)) -> Result<Objections> {
        let path = self.location.clone();
        let wrong = |error| Error::io("cannot read", &path, error);
        let mut objections = Objections::default();
        if self.file.kind != WACZ {
            let mut reader = Reader::open(&path, Options::skim()).map_err(wrong)?;
            self.describe_records(&mut reader, 0, "", progress, &mut objections)?;
            return Ok(objections);
        }
        // The records of a package are counted through all files inside it.
        for entry in wacz::archives(&path).map_err(wrong)? {
            let mut reader = entry.reader(&path, Options::skim()).map_err(wrong)?;
            let before = self.records;
            let inside = format!("{}: ", entry.name);
            self.describe_records(&mut reader, before, &inside, progress, &mut objections)?;
        }
        Ok(objections)
    }

    fn describe_records(
        &mut self,
        reader: &mut Reader,
        before: u64,
        inside: &str,
        progress: &mut dyn FnMut(u64),
        objections: &mut Objections,
    ) -> Result<()> {
        let path = self.location.clone();
        let wrong = |error| Error::io("cannot read", &path, error);
        let mut head = Head::default();
        while let Some(mut record) = reader.next().map_err(wrong)? {
            let (number, offset) = (u32::try_from(before + record.number()).unwrap_or(u32::MAX), record.offset());
            head.clone_from(record.head());
            let note = describe(&head, &mut record as &mut dyn BufRead).map_err(wrong)?;
            let end = record.finish().map_err(wrong)?;
            self.push(number, offset, end.length, note)?;
            progress(offset + end.length);
        }
        objections.take(reader, inside);
        Ok(())
    }

    fn finish(mut self) -> Result<CollectionFile> {
        self.flush()?;
        self.writer.sync()?;
        let part = part_of(&self.sidecar);
        std::fs::rename(&part, &self.sidecar).map_err(|error| Error::io("cannot rename", &part, error))?;
        settings::sync_folder_of(&self.sidecar)?;
        Ok(self.file)
    }
}

fn kind_of(path: &Path) -> Result<&'static str> {
    let wrong = |error| Error::io("cannot read", path, error);
    if wacz::is_package(path).map_err(wrong)? {
        let entries = wacz::archives(path).map_err(wrong)?;
        return match entries.iter().find(|entry| entry.deflated) {
            None => Ok(WACZ),
            Some(entry) => Err(Error::Refused {
                why: format!(
                    "{} cannot be read in place: {} is compressed a second time by the package; unpack it and add the \
                     WARC files",
                    path.display(),
                    entry.name
                ),
            }),
        };
    }
    let mut reader = Reader::open(path, Options::recover()).map_err(wrong)?;
    match reader.next().map_err(wrong)? {
        Some(record) if record.head().is_arc() => Ok("arc"),
        Some(_) => Ok("warc"),
        None => Err(Error::Refused { why: format!("{} holds no record of an ARC or WARC file", path.display()) }),
    }
}

/// Copies a file under `collections/files`; returns its path inside the archive and the BLAKE3 of its bytes.
fn copy_in(layout: &Layout, from: &Path, number: u32) -> Result<(PathBuf, String)> {
    let name = from.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let inside = Path::new("collections").join("files").join(format!("{number}-{name}"));
    let to = layout.root().join(&inside);
    settings::create_folder(&layout.collections().join("files"))?;
    let copy = || -> std::io::Result<[u8; 32]> {
        let bytes = std::fs::copy(from, &to)?;
        let copied = File::open(&to)?;
        copied.sync_all()?;
        hash(&copied, bytes)
    };
    let hash = copy().map_err(|error| {
        // Half a copy takes the room that is missing.
        let _told_anyway = std::fs::remove_file(&to);
        Error::io("cannot copy to", &to, error)
    })?;
    settings::sync_folder_of(&to)?;
    Ok((inside, hex(&hash)))
}

/// Lets the views fold a file of a collection, unless they have.
pub(crate) fn replay(
    layout: &Layout,
    file: &CollectionFile,
    views: &Views,
    replay: &mut Replay<'_>,
) -> Result<Option<Finding>> {
    let name = file.name();
    let mark = views.mark(name.id)?;
    if mark.is_some_and(|mark| mark.sealed) {
        return Ok(None);
    }
    let sidecar = layout.collection_sidecar(file.number);
    if SidecarReader::open(&sidecar, name)?.is_none() && !reparse(layout, file)? {
        let what = match file.kind.as_str() {
            CDXJ => format!("what an index said of {} is lost", file.path.display()),
            _ => format!("{} is not there, and neither is what was known of it", file.path.display()),
        };
        return Ok(Some(Finding::wrong(&sidecar, None, "collection-lost", what)));
    }
    let mut fold = |mark| {
        let length = sidecar.metadata().map_err(|error| Error::io("cannot look at", &sidecar, error))?.len();
        let covered = Covered { records: u32::MAX, bytes: u64::MAX, sidecar_bytes: length, closed: true };
        replay.sidecar(&file.location(layout), &sidecar, name, covered, mark)
    };
    let replayed = fold(mark)?;
    let Some(torn) = replayed.torn else { return Ok(replayed.unlisted) };
    if !reparse(layout, file)? {
        let what = format!("what is behind is not known of {}: {torn}", file.path.display());
        return Ok(Some(Finding::wrong(&sidecar, None, "collection-damaged", what)));
    }
    // Some of it was seen a moment ago.
    let from = Mark { generation: name.generation, records: 0, bytes: 0, sidecar_bytes: HEADER_BYTES, sealed: false };
    let replayed = fold(Some(from))?;
    let what = "was damaged; written again from its file";
    Ok(Some(replayed.unlisted.unwrap_or_else(|| Finding::mended(&sidecar, None, "sidecar", what))))
}

/// Writes the sidecar of a file of a collection again, if the file is there. Says whether it did. What came from an index stays
/// as the index had it: its order gave the records their numbers. Of a file that is not what it was, a whole sidecar knows more.
pub(crate) fn reparse(layout: &Layout, file: &CollectionFile) -> Result<bool> {
    if file.kind == CDXJ || !file.location(layout).is_file() {
        return Ok(false);
    }
    if !file.is_unchanged(layout) && sidecar_fault(layout, file)?.is_none() {
        return Ok(false);
    }
    let mut adding = Adding::begin(layout, file.clone())?;
    adding.describe_all(&mut |_| ())?;
    adding.finish()?;
    Ok(true)
}

/// Why the sidecar of a file of a collection cannot be read to its end, if it cannot.
pub(crate) fn sidecar_fault(layout: &Layout, file: &CollectionFile) -> Result<Option<Error>> {
    let path = layout.collection_sidecar(file.number);
    let Some(mut reader) = SidecarReader::open(&path, file.name())? else {
        return Ok(Some(Error::damaged(&path, 0, "is missing or belongs to another file", REBUILD)));
    };
    while reader.next_placed(|_| ())? {}
    Ok(reader.torn())
}
