//! The schedule of revisits against a changing web, in virtual time: a visit takes no time, a budget gives one every so often.

use std::collections::VecDeque;

use skep_schedule::limits::{BLOCK_URLS, PRICE_SAMPLE};
use skep_schedule::revisit::shares::{Shares, Turn};
use skep_schedule::revisit::{Belief, Budget, Calendar, Found, Memory, Moment, Policy, Pool, Revisits};
use skep_testweb::changing::{Changing, Freshness, Judge, Seen};

/// What is watched, and how.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// The policy.
    pub policy: Policy,
    /// It is told how often each page changes, instead of having to learn it.
    pub oracle: bool,
    /// Visits per page and day.
    pub visits_per_page: f64,
    /// All pages are worth the same.
    pub equal: bool,
    /// Mean revisit periods before anything is judged, that of the first crawl included.
    pub learning: f64,
    /// Mean revisit periods that are judged.
    pub judged: f64,
}

/// Whoever is told of each visit: of which page, when, and what it found.
pub type Told<'t> = dyn FnMut(u32, f64, Seen) + 't;

struct World<'w> {
    judge: Judge<'w>,
    told: &'w mut Told<'w>,
    revisits: Revisits,
    memories: Vec<Memory>,
    sites: Vec<Pool>,
    calendar: Calendar,
    ready: VecDeque<u32>,
    watch: Watch,
    chance: u64,
}

impl Watch {
    /// The days from which to which is judged.
    pub fn judged_days(&self) -> (f64, f64) {
        (self.learning / self.visits_per_page, (self.learning + self.judged) / self.visits_per_page)
    }
}

/// Watches the web and says how fresh the copies were.
pub fn run(web: &Changing, watch: Watch) -> Freshness {
    run_told(web, watch, &mut |_, _, _| ())
}

/// The same, and tells of each visit, in their order.
pub fn run_told<'w>(web: &'w Changing, watch: Watch, told: &'w mut Told<'w>) -> Freshness {
    let pages = web.pages();
    let (learning, days) = watch.judged_days();
    let per_day = watch.visits_per_page * f64::from(pages);
    let mut world = World {
        judge: Judge::new(web, watch.equal, learning, days),
        told,
        revisits: Revisits::new(watch.policy, Budget::PerDay(per_day), Moment(0)),
        memories: Vec::new(),
        sites: vec![Pool::default(); web.hosts() as usize],
        calendar: Calendar::default(),
        ready: VecDeque::new(),
        watch,
        chance: 1,
    };
    // The web is crawled once with the same budget, in no order; then it is watched.
    let step = (f64::from(pages) * 0.618) as u32 | 1;
    let mut at = 0u32;
    world.memories = vec![Memory::UNKNOWN; pages as usize];
    for number in 0..pages {
        at = (at + step) % pages;
        while world.memories[at as usize].last().is_some() {
            at = (at + 1) % pages;
        }
        let t = f64::from(number) / per_day;
        world.capture(at, t, Moment((t * 86_400.0) as u32));
    }
    world.reprice(1.0, Moment((86_400.0 / watch.visits_per_page) as u32));
    for block in 0..pages.div_ceil(BLOCK_URLS) {
        world.head(block, Moment((86_400.0 / watch.visits_per_page) as u32));
    }

    let mut shares = Shares::of(watch.policy);
    let visits = (days * per_day) as u64;
    let mut used = (0u32, 0u32);
    for turn in u64::from(pages)..=visits {
        used.1 += 1;
        let t = turn as f64 / per_day;
        let now = Moment((t * 86_400.0) as u32);
        world.release(now);
        if world.ready.is_empty() && watch.policy.is_work_conserving() {
            world.take_next(now);
        }
        match shares.next(false, !world.ready.is_empty()) {
            Some(Turn::Audit) if audits(watch) => {
                let page = (world.draw() * pages as f32) as u32 % pages;
                if !world.memories[page as usize].is_out() {
                    world.visit(page, t, now);
                    used.0 += 1;
                }
            }
            _ => {
                if let Some(page) = world.ready.pop_front() {
                    world.visit(page, t, now);
                    used.0 += 1;
                }
            }
        }
        if now >= world.revisits.epoch_ends() {
            world.reprice(used.0 as f32 / used.1 as f32, now);
            used = (0, 0);
        }
    }
    world.judge.finish()
}

/// Only who learns needs to check what was learned.
fn audits(watch: Watch) -> bool {
    !watch.oracle && matches!(watch.policy, Policy::Harmonic | Policy::Fresh)
}

impl World<'_> {
    fn capture(&mut self, page: u32, t: f64, now: Moment) {
        let seen = self.judge.visit(page, t);
        (self.told)(page, t, seen);
        let law = self.judge.page(page);
        let chance = self.bundle_chance(page);
        let mut memory = self.revisits.first(self.judge.weight(page), &self.sites[law.host as usize], now, chance);
        if self.watch.oracle {
            memory.believe(Belief::known(law.rate(t) as f32));
        }
        self.memories[page as usize] = memory;
    }

    fn visit(&mut self, page: u32, t: f64, now: Moment) {
        let place = page as usize;
        let seen = self.judge.visit(page, t);
        (self.told)(page, t, seen);
        let chance = self.bundle_chance(page);
        let memory = &mut self.memories[place];
        match seen {
            Seen::Failed => self.revisits.unanswered(memory, now),
            Seen::Same | Seen::Changed => {
                let found = if seen == Seen::Same { Found::Same } else { Found::Changed(None) };
                let law = self.judge.page(page);
                if self.watch.oracle {
                    memory.observe(found, now);
                    memory.believe(Belief::known(law.rate(t) as f32));
                    self.look(page, now);
                } else {
                    self.revisits.visited(memory, &mut self.sites[law.host as usize], found, now, chance);
                }
            }
        }
        self.calendar.sooner(page / BLOCK_URLS, self.memories[place].due());
    }

    fn look(&mut self, page: u32, now: Moment) -> bool {
        let chance = self.bundle_chance(page);
        self.revisits.look(&mut self.memories[page as usize], now, chance)
    }

    /// Pages that are due come to lie ready.
    fn release(&mut self, now: Moment) {
        while let Some((due, block)) = self.calendar.first() {
            if due > now {
                break;
            }
            let whole = self.calendar.review(block, now, self.revisits.review_days());
            for page in self.pages_of(block) {
                if (whole || self.memories[page as usize].due() <= now) && self.look(page, now) {
                    self.ready.push_back(page);
                }
            }
            self.head(block, now);
        }
    }

    /// The block that would be next lies ready before its time.
    fn take_next(&mut self, now: Moment) {
        let Some((due, block)) = self.calendar.first() else { return };
        for page in self.pages_of(block) {
            if self.memories[page as usize].due() <= due {
                // What is due at its moment is due now.
                if self.look(page, due.max(now)) {
                    self.ready.push_back(page);
                }
            }
        }
        self.head(block, now);
    }

    fn head(&mut self, block: u32, now: Moment) {
        let due = self.pages_of(block).map(|page| self.memories[page as usize].due()).min();
        let due = due.unwrap_or(Moment::NEVER);
        // A block is looked at whole from time to time, also where nothing in it is due for long.
        let review = self.revisits.review_days();
        self.calendar.set(block, if due == Moment::NEVER { due } else { due.min(now.plus_days(review)) });
    }

    fn pages_of(&self, block: u32) -> std::ops::Range<u32> {
        let from = block * BLOCK_URLS;
        from..(from + BLOCK_URLS).min(self.memories.len() as u32)
    }

    fn reprice(&mut self, used: f32, now: Moment) {
        let pages = self.memories.len();
        let mut sample = Vec::with_capacity(PRICE_SAMPLE);
        for _ in 0..PRICE_SAMPLE {
            let page = (self.draw() * pages as f32) as usize % pages;
            sample.push(self.memories[page]);
        }
        self.revisits.end_epoch(&sample, used, self.ready.len() as u64, now);
    }

    /// The same for a bundle's URLs in the same round.
    fn bundle_chance(&self, page: u32) -> f32 {
        // Within a tenth of a period a bundle is in the same round.
        let last = self.memories[page as usize].last().map_or(0.0, |last| f64::from(last.0) / 86_400.0);
        unit(u64::from(page / BLOCK_URLS) << 16 | (last * self.watch.visits_per_page * 10.0) as u64)
    }

    fn draw(&mut self) -> f32 {
        self.chance += 1;
        unit(self.chance)
    }
}

/// splitmix64, as a number between 0 and 1.
fn unit(seed: u64) -> f32 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 40) as f32 / (1u64 << 24) as f32
}
