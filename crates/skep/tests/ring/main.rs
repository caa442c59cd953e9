//! Rings of real processes, each with an address of its own, over a web whose truth is known.

mod faults;
mod net;
mod owners;
mod ring;
#[path = "../site/mod.rs"]
mod site;
mod small;

use ring::{Ring, alone};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[test]
fn five_nodes_crawl_as_one_and_keep_everything_three_times() {
    let expected = alone(6);
    assert!(expected.len() > 50, "{} pages", expected.len());
    let ring = Ring::of(5, 6);
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

    // When there is nothing to do, next to nothing is said and done, and nothing ever to anybody else.
    ring.skep(1, &["ring", "stop", ring::CRAWL]).exits(0);
    ring.until("stopped", &ring.up(), |all| all.iter().all(|one| one["crawl"].is_null()));
    let measured = |node: usize| (ring.net.sent(node), cpu_ms(ring.pid(node)));
    let before: Vec<_> = ring.up().into_iter().map(measured).collect();
    let since = Instant::now();
    std::thread::sleep(IDLE);
    let seconds = since.elapsed().as_secs_f64();
    for (node, (bytes, cpu)) in ring.up().into_iter().zip(before) {
        let (now_bytes, now_cpu) = measured(node);
        let (bytes, cpu) = ((now_bytes - bytes) as f64 / seconds, (now_cpu - cpu) as f64 / seconds / 10.0);
        println!("node {node}: {bytes:.0} bytes/s, {cpu:.2} % CPU while idle");
        assert!(bytes < 10_000.0, "node {node} sends {bytes:.0} bytes/s while there is nothing to do");
        assert_eq!(ring.net.sent_outside(node), 0, "packets to addresses outside of the network");
    }
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
const IDLE: Duration = Duration::from_secs(10);

/// Processor time of a process so far.
fn cpu_ms(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let words: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| words[at].parse::<u64>().expect("a number");
    (ticks(11) + ticks(12)) * 10
}
