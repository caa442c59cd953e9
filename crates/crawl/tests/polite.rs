//! How a crawl of hosts that are not ours looks from their side: the auditor judges by its own clock, and finds nothing.
//!
//! `SKEP_POLITE_HOSTS`, `_SITES`, `_ADDRESSES`, `_PAGES`, `_CONCURRENCY` and `_SECONDS` make it larger; a soak does.

mod web;

use skep_crawl::{Ending, Settings};
use skep_testweb::{Behaviour, Clock, HostPlan, Mix, Plan, Policy, Report, Robots, Shape, Time, Web, World, loopback};
use std::time::SystemTime;

fn number(name: &str, default: u32) -> u32 {
    std::env::var(format!("SKEP_POLITE_{name}")).ok().map_or(default, |value| value.parse().expect("a number"))
}

/// What the auditor asks for: everything.
fn strict() -> Policy {
    let in_flight_max = u32::from(skep_schedule::limits::ADDRESS_IN_FLIGHT_MAX);
    Policy { agent: Some("skep".into()), in_flight_max, ..Policy::polite() }
}

/// The web's clock is the machine's: dates in `Retry-After` are real.
fn start(plan: Plan) -> Web {
    let clock = Some(Clock::new(Time::from_system(SystemTime::now()), 1.0));
    let settings = skep_testweb::Settings { clock, policy: strict(), ..skep_testweb::Settings::default() };
    Web::start(World::build(plan).expect("a world"), settings).expect("a web")
}

/// Crawls for so long and returns what the auditor says.
fn visit(web: &Web, concurrency: u32, seconds: u32) -> Report {
    let folder = tempfile::tempdir().expect("a folder");
    let archive = web::archive(folder.path());
    let settings = Settings { concurrency, time_ms: Some(u64::from(seconds) * 1_000), ..web::polite(web) };
    let (ending, _) = web::crawl(&archive, settings, web::fetch(web), 1_000);
    assert!(matches!(ending, Ending::Finished | Ending::Budget("time")), "{ending:?}");
    web::is_sound(&archive);
    web.report()
}

#[test]
fn a_mixed_and_troubled_web_finds_no_fault_with_us() {
    let mix = Mix {
        hosts: number("HOSTS", 24),
        sites: number("SITES", 8),
        addresses: number("ADDRESSES", 3),
        pages: number("PAGES", 12),
        changing: false,
        troubled: true,
        ..Mix::default()
    };
    let (concurrency, seconds) = (number("CONCURRENCY", 16), number("SECONDS", 15));
    let web = start(Plan::mixed(3, &mix));
    let report = visit(&web, concurrency, seconds);
    let refusals: u64 = [429, 503].iter().filter_map(|status| report.statuses.get(status)).sum();
    eprintln!(
        "{} requests of {} hosts on {} sites and {} addresses in {seconds} s: {refusals} refusals, at most {} in flight to \
         an address, at least {:.0} ms between two requests of a site",
        report.requests,
        report.hosts.len(),
        report.sites.len(),
        report.addresses.len(),
        report.in_flight_max,
        report.site_gap_ms_min.unwrap_or(f64::NAN),
    );
    assert!(report.polite(), "{}", report.table());
    // Politeness is easy for who does nothing: most hosts were visited, and sites side by side.
    let visited = report.hosts.len() as u32 > mix.hosts * 2 / 3 && report.requests > u64::from(mix.hosts) * 2;
    assert!(visited && report.in_flight_max > 1, "{}", report.table());
}

#[test]
fn every_way_to_ask_for_patience_is_understood() {
    let host = |number: u32, behaviour: Behaviour| {
        let name = format!("h{number}.patient-{number}.test");
        HostPlan::generated(&name, Shape::pages(6).frozen()).behaving(behaviour).on(&[loopback(number)])
    };
    let dated = |status| {
        let mut behaviour = Behaviour::refuse(status, Some(3), 3);
        if let Some(skep_testweb::Trouble::Refuse { as_date, .. }) = &mut behaviour.trouble {
            *as_date = true;
        }
        behaviour
    };
    let plan = Plan::new(9)
        .host(host(0, Behaviour::refuse(429, Some(2), 3)))
        .host(host(1, Behaviour::refuse(503, Some(2), 3)))
        .host(host(2, dated(429)))
        .host(host(3, dated(503)))
        .host(host(4, Behaviour::refuse(429, None, 3)))
        .host(host(5, Behaviour::slow(300)))
        .host(host(6, Behaviour::default()).robots(Robots::CrawlDelay(2)))
        .host(host(7, Behaviour::default()).robots(Robots::Redirect(3)))
        // Its robots.txt is that of another site, which has a clock of its own.
        .host(host(8, Behaviour::default()).robots(Robots::RedirectTo("http://h0.patient-0.test/robots.txt".into())))
        .host(host(9, Behaviour::default()).robots(Robots::Status(503)));
    let web = start(plan);
    let report = visit(&web, 16, 14);
    assert!(report.polite(), "{}", report.table());
    assert!(report.hosts.values().all(|visits| visits.requests > 0), "{}", report.table());
    for status in [429, 503] {
        assert!(report.statuses.get(&status).is_some_and(|count| *count >= 3), "{}", report.table());
    }
    // Two seconds each: in fourteen, there is time for a few, and not for many.
    let delayed = report.hosts["h6.patient-6.test"].requests;
    assert!((3..=8).contains(&delayed), "{}", report.table());
}
