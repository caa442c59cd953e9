//! Hosts that answer 200 for what is not there.
//!
//! ```text
//!  page, page, page … with the same text ──▶ the host is asked once for something that cannot be there
//!      another answer, or an error:  the host is honest, and is not asked again
//!      the same text with a 200:     that text means "not there", here and from now on
//!      a redirect:                   so does a redirect to the same place, of what was a page before
//! ```
//! In a crawl nobody is asked who gives no cause: a host whose pages differ never sees the question. A watch asks every host before it looks
//! at one of its pages again, and once a month from then on: what a page that died shows instead is then known beforehand. Pages for what
//! is not there often name what was asked for; those that differ in little else are such pages, too. Whoever sends visitors of a page that was
//! there to the start page of its host says the same without being asked.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

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
use crate::limits::{SOFT_AGAIN_MS, SOFT_ALIKE, SOFT_ASKED_MS, SOFT_BITS_MAX, SOFT_HOSTS_MAX};
use crate::outcome::Outcome;
use crate::visit::Visited;
use crate::worker::Parts;

/// What is known of hosts in this respect.
#[derive(Default)]
pub struct Soft {
    hosts: Mutex<HashMap<Box<str>, Host>>,
    /// When hosts may be asked again, in milliseconds since 1970.
    asked: Mutex<HashMap<Box<str>, i64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host {
    /// So many pages in turn had this text.
    Watched { digest: u64, alike: u8 },
    /// It was asked, or is being asked, and is taken to be honest.
    Honest,
    /// The text of its page for what is not there, and the bytes of that page.
    Soft { text: u64, bytes: u64, words: u64 },
    /// Where it sends whoever asks for what is not there; what that comes to.
    Leads { to: u64 },
}

/// What a host did for something that cannot be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// It said honestly that nothing is.
    Nothing,
    /// A page: its text, bytes and words.
    Page([u64; 3]),
    /// It sends one elsewhere; what that comes to.
    Elsewhere(u64),
}

impl Soft {
    /// A page came: does it say that nothing is there?
    pub fn is_missing(&self, origin: &str, digest: u64) -> bool {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(hosts.get(origin), Some(Host::Soft { text, bytes, .. }) if *text == digest || *bytes == digest)
    }

    /// The same by the words of the page, which are only read if its host is known to answer so.
    pub fn is_much_like_missing(&self, origin: &str, words: impl FnOnce() -> u64) -> bool {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Host::Soft { words: known, .. }) = hosts.get(origin).copied() else { return false };
        drop(hosts);
        known != 0 && (known ^ words()).count_ones() <= SOFT_BITS_MAX
    }

    /// A redirect came: does it lead where the host sends whoever asks for what is not there?
    fn leads_there(&self, origin: &str, target: u64) -> bool {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(hosts.get(origin), Some(Host::Leads { to }) if *to == target)
    }

    /// A page of the host is looked at again: says, once in a while, that the host is to be asked before.
    pub fn is_unasked(&self, origin: &str, now_ms: i64) -> bool {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.get(origin).is_none_or(|again_ms| now_ms >= *again_ms)
    }

    /// The host was asked, and is to be asked again after so long; not before it is asked, because somebody may prevent it.
    fn asked(&self, origin: &str, now_ms: i64, again_ms: i64) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.len() >= SOFT_HOSTS_MAX {
            asked.clear();
        }
        asked.insert(origin.into(), now_ms.saturating_add(again_ms));
    }

    /// A page came. Says, once, that its host is to be asked for something that cannot be there.
    pub fn is_suspect(&self, origin: &str, digest: u64) -> bool {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() >= SOFT_HOSTS_MAX && !hosts.contains_key(origin) {
            hosts.retain(|_, host| !matches!(host, Host::Watched { .. }));
            if hosts.len() >= SOFT_HOSTS_MAX {
                hosts.clear();
            }
        }
        let host = hosts.entry(origin.into()).or_insert(Host::Watched { digest, alike: 0 });
        let Host::Watched { digest: before, alike } = host else { return false };
        if *before == digest {
            *alike += 1;
        } else if *alike > 0 {
            *alike -= 1;
        } else {
            *before = digest;
        }
        let suspect = *alike >= SOFT_ALIKE;
        if suspect {
            *host = Host::Honest;
        }
        suspect
    }

    /// What it showed for something that cannot be there.
    fn answered(&self, origin: &str, shown: Shown) {
        let host = match shown {
            Shown::Nothing => Host::Honest,
            Shown::Page([text, bytes, words]) => Host::Soft { text, bytes, words },
            Shown::Elsewhere(to) => Host::Leads { to },
        };
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).insert(origin.into(), host);
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
    let origin = crate::rules::origin(url.as_str());
    let words = || exchange.head.as_ref().map_or(0, |head| words_of(url, head, exchange));
    if soft.is_missing(origin, judged.text_digest) || soft.is_much_like_missing(origin, words) {
        if same.is_some_and(|same| same()) {
            soft.answered(origin, Shown::Nothing);
            return false;
        }
        judged.outcome = Outcome::SOFT_MISSING;
        judged.follow = false;
        return false;
    }
    soft.is_suspect(origin, judged.text_digest)
}

/// Whether a page that was there is answered with a redirect to where everybody is sent.
fn leads_nowhere(judged: &Judgement, url: &Url, exchange: &Exchange, soft: &Soft) -> bool {
    target(judged, url, exchange).is_some_and(|target| {
        leads_home(url, &target)
            || soft.leads_there(crate::rules::origin(url.as_str()), xxh3_64(target.as_str().as_bytes()))
    })
}

fn target(judged: &Judgement, url: &Url, exchange: &Exchange) -> Option<Url> {
    let location = exchange.head.as_ref().filter(|_| matches!(judged.outcome, Outcome(301..=303 | 307 | 308)))?;
    url.join(&String::from_utf8_lossy(location.header("location")?.trim_ascii())).ok()
}

/// What cannot be there: drawn just now.
pub fn nowhere(url: &Url, parts: &Parts) -> Option<Url> {
    let drawn: String = parts.id().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    url.join(&format!("/not-there-0{drawn}")).ok()
}

/// Asks for something that cannot be there, and keeps the answer. Returns how long it took, and whether the host wants to be left
/// alone.
pub async fn ask(url: &Url, lease: LeaseId, session: &mut Session, parts: &Parts) -> (u64, Option<u64>) {
    let time_ms = parts.now_ms();
    let exchange = session.get(&Ask::new(url)).await;
    let mut judged = judge::judge(&exchange, url, time_ms, true);
    let answer_ms = exchange.timings.total_ms.into();
    let origin = crate::rules::origin(url.as_str());
    if exchange.response.is_empty() {
        parts.soft.asked(origin, time_ms, SOFT_AGAIN_MS);
        return (answer_ms, judged.park_ms);
    }
    let shown = match (judged.outcome, &exchange.head, target(&judged, url, &exchange)) {
        (Outcome(200), Some(head), _) => {
            Shown::Page([judged.text_digest, digest_of_bytes(head, &exchange), words_of(url, head, &exchange)])
        }
        (_, _, Some(target)) => Shown::Elsewhere(xxh3_64(target.as_str().as_bytes())),
        _ => Shown::Nothing,
    };
    parts.soft.asked(origin, time_ms, SOFT_ASKED_MS);
    parts.soft.answered(origin, shown);
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

    #[test]
    fn a_host_is_asked_once_and_only_if_its_pages_are_alike() {
        let soft = Soft::default();
        assert!((1..100).all(|digest| !soft.is_suspect("http://a.test", digest)));
        let asked = (0..100).filter(|_| soft.is_suspect("http://b.test", 7)).count();
        assert_eq!(asked, 1);
        let mixed = (0..100).filter(|n| soft.is_suspect("http://c.test", if n % 3 == 0 { n + 100 } else { 7 })).count();
        assert_eq!(mixed, 1, "other pages between them do not hide it");
    }

    #[test]
    fn only_what_looks_like_nothing_is_missing() {
        let soft = Soft::default();
        assert!(!soft.is_missing("http://a.test", 7));
        soft.answered("http://a.test", Shown::Page([7, 8, 0xff]));
        assert!(soft.is_much_like_missing("http://a.test", || 0xf8));
        assert!(!soft.is_much_like_missing("http://a.test", || 0xff00));
        assert!(!soft.is_much_like_missing("http://b.test", || panic!("nobody reads pages of an honest host")));
        assert!(soft.is_missing("http://a.test", 7) && soft.is_missing("http://a.test", 8));
        assert!(!soft.is_missing("http://a.test", 9) && !soft.is_missing("http://b.test", 7));
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
    fn a_host_is_asked_once_a_month_by_a_watch() {
        let soft = Soft::default();
        assert!(soft.is_unasked("http://a.test", 0) && soft.is_unasked("http://a.test", 1), "nobody asked it yet");
        soft.asked("http://a.test", 1, SOFT_ASKED_MS);
        assert!(!soft.is_unasked("http://a.test", SOFT_ASKED_MS) && soft.is_unasked("http://b.test", 5));
        assert!(soft.is_unasked("http://a.test", SOFT_ASKED_MS + 1));
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
        soft.answered("http://a.test", Shown::Elsewhere(xxh3_64(b"http://a.test/search")));
        assert_eq!(look("/news/1", 301, "/search", true), Outcome::SOFT_MISSING);
        assert_eq!(look("/news/1", 301, "/news/one", true), Outcome(301));
    }

    #[test]
    fn hosts_are_forgotten_before_there_are_too_many() {
        let soft = Soft::default();
        for number in 0..SOFT_HOSTS_MAX + 10 {
            soft.is_suspect(&format!("http://{number}.test"), 1);
        }
        assert!(soft.hosts.lock().unwrap().len() <= SOFT_HOSTS_MAX);
    }
}
