//! Links whose targets belong to others: gathered per destination, sent in batches, taken within a budget.
//!
//! ```text
//!  page ─▶ came, gone ─▶ sent a while ago? ─▶ batch of its destination ─▶ full or waited long enough ─▶ one message
//!
//!  batch    | version 1 | crawl s | bytes v | zstd with the dictionary below, of those bytes: |
//!           | links v | attributes, 1 each | shared v, 1 each | rests, each ended by 0a |
//!  attribute  depth in bits 0 to 3 (15: 15 or more), 4: needed by its page, 5: the page no longer has the link
//! ```
//! `v` is an unsigned LEB128 number, `s` a length `v` and as many bytes. Links stand in the order of their URLs; `shared` is how many
//! bytes a URL has in common with the one before, the rest follows. Each column is alike in itself, which is what zstd lives on.
//!
//! The dictionary is part of the format: it was trained on home pages of Debian's packages, on links of documentation and on
//! addresses of our own making, as `docs/formats/copies.md` says. Another one is another version.

use std::collections::{BTreeMap, HashSet};

use xxhash_rust::xxh3::xxh3_64_with_seed;
use zstd::dict::{DecoderDictionary, EncoderDictionary};

use crate::limits::{
    BATCH_BYTES_MAX, BATCH_CRAWL_BYTES_MAX, BATCH_LINKS_FULL, BATCH_LINKS_MAX, BATCH_TEXT_BYTES_MAX, BATCH_WAIT_MS,
    LINK_BYTES_MAX, OUTBOX_BYTES_MAX, SENDER_LINKS_BURST, SENDER_LINKS_PER_S, SENDERS_MAX, SENT_LINKS_MAX,
};

const VERSION: u8 = 1;
/// Where a step up costs more time than it saves bytes; see `cargo xtask bench forward`.
const LEVEL: i32 = 16;
const DICTIONARY: &[u8] = include_bytes!("links.dict");
/// Depths from here on are one.
const DEPTH_MAX: u16 = 15;
const NEEDED: u8 = 1 << 4;
const GONE: u8 = 1 << 5;

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

/// Writes and reads batches; keeps the dictionary ready.
pub struct Codec {
    writing: EncoderDictionary<'static>,
    reading: DecoderDictionary<'static>,
}

impl Default for Codec {
    fn default() -> Codec {
        Codec { writing: EncoderDictionary::copy(DICTIONARY, LEVEL), reading: DecoderDictionary::copy(DICTIONARY) }
    }
}

impl Codec {
    /// A batch as it is sent. Sorts its links and drops repetitions, and what [`is_link`] refuses. `TooLarge` if the rest does not fit.
    pub fn encode(&self, batch: &mut Batch) -> Result<Vec<u8>, Refused> {
        batch.links.retain(|link| is_link(&link.url));
        batch.links.sort_unstable();
        batch.links.dedup_by(|a, b| a.url == b.url && a.gone == b.gone);
        let text: usize = batch.links.iter().map(|link| link.url.len()).sum();
        let crawl = batch.crawl.as_bytes();
        if batch.links.len() > BATCH_LINKS_MAX || text > BATCH_TEXT_BYTES_MAX || crawl.len() > BATCH_CRAWL_BYTES_MAX {
            return Err(Refused::TooLarge);
        }
        let mut plain = Vec::with_capacity(text + 2 * batch.links.len() + 8);
        put_number(batch.links.len() as u64, &mut plain);
        plain.extend(batch.links.iter().map(attribute_of));
        let mut rests = Vec::with_capacity(text + batch.links.len());
        let mut last = "";
        for link in &batch.links {
            let shared = last.bytes().zip(link.url.bytes()).take_while(|(a, b)| a == b).count();
            put_number(shared as u64, &mut plain);
            rests.extend_from_slice(&link.url.as_bytes()[shared..]);
            rests.push(b'\n');
            last = &link.url;
        }
        plain.append(&mut rests);
        let mut out = vec![VERSION];
        put_number(crawl.len() as u64, &mut out);
        out.extend_from_slice(crawl);
        put_number(plain.len() as u64, &mut out);
        let packed = zstd::bulk::Compressor::with_prepared_dictionary(&self.writing)
            .and_then(|mut packer| {
                use zstd::zstd_safe::CParameter;
                // What the frame could say of itself stands before it.
                packer.set_parameter(CParameter::ContentSizeFlag(false))?;
                packer.set_parameter(CParameter::DictIdFlag(false))?;
                packer.compress(&plain)
            })
            .map_err(|_| Refused::Malformed("zstd"))?;
        out.extend_from_slice(&packed);
        if out.len() > BATCH_BYTES_MAX {
            return Err(Refused::TooLarge);
        }
        Ok(out)
    }

    /// Reads a batch. Memory is bounded by the limits, whatever the bytes say.
    pub fn decode(&self, bytes: &[u8]) -> Result<Batch, Refused> {
        if bytes.len() > BATCH_BYTES_MAX {
            return Err(Refused::TooLarge);
        }
        let mut head = Fields { rest: bytes };
        match head.take(1, "it is empty")?[0] {
            VERSION => {}
            version => return Err(Refused::Newer(version)),
        }
        let crawl = head.number("the length of its crawl")?;
        if crawl > BATCH_CRAWL_BYTES_MAX as u64 {
            return Err(Refused::TooLarge);
        }
        let crawl = head.take(crawl as usize, "its crawl")?;
        let crawl = std::str::from_utf8(crawl).map_err(|_| Refused::Malformed("its crawl is not UTF-8"))?.to_owned();
        let length = head.number("its length")?;
        if length > (BATCH_TEXT_BYTES_MAX + BATCH_LINKS_MAX * 4 + 16) as u64 {
            return Err(Refused::TooLarge);
        }
        let plain = zstd::bulk::Decompressor::with_prepared_dictionary(&self.reading)
            .and_then(|mut unpacker| unpacker.decompress(head.rest, length as usize))
            .map_err(|_| Refused::Malformed("what is compressed"))?;
        if plain.len() as u64 != length {
            return Err(Refused::Malformed("its length is another"));
        }
        Ok(Batch { crawl, links: read_links(&plain)? })
    }
}

fn attribute_of(link: &Link) -> u8 {
    link.depth.min(DEPTH_MAX) as u8 | if link.needed { NEEDED } else { 0 } | if link.gone { GONE } else { 0 }
}

fn read_links(plain: &[u8]) -> Result<Vec<Link>, Refused> {
    let mut fields = Fields { rest: plain };
    let count = fields.number("how many links")?;
    if count > BATCH_LINKS_MAX as u64 {
        return Err(Refused::TooLarge);
    }
    let attributes = fields.take(count as usize, "attributes")?;
    let mut shared = Vec::with_capacity(count as usize);
    for _ in 0..count {
        shared.push(fields.number("what is shared")? as usize);
    }
    let mut links: Vec<Link> = Vec::with_capacity(count as usize);
    let mut text = 0;
    for (attribute, shared) in attributes.iter().zip(shared) {
        let end = fields.rest.iter().position(|byte| *byte == b'\n').ok_or(Refused::Malformed("a URL without end"))?;
        let rest = fields.take(end, "a URL")?;
        fields.take(1, "the end of a URL")?;
        let before = links.last().map_or("", |link| link.url.as_str());
        // Fetch form is ASCII, checked below, so every cut is between characters.
        let begin = before.get(..shared).ok_or(Refused::Malformed("more is shared than there is"))?;
        text += shared + rest.len();
        if text > BATCH_TEXT_BYTES_MAX {
            return Err(Refused::TooLarge);
        }
        let rest = std::str::from_utf8(rest).map_err(|_| Refused::Malformed("a URL is not ASCII"))?;
        let url = [begin, rest].concat();
        if !is_link(&url) {
            return Err(Refused::Malformed("a URL that is none"));
        }
        if attribute & !(NEEDED | GONE | DEPTH_MAX as u8) != 0 {
            return Err(Refused::Malformed("an attribute"));
        }
        let link = Link {
            url,
            depth: u16::from(attribute & DEPTH_MAX as u8),
            needed: attribute & NEEDED != 0,
            gone: attribute & GONE != 0,
        };
        if links.last().is_some_and(|last| last.url > link.url) {
            return Err(Refused::Malformed("links out of order"));
        }
        links.push(link);
    }
    match fields.rest.is_empty() {
        true => Ok(links),
        false => Err(Refused::Malformed("more than its links")),
    }
}

fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// What is left to read; an error names what should have stood there.
struct Fields<'b> {
    rest: &'b [u8],
}

impl<'b> Fields<'b> {
    fn take(&mut self, count: usize, what: &'static str) -> Result<&'b [u8], Refused> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Refused::Malformed(what))?;
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self, what: &'static str) -> Result<u64, Refused> {
        let mut number = 0;
        for shift in (0..28).step_by(7) {
            let byte = self.take(1, what)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Refused::Malformed(what))
    }
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

/// Any bytes are a batch or an error, and a batch reads back as it was.
pub fn fuzz_links(bytes: &[u8]) {
    thread_local! {
        static CODEC: Codec = Codec::default();
    }
    CODEC.with(|codec| {
        if let Ok(batch) = codec.decode(bytes) {
            let mut again = batch.clone();
            if let Ok(written) = codec.encode(&mut again) {
                assert_eq!(codec.decode(&written).as_ref(), Ok(&again));
            }
        }
        // The same without zstd in the way: mutations of a compressed stream seldom get past it.
        if let Ok(links) = read_links(bytes) {
            assert!(links.len() <= BATCH_LINKS_MAX && links.iter().all(|link| is_link(&link.url)));
        }
    });
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
    fn a_batch_reads_back_sorted_and_each_link_once() {
        let codec = Codec::default();
        let mut sent =
            batch(&["http://b.example/x", "http://a.example/1", "http://a.example/1", "not in fetch form", ""]);
        sent.links.push(Link { url: "http://a.example/gone".into(), depth: 400, needed: true, gone: true });
        let message = codec.encode(&mut sent).unwrap();
        let read = codec.decode(&message).unwrap();
        let urls: Vec<_> = read.links.iter().map(|link| link.url.as_str()).collect();
        assert_eq!(urls, ["http://a.example/1", "http://a.example/gone", "http://b.example/x"]);
        assert_eq!(read.links[1], Link { url: "http://a.example/gone".into(), depth: 15, needed: true, gone: true });
        assert_eq!(read.crawl, "docs");
        let mut none = Batch::default();
        assert_eq!(codec.decode(&codec.encode(&mut none).unwrap()), Ok(none));
    }

    #[test]
    fn bytes_that_are_no_batch_are_refused_and_say_why() {
        let codec = Codec::default();
        let whole = codec.encode(&mut batch(&["http://a.example/1", "http://a.example/2"])).unwrap();
        for cut in 0..whole.len() {
            assert!(codec.decode(&whole[..cut]).is_err(), "{cut}");
        }
        assert_eq!(codec.decode(&[9]), Err(Refused::Newer(9)));
        assert_eq!(codec.decode(&vec![1; BATCH_BYTES_MAX + 1]), Err(Refused::TooLarge));
        // Says it unpacks to more than a batch may have.
        assert_eq!(codec.decode(&[1, 0, 0xff, 0xff, 0xff, 0x7f, 0]), Err(Refused::TooLarge));
        for (plain, why) in [
            (&b"\x01\x00\x05http://a/\n"[..], Refused::Malformed("more is shared than there is")),
            (b"\x01\x80\x00http://a/\n", Refused::Malformed("an attribute")),
            (b"\x01\x00\x00http://a b\n", Refused::Malformed("a URL that is none")),
            (b"\x01\x00\x00http://a/", Refused::Malformed("a URL without end")),
            (b"\x02\x00\x00\x00\x00http://b/\nhttp://a/\n", Refused::Malformed("links out of order")),
            (b"\x01\x00\x00http://a/\nmore", Refused::Malformed("more than its links")),
        ] {
            assert_eq!(read_links(plain), Err(why));
        }
    }

    /// The kept inputs of the fuzzer are frozen batches: those of the first version are read for ever.
    #[test]
    fn frozen_batches_are_read_as_ever() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/links");
        let codec = Codec::default();
        let mut pages =
            batch(&["https://a.example/", "https://www.a.example/docs/index.html", "https://b.example/?q=1"]);
        pages.links.push(Link { url: "https://b.example/logo.png".into(), depth: 3, needed: true, gone: false });
        pages.links.push(Link { url: "https://b.example/old".into(), depth: 0, needed: false, gone: true });
        for (name, mut sent) in [("pages", pages), ("none", Batch::default())] {
            let written = codec.encode(&mut sent).unwrap();
            if std::env::var_os("SKEP_FREEZE").is_some() {
                std::fs::write(folder.join(name), &written).unwrap();
            }
            let frozen = std::fs::read(folder.join(name)).unwrap();
            assert_eq!(codec.decode(&frozen), Ok(sent), "{name}");
        }
    }

    #[test]
    fn a_batch_that_is_too_large_is_not_sent() {
        let codec = Codec::default();
        let mut many = Batch {
            links: (0..=BATCH_LINKS_MAX).map(|n| link(&format!("http://a/{n}"))).collect(),
            ..Batch::default()
        };
        assert_eq!(codec.encode(&mut many), Err(Refused::TooLarge));
        many.links.pop();
        assert!(codec.encode(&mut many).is_ok());
        assert!(!is_link(&"x".repeat(LINK_BYTES_MAX + 1)));
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
