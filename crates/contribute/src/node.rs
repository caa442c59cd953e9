//! The node's side: answers contributors, and gives back what they bring. The spine of this side.
//!
//! ```text
//!  Offer ─▶ dispatch ─▶ a contributor ─▶ digests ─▶ want-list ─▶ bodies ─▶ trust: what is looked at again ─▶ Back
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use skep_archive::Identity;
use skep_fetch::Exchange;
use skep_schedule::Bundle as Leased;
use skep_url::Url;

use crate::book::Book;
use crate::coming::{Coming, Held};
use crate::dispatch::{Dispatch, Lapsed, Offered};
use crate::limits::{BUNDLE_URLS_MAX, CLOCK_MS_MAX, LATER_SECONDS, URL_MS};
use crate::message::{self, Answer, Bundle, Refusal, Request, Rules, Task, VERSION};
use crate::networks::Networks;
use crate::trust::{Greeting, Key, Network, Trust};

/// A bundle for contributors, with what the archive knows and they must not know.
pub struct Offer {
    /// What to fetch.
    pub bundle: Leased,
    /// Keys some of the digests.
    pub nonce: [u8; 16],
    /// What the archive has of each URL.
    pub known: Vec<Option<Known>>,
    /// The host's rules, applied already.
    pub robots: Option<Rules>,
    /// For how long it may be out, at the most.
    pub lease: Duration,
    /// Nobody else fetches it.
    pub only: bool,
    /// Is it still wanted?
    pub is_wanted: Box<dyn Fn() -> bool + Send>,
    /// Takes what came of it, once.
    pub done: Box<dyn FnOnce(Back) + Send>,
}

/// What the archive has of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// SHA-1 of its payload.
    pub digest: [u8; 20],
    /// BLAKE3 of it under the nonce.
    pub keyed: Option<[u8; 32]>,
    /// An unchanged page deserves a new record.
    pub is_old: bool,
}

/// What came of an offer.
pub enum Back {
    /// A contributor came back.
    Brought(Brought),
    /// Nobody did.
    Nobody,
}

/// What a contributor brought.
pub struct Brought {
    /// What it says it saw.
    pub exchanges: Vec<(Url, Exchange)>,
    /// What the node is to fetch as well.
    pub again: Vec<Url>,
    /// What they saw, what we saw: what may be believed.
    pub judge: Judge,
}

/// See [`Brought::judge`].
pub type Judge = Box<dyn FnOnce(Vec<(Url, Exchange)>, Vec<(Url, Exchange)>) -> Round + Send>;

/// What a judge says.
pub enum Round {
    /// This may be believed.
    Over(Vec<(Url, Exchange)>),
    /// The node is to look once more.
    Again(Brought),
}

/// The node.
pub struct Node {
    identity: Identity,
    clock: skep_archive::Clock,
    zero: Instant,
    networks: Networks,
    open: std::sync::atomic::AtomicBool,
    pub(crate) state: Mutex<State>,
}

pub(crate) struct State {
    pub dispatch: Dispatch,
    pub trust: Trust,
    pub book: Book,
    pub held: HashMap<u64, Held>,
    /// URLs that contributors could not take: too large.
    pub ours: HashSet<u64>,
    /// URLs of the last day that only a liar had seen.
    pub again: BTreeMap<u64, String>,
    next: u64,
    seed: [u8; 16],
    chance: u64,
    coming_bytes: u64,
    /// Bodies seen lately and where: a portal shows the same everywhere.
    pub alike: HashMap<[u8; 20], HashSet<String>>,
}

impl State {
    /// A random number; what is drawn need not be secret, only unforeseen.
    pub fn draw(&mut self) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        xxhash_rust::xxh3::xxh3_64_with_seed(&self.seed, self.chance)
    }
}

/// How often the node looks for what has lapsed.
const SCAN: Duration = Duration::from_millis(200);
/// Bodies whose hosts are remembered.
const ALIKE_MAX: usize = 4_096;

impl Node {
    /// A node for the archive whose settings are in this folder.
    pub fn start(folder: &Path, identity: Identity, clock: skep_archive::Clock) -> Result<Arc<Node>, String> {
        let book = Book::open(folder)?;
        let table = folder.join("networks.txt");
        let networks = std::fs::read_to_string(table).map(|text| Networks::parse(&text).0).unwrap_or_default();
        let secret = crate::key::fresh().map_err(|error| format!("no random bytes: {error}"))?;
        let mut seed = [0; 16];
        seed.copy_from_slice(&secret[..16]);
        let state = State {
            dispatch: Dispatch::default(),
            trust: Trust::with(book.load()?),
            book,
            held: HashMap::new(),
            ours: HashSet::new(),
            again: BTreeMap::new(),
            next: u64::from_le_bytes(secret[16..24].try_into().unwrap_or_default()) >> 16,
            seed,
            chance: u64::from_le_bytes(secret[24..].try_into().unwrap_or_default()),
            coming_bytes: 0,
            alike: HashMap::new(),
        };
        let open = std::sync::atomic::AtomicBool::new(false);
        let node = Arc::new(Node { identity, clock, zero: Instant::now(), networks, open, state: Mutex::new(state) });
        let watched = Arc::downgrade(&node);
        std::thread::Builder::new()
            .name("skep-contributors".into())
            .spawn(move || scan(&watched))
            .map_err(|error| format!("no thread to look after contributors: {error}"))?;
        Ok(node)
    }

    /// Contributors can reach this node from now on, or no longer.
    pub fn open(&self, open: bool) {
        self.open.store(open, std::sync::atomic::Ordering::Relaxed);
    }

    /// Can contributors reach it?
    pub fn is_open(&self) -> bool {
        self.open.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// The node's key, by which contributors know it.
    pub fn key(&self) -> Key {
        self.identity.public()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now_ms(&self) -> i64 {
        (self.clock)()
    }

    fn elapsed_ms(&self) -> u64 {
        self.zero.elapsed().as_millis() as u64
    }

    /// The name of a contributor in records: of this network only, and no way back to its key.
    pub fn pseudonym(&self, key: &Key) -> String {
        let hash = blake3::hash(&[&self.identity.public()[..], key].concat());
        hash.as_bytes()[..6].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Offers a bundle; gives it back where the node had better fetch it itself.
    pub fn offer(self: &Arc<Node>, offer: Offer) -> Result<(), Box<Offer>> {
        let now_ms = self.elapsed_ms();
        let mut state = self.lock();
        let too_large = |url: &String| state.ours.contains(&hash(url));
        if offer.bundle.urls.is_empty()
            || offer.bundle.urls.len() > BUNDLE_URLS_MAX
            || offer.bundle.urls.iter().any(|ask| too_large(&ask.url))
        {
            return Err(Box::new(offer));
        }
        state.next += 1;
        let id = state.next;
        let crawl_delay_ms = offer.robots.and_then(|rules| rules.crawl_delay_ms).map(u64::from);
        let gap_ms = skep_schedule::pace::gap_ms(&offer.bundle.pace, crawl_delay_ms, 0);
        let lease_ms = (offer.bundle.urls.len() as u64 + 2) * (gap_ms.max(crate::limits::OWN_GAP_MS) + URL_MS);
        let most_ms = offer.lease.as_millis() as u64;
        let offered = Offered {
            id,
            host: offer.bundle.host.clone(),
            lease_ms: lease_ms.min(most_ms),
            only: offer.only,
            wait_ms: most_ms.saturating_sub(lease_ms).max(most_ms / 4),
            not: None,
        };
        if !state.dispatch.offer(offered, now_ms) {
            return Err(Box::new(offer));
        }
        state.held.insert(id, Held::new(offer));
        Ok(())
    }

    /// Answers one message of a contributor, from this address.
    pub fn handle(self: &Arc<Node>, peer: IpAddr, bytes: &[u8]) -> Vec<u8> {
        let now_ms = self.now_ms();
        let opened = match message::open_request(bytes, &self.identity.public()) {
            Ok(opened) => opened,
            Err(_) => {
                let refused = Answer::Refused { why: Refusal::Nonsense };
                return message::seal_answer(&refused, &message::signature_of(bytes), &self.identity, now_ms);
            }
        };
        let answer = match (opened.time_ms - now_ms).abs() > CLOCK_MS_MAX {
            true => Answer::Refused { why: Refusal::Clock },
            false => self.answer(peer, &opened.key, opened.message, now_ms),
        };
        message::seal_answer(&answer, &opened.signature, &self.identity, now_ms)
    }

    fn answer(self: &Arc<Node>, peer: IpAddr, key: &Key, request: Request, now_ms: i64) -> Answer {
        let network = self.networks.of(peer);
        if let Request::Hello { version, proof, holds, team } = request {
            return match version == VERSION {
                true => self.hello(key, peer, network, proof, &holds, team, now_ms),
                false => Answer::Refused { why: Refusal::Version },
            };
        }
        let mut state = self.lock();
        match state.trust.of(key) {
            None => return Answer::Refused { why: Refusal::Unknown },
            Some(known) if known.suspended_until_ms > now_ms => {
                return Answer::Stop { why: "suspended: what it brought was found to be false".into() };
            }
            Some(known) => (known.last_ms, known.network) = (now_ms, network),
        }
        match request {
            Request::Hello { .. } => Answer::Refused { why: Refusal::Nonsense },
            Request::Ask { bundles } => self.ask(state, key, network, bundles.into()),
            Request::Results { bundle, results, .. } => {
                let Some(held) = mine(&mut state, key, bundle) else {
                    return Answer::Refused { why: Refusal::NotYours };
                };
                if !held.results(results) {
                    return Answer::Refused { why: Refusal::Nonsense };
                }
                let elapsed_ms = self.elapsed_ms();
                state.dispatch.came(key, bundle, elapsed_ms);
                let wanted = state.held.get(&bundle).map(Held::wanted).unwrap_or_default();
                if !wanted.is_empty() {
                    return Answer::Want { bundle, bodies: wanted };
                }
                self.finish(state, key, network, bundle);
                Answer::Done { bundle }
            }
            Request::Body { bundle, number, offset, total, bytes } => {
                let room = crate::limits::COMING_BYTES_MAX.saturating_sub(state.coming_bytes);
                let Some(held) = mine(&mut state, key, bundle) else {
                    return Answer::Refused { why: Refusal::NotYours };
                };
                if bytes.len() as u64 > room {
                    return Answer::Refused { why: Refusal::TooMuch };
                }
                let before = held.coming_bytes();
                let came = held.body(number, offset, total, &bytes);
                let more = held.coming_bytes().saturating_sub(before);
                let elapsed_ms = self.elapsed_ms();
                match came {
                    Coming::So(offset) => {
                        state.coming_bytes += more;
                        state.dispatch.came(key, bundle, elapsed_ms);
                        Answer::Taken { offset }
                    }
                    Coming::NotWanted => Answer::Refused { why: Refusal::Nonsense },
                    Coming::Forged => {
                        self.lose(state, bundle);
                        Answer::Refused { why: Refusal::Forged }
                    }
                }
            }
            Request::Leave => {
                let lost = state.dispatch.lost(key, &[]);
                over(state, &lost);
                Answer::Later { seconds: LATER_SECONDS, why: "good bye".into() }
            }
        }
    }

    fn hello(
        &self,
        key: &Key,
        peer: IpAddr,
        network: Network,
        proof: u64,
        holds: &[u64],
        team: String,
        now_ms: i64,
    ) -> Answer {
        let mut state = self.lock();
        let seed = state.seed;
        let bits = if proof == 0 { 0 } else { message::worth(&seed, key, proof) };
        let answer = match state.trust.greet(key, network, bits, now_ms) {
            Greeting::Work(bits) => return Answer::Work { bits, seed },
            Greeting::Suspended(_) => {
                return Answer::Stop { why: "suspended: what it brought was found to be false".into() };
            }
            Greeting::Crowded => {
                return Answer::Later { seconds: 3_600, why: "too many new contributors from this network".into() };
            }
            Greeting::Welcome => Answer::Welcome { pseudonym: self.pseudonym(key) },
        };
        if let Some(known) = state.trust.of(key) {
            (known.address, known.team) = (peer.to_string(), team);
        }
        state.book.touch();
        let lost = state.dispatch.lost(key, holds);
        over(state, &lost);
        answer
    }

    fn ask(&self, mut state: MutexGuard<'_, State>, key: &Key, network: Network, max: usize) -> Answer {
        let now_ms = self.elapsed_ms();
        let given = state.dispatch.ask(*key, network, max, now_ms);
        if given.is_empty() {
            let why = if state.held.is_empty() { "nothing is due" } else { "all hosts that are due are with others" };
            return Answer::Later { seconds: LATER_SECONDS, why: why.into() };
        }
        let bundles = given.into_iter().filter_map(|(id, lease_ms)| {
            let held = state.held.get(&id)?;
            let urls = held.offer.bundle.urls.iter().zip(&held.offer.known);
            Some(Bundle {
                id,
                host: held.offer.bundle.host.clone(),
                urls: urls
                    .map(|(ask, known)| Task {
                        url: ask.url.clone(),
                        etag: ask.etag.clone(),
                        last_modified: ask.last_modified.clone(),
                        keyed: known.as_ref().is_some_and(|known| known.keyed.is_some()),
                    })
                    .collect(),
                pace: held.offer.bundle.pace,
                robots: held.offer.robots,
                lease_ms: u32::try_from(lease_ms).unwrap_or(u32::MAX),
                nonce: held.offer.nonce,
            })
        });
        Answer::Bundles(bundles.collect())
    }

    /// Everything that was wanted is there.
    fn finish(self: &Arc<Node>, mut state: MutexGuard<'_, State>, key: &Key, network: Network, bundle: u64) {
        state.dispatch.over(bundle);
        let Some(held) = state.held.remove(&bundle) else { return };
        state.coming_bytes = state.coming_bytes.saturating_sub(held.coming_bytes());
        if state.alike.len() > ALIKE_MAX {
            state.alike.clear();
        }
        let (done, back) = crate::judge::begin(self, &mut state, held, *key, network);
        drop(state);
        done(back);
    }

    /// A contributor sent what it had not announced: nothing of the bundle counts.
    fn lose(&self, mut state: MutexGuard<'_, State>, bundle: u64) {
        state.dispatch.over(bundle);
        over(state, &[bundle]);
    }

    /// What has lapsed goes back to whoever offered it.
    fn scan(&self) {
        let now_ms = self.elapsed_ms();
        let mut state = self.lock();
        let gone: Vec<u64> =
            state.held.iter().filter(|(_, held)| !(held.offer.is_wanted)()).map(|(id, _)| *id).collect();
        for id in &gone {
            state.dispatch.withdraw(*id);
        }
        let lapsed = state.dispatch.lapse(now_ms).into_iter();
        let ids: Vec<u64> = lapsed
            .map(|lapsed| match lapsed {
                Lapsed::Untaken(id) | Lapsed::Overdue(id) => id,
            })
            .chain(gone)
            .collect();
        let State { book, trust, .. } = &mut *state;
        book.keep(trust.standings());
        over(state, &ids);
    }

    /// How everything stands, for people and programs.
    pub fn report(&self) -> Value {
        let (now_ms, elapsed_ms) = (self.now_ms(), self.elapsed_ms());
        let state = self.lock();
        let (waiting, out) = state.dispatch.counts();
        let contributors: Vec<Value> =
            state.trust.standings().iter().map(|(key, known)| self.line(key, known, now_ms)).collect();
        json!({
            "open": self.is_open(),
            "key": hex(&self.key()),
            "there": state.dispatch.there(elapsed_ms),
            "bundles": { "waiting": waiting, "out": out },
            "contributors": contributors,
        })
    }

    fn line(&self, key: &Key, known: &crate::trust::Standing, now_ms: i64) -> Value {
        json!({
            "key": hex(key),
            "name": self.pseudonym(key),
            "team": known.team,
            "since": skep_warc::date::rfc3339(known.since_ms),
            "last": skep_warc::date::rfc3339(known.last_ms),
            "there": now_ms - known.last_ms < crate::limits::THERE_MS as i64,
            "trust": known.word(now_ms),
            "good": known.good,
            "bundles": known.bundles,
            "urls": known.urls,
            "bytes": known.bytes,
            "confirmed": known.confirmed,
            "by-place": known.by_place,
            "lies": known.lies,
            "credit": known.credit,
        })
    }

    /// A person suspends a contributor, or trusts it; `which` is the beginning of a key or of a name. Says whom.
    pub fn decide(&self, which: &str, trusted: bool) -> Result<String, String> {
        let mut state = self.lock();
        let key = find(self, &state, which)?;
        let State { trust, book, .. } = &mut *state;
        if let Some(known) = trust.of(&key) {
            (known.suspended_until_ms, known.vouched) = if trusted { (0, true) } else { (i64::MAX, false) };
        }
        book.touch();
        book.keep(trust.standings());
        let lost = if trusted { Vec::new() } else { state.dispatch.lost(&key, &[]) };
        over(state, &lost);
        Ok(hex(&key))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let State { book, trust, .. } = state;
        book.keep(trust.standings());
    }
}

fn find(node: &Node, state: &State, which: &str) -> Result<Key, String> {
    let which = which.to_ascii_lowercase();
    let fits =
        |key: &Key| !which.is_empty() && (hex(key).starts_with(&which) || node.pseudonym(key).starts_with(&which));
    let mut found = state.trust.standings().keys().filter(|key| fits(key));
    match (found.next(), found.next()) {
        (Some(key), None) => Ok(*key),
        (Some(_), Some(_)) => Err(format!("several contributors begin with {which}")),
        (None, _) => Err(format!("no contributor begins with {which}")),
    }
}

/// The bundle, if this contributor has it.
fn mine<'s>(state: &'s mut State, key: &Key, bundle: u64) -> Option<&'s mut Held> {
    if !state.dispatch.is_with(key, bundle) {
        return None;
    }
    state.held.get_mut(&bundle)
}

/// These bundles are over without results.
fn over(mut state: MutexGuard<'_, State>, ids: &[u64]) {
    let mut done = Vec::new();
    for id in ids {
        if let Some(held) = state.held.remove(id) {
            state.coming_bytes = state.coming_bytes.saturating_sub(held.coming_bytes());
            done.push(held.offer.done);
        }
    }
    drop(state);
    // Whoever hears of it may offer something at once.
    done.into_iter().for_each(|done| done(Back::Nobody));
}

fn scan(node: &Weak<Node>) {
    loop {
        std::thread::sleep(SCAN);
        match node.upgrade() {
            Some(node) => node.scan(),
            None => return,
        }
    }
}

/// A URL, by its hash.
pub fn hash(url: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(url.as_bytes())
}

/// Lower-case digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
