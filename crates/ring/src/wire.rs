//! The way to other nodes, as narrow as it can be: something is said, or something is asked. Everything above goes by the node's key;
//! what carries it is below, and tests carry it in memory.
//!
//! ```text
//!  say   one frame, in the order of saying as long as the way holds; may be lost, never waits
//!  ask   one question, and an answer that is read as it comes; every wait has an end
//! ```

pub mod cut;
pub mod memory;
pub mod quic;
mod relay;

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use crate::key::Key;

/// Why nobody answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence(pub String);

impl std::fmt::Display for Silence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Silence {}

/// An answer that comes.
pub type Answer = Box<dyn Read + Send>;

/// What a relay of this node did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Relayed {
    /// Nodes that are connected to it.
    pub nodes: u64,
    /// Bytes that it carried.
    pub bytes: u64,
    /// Connections that it refused.
    pub refused: u64,
}

/// The way to other nodes. Its calls come from threads that may wait.
pub trait Wire: Send + Sync {
    /// Who this node is to the others.
    fn key(&self) -> Key;

    /// Where this node listens.
    fn addresses(&self) -> Vec<SocketAddr>;

    /// Where a node is, as its newest record says.
    fn place(&self, node: Key, addresses: &[SocketAddr], relay: Option<&str>);

    /// Relays that members say that they serve, those first by which this node is to be reached, and who is a member may have changed. One is
    /// used as soon as that member itself has answered at the relay's address; no other ever is, but those that whoever runs the node has named.
    fn relays(&self, _served: &[(Key, String)]) {}

    /// The relay through which this node can be reached now.
    fn relay(&self) -> Option<String> {
        None
    }

    /// What the relay of this node did, if it serves one.
    fn relayed(&self) -> Option<Relayed> {
        None
    }

    /// Says something; it may be lost. Never waits.
    fn say(&self, to: Key, frame: Vec<u8>);

    /// Asks something. Neither the beginning of the answer nor any further part of it is waited for longer than `patience`.
    fn ask(&self, to: Key, question: &[u8], patience: Duration) -> Result<Answer, Silence>;

    /// Bytes that went out and came in so far.
    fn traffic(&self) -> (u64, u64);

    /// Nothing goes out or comes in any more.
    fn close(&self);
}

/// Who hears what others say and ask. The key is proven by the connection.
pub trait Ears: Send + Sync {
    /// Something was said. Never waits.
    fn hear(&self, from: Key, frame: Vec<u8>);

    /// Something came that is longer than anything an honest node sends; it was not read.
    fn too_long(&self, from: Key, why: &'static str);

    /// Whether this is the key of a node of the network, so that it may use what only members may.
    fn is_member(&self, key: &Key) -> bool;

    /// Something is asked; the answer goes to `out` while it is made. Runs on a thread that may wait.
    fn answer(&self, from: Key, question: Vec<u8>, out: &mut dyn Write) -> io::Result<()>;
}
