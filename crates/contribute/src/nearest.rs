//! Whoever leads a slice gives bundles to the holder that stands nearest to the site. The spine of this part; what is decided is decided
//! in [`skep_schedule::near`].
//!
//! ```text
//!  Offer ─▶ how far is it from each of them? one connects at a time, and the site rests after each ─▶ the nearest fetches ─▶ Back
//!     └── nobody is nearer: whoever offered it fetches it
//! ```
//! Whoever offered the bundle holds the clock of the site until it is back. A node that breaks off may still be asking the site: it is back
//! when all of the time that it was granted is over, and not before.

use std::collections::HashMap;
use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use skep_fetch::{Brought as Source, Exchange};
use skep_schedule::hands::{Back, Believed, Brought, Offer, Round};
use skep_schedule::near::Next;
use skep_schedule::{Hands, Pace, pace};
use skep_url::Url;

use crate::follow::{self, Asked, Part, Question};
use crate::follower::{Memory, host_of};
use crate::limits::{
    FOLLOW_BUNDLE_BYTES_MAX, FOLLOW_PART_BYTES_MAX, FOLLOWED_PER_LEADER_MAX, GRANT_MS_MAX, GRANT_MS_MIN, HANDED_MAX,
    LEASE_MS_MIN, MEASURE_MS, ROOM_MS_MAX, URL_MS,
};
use crate::message::{Bundle, Task};
use crate::node::hex;
use crate::seen;
use crate::trust::Key;

/// The way to other nodes. Calls may take a while, and end.
pub trait Way: Send + Sync {
    /// Other nodes that hold the slice of this URL, are there, know how to fetch for others, and are asked at all.
    fn others(&self, url: &Url) -> Vec<Key>;

    /// Asks one of them something about this URL. No part of the answer is waited for longer than `patience`.
    fn ask(&self, node: &Key, url: &Url, question: &[u8], patience: Duration) -> Result<Box<dyn Read + Send>, No>;
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum No {
    /// It said no, and does nothing.
    Refused,
    /// It says nothing; it may have heard all the same.
    Silent,
}

/// What a run hands out.
pub struct Handing {
    /// What all nodes crawl.
    pub crawl: String,
    /// May others fetch this? What is somebody's own, or needs secrets, is not for others.
    pub is_for_others: Box<dyn Fn(&Url) -> bool + Send + Sync>,
    /// Milliseconds since 1970.
    pub clock: skep_archive::Clock,
}

/// Gives bundles to the nearest.
#[derive(Clone)]
pub struct Nearest(Arc<Inner>);

struct Inner {
    handing: Handing,
    memory: Arc<Memory>,
    way: Box<dyn Way>,
    /// Bundles that are with others.
    handed: Mutex<Handed>,
}

#[derive(Default)]
struct Handed {
    all: usize,
    by_node: HashMap<Key, usize>,
}

/// Why nothing came of a question.
enum Broke {
    /// It was refused, or never got there: nothing was asked of the site.
    Unasked,
    /// As much is going on there as can be.
    Busy,
    /// The node may have asked the site, and may do so for this long still.
    Silent(Instant),
}

impl Nearest {
    /// Bundles of a run go to the nearest from now on.
    pub fn new(handing: Handing, memory: Arc<Memory>, way: Box<dyn Way>) -> Nearest {
        Nearest(Arc::new(Inner { handing, memory, way, handed: Mutex::default() }))
    }
}

impl Hands<Offer<Exchange>> for Nearest {
    fn would_take(&self, first: &Url, urls: usize) -> bool {
        let memory = &self.0.memory;
        memory.lock().is_worth(&host_of(first), urls, memory.now_ms()) && (self.0.handing.is_for_others)(first)
    }

    fn connected(&self, url: &Url, took_ms: u32) {
        let memory = &self.0.memory;
        memory.lock().connected(&host_of(url), Some(took_ms), memory.now_ms());
    }

    fn give(&self, offer: Offer<Exchange>) -> Result<(), Offer<Exchange>> {
        let first = offer.bundle.urls.first().and_then(|ask| Url::parse(&ask.url).ok());
        let Some(first) = first.filter(|first| self.0.takes(first, &offer)) else { return Err(offer) };
        {
            let mut handed = self.0.lock();
            if handed.all >= HANDED_MAX {
                return Err(offer);
            }
            handed.all += 1;
        }
        let offer = Arc::new(Mutex::new(Some(offer)));
        let (inner, theirs) = (self.0.clone(), offer.clone());
        let work = move || {
            if let Some(offer) = take(&theirs) {
                inner.work(&first, offer);
            }
            inner.lock().all -= 1;
        };
        match std::thread::Builder::new().name("skep-near".into()).spawn(work) {
            Ok(_) => Ok(()),
            Err(_) => {
                self.0.lock().all -= 1;
                take(&offer).map_or(Ok(()), Err)
            }
        }
    }
}

fn take<T>(from: &Mutex<Option<T>>) -> Option<T> {
    from.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Handed> {
        self.handed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Is it worth a thread?
    fn takes(&self, first: &Url, offer: &Offer<Exchange>) -> bool {
        let is_paced = matches!(offer.bundle.pace, Pace::Polite | Pace::Fixed(_));
        // Who fetches goes by rules that are known: the way to a robots.txt may lead to sites that others lead.
        let is_ruled = offer.robots.is_some();
        is_paced
            && is_ruled
            && !offer.only
            && offer.lease >= Duration::from_millis(GRANT_MS_MIN)
            && (self.handing.is_for_others)(first)
            && match self.next(first, offer) {
                Next::Measure(_) => offer.lease >= Duration::from_millis(MEASURE_MS) + rest(offer, 0),
                Next::Give(_) => true,
                Next::Ourselves => false,
            }
    }

    fn next(&self, first: &Url, offer: &Offer<Exchange>) -> Next {
        let others = self.way.others(first);
        let is_full = |node: &Key| self.lock().by_node.get(node).is_some_and(|count| *count >= FOLLOWED_PER_LEADER_MAX);
        let others: Vec<Key> = others.into_iter().filter(|node| !is_full(node)).collect();
        self.memory.lock().next(&host_of(first), &others, offer.bundle.urls.len(), self.memory.now_ms())
    }

    /// One offer from its beginning to its end.
    fn work(&self, first: &Url, offer: Offer<Exchange>) {
        let ends = Instant::now() + offer.lease;
        let left = || ends.saturating_duration_since(Instant::now());
        let gap = rest(&offer, 0);
        // When the site may be asked next, if it was asked since the bundle was offered.
        let mut asked: Option<Instant> = None;
        let back = loop {
            let rest = asked.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()));
            let (next, time) = (self.next(first, &offer), left().saturating_sub(rest));
            let is_time = match next {
                Next::Measure(_) => time >= Duration::from_millis(MEASURE_MS) + gap,
                Next::Give(_) => time >= Duration::from_millis(GRANT_MS_MIN),
                Next::Ourselves => false,
            };
            if is_time {
                wait(rest, &offer);
            }
            let (node, outcome) = match next {
                Next::Measure(node) if is_time && (offer.is_wanted)() => {
                    (node, self.measure(&node, first).map(|now| now.then(|| Instant::now() + gap)))
                }
                Next::Give(node) if is_time && (offer.is_wanted)() => match self.fetch(&node, first, &offer, left()) {
                    Ok(exchanges) if exchanges.is_empty() => break Back::Lost,
                    Ok(exchanges) => break Back::Brought(believed(exchanges)),
                    Err(broke) => (node, Err(broke)),
                },
                Next::Measure(_) | Next::Give(_) | Next::Ourselves => {
                    break if asked.is_some() { Back::Lost } else { Back::Nobody };
                }
            };
            let now_ms = self.memory.now_ms();
            match outcome {
                Ok(at) => asked = at.or(asked),
                Err(Broke::Unasked) => self.memory.lock().failed(node, now_ms),
                Err(Broke::Busy) => self.memory.lock().busy(node, now_ms),
                Err(Broke::Silent(until)) => {
                    self.memory.lock().failed(node, now_ms);
                    wait(until.saturating_duration_since(Instant::now()), &offer);
                    asked = Some(Instant::now() + gap);
                }
            }
        };
        (offer.done)(back);
    }

    /// A node says how long connecting takes from there. Says whether it asked the site just now.
    fn measure(&self, node: &Key, first: &Url) -> Result<bool, Broke> {
        let host = host_of(first);
        let ticket = self.room(node, first)?;
        let grant = Duration::from_millis(MEASURE_MS);
        let asked = Asked::Measure { ticket, grant_ms: MEASURE_MS as u32, url: first.as_str().to_owned() };
        let given = Instant::now();
        let mut answer = self.ask(node, first, asked, grant)?;
        match follow::read(&mut answer) {
            Ok(Part::Measured { took_ms, now }) => {
                self.memory.lock().measured(&host, *node, took_ms, self.memory.now_ms());
                Ok(now)
            }
            Ok(Part::Busy) => Err(Broke::Busy),
            Ok(_) | Err(_) => Err(Broke::Silent(given + grant)),
        }
    }

    /// A node fetches the bundle. Whatever it brought before it broke off counts, when the time that it had is over.
    fn fetch(
        &self,
        node: &Key,
        first: &Url,
        offer: &Offer<Exchange>,
        left: Duration,
    ) -> Result<Vec<(Url, Exchange)>, Broke> {
        let _out = Out::begin(self, *node);
        let ticket = self.room(node, first)?;
        let needed = Duration::from_millis(LEASE_MS_MIN)
            + (rest(offer, 0) + Duration::from_millis(URL_MS)) * offer.bundle.urls.len() as u32;
        let grant = needed.min(left).min(Duration::from_millis(GRANT_MS_MAX));
        let asked = Asked::Fetch { ticket, bundle: travelling(offer, grant) };
        let given = Instant::now();
        let mut answer = self.ask(node, first, asked, grant)?;
        let (host, mut coming) = (host_of(first), Coming::new(offer.bundle.urls.len()));
        self.memory.lock().given();
        let ended = loop {
            if Instant::now() >= given + grant || !(offer.is_wanted)() {
                break None;
            }
            match follow::read(&mut answer) {
                Ok(Part::Exchange { number, ago_ms, whole }) => {
                    let time_ms = (self.handing.clock)() - i64::from(ago_ms);
                    if !coming.add(number, offer, seen::exchange(&whole), time_ms, node, whole.bytes()) {
                        break None;
                    }
                }
                Ok(Part::Over { unable }) => break Some(unable),
                Ok(Part::Busy) if coming.exchanges.is_empty() => return Err(Broke::Busy),
                Ok(_) | Err(_) => break None,
            }
        };
        drop(answer); // whoever sees that nobody listens any more stops
        let now_ms = self.memory.now_ms();
        match ended {
            Some(unable) if unable || coming.exchanges.is_empty() => self.memory.lock().ours(&host, now_ms),
            Some(_) => {}
            None if !(offer.is_wanted)() => {}
            None => {
                self.memory.lock().failed(*node, now_ms);
                if coming.is_odd {
                    self.memory.lock().ours(&host, now_ms);
                }
                wait((given + grant).saturating_duration_since(Instant::now()), offer);
            }
        }
        let exchanges = coming.exchanges;
        if !exchanges.is_empty() {
            let anew = exchanges.iter().filter(|(_, exchange)| !exchange.reused);
            let connects_ms: Vec<u32> = anew.map(|(_, exchange)| exchange.timings.connect_ms).collect();
            self.memory.lock().brought(&host, *node, exchanges.len(), &connects_ms, self.memory.now_ms());
        }
        Ok(exchanges)
    }

    /// A ticket of a node that has room.
    fn room(&self, node: &Key, first: &Url) -> Result<u64, Broke> {
        let patience = Duration::from_millis(ROOM_MS_MAX);
        let question = Question { crawl: self.handing.crawl.clone(), asked: Asked::Room };
        let question = question.encode().ok_or(Broke::Unasked)?;
        let answer = self.way.ask(node, first, &question, patience).ok();
        match answer.and_then(|mut answer| follow::read(&mut answer).ok()) {
            Some(Part::Room { ticket }) => Ok(ticket),
            Some(Part::Busy) => Err(Broke::Busy),
            _ => Err(Broke::Unasked),
        }
    }

    /// Asks for something for which a node asks the site. Who says no has not; whoever says nothing may have.
    fn ask(&self, node: &Key, first: &Url, asked: Asked, grant: Duration) -> Result<Box<dyn Read + Send>, Broke> {
        let question = Question { crawl: self.handing.crawl.clone(), asked };
        let question = question.encode().ok_or(Broke::Unasked)?;
        let until = Instant::now() + grant;
        self.way.ask(node, first, &question, grant).map_err(|no| match no {
            No::Refused => Broke::Unasked,
            No::Silent => Broke::Silent(until),
        })
    }
}

/// One bundle is with a node.
struct Out<'i> {
    inner: &'i Inner,
    node: Key,
}

impl Out<'_> {
    fn begin(inner: &Inner, node: Key) -> Out<'_> {
        *inner.lock().by_node.entry(node).or_default() += 1;
        inner.memory.goes_out();
        Out { inner, node }
    }
}

impl Drop for Out<'_> {
    fn drop(&mut self) {
        self.inner.memory.is_back();
        let mut handed = self.inner.lock();
        if let Some(count) = handed.by_node.get_mut(&self.node) {
            *count -= 1;
            if *count == 0 {
                handed.by_node.remove(&self.node);
            }
        }
    }
}

/// What has come of a bundle.
struct Coming {
    exchanges: Vec<(Url, Exchange)>,
    seen: Vec<bool>,
    bytes: u64,
    /// Something came that makes no sense.
    is_odd: bool,
}

impl Coming {
    fn new(urls: usize) -> Coming {
        Coming { exchanges: Vec::new(), seen: vec![false; urls], bytes: 0, is_odd: false }
    }

    /// One more; false if it makes no sense, or is more than was to be brought.
    fn add(
        &mut self,
        number: u16,
        offer: &Offer<Exchange>,
        exchange: Option<Exchange>,
        time_ms: i64,
        node: &Key,
        bytes: usize,
    ) -> bool {
        let first = self.seen.get_mut(usize::from(number)).is_some_and(|seen| !std::mem::replace(seen, true));
        let url = offer.bundle.urls.get(usize::from(number)).and_then(|ask| Url::parse(&ask.url).ok());
        self.bytes += bytes as u64;
        let fits = self.bytes <= FOLLOW_BUNDLE_BYTES_MAX + FOLLOW_PART_BYTES_MAX as u64;
        let (Some(url), Some(mut exchange)) = (url.filter(|_| first && fits), exchange) else {
            self.is_odd = true;
            return false;
        };
        let by = format!("node {}", hex(&node[..8]));
        exchange.brought = Some(Source { time_ms, by, confirmed: false, seen_elsewhere: false, by_holder: true });
        self.exchanges.push((url, exchange));
        true
    }
}

/// How long the site rests after an answer that took so long.
fn rest(offer: &Offer<Exchange>, took_ms: u64) -> Duration {
    let crawl_delay_ms = offer.robots.and_then(|rules| rules.crawl_delay_ms);
    Duration::from_millis(pace::gap_ms(&offer.bundle.pace, crawl_delay_ms, took_ms))
}

/// The bundle, as it travels.
fn travelling(offer: &Offer<Exchange>, grant: Duration) -> Bundle {
    let task = |ask: &skep_schedule::BundleUrl| Task {
        url: ask.url.clone(),
        etag: ask.etag.clone(),
        last_modified: ask.last_modified.clone(),
        ..Task::default()
    };
    Bundle {
        id: 0,
        host: offer.bundle.host.clone(),
        urls: offer.bundle.urls.iter().map(task).collect(),
        pace: offer.bundle.pace,
        robots: offer.robots,
        lease_ms: u32::try_from(grant.as_millis()).unwrap_or(u32::MAX),
        nonce: [0; 16],
    }
}

/// A holder is believed: it could as well lead, and write the record itself.
fn believed(exchanges: Vec<(Url, Exchange)>) -> Brought<Exchange> {
    let judge = Box::new(|exchanges, _| Round::Over(Believed { exchanges, again: Vec::new() }));
    Brought { exchanges, again: Vec::new(), judge }
}

/// Waits; not for somebody who has gone.
fn wait(time: Duration, offer: &Offer<Exchange>) {
    const LOOK: Duration = Duration::from_millis(200);
    let until = Instant::now() + time;
    while Instant::now() < until && (offer.is_wanted)() {
        std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
    }
}
