//! What became of each entry: fixed-width records by entry number, changed in place.
//!
//! ```text
//!   states   | what 1 | failures 1 | note 2 | code 2 | pass 2 | host 4 | time 6 | depth 2 |       204 to a page
//!   what     low four bits: the last outcome; high four bits: the class it waits in, or 0
//!   code     visited: status; failed, dead: class of the failure; refused: rule; trap: code; parked: budget
//!   time     milliseconds since 1970: of the visit, or before which a retry is not due
//! ```
//! The outcome and the waiting are kept apart: a page that is due again in a new pass waits and was visited. That an entry is
//! out is kept in memory and in checkpoints only.

use super::codec::{get, set};
use super::error::{Error, Result};
use super::pages::{CONTENT_BYTES, In, Pages};

const RECORD_BYTES: usize = 20;
const PER_PAGE: u64 = (CONTENT_BYTES / RECORD_BYTES) as u64;

/// The queue of its host that an entry waits in, in the order in which queues are taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// What a page needs to be shown.
    Embed,
    /// Seeds, and what a visited URL redirects to.
    Seed,
    /// Everything else that was linked.
    Page,
    /// What failed and is tried again, when it is due.
    Retry,
    /// What was visited and is to be looked at again.
    Again,
}

impl Class {
    /// All classes, in the order in which they are taken from.
    pub const ALL: [Class; 5] = [Class::Embed, Class::Seed, Class::Page, Class::Retry, Class::Again];

    /// Those in which something new may wait.
    pub const FIRST: [Class; 4] = [Class::Embed, Class::Seed, Class::Page, Class::Retry];
}

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It waits for its visit, the first or one of a new pass.
    Queued,
    /// It was taken, and neither given back nor set to another state.
    Out,
    /// It was visited.
    Visited {
        /// The HTTP status.
        status: u16,
        /// When, in milliseconds since 1970.
        time_ms: i64,
        /// In which pass of its crawl.
        pass: u16,
    },
    /// The visit failed; it waits for another try.
    Failed {
        /// The class of the failure.
        class: u16,
        /// Failures in a row.
        failures: u8,
        /// When it is due again, in milliseconds since 1970.
        not_before_ms: i64,
    },
    /// It failed for good.
    Dead {
        /// The class of the last failure.
        class: u16,
        /// Failures in a row.
        failures: u8,
    },
    /// A rule, or robots.txt, keeps it from being fetched.
    Refused {
        /// Which rule.
        rule: u16,
    },
    /// It looks like a trap.
    Trap {
        /// Which kind.
        code: u16,
    },
    /// A budget is spent; it may be queued when the budget is raised.
    Parked {
        /// Which budget.
        budget: u16,
    },
}

/// The last outcome, as it is stored and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    None,
    Visited,
    Failed,
    Dead,
    Refused,
    Trap,
    Parked,
}

const OUTCOMES: [Outcome; 7] =
    [Outcome::None, Outcome::Visited, Outcome::Failed, Outcome::Dead, Outcome::Refused, Outcome::Trap, Outcome::Parked];

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub outcome: Outcome,
    pub waits: Option<Class>,
    pub failures: u8,
    pub note: u16,
    pub code: u16,
    pub pass: u16,
    pub host: u32,
    pub time_ms: i64,
    pub depth: u16,
}

/// The largest time that six bytes hold: in the year 10889.
const TIME_MS_MAX: i64 = (1 << 48) - 1;

impl Record {
    pub fn new(host: u32, depth: u16) -> Record {
        Record { outcome: Outcome::None, waits: None, failures: 0, note: 0, code: 0, pass: 0, host, time_ms: 0, depth }
    }

    /// Enters an outcome. Queued and Out are none: those are about waiting.
    pub fn enter(&mut self, state: State) {
        match state {
            State::Queued | State::Out => {}
            State::Visited { status, time_ms, pass } => {
                (self.outcome, self.code, self.pass, self.failures) = (Outcome::Visited, status, pass, 0);
                self.set_time(time_ms);
            }
            State::Failed { class, failures, not_before_ms } => {
                (self.outcome, self.code, self.failures) = (Outcome::Failed, class, failures);
                self.set_time(not_before_ms);
            }
            State::Dead { class, failures } => {
                (self.outcome, self.code, self.failures) = (Outcome::Dead, class, failures);
            }
            State::Refused { rule } => (self.outcome, self.code) = (Outcome::Refused, rule),
            State::Trap { code } => (self.outcome, self.code) = (Outcome::Trap, code),
            State::Parked { budget } => (self.outcome, self.code) = (Outcome::Parked, budget),
        }
    }

    pub fn set_time(&mut self, time_ms: i64) {
        self.time_ms = time_ms.clamp(0, TIME_MS_MAX);
    }

    /// The last outcome as a state; `Queued` if there was none.
    pub fn outcome_state(&self) -> State {
        match self.outcome {
            Outcome::None => State::Queued,
            Outcome::Visited => State::Visited { status: self.code, time_ms: self.time_ms, pass: self.pass },
            Outcome::Failed => State::Failed { class: self.code, failures: self.failures, not_before_ms: self.time_ms },
            Outcome::Dead => State::Dead { class: self.code, failures: self.failures },
            Outcome::Refused => State::Refused { rule: self.code },
            Outcome::Trap => State::Trap { code: self.code },
            Outcome::Parked => State::Parked { budget: self.code },
        }
    }

    /// What the entry is now, if it is not out.
    pub fn state(&self) -> State {
        match (self.waits, self.outcome) {
            (Some(_), Outcome::Failed) | (None, _) => self.outcome_state(),
            (Some(_), _) => State::Queued,
        }
    }

    fn decode(bytes: &[u8]) -> Option<Record> {
        let waits = match bytes[0] >> 4 {
            0 => None,
            class => Some(*Class::ALL.get(usize::from(class) - 1)?),
        };
        Some(Record {
            outcome: *OUTCOMES.get(usize::from(bytes[0] & 15))?,
            waits,
            failures: bytes[1],
            note: get(bytes, 2, 2) as u16,
            code: get(bytes, 4, 2) as u16,
            pass: get(bytes, 6, 2) as u16,
            host: get(bytes, 8, 4) as u32,
            time_ms: get(bytes, 12, 6) as i64,
            depth: get(bytes, 18, 2) as u16,
        })
    }

    fn encode(&self, bytes: &mut [u8]) {
        bytes[0] = self.outcome as u8 | self.waits.map_or(0, |class| class as u8 + 1) << 4;
        bytes[1] = self.failures;
        set(bytes, 2, 2, self.note.into());
        set(bytes, 4, 2, self.code.into());
        set(bytes, 6, 2, self.pass.into());
        set(bytes, 8, 4, self.host.into());
        set(bytes, 12, 6, self.time_ms as u64);
        set(bytes, 18, 2, self.depth.into());
    }
}

fn place(entry: u64) -> (u64, usize) {
    (entry / PER_PAGE, (entry % PER_PAGE) as usize * RECORD_BYTES)
}

pub(super) fn read(pages: &mut Pages, entry: u64) -> Result<Record> {
    let (page, at) = place(entry);
    let bytes = pages.read(In::States, page)?;
    match Record::decode(&bytes[at..at + RECORD_BYTES]) {
        Some(record) => Ok(record),
        None => Err(Error::damaged(pages.path(In::States), format!("entry {entry} has no state that exists"))),
    }
}

pub(super) fn write(pages: &mut Pages, entry: u64, record: &Record) -> Result<()> {
    let (page, at) = place(entry);
    let bytes = pages.change(In::States, page)?;
    record.encode(&mut bytes[at..at + RECORD_BYTES]);
    debug_assert_eq!(Record::decode(&bytes[at..at + RECORD_BYTES]).as_ref(), Some(record));
    Ok(())
}

/// Writes the record of the next new entry.
pub(super) fn add(pages: &mut Pages, entry: u64, record: &Record) -> Result<()> {
    if place(entry).0 == pages.count(In::States) {
        pages.add(In::States)?;
    }
    write(pages, entry, record)
}
