//! What a crawl tells while it runs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::outcome::Outcome;

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Event {
    /// The crawl begins, or goes on.
    Began {
        /// Its name.
        name: String,
        /// Which pass.
        pass: u32,
        /// URLs known already.
        known: u64,
        /// URLs waiting already.
        waiting: u64,
    },
    /// A visit is over and synced.
    Visited {
        /// The URL.
        url: String,
        /// What became of it.
        outcome: String,
        /// Bytes that came.
        bytes: u64,
        /// How long it took.
        ms: u64,
        /// Links that nobody had heard of.
        new_links: u32,
    },
    /// A site asked to be left alone.
    Parked {
        /// The site.
        site: String,
        /// For so long.
        seconds: u64,
    },
    /// A host was given up.
    GaveUp {
        /// The host.
        host: String,
        /// Why.
        why: &'static str,
    },
    /// This machine ran out of file descriptors, ports or memory: fewer hosts are visited at once for a while.
    Lowered {
        /// So many.
        concurrency: u32,
    },
    /// All sites of an address refuse, or are silent: they are left alone together.
    TurnedAway {
        /// The address.
        address: String,
        /// For so long.
        seconds: u64,
    },
    /// Nothing can be had, from nobody: the crawl waits, and no URL is blamed.
    Paused {
        /// What is wrong.
        why: &'static str,
        /// Since when.
        since: String,
    },
    /// The crawl goes on after a pause.
    Resumed {
        /// After so long.
        seconds: u64,
    },
    /// How it stands.
    Progress(Progress),
    /// Something people should know.
    Note {
        /// What.
        text: String,
    },
}

fn is_nothing(count: &u64) -> bool {
    *count == 0
}

/// How a crawl stands.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Progress {
    /// Since this run began.
    pub elapsed_ms: u64,
    /// Visits in this run.
    pub visits: u64,
    /// Visits per second, lately.
    pub rate: f64,
    /// Bytes that came in this run.
    pub bytes: u64,
    /// URLs that wait.
    pub waiting: u64,
    /// URLs out with a bundle.
    pub out: u64,
    /// Links on their way to other nodes.
    #[serde(skip_serializing_if = "is_nothing")]
    pub unsent: u64,
    /// URLs known.
    pub known: u64,
    /// Hosts that have waiting URLs.
    pub hosts: u64,
    /// Time left at this rate, if nothing new is found.
    pub left_ms: Option<u64>,
    /// Failures and refusals by class.
    pub errors: BTreeMap<&'static str, u64>,
    /// The slowest hosts lately, with milliseconds per answer.
    pub slowest: Vec<(String, u64)>,
    /// There is too little room on the disk.
    pub disk_full: bool,
    /// The network is down.
    pub offline: bool,
    /// Sites that are led here, not split, and too large to be led by one node: the name of each, and how many of its URLs are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub large: Vec<(String, u64)>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Nothing is left to do: the pass is over.
    Finished,
    /// Somebody asked it to stop; the same command goes on.
    Stopped,
    /// A budget is spent; the same command with a larger one goes on.
    Budget(&'static str),
    /// All that is left waits at sites that asked to be left alone, the first until then (milliseconds since 1970); the same
    /// command goes on when it is time.
    Parked(i64),
    /// The network has been down since then (milliseconds since 1970), for longer than a run waits; the same command goes on.
    Offline(i64),
}

/// Counts what happens in a run.
#[derive(Default)]
pub struct Counters {
    /// Visits.
    pub visits: u64,
    /// Bytes.
    pub bytes: u64,
    /// Failures and refusals.
    pub errors: BTreeMap<&'static str, u64>,
    slow: Vec<(String, u64)>,
    lately: std::collections::VecDeque<(u64, u64)>,
}

/// Hosts shown as the slowest.
const SLOWEST: usize = 5;
/// The rate is that of the last so many milliseconds.
const LATELY_MS: u64 = 10_000;

impl Counters {
    /// A visit is over.
    pub fn visited(&mut self, host: &str, outcome: Outcome, bytes: u64, ms: u64) {
        self.visits += 1;
        self.bytes += bytes;
        if outcome.failure().is_some() {
            *self.errors.entry(outcome.id()).or_default() += 1;
        }
        if ms == 0 || self.slow.len() >= SLOWEST && self.slow.last().is_some_and(|(_, least)| ms <= *least) {
            return;
        }
        self.slow.retain(|(known, _)| known != host);
        let at = self.slow.partition_point(|(_, slow)| *slow > ms);
        self.slow.insert(at, (host.to_string(), ms));
        self.slow.truncate(SLOWEST);
    }

    /// How it stands at this moment.
    pub fn progress(&mut self, elapsed_ms: u64) -> Progress {
        self.lately.push_back((elapsed_ms, self.visits));
        while self.lately.len() > 2 && self.lately.front().is_some_and(|(at, _)| at + LATELY_MS < elapsed_ms) {
            self.lately.pop_front();
        }
        let (from_ms, from) = self.lately.front().copied().unwrap_or((0, 0));
        let span = elapsed_ms.saturating_sub(from_ms);
        let rate = if span == 0 { 0.0 } else { (self.visits - from) as f64 * 1000.0 / span as f64 };
        Progress {
            elapsed_ms,
            visits: self.visits,
            rate,
            bytes: self.bytes,
            errors: self.errors.clone(),
            slowest: self.slow.clone(),
            ..Progress::default()
        }
    }
}
