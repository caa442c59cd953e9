//! What a node knows of everybody: the roster, and what follows from it.

use std::sync::Arc;

use crate::epoch::{SignedHolders, Table};
use crate::fact::{Fact, Standing};
use crate::genesis::{Genesis, Slice};
use crate::key::{Key, Seal};
use crate::placement::{Ring, Spread};
use crate::roster::{Index, Learned, Roster};
use crate::settings::Settings;
use crate::watch::Watchers;

/// So many comings and goings are followed one by one; beyond, circle and ring are made anew.
const ONE_BY_ONE_MAX: usize = 16;

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
    /// A bit for every node of the roster.
    members: Vec<u64>,
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
            members: Vec::new(),
            version: 0,
        }
    }

    /// Counts changes of who is a member.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Takes in a fact; the circle and the ring follow.
    pub fn learn(&mut self, fact: &Fact, seal: &dyn Seal, mono_ms: u64, wall_ms: u64, settings: &Settings) -> Learned {
        let learned = self.take_in(fact, seal, mono_ms, wall_ms, settings);
        self.follow(mono_ms, settings);
        learned
    }

    /// The same for one of many facts: the circle follows only where the next one is judged by it. [`View::follow`] ends it.
    pub(crate) fn take_in(
        &mut self,
        fact: &Fact,
        seal: &dyn Seal,
        mono_ms: u64,
        wall_ms: u64,
        settings: &Settings,
    ) -> Learned {
        if matches!(fact, Fact::Absence(_)) {
            self.follow(mono_ms, settings);
        }
        self.roster.learn(fact, &self.watchers, seal, mono_ms, wall_ms)
    }

    /// Members may have come or gone by facts that were taken in.
    pub(crate) fn follow(&mut self, mono_ms: u64, settings: &Settings) {
        if self.roster.members_version() != self.members_version {
            self.refresh(mono_ms, settings);
        }
    }

    /// Brings circle and ring up to date with who counts as a member now; says whether anything changed.
    pub fn refresh(&mut self, mono_ms: u64, settings: &Settings) -> bool {
        self.members_version = self.roster.members_version();
        let mut members = vec![0u64; self.roster.len().div_ceil(64)];
        for index in self.roster.members(mono_ms, settings.expire_ms) {
            members[index as usize / 64] |= 1 << (index % 64);
        }
        if members == self.members {
            return false;
        }
        self.members.resize(members.len(), 0);
        let gone: Vec<Index> = bits(self.members.iter().zip(&members).map(|(before, after)| before & !after)).collect();
        let come: Vec<Index> = bits(self.members.iter().zip(&members).map(|(before, after)| after & !before)).collect();
        self.members = members;
        if come.len() + gone.len() > ONE_BY_ONE_MAX {
            self.ring = Ring::new(&self.roster, bits(self.members.iter().copied()));
            self.watchers = Watchers::new(&self.roster, bits(self.members.iter().copied()));
        } else {
            for index in gone {
                self.ring.remove(index);
                self.watchers.remove(&self.roster, index);
            }
            for index in come {
                self.ring.insert(&self.roster, index);
                self.watchers.insert(&self.roster, index);
            }
        }
        self.version += 1;
        true
    }

    /// Whether a node counts as a member.
    pub fn is_member(&self, index: Index) -> bool {
        self.members.get(index as usize / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Members there are.
    pub fn members(&self) -> impl Iterator<Item = Index> + '_ {
        bits(self.members.iter().copied())
    }

    /// The wish for a slice, of those that `may`.
    pub fn wish(&self, slice: Slice, may: impl Fn(Index) -> bool) -> (Vec<Index>, Spread) {
        let genesis = self.roster.genesis();
        let copies = usize::from(genesis.copies);
        self.ring.wish(slice, genesis.slice_bits, copies, may)
    }

    /// Holders of a slice in the order in which they should lead: as the ring wishes for them, whoever held it first; behind them those
    /// whom it no longer wishes for.
    pub fn in_order(&self, slice: Slice, holders: &[Key]) -> Vec<Key> {
        let (wish, _) = self.wish(slice, |_| true);
        let place = |node: &Key| {
            let index = self.roster.index(node);
            wish.iter().position(|wished| Some(*wished) == index).unwrap_or(usize::MAX)
        };
        let mut ordered = holders.to_vec();
        ordered.sort_by_key(place);
        ordered
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

    /// Notes an epoch that was checked; true if it is news. A holder that is not in the roster yet has no number to stand in the table:
    /// it is noted again when its record has come.
    pub fn note_epoch(&mut self, holders: &SignedHolders) -> bool {
        let nodes: Vec<Index> = holders.holders.nodes.iter().filter_map(|node| self.roster.index(node)).collect();
        self.table.set(holders.holders.slice, holders.holders.epoch, &nodes)
    }

    /// Whether the table has an epoch whole, or a newer one.
    pub fn has_noted(&self, holders: &SignedHolders) -> bool {
        let (slice, epoch) = (holders.holders.slice, holders.holders.epoch);
        let known = self.table.epoch(slice);
        epoch < known || (epoch == known && self.table.holders(slice).len() >= holders.holders.nodes.len())
    }

    /// Bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        self.roster.memory_bytes()
            + self.watchers.memory_bytes()
            + self.ring.memory_bytes()
            + self.table.memory_bytes()
            + self.members.capacity() * size_of::<u64>()
    }
}

/// The numbers of the bits that are set.
fn bits(words: impl Iterator<Item = u64>) -> impl Iterator<Item = Index> {
    let of_word = |(at, word): (usize, u64)| {
        (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| 64 * at as Index + bit)
    };
    words.enumerate().filter(|(_, word)| *word != 0).flat_map(of_word)
}
