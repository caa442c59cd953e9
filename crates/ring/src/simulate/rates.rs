//! From how long repairs take to what is lost in years: too rare to be waited for, so it is computed.
//!
//! A slice has `copies` copies; each fails at a rate of one in a mean life. A Markov chain over the copies that are left: with two or more
//! left, repair is done after the late delay and a copy's time; with one left, after the soon delay. The chain is run in
//! steps of an hour for waiting times that are fixed, not exponential, because a fixed delay is what the rule says.

/// What the model is asked.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Copies wanted.
    pub copies: usize,
    /// Mean life of a node, in days.
    pub life_days: f64,
    /// From a loss to its repair while two copies or more are left, in hours.
    pub late_h: f64,
    /// From a loss to its repair when one copy is left, in hours.
    pub soon_h: f64,
}

/// Losses per slice and year. States are counted back from the repair: with a repair that takes a fixed time, the chance that all
/// others fail within it follows from their rates.
pub fn losses_per_slice_year(rates: &Rates) -> f64 {
    let fail_per_h = 1.0 / (rates.life_days * 24.0);
    let year_h = 365.25 * 24.0;
    let copies = rates.copies as f64;
    if rates.copies == 1 {
        return fail_per_h * year_h;
    }
    // The first loss happens at copies × rate. Then, hour by hour, how likely is it that nobody but one is left, and that one goes?
    let steps = 2000;
    let begin = copies * fail_per_h * year_h;
    begin * chance_of_loss(rates.copies - 1, rates, fail_per_h, steps)
}

/// The chance that the last copy goes before repair, with `left` copies and a repair that has just begun to wait.
fn chance_of_loss(left: usize, rates: &Rates, fail_per_h: f64, steps: usize) -> f64 {
    // With one copy left repair is sooner; with more, the clock of the first loss goes on, which is what happens in truth.
    let wait_h = if left >= 2 { rates.late_h } else { rates.soon_h };
    if left == 1 {
        return 1.0 - (-fail_per_h * wait_h).exp();
    }
    let step_h = wait_h / steps as f64;
    let mut chance = 0.0;
    for step in 0..steps {
        let at_h = (step as f64 + 0.5) * step_h;
        // The next loss falls into this step …
        let next = left as f64 * fail_per_h * step_h * (-(left as f64) * fail_per_h * at_h).exp();
        // … and then what is left of the waiting, but no longer than the sooner rule allows.
        let rest_h = rates.late_h - at_h;
        let remaining = Rates { late_h: rest_h.max(0.0), soon_h: rates.soon_h.min(rest_h.max(0.0)), ..*rates };
        chance += next * chance_of_loss(left - 1, &remaining, fail_per_h, 50);
    }
    chance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_of_a_day_and_an_hour_keeps_what_the_notes_say() {
        let rates = |life_days, late_h, soon_h| Rates { copies: 3, life_days, late_h, soon_h };
        // A copy takes 1.4 h beside the delay.
        let with_rule = losses_per_slice_year(&rates(365.0, 25.4, 2.4));
        let without = losses_per_slice_year(&rates(365.0, 25.4, 25.4));
        assert!((2e-6..=4.8e-6).contains(&with_rule), "{with_rule:e}");
        assert!((1.5e-5..4e-5).contains(&without), "{without:e}");
        assert!(losses_per_slice_year(&rates(90.0, 25.0, 2.4)) > 20.0 * with_rule);
        assert!(losses_per_slice_year(&Rates { copies: 4, ..rates(90.0, 25.2, 25.2) }) < 1e-4);
        assert!((losses_per_slice_year(&Rates { copies: 1, ..rates(365.25, 0.0, 0.0) }) - 1.0).abs() < 1e-9);
    }
}
