//! Rings of real processes, each with an address of its own, over a web whose truth is known.

mod bodies;
mod faults;
mod near;
mod net;
mod owners;
mod relay;
mod ring;
#[path = "../site/mod.rs"]
mod site;
mod small;
mod split;

use ring::{Ring, alone};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Times with which a network that does nothing is looked at: nodes still ask for each other, and compare what they know, fifteen times as
/// often as by default.
fn unhurried() -> String {
    let times = ring::TIMES.replace("ping=0.5s", "ping=1s").replace("compare=1s", "compare=4s");
    assert!(times.contains("ping=1s") && times.contains("compare=4s"), "{times}");
    times
}

#[test]
fn five_nodes_crawl_as_one_and_keep_everything_three_times() {
    let expected = alone(6);
    assert!(expected.len() > 50, "{} pages", expected.len());
    let ring = Ring::timed(6, &unhurried()).grown(5);
    ring.crawl(3);
    ring.crawled(&expected);
    assert_eq!(ring.union(), expected, "what one node alone would have");
    ring.is_on(&expected, 3);
    ring.is_polite();
    let twice: Vec<_> = ring.fetches().into_iter().filter(|(_, count)| *count > 1).collect();
    assert!(twice.is_empty(), "fetched more than once: {twice:?}");
    let writers = ring.up().into_iter().filter(|node| ring.status(*node)["leads"].as_u64() > Some(0)).count();
    assert!(writers >= 3, "{writers} nodes lead");
    ring.portals_answer(&expected);
    // Copies are counted once, whoever is asked.
    let counts: Vec<serde_json::Value> = (ring.up().into_iter())
        .map(|node| serde_json::from_str(&ring.get(node, "/api/v1/statistics").1).expect("statistics"))
        .collect();
    let of = |one: &serde_json::Value, name: &str| one[name].as_u64().expect("a number");
    for one in &counts {
        assert_eq!(of(one, "silent"), 0);
        assert!(of(one, "captures") >= expected.len() as u64, "{one}");
        for name in ["captures", "urls", "hosts", "bytes"] {
            assert_eq!(of(one, name), of(&counts[0], name), "{name}");
        }
    }

    // What spans all sites is told by any node, each page once and in the same order, whole or page by page.
    let urls: BTreeSet<&str> = expected.iter().map(|(url, _)| url.as_str()).collect();
    let listed: Vec<Vec<String>> = ring.up().into_iter().map(|node| all_sites(&ring, node, 10_000)).collect();
    for (node, lines) in listed.iter().enumerate() {
        let pages = lines.iter().map(String::as_str).filter(|url| !url.ends_with("/robots.txt"));
        assert_eq!(pages.collect::<BTreeSet<_>>(), urls, "node {node}");
        assert_eq!(*lines, listed[0], "node {node}");
    }
    assert_eq!(all_sites(&ring, 2, 7), listed[0], "page by page");
    let found: Vec<Vec<String>> = ring.up().into_iter().map(|node| with_text(&ring, node, "html", 6)).collect();
    assert!(found[0].len() > 12, "{found:?}");
    for (node, hits) in found.iter().enumerate() {
        assert_eq!(*hits, found[0], "node {node}");
        assert_eq!(hits.iter().collect::<BTreeSet<_>>().len(), hits.len(), "each once");
    }

    // What happened is told by any node for all of them, each event once; by itself each tells of what it holds.
    let own: Vec<BTreeMap<String, String>> =
        ring.up().into_iter().map(|node| changes(&ring, node, "/changes")).collect();
    let all: BTreeMap<String, String> = own.iter().flatten().map(|(key, url)| (key.clone(), url.clone())).collect();
    assert!(all.len() > expected.len() / 2 && own.iter().any(|own| own.len() < all.len()), "{} events", all.len());
    for node in ring.up() {
        assert_eq!(changes(&ring, node, "/changes?nodes=all&since=2020-01-01T00:00:00Z"), all, "node {node}");
    }
    let (status, body) = ring.get(0, "/changes?nodes=all&since=abcdefgh:1");
    assert!(status == 400 && body.contains("goes by time"), "{status} {body}");
    // So do the page of what happens, the stream, and the history of a page that is with others.
    let keys: BTreeSet<String> = all.keys().cloned().collect();
    for (node, own) in own.iter().enumerate() {
        let (status, page) = ring.get(node, "/changes/live");
        let rows = unchunked(&page).matches("<li>").count();
        assert!(status == 200 && rows >= all.len().min(100), "node {node}: {rows} of {}: {page}", all.len());
        let heard = Listening::to(&ring, node, "2020-01-01T00:00:00Z");
        until("all is heard", || heard.keys() == keys);
        let Some((_, url)) = all.iter().find(|(key, _)| !own.contains_key(*key)) else { continue };
        let asked = url.replace('%', "%25").replace('&', "%26").replace('+', "%2B");
        let (status, page) = ring.get(node, &format!("/history?url={asked}"));
        let page = unchunked(&page);
        assert!(status == 200 && page.contains("<section class=\"change\">"), "node {node}: {status} {page}");
        assert!(!page.contains("Nothing changed") && !page.contains("do not answer"), "node {node}: {page}");
    }

    // A node carries changes elsewhere as any archive does; it watches nothing beside what the network crawls.
    ring.skep(0, &["sink", "add", "webhook", "http://127.0.0.1:9/"]).exits(0);
    let sinks = ring.skep(0, &["--json", "sink", "list"]).json();
    assert_eq!(sinks[0]["at_work"], true, "{sinks:?}");
    ring.skep(0, &["sink", "remove", "webhook"]).exits(0);
    let watch = ring.skep(0, &["watch", "http://elsewhere.test/"]).exits(2);
    assert!(watch.talk.contains("that of a node") && watch.talk.contains("watch --network"), "{}", watch.talk);

    // When there is nothing to do, next to nothing is said and done, and nothing ever to anybody else.
    ring.skep(1, &["ring", "stop", ring::CRAWL]).exits(0);
    ring.until("stopped", &ring.up(), |all| all.iter().all(|one| one["crawl"].is_null()));
    ring.settled();
    let measured = |node: usize| (ring.net.carried(node), cpu_ms(ring.pid(node)));
    let before: Vec<_> = ring.up().into_iter().map(measured).collect();
    let since = Instant::now();
    std::thread::sleep(IDLE);
    let seconds = since.elapsed().as_secs_f64();
    for (node, ((sent, received), cpu)) in ring.up().into_iter().zip(before) {
        let ((now_sent, now_received), now_cpu) = measured(node);
        let per_s = |before: u64, now: u64| (now - before) as f64 / seconds;
        let (sent, received) = (per_s(sent, now_sent), per_s(received, now_received));
        let cpu = per_s(cpu, now_cpu) / 10.0;
        println!("node {node}: {sent:.0} bytes/s out, {received:.0} in, {cpu:.2} % CPU while idle");
        assert!(sent + received < 10_000.0, "node {node}: {sent:.0} bytes/s out and {received:.0} in");
        assert!(cpu < 1.0, "node {node} takes {cpu:.2} % of a processor while there is nothing to do");
        assert_eq!(ring.net.sent_outside(node), 0, "packets to addresses outside of the network");
    }
}

#[test]
fn three_nodes_that_keep_everything_three_times_lead_side_by_side() {
    let expected = alone(4);
    let mut ring = Ring::new(4);
    // Who made the network leads all of it, and goes on while others come.
    ring.crawl(0);
    ring.until("one leads", &[0], |all| all[0]["leads"] == 16);
    ring.join();
    ring.join();
    let leads = |one: &serde_json::Value| one["leads"].as_u64().unwrap_or(0);
    let statuses = ring.until("led by three", &[0, 1, 2], |all| {
        all.iter().all(|one| one["settled"] == true && leads(one) > 0) && all.iter().map(leads).sum::<u64>() == 16
    });
    println!("slices led: {:?}", statuses.iter().map(leads).collect::<Vec<_>>());
    ring.crawled(&expected);
    assert_eq!(ring.union(), expected, "what one node alone would have");
    ring.is_polite();
}

#[test]
fn a_network_that_watches_looks_at_everything_again_also_when_one_is_gone() {
    let expected = alone(3);
    let mut ring = Ring::of(3, 3);
    let heard = Listening::to(&ring, 2, &skep_warc::date::rfc3339(skep_archive::system_clock()));
    let seed = ring.web.map().hosts[0].url.clone();
    let typed = ["watch", "--network", &seed, "--scope", "all", "--name", ring::CRAWL, "--every", "10s"];
    ring.skep(0, &[&typed[..], &["--patience", "1"]].concat()).exits(0);
    let fetched = |times: usize| ring.fetches().values().filter(|count| **count >= times).count();
    ring.until("looked at again", &ring.up(), |_| fetched(2) >= expected.len());
    let writers = ring.up().into_iter().filter(|node| ring.asked_by(&[*node]) > 5).count();
    assert!(writers >= 2, "{writers} nodes look again at what they lead");
    // What happened meanwhile was heard as it did, wherever that was; a page that is the same as before is no news.
    let told = || -> BTreeSet<String> {
        changes(&ring, 0, "/changes?nodes=all&since=2020-01-01T00:00:00Z").into_keys().collect()
    };
    until("all is heard", || heard.keys() == told());
    assert!(heard.keys().len() > expected.len() / 2, "{:?}", heard.keys());

    // What the one led that leads most is looked at again by the others.
    ring.kill(ring.leads_most());
    let before = ring.fetches();
    let pages: Vec<&String> = expected.iter().map(|(url, _)| url).filter(|url| before.contains_key(*url)).collect();
    assert!(pages.len() * 2 > expected.len(), "{before:?}");
    ring.until("looked at by others", &ring.up(), |_| {
        let now = ring.fetches();
        pages.iter().all(|url| now[*url] >= before[*url] + 2)
    });
    ring.is_polite();
    assert!(expected.is_subset(&ring.union()));
}

/// Waits until something is so.
fn until(what: &str, so: impl Fn() -> bool) {
    let since = Instant::now();
    while !so() {
        assert!(since.elapsed() < ring::PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Somebody who stays at a node's portal for what all nodes tell, until it is dropped.
struct Listening {
    keys: Arc<Mutex<Vec<String>>>,
    stream: TcpStream,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _gone_already = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

impl Listening {
    fn to(ring: &Ring, node: usize, since: &str) -> Listening {
        let at = format!("{}:7070", ring.net.of(node));
        let mut stream = TcpStream::connect(&at).expect("a portal listens");
        // Answers to the older version of the protocol do not come in pieces.
        let asked = format!("GET /changes?nodes=all&since={since} HTTP/1.0");
        write!(stream, "{asked}\r\nHost: {at}\r\nAccept: text/event-stream\r\n\r\n").expect("it is sent");
        let keys: Arc<Mutex<Vec<String>>> = Arc::default();
        let (heard, coming) = (keys.clone(), stream.try_clone().expect("a stream"));
        std::thread::spawn(move || {
            for line in BufReader::new(coming).lines().map_while(Result::ok) {
                let Some(event) = line.strip_prefix("data: ") else { continue };
                let event: serde_json::Value = serde_json::from_str(event).expect("an event");
                heard.lock().expect("keys").push(event["key"].as_str().expect("a key").to_owned());
            }
        });
        Listening { keys, stream }
    }

    /// What was heard so far, each once.
    fn keys(&self) -> BTreeSet<String> {
        let keys = self.keys.lock().expect("keys").clone();
        let each: BTreeSet<String> = keys.iter().cloned().collect();
        assert_eq!(each.len(), keys.len(), "told twice: {keys:?}");
        each
    }
}

/// The URLs of all captures in the order of the index, so many lines at a time.
fn all_sites(ring: &Ring, node: usize, limit: usize) -> Vec<String> {
    let (mut all, mut resume) = (Vec::new(), String::new());
    loop {
        let asked = format!("/cdx/search/cdx?url=*.test&fl=original&limit={limit}&showResumeKey=true{resume}");
        let (status, body) = ring.get(node, &asked);
        assert_eq!(status, 200, "{body}");
        let body = unchunked(&body);
        let (lines, key) = body.split_once("\n\n").unwrap_or((&body, ""));
        all.extend(lines.lines().map(str::to_owned));
        if key.trim().is_empty() {
            return all;
        }
        resume = format!("&resumeKey={}", key.trim());
    }
}

/// URLs with a text in them, so many at a time.
fn with_text(ring: &Ring, node: usize, text: &str, limit: usize) -> Vec<String> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let (status, body) = ring.get(node, &format!("/api/v1/urls?q={text}&limit={limit}{after}"));
        assert_eq!(status, 200, "{body}");
        let said: serde_json::Value = serde_json::from_str(&unchunked(&body)).expect("an answer");
        assert_eq!(said["silent"], 0, "{said}");
        let urls = said["urls"].as_array().into_iter().flatten();
        all.extend(urls.map(|hit| hit["url"].as_str().expect("a URL").to_owned()));
        let Some(next) = said["next"].as_str() else { return all };
        after = format!("&after={next}");
    }
}

/// The text of an answer that came in pieces, or as a whole.
fn unchunked(body: &str) -> String {
    let (mut text, mut rest) = (String::new(), body);
    while let Some((size, behind)) = rest.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size, 16) else { return body.to_owned() };
        let Some(piece) = behind.get(..size) else { return body.to_owned() };
        text.push_str(piece);
        rest = behind[size..].strip_prefix("\r\n").unwrap_or_default();
    }
    if text.is_empty() { body.to_owned() } else { text }
}

/// What a node tells: keys of events and their URLs.
fn changes(ring: &Ring, node: usize, target: &str) -> BTreeMap<String, String> {
    let (status, body) = ring.get(node, target);
    assert_eq!(status, 200, "{body}");
    let mut told = BTreeMap::new();
    for line in body.lines().filter(|line| line.starts_with('{')) {
        let event: serde_json::Value = serde_json::from_str(line).expect("an event");
        let text = |name: &str| event[name].as_str().expect("a text").to_owned();
        assert_eq!(told.insert(text("key"), text("subject")), None, "told twice: {event}");
    }
    told
}

/// How long an idle network is looked at.
const IDLE: Duration = Duration::from_secs(40);

/// Processor time of a process so far.
fn cpu_ms(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let words: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| words[at].parse::<u64>().expect("a number");
    (ticks(11) + ticks(12)) * 10
}
