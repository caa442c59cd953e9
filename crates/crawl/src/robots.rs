//! robots.txt of every host, kept for at most a day, and archived like any other answer.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use skep_archive::settings as files;
use skep_fetch::{Ask, Exchange, Session};
use skep_page::{Link, LinkKind, Outlinks};
use skep_schedule::Bundle;
use skep_url::Url;
use skep_url::limits::{ROBOTS_FRESH_SECONDS, ROBOTS_REDIRECT_HOPS_MAX};
use skep_url::robots::{Answer, Policy};
use skep_warc::write::Truncated;

use crate::clocks::NotNow;
use crate::error::Result as Kept;
use crate::finding::Finding;
use crate::hops::Hops;
use crate::judge::{self, Hints};
use crate::keep;
use crate::limits::{ROBOTS_BYTES_MAX, ROBOTS_CACHED_BYTES_MAX, ROBOTS_CACHED_HOSTS_MAX, SITEMAPS_PER_HOST_MAX};
use crate::network::{self, Seen};
use crate::outcome::Outcome;
use crate::visit::Visited;
use crate::worker::Parts;

/// The product token under which robots.txt files may speak of us.
pub const AGENT: &str = "skep";

/// How long the last good file counts before the host is asked for a new one again.
const LAST_GOOD_SECONDS: u64 = 600;

/// Rules that travel with a bundle are used for so long at most.
const TRAVEL_MS: i64 = 1_200_000;

/// What hosts allow, as far as it is known and fresh.
#[derive(Default)]
pub struct Robots {
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    hosts: HashMap<Box<str>, Known>,
    /// Of all files.
    bytes: usize,
    /// Files that somebody brought who has lied since, and when that was found: what the archive has from before does not count.
    doubted: HashMap<Box<str>, i64>,
    /// The same for all files, when there were too many of them.
    all_doubted_ms: i64,
}

#[derive(Clone)]
struct Known {
    policy: Arc<Policy>,
    until_ms: i64,
    failing_since_ms: Option<i64>,
    /// It was a page and no rules.
    is_page: bool,
    /// Of the file.
    bytes: usize,
}

/// The rules of a host, and what it cost to learn them.
pub struct Learned {
    /// The rules.
    pub policy: Arc<Policy>,
    /// How long the last answer took, where one was asked for just now.
    pub answer_ms: Option<u64>,
    /// No answer came: whose fault that is.
    pub fault: Option<skep_fetch::Class>,
    /// A rule of ours forbids to ask this host at all: its address, or its port.
    pub refused: Option<Outcome>,
    /// What is said of the host's pages where the file could not be had.
    pub closed: Outcome,
    /// The host asks to be left alone for so long; 0 if it does not say how long.
    pub park_ms: Option<u64>,
    /// Where the host is, if that was found out just now.
    pub address: Option<IpAddr>,
}

impl Learned {
    /// Nobody was asked.
    pub fn known(policy: Arc<Policy>) -> Learned {
        Learned {
            policy,
            answer_ms: None,
            fault: None,
            refused: None,
            closed: Outcome::ROBOTS_UNREACHABLE,
            park_ms: None,
            address: None,
        }
    }
}

/// Where it stands that rules were doubted, for those who come later: what the archive has from before that moment does not count for them.
const DOUBTED: &str = "doubted.toml";
const DOUBTED_VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Doubted {
    version: u32,
    /// Milliseconds since 1970.
    rules_before_ms: i64,
}

impl Robots {
    /// For an archive whose settings are in this folder.
    pub fn open(settings_folder: &Path) -> Kept<Robots> {
        let doubted: Option<Doubted> = files::load(&settings_folder.join(DOUBTED), DOUBTED_VERSION)?;
        let all_doubted_ms = doubted.map_or(0, |doubted| doubted.rules_before_ms);
        Ok(Robots { cache: Mutex::new(Cache { all_doubted_ms, ..Cache::default() }) })
    }

    /// Whoever brought these URLs has lied: hosts whose files are among them are asked for them again, also by crawls that come later.
    pub fn doubt_all(&self, urls: &[String], settings_folder: &Path, now_ms: i64) -> Kept<()> {
        let count = urls.iter().filter(|url| self.doubt(url, now_ms)).count();
        if count > 0 {
            let doubted = Doubted { version: DOUBTED_VERSION, rules_before_ms: now_ms };
            files::store(&settings_folder.join(DOUBTED), &doubted, 0o644)?;
        }
        Ok(())
    }

    fn known(&self, origin: &str) -> Option<Known> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).hosts.get(origin).cloned()
    }

    fn keep(&self, origin: &str, known: Known, now_ms: i64) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.forget(origin);
        if cache.is_full(known.bytes) {
            cache.hosts.retain(|_, known| known.until_ms > now_ms);
            cache.bytes = cache.hosts.values().map(|known| known.bytes).sum();
            if cache.is_full(known.bytes) {
                // All are fresh: whichever goes is asked for again when its host's turn comes.
                (cache.hosts, cache.bytes) = (HashMap::new(), 0);
            }
        }
        cache.bytes += known.bytes;
        cache.hosts.insert(origin.into(), known);
    }

    /// Is it the file of a host? Then it is forgotten.
    fn doubt(&self, url: &str, now_ms: i64) -> bool {
        if !url.ends_with("/robots.txt") {
            return false;
        }
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.forget(url);
        if cache.doubted.len() >= ROBOTS_CACHED_HOSTS_MAX {
            (cache.doubted, cache.all_doubted_ms) = (HashMap::new(), now_ms);
        }
        cache.doubted.insert(url.into(), now_ms);
        true
    }

    /// Since when the archive's word counts.
    fn since_ms(&self, origin: &str, now_ms: i64) -> i64 {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let doubted_ms = cache.doubted.get(origin).map_or(cache.all_doubted_ms, |ms| cache.all_doubted_ms.max(*ms));
        doubted_ms.max(now_ms - (ROBOTS_FRESH_SECONDS * 1000) as i64)
    }

    /// What was said for this host was not the host's word.
    pub fn forget(&self, origin: &str) {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).forget(origin);
    }
}

impl Cache {
    fn is_full(&self, more_bytes: usize) -> bool {
        self.hosts.len() >= ROBOTS_CACHED_HOSTS_MAX || self.bytes + more_bytes > ROBOTS_CACHED_BYTES_MAX
    }

    fn forget(&mut self, origin: &str) {
        if let Some(known) = self.hosts.remove(origin) {
            self.bytes -= known.bytes;
        }
    }
}

/// The rules of the host of `url`: known, or in the archive, or asked for now.
pub async fn rules(url: &Url, bundle: &Bundle, session: &mut Session, parts: &Parts) -> Result<Learned, NotNow> {
    let first = url.robots_txt();
    let origin = first.as_str();
    let now_ms = parts.now_ms();
    let known = parts.robots.known(origin).or_else(|| archived(&first, now_ms, parts));
    if let Some(known) = known.as_ref().filter(|known| known.until_ms > now_ms) {
        parts.robots.keep(origin, known.clone(), now_ms);
        return Ok(Learned::known(known.policy.clone()));
    }
    let failing_since_ms = known.as_ref().and_then(|known| known.failing_since_ms);
    let asked = ask(&first, bundle, session, parts).await?;
    let failing_for_seconds = failing_since_ms.map_or(0, |since| (now_ms - since).max(0) as u64 / 1000);
    let policy = Policy::of(asked.answer(failing_for_seconds));
    let failed = policy.is_closed();
    let fresh_seconds = policy.fresh_seconds.min(ROBOTS_FRESH_SECONDS);
    let is_page = !failed && is_page(asked.status, &asked.body);
    let bytes = asked.body.len();
    let (policy, bytes, fresh_seconds) = match known {
        // While the file cannot be had, the last good one counts.
        Some(known) if failed && !known.policy.is_closed() => (known.policy, known.bytes, LAST_GOOD_SECONDS),
        // When to ask again is the schedule's to say: it lets the site rest, longer each time.
        _ if failed => (Arc::new(policy), bytes, 0),
        // A page instead of rules may be anybody's: it does not count for long.
        _ if is_page => (Arc::new(policy), bytes, LAST_GOOD_SECONDS),
        _ => (Arc::new(policy), bytes, fresh_seconds),
    };
    let until_ms = parts.now_ms() + (fresh_seconds * 1000) as i64;
    let failing_since_ms = failed.then(|| failing_since_ms.unwrap_or(now_ms));
    parts.robots.keep(origin, Known { policy: policy.clone(), until_ms, failing_since_ms, is_page, bytes }, now_ms);
    Ok(Learned {
        policy,
        answer_ms: Some(asked.step.answer_ms),
        fault: asked.step.fault,
        refused: (asked.step.fault == Some(skep_fetch::Class::Refused)).then_some(asked.step.outcome),
        closed: match asked.step.fault {
            Some(skep_fetch::Class::Host | skep_fetch::Class::Local) => asked.step.outcome,
            _ if asked.step.outcome.is_between() => asked.step.outcome,
            _ => Outcome::ROBOTS_UNREACHABLE,
        },
        park_ms: asked.step.park_ms,
        address: asked.step.address,
    })
}

/// The rules of the host of `url`, where they are known and count long enough to travel with a bundle.
pub fn known_for(url: &Url, parts: &Parts) -> Option<Arc<Policy>> {
    let (first, now_ms) = (url.robots_txt(), parts.now_ms());
    let known = parts.robots.known(first.as_str()).or_else(|| archived(&first, now_ms, parts))?;
    // A host's word is not used for longer than a day. How long a page counts that is no word of it is ours to say: asking for it anew with
    // each bundle would be asking more often than we would ourselves.
    let margin_ms = if known.is_page { 0 } else { TRAVEL_MS };
    (known.until_ms - margin_ms > now_ms && !known.policy.is_closed()).then_some(known.policy)
}

/// What asking for the file came to, after redirects.
struct Asked {
    status: Option<u16>,
    body: Vec<u8>,
    retry_after_seconds: Option<u64>,
    endless: bool,
    step: crate::visit::Step,
}

impl Asked {
    fn answer(&self, failing_for_seconds: u64) -> Answer<'_> {
        match self.status {
            _ if self.endless => Answer::RedirectsWithoutEnd,
            Some(status) => Answer::Response {
                status,
                body: &self.body,
                retry_after_seconds: self.retry_after_seconds,
                failing_for_seconds,
            },
            None => Answer::Unreachable { failing_for_seconds },
        }
    }
}

async fn ask(first: &Url, bundle: &Bundle, session: &mut Session, parts: &Parts) -> Result<Asked, NotNow> {
    let mut url = first.clone();
    let mut elsewhere: Option<Session> = None;
    for hop in 0..=ROBOTS_REDIRECT_HOPS_MAX {
        let session = elsewhere.as_mut().unwrap_or(session);
        let (mut asked, to) = ask_once(&url, first, bundle, session, parts).await?;
        let Some(to) = to else {
            // Where a redirect leads to is refused or cannot be reached, not the host that sends there.
            let of_there = asked.step.fault.is_some_and(|class| class != skep_fetch::Class::Local);
            if hop > 0 && of_there && !asked.step.outcome.is_between() {
                asked.step.outcome = Outcome::ROBOTS_UNREACHABLE;
                asked.step.fault = asked.step.fault.map(|class| match class {
                    skep_fetch::Class::Refused => skep_fetch::Class::Host,
                    class => class,
                });
            }
            return Ok(asked);
        };
        if hop == ROBOTS_REDIRECT_HOPS_MAX {
            return Ok(Asked { endless: true, ..asked });
        }
        if !parts.is_ours(&to) {
            // The site it leads to is visited by another node; rules that nobody here may ask for cannot be had.
            asked.status = None;
            asked.step.outcome = Outcome::ROBOTS_UNREACHABLE;
            asked.step.fault = Some(skep_fetch::Class::Host);
            return Ok(asked);
        }
        if to.host() != url.host() || to.scheme() != url.scheme() {
            elsewhere = Some(parts.fetcher.session(&to));
        }
        url = to;
    }
    unreachable!("the last hop returns")
}

async fn ask_once(
    url: &Url,
    first: &Url,
    bundle: &Bundle,
    session: &mut Session,
    parts: &Parts,
) -> Result<(Asked, Option<Url>), NotNow> {
    let pace = if url.host() == first.host() { bundle.pace } else { parts.pace(url) };
    parts.turn_of(session, url, pace, bundle.deadline_ms).await?;
    let (time_ms, began_ms) = (parts.now_ms(), parts.elapsed_ms());
    let ask = Ask { body_bytes_max: Some(ROBOTS_BYTES_MAX), ..Ask::new(url) };
    let exchange = session.get(&ask).await;
    let time_ms = exchange.brought.as_ref().map_or(time_ms, |brought| brought.time_ms);
    match exchange.brought {
        Some(_) => parts.brought(url, pace, exchange.timings.total_ms.into(), None),
        None => parts.answered(url, pace, exchange.timings.total_ms.into(), None),
    }
    let mut judged = judge::judge(&exchange, url, time_ms, true);
    let answer = network::look(&mut judged, &Seen { url, exchange: &exchange, began_ms }, session, parts).await;
    if let Some(park_ms) = judged.park_ms {
        parts.parked(url, park_ms);
    }
    // A file that broke off may have forbidden more than came: it counts as one that could not be had.
    let broke_off = matches!(exchange.truncated, Some(Truncated::Time | Truncated::Disconnect));
    let status =
        exchange.head.as_ref().and_then(|head| head.status()).filter(|_| !broke_off && !judged.outcome.is_between());
    let body = body(&exchange);
    let to =
        judged.links.iter().find(|link| link.kind == LinkKind::Redirect).and_then(|link| Url::parse(link.url).ok());
    let mut step = crate::visit::Step {
        outcome: judged.outcome,
        answer_ms: exchange.timings.total_ms.into(),
        fault: exchange.fault.as_ref().filter(|_| exchange.response.is_empty()).map(skep_fetch::Fault::class),
        park_ms: judged.park_ms,
        address: exchange.address.map(|address| address.ip()),
        check: None,
        suspect: false,
        cookie: None,
    };
    let retry_after_seconds = judged.park_ms.filter(|ms| *ms > 0).map(|ms| ms / 1000);
    judged.links = if status == Some(200) { sitemaps(first, &body) } else { Outlinks::default() };
    if !exchange.response.is_empty() && !judged.outcome.is_between() {
        let mut visited = Visited {
            lease: bundle.lease,
            entry: None,
            from_queue: false,
            url: url.as_str().to_string(),
            parts: None,
            hops: Hops::SEED,
            outcome: judged.outcome,
            time_ms,
            answer_ms: exchange.timings.total_ms.into(),
            bytes: exchange.response.len(),
            failures: 0,
            park_ms: judged.park_ms,
            address: None,
            links: std::mem::take(&mut judged.links),
            tells_all: false,
            came: None,
            gone: Vec::new(),
            turnover: None,
            follow: true,
            via: None,
            text_digest: 0,
            digest: None,
            mime: std::mem::take(&mut judged.mime),
            robots_line: 0,
            found: Finding::First,
            due: None,
            hints: Hints::default(),
            place: None,
            position: None,
            claim: None,
            referring: None,
            large: None,
        };
        let room = parts.room(visited.bytes).await;
        let records = keep::records(&mut visited, url, &exchange, &judged, None, parts).await;
        if parts.network.is_portal(answer) {
            step.outcome = Outcome::CAPTIVE_PORTAL;
            let asked = Asked { status: None, body, retry_after_seconds: None, endless: false, step };
            return Ok((asked, None));
        }
        match records {
            Ok(append) => parts.append(append, visited, room),
            Err(error) => parts.lost(visited, error),
        }
    }
    parts.network.note(answer, None, url);
    parts.keep_name(bundle.lease, session);
    Ok((Asked { status, body, retry_after_seconds, endless: false, step }, to))
}

/// What a robots.txt that others brought asks for between two requests.
pub fn delay_in(exchange: &Exchange) -> Option<u64> {
    let status = exchange.status().filter(|status| *status == 200)?;
    let body = body(exchange);
    let answer = Answer::Response { status, body: &body, retry_after_seconds: None, failing_for_seconds: 0 };
    let policy = Policy::of(answer);
    let delay = policy.robots().and_then(|robots| robots.crawl_delay(AGENT))?;
    Some((delay.seconds * 1000.0) as u64)
}

/// The body of a robots.txt, decoded as far as it can be.
fn body(exchange: &Exchange) -> Vec<u8> {
    let Some(head) = &exchange.head else { return Vec::new() };
    judge::decoded(head, exchange).map(|body| body.into_owned()).unwrap_or_default()
}

/// HTML, where rules should be. The page of a host that says that there are none is its word like any other.
fn is_page(status: Option<u16>, body: &[u8]) -> bool {
    status.is_some_and(|status| (200..300).contains(&status)) && body.trim_ascii_start().starts_with(b"<")
}

/// The sitemaps that a robots.txt names.
fn sitemaps(first: &Url, body: &[u8]) -> Outlinks {
    let robots = skep_url::robots::Robots::parse(body);
    let links = robots.sitemaps().iter().filter_map(|sitemap| first.join(&sitemap.url).ok());
    links
        .take(SITEMAPS_PER_HOST_MAX as usize)
        .map(|url| Link { url: url.as_str().to_string(), kind: LinkKind::Sitemap, nofollow: false })
        .collect()
}

/// The rules as they stand in the archive, if they were fetched within a day: after a restart nobody is asked again.
fn archived(first: &Url, now_ms: i64, parts: &Parts) -> Option<Known> {
    let since_ms = parts.robots.since_ms(first.as_str(), now_ms);
    let (time_ms, status, body) = parts.remembered.body_since(first, since_ms).ok()??;
    // A page of HTML holds no rules and may be anybody's, a portal's for one: whoever sent it is asked again.
    if is_page(Some(status), &body) {
        return None;
    }
    let answer = Answer::Response { status, body: &body, retry_after_seconds: None, failing_for_seconds: 0 };
    let policy = Policy::of(answer);
    let until_ms = time_ms + (policy.fresh_seconds.min(ROBOTS_FRESH_SECONDS) * 1000) as i64;
    (status < 300 || (400..500).contains(&status) && status != 429).then(|| Known {
        policy: Arc::new(policy),
        until_ms,
        failing_since_ms: None,
        is_page: false,
        bytes: body.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(bytes: usize, until_ms: i64) -> Known {
        let answer = Answer::Unreachable { failing_for_seconds: 0 };
        Known { policy: Arc::new(Policy::of(answer)), until_ms, failing_since_ms: None, is_page: false, bytes }
    }

    #[test]
    fn what_is_kept_of_rules_is_bounded_in_bytes() {
        let robots = Robots::default();
        let kept = |origin: &str| robots.known(origin).is_some();
        let half = ROBOTS_CACHED_BYTES_MAX / 2;
        robots.keep("a", known(half, 10), 0);
        robots.keep("a", known(half, 10), 0);
        robots.keep("b", known(half, 20), 0);
        assert!(kept("a") && kept("b"), "one that is learned anew does not count twice");
        robots.keep("c", known(half, 30), 15);
        assert!(!kept("a") && kept("b") && kept("c"), "the stale ones go first");
        robots.keep("d", known(half, 30), 15);
        assert!(!kept("b") && !kept("c") && kept("d"));
        robots.forget("d");
        assert_eq!(robots.cache.lock().unwrap().bytes, 0);
    }

    #[test]
    fn a_page_counts_as_no_rules_only_where_it_stands_for_rules() {
        assert!(is_page(Some(200), b" \n<!doctype html>"));
        assert!(!is_page(Some(404), b"<!doctype html>not here"), "the usual word of a host that has no rules");
        assert!(!is_page(Some(200), b"User-agent: *\n") && !is_page(None, b"<"));
    }

    #[test]
    fn rules_on_the_word_of_a_liar_are_asked_for_again() {
        let (robots, day_ms) = (Robots::default(), (ROBOTS_FRESH_SECONDS * 1000) as i64);
        let now_ms = 10 * day_ms;
        let [one, other] = ["http://a.test/robots.txt", "http://b.test/robots.txt"];
        [one, other].iter().for_each(|file| robots.keep(file, known(7, now_ms + day_ms), now_ms));
        let folder = tempfile::tempdir().unwrap();
        let urls = [one.to_owned(), "http://b.test/page".to_owned()];
        robots.doubt_all(&urls[1..], folder.path(), now_ms).unwrap();
        assert_eq!(Robots::open(folder.path()).unwrap().since_ms(one, now_ms), now_ms - day_ms);
        robots.doubt_all(&urls, folder.path(), now_ms).unwrap();
        assert_eq!(Robots::open(folder.path()).unwrap().since_ms(one, now_ms + 1), now_ms, "also after a restart");
        assert!(robots.known(one).is_none() && robots.known(other).is_some());
        let later_ms = now_ms + 1_000;
        assert_eq!(robots.since_ms(one, later_ms), now_ms, "what the archive has from before does not count");
        assert_eq!(robots.since_ms(other, later_ms), later_ms - day_ms);
        assert_eq!(robots.since_ms(one, now_ms + 2 * day_ms), now_ms + day_ms);
        let files = |n: &usize| robots.doubt(&format!("http://{n}.test/robots.txt"), later_ms);
        assert_eq!((0..ROBOTS_CACHED_HOSTS_MAX).filter(files).count(), ROBOTS_CACHED_HOSTS_MAX);
        assert!(robots.since_ms(one, later_ms) >= now_ms, "bounded, and nobody is forgotten");
    }
}
