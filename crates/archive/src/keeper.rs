//! The keeper: finishes in the background what a crash left half done, so that opening is quick.
//!
//! Closing a segment needs the BLAKE3 of all its bytes, which nobody kept: a gigabyte is read again. Meanwhile the
//! segment can be read, new records go to a new one, and another crash only means that the next keeper begins again.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, PoisonError};

use skep_warc::deflate::Level;

use crate::archive::Shared;
use crate::capture::Position;
use crate::catalog::{Segment, State};
use crate::check;
use crate::closing::Closing;
use crate::error::{Error, Result};
use crate::finding::Finding;
use crate::follow::SegmentCommit;
use crate::layout::{Found, SegmentId, sidecar_of};
use crate::recover::covered;
use crate::rewrite::{self, RewritePlan};
use crate::sidecar::{Entry, Note};

/// Works on segments that nobody appends to.
pub(crate) struct Keeper {
    pub shared: Arc<Shared>,
}

impl Keeper {
    /// Closes what has no closing record, deletes what is replaced, finishes removals. Returns what could not be done;
    /// the next opening tries again.
    pub fn run(&self, unclosed: Vec<Segment>, replaced: Vec<Found>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for segment in unclosed {
            if let Err(error) = self.close(&segment) {
                findings.push(undone(&segment, "unclosed", &error));
            }
        }
        for file in replaced {
            findings.extend(self.delete_replaced(&file).unwrap_or_else(|error| Some(found_undone(&file, &error))));
        }
        let pending = self.shared.views.hidden_with_block().unwrap_or_default();
        findings.extend(self.blank(pending));
        findings
    }

    /// Ends a segment of ours with its closing record, at the length that recovery verified.
    fn close(&self, segment: &Segment) -> Result<()> {
        let sidecar = sidecar_of(&segment.path);
        let incomplete = || Error::damaged(&sidecar, 0, "does not describe its segment", "open the archive again");
        let covered = covered(&sidecar, segment.name)?.ok_or_else(incomplete)?;
        let io = |error| Error::io("cannot close", &segment.path, error);
        let file = File::options().read(true).write(true).open(&segment.path).map_err(io)?;
        let closing = Closing {
            segment: segment.name,
            half: segment.half,
            records: covered.records,
            bytes: covered.bytes,
            blake3: hash(&file, covered.bytes).map_err(io)?,
            replaces: None,
            removals: Vec::new(),
            instead: None,
        };
        let member = closing.encode(&self.shared.identity, (self.shared.clock)())?;
        file.write_all_at(&member, covered.bytes).and_then(|()| file.sync_data()).map_err(io)?;
        let place = (covered.records, covered.bytes, member.len() as u64);
        let entries = vec![Entry::place(segment.name.id, place.0, place.1, place.2, Note::Closing)];
        let Segment { name, path, .. } = segment.clone();
        self.set_state(name.id, State::Sealed);
        self.shared
            .following
            .put(vec![SegmentCommit { name, path, entries, sealed: true, sidecar_bytes: None }], |_| ())
    }

    /// Deletes an older generation, once the newer one is proven whole.
    fn delete_replaced(&self, file: &Found) -> Result<Option<Finding>> {
        let current = self.shared.catalog().get(file.name.id).cloned();
        let whole = match &current {
            Some(current) if current.name.generation > file.name.generation => check::seal(current)?.is_empty(),
            _ => false,
        };
        if !whole {
            return Ok(Some(crate::opening::replaced_finding(file)));
        }
        rewrite::delete_generation(&file.path)?;
        Ok(None)
    }

    /// Rewrites segments of ours so that these records, which are hidden already, lose their block. What stands in files of others is left to
    /// them. A body that is pinned stays until those who refer to it have their own.
    pub fn blank(&self, mut positions: Vec<Position>) -> Vec<Finding> {
        let _one_at_a_time = self.shared.rewriting.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = self.shared.identity.writer();
        positions.retain(|position| position.writer == ours);
        let mut findings = Vec::new();
        let pinned = self.pinned(&positions);
        let mut by_segment: BTreeMap<SegmentId, Vec<u32>> = BTreeMap::new();
        for position in positions {
            match &pinned {
                Ok(pinned) if pinned.contains(&position) => {}
                Ok(_) => by_segment.entry(position.into()).or_default().push(position.record),
                // Nothing goes of which it is not known whether somebody needs it.
                Err(error) => {
                    let segment = self.shared.catalog().get(position.into()).cloned();
                    findings.extend(segment.map(|segment| undone(&segment, "removal", error)));
                    return findings;
                }
            }
        }
        for (id, records) in by_segment {
            let segment = self.shared.catalog().get(id).cloned();
            let Some(segment) = segment else { continue };
            if let Err(error) = self.replace(&segment, &records, None) {
                findings.push(undone(&segment, "removal", &error));
            }
        }
        findings
    }

    /// Of these records, which are hidden, those that somebody pinned. Whoever pins one later sees that it is hidden.
    fn pinned(&self, positions: &[Position]) -> Result<HashSet<Position>> {
        let _nobody_pins_meanwhile = self.shared.pinning.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.views.pinned(positions)
    }

    /// Rewrites a segment of ours as planned. Whatever stops it, the segment is either the old one or the new one.
    pub fn rewrite(&self, id: SegmentId, plan: &RewritePlan) -> Result<Segment> {
        let refuse = |why: String| Err(Error::Refused { why });
        if id.writer != self.shared.identity.writer() {
            return refuse(format!("segment {id} is another writer's; only its own writer rewrites it"));
        }
        if *plan == RewritePlan::default() {
            return refuse("a plan to rewrite a segment that changes nothing".into());
        }
        let _one_at_a_time = self.shared.rewriting.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.following.settle()?;
        for record in &plan.blank {
            let position = Position { writer: id.writer, segment: id.number, record: *record };
            if !self.shared.views.is_hidden(position) {
                return refuse(format!("no removal names {position}, so nothing says why it should be blank"));
            }
            if !self.pinned(&[position])?.is_empty() {
                return refuse(format!(
                    "revisits elsewhere stand for the body of {position}, and have none of their own yet"
                ));
            }
        }
        let segment = self.shared.catalog().get(id).cloned();
        let segment = segment.ok_or_else(|| Error::NotFound { what: format!("segment {id}") })?;
        self.replace(&segment, &plan.blank, plan.level)
    }

    /// Puts the next generation in the place of a segment.
    fn replace(&self, segment: &Segment, blank: &[u32], level: Option<Level>) -> Result<Segment> {
        self.shared.seal(Some(segment.name.id))?;
        self.shared.following.settle()?;
        let removals = self.removals_of(segment.name.id, blank)?;
        let (identity, now) = (&self.shared.identity, (self.shared.clock)());
        let rewritten = rewrite::rewrite(segment, &removals, level, identity, now)?;
        // From here on the new file counts; whoever has the old one open reads on in it.
        let mut catalog = self.shared.catalog.write().unwrap_or_else(PoisonError::into_inner);
        catalog.set(rewritten.segment.clone());
        drop(catalog);
        let rewrite::Rewritten { segment, commit, old } = rewritten;
        self.shared.following.put(vec![commit], |_| ())?;
        self.shared.following.settle()?;
        rewrite::delete_generation(&old)?;
        Ok(segment)
    }

    /// Which removal asked for each record.
    fn removals_of(&self, id: SegmentId, records: &[u32]) -> Result<BTreeMap<u32, String>> {
        let position = |record: u32| Position { writer: id.writer, segment: id.number, record };
        records.iter().map(|record| Ok((*record, self.shared.views.removal_of(position(*record))?))).collect()
    }

    fn set_state(&self, id: SegmentId, state: State) {
        self.shared.catalog.write().unwrap_or_else(PoisonError::into_inner).set_state(id, state);
    }
}

/// BLAKE3 of the first `bytes` bytes of a file.
pub(crate) fn hash(file: &File, bytes: u64) -> std::io::Result<[u8; 32]> {
    use std::io::Seek;
    let mut file = file;
    file.rewind()?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 18];
    let mut left = bytes;
    while left > 0 {
        let part = left.min(buffer.len() as u64) as usize;
        file.read_exact(&mut buffer[..part])?;
        hasher.update(&buffer[..part]);
        left -= part as u64;
    }
    Ok(*hasher.finalize().as_bytes())
}

fn undone(segment: &Segment, rule: &'static str, error: &Error) -> Finding {
    Finding::wrong(&segment.path, None, rule, format!("left undone: {error}"))
}

fn found_undone(file: &Found, error: &Error) -> Finding {
    Finding::wrong(&file.path, None, "replaced", format!("could not be deleted: {error}"))
}
