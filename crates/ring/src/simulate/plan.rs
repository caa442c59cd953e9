//! What a scenario does to the machines: crashes, losses, joins, cuts, rot.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::world::{Happening, World};
use crate::copy::Segment;
use crate::fact::{Fact, SignedRecord};
use crate::genesis::Slice;
use crate::key::Key;
use crate::message::SPEAKS;
use crate::node::Event;
use crate::roster::Index;
use crate::view::View;

/// What a scenario has in store.
#[derive(Clone, Debug)]
pub enum Plan {
    /// A machine stops; its disk stays.
    Crash(usize),
    /// It starts again.
    Restart(usize),
    /// It starts again with a program that speaks the newest protocol.
    Upgrade(usize),
    /// It is lost with its disk.
    Lose(usize),
    /// A node joins: one that was made but is not known yet.
    Join(usize),
    /// A node wants to leave.
    Leave(usize),
    /// The network falls into parts: nodes of different numbers do not reach each other.
    Split(Vec<u8>),
    /// One direction between two nodes is cut.
    OneWay(usize, usize),
    /// All cuts are gone.
    Heal,
    /// A bit flips in some sealed segment of a node.
    Flip(usize),
    /// Rosters of all nodes that are there must be equal now.
    CompareRosters,
    /// Whom the ring wishes for leads now.
    CompareLeaders,
    /// In a world that shares one view: the watchers of a node find it silent.
    Notice(usize),
    /// Everything acknowledged is looked for.
    CheckLosses,
}

/// Who finds nobody to join tries again after so long.
const TRY_AGAIN_MS: u64 = 60_000;

impl World {
    pub(super) fn do_plan(&mut self, plan: Plan) {
        match plan {
            Plan::Crash(node) => self.crash(node),
            Plan::Restart(node) => self.restart(node),
            Plan::Upgrade(node) => self.upgrade(node),
            Plan::Lose(node) => self.lose(node),
            Plan::Join(node) => self.join(node),
            Plan::Leave(node) => self.handle(node, Event::Leave),
            Plan::Split(part) => self.part = part,
            Plan::OneWay(from, to) => {
                self.cut.insert((from, to));
            }
            Plan::Heal => {
                self.part.iter_mut().for_each(|part| *part = 0);
                self.cut.clear();
            }
            Plan::Flip(node) => self.flip(node),
            Plan::CompareRosters => self.compare_rosters(),
            Plan::CompareLeaders => self.compare_leaders(),
            Plan::Notice(node) => self.notice(node),
            Plan::CheckLosses => self.check_losses(),
        }
    }

    /// Others hear of it as of an address that has changed.
    fn upgrade(&mut self, node: usize) {
        self.crash(node);
        self.nodes[node].record.protocol = SPEAKS;
        self.restart(node);
        let record = self.nodes[node].record.clone();
        self.handle(node, Event::Moved { addresses: record.addresses, relay: record.relay, portal: record.portal });
    }

    fn lose(&mut self, node: usize) {
        self.crash(node);
        let key = self.nodes[node].seal.key();
        let slices: Vec<Slice> = self.nodes[node].links.keys().copied().collect();
        for slice in &slices {
            let holds = self.nodes[node].links[slice].last().is_some_and(|link| link.holders.nodes.contains(&key));
            if holds {
                self.missing.insert((*slice, key), self.now_ms);
            }
        }
        let sim = &mut self.nodes[node];
        sim.disk.lose();
        sim.dead = Some(self.now_ms);
        slices.into_iter().for_each(|slice| self.check_losses_of(slice));
        if self.shared.is_some() {
            // Three pings without an answer, then votes; as long as the full machinery takes.
            let after = 30_000 + self.chance.below(30_000);
            self.plan(after, Plan::Notice(node));
        }
    }

    /// A machine comes back; where all share one view it says so at once, as it would when it heard that it is called absent.
    fn restart(&mut self, node: usize) {
        self.start(node);
        if self.shared.is_some() && self.nodes[node].dead.is_none() {
            self.announce(node);
            self.tell_whom_it_concerns(self.nodes[node].seal.key(), false);
        }
    }

    /// A node that was made enters: whoever its ticket names and answers takes its record in, and tells it of everybody.
    fn join(&mut self, node: usize) {
        if self.shared.is_some() {
            self.start(node);
            self.announce(node);
            self.tell_whom_it_concerns(self.nodes[node].seal.key(), true);
            return;
        }
        if self.nodes[node].life > 0 {
            // It is a member already.
            self.start(node);
            return;
        }
        let answers = |other: &usize| {
            let view = self.nodes[*other].view.as_ref();
            view.is_some_and(|view| view.roster.len() > 1) && self.reaches(node, *other) && self.reaches(*other, node)
        };
        let Some(host) = (0..self.nodes.len()).filter(|other| *other != node).find(answers) else {
            // Whoever has a ticket tries again.
            self.plan(TRY_AGAIN_MS, Plan::Join(node));
            return;
        };
        // Records first: an absence says nothing about a node that is not known.
        let (mut facts, others): (Vec<Fact>, Vec<Fact>) =
            (self.view_of(host).roster.facts()).map(|(_, fact)| fact).partition(|fact| matches!(fact, Fact::Record(_)));
        facts.extend(others);
        let sim = &mut self.nodes[node];
        sim.facts = facts;
        let record = SignedRecord::new(sim.record.clone(), sim.seal.as_ref());
        self.start(node);
        self.handle(host, Event::Learn(vec![Fact::Record(Arc::new(record))]));
    }

    /// A newer record of a node enters the view that all share.
    fn announce(&mut self, node: usize) {
        let now = self.clock(node);
        let sim = &mut self.nodes[node];
        let Some(view) = self.shared.as_mut() else { return };
        let known = view.roster.record_of(&sim.seal.key()).map_or(0, |record| record.record.sequence);
        sim.record.sequence = sim.record.sequence.max(known) + 1;
        sim.record.signed_ms = now.wall_ms;
        let record = SignedRecord::new(sim.record.clone(), sim.seal.as_ref());
        let fact = Fact::Record(Arc::new(record));
        view.learn(&fact, sim.seal.as_ref(), now.mono_ms, now.wall_ms, &self.options.settings);
    }

    /// In a shared view: watchers vote, the proof is made by their machines, and everybody concerned is told.
    fn notice(&mut self, node: usize) {
        let key = self.nodes[node].seal.key();
        if self.nodes[node].core.is_some() {
            return;
        }
        let Some(view) = self.shared.as_ref() else { return };
        let Some(index) = view.roster.index(&key) else { return };
        let watchers: Vec<Index> = view.watchers.judges(&view.roster, index);
        let watchers: Vec<usize> =
            watchers.into_iter().filter_map(|index| self.of_key.get(&view.roster.key(index)).copied()).collect();
        for watcher in watchers {
            self.handle(watcher, Event::Silent { node: key });
        }
        self.tell_whom_it_concerns(key, false);
    }

    fn tell_whom_it_concerns(&mut self, key: Key, joined: bool) {
        let Some(view) = self.shared.as_ref() else { return };
        let Some(index) = view.roster.index(&key) else { return };
        let slices = if joined { affected(view, index) } else { Vec::new() };
        let mut hearers: BTreeSet<usize> = BTreeSet::new();
        if joined {
            for slice in slices {
                let holders = view.table.holders(slice);
                hearers.extend(holders.iter().filter_map(|holder| self.of_key.get(&view.roster.key(*holder)).copied()));
            }
        } else if let Some(node) = self.of_key.get(&key) {
            for slice in self.nodes[*node].links.keys() {
                let holders = view.table.holders(*slice);
                hearers.extend(holders.iter().filter_map(|holder| self.of_key.get(&view.roster.key(*holder)).copied()));
            }
        }
        for hearer in hearers {
            let life = self.nodes[hearer].life;
            let event = if joined { Event::Rewish } else { Event::Changed { node: key } };
            let after = 5000 + self.chance.below(5000);
            self.at(self.now_ms + after, Happening::Tell { to: hearer, life, event: Box::new(event) });
        }
    }

    fn flip(&mut self, node: usize) {
        let sealed: Vec<(Slice, Segment)> = self.nodes[node]
            .disk
            .all()
            .filter(|(_, blob)| blob.extent.seal.is_some())
            .map(|(slice, blob)| (slice, blob.extent.segment))
            .collect();
        if let Some((slice, segment)) = self.chance.pick(&sealed).copied() {
            if let Some(blob) = self.nodes[node].disk.get_mut(slice, &segment) {
                blob.altered = true;
            }
            self.auditor.rotten.insert((node, slice, segment), self.now_ms);
            // Its own check finds it within the hour, and takes the segment out.
            self.nodes[node].disk.remove(slice, &segment);
            let after = self.chance.below(3_600_000);
            self.tell(node, after, Event::Damaged { slice, segment });
        }
    }
}

/// Slices in whose wish a node is.
pub fn affected(view: &View, node: Index) -> Vec<Slice> {
    let genesis = view.roster.genesis();
    let copies = usize::from(genesis.copies);
    let mut slices = BTreeSet::new();
    for place in view.ring.places(&view.roster, node) {
        let mut slice = genesis.slice_of(place);
        loop {
            let (wish, _) = view.ring.wish(slice, genesis.slice_bits, copies, |index| view.roster.is_present(index));
            if !wish.contains(&node) || !slices.insert(slice) {
                break;
            }
            slice = if slice == 0 { genesis.slices() - 1 } else { slice - 1 };
        }
    }
    slices.into_iter().collect()
}
