//! How fresh the copies were, from the moments at which they were made.

use super::{Changing, Page};

/// What somebody who captures a page finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The same as last time.
    Same,
    /// Something else.
    Changed,
    /// Nothing: the visit failed.
    Failed,
}

/// The copies of all pages of a web, judged from one moment to another.
pub struct Judge<'w> {
    web: &'w Changing,
    pages: Vec<Page>,
    weights: Vec<f32>,
    /// When the copy was made, when the page changes after that, and how much change there had been.
    copies: Vec<(f64, f64, f64)>,
    from: f64,
    to: f64,
    fresh: f64,
    events: f64,
    events_soon: f64,
    visits: u64,
    /// Visits of each hour between `from` and `to`.
    by_hour: Vec<u32>,
}

/// How fresh the copies were.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Freshness {
    /// The share of importance and time in which the copy was that of the page.
    pub fresh: f64,
    /// The share of changes, by importance, after which the page was captured within a day.
    pub within_a_day: f64,
    /// Visits.
    pub visits: u64,
    /// Visits of the hour with fewest and in the middle hour.
    pub hourly_least: u32,
    /// The mean over hours of how much of the mean was used, at most all of it.
    pub hourly_used: f64,
}

/// Changes seen within this many days are seen soon.
const SOON_DAYS: f64 = 1.0;

impl<'w> Judge<'w> {
    /// Every page was captured at moment zero; judged is what happens between two later moments.
    pub fn new(web: &'w Changing, equal: bool, from: f64, to: f64) -> Judge<'w> {
        let pages: Vec<Page> = (0..web.pages()).map(|page| web.page(page)).collect();
        let weights = pages.iter().map(|page| if equal { 1.0 } else { page.importance as f32 }).collect();
        let copies = pages.iter().map(|page| (0.0, page.next_change(0.0), 0.0)).collect();
        let hours = ((to - from) * 24.0).ceil() as usize;
        Judge {
            web,
            pages,
            weights,
            copies,
            from,
            to,
            fresh: 0.0,
            events: 0.0,
            events_soon: 0.0,
            visits: 0,
            by_hour: vec![0; hours],
        }
    }

    /// The law of a page.
    pub fn page(&self, page: u32) -> &Page {
        &self.pages[page as usize]
    }

    /// What the page is worth to the judge.
    pub fn weight(&self, page: u32) -> f32 {
        self.weights[page as usize]
    }

    /// A visit to a page at a moment, not before the last one.
    pub fn visit(&mut self, page: u32, t: f64) -> Seen {
        if self.web.fails(page, t) {
            self.failed(t);
            return Seen::Failed;
        }
        self.captured(page, t)
    }

    /// A visit that brought nothing.
    pub fn failed(&mut self, t: f64) {
        self.count(t);
    }

    /// A visit that brought the page as it was then, not before the last one.
    pub fn captured(&mut self, page: u32, t: f64) -> Seen {
        self.count(t);
        let then = self.close(page, t, true);
        let changed = self.copies[page as usize].1 <= t;
        // A copy of what has not changed since is good for as long as the old one.
        let next = if changed { self.pages[page as usize].next_change(t) } else { self.copies[page as usize].1 };
        self.copies[page as usize] = (t, next, then);
        if changed { Seen::Changed } else { Seen::Same }
    }

    /// The judgement.
    pub fn finish(mut self) -> Freshness {
        for page in 0..self.pages.len() as u32 {
            // What changed since the last visit may or may not be seen soon: it is not counted.
            self.close(page, self.to, false);
        }
        let weight: f64 = self.weights.iter().map(|weight| f64::from(*weight)).sum();
        let mean = self.visits as f64 / self.by_hour.len().max(1) as f64;
        let used = |hour: &u32| (f64::from(*hour) / mean.max(f64::MIN_POSITIVE)).min(1.0);
        Freshness {
            fresh: self.fresh / (weight * (self.to - self.from)),
            within_a_day: self.events_soon / self.events.max(f64::MIN_POSITIVE),
            visits: self.visits,
            hourly_least: self.by_hour.iter().copied().min().unwrap_or(0),
            hourly_used: self.by_hour.iter().map(used).sum::<f64>() / self.by_hour.len().max(1) as f64,
        }
    }

    /// A visit counts, whatever it brought.
    fn count(&mut self, t: f64) {
        if t >= self.from && t < self.to {
            self.visits += 1;
            if let Some(hour) = self.by_hour.get_mut(((t - self.from) * 24.0) as usize) {
                *hour += 1;
            }
        }
    }

    /// Accounts for the time between the last capture and this moment. Returns how much change there has been by then.
    fn close(&mut self, page: u32, t: f64, captured: bool) -> f64 {
        let (made, changes, before) = self.copies[page as usize];
        let weight = f64::from(self.weights[page as usize]);
        let within = |t: f64| t.clamp(self.from, self.to);
        self.fresh += weight * (within(changes.min(t)) - within(made));
        if !captured || t < self.from {
            return 0.0;
        }
        let law = &self.pages[page as usize];
        let then = law.change(t);
        let begun = if made < self.from { law.change(self.from) } else { before };
        self.events += weight * (then - begun);
        let soon = if t - SOON_DAYS > made.max(self.from) { law.change(t - SOON_DAYS) } else { begun };
        self.events_soon += weight * (then - soon);
        then
    }
}

#[cfg(test)]
mod tests {
    use super::super::Model;
    use super::*;

    /// Every page, every `days` days, against what a Poisson web must give by the formula.
    #[test]
    fn even_visits_give_the_freshness_of_the_formula() {
        let model = Model {
            bursty_percent: 0,
            regular_percent: 0,
            article_percent: 0,
            switch_permille: 0,
            failing_permille: 0,
            ..Model::open_web()
        };
        let web = Changing::new(8, 20_000, model);
        for days in [2.0, 10.0] {
            let mut judge = Judge::new(&web, true, 40.0, 200.0);
            let mut expected = 0.0;
            for page in 0..web.pages() {
                let phase = days * f64::from(page) / f64::from(web.pages());
                (0..).map(|n| phase + days * f64::from(n)).take_while(|t| *t < 200.0).for_each(|t| {
                    judge.visit(page, t);
                });
                let x = judge.page(page).rate(0.0) * days;
                expected += (1.0 - (-x).exp()) / x / f64::from(web.pages());
            }
            let found = judge.finish();
            assert!((found.fresh - expected).abs() < 0.006, "{days}: {} against {expected}", found.fresh);
            assert!((found.within_a_day - 1.0 / days).abs() < 0.02, "{}", found.within_a_day);
            assert!(found.hourly_used > 0.99, "{}", found.hourly_used);
        }
    }

    #[test]
    fn who_never_looks_has_old_copies_and_who_always_looks_has_fresh_ones() {
        let web = Changing::new(9, 2_000, Model { failing_permille: 0, ..Model::open_web() });
        let never = Judge::new(&web, false, 10.0, 100.0).finish();
        let mut judge = Judge::new(&web, false, 10.0, 100.0);
        for hour in 0..2_400 {
            for page in 0..web.pages() {
                judge.visit(page, f64::from(hour) / 24.0);
            }
        }
        let always = judge.finish();
        assert!(never.fresh < 0.7 && never.within_a_day == 0.0, "{never:?}");
        assert!(always.fresh > 0.98 && always.within_a_day > 0.999, "{always:?}");
    }
}
