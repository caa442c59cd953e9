//! A portal under mixed load while a crawl writes into the same archive, pass after pass: no error, no stale answer, none that is torn, and in
//! the end nothing is held that was not held in the middle. `SKEP_LOAD_SECONDS` says for how long; a soak asks for an hour, and only then
//! memory is judged.

mod asking;
mod client;
#[path = "../site/portal.rs"]
mod portal;
#[path = "../site/mod.rs"]
mod site;
mod truth;
#[path = "../site/web.rs"]
mod web;

use asking::Asker;
use client::Client;
use portal::Portal;
use site::Site;
use skep_testweb::{Clock, HostPlan, Plan, Settings, Shape, Time, Web, World};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use truth::Truth;

/// How long it lasts, unless somebody says otherwise.
const SECONDS: u64 = 120;
/// Below this, caches are still filling.
const JUDGED_SECONDS: u64 = 600;
/// Those who ask at the same time.
const ASKERS: u64 = 6;
/// What the portal may keep at hand: so little that it is full soon, and what grows beyond a bound would show.
const MEMORY: &str = "32MB";
/// How long each rests between two questions, so that others on this machine get on.
const REST: Duration = Duration::from_millis(10);
/// How much there is to crawl, and how fast.
struct Scale {
    hosts: u64,
    /// Of each host.
    pages: u32,
    /// Milliseconds between two visits of a host, or `none`.
    pace: &'static str,
}

/// A pass takes some seconds, and others on this machine get on.
const SMALL: Scale = Scale { hosts: 5, pages: 60, pace: "20" };
/// What is buffered until there is enough of it fills and empties many times, and no page gets more versions than answers tell of.
const LARGE: Scale = Scale { hosts: 20, pages: 150, pace: "none" };

/// What the portal's process holds.
struct Sample {
    resident: f64,
    descriptors: u64,
    threads: u64,
}

impl Sample {
    fn of(pid: u32) -> Sample {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the portal runs");
        let figure = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a figure");
            line.trim_start_matches(':').split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number")
        };
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("the portal runs").count() as u64;
        Sample { resident: figure("VmRSS") as f64 * 1024.0, descriptors, threads: figure("Threads") }
    }
}

/// Numbers from a seed.
struct Chance(u64);

impl Chance {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 31
    }
}

fn web(scale: &Scale) -> Web {
    let mut plan = Plan::new(23);
    for number in 0..scale.hosts {
        // From pass to pass nearly every page changes; none is ever gone.
        let shape = Shape {
            still_permille: 100,
            period_seconds: (20_000, 120_000),
            text_bytes: (500, 6_000),
            mortal_permille: 0,
            ..Shape::pages(scale.pages)
        };
        plan = plan.host(HostPlan::generated(&format!("h{number}.load-{number}.test"), shape));
    }
    let clock = Some(Clock::new(Time::BEGIN.plus_days(100), 0.0));
    Web::start(World::build(plan).expect("a world"), Settings { clock, ..Settings::default() }).expect("a web")
}

/// `skep crawl`, again and again, into the archive that is being served. What it says is synced is heard at once.
fn crawl(site: &Site, scale: &Scale, truth: &Truth, over: &AtomicBool) {
    let homes: Vec<String> = truth.web().map().hosts.iter().map(|place| place.url.clone()).collect();
    let mut flags: Vec<String> =
        ["--name", "load", "--json", "--patience", "1", "--pace", scale.pace].map(str::to_owned).to_vec();
    for place in &truth.web().map().hosts {
        flags.extend(["--own".to_owned(), place.host.clone(), "--resolve".to_owned(), place.resolve[0].clone()]);
    }
    let homes: Vec<&str> = homes.iter().map(String::as_str).collect();
    while !over.load(Ordering::Relaxed) {
        truth.begin();
        let mut command = site.command(&web::typed(&homes, &flags));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("skep starts");
        let mut told = BufReader::new(child.stdout.take().expect("its events")).lines();
        let mut stopped = false;
        for line in told.by_ref() {
            let event: serde_json::Value = serde_json::from_str(&line.expect("text")).expect("JSON");
            if event["event"] == "visited" {
                let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
                truth.visited(&text("url"), &text("outcome"));
            }
            if over.load(Ordering::Relaxed) && !stopped {
                let pid = rustix::process::Pid::from_child(&child);
                rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is told");
                stopped = true;
            }
        }
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{}: {said}", output.status);
    }
}

#[test]
fn what_is_asked_while_a_crawl_writes_is_answered_whole_and_at_once() {
    let seconds: u64 = std::env::var("SKEP_LOAD_SECONDS").map_or(SECONDS, |value| value.parse().expect("a number"));
    let site = Site::new();
    // An archive, so that there is something to serve.
    site.write("history.warc.gz", site::files::history().bytes);
    site.skep(&["add", "history.warc.gz"]).exits(0);
    let portal = Portal::begin(&site, &["--memory", MEMORY]);
    let (address, replay) = (portal.address.clone(), format!("replay.localhost:{}", portal.port()));
    let scale = if seconds < JUDGED_SECONDS { SMALL } else { LARGE };
    let truth = Truth::of(web(&scale));
    let (over, wrong) = (AtomicBool::new(false), Mutex::new(Vec::<String>::new()));
    let counts: Vec<AtomicU64> = asking::ALL.iter().map(|_| AtomicU64::new(0)).collect();
    let begun = Instant::now();
    let samples = std::thread::scope(|scope| {
        scope.spawn(|| crawl(&site, &scale, &truth, &over));
        for number in 0..ASKERS {
            let (truth, over, wrong, counts) = (&truth, &over, &wrong, &counts);
            let mut asker = Asker { client: Client::of(&address), truth, replay: replay.clone() };
            let mut chance = Chance(number + 1);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    if let Some(page) = truth.any(chance.draw()) {
                        let which = chance.draw() as usize % asking::ALL.len();
                        match asker.ask(asking::ALL[which], &page, chance.draw()) {
                            Ok(()) => drop(counts[which].fetch_add(1, Ordering::Relaxed)),
                            Err(why) => {
                                wrong.lock().expect("no panic").push(why);
                                over.store(true, Ordering::Relaxed);
                            }
                        }
                    }
                    std::thread::sleep(REST);
                }
            });
        }
        let mut samples = Vec::new();
        while begun.elapsed().as_secs() < seconds && !over.load(Ordering::Relaxed) {
            samples.push(Sample::of(portal.child.id()));
            std::thread::sleep(Duration::from_secs(1));
        }
        over.store(true, Ordering::Relaxed);
        samples
    });
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "after {:.0} s: {}", begun.elapsed().as_secs_f64(), wrong.join("\n"));

    let asked: BTreeMap<&str, u64> =
        asking::ALL.iter().copied().zip(counts.iter().map(|count| count.load(Ordering::Relaxed))).collect();
    let (visits, captures, passes) = truth.sums();
    eprintln!("{seconds} s; {passes} passes, {visits} visits, {captures} captures; answered {asked:?}");
    is_steady(&samples, seconds);
    assert!(passes > 3 && captures > 500, "{passes} passes, {captures} captures");
    assert!(asked.values().all(|count| *count > 20), "{asked:?}");
    let (code, log, said) = portal.end();
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("note:"), "{said}");
    let failed: Vec<&str> = log.lines().filter(|line| line.contains("\" 50")).take(5).collect();
    assert!(failed.is_empty(), "{failed:?}");
    site.is_sound();
}

/// What is held in the last third is what was held in the middle one.
fn is_steady(samples: &[Sample], seconds: u64) {
    let (middle, last) = (&samples[samples.len() / 3..2 * samples.len() / 3], &samples[2 * samples.len() / 3..]);
    let resident = |of: &[Sample]| of.iter().map(|sample| sample.resident).sum::<f64>() / of.len() as f64;
    let median = |of: &[Sample], what: fn(&Sample) -> u64| {
        let mut all: Vec<u64> = of.iter().map(what).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    let growth = resident(last) / resident(middle) - 1.0;
    let tenths: Vec<u64> = samples.chunks(samples.len().div_ceil(10)).map(|of| (resident(of) / 1e6) as u64).collect();
    eprintln!("resident MB by tenth of the time: {tenths:?}");
    let peak = samples.iter().map(|sample| sample.resident).fold(0.0, f64::max);
    let [descriptors, threads] = [|sample: &Sample| sample.descriptors, |sample: &Sample| sample.threads]
        .map(|what| (median(middle, what), median(last, what)));
    eprintln!(
        "resident {:.1} MB in the middle third, {:.1} in the last ({:+.1} %), peak {:.1}; descriptors {descriptors:?}, threads {threads:?}",
        resident(middle) / 1e6,
        resident(last) / 1e6,
        growth * 100.0,
        peak / 1e6,
    );
    if seconds >= JUDGED_SECONDS {
        assert!(growth < 0.05, "memory grew by {:.1} %", growth * 100.0);
        // Connections and segments come and go; a leak of one a minute would show.
        assert!(descriptors.1 <= descriptors.0 + 8, "{descriptors:?} descriptors");
        assert!(threads.1 <= threads.0 + 4, "{threads:?} threads");
    }
}
