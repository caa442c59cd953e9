//! The HTTP/1 message inside a record: its head as it stands, and its body with the transfer encoding removed.
//!
//! Archives hold what servers sent, and servers send anything. Reading is therefore as lenient as browsers are, never
//! changes a byte that it hands out, and lists each deviation:
//!
//! ```
//! use skep_warc::http::{Head, Parsed, Rule};
//!
//! let message = b"HTTP 200 Document follows\nContent-type: text/HTML; charset=x\n\n<p>";
//! let mut head = Head::new();
//! let Parsed::Complete { body } = head.parse_response(message, true) else { panic!() };
//! assert_eq!(&message[body..], b"<p>");
//! assert_eq!(head.status(), Some(200));
//! assert_eq!(head.mime().as_deref(), Some("text/html"));
//! assert!(head.deviations().iter().any(|d| d.rule == Rule::Version));
//! ```
//!
//! [`Body`] removes the transfer encoding; [`crate::coding`] then removes content encodings.

mod body;
mod chunked;
mod deviation;
mod head;
pub mod limits;
mod lines;

pub use body::Body;
pub use chunked::{Chunks, Step};
pub(crate) use deviation::Deviations;
pub use deviation::{Deviation, Rule};
pub use head::{Field, Fields, Head, Parsed};
