//! Lines of robots.txt: `field: value # comment`, and what people write instead.

use crate::limits;

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    Sitemap,
    Other,
}

/// Beginnings of field names in lower case, misspellings included that are frequent enough for Google to read them.
const NAMES: &[(&[u8], Field)] = &[
    (b"user-agent", Field::UserAgent),
    (b"useragent", Field::UserAgent),
    (b"user agent", Field::UserAgent),
    (b"allow", Field::Allow),
    (b"disallow", Field::Disallow),
    (b"dissallow", Field::Disallow),
    (b"dissalow", Field::Disallow),
    (b"disalow", Field::Disallow),
    (b"diasllow", Field::Disallow),
    (b"disallaw", Field::Disallow),
    (b"crawl-delay", Field::CrawlDelay),
    (b"crawldelay", Field::CrawlDelay),
    (b"crawl delay", Field::CrawlDelay),
    (b"sitemap", Field::Sitemap),
    (b"site-map", Field::Sitemap),
];

/// Lines with their numbers, ended by LF, CR or CRLF; a byte order mark is skipped, an endless line cut.
pub(super) fn split(file: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let mut rest = Some(file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file));
    let mut number = 0;
    std::iter::from_fn(move || {
        let now = rest?;
        number += 1;
        let line = match memchr::memchr2(b'\n', b'\r', now) {
            Some(end) => {
                let width = if now[end..].starts_with(b"\r\n") { 2 } else { 1 };
                rest = Some(&now[end + width..]);
                &now[..end]
            }
            None => {
                rest = None;
                now
            }
        };
        Some((number, &line[..line.len().min(limits::ROBOTS_LINE_BYTES_MAX)]))
    })
}

/// Field, value and the line without comment; `None` when the line says nothing.
pub(super) fn read(line: &[u8]) -> Option<(Field, &[u8], &[u8])> {
    let line = line[..memchr::memchr(b'#', line).unwrap_or(line.len())].trim_ascii();
    let (name, value) = match memchr::memchr(b':', line) {
        Some(colon) => (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii()),
        None => {
            // `disallow /path`: forgiven when there are two words and no more.
            let space = line.iter().position(u8::is_ascii_whitespace)?;
            let value = line[space..].trim_ascii();
            if value.iter().any(u8::is_ascii_whitespace) {
                return None;
            }
            (&line[..space], value)
        }
    };
    if name.is_empty() {
        return None;
    }
    let starts =
        |beginning: &[u8]| name.len() >= beginning.len() && name[..beginning.len()].eq_ignore_ascii_case(beginning);
    let field = NAMES.iter().find(|(beginning, _)| starts(beginning)).map_or(Field::Other, |&(_, field)| field);
    Some((field, value, line))
}

/// The agent that a `User-agent` line names, in lower case: `*`, or the product token at the beginning of the value.
/// `None` when there is no token, as in `User-agent: 007`.
pub(super) fn agent(value: &[u8]) -> Option<Box<str>> {
    if let [b'*', rest @ ..] = value
        && rest.first().is_none_or(u8::is_ascii_whitespace)
    {
        return Some("*".into());
    }
    let end = value.iter().position(|b| !b.is_ascii_alphabetic() && !matches!(b, b'-' | b'_')).unwrap_or(value.len());
    let token = std::str::from_utf8(&value[..end]).ok()?;
    (!token.is_empty()).then(|| token.to_ascii_lowercase().into())
}

/// A number of seconds, whole or with a fraction, whatever follows it.
pub(super) fn seconds(value: &[u8]) -> Option<f64> {
    let end = value.iter().position(|b| !b.is_ascii_digit() && *b != b'.').unwrap_or(value.len());
    let seconds: f64 = std::str::from_utf8(&value[..end]).ok()?.parse().ok()?;
    seconds.is_finite().then(|| seconds.min(limits::ROBOTS_CRAWL_DELAY_SECONDS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_in_three_ways() {
        let lines: Vec<_> = split(b"\xef\xbb\xbfa\nb\rc\r\nd\n\r\ne").collect();
        let wanted: [(u32, &[u8]); 6] = [(1, b"a"), (2, b"b"), (3, b"c"), (4, b"d"), (5, b""), (6, b"e")];
        assert_eq!(lines, wanted);
    }

    #[test]
    fn an_endless_line_is_cut() {
        let file = [b"disallow: /".to_vec(), vec![b'a'; 100_000], b"\nallow: /".to_vec()].concat();
        let lines: Vec<_> = split(&file).map(|(_, line)| line.len()).collect();
        assert_eq!(lines, [limits::ROBOTS_LINE_BYTES_MAX, 8]);
    }

    #[test]
    fn fields_in_every_spelling_that_counts() {
        for (line, field, value) in [
            ("User-Agent: a", Field::UserAgent, "a"),
            ("  USERAGENT :a  # b: c", Field::UserAgent, "a"),
            ("user agent: a", Field::UserAgent, "a"),
            ("user-agent a", Field::UserAgent, "a"),
            ("disallow\t/x", Field::Disallow, "/x"),
            ("Disalow: /x y", Field::Disallow, "/x y"),
            ("dissallow:", Field::Disallow, ""),
            ("Crawl-Delay: 5", Field::CrawlDelay, "5"),
            ("sitemap: http://a/b", Field::Sitemap, "http://a/b"),
            ("noindex: /", Field::Other, "/"),
        ] {
            let (got, rest, _) = read(line.as_bytes()).expect(line);
            assert_eq!((got, rest), (field, value.as_bytes()), "{line}");
        }
        for line in ["", "# comment", "disallow", ": /", "a line of prose", "<html>"] {
            assert!(read(line.as_bytes()).is_none(), "{line}");
        }
    }

    #[test]
    fn agents_are_product_tokens() {
        for (value, wanted) in [
            ("*", Some("*")),
            ("* # all", Some("*")),
            ("FooBot/1.2", Some("foobot")),
            ("Foo Bar", Some("foo")),
            ("foo_bar-baz", Some("foo_bar-baz")),
            ("007", None),
            ("*bot", None),
            ("", None),
        ] {
            assert_eq!(agent(value.as_bytes()).as_deref(), wanted, "{value}");
        }
    }

    #[test]
    fn delays_are_numbers_of_seconds() {
        for (value, wanted) in [
            ("5", Some(5.0)),
            ("0.5", Some(0.5)),
            ("10s", Some(10.0)),
            ("", None),
            ("-1", None),
            ("x", None),
            ("1.2.3", None),
        ] {
            assert_eq!(seconds(value.as_bytes()), wanted, "{value}");
        }
        assert_eq!(seconds(b"99999999999999999999"), Some(limits::ROBOTS_CRAWL_DELAY_SECONDS_MAX));
    }
}
