//! How a sink stands: `settings/sinks/NAME.cursor`, replaced as a whole after each delivery.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use skep_archive::Archive;
use skep_archive::settings;

use super::definition::{MODE, check_name, folder};
use crate::cursor::Cursor;
use crate::error::{Error, Result};

const VERSION: u32 = 1;

/// How a sink stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct State {
    version: u32,
    /// The last event that was acknowledged, or passed over because nobody wants it; none before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Events up to `since_until` count only if they were seen at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<i64>,
    /// The newest event when it was decided to go on by time.
    pub since_until: u64,
    /// The latest time of an event that was acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_ms: Option<i64>,
    /// Where it begins, as a time: what it goes by if the log is built again before anything was acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_ms: Option<i64>,
    /// Events acknowledged so far.
    pub delivered: u64,
    /// When that was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_ms: Option<i64>,
    /// Events that the other side refused for what they are.
    pub rejected: u64,
    /// The last of them, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_rejected: Option<String>,
    /// Tries in a row that failed.
    pub failures: u32,
    /// Why the last one did, or what else there is to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When that was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_ms: Option<i64>,
    /// When the next try is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<i64>,
    /// The other side wants nothing any more.
    pub paused: bool,
}

/// What decides which events come next: the cursor, and from when on they count up to where.
pub(super) type Placed = (Option<String>, Option<i64>, u64);

impl Default for State {
    fn default() -> State {
        State {
            version: VERSION,
            cursor: None,
            since_ms: None,
            since_until: 0,
            seen_ms: None,
            from_ms: None,
            delivered: 0,
            delivered_ms: None,
            rejected: 0,
            last_rejected: None,
            failures: 0,
            error: None,
            error_ms: None,
            next_ms: None,
            paused: false,
        }
    }
}

impl State {
    fn path(archive: &Archive, name: &str) -> PathBuf {
        folder(archive).join(format!("{name}.cursor"))
    }

    /// How the sink of this name stands.
    pub fn load(archive: &Archive, name: &str) -> Result<State> {
        check_name(name)?;
        Ok(settings::load(&State::path(archive, name), VERSION)?.unwrap_or_default())
    }

    /// How a sink stands of which that cannot be read.
    pub(super) fn unreadable(error: &Error, name: &str) -> State {
        let why = format!("{error}; `skep sink replay {name} --since …` says from where it goes on");
        State { error: Some(why), ..State::default() }
    }

    pub(super) fn store(&self, archive: &Archive, name: &str) -> Result<()> {
        Ok(settings::store(&State::path(archive, name), self, MODE)?)
    }

    pub(super) fn remove(archive: &Archive, name: &str) -> Result<()> {
        let path = State::path(archive, name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(skep_archive::Error::io("cannot remove", &path, error).into())
            }
            _ => Ok(settings::sync_folder_of(&path)?),
        }
    }

    /// Everything up to this event of that log is acknowledged, or wanted by nobody.
    pub(super) fn moved(&mut self, node: &str, upto: u64) {
        self.cursor = Some(Cursor { node: node.to_owned(), number: upto }.to_string());
        if upto >= self.since_until {
            (self.since_ms, self.since_until) = (None, 0);
        }
    }

    /// What decides which events come next.
    pub(super) fn place(&self) -> Placed {
        (self.cursor.clone(), self.since_ms, self.since_until)
    }

    /// The other side has acknowledged.
    pub(super) fn delivered(&mut self, events: u64, newest_ms: Option<i64>, now_ms: i64) {
        self.delivered += events;
        if events > 0 {
            self.delivered_ms = Some(now_ms);
        }
        self.seen_ms = self.seen_ms.max(newest_ms);
        (self.failures, self.error, self.error_ms, self.next_ms) = (0, None, None, None);
    }

    /// It has not.
    pub(super) fn failed(&mut self, why: String, now_ms: i64, wait_ms: u64) {
        self.failures = self.failures.saturating_add(1);
        self.error = Some(why);
        self.error_ms = Some(now_ms);
        self.next_ms = Some(now_ms.saturating_add(wait_ms as i64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_it_stands_reads_back() {
        let mut state = State { cursor: Some("a:5".into()), since_ms: Some(-3), since_until: 9, ..State::default() };
        state.delivered(4, Some(7), 100);
        state.failed("no route".into(), 200, 50);
        assert_eq!((state.delivered, state.seen_ms, state.failures, state.next_ms), (4, Some(7), 1, Some(250)));
        let text = toml::to_string(&state).unwrap();
        assert_eq!(toml::from_str::<State>(&text).unwrap(), state);
        state.delivered(0, None, 300);
        assert_eq!((state.failures, state.error, state.next_ms, state.delivered_ms), (0, None, None, Some(100)));
    }
}
