//! How a node becomes a member: an admission key signs an invitation, the invitation's secret admits an owner's node, and
//! the owner's signature stands under the node's certificate.
//!
//! ```text
//!  genesis ── admission key ──signs──▶ invitation (public half, uses, expiry) ── secret half ──signs──▶ admission of node and owner
//!                    └────────── is itself the owner ──────────┐                                             │
//!                                                              ▼                                             ▼
//!                                             certificate: node, owner, capacity, zone, until   ◀──signs── owner
//! ```

use std::net::SocketAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::genesis::{Genesis, NetworkId};
use crate::key::{Key, Seal, Signature, hex, signed};
use crate::limits::{BOOTSTRAP_MAX, CAPACITY_GB_MAX, NAME_BYTES_MAX, TICKET_BYTES_MAX, ZONE_BYTES_MAX};

/// What a ticket allows; signed by an admission key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// The network.
    pub network: NetworkId,
    /// The public half of the ticket's secret.
    pub bearer: Key,
    /// Nodes that it admits.
    pub uses: u32,
    /// It admits nobody from then on, in milliseconds since 1970.
    pub expires_ms: u64,
    /// The admission key that signs.
    pub by: Key,
}

/// An invitation and its signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedInvitation {
    /// What is signed.
    pub invitation: Invitation,
    /// By the admission key.
    pub signature: Signature,
}

impl SignedInvitation {
    /// Signs an invitation; `seal` is that of an admission key.
    pub fn new(network: NetworkId, bearer: Key, uses: u32, expires_ms: u64, seal: &dyn Seal) -> SignedInvitation {
        let invitation = Invitation { network, bearer, uses, expires_ms, by: seal.key() };
        let signature = seal.sign(&signed("skep invitation", &invitation));
        SignedInvitation { invitation, signature }
    }

    /// Whether an admission key of the network signed it.
    pub fn check(&self, genesis: &Genesis, network: &NetworkId, seal: &dyn Seal) -> Result<(), &'static str> {
        let invitation = &self.invitation;
        if invitation.network != *network {
            return Err("the invitation is to another network");
        }
        if !genesis.admission.contains(&invitation.by) {
            return Err("the invitation is signed by a key that may not admit");
        }
        if !seal.verify(&invitation.by, &signed("skep invitation", invitation), &self.signature) {
            return Err("the signature of the invitation is wrong");
        }
        Ok(())
    }
}

/// What is handed to who shall join: where to knock, and the secret that opens. Printed as one word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// The signed invitation; it names the network.
    pub invitation: SignedInvitation,
    /// The secret half of its bearer key.
    pub secret: [u8; 32],
    /// Nodes to ask first, by key and address.
    pub bootstrap: Vec<(Key, SocketAddr)>,
    /// A name that resolves to addresses of such nodes, with a port.
    pub name: Option<String>,
}

/// Begins every ticket, so that one is recognised.
const TICKET_PREFIX: &str = "skep1";

impl Ticket {
    /// As one word: a prefix and hexadecimal digits.
    pub fn to_text(&self) -> String {
        format!("{TICKET_PREFIX}{}", hex(&postcard::to_allocvec(self).expect("plain data encodes")))
    }

    /// Reads one; the message says what is wrong.
    pub fn parse(text: &str) -> Result<Ticket, &'static str> {
        let digits = text.trim().strip_prefix(TICKET_PREFIX).ok_or("a ticket begins with `skep1`")?;
        if digits.len() > 2 * TICKET_BYTES_MAX {
            return Err("this is too long for a ticket");
        }
        if digits.len() % 2 != 0 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err("a ticket is `skep1` and hexadecimal digits; perhaps a part of it was not copied");
        }
        let bytes: Vec<u8> = (0..digits.len() / 2)
            .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).expect("digits were checked"))
            .collect();
        let (ticket, rest): (Ticket, _) = postcard::take_from_bytes(&bytes)
            .map_err(|_| "the ticket is damaged; perhaps a part of it was not copied")?;
        let named = ticket.name.as_ref().is_none_or(|name| name.len() <= 4 * NAME_BYTES_MAX);
        if !rest.is_empty() || ticket.bootstrap.len() > BOOTSTRAP_MAX || !named {
            return Err("the ticket is damaged");
        }
        Ok(ticket)
    }
}

/// Why a node may be a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Admission {
    /// The owner's key is an admission key of the genesis.
    Own,
    /// The bearer of an invitation named this node and this owner.
    Invited {
        /// What the bearer had.
        invitation: Arc<SignedInvitation>,
        /// When it was used, as the joiner says, in milliseconds since 1970. Of more nodes than there are uses, the first ones stay.
        used_ms: u64,
        /// By the invitation's secret, over node, owner and time.
        signature: Signature,
    },
}

/// What an owner says about a node of theirs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// The network.
    pub network: NetworkId,
    /// The node.
    pub node: Key,
    /// Whose it is.
    pub owner: Key,
    /// Room for copies, in gigabytes; earns ring positions.
    pub capacity_gb: u32,
    /// Where it stands: copies of a slice avoid sharing a zone while owners are few.
    pub zone: String,
    /// No longer a member from then on, in milliseconds since 1970.
    pub not_after_ms: u64,
    /// Why it may be a member.
    pub admission: Admission,
}

impl Certificate {
    /// Whether the invitation admits nobody any more.
    pub fn has_expired(&self, wall_ms: u64) -> bool {
        match &self.admission {
            Admission::Own => false,
            Admission::Invited { invitation, .. } => invitation.invitation.expires_ms <= wall_ms,
        }
    }
}

/// A certificate and the owner's signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedCertificate {
    /// What is signed.
    pub certificate: Certificate,
    /// By the owner.
    pub signature: Signature,
}

impl Admission {
    /// Uses a ticket's secret for a node.
    pub fn invited(ticket: &Ticket, bearer: &dyn Seal, node: Key, owner: Key, used_ms: u64) -> Admission {
        let signature = bearer.sign(&signed("skep admission", &(node, owner, used_ms)));
        Admission::Invited { invitation: Arc::new(ticket.invitation.clone()), used_ms, signature }
    }
}

impl SignedCertificate {
    /// Signs a certificate; `owner` is the seal of its owner.
    pub fn new(certificate: Certificate, owner: &dyn Seal) -> SignedCertificate {
        let signature = owner.sign(&signed("skep certificate", &certificate));
        SignedCertificate { certificate, signature }
    }

    /// Everything but the time.
    pub fn check(&self, genesis: &Genesis, network: &NetworkId, seal: &dyn Seal) -> Result<(), &'static str> {
        let certificate = &self.certificate;
        if certificate.network != *network {
            return Err("the certificate is of another network");
        }
        if certificate.zone.len() > ZONE_BYTES_MAX || certificate.capacity_gb > CAPACITY_GB_MAX {
            return Err("the certificate claims more than one may");
        }
        match &certificate.admission {
            Admission::Own if !genesis.admission.contains(&certificate.owner) => {
                return Err("the owner is neither a founder nor invited");
            }
            Admission::Own => {}
            Admission::Invited { invitation, used_ms, signature } => {
                invitation.check(genesis, network, seal)?;
                if *used_ms >= invitation.invitation.expires_ms {
                    return Err("the invitation had expired");
                }
                let said = signed("skep admission", &(certificate.node, certificate.owner, *used_ms));
                if !seal.verify(&invitation.invitation.bearer, &said, signature) {
                    return Err("the invitation does not name this node and owner");
                }
            }
        }
        if !seal.verify(&certificate.owner, &signed("skep certificate", certificate), &self.signature) {
            return Err("the owner's signature is wrong");
        }
        Ok(())
    }
}
