//! What a budget would bring, before anything is visited.

use super::memory::Memory;
use super::policy::{self, Policy};
use super::price::Price;

/// Upper ends of the classes of intervals, in days, and their names.
pub const CLASSES: [(f32, &str); 6] = [
    (1.0 / 12.0, "every two hours or more often"),
    (1.5, "daily or more often"),
    (10.0, "weekly or more often"),
    (45.0, "monthly or more often"),
    (400.0, "yearly or more often"),
    (f32::INFINITY, "more seldom"),
];

/// What to expect.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Forecast {
    /// Visits per page and day.
    pub visits_per_page: f32,
    /// The share of importance and time in which a copy is up to date.
    pub fresh: f32,
    /// The share of pages in each of [`CLASSES`].
    pub classes: [f32; CLASSES.len()],
    /// The price of a visit.
    pub price: f32,
}

/// What to expect of so many visits per page and day, by a sample of pages.
pub fn forecast(sample: &[Memory], policy: Policy, visits_per_page: f32) -> Forecast {
    let mut price = Price::new(visits_per_page);
    price.solve(policy, sample, visits_per_page);
    let mut forecast = Forecast { price: price.get(), ..Forecast::default() };
    let (mut weight, share) = (0.0, 1.0 / sample.len().max(1) as f32);
    for memory in sample {
        let days = match policy {
            // It has its own idea of the budget; what there is of it goes round.
            Policy::Daily => (1.0 / visits_per_page).max(1.0),
            policy => policy.interval_days(memory, price.get(), 0.5),
        };
        forecast.visits_per_page += share / days;
        forecast.fresh += memory.importance() * policy::freshness(memory, 1.0 / days);
        weight += memory.importance();
        let class = CLASSES.iter().position(|(end, _)| days < *end).unwrap_or(CLASSES.len() - 1);
        forecast.classes[class] += share;
    }
    if weight > 0.0 {
        forecast.fresh /= weight;
    }
    forecast
}

#[cfg(test)]
mod tests {
    use super::super::belief::{Belief, Prior};
    use super::super::memory::Moment;
    use super::*;

    #[test]
    fn more_visits_are_fresher_and_the_best_policy_is_best() {
        let sample: Vec<Memory> = (0..400)
            .map(|number| {
                let mut memory = Memory::first(Moment(0), 1.0, &Prior::default());
                memory.believe(Belief::known((-9.0 + 0.03 * number as f32).exp()));
                memory
            })
            .collect();
        let of = |policy, visits| forecast(&sample, policy, visits);
        for policy in Policy::ALL {
            let (few, many) = (of(policy, 0.05), of(policy, 0.5));
            assert!(few.fresh <= many.fresh, "{policy:?}");
            assert!((few.visits_per_page / 0.05 - 1.0).abs() < 0.05, "{policy:?} {few:?}");
            assert!((few.classes.iter().sum::<f32>() - 1.0).abs() < 1e-3);
        }
        let fresh = of(Policy::Fresh, 0.1).fresh;
        let harmonic = of(Policy::Harmonic, 0.1).fresh;
        let uniform = of(Policy::Uniform, 0.1).fresh;
        assert!(fresh >= harmonic && harmonic > uniform, "{fresh} {harmonic} {uniform}");
        assert_eq!(forecast(&[], Policy::Harmonic, 1.0).fresh, 0.0);
    }
}
