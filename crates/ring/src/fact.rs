//! What is signed and spread to everybody: records of nodes, proofs of absence, retirements, splits of sites.

use std::net::SocketAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::genesis::NetworkId;
use crate::key::{Hash, Key, Seal, Signature, signed};
use crate::ticket::SignedCertificate;
use crate::watch::AbsenceProof;

/// Whether a node means to stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// It is there.
    Staying,
    /// It goes when its copies are elsewhere.
    Leaving,
    /// It has gone, and will not be missed.
    Left,
}

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// Its certificate; the node's key is in it.
    pub certificate: Arc<SignedCertificate>,
    /// Higher is newer. A node that was called absent answers with a higher one.
    pub sequence: u64,
    /// By its own clock, in milliseconds since 1970.
    pub signed_ms: u64,
    /// Where it listens.
    pub addresses: Vec<SocketAddr>,
    /// A relay through which it can be reached.
    pub relay: Option<String>,
    /// Where its portal answers the public.
    pub portal: Option<String>,
    /// The newest protocol that it speaks, and the oldest.
    pub protocol: (u16, u16),
    /// Whether it stays.
    pub standing: Standing,
    /// Who watches it, by [`crate::watch::mark`] of their keys: as the circle was when it signed. Both the node and those who judge it count
    /// with this list, whatever members come or go where the other cannot see it.
    pub watchers: Vec<u64>,
}

/// A record and the node's signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedRecord {
    /// What is signed.
    pub record: NodeRecord,
    /// By the node.
    pub signature: Signature,
}

impl SignedRecord {
    /// Signs a record with the node's own seal.
    pub fn new(record: NodeRecord, node: &dyn Seal) -> SignedRecord {
        let signature = node.sign(&signed("skep record", &record));
        SignedRecord { record, signature }
    }

    /// The node.
    pub fn node(&self) -> Key {
        self.record.certificate.certificate.node
    }

    /// Its owner.
    pub fn owner(&self) -> Key {
        self.record.certificate.certificate.owner
    }
}

/// An owner says that a node of theirs will not return.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retirement {
    /// The network.
    pub network: NetworkId,
    /// The node.
    pub node: Key,
    /// Its owner, or an admission key of the network.
    pub by: Key,
}

/// A retirement and its signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedRetirement {
    /// What is signed.
    pub retirement: Retirement,
    /// By the owner.
    pub signature: Signature,
}

impl SignedRetirement {
    /// Signs a retirement; `owner` is the seal of the node's owner or an admission key.
    pub fn new(network: NetworkId, node: Key, owner: &dyn Seal) -> SignedRetirement {
        let retirement = Retirement { network, node, by: owner.key() };
        let signature = owner.sign(&signed("skep retirement", &retirement));
        SignedRetirement { retirement, signature }
    }
}

/// A site so large that its URLs are spread over slices; the table only grows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// The network.
    pub network: NetworkId,
    /// The hash of the site.
    pub site: u32,
    /// Bits of the URL's hash that join the key.
    pub bits: u8,
    /// From then on, in milliseconds since 1970.
    pub since_ms: u64,
    /// An admission key.
    pub by: Key,
}

/// A split and its signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedSplit {
    /// What is signed.
    pub split: Split,
    /// By the admission key.
    pub signature: Signature,
}

impl SignedSplit {
    /// Signs a split; `owner` is the seal of an admission key.
    pub fn new(network: NetworkId, site: u32, bits: u8, since_ms: u64, owner: &dyn Seal) -> SignedSplit {
        let split = Split { network, site, bits, since_ms, by: owner.key() };
        let signature = owner.sign(&signed("skep split", &split));
        SignedSplit { split, signature }
    }
}

/// Something signed that every node should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fact {
    /// A node about itself.
    Record(Arc<SignedRecord>),
    /// Watchers about a node.
    Absence(Arc<AbsenceProof>),
    /// An owner about a node.
    Retirement(Arc<SignedRetirement>),
    /// A site that is split.
    Split(Arc<SignedSplit>),
}

impl Fact {
    /// What names the fact when rosters are compared.
    pub fn hash(&self) -> Hash {
        Hash::of("skep fact", &postcard::to_allocvec(self).expect("plain data encodes"))
    }
}
