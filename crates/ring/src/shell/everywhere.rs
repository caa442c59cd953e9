//! Questions about everything: each slice is answered for by one node that holds it, so that copies are counted once. Who is silent is
//! done without, and another holder asked instead.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::coming::whole;
use super::question::{Question, is_yes};
use super::{Shell, lock};
use crate::genesis::Slice;
use crate::key::Key;
use crate::limits::{
    EVERYWHERE_ANSWER_BYTES_MAX, EVERYWHERE_AT_ONCE_MAX, EVERYWHERE_BYTES_MAX, EVERYWHERE_MS_MAX, EVERYWHERE_ROUNDS_MAX,
};
use crate::message::PROTOCOL_OLDEST;

/// What all nodes together said.
#[derive(Debug, Default)]
pub struct Everywhere {
    /// Slices for which this node answers itself.
    pub here: BTreeSet<Slice>,
    /// What each of the others said.
    pub said: Vec<Vec<u8>>,
    /// How many were to answer, this node among them.
    pub nodes: usize,
    /// Slices for which nobody answered.
    pub silent: usize,
}

impl Shell {
    /// Asks about everything that is not here. `target` is told how many nodes answer, this one among them.
    pub fn everywhere(self: &Arc<Shell>, target: &dyn Fn(usize) -> String) -> Everywhere {
        self.everywhere_in((0..self.genesis().slices()).collect(), target)
    }

    /// The same about these slices only.
    pub fn everywhere_in(self: &Arc<Shell>, slices: BTreeSet<Slice>, target: &dyn Fn(usize) -> String) -> Everywhere {
        let all = slices.len();
        let room = Room::new(EVERYWHERE_BYTES_MAX);
        let mut failed = BTreeSet::new();
        let mut shares = self.share(slices.into_iter(), &failed, PROTOCOL_OLDEST);
        let mut told = Everywhere { nodes: shares.len().max(1), ..Everywhere::default() };
        let target = target(told.nodes);
        let mut answered = 0;
        for _ in 0..EVERYWHERE_ROUNDS_MAX {
            let here = shares.remove(&self.key).unwrap_or_default();
            answered += here.len();
            told.here.extend(here);
            let mut missed = Vec::new();
            let asked: Vec<(Key, Vec<Slice>)> = std::mem::take(&mut shares).into_iter().collect();
            for part in asked.chunks(EVERYWHERE_AT_ONCE_MAX) {
                for ((node, slices), said) in part.iter().zip(self.ask_all(part, &target, &room)) {
                    match said {
                        Ok(said) => {
                            told.said.push(said);
                            answered += slices.len();
                        }
                        Err(_) => {
                            failed.insert(*node);
                            missed.extend(slices);
                        }
                    }
                }
            }
            if missed.is_empty() {
                break;
            }
            shares = self.share(missed.into_iter(), &failed, PROTOCOL_OLDEST);
        }
        told.silent = all - answered;
        told
    }

    /// Who answers for which of these slices: this node where it can, else the quickest holder that is there and speaks this protocol. Slices
    /// for which there is nobody are not among them.
    pub(super) fn share(
        &self,
        slices: impl Iterator<Item = Slice>,
        without: &BTreeSet<Key>,
        protocol: u16,
    ) -> BTreeMap<Key, Vec<Slice>> {
        let quickness = lock(&self.quickness).clone();
        let machine = lock(&self.machine);
        let (view, core) = (&machine.node.view, &machine.node.core);
        let there = |node: &Key| {
            let present = view.roster.index(node).is_some_and(|index| {
                view.roster.is_present(index) && view.roster.record(index).record.protocol.0 >= protocol
            });
            present && *node != self.key && !without.contains(node)
        };
        let mut shares: BTreeMap<Key, Vec<Slice>> = BTreeMap::new();
        for slice in slices {
            let own = core
                .holding(slice)
                .is_some_and(|holding| holding.latest().nodes.contains(&self.key) && holding.is_current(&self.key));
            let answers = match own {
                true => Some(self.key),
                false => {
                    let holders = view.holders(slice).into_iter().filter(there);
                    holders.min_by_key(|node| quickness.get(node).copied().unwrap_or(0))
                }
            };
            if let Some(node) = answers {
                shares.entry(node).or_default().push(slice);
            }
        }
        shares
    }

    /// Asks several at once; their answers in the same order.
    fn ask_all(
        self: &Arc<Shell>,
        asked: &[(Key, Vec<Slice>)],
        target: &str,
        room: &Room,
    ) -> Vec<Result<Vec<u8>, String>> {
        let patience = Duration::from_millis(EVERYWHERE_MS_MAX);
        std::thread::scope(|scope| {
            let ask = |(node, slices): &(Key, Vec<Slice>)| {
                let (node, question) = (*node, Question::Portal { target: target.to_owned(), slices: slices.clone() });
                scope.spawn(move || {
                    let since = Instant::now();
                    let asked = self.wire.ask(node, &question.encode(), patience);
                    let mut answer = asked.map_err(|silence| silence.to_string())?;
                    is_yes(&mut answer).map_err(|error| error.to_string())??;
                    self.answered_after(node, since.elapsed());
                    let mut taken = room.part(EVERYWHERE_ANSWER_BYTES_MAX);
                    let bytes = whole(answer, patience, &mut |length| taken.grow(length));
                    // Who begins quickly and then drips is none of the quick ones.
                    let bytes = bytes.inspect_err(|_| self.answered_after(node, since.elapsed()));
                    let bytes = bytes.map_err(|error| error.to_string())?;
                    taken.keep();
                    Ok(bytes)
                })
            };
            let threads: Vec<_> = asked.iter().map(ask).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("a fault".into()))).collect()
        })
    }
}

/// Room for all answers to one question, however many there are.
struct Room(AtomicU64);

/// What one of them takes of it; given back when it is not kept.
struct Part<'r> {
    room: &'r Room,
    bytes: u64,
    most: u64,
}

impl Room {
    fn new(bytes: u64) -> Room {
        Room(AtomicU64::new(bytes))
    }

    fn part(&self, most: u64) -> Part<'_> {
        Part { room: self, bytes: 0, most }
    }
}

impl Part<'_> {
    /// Whether there is room for so much in all.
    fn grow(&mut self, length: u64) -> bool {
        let more = length - self.bytes;
        let fits = |left: u64| left.checked_sub(more);
        let grows = length <= self.most && self.room.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if grows {
            self.bytes = length;
        }
        grows
    }

    fn keep(mut self) {
        self.bytes = 0;
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.room.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_answers_together_take_no_more_room_than_there_is() {
        let room = Room::new(100);
        let (mut one, mut other) = (room.part(60), room.part(60));
        assert!(one.grow(40) && one.grow(60) && !one.grow(61), "one takes no more than its part");
        assert!(other.grow(40) && !other.grow(41), "nor do all");
        drop(other);
        one.keep();
        let mut third = room.part(60);
        assert!(third.grow(40) && !third.grow(41), "what is not kept leaves room for others");
    }
}
