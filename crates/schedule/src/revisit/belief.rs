//! How often a page changes, believed from visits that only tell whether it did.
//!
//! A visit after `τ` days finds no change with probability `e^(−λτ)`. Time without change adds up exactly; visits that found one
//! are remembered by their number and a mean wait, which is exact where visits are regular. With a prior over rates on a grid, one
//! octave apart, the posterior follows by Bayes' rule; its mean and deviation of `ln λ` are kept.
//!
//! The prior is what is believed of the site's other pages, and of all pages where the site has few: pages come in and go out
//! of it with the beliefs about them, so that it follows what is found and needs no pass over anything.

use super::memory::Memory;
use crate::limits;

/// Rates of the grid: one octave apart, from once in ninety years to once in a quarter of an hour.
pub const GRID: usize = 22;
const GRID_FROM: f32 = -15.0;
const LN_2: f32 = std::f32::consts::LN_2;

/// Changes per day at a place of the grid.
fn rate_at(place: usize) -> f32 {
    (place as f32 + GRID_FROM).exp2()
}

/// What is believed of one page: the mean of the logarithm of its changes per day, and how uncertain it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Belief {
    /// Mean of `ln λ`.
    pub rate_ln: f32,
    /// Deviation of `ln λ`.
    pub spread: f32,
}

impl Belief {
    /// A page whose rate is known.
    pub fn known(rate: f32) -> Belief {
        Belief { rate_ln: rate.max(f32::MIN_POSITIVE).ln(), spread: 0.0 }
    }

    /// What follows from a memory and a prior.
    pub fn of(memory: &Memory, prior: &Prior) -> Belief {
        let mut likely = [0f32; GRID];
        let mut most = f32::NEG_INFINITY;
        let (changes, wait) = memory.changes();
        for (place, likely) in likely.iter_mut().enumerate() {
            let rate = rate_at(place);
            let mut ln = -rate * memory.same_days;
            if changes > 0.0 {
                // ln(1 − e^(−x)), exact for small x too.
                ln += changes * (-(-rate * wait).exp_m1()).max(f32::MIN_POSITIVE).ln();
            }
            *likely = ln;
            most = most.max(ln);
        }
        let (mut sum, mut mean, mut square) = (0f32, 0f32, 0f32);
        for (place, likely) in likely.iter().enumerate() {
            let weight = prior.weights[place] * (likely - most).exp();
            let ln = (place as f32 + GRID_FROM) * LN_2;
            sum += weight;
            mean += weight * ln;
            square += weight * ln * ln;
        }
        if !(sum > 0.0 && sum.is_finite()) {
            return Belief { rate_ln: limits::RATE_LN_UNKNOWN, spread: limits::SPREAD_UNKNOWN };
        }
        let (mean, square) = (mean / sum, square / sum);
        Belief { rate_ln: mean, spread: (square - mean * mean).max(0.0).sqrt() }
    }

    /// Three rates and their weights that have the same mean and deviation.
    pub fn rates(&self) -> [(f32, f32); 3] {
        const ROOT_3: f32 = 1.732_050_8;
        let step = (ROOT_3 * self.spread).exp();
        let middle = self.rate_ln.exp();
        [(1.0 / 6.0, middle / step), (2.0 / 3.0, middle), (1.0 / 6.0, middle * step)]
    }

    /// Changes per day in the middle.
    pub fn rate(&self) -> f32 {
        self.rate_ln.exp()
    }

    /// Its weight over the grid; they add up to one.
    pub fn spread_out(&self) -> SpreadOut {
        // Half an octave at least: the grid sees nothing narrower.
        let width = self.spread.max(0.5 * LN_2);
        let mut weights = [0f32; GRID];
        let mut sum = 0.0;
        for (place, weight) in weights.iter_mut().enumerate() {
            let off = ((place as f32 + GRID_FROM) * LN_2 - self.rate_ln) / width;
            *weight = (-0.5 * off * off).exp();
            sum += *weight;
        }
        if sum > 0.0 {
            weights.iter_mut().for_each(|weight| *weight /= sum);
        }
        SpreadOut(weights)
    }
}

/// A belief over the grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpreadOut([f32; GRID]);

/// How likely each rate is before a page is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    weights: [f32; GRID],
}

impl Default for Prior {
    /// Where nothing was seen yet: every octave about as likely as its neighbours, and much of the web at rest.
    fn default() -> Prior {
        let mut weights = [1.0; GRID];
        weights[..5].iter_mut().for_each(|weight| *weight = 3.0);
        weights[17..].iter_mut().for_each(|weight| *weight = 0.3);
        let sum: f32 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= sum);
        Prior { weights }
    }
}

/// What is believed of many pages together: a site's, or all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pool {
    weights: [f64; GRID],
    pages: f64,
}

impl Default for Pool {
    fn default() -> Pool {
        Pool { weights: [0.0; GRID], pages: 0.0 }
    }
}

impl Pool {
    /// A page comes in.
    pub fn add(&mut self, belief: &SpreadOut) {
        self.change(belief, 1.0);
    }

    /// A page goes out, with the belief with which it came in.
    pub fn take(&mut self, belief: &SpreadOut) {
        self.change(belief, -1.0);
    }

    fn change(&mut self, belief: &SpreadOut, by: f64) {
        for (weight, more) in self.weights.iter_mut().zip(&belief.0) {
            *weight = (*weight + by * f64::from(*more)).max(0.0);
        }
        self.pages = (self.pages + by).max(0.0);
    }

    /// The prior of a page among these, where `around` holds for all.
    pub fn prior(&self, around: &Prior, around_pages: f32) -> Prior {
        let mut weights = [0f32; GRID];
        let all = self.pages as f32 + around_pages;
        for (place, weight) in weights.iter_mut().enumerate() {
            *weight = (self.weights[place] as f32 + around_pages * around.weights[place]) / all;
        }
        Prior { weights }
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::{Found, Moment};
    use super::*;

    /// Visits at these intervals, each with what a page of the rate would show, in turns that have its mean.
    fn watched(rate: f32, days: &[f32], visits: usize) -> Belief {
        let prior = Prior::default();
        let mut memory = Memory::first(Moment(0), 1.0, &prior);
        let mut now = Moment(0);
        let mut owed = 0.5;
        for number in 0..visits {
            let wait = days[number % days.len()];
            now = now.plus_days(wait);
            owed += 1.0 - (-rate * wait).exp();
            let changed = owed >= 1.0;
            owed -= f32::from(u8::from(changed));
            memory.observe(if changed { Found::Changed(None) } else { Found::Same }, now);
        }
        Belief::of(&memory, &prior)
    }

    #[test]
    fn rates_are_found_from_yes_and_no_at_irregular_intervals() {
        for rate in [0.05f32, 0.2, 0.7] {
            for days in [&[2.0f32][..], &[0.5, 3.0, 1.0], &[1.0, 1.5, 0.2, 2.5]] {
                let belief = watched(rate, days, 400);
                assert!((belief.rate() / rate).ln().abs() < 0.5, "{rate} by {days:?}: {}", belief.rate());
                assert!(belief.spread < 1.0);
            }
        }
    }

    #[test]
    fn a_page_that_changed_every_time_may_be_faster_than_it_was_looked_at() {
        // Changes over time would say one a day.
        let belief = watched(20.0, &[1.0], 50);
        assert!(belief.rate() > 3.0, "{}", belief.rate());
    }

    #[test]
    fn what_never_changed_is_believed_to_rest_the_longer_the_more() {
        let (short, long) = (watched(0.0, &[10.0], 3), watched(0.0, &[30.0], 20));
        assert!(long.rate_ln < short.rate_ln - 0.5, "{short:?} {long:?}");
    }

    #[test]
    fn a_site_lends_its_pages_what_the_others_showed() {
        let mut busy = Pool::default();
        (0..20).for_each(|_| busy.add(&Belief { rate_ln: 1.0, spread: 0.3 }.spread_out()));
        let around = Prior::default();
        let of = |site: &Pool| Belief::of(&Memory::UNKNOWN, &site.prior(&around, limits::SITE_PRIOR_PAGES));
        assert!(of(&busy).rate_ln > of(&Pool::default()).rate_ln + 2.0);
        (0..20).for_each(|_| busy.take(&Belief { rate_ln: 1.0, spread: 0.3 }.spread_out()));
        assert!((of(&busy).rate_ln - of(&Pool::default()).rate_ln).abs() < 1e-3);
    }

    #[test]
    fn three_rates_stand_for_the_whole() {
        let belief = Belief { rate_ln: -2.0, spread: 1.5 };
        let rates = belief.rates();
        let mean: f32 = rates.iter().map(|(weight, rate)| weight * rate.ln()).sum();
        let square: f32 = rates.iter().map(|(weight, rate)| weight * (rate.ln() + 2.0).powi(2)).sum();
        assert!((mean + 2.0).abs() < 1e-4 && (square.sqrt() - 1.5).abs() < 1e-3);
    }
}
