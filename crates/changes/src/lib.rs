//! The changes view: what was born, changed, moved or died, as a stream.
//!
//! ```text
//!  records ──▶ captures of a URL, by time ──▶ judged one after the other ──▶ events ──▶ log ──▶ whoever holds a cursor
//!                                               (page: compare)                        node:number
//! ```
//! Every two captures of a URL become an event, whoever made them. What a capture is judged to be follows from the captures of
//! its URL before it and from nothing else, so the view can be deleted and built again; a test compares both field by field.
//!
//! - Events are in order per URL, never lost, told at least once; one that is told again carries the same key, the position of
//!   its record. A capture that becomes known late has its URL judged again.
//! - A cursor names the log and the event. A log that was built again has another name: a cursor of the old one is an error
//!   that says how to go on, never a gap.
//!
//! Where to begin reading: `judge` is how a capture is judged, `follow` how the view follows the records, `sink` how events leave.

mod ahead;
mod at_hand;
mod back;
mod bodies;
mod checks;
mod cursor;
mod decided;
mod delta;
mod error;
mod event;
mod filter;
mod follow;
mod hosts;
mod judge;
pub mod limits;
mod log;
mod retain;
mod settings;
mod side_by_side;
pub mod sink;
mod state;
mod template;
mod told;

pub use ahead::{Answer, ahead};
pub use bodies::{Body, text_of};
pub use checks::{Check, Checked, Checks, Fingerprint, NoChecks, Said};
pub use cursor::{Cursor, NoCursor};
pub use delta::{Delta, NoDelta, Step, text_hash};
pub use error::{Error, Result};
pub use event::{By, Confidence, Details, Event, Kept, SCHEMA, Why};
pub use filter::{Filter, host};
pub use follow::Followed;
pub use log::{Changes, From};
pub use retain::{Retained, Retention};
pub use settings::{Death, Settings, SettingsAtHand, SiteRules};
