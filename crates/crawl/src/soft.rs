//! Hosts that answer 200 for what is not there.
//!
//! ```text
//!  page, page, page … with the same text ──▶ the host is asked once for something that cannot be there
//!      another answer, or an error:  the host is honest, and is not asked again
//!      the same text with a 200:     that text means "not there", here and from now on
//!      a redirect:                   so does a redirect to the same place, of what was a page before
//!  several pages that were there, all led to one place ──▶ whoever is led there from now on found nothing
//! ```
//! In a crawl nobody is asked who gives no cause: a host whose pages differ never sees the question. A watch asks before it looks
//! at a page again, in the page's folder, and once a month from then on: what a page that died shows instead is then known beforehand, and folders of one
//! host may be different programs. Pages for what is not there often name what was asked for; those that differ in little else are such pages, too. Whoever
//! sends visitors of a page that was there to the start page of its host says the same without being asked.
//!
//! ```text
//!  keyspace view-not-there   | scheme://host:port |  ─▶  what is known of the host, as JSON; without it the host is asked anew
//!  {"asked": [{"folder": "/news/", "again_ms": …, "shown": {"page": [text, bytes, words]}}], "led": {"to": …, "from": [path, …]}}
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use skep_archive::Archive;
use skep_fetch::{Ask, Exchange, Session};
use skep_page::Input;
use skep_page::compare::leads_home;
use skep_schedule::LeaseId;
use skep_url::Url;
use skep_warc::http::Head;
use xxhash_rust::xxh3::xxh3_64;

use crate::hops::Hops;
use crate::judge::{self, Judgement};
use crate::keep;
use crate::limits::{
    SOFT_AGAIN_MS, SOFT_ALIKE, SOFT_ASKED_MS, SOFT_BITS_MAX, SOFT_FOLDERS_MAX, SOFT_HOSTS_MAX, SOFT_LED,
};
use crate::outcome::Outcome;
use crate::visit::Visited;
use crate::worker::Parts;

const NOT_THERE: &str = "not-there";

/// What is known of hosts in this respect: in memory those that this run saw, the others where runs before kept it.
#[derive(Default)]
pub struct Soft {
    hosts: Mutex<HashMap<Box<str>, Host>>,
    archive: Option<Arc<Archive>>,
}

/// What is known of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Host {
    /// So many pages in turn had this text; of a host that was asked for that, the most there can be.
    #[serde(skip)]
    alike: (u64, u8),
    /// What it was asked.
    asked: Vec<Asked>,
    /// Where pages lead that were there before.
    led: Led,
}

/// What a host was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Asked {
    /// In which folder.
    folder: Box<str>,
    /// When it may be asked again, in milliseconds since 1970.
    again_ms: i64,
    /// What it did; nothing where it did not answer.
    shown: Option<Shown>,
}

/// What a host did for something that cannot be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Shown {
    /// It said honestly that nothing is.
    Nothing,
    /// A page: its text, bytes and words.
    Page([u64; 3]),
    /// It sends one elsewhere; what that comes to.
    Elsewhere(u64),
}

/// Pages that were there and lead to one place now, more than others between them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Led {
    /// What the place comes to.
    to: u64,
    /// What their paths come to.
    from: Vec<u64>,
}

impl Led {
    /// Another page is led there. Says whether so many were that it means nothing is there.
    fn add(&mut self, to: u64, path: u64) -> bool {
        let enough = self.from.len() >= SOFT_LED;
        if self.to == to {
            if !enough && !self.from.contains(&path) {
                self.from.push(path);
            }
        } else if !enough && self.from.pop().is_none() {
            (self.to, self.from) = (to, vec![path]);
        }
        self.to == to && self.from.len() >= SOFT_LED
    }
}

impl Host {
    /// What it shows for what is not there, in the folder of a page; where it was not asked there, in the one where it was first.
    fn shows(&mut self, folder: &str) -> Option<&mut Shown> {
        let here = self.asked.iter().position(|asked| &*asked.folder == folder && asked.shown.is_some());
        let at = here.or_else(|| self.asked.iter().position(|asked| asked.shown.is_some()))?;
        self.asked.get_mut(at)?.shown.as_mut()
    }
}

/// The folder of a page, of those that stand at the top; `/` for pages there.
fn folder(url: &Url) -> &str {
    let path = url.request_target().split(['?', '#']).next().unwrap_or_default();
    let end = path.get(1..).and_then(|rest| rest.find('/')).map_or(1, |at| at + 2);
    path.get(..end).unwrap_or("/")
}

impl Soft {
    /// As runs before left it.
    pub fn new(archive: Arc<Archive>) -> Soft {
        Soft { archive: Some(archive), ..Soft::default() }
    }

    /// Looks at what is known of a host.
    fn with<T>(&self, origin: &str, look: impl FnOnce(&mut Host) -> T) -> T {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() >= SOFT_HOSTS_MAX && !hosts.contains_key(origin) {
            hosts.retain(|_, host| !host.asked.is_empty());
            if hosts.len() >= SOFT_HOSTS_MAX {
                hosts.clear();
            }
        }
        if let Some(known) = hosts.get_mut(origin) {
            return look(known);
        }
        let kept = || self.archive.as_ref()?.views().get(NOT_THERE, origin.as_bytes()).ok()?;
        let known = kept().and_then(|value| serde_json::from_slice(&value).ok()).unwrap_or_default();
        look(hosts.entry(origin.into()).or_insert(known))
    }

    /// Keeps what is known of a host for other runs. What cannot be kept is asked again.
    fn keep(&self, origin: &str) {
        let value = self.with(origin, |host| serde_json::to_vec(host));
        if let (Some(archive), Ok(value)) = (&self.archive, value) {
            let mut batch = archive.views().batch();
            batch.put(NOT_THERE, origin.as_bytes(), &value);
            let _asked_again = batch.commit();
        }
    }

    /// A page came: does it say that nothing is there? Its words are only read if its host is known to answer so.
    fn is_missing(&self, url: &Url, digest: u64, words: impl FnOnce() -> u64) -> bool {
        let origin = crate::rules::origin(url.as_str());
        let Some(Shown::Page([text, bytes, known])) = self.with(origin, |host| host.shows(folder(url)).copied()) else {
            return false;
        };
        digest == text || digest == bytes || known != 0 && (known ^ words()).count_ones() <= SOFT_BITS_MAX
    }

    /// One that looks so was always like that: here it means nothing.
    fn is_honest(&self, url: &Url) {
        let origin = crate::rules::origin(url.as_str());
        self.with(origin, |host| host.shows(folder(url)).map(|shown| *shown = Shown::Nothing));
        self.keep(origin);
    }

    /// A redirect came of a page that was there: does it lead where the host sends whoever asks for what is not there, or has sent many
    /// others?
    fn leads_there(&self, url: &Url, target: &Url) -> bool {
        let origin = crate::rules::origin(url.as_str());
        let to = xxh3_64(target.as_str().as_bytes());
        let path = |url: &Url| xxh3_64(url.request_target().split(['?', '#']).next().unwrap_or_default().as_bytes());
        let (from, own) = (path(url), path(target));
        let (leads, found) = self.with(origin, |host| {
            let known = host.shows(folder(url)).copied() == Some(Shown::Elsewhere(to));
            let before = host.led.from.len();
            // Another form of the same address leads to itself.
            let led = from != own && host.led.add(to, from);
            (known || led, led && before < host.led.from.len())
        });
        if found {
            self.keep(origin);
        }
        leads
    }

    /// A page is looked at again: says, once in a while, that its host is to be asked before, in its folder. There are not so many folders
    /// of a host that are asked.
    pub fn is_unasked(&self, url: &Url, now_ms: i64) -> bool {
        self.with(crate::rules::origin(url.as_str()), |host| {
            match host.asked.iter().find(|asked| &*asked.folder == folder(url)) {
                Some(asked) => now_ms >= asked.again_ms,
                None => host.asked.len() < SOFT_FOLDERS_MAX,
            }
        })
    }

    /// A page came. Says, once, that its host is to be asked for something that cannot be there.
    fn is_suspect(&self, url: &Url, digest: u64) -> bool {
        self.with(crate::rules::origin(url.as_str()), |host| {
            let Host { alike: (before, alike), asked, .. } = host;
            if *alike == u8::MAX || asked.iter().any(|asked| &*asked.folder == folder(url)) {
                return false;
            }
            if *before == digest {
                *alike += 1;
            } else if *alike > 0 {
                *alike -= 1;
            } else {
                *before = digest;
            }
            let suspect = *alike >= SOFT_ALIKE;
            if suspect {
                *alike = u8::MAX;
            }
            suspect
        })
    }

    /// What it showed for something that cannot be there, which is not asked before it may be again; not before it is asked, because
    /// somebody may prevent it.
    fn answered(&self, url: &Url, again_ms: i64, shown: Option<Shown>) {
        let origin = crate::rules::origin(url.as_str());
        self.with(origin, |host| {
            let room = host.asked.len() < SOFT_FOLDERS_MAX;
            match host.asked.iter_mut().find(|asked| &*asked.folder == folder(url)) {
                Some(asked) => (asked.again_ms, asked.shown) = (again_ms, shown.or(asked.shown)),
                None if room => host.asked.push(Asked { folder: folder(url).into(), again_ms, shown }),
                None => {}
            }
        });
        self.keep(origin);
    }
}

/// Looks at a page that came: it may be what its host shows for everything. Says whether the host is to be asked. `same` says whether the page
/// is as it was, if it was there before: one that always looked like that did not die, and its host has one page for everything.
pub fn look(
    judged: &mut Judgement,
    url: &Url,
    exchange: &Exchange,
    same: Option<impl FnOnce() -> bool>,
    soft: &Soft,
) -> bool {
    if same.is_some() && leads_nowhere(judged, url, exchange, soft) {
        judged.outcome = Outcome::SOFT_MISSING;
        judged.follow = false;
        return false;
    }
    if judged.outcome != Outcome(200) || judged.mime != "text/html" || judged.text_digest == 0 {
        return false;
    }
    let words = || exchange.head.as_ref().map_or(0, |head| words_of(url, head, exchange));
    if soft.is_missing(url, judged.text_digest, words) {
        if same.is_some_and(|same| same()) {
            soft.is_honest(url);
            return false;
        }
        judged.outcome = Outcome::SOFT_MISSING;
        judged.follow = false;
        return false;
    }
    soft.is_suspect(url, judged.text_digest)
}

/// Whether a page that was there is answered with a redirect to where everybody is sent.
fn leads_nowhere(judged: &Judgement, url: &Url, exchange: &Exchange, soft: &Soft) -> bool {
    target(judged, url, exchange).is_some_and(|target| leads_home(url, &target) || soft.leads_there(url, &target))
}

fn target(judged: &Judgement, url: &Url, exchange: &Exchange) -> Option<Url> {
    let location = exchange.head.as_ref().filter(|_| matches!(judged.outcome, Outcome(301..=303 | 307 | 308)))?;
    url.join(&String::from_utf8_lossy(location.header("location")?.trim_ascii())).ok()
}

/// What cannot be there, in the folder of a page: drawn just now.
pub fn nowhere(url: &Url, parts: &Parts) -> Option<Url> {
    let drawn: String = parts.id().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    url.join(&format!("{}not-there-0{drawn}", folder(url))).ok()
}

/// Asks for something that cannot be there, and keeps the answer. Returns how long it took, and whether the host wants to be left
/// alone.
pub async fn ask(url: &Url, lease: LeaseId, session: &mut Session, parts: &Parts) -> (u64, Option<u64>) {
    let time_ms = parts.now_ms();
    let exchange = session.get(&Ask::new(url)).await;
    let mut judged = judge::judge(&exchange, url, time_ms, true);
    let answer_ms = exchange.timings.total_ms.into();
    if exchange.response.is_empty() {
        parts.soft.answered(url, time_ms.saturating_add(SOFT_AGAIN_MS), None);
        return (answer_ms, judged.park_ms);
    }
    let shown = match (judged.outcome, &exchange.head, target(&judged, url, &exchange)) {
        (Outcome(200), Some(head), _) => {
            Shown::Page([judged.text_digest, digest_of_bytes(head, &exchange), words_of(url, head, &exchange)])
        }
        (_, _, Some(target)) => Shown::Elsewhere(xxh3_64(target.as_str().as_bytes())),
        _ => Shown::Nothing,
    };
    parts.soft.answered(url, time_ms.saturating_add(SOFT_ASKED_MS), Some(shown));
    judged.outcome = Outcome::PROBE;
    judged.links.clear();
    let mut visited = Visited {
        lease,
        entry: None,
        from_queue: false,
        url: url.as_str().to_string(),
        hops: Hops::SEED,
        answer_ms,
        park_ms: judged.park_ms,
        bytes: exchange.response.len(),
        mime: std::mem::take(&mut judged.mime),
        ..Visited::bare(0, Outcome::PROBE, time_ms, 0)
    };
    let room = parts.room(visited.bytes).await;
    match keep::records(&mut visited, url, &exchange, &judged, None, parts).await {
        Ok(append) => parts.append(append, visited, room),
        Err(error) => parts.lost(visited, error),
    }
    (answer_ms, judged.park_ms)
}

fn digest_of_bytes(head: &Head, exchange: &Exchange) -> u64 {
    judge::decoded(head, exchange).map_or(0, |body| xxh3_64(&body))
}

fn words_of(url: &Url, head: &Head, exchange: &Exchange) -> u64 {
    let Ok(body) = judge::decoded(head, exchange) else { return 0 };
    likeness(&skep_page::text(&Input { url, head: Some(head), body: &body }).text, url)
}

/// What the words of a text come to, where it does not name what was asked for: texts that have most words in common differ in few bits
/// (Charikar's simhash). 0 for a text without words.
fn likeness(text: &str, url: &Url) -> u64 {
    let target = url.request_target().trim_matches('/');
    let last = target.rsplit('/').next().unwrap_or_default();
    let mut text = text.to_owned();
    for named in [target, last].into_iter().filter(|named| named.len() > 1) {
        text = text.replace(named, "");
    }
    let mut bits = [0_i32; 64];
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let digest = xxh3_64(word.to_lowercase().as_bytes());
        for (bit, sum) in bits.iter_mut().enumerate() {
            *sum += if digest >> bit & 1 == 1 { 1 } else { -1 };
        }
    }
    bits.iter().enumerate().fold(0, |all, (bit, sum)| all | u64::from(*sum > 0) << bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(url: &str) -> Url {
        Url::parse(url).unwrap()
    }

    #[test]
    fn a_host_is_asked_once_and_only_if_its_pages_are_alike() {
        let soft = Soft::default();
        assert!((1..100).all(|digest| !soft.is_suspect(&at("http://a.test/"), digest)));
        let asked = (0..100).filter(|n| soft.is_suspect(&at(&format!("http://b.test/{n}/{n}")), 7)).count();
        assert_eq!(asked, 1, "in whatever folders they stand");
        let c = at("http://c.test/");
        let mixed = (0..100).filter(|n| soft.is_suspect(&c, if n % 3 == 0 { n + 100 } else { 7 })).count();
        assert_eq!(mixed, 1, "other pages between them do not hide it");
    }

    #[test]
    fn only_what_looks_like_nothing_is_missing() {
        let soft = Soft::default();
        let (a, b) = (at("http://a.test/x"), at("http://b.test/x"));
        let never = || panic!("nobody reads pages of an honest host");
        assert!(!soft.is_missing(&a, 7, never));
        soft.answered(&a, 0, Some(Shown::Page([7, 8, 0xff])));
        assert!(soft.is_missing(&a, 9, || 0xf8) && !soft.is_missing(&a, 9, || 0xff00));
        assert!(soft.is_missing(&a, 7, || 0) && soft.is_missing(&a, 8, || 0));
        assert!(!soft.is_missing(&b, 7, never));
        soft.is_honest(&a);
        assert!(!soft.is_missing(&a, 7, never));
    }

    #[test]
    fn folders_of_a_host_answer_for_themselves() {
        let soft = Soft::default();
        let (blog, shop, wiki) =
            (at("http://a.test/blog/1"), at("http://a.test/shop/1?a"), at("http://a.test/wiki/b/c"));
        assert_eq!((folder(&blog), folder(&shop), folder(&at("http://a.test/x?y=/a/"))), ("/blog/", "/shop/", "/"));
        soft.answered(&blog, 50, Some(Shown::Page([7, 0, 0])));
        soft.answered(&shop, 50, Some(Shown::Nothing));
        assert!(soft.is_missing(&blog, 7, || 0) && !soft.is_missing(&shop, 7, || 0));
        assert!(soft.is_missing(&wiki, 7, || 0), "where nobody asked, what was asked elsewhere counts");
        assert!(!soft.is_unasked(&shop, 49) && soft.is_unasked(&shop, 50) && soft.is_unasked(&wiki, 0));
        for n in 0..20 {
            soft.answered(&at(&format!("http://a.test/{n}/")), 50, Some(Shown::Nothing));
        }
        assert!(!soft.is_unasked(&wiki, 0), "no host is asked without end");
        soft.answered(&blog, 90, None);
        assert!(soft.is_missing(&blog, 7, || 0) && !soft.is_unasked(&blog, 89), "no answer says nothing");
    }

    #[test]
    fn what_is_known_outlasts_a_run() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Arc::new(Archive::open(folder.path(), skep_archive::OpenOptions::create()).unwrap());
        let (page, other) = (at("http://a.test/blog/1"), at("http://b.test/"));
        let before = Soft::new(archive.clone());
        before.answered(&page, 50, Some(Shown::Page([u64::MAX, 8, 9])));
        let led = |soft: &Soft, n: u32| soft.leads_there(&at(&format!("http://b.test/{n}")), &at("http://b.test/new/"));
        assert_eq!((0..9).filter(|n| led(&before, *n)).count(), 9 + 1 - SOFT_LED);
        let after = Soft::new(archive);
        assert!(
            after.is_missing(&page, u64::MAX, || 0) && !after.is_unasked(&page, 49) && after.is_unasked(&other, 49)
        );
        assert!(led(&after, 77), "where everybody is led is known, too");
    }

    #[test]
    fn a_place_where_many_pages_lead_that_were_there_is_no_page_of_theirs() {
        let soft = Soft::default();
        let led = |from: &str, to: &str| {
            soft.leads_there(&at(&format!("http://a.test{from}")), &at(&format!("http://a.test{to}")))
        };
        assert!((0..20).all(|n| !led(&format!("/a?page={n}"), "/a")), "an address of many forms");
        assert!((0..20).all(|n| !led(&format!("/{n}"), &format!("/new/{n}"))), "each has a place of its own");
        assert!((0..20).all(|_| !led("/news/1", "/login")), "one page is one page");
        let found: Vec<bool> = (2..12).map(|n| led(&format!("/news/{n}"), "/login")).collect();
        assert!(!found[0] && found[SOFT_LED], "{found:?}");
        assert!(!led("/news/3", "/elsewhere") && led("/news/99", "/login"), "and it stays so");
    }

    #[test]
    fn pages_that_differ_in_what_was_asked_for_are_alike() {
        let of = |path: &str, text: &str| likeness(text, &Url::parse(&format!("http://a.test/{path}")).unwrap());
        let missing = |path: &str| {
            of(
                path,
                &format!(
                    "Sorry, there is no page {path} on this server. Perhaps it was moved? Try the search instead."
                ),
            )
        };
        assert_eq!(missing("not-there-0ab"), missing("news/2026"));
        let page = of("news/2026", "The town council has decided to build another bridge over the river next year.");
        assert!((page ^ missing("x")).count_ones() > SOFT_BITS_MAX);
        assert_eq!(of("a", ""), 0);
    }

    #[test]
    fn whoever_is_sent_where_everybody_is_sent_found_nothing() {
        let soft = Soft::default();
        let look = |path: &str, status: u16, location: &str, known: bool| {
            let url = Url::parse(&format!("http://a.test{path}")).unwrap();
            let answer = format!("HTTP/1.1 {status} X\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
            let mut head = Head::new();
            head.parse_response(answer.as_bytes(), true);
            let exchange = Exchange {
                head: Some(head),
                head_bytes: answer.len(),
                response: skep_fetch::Spool::Memory(answer.into_bytes()),
                ..Exchange::default()
            };
            let mut judged = judge::judge(&exchange, &url, 0, false);
            super::look(&mut judged, &url, &exchange, known.then_some(|| false), &soft);
            judged.outcome
        };
        assert_eq!(look("/news/1", 302, "/", true), Outcome::SOFT_MISSING);
        assert_eq!(look("/news/1", 302, "/", false), Outcome(302), "it never was a page");
        assert_eq!(look("/index.html", 301, "/", true), Outcome(301));
        assert_eq!(look("/news/1", 301, "/search", true), Outcome(301));
        let shown = Shown::Elsewhere(xxh3_64(b"http://a.test/search"));
        soft.answered(&at("http://a.test/news/1"), 0, Some(shown));
        assert_eq!(look("/news/1", 301, "/search", true), Outcome::SOFT_MISSING);
        assert_eq!(look("/news/1", 301, "/news/one", true), Outcome(301));
    }

    #[test]
    fn hosts_are_forgotten_before_there_are_too_many() {
        let soft = Soft::default();
        for number in 0..SOFT_HOSTS_MAX + 10 {
            soft.is_suspect(&at(&format!("http://{number}.test")), 1);
        }
        assert!(soft.hosts.lock().unwrap().len() <= SOFT_HOSTS_MAX);
    }
}
