//! The links of one page as they are collected: each URL once, with its strongest kind.

use std::borrow::Cow;

use encoding_rs::Encoding;

use crate::outlinks::Outlinks;
use crate::page::{Cut, LinkKind};
use crate::resolve::Resolver;
use crate::{limits, value};

/// Collects links and counts the work that they cause.
#[derive(Debug)]
pub struct Links {
    resolver: Resolver,
    /// Of the bytes that values are made of.
    charset: &'static Encoding,
    /// The page itself: a link to it leads nowhere.
    own: String,
    links: Outlinks,
    /// Places in `links` by hash, linear probing; a zero is free. Its length is a power of two and at least twice the links'.
    table: Vec<Slot>,
    scratch: String,
    links_max: usize,
    references: u64,
    steps: u64,
    cut: Option<Cut>,
    full: bool,
    /// Nobody wants the links: they are counted, and not resolved.
    counts: bool,
}

/// Links for which there is room at first.
const LINKS_FIRST: usize = 32;

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    hash: u32,
    /// Counted from 1.
    number: u32,
}

impl Links {
    /// None yet. `own` is the URL of the page.
    pub fn new(own: &str, resolver: Resolver, charset: &'static Encoding) -> Links {
        Links {
            resolver,
            charset,
            own: own.to_owned(),
            links: Outlinks::with_room(LINKS_FIRST, own.len().min(128)),
            table: vec![Slot::default(); 128],
            scratch: String::with_capacity(256),
            links_max: limits::LINKS_MAX,
            references: 0,
            steps: 0,
            cut: None,
            full: false,
            counts: false,
        }
    }

    /// The same for who wants to know how many references there are, and not where they lead.
    pub fn counted(resolver: Resolver, charset: &'static Encoding) -> Links {
        Links {
            resolver,
            charset,
            own: String::new(),
            links: Outlinks::default(),
            table: Vec::new(),
            scratch: String::new(),
            links_max: limits::LINKS_MAX,
            references: 0,
            steps: 0,
            cut: None,
            full: false,
            counts: true,
        }
    }

    /// Whether they are only counted.
    pub fn counts(&self) -> bool {
        self.counts
    }

    /// Counts references of which nothing else is known.
    pub fn count(&mut self, references: u64) {
        self.references += references;
        self.charge(references * limits::LINK_STEPS);
    }

    /// Whether no bound can have been met, had the links been kept; also if all of it had been read a second time for a base that comes late.
    pub fn has_room(&self) -> bool {
        self.references <= limits::LINKS_MAX as u64 && self.steps <= limits::STEPS_MAX / 4 && !self.full
    }

    /// What references are resolved against.
    pub fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// From now on references are resolved against another base.
    pub fn set_resolver(&mut self, resolver: Resolver) {
        self.resolver = resolver;
    }

    /// From now on values are made of bytes in another charset; the one until now is handed back.
    pub fn set_charset(&mut self, charset: &'static Encoding) -> &'static Encoding {
        std::mem::replace(&mut self.charset, charset)
    }

    /// Takes more or fewer links than those of a page.
    pub fn set_max(&mut self, links_max: usize) {
        self.links_max = links_max;
    }

    /// How many references were resolved.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// The links so far.
    pub fn so_far(&self) -> &Outlinks {
        &self.links
    }

    /// Charges work.
    pub fn charge(&mut self, steps: u64) {
        self.steps += steps;
        if self.steps > limits::STEPS_MAX {
            self.note(Cut::Work);
            self.full = true;
        }
    }

    /// Notes a bound that was met; the first counts.
    pub fn note(&mut self, cut: Cut) {
        self.cut.get_or_insert(cut);
    }

    /// Nothing more is taken: reading on is of no use.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Takes the value of an attribute as it stands.
    pub fn attribute(&mut self, raw: &[u8], kind: LinkKind, nofollow: bool) {
        self.references += 1;
        self.charge(limits::LINK_STEPS + raw.len() as u64);
        if raw.len() > limits::ATTRIBUTE_BYTES_MAX {
            // Pictures that stand in the page itself are often longer, and no link is lost with them.
            if !raw.trim_ascii_start().get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"data:")) {
                self.note(Cut::Attribute);
            }
            return;
        }
        if self.counts {
            return;
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let plain = memchr::memchr(b'&', raw).is_none() && self.resolver.plain(raw, &mut scratch);
        if plain || self.resolver.resolve(&value::attribute(raw, self.charset), &mut scratch) {
            self.add(&scratch, kind, nofollow);
        }
        self.scratch = scratch;
    }

    /// Takes a reference.
    pub fn reference(&mut self, reference: &str, kind: LinkKind, nofollow: bool) {
        self.references += 1;
        self.charge(limits::LINK_STEPS + reference.len() as u64);
        if self.counts {
            return;
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        if self.resolver.resolve(reference, &mut scratch) {
            self.add(&scratch, kind, nofollow);
        }
        self.scratch = scratch;
    }

    /// The URL that a reference leads to, without taking it.
    pub fn resolved(&mut self, reference: &str) -> Option<String> {
        self.references += 1;
        let mut out = String::new();
        self.resolver.resolve(reference, &mut out).then_some(out)
    }

    /// The value of an attribute: decoded, character references replaced. `None`: it is too long.
    pub fn value<'a>(&mut self, raw: &'a [u8]) -> Option<Cow<'a, str>> {
        self.charge(raw.len() as u64);
        if raw.len() > limits::ATTRIBUTE_BYTES_MAX {
            self.note(Cut::Attribute);
            return None;
        }
        Some(value::attribute(raw, self.charset))
    }

    fn add(&mut self, url: &str, kind: LinkKind, nofollow: bool) {
        if url == self.own || self.full {
            return;
        }
        let hash = hash(url.as_bytes());
        let mask = self.table.len() - 1;
        let mut at = hash as usize & mask;
        while self.table[at].number != 0 {
            let slot = self.table[at];
            let index = slot.number as usize - 1;
            if slot.hash == hash && self.links.url(index) == url {
                return self.links.again(index, kind, nofollow);
            }
            // Whoever makes URLs that share a place pays for looking at them.
            self.steps += if slot.hash == hash { 1 + url.len() as u64 } else { 1 };
            at = (at + 1) & mask;
        }
        if self.links.count() >= self.links_max {
            self.note(Cut::Links);
            self.full = true;
            return;
        }
        self.links.push(url, kind, nofollow);
        self.table[at] = Slot { hash, number: self.links.count() as u32 };
        if self.links.count() * 2 > self.table.len() {
            self.grow();
        }
    }

    fn grow(&mut self) {
        let old = std::mem::take(&mut self.table);
        self.table = vec![Slot::default(); old.len() * 4];
        let mask = self.table.len() - 1;
        for slot in old.into_iter().filter(|slot| slot.number != 0) {
            let mut at = slot.hash as usize & mask;
            while self.table[at].number != 0 {
                at = (at + 1) & mask;
            }
            self.table[at] = slot;
        }
    }

    /// Goes back to these links, so that the page can be read again with another base. Work stays counted.
    pub fn restart(&mut self, links: &Outlinks) {
        self.links.clear();
        self.table.fill(Slot::default());
        for link in links.iter() {
            self.add(link.url, link.kind, link.nofollow);
        }
    }

    /// All links, and the first bound that was met.
    pub fn finish(self) -> (Outlinks, Option<Cut>) {
        (self.links, self.cut)
    }
}

/// A hash, eight bytes at a time. Collisions can be made; they are charged as work.
fn hash(bytes: &[u8]) -> u32 {
    let mix = |sum: u64, word: u64| {
        let product = u128::from(sum ^ word) * 0x9E37_79B9_7F4A_7C15;
        product as u64 ^ (product >> 64) as u64
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let sum =
        words.iter().fold(0x243F_6A88_85A3_08D3 ^ bytes.len() as u64, |sum, word| mix(sum, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let sum = mix(sum, u64::from_le_bytes(last));
    (sum ^ (sum >> 32)) as u32
}
