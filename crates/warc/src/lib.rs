//! WARC and ARC records, and the HTTP exchange inside them: read, write, repair.
//!
//! ```no_run
//! use skep_warc::{Options, Reader};
//! use std::io::Read;
//!
//! let mut reader = Reader::open("crawl.warc.gz", Options::recover())?;
//! while let Some(mut record) = reader.next()? {
//!     println!("{:?} at {}", record.head().kind(), record.offset());
//!     let mut block = Vec::new();
//!     record.read_to_end(&mut block)?;
//! }
//! for finding in reader.take_findings() {
//!     eprintln!("{finding}");
//! }
//! # Ok::<(), std::io::Error>(())
//! ```

mod arc;
mod beginning;
mod check;
pub mod coding;
mod container;
pub mod date;
pub mod deflate;
mod dictionary;
pub mod digest;
mod find;
mod finding;
pub mod fuzz;
pub mod fuzz_http;
mod gzip;
mod head;
pub mod http;
mod learned;
pub mod limits;
mod options;
mod read;
mod repair;
mod rules;
mod source;
mod split;
pub mod wacz;
pub mod write;

pub use check::{Verified, check_record, payload_of};
pub use container::Container;
pub use finding::{Finding, Rule, Severity};
pub use head::{Head, RecordKind, Version};
pub use options::{Filter, Options};
pub use read::{End, Reader, Record};
pub use repair::{Repaired, repair};
pub use split::{Part, read_parts};
