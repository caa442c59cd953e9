//! Times as people type them.

use crate::failure::{Failure, Result};
use skep_warc::date;

/// The earliest moment that a typed time can mean: `2019`, `2019-06`, `2019-06-01T12:00:00Z`, `20190601120000`.
pub fn earliest(text: &str) -> Result<i64> {
    let digits_only = text.bytes().all(|b| b.is_ascii_digit());
    // Four and six digits are a year and a month; the lenient reader of archives would take six for something else.
    let padded = match text.len() {
        4 if digits_only => format!("{text}0101000000"),
        6 if digits_only => format!("{text}01000000"),
        _ => text.to_owned(),
    };
    date::parse_ms(padded.as_bytes()).ok_or_else(|| {
        Failure::new(format!("{text:?} is not a time"))
            .hint("a time looks like 2019, 2019-06, 2019-06-01T12:00:00Z or 20190601120000")
    })
}

/// The latest moment that it can mean: `2019` is the end of 2019.
pub fn latest(text: &str) -> Result<i64> {
    let start = earliest(text)?;
    let digits: usize = text.bytes().filter(u8::is_ascii_digit).count();
    let second = 1000;
    Ok(match digits {
        0..=4 => next_month(start, 12) - 1,
        5..=6 => next_month(start, 1) - 1,
        7..=8 => start + 86_400 * second - 1,
        9..=10 => start + 3_600 * second - 1,
        11..=12 => start + 60 * second - 1,
        _ => start - start.rem_euclid(second) + second - 1,
    })
}

fn next_month(start: i64, months: u32) -> i64 {
    let digits = date::timestamp14(start);
    let number = |from: usize, to: usize| digits[from..to].parse::<u32>().unwrap_or(0);
    let (year, month) = (number(0, 4), number(4, 6) - 1 + months);
    let text = format!("{:04}{:02}01000000", year + month / 12, month % 12 + 1);
    date::parse_ms(text.as_bytes()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_time_is_a_span() {
        let span = |t: &str| (date::rfc3339(earliest(t).unwrap()), date::rfc3339(latest(t).unwrap()));
        for (typed, from, to) in [
            ("2019", "2019-01-01T00:00:00Z", "2019-12-31T23:59:59.999Z"),
            ("201906", "2019-06-01T00:00:00Z", "2019-06-30T23:59:59.999Z"),
            ("2019-12", "2019-12-01T00:00:00Z", "2019-12-31T23:59:59.999Z"),
            ("2020-02-29", "2020-02-29T00:00:00Z", "2020-02-29T23:59:59.999Z"),
            ("20190601120000", "2019-06-01T12:00:00Z", "2019-06-01T12:00:00.999Z"),
        ] {
            assert_eq!(span(typed), (from.to_owned(), to.to_owned()), "{typed}");
        }
        assert!(earliest("yesterday").is_err());
    }
}
