//! The log of events in the store of the views, and how it is read.
//!
//! ```text
//!  keyspace view-changes        | number 8 BE |                          ─▶  see `event`
//!  keyspace view-changes-keys   | writer 4 BE | segment 4 BE | record 4 BE |  ─▶  | number 8 BE |   where it was told last
//!  keyspace view-changes-urls   see `state`
//!  keyspace view-changes-marks  | writer 4 BE | number 4 BE |            ─▶  | 1 | generation 4 | records 4 | sidecar 8 |
//!  keyspace view-changes-thinned  as -urls                              ─▶  | ms since 1970 8 BE |   of the earliest capture that retention took
//!  keyspace view-changes-again  "u", then as in -urls                    ─▶  | URL … |   that is to be judged again
//!                               "p", then as in -keys                    ─▶  nothing     a capture that was removed
//!  keyspace view-changes-log    "born"                                   ─▶  | ms since 1970 8 BE |
//!                               "next"                                   ─▶  | number 8 BE |
//!                               "latest"                                 ─▶  | ms since 1970 8 BE |       of all events so far
//!  keyspace view-changes-times  | number / 1,024 8 BE |                   ─▶  | ms since 1970 8 BE |       of all events up to the end of these
//! ```

use std::ops::ControlFlow;
use std::sync::Mutex;

use skep_archive::{Archive, Batch, Position, WriterKey};
use skep_page::compare::Classes;

use crate::checks::{Checks, NoChecks};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::event::{Event, Kept};
use crate::filter::Filter;
use crate::settings::SettingsAtHand;

pub(crate) const EVENTS: &str = "changes";
pub(crate) const KEYS: &str = "changes-keys";
pub(crate) const URLS: &str = "changes-urls";
pub(crate) const MARKS: &str = "changes-marks";
pub(crate) const THINNED: &str = "changes-thinned";
pub(crate) const AGAIN: &str = "changes-again";
const LOG: &str = "changes-log";
const TIMES: &str = "changes-times";
/// Events that are passed over at once by who wants those of a time.
const TIMED_EVENTS: u64 = 1_024;

/// The changes view of an archive. Whoever owns the archive has one.
pub struct Changes {
    /// Held by whoever brings the log up to date: how many batches the views had committed when nothing was left to do.
    pub(crate) following: Mutex<Option<u64>>,
    /// Who reads check lines.
    pub(crate) checks: Box<dyn Checks>,
    pub(crate) settings: SettingsAtHand,
}

impl Default for Changes {
    fn default() -> Changes {
        Changes::new(NoChecks)
    }
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Changes")
    }
}

/// Where to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum From {
    /// With the first event.
    Start,
    /// Behind the last one.
    End,
    /// Behind this one.
    After(Cursor),
}

impl Changes {
    /// The view of an archive whose check lines are read so.
    pub fn new(checks: impl Checks + 'static) -> Changes {
        Changes { following: Mutex::new(None), checks: Box::new(checks), settings: SettingsAtHand::default() }
    }

    /// The cursor of the newest event; of the place before the first, if there is none.
    pub fn newest(&self, archive: &Archive) -> Result<Cursor> {
        Ok(Cursor { node: node(archive)?, number: next(archive)? - 1 })
    }

    /// Shows events in the order of the log, as many as there are now, and says where the next ones will begin. A removed
    /// capture is passed over; that what was told of it is taken back is told.
    pub fn read(
        &self,
        archive: &Archive,
        from: &From,
        filter: &Filter,
        mut each: impl FnMut(&Cursor, &Kept<'_>) -> ControlFlow<()>,
    ) -> Result<Cursor> {
        let mut cursor = self.first(archive, from, filter)?;
        let events = archive.views().keyspace(EVENTS)?;
        for item in events.range((cursor.number + 1).to_be_bytes()..) {
            let (key, value) = item.into_inner().map_err(skep_archive::Error::from)?;
            let number = key.as_ref().try_into().map(u64::from_be_bytes).map_err(|_| damaged("a key"))?;
            let event = Kept::decode(&value).ok_or_else(|| damaged("an event"))?;
            cursor.number = number;
            let told = event.classes.is_empty() || !archive.views().is_hidden(event.record());
            if filter.admits(&event) && told && each(&cursor, &event).is_break() {
                break;
            }
        }
        Ok(cursor)
    }

    /// Shows the last events up to a cursor of this log, as they were told, whatever became of their captures since.
    pub(crate) fn up_to(
        &self,
        archive: &Archive,
        cursor: &Cursor,
        most: u64,
        mut each: impl FnMut(u64, &Kept<'_>),
    ) -> Result<()> {
        if cursor.node != node(archive)? {
            return Ok(());
        }
        let from = cursor.number.saturating_sub(most).saturating_add(1);
        let events = archive.views().keyspace(EVENTS)?;
        for item in events.range(from.to_be_bytes()..=cursor.number.max(from).to_be_bytes()) {
            let (key, value) = item.into_inner().map_err(skep_archive::Error::from)?;
            let number = key.as_ref().try_into().map(u64::from_be_bytes).map_err(|_| damaged("a key"))?;
            if number <= cursor.number {
                each(number, &Kept::decode(&value).ok_or_else(|| damaged("an event"))?);
            }
        }
        Ok(())
    }

    /// Where reading would begin, or why it cannot.
    pub fn check(&self, archive: &Archive, from: &From) -> Result<Cursor> {
        self.place(archive, from)
    }

    /// The same for who wants such events: what was seen too early for them is passed over, as far as that can be told without looking.
    pub fn first(&self, archive: &Archive, from: &From, filter: &Filter) -> Result<Cursor> {
        let mut cursor = self.place(archive, from)?;
        let Some(since_ms) = filter.since_ms else { return Ok(cursor) };
        // The latest time so far only ever grows: the first part in which it is late enough has the first event that is.
        let (mut low, mut high) = (0, next(archive)? / TIMED_EVENTS);
        while low < high {
            let middle = low + (high - low) / 2;
            let latest_ms = archive.views().get(TIMES, &middle.to_be_bytes())?.map_or(i64::MAX, time_of);
            (low, high) = if latest_ms >= since_ms { (low, middle) } else { (middle + 1, high) };
        }
        cursor.number = cursor.number.max((low * TIMED_EVENTS).saturating_sub(1));
        Ok(cursor)
    }

    fn place(&self, archive: &Archive, from: &From) -> Result<Cursor> {
        let newest = self.newest(archive)?;
        match from {
            From::End => Ok(newest),
            From::Start => Ok(Cursor { number: 0, ..newest }),
            From::After(shown) if shown.node != newest.node => {
                Err(Error::ForeignCursor { shown: shown.clone(), newest })
            }
            From::After(shown) if shown.number > newest.number => {
                Err(Error::CursorAhead { shown: shown.clone(), newest })
            }
            From::After(shown) => {
                let first = archive.views().keyspace(EVENTS)?.iter().next();
                let first = first.map(|item| item.key()).transpose().map_err(skep_archive::Error::from)?;
                let oldest = first.and_then(|key| key.as_ref().try_into().ok()).map_or(1, u64::from_be_bytes);
                if shown.number + 1 < oldest {
                    let oldest = Cursor { number: oldest, ..newest };
                    return Err(Error::CursorTooOld { shown: shown.clone(), oldest });
                }
                Ok(shown.clone())
            }
        }
    }
}

pub(crate) fn damaged(what: &str) -> skep_archive::Error {
    skep_archive::Error::Views { what: format!("{what} of the changes view is not what was written") }
}

/// The name of the log: the writer, and when it was begun.
pub(crate) fn node(archive: &Archive) -> Result<String> {
    let born = archive.views().get(LOG, b"born")?.and_then(|value| value.try_into().ok()).map_or(0, u64::from_be_bytes);
    Ok(format!("{}{}", archive.writer(), base36(born)))
}

/// A log without a beginning begins now: who asks for its end before anything happened has a place in it.
pub(crate) fn begin(archive: &Archive, now_ms: i64) -> Result<()> {
    if archive.views().get(LOG, b"born")?.is_none() {
        let mut batch = archive.views().batch();
        batch.put(LOG, b"born", &now_ms.max(1).to_be_bytes());
        batch.commit()?;
    }
    Ok(())
}

fn base36(mut number: u64) -> String {
    let mut digits = Vec::new();
    while number > 0 || digits.is_empty() {
        digits.push(char::from_digit((number % 36) as u32, 36).unwrap_or('0'));
        number /= 36;
    }
    digits.iter().rev().collect()
}

fn next(archive: &Archive) -> Result<u64> {
    Ok(archive.views().get(LOG, b"next")?.and_then(|value| value.try_into().ok()).map_or(1, u64::from_be_bytes))
}

/// A time as it is kept; what was not kept is as late as can be, so that nothing is passed over for it.
fn time_of(value: Vec<u8>) -> i64 {
    value.try_into().map_or(i64::MAX, i64::from_be_bytes)
}

/// Events on their way into the log, in one batch with everything that follows from them.
pub(crate) struct Telling {
    next: u64,
    latest_ms: i64,
}

impl Telling {
    /// Goes on behind the newest event.
    pub fn begin(archive: &Archive) -> Result<Telling> {
        let next = next(archive)?;
        let latest_ms = match archive.views().get(LOG, b"latest")? {
            Some(value) => time_of(value),
            None if next == 1 => i64::MIN,
            // A log that was begun before times were kept.
            None => i64::MAX,
        };
        Ok(Telling { next, latest_ms })
    }

    /// Tells an event, unless it was told just so before; one of a capture of which nothing was is `first`. Says whether it did.
    pub fn tell(&mut self, batch: &mut Batch<'_>, event: &Event, first: bool) -> Result<bool> {
        let last = if first { None } else { told(batch, event.key)? };
        let kept = last.as_deref().and_then(Kept::decode);
        // Whoever heard of it as something that it is not hears that, too, also where what it is now is told when asked for.
        let before = kept.filter(|kept| !kept.classes.is_empty()).map_or(0, |kept| kept.classes.0 | kept.was.0);
        let value = event.encode_after(Classes(before));
        let is_taken_back = kept.is_some_and(|kept| kept.classes.is_empty());
        if last.as_ref() == Some(&value) || is_taken_back && event.classes.is_empty() {
            return Ok(false);
        }
        batch.put(EVENTS, &self.next.to_be_bytes(), &value);
        batch.put(KEYS, &position_key(event.key), &self.next.to_be_bytes());
        self.latest_ms = self.latest_ms.max(event.time_ms);
        if self.next % TIMED_EVENTS == TIMED_EVENTS - 1 {
            batch.put(TIMES, &(self.next / TIMED_EVENTS).to_be_bytes(), &self.latest_ms.to_be_bytes());
        }
        self.next += 1;
        Ok(true)
    }

    /// Says how far the log got.
    pub fn end(self, batch: &mut Batch<'_>) {
        batch.put(LOG, b"next", &self.next.to_be_bytes());
        batch.put(LOG, b"latest", &self.latest_ms.to_be_bytes());
    }
}

/// The last event that was told under a key, as kept.
pub(crate) fn told(batch: &Batch<'_>, key: Position) -> Result<Option<Vec<u8>>> {
    match batch.get(KEYS, &position_key(key))? {
        Some(number) => Ok(batch.get(EVENTS, &number)?),
        None => Ok(None),
    }
}

/// The position whose key that is.
pub(crate) fn position_of(key: &[u8]) -> Option<Position> {
    let four = |at: usize| key.get(at..at + 4)?.try_into().map(u32::from_be_bytes).ok();
    Some(Position { writer: WriterKey(four(0)?), segment: four(4)?, record: four(8)? })
}

pub(crate) fn position_key(position: Position) -> Vec<u8> {
    [position.writer.0, position.segment, position.record].map(u32::to_be_bytes).concat()
}
