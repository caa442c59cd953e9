//! What travels to whoever fetches, and back. Plain data: the local fetcher, followers and contributors read the same.

use serde::{Deserialize, Serialize};

use crate::id::LeaseId;
use crate::pace::Pace;
use crate::revisit::Due;

/// URLs of one host that travel together, under one lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundle {
    /// The lease it travels under.
    pub lease: LeaseId,
    /// `name:port`.
    pub host: String,
    /// The registrable domain.
    pub site: String,
    /// What to fetch, in this order.
    pub urls: Vec<BundleUrl>,
    /// The pace to keep between two requests; see [`crate::pace::gap_ms`].
    pub pace: Pace,
    /// The first request goes out no earlier.
    pub not_before_ms: u64,
    /// No request goes out that could still run at this time; what is left is given back.
    pub deadline_ms: u64,
}

/// One URL of a bundle, with what is needed for a conditional request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleUrl {
    /// Its number in the registry.
    pub entry: u64,
    /// The URL as it is fetched.
    pub url: String,
    /// Links between a seed and it.
    pub depth: u16,
    /// Redirects that led straight to it.
    pub hops: u8,
    /// Visits that failed in a row so far.
    pub failures: u8,
    /// The page it was first heard from.
    pub via: Option<String>,
    /// Why it is looked at again; nothing for what was never seen.
    #[serde(default)]
    pub due: Option<Due>,
    /// `ETag` of the capture we hold.
    pub etag: Option<Vec<u8>>,
    /// `Last-Modified` of the capture we hold.
    pub last_modified: Option<Vec<u8>>,
}

/// How a bundle ended. Times are on the schedule's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleReport {
    /// When the last answer (or the last failure) ended; nothing where no request was made.
    pub ended_ms: Option<u64>,
    /// How long the last answer took.
    pub answer_ms: u64,
    /// What robots.txt asks for.
    pub crawl_delay_ms: Option<u64>,
    /// URLs of the host that wait now, those given back included.
    pub waiting: u32,
    /// URLs that got an answer.
    pub done: u32,
    /// Why the bundle was broken off, where it was the host's or our machine's fault.
    pub fault: Option<Fault>,
    /// The host asked us to stay away.
    pub park: Option<Park>,
}

/// A failure that is not about one URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// The host: no name, no connection, no TLS, no answer. It rests.
    Host,
    /// Our machine: no descriptors, no ports, no memory. Fewer leases for a while; nobody is blamed.
    Local,
    /// What lies between: the network is down, or this machine slept. Nobody is blamed, and nothing else changes.
    Network,
}

/// What 429, 503 or a challenge page asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Park {
    /// Until then, by `Retry-After`.
    Until(u64),
    /// No time was named: 30 s, doubled each time up to an hour.
    Doubling,
}
