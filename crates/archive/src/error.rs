//! What can go wrong with an archive, told so that the caller can decide and a person can act.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

/// The result of everything in this package.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. Cheap to clone: one failed commit answers every append that was part of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// The system refused an operation on a file.
    Io {
        /// What was being done, as a phrase: `cannot write`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// No room for another record. What was acknowledged is unharmed; appending works again when there is room.
    DiskFull {
        /// The archive's folder.
        path: PathBuf,
    },
    /// Another process owns the archive; its control socket answers.
    Locked {
        /// The archive's folder.
        path: PathBuf,
        /// The owner's process number, if it left one.
        owner: Option<u32>,
    },
    /// The folder does not hold an archive.
    NotAnArchive {
        /// The folder.
        path: PathBuf,
    },
    /// The file was written by a version of Skep that is newer than this one.
    Newer {
        /// The file.
        path: PathBuf,
        /// The format version it names.
        found: u32,
        /// The newest version this program reads.
        known: u32,
    },
    /// Bytes that do not mean what they should.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in the file.
        offset: u64,
        /// What is wrong there.
        what: String,
        /// What to type next; empty if nothing is known to help.
        hint: &'static str,
    },
    /// The archive holds nothing of that name.
    NotFound {
        /// What was asked for.
        what: String,
    },
    /// The request cannot be granted as it stands.
    Refused {
        /// Why.
        why: String,
    },
    /// The records are private, and the archive is one of a network, in which others have copies of all that is appended.
    Private,
    /// The archive was opened for reading only, or is being closed.
    NotWritable {
        /// Why.
        why: &'static str,
    },
    /// The store of the views failed. Records are unharmed; opening again replays what the views miss.
    Views {
        /// What the store said.
        what: String,
    },
    /// A view folded from records was asked to fold something it cannot.
    Record {
        /// The file.
        path: PathBuf,
        /// Where the record begins.
        offset: u64,
        /// What the reader said.
        what: String,
    },
}

impl Error {
    /// An I/O error with what was being done and to which file. A full disk becomes [`Error::DiskFull`].
    pub fn io(doing: &'static str, path: &Path, source: io::Error) -> Error {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::DiskFull { path: path.to_path_buf() },
            _ => Error::Io { doing, path: path.to_path_buf(), source: Arc::new(source) },
        }
    }

    /// Bytes in `path` at `offset` that do not mean what they should.
    pub fn damaged(path: &Path, offset: u64, what: impl Into<String>, hint: &'static str) -> Error {
        Error::Damaged { path: path.to_path_buf(), offset, what: what.into(), hint }
    }

    /// Whether the file was simply not there.
    pub fn is_missing_file(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// What to type next, if anything is known to help.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::DiskFull { path } => Some(format!(
                "free some space on the disk that holds {}; if it goes on being said then, open the archive again",
                path.display()
            )),
            Error::Locked { path, owner } => Some(match owner {
                Some(pid) => format!("ask the owner through {}/control, or stop process {pid}", path.display()),
                None => format!("ask the owner through {}/control", path.display()),
            }),
            Error::NotAnArchive { .. } => {
                Some("`skep add FILE` begins an archive, `--archive DIR` names another".into())
            }
            Error::Newer { .. } => Some("use the version of skep that wrote it, or a later one".into()),
            Error::Damaged { hint, .. } if !hint.is_empty() => Some((*hint).to_string()),
            Error::Views { .. } => Some("`skep rebuild` drops the views and builds them again".into()),
            Error::Record { .. } => Some("`skep check` says what is wrong with the file".into()),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { doing, path, source } => write!(f, "{doing} {}: {source}", path.display()),
            Error::DiskFull { path } => write!(f, "no room left on the disk for {}", path.display()),
            Error::Locked { path, owner } => {
                write!(f, "the archive {} is in use", path.display())?;
                owner.map_or(Ok(()), |pid| write!(f, " by process {pid}"))
            }
            Error::NotAnArchive { path } => write!(f, "{} is not an archive", path.display()),
            Error::Newer { path, found, known } => {
                write!(f, "{} has format version {found}; this program reads up to {known}", path.display())
            }
            Error::Damaged { path, offset, what, .. } => write!(f, "{} at byte {offset}: {what}", path.display()),
            Error::NotFound { what } => write!(f, "{what} is not in this archive"),
            Error::Refused { why } => f.write_str(why),
            Error::Private => f.write_str("what is private is not kept where others have copies"),
            Error::NotWritable { why } => write!(f, "nothing can be appended: {why}"),
            Error::Views { what } => write!(f, "the store of the views failed: {what}"),
            Error::Record { path, offset, what } => write!(f, "record at byte {offset} of {}: {what}", path.display()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source.as_ref()),
            _ => None,
        }
    }
}

impl From<fjall::Error> for Error {
    fn from(error: fjall::Error) -> Error {
        let io = match &error {
            fjall::Error::Io(io) | fjall::Error::Storage(fjall::LsmError::Io(io)) => Some(io),
            _ => None,
        };
        match io.map(io::Error::kind) {
            Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
                Error::DiskFull { path: "the views".into() }
            }
            _ => Error::Views { what: error.to_string() },
        }
    }
}
