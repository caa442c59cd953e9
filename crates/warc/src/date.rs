//! Dates of records: RFC 3339 as the standard asks, and the forms that archives in the field hold instead.

/// Milliseconds since 1970 for a date that consists of digits in the order year, month, day, hour, minute, second, fraction, with or
/// without separators: `2008-04-30T20:48:25Z`, `2008-04-30T20:48:25.123456789Z`, `20080430204825`, `2008-04`, `2008`.
///
/// Missing parts are the earliest ones. Digits beyond a second in a form without separators are ignored, as the indexers of the field
/// do. `None` when no such date can be read.
pub fn parse_ms(text: &[u8]) -> Option<i64> {
    let (parts, fraction_ms) =
        if text.iter().take(8).all(u8::is_ascii_digit) && text.len() >= 8 { compact(text)? } else { separated(text)? };
    let [year, month, day, hour, minute, second] = parts;
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second.min(59);
    Some(seconds * 1000 + fraction_ms)
}

/// Whether a date has the exact form WARC 1.0 and 1.1 ask for: UTC, `Z`, full to the second (1.1: from the year to nanoseconds).
pub fn is_w3c_utc(text: &[u8], fractions_and_reduced: bool) -> bool {
    let exact = text.len() == 20 && pattern(text, b"dddd-dd-ddTdd:dd:ddZ");
    if exact {
        return parse_ms(text).is_some();
    }
    if !fractions_and_reduced {
        return false;
    }
    let reduced: [&[u8]; 4] = [b"dddd", b"dddd-dd", b"dddd-dd-dd", b"dddd-dd-ddTdd:ddZ"];
    if reduced.iter().any(|p| p.len() == text.len() && pattern(text, p)) {
        return parse_ms(text).is_some();
    }
    let Some((whole, fraction)) = text.split_at_checked(19) else { return false };
    pattern(whole, b"dddd-dd-ddTdd:dd:dd")
        && fraction.len() >= 3
        && fraction.len() <= 11
        && fraction[0] == b'.'
        && fraction.to_ascii_uppercase().ends_with(b"Z")
        && fraction[1..fraction.len() - 1].iter().all(u8::is_ascii_digit)
        && parse_ms(text).is_some()
}

/// The 14 digits that indexes use.
pub fn timestamp14(ms: i64) -> String {
    let (seconds, days) = (ms.div_euclid(1000).rem_euclid(86_400), ms.div_euclid(86_400_000));
    let (year, month, day) = date_of(days);
    format!("{year:04}{month:02}{day:02}{:02}{:02}{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// RFC 3339 in UTC; milliseconds only where they are not zero.
pub fn rfc3339(ms: i64) -> String {
    let (seconds, days) = (ms.div_euclid(1000).rem_euclid(86_400), ms.div_euclid(86_400_000));
    let (year, month, day) = date_of(days);
    if !(0..=9999).contains(&year) {
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        return format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z");
    }
    // Every record has a date: digit by digit is ten times as quick as a format.
    let mut text = String::with_capacity(24);
    let mut put = |number: i64, width: u32, behind: char| {
        for place in (0..width).rev() {
            text.push(char::from(b'0' + (number / 10i64.pow(place) % 10) as u8));
        }
        text.push(behind);
    };
    put(year, 4, '-');
    put(month, 2, '-');
    put(day, 2, 'T');
    put(seconds / 3600, 2, ':');
    put(seconds / 60 % 60, 2, ':');
    match ms.rem_euclid(1000) {
        0 => put(seconds % 60, 2, 'Z'),
        fraction => {
            put(seconds % 60, 2, '.');
            put(fraction, 3, 'Z');
        }
    }
    text
}

fn pattern(text: &[u8], pattern: &[u8]) -> bool {
    text.len() == pattern.len()
        && text
            .iter()
            .zip(pattern)
            .all(|(t, p)| if *p == b'd' { t.is_ascii_digit() } else { t.eq_ignore_ascii_case(p) })
}

fn compact(text: &[u8]) -> Option<([i64; 6], i64)> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count().min(14);
    let number = |from: usize, to: usize, default: i64| {
        if digits >= to { text[from..to].iter().fold(0, |n, b| n * 10 + i64::from(b - b'0')) } else { default }
    };
    let day = number(6, 8, 1);
    // Writers that had only a month wrote zeros for the day.
    let parts =
        [number(0, 4, 0), number(4, 6, 1).max(1), day.max(1), number(8, 10, 0), number(10, 12, 0), number(12, 14, 0)];
    Some((parts, 0))
}

fn separated(text: &[u8]) -> Option<([i64; 6], i64)> {
    let mut parts = [0, 1, 1, 0, 0, 0];
    let mut fraction_ms = 0;
    let mut numbers = text.split(|b| !b.is_ascii_digit());
    for (i, part) in parts.iter_mut().enumerate() {
        match numbers.next() {
            Some(digits) if (1..=4).contains(&digits.len()) => {
                *part = digits.iter().fold(0, |n, b| n * 10 + i64::from(b - b'0'));
            }
            None | Some(b"") if i > 0 => return Some((parts, 0)),
            _ => return None,
        }
    }
    if let Some(digits) = numbers.next() {
        let scale = [100, 10, 1];
        fraction_ms = digits.iter().zip(scale).map(|(b, s)| i64::from(b - b'0') * s).sum();
    }
    Some((parts, fraction_ms))
}

fn leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Civil date to days, counting years from March so that the leap day comes last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let y = year - i64::from(month <= 2);
    let era = y.div_euclid(400);
    let of_era = y.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let m = (5 * of_year + 2) / 153;
    let month = (m + 2) % 12 + 1;
    (year + era * 400 + i64::from(month <= 2), month, of_year - (153 * m + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_in_all_forms_of_the_field() {
        let at = |t: &str| parse_ms(t.as_bytes()).map(timestamp14);
        for (text, expected) in [
            ("2008-04-30T20:48:25Z", "20080430204825"),
            ("2008-04-30T20:48:25", "20080430204825"),
            ("2008-04-30T20:48:25.999999999Z", "20080430204825"),
            ("20080430204825", "20080430204825"),
            ("2000082305410049", "20000823054100"),
            ("20160211000000jpg", "20160211000000"),
            ("2016", "20160101000000"),
            ("2016-02", "20160201000000"),
            ("2000-02-29T00:00:00Z", "20000229000000"),
            ("1969-12-31T23:59:59Z", "19691231235959"),
        ] {
            assert_eq!(at(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "yesterday", "2001-02-29T00:00:00Z", "2016-13-01T00:00:00Z", "a0d1fdddf3165d04", "99999-01-01"]
        {
            assert_eq!(at(text), None, "{text}");
        }
        assert_eq!(parse_ms(b"2008-04-30T20:48:25.125Z").unwrap() % 1000, 125);
        assert_eq!(rfc3339(parse_ms(b"2008-04-30T20:48:25.125Z").unwrap()), "2008-04-30T20:48:25.125Z");
    }

    #[test]
    fn every_day_of_four_centuries_survives_the_round_trip() {
        for day in -141_000..146_097i64 {
            let ms = day * 86_400_000 + 3_723_000;
            assert_eq!(parse_ms(timestamp14(ms).as_bytes()), Some(ms));
        }
    }

    #[test]
    fn the_form_the_standard_asks_for() {
        assert!(is_w3c_utc(b"2008-04-30T20:48:25Z", false));
        assert!(!is_w3c_utc(b"2008-04-30T20:48:25.1Z", false));
        assert!(is_w3c_utc(b"2008-04-30T20:48:25.123456789Z", true));
        assert!(is_w3c_utc(b"2008-04", true));
        assert!(!is_w3c_utc(b"2008-04-30T20:48:25+01:00", true));
        assert!(!is_w3c_utc(b"20080430204825", true));
    }
}
