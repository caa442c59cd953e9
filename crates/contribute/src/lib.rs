//! Contributors: volunteers who lend bandwidth, and a node that believes nobody blindly.
//!
//! ```text
//!  the volunteer's side                                     the node's side
//!  contributor   takes bundles, fetches, returns: the spine  node       answers contributors: the spine
//!  meter         the owner's wishes hold (pure)              dispatch   which bundle is with whom (pure)
//!  turns, link   what is said to the node, and when          trust      who is believed, what is checked (pure)
//!  broker        resolves and connects, by the owner's rules  case, judge what is brought is held against what others see
//!  fetcher       TLS, HTTP, parsing; locked in by sandbox    book       what is known of contributors, on disk
//!                                                           neighbours other nodes where bundles wait, and the way there
//!                  message, envelope: what both say to each other (pure);  seen: what an exchange comes to
//!
//!  between nodes of a ring
//!  nearest       whoever leads gives bundles to the holder that stands nearest to the site
//!  follower      fetches them from there                     follow     what both say to each other (pure)
//! ```
//! Never writes a record: what contributors bring goes the way of every visit. Never decides what is due.

mod addresses;
mod book;
pub mod broker;
mod carry;
mod case;
mod columns;
mod coming;
pub mod contributor;
pub mod control;
pub mod dispatch;
pub mod envelope;
pub mod fetcher;
pub mod follow;
pub mod follower;
mod give_back;
mod judge;
mod key;
pub mod known_pages;
pub mod limits;
pub mod link;
pub mod message;
pub mod meter;
pub mod nearest;
pub mod neighbours;
pub mod networks;
pub mod node;
mod own_network;
pub mod pipe;
pub mod sandbox;
pub mod seen;
mod standings;
mod tables;
mod taken;
mod tasks;
pub mod trust;
mod turns;
mod unconfirmed;
pub mod unit;
mod work;

/// Runs something until it ends, on this thread.
pub fn block_on<T>(future: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let ended = runtime.block_on(future);
    // A look-up that nobody waits for any more keeps nobody here.
    runtime.shutdown_background();
    ended
}

pub use envelope::fuzz_message;
pub use node::Node;
