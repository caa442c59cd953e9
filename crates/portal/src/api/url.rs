//! What there is of one URL: versions, duplicates, captures.

use super::asked::{Asked, cursor_of};
use super::capture;
use crate::find::Looking;
use crate::limits::{ALSO_AT_MAX, CAPTURES_OF_URL_MAX, ORIGINALS_MAX, PAGE_ROWS, VERSIONS_TOLD_MAX};
use crate::trouble::Trouble;
use crate::visit::Visit;
use serde::Serialize;
use serde_json::Value;
use skep_archive::captures::{Match, Query};
use skep_archive::{Capture, Digest, Key};
use skep_warc::date;
use std::collections::HashMap;

/// What there is of a URL.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
    /// The URL as asked.
    pub url: String,
    /// Its key.
    pub key: String,
    /// Captures of it.
    pub captures_total: u64,
    /// Whether there are more than were looked at.
    pub cut: bool,
    /// Different payloads.
    pub versions_total: u64,
    /// Captures whose payload was there before.
    pub duplicates_total: u64,
    /// The first capture.
    pub earliest: Option<String>,
    /// The last capture.
    pub latest: Option<String>,
    /// Captures by payload, by the time of the first.
    pub versions: Vec<Version>,
    /// One page of captures, by time.
    pub captures: Vec<capture::Told>,
    /// Where the next page begins.
    pub next: Option<String>,
}

/// Captures with the same payload.
#[derive(Clone, Debug, Serialize)]
pub struct Version {
    /// The digest of the payload; none where no record says one, then each capture is a version of its own.
    pub digest: Option<String>,
    /// Captures with it.
    pub captures: u64,
    /// The first.
    pub earliest: String,
    /// The last.
    pub latest: String,
    /// The status of the first.
    pub status: Option<u16>,
    /// The media type of the first.
    pub media_type: Option<String>,
    /// Other URLs with the same payload, some.
    pub also_at: Vec<String>,
}

/// All captures of a URL that may be seen, oldest first; whether there are more than these.
pub fn captures(look: &Looking<'_>, asked: &Asked) -> Result<(Vec<Capture>, bool), Trouble> {
    let mut query = Query::new(Match::Exact(Key::of(asked.text("url"))));
    (query.from_ms, query.to_ms) = (asked.earliest("from"), asked.latest("to"));
    let (mut captures, mut rows) = (Vec::new(), 0);
    for capture in look.portal.query(&query)? {
        let capture = capture?;
        rows += 1;
        if rows > CAPTURES_OF_URL_MAX {
            return Ok((captures, true));
        }
        if look.shows(&capture) {
            captures.push(capture);
        }
    }
    Ok((captures, false))
}

/// For each capture, the first with the same payload: itself, where it is a new version.
pub fn firsts(captures: &[Capture]) -> Vec<usize> {
    let mut seen: HashMap<Digest, usize> = HashMap::new();
    captures
        .iter()
        .enumerate()
        .map(|(index, capture)| capture.digest.map_or(index, |digest| *seen.entry(digest).or_insert(index)))
        .collect()
}

/// Tells of a URL.
pub fn told(look: &Looking<'_>, asked: &Asked) -> Result<Told, Trouble> {
    let url = asked.text("url");
    let (captures, cut) = captures(look, asked)?;
    if captures.is_empty() {
        return Err(Trouble::missing("There is no capture of this URL here; /api/v1/urls finds others."));
    }
    let firsts = firsts(&captures);
    let mut groups: Vec<(usize, u64, usize)> = Vec::new();
    let mut group_of: HashMap<usize, usize> = HashMap::new();
    for (index, first) in firsts.iter().enumerate() {
        let group = *group_of.entry(*first).or_insert_with(|| {
            groups.push((*first, 0, index));
            groups.len() - 1
        });
        groups[group].1 += 1;
        groups[group].2 = index;
    }
    let mut versions = Vec::new();
    for (first, count, last) in groups.iter().take(VERSIONS_TOLD_MAX) {
        let (first, last) = (&captures[*first], &captures[*last]);
        versions.push(Version {
            digest: first.digest.map(|digest| digest.to_string()),
            captures: *count,
            earliest: date::rfc3339(first.time_ms),
            latest: date::rfc3339(last.time_ms),
            status: (first.status > 0).then_some(first.status),
            media_type: (!first.mime.is_empty()).then(|| first.mime.clone()),
            also_at: if versions.len() < ORIGINALS_MAX { also_at(look, first)? } else { Vec::new() },
        });
    }
    let (page, next) = page(look, asked, &captures);
    Ok(Told {
        url: url.to_owned(),
        key: captures[0].key.surt().to_owned(),
        captures_total: captures.len() as u64,
        cut,
        versions_total: groups.len() as u64,
        duplicates_total: (captures.len() - groups.len()) as u64,
        earliest: captures.first().map(|capture| date::rfc3339(capture.time_ms)),
        latest: captures.last().map(|capture| date::rfc3339(capture.time_ms)),
        versions,
        captures: page,
        next,
    })
}

fn moment(capture: &Capture) -> [u8; 20] {
    let position = capture.position;
    let mut bytes = [0; 20];
    // Times before 1970 sort before those after it.
    bytes[..8].copy_from_slice(&(capture.time_ms as u64 ^ 1 << 63).to_be_bytes());
    bytes[8..12].copy_from_slice(&position.writer.0.to_be_bytes());
    bytes[12..16].copy_from_slice(&position.segment.to_be_bytes());
    bytes[16..].copy_from_slice(&position.record.to_be_bytes());
    bytes
}

fn page(look: &Looking<'_>, asked: &Asked, captures: &[Capture]) -> (Vec<capture::Told>, Option<String>) {
    let (limit, cursor) = (asked.number("limit", PAGE_ROWS), asked.cursor());
    let start = match cursor.is_empty() {
        true => 0,
        false => captures.partition_point(|capture| moment(capture).as_slice() <= cursor.as_slice()),
    };
    let end = start.saturating_add(limit).min(captures.len());
    let next = (end < captures.len()).then(|| cursor_of(&moment(&captures[end - 1])));
    (captures[start..end].iter().map(|capture| capture::told(look, capture)).collect(), next)
}

/// Other URLs with this payload.
fn also_at(look: &Looking<'_>, capture: &Capture) -> Result<Vec<String>, Trouble> {
    let Some(digest) = capture.digest else { return Ok(Vec::new()) };
    let views = look.portal.archive.views();
    let mut urls: Vec<String> = Vec::new();
    for original in views.digests.originals(&digest, ORIGINALS_MAX)? {
        if original.key == capture.key || urls.len() >= ALSO_AT_MAX {
            continue;
        }
        for other in views.captures.closest(&original.key, original.time_ms)? {
            let other = other?;
            if other.time_ms != original.time_ms {
                break;
            }
            if other.position == original.position {
                if look.shows(&other) && !urls.contains(&other.url) {
                    urls.push(other.url);
                }
                break;
            }
        }
    }
    Ok(urls)
}

/// Answers.
pub fn tell(look: &Looking<'_>, asked: &Asked, _: &Visit) -> Result<Value, Trouble> {
    Ok(serde_json::to_value(told(look, asked)?).unwrap_or_default())
}
