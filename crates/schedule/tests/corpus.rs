//! The rules about URLs against 48,009 real ones. Where they are not at hand the test says so and passes; the rules have
//! fixtures of their own elsewhere.

use std::path::PathBuf;

use skep_schedule::SiteId;
use skep_schedule::trap::{Candidate, Gate, Novelty, PageSeen, Traps, Visit, text_digest, url_rule};
use skep_url::{Part, Suffixes, Url};

/// The URLs, or nothing where there is no corpus at all.
fn real_urls() -> Option<Vec<Url>> {
    let Some(folder) = std::env::var_os("SKEP_CORPORA") else {
        eprintln!("corpus tests not run: SKEP_CORPORA is not set");
        return None;
    };
    let path = PathBuf::from(folder).join("vectors/url/real-urls-48009.txt");
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let text = String::from_utf8_lossy(&text).into_owned();
    let urls: Vec<Url> =
        text.trim_start_matches('\u{feff}').lines().filter_map(|line| Url::parse(line.trim()).ok()).collect();
    assert!(urls.len() > 47_900, "{} of them can be fetched", urls.len());
    Some(urls)
}

#[test]
fn no_real_url_is_a_trap_by_itself() {
    let Some(urls) = real_urls() else { return };
    let refused: Vec<_> = urls.iter().filter_map(|url| Some((url_rule(url)?, url.as_str()))).collect();
    assert!(refused.is_empty(), "{refused:?}");
}

/// Heard, visited and found to be different pages without links, in the order of the list.
#[test]
fn no_real_url_is_refused_in_the_course_of_a_crawl() {
    let Some(urls) = real_urls() else { return };
    let suffixes = Suffixes::default();
    let mut sites: std::collections::HashMap<String, SiteId> = std::collections::HashMap::new();
    let mut hosts = std::collections::HashSet::new();
    let mut traps = Traps::new();
    for url in &urls {
        let next = SiteId(sites.len() as u32);
        let site = *sites.entry(url.site(&suffixes, Part::Whole).to_owned()).or_insert(next);
        let new_host = hosts.insert(url.host_name().to_owned());
        let candidate = Candidate { url, site, new_host, asked_for: false, foreign: false };
        assert_eq!(traps.admit(&candidate), Ok(()), "{url:?}");
        assert_eq!(traps.gate(url.as_str(), site, 1), Gate::Go, "{url:?}");
        let novelty = Novelty::of(url.as_str(), None);
        let page = PageSeen { novelty: Some(&novelty), digest: text_digest(url.as_str()), answer_ms: 80, bytes: 8_000 };
        traps.learn(&Visit { url, site, depth: 1, page: Some(page) });
    }
}
