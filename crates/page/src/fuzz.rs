//! Functions over any bytes that check what must hold for all of them. Tests run them on seeded mutations, a soak run for as
//! long as it is asked to.

use skep_url::Url;
use skep_warc::http::Head;

use crate::compare::{Mask, compare, show};
use crate::resolve::Resolver;
use crate::rewrite::{Charset, Kind, Place, Rewriter, charset, kind};
use crate::version::{Rules, Version};
use crate::{Input, Page, challenge, feed, limits, read, sitemap, text};

/// A page of any kind: its first line is the media type, the rest its body.
pub fn fuzz_page(input: &[u8]) {
    let (line, body) = split_line(input);
    let Ok(url) = Url::parse("http://example.org/a/b.html?c") else { return };
    let mut message = b"HTTP/1.1 200 OK\r\nContent-Type: ".to_vec();
    message.extend(line.iter().copied().filter(|byte| !matches!(byte, b'\r' | 0)));
    message.extend_from_slice(b"\r\n\r\n");
    let mut head = Head::new();
    let _ = head.parse_response(&message, true);
    let whole = Input { url: &url, head: Some(&head), body };
    let page = read(&whole);
    holds(&page, &url);
    assert_eq!(page, read(&whole), "the same bytes, the same page");
    holds(&read(&Input { head: None, ..whole }), &url);
    let seen = text(&whole);
    assert!(seen.text.len() <= limits::TEXT_BYTES_MAX + 1, "text is bounded");
    assert!(seen.text.lines().all(|line| !line.is_empty()), "no line of text is empty");
    let _ = challenge(403, &head, body);
    let _ = challenge(200, &head, body);
}

fn holds(page: &Page, url: &Url) {
    assert!(page.links.len() <= limits::SITEMAP_URLS_MAX, "links are bounded");
    for link in &page.links {
        let again = Url::parse(&link.url).map(|parsed| parsed.as_str().to_owned());
        assert_eq!(again.as_deref().ok(), Some(link.url.as_str()), "a link is in the form of a fetched URL");
        assert_ne!(link.url, url.as_str(), "a page does not link to itself");
    }
    let mut urls: Vec<&str> = page.links.iter().map(|link| link.url.as_str()).collect();
    urls.sort_unstable();
    urls.dedup();
    assert_eq!(urls.len(), page.links.len(), "each URL once");
    assert!(page.title.as_ref().is_none_or(|title| title.len() <= limits::TITLE_BYTES_MAX), "a title is bounded");
}

/// Sitemaps and feeds of anything.
pub fn fuzz_listing(input: &[u8]) {
    let Ok(url) = Url::parse("http://example.org/feed.xml") else { return };
    let listed = sitemap(input);
    assert!(
        listed.entries.len() <= limits::SITEMAP_URLS_MAX && listed.more.len() <= limits::SITEMAP_INDEX_MAX,
        "bounded"
    );
    for link in listed.entries.iter().map(|entry| &entry.url).chain(&listed.more) {
        assert!(Url::parse(link).is_ok_and(|parsed| parsed.as_str() == link), "an entry can be fetched");
    }
    assert!(feed(&url, input).entries.len() <= limits::FEED_ENTRIES_MAX, "bounded");
}

/// References of anything: the first line is the base, each other one a reference, resolved as [`Url::join`] does.
pub fn fuzz_reference(input: &[u8]) {
    let (line, rest) = split_line(input);
    let Ok(base) = Url::parse(&String::from_utf8_lossy(line)) else { return };
    let resolver = Resolver::new(&base, encoding_rs::UTF_8);
    for reference in rest.split(|&byte| byte == b'\n').take(256) {
        let reference = String::from_utf8_lossy(reference);
        let joined = base.join(&reference).ok().map(|url| url.as_str().to_owned());
        // Twice: the first time may leave something behind that the second uses.
        for _ in 0..2 {
            let mut out = String::new();
            let resolved = resolver.resolve(&reference, &mut out).then_some(out);
            assert_eq!(resolved, joined, "{base} and {reference:?}");
        }
    }
}

/// Rewriting of anything: the first line is modifier, media type and charset, the rest a body. However it is cut into pieces, the
/// same comes out; nothing is lost; and what is rewritten stays.
pub fn fuzz_rewrite(input: &[u8]) {
    let (line, body) = split_line(input);
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let (modifier, media_type) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let Ok(url) = Url::parse("http://example.org/a/b.html?c") else { return };
    let kind = kind(modifier, media_type, body);
    let named = words.next().and_then(|name| Charset::for_label(name.as_bytes()));
    let charset = named.unwrap_or_else(|| charset(kind, None, body, &url));
    for scripts in [true, false] {
        let place = Place { prefix: "http://replay.localhost/web/", time: "20200102030405", url: &url, scripts };
        let run = |body: &[u8], size: usize| {
            let mut out = Vec::new();
            let mut rewriter = Rewriter::new(kind, &place, charset);
            body.chunks(size).for_each(|piece| rewriter.write(piece, &mut out));
            rewriter.end(&mut out);
            out
        };
        let whole = run(body, body.len().max(1));
        for size in [1, 5, 64] {
            assert!(run(body, size) == whole, "pieces of {size} give something else");
        }
        if kind == Kind::Other {
            assert!(whole == body, "what is not rewritten stays");
        }
        if !scripts && charset.is_ascii_compatible() && matches!(kind, Kind::Html | Kind::Css) {
            assert!(run(&whole, whole.len().max(1)) == whole, "what is rewritten stays");
        }
    }
}

/// Two versions of anything, divided by the first zero byte: what is the same is no change, work is bounded, and what is told of a
/// difference is so.
pub fn fuzz_compare(input: &[u8]) {
    let at = memchr::memchr(0, input).unwrap_or(input.len());
    let (old, new) = (&input[..at], input.get(at + 1..).unwrap_or_default());
    let Ok(url) = Url::parse("http://example.org/a/b.html") else { return };
    let words = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let ruled = Rules::read(&words(&["div, p"]), &words(&[".x a"]), &words(&["[0-9]+"]));
    for rules in [Some(Rules::default()), ruled.ok()].iter().flatten() {
        let version = |body: &[u8]| {
            let input = Input { url: &url, head: None, body };
            let version = Version::read(&input, rules);
            assert_eq!(version, Version::read_in_turn(&input, rules), "read at once and in turn");
            version
        };
        let (was, old, new) = (old, version(old), version(new));
        let beside = Version::read_beside(&Input { url: &url, head: None, body: was }, rules, &new);
        assert_eq!(beside, old, "read beside another");
        assert!(old.blocks.iter().chain(&new.blocks).all(|block| block.at.start <= block.at.end));
        let mut mask = Mask::default();
        assert!(compare(&old, &old, &mut mask).classes.is_silent(), "nothing changed");
        for _ in 0..3 {
            let found = compare(&old, &new, &mut mask);
            assert!(!found.classes.is_empty() && found.share <= 10_000);
            let blocks = |numbers: &[usize], of: &Version| numbers.iter().all(|at| *at < of.blocks.len());
            assert!(blocks(&found.added, &new) && blocks(&found.removed, &old));
        }
        let mut bytes = Vec::new();
        mask.encode(&mut bytes);
        assert_eq!(Mask::decode(&bytes), Some(mask));
        let shown = show(&old.text, &new.text);
        let both = old.text.lines().count().max(new.text.lines().count());
        assert!(shown.old_lines.max(shown.new_lines) <= both);
    }
}

fn split_line(input: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr::memchr(b'\n', input).unwrap_or(input.len());
    (&input[..end], input.get(end + 1..).unwrap_or_default())
}
