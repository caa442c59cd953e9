//! What must hold, whatever happens. The auditor sees all disks and the true time; the nodes see neither.

use std::collections::{BTreeMap, BTreeSet};

use super::actor::Actor;
use super::crawl::GAP_MS;
use super::world::World;
use crate::copy::{Extent, Segment};
use crate::epoch::Epoch;
use crate::fact::Fact;
use crate::genesis::{Slice, majority};
use crate::holding::{Holding, PROOF_ANSWERS};
use crate::key::{Hash, Key};
use crate::limits::CLOCK_OFF_MS_MAX;

/// Within so many leases' time whoever should lead does.
const HANDED_OVER_LEASES: u64 = 4;

/// A rule that was broken, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// Which rule.
    pub rule: Rule,
    /// When, in milliseconds of the world.
    pub at_ms: u64,
    /// What about.
    pub slice: Slice,
    /// More about it.
    pub what: String,
}

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Nothing acknowledged is lost while somebody honest who held it lives.
    NothingLost,
    /// What is acknowledged is synced at a majority of holders.
    Majority,
    /// At most one node leads a slice.
    OneLease,
    /// A lease does not outlive its epoch.
    OldEpoch,
    /// No site is visited before its time.
    Hurried,
    /// Nothing is deleted before enough others hold it.
    Deleted,
    /// Rosters are equal soon after a split has healed.
    Rosters,
    /// A node whose clock is off does not lead.
    Clock,
    /// When nothing has happened for a while, whom the ring wishes for leads.
    Unwished,
}

/// Keeps account.
#[derive(Default)]
pub struct Auditor {
    /// Everything that went wrong.
    pub broken: Vec<Broken>,
    /// How much of each segment was acknowledged.
    pub acknowledged: BTreeMap<(Slice, Segment), u64>,
    /// Who ever had a copy of a slice.
    pub held: BTreeMap<Slice, BTreeSet<usize>>,
    /// Who let which segment go.
    pub let_go: BTreeMap<(Slice, Segment), Vec<usize>>,
    /// Copies that rotted, and when.
    pub rotten: BTreeMap<(usize, Slice, Segment), u64>,
    /// When a site of a slice was visited last.
    pub visited_ms: BTreeMap<Slice, u64>,
    /// Who visited the site that is split.
    pub large: BTreeSet<usize>,
    /// The newest epoch of a slice, since when, and of how many holders.
    pub epochs: BTreeMap<Slice, (Epoch, u64)>,
    /// What a majority of the holders was told of a site, by whoever led: until when it wants to be left alone.
    pub confirmed: BTreeMap<Slice, Confirmed>,
    /// Leaders that began while a site was to be left alone, and knew it from others.
    pub waited: u64,
    /// Slices of which it was looked who leads.
    pub compared: u64,
    /// Visits in all.
    pub visits: u64,
    /// The shortest time between two visits to a site, in milliseconds.
    pub shortest_ms: Option<u64>,
}

/// A wish to be left alone that whoever leads next must hear of.
#[derive(Clone, Copy, Debug)]
pub struct Confirmed {
    /// Until then, in true time.
    pub until_ms: u64,
    /// Who led.
    pub by: usize,
    /// In which epoch: whoever holds a slice in another one may not have been told.
    pub epoch: Epoch,
}

impl Auditor {
    /// Notes that a rule was broken; of each rule a few are enough.
    pub fn broke(&mut self, rule: Rule, at_ms: u64, slice: Slice, what: String) {
        if self.broken.iter().filter(|broken| broken.rule == rule).count() < 5 {
            self.broken.push(Broken { rule, at_ms, slice, what });
        }
    }

    /// Whether a rule was broken.
    pub fn has_broken(&self, rule: Rule) -> bool {
        self.broken.iter().any(|broken| broken.rule == rule)
    }

    /// A new epoch of a slice is known to somebody.
    pub fn epoch(&mut self, slice: Slice, epoch: Epoch, now_ms: u64) {
        let known = self.epochs.entry(slice).or_insert((epoch, now_ms));
        if epoch > known.0 {
            *known = (epoch, now_ms);
        }
    }
}

impl World {
    /// As long as a duration of the machines may last in truth: their clocks run fast or slow, and a message is on its way.
    fn at_most_ms(&self, duration_ms: u64) -> u64 {
        let slowest = (1_000_000 - self.options.drift_ppm) as u64;
        duration_ms * 1_000_000 / slowest + self.options.delay_ms + self.options.jitter_ms + 1
    }

    /// A leader visits the site of a slice: not too soon, not beside another, and not in an epoch that is over.
    pub(super) fn check_visit(&mut self, node: usize, slice: Slice, epoch: Epoch) {
        let now_ms = self.now_ms;
        self.check_gap(node, slice);
        if let Some(confirmed) = self.auditor.confirmed.get(&slice).copied().filter(|one| one.epoch == epoch)
            && now_ms < confirmed.until_ms
        {
            let left = confirmed.until_ms - now_ms;
            let what = format!("node {node} visits what is to be left alone for {left} ms, as {} told", confirmed.by);
            self.auditor.broke(Rule::Hurried, now_ms, slice, what);
        }
        self.check_leaders(node, slice);
        if let Some((newest, since)) = self.auditor.epochs.get(&slice).copied()
            && epoch < newest
            && now_ms - since > self.at_most_ms(self.options.settings.lead_ms())
        {
            let what = format!("node {node} leads in {epoch}, and {newest} began {} s ago", (now_ms - since) / 1000);
            self.auditor.broke(Rule::OldEpoch, now_ms, slice, what);
        }
    }

    /// Whoever visits a site does not do so too soon after the visit before.
    pub(super) fn check_gap(&mut self, node: usize, slice: Slice) {
        let now_ms = self.now_ms;
        self.auditor.visits += 1;
        if let Some(before) = self.auditor.visited_ms.insert(slice, now_ms) {
            let apart = now_ms - before;
            let shortest = &mut self.auditor.shortest_ms;
            *shortest = Some(shortest.map_or(apart, |shortest| shortest.min(apart)));
            // The gap as the fastest clock measures it.
            let least = GAP_MS * 1_000_000 / (1_000_000 + self.options.drift_ppm) as u64 - 1;
            if apart < least {
                let what = format!("node {node} after {apart} ms of {GAP_MS}");
                self.auditor.broke(Rule::Hurried, now_ms, slice, what);
            }
        }
    }

    /// A lease is granted: what was said with the request is known to a majority of the holders; liars may keep it to themselves. Who renews
    /// one has said before what sites want; who begins has heard it.
    pub(super) fn auditor_hears(&mut self, node: usize, slice: Slice, epoch: Epoch, renewed: bool) {
        let honest = |holder: &usize| self.nodes[*holder].actor == Actor::Honest;
        if !self.auditor.held.get(&slice).into_iter().flatten().all(honest) {
            return;
        }
        let confirmed = self.auditor.confirmed.get(&slice).copied();
        if renewed {
            let Some(until_ms) = self.nodes[node].asked.get(&slice).copied() else { return };
            self.auditor.confirmed.insert(slice, Confirmed { until_ms, by: node, epoch });
        } else if confirmed.is_some_and(|one| one.by != node && one.epoch == epoch && self.now_ms < one.until_ms) {
            self.auditor.waited += 1;
        }
    }

    /// At most one honest node leads.
    pub(super) fn check_leaders(&mut self, node: usize, slice: Slice) {
        if self.nodes[node].actor != Actor::Honest {
            return;
        }
        if self.nodes[node].off_ms.abs() > CLOCK_OFF_MS_MAX {
            self.auditor.broke(Rule::Clock, self.now_ms, slice, format!("node {node}"));
        }
        let leads = |other: &usize| {
            let sim = &self.nodes[*other];
            let now = self.clock(*other);
            let leads = sim.core.as_ref().and_then(|core| core.leads(slice, now.mono_ms));
            *other != node && sim.actor == Actor::Honest && leads.is_some()
        };
        let beside = self.auditor.held.get(&slice).into_iter().flatten().copied().find(leads);
        if let Some(other) = beside {
            self.auditor.broke(Rule::OneLease, self.now_ms, slice, format!("nodes {node} and {other}"));
        }
    }

    /// A leader says that something is safe: a majority of the holders must have it, liars and the dead apart.
    pub(super) fn acknowledged(&mut self, node: usize, slice: Slice, segment: Segment, bytes: u64) {
        if self.nodes[node].actor != Actor::Honest {
            return;
        }
        let holders = match self.nodes[node].core.as_ref().and_then(|core| core.holding(slice)) {
            Some(holding) => holding.latest().nodes.clone(),
            None => return,
        };
        let has = |key: &Key| {
            self.of_key.get(key).is_some_and(|holder| {
                let sim = &self.nodes[*holder];
                sim.actor != Actor::Honest || sim.dead.is_some() || sim.disk.holds(slice, &segment, bytes)
            })
        };
        let count = holders.iter().filter(|key| has(key)).count();
        if count < majority(holders.len()) {
            let what = format!("{segment:?} up to {bytes} is at {count} of {}", holders.len());
            self.auditor.broke(Rule::Majority, self.now_ms, slice, what);
        }
        let known = self.auditor.acknowledged.entry((slice, segment)).or_default();
        *known = (*known).max(bytes);
    }

    /// A copy is let go: as many others as there should be copies have it, or had it when they last proved it.
    pub(super) fn delete(&mut self, node: usize, slice: Slice) {
        self.figures.deleted += 1;
        let copies = usize::from(self.view_of(node).roster.genesis().copies);
        let held: Vec<Extent> =
            self.nodes[node].disk.slice(slice).filter(|blob| !blob.altered).map(|blob| blob.extent).collect();
        let others: Vec<usize> =
            self.auditor.held.get(&slice).into_iter().flatten().copied().filter(|other| *other != node).collect();
        // A proof counts for so long; who died or rotted since then had given it in truth.
        let proof_ms = self.at_most_ms(PROOF_ANSWERS * self.options.settings.answer_ms);
        if self.nodes[node].actor == Actor::Honest {
            for extent in held {
                self.auditor.let_go.entry((slice, extent.segment)).or_default().push(node);
                let holds = |other: &&usize| {
                    let sim = &self.nodes[**other];
                    let rotten = self.auditor.rotten.get(&(**other, slice, extent.segment)).copied();
                    let lately = [sim.dead, rotten].into_iter().flatten().any(|at| self.now_ms - at <= proof_ms);
                    sim.actor != Actor::Claims && (lately || sim.disk.holds(slice, &extent.segment, extent.bytes))
                };
                let count = others.iter().filter(holds).count();
                if count < copies {
                    let state = |other: &usize| {
                        let sim = &self.nodes[*other];
                        let epoch = sim.links.get(&slice).and_then(|links| links.last()).map(|link| link.holders.epoch);
                        format!("{other}: {epoch:?} there {} has {}", sim.core.is_some(), holds(&other))
                    };
                    let states: Vec<String> = others.iter().map(state).collect();
                    let what = format!("node {node} deletes {extent:?}, which {count} others hold: {states:?}");
                    self.auditor.broke(Rule::Deleted, self.now_ms, slice, what);
                }
            }
        }
        self.nodes[node].disk.delete(slice);
    }

    /// All honest nodes that are there, and have not left, know the same.
    pub(super) fn compare_rosters(&mut self) {
        let up = self.nodes.iter().enumerate().filter(|(_, sim)| sim.core.is_some() && sim.actor == Actor::Honest);
        let digests: Vec<(usize, Hash)> = up
            .filter_map(|(node, sim)| {
                let roster = &sim.view.as_ref()?.roster;
                // Who has just left is no longer talked to.
                let leaves = roster.index(&sim.seal.key()).is_some_and(|index| roster.is_gone(index));
                (!leaves).then(|| (node, roster.digest()))
            })
            .collect();
        let Some((one, first)) = digests.first().copied() else { return };
        if let Some((other, _)) = digests.iter().find(|(_, digest)| *digest != first).copied() {
            let differing = digests.iter().filter(|(_, digest)| *digest != first).count();
            // What one has and the other has not, for whoever looks for the reason.
            let facts = |node: usize| self.view_of(node).roster.facts().collect::<BTreeMap<_, _>>();
            let (mine, theirs) = (facts(one), facts(other));
            let what = format!(
                "node {other} and {} others differ from {one}: {:?} {:?}",
                differing - 1,
                self.only_in(&theirs, &mine),
                self.only_in(&mine, &theirs)
            );
            self.auditor.broke(Rule::Rosters, self.now_ms, 0, what);
        }
    }

    /// Of the holders of a slice that can, the one whom the ring wishes for first leads it. Where they change, or doubt each other, nobody is sure.
    pub(super) fn compare_leaders(&mut self) {
        let slices: Vec<Slice> = (0..self.genesis.slices()).filter(|slice| self.is_crawled(*slice)).collect();
        for slice in slices {
            let Some((first, leaders)) = self.should_lead(slice) else { continue };
            self.auditor.compared += 1;
            if leaders != [first] {
                let what = format!("node {first} should lead, and {leaders:?} do");
                self.auditor.broke(Rule::Unwished, self.now_ms, slice, what);
            }
        }
    }

    /// Who should lead a slice, and who does.
    fn should_lead(&self, slice: Slice) -> Option<(usize, Vec<usize>)> {
        let holding = |node: usize| self.nodes[node].core.as_ref().and_then(|core| core.holding(slice));
        let held = self.auditor.held.get(&slice)?;
        let newest = held.iter().filter_map(|node| holding(*node)).max_by_key(|holding| holding.epoch())?;
        let nodes = &newest.latest().nodes;
        let holders: Vec<usize> = nodes.iter().map(|key| self.of_key[key]).collect();
        let knows = holders.iter().copied().find(|node| self.nodes[*node].core.is_some())?;
        let view = self.view_of(knows);
        let wished = view.wish(slice, |_| true).0;
        // As long as it takes to hand over, and again when that went wrong: a message may be lost.
        let quiet_ms = self.at_most_ms(HANDED_OVER_LEASES * self.options.settings.refuse_ms());
        let since_ms = self.auditor.epochs.get(&slice).map_or(0, |(_, since_ms)| *since_ms);
        let agrees = |holding: &Holding| holding.epoch() == newest.epoch() && holding.suspended().next().is_none();
        let settled = self.now_ms - since_ms > quiet_ms
            && wished.iter().all(|index| nodes.contains(&view.roster.key(*index)))
            && holders.iter().all(|node| holding(*node).is_none_or(agrees));
        let first = wished.first().map(|index| self.of_key[&view.roster.key(*index)])?;
        let sim = &self.nodes[first];
        let complete =
            |(of, segment): &(Slice, Segment), bytes: u64| *of != slice || sim.disk.holds(*of, segment, bytes);
        let whole = self.auditor.acknowledged.iter().all(|(name, bytes)| complete(name, *bytes));
        let able = sim.core.is_some()
            && sim.actor == Actor::Honest
            && sim.off_ms.abs() <= CLOCK_OFF_MS_MAX
            && view.roster.index(&sim.seal.key()).is_some_and(|index| view.may_adopt(index));
        let leads = |node: &usize| {
            let core = self.nodes[*node].core.as_ref();
            core.and_then(|core| core.leads(slice, self.clock(*node).mono_ms)).is_some()
        };
        (settled && able && whole).then(|| (first, held.iter().copied().filter(leads).collect()))
    }

    fn only_in(&self, one: &BTreeMap<Hash, Fact>, other: &BTreeMap<Hash, Fact>) -> Vec<String> {
        let only = one.iter().filter(|(hash, _)| !other.contains_key(hash)).map(|(_, fact)| match fact {
            Fact::Record(record) => {
                let record_of = self.of_key[&record.node()];
                format!("record {record_of} {} {:?}", record.record.sequence, record.record.standing)
            }
            Fact::Absence(proof) => {
                let voters: Vec<usize> = proof.votes.iter().map(|vote| self.of_key[&vote.by]).collect();
                format!("absence {} {} {voters:?}", self.of_key[&proof.node], proof.sequence)
            }
            _ => "other".into(),
        });
        only.take(4).collect()
    }

    /// Looks for everything that was acknowledged, on all honest disks that are left.
    pub fn check_losses(&mut self) {
        (0..self.genesis.slices()).for_each(|slice| self.check_losses_of(slice));
    }

    /// Looks for what was acknowledged in one slice.
    pub(super) fn check_losses_of(&mut self, slice: Slice) {
        let mut lost: Vec<(Segment, bool)> = Vec::new();
        let of_slice = (slice, Segment::LEAST)..=(slice, Segment::MOST);
        for ((_, segment), bytes) in self.auditor.acknowledged.range(of_slice) {
            let holds = |node: &usize| {
                let sim = &self.nodes[*node];
                sim.actor != Actor::Claims && sim.disk.holds(slice, segment, *bytes)
            };
            if !self.auditor.held.get(&slice).into_iter().flatten().any(holds) {
                let mut let_go = self.auditor.let_go.get(&(slice, *segment)).into_iter().flatten();
                lost.push((*segment, let_go.any(|node| self.nodes[*node].dead.is_none())));
            }
        }
        for (segment, lives) in lost {
            self.auditor.acknowledged.remove(&(slice, segment));
            self.figures.lost += 1;
            if lives {
                self.auditor.broke(Rule::NothingLost, self.now_ms, slice, format!("{segment:?}"));
            }
        }
    }
}
