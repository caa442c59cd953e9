//! Sites that are split, as one node of many visits them: when it is worth asking for its turn, and when that goes back.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use skep_archive::Key;
use skep_schedule::limits::PARK_MS_MAX;
use skep_url::Splits;
use skep_url::key::site_of_surt;

use super::Engine;
use super::share::Sharing;
use crate::error::Result;
use crate::limits::{HEEDED_MAX, LARGE_HOST_URLS_MIN, LARGE_MS, POLITE_HELD_MS, SITE_URLS_MAX};
use crate::registry;
use crate::sharing::Politeness;

/// What an engine keeps of sites that are split.
#[derive(Default)]
pub(super) struct Paces {
    splits: Arc<Splits>,
    sites: BTreeMap<u32, Pace>,
    /// Sites that should be split, as it was when last looked at.
    large: Vec<(String, u64)>,
    looked: Option<Instant>,
}

#[derive(Default)]
struct Pace {
    /// Its hosts of which something waited.
    hosts: BTreeSet<registry::HostId>,
    /// What the others were told last: whether it is worth a visit, and whether something is out there.
    told: (bool, bool),
}

/// The hash of a host's site.
pub(super) fn site_of(host: &registry::Host) -> u32 {
    Key::of(&format!("{}/", host.key)).site_hash()
}

/// Those of more URLs than a site should have, the largest first.
fn too_large(mut counts: Vec<(String, u64)>) -> Vec<(String, u64)> {
    counts.retain(|(_, urls)| *urls > SITE_URLS_MAX);
    counts.sort_by_key(|(_, urls)| Reverse(*urls));
    counts
}

impl Sharing {
    /// Something may wait at a host: if its site is split, it is looked at whose turn it is.
    pub(super) fn note_host(&mut self, host: &registry::Host) {
        if self.paces.splits.is_empty() {
            return;
        }
        let site = site_of(host);
        if self.paces.splits.of(site).is_some() {
            self.paces.sites.entry(site).or_default().hosts.insert(host.id);
        }
    }

    /// How a site that is split was visited from here.
    fn politeness_of(&self, site: u32, waits: &[(String, Duration)]) -> Vec<u8> {
        let of_site = |(name, _): &&(String, Duration)| Key::of(&format!("http://{name}/")).site_hash() == site;
        let waits = waits.iter().filter(of_site);
        let waits = waits.map(|(name, wait)| (name.clone(), u32::try_from(wait.as_millis()).unwrap_or(u32::MAX)));
        Politeness { run: self.run, made_ms: skep_archive::system_clock(), waits: waits.collect() }.encode()
    }
}

impl Engine<'_> {
    /// This node may visit a site that is split until then; those who visited before tell how.
    pub(super) fn begin_visit(&mut self, site: u32, until: Instant, politeness: &[Vec<u8>]) -> Result<()> {
        self.heed(site, politeness);
        let Some(sharing) = &mut self.sharing else { return Ok(()) };
        if sharing.leading.begin_visit(site, until) {
            self.touch_site(site)?;
        }
        Ok(())
    }

    /// Others tell how they visited a site: it is left alone as long as it wants, and whoever leads here next hears of it.
    pub(super) fn heed(&mut self, site: u32, politeness: &[Vec<u8>]) {
        let Some(sharing) = &mut self.sharing else { return };
        let now_ms = skep_archive::system_clock();
        let known = politeness.iter().filter_map(|one| Politeness::decode(one));
        for politeness in known.filter(|politeness| politeness.run != sharing.run) {
            // Whoever visits one site has nothing to say of others; nor for how long beyond what is kept.
            let of_site = |(name, _): &(&str, Duration)| Key::of(&format!("http://{name}/")).site_hash() == site;
            for (name, left) in politeness.left(now_ms).filter(of_site).take(HEEDED_MAX) {
                let left = left.min(Duration::from_millis(PARK_MS_MAX));
                self.shared.clocks.hold(name, tokio::time::Instant::now() + left);
            }
        }
        sharing.news.extend(sharing.leading.slices_of_site(site));
    }

    /// Hosts of a site are told to the schedule anew.
    fn touch_site(&mut self, site: u32) -> Result<()> {
        let hosts = self.sharing.as_ref().and_then(|sharing| sharing.paces.sites.get(&site));
        let hosts: Vec<registry::HostId> = hosts.iter().flat_map(|pace| &pace.hosts).copied().collect();
        hosts.into_iter().for_each(|host| self.ledger.touch(host));
        self.tell_waiting()
    }

    /// Looks which sites are split, which of them are worth visiting, and whose turn is over.
    pub(super) fn look_at_paces(&mut self) -> Result<()> {
        let Some(sharing) = &mut self.sharing else { return Ok(()) };
        let splits = sharing.leading.splits();
        if !Arc::ptr_eq(&splits, &sharing.paces.splits) {
            sharing.paces.splits = splits.clone();
            if let Some(crossing) = &mut self.ledger.crossing {
                crossing.splits = splits.clone();
            }
            if splits.is_empty() {
                return Ok(());
            }
            // What waits there waits for a turn from now on.
            let (crawl, mut hosts) = (self.crawl, Vec::new());
            self.ledger.each_host(|host| {
                if host.crawl == crawl && host.waiting > 0 && splits.of(site_of(host)).is_some() {
                    hosts.push(host.id);
                }
            })?;
            hosts.into_iter().for_each(|host| self.ledger.touch(host));
            self.tell_waiting()?;
        }
        if splits.is_empty() {
            return Ok(());
        }
        let waits = self.shared.clocks.waits(Duration::from_millis(POLITE_HELD_MS));
        for (site, _) in splits.iter() {
            let wanted = self.is_worth_a_visit(site)?;
            let out = self.out.values().any(|out| out.site == Some(site));
            let Some(sharing) = &mut self.sharing else { break };
            let granted = sharing.leading.visits(site);
            let over = granted.is_some_and(|until| !wanted || Instant::now() >= until);
            let back = (over && !out).then(|| sharing.politeness_of(site, &waits));
            if back.is_some() {
                sharing.leading.offer_visit(site, None);
            }
            let pace = sharing.paces.sites.entry(site).or_default();
            if back.is_some() || pace.told != (wanted, out) {
                pace.told = (wanted, out);
                sharing.outlet.pace(site, wanted, out, back);
            }
        }
        Ok(())
    }

    /// Whether something waits in slices that are led here.
    fn is_worth_a_visit(&mut self, site: u32) -> Result<bool> {
        if self.ending.is_some() || !self.is_open {
            return Ok(false);
        }
        let pace = self.sharing.as_ref().and_then(|sharing| sharing.paces.sites.get(&site));
        let hosts: Vec<registry::HostId> = pace.iter().flat_map(|pace| &pace.hosts).copied().collect();
        let now_ms = skep_archive::system_clock();
        for host in hosts {
            let known = self.ledger.registry.host(host)?;
            let retries = if known.retry_due_ms.is_some_and(|due_ms| due_ms > now_ms) { known.retries } else { 0 };
            let led = self.sharing.as_ref().is_some_and(|sharing| sharing.leading.may(sharing.slice_of(&known)));
            if led && known.waiting > retries && !known.conduct.paused && !known.conduct.dropped {
                return Ok(true);
            }
            if known.waiting == 0
                && let Some(pace) = self.sharing.as_mut().and_then(|sharing| sharing.paces.sites.get_mut(&site))
            {
                pace.hosts.remove(&host);
            }
        }
        Ok(false)
    }

    /// Sites that should be split: so many URLs of them are known here that no other node could take them over in good time.
    pub(super) fn large(&mut self) -> Vec<(String, u64)> {
        let Some(sharing) = &self.sharing else { return Vec::new() };
        let due = |looked: Instant| looked.elapsed() >= Duration::from_millis(LARGE_MS);
        if sharing.paces.looked.is_none_or(due) {
            let (crawl, mut counts) = (self.crawl, BTreeMap::<u32, (String, u64)>::new());
            let suffixes = self.ledger.suffixes.clone();
            let walked = self.ledger.each_host(|host| {
                let urls: u64 =
                    [host.waiting, host.out, host.visited, host.failed, host.refused].map(u64::from).iter().sum();
                if host.crawl == crawl && urls >= LARGE_HOST_URLS_MIN && sharing.leading.may(sharing.slice_of(host)) {
                    let key = Key::of(&format!("{}/", host.key));
                    let name = || (site_of_surt(key.surt(), &suffixes), 0);
                    counts.entry(key.site_hash()).or_insert_with(name).1 += urls;
                }
            });
            let splits = sharing.leading.splits();
            counts.retain(|site, _| splits.of(*site).is_none());
            let counts = counts.into_values().collect();
            if let Some(sharing) = self.sharing.as_mut().filter(|_| walked.is_ok()) {
                (sharing.paces.large, sharing.paces.looked) = (too_large(counts), Some(Instant::now()));
            }
        }
        self.sharing.as_ref().map(|sharing| sharing.paces.large.clone()).unwrap_or_default()
    }

    /// The crawl ends: what this node might visit others may.
    pub(super) fn end_paces(&mut self) {
        let waits = self.shared.clocks.waits(Duration::from_millis(POLITE_HELD_MS));
        let Some(sharing) = &mut self.sharing else { return };
        let sites: Vec<u32> = sharing.paces.splits.iter().map(|(site, _)| site).collect();
        for site in sites {
            sharing.leading.offer_visit(site, None);
            sharing.outlet.pace(site, false, false, Some(sharing.politeness_of(site, &waits)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_above_the_bound_are_told_of_the_largest_first() {
        let counts = [("bees.example", SITE_URLS_MAX), ("ants.example", SITE_URLS_MAX + 1), ("wasps.example", 1 << 40)];
        let counts = counts.map(|(name, urls)| (name.to_owned(), urls)).to_vec();
        let told: Vec<String> = too_large(counts).into_iter().map(|(name, _)| name).collect();
        assert_eq!(told, ["wasps.example", "ants.example"]);
    }
}
