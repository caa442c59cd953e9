//! Statistics against sums over a list in memory, live and after a rebuild, on one thread and on several.

mod support;

use skep_archive::captures::Match;
use skep_archive::runs::Row;
use skep_archive::{Archive, CaptureKind, Key, Selector, Statistics};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use support::*;

fn counted(archive: &Archive, matching: &Match) -> Statistics {
    let one = Statistics::of(&archive.views().captures, matching, |_| true, 1).unwrap();
    let several = Statistics::of(&archive.views().captures, matching, |_| true, 3).unwrap();
    assert_eq!(one, several);
    one
}

/// The slow way.
fn expected(archive: &Archive) -> Statistics {
    let mut sums = Statistics::default();
    let (mut urls, mut hosts, mut payloads) = (BTreeSet::new(), BTreeMap::new(), HashSet::new());
    for capture in captures(archive) {
        sums.captures += 1;
        sums.bytes += capture.length;
        sums.revisits += u64::from(capture.kind == CaptureKind::Revisit);
        match payloads.insert((capture.key.clone().into_bytes(), capture.digest)) {
            true => sums.versions += 1,
            false => sums.duplicates += 1,
        }
        urls.insert(capture.key.clone().into_bytes());
        *hosts.entry(capture.key.surt().split(')').next().unwrap().to_owned()).or_insert(0) += 1;
        *sums.mimes.seen.entry(capture.mime.clone()).or_insert(0) += 1;
        *sums.statuses.entry(capture.status).or_insert(0) += 1;
        *sums.years.entry(skep_warc::date::timestamp14(capture.time_ms)[..4].parse().unwrap()).or_insert(0) += 1;
        sums.earliest_ms = Some(sums.earliest_ms.unwrap_or(i64::MAX).min(capture.time_ms));
        sums.latest_ms = sums.latest_ms.max(Some(capture.time_ms));
    }
    (sums.urls, sums.hosts) = (urls.len() as u64, hosts.len() as u64);
    sums.largest_hosts = hosts.into_iter().collect();
    sums.largest_hosts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    sums
}

#[test]
fn live_and_rebuilt_statistics_are_the_sums_over_all_captures() {
    // Longer than any year, so that each of these falls into another one.
    const YEAR_MS: i64 = 400 * 86_400_000;
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path(), 1);
    for number in 0..300i64 {
        let url = format!("http://host{}.example/{}", number % 23, number % 7);
        append(&archive, &url, START_MS + number % 5 * YEAR_MS + number, &format!("body {}", number % 4));
    }
    archive.settle().unwrap();
    let live = counted(&archive, &Match::All);
    assert_eq!(live, expected(&archive));
    assert_eq!((live.captures, live.hosts, live.years.len()), (300, 23, 5));
    let host = counted(&archive, &Match::Host(Key::of("http://host3.example/")));
    assert_eq!(
        (host.hosts, Some(host.captures)),
        (1, live.largest_hosts.iter().find(|h| h.0 == "example,host3").map(|h| h.1))
    );
    let few = |row: &Row<'_>| row.time_ms() < START_MS + YEAR_MS;
    assert_eq!(Statistics::of(&archive.views().captures, &Match::All, few, 2).unwrap().captures, 60);

    // The same from blocks of a run, and from blocks with fresh entries in between.
    archive.views().captures.compact(|_| true).unwrap();
    assert_eq!(counted(&archive, &Match::All), live);
    assert_eq!(Statistics::of(&archive.views().captures, &Match::All, few, 2).unwrap().captures, 60);
    for number in 0..200i64 {
        let url = format!("http://host{}.example/{}", number % 31, number % 11);
        append(&archive, &url, START_MS + number % 3 * YEAR_MS - number, &format!("body {}", number % 60));
    }
    // 9000-01-01: a date that no capture has, and that a record may have all the same.
    append(&archive, "http://host1.example/late", 221_845_392_000_000, "late");
    archive.settle().unwrap();
    assert_eq!(counted(&archive, &Match::All), expected(&archive));

    archive.remove(&Selector::Url("http://host3.example/3".into()), "asked").unwrap();
    let live = counted(&archive, &Match::All);
    assert_eq!(live, expected(&archive));
    assert!(live.captures < 501 && live.years.contains_key(&9000));
    archive.views().captures.compact(|_| true).unwrap();
    assert_eq!(counted(&archive, &Match::All), live);
    archive.close().unwrap();
    let archive = Archive::rebuild(dir.path(), options(1), false).unwrap();
    assert_eq!(counted(&archive, &Match::All), live);
}
