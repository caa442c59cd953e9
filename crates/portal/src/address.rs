//! What a replay address asks for. Pure.
//!
//! ```text
//!  /web/20140126200624/http://example.org/a?b      a page in its frame        /web/2014/…: the capture nearest to the end of 2014
//!  /web/20140126200624mp_/http://example.org/a?b   the page itself            if_ the same; im_ js_ cs_ and others: its parts
//!  /web/20140126200624pk_/http://example.org/a?b   without its scripts, for choosing parts of it
//!  /web/20140126200624id_/http://example.org/a?b   as it was fetched
//!  /web/http://example.org/a?b                     a TimeGate; without Accept-Datetime the newest
//!  /web/*/http://example.org/a?b                   which captures there are
//!  /web/timemap/link/http://example.org/a?b        the same for programs: link, json, cdxj
//! ```
//! The first part names the collection; `web` is everything. Whoever pasted `http:/example.org` or left the scheme away is
//! understood.

use crate::limits::URL_BYTES_MAX;
use crate::time;

/// What is wanted of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// One capture.
    At(At),
    /// Whichever fits the header Accept-Datetime.
    Gate(String),
    /// All captures, for a person.
    All(String),
    /// All captures, for a program.
    TimeMap {
        /// `link`, `json`, `cdxj`.
        format: String,
        /// Which page of it, from 1 on; 0 where none was named.
        page: usize,
        /// Of which URL.
        url: String,
    },
}

impl Asked {
    /// The URL that is asked about.
    pub fn url(&self) -> &str {
        match self {
            Asked::At(at) => &at.url,
            Asked::Gate(url) | Asked::All(url) | Asked::TimeMap { url, .. } => url,
        }
    }
}

/// One capture of a URL in one form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// The digits as given.
    pub digits: String,
    /// The moment they mean.
    pub time_ms: i64,
    /// `id_`, `mp_`, …; empty for the frame.
    pub modifier: String,
    /// The URL.
    pub url: String,
}

/// Why an address means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// There is no URL in it.
    NoUrl,
    /// The URL is longer than any that is kept.
    TooLong,
    /// The time is none.
    Time,
}

impl Wrong {
    /// For the person who typed it.
    pub fn told(self) -> &'static str {
        match self {
            Wrong::NoUrl => "The address names no URL. It looks like /web/2014/http://example.org/",
            Wrong::TooLong => "The URL is longer than any that is kept here.",
            Wrong::Time => "The time has 1 to 14 digits, as in /web/20140126200624/http://example.org/",
        }
    }
}

/// Reads what stands behind `/web/`, with the query.
pub fn parse(rest: &str) -> Result<Asked, Wrong> {
    if let Some(map) = rest.strip_prefix("timemap/") {
        return time_map(map);
    }
    let (first, behind) = rest.split_once('/').unwrap_or((rest, ""));
    if first == "*" {
        return Ok(Asked::All(url(behind)?));
    }
    if let Some(given) = first.strip_suffix('*').filter(|digits| is_digits(digits)) {
        let _whole_years_are_shown_anyway = given;
        return Ok(Asked::All(url(behind)?));
    }
    match split_modifier(first) {
        Some((digits, modifier)) => {
            let url = url(behind)?;
            let time_ms = time::latest(digits).ok_or(Wrong::Time)?;
            // A whole time is meant to the second, a part of one up to its end.
            let time_ms = if digits.len() >= 14 { time_ms - 999 } else { time_ms };
            Ok(Asked::At(At { digits: digits.to_owned(), time_ms, modifier: modifier.to_owned(), url }))
        }
        None => Ok(Asked::Gate(url(rest)?)),
    }
}

fn time_map(map: &str) -> Result<Asked, Wrong> {
    let (format, behind) = map.split_once('/').unwrap_or((map, ""));
    if !matches!(format, "link" | "json" | "cdxj") {
        // `timemap/URL`, as the protocol's own examples have it.
        return Ok(Asked::TimeMap { format: "link".to_owned(), page: 0, url: url(map)? });
    }
    let (page, behind) = match behind.split_once('/') {
        Some((page, behind)) if is_digits(page) && page.len() <= 9 => (page.parse().unwrap_or(0), behind),
        _ => (0, behind),
    };
    Ok(Asked::TimeMap { format: format.to_owned(), page, url: url(behind)? })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// `20140126id_` → `20140126`, `id_`. `None` for what is no time: then it is the beginning of a URL.
fn split_modifier(first: &str) -> Option<(&str, &str)> {
    let end = first.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(first.len());
    let (digits, modifier) = first.split_at(end);
    let known = modifier.is_empty()
        || modifier.len() <= 8
            && modifier.ends_with('_')
            && modifier[..modifier.len() - 1].bytes().all(|b| b.is_ascii_lowercase());
    // A bare modifier (`id_/http://…`) means now.
    match (digits, known) {
        (_, false) => None,
        ("", true) if modifier.is_empty() => None,
        ("", true) => Some(("9999", modifier)),
        (digits, true) if digits.len() <= 17 => Some((digits, modifier)),
        _ => None,
    }
}

/// The URL in an address, as it was meant.
pub fn url(text: &str) -> Result<String, Wrong> {
    let text = text.trim_matches(|c: char| c.is_whitespace());
    if text.len() > URL_BYTES_MAX {
        return Err(Wrong::TooLong);
    }
    // Browsers and proxies write some of an address's characters as escapes, also the colon of the scheme.
    let unescaped = match text.get(..16).unwrap_or(text).to_ascii_lowercase() {
        start if start.starts_with("http%3a") || start.starts_with("https%3a") => {
            percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
        }
        _ => text.to_owned(),
    };
    let lower = unescaped.get(..8).unwrap_or(&unescaped).to_ascii_lowercase();
    for scheme in ["https:", "http:"] {
        if lower.starts_with(scheme) {
            let behind = unescaped[scheme.len()..].trim_start_matches('/');
            return if behind.is_empty() { Err(Wrong::NoUrl) } else { Ok(format!("{scheme}//{behind}")) };
        }
    }
    let other = ["urn:", "ftp:", "dns:", "mailto:", "data:", "screenshot:", "gopher:", "file:", "ipfs:", "metadata:"];
    if other.iter().any(|scheme| unescaped.len() > scheme.len() && unescaped.to_ascii_lowercase().starts_with(scheme)) {
        return Ok(unescaped);
    }
    let bare = unescaped.trim_start_matches('/');
    let has_host =
        bare.split(['/', '?', '#']).next().is_some_and(|host| !host.is_empty() && host != "." && host != "..");
    if has_host { Ok(format!("http://{bare}")) } else { Err(Wrong::NoUrl) }
}

/// Whether a modifier asks for a document: what can be navigated to. Others are parts of one.
pub fn is_document(modifier: &str) -> bool {
    matches!(modifier, "" | "mp_" | "if_" | "id_" | "fr_" | "tf_" | "bn_" | "pk_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(digits: &str, modifier: &str, url: &str) -> Asked {
        let latest = time::latest(digits).unwrap();
        let time_ms = if digits.len() >= 14 { latest - 999 } else { latest };
        Asked::At(At { digits: digits.into(), time_ms, modifier: modifier.into(), url: url.into() })
    }

    #[test]
    fn addresses() {
        let page = "http://example.org/a?b=/c//d";
        for (rest, asked) in [
            ("20140126200624/http://example.org/a?b=/c//d", at("20140126200624", "", page)),
            ("20140126200624id_/http://example.org/a?b=/c//d", at("20140126200624", "id_", page)),
            ("2014mp_/http:/example.org/a?b=/c//d", at("2014", "mp_", page)),
            ("2014im_/example.org/a?b=/c//d", at("2014", "im_", page)),
            ("id_/example.org/a?b=/c//d", at("9999", "id_", page)),
            ("http://example.org/a?b=/c//d", Asked::Gate(page.into())),
            ("example.org/a?b=/c//d", Asked::Gate(page.into())),
            ("https%3A%2F%2Fexample.org%2F", Asked::Gate("https://example.org/".into())),
            ("*/example.org/a?b=/c//d", Asked::All(page.into())),
            ("2014*/example.org/a?b=/c//d", Asked::All(page.into())),
            ("2014x/y", Asked::Gate("http://2014x/y".into())),
            ("123456789012345678/", Asked::Gate("http://123456789012345678/".into())),
            ("2014/urn:isbn:1", at("2014", "", "urn:isbn:1")),
        ] {
            assert_eq!(parse(rest), Ok(asked), "{rest}");
        }
        let map = |format: &str, page, url: &str| Asked::TimeMap { format: format.into(), page, url: url.into() };
        assert_eq!(parse("timemap/link/http://a.example/1"), Ok(map("link", 0, "http://a.example/1")));
        assert_eq!(parse("timemap/json/3/http://a.example/"), Ok(map("json", 3, "http://a.example/")));
        assert_eq!(parse("timemap/http://a.example/"), Ok(map("link", 0, "http://a.example/")));
        for wrong in ["", "2014/", "2014id_/", "2014/http://", "2014/..", "/", "timemap/link/", "2014/../../etc"] {
            assert_eq!(parse(wrong), Err(Wrong::NoUrl), "{wrong}");
        }
        assert_eq!(parse(&format!("2014/{}", "x".repeat(URL_BYTES_MAX + 1))), Err(Wrong::TooLong));
    }
}
