//! A node that follows fetches bundles for whoever leads, from where it stands. It decides nothing: what to ask for, at which pace
//! and by which rules comes with the bundle, and all that it saw goes back as it was.
//!
//! ```text
//!  asked by who leads ─▶ is there room? ─▶ URL after URL, at the pace of the site, until all are fetched, the time that was
//!                                          granted is nearly over, or the site has enough ─▶ each exchange as it comes ─▶ over
//! ```
//! What it cannot get it leaves to whoever leads: that there is no way from here, or that somebody is turned away here, says nothing about
//! the site.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use skep_fetch::{Ask, Dns, Exchange, Fetcher, Limits};
use skep_schedule::near::Near;
use skep_schedule::{Pace, pace};
use skep_url::Url;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

use crate::carry::Moment;
use crate::follow::{self, Asked, Part};
use crate::limits::{
    FOLLOW_ANSWER_BYTES_MAX, FOLLOW_BUNDLE_BYTES_MAX, FOLLOWED_MAX, FOLLOWED_PER_LEADER_MAX, GRANT_MS_MAX, MEASURE_MS,
    TICKET_MS_MAX,
};
use crate::message::{Bundle, Task};
use crate::seen;
use crate::trust::{Key, is_turned_away};

/// No request begins when less than this is left of the time that was granted.
const RESERVE: Duration = Duration::from_millis(1_500);

/// How far hosts are from here and from others, for as long as this process lives.
pub struct Memory {
    near: Mutex<Near>,
    zero: std::time::Instant,
    followed: AtomicU64,
    out: AtomicU64,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            near: Mutex::default(),
            zero: std::time::Instant::now(),
            followed: AtomicU64::new(0),
            out: AtomicU64::new(0),
        }
    }
}

impl Memory {
    /// What is known.
    pub fn lock(&self) -> MutexGuard<'_, Near> {
        self.near.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds since it began.
    pub fn now_ms(&self) -> u64 {
        self.zero.elapsed().as_millis() as u64
    }

    /// Bundles that were fetched here for others.
    pub fn followed(&self) -> u64 {
        self.followed.load(Ordering::Relaxed)
    }

    /// Bundles that are with others now.
    pub fn out(&self) -> u64 {
        self.out.load(Ordering::Relaxed)
    }

    pub(crate) fn goes_out(&self) {
        self.out.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn is_back(&self) {
        self.out.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The host of a URL, as it is remembered.
pub fn host_of(url: &Url) -> String {
    format!("{}:{}", url.host_name(), url.port())
}

/// Fetches for others.
pub struct Follower {
    fetcher: Fetcher,
    memory: Arc<Memory>,
    runtime: tokio::runtime::Handle,
    taken: Mutex<Taken>,
    /// The thread on which everything is fetched ends with this.
    _ends: oneshot::Sender<()>,
}

/// What is being done, and for whom.
#[derive(Default)]
struct Taken {
    by_leader: HashMap<Key, usize>,
    hosts: HashSet<String>,
}

/// A question, and who may ask it here.
pub struct From<'a> {
    /// Who leads, as far as this node has granted it.
    pub leader: Key,
    /// For how long it does, for certain.
    pub leads_for: Duration,
    /// Is a URL of the slice that it leads?
    pub is_theirs: &'a dyn Fn(&Url) -> bool,
    /// Does it still lead, under the same lease? One that gave it back, or was started anew, does not know any more what it asked for.
    pub still_leads: Still,
}

/// See [`From::still_leads`].
pub type Still = Arc<dyn Fn() -> bool + Send + Sync>;

/// What is left to be told to whoever asked.
pub type Telling = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()>>;

impl Follower {
    /// Fetches by these settings, which are those of the crawl at this node, on a thread of its own.
    pub fn start(mut settings: skep_fetch::Settings, memory: Arc<Memory>) -> Result<Follower, String> {
        settings.limits = Limits {
            body_bytes_max: settings.limits.body_bytes_max.min(FOLLOW_ANSWER_BYTES_MAX),
            html_bytes_max: settings.limits.html_bytes_max.min(FOLLOW_ANSWER_BYTES_MAX),
            spool_bytes: usize::MAX, // what is brought is small, and gone at once
            ..settings.limits
        };
        let settings = Arc::new(settings);
        let dns = Arc::new(Dns::new(&settings).map_err(|error| error.to_string())?);
        let fetcher = Fetcher::new(settings, dns).map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("no runtime to fetch for others: {error}"))?;
        let handle = runtime.handle().clone();
        let (ends, ended) = oneshot::channel::<()>();
        let run = move || {
            let _when_dropped = runtime.block_on(ended);
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("skep-follow".into()).spawn(run);
        thread.map_err(|error| format!("no thread to fetch for others: {error}"))?;
        Ok(Follower { fetcher, memory, runtime: handle, taken: Mutex::default(), _ends: ends })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers whoever leads; an error says why not.
    pub fn answer(self: &Arc<Follower>, from: &From<'_>, asked: Asked) -> Result<Telling, String> {
        match asked {
            Asked::Room => Ok(just(match self.has_room(&from.leader) {
                true => Part::Room { ticket: Moment::now().ticket() },
                false => Part::Busy,
            })),
            Asked::Measure { ticket, grant_ms, url } => {
                let until = until(ticket, grant_ms.min(MEASURE_MS as u32), from)?;
                let url = theirs(&url, from)?;
                let host = host_of(&url);
                if let Some(took_ms) = self.memory.lock().own(&host, self.memory.now_ms()) {
                    return Ok(just(Part::Measured { took_ms, now: false }));
                }
                let Some(place) = self.place(from.leader, &host) else { return Ok(just(Part::Busy)) };
                let (follower, still) = (self.clone(), from.still_leads.clone());
                Ok(Box::new(move |out| {
                    let part = follower.measure(&url, &host, until, still);
                    drop(place);
                    follow::write(&part, out)
                }))
            }
            Asked::Fetch { ticket, bundle } => {
                let until = until(ticket, bundle.lease_ms.min(GRANT_MS_MAX as u32), from)?;
                let urls = bundle.urls.iter().map(|task| theirs(&task.url, from)).collect::<Result<Vec<_>, _>>()?;
                let Some(host) = urls.first().map(host_of) else { return Ok(just(Part::Over { unable: false })) };
                if urls.iter().any(|url| host_of(url) != host) {
                    return Err("a bundle with several hosts".into());
                }
                let Some(place) = self.place(from.leader, &host) else { return Ok(just(Part::Busy)) };
                self.memory.followed.fetch_add(1, Ordering::Relaxed);
                let following = Following { bundle, urls, until, still: from.still_leads.clone() };
                let follower = self.clone();
                Ok(Box::new(move |out| {
                    let told = follower.fetch(following, out);
                    drop(place);
                    told
                }))
            }
        }
    }

    /// Connects once.
    fn measure(&self, url: &Url, host: &str, until: Moment, still: Still) -> Part {
        let (tell, told) = oneshot::channel();
        let (fetcher, url) = (self.fetcher.clone(), url.clone());
        self.runtime.spawn(async move {
            let connected = while_led(&still, timeout(until.left(), fetcher.connect(&url))).await;
            let connected = connected.and_then(Result::ok).and_then(Result::ok);
            let _nobody_waits = tell.send(connected.map(|connected| connected.connect_ms));
        });
        let took_ms = told.blocking_recv().ok().flatten();
        self.memory.lock().connected(host, took_ms, self.memory.now_ms());
        Part::Measured { took_ms, now: true }
    }

    /// Fetches a bundle, and tells of each exchange as it comes. Where nobody listens any more, nothing more is fetched.
    fn fetch(&self, following: Following, out: &mut dyn Write) -> io::Result<()> {
        let (tell, mut told) = mpsc::channel(1);
        self.runtime.spawn(through(following, self.fetcher.clone(), tell));
        while let Some(part) = told.blocking_recv() {
            follow::write(&part, out)?;
        }
        Ok(())
    }

    fn has_room(&self, leader: &Key) -> bool {
        let taken = self.lock();
        let theirs = taken.by_leader.get(leader).copied().unwrap_or(0);
        taken.hosts.len() < FOLLOWED_MAX && theirs < FOLLOWED_PER_LEADER_MAX
    }

    /// A place for something, as long as there is one, and nothing else is under way with the host.
    fn place(self: &Arc<Follower>, leader: Key, host: &str) -> Option<Place> {
        if !self.has_room(&leader) {
            return None;
        }
        let mut taken = self.lock();
        if !taken.hosts.insert(host.to_owned()) {
            return None;
        }
        *taken.by_leader.entry(leader).or_default() += 1;
        Some(Place { follower: self.clone(), leader, host: host.to_owned() })
    }
}

struct Place {
    follower: Arc<Follower>,
    leader: Key,
    host: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.follower.lock();
        taken.hosts.remove(&self.host);
        if let Some(count) = taken.by_leader.get_mut(&self.leader) {
            *count -= 1;
            if *count == 0 {
                taken.by_leader.remove(&self.leader);
            }
        }
    }
}

fn just(part: Part) -> Telling {
    Box::new(move |out| follow::write(&part, out))
}

/// Until when the site is this node's: four fifths of what was granted, from the ticket on, and no longer than whoever granted it leads.
fn until(ticket: u64, grant_ms: u32, from: &From<'_>) -> Result<Moment, String> {
    let asked = Moment::of_ticket(ticket, Duration::from_millis(TICKET_MS_MAX)).ok_or("a ticket that is too old")?;
    let until = asked.until(grant_ms).min(Moment::after(from.leads_for));
    if until.left() <= RESERVE { Err("there is no time left for it".into()) } else { Ok(until) }
}

fn theirs(url: &str, from: &From<'_>) -> Result<Url, String> {
    let url = Url::parse(url).map_err(|_| "what is no URL".to_owned())?;
    if (from.is_theirs)(&url) { Ok(url) } else { Err("a URL of another slice".into()) }
}

/// A bundle, and for how long the site is this node's.
struct Following {
    bundle: Bundle,
    urls: Vec<Url>,
    until: Moment,
    still: Still,
}

/// How often it is looked whether who leads still does: well within the time that a site rests when somebody begins to lead.
const LOOK: Duration = Duration::from_millis(200);
const _: () = assert!(LOOK.as_millis() * 2 < skep_schedule::limits::SITE_GAP_MS_MIN as u128);

/// Waits for something as long as who asked for it leads; `None` when that is over.
async fn while_led<T>(still: &Still, work: impl Future<Output = T>) -> Option<T> {
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return Some(done),
            () = sleep(LOOK) => {
                if !still() {
                    return None;
                }
            }
        }
    }
}

/// What became of a URL.
enum Got {
    /// It is told.
    All(Box<Exchange>),
    /// It is for whoever leads.
    NotForUs,
}

/// Goes through a bundle at the pace of the site.
async fn through(following: Following, fetcher: Fetcher, tell: mpsc::Sender<Part>) {
    let Following { bundle, urls, until, still } = following;
    let pace = Pace::allowed(bundle.pace, false);
    let crawl_delay_ms = bundle.robots.and_then(|rules| rules.crawl_delay_ms);
    let mut session = None;
    let (mut rests, mut bytes) = (Duration::ZERO, 0);
    let mut unable = false;
    for (number, (task, url)) in bundle.urls.iter().zip(&urls).enumerate() {
        if until.left() <= rests + RESERVE || bytes >= FOLLOW_BUNDLE_BYTES_MAX {
            break;
        }
        tokio::select! {
            () = sleep(rests) => {}
            () = tell.closed() => return,
        }
        // A machine that slept meanwhile has nothing to ask for any more.
        if until.left() <= RESERVE || !still() {
            break;
        }
        let session = session.get_or_insert_with(|| fetcher.session(url));
        let began = Instant::now();
        let got = match while_led(&still, timeout(until.left(), session.get(&ask(task, url)))).await {
            Some(Ok(exchange)) => got(exchange),
            Some(Err(_)) => Got::NotForUs,
            None => break,
        };
        let Got::All(exchange) = got else {
            unable = true;
            break;
        };
        bytes += exchange.response.len();
        let took_ms = u64::from(exchange.timings.total_ms).max(began.elapsed().as_millis() as u64);
        rests = Duration::from_millis(pace::gap_ms(&pace, crawl_delay_ms, took_ms));
        let is_enough = matches!(exchange.status(), Some(429 | 503));
        let whole = seen::whole(&exchange);
        let ago_ms = u32::try_from(began.elapsed().as_millis()).unwrap_or(u32::MAX);
        if tell.send(Part::Exchange { number: number as u16, ago_ms, whole }).await.is_err() {
            return;
        }
        if is_enough {
            break;
        }
    }
    let _nobody_listens = tell.send(Part::Over { unable }).await;
}

fn ask<'a>(task: &'a Task, url: &'a Url) -> Ask<'a> {
    Ask { etag: task.etag.as_deref(), last_modified: task.last_modified.as_deref(), ..Ask::new(url) }
}

/// What came is told if it is whole and nobody is turned away. A site that wants to be left alone is to be heard by whoever leads.
fn got(exchange: Exchange) -> Got {
    let wants_rest = matches!(exchange.status(), Some(429 | 503));
    let is_whole = exchange.fault.is_none() && exchange.truncated.is_none();
    match is_whole && (wants_rest || !is_turned_away(exchange.status().unwrap_or(0))) {
        true => Got::All(Box::new(exchange)),
        false => Got::NotForUs,
    }
}
