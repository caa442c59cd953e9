//! Proof of holding: a question with a nonce over random bytes, answered by a keyed hash.
//!
//! Who asks has the bytes too and compares. The key of the hash names who is asked, so an answer fetched from another holder does
//! not serve. A wrong answer, or none to several questions, suspends: the copy no longer counts, and repair replaces it.

use std::collections::BTreeMap;

use crate::chance::Chance;
use crate::copy::{Extent, Inventory};
use crate::genesis::Slice;
use crate::key::{Hash, Key};
use crate::limits::{AUDIT_RANGE_BYTES, AUDIT_RANGES, AUDITS_MAX, PEER_ANSWERS_MAX};
use crate::message::Range;

/// Questions without an answer after which a holder counts as one that failed.
pub const UNANSWERED_MAX: u8 = 3;

/// The key of the hash with which `prover` answers.
pub fn proof_key(nonce: &[u8; 16], prover: &Key) -> [u8; 32] {
    let mut bytes = [0; 48];
    bytes[..16].copy_from_slice(nonce);
    bytes[16..].copy_from_slice(&prover.0);
    Hash::of("skep proof", &bytes).0
}

/// The proof over bytes that were read in the order of the ranges.
pub fn proof<'b>(key: &[u8; 32], pieces: impl Iterator<Item = &'b [u8]>) -> Hash {
    let mut hasher = blake3::Hasher::new_keyed(key);
    pieces.for_each(|piece| {
        hasher.update(piece);
    });
    Hash(*hasher.finalize().as_bytes())
}

/// Random pieces of what is held here and, as was told, there; nothing if nothing is. One segment after the other from a random one on:
/// of as many segments as there are pieces, or fewer, none goes unasked, and none that is missing is overlooked by luck.
pub fn ranges(inventory: &Inventory, there: &Inventory, count: usize, chance: &mut Chance) -> Vec<Range> {
    // What was rewritten at one of the two, or has grown here since, cannot be compared.
    let same = |extent: &Extent| {
        there.get(&extent.segment).is_some_and(|held| held.segment == extent.segment && held.bytes >= extent.bytes)
    };
    let whole: Vec<_> = inventory.extents().iter().filter(|extent| extent.bytes > 0 && same(extent)).collect();
    if whole.is_empty() {
        return Vec::new();
    }
    let first = chance.below(whole.len() as u64) as usize;
    let piece = |at: usize, chance: &mut Chance| {
        let extent = whole[(first + at) % whole.len()];
        let bytes = AUDIT_RANGE_BYTES.min(extent.bytes);
        Range { segment: extent.segment, offset: chance.below(extent.bytes - bytes + 1), bytes: bytes as u32 }
    };
    (0..count.min(AUDIT_RANGES)).map(|at| piece(at, chance)).collect()
}

/// A question under way.
#[derive(Debug)]
struct Question {
    slice: Slice,
    peer: Key,
    mine: Option<Hash>,
    theirs: Option<Option<Hash>>,
    asked_ms: u64,
}

/// How a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The bytes are there.
    Passed,
    /// What came in their place is something else.
    Failed,
    /// It says itself that they are not there, or not any more: a segment may have been rewritten since it told of it.
    Missing,
    /// No answer came.
    Silent,
}

/// What a hash that was asked for is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// To compare with an answer.
    Compare(u64),
    /// To answer a question of a peer.
    Answer(Key, u64),
}

/// Questions and hashes under way.
#[derive(Default, Debug)]
pub struct Audits {
    questions: BTreeMap<u64, Question>,
    jobs: BTreeMap<u64, Job>,
    next: u64,
}

impl Audits {
    /// Whether more may be asked now.
    pub fn has_room(&self) -> bool {
        self.questions.len() < AUDITS_MAX && self.jobs.len() < 2 * AUDITS_MAX
    }

    /// Whether a peer is answered now: reading costs, and nobody has it all for themselves.
    pub fn may_answer(&self, peer: &Key) -> bool {
        let theirs = self.jobs.values().filter(|job| matches!(job, Job::Answer(to, _) if to == peer)).count();
        theirs < PEER_ANSWERS_MAX && self.jobs.len() < 2 * AUDITS_MAX
    }

    /// Whether a peer is being asked about a slice.
    pub fn is_asking(&self, slice: Slice, peer: &Key) -> bool {
        self.questions.values().any(|question| question.slice == slice && question.peer == *peer)
    }

    /// Begins a question; returns its number and that of the hash to compare with.
    pub fn ask(&mut self, slice: Slice, peer: Key, now_ms: u64) -> (u64, u64) {
        let id = self.number();
        self.questions.insert(id, Question { slice, peer, mine: None, theirs: None, asked_ms: now_ms });
        (id, self.job(Job::Compare(id)))
    }

    /// A hash to be made.
    pub fn job(&mut self, job: Job) -> u64 {
        let number = self.number();
        self.jobs.insert(number, job);
        number
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// What a finished hash was for.
    pub fn done(&mut self, job: u64) -> Option<Job> {
        self.jobs.remove(&job)
    }

    /// The own hash is ready; `None` if the own bytes are gone, and then nobody is judged.
    pub fn mine(&mut self, id: u64, digest: Option<Hash>) -> Option<(Slice, Key, Verdict)> {
        let Some(digest) = digest else {
            self.questions.remove(&id);
            return None;
        };
        self.questions.get_mut(&id)?.mine = Some(digest);
        self.judge(id)
    }

    /// The peer answered.
    pub fn theirs(&mut self, id: u64, peer: &Key, digest: Option<Hash>) -> Option<(Slice, Key, Verdict)> {
        let question = self.questions.get_mut(&id).filter(|question| question.peer == *peer)?;
        question.theirs = Some(digest);
        self.judge(id)
    }

    fn judge(&mut self, id: u64) -> Option<(Slice, Key, Verdict)> {
        let question = self.questions.get(&id)?;
        let (mine, theirs) = (question.mine?, question.theirs?);
        let question = self.questions.remove(&id)?;
        let verdict = match theirs {
            Some(theirs) if theirs == mine => Verdict::Passed,
            Some(_) => Verdict::Failed,
            None => Verdict::Missing,
        };
        Some((question.slice, question.peer, verdict))
    }

    /// Questions that nobody answered in time.
    pub fn overdue(&mut self, now_ms: u64, wait_ms: u64) -> Vec<(Slice, Key, Verdict)> {
        let late = |question: &Question| now_ms.saturating_sub(question.asked_ms) > wait_ms;
        let ids: Vec<u64> = self.questions.iter().filter(|(_, question)| late(question)).map(|(id, _)| *id).collect();
        ids.into_iter()
            .filter_map(|id| self.questions.remove(&id))
            .map(|question| (question.slice, question.peer, Verdict::Silent))
            .collect()
    }

    /// When the next question is overdue.
    pub fn due_ms(&self, wait_ms: u64) -> Option<u64> {
        self.questions.values().map(|question| question.asked_ms + wait_ms + 1).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::Segment;

    #[test]
    fn every_segment_is_asked_about_where_there_are_few() {
        let extent = |number| Extent {
            segment: Segment { writer: 1, number, half: 0, generation: 0 },
            bytes: 10_000 * u64::from(number),
            seal: None,
        };
        let mut chance = Chance::new(3);
        let inventory = Inventory::new((0..=AUDIT_RANGES as u32).map(extent));
        let asked: std::collections::BTreeSet<u32> = ranges(&inventory, &inventory, AUDIT_RANGES, &mut chance)
            .iter()
            .map(|range| range.segment.number)
            .collect();
        assert_eq!(asked, (1..=AUDIT_RANGES as u32).collect(), "all but the empty one");
        let few = Inventory::new((1..3).map(extent));
        let asked = ranges(&few, &few, AUDIT_RANGES, &mut chance);
        assert_eq!(asked.len(), AUDIT_RANGES);
        assert!(
            asked.iter().all(|range| range.offset + u64::from(range.bytes) <= 10_000 * u64::from(range.segment.number))
        );
        assert!(ranges(&Inventory::default(), &few, 8, &mut chance).is_empty());
    }

    #[test]
    fn what_was_rewritten_there_or_grew_here_is_not_asked_about() {
        let extent = |number, generation, bytes| Extent {
            segment: Segment { writer: 1, number, half: 0, generation },
            bytes,
            seal: None,
        };
        let here = Inventory::new([extent(1, 0, 9_000), extent(2, 0, 9_000), extent(3, 0, 9_000)]);
        let there = Inventory::new([extent(1, 1, 8_000), extent(2, 0, 9_000), extent(3, 0, 5_000)]);
        let asked = ranges(&here, &there, AUDIT_RANGES, &mut Chance::new(3));
        assert!(!asked.is_empty() && asked.iter().all(|range| range.segment.number == 2));
    }

    #[test]
    fn nobody_keeps_all_answers_busy_and_who_says_that_nothing_is_there_has_not_lied() {
        let (mut audits, loud, other) = (Audits::default(), Key([1; 32]), Key([2; 32]));
        let mut jobs = Vec::new();
        while audits.may_answer(&loud) {
            jobs.push(audits.job(Job::Answer(loud, 7)));
        }
        assert!(jobs.len() < AUDITS_MAX && audits.may_answer(&other));
        audits.done(jobs[0]);
        assert!(audits.may_answer(&loud));
        let (id, job) = audits.ask(3, other, 0);
        audits.done(job);
        assert_eq!(audits.mine(id, Some(Hash::default())), None);
        assert_eq!(audits.theirs(id, &other, None), Some((3, other, Verdict::Missing)));
    }
}
