//! From an exchange to its records.

use skep_archive::{Append, Digest};
use skep_fetch::{Brought, Exchange, Spool, request_for_record};
use skep_url::Url;
use skep_warc::write::Truncated;

use crate::answer::{Answer, Block};
use crate::error::{Error, Result};
use crate::finding::{Finding, Read};
use crate::judge::{Judgement, decoded};
use crate::links::{Before, Link, Links, Turnover};
use crate::metadata::{Metadata, Timings};
use crate::outcome::Outcome;
use crate::records::{Original, Same, Visit};
use crate::remembered::{Payload, Previous};
use crate::shared_body::{self, Elsewhere, Found};
use crate::validators;
use crate::visit::Visited;
use crate::worker::Parts;

/// What is noted of every exchange that contributors brought: those who saw the same compared the headers that decide what a page means, and no
/// others.
const HEADERS_OF_ONE: &str = "headers-of-one";

/// The records of a visit; fills in the payload's digest, and the claim to it where this visit is the one that keeps it.
pub async fn records(
    visited: &mut Visited,
    url: &Url,
    exchange: &Exchange,
    judged: &Judgement,
    previous: Option<&Previous>,
    parts: &Parts,
) -> Result<Append> {
    let unreadable = |error| Error::io("cannot read what was fetched from", std::path::Path::new(url.as_str()), error);
    // A page that asks not to be kept leaves its head, which says so, and its links; not its body.
    let unwanted = visited.outcome == Outcome::NOARCHIVE;
    let head_only = if unwanted {
        exchange.response.bytes(0, exchange.head_bytes as u64).map_err(unreadable)?
    } else {
        Default::default()
    };
    let block = match &exchange.response {
        _ if unwanted => Block::Memory(&head_only),
        Spool::Memory(bytes) => Block::Memory(bytes),
        Spool::File { file, length } => Block::File(file, *length),
    };
    let answer = Answer::read(block, exchange.head.as_ref(), exchange.head_bytes).map_err(unreadable)?;
    let (request, key) = (request_for_record(exchange), parts.filed(visited.lease, url.key()));
    let payload = answer.payload();
    if let Digest::Sha1(bytes) = payload {
        visited.digest = Some(bytes);
    }
    // A page that one stranger alone has seen may be one of his own network: nobody is shown it before somebody else has seen it. In a
    // network, where others have copies of what is kept, the archive does not take it at all, and it is fetched again.
    let alone = match &exchange.brought {
        Some(Brought { confirmed: false, seen_elsewhere: false, by_holder: false, .. })
            if matches!(visited.outcome, Outcome(200..=299)) =>
        {
            previous.is_none() && parts.remembered.previous(url.as_str(), &key)?.is_none()
        }
        _ => false,
    };
    let private = request.private || alone;
    let dedupes = !private && !unwanted && exchange.truncated.is_none() && exchange.body_bytes() > 0;
    (visited.claim, visited.referring) = (None, None);
    let mut elsewhere = None;
    let known = match (visited.outcome, previous) {
        (Outcome(304), Some(previous)) => {
            visited.referring = parts.remembered.refer(previous);
            // What has no digest stands for nothing that could go.
            let is_there = visited.referring.is_some() || previous.digest.is_none();
            is_there.then(|| (Same::NotModified, previous.url.clone(), previous.time_ms, previous.digest))
        }
        (Outcome(304), None) => None,
        _ if !dedupes => None,
        _ => match parts.remembered.original(&payload, &key).await? {
            Payload::Known(original, referring) => {
                visited.referring = Some(referring);
                Some((Same::Payload, original.url, original.time_ms, Some(payload)))
            }
            Payload::New(claim) => match shared_body::look(&answer, url, parts).await {
                Found::Elsewhere(found) => {
                    let Elsewhere { pin, record, referring } = *found;
                    visited.referring = Some(referring);
                    let original = (Same::Payload, pin.original.clone(), pin.original_ms, Some(payload));
                    elsewhere = Some((pin, record));
                    Some(original)
                }
                Found::Large(sha256, length) => {
                    (visited.claim, visited.large) = (claim, Some((sha256, length)));
                    None
                }
                Found::Small => {
                    visited.claim = claim;
                    None
                }
            },
        },
    };
    visited.found = match (visited.outcome, previous) {
        (_, None) => Finding::First,
        (Outcome(304), _) => Finding::Same,
        (Outcome(200..=299), Some(previous)) if previous.digest == Some(payload) => Finding::Same,
        (Outcome(200..=299), Some(previous)) => beside(previous, url, exchange, parts),
        _ => Finding::Nothing,
    };
    let links: Vec<Link<'_>> = visited
        .links
        .iter()
        .map(|link| Link { url: link.url, code: link.kind.code(), nofollow: link.nofollow })
        .collect();
    let earlier = previous
        .and_then(|previous| parts.remembered.links(previous).map(|(set, chain)| (set, chain, previous.time_ms)));
    let before = earlier.as_ref().map(|(set, chain, time_ms)| Before { set, time_ms: *time_ms, chain: *chain });
    let said = match &judged.page {
        Some(_) => Links::choose(&links, before.as_ref()),
        // Nobody looked for links: that is not the same as a page without any.
        None if links.is_empty() => Links::Unknown,
        None => Links::Full(&links),
    };
    visited.tells_all = matches!(said, Links::Full(_));
    let (came, gone) = said.news(&links, before.as_ref());
    (visited.came, visited.gone) = (came, gone);
    visited.turnover = Turnover::said(&said);
    let directives: Vec<&str> = judged.page.as_ref().map(|page| directive_names(&page.directives)).unwrap_or_default();
    let notes: Vec<&str> = exchange
        .notes
        .iter()
        .map(|note| note.id())
        .chain(exchange.fault.as_ref().map(skep_fetch::Fault::id))
        .chain(exchange.truncated.map(cut))
        .chain(judged.unread)
        .chain(validators::lie(previous, exchange.head.as_ref(), visited.found))
        .chain(judged.challenge)
        .chain(exchange.brought.as_ref().filter(|brought| !brought.by_holder).map(|_| HEADERS_OF_ONE))
        .chain(judged.page.as_ref().and_then(|page| page.cut).map(|cut| cut.id()))
        .collect();
    let page = judged.page.as_ref();
    let verdict = visited.outcome.to_string();
    let settings = parts.settings();
    let metadata = Metadata {
        crawl: &settings.name,
        depth: visited.hops.depth,
        redirects: visited.hops.redirects,
        via: visited.via.as_deref(),
        kind: None,
        verdict: &verdict,
        found: Some(visited.found.id()).filter(|_| previous.is_some()),
        due: visited.due,
        timings: Timings {
            resolve_ms: Some(exchange.timings.resolve_ms).filter(|_| !exchange.reused),
            connect_ms: Some(exchange.timings.connect_ms).filter(|_| !exchange.reused),
            tls_ms: Some(exchange.timings.tls_ms).filter(|_| !exchange.reused && exchange.tls.is_some()),
            first_byte_ms: Some(exchange.timings.first_byte_ms),
            total_ms: Some(exchange.timings.total_ms),
        },
        hands: exchange.brought.as_ref().map(|brought| brought.by.as_str()),
        sources: (exchange.brought.as_ref().filter(|brought| !brought.by_holder))
            .map(|brought| if brought.confirmed { "two" } else { "one" }),
        vantages: &exchange.vantages,
        tls_fault: exchange.tls.as_ref().and_then(|tls| tls.fault.as_deref()),
        charset: page.map(|page| page.charset),
        title: page.and_then(|page| page.title.as_deref()),
        language: page.and_then(|page| page.language.as_deref()),
        canonical: page.and_then(|page| page.canonical.as_deref()),
        directives: &directives,
        signals: page.map_or(&[], |page| &page.signals),
        notes: &notes,
        retry_after_ms: visited.park_ms.filter(|ms| *ms > 0),
        park_until_ms: visited.park_ms.filter(|ms| *ms > 0).map(|ms| visited.time_ms.saturating_add(ms as i64)),
        links: said,
    };
    let protocols: Vec<&str> =
        std::iter::once("http/1.1").chain(exchange.tls.as_ref().map(|tls| tls.protocol)).collect();
    let visit = Visit {
        url: url.as_str(),
        key: &key,
        time_ms: visited.time_ms,
        request: Some(&request.bytes).filter(|bytes| !bytes.is_empty()).map(|bytes| &bytes[..]),
        private,
        answer: &answer,
        address: exchange.address.map(|address| address.ip()),
        protocols: &protocols,
        cipher: exchange.tls.as_ref().map(|tls| tls.cipher_suite.as_str()),
        truncated: if unwanted { Some(Truncated::Unspecified) } else { exchange.truncated },
        original: known.as_ref().map(|(why, url, time_ms, payload)| Original {
            why: *why,
            url,
            time_ms: *time_ms,
            record: elsewhere.as_ref().and_then(|(_, record)| record.as_ref()),
            payload: *payload,
        }),
        metadata: Some(&metadata),
        dns: None,
    };
    let mut encoders = parts.encoders.borrow_mut();
    let mut append = encoders
        .visit(&visit, &mut || parts.id())
        .map_err(|error| Error::Settings { what: format!("the record of {url} cannot be written: {error}") })?;
    if let Some((pin, _)) = &elsewhere {
        shared_body::refer(&mut append, pin)?;
    }
    Ok(append)
}

/// Whether an answer has the payload of the capture before.
pub fn is_same(exchange: &Exchange, previous: &Previous) -> bool {
    let block = match &exchange.response {
        Spool::Memory(bytes) => Block::Memory(bytes),
        Spool::File { file, length } => Block::File(file, *length),
    };
    let answer = Answer::read(block, exchange.head.as_ref(), exchange.head_bytes);
    answer.is_ok_and(|answer| previous.digest == Some(answer.payload()))
}

/// What an answer with other bytes is beside the capture before. Where nobody judges, other bytes are another page.
fn beside(previous: &Previous, url: &Url, exchange: &Exchange, parts: &Parts) -> Finding {
    let (Some(judges), Some(head)) = (&parts.judges, &exchange.head) else { return Finding::Changed };
    match decoded(head, exchange) {
        Ok(body) => judges.judge(&Read { url, before: previous.position, head, body: &body }),
        Err(_) => Finding::Changed,
    }
}

/// Why an answer is not whole.
fn cut(truncated: Truncated) -> &'static str {
    match truncated {
        Truncated::Length => "cut-length",
        Truncated::Time => "cut-time",
        Truncated::Disconnect => "cut-disconnect",
        Truncated::Unspecified => "cut",
    }
}

fn directive_names(directives: &skep_page::Directives) -> Vec<&'static str> {
    let all = [
        (directives.noarchive, "noarchive"),
        (directives.nofollow, "nofollow"),
        (directives.noindex, "noindex"),
        (directives.nosnippet, "nosnippet"),
        (directives.noimageindex, "noimageindex"),
        (directives.notranslate, "notranslate"),
        (directives.noai, "noai"),
        (directives.noimageai, "noimageai"),
    ];
    all.iter().filter(|(said, _)| *said).map(|(_, name)| *name).collect()
}
