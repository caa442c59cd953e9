//! The price of a visit: found on a sample of pages, trimmed by what the budget really sees.

use super::memory::Memory;
use super::policy::Policy;
use crate::limits;

/// The price, and the trim that makes up for what the sample does not show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    sampled: f32,
    /// The sum of what was short or over so far, and what is so now.
    slow: f32,
    now: f32,
}

impl Price {
    /// A first guess for so many visits per page and day.
    pub fn new(visits_per_page: f32) -> Price {
        let guess = limits::PRICE_GUESS / visits_per_page.max(f32::MIN_POSITIVE);
        Price { sampled: guess.clamp(limits::PRICE_MIN, limits::PRICE_MAX), slow: 0.0, now: 0.0 }
    }

    /// What one visit costs now.
    pub fn get(&self) -> f32 {
        (self.sampled * (self.slow + self.now).exp()).clamp(limits::PRICE_MIN, limits::PRICE_MAX)
    }

    /// The price at which the pages of a sample are visited so often on average. An empty sample changes nothing.
    pub fn solve(&mut self, policy: Policy, sample: &[Memory], visits_per_page: f32) {
        if sample.is_empty() || visits_per_page.is_nan() || visits_per_page <= 0.0 {
            return;
        }
        let asked = f64::from(visits_per_page) * sample.len() as f64;
        // A wait has bounds; so has the rate that the page is counted with.
        let rate = |memory: &Memory, price: f32| 1.0 / f64::from(policy.interval_days(memory, price, 0.5));
        let over = |ln: f32| sample.iter().map(|memory| rate(memory, ln.exp())).sum::<f64>() > asked;
        let (least, most) = (limits::PRICE_MIN.ln(), limits::PRICE_MAX.ln());
        let (mut low, mut high) = (self.sampled.ln(), self.sampled.ln());
        // The last price is near: doubling steps from there find both sides quickly, halving ends between them.
        let mut step = limits::PRICE_STEP;
        while over(high) && high < most {
            (low, high, step) = (high, (high + step).min(most), step * 2.0);
        }
        while low > least && !over(low) {
            (high, low, step) = (low, (low - step).max(least), step * 2.0);
        }
        while high - low > limits::PRICE_PRECISION {
            let middle = 0.5 * (low + high);
            if over(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.sampled = (0.5 * (low + high)).exp();
    }

    /// Trims the price by what was seen over so many mean revisit periods: the share of the budget that was used, and how late
    /// visits are, in such periods. Idle hours make visits cheaper; lateness makes them dearer, at once and, where it stays, for
    /// long.
    pub fn trim(&mut self, used: f32, late: f32, periods: f32) {
        if used.is_nan() || late.is_nan() || periods.is_nan() {
            return;
        }
        let idle = 1.0 - used.clamp(0.0, 1.0);
        let late = late.clamp(0.0, 1.0) - limits::LATE_WANTED;
        self.now = limits::TRIM_NOW * late;
        let more = limits::TRIM_LATE * late.min(limits::LATE_SEEN_MAX) - limits::TRIM_IDLE * idle;
        self.slow = (self.slow + more * periods.clamp(0.0, 1.0)).clamp(-limits::TRIM_MAX, limits::TRIM_MAX);
    }

    /// Another budget: the old trim says nothing about it.
    pub fn forget(&mut self) {
        (self.slow, self.now) = (0.0, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::belief::{Belief, Prior};
    use super::super::memory::Moment;
    use super::*;

    fn pages() -> Vec<Memory> {
        let mut pages = Vec::new();
        for number in 0..500u32 {
            let mut memory = Memory::first(Moment(0), 0.1 + (number % 13) as f32, &Prior::default());
            memory.believe(Belief { rate_ln: -9.0 + 0.025 * number as f32, spread: (number % 4) as f32 * 0.5 });
            pages.push(memory);
        }
        pages
    }

    #[test]
    fn the_price_makes_the_rates_the_budget() {
        for policy in [Policy::Harmonic, Policy::Fresh, Policy::Uniform, Policy::Anansi, Policy::Hyperdog] {
            for asked in [1.0 / 30.0, 0.5, 3.0] {
                let mut price = Price::new(asked);
                price.solve(policy, &pages(), asked);
                let sum: f32 = pages().iter().map(|page| 1.0 / policy.interval_days(page, price.get(), 0.5)).sum();
                let found = sum / 500.0;
                assert!((found / asked - 1.0).abs() < 0.03, "{policy:?}: {found} for {asked}");
            }
        }
    }

    #[test]
    fn odd_budgets_leave_a_price_within_bounds() {
        for asked in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e-30, 1e30] {
            let mut price = Price::new(asked);
            price.solve(Policy::Harmonic, &pages(), asked);
            price.trim(f32::NAN, 0.0, 1.0);
            price.trim(-1.0, f32::INFINITY, 1e9);
            assert!((limits::PRICE_MIN..=limits::PRICE_MAX).contains(&price.get()), "{asked}: {price:?}");
        }
    }

    #[test]
    fn lateness_makes_visits_dearer_and_idleness_cheaper() {
        let mut price = Price::new(0.1);
        let before = price.get();
        price.trim(1.0, 0.05, 0.1);
        assert!(price.get() > before);
        price.trim(0.7, 0.0, 0.5);
        assert!(price.get() < before);
        price.forget();
        assert_eq!(price.get(), before);
    }
}
