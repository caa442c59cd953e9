//! A crawl that goes on, pass after pass, while pages change and hosts fail, holds no more in the end than in the middle: memory,
//! descriptors, threads. `SKEP_STEADY_SECONDS` says for how long; a soak asks for half an hour, and only then memory is judged.

use skep_testweb::{Behaviour, Clock, Hostile, Plan, Row, Settings, Time, Web, World};
use skep_testweb::{HostPlan, Shape};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Below this, caches are still filling.
const JUDGED_SECONDS: u64 = 600;
const HOSTS: u64 = 12;

/// The example beside this test's binary.
fn steady() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let path = here.parent().unwrap().parent().unwrap().join("examples").join("steady");
    assert!(path.is_file(), "{} is missing; `cargo build --examples` makes it", path.display());
    path
}

struct Sample {
    resident: f64,
    descriptors: u64,
    threads: u64,
}

/// Numbers from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn moods(chance: &mut Chance) -> Behaviour {
    match chance.below(10) {
        0 => Behaviour::refuse(500, None, 3),
        1 => Behaviour::refuse(503, Some(1), 60),
        2 => Behaviour::refuse(429, Some(1), 60),
        3 => Behaviour::slow(100),
        4 => Behaviour::hostile(Hostile::new(Row::LengthLong).ms(200)),
        5 => Behaviour::hostile(Hostile::new(Row::StatusLines).ms(200)),
        _ => Behaviour::default(),
    }
}

#[test]
fn what_a_long_crawl_holds_does_not_grow() {
    let seconds: u64 = std::env::var("SKEP_STEADY_SECONDS").map_or(12, |value| value.parse().expect("a number"));
    let mut plan = Plan::new(17);
    for number in 0..HOSTS {
        // Most pages change between two passes: what is buffered until there is enough of it fills and empties many times.
        let shape = Shape { period_seconds: (3_600, 86_400), ..Shape::pages(120) };
        plan = plan.host(HostPlan::generated(&format!("h{number}.steady-{number}.test"), shape));
    }
    // A day a minute.
    let clock = Some(Clock::new(Time::BEGIN.plus_days(100), 1_440.0));
    let web = Web::start(World::build(plan).unwrap(), Settings { clock, ..Settings::default() }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(steady())
        .arg(folder.path())
        .arg(seconds.to_string())
        .args(web.map().hosts.iter().map(|place| &place.resolve[0]))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut chance = Chance(1);
    let (mut samples, mut passes, mut visits) = (Vec::new(), 0, 0);
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let figure = |at: usize| words[at].parse::<u64>().expect("a number");
        match words[0] {
            "sample" => {
                samples.push(Sample { resident: figure(2) as f64, descriptors: figure(3), threads: figure(4) });
                let host = &web.map().hosts[chance.below(HOSTS) as usize].host;
                web.behave(host, moods(&mut chance)).expect("a host");
            }
            _ => (passes, visits) = (figure(1), visits + figure(2)),
        }
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(samples.len() as u64, seconds);
    let (middle, last) = (&samples[samples.len() / 3..2 * samples.len() / 3], &samples[2 * samples.len() / 3..]);
    let resident = |of: &[Sample]| of.iter().map(|sample| sample.resident).sum::<f64>() / of.len() as f64;
    let most = |of: &[Sample], what: fn(&Sample) -> u64| of.iter().map(what).max().unwrap_or(0);
    // Segments are synced side by side, by threads that live for a moment: what is there most of the time counts.
    let threads = |of: &[Sample]| {
        let mut counts: Vec<u64> = of.iter().map(|sample| sample.threads).collect();
        counts.sort_unstable();
        counts[counts.len() / 2]
    };
    let growth = resident(last) / resident(middle) - 1.0;
    let peak = samples.iter().map(|sample| sample.resident).fold(0.0, f64::max);
    eprintln!(
        "{seconds} s, {passes} passes, {visits} visits; resident {:.1} MB in the middle third, {:.1} in the last ({:+.1} %), peak \
         {:.1}; descriptors {} and {}, threads {} and {}",
        resident(middle) / 1e6,
        resident(last) / 1e6,
        growth * 100.0,
        peak / 1e6,
        most(middle, |sample| sample.descriptors),
        most(last, |sample| sample.descriptors),
        threads(middle),
        threads(last),
    );
    assert!(visits > 100, "{passes} passes, {visits} visits");
    assert!(threads(last) <= threads(middle), "{} threads, then {}", threads(middle), threads(last));
    if seconds >= JUDGED_SECONDS {
        assert!(passes >= 10, "{passes} passes");
        assert!(growth < 0.05, "memory grew by {:.1} %", growth * 100.0);
        let descriptors = most(last, |sample| sample.descriptors);
        // Connections come and go; a leak of one a minute would show.
        assert!(descriptors <= most(middle, |sample| sample.descriptors) + 8, "{descriptors} descriptors");
    }
}
