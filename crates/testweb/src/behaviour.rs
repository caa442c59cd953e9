//! How a host behaves beside what it has to say: the one place where misbehaviour is switched on, host by host, before
//! or while the web runs.
//!
//! Refusals are decided here, purely, from the number of the request; the rows of the hostile web in `hostile/`.

use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::hostile::Hostile;
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
        /// `Retry-After` is written as a date by the web's clock, which should then be the machine's.
        #[serde(default)]
        as_date: bool,
        /// Of this many requests, one is refused; 1 refuses all.
        one_in: u64,
    },
    /// A row of the hostile web.
    Hostile(Hostile),
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
        let trouble = Some(Trouble::Refuse { status, retry_after_seconds, as_date: false, one_in });
        Behaviour { trouble, ..Behaviour::default() }
    }

    /// A row of the hostile web, or one in a measure of its own.
    pub fn hostile(hostile: impl Into<Hostile>) -> Behaviour {
        Behaviour { trouble: Some(Trouble::Hostile(hostile.into())), ..Behaviour::default() }
    }

    /// The row of the hostile web that it is.
    pub(crate) fn as_hostile(&self) -> Option<&Hostile> {
        match &self.trouble {
            Some(Trouble::Hostile(hostile)) => Some(hostile),
            _ => None,
        }
    }

    /// What the host says to its `number`th request (from 1) instead of its answer.
    pub fn instead(&self, number: u64) -> Option<Answer> {
        match self.trouble {
            Some(Trouble::Refuse { status, retry_after_seconds, as_date, one_in })
                if number.is_multiple_of(one_in.max(1)) =>
            {
                Some(Answer { retry_after_seconds, retry_after_as_date: as_date, ..Answer::status(status) })
            }
            _ => None,
        }
    }

    /// What is wrong with it, if anything.
    pub(crate) fn fault(&self) -> Option<String> {
        if self.delay_ms > limits::DELAY_MS_MAX {
            return Some(format!("`delay_ms` is {}; at most {}", self.delay_ms, limits::DELAY_MS_MAX));
        }
        match &self.trouble {
            Some(Trouble::Refuse { status, .. }) if !(400..600).contains(status) => {
                Some(format!("a refusal has a status from 400 to 599, not {status}"))
            }
            Some(Trouble::Hostile(hostile)) => hostile.fault(),
            _ => None,
        }
    }
}
