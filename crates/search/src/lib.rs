//! Full text: titles and visible texts of captures, found by words, also as of a date.
//!
//! A view like the others: it follows the records, can be deleted and is made again. It is kept only where the archive's settings
//! say so ([`Text::keep`]). One document for each text of each URL; when a URL showed which text, the captures view says.
//!
//! Where to begin reading: `follow` is how texts come in, `found` how they are found.

mod error;
mod extract;
mod follow;
mod found;
mod index;
pub mod limits;
mod passage;
mod query;
mod tables;
mod text;
mod words;

pub use error::{Error, Result};
pub use found::{Asked, Found, Hit};
pub use index::Document;
pub use passage::Passage;
pub use query::{Ask, Part, Query};
pub use text::Text;
