//! The metadata of a visit: what is known about a capture besides its bytes.
//!
//! ```text
//! skep-visit: 1
//! crawl: docs
//! depth: 2                                 links from a seed
//! via: https://example.org/                the page it was heard on
//! verdict: kept
//! due: price                               why it was looked at again, and what was believed of it then:
//! changes-per-day: 0.142857
//! every-s: 86400                           looked at every so many seconds
//! fetchTimeMs: 184
//! timings: resolve=3 connect=12 tls=25 first-byte=110
//! charsetForLinkExtraction: utf-8
//! title: A page
//! links: 36
//! outlink: https://example.org/b L         URL, kind, `nofollow`
//! ```
//! The fields that other crawlers write have their names; docs/formats/visit.md has them all.

use std::fmt;

use skep_schedule::revisit::Due;
use skep_warc::date::{parse_ms, rfc3339};

use crate::limits::{LINKS_MAX, META_BYTES_MAX, META_REPEATED_MAX, META_VALUE_BYTES_MAX, TITLE_BYTES_MAX};
use crate::lines::{lines, push_field, push_number, push_word};
use crate::links::{Link, Links, ReadLinks, Since, kept, push_link, read_link};

/// The version of the block; a block of a newer one is refused.
const VERSION: u32 = 1;

/// How long the parts of an exchange took, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    /// Finding the address.
    pub resolve_ms: Option<u32>,
    /// Connecting.
    pub connect_ms: Option<u32>,
    /// The TLS handshake.
    pub tls_ms: Option<u32>,
    /// From the request to the first byte of the answer.
    pub first_byte_ms: Option<u32>,
    /// All of it.
    pub total_ms: Option<u32>,
}

/// What is written about a visit.
#[derive(Debug, Clone, Default)]
pub struct Metadata<'a> {
    /// The crawl's name.
    pub crawl: &'a str,
    /// Links from a seed.
    pub depth: u16,
    /// Redirects in a row that led here.
    pub redirects: u8,
    /// The page it was heard on.
    pub via: Option<&'a str>,
    /// How it was heard: the short word of the link's kind.
    pub kind: Option<&'a str>,
    /// What became of it, in a word or two.
    pub verdict: &'a str,
    /// What it is beside the capture before, in a word.
    pub found: Option<&'a str>,
    /// Why it was looked at again.
    pub due: Option<Due>,
    /// How long it took.
    pub timings: Timings,
    /// Whose hands fetched it, where they were not ours.
    pub hands: Option<&'a str>,
    /// `one` where nobody else saw the same, `two` where somebody did; only for contributors.
    pub sources: Option<&'a str>,
    /// What others saw from elsewhere that differs by place: network, place, status, digest.
    pub vantages: &'a [String],
    /// What was wrong with the certificate or the handshake.
    pub tls_fault: Option<&'a str>,
    /// The charset by which links were read.
    pub charset: Option<&'a str>,
    /// The page's title.
    pub title: Option<&'a str>,
    /// The page's language.
    pub language: Option<&'a str>,
    /// The URL by which the page wants to be known.
    pub canonical: Option<&'a str>,
    /// `noarchive`, `nofollow` and their like.
    pub directives: &'a [&'a str],
    /// Consent signals as seen: name and value.
    pub signals: &'a [(String, String)],
    /// What was odd about the exchange.
    pub notes: &'a [&'a str],
    /// What the server asked to wait.
    pub retry_after_ms: Option<u64>,
    /// The site rests until then, in milliseconds since 1970.
    pub park_until_ms: Option<i64>,
    /// What the page links to.
    pub links: Links<'a>,
}

impl Metadata<'_> {
    /// Appends the block.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut number = |name: &str, number: Option<u64>| {
            if let Some(number) = number {
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(b": ");
                push_number(out, number);
                out.extend_from_slice(b"\r\n");
            }
        };
        number("skep-visit", Some(u64::from(VERSION)));
        number("depth", Some(u64::from(self.depth)));
        number("redirects", Some(u64::from(self.redirects)).filter(|count| *count > 0));
        number("fetchTimeMs", self.timings.total_ms.map(u64::from));
        number("retry-after-ms", self.retry_after_ms);
        let mut text = |name: &str, value: Option<&str>| {
            push_field(out, name, value.unwrap_or_default(), META_VALUE_BYTES_MAX);
        };
        text("crawl", Some(self.crawl));
        text("kind", self.kind);
        text("verdict", Some(self.verdict));
        text("found", self.found);
        if let Some(Due { why, changes_per_day_millionths: rate, every_s }) = self.due {
            text("due", Some(why.id()));
            text("changes-per-day", Some(&format!("{}.{:06}", rate / 1_000_000, rate % 1_000_000)));
            text("every-s", Some(&every_s.to_string()));
        }
        text("hands", self.hands);
        text("sources", self.sources);
        self.vantages.iter().take(META_REPEATED_MAX).for_each(|vantage| text("vantage", Some(vantage)));
        text("tls-fault", self.tls_fault);
        text("charsetForLinkExtraction", self.charset);
        text("language", self.language);
        self.directives.iter().take(META_REPEATED_MAX).for_each(|directive| text("directive", Some(directive)));
        self.notes.iter().take(META_REPEATED_MAX).for_each(|note| text("note", Some(note)));
        push_field(out, "title", self.title.unwrap_or_default(), TITLE_BYTES_MAX);
        for (name, value) in self.signals.iter().take(META_REPEATED_MAX).filter(|(name, _)| !name.is_empty()) {
            out.extend_from_slice(b"signal: ");
            push_word(out, &name[..name.floor_char_boundary(META_VALUE_BYTES_MAX / 4)]);
            out.push(b' ');
            let before = out.len();
            crate::lines::push_words(out, value, META_VALUE_BYTES_MAX);
            if out.len() == before {
                out.pop();
            }
            out.extend_from_slice(b"\r\n");
        }
        push_url(out, "via", self.via);
        push_url(out, "canonical", self.canonical);
        push_timings(out, &self.timings);
        if let Some(ms) = self.park_until_ms {
            push_field(out, "park-until", &rfc3339(ms), META_VALUE_BYTES_MAX);
        }
        push_links(out, &self.links);
    }
}

/// A URL that is too long to be fetched is no use here either.
fn push_url(out: &mut Vec<u8>, name: &str, url: Option<&str>) {
    if let Some(url) = url.filter(|url| !url.is_empty() && url.len() <= crate::limits::URL_BYTES_MAX) {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        push_word(out, url);
        out.extend_from_slice(b"\r\n");
    }
}

fn push_timings(out: &mut Vec<u8>, timings: &Timings) {
    let parts = [
        ("resolve", timings.resolve_ms),
        ("connect", timings.connect_ms),
        ("tls", timings.tls_ms),
        ("first-byte", timings.first_byte_ms),
    ];
    if parts.iter().all(|(_, ms)| ms.is_none()) {
        return;
    }
    out.extend_from_slice(b"timings:");
    for (name, ms) in parts {
        if let Some(ms) = ms {
            out.push(b' ');
            out.extend_from_slice(name.as_bytes());
            out.push(b'=');
            push_number(out, u64::from(ms));
        }
    }
    out.extend_from_slice(b"\r\n");
}

fn push_links(out: &mut Vec<u8>, links: &Links<'_>) {
    let outlinks = |out: &mut Vec<u8>, links: &[Link<'_>]| {
        for link in links.iter().filter(|link| !link.url.is_empty()) {
            out.extend_from_slice(b"outlink: ");
            push_link(out, link);
            out.extend_from_slice(b"\r\n");
        }
    };
    let number = |out: &mut Vec<u8>, name: &str, number: u64| {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        push_number(out, number);
        out.extend_from_slice(b"\r\n");
    };
    match links {
        Links::Unknown => {}
        Links::Full(all) => {
            let kept = kept(all);
            number(out, "links", kept.iter().filter(|link| !link.url.is_empty()).count() as u64);
            if kept.len() < all.len() {
                number(out, "links-left-out", (all.len() - kept.len()) as u64);
            }
            outlinks(out, kept);
        }
        Links::Difference(difference) => {
            number(out, "links", difference.count);
            push_field(out, "links-digest", &difference.digest.to_string(), META_VALUE_BYTES_MAX);
            let since = format!("{} {}", rfc3339(difference.since.time_ms), difference.since.chain);
            push_field(out, "links-since", &since, META_VALUE_BYTES_MAX);
            for url in &difference.gone {
                push_field(out, "outlink-gone", url, usize::MAX);
            }
            outlinks(out, &difference.came);
        }
    }
}

/// What a metadata block says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meta {
    /// The version of the block; 0 for a block of another crawler.
    pub version: u32,
    /// The crawl's name.
    pub crawl: String,
    /// Links from a seed.
    pub depth: u16,
    /// Redirects in a row that led here.
    pub redirects: u8,
    /// The page it was heard on.
    pub via: Option<String>,
    /// How it was heard.
    pub kind: Option<String>,
    /// What became of it.
    pub verdict: String,
    /// What it is beside the capture before.
    pub found: Option<String>,
    /// How long it took.
    pub timings: Timings,
    /// Whose hands fetched it, where they were not those of the archive's owner.
    pub hands: Option<String>,
    /// `one` or `two`: how many saw the same.
    pub sources: Option<String>,
    /// What others saw from elsewhere that differs by place.
    pub vantages: Vec<String>,
    /// What was wrong with the certificate or the handshake.
    pub tls_fault: Option<String>,
    /// The charset by which links were read.
    pub charset: Option<String>,
    /// The page's title.
    pub title: Option<String>,
    /// The page's language.
    pub language: Option<String>,
    /// The URL by which the page wants to be known.
    pub canonical: Option<String>,
    /// `noarchive`, `nofollow` and their like.
    pub directives: Vec<String>,
    /// Consent signals as seen.
    pub signals: Vec<(String, String)>,
    /// What was odd about the exchange.
    pub notes: Vec<String>,
    /// What the server asked to wait.
    pub retry_after_ms: Option<u64>,
    /// The site rests until then.
    pub park_until_ms: Option<i64>,
    /// What the page links to.
    pub links: ReadLinks,
}

/// Why a block was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// More than is ever written.
    TooLarge,
    /// Not the text it should be; says where.
    Malformed(&'static str),
    /// Written by a newer version.
    Newer(u32),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::TooLarge => f.write_str("the block is larger than any that is written"),
            Unreadable::Malformed(what) => write!(f, "the block is damaged: {what}"),
            Unreadable::Newer(version) => write!(f, "the block has version {version}, which a newer skep reads"),
        }
    }
}

impl std::error::Error for Unreadable {}

/// Reads a metadata block. Of fields that stand once the first counts; fields not known here are passed over.
pub fn parse(block: &[u8]) -> Result<Meta, Unreadable> {
    if block.len() > META_BYTES_MAX {
        return Err(Unreadable::TooLarge);
    }
    let text = std::str::from_utf8(block).map_err(|_| Unreadable::Malformed("it is not UTF-8"))?;
    let mut meta = Meta::default();
    let mut seen = Seen::default();
    for line in lines(text) {
        let Some((name, value)) = line.split_once(':') else { continue };
        meta.take(name, value.trim(), &mut seen)?;
    }
    Ok(meta)
}

/// Fields that stood already, where their value cannot show it.
#[derive(Default)]
struct Seen {
    depth: bool,
    redirects: bool,
    since: bool,
    timings: bool,
}

fn first(seen: &mut bool) -> bool {
    !std::mem::replace(seen, true)
}

impl Meta {
    fn take(&mut self, name: &str, value: &str, seen: &mut Seen) -> Result<(), Unreadable> {
        let once = |field: &mut Option<String>| {
            if field.is_none() && !value.is_empty() {
                *field = Some(value.to_owned());
            }
        };
        let more = |list: &mut Vec<String>| {
            if list.len() < META_REPEATED_MAX && !value.is_empty() {
                list.push(value.to_owned());
            }
        };
        match name {
            "skep-visit" if self.version == 0 => {
                self.version = value.parse().map_err(|_| Unreadable::Malformed("its version is no number"))?;
                if self.version > VERSION {
                    return Err(Unreadable::Newer(self.version));
                }
            }
            "crawl" if self.crawl.is_empty() => self.crawl = value.to_owned(),
            "verdict" if self.verdict.is_empty() => self.verdict = value.to_owned(),
            "depth" if first(&mut seen.depth) => self.depth = value.parse().unwrap_or_default(),
            "redirects" if first(&mut seen.redirects) => self.redirects = value.parse().unwrap_or_default(),
            "found" => once(&mut self.found),
            "via" => once(&mut self.via),
            "kind" => once(&mut self.kind),
            "hands" => once(&mut self.hands),
            "sources" => once(&mut self.sources),
            "vantage" => more(&mut self.vantages),
            "tls-fault" => once(&mut self.tls_fault),
            "charsetForLinkExtraction" => once(&mut self.charset),
            "title" => once(&mut self.title),
            "language" => once(&mut self.language),
            "canonical" => once(&mut self.canonical),
            "directive" => more(&mut self.directives),
            "note" => more(&mut self.notes),
            "signal" if self.signals.len() < META_REPEATED_MAX => {
                let (name, value) = value.split_once(' ').unwrap_or((value, ""));
                if !name.is_empty() {
                    self.signals.push((name.to_owned(), value.to_owned()));
                }
            }
            "fetchTimeMs" if self.timings.total_ms.is_none() => self.timings.total_ms = value.parse().ok(),
            "timings" if first(&mut seen.timings) => self.read_timings(value),
            "retry-after-ms" if self.retry_after_ms.is_none() => self.retry_after_ms = value.parse().ok(),
            "park-until" if self.park_until_ms.is_none() => self.park_until_ms = parse_ms(value.as_bytes()),
            "outlink" | "outlink-gone" | "links" | "links-since" | "links-digest" | "links-left-out" => {
                return self.links.take(name, value, seen);
            }
            _ => {}
        }
        Ok(())
    }

    fn read_timings(&mut self, value: &str) {
        for (name, ms) in value.split(' ').filter_map(|part| part.split_once('=')) {
            let ms = ms.parse().ok();
            match name {
                "resolve" => self.timings.resolve_ms = ms,
                "connect" => self.timings.connect_ms = ms,
                "tls" => self.timings.tls_ms = ms,
                "first-byte" => self.timings.first_byte_ms = ms,
                _ => {}
            }
        }
    }
}

impl ReadLinks {
    fn take(&mut self, name: &str, value: &str, seen: &mut Seen) -> Result<(), Unreadable> {
        match name {
            "outlink" => self.links.extend(read_link(value)),
            "outlink-gone" if !value.is_empty() => self.gone.push(value.to_owned()),
            "links" if self.count.is_none() => self.count = value.parse().ok(),
            "links-digest" if self.digest.is_none() => self.digest = value.parse().ok(),
            "links-left-out" => self.left_out = value.parse().unwrap_or_default(),
            "links-since" if first(&mut seen.since) => {
                let (date, chain) = value.split_once(' ').unwrap_or((value, ""));
                let since = parse_ms(date.as_bytes()).zip(chain.parse().ok());
                let (time_ms, chain) = since.ok_or(Unreadable::Malformed("links-since has no date and number"))?;
                self.since = Some(Since { time_ms, chain });
            }
            _ => {}
        }
        if self.links.len() > LINKS_MAX || self.gone.len() > LINKS_MAX {
            return Err(Unreadable::TooLarge);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::LINK_LINES_BYTES_MAX;
    use crate::links::{Before, LinkSet};
    use skep_schedule::revisit::Reason;

    fn written(metadata: &Metadata<'_>) -> String {
        let mut out = Vec::new();
        metadata.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn everything_is_read_back() {
        let links = [
            Link { url: "https://example.org/b", code: "L", nofollow: false },
            Link { url: "https://example.org/a.png", code: "E", nofollow: true },
        ];
        let signals = [("Content-Signal".to_string(), "search=yes, ai-train=no".to_string())];
        let metadata = Metadata {
            crawl: "docs",
            depth: 2,
            redirects: 1,
            via: Some("https://example.org/"),
            kind: Some("L"),
            verdict: "kept",
            found: Some("changed"),
            due: Some(Due { why: Reason::Price, changes_per_day_millionths: 142_857, every_s: 86_400 }),
            timings: Timings {
                resolve_ms: Some(3),
                connect_ms: None,
                tls_ms: Some(25),
                first_byte_ms: Some(110),
                total_ms: Some(184),
            },
            hands: Some("contributor 7f3a"),
            sources: Some("one"),
            vantages: &["AS64500 DE 451".to_owned()],
            tls_fault: Some("the certificate expired"),
            charset: Some("utf-8"),
            title: Some("Ein Käfer: Größe"),
            language: Some("de"),
            canonical: Some("https://example.org/c"),
            directives: &["noarchive", "nofollow"],
            signals: &signals,
            notes: &["length-and-chunked"],
            retry_after_ms: Some(120_000),
            park_until_ms: Some(1_778_052_489_123),
            links: Links::Full(&links),
        };
        let due = "due: price\r\nchanges-per-day: 0.142857\r\nevery-s: 86400\r\n";
        assert!(written(&metadata).contains(due), "{}", written(&metadata));
        let meta = parse(written(&metadata).as_bytes()).unwrap();
        assert_eq!(meta.links.links.iter().map(|link| link.as_link()).collect::<Vec<_>>(), links);
        assert_eq!((meta.links.count, meta.links.digest), (Some(2), None));
        let expected = Meta {
            version: 1,
            crawl: "docs".into(),
            depth: 2,
            redirects: 1,
            via: Some("https://example.org/".into()),
            kind: Some("L".into()),
            verdict: "kept".into(),
            found: Some("changed".into()),
            timings: metadata.timings,
            hands: Some("contributor 7f3a".into()),
            sources: Some("one".into()),
            vantages: vec!["AS64500 DE 451".into()],
            tls_fault: Some("the certificate expired".into()),
            charset: Some("utf-8".into()),
            title: Some("Ein Käfer: Größe".into()),
            language: Some("de".into()),
            canonical: Some("https://example.org/c".into()),
            directives: vec!["noarchive".into(), "nofollow".into()],
            signals: signals.to_vec(),
            notes: vec!["length-and-chunked".into()],
            retry_after_ms: Some(120_000),
            park_until_ms: Some(1_778_052_489_123),
            links: meta.links.clone(),
        };
        assert_eq!(meta, expected);
    }

    #[test]
    fn a_page_forges_no_line() {
        let evil = "x\r\noutlink: http://evil/ L\nvia: http://evil/\u{2028}depth: 9";
        let links = [Link { url: evil, code: "L\nvia: x", nofollow: false }];
        let signals = [(format!("a {evil}"), evil.to_string()), ("b".into(), "\r\n".into())];
        let metadata = Metadata {
            crawl: evil,
            via: Some(evil),
            kind: Some(evil),
            verdict: evil,
            tls_fault: Some(evil),
            charset: Some(evil),
            title: Some(evil),
            language: Some(evil),
            canonical: Some(evil),
            directives: &[evil],
            signals: &signals,
            notes: &[evil],
            links: Links::Full(&links),
            ..Metadata::default()
        };
        let text = written(&metadata);
        assert_eq!(text.lines().filter(|line| line.starts_with("outlink:")).count(), 1, "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("via:")).count(), 1, "{text}");
        assert!(!text.contains('\u{2028}') && text.lines().all(|line| line.contains(": ")), "{text}");
        let meta = parse(text.as_bytes()).unwrap();
        assert_eq!((meta.depth, meta.links.links.len(), meta.signals.len()), (0, 1, 2));
        assert!(meta.via.unwrap().starts_with("x%0D%0Aoutlink:%20"));
        let mut set = LinkSet::default();
        assert!(set.apply(&meta.links) && set.len() == 1, "what is written is what is read");
    }

    #[test]
    fn later_captures_say_what_changed() {
        let urls: Vec<String> = (0..36).map(|n| format!("https://example.org/section/{n}/page.html")).collect();
        let all: Vec<Link<'_>> = urls.iter().map(|url| Link { url, code: "L", nofollow: false }).collect();
        let mut set = LinkSet::default();
        let first = Metadata { links: Links::choose(&all[..35], None), ..Metadata::default() };
        assert!(set.apply(&parse(written(&first).as_bytes()).unwrap().links));
        assert_eq!(set.len(), 35);

        let before = set.clone();
        let before = Before { set: &before, time_ms: 1_778_052_489_123, chain: 0 };
        let second = Metadata { links: Links::choose(&all[1..], Some(&before)), ..Metadata::default() };
        let text = written(&second);
        assert!(text.contains("links-since: 2026-05-06T07:28:09.123Z 1\r\n"), "{text}");
        assert!(text.contains("outlink-gone: https://example.org/section/0/page.html\r\n"), "{text}");
        assert_eq!(text.matches("outlink: ").count(), 1);
        assert!(set.apply(&parse(text.as_bytes()).unwrap().links));
        assert_eq!(set, LinkSet::of(all[1..].iter().copied()));

        let unchanged = Before { set: &set.clone(), time_ms: 5, chain: 1 };
        let third = Metadata { links: Links::choose(&all[1..], Some(&unchanged)), ..Metadata::default() };
        assert!(!written(&third).contains("outlink"));
        assert!(set.apply(&parse(written(&third).as_bytes()).unwrap().links));
        assert_eq!(set.len(), 35);

        let cut = written(&first).replace("outlink: https://example.org/section/7/page.html L\r\n", "");
        assert!(!set.apply(&parse(cut.as_bytes()).unwrap().links), "a list that is not whole is noticed");
    }

    #[test]
    fn what_other_crawlers_wrote_is_read() {
        let block = b"via: http://a.example/\r\nhopsFromSeed: L\r\nfetchTimeMs: 52\r\noutlink: http://a.example/s.css E link/@href\r\n";
        let meta = parse(block).unwrap();
        assert_eq!(
            (meta.version, meta.via.as_deref(), meta.timings.total_ms),
            (0, Some("http://a.example/"), Some(52))
        );
        assert_eq!(meta.links.links[0].as_link(), Link { url: "http://a.example/s.css", code: "E", nofollow: false });
        assert_eq!(parse(b"skep-visit: 2\r\n"), Err(Unreadable::Newer(2)));
        assert!(parse(b"\xff").is_err());
        assert_eq!(parse(&vec![b'a'; META_BYTES_MAX + 1]), Err(Unreadable::TooLarge));
    }

    #[test]
    fn long_values_are_cut_and_the_block_stays_readable() {
        let long = "ü".repeat(10_000);
        let (huge, links_of) = ("x".repeat(LINK_LINES_BYTES_MAX / 3), |url| Link { url, code: "L", nofollow: true });
        let links = vec![links_of(huge.as_str()); 5];
        let signals = vec![(long.clone(), long.clone()); 100];
        let directives = vec![long.as_str(); 100];
        let metadata = Metadata {
            crawl: &long,
            title: Some(&long),
            via: Some(&long),
            directives: &directives,
            notes: &directives,
            signals: &signals,
            links: Links::Full(&links),
            ..Metadata::default()
        };
        let meta = parse(written(&metadata).as_bytes()).unwrap();
        assert_eq!(meta.title.map(|title| title.len()), Some(TITLE_BYTES_MAX));
        assert_eq!((meta.via, meta.signals.len(), meta.directives.len()), (None, META_REPEATED_MAX, META_REPEATED_MAX));
        assert_eq!((meta.links.links.len(), meta.links.left_out), (2, 3));
    }
}
