//! A site that is split: its URLs are spread over slices and their leaders, and still nobody hurries it, and any node finds all of it.

use crate::ring::{Ring, TIMES, alone};
use serde_json::Value;
use std::collections::BTreeSet;

/// Pages of each site.
const PAGES: u32 = 14;
/// Turns of some seconds: each of them is worth some pages.
const LEASE: &str = "lease=10s";

/// Five nodes in whose network one site is split, before anything of it is known. One of its hosts.
fn five() -> (Ring, String) {
    let times = TIMES.replace("lease=6s", LEASE).replace("recover=15s", "recover=20s");
    let ring = Ring::timed(PAGES, &times).grown(5);
    let (host, site) = (ring.web.map().hosts[1].host.clone(), ring.web.map().hosts[1].site.clone());
    let told = ring.skep(0, &["--json", "ring", "split", &host, "--bits", "2"]).exits(0).json();
    assert_eq!((told[0]["split"].as_str(), told[0]["bits"].as_u64()), (Some(site.as_str()), Some(2)), "{told:?}");
    // Everybody hears of it, and it counts from a date on that is still to come.
    let since = told[0]["since"].as_str().expect("a date").to_owned();
    let all = ring.up();
    ring.until("known everywhere", &all, |all| all.iter().all(|one| one["splits"][0]["since"] == since.as_str()));
    ring.until("counting", &[0], |_| skep_warc::date::rfc3339(skep_archive::system_clock()) > since);
    (ring, host)
}

/// The slices in which a node has records about a site.
fn slices(ring: &Ring, node: usize, site: &str) -> BTreeSet<String> {
    let grep = format!(
        "find node-{node}/segments -name '*.warc.gz' | while read f; do zcat $f 2>/dev/null | grep -aq '^WARC-Target-URI: http://{site}/[a-z0-9]' && \
         basename $(dirname $f); done || true"
    );
    let folders = ring.site.shell(&grep).text();
    folders.lines().map(|folder| folder.split('.').next().unwrap_or_default().to_owned()).collect()
}

fn pages_of<'e>(expected: &'e BTreeSet<(String, String)>, site: &str) -> Vec<&'e str> {
    let of_site = |url: &&str| url.starts_with(&format!("http://{site}/"));
    expected.iter().map(|(url, _)| url.as_str()).filter(of_site).collect()
}

#[test]
fn a_site_that_is_split_is_crawled_by_many_at_one_pace_and_found_by_all() {
    let expected = alone(PAGES);
    let (ring, site) = five();
    ring.crawl(3);
    ring.crawled(&expected);
    assert_eq!(ring.union(), expected, "what one node alone would have");
    ring.is_on(&expected, 3);
    ring.is_polite();
    let twice: Vec<_> = ring.fetches().into_iter().filter(|(_, count)| *count > 1).collect();
    assert!(twice.is_empty(), "fetched more than once: {twice:?}");

    // Its pages are in several slices, and more than one node went there.
    let pages = pages_of(&expected, &site);
    let all: BTreeSet<String> = ring.up().into_iter().flat_map(|node| slices(&ring, node, &site)).collect();
    assert!(all.len() > 1, "{all:?} of {} pages", pages.len());
    let asked = ring.web.requests();
    let visitors: BTreeSet<_> = asked.iter().filter(|one| one.host == site).map(|one| one.from).collect();
    assert!(visitors.len() > 1, "{visitors:?}");

    // Any node says where, replays and lists every page; the index of the site has each once, in one order.
    let lines = |url: &str| ring.skep(2, &["--json", "ring", "where", url]).exits(0).json().len();
    assert!(pages.iter().any(|url| lines(url) == 2), "at home, and where it is");
    ring.portals_answer(&expected);
    let index = |node: usize| -> Vec<String> {
        let (status, body) = ring.get(node, &format!("/cdx?url={site}&matchType=host&fl=original&limit=1000"));
        assert_eq!(status, 200, "{body}");
        let listed = body.lines().filter_map(|line| line.split_once("http").map(|(_, rest)| format!("http{rest}")));
        let listed = listed.map(|line| line.trim_end_matches(['"', '}']).to_owned());
        listed.filter(|url| !url.ends_with("/robots.txt")).collect()
    };
    let first = index(0);
    assert_eq!(first.iter().map(String::as_str).collect::<BTreeSet<_>>(), pages.iter().copied().collect());
    assert_eq!(first.len(), pages.len(), "each once");
    for node in ring.up() {
        assert_eq!(index(node), first, "node {node}");
    }
    // Copies are counted once, whoever is asked.
    let captures = |node: usize| -> Value {
        let (_, body) = ring.get(node, "/api/v1/statistics");
        let said: Value = serde_json::from_str(&body).expect("statistics");
        serde_json::json!([said["captures"], said["urls"], said["silent"]])
    };
    for node in ring.up() {
        assert_eq!(captures(node), captures(0), "node {node}");
    }
    assert!(ring.skep(1, &["ring"]).text().contains("is split into 4 slices"));
    ring.skep(0, &["ring", "split", &site]).fails("a site is split once");
    ring.skep(1, &["ring", "split", "example.org"]).fails("only who made the network");
}

#[test]
fn a_split_network_hurries_no_site_that_is_split() {
    let expected = alone(PAGES);
    let (ring, site) = five();
    ring.crawl(0);
    let visits = || ring.web.requests().into_iter().filter(|one| one.host == site).count();
    ring.until("visits", &[0], |_| visits() > 2);
    let (few, many) = ([0, 1], [2, 3, 4]);
    ring.net.split(&few, &many);
    // Whoever has its turn among the few ends it, and those who are many go on with the site when it must have ended.
    ring.until("the few stop", &few, |all| all.iter().all(|one| one["leads"] == 0 && one["acts"] == false));
    let (by_few, before) = (ring.asked_by(&few), ring.asked_by(&many));
    ring.until("the many fetch", &many, |_| ring.asked_by(&many) > before);
    assert_eq!(ring.asked_by(&few), by_few, "the few fetched while they were few");
    ring.net.heal(&few, &many);
    ring.crawled(&expected);
    assert_eq!(ring.union(), expected);
    ring.is_on(&expected, 3);
    ring.is_polite();
    ring.portals_answer(&expected);
}
