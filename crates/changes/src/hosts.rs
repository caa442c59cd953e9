//! Hosts: which are out of reach, which are back. What is known of a host is kept day by day, and days can be joined in any
//! order, any number of times.
//!
//! ```text
//!  keyspace view-changes-days   | host … | 00 | day 4 BE | ─▶  | 1 | alive 1, time 8, position 12 | failed 1, time 8, position 12 |
//!                                                              | template told 1, position 12 | templates n 1 ( place 8 ) … | pages 128 |
//!                               | host … | 00 | ffffffff | ─▶  outages told: ( time 8, position 12, up 1 ) …
//! ```
//! Numbers are little-endian unless said otherwise.

use std::collections::BTreeMap;

use skep_archive::{Archive, Batch, Position, WriterKey};
use skep_page::compare::{Class, Classes};

use crate::error::Result;
use crate::event::{Details, Event, HOST, Place};
use crate::limits::TEMPLATES_MAX;

pub(crate) const DAYS: &str = "changes-days";
const DAY_MS: i64 = 86_400_000;
const OUTAGES: u32 = u32::MAX;

/// A moment, and the record that tells of it.
pub type Moment = (i64, Position);

/// A host on a day.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Day {
    /// The first answer.
    pub alive: Option<Moment>,
    /// The first failure to reach it.
    pub failed: Option<Moment>,
    /// How many of its pages were visited, about.
    pub pages: Pages,
    /// What became of places that many pages have, and that did so in many of them.
    pub templates: Vec<u64>,
    /// The event that tells of it.
    pub template_told: Option<Position>,
}

/// About how many different things were counted, however often each: a sketch that can be joined with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pages([u8; 128]);

impl Default for Pages {
    fn default() -> Pages {
        Pages([0; 128])
    }
}

impl Pages {
    /// Counts a page, by a hash of its name.
    pub fn count(&mut self, hash: u64) {
        let (at, rest) = ((hash & 127) as usize, hash >> 7);
        self.0[at] = self.0[at].max(rest.trailing_zeros().min(57) as u8 + 1);
    }

    /// How many there are, about: exact for few, within a tenth or so for many.
    pub fn estimate(&self) -> f64 {
        let size = self.0.len() as f64;
        let sum: f64 = self.0.iter().map(|rank| 0.5_f64.powi(i32::from(*rank))).sum();
        let all = 0.7213 / (1.0 + 1.079 / size) * size * size / sum;
        let unseen = self.0.iter().filter(|rank| **rank == 0).count() as f64;
        if all <= 2.5 * size && unseen > 0.0 { size * (size / unseen).ln() } else { all }
    }

    fn join(&mut self, other: &Pages) {
        for (rank, other) in self.0.iter_mut().zip(other.0) {
            *rank = (*rank).max(other);
        }
    }
}

impl Day {
    fn join(&mut self, other: &Day) {
        let first = |a: Option<Moment>, b: Option<Moment>| a.into_iter().chain(b).min();
        self.alive = first(self.alive, other.alive);
        self.failed = first(self.failed, other.failed);
        self.pages.join(&other.pages);
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = vec![1];
        for moment in [self.alive, self.failed] {
            let (time_ms, position) = moment.unwrap_or_default();
            out.push(moment.is_some().into());
            out.extend_from_slice(&time_ms.to_le_bytes());
            put_position(position, &mut out);
        }
        out.push(self.template_told.is_some().into());
        put_position(self.template_told.unwrap_or_default(), &mut out);
        out.push(self.templates.len() as u8);
        self.templates.iter().for_each(|place| out.extend_from_slice(&place.to_le_bytes()));
        out.extend_from_slice(&self.pages.0);
        out
    }

    fn decode(bytes: &[u8]) -> Option<Day> {
        let (head, rest) = bytes.split_first_chunk::<57>()?;
        (head[0] == 1).then_some(())?;
        let moment = |at: usize| {
            let time_ms = head[at + 1..at + 9].try_into().map(i64::from_le_bytes).ok()?;
            (head[at] == 1).then_some((time_ms, position_at(&head[at + 9..at + 21])?))
        };
        let (places, pages) = rest.split_at_checked(usize::from(head[56]) * 8)?;
        let place = |place: &[u8]| place.try_into().map(u64::from_le_bytes).unwrap_or_default();
        Some(Day {
            alive: moment(1),
            failed: moment(22),
            template_told: if head[43] == 1 { position_at(&head[44..56]) } else { None },
            templates: places.chunks_exact(8).map(place).collect(),
            pages: Pages(pages.try_into().ok()?),
        })
    }
}

fn put_position(position: Position, out: &mut Vec<u8>) {
    for part in [position.writer.0, position.segment, position.record] {
        out.extend_from_slice(&part.to_le_bytes());
    }
}

fn position_at(bytes: &[u8]) -> Option<Position> {
    let four = |at: usize| bytes.get(at..at + 4)?.try_into().map(u32::from_le_bytes).ok();
    Some(Position { writer: WriterKey(four(0)?), segment: four(4)?, record: four(8)? })
}

/// The day of a moment, in an order that survives as bytes.
pub fn day_of(time_ms: i64) -> u32 {
    (time_ms.div_euclid(DAY_MS).clamp(-(1 << 30), 1 << 30) + (1 << 30)) as u32
}

/// The row of a host and a day.
pub fn row(host: &str, day: u32) -> Vec<u8> {
    let mut row = host.as_bytes().to_vec();
    row.push(0);
    row.extend_from_slice(&day.to_be_bytes());
    row
}

/// What was learned about hosts since the last batch.
#[derive(Debug, Default)]
pub struct Hosts(BTreeMap<(String, u32), Day>);

impl Hosts {
    /// An answer came from a page of the host.
    pub fn alive(&mut self, host: &str, time_ms: i64, position: Position, page: u64) {
        let day = self.day(host, time_ms);
        day.alive = Some(day.alive.map_or((time_ms, position), |first| first.min((time_ms, position))));
        day.pages.count(page);
    }

    /// It could not be reached.
    pub fn failed(&mut self, host: &str, time_ms: i64, position: Position) {
        let day = self.day(host, time_ms);
        day.failed = Some(day.failed.map_or((time_ms, position), |first| first.min((time_ms, position))));
    }

    fn day(&mut self, host: &str, time_ms: i64) -> &mut Day {
        self.0.entry((host.to_owned(), day_of(time_ms))).or_default()
    }

    /// Joins what was learned with what is kept. What comes back is not written yet.
    pub fn join(self, batch: &Batch<'_>) -> Result<BTreeMap<(String, u32), Day>> {
        let mut joined = BTreeMap::new();
        for ((host, day), learned) in self.0 {
            let mut known =
                batch.get(DAYS, &row(&host, day))?.and_then(|value| Day::decode(&value)).unwrap_or_default();
            known.join(&learned);
            joined.insert((host, day), known);
        }
        Ok(joined)
    }
}

/// One day of a host as it is kept.
pub fn kept(batch: &Batch<'_>, host: &str, day: u32) -> Result<Day> {
    Ok(batch.get(DAYS, &row(host, day))?.and_then(|value| Day::decode(&value)).unwrap_or_default())
}

/// Writes days.
pub fn write(batch: &mut Batch<'_>, days: &BTreeMap<(String, u32), Day>) {
    for ((host, day), known) in days {
        let known = Day { templates: known.templates.iter().take(TEMPLATES_MAX).copied().collect(), ..known.clone() };
        batch.put(DAYS, &row(host, *day), &known.encode());
    }
}

/// What there is to tell of hosts that are out of reach or back, given the days that changed.
pub fn outages(
    archive: &Archive,
    batch: &mut Batch<'_>,
    changed: &BTreeMap<(String, u32), Day>,
    down_ms: i64,
    events: &mut Vec<Event>,
) -> Result<()> {
    let mut hosts: BTreeMap<&str, bool> = BTreeMap::new();
    for ((host, _), day) in changed {
        *hosts.entry(host).or_default() |= day.failed.is_some();
    }
    for (host, failed) in hosts {
        let told_row = row(host, OUTAGES);
        // There is a row, if only an empty one, for every host that ever was out of reach: whether that was an outage may follow from
        // an answer that becomes known later.
        let told = batch.get(DAYS, &told_row)?;
        if !failed && told.is_none() {
            continue;
        }
        let mut days = BTreeMap::new();
        let prefix = [host.as_bytes(), &[0]].concat();
        for item in archive.views().keyspace(DAYS)?.prefix(&prefix) {
            let (key, value) = item.into_inner().map_err(skep_archive::Error::from)?;
            let day = key.get(prefix.len()..).and_then(|day| day.try_into().ok()).map_or(OUTAGES, u32::from_be_bytes);
            if day != OUTAGES {
                days.extend(Day::decode(&value).map(|known| (day, known)));
            }
        }
        let these = changed.range((host.to_owned(), 0)..=(host.to_owned(), u32::MAX));
        days.extend(these.map(|((_, day), known)| (*day, known.clone())));
        let now = found(days.values(), down_ms);
        let encoded: Vec<u8> = now.iter().flat_map(encode_outage).collect();
        if told.as_ref() == Some(&encoded) {
            continue;
        }
        let before: Vec<(Moment, bool)> = told.unwrap_or_default().chunks_exact(21).filter_map(decode_outage).collect();
        for (moment, _) in before.iter().filter(|outage| !now.contains(outage)) {
            events.push(event(host, *moment, None));
        }
        for (moment, up) in &now {
            events.push(event(host, *moment, Some(if *up { Class::HostUp } else { Class::HostDown })));
        }
        batch.put(DAYS, &told_row, &encoded);
    }
    Ok(())
}

/// Out of reach since its last answer for so long; and back with its next one. A host that never answered is not down.
fn found<'d>(days: impl Iterator<Item = &'d Day>, down_ms: i64) -> Vec<(Moment, bool)> {
    let mut outages = Vec::new();
    let (mut known, mut since, mut down) = (false, None, false);
    for day in days {
        if let Some(alive) = day.alive {
            if down {
                outages.push((alive, true));
            }
            (known, since, down) = (true, None, false);
        } else if let (true, Some(failed)) = (known, day.failed) {
            let first_ms = *since.get_or_insert(failed.0);
            if !down && failed.0.saturating_sub(first_ms) >= down_ms {
                outages.push((failed, false));
                down = true;
            }
        }
    }
    outages
}

fn encode_outage(((time_ms, position), up): &(Moment, bool)) -> Vec<u8> {
    let mut out = time_ms.to_le_bytes().to_vec();
    put_position(*position, &mut out);
    out.push((*up).into());
    out
}

fn decode_outage(bytes: &[u8]) -> Option<(Moment, bool)> {
    let time_ms = bytes.get(..8)?.try_into().map(i64::from_le_bytes).ok()?;
    Some(((time_ms, position_at(&bytes[8..])?), bytes[20] == 1))
}

/// The event of a host; without a class, what was told before is taken back.
fn event(host: &str, (time_ms, position): Moment, class: Option<Class>) -> Event {
    let (name, port) = host.rsplit_once(':').unwrap_or((host, "80"));
    let url = match port {
        "443" => format!("https://{name}/"),
        "80" => format!("http://{name}/"),
        _ => format!("http://{host}/"),
    };
    let classes = class.map(Classes::of).unwrap_or_default();
    let details = match class {
        None => Details::default(),
        Some(class) => Details {
            url_key: skep_archive::Key::of(&url).surt().to_owned(),
            host: name.to_owned(),
            classes: vec![class.name().to_owned()],
            archive: Place { position: position.to_string(), ..Place::default() },
            ..Details::default()
        },
    };
    Event {
        key: Position { record: position.record | HOST, ..position },
        classes,
        share: 0,
        time_ms,
        mime: String::new(),
        url,
        details,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(record: u32) -> Position {
        Position { writer: WriterKey(3), segment: 1, record }
    }

    #[test]
    fn days_are_joined_in_any_order_and_read_back() {
        let mut hosts = [Hosts::default(), Hosts::default()];
        for (turn, n) in [3_i64, 1, 2].into_iter().enumerate() {
            hosts[0].alive("a:80", n, position(n as u32), n as u64);
            hosts[1].alive("a:80", 4 - n, position(4 - n as u32), 4 - n as u64);
            hosts[turn % 2].failed("a:80", n, position(9));
            hosts[(turn + 1) % 2].failed("a:80", n, position(9));
        }
        let [mut one, other] = hosts.map(|hosts| hosts.0.into_values().next().unwrap());
        assert_eq!(one, other);
        one.join(&other);
        assert_eq!(one, other, "twice is once");
        assert_eq!((one.alive, one.failed), (Some((1, position(1))), Some((1, position(9)))));
        one.templates = vec![5, 6];
        one.template_told = Some(position(7));
        assert_eq!(Day::decode(&one.encode()), Some(one.clone()));
        assert!((0..one.encode().len()).all(|cut| Day::decode(&one.encode()[..cut]).is_none()));
    }

    #[test]
    fn pages_are_counted_about_right() {
        for count in [1_u64, 5, 20, 300, 20_000] {
            let mut pages = Pages::default();
            for n in 0..count * 2 {
                pages.count(xxhash_rust::xxh3::xxh3_64(&(n % count).to_le_bytes()));
            }
            let about = pages.estimate();
            assert!((about - count as f64).abs() <= (count as f64 * 0.25).max(0.6), "{count}: {about}");
        }
    }

    #[test]
    fn a_host_is_down_after_long_and_up_with_its_next_answer() {
        let day = |number: i64, alive: bool| {
            let moment = Some((number * DAY_MS, position(number as u32)));
            if alive { Day { alive: moment, ..Day::default() } } else { Day { failed: moment, ..Day::default() } }
        };
        let told = |days: &[Day]| -> Vec<(u32, bool)> {
            let told = found(days.iter(), 14 * DAY_MS);
            told.iter().map(|((_, position), up)| (position.record, *up)).collect()
        };
        let run = |from: i64, to: i64| (from..to).map(|n| day(n, false)).collect::<Vec<_>>();
        let all = |parts: Vec<Vec<Day>>| parts.concat();
        assert_eq!(
            told(&all(vec![vec![day(0, true)], run(1, 40), vec![day(40, true)], run(41, 50)])),
            [(15, false), (40, true)]
        );
        assert_eq!(told(&all(vec![vec![day(0, true)], run(1, 10), vec![day(10, true)], run(11, 20)])), []);
        assert_eq!(told(&run(0, 40)), [], "nobody ever saw it");
        assert!(day_of(-1) < day_of(0) && day_of(0) < day_of(DAY_MS) && day_of(i64::MAX) < OUTAGES);
    }
}
