//! Hosts, providers and networks that turn visitors away: rows 36 to 38 and 45.

use crate::trial::{Setup, Trial, slow_hosts};
use skep_testweb::{Behaviour, Hostile, Row};
use std::time::{Duration, Instant};

#[test]
fn row_36_challenges_are_marked_and_backed_off_from() {
    let trial = Setup::of(Row::Challenges).ends(0).run();
    for form in ["moment", "proof-of-work", "denied", "captcha"] {
        let host = format!("row-36-challenges-{form}.test");
        let proof = trial.proof_of(&host, &[form]);
        assert!(proof.forms[form] <= 10, "{proof:?}");
        trial.why(&host, "/").is("dead", "challenge");
    }
    trial.why("row-36-challenges-cloaked.test", "/").is("visited", "200");
}

#[test]
fn row_37_refusals_are_obeyed_and_the_crawl_says_until_when() {
    // A date in the past counts as no date, and that is half a minute each time: too long for a test.
    let trial = Setup::of(Row::Refusals).without("past").ends(3).run();
    for form in ["bare", "seconds", "date", "year", "words", "unavailable"] {
        trial.proof_of(&format!("row-37-refusals-{form}.test"), &[form]);
    }
    // Several bundles of an own host are under way when the first is refused; nobody comes back after that.
    assert!(trial.proof("row-37-refusals-year.test").forms["year"] <= 8);
    trial.why("row-37-refusals-year.test", "/").is("visited", "200");
}

#[test]
fn row_38_sites_of_an_address_that_bans_us_are_left_alone_together() {
    let trial = Setup::of(Row::ProviderBan).patience(5).run();
    for form in ["forbidden", "too-many", "reset", "silence"] {
        let hosts: Vec<String> = (0..5).map(|n| format!("row-38-provider-ban-{form}-{n}.test")).collect();
        let deeds: u64 = hosts.iter().map(|host| trial.proof(host).deeds).sum();
        let address = trial.web.address(&hosts[0]).expect("an address").ip().to_string();
        let bans = trial.events_of("turned-away").iter().filter(|event| event["address"] == address).count();
        println!("{form}: {deeds} refusals, {bans} bans");
        // Six in a row and it is given up; an answer that was under way when the first began ends that one, and it counts anew.
        assert!((1..=12).contains(&bans) && deeds > 0, "{form}: {deeds} refusals, {bans} bans");
        let visited = trial.visited();
        let of_form = |url: &str| hosts.iter().any(|host| url.starts_with(&trial.url(host, "/")));
        let banned: Vec<&String> = visited
            .iter()
            .filter(|(url, outcome)| outcome == "provider-ban" && of_form(url))
            .map(|(url, _)| url)
            .collect();
        assert!(!banned.is_empty(), "{form}");
        trial.why_of(banned[0]).is("dead", "provider ban");
    }
    assert!(trial.counted("errors", "host-banned") > 20, "{}", trial.report());
}

#[test]
fn row_38_a_ban_that_ends_costs_nothing() {
    let mut began = None;
    let trial = Setup::only("row-38-provider-ban-forbidden")
        .patience(20)
        .meddling(move |web, said, _| {
            let began = began.get_or_insert_with(Instant::now);
            if !said.contains("turned-away") {
                *began = Instant::now();
            } else if began.elapsed() > Duration::from_millis(700) {
                web.behave("*", Behaviour::default()).expect("they behave");
            }
        })
        .run();
    assert!(trial.visited().iter().any(|(_, outcome)| outcome == "provider-ban"));
    assert_eq!(trial.counted("errors", "host-banned"), 0, "{}", trial.report());
    for number in 0..5 {
        let host = format!("row-38-provider-ban-forbidden-{number}.test");
        // Those few that were refused before it was clear by whom have their answer.
        trial.why(&host, "/").is("visited", "");
    }
}

#[test]
fn row_45_a_crawl_behind_a_portal_ends() {
    let trial = Setup::of(Row::Portal).run();
    trial.proof_of("row-45-portal-page.test", &["page"]);
}

/// A crawl of some sites for which a portal answers between its so-many-th request and two seconds after the crawl noticed.
fn behind_a_portal(form: &'static str, from: u64) -> Trial {
    let mut portal = false;
    let mut paused = None;
    let mut plan = slow_hosts(20);
    if from == 0 {
        portal = true;
        let hostile = Behaviour::hostile(Hostile::new(Row::Portal).form(form));
        plan.hosts.iter_mut().for_each(|host| host.behaviour = hostile.clone());
    }
    let trial = Setup::with(plan)
        .patience(20)
        .meddling(move |web, said, _| {
            if !portal && web.report().requests > from {
                portal = true;
                web.behave("*", Behaviour::hostile(Hostile::new(Row::Portal).form(form))).expect("a portal");
            }
            if said.contains("\"paused\"") && paused.get_or_insert_with(Instant::now).elapsed() > Duration::from_secs(2)
            {
                web.behave("*", Behaviour::slow(1)).expect("they behave");
            }
        })
        .run();
    let deeds: u64 = trial.web.proofs().values().map(|proof| proof.deeds).sum();
    assert!(deeds > 0, "nobody saw the portal");
    trial
}

/// The crawl waited, and has every page as it is.
fn is_as_if_nothing_happened(trial: &Trial) {
    let of = |event: &str| trial.events_of(event).len();
    assert!(of("paused") >= 1 && of("paused") == of("resumed"), "{:?}", trial.events_of("paused"));
    assert!(trial.events_of("paused")[0]["why"].as_str().is_some_and(|why| why.contains("log-in")));
    let visited = trial.visited();
    let seen: Vec<&String> =
        visited.iter().filter(|(_, outcome)| outcome == "captive-portal").map(|(url, _)| url).collect();
    assert!(!seen.is_empty());
    for url in seen {
        assert_eq!(trial.why_of(url).word(), "visited");
        let record = trial.record(url);
        assert!(!String::from_utf8_lossy(&record).contains("Welcome to the hotel"), "{url}");
    }
    for number in 0..20 {
        trial.kept_ordinary_pages(&format!("www.example-{number}.test"));
    }
}

#[test]
fn row_45_a_portal_is_waited_out_and_its_pages_are_nobodys() {
    is_as_if_nothing_happened(&behind_a_portal("page", 60));
}

#[test]
fn row_45_a_portal_that_redirects_is_waited_out() {
    is_as_if_nothing_happened(&behind_a_portal("redirect", 60));
}

#[test]
fn row_45_a_portal_that_is_there_before_the_crawl_is_waited_out() {
    is_as_if_nothing_happened(&behind_a_portal("page", 0));
}
