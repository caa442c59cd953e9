//! What was told and is no longer so: captures that were removed, and what came after them.

mod support;

use std::ops::ControlFlow;

use skep_archive::{Archive, Selector};
use skep_changes::{Changes, Cursor, Event, Filter, From};
use support::*;

fn told(events: &[(Cursor, Event)]) -> Vec<String> {
    events.iter().map(|(_, event)| told_as(event)).collect()
}

#[test]
fn what_is_removed_or_private_is_not_told() {
    let (_folder, archive, changes) = fresh(Changes::default());
    page(&archive, "http://example.org/a", START_MS, "<p>x</p>");
    page(&archive, "http://example.org/b", START_MS, "<p>y</p>");
    follow(&changes, &archive);
    archive.remove(&Selector::Url("http://example.org/a".into()), "asked").unwrap();
    let left = events(&changes, &archive, &From::Start);
    assert_eq!(left.iter().map(|(_, event)| event.url.as_str()).collect::<Vec<_>>(), ["http://example.org/b"]);
    // Whoever heard of it hears that it is no longer so, and nothing else of it.
    assert_eq!(follow(&changes, &archive), 1);
    let told = events(&changes, &archive, &From::Start);
    assert_eq!(told[..1], left);
    let (_, taken_back) = &told[1];
    assert_eq!((taken_back.url.as_str(), taken_back.classes.is_empty()), ("http://example.org/a", true));
    assert_eq!(taken_back.details, Default::default());
    assert_eq!(follow(&changes, &archive), 0, "once");
    // So does who asked for some of it only, if that was among it.
    let of = |class: &str| Filter { classes: skep_page::compare::Classes::from_name(class), ..Filter::default() };
    for (filter, hears) in [
        (Filter::default(), true),
        (Filter::default().with_text(), true),
        (Filter { since_ms: Some(START_MS + DAY_MS), share_min: 9_999, ..of("new") }, true),
        (of("links"), false),
    ] {
        let mut heard = Vec::new();
        let listen = |_: &Cursor, kept: &skep_changes::Kept<'_>| {
            heard.extend((kept.kind() == "page.withdrawn").then_some(kept.key));
            ControlFlow::Continue(())
        };
        changes.read(&archive, &From::Start, &filter, listen).unwrap();
        assert_eq!(heard, if hears { vec![taken_back.key] } else { Vec::new() }, "{filter:?}");
    }
    // Lists from the newest back have neither what is taken back nor that it is.
    let mut shown = Vec::new();
    let list = |_: &Cursor, kept: &skep_changes::Kept<'_>| {
        shown.push(kept.url.to_owned());
        ControlFlow::Continue(())
    };
    changes.newest_first(&archive, None, 100, &all(), list).unwrap();
    assert_eq!(shown, ["http://example.org/b"]);
}

#[test]
fn what_was_told_of_a_removed_capture_is_taken_back_and_what_followed_is_judged_anew() {
    let (_folder, archive, changes) = fresh(Changes::default());
    let url = "http://example.org/";
    for (day, said) in [(0, "first"), (1, "second"), (2, "third")] {
        page(&archive, url, START_MS + day * DAY_MS, &text(&[said]));
    }
    follow(&changes, &archive);
    let before = events(&changes, &archive, &From::Start);
    let first = archive.views().captures.exact(&skep_archive::Key::of(url)).unwrap().next().unwrap().unwrap();
    assert_eq!(before[0].1.key, first.position);
    archive.remove_captures(&[first], "asked").unwrap();
    follow(&changes, &archive);
    let after = events(&changes, &archive, &From::After(before[2].0.clone()));
    assert_eq!(told(&after), ["", "new"]);
    assert_eq!((after[0].1.key, after[1].1.key), (before[0].1.key, before[1].1.key));
}

#[test]
fn much_that_is_removed_at_once_is_taken_back_in_portions() {
    const PAGES: usize = 5_000;
    let (folder, archive, changes) = fresh(Changes::default());
    for day in 0..2 {
        let record = |page: usize| {
            let url = format!("http://example.org/{page}");
            answer(&url, START_MS + day * DAY_MS, 200, "", &format!("<p>page {page} as of day {day}</p>"))
        };
        append(&archive, "http://example.org/", (0..PAGES).map(record).collect());
    }
    follow(&changes, &archive);
    archive.settle().unwrap();
    let mut first = Vec::new();
    let all = skep_archive::captures::Match::All;
    let known = archive.views().captures.each(&all, |row| {
        first.extend(Some(row.capture()).filter(|capture| capture.time_ms == START_MS));
        ControlFlow::Continue(())
    });
    known.unwrap();
    archive.remove_captures(&first, "asked").unwrap();
    let mut portions = Vec::new();
    let done = changes.follow(&archive, START_MS, &mut |so_far| portions.push(so_far.events)).unwrap();
    assert_eq!(done.events, 2 * PAGES as u64, "as many were taken back as told anew");
    assert!(portions.iter().any(|events| (1..done.events).contains(events)), "{portions:?}");
    assert_eq!(follow(&changes, &archive), 0, "nothing is left to be done");
    let live = outcome(&changes, &archive);
    assert_eq!(live.len(), PAGES);
    assert!(live.values().all(|event| told_as(event) == "new"));
    archive.close().unwrap();
    let archive = Archive::rebuild(folder.path(), options(), false).unwrap();
    let changes = Changes::default();
    follow(&changes, &archive);
    assert_eq!(outcome(&changes, &archive), live);
}

#[test]
fn what_was_removed_before_a_kill_is_taken_back_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let archive = open(folder.path());
    let url = "http://example.org/";
    page(&archive, url, START_MS, &text(&["first"]));
    follow(&Changes::default(), &archive);
    let told = events(&Changes::default(), &archive, &From::Start);
    let key = told[0].1.key;
    // As it is left when nothing but the removal itself was taken in.
    let key_of_url = skep_archive::Key::of(url);
    let hash = xxhash_rust::xxh3::xxh3_64(url.as_bytes()).to_be_bytes();
    let of_url = [key_of_url.as_bytes(), &[0], &hash].concat();
    let rows = [
        [&b"u"[..], &of_url].concat(),
        [&b"p"[..], &[key.writer.0, key.segment, key.record].map(u32::to_be_bytes).concat()].concat(),
    ];
    archive.remove(&Selector::Url(url.into()), "asked").unwrap();
    let changes = Changes::default();
    follow(&changes, &archive);
    let mut batch = archive.views().batch();
    batch.put("changes-again", &rows[0], url.as_bytes());
    batch.put("changes-again", &rows[1], &[]);
    batch.put("changes-keys", &rows[1][1..], &told[0].0.number.to_be_bytes());
    batch.commit().unwrap();
    assert_eq!(follow(&changes, &archive), 1, "it was told, and is told no longer");
    assert!(rows.iter().all(|row| archive.views().get("changes-again", row).unwrap().is_none()));
}
