//! Removing: find, hide, rewrite. Read top to bottom.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;

use crate::Key;
use crate::archive::Archive;
use crate::capture::{Capture, Position};
use crate::captures::{Match, Query};
use crate::commit::Append;
use crate::error::{Error, Result};
use crate::finding::Finding;
use crate::layout::SegmentId;
use crate::limits::{REASON_BYTES_MAX, REMOVAL_POSITIONS_MAX, URL_BYTES_MAX};
use crate::remove::{self, Matcher, Selector};

/// What a removal came to.
#[derive(Debug, Default)]
pub struct Removed {
    /// Everything that is hidden now.
    pub positions: Vec<Position>,
    /// Of these, what stands in files of others: hidden here, the bytes stay.
    pub only_hidden: Vec<Position>,
    /// The removal records.
    pub records: Vec<Position>,
    /// Segments that could not be rewritten yet; the next opening tries again.
    pub undone: Vec<Finding>,
}

impl Archive {
    /// Hides everything that `selector` means and then rewrites the segments of ours that hold it. `NotFound` if there is
    /// nothing.
    pub fn remove(&self, selector: &Selector, reason: &str) -> Result<Removed> {
        self.remove_until(selector, reason, i64::MAX)
    }

    /// The same for what was captured before a moment, in milliseconds since 1970: whoever hears of a removal late does not take it for
    /// one of what came later.
    pub fn remove_until(&self, selector: &Selector, reason: &str, until_ms: i64) -> Result<Removed> {
        if reason.trim().is_empty() || reason.len() > REASON_BYTES_MAX {
            let why = format!("a removal needs a reason of 1 to {REASON_BYTES_MAX} bytes");
            return Err(Error::Refused { why });
        }
        if selector.to_string().len() > URL_BYTES_MAX {
            return Err(Error::Refused { why: format!("no URL here is longer than {URL_BYTES_MAX} bytes") });
        }
        self.settle()?;
        let found = self.find(selector, until_ms)?;
        self.hide(selector, reason, found)
    }

    /// Hides these captures and nothing else of their fetches, for whoever takes lines out of an index. What of them stands
    /// in segments of ours is rewritten.
    pub fn remove_captures(&self, captures: &[Capture], reason: &str) -> Result<Removed> {
        let mut found: BTreeMap<u32, Vec<Position>> = BTreeMap::new();
        for capture in captures.iter().filter(|capture| !self.views().is_hidden(capture.position)) {
            found.entry(capture.key.site_hash()).or_default().push(capture.position);
        }
        self.hide(&"positions", reason, found)
    }

    fn hide(
        &self,
        selector: &dyn std::fmt::Display,
        reason: &str,
        found: BTreeMap<u32, Vec<Position>>,
    ) -> Result<Removed> {
        if found.is_empty() {
            return Err(Error::NotFound { what: selector.to_string() });
        }
        let mut removed = Removed::default();
        for (site_hash, positions) in found {
            for part in positions.chunks(REMOVAL_POSITIONS_MAX) {
                let now = (self.shared.clock)();
                let record = remove::encode(selector, reason, part, &self.shared.identity, now)?;
                let told = self.shared.append_and_wait(Append { site_hash, records: vec![record] })?;
                removed.records.extend(told.positions);
            }
            removed.positions.extend(positions);
        }
        self.settle()?;
        let ours = self.writer();
        removed.only_hidden = removed.positions.iter().copied().filter(|position| position.writer != ours).collect();
        removed.undone = self.shared.keeper().blank(removed.positions.clone());
        Ok(removed)
    }

    /// The records that a selector means and that are not hidden yet, by site.
    fn find(&self, selector: &Selector, until_ms: i64) -> Result<BTreeMap<u32, Vec<Position>>> {
        let matcher = Matcher::new(selector);
        let mut found: BTreeMap<u32, Vec<Position>> = BTreeMap::new();
        for id in self.segments_with(selector, &matcher)? {
            let fetches = self.fetches(id, &matcher)?;
            self.each_in_file(id, |capture| {
                let meant = matcher.matches(capture) || fetches.contains(&(capture.key.clone(), capture.time_ms));
                if meant && capture.time_ms < until_ms && !self.views().is_hidden(capture.position) {
                    found.entry(capture.key.site_hash()).or_default().push(capture.position);
                }
                Ok::<(), Error>(())
            })?;
        }
        Ok(found)
    }

    /// The segments and files in which the captures view knows something that is meant. The other records of a fetch stand
    /// in the same one.
    fn segments_with(&self, selector: &Selector, matcher: &Matcher) -> Result<BTreeSet<SegmentId>> {
        let captures = &self.views().captures;
        let mut ids = BTreeSet::new();
        let found = match (selector, matcher) {
            (Selector::Url(url), _) => captures.anywhere(&Key::of(url))?,
            (_, Matcher::Scan(scan)) => captures.query(&Query::new(Match::of(scan)))?,
            _ => {
                captures.each(&Match::All, |row| {
                    if matcher.matches(&row.capture()) {
                        ids.insert(row.position().into());
                    }
                    ControlFlow::Continue(())
                })?;
                return Ok(ids);
            }
        };
        for capture in found {
            ids.insert(capture?.position.into());
        }
        Ok(ids)
    }

    /// URL and time of the fetches that brought a payload that is meant, so that what was asked and noted goes with it.
    fn fetches(&self, id: SegmentId, matcher: &Matcher) -> Result<HashSet<(Key, i64)>> {
        let mut fetches = HashSet::new();
        if matches!(matcher, Matcher::Digest(_)) {
            self.each_in_file(id, |capture| {
                if matcher.matches(capture) {
                    fetches.insert((capture.key.clone(), capture.time_ms));
                }
                Ok::<(), Error>(())
            })?;
        }
        Ok(fetches)
    }
}
