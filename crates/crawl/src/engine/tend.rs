//! What a crawl does beside visiting: budgets, checkpoints, progress, changed settings, room on the disk. Each at its time.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use skep_schedule::breaker::Ban;
use skep_schedule::outage::Cause;
use skep_schedule::{AddressKey, Event as Told, HostId};

use super::Engine;
use super::begin::places;
use crate::error::{Error, Result};
use crate::ledger::name_of;
use crate::limits::{CHECKPOINT_BYTES, CHECKPOINT_LINKS, CHECKPOINT_MS, LOOK_AROUND_MS, PROGRESS_MS};
use crate::memo;
use crate::progress::{Ending, Event, Progress};
use crate::settings::Settings;
use crate::worker::Errand;

impl Engine<'_> {
    pub(super) fn budget_left(&self) -> usize {
        if let Some(spending) = &self.spending {
            return spending.left();
        }
        let settings = self.shared.settings();
        let spent = self.ledger.registry.counts(self.crawl).visited_in_pass;
        let left = settings.pages.map_or(u64::MAX, |pages| pages.saturating_sub(spent + self.out_entries as u64));
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    pub(super) fn check_budgets(&mut self) {
        let settings = self.shared.settings();
        let counts = self.ledger.registry.counts(self.crawl);
        // A watch goes on with the pages it has.
        if !self.watches && settings.pages.is_some_and(|pages| counts.visited_in_pass >= pages) {
            self.stop(Ending::Budget("pages"));
        }
        // A watch has no passes: what it took in this run counts.
        let taken = if self.watches { self.counters.bytes } else { self.ledger.spent(self.crawl, memo::ALL).bytes };
        if settings.bytes.is_some_and(|bytes| taken >= bytes) {
            self.stop(Ending::Budget("bytes"));
        }
        if settings.time_ms.is_some_and(|ms| self.begun.elapsed() >= Duration::from_millis(ms)) {
            self.stop(Ending::Budget("time"));
        }
    }

    /// Whether it is time to look around.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.next_progress || self.wants_checkpoint(now)
    }

    fn wants_checkpoint(&self, now: Instant) -> bool {
        self.since_checkpoint_bytes >= CHECKPOINT_BYTES
            || self.since_checkpoint_links >= CHECKPOINT_LINKS
            || now >= self.next_checkpoint
    }

    /// Checkpoints, progress, settings and room on the disk, each at its time.
    pub(super) fn look_around(&mut self) -> Result<()> {
        let now = Instant::now();
        if now >= self.next_progress {
            self.next_progress = now + Duration::from_millis(PROGRESS_MS);
            let progress = self.progress();
            (self.tell)(Event::Progress(progress));
            self.check_budgets();
        }
        if self.wants_checkpoint(now) {
            self.checkpoint()?;
        }
        self.shared.network.beat(self.now_ms(), skep_archive::system_clock());
        if self.shared.network.is_probe_due(self.now_ms()) {
            self.give(Errand::Probe)?;
        }
        // What is led here waits for this node, however long that takes: nobody begins it anew.
        if !self.watches
            && self.sharing.is_none()
            && self.shared.network.is_hopeless(self.now_ms())
            && let Some(since_ms) = self.offline
        {
            self.stop(Ending::Offline(since_ms));
        }
        if now >= self.next_look {
            self.next_look = now + Duration::from_millis(LOOK_AROUND_MS);
            self.look_at_settings()?;
            let reserve = self.shared.settings().reserve_bytes.unwrap_or(skep_archive::limits::DISK_RESERVE_BYTES);
            let room = free_bytes(self.archive.layout().root())? > reserve;
            self.set_room(room)?;
        }
        self.tell_waiting()
    }

    pub(super) fn set_room(&mut self, room: bool) -> Result<()> {
        if room != self.room {
            self.room = room;
            let text = match room {
                true => "there is room on the disk again: the crawl goes on",
                false => "too little room on the disk: the crawl waits until there is more",
            };
            (self.tell)(Event::Note { text: text.into() });
            self.open()?;
        }
        Ok(())
    }

    /// The network came or went: without one nobody is sent out, and everybody may hear why.
    pub(super) fn look_at_network(&mut self) -> Result<()> {
        match (self.shared.network.down(), self.offline) {
            (Some((cause, since_ms)), None) => {
                let since = skep_archive::system_clock() - self.now_ms().saturating_sub(since_ms) as i64;
                self.offline = Some(since);
                let why = match cause {
                    Cause::Silence => "the network seems to be down",
                    Cause::Barred => "the proxy cannot be reached, or wants other credentials",
                    Cause::Portal(_) => {
                        "the network answers for every site with one page, as those of hotels do before a log-in"
                    }
                };
                (self.tell)(Event::Paused { why, since: skep_warc::date::rfc3339(since) });
                self.step(Told::Network(false))
            }
            (None, Some(since)) => {
                self.offline = None;
                let seconds = (skep_archive::system_clock() - since).max(0) as u64 / 1_000;
                (self.tell)(Event::Resumed { seconds });
                self.step(Told::Network(true))
            }
            _ => Ok(()),
        }
    }

    /// An address turns us away whatever site of it we ask for, or answers again: its hosts rest together, or go on.
    pub(super) fn banned(&mut self, address: AddressKey, ban: Option<Ban>) -> Result<()> {
        match ban {
            Some(Ban::Begins { until_ms, times }) => {
                let seconds = until_ms.saturating_sub(self.now_ms()) / 1_000;
                (self.tell)(Event::TurnedAway { address: format!("{address:?}"), seconds });
                self.step(Told::Banned { address, until_ms, times })
            }
            Some(Ban::GivenUp) => self.step(Told::GiveUp { address }),
            Some(Ban::None | Ban::Holds) => Ok(()),
            None => self.step(Told::Unbanned { address }),
        }
    }

    pub(super) fn checkpoint(&mut self) -> Result<()> {
        self.store_outbox()?;
        self.ledger.checkpoint()?;
        (self.since_checkpoint_bytes, self.since_checkpoint_links) = (0, 0);
        self.next_checkpoint = Instant::now() + Duration::from_millis(CHECKPOINT_MS);
        Ok(())
    }

    /// People may edit the crawl's file while it runs.
    pub(super) fn look_at_settings(&mut self) -> Result<()> {
        let folder = self.archive.layout().settings();
        let now = self.shared.settings();
        let changed = std::fs::metadata(Settings::path(&folder, &now.name)).and_then(|facts| facts.modified()).ok();
        if changed == self.settings_seen {
            return Ok(());
        }
        let first = self.settings_seen.is_none();
        self.settings_seen = changed;
        if first {
            return Ok(());
        }
        let read = Settings::load(&folder, &now.name).and_then(|settings| match settings {
            Some(settings) => settings.check().map(|()| Some(settings)),
            None => Ok(None),
        });
        match read {
            Ok(Some(settings)) => self.use_settings(Settings {
                pass: now.pass.clone(),
                number: now.number,
                name: now.name.clone(),
                ..settings
            }),
            Ok(None) => Ok(()),
            Err(error) => {
                (self.tell)(Event::Note {
                    text: format!("the crawl's settings were changed but cannot be used: {error}"),
                });
                Ok(())
            }
        }
    }

    pub(super) fn use_settings(&mut self, settings: Settings) -> Result<()> {
        let settings = Arc::new(settings);
        *self.shared.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings.clone();
        self.ledger.set_rules(settings.clone())?;
        self.watch_otherwise()?;
        self.judge_again()?;
        let (concurrency, pace) = (settings.concurrency.min(places()), settings.pace.allowed(false));
        self.step(Told::Configured { concurrency, pace })?;
        if self.sharing.is_some() {
            self.hear_seeds_led()?;
        } else {
            for seed in &settings.seeds {
                self.ledger.seed(self.crawl, seed)?;
            }
        }
        let mut hosts = Vec::new();
        let crawl = self.crawl;
        self.ledger.each_host(|host| {
            if host.crawl == crawl && host.waiting > 0 {
                hosts.push((host.id, host.conduct.paused || settings.is_paused(name_of(&host.key), &host.site)));
            }
        })?;
        for (host, paused) in hosts {
            if !paused {
                self.step(Told::Resume { host: HostId(host.0) })?;
            }
            self.ledger.touch(host);
        }
        (self.tell)(Event::Note { text: "the crawl's settings were changed and are used from now on".into() });
        Ok(())
    }

    /// What earlier rules of the crawl refused is judged by those of now; what waits is judged when its turn comes.
    pub(super) fn judge_again(&mut self) -> Result<()> {
        if self.ledger.judge_again(self.crawl)? {
            self.checkpoint()?;
        }
        self.shared.hears_again.store(self.ledger.hears_again(self.crawl), Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn progress(&mut self) -> Progress {
        let counts = self.ledger.registry.counts(self.crawl);
        let overview = self.schedule.overview();
        let progress = self.counters.progress(self.begun.elapsed().as_millis() as u64);
        let waiting = self.waiting_led().unwrap_or(counts.waiting);
        let left = waiting + self.out_entries as u64;
        let left_ms = (progress.rate > 0.0).then(|| (left as f64 / progress.rate * 1000.0) as u64);
        Progress {
            waiting,
            unsent: self.unsent(),
            out: self.out_entries as u64,
            known: counts.known,
            hosts: overview.hosts as u64,
            left_ms,
            disk_full: !self.room,
            offline: self.offline.is_some(),
            large: self.large(),
            ..progress
        }
    }
}

fn free_bytes(path: &std::path::Path) -> Result<u64> {
    let facts = rustix::fs::statvfs(path).map_err(|error| Error::io("cannot look at", path, error.into()))?;
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}
