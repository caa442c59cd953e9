//! See Cargo.toml.

pub mod deflate;
