//! How a host behaves beside what it has to say: the one place where misbehaviour is switched on, host by host, before
//! or while the web runs.
//!
//! A behaviour that still speaks HTTP is a [`Trouble`] and is decided here, purely, from the number of the request. One that
//! breaks the protocol itself has its place in `connection.rs`, before hyper sees the stream.

use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::limits;

/// How a host behaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Behaviour {
    /// Time before each answer.
    pub delay_ms: u64,
    /// Answers wait until the host is told to behave otherwise; so a test decides how many are in flight.
    pub hold: bool,
    /// What goes wrong.
    pub trouble: Option<Trouble>,
}

/// What goes wrong on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// Requests are refused with a status, such as 429 or 503.
    Refuse {
        /// The status.
        status: u16,
        /// `Retry-After`.
        retry_after_seconds: Option<u64>,
        /// Of this many requests, one is refused; 1 refuses all.
        one_in: u64,
    },
}

impl Behaviour {
    /// Answers late.
    pub fn slow(delay_ms: u64) -> Behaviour {
        Behaviour { delay_ms, ..Behaviour::default() }
    }

    /// Holds its answers back until told otherwise.
    pub fn hold() -> Behaviour {
        Behaviour { hold: true, ..Behaviour::default() }
    }

    /// Refuses one in so many requests.
    pub fn refuse(status: u16, retry_after_seconds: Option<u64>, one_in: u64) -> Behaviour {
        let trouble = Some(Trouble::Refuse { status, retry_after_seconds, one_in });
        Behaviour { trouble, ..Behaviour::default() }
    }

    /// What the host says to its `number`th request (from 1) instead of its answer.
    pub fn instead(&self, number: u64) -> Option<Answer> {
        match self.trouble {
            Some(Trouble::Refuse { status, retry_after_seconds, one_in }) if number.is_multiple_of(one_in.max(1)) => {
                Some(Answer { retry_after_seconds, ..Answer::status(status) })
            }
            _ => None,
        }
    }

    /// What is wrong with it, if anything.
    pub(crate) fn fault(&self) -> Option<String> {
        if self.delay_ms > limits::DELAY_MS_MAX {
            return Some(format!("`delay_ms` is {}; at most {}", self.delay_ms, limits::DELAY_MS_MAX));
        }
        match self.trouble {
            Some(Trouble::Refuse { status, .. }) if !(400..600).contains(&status) => {
                Some(format!("a refusal has a status from 400 to 599, not {status}"))
            }
            _ => None,
        }
    }
}
