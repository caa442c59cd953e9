//! Times as archives write them: 1 to 14 digits, and as HTTP writes them. Pure.

use skep_warc::date;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The moment that 1 to 14 digits mean, with what is missing filled up from `pattern` and brought to a day that exists. More digits
/// are fractions of a second, as some indexes have them, and not looked at.
fn filled(digits: &str, pattern: &str) -> Option<i64> {
    if digits.is_empty() || digits.len() > 17 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digits = &digits[..digits.len().min(14)];
    let whole = format!("{digits}{}", &pattern[digits.len()..]);
    let number = |from: usize, to: usize| whole[from..to].parse::<u32>().unwrap_or(0);
    let (year, month) = (number(0, 4), number(4, 6).clamp(1, 12));
    let day = number(6, 8).clamp(1, days(year, month));
    let (hour, minute, second) = (number(8, 10).min(23), number(10, 12).min(59), number(12, 14).min(59));
    let text = format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}");
    date::parse_ms(text.as_bytes())
}

fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The first moment of what the digits name, in milliseconds since 1970.
pub fn earliest(digits: &str) -> Option<i64> {
    filled(digits, "10000101000000")
}

/// The last moment of what the digits name.
pub fn latest(digits: &str) -> Option<i64> {
    filled(digits, "99991231235959").map(|ms| ms + 999)
}

/// The 14 digits of a moment.
pub fn digits(ms: i64) -> String {
    date::timestamp14(ms)
}

/// As HTTP headers have it; before 1970 as if it were 1970, which HTTP cannot say otherwise.
pub fn http(ms: i64) -> String {
    let since = Duration::from_secs(ms.div_euclid(1000).max(0) as u64);
    // Ten thousand years are more than the format has room for.
    let moment = UNIX_EPOCH + since.min(Duration::from_secs(253_402_300_799));
    httpdate::fmt_http_date(moment)
}

/// Reads an HTTP date in one of its three forms.
pub fn of_http(text: &str) -> Option<i64> {
    let moment: SystemTime = httpdate::parse_http_date(text.trim()).ok()?;
    moment.duration_since(UNIX_EPOCH).ok().and_then(|since| i64::try_from(since.as_millis()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_name_a_span() {
        for (typed, from, to) in [
            ("2014", "20140101000000", "20141231235959"),
            ("201402", "20140201000000", "20140228235959"),
            ("201602", "20160201000000", "20160229235959"),
            ("20140126", "20140126000000", "20140126235959"),
            ("20140126200624", "20140126200624", "20140126200624"),
            ("20140126200624123", "20140126200624", "20140126200624"),
            ("20141399", "20141231000000", "20141231235959"),
            ("2", "20000101000000", "29991231235959"),
        ] {
            assert_eq!(
                (earliest(typed).map(digits), latest(typed).map(digits)),
                (Some(from.into()), Some(to.into())),
                "{typed}"
            );
        }
        for wrong in ["", "20x", "201401262006241234", "-1"] {
            assert_eq!(earliest(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn http_dates_come_back() {
        let ms = of_http("Sun, 26 Jan 2014 20:08:04 GMT").unwrap();
        assert_eq!(digits(ms), "20140126200804");
        assert_eq!(http(ms), "Sun, 26 Jan 2014 20:08:04 GMT");
        assert_eq!(of_http("Sun, 26 Janu 2014"), None);
        assert_eq!(http(-5000), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(http(i64::MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
    }
}
