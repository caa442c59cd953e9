//! What can go wrong with the registry, told so that the caller can decide and a person can act.

use std::path::{Path, PathBuf};
use std::{fmt, io};

/// The result of everything in this module.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. The registry is a view: whatever happened to it, the records are unharmed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system refused an operation on a file.
    Io {
        /// What was being done, as a phrase: `cannot write`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No room on the disk. Open again when there is room: the last checkpoint stands.
    DiskFull {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// Bytes that do not mean what they should.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Written by a version of Skep that is newer than this one.
    Newer {
        /// The file.
        path: PathBuf,
        /// The format version it names.
        found: u32,
        /// The newest version this program reads.
        known: u32,
    },
    /// Written by a version of Skep whose registry is no longer read: the records are folded again.
    Older {
        /// The checkpoint.
        path: PathBuf,
    },
    /// Written with another key, so that no URL would be recognised.
    OtherKey {
        /// The checkpoint.
        path: PathBuf,
    },
    /// An earlier operation failed half way; what is in memory can no longer be trusted.
    Stale,
    /// The registry has no such entry, host or crawl.
    NotFound {
        /// What was asked for.
        what: String,
    },
    /// The request cannot be granted as it stands.
    Refused {
        /// Why.
        why: String,
    },
}

const REBUILD: &str = "hint: the records are unharmed; `skep rebuild` makes the registry again from them";

impl Error {
    pub(super) fn io(doing: &'static str, path: &Path, source: io::Error) -> Error {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::DiskFull { path: path.to_owned() },
            // A file that ends too early is one that lost its end.
            io::ErrorKind::UnexpectedEof => Error::damaged(path, "it ends too early"),
            _ => Error::Io { doing, path: path.to_owned(), source },
        }
    }

    pub(super) fn damaged(path: &Path, what: impl Into<String>) -> Error {
        Error::Damaged { path: path.to_owned(), what: what.into() }
    }

    /// Deleting the registry and folding the records again helps.
    pub fn rebuild_helps(&self) -> bool {
        matches!(self, Error::Damaged { .. } | Error::Older { .. } | Error::OtherKey { .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { doing, path, source } => write!(f, "{doing} {}: {source}", path.display()),
            Error::DiskFull { path } => write!(
                f,
                "no room to write {}\nhint: make room and start again; the crawl goes on from its last checkpoint",
                path.display()
            ),
            Error::Damaged { path, what } => write!(f, "{} is damaged: {what}\n{REBUILD}", path.display()),
            Error::Newer { path, found, known } => write!(
                f,
                "{} has format {found}, this program reads up to {known}\nhint: use the newer Skep that wrote it",
                path.display()
            ),
            Error::Older { path } => write!(f, "{} has a format of before\n{REBUILD}", path.display()),
            Error::OtherKey { path } => {
                write!(f, "{} was written with another key than the settings hold now\n{REBUILD}", path.display())
            }
            Error::Stale => write!(
                f,
                "the registry failed before and must be opened again\nhint: start again; it goes on from its last checkpoint"
            ),
            Error::NotFound { what } => write!(f, "the registry has no {what}"),
            Error::Refused { why } => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
