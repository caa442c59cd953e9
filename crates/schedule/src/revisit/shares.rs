//! Who gets the next visit: a page never seen, a page that is due, or any page whatever.
//!
//! New pages have their share as long as there are any; what they do not use goes to those that are due, and the other way
//! round. A few visits go to any page whatever: only they tell how fresh the copies really are, and how much hints leave out.

use super::policy::Policy;
use crate::limits;

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// A page that was never visited.
    New,
    /// A page that is due.
    Due,
    /// Any page, by chance.
    Audit,
}

/// How visits are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    new_percent: u32,
    audit_percent: u32,
    new_owed: u32,
    audit_owed: u32,
}

const WHOLE: u32 = 100;

impl Shares {
    /// The shares of a policy.
    pub fn of(policy: Policy) -> Shares {
        Shares {
            new_percent: policy.discovery_percent(),
            audit_percent: limits::AUDIT_PERCENT,
            new_owed: 0,
            audit_owed: 0,
        }
    }

    /// Whose turn the next visit is, among those who wait.
    pub fn next(&mut self, new: bool, due: bool) -> Option<Turn> {
        if !new && !due {
            return None;
        }
        self.audit_owed += self.audit_percent;
        // Who has nothing to visit saves nothing up.
        self.new_owed = if new { self.new_owed + self.new_percent } else { 0 };
        if self.audit_owed >= WHOLE {
            self.audit_owed -= WHOLE;
            return Some(Turn::Audit);
        }
        if new && (self.new_owed >= WHOLE || !due) {
            self.new_owed = self.new_owed.saturating_sub(WHOLE);
            return Some(Turn::New);
        }
        Some(Turn::Due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(policy: Policy, new: bool, due: bool) -> [u32; 3] {
        let mut shares = Shares::of(policy);
        let mut counts = [0; 3];
        for _ in 0..10_000 {
            match shares.next(new, due) {
                Some(Turn::New) => counts[0] += 1,
                Some(Turn::Due) => counts[1] += 1,
                Some(Turn::Audit) => counts[2] += 1,
                None => {}
            }
        }
        counts
    }

    #[test]
    fn each_has_its_share_and_nobody_idles_while_another_waits() {
        let near = |found: u32, expected: u32| found.abs_diff(expected) <= 20;
        let [new, due, audit] = counts(Policy::Harmonic, true, true);
        assert!(near(new, 1_200) && near(due, 8_600) && near(audit, 200), "{new} {due} {audit}");
        let [new, due, _] = counts(Policy::Anansi, true, true);
        assert!(near(new, 9_000) && near(due, 800), "nine of ten to new pages: {new} {due}");
        assert!(near(counts(Policy::Harmonic, true, false)[0], 9_800));
        assert!(near(counts(Policy::Harmonic, false, true)[1], 9_800));
        assert_eq!(counts(Policy::Harmonic, false, false), [0; 3]);
    }

    #[test]
    fn a_pause_of_new_pages_is_not_made_up_for() {
        let mut shares = Shares::of(Policy::Anansi);
        let before = (0..1_000).filter(|_| shares.next(false, true) == Some(Turn::New)).count();
        assert_eq!(before, 0);
        let turns: Vec<Turn> = (0..20).filter_map(|_| shares.next(true, true)).collect();
        assert!(turns.contains(&Turn::Due), "{turns:?}");
    }
}
