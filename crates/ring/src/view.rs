//! What a node knows of everybody: the roster, and what follows from it.

use std::collections::HashSet;
use std::sync::Arc;

use crate::epoch::{SignedHolders, Table};
use crate::fact::{Fact, Standing};
use crate::genesis::{Genesis, Slice};
use crate::key::{Key, Seal};
use crate::placement::{Ring, Spread};
use crate::roster::{Index, Learned, Roster};
use crate::settings::Settings;
use crate::watch::Watchers;

/// Roster, circle of watchers, ring, and the holders of every slice. In a large simulation many nodes share one.
#[derive(Clone)]
pub struct View {
    /// Signed facts.
    pub roster: Roster,
    /// Who watches whom.
    pub watchers: Watchers,
    /// Who should hold what.
    pub ring: Ring,
    /// Who does.
    pub table: Table,
    members_version: u64,
    members: HashSet<Index>,
    version: u64,
}

impl View {
    /// Of a network of which nobody is known yet.
    pub fn new(genesis: Arc<Genesis>) -> View {
        let table = Table::new(genesis.slices(), usize::from(genesis.copies));
        View {
            roster: Roster::new(genesis),
            watchers: Watchers::default(),
            ring: Ring::default(),
            table,
            members_version: 0,
            members: HashSet::new(),
            version: 0,
        }
    }

    /// Counts changes of who is a member.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Takes in a fact; the circle and the ring follow.
    pub fn learn(&mut self, fact: &Fact, seal: &dyn Seal, mono_ms: u64, wall_ms: u64, settings: &Settings) -> Learned {
        let learned = self.roster.learn(fact, &self.watchers, seal, mono_ms, wall_ms);
        if self.roster.members_version() != self.members_version {
            self.refresh(mono_ms, settings);
        }
        learned
    }

    /// Brings circle and ring up to date with who counts as a member now; says whether anything changed.
    pub fn refresh(&mut self, mono_ms: u64, settings: &Settings) -> bool {
        self.members_version = self.roster.members_version();
        let members: HashSet<Index> = self.roster.members(mono_ms, settings.expire_ms).collect();
        if members == self.members {
            return false;
        }
        let gone: Vec<Index> = self.members.difference(&members).copied().collect();
        let come: Vec<Index> = members.difference(&self.members).copied().collect();
        if come.len() > 16 {
            self.ring = Ring::new(&self.roster, members.iter().copied());
        } else {
            gone.iter().for_each(|index| self.ring.remove(*index));
            come.iter().for_each(|index| self.ring.insert(&self.roster, *index));
        }
        self.watchers = Watchers::new(&self.roster, members.iter().copied());
        self.members = members;
        self.version += 1;
        true
    }

    /// Whether a node counts as a member.
    pub fn is_member(&self, index: Index) -> bool {
        self.members.contains(&index)
    }

    /// Members there are.
    pub fn members(&self) -> impl Iterator<Item = Index> + '_ {
        self.members.iter().copied()
    }

    /// The wish for a slice, of those that `may`.
    pub fn wish(&self, slice: Slice, may: impl Fn(Index) -> bool) -> (Vec<Index>, Spread) {
        let genesis = self.roster.genesis();
        let copies = usize::from(genesis.copies);
        self.ring.wish(slice, genesis.slice_bits, copies, may)
    }

    /// Whether a node may be given a slice that it does not hold: there, staying, and seen.
    pub fn may_adopt(&self, index: Index) -> bool {
        self.roster.is_present(index) && self.roster.record(index).record.standing == Standing::Staying
    }

    /// The holders of a slice as far as known: by the table, else by the genesis.
    pub fn holders(&self, slice: Slice) -> Vec<Key> {
        let known = self.table.holders(slice);
        if known.is_empty() {
            return vec![self.roster.genesis().first];
        }
        known.iter().map(|index| self.roster.key(*index)).collect()
    }

    /// The first epoch of a slice.
    pub fn first_epoch(&self, slice: Slice) -> SignedHolders {
        SignedHolders::first(self.roster.network(), slice, vec![self.roster.genesis().first])
    }

    /// Notes an epoch that was checked; true if it is news.
    pub fn note_epoch(&mut self, holders: &SignedHolders) -> bool {
        let nodes: Vec<Index> = holders.holders.nodes.iter().filter_map(|node| self.roster.index(node)).collect();
        self.table.set(holders.holders.slice, holders.holders.epoch, &nodes)
    }

    /// Bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        self.roster.memory_bytes()
            + self.watchers.memory_bytes()
            + self.ring.memory_bytes()
            + self.table.memory_bytes()
            + self.members.capacity() * (size_of::<Index>() + 1)
    }
}
