//! One engine for three dialects: which captures, in which order, how many.
//!
//! ```text
//!  captures of the keys asked for ─▶ visible ─▶ page ─▶ originals ─▶ filters ─▶ collapse ─▶ offset, limit ─▶ out
//! ```
//! Lines go out one by one as they are found; only the last lines of a long answer, or an answer turned round after collapsing, are
//! held, and of those no more than a bound.

use super::filter::Filter;
use super::line::{Field, Line};
use crate::find::Looking;
use crate::limits::ORIGINALS_MAX;
use crate::time;
use crate::trouble::Trouble;
use skep_archive::captures::{Match, Place, Query};
use skep_archive::runs::Direction;
use skep_archive::{Capture, CaptureKind, Key, Position};
use skep_url::Scan;
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;

/// Lines of one block: what pages are counted in.
pub const BLOCK_LINES: u64 = 3000;
/// Lines held to be turned round or to find the last ones.
const HELD_LINES_MAX: u64 = 150_000;
/// Digests of one URL remembered to count duplicates.
const DIGESTS_MAX: usize = 1 << 16;
/// Captures between two looks at whether anybody still listens.
const LISTEN_ROWS: u64 = 2048;

/// In which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By key and time.
    Forward,
    /// The other way round.
    Reverse,
    /// From a moment outward; for one key only.
    Closest(i64),
}

/// Neighbours that agree in a field, or in its first characters, become one line.
#[derive(Clone, Debug)]
pub struct Collapse {
    /// In these fields, each with so many characters.
    pub fields: Vec<(Field, Option<usize>)>,
}

/// Where an answer left off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The last key.
    pub key: Key,
    /// The last second.
    pub digits: String,
    /// The last record; without it everything of that second has been told.
    pub position: Option<Position>,
}

/// What is asked.
pub struct Ask {
    pub scan: Scan,
    pub from_ms: Option<i64>,
    pub to_ms: Option<i64>,
    pub order: Order,
    pub filters: Vec<Filter>,
    pub collapse: Vec<Collapse>,
    /// Of collapsed neighbours the last one stays.
    pub keep_last: bool,
    pub offset: u64,
    pub limit: u64,
    /// The last lines instead of the first.
    pub from_end: bool,
    pub resolve: bool,
    pub count_duplicates: bool,
    /// Lines say how many were passed over behind them.
    pub count_skipped: bool,
    pub after: Option<Resume>,
    /// Blocks from the first of these up to the second.
    pub blocks: Option<(u64, u64)>,
    /// Of so many slices nobody told anything; known when the first line is.
    pub silent: Cell<usize>,
}

impl Ask {
    /// Everything of a scan, in order.
    pub fn of(scan: Scan) -> Ask {
        Ask {
            scan,
            from_ms: None,
            to_ms: None,
            order: Order::Forward,
            filters: Vec::new(),
            collapse: Vec::new(),
            keep_last: false,
            offset: 0,
            limit: u64::MAX,
            from_end: false,
            resolve: false,
            count_duplicates: false,
            count_skipped: false,
            after: None,
            blocks: None,
            silent: Cell::new(0),
        }
    }
}

/// Takes lines; breaks when it has enough.
pub type Take<'t> = dyn FnMut(&Line) -> ControlFlow<()> + 't;

/// Which keys of the view a scan covers.
pub fn matching(scan: &Scan) -> Match {
    match scan.site_hash {
        Some(hash) if scan.kind == skep_url::Match::Exact => Match::Exact(Key::from_parts(hash, &scan.start)),
        Some(hash) => {
            let (from, to) = scan.keys(hash);
            Match::Range(from, to)
        }
        None => Match::Range(Key::from_parts(0, &scan.start), Key::from_parts(u32::MAX, &scan.end)),
    }
}

type Captures<'l> = Box<dyn Iterator<Item = Result<Capture, Trouble>> + 'l>;

impl Looking<'_> {
    /// The captures that a scan covers, visible ones only.
    fn captures<'l>(&'l self, ask: &'l Ask, direction: Direction) -> Result<Captures<'l>, Trouble> {
        let mut query = Query {
            from_ms: ask.from_ms,
            to_ms: ask.to_ms,
            direction,
            kinds: vec![CaptureKind::Response, CaptureKind::Revisit, CaptureKind::Resource],
            ..Query::new(matching(&ask.scan))
        };
        if let Some(after) = ask.after.as_ref().filter(|_| direction == Direction::Forward) {
            // From the beginning of that second on; what was told of it is passed over.
            let second = time::earliest(&after.digits).unwrap_or(i64::MIN);
            query.after = Some(Place {
                key: after.key.clone(),
                time_ms: second.saturating_sub(1),
                position: Position::default(),
            });
        }
        let found = match self.others().is_none() && query.matching.site().is_none() {
            true => self.portal.query_here(&query)?,
            false => {
                let (found, silent) = self.portal.spread(&query)?;
                ask.silent.set(silent);
                found
            }
        };
        let shown = |capture: Result<Capture, Trouble>| match capture {
            Ok(capture) => self.shows(&capture).then_some(Ok(capture)),
            Err(trouble) => Some(Err(trouble)),
        };
        let found = found.filter_map(shown);
        let Some(after) = &ask.after else { return Ok(Box::new(found)) };
        // Wherever captures of one site are filed, they come in the order of their SURTs.
        let of_one_site = query.matching.site().is_some();
        let order = move |key: &Key| if of_one_site { key.surt().as_bytes().to_vec() } else { key.as_bytes().to_vec() };
        let behind = move |capture: &Capture| {
            (
                order(&capture.key),
                time::digits(capture.time_ms).as_str(),
                Some(capture.position).filter(|_| after.position.is_some()),
            ) > (order(&after.key), after.digits.as_str(), after.position)
        };
        Ok(Box::new(found.filter(move |capture| capture.as_ref().map_or(true, behind))))
    }

    /// How many blocks a scan has.
    pub fn blocks(&self, ask: &Ask, is_gone: &dyn Fn() -> bool) -> Result<u64, Trouble> {
        let mut rows = 0u64;
        for capture in self.captures(ask, Direction::Forward)? {
            capture?;
            rows += 1;
            if rows.is_multiple_of(LISTEN_ROWS) && is_gone() {
                break;
            }
        }
        Ok(rows.div_ceil(BLOCK_LINES))
    }

    /// Answers. Returns where to go on, if there was more than the limit.
    pub fn answer(
        &self,
        ask: &Ask,
        is_gone: &dyn Fn() -> bool,
        take: &mut Take<'_>,
    ) -> Result<Option<Resume>, Trouble> {
        let plain = ask.collapse.is_empty() && !ask.count_skipped && !ask.count_duplicates && ask.blocks.is_none();
        match ask.order {
            Order::Closest(time_ms) => {
                let key = Key::of_surt(&ask.scan.start);
                let within = |c: &Capture| {
                    ask.from_ms.is_none_or(|from| from <= c.time_ms) && ask.to_ms.is_none_or(|to| c.time_ms <= to)
                };
                let found = self.portal.closest(&key, time_ms)?;
                let shown = |capture: Result<Capture, Trouble>| match capture {
                    Ok(capture) => (self.shows(&capture) && within(&capture)).then_some(Ok(capture)),
                    Err(trouble) => Some(Err(trouble)),
                };
                self.through(ask, Box::new(found.filter_map(shown)), is_gone, take)
            }
            Order::Forward if !ask.from_end => {
                self.through(ask, self.captures(ask, Direction::Forward)?, is_gone, take)
            }
            Order::Reverse if plain && !ask.from_end => {
                self.through(ask, self.captures(ask, Direction::Backward)?, is_gone, take)
            }
            order => {
                let held = self.last(ask, plain, is_gone)?;
                let mut go_on = true;
                let mut each = |line: &Line| go_on = go_on && take(line).is_continue();
                match order {
                    Order::Reverse => held.iter().rev().for_each(&mut each),
                    _ => held.iter().for_each(&mut each),
                }
                Ok(None)
            }
        }
    }

    /// The last lines, in order.
    fn last(&self, ask: &Ask, plain: bool, is_gone: &dyn Fn() -> bool) -> Result<VecDeque<Line>, Trouble> {
        let bound = ask.limit.min(HELD_LINES_MAX);
        let mut held: VecDeque<Line> = VecDeque::new();
        if plain {
            let bounded = Ask { limit: bound, ..ask.without_bounds() };
            self.through_owned(&bounded, self.captures(ask, Direction::Backward)?, is_gone, &mut |line| {
                held.push_front(line);
                ControlFlow::Continue(())
            })?;
        } else {
            let unbounded = ask.without_bounds();
            self.through_owned(&unbounded, self.captures(ask, Direction::Forward)?, is_gone, &mut |line| {
                held.push_back(line);
                if held.len() as u64 > bound {
                    held.pop_front();
                }
                ControlFlow::Continue(())
            })?;
        }
        Ok(held)
    }

    fn through(
        &self,
        ask: &Ask,
        captures: Captures<'_>,
        is_gone: &dyn Fn() -> bool,
        take: &mut Take<'_>,
    ) -> Result<Option<Resume>, Trouble> {
        self.through_owned(ask, captures, is_gone, &mut |line| take(&line))
    }

    /// From captures to lines.
    fn through_owned(
        &self,
        ask: &Ask,
        captures: Captures<'_>,
        is_gone: &dyn Fn() -> bool,
        take: &mut dyn FnMut(Line) -> ControlFlow<()>,
    ) -> Result<Option<Resume>, Trouble> {
        let mut out = Out { left: ask.limit, skip: ask.offset, held: None, last: None, more: false, take };
        let mut last_values: Vec<Option<Vec<String>>> = vec![None; ask.collapse.len()];
        let mut duplicates = Duplicates::default();
        for (row, capture) in (0u64..).zip(captures) {
            let capture = capture?;
            if row.is_multiple_of(LISTEN_ROWS) && row > 0 && is_gone() {
                return Ok(None);
            }
            match ask.blocks {
                Some((first, _)) if row < first.saturating_mul(BLOCK_LINES) => continue,
                Some((_, end)) if row >= end.saturating_mul(BLOCK_LINES) => break,
                _ => {}
            }
            let mut line = Line::of(self.portal, capture);
            if ask.resolve {
                self.resolve(&mut line)?;
            }
            let admitted = ask.filters.iter().all(|filter| filter.admits(&line));
            let collapsed = admitted
                && ask.collapse.iter().zip(&mut last_values).any(|(collapse, last)| {
                    let now: Vec<String> =
                        collapse.fields.iter().map(|(field, count)| beginning(&line.text(*field), *count)).collect();
                    let same = last.as_ref() == Some(&now);
                    *last = Some(now);
                    same
                });
            if !admitted || collapsed && !ask.keep_last {
                if ask.count_skipped {
                    out.passed_over(&line);
                }
                continue;
            }
            if ask.count_duplicates {
                duplicates.count(self, &mut line)?;
            }
            let holds = ask.count_skipped || ask.keep_last;
            let flow = if collapsed { out.replace(line) } else { out.put(line, holds) };
            if flow.is_break() {
                break;
            }
        }
        out.end();
        Ok(out.more.then(|| out.last.take()).flatten())
    }

    /// Looks for what a revisit stands for, in the index alone.
    fn resolve(&self, line: &mut Line) -> Result<(), Trouble> {
        line.resolved = true;
        let (CaptureKind::Revisit, Some(digest)) = (line.capture.kind, line.capture.digest) else { return Ok(()) };
        let views = self.portal.archive.views();
        let mut originals = views.digests.originals(&digest, ORIGINALS_MAX)?;
        originals.sort_by_key(|original| original.key != line.capture.key);
        for original in originals {
            for capture in views.captures.closest(&original.key, original.time_ms)? {
                let capture = capture?;
                if capture.time_ms != original.time_ms {
                    break;
                }
                if capture.position == original.position && self.portal.access.shows(&capture, self.may, self.now_ms) {
                    let file = self.portal.file_name(&capture);
                    line.original = Some(Box::new((capture, file)));
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl Ask {
    fn without_bounds(&self) -> Ask {
        Ask {
            scan: self.scan.clone(),
            filters: self.filters.clone(),
            collapse: self.collapse.clone(),
            keep_last: self.keep_last,
            resolve: self.resolve,
            count_duplicates: self.count_duplicates,
            count_skipped: self.count_skipped,
            blocks: self.blocks,
            ..Ask::of(self.scan.clone())
        }
    }
}

fn beginning(text: &str, count: Option<usize>) -> String {
    match count {
        Some(count) => text.chars().take(count).collect(),
        None => text.to_owned(),
    }
}

/// Lines on their way out: one is held back where something may still be told of it.
struct Out<'t> {
    left: u64,
    skip: u64,
    held: Option<Line>,
    last: Option<Resume>,
    more: bool,
    take: &'t mut dyn FnMut(Line) -> ControlFlow<()>,
}

impl Out<'_> {
    fn put(&mut self, line: Line, hold: bool) -> ControlFlow<()> {
        if self.skip > 0 {
            self.skip -= 1;
            return ControlFlow::Continue(());
        }
        if self.left == 0 {
            self.more = true;
            return ControlFlow::Break(());
        }
        self.left -= 1;
        let capture = &line.capture;
        self.last = Some(Resume {
            key: capture.key.clone(),
            digits: time::digits(capture.time_ms),
            position: Some(capture.position),
        });
        match hold {
            true => self.held.replace(line).map_or(ControlFlow::Continue(()), |line| (self.take)(line)),
            false => (self.take)(line),
        }
    }

    fn replace(&mut self, line: Line) -> ControlFlow<()> {
        self.held = Some(line);
        ControlFlow::Continue(())
    }

    fn passed_over(&mut self, line: &Line) {
        if let Some(held) = &mut self.held {
            held.skipped += 1;
            held.end_timestamp = Some(time::digits(line.capture.time_ms));
        }
    }

    fn end(&mut self) {
        if let Some(line) = self.held.take() {
            let _that_was_the_last = (self.take)(line);
        }
    }
}

/// How often each payload of a URL was seen.
#[derive(Default)]
struct Duplicates {
    key: Option<Key>,
    seen: HashMap<String, u64>,
}

impl Duplicates {
    /// Counts a line: how often its payload was there before.
    fn count(&mut self, look: &Looking<'_>, line: &mut Line) -> Result<(), Trouble> {
        if self.key.as_ref() != Some(&line.capture.key) || self.seen.len() >= DIGESTS_MAX {
            self.key = Some(line.capture.key.clone());
            self.seen.clear();
        }
        let Some(digest) = line.get(Field::Digest).map(|digest| digest.into_owned()) else { return Ok(()) };
        let count = self.seen.entry(digest).or_insert(0);
        line.duplicates = *count;
        *count += 1;
        if line.capture.kind == CaptureKind::Revisit && line.original.is_none() {
            look.resolve(line)?;
        }
        Ok(())
    }
}
