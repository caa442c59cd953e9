//! Watches of a web on loopback addresses: looked at again for ever, by a budget that holds and that can be changed.

mod web;

use skep_crawl::registry::{Options, Registry};
use skep_crawl::{Control, Ending, Event, Question, Rate, Run, Settings, Watch, answer_question, run};
use skep_schedule::revisit::{Memory, Moment};
use skep_testweb::{
    Clock, Content, HostPlan, Plan, Policy, Settings as WebSettings, Shape, Time, Validators, Web, World,
};
use skep_warc::date::rfc3339;
use skep_warc::write::{Compression, Encoder, Record, RecordId};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::channel;

fn still(plan: Plan) -> Web {
    let clock = Some(Clock::still(Time::BEGIN.plus_days(100)));
    let settings = WebSettings { clock, policy: Policy::default(), ..WebSettings::default() };
    Web::start(World::build(plan).expect("a world"), settings).expect("a web")
}

fn watched(web: &Web, watch: Watch) -> Run {
    Run {
        settings: Settings { watch: Some(watch), ..web::hurried(web) },
        fetch: web::fetch(web),
        cookies: Default::default(),
        workers: 1,
        patience: Default::default(),
        watch: true,
        judges: None,
        others: None,
        share: None,
    }
}

fn every_second() -> Watch {
    Watch { every_ms: Some(1_000), ..Watch::default() }
}

fn registry(archive_folder: &Path) -> Registry {
    let text = std::fs::read_to_string(archive_folder.join("settings/registry.toml")).expect("a key");
    let key = text.lines().find_map(|line| line.strip_prefix("key = \"")?.strip_suffix('"')).expect("a key");
    let key: Vec<u8> = (0..32).map(|at| u8::from_str_radix(&key[2 * at..2 * at + 2], 16).unwrap()).collect();
    let options = Options::new(key.try_into().expect("32 bytes"));
    Registry::open(&archive_folder.join("views/registry"), options).expect("a registry").0
}

/// What is remembered, by URL.
fn memories(archive_folder: &Path) -> BTreeMap<String, Memory> {
    let mut registry = registry(archive_folder);
    let urls: Vec<(u64, String)> =
        (0..registry.entries()).map(|entry| (entry, registry.url(entry).expect("a URL"))).collect();
    urls.into_iter().map(|(entry, url)| (url, registry.memory(entry).expect("a memory"))).collect()
}

/// What of a memory follows from the records alone.
fn observed(memories: &BTreeMap<String, Memory>) -> BTreeMap<String, (Option<Moment>, (f32, f32), u8)> {
    let one = |memory: &Memory| (memory.last(), memory.changes(), memory.failures());
    memories.iter().map(|(url, memory)| (url.clone(), one(memory))).collect()
}

#[test]
fn what_changed_is_kept_what_did_not_is_noted_and_both_are_remembered() {
    let site = tempfile::tempdir().expect("a folder");
    let page = |text: &str| format!("<!DOCTYPE html><title>t</title><a href=\"/a.html\">a</a><p>{text}</p>");
    std::fs::write(site.path().join("index.html"), page("home")).unwrap();
    std::fs::write(site.path().join("a.html"), page("first")).unwrap();
    let web = still(Plan::new(1).host(HostPlan::new("bees.test", Content::Folder(site.path().into()))));
    let folder = tempfile::tempdir().expect("a folder");
    let archive = web::archive(folder.path());
    let control = Control::default();
    let (mut homes, mut changes) = (0, 0);
    let ending = run(&archive, watched(&web, every_second()), &control, &mut |event| {
        let Event::Visited { url, outcome, .. } = event else { return };
        homes += u32::from(url == "http://bees.test/");
        changes += u32::from(url.ends_with("/a.html") && outcome == "200");
        // Each look at the home page finds the other one changed, until it changed thrice.
        if url == "http://bees.test/" {
            std::fs::write(site.path().join("a.html"), page(&format!("edition {}", "x".repeat(homes as usize))))
                .unwrap();
        }
        if changes == 4 {
            control.stop();
        }
    });
    assert_eq!(ending.expect("a watch"), Ending::Stopped);
    web::is_sound(&archive);
    let captures = web::captures(&archive);
    assert_eq!((captures["http://bees.test/"].len(), captures["http://bees.test/a.html"].len()), (1, 4));
    assert!(homes >= 4, "{homes} looks at a page that never changed");

    let live = memories(folder.path());
    let (home, page) = (live["http://bees.test/"], live["http://bees.test/a.html"]);
    assert_eq!(home.changes().0, 0.0);
    assert!((2.9..=3.1).contains(&page.changes().0), "three changes: {:?}", page.changes());
    assert!(page.belief().rate() > 10.0 * home.belief().rate(), "{:?} {:?}", page.belief(), home.belief());

    // A registry that is made anew from the records remembers the same.
    std::fs::remove_dir_all(folder.path().join("views/registry")).unwrap();
    answer_question(&archive, &Question::Watches).expect("an answer");
    assert_eq!(observed(&memories(folder.path())), observed(&live));
}

#[test]
fn a_budget_holds_and_another_one_takes_effect_at_once() {
    let shape = Shape { period_seconds: (86_400, 20 * 86_400), ..Shape::pages(40) };
    let web =
        still(Plan::new(3).host(HostPlan { validators: Validators::Both, ..HostPlan::generated("bees.test", shape) }));
    let folder = tempfile::tempdir().expect("a folder");
    let archive = web::archive(folder.path());
    let control = Control::default();
    let (visits, visited) = channel();
    let slow = Watch { budget: Some(Rate { visits: 20, seconds: 1 }), ..Watch::default() };
    let settings_folder = archive.layout().settings();
    let by = std::thread::spawn({
        let control = control.clone();
        move || {
            // Forty visits by the first budget; then every page is due, all the time.
            let first: Vec<std::time::Instant> = (0..40).map(|_| visited.recv().expect("a visit")).collect();
            let settings = Settings::load(&settings_folder, "test").expect("settings").expect("settings");
            let watch = Some(Watch { every_ms: Some(1_000), ..Watch::default() });
            Settings { watch, ..settings }.store(&settings_folder).expect("settings");
            control.ask(&Question::Reread).expect("a crawl that runs").expect("an answer");
            let second: Vec<std::time::Instant> = (0..120).map(|_| visited.recv().expect("a visit")).collect();
            control.stop();
            (first, second.len())
        }
    });
    let ending = run(&archive, watched(&web, slow), &control, &mut |event| {
        if matches!(&event, Event::Visited { url, .. } if !url.ends_with("/robots.txt")) {
            let _nobody_counts_any_more = visits.send(std::time::Instant::now());
        }
    });
    assert_eq!(ending.expect("a watch"), Ending::Stopped);
    let (first, second) = by.join().expect("a thread");
    let took = first[39].duration_since(first[0]).as_secs_f64();
    assert!(took > 38.0 / 20.0 - 0.2, "{took} s for 40 visits at 20 a second");
    assert_eq!(second, 120, "more visits than there are pages: they are looked at again");
}

#[test]
fn what_a_crawl_visited_is_watched_without_being_visited_first() {
    let web = still(Plan::new(5).host(HostPlan::generated("bees.test", Shape::pages(10).frozen())));
    let folder = tempfile::tempdir().expect("a folder");
    let archive = web::archive(folder.path());
    let (ending, _) = web::crawl(&archive, web::hurried(&web), web::fetch(&web), 1);
    assert_eq!(ending, Ending::Finished);
    let control = Control::default();
    let mut outcomes = Vec::new();
    let ending = run(&archive, watched(&web, every_second()), &control, &mut |event| {
        if let Event::Visited { url, outcome, .. } = event
            && url.ends_with(".html")
        {
            outcomes.push(outcome);
            if outcomes.len() == 6 {
                control.stop();
            }
        }
    });
    assert_eq!(ending.expect("a watch"), Ending::Stopped);
    assert!(!outcomes.iter().any(|outcome| outcome == "200"), "asked conditionally: {outcomes:?}");
    let standings = answer_question(&archive, &Question::Watches).expect("an answer");
    assert_eq!(standings[0]["name"], "test");
    assert!(standings[0]["pages"].as_u64().expect("a number") >= 10, "{standings:?}");
    let fresh = standings[0]["fresh"].as_f64().expect("a number");
    assert!((0.5..=1.0).contains(&fresh), "{standings:?}");
    let page = answer_question(&archive, &Question::Schedule { what: "bees.test".into() }).expect("an answer");
    assert!(page.len() >= 10 && page[0]["because"].as_str().is_some_and(|why| why.contains("every page")), "{page:?}");
}

/// A record of what a server answered, in a file from elsewhere.
fn kept_elsewhere(archive: &skep_archive::Archive, file: &Path, url: &str, time_ms: i64, body: &str) {
    let message = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"frozen\"\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let (id, date) = (RecordId::uuid([3; 16]), rfc3339(time_ms));
    let mut bytes = Vec::new();
    let record = Record::response(&id, &date, url, message.as_bytes());
    record.encode(&mut Encoder::new(Compression::GZIP), &mut bytes).expect("a record");
    std::fs::write(file, bytes).expect("a file");
    let mut additions = archive.additions().expect("room for files");
    additions.add(file, "from elsewhere", false, &mut |_| ()).expect("a file that is added");
    additions.commit().expect("files that are there");
}

#[test]
fn a_server_that_says_for_ever_that_nothing_changed_is_found_out_and_not_asked_again() {
    let site = tempfile::tempdir().expect("a folder");
    let page = |edition: usize| format!("<!DOCTYPE html><title>t</title><p>edition {edition}</p>");
    std::fs::write(site.path().join("index.html"), page(1)).unwrap();
    let host = HostPlan::new("bees.test", Content::Folder(site.path().into()));
    let web = still(Plan::new(1).host(HostPlan { validators: Validators::Frozen, ..host }));
    let folder = tempfile::tempdir().expect("a folder");
    let archive = web::archive(folder.path());
    let long_ago = skep_archive::system_clock() - 40 * 86_400_000;
    kept_elsewhere(&archive, &site.path().join("old.warc.gz"), "http://bees.test/", long_ago, &page(0));
    let control = Control::default();
    let mut outcomes = Vec::new();
    let ending = run(&archive, watched(&web, every_second()), &control, &mut |event| {
        if let Event::Visited { url, outcome, .. } = event
            && url == "http://bees.test/"
        {
            outcomes.push(outcome);
            std::fs::write(site.path().join("index.html"), page(1 + outcomes.len())).unwrap();
            if outcomes.len() == 4 {
                control.stop();
            }
        }
    });
    assert_eq!(ending.expect("a watch"), Ending::Stopped);
    assert_eq!(outcomes, ["304", "200", "200", "200"], "believed once, seen once, and then only seen");
    web::is_sound(&archive);
}

#[test]
fn a_page_that_was_away_and_is_as_it_was_is_recorded_once() {
    let site = tempfile::tempdir().expect("a folder");
    std::fs::write(site.path().join("index.html"), "<!DOCTYPE html><title>t</title><a href=\"/a.html\">a</a>").unwrap();
    let (here, away) = (site.path().join("a.html"), site.path().join("away"));
    std::fs::write(&here, "<!DOCTYPE html><title>t</title><p>a page</p>").unwrap();
    let web = still(Plan::new(1).host(HostPlan::new("bees.test", Content::Folder(site.path().into()))));
    let folder = tempfile::tempdir().expect("a folder");
    let archive = web::archive(folder.path());
    let control = Control::default();
    let mut unmodified = 0;
    let ending = run(&archive, watched(&web, every_second()), &control, &mut |event| {
        let Event::Visited { url, outcome, .. } = event else { return };
        if !url.ends_with("/a.html") {
            return;
        }
        match outcome.as_str() {
            "200" => std::fs::rename(&here, &away).unwrap(),
            "404" if away.exists() => std::fs::rename(&away, &here).unwrap(),
            "304" => unmodified += 1,
            _ => {}
        }
        if unmodified == 2 {
            control.stop();
        }
    });
    assert_eq!(ending.expect("a watch"), Ending::Stopped);
    let statuses: Vec<u16> =
        web::captures(&archive)["http://bees.test/a.html"].iter().map(|capture| capture.status).collect();
    assert_eq!(statuses, [200, 404, 304]);
}
