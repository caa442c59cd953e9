//! The log of events in the store of the views, and how it is read.
//!
//! ```text
//!  keyspace view-changes        | number 8 BE |                          ─▶  see `event`
//!  keyspace view-changes-keys   | writer 4 BE | segment 4 BE | record 4 BE |  ─▶  | number 8 BE |   where it was told last
//!  keyspace view-changes-urls   see `state`
//!  keyspace view-changes-marks  | writer 4 BE | number 4 BE |            ─▶  | 1 | generation 4 | records 4 | sidecar 8 |
//!  keyspace view-changes-log    "born"                                   ─▶  | ms since 1970 8 BE |
//!                               "next"                                   ─▶  | number 8 BE |
//! ```

use std::ops::ControlFlow;
use std::sync::Mutex;

use skep_archive::{Archive, Batch, Position};

use crate::checks::{Checks, NoChecks};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::event::{Event, Kept};
use crate::filter::Filter;

pub(crate) const EVENTS: &str = "changes";
pub(crate) const KEYS: &str = "changes-keys";
pub(crate) const URLS: &str = "changes-urls";
pub(crate) const MARKS: &str = "changes-marks";
const LOG: &str = "changes-log";

/// The changes view of an archive. Whoever owns the archive has one.
pub struct Changes {
    /// Held by whoever brings the log up to date: how many batches the views had committed when nothing was left to do.
    pub(crate) following: Mutex<Option<u64>>,
    /// Who reads check lines.
    pub(crate) checks: Box<dyn Checks>,
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
        Changes { following: Mutex::new(None), checks: Box::new(checks) }
    }

    /// The cursor of the newest event; of the place before the first, if there is none.
    pub fn newest(&self, archive: &Archive) -> Result<Cursor> {
        Ok(Cursor { node: node(archive)?, number: next(archive)? - 1 })
    }

    /// Shows events in the order of the log, as many as there are now, and says where the next ones will begin. A removed
    /// capture is passed over.
    pub fn read(
        &self,
        archive: &Archive,
        from: &From,
        filter: &Filter,
        mut each: impl FnMut(&Cursor, &Kept<'_>) -> ControlFlow<()>,
    ) -> Result<Cursor> {
        let mut cursor = self.place(archive, from)?;
        let events = archive.views().keyspace(EVENTS)?;
        for item in events.range((cursor.number + 1).to_be_bytes()..) {
            let (key, value) = item.into_inner().map_err(skep_archive::Error::from)?;
            let number = key.as_ref().try_into().map(u64::from_be_bytes).map_err(|_| damaged("a key"))?;
            let event = Kept::decode(&value).ok_or_else(|| damaged("an event"))?;
            cursor.number = number;
            if filter.admits(&event) && !archive.views().is_hidden(event.record()) && each(&cursor, &event).is_break() {
                break;
            }
        }
        Ok(cursor)
    }

    /// Where reading would begin, or why it cannot.
    pub fn check(&self, archive: &Archive, from: &From) -> Result<Cursor> {
        self.place(archive, from)
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

/// Events on their way into the log, in one batch with everything that follows from them.
pub(crate) struct Telling {
    next: u64,
}

impl Telling {
    /// Goes on behind the newest event.
    pub fn begin(archive: &Archive) -> Result<Telling> {
        Ok(Telling { next: next(archive)? })
    }

    /// Tells an event, unless it was told just so before. Says whether it did.
    pub fn tell(&mut self, batch: &mut Batch<'_>, event: &Event) -> Result<bool> {
        let value = event.encode();
        if told(batch, event.key)?.as_deref() == Some(&value) {
            return Ok(false);
        }
        batch.put(EVENTS, &self.next.to_be_bytes(), &value);
        batch.put(KEYS, &position_key(event.key), &self.next.to_be_bytes());
        self.next += 1;
        Ok(true)
    }

    /// Says how far the log got.
    pub fn end(self, batch: &mut Batch<'_>) {
        batch.put(LOG, b"next", &self.next.to_be_bytes());
    }
}

/// The last event that was told under a key, as kept.
pub(crate) fn told(batch: &Batch<'_>, key: Position) -> Result<Option<Vec<u8>>> {
    match batch.get(KEYS, &position_key(key))? {
        Some(number) => Ok(batch.get(EVENTS, &number)?),
        None => Ok(None),
    }
}

pub(crate) fn position_key(position: Position) -> Vec<u8> {
    [position.writer.0, position.segment, position.record].map(u32::to_be_bytes).concat()
}
