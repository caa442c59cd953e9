//! Does one address turn us away, whatever site of it we ask for?
//!
//! A provider that has had enough of a crawler refuses it on all of its sites at once: by 403, by 429, by resets, by silence. Each
//! site would then be tried until it is given up, one after the other, which is what the provider objects to. So sites of an
//! address that refuse in a row, with no answer from it between, are one refusal, and are left alone together.
//!
//! ```text
//!             several sites refuse in a row          the time is over          the trial is refused: longer each time
//!   answers ───────────────────────────────▶ banned ────────────────▶ trial ───────────────────────────────────────▶ banned
//!      ▲                                                                │  └── for the last time ──▶ given up
//!      └──────────────────────── somebody is answered ◀─────────────────┘
//! ```
//! An address that never answered is no provider that changed its mind: its sites are dead, each for itself.

use std::collections::{BTreeSet, HashMap};

use crate::id::{AddressKey, SiteId};
use crate::limits::{BAN_SITES, BAN_TRIALS_MAX, BREAKERS_MAX};
use crate::pace::backoff_ms;

/// What follows from a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ban {
    /// Nothing: it is the site's own.
    None,
    /// The address turns us away; `until_ms` is news.
    Begins {
        /// All of its sites are left alone until then.
        until_ms: u64,
        /// For the how-many-th time in a row.
        times: u8,
    },
    /// It does so still, and everybody knows.
    Holds,
    /// It does so however long it is left alone: its sites are given up.
    GivenUp,
}

/// What is known of each address.
#[derive(Debug)]
pub struct Breakers {
    of: HashMap<AddressKey, Breaker>,
    /// Waits in thousandths of the rule; a test may be impatient.
    permille: u32,
}

#[derive(Debug, Default)]
struct Breaker {
    /// Sites that were refused since the address answered.
    refused: BTreeSet<SiteId>,
    /// Bans in a row.
    times: u8,
    until_ms: u64,
}

impl Breakers {
    /// Nobody has turned us away yet. `permille`: waits in thousandths of the rule.
    pub fn new(permille: u32) -> Breakers {
        Breakers { of: HashMap::new(), permille }
    }

    /// The address answered. Returns whether that ends a ban.
    pub fn answered(&mut self, address: AddressKey) -> bool {
        if !address.is_known() {
            return false;
        }
        if self.of.len() >= BREAKERS_MAX && !self.of.contains_key(&address) {
            self.of.retain(|_, breaker| breaker.times > 0);
            if self.of.len() >= BREAKERS_MAX {
                self.of.clear();
            }
        }
        let breaker = self.of.entry(address).or_default();
        breaker.refused.clear();
        std::mem::take(&mut breaker.times) > 0
    }

    /// The address refused a site, or was silent. `began_ms`: when the exchange began.
    pub fn refused(&mut self, address: AddressKey, site: SiteId, began_ms: u64, now_ms: u64) -> Ban {
        let Some(breaker) = self.of.get_mut(&address) else { return Ban::None };
        if breaker.times > 0 {
            // What was under way when the ban began, or began before its end, says nothing new.
            if now_ms < breaker.until_ms || began_ms < breaker.until_ms {
                return Ban::Holds;
            }
            if breaker.times >= BAN_TRIALS_MAX {
                self.of.remove(&address);
                return Ban::GivenUp;
            }
        } else {
            breaker.refused.insert(site);
            if breaker.refused.len() < BAN_SITES {
                return Ban::None;
            }
        }
        breaker.times += 1;
        breaker.until_ms = now_ms.saturating_add(backoff_ms(breaker.times) * u64::from(self.permille) / 1_000);
        Ban::Begins { until_ms: breaker.until_ms, times: breaker.times }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u8) -> AddressKey {
        AddressKey::of(std::net::Ipv4Addr::new(192, 0, 2, number).into())
    }

    fn banned() -> (Breakers, u64) {
        let mut breakers = Breakers::new(1_000);
        breakers.answered(address(1));
        let bans: Vec<Ban> =
            (0..BAN_SITES as u32).map(|site| breakers.refused(address(1), SiteId(site), 90, 100)).collect();
        assert!(bans[..BAN_SITES - 1].iter().all(|ban| *ban == Ban::None));
        let Some(Ban::Begins { until_ms, times: 1 }) = bans.last() else { panic!("{bans:?}") };
        (breakers, *until_ms)
    }

    #[test]
    fn sites_of_one_address_that_refuse_in_a_row_are_one_ban() {
        let (mut breakers, until_ms) = banned();
        assert_eq!(until_ms, 30_100);
        assert_eq!(breakers.refused(address(1), SiteId(9), 95, 200), Ban::Holds);
        assert_eq!(breakers.refused(address(2), SiteId(9), 95, 200), Ban::None);
    }

    #[test]
    fn an_answer_ends_a_ban_and_refusals_between_answers_are_none() {
        let (mut breakers, _) = banned();
        assert!(breakers.answered(address(1)));
        assert!(!breakers.answered(address(1)));
        for site in 0..100 {
            assert_eq!(breakers.refused(address(1), SiteId(site), 5, 5), Ban::None);
            breakers.answered(address(1));
        }
        assert!((0..100).all(|_| breakers.refused(address(1), SiteId(1), 5, 5) == Ban::None), "one site is one site");
    }

    #[test]
    fn an_address_that_never_answered_bans_nobody() {
        let mut breakers = Breakers::new(1_000);
        assert!((0..100).all(|site| breakers.refused(address(1), SiteId(site), 5, 5) == Ban::None));
        assert!((0..100).all(|site| breakers.refused(AddressKey::UNKNOWN, SiteId(site), 5, 5) == Ban::None));
    }

    #[test]
    fn each_trial_that_is_refused_doubles_the_wait_until_the_address_is_given_up() {
        let (mut breakers, mut until_ms) = banned();
        let mut waits = Vec::new();
        for trial in 2..=BAN_TRIALS_MAX {
            let now_ms = until_ms + 10;
            assert_eq!(
                breakers.refused(address(1), SiteId(1), until_ms - 1, now_ms),
                Ban::Holds,
                "begun before its end"
            );
            match breakers.refused(address(1), SiteId(1), until_ms, now_ms) {
                Ban::Begins { until_ms: next_ms, times } => {
                    assert_eq!(times, trial);
                    waits.push((next_ms - now_ms) / 1_000);
                    until_ms = next_ms;
                }
                ban => panic!("{ban:?}"),
            }
        }
        assert_eq!(waits, [60, 120, 240, 480, 960]);
        assert_eq!(breakers.refused(address(1), SiteId(1), until_ms, until_ms), Ban::GivenUp);
        assert_eq!(breakers.refused(address(1), SiteId(1), until_ms, until_ms), Ban::None);
    }

    #[test]
    fn addresses_are_forgotten_before_there_are_too_many() {
        let mut breakers = Breakers::new(1_000);
        for number in 0..BREAKERS_MAX as u32 + 10 {
            breakers.answered(AddressKey::of(std::net::Ipv4Addr::from(number).into()));
        }
        assert!(breakers.of.len() <= BREAKERS_MAX);
    }
}
