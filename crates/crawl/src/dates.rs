//! Dates as sitemaps and feeds write them: W3C forms with any offset, and those of mails.

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

const DAY_MS: i64 = 86_400_000;
const MINUTE_MS: i64 = 60_000;

/// A moment, as far as it was told: of a date without a time, the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The earliest that is meant, in milliseconds since 1970.
    pub from_ms: i64,
    /// The latest.
    pub to_ms: i64,
}

/// What a date means; nothing for what is no date.
pub fn parse(text: &str) -> Option<Told> {
    let text = text.trim();
    if !text.is_ascii() {
        return None;
    }
    let (from_ms, span_ms) = match text.as_bytes().get(4) {
        Some(b'-') => w3c(text)?,
        _ => mail(text)?,
    };
    Some(Told { from_ms, to_ms: from_ms + span_ms })
}

/// `2026-05-06`, `2026-05-06T07:08Z`, `2026-05-06T07:08:09.12+02:00`. Since when, and how long that lasts.
fn w3c(text: &str) -> Option<(i64, i64)> {
    let Some((day, time)) = text.split_once(['T', 't', ' ']) else {
        let from_ms = skep_warc::date::parse_ms(text.as_bytes()).filter(|_| text.len() == 10)?;
        return Some((from_ms, DAY_MS));
    };
    let end = time.find(['Z', 'z', '+', '-', ' ']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(end);
    let clock = clock.split('.').next().unwrap_or(clock);
    let (clock, span_ms) = to_the_second(clock);
    let ms = skep_warc::date::parse_ms(format!("{day}T{clock}Z").as_bytes())?;
    Some((ms - offset_ms(zone.trim())?, span_ms))
}

/// `Wed, 06 May 2026 07:08:09 +0200`; the weekday and the seconds may be missing.
fn mail(text: &str) -> Option<(i64, i64)> {
    let text = text.split_once(',').map_or(text, |(_, rest)| rest);
    let mut words = text.split_ascii_whitespace();
    let (day, month, year) = (words.next()?, words.next()?, words.next()?);
    let (clock, zone) = (words.next()?, words.next().unwrap_or("GMT"));
    let month = MONTHS.iter().position(|name| month.to_ascii_lowercase().starts_with(name))? + 1;
    let year = if year.len() == 2 { format!("20{year}") } else { year.to_owned() };
    let (clock, span_ms) = to_the_second(clock);
    let ms = skep_warc::date::parse_ms(format!("{year}-{month:02}-{day:0>2}T{clock}Z").as_bytes())?;
    Some((ms - offset_ms(zone)?, span_ms))
}

fn to_the_second(clock: &str) -> (String, i64) {
    if clock.len() == 5 { (format!("{clock}:00"), MINUTE_MS) } else { (clock.to_owned(), 0) }
}

fn offset_ms(zone: &str) -> Option<i64> {
    let sign = match zone.bytes().next() {
        None | Some(b'Z' | b'z') => return Some(0),
        Some(b'+') => 1,
        Some(b'-') => -1,
        // Names of zones in mails: the three that are well defined.
        Some(_) => return ["GMT", "UT", "UTC"].iter().any(|name| zone.eq_ignore_ascii_case(name)).then_some(0),
    };
    let digits: String = zone[1..].chars().filter(|c| *c != ':').collect();
    if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i64 = digits.parse().ok()?;
    Some(sign * ((number / 100) * 60 + number % 100) * 60_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use skep_warc::date::rfc3339;

    #[test]
    fn dates_of_sitemaps_and_feeds() {
        for (written, meant, span_ms) in [
            ("2026-05-06", "2026-05-06T00:00:00Z", DAY_MS),
            ("2026-05-06T07:08Z", "2026-05-06T07:08:00Z", MINUTE_MS),
            (" 2026-05-06T07:08:09+02:00 ", "2026-05-06T05:08:09Z", 0),
            ("2026-05-06T07:08:09.123-0130", "2026-05-06T08:38:09Z", 0),
            ("Wed, 06 May 2026 07:08:09 +0200", "2026-05-06T05:08:09Z", 0),
            ("6 May 2026 07:08 GMT", "2026-05-06T07:08:00Z", MINUTE_MS),
        ] {
            let told = parse(written).unwrap_or_else(|| panic!("{written} is a date"));
            assert_eq!((rfc3339(told.from_ms).as_str(), told.to_ms - told.from_ms), (meant, span_ms), "{written}");
        }
        for wrong in
            ["", "yesterday", "2026-13-01", "2026-05-06T25:00Z", "06 Mai 20 26", "2026-05-06T07:08:09+2", "ü26-"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
