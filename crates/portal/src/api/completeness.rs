//! How far apart in time the parts of an archived page are.
//!
//! A page was captured at one moment and its pictures, styles and scripts at others. Each part is the capture that replay shows: the newest
//! that is not newer than the page, else the first after it. It is
//!
//! | class | why | what is known |
//! |---|---|---|
//! | coherent | `same time` | captured in the same second |
//! | coherent | `unchanged` | captured before and after the page, with the same payload |
//! | coherent | `not modified since` | captured after the page, and its `Last-Modified` is not after the page |
//! | probably coherent | `before` | captured before the page; what happened in between nobody knows |
//! | probably coherent | `soon after` | captured within five minutes after the page, as by one crawl |
//! | violating | `modified after` | its `Last-Modified` is after the page: it was never seen with it |
//! | violating | `after` | captured later, with nothing to say that it was there before |
//! | missing | `missing` | not in the archive |

use super::asked::Asked;
use super::capture::address;
use crate::find::Looking;
use crate::limits::{PART_BODY_BYTES_MAX, PARTS_MAX, SOON_MS, STEPS_ASIDE_MAX, STYLES_READ_MAX};
use crate::trouble::Trouble;
use crate::visit::Visit;
use crate::{message, replay, time};
use serde::Serialize;
use serde_json::Value;
use skep_archive::captures::{Match, Query};
use skep_archive::{Capture, CaptureKind, Key};
use skep_page::{Input, LinkKind};
use skep_url::Url;
use skep_warc::coding::{self, Bounds};
use skep_warc::date;
use std::collections::{HashSet, VecDeque};
use std::io::{BufRead, Read};

/// A page and its parts.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
    /// The page.
    pub url: String,
    /// When it was captured.
    pub time: String,
    /// 14 digits.
    pub timestamp: String,
    /// The earliest of page and parts.
    pub earliest: String,
    /// The latest of page and parts.
    pub latest: String,
    /// Seconds between these.
    pub span_seconds: i64,
    /// Whether no part is missing.
    pub complete: bool,
    /// How many parts there are of each class.
    pub counts: Counts,
    /// Whether the page has more parts than were looked at.
    pub cut: bool,
    /// The parts, as the page names them.
    pub parts: Vec<Part>,
}

/// How many parts there are of each class.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Counts {
    /// Seen together with the page.
    pub coherent: u64,
    /// As far as is known.
    pub probably_coherent: u64,
    /// Not seen together with the page, as far as is known.
    pub violating: u64,
    /// Not here.
    pub missing: u64,
}

/// One part of a page.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// Its URL.
    pub url: String,
    /// What it is to the page.
    pub role: &'static str,
    /// `coherent`, `probably coherent`, `violating`, `missing`.
    pub class: &'static str,
    /// Why.
    pub why: &'static str,
    /// When it was captured.
    pub time: Option<String>,
    /// Seconds from the page to it.
    pub apart_seconds: Option<i64>,
    /// It.
    pub replay: Option<String>,
}

/// Answers.
pub fn tell(look: &Looking<'_>, asked: &Asked, _: &Visit) -> Result<Value, Trouble> {
    Ok(serde_json::to_value(told(look, asked)?).unwrap_or_default())
}

/// Looks at a page and its parts.
pub fn told(look: &Looking<'_>, asked: &Asked) -> Result<Told, Trouble> {
    let url = asked.text("url");
    let at_ms = asked.get("time").map_or(look.now_ms, |digits| match digits.len() {
        14 => time::earliest(digits).unwrap_or(look.now_ms),
        _ => time::latest(digits).unwrap_or(look.now_ms),
    });
    let key = Key::of(url);
    let page = replay::pick(look.nearest(&key, at_ms)?, url)?
        .ok_or_else(|| Trouble::missing("There is no capture of this URL here."))?;
    let (mut parts, cut) = parts_of(look, &page)?;
    let (mut earliest, mut latest, mut counts) = (page.time_ms, page.time_ms, Counts::default());
    let mut judged = Vec::with_capacity(parts.len());
    for (url, kind) in parts.drain(..) {
        let (class, why, capture) = judge(look, &page, &url)?;
        match class {
            "coherent" => counts.coherent += 1,
            "probably coherent" => counts.probably_coherent += 1,
            "violating" => counts.violating += 1,
            _ => counts.missing += 1,
        }
        if let Some(capture) = &capture {
            (earliest, latest) = (earliest.min(capture.time_ms), latest.max(capture.time_ms));
        }
        let scope = look.scope.name();
        judged.push(Part {
            role: kind.code(),
            class,
            why,
            time: capture.as_ref().map(|capture| date::rfc3339(capture.time_ms)),
            apart_seconds: capture.as_ref().map(|capture| (capture.time_ms - page.time_ms).div_euclid(1000)),
            replay: capture.map(|capture| address(&format!("/{scope}/{}/{url}", time::digits(capture.time_ms)))),
            url,
        });
    }
    Ok(Told {
        url: page.url.clone(),
        time: date::rfc3339(page.time_ms),
        timestamp: time::digits(page.time_ms),
        earliest: date::rfc3339(earliest),
        latest: date::rfc3339(latest),
        span_seconds: (latest - earliest).div_euclid(1000),
        complete: counts.missing == 0,
        counts,
        cut,
        parts: judged,
    })
}

/// What a page is shown with, also what its style sheets bring along.
fn parts_of(look: &Looking<'_>, page: &Capture) -> Result<(Vec<(String, LinkKind)>, bool), Trouble> {
    let mut parts: Vec<(String, LinkKind)> = Vec::new();
    let mut seen: HashSet<String> = HashSet::new();
    let mut cut = false;
    let mut take = |links: Vec<(String, LinkKind)>, sheets: &mut VecDeque<String>| {
        for (url, kind) in links {
            if parts.len() >= PARTS_MAX {
                cut = true;
                return;
            }
            if seen.insert(url.clone()) {
                if matches!(kind, LinkKind::Style | LinkKind::Import) {
                    sheets.push_back(url.clone());
                }
                parts.push((url, kind));
            }
        }
    };
    let mut sheets = VecDeque::new();
    take(embedded(look, page)?, &mut sheets);
    let mut read = 0;
    while let Some(sheet) = sheets.pop_front() {
        read += 1;
        if read > STYLES_READ_MAX {
            break;
        }
        let Some(capture) = shown_with(look, page, &sheet)? else { continue };
        // A sheet that cannot be read brings nothing along; that it is there is told all the same.
        take(embedded(look, &capture).unwrap_or_default(), &mut sheets);
    }
    Ok((parts, cut))
}

fn embedded(look: &Looking<'_>, capture: &Capture) -> Result<Vec<(String, LinkKind)>, Trouble> {
    let Ok(url) = Url::parse(&capture.url) else { return Ok(Vec::new()) };
    replay::open(look, capture, |shown, mut source| {
        let mut body = Vec::new();
        let decoded: Box<dyn BufRead + '_> = match shown.body_head {
            Some(head) => Box::new(coding::decode(head, &mut source, Bounds::default())),
            None => Box::new(&mut source),
        };
        decoded.take(PART_BODY_BYTES_MAX).read_to_end(&mut body).map_err(|error| Trouble::reading(&error))?;
        let page = skep_page::read(&Input { url: &url, head: shown.head, body: &body });
        let embeds = page.links.into_iter().filter(|link| link.kind.is_embed());
        Ok(embeds.map(|link| (link.url, link.kind)).collect())
    })
}

/// The capture that replay shows with a page.
fn shown_with(look: &Looking<'_>, page: &Capture, url: &str) -> Result<Option<Capture>, Trouble> {
    let second = page.time_ms.div_euclid(1000) * 1000;
    let found: Vec<Capture> =
        look.not_newer(&Key::of(url), second)?.take(STEPS_ASIDE_MAX).collect::<Result<_, Trouble>>()?;
    replay::pick(found.into_iter().map(Ok), url)
}

type Judgement = (&'static str, &'static str, Option<Capture>);

fn judge(look: &Looking<'_>, page: &Capture, url: &str) -> Result<Judgement, Trouble> {
    let Some(part) = shown_with(look, page, url)? else { return Ok(("missing", "missing", None)) };
    let seconds = |ms: i64| ms.div_euclid(1000);
    let (page_s, part_s) = (seconds(page.time_ms), seconds(part.time_ms));
    if page_s == part_s {
        return Ok(("coherent", "same time", Some(part)));
    }
    if part_s < page_s {
        let mut later = Query::new(Match::Exact(part.key.clone()));
        later.from_ms = Some((page_s + 1) * 1000);
        for next in look.portal.query(&later)?.take(STEPS_ASIDE_MAX) {
            let next = next?;
            if look.shows(&next) {
                if next.digest.is_some() && next.digest == part.digest {
                    return Ok(("coherent", "unchanged", Some(part)));
                }
                break;
            }
        }
        return Ok(("probably coherent", "before", Some(part)));
    }
    match last_modified(look, &part) {
        Some(modified) if seconds(modified) <= page_s => Ok(("coherent", "not modified since", Some(part))),
        // A server's clock may be ahead of its own answer: then it says nothing.
        Some(modified) if seconds(modified) <= part_s => Ok(("violating", "modified after", Some(part))),
        _ if part.time_ms - page.time_ms <= SOON_MS => Ok(("probably coherent", "soon after", Some(part))),
        _ => Ok(("violating", "after", Some(part))),
    }
}

fn last_modified(look: &Looking<'_>, part: &Capture) -> Option<i64> {
    if part.kind == CaptureKind::Resource {
        return None;
    }
    let head = message::open(look.portal, part, |head, _| Ok(head)).ok()??;
    time::of_http(&String::from_utf8_lossy(head.header("last-modified")?))
}
