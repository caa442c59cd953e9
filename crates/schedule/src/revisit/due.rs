//! Why a page is looked at again, and what is believed of it at that moment: what the record of a visit says.

use serde::{Deserialize, Serialize};

use super::memory::{Memory, Moment};
use super::{Budget, Revisits};

/// Why a page is looked at, and what is believed of it. In whole numbers, so that it can be written down and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Due {
    /// Why.
    pub why: Reason,
    /// Changes a day that are believed in, in millionths.
    pub changes_per_day_millionths: u64,
    /// It is looked at every so many seconds, by the price of now.
    pub every_s: u32,
}

/// Why a page is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// By the price of the budget it was worth a look.
    Price,
    /// A sitemap or a feed says that it changed.
    Signal,
    /// Somebody wants every page looked at after so long.
    Watch,
    /// By chance, to see what beliefs are worth.
    Audit,
    /// It was not there the last time.
    Missing,
}

impl Reason {
    /// Its name in records.
    pub fn id(self) -> &'static str {
        match self {
            Reason::Price => "price",
            Reason::Signal => "signal",
            Reason::Watch => "watch",
            Reason::Audit => "audit",
            Reason::Missing => "missing",
        }
    }
}

impl Revisits {
    /// Why a page that is out is looked at.
    pub fn why(&self, memory: &Memory, now: Moment, chance: f32) -> Due {
        let days = match self.budget {
            Budget::EveryDays(days) => days,
            Budget::PerDay(_) | Budget::PerPage(_) => self.policy.interval_days(memory, self.price.get(), chance),
        };
        let why = match self.budget {
            _ if memory.failures() > 0 && !memory.is_unanswered() => Reason::Missing,
            Budget::EveryDays(_) => Reason::Watch,
            _ if memory.evidence() > 0.0 => Reason::Signal,
            _ if self.due(memory, chance) > now => Reason::Audit,
            _ => Reason::Price,
        };
        Due {
            why,
            changes_per_day_millionths: (f64::from(memory.belief().rate()).max(0.0) * 1e6).round() as u64,
            every_s: (f64::from(days.max(0.0)) * 86_400.0).round().min(f64::from(u32::MAX)) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revisit::hint::{Source, Trust};
    use crate::revisit::{Policy, Pool};

    #[test]
    fn the_reason_follows_from_what_is_remembered() {
        let day = |day: u32| Moment(day * 86_400);
        let mut revisits = Revisits::new(Policy::Harmonic, Budget::PerPage(1.0), day(0));
        let page = revisits.first(1.0, &Pool::default(), day(0), 0.5);
        let late = revisits.why(&page, day(5_000), 0.5);
        assert_eq!(late.why, Reason::Price);
        assert!(late.every_s > 0 && late.changes_per_day_millionths > 0);
        assert_eq!(revisits.why(&page, Moment(1), 0.5).why, Reason::Audit);
        let mut told = page;
        revisits.told(&mut told, Source::Sitemap, &Trust::default(), true, day(1), 0.5);
        assert_eq!(revisits.why(&told, day(1), 0.5).why, Reason::Signal);
        let mut missing = page;
        revisits.failed(&mut missing, day(1));
        assert_eq!(revisits.why(&missing, day(1), 0.5).why, Reason::Missing);
        let mut unanswered = page;
        revisits.unanswered(&mut unanswered, day(1));
        assert_eq!(revisits.why(&unanswered, day(5_000), 0.5).why, Reason::Price, "nobody said that it is not there");
        let every = Revisits::new(Policy::Harmonic, Budget::EveryDays(2.0), day(0));
        assert_eq!(
            (every.why(&page, day(1), 0.5).why, every.why(&page, day(1), 0.5).every_s),
            (Reason::Watch, 172_800)
        );
    }
}
