//! `skep watch` by the real binary: it crawls, serves, looks again, and hears what is asked of it while it runs.

mod site;
#[path = "site/watched.rs"]
mod watched;
#[path = "site/web.rs"]
mod web;

use site::Site;
use watched::Watched;
use web::{HOME, HOST, flags, folder};

fn page(text: &str) -> String {
    format!(
        "<!DOCTYPE html><html><head><title>Hive</title></head><body><p><a href=\"/a.html\">a</a></p><p>{text}</p></body></html>"
    )
}

#[test]
fn a_site_is_watched_served_and_asked_about() {
    let site = Site::new();
    site.write("web/index.html", page("The hive stands in the garden."));
    site.write("web/a.html", page("There are twelve hives in the valley of the bees."));
    let web = folder(&site.path("web"));
    let flags = flags(&web);
    let plain: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut watch = Watched::begin(&site, &[&["watch", HOME, "--every", "1s", "--tag", "news"], &plain[..]].concat());

    // Each look at a.html finds nothing new, until there is something.
    watch.until_visited(|url, outcome| url.ends_with("/a.html") && outcome == "304");
    site.write("web/a.html", page("There are thirteen hives in the valley of the bees."));
    watch.until_visited(|url, outcome| url.ends_with("/a.html") && outcome == "200");
    let changed = watch.until_found("/changes?class=text", "thirteen");
    assert!(changed.contains("text."), "{changed}");
    let event: serde_json::Value =
        serde_json::from_str(changed.lines().rfind(|line| line.starts_with('{')).expect("an event")).expect("JSON");
    assert_eq!(event["data"]["why"]["due_reason"], "watch", "{event}");
    assert!(event["data"]["est"]["rate_per_day"].as_f64().is_some_and(|rate| rate > 0.0), "{event}");
    assert!(event["data"]["est"]["next_due"].is_string(), "{event}");
    let name = event["data"]["why"]["crawl"].as_str().expect("its name");
    assert!(watch.get(&format!("/changes/feed.atom?watch={name}")).1.contains("<entry>"));
    assert!(!watch.get("/changes/feed.atom?watch=wasps").1.contains("<entry>"));

    let (status, fresh) = watch.get("/freshness");
    assert_eq!(status, 200);
    assert!(fresh.contains("news") && fresh.contains("every page alike"), "{fresh}");
    let told = site.skep(&["schedule", &format!("{HOME}a.html"), "--json"]).exits(0).json();
    assert!(told[0]["changes_seen"].as_f64().is_some_and(|seen| seen > 0.5), "{told:?}");
    site.skep(&["schedule", HOST]).exits(0);
    site.skep(&["schedule", "nobody.test"]).exits(1);

    // Said again, it is not begun again: it goes on as it is meant now.
    let again = site.skep(&[&["watch", HOME, "--budget", "7/s", "--policy", "fresh"], &plain[..]].concat()).exits(0);
    assert!(again.talk.contains("runs already"), "{}", again.talk);
    let (_, fresh) =
        watch.until(|watch| Some(watch.get("/freshness")).filter(|(_, page)| !page.contains("every page alike")));
    assert!(fresh.contains("news"), "its tags stay: {fresh}");
    let plan = site.skep(&[&["watch", HOME, "--plan"], &plain[..]].concat()).exits(0);
    assert!(plan.text().contains("2 pages") && plan.text().contains("7/s"), "{}", plan.text());
    assert!(plan.text().contains("traffic"), "{}", plan.text());

    let (code, said) = watch.end();
    assert_eq!(code, 0, "{said}");
    site.is_sound();
    // Alone, it goes on with the only watch there is.
    let mut resolved = vec!["watch"];
    resolved.extend(plain.iter().skip_while(|flag| **flag != "--resolve"));
    let again = Watched::begin(&site, &resolved);
    // The time of the newest capture is that of its address: whoever asks for another is led there.
    let listed = again.get(&format!("/cdx?url={HOME}a.html&output=json")).1;
    assert!(listed.lines().count() >= 2, "what was kept is served: {listed}");
    assert_eq!(again.end().0, 0);
    // What is said about versions to keep is applied by the watch itself.
    site.write("archive/settings/retention.toml", "version = 1\n[[rule]]\nkeep = 1\n");
    let again = Watched::begin(&site, &resolved);
    let address = format!("/cdx?url={HOME}a.html&output=json");
    again.until(|watch| Some(()).filter(|()| watch.get(&address).1.lines().count() == 1));
    assert_eq!(again.end().0, 0);
    site.is_sound();
    site.write("archive/settings/retention.toml", "version = 1\n[[rule]]\nkeep = 0\n");
    let refused = site.skep(&resolved).exits(2);
    assert!(refused.talk.contains("keep = 0"), "{}", refused.talk);
}

/// A host that answers 200 to everything: two pages, of which one dies, and for whatever is not there a page that says so and names it.
fn everything_is_there(dead: std::sync::Arc<std::sync::atomic::AtomicBool>) -> String {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let dead = dead.clone();
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream);
                loop {
                    let mut path = String::new();
                    let mut line = String::new();
                    while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
                        if path.is_empty() {
                            path = line.split(' ').nth(1).unwrap_or_default().to_owned();
                        }
                        line.clear();
                    }
                    if path.is_empty() {
                        return;
                    }
                    let body = match path.as_str() {
                        "/" => page("The hive stands in the garden, and the bees fly out to the linden trees."),
                        "/a.html" if !dead.load(std::sync::atomic::Ordering::SeqCst) => {
                            page("There are twelve hives in the valley of the bees, each with a keeper of its own.")
                        }
                        "/robots.txt" => "User-agent: *\nAllow: /\n".to_owned(),
                        path => format!(
                            "<title>Oh dear</title><h1>Sorry</h1><p>We looked everywhere but could not find {path} on this server. Perhaps try the search?</p>"
                        ),
                    };
                    let kind = if path == "/robots.txt" { "text/plain" } else { "text/html" };
                    let answer = format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
                        body.len()
                    );
                    if reader.get_mut().write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[test]
fn a_page_that_dies_behind_a_friendly_answer_is_missing_and_not_changed() {
    let site = Site::new();
    let dead = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let address = everything_is_there(dead.clone());
    let resolve = format!("{HOST}={address}");
    let typed = ["watch", HOME, "--every", "1s", "--pace", "none", "--own", HOST, "--resolve", &resolve];
    let mut watch = Watched::begin(&site, &typed);
    watch.until_visited(|url, outcome| url.ends_with("/a.html") && outcome == "200");
    dead.store(true, std::sync::atomic::Ordering::SeqCst);
    // It is not there, however often one looks: what stands there now is not what it is compared with.
    for _ in 0..3 {
        watch.until_visited(|url, outcome| url.ends_with("/a.html") && outcome == "soft-404");
    }
    let told = watch.until_found("/changes?class=all", "soft-404");
    assert!(!told.contains("text.major") && !told.contains("not-there-0"), "{told}");
    assert_eq!(told.matches("page.suspect").count(), 1, "{told}");
    assert_eq!(watch.end().0, 0);
}

#[test]
fn what_cannot_be_watched_is_told_with_a_hint() {
    let site = Site::new();
    for (typed, hint) in [
        (&["watch"][..], "skep watch https://"),
        (&["watch", "example.org", "--budget", "many"], "5/s"),
        (&["watch", "example.org", "--every", "soon"], "90s"),
        (&["watch", "example.org", "--every", "10ms"], "skep help watch"),
        (&["watch", "example.org", "--policy", "nutch"], "harmonic"),
        (&["watch", "example.org", "--listen", "nowhere"], "127.0.0.1:7070"),
    ] {
        let ran = site.skep(typed).exits(2);
        assert!(ran.talk.contains(hint), "{typed:?}: {}", ran.talk);
    }
    let ran = site.skep(&["watch", "example.org", "--plan"]).exits(0);
    assert!(ran.talk.contains("skep crawl"), "{}", ran.talk);
    assert!(ran.text().contains("1.000 a day for each page") && ran.text().contains("fresh"), "{}", ran.text());
    let ran = site.skep(&["watch", "example.org", "--budget", "500/day", "--plan"]).exits(0);
    assert!(ran.text().contains("500.0 a day in all") && !ran.text().contains("fresh"), "{}", ran.text());
    assert!(!site.archive().exists(), "nothing was begun");
}

#[test]
fn watches_of_others_are_taken_over_and_what_cannot_be_is_said() {
    let site = Site::new();
    site.write(
        "url-watches.json",
        r#"{"watching": {
            "1": {"url": "https://example.org/", "tag": "news", "include_filters": ["main"], "subtractive_selectors": [".ad"],
                  "time_between_check": {"hours": 2}},
            "2": {"url": "https://example.org/x", "include_filters": ["a > b"], "browser_steps": [{"operation": "Click"}]},
            "3": {"url": "ftp://example.org/"},
            "4": {"url": "https://me:secret@example.org/in"}}}"#,
    );
    let ran = site.skep(&["watch", "--import", "url-watches.json", "--json"]).exits(3);
    let told = ran.json();
    let left: Vec<&str> = told.iter().filter_map(|line| line["what"].as_str()).collect();
    assert_eq!(left.len(), 4, "a selector, steps in a browser, a scheme, a password: {left:?}");
    assert!(!ran.text().contains("secret"), "{}", ran.text());
    let last = told.last().expect("a line");
    assert_eq!(
        (last["name"].as_str(), last["watches"].as_u64(), last["rules"].as_u64()),
        (Some("imported"), Some(3), Some(1))
    );
    let rules = std::fs::read_to_string(site.archive().join("settings/changes.toml")).expect("rules");
    assert!(rules.contains("match = \"https://example.org/$\"") && rules.contains("keep = [\"main\"]"), "{rules}");
    let crawl = std::fs::read_to_string(site.archive().join("settings/crawls/imported.toml")).expect("settings");
    assert!(crawl.contains("every-ms = 7200000") && crawl.contains("depth = 0") && crawl.contains("news"), "{crawl}");
    site.skep(&["changes"]).exits(1); // nothing happened yet, and the rules make sense

    site.write("urls.yaml", "name: a\nurl: https://example.net/\nfilter:\n  - css: main\n");
    site.skep(&["watch", "--import", "urls.yaml", "--tag", "more"]).exits(0);
    let crawl = std::fs::read_to_string(site.archive().join("settings/crawls/imported.toml")).expect("settings");
    assert!(
        crawl.contains("https://example.net/") && crawl.contains("https://example.org/x"),
        "both are there: {crawl}"
    );
    assert!(crawl.contains("\"more\"") && crawl.contains("\"news\""), "both tags, too: {crawl}");
    let many: Vec<String> =
        (0..70).map(|n| format!("{{\"url\": \"https://example.org/{n}\", \"tag\": \"tag {n:02}\"}}")).collect();
    site.write("many.json", format!("[{}]", many.join(",")));
    let ran = site.skep(&["watch", "--import", "many.json", "--name", "many", "--json"]).exits(3);
    assert_eq!(
        ran.json().iter().filter(|line| line["what"].as_str().is_some_and(|what| what.contains("tag"))).count(),
        6
    );
    site.write("commands.yaml", "name: uptime.example\ncommand: uptime\n---\nurl: https://example.net/\n");
    let ran = site.skep(&["watch", "--import", "commands.yaml", "--name", "commands", "--json"]).exits(3);
    let left: Vec<String> = ran.json().iter().filter_map(|line| line["url"].as_str().map(str::to_owned)).collect();
    assert_eq!(left, ["uptime.example"; 2], "what it is, and that it names no URL");
    for (wrong, text) in [("a.json", "{}"), ("b.yaml", "a: ["), ("c.json", "{"), ("d.yaml", "- 1")] {
        site.write(wrong, text);
        let ran = site.skep(&["watch", "--import", wrong]).exits(2);
        assert!(ran.talk.contains("watch"), "{wrong}: {}", ran.talk);
    }
    site.skep(&["watch", "--import", "absent.json"]).exits(2);
}
