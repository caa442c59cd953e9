//! A site that is split: captures of its URLs stand in several places, and are found as if they stood together; also by who opens the archive
//! later, and after everything but the records is made anew.

use skep_archive::captures::{Match, Place, Query};
use skep_archive::runs::Direction;
use skep_archive::{Append, Archive, Encoded, Key, OpenOptions, Selector};
use skep_url::{Split, Splits};
use skep_warc::write::{Compression, Encoder, Record, RecordId};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

const BITS: u8 = 4;

fn options() -> OpenOptions {
    OpenOptions { bits: BITS, ..OpenOptions::create() }
}

fn url(number: u32) -> String {
    format!("http://www.large.example/{number:02}")
}

/// A page, filed at a place, fetched at a minute.
fn page(url: &str, place: u32, minute: u32) -> Append {
    let (mut id, date) = ([7; 16], format!("2026-11-18T20:{minute:02}:00Z"));
    id[..4].copy_from_slice(&Key::of(url).site_hash().to_le_bytes());
    (id[4], id[5]) = (minute as u8, url.len() as u8);
    let response = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{url} {minute}");
    let mut bytes = Vec::new();
    Record::response(&RecordId::uuid(id), &date, url, response.as_bytes())
        .encode(&mut Encoder::new(Compression::GZIP), &mut bytes)
        .unwrap();
    Append { site_hash: place, records: vec![Encoded::describing(bytes).unwrap()] }
}

/// Forty URLs, each at its place; the first of them was fetched once more, at home, before the site was split.
fn filled(folder: &Path) -> (Archive, Arc<Splits>) {
    let archive = Archive::open(folder, options()).unwrap();
    let site = Key::of(&url(0)).site_hash();
    let mut splits = Splits::default();
    splits.add(site, Split { bits: 2, since_ms: 0 });
    let moved = (0..).find(|number| splits.place(&Key::of(&url(*number)), 1) != site).unwrap();
    archive.append(page(&url(moved), site, 0)).unwrap().wait().unwrap();
    for number in 0..40 {
        let place = splits.place(&Key::of(&url(number)), 1);
        archive.append(page(&url(number), place, 1 + number)).unwrap().wait().unwrap();
    }
    archive
        .append(page("http://small.example/", Key::of("http://small.example/").site_hash(), 50))
        .unwrap()
        .wait()
        .unwrap();
    archive.settle().unwrap();
    (archive, Arc::new(splits))
}

fn urls(archive: &Archive, query: &Query) -> Vec<(String, i64)> {
    let found = archive.views().captures.query(query).unwrap();
    found.map(|capture| capture.unwrap()).map(|capture| (capture.url, capture.time_ms)).collect()
}

/// Everything about the site is found, in one order.
fn is_found(archive: &Archive) {
    let captures = &archive.views().captures;
    let host = Query::new(Match::Host(Key::of(&url(0))));
    let all = urls(archive, &host);
    assert_eq!(all.len(), 41);
    assert!(all.is_sorted(), "{all:?}");
    let backward = urls(archive, &Query { direction: Direction::Backward, ..host.clone() });
    assert_eq!(backward, all.iter().rev().cloned().collect::<Vec<_>>());
    let first = captures.query(&host).unwrap().nth(9).unwrap().unwrap();
    let rest = Query { after: Some(Place::of(&first)), limit: Some(5), ..host };
    assert_eq!(urls(archive, &rest), all[10..15]);
    for number in 0..40 {
        let key = Key::of(&url(number));
        let exact: Vec<_> = captures.exact(&key).unwrap().map(|capture| capture.unwrap()).collect();
        assert!(!exact.is_empty() && exact.iter().all(|capture| capture.url == url(number)), "{number}");
        assert!(exact.is_sorted_by_key(|capture| capture.time_ms));
        let newest = exact.last().unwrap();
        let closest = captures.closest(&key, newest.time_ms).unwrap().next().unwrap().unwrap();
        assert_eq!(closest.position, newest.position);
        let oldest = captures.closest(&key, 0).unwrap().next().unwrap().unwrap();
        assert_eq!(oldest.position, exact[0].position);
    }
    let mut rows = 0;
    let count = |_: &skep_archive::runs::Row<'_>| {
        rows += 1;
        ControlFlow::Continue(())
    };
    captures.each(&Match::Prefix(Key::of("http://www.large.example/")), count).unwrap();
    assert_eq!(rows, 41);
    assert_eq!(urls(archive, &Query::new(Match::All)).len(), 42);
}

#[test]
fn captures_of_a_site_that_is_split_are_found_wherever_they_are_filed() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, splits) = filled(folder.path());
    let places: std::collections::BTreeSet<u32> = archive
        .views()
        .captures
        .query(&Query::new(Match::All))
        .unwrap()
        .map(|capture| capture.unwrap().key.site_hash())
        .collect();
    assert_eq!(places.len(), 5, "four places, and another site");
    archive.know_splits(&splits).unwrap();
    is_found(&archive);
    drop(archive);

    // Whoever opens it knows it, too.
    is_found(&Archive::open(folder.path(), options()).unwrap());
    // The keys follow from the records and the folders that they are in.
    for reparse in [false, true] {
        is_found(&Archive::rebuild(folder.path(), options(), reparse).unwrap());
    }
    let archive = Archive::open(folder.path(), options()).unwrap();
    let mut wrong = Vec::new();
    archive.check(&mut |finding| wrong.push(finding)).unwrap();
    assert!(wrong.is_empty(), "{wrong:?}");

    // What is removed is removed in all places.
    let removed =
        (0..40).map(url).find(|url| archive.views().captures.exact(&Key::of(url)).unwrap().count() == 2).unwrap();
    archive.remove(&Selector::Url(removed.clone()), "test").unwrap();
    archive.settle().unwrap();
    assert_eq!(archive.views().captures.exact(&Key::of(&removed)).unwrap().count(), 0);
    archive.remove(&Selector::Prefix("http://www.large.example/".into()), "test").unwrap();
    archive.settle().unwrap();
    assert_eq!(urls(&archive, &Query::new(Match::All)).len(), 1, "the other site");
}

#[test]
fn what_was_filed_with_another_url_is_found_and_removed_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, splits) = filled(folder.path());
    archive.know_splits(&splits).unwrap();
    let captures = &archive.views().captures;
    let positions = |key: &Key| -> Vec<_> { captures.exact(key).unwrap().map(|one| one.unwrap().position).collect() };

    // Something that cannot be there, asked for on behalf of a page of another place.
    let probe = "http://www.large.example/never-there".to_owned();
    let key = Key::of(&probe);
    let own = splits.candidates(&key);
    let other = splits.places(key.site_hash()).into_iter().find(|place| !own.contains(place)).unwrap();
    assert!(positions(&key).is_empty());
    archive.append(page(&probe, other, 51)).unwrap().wait().unwrap();
    archive.settle().unwrap();
    let found = positions(&key);
    assert_eq!(found.len(), 1);
    let closest = captures.closest(&key, 0).unwrap().next().unwrap().unwrap();
    assert_eq!((closest.position, closest.key.site_hash()), (found[0], other));
    assert_eq!(captures.closest_second(&key, 0).unwrap().count(), 1);

    // And once more where it belongs: that is what counts then, but both are removed.
    archive.append(page(&probe, *own.last().unwrap(), 52)).unwrap().wait().unwrap();
    archive.settle().unwrap();
    let belongs = positions(&key);
    assert!(belongs.len() == 1 && belongs != found);
    let removed = archive.remove(&Selector::Url(probe), "test").unwrap();
    assert_eq!(removed.positions.len(), 2);
    archive.settle().unwrap();
    assert!(positions(&key).is_empty());
    assert_eq!(captures.anywhere(&key).unwrap().count(), 0);
}

#[test]
fn what_two_splits_of_one_site_filed_is_found_also_by_who_opens_the_archive_later() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, splits) = filled(folder.path());
    archive.know_splits(&splits).unwrap();
    // The other half of the network had split it earlier, into fewer places.
    let site = Key::of(&url(0)).site_hash();
    let mut earlier = Splits::default();
    earlier.add(site, Split { bits: 1, since_ms: 0 });
    archive.know_splits(&Arc::new(earlier.clone())).unwrap();
    is_found(&archive);
    drop(archive);
    is_found(&Archive::open(folder.path(), options()).unwrap());
    let archive = Archive::open(folder.path(), options()).unwrap();
    let removed = (0..40).map(url).find(|url| !earlier.is_place(site, splits.place(&Key::of(url), 1))).unwrap();
    archive.remove(&Selector::Url(removed.clone()), "test").unwrap();
    archive.settle().unwrap();
    assert_eq!(archive.views().captures.exact(&Key::of(&removed)).unwrap().count(), 0);
}
