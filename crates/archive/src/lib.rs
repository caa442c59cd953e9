//! The archive on disk: append-only WARC segments, and the views folded from their records.

mod capture;
mod error;
mod identity;
mod key;
pub mod layout;
pub mod limits;
mod lock;
pub mod settings;
pub mod sidecar;

pub use capture::{Capture, CaptureKind, Digest, FLAG_HTTP, FLAG_PRIVATE, ParseError, Position, WriterKey};
pub use error::{Error, Result};
pub use identity::Identity;
pub use key::Key;
