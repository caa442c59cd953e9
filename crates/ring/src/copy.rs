//! What a holder has of a slice, what it should pull from whom, and what counts as acknowledged.
//!
//! A slice is a set of segments of several writers. Of each a holder has a prefix that is synced here; a sealed one it has whole, and
//! its BLAKE3 was compared. Of what others have, the newest is pulled first: it is what is asked for, and what exists least often.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::key::{Hash, Key};
use crate::limits::SLICE_SEGMENTS_MAX;
use crate::settings::Settings;

/// The name of a segment file within its slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Segment {
    /// Who writes it: the first four bytes of the BLAKE3 of the writer's key.
    pub writer: u32,
    /// Counted per writer.
    pub number: u32,
    /// Which half of the slice.
    pub half: u8,
    /// How often it was rewritten.
    pub generation: u32,
}

impl Segment {
    /// Before all others in their order …
    pub(crate) const LEAST: Segment = Segment { writer: 0, number: 0, half: 0, generation: 0 };
    /// … and behind them.
    pub(crate) const MOST: Segment =
        Segment { writer: u32::MAX, number: u32::MAX, half: u8::MAX, generation: u32::MAX };
}

/// The name of a node as a writer: the first four bytes of the BLAKE3 of its key.
pub fn writer_of(node: &Key) -> u32 {
    let hash = blake3::hash(&node.0);
    u32::from_be_bytes(hash.as_bytes()[..4].try_into().expect("four of 32"))
}

/// How much there is of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// The segment.
    pub segment: Segment,
    /// Bytes synced.
    pub bytes: u64,
    /// The BLAKE3 in its closing record, once it is sealed.
    pub seal: Option<Hash>,
}

impl Extent {
    /// Whether who has this much has what is wanted of the segment.
    fn serves(&self, wanted: &Extent) -> bool {
        self.segment.generation > wanted.segment.generation
            || (self.segment.generation == wanted.segment.generation
                && self.bytes >= wanted.bytes
                && (wanted.seal.is_none() || self.seal.is_some()))
    }

    /// Whether a copy of what this node writes can be one: nobody has more of it than its writer, or another end.
    pub(crate) fn is_copied_by(&self, copy: &Extent) -> bool {
        copy.segment.generation == self.segment.generation
            && copy.bytes <= self.bytes
            && (copy.seal.is_none() || copy.seal == self.seal)
    }

    /// What names a sealed segment when holders compare.
    pub fn hash(&self) -> Hash {
        Hash::of("skep extent", &postcard::to_allocvec(self).expect("plain data encodes"))
    }
}

/// What one node has of one slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    extents: Vec<Extent>,
}

impl Inventory {
    /// From a list in any order.
    pub fn new(extents: impl IntoIterator<Item = Extent>) -> Inventory {
        let mut inventory = Inventory::default();
        extents.into_iter().for_each(|extent| {
            inventory.put(extent);
        });
        inventory
    }

    /// Everything, by writer and number.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Bytes in all: the longest log leads out of a recovery.
    pub fn bytes(&self) -> u64 {
        self.extents.iter().map(|extent| extent.bytes).sum()
    }

    fn find(&self, segment: &Segment) -> Result<usize, usize> {
        let order = |extent: &Extent| (extent.segment.writer, extent.segment.number);
        self.extents.binary_search_by_key(&(segment.writer, segment.number), order)
    }

    /// What there is of a segment, whichever generation.
    pub fn get(&self, segment: &Segment) -> Option<&Extent> {
        self.find(segment).ok().map(|at| &self.extents[at])
    }

    /// Notes that there is so much now; less than before changes nothing, a newer generation replaces.
    pub fn put(&mut self, extent: Extent) -> bool {
        match self.find(&extent.segment) {
            Ok(at) => {
                let held = &mut self.extents[at];
                let order = |e: &Extent| (e.segment.generation, e.seal.is_some(), e.bytes);
                let grows = order(&extent) > order(held);
                if grows {
                    *held = extent;
                }
                grows
            }
            Err(_) if self.extents.len() >= SLICE_SEGMENTS_MAX => false,
            Err(at) => {
                self.extents.insert(at, extent);
                true
            }
        }
    }

    /// What was there turns out to be bad or gone.
    pub fn remove(&mut self, segment: &Segment) -> bool {
        match self.find(segment) {
            Ok(at) => {
                self.extents.remove(at);
                true
            }
            Err(_) => false,
        }
    }

    /// Whether so much of a segment is here.
    pub fn has(&self, wanted: &Extent) -> bool {
        self.get(&wanted.segment).is_some_and(|held| held.serves(wanted))
    }

    /// What another has and is not here, in its order. Both are walked once, side by side: this is asked at every step.
    pub fn lacking<'i>(&'i self, other: &'i Inventory) -> impl Iterator<Item = &'i Extent> + 'i {
        let order = |extent: &Extent| (extent.segment.writer, extent.segment.number);
        let mut here = self.extents.iter().peekable();
        other.extents.iter().filter(move |wanted| {
            while here.next_if(|held| order(held) < order(wanted)).is_some() {}
            !here.peek().is_some_and(|held| order(held) == order(wanted) && held.serves(wanted))
        })
    }

    /// Whether everything that another has is here.
    pub fn covers(&self, other: &Inventory) -> bool {
        self.lacking(other).next().is_none()
    }

    /// What another has and is not here, the newest first: of each writer the highest number.
    pub fn lacks(&self, other: &Inventory) -> Vec<Extent> {
        let mut lacking: Vec<Extent> = self.lacking(other).copied().collect();
        lacking.sort_by_key(|extent| std::cmp::Reverse((extent.segment.number, extent.segment.writer)));
        lacking
    }

    /// Sealed segments, which never change: count and sum of the hashes.
    pub fn sum(&self) -> (u32, [u8; 16]) {
        let mut sum = 0u128;
        let mut count = 0;
        for extent in self.sealed() {
            sum = sum.wrapping_add(u128::from_be_bytes(extent.hash().0[..16].try_into().expect("16 of 32")));
            count += 1;
        }
        (count, sum.to_be_bytes())
    }

    /// Sealed segments.
    pub fn sealed(&self) -> impl Iterator<Item = &Extent> + '_ {
        self.extents.iter().filter(|extent| extent.seal.is_some())
    }

    /// Segments that may still grow.
    pub fn open(&self) -> impl Iterator<Item = &Extent> + '_ {
        self.extents.iter().filter(|extent| extent.seal.is_none())
    }
}

/// How much of a segment is acknowledged: what a majority of the holders has synced.
pub fn acknowledged(segment: &Segment, holders: &[&Inventory], of: usize, settings: &Settings) -> u64 {
    let mut synced: Vec<u64> = holders
        .iter()
        .filter_map(|inventory| inventory.get(segment))
        .map(|extent| if extent.segment.generation > segment.generation { u64::MAX } else { extent.bytes })
        .collect();
    synced.sort_unstable_by_key(|bytes| std::cmp::Reverse(*bytes));
    (1..=synced.len()).find(|count| settings.suffices(*count, of)).map_or(0, |count| synced[count - 1])
}

/// Whom to pull something from: who has it, says the same of its seal, and has not given us anything that did not verify: so whose
/// bytes do not fit the seal has told one or the other falsely itself. Chosen by a number, so that many who ask spread over many who
/// have.
pub fn source<'p>(
    wanted: &Extent,
    peers: impl Iterator<Item = (&'p Key, &'p Inventory)>,
    distrusted: &[Key],
    number: u64,
) -> Option<Key> {
    let same_seal = |inventory: &Inventory| {
        let held = inventory.get(&wanted.segment).filter(|held| held.segment == wanted.segment);
        wanted.seal.is_none() || held.is_some_and(|held| held.seal == wanted.seal)
    };
    let able: Vec<&Key> = peers
        .filter(|(key, inventory)| inventory.has(wanted) && same_seal(inventory) && !distrusted.contains(key))
        .map(|(key, _)| key)
        .collect();
    if able.is_empty() { None } else { Some(*able[(number % able.len() as u64) as usize]) }
}

/// What the other holders have told.
pub type Told = BTreeMap<Key, Inventory>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    #[test]
    fn what_is_lacking_is_what_is_not_here() {
        let mut chance = Chance::new(7);
        let mut some = || {
            let extents = (0..chance.below(12)).map(|_| {
                let segment = Segment {
                    writer: chance.below(3) as u32,
                    number: chance.below(5) as u32,
                    half: 0,
                    generation: chance.below(2) as u32,
                };
                let seal = chance.happens(0.5).then(Hash::default);
                Extent { segment, bytes: chance.below(3), seal }
            });
            Inventory::new(extents.collect::<Vec<_>>())
        };
        for _ in 0..2000 {
            let (one, other) = (some(), some());
            let lacking: Vec<Extent> = one.lacking(&other).copied().collect();
            let plain: Vec<Extent> = other.extents.iter().filter(|extent| !one.has(extent)).copied().collect();
            assert_eq!(lacking, plain);
            assert_eq!(one.covers(&other), plain.is_empty());
        }
    }
}
