//! The archive on disk: append-only WARC segments, and the views folded from their records.
//!
//! Appends, finds and rewrites records. Never parses a page. Never talks to a peer.
//!
//! Where to begin reading: [`commit`] is the life of an append, `opening` that of an archive after a crash.

mod archive;
mod capture;
pub mod captures;
mod catalog;
pub mod cdx;
pub mod cdxj;
mod check;
mod closing;
mod collect;
mod collections;
mod commit;
pub mod control;
mod copy;
mod describe;
pub mod digests;
mod error;
mod finding;
mod follow;
mod hidden;
mod identity;
mod keeper;
pub mod layout;
mod let_go;
pub mod limits;
mod lock;
pub mod memory;
mod numbers;
mod opening;
mod own;
mod places;
mod queue;
mod read;
mod recover;
mod referred;
mod remove;
mod removing;
mod replay;
mod rewrite;
pub mod runs;
mod segment;
mod selection;
pub mod settings;
pub mod sidecar;
mod statistics;
mod views;

pub use archive::{Archive, Clock, OpenOptions, Pending, Place, system_clock};
pub use capture::{Capture, CaptureKind, Digest, FLAG_HTTP, FLAG_PRIVATE, ParseError, Position, WriterKey};
pub use captures::Captures;
pub use catalog::{Segment, State};
pub use closing::Closing;
pub use collect::{Added, Adding, Addition, Additions};
pub use collections::{Candidate, CollectionFile, Collections, Members};
pub use commit::{Acknowledged, Append, Waiter};
pub use copy::{Copied, Copying, Held, PIECE_HEAD_BYTES_MAX, Piece, Taking, fuzz_piece};
pub use describe::{PRIVATE, capture as describe_capture, describe};
pub use digests::Digests;
pub use error::{Error, Result};
pub use finding::Finding;
pub use follow::Growth;
pub use hidden::Hidden;
pub use identity::Identity;
pub use own::{Bytes, CHECKS, Encoded, HEARD};
pub use read::Stored;
pub use referred::{Going, Referred, Referring};
pub use remove::{Listener, Matcher, Removal, Selector};
pub use removing::Removed;
pub use rewrite::{REMOVED_BY, RewritePlan};
pub use selection::{Holding, Selection};
pub use sidecar::{Entry, Note};
pub use skep_url::Key;
pub use statistics::{Statistics, Values};
pub use views::{Batch, Mark, SeenRecord, Table, View, Views, cannot_fold, is_listed};
