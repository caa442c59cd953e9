//! How a crawl is watched, as the `[watch]` section of its file says it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use skep_schedule::revisit::{Budget, Policy};

use crate::limits::{EVERY_MS_MIN, TAG_BYTES_MAX, TAGS_MAX, VISITS_PER_PAGE_DEFAULT};

/// How a crawl is looked at again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Watch {
    /// Every page after so long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_ms: Option<u64>,
    /// So many visits in all, new pages included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Rate>,
    /// Who is visited next, where a budget is shared out.
    pub policy: Policy,
    /// What it is filed under.
    pub tags: Vec<String>,
}

impl Watch {
    /// What is wrong with it, if anything.
    pub fn check(&self) -> Result<(), String> {
        if self.every_ms.is_some() && self.budget.is_some() {
            return Err("a watch has an interval for every page or a budget for all, not both".into());
        }
        if self.every_ms.is_some_and(|ms| ms < EVERY_MS_MIN) {
            return Err(format!("every page after less than {} s; that is no watching any more", EVERY_MS_MIN / 1_000));
        }
        if self.budget.is_some_and(|rate| rate.visits == 0) {
            return Err("a budget of no visits watches nothing".into());
        }
        let plain = |tag: &String| {
            !tag.is_empty() && tag.len() <= TAG_BYTES_MAX && !tag.chars().any(|c| c.is_control() || c == ',')
        };
        if self.tags.len() > TAGS_MAX || !self.tags.iter().all(plain) {
            return Err(format!(
                "up to {TAGS_MAX} tags of up to {TAG_BYTES_MAX} bytes each, without commas, can be given to a watch"
            ));
        }
        Ok(())
    }

    /// As the schedule wants it.
    pub fn budget(&self) -> Budget {
        match (self.every_ms, self.budget) {
            (Some(ms), _) => Budget::EveryDays((ms as f64 / DAY_MS) as f32),
            (None, Some(rate)) => Budget::PerDay(rate.per_day()),
            (None, None) => Budget::PerPage(VISITS_PER_PAGE_DEFAULT),
        }
    }
}

const DAY_MS: f64 = 86_400_000.0;

/// Visits in a time: `5/s`, `100000/day`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// So many.
    pub visits: u64,
    /// In so many seconds.
    pub seconds: u32,
}

const UNITS: [(&str, u32); 4] = [("s", 1), ("min", 60), ("h", 3_600), ("day", 86_400)];

impl Rate {
    /// Visits a day.
    pub fn per_day(self) -> f64 {
        self.visits as f64 * 86_400.0 / f64::from(self.seconds)
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Rate, String> {
        let read = || {
            let (visits, unit) = text.split_once('/')?;
            let digits: String = visits.trim().chars().filter(|c| !matches!(c, '_' | ',')).collect();
            let unit = match unit.trim() {
                "d" => "day",
                "m" => "min",
                unit => unit,
            };
            let (_, seconds) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
            Some(Rate { visits: digits.parse().ok()?, seconds })
        };
        read().ok_or_else(|| format!("`{text}` is no budget: visits in a time, such as 5/s, 200/h or 100000/day"))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS.into_iter().find(|(_, seconds)| *seconds == self.seconds).map_or("s", |(name, _)| name);
        write!(f, "{}/{unit}", self.visits)
    }
}

impl Serialize for Rate {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_as_typed() {
        for (typed, visits, seconds, written) in
            [("5/s", 5, 1, "5/s"), ("100_000/day", 100_000, 86_400, "100000/day"), ("3/d", 3, 86_400, "3/day")]
        {
            let rate: Rate = typed.parse().unwrap();
            assert_eq!((rate, rate.to_string().as_str()), (Rate { visits, seconds }, written));
        }
        assert_eq!("60/min".parse::<Rate>().unwrap().per_day(), 86_400.0);
        for wrong in ["", "5", "5/", "/s", "-1/s", "5/fortnight", "1.5/s", "99999999999999999999/s"] {
            assert!(wrong.parse::<Rate>().unwrap_err().contains("5/s"), "{wrong}");
        }
    }

    #[test]
    fn what_cannot_be_watched_is_told() {
        let rate = Rate { visits: 1, seconds: 1 };
        for wrong in [
            Watch { every_ms: Some(5_000), budget: Some(rate), ..Watch::default() },
            Watch { every_ms: Some(10), ..Watch::default() },
            Watch { budget: Some(Rate { visits: 0, seconds: 1 }), ..Watch::default() },
            Watch { tags: vec!["a,b".into()], ..Watch::default() },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
        assert!(Watch::default().check().is_ok());
        assert_eq!(Watch { every_ms: Some(43_200_000), ..Watch::default() }.budget(), Budget::EveryDays(0.5));
    }
}
