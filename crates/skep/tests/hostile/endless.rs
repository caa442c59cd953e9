//! Webs without end: rows 1 to 7, 34 and 35.

use crate::trial::Setup;
use skep_testweb::{Behaviour, HostPlan, Hostile, Plan, Robots, Row, Shape};

const MAZE: &str = "row-01-maze.test";

#[test]
fn row_01_a_maze_is_left_after_a_few_pages_of_it() {
    let trial = Setup::of(Row::Maze).run();
    let proof = trial.proof_of(MAZE, &["maze"]);
    assert!(proof.forms["maze"] < 200, "{proof:?}");
    assert!(trial.counted("traps", "maze") > 10, "{}", trial.report());
    trial.kept_ordinary_pages(MAZE);
}

#[test]
fn row_01_a_maze_that_drips_is_left_too() {
    let trial = Setup::of(Row::Maze).measure(|hostile| hostile.ms(20)).run();
    let proof = trial.proof_of(MAZE, &["maze"]);
    assert!(proof.held_ms > 1_000 && proof.forms["maze"] < 200, "{proof:?}");
    trial.kept_ordinary_pages(MAZE);
}

/// A site of real pages beside a maze: the share of fetches that the maze gets.
#[test]
fn row_01_beside_a_maze_nearly_all_fetches_are_for_real_pages() {
    const HOST: &str = "docs.example-1.test";
    let host = HostPlan::generated(HOST, Shape { links_off: 0, ..Shape::pages(2_000).frozen() })
        .robots(Robots::Allow)
        .behaving(Behaviour::hostile(Hostile::new(Row::Maze)));
    let trial = Setup::with(Plan::new(11).host(host)).run();
    let proof = trial.proof_of(HOST, &["maze"]);
    let (maze, all) = (proof.forms["maze"], proof.requests);
    assert!(all > 2_000 && maze * 20 <= all, "{maze} of {all} fetches fell into the maze");
    trial.kept_ordinary_pages(HOST);
}

/// Pages by the thousand, numbered, dated, in folders within folders: none of them is a trap.
#[test]
fn nothing_is_a_trap_where_there_is_none() {
    const HOST: &str = "docs.example-1.test";
    let host = HostPlan::generated(HOST, Shape { links_off: 0, ..Shape::pages(3_000).frozen() }).robots(Robots::Allow);
    let trial = Setup::with(Plan::new(12).host(host)).run();
    assert!(trial.visited().len() > 3_000);
    assert_eq!(trial.report()["traps"], serde_json::json!({}), "{}", trial.report());
    trial.kept_ordinary_pages(HOST);
}

#[test]
fn row_02_calendars_and_filters_run_out_of_budget() {
    let host = "row-02-calendar.test";
    let trial = Setup::of(Row::Calendar).run();
    let proof = trial.proof_of(host, &["calendar", "facets"]);
    assert!(proof.deeds < 4_000, "{proof:?}");
    assert!(trial.counted("traps", "shape-budget") + trial.counted("traps", "maze") > 100, "{}", trial.report());
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_03_segments_that_repeat_are_refused_by_name() {
    let host = "row-03-segments.test";
    let trial = Setup::of(Row::Segments).run();
    let proof = trial.proof_of(host, &["repeating", "deepening"]);
    assert!(proof.deeds < 500, "{proof:?}");
    assert!(trial.counted("traps", "repeating-segments") > 0, "{}", trial.report());
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_04_session_numbers_do_not_make_pages_without_end() {
    let host = "row-04-sessions.test";
    let trial = Setup::of(Row::Sessions).run();
    let proof = trial.proof_of(host, &["query", "path", "random"]);
    // Numbers under well-known names are no part of a page's name; under others they are seen to bring nothing new.
    assert!(proof.forms["query"] <= 7 && proof.forms["path"] <= 7, "{proof:?}");
    assert!(proof.forms["random"] < 500, "{proof:?}");
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_05_hosts_without_end_on_one_site_are_a_flood() {
    let host = "row-05-subdomains.test";
    let trial = Setup::of(Row::Subdomains).saying("scope = 'site'").run();
    let proof = trial.proof_of(host, &["subdomains"]);
    // A thousand hosts are taken in; how many of them are visited before suspicion is certain depends on what comes back when.
    assert!(proof.forms["subdomains"] < 500, "{proof:?}");
    assert!(trial.counted("traps", "subdomain-flood") > 0, "{}", trial.report());
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_06_redirects_end() {
    let host = "row-06-redirects.test";
    let trial = Setup::of(Row::Redirects).run();
    let proof = trial.proof_of(host, &["circle", "itself", "chain", "cookie", "growing", "nowhere"]);
    assert!(proof.forms["chain"] <= 12 && proof.forms["growing"] <= 12 && proof.forms["circle"] <= 3, "{proof:?}");
    trial.why(host, "/redirects/chain/11").is("refused", "redirects");
    trial.why(host, "/redirects/itself").is("visited", "301");
    // Who redirects to itself until a cookie comes back is shown it, once.
    assert_eq!(proof.forms["cookie"], 2, "{proof:?}");
    trial.why(host, "/redirects/cookie").is("visited", "200");
    assert!(
        String::from_utf8_lossy(&trial.record(&trial.url(host, "/redirects/cookie"))).contains("A cookie came back")
    );
    trial.why(host, "/redirects/nowhere").is("visited", "302");
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_07_refreshes_end_as_redirects_do() {
    let host = "row-07-refreshes.test";
    let trial = Setup::of(Row::Refreshes).run();
    let proof = trial.proof_of(host, &["circle", "chain", "header", "script"]);
    assert!(proof.forms["chain"] <= 12 && proof.forms["header"] <= 12, "{proof:?}");
    trial.why(host, "/refreshes/chain/11").is("refused", "redirects");
    trial.why(host, "/refreshes/header/11").is("refused", "redirects");
    trial.kept_ordinary_pages(host);
}

#[test]
fn row_34_a_host_that_has_everything_is_found_out() {
    let host = "row-34-soft-missing-missing.test";
    let trial = Setup::of(Row::SoftMissing).run();
    let proof = trial.proof_of(host, &["missing"]);
    assert!(proof.forms["missing"] < 500, "{proof:?}");
    let missing = trial.visited().into_iter().filter(|(_, outcome)| outcome == "soft-404").collect::<Vec<_>>();
    assert!(missing.len() > 10, "{:?}", trial.visited());
    trial.why_of(&missing[0].0).is("visited", "shows what its host shows for everything that is not there");
    assert_eq!(trial.visited().iter().filter(|(_, outcome)| outcome == "probe").count(), 1);
    // Its few real pages came all the same; everything else, pictures too, is the page for what is not there.
    let real = trial.web.world().truth(trial.web.now()).map(|entry| entry.expect("the truth").url);
    let real: Vec<String> = real.filter(|url| trial.visited().contains(&(url.clone(), "200".into()))).collect();
    assert!(real.len() >= 7, "{real:?} of {:?}", trial.visited());
}

#[test]
fn row_35_the_mirrors_of_a_farm_share_what_one_of_them_would_get() {
    // One host after the other, so that the later ones can be known by what the first ones showed.
    let trial = Setup::of(Row::Mirrors).saying("concurrency = 2").run();
    let deeds: Vec<u64> = (0..10).map(|n| trial.proof(&format!("row-35-mirrors-{n:02}.test")).deeds).collect();
    assert!(deeds.iter().all(|deeds| *deeds > 0), "{deeds:?}");
    assert!(deeds.iter().filter(|deeds| **deeds <= 12).count() >= 4, "each has 21 pages: {deeds:?}");
    assert!(trial.counted("traps", "mirror-farm") > 20, "{}", trial.report());
    let spent = deeds.iter().position(|deeds| *deeds <= 12).expect("one of them");
    trial.why(&format!("row-35-mirrors-{spent:02}.test"), "/offer/19.html").is("trap", "show the same pages");
    assert_eq!(trial.events_of("paused").len(), 0, "a farm is no portal");
}
