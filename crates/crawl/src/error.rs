//! What can go wrong with a crawl as a whole. What goes wrong with a URL is a verdict, not an error.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why a crawl cannot be, or cannot go on.
#[derive(Debug)]
pub enum Error {
    /// The settings make no sense; nothing was done.
    Settings {
        /// What is wrong.
        what: String,
    },
    /// There is no such crawl.
    Unknown {
        /// Its name.
        name: String,
    },
    /// The archive says no.
    Archive(skep_archive::Error),
    /// The fetcher cannot be set up.
    Fetch(String),
    /// The registry is not what was written; it can be made again from the records.
    Registry(String),
    /// The system says no.
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What it said.
        error: std::io::Error,
    },
}

/// The result of anything about a crawl.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The system said no.
    pub fn io(what: &'static str, path: &Path, error: std::io::Error) -> Error {
        Error::Io { what, path: path.to_path_buf(), error }
    }

    /// What to do about it, if there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Registry(_) => Some("`skep rebuild` makes the views again, the registry among them".into()),
            Error::Unknown { .. } => Some("`skep report` without a name lists the crawls of this archive".into()),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Settings { what } => f.write_str(what),
            Error::Unknown { name } => write!(f, "there is no crawl called {name}"),
            Error::Archive(error) => error.fmt(f),
            Error::Fetch(what) | Error::Registry(what) => f.write_str(what),
            Error::Io { what, path, error } => write!(f, "{what} {}: {error}", path.display()),
        }
    }
}

impl std::error::Error for Error {}

impl From<skep_archive::Error> for Error {
    fn from(error: skep_archive::Error) -> Error {
        Error::Archive(error)
    }
}

impl From<crate::registry::Error> for Error {
    fn from(error: crate::registry::Error) -> Error {
        Error::Registry(error.to_string())
    }
}
