//! SIGKILL of a crawl at random moments, and the same command again: nothing acknowledged is lost, only what was in flight is
//! fetched twice, and in the end the archive holds what an undisturbed crawl holds.
//!
//! `SKEP_CRAWL_KILLS` sets how often (10 by default; a soak asks for 50), `SKEP_CRAWL_PAGES` how large the site is,
//! `SKEP_CRAWL_SEED` where chance begins. `SKEP_RESTART_URLS` says how many URLs a crawl knows when it is killed, and
//! `SKEP_RESTART_SECONDS` how soon it must then fetch again; without it nobody looks at the clock.

mod site;
#[path = "site/web.rs"]
mod web;

use serde_json::Value;
use site::Site;
use skep_testweb::{Behaviour, HostPlan, Plan, Robots, Shape, Web};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use web::{HOST, Running, crawl, flags, start, typed};

/// Hosts visited at once, of which each may have an answer on its way.
const CONCURRENCY: usize = 16;
/// Visits whose records may be on their way to the disk, with the one worker that these crawls have.
const UNSYNCED: usize = skep_crawl::limits::UNSYNCED_VISITS_MAX;
/// Visits of one bundle that brought nothing wait for each other, so many at most.
const CHECKS: usize = 16;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |value| value.parse().expect("a number"))
}

/// Numbers from a seed: what failed once can be tried again.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Two hosts of different sites that link to each other and never change. They take their time, so that a kill has something to hit.
fn frozen(pages: u32) -> Web {
    let shape = Shape { text_bytes: (200, 4_000), ..Shape::pages(pages / 2).frozen() };
    let host = |name| HostPlan::generated(name, shape.clone()).behaving(Behaviour::slow(30));
    start(Plan::new(11).host(host(HOST)).host(host("wasps.example.test")))
}

/// What one run told before it ended: each visit with its outcome.
struct Told {
    visited: Vec<(String, String)>,
    /// It ended by itself.
    ended: bool,
}

/// A run of the crawl that is killed after so many visits and a moment more.
fn run_and_kill(site: &Site, words: &[&str], web: &Web, visits: usize, moment: Duration) -> Told {
    let flags = flags(web);
    run_and_kill_typed(site, &typed(words, &flags), visits, moment)
}

fn run_and_kill_typed(site: &Site, typed: &[&str], visits: usize, moment: Duration) -> Told {
    let mut command = site.command(&[typed, &["--json"]].concat());
    let mut child: Child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("skep starts");
    let mut out = BufReader::new(child.stdout.take().expect("its output"));
    let mut lines = Vec::new();
    let mut seen = 0;
    let mut line = String::new();
    while seen < visits && out.read_line(&mut line).expect("its output can be read") > 0 {
        seen += usize::from(line.contains("\"visited\""));
        lines.push(std::mem::take(&mut line));
    }
    // A moment is a moment: nothing that could be waited for tells when the worst one is.
    std::thread::sleep(moment);
    child.kill().expect("it can be killed");
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("its output can be read");
    let status = child.wait().expect("it ends");
    let mut talk = String::new();
    child.stderr.take().expect("its talk").read_to_string(&mut talk).expect("its talk can be read");
    assert!(!talk.contains("panicked") && !talk.contains("error:"), "{talk}");
    // The last line may be half a line: nobody was told then.
    let whole = rest.rfind('\n').map_or("", |end| &rest[..=end]);
    let events = lines.iter().map(String::as_str).chain(whole.lines());
    let events: Vec<Value> = events.map(|line| serde_json::from_str(line).expect("an event")).collect();
    let visited = events
        .iter()
        .filter(|event| event["event"] == "visited")
        .map(|event| {
            let text = |name: &str| event[name].as_str().expect("a text").to_owned();
            (text("url"), text("outcome"))
        })
        .filter(|(url, _)| !url.ends_with("/robots.txt"))
        .collect();
    Told { visited, ended: status.success() }
}

/// How often each URL was asked for from the request with this number on.
fn asked_since(web: &Web, first: usize) -> BTreeMap<String, usize> {
    let mut asked = BTreeMap::new();
    for request in web.requests().into_iter().skip(first).filter(|request| request.path != "/robots.txt") {
        *asked.entry(format!("http://{}{}", request.host, request.path)).or_default() += 1;
    }
    asked
}

/// What the archive has of all hosts, robots.txt apart.
fn all_kept(site: &Site, web: &Web) -> BTreeSet<(String, String, String)> {
    let mut all = BTreeSet::new();
    for place in &web.map().hosts {
        let listed = site.skep(&["captures", &place.host, "--match", "host", "--json"]).exits_below(2);
        for object in listed.json() {
            let field = |name: &str| match &object[name] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            all.insert((field("url"), field("status"), field("digest")));
        }
    }
    all.retain(|(url, ..)| !url.ends_with("/robots.txt"));
    all
}

/// Kills a pass of the crawl so often, lets it end, and looks at what was asked for. `in_flight_max`: visits that may be under
/// way and not acknowledged at any one moment.
fn kill_a_pass(site: &Site, words: &[&str], web: &Web, kills: u64, in_flight_max: usize, chance: &mut Chance) {
    let begin = web.requests().len();
    let urls = truth_of_all(web).len();
    let step = (urls as u64 * 3 / 4 / kills).max(4);
    let mut acknowledged: BTreeSet<String> = BTreeSet::new();
    let mut most = 0;
    for kill in 0..kills {
        // A pass that is over before it is killed would begin a new one.
        assert!(acknowledged.len() < urls * 9 / 10, "kill {kill} of {kills}: the site is too small for so many");
        let before = web.requests().len();
        // One in eight dies while it opens; the others within a run.
        let visits = if chance.below(8) == 0 { 0 } else { 1 + chance.below(step) as usize };
        let moment = Duration::from_millis(chance.below(if visits == 0 { 300 } else { 40 }));
        let told = run_and_kill(site, words, web, visits, moment);
        assert!(!told.ended, "it was done before kill {kill} of {kills}");
        let asked = asked_since(web, before);
        let redone: Vec<&String> = asked.keys().filter(|url| acknowledged.contains(*url)).collect();
        assert!(redone.is_empty(), "run {kill}: acknowledged earlier and fetched again: {redone:?}");
        let now: BTreeSet<String> = told.visited.into_iter().map(|(url, _)| url).collect();
        let in_flight = asked.keys().filter(|url| !now.contains(*url)).count();
        assert!(in_flight <= in_flight_max, "kill {kill}: {in_flight} asked for and not acknowledged");
        most = most.max(in_flight);
        if chance.below(2) == 0 {
            // A reader that comes before the crawl does finds everything, too.
            let kept: BTreeSet<String> = all_kept(site, web).into_iter().map(|(url, ..)| url).collect();
            let lost: Vec<&String> = now.iter().filter(|url| !kept.contains(*url)).collect();
            assert!(lost.is_empty(), "kill {kill}: acknowledged and lost: {lost:?}");
        }
        acknowledged.extend(now);
    }
    let before = web.requests().len();
    crawl(site, words, web).exits(0);
    let redone: Vec<String> = asked_since(web, before).into_keys().filter(|url| acknowledged.contains(url)).collect();
    assert!(redone.is_empty(), "acknowledged and fetched again by the last run: {redone:?}");
    let asked = asked_since(web, begin);
    let twice: usize = asked.values().map(|count| count - 1).sum();
    eprintln!(
        "{kills} kills, {} URLs: {twice} fetches more than that ({:.1} a kill), at most {most} in flight at one kill",
        asked.len(),
        twice as f64 / kills as f64,
    );
    assert!(asked.values().all(|count| *count as u64 <= 1 + kills), "{asked:?}");
    assert_eq!(
        asked.into_keys().collect::<BTreeSet<String>>(),
        truth_of_all(web).into_iter().map(|(url, ..)| url).collect()
    );
}

/// What can be reached on all hosts: URL, status, digest.
fn truth_of_all(web: &Web) -> BTreeSet<(String, String, String)> {
    let homes: Vec<&str> = web.map().hosts.iter().map(|place| place.url.as_str()).collect();
    let entries = web.world().reachable(&homes, web.now(), |_| true).expect("the truth");
    entries.into_iter().map(|entry| (entry.url, entry.status.to_string(), entry.digest)).collect()
}

#[test]
fn a_crawl_that_is_killed_again_and_again_ends_as_if_nothing_had_been() {
    let (kills, pages) = (number("SKEP_CRAWL_KILLS", 10), number("SKEP_CRAWL_PAGES", 1_000));
    let mut chance = Chance(number("SKEP_CRAWL_SEED", 1));
    let (site, web) = (Site::new(), frozen(u32::try_from(pages).expect("not so many pages")));
    let concurrency = CONCURRENCY.to_string();
    let seeds: Vec<&str> = web.map().hosts.iter().map(|place| place.url.as_str()).collect();
    let words = [&seeds[..], &["--concurrency", &concurrency, "--workers", "1"]].concat();

    kill_a_pass(&site, &words, &web, kills, CONCURRENCY + UNSYNCED, &mut chance);
    site.is_sound();
    assert_eq!(all_kept(&site, &web), truth_of_all(&web));
    let undisturbed = Site::new();
    crawl(&undisturbed, &words, &web).exits(0);
    assert_eq!(all_kept(&site, &web), all_kept(&undisturbed, &web));

    // A new pass brings nothing but check lines, which are kept by the bundle.
    let before = all_kept(&site, &web);
    kill_a_pass(&site, &words, &web, kills.div_ceil(2), CONCURRENCY * (1 + CHECKS) + UNSYNCED, &mut chance);
    site.is_sound();
    assert_eq!(all_kept(&site, &web), before);
    assert_eq!(site.skep(&["report", "--json"]).exits(0).each("pass"), ["2"]);
}

/// The flags of a crawl of hosts that are not ours.
fn polite_flags(web: &Web) -> Vec<String> {
    let mut flags: Vec<String> = ["--allow-private", "--patience", "1"].map(str::to_owned).to_vec();
    for resolve in web.map().hosts.iter().flat_map(|place| &place.resolve) {
        flags.extend(["--resolve".to_owned(), resolve.clone()]);
    }
    flags
}

#[test]
fn a_kill_shortens_no_wait_that_a_site_asked_for() {
    // Both ask for more than the half second that every site has after a restart.
    let refusing = Behaviour::refuse(429, Some(3), 4);
    let slow = HostPlan::generated(HOST, Shape::pages(40).frozen()).robots(Robots::CrawlDelay(2));
    let strict = HostPlan::generated("wasps.example.test", Shape::pages(40).frozen()).behaving(refusing);
    let web = start(Plan::new(5).host(slow).host(strict));
    let site = Site::new();
    let flags = polite_flags(&web);
    let homes: Vec<&str> = web.map().hosts.iter().map(|place| place.url.as_str()).collect();
    for visits in [5, 4, 5] {
        let told = run_and_kill_typed(&site, &typed(&homes, &flags), visits, Duration::ZERO);
        assert!(!told.ended);
    }
    let report = web.report();
    assert!(report.statuses.contains_key(&429) && report.requests > 10, "{}", report.table());
    assert!(report.polite(), "{}", report.table());
}

/// Links of one page that are followed.
const LINKS_PER_PAGE: u64 = 20_000;
/// Such pages of one host: not so many that they look like a trap.
const LISTS_PER_HOST: u64 = 5;

/// A site whose front page leads to lists, and the lists to pages. It says whose they are: sites that show the same would be a farm of mirrors.
fn write_lists(folder: &Path, host: u64) {
    let page = |links: &mut dyn Iterator<Item = String>| {
        let links: String = links.map(|path| format!("<a href={path}>x</a>\n")).collect();
        format!("<!DOCTYPE html><title>Lists</title><h1>Library {host}</h1>\n{links}")
    };
    std::fs::create_dir(folder).expect("a folder");
    let front = page(&mut (0..LISTS_PER_HOST).map(|list| format!("list-{list}.html")));
    std::fs::write(folder.join("index.html"), front).expect("a front page");
    for list in 0..LISTS_PER_HOST {
        let numbers = list * LINKS_PER_PAGE..(list + 1) * LINKS_PER_PAGE;
        let text = page(&mut numbers.map(|number| format!("/shelf-{}/book-{number}/a-page-of-it.html", number % 977)));
        std::fs::write(folder.join(format!("list-{list}.html")), text).expect("a list");
    }
}

#[test]
fn a_crawl_that_knows_many_urls_soon_goes_on_after_a_kill() {
    let urls = number("SKEP_RESTART_URLS", 100_000);
    let pages = tempfile::tempdir().expect("a folder");
    let mut plan = Plan::new(3);
    for host in 0..urls.div_ceil(LISTS_PER_HOST * LINKS_PER_PAGE) {
        let folder = pages.path().join(host.to_string());
        write_lists(&folder, host);
        plan = plan.host(HostPlan::folder(&format!("www.library-{host}.test"), &folder));
    }
    let (site, web) = (Site::new(), start(plan));
    let seeds: Vec<&str> = web.map().hosts.iter().map(|place| place.url.as_str()).collect();
    let words = [&seeds[..], &["--concurrency", "16", "--workers", "1"]].concat();

    let begun = Instant::now();
    let mut first = Running::begin(&site, &words, &web);
    let mut known = 0;
    while known < urls {
        first.events.clear();
        first.until("progress", 1);
        known = first.events.last().and_then(|event| event["known"].as_u64()).expect("a number");
    }
    first.kill();
    eprintln!("{known} URLs known after {:.1} s", begun.elapsed().as_secs_f64());

    let begun = Instant::now();
    let mut second = Running::begin(&site, &words, &web);
    second.until("began", 1);
    let open = begun.elapsed().as_secs_f64();
    let began = second.events.iter().find(|event| event["event"] == "began").expect("it was waited for").clone();
    second.until("visited", 1);
    let fetched = begun.elapsed().as_secs_f64();
    second.kill();
    eprintln!(
        "killed and begun again: open with {} URLs after {open:.2} s, first visit after {fetched:.2} s",
        began["known"]
    );
    assert!(began["known"].as_u64() >= Some(known), "{known} were known: {began}");
    assert!(began["waiting"].as_u64() > Some(0), "{began}");
    if let Ok(seconds) = std::env::var("SKEP_RESTART_SECONDS") {
        let seconds: f64 = seconds.parse().expect("a number of seconds");
        assert!(fetched < seconds, "the first visit was over after {fetched:.2} s; {seconds} are allowed");
    }
}
