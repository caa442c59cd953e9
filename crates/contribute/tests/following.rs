//! Whoever leads gives bundles to a holder that stands nearer: both sides, with a site that remembers when it was asked.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use skep_contribute::follow::{self, Asked, Part, Question};
use skep_contribute::follower::{Follower, From, Memory, Still, host_of};
use skep_contribute::nearest::{Handing, Nearest, No, Way};
use skep_contribute::trust::Key;
use skep_fetch::Exchange;
use skep_schedule::hands::{Back, Offer, Round, Rules};
use skep_schedule::{Bundle, BundleUrl, Hands, LeaseId, Pace, limits};
use skep_url::Url;

const NEAR: Key = [1; 32];
const NEARER: Key = [2; 32];
const LEADER: Key = [9; 32];
/// Nothing takes so long, unless it never happens.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the site saw, and when: a connection, or a path.
type Seen = Arc<Mutex<Vec<(Instant, String)>>>;

/// A site that answers every path but `/closed`.
fn site() -> (SocketAddr, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, seen) = (listener.local_addr().unwrap(), Seen::default());
    let sees = seen.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sees = sees.clone();
            std::thread::spawn(move || answer(stream, &sees));
        }
    });
    (address, seen)
}

fn answer(mut stream: std::net::TcpStream, seen: &Seen) {
    let mut asked = Vec::new();
    let mut byte = [0];
    while stream.read_exact(&mut byte).is_ok() {
        asked.push(byte[0]);
        if !asked.ends_with(b"\r\n\r\n") {
            continue;
        }
        let head = String::from_utf8(std::mem::take(&mut asked)).unwrap();
        let path = head.split(' ').nth(1).unwrap().to_owned();
        let status = if path == "/closed" { "403 Forbidden" } else { "200 OK" };
        seen.lock().unwrap().push((Instant::now(), path.clone()));
        let length = path.len();
        let _gone = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{path}");
    }
    if asked.is_empty() {
        seen.lock().unwrap().push((Instant::now(), "closed".to_owned()));
    }
}

fn follower() -> (Arc<Follower>, Arc<Memory>) {
    let memory = Arc::new(Memory::default());
    let mut settings = skep_fetch::Settings::new("skep test");
    settings.allow_private = true;
    (Arc::new(Follower::start(settings, memory.clone()).unwrap()), memory)
}

/// Asks a follower as the ring would; the parts of its answer, or why not.
fn asked(follower: &Arc<Follower>, question: &Question) -> Result<Vec<u8>, String> {
    asked_while(follower, question, Arc::new(|| true))
}

/// The same, by somebody who leads as long as this says so.
fn asked_while(follower: &Arc<Follower>, question: &Question, still_leads: Still) -> Result<Vec<u8>, String> {
    let is_theirs = |url: &Url| url.host_name() != "other.test";
    let from = From { leader: LEADER, leads_for: PATIENCE, is_theirs: &is_theirs, still_leads };
    let mut out = Vec::new();
    let question = Question::decode(&question.encode().unwrap()).unwrap();
    follower.answer(&from, question.asked)?(&mut out).unwrap();
    Ok(out)
}

fn question(asked: Asked) -> Question {
    Question { crawl: "bees".into(), asked }
}

fn parts(bytes: &[u8]) -> Vec<Part> {
    let mut from = bytes;
    std::iter::from_fn(|| follow::read(&mut from).ok()).collect()
}

fn ticket(follower: &Arc<Follower>) -> u64 {
    match parts(&asked(follower, &question(Asked::Room)).unwrap())[..] {
        [Part::Room { ticket }] => ticket,
        ref other => panic!("{other:?}"),
    }
}

fn bundle(site: SocketAddr, paths: &[&str], pace: Pace, lease_ms: u32) -> skep_contribute::message::Bundle {
    let task =
        |path: &&str| skep_contribute::message::Task { url: format!("http://{site}{path}"), ..Default::default() };
    skep_contribute::message::Bundle {
        id: 0,
        host: site.to_string(),
        urls: paths.iter().map(task).collect(),
        pace,
        robots: Some(Rules::default()),
        lease_ms,
        nonce: [0; 16],
    }
}

#[test]
fn a_follower_fetches_politely_whatever_it_is_told_and_leaves_out_what_it_does_not_get() {
    let ((site, seen), (follower, memory)) = (site(), follower());
    let fetch = bundle(site, &["/1", "/2", "/closed", "/4"], Pace::None, 60_000);
    let told = asked(&follower, &question(Asked::Fetch { ticket: ticket(&follower), bundle: fetch })).unwrap();
    let numbers: Vec<u16> = (parts(&told).into_iter())
        .filter_map(|part| if let Part::Exchange { number, .. } = part { Some(number) } else { None })
        .collect();
    assert_eq!(numbers, [0, 1]);
    assert_eq!(parts(&told).last(), Some(&Part::Over { unable: true }));
    let seen: Vec<(Instant, String)> = seen.lock().unwrap().clone();
    assert_eq!(seen.iter().filter(|(_, what)| what.starts_with('/')).count(), 3, "nothing after it was turned away");
    for pair in seen.iter().filter(|(_, what)| what.starts_with('/')).collect::<Vec<_>>().windows(2) {
        assert!(pair[1].0 - pair[0].0 >= Duration::from_millis(limits::SITE_GAP_MS_MIN), "hurried: {pair:?}");
    }
    assert_eq!(memory.followed(), 1);
}

#[test]
fn a_follower_connects_once_to_see_and_refuses_what_is_not_the_leaders_to_ask() {
    let ((site, seen), (follower, _)) = (site(), follower());
    let measure = |ticket| Asked::Measure { ticket, grant_ms: 10_000, url: format!("http://{site}/") };
    let told = |asked_for| parts(&asked(&follower, &question(asked_for)).unwrap());
    assert!(matches!(told(measure(ticket(&follower)))[..], [Part::Measured { took_ms: Some(_), now: true }]));
    assert!(matches!(told(measure(ticket(&follower)))[..], [Part::Measured { took_ms: Some(_), now: false }]));
    let refused = |asked_for| asked(&follower, &question(asked_for)).unwrap_err();
    assert!(refused(measure(0)).contains("too old"));
    assert!(refused(measure(u64::MAX)).contains("too old"), "nobody gives tickets of the future");
    let elsewhere = Asked::Measure { ticket: ticket(&follower), grant_ms: 10_000, url: "http://other.test/".into() };
    assert!(refused(elsewhere).contains("another slice"));
    let short = bundle(site, &["/1"], Pace::Polite, 1_000);
    assert!(refused(Asked::Fetch { ticket: ticket(&follower), bundle: short }).contains("no time left"));
    let mut mixed = bundle(site, &["/1", "/2"], Pace::Polite, 60_000);
    mixed.urls[1].url = "http://b.test/".into();
    assert!(refused(Asked::Fetch { ticket: ticket(&follower), bundle: mixed }).contains("several hosts"));
    let since = Instant::now();
    while seen.lock().unwrap().is_empty() && since.elapsed() < PATIENCE {
        std::thread::yield_now();
    }
    let seen: Vec<String> = seen.lock().unwrap().iter().map(|(_, what)| what.clone()).collect();
    assert_eq!(seen, ["closed"], "one connection, and not a word");
}

#[test]
fn a_follower_stops_when_who_asked_no_longer_leads() {
    let ((site, seen), (follower, _)) = (site(), follower());
    let fetch = bundle(site, &["/1", "/2", "/3", "/4"], Pace::Polite, 60_000);
    let sees = seen.clone();
    let asks = move || sees.lock().unwrap().iter().filter(|(_, what)| what.starts_with('/')).count();
    // Until the second was asked for.
    let leads: Still = {
        let asks = asks.clone();
        Arc::new(move || asks() < 2)
    };
    let question = question(Asked::Fetch { ticket: ticket(&follower), bundle: fetch });
    let told = asked_while(&follower, &question, leads).unwrap();
    assert_eq!(parts(&told).last(), Some(&Part::Over { unable: false }), "nothing is wrong with the rest");
    assert_eq!(asks(), 2);
}

/// The way to two followers, and what went over it.
struct Ways {
    follower: Arc<Follower>,
    asked: Arc<Mutex<Vec<(Key, &'static str, Instant)>>>,
    /// What is fetched breaks off after so many bytes of the answer.
    breaks: Option<usize>,
    /// For how long the site was given away last.
    granted: Arc<Mutex<Option<(Instant, Duration)>>>,
}

impl Way for Ways {
    fn others(&self, _: &Url) -> Vec<Key> {
        vec![NEAR, NEARER]
    }

    fn ask(&self, node: &Key, _: &Url, question: &[u8], _: Duration) -> Result<Box<dyn Read + Send>, No> {
        let question = Question::decode(question).unwrap();
        let what = match &question.asked {
            Asked::Room => "room",
            Asked::Measure { .. } => "measure",
            Asked::Fetch { bundle, .. } => {
                let granted = Duration::from_millis(bundle.lease_ms.into());
                *self.granted.lock().unwrap() = Some((Instant::now(), granted));
                "fetch"
            }
        };
        if what != "room" {
            self.asked.lock().unwrap().push((*node, what, Instant::now()));
        }
        let mut said = match what {
            // As if the way were this long.
            "measure" => {
                let took_ms = Some(if *node == NEAR { 60 } else { 20 });
                let mut said = Vec::new();
                follow::write(&Part::Measured { took_ms, now: true }, &mut said).unwrap();
                said
            }
            _ => asked(&self.follower, &question).map_err(|_| No::Refused)?,
        };
        if let Some(bytes) = self.breaks.filter(|_| what == "fetch") {
            said.truncate(bytes);
        }
        Ok(Box::new(std::io::Cursor::new(said)))
    }
}

fn offer(site: SocketAddr, lease: Duration) -> (Offer<Exchange>, Receiver<(Instant, Back<Exchange>)>) {
    let ask = |path: &str| BundleUrl { url: format!("http://{site}{path}"), ..BundleUrl::default() };
    let (tell, told) = channel();
    let offer = Offer {
        bundle: Bundle {
            lease: LeaseId(1),
            host: site.to_string(),
            site: site.ip().to_string(),
            urls: ["/1", "/2", "/3"].map(ask).to_vec(),
            pace: Pace::Polite,
            not_before_ms: 0,
            deadline_ms: 600_000,
        },
        nonce: [0; 16],
        known: vec![None; 3],
        robots: Some(Rules::default()),
        lease,
        only: false,
        is_wanted: Box::new(|| true),
        done: Box::new(move |back| drop(tell.send((Instant::now(), back)))),
    };
    (offer, told)
}

fn handing() -> Handing {
    let clock: skep_archive::Clock = Arc::new(skep_archive::system_clock);
    Handing { crawl: "bees".into(), is_for_others: Box::new(|url| !url.as_str().contains("own")), clock }
}

fn ways(breaks: Option<usize>) -> Ways {
    Ways { follower: follower().0, asked: Arc::default(), breaks, granted: Arc::default() }
}

#[test]
fn the_nearest_gets_the_bundle_and_the_site_rests_between_all_who_ask_it() {
    let ((site, _), ways, memory) = (site(), ways(None), Arc::new(Memory::default()));
    let log = ways.asked.clone();
    let nearest = Nearest::new(handing(), memory.clone(), Box::new(ways));
    let first = Url::parse(&format!("http://{site}/1")).unwrap();
    assert!(
        !nearest.would_take(&first, 3) && nearest.give(offer(site, PATIENCE).0).is_err(),
        "not known how far it is"
    );
    nearest.connected(&first, 100);
    assert!(nearest.would_take(&first, 3) && !nearest.would_take(&first, 1));
    let unruled = Offer { robots: None, ..offer(site, PATIENCE).0 };
    assert!(nearest.give(unruled).is_err(), "robots.txt is not known yet");
    let short = offer(site, Duration::from_secs(1)).0;
    assert!(nearest.give(short).is_err(), "no time for it");
    let (offered, told) = offer(site, PATIENCE);
    assert!(nearest.give(offered).is_ok());
    let Back::Brought(brought) = told.recv_timeout(PATIENCE).unwrap().1 else { panic!("nothing came back") };
    assert!(brought.again.is_empty());
    let Round::Over(believed) = (brought.judge)(brought.exchanges, Vec::new()) else { panic!("it is not believed") };
    assert_eq!(believed.exchanges.len(), 3);
    let now_ms = skep_archive::system_clock();
    for (url, exchange) in &believed.exchanges {
        let source = exchange.brought.as_ref().unwrap();
        assert!(source.by_holder && source.by == "node 0202020202020202", "{source:?}");
        assert!((now_ms - 60_000..=now_ms).contains(&source.time_ms));
        let body = exchange.response.bytes(exchange.head_bytes as u64, 100).unwrap();
        assert!(url.as_str().ends_with(std::str::from_utf8(&body).unwrap()));
    }
    let log = log.lock().unwrap();
    let order: Vec<(Key, &str)> = log.iter().map(|(node, what, _)| (*node, *what)).collect();
    assert_eq!(order, [(NEAR, "measure"), (NEARER, "measure"), (NEARER, "fetch")]);
    for pair in log.windows(2) {
        assert!(pair[1].2 - pair[0].2 >= Duration::from_millis(limits::SITE_GAP_MS_MIN), "the site did not rest");
    }
    let gain = memory.lock().gain();
    assert_eq!((gain.bundles, gain.back, gain.urls, gain.connections, gain.measured), (1, 1, 3, 1, 2));
    assert!(gain.connect_ms_saved > 0 && memory.lock().nearer_elsewhere(memory.now_ms()) == 1);
}

#[test]
fn what_breaks_off_is_back_when_its_time_is_over_and_not_before() {
    let ((site, _), memory) = (site(), Arc::new(Memory::default()));
    let whole = {
        let (follower, _) = follower();
        let fetch = bundle(site, &["/1"], Pace::Polite, 60_000);
        asked(&follower, &question(Asked::Fetch { ticket: ticket(&follower), bundle: fetch })).unwrap().len()
    };
    // The first exchange comes, and something of the second.
    let ways = ways(Some(whole + 3));
    let granted = ways.granted.clone();
    let nearest = Nearest::new(handing(), memory.clone(), Box::new(ways));
    let first = Url::parse(&format!("http://{site}/1")).unwrap();
    nearest.connected(&first, 100);
    let host = host_of(&first);
    for node in [NEAR, NEARER] {
        memory.lock().measured(&host, node, Some(5), memory.now_ms());
    }
    let (offered, told) = offer(site, Duration::from_millis(6_000));
    assert!(nearest.give(offered).is_ok());
    let (at, back) = told.recv_timeout(PATIENCE).unwrap();
    let (given, grant) = granted.lock().unwrap().unwrap();
    assert!(at >= given + grant && grant <= Duration::from_millis(6_000));
    let Back::Brought(brought) = back else { panic!("what had come is lost") };
    assert_eq!(brought.exchanges.len(), 1);
    let next = memory.lock().next(&host, &[NEAR], 3, memory.now_ms());
    assert_eq!(next, skep_schedule::near::Next::Ourselves, "who broke off is left alone");
}
