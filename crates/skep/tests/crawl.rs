//! Crawls by the real binary, over sockets, of a web whose truth is known.

#[path = "site/portal.rs"]
mod portal;
mod site;
#[path = "site/web.rs"]
mod web;

use portal::Portal;
use serde_json::Value;
use site::files::{Warc, history};
use site::{Ran, Site};
use skep_testweb::{Behaviour, HostPlan, Plan, Robots, Scheme, Shape, Web};
use std::collections::BTreeSet;
use web::{HOME, HOST, Running, asked, crawl, folder, generated, kept, start, truth};

/// The event that ends the output of a crawl with `--json`.
fn ended(ran: &Ran) -> Value {
    let last = ran.json().pop().expect("an event");
    assert_eq!(last["event"], "ended");
    last
}

fn status(web: &Web, status: u16) -> u64 {
    web.report().statuses.get(&status).copied().unwrap_or(0)
}

// ── the whole of it ──────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_crawl_keeps_the_whole_site_byte_for_byte_and_says_what_to_do_next() {
    let (site, web) = (Site::new(), generated(60));
    let ran = crawl(&site, &[HOME], &web).exits(0);
    assert_eq!(kept(&site), truth(&web));
    assert!(asked(&web).values().all(|count| *count == 1), "{:?}", asked(&web));
    assert!(ran.text().contains("pass 1, finished") && ran.text().contains("visited"), "{}", ran.text());
    assert!(ran.talk.contains("skep why URL") && ran.talk.contains("--broken"), "{}", ran.talk);
    let page = web.world().entry(HOME, web.now()).expect("a host").expect("an entry");
    assert_eq!(site.skep(&["get", HOME]).exits(0).out.len() as u64, page.bytes);
    site.is_sound();
    let report = web.report();
    assert!(report.polite(), "{}", report.table());
    assert!(web.requests().iter().all(|request| request.agent.contains("compatible; skep/0.")), "who it is");
}

#[test]
fn the_same_command_again_looks_again_and_keeps_what_changed() {
    let (site, web) = (Site::new(), generated(30));
    crawl(&site, &[HOME], &web).exits(0);
    let before = kept(&site);
    let (full, unchanged) = (status(&web, 200), status(&web, 304));
    assert_eq!(unchanged, 0);
    let again = crawl(&site, &[HOME, "--json"], &web).exits(0);
    assert_eq!(ended(&again)["report"]["pass"], 2);
    assert!(status(&web, 304) >= full - 2, "{:?}", web.report().statuses);
    assert_eq!(kept(&site), before, "nothing new is kept of what did not change");
    site.is_sound();
}

#[test]
fn events_are_objects_one_a_line() {
    let (site, web) = (Site::new(), generated(20));
    let ran = crawl(&site, &[HOME, "--json"], &web).exits(0);
    let events = ran.json();
    assert_eq!(events[0]["event"], "began");
    let visited: BTreeSet<String> = events
        .iter()
        .filter(|event| event["event"] == "visited")
        .filter_map(|event| event["url"].as_str().map(str::to_owned))
        .filter(|url| !url.ends_with("/robots.txt"))
        .collect();
    assert_eq!(visited, truth(&web).into_iter().map(|(url, ..)| url).collect());
    let ended = ended(&ran);
    assert_eq!(
        (ended["ending"].as_str(), ended["report"]["name"].as_str()),
        (Some("finished"), events[0]["name"].as_str())
    );
}

#[test]
fn https_is_crawled_with_the_authority_that_is_given() {
    let (site, web) = (
        Site::new(),
        start(Plan::new(3).host(HostPlan::generated(HOST, Shape::pages(5).frozen()).scheme(Scheme::Https))),
    );
    site.write("ca.pem", web.authority_pem());
    crawl(&site, &[HOST, "--ca", "ca.pem"], &web).exits(0);
    let captured = site.skep(&["captures", "https://bees.test/", "--json"]).exits(0);
    assert_eq!(captured.each("url"), ["https://bees.test/"]);
}

#[test]
fn a_file_of_settings_says_what_flags_say() {
    let (site, web) = (Site::new(), generated(20));
    let resolve = &web.map().hosts[0].resolve[0];
    site.write("seeds.txt", format!("# ours\n{HOME}\n"));
    site.write(
        "crawl.toml",
        format!("seeds = ['seeds.txt']\nname = 'bees'\npace = 'none'\nown = ['{HOST}']\nresolve = ['{resolve}']\ntypes = ['html']\n"),
    );
    site.skep(&["crawl", "--config", "crawl.toml"]).exits(0);
    let paths = asked(&web);
    assert!(paths.contains_key("/") && !paths.keys().any(|path| path.ends_with(".png")), "{paths:?}");
    assert_eq!(site.skep(&["report", "bees", "--json"]).exits(0).each("name"), ["bees"]);
    // By its name alone it is found again; how it fetches is not kept, so it is said again.
    site.skep(&["crawl", "--name", "bees", "--resolve", resolve]).exits(0);
    assert_eq!(site.skep(&["report", "--json"]).exits(0).each("pass"), ["2"]);
}

// ── stopping and going on ────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn control_c_finishes_what_is_in_flight_and_the_same_command_goes_on() {
    let (site, web) = (Site::new(), generated(200));
    let mut running = Running::begin(&site, &[HOME], &web);
    running.until("visited", 5);
    web.behave(HOST, Behaviour::hold()).expect("a host");
    running.interrupt();
    running.until_said("finishing what is in flight");
    web.behave(HOST, Behaviour::default()).expect("a host");
    let ran = running.hear().exits(3);
    assert_eq!(ended(&ran)["ending"], "stopped");
    assert!(asked(&web).len() < truth(&web).len(), "there is something left to do");
    site.is_sound();
    let again = crawl(&site, &[HOME, "--json"], &web).exits(0);
    assert_eq!(ended(&again)["report"]["pass"], 1);
    assert_eq!(kept(&site), truth(&web));
    assert!(asked(&web).values().all(|count| *count == 1), "{:?}", asked(&web));
}

#[test]
fn a_second_control_c_ends_at_once_and_nothing_is_lost() {
    let (site, web) = (Site::new(), generated(60));
    let mut running = Running::begin(&site, &[HOME], &web);
    running.until("visited", 5);
    web.behave(HOST, Behaviour::hold()).expect("a host");
    running.interrupt();
    running.until_said("Ctrl-C again ends at once");
    running.interrupt();
    running.hear().exits(3);
    web.behave(HOST, Behaviour::default()).expect("a host");
    crawl(&site, &[HOME], &web).exits(0);
    assert_eq!(kept(&site), truth(&web));
    site.is_sound();
}

#[test]
fn a_killed_crawl_goes_on_with_the_same_command() {
    let (site, web) = (Site::new(), generated(60));
    let mut running = Running::begin(&site, &[HOME], &web);
    running.until("visited", 10);
    running.child.kill().expect("it can be killed");
    running.child.wait().expect("it ends");
    crawl(&site, &[HOME], &web).exits(0);
    assert_eq!(kept(&site), truth(&web));
    site.is_sound();
}

#[test]
fn a_budget_ends_it_and_a_larger_one_goes_on() {
    let (site, web) = (Site::new(), generated(60));
    let ran = crawl(&site, &[HOME, "--pages", "10"], &web).exits(3);
    assert!(ran.talk.contains("larger --pages goes on"), "{}", ran.talk);
    let some = asked(&web).len();
    assert!((10..truth(&web).len()).contains(&some), "{some}");
    crawl(&site, &[HOME, "--pages", "none"], &web).exits(0);
    assert_eq!(kept(&site), truth(&web));
    assert!(asked(&web).values().all(|count| *count == 1), "{:?}", asked(&web));
}

// ── questions ────────────────────────────────────────────────────────────────────────────────────────────────────────

/// A site of our own on which every fate is met.
fn fates() -> (Site, Web) {
    let site = Site::new();
    let home = format!(
        "<a href=/ok.html>ok</a> <a href=/gone.html>gone</a> <a href=/private/x.html>private</a> <a href=/left/out.html>left</a> \
         <a href=http://elsewhere.test/>elsewhere</a> <img src=http://down.test/x.png> <img src=http://127.0.0.1:9999/x.png> \
         <a href=/{}end.html>maze</a>",
        "a/b/".repeat(12)
    );
    site.write("www/index.html", home);
    site.write("www/ok.html", "<a href=/gone.html>gone, too</a> <a href=/deep.html>deep</a>");
    site.write("www/deep.html", "<a href=/deeper.html>deeper</a>");
    site.write("www/robots.txt", "User-agent: *\nDisallow: /private/\n");
    let web = folder(&site.path("www"));
    // Nobody listens there.
    let words =
        [HOME, "--exclude", "*/left/*", "--depth", "2", "--resolve", "down.test=127.0.0.1:1", "--own", "down.test"];
    crawl(&site, &words, &web).exits(0);
    (site, web)
}

#[test]
fn every_url_has_a_fate_and_it_is_told() {
    let (site, _web) = fates();
    for (url, fate, about) in [
        ("http://bees.test/ok.html", "visited", "200"),
        ("bees.test/ok.html", "visited", "200"),
        ("http://bees.test/gone.html", "visited", "404"),
        ("http://bees.test/private/x.html", "robots", "Disallow: /private/"),
        ("http://bees.test/left/out.html", "refused", "exclude"),
        ("http://bees.test/deeper.html", "refused", "links away"),
        ("http://elsewhere.test/", "refused", ""),
        ("http://down.test/x.png", "dead", "in a row"),
        ("http://127.0.0.1:9999/x.png", "refused", "--allow-private"),
    ] {
        let ran = site.skep(&["why", url, "--json"]).exits(0);
        let told = &ran.json()[0];
        assert_eq!(told["fate"], fate, "{told}");
        assert!(told["because"].as_str().unwrap_or_default().contains(about), "{told}");
        let shown = site.skep(&["why", url]).exits(0).text();
        assert!(shown.contains(&format!("fate      {fate}: ")), "{shown}");
    }
    let maze = format!("{HOME}{}end.html", "a/b/".repeat(12));
    assert_eq!(site.skep(&["why", &maze, "--json"]).exits(0).each("fate"), ["trap"]);
    let via = site.skep(&["why", "http://bees.test/deep.html", "--json"]).exits(0);
    assert_eq!(via.each("via"), ["http://bees.test/ok.html"]);
    site.skep(&["why", "http://bees.test/never-heard-of.html"]).exits(1);
    site.skep(&["why", "nonsense"]).fails("no place to begin").hints("https://example.org/");
}

#[test]
fn broken_links_are_listed_with_the_pages_that_hold_them() {
    let (site, _web) = fates();
    let report = site.skep(&["report", "--json"]).exits(0).json().remove(0);
    assert_eq!((report["robots"].as_u64(), report["status"]["404"].as_u64()), (Some(1), Some(1)), "{report}");
    assert_eq!(report["slowest"][0]["host"], "http://bees.test:80", "{report}");
    let ran = site.skep(&["report", "--broken", "--json"]).exits(1);
    let gone =
        ran.json().into_iter().find(|link| link["url"] == "http://bees.test/gone.html").expect("the broken link");
    assert_eq!(gone["outcome"], "404");
    let pages: BTreeSet<&str> = gone["pages"].as_array().expect("pages").iter().filter_map(Value::as_str).collect();
    assert_eq!(pages, BTreeSet::from([HOME, "http://bees.test/ok.html"]));
    let shown = site.skep(&["report", "--broken"]).exits(1).text();
    assert!(shown.contains("404  http://bees.test/gone.html\n     on http://bees.test/"), "{shown}");
    let shown = site.skep(&["report"]).exits(0).text();
    assert!(shown.contains("finished") && shown.contains("broken") && shown.contains("404"), "{shown}");
    assert!(shown.contains("slowest hosts\n  http://bees.test"), "{shown}");
}

#[test]
fn a_crawl_that_runs_answers_and_obeys() {
    let (site, web) = (Site::new(), generated(200));
    let mut running = Running::begin(&site, &[HOME], &web);
    running.until("visited", 5);
    web.behave(HOST, Behaviour::hold()).expect("a host");
    let queue = |typed: &[&str]| {
        let ran = site.skep(&[&["queue"], typed, &["--json"]].concat()).exits(0);
        ran.json()
            .into_iter()
            .find(|host| host["host"].as_str().is_some_and(|name| name.contains(HOST)))
            .expect("the host")
    };
    let waiting = queue(&[]);
    assert!(waiting["out"].as_u64() > Some(0) && waiting["visited"].as_u64() > Some(0), "{waiting}");
    assert_eq!(queue(&[HOST, "--set", "pause"])["state"], "paused");
    assert_eq!(queue(&[HOST])["state"], "paused");
    assert_eq!(queue(&[HOST, "--set", "pace=5"])["pace"], "5");
    assert_ne!(queue(&[HOST, "--set", "resume"])["state"], "paused");
    assert_eq!(queue(&[HOST, "--set", "pace=none"])["state"], queue(&[HOST])["state"]);
    assert_eq!(site.skep(&["report", "--json"]).exits(0).each("ended"), ["null"]);
    let shown = site.skep(&["queue"]).exits(0).text();
    assert!(shown.contains(HOST), "{shown}");
    // One crawl at a time.
    crawl(&site, &[HOME], &web).fails("runs already").hints("skep queue");
    crawl(&site, &["http://bees.test/other", "--name", "second"], &web).fails("another crawl").hints("--archive");
    // The archive is open to everybody meanwhile.
    site.skep(&["captures", HOST, "--match", "host"]).exits(0);
    web.behave(HOST, Behaviour::default()).expect("a host");
    running.hear().exits(0);
    assert_eq!(kept(&site), truth(&web));
    site.skep(&["queue"]).exits(1);
    site.is_sound();
}

#[test]
fn what_is_dropped_is_not_fetched() {
    let (site, web) = (Site::new(), generated(200));
    let mut running = Running::begin(&site, &[HOME], &web);
    running.until("visited", 5);
    web.behave(HOST, Behaviour::hold()).expect("a host");
    site.skep(&["queue", HOST, "--set", "drop"]).exits(0);
    web.behave(HOST, Behaviour::default()).expect("a host");
    running.hear();
    assert!(asked(&web).len() < truth(&web).len());
}

#[test]
fn however_much_waits_at_the_mirrors_of_a_farm_a_crawl_of_them_ends() {
    let (pages, lists, links) = (tempfile::tempdir().expect("a folder"), 5, 400);
    let write = |name: String, paths: &mut dyn Iterator<Item = String>| {
        let links: String = paths.map(|path| format!("<a href={path}>{path}</a>\n")).collect();
        std::fs::write(pages.path().join(name), format!("<!DOCTYPE html>{links}")).expect("a page");
    };
    write("index.html".into(), &mut (0..lists).map(|list| format!("list-{list}.html")));
    for list in 0..lists {
        write(format!("list-{list}.html"), &mut (0..links).map(|link| format!("/shelf-{link}/book-{list}.html")));
    }
    let hosts = 0..8;
    let plan = hosts
        .clone()
        .fold(Plan::new(3), |plan, host| plan.host(HostPlan::folder(&format!("www.mirror-{host}.test"), pages.path())));
    let (site, web) = (Site::new(), start(plan));
    let seeds: Vec<String> = hosts.map(|host| format!("http://www.mirror-{host}.test/")).collect();
    let alone = ["--json", "--concurrency", "1", "--workers", "1"];
    let words: Vec<&str> = seeds.iter().map(String::as_str).chain(alone).collect();
    let events = crawl(&site, &words, &web).exits(0).json();
    // Progress is told once a second: were it what each portion waits for, it would be told more often than there are portions.
    let told = events.iter().filter(|event| event["event"] == "progress").count();
    assert!(told < 60, "{told} seconds");
    let report = site.skep(&["report", "--json"]).exits(0).json().remove(0);
    let refused = report["traps"]["mirror-farm"].as_u64();
    assert!(refused > Some(4 * lists * links), "{report}");
    assert_eq!(report["waiting"], 0, "{report}");
}

#[test]
fn a_crawl_becomes_a_job_of_whoever_owns_the_archive() {
    let (site, web) = (Site::new(), generated(60));
    let big = "all work and no play makes a dull page\n".repeat(200_000);
    site.write("big.warc.gz", Warc::gzip().page("http://big.test/", "2020-01-01T00:00:00Z", &big).bytes);
    site.write("history.warc.gz", history().bytes);
    site.skep(&["add", "big.warc.gz"]).exits(0);
    let owner = site.begin(&["get", "http://big.test/"]);
    // Ctrl-C where it was typed reaches it there.
    let mut running = Running::begin(&site, &[HOME], &web);
    running.until("visited", 5);
    web.behave(HOST, Behaviour::hold()).expect("a host");
    running.interrupt();
    running.until_said("finishing what is in flight");
    web.behave(HOST, Behaviour::default()).expect("a host");
    running.hear().exits(3);
    // And it can be begun again by the same owner.
    crawl(&site, &[HOME], &web).exits(0);
    assert_eq!(kept(&site), truth(&web));
    assert_eq!(owner.hear().exits(0).text(), big);
    site.is_sound();
}

// ── what goes wrong ──────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn private_addresses_are_refused_and_the_remedy_is_named() {
    let (site, web) = (Site::new(), generated(5));
    let url = format!("http://{}/", web.map().hosts[0].addresses[0]);
    let ran = site.skep(&["crawl", &url]).exits(1);
    assert!(ran.talk.contains("--allow-private"), "{}", ran.talk);
    assert!(web.requests().is_empty());
    let why = site.skep(&["why", &url]).exits(0);
    assert!(why.text().contains("--allow-private"), "{}", why.text());
}

#[test]
fn nothing_but_failures_is_a_no() {
    let site = Site::new();
    let ran = site.skep(&[
        "crawl",
        "http://down.test/",
        "--resolve",
        "down.test=127.0.0.1:1",
        "--allow-private",
        "--patience",
        "1",
    ]);
    let ran = ran.exits(1);
    assert!(ran.text().contains("\nerrors\n"), "{}", ran.text());
    site.is_sound();
}

#[test]
fn robots_that_forbid_everything_are_obeyed() {
    let web = start(Plan::new(1).host(HostPlan::generated(HOST, Shape::pages(5)).robots(Robots::DisallowAll)));
    let site = Site::new();
    crawl(&site, &[HOME], &web).exits(1);
    assert!(asked(&web).is_empty());
    assert_eq!(site.skep(&["why", HOME, "--json"]).exits(0).each("fate"), ["robots"]);
    // It is our own host, so we may.
    crawl(&site, &[HOME, "--name", "ours", "--ignore-robots"], &web).exits(0);
    assert!(asked(&web).contains_key("/"));
}

#[test]
fn wrong_use_is_explained() {
    let site = Site::new();
    for (words, about, hint) in [
        (["crawl"].as_slice(), "place to begin", "skep crawl https://example.org/"),
        (&["crawl", "absent.txt"], "absent.txt", "a line"),
        (&["crawl", "a.test", "--pace", "none"], "--own", "--own a.test"),
        (&["crawl", "a.test", "--config", "absent.toml"], "absent.toml", ""),
        (&["crawl", "a.test", "--bytes", "lots"], "not a size", "10GB"),
        (&["crawl", "--name", "absent"], "no crawl called absent", "skep report"),
        (&["queue", "a.test", "--set", "faster"], "means nothing", "pace=2000"),
        (&["doctor", "--dns", "nowhere"], "name server", "192.0.2.53"),
    ] {
        let ran = site.skep(words).fails(about);
        if !hint.is_empty() {
            ran.hints(hint);
        }
    }
    assert!(!site.archive().exists(), "nothing was begun, so nothing was made");
    for (words, about) in [
        (["queue", "--set", "pause"].as_slice(), "<HOST>"),
        (&["crawl", "a.test", "--scope", "planet"], "host, site, prefix, all"),
        (&["crawl", "a.test", "--speed", "9"], "--speed"),
        (&["why"], "<URL>"),
    ] {
        let ran = site.skep(words).exits(2);
        assert!(ran.out.is_empty() && ran.talk.contains(about), "{words:?}: {}", ran.talk);
    }
    for words in [["help", "crawl"], ["why", "--help"], ["help", "queue"], ["report", "--help"]] {
        assert!(site.skep(&words).exits(0).text().contains("Examples:"), "{words:?}");
    }
}

#[test]
fn an_archive_without_a_crawl_says_so() {
    let site = Site::new();
    site.write("history.warc.gz", history().bytes);
    site.skep(&["add", "history.warc.gz"]).exits(0);
    assert!(site.skep(&["report"]).exits(1).talk.contains("skep crawl URL"));
    site.skep(&["queue"]).exits(1);
    site.skep(&["why", "http://example.org/"]).exits(1);
    site.skep(&["report", "absent"]).fails("no crawl called absent");
}

#[test]
fn several_crawls_share_an_archive() {
    let (site, web) = (Site::new(), generated(10));
    crawl(&site, &[HOME, "--depth", "0", "--name", "one"], &web).exits(0);
    crawl(&site, &[HOME, "--name", "two"], &web).exits(0);
    let ran = site.skep(&["report"]).exits(0);
    assert_eq!(ran.cells().iter().map(|row| row[0].clone()).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(site.skep(&["why", HOME, "--json"]).exits(0).each("crawl"), ["one", "two"]);
    assert_eq!(site.skep(&["why", HOME, "--name", "two", "--json"]).exits(0).each("crawl"), ["two"]);
}

#[test]
fn a_crawl_does_not_ask_the_portal_of_its_own_process() {
    let site = Site::new();
    site.write("history.warc.gz", history().bytes);
    site.skep(&["add", "history.warc.gz"]).exits(0);
    let portal = Portal::begin(&site, &[]);
    let own = format!("http://{}/", portal.address);
    site.skep(&["crawl", &own, "--allow-private"]).exits(1);
    let why = site.skep(&["why", &own, "--json"]).exits_below(2).json();
    assert_eq!(
        (why[0]["fate"].as_str(), why[0]["because"].as_str()),
        (Some("refused"), Some("own address")),
        "{why:?}"
    );
    let (_, _, log) = portal.end();
    assert!(!log.contains("robots.txt"), "{log}");
}
