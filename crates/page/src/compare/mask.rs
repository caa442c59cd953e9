//! Parts of a page that change all the time: what rotates, what is drawn anew for each visitor. They are learned from few visits
//! and remembered in constant memory.
//!
//! A place is known by the blocks around it, which both versions have, or by what it showed. For each place the last visits are
//! remembered: did it change or not? It counts for nothing from then on when it changed at three of the last four, or when it
//! changed at three of the last eight and showed twice something that it had shown before: an advertisement comes back, an edit
//! does not. A place that showed something else altogether twice within four visits, and led elsewhere each time, is believed sooner: who edits a paragraph
//! leaves most of it, or adds one. What changes once a week is not volatile for a visitor who comes every day.

use xxhash_rust::xxh3::xxh3_64;

use crate::limits::SLOTS_MAX;

/// Of the last four visits, and of the last eight, so many with a change make a place volatile.
const CHANGES_MIN: u32 = 3;
const LAST_FOUR: u8 = 0b1111;
/// Of the last four visits, so many that replaced all of it do so, too.
const REPLACED_MIN: u32 = 2;
/// Something of fewer words than these is a number or a name, which may well be edited whole.
const REPLACED_WORDS_MIN: u32 = 5;
/// So many times it showed something again.
const RETURNS_MIN: u8 = 2;
/// What a place showed is remembered for so many changes.
const SHOWN_MAX: usize = 8;
/// A place larger than a quarter of the page, and than so many words, is not volatile: the page is.
const WORDS_FREE: u32 = 40;

/// What was learned about one page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mask {
    /// Places, the one that changed last in front.
    slots: Vec<Slot>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Slot {
    /// What stands around it.
    around: u32,
    /// The last eight visits, the newest in the lowest bit: did it change?
    visits: u8,
    /// How often it showed something again, as far as that matters.
    returns: u8,
    /// All of it was replaced when it changed last.
    replaced: bool,
    /// What it showed last, the newest first.
    shown: Vec<u32>,
}

/// A place that changed between two visits.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// Digest of the block before and of the one after; 0 at the ends of the page.
    pub around: [u64; 2],
    /// What the place shows now, and what it showed before.
    pub shows: [u64; 2],
    /// Words in it, and on the whole page.
    pub words: [u32; 2],
    /// Words that it showed before, that it shows now, and that are among both.
    pub turned: [u32; 3],
    /// A link stood there that is gone, and one stands there that is new.
    pub leads_elsewhere: bool,
}

impl Seen {
    fn key(&self) -> u32 {
        short(xxh3_64(&self.around.map(u64::to_le_bytes).concat()))
    }

    /// Something stood there, something stands there that leads elsewhere, and they have no more than half in common.
    fn is_replaced(&self) -> bool {
        let [before, now, stayed] = self.turned;
        self.leads_elsewhere && before.min(now) >= REPLACED_WORDS_MIN && stayed <= before.max(now) / 2
    }
}

/// Half a digest is enough to tell a few places of one page apart.
fn short(digest: u64) -> u32 {
    (digest ^ digest >> 32) as u32
}

impl Mask {
    /// Nothing changed at this visit.
    pub fn same(&mut self) {
        for slot in &mut self.slots {
            slot.visits <<= 1;
        }
        self.slots.retain(|slot| slot.visits != 0);
    }

    /// These places changed. Says of each whether it counts for nothing.
    pub fn learn(&mut self, seen: &[Seen]) -> Vec<bool> {
        for slot in &mut self.slots {
            slot.visits <<= 1;
        }
        let masked = seen.iter().map(|seen| self.also(seen)).collect();
        self.slots.retain(|slot| slot.visits != 0);
        masked
    }

    /// At the same visit this changed too. Says whether it counts for nothing.
    pub fn also(&mut self, seen: &Seen) -> bool {
        let (around, [now, before]) = (seen.key(), seen.shows.map(short));
        let here = |slot: &Slot| slot.around == around;
        // What stands around a place may be edited; what it shows in turn tells it too.
        let alike = |slot: &Slot| slot.shown.contains(&now) && slot.shown.contains(&before);
        let known = self.slots.iter().position(here).or_else(|| self.slots.iter().position(alike));
        let mut slot = match known {
            Some(at) => self.slots.remove(at),
            None => Slot { around, visits: 0, returns: 0, replaced: false, shown: vec![before] },
        };
        slot.around = around;
        slot.visits |= 1;
        let replaced = seen.is_replaced();
        let swaps = replaced && slot.replaced && (slot.visits & LAST_FOUR).count_ones() >= REPLACED_MIN;
        slot.replaced = replaced;
        if let Some(at) = slot.shown.iter().position(|shown| *shown == now) {
            slot.returns = (slot.returns + 1).min(RETURNS_MIN);
            slot.shown.remove(at);
        }
        slot.shown.insert(0, now);
        slot.shown.truncate(SHOWN_MAX);
        let often = (slot.visits & LAST_FOUR).count_ones() >= CHANGES_MIN;
        let flaps = slot.returns >= RETURNS_MIN && slot.visits.count_ones() >= CHANGES_MIN;
        self.slots.insert(0, slot);
        self.slots.truncate(SLOTS_MAX);
        let [words, of] = seen.words;
        (often || flaps || swaps) && (words <= WORDS_FREE || words <= of / 4)
    }

    /// As bytes: `| around 4 | visits 1 | replaced in the highest bit, returns in the next three, shown n in the low half 1 | shown 4 … |` for each
    /// place, little-endian.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for slot in &self.slots {
            out.extend_from_slice(&slot.around.to_le_bytes());
            out.push(slot.visits);
            out.push(u8::from(slot.replaced) << 7 | slot.returns << 4 | slot.shown.len() as u8);
            slot.shown.iter().for_each(|shown| out.extend_from_slice(&shown.to_le_bytes()));
        }
    }

    /// What bytes stand for; `None` for what was not written by [`Mask::encode`].
    pub fn decode(mut bytes: &[u8]) -> Option<Mask> {
        let mut slots = Vec::new();
        while !bytes.is_empty() {
            let (head, rest) = bytes.split_first_chunk::<6>()?;
            let [a, b, c, d, visits, counts] = *head;
            let (replaced, returns, count) = (counts >> 7 == 1, counts >> 4 & 7, usize::from(counts & 15));
            let (shown, rest) = rest.split_at_checked(count * 4)?;
            if slots.len() >= SLOTS_MAX || count > SHOWN_MAX || returns > RETURNS_MIN {
                return None;
            }
            let four = |four: &[u8]| u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
            let around = u32::from_le_bytes([a, b, c, d]);
            slots.push(Slot { around, visits, returns, replaced, shown: shown.chunks_exact(4).map(four).collect() });
            bytes = rest;
        }
        Some(Mask { slots })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(around: u64, before: u64, now: u64) -> Seen {
        Seen {
            around: [around, around + 1],
            shows: [now, before],
            words: [5, 200],
            turned: [5, 5, 4],
            leads_elsewhere: false,
        }
    }

    #[test]
    fn a_place_that_always_changes_counts_for_nothing_from_the_third_time() {
        let mut mask = Mask::default();
        let masked: Vec<bool> = (0..5).map(|n| mask.learn(&[seen(1, n, n + 1)])[0]).collect();
        assert_eq!(masked, [false, false, true, true, true]);
        (0..8).for_each(|_| mask.same());
        assert_eq!(mask, Mask::default(), "what is quiet again is forgotten");
    }

    #[test]
    fn a_place_that_shows_something_again_and_again_does_so_sooner() {
        let mut mask = Mask::default();
        let mut masked = Vec::new();
        for now in [8, 7, 8, 7] {
            masked.push(mask.learn(&[seen(1, 15 - now, now)])[0]);
            mask.same();
        }
        assert_eq!(masked, [false, false, true, true], "the first return may be meant");
        // What stands around it was edited meanwhile.
        assert_eq!(mask.learn(&[seen(50, 7, 8)]), [true]);
        let mut rare = Mask::default();
        for now in [8, 7, 8, 7, 8, 7] {
            assert_eq!(rare.learn(&[seen(1, 15 - now, now)]), [false], "a sign that is turned now and then is read");
            (0..6).for_each(|_| rare.same());
        }
    }

    #[test]
    fn what_is_replaced_whole_twice_within_four_visits_rotates() {
        let whole =
            |before, now| Seen { words: [12, 200], turned: [12, 11, 1], leads_elsewhere: true, ..seen(1, before, now) };
        let mut mask = Mask::default();
        assert_eq!(mask.learn(&[whole(1, 2)]), [false], "the first may be meant");
        mask.same();
        assert_eq!(mask.learn(&[whole(2, 3)]), [true]);
        let mut plain = Mask::default();
        for n in 0..2 {
            let text = Seen { leads_elsewhere: false, ..whole(n, n + 1) };
            assert_eq!(plain.learn(&[text]), [false], "a paragraph may be written anew");
        }
        let mut seldom = Mask::default();
        for n in 0..10 {
            assert_eq!(seldom.learn(&[whole(n, n + 1)]), [false], "one that changes now and then is read");
            (0..4).for_each(|_| seldom.same());
        }
        let mut version = Mask::default();
        let mut grows = Mask::default();
        let news = |before, now| Seen { turned: [0, 30, 0], leads_elsewhere: true, ..seen(1, before, now) };
        assert_eq!((grows.learn(&[news(1, 2)]), grows.learn(&[news(2, 3)])), (vec![false], vec![false]));
        let short =
            |before, now| Seen { words: [2, 200], turned: [2, 2, 0], leads_elsewhere: true, ..seen(1, before, now) };
        assert_eq!((version.learn(&[short(1, 2)]), version.learn(&[short(2, 3)])), (vec![false], vec![false]));
    }

    #[test]
    fn edits_in_places_of_their_own_count() {
        let mut mask = Mask::default();
        for n in 0..100 {
            assert_eq!(mask.learn(&[seen(n * 10, n, n + 1)]), [false]);
        }
        assert!(mask.slots.len() <= SLOTS_MAX);
        let whole = Seen { words: [900, 1000], ..seen(1, 1, 2) };
        assert_eq!((0..9).filter(|_| mask.learn(&[whole])[0]).count(), 0, "a page that is new each time is no place");
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut mask = Mask::default();
        for n in 0..50_u64 {
            let whole = Seen { words: [9, 200], turned: [9, 9, 0], leads_elsewhere: true, ..seen(99, n, n + 1) };
            mask.learn(&[seen(n % 40, n, n * 3 % 7), whole]);
        }
        let mut bytes = Vec::new();
        mask.encode(&mut bytes);
        assert_eq!(Mask::decode(&bytes), Some(mask));
        assert_eq!(Mask::decode(&bytes[..bytes.len() - 1]), None);
    }
}
