//! Who watches whom, and what it takes to be called absent.
//!
//! The watchers of a node follow from its key, so nobody chooses whom to judge: the next eight members on a circle ordered by
//! hash. They ask it every few seconds. Silence is a vote; five votes of eight are a proof that everybody believes (fewer in
//! small networks: a majority of the watchers there are). A node that is called absent answers with a newer record.
//!
//! The same count protects from two halves that both go on: a node that has not heard from four of its eight watchers must
//! reckon that the others have called it absent, and then it neither leads nor grants. Its watchers are written in its record, and
//! it writes others there only while it is in view: so both sides of a split count with the same list, whoever joins on one of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::fact::{Fact, SignedRecord};
use crate::genesis::{NetworkId, majority};
use crate::key::{Hash, Key, Seal, Signature, signed};
use crate::limits::WATCHERS;
use crate::roster::{Index, Learned, Roster};
use crate::settings::Settings;

/// Votes of one proof were given within this time, in milliseconds: silences of different days do not add up.
pub const VOTES_APART_MS_MAX: u64 = 10 * 60 * 1000;

/// A watcher has not heard from a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vote {
    /// The watcher.
    pub by: Key,
    /// When, by the watcher's clock, in milliseconds since 1970.
    pub at_ms: u64,
    /// By the watcher, over network, node, sequence and time.
    pub signature: Signature,
}

/// Enough watchers agree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbsenceProof {
    /// The node that is silent.
    pub node: Key,
    /// The sequence of its record; a newer record refutes the proof.
    pub sequence: u64,
    /// In the order of the watchers' keys.
    pub votes: Vec<Vote>,
}

impl AbsenceProof {
    /// Bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        size_of::<AbsenceProof>() + self.votes.capacity() * size_of::<Vote>()
    }
}

/// A proof of absence that can be judged at any later time: with the record that the node had then, which names its watchers. The roster
/// forgets both when the node comes back; an epoch that was opened without it is still to be believed, by the node itself first of all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witnessed {
    /// What the watchers signed.
    pub proof: Arc<AbsenceProof>,
    /// What the node had signed before.
    pub record: Arc<SignedRecord>,
}

fn ballot(network: &NetworkId, node: &Key, sequence: u64, at_ms: u64) -> Vec<u8> {
    signed("skep absence", &(network, node, sequence, at_ms))
}

impl Vote {
    /// Signs a vote.
    pub fn new(network: &NetworkId, node: &Key, sequence: u64, at_ms: u64, seal: &dyn Seal) -> Vote {
        Vote { by: seal.key(), at_ms, signature: seal.sign(&ballot(network, node, sequence, at_ms)) }
    }
}

/// The circle of watchers: all members in the order of a hash of their keys.
#[derive(Clone, Default)]
pub struct Watchers {
    circle: Vec<(u64, Index)>,
}

impl Watchers {
    /// Of these members.
    pub fn new(roster: &Roster, members: impl Iterator<Item = Index>) -> Watchers {
        let mut circle: Vec<(u64, Index)> = members.map(|index| (place(&roster.key(index)), index)).collect();
        circle.sort_unstable();
        Watchers { circle }
    }

    /// One member more.
    pub fn insert(&mut self, roster: &Roster, index: Index) {
        let entry = (place(&roster.key(index)), index);
        if let Err(at) = self.circle.binary_search(&entry) {
            self.circle.insert(at, entry);
        }
    }

    /// One member less.
    pub fn remove(&mut self, roster: &Roster, index: Index) {
        if let Ok(at) = self.circle.binary_search(&(place(&roster.key(index)), index)) {
            self.circle.remove(at);
        }
    }

    /// The watchers of a node, itself a member or not.
    pub fn of(&self, roster: &Roster, node: Index) -> Vec<Index> {
        let from = place(&roster.key(node));
        let start = self.circle.partition_point(|(at, _)| *at <= from);
        let round = self.circle[start..].iter().chain(&self.circle[..start]);
        round.map(|(_, index)| *index).filter(|index| *index != node).take(WATCHERS).collect()
    }

    /// Those whom a node watches: the members before it on the circle.
    pub fn watched_by(&self, roster: &Roster, node: Index) -> Vec<Index> {
        let from = place(&roster.key(node));
        let start = self.circle.partition_point(|(at, _)| *at < from);
        let round = self.circle[..start].iter().rev().chain(self.circle[start..].iter().rev());
        round.map(|(_, index)| *index).filter(|index| *index != node).take(WATCHERS).collect()
    }

    /// The watchers of a node as they stand in a record.
    pub fn marks_of(&self, roster: &Roster, node: Index) -> Vec<u64> {
        self.of(roster, node).into_iter().map(|index| mark(&roster.key(index))).collect()
    }

    /// Who may judge a node: as its record says, without those who are gone; as the circle says while its record names nobody.
    pub fn judges(&self, roster: &Roster, node: Index) -> Vec<Index> {
        self.named(roster, node, &roster.record(node).record.watchers)
    }

    fn named(&self, roster: &Roster, node: Index, named: &[u64]) -> Vec<Index> {
        if named.is_empty() {
            return self.of(roster, node);
        }
        named.iter().filter_map(|mark| roster.marked(*mark)).filter(|index| !roster.is_gone(*index)).collect()
    }

    /// Bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        self.circle.capacity() * size_of::<(u64, Index)>()
    }

    /// Whether enough watchers of a node signed that it is silent.
    pub fn check(&self, roster: &Roster, node: Index, proof: &AbsenceProof, seal: &dyn Seal) -> Result<(), Learned> {
        self.check_by(roster, node, roster.record(node), proof, seal)
    }

    /// The same by the record that the node had then.
    pub fn check_witnessed(&self, roster: &Roster, witnessed: &Witnessed, seal: &dyn Seal) -> Result<(), Learned> {
        let Witnessed { proof, record } = witnessed;
        let Some(node) = roster.index(&proof.node) else { return Err(Learned::Early("nobody has heard of this node")) };
        let said = signed("skep record", &record.record);
        if record.node() != proof.node
            || record.record.sequence != proof.sequence
            || !seal.verify(&proof.node, &said, &record.signature)
        {
            return Err(Learned::Refused("the record beside a proof is another one"));
        }
        self.check_by(roster, node, record, proof, seal)
    }

    fn check_by(
        &self,
        roster: &Roster,
        node: Index,
        record: &SignedRecord,
        proof: &AbsenceProof,
        seal: &dyn Seal,
    ) -> Result<(), Learned> {
        let marks = &record.record.watchers;
        let watchers = self.named(roster, node, marks);
        let needed = needed(watchers.len());
        if proof.votes.len() < needed.max(1) || proof.votes.len() > WATCHERS {
            return Err(Learned::Refused("too few watchers call the node absent"));
        }
        if !proof.votes.is_sorted_by(|one, next| one.by < next.by) {
            return Err(Learned::Refused("a watcher counts once"));
        }
        let times = || proof.votes.iter().map(|vote| vote.at_ms);
        if times().max().unwrap_or(0) - times().min().unwrap_or(0) > VOTES_APART_MS_MAX {
            return Err(Learned::Refused("the votes are of different times"));
        }
        for vote in &proof.votes {
            // Who has left since may have voted before: the record says who was asked.
            if !marks.contains(&mark(&vote.by))
                && !roster.index(&vote.by).is_some_and(|index| watchers.contains(&index))
            {
                return Err(Learned::Early("a vote is not of a watcher known here"));
            }
            let said = ballot(&roster.network(), &proof.node, proof.sequence, vote.at_ms);
            if !seal.verify(&vote.by, &said, &vote.signature) {
                return Err(Learned::Refused("a watcher's signature is wrong"));
            }
        }
        Ok(())
    }
}

/// Votes needed of so many watchers.
pub fn needed(watchers: usize) -> usize {
    if watchers == 0 { 0 } else { majority(watchers) }
}

/// Watchers that a node must hear from so that the others cannot have called it absent.
pub fn heard_needed(watchers: usize) -> usize {
    if watchers == 0 { 0 } else { watchers - needed(watchers) + 1 }
}

/// Eight bytes that stand for a key: too many to find another key with the same.
pub fn mark(node: &Key) -> u64 {
    u64::from_be_bytes(node.0[..8].try_into().expect("eight of 32"))
}

fn place(node: &Key) -> u64 {
    Hash::of("skep watch", &node.0).number()
}

/// What one node knows about the liveness of those it watches, and of its own.
#[derive(Default)]
pub struct Watch {
    /// When each node was last heard, by the own monotonic clock.
    heard: HashMap<Key, u64>,
    watched: BTreeSet<Index>,
    /// When each of those who are watched last asked whether this node is there.
    asked: HashMap<Key, u64>,
    /// Watchers that the record named before, and until when they count too: a split may have fallen between the two.
    before: Option<(Vec<u64>, u64)>,
    votes: BTreeMap<(Key, u64), BTreeMap<Key, Vote>>,
    next_ping_ms: u64,
    /// Back in view, enough watchers have shown since that they know of no other epochs than this node does.
    settled: bool,
    agreeing: BTreeSet<Key>,
}

/// What the watch wants done.
pub enum Watched {
    /// Ask these whether they are there.
    Ping(Vec<Index>),
    /// Tell the other watchers of a node about one's own vote.
    Voted {
        /// The silent node.
        node: Index,
        /// The sequence of its record.
        sequence: u64,
        /// One's own vote.
        vote: Vote,
    },
    /// Enough votes have come together.
    Proven(Arc<AbsenceProof>),
}

impl Watch {
    /// Somebody's record changed, or members came or went: whom this node watches.
    pub fn recount(&mut self, roster: &Roster, watchers: &Watchers, own: Key, node: Option<Index>, mono_ms: u64) {
        let Some(index) = roster.index(&own) else { return };
        let mine = mark(&own);
        let nodes = match node {
            Some(node) => node..node + 1,
            None => 0..roster.len() as Index,
        };
        for node in nodes.filter(|node| *node != index) {
            let named = &roster.record(node).record.watchers;
            let watches = !roster.is_gone(node)
                && if named.is_empty() { watchers.of(roster, node).contains(&index) } else { named.contains(&mine) };
            if !watches {
                self.watched.remove(&node);
                self.asked.remove(&roster.key(node));
            } else if self.watched.insert(node) {
                self.heard.entry(roster.key(node)).or_insert(mono_ms);
            }
        }
    }

    /// Somebody was heard.
    pub fn heard(&mut self, node: Key, mono_ms: u64) {
        self.heard.insert(node, mono_ms);
    }

    /// Somebody asked whether this node is there.
    pub fn asked(&mut self, node: Index, key: Key, mono_ms: u64) {
        if self.watched.contains(&node) {
            self.asked.insert(key, mono_ms);
        }
    }

    /// Of two who watch each other one asks and the other answers: both have heard each other then. The one with the higher key asks only
    /// if the other one does not.
    fn is_to_ask(&self, own: &Key, node: &Key, settings: &Settings, mono_ms: u64) -> bool {
        let lately = |at: &u64| mono_ms.saturating_sub(*at) < settings.ping_ms + settings.ping_ms / 2;
        own < node || !self.asked.get(node).is_some_and(lately)
    }

    /// Other watchers are about to stand in the own record: the new ones count as heard, the old ones go on counting for a while.
    pub fn renamed(&mut self, before: Vec<u64>, after: &[Key], until_ms: u64, mono_ms: u64) {
        for key in after.iter().filter(|key| !before.contains(&mark(key))) {
            self.heard.insert(*key, mono_ms);
        }
        if !before.is_empty() {
            self.before = Some((before, until_ms));
        }
    }

    /// A peer knows the same epochs of all slices.
    pub fn agrees(&mut self, node: Key) {
        if !self.settled {
            self.agreeing.insert(node);
        }
    }

    /// Whether this node may lead and grant: in view, and since it was last out of view (or started) as many watchers as it takes
    /// have shown the same table of holders. Of those who called it absent, one is among them: a recovery without this node is known
    /// to it before it could act on older epochs.
    pub fn may_act(&mut self, roster: &Roster, own: &Key, settings: &Settings, mono_ms: u64) -> bool {
        if !self.in_view(roster, own, settings, mono_ms) {
            self.settled = false;
            self.agreeing.clear();
            return false;
        }
        if !self.settled {
            let named = roster.record_of(own).map_or(&[][..], |record| &record.record.watchers);
            let there = || named.iter().filter_map(|mark| roster.marked(*mark)).filter(|index| !roster.is_gone(*index));
            let agree = there().filter(|index| self.agreeing.contains(&roster.key(*index))).count();
            self.settled = agree >= heard_needed(there().count());
        }
        self.settled
    }

    /// Whether enough of the own watchers were heard lately. Alone, a node is always in view.
    pub fn in_view(&self, roster: &Roster, own: &Key, settings: &Settings, mono_ms: u64) -> bool {
        let Some(record) = roster.record_of(own) else { return false };
        let named = &record.record.watchers;
        if named.is_empty() {
            return roster.len() == 1;
        }
        let seen = |list: &[u64]| {
            let there: Vec<Key> = list
                .iter()
                .filter_map(|mark| roster.marked(*mark))
                .filter(|index| !roster.is_gone(*index))
                .map(|index| roster.key(index))
                .collect();
            let lately =
                |key: &&Key| self.heard.get(key).is_some_and(|at| mono_ms.saturating_sub(*at) <= settings.unseen_ms);
            there.iter().filter(lately).count() >= heard_needed(there.len())
        };
        let before = self.before.as_ref().filter(|(_, until_ms)| mono_ms < *until_ms);
        seen(named) && before.is_none_or(|(list, _)| seen(list))
    }

    /// Asks and judges; called often.
    pub fn tick(
        &mut self,
        roster: &Roster,
        settings: &Settings,
        mono_ms: u64,
        wall_ms: u64,
        seal: &dyn Seal,
        out: &mut Vec<Watched>,
    ) {
        if mono_ms < self.next_ping_ms {
            return;
        }
        self.next_ping_ms = mono_ms + settings.ping_ms;
        let own = seal.key();
        let asks = |index: &Index| self.is_to_ask(&own, &roster.key(*index), settings, mono_ms);
        out.push(Watched::Ping(self.watched.iter().copied().filter(asks).collect()));
        let silent: Vec<Index> = self
            .watched
            .iter()
            .copied()
            .filter(|index| {
                let heard = self.heard.get(&roster.key(*index));
                heard.is_some_and(|at| mono_ms.saturating_sub(*at) > settings.silence_ms)
            })
            .collect();
        for index in silent {
            self.silent(roster, index, wall_ms, seal, out);
        }
        self.votes.retain(|(node, sequence), votes| {
            let current = roster.record_of(node).is_some_and(|record| record.record.sequence == *sequence);
            votes.retain(|_, vote| vote.at_ms + VOTES_APART_MS_MAX > wall_ms);
            current && !votes.is_empty()
        });
    }

    /// When [`Watch::tick`] has something to do.
    pub fn due_ms(&self) -> u64 {
        self.next_ping_ms
    }

    /// A watched node is silent: votes, unless everybody knows.
    pub fn silent(&mut self, roster: &Roster, node: Index, wall_ms: u64, seal: &dyn Seal, out: &mut Vec<Watched>) {
        if roster.absence(node).is_some() || roster.is_gone(node) {
            return;
        }
        let (key, sequence) = (roster.key(node), roster.record(node).record.sequence);
        let vote = Vote::new(&roster.network(), &key, sequence, wall_ms, seal);
        self.votes.entry((key, sequence)).or_default().insert(vote.by, vote.clone());
        out.push(Watched::Voted { node, sequence, vote });
        self.count(roster, key, sequence, out);
    }

    /// Another watcher voted. Its signature is checked when the votes are counted into a proof.
    pub fn voted(
        &mut self,
        roster: &Roster,
        watchers: &Watchers,
        node: Key,
        sequence: u64,
        vote: &Vote,
        seal: &dyn Seal,
        out: &mut Vec<Watched>,
    ) -> Learned {
        let Some(index) = roster.index(&node) else { return Learned::Early("nobody has heard of this node") };
        if roster.record(index).record.sequence != sequence || roster.absence(index).is_some() {
            return Learned::Known;
        }
        let may = roster.index(&vote.by).is_some_and(|by| watchers.judges(roster, index).contains(&by));
        if !may {
            return Learned::Refused("only a watcher votes");
        }
        if !seal.verify(&vote.by, &ballot(&roster.network(), &node, sequence, vote.at_ms), &vote.signature) {
            return Learned::Refused("a watcher's signature is wrong");
        }
        let votes = self.votes.entry((node, sequence)).or_default();
        if votes.get(&vote.by).is_some_and(|held| held.at_ms >= vote.at_ms) {
            return Learned::Known;
        }
        votes.insert(vote.by, vote.clone());
        self.count(roster, node, sequence, out);
        Learned::New
    }

    fn count(&mut self, roster: &Roster, node: Key, sequence: u64, out: &mut Vec<Watched>) {
        let Some(votes) = self.votes.get(&(node, sequence)) else { return };
        let newest = votes.values().map(|vote| vote.at_ms).max().unwrap_or(0);
        let fresh: Vec<Vote> =
            votes.values().filter(|vote| vote.at_ms + VOTES_APART_MS_MAX > newest).cloned().collect();
        // How many are needed depends on who still may judge, which the roster checks when it learns the proof.
        let named = roster.record_of(&node).map_or(0, |record| record.record.watchers.len());
        let watchers = if named == 0 { (roster.len() - 1).min(WATCHERS) } else { named };
        if fresh.len() >= needed(watchers) && !fresh.is_empty() {
            let votes = fresh.into_iter().take(needed(watchers).max(1)).collect();
            out.push(Watched::Proven(Arc::new(AbsenceProof { node, sequence, votes })));
        }
    }

    /// A proof as a fact.
    pub fn fact(proof: Arc<AbsenceProof>) -> Fact {
        Fact::Absence(proof)
    }
}
