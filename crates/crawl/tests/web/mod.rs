//! A web on loopback addresses, and crawls of it in this process.
#![allow(dead_code, missing_docs)]

pub mod scripted;

use skep_archive::captures::{Match, Query};
use skep_archive::{Archive, Capture, CaptureKind, OpenOptions};
use skep_crawl::{Control, Ending, Event, Run, Settings, Speed, run};
use skep_schedule::retry::Patience;
use skep_testweb::Web;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// How the hosts of a web are found and trusted.
pub fn fetch(web: &Web) -> skep_fetch::Settings {
    let mut fetch = skep_fetch::Settings::new("skep/0 (test)");
    fetch.allow_private = true;
    fetch.roots_pem = Some(web.authority_pem().as_bytes().to_vec());
    let resolve = web.map().hosts.iter().flat_map(|place| &place.resolve);
    fetch.resolve = resolve.map(|resolve| resolve.parse().expect("an override")).collect();
    fetch
}

/// A crawl of all hosts of a web, which are not ours.
pub fn polite(web: &Web) -> Settings {
    let seeds = web.map().hosts.iter().map(|place| place.url.clone()).collect();
    Settings { name: "test".into(), seeds, allow_private: true, ..Settings::default() }
}

/// The same of hosts that are ours: as fast as it goes.
pub fn hurried(web: &Web) -> Settings {
    let own = web.map().hosts.iter().map(|place| place.host.clone()).collect();
    Settings { own, pace: Speed::None, ..polite(web) }
}

/// An archive in this folder.
pub fn archive(folder: &Path) -> Arc<Archive> {
    Arc::new(Archive::open(folder, OpenOptions::create()).expect("an archive"))
}

/// Crawls with one worker until it ends, waits in thousandths of the rule.
pub fn crawl(
    archive: &Arc<Archive>,
    settings: Settings,
    fetch: skep_fetch::Settings,
    patience_permille: u32,
) -> (Ending, Vec<Event>) {
    let patience = Patience { scale_permille: patience_permille, ..Patience::default() };
    let run_of = Run {
        settings,
        fetch,
        cookies: Default::default(),
        workers: 1,
        patience,
        watch: false,
        judges: None,
        others: None,
        share: None,
    };
    let mut events = Vec::new();
    let ending = run(archive, run_of, &Control::default(), &mut |event| events.push(event)).expect("a crawl");
    (ending, events)
}

/// Captures by URL, oldest first, robots.txt apart.
pub fn captures(archive: &Archive) -> BTreeMap<String, Vec<Capture>> {
    archive.settle().expect("views that follow");
    let query = Query { kinds: vec![CaptureKind::Response, CaptureKind::Revisit], ..Query::new(Match::All) };
    let mut all: BTreeMap<String, Vec<Capture>> = BTreeMap::new();
    for capture in archive.views().captures.query(&query).expect("captures") {
        let capture = capture.expect("a capture");
        if !capture.url.ends_with("/robots.txt") {
            all.entry(capture.url.clone()).or_default().push(capture);
        }
    }
    all.values_mut().for_each(|captures| captures.sort_by_key(|capture| capture.time_ms));
    all
}

/// The archive is as it should be.
pub fn is_sound(archive: &Archive) {
    let mut findings = Vec::new();
    archive.check(&mut |finding| findings.push(finding)).expect("a check");
    assert!(findings.is_empty(), "{findings:?}");
}
