//! Letting go of a slice: others hold it, so its copy here may be deleted.

use std::sync::PoisonError;

use crate::archive::Archive;
use crate::catalog::{Segment, State};
use crate::error::{Error, Result};
use crate::follow::Growth;
use crate::layout::SegmentId;
use crate::rewrite::delete_generation;

impl Archive {
    /// `growth` is told whenever more of a segment is synced and seen by the views, ours and copies alike.
    pub fn tell_growth(&self, growth: Option<Growth>) {
        self.shared.following.tell_growth(growth);
    }

    /// Closes the open segments of these sites: they are complete then wherever they are copied to, also when the writer lets them go. A
    /// copy that was never closed could not be taken back by its writer, who alone could say how it ends.
    pub fn seal_sites(&self, first_site: u32, last_site: u32) -> Result<()> {
        let open: Vec<SegmentId> = {
            let catalog = self.shared.catalog();
            let meant = |segment: &&Segment| {
                let (first, end) = segment.half.range();
                segment.state == State::Open && first_site <= first && end <= last_site
            };
            catalog.all().filter(meant).map(|segment| segment.name.id).collect()
        };
        open.into_iter().try_for_each(|id| self.shared.seal(Some(id)))
    }

    /// Deletes the segments of these sites, and forgets the captures in them. Returns how many there were. The last segment that was
    /// written here stays, because the next one is numbered after it.
    pub fn let_go(&self, first_site: u32, last_site: u32) -> Result<usize> {
        if self.shared.read_only {
            return Err(Error::NotWritable { why: "the archive was opened for reading only" });
        }
        let own = self.writer();
        let segments: Vec<Segment> = {
            let catalog = self.shared.catalog();
            let last = catalog.next_number(own).saturating_sub(1);
            let meant = |segment: &&Segment| {
                let (first, end) = segment.half.range();
                let stays = segment.name.id.writer == own && segment.name.id.number == last;
                first_site <= first && end <= last_site && !stays
            };
            catalog.all().filter(meant).cloned().collect()
        };
        self.seal_sites(first_site, last_site)?;
        self.settle()?;
        let _one_at_a_time = self.shared.rewriting.lock().unwrap_or_else(PoisonError::into_inner);
        let gone: std::collections::HashSet<_> = segments.iter().map(|segment| segment.name.id).collect();
        // First nobody finds them, then they are gone: a crash in between leaves files that the next opening finds again.
        let views = self.views();
        views.captures.compact(|row| !gone.contains(&row.position().into()))?;
        let mut batch = views.batch();
        gone.iter().for_each(|id| batch.unmark(*id));
        batch.commit()?;
        for segment in &segments {
            self.shared.catalog.write().unwrap_or_else(PoisonError::into_inner).remove(segment.name.id);
            delete_generation(&segment.path)?;
        }
        Ok(segments.len())
    }
}
