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
    let (_, fresh) = watch.until(|watch| Some(watch.get("/freshness")).filter(|(_, page)| page.contains("fresh")));
    assert!(fresh.contains("news"), "its tags stay: {fresh}");
    let plan = site.skep(&[&["watch", HOME, "--plan"], &plain[..]].concat()).exits(0);
    assert!(plan.text().contains("2 pages") && plan.text().contains("7/s"), "{}", plan.text());

    let (code, said) = watch.end();
    assert_eq!(code, 0, "{said}");
    site.is_sound();
    // Alone, it goes on with the only watch there is.
    let mut resolved = vec!["watch"];
    resolved.extend(plain.iter().skip_while(|flag| **flag != "--resolve"));
    let again = Watched::begin(&site, &resolved);
    assert!(again.get(&format!("/web/2099id_/{HOME}a.html")).1.contains("thirteen"));
    assert_eq!(again.end().0, 0);
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
    let ran = site.skep(&["watch", "example.org", "--plan"]).exits(1);
    assert!(ran.talk.contains("skep crawl"), "{}", ran.talk);
    assert!(!site.archive().exists(), "nothing was begun");
}
