//! How long to wait before the next look at a page, at a price.
//!
//! The price is what one visit costs, in the unit of what it brings. Each policy makes a rate of visits out of belief,
//! importance and price; the price is then the one number that makes all rates together the budget.
//!
//! ```text
//!   harmonic   few changes missed:   w·λ / f(f+λ)            = price     nobody with λ > 0 starves
//!   fresh      copies up to date:    (w/λ)·(1 − e^−λτ(1+λτ)) = price     what changes faster than it can be followed is left
//!   uniform    everything alike
//!   daily      everything every day, whatever it costs                   Herodotus
//!   anansi     C·T·(I+O): change ratio × age × links         = price     Anansi: what did not change last time waits to the end
//!   hyperdog   a bundle at a random moment within the scan               HyperDog
//! ```
//! `fresh` takes the mean over what λ may be, or it would give up pages that only seem too fast to follow; `harmonic` gives nobody
//! up and takes λ in the middle.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::belief::Belief;
use super::memory::Memory;
use crate::limits;

/// By what a page's next visit is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// As few changes missed as the budget allows, with nearly the best freshness.
    #[default]
    Harmonic,
    /// Copies up to date for as much of the time as the budget allows.
    Fresh,
    /// Every page as often as every other.
    Uniform,
    /// Every page every day.
    Daily,
    /// Change ratio times age times links.
    Anansi,
    /// Bundles at random moments within the scan; the next one as soon as there is room for it.
    Hyperdog,
    /// The same, but never before its moment.
    HyperdogTimed,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 7] = [
        Policy::Harmonic,
        Policy::Fresh,
        Policy::Uniform,
        Policy::Daily,
        Policy::Anansi,
        Policy::Hyperdog,
        Policy::HyperdogTimed,
    ];

    /// Its name on the command line and in settings.
    pub fn id(self) -> &'static str {
        match self {
            Policy::Harmonic => "harmonic",
            Policy::Fresh => "fresh",
            Policy::Uniform => "uniform",
            Policy::Daily => "daily",
            Policy::Anansi => "anansi",
            Policy::Hyperdog => "hyperdog",
            Policy::HyperdogTimed => "hyperdog-timed",
        }
    }

    /// Takes what comes next although it is not due, rather than wait.
    pub fn is_work_conserving(self) -> bool {
        self == Policy::Hyperdog
    }

    /// Asks what is believed of a page.
    pub fn believes(self) -> bool {
        matches!(self, Policy::Harmonic | Policy::Fresh)
    }

    /// Of a hundred visits, those that go to new pages as long as there are any.
    pub fn discovery_percent(self) -> u32 {
        match self {
            Policy::Anansi => limits::DISCOVERY_PERCENT_ANANSI,
            _ => limits::DISCOVERY_PERCENT,
        }
    }

    /// Visits per day at a price; zero for a page that is not worth one.
    pub fn rate(self, memory: &Memory, price: f32) -> f32 {
        let worth = price / memory.importance();
        match self {
            Policy::Harmonic => harmonic(memory.unheard().rate(), worth),
            Policy::Fresh => {
                let rate = |belief: &Belief| fresh(&belief.rates(), worth).map_or(0.0, |days| 1.0 / days);
                let (all, unheard) = (memory.belief(), memory.unheard());
                // Fewer changes are easier to follow, and may be worth more looks; silence is no reason for them.
                if all == unheard { rate(&all) } else { rate(&all).min(rate(&unheard)) }
            }
            Policy::Uniform => 1.0 / price,
            Policy::Daily => 1.0,
            Policy::Anansi => memory.change_ratio().max(limits::CHANGE_RATIO_LEAST) / worth,
            // A random moment within the scan is half a scan away.
            Policy::Hyperdog | Policy::HyperdogTimed => 1.0 / price,
        }
    }

    /// Days between two visits at a price. `chance` is a number between 0 and 1 that the caller draws, the same for the URLs of a
    /// bundle.
    pub fn interval_days(self, memory: &Memory, price: f32, chance: f32) -> f32 {
        let rate = self.rate(memory, price);
        let days = match self {
            Policy::Hyperdog | Policy::HyperdogTimed => 2.0 * chance / rate,
            _ => 1.0 / rate,
        };
        // Not `clamp`: a rate of nothing, or no number, is the longest wait.
        if days < limits::INTERVAL_DAYS_MAX { days.max(limits::INTERVAL_DAYS_MIN) } else { limits::INTERVAL_DAYS_MAX }
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Policy, String> {
        Policy::ALL.into_iter().find(|policy| policy.id() == text).ok_or_else(|| {
            let names: Vec<&str> = Policy::ALL.iter().map(|policy| policy.id()).collect();
            format!("`{text}` is no policy; there are {}", names.join(", "))
        })
    }
}

/// The rate `f` at which λ/(f(f+λ)) is `worth`.
fn harmonic(change: f32, worth: f32) -> f32 {
    // The root of f² + λf = λ/worth, in the form that loses no digits where λ is large.
    let (change, worth) = (f64::from(change), f64::from(worth));
    (2.0 * change / worth / (change + (change * change + 4.0 * change / worth).sqrt())) as f32
}

/// The wait `τ` after which the mean of (1 − e^−λτ(1+λτ))/λ is `worth`; nothing where it never is.
fn fresh(rates: &[(f32, f32); 3], worth: f32) -> Option<f32> {
    let most: f32 = rates.iter().map(|(weight, change)| weight / change).sum();
    if worth >= most {
        return None;
    }
    // From below: 1 − e^−x(1+x) is never above x²/2.
    let mean: f32 = rates.iter().map(|(weight, change)| weight * change).sum();
    let mut low = (2.0 * worth / mean).sqrt();
    let mut high = f32::INFINITY;
    let mut days = low;
    for _ in 0..limits::SOLVE_STEPS_MAX {
        let (mut value, mut slope) = (0.0, 0.0);
        for (weight, change) in rates {
            let x = change * days;
            let left = (-x).exp();
            // For small x the difference below has no digits left.
            let gained = if x < 0.03 { x * x * (0.5 - x / 3.0) } else { 1.0 - left * (1.0 + x) };
            value += weight / change * gained;
            slope += weight * change * days * left;
        }
        if value < worth {
            low = days;
        } else {
            high = days;
        }
        let newton = days + (worth - value) / slope;
        let next = if newton > low && newton < high {
            newton
        } else if high.is_finite() {
            (low * high).sqrt()
        } else {
            4.0 * days
        };
        if (next / days - 1.0).abs() < 1e-3 {
            return Some(next);
        }
        days = next;
    }
    Some(days)
}

/// How fresh a page is on average that is visited at a rate, by what is believed of it.
pub fn freshness(memory: &Memory, visits_per_day: f32) -> f32 {
    let of = |(weight, change): (f32, f32)| {
        let x = change / visits_per_day.max(f32::MIN_POSITIVE);
        weight * if x < 1e-3 { 1.0 - 0.5 * x } else { -(-x).exp_m1() / x }
    };
    memory.belief().rates().into_iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::super::memory::{Found, Moment};
    use super::*;

    fn page(rate: f32, importance: f32) -> Memory {
        let mut memory = Memory::first(Moment(0), importance, &super::super::belief::Prior::default());
        memory.believe(Belief::known(rate));
        memory
    }

    #[test]
    fn known_rates_give_the_rates_of_the_formulas() {
        for change in [0.001f32, 0.05, 1.0, 20.0] {
            for price in [0.02f32, 1.0, 30.0] {
                let memory = page(change, 1.0);
                let change = memory.belief().rate();
                let expected = 0.5 * ((change * change + 4.0 * change / price).sqrt() - change);
                let found = Policy::Harmonic.rate(&memory, price);
                assert!((found / expected - 1.0).abs() < 0.02, "λ {change} price {price}: {found} for {expected}");
                let found = Policy::Fresh.rate(&memory, price);
                if price * change >= 1.0 {
                    assert_eq!(found, 0.0);
                } else {
                    let x = change / found;
                    let index = (1.0 - (-x).exp() * (1.0 + x)) / change;
                    assert!((index / price - 1.0).abs() < 0.05, "λ {change} price {price}: {index}");
                }
            }
        }
    }

    #[test]
    fn importance_brings_visits_and_a_price_costs_them() {
        for policy in [Policy::Harmonic, Policy::Fresh, Policy::Anansi] {
            assert!(policy.rate(&page(0.1, 4.0), 1.0) > policy.rate(&page(0.1, 1.0), 1.0), "{policy:?}");
            assert!(policy.rate(&page(0.1, 1.0), 1.0) > policy.rate(&page(0.1, 1.0), 3.0), "{policy:?}");
        }
    }

    #[test]
    fn every_wait_is_within_its_bounds_whatever_comes_in() {
        let odd = [0.0, -1.0, f32::NAN, f32::INFINITY, f32::MIN_POSITIVE, 1e30];
        for policy in Policy::ALL {
            for rate in odd {
                for price in odd {
                    let days = policy.interval_days(&page(rate, rate), price, 0.5);
                    assert!(
                        (limits::INTERVAL_DAYS_MIN..=limits::INTERVAL_DAYS_MAX).contains(&days),
                        "{policy:?} {days}"
                    );
                }
            }
        }
    }

    #[test]
    fn anansi_follows_what_the_last_visit_found() {
        let mut often = page(1.0, 1.0);
        let mut seldom = often;
        often.observe(Found::Changed(None), Moment(86_400));
        seldom.observe(Found::Same, Moment(86_400));
        assert!(Policy::Anansi.rate(&often, 1.0) > 100.0 * Policy::Anansi.rate(&seldom, 1.0));
        often.set_change_ratio(0.5);
        assert!((Policy::Anansi.rate(&often, 1.0) - 0.5).abs() < 0.01);
        assert!(Policy::Anansi.rate(&seldom, 1.0) > 0.0, "its list is filled, if need be with what did not change");
    }

    #[test]
    fn policies_have_names() {
        for policy in Policy::ALL {
            assert_eq!(policy.id().parse(), Ok(policy));
        }
        assert!("nutch".parse::<Policy>().unwrap_err().contains("harmonic"));
    }

    #[test]
    fn freshness_is_that_of_even_visits() {
        let memory = page(1.0, 1.0);
        assert!((freshness(&memory, 1.0) - (1.0 - (-1f32).exp())).abs() < 0.01);
        assert!(freshness(&memory, 1e-9) < 0.01 && freshness(&memory, 1e9) > 0.999);
    }
}
