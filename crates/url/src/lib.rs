//! Everything Skep knows about addresses, as pure functions: no socket, no clock, no file.
//!
//! - [`surt`] and [`Key`]: the canonical form under which captures are filed, and the key of every table
//! - [`site`]: registrable domains by the public suffix list

pub mod key;
pub mod limits;
pub mod site;
pub mod surt;

pub use key::Key;
pub use site::{Part, Suffixes};
