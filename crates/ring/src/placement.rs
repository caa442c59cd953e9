//! The wish: which nodes should hold a slice. A pure function of the roster, the same on every node that has the same roster.
//!
//! A node has positions on a circle, hashes of its key and an index, as many as its declared capacity earns; it cannot choose
//! them. The wish for a slice is a walk clockwise from the slice's own place: the first `copies` nodes with different owners. While
//! there are fewer owners than copies, different zones are preferred, then different nodes.
//!
//! ```text
//! position  | lower half of the highest 4 bytes of BLAKE3(node key, index) 2 | number of the node 2 |      sorted
//! start     | where positions with this upper half begin 4 |      65,536 of them, and the end
//! ```
//! A network of 20,000 nodes of a terabyte has 1.28 million positions, so each byte of one counts.

use crate::genesis::Slice;
use crate::key::{Hash, Key};
use crate::limits::{NODES_MAX, POSITIONS_MAX, POSITIONS_PER_TB};
use crate::roster::{Index, Roster};

/// Upper halves that a place may have.
const STARTS: usize = 1 << 16;
// Numbers of nodes fit into half of four bytes.
const _: () = assert!(NODES_MAX <= 1 << 16);

/// The circle of all positions.
#[derive(Clone, Default)]
pub struct Ring {
    starts: Vec<u32>,
    lower: Vec<u16>,
    nodes: Vec<u16>,
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
        let mut all: Vec<(u32, Index)> = Vec::new();
        for index in members {
            ring.know(roster, index);
            all.extend(positions(roster, index));
        }
        all.sort_unstable_by_key(|one| order(roster, *one));
        ring.merge(roster, &all);
        ring
    }

    /// One node more; its positions are merged in.
    pub fn insert(&mut self, roster: &Roster, index: Index) {
        if self.has(index) {
            return;
        }
        self.know(roster, index);
        self.merge(roster, &positions(roster, index));
    }

    /// Merges positions in, which are in order.
    fn merge(&mut self, roster: &Roster, more: &[(u32, Index)]) {
        let whole = self.nodes.len() + more.len();
        let (mut lower, mut nodes) = (Vec::with_capacity(whole), Vec::with_capacity(whole));
        let mut starts = vec![0u32; STARTS + 1];
        let mut from = 0;
        for (place, index) in more {
            let to = self.behind(roster, *place, *index);
            lower.extend_from_slice(&self.lower[from..to]);
            nodes.extend_from_slice(&self.nodes[from..to]);
            from = to;
            lower.push(*place as u16);
            nodes.push(*index as u16);
            starts[(place >> 16) as usize + 1] += 1;
        }
        lower.extend_from_slice(&self.lower[from..]);
        nodes.extend_from_slice(&self.nodes[from..]);
        // So many came before each start.
        let mut come = 0;
        for (at, start) in starts.iter_mut().enumerate() {
            come += *start;
            *start = come + self.starts.get(at).copied().unwrap_or(0);
        }
        (self.starts, self.lower, self.nodes) = (starts, lower, nodes);
    }

    /// Where a position comes in: of two nodes at one place the lower key is first, because numbers differ from node to node.
    fn behind(&self, roster: &Roster, place: u32, index: Index) -> usize {
        let mut at = self.first_from(place);
        while at < self.nodes.len() && self.place(at) == place && roster.key(self.node(at)) < roster.key(index) {
            at += 1;
        }
        at
    }

    /// The first position that is not before a place.
    fn first_from(&self, place: u32) -> usize {
        let upper = (place >> 16) as usize;
        let Some((begin, end)) = self.starts.get(upper).zip(self.starts.get(upper + 1)) else { return 0 };
        let (begin, end) = (*begin as usize, *end as usize);
        begin + self.lower[begin..end].partition_point(|lower| *lower < place as u16)
    }

    fn place(&self, at: usize) -> u32 {
        let upper = self.starts.partition_point(|start| *start as usize <= at) - 1;
        (upper as u32) << 16 | u32::from(self.lower[at])
    }

    fn node(&self, at: usize) -> Index {
        Index::from(self.nodes[at])
    }

    /// One node less.
    pub fn remove(&mut self, index: Index) {
        if !self.has(index) {
            return;
        }
        let (mut kept, mut before) = (0, 0);
        for upper in 0..STARTS {
            let end = self.starts[upper + 1] as usize;
            for at in std::mem::replace(&mut before, end)..end {
                if Index::from(self.nodes[at]) != index {
                    (self.lower[kept], self.nodes[kept]) = (self.lower[at], self.nodes[at]);
                    kept += 1;
                }
            }
            self.starts[upper + 1] = kept as u32;
        }
        self.lower.truncate(kept);
        self.nodes.truncate(kept);
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
        let start = self.first_from(place);
        self.nodes[start..].iter().chain(&self.nodes[..start]).map(|index| Index::from(*index))
    }

    /// Bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        (self.lower.capacity() + self.nodes.capacity()) * size_of::<u16>()
            + (self.starts.capacity() + self.owner.capacity() + self.zone.capacity() + self.owners.capacity())
                * size_of::<u32>()
    }
}

/// The order of positions on the circle.
fn order(roster: &Roster, (place, index): (u32, Index)) -> (u32, Key) {
    (place, roster.key(index))
}

fn positions(roster: &Roster, index: Index) -> Vec<(u32, Index)> {
    let certificate = &roster.record(index).record.certificate.certificate;
    let mut positions: Vec<(u32, Index)> =
        (0..earned(certificate.capacity_gb)).map(|number| (position(&certificate.node, number), index)).collect();
    positions.sort_unstable();
    positions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;
    use crate::key::Ed25519;
    use crate::watch::Watchers;
    use std::sync::Arc;

    #[test]
    fn a_ring_is_the_same_however_it_came_about() {
        let (genesis, _, record) = crate::roster::tests::network(6);
        let mut roster = Roster::new(Arc::new(genesis));
        let judge = Ed25519::from_secret(&[9; 32]);
        for node in 0..6 {
            roster.learn(&Fact::Record(Arc::new(record(node, 1))), &Watchers::default(), &judge, 0, u64::MAX / 2);
        }
        let whole = Ring::new(&roster, 0..6);
        let mut grown = Ring::new(&roster, 3..5);
        [5, 0, 2, 1].into_iter().for_each(|index| grown.insert(&roster, index));
        let places = |ring: &Ring| -> Vec<(u32, Index)> {
            (0..ring.nodes.len()).map(|at| (ring.place(at), ring.node(at))).collect()
        };
        assert_eq!(places(&whole).len(), 6 * 64);
        assert!(places(&whole).is_sorted());
        assert_eq!(places(&whole), places(&grown));
        grown.remove(2);
        grown.remove(5);
        assert_eq!(places(&grown), places(&Ring::new(&roster, [4, 3, 1, 0].into_iter())));
        // The walk from a place is the circle, turned.
        for slice in 0..16 {
            let place = slice << 28;
            let turned: Vec<Index> = whole.walk(place).collect();
            let (before, behind): (Vec<_>, Vec<_>) = places(&whole).into_iter().partition(|(at, _)| *at < place);
            assert_eq!(turned, behind.into_iter().chain(before).map(|(_, index)| index).collect::<Vec<_>>());
        }
        assert_eq!(Ring::default().wish(3, 4, 3, |_| true), (Vec::new(), Spread::Short));
    }
}
