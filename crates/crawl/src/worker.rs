//! Local hands: a thread with its own runtime that takes bundles and visits their URLs, many bundles side by side.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use skep_archive::{Append, Archive, Key};
use skep_fetch::{Dns, Fetcher, Session};
use skep_page::{LinkKind, Outlinks};
use skep_schedule::breaker::Ban;
use skep_schedule::{AddressKey, Bundle, HostId, LeaseId, Pace, pace};
use skep_url::{Part, Suffixes, Url};
use skep_warc::deflate::Level;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::LocalSet;
use tokio::time::Instant;

use crate::bundle;
use crate::chance::{self, Ids};
use crate::clocks::{Clocks, NotNow};
use crate::cookies::Cookies;
use crate::error::{Error, Result};
use crate::limits::{NAMES_KEPT_MAX, UNSYNCED_BYTES_MAX, UNSYNCED_VISITS_MAX};
use crate::records::Encoders;
use crate::registry_key::RegistryKey;
use crate::remembered::{Original, Previous, Remembered};
use crate::robots::Robots;
use crate::settings::Settings;
use crate::visit::Visited;

/// What workers say to the engine.
#[derive(Debug)]
pub enum Said {
    /// A visit is over and its records are synced.
    Visited(Box<Visited>),
    /// A visit is over, but its records could not be kept: it did not happen.
    Lost(Box<Visited>, Error),
    /// A host has this address.
    Located(LeaseId, AddressKey),
    /// The same for a host that has no bundle yet.
    Placed(HostId, AddressKey),
    /// A bundle is over.
    Ended(bundle::Ended),
    /// Only somebody saw these who has lied since: they are looked at again.
    Doubted(Vec<String>),
    /// The network came or went.
    Network,
    /// An address turns us away; nothing when it answers again.
    Ban(AddressKey, Option<Ban>),
    /// Somebody asks or orders something.
    Asked(crate::control::Asked),
    /// Something about what is led by whom.
    Shared(crate::control::Shared),
}

/// What the engine gives to a worker.
#[derive(Debug)]
pub enum Errand {
    /// URLs to visit, and the same taken apart, in the same order.
    Bundle(Bundle, Vec<Url>),
    /// A host whose address is wanted.
    Locate(HostId, Url),
    /// Is the network there again?
    Probe,
}

/// How long a look-up ahead of time may take.
const LOCATE_MS: u64 = 10_000;

/// What all workers share.
pub struct Shared {
    /// Where records go.
    pub archive: Arc<Archive>,
    /// What the archive knows of the past.
    pub remembered: Remembered,
    /// What hosts allow.
    pub robots: Robots,
    /// The last gate before a request.
    pub clocks: Clocks,
    /// The settings as they stand now; people change them while the crawl runs.
    pub settings: Mutex<Arc<Settings>>,
    /// Hosts that have everything.
    pub soft: crate::soft::Soft,
    /// What lies between us and the sites.
    pub network: crate::network::Network,
    /// How requests are made.
    pub fetch: Arc<skep_fetch::Settings>,
    /// Names and addresses.
    pub dns: Arc<Dns>,
    /// What the operator gives to sites.
    pub cookies: Cookies,
    /// Whether other bytes are another page.
    pub judges: Option<Arc<dyn crate::finding::Judges>>,
    /// This is not the first pass: ask conditionally.
    pub again: bool,
    /// The zero of the schedule's clock.
    pub zero: Instant,
    /// Under which URLs have fingerprints.
    pub key: RegistryKey,
    /// How long a site is left alone that does not say for how long.
    pub backoff_ms: u64,
    /// Who fetches besides us.
    pub others: Option<crate::hands::Others>,
    /// What is led here, where the crawl is one of many nodes …
    pub leading: Option<Arc<crate::sharing::Leading>>,
    /// … and the way to the others.
    pub outlet: Option<Arc<dyn crate::sharing::Outlet>>,
    /// Hosts whose addresses are kept.
    pub names: Names,
    /// Bundles are to end early.
    pub stopping: AtomicBool,
    /// The rules have changed: a page that has not is asked for its links all the same.
    pub hears_again: AtomicBool,
}

impl Shared {
    /// The settings as they stand now.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Bundles are to end, also those that wait.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.clocks.end();
    }

    /// Milliseconds on the schedule's clock.
    pub fn elapsed_ms(&self) -> u64 {
        self.zero.elapsed().as_millis() as u64
    }
}

/// Hosts of which the name server's answer is kept, by whichever worker: once per run, again where there were very many in between.
#[derive(Default)]
pub struct Names(Mutex<HashSet<String>>);

impl Names {
    /// Is it not kept yet? From now on it is.
    fn is_news(&self, host: &str) -> bool {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.contains(host) {
            return false;
        }
        if kept.len() >= NAMES_KEPT_MAX {
            kept.clear();
        }
        kept.insert(host.to_owned())
    }
}

/// What one worker works with.
pub struct Parts {
    shared: Arc<Shared>,
    /// Makes requests.
    pub fetcher: Fetcher,
    /// Builds records.
    pub encoders: RefCell<Encoders>,
    /// To the engine.
    pub say: Sender<Said>,
    ids: RefCell<Ids>,
    visits: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    suffixes: Suffixes,
    /// Captures that were looked up for bundles which are with others; each is asked for once more when they are back.
    looked_up: RefCell<HashMap<String, Option<Previous>>>,
    /// Bundles of sites that are split: the hash of the site, and the one under which their records stand.
    places: RefCell<HashMap<LeaseId, (u32, u32)>>,
}

impl std::ops::Deref for Parts {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        &self.shared
    }
}

/// Room for records on their way to the disk; given back when they are synced.
pub struct Room {
    _visit: Option<OwnedSemaphorePermit>,
    _bytes: Option<OwnedSemaphorePermit>,
}

/// Takes bundles until the engine hangs up, then ends when the last one is over.
pub fn run(shared: Arc<Shared>, bundles: mpsc::UnboundedReceiver<Errand>, say: Sender<Said>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::Fetch(format!("no runtime for a worker: {error}")))?;
    let parts = Rc::new(Parts::new(shared, say)?);
    LocalSet::new().block_on(&runtime, serve(parts, bundles));
    Ok(())
}

async fn serve(parts: Rc<Parts>, mut bundles: mpsc::UnboundedReceiver<Errand>) {
    let mut running = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            bundle = bundles.recv() => match bundle {
                Some(Errand::Bundle(bundle, urls)) => {
                    let parts = parts.clone();
                    let unended = Unended::new(&bundle, &parts);
                    running.spawn_local(async move {
                        bundle::run(bundle, urls, &parts).await;
                        unended.over();
                    });
                }
                Some(Errand::Locate(host, url)) => {
                    let parts = parts.clone();
                    running.spawn_local(async move { parts.locate(host, &url).await });
                }
                Some(Errand::Probe) => {
                    let parts = parts.clone();
                    running.spawn_local(async move { crate::network::probe(&parts).await });
                }
                None => break,
            },
            Some(_) = running.join_next(), if !running.is_empty() => {}
        }
    }
    while running.join_next().await.is_some() {}
}

/// A bundle whose visit breaks off in the middle ends all the same: the engine waits for it.
struct Unended {
    lease: LeaseId,
    entries: Vec<u64>,
    say: Sender<Said>,
    ended: bool,
}

impl Unended {
    fn new(bundle: &Bundle, parts: &Parts) -> Unended {
        let entries = bundle.urls.iter().map(|ask| ask.entry).collect();
        Unended { lease: bundle.lease, entries, say: parts.say.clone(), ended: false }
    }

    /// It has ended as it should.
    fn over(mut self) {
        self.ended = true;
    }
}

impl Drop for Unended {
    fn drop(&mut self) {
        if !self.ended {
            let (report, left) = (skep_schedule::BundleReport::default(), std::mem::take(&mut self.entries));
            let ended = bundle::Ended { lease: self.lease, report, left, trouble: None, crawl_delay_ms: None };
            let _given_up = self.say.send(Said::Ended(ended));
        }
    }
}

impl Parts {
    fn new(shared: Arc<Shared>, say: Sender<Said>) -> Result<Parts> {
        let fetcher =
            Fetcher::new(shared.fetch.clone(), shared.dns.clone()).map_err(|error| Error::Fetch(error.to_string()))?;
        Ok(Parts {
            fetcher,
            encoders: RefCell::new(Encoders::new(Level::new(1), shared.archive.layout().root().to_path_buf())),
            say,
            ids: RefCell::new(Ids::new(chance::draw()?)),
            visits: Arc::new(Semaphore::new(UNSYNCED_VISITS_MAX)),
            bytes: Arc::new(Semaphore::new(UNSYNCED_BYTES_MAX as usize)),
            suffixes: Suffixes::compiled(),
            looked_up: RefCell::default(),
            places: RefCell::default(),
            shared,
        })
    }

    async fn locate(&self, host: HostId, url: &Url) {
        let found = self.dns.ahead(url, LOCATE_MS).await.ok();
        let address =
            found.and_then(|found| found.addresses.first().copied()).map_or(AddressKey::UNKNOWN, AddressKey::of);
        let _given_up = self.say.send(Said::Placed(host, address));
    }

    /// The engine hears that the network came or went.
    pub fn network_changed(&self) {
        let _given_up = self.say.send(Said::Network);
    }

    /// The engine hears that an address turns us away, or no longer does.
    pub fn banned(&self, address: AddressKey, ban: Option<Ban>) {
        let _given_up = self.say.send(Said::Ban(address, ban));
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        skep_archive::system_clock()
    }

    /// What a bundle brings is filed where its URLs are, if their site is split.
    pub fn begin_place(&self, bundle: &Bundle) {
        if let Some(place) = crate::hearing::place_of(&bundle.host) {
            let site = Key::of(&format!("{}/", bundle.host)).site_hash();
            self.places.borrow_mut().insert(bundle.lease, (site, place));
        }
    }

    /// Nothing more comes of a bundle.
    pub fn end_place(&self, lease: LeaseId) {
        self.places.borrow_mut().remove(&lease);
    }

    /// A key as what comes of a bundle is filed under it. Whatever is fetched for a slice stands in it: nothing that it needs is elsewhere.
    pub fn filed(&self, lease: LeaseId, key: Key) -> Key {
        let place = self.place_of(lease, key.site_hash());
        key.at_place(place)
    }

    fn place_of(&self, lease: LeaseId, site_hash: u32) -> u32 {
        match self.places.borrow().get(&lease) {
            Some((site, place)) if site_hash == *site => *place,
            _ => site_hash,
        }
    }

    /// The last capture, where this pass asks conditionally.
    pub fn previous(&self, lease: LeaseId, url: &Url) -> Option<Previous> {
        if let Some(known) = self.looked_up.borrow_mut().remove(url.as_str()) {
            return known;
        }
        // A past that cannot be read is no reason not to look now.
        if !self.again {
            return None;
        }
        self.remembered.previous(url.as_str(), &self.filed(lease, url.key())).ok().flatten()
    }

    /// The links of a page that has not changed, where rules that have may take in more of them.
    pub fn links_again(&self, previous: &Previous) -> Outlinks {
        let wanted = self.hears_again.load(Ordering::Relaxed);
        let links =
            wanted.then(|| self.remembered.links(previous)).flatten().map(|(links, _)| links).unwrap_or_default();
        let link = |link: crate::links::Link<'_>| {
            let kind = LinkKind::from_code(link.code)?;
            Some(skep_page::Link { url: link.url.to_owned(), kind, nofollow: link.nofollow })
        };
        links.iter().filter_map(link).collect()
    }

    /// The same for a URL that others fetch now: it is known when they are back.
    pub fn previous_of_offered(&self, lease: LeaseId, url: &Url) -> Option<Previous> {
        let previous = self.previous(lease, url);
        self.looked_up.borrow_mut().insert(url.as_str().to_owned(), previous.clone());
        previous
    }

    /// The bundle is over.
    pub fn forget_looked_up(&self, bundle: &Bundle) {
        let mut looked_up = self.looked_up.borrow_mut();
        if !looked_up.is_empty() {
            bundle.urls.iter().for_each(|ask| drop(looked_up.remove(&ask.url)));
        }
    }

    /// The host is the operator's own, and its robots.txt is to be ignored.
    pub fn ignores_robots(&self, url: &Url) -> bool {
        let settings = self.settings();
        settings.ignore_robots && settings.is_own(url.host_name())
    }

    /// The registrable domain of a URL: the unit of politeness.
    pub fn site<'u>(&self, url: &'u Url) -> &'u str {
        url.site(&self.suffixes, Part::Whole)
    }

    /// Waits for the turn of the URL's site, as long as the lease allows. Whoever gets it asks at once.
    pub async fn turn(&self, url: &Url, pace: Pace, deadline_ms: u64) -> std::result::Result<(), NotNow> {
        if pace != Pace::None {
            let hold = Duration::from_millis(self.fetch.limits.exchange_ms_max());
            self.clocks.turn(self.site(url), hold, self.zero + Duration::from_millis(deadline_ms)).await?;
        }
        if self.is_ours(url) {
            return Ok(());
        }
        if pace != Pace::None {
            self.clocks.left(self.site(url), Duration::ZERO);
        }
        Err(NotNow::Over)
    }

    /// Whether a request to this site may begin here now, and not at another node.
    pub fn is_ours(&self, url: &Url) -> bool {
        self.leading.as_ref().is_none_or(|leading| leading.may_ask(url))
    }

    /// Whether the URL's site is split.
    pub fn is_split(&self, url: &Url) -> bool {
        self.leading.as_ref().is_some_and(|leading| leading.splits().of(url.key().site_hash()).is_some())
    }

    /// How long at most somebody else may be sent there, of this time.
    pub fn ours_for_ms(&self, url: &Url, ms: u64) -> u64 {
        let left = self.leading.as_ref().map(|leading| leading.left_there(url).as_millis() as u64);
        left.map_or(ms, |left| left.min(ms))
    }

    /// The same for what may have been asked for already, by other hands: then there is nothing to wait for.
    pub async fn turn_of(
        &self,
        session: &Session,
        url: &Url,
        pace: Pace,
        deadline_ms: u64,
    ) -> std::result::Result<(), NotNow> {
        if session.brings(url) { Ok(()) } else { self.turn(url, pace, deadline_ms).await }
    }

    /// The answer is complete: the site rests.
    pub fn answered(&self, url: &Url, pace: Pace, answer_ms: u64, crawl_delay_ms: Option<u64>) {
        if pace != Pace::None {
            let gap = pace::gap_ms(&pace, crawl_delay_ms, answer_ms);
            self.clocks.answered(self.site(url), Duration::from_millis(gap));
        }
    }

    /// The same for an answer that others speak of.
    pub fn brought(&self, url: &Url, pace: Pace, answer_ms: u64, crawl_delay_ms: Option<u64>) {
        if pace != Pace::None {
            let gap = pace::gap_ms(&pace, crawl_delay_ms, answer_ms);
            self.clocks.brought(self.site(url), Duration::from_millis(gap));
        }
    }

    /// The site asks to be left alone, for 0 if it does not say how long. The schedule leaves it alone anyway; the clock says so to
    /// whoever is led there from elsewhere.
    pub fn parked(&self, url: &Url, park_ms: u64) {
        let park_ms = if park_ms > 0 { park_ms } else { self.backoff_ms };
        if self.pace(url) != Pace::None {
            self.clocks.left(self.site(url), Duration::from_millis(park_ms));
        }
    }

    /// A site that this run has not asked yet may have been asked by the last one just before this one began, or by another node just
    /// before this one came to lead.
    pub fn rested(&self, url: &Url, pace: Pace, crawl_delay_ms: Option<u64>) {
        if pace != Pace::None {
            let gap = pace::gap_ms(&pace, crawl_delay_ms, 0);
            let since = self.leading.as_ref().and_then(|leading| leading.since_there(url));
            let since = since.map_or(self.zero, |since| Instant::from_std(since).max(self.zero));
            self.clocks.unasked(self.site(url), since + Duration::from_millis(gap));
        }
    }

    /// The pace of a host as the settings have it; that of a bundle's own host comes with the bundle.
    pub fn pace(&self, url: &Url) -> Pace {
        let settings = self.settings();
        settings.pace_of(url.host_name(), self.site(url)).allowed(settings.is_own(url.host_name()))
    }

    /// Whether the settings pause the host by now.
    pub fn is_paused(&self, url: &Url) -> bool {
        self.settings().is_paused(url.host_name(), self.site(url))
    }

    /// Waits until so many bytes may be on their way to the disk.
    pub async fn room(&self, bytes: u64) -> Room {
        let permits = (bytes.min(u64::from(UNSYNCED_BYTES_MAX)) as u32).max(1);
        // The semaphores are never closed.
        Room {
            _visit: self.visits.clone().acquire_owned().await.ok(),
            _bytes: self.bytes.clone().acquire_many_owned(permits).await.ok(),
        }
    }

    /// Hands records over. The engine hears of the visit when they are synced, or that it was lost.
    pub fn append(&self, append: Append, visited: Visited, room: Room) {
        let (say, outlet) = (self.say.clone(), self.outlet.clone());
        let mut visited = visited;
        if let Some((site, place)) = self.places.borrow().get(&visited.lease).copied() {
            visited.place = (Key::of(&visited.url).site_hash() == site).then_some(place);
        }
        self.hand_over(append, move |result| {
            drop(room);
            visited.referring = None;
            let said = match result {
                Ok(acknowledged) => {
                    let mut backwards = acknowledged.positions.iter().rev().copied();
                    visited.position = backwards.next();
                    // The answer stands before what is said about it.
                    if let (Some(claim), Some(answer)) = (visited.claim.take(), backwards.next()) {
                        claim.kept(Original { url: visited.url.clone(), time_ms: visited.time_ms }, answer);
                        if let (Some(outlet), Some((sha256, length))) = (&outlet, visited.large) {
                            outlet.kept_body(sha256, length);
                        }
                    }
                    Said::Visited(Box::new(visited))
                }
                Err(error) => {
                    visited.claim = None;
                    Said::Lost(Box::new(visited), error.into())
                }
            };
            // Nobody listens any more when the engine has given up: the next run visits this URL again.
            let _given_up = say.send(said);
        });
    }

    /// A visit that could not be kept did not happen.
    pub fn lost(&self, visited: Visited, error: Error) {
        let _given_up = self.say.send(Said::Lost(Box::new(visited), error));
    }

    /// Keeps a record of checks; the engine hears of each when it is synced.
    pub fn append_checks(&self, site_hash: u32, block: Vec<u8>, visits: Vec<Visited>) {
        let append = self.encoders.borrow_mut().checks(site_hash, self.now_ms(), block, self.id());
        let say = self.say.clone();
        let told = move |result: skep_archive::Result<skep_archive::Acknowledged>| {
            let last = visits.len().saturating_sub(1);
            for (number, mut visited) in visits.into_iter().enumerate() {
                let said = match &result {
                    Ok(acknowledged) => {
                        // The record is folded when all of its lines are: a checkpoint may come between them.
                        visited.position = acknowledged.positions.last().copied().filter(|_| number == last);
                        Said::Visited(Box::new(visited))
                    }
                    Err(error) => Said::Lost(Box::new(visited), error.clone().into()),
                };
                let _given_up = say.send(said);
            }
        };
        match append {
            Ok(append) => self.hand_over(append, told),
            Err(error) => told(Err(skep_archive::Error::Refused { why: format!("checks cannot be written: {error}") })),
        }
    }

    /// Hands records over; `told` hears what came of it, also when they are refused at once.
    fn hand_over(
        &self,
        append: Append,
        told: impl FnOnce(skep_archive::Result<skep_archive::Acknowledged>) + Send + 'static,
    ) {
        let told = Arc::new(Mutex::new(Some(told)));
        let once = told.clone();
        let tell = move |told: &Mutex<Option<_>>, result| {
            let told: Option<_> = told.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(told) = told {
                let told: Box<dyn FnOnce(_)> = Box::new(told);
                told(result);
            }
        };
        if let Err(error) = self.archive.append_then(append, Box::new(move |result| tell(&once, result))) {
            tell(&told, Err(error));
        }
    }

    /// A name for a record.
    pub fn id(&self) -> [u8; 16] {
        self.ids.borrow_mut().next()
    }

    /// By what a check line names a URL.
    pub fn fingerprint(&self, crawl: u16, url: &str) -> [u8; 16] {
        self.key.fingerprint(crawl, url)
    }

    /// Whether a bundle must end: somebody stopped the crawl, nothing can be had, or the next visit might outlast the lease.
    pub fn is_over(&self, deadline_ms: u64, last_answer_ms: u64) -> bool {
        let reserve_ms = last_answer_ms.saturating_mul(2).max(1_000);
        self.stopping.load(Ordering::Relaxed) || self.network.is_down() || self.elapsed_ms() + reserve_ms > deadline_ms
    }

    /// Keeps the answer of the name server, once per host and run.
    pub fn keep_name(&self, lease: LeaseId, session: &Session) {
        let Some(resolved) = session.resolved() else { return };
        if resolved.text.is_empty() || !self.names.is_news(&resolved.host) {
            return;
        }
        let dns = crate::records::Dns { host: &resolved.host, time_ms: self.now_ms(), text: &resolved.text };
        let append = self.encoders.borrow_mut().dns(&dns, &mut || self.id());
        if let Ok(append) = append {
            let append = Append { site_hash: self.place_of(lease, append.site_hash), ..append };
            // If this record is lost, so is the next visit's, and that is said.
            let _told_elsewhere = self.archive.append_then(append, Box::new(|_| ()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_a_name_server_is_kept_once_whoever_asks() {
        let names = Names::default();
        let told = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..8).map(|_| scope.spawn(|| usize::from(names.is_news("bees.test")))).collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).sum::<usize>()
        });
        assert_eq!(told, 1);
        assert!((0..NAMES_KEPT_MAX).all(|number| names.is_news(&format!("{number}.test"))));
        assert!(names.0.lock().unwrap().len() <= NAMES_KEPT_MAX);
    }
}
