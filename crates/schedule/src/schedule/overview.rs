//! What `skep queue` shows.

use serde::Serialize;

use super::Schedule;
use super::groups::{Group, HostState};
use crate::id::{HostId, SiteId};
use crate::pace::Pace;

/// The schedule in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// Hosts the schedule holds.
    pub hosts: usize,
    /// URLs that wait for a lease.
    pub urls_waiting: u64,
    /// Leases out.
    pub out: usize,
    /// Leases that may be out now.
    pub out_max: u32,
    /// Sites that could be visited now, had we a free place.
    pub ready: usize,
    /// Sites whose next host waits for a place on its address.
    pub blocked: usize,
    /// Sites that are left alone at the moment.
    pub clocked: usize,
    /// Hosts that rest after a failure.
    pub resting: usize,
    /// Is there room on the disk?
    pub room: bool,
    /// Is the network there?
    pub network: bool,
    /// Told to stop?
    pub stopped: bool,
}

/// One host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HostView {
    /// The host.
    pub host: HostId,
    /// Its site.
    pub site: SiteId,
    /// URLs that wait for a lease.
    pub waiting: u32,
    /// Bundles out.
    pub out: u16,
    /// Failures in a row.
    pub failures: u8,
    /// Its pace.
    pub pace: Pace,
    /// The gap that applied last, in milliseconds; zero before the first visit.
    pub gap_ms: u32,
    /// What it is waiting for.
    pub standing: Standing,
}

/// What a host is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Standing {
    /// An operator.
    Paused,
    /// A bundle of it is out.
    Out,
    /// It failed; tried again then.
    Resting {
        /// The time.
        until_ms: u64,
    },
    /// Its site asked us to stay away.
    Parked {
        /// The time.
        until_ms: u64,
    },
    /// The gap of its site; also while a sibling is being visited.
    Gap {
        /// The time, as far as it is known.
        until_ms: u64,
    },
    /// Its address has as many visitors as it may.
    Address,
    /// A free place: overdue.
    Place,
    /// Nothing waits.
    Idle,
}

impl Schedule {
    /// The numbers.
    pub fn overview(&self) -> Overview {
        Overview {
            hosts: self.hosts.len(),
            urls_waiting: self.hosts.values().map(|host| u64::from(host.waiting)).sum(),
            out: self.leases.len(),
            out_max: self.limit,
            ready: self.ready.len(),
            blocked: self.blocked.len(),
            clocked: self.clock.len(),
            resting: self.resting.len(),
            room: self.room,
            network: self.network,
            stopped: self.stopped,
        }
    }

    /// Leases that may be out now.
    pub fn places(&self) -> u32 {
        self.limit
    }

    /// One host, where the schedule holds it.
    pub fn host(&self, id: HostId) -> Option<HostView> {
        self.hosts.get(&id).map(|host| self.view(id, host))
    }

    /// All hosts, by number.
    pub fn hosts(&self) -> impl Iterator<Item = HostView> {
        self.hosts.iter().map(|(id, host)| self.view(*id, host))
    }

    /// Is nothing waiting and nothing out?
    pub fn is_idle(&self) -> bool {
        self.leases.is_empty() && self.hosts.values().all(|host| host.waiting == 0)
    }

    fn view(&self, id: HostId, host: &HostState) -> HostView {
        let group = self.group_of(id, host);
        let state = self.groups.get(&group);
        let standing = match state {
            _ if host.paused => Standing::Paused,
            _ if host.out > 0 => Standing::Out,
            _ if host.waiting == 0 => Standing::Idle,
            _ if let Some(until_ms) = self.resting.get(&id) => Standing::Resting { until_ms: *until_ms },
            Some(state) if state.parked && state.next_ms > self.now_ms => Standing::Parked { until_ms: state.next_ms },
            Some(state) if state.next_ms > self.now_ms => Standing::Gap { until_ms: state.next_ms },
            Some(state) if state.out > 0 && matches!(group, Group::Site(_)) => Standing::Gap { until_ms: self.now_ms },
            Some(_) if self.is_blocked(group) => Standing::Address,
            _ => Standing::Place,
        };
        HostView {
            host: id,
            site: host.site,
            waiting: host.waiting,
            out: host.out,
            failures: host.failures,
            pace: host.pace,
            gap_ms: state.map_or(0, |state| state.gap_ms),
            standing,
        }
    }
}
