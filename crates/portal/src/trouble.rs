//! Why a request cannot be answered: a status, what the client is told, and what only the log gets to know.

use crate::answer::{self, Answer};
use axum::http::StatusCode;
use skep_archive::Error;
use std::io;

/// A request that failed.
#[derive(Debug)]
pub struct Trouble {
    /// The status.
    pub status: StatusCode,
    /// For the client: no path, nothing about this machine.
    pub told: String,
    /// For whoever runs the portal.
    pub log: Option<String>,
}

impl Trouble {
    /// The client asked for something that cannot be.
    pub fn bad(told: impl Into<String>) -> Trouble {
        Trouble { status: StatusCode::BAD_REQUEST, told: told.into(), log: None }
    }

    /// Nothing of that kind is here.
    pub fn missing(told: impl Into<String>) -> Trouble {
        Trouble { status: StatusCode::NOT_FOUND, told: told.into(), log: None }
    }

    /// The client may not.
    pub fn forbidden(told: impl Into<String>) -> Trouble {
        Trouble { status: StatusCode::FORBIDDEN, told: told.into(), log: None }
    }

    /// The record is there and cannot be read.
    pub fn damaged(told: impl Into<String>, log: impl Into<String>) -> Trouble {
        Trouble { status: StatusCode::BAD_GATEWAY, told: told.into(), log: Some(log.into()) }
    }

    /// Reading a record failed on the way.
    pub fn reading(error: &io::Error) -> Trouble {
        Trouble::damaged("The record of this capture is damaged and cannot be read to its end.", error.to_string())
    }

    /// As a page.
    pub fn page(&self) -> Answer {
        let title = self.status.canonical_reason().unwrap_or("Something is wrong");
        answer::told(self.status, title, &self.told)
    }
}

impl From<skep_search::Error> for Trouble {
    fn from(error: skep_search::Error) -> Trouble {
        let hint = error.hint().map_or(String::new(), |hint| format!(" ({hint})"));
        match error {
            skep_search::Error::Off => Trouble::missing(format!("Texts cannot be looked through: {error}{hint}.")),
            skep_search::Error::Query(what) => Trouble::bad(format!("This cannot be looked for: {what}{hint}.")),
            skep_search::Error::Archive(error) => error.into(),
            skep_search::Error::Index(_) => Trouble {
                status: StatusCode::INTERNAL_SERVER_ERROR,
                told: "The index of texts could not answer; the reason is in the log.".into(),
                log: Some(error.to_string()),
            },
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        let log = Some(error.to_string());
        match &error {
            Error::NotFound { .. } => Trouble::missing("It is not in this archive any more."),
            Error::Io { .. } if error.is_missing_file() => Trouble {
                status: StatusCode::BAD_GATEWAY,
                told: "The file that holds this capture is not where it was.".into(),
                log,
            },
            Error::Io { .. } | Error::Damaged { .. } | Error::Record { .. } => {
                Trouble { status: StatusCode::BAD_GATEWAY, told: "The record of this capture is damaged.".into(), log }
            }
            _ => {
                let told = "The archive could not answer; the reason is in the log.".into();
                Trouble { status: StatusCode::INTERNAL_SERVER_ERROR, told, log }
            }
        }
    }
}
