//! Who may have a large body: hints, and never the truth. Whoever keeps one tells the holders of the slice that its SHA-256 falls into; whoever
//! brings one asks them. What is forgotten, or never arrived, costs a second copy of a body and nothing else.

use std::collections::HashMap;

use crate::genesis::{Genesis, Slice};
use crate::key::{Hash, Key};
use crate::limits::BODY_HINTS_MAX;

/// A body by its SHA-256 and its length.
pub type Name = ([u8; 32], u64);

/// Hints that were told here. Two generations: when the young one is full, the old one is forgotten.
#[derive(Debug, Default)]
pub struct Directory {
    young: HashMap<Name, Key>,
    old: HashMap<Name, Key>,
}

impl Directory {
    /// A node says that it keeps a body. Who said so first is believed as long as it is remembered: a body has one original.
    pub fn told(&mut self, name: Name, node: Key) {
        if self.young.len() >= BODY_HINTS_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        let first = self.old.remove(&name);
        self.young.entry(name).or_insert(first.unwrap_or(node));
    }

    /// A node that did not have what it said is not named again.
    pub fn forget(&mut self, name: &Name, node: &Key) {
        for generation in [&mut self.young, &mut self.old] {
            if generation.get(name) == Some(node) {
                generation.remove(name);
            }
        }
    }

    /// Who may have a body.
    pub fn who(&self, name: &Name) -> Option<Key> {
        self.young.get(name).or_else(|| self.old.get(name)).copied()
    }

    /// How many hints are remembered.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The slice whose holders are told of a body.
pub fn slice_of(sha256: &[u8; 32], genesis: &Genesis) -> Slice {
    genesis.slice_of(u32::from_be_bytes([sha256[0], sha256[1], sha256[2], sha256[3]]))
}

/// The proof that a node itself has a body: the digest of its bytes under the key of whoever asks, bound to who answers and to the record, so
/// that nobody can pass on what somebody else has proven.
pub fn proof(keyed: &[u8; 32], node: &Key, position: (u32, u32, u32)) -> Hash {
    let (writer, segment, record) = position;
    let mut bytes = [&keyed[..], &node.0].concat();
    [writer, segment, record].iter().for_each(|part| bytes.extend_from_slice(&part.to_le_bytes()));
    Hash::of("skep same body", &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_bounded_and_the_first_to_tell_is_named() {
        let name = |number: u32| {
            let mut sha256 = [0; 32];
            sha256[..4].copy_from_slice(&number.to_be_bytes());
            (sha256, 1 << 20)
        };
        let mut directory = Directory::default();
        directory.told(name(0), Key([1; 32]));
        directory.told(name(0), Key([2; 32]));
        assert_eq!(directory.who(&name(0)), Some(Key([1; 32])));
        assert_eq!(directory.who(&(name(0).0, 7)), None, "of another length it is another body");
        directory.forget(&name(0), &Key([2; 32]));
        assert_eq!(directory.who(&name(0)), Some(Key([1; 32])));
        directory.forget(&name(0), &Key([1; 32]));
        assert!(directory.who(&name(0)).is_none() && directory.is_empty());
        for number in 0..3 * BODY_HINTS_MAX as u32 {
            directory.told(name(number), Key([1; 32]));
            assert!(directory.len() <= 2 * BODY_HINTS_MAX);
        }
        assert_eq!(directory.who(&name(0)), None);
        assert_eq!(directory.who(&name(3 * BODY_HINTS_MAX as u32 - 1)), Some(Key([1; 32])));
    }

    #[test]
    fn a_proof_is_of_one_node_and_one_record() {
        let one = proof(&[7; 32], &Key([1; 32]), (1, 2, 3));
        assert_eq!(one, proof(&[7; 32], &Key([1; 32]), (1, 2, 3)));
        for other in [
            proof(&[8; 32], &Key([1; 32]), (1, 2, 3)),
            proof(&[7; 32], &Key([2; 32]), (1, 2, 3)),
            proof(&[7; 32], &Key([1; 32]), (1, 2, 4)),
        ] {
            assert_ne!(one, other);
        }
    }
}
