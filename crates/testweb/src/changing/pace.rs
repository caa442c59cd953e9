//! How fast a page changes at which time, and how much change there has been: the integral in closed form, and its inverse.
//!
//! ```text
//!   time t ──season──▶ s ──article, switches──▶ u, on which changes come one per unit
//! ```

use std::f64::consts::{LN_2, TAU};

/// Rates of a page that follow each other; more than three switches in a lifetime of simulation hardly happen.
pub const STRETCHES_MAX: usize = 4;

/// Days in which an article's rate halves, and the age at which it stays where it is: a sixteenth.
const HALVING_DAYS: f64 = 30.0;
const OLD_DAYS: f64 = 120.0;
const OLD_SHARE: f64 = 1.0 / 16.0;
/// The mean over the first year, by which an article's rate is that of any page on average.
const ARTICLE_MEAN: f64 = 0.1543;

/// Day and week of a host: changes come 1.6 times as often at the best hour, 0.4 times at the worst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Season {
    /// Where in the day, and where in the week, in turns.
    day: f64,
    week: f64,
    /// What makes the even time of moment zero zero.
    begin: f64,
}

const DAY_SWING: f64 = 0.4;
const WEEK_SWING: f64 = 0.2;
const WEEK_DAYS: f64 = 7.0;

impl Season {
    /// A host whose day and week begin so many turns late.
    pub fn new(day: f64, week: f64) -> Season {
        let season = Season { day, week, begin: 0.0 };
        Season { begin: season.at(0.0).0, ..season }
    }

    /// Even time that has passed at a moment.
    pub fn forth(self, t: f64) -> f64 {
        self.at(t).0 - self.begin
    }

    /// The moment at which so much even time has passed.
    pub fn back(self, s: f64) -> f64 {
        // Newton's steps from a start less than half a day off; the slope is between 0.4 and 1.6.
        let (mut low, mut high) = (s - 1.0, s + 1.0);
        let mut t = s;
        for _ in 0..24 {
            let (there, slope) = self.at(t);
            let off = there - self.begin - s;
            if off.abs() < 1e-9 {
                break;
            }
            if off > 0.0 {
                high = t;
            } else {
                low = t;
            }
            let next = t - off / slope;
            t = if next > low && next < high { next } else { 0.5 * (low + high) };
        }
        t
    }

    /// Even time, up to its begin, and how fast it passes.
    fn at(self, t: f64) -> (f64, f64) {
        let (day_sin, day_cos) = (TAU * (t + self.day)).sin_cos();
        let (week_sin, week_cos) = (TAU * (t / WEEK_DAYS + self.week)).sin_cos();
        let swung = DAY_SWING / TAU * day_cos + WEEK_SWING * WEEK_DAYS / TAU * week_cos;
        (t - swung, 1.0 + DAY_SWING * day_sin + WEEK_SWING * week_sin)
    }
}

/// The rates of a page, one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course {
    /// Begin, rate per day, and how much change there has been at the begin.
    stretches: [(f64, f64, f64); STRETCHES_MAX],
    count: u8,
    /// An article's age at time zero, in days.
    article_age: Option<f64>,
}

impl Course {
    /// Rates per day with the time at which each begins; the first begins at zero, whatever it says.
    pub fn new(rates: &[(f64, f64)], article_age: Option<f64>) -> Course {
        let mut course = Course { stretches: [(0.0, rates[0].1, 0.0); STRETCHES_MAX], count: 1, article_age };
        for (from, rate) in rates.iter().skip(1).take(STRETCHES_MAX - 1) {
            let there = course.forth(*from);
            course.stretches[usize::from(course.count)] = (*from, *rate, there);
            course.count += 1;
        }
        course
    }

    /// How much change there has been.
    pub fn forth(&self, s: f64) -> f64 {
        let (from, rate, there) = self.stretch(|stretch| stretch.0 <= s);
        there + rate * (self.aged(s) - self.aged(from))
    }

    /// When there has been so much.
    pub fn back(&self, u: f64) -> f64 {
        let (from, rate, there) = self.stretch(|stretch| stretch.2 <= u);
        self.young(self.aged(from) + (u - there) / rate)
    }

    /// The rate at a time, per day.
    pub fn rate(&self, s: f64) -> f64 {
        let (_, rate, _) = self.stretch(|stretch| stretch.0 <= s);
        let share = |age: f64| (-(age.min(OLD_DAYS)) / HALVING_DAYS * LN_2).exp() / ARTICLE_MEAN;
        rate * self.article_age.map_or(1.0, |age| share(age + s))
    }

    fn stretch(&self, reached: impl Fn(&(f64, f64, f64)) -> bool) -> (f64, f64, f64) {
        let stretches = &self.stretches[..usize::from(self.count)];
        *stretches.iter().rev().find(|stretch| reached(stretch)).unwrap_or(&stretches[0])
    }

    /// Time as an article lives it.
    fn aged(&self, s: f64) -> f64 {
        self.article_age.map_or(s, |age| (lived(age + s) - lived(age)) / ARTICLE_MEAN)
    }

    fn young(&self, aged: f64) -> f64 {
        let Some(age) = self.article_age else { return aged };
        let lived_by_then = aged * ARTICLE_MEAN + lived(age);
        let old = lived(OLD_DAYS);
        let then = if lived_by_then <= old {
            -HALVING_DAYS / LN_2 * (1.0 - lived_by_then * LN_2 / HALVING_DAYS).ln()
        } else {
            OLD_DAYS + (lived_by_then - old) / OLD_SHARE
        };
        then - age
    }
}

/// The integral of an article's share from birth to an age.
fn lived(age: f64) -> f64 {
    let halving = HALVING_DAYS / LN_2 * (1.0 - (-(age.min(OLD_DAYS)) / HALVING_DAYS * LN_2).exp());
    halving + (age - OLD_DAYS).max(0.0) * OLD_SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seasons_go_forth_and_back() {
        let season = Season::new(0.3, 0.8);
        assert_eq!(season.forth(0.0), 0.0);
        for step in 0..2_000 {
            let t = f64::from(step) * 0.037;
            assert!((season.back(season.forth(t)) - t).abs() < 1e-7, "{t}");
        }
        assert!((season.forth(70.0) - 70.0).abs() < 1e-9, "ten weeks are ten weeks");
    }

    #[test]
    fn courses_go_forth_and_back_and_are_the_integral_of_the_rate() {
        for age in [None, Some(0.0), Some(100.0), Some(300.0)] {
            let course = Course::new(&[(0.0, 0.5), (40.0, 3.0), (200.0, 0.01)], age);
            for step in 1..400 {
                let s = f64::from(step) * 0.9;
                assert!((course.back(course.forth(s)) - s).abs() < 1e-6, "{age:?} {s}");
                let slope = (course.forth(s + 1e-4) - course.forth(s)) / 1e-4;
                assert!((slope / course.rate(s) - 1.0).abs() < 1e-3, "{age:?} {s}: {slope} {}", course.rate(s));
            }
        }
    }

    #[test]
    fn an_article_of_a_year_changed_as_often_as_any_page() {
        let course = Course::new(&[(0.0, 1.0)], Some(0.0));
        assert!((course.forth(360.0) / 360.0 - 1.0).abs() < 0.01, "{}", course.forth(360.0));
    }
}
