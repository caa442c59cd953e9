//! Links whose targets belong to others: gathered per destination, sent in batches, taken within a budget.
//!
//! ```text
//!  page ─▶ came, gone ─▶ sent a while ago? ─▶ batch of its destination ─▶ full or waited long enough ─▶ one message
//! ```

mod codec;

use std::collections::{BTreeMap, HashSet};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::limits::{
    BATCH_LINKS_FULL, BATCH_TEXT_BYTES_MAX, BATCH_WAIT_MS, LINK_BYTES_MAX, OUTBOX_BYTES_MAX, SENDER_LINKS_BURST,
    SENDER_LINKS_PER_S, SENDERS_MAX, SENT_LINKS_MAX,
};

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

/// Which links were sent lately: hashes in two generations. A link that is not remembered is sent once more, which harms nobody.
#[derive(Debug, Default)]
struct Sent {
    young: HashSet<u64>,
    old: HashSet<u64>,
}

impl Sent {
    /// Whether it is new, and so to be sent.
    fn add(&mut self, hash: u64) -> bool {
        if self.young.contains(&hash) {
            return false;
        }
        let known = self.old.contains(&hash);
        if self.young.len() >= SENT_LINKS_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(hash);
        !known
    }

    fn forget(&mut self, hash: u64) {
        self.young.remove(&hash);
        self.old.remove(&hash);
    }
}

/// Links on their way out, by destination `N` and crawl. Time comes in as milliseconds of any clock that goes forward.
#[derive(Debug)]
pub struct Outbox<N> {
    waiting: BTreeMap<(N, String), Waiting>,
    text: usize,
    sent: Sent,
    /// Links that were not sent because they had been a while ago.
    pub repeated: u64,
}

#[derive(Debug, Default)]
struct Waiting {
    links: Vec<Link>,
    text: usize,
    since_ms: u64,
}

impl<N: Ord + Clone> Default for Outbox<N> {
    fn default() -> Outbox<N> {
        Outbox { waiting: BTreeMap::new(), text: 0, sent: Sent::default(), repeated: 0 }
    }
}

impl<N: Ord + Clone> Outbox<N> {
    /// Takes a link to a slice that `to` leads. Returns a batch that has to go out now, with where to.
    pub fn put(&mut self, to: &N, crawl: &str, link: Link, now_ms: u64) -> Option<(N, Batch)> {
        if !is_link(&link.url) {
            return None;
        }
        let hash = |gone: bool| xxh3_64_with_seed(link.url.as_bytes(), seed_of(crawl) ^ u64::from(gone));
        if !self.sent.add(hash(link.gone)) {
            self.repeated += 1;
            return None;
        }
        // What comes back after it went, or goes after it came, is news again.
        self.sent.forget(hash(!link.gone));
        let bytes = link.url.len();
        let key = (to.clone(), crawl.to_owned());
        let full_before = self.waiting.get(&key).is_some_and(|waiting| waiting.text + bytes > BATCH_TEXT_BYTES_MAX);
        let before = if full_before { self.take(&key) } else { None };
        let waiting =
            self.waiting.entry(key.clone()).or_insert_with(|| Waiting { since_ms: now_ms, ..Waiting::default() });
        waiting.links.push(link);
        waiting.text += bytes;
        self.text += bytes;
        if before.is_some() {
            return before;
        }
        if waiting.links.len() >= BATCH_LINKS_FULL {
            return self.take(&key);
        }
        if self.text > OUTBOX_BYTES_MAX {
            let fullest = self.waiting.iter().max_by_key(|(_, waiting)| waiting.text).map(|(key, _)| key.clone());
            return fullest.and_then(|key| self.take(&key));
        }
        None
    }

    /// Batches that have waited long enough; all of them when `all`.
    pub fn due(&mut self, now_ms: u64, all: bool) -> Vec<(N, Batch)> {
        let old = |waiting: &Waiting| all || now_ms.saturating_sub(waiting.since_ms) >= BATCH_WAIT_MS;
        let keys: Vec<_> = self.waiting.iter().filter(|(_, w)| old(w)).map(|(key, _)| key.clone()).collect();
        keys.iter().filter_map(|key| self.take(key)).collect()
    }

    /// When the next batch is due.
    pub fn next_ms(&self) -> Option<u64> {
        self.waiting.values().map(|waiting| waiting.since_ms.saturating_add(BATCH_WAIT_MS)).min()
    }

    /// A batch did not arrive: what is in it is no longer remembered as sent.
    pub fn lost(&mut self, batch: &Batch) {
        let seed = seed_of(&batch.crawl);
        for link in &batch.links {
            self.sent.forget(xxh3_64_with_seed(link.url.as_bytes(), seed ^ u64::from(link.gone)));
        }
    }

    fn take(&mut self, key: &(N, String)) -> Option<(N, Batch)> {
        let waiting = self.waiting.remove(key)?;
        self.text -= waiting.text;
        Some((key.0.clone(), Batch { crawl: key.1.clone(), links: waiting.links }))
    }
}

fn seed_of(crawl: &str) -> u64 {
    xxh3_64_with_seed(crawl.as_bytes(), 0) << 1
}

/// What came and what went between two versions of a page's links; both may be in any order.
pub fn came_and_gone<'l>(before: &[&'l str], now: &[&'l str]) -> (Vec<&'l str>, Vec<&'l str>) {
    let (old, new): (HashSet<&str>, HashSet<&str>) = (before.iter().copied().collect(), now.iter().copied().collect());
    let mut came: Vec<&str> = new.difference(&old).copied().collect();
    let mut gone: Vec<&str> = old.difference(&new).copied().collect();
    came.sort_unstable();
    gone.sort_unstable();
    (came, gone)
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

    fn link(url: &str) -> Link {
        Link { url: url.into(), depth: 1, needed: false, gone: false }
    }

    fn batch(urls: &[&str]) -> Batch {
        Batch { crawl: "docs".into(), links: urls.iter().map(|url| link(url)).collect() }
    }

    #[test]
    fn what_was_sent_is_not_sent_again_until_it_went_or_was_lost() {
        let mut outbox = Outbox::default();
        let put = |outbox: &mut Outbox<u8>, gone: bool| {
            assert_eq!(outbox.put(&1, "docs", Link { gone, ..link("http://a/") }, 0), None);
            outbox.due(BATCH_WAIT_MS, false).into_iter().flat_map(|(_, batch)| batch.links).count()
        };
        assert_eq!([false, false, true, true, false].map(|gone| put(&mut outbox, gone)), [1, 0, 1, 0, 1]);
        assert_eq!(outbox.repeated, 2);
        outbox.lost(&batch(&["http://a/"]));
        assert_eq!(put(&mut outbox, false), 1);
        // Another crawl has its own rules, and so its own links.
        outbox.put(&1, "other", link("http://a/"), 0);
        assert_eq!(outbox.due(0, true).len(), 1);
    }

    #[test]
    fn batches_go_out_full_or_when_they_have_waited() {
        let mut outbox = Outbox::default();
        let mut out = Vec::new();
        for number in 0..BATCH_LINKS_FULL as u64 + 5 {
            out.extend(outbox.put(&(number % 2), "docs", link(&format!("http://a/{number}")), 1_000));
        }
        assert!(out.is_empty() && outbox.due(1_000 + BATCH_WAIT_MS - 1, false).is_empty());
        assert_eq!(outbox.next_ms(), Some(1_000 + BATCH_WAIT_MS));
        for number in 0..BATCH_LINKS_FULL as u64 {
            out.extend(outbox.put(&0, "docs", link(&format!("http://b/{number}")), 2_000));
        }
        assert_eq!(out.iter().map(|(to, batch)| (*to, batch.links.len())).collect::<Vec<_>>(), [(0, BATCH_LINKS_FULL)]);
        assert_eq!(outbox.due(1_000 + BATCH_WAIT_MS, false).len(), 1);
        assert_eq!(outbox.due(0, true).len(), 1);
    }

    #[test]
    fn what_waits_and_what_is_remembered_is_bounded() {
        let mut outbox = Outbox::default();
        let long = "x".repeat(LINK_BYTES_MAX - 64);
        let mut out = 0;
        for number in 0..4_000_u32 {
            out += usize::from(outbox.put(&number, "docs", link(&format!("http://a/{number}/{long}")), 0).is_some());
            assert!(outbox.text <= OUTBOX_BYTES_MAX + LINK_BYTES_MAX);
        }
        assert!(out > 1_000);
        let mut sent = Sent::default();
        for hash in 0..3 * SENT_LINKS_MAX as u64 {
            assert!(sent.add(hash));
        }
        assert!(sent.young.len() <= SENT_LINKS_MAX && sent.old.len() <= SENT_LINKS_MAX);
        assert!(sent.add(0) && !sent.add(3 * SENT_LINKS_MAX as u64 - 1));
    }

    #[test]
    fn only_what_is_new_against_the_version_before_travels() {
        let (came, gone) = came_and_gone(&["http://a/", "http://b/", "http://b/"], &["http://c/", "http://b/"]);
        assert_eq!((came, gone), (vec!["http://c/"], vec!["http://a/"]));
    }

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
