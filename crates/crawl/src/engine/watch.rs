//! A watch as it runs: what is due comes to wait, visits keep to the budget, and prices are found anew. It never ends by itself.

use std::time::{Duration, Instant};

use skep_schedule::Event as Told;
use skep_schedule::limits::CREDIT_S;
use skep_schedule::revisit::shares::{Shares, Turn};
use skep_schedule::revisit::{Budget, Moment};

use super::{Engine, share};
use crate::error::Result;
use crate::limits::LED_LOOK_MS;
use crate::registry::{self, Class, Taken};
use crate::settings::Watch;
use crate::watching::Led;

/// What a watch may spend, and how it is shared out.
pub(super) struct Spending {
    /// Visits a second; none where only the pages' own dates count.
    per_second: Option<f64>,
    left: f64,
    counted: Instant,
    /// Visits that were earned since the last price, and those that were made.
    earned: f64,
    made: f64,
    shares: Shares,
    /// As it was meant when this was set up.
    watch: Watch,
    /// When to see what is led here, where nodes crawl together.
    next_led: Instant,
}

impl Spending {
    pub(super) fn new(watch: &Watch) -> Spending {
        let per_second = match watch.budget() {
            Budget::PerDay(visits) => Some(visits / 86_400.0),
            Budget::PerPage(_) | Budget::EveryDays(_) => None,
        };
        Spending {
            per_second,
            left: 1.0,
            counted: Instant::now(),
            earned: 0.0,
            made: 0.0,
            shares: Shares::of(watch.policy),
            watch: watch.clone(),
            next_led: Instant::now(),
        }
    }

    fn earn(&mut self) {
        let now = Instant::now();
        let seconds = now.saturating_duration_since(self.counted).as_secs_f64();
        self.counted = now;
        if let Some(per_second) = self.per_second {
            self.earned += seconds * per_second;
            self.left = (self.left + seconds * per_second).min((CREDIT_S * per_second).max(1.0));
        }
    }

    /// Visits that may be made now.
    pub(super) fn left(&self) -> usize {
        self.per_second.map_or(usize::MAX, |_| self.left.max(0.0) as usize)
    }

    /// How long until there is another.
    fn wait(&self) -> Option<Duration> {
        let per_second = self.per_second.filter(|_| self.left < 1.0)?;
        Some(Duration::from_secs_f64(((1.0 - self.left) / per_second).clamp(0.001, 3_600.0)))
    }

    /// The share of what was earned that was spent; all of it where there is nothing to earn.
    fn used(&mut self) -> f32 {
        let used = if self.earned > 0.0 { self.made / self.earned } else { 1.0 };
        (self.earned, self.made) = (0.0, 0.0);
        used.min(1.0) as f32
    }
}

impl Engine<'_> {
    /// Begins to watch, where this run is a watch.
    pub(super) fn begin_watch(&mut self) {
        if let Some(watch) = self.watched() {
            self.ledger.watch(self.crawl, &watch, now());
            self.spending = Some(Spending::new(&watch));
        }
    }

    fn watched(&self) -> Option<Watch> {
        self.watches.then(|| self.shared.settings().watch.clone()).flatten()
    }

    /// The settings changed: another budget or policy holds at once.
    pub(super) fn watch_otherwise(&mut self) -> Result<()> {
        let Some(watch) = self.watched() else { return Ok(()) };
        self.ledger.watch_otherwise(&watch, now())?;
        if self.spending.as_ref().is_none_or(|spending| spending.watch != watch) {
            self.spending = Some(Spending::new(&watch));
        }
        Ok(())
    }

    /// Where nodes crawl together, each looks again at what it leads.
    fn look_at_what_is_led(&mut self) {
        let (Some(sharing), Some(spending)) = (&self.sharing, &mut self.spending) else { return };
        let now = Instant::now();
        if now >= spending.next_led {
            spending.next_led = now + Duration::from_millis(LED_LOOK_MS);
            let (slices, bits) = (sharing.leading.slices().into_iter().collect(), sharing.leading.bits());
            self.ledger.watch_led(Led { slices, bits });
        }
    }

    /// What is due comes to wait; the budget goes on; a price is found where it is time.
    pub(super) fn look_again(&mut self) -> Result<()> {
        self.look_at_what_is_led();
        let Some(spending) = &mut self.spending else { return Ok(()) };
        spending.earn();
        let (left, now) = (spending.left(), now());
        self.behind = self.ledger.recall_some(now)?;
        let (_, more) = self.ledger.release(now)?;
        self.behind |= more;
        let idle = left > 0 && self.out_entries == 0 && self.ledger.registry.counts(self.crawl).waiting == 0;
        let work_conserving =
            self.ledger.watching.as_ref().is_some_and(|watching| watching.revisits.policy().is_work_conserving());
        let paid = self.spending.as_ref().is_some_and(|spending| spending.per_second.is_some());
        if idle && work_conserving && paid {
            self.ledger.release_next(now)?;
        }
        if self.ledger.watching.as_ref().is_some_and(|watching| now >= watching.revisits.epoch_ends()) {
            let used = self.spending.as_mut().map_or(1.0, Spending::used);
            self.ledger.reprice(used, now)?;
        }
        if left > 0 && !self.held.is_empty() {
            self.let_go();
        }
        self.open()
    }

    /// Leases go out only where there is room on the disk and something left of the budget.
    pub(super) fn open(&mut self) -> Result<()> {
        let full = self.sharing.as_ref().is_some_and(share::Sharing::is_full);
        let open = self.room && !full && self.spending.as_ref().is_none_or(|spending| spending.left() > 0);
        if open != self.is_open {
            self.is_open = open;
            self.step(Told::Room(open))?;
        }
        Ok(())
    }

    /// Takes up to so many URLs of a host: new ones and those that are due, each as their share is.
    pub(super) fn take_shared(&mut self, host: &registry::Host, max: usize) -> Result<Vec<Taken>> {
        let now_ms = skep_archive::system_clock();
        let mut taken = Vec::new();
        let Some(spending) = &mut self.spending else {
            self.ledger.registry.take(host.id, max, now_ms, &mut taken)?;
            return Ok(taken);
        };
        let new_max = host.waiting.saturating_sub(host.again) as usize;
        // A bound on pages is one on new ones: those that are there are looked at for ever.
        let settings = self.shared.settings();
        let seen = self.ledger.registry.counts(self.crawl).visited_in_pass + self.out_entries as u64;
        let room = settings.pages.map_or(usize::MAX, |pages| pages.saturating_sub(seen) as usize);
        let (new_max, again_max) = (new_max.min(room), host.again as usize);
        let (mut new, mut again) = (0, 0);
        while new + again < max.min(spending.left()) {
            match spending.shares.next(new < new_max, again < again_max) {
                Some(Turn::New) => new += 1,
                // What is looked at by chance waits among those that are due.
                Some(Turn::Due | Turn::Audit) if again < again_max => again += 1,
                Some(Turn::Due | Turn::Audit) => new += 1,
                None => break,
            }
        }
        self.ledger.registry.take_of(host.id, &[Class::Again], again, now_ms, &mut taken)?;
        self.ledger.registry.take_of(host.id, &Class::FIRST, new, now_ms, &mut taken)?;
        spending.left -= taken.len() as f64;
        spending.made += taken.len() as f64;
        Ok(taken)
    }

    /// How long there is nothing to do for a watch.
    pub(super) fn watch_patience(&self) -> Duration {
        let Some(spending) = &self.spending else { return Duration::MAX };
        if self.behind {
            return Duration::ZERO;
        }
        let due = self.ledger.watching.as_ref().map_or(Moment::NEVER, |watching| watching.next());
        let due = due.ms().saturating_sub(skep_archive::system_clock()).max(1) as u64;
        let due = Duration::from_millis(due);
        spending.wait().map_or(due, |wait| wait.min(due))
    }
}

fn now() -> Moment {
    Moment::from_ms(skep_archive::system_clock())
}
