//! The registry: every known URL, what became of it, and what waits at which host.
//!
//! It is a view: a fold of records, with checkpoints. `hear` numbers URLs in the order they are heard; `take` hands out what waits
//! at a host; `set_state` says what became of it; `checkpoint` makes all of it durable together with how far the records were
//! folded. Opening goes back to the last checkpoint exactly, whatever happened since; the caller folds the records after it again.
//!
//! Everything here is exact: a URL is never taken for another (see `fingerprint`), filters only save reads. Memory is bounded by
//! [`Options`] and does not grow with the number of URLs. One thread, no clock: times are arguments.
//!
//! ```text
//!   checkpoint           what of all files counts; replaced in one step
//!   urls, frames         URLs in the order of entry numbers, append-only
//!   urls-NNNNNNNN.run    sorted fingerprints of URLs, immutable; .new: the newest, in the order of entries
//!   states               one record for each entry       ┐
//!   hosts                one record for each host        ├ changed in place, undone by `journal`
//!   queues               what waits, host by host        │
//!   memories             what is remembered of a watched ┘
//!   names                names of hosts, append-only
//!   hosts-NNNNNNNN.run   sorted fingerprints of hosts
//!   journal              old bytes of pages changed since the checkpoint
//! ```
//! The formats are described in `docs/formats/registry.md` and drawn beside their code.

mod append;
mod blocks;
mod checkpoint;
mod codec;
#[cfg(test)]
mod crash_tests;
mod error;
mod familiar;
mod filter;
mod fingerprint;
mod hosts;
mod journal;
pub mod limits;
mod listing;
mod memories;
mod merge;
#[cfg(test)]
mod model_tests;
mod opening;
mod options;
mod pages;
mod queues;
mod run;
mod seen;
mod states;
mod taking;
mod urls;

pub use checkpoint::{Checkpoint, Mark};
pub use error::{Error, Result};
pub use fingerprint::fingerprint_of;
pub use hosts::{Conduct, Host, HostId};
pub use memories::Referrer;
pub use options::Options;
pub use states::{Class, State};
pub use taking::{Standing, Taken};

use familiar::Familiar;
use fingerprint::Fingerprints;
use hosts::Hosts;
use pages::Pages;
use queues::Free;
use seen::Seen;
use states::{Outcome, Record};
use std::collections::HashMap;
use std::path::PathBuf;
use urls::Urls;

/// Entries are numbered from zero, without gaps, in the order they were heard.
pub type EntryNumber = u64;

/// A URL and how it was heard of.
#[derive(Debug, Clone, Copy)]
pub struct Heard<'a> {
    /// The URL in the form in which it is fetched.
    pub url: &'a str,
    /// The form by which it is recognised: URLs that have it in common count as one, and the first of them is fetched.
    pub known_as: &'a str,
    /// The host, by whatever text names it for the caller; scheme and port belong to it.
    pub host_key: &'a str,
    /// The host's site.
    pub site: &'a str,
    /// How far it is from a seed, as the caller counts; less is nearer.
    pub depth: u16,
    /// The entry of the page that holds the link.
    pub via: Option<EntryNumber>,
    /// The crawl that heard it. Each crawl has entries of its own.
    pub crawl: u16,
    /// The queue to wait in.
    pub class: Class,
    /// The kind of link, as the caller numbers kinds.
    pub kind: u8,
}

/// What becomes of a URL that was not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It waits in its host's queue.
    Queue,
    /// It is kept with this state and a note, and waits in no queue: refused, a trap, parked.
    Keep(State, u16),
}

/// Whether a URL was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It was not; this is its entry now.
    New(EntryNumber),
    /// It was.
    Known(EntryNumber),
}

impl Verdict {
    /// The entry, new or known.
    pub fn entry(self) -> EntryNumber {
        match self {
            Verdict::New(entry) | Verdict::Known(entry) => entry,
        }
    }
}

/// Everything about one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub number: EntryNumber,
    /// The URL.
    pub url: String,
    /// Its host.
    pub host: HostId,
    /// Its crawl.
    pub crawl: u16,
    /// Links from a seed.
    pub depth: u16,
    /// The entry of the page on which it was first heard of.
    pub via: Option<EntryNumber>,
    /// The kind of that link.
    pub kind: u8,
    /// What it is now.
    pub state: State,
    /// The last outcome; it stays when the entry waits for a new pass. `Queued` if there was none.
    pub outcome: State,
    /// The queue it waits in, or waited in before it was taken.
    pub class: Option<Class>,
    /// The caller's code.
    pub note: u16,
}

/// How many entries there are of each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// All of them.
    pub known: u64,
    /// Those that wait for a visit or another try.
    pub waiting: u64,
    /// Those that are out.
    pub out: u64,
    /// Those that were visited, in whichever pass.
    pub visited: u64,
    /// Those that were visited in this pass.
    pub visited_in_pass: u64,
    /// Those whose last visit failed and that are tried again.
    pub failed: u64,
    /// Those that failed for good.
    pub dead: u64,
    /// Those that a rule refuses.
    pub refused: u64,
    /// Those that look like a trap, or that a budget keeps back.
    pub held_back: u64,
}

impl Counts {
    fn stored(&self) -> [u64; 8] {
        [
            self.known,
            self.waiting,
            self.visited,
            self.visited_in_pass,
            self.failed,
            self.dead,
            self.refused,
            self.held_back,
        ]
    }

    fn from_stored(stored: [u64; 8]) -> Counts {
        let [known, waiting, visited, visited_in_pass, failed, dead, refused, held_back] = stored;
        Counts { known, waiting, out: 0, visited, visited_in_pass, failed, dead, refused, held_back }
    }

    fn of(&mut self, outcome: Outcome) -> Option<&mut u64> {
        match outcome {
            Outcome::None => None,
            Outcome::Visited => Some(&mut self.visited),
            Outcome::Failed => Some(&mut self.failed),
            Outcome::Dead => Some(&mut self.dead),
            Outcome::Refused => Some(&mut self.refused),
            Outcome::Trap | Outcome::Parked => Some(&mut self.held_back),
        }
    }
}

/// What is kept of each crawl.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Crawl {
    pass: u16,
    counts: Counts,
}

/// Every known URL. See the module.
pub struct Registry {
    folder: PathBuf,
    fingerprints: Fingerprints,
    familiar: Familiar,
    seen_urls: Seen,
    seen_hosts: Seen,
    urls: Urls,
    hosts: Hosts,
    pages: Pages,
    free: Free,
    crawls: Vec<Crawl>,
    /// Entries that are out. As many as were taken and not yet answered for.
    out: HashMap<EntryNumber, (HostId, u16)>,
    out_by_host: HashMap<HostId, u32>,
    /// The host of the last new URL: links come in bunches.
    last_host: Option<(u16, String, u32)>,
    checkpoint: u64,
    /// An operation failed half way.
    stale: bool,
}

impl Registry {
    /// Hears of a URL. A new one is numbered and waits in its host's queue.
    pub fn hear(&mut self, heard: &Heard<'_>) -> Result<Verdict> {
        self.hear_with(heard, || Fate::Queue)
    }

    /// Hears of a URL; what becomes of it is asked only if it is new.
    pub fn hear_with(&mut self, heard: &Heard<'_>, fate: impl FnOnce() -> Fate) -> Result<Verdict> {
        check(heard)?;
        let fingerprint = self.fingerprints.of_url(heard.crawl, heard.known_as);
        self.doing(|registry| {
            if let Some(entry) = registry.seen_urls.find(fingerprint)? {
                return Ok(Verdict::Known(entry));
            }
            let host = registry.host_number(heard)?;
            let unheard = Record::new(host, heard.depth);
            let mut record = unheard;
            match fate() {
                Fate::Queue => record.waits = Some(heard.class),
                Fate::Keep(state, note) => {
                    record.enter(state);
                    record.note = note;
                }
            }
            let entry = registry.seen_urls.add(fingerprint)?;
            registry.urls.add(heard.url, heard.via, heard.crawl, heard.kind)?;
            states::add(&mut registry.pages, entry, &record)?;
            registry.crawl_mut(heard.crawl).counts.known += 1;
            registry.settle(entry, unheard, record, false, taking::End::Back)?;
            Ok(Verdict::New(entry))
        })
    }

    /// The entry that is recognised by this form in a crawl, if there is one.
    pub fn known(&mut self, crawl: u16, known_as: &str) -> Result<Option<EntryNumber>> {
        self.doing(|registry| {
            if let Some(entry) = registry.familiar.find(crawl, known_as) {
                return Ok(Some(entry));
            }
            let found = registry.seen_urls.find(registry.fingerprints.of_url(crawl, known_as))?;
            found.inspect(|entry| registry.familiar.put(crawl, known_as, *entry));
            Ok(found)
        })
    }

    /// The entry with a fingerprint, if it is known.
    pub fn find(&mut self, fingerprint: [u8; 16]) -> Result<Option<EntryNumber>> {
        self.doing(|registry| registry.seen_urls.find(u128::from_be_bytes(fingerprint)))
    }

    /// How far a known URL is from a seed.
    pub fn depth(&mut self, entry: EntryNumber) -> Result<u16> {
        self.check_entry(entry)?;
        self.doing(|registry| Ok(states::read(&mut registry.pages, entry)?.depth))
    }

    /// A known URL was heard of again: it is as far from a seed as the nearest of those who tell of it says.
    pub fn approach(&mut self, entry: EntryNumber, depth: u16) -> Result<()> {
        self.check_entry(entry)?;
        self.doing(|registry| {
            let record = states::read(&mut registry.pages, entry)?;
            match depth < record.depth {
                true => states::write(&mut registry.pages, entry, &Record { depth, ..record }),
                false => Ok(()),
            }
        })
    }

    /// Whether an entry is one of the newest. Their records are at hand.
    pub fn is_recent(&self, entry: EntryNumber) -> bool {
        entry.saturating_add(limits::RECENT_ENTRIES) >= self.urls.entries()
    }

    /// Everything about an entry.
    pub fn entry(&mut self, entry: EntryNumber) -> Result<Entry> {
        self.check_entry(entry)?;
        self.doing(|registry| {
            let line = registry.urls.get(entry)?;
            let record = states::read(&mut registry.pages, entry)?;
            Ok(describe(entry, line, &record, registry.out.contains_key(&entry)))
        })
    }

    /// The URL of an entry.
    pub fn url(&mut self, entry: EntryNumber) -> Result<String> {
        self.check_entry(entry)?;
        self.doing(|registry| Ok(registry.urls.get(entry)?.url))
    }

    /// What became of an entry.
    pub fn state(&mut self, entry: EntryNumber) -> Result<State> {
        self.check_entry(entry)?;
        self.doing(|registry| {
            if registry.out.contains_key(&entry) {
                return Ok(State::Out);
            }
            Ok(states::read(&mut registry.pages, entry)?.state())
        })
    }

    /// The host of an entry.
    pub fn host_of(&mut self, entry: EntryNumber) -> Result<HostId> {
        self.check_entry(entry)?;
        self.doing(|registry| Ok(HostId(states::read(&mut registry.pages, entry)?.host)))
    }

    /// How many entries there are in a crawl.
    pub fn counts(&self, crawl: u16) -> Counts {
        self.crawls.get(usize::from(crawl)).copied().unwrap_or_default().counts
    }

    /// The pass a crawl is in, counted from zero.
    pub fn pass(&self, crawl: u16) -> u16 {
        self.crawls.get(usize::from(crawl)).map_or(0, |crawl| crawl.pass)
    }

    /// Entries of all crawls.
    pub fn entries(&self) -> u64 {
        self.urls.entries()
    }

    /// Hosts of all crawls.
    pub fn hosts_known(&self) -> u32 {
        self.hosts.count
    }

    /// Bytes of memory that it holds.
    pub fn memory_bytes(&self) -> usize {
        self.familiar.memory_bytes()
            + self.seen_urls.memory_bytes()
            + self.seen_hosts.memory_bytes()
            + self.urls.memory_bytes()
            + self.hosts.names.memory_bytes()
            + self.pages.memory_bytes()
            + self.crawls.capacity() * size_of::<Crawl>()
            + (self.out.capacity() + self.out_by_host.capacity()) * 25
    }

    /// Bytes on disk that count; what was merged goes away with the next checkpoint.
    pub fn disk_bytes(&self) -> u64 {
        self.seen_urls.disk_bytes()
            + self.seen_hosts.disk_bytes()
            + self.urls.disk_bytes()
            + self.hosts.names.length()
            + self.pages.disk_bytes()
    }

    /// Does something that may fail half way: if it does, nothing more is believed until the registry is opened again.
    fn doing<T>(&mut self, operation: impl FnOnce(&mut Registry) -> Result<T>) -> Result<T> {
        if self.stale {
            return Err(Error::Stale);
        }
        let done = operation(self);
        self.stale = matches!(&done, Err(error) if !matches!(error, Error::NotFound { .. }));
        done
    }

    fn check_entry(&self, entry: EntryNumber) -> Result<()> {
        match entry < self.urls.entries() {
            true => Ok(()),
            false => Err(Error::NotFound { what: format!("entry {entry}") }),
        }
    }

    fn crawl_mut(&mut self, crawl: u16) -> &mut Crawl {
        let index = usize::from(crawl);
        if self.crawls.len() <= index {
            self.crawls.resize(index + 1, Crawl::default());
        }
        &mut self.crawls[index]
    }

    /// The number of a host, given now if it had none.
    fn host_number(&mut self, heard: &Heard<'_>) -> Result<u32> {
        if let Some((crawl, key, host)) = &self.last_host
            && (*crawl, key.as_str()) == (heard.crawl, heard.host_key)
        {
            return Ok(*host);
        }
        let fingerprint = self.fingerprints.of_host(heard.crawl, heard.host_key);
        let host = match self.seen_hosts.find(fingerprint)? {
            Some(host) => host as u32,
            None => {
                if self.seen_hosts.next() >= limits::HOSTS_MAX {
                    return Err(Error::Refused { why: "the registry holds no more hosts".into() });
                }
                self.seen_hosts.add(fingerprint)?;
                self.hosts.add(&mut self.pages, heard.crawl, heard.host_key, heard.site)?
            }
        };
        self.last_host = Some((heard.crawl, heard.host_key.to_owned(), host));
        Ok(host)
    }
}

fn check(heard: &Heard<'_>) -> Result<()> {
    let too_long = |what: &str, bytes: usize, most: usize| match bytes > most {
        true => Err(Error::Refused { why: format!("a {what} of {bytes} bytes; the registry takes up to {most}") }),
        false => Ok(()),
    };
    too_long("URL", heard.url.len(), limits::URL_BYTES_MAX)?;
    too_long("host", heard.host_key.len(), limits::HOST_BYTES_MAX)?;
    too_long("site", heard.site.len(), limits::HOST_BYTES_MAX)?;
    match heard.via {
        Some(via) if via > limits::ENTRIES_MAX => Err(Error::NotFound { what: format!("entry {via}") }),
        _ => Ok(()),
    }
}

fn describe(number: EntryNumber, line: urls::Line, record: &Record, out: bool) -> Entry {
    Entry {
        number,
        url: line.url,
        host: HostId(record.host),
        crawl: line.crawl,
        depth: record.depth,
        via: line.via,
        kind: line.kind,
        state: if out { State::Out } else { record.state() },
        outcome: record.outcome_state(),
        class: record.waits,
        note: record.note,
    }
}
