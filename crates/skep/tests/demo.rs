//! `skep demo` by the real binary: without a network and without arguments there is something to be seen within a minute, also in
//! a browser.

#[path = "../../portal/tests/browser/driver.rs"]
mod driver;
mod site;
#[path = "site/watched.rs"]
mod watched;
#[path = "../../portal/tests/browser/web.rs"]
mod web;

use driver::{Browser, pictures};
use serde_json::Value;
use site::Site;
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use watched::Watched;

const PAGE: &str = "http://garden.test/bloom.html";
/// From the start to all that there is to be seen.
const SHOWN_WITHIN: Duration = Duration::from_secs(60);
/// From a capture to the eye of whoever looks.
const SEEN_WITHIN_MS: f64 = 2_000.0;

/// The words of a page that stand in its paragraphs.
fn words(html: &str) -> Vec<String> {
    let text: String =
        html.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| format!("{text} ")).collect();
    text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned()).collect()
}

/// Names the file by which the process that is cut off says that it ran.
const CUT_OFF: &str = "SKEP_TEST_CUT_OFF";

/// Runs this test once more in a network that has its own loopback and nothing else: the demo, its portal and the browser. Says whether
/// this is that process.
fn is_cut_off(test: &str) -> bool {
    if let Some(ran) = std::env::var_os(CUT_OFF) {
        std::fs::write(ran, "").expect("it is written");
        let outside = TcpStream::connect("192.0.2.1:80").expect_err("there is no way out");
        assert_eq!(outside.kind(), ErrorKind::NetworkUnreachable, "{outside}");
        return true;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let ran = folder.path().join("ran");
    let mut apart = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        apart.arg("--map-root-user");
    }
    apart.args(["--net", "--", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""]);
    apart.arg(std::env::current_exe().expect("this program")).args([test, "--exact", "--nocapture"]);
    let code = apart.env(CUT_OFF, &ran).status().expect("`unshare` is there: it belongs to the system");
    assert!(code.success(), "without a network: {code}");
    assert!(Path::new(&ran).exists(), "no test is called {test}");
    false
}

#[test]
fn a_minute_after_it_was_typed_there_are_captures_versions_a_difference_and_live_changes() {
    if !is_cut_off("a_minute_after_it_was_typed_there_are_captures_versions_a_difference_and_live_changes") {
        return;
    }
    // A browser that is there already looks on.
    let web = web::Web::of(&[]);
    let browser = Browser::start(web.port);
    let (site, begun) = (Site::new(), Instant::now());
    let mut demo = Watched::begin(&site, &["demo"]);
    let tour = loop {
        let event = demo.event();
        if event["event"] == "tour" {
            break event;
        }
    };
    let places: Vec<&str> = (0..5).map(|number| tour["stations"][number]["place"].as_str().expect("a place")).collect();
    let target = |place: &str| place.trim_start_matches("http://").trim_start_matches(&demo.address).to_owned();
    let stations: Vec<(u16, String)> = places.iter().map(|place| demo.get(&target(place))).collect();
    assert!(stations.iter().all(|(status, _)| *status < 400), "{stations:?}");
    let listed = demo.get(&format!("/cdx?url={PAGE}&output=json")).1;
    assert!(listed.lines().count() >= 2, "its versions: {listed}");
    assert!(stations[2].1.contains("<ins>") && stations[2].1.contains("<del>"), "a difference: {}", stations[2].1);
    let born = demo.until_found("/changes?class=new", "library.test/book-");
    assert!(born.contains("garden.test") && born.contains("weather.test"), "{born}");
    let why = site.skep(&["why", PAGE, "--json"]).exits(0).json();
    let outcome = why[0]["last"]["outcome"].as_str().unwrap_or_default();
    assert!(["200", "304"].contains(&outcome), "{why:?}");
    let told = site.skep(&["schedule", PAGE]).exits(0);
    assert!(told.text().contains("every page is looked at"), "{}", told.text());
    if let Some(browser) = &browser {
        toured(browser, &places);
    }
    let shown = begun.elapsed();
    eprintln!("all stations after {} ms", shown.as_millis());
    assert!(shown < SHOWN_WITHIN, "{shown:?}");
    if let Some(browser) = &browser {
        looked_at_closely(browser, &demo);
    }
    let (code, said) = demo.end();
    assert_eq!(code, 0, "{said}");
    site.is_sound();
}

/// From station to station as the tour says: the page, its versions, a difference, its changes, and what changes while one looks.
fn toured(browser: &Browser, places: &[&str]) {
    let shows = |what: &str| {
        browser
            .until(&format!("[...document.querySelectorAll('{what}')].some((one) => one.getClientRects().length > 0)"));
    };
    let [page, versions, difference, history, live] = places else { panic!("{places:?}") };
    browser.go(page);
    browser.enter(Some("#page"));
    browser.until("document.querySelector('h1') && document.querySelector('h1').textContent === 'What is in bloom'");
    browser.enter(None);
    browser.picture(&pictures().join("demo-page.png"));

    browser.go(versions);
    // A day of the calendar leads to a capture.
    shows("table a");
    let count =
        "const told = [...document.querySelectorAll('.facts li')].find((one) => one.textContent.endsWith('versions'));
        return parseInt(told.querySelector('b').textContent)";
    assert!(browser.run(count).as_u64().is_some_and(|versions| versions >= 2), "{}", browser.run(count));

    browser.go(difference);
    shows(".differences del");
    shows(".differences ins");

    browser.go(history);
    shows("section.change");

    browser.go(live);
    browser.until("document.getElementById('state').dataset.state === 'live'");
    // Only what came by itself is drawn so.
    shows("#changes > li.fresh");
}

/// The live page shows what happens within two seconds; the difference marks the edited words and nothing else.
fn looked_at_closely(browser: &Browser, demo: &Watched) {
    let portal = format!("http://127.0.0.1:{}", demo.port());
    browser.go(&format!("{portal}/changes/live"));
    browser.until("document.getElementById('state').dataset.state === 'live'");
    // Rows that came by themselves, each with how long ago its capture was when it came.
    let late = browser.run_until(
        "const list = document.getElementById('changes'), late = [];
         new MutationObserver((seen, all) => {
           for (const one of seen) for (const row of one.addedNodes) late.push(Date.now() - Date.parse(row.querySelector('time').dateTime));
           if (late.length > 2) { all.disconnect(); done(late); }
         }).observe(list, { childList: true });",
    );
    eprintln!("shown so many ms after their captures: {late}");
    let late: Vec<f64> = late.as_array().expect("times").iter().filter_map(Value::as_f64).collect();
    assert!(late.iter().all(|ms| *ms < SEEN_WITHIN_MS), "{late:?}");
    browser.picture(&pictures().join("demo-live.png"));

    browser.go(&format!("{portal}/compare?url={PAGE}"));
    let marked = |element: &str| -> Vec<String> {
        let found =
            browser.run(&format!("return [...document.querySelectorAll('{element}')].map((one) => one.textContent)"));
        found
            .as_array()
            .expect("texts")
            .iter()
            .flat_map(|text| words(&format!("<>{}", text.as_str().unwrap_or_default())))
            .collect()
    };
    let (went, came) = (marked("del"), marked("ins"));
    let times = browser.run("return [...document.querySelectorAll('select')].map((one) => one.value)");
    let body = |at: usize| words(&demo.get(&format!("/web/{}id_/{PAGE}", times[at].as_str().expect("a time"))).1);
    let (old, new) = (body(0), body(1));
    assert_eq!(old.len(), new.len());
    let edited: Vec<(&String, &String)> = old.iter().zip(&new).filter(|(old, new)| old != new).collect();
    assert!(!edited.is_empty());
    assert_eq!(went, edited.iter().map(|(old, _)| (*old).clone()).collect::<Vec<_>>());
    assert_eq!(came, edited.iter().map(|(_, new)| (*new).clone()).collect::<Vec<_>>());
    browser.picture(&pictures().join("demo-difference.png"));
}

#[test]
fn its_own_folder_goes_with_it() {
    let site = Site::new();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_skep"));
    command.args(["demo", "--json", "--listen", "127.0.0.1:0"]).current_dir(site.root()).env("TMPDIR", site.root());
    command.env_remove("SKEP_ARCHIVE");
    let mut demo = Watched::of(command);
    demo.until_visited(|url, outcome| url == PAGE && outcome == "200");
    let own = || std::fs::read_dir(site.root()).expect("a folder").count();
    assert_eq!(own(), 1);
    assert_eq!(demo.end().0, 0);
    assert_eq!(own(), 0, "nothing is left behind, and nothing was begun beside it");
}

#[test]
fn the_tour_is_lines_that_a_person_can_read() {
    let site = Site::new();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_skep"));
    command.args(["demo", "--listen", "127.0.0.1:0"]).current_dir(site.root()).env("TMPDIR", site.root());
    command.env_remove("SKEP_ARCHIVE").stdout(Stdio::null()).stderr(Stdio::piped());
    let mut demo = command.spawn().expect("a demo");
    let lines = BufReader::new(demo.stderr.take().expect("its talk")).lines();
    let mut told = Vec::new();
    for line in lines.map_while(Result::ok) {
        let ends = line == "Ctrl-C ends the demo.";
        told.push(line);
        if ends {
            break;
        }
    }
    demo.kill().and_then(|()| demo.wait()).expect("it ends");
    let all = told.join("\n");
    assert!(told.iter().any(|line| line == "  1. a page, as it was kept last"), "{all}");
    assert!(told.iter().any(|line| line.trim_start().starts_with("skep why http://garden.test/")), "{all}");
    assert!(!all.contains('\u{fffd}'), "{all}");
}

/// Processes that have something in their command line.
fn running(what: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
    let runs = |pid: &u32| {
        let typed = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&typed).replace('\0', " ").contains(what)
    };
    numbers.filter(runs).collect()
}

fn until(what: &str, so: impl Fn() -> bool) {
    let since = Instant::now();
    while !so() {
        assert!(since.elapsed() < SHOWN_WITHIN, "never {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn the_nodes_of_a_demo_end_with_it_however_it_ends() {
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::KILL] {
        let site = Site::new();
        // Nobody can type, and the input stays open.
        let mut demo = site.command(&["demo", "--nodes", "2"]);
        let mut demo = demo.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a demo");
        let mut said = BufReader::new(demo.stderr.take().expect("its talk")).lines().map_while(Result::ok);
        assert!(said.any(|line| line.contains("all nodes crawl")));
        let nodes = format!("{}/node-", site.archive().display());
        assert_eq!(running(&nodes).len(), 2);
        rustix::process::kill_process(rustix::process::Pid::from_child(&demo), signal).expect("it is told");
        let code = demo.wait().expect("it ends");
        assert_eq!(code.success(), signal == rustix::process::Signal::INT, "{code}");
        until("ended", || running(&nodes).is_empty());
        // Whoever reads what it says is not kept waiting.
        assert_eq!(said.count(), 0);
    }
}

#[test]
fn the_keys_of_a_demo_kill_cut_off_heal_and_add_nodes() {
    let site = Site::new();
    let skep = env!("CARGO_BIN_EXE_skep");
    let folder = site.archive();
    let mut typed = std::process::Command::new("script");
    typed.args(["-qefc", &format!("{skep} --archive {} demo --nodes 2", folder.display()), "/dev/null"]);
    let mut demo =
        typed.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a terminal");
    let mut keys = demo.stdin.take().expect("its keys");
    let mut said = BufReader::new(demo.stdout.take().expect("its talk")).lines().map_while(Result::ok);
    let mut hears = |what: &str| assert!(said.any(|line| line.contains(what)), "never {what}");
    hears("all nodes crawl");
    let nodes = format!("{}/node-", folder.display());
    // How a node knows the others, asked at its own socket: as many as it knows, and whether all of them are there.
    let known = |node: usize| {
        let ran = site.skep(&["--archive", &format!("{nodes}{node}"), "ring", "--json"]);
        // It may be just beginning.
        if ran.code > 1 {
            return (0, false);
        }
        let told = ran.json().remove(0);
        let states: Vec<String> =
            told["nodes"].as_array().expect("nodes").iter().map(|node| node["state"].to_string()).collect();
        (states.len(), !states.iter().any(|state| state.contains("absent")))
    };
    for (key, answer, count) in [
        ("s", "network demo: 2 nodes", 2),
        ("k 2", "node 2 is gone", 1),
        ("h", "node 2 runs", 2),
        ("a", "node 3 runs", 3),
        ("c 2", "node 2 is cut off", 3),
        ("h", "", 3),
        ("what?", "k N kills node N", 3),
    ] {
        std::io::Write::write_all(&mut keys, format!("{key}\n").as_bytes()).expect("it is typed");
        if !answer.is_empty() {
            hears(answer);
        }
        until(key, || running(&nodes).len() == count);
        match key {
            "a" => until("joined", || known(1) == (3, true) && known(2) == (3, true)),
            // It goes on, and says how it stands; the others miss it.
            "c 2" => until("missed", || known(2).0 == 3 && known(1) == (3, false)),
            "h" if count == 3 => until("back", || known(1) == (3, true) && known(2) == (3, true)),
            _ => {}
        }
    }
    std::io::Write::write_all(&mut keys, b"q\n").expect("it is typed");
    assert!(demo.wait().expect("it ends").success());
    until("ended", || running(&nodes).is_empty());
}
