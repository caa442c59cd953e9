//! A large body on many sites is kept once, answered by every node, and stays with those whom nobody asked to remove.

use crate::ring::{CRAWL, PATIENCE, Ring, TIMES};
use skep_testweb::{HostPlan, Plan};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const SITES: u8 = 10;

fn url(site: u8) -> String {
    format!("http://large{site}.test/large.txt")
}

fn body() -> String {
    (0..80_000).map(|number| format!("{} ", number * 7919 % 10_007)).collect()
}

fn ring() -> (Ring, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("large.txt"), body()).expect("a file");
    let place = folder.path().to_path_buf();
    let ring = Ring::over(
        |net| {
            (0..SITES).fold(Plan::new(3), |plan, site| {
                plan.host(HostPlan::folder(&format!("large{site}.test"), &place).on(&[net.web(site)]))
            })
        },
        TIMES,
        |_| Vec::new(),
    );
    (ring.grown(4), folder)
}

/// All captures of a site that nodes which run have: by position, whether it has the body itself, and when.
fn captures(ring: &Ring, site: u8) -> BTreeMap<String, (bool, String)> {
    let mut all = BTreeMap::new();
    for node in ring.up() {
        for capture in ring.skep(node, &["--json", "captures", &url(site)]).json() {
            let text = |name: &str| capture[name].as_str().unwrap_or_default().to_owned();
            let digits: String = text("time").chars().filter(char::is_ascii_digit).take(14).collect();
            all.insert(text("position"), (text("type") == "response", digits));
        }
    }
    all
}

/// Gives more sites to the crawl, and waits until each was captured.
fn crawled(ring: &Ring, sites: std::ops::Range<u8>) {
    let urls: Vec<String> = sites.clone().map(url).collect();
    let mut typed = vec!["crawl", "--network", "--name", CRAWL, "--patience", "1"];
    typed.extend(urls.iter().map(String::as_str));
    ring.skep(1, &typed).exits(0);
    ring.until("captured", &[0], |_| sites.clone().all(|site| !captures(ring, site).is_empty()));
    ring.settled();
}

/// Every node answers with the whole body of this site; or says that it has none.
fn answered(ring: &Ring, site: u8, whole: bool) -> bool {
    let Some((_, digits)) = captures(ring, site).into_values().next() else { return !whole };
    ring.up().into_iter().all(|node| {
        let (status, text) = ring.get(node, &format!("/web/{digits}id_/{}", url(site)));
        match whole {
            true => status == 200 && crate::unchunked(&text) == body(),
            false => status != 200,
        }
    })
}

fn until(what: &str, so: impl Fn() -> bool) {
    let since = Instant::now();
    while !so() {
        assert!(since.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_large_body_on_many_sites_is_kept_once_and_by_who_refers_to_it_when_it_is_removed() {
    let (mut ring, _folder) = ring();
    crawled(&ring, 0..1);
    crawled(&ring, 1..SITES);
    let all: Vec<BTreeMap<String, (bool, String)>> = (0..SITES).map(|site| captures(&ring, site)).collect();
    let bodies = |site: u8| all[usize::from(site)].values().filter(|(body, _)| *body).count();
    assert_eq!((0..SITES).map(bodies).sum::<usize>(), 1, "kept once: {all:?}");
    assert_eq!(bodies(0), 1);
    let led: Vec<serde_json::Value> = (0..SITES).map(|site| led(&ring, site)).collect();
    let slice = |site: u8| &led[usize::from(site)]["slice"];
    // What is in the slice of the original is as it ever was.
    let apart: Vec<u8> = (1..SITES).filter(|site| slice(*site) != slice(0)).collect();
    let writer = |site: u8| {
        let position = all[usize::from(site)].keys().next().expect("a capture");
        position.split(':').next().expect("a writer").to_owned()
    };
    assert!(apart.iter().any(|site| writer(*site) != writer(0)), "all were led by one: {all:?}");
    for site in 0..SITES {
        until("every node answers", || answered(&ring, site, true));
    }
    ring.is_polite();
    let statuses = ring.until("told", &ring.up(), |all| {
        all.iter().map(|one| one["bodies"]["referrers"].as_u64().unwrap_or(0)).sum::<u64>() >= apart.len() as u64
    });
    let sharing = statuses.iter().position(|one| one["bodies"]["referrers"].as_u64() > Some(0)).expect("one shares");
    assert!(ring.skep(sharing, &["ring"]).text().contains("refer to bodies of other slices"));
    assert!(ring.get(sharing, "/metrics").1.contains("skep_ring_bodies_saved_bytes"));
    for node in ring.up() {
        let got = ring.skep(node, &["get", &url(apart[0])]);
        assert!(got.text() == body() || captures_here(&ring, node, apart[0]).is_empty(), "node {node}");
    }

    // Its owner removes the original; nobody asked the others. A node that leads one of those who refer to it is killed meanwhile.
    let leader = statuses.iter().position(|one| one["node"] == led[usize::from(apart[0])]["leader"]);
    ring.skep(0, &["remove", &url(0), "--reason", "asked by its owner"]).exits(0);
    let killed = leader.filter(|node| *node != 0).unwrap_or(1);
    ring.kill(killed);
    until("the original is gone", || captures(&ring, 0).is_empty());
    ring.start(killed, &[]);
    ring.settled();
    for site in &apart {
        until("every node answers without the original", || answered(&ring, *site, true));
    }
    ring.until("no removed body waits", &ring.up(), |all| all.iter().all(|one| one["bodies"]["waiting"] == 0));
    for site in &apart {
        assert!(captures(&ring, *site).values().any(|(body, _)| *body), "site {site} has its own");
        until("every node answers still", || answered(&ring, *site, true));
    }
    until("nobody shows the original", || answered(&ring, 0, false));
}

/// Who leads the slice of a site.
fn led(ring: &Ring, site: u8) -> serde_json::Value {
    ring.skep(0, &["--json", "ring", "where", &url(site)]).json().pop().expect("where")
}

fn captures_here(ring: &Ring, node: usize, site: u8) -> Vec<serde_json::Value> {
    ring.skep(node, &["--json", "captures", &url(site)]).json()
}
