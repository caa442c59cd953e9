//! How long a site is left alone.
//!
//! ```text
//!   gap = max(500 ms, Crawl-delay, 5 × last answer)      at most 60 s unless Crawl-delay says more;
//!                                                        counted from the end of the last answer
//! ```
//! Schedule and fetchers ask the same function, so that a site feels no difference between bundles and within one.

use serde::{Deserialize, Serialize};

use crate::limits;

/// How a host is paced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pace {
    /// By the rule.
    #[default]
    Polite,
    /// By the rule, and never less than this many milliseconds.
    Fixed(u32),
    /// Exactly this many milliseconds, whatever robots.txt and slowness say: own hosts only.
    Own(u32),
    /// No gap, and several bundles at once: own hosts only.
    None,
}

impl Pace {
    /// The pace that an operator may have: only own hosts can be hurried.
    pub fn allowed(asked: Pace, own: bool) -> Pace {
        match (asked, own) {
            (Pace::Fixed(ms), true) => Pace::Own(ms),
            (Pace::Own(ms), false) => Pace::Fixed(ms),
            (Pace::None, false) => Pace::Polite,
            (asked, _) => asked,
        }
    }
}

/// Milliseconds from the end of the last answer to the next request of the same site.
pub fn gap_ms(pace: &Pace, crawl_delay_ms: Option<u64>, last_answer_ms: u64) -> u64 {
    let slow = last_answer_ms.saturating_mul(limits::ANSWER_TIMES).min(limits::SITE_GAP_MS_MAX);
    let asked = crawl_delay_ms.unwrap_or(0).min(limits::CRAWL_DELAY_MS_MAX);
    let polite = limits::SITE_GAP_MS_MIN.max(slow).max(asked);
    match *pace {
        Pace::Polite => polite,
        Pace::Fixed(ms) => polite.max(u64::from(ms)),
        Pace::Own(ms) => u64::from(ms),
        Pace::None => 0,
    }
}

/// Refusals or failures in a row, and the wait that follows from them. A success takes one step back, so that a server that
/// recovers is not at once treated as if nothing had been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    level: u8,
}

impl Backoff {
    /// One more; how long to stay away now.
    pub fn failed(&mut self) -> u64 {
        self.level = self.level.saturating_add(1);
        backoff_ms(self.level)
    }

    /// It went well.
    pub fn succeeded(&mut self) {
        self.level = self.level.saturating_sub(1);
    }

    /// How many steps up it stands.
    pub fn level(&self) -> u8 {
        self.level
    }
}

/// The wait after so many in a row: 30 s, 1 min, 2 min … 1 h.
pub fn backoff_ms(in_a_row: u8) -> u64 {
    let doublings = u32::from(in_a_row.saturating_sub(1)).min(32);
    (limits::BACKOFF_MS_MIN << doublings).min(limits::BACKOFF_MS_MAX)
}

/// How long `Retry-After` asks us to wait: seconds, or a date in any of the three forms of HTTP. A time that is over, or zero,
/// says no more than no time at all: 30 s. Nothing for text that is neither.
pub fn retry_after(value: &[u8], wall_now_ms: i64) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?.trim();
    let wait_ms = match seconds(text) {
        Some(seconds) => seconds.saturating_mul(1_000),
        None => {
            let until_ms = date_ms(text, wall_now_ms)?;
            u64::try_from(until_ms.saturating_sub(wall_now_ms)).unwrap_or(0)
        }
    };
    Some(match wait_ms {
        0 => limits::BACKOFF_MS_MIN,
        ms => ms.min(limits::PARK_MS_MAX),
    })
}

/// Digits, or digits with a fraction, rounded up. More digits than a number holds are simply very many seconds.
fn seconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if whole.is_empty() || !(whole.bytes().chain(fraction.bytes())).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let whole = whole.parse::<u64>().unwrap_or(u64::MAX);
    Some(whole.saturating_add(u64::from(fraction.bytes().any(|b| b != b'0'))))
}

/// Milliseconds since 1970 of an HTTP date:
///
/// ```text
///   Sun, 06 Nov 1994 08:49:37 GMT        IMF-fixdate
///   Sunday, 06-Nov-94 08:49:37 GMT       RFC 850
///   Sun Nov  6 08:49:37 1994             asctime
/// ```
/// The name of the day is not looked at: where it contradicts the date, the date is meant.
fn date_ms(text: &str, wall_now_ms: i64) -> Option<i64> {
    let words: Vec<&str> = text.split([' ', '-', ',']).filter(|word| !word.is_empty()).take(8).collect();
    let (day, month, year, clock) = match *words.as_slice() {
        [_, day, month, year, clock, "GMT" | "UTC"] => (day, month, year, clock),
        [_, month, day, clock, year] => (day, month, year, clock),
        _ => return None,
    };
    let day = number(day, 1, 31)?;
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))? as i64 + 1;
    let year = match (year.len(), number(year, 0, 9_999)?) {
        (2, short) => century(short, wall_now_ms),
        (_, year) => year,
    };
    let mut clock = clock.splitn(3, ':');
    let (hour, minute) = (number(clock.next()?, 0, 23)?, number(clock.next()?, 0, 59)?);
    let second = number(clock.next()?, 0, 60)?;
    Some((days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second) * 1_000)
}

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn number(text: &str, least: i64, most: i64) -> Option<i64> {
    if text.is_empty() || text.len() > 4 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|n| (least..=most).contains(n))
}

/// A year of two digits is the one that is not more than 50 years ahead (RFC 9110, 5.6.7).
fn century(short: i64, wall_now_ms: i64) -> i64 {
    let this_year = 1970 + wall_now_ms.div_euclid(31_556_952_000);
    let year = this_year - this_year.rem_euclid(100) + short;
    if year > this_year + 50 { year - 100 } else { year }
}

/// Days from 1970-01-01 in the Gregorian calendar; years begin in March so that the leap day comes last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gap_is_the_largest_of_three() {
        let polite = |delay, answer| gap_ms(&Pace::Polite, delay, answer);
        assert_eq!(polite(None, 0), 500);
        assert_eq!(polite(None, 99), 500);
        assert_eq!(polite(None, 101), 505);
        assert_eq!(polite(Some(2_000), 101), 2_000);
        assert_eq!(polite(Some(2_000), 1_000), 5_000);
        assert_eq!(polite(Some(100), 0), 500);
    }

    #[test]
    fn slowness_asks_for_a_minute_at_most_and_robots_for_more() {
        assert_eq!(gap_ms(&Pace::Polite, None, 12_001), 60_000);
        assert_eq!(gap_ms(&Pace::Polite, None, u64::MAX), 60_000);
        assert_eq!(gap_ms(&Pace::Polite, Some(90_000), 300_000), 90_000);
        assert_eq!(gap_ms(&Pace::Polite, Some(u64::MAX), 0), 86_400_000);
    }

    #[test]
    fn only_own_hosts_can_be_hurried() {
        assert_eq!(gap_ms(&Pace::allowed(Pace::Fixed(100), false), None, 0), 500);
        assert_eq!(gap_ms(&Pace::allowed(Pace::Own(100), false), None, 0), 500);
        assert_eq!(gap_ms(&Pace::allowed(Pace::None, false), Some(1_000), 0), 1_000);
        assert_eq!(gap_ms(&Pace::allowed(Pace::Fixed(100), true), Some(1_000), 900), 100);
        assert_eq!(gap_ms(&Pace::allowed(Pace::None, true), Some(1_000), 900), 0);
        assert_eq!(gap_ms(&Pace::allowed(Pace::Fixed(3_000), false), None, 10), 3_000);
        assert_eq!(gap_ms(&Pace::allowed(Pace::Fixed(3_000), false), Some(4_000), 10), 4_000);
    }

    #[test]
    fn backing_off_doubles_from_half_a_minute_to_an_hour_and_comes_back_slowly() {
        let mut backoff = Backoff::default();
        let waits: Vec<u64> = (0..9).map(|_| backoff.failed() / 1_000).collect();
        assert_eq!(waits, [30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600]);
        assert_eq!(backoff_ms(u8::MAX), 3_600_000);
        backoff.succeeded();
        assert_eq!(backoff.level(), 8);
        (0..20).for_each(|_| backoff.succeeded());
        assert_eq!(backoff.failed(), 30_000);
    }

    /// 1994-11-06 08:49:07.
    const NOW: i64 = 784_111_747_000;

    #[test]
    fn retry_after_is_read_in_all_its_forms() {
        for (value, wait_ms) in [
            ("120", Some(120_000)),
            (" 7 ", Some(7_000)),
            ("1.5", Some(2_000)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(30_000)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(90_000)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", Some(90_000)),
            ("Sun Nov  6 08:50:37 1994", Some(90_000)),
            ("Mon, 07 Nov 1994 08:49:07 GMT", Some(86_400_000)),
            ("soon", None),
            ("", None),
            ("-5", None),
            ("12 minutes", None),
            ("Sun, 31 Foo 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 25:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49:37 +0200", None),
        ] {
            assert_eq!(retry_after(value.as_bytes(), NOW), wait_ms, "{value}");
        }
        assert_eq!(retry_after(b"\xff\xfe", NOW), None);
    }

    #[test]
    fn a_time_that_is_over_is_no_time_and_a_year_is_a_week() {
        for past in
            ["0", "0.0", "Sun, 06 Nov 1994 08:49:07 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", "Sun Nov  6 08:49:06 1994"]
        {
            assert_eq!(retry_after(past.as_bytes(), NOW), Some(30_000), "{past}");
        }
        for absurd in ["31536000", "99999999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT", "604801"] {
            assert_eq!(retry_after(absurd.as_bytes(), NOW), Some(604_800_000), "{absurd}");
        }
    }

    #[test]
    fn two_digits_of_a_year_mean_the_near_one() {
        let y2026 = 1_780_000_000_000;
        assert_eq!(retry_after(b"Sunday, 06-Nov-94 08:50:37 GMT", y2026), Some(30_000)); // 1994, long over
        assert_eq!(retry_after(b"Sunday, 06-Nov-44 08:50:37 GMT", y2026), Some(604_800_000)); // 2044
    }

    #[test]
    fn leap_days_count() {
        assert_eq!(days_since_1970(1970, 1, 1), 0);
        assert_eq!(days_since_1970(2000, 3, 1) - days_since_1970(2000, 2, 28), 2);
        assert_eq!(days_since_1970(2100, 3, 1) - days_since_1970(2100, 2, 28), 1);
        assert_eq!(days_since_1970(2026, 11, 16), 20_773);
    }
}
