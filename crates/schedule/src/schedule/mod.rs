//! Which host may be visited now.
//!
//! Hosts with waiting URLs are linked in a ring per *group*: a site, or an own host without pace, which stands alone. A group is
//! in one place at a time:
//!
//! ```text
//!             clock passed                 lease                    finished, or lapsed
//!   clock ─────────────────▶ ready ─────────────────▶ out ──────────────────────────────▶ clock
//!                              │ ▲
//!         its address is full  ▼ │  a lease on that address ended
//!                            blocked
//! ```
//! Ready groups are served in the order in which they became ready, the hosts of a group in turns. A host that failed *rests*
//! outside its ring while its siblings go on, because one dead name must not stop a site; a refusal (429, 503) parks the whole
//! site, because its names are one server until proven otherwise.

mod bans;
mod groups;
mod leases;
mod overview;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::bundle::BundleReport;
use crate::id::{AddressKey, HostId, LeaseId, SiteId};
use crate::limits;
use crate::pace::Pace;

pub use overview::{HostView, Overview, Standing};

use groups::{Group, GroupState, HostState, Wish};
use leases::Lease;

/// What the schedule is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// So many URLs of the host wait now and may be fetched; zero when none does any more.
    Waiting {
        /// The host.
        host: HostId,
        /// Its site.
        site: SiteId,
        /// All that wait, not only new ones; those out with a lease do not count.
        urls: u32,
        /// The host is our own and wants no pace. Read when the host comes in; [`Event::Pace`] changes it later.
        own_pace_none: bool,
    },
    /// The host's address, or [`AddressKey::UNKNOWN`] where the look-up failed. For hosts that have been told of by
    /// [`Event::Waiting`].
    Located {
        /// The host.
        host: HostId,
        /// What limits how many leases are out at once.
        address: AddressKey,
    },
    /// A bundle came back.
    Finished {
        /// Its lease.
        lease: LeaseId,
        /// How it went.
        report: BundleReport,
    },
    /// The site is to be left alone until then. Also the way to bring a Crawl-delay or a park over a restart.
    Parked {
        /// The site.
        site: SiteId,
        /// The time.
        until_ms: u64,
    },
    /// What counts for all, from now on.
    Configured {
        /// Leases out at once, also on one own host without pace.
        concurrency: u32,
        /// The pace of hosts for which nothing else is said. Those that are known keep theirs.
        pace: Pace,
    },
    /// An operator's pace for a host; kept as long as the schedule lives where it differs from that of all, as is [`Event::Pause`].
    Pace {
        /// The host.
        host: HostId,
        /// See [`Pace::allowed`].
        pace: Pace,
    },
    /// A site that is worth more: each step lets it go before sites that have been ready for a minute longer.
    Priority {
        /// The site, which has waiting URLs.
        site: SiteId,
        /// Steps.
        priority: u8,
    },
    /// No leases of this host until [`Event::Resume`].
    Pause {
        /// The host.
        host: HostId,
    },
    /// Leases again.
    Resume {
        /// The host.
        host: HostId,
    },
    /// Nothing of the host is wanted any more.
    Drop {
        /// The host.
        host: HostId,
    },
    /// Is there room on the disk?
    Room(bool),
    /// Is the network there?
    Network(bool),
    /// The address turns us away, whatever site we ask for: its hosts rest until then. One goes first when the time is over.
    Banned {
        /// The address.
        address: AddressKey,
        /// The time.
        until_ms: u64,
        /// For the how-many-th time in a row.
        times: u8,
    },
    /// The address answers again.
    Unbanned {
        /// The address.
        address: AddressKey,
    },
    /// The address turned us away however long it was left alone: its hosts are given up.
    GiveUp {
        /// The address.
        address: AddressKey,
    },
    /// No more leases, ever.
    Stop,
    /// Time has passed.
    Tick,
}

/// What the schedule wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Take up to so many URLs of the host and have them fetched.
    Lease {
        /// To be named in the report.
        lease: LeaseId,
        /// The host.
        host: HostId,
        /// At most this many.
        urls_max: u32,
        /// The pace to keep within the bundle.
        pace: Pace,
        /// The first request goes out no earlier.
        not_before_ms: u64,
        /// The lease is over then, reported or not.
        deadline_ms: u64,
    },
    /// A lease passed its deadline: its URLs wait again.
    Lapsed {
        /// The lease.
        lease: LeaseId,
        /// Its host.
        host: HostId,
    },
    /// Look up the host's address and answer with [`Event::Located`]. Only with [`Config::locate_first`].
    Locate {
        /// The host.
        host: HostId,
    },
    /// The host is out of the schedule; what still waits for it is dead in this pass.
    GiveUp {
        /// The host.
        host: HostId,
        /// What it did.
        why: GaveUp,
    },
    /// Step again at this time, whatever happens. Replaces any earlier one.
    Wake {
        /// The time.
        at_ms: u64,
    },
}

/// Why a host was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GaveUp {
    /// It failed too often in a row.
    Failing,
    /// It refused too often in a row, however long we stayed away.
    Refusing,
    /// Its address turned us away on all its sites, however long we stayed away.
    Banned,
}

impl GaveUp {
    /// The short name for tables and verdicts.
    pub fn id(self) -> &'static str {
        match self {
            GaveUp::Failing => "host-failing",
            GaveUp::Refusing => "host-refusing",
            GaveUp::Banned => "host-banned",
        }
    }

    /// For a person who asks why.
    pub fn text(self) -> &'static str {
        match self {
            GaveUp::Failing => "its host could not be reached five times in a row",
            GaveUp::Banned => "its address turned away all its sites, however long they were left alone",
            GaveUp::Refusing => "its host refused (429 or 503) ten times in a row, however long it was left alone",
        }
    }
}

/// What the operator decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Leases out at once.
    pub concurrency: u32,
    /// Leases out at once on one own host without pace.
    pub own_concurrency: u32,
    /// Leases out at once on one address; own hosts without pace are not counted.
    pub address_in_flight_max: u16,
    /// URLs in one bundle.
    pub bundle_urls_max: u32,
    /// How long a lease lasts: nothing is begun afterwards.
    pub lease_ms: u64,
    /// How much longer what was begun under it may take. Until then nobody else is sent to the site.
    pub late_ms: u64,
    /// The pace of hosts for which nothing else is said.
    pub pace: Pace,
    /// When this schedule began: every site counts as just visited then, so that a restart never hurries anyone.
    pub started_ms: u64,
    /// How long a site counts as just visited; more than half a second after a restart that knows of Crawl-delays.
    pub first_gap_ms: u64,
    /// Ask for the address of a host before its first lease, so that the limit per address holds from the first request on.
    pub locate_first: bool,
    /// Failures of a host in a row after which it is given up.
    pub failures_max: u8,
    /// Waits after failures and refusals that name no time, in thousandths of the rule; a test may be impatient.
    pub backoff_permille: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            concurrency: limits::CONCURRENCY,
            own_concurrency: limits::OWN_CONCURRENCY,
            address_in_flight_max: limits::ADDRESS_IN_FLIGHT_MAX,
            bundle_urls_max: limits::BUNDLE_URLS_MAX,
            lease_ms: limits::LEASE_MS,
            late_ms: 0,
            pace: Pace::Polite,
            started_ms: 0,
            first_gap_ms: limits::SITE_GAP_MS_MIN,
            locate_first: false,
            failures_max: limits::FAILURES_MAX,
            backoff_permille: 1_000,
        }
    }
}

/// The politeness clocks, the leases, and who is next.
#[derive(Debug)]
pub struct Schedule {
    config: Config,
    now_ms: u64,
    room: bool,
    network: bool,
    stopped: bool,
    hosts: BTreeMap<HostId, HostState>,
    groups: BTreeMap<Group, GroupState>,
    /// Groups by the time before which they are left alone.
    clock: BTreeSet<(u64, Group)>,
    /// Groups that may be visited now, by rank.
    ready: BTreeSet<(u64, Group)>,
    /// Groups that wait for an address, by rank.
    blocked: BTreeSet<(AddressKey, u64, Group)>,
    /// Leases out on an address.
    in_flight: BTreeMap<AddressKey, u16>,
    /// Addresses that turn us away, and until when; for ever where their hosts were given up.
    banned: BTreeMap<AddressKey, u64>,
    /// Hosts that failed, and until when they rest.
    resting: BTreeMap<HostId, u64>,
    rests: BTreeSet<(u64, HostId)>,
    wishes: BTreeMap<HostId, Wish>,
    /// Own hosts without pace: each a group of its own.
    own: BTreeSet<HostId>,
    leases: BTreeMap<LeaseId, Lease>,
    deadlines: BTreeSet<(u64, LeaseId)>,
    /// Lapsed leases whose report may still come, with what it is about.
    lapsed: BTreeMap<LeaseId, (HostId, Group)>,
    lease_last: u64,
    /// Leases allowed now: fewer than configured after this machine ran out of something.
    limit: u32,
    limit_rises_ms: u64,
    wake_ms: Option<u64>,
}

impl Schedule {
    /// An empty schedule: nothing waits, nothing is out.
    pub fn new(config: Config) -> Schedule {
        let config = Config {
            concurrency: config.concurrency.max(1),
            own_concurrency: config.own_concurrency.clamp(1, u32::from(u16::MAX)),
            address_in_flight_max: config.address_in_flight_max.max(1),
            bundle_urls_max: config.bundle_urls_max.max(1),
            failures_max: config.failures_max.max(1),
            ..config
        };
        Schedule {
            config,
            now_ms: config.started_ms,
            room: true,
            network: true,
            stopped: false,
            hosts: BTreeMap::new(),
            groups: BTreeMap::new(),
            clock: BTreeSet::new(),
            ready: BTreeSet::new(),
            blocked: BTreeSet::new(),
            in_flight: BTreeMap::new(),
            banned: BTreeMap::new(),
            resting: BTreeMap::new(),
            rests: BTreeSet::new(),
            wishes: BTreeMap::new(),
            own: BTreeSet::new(),
            leases: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            lapsed: BTreeMap::new(),
            lease_last: 0,
            limit: config.concurrency,
            limit_rises_ms: 0,
            wake_ms: None,
        }
    }

    /// Same state, same event, same `now_ms`: same orders, appended to `out`. A time before the last one counts as the last.
    pub fn step(&mut self, event: Event, now_ms: u64, out: &mut Vec<Order>) {
        self.now_ms = self.now_ms.max(now_ms);
        match event {
            Event::Waiting { host, site, urls, own_pace_none } => self.waiting(host, site, urls, own_pace_none),
            Event::Located { host, address } => self.located(host, address, out),
            Event::Finished { lease, report } => self.finished(lease, &report, out),
            Event::Parked { site, until_ms } => self.park(site, until_ms),
            Event::Configured { concurrency, pace } => self.configure(concurrency, pace),
            Event::Pace { host, pace } => self.set_pace(host, pace),
            Event::Priority { site, priority } => self.set_priority(site, priority),
            Event::Pause { host } => self.set_paused(host, true),
            Event::Resume { host } => self.set_paused(host, false),
            Event::Drop { host } => self.forget(host),
            Event::Room(room) => self.room = room,
            Event::Network(network) => self.network = network,
            Event::Banned { address, until_ms, times } => self.ban(address, until_ms, times),
            Event::Unbanned { address } => self.unban(address),
            Event::GiveUp { address } => self.give_up_address(address, out),
            Event::Stop => self.stopped = true,
            Event::Tick => {}
        }
        self.lapse(out);
        self.rouse();
        self.give(out);
        self.wake(event == Event::Tick, out);
    }

    fn configure(&mut self, concurrency: u32, pace: Pace) {
        let concurrency = concurrency.max(1);
        self.config.pace = pace;
        self.config.own_concurrency = concurrency.min(u32::from(u16::MAX));
        if concurrency != self.config.concurrency {
            (self.config.concurrency, self.limit) = (concurrency, concurrency);
        }
    }

    /// May one more lease go out?
    fn may_lease(&self) -> bool {
        self.room && self.network && !self.stopped && self.leases.len() < self.limit as usize
    }

    /// The next moment at which time alone changes something.
    fn wake(&mut self, asked: bool, out: &mut Vec<Order>) {
        let deadline = self.deadlines.first().map(|(at, _)| *at);
        let (mut clock, mut rest) = (None, None);
        if self.may_lease() {
            clock = self.clock.first().map(|(at, _)| *at);
            rest = self.rests.first().map(|(at, _)| *at);
        }
        let next = [deadline, clock, rest].into_iter().flatten().min();
        if let Some(at_ms) = next
            && (asked || self.wake_ms != next)
        {
            out.push(Order::Wake { at_ms });
        }
        self.wake_ms = next;
    }
}
