//! Which block of URLs is looked at next.
//!
//! URLs are numbered; a block is 128 neighbours, whose memories lie together. The calendar keeps one moment per block, the
//! earliest at which one of its URLs is due, so that a billion URLs need eight million moments here and the rest on disk.

use std::collections::BTreeSet;

use super::memory::Moment;

/// Blocks by the moment at which something in them is due.
#[derive(Clone, Debug, Default)]
pub struct Calendar {
    due: Vec<Moment>,
    order: BTreeSet<(Moment, u32)>,
    /// When the block was last looked at whole, by the price of then.
    reviewed: Vec<Moment>,
}

impl Calendar {
    /// Blocks that have a place.
    pub fn blocks(&self) -> u32 {
        self.due.len() as u32
    }

    /// Something in the block is due then, or earlier.
    pub fn sooner(&mut self, block: u32, due: Moment) {
        if due < self.of(block) {
            self.set(block, due);
        }
    }

    /// Nothing in the block is due before then; [`Moment::NEVER`] where nothing waits in it.
    pub fn set(&mut self, block: u32, due: Moment) {
        let place = block as usize;
        if self.due.len() <= place {
            self.due.resize(place + 1, Moment::NEVER);
            self.reviewed.resize(place + 1, Moment(0));
        }
        let before = std::mem::replace(&mut self.due[place], due);
        if before == due {
            return;
        }
        if before != Moment::NEVER {
            self.order.remove(&(before, block));
        }
        if due != Moment::NEVER {
            self.order.insert((due, block));
        }
    }

    /// When something in the block is due.
    pub fn of(&self, block: u32) -> Moment {
        self.due.get(block as usize).copied().unwrap_or(Moment::NEVER)
    }

    /// The block in which something is due first, and when.
    pub fn first(&self) -> Option<(Moment, u32)> {
        self.order.first().copied()
    }

    /// Was the last look at the whole block so many days ago? Then this is the next.
    pub fn review(&mut self, block: u32, now: Moment, days: f32) -> bool {
        match self.reviewed.get_mut(block as usize) {
            Some(reviewed) if now.days_since(*reviewed) >= days => {
                *reviewed = now;
                true
            }
            _ => false,
        }
    }

    /// Every block is looked at again, whole and at once: a new budget.
    pub fn all_due(&mut self, now: Moment) {
        self.reviewed.fill(Moment(0));
        for block in 0..self.blocks() {
            if self.of(block) != Moment::NEVER {
                self.sooner(block, now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_block_comes_first_and_moves() {
        let mut calendar = Calendar::default();
        assert_eq!(calendar.first(), None);
        calendar.set(7, Moment(50));
        calendar.set(2, Moment(60));
        assert_eq!(calendar.first(), Some((Moment(50), 7)));
        calendar.sooner(2, Moment(40));
        calendar.sooner(2, Moment(90));
        assert_eq!(calendar.first(), Some((Moment(40), 2)));
        calendar.set(2, Moment::NEVER);
        calendar.set(7, Moment(70));
        assert_eq!(calendar.first(), Some((Moment(70), 7)));
        calendar.all_due(Moment(5));
        assert_eq!((calendar.first(), calendar.of(2)), (Some((Moment(5), 7)), Moment::NEVER));
        assert_eq!((calendar.blocks(), calendar.of(99)), (8, Moment::NEVER));
        assert!(calendar.review(7, Moment(86_400), 1.0) && !calendar.review(7, Moment(86_400), 1.0));
        assert!(!calendar.review(7, Moment(2 * 86_400 - 1), 1.0) && calendar.review(7, Moment(2 * 86_400), 1.0));
    }
}
