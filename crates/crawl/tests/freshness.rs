//! The freshness of copies, judged by what an archive tells: the schedule watches twenty thousand pages of the changing web in
//! virtual time, each visit becomes a record, and the times are read back from the archive. One test per budget.

mod kept;
#[path = "../../schedule/tests/watching/mod.rs"]
mod watching;

use kept::Kept;
use skep_schedule::revisit::Policy;
use skep_testweb::changing::{Changing, Model};
use watching::Watch;

/// Times in records are whole milliseconds.
const ROUNDED_AWAY: f64 = 1e-6;

fn learned_against_oracle(period: f64, least: f64) {
    let web = Changing::new(1, 20_000, Model::open_web());
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
    let [responses, revisits, lines] = kept.written;
    println!("every {period} days: {responses} responses, {revisits} revisits, {lines} check lines");
    let by_the_archive = kept.judge(&web, false, ours.judged_days());
    println!("by the loop {by_the_loop:?}, by the archive {by_the_archive:?}, oracle {oracle:?}");
    assert!((by_the_archive.fresh - by_the_loop.fresh).abs() < ROUNDED_AWAY);
    assert!((by_the_archive.within_a_day - by_the_loop.within_a_day).abs() < ROUNDED_AWAY);
    // A visit at the very beginning, and one at the end, may fall to the other side.
    assert!(by_the_archive.visits.abs_diff(by_the_loop.visits) <= 2);
    let share = by_the_archive.fresh / oracle.fresh;
    assert!(share >= least, "{share} of the oracle's freshness");
}

#[test]
fn a_visit_per_page_and_thirty_days_by_the_archive() {
    learned_against_oracle(30.0, 0.96);
}

#[test]
fn a_visit_per_page_and_week_by_the_archive() {
    learned_against_oracle(7.0, 0.98);
}

#[test]
fn a_visit_per_page_and_two_days_by_the_archive() {
    learned_against_oracle(2.0, 0.99);
}
