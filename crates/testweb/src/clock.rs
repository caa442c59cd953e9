//! The time of the test web: a point in time, and a clock that may run at any speed from any moment.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds of one second and of one day.
const SECOND_MS: i64 = 1_000;
const DAY_MS: i64 = 86_400 * SECOND_MS;
/// Years 0001 to 9999: what HTTP and RFC 3339 can write.
const EARLIEST: Time = Time(-62_135_596_800_000);
const LATEST: Time = Time(253_402_300_799_999);

/// A moment, in milliseconds since 1970-01-01T00:00:00Z. Written as RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// 2020-01-01T00:00:00Z, when generated sites begin unless the plan says otherwise.
    pub const BEGIN: Time = Time(1_577_836_800_000);

    /// From milliseconds since 1970, held within the years that can be written.
    pub const fn from_ms(ms: i64) -> Time {
        if ms < EARLIEST.0 {
            EARLIEST
        } else if ms > LATEST.0 {
            LATEST
        } else {
            Time(ms)
        }
    }

    /// From seconds since 1970.
    pub const fn from_seconds(seconds: i64) -> Time {
        Time::from_ms(seconds.saturating_mul(SECOND_MS))
    }

    /// The machine's wall clock.
    pub fn from_system(at: SystemTime) -> Time {
        match at.duration_since(UNIX_EPOCH) {
            Ok(after) => Time::from_ms(i64::try_from(after.as_millis()).unwrap_or(i64::MAX)),
            Err(before) => Time::from_ms(-i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX)),
        }
    }

    /// Milliseconds since 1970.
    pub const fn ms(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(SECOND_MS)
    }

    /// This many milliseconds later.
    pub const fn plus_ms(self, ms: i64) -> Time {
        Time::from_ms(self.0.saturating_add(ms))
    }

    /// This many days later.
    pub const fn plus_days(self, days: i64) -> Time {
        self.plus_ms(days.saturating_mul(DAY_MS))
    }

    /// The form of `Date`, `Last-Modified` and `Expires`.
    pub fn http(self) -> String {
        httpdate::fmt_http_date(self.system())
    }

    /// Reads any of the three forms HTTP allows for a date.
    pub fn from_http(text: &str) -> Option<Time> {
        httpdate::parse_http_date(text.trim()).ok().map(Time::from_system)
    }

    /// The form of RSS (RFC 822 with a numeric zone).
    pub fn rss(self) -> String {
        self.http().replace("GMT", "+0000")
    }

    // httpdate writes only years from 1970 on; an earlier moment is written as 1970.
    fn system(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.0.max(0) as u64)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.0.div_euclid(DAY_MS));
        let ms = self.0.rem_euclid(DAY_MS);
        let (h, m, s) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}")?;
        match ms % 1_000 {
            0 => f.write_str("Z"),
            fraction => write!(f, ".{fraction:03}Z"),
        }
    }
}

/// The text is no time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoTime(String);

impl fmt::Display for NoTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no time; write 2020-01-31, 2020-01-31T10:00:00Z or 20200131100000", self.0)
    }
}

impl std::error::Error for NoTime {}

impl FromStr for Time {
    type Err = NoTime;

    /// `YYYY-MM-DD[THH:MM:SS[.fff]Z]` or 14 digits; UTC only.
    fn from_str(text: &str) -> Result<Time, NoTime> {
        parse(text).ok_or_else(|| NoTime(text.chars().take(40).collect()))
    }
}

fn parse(text: &str) -> Option<Time> {
    let bytes = text.as_bytes();
    let number = |range: std::ops::Range<usize>| -> Option<i64> {
        let digits = bytes.get(range)?;
        digits.iter().try_fold(0, |n, d| d.is_ascii_digit().then(|| n * 10 + i64::from(d - b'0')))
    };
    let (date, clock, fraction) = if bytes.len() == 14 && bytes.iter().all(u8::is_ascii_digit) {
        ([number(0..4)?, number(4..6)?, number(6..8)?], [number(8..10)?, number(10..12)?, number(12..14)?], 0)
    } else {
        if bytes.get(4) != Some(&b'-') || bytes.get(7) != Some(&b'-') {
            return None;
        }
        let date = [number(0..4)?, number(5..7)?, number(8..10)?];
        if bytes.len() == 10 {
            (date, [0, 0, 0], 0)
        } else {
            if bytes.get(10) != Some(&b'T') || bytes.get(13) != Some(&b':') || bytes.get(16) != Some(&b':') {
                return None;
            }
            let fraction = match text.get(19..)? {
                "Z" => 0,
                rest => {
                    let digits = rest.strip_prefix('.')?.strip_suffix('Z')?;
                    if digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|d| d.is_ascii_digit()) {
                        return None;
                    }
                    format!("{digits:0<3}")[..3].parse().ok()?
                }
            };
            (date, [number(11..13)?, number(14..16)?, number(17..19)?], fraction)
        }
    };
    let [year, month, day] = date;
    let [h, m, s] = clock;
    let days = days_of(year, month, day);
    if year < 1 || h > 23 || m > 59 || s > 59 || civil(days) != (year, month, day) {
        return None;
    }
    Some(Time::from_ms(days * DAY_MS + (h * 3600 + m * 60 + s) * SECOND_MS + fraction))
}

/// Days since 1970 of a date in the Gregorian calendar; years begin in March so that the leap day comes last.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let in_era = year.rem_euclid(400);
    let in_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719_468
}

fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let in_era = days.rem_euclid(146_097);
    let year = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * in_year + 2) / 153;
    let day = in_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A clock that shows `origin` when `since` has elapsed and then runs at `speed`. It never reads the machine's
/// clock: whoever asks says how much time has elapsed since the web began.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// What it shows at `since`.
    pub origin: Time,
    /// Virtual seconds per elapsed second; 0 stands still, 1 is natural.
    pub speed: f64,
    /// When it was last set, elapsed since the web began.
    #[serde(skip)]
    pub since: Duration,
}

impl Clock {
    /// A clock that shows `origin` at the beginning.
    pub fn new(origin: Time, speed: f64) -> Clock {
        Clock { origin, speed: lawful(speed), since: Duration::ZERO }
    }

    /// A clock that stands still.
    pub fn still(at: Time) -> Clock {
        Clock::new(at, 0.0)
    }

    /// What it shows.
    pub fn time(&self, elapsed: Duration) -> Time {
        let run_ms = elapsed.saturating_sub(self.since).as_secs_f64() * 1000.0 * self.speed;
        self.origin.plus_ms(run_ms as i64)
    }

    /// Sets the moment, the speed, or both; without a moment it goes on from what it shows.
    pub fn set(&mut self, elapsed: Duration, to: Option<Time>, speed: Option<f64>) {
        self.origin = to.unwrap_or_else(|| self.time(elapsed));
        self.speed = speed.map_or(self.speed, lawful);
        self.since = elapsed;
    }
}

// Time does not run backwards, and an endless speed shows no moment.
fn lawful(speed: f64) -> f64 {
    if speed.is_finite() { speed.clamp(0.0, 1e9) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        for text in ["2020-01-01T00:00:00Z", "1996-02-29T23:59:59Z", "1969-12-31T23:59:59.250Z", "9999-12-31T23:59:59Z"]
        {
            assert_eq!(text.parse::<Time>().unwrap().to_string(), text);
        }
        assert_eq!("20200101000000".parse::<Time>().unwrap(), Time::BEGIN);
        assert_eq!("2020-01-01".parse::<Time>().unwrap(), Time::BEGIN);
        for text in [
            "",
            "2020",
            "2020-02-30",
            "2019-02-29T00:00:00Z",
            "2020-01-01T24:00:00Z",
            "2020-01-01T00:00:00+01:00",
            "2020-01-01T00:00:00.Z",
            "日本語日本語日本",
        ] {
            assert!(text.parse::<Time>().is_err(), "{text}");
        }
    }

    #[test]
    fn http_dates_are_read_in_three_forms() {
        let time = Time::from_seconds(784_111_777);
        assert_eq!(time.http(), "Sun, 06 Nov 1994 08:49:37 GMT");
        for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            assert_eq!(Time::from_http(text), Some(time), "{text}");
        }
    }

    #[test]
    fn a_clock_goes_on_when_its_speed_changes() {
        let s = Duration::from_secs;
        let mut clock = Clock::new(Time::BEGIN, 60.0);
        assert_eq!(clock.time(s(10)), Time::BEGIN.plus_ms(600_000));
        clock.set(s(10), None, Some(0.0));
        assert_eq!(clock.time(s(99)), Time::BEGIN.plus_ms(600_000));
        clock.set(s(99), Some(Time::BEGIN), Some(f64::INFINITY));
        assert_eq!(clock.time(s(100)), Time::BEGIN.plus_ms(1000));
    }
}
