//! Sizes, times and counts as people type them: `10GB`, `2h`, `500`, and `none` to lift a bound.

use crate::failure::{Failure, Result};

/// What lifts a bound that an earlier command or a file has set.
const LIFTED: &str = "none";

/// A bound as typed: `None` inside lifts it.
pub fn bound<T>(typed: Option<&str>, read: impl Fn(&str) -> Result<T>) -> Result<Option<Option<T>>> {
    match typed {
        None => Ok(None),
        Some(LIFTED) => Ok(Some(None)),
        Some(text) => Ok(Some(Some(read(text)?))),
    }
}

/// A number of things.
pub fn count(text: &str) -> Result<u64> {
    let digits: String = text.chars().filter(|c| !matches!(c, '_' | ',')).collect();
    digits.parse().map_err(|_| {
        Failure::new(format!("{text:?} is not a number"))
            .hint("a number looks like 500 or 10_000; `none` lifts the bound")
    })
}

/// Bytes: a number and a unit of 1000 (kB, MB, GB, TB) or of 1024 (KiB, MiB, GiB, TiB).
pub fn bytes(text: &str) -> Result<u64> {
    let wrong = || {
        Failure::new(format!("{text:?} is not a size"))
            .hint("a size looks like 500MB, 10GB or 1.5TiB; `none` lifts the bound")
    };
    let (number, unit) = split(text);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return Err(wrong()),
    };
    scaled(number, factor).ok_or_else(wrong)
}

/// Milliseconds: numbers with units, one after the other: `90s`, `2h`, `1h30m`, `7d`.
pub fn duration_ms(text: &str) -> Result<u64> {
    let wrong = || {
        Failure::new(format!("{text:?} is not a duration"))
            .hint("a duration looks like 90s, 30m, 2h, 1h30m or 7d; `none` lifts the bound")
    };
    let mut rest = text.trim();
    let mut sum: u64 = 0;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let (number, after) = split(rest);
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let factor: u64 = match after[..end].trim() {
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(wrong()),
        };
        sum = scaled(number, factor).and_then(|ms| sum.checked_add(ms)).ok_or_else(wrong)?;
        rest = &after[end..];
    }
    Ok(sum)
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

fn scaled(number: &str, factor: u64) -> Option<u64> {
    match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(factor),
        Err(_) => {
            let product = number.parse::<f64>().ok()? * factor as f64;
            (product.is_finite() && product < u64::MAX as f64).then_some(product as u64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_typed() {
        for (typed, meant) in [
            ("0", 0),
            ("512", 512),
            ("10GB", 10_000_000_000),
            ("10 gb", 10_000_000_000),
            ("1.5kB", 1_500),
            ("2GiB", 2 << 30),
            ("7T", 7_000_000_000_000),
        ] {
            assert_eq!(bytes(typed).unwrap(), meant, "{typed}");
        }
        for wrong in ["", "GB", "ten", "10XB", "-1", "1e9", "1.2.3", "99999999999TB", "10GB more"] {
            assert!(bytes(wrong).unwrap_err().hint.is_some(), "{wrong}");
        }
    }

    #[test]
    fn durations_as_typed() {
        for (typed, meant) in [
            ("90s", 90_000),
            ("2h", 7_200_000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
            ("250ms", 250),
            ("0.5h", 1_800_000),
        ] {
            assert_eq!(duration_ms(typed).unwrap(), meant, "{typed}");
        }
        for wrong in ["", "2", "h", "2 weeks", "1h30", "-1h", "99999999999999999d"] {
            assert!(duration_ms(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_bound_can_be_lifted() {
        assert_eq!(bound(None, count).unwrap(), None);
        assert_eq!(bound(Some("none"), count).unwrap(), Some(None));
        assert_eq!(bound(Some("10_000"), count).unwrap(), Some(Some(10_000)));
        assert!(bound(Some("many"), count).is_err());
    }
}
