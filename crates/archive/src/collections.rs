//! Collections: archive files from elsewhere. They are read where they are, or copied; they are never modified.
//!
//! `settings/collections.toml` lists the files; the number of a file never changes and is the segment number of its
//! positions, under the writer `00000000`. `collections/<number>.idx` is its sidecar.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::capture::{Position, WriterKey};
use crate::error::{Error, Result};
use crate::layout::{Layout, SegmentId, SegmentName};
use crate::settings;

const VERSION: u32 = 1;
const FILE: &str = "collections.toml";

/// A file of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionFile {
    /// Its number in this archive.
    pub number: u32,
    /// The collection it belongs to.
    pub collection: String,
    /// Absolute, or inside the archive's folder for a copy.
    pub path: PathBuf,
    /// The path it had when it was added; the same unless it was copied.
    pub from: PathBuf,
    /// Bytes when it was added.
    pub size: u64,
    /// When it was last modified, in milliseconds since 1970.
    pub modified_ms: i64,
    /// What it is: `warc`, `arc`, `wacz`, `cdxj`.
    pub kind: String,
    /// Its BLAKE3, if it was computed when it was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blake3: Option<String>,
}

impl CollectionFile {
    /// The name under which its sidecar and positions stand.
    pub fn name(&self) -> SegmentName {
        SegmentName { id: SegmentId { writer: WriterKey::FOREIGN, number: self.number }, generation: 0 }
    }

    /// Where the file is.
    pub fn location(&self, layout: &Layout) -> PathBuf {
        layout.root().join(&self.path)
    }

    /// Whether it was copied into the archive.
    pub fn is_copy(&self) -> bool {
        self.path != self.from
    }

    /// Whether it is there and, as far as size and time tell, what it was when it was added.
    pub fn is_unchanged(&self, layout: &Layout) -> bool {
        let same = |now: Candidate| now.size == self.size && (self.is_copy() || now.modified_ms == self.modified_ms);
        Candidate::look(&self.location(layout)).is_ok_and(same)
    }
}

/// What is known of a file before it is added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its absolute path.
    pub path: PathBuf,
    /// Its bytes.
    pub size: u64,
    /// When it was last modified.
    pub modified_ms: i64,
}

impl Candidate {
    /// Looks at a file.
    pub fn look(path: &Path) -> Result<Candidate> {
        let absolute = path.canonicalize().map_err(|error| Error::io("cannot open", path, error))?;
        let meta = absolute.metadata().map_err(|error| Error::io("cannot look at", path, error))?;
        if !meta.is_file() {
            return Err(Error::Refused { why: format!("{} is not a file", path.display()) });
        }
        let modified = meta.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let modified_ms = modified.map_or(0, |since| since.as_millis() as i64);
        Ok(Candidate { path: absolute, size: meta.len(), modified_ms })
    }
}

/// What adding a file comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It was added before and is as it was.
    Already(CollectionFile),
    /// It was added before and is not what it was then.
    Changed(CollectionFile),
    /// It is new and gets this number.
    New(u32),
}

/// The files of one collection, for asking of many captures whether they belong to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members(Vec<u32>);

impl Members {
    /// Whether the record at a position is in one of them.
    #[inline]
    pub fn hold(&self, position: Position) -> bool {
        position.writer == WriterKey::FOREIGN && self.0.binary_search(&position.segment).is_ok()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// All files of all collections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collections {
    version: u32,
    /// The files, by number.
    #[serde(default, rename = "file")]
    files: Vec<CollectionFile>,
}

impl Default for Collections {
    fn default() -> Collections {
        Collections { version: VERSION, files: Vec::new() }
    }
}

impl Collections {
    /// Reads the settings.
    pub fn load(layout: &Layout) -> Result<Collections> {
        Ok(settings::load(&layout.settings().join(FILE), VERSION)?.unwrap_or_default())
    }

    /// Replaces the settings.
    pub fn store(&self, layout: &Layout) -> Result<()> {
        settings::store(&layout.settings().join(FILE), self, 0o644)
    }

    /// All files.
    pub fn files(&self) -> &[CollectionFile] {
        &self.files
    }

    /// The files of one collection.
    pub fn members(&self, collection: &str) -> Members {
        let files = self.files.iter().filter(|file| file.collection == collection);
        let mut numbers: Vec<u32> = files.map(|file| file.number).collect();
        numbers.sort_unstable();
        Members(numbers)
    }

    /// The file of this number.
    pub fn get(&self, number: u32) -> Option<&CollectionFile> {
        let at = self.files.binary_search_by_key(&number, |file| file.number).ok()?;
        Some(&self.files[at])
    }

    /// What adding `candidate` comes to.
    pub fn judge(&self, candidate: &Candidate) -> Verdict {
        match self.files.iter().find(|file| file.from == candidate.path) {
            Some(file) if (file.size, file.modified_ms) == (candidate.size, candidate.modified_ms) => {
                Verdict::Already(file.clone())
            }
            Some(file) => Verdict::Changed(file.clone()),
            None => Verdict::New(self.files.last().map_or(1, |file| file.number.saturating_add(1))),
        }
    }

    /// Adds a file; its number must be the one that [`Collections::judge`] gave.
    pub fn push(&mut self, file: CollectionFile) -> Result<()> {
        if self.files.last().is_some_and(|last| last.number >= file.number) {
            return Err(Error::Refused { why: format!("file number {} is taken", file.number) });
        }
        self.files.push(file);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(number: u32, path: &str) -> CollectionFile {
        CollectionFile {
            number,
            collection: "c".into(),
            path: path.into(),
            from: path.into(),
            size: 10,
            modified_ms: 5,
            kind: "warc".into(),
            blake3: None,
        }
    }

    #[test]
    fn a_file_is_added_once_and_noticed_when_it_changes() {
        let mut collections = Collections::default();
        let candidate = Candidate { path: "/a".into(), size: 10, modified_ms: 5 };
        assert_eq!(collections.judge(&candidate), Verdict::New(1));
        collections.push(file(1, "/a")).unwrap();
        assert_eq!(collections.judge(&candidate), Verdict::Already(file(1, "/a")));
        let grown = Candidate { size: 11, ..candidate.clone() };
        assert_eq!(collections.judge(&grown), Verdict::Changed(file(1, "/a")));
        let other = Candidate { path: "/b".into(), ..candidate };
        assert_eq!(collections.judge(&other), Verdict::New(2));
        assert!(collections.push(file(1, "/b")).is_err());
    }

    #[test]
    fn the_list_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        settings::create_folder(&layout.settings()).unwrap();
        assert_eq!(Collections::load(&layout).unwrap(), Collections::default());
        let mut collections = Collections::default();
        collections.push(file(1, "/a \"b\"\n")).unwrap();
        collections.push(CollectionFile { blake3: Some("ab".into()), ..file(7, "/c") }).unwrap();
        collections.store(&layout).unwrap();
        let read = Collections::load(&layout).unwrap();
        assert_eq!(read, collections);
        assert_eq!(read.get(7).map(|file| file.path.clone()), Some("/c".into()));
        assert_eq!(read.get(2), None);
    }
}
