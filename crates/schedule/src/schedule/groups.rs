//! Hosts, their rings, and the places where groups wait.

use super::Schedule;
use crate::id::{AddressKey, HostId, SiteId};
use crate::limits;
use crate::pace::{self, Pace};

/// What is visited by one bundle at a time: a site, or (then by several) an own host without pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    Site(SiteId),
    Own(HostId),
}

/// A host with waiting URLs, with URLs out, or with something an operator said about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostState {
    pub address: AddressKey,
    pub site: SiteId,
    pub waiting: u32,
    /// Neighbours in the ring of its group, while `linked`.
    next: HostId,
    previous: HostId,
    pub pace: Pace,
    /// Leases out.
    pub out: u16,
    /// Failures in a row.
    pub failures: u8,
    linked: bool,
    pub paused: bool,
    pub located: bool,
    /// [`super::Order::Locate`] went out for it.
    pub asked: bool,
}

/// What an operator said about a host that does not hold for all; kept also while nothing of it waits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wish {
    pace: Option<Pace>,
    paused: bool,
}

/// The clock of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupState {
    /// Left alone until then.
    pub next_ms: u64,
    /// Whose turn it is, or [`NOBODY`]: an option would cost eight bytes more for each of a million sites.
    head: HostId,
    /// The gap that applied last; sizes the next bundle.
    pub gap_ms: u32,
    /// Leases out.
    pub out: u16,
    /// Refusals in a row.
    pub refusals: u8,
    pub priority: u8,
    pub parked: bool,
    /// It waits for the addresses of its hosts.
    pub locating: bool,
    place: Place,
}

// A million waiting hosts, each a site of its own, cost 44 + 32 + 16 bytes each in trees that are a little more than half full.
const _: () = assert!(size_of::<HostState>() <= 40 && size_of::<GroupState>() <= 24 && size_of::<Group>() <= 8);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    Clock,
    Ready,
    Blocked,
}

/// No host has this number: a registry of so many would not fit on a disk.
const NOBODY: HostId = HostId(u32::MAX);

impl GroupState {
    /// Whose turn it is.
    pub fn head(&self) -> Option<HostId> {
        Some(self.head).filter(|head| *head != NOBODY)
    }

    /// Earlier is served first. Priority is a head start and not a class, so that nobody starves.
    fn rank(&self) -> u64 {
        self.next_ms.saturating_sub(u64::from(self.priority) * limits::PRIORITY_LEAD_MS)
    }
}

impl Schedule {
    pub(super) fn group_of(&self, id: HostId, host: &HostState) -> Group {
        match host.pace {
            Pace::None => Group::Own(id),
            _ => Group::Site(host.site),
        }
    }

    pub(super) fn waiting(&mut self, id: HostId, site: SiteId, urls: u32, own_pace_none: bool) {
        match self.hosts.get_mut(&id) {
            // The hot path: a host that waits already, and goes on waiting.
            Some(host) if host.waiting > 0 && urls > 0 => host.waiting = urls,
            Some(_) => self.set_waiting(id, urls),
            None if urls == 0 => {}
            None => {
                let pace = if own_pace_none { Pace::None } else { self.config.pace };
                self.admit(id, site, pace);
                self.set_waiting(id, urls);
            }
        }
    }

    /// A host comes in; its group counts as visited when the schedule began.
    fn admit(&mut self, id: HostId, site: SiteId, pace: Pace) {
        let wish = self.wishes.get(&id).copied().unwrap_or_default();
        let pace = wish.pace.unwrap_or(pace);
        let host = HostState {
            address: AddressKey::UNKNOWN,
            site,
            waiting: 0,
            next: id,
            previous: id,
            pace,
            out: 0,
            failures: 0,
            linked: false,
            paused: wish.paused,
            located: false,
            asked: false,
        };
        if pace == Pace::None {
            self.own.insert(id);
        }
        let group = self.group_of(id, &host);
        self.hosts.insert(id, host);
        self.open(group, pace);
    }

    /// Makes sure that the group is there.
    fn open(&mut self, group: Group, pace: Pace) {
        let gap_ms = match pace {
            Pace::None => 0,
            pace => pace::gap_ms(&pace, None, 0).max(self.config.first_gap_ms),
        };
        self.groups.entry(group).or_insert(GroupState {
            next_ms: self.config.started_ms.saturating_add(gap_ms),
            head: NOBODY,
            gap_ms: 0,
            out: 0,
            refusals: 0,
            priority: 0,
            parked: false,
            locating: false,
            place: Place::Nowhere,
        });
    }

    pub(super) fn set_waiting(&mut self, id: HostId, urls: u32) {
        if let Some(host) = self.hosts.get_mut(&id) {
            host.waiting = urls;
            self.relink(id);
        }
    }

    pub(super) fn set_paused(&mut self, id: HostId, paused: bool) {
        self.wish(id, |wish| wish.paused = paused);
        if let Some(host) = self.hosts.get_mut(&id) {
            host.paused = paused;
            self.relink(id);
        }
    }

    pub(super) fn set_priority(&mut self, site: SiteId, priority: u8) {
        let group = Group::Site(site);
        self.lift(group);
        if let Some(state) = self.groups.get_mut(&group) {
            state.priority = priority;
        }
        self.place(group);
    }

    fn wish(&mut self, id: HostId, change: impl FnOnce(&mut Wish)) {
        let wish = self.wishes.entry(id).or_default();
        change(wish);
        if wish.pace.is_none() && !wish.paused {
            self.wishes.remove(&id);
        }
    }

    pub(super) fn set_pace(&mut self, id: HostId, pace: Pace) {
        let usual = self.config.pace;
        self.wish(id, |wish| wish.pace = Some(pace).filter(|pace| *pace != usual));
        let Some(host) = self.hosts.get(&id).copied() else { return };
        let (from, was_linked) = (self.group_of(id, &host), host.linked);
        if was_linked {
            self.unlink(id);
        }
        if let Some(host) = self.hosts.get_mut(&id) {
            host.pace = pace;
        }
        match pace {
            Pace::None => self.own.insert(id),
            _ => self.own.remove(&id),
        };
        let to = self.group_of(id, &HostState { pace, ..host });
        self.open(to, pace);
        // Whatever the site was told to wait, the host waits as well.
        let wait = self.groups.get(&from).map(|group| (group.next_ms, group.parked));
        self.lift(to);
        if let (Some((next_ms, parked)), Some(group)) = (wait, self.groups.get_mut(&to)) {
            group.next_ms = group.next_ms.max(next_ms);
            group.parked |= parked;
        }
        self.place(to);
        self.relink(id);
        self.close(from);
    }

    pub(super) fn park(&mut self, site: SiteId, until_ms: u64) {
        let until_ms = until_ms.min(self.now_ms.saturating_add(limits::PARK_MS_MAX));
        let own = self.own.iter().filter(|id| self.hosts.get(id).is_some_and(|host| host.site == site));
        let groups: Vec<Group> = own.map(|id| Group::Own(*id)).chain([Group::Site(site)]).collect();
        for group in groups {
            // A site without waiting URLs is remembered too: one may be heard of a moment later.
            if group == Group::Site(site) {
                self.open(group, self.config.pace);
            }
            self.lift(group);
            if let Some(state) = self.groups.get_mut(&group) {
                state.next_ms = state.next_ms.max(until_ms);
                state.parked = true;
            }
            self.place(group);
        }
    }

    pub(super) fn forget(&mut self, id: HostId) {
        let Some(host) = self.hosts.get(&id).copied() else { return };
        if host.linked {
            self.unlink(id);
        }
        self.end_rest(id);
        self.own.remove(&id);
        self.hosts.remove(&id);
        self.close(self.group_of(id, &host));
    }

    /// Out of its ring until then, while its siblings go on.
    pub(super) fn rest(&mut self, id: HostId, until_ms: u64) {
        self.end_rest(id);
        self.resting.insert(id, until_ms);
        self.rests.insert((until_ms, id));
    }

    pub(super) fn end_rest(&mut self, id: HostId) {
        if let Some(until_ms) = self.resting.remove(&id) {
            self.rests.remove(&(until_ms, id));
        }
    }

    /// Hosts and groups whose time has come.
    pub(super) fn rouse(&mut self) {
        while let Some((_, id)) = self.rests.first().copied().filter(|(until, _)| *until <= self.now_ms) {
            self.end_rest(id);
            self.relink(id);
        }
        while let Some((_, group)) = self.clock.first().copied().filter(|(at, _)| *at <= self.now_ms) {
            self.lift(group);
            self.place(group);
            self.close(group);
        }
    }

    /// Brings the ring in line with what is known of a host, and lets go of a host about which nothing is worth knowing.
    pub(super) fn relink(&mut self, id: HostId) {
        let Some(host) = self.hosts.get(&id).copied() else { return };
        let wanted = host.waiting > 0 && !host.paused && !self.resting.contains_key(&id);
        match (host.linked, wanted) {
            (false, true) => self.link(id),
            (true, false) => self.unlink(id),
            _ => {}
        }
        if host.waiting == 0 && host.out == 0 && !self.resting.contains_key(&id) {
            self.forget(id);
        }
    }

    /// In at the end of the ring.
    fn link(&mut self, id: HostId) {
        let Some(host) = self.hosts.get(&id).copied() else { return };
        let group = self.group_of(id, &host);
        self.open(group, host.pace);
        self.lift(group);
        let head = self.groups.get(&group).and_then(GroupState::head);
        let (next, previous) = match head.and_then(|head| Some((head, self.hosts.get(&head)?.previous))) {
            Some((head, tail)) => (head, tail),
            None => (id, id),
        };
        if let Some(host) = self.hosts.get_mut(&next) {
            host.previous = id;
        }
        if let Some(host) = self.hosts.get_mut(&previous) {
            host.next = id;
        }
        if let Some(host) = self.hosts.get_mut(&id) {
            (host.next, host.previous, host.linked) = (next, previous, true);
        }
        if let Some(state) = self.groups.get_mut(&group) {
            if state.head == NOBODY {
                // Ready since now, not since its clock ran down: who comes late stands at the end of the queue.
                state.next_ms = state.next_ms.max(self.now_ms);
            }
            state.head = head.unwrap_or(id);
        }
        self.place(group);
    }

    fn unlink(&mut self, id: HostId) {
        let Some(host) = self.hosts.get(&id).copied() else { return };
        let group = self.group_of(id, &host);
        self.lift(group);
        if let Some(next) = self.hosts.get_mut(&host.next) {
            next.previous = host.previous;
        }
        if let Some(previous) = self.hosts.get_mut(&host.previous) {
            previous.next = host.next;
        }
        if let Some(host) = self.hosts.get_mut(&id) {
            (host.next, host.previous, host.linked) = (id, id, false);
        }
        if let Some(state) = self.groups.get_mut(&group)
            && state.head == id
        {
            state.head = if host.next == id { NOBODY } else { host.next };
        }
        self.place(group);
    }

    /// The hosts of a ring, beginning with whose turn it is; no more than are worth trying.
    pub(super) fn turns(&self, group: Group) -> Vec<HostId> {
        let Some(head) = self.groups.get(&group).and_then(GroupState::head) else { return Vec::new() };
        let mut turns = vec![head];
        while turns.len() < limits::HOSTS_TRIED_MAX {
            match self.hosts.get(&turns[turns.len() - 1]).map(|host| host.next) {
                Some(next) if next != head => turns.push(next),
                _ => break,
            }
        }
        turns
    }

    /// The next turn is the one after `id`'s. The group is nowhere while this happens.
    pub(super) fn turn_past(&mut self, group: Group, id: HostId) {
        let next = self.hosts.get(&id).filter(|host| host.linked).map(|host| host.next);
        if let (Some(next), Some(state)) = (next, self.groups.get_mut(&group)) {
            state.head = next;
        }
    }

    /// Puts a group where it belongs. It must be nowhere.
    pub(super) fn place(&mut self, group: Group) {
        let own = self.config.own_concurrency;
        let Some(state) = self.groups.get_mut(&group) else { return };
        let out_max = if matches!(group, Group::Own(_)) { own } else { 1 };
        state.place = if u32::from(state.out) >= out_max {
            Place::Nowhere
        } else if state.next_ms > self.now_ms {
            self.clock.insert((state.next_ms, group));
            Place::Clock
        } else if state.head != NOBODY {
            state.parked = false;
            self.ready.insert((state.rank(), group));
            Place::Ready
        } else {
            Place::Nowhere
        };
    }

    /// Takes a group from where it is. Its head, the head's address, its clock and its priority change only after this.
    pub(super) fn lift(&mut self, group: Group) {
        let Some(state) = self.groups.get_mut(&group) else { return };
        let (place, rank, next_ms, head) = (state.place, state.rank(), state.next_ms, state.head());
        state.place = Place::Nowhere;
        let address = head.and_then(|head| self.hosts.get(&head)).map_or(AddressKey::UNKNOWN, |host| host.address);
        match place {
            Place::Nowhere => {}
            Place::Clock => {
                self.clock.remove(&(next_ms, group));
            }
            Place::Blocked => {
                self.blocked.remove(&(address, rank, group));
            }
            Place::Ready => {
                self.ready.remove(&(rank, group));
                // It may have been called for a place on this address that somebody else can use now.
                self.unblock(address);
            }
        }
    }

    /// The group at the front of the ready ones, which is nowhere then.
    pub(super) fn take_ready(&mut self) -> Option<Group> {
        let (_, group) = self.ready.pop_first()?;
        if let Some(state) = self.groups.get_mut(&group) {
            state.place = Place::Nowhere;
        }
        Some(group)
    }

    /// No place on the address of `head`: wait for one.
    pub(super) fn block(&mut self, group: Group, head: HostId) {
        let Some(address) = self.hosts.get(&head).map(|host| host.address) else { return };
        if let Some(state) = self.groups.get_mut(&group) {
            state.head = head;
            state.place = Place::Blocked;
            self.blocked.insert((address, state.rank(), group));
        }
    }

    /// Calls as many groups as the address has places now.
    pub(super) fn unblock(&mut self, address: AddressKey) {
        let free = self.config.address_in_flight_max.saturating_sub(self.on(address));
        for _ in 0..free {
            let from = (address, 0, Group::Site(SiteId(0)));
            let Some((_, rank, group)) = self.blocked.range(from..).next().copied().filter(|first| first.0 == address)
            else {
                return;
            };
            self.blocked.remove(&(address, rank, group));
            if let Some(state) = self.groups.get_mut(&group) {
                state.place = Place::Ready;
                self.ready.insert((rank, group));
            }
        }
    }

    /// Leases out on an address.
    pub(super) fn on(&self, address: AddressKey) -> u16 {
        self.in_flight.get(&address).copied().unwrap_or(0)
    }

    /// Lets go of a group that nobody is in and whose clock has run down.
    pub(super) fn close(&mut self, group: Group) {
        let done = |state: &GroupState| state.head == NOBODY && state.out == 0 && state.next_ms <= self.now_ms;
        if self.groups.get(&group).is_some_and(done) {
            self.lift(group);
            self.groups.remove(&group);
        }
    }

    /// Is the group waiting for an address?
    pub(super) fn is_blocked(&self, group: Group) -> bool {
        self.groups.get(&group).is_some_and(|state| state.place == Place::Blocked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Config, Event};

    #[test]
    fn what_holds_for_all_is_not_remembered_for_each() {
        let mut schedule = Schedule::new(Config { pace: Pace::Fixed(2_000), ..Config::default() });
        for host in 0..100 {
            schedule.step(Event::Pace { host: HostId(host), pace: Pace::Fixed(2_000) }, 0, &mut Vec::new());
        }
        assert!(schedule.wishes.is_empty());
        schedule.step(Event::Pace { host: HostId(1), pace: Pace::Polite }, 0, &mut Vec::new());
        assert_eq!(schedule.wishes.len(), 1);
        schedule.step(Event::Pace { host: HostId(1), pace: Pace::Fixed(2_000) }, 0, &mut Vec::new());
        assert!(schedule.wishes.is_empty());
    }
}
