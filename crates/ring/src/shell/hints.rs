//! Who leads slices of which this node knows nothing itself, as far as others said: by that links find their way.

use std::collections::HashMap;

use crate::genesis::Slice;
use crate::key::Key;

/// What is believed until somebody says otherwise.
#[derive(Default)]
pub struct Hints(HashMap<Slice, Hint>);

/// Of so many refusals one is not asked whom it names.
const REGARDLESS: usize = 4;

struct Hint {
    leader: Key,
    /// Since somebody took something.
    refusals: usize,
}

impl Hints {
    /// Who leads a slice, or is to be asked next.
    pub fn get(&self, slice: Slice) -> Option<Key> {
        self.0.get(&slice).map(|hint| hint.leader)
    }

    /// A node took links of a slice: it leads.
    pub fn taken(&mut self, slice: Slice, by: Key) {
        self.0.insert(slice, Hint { leader: by, refusals: 0 });
    }

    /// A node took nothing of a slice. Whom it names is asked next, or the holder after it of those that are there. Now and then it is one
    /// holder after the other, whatever they say: nobody is kept from finding who leads by others who name each other.
    pub fn refused(&mut self, slice: Slice, by: Key, named: Option<Key>, there: &[Key]) {
        let hint = self.0.entry(slice).or_insert(Hint { leader: by, refusals: 0 });
        hint.refusals += 1;
        let regardless = hint.refusals.is_multiple_of(REGARDLESS);
        let next = match there.iter().position(|holder| *holder == by) {
            Some(at) if !regardless => at + 1,
            _ => hint.refusals / REGARDLESS,
        };
        let named = named.filter(|named| *named != by && !regardless);
        hint.leader = named.or(there.get(next % there.len().max(1)).copied()).unwrap_or(by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;
    use std::collections::BTreeMap;

    /// By then everything has arrived, also where liars were believed for a while; one after the other if all are honest.
    const ROUNDS: usize = 4 * REGARDLESS;
    const ROUNDS_HONEST: usize = 2;

    fn key(number: u64) -> Key {
        Key([number as u8; 32])
    }

    /// A slice as it is, whatever the sender believes.
    struct Truth {
        holders: Vec<Key>,
        leader: Key,
        /// What each holder says.
        said: BTreeMap<Key, Option<Key>>,
    }

    impl Truth {
        fn drawn(honest: bool, chance: &mut Chance) -> Truth {
            let mut holders: Vec<Key> = (0..4).map(key).collect();
            for at in 0..holders.len() {
                holders.swap(at, chance.below(4) as usize);
            }
            holders.truncate(3);
            let leader = holders[chance.below(3) as usize];
            let mut say = |_: &Key| match chance.below(4) {
                0 if !honest => None,
                1 if !honest => Some(key(chance.below(5))),
                _ => Some(leader),
            };
            let said = holders.iter().map(|holder| (*holder, say(holder))).collect();
            Truth { holders, leader, said }
        }
    }

    /// Links of a few slices, to be brought from somewhere else; says how many batches each took.
    fn brought(honest: bool, chance: &mut Chance) -> usize {
        let slices: Vec<Truth> = (0..1 + chance.below(6)).map(|_| Truth::drawn(honest, chance)).collect();
        let mut hints = Hints::default();
        for (slice, truth) in (0..).zip(&slices) {
            hints.taken(slice, truth.holders[chance.below(3) as usize]);
        }
        // What waits for one node goes there together, and is taken as a whole or not at all; then each slice is tried by itself.
        let mut waiting: Vec<Slice> = (0..slices.len() as Slice).collect();
        (0..ROUNDS)
            .find(|_| {
                let mut batches: BTreeMap<Key, Vec<Slice>> = BTreeMap::new();
                for slice in waiting.drain(..) {
                    batches.entry(hints.get(slice).expect("somebody is asked")).or_default().push(slice);
                }
                for (to, batch) in batches {
                    if batch.iter().all(|slice| slices[*slice as usize].leader == to) {
                        continue;
                    }
                    for slice in batch {
                        let truth = &slices[slice as usize];
                        match truth.leader == to {
                            true => hints.taken(slice, to),
                            false => hints.refused(slice, to, truth.said.get(&to).copied().flatten(), &truth.holders),
                        }
                        waiting.push(slice);
                    }
                }
                waiting.is_empty()
            })
            .map_or(usize::MAX, |round| round + 1)
    }

    #[test]
    fn links_find_who_leads_whatever_was_believed_before() {
        let mut chance = Chance::new(5);
        assert!((0..5_000).map(|_| brought(true, &mut chance)).all(|rounds| rounds <= ROUNDS_HONEST));
    }

    #[test]
    fn links_find_who_leads_whatever_other_holders_say() {
        let mut chance = Chance::new(6);
        assert!((0..5_000).map(|_| brought(false, &mut chance)).all(|rounds| rounds <= ROUNDS));
    }

    #[test]
    fn where_nobody_knows_all_holders_are_asked_in_turn() {
        let (mut hints, holders) = (Hints::default(), [key(1), key(2), key(3)]);
        let mut asked = vec![key(9)];
        for _ in 0..7 {
            hints.refused(7, asked[asked.len() - 1], None, &holders);
            asked.extend(hints.get(7));
        }
        assert_eq!(asked[1..], [1, 2, 3, 2, 3, 1, 2].map(key));
        hints.refused(8, key(1), None, &[]);
        assert_eq!(hints.get(8), Some(key(1)));
    }
}
