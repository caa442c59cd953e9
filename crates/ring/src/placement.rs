//! The wish: which nodes should hold a slice. A pure function of the roster, the same on every node that has the same roster.
//!
//! A node has positions on a circle, hashes of its key and an index, as many as its declared capacity earns; it cannot choose
//! them. The wish for a slice is a walk clockwise from the slice's own place: the first `copies` nodes with different owners. While
//! there are fewer owners than copies, different zones are preferred, then different nodes.
//!
//! ```text
//! position  | highest 4 bytes of BLAKE3(node key, index) 4 | number of the node 4 |      8 bytes each, sorted
//! ```

use crate::genesis::Slice;
use crate::key::{Hash, Key};
use crate::limits::{POSITIONS_MAX, POSITIONS_PER_TB};
use crate::roster::{Index, Roster};

/// The circle of all positions.
#[derive(Clone, Default)]
pub struct Ring {
    positions: Vec<(u32, Index)>,
    /// By number of node: the numbers of its owner and zone, so that a walk compares numbers.
    owner: Vec<u32>,
    zone: Vec<u32>,
    /// How many different owners have positions.
    owners: Vec<u32>,
    different: usize,
}

/// How well the wish could be fulfilled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// All holders have different owners.
    Owners,
    /// There are too few owners; nodes and, where possible, zones differ.
    Nodes,
    /// There are fewer nodes than copies wanted.
    Short,
}

/// Positions that a capacity earns.
pub fn earned(capacity_gb: u32) -> u32 {
    (u64::from(capacity_gb) * u64::from(POSITIONS_PER_TB) / 1000).clamp(1, u64::from(POSITIONS_MAX)) as u32
}

fn position(node: &Key, index: u32) -> u32 {
    let mut bytes = [0; 36];
    bytes[..32].copy_from_slice(&node.0);
    bytes[32..].copy_from_slice(&index.to_be_bytes());
    (Hash::of("skep position", &bytes).number() >> 32) as u32
}

impl Ring {
    /// The ring of these members.
    pub fn new(roster: &Roster, members: impl Iterator<Item = Index>) -> Ring {
        let mut ring = Ring::default();
        for index in members {
            ring.know(roster, index);
            ring.positions.extend(positions(roster, index));
        }
        ring.sort(roster);
        ring.positions.shrink_to_fit();
        ring
    }

    /// One node more; its positions are merged in.
    pub fn insert(&mut self, roster: &Roster, index: Index) {
        if self.has(index) {
            return;
        }
        self.know(roster, index);
        self.positions.extend(positions(roster, index));
        self.sort(roster);
    }

    /// By place; of two nodes at one place the lower key comes first, because numbers differ from node to node. A stable sort notices
    /// that all but the new ones are in order.
    fn sort(&mut self, roster: &Roster) {
        self.positions
            .sort_by(|one, other| one.0.cmp(&other.0).then_with(|| roster.key(one.1).cmp(&roster.key(other.1))));
    }

    /// One node less.
    pub fn remove(&mut self, index: Index) {
        if !self.has(index) {
            return;
        }
        self.positions.retain(|(_, other)| *other != index);
        let owner = self.owner[index as usize] as usize;
        self.owners[owner] -= 1;
        self.different -= usize::from(self.owners[owner] == 0);
        self.owner[index as usize] = u32::MAX;
    }

    /// Whether a node has positions.
    pub fn has(&self, index: Index) -> bool {
        self.owner.get(index as usize).is_some_and(|owner| *owner != u32::MAX)
    }

    fn know(&mut self, roster: &Roster, index: Index) {
        let wanted = index as usize + 1;
        if self.owner.len() < wanted {
            self.owner.resize(wanted, u32::MAX);
            self.zone.resize(wanted, u32::MAX);
        }
        // Owners are numbered by the first node of theirs in the roster: no second table of keys.
        let owner = roster.owner_number(index);
        self.owner[index as usize] = owner;
        self.zone[index as usize] = roster.zone_number(index);
        if self.owners.len() <= owner as usize {
            self.owners.resize(owner as usize + 1, 0);
        }
        self.different += usize::from(self.owners[owner as usize] == 0);
        self.owners[owner as usize] += 1;
    }

    /// How many nodes have positions.
    pub fn nodes(&self) -> usize {
        self.owners.iter().map(|count| *count as usize).sum()
    }

    /// How many owners have nodes here.
    pub fn owners(&self) -> usize {
        self.different
    }

    /// The wish for a slice among nodes that `may` hold it, in the order in which they should lead.
    pub fn wish(&self, slice: Slice, bits: u8, copies: usize, may: impl Fn(Index) -> bool) -> (Vec<Index>, Spread) {
        let place = if bits == 0 { 0 } else { slice << (32 - u32::from(bits)) };
        let mut chosen: Vec<Index> = Vec::with_capacity(copies);
        for index in self.walk(place) {
            let owner = self.owner[index as usize];
            if may(index) && !chosen.iter().any(|other| self.owner[*other as usize] == owner) {
                chosen.push(index);
                if chosen.len() == copies {
                    return (chosen, Spread::Owners);
                }
                if chosen.len() == self.different {
                    break;
                }
            }
        }
        // Too few owners: the same walk once for new zones, once for new nodes.
        for zones in [true, false] {
            for index in self.walk(place) {
                if chosen.len() == copies {
                    return (chosen, Spread::Nodes);
                }
                let zone = self.zone[index as usize];
                let taken =
                    |other: &Index| *other == index || (zones && (zone == 0 || self.zone[*other as usize] == zone));
                if may(index) && !chosen.iter().any(taken) {
                    chosen.push(index);
                }
            }
        }
        let spread = if chosen.len() == copies { Spread::Nodes } else { Spread::Short };
        (chosen, spread)
    }

    /// The places of a node on the circle.
    pub fn places(&self, roster: &Roster, index: Index) -> Vec<u32> {
        positions(roster, index).into_iter().map(|(place, _)| place).collect()
    }

    fn walk(&self, place: u32) -> impl Iterator<Item = Index> + '_ {
        let start = self.positions.partition_point(|(at, _)| *at < place);
        self.positions[start..].iter().chain(&self.positions[..start]).map(|(_, index)| *index)
    }

    /// Bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        self.positions.capacity() * size_of::<(u32, Index)>()
            + (self.owner.capacity() + self.zone.capacity() + self.owners.capacity()) * size_of::<u32>()
    }
}

fn positions(roster: &Roster, index: Index) -> Vec<(u32, Index)> {
    let certificate = &roster.record(index).record.certificate.certificate;
    let mut positions: Vec<(u32, Index)> =
        (0..earned(certificate.capacity_gb)).map(|number| (position(&certificate.node, number), index)).collect();
    positions.sort_unstable();
    positions
}
