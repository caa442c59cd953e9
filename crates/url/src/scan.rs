//! Which keys a question about many URLs asks for, as CDX servers understand `matchType` and `*`.
//!
//! ```text
//! exact    http://example.org/a       org,example)/a
//! prefix   http://example.org/a*      org,example)/a…                         paths that begin so
//! host     example.org                org,example)/…                          one host, without its other ports
//! domain   *.example.org              org,example)/…  org,example,…)/…        the host and everything below it
//! ```
//! `)` sorts before `*`, `,` before `-`: that is why the ranges end where they do. Other ports of a domain's own host
//! (`org,example:8080)/…`) belong to it and lie behind its range; [`Scan::contains`] knows them.

use crate::key::{Key, site_of_surt};
use crate::limits;
use crate::site::Suffixes;
use crate::surt;

/// How much a URL stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// Itself.
    Exact,
    /// Everything that begins so.
    Prefix,
    /// Everything on its host.
    Host,
    /// Everything on its host and on hosts below.
    Domain,
}

impl Match {
    /// Reads `exact`, `prefix`, `host` or `domain`.
    pub fn parse(text: &str) -> Option<Match> {
        Some(match text {
            "exact" => Match::Exact,
            "prefix" => Match::Prefix,
            "host" => Match::Host,
            "domain" => Match::Domain,
            _ => return None,
        })
    }
}

/// A range of SURTs, and the site hash in front of all of them where one site is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The first SURT that belongs.
    pub start: String,
    /// The first SURT that does not; equal to `start` for [`Match::Exact`], where `start` itself is meant.
    pub end: String,
    /// The site, if all of it lies in one; `None` for a question about a public suffix (`*.co.uk`), which every slice answers.
    pub site_hash: Option<u32>,
    /// What was understood.
    pub kind: Match,
}

impl Scan {
    /// What a URL pattern asks for: `*.example.org` and `example.org/path*` say it themselves, else `kind` does.
    pub fn of(pattern: &str, kind: Match) -> Scan {
        Scan::of_in(pattern, kind, &Suffixes::compiled())
    }

    /// The same by a given suffix list, which must be the one that the keys were made with.
    pub fn of_in(pattern: &str, kind: Match, suffixes: &Suffixes) -> Scan {
        let pattern = pattern.trim();
        if let Some(name) = pattern.strip_prefix("*.") {
            return Scan::of_url(name, Match::Domain, suffixes);
        }
        match pattern.strip_suffix('*') {
            Some(beginning) => Scan::of_url(beginning, Match::Prefix, suffixes),
            None => Scan::of_url(pattern, kind, suffixes),
        }
    }

    fn of_url(url: &str, kind: Match, suffixes: &Suffixes) -> Scan {
        let mut start = surt::key(url);
        // A URL without host (`urn:…`) has no host to ask for: what begins like it is the closest thing.
        let kind = if start.contains(")/") || kind == Match::Exact { kind } else { Match::Prefix };
        let end = match kind {
            Match::Exact => start.clone(),
            Match::Prefix => {
                // Keys have no slash at their end, but a prefix that was given with one means what is below it.
                if url.ends_with('/') && !url.contains('?') && !start.ends_with('/') {
                    start.push('/');
                }
                successor(&start)
            }
            Match::Host | Match::Domain => {
                let host = start[..start.find(")/").unwrap_or(start.len())].to_owned();
                start = format!("{host})/");
                format!("{host}{}", if kind == Match::Host { '*' } else { '-' })
            }
        };
        let site_hash = one_site(&start, kind, suffixes).then(|| Key::of_surt_in(&start, suffixes).site_hash());
        Scan { start, end, site_hash, kind }
    }

    /// Does a SURT belong?
    pub fn contains(&self, surt: &str) -> bool {
        match self.kind {
            Match::Exact => surt == self.start,
            // Other ports of the host sort behind names that only begin like it, so no range holds all that belongs.
            Match::Domain if self.start.ends_with(")/") => {
                let host = &self.start[..self.start.len() - 2];
                surt.strip_prefix(host).is_some_and(|rest| rest.starts_with([')', ',', ':']))
            }
            _ => *self.start <= *surt && *surt < *self.end,
        }
    }

    /// Does a key belong?
    pub fn contains_key(&self, key: &Key) -> bool {
        // Keys of a site that is split differ in the bits that may be split.
        let is_of = |hash: u32| (hash ^ key.site_hash()) << limits::SPLIT_BITS_MAX == 0;
        self.site_hash.is_none_or(is_of) && self.contains(key.surt())
    }

    /// The first key that belongs and the first that does not, within the site of this hash; for [`Match::Exact`] the
    /// second is the first key behind the one that belongs.
    pub fn keys(&self, site_hash: u32) -> (Key, Key) {
        let end = match self.kind {
            Match::Exact => format!("{}\0", self.start),
            _ => self.end.clone(),
        };
        (Key::from_parts(site_hash, &self.start), Key::from_parts(site_hash, &end))
    }
}

/// Do all SURTs of the range have one site? Not below a public suffix, and not where the host is not complete.
fn one_site(start: &str, kind: Match, suffixes: &Suffixes) -> bool {
    match kind {
        Match::Exact | Match::Host => true,
        Match::Prefix => start.contains(")/"),
        Match::Domain => {
            let host = start.trim_end_matches(")/");
            // A name that is its own site stays one only if a name below it has the same site.
            let below = format!("{host},x)/");
            site_of_surt(start, suffixes) == site_of_surt(&below, suffixes)
        }
    }
}

/// The first text behind everything that begins like `text`; keys are ASCII, so the last byte can always grow.
fn successor(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    while let Some(last) = bytes.pop() {
        if last < 0x7f {
            bytes.push(last + 1);
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::hash_of_site;

    #[track_caller]
    fn asks(pattern: &str, kind: Match, start: &str, end: &str) -> Scan {
        let scan = Scan::of(pattern, kind);
        assert_eq!((scan.start.as_str(), scan.end.as_str()), (start, end), "{pattern}");
        scan
    }

    #[test]
    fn ranges_as_cdx_servers_have_them() {
        asks("http://example.org/a/", Match::Exact, "org,example)/a", "org,example)/a");
        asks("http://example.org/a/", Match::Prefix, "org,example)/a/", "org,example)/a0");
        asks("http://example.org/a", Match::Prefix, "org,example)/a", "org,example)/b");
        asks("example.org/a*", Match::Exact, "org,example)/a", "org,example)/b");
        asks("example.org/", Match::Prefix, "org,example)/", "org,example)0");
        asks("http://example.org/a?b", Match::Host, "org,example)/", "org,example*");
        asks("http://www.example.org:8080/", Match::Host, "org,example:8080)/", "org,example:8080*");
        asks("example.org", Match::Domain, "org,example)/", "org,example-");
        asks("*.example.org", Match::Exact, "org,example)/", "org,example-");
        asks("urn:uuid:1*", Match::Exact, "urn:uuid:1", "urn:uuid:2");
    }

    #[test]
    fn what_belongs() {
        let domain = Scan::of("*.example.org", Match::Exact);
        for (surt, belongs) in [
            ("org,example)/", true),
            ("org,example)/x?y", true),
            ("org,example,a)/", true),
            ("org,example,a:8080)/", true),
            ("org,example:8080)/", true),
            ("org,example-other)/", false),
            ("org,examples)/", false),
            ("org)/", false),
        ] {
            assert_eq!(domain.contains(surt), belongs, "{surt}");
        }
        let exact = Scan::of("http://example.org/a", Match::Exact);
        assert!(exact.contains("org,example)/a") && !exact.contains("org,example)/a/b"));
    }

    #[test]
    fn one_site_or_all() {
        let hash = Some(hash_of_site("example.org"));
        assert_eq!(Scan::of("*.example.org", Match::Exact).site_hash, hash);
        assert_eq!(Scan::of("*.a.example.org", Match::Exact).site_hash, hash);
        assert_eq!(Scan::of("http://a.example.org/x*", Match::Exact).site_hash, hash);
        assert_eq!(Scan::of("*.co.uk", Match::Exact).site_hash, None);
        assert_eq!(Scan::of("*.org", Match::Exact).site_hash, None);
        assert_eq!(Scan::of("co.uk", Match::Host).site_hash, Some(hash_of_site("co.uk")));
    }

    #[test]
    fn keys_around_a_range() {
        let scan = Scan::of("http://example.org/a", Match::Exact);
        let (first, behind) = scan.keys(scan.site_hash.unwrap());
        let key = Key::of("http://example.org/a");
        assert!(first == key && key < behind && scan.contains_key(&key));
        assert!(behind < Key::of("http://example.org/a/b"));
    }
}
