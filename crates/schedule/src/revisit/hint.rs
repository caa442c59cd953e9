//! What sitemaps and feeds say about when a page changed, believed as far as it was right before.
//!
//! One [`Trust`] per host. Most hosts with dates in their sitemap tell the truth, a fifth write the time at
//! which it was generated; both show within a few visits, because a visit tells whether the page did change.

use super::memory::Moment;
use crate::limits;

/// How often a host's hints were right.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trust {
    told_changed: f32,
    told_same: f32,
    untold_changed: f32,
    at: Moment,
}

impl Trust {
    /// Bytes that it takes on a disk.
    pub const BYTES: usize = 5;

    /// As bytes: `| told changed 1 | told same 1 | untold changed 1 | day 2 |`, counts in quarters. All zero before anything was seen.
    pub fn encode(&self) -> [u8; Trust::BYTES] {
        let quarters = |count: f32| (count * 4.0).round().clamp(0.0, 255.0) as u8;
        let [low, high] = ((self.at.0 / 86_400).min(u16::MAX.into()) as u16).to_le_bytes();
        [quarters(self.told_changed), quarters(self.told_same), quarters(self.untold_changed), low, high]
    }

    /// What bytes stand for.
    pub fn decode([told_changed, told_same, untold_changed, low, high]: [u8; Trust::BYTES]) -> Trust {
        let count = |quarters: u8| f32::from(quarters) / 4.0;
        Trust {
            told_changed: count(told_changed),
            told_same: count(told_same),
            untold_changed: count(untold_changed),
            at: Moment(u32::from(u16::from_le_bytes([low, high])) * 86_400),
        }
    }

    /// A visit showed whether the page had changed, and a hint had said that it did, or had not.
    pub fn observe(&mut self, told: bool, changed: bool, now: Moment) {
        let fade = 0.5f32.powf(now.days_since(self.at) / limits::TRUST_FADE_DAYS);
        self.told_changed *= fade;
        self.told_same *= fade;
        self.untold_changed *= fade;
        self.at = now;
        match (told, changed) {
            (true, true) => self.told_changed += 1.0,
            (true, false) => self.told_same += 1.0,
            (false, true) => self.untold_changed += 1.0,
            (false, false) => {}
        }
    }

    /// Of the hints, those that were right.
    pub fn precision(&self) -> f32 {
        (self.told_changed + 1.0) / (self.told_changed + self.told_same + 2.0)
    }

    /// Of the changes, those that were hinted at.
    pub fn recall(&self) -> f32 {
        (self.told_changed + 1.0) / (self.told_changed + self.untold_changed + 2.0)
    }

    /// How many changes a hint is worth: a page that changed with probability π is as stale as after −ln(1−π) expected changes.
    pub fn expected_changes(&self) -> f32 {
        -(1.0 - self.precision()).ln()
    }
}

/// Does a date say that the page changed since the last visit? One in the future says nothing.
pub fn says_changed(date: Moment, last_visit: Moment, now: Moment) -> bool {
    date > last_visit && date <= now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_tells_the_truth_is_believed_and_who_says_it_always_is_not() {
        let (mut honest, mut liar) = (Trust::default(), Trust::default());
        for day in 0..60u32 {
            let (now, changed) = (Moment(day * 86_400), day % 10 == 0);
            honest.observe(changed, changed, now);
            liar.observe(true, changed, now);
        }
        assert!(honest.precision() > 0.8 && honest.recall() > 0.8);
        assert!(liar.precision() < 0.2);
        assert!(honest.expected_changes() > 1.5 && liar.expected_changes() < 0.25);
    }

    #[test]
    fn what_is_kept_is_believed_as_before() {
        assert_eq!(Trust::decode([0; Trust::BYTES]), Trust::default());
        let mut trust = Trust::default();
        (0..40).for_each(|day| trust.observe(day % 5 != 0, day % 3 != 0, Moment((20_000 + day) * 86_400)));
        let back = Trust::decode(trust.encode());
        assert!((back.precision() - trust.precision()).abs() < 0.02 && (back.recall() - trust.recall()).abs() < 0.02);
        assert_eq!(back.encode(), trust.encode());
    }

    #[test]
    fn a_host_that_changed_its_ways_is_believed_again() {
        let mut trust = Trust::default();
        (0..50).for_each(|day| trust.observe(true, false, Moment(day * 86_400)));
        let before = trust.precision();
        (0..50).for_each(|day| trust.observe(true, true, Moment((800 + day) * 86_400)));
        assert!(before < 0.1 && trust.precision() > 0.9);
    }

    #[test]
    fn only_dates_between_the_last_visit_and_now_count() {
        assert!(says_changed(Moment(50), Moment(40), Moment(60)));
        assert!(!says_changed(Moment(40), Moment(40), Moment(60)));
        assert!(!says_changed(Moment(61), Moment(40), Moment(60)));
    }
}
