//! Links whose targets belong to others: they travel in batches, and are taken within a budget. What came and what went on a page is
//! gathered per destination by the crawl, which knows what it had before.

mod codec;

use std::collections::BTreeMap;

use crate::limits::{LINK_BYTES_MAX, SENDER_LINKS_BURST, SENDER_LINKS_PER_S, SENDERS_MAX};

pub use self::codec::{Codec, fuzz_links};

/// A link that travels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// Where it leads, in fetch form.
    pub url: String,
    /// Links from a seed; at most 15 arrive.
    pub depth: u16,
    /// Its page cannot be shown without it: an image, a style sheet.
    pub needed: bool,
    /// The page had it at its last visit and has it no more.
    pub gone: bool,
    /// Tells the site of the page from others, where that is worth knowing.
    pub site: Option<u8>,
}

/// Links of one crawl for one destination.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The crawl's name.
    pub crawl: String,
    /// The links, by URL, each once.
    pub links: Vec<Link>,
}

/// Why a batch is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Written by a version that is not known here.
    Newer(u8),
    /// Longer than a batch may be, or more links than one may have.
    TooLarge,
    /// Not what this format looks like; says what is wrong.
    Malformed(&'static str),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refused::Newer(version) => write!(f, "a batch of links in version {version}, which is not known here"),
            Refused::TooLarge => f.write_str("a batch of links that is too large"),
            Refused::Malformed(what) => write!(f, "not a batch of links: {what}"),
        }
    }
}

impl std::error::Error for Refused {}

/// Whether a link can travel: in fetch form, and not too long.
pub fn is_link(url: &str) -> bool {
    !url.is_empty() && url.len() <= LINK_BYTES_MAX && url.bytes().all(|byte| byte.is_ascii_graphic())
}

/// How many links each sender may still bring: a flood is cut off here, before anything is looked up for it.
#[derive(Debug)]
pub struct Budgets<N> {
    senders: BTreeMap<N, (u64, u64)>,
    /// Links that were over a budget.
    pub refused: u64,
}

impl<N: Ord + Clone> Default for Budgets<N> {
    fn default() -> Budgets<N> {
        Budgets { senders: BTreeMap::new(), refused: 0 }
    }
}

impl<N: Ord + Clone> Budgets<N> {
    /// How many of these links are taken from this sender now; the rest is dropped and counted.
    pub fn take(&mut self, sender: &N, links: u64, now_ms: u64) -> u64 {
        if !self.senders.contains_key(sender) && self.senders.len() >= SENDERS_MAX {
            // Whoever has been quiet long enough for a full budget needs no entry.
            self.senders.retain(|_, (left, at)| refilled(*left, *at, now_ms) < SENDER_LINKS_BURST);
            if self.senders.len() >= SENDERS_MAX {
                self.refused += links;
                return 0;
            }
        }
        let (left, at) = self.senders.entry(sender.clone()).or_insert((SENDER_LINKS_BURST, now_ms));
        let room = refilled(*left, *at, now_ms);
        let taken = links.min(room);
        (*left, *at) = (room - taken, now_ms.max(*at));
        self.refused += links - taken;
        taken
    }
}

fn refilled(left: u64, at_ms: u64, now_ms: u64) -> u64 {
    let more = now_ms.saturating_sub(at_ms).saturating_mul(SENDER_LINKS_PER_S) / 1000;
    left.saturating_add(more).min(SENDER_LINKS_BURST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_ends_at_the_budget_of_its_sender() {
        let mut budgets = Budgets::default();
        assert_eq!(budgets.take(&1, SENDER_LINKS_BURST + 7, 0), SENDER_LINKS_BURST);
        assert_eq!((budgets.take(&1, 10, 0), budgets.refused), (0, 17));
        assert_eq!(budgets.take(&2, 10, 0), 10, "others are not in its way");
        assert_eq!(budgets.take(&1, u64::MAX, 1_000), SENDER_LINKS_PER_S);
        // A clock that goes back gives nothing.
        assert_eq!(budgets.take(&1, 1, 500), 0);
        for sender in 3..=SENDERS_MAX as u32 + 2 {
            budgets.take(&sender, 1, 1_000);
        }
        assert_eq!(budgets.take(&u32::MAX, 1, 1_000), 0, "no room for another sender");
        assert_eq!(budgets.take(&u32::MAX, 1, 60_000), 1, "the quiet ones are forgotten");
        assert!(budgets.senders.len() <= SENDERS_MAX);
    }
}
