//! The portal: the HTTP face of an archive. Owns no state: everything is the archive's.
//!
//! Where to begin reading: `routes` says which address is answered by whom, `replay` is the life of a request for an archived page,
//! `server` the shell around all of it. `api` and `pages` tell what is in the archive, to programs and to people.
//!
//! ```no_run
//! use skep_archive::{Archive, OpenOptions};
//! use skep_portal::{Settings, serve};
//!
//! let archive = Archive::open("skep-archive".as_ref(), OpenOptions::default())?;
//! let serving = serve(std::sync::Arc::new(archive), Settings::at(([127, 0, 0, 1], 7070).into()))?;
//! println!("http://{}/", serving.address());
//! serving.wait();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod access;
mod address;
mod answer;
mod api;
mod cdx;
mod changes;
mod clients;
mod contribute;
mod elsewhere;
mod find;
mod frame;
mod fresh;
mod headers;
pub mod limits;
mod log;
mod memento;
mod message;
mod metrics;
mod missing;
mod pages;
mod portal;
mod proxy;
mod range;
mod replay;
mod reply;
mod rewritten;
mod routes;
mod server;
mod settings;
mod time;
mod tls;
mod trouble;
mod visit;

pub use access::Access;
pub use elsewhere::{Asker, Elsewhere, Everywhere, Scanned};
pub use fresh::{Tells, Watched};
pub use pages::{Unheard, Wish};
pub use server::{Error, Serving, Stop, serve};
pub use settings::{Lines, Settings};
