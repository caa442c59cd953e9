//! Finds nodes by something of theirs, in four bytes a place: the thing itself stands in the roster's entry already.

use std::hash::{BuildHasher, Hash, RandomState};

use super::Index;

const NOBODY: Index = Index::MAX;
/// Places of the smallest table; there is one for every two nodes at least.
const PLACES_MIN: usize = 16;

/// Open addressing, at most half full. Nobody is ever taken out. Where a thing lies follows from a secret of this process, so that
/// nobody makes up keys that all fall into one place.
#[derive(Clone, Default)]
pub(super) struct Finder {
    places: Vec<Index>,
    count: usize,
    secret: RandomState,
}

impl Finder {
    /// The node that has this thing; `thing_of` says what a node has.
    pub fn find<T: Hash + Eq>(&self, thing: &T, thing_of: impl Fn(Index) -> T) -> Option<Index> {
        let mut place = self.first_place(thing)?;
        loop {
            match self.places[place] {
                NOBODY => return None,
                index if thing_of(index) == *thing => return Some(index),
                _ => place = (place + 1) & (self.places.len() - 1),
            }
        }
    }

    /// A node that is not found yet.
    pub fn insert<T: Hash + Eq>(&mut self, index: Index, thing_of: impl Fn(Index) -> T) {
        if 2 * (self.count + 1) > self.places.len() {
            let room = (2 * self.places.len()).max(PLACES_MIN);
            let before = std::mem::replace(&mut self.places, vec![NOBODY; room]);
            before.into_iter().filter(|index| *index != NOBODY).for_each(|index| self.put(index, &thing_of(index)));
        }
        self.put(index, &thing_of(index));
        self.count += 1;
    }

    fn put<T: Hash>(&mut self, index: Index, thing: &T) {
        let Some(mut place) = self.first_place(thing) else { return };
        while self.places[place] != NOBODY {
            place = (place + 1) & (self.places.len() - 1);
        }
        self.places[place] = index;
    }

    fn first_place<T: Hash>(&self, thing: &T) -> Option<usize> {
        let last = self.places.len().checked_sub(1)?;
        Some(self.secret.hash_one(thing) as usize & last)
    }

    /// Bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        self.places.capacity() * size_of::<Index>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_is_found_and_nobody_else() {
        let mut finder = Finder::default();
        assert_eq!(finder.find(&3, |index| index * 7), None);
        for index in 0..1000 {
            finder.insert(index, |index| index * 7);
        }
        for thing in 0..7000 {
            let found = (thing % 7 == 0).then_some(thing / 7);
            assert_eq!(finder.find(&thing, |index| index * 7), found);
        }
    }
}
