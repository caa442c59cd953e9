//! The archive on disk: append-only WARC segments, and the views folded from their records.

mod capture;
mod error;
mod key;
pub mod limits;

pub use capture::{Capture, CaptureKind, Digest, FLAG_HTTP, FLAG_PRIVATE, ParseError, Position, WriterKey};
pub use error::{Error, Result};
pub use key::Key;
