//! Links on their way to the leaders of other slices: gathered, sent once, kept until they are safe there.
//!
//! ```text
//!  put ──▶ waiting, by slice ──▶ take: a batch for whoever leads there ──▶ settled: gone, or waiting again
//! ```
//! What is neither acknowledged nor sent when a crawl is checkpointed is written beside the registry: one line for each link,
//! `depth needed url`. Where it is known which site links, its number follows `needed`, behind a `+`, or behind a `-` if it does no more.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io::Write;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::error::{Error, Result};
use crate::limits::{FORWARD_AGAIN_MS, FORWARD_LINKS_MAX, FORWARD_WAIT_MS, FORWARDED_REMEMBERED_MAX, OUTBOX_LINKS_MAX};
use crate::sharing::{Link, Node, Referrer};

/// Links that go elsewhere.
#[derive(Default)]
pub(crate) struct Outbox {
    waiting: BTreeMap<u32, Waiting>,
    out: HashMap<u64, Batch>,
    /// Nodes that have a batch: the next one waits for its answer.
    busy: HashSet<Node>,
    /// What was sent, by a hash, and from how near to a seed.
    sent: HashMap<u64, u16>,
    next: u64,
    links: usize,
}

#[derive(Default)]
struct Waiting {
    links: VecDeque<Link>,
    /// Not before then, in milliseconds.
    not_before_ms: u64,
}

/// Links for one node.
pub(crate) struct Batch {
    to: Node,
    /// Each with its slice.
    links: Vec<(u32, Link)>,
}

impl Outbox {
    /// Takes a link, unless it was sent a while ago; with `nearer`, one that comes from nearer to a seed is taken once more.
    pub fn put(&mut self, slice: u32, link: Link, nearer: bool, now_ms: u64) {
        if self.sent.len() >= FORWARDED_REMEMBERED_MAX {
            self.sent.clear();
        }
        let name = name_of(&link, link.gone);
        // What comes back after it went, or goes after it came, is news again.
        self.sent.remove(&name_of(&link, !link.gone));
        let before = self.sent.get(&name).copied();
        if before.is_none_or(|depth| nearer && link.depth < depth) {
            self.sent.insert(name, link.depth);
            let waiting = self.waiting.entry(slice).or_default();
            if waiting.links.is_empty() {
                waiting.not_before_ms = waiting.not_before_ms.max(now_ms + FORWARD_WAIT_MS);
            }
            waiting.links.push_back(link);
            self.links += 1;
        }
    }

    /// A batch that may go now: its number, to whom, and the links.
    pub fn take(&mut self, now_ms: u64, leader: &dyn Fn(u32) -> Option<Node>) -> Option<(u64, Node, Vec<Link>)> {
        let mut found: Option<Batch> = None;
        for (slice, waiting) in &mut self.waiting {
            let full = waiting.links.len() >= FORWARD_LINKS_MAX;
            if waiting.links.is_empty() || (now_ms < waiting.not_before_ms && !full) {
                continue;
            }
            let Some(to) = leader(*slice) else {
                waiting.not_before_ms = now_ms + FORWARD_AGAIN_MS;
                continue;
            };
            if self.busy.contains(&to) || found.as_ref().is_some_and(|batch| batch.to != to) {
                continue;
            }
            let batch = found.get_or_insert_with(|| Batch { to, links: Vec::new() });
            let room = FORWARD_LINKS_MAX - batch.links.len();
            let taken = waiting.links.len().min(room);
            batch.links.extend(waiting.links.drain(..taken).map(|link| (*slice, link)));
            if batch.links.len() == FORWARD_LINKS_MAX {
                break;
            }
        }
        let batch = found?;
        self.busy.insert(batch.to);
        self.next += 1;
        let links = latest(&batch.links);
        let to = batch.to;
        self.out.insert(self.next, batch);
        Some((self.next, to, links))
    }

    /// A batch arrived and is safe there, or did not.
    pub fn settled(&mut self, number: u64, safe: bool, now_ms: u64) {
        let Some(batch) = self.out.remove(&number) else { return };
        self.busy.remove(&batch.to);
        if safe {
            self.links -= batch.links.len();
            return;
        }
        for (slice, link) in batch.links.into_iter().rev() {
            let waiting = self.waiting.entry(slice).or_default();
            waiting.links.push_front(link);
            waiting.not_before_ms = now_ms + FORWARD_AGAIN_MS;
        }
    }

    /// Links that are not safe elsewhere yet.
    pub fn len(&self) -> usize {
        self.links
    }

    /// Nothing more should be put into it for now.
    pub fn is_full(&self) -> bool {
        self.links >= OUTBOX_LINKS_MAX
    }

    /// When there is something to do, in milliseconds.
    pub fn due_ms(&self) -> Option<u64> {
        let waiting = self.waiting.values().filter(|waiting| !waiting.links.is_empty());
        waiting.map(|waiting| waiting.not_before_ms).min()
    }

    /// Writes down what is not safe elsewhere.
    pub fn store(&self, folder: &Path) -> Result<()> {
        let path = path(folder);
        if self.links == 0 && !path.exists() {
            return Ok(());
        }
        let failed = |error| Error::io("cannot write", &path, error);
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        let mut out = std::io::BufWriter::new(&mut file);
        let waiting = self.waiting.values().flat_map(|waiting| &waiting.links);
        let on_the_way = self.out.values().flat_map(|batch| batch.links.iter().map(|(_, link)| link));
        for link in waiting.chain(on_the_way) {
            let sign = if link.gone { '-' } else { '+' };
            let site = link.site.map(|site| format!("{sign}{}", site.bit())).unwrap_or_default();
            writeln!(out, "{} {}{site} {}", link.depth, u8::from(link.needed), link.url).map_err(failed)?;
        }
        out.flush().map_err(failed)?;
        drop(out);
        file.as_file().sync_all().map_err(failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// What an earlier run wrote down, for whoever puts it in again. A line that makes no sense is left out.
    pub fn stored(folder: &Path) -> Result<Vec<Link>> {
        let path = path(folder);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io("cannot read", &path, error)),
        };
        let read = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let (depth, needed) = (words.next()?.parse().ok()?, words.next()?);
            let link = Link { needed: needed.starts_with('1'), ..Link::to(words.next()?, depth) };
            let Some((_, site)) = needed.split_once(['+', '-']) else { return Some(link) };
            let site = Some(Referrer::from_bit(site.parse().ok()?)?);
            Some(Link { site, gone: needed.contains('-'), ..link })
        };
        Ok(text.lines().filter_map(read).collect())
    }
}

/// Tells what is sent from what was sent: a link, which site it comes from, and whether it came or went.
fn name_of(link: &Link, gone: bool) -> u64 {
    let site = link.site.map_or(0, |site| u64::from(site.bit()) + 1);
    xxh3_64_with_seed(link.url.as_bytes(), site << 1 | u64::from(gone))
}

/// Of what came and went under way, what holds now: a batch has no order.
fn latest(links: &[(u32, Link)]) -> Vec<Link> {
    let gone = links.iter().any(|(_, link)| link.gone);
    let mut last: HashMap<u64, usize> = HashMap::new();
    if gone {
        last.extend(links.iter().enumerate().map(|(at, (_, link))| (name_of(link, false), at)));
    }
    let counts = |at: usize, link: &Link| !gone || last.get(&name_of(link, false)) == Some(&at);
    links.iter().enumerate().filter(|(at, (_, link))| counts(*at, link)).map(|(_, (_, link))| link.clone()).collect()
}

fn path(folder: &Path) -> PathBuf {
    folder.join("outbox")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(url: &str) -> Link {
        Link::to(url, 1)
    }

    #[test]
    fn links_wait_for_each_other_and_go_to_who_leads() {
        let mut outbox = Outbox::default();
        let leader = |slice: u32| (slice != 9).then_some([(slice % 2) as u8; 32]);
        for (slice, url) in [(0, "http://a/"), (2, "http://b/"), (1, "http://c/"), (9, "http://d/"), (0, "http://a/")] {
            outbox.put(slice, link(url), false, 0);
        }
        assert_eq!(outbox.len(), 4, "what was put in already is not put in again");
        assert!(outbox.take(0, &leader).is_none());
        let (first, to, links) = outbox.take(FORWARD_WAIT_MS, &leader).unwrap();
        assert_eq!((to, links.len()), ([0; 32], 2), "one batch for both slices of a node");
        let (second, to, links) = outbox.take(FORWARD_WAIT_MS, &leader).unwrap();
        assert_eq!((to, links), ([1; 32], vec![link("http://c/")]));
        assert!(outbox.take(FORWARD_WAIT_MS, &leader).is_none());
        outbox.settled(second, true, 0);
        outbox.settled(first, false, FORWARD_WAIT_MS);
        assert_eq!(outbox.len(), 3);
        let again = FORWARD_WAIT_MS + FORWARD_AGAIN_MS;
        assert_eq!(outbox.take(again, &|_| Some([5; 32])).unwrap().2.len(), 3, "also what had no leader");
    }

    #[test]
    fn a_nearer_way_to_a_page_is_news_where_depth_counts() {
        let mut outbox = Outbox::default();
        let at = |depth| Link { depth, ..link("http://a/") };
        outbox.put(0, at(5), true, 0);
        outbox.put(0, at(5), true, 0);
        outbox.put(0, at(6), true, 0);
        assert_eq!(outbox.len(), 1);
        outbox.put(0, at(3), false, 0);
        assert_eq!(outbox.len(), 1, "elsewhere it is not");
        outbox.put(0, at(3), true, 0);
        assert_eq!(outbox.len(), 2);
    }

    #[test]
    fn what_went_travels_once_and_comes_back_as_news() {
        let mut outbox = Outbox::default();
        let site = Referrer::from_bit(3);
        let came = Link { site, ..link("http://a/") };
        let gone = Link { gone: true, ..came.clone() };
        let mut send = |links: &[&Link]| {
            links.iter().for_each(|link| outbox.put(0, (*link).clone(), false, 0));
            let (number, _, links) = outbox.take(FORWARD_WAIT_MS, &|_| Some([0; 32]))?;
            outbox.settled(number, true, 0);
            Some(links)
        };
        assert_eq!(send(&[&came, &came]), Some(vec![came.clone()]));
        assert_eq!(send(&[&gone, &gone]), Some(vec![gone.clone()]));
        assert_eq!(send(&[&came, &gone, &came]), Some(vec![came.clone()]), "what holds in the end");
        assert_eq!(send(&[&came]), None);
        // Another site that links there is news; one that nobody asks for is not told apart.
        let other = Link { site: Referrer::from_bit(4), ..came.clone() };
        assert_eq!(send(&[&other, &gone]), Some(vec![other, gone]));
        assert_eq!(outbox.len(), 0);
    }

    #[test]
    fn what_is_not_safe_elsewhere_outlives_a_run() {
        let folder = tempfile::tempdir().unwrap();
        let mut outbox = Outbox::default();
        outbox.store(folder.path()).unwrap();
        assert!(Outbox::stored(folder.path()).unwrap().is_empty());
        outbox.put(0, link("http://a/"), false, 0);
        let needed = Link { needed: true, ..Link::to("http://b/?q=1%202", 7) };
        let site = Referrer::from_bit(17);
        let gone = Link { site, gone: true, ..link("http://c/") };
        let from = Link { site, needed: true, ..link("http://d/") };
        [&needed, &gone, &from].into_iter().for_each(|link| outbox.put(1, link.clone(), false, 0));
        let (number, _, _) = outbox.take(FORWARD_WAIT_MS, &|_| Some([0; 32])).unwrap();
        outbox.store(folder.path()).unwrap();
        let mut stored = Outbox::stored(folder.path()).unwrap();
        stored.sort();
        assert_eq!(stored, [link("http://a/"), needed, gone, from]);
        outbox.settled(number, true, 0);
        outbox.store(folder.path()).unwrap();
        assert!(Outbox::stored(folder.path()).unwrap().is_empty());
    }
}
