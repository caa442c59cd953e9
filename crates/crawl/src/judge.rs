//! What an exchange means: pure, from the bytes that came.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::Read;

use skep_fetch::{Exchange, Fault};
use skep_page::{Input, Kind, LinkKind, Outlinks, Page};
use skep_schedule::revisit::hint::Source;
use skep_schedule::{pace, trap};
use skep_url::Url;
use skep_warc::coding::{self, Bounds};
use skep_warc::deflate::Inflater;
use skep_warc::http::Head;
use skep_warc::write::Truncated;

use crate::dates;
use crate::limits::{DECODE_RATIO_MAX, HANDS_PARK_MS_MAX, PARSED_BYTES_MAX, RATIO_FROM_BYTES};
use crate::outcome::Outcome;
use crate::remembered::Previous;

/// A 304 becomes a record at most once in so long.
pub const REVISIT_MS: i64 = 30 * 86_400_000;

/// What a sitemap or a feed says about when pages changed.
#[derive(Debug, Clone, Default)]
pub struct Hints {
    /// Which of both it is.
    pub by: Source,
    /// Addresses with dates, in milliseconds since 1970.
    pub dates: Vec<(String, dates::Told)>,
}

/// What an exchange means.
#[derive(Debug)]
pub struct Judgement {
    /// In one number.
    pub outcome: Outcome,
    /// What the page says; nothing for what is not read.
    pub page: Option<Page>,
    /// Links of all kinds, redirects first.
    pub links: Outlinks,
    /// Its links may be followed.
    pub follow: bool,
    /// The host asks to be left alone for so long; 0 if it does not say how long.
    pub park_ms: Option<u64>,
    /// The media type; empty if none is named.
    pub mime: String,
    /// What kind of challenge page it is.
    pub challenge: Option<&'static str>,
    /// What its text comes to; see [`crate::visit::Visited::text_digest`].
    pub text_digest: u64,
    /// Dates at which other pages changed, where this is a sitemap or a feed.
    pub hints: Hints,
    /// Why the body was not read.
    pub unread: Option<&'static str>,
}

impl Judgement {
    fn of(outcome: Outcome) -> Judgement {
        Judgement {
            outcome,
            page: None,
            links: Outlinks::default(),
            follow: true,
            park_ms: None,
            mime: String::new(),
            challenge: None,
            text_digest: 0,
            hints: Hints::default(),
            unread: None,
        }
    }

    /// Whether the visit leaves a check line and no capture: no answer, or "not modified" shortly after the last record, if that one
    /// brought the page.
    pub fn brought_nothing(&self, previous: Option<&Previous>, always: bool, now_ms: i64) -> bool {
        match self.outcome {
            Outcome(304) => {
                !always && previous.is_some_and(|previous| !previous.is_old(now_ms) && !previous.since.away)
            }
            outcome => {
                outcome.as_status().is_none()
                    && outcome != Outcome::MALFORMED
                    && outcome != Outcome::CHALLENGE
                    && outcome != Outcome::NOARCHIVE
                    && outcome != Outcome::SOFT_MISSING
                    && outcome != Outcome::CUT_OFF
            }
        }
    }
}

/// Judges an exchange. `ours` says that the operator owns the host and wants `noarchive` ignored.
pub fn judge(exchange: &Exchange, url: &Url, now_ms: i64, ours: bool) -> Judgement {
    let Some(head) = &exchange.head else {
        return match &exchange.fault {
            Some(fault) if exchange.response.is_empty() => Judgement::of(fault.into()),
            _ => Judgement::of(Outcome::MALFORMED),
        };
    };
    let status = head.status().unwrap_or(0);
    if matches!(exchange.fault, Some(Fault::LocalResources(_))) {
        return Judgement::of(Outcome::LOCAL_RESOURCES);
    }
    let mut judged = Judgement::of(Outcome::status(status));
    judged.mime = head.mime().unwrap_or_default();
    if matches!(status, 429 | 503) {
        let wait = head.header("retry-after").and_then(|value| pace::retry_after(value, now_ms));
        // A wait that nobody else has heard of ends soon enough to be asked about again.
        let of_one = exchange.brought.as_ref().is_some_and(skep_fetch::Brought::is_word_of_one);
        let most_ms = if of_one { HANDS_PARK_MS_MAX } else { u64::MAX };
        judged.park_ms = Some(wait.unwrap_or(0).min(most_ms));
    }
    if status == 304 {
        return judged;
    }
    let body = if is_read(&judged.mime) { decoded(head, exchange) } else { Err("type") };
    let body = body.unwrap_or_else(|why| {
        judged.unread = Some(why);
        Cow::Borrowed(&[])
    });
    judged.challenge = skep_page::challenge(status, head, &body);
    if judged.challenge.is_some() {
        judged.outcome = Outcome::CHALLENGE;
        judged.follow = false;
        judged.park_ms.get_or_insert(0);
        return judged;
    }
    judged.text_digest = text_digest(url, head, &body);
    let (page, links) = skep_page::read_apart(&Input { url, head: Some(head), body: &body });
    judged.links = links;
    judged.follow = ours || !page.directives.nofollow;
    if page.directives.noarchive && !ours && status == 200 {
        judged.outcome = Outcome::NOARCHIVE;
    }
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        judged.links.remove_kind(LinkKind::Redirect);
    }
    if matches!(page.kind, Kind::Sitemap | Kind::Feed) && status == 200 {
        judged.hints = hints(page.kind, url, &body);
    }
    if judged.outcome == Outcome(status) && (200..300).contains(&status) && broke_off(exchange) {
        judged.outcome = Outcome::CUT_OFF;
    }
    judged.page = Some(page);
    judged
}

/// The other side did not send all that it began to send: another try may bring the rest. What we cut off ourselves, at a length or
/// after a long time, would be as long the next time.
fn broke_off(exchange: &Exchange) -> bool {
    exchange.truncated == Some(Truncated::Disconnect) || exchange.fault == Some(Fault::TooSlow)
}

fn hints(kind: Kind, url: &Url, body: &[u8]) -> Hints {
    let site_hash = url.key().site_hash();
    // Whoever speaks of other sites may say anything: what they are believed would be theirs to spoil.
    let is_own = |told: &str| Url::parse(told).is_ok_and(|told| told.key().site_hash() == site_hash);
    let dated = |told: String, date: Option<String>| {
        let date = dates::parse(&date?)?;
        is_own(&told).then_some((told, date))
    };
    match kind {
        Kind::Sitemap => {
            let entries = skep_page::sitemap(body).entries.into_iter();
            let dates = entries.filter_map(|entry| dated(entry.url, entry.lastmod)).collect();
            Hints { by: Source::Sitemap, dates }
        }
        _ => {
            let entries = skep_page::feed(url, body).entries.into_iter();
            let dates = entries.filter_map(|entry| dated(entry.url, entry.updated)).collect();
            Hints { by: Source::Feed, dates }
        }
    }
}

/// Reading the text costs as much as finding the links: only URLs that can have look-alikes are worth it, those with a query or
/// with a number of its own. The digit of a name, as in `gtk4`, is none.
fn text_digest(url: &Url, head: &Head, body: &[u8]) -> u64 {
    let target = url.request_target().as_bytes();
    let is_number = |pair: &[u8]| pair[1].is_ascii_digit() && !pair[0].is_ascii_alphanumeric();
    match target.contains(&b'?') || target.windows(2).any(is_number) {
        true => trap::text_digest(&skep_page::text(&Input { url, head: Some(head), body }).text),
        false => xxhash_rust::xxh3::xxh3_64(body),
    }
}

/// Types in which links are looked for. A type that nobody named may be anything.
fn is_read(mime: &str) -> bool {
    mime.is_empty()
        || mime.starts_with("text/")
        || mime.ends_with("xml")
        || mime.ends_with("json") && (mime.contains("feed") || mime.contains("manifest"))
        || matches!(
            mime,
            "application/x-gzip" | "application/gzip" | "image/svg+xml" | "unk" | "application/octet-stream"
        )
}

/// A body that is one whole gzip member and nothing else, the usual case, inflated at once. Everything else, also what is damaged
/// or beyond the bounds, is for the decoder that takes it bit by bit.
fn gunzipped(head: &Head, body: &[u8]) -> Option<Vec<u8>> {
    thread_local!(static INFLATER: RefCell<Inflater> = RefCell::new(Inflater::new()));
    let encoding = head.header("content-encoding")?.trim_ascii();
    let one = encoding.eq_ignore_ascii_case(b"gzip") && head.headers("content-encoding").count() == 1;
    if !one || head.is_chunked() || head.header("transfer-encoding").is_some() {
        return None;
    }
    let length = u64::from(u32::from_le_bytes(*body.last_chunk()?));
    let free = (body.len() as u64).saturating_mul(DECODE_RATIO_MAX).max(RATIO_FROM_BYTES);
    if length == 0 || length > free.min(PARSED_BYTES_MAX) {
        return None;
    }
    let mut out = Vec::with_capacity(length as usize);
    let inflated = INFLATER.with_borrow_mut(|inflater| inflater.inflate_gzip_member(body, &mut out, length as usize));
    inflated.is_ok_and(|inflated| inflated.consumed == body.len()).then_some(out)
}

/// The body without transfer and content codings, within bounds.
pub fn decoded<'e>(head: &Head, exchange: &'e Exchange) -> Result<Cow<'e, [u8]>, &'static str> {
    let length = exchange.response.len().saturating_sub(exchange.head_bytes as u64);
    if length > PARSED_BYTES_MAX {
        return Err("too-large");
    }
    let body = exchange.response.bytes(exchange.head_bytes as u64, PARSED_BYTES_MAX).map_err(|_| "unreadable")?;
    let plain =
        !head.is_chunked() && head.header("content-encoding").is_none() && head.header("transfer-encoding").is_none();
    if plain {
        return Ok(body);
    }
    if let Some(decoded) = gunzipped(head, &body) {
        return Ok(Cow::Owned(decoded));
    }
    let bounds =
        Bounds { output_bytes_max: PARSED_BYTES_MAX, ratio_max: DECODE_RATIO_MAX, ratio_free_bytes: RATIO_FROM_BYTES };
    let mut decoded = Vec::new();
    match coding::decode(head, &body[..], bounds).read_to_end(&mut decoded) {
        Ok(_) => Ok(Cow::Owned(decoded)),
        Err(error) if coding::BoundError::of(&error).is_some() => Err("bomb"),
        // What came before the damage is still worth reading.
        Err(_) if !decoded.is_empty() => Ok(Cow::Owned(decoded)),
        Err(_) => Err("undecodable"),
    }
}
