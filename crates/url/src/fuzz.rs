//! Functions over any bytes that check what must hold for all of them. Tests run them on seeded mutations, a soak run for as
//! long as it is asked to.

use crate::key::Key;
use crate::limits;
use crate::robots::{Because, Robots};
use crate::scan::{Match, Scan};
use crate::surt;

/// Keys of anything: printable, bounded, the same by every way.
pub fn fuzz_surt(input: &[u8]) {
    let key = surt::key_of_bytes(input);
    assert!(key.bytes().all(|b| (0x21..0x7f).contains(&b)), "a key is printable ASCII");
    assert!(!key.is_empty(), "a key is never empty");
    let whole = Key::of_bytes(input);
    assert_eq!(whole, Key::of_surt(&key), "one SURT, one key");
    assert!(whole.surt().len() <= limits::KEY_SURT_BYTES_MAX, "a key is bounded");
    assert_eq!(Key::from_bytes(whole.as_bytes()).as_ref(), Some(&whole), "a key is read back");
    surt::assert_ways_agree(input);
    if let Ok(text) = std::str::from_utf8(input) {
        assert_eq!(surt::key(text), key, "text and bytes have one key");
        for kind in [Match::Exact, Match::Prefix, Match::Host, Match::Domain] {
            let scan = Scan::of(text, kind);
            assert!(scan.start <= scan.end, "a range runs forward");
        }
        if let Ok(url) = crate::Url::parse(text) {
            assert_eq!(crate::Url::parse(url.as_str()).as_ref(), Ok(&url), "the form of a fetched URL is its own form");
            let _ = url.key();
        }
    }
}

/// robots.txt of anything, asked about paths taken from the file itself.
pub fn fuzz_robots(input: &[u8]) {
    let robots = Robots::parse(input);
    let text = String::from_utf8_lossy(&input[..input.len().min(4_096)]);
    let words = text.split(|c: char| c.is_whitespace() || c == ':').filter(|word| !word.is_empty()).take(64);
    let mut agents = vec!["skep", "*", ""];
    let mut paths = vec!["/", "", "http://example.org/a%2fb?c"];
    for word in words {
        if word.contains('/') { paths.push(word) } else { agents.push(word) }
    }
    let lines = line_ends(input) + 1;
    for agent in agents.iter().take(8) {
        for path in paths.iter().take(16) {
            let decision = robots.decide(agent, path);
            match decision.because {
                Because::Line(line) => {
                    assert!((1..=lines).contains(&u64::from(line.number)), "the line is in the file")
                }
                _ => assert!(decision.allowed, "only a line of the file disallows"),
            }
        }
        if let Some(delay) = robots.crawl_delay(agent) {
            assert!((0.0..=limits::ROBOTS_CRAWL_DELAY_SECONDS_MAX).contains(&delay.seconds), "a delay is bounded");
        }
    }
    assert!(robots.sitemaps().len() <= limits::ROBOTS_SITEMAPS_MAX, "sitemaps are bounded");
}

fn line_ends(input: &[u8]) -> u64 {
    memchr::memchr2_iter(b'\n', b'\r', input).map(|_| 1).sum()
}
