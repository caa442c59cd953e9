//! Writing WARC/1.1.
//!
//! A [`Record`] is put together from its fields and checked as a whole; an [`Encoder`] turns it into bytes: one gzip member
//! (or zstd frame) per record, so that each can be read alone.
//!
//! ```
//! use skep_warc::write::{Compression, Encoder, Record, RecordId};
//!
//! let mut file = Vec::new();
//! let mut encoder = Encoder::new(Compression::GZIP);
//! let (request, response) = (RecordId::uuid([1; 16]), RecordId::uuid([2; 16]));
//! Record::response(&response, "2024-05-06T07:08:09Z", "http://a.example/", b"HTTP/1.1 200 OK\r\n\r\nhello")
//!     .ip_address([192, 0, 2, 1].into())
//!     .encode(&mut encoder, &mut file)?;
//! Record::request(&request, "2024-05-06T07:08:09Z", "http://a.example/", b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
//!     .concurrent_to(&response)
//!     .encode(&mut encoder, &mut file)?;
//! # Ok::<(), skep_warc::write::WriteError>(())
//! ```
//!
//! Large blocks stream from anything that can be read twice ([`Record::encode_stream`]) or once when the digests are known
//! ([`Record::encode_stream_once`]). Records read elsewhere are copied byte for byte, under any compression, with
//! [`Encoder::raw_record`] and [`Encoder::raw_stream`].

mod encoder;
mod error;
mod id;
mod record;
mod stream;

pub use encoder::{Compression, Encoder, Written};
pub use error::WriteError;
pub use id::RecordId;
pub use record::{Record, Revisit, Truncated};
