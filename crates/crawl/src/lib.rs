//! The crawl: runs the schedule against hands.
//!
//! Decides when a URL is due and who may fetch it, keeps the registry of every known URL, and turns visits into records.
//! Never parses a page. Never opens a socket itself.
//!
//! ```text
//! engine      one thread: hears what workers say, folds it, gives out bundles           settings    a crawl as meant
//! ledger      the registry in step with the records, live and after a crash              rules       which links belong to it
//! memo        what it remembers beside the URLs
//! registry    every known URL, on disk, exact                                            traps       which look like a trap
//! watching    what was visited is looked at again, when the schedule says so             finding     what a look brought
//! worker      threads that fetch;  bundle: one host at its pace;  visit: one page        control     others speak to a crawl
//! hands       others that fetch bundles, and what becomes of what they bring
//! sharing     many nodes, one crawl: what is led here;  outbox: links to what is led elsewhere
//! shared_body large bodies that other slices have
//! robots, clocks, remembered, payloads, judge, soft, network, keep: a step of a visit each           answers     why, queue, report
//! records, metadata, links, checks, heard, answer: what is written;  recorded: read back, in the order of the crawl
//! ```
//! Where to begin reading: [`visit`] is the life of one page, [`engine`] that of a crawl.

pub mod answer;
mod answers;
mod bring_back;
mod bundle;
pub mod canonical;
mod chance;
pub mod checks;
mod clocks;
mod control;
mod cookies;
mod dates;
mod engine;
mod error;
pub mod finding;
pub mod fuzz;
pub mod hands;
pub mod heard;
mod hearing;
pub mod hops;
mod inquiry;
mod judge;
mod keep;
mod ledger;
pub mod limits;
mod lines;
pub mod links;
mod memo;
pub mod metadata;
mod network;
mod outbox;
pub mod outcome;
mod payloads;
mod progress;
mod record_head;
mod recorded;
pub mod records;
pub mod registry;
mod registry_key;
mod remembered;
mod robots;
pub mod rules;
pub mod settings;
mod shared_body;
pub mod sharing;
mod soft;
mod traps;
mod validators;
pub mod visit;
mod watch_settings;
mod watches;
mod watching;
mod worker;

pub use answers::answer_at_rest as answer_question;
pub use bring_back::{BringBack, BroughtBack, Remembered};
pub use control::{Change, Control, Question};
pub use cookies::Cookies;
pub use engine::{Run, run};
pub use error::{Error, Result};
pub use finding::{Finding, Judges, Read};
pub use progress::{Ending, Event, Progress};
pub use registry_key::RegistryKey;
pub use settings::{Pass, Rate, Reach, Settings, SiteSettings, Speed, Type, Watch};
pub use watches::foreseen_of_unknown;
