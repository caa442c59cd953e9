//! Hosts that answer 200 for what is not there.
//!
//! ```text
//!  page, page, page … with the same text ──▶ the host is asked once for something that cannot be there
//!      another answer, or an error:  the host is honest, and is not asked again
//!      the same text with a 200:     that text means "not there", here and from now on
//! ```
//! Nobody is asked who gives no cause: a host whose pages differ never sees the question.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use skep_fetch::{Ask, Session};
use skep_schedule::LeaseId;
use skep_url::Url;
use skep_warc::http::Head;

use crate::hops::Hops;
use crate::judge::{self, Judgement};
use crate::keep;
use crate::limits::{SOFT_ALIKE, SOFT_HOSTS_MAX};
use crate::outcome::Outcome;
use crate::visit::Visited;
use crate::worker::Parts;

/// What is known of hosts in this respect.
#[derive(Default)]
pub struct Soft {
    hosts: Mutex<HashMap<Box<str>, Host>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host {
    /// So many pages in turn had this text.
    Watched { digest: u64, alike: u8 },
    /// It was asked, or is being asked, and is taken to be honest.
    Honest,
    /// The text of its page for what is not there, and the bytes of that page.
    Soft { text: u64, bytes: u64 },
}

impl Soft {
    /// A page came: does it say that nothing is there?
    pub fn is_missing(&self, origin: &str, digest: u64) -> bool {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(hosts.get(origin), Some(Host::Soft { text, bytes }) if *text == digest || *bytes == digest)
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

    fn is_soft(&self, origin: &str, text: u64, bytes: u64) {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.insert(origin.into(), Host::Soft { text, bytes });
    }
}

/// Looks at a page that came: it may be what its host shows for everything. Says whether the host is to be asked.
pub fn look(judged: &mut Judgement, url: &Url, soft: &Soft) -> bool {
    if judged.outcome != Outcome(200) || judged.mime != "text/html" || judged.text_digest == 0 {
        return false;
    }
    let origin = crate::rules::origin(url.as_str());
    if soft.is_missing(origin, judged.text_digest) {
        judged.outcome = Outcome::SOFT_MISSING;
        judged.follow = false;
        return false;
    }
    soft.is_suspect(origin, judged.text_digest)
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
    if let (Outcome(200), Some(head)) = (judged.outcome, &exchange.head) {
        let bytes = digest_of_bytes(head, &exchange);
        parts.soft.is_soft(crate::rules::origin(url.as_str()), judged.text_digest, bytes);
    }
    if exchange.response.is_empty() {
        return (answer_ms, judged.park_ms);
    }
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
    match keep::records(&mut visited, url, &exchange, &judged, None, parts) {
        Ok(append) => parts.append(append, visited, room),
        Err(error) => parts.lost(visited, error),
    }
    (answer_ms, judged.park_ms)
}

fn digest_of_bytes(head: &Head, exchange: &skep_fetch::Exchange) -> u64 {
    judge::decoded(head, exchange).map_or(0, |body| xxhash_rust::xxh3::xxh3_64(&body))
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
        soft.is_soft("http://a.test", 7, 8);
        assert!(soft.is_missing("http://a.test", 7) && soft.is_missing("http://a.test", 8));
        assert!(!soft.is_missing("http://a.test", 9) && !soft.is_missing("http://b.test", 7));
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
