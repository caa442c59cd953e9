//! Everything Skep knows about addresses, as pure functions: no socket, no clock, no file.
//!
//! - [`Url`], [`Host`]: URLs as they are fetched
//! - [`surt`], [`Key`], [`Scan`]: the form under which captures are filed, the key of every table, and ranges of keys
//! - [`site`]: registrable domains by the public suffix list
//! - [`split`]: sites so large that their URLs are spread over slices
//! - [`scope`]: which URLs belong to a crawl
//! - [`address`]: which addresses belong to the public Internet
//! - [`robots`]: robots.txt, with reasons

pub mod address;
pub mod fetch;
pub mod fuzz;
pub mod key;
pub mod limits;
pub mod robots;
pub mod scan;
pub mod scope;
pub mod site;
pub mod split;
pub mod surt;

pub use fetch::{Credentials, Host, Url, UrlError};
pub use key::Key;
pub use scan::{Match, Scan};
pub use scope::Scope;
pub use site::{Part, Suffixes};
pub use split::{Split, Splits};
