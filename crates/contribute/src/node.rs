//! The node's side: answers contributors, and gives back what they bring. The spine of this side.
//!
//! ```text
//!  Offer ─▶ dispatch ─▶ a contributor ─▶ digests ─▶ want-list ─▶ bodies ─▶ judge: who looks as well ─▶ Back
//! ```

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use skep_archive::Identity;
use skep_fetch::Exchange;
use skep_schedule::hands::{Back, Offer};
use skep_schedule::{BundleUrl, Hands};

use crate::book::Book;
use crate::case::{Hand, Opened};
use crate::coming::{Charges, Coming, Held, Purpose};
use crate::dispatch::{Dispatch, Lapsed, Offered};
use crate::envelope;
use crate::limits::{
    BUNDLE_URLS_MAX, CHECK_MS_MAX, CHECK_TAKEN_MS, CHECKERS, CLOCK_MS_MAX, COMING_ALL_BYTES_MAX, COMING_BYTES_MAX,
    DOUBTED_URLS_MAX, KNOWN_PAGE_ONE_IN, LATER_SECONDS, LEASE_MS_MAX, LEASE_MS_MIN, OWN_CHECK_ONE_IN,
    OWN_CHECK_ONE_IN_FEW, OWN_GAP_MS, STRANGER_BYTES_MAX, UNPACKED_BYTES_MAX, URL_MS,
};
use crate::message::{self, Answer, Bundle, Refusal, Request, Task, VERSION};
use crate::neighbours::Neighbours;
use crate::networks;
use crate::tables::Tables;
use crate::taken::TakenFile;
use crate::trust::{Class, Greeting, Key, Origin, Place, Trust};
use crate::unconfirmed::Unconfirmed;

/// The node.
pub struct Node {
    identity: Identity,
    clock: skep_archive::Clock,
    zero: Instant,
    tables: Mutex<Tables>,
    me: Weak<Node>,
    open: std::sync::atomic::AtomicBool,
    pub(crate) neighbours: OnceLock<Neighbours>,
    pub(crate) state: Mutex<State>,
}

/// From where a message comes: the address, and the node through which, where it came through another one.
#[derive(Clone, Copy)]
struct Way {
    address: IpAddr,
    through: Option<Key>,
}

pub(crate) struct State {
    pub dispatch: Dispatch,
    pub trust: Trust,
    pub book: Book,
    taken: TakenFile,
    pub held: HashMap<u64, Held>,
    /// URLs that contributors could not take: too large.
    pub ours: HashSet<u64>,
    /// What only one has seen, of the last day.
    pub unconfirmed: Unconfirmed,
    next: u64,
    seed: [u8; 16],
    chance: u64,
    /// Bytes of bodies that are held, by whose they are; and of those that have come and are being looked at.
    coming: HashMap<Key, u64>,
    pub charges: Charges,
    /// Bodies seen lately and where: a portal shows the same everywhere.
    pub alike: HashMap<[u8; 20], HashSet<String>>,
}

impl State {
    /// Only this one has seen it so far.
    pub fn note_unconfirmed(&mut self, key: &Key, url: &str, now_ms: i64) {
        // On a full disk what is not noted is believed a little too long.
        let _not_noted = self.unconfirmed.note(key, url, now_ms);
    }

    /// How many bytes of bodies this one may send besides.
    fn room(&self, key: &Key) -> u64 {
        let (their_looked_at, all_looked_at) = self.charges.of(key);
        let all: u64 = self.coming.values().sum::<u64>() + all_looked_at;
        let theirs = self.coming.get(key).copied().unwrap_or(0) + their_looked_at;
        COMING_BYTES_MAX.saturating_sub(theirs).min(COMING_ALL_BYTES_MAX.saturating_sub(all))
    }

    /// A bundle of this one holds other bytes than before.
    fn holds(&mut self, key: &Key, before: u64, now: u64) {
        let held = self.coming.entry(*key).or_default();
        *held = (*held + now).saturating_sub(before);
        if *held == 0 {
            self.coming.remove(key);
        }
    }

    /// A bundle is not held any more.
    fn take_held(&mut self, id: u64) -> Option<Held> {
        let held = self.held.remove(&id)?;
        if let Some(key) = held.with {
            self.holds(&key, held.coming_bytes(), 0);
        }
        Some(held)
    }

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
        let secret = crate::key::fresh().map_err(|error| format!("no random bytes: {error}"))?;
        let mut seed = [0; 16];
        seed.copy_from_slice(&secret[..16]);
        let (zero, mut dispatch) = (Instant::now(), Dispatch::default());
        let (taken, out) = TakenFile::open(folder, clock());
        out.into_iter().for_each(|out| dispatch.remember(out));
        let state = State {
            dispatch,
            taken,
            trust: Trust::with(book.load()?),
            book,
            held: HashMap::new(),
            ours: HashSet::new(),
            unconfirmed: Unconfirmed::open(folder),
            next: u64::from_le_bytes(secret[16..24].try_into().unwrap_or_default()) >> 16,
            seed,
            chance: u64::from_le_bytes(secret[24..].try_into().unwrap_or_default()),
            coming: HashMap::new(),
            charges: Charges::default(),
            alike: HashMap::new(),
        };
        let open = std::sync::atomic::AtomicBool::new(false);
        let (tables, state) = (Mutex::new(Tables::open(folder)), Mutex::new(state));
        let neighbours = OnceLock::new();
        let node =
            Arc::new_cyclic(|me| Node { identity, clock, zero, tables, me: me.clone(), open, neighbours, state });
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

    pub(crate) fn weak(&self) -> Weak<Node> {
        self.me.clone()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now_ms(&self) -> i64 {
        (self.clock)()
    }

    pub(crate) fn elapsed_ms(&self) -> u64 {
        self.zero.elapsed().as_millis() as u64
    }

    /// The name of a contributor in records: of this network only, and no way back to its key.
    pub fn pseudonym(&self, key: &Key) -> String {
        let hash = blake3::hash(&[&self.identity.public()[..], key].concat());
        hash.as_bytes()[..6].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[expect(clippy::result_large_err, reason = "what is not taken goes back whole, once a bundle")]
    fn offer(&self, offer: Offer<Exchange>) -> Result<(), Offer<Exchange>> {
        let now_ms = self.elapsed_ms();
        let mut state = self.lock();
        let too_large = |url: &String| state.ours.contains(&hash(url));
        if offer.bundle.urls.is_empty()
            || offer.bundle.urls.len() > BUNDLE_URLS_MAX
            || offer.bundle.urls.iter().any(|ask| too_large(&ask.url))
        {
            return Err(offer);
        }
        let crawl_delay_ms = offer.robots.and_then(|rules| rules.crawl_delay_ms);
        let gap_ms = skep_schedule::pace::gap_ms(&offer.bundle.pace, crawl_delay_ms, 0);
        // A half of the time is for whoever fetches it, a quarter for waiting, a quarter for those who look as well.
        let most_ms = offer.lease.as_millis() as u64;
        let lease_ms = needed_ms(offer.bundle.urls.len(), gap_ms).min(most_ms / 2).min(LEASE_MS_MAX);
        // Nobody has the site for longer than whoever offers it.
        if most_ms / 2 < LEASE_MS_MIN {
            return Err(offer);
        }
        state.next += 1;
        let (id, host, site) = (state.next, offer.bundle.host.clone(), offer.bundle.site.clone());
        let (only, wait_ms) = (offer.only, most_ms / 4);
        let bytes = bytes_of(&offer.bundle.urls);
        // Bodies may take as long as fetching may: then the bundle is over, whatever comes.
        let out_ms = most_ms / 2;
        let offered =
            Offered { id, host, site, bytes, lease_ms, out_ms, only, wait_ms, among: Vec::new(), ready_ms: 0 };
        if !state.dispatch.offer(offered, now_ms) {
            return Err(offer);
        }
        let mut held = Held::new(offer);
        // Of a page with other bytes each time it takes more than bytes to tell what was seen.
        let noisy = |ask: &BundleUrl| state.trust.class(hash(&ask.url)) == Some(Class::Noisy);
        held.thorough = held.bundle.urls.iter().map(noisy).collect();
        self.put_known_page(&mut state, &mut held);
        state.held.insert(id, held);
        Ok(())
    }

    /// Now and then a page goes along whose content we know.
    fn put_known_page(&self, state: &mut State, held: &mut Held) {
        let drawn = state.draw();
        if held.bundle.urls.len() >= BUNDLE_URLS_MAX || !drawn.is_multiple_of(KNOWN_PAGE_ONE_IN) {
            return;
        }
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((url, secret)) = tables.known_pages.of(&held.bundle.host, drawn / KNOWN_PAGE_ONE_IN) else { return };
        if held.bundle.urls.iter().any(|ask| ask.url == url) {
            return;
        }
        held.bundle.urls.push(BundleUrl { url: url.to_owned(), ..BundleUrl::default() });
        held.known.push(None);
        held.keyed.push(true);
        held.thorough.push(false);
        held.secret = Some(secret.to_owned());
    }

    /// Who is there of other networks and knows his trade.
    fn able(&self, state: &State, looked: &[Origin]) -> Vec<Key> {
        let mut able = state.dispatch.others(looked, None, self.elapsed_ms());
        able.retain(|key| state.trust.is_proven(key, self.now_ms()));
        able
    }

    /// Gives a bundle that checks what somebody brought to a few who are drawn, of other networks than have looked; gives it back where
    /// nobody is there who knows his trade.
    #[expect(clippy::result_large_err, reason = "what is not taken goes back whole, once a bundle")]
    pub(crate) fn ask_others(&self, state: &mut State, mut held: Held) -> Result<(), Held> {
        let now_ms = self.elapsed_ms();
        let (case, place) = match &held.purpose {
            Purpose::Work(_) => return Err(held),
            Purpose::Check(case) => (&**case, None),
            Purpose::Opinion(opinion) => (opinion.case(), Some(opinion.case().first.place)),
        };
        let case_ms = case.lease_ms;
        let looked: Vec<Origin> =
            [Some(&case.first), case.second.as_ref()].into_iter().flatten().map(|hand| hand.origin).collect();
        let (rest_ms, most_ms) = (case.rest_ms, CHECK_MS_MAX.min(case.lease_ms / 4));
        if most_ms < LEASE_MS_MIN {
            return Err(held); // no time for others
        }
        // Whoever is asked how it looks from his place need not have proven himself: those of one place are few.
        let mut able = match place {
            Some(_) => state.dispatch.others(&looked, place, now_ms),
            None => self.able(state, &looked),
        };
        if let Purpose::Opinion(opinion) = &mut held.purpose {
            opinion.is_only_one = able.len() < 2;
        }
        let mut among = Vec::with_capacity(CHECKERS);
        while among.len() < CHECKERS && !able.is_empty() {
            let drawn = state.draw() as usize % able.len();
            among.push(able.swap_remove(drawn));
        }
        if among.is_empty() {
            return Err(held);
        }
        state.next += 1;
        let (id, host, site) = (state.next, held.bundle.host.clone(), held.bundle.site.clone());
        let lease_ms = needed_ms(held.bundle.urls.len(), rest_ms).min(most_ms);
        let (ready_ms, wait_ms) = (now_ms + rest_ms, CHECK_TAKEN_MS.min(case_ms / 8));
        let bytes = bytes_of(&held.bundle.urls);
        let offered =
            Offered { id, host, site, bytes, lease_ms, out_ms: lease_ms, only: false, wait_ms, among, ready_ms };
        if !state.dispatch.offer(offered, now_ms) {
            return Err(held);
        }
        held.lease_ms = lease_ms;
        state.held.insert(id, held);
        Ok(())
    }

    /// One proven lie. Returns what nobody else has seen of the last day. That takes a while to read, and nobody else waits for it.
    pub(crate) fn lied<'n>(
        &'n self,
        mut state: MutexGuard<'n, State>,
        key: &Key,
    ) -> (MutexGuard<'n, State>, Vec<String>) {
        let now_ms = self.now_ms();
        state.trust.lied(key, now_ms);
        state.book.touch();
        let noted = state.unconfirmed.noted(now_ms);
        drop(state);
        let mut urls = noted.of(key);
        let state = self.lock();
        urls.retain(|url| state.trust.witnesses(hash(url)) < 2);
        (state, urls)
    }

    /// Answers one message of a contributor, from this address: one answer for each of its requests.
    pub fn handle(&self, address: IpAddr, bytes: &[u8]) -> Vec<u8> {
        self.heard(Way { address, through: None }, bytes)
    }

    /// The same for one who speaks through another node, which says from which address.
    pub fn handle_through(&self, node: Key, address: IpAddr, bytes: &[u8]) -> Vec<u8> {
        self.heard(Way { address, through: Some(node) }, bytes)
    }

    fn heard(&self, way: Way, bytes: &[u8]) -> Vec<u8> {
        let now_ms = self.now_ms();
        let refused = |why| vec![Answer::Refused { why }];
        // Whoever is not known is given room for a greeting.
        let bytes_max = |key: &Key| match self.lock().trust.of(key) {
            Some(_) => UNPACKED_BYTES_MAX,
            None => STRANGER_BYTES_MAX,
        };
        let (answers, about) = match envelope::open_requests_within(bytes, &self.identity.public(), bytes_max) {
            Err(_) => (refused(Refusal::Nonsense), envelope::signature_of(bytes)),
            Ok(opened) if opened.time_ms.abs_diff(now_ms) > CLOCK_MS_MAX => (refused(Refusal::Clock), opened.signature),
            Ok(opened) => {
                let answer = |request| self.answer(way, &opened.key, request, now_ms);
                (opened.message.into_iter().map(answer).collect(), opened.signature)
            }
        };
        envelope::seal_answers(&answers, &about, &self.identity, now_ms)
    }

    fn answer(&self, way: Way, key: &Key, request: Request, now_ms: i64) -> Answer {
        let (network, place) = self.tables.lock().unwrap_or_else(PoisonError::into_inner).networks.of(way.address);
        let through = way.through.map(|node| u64::from_le_bytes(message::first(blake3::hash(&node).as_bytes())));
        // The wide one is no other node's to fill.
        let around = through.is_none().then(|| networks::around(way.address));
        let origin = Origin { network, around, through };
        if let Request::Hello { version, proof, holds, team } = request {
            return match version == VERSION {
                true => self.hello(key, way.address, origin, proof, &holds, team, now_ms),
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
            Request::Ask { bundles } => self.ask(state, key, (origin, place), bundles.into()),
            Request::Results { bundle, results } => {
                let elapsed_ms = self.elapsed_ms();
                let Some(held) = mine(&mut state, key, bundle) else {
                    state.dispatch.came_in_vain(key, bundle, elapsed_ms);
                    return Answer::Refused { why: Refusal::NotYours };
                };
                if !held.results(results) {
                    return Answer::Refused { why: Refusal::Nonsense };
                }
                state.dispatch.came(key, bundle, elapsed_ms);
                let wanted = state.held.get(&bundle).map(Held::wanted).unwrap_or_default();
                if !wanted.is_empty() {
                    return Answer::Want { bundle, bodies: wanted };
                }
                self.finish(state, key, (origin, place), bundle);
                Answer::Done { bundle }
            }
            Request::Body { bundle, number, offset, total, bytes } => {
                let room = state.room(key);
                let Some(held) = mine(&mut state, key, bundle) else {
                    return Answer::Refused { why: Refusal::NotYours };
                };
                if bytes.len() as u64 > room {
                    return Answer::Refused { why: Refusal::TooMuch };
                }
                let before = held.coming_bytes();
                let came = held.body(number, offset, total, &bytes);
                let now = held.coming_bytes();
                state.holds(key, before, now);
                let elapsed_ms = self.elapsed_ms();
                match came {
                    Coming::So(offset) => {
                        state.dispatch.came(key, bundle, elapsed_ms);
                        let missing = state.held.get(&bundle).is_some_and(|held| !held.wanted().is_empty());
                        if missing || offset < total {
                            return Answer::Taken { offset };
                        }
                        self.finish(state, key, (origin, place), bundle);
                        Answer::Done { bundle }
                    }
                    Coming::NotWanted => Answer::Refused { why: Refusal::Nonsense },
                    Coming::Forged => {
                        self.forged(state, key, bundle);
                        Answer::Refused { why: Refusal::Forged }
                    }
                }
            }
            Request::Leave => {
                let lost = state.dispatch.lost(key, &[]);
                over(state, &lost);
                Answer::Later { seconds: LATER_SECONDS, why: "good bye".into() }
            }
            Request::Decline { bundle } => {
                if state.dispatch.decline(key, bundle, self.elapsed_ms()) {
                    over(state, &[bundle]);
                }
                Answer::Later { seconds: 0, why: "others are asked".into() }
            }
        }
    }

    fn hello(
        &self,
        key: &Key,
        address: IpAddr,
        origin: Origin,
        proof: u64,
        holds: &[u64],
        team: String,
        now_ms: i64,
    ) -> Answer {
        let mut state = self.lock();
        let seed = state.seed;
        let bits = if proof == 0 { 0 } else { message::worth(&seed, key, proof) };
        let answer = match state.trust.greet(key, origin, bits, now_ms) {
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
            (known.address, known.team) = (address.to_string(), team);
        }
        state.book.touch();
        state.dispatch.greeted(key);
        let lost = state.dispatch.lost(key, holds);
        over(state, &lost);
        answer
    }

    fn ask(&self, mut state: MutexGuard<'_, State>, key: &Key, from: (Origin, Place), max: usize) -> Answer {
        let now_ms = self.elapsed_ms();
        let neighbours = self.neighbours.get();
        // Nobody stays for good where others wait in vain: he brings back what he has, and goes there.
        let has_to_go =
            state.dispatch.has_had_a_turn(key, now_ms) && neighbours.is_some_and(Neighbours::anybody_waits_in_vain);
        let given = state.dispatch.ask(*key, from.0, from.1, if has_to_go { 0 } else { max }, now_ms);
        if given.is_empty() {
            let goes = if has_to_go { state.dispatch.is_free(key) } else { state.dispatch.is_idle(key) };
            let drawn = state.draw();
            if let Some(neighbours) = neighbours.filter(|_| goes)
                && let Some(address) = neighbours.next(key, drawn, now_ms)
            {
                state.dispatch.gone(key);
                return Answer::Elsewhere { address };
            }
            let why = match state.held.is_empty() {
                _ if has_to_go => "bundles wait at other nodes, when what it has is brought back",
                true => "nothing is due",
                false => "all hosts that are due are with others",
            };
            return Answer::Later { seconds: LATER_SECONDS, why: why.into() };
        }
        let wall_ms = self.now_ms();
        let is_doubted = state.trust.is_doubted(key);
        let bundles = given.into_iter().filter_map(|(id, lease_ms)| {
            let held = state.held.get_mut(&id)?;
            (held.with, held.given_ms) = (Some(*key), wall_ms);
            if is_doubted {
                held.shorten(DOUBTED_URLS_MAX);
            }
            let urls = held.bundle.urls.iter().zip(held.keyed.iter().zip(&held.thorough));
            Some(Bundle {
                id,
                host: held.bundle.host.clone(),
                urls: urls
                    .map(|(ask, (keyed, thorough))| Task {
                        url: ask.url.clone(),
                        etag: ask.etag.clone(),
                        last_modified: ask.last_modified.clone(),
                        keyed: *keyed,
                        thorough: *thorough,
                    })
                    .collect(),
                pace: held.bundle.pace,
                robots: held.robots,
                lease_ms: u32::try_from(lease_ms).unwrap_or(u32::MAX),
                nonce: held.nonce,
            })
        });
        Answer::Bundles(bundles.collect())
    }

    /// Everything that was wanted is there.
    fn finish(&self, mut state: MutexGuard<'_, State>, key: &Key, from: (Origin, Place), bundle: u64) {
        match state.held.get(&bundle).is_some_and(|held| held.fetched.is_empty()) {
            // Whoever brings nothing back gets fewer, as if he had not come back.
            true => state.dispatch.forged(bundle),
            false => state.dispatch.over(bundle),
        }
        let Some(held) = state.take_held(bundle) else { return };
        let charge = state.charges.charge(*key, held.coming_bytes());
        if state.alike.len() > ALIKE_MAX {
            state.alike.clear();
        }
        drop(state);
        let Some(me) = self.me.upgrade() else { return };
        let bytes = held.fetched.values().fold(0u64, |sum, fetched| sum.saturating_add(fetched.length));
        let by = Hand { key: *key, origin: from.0, place: from.1, looked: (held.fetched.len() as u64, bytes) };
        match held.purpose {
            Purpose::Check(case) => case.checked(by, &held.fetched),
            Purpose::Opinion(opinion) => opinion.given(&by, &held.fetched),
            Purpose::Work(_) => {
                let opened = Opened::new(&me, held, by, charge);
                let mut state = self.lock();
                let is_few = self.able(&state, &[opened.case.first.origin]).len() < CHECKERS;
                let case = opened.draw(&mut state, if is_few { OWN_CHECK_ONE_IN_FEW } else { OWN_CHECK_ONE_IN });
                let asked = match case.check() {
                    Err(case) => Err(case),
                    Ok(held) => match self.ask_others(&mut state, held).map_err(|held| held.purpose) {
                        Ok(()) => Ok(()),
                        Err(Purpose::Check(case)) => Err(case),
                        Err(Purpose::Work(_) | Purpose::Opinion(_)) => Ok(()),
                    },
                };
                drop(state);
                if let Err(case) = asked {
                    case.hand_over();
                }
            }
        }
    }

    /// A contributor sent what it had not announced: nothing of the bundle counts. Perhaps its disk is at fault; all that it brings is looked at.
    fn forged(&self, mut state: MutexGuard<'_, State>, key: &Key, bundle: u64) {
        state.dispatch.forged(bundle);
        state.trust.alone(key, u32::MAX);
        state.book.touch();
        over(state, &[bundle]);
    }

    /// What has lapsed goes back to whoever offered it.
    fn scan(&self) {
        let now_ms = self.elapsed_ms();
        let mut state = self.lock();
        let gone: Vec<u64> = state.held.iter().filter(|(_, held)| !held.is_still_wanted()).map(|(id, _)| *id).collect();
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
        let State { book, trust, unconfirmed, dispatch, taken, .. } = &mut *state;
        book.keep(trust.standings());
        taken.keep(|| dispatch.taken(), self.now_ms().saturating_sub_unsigned(now_ms));
        unconfirmed.flush();
        over(state, &ids);
        self.tables.lock().unwrap_or_else(PoisonError::into_inner).look();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let State { book, trust, .. } = state;
        book.keep_now(trust.standings());
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
pub(crate) fn over(mut state: MutexGuard<'_, State>, ids: &[u64]) {
    let mut gone = Vec::new();
    for id in ids {
        if let Some(held) = state.take_held(*id) {
            gone.push((held.purpose, held.with.is_some()));
        }
    }
    drop(state);
    // Whoever hears of it may offer something at once.
    for (purpose, was_out) in gone {
        match purpose {
            // Whoever had it may have asked the site just now.
            Purpose::Work(done) if was_out => done(Back::Lost),
            Purpose::Work(done) => done(Back::Nobody),
            Purpose::Check(case) => case.hand_over(),
            Purpose::Opinion(opinion) => opinion.unanswered(),
        }
    }
}

/// Bytes of URLs and their validators.
fn bytes_of(urls: &[BundleUrl]) -> usize {
    let validators =
        |ask: &BundleUrl| [&ask.etag, &ask.last_modified].into_iter().flatten().map(Vec::len).sum::<usize>();
    urls.iter().map(|ask| ask.url.len() + validators(ask)).sum()
}

/// How long so many URLs take, with some time to spare.
fn needed_ms(urls: usize, gap_ms: u64) -> u64 {
    (urls as u64 + 2) * (gap_ms.max(OWN_GAP_MS) + URL_MS)
}

impl Hands<Offer<Exchange>> for Node {
    /// Offers a bundle; gives it back where whoever offers it had better fetch it itself. Whoever leads a slice may offer its bundles here: what
    /// comes of them is told to it, wherever it is.
    fn give(&self, offer: Offer<Exchange>) -> Result<(), Offer<Exchange>> {
        self.offer(offer)
    }

    fn has_for(&self, site: &str) -> Option<Duration> {
        self.lock().dispatch.has_for(site, self.elapsed_ms()).map(Duration::from_millis)
    }
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

/// What [`hex`] wrote of a key.
pub fn unhex(text: &str) -> Option<Key> {
    crate::book::unhex(text)
}

/// Lower-case digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
