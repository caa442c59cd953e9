//! Addresses that turn us away: their hosts rest together. See [`crate::breaker`] for how that is known.

use super::{GaveUp, Order, Schedule};
use crate::id::{AddressKey, HostId};
use crate::limits;

/// Until the end of the run.
const FOR_EVER: u64 = u64::MAX;

impl Schedule {
    /// All hosts of the address rest. When the time is over one goes first, another one each time, and the others wait for what
    /// becomes of it.
    pub(super) fn ban(&mut self, address: AddressKey, until_ms: u64, times: u8) {
        let trial_ms = limits::BAN_TRIAL_MS.saturating_mul(u64::from(self.config.backoff_permille)) / 1_000;
        let later_ms = until_ms.saturating_add(trial_ms);
        self.banned.insert(address, later_ms);
        let hosts = self.hosts_at(address);
        let waiting: Vec<HostId> =
            hosts.iter().copied().filter(|id| self.hosts.get(id).is_some_and(|host| host.waiting > 0)).collect();
        let first = waiting.get(usize::from(times) % waiting.len().max(1)).copied();
        for id in hosts {
            if let Some(host) = self.hosts.get_mut(&id) {
                host.failures = 0;
            }
            self.rest(id, if first.is_none_or(|first| first == id) { until_ms } else { later_ms });
            self.relink(id);
        }
    }

    pub(super) fn unban(&mut self, address: AddressKey) {
        self.banned.remove(&address);
        for id in self.hosts_at(address) {
            self.end_rest(id);
            self.relink(id);
        }
    }

    pub(super) fn give_up_address(&mut self, address: AddressKey, out: &mut Vec<Order>) {
        self.banned.insert(address, FOR_EVER);
        for id in self.hosts_at(address) {
            self.forget(id);
            out.push(Order::GiveUp { host: id, why: GaveUp::Banned });
        }
    }

    /// A host that turns out to be at an address that turns us away shares the lot of the others.
    pub(super) fn share_ban(&mut self, id: HostId, address: AddressKey, out: &mut Vec<Order>) {
        match self.banned.get(&address).copied() {
            None => {}
            Some(FOR_EVER) => {
                self.forget(id);
                out.push(Order::GiveUp { host: id, why: GaveUp::Banned });
            }
            Some(until_ms) if until_ms > self.now_ms => {
                self.rest(id, until_ms);
                self.relink(id);
            }
            Some(_) => {
                self.banned.remove(&address);
            }
        }
    }

    fn hosts_at(&self, address: AddressKey) -> Vec<HostId> {
        self.hosts.iter().filter(|(_, host)| host.address == address).map(|(id, _)| *id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Event};
    use super::*;
    use crate::id::SiteId;
    use crate::pace::Pace;

    const NEAR: u8 = 1;
    const FAR: u8 = 2;

    fn address(number: u8) -> AddressKey {
        AddressKey::of(std::net::Ipv4Addr::new(192, 0, 2, number).into())
    }

    /// Hosts 0 to 4 at one address and 5 at another, each a site, all waiting.
    fn world() -> (Schedule, Vec<Order>) {
        let mut schedule = Schedule::new(Config { pace: Pace::Fixed(1), first_gap_ms: 0, ..Config::default() });
        let mut out = Vec::new();
        schedule.step(Event::Room(false), 0, &mut out);
        for number in 0..6 {
            let host = HostId(number);
            let waiting = Event::Waiting { host, site: SiteId(number), urls: 10, own_pace_none: false };
            schedule.step(waiting, 0, &mut out);
            let place = address(if number < 5 { NEAR } else { FAR });
            schedule.step(Event::Located { host, address: place }, 0, &mut out);
        }
        out.clear();
        (schedule, out)
    }

    fn leased(out: &mut Vec<Order>) -> Vec<u32> {
        let hosts = out.drain(..).filter_map(|order| match order {
            Order::Lease { host, .. } => Some(host.0),
            _ => None,
        });
        hosts.collect()
    }

    #[test]
    fn hosts_of_an_address_that_turns_us_away_rest_together_and_one_goes_first() {
        let (mut schedule, mut out) = world();
        schedule.step(Event::Banned { address: address(NEAR), until_ms: 30_000, times: 1 }, 1_000, &mut out);
        schedule.step(Event::Room(true), 1_000, &mut out);
        assert_eq!(leased(&mut out), [5], "the other address goes on");
        schedule.step(Event::Tick, 30_000, &mut out);
        assert_eq!(leased(&mut out), [1]);
        schedule.step(Event::Tick, 89_000, &mut out);
        assert_eq!(leased(&mut out), []);
        schedule.step(Event::Tick, 90_000, &mut out);
        assert_eq!(leased(&mut out).len(), 1, "two places at one address, and one is taken");
    }

    #[test]
    fn an_answer_lets_all_of_them_go() {
        let (mut schedule, mut out) = world();
        schedule.step(Event::Banned { address: address(NEAR), until_ms: 30_000, times: 1 }, 1_000, &mut out);
        schedule.step(Event::Unbanned { address: address(NEAR) }, 2_000, &mut out);
        schedule.step(Event::Room(true), 2_000, &mut out);
        assert_eq!(leased(&mut out).len(), 3, "two places at one address, one at the other");
    }

    #[test]
    fn a_host_that_is_found_at_a_banned_address_rests_too() {
        let (mut schedule, mut out) = world();
        schedule.step(Event::Banned { address: address(FAR), until_ms: 30_000, times: 1 }, 1_000, &mut out);
        (0..5).for_each(|number| schedule.step(Event::Drop { host: HostId(number) }, 1_000, &mut out));
        let host = HostId(9);
        schedule.step(Event::Waiting { host, site: SiteId(9), urls: 1, own_pace_none: true }, 1_000, &mut out);
        schedule.step(Event::Located { host, address: address(FAR) }, 1_000, &mut out);
        out.clear();
        schedule.step(Event::Room(true), 2_000, &mut out);
        assert_eq!(leased(&mut out), []);
    }

    #[test]
    fn hosts_of_an_address_that_never_relents_are_given_up() {
        let (mut schedule, mut out) = world();
        schedule.step(Event::GiveUp { address: address(NEAR) }, 1_000, &mut out);
        let given_up = out.iter().filter(|order| matches!(order, Order::GiveUp { why: GaveUp::Banned, .. })).count();
        assert_eq!((given_up, schedule.overview().hosts), (5, 1));
        let host = HostId(9);
        schedule.step(Event::Waiting { host, site: SiteId(9), urls: 1, own_pace_none: true }, 2_000, &mut out);
        schedule.step(Event::Located { host, address: address(NEAR) }, 2_000, &mut out);
        assert!(out.contains(&Order::GiveUp { host, why: GaveUp::Banned }), "nor is one that is found there later");
    }
}
