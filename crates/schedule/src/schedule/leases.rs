//! Leases: given, finished, lapsed.

use super::groups::{Group, HostState};
use super::{GaveUp, Order, Schedule};
use crate::bundle::{BundleReport, Fault, Park};
use crate::id::{AddressKey, HostId, LeaseId};
use crate::limits;
use crate::pace::{self, Pace};

/// A bundle that is out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    pub host: HostId,
    pub group: Group,
    /// The address it is counted on.
    pub address: AddressKey,
    /// Whoever has not come back by then is not waited for.
    pub lapses_ms: u64,
}

impl Schedule {
    /// Leases for as long as somebody is ready and there is a place.
    pub(super) fn give(&mut self, out: &mut Vec<Order>) {
        while self.may_lease() {
            let Some(group) = self.take_ready() else { return };
            match self.choose(group, out) {
                Choice::Host(host) => self.grant(group, host, out),
                Choice::Full(host) => self.block(group, host),
                Choice::Unlocated => self.await_addresses(group),
            }
        }
    }

    /// The first host in turn whose address has a place.
    fn choose(&mut self, group: Group, out: &mut Vec<Order>) -> Choice {
        // Nobody answered in time where a group comes back still waiting: then its hosts go without an address.
        let overdue = self.groups.get(&group).is_some_and(|state| state.locating);
        let mut full = None;
        for id in self.turns(group) {
            let Some(host) = self.hosts.get_mut(&id) else { continue };
            if self.config.locate_first && !host.located && !(host.asked && overdue) {
                if !host.asked {
                    host.asked = true;
                    out.push(Order::Locate { host: id });
                }
                continue;
            }
            let address = host.address;
            let limited = address.is_known() && host.pace != Pace::None;
            if limited && self.on(address) >= self.config.address_in_flight_max {
                full = full.or(Some(id));
                continue;
            }
            return Choice::Host(id);
        }
        full.map_or(Choice::Unlocated, Choice::Full)
    }

    fn await_addresses(&mut self, group: Group) {
        if let Some(state) = self.groups.get_mut(&group) {
            state.locating = true;
            state.next_ms = self.now_ms.saturating_add(limits::LOCATE_MS_MAX);
        }
        self.place(group);
    }

    fn grant(&mut self, group: Group, id: HostId, out: &mut Vec<Order>) {
        let Some(host) = self.hosts.get(&id).copied() else { return };
        let Some(state) = self.groups.get_mut(&group) else { return };
        self.lease_last += 1;
        let lease = LeaseId(self.lease_last);
        let urls_max = bundle_urls(&host, state.gap_ms, &self.config);
        let deadline_ms = self.now_ms.saturating_add(self.config.lease_ms);
        state.out += 1;
        state.locating = false;
        let head = state.head();
        let address = if host.pace == Pace::None { AddressKey::UNKNOWN } else { host.address };
        if address.is_known() {
            *self.in_flight.entry(address).or_insert(0) += 1;
        }
        let lapses_ms = deadline_ms.saturating_add(self.config.late_ms);
        self.leases.insert(lease, Lease { host: id, group, address, lapses_ms });
        self.deadlines.insert((lapses_ms, lease));
        out.push(Order::Lease { lease, host: id, urls_max, pace: host.pace, not_before_ms: self.now_ms, deadline_ms });

        self.turn_past(group, id);
        if let Some(host) = self.hosts.get_mut(&id) {
            host.out += 1;
            host.waiting -= urls_max.min(host.waiting);
        }
        self.place(group);
        self.relink(id);
        // Called for one address, gone to another: somebody else can have the place.
        if let Some(head) =
            head.and_then(|head| self.hosts.get(&head)).map(|head| head.address).filter(|a| *a != address)
        {
            self.unblock(head);
        }
    }

    pub(super) fn located(&mut self, id: HostId, address: AddressKey, out: &mut Vec<Order>) {
        let Some(host) = self.hosts.get(&id).copied() else { return };
        let group = self.group_of(id, &host);
        self.lift(group);
        if let Some(host) = self.hosts.get_mut(&id) {
            (host.address, host.located, host.asked) = (address, true, true);
        }
        if let Some(state) = self.groups.get_mut(&group)
            && state.locating
        {
            (state.locating, state.next_ms) = (false, self.now_ms);
        }
        self.place(group);
        // What is out already counts on the address as well.
        if host.pace != Pace::None && host.out > 0 && host.address != address {
            for lease in self.leases.values_mut().filter(|lease| lease.host == id && lease.group == group) {
                let before = std::mem::replace(&mut lease.address, address);
                count_out(&mut self.in_flight, before);
                if address.is_known() {
                    *self.in_flight.entry(address).or_insert(0) += 1;
                }
            }
            self.unblock(host.address);
        }
        self.share_ban(id, address, out);
    }

    pub(super) fn finished(&mut self, id: LeaseId, report: &BundleReport, out: &mut Vec<Order>) {
        let Some(lease) = self.take_back(id) else { return self.finished_late(id, report) };
        let ended_ms = report.ended_ms.map(|ended| ended.min(self.now_ms));
        let pace = self.hosts.get(&lease.host).map_or(self.config.pace, |host| host.pace);
        let gap_ms = pace::gap_ms(&pace, report.crawl_delay_ms, report.answer_ms);
        let mut refused_ms = 0;
        let mut gave_up = None;
        if let Some(state) = self.groups.get_mut(&lease.group) {
            state.gap_ms = u32::try_from(gap_ms).unwrap_or(u32::MAX);
            if let Some(ended_ms) = ended_ms {
                state.next_ms = state.next_ms.max(ended_ms.saturating_add(gap_ms));
            }
            match report.park {
                None if report.done > 0 && report.fault.is_none() => state.refusals = state.refusals.saturating_sub(1),
                None => {}
                Some(park) => {
                    state.refusals = state.refusals.saturating_add(1);
                    let doubled = |times| scaled(pace::backoff_ms(times), self.config.backoff_permille);
                    refused_ms = match park {
                        Park::Doubling => self.now_ms.saturating_add(doubled(state.refusals)),
                        Park::Until(until_ms) if state.refusals <= limits::PARKS_AT_WORD => until_ms,
                        Park::Until(until_ms) => {
                            until_ms.max(self.now_ms.saturating_add(doubled(state.refusals - limits::PARKS_AT_WORD)))
                        }
                    };
                    if state.refusals >= limits::PARKS_MAX {
                        gave_up = Some(GaveUp::Refusing);
                    }
                }
            }
        }
        self.place(lease.group);
        if let Some(host) = self.hosts.get_mut(&lease.host) {
            host.waiting = report.waiting;
            if report.done > 0 {
                host.failures = 0;
            }
            if report.fault == Some(Fault::Host) {
                host.failures = host.failures.saturating_add(1);
                let wait_ms = scaled(pace::backoff_ms(host.failures), self.config.backoff_permille);
                if host.failures >= self.config.failures_max {
                    gave_up = Some(GaveUp::Failing);
                }
                self.rest(lease.host, self.now_ms.saturating_add(wait_ms));
            }
            let site = self.hosts.get(&lease.host).map(|host| host.site);
            if let (Some(site), true) = (site, refused_ms > 0) {
                self.park(site, refused_ms);
            }
            self.relink(lease.host);
        }
        match report.fault {
            Some(Fault::Local) => self.shrink(),
            Some(Fault::Network) => {}
            Some(Fault::Host) | None => self.grow(),
        }
        if let Some(why) = gave_up
            && self.hosts.contains_key(&lease.host)
        {
            self.forget(lease.host);
            out.push(Order::GiveUp { host: lease.host, why });
        }
        self.close(lease.group);
    }

    /// The lease is no more, but somebody was at the site until then.
    fn finished_late(&mut self, id: LeaseId, report: &BundleReport) {
        let Some((host, group)) = self.lapsed.remove(&id) else { return };
        let pace = self.hosts.get(&host).map_or(self.config.pace, |host| host.pace);
        let gap_ms = pace::gap_ms(&pace, report.crawl_delay_ms, report.answer_ms);
        if let (Some(ended_ms), true) = (report.ended_ms, self.groups.contains_key(&group)) {
            self.lift(group);
            if let Some(state) = self.groups.get_mut(&group) {
                state.next_ms = state.next_ms.max(ended_ms.min(self.now_ms).saturating_add(gap_ms));
            }
            self.place(group);
        }
        if let (Some(Park::Until(until_ms)), Some(site)) = (report.park, self.hosts.get(&host).map(|host| host.site)) {
            self.park(site, until_ms);
        }
    }

    /// Leases that are over without a word. The site is given out again one gap later: whoever had it may have been there to
    /// the last moment.
    pub(super) fn lapse(&mut self, out: &mut Vec<Order>) {
        while let Some((lapses_ms, id)) = self.deadlines.first().copied().filter(|(at, _)| *at <= self.now_ms) {
            let Some(lease) = self.take_back(id) else { return };
            if let Some(state) = self.groups.get_mut(&lease.group) {
                let gap_ms = match lease.group {
                    Group::Own(_) => 0,
                    Group::Site(_) => u64::from(state.gap_ms).max(limits::SITE_GAP_MS_MIN),
                };
                state.next_ms = state.next_ms.max(lapses_ms.saturating_add(gap_ms));
            }
            self.place(lease.group);
            self.relink(lease.host);
            self.close(lease.group);
            self.lapsed.insert(id, (lease.host, lease.group));
            if self.lapsed.len() > limits::LAPSED_KEPT_MAX {
                self.lapsed.pop_first();
            }
            out.push(Order::Lapsed { lease: id, host: lease.host });
        }
    }

    /// Takes a lease off every account. Its group is nowhere afterwards.
    fn take_back(&mut self, id: LeaseId) -> Option<Lease> {
        let lease = self.leases.remove(&id)?;
        self.deadlines.remove(&(lease.lapses_ms, id));
        self.lift(lease.group);
        if let Some(state) = self.groups.get_mut(&lease.group) {
            state.out = state.out.saturating_sub(1);
        }
        if let Some(host) = self.hosts.get_mut(&lease.host) {
            host.out = host.out.saturating_sub(1);
        }
        count_out(&mut self.in_flight, lease.address);
        self.unblock(lease.address);
        Some(lease)
    }

    /// Our machine ran out of something: half as many at once. Those who ran out together say it one after the other, and mean
    /// the same.
    fn shrink(&mut self) {
        let shrunk_ms = self.limit_rises_ms.saturating_sub(limits::LOCAL_REST_MS);
        if self.limit_rises_ms > 0 && self.now_ms < shrunk_ms.saturating_add(limits::SHRINK_AGAIN_MS) {
            return;
        }
        let out_now = u32::try_from(self.leases.len()).unwrap_or(u32::MAX).saturating_add(1);
        self.limit = (self.limit.min(out_now) / 2).max(1);
        self.limit_rises_ms = self.now_ms.saturating_add(limits::LOCAL_REST_MS);
    }

    /// All is well again: one more for each bundle that came back.
    fn grow(&mut self) {
        if self.now_ms >= self.limit_rises_ms {
            self.limit = self.limit.saturating_add(1).min(self.config.concurrency);
        }
    }
}

enum Choice {
    /// This one.
    Host(HostId),
    /// None; this one would have been first, had its address a place.
    Full(HostId),
    /// None, and all wait for their addresses.
    Unlocated,
}

fn count_out(in_flight: &mut std::collections::BTreeMap<AddressKey, u16>, address: AddressKey) {
    if let Some(count) = in_flight.get_mut(&address) {
        *count -= 1;
        if *count == 0 {
            in_flight.remove(&address);
        }
    }
}

fn scaled(ms: u64, permille: u32) -> u64 {
    ms.saturating_mul(u64::from(permille)) / 1_000
}

/// How many URLs a bundle may have: what the site's gap lets through in a minute, so that a slow site does not hold a place
/// for long; and no more than its share where an own host is visited by several.
fn bundle_urls(host: &HostState, gap_ms: u32, config: &super::Config) -> u32 {
    let places = config.own_concurrency.saturating_sub(u32::from(host.out)).max(1);
    let fair = match host.pace {
        Pace::None => host.waiting.div_ceil(places).max(limits::OWN_BUNDLE_URLS_MIN),
        _ => u32::try_from(limits::HOLD_MS / u64::from(gap_ms.max(1))).unwrap_or(u32::MAX).max(1),
    };
    fair.min(config.bundle_urls_max)
}
