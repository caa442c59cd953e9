//! Crawls of a small web, in one process.

use std::collections::BTreeSet;
use std::sync::Arc;

use skep_archive::captures::{Match, Query};
use skep_archive::{Archive, CaptureKind, OpenOptions};
use skep_crawl::{Control, Ending, Event, Run, Settings, Speed, run};
use skep_testweb::{HostPlan, Plan, Shape, Web, World};

const NAME: &str = "docs.example-1.test";

fn web(pages: u32) -> Web {
    let plan = Plan::new(7).host(HostPlan::generated(NAME, Shape::pages(pages).frozen()));
    Web::start(World::build(plan).unwrap(), skep_testweb::Settings::default()).unwrap()
}

fn run_of(web: &Web) -> Run {
    let place = &web.map().hosts[0];
    let mut fetch = skep_fetch::Settings::new("skep-test");
    fetch.allow_private = true;
    fetch.resolve =
        web.map().hosts.iter().flat_map(|host| &host.resolve).map(|resolve| resolve.parse().unwrap()).collect();
    let seeds = vec![place.url.clone()];
    let settings = Settings {
        name: "test".into(),
        seeds,
        pace: Speed::None,
        own: vec![NAME.into()],
        allow_private: true,
        ..Settings::default()
    };
    Run {
        settings,
        fetch,
        cookies: Default::default(),
        workers: 1,
        patience: Default::default(),
        watch: false,
        judges: None,
        others: None,
        share: None,
    }
}

fn captured(archive: &Archive) -> BTreeSet<String> {
    archive.settle().unwrap();
    let query = Query { kinds: vec![CaptureKind::Response, CaptureKind::Revisit], ..Query::new(Match::All) };
    let captures = archive.views().captures.query(&query).unwrap();
    captures
        .map(|capture| capture.unwrap())
        .filter(|capture| capture.status == 200)
        .map(|capture| capture.url)
        .collect()
}

#[test]
fn a_site_is_archived_whole() {
    let web = web(60);
    let folder = tempfile::tempdir().unwrap();
    let archive = Arc::new(Archive::open(folder.path(), OpenOptions::create()).unwrap());
    let mut events = Vec::new();
    let ending = run(&archive, run_of(&web), &Control::default(), &mut |event| events.push(event)).unwrap();
    assert_eq!(ending, Ending::Finished);
    for event in &events {
        if let Event::Visited { url, outcome, .. } = event {
            eprintln!("{outcome} {url}");
        }
    }
    let reachable = web.world().reachable(&[], web.now(), |_| true).unwrap();
    let expected: BTreeSet<String> =
        reachable.into_iter().filter(|entry| entry.status == 200).map(|entry| entry.url).collect();
    assert_eq!(captured(&archive), expected);
}
