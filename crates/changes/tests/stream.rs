//! The stream: what is told of captures, in which order, and from where one can go on.

mod support;

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use skep_archive::{Archive, Position, Selector};
use skep_changes::{Changes, Cursor, Event, Filter, From};
use support::*;

fn told(events: &[(Cursor, Event)]) -> Vec<String> {
    let name = |event: &Event| event.classes.iter().map(|class| class.name()).collect::<Vec<_>>().join(" ");
    events.iter().map(|(_, event)| name(event)).collect()
}

fn text(paragraphs: &[&str]) -> String {
    let filler: String = (0..30).map(|n| format!("<p>{}</p>", words(n, 12))).collect();
    let shown: String = paragraphs.iter().map(|text| format!("<p>{text}</p>")).collect();
    format!("<!doctype html><title>A page</title>{filler}{shown}<footer>end</footer>")
}

#[test]
fn a_life_is_told_in_classes() {
    let folder = tempfile::tempdir().unwrap();
    let archive = open(folder.path());
    let changes = Changes::default();
    let url = "http://example.org/a";
    let day = |n: i64| START_MS + n * DAY_MS;
    let give = |n: i64, status: u16, fields: &str, body: &str| {
        append(&archive, url, vec![answer(url, day(n), status, fields, body)])
    };
    give(0, 404, "", "not yet");
    give(1, 200, "", &text(&["first"]));
    give(2, 200, "", &text(&["first"]));
    give(3, 200, "", &format!("<!-- x -->{}", text(&["first"])));
    give(4, 200, "", &text(&["second"]));
    give(5, 503, "", "busy");
    give(6, 503, "", "busy");
    give(7, 200, "", &text(&["first"]));
    give(8, 404, "", "no");
    give(9, 404, "", "no");
    give(16, 404, "", "no");
    give(17, 404, "", "no");
    give(18, 200, "", &text(&["first"]));
    give(19, 301, "Location: /b\r\n", "");
    give(20, 301, "Location: /b\r\n", "");
    give(21, 301, "Location: /c\r\n", "");
    give(22, 410, "", "");
    give(23, 410, "", "");
    follow(&changes, &archive);
    let events = events(&changes, &archive, &From::Start);
    assert_eq!(
        told(&events),
        ["new", "bytes", "text.minor", "suspect", "reverted", "gone", "returned", "moved", "moved", "gone"]
    );
    let changed = &events[2].1;
    assert_eq!(changed.details.window, Some([day(3), day(4)].map(skep_warc::date::rfc3339)));
    assert_eq!(changed.details.text.as_ref().map(|text| (text.added_tokens, text.removed_tokens)), Some((1, 1)));
    assert_eq!(changed.details.text.as_ref().map(|text| text.snippet.as_str()), Some("second"));
    assert_eq!(events[4].1.details.reverted_to.as_deref(), Some(events[1].1.key.to_string().as_str()));
    assert_eq!(events[7].1.details.http.redirect.as_deref(), Some("http://example.org/b"));
    assert_eq!(events[3].1.details.reason.as_deref(), Some("outage"));
    // Nobody hears of noise who does not ask for it.
    let mut heard = Vec::new();
    let listen = |_: &Cursor, kept: &skep_changes::Kept<'_>| {
        heard.push(kept.kind());
        ControlFlow::Continue(())
    };
    changes.read(&archive, &From::Start, &Filter::default(), listen).unwrap();
    assert_eq!(
        heard,
        [
            "page.new",
            "page.changed",
            "page.changed",
            "page.gone",
            "page.returned",
            "page.moved",
            "page.moved",
            "page.gone"
        ]
    );
}

#[test]
fn two_captures_from_elsewhere_are_an_event_and_the_order_of_files_does_not_matter() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let url = "http://example.org/";
    let file = |name: &str, day: i64, body: &str| {
        let path = elsewhere.path().join(name);
        foreign(&path, vec![answer(url, START_MS + day * DAY_MS, 200, "", body)]);
        path
    };
    let archive = open(folder.path());
    let changes = Changes::default();
    add(&archive, &file("later.warc.gz", 5, &text(&["later"])));
    assert_eq!(follow(&changes, &archive), 1);
    add(&archive, &file("same.warc.gz", 6, &text(&["later"])));
    assert_eq!(follow(&changes, &archive), 0);
    let first = events(&changes, &archive, &From::Start);
    assert_eq!(told(&first), ["new"]);
    // The earlier one comes last: what was new is a change, and is told again under its key.
    add(&archive, &file("earlier.warc.gz", 1, &text(&["earlier"])));
    assert_eq!(follow(&changes, &archive), 2);
    let after = events(&changes, &archive, &From::After(first[0].0.clone()));
    assert_eq!(told(&after), ["new", "text.minor"]);
    assert_eq!(after[1].1.key, first[0].1.key);
    // What was told and is so no longer is taken back.
    add(&archive, &file("before.warc.gz", 3, &text(&["later"])));
    follow(&changes, &archive);
    let last = events(&changes, &archive, &From::After(after[1].0.clone()));
    assert_eq!(told(&last), ["text.minor", ""]);
    assert_eq!(last[1].1.key, first[0].1.key);
}

/// What the log says in the end of each capture.
fn outcome(changes: &Changes, archive: &Archive) -> BTreeMap<Position, Event> {
    let mut last = BTreeMap::new();
    for (_, event) in events(changes, archive, &From::Start) {
        last.insert(event.key, event);
    }
    last.retain(|_, event| !event.classes.is_empty());
    last
}

#[test]
fn what_is_followed_live_is_what_is_built_again() {
    for seed in 0..4 {
        let folder = tempfile::tempdir().unwrap();
        let mut chance = Chance(seed);
        let archive = open(folder.path());
        let changes = Changes::default();
        let mut seen = Vec::new();
        for step in 0..300_i64 {
            let url = format!("http://host-{}.example/{}", chance.below(3), chance.below(6));
            // One in ten is late.
            let time_ms =
                START_MS + (step - if chance.percent(10) { chance.below(100) as i64 } else { 0 }) * DAY_MS / 4 + step;
            let (status, fields) = match chance.below(20) {
                0 | 1 => (404, ""),
                2 => (301, "Location: /moved\r\n"),
                3 => (503, ""),
                _ => (200, ""),
            };
            let body = match chance.below(10) {
                0 => "<title>Just a moment...</title><script>window._cf_chl_opt={}</script>".to_owned(),
                1 => String::new(),
                _ => text(&[&words(chance.below(4) as u64, 9), &format!("Visit {} of many", chance.below(3))]),
            };
            append(&archive, &url, vec![answer(&url, time_ms, status, fields, &body)]);
            if chance.percent(15) {
                follow(&changes, &archive);
                seen.extend(events(
                    &changes,
                    &archive,
                    &seen.last().map_or(From::Start, |(cursor, _): &(Cursor, Event)| From::After(cursor.clone())),
                ));
            }
        }
        follow(&changes, &archive);
        let (live, log) = (outcome(&changes, &archive), events(&changes, &archive, &From::Start));
        assert!(live.len() > 100, "{}", live.len());
        assert_eq!(seen[..], log[..seen.len()], "what was told stays");
        archive.close().unwrap();
        for reparse in [false, true] {
            let archive = Archive::rebuild(folder.path(), options(), reparse).unwrap();
            let changes = Changes::default();
            follow(&changes, &archive);
            let built = outcome(&changes, &archive);
            for (key, event) in &live {
                assert_eq!(built.get(key), Some(event), "seed {seed}");
            }
            assert_eq!(built.len(), live.len(), "seed {seed}");
            archive.close().unwrap();
        }
    }
}

#[test]
fn a_consumer_that_is_killed_again_and_again_sees_every_key_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let archive = open(folder.path());
    let changes = Changes::default();
    let mut chance = Chance(3);
    let (mut cursor, mut heard): (From, Vec<Event>) = (From::Start, Vec::new());
    let mut stops = 0;
    for step in 0..400_i64 {
        let url = format!("http://example.org/{}", chance.below(20));
        page(&archive, &url, START_MS + step * 1000, &text(&[&format!("version {step}")]));
        if chance.percent(30) {
            follow(&changes, &archive);
            // The consumer acknowledges what it heard up to a moment that is drawn, and comes back.
            let mut room = chance.below(9);
            let listened = changes.read(&archive, &cursor, &all(), |_, kept| {
                if room == 0 {
                    return ControlFlow::Break(());
                }
                room -= 1;
                heard.push(kept.event().unwrap());
                ControlFlow::Continue(())
            });
            let got = heard.last().map(|last| last.key);
            let reached = listened.unwrap();
            let known = events(&changes, &archive, &From::Start);
            let place = known.iter().rev().find(|(_, event)| Some(event.key) == got).map(|(cursor, _)| cursor.clone());
            assert!(place.as_ref().is_none_or(|place| place.number <= reached.number));
            cursor = place.map_or(From::Start, From::After);
            stops += 1;
        }
    }
    assert!(stops >= 100, "{stops}");
    follow(&changes, &archive);
    changes
        .read(&archive, &cursor, &all(), |_, kept| {
            heard.push(kept.event().unwrap());
            ControlFlow::Continue(())
        })
        .unwrap();
    let mut last: HashMap<&str, i64> = HashMap::new();
    for event in &heard {
        let before = last.insert(&event.url, event.time_ms);
        assert!(before.is_none_or(|before| before <= event.time_ms), "in order per URL");
    }
    let keys: std::collections::BTreeSet<Position> = heard.iter().map(|event| event.key).collect();
    assert_eq!(keys.len(), 400, "every one of them is an event");
}

#[test]
fn cursors_that_lead_nowhere_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let archive = open(folder.path());
    let changes = Changes::default();
    page(&archive, "http://example.org/", START_MS, "<p>x</p>");
    follow(&changes, &archive);
    let newest = changes.newest(&archive).unwrap();
    assert_eq!(newest.number, 1);
    let wrong = |cursor: Cursor| {
        let error = changes.read(&archive, &From::After(cursor), &all(), |_, _| ControlFlow::Continue(())).unwrap_err();
        assert!(error.hint().is_some());
        error.id()
    };
    assert_eq!(wrong(Cursor { number: 2, ..newest.clone() }), "cursor-ahead");
    assert_eq!(wrong("abc:1".parse().unwrap()), "foreign-cursor");
    // What was opened again is the same log; what was built again is another.
    archive.close().unwrap();
    let archive = open(folder.path());
    assert_eq!((follow(&changes, &archive), changes.newest(&archive).unwrap()), (0, newest.clone()));
    archive.close().unwrap();
    let archive = Archive::rebuild(folder.path(), options(), false).unwrap();
    changes.follow(&archive, START_MS + 1, &mut |_| ()).unwrap();
    let read = changes.read(&archive, &From::After(newest), &all(), |_, _| ControlFlow::Continue(()));
    assert_eq!(read.unwrap_err().id(), "foreign-cursor");
}

#[test]
fn what_is_removed_or_private_is_not_told() {
    let folder = tempfile::tempdir().unwrap();
    let archive = open(folder.path());
    let changes = Changes::default();
    page(&archive, "http://example.org/a", START_MS, "<p>x</p>");
    page(&archive, "http://example.org/b", START_MS, "<p>y</p>");
    follow(&changes, &archive);
    archive.remove(&Selector::Url("http://example.org/a".into()), "asked").unwrap();
    let left = events(&changes, &archive, &From::Start);
    assert_eq!(left.iter().map(|(_, event)| event.url.as_str()).collect::<Vec<_>>(), ["http://example.org/b"]);
    follow(&changes, &archive);
    assert_eq!(events(&changes, &archive, &From::Start), left);
}

#[test]
fn rules_in_the_settings_count() {
    let folder = tempfile::tempdir().unwrap();
    let archive = open(folder.path());
    let changes = Changes::default();
    let url = "http://example.org/";
    let body = |clock: &str, said: &str| format!("<main><p>{said}</p><p id=clock>{clock}</p></main><nav>{clock}</nav>");
    let file = archive.layout().settings().join("changes.toml");
    std::fs::write(&file, "version = 1\n[[site]]\nmatch = \"example.org\"\nkeep = [\"main\"]\nignore = [\"#clock\"]\n")
        .unwrap();
    page(&archive, url, START_MS, &body("one", "said"));
    page(&archive, url, START_MS + 1000, &body("two", "said"));
    page(&archive, url, START_MS + 2000, &body("three", "other"));
    follow(&changes, &archive);
    assert_eq!(told(&events(&changes, &archive, &From::Start)), ["new", "bytes", "text.major"]);
    std::fs::write(&file, "version = 1\n[[site]]\nmatch = \"example.org\"\nkeep = [\"a:b\"]\n").unwrap();
    let error = changes.follow(&archive, 0, &mut |_| ()).unwrap_err();
    assert!(error.id() == "rules" && error.to_string().contains("a:b") && error.hint().is_some(), "{error}");
}
