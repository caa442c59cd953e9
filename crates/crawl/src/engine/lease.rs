//! A lease becomes a bundle: URLs are taken from the host's queues, through the gate of the traps, and given to a worker.

use std::collections::HashMap;

use skep_page::LinkKind;
use skep_schedule::{Bundle, BundleReport, BundleUrl, Event as Told, GaveUp, HostId, LeaseId, Pace};
use skep_url::Url;

use super::{Engine, Out};
use crate::chance;
use crate::checks;
use crate::error::{Error, Result};
use crate::hearing::site_id;
use crate::hops::Hops;
use crate::ledger::name_of;
use crate::outcome::Outcome;
use crate::progress::Event;
use crate::records::Encoders;
use crate::registry::{self, State, Taken};
use crate::rules::Refusal;
use crate::traps::Turn;
use crate::worker::Errand;

impl Engine<'_> {
    /// Takes up to so many URLs of a host and has them fetched.
    pub(super) fn lease(
        &mut self,
        lease: LeaseId,
        host: HostId,
        urls_max: u32,
        pace: Pace,
        not_before_ms: u64,
        deadline_ms: u64,
    ) -> Result<()> {
        let known = self.ledger.registry.host(registry::HostId(host.0))?;
        let max = (urls_max as usize).min(self.budget_left()).min(self.site_left(&known));
        if max == 0 {
            self.held.insert(known.id); // what is out may be all that the budget allows
        }
        let taken = match self.held.contains(&known.id) || !self.leads(&known) {
            true => Vec::new(),
            false => self.take(&known, max)?,
        };
        let mut urls = Vec::with_capacity(taken.len());
        let mut parsed = Vec::with_capacity(taken.len());
        let mut entries = HashMap::with_capacity(taken.len());
        for (taken, url) in taken {
            parsed.push(url);
            let hops = Hops::unpack(taken.depth);
            let via = taken.via.map(|via| self.ledger.registry.url(via)).transpose()?;
            let due = match taken.class {
                registry::Class::Again => self.ledger.why_due(taken.entry)?,
                _ => None,
            };
            entries.insert(taken.entry, taken.class);
            urls.push(BundleUrl {
                entry: taken.entry,
                url: taken.url,
                depth: hops.depth,
                hops: hops.redirects,
                failures: taken.failures,
                via,
                due,
                etag: None,
                last_modified: None,
            });
        }
        if urls.is_empty() {
            self.empty.push((lease, host));
            return Ok(());
        }
        self.out_entries += entries.len();
        let slice = self.note_bundle(&known);
        let site = slice.map(|_| super::pace::site_of(&known));
        let settings = self.shared.settings();
        let counted = settings.bounded(name_of(&known.key), &known.site).map(|(name, _)| name.to_owned()).collect();
        self.out.insert(lease, Out { host, entries, ended: false, slice, site, counted });
        let bundle = Bundle { lease, host: known.key, site: known.site, urls, pace, not_before_ms, deadline_ms };
        self.give(Errand::Bundle(bundle, parsed))
    }

    /// Takes URLs that may be visited now. Where none may, the host is held until a visit shows more.
    fn take(&mut self, host: &registry::Host, max: usize) -> Result<Vec<(Taken, Url)>> {
        let waiting = self.take_shared(host, max)?;
        let site = site_id(&host.site);
        let (mut go, mut later, any) = (Vec::with_capacity(waiting.len()), Vec::new(), !waiting.is_empty());
        for taken in waiting {
            if let Err(refusal) = self.judge(&taken) {
                // What was visited before the rules changed stays visited.
                let state = match taken.outcome {
                    State::Queued => State::Refused { rule: refusal as u16 },
                    outcome => outcome,
                };
                self.ledger.registry.set_state(taken.entry, state)?;
                continue;
            }
            match self.ledger.traps.gate(&taken.url, site, Hops::unpack(taken.depth).depth) {
                Turn::Go => self.go(taken, &mut go)?,
                Turn::Later => later.push(taken),
                Turn::Never(code) => self.ledger.registry.set_state(taken.entry, State::Trap { code })?,
            }
        }
        // Where nothing else is left, waiting for others would be waiting for ever.
        while go.is_empty() && self.out_entries == 0 && !later.is_empty() {
            self.go(later.remove(0), &mut go)?;
        }
        if go.is_empty() && !later.is_empty() {
            self.held.insert(host.id);
        }
        self.refused_all |= any && go.is_empty() && later.is_empty();
        for taken in later {
            self.ledger.registry.set_state(taken.entry, State::Queued)?;
        }
        Ok(go)
    }

    /// Whether the rules as they are now still take in what earlier ones did. What another node sent was judged where it came in.
    fn judge(&mut self, taken: &Taken) -> std::result::Result<(), Refusal> {
        let kind = LinkKind::ALL.get(usize::from(taken.kind)).copied().unwrap_or(LinkKind::Anchor);
        match self.ledger.rules(self.crawl).filter(|_| self.sharing.is_none()) {
            Some(rules) => rules.judge(&taken.url, kind, Hops::unpack(taken.depth)),
            None => Ok(()),
        }
    }

    /// It may be visited, if it is a URL at all.
    fn go(&mut self, taken: Taken, go: &mut Vec<(Taken, Url)>) -> Result<()> {
        match Url::parse(&taken.url) {
            Ok(url) => go.push((taken, url)),
            Err(_) => self.ledger.registry.set_state(taken.entry, State::Refused { rule: Outcome::NO_URL.0 })?,
        }
        Ok(())
    }

    /// Leases for which there was nothing to fetch after all are over at once.
    pub(super) fn end_empty(&mut self) -> Result<()> {
        for (lease, host) in std::mem::take(&mut self.empty) {
            let held = self.held.contains(&registry::HostId(host.0));
            let waiting = if held { 0 } else { self.waiting(host)? };
            self.step(Told::Finished { lease, report: BundleReport { waiting, ..BundleReport::default() } })?;
        }
        Ok(())
    }

    /// Somebody came back: what he saw may let others go.
    pub(super) fn let_go(&mut self) {
        for host in std::mem::take(&mut self.held) {
            self.ledger.touch(host);
        }
    }

    /// URLs that the budgets of the host and its site allow, beside those that are out.
    fn site_left(&self, host: &registry::Host) -> usize {
        let settings = self.shared.settings();
        let left = settings.bounded(name_of(&host.key), &host.site).map(|(name, section)| {
            let spent = self.ledger.spent(self.crawl, name);
            let out = self.out.values().filter(|out| out.counted.iter().any(|counted| counted == name));
            let out: usize = out.map(|out| out.entries.len()).sum();
            match section.bytes.is_some_and(|bytes| spent.bytes >= bytes) {
                true => 0,
                false => section.pages.map_or(u64::MAX, |pages| pages.saturating_sub(spent.pages + out as u64)),
            }
        });
        usize::try_from(left.min().unwrap_or(u64::MAX)).unwrap_or(usize::MAX)
    }

    /// Gives work to the next worker.
    pub(super) fn give(&mut self, errand: Errand) -> Result<()> {
        self.next_hand = (self.next_hand + 1) % self.hands.len().max(1);
        let sent = self.hands.get(self.next_hand).is_some_and(|hand| hand.send(errand).is_ok());
        if sent { Ok(()) } else { Err(Error::Fetch("a worker has ended".into())) }
    }

    /// The address of a host is looked up before its first bundle, so that the limit per address holds from the first request on.
    pub(super) fn locate(&mut self, host: HostId) -> Result<()> {
        let key = self.ledger.registry.host(registry::HostId(host.0))?.key;
        match Url::parse(&format!("{key}/")) {
            Ok(url) => self.give(Errand::Locate(host, url)),
            Err(_) => Ok(()),
        }
    }

    /// A worker did not come back in time. It still may; until then its URLs are not given out again.
    pub(super) fn lapsed(&mut self, _lease: LeaseId, host: HostId) -> Result<()> {
        let host = self.ledger.registry.host(registry::HostId(host.0))?;
        (self.tell)(Event::Note { text: format!("a bundle of {} takes longer than its lease", host.key) });
        Ok(())
    }

    /// What waits for a host that was given up is dead in this pass.
    pub(super) fn give_up(&mut self, host: HostId, why: GaveUp) -> Result<()> {
        let id = registry::HostId(host.0);
        let key = self.ledger.registry.host(id)?.key;
        let outcome = match why {
            GaveUp::Banned => Outcome::HOST_BANNED,
            GaveUp::Failing | GaveUp::Refusing => Outcome::HOST_GIVEN_UP,
        };
        self.ledger.given_up(id, outcome)?;
        self.record_given_up(&key, outcome)?;
        self.retries.retain(|(_, other)| *other != host);
        (self.tell)(Event::GaveUp { host: key, why: why.text() });
        Ok(())
    }

    /// One line for all that waited: a rebuild gives the host up where the crawl did. Nobody waits for it; if it is lost, the host
    /// is tried again.
    fn record_given_up(&mut self, key: &str, outcome: Outcome) -> Result<()> {
        let settings = self.shared.settings();
        let line = checks::Check {
            fingerprint: self.shared.key.fingerprint(settings.number, key),
            time_ms: skep_archive::system_clock(),
            outcome: checks::Outcome::Fault(outcome.id().into()),
            failures: 0,
        };
        let (block, _all) = checks::encode(&settings.name, key, &[line]);
        let hash = skep_archive::Key::of(&format!("{key}/")).site_hash();
        let hash = crate::hearing::place_of(key).unwrap_or(hash);
        let id = chance::Ids::new(chance::draw()?).next();
        let mut encoders = Encoders::new(skep_warc::deflate::Level::new(1), self.archive.layout().root().to_path_buf());
        if let Ok(append) = encoders.checks(hash, skep_archive::system_clock(), block, id) {
            let _tried_again = self.archive.append_then(append, Box::new(|_| ()));
        }
        Ok(())
    }
}
