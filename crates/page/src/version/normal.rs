//! Text and addresses without what differs from fetch to fetch of an unchanged page: stamps of the clock, counters, names of
//! sessions. What a person would call a change stays, so a day without a time of day stays, and so do checksums.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// The version of the rules by which pages are read to be compared. What was read by other rules is read again before it is
/// compared, so that a new version is no change of any page.
pub const RULES: u16 = 1;

/// What stands for anything that was left out.
const LEFT_OUT: &str = "\u{a4}";

// ASCII alone: with it the automaton stays small and looks at each byte once.
const PATTERN: &str = r"(?ix-u)
  \b(?: \d+ | an? | one | a\ few | several ) \s+ (?: second | sec | minute | min | hour | hr | day | week | month | year )s? \s+ ago\b
| \b(?: just\ now | moments?\ ago )\b
| (?: \b(?: mon|tue|wed|thu|fri|sat|sun )[a-z]*,? \s+ )?
  (?: \b\d{1,2}\.? [\s-]+ (?: jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec )[a-z]*\.?,? [\s-]+ \d{4}
    | \b(?: jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec )[a-z]*\.? \s+ \d{1,2}(?:st|nd|rd|th)?,? \s+ \d{4}
    | \b\d{4}-\d{2}-\d{2}
    | \b\d{1,2}[./]\d{1,2}[./]\d{2,4} )
  (?: ,?\s+ (?: at\s+|-\s+ )? | t ) \d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)? (?: \s?[ap]\.?m\b\.? )?
  (?: \s?(?: z | utc | gmt | ces?t | [ecmp][sd]t )\b )? (?: \s?[+-]\d{2}:?\d{2}\b )?
| \b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)? (?: \s?[ap]\.?m\b\.? )? (?: \s?(?: utc | gmt )\b )?
| \b\d[\d.,]* \s? [km]? \s+ (?: views? | likes? | comments? | followers? | replies | reviews? | ratings? | downloads? | visitors? | votes? | hits? | online | watching )\b
| \b(?: views | likes | comments | followers | replies | reviews | visitors | hits | downloads ) \s*:\s* \d[\d.,]* \s?[km]?\b
| \b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b
| \b(?: ray | request | session | incident | trace | correlation ) [\s-]? id \s*[:\#]?\s* [\w.-]*\d[\w.-]*
| \b(?: generated | rendered | created | loaded | served | executed | processed | query | page )\b [a-z\ ,:()-]{0,24} \d+(?:[.,]\d+)? \s* (?: ms | milliseconds | s | secs? | seconds )\b
";

fn pattern() -> Option<&'static Regex> {
    static STAMPS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(PATTERN).ok());
    STAMPS.as_ref()
}

/// A line of text as it is compared.
pub fn line(text: &str) -> Cow<'_, str> {
    let plain = spaces(text);
    let may_match = plain.bytes().any(|byte| byte.is_ascii_digit()) || plain.contains(" ago") || plain.contains("now");
    match (may_match, pattern()) {
        (true, Some(pattern)) => match pattern.replace_all(&plain, LEFT_OUT) {
            Cow::Owned(changed) => Cow::Owned(changed),
            Cow::Borrowed(_) => plain,
        },
        _ => plain,
    }
}

/// Spaces of every kind become one, and signs without width go: they differ between servers that send the same text.
fn spaces(text: &str) -> Cow<'_, str> {
    let odd = |c: char| !c.is_ascii() && (c.is_whitespace() || is_zero_width(c));
    if !text.contains(odd) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !is_zero_width(*c)) {
        match c.is_whitespace() {
            true if out.is_empty() || out.ends_with(' ') => {}
            true => out.push(' '),
            false => out.push(c),
        }
    }
    out.truncate(out.trim_end().len());
    Cow::Owned(out)
}

fn is_zero_width(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
}

/// The words of a text: what stands between spaces, and each sign of a script that has none.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().flat_map(|word| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            let end = match is_unspaced(first) {
                true => first.len_utf8(),
                false => rest.find(is_unspaced).unwrap_or(rest.len()),
            };
            let (head, tail) = rest.split_at(end);
            rest = tail;
            Some(head)
        })
    })
}

/// Scripts that are written without spaces: Thai, Lao, Khmer, Kana, Han.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Parameters that name a visitor or a moment and not a page.
const PASSING: &[&str] = &[
    "_",
    "_ga",
    "_gl",
    "authenticity_token",
    "cachebust",
    "cachebuster",
    "cb",
    "csrf",
    "csrf_token",
    "dclid",
    "fbclid",
    "gclid",
    "igshid",
    "jsessionid",
    "mc_cid",
    "mc_eid",
    "msclkid",
    "nocache",
    "nonce",
    "phpsessid",
    "rand",
    "random",
    "rnd",
    "sessionid",
    "session_id",
    "sid",
    "timestamp",
    "token",
    "ts",
    "wbraid",
    "yclid",
    "gbraid",
    "xsrf",
];

/// An address as it is compared: without what names a visitor or a moment.
pub fn address(url: &str) -> Cow<'_, str> {
    let session = url.find(";jsessionid=");
    let Some(query) = url.find('?') else {
        return session.map_or(Cow::Borrowed(url), |at| Cow::Borrowed(&url[..at]));
    };
    let path = &url[..session.filter(|at| *at < query).unwrap_or(query)];
    let kept: Vec<&str> = url[query + 1..].split('&').filter(|part| !passes(part)).collect();
    match kept.is_empty() {
        true => Cow::Owned(path.to_owned()),
        false => Cow::Owned(format!("{path}?{}", kept.join("&"))),
    }
}

fn passes(part: &str) -> bool {
    let (name, value) = part.split_once('=').unwrap_or((part, ""));
    let name = name.to_ascii_lowercase();
    name.is_empty() || name.starts_with("utm_") || PASSING.contains(&name.as_str()) || is_opaque(value)
}

/// Is it a long name that nobody chose? Such a value is made anew for each answer more often than it names a page.
pub fn is_opaque(value: &str) -> bool {
    let bytes = value.as_bytes();
    let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = bytes.iter().filter(|b| b.is_ascii_alphabetic()).count();
    let lower = bytes.iter().filter(|b| b.is_ascii_lowercase()).count();
    let one_case = lower == 0 || lower == letters;
    let signs = |b: &&u8| matches!(b, b'-' | b'/' | b'.' | b'_' | b'%' | b'=' | b'+');
    match bytes.len() {
        // Letters of one case and digits alone, as machines count.
        16..28 => one_case && digits >= 4 && letters >= 1 && digits + letters == bytes.len(),
        28..=4096 => {
            let between = bytes.iter().filter(signs).count();
            digits >= 4 && letters >= 1 && digits + letters + between == bytes.len() && between <= bytes.len() / 8
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_and_counters_are_left_out_and_days_stay() {
        for (text, wanted) in [
            ("posted 2 hours ago by Ann", "posted ¤ by Ann"),
            ("Generated 2026-11-16 10:22:33 UTC.", "Generated ¤."),
            ("as of Mon, 16 Nov 2026 10:22:33 GMT", "as of ¤"),
            ("as of November 16, 2026 at 10:22 pm", "as of ¤"),
            ("Time: 09:15:07", "Time: ¤"),
            ("1,234 views and 12 comments", "¤ and ¤"),
            ("Visitors: 10.233", "¤"),
            ("Page generated in 0.123 seconds", "¤"),
            ("Ray ID: 8f2b7c6d5e4f3a21", "¤"),
            ("550e8400-e29b-41d4-a716-446655440000", "¤"),
            ("Last updated: 25 April 2026", "Last updated: 25 April 2026"),
            ("Open 9:00 to 17:00", "Open 9:00 to 17:00"),
            ("Version 1.2.3, 100 points", "Version 1.2.3, 100 points"),
            ("within 30 days", "within 30 days"),
            ("a\u{a0}b\u{200b}c", "a bc"),
        ] {
            assert_eq!(line(text), wanted, "{text}");
        }
    }

    #[test]
    fn addresses_lose_visitors_and_moments() {
        for (url, wanted) in [
            ("http://a.test/b?utm_source=x&c=1&_=99", "http://a.test/b?c=1"),
            ("http://a.test/b?sid=1", "http://a.test/b"),
            ("http://a.test/b;jsessionid=12?c", "http://a.test/b?c"),
            ("http://a.test/watch?v=dQw4w9WgXcQ", "http://a.test/watch?v=dQw4w9WgXcQ"),
            ("http://a.test/?x=ab12cd34ef56ab12cd34ef56ab12cd34", "http://a.test/"),
            (
                "http://a.test/?x=a-title-of-2026-in-many-words-1234",
                "http://a.test/?x=a-title-of-2026-in-many-words-1234",
            ),
        ] {
            assert_eq!(address(url), wanted);
        }
    }

    #[test]
    fn scripts_without_spaces_have_a_word_for_each_sign() {
        assert_eq!(words("ein Wort 漢字ab の").collect::<Vec<_>>(), ["ein", "Wort", "漢", "字", "ab", "の"]);
    }
}
