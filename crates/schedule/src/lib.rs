//! When, and by whom, a URL is fetched: decided here, done elsewhere.
//!
//! Everything is a function of what comes in. Time is a `u64` of milliseconds on a monotonic clock that the caller reads; no
//! socket, no file, no clock and no chance live here.
//!
//! - [`Schedule`]: which host may be visited now; leases, politeness clocks, addresses, fairness
//! - [`pace`]: the gap between two requests to a site, `Retry-After`, backing off
//! - [`retry`]: what becomes of a URL whose visit failed
//! - [`budget`]: how much a crawl, and each site in it, may take
//! - [`revisit`]: when a page that was captured is looked at again, so that a budget of visits keeps the copies fresh
//! - [`trap`]: webs without end, and how little of them is fetched
//! - [`outage`], [`beat`]: whether the network is there at all, and whether this machine slept
//! - [`breaker`]: whether an address turns us away, whatever site of it we ask for
//! - [`mirror`]: many sites at one address that show the same pages
//! - [`bundle`]: what travels to whoever fetches, and back
//! - [`hands`]: whoever fetches, where it is not this process, and what becomes of what they bring
//! - [`near`]: who stands nearest to a host
//!
//! Never opens a socket. Never parses a page. Never keeps a URL: it counts them, the registry holds them.

pub mod beat;
pub mod breaker;
pub mod budget;
pub mod bundle;
pub mod hands;
pub mod id;
pub mod limits;
pub mod mirror;
pub mod near;
pub mod outage;
pub mod pace;
pub mod retry;
pub mod revisit;
pub mod schedule;
pub mod trap;

pub use bundle::{Bundle, BundleReport, BundleUrl, Fault, Park};
pub use hands::Hands;
pub use id::{AddressKey, HostId, LeaseId, SiteId};
pub use pace::Pace;
pub use schedule::{Config, Event, GaveUp, HostView, Order, Overview, Schedule, Standing};
