//! Replay: views fold what sidecars name and they have not seen.

use std::fs::File;
use std::path::Path;

use crate::error::{Error, Result};
use crate::finding::Finding;
use crate::layout::SegmentName;
use crate::limits::REPLAY_ENTRIES_MAX;
use crate::recover::Covered;
use crate::sidecar::{HEADER_BYTES, SidecarReader};
use crate::views::{Batch, Mark, Views};

/// What came of a sidecar.
#[derive(Debug)]
pub struct Replayed {
    /// Captures that cannot be listed, if there are any.
    pub unlisted: Option<Finding>,
    /// Why it could not be read to its end.
    pub torn: Option<Error>,
}

/// Replays sidecars one after another in large batches, each with the marks of what it holds.
pub struct Replay<'v> {
    views: &'v Views,
    batch: Batch<'v>,
}

impl<'v> Replay<'v> {
    /// Nothing replayed yet.
    pub fn new(views: &'v Views) -> Replay<'v> {
        Replay { views, batch: views.bulk() }
    }

    /// Replays the sidecar of one file from where its mark is. A finding says how many captures cannot be listed. A sidecar that
    /// stops to verify before its end is not marked as seen to its end, and `Replayed` says why.
    pub fn sidecar(
        &mut self,
        file: &Path,
        sidecar: &Path,
        name: SegmentName,
        covered: Covered,
        mark: Option<Mark>,
    ) -> Result<Replayed> {
        let known = mark.filter(|mark| {
            mark.generation == name.generation
                && mark.bytes <= covered.bytes
                && mark.sidecar_bytes <= covered.sidecar_bytes
        });
        let from = known.map_or(HEADER_BYTES, |mark| mark.sidecar_bytes);
        if mark.is_some() {
            // Some of these records may be in the views already; a run must not bring them in again.
            self.switch(self.views.batch())?;
        }
        let mut unlisted = 0;
        let mut records = known.map_or(0, |mark| mark.records);
        let mut bytes = known.map_or(0, |mark| mark.bytes);
        let reader = SidecarReader::open_at(sidecar, name, from)?;
        let mut reader = reader.ok_or_else(|| Error::damaged(sidecar, 0, "is not the sidecar of its file", ""))?;
        while reader.valid_length() < covered.sidecar_bytes {
            let Some(entries) = reader.next_frame()? else { break };
            for entry in &entries {
                unlisted += u64::from(!self.batch.apply(file, name.id, entry)?);
                (records, bytes) = (entry.record.saturating_add(1), entry.end());
            }
            if self.batch.entries() >= REPLAY_ENTRIES_MAX {
                let sidecar_bytes = reader.valid_length();
                self.batch
                    .mark(name.id, Mark { generation: name.generation, records, bytes, sidecar_bytes, sealed: false });
                let seen_before = mark.is_some();
                self.switch(if seen_before { self.views.batch() } else { self.views.bulk() })?;
            }
        }
        let torn = reader.torn();
        if covered.closed {
            let sync = File::open(sidecar).and_then(|file| file.sync_data());
            sync.map_err(|error| Error::io("cannot sync", sidecar, error))?;
        }
        let sidecar_bytes = reader.valid_length();
        let mark_now = Mark {
            generation: name.generation,
            records,
            bytes,
            sidecar_bytes,
            sealed: covered.closed && torn.is_none(),
        };
        self.batch.mark(name.id, mark_now);
        if mark.is_some() {
            self.switch(self.views.bulk())?;
        }
        let what =
            || format!("{unlisted} captures have a URL that is too long to be found by; they are read by position");
        Ok(Replayed { unlisted: (unlisted > 0).then(|| Finding::mended(file, None, "unlisted", what())), torn })
    }

    /// Commits what is replayed so far and goes on with `next`.
    fn switch(&mut self, next: Batch<'v>) -> Result<()> {
        std::mem::replace(&mut self.batch, next).commit()
    }

    /// Commits the rest.
    pub fn finish(self) -> Result<()> {
        self.batch.commit()
    }
}
