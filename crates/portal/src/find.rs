//! Finding the capture that is meant: nearest to a time, not newer than a time, and what a revisit stands for.

use crate::access::May;
use crate::elsewhere::Elsewhere;
use crate::limits::{CANDIDATES_MAX, ORIGINALS_MAX};
use crate::portal::{Portal, Scope};
use crate::trouble::Trouble;
use skep_archive::captures::{Match, Query};
use skep_archive::runs::Direction;
use skep_archive::{Capture, CaptureKind, Key};
use skep_warc::{Head, date};

/// Who looks, and where.
pub struct Looking<'p> {
    /// The portal.
    pub portal: &'p Portal,
    /// Which captures belong.
    pub scope: &'p Scope,
    /// What may be seen.
    pub may: May,
    /// The time now.
    pub now_ms: i64,
    /// For another node that asks: only these sites, and only what is here.
    pub sites: Option<Sites<'p>>,
}

/// Some of all sites.
#[derive(Clone, Copy)]
pub struct Sites<'p> {
    /// Tells these from others.
    pub name: u64,
    /// Whether a site is one of them, by its hash.
    pub fits: &'p (dyn Fn(u32) -> bool + Sync),
}

impl Looking<'_> {
    /// Whether a capture can be shown at all: it holds an answer or a document, and whoever asks may see it.
    pub fn shows(&self, capture: &Capture) -> bool {
        matches!(capture.kind, CaptureKind::Response | CaptureKind::Revisit | CaptureKind::Resource)
            && self.has_site(capture.key.site_hash())
            && self.scope.holds(capture, self.portal)
            && self.portal.access.shows(capture, self.may, self.now_ms)
    }

    /// Whether a site is looked at.
    pub fn has_site(&self, hash: u32) -> bool {
        self.sites.is_none_or(|sites| (sites.fits)(hash))
    }

    /// The other nodes, where the question is about everything.
    pub fn others(&self) -> Option<&dyn Elsewhere> {
        let asks = self.sites.is_none() && *self.scope == Scope::Everything;
        self.portal.elsewhere.as_deref().filter(|_| asks)
    }

    /// Captures of a URL from the nearest to a time outward.
    pub fn nearest(&self, key: &Key, time_ms: i64) -> Result<impl Iterator<Item = Result<Capture, Trouble>>, Trouble> {
        let closest = self.portal.closest_second(key, time_ms)?;
        let shown = move |capture: Result<Capture, Trouble>| match capture {
            Ok(capture) => self.shows(&capture).then_some(Ok(capture)),
            Err(trouble) => Some(Err(trouble)),
        };
        Ok(closest.take(CANDIDATES_MAX).filter_map(shown))
    }

    /// For a part of a page: captures not newer than the page, the newest first, and then those that are, the oldest first.
    pub fn not_newer(
        &self,
        key: &Key,
        time_ms: i64,
    ) -> Result<impl Iterator<Item = Result<Capture, Trouble>>, Trouble> {
        let mut before = Query::new(Match::Exact(key.clone()));
        // A time of 14 digits stands for its whole second.
        (before.to_ms, before.direction) = (Some(time_ms.saturating_add(999)), Direction::Backward);
        let mut after = Query::new(Match::Exact(key.clone()));
        after.from_ms = Some(time_ms.saturating_add(1000));
        let all =
            self.portal.query(&before)?.take(CANDIDATES_MAX).chain(self.portal.query(&after)?.take(CANDIDATES_MAX));
        let shown = move |capture: Result<Capture, Trouble>| match capture {
            Ok(capture) => self.shows(&capture).then_some(Ok(capture)),
            Err(trouble) => Some(Err(trouble)),
        };
        Ok(all.filter_map(shown))
    }

    /// The first and the last capture of a URL.
    pub fn ends(&self, key: &Key) -> Result<Option<(Capture, Capture)>, Trouble> {
        let one = |direction| -> Result<Option<Capture>, Trouble> {
            let mut query = Query::new(Match::Exact(key.clone()));
            query.direction = direction;
            for capture in self.portal.query(&query)?.take(CANDIDATES_MAX) {
                let capture = capture?;
                if self.shows(&capture) {
                    return Ok(Some(capture));
                }
            }
            Ok(None)
        };
        Ok(one(Direction::Forward)?.zip(one(Direction::Backward)?))
    }
}

/// What a revisit's record says it refers to.
pub fn named(head: &Head) -> Option<(String, i64)> {
    let (uri, time) = head.get("WARC-Refers-To-Target-URI").zip(head.get("WARC-Refers-To-Date"))?;
    Some((String::from_utf8_lossy(uri).into_owned(), date::parse_ms(time)?))
}

/// What a revisit stands for: the capture it names, else one of the same URL with the same payload, here or elsewhere, else the earliest one
/// with it that is here, in whichever collection. Not one that is hidden from whoever asks.
pub fn original(
    portal: &Portal,
    revisit: &Capture,
    named: Option<&(String, i64)>,
    shows: impl Fn(&Capture) -> bool,
) -> Result<Option<Capture>, Trouble> {
    let as_named = || named.map_or(Ok(None), |named| as_named(portal, revisit, named, &shows));
    let of_its_url = || of_its_url(portal, revisit, &shows);
    let here = || with_its_payload(portal, revisit, &shows);
    // Those who have one may be silent while there is another one: that is told when none is found.
    let mut silent = None;
    for look in [&as_named as &dyn Fn() -> Result<Option<Capture>, Trouble>, &of_its_url, &here] {
        match look() {
            Ok(Some(capture)) => return Ok(Some(capture)),
            Ok(None) => {}
            Err(trouble) => silent = silent.or(Some(trouble)),
        }
    }
    silent.map_or(Ok(None), Err)
}

fn as_named(
    portal: &Portal,
    revisit: &Capture,
    (uri, time_ms): &(String, i64),
    shows: &impl Fn(&Capture) -> bool,
) -> Result<Option<Capture>, Trouble> {
    for capture in portal.closest(&Key::of(uri), *time_ms)? {
        let capture = capture?;
        if capture.time_ms.div_euclid(1000) != time_ms.div_euclid(1000) {
            break;
        }
        let same = revisit.digest.is_none() || capture.digest.is_none() || capture.digest == revisit.digest;
        if capture.kind.has_body() && same && shows(&capture) {
            return Ok(Some(capture));
        }
    }
    Ok(None)
}

/// Where what it names is gone, whoever referred to it from another slice got a body of its own.
fn of_its_url(
    portal: &Portal,
    revisit: &Capture,
    shows: &impl Fn(&Capture) -> bool,
) -> Result<Option<Capture>, Trouble> {
    let Some(digest) = revisit.digest else { return Ok(None) };
    let same_url = Query {
        kinds: vec![CaptureKind::Response],
        limit: Some(CANDIDATES_MAX as u64),
        ..Query::new(Match::Exact(revisit.key.clone()))
    };
    for capture in portal.query(&same_url)? {
        let capture = capture?;
        if capture.digest == Some(digest) && capture.url == revisit.url && shows(&capture) {
            return Ok(Some(capture));
        }
    }
    Ok(None)
}

fn with_its_payload(
    portal: &Portal,
    revisit: &Capture,
    shows: &impl Fn(&Capture) -> bool,
) -> Result<Option<Capture>, Trouble> {
    let views = portal.archive.views();
    let Some(digest) = revisit.digest else { return Ok(None) };
    let mut originals = views.digests.originals(&digest, ORIGINALS_MAX)?;
    // The same URL first: its headers fit best.
    originals.sort_by_key(|original| original.key != revisit.key);
    for original in originals {
        for capture in views.captures.closest(&original.key, original.time_ms)? {
            let capture = capture?;
            if capture.position == original.position {
                if shows(&capture) {
                    return Ok(Some(capture));
                }
                break;
            }
            if capture.time_ms != original.time_ms {
                break;
            }
        }
    }
    Ok(None)
}
