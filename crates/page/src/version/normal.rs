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
    match (may_match(&plain) && may_hold_stamp(plain.as_bytes()), pattern()) {
        (true, Some(pattern)) => match pattern.replace_all(&plain, LEFT_OUT) {
            Cow::Owned(changed) => Cow::Owned(changed),
            Cow::Borrowed(_) => plain,
        },
        _ => plain,
    }
}

fn may_match(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit()) || text.contains(" ago") || text.contains("now")
}

/// Bytes at which a stamp can be told.
const TELLING: [bool; 256] = {
    let mut table = [false; 256];
    let telling = b":-0123456789gGwWdD";
    let mut at = 0;
    while at < telling.len() {
        table[telling[at] as usize] = true;
        at += 1;
    }
    table
};

/// What comes behind a number that counts something.
const COUNTED: &[&[u8]] = &[
    b"view",
    b"like",
    b"comment",
    b"follower",
    b"replies",
    b"review",
    b"rating",
    b"download",
    b"visitor",
    b"vote",
    b"hit",
    b"online",
    b"watching",
];

/// Whether the pattern may be met at all. It says yes too often and never no where it is: most lines with a number hold no stamp, and one look
/// at their bytes costs a tenth of what the pattern does.
fn may_hold_stamp(text: &[u8]) -> bool {
    let space = |byte: &u8| matches!(byte, b'\t'..=b'\r' | b' ');
    let behind = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        &rest[rest.iter().position(|byte| !space(byte)).unwrap_or(rest.len())..]
    };
    let counted = |rest: &[u8]| {
        COUNTED.iter().any(|word| rest.get(..word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word)))
    };
    let number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b',');
    let (mut dashes, mut at) = (0, 0);
    while let Some(step) = text.get(at..).and_then(|rest| rest.iter().position(|byte| TELLING[*byte as usize])) {
        at += step;
        let before = &text[..at];
        match text[at] {
            // A time of day; `views: 12`.
            b':' => {
                let digit = behind(at + 1).first().is_some_and(u8::is_ascii_digit);
                let last = before.iter().rev().find(|byte| !space(byte));
                if digit && last.is_some_and(|last| last.is_ascii_digit() || last.eq_ignore_ascii_case(&b's')) {
                    return true;
                }
            }
            // A name of 32 digits in five groups.
            b'-' => {
                dashes += 1;
                if dashes == 4 {
                    return true;
                }
            }
            // `12k views`, `in 3.5 ms`.
            b'0'..=b'9' => {
                while text.get(at + 1).is_some_and(number) {
                    at += 1;
                }
                let rest = behind(at + 1);
                let unit = rest.first().map(u8::to_ascii_lowercase);
                if matches!(unit, Some(b's' | b'm')) || counted(rest) {
                    return true;
                }
                if unit == Some(b'k') && counted(behind(text.len() - rest.len() + 1)) {
                    return true;
                }
            }
            // `ago`, `just now`.
            b'g' | b'G' => {
                let around = at.checked_sub(1).and_then(|from| text.get(from..at + 2));
                if around.is_some_and(|around| around.eq_ignore_ascii_case(b"ago")) {
                    return true;
                }
            }
            b'w' | b'W' if at.checked_sub(2).is_some_and(|from| before[from..].eq_ignore_ascii_case(b"no")) => {
                return true;
            }
            // `session id`, `ray-id`, `trace id`.
            b'd' | b'D' if before.last().is_some_and(|last| last.eq_ignore_ascii_case(&b'i')) => {
                let name = &before[..at - 1];
                let name = match name {
                    [name @ .., last] if space(last) || *last == b'-' => name,
                    name => name,
                };
                if name.last().is_some_and(|last| matches!(last.to_ascii_lowercase(), b'y' | b't' | b'n' | b'e')) {
                    return true;
                }
            }
            _ => {}
        }
        at += 1;
    }
    false
}

/// Spaces of every kind become one, and signs without width go: they differ between servers that send the same text.
fn spaces(text: &str) -> Cow<'_, str> {
    let odd = |c: char| !c.is_ascii() && (c.is_whitespace() || is_zero_width(c));
    if text.is_ascii() || !text.contains(odd) {
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

/// How many [`words`] there are.
pub fn count_words(text: &str) -> usize {
    if !text.is_ascii() {
        return words(text).count();
    }
    let bytes = text.as_bytes();
    let is_space = |byte: u8| byte == b' ' || byte.wrapping_sub(b'\t') < 5;
    // A word begins where a space was before. Few enough are summed up at a time for a byte to hold it, so that many fit side by side.
    let begins = |pair: (&u8, &u8)| u8::from(is_space(*pair.0) & !is_space(*pair.1));
    let first = bytes.first().is_some_and(|byte| !is_space(*byte));
    let after = bytes.get(1..).unwrap_or_default();
    let some = |(before, after): (&[u8], &[u8])| before.iter().zip(after).map(begins).fold(0, u8::wrapping_add);
    usize::from(first) + bytes.chunks(240).zip(after.chunks(240)).map(|both| usize::from(some(both))).sum::<usize>()
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

    /// The quick look never hides what the pattern would find.
    #[test]
    fn a_quick_look_passes_over_nothing_that_the_pattern_meets() {
        let thorough = |text: &str| match may_match(text) {
            true => pattern().unwrap().replace_all(text, LEFT_OUT).into_owned(),
            false => text.to_owned(),
        };
        let parts = [
            "12",
            "3.5",
            "1,234.",
            "7",
            "2024-05-06",
            "12:30",
            ":",
            ": ",
            " ",
            "  ",
            "-",
            "k",
            "M",
            "Views",
            "likes",
            "REPLIES",
            "hits",
            "online",
            "a few",
            "an",
            "days",
            "hour",
            "ago",
            "AGO",
            "just now",
            "moments ago",
            "Mon, ",
            "5 Jan 2024",
            "March 3rd, 2024",
            "T",
            " at ",
            "pm",
            "UTC",
            "0a1b2c3d-1111-2222-3333-0123456789ab",
            "Ray",
            "session",
            "trace",
            "ID",
            "-id",
            "#",
            "x9",
            "page",
            "generated in ",
            "served (",
            "ms",
            "sec",
            "s",
            "milliseconds",
            ",",
            ".",
            "now",
            "word",
            "\t",
            "01.02.2024",
            "é",
            "n",
            "d",
        ];
        let (mut state, mut met) = (7_u64, 0);
        let mut draw = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % bound
        };
        for _ in 0..60_000 {
            let text: String = (0..1 + draw(9)).map(|_| parts[draw(parts.len())]).collect();
            let wanted = thorough(&text);
            met += usize::from(wanted != text);
            assert_eq!(line(&text), wanted, "{text:?}");
        }
        assert!(met > 2_000, "{met}");
        assert!(!may_hold_stamp(b"Paragraph 3 of page 17 in version 1: the quick brown fox jumps over the lazy dog"));
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
        // Whether all of it is ASCII or not, the same is counted.
        for text in
            ["", " ", "one", " one  two\tthree\u{b}four\x1cfive\n", "ein Wort 漢字ab の", "caf\u{e9} \u{a0}au lait"]
        {
            assert_eq!(count_words(text), words(text).count(), "{text:?}");
            let long = text.repeat(300);
            assert_eq!(count_words(&long), words(&long).count(), "{text:?}");
        }
    }
}
