//! Appending and reading back.

mod support;

use skep_archive::{Append, Archive, Bytes, Encoded, Error, Key, Note, OpenOptions, State};
use support::*;

#[test]
fn records_are_found_again_by_position_and_by_url() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path(), 1);
    let first = append(&archive, "http://example.com/", START_MS, "one");
    let second = append(&archive, "http://example.com/", START_MS, "two");
    assert_eq!(first.positions.iter().map(|p| p.record).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(second.positions.iter().map(|p| p.record).collect::<Vec<_>>(), [4, 5, 6]);
    assert!(block(&archive, first.positions[1]).ends_with("one"));
    assert!(block(&archive, second.positions[0]).starts_with("GET "));
    // Two captures of one millisecond both survive; requests and metadata are no captures.
    let found = captures(&archive);
    assert_eq!(found.iter().map(|c| c.position).collect::<Vec<_>>(), [first.positions[1], second.positions[1]]);
    assert_eq!((found[0].status, found[0].mime.as_str()), (200, "text/html"));
    for capture in &found {
        let mut stored = archive.read_capture(capture).unwrap();
        assert_eq!(stored.record_of(capture.url.as_bytes()).unwrap().offset(), capture.offset);
        let mut stored = archive.read_capture(capture).unwrap();
        assert!(stored.record_of(b"http://example.com/other").is_err());
        let place = archive.place(capture.position).unwrap();
        assert_eq!((place.offset, place.length), (capture.offset, capture.length));
    }
    let digest = found[0].digest.unwrap();
    let original = archive.views().digests.earliest(&digest).unwrap().unwrap();
    assert_eq!(original.position, found[0].position);
    assert!(check(&archive).is_empty());
    archive.close().unwrap();
}

#[test]
fn a_full_segment_is_sealed_and_the_next_begins() {
    let dir = tempfile::tempdir().unwrap();
    let archive = Archive::open(dir.path(), OpenOptions { segment_bytes_max: 4000, ..options(1) }).unwrap();
    for number in 0..20 {
        append(&archive, &format!("http://example.com/{number}"), START_MS + number, &format!("body {number}"));
    }
    let segments = archive.segments();
    assert!(segments.len() > 3, "{}", segments.len());
    let states: Vec<State> = segments.iter().map(|segment| segment.state).collect();
    assert!(states[..states.len() - 1].iter().all(|state| *state == State::Sealed));
    assert_eq!(states.last(), Some(&State::Open));
    for segment in &segments {
        assert!(segment.path.metadata().unwrap().len() < 6000);
    }
    let before = captures(&archive);
    assert_eq!(before.len(), 20);
    assert!(check(&archive).is_empty());
    archive.close().unwrap();
    let again = open(dir.path(), 1);
    assert_eq!(captures(&again), before);
    assert!(again.segments().iter().all(|segment| segment.state == State::Sealed));
    assert!(check(&again).is_empty());
}

#[test]
fn many_threads_append_and_every_record_is_where_it_was_said_to_be() {
    let dir = tempfile::tempdir().unwrap();
    let archive = Archive::open(dir.path(), OpenOptions { bits: 4, segment_bytes_max: 20_000, ..options(1) }).unwrap();
    let told: Vec<(String, skep_archive::Position)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let archive = &archive;
                scope.spawn(move || {
                    let pending: Vec<_> = (0..50)
                        .map(|number| {
                            let url = format!("http://site{}.example/{thread}", number % 10);
                            let body = format!("{thread} {number}");
                            (body.clone(), archive.append(fetch(&url, START_MS + number, &body)).unwrap())
                        })
                        .collect();
                    pending.into_iter().map(|(body, p)| (body, p.wait().unwrap().positions[1])).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(told.len(), 200);
    for (body, position) in told {
        assert!(block(&archive, position).ends_with(&format!("\r\n\r\n{body}")));
    }
    assert_eq!(captures(&archive).len(), 200);
    assert!(check(&archive).is_empty());
}

#[test]
fn a_record_may_come_from_a_file() {
    use std::io::{Seek, Write};
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path(), 1);
    let mut append = fetch("http://example.com/", START_MS, &"large ".repeat(50_000));
    let Bytes::Memory(bytes) = &append.records[1].bytes else { panic!() };
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    let length = bytes.len() as u64;
    append.records[1].bytes = Bytes::Spilled { file, length };
    let told = archive.append(append).unwrap().wait().unwrap();
    assert!(block(&archive, told.positions[1]).ends_with("large large "));
    archive.close().unwrap();
    let archive = open(dir.path(), 1);
    assert!(check(&archive).is_empty());
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_changes() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path(), 1);
    assert!(matches!(archive.append(Append { site_hash: 0, records: vec![] }), Err(Error::Refused { .. })));
    assert!(Encoded::describing(b"no record".to_vec()).is_err());
    let Bytes::Memory(mut cut) = fetch("http://a.example/", 0, "x").records.remove(0).bytes else { panic!() };
    cut.truncate(cut.len() - 1);
    assert!(Encoded::describing(cut).is_err());
    let nowhere = "00000001:9:9".parse().unwrap();
    assert!(matches!(archive.read(nowhere), Err(Error::NotFound { .. })));
    let told = append(&archive, "http://a.example/", 0, "x");
    let beyond = skep_archive::Position { record: 99, ..told.positions[0] };
    assert!(matches!(archive.read(beyond), Err(Error::NotFound { .. })));
}

#[test]
fn one_process_owns_an_archive_and_a_folder_without_one_is_said_to_be_none() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(Archive::open(dir.path(), OpenOptions::default()), Err(Error::NotAnArchive { .. })));
    let archive = open(dir.path(), 1);
    match Archive::open(dir.path(), options(1)) {
        Err(Error::Locked { owner, .. }) => assert_eq!(owner, Some(std::process::id())),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("opened twice"),
    }
    append(&archive, "http://example.com/", START_MS, "one");
    archive.close().unwrap();
    let reader = Archive::open(dir.path(), OpenOptions::read_only()).unwrap();
    assert_eq!(captures(&reader).len(), 1);
    let refused = reader.append(fetch("http://example.com/", 0, "x")).map(|_| ());
    assert!(matches!(refused, Err(Error::NotWritable { .. })));
    assert!(matches!(reader.seal(), Err(Error::NotWritable { .. })));
}

#[test]
fn blocks_of_later_packages_stand_in_the_sidecar_and_views_see_them() {
    use skep_archive::{Batch, SeenRecord, View};
    use skep_warc::write::{Compression, Encoder, Record, RecordId};
    struct Heard;
    impl View for Heard {
        fn name(&self) -> &'static str {
            "heard"
        }
        fn apply(&self, record: &SeenRecord<'_>, batch: &mut Batch<'_>) -> skep_archive::Result<()> {
            if let Note::Heard(block) = &record.entry.note {
                let count = batch.get("heard", b"count")?.map_or(0, |value| value[0]);
                batch.put("heard", b"count", &[count + 1]);
                batch.put("heard", block, record.position.to_string().as_bytes());
                assert_eq!(record.open()?.record()?.head().kind(), skep_warc::RecordKind::Metadata);
            }
            Ok(())
        }
    }
    let heard = |number: u8| {
        let mut bytes = Vec::new();
        let block = format!("heard {number}").into_bytes();
        let record =
            Record::metadata(&RecordId::uuid([number; 16]), "2026-01-01T00:00:00Z", skep_archive::HEARD, block);
        record.encode(&mut Encoder::new(Compression::GZIP), &mut bytes).unwrap();
        Append {
            site_hash: Key::of("http://a.example/").site_hash(),
            records: vec![Encoded::describing(bytes).unwrap()],
        }
    };
    let dir = tempfile::tempdir().unwrap();
    let with_view = || OpenOptions { views: vec![Box::new(Heard)], ..options(1) };
    let archive = Archive::open(dir.path(), with_view()).unwrap();
    let pending: Vec<_> = (0..9).map(|number| archive.append(heard(number)).unwrap()).collect();
    let told: Vec<_> = pending.into_iter().map(|pending| pending.wait().unwrap()).collect();
    archive.settle_up_to(told[8].ticket).unwrap();
    let seen = |archive: &Archive| {
        assert_eq!(archive.views().get("heard", b"count").unwrap(), Some(vec![9]));
        archive.views().get("heard", b"heard 4").unwrap().map(|value| String::from_utf8(value).unwrap())
    };
    assert_eq!(seen(&archive), Some(told[4].positions[0].to_string()));
    archive.close().unwrap();
    for reparse in [false, true] {
        let archive = Archive::rebuild(dir.path(), with_view(), reparse).unwrap();
        assert_eq!(seen(&archive), Some(told[4].positions[0].to_string()));
    }
}

/// Whoever remembers how far he read must never see the later half of a batch before its earlier half.
#[test]
fn a_batch_is_seen_whole_or_not_at_all() {
    const BATCHES: u64 = 200;
    const ENTRIES: u64 = 500;
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path(), 1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for batch_number in 0..BATCHES {
                let mut batch = archive.views().batch();
                for entry in 0..ENTRIES {
                    batch.put("numbers", &(batch_number * ENTRIES + entry).to_be_bytes(), b"");
                }
                batch.commit().unwrap();
            }
        });
        let (mut next, mut seen_batches) = (0, 0);
        while next < BATCHES * ENTRIES {
            let before = next;
            for item in archive.views().keyspace("numbers").unwrap().range(next.to_be_bytes()..) {
                let key = item.key().unwrap();
                assert_eq!(u64::from_be_bytes(key.as_ref().try_into().unwrap()), next, "nothing is stepped over");
                next += 1;
            }
            assert_eq!((next - before) % ENTRIES, 0);
            seen_batches += u64::from(next > before);
        }
        assert!(seen_batches > 1, "it was read while it was written");
    });
}
