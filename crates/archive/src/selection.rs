//! A part of the archive: everything of a stretch of URLs, of a span of time, of a collection, with what was asked and noted when
//! it was fetched. For whoever takes records away in the order in which they stand.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use skep_url::Scan;
use xxhash_rust::xxh3::xxh3_64;

use crate::archive::Archive;
use crate::capture::{Capture, WriterKey};
use crate::captures::Match;
use crate::error::{Error, Result};
use crate::layout::SegmentId;
use crate::limits::FETCH_MS_MAX;
use crate::sidecar::{Note, REBUILD, SidecarReader};
use crate::views::is_listed;

/// What is meant. Nothing said means everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Which URLs.
    pub scan: Option<Scan>,
    /// Not before this time.
    pub from_ms: Option<i64>,
    /// Not after this time.
    pub to_ms: Option<i64>,
    /// Only files of this collection.
    pub collection: Option<String>,
}

/// A segment, or a file from elsewhere, that holds something of a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// Which one.
    pub id: SegmentId,
    /// How many captures of the selection the index lists in it.
    pub captures: u64,
    /// How many bytes these take there.
    pub bytes: u64,
}

impl Selection {
    /// Whether URL and time of a capture are meant. Which collection it belongs to, its file says.
    pub fn holds(&self, capture: &Capture) -> bool {
        self.in_time(capture.time_ms) && self.scan.as_ref().is_none_or(|scan| scan.contains_key(&capture.key))
    }

    fn in_time(&self, time_ms: i64) -> bool {
        self.from_ms.is_none_or(|from| from <= time_ms) && self.to_ms.is_none_or(|to| time_ms <= to)
    }

    /// The keys that are meant.
    pub fn matching(&self) -> Match {
        self.scan.as_ref().map_or(Match::All, Match::of)
    }
}

impl Archive {
    /// The segments and files that hold something of a selection, by writer and number.
    pub fn holding(&self, selection: &Selection) -> Result<Vec<Holding>> {
        let collections = self.collections();
        let belongs = |id: SegmentId| match &selection.collection {
            None => true,
            Some(name) => {
                id.writer == WriterKey::FOREIGN
                    && collections.get(id.number).is_some_and(|file| file.collection == *name)
            }
        };
        let mut found: BTreeMap<SegmentId, Option<Holding>> = BTreeMap::new();
        self.views().captures.each(&selection.matching(), |row| {
            if selection.in_time(row.time_ms()) {
                let id = SegmentId::from(row.position());
                let new = || belongs(id).then_some(Holding { id, captures: 0, bytes: 0 });
                if let Some(holding) = found.entry(id).or_insert_with(new) {
                    holding.captures += 1;
                    holding.bytes += row.length();
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(found.into_values().flatten().collect())
    }

    /// Shows what of a selection a segment or file holds to `look`, in the order in which it stands there: the captures that are
    /// not hidden and that `shows` admits, and the requests and notes of the same fetches.
    pub fn each_selected<E: From<Error>>(
        &self,
        id: SegmentId,
        selection: &Selection,
        shows: &dyn Fn(&Capture) -> bool,
        mut look: impl FnMut(&Capture) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let admitted =
            |capture: &Capture| selection.holds(capture) && !self.views().is_hidden(capture.position) && shows(capture);
        // Whoever hides a capture does not want to tell that it was asked for either.
        let mut fetched: BTreeSet<(u64, i64)> = BTreeSet::new();
        self.each_in_file(id, |capture| {
            if is_listed(capture) && admitted(capture) {
                fetched.insert((xxh3_64(capture.key.as_bytes()), capture.time_ms));
            }
            Ok::<(), E>(())
        })?;
        let of_a_fetch = |capture: &Capture| {
            let (key, time) = (xxh3_64(capture.key.as_bytes()), capture.time_ms);
            let near = (key, time.saturating_sub(FETCH_MS_MAX))..=(key, time.saturating_add(FETCH_MS_MAX));
            fetched.range(near).next().is_some()
        };
        self.each_in_file(id, |capture| {
            if admitted(capture) && (is_listed(capture) || of_a_fetch(capture)) { look(capture) } else { Ok(()) }
        })
    }

    /// Every record about a URL in a segment or file, as its sidecar has it. A sidecar that does not name all it should is an error:
    /// what is not shown would be left out in silence.
    pub(crate) fn each_in_file<E: From<Error>>(
        &self,
        id: SegmentId,
        mut look: impl FnMut(&Capture) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let (_, sidecar, name) = self.shared.file(id)?;
        let mark = self.views().mark(id)?.filter(|mark| mark.generation == name.generation);
        let missing = || Error::damaged(&sidecar, 0, "is missing or belongs to another file", REBUILD);
        let mut reader = SidecarReader::open(&sidecar, name)?.ok_or_else(missing)?;
        while let Some(entries) = reader.next_frame()? {
            for entry in &entries {
                if let Note::Capture(capture) = &entry.note {
                    look(capture)?;
                }
            }
        }
        let short = || Error::damaged(&sidecar, reader.valid_length(), "names less than it did", REBUILD);
        match reader.torn() {
            // A segment may grow while it is looked at, a file from elsewhere does not.
            Some(torn) if id.writer == WriterKey::FOREIGN => Err(torn.into()),
            torn if mark.is_some_and(|mark| reader.valid_length() < mark.sidecar_bytes) => {
                Err(torn.unwrap_or_else(short).into())
            }
            _ => Ok(()),
        }
    }
}
