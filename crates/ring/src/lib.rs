//! Many nodes, one archive: who holds what, and how it gets there.
//!
//! Everything that decides is a pure machine: time, chance and messages come in, actions go out. A simulator drives the very same types.
//! What runs them is [`shell`], over [`wire`].
//!
//! - [`genesis`], [`ticket`]: what a network is, and how a node becomes a member
//! - [`fact`], [`roster`], [`watch`]: signed facts about all nodes; who is absent
//! - [`relays`]: which relays other nodes serve
//! - [`placement`], [`epoch`]: who should hold a slice, and who does
//! - [`lease`]: who may lead a slice, and for how long
//! - [`pace`]: who may visit a site whose URLs are in many slices
//! - [`copy`], [`repair`], [`audit`], [`summary`]: what is copied from whom and what is acknowledged; what is done when holders
//!   come, go, or claim what they do not have
//! - [`holding`]: one slice at one node
//! - [`instruction`]: what owners tell all nodes
//! - [`links`]: links whose targets belong to others
//! - [`directory`]: who may have a large body that another slice brings
//! - [`message`]: everything that is said
//! - [`node`]: the machine that ties them together
//! - [`wire`]: the way to other nodes, as narrow as it can be
//! - [`shell`]: a node that runs: clock, journal, archive, wire
//!
//! Says who should hold what, and copies it. Never decides what is crawled.

pub mod audit;
pub mod chance;
pub mod copy;
pub mod directory;
pub mod epoch;
pub mod fact;
pub mod genesis;
pub mod holding;
pub mod instruction;
pub mod key;
pub mod lease;
pub mod limits;
pub mod links;
pub mod message;
pub mod node;
pub mod pace;
pub mod placement;
pub mod relays;
pub mod repair;
pub mod roster;
pub mod settings;
pub mod shell;
pub mod simulate;
pub mod summary;
pub mod ticket;
pub mod view;
pub mod watch;
pub mod wire;

pub use chance::Chance;
pub use genesis::{Genesis, NetworkId, Slice};
pub use key::{Ed25519, Hash, Key, Seal, SealRef, Signature};
pub use message::Message;
pub use node::{Action, Event, Node, Now};
pub use settings::{Mutation, Settings};
pub use shell::Shell;
pub use wire::{Ears, Wire};
