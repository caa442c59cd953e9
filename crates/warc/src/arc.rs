//! ARC record lines.
//!
//! ```text
//!   version 1   URL IP-address Archive-date Content-type Archive-length
//!   version 2   URL IP-address Archive-date Content-type Result-code Checksum Location Offset Filename Archive-length
//! ```
//! Real files hold URLs with spaces, media types with spaces, dates of 10 to 18 digits or none at all, and transposed fields, so a line
//! is read from both ends: the length stands last, the URL first, and between them an address and a date are looked for.

use crate::head::Version;

/// One record line, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pub version: Version,
    pub url: &'a [u8],
    pub address: &'a [u8],
    pub date: &'a [u8],
    pub mime: &'a [u8],
    pub length: &'a [u8],
    /// Result-code Checksum Location Offset Filename
    pub second: [&'a [u8]; 5],
    /// Not exactly of the form above.
    pub deviates: bool,
}

impl<'a> Line<'a> {
    /// Names as the version block of an ARC file spells them.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &'a [u8])> {
        let first =
            [("URL", self.url), ("IP-address", self.address), ("Archive-date", self.date), ("Content-type", self.mime)];
        let second = ["Result-code", "Checksum", "Location", "Offset", "Filename"].into_iter().zip(self.second);
        let second = second.filter(|_| self.version == Version::Arc2);
        first.into_iter().chain(second).chain([("Archive-length", self.length)])
    }
}

/// Reads a line without its line end. `None` when it cannot be a record line.
pub(crate) fn parse(line: &[u8]) -> Option<Line<'_>> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if !begins_url(line) {
        return None;
    }
    let tokens: Vec<&[u8]> = line.split(|&b| b == b' ').collect();
    let count = tokens.len();
    if count < 5 {
        return short(&tokens);
    }
    if let Some(found) = second_version(line, &tokens) {
        return Some(found);
    }
    let length = tokens[count - 1];
    // The date is the last token that looks like one, at least two before the end; where none does, the usual place counts.
    let date_at =
        (2..count - 1).rev().find(|&i| is_date(tokens[i])).filter(|&i| i + 1 < count - 1 && is_address(tokens[i - 1]));
    let transposed = (1..count - 2).rev().find(|&i| is_date(tokens[i]) && is_address(tokens[i + 1]));
    let (url_end, address, date, mime_from) = match (date_at, transposed) {
        (Some(i), _) => (i - 1, tokens[i - 1], tokens[i], i + 1),
        (None, Some(i)) => (i, tokens[i + 1], tokens[i], i + 2),
        (None, None) if is_length(length) => (count - 4, tokens[count - 4], tokens[count - 3], count - 2),
        _ => return None,
    };
    if url_end == 0 {
        return None;
    }
    // Without an address and a date to hold on to, anything that ends in a number would pass for a record line.
    // Five fields with a whole date are one all the same: some crawlers wrote a host's name for the address, or nothing.
    let plausible = date_at.is_some()
        || transposed.is_some()
        || (count == 5 && (is_address(address) && date.len() >= 8 || is_whole_date(date)));
    if !plausible {
        return None;
    }
    let join = |from: usize, to: usize| {
        let start = tokens[from].as_ptr() as usize - line.as_ptr() as usize;
        let end = tokens[to].as_ptr() as usize - line.as_ptr() as usize + tokens[to].len();
        &line[start..end]
    };
    let url = join(0, url_end - 1);
    let mime = if mime_from < count - 1 { join(mime_from, count - 2) } else { b"" };
    let deviates = count != 5 || date.len() != 14 || !is_length(length) || date_at.is_none();
    Some(Line { version: Version::Arc1, url, address, date, mime, length, second: [b""; 5], deviates })
}

fn second_version<'a>(line: &'a [u8], tokens: &[&'a [u8]]) -> Option<Line<'a>> {
    let count = tokens.len();
    if count < 10 {
        return None;
    }
    let tail = &tokens[count - 9..];
    let [address, date, mime, result, checksum, location, offset, filename, length] = tail.try_into().ok()?;
    let fits = is_date(date)
        && is_address(address)
        && is_length(length)
        && (is_length(result) || result == b"-")
        && is_length(offset);
    if !fits {
        return None;
    }
    let url_end = tokens[count - 10].as_ptr() as usize - line.as_ptr() as usize + tokens[count - 10].len();
    let second = [result, checksum, location, offset, filename];
    let deviates = count != 10 || date.len() != 14;
    Some(Line { version: Version::Arc2, url: &line[..url_end], address, date, mime, length, second, deviates })
}

/// Lines of some crawlers lack the media type, their `filedesc:` lines also others.
fn short<'a>(tokens: &[&'a [u8]]) -> Option<Line<'a>> {
    let (first, last) = (tokens.first()?, tokens.last()?);
    if let [url, address, date, length] = *tokens
        && !url.starts_with(b"filedesc:")
        && is_address(address)
        && is_whole_date(date)
        && is_length(length)
    {
        let second = [&b""[..]; 5];
        return Some(Line { version: Version::Arc1, url, address, date, mime: b"", length, second, deviates: true });
    }
    if !first.starts_with(b"filedesc:") || tokens.len() < 3 || !is_length(last) {
        return None;
    }
    // The last token is the length, also where it looks like a date.
    let date = tokens[1..tokens.len() - 1].iter().find(|t| is_date(t)).copied().unwrap_or(b"");
    Some(Line {
        version: Version::Arc1,
        url: first,
        address: b"0.0.0.0",
        date,
        mime: b"text/plain",
        length: last,
        second: [b""; 5],
        deviates: true,
    })
}

fn is_length(token: &[u8]) -> bool {
    !token.is_empty() && token.len() <= 19 && token.iter().all(u8::is_ascii_digit)
}

fn is_date(token: &[u8]) -> bool {
    (10..=24).contains(&token.len()) && token.iter().take(10).all(u8::is_ascii_digit)
}

fn is_whole_date(token: &[u8]) -> bool {
    (12..=18).contains(&token.len()) && token.iter().all(u8::is_ascii_digit)
}

fn is_address(token: &[u8]) -> bool {
    let v4 = token.iter().all(|b| b.is_ascii_digit() || *b == b'.') && token.contains(&b'.');
    let v6 = token.contains(&b':') && token.iter().all(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.'));
    v4 || v6 || matches!(token, b"None" | b"-" | b"0" | b"unknown")
}

/// A scheme with its colon: `http://…`, `dns:…`, `filedesc://…`.
fn begins_url(line: &[u8]) -> bool {
    let Some(colon) = line.iter().take(20).position(|&b| b == b':') else { return false };
    colon > 1
        && line[0].is_ascii_alphabetic()
        && line[..colon].iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}

/// Whether bytes found by searching begin a record of either format. The line may be cut off at the end of what was decoded.
pub(crate) fn begins_any_record(first: &[u8]) -> bool {
    if first.len() >= 5 && first[..5].eq_ignore_ascii_case(b"WARC/") {
        return true;
    }
    let line = &first[..memchr::memchr(b'\n', first).unwrap_or(first.len())];
    let cut = line.len() == first.len() && first.len() >= crate::limits::PROBE_BYTES;
    parse(line).is_some() || (cut && begins_url(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url_date_length(line: &str) -> Option<(String, String, String)> {
        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        parse(line.as_bytes()).map(|l| (text(l.url), text(l.date), text(l.length)))
    }

    #[test]
    fn lines_of_the_field_are_taken_apart() {
        for (line, url, date, length) in [
            (
                "http://a.example/ 192.0.2.1 20140216050221 text/html 1591",
                "http://a.example/",
                "20140216050221",
                "1591",
            ),
            (
                "http://a.example/?q=one two  three 192.0.2.1 20140216050221 text/html 7",
                "http://a.example/?q=one two  three",
                "20140216050221",
                "7",
            ),
            (
                "http://a.example/ 192.0.2.1 2014021605022100 text/html; charset=utf-8 9",
                "http://a.example/",
                "2014021605022100",
                "9",
            ),
            (
                "http://a.example/x 20031219215023 192.0.2.1 text/plain 285",
                "http://a.example/x",
                "20031219215023",
                "285",
            ),
            (
                "http://a.example/ 192.0.2.1 a0d1fdddf3165d04 text/html 30",
                "http://a.example/",
                "a0d1fdddf3165d04",
                "30",
            ),
            ("http://a.example/ 192.0.2.1 19961104142103 30", "http://a.example/", "19961104142103", "30"),
            ("http://a.example/ a.example 19961104142103 text/html 30", "http://a.example/", "19961104142103", "30"),
            ("http://a.example/  19961104142103 text/html 30", "http://a.example/", "19961104142103", "30"),
            ("dns:a.example 192.0.2.1 20080430204825 text/dns 56", "dns:a.example", "20080430204825", "56"),
            ("http://a.example/ 192.0.2.1 20140401000000 text/html -1", "http://a.example/", "20140401000000", "-1"),
            (
                "http://a.example/i 192.0.2.1 19961104142103 text/html 200 fac0 - 209 F.arc 202",
                "http://a.example/i",
                "19961104142103",
                "202",
            ),
        ] {
            assert_eq!(url_date_length(line), Some((url.into(), date.into(), length.into())), "{line}");
        }
        for line in [
            "",
            "HTTP/1.1 200 OK",
            "Date: Sun, 16 Feb 2014 05:02:20 GMT",
            "http://a.example/ b c d e",
            "see http://a.example/ 1 2 3",
            "http://a.example/ 19961104142103 30",
            "http://a.example/ 192.0.2.1 text/html 30",
        ] {
            assert_eq!(url_date_length(line), None, "{line}");
        }
        assert_eq!(
            parse(b"http://a.example/i 192.0.2.1 19961104142103 text/html 200 f - 209 F.arc 202").unwrap().version,
            Version::Arc2
        );
    }
}
