//! What can go wrong, and what to do about it.

use std::fmt;

use crate::cursor::Cursor;

/// Why something cannot be told.
#[derive(Debug)]
pub enum Error {
    /// The archive cannot be read or written.
    Archive(skep_archive::Error),
    /// The cursor was given out by another node, or before the views were rebuilt.
    ForeignCursor {
        /// The one that was shown.
        shown: Cursor,
        /// The newest of this log.
        newest: Cursor,
    },
    /// The events behind the cursor are no longer kept.
    CursorTooOld {
        /// The one that was shown.
        shown: Cursor,
        /// The oldest that is kept.
        oldest: Cursor,
    },
    /// The cursor names an event that has not happened.
    CursorAhead {
        /// The one that was shown.
        shown: Cursor,
        /// The newest of this log.
        newest: Cursor,
    },
    /// The rules in `settings/changes.toml` make no sense.
    Rules(String),
    /// What `settings/retention.toml` says makes no sense.
    Retention(String),
    /// A sink cannot be made, found or run.
    Sink {
        /// What is wrong.
        what: String,
        /// What to do about it.
        hint: String,
    },
}

/// What is told, or why it cannot be.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A short name for programs. It never changes.
    pub fn id(&self) -> &'static str {
        match self {
            Error::Archive(_) => "archive",
            Error::ForeignCursor { .. } => "foreign-cursor",
            Error::CursorTooOld { .. } => "cursor-too-old",
            Error::CursorAhead { .. } => "cursor-ahead",
            Error::Rules(_) => "rules",
            Error::Retention(_) => "retention",
            Error::Sink { .. } => "sink",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Archive(error) => error.hint(),
            Error::ForeignCursor { .. } => {
                Some("go on by time, a little before the last event you saw; keys tell which ones you know".into())
            }
            Error::CursorTooOld { oldest, .. } => Some(format!("go on from {oldest}; what lies between is lost")),
            Error::CursorAhead { newest, .. } => Some(format!("the newest event is {newest}")),
            Error::Rules(_) => {
                Some("`settings/changes.toml` in the archive holds them; docs/changes.md shows one".into())
            }
            Error::Retention(_) => {
                Some("`settings/retention.toml` in the archive says what is kept; docs/changes.md shows one".into())
            }
            Error::Sink { hint, .. } => Some(hint.clone()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Archive(error) => error.fmt(f),
            Error::ForeignCursor { shown, newest } => {
                write!(f, "the cursor {shown} was not given out by this log, whose newest event is {newest}")
            }
            Error::CursorTooOld { shown, oldest } => {
                write!(f, "the events after {shown} are no longer kept; the oldest one is {oldest}")
            }
            Error::CursorAhead { shown, newest } => {
                write!(f, "there is no event {shown} yet; the newest one is {newest}")
            }
            Error::Rules(why) => write!(f, "the rules for changes make no sense: {why}"),
            Error::Retention(why) => write!(f, "what is to be kept makes no sense: {why}"),
            Error::Sink { what, .. } => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}

impl From<skep_archive::Error> for Error {
    fn from(error: skep_archive::Error) -> Error {
        Error::Archive(error)
    }
}
