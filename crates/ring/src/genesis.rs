//! What a network is: fixed when it is made, the same on every node, and named by its hash.

use serde::{Deserialize, Serialize};

use crate::key::{Hash, Key, signed};
use crate::limits::{ADMISSION_KEYS_MAX, COPIES_MAX, NAME_BYTES_MAX, SLICE_BITS_MAX};

/// The version of the genesis that this program writes.
pub const GENESIS_VERSION: u16 = 1;

/// The name of a network: the hash of its genesis.
pub type NetworkId = Hash;

/// A slice: the highest bits of the hash of a site.
pub type Slice = u32;

/// What all nodes of a network agree upon before they meet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Genesis {
    /// [`GENESIS_VERSION`].
    pub version: u16,
    /// For people.
    pub name: String,
    /// There are two to the power of this many slices.
    pub slice_bits: u8,
    /// Holders wanted for each slice.
    pub copies: u8,
    /// BLAKE3 of the ICANN part of the public suffix list that says what a site is.
    pub suffixes: Hash,
    /// Keys that admit owners, by signing certificates or invitations.
    pub admission: Vec<Key>,
    /// The node that holds every slice in the first epoch.
    pub first: Key,
    /// When it was made, in milliseconds since 1970.
    pub made_ms: u64,
}

impl Genesis {
    /// The hash that names the network.
    pub fn id(&self) -> NetworkId {
        Hash::of("skep genesis", &signed("skep genesis", self))
    }

    /// How many slices there are.
    pub fn slices(&self) -> u32 {
        1 << self.slice_bits
    }

    /// The slice of a site hash.
    pub fn slice_of(&self, site_hash: u32) -> Slice {
        if self.slice_bits == 0 { 0 } else { site_hash >> (32 - u32::from(self.slice_bits)) }
    }

    /// Refuses what no node could run with.
    pub fn check(&self) -> Result<(), &'static str> {
        match self {
            _ if self.version != GENESIS_VERSION => Err("this genesis is of another version"),
            _ if self.name.is_empty() || self.name.len() > NAME_BYTES_MAX => {
                Err("a network has a name of 1 to 64 bytes")
            }
            _ if self.slice_bits > SLICE_BITS_MAX => Err("a network has at most 2^20 slices"),
            _ if self.copies == 0 || self.copies > COPIES_MAX => Err("a network keeps 1 to 7 copies"),
            _ if self.admission.is_empty() || self.admission.len() > ADMISSION_KEYS_MAX => {
                Err("a network has 1 to 16 admission keys")
            }
            _ => Ok(()),
        }
    }
}

/// How many of `holders` are a majority.
pub fn majority(holders: usize) -> usize {
    holders / 2 + 1
}
