//! What many captures amount to: counts by host, year, media type and status, versions and duplicates.
//!
//! Captures come in the order of their keys, so that only the payloads of one URL and the count of one host are in memory at a time.
//! A key begins with the hash of its site: the view is cut between hashes into stretches that share neither URL nor host, and
//! threads count them apart.

use crate::captures::{Captures, Match};
use crate::limits::{STATISTICS_HOSTS_MAX, STATISTICS_STRETCHES, STATISTICS_VALUES_MAX};
use crate::runs::Row;
use crate::{CaptureKind, Result};
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
                count.add(row, &belongs);
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
                let done = captures.each_between(
                    &edge(stretch).to_be_bytes(),
                    end.as_ref().map(|end| end.as_slice()),
                    |row| {
                        count.add(row, &belongs);
                        ControlFlow::Continue(())
                    },
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

/// A stretch of captures being counted.
#[derive(Default)]
struct Count {
    sums: Statistics,
    mimes: HashMap<String, u64>,
    key: Vec<u8>,
    host: String,
    in_host: u64,
    payloads: HashSet<u64>,
}

impl Count {
    fn add(&mut self, row: &Row<'_>, belongs: &(impl Fn(&Row<'_>) -> bool + Sync)) {
        if !belongs(row) {
            return;
        }
        let (time_ms, kind) = (row.time_ms(), row.kind());
        self.sums.captures += 1;
        self.sums.bytes += row.length();
        self.sums.revisits += u64::from(kind == CaptureKind::Revisit);
        if row.url_key() != self.key {
            self.next_url(row);
        }
        self.in_host += 1;
        // Eight bytes of a digest tell the payloads of one URL apart.
        let payload = row.digest().and_then(|digest| digest.bytes().first_chunk::<8>().map(|b| u64::from_le_bytes(*b)));
        match payload {
            Some(payload) if !self.payloads.insert(payload) => self.sums.duplicates += 1,
            None if kind == CaptureKind::Revisit => self.sums.duplicates += 1,
            _ => self.sums.versions += 1,
        }
        let mime = match row.mime() {
            "" if kind == CaptureKind::Revisit => "(revisit)",
            "" => "(none)",
            mime => mime,
        };
        if let Some(count) = self.mimes.get_mut(mime) {
            *count += 1;
        } else if self.mimes.len() < STATISTICS_VALUES_MAX {
            self.mimes.insert(mime.to_owned(), 1);
        } else {
            self.sums.mimes.others += 1;
        }
        *self.sums.statuses.entry(row.status()).or_default() += 1;
        *self.sums.years.entry(year_of(time_ms)).or_default() += 1;
        self.sums.earliest_ms = Some(self.sums.earliest_ms.map_or(time_ms, |earliest| earliest.min(time_ms)));
        self.sums.latest_ms = self.sums.latest_ms.max(Some(time_ms));
    }

    fn next_url(&mut self, row: &Row<'_>) {
        self.sums.urls += 1;
        self.key.clear();
        self.key.extend_from_slice(row.url_key());
        self.payloads.clear();
        let surt = row.surt();
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
