//! A site that is split: its URLs are in several slices, and whoever leads one of those visits it when it has the right to. Two visits are
//! never nearer to each other than to any other site, whoever makes them.

use super::crawl::{GAP_MS, PARK_MS, until_in};
use super::world::{Happening, World};
use crate::genesis::Slice;
use crate::message::Politeness;
use crate::node::Event;
use crate::pace::Site;

/// The site; its home is the first slice.
pub const SITE: Site = 1;
/// Under this name the auditor counts its visits.
pub const COUNTED_AS: Slice = Slice::MAX;
/// How often the right to visit goes back before its time, per visit.
const ENDS_EARLY: f64 = 0.1;
/// How often the site asks to be left alone, per visit.
const PARKS: f64 = 0.03;

/// What a machine knows of the site.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Visits {
    /// The next visit is planned.
    planned: bool,
    /// Since the right to visit came, its gap lasts until then.
    rests_ms: u64,
    /// Until when it wants to be left alone, in true time.
    parked_ms: u64,
}

impl Visits {
    /// Others say until when it wants to be left alone.
    pub(super) fn heed(&mut self, until_ms: u64) {
        self.parked_ms = self.parked_ms.max(until_ms);
    }
}

impl World {
    /// The slices of the site's URLs.
    fn places(&self) -> Vec<Slice> {
        if self.options.split_bits == 0 {
            return Vec::new();
        }
        let mut table = skep_url::Splits::default();
        table.add(SITE, skep_url::Split { bits: self.options.split_bits, since_ms: 0 });
        table.places(SITE).into_iter().map(|place| self.genesis.slice_of(place)).collect()
    }

    fn leads_a_place(&self, node: usize) -> bool {
        let now_ms = self.clock(node).mono_ms;
        let Some(core) = self.nodes[node].core.as_ref() else { return false };
        self.places().into_iter().any(|slice| core.leads(slice, now_ms).is_some())
    }

    /// A lease came or went: with the first of them there is something to visit.
    pub(super) fn look_at_places(&mut self, node: usize, slice: Slice) {
        if self.places().contains(&slice) {
            let wanted = self.leads_a_place(node);
            let back = (!wanted).then(|| self.polite_of_site(node));
            self.tell(node, 5, Event::Pace { site: SITE, wanted, out: false, back });
        }
    }

    fn polite_of_site(&self, node: usize) -> Politeness {
        Politeness::from(&self.nodes[node].large.parked_ms.to_le_bytes()[..])
    }

    /// The right to visit has come: the site is visited when its gap is over, and not while it wants to be left alone, as far as anybody told.
    pub(super) fn begin_large(&mut self, node: usize, politeness: &[Politeness]) {
        let until_ms = politeness.iter().map(|said| until_in(said)).max().unwrap_or(0);
        let (gap_ms, now_ms) = (self.own_gap(node), self.now_ms);
        let sim = &mut self.nodes[node];
        let (life, visits) = (sim.life, &mut sim.large);
        visits.heed(until_ms);
        visits.rests_ms = now_ms + gap_ms;
        if !std::mem::replace(&mut visits.planned, true) {
            self.at(now_ms + gap_ms, Happening::VisitLarge { node, life });
        }
    }

    /// One visit, if the lease and the right to visit allow it: the gates that every leader asks before it fetches.
    pub(super) fn visit_large(&mut self, node: usize) {
        let now_ms = self.clock(node).mono_ms;
        let may = self.nodes[node].core.as_ref().is_some_and(|core| core.may_visit(SITE, now_ms));
        let leads = self.leads_a_place(node);
        let early = self.chance.happens(ENDS_EARLY);
        if !may || !leads || early {
            self.nodes[node].large.planned = false;
            let back = Some(self.polite_of_site(node));
            self.tell(node, 1, Event::Pace { site: SITE, wanted: leads, out: false, back });
            return;
        }
        let (life, gap_ms, rests_ms) = (self.nodes[node].life, self.own_gap(node), self.nodes[node].large.rests_ms);
        if self.now_ms < rests_ms {
            self.at(rests_ms, Happening::VisitLarge { node, life });
            return;
        }
        self.at(self.now_ms + gap_ms, Happening::VisitLarge { node, life });
        if self.now_ms < self.nodes[node].large.parked_ms {
            return;
        }
        self.check_gap(node, COUNTED_AS);
        self.auditor.large.insert(node);
        if self.chance.happens(PARKS) {
            self.nodes[node].large.parked_ms = self.now_ms + PARK_MS;
        }
    }
}

const _: () = assert!(PARK_MS > GAP_MS);
