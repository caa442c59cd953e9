//! A changing web as the literature describes it, without bytes: which page changes when, in closed form.
//!
//! Everything is a function of seed, page and moment; moments are days since the web began. Nothing is stored but where each
//! host's pages begin, so the truth about any page at any moment is exact and costs nothing to keep, and time runs as fast as
//! somebody asks. [`Judge`] turns the moments at which pages were captured into the freshness of the copies.
//!
//! It says when pages change, and nothing else: pages are neither born nor do they die, no host is out as a whole (a visit fails by
//! itself), a change has no size, and no site has a clock. How much changes, templates and noise are where bytes are made.
//!
//! The figures of [`Model::open_web`] are fitted to published studies of page change (1999 to 2024) where these speak, and
//! assumed where they do not; `the_web_changes_as_it_was_measured` says what they come to.

mod judge;
mod pace;
mod timing;

pub use judge::{Freshness, Judge, Seen};
pub use timing::Timing;

use crate::chance::Chance;
use pace::{Course, Season};

/// How a web changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// Pages of the largest host.
    pub host_pages_max: u32,
    /// Pages of a hundred that hardly ever change: once in 20 000 days.
    pub static_percent: u32,
    /// Days between two changes of the others, in the middle.
    pub median_days: f64,
    /// How far they are spread: the deviation of the logarithm, half of its square shared within a host.
    pub spread: f64,
    /// How far importance is spread: the deviation of the logarithm.
    pub importance_spread: f64,
    /// Of a hundred changing pages, those with bursts.
    pub bursty_percent: u32,
    /// Of a hundred changing pages, those with the hour in mind.
    pub regular_percent: u32,
    /// Of a hundred changing pages, those that are written and then left: their rate halves every thirty days.
    pub article_percent: u32,
    /// Pages of a thousand whose rate is drawn anew in a month.
    pub switch_permille: u32,
    /// Visits of a thousand that fail for the moment.
    pub failing_permille: u32,
}

impl Model {
    /// The open web of the 2020s.
    pub fn open_web() -> Model {
        Model {
            host_pages_max: 5_000,
            static_percent: 42,
            median_days: 20.0,
            spread: 2.65,
            importance_spread: 1.5,
            bursty_percent: 20,
            regular_percent: 10,
            article_percent: 20,
            switch_permille: 10,
            failing_permille: 15,
        }
    }

    /// Pages that people look at: fewer stand still, the others change sooner.
    pub fn visited_pages() -> Model {
        Model { static_percent: 25, median_days: 5.0, ..Model::open_web() }
    }
}

const STATIC_RATE: f64 = 1.0 / 20_000.0;
const INTERVAL_DAYS_MIN: f64 = 1.0 / 48.0;
const INTERVAL_DAYS_MAX: f64 = 5_000.0;
/// How importance goes with the interval: what matters changes sooner.
const IMPORTANCE_CORRELATION: f64 = -0.35;
const HOST_PAGES_MIN: f64 = 3.0;
const HOST_PAGES_EXPONENT: f64 = 1.1;
const MONTH_DAYS: f64 = 30.4;
/// Regular pages change daily below this interval and weekly up to the next.
const DAILY_BELOW_DAYS: f64 = 2.65;
const WEEKLY_BELOW_DAYS: f64 = 30.0;
/// The share of changing pages whose interval is below that, in the standard model.
const REGULAR_COULD_BE: f64 = 0.56;
const ARTICLE_AGE_DAYS_MAX: f64 = 360.0;
/// A right `lastmod` follows its change within six hours.
const LASTMOD_DELAY_DAYS_MAX: f64 = 0.25;

/// A web of many pages.
#[derive(Clone, Debug)]
pub struct Changing {
    model: Model,
    chance: Chance,
    /// The first page of each host, and the number of all pages at the end.
    first: Vec<u32>,
}

/// The law of one page.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Its host.
    pub host: u32,
    /// What it is worth, one on average.
    pub importance: f64,
    /// How evenly its changes come.
    pub timing: Timing,
    season: Option<Season>,
    course: Course,
    chance: Chance,
}

/// What a host's sitemap says about when its pages changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lastmod {
    /// It has no sitemap, or one without dates.
    None,
    /// The truth, up to six hours late.
    Right,
    /// The time at which the sitemap was asked for.
    Generated,
    /// The truth for every other page, nothing for the rest.
    Partial,
}

impl Changing {
    /// A web of so many pages.
    pub fn new(seed: u64, pages: u32, model: Model) -> Changing {
        let chance = Chance::new(seed).of("a changing web");
        let mut first = vec![0];
        let mut next = 0u32;
        while next < pages {
            let draw = chance.at(1).at(first.len() as u64).unit();
            let size = (HOST_PAGES_MIN * draw.powf(-1.0 / HOST_PAGES_EXPONENT)).min(f64::from(model.host_pages_max));
            next = next.saturating_add(size as u32).min(pages);
            first.push(next);
        }
        Changing { model, chance, first }
    }

    /// How many pages there are.
    pub fn pages(&self) -> u32 {
        *self.first.last().unwrap_or(&0)
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> u32 {
        self.first.len() as u32 - 1
    }

    /// The host of a page.
    pub fn host_of(&self, page: u32) -> u32 {
        self.first.partition_point(|first| *first <= page) as u32 - 1
    }

    /// The law of a page.
    pub fn page(&self, page: u32) -> Page {
        let host = self.host_of(page);
        let of_host = self.chance.at(2).at(host.into());
        let chance = self.chance.at(3).at(page.into());
        let host_part = of_host.at(1).normal();
        let percent = |draw: Chance, percent: u32| draw.permille(percent * 10);

        let own_part = chance.at(1).normal();
        let first = self.rate(host_part, own_part, percent(chance.at(2), self.model.static_percent));
        let together = (host_part + own_part) * std::f64::consts::FRAC_1_SQRT_2;
        let moves = first > STATIC_RATE;
        let with_interval = if moves { IMPORTANCE_CORRELATION * together } else { 0.0 };
        let rest = if moves { (1.0 - IMPORTANCE_CORRELATION.powi(2)).sqrt() } else { 1.0 };
        let spread = self.model.importance_spread;
        let importance = (spread * (with_interval + rest * chance.at(3).normal()) - 0.5 * spread * spread).exp();

        let kind = chance.at(4).unit() * 100.0;
        let could_be_regular = moves && 1.0 / first < WEEKLY_BELOW_DAYS;
        let regular_below = f64::from(self.model.regular_percent) / REGULAR_COULD_BE;
        let (timing, season, course) = if could_be_regular && kind < regular_below {
            let days = if 1.0 / first < DAILY_BELOW_DAYS { 1.0 } else { 7.0 };
            (Timing::Regular, None, Course::new(&[(0.0, 1.0 / days)], None))
        } else {
            let bursty = 100.0 - kind < f64::from(self.model.bursty_percent);
            let timing = if moves && bursty { Timing::Bursty } else { Timing::Poisson };
            let article = moves && percent(chance.at(5), self.model.article_percent);
            let age = article.then(|| chance.at(6).unit() * ARTICLE_AGE_DAYS_MAX);
            let mut rates = vec![(0.0, first)];
            let mut from = 0.0;
            for switch in 0..pace::STRETCHES_MAX as u64 - 1 {
                let draw = chance.at(7).at(switch);
                let months = -draw.at(1).unit().ln() * 1_000.0 / f64::from(self.model.switch_permille.max(1));
                from += months * MONTH_DAYS;
                let still = percent(draw.at(2), self.model.static_percent);
                rates.push((from, self.rate(host_part, draw.at(3).normal(), still)));
            }
            let season = Season::new(of_host.at(2).unit(), of_host.at(3).unit());
            (timing, Some(season), Course::new(&rates, age))
        };
        Page { host, importance, timing, season, course, chance: chance.at(8) }
    }

    /// What the host's sitemap is like.
    pub fn sitemap(&self, host: u32) -> Lastmod {
        let chance = self.chance.at(2).at(host.into());
        if !chance.at(4).permille(580) || !chance.at(5).permille(840) {
            return Lastmod::None;
        }
        match chance.at(6).below(100) {
            0..79 => Lastmod::Right,
            79..97 => Lastmod::Generated,
            _ => Lastmod::Partial,
        }
    }

    /// When the page last changed by what its host's sitemap says at a moment.
    pub fn lastmod(&self, number: u32, page: &Page, t: f64) -> Option<f64> {
        let told = |page: &Page| {
            let changed = page.last_change(t)?;
            let delay = page.chance.at(9).at(changed.to_bits()).unit() * LASTMOD_DELAY_DAYS_MAX;
            if changed + delay <= t { Some(changed) } else { page.last_change(changed - 1e-9) }
        };
        match self.sitemap(page.host) {
            Lastmod::None => None,
            Lastmod::Right => told(page),
            Lastmod::Generated => Some(t),
            Lastmod::Partial if number.is_multiple_of(2) => told(page),
            Lastmod::Partial => None,
        }
    }

    /// Does a visit at this moment fail for the moment?
    pub fn fails(&self, page: u32, t: f64) -> bool {
        self.chance.at(4).at(page.into()).at(t.to_bits()).permille(self.model.failing_permille)
    }

    fn rate(&self, host_part: f64, own_part: f64, still: bool) -> f64 {
        if still {
            return STATIC_RATE;
        }
        let together = (host_part + own_part) * std::f64::consts::FRAC_1_SQRT_2;
        let days = self.model.median_days * (self.model.spread * together).exp();
        1.0 / days.clamp(INTERVAL_DAYS_MIN, INTERVAL_DAYS_MAX)
    }
}

impl Page {
    /// Changes per day to be expected around a moment, over day and week.
    pub fn rate(&self, t: f64) -> f64 {
        self.course.rate(t)
    }

    /// The first change after a moment.
    pub fn next_change(&self, t: f64) -> f64 {
        self.back(self.timing.after(self.chance, self.change(t))).max(t)
    }

    /// The last change up to a moment; nothing where the page is as it was when the web began.
    pub fn last_change(&self, t: f64) -> Option<f64> {
        let found = self.timing.before(self.chance, self.change(t))?;
        Some(self.back(found).min(t))
    }

    /// How many changes were to be expected since the web began.
    pub fn change(&self, t: f64) -> f64 {
        self.course.forth(self.season.map_or(t, |season| season.forth(t)))
    }

    fn back(&self, u: f64) -> f64 {
        let s = self.course.back(u);
        self.season.map_or(s, |season| season.back(s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_web_changes_as_it_was_measured() {
        let model = Model { host_pages_max: 200, ..Model::open_web() };
        let web = Changing::new(3, 60_000, model);
        let pages: Vec<Page> = (0..web.pages()).map(|page| web.page(page)).collect();
        let share = |days: f64| {
            let changed = pages.iter().filter(|page| page.next_change(10.0) < 10.0 + days).count();
            100.0 * changed as f64 / pages.len() as f64
        };
        let (day, week, month, year) = (share(1.0), share(7.0), share(30.0), share(365.0));
        let text =
            format!("changed within a day {day:.1} %, a week {week:.1} %, a month {month:.1} %, a year {year:.1} %");
        assert!((day - 12.0).abs() < 2.0, "{text}");
        assert!((week - 25.5).abs() < 2.5, "{text}");
        assert!((month - 36.0).abs() < 3.0, "{text}");
        assert!((100.0 - year - 47.5).abs() < 3.0, "{text}");
        let mean = pages.iter().map(|page| page.change(1.0)).sum::<f64>() / pages.len() as f64;
        assert!((0.4..0.8).contains(&mean), "{mean} changes per page and day");
    }

    #[test]
    fn importance_is_one_on_average_and_goes_with_change() {
        let web = Changing::new(4, 50_000, Model { importance_spread: 1.0, ..Model::open_web() });
        let pages: Vec<Page> = (0..web.pages()).map(|page| web.page(page)).collect();
        let mean = |pages: &[&Page]| pages.iter().map(|page| page.importance).sum::<f64>() / pages.len() as f64;
        let all: Vec<&Page> = pages.iter().collect();
        assert!((mean(&all) - 1.0).abs() < 0.1, "{}", mean(&all));
        let (fast, slow): (Vec<&Page>, Vec<&Page>) = pages.iter().partition(|page| page.rate(0.0) > 0.1);
        assert!(mean(&fast) > 1.2 * mean(&slow));
    }

    #[test]
    fn sitemaps_say_what_they_know() {
        let web = Changing::new(5, 20_000, Model::open_web());
        let (mut right, mut generated) = (0, 0);
        for number in (0..web.pages()).step_by(7) {
            let page = web.page(number);
            let (lastmod, truth) = (web.lastmod(number, &page, 50.0), page.last_change(50.0));
            match web.sitemap(page.host) {
                Lastmod::None => assert_eq!(lastmod, None),
                Lastmod::Generated => {
                    generated += 1;
                    assert_eq!(lastmod, Some(50.0));
                }
                Lastmod::Right if truth.is_none_or(|truth| truth < 49.7) => {
                    right += 1;
                    assert_eq!(lastmod, truth);
                }
                Lastmod::Right | Lastmod::Partial => assert!(lastmod <= truth),
            }
        }
        assert!(right > generated && generated > 0);
    }

    #[test]
    fn the_same_seed_is_the_same_web() {
        let of = |seed| Changing::new(seed, 1_000, Model::open_web()).page(500).next_change(3.0);
        assert_eq!(of(1).to_bits(), of(1).to_bits());
        assert_ne!(of(1).to_bits(), of(2).to_bits());
    }
}
