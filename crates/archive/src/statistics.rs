//! What many captures amount to: counts by host, year, media type and status, versions and duplicates.
//!
//! Captures come in the order of their keys, so that only the payloads of one URL and the count of one host are in memory at a time.
//! A key begins with the hash of its site: the view is cut between hashes into stretches that share neither URL nor host, and
//! threads count them apart. What rows of a block share (key, status, media type) is taken once for all of them.

use crate::captures::{Captures, Match};
use crate::limits::{BLOCK_ROWS_MAX, STATISTICS_HOSTS_MAX, STATISTICS_STRETCHES, STATISTICS_VALUES_MAX};
use crate::runs::{AnyBlock, CapturesBlock, CapturesCodec, Row, Span};
use crate::{CaptureKind, Position, Result};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Sums over captures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Captures.
    pub captures: u64,
    /// Different URLs.
    pub urls: u64,
    /// Different hosts.
    pub hosts: u64,
    /// Captures of a URL whose payload differs from all its earlier ones.
    pub versions: u64,
    /// Captures of a URL whose payload was there before, revisits included.
    pub duplicates: u64,
    /// Captures that are revisit records.
    pub revisits: u64,
    /// Bytes of the records, as compressed in their files.
    pub bytes: u64,
    /// The time of the first capture.
    pub earliest_ms: Option<i64>,
    /// The time of the last one.
    pub latest_ms: Option<i64>,
    /// Captures by media type; `(none)` and `(revisit)` where there is none.
    pub mimes: Values,
    /// Captures by status; 0 where there is none.
    pub statuses: BTreeMap<u16, u64>,
    /// Captures by year.
    pub years: BTreeMap<i64, u64>,
    /// The hosts with most captures, as SURT (`org,example`), the largest first.
    pub largest_hosts: Vec<(String, u64)>,
}

/// Captures by value, as long as there are not too many different ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// By value.
    pub seen: BTreeMap<String, u64>,
    /// Of all values beyond [`STATISTICS_VALUES_MAX`].
    pub others: u64,
}

impl Values {
    fn add(&mut self, value: &str, count: u64) {
        if let Some(known) = self.seen.get_mut(value) {
            *known += count;
        } else if self.seen.len() < STATISTICS_VALUES_MAX {
            self.seen.insert(value.to_owned(), count);
        } else {
            self.others += count;
        }
    }
}

impl Statistics {
    /// Counts the captures that match and belong, on so many threads.
    pub fn of(
        captures: &Captures,
        matching: &Match,
        belongs: impl Fn(&Row<'_>) -> bool + Sync,
        threads: usize,
    ) -> Result<Statistics> {
        if *matching != Match::All || threads < 2 {
            let mut count = Count::default();
            captures.each(matching, |row| {
                if belongs(row) {
                    count.add(row);
                }
                ControlFlow::Continue(())
            })?;
            return Ok(count.ended());
        }
        let next = AtomicUsize::new(0);
        let total = Mutex::new(Ok(Statistics::default()));
        let work = || {
            loop {
                let stretch = next.fetch_add(1, Ordering::Relaxed);
                if stretch >= STATISTICS_STRETCHES {
                    return;
                }
                let edge = |stretch: usize| ((stretch << 16) / STATISTICS_STRETCHES) as u16;
                let end = (stretch + 1 < STATISTICS_STRETCHES).then(|| edge(stretch + 1).to_be_bytes());
                let mut count = Count::default();
                let done = captures.each_span(
                    &edge(stretch).to_be_bytes(),
                    end.as_ref().map(|end| end.as_slice()),
                    |span, hidden| count.add_span(span, hidden, &belongs),
                );
                let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
                match (&mut *total, done) {
                    (Ok(total), Ok(())) => total.add(count.ended()),
                    (total, Err(error)) => *total = Err(error),
                    (Err(_), Ok(())) => return,
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads.min(STATISTICS_STRETCHES) {
                scope.spawn(work);
            }
            work();
        });
        total.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds those of other hosts.
    fn add(&mut self, other: Statistics) {
        self.captures += other.captures;
        self.urls += other.urls;
        self.hosts += other.hosts;
        self.versions += other.versions;
        self.duplicates += other.duplicates;
        self.revisits += other.revisits;
        self.bytes += other.bytes;
        self.earliest_ms = [self.earliest_ms, other.earliest_ms].into_iter().flatten().min();
        self.latest_ms = self.latest_ms.max(other.latest_ms);
        self.mimes.others += other.mimes.others;
        other.mimes.seen.iter().for_each(|(mime, count)| self.mimes.add(mime, *count));
        other.statuses.iter().for_each(|(status, count)| *self.statuses.entry(*status).or_default() += count);
        other.years.iter().for_each(|(year, count)| *self.years.entry(*year).or_default() += count);
        self.largest_hosts.extend(other.largest_hosts);
        keep_largest(&mut self.largest_hosts);
    }
}

/// Equal counts in the order of names, so that the order of counting does not show.
fn keep_largest(hosts: &mut Vec<(String, u64)>) {
    hosts.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    hosts.truncate(STATISTICS_HOSTS_MAX);
}

/// The year of a moment, by arithmetic: captures of one URL are of many years, and a date written out and read back for each would take
/// longer than all the rest.
fn year_of(time_ms: i64) -> i64 {
    // Days since 0000-03-01, so that a leap day ends its year; 146,097 days are 400 years.
    let days = time_ms.div_euclid(86_400_000) + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    // January and February are counted to the year before.
    era * 400 + year + i64::from(of_year >= 306)
}

/// Payloads of one URL. Most have few, and these are told apart without hashing.
#[derive(Default)]
struct Payloads {
    few: Vec<u64>,
    many: HashSet<u64>,
}

impl Payloads {
    const FEW: usize = 32;

    /// Whether it is new.
    fn insert(&mut self, payload: u64) -> bool {
        if !self.many.is_empty() {
            return self.many.insert(payload);
        }
        if self.few.contains(&payload) {
            return false;
        }
        self.few.push(payload);
        if self.few.len() > Self::FEW {
            self.many.extend(self.few.drain(..));
        }
        true
    }

    fn clear(&mut self) {
        self.few.clear();
        if !self.many.is_empty() {
            self.many = HashSet::new();
        }
    }
}

/// Years that nearly all captures are of, each counted in a place of its own.
const USUAL_YEARS: std::ops::Range<i64> = 1970..2226;

/// A stretch of captures being counted.
struct Count {
    sums: Statistics,
    mimes: HashMap<String, u64>,
    years: [u64; (USUAL_YEARS.end - USUAL_YEARS.start) as usize],
    key: Vec<u8>,
    host: String,
    in_host: u64,
    payloads: Payloads,
}

impl Default for Count {
    fn default() -> Count {
        Count {
            sums: Statistics::default(),
            mimes: HashMap::new(),
            years: [0; (USUAL_YEARS.end - USUAL_YEARS.start) as usize],
            key: Vec::new(),
            host: String::new(),
            in_host: 0,
            payloads: Payloads::default(),
        }
    }
}

/// Eight bytes of a digest tell the payloads of one URL apart.
fn payload_of(row: &Row<'_>) -> Option<u64> {
    row.digest().and_then(|digest| digest.bytes().first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes)))
}

impl Count {
    fn add_span(
        &mut self,
        span: &Span<CapturesCodec>,
        hidden: &HashSet<Position>,
        belongs: &(impl Fn(&Row<'_>) -> bool + Sync),
    ) {
        let counts = |row: &Row<'_>| (hidden.is_empty() || !hidden.contains(&row.position())) && belongs(row);
        match &span.block {
            AnyBlock::Packed(block) => self.add_block(block, span.rows.clone(), counts),
            AnyBlock::Fresh(_) => {
                let rows = span.rows.clone().filter_map(|index| span.block.row(index));
                rows.filter(counts).for_each(|row| self.add(&row));
            }
        }
    }

    fn add_block(&mut self, block: &CapturesBlock, rows: std::ops::Range<usize>, counts: impl Fn(&Row<'_>) -> bool) {
        let mut with_note = [0u64; BLOCK_ROWS_MAX];
        for (key, rows) in block.keys_in(rows) {
            let mut begun = false;
            for index in rows {
                let row = Row::packed(block, index);
                if !counts(&row) {
                    continue;
                }
                if !begun {
                    self.begin_url(key, row.surt());
                    begun = true;
                }
                let note = block.note_of(index);
                with_note[note] += 1;
                let revisit = || block.kind_of_note(note) == CaptureKind::Revisit;
                self.see(block.time_ms(index), block.length(index), payload_of(&row), revisit);
            }
        }
        for (note, count) in with_note.into_iter().enumerate().take(block.notes()).filter(|(_, count)| *count > 0) {
            let note = block.note(note);
            self.note(note.kind, note.status, note.mime, count);
        }
    }

    fn add(&mut self, row: &Row<'_>) {
        let kind = row.kind();
        self.begin_url(row.url_key(), row.surt());
        self.see(row.time_ms(), row.length(), payload_of(row), || kind == CaptureKind::Revisit);
        self.note(kind, row.status(), row.mime(), 1);
    }

    /// What each capture has of its own.
    fn see(&mut self, time_ms: i64, bytes: u64, payload: Option<u64>, is_revisit: impl Fn() -> bool) {
        self.sums.captures += 1;
        self.sums.bytes += bytes;
        self.in_host += 1;
        match payload {
            Some(payload) if !self.payloads.insert(payload) => self.sums.duplicates += 1,
            None if is_revisit() => self.sums.duplicates += 1,
            _ => self.sums.versions += 1,
        }
        let year = year_of(time_ms);
        match USUAL_YEARS.contains(&year) {
            true => self.years[(year - USUAL_YEARS.start) as usize] += 1,
            false => *self.sums.years.entry(year).or_default() += 1,
        }
        self.sums.earliest_ms = Some(self.sums.earliest_ms.map_or(time_ms, |earliest| earliest.min(time_ms)));
        self.sums.latest_ms = self.sums.latest_ms.max(Some(time_ms));
    }

    /// What so many captures have in common.
    fn note(&mut self, kind: CaptureKind, status: u16, mime: &str, count: u64) {
        if kind == CaptureKind::Revisit {
            self.sums.revisits += count;
        }
        let mime = match mime {
            "" if kind == CaptureKind::Revisit => "(revisit)",
            "" => "(none)",
            mime => mime,
        };
        if let Some(known) = self.mimes.get_mut(mime) {
            *known += count;
        } else if self.mimes.len() < STATISTICS_VALUES_MAX {
            self.mimes.insert(mime.to_owned(), count);
        } else {
            self.sums.mimes.others += count;
        }
        *self.sums.statuses.entry(status).or_default() += count;
    }

    fn begin_url(&mut self, key: &[u8], surt: &str) {
        if key == self.key && self.sums.urls > 0 {
            return;
        }
        self.sums.urls += 1;
        self.key.clear();
        self.key.extend_from_slice(key);
        self.payloads.clear();
        let host = surt.split(')').next().unwrap_or(surt);
        if host != self.host || self.sums.urls == 1 {
            self.end_host();
            self.sums.hosts += 1;
            host.clone_into(&mut self.host);
        }
    }

    fn end_host(&mut self) {
        if self.in_host > 0 {
            self.sums.largest_hosts.push((self.host.clone(), self.in_host));
            self.in_host = 0;
        }
        if self.sums.largest_hosts.len() >= 2 * STATISTICS_HOSTS_MAX {
            keep_largest(&mut self.sums.largest_hosts);
        }
    }

    fn ended(mut self) -> Statistics {
        self.end_host();
        keep_largest(&mut self.sums.largest_hosts);
        let mut mimes: Vec<(String, u64)> = self.mimes.into_iter().collect();
        mimes.sort_unstable();
        mimes.iter().for_each(|(mime, count)| self.sums.mimes.add(mime, *count));
        let usual = USUAL_YEARS.zip(self.years).filter(|(_, count)| *count > 0);
        usual.for_each(|(year, count)| *self.sums.years.entry(year).or_default() += count);
        self.sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skep_warc::date;

    #[test]
    fn years_begin_and_end_where_dates_say() {
        for year in (1600..2500).chain([1, 9999]) {
            let begin = date::parse_ms(format!("{year:04}-01-01T00:00:00Z").as_bytes()).unwrap();
            assert_eq!((year_of(begin), year_of(begin - 1)), (year, year - 1));
            let leap_day = date::parse_ms(format!("{year:04}-03-01T00:00:00Z").as_bytes()).unwrap() - 1;
            assert_eq!(year_of(leap_day), year);
        }
    }
}
