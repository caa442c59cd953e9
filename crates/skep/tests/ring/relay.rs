//! Nodes that never reach each other directly, and one that carries between them.

use super::ring::{Ring, alone};
use std::process::{Command, Stdio};

const RELAY_PORT: u16 = 7080;

#[test]
fn nodes_that_cannot_reach_each_other_lead_and_copy_through_a_node_that_serves_a_relay() {
    let expected = alone(3);
    let mut ring = Ring::new(3);
    // It was running before; from now on it serves a relay, also when it is started without a word about it.
    let at = format!("{}:{RELAY_PORT}", ring.net.of(0));
    for more in [&["--serve-relay", at.as_str()][..], &[]] {
        ring.stop(0);
        ring.start(0, more);
    }
    let url = format!("http://{at}");
    ring.join();
    ring.join_away_from(&[1]);
    // Each has heard of the relay by itself, and says that it is reached there.
    let is_reached = |one: &serde_json::Value| {
        one["nodes"]
            .as_array()
            .is_some_and(|all| all.len() == 3 && all.iter().all(|node| node["relay"] == url.as_str()))
    };
    ring.until("all reached by the relay", &ring.up(), |all| all.iter().all(is_reached));
    ring.settled();
    ring.crawl(2);
    // Nobody leads whom another holder that is there does not hear.
    ring.until("led by all of them", &ring.up(), |all| all.iter().all(|one| one["leads"].as_u64() > Some(0)));
    ring.crawled(&expected);
    assert_eq!(ring.union(), expected, "what one node alone would have");
    ring.is_on(&expected, 3);
    ring.is_polite();
    ring.portals_answer(&expected);
    // What is still being written is copied from its writer alone: also from one of the two to the other.
    assert!(ring.asked_by(&[1, 2]) > 0, "the relay's node fetched everything");
    let relayed = ring.status(0)["relayed"].clone();
    assert!(relayed["nodes"].as_u64() >= Some(2) && relayed["bytes"].as_u64() > Some(50_000), "{relayed}");
    assert_eq!(relayed["refused"], 0, "{relayed}");

    // A node of another network is refused.
    let machine = ring.net.machine();
    let folder = ring.site.path("stranger").display().to_string();
    let skep = |typed: &[&str]| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &ring.net.space(machine), env!("CARGO_BIN_EXE_skep"), "--archive", &folder]);
        command.args(typed).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let listen = format!("{}:7079", ring.net.of(machine));
    let made = skep(&["network", "create", "--name", "elsewhere", "--listen", &listen]).status().expect("it runs");
    assert!(made.success());
    let mut stranger =
        skep(&["node", "--portal", "none", "--relay", &url, "--until-input-ends"]).spawn().expect("it starts");
    ring.until("refused", &[0], |all| all[0]["relayed"]["refused"].as_u64() > Some(0));
    assert!(ring.status(0)["relayed"]["nodes"].as_u64() <= Some(3));
    drop(stranger.stdin.take());
    assert!(stranger.wait().expect("it ends").success());

    // And not a packet went to anybody else.
    for node in [0, 1, 2, machine] {
        assert_eq!(ring.net.sent_outside(node), 0, "node {node}");
    }
}
