//! From a query to results: documents of the index, each with a capture that may be shown and had that text at the time asked for.

use crate::error::{Error, Result};
use crate::extract;
use crate::index::{Document, Index};
use crate::limits::{CANDIDATES_AT_ONCE, CANDIDATES_MAX, CAPTURES_MAX, REACH_MAX, RESULTS_MAX};
use crate::passage::{Passage, passage};
use crate::query::Query;
use crate::tables;
use crate::text::Text;
use skep_archive::captures::{Match, Query as CapturesQuery};
use skep_archive::runs::Direction;
use skep_archive::{Archive, Capture, CaptureKind};
use skep_url::Scan;
use std::collections::HashSet;

/// What is wanted.
pub struct Asked<'a> {
    /// What to look for.
    pub query: &'a Query,
    /// Only what was current at this time.
    pub at_ms: Option<i64>,
    /// Only these URLs.
    pub within: Option<&'a Scan>,
    /// Which captures belong and may be shown: no other leaves a trace in the answer.
    pub shows: &'a dyn Fn(&Capture) -> bool,
    /// Results stepped over.
    pub skip: usize,
    /// Results wanted.
    pub limit: usize,
}

/// A URL with the text that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// A capture with this text: the first, or the one that was current at the time asked for.
    pub capture: Capture,
    /// From when …
    pub first_ms: i64,
    /// … until when the URL was seen with this text, without another in between.
    pub last_ms: i64,
    /// Captures in that time.
    pub captures: u64,
    /// The title; empty where there is none.
    pub title: String,
    /// A part of the text.
    pub passage: Passage,
}

/// Results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The best first, each URL once.
    pub hits: Vec<Hit>,
    /// There are more.
    pub more: bool,
    /// So much was looked at without finding enough that the rest was left.
    pub cut: bool,
}

impl Text {
    /// Looks.
    pub fn search(&self, asked: &Asked<'_>) -> Result<Found> {
        let shared = self.shared()?;
        let limit = asked.limit.min(RESULTS_MAX);
        if asked.skip.saturating_add(limit) > REACH_MAX {
            return Err(Error::Query(format!(
                "only the first {REACH_MAX} results can be asked for: look for more words"
            )));
        }
        let seeking = Seeking { archive: &shared.archive, asked };
        let mut found = Found::default();
        let wanted = asked.skip + limit;
        let (mut looked_at, mut urls) = (0, HashSet::new());
        let mut shown: Vec<(Document, Capture)> = Vec::new();
        let index = shared.index()?;
        while !found.more {
            let documents = index.find(asked.query, asked.within, asked.at_ms, looked_at, CANDIDATES_AT_ONCE)?;
            let last = documents.len() < CANDIDATES_AT_ONCE;
            looked_at += documents.len();
            for document in documents {
                if urls.contains(document.key.as_bytes()) {
                    continue;
                }
                let Some(capture) = seeking.capture(&document)? else { continue };
                if shown.len() == wanted {
                    found.more = true;
                    break;
                }
                urls.insert(document.key.as_bytes().to_vec());
                shown.push((document, capture));
            }
            if last {
                break;
            }
            if looked_at >= CANDIDATES_MAX {
                found.cut = !found.more;
                break;
            }
        }
        for (document, capture) in shown.into_iter().skip(asked.skip) {
            found.hits.push(seeking.hit(&document, capture)?);
        }
        Ok(found)
    }

    /// Every document with the URL and the time of its first capture, for comparing two indexes: in the order of their names.
    pub fn all(&self, looked_for: &Query) -> Result<Vec<Document>> {
        let index: std::sync::Arc<Index> = self.shared()?.index()?;
        let mut all = index.find(looked_for, None, None, 0, CANDIDATES_MAX)?;
        all.sort_by(|a, b| (a.key.as_bytes(), a.text).cmp(&(b.key.as_bytes(), b.text)));
        Ok(all)
    }
}

struct Seeking<'s> {
    archive: &'s Archive,
    asked: &'s Asked<'s>,
}

impl Seeking<'_> {
    /// Whether a capture says what a URL showed at its time, and may be shown.
    fn counts(&self, capture: &Capture) -> bool {
        matches!(capture.kind, CaptureKind::Response | CaptureKind::Revisit | CaptureKind::Resource)
            && (self.asked.shows)(capture)
    }

    fn has(&self, capture: &Capture, text: u64) -> Result<bool> {
        Ok(extract::may_have_text(capture) && tables::text_of(self.archive.views(), capture)? == Some(text))
    }

    /// The capture with which a document is shown, if there is one.
    fn capture(&self, document: &Document) -> Result<Option<Capture>> {
        let captures = &self.archive.views().captures;
        let Some(at_ms) = self.asked.at_ms else {
            for capture in captures.closest(&document.key, document.time_ms)?.take(CAPTURES_MAX) {
                let capture = capture?;
                if self.counts(&capture) && self.has(&capture, document.text)? {
                    return Ok(Some(capture));
                }
            }
            return Ok(None);
        };
        let mut before = CapturesQuery::new(Match::Exact(document.key.clone()));
        (before.to_ms, before.direction) = (Some(at_ms), Direction::Backward);
        for capture in captures.query(&before)?.take(CAPTURES_MAX) {
            let capture = capture?;
            if self.counts(&capture) && !says_nothing(&capture) {
                return Ok(self.has(&capture, document.text)?.then_some(capture));
            }
        }
        Ok(None)
    }

    fn hit(&self, document: &Document, capture: Capture) -> Result<Hit> {
        let (earlier, first_ms) = self.reach(document, &capture, Direction::Backward)?;
        let (later, last_ms) = self.reach(document, &capture, Direction::Forward)?;
        // What was shown a moment ago may have been removed since: then it says no more than where it was.
        let page = extract::page(self.archive, &capture).ok().flatten().unwrap_or_default();
        let looked_for: HashSet<&str> = self.asked.query.shown().collect();
        Ok(Hit {
            first_ms,
            last_ms,
            captures: earlier + 1 + later,
            title: page.title,
            passage: passage(&page.text, &looked_for),
            capture,
        })
    }

    /// How many captures in one direction show the same, and the time of the last of them.
    fn reach(&self, document: &Document, from: &Capture, direction: Direction) -> Result<(u64, i64)> {
        let mut query = CapturesQuery::new(Match::Exact(document.key.clone()));
        query.direction = direction;
        match direction {
            Direction::Forward => query.from_ms = Some(from.time_ms),
            Direction::Backward => query.to_ms = Some(from.time_ms),
        }
        let (mut count, mut time_ms) = (0, from.time_ms);
        for capture in self.archive.views().captures.query(&query)?.take(CAPTURES_MAX) {
            let capture = capture?;
            let there = (capture.time_ms, capture.position).cmp(&(from.time_ms, from.position));
            let beyond = match direction {
                Direction::Forward => there.is_gt(),
                Direction::Backward => there.is_lt(),
            };
            if !beyond || !self.counts(&capture) || says_nothing(&capture) {
                continue;
            }
            if !self.has(&capture, document.text)? {
                break;
            }
            (count, time_ms) = (count + 1, capture.time_ms);
        }
        Ok((count, time_ms))
    }
}

/// A revisit that does not say of what: things were as before.
fn says_nothing(capture: &Capture) -> bool {
    capture.kind == CaptureKind::Revisit && capture.digest.is_none()
}
