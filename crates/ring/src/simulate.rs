//! A world of nodes in one thread: virtual time, one seed, and the very machines that real nodes run.
//!
//! ```text
//!  scenario ──▶ faults ──▶ ┌────────────── world ──────────────┐ ──▶ auditor: what must never happen
//!                          │ events in the order of their time │
//!                          │ network: delay, loss, cuts        │ ──▶ figures: traffic, times, losses
//!                          │ disks, clocks, actors that lie    │
//!                          └── Core::handle of every node ─────┘
//! ```
//! Up to some hundreds of nodes have a view of their own and watch each other as real ones do. In larger worlds all share one
//! view, and the world tells watchers who is silent: rosters of 20,000 nodes at each of 20,000 nodes do not fit anywhere.
//!
//! - [`world`]: events and nodes
//! - [`network`]: delay, loss, cuts, copies
//! - [`crawl`]: visits under a lease
//! - [`disk`]: what is on the disks, and what becomes of it
//! - [`actor`]: nodes that lie
//! - [`auditor`]: what must hold
//! - [`plan`]: what can happen to a machine
//! - [`scenario`]: what happens to whom
//! - [`rates`]: from how long repairs take to what is lost in ten years

pub mod actor;
pub mod auditor;
pub mod crawl;
pub mod disk;
pub mod network;
pub mod plan;
pub mod rates;
pub mod scenario;
pub mod split;
pub mod world;

use crate::key::{Hash, Key, Seal, Signature};

/// A seal that costs a hash instead of a curve: whoever has the world's secret could forge, and nobody in the world has it.
pub struct Keyed {
    key: Key,
    world: [u8; 32],
}

impl Keyed {
    /// The seal of a number in a world.
    pub fn new(world: u64, number: u64) -> Keyed {
        let world = Hash::of("world", &world.to_be_bytes()).0;
        Keyed { key: Key(Hash::of("node", &number.to_be_bytes()).0), world }
    }

    fn tag(&self, key: &Key, bytes: &[u8]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.world);
        hasher.update(&key.0).update(bytes);
        *hasher.finalize().as_bytes()
    }
}

impl Seal for Keyed {
    fn key(&self) -> Key {
        self.key
    }

    fn sign(&self, bytes: &[u8]) -> Signature {
        let mut signature = [0; 64];
        signature[..32].copy_from_slice(&self.tag(&self.key, bytes));
        Signature::from_bytes(signature)
    }

    fn verify(&self, key: &Key, bytes: &[u8], signature: &Signature) -> bool {
        signature.to_bytes()[..32] == self.tag(key, bytes)
    }
}
