//! Sites that are split, as one node of many visits them: when it is worth asking for its turn, and when that goes back.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use skep_archive::Key;
use skep_schedule::limits::PARK_MS_MAX;
use skep_url::key::site_of_surt;
use skep_url::{Part, Splits, Suffixes, Url};

use super::share::Sharing;
use super::{Engine, is_spent};
use crate::error::Result;
use crate::ledger::name_of;
use crate::limits::{
    HEEDED_KEPT_MAX, HEEDED_MAX, LARGE_HOST_URLS_MIN, LARGE_MS, POLITE_HELD_MS, REMIND_MS, SITE_URLS_MAX,
};
use crate::registry;
use crate::sharing::{Politeness, slice_of};

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
    /// What the others were told last: whether it is worth a visit, and whether something is out there. What an earlier run told is not known.
    told: Option<(bool, bool)>,
    /// When they were told last what it wants, since a turn here was over.
    reminded: Option<Instant>,
    heeded: Heeded,
}

/// Names at a site of which others told how long they are to be left alone, until then.
#[derive(Default)]
struct Heeded(HashMap<String, Instant>);

impl Heeded {
    /// Whether it is taken in: whoever visits the site can say what is not so, but not fill the memory with it.
    fn take(&mut self, name: &str, until: Instant) -> bool {
        if self.0.len() >= HEEDED_KEPT_MAX && !self.0.contains_key(name) {
            return false;
        }
        let known = self.0.entry(name.to_owned()).or_insert(until);
        *known = until.max(*known);
        true
    }

    fn forget(&mut self, now: Instant) {
        self.0.retain(|_, until| now < *until);
    }
}

/// Whether clocks know something of this site by this name.
fn is_clock_of(site: u32, name: &str, suffixes: &Suffixes) -> bool {
    let url = Url::parse(&format!("http://{name}/"));
    url.is_ok_and(|url| url.site(suffixes, Part::Whole) == name && url.key().site_hash() == site)
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
    fn politeness_of(&self, site: u32, waits: &[(String, Duration)]) -> Politeness {
        let of_site = |(name, _): &&(String, Duration)| Key::of(&format!("http://{name}/")).site_hash() == site;
        let waits = waits.iter().filter(of_site);
        let waits = waits.map(|(name, wait)| (name.clone(), u32::try_from(wait.as_millis()).unwrap_or(u32::MAX)));
        Politeness { run: self.run, made_ms: skep_archive::system_clock(), waits: waits.collect() }
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
        let (now, now_ms) = (Instant::now(), skep_archive::system_clock());
        let heeded = &mut sharing.paces.sites.entry(site).or_default().heeded;
        heeded.forget(now);
        let known = politeness.iter().filter_map(|one| Politeness::decode(one));
        for politeness in known.filter(|politeness| politeness.run != sharing.run) {
            // Whoever visits one site has nothing to say of others; nor for how long beyond what is kept.
            let of_site = |(name, _): &(&str, Duration)| is_clock_of(site, name, &self.ledger.suffixes);
            for (name, left) in politeness.left(now_ms).filter(of_site).take(HEEDED_MAX) {
                let until = now + left.min(Duration::from_millis(PARK_MS_MAX));
                if heeded.take(name, until) {
                    self.shared.clocks.hold(name, until.into());
                }
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
            let back = (over && !out).then(|| sharing.politeness_of(site, &waits).encode());
            if back.is_some() {
                sharing.leading.offer_visit(site, None);
                // Where its home is held here, whoever leads that next hears of it from this node, too.
                sharing.news.insert(slice_of(site, sharing.leading.bits()));
            }
            let now = Instant::now();
            let pace = sharing.paces.sites.entry(site).or_default();
            let told = back.is_some() || pace.told != Some((wanted, out));
            if back.is_some() {
                pace.reminded = Some(now);
            }
            let due = |last: Instant| now.duration_since(last) >= Duration::from_millis(REMIND_MS);
            let reminds = granted.is_none() && pace.reminded.is_some_and(due);
            if told {
                pace.told = Some((wanted, out));
                sharing.outlet.pace(site, wanted, out, back);
            }
            if reminds {
                self.remind(site, &waits);
            }
        }
        Ok(())
    }

    /// What a site wanted in the last turn of this node may have got lost on its way to the others: as long as it holds, they are told again.
    fn remind(&mut self, site: u32, waits: &[(String, Duration)]) {
        let Some(sharing) = &mut self.sharing else { return };
        let politeness = sharing.politeness_of(site, waits);
        let holds = !politeness.waits.is_empty();
        sharing.paces.sites.entry(site).or_default().reminded = holds.then(Instant::now);
        if holds {
            sharing.outlet.remind(site, politeness.encode());
        }
    }

    /// Whether something waits in slices that are led here.
    fn is_worth_a_visit(&mut self, site: u32) -> Result<bool> {
        // Nobody says to other hands for how long such a site is theirs: where only those fetch, nobody visits it.
        let only_others = self.shared.others.as_ref().is_some_and(|others| others.only);
        if self.ending.is_some() || !self.is_open || only_others {
            return Ok(false);
        }
        let settings = self.shared.settings();
        let pace = self.sharing.as_ref().and_then(|sharing| sharing.paces.sites.get(&site));
        let hosts: Vec<registry::HostId> = pace.iter().flat_map(|pace| &pace.hosts).copied().collect();
        let now_ms = skep_archive::system_clock();
        for host in hosts {
            let known = self.ledger.registry.host(host)?;
            let retries = if known.retry_due_ms.is_some_and(|due_ms| due_ms > now_ms) { known.retries } else { 0 };
            let led = self.sharing.as_ref().is_some_and(|sharing| sharing.leading.may_fetch(&known.key));
            let held_back = known.conduct.paused
                || known.conduct.dropped
                || settings.is_paused(name_of(&known.key), &known.site)
                || is_spent(&self.ledger, &settings, &known);
            if led && known.waiting > retries && !held_back {
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
            sharing.outlet.pace(site, false, false, Some(sharing.politeness_of(site, &waits).encode()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_which_others_tell_are_those_of_clocks_and_no_more_than_there_is_room_for() {
        let (suffixes, site) = (Suffixes::compiled(), skep_url::key::hash_of_site("bees.example"));
        assert!(is_clock_of(site, "bees.example", &suffixes));
        for name in ["www.bees.example", "bees.example:80", "BEES.example", "bees.example/a", "ants.example", ""] {
            assert!(!is_clock_of(site, name, &suffixes), "{name}");
        }
        let (mut heeded, now) = (Heeded::default(), Instant::now());
        let hour = now + Duration::from_secs(3_600);
        assert!((0..HEEDED_KEPT_MAX).all(|number| heeded.take(&number.to_string(), hour)));
        assert!(!heeded.take("one more", hour) && heeded.take("7", now), "the longer wait counts");
        heeded.forget(now + Duration::from_secs(60));
        assert!(!heeded.take("one more", hour));
        heeded.forget(hour);
        assert!(heeded.take("one more", hour) && heeded.0.len() == 1);
    }

    #[test]
    fn sites_above_the_bound_are_told_of_the_largest_first() {
        let counts = [("bees.example", SITE_URLS_MAX), ("ants.example", SITE_URLS_MAX + 1), ("wasps.example", 1 << 40)];
        let counts = counts.map(|(name, urls)| (name.to_owned(), urls)).to_vec();
        let told: Vec<String> = too_large(counts).into_iter().map(|(name, _)| name).collect();
        assert_eq!(told, ["wasps.example", "ants.example"]);
    }
}
