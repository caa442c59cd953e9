//! Why a record was not written.

use std::{fmt, io};

use crate::RecordKind;

/// Why a record was not written. All but [`Io`](WriteError::Io), [`Short`](WriteError::Short) and
/// [`Changed`](WriteError::Changed) mean that the record itself is wrong and nothing was written.
#[derive(Debug)]
pub enum WriteError {
    /// A field name with characters that no name may have.
    BadName(String),
    /// A field value that would break the head apart (line ends, control characters) or change when read (outer spaces).
    BadValue(String),
    /// Not an absolute URI in `WARC-Record-ID` or a reference to one.
    BadId(String),
    /// Not a URI that a field can carry.
    BadUri(String),
    /// Not a date in UTC as the standard writes it.
    BadDate(String),
    /// A field that the writer itself sets, or one that may stand only once.
    Repeated(String),
    /// This type of record must have that field.
    Missing(RecordKind, &'static str),
    /// This type of record must not have that field.
    NotAllowed(RecordKind, &'static str),
    /// A block that is read only once needs its digests beforehand.
    DigestUnknown(&'static str),
    /// The block ended before its stated length: the output holds part of a record and must be cut back.
    Short {
        /// Stated length in bytes.
        stated: u64,
        /// Bytes that there were.
        found: u64,
    },
    /// The block changed between the reading for its digests and the reading for its bytes: the output must be cut back.
    Changed,
    /// Reading the block or writing the record failed: the output may hold part of a record.
    Io(io::Error),
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::BadName(name) => write!(f, "{name:?} is not a field name"),
            WriteError::BadValue(name) => {
                write!(f, "the value of {name} holds control characters, line ends or outer spaces, or is empty")
            }
            WriteError::BadId(id) => {
                write!(f, "{id:?} is not a record identifier (an absolute URI such as urn:uuid:…)")
            }
            WriteError::BadUri(uri) => write!(f, "{uri:?} is not a URI"),
            WriteError::BadDate(date) => write!(f, "{date:?} is not a date of the form 2024-05-06T07:08:09Z"),
            WriteError::Repeated(name) => write!(f, "the field {name} may stand only once and is already set"),
            WriteError::Missing(kind, field) => write!(f, "a {} record needs the field {field}", kind.name()),
            WriteError::NotAllowed(kind, field) => {
                write!(f, "a {} record must not have the field {field}", kind.name())
            }
            WriteError::DigestUnknown(field) => {
                write!(f, "{field} must be given for a block that can be read only once")
            }
            WriteError::Short { stated, found } => {
                write!(f, "the block ended after {found} bytes, {stated} were stated; the record is incomplete")
            }
            WriteError::Changed => f.write_str("the block changed while it was written; the record is wrong"),
            WriteError::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WriteError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> WriteError {
        WriteError::Io(error)
    }
}
