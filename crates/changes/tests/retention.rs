//! Retention: which versions of a page stay, and what becomes of the stream when others go.

mod support;

use std::ops::ControlFlow;

use skep_archive::Archive;
use skep_changes::{Changes, Cursor, Filter, From};
use support::*;

#[test]
fn what_a_number_leaves_is_not_new() {
    let (folder, archive, changes) = fresh(Changes::default());
    let url = "http://example.org/";
    let day = |n: i64| START_MS + n * DAY_MS;
    for n in 0..6 {
        // Another part of it each time: one that always changes would be noise.
        let parts: Vec<String> =
            (0..6).map(|part| format!("part {part} {}", if part <= n { "new" } else { "old" })).collect();
        page(&archive, url, day(3 * n), &text(&parts.iter().map(String::as_str).collect::<Vec<_>>()));
        archive.settle().unwrap();
        let known = archive.views().captures.exact(&skep_archive::Key::of(url)).unwrap();
        let digest = known.map(Result::unwrap).last().unwrap().digest.unwrap();
        append(&archive, url, vec![revisit(url, day(3 * n + 1), &digest)]);
        append(&archive, url, vec![answer(url, day(3 * n + 2), 503, "", "busy")]);
    }
    follow(&changes, &archive);
    let loud = || {
        let mut loud = std::collections::BTreeSet::new();
        let listen = |_: &Cursor, kept: &skep_changes::Kept<'_>| {
            if !kept.classes.is_empty() {
                loud.insert((kept.kind(), kept.time_ms));
            }
            ControlFlow::Continue(())
        };
        changes.read(&archive, &From::Start, &Filter::default(), listen).unwrap();
        loud
    };
    let told_before = loud();
    let left = || -> Vec<i64> {
        let known = archive.views().captures.exact(&skep_archive::Key::of(url)).unwrap();
        known.map(|capture| (capture.unwrap().time_ms - START_MS) / DAY_MS).collect()
    };
    for (keep, kept) in [(3, vec![9, 12, 15, 16, 17]), (2, vec![12, 15, 16, 17])] {
        let retention = skep_changes::Retention::read(&format!("version = 1\n[[rule]]\nkeep = {keep}")).unwrap();
        changes.retain(&archive, &retention, day(30), false).unwrap();
        assert_eq!(left(), kept, "versions count, looks do not; the newest of both stay");
        follow(&changes, &archive);
        assert!(loud().is_subset(&told_before), "what is left was told before as it is told now: {:?}", loud());
        assert_eq!(changes.retain(&archive, &retention, day(30), false).unwrap().removed, 0, "twice is once");
    }
    let live = outcome(&changes, &archive);
    archive.close().unwrap();
    let archive = Archive::rebuild(folder.path(), options(), false).unwrap();
    let changes = Changes::default();
    follow(&changes, &archive);
    assert_eq!(outcome(&changes, &archive), live);
    let first = live.values().next().unwrap();
    assert_eq!((told_as(first).as_str(), first.details.reason.as_deref()), ("bytes", Some("retention")));
}

#[test]
fn the_newest_good_version_stays_behind_however_many_walls() {
    let (_folder, archive, changes) = fresh(Changes::default());
    let url = "http://example.org/";
    let day = |n: i64| START_MS + n * DAY_MS;
    page(&archive, url, day(0), &text(&["first"]));
    page(&archive, url, day(1), &text(&["second"]));
    // It answers, but never again with the page.
    (2..6).for_each(|n| page(&archive, url, day(n), &format!("<title>A page</title><p>Please wait. {n}</p>")));
    follow(&changes, &archive);
    let told: Vec<String> = outcome(&changes, &archive).values().map(told_as).collect();
    assert_eq!(told, ["new", "text.minor", "suspect"]);
    let rules = "version = 1\n[[rule]]\nkeep = \"all\"\nthin = [{ after = \"1d\", every = \"1y\" }]";
    changes.retain(&archive, &skep_changes::Retention::read(rules).unwrap(), day(60), false).unwrap();
    let left: Vec<i64> = archive
        .views()
        .captures
        .exact(&skep_archive::Key::of(url))
        .unwrap()
        .map(|capture| (capture.unwrap().time_ms - START_MS) / DAY_MS)
        .collect();
    assert_eq!(left, [0, 1, 5], "the first, the newest good one, and the newest of any kind");
}

#[test]
fn what_is_not_to_be_kept_goes_and_what_a_revisit_stands_for_stays() {
    let (_folder, archive, changes) = fresh(Changes::default());
    let (url, copy) = ("http://example.org/", "http://example.org/copy");
    let day = |n: i64| START_MS + n * DAY_MS;
    // Text on days 0, 3, 6; in between only bytes.
    for n in 0..9 {
        page(&archive, url, day(n), &format!("{}<!-- {n} -->", text(&[&format!("edition {}", n / 3)])));
    }
    // Another page had the bytes of day 4 once, and is a revisit of them.
    archive.settle().unwrap();
    let of_day = |n: i64| {
        let captures = archive.views().captures.exact(&skep_archive::Key::of(url)).unwrap();
        captures.map(Result::unwrap).find(|capture| capture.time_ms == day(n)).unwrap()
    };
    append(&archive, copy, vec![revisit(copy, day(5), &of_day(4).digest.unwrap())]);
    follow(&changes, &archive);
    let retention = skep_changes::Retention::read("version = 1\n[[rule]]\nkeep = \"text\"").unwrap();
    let loud = |changes: &Changes| {
        let mut loud = Vec::new();
        let listen = |_: &Cursor, kept: &skep_changes::Kept<'_>| {
            loud.push((kept.kind(), kept.url.to_owned(), kept.time_ms));
            ControlFlow::Continue(())
        };
        changes.read(&archive, &From::Start, &Filter::default(), listen).unwrap();
        loud.sort();
        loud.dedup();
        loud
    };
    let before = loud(&changes);
    let dry = changes.retain(&archive, &retention, day(10), true).unwrap();
    assert_eq!((dry.urls, dry.captures, dry.removed), (2, 10, 4));
    let done = changes.retain(&archive, &retention, day(10), false).unwrap();
    assert_eq!(done, dry);
    let left: Vec<i64> = archive
        .views()
        .captures
        .exact(&skep_archive::Key::of(url))
        .unwrap()
        .map(|capture| (capture.unwrap().time_ms - START_MS) / DAY_MS)
        .collect();
    assert_eq!(left, [0, 3, 4, 6, 8], "texts, the newest, and what the copy needs");
    follow(&changes, &archive);
    assert_eq!(loud(&changes), before, "nobody hears of it");
    assert_eq!(changes.retain(&archive, &retention, day(10), false).unwrap().removed, 0, "twice is once");
}

#[test]
fn what_goes_is_the_same_however_much_is_taken_in_hand_at_once() {
    let day = |n: i64| START_MS + n * DAY_MS;
    let retained = |at_once: usize| {
        let folder = tempfile::tempdir().unwrap();
        let archive = open(folder.path());
        let changes = Changes::default();
        // Twelve pages of twelve versions; each is followed by a revisit on a page whose key comes much later, and some of those stay.
        for n in 0..144_i64 {
            let url = format!("http://example.org/{}", n / 12);
            page(&archive, &url, day(n % 12), &text(&[&format!("edition {n}")]));
            archive.settle().unwrap();
            let known = archive.views().captures.exact(&skep_archive::Key::of(&url)).unwrap();
            let digest = known.map(Result::unwrap).last().unwrap().digest.unwrap();
            let copy = format!("http://example.org/z/{}", n % 7);
            append(&archive, &copy, vec![revisit(&copy, day(20 + n), &digest)]);
        }
        follow(&changes, &archive);
        let retention = skep_changes::Retention::read("version = 1\n[[rule]]\nkeep = 2").unwrap().at_once(at_once);
        let dry = changes.retain(&archive, &retention, day(300), true).unwrap();
        let done = changes.retain(&archive, &retention, day(300), false).unwrap();
        assert_eq!(done, dry, "what was foretold came, {at_once} at once");
        assert_eq!(changes.retain(&archive, &retention, day(300), false).unwrap().removed, 0, "twice is once");
        let mut left = Vec::new();
        archive
            .views()
            .captures
            .each(&skep_archive::captures::Match::All, |row| {
                let capture = row.capture();
                left.push((capture.url, capture.time_ms));
                ControlFlow::Continue(())
            })
            .unwrap();
        (done, left)
    };
    let all = retained(usize::MAX / 4);
    assert!(all.0.removed > 100, "{:?}", all.0);
    for at_once in [17, 60] {
        assert_eq!(retained(at_once), all, "{at_once} at once");
    }
}

#[test]
fn a_body_for_which_a_record_on_its_way_stands_does_not_go() {
    let (_folder, archive, changes) = fresh(Changes::default());
    let (url, copy) = ("http://example.org/", "http://example.org/copy");
    let day = |n: i64| START_MS + n * DAY_MS;
    (0..3).for_each(|n| page(&archive, url, day(n), &text(&[&format!("edition {n}")])));
    follow(&changes, &archive);
    let left = |url: &str| -> Vec<i64> {
        let known = archive.views().captures.exact(&skep_archive::Key::of(url)).unwrap();
        known.map(|capture| (capture.unwrap().time_ms - START_MS) / DAY_MS).collect()
    };
    let known = archive.views().captures.exact(&skep_archive::Key::of(url)).unwrap();
    let digest = known.map(Result::unwrap).nth(1).unwrap().digest.unwrap();
    let retention =
        skep_changes::Retention::read("version = 1\n[[rule]]\nmatch = \"http://example.org/$\"\nkeep = 1").unwrap();
    // Somebody saw that the body is there, and has not written yet what stands for it.
    let referring = archive.referred().hold(digest).unwrap();
    changes.retain(&archive, &retention, day(9), false).unwrap();
    assert_eq!(left(url), [1, 2]);
    append(&archive, copy, vec![revisit(copy, day(5), &digest)]);
    drop(referring);
    assert_eq!(changes.retain(&archive, &retention, day(9), false).unwrap().removed, 0);
    assert_eq!(left(url), [1, 2]);
    assert!(archive.referred().hold(digest).is_some(), "nothing is about to go any more");
}

#[test]
fn retention_and_who_writes_revisits_at_the_same_time_leave_none_without_a_body() {
    let (_folder, archive, changes) = fresh(Changes::default());
    let day = |n: i64| START_MS + n * DAY_MS;
    let retention = skep_changes::Retention::read("version = 1\n[[rule]]\nkeep = 1").unwrap();
    let body = |n: i64| text(&[&format!("edition {}", n / 2 % 7)]);
    let is_there = |digest: &skep_archive::Digest| !archive.views().digests.originals(digest, 1).unwrap().is_empty();
    let over = std::sync::atomic::AtomicBool::new(false);
    let revisits = std::thread::scope(|scope| {
        let retaining = scope.spawn(|| {
            let mut removed = 0;
            loop {
                let ends = over.load(std::sync::atomic::Ordering::SeqCst);
                follow(&changes, &archive);
                removed += changes.retain(&archive, &retention, day(1_000), false).unwrap().removed;
                if ends {
                    return removed;
                }
            }
        });
        let mut revisits = 0;
        for n in 0..200 {
            let url = format!("http://example.org/{}", n % 3);
            let made = answer(&url, day(n), 200, "", &body(n));
            let skep_archive::Note::Capture(capture) = &made.note else { panic!("a capture") };
            let digest = capture.digest.unwrap();
            let referring = archive.referred().hold(digest);
            match referring.is_some() && is_there(&digest) {
                true => {
                    append(&archive, &url, vec![revisit(&url, day(n), &digest)]);
                    revisits += 1;
                }
                false => append(&archive, &url, vec![made]),
            }
        }
        over.store(true, std::sync::atomic::Ordering::SeqCst);
        assert!(retaining.join().unwrap() > 0);
        revisits
    });
    assert!(revisits > 0);
    archive.settle().unwrap();
    let mut left = 0;
    for n in 0..3 {
        for capture in
            archive.views().captures.exact(&skep_archive::Key::of(&format!("http://example.org/{n}"))).unwrap()
        {
            assert!(is_there(&capture.unwrap().digest.unwrap()), "its body is there");
            left += 1;
        }
    }
    assert!(left >= 3);
}
