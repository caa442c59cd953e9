//! Going through entries and hosts: passes, reports, the list of queues.

use super::error::{Error, Result};
use super::states::{self, Class, Record, State};
use super::taking::End;
use super::{Conduct, Entry, EntryNumber, Host, HostId, Registry, describe, hosts};
use std::ops::ControlFlow;

impl Registry {
    /// Begins a new pass of a crawl: entries whose last outcome is one of these wait again, in the order of their numbers. Says how
    /// many. Goes through all entries once, holding none; a checkpoint should follow, because what is visited from now on
    /// belongs to the new pass.
    pub fn begin_pass(&mut self, crawl: u16, mut again: impl FnMut(State) -> bool) -> Result<u64> {
        let Some(begun) = self.pass(crawl).checked_add(1) else {
            return Err(Error::Refused { why: "a crawl has at most 65,536 passes".into() });
        };
        // Some may have been visited in it already: records of the new pass were folded before it was begun here.
        let mut visited = 0;
        let queued = self.queue_again(crawl, |state| {
            visited += u64::from(matches!(state, State::Visited { pass, .. } if pass == begun));
            again(state)
        })?;
        let crawl = self.crawl_mut(crawl);
        (crawl.pass, crawl.counts.visited_in_pass) = (begun, visited);
        Ok(queued)
    }

    /// Lets entries wait again whose last outcome is one of these, without a new pass: what was parked, when a budget is raised.
    pub fn queue_again(&mut self, crawl: u16, mut again: impl FnMut(State) -> bool) -> Result<u64> {
        self.doing(|registry| {
            let mut queued = 0;
            let mut last_host = None;
            for entry in 0..registry.urls.entries() {
                let before = states::read(&mut registry.pages, entry)?;
                let of_crawl = match last_host {
                    Some((host, of_crawl)) if host == before.host => of_crawl,
                    _ => hosts::crawl(&mut registry.pages, before.host)? == crawl,
                };
                last_host = Some((before.host, of_crawl));
                let rests = of_crawl && before.waits.is_none() && !registry.out.contains_key(&entry);
                if rests && again(before.outcome_state()) {
                    registry.enter(entry, before, Record { waits: Some(Class::Page), ..before }, End::Back)?;
                    queued += 1;
                }
            }
            Ok(queued)
        })
    }

    /// Goes through all entries from one on, in the order of their numbers.
    pub fn walk(&mut self, from: EntryNumber, mut each: impl FnMut(&Entry) -> ControlFlow<()>) -> Result<()> {
        self.doing(|registry| {
            let Registry { urls, pages, out, .. } = registry;
            urls.walk(from, |number, line| {
                let record = states::read(pages, number)?;
                Ok(each(&describe(number, line, &record, out.contains_key(&number))))
            })
        })
    }

    /// All that is known of a host.
    pub fn host(&mut self, host: HostId) -> Result<Host> {
        self.check_host(host)?;
        self.doing(|registry| registry.host_unchecked(host.0))
    }

    fn host_unchecked(&mut self, host: u32) -> Result<Host> {
        let out = self.out_by_host.get(&HostId(host)).copied().unwrap_or_default();
        self.hosts.get(&mut self.pages, host, out)
    }

    /// The host with a key in a crawl, if it is known.
    pub fn find_host(&mut self, crawl: u16, host_key: &str) -> Result<Option<HostId>> {
        let fingerprint = self.fingerprints.of_host(crawl, host_key);
        self.doing(|registry| Ok(registry.seen_hosts.find(fingerprint)?.map(|host| HostId(host as u32))))
    }

    /// What waits at a host, without its name: cheaper than [`host`](Registry::host).
    pub fn waiting(&mut self, host: HostId) -> Result<u32> {
        self.check_host(host)?;
        self.doing(|registry| hosts::waiting(&mut registry.pages, host.0))
    }

    /// Changes what is decided about a host or was observed of it.
    pub fn update_host(&mut self, host: HostId, change: impl FnOnce(&mut Conduct)) -> Result<()> {
        self.check_host(host)?;
        self.doing(|registry| {
            let before = hosts::conduct(&mut registry.pages, host.0)?;
            let mut conduct = before;
            change(&mut conduct);
            match conduct == before {
                true => Ok(()),
                false => hosts::set_conduct(&mut registry.pages, host.0, &conduct),
            }
        })
    }

    /// Sets everything that waits at a host to a state, such as refused, and says how much it was.
    pub fn drop_waiting(&mut self, host: HostId, state: State) -> Result<u64> {
        let mut dropped = 0;
        let mut taken = Vec::new();
        // A bundle at a time, so that a long queue is never in memory.
        loop {
            self.take(host, BUNDLE, i64::MAX, &mut taken)?;
            if taken.is_empty() {
                return Ok(dropped);
            }
            for one in taken.drain(..) {
                self.set_state(one.entry, state)?;
                dropped += 1;
            }
        }
    }

    /// Hosts in the order of their numbers, from one on; up to so many of which something waits or is out.
    pub fn busy_hosts(&mut self, from: HostId, max: usize, into: &mut Vec<Host>) -> Result<()> {
        self.doing(|registry| {
            let full = into.len().saturating_add(max);
            for host in from.0..registry.hosts.count {
                if into.len() >= full {
                    break;
                }
                let out = registry.out_by_host.contains_key(&HostId(host));
                if out || hosts::waiting(&mut registry.pages, host)? > 0 {
                    into.push(registry.host_unchecked(host)?);
                }
            }
            Ok(())
        })
    }

    /// Goes through all hosts from one on, in the order of their numbers.
    pub fn walk_hosts(&mut self, from: HostId, mut each: impl FnMut(&Host) -> ControlFlow<()>) -> Result<()> {
        self.doing(|registry| {
            for host in from.0..registry.hosts.count {
                if each(&registry.host_unchecked(host)?).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    /// The hosts that rank highest, highest first; those without a rank are left out. Holds no more than twice as many.
    pub fn top_hosts<R: Ord>(&mut self, max: usize, mut rank: impl FnMut(&Host) -> Option<R>) -> Result<Vec<Host>> {
        self.doing(|registry| {
            let mut best: Vec<(R, Host)> = Vec::new();
            // Of equals the one heard first comes first.
            let cut = |best: &mut Vec<(R, Host)>| {
                best.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.id.cmp(&b.1.id)));
                best.truncate(max);
            };
            for host in 0..registry.hosts.count {
                let host = registry.host_unchecked(host)?;
                if let Some(rank) = rank(&host) {
                    best.push((rank, host));
                }
                if best.len() >= max.saturating_mul(2).max(64) {
                    cut(&mut best);
                }
            }
            cut(&mut best);
            Ok(best.into_iter().map(|(_, host)| host).collect())
        })
    }

    pub(super) fn check_host(&self, host: HostId) -> Result<()> {
        match host.0 < self.hosts.count {
            true => Ok(()),
            false => Err(Error::NotFound { what: format!("host {}", host.0) }),
        }
    }
}

const BUNDLE: usize = 100;
