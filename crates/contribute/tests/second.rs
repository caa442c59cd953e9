//! What one contributor brings is held against what another one and the node see: the real node, spoken to as contributors speak.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use skep_archive::Identity;
use skep_contribute::Node;
use skep_contribute::limits::{ALONE_MAX, COMING_BYTES_MAX, DOUBTED_URLS_MAX, GOOD_BUNDLES, PIECE_BYTES_MAX};
use skep_contribute::message::{self, Answer, Bundle, Fetched, Request, VERSION, Whole};
use skep_contribute::{envelope, known_pages, seen};
use skep_fetch::Exchange;
use skep_schedule::hands::{Back, Believed, Brought, Known, Offer, Round, Rules};
use skep_schedule::{Bundle as Leased, BundleUrl, Hands, LeaseId, Pace};
use skep_url::Url;

/// What stands where; what is not named is not there.
type Pages = BTreeMap<String, String>;

const PATIENCE: Duration = Duration::from_secs(30);
const NOW_MS: i64 = 1_790_000_000_000;

struct World {
    folder: tempfile::TempDir,
    node: Arc<Node>,
    truth: Pages,
    /// Rules that contributors are told; else they ask for them.
    robots: Option<Rules>,
}

fn url(name: &str) -> String {
    format!("http://a.test/{name}")
}

impl World {
    fn new(settings: &[(&str, &str)]) -> World {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in settings {
            std::fs::write(folder.path().join(name), text).expect("a table");
        }
        let node = Node::start(folder.path(), Identity::from_secret([9; 32]), Arc::new(|| NOW_MS)).expect("a node");
        let truth = (0..8).map(|n| (url(&n.to_string()), format!("<p>This is page {n}"))).collect();
        World { folder, node, truth, robots: Some(Rules::default()) }
    }

    /// Offers these pages. `known`: the archive has them as they are.
    fn offer(&self, names: &[&str], known: bool) -> Receiver<Back<Exchange>> {
        let urls: Vec<BundleUrl> =
            names.iter().map(|name| BundleUrl { url: url(name), ..BundleUrl::default() }).collect();
        let known = urls.iter().map(|ask| {
            let body = self.truth.get(&ask.url).filter(|_| known)?;
            Some(Known { digest: seen::sha1(body.as_bytes()), keyed: None, is_old: false })
        });
        let (told, came) = channel();
        let told = Mutex::new(told);
        let offer = Offer {
            known: known.collect(),
            bundle: Leased {
                lease: LeaseId(1),
                host: "a.test:80".into(),
                site: "a.test".into(),
                urls,
                pace: Pace::None,
                not_before_ms: 0,
                deadline_ms: 0,
            },
            nonce: [3; 16],
            robots: self.robots,
            lease: Duration::from_secs(540),
            only: true,
            is_wanted: Box::new(|| true),
            done: Box::new(move |back| drop(told.lock().expect("no panic").send(back))),
        };
        assert!(self.node.give(offer).is_ok(), "it is taken");
        came
    }

    fn volunteer(&self, number: u8, address: &str) -> Volunteer {
        let volunteer = Volunteer {
            node: self.node.clone(),
            identity: Identity::from_secret([number; 32]),
            address: address.parse().expect("an address"),
            header: "",
        };
        let mut proof = 0;
        loop {
            let hello = Request::Hello { version: VERSION, proof, holds: Vec::new(), team: "bees".into() };
            match volunteer.say(&hello) {
                Answer::Welcome { .. } => return volunteer,
                Answer::Work { bits, seed } => proof = message::prove(&seed, &volunteer.identity.public(), bits),
                other => panic!("{other:?}"),
            }
        }
    }

    /// One whom a person vouches for, so that he checks others.
    fn proven(&self, number: u8, address: &str) -> Volunteer {
        let volunteer = self.volunteer(number, address);
        self.node.decide(&hex(&volunteer.identity.public()), true).expect("known");
        assert!(volunteer.ask().is_none(), "there, and nothing to do");
        volunteer
    }

    fn standing(&self, who: &Volunteer, name: &str) -> serde_json::Value {
        let key = hex(&who.identity.public());
        let report = self.node.report();
        let list = report["contributors"].as_array().expect("a list");
        list.iter().find(|one| one["key"] == key.as_str()).expect("known")[name].clone()
    }

    /// The node looks at what it is to look at, as often as it is asked to.
    fn judged(&self, mut brought: Brought<Exchange>) -> (Believed<Exchange>, Vec<String>) {
        let mut looked = Vec::new();
        loop {
            let asked: Vec<Url> = brought.again.iter().map(|ask| Url::parse(&ask.url).expect("a URL")).collect();
            looked.extend(asked.iter().map(|url| url.as_str().to_owned()));
            let ours = asked.into_iter().map(|url| (url.clone(), exchange(&self.truth, url.as_str()))).collect();
            match (brought.judge)(brought.exchanges, ours) {
                Round::Over(believed) => return (believed, looked),
                Round::Again(more) => brought = more,
                Round::Later(later) => match skep_contribute::block_on(async { Ok(later.await) }) {
                    Ok(Round::Over(believed)) => return (believed, looked),
                    _ => panic!("it is over after that"),
                },
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn exchange(pages: &Pages, url: &str) -> Exchange {
    seen::exchange(&whole(pages, url)).expect("an exchange")
}

fn whole(pages: &Pages, url: &str) -> Whole {
    whole_with(pages, url, "")
}

fn whole_with(pages: &Pages, url: &str, header: &str) -> Whole {
    let (status, body) = match pages.get(url).map(String::as_str) {
        Some("") => ("451 No", ""),
        Some(body) => ("200 OK", body),
        None => ("404 Not Found", "<p>Nothing"),
    };
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\n{header}Content-Length: {}\r\n\r\n", body.len());
    let response = format!("{head}{body}").into_bytes();
    Whole { response, head_bytes: head.len() as u32, ..Whole::default() }
}

struct Volunteer {
    node: Arc<Node>,
    identity: Identity,
    address: IpAddr,
    /// A line that it puts into each answer.
    header: &'static str,
}

impl Volunteer {
    fn say(&self, request: &Request) -> Answer {
        let sealed = envelope::seal_requests(std::slice::from_ref(request), &self.node.key(), &self.identity, NOW_MS);
        let answer = self.node.handle(self.address, &sealed);
        let opened = envelope::open_answers(&answer, &envelope::signature_of(&sealed)).expect("an answer");
        opened.message.into_iter().next().expect("an answer")
    }

    fn ask(&self) -> Option<Bundle> {
        match self.say(&Request::Ask { bundles: 1 }) {
            Answer::Bundles(mut bundles) => bundles.pop(),
            Answer::Later { .. } => None,
            other => panic!("{other:?}"),
        }
    }

    /// Asks until there is something to do, for it or for the node.
    fn wait(&self, came: &Receiver<Back<Exchange>>) -> Result<Bundle, Back<Exchange>> {
        let since = Instant::now();
        loop {
            if let Some(bundle) = self.ask() {
                return Ok(bundle);
            }
            if let Ok(back) = came.recv_timeout(Duration::from_millis(20)) {
                return Err(back);
            }
            assert!(since.elapsed() < PATIENCE, "nothing came");
        }
    }

    /// Fetches a bundle from a web of its own, and returns it.
    fn bring(&self, bundle: &Bundle, pages: &Pages) {
        let robots = bundle.robots.is_none().then(|| (message::ROBOTS, url("robots.txt")));
        let tasks = bundle.urls.iter().enumerate().map(|(number, task)| (number as u16, task.url.clone()));
        let (mut results, mut wholes) = (Vec::new(), BTreeMap::new());
        for (number, text) in tasks.chain(robots) {
            let whole = whole_with(pages, &text, self.header);
            let made = seen::exchange(&whole).expect("an exchange");
            let told = seen::fetched(number, &Url::parse(&text).expect("a URL"), &made, &bundle.how(number));
            let text = if number < message::ROBOTS { String::new() } else { text };
            results.push(Fetched { time_ms: NOW_MS, url: text, ..told });
            wholes.insert(number, whole);
        }
        self.give_back(bundle.id, &results, &wholes);
    }

    fn give_back(&self, bundle: u64, results: &[Fetched], wholes: &BTreeMap<u16, Whole>) {
        loop {
            match self.say(&Request::Results { bundle, results: results.to_vec() }) {
                Answer::Done { .. } => return,
                Answer::Want { bodies, .. } => {
                    for (number, offset) in bodies {
                        let bytes = envelope::plain(&wholes[&number]);
                        let total = bytes.len() as u64;
                        match self.say(&Request::Body { bundle, number, offset, total, bytes }) {
                            Answer::Taken { offset } => assert_eq!(offset, total),
                            Answer::Done { .. } => return,
                            other => panic!("{other:?}"),
                        }
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

fn brought(came: &Receiver<Back<Exchange>>) -> Brought<Exchange> {
    match came.recv_timeout(PATIENCE).expect("something comes back") {
        Back::Brought(brought) => brought,
        Back::Nobody | Back::Lost => panic!("somebody came back"),
    }
}

/// `first` brings what it sees of these pages, `second` checks it; the node looks at some pages itself, so it is done until it does not.
fn checked(
    world: &World,
    first: (&Volunteer, &Pages),
    second: (&Volunteer, &Pages),
    names: &[&str],
) -> Brought<Exchange> {
    loop {
        if let Some(brought) = checked_once(world, first, second, names) {
            return brought;
        }
    }
}

/// `None` if the node looked itself.
fn checked_once(
    world: &World,
    (first, theirs): (&Volunteer, &Pages),
    (second, seconds): (&Volunteer, &Pages),
    names: &[&str],
) -> Option<Brought<Exchange>> {
    let came = world.offer(names, false);
    first.bring(&first.ask().expect("a bundle"), theirs);
    match second.wait(&came) {
        Ok(check) => {
            assert!(first.ask().is_none(), "nobody checks himself");
            second.bring(&check, seconds);
            let brought = brought(&came);
            if check.urls.len() == names.len() {
                return Some(brought); // a newcomer, and pages that nobody has seen
            }
            let ours: Vec<&String> = brought.again.iter().map(|ask| &ask.url).collect();
            let theirs = check.urls.iter().map(|task| &task.url);
            assert!(names.iter().all(|name| theirs.clone().chain(ours.clone()).any(|seen| *seen == url(name))));
            world.judged(brought);
            None
        }
        Err(Back::Brought(ours)) => {
            assert_eq!(ours.again.len(), names.len(), "the node looks itself");
            world.judged(ours);
            None
        }
        Err(Back::Nobody | Back::Lost) => panic!("somebody came back"),
    }
}

/// The same, whoever looks: what is believed in the end, and what the node looked at.
fn settled(
    world: &World,
    (first, theirs): (&Volunteer, &Pages),
    (second, seconds): (&Volunteer, &Pages),
    names: &[&str],
) -> (Believed<Exchange>, Vec<String>) {
    let came = world.offer(names, false);
    first.bring(&first.ask().expect("a bundle"), theirs);
    let brought = match second.wait(&came) {
        Ok(check) => {
            second.bring(&check, seconds);
            brought(&came)
        }
        Err(Back::Brought(ours)) => ours,
        Err(Back::Nobody | Back::Lost) => panic!("somebody came back"),
    };
    world.judged(brought)
}

#[test]
fn another_network_confirms_and_the_node_need_not_look() {
    let world = World::new(&[]);
    let second = world.proven(2, "192.0.2.1");
    let first = world.volunteer(1, "198.51.100.1");
    let brought = checked(&world, (&first, &world.truth), (&second, &world.truth), &["0", "1", "2"]);
    let (believed, looked) = world.judged(brought);
    assert!(looked.is_empty(), "{looked:?}");
    assert_eq!(believed.exchanges.len(), 3);
    for (url, exchange) in &believed.exchanges {
        let source = exchange.brought.as_ref().expect("by others");
        assert!(source.confirmed && source.seen_elsewhere && source.by.starts_with("contributor "), "{url}");
    }
    assert!(world.standing(&first, "credit").as_u64() >= Some(3), "confirmed and wanted");
    assert!(world.standing(&second, "checks").as_u64() >= Some(3));
    assert_eq!(world.node.report()["teams"][0]["members"], 2);
}

#[test]
fn one_of_the_same_network_and_a_newcomer_check_nobody() {
    let world = World::new(&[]);
    let same = world.proven(2, "198.51.100.9");
    let other = world.volunteer(3, "192.0.2.1");
    assert!(other.ask().is_none());
    let first = world.volunteer(1, "198.51.100.1");
    let came = world.offer(&["0", "1"], false);
    first.bring(&first.ask().expect("a bundle"), &world.truth);
    let brought = brought(&came);
    assert_eq!(brought.again.len(), 2, "the node looks itself");
    assert!(same.ask().is_none() && other.ask().is_none());
}

#[test]
fn alone_again_and_again_is_a_lie_that_suspends_and_sends_for_what_nobody_else_saw() {
    // Where the node happens to look itself nobody is asked besides: begun anew until another looks.
    let pages = ["0", "1", "2"];
    let (world, liar, second, altered, unchecked, brought) = loop {
        let world = World::new(&[]);
        let liar = world.proven(1, "198.51.100.1");
        // What it brought before, of pages that the archive has, was checked by nobody: at 2 % of URLs that is nearly always so.
        let mut unchecked = Vec::new();
        for name in ["5", "6", "7"] {
            let came = world.offer(&[name], true);
            liar.bring(&liar.ask().expect("a bundle"), &world.truth);
            let brought = brought(&came);
            if brought.again.is_empty() {
                unchecked.push(url(name));
            }
            world.judged(brought);
        }
        let second = world.proven(2, "192.0.2.1");
        let mut altered = world.truth.clone();
        altered.insert(url("1"), "<p>Buy this".into());
        if let Some(brought) = checked_once(&world, (&liar, &altered), (&second, &world.truth), &pages) {
            break (world, liar, second, altered, unchecked, brought);
        }
    };
    assert_eq!(brought.again.iter().map(|ask| ask.url.clone()).collect::<Vec<_>>(), [url("1")], "where they differ");
    let (mut believed, looked) = world.judged(brought);
    assert_eq!(looked, [url("1"), url("1")], "the node looks, and looks again");
    // Once, the page may have changed meanwhile: it is not believed, and checked in full from then on.
    let mut times = 1;
    while world.standing(&liar, "lies") == 0 {
        assert!(believed.again.is_empty() && times < ALONE_MAX, "{times} times");
        assert_eq!(world.standing(&liar, "trust"), "new");
        let kept: Vec<&str> = believed.exchanges.iter().map(|(url, _)| url.as_str()).collect();
        assert!(kept.contains(&url("1").as_str()), "what the node saw is kept: {kept:?}");
        assert!(believed.exchanges.iter().all(|(_, exchange)| exchange.brought.is_none()), "and nothing else");
        believed = settled(&world, (&liar, &altered), (&second, &world.truth), &pages).0;
        times += 1;
    }
    assert_eq!(times, ALONE_MAX);
    assert_eq!(believed.again, unchecked, "what nobody else saw is fetched again");
    assert!(believed.exchanges.iter().all(|(_, exchange)| exchange.brought.is_none()));
    assert_eq!(world.standing(&liar, "trust"), "suspended");
    assert_eq!((world.standing(&liar, "lies"), world.standing(&second, "lies")), (1.into(), 0.into()));
    assert!(matches!(liar.say(&Request::Ask { bundles: 1 }), Answer::Stop { .. }));
    drop(world.folder);
}

#[test]
fn whoever_was_alone_gets_short_bundles_until_he_is_believed_again() {
    let world = World::new(&[]);
    let one = world.proven(1, "198.51.100.1");
    let names: Vec<String> = (0..DOUBTED_URLS_MAX + 10).map(|number| number.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let bring = |names: &[&str], pages: &Pages| {
        let came = world.offer(names, false);
        let bundle = one.ask().expect("a bundle");
        one.bring(&bundle, pages);
        (bundle.urls.len(), world.judged(brought(&came)).0)
    };
    assert_eq!(bring(&names, &world.truth).0, names.len());
    let mut before = world.truth.clone();
    before.insert(url("1"), "<p>As it was a minute ago".into());
    bring(&["0", "1"], &before);
    assert_eq!((world.standing(&one, "trust"), world.standing(&one, "lies")), ("new".into(), 0.into()));
    for _ in 0..GOOD_BUNDLES {
        let (given, believed) = bring(&names, &world.truth);
        assert_eq!((given, believed.exchanges.len()), (DOUBTED_URLS_MAX, DOUBTED_URLS_MAX), "the others wait again");
    }
    assert_eq!(bring(&names, &world.truth).0, names.len());
    assert_eq!(world.standing(&one, "trust"), "trusted");
}

#[test]
fn one_who_checks_and_is_alone_checks_nobody_any_more() {
    // Where the node happens to look itself this one is caught before it can speak against another: begun anew until it does.
    let (world, first, second, brought) = loop {
        let world = World::new(&[]);
        let second = world.proven(2, "192.0.2.1");
        let first = world.volunteer(1, "198.51.100.1");
        let mut altered = world.truth.clone();
        altered.insert(url("1"), "<p>Something else".into());
        if let Some(brought) = checked_once(&world, (&first, &world.truth), (&second, &altered), &["0", "1"]) {
            break (world, first, second, brought);
        }
    };
    let (believed, _) = world.judged(brought);
    assert_eq!(believed.exchanges.len(), 2, "the first one was right");
    assert_eq!((world.standing(&second, "trust"), world.standing(&first, "lies")), ("new".into(), 0.into()));
    let came = world.offer(&["2"], false);
    first.bring(&first.ask().expect("a bundle"), &world.truth);
    assert_eq!(self::brought(&came).again.len(), 1, "the node looks itself");
    assert!(second.ask().is_none());
}

#[test]
fn honest_bytes_under_forged_headers_are_confirmed_by_nobody() {
    let world = World::new(&[]);
    let second = world.proven(2, "192.0.2.1");
    for header in
        ["X-Robots-Tag: noindex\r\n", "Location: http://evil.test/\r\n", "Refresh: 0; url=http://evil.test/\r\n"]
    {
        let first = Volunteer { header, ..world.volunteer(header.len() as u8, "198.51.100.1") };
        let (believed, looked) = settled(&world, (&first, &world.truth), (&second, &world.truth), &["0", "1"]);
        assert_eq!(looked.len(), 4, "the node looks twice where they differ: {looked:?}");
        assert_eq!(believed.exchanges.len(), 2);
        for (url, exchange) in &believed.exchanges {
            assert!(exchange.brought.is_none(), "{url}: what the node saw is kept");
        }
    }
}

#[test]
fn whoever_says_that_he_was_turned_away_earns_no_trust_by_it() {
    let world = World::new(&[]);
    let lazy = world.proven(1, "198.51.100.1");
    let nothing: Pages = world.truth.keys().map(|url| (url.clone(), String::new())).collect();
    let came = world.offer(&["0", "1", "2"], true);
    lazy.bring(&lazy.ask().expect("a bundle"), &nothing);
    let (believed, looked) = world.judged(brought(&came));
    assert_eq!(looked.len(), 3, "all of it is looked at, whoever says so");
    assert!(believed.exchanges.iter().all(|(_, exchange)| exchange.brought.is_none() && exchange.vantages.len() == 1));
    assert_eq!((world.standing(&lazy, "trust"), world.standing(&lazy, "good")), ("new".into(), 0.into()));
}

#[test]
fn rules_of_a_host_are_looked_at_whoever_brings_them() {
    let mut world = World::new(&[]);
    world.robots = None;
    world.truth.insert(url("robots.txt"), "User-agent: *\nDisallow: /\n".into());
    let first = world.proven(1, "198.51.100.1");
    let mut open = world.truth.clone();
    open.remove(&url("robots.txt"));
    let came = world.offer(&["0"], true);
    first.bring(&first.ask().expect("a bundle"), &open);
    let (believed, looked) = world.judged(brought(&came));
    assert!(looked.contains(&url("robots.txt")), "{looked:?}");
    let kept = believed.exchanges.iter().find(|(found, _)| found.as_str() == url("robots.txt")).expect("kept");
    assert_eq!((kept.1.status(), kept.1.brought.is_none()), (Some(200), true));
}

#[test]
fn what_nobody_got_to_look_at_is_nobodys_word_and_earns_no_trust() {
    let world = World::new(&[]);
    let late = world.volunteer(1, "198.51.100.1");
    let mut altered = world.truth.clone();
    altered.insert(url("1"), "<p>This is a lie".into());
    for _ in 0..GOOD_BUNDLES {
        let came = world.offer(&["0", "1"], true);
        late.bring(&late.ask().expect("a bundle"), &altered);
        let Brought { exchanges, again, judge } = brought(&came);
        assert_eq!((exchanges.len(), again.len()), (2, 2), "all that a newcomer brings is to be looked at");
        // The time is over before the node gets to it.
        let Round::Over(believed) = judge(exchanges, Vec::new()) else { panic!("it is over") };
        assert!(believed.exchanges.is_empty() && believed.again.is_empty());
    }
    assert_eq!((world.standing(&late, "trust"), world.standing(&late, "good")), ("new".into(), 0.into()));
}

/// What a volunteer says it saw on the way to robots.txt, file by file, beside one page.
fn by_way_of(world: &World, way: &[(&str, Whole)]) -> Brought<Exchange> {
    let volunteer = world.volunteer(1, "198.51.100.1");
    let came = world.offer(&["0"], true);
    let bundle = volunteer.ask().expect("a bundle");
    let (mut results, mut wholes) = (Vec::new(), BTreeMap::new());
    let page = (url("0"), whole(&world.truth, &url("0")));
    let way = way.iter().map(|(text, whole)| ((*text).to_owned(), whole.clone()));
    let numbers = (message::ROBOTS..).zip(way).chain([(0, page)]);
    for (number, (text, whole)) in numbers {
        let made = seen::exchange(&whole).expect("an exchange");
        let told = seen::fetched(number, &Url::parse(&text).expect("a URL"), &made, &bundle.how(number));
        let url = if number < message::ROBOTS { String::new() } else { text };
        results.push(Fetched { time_ms: NOW_MS, url, ..told });
        wholes.insert(number, whole);
    }
    volunteer.give_back(bundle.id, &results, &wholes);
    brought(&came)
}

fn answering(head: &str, body: &str) -> Whole {
    let head = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n", body.len());
    Whole { head_bytes: head.len() as u32, response: format!("{head}{body}").into_bytes(), ..Whole::default() }
}

#[test]
fn no_contributor_sends_the_node_where_no_site_leads_it() {
    let mut world = World::new(&[]);
    world.robots = None;
    let (robots, victim) = (url("robots.txt"), "http://victim.test/delete?all");
    let led = answering("301 Moved\r\nLocation: http://b.test/robots.txt", "");
    let rules = || answering("200 OK", "User-agent: *\n");
    let way = |brought: &Brought<Exchange>| -> Vec<String> {
        let urls = brought.exchanges.iter().map(|(url, _)| url.as_str().to_owned());
        assert!(!brought.again.iter().any(|ask| ask.url == victim));
        urls.filter(|url| url != &self::url("0")).collect()
    };
    let honest = by_way_of(&world, &[(&robots, led.clone()), ("http://b.test/robots.txt", rules())]);
    assert_eq!(way(&honest), [robots.clone(), "http://b.test/robots.txt".into()]);
    assert_eq!(way(&by_way_of(&world, &[(&robots, rules()), (victim, rules())])), std::slice::from_ref(&robots));
    assert_eq!(way(&by_way_of(&world, &[(&robots, led), (victim, rules())])), std::slice::from_ref(&robots));
    assert!(way(&by_way_of(&world, &[(victim, rules())])).is_empty());
}

#[test]
fn no_contributor_has_a_site_rest_for_a_day() {
    let mut world = World::new(&[]);
    world.robots = None;
    let _somebody_who_checks = world.proven(2, "203.0.113.1");
    let made_up = answering("200 OK", "User-agent: *\nCrawl-delay: 86400\n");
    let brought = by_way_of(&world, &[(&url("robots.txt"), made_up)]);
    assert!(brought.exchanges.is_empty() && brought.again.is_empty(), "the node asks for the rules itself");
    let (believed, _) = world.judged(brought);
    assert!(believed.exchanges.is_empty());
    assert_eq!(world.standing(&world.volunteer(1, "198.51.100.1"), "good"), 0);
}

#[test]
fn a_request_for_something_else_is_kept_by_nobody() {
    let mut world = World::new(&[]);
    world.robots = None;
    let sent = |line: &str| {
        let robots = answering("200 OK", "User-agent: *\n");
        let request = format!("GET {line} HTTP/1.1\r\nHost: a.test\r\n\r\n").into_bytes();
        let brought = by_way_of(&world, &[(&url("robots.txt"), Whole { request, ..robots })]);
        brought.exchanges.iter().any(|(found, _)| found.as_str() == url("robots.txt"))
    };
    assert!(sent("/robots.txt") && !sent("/buy-my-things"));
}

#[test]
fn what_is_being_looked_at_counts_against_whoever_brought_it() {
    const PAGE: usize = 60 << 20;
    let world = World::new(&[]);
    let one = world.volunteer(1, "198.51.100.1");
    let whole = answering("200 OK\r\nContent-Type: application/octet-stream", &"x".repeat(PAGE));
    let (made, bytes) = (seen::exchange(&whole).expect("an exchange"), envelope::plain(&whole));
    let total = bytes.len() as u64;
    let bring = || {
        let came = world.offer(&["0"], false);
        let bundle = one.ask().expect("a bundle");
        let results = vec![seen::fetched(0, &Url::parse(&url("0")).expect("a URL"), &made, &bundle.how(0))];
        one.say(&Request::Results { bundle: bundle.id, results });
        for (piece, at) in bytes.chunks(PIECE_BYTES_MAX).zip((0..).step_by(PIECE_BYTES_MAX)) {
            let (bundle, bytes) = (bundle.id, piece.to_vec());
            match one.say(&Request::Body { bundle, number: 0, offset: at, total, bytes }) {
                Answer::Taken { .. } => {}
                Answer::Done { .. } => return Ok(brought(&came)),
                Answer::Refused { why } => {
                    one.say(&Request::Leave);
                    return Err(why);
                }
                other => panic!("{other:?}"),
            }
        }
        panic!("it was not the last piece")
    };
    let most = COMING_BYTES_MAX as usize / PAGE;
    let held: Vec<_> = (0..most).map(|_| bring().expect("there is room")).collect();
    assert_eq!(bring().err(), Some(message::Refusal::TooMuch), "nobody has looked at it yet");
    drop(held);
    assert!(bring().is_ok(), "there is room again");
}

#[test]
fn what_is_judged_when_its_source_is_found_to_lie_is_not_believed() {
    let world = World::new(&[]);
    let liar = world.proven(1, "198.51.100.1");
    let came = world.offer(&["0", "1"], true);
    liar.bring(&liar.ask().expect("a bundle"), &world.truth);
    let brought = brought(&came);
    world.node.decide(&hex(&liar.identity.public()), false).expect("known");
    let (believed, _) = world.judged(brought);
    assert!(believed.exchanges.iter().all(|(_, exchange)| exchange.brought.is_none()));
    assert_eq!(world.standing(&liar, "bundles"), 0, "nothing of it counts");
}

#[test]
fn what_a_suspended_one_has_in_hand_goes_to_nobody_else_while_he_may_be_fetching_it() {
    let world = World::new(&[]);
    let liar = world.volunteer(1, "198.51.100.1");
    let came = world.offer(&["0"], false);
    let bundle = liar.ask().expect("a bundle");
    let key = hex(&liar.identity.public());
    world.node.decide(&key, false).expect("known");
    assert_eq!(came.recv_timeout(Duration::from_secs(1)).err(), Some(RecvTimeoutError::Timeout));
    assert_eq!(world.node.out(&key).len(), 1, "until its lease is over");
    let brings = Request::Results { bundle: bundle.id, results: Vec::new() };
    assert!(matches!(liar.say(&brings), Answer::Stop { .. }), "and nothing of it is taken");
}

#[test]
fn a_node_that_begins_again_knows_what_was_out() {
    let mut world = World::new(&[]);
    let one = world.volunteer(1, "198.51.100.1");
    let _came = world.offer(&["0"], false);
    let bundle = one.ask().expect("a bundle");
    let since = Instant::now();
    let file = world.folder.path().join("taken.json");
    while !std::fs::read_to_string(&file).is_ok_and(|text| text.contains("a.test")) {
        assert!(since.elapsed() < PATIENCE, "it is never written");
        std::thread::sleep(Duration::from_millis(20));
    }
    // As after a kill: nothing was said to anybody.
    let again = Node::start(world.folder.path(), Identity::from_secret([9; 32]), Arc::new(|| NOW_MS)).expect("a node");
    world.node = again;
    assert!(world.node.has_for("a.test").is_some() && world.node.has_for("b.test").is_none());
    let one = Volunteer { node: world.node.clone(), ..one };
    assert_eq!(world.node.out(&hex(&one.identity.public())).len(), 1);
    let _came = world.offer(&["0"], false);
    let other = world.volunteer(2, "192.0.2.1");
    assert!(other.ask().is_none(), "it may be fetched just now");
    let brings = Request::Results { bundle: bundle.id, results: Vec::new() };
    assert_eq!(one.say(&brings), Answer::Refused { why: message::Refusal::NotYours });
}

#[test]
fn bodies_that_are_begun_anew_or_forged_leave_nothing_behind() {
    let world = World::new(&[]);
    let one = world.volunteer(1, "198.51.100.1");
    let results = [Fetched { status: 200, digest: message::Digest::Short([7; 8]), ..Fetched::default() }];
    for round in 0..3 {
        let came = world.offer(&["0"], false);
        let bundle = one.ask().expect("a bundle").id;
        let wants = one.say(&Request::Results { bundle, results: results.to_vec() });
        assert!(matches!(wants, Answer::Want { .. }), "{wants:?}");
        // Each piece is of another whole than the one before; at last one is whole, and is not what was announced.
        let piece = |total: u64, offset: u64| {
            let bytes = vec![0; (total - offset).min(PIECE_BYTES_MAX as u64) as usize];
            one.say(&Request::Body { bundle, number: 0, offset, total, bytes })
        };
        for total in 0..200 {
            let total = (2 * PIECE_BYTES_MAX + total) as u64;
            let taken = piece(total, 0);
            assert!(matches!(taken, Answer::Taken { .. }), "round {round}: {taken:?}");
        }
        let (whole, half) = (2 * PIECE_BYTES_MAX as u64, PIECE_BYTES_MAX as u64);
        piece(whole, 0);
        piece(whole, 0);
        let forged = piece(whole, half);
        assert_eq!(forged, Answer::Refused { why: message::Refusal::Forged });
        assert!(matches!(came.recv_timeout(PATIENCE), Ok(Back::Lost)), "the site may have been asked just now");
    }
}

#[test]
fn who_begins_anew_has_lost_what_it_had_and_no_clock_ends_anything() {
    let world = World::new(&[]);
    let one = world.volunteer(1, "198.51.100.1");
    let came = world.offer(&["0"], false);
    let bundle = one.ask().expect("a bundle");
    for time_ms in [i64::MIN, i64::MAX, NOW_MS - 86_400_000] {
        let sealed = envelope::seal_requests(&[Request::Leave], &world.node.key(), &one.identity, time_ms);
        let answer = world.node.handle(one.address, &sealed);
        let opened = envelope::open_answers(&answer, &envelope::signature_of(&sealed)).expect("an answer");
        assert_eq!(opened.message, [Answer::Refused { why: message::Refusal::Clock }]);
    }
    let long = Fetched { status: 200, length: 1 << 63, digest: message::Digest::Short([7; 8]), ..Fetched::default() };
    let refused = one.say(&Request::Results { bundle: bundle.id, results: vec![long] });
    assert_eq!(refused, Answer::Refused { why: message::Refusal::Nonsense });
    one.say(&Request::Hello { version: VERSION, proof: 0, holds: Vec::new(), team: String::new() });
    assert!(matches!(came.recv_timeout(PATIENCE), Ok(Back::Lost)));
}

#[test]
fn what_differs_by_place_is_kept_as_such() {
    let table = "198.51.100.0/24 64500 DE\n203.0.113.0/24 64501 DE\n192.0.2.0/24 64502 US\n";
    let world = World::new(&[("networks.txt", table)]);
    let mut walled = world.truth.clone();
    walled.insert(url("1"), "<p>Nicht in Ihrem Land".into());
    walled.insert(url("2"), String::new());
    let neighbour = world.volunteer(3, "203.0.113.1");
    assert!(neighbour.ask().is_none(), "there");
    let first = world.volunteer(1, "198.51.100.1");
    let came = world.offer(&["0", "1", "2"], false);
    first.bring(&first.ask().expect("a bundle"), &walled);
    let brought = brought(&came);
    // Somebody of the same place is asked, and says the same.
    let (believed, _) = std::thread::scope(|scope| {
        let judged = scope.spawn(|| world.judged(brought));
        let since = Instant::now();
        let opinion = loop {
            if let Some(bundle) = neighbour.ask() {
                break bundle;
            }
            assert!(since.elapsed() < PATIENCE, "nobody asks it");
            std::thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(opinion.urls.len(), 1);
        neighbour.bring(&opinion, &walled);
        judged.join().expect("it is judged")
    });
    assert_eq!(world.standing(&first, "lies"), 0);
    assert_eq!(world.standing(&first, "good"), 0, "who could have agreed on it with a newcomer earns no trust by it");
    let vantages: BTreeMap<&str, &Vec<String>> =
        believed.exchanges.iter().map(|(url, exchange)| (url.as_str(), &exchange.vantages)).collect();
    assert!(vantages[url("0").as_str()].is_empty());
    let of = |name: &str| vantages[url(name).as_str()].clone();
    assert!(of("1").iter().any(|line| line.starts_with("AS64500 DE 200 sha1:")), "{vantages:?}");
    assert!(of("1").iter().any(|line| line.starts_with("AS64501 DE 200 sha1:")), "{vantages:?}");
    assert_eq!(of("2").len(), 1);
    assert!(of("2")[0].starts_with("AS64500 DE 451"), "{vantages:?}");
    // Of the page itself the node's own look is kept.
    let kept = believed.exchanges.iter().find(|(found, _)| found.as_str() == url("1")).expect("kept");
    assert!(kept.1.brought.is_none());
}

#[test]
fn alone_in_its_place_it_is_neither_believed_nor_called_a_liar() {
    let world = World::new(&[("networks.txt", "198.51.100.0/24 64500 DE\n")]);
    let first = world.proven(1, "198.51.100.1");
    let mut walled = world.truth.clone();
    walled.insert(url("1"), "<p>Nicht in Ihrem Land".into());
    let came = world.offer(&["0", "1"], false);
    first.bring(&first.ask().expect("a bundle"), &walled);
    let (believed, _) = world.judged(brought(&came));
    assert_eq!(believed.exchanges.len(), 1, "what the node saw");
    assert_eq!((world.standing(&first, "lies"), world.standing(&first, "trust")), (0.into(), "new".into()));
}

#[test]
fn a_page_that_only_it_can_see_stays_with_one_source() {
    let world = World::new(&[]);
    let first = world.volunteer(1, "198.51.100.1");
    let mut own = world.truth.clone();
    own.insert(url("printer"), "<p>Paper jam".into());
    let came = world.offer(&["0", "printer"], false);
    first.bring(&first.ask().expect("a bundle"), &own);
    let mut brought = brought(&came);
    assert_eq!(brought.again.len(), 2);
    // From here the host does not answer at all.
    brought.again.clear();
    let (believed, _) = world.judged(brought);
    for (_, exchange) in &believed.exchanges {
        let source = exchange.brought.as_ref().expect("by others");
        assert!(!source.confirmed && !source.seen_elsewhere);
    }
}

#[test]
fn whoever_does_not_look_does_not_know_a_known_page() {
    let secret = "correct-horse-battery";
    let table = format!("{} {secret}\n", url("known.txt"));
    let mut world = World::new(&[("known-pages.txt", &table)]);
    let stands = known_pages::token(secret, NOW_MS / 3_600_000);
    world.truth.insert(url("known.txt"), stands);
    let (honest, liar) = (world.proven(1, "198.51.100.1"), world.proven(2, "192.0.2.1"));
    let mut stale = world.truth.clone();
    stale.insert(url("known.txt"), known_pages::token(secret, NOW_MS / 3_600_000 - 5));
    let mut given = 0;
    while world.standing(&liar, "lies") == 0 {
        for (who, pages) in [(&honest, &world.truth), (&liar, &stale)] {
            let came = world.offer(&["0"], true);
            let bundle = who.ask().expect("a bundle");
            given += usize::from(bundle.urls.len() == 2);
            who.bring(&bundle, pages);
            // A check may be given to the other one, who looks.
            let brought = loop {
                match came.recv_timeout(Duration::from_millis(10)) {
                    Ok(Back::Brought(brought)) => break brought,
                    Ok(Back::Nobody | Back::Lost) => panic!("somebody came back"),
                    Err(_) => {
                        for checker in [&honest, &liar] {
                            checker.ask().into_iter().for_each(|check| checker.bring(&check, &world.truth));
                        }
                    }
                }
            };
            world.judged(brought);
        }
        assert!(given < 200, "it is never found");
    }
    assert!(given > 0);
    assert_eq!(world.standing(&honest, "lies"), 0);
}

#[test]
fn a_known_page_that_is_out_of_order_makes_nobody_a_liar() {
    let secret = "correct-horse-battery";
    let table = format!("{} {secret}\n", url("known.txt"));
    let hour = NOW_MS / 3_600_000;
    // Not made anew for five hours; another line end; what stands there instead while the site is mended.
    let out_of_order = [
        known_pages::token(secret, hour - 5),
        format!("{}\r\n", known_pages::token(secret, hour)),
        "<p>We are back soon".to_owned(),
    ];
    for stands in out_of_order {
        let mut world = World::new(&[("known-pages.txt", &table)]);
        world.truth.insert(url("known.txt"), stands.clone());
        let honest = world.proven(1, "198.51.100.1");
        let (mut given, mut asked) = (0, 0);
        while given < ALONE_MAX {
            let came = world.offer(&["0"], true);
            let bundle = honest.ask().expect("a bundle");
            let has_it = bundle.urls.len() == 2;
            honest.bring(&bundle, &world.truth);
            let (believed, looked) = world.judged(brought(&came));
            assert!(!has_it || looked.contains(&url("known.txt")), "{stands}: the node looks");
            assert_eq!(believed.exchanges.len(), 1, "{stands}: what else it brought is believed");
            given += u32::from(has_it);
            asked += 1;
            assert!(asked < 1_000, "it is never given");
        }
        let standing = |name: &str| world.standing(&honest, name);
        assert_eq!((standing("lies"), standing("trust")), (0.into(), "vouched".into()), "{stands}");
    }
}

#[test]
fn a_digest_of_another_kind_than_was_asked_for_is_refused() {
    let world = World::new(&[]);
    let one = world.proven(1, "198.51.100.1");
    let _came = world.offer(&["0", "1"], true);
    let bundle = one.ask().expect("a bundle");
    let plain = |number: u16| Fetched {
        number,
        status: 200,
        digest: message::Digest::Plain(seen::sha1(world.truth[&url(&number.to_string())].as_bytes())),
        ..Fetched::default()
    };
    // As records have it: whoever saw the page some time ago could say that without looking.
    let results = vec![plain(0), plain(1)];
    let refused = one.say(&Request::Results { bundle: bundle.id, results });
    assert!(matches!(refused, Answer::Refused { why: message::Refusal::Nonsense }), "{refused:?}");
    // Nobody gave it anything to compare with: that nothing changed it cannot know.
    let unasked = |number| Fetched { number, status: 304, ..Fetched::default() };
    let wanted = one.say(&Request::Results { bundle: bundle.id, results: vec![unasked(0), unasked(1)] });
    assert_eq!(wanted, Answer::Want { bundle: bundle.id, bodies: vec![(0, 0), (1, 0)] });
}
