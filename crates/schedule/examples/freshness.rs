//! Every policy against the same changing webs, in virtual time: one JSON object a line.
//!
//! `freshness --pages 100000 --seeds 10 [--threads 2]`

#[path = "../tests/watching/mod.rs"]
mod watching;

use std::sync::atomic::{AtomicU64, Ordering};

use skep_schedule::revisit::Policy;
use skep_testweb::changing::{Changing, Model};
use watching::Watch;

/// Mean revisit periods until what was learned is judged, and for how long it is.
const LEARNING: f64 = 16.0;
const JUDGED: f64 = 8.0;

/// Days per visit and page.
const PERIODS: [f64; 3] = [30.0, 7.0, 2.0];

/// Where this many times the visits are asked how fresh an even schedule would be.
const MORE_VISITS: (f64, [f64; 3]) = (7.0, [3.0, 5.0, 7.0]);

const KNOWING: [(&str, Policy); 2] = [("oracle", Policy::Fresh), ("oracle-harmonic", Policy::Harmonic)];

fn main() {
    let (pages, seeds) = (asked("--pages", 100_000), asked("--seeds", 10));
    let next = AtomicU64::new(1);
    std::thread::scope(|scope| {
        for _ in 0..asked("--threads", 2) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > seeds {
                        break;
                    }
                    compare(seed, pages as u32);
                }
            });
        }
    });
}

fn compare(seed: u64, pages: u32) {
    let web = Changing::new(seed, pages, Model::open_web());
    for equal in [true, false] {
        for period in PERIODS {
            let watch = |policy, oracle, times: f64| Watch {
                policy,
                oracle,
                visits_per_page: times / period,
                equal,
                learning: LEARNING,
                judged: JUDGED,
            };
            for (name, policy) in KNOWING {
                tell(&web, seed, name, period, watch(policy, true, 1.0));
            }
            for policy in Policy::ALL {
                tell(&web, seed, policy.id(), period, watch(policy, false, 1.0));
            }
            if !equal && period == MORE_VISITS.0 {
                for times in MORE_VISITS.1 {
                    tell(&web, seed, &format!("uniform-x{times}"), period, watch(Policy::Uniform, false, times));
                }
            }
        }
    }
}

fn tell(web: &Changing, seed: u64, name: &str, period: f64, watch: Watch) {
    let found = watching::run(web, watch);
    let asked = JUDGED * f64::from(web.pages());
    let line = serde_json::json!({
        "seed": seed,
        "policy": name,
        "days": period,
        "importance": if watch.equal { "equal" } else { "skewed" },
        "fresh": found.fresh,
        "within_a_day": found.within_a_day,
        "used": found.visits as f64 / asked,
        "hourly_used": found.hourly_used,
    });
    println!("{line}");
}

/// The number behind an option.
fn asked(option: &str, otherwise: u64) -> u64 {
    let mut arguments = std::env::args().skip_while(|argument| argument != option);
    match (arguments.next(), arguments.next()) {
        (Some(_), Some(number)) => number.parse().unwrap_or(otherwise),
        _ => otherwise,
    }
}
