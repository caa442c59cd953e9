//! The archive on disk: append-only WARC segments, and the views folded from their records.

mod capture;
pub mod captures;
pub mod digests;
mod error;
mod hidden;
mod identity;
pub mod layout;
pub mod limits;
mod lock;
pub mod runs;
pub mod settings;
pub mod sidecar;

pub use capture::{Capture, CaptureKind, Digest, FLAG_HTTP, FLAG_PRIVATE, ParseError, Position, WriterKey};
pub use captures::Captures;
pub use digests::Digests;
pub use error::{Error, Result};
pub use hidden::Hidden;
pub use identity::Identity;
pub use skep_url::Key;
