//! What is done now and then: relays are looked at; instructions are compared with somebody, and followed; and sealed segments are read again, one after
//! the other, so that damage is found before the last good copy is gone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use skep_archive::layout::SegmentId;
use skep_archive::{State, WriterKey};

use super::pull::name_of;
use super::{Shell, instead, lock, relays};
use crate::copy::Segment;
use crate::limits::SCRUB_STEP_MS;
use crate::message::Range;
use crate::node::{Event, Note, What};

impl Shell {
    pub(super) fn tend(self: &Arc<Shell>) {
        let mut last: Option<SegmentId> = None;
        let mut reached = relays::Looked::never(Instant::now());
        let mut compare = Instant::now();
        let mut scrub = Instant::now();
        let mut turn = 0;
        let mut looked = instead::Looked::new();
        while !self.rest(Duration::from_millis(SCRUB_STEP_MS.min(self.settings.compare_ms))) {
            let now = Instant::now();
            self.look_for_room();
            self.look_at_relays(&mut reached, now);
            if now >= compare {
                compare = now + Duration::from_millis(self.settings.compare_ms);
                let others = self.others();
                if !others.is_empty() {
                    turn += 1;
                    self.compare_instructions(others[turn % others.len()]);
                }
                // Where the disk was full, or that which was removed came only now.
                self.follow_removals();
                self.remove_instead(&mut looked);
            }
            if now >= scrub {
                let sealed = self.sealed();
                let next = sealed.iter().find(|id| last.is_none_or(|last| **id > last)).or(sealed.first()).copied();
                if let Some(id) = next {
                    self.look_at(id);
                    last = Some(id);
                }
                // All of them once in the time of an audit.
                let step_ms = self.settings.audit_ms / (sealed.len() as u64 + 1);
                scrub = now + Duration::from_millis(step_ms);
            }
        }
    }

    /// Without room on its disk a node leads nothing: others do, and it answers for what it has.
    fn look_for_room(&self) {
        let full = !self.archive.has_room().unwrap_or(true);
        if self.full.swap(full, Ordering::Relaxed) == full {
            return;
        }
        let why = match full {
            true => "no room on the disk: this node leads and copies nothing before there is more",
            false => "there is room on the disk again",
        };
        self.note(&Note { what: What::Full, peer: None, slice: None, why });
        let _awake_already = self.events.try_send(Event::Tick);
    }

    /// Waits; true when the node stops.
    pub(super) fn rest(&self, wait: Duration) -> bool {
        let stopped = lock(&self.stopped);
        if *stopped {
            return true;
        }
        let waited = self.stopping.wait_timeout_while(stopped, wait, |stopped| !*stopped);
        *waited.unwrap_or_else(std::sync::PoisonError::into_inner).0
    }

    fn sealed(&self) -> Vec<SegmentId> {
        let segments = self.archive.segments().into_iter();
        segments
            .filter(|segment| segment.state == State::Sealed && segment.name.id.writer != WriterKey::FOREIGN)
            .map(|segment| segment.name.id)
            .collect()
    }

    /// What others asked for could not be read: segments that do not verify are copied anew.
    pub(super) fn look_at_those(&self, ranges: &[Range]) {
        let asked: BTreeSet<SegmentId> = ranges.iter().map(|range| name_of(&range.segment).id).collect();
        self.sealed().into_iter().filter(|id| asked.contains(id)).for_each(|id| self.look_at(id));
    }

    /// Reads a sealed segment; one that does not verify is copied anew from others.
    fn look_at(&self, id: SegmentId) {
        let Ok(findings) = self.archive.verify(id) else { return };
        if findings.is_empty() {
            return;
        }
        let segment = self.archive.segments().into_iter().find(|segment| segment.name.id == id);
        if let Some(found) = segment.filter(|segment| segment.half.bits() == self.genesis().slice_bits) {
            let segment = Segment {
                writer: id.writer.0,
                number: id.number,
                half: found.half.half(),
                generation: found.name.generation,
            };
            self.tell(Event::Damaged { slice: found.half.prefix(), segment });
        }
    }
}
