//! When a page that was captured is looked at again.
//!
//! ```text
//!   a visit: same or changed ──▶ memory (28 bytes per URL) ──▶ belief: changes per day, and how sure
//!                                                                │  policy, price
//!   budget ──▶ price: one number, on a sample, trimmed ──────────┤
//!                                                                ▼
//!   calendar: blocks of URLs by the earliest that is due ──▶ look ──▶ due: out to be fetched, or back to wait
//! ```
//! - [`memory`]: what is remembered of one URL
//! - [`belief`]: how often it changes, by Bayes' rule; what is known of a site is shared by its pages
//! - [`policy`]: how often it is visited at a price
//! - [`price`]: the price that makes all visits together the budget
//! - [`calendar`]: which block of URLs is looked at next
//! - [`due`]: why a page is looked at, for its record
//! - [`hint`]: what sitemaps and feeds say, believed as far as it was right before
//! - [`shares`]: who gets the next visit: a new page, a page that is due, any page whatever
//! - [`plan`]: what a budget would bring
//!
//! [`Revisits`] holds the price and what all pages have in common. URLs are the caller's, in blocks; their memories come in as
//! arguments, from an array or from a disk.

pub mod belief;
pub mod calendar;
pub mod due;
pub mod hint;
pub mod memory;
pub mod plan;
pub mod policy;
pub mod price;
pub mod shares;

use serde::{Deserialize, Serialize};

pub use belief::{Belief, Pool, Prior};
pub use calendar::Calendar;
pub use due::{Due, Reason};
use hint::{Source, Trust};
pub use memory::{Found, Memory, Moment, importance};
pub use policy::Policy;
pub use price::Price;

use crate::limits;

/// How much looking again there is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Budget {
    /// So many visits a day, over all pages.
    PerDay(f64),
    /// So many visits a day for each page there is; who gets more and who less is the policy's.
    PerPage(f32),
    /// Every page after so many days, however many there are.
    EveryDays(f32),
}

/// The price, the budget, and what is known of all pages together.
#[derive(Clone, Debug)]
pub struct Revisits {
    policy: Policy,
    budget: Budget,
    pages: u64,
    price: Price,
    all: Pool,
    prior: Prior,
    epoch_began: Moment,
}

impl Revisits {
    /// Nothing known yet.
    pub fn new(policy: Policy, budget: Budget, now: Moment) -> Revisits {
        let mut revisits = Revisits {
            policy,
            budget,
            pages: 0,
            price: Price::new(1.0),
            all: Pool::default(),
            prior: Prior::default(),
            epoch_began: now,
        };
        revisits.price = Price::new(revisits.visits_per_page());
        revisits
    }

    /// The policy.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// The budget.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// What one visit costs now.
    pub fn price(&self) -> f32 {
        self.price.get()
    }

    /// Pages that are visited again.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Visits per page and day that the budget allows.
    pub fn visits_per_page(&self) -> f32 {
        match self.budget {
            Budget::PerDay(visits) => (visits / self.pages.max(1) as f64) as f32,
            Budget::PerPage(visits) => visits.max(f32::MIN_POSITIVE),
            Budget::EveryDays(days) => 1.0 / days.max(limits::INTERVAL_DAYS_MIN),
        }
    }

    /// Another policy or budget. It holds from now on: let every block be looked at whole, with the price of the sample.
    pub fn set(&mut self, policy: Policy, budget: Budget, sample: &[Memory]) {
        (self.policy, self.budget) = (policy, budget);
        self.price.forget();
        self.price.solve(policy, sample, self.visits_per_page());
    }

    /// A page was captured for the first time.
    pub fn first(&mut self, importance: f32, site: &Pool, now: Moment, chance: f32) -> Memory {
        self.first_at(importance, site, now, now, chance)
    }

    /// A visit showed how much of the links of its page are others, besides what it found.
    pub fn links_changed(&self, memory: &mut Memory, ratio: f32, now: Moment, chance: f32) {
        memory.set_change_ratio(ratio);
        self.plan(memory, now, chance);
    }

    /// A page was visited again.
    pub fn visited(&mut self, memory: &mut Memory, site: &mut Pool, found: Found, now: Moment, chance: f32) {
        if !self.policy.believes() {
            memory.observe(found, now);
            self.plan(memory, now, chance);
            return;
        }
        if memory.is_counted() {
            let belief = memory.belief().spread_out();
            site.take(&belief);
            self.all.take(&belief);
        }
        memory.observe(found, now);
        memory.believe(Belief::of(memory, &self.prior_in(site)));
        memory.set_counted();
        let belief = memory.belief().spread_out();
        site.add(&belief);
        self.all.add(&belief);
        self.plan(memory, now, chance);
    }

    /// A page that nobody came to, or that was looked at a moment ago, waits again, for a while at least.
    pub fn given_back(&self, memory: &mut Memory, now: Moment) {
        memory.given_back();
        memory.due = now.plus_days(self.soon_days());
    }

    /// A visit brought no page, and that says nothing of it: an outage, a wall in front of it. It is looked for soon, and the longer that
    /// lasts, the more seldom: trouble is no reason to ask a site more often than when all is well. Where every page has its interval, five
    /// looks come first, and one a day stays.
    pub fn unanswered(&self, memory: &mut Memory, now: Moment) {
        memory.unanswered();
        let times = i32::from(memory.failures());
        let (times, days_max) = match self.budget {
            Budget::EveryDays(days) => (times - limits::FAILED_LOOKS_EVERY, days.max(limits::FAILED_DAYS)),
            Budget::PerDay(_) | Budget::PerPage(_) => (times - 1, limits::UNANSWERED_DAYS_MAX),
        };
        let days = match (memory.is_unanswered(), memory.last()) {
            (true, _) => self.soon_days() * 2f32.powi(times.max(0)),
            // It was missing before, and these looks are not counted: the longer nobody has seen it, the more seldom.
            (false, Some(last)) => limits::FAILED_DAYS.max(now.days_since(last) / 2.0),
            (false, None) => days_max,
        };
        memory.due = now.plus_days(days.min(days_max));
    }

    fn soon_days(&self) -> f32 {
        match self.budget {
            Budget::EveryDays(days) => days.min(limits::GIVEN_BACK_DAYS),
            Budget::PerDay(_) | Budget::PerPage(_) => limits::GIVEN_BACK_DAYS,
        }
    }

    /// Somebody wants it visited whether or not it is due: it is out. Not one that is out already, or was never seen.
    pub fn audit(&self, memory: &mut Memory) -> bool {
        let may = !memory.is_out() && memory.last().is_some();
        if may {
            memory.set_out();
        }
        may
    }

    /// Somebody says that the page changed, or that it did not, and is believed so far: it may be due sooner, or later.
    pub fn told(&self, memory: &mut Memory, by: Source, trust: &Trust, changed: bool, now: Moment, chance: f32) {
        match changed {
            true => memory.told(by, trust.expected_changes()),
            false => memory.untold(by, trust.silence()),
        }
        if !memory.is_out() {
            self.plan(memory, now, chance);
        }
    }

    /// A visit brought no page: nothing is there, or nobody may see it. Three looks over a week and a day, by which a death is confirmed,
    /// then ever more seldom; where every page has its interval, five of those first.
    pub fn failed(&self, memory: &mut Memory, now: Moment) {
        memory.failed();
        let times = i32::from(memory.failures());
        let days = match self.budget {
            Budget::EveryDays(days) => days * 2f32.powi((times - limits::FAILED_LOOKS_EVERY).max(0)),
            Budget::PerDay(_) | Budget::PerPage(_) => match times {
                ..=1 => limits::FAILED_DAYS,
                times => limits::FAILED_WEEK_DAYS * 2f32.powi(times - 2),
            },
        };
        memory.due = now.plus_days(days.min(limits::FAILED_DAYS_MAX));
    }

    /// A page is gone for good, or nobody's business any more.
    pub fn dropped(&mut self, memory: &mut Memory, site: &mut Pool) {
        if memory.is_counted() {
            let belief = memory.belief().spread_out();
            site.take(&belief);
            self.all.take(&belief);
        }
        self.pages = self.pages.saturating_sub(u64::from(memory.last().is_some()));
        *memory = Memory::UNKNOWN;
    }

    /// A page that was captured before anybody watched it.
    pub fn first_at(&mut self, importance: f32, site: &Pool, seen: Moment, now: Moment, chance: f32) -> Memory {
        self.pages += 1;
        let mut memory = Memory::first(seen, importance, &self.prior_in(site));
        self.plan(&mut memory, now, chance);
        memory
    }

    /// A memory that comes back from the disk.
    pub fn recalled(&mut self, memory: &Memory, site: &mut Pool) {
        self.pages += u64::from(memory.last().is_some());
        if memory.is_counted() {
            let belief = memory.belief().spread_out();
            site.add(&belief);
            self.all.add(&belief);
        }
    }

    /// All memories are recalled once more: which pages there are is another question now. The price stays.
    pub fn recall_anew(&mut self) {
        (self.pages, self.all) = (0, Pool::default());
    }

    /// A memory from later than now was made by a clock that was wrong: the page waits as if it had been seen now. Says whether it was.
    pub fn set_right(&self, memory: &mut Memory, now: Moment, chance: f32) -> bool {
        let latest = now.plus_days(limits::CLOCK_DAYS_AHEAD);
        let failed = now.plus_days(limits::FAILED_DAYS_MAX.max(limits::CLOCK_DAYS_AHEAD));
        let (seen, fails) = (memory.last > latest, memory.failures() > 0 && memory.due > failed);
        if seen {
            memory.last = now;
        }
        if seen || fails {
            memory.due = memory.due.min(failed);
            self.plan(memory, now, chance);
        }
        memory.last().is_some() && (seen || fails)
    }

    /// The clock was set back: what was to happen then is not waited for.
    pub fn clock_set_back(&mut self, now: Moment) {
        self.epoch_began = self.epoch_began.min(now);
    }

    /// Is the page due by the price of now? If it is, it is out until it was visited or given back; if not, it waits on.
    pub fn look(&self, memory: &mut Memory, now: Moment, chance: f32) -> bool {
        if memory.is_out() || memory.last().is_none() {
            return false;
        }
        let due = if memory.failures() > 0 { memory.due } else { self.due(memory, chance) };
        if due <= now {
            memory.set_out();
            return true;
        }
        self.plan(memory, now, chance);
        false
    }

    /// When the page is due by the price of now.
    pub fn due(&self, memory: &Memory, chance: f32) -> Moment {
        let days = match self.budget {
            Budget::EveryDays(days) => days,
            Budget::PerDay(_) | Budget::PerPage(_) => self.policy.interval_days(memory, self.price.get(), chance),
        };
        let told = memory.evidence();
        let sooner = if told > 0.0 { told / memory.belief().rate() } else { 0.0 };
        memory.last.plus_days((days - sooner).max(0.0))
    }

    /// When the next price is to be found.
    pub fn epoch_ends(&self) -> Moment {
        let days = limits::EPOCH_PERIODS / self.visits_per_page().max(f32::MIN_POSITIVE);
        self.epoch_began.plus_days(days.clamp(limits::EPOCH_DAYS_MIN, limits::EPOCH_DAYS_MAX))
    }

    /// A new price, by a sample of pages, by the share of the budget that was used since the last one, and by how many pages are
    /// due and not yet visited.
    pub fn end_epoch(&mut self, sample: &[Memory], used: f32, waiting: u64, now: Moment) {
        let days = now.days_since(self.epoch_began);
        self.epoch_began = now;
        let per_page = self.visits_per_page();
        self.prior = self.all.prior(&Prior::default(), limits::FIRST_PRIOR_PAGES);
        self.price.solve(self.policy, sample, per_page);
        let late = waiting as f32 / self.pages.max(1) as f32;
        self.price.trim(used, late, days * per_page);
    }

    /// Days after which a block of waiting pages is looked at whole, by the price of the day: who was parked at a high price is not
    /// forgotten at a low one.
    pub fn review_days(&self) -> f32 {
        (limits::REVIEW_PERIODS / self.visits_per_page().max(f32::MIN_POSITIVE)).min(limits::REVIEW_DAYS)
    }

    fn prior_in(&self, site: &Pool) -> Prior {
        site.prior(&self.prior, limits::SITE_PRIOR_PAGES)
    }

    fn plan(&self, memory: &mut Memory, now: Moment, chance: f32) {
        // Who failed waits as long as failures wait, whatever a visit costs.
        if memory.failures() > 0 && memory.due > now {
            return;
        }
        memory.due = self.due(memory, chance).max(Moment(now.0.saturating_add(1)));
    }
}
