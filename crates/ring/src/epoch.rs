//! Who holds a slice: a chain of records, each signed by a majority of the holders in the one before and differing from it by one
//! node. The wish of `placement` is what the chain moves towards; what counts is the chain.
//!
//! ```text
//!  epoch 0.0  first node           by the genesis
//!  epoch 0.1  A B                  signed by A
//!  epoch 0.2  A B C                signed by A B
//!  epoch 0.3  A B D                signed by two of A B C         one node for another
//!  epoch 1.4  D                    signed by D, with proofs that A and B are absent: a recovery, and it says so
//! ```
//! An epoch is a generation and a number. A recovery begins a new generation, so it is newer than anything a lost majority may
//! have agreed upon unseen; what they wrote is not lost by that, because who held a copy keeps it until others have proven theirs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::genesis::{NetworkId, Slice};
use crate::key::{Hash, Key, Seal, Signature, signed};
use crate::limits::{CHAIN_KEPT_MAX, HOLDERS_MAX, NODES_MAX};
use crate::roster::{Index, Roster};
use crate::settings::Settings;
use crate::watch::{Watchers, Witnessed};

/// Counts the changes of a slice's holders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Epoch {
    /// Recoveries so far.
    pub generation: u32,
    /// Changes so far.
    pub number: u32,
}

impl std::fmt::Display for Epoch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.generation, self.number)
    }
}

/// Who holds a slice from an epoch on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holders {
    /// The network.
    pub network: NetworkId,
    /// The slice.
    pub slice: Slice,
    /// The epoch that begins.
    pub epoch: Epoch,
    /// The hash of the holders before; zero in the first epoch.
    pub before: Hash,
    /// Who leads does not go by their order; who audits whom does.
    pub nodes: Vec<Key>,
}

impl Holders {
    /// What names it in the record after it.
    pub fn hash(&self) -> Hash {
        Hash::of("skep holders", &signed("skep holders", self))
    }

    /// What a holder of the epoch before signs.
    pub fn ballot(&self) -> Vec<u8> {
        signed("skep holders", self)
    }
}

/// Holders and who agreed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedHolders {
    /// What is signed.
    pub holders: Holders,
    /// By holders of the epoch before.
    pub signatures: Vec<(Key, Signature)>,
    /// In a recovery: that the others are absent.
    pub proofs: Vec<Witnessed>,
}

/// Why an epoch is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// An epoch in between is missing here.
    Gap,
    /// It never follows from the one before.
    Wrong(&'static str),
}

impl SignedHolders {
    /// The first epoch of a slice, which the genesis says.
    pub fn first(network: NetworkId, slice: Slice, nodes: Vec<Key>) -> SignedHolders {
        let holders = Holders { network, slice, epoch: Epoch::default(), before: Hash::default(), nodes };
        SignedHolders { holders, signatures: Vec::new(), proofs: Vec::new() }
    }

    /// Whether it follows from the holders before it.
    pub fn follows(
        &self,
        before: &Holders,
        roster: &Roster,
        watchers: &Watchers,
        settings: &Settings,
        seal: &dyn Seal,
    ) -> Result<(), Doubt> {
        let holders = &self.holders;
        if holders.network != before.network || holders.slice != before.slice {
            return Err(Doubt::Wrong("these holders are of another slice"));
        }
        if holders.before != before.hash() {
            return Err(Doubt::Gap);
        }
        self.is_agreed(before.epoch, &before.nodes, roster, watchers, settings, seal)
    }

    /// The same for whoever knows no more of the epoch before than its number and its holders.
    pub fn is_agreed(
        &self,
        epoch: Epoch,
        nodes: &[Key],
        roster: &Roster,
        watchers: &Watchers,
        settings: &Settings,
        seal: &dyn Seal,
    ) -> Result<(), Doubt> {
        let holders = &self.holders;
        if epoch.number.checked_add(1) != Some(holders.epoch.number) {
            return Err(Doubt::Gap);
        }
        if holders.nodes.is_empty() || holders.nodes.len() > HOLDERS_MAX {
            return Err(Doubt::Wrong("a slice has some holders, but not so many"));
        }
        let twice = |at: usize| holders.nodes[..at].contains(&holders.nodes[at]);
        if (0..holders.nodes.len()).any(twice) {
            return Err(Doubt::Wrong("a holder counts once"));
        }
        let mut signers: Vec<Key> = Vec::with_capacity(self.signatures.len());
        let ballot = holders.ballot();
        for (signer, signature) in &self.signatures {
            if signers.contains(signer) || !nodes.contains(signer) || !seal.verify(signer, &ballot, signature) {
                return Err(Doubt::Wrong("a signature is not that of a holder of the epoch before"));
            }
            signers.push(*signer);
        }
        if holders.epoch.generation == epoch.generation {
            if !differ_by_one(nodes, &holders.nodes) {
                return Err(Doubt::Wrong("holders change one by one"));
            }
            if !settings.suffices(signers.len(), nodes.len()) {
                return Err(Doubt::Wrong("a majority of the holders must sign"));
            }
            return Ok(());
        }
        if epoch.generation.checked_add(1) != Some(holders.epoch.generation) {
            return Err(Doubt::Gap);
        }
        self.recovers(nodes, &signers, roster, watchers, seal)
    }

    /// What remains signs, and everybody else is proven absent.
    fn recovers(
        &self,
        before: &[Key],
        signers: &[Key],
        roster: &Roster,
        watchers: &Watchers,
        seal: &dyn Seal,
    ) -> Result<(), Doubt> {
        let absent: Vec<Key> = self.proofs.iter().map(|witnessed| witnessed.proof.node).collect();
        let gone = |node: &Key| roster.index(node).is_some_and(|index| roster.is_gone(index));
        let accounted = |node: &Key| signers.contains(node) || absent.contains(node) || gone(node);
        if !before.iter().all(accounted) || signers.is_empty() {
            return Err(Doubt::Wrong("in a recovery every holder signs, is proven absent, or is gone"));
        }
        if signers.len() >= crate::genesis::majority(before.len()) {
            return Err(Doubt::Wrong("a majority is there, and needs no recovery"));
        }
        if !self.holders.nodes.iter().all(|node| signers.contains(node)) {
            return Err(Doubt::Wrong("a recovery keeps who remains and adds nobody"));
        }
        for witnessed in &self.proofs {
            if roster.index(&witnessed.proof.node).is_none() {
                return Err(Doubt::Gap);
            }
            if watchers.check_witnessed(roster, witnessed, seal).is_err() {
                return Err(Doubt::Wrong("the absence of a holder is not proven"));
            }
        }
        Ok(())
    }
}

/// Whether one node was added, taken out, or put in the place of another.
pub fn differ_by_one(before: &[Key], after: &[Key]) -> bool {
    let gone = before.iter().filter(|node| !after.contains(node)).count();
    let come = after.iter().filter(|node| !before.contains(node)).count();
    matches!((gone, come), (0, 1) | (1, 0) | (1, 1))
}

/// The epochs of one slice, as far as a holder keeps them.
#[derive(Clone, Debug)]
pub struct Chain {
    links: Vec<Arc<SignedHolders>>,
}

impl Chain {
    /// Begins with an epoch that is believed.
    pub fn new(first: Arc<SignedHolders>) -> Chain {
        Chain { links: vec![first] }
    }

    /// From what was kept: the newest epoch, and those before it as far as they belong to it.
    pub fn restore(mut links: Vec<Arc<SignedHolders>>) -> Option<Chain> {
        links.sort_by_key(|link| link.holders.epoch);
        let mut chain = vec![links.pop()?];
        while let Some(link) = links.pop() {
            if chain.last().is_some_and(|next| next.holders.before == link.holders.hash()) {
                chain.push(link);
            }
        }
        chain.truncate(CHAIN_KEPT_MAX);
        chain.reverse();
        Some(Chain { links: chain })
    }

    /// All epochs kept, oldest first.
    pub fn links(&self) -> &[Arc<SignedHolders>] {
        &self.links
    }

    /// The newest epoch.
    pub fn latest(&self) -> &Arc<SignedHolders> {
        self.links.last().expect("a chain has a link")
    }

    /// Adds an epoch that was checked.
    pub fn push(&mut self, next: Arc<SignedHolders>) {
        self.links.push(next);
        if self.links.len() > CHAIN_KEPT_MAX {
            self.links.remove(0);
        }
    }

    /// What follows an epoch, oldest first; all that is kept if the epoch is unknown here.
    pub fn after(&self, epoch: Epoch, count: usize) -> Vec<Arc<SignedHolders>> {
        let from = self.links.iter().position(|link| link.holders.epoch > epoch).unwrap_or(self.links.len());
        self.links[from..].iter().take(count).cloned().collect()
    }

    /// Takes in one epoch more, or says why not. A branch of a newer generation replaces what this chain had beyond the fork.
    pub fn extend(
        &mut self,
        next: &Arc<SignedHolders>,
        roster: &Roster,
        watchers: &Watchers,
        settings: &Settings,
        seal: &dyn Seal,
    ) -> Result<bool, Doubt> {
        if next.holders.epoch <= self.latest().holders.epoch {
            return Ok(false);
        }
        let Some(at) = self.links.iter().rposition(|link| link.holders.hash() == next.holders.before) else {
            return Err(Doubt::Gap);
        };
        if at + 1 < self.links.len() && next.holders.epoch.generation <= self.latest().holders.epoch.generation {
            return Err(Doubt::Wrong("holders agreed upon something else"));
        }
        next.follows(&self.links[at].holders, roster, watchers, settings, seal)?;
        self.links.truncate(at + 1);
        self.push(next.clone());
        Ok(true)
    }
}

/// The newest known holders of every slice, in few bytes: look-up needs no network.
///
/// ```text
/// slice  | generation 4 | number 4 | numbers of the nodes 2 × (copies + 2), unused ones ff |
/// ```
#[derive(Clone)]
pub struct Table {
    epochs: Vec<Epoch>,
    /// Of each slice so many.
    stride: usize,
    nodes: Vec<u16>,
    sum: u64,
}

const NOBODY: u16 = u16::MAX;
// Every number of a node is another than nobody's.
const _: () = assert!(NODES_MAX <= NOBODY as usize);

/// The holders of one slice, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Few {
    nodes: [Index; HOLDERS_MAX],
    count: usize,
}

impl std::ops::Deref for Few {
    type Target = [Index];

    fn deref(&self) -> &[Index] {
        &self.nodes[..self.count]
    }
}

impl Table {
    /// Nothing known of any slice.
    pub fn new(slices: u32, copies: usize) -> Table {
        let stride = (copies + 2).min(HOLDERS_MAX);
        Table {
            epochs: vec![Epoch::default(); slices as usize],
            stride,
            nodes: vec![NOBODY; slices as usize * stride],
            sum: 0,
        }
    }

    fn places(&self, slice: Slice) -> std::ops::Range<usize> {
        slice as usize * self.stride..(slice as usize + 1) * self.stride
    }

    /// The newest epoch known of a slice.
    pub fn epoch(&self, slice: Slice) -> Epoch {
        self.epochs[slice as usize]
    }

    /// Its holders, in the order of their epoch; nobody if nothing is known.
    pub fn holders(&self, slice: Slice) -> Few {
        let mut few = Few { nodes: [0; HOLDERS_MAX], count: 0 };
        for index in self.nodes[self.places(slice)].iter().take_while(|index| **index != NOBODY) {
            few.nodes[few.count] = Index::from(*index);
            few.count += 1;
        }
        few
    }

    /// How many slices there are.
    pub fn slices(&self) -> u32 {
        self.epochs.len() as u32
    }

    /// A newer epoch of a slice, or the one that is known with more of its holders: some of them may not have been in the roster when
    /// it was heard of. An older one changes nothing.
    pub fn set(&mut self, slice: Slice, epoch: Epoch, nodes: &[Index]) -> bool {
        if slice >= self.slices() {
            return false;
        }
        let (known, holders) = (self.epoch(slice), self.holders(slice).len());
        let is_news = epoch > known || holders == 0 || (epoch == known && nodes.len() > holders);
        if !is_news {
            return false;
        }
        self.sum = self.sum.wrapping_sub(self.weight(slice));
        self.epochs[slice as usize] = epoch;
        let places = self.places(slice);
        let numbers = nodes.iter().map(|index| *index as u16).chain(std::iter::repeat(NOBODY));
        for (place, number) in self.nodes[places].iter_mut().zip(numbers) {
            *place = number;
        }
        self.sum = self.sum.wrapping_add(self.weight(slice));
        true
    }

    /// Equal tables, equal sums.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The sum of a range of slices.
    pub fn sum_of(&self, slices: std::ops::Range<Slice>) -> u64 {
        slices.fold(0, |sum, slice| sum.wrapping_add(self.weight(slice)))
    }

    fn weight(&self, slice: Slice) -> u64 {
        let epoch = self.epoch(slice);
        let mixed = (u64::from(slice) << 32 | u64::from(epoch.number))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .wrapping_add(u64::from(epoch.generation).wrapping_mul(0xC2B2_AE3D_27D4_EB4F));
        (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
    }

    /// Bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        self.epochs.capacity() * size_of::<Epoch>() + self.nodes.capacity() * size_of::<u16>()
    }
}
