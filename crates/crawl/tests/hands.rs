//! Other hands than our own, and what becomes of what they bring: kept for nobody's eyes before two have seen it, and fetched again where
//! they have lied.

mod web;

use skep_archive::{Archive, OpenOptions};
use skep_crawl::hands::Others;
use skep_crawl::sharing::{Leading, Link, Node, Outlet, Share, share};
use skep_crawl::{Control, Ending, Event, Progress, Question, Run, run};
use skep_fetch::{Brought as Source, Exchange, Spool};
use skep_schedule::Hands;
use skep_schedule::hands::{Back, Believed, Brought, Offer, Round};
use skep_testweb::{HostPlan, Offence, Plan, Policy, Settings as WebSettings, Shape, Web, World};
use skep_url::Url;
use skep_warc::http::{Head, Parsed};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Fetches what it is offered at once; `judged` says what may be believed of it.
struct Theirs {
    web: Arc<Web>,
    judged: Box<dyn Fn(Vec<(Url, Exchange)>) -> Believed<Exchange> + Send + Sync>,
}

impl Theirs {
    fn fetch(&self, url: &Url) -> Exchange {
        let address = self.web.address(url.host_name()).expect("it is there");
        let mut stream = TcpStream::connect(address).expect("a connection");
        let target =
            url.as_str().split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, path)| path);
        let request = format!("GET /{target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", url.host_name());
        stream.write_all(request.as_bytes()).expect("it is sent");
        let mut response = Vec::new();
        stream.read_to_end(&mut response).expect("an answer");
        said(url, &response)
    }
}

/// An exchange that somebody says there was.
fn said(url: &Url, response: &[u8]) -> Exchange {
    let mut head = Head::new();
    let Parsed::Complete { body } = head.parse_response(response, true) else { panic!("no head") };
    let time_ms = skep_archive::system_clock();
    Exchange {
        request: format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", url.request_target(), url.host_name()).into_bytes(),
        head: Some(head),
        head_bytes: body,
        response: Spool::Memory(response.to_vec()),
        brought: Some(Source {
            time_ms,
            by: "contributor 1".into(),
            confirmed: false,
            seen_elsewhere: false,
            by_holder: false,
        }),
        ..Exchange::default()
    }
}

impl Hands<Offer<Exchange>> for Theirs {
    fn give(&self, offer: Offer<Exchange>) -> Result<(), Offer<Exchange>> {
        let asks = offer.bundle.urls.iter().filter_map(|ask| Url::parse(&ask.url).ok());
        let exchanges: Vec<(Url, Exchange)> = asks.map(|url| (url.clone(), self.fetch(&url))).collect();
        let believed = (self.judged)(exchanges);
        let judge = Box::new(move |_, _| Round::Later(Box::pin(async move { Round::Over(believed) })));
        (offer.done)(Back::Brought(Brought { exchanges: Vec::new(), again: Vec::new(), judge }));
        Ok(())
    }
}

fn started(pages: u32) -> Arc<Web> {
    let host = HostPlan::generated("bees.test", Shape::pages(pages).frozen());
    let world = World::build(Plan::new(5).host(host)).expect("a world");
    let settings = WebSettings { policy: Policy::polite(), ..WebSettings::default() };
    Arc::new(Web::start(world, settings).expect("a web"))
}

fn crawled(
    judged: impl Fn(Vec<(Url, Exchange)>) -> Believed<Exchange> + Send + Sync + 'static,
) -> (tempfile::TempDir, Arc<skep_archive::Archive>, BTreeMap<String, usize>) {
    let theirs = started(12);
    let hands = Arc::new(Theirs { web: theirs.clone(), judged: Box::new(judged) });
    crawled_by(&theirs, web::hurried(&theirs), Others { hands, only: true })
}

fn crawled_by(
    theirs: &Web,
    settings: skep_crawl::Settings,
    others: Others,
) -> (tempfile::TempDir, Arc<skep_archive::Archive>, BTreeMap<String, usize>) {
    let folder = tempfile::tempdir().expect("a folder");
    let archive = web::archive(folder.path());
    let visits = crawled_in(&archive, theirs, settings, others);
    (folder, archive, visits)
}

fn run_of(theirs: &Web, settings: skep_crawl::Settings, others: Others) -> Run {
    Run {
        settings,
        fetch: web::fetch(theirs),
        cookies: Default::default(),
        workers: 1,
        patience: Default::default(),
        watch: false,
        judges: None,
        others: Some(others),
        share: None,
    }
}

fn crawled_in(
    archive: &Arc<skep_archive::Archive>,
    theirs: &Web,
    settings: skep_crawl::Settings,
    others: Others,
) -> BTreeMap<String, usize> {
    let run_of = run_of(theirs, settings, others);
    let mut visits: BTreeMap<String, usize> = BTreeMap::new();
    let ending = run(archive, run_of, &Control::default(), &mut |event| {
        if let Event::Visited { url, .. } = event {
            *visits.entry(url).or_default() += 1;
        }
    });
    assert_eq!(ending.expect("a crawl"), Ending::Finished);
    web::is_sound(archive);
    visits
}

#[test]
fn what_one_alone_has_seen_is_private_and_what_two_have_seen_is_not() {
    let (_folder, archive, _) = crawled(|mut exchanges| {
        for (url, exchange) in &mut exchanges {
            let two = url.as_str().len().is_multiple_of(2);
            exchange.brought.as_mut().expect("by others").seen_elsewhere = two;
        }
        Believed { exchanges, again: Vec::new() }
    });
    let captures = web::captures(&archive);
    let pages: Vec<_> = captures.values().flatten().filter(|capture| capture.status == 200).collect();
    for capture in &pages {
        assert_eq!(capture.is_private(), !capture.url.len().is_multiple_of(2), "{}", capture.url);
    }
    assert!(pages.iter().any(|capture| capture.is_private()) && pages.iter().any(|capture| !capture.is_private()));
    let question = Question::Why { url: pages[0].url.clone(), name: None };
    let told = skep_crawl::answer_question(&archive, &question).expect("an answer");
    let notes: Vec<&str> = told[0]["notes"].as_array().into_iter().flatten().filter_map(|note| note.as_str()).collect();
    assert!(notes.contains(&"headers-of-one"), "{told:?}");
    let others = captures.values().flatten().filter(|capture| capture.status != 200);
    assert!(
        others.into_iter().all(|capture| !capture.is_private()),
        "a page that is not there says nothing of anybody"
    );
}

/// A node that leads everything: nobody else is there to be told anything.
struct Alone;

impl Outlet for Alone {
    fn give_up(&self, slice: u32) {
        panic!("slice {slice} can be read");
    }
    fn leader(&self, _: u32) -> Option<Node> {
        Some([1; 32])
    }
    fn send(&self, _: &str, _: Node, links: Vec<Link>, _: skep_crawl::sharing::Back) {
        panic!("everything is led here, and {} links go elsewhere", links.len());
    }
    fn polite(&self, _: u32, _: Vec<u8>, _: bool) {}
}

#[test]
fn in_a_network_what_one_alone_has_seen_is_not_kept_before_somebody_else_has_seen_it() {
    const BITS: u8 = 3;
    let theirs = started(12);
    let folder = tempfile::tempdir().expect("a folder");
    let options = OpenOptions { copies: true, bits: BITS, ..OpenOptions::create() };
    let archive = Arc::new(Archive::open(folder.path(), options).expect("an archive"));
    share(&archive.layout().settings(), [5; 32], BITS).expect("a network");
    let alone: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let seen = alone.clone();
    let judged = move |mut exchanges: Vec<(Url, Exchange)>| {
        for (url, exchange) in &mut exchanges {
            // The first time nobody else has seen every other one of them.
            let is_first =
                !url.as_str().len().is_multiple_of(2) && seen.lock().expect("no panic").insert(url.to_string());
            exchange.brought.as_mut().expect("by others").seen_elsewhere = !is_first;
        }
        Believed { exchanges, again: Vec::new() }
    };
    let hands = Arc::new(Theirs { web: theirs.clone(), judged: Box::new(judged) });
    let leading = Share { leading: Arc::new(Leading::new(BITS)), outlet: Arc::new(Alone) };
    let others = Others { hands, only: true };
    let run_of = Run { share: Some(leading), ..run_of(&theirs, web::hurried(&theirs), others) };
    let control = Control::default();
    let mut visits: BTreeMap<String, usize> = BTreeMap::new();
    let ending = run(&archive, run_of, &control.clone(), &mut |event| match event {
        Event::Began { .. } => {
            let until = Instant::now() + Duration::from_secs(3_600);
            (0..1 << BITS).for_each(|slice| assert!(control.lead(slice, until, Some(vec![Vec::new()]))));
        }
        Event::Visited { url, .. } => *visits.entry(url).or_default() += 1,
        Event::Progress(Progress { waiting: 0, out: 0, unsent: 0, .. }) if visits.len() > 12 => control.stop(),
        _ => {}
    });
    assert_eq!(ending.expect("a crawl"), Ending::Stopped);
    web::is_sound(&archive);
    let captures = web::captures(&archive);
    assert!(captures.len() >= 12 && captures.values().all(|all| all.len() == 1), "{captures:?}");
    assert!(captures.values().flatten().all(|capture| !capture.is_private()), "{captures:?}");
    let alone = alone.lock().expect("no panic").clone();
    let is_page = |url: &&String| captures.get(*url).is_some_and(|all| all[0].status == 200);
    assert!(alone.iter().filter(is_page).count() > 2, "{alone:?}");
    for (url, all) in &captures {
        let path = Url::parse(url).expect("a URL").request_target().to_owned();
        let asked = theirs.requests().iter().filter(|request| request.path == path).count();
        // What is not there is nobody's own.
        let was_alone = alone.contains(url) && all[0].status == 200;
        assert_eq!((asked, visits[url]), (1 + usize::from(was_alone), 1), "{url}");
    }
}

#[test]
fn what_only_a_liar_has_seen_is_fetched_again_once() {
    let first: Mutex<Option<String>> = Mutex::default();
    let doubted: Arc<Mutex<Option<String>>> = Arc::default();
    let told = doubted.clone();
    let (_folder, _archive, visits) = crawled(move |exchanges| {
        let mut first = first.lock().expect("no panic");
        let mut doubted = told.lock().expect("no panic");
        let again = match &*first {
            // A later bundle: whoever brought the first one is found to have lied.
            Some(url) if doubted.is_none() => {
                *doubted = Some(url.clone());
                vec![url.clone(), "http://elsewhere.test/".to_owned()]
            }
            Some(_) => Vec::new(),
            None => {
                *first = exchanges.first().map(|(url, _)| url.as_str().to_owned());
                Vec::new()
            }
        };
        Believed { exchanges, again }
    });
    let doubted = doubted.lock().expect("no panic").clone().expect("a later bundle");
    assert_eq!(visits[&doubted], 2, "{visits:?}");
    let pages = visits.iter().filter(|(url, _)| !url.ends_with("/robots.txt"));
    assert!(pages.filter(|(url, _)| **url != doubted).all(|(_, count)| *count == 1), "{visits:?}");
}

#[test]
fn what_only_a_liar_has_seen_waits_again_in_every_crawl_that_knows_it() {
    let theirs = started(3);
    let folder = tempfile::tempdir().expect("a folder");
    let archive = web::archive(folder.path());
    let named = |name: &str| skep_crawl::Settings { name: name.into(), ..web::hurried(&theirs) };
    assert_eq!(web::crawl(&archive, named("first"), web::fetch(&theirs), 1_000).0, Ending::Finished);
    let waiting = |name: &str| {
        let question = Question::Report { name: Some(name.into()), broken: false };
        let told = skep_crawl::answer_question(&archive, &question).expect("a report");
        told[0]["waiting"].as_u64().expect("a number")
    };
    assert_eq!(waiting("first"), 0);
    let page = theirs.map().hosts[0].url.clone();
    let told = AtomicBool::new(false);
    let judged = move |exchanges| {
        let again = if told.swap(true, Ordering::Relaxed) { Vec::new() } else { vec![page.clone()] };
        Believed { exchanges, again }
    };
    let hands = Arc::new(Theirs { web: theirs.clone(), judged: Box::new(judged) });
    crawled_in(&archive, &theirs, named("second"), Others { hands, only: true });
    assert_eq!((waiting("first"), waiting("second")), (1, 0));
}

/// Breaks off in the middle of the first judgement.
struct Breaking {
    theirs: Theirs,
    broken: AtomicBool,
}

impl Hands<Offer<Exchange>> for Breaking {
    fn give(&self, offer: Offer<Exchange>) -> Result<(), Offer<Exchange>> {
        if self.broken.swap(true, Ordering::Relaxed) {
            return self.theirs.give(offer);
        }
        let judge = Box::new(|_, _| panic!("a judge that breaks off"));
        (offer.done)(Back::Brought(Brought { exchanges: Vec::new(), again: Vec::new(), judge }));
        Ok(())
    }
}

#[test]
fn a_judge_that_breaks_off_ends_its_bundle_and_not_the_crawl() {
    let theirs = started(5);
    let judged = Box::new(|exchanges| Believed { exchanges, again: Vec::new() });
    let hands = Breaking { theirs: Theirs { web: theirs.clone(), judged }, broken: AtomicBool::new(false) };
    let (_folder, _archive, visits) =
        crawled_by(&theirs, web::polite(&theirs), Others { hands: Arc::new(hands), only: true });
    assert!(visits.len() >= 5 && visits.values().all(|count| *count == 1), "{visits:?}");
}

/// Asks a site for the first page of each bundle, and never comes back with it.
struct Losing(Theirs);

impl Hands<Offer<Exchange>> for Losing {
    fn give(&self, offer: Offer<Exchange>) -> Result<(), Offer<Exchange>> {
        let first = offer.bundle.urls.first().and_then(|ask| Url::parse(&ask.url).ok()).expect("a URL");
        self.0.fetch(&first);
        (offer.done)(Back::Lost);
        Ok(())
    }
}

#[test]
fn a_site_that_was_asked_for_a_bundle_that_is_lost_rests_before_we_ask_it() {
    let theirs = started(3);
    let judged = Box::new(|exchanges| Believed { exchanges, again: Vec::new() });
    let hands = Losing(Theirs { web: theirs.clone(), judged });
    let (_folder, _archive, visits) =
        crawled_by(&theirs, web::polite(&theirs), Others { hands: Arc::new(hands), only: false });
    assert!(visits.len() >= 3, "{visits:?}");
    let report = theirs.report();
    assert_eq!(report.count(Offence::SiteRest), 0, "{}", report.table());
}

/// Has no room, and somebody out there for a crawl that has ended.
struct Having(Instant);

impl Hands<Offer<Exchange>> for Having {
    fn give(&self, offer: Offer<Exchange>) -> Result<(), Offer<Exchange>> {
        Err(offer)
    }

    fn has_for(&self, site: &str) -> Option<Duration> {
        assert_eq!(site, "bees.test");
        self.0.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }
}

#[test]
fn a_site_that_somebody_has_for_a_crawl_that_has_ended_is_not_asked_by_us() {
    let theirs = started(3);
    let until = Instant::now() + Duration::from_secs(3);
    let (_folder, _archive, visits) =
        crawled_by(&theirs, web::polite(&theirs), Others { hands: Arc::new(Having(until)), only: false });
    assert!(visits.len() >= 3, "{visits:?}");
    let first_us = theirs.requests().iter().map(|request| request.start_us).min().expect("it was asked then");
    assert!(first_us >= theirs.us(until), "{first_us}");
}

/// Says of the first bundle that its site wants a day between two requests and took weeks to answer, and brings nothing that is believed; then
/// has no room any more.
struct Slowing(AtomicBool);

impl Hands<Offer<Exchange>> for Slowing {
    fn give(&self, offer: Offer<Exchange>) -> Result<(), Offer<Exchange>> {
        if self.0.swap(true, Ordering::Relaxed) {
            return Err(offer);
        }
        let first = offer.bundle.urls.first().and_then(|ask| Url::parse(&ask.url).ok()).expect("a URL");
        let rules = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nUser-agent: *\nCrawl-delay: 86400\n";
        let robots = first.robots_txt();
        let mut exchange = said(&robots, rules);
        exchange.timings.total_ms = u32::MAX;
        let nothing = || Round::Over(Believed { exchanges: Vec::new(), again: Vec::new() });
        let judge = Box::new(move |_, _| nothing());
        (offer.done)(Back::Brought(Brought { exchanges: vec![(robots, exchange)], again: Vec::new(), judge }));
        Ok(())
    }
}

#[test]
fn what_nobody_believes_of_a_site_does_not_hold_it_up() {
    let theirs = started(3);
    let hands = Arc::new(Slowing(AtomicBool::new(false)));
    let (_folder, _archive, visits) = crawled_by(&theirs, web::polite(&theirs), Others { hands, only: false });
    assert!(visits.len() >= 3, "{visits:?}");
}

#[test]
fn others_say_for_an_hour_at_most_that_a_site_wants_to_be_left_alone() {
    let theirs = started(1);
    let judged = |mut exchanges: Vec<(Url, Exchange)>| {
        for (url, exchange) in &mut exchanges {
            *exchange = said(url, b"HTTP/1.1 503 Busy\r\nRetry-After: 604800\r\nContent-Length: 0\r\n\r\n");
        }
        Believed { exchanges, again: Vec::new() }
    };
    let hands = Arc::new(Theirs { web: theirs.clone(), judged: Box::new(judged) });
    let folder = tempfile::tempdir().expect("a folder");
    let archive = web::archive(folder.path());
    let begun_ms = skep_archive::system_clock();
    let control = Control::default();
    let settings = web::polite(&theirs);
    let run_of = run_of(&theirs, settings, Others { hands, only: true });
    let stop = control.clone();
    run(&archive, run_of, &control, &mut |event| {
        if matches!(event, Event::Visited { .. }) {
            stop.stop();
        }
    })
    .expect("a crawl");
    let question = Question::Queue { host: None, limit: 10 };
    let told = skep_crawl::answer_question(&archive, &question).expect("a queue");
    let until = told[0]["parked_until"].as_str().and_then(|time| skep_warc::date::parse_ms(time.as_bytes()));
    let wait_ms = until.expect("it is left alone") - begun_ms;
    assert!((1..=3_700_000).contains(&wait_ms), "{wait_ms}");
}
