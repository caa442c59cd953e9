//! The captures view: every capture, found by URL and time.
//!
//! Entries are fresh in the store first and move into runs when there are many; see [`crate::runs`]. Captures are in the
//! order (key, time, position), and a key begins with the hash of its site: everything about one site stands together,
//! and sites stand in the order of their hashes. A site that is split has several places in that order: whoever asks for one of its URLs, or
//! for all of them, is told what stands in each, as if it stood together.

use crate::memory::Room;
use crate::runs::{self, Bounds, CapturesCodec, Direction, Moment, Row, RunSet, Span, Walk};
use crate::{Capture, CaptureKind, Hidden, Key, Position, Result};
use fjall::{Database, OwnedWriteBatch};
use skep_url::{Part, Scan, Splits, Suffixes};
use std::collections::{HashSet, VecDeque};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

/// The keyspace of fresh captures in the store of the views.
pub const KEYSPACE: &str = "captures";

/// Which keys a query covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// One URL.
    Exact(Key),
    /// Keys of the same site whose SURT begins with that of this key.
    Prefix(Key),
    /// Keys of the same host and port.
    Host(Key),
    /// Keys of this host and of all hosts below it, on any port. If the host is a public suffix (`co.uk`), its sites are
    /// scattered over the view: then every capture is looked at, in key order.
    Domain(Key),
    /// Keys whose SURT is at least that of the first and below that of the second. Within one site this is one stretch
    /// of the view; otherwise every capture is looked at.
    Range(Key, Key),
    /// Everything.
    All,
}

impl Match {
    /// What a scan asks for. Keys of one site are one stretch of the view, or three; without a site of its own the range lies in
    /// many, and everything is looked at.
    pub fn of(scan: &Scan) -> Match {
        let (first, last) = scan.site_hash.map_or((0, u32::MAX), |hash| (hash, hash));
        let start = Key::from_parts(first, &scan.start);
        match scan.kind {
            skep_url::Match::Exact if first == last => Match::Exact(start),
            skep_url::Match::Domain if first == last && !scan.start.contains(':') => Match::Domain(start),
            _ => Match::Range(scan.keys(first).0, scan.keys(last).1),
        }
    }

    /// The hash of the one site that all of it belongs to; `None` where it spreads over many.
    pub fn site(&self) -> Option<u32> {
        match self {
            Match::Exact(key) | Match::Prefix(key) | Match::Host(key) => Some(key.site_hash()),
            Match::Domain(key) => (!holds_sites(name_in(key))).then(|| key.site_hash()),
            Match::Range(from, to) => (from.site_hash() == to.site_hash()).then(|| from.site_hash()),
            Match::All => None,
        }
    }

    /// The same in another place of its site.
    fn at_place(&self, place: u32) -> Match {
        let at = |key: &Key| key.clone().at_place(place);
        match self {
            Match::Exact(key) => Match::Exact(at(key)),
            Match::Prefix(key) => Match::Prefix(at(key)),
            Match::Host(key) => Match::Host(at(key)),
            Match::Domain(key) => Match::Domain(at(key)),
            Match::Range(from, to) => Match::Range(at(from), at(to)),
            Match::All => Match::All,
        }
    }

    /// All places in which something may stand that is asked for: one, unless the site is split.
    pub fn places(&self, splits: &Splits) -> Vec<u32> {
        match (self.site(), self) {
            (None, _) => Vec::new(),
            (Some(_), Match::Exact(key)) => splits.candidates(key),
            (Some(site), _) => splits.places(site),
        }
    }

    /// The other places of its site, for one URL: what is fetched for another URL, to know what the site answers, is filed with that one.
    pub fn other_places(&self, splits: &Splits) -> Vec<u32> {
        let Match::Exact(key) = self else { return Vec::new() };
        let (own, mut others) = (splits.candidates(key), splits.places(key.site_hash()));
        others.retain(|place| !own.contains(place));
        others
    }
}

/// Where an answer left off: the last capture that was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its key.
    pub key: Key,
    /// Its time.
    pub time_ms: i64,
    /// Its record.
    pub position: Position,
}

impl Place {
    /// The place of a capture.
    pub fn of(capture: &Capture) -> Place {
        Place { key: capture.key.clone(), time_ms: capture.time_ms, position: capture.position }
    }

    fn entry(&self) -> Vec<u8> {
        let mut entry = Vec::with_capacity(self.key.as_bytes().len() + 21);
        let moment = Moment { time_ms: self.time_ms, position: self.position };
        runs::write_key(self.key.as_bytes(), moment, &mut entry);
        entry
    }
}

/// What of the matching captures is wanted, and in which order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Which keys.
    pub matching: Match,
    /// Not before this time.
    pub from_ms: Option<i64>,
    /// Not after this time.
    pub to_ms: Option<i64>,
    /// Only this HTTP status.
    pub status: Option<u16>,
    /// Only this media type, in any case; `image/*` for all of a kind.
    pub mime: Option<String>,
    /// Only these types of record; empty for all.
    pub kinds: Vec<CaptureKind>,
    /// At most so many.
    pub limit: Option<u64>,
    /// Ascending or descending.
    pub direction: Direction,
    /// Only sites whose hashes are from the first of these to the second.
    pub sites: (u32, u32),
    /// Only what comes behind this one, in the direction of the query.
    pub after: Option<Place>,
}

impl Query {
    /// Everything that matches, ascending.
    pub fn new(matching: Match) -> Query {
        Query {
            matching,
            from_ms: None,
            to_ms: None,
            status: None,
            mime: None,
            kinds: Vec::new(),
            limit: None,
            direction: Direction::Forward,
            sites: (0, u32::MAX),
            after: None,
        }
    }

    /// The same in another place of its site.
    pub fn at_place(&self, place: u32) -> Query {
        let after = self.after.clone();
        let after = after.map(|after| Place { key: after.key.at_place(place), ..after });
        Query { matching: self.matching.at_place(place), after, ..self.clone() }
    }

    /// The part of a stretch that is wanted; `None` if there is none.
    fn narrow(&self, mut bounds: Bounds) -> Option<Bounds> {
        let (first, last) = self.sites;
        let start = |bounds: &mut Bounds, start: Vec<u8>| {
            if bounds.start < start {
                bounds.start = start;
            }
        };
        let end = |bounds: &mut Bounds, end: Vec<u8>| {
            if bounds.end.as_ref().is_none_or(|known| end < *known) {
                bounds.end = Some(end);
            }
        };
        if first > 0 {
            start(&mut bounds, first.to_be_bytes().to_vec());
        }
        if let Some(behind) = last.checked_add(1) {
            end(&mut bounds, behind.to_be_bytes().to_vec());
        }
        match (&self.after, self.direction) {
            (Some(after), Direction::Forward) => start(&mut bounds, [after.entry(), vec![0]].concat()),
            (Some(after), Direction::Backward) => end(&mut bounds, after.entry()),
            (None, _) => {}
        }
        (!bounds.is_empty()).then_some(bounds)
    }
}

/// The captures view.
pub struct Captures {
    set: RunSet<CapturesCodec>,
    hidden: Arc<Hidden>,
    splits: RwLock<Arc<Splits>>,
}

impl Captures {
    /// Opens the view: fresh entries in `store`, runs in `folder`.
    pub fn open(store: &Database, folder: &Path, hidden: Arc<Hidden>, room: Room) -> Result<Captures> {
        Ok(Captures { set: RunSet::open(store, KEYSPACE, folder, room)?, hidden, splits: RwLock::default() })
    }

    /// Entries are put into the store under this lock.
    pub fn put_under(self, putting: Arc<RwLock<()>>) -> Captures {
        Captures { set: self.set.put_under(putting), ..self }
    }

    /// Sites whose captures may stand in several places, from now on.
    pub fn know_splits(&self, splits: Arc<Splits>) {
        *self.splits.write().unwrap_or_else(PoisonError::into_inner) = splits;
    }

    /// A key as it is at the home of its site.
    pub fn at_home(&self, key: &Key) -> Key {
        let splits = self.splits.read().unwrap_or_else(PoisonError::into_inner);
        if splits.is_empty() { key.clone() } else { Key::of_surt(key.surt()) }
    }

    fn places(&self, matching: &Match) -> Vec<u32> {
        let splits = self.splits.read().unwrap_or_else(PoisonError::into_inner);
        if splits.is_empty() { Vec::new() } else { matching.places(&splits) }
    }

    /// The places to look in: where one URL has nothing in its own, all others of its site.
    fn places_with(&self, query: &Query) -> Result<Vec<u32>> {
        let places = self.places(&query.matching);
        let others = {
            let splits = self.splits.read().unwrap_or_else(PoisonError::into_inner);
            if splits.is_empty() { Vec::new() } else { query.matching.other_places(&splits) }
        };
        if others.is_empty() {
            return Ok(places);
        }
        for place in &places {
            if self.query_place(&query.at_place(*place))?.next().transpose()?.is_some() {
                return Ok(places);
            }
        }
        Ok(others)
    }

    /// Key and value to put into the keyspace [`KEYSPACE`] for a capture. Putting the same capture twice is harmless;
    /// putting one with the same key, time and position replaces it. Refuses what cannot be indexed.
    pub fn entry(&self, capture: &Capture) -> Result<(Vec<u8>, Vec<u8>)> {
        let (mut key, mut value) = (Vec::with_capacity(96), Vec::with_capacity(64));
        runs::write_entry(capture, &mut key, &mut value)?;
        self.set.expect_fresh(1);
        Ok((key, value))
    }

    /// Puts a capture into a batch on the view's store.
    pub fn put(&self, capture: &Capture, batch: &mut OwnedWriteBatch) -> Result<()> {
        let (key, value) = self.entry(capture)?;
        batch.insert(self.set.fresh(), key, value);
        Ok(())
    }

    /// Begins to add many captures that the view does not hold yet, in bounded memory.
    pub fn bulk(&self) -> Bulk<'_> {
        Bulk { bulk: self.set.bulk(), key: Vec::new(), value: Vec::new() }
    }

    /// Moves fresh captures into a run if they are many, and merges runs that have become many. To be called now and
    /// then by a thread that may take its time: reading and appending go on meanwhile.
    pub fn tend(&self) -> Result<()> {
        if self.set.wants_move() {
            self.set.move_fresh()?;
        }
        while self.set.merge()? {}
        Ok(())
    }

    /// Moves all captures into one run, without those that `keep` refuses.
    pub fn compact(&self, keep: impl Fn(&Row<'_>) -> bool) -> Result<()> {
        self.set.compact(keep)
    }

    /// Runs, captures in them, captures outside of them, and bytes of the runs.
    pub fn facts(&self) -> Facts {
        let mut facts = Facts { fresh: self.set.fresh_entries(), ..Facts::default() };
        for run in self.set.facts() {
            facts.runs += 1;
            facts.in_runs += run.entries;
            facts.run_bytes += run.bytes;
        }
        facts
    }

    /// The captures that a query asks for. Lazy; nothing is read before the first is taken, but of one URL of a site that is split: it is looked
    /// whether anything stands where it belongs.
    pub fn query(&self, query: &Query) -> Result<Answer> {
        let places = self.places_with(query)?;
        if places.is_empty() || query.matching.site().is_some_and(|home| places == [home]) {
            return self.query_place(query);
        }
        let parts = places.into_iter().map(|place| self.query_place(&query.at_place(place)));
        Ok(Answer::merged(parts.collect::<Result<_>>()?, query.direction, query.limit.unwrap_or(u64::MAX)))
    }

    fn query_place(&self, query: &Query) -> Result<Answer> {
        let mut wanted = Wanted::of(query);
        let walks = match &query.matching {
            Match::Exact(key) => match query.narrow(moments(key, query.from_ms, query.to_ms)) {
                Some(bounds) => VecDeque::from([self.set.find(&looked_for(key))?.walk(bounds, query.direction)]),
                None => VecDeque::new(),
            },
            matching => {
                let (bounds, filter) = stretches(matching);
                wanted.surt = filter;
                let bounds = bounds.into_iter().filter_map(|bounds| query.narrow(bounds));
                let mut walks: VecDeque<_> = bounds.map(|bounds| self.set.walk(bounds, query.direction)).collect();
                if query.direction == Direction::Backward {
                    walks.make_contiguous().reverse();
                }
                walks
            }
        };
        Ok(Answer {
            walks,
            span: None,
            direction: query.direction,
            wanted,
            hidden: self.hidden.now(),
            left: query.limit.unwrap_or(u64::MAX),
            parts: Vec::new(),
        })
    }

    /// All captures of one URL, oldest first.
    pub fn exact(&self, key: &Key) -> Result<Answer> {
        self.query(&Query::new(Match::Exact(key.clone())))
    }

    /// The same in whatever places of its site they stand, also where others are that belong where the URL does.
    pub fn anywhere(&self, key: &Key) -> Result<Answer> {
        let query = Query::new(Match::Exact(key.clone()));
        let places = self.places(&Match::Host(key.clone()));
        if places.is_empty() {
            return self.query_place(&query);
        }
        let parts = places.into_iter().map(|place| self.query_place(&query.at_place(place)));
        Ok(Answer::merged(parts.collect::<Result<_>>()?, query.direction, u64::MAX))
    }

    /// The captures of one URL from the one closest to `time_ms` outward; of two that are equally close the older first. Whole seconds count
    /// before what is within them: an address of 14 digits must lead to the capture of that second, also where one of the second before is nearer.
    /// Walks in both directions from there: a URL with a million captures costs no more than one with ten.
    pub fn closest(&self, key: &Key, time_ms: i64) -> Result<Closest> {
        self.outward(key, time_ms, false)
    }

    /// The same for a time that stands for its whole second, as addresses tell it: of the captures of one second the newest first, so that
    /// who is led to the newest capture by its second finds it.
    pub fn closest_second(&self, key: &Key, time_ms: i64) -> Result<Closest> {
        self.outward(key, time_ms.div_euclid(1000).saturating_mul(1000).saturating_add(999), true)
    }

    fn outward(&self, key: &Key, time_ms: i64, whole_seconds: bool) -> Result<Closest> {
        let places = self.places_with(&Query::new(Match::Exact(key.clone())))?;
        let keys: Vec<Key> = match places.is_empty() {
            true => vec![key.clone()],
            false => places.into_iter().map(|place| key.clone().at_place(place)).collect(),
        };
        let found = keys.iter().map(|key| self.set.find(&looked_for(key))).collect::<Result<Vec<_>>>()?;
        let hidden = self.hidden.now();
        let side = |from_ms, to_ms, direction| {
            let parts = keys.iter().zip(&found).map(|(key, found)| Answer {
                walks: VecDeque::from([found.walk(moments(key, from_ms, to_ms), direction)]),
                span: None,
                direction,
                wanted: Wanted::default(),
                hidden: hidden.clone(),
                left: u64::MAX,
                parts: Vec::new(),
            });
            Answer::merged(parts.collect(), direction, u64::MAX)
        };
        let from = if whole_seconds { time_ms.saturating_add(1) } else { time_ms };
        let before = from.checked_sub(1);
        Ok(Closest {
            time_ms,
            whole_seconds,
            older: before.map(|before| side(None, Some(before), Direction::Backward)),
            younger: side(Some(from), None, Direction::Forward),
            next_older: None,
            next_younger: None,
        })
    }

    /// Shows every matching capture that is not hidden to `look`, in order, without copying it. The cheap way to count
    /// and to sum.
    pub fn each(&self, matching: &Match, mut look: impl FnMut(&Row<'_>) -> ControlFlow<()>) -> Result<()> {
        let mut places = self.places(matching);
        // In the order of keys.
        places.sort_unstable();
        let matching = match places.len() {
            0 | 1 => vec![matching.clone()],
            _ => places.into_iter().map(|place| matching.at_place(place)).collect(),
        };
        for (bounds, filter) in matching.iter().map(stretches) {
            for bounds in bounds {
                let looked = self.each_row(bounds, |row| {
                    match filter.as_ref().is_none_or(|filter| filter.admits(row.surt())) {
                        true => look(row),
                        false => ControlFlow::Continue(()),
                    }
                })?;
                if looked.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The same for all captures whose key, site hash first, is at least `start` and below `end`.
    pub fn each_between(
        &self,
        start: &[u8],
        end: Option<&[u8]>,
        look: impl FnMut(&Row<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        self.each_row(Bounds { start: start.to_vec(), end: end.map(<[u8]>::to_vec) }, look).map(|_| ())
    }

    /// The same, many at a time: with each span come the positions that are hidden.
    pub(crate) fn each_span(
        &self,
        start: &[u8],
        end: Option<&[u8]>,
        mut look: impl FnMut(&Span<CapturesCodec>, &HashSet<Position>),
    ) -> Result<()> {
        let hidden = self.hidden.now();
        let bounds = Bounds { start: start.to_vec(), end: end.map(<[u8]>::to_vec) };
        let mut walk = self.set.walk(bounds, Direction::Forward);
        while let Some(span) = walk.next_span()? {
            look(&span, &hidden);
        }
        Ok(())
    }

    fn each_row(&self, bounds: Bounds, mut look: impl FnMut(&Row<'_>) -> ControlFlow<()>) -> Result<ControlFlow<()>> {
        let hidden = self.hidden.now();
        let mut walk = self.set.walk(bounds, Direction::Forward);
        while let Some(span) = walk.next_span()? {
            for index in span.rows.clone() {
                let Some(row) = span.block.row(index) else { continue };
                let seen = hidden.is_empty() || !hidden.contains(&row.position());
                if seen && look(&row).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// How large the view is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Files.
    pub runs: u64,
    /// Captures in runs.
    pub in_runs: u64,
    /// Captures in the store, about.
    pub fresh: u64,
    /// Bytes of all runs.
    pub run_bytes: u64,
}

/// Many captures on their way into the view; see [`Captures::bulk`].
pub struct Bulk<'a> {
    bulk: runs::Bulk<'a, CapturesCodec>,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'a> Bulk<'a> {
    /// Sorts in chunks of this many bytes instead of [`crate::limits::BULK_CHUNK_BYTES`].
    pub fn chunk_bytes(mut self, bytes: usize) -> Self {
        self.bulk = self.bulk.chunk_bytes(bytes);
        self
    }

    /// Adds a capture, in any order. Refuses what cannot be indexed; others can be added after that.
    pub fn push(&mut self, capture: &Capture) -> Result<()> {
        self.key.clear();
        self.value.clear();
        runs::write_entry(capture, &mut self.key, &mut self.value)?;
        self.bulk.push(&self.key, &self.value)
    }

    /// Puts what was added into `batch`, which the caller commits together with whatever must become true at the same
    /// moment; then [`Staged::publish`] makes it visible.
    pub fn stage(self, batch: &mut OwnedWriteBatch) -> Result<Staged<'a>> {
        Ok(Staged(self.bulk.stage(batch)?))
    }
}

/// Captures that become part of the view when the batch is committed.
#[must_use = "publish it when the batch is committed"]
pub struct Staged<'a>(runs::Staged<'a, CapturesCodec>);

impl Staged<'_> {
    /// Makes the captures visible; the batch they were staged in is committed.
    pub fn publish(self) {
        self.0.publish();
    }
}

/// What exact look-ups ask the filters for.
fn looked_for(key: &Key) -> Vec<u8> {
    [key.as_bytes(), &[0]].concat()
}

/// The captures of one URL between two times, both included.
fn moments(key: &Key, from_ms: Option<i64>, to_ms: Option<i64>) -> Bounds {
    let lowest = |time_ms| {
        let mut bound = Vec::with_capacity(key.as_bytes().len() + 21);
        runs::write_key(key.as_bytes(), Moment { time_ms, position: Position::default() }, &mut bound);
        bound
    };
    let start = from_ms.map_or_else(|| looked_for(key), lowest);
    let end = match to_ms.map(|to| to.checked_add(1)) {
        Some(Some(behind)) => lowest(behind),
        _ => [key.as_bytes(), &[1]].concat(),
    };
    Bounds { start, end: Some(end) }
}

/// A condition on SURTs for matches that are not stretches of the view.
#[derive(Clone, Debug)]
enum SurtFilter {
    Domain(String),
    Range(String, String),
}

impl SurtFilter {
    fn admits(&self, surt: &str) -> bool {
        match self {
            SurtFilter::Domain(host) => {
                surt.strip_prefix(host.as_str()).is_some_and(|rest| rest.starts_with([')', ',', ':']))
            }
            SurtFilter::Range(from, to) => from.as_str() <= surt && surt < to.as_str(),
        }
    }
}

/// The stretches of the view that hold all that matches, ascending, and what remains to be asked of each capture.
fn stretches(matching: &Match) -> (Vec<Bounds>, Option<SurtFilter>) {
    let under = |key: &Key, text: &str| {
        let mut prefix = key.site_hash().to_be_bytes().to_vec();
        prefix.extend_from_slice(text.as_bytes());
        Bounds::prefix(&prefix)
    };
    let everything = || vec![Bounds::prefix(&[])];
    match matching {
        Match::All => (everything(), None),
        Match::Exact(key) => (vec![moments(key, None, None)], None),
        Match::Prefix(key) => (vec![Bounds::prefix(key.as_bytes())], None),
        Match::Host(key) => {
            let (host, _) = key.surt().split_once(')').unwrap_or((key.surt(), ""));
            (vec![under(key, &format!("{host})"))], None)
        }
        Match::Domain(key) => {
            let name = name_in(key);
            if holds_sites(name) {
                return (everything(), Some(SurtFilter::Domain(name.to_string())));
            }
            // In the order of these bytes; `com,example-x` and `com,example1` lie between them and do not belong.
            ([")", ",", ":"].map(|end| under(key, &format!("{name}{end}"))).to_vec(), None)
        }
        Match::Range(from, to) => {
            if from.site_hash() == to.site_hash() {
                let bounds = Bounds { start: from.as_bytes().to_vec(), end: Some(to.as_bytes().to_vec()) };
                // Two sites may share a hash; the order within the hash is that of SURTs all the same.
                return (vec![bounds], None);
            }
            (everything(), Some(SurtFilter::Range(from.surt().to_string(), to.surt().to_string())))
        }
    }
}

/// The name of the host in a key, without its port.
fn name_in(key: &Key) -> &str {
    let (host, _) = key.surt().split_once(')').unwrap_or((key.surt(), ""));
    host.split_once(':').map_or(host, |(name, _)| name)
}

/// Whether names below this one are sites of their own, as those below `uk,co` are.
fn holds_sites(surt_host: &str) -> bool {
    let mut below: Vec<&str> = surt_host.split(',').collect();
    below.push("x");
    below.reverse();
    let below = below.join(".");
    Suffixes::compiled().site(&below, Part::Icann) == below
}

/// Conditions on single captures.
#[derive(Clone, Debug, Default)]
struct Wanted {
    surt: Option<SurtFilter>,
    from_ms: Option<i64>,
    to_ms: Option<i64>,
    status: Option<u16>,
    mime: Option<String>,
    kinds: Vec<CaptureKind>,
}

impl Wanted {
    fn of(query: &Query) -> Wanted {
        Wanted {
            surt: None,
            from_ms: query.from_ms,
            to_ms: query.to_ms,
            status: query.status,
            mime: query.mime.clone(),
            kinds: query.kinds.clone(),
        }
    }

    fn admits(&self, row: &Row<'_>) -> bool {
        self.from_ms.is_none_or(|from| from <= row.time_ms())
            && self.to_ms.is_none_or(|to| row.time_ms() <= to)
            && self.status.is_none_or(|status| status == row.status())
            && self.mime.as_ref().is_none_or(|mime| mime_matches(mime, row.mime()))
            && (self.kinds.is_empty() || self.kinds.contains(&row.kind()))
            && self.surt.as_ref().is_none_or(|surt| surt.admits(row.surt()))
    }
}

fn mime_matches(wanted: &str, found: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(front) => found.get(..front.len()).is_some_and(|found| found.eq_ignore_ascii_case(front)),
        None => found.eq_ignore_ascii_case(wanted),
    }
}

/// Captures one after another. After an error there is nothing more.
pub struct Answer {
    walks: VecDeque<Walk<CapturesCodec>>,
    span: Option<Span<CapturesCodec>>,
    direction: Direction,
    wanted: Wanted,
    hidden: Arc<HashSet<Position>>,
    left: u64,
    /// Of a site that is split: what stands in its places, each with its next one.
    parts: Vec<(Answer, Option<Capture>)>,
}

impl Answer {
    /// One answer of several, in their common order. There is at least one.
    fn merged(mut parts: Vec<Answer>, direction: Direction, left: u64) -> Answer {
        if parts.len() == 1
            && let Some(one) = parts.pop()
        {
            return one;
        }
        Answer {
            walks: VecDeque::new(),
            span: None,
            direction,
            wanted: Wanted::default(),
            hidden: Arc::default(),
            left,
            parts: parts.into_iter().map(|part| (part, None)).collect(),
        }
    }

    /// The next of all parts.
    fn step_merged(&mut self) -> Result<Option<Capture>> {
        for (part, next) in &mut self.parts {
            if next.is_none() {
                *next = part.step()?;
            }
        }
        self.parts.retain(|(_, next)| next.is_some());
        let order = |part: &(Answer, Option<Capture>)| {
            part.1.as_ref().map(|capture| (capture.key.surt().to_owned(), capture.time_ms, capture.position))
        };
        let numbers = 0..self.parts.len();
        let at = match self.direction {
            Direction::Forward => numbers.min_by_key(|number| order(&self.parts[*number])),
            Direction::Backward => numbers.max_by_key(|number| order(&self.parts[*number])),
        };
        let Some(at) = at.filter(|_| self.left > 0) else { return Ok(None) };
        self.left -= 1;
        Ok(self.parts[at].1.take())
    }

    fn step(&mut self) -> Result<Option<Capture>> {
        if !self.parts.is_empty() {
            return self.step_merged();
        }
        while self.left > 0 {
            while let Some(span) = &mut self.span {
                let index = match self.direction {
                    Direction::Forward => span.rows.next(),
                    Direction::Backward => span.rows.next_back(),
                };
                let Some(index) = index else {
                    self.span = None;
                    break;
                };
                let Some(row) = span.block.row(index) else { continue };
                let seen = self.hidden.is_empty() || !self.hidden.contains(&row.position());
                if seen && self.wanted.admits(&row) {
                    self.left -= 1;
                    return Ok(Some(row.capture()));
                }
            }
            let Some(walk) = self.walks.front_mut() else { return Ok(None) };
            self.span = walk.next_span()?;
            if self.span.is_none() {
                self.walks.pop_front();
            }
        }
        Ok(None)
    }
}

impl Iterator for Answer {
    type Item = Result<Capture>;

    fn next(&mut self) -> Option<Result<Capture>> {
        let step = self.step();
        if step.is_err() {
            self.left = 0;
        }
        step.transpose()
    }
}

/// The captures of one URL from a time outward; see [`Captures::closest`].
pub struct Closest {
    time_ms: i64,
    /// What is within a second does not count.
    whole_seconds: bool,
    older: Option<Answer>,
    younger: Answer,
    next_older: Option<Capture>,
    next_younger: Option<Capture>,
}

impl Iterator for Closest {
    type Item = Result<Capture>;

    fn next(&mut self) -> Option<Result<Capture>> {
        let filled = (|| {
            if self.next_older.is_none() {
                self.next_older = self.older.as_mut().and_then(Iterator::next).transpose()?;
            }
            if self.next_younger.is_none() {
                self.next_younger = self.younger.next().transpose()?;
            }
            Ok(())
        })();
        if let Err(error) = filled {
            self.older = None;
            self.younger.left = 0;
            (self.next_older, self.next_younger) = (None, None);
            return Some(Err(error));
        }
        let second = |ms: i64| ms.div_euclid(1000);
        let distance = |capture: &Capture| {
            let within = if self.whole_seconds { 0 } else { capture.time_ms.abs_diff(self.time_ms) };
            (second(capture.time_ms).abs_diff(second(self.time_ms)), within)
        };
        let take_older = match (&self.next_older, &self.next_younger) {
            (Some(older), Some(younger)) => distance(older) <= distance(younger),
            (older, _) => older.is_some(),
        };
        if take_older { self.next_older.take() } else { self.next_younger.take() }.map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_is_about_one_site_or_about_many() {
        let key = |url: &str| Key::of(url);
        let one = key("http://www.example.org/a");
        let site = Some(one.site_hash());
        assert_eq!(Match::Exact(one.clone()).site(), site);
        assert_eq!(Match::Domain(key("http://example.org/")).site(), site);
        assert_eq!(Match::Domain(key("http://org/")).site(), None);
        assert_eq!(Match::Domain(key("http://co.uk/")).site(), None, "whose sites are below it");
        assert_eq!(Match::Range(one.clone(), key("http://example.com/")).site(), None);
        assert_eq!(Match::Range(one.clone(), one).site(), site);
        assert_eq!(Match::All.site(), None);
    }
}
