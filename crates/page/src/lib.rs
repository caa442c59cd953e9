//! What a page says, as pure functions over bytes: no socket, no clock, no file.
//!
//! - [`read`]: links, title, language, canonical URL, directives and signals, in one pass
//! - [`text`](text()): the text that a reader would see
//! - [`sitemap`](sitemap()), [`feed`](feed()): the entries of those files
//! - [`challenge`](challenge()): is this a page at all, or a test for robots?
//! - [`version`], [`compare`]: the page as it is compared with itself at another time, and what changed
//! - [`rewrite`]: the same page with its addresses led to a replay, byte by byte otherwise
//!
//! ```
//! use skep_page::{Input, LinkKind, read};
//!
//! let url = "https://example.org/a/".parse().unwrap();
//! let page = read(&Input { url: &url, head: None, body: b"<title>A &amp; B</title><a href='../c#d'>C</a>" });
//! assert_eq!(page.title.as_deref(), Some("A & B"));
//! assert_eq!((page.links[0].url.as_str(), page.links[0].kind), ("https://example.org/c", LinkKind::Anchor));
//! ```
//!
//! Pages are hostile: every bound is in [`limits`], and what meets one says so in [`Page::cut`]. Work is linear in the bytes.

mod challenge;
mod charset;
pub mod compare;
mod css;
mod directives;
mod element;
mod feed;
mod foreign;
pub mod fuzz;
mod header;
pub mod limits;
mod links;
mod markup;
mod outlinks;
mod page;
mod read;
mod refresh;
mod relation;
mod resolve;
pub mod rewrite;
mod scan;
mod sitemap;
mod sniff;
mod srcset;
mod text;
mod value;
pub mod version;

pub use challenge::challenge;
pub use feed::{Announced, Feed, feed};
pub use outlinks::{Outlink, Outlinks};
pub use page::{Cut, Directives, Kind, Link, LinkKind, Page};
pub use read::{Input, read, read_apart};
pub use sitemap::{Entry, Sitemap, sitemap};
pub use text::{Text, text};
pub use version::Version;
