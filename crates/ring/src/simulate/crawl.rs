//! What leaders do: visits to the site of a slice, each of which writes a little more of a segment. Now and then a site asks to be left
//! alone for longer than a lease lasts, and every leader tells the others, in the words that a lease carries, until when.

use super::actor::Actor;
use super::world::{Happening, Sim, World};
use crate::copy::{Extent, Segment, writer_of};
use crate::genesis::Slice;
use crate::key::Hash;
use crate::message::Politeness;
use crate::node::Event;

/// Between two visits to the site of a slice.
pub const GAP_MS: u64 = 20_000;
/// A site that asks for it is left alone for so long.
pub const PARK_MS: u64 = 10 * 60_000;
/// How often one does, per visit.
const PARKS: f64 = 0.03;
/// A visit brings so many bytes.
const VISIT_BYTES: u64 = 50_000;
/// Visits after which a segment is sealed.
const SEAL_VISITS: u64 = 40;

impl World {
    pub(super) fn own_gap(&self, node: usize) -> u64 {
        GAP_MS * 1_000_000 / self.nodes[node].rate_ppm as u64
    }

    /// One visit to the site of a slice, if the lease allows it: the gate that every leader asks before it fetches.
    pub(super) fn visit(&mut self, node: usize, slice: Slice) {
        let now = self.clock(node);
        let leads = self.nodes[node].core.as_ref().and_then(|core| core.leads(slice, now.mono_ms));
        let Some((epoch, _)) = leads else {
            self.nodes[node].leading.remove(&slice);
            return;
        };
        let life = self.nodes[node].life;
        let parked_ms = self.nodes[node].parked.get(&slice).copied().unwrap_or(0);
        if self.now_ms < parked_ms {
            self.at(parked_ms, Happening::Visit { node, life, slice });
            return;
        }
        let honest = self.nodes[node].actor == Actor::Honest;
        let parked = honest && self.chance.happens(PARKS);
        let wait_ms = if parked { PARK_MS } else { self.own_gap(node) };
        self.at(self.now_ms + wait_ms, Happening::Visit { node, life, slice });
        if !honest {
            return;
        }
        self.check_visit(node, slice, epoch);
        if parked {
            self.nodes[node].parked.insert(slice, self.now_ms + PARK_MS);
            self.tell_polite(node, slice);
        }
        let sim = &mut self.nodes[node];
        let writer = writer_of(&sim.seal.key());
        let next = sim.next_number;
        let (number, visits) = sim.writing.entry(slice).or_insert((next, 0));
        if *visits == 0 {
            sim.next_number += 1;
        }
        *visits += 1;
        let segment = Segment { writer, number: *number, half: 0, generation: 0 };
        let bytes = *visits * VISIT_BYTES;
        let sealed = *visits >= SEAL_VISITS;
        let seal = sealed.then(|| seal_of(&segment));
        if sealed {
            sim.writing.remove(&slice);
        }
        let extent = Extent { segment, bytes, seal };
        sim.disk.put(slice, extent, false);
        self.auditor.held.entry(slice).or_default().insert(node);
        self.tell(node, 50, Event::Grown { slice, extent });
    }

    /// A lease is new: the site is visited when its gap is over, and not while it wants to be left alone, as far as anybody has told.
    pub(super) fn begin_visits(&mut self, node: usize, slice: Slice, politeness: &[Politeness]) {
        let until_ms = politeness.iter().map(|said| until_in(said)).max().unwrap_or(0);
        let gap_ms = self.own_gap(node);
        let sim = &mut self.nodes[node];
        let known = sim.parked.entry(slice).or_default();
        *known = (*known).max(until_ms);
        let life = sim.life;
        if sim.leading.insert(slice) {
            self.at(self.now_ms + gap_ms, Happening::Visit { node, life, slice });
        }
        self.tell_polite(node, slice);
    }

    /// A lease ends; a visit takes no time, so nothing is out.
    pub(super) fn end_visits(&mut self, node: usize, slice: Slice) {
        if self.nodes[node].leading.contains(&slice) {
            self.tell_polite(node, slice);
        }
    }

    /// The machine hears how its site stands, for whoever leads next.
    fn tell_polite(&mut self, node: usize, slice: Slice) {
        let until_ms = self.nodes[node].parked.get(&slice).copied().unwrap_or(0);
        let politeness = Politeness::from(&until_ms.to_le_bytes()[..]);
        self.tell(node, 1, Event::Polite { slice, politeness, out: false });
    }

    /// What a machine writes of a slice is closed.
    pub(super) fn seal(&mut self, node: usize, slice: Slice) {
        if let Some(extent) = close(&mut self.nodes[node], slice) {
            self.tell(node, 50, Event::Grown { slice, extent });
        }
    }
}

fn close(sim: &mut Sim, slice: Slice) -> Option<Extent> {
    let (number, visits) = sim.writing.remove(&slice).filter(|(_, visits)| *visits > 0)?;
    let segment = Segment { writer: writer_of(&sim.seal.key()), number, half: 0, generation: 0 };
    // It may have been lost, or let go.
    sim.disk.get(slice, &segment)?;
    let extent = Extent { segment, bytes: visits * VISIT_BYTES, seal: Some(seal_of(&segment)) };
    sim.disk.put(slice, extent, false);
    Some(extent)
}

/// Closes everything that a machine was writing.
pub(super) fn close_all(sim: &mut Sim) {
    let slices: Vec<Slice> = sim.writing.keys().copied().collect();
    slices.into_iter().for_each(|slice| {
        close(sim, slice);
    });
}

/// Until when a site is to be left alone, in the words that a lease carries.
pub(super) fn until_in(politeness: &[u8]) -> u64 {
    politeness.first_chunk().map_or(0, |until| u64::from_le_bytes(*until))
}

fn seal_of(segment: &Segment) -> Hash {
    Hash::of("sealed", &[u64::from(segment.writer), u64::from(segment.number)].map(u64::to_be_bytes).concat())
}
