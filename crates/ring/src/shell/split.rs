//! Sites that are split: where their URLs are, and whose turn it is to visit them.

use std::collections::BTreeSet;
use std::sync::Arc;

use skep_archive::Capture;
use skep_archive::captures::{Match, Query};
use skep_archive::runs::Direction;
use skep_url::{Key as UrlKey, Split, Splits, Url};

use super::{Scan, Shell, lock};
use crate::fact::{Fact, SignedSplit};
use crate::genesis::Slice;
use crate::key::{Key, Seal};
use crate::limits::PLACES_ASKED_MAX;
use crate::links;
use crate::message::PROTOCOL_SPLITS;
use crate::node::Event;
use crate::pace::Site;

/// A site is split from so many leases on: by then all have heard of it.
const SINCE_LEASES: u64 = 2;

impl Shell {
    /// Sites that are split, as far as is known here.
    pub fn splits(&self) -> Arc<Splits> {
        lock(&self.splits).clone()
    }

    /// The slices in which captures of a URL may be, its home first.
    pub fn slices_of(&self, key: &UrlKey) -> Vec<Slice> {
        self.splits().candidates(key).into_iter().map(|place| self.slice_of(place)).collect()
    }

    /// The slices in which something of a site may be, its home first.
    pub fn slices_of_site(&self, site: Site) -> Vec<Slice> {
        self.splits().places(site).into_iter().map(|place| self.slice_of(place)).collect()
    }

    /// Who visits a site that is split, where this node says whose turn it is.
    pub fn visitor(&self, site: Site) -> Option<Key> {
        let now_ms = self.clock.now().mono_ms;
        lock(&self.machine).node.core.visitor(site, now_ms)
    }

    /// A site that is split is worth visiting from here, or no longer. With politeness: nothing is out there, and it is somebody else's turn.
    pub fn pace(&self, site: Site, wanted: bool, out: bool, back: Option<Vec<u8>>) {
        self.tell(Event::Pace { site, wanted, out, back: back.map(Into::into) });
    }

    /// What a site wanted in an earlier turn of this node still holds, and is said once more.
    pub fn remind(&self, site: Site, politeness: Vec<u8>) {
        self.tell(Event::Remind { site, politeness: politeness.into() });
    }

    /// Splits a site, under the key with which the network was made. Says from when on that counts, or why it cannot be.
    pub fn split(&self, site: Site, bits: u8, owner: &dyn Seal) -> Result<Split, String> {
        let most = self.genesis().slice_bits.min(skep_url::limits::SPLIT_BITS_MAX);
        if bits == 0 || bits > most {
            return Err(format!("this network has {} slices: 1 to {most} bits", self.genesis().slices()));
        }
        if let Some(split) = self.splits().of(site) {
            return Err(format!("it is split already, by {} bits, and a site is split once", split.bits));
        }
        let older =
            self.others().into_iter().find(|node| self.spoken(node).is_none_or(|spoken| spoken < PROTOCOL_SPLITS));
        if let Some(older) = older {
            return Err(format!("node {} runs an older program, which knows nothing of splits", older.short()));
        }
        let since_ms = self.clock.now().wall_ms + SINCE_LEASES * self.settings.lease_ms;
        let split = SignedSplit::new(self.genesis().id(), site, bits, since_ms, owner);
        self.tell(Event::Learn(vec![Fact::Split(Arc::new(split))]));
        Ok(Split { bits, since_ms })
    }

    /// What was heard of splits is told to everything that asks where a URL is.
    pub(super) fn follow_splits(&self) {
        let splits = {
            let mut machine = lock(&self.machine);
            let version = machine.node.view.roster.splits_version();
            if machine.splits_version == version {
                return;
            }
            machine.splits_version = version;
            Arc::new(machine.node.view.roster.split_table())
        };
        if self.archive.know_splits(&splits).is_err() {
            // It is told again when the node begins the next time.
            self.refused(None, "which sites are split could not be written down");
        }
        *lock(&self.splits) = splits.clone();
        self.work.split(&splits);
    }

    /// Captures of one URL, or of one site, in all slices in which they may be, here and with others: each once, in the order of the query.
    pub fn captures_of_places(self: &Arc<Shell>, query: &Query) -> Result<Vec<Capture>, String> {
        let splits = self.splits();
        let (mut found, mut silent): (Vec<Capture>, Option<String>) = (Vec::new(), None);
        let mut look = |place: u32, found: &mut Vec<Capture>| -> Result<(), String> {
            let slice = self.slice_of(place);
            let part = Query { sites: self.sites(slice), ..query.at_place(place) };
            if self.is_here(slice) {
                let here = self.archive.views().captures.query(&part).map_err(|error| error.to_string())?;
                found.extend(here.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?);
                return Ok(());
            }
            // One place is mostly empty: what another has is told though nobody answers for it.
            match self.captures(slice, &Query { sites: (0, u32::MAX), ..part }) {
                Ok(there) => found.extend(there),
                Err(why) => silent = Some(why),
            }
            Ok(())
        };
        for place in query.matching.places(&splits) {
            look(place, &mut found)?;
        }
        if found.is_empty() {
            // It may have been fetched for another URL, and is filed with that one.
            let others = query.matching.other_places(&splits);
            let all = others.len() <= PLACES_ASKED_MAX;
            for place in others.into_iter().filter(|place| all || self.is_here(self.slice_of(*place))) {
                look(place, &mut found)?;
            }
        }
        if let Some(why) = silent.filter(|_| found.is_empty()) {
            return Err(why);
        }
        let order = |capture: &Capture| (capture.key.surt().to_owned(), capture.time_ms, capture.position);
        found.sort_by_cached_key(order);
        found.dedup_by_key(|capture| capture.position);
        if query.direction == Direction::Backward {
            found.reverse();
        }
        found.truncate(query.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX)));
        Ok(found)
    }

    /// Whether this node says what is in a slice: it holds it, or nobody does.
    fn is_here(&self, slice: Slice) -> bool {
        self.holds(slice) || self.holders(slice).is_empty()
    }

    /// Whether a part of what is asked for, all of it of one site, is with others only.
    pub fn is_in_part_elsewhere(&self, matching: &Match) -> bool {
        let places = matching.places(&self.splits());
        let mut slices = places.into_iter().map(|place| self.slice_of(place));
        slices.any(|slice| !self.is_here(slice))
    }

    /// The same captures one by one, of any number of URLs of one site, from all places of it.
    pub fn scan_places(self: &Arc<Shell>, query: &Query) -> Places {
        let scan = |place: u32| (self.scan(&query.at_place(place)), None);
        let parts: Vec<(Scan, Option<Capture>)> = query.matching.places(&self.splits()).into_iter().map(scan).collect();
        let silent = parts.iter().map(|(scan, _)| scan.silent()).sum();
        let left = query.limit.unwrap_or(u64::MAX);
        Places { parts, forward: query.direction == Direction::Forward, left, silent }
    }

    /// Whether this node leads a slice now.
    pub(super) fn leads(&self, slice: Slice) -> bool {
        let now_ms = self.clock.now().mono_ms;
        lock(&self.machine).node.core.leads(slice, now_ms).is_some()
    }

    /// All slices that links may belong to.
    pub(super) fn all_slices(&self, batch: &links::Batch) -> BTreeSet<Slice> {
        let urls = batch.links.iter().filter_map(|link| Url::parse(&link.url).ok());
        urls.flat_map(|url| self.slices_of(&url.key())).collect()
    }

    /// The slices that links may have gone to here: those of their places that are led here, or else their home.
    pub(super) fn led_places(&self, batch: &links::Batch) -> BTreeSet<Slice> {
        let now_ms = self.clock.now().mono_ms;
        let machine = lock(&self.machine);
        let mut places = BTreeSet::new();
        for link in &batch.links {
            let Ok(url) = Url::parse(&link.url) else { continue };
            let slices = self.slices_of(&url.key());
            let led = slices.iter().filter(|slice| machine.node.core.leads(**slice, now_ms).is_some());
            let before = places.len();
            places.extend(led.copied());
            if places.len() == before {
                places.extend(slices.first().filter(|_| !slices.iter().any(|slice| places.contains(slice))));
            }
        }
        places
    }
}

/// Captures of a site that is split, from all of its places in their common order.
pub struct Places {
    parts: Vec<(Scan, Option<Capture>)>,
    forward: bool,
    left: u64,
    silent: usize,
}

impl Places {
    /// For so many slices nobody answers.
    pub fn silent(&self) -> usize {
        self.silent
    }
}

impl Iterator for Places {
    type Item = Result<Capture, String>;

    fn next(&mut self) -> Option<Result<Capture, String>> {
        if self.left == 0 {
            return None;
        }
        for (scan, next) in &mut self.parts {
            if next.is_none() {
                match scan.next() {
                    Some(Ok(capture)) => *next = Some(capture),
                    Some(Err(why)) => {
                        self.left = 0;
                        return Some(Err(why));
                    }
                    None => {}
                }
            }
        }
        self.parts.retain(|(_, next)| next.is_some());
        let order = |at: &usize| {
            let next = self.parts[*at].1.as_ref();
            next.map(|capture| (capture.key.surt().to_owned(), capture.time_ms, capture.position))
        };
        let numbers = 0..self.parts.len();
        let at = if self.forward { numbers.min_by_key(order) } else { numbers.max_by_key(order) }?;
        self.left -= 1;
        self.parts[at].1.take().map(Ok)
    }
}
