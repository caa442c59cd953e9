//! The freshness that a schedule in virtual time reaches, judged by the times that an archive of its visits tells, beside that by the
//! times of the loop: one JSON object a line and budget.
//!
//! `freshness_kept --pages 100000 --seed 1`

#[path = "../tests/kept/mod.rs"]
mod kept;
#[path = "../../schedule/tests/watching/mod.rs"]
mod watching;

use kept::Kept;
use skep_schedule::revisit::Policy;
use skep_testweb::changing::{Changing, Model};
use watching::Watch;

/// Days per visit and page.
const PERIODS: [f64; 3] = [30.0, 7.0, 2.0];

fn main() {
    let (pages, seed) = (asked("--pages", 100_000), asked("--seed", 1));
    let web = Changing::new(seed, pages as u32, Model::open_web());
    for period in PERIODS {
        let watch = |policy, oracle| Watch {
            policy,
            oracle,
            visits_per_page: 1.0 / period,
            equal: false,
            learning: 16.0,
            judged: 8.0,
        };
        let oracle = watching::run(&web, watch(Policy::Fresh, true));
        let ours = watch(Policy::Harmonic, false);
        let mut kept = Kept::new(&web);
        let by_the_loop = watching::run_told(&web, ours, &mut |page, t, seen| kept.told(page, t, seen));
        let [responses, revisits, checks] = kept.written;
        let by_the_archive = kept.judge(&web, false, ours.judged_days());
        let line = serde_json::json!({
            "days": period,
            "oracle": oracle.fresh,
            "loop": by_the_loop.fresh,
            "archive": by_the_archive.fresh,
            "responses": responses,
            "revisits": revisits,
            "checks": checks,
        });
        println!("{line}");
    }
}

/// The number behind an option.
fn asked(option: &str, otherwise: u64) -> u64 {
    let mut arguments = std::env::args().skip_while(|argument| argument != option);
    match (arguments.next(), arguments.next()) {
        (Some(_), Some(number)) => number.parse().unwrap_or(otherwise),
        _ => otherwise,
    }
}
