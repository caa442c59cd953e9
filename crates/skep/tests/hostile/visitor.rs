//! What happens on the visitor's side: rows 43 and 44.

use crate::trial::{Setup, many_hosts, slow_hosts};
use rustix::process::{Pid, Signal, kill_process};
use skep_testweb::{Behaviour, Hostile, Row};
use std::time::Duration;

#[test]
fn row_43_few_descriptors_make_a_crawl_slower_not_poorer() {
    let trial = Setup::with(many_hosts(60)).with_descriptors(160).run();
    for number in 0..60 {
        trial.kept_ordinary_pages(&format!("www.example-{number}.test"));
    }
}

#[test]
fn row_43_descriptors_that_run_out_lower_the_concurrency_and_kill_no_url() {
    let mut taken = false;
    let trial = Setup::with(slow_hosts(60))
        .meddling(move |web, _, process| {
            if !taken && web.report().requests > 150 {
                taken = true;
                leave_few_descriptors(process);
            }
        })
        .run();
    let failed = trial.visited().into_iter().filter(|(_, outcome)| outcome == "local-resources").count();
    assert!(failed > 0, "nothing ran out");
    assert!(!trial.events_of("lowered").is_empty());
    for number in 0..60 {
        trial.kept_ordinary_pages(&format!("www.example-{number}.test"));
    }
    assert_eq!(trial.report()["errors"], serde_json::json!({}), "{}", trial.report());
}

/// From now on the process may have a few connections beside the files that it has open.
fn leave_few_descriptors(process: u32) {
    let open = std::fs::read_dir(format!("/proc/{process}/fd")).expect("its descriptors");
    let is_socket =
        |path: &std::path::Path| std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
    let files = open.filter(|entry| entry.as_ref().is_ok_and(|entry| !is_socket(&entry.path()))).count();
    let limit = rustix::process::Rlimit { current: Some(files as u64 + 24), maximum: Some(files as u64 + 24) };
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    rustix::process::prlimit(pid, rustix::process::Resource::Nofile, limit).expect("it can be limited");
}

#[test]
fn row_44_a_crawl_without_a_network_waits_for_it_and_blames_nobody() {
    let mut cut_at = None;
    let trial = Setup::with(slow_hosts(30))
        .patience(20)
        .meddling(move |web, said, _| match cut_at {
            None if web.report().requests > 60 => {
                web.cut(true);
                cut_at = Some(std::time::Instant::now());
            }
            Some(at) if said.contains("\"paused\"") && at.elapsed() > Duration::from_secs(2) => web.cut(false),
            _ => {}
        })
        .run();
    let of = |event: &str| trial.events_of(event).len();
    assert_eq!((of("paused"), of("resumed")), (1, 1), "{:?}", trial.events_of("paused"));
    assert!(trial.events_of("paused")[0]["why"].as_str().is_some_and(|why| why.contains("seems to be down")));
    let failed = trial.visited().into_iter().filter(|(_, outcome)| outcome == "network-down").count();
    assert!(failed > 0, "nothing was under way when the cable was cut");
    // Those few who failed before it was clear why have one failure, and no host or URL came near its end.
    assert_eq!(of("gave-up"), 0);
    for number in 0..30 {
        trial.kept_ordinary_pages(&format!("www.example-{number}.test"));
    }
    assert_eq!(trial.report()["errors"], serde_json::json!({}), "{}", trial.report());
}

#[test]
fn row_44_sites_that_are_down_are_no_outage_while_others_answer() {
    let mut plan = slow_hosts(12);
    for host in plan.hosts.iter_mut().skip(2) {
        host.behaviour = Behaviour::hostile(Hostile::new(Row::Silent).form("handshake"));
        host.scheme = skep_testweb::Scheme::Https;
    }
    let trial = Setup::with(plan).run();
    assert_eq!(trial.events_of("paused").len(), 0);
    for number in 2..12 {
        trial.why(&format!("www.example-{number}.test"), "/").is("dead", "timeout-handshake");
    }
}

#[test]
fn row_44_a_machine_that_slept_goes_on_where_it_was() {
    let mut slept = false;
    let trial = Setup::with(many_hosts(8))
        .meddling(move |web, _, process| {
            if !slept && web.report().requests >= 10 {
                slept = true;
                sleep(process);
            }
        })
        .run();
    for number in 0..8 {
        trial.kept_ordinary_pages(&format!("www.example-{number}.test"));
    }
}

#[test]
fn row_44_what_was_under_way_when_a_machine_slept_does_not_count() {
    let host = "row-13-silent.test";
    let mut slept = false;
    let trial = Setup::only(host)
        .meddling(move |web, _, process| {
            if !slept && web.proof(host).is_some_and(|proof| proof.under_way > 0) {
                slept = true;
                sleep(process);
            }
        })
        .run();
    let url = trial.url(host, "/silent/plain");
    let outcomes: Vec<String> =
        trial.visited().into_iter().filter(|(visited, _)| *visited == url).map(|(_, outcome)| outcome).collect();
    assert!(outcomes.contains(&"machine-slept".to_string()), "{outcomes:?}");
    let counted = outcomes.iter().filter(|outcome| *outcome == "timeout-first-byte").count();
    assert_eq!(counted, 5, "five failures and it is dead, those it slept through apart: {outcomes:?}");
    trial.why(host, "/silent/plain").is("dead", "timeout-first-byte");
}

/// The process is stopped for longer than any of its clocks, and goes on.
fn sleep(process: u32) {
    let tell = |signal| {
        let pid = i32::try_from(process).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, signal).expect("it can be told");
    };
    tell(Signal::STOP);
    std::thread::sleep(Duration::from_secs(6));
    tell(Signal::CONT);
}
