//! Sorted runs: immutable files of sorted entries, the fresh entries beside them, and how both are kept together.

mod bits;
mod captures_block;
mod captures_builder;
mod captures_row;
mod codec;
#[cfg(test)]
mod damage_tests;
mod entry;
mod file;
mod filter;
mod pairs_block;
mod scan;
mod set;
mod sort;
mod text;
mod url_form;

pub use captures_row::Row;
pub use scan::Direction;

pub(crate) use captures_block::{Captures as CapturesCodec, CapturesBlock};
pub(crate) use entry::{Moment, read as read_entry, write as write_entry, write_key};
pub(crate) use pairs_block::{LookedFor, Pair, Pairs};
pub(crate) use scan::{AnyBlock, Bounds, Span, Walk};
pub(crate) use set::{Bulk, RunSet, Staged, small_table};
