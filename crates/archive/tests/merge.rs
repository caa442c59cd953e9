//! Two writers, one and sixteen slices, merged folders, removal, doubling, rebuilding: the same answers throughout.

mod support;

use skep_archive::{Archive, Error, OpenOptions, Position, Selector, State};
use std::path::Path;
use support::*;

fn fill(dir: &Path, secret: u8, bits: u8, from: i64) -> Vec<Position> {
    let options = OpenOptions { bits, segment_bytes_max: 6000, ..options(secret) };
    let archive = Archive::open(dir, options).unwrap();
    let mut positions = Vec::new();
    for number in 0..12 {
        let url = format!("http://site{}.example/page", number % 6);
        positions
            .extend(append(&archive, &url, START_MS + from + number * 1000, &format!("{secret} {number}")).positions);
    }
    archive.close().unwrap();
    positions
}

#[test]
fn answers_and_positions_stay_the_same() {
    for bits in [0, 4] {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let written = [fill(one.path(), 1, bits, 0), fill(two.path(), 2, bits, 500)].concat();
        // What `cp -r` brings: the other's segments, without its views and settings.
        copy(two.path(), one.path(), &["segments"]);
        let archive = open(one.path(), 1);
        assert_eq!(check(&archive), []);
        let all = answers(&archive);
        assert_eq!(all.len(), 24);
        for position in &written {
            archive.read(*position).unwrap().record().unwrap();
        }

        // Interleave: more from the first writer, whose numbers go on.
        let more = append(&archive, "http://site3.example/page", START_MS + 99_000, "more");
        assert!(!written.contains(&more.positions[0]));
        let with_more = answers(&archive);
        assert_eq!(with_more.len(), 25);

        // Remove one URL: gone from every answer, everything else as before.
        let removed = archive.remove(&Selector::Url("http://site2.example/page".into()), "asked").unwrap();
        assert_eq!(removed.positions.len(), 12); // two writers, two fetches each, three records each
        assert_eq!(removed.only_hidden.len(), 6); // the other writer's segments are not ours to rewrite
        assert!(removed.undone.is_empty());
        let after: Vec<_> = with_more.iter().filter(|a| a.0 != "http://site2.example/page").cloned().collect();
        assert_eq!(answers(&archive), after);
        for position in &removed.positions {
            assert!(matches!(archive.read(*position), Err(Error::NotFound { .. })));
        }
        assert_eq!(check(&archive), []);

        // Double: new records go to new folders, old ones stay.
        assert_eq!(archive.double().unwrap(), bits + 1);
        append(&archive, "http://site3.example/page", START_MS + 100_000, "doubled");
        let doubled = answers(&archive);
        assert_eq!(doubled.len(), after.len() + 1);
        let newest = archive.segments().into_iter().filter(|segment| segment.state == State::Open).collect::<Vec<_>>();
        assert!(newest.iter().all(|segment| segment.half.bits() == bits + 1) && !newest.is_empty());
        assert!(archive.segments().iter().any(|segment| segment.half.bits() == bits));
        let (live, live_digests) = (captures(&archive), digests(&archive));
        archive.close().unwrap();

        // Rebuild, from sidecars and from records: live and rebuilt views are equal field by field.
        for reparse in [false, true] {
            let archive = Archive::rebuild(one.path(), options(1), reparse).unwrap();
            assert_eq!(
                (captures(&archive), digests(&archive)),
                (live.clone(), live_digests.clone()),
                "reparse {reparse}"
            );
            assert_eq!(archive.opened(), []);
            assert_eq!(check(&archive), []);
            for (_, _, position, _, _) in &doubled {
                archive.read(*position).unwrap().record().unwrap();
            }
        }
    }
}

#[test]
fn the_removed_bytes_are_gone_and_the_heads_stay() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path(), 1);
    let first = append(&archive, "http://a.example/1", START_MS, "first body");
    let secret = append(&archive, "http://a.example/secret", START_MS, "a body nobody may see");
    let last = append(&archive, "http://a.example/3", START_MS, "last body");
    let prefix = Selector::Prefix("http://a.example/sec".into());
    let removed = archive.remove(&prefix, "asked\nby the owner").unwrap();
    assert_eq!(removed.positions, secret.positions);
    assert!(matches!(archive.remove(&prefix, "again"), Err(Error::NotFound { .. })));
    assert!(matches!(archive.remove(&prefix, " "), Err(Error::Refused { .. })));
    for told in [&first, &last] {
        assert!(block(&archive, told.positions[1]).ends_with(" body"));
    }
    archive.close().unwrap();
    let segments: Vec<_> = tree(&dir.path().join("segments")).into_keys().collect();
    assert!(segments.iter().any(|name| name.ends_with("000001.g1.warc.gz")), "{segments:?}");
    assert!(!segments.iter().any(|name| name.ends_with("000001.warc.gz")), "{segments:?}");
    let path = dir.path().join("segments").join(segments.iter().find(|name| name.ends_with(".g1.warc.gz")).unwrap());
    let mut reader = skep_warc::Reader::open(&path, skep_warc::Options::strict()).unwrap();
    let mut blank = 0;
    while let Some(mut record) = reader.next().unwrap() {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut record, &mut text).unwrap();
        assert!(!text.contains("nobody may see"));
        if let Some(by) = record.head().get("WARC-Removed-By") {
            blank += 1;
            assert!(by.starts_with(b"<urn:uuid:") && text.is_empty());
            assert_eq!(record.head().target_uri(), Some(b"http://a.example/secret".as_slice()));
            assert!(record.head().get("WARC-Removed-Length").is_some());
        }
    }
    assert_eq!((blank, reader.take_findings().len()), (3, 0));

    // An old generation that a copy brings back is ignored and, being ours and replaced by one that is whole, deleted again.
    let archive = open(dir.path(), 1);
    assert_eq!(captures(&archive).len(), 2);
    archive.close().unwrap();
}

#[test]
fn a_payload_is_removed_wherever_it_stands() {
    let dir = tempfile::tempdir().unwrap();
    let archive = Archive::open(dir.path(), OpenOptions { bits: 3, ..options(1) }).unwrap();
    for site in 0..5 {
        append(&archive, &format!("http://s{site}.example/"), START_MS, "the same everywhere");
        append(&archive, &format!("http://s{site}.example/"), START_MS + 1, &format!("own {site}"));
    }
    let digest = captures(&archive)[0].digest.unwrap();
    let removed = archive.remove(&Selector::Digest(digest), "asked").unwrap();
    assert_eq!(removed.positions.len(), 15);
    assert_eq!(captures(&archive).len(), 5);
    assert_eq!(archive.views().digests.earliest(&digest).unwrap(), None);
    assert_eq!(check(&archive), []);
}
