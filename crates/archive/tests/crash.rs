//! What a crash may leave, at every byte and between every two steps.

mod support;

use std::path::{Path, PathBuf};

use skep_archive::sidecar::SidecarReader;
use skep_archive::{Archive, Error, OpenOptions, Position, Selector, State};
use support::*;

fn find(dir: &Path, ending: &str) -> PathBuf {
    let names = tree(&dir.join("segments")).into_keys();
    let found: Vec<_> = names.filter(|name| name.ends_with(ending)).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    dir.join("segments").join(&found[0])
}

/// An archive as it lies on the disk while its owner runs: nothing closed. Returns where the last commit begins, in the
/// segment and in the sidecar.
fn unclosed(dir: &Path) -> (u64, u64) {
    let archive = open(dir, 1);
    append(&archive, "http://a.example/1", START_MS, "one");
    append(&archive, "http://a.example/2", START_MS, "two");
    archive.settle().unwrap();
    let lengths = |ending| find(dir, ending).metadata().unwrap().len();
    let before = (lengths(".warc.gz"), lengths(".idx"));
    append(&archive, "http://a.example/3", START_MS, "three");
    archive.settle().unwrap();
    copy(dir, &dir.join("left"), &["segments", "settings"]);
    archive.close().unwrap();
    before
}

#[test]
fn the_last_commit_may_be_cut_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let (segment_from, sidecar_from) = unclosed(dir.path());
    let left = dir.path().join("left");
    let (segment, sidecar) = (find(&left, ".warc.gz"), find(&left, ".idx"));
    let (segment_bytes, sidecar_bytes) = (std::fs::read(&segment).unwrap(), std::fs::read(&sidecar).unwrap());
    let ends: Vec<u64> = {
        let name = segment.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let mut reader = SidecarReader::open(&sidecar, name).unwrap().unwrap();
        std::iter::from_fn(|| reader.next_frame().unwrap()).flatten().map(|entry| entry.end()).collect()
    };
    let cuts = segment_bytes.len() as u64 - segment_from;
    // Every byte is cut at in the tests of recovery itself; here the whole archive is opened, which takes longer.
    for cut in (0..=cuts).filter(|cut| cut % 211 == 0 || ends.iter().any(|end| end.abs_diff(segment_from + cut) < 2)) {
        // The sidecar is behind, is ahead of the cut, is torn itself, or is not there at all.
        for sidecar_length in [sidecar_from, sidecar_bytes.len() as u64, sidecar_from + 5, 0] {
            std::fs::write(&segment, &segment_bytes[..(segment_from + cut) as usize]).unwrap();
            std::fs::write(&sidecar, &sidecar_bytes[..sidecar_length as usize]).unwrap();
            let case = tempfile::tempdir().unwrap();
            copy(&left, case.path(), &["segments", "settings"]);
            let archive = open(case.path(), 1);
            assert_eq!(archive.finish_opening(), []);
            let whole = ends.iter().filter(|end| **end <= segment_from + cut).count();
            let position = |record| skep_archive::Position { writer: archive.writer(), segment: 1, record };
            for record in 0..whole as u32 {
                archive.read(position(record)).unwrap().record().unwrap();
            }
            let found = captures(&archive);
            assert_eq!(found.len(), [2, 2, 3, 3][whole.saturating_sub(7).min(3)], "cut {cut} sidecar {sidecar_length}");
            assert!(archive.segments().iter().all(|segment| segment.state == State::Sealed));
            assert_eq!(check(&archive), [], "cut {cut} sidecar {sidecar_length}");
            // The writer goes on in a new segment.
            let more = append(&archive, "http://a.example/4", START_MS, "four");
            assert_eq!(more.positions[0].segment, 2);
        }
    }
}

#[test]
fn rubbish_behind_the_last_record_is_cut_off_and_said_to_be() {
    let dir = tempfile::tempdir().unwrap();
    unclosed(dir.path());
    let left = dir.path().join("left");
    let segment = find(&left, ".warc.gz");
    let whole = std::fs::read(&segment).unwrap();
    for rubbish in [vec![0; 5000], b"\x1f\x8b\x08\x00".to_vec(), whole[..300].to_vec()] {
        std::fs::write(&segment, [whole.as_slice(), &rubbish].concat()).unwrap();
        let case = tempfile::tempdir().unwrap();
        copy(&left, case.path(), &["segments", "settings"]);
        let archive = open(case.path(), 1);
        let rules: Vec<_> = archive.opened().iter().map(|finding| (finding.rule, finding.mended)).collect();
        assert_eq!(rules, [("torn-tail", true)]);
        assert_eq!(archive.finish_opening(), []);
        assert_eq!((captures(&archive).len(), check(&archive)), (3, vec![]));
    }
}

#[test]
fn a_segment_that_never_got_a_record_disappears() {
    let dir = tempfile::tempdir().unwrap();
    unclosed(dir.path());
    let left = dir.path().join("left");
    let first = find(&left, ".warc.gz");
    let stillborn = first.with_file_name(first.file_name().unwrap().to_str().unwrap().replace("-000001", "-000002"));
    for bytes in [&b""[..], b"\x1f\x8b\x08 half a record"] {
        std::fs::write(&stillborn, bytes).unwrap();
        let archive = open(&left, 1);
        assert!(archive.opened().iter().any(|finding| finding.rule == "stillborn" && finding.mended));
        assert!(!stillborn.exists());
        archive.close().unwrap();
    }
}

#[test]
fn another_writers_torn_segment_is_read_and_left_alone() {
    let (dir, reader) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    unclosed(dir.path());
    let left = dir.path().join("left");
    let segment = find(&left, ".warc.gz");
    let whole = std::fs::read(&segment).unwrap();
    let torn = &whole[..whole.len() - 10];
    std::fs::write(&segment, torn).unwrap();
    copy(&left, reader.path(), &["segments"]);
    let archive = open(reader.path(), 2);
    assert_eq!(archive.finish_opening(), []);
    assert_eq!(captures(&archive).len(), 3);
    assert!(archive.segments().iter().all(|segment| segment.state == State::Unclosed));
    assert_eq!(std::fs::read(find(reader.path(), ".warc.gz")).unwrap(), torn);
    // The owner copies more of it: what is new is seen at the next opening, and what was seen is not seen twice.
    archive.close().unwrap();
    std::fs::write(find(reader.path(), ".warc.gz"), &whole).unwrap();
    let archive = open(reader.path(), 2);
    assert_eq!(captures(&archive).len(), 3);
    assert_eq!(check(&archive), []);
}

#[test]
fn views_and_sidecars_may_be_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path(), 1);
    for number in 0..5 {
        append(&archive, &format!("http://a.example/{number}"), START_MS, "x");
    }
    archive.remove(&Selector::Url("http://a.example/3".into()), "asked").unwrap();
    let (before, before_digests) = (captures(&archive), digests(&archive));
    archive.close().unwrap();
    for (what, ending) in [("views", None), ("sidecars", Some(".idx")), ("both", Some(".idx"))] {
        if what != "sidecars" {
            std::fs::remove_dir_all(dir.path().join("views")).unwrap();
        }
        for name in tree(&dir.path().join("segments")).into_keys() {
            if ending.is_some_and(|ending| name.ends_with(ending)) {
                std::fs::remove_file(dir.path().join("segments").join(name)).unwrap();
            }
        }
        let archive = Archive::rebuild(dir.path(), options(1), what == "sidecars").unwrap();
        assert_eq!((captures(&archive), digests(&archive)), (before.clone(), before_digests.clone()), "{what}");
        assert_eq!(check(&archive), [], "{what}");
        archive.close().unwrap();
    }
}

#[test]
fn rewriting_may_stop_between_any_two_steps() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path(), 1);
    append(&archive, "http://a.example/keep", START_MS, "kept");
    append(&archive, "http://a.example/secret", START_MS, "secret");
    archive.seal().unwrap();
    archive.settle().unwrap();
    let before = tree(dir.path());
    archive.remove(&Selector::Url("http://a.example/secret".into()), "asked").unwrap();
    let wanted = answers(&archive);
    assert_eq!(wanted.len(), 1);
    archive.close().unwrap();
    let after = tree(dir.path());
    let old: Vec<_> = before.keys().filter(|name| name.starts_with("segments/") && name.contains("-000001.")).collect();
    let new: Vec<_> = after.keys().filter(|name| name.contains("-000001.g1.")).collect();
    assert_eq!((old.len(), new.len()), (2, 2));
    // Which files a stop leaves of the old generation, of the new one, and of the unfinished one.
    for (old_left, new_left, parts) in [(2, 0, 0), (2, 0, 1), (2, 1, 1), (2, 2, 0), (1, 2, 0), (0, 2, 0), (2, 1, 0)] {
        let case = tempfile::tempdir().unwrap();
        copy(dir.path(), case.path(), &["segments", "settings"]);
        for (names, tree, left) in [(&old, &before, old_left), (&new, &after, new_left)] {
            for (index, name) in names.iter().enumerate() {
                // Sorted, a sidecar comes first: of the old generation the sidecar stays last, of the new one it comes first.
                let path = case.path().join(name);
                match index < left {
                    true => std::fs::write(path, &tree[*name]).unwrap(),
                    false => drop(std::fs::remove_file(path)),
                }
            }
        }
        if parts > 0 {
            std::fs::write(case.path().join(format!("{}.part", new[1])), b"half").unwrap();
        }
        let archive = open(case.path(), 1);
        let stage = format!("old {old_left} new {new_left} parts {parts}");
        assert_eq!(archive.finish_opening(), [], "{stage}");
        assert_eq!(answers(&archive), wanted, "{stage}");
        assert_eq!(check(&archive), [], "{stage}");
        archive.close().unwrap();
        let names: Vec<_> =
            tree(&case.path().join("segments")).into_keys().filter(|n| n.contains("-000001.")).collect();
        assert!(names.iter().all(|name| name.contains(".g1.")), "{stage}: {names:?}");
        for (name, bytes) in tree(&case.path().join("segments")) {
            assert!(!name.ends_with(".part"), "{stage}");
            drop(bytes);
        }
    }
}

#[test]
fn an_older_generation_of_another_writer_is_ignored_and_reported() {
    let (dir, reader) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let archive = open(dir.path(), 1);
    append(&archive, "http://a.example/keep", START_MS, "kept");
    append(&archive, "http://a.example/secret", START_MS, "secret");
    archive.seal().unwrap();
    archive.settle().unwrap();
    copy(dir.path(), reader.path(), &["segments"]);
    archive.remove(&Selector::Url("http://a.example/secret".into()), "asked").unwrap();
    archive.close().unwrap();
    copy(dir.path(), reader.path(), &["segments"]);
    let archive = open(reader.path(), 2);
    assert_eq!(archive.opened().iter().map(|finding| finding.rule).collect::<Vec<_>>(), ["replaced"]);
    assert_eq!(captures(&archive).len(), 1);
    assert_eq!(check(&archive).iter().map(|finding| finding.rule).collect::<Vec<_>>(), ["replaced"]);
}

#[test]
fn check_names_what_was_changed_and_where() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path(), 1);
    append(&archive, "http://a.example/1", START_MS, "one");
    append(&archive, "http://a.example/2", START_MS, "two");
    archive.close().unwrap();
    let (segment, sidecar) = (find(dir.path(), ".warc.gz"), find(dir.path(), ".idx"));
    let (bytes, index) = (std::fs::read(&segment).unwrap(), std::fs::read(&sidecar).unwrap());
    for at in [30, bytes.len() / 2, bytes.len() - 20] {
        let mut flipped = bytes.clone();
        flipped[at] ^= 4;
        std::fs::write(&segment, &flipped).unwrap();
        let archive = open(dir.path(), 1);
        let findings = check(&archive);
        assert!(findings.iter().any(|finding| finding.path.file_name() == segment.file_name()), "{at}: {findings:?}");
    }
    std::fs::write(&segment, &bytes).unwrap();
    let mut flipped = index.clone();
    flipped[60] ^= 1;
    std::fs::write(&sidecar, &flipped).unwrap();
    let archive = open(dir.path(), 1);
    assert!(check(&archive).iter().any(|finding| finding.rule == "sidecar"));
    drop(archive);
    std::fs::write(&sidecar, &index).unwrap();
    std::fs::write(dir.path().join("segments/notes.txt"), "mine").unwrap();
    let archive = open(dir.path(), 1);
    assert_eq!(check(&archive).iter().map(|finding| finding.rule).collect::<Vec<_>>(), ["stray"]);
}

#[test]
fn without_room_nothing_is_taken_and_with_room_it_is_again() {
    let dir = tempfile::tempdir().unwrap();
    let archive = Archive::open(dir.path(), OpenOptions { disk_reserve_bytes: u64::MAX / 2, ..options(1) }).unwrap();
    let refused = archive.append(fetch("http://a.example/", START_MS, "x")).map(|_| ());
    assert!(matches!(refused, Err(Error::DiskFull { .. })));
    archive.close().unwrap();
    let archive = open(dir.path(), 1);
    append(&archive, "http://a.example/", START_MS, "x");
    assert_eq!(captures(&archive).len(), 1);
}

#[test]
fn one_flipped_bit_anywhere_is_found_where_it_is() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let archive = open(dir.path(), 1);
    let positions = append(&archive, "http://a.example/1", START_MS, "one").positions;
    append(&archive, "http://a.example/2", START_MS, "two");
    archive.remove(&Selector::Url("http://a.example/2".into()), "asked").unwrap();
    archive.seal().unwrap();
    archive.settle().unwrap();
    let foreign = elsewhere.path().join("a.warc.gz");
    std::fs::copy(find(dir.path(), ".warc.gz"), &foreign).unwrap();
    let mut additions = archive.additions().unwrap();
    additions.add(&foreign, "c", true, &mut |_| ()).unwrap();
    additions.commit().unwrap();
    assert_eq!(check(&archive), []);
    let (second, wanted) = (archive.place(positions[1]).unwrap(), block(&archive, positions[1]));
    let copied = dir.path().join("collections/files/1-a.warc.gz");
    for file in [find(dir.path(), ".warc.gz"), find(dir.path(), ".idx"), copied] {
        let whole = std::fs::read(&file).unwrap();
        let segment = file == second.path;
        for at in 0..whole.len() {
            // The last byte before the trailer of a member may hold bits that mean nothing. Nothing covers them in the last member.
            if segment && at + 9 == whole.len() {
                continue;
            }
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            std::fs::write(&file, &flipped).unwrap();
            let findings = check(&archive);
            assert!(findings.iter().any(|finding| finding.path.file_stem() == file.file_stem()), "{at} of {file:?}");
            // The place of the record is named, unless it reads as before: some bits of a compressed record mean nothing.
            if segment && (second.offset + 24..second.offset + second.length).contains(&(at as u64)) {
                let named = findings.iter().any(|f| f.offset == Some(second.offset) && f.path == file);
                assert!(named || block(&archive, positions[1]) == wanted, "{at} of {file:?}: {findings:?}");
            }
        }
        std::fs::write(&file, &whole).unwrap();
    }
    assert_eq!(check(&archive), []);
}

#[test]
fn a_block_that_is_not_what_its_digest_says_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path(), 1);
    let mut fetched = fetch("http://a.example/1", START_MS, "one");
    let response = {
        let skep_archive::Bytes::Memory(bytes) = &fetched.records[1].bytes else { panic!() };
        let mut record = skep_warc::Reader::new(std::io::Cursor::new(bytes.clone()), Default::default()).unwrap();
        let mut record = record.next().unwrap().unwrap();
        let mut block = Vec::new();
        std::io::Read::read_to_end(&mut record, &mut block).unwrap();
        *block.last_mut().unwrap() ^= 1;
        let mut bytes = Vec::new();
        let mut encoder = skep_warc::write::Encoder::new(skep_warc::write::Compression::GZIP);
        encoder.raw_record(record.head().raw(), &block, &mut bytes);
        skep_archive::Encoded::describing(bytes).unwrap()
    };
    fetched.records[1] = response;
    let told = archive.append(fetched).unwrap().wait().unwrap();
    archive.settle().unwrap();
    let place = archive.place(told.positions[1]).unwrap();
    let found: Vec<_> = check(&archive).into_iter().map(|f| (f.rule, f.path, f.offset)).collect();
    let wanted = |rule| (rule, place.path.clone(), Some(place.offset));
    assert_eq!(found, [wanted("digest-block"), wanted("digest-payload")]);
}

fn rules(archive: &Archive) -> Vec<(&'static str, bool)> {
    archive.opened().iter().map(|finding| (finding.rule, finding.mended)).collect()
}

fn is_read(archive: &Archive, position: Position) -> bool {
    archive.read(position).and_then(|mut stored| stored.record().map(drop)).is_ok()
}

#[test]
fn a_sealed_segment_that_lost_its_end_is_left_as_it_is_and_said_to_be() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path(), 1);
    let positions: Vec<_> = (1..=3)
        .flat_map(|number| append(&archive, &format!("http://a.example/{number}"), START_MS, "x").positions)
        .collect();
    archive.settle().unwrap();
    let last = archive.place(positions[7]).unwrap();
    let before = captures(&archive);
    archive.close().unwrap();
    let whole = std::fs::read(find(dir.path(), ".warc.gz")).unwrap();
    let lengths = [whole.len() - 1, last.offset as usize, last.offset as usize - 1, 0];
    // Of what knew how long it was: everything is there, the views are gone, the sidecar is gone.
    for (kept, gone) in lengths.iter().flat_map(|kept| [(*kept, ""), (*kept, "views"), (*kept, ".idx")]) {
        let case = tempfile::tempdir().unwrap();
        copy(dir.path(), case.path(), &["segments", "settings", "views"]);
        let segment = find(case.path(), ".warc.gz");
        std::fs::write(&segment, &whole[..kept]).unwrap();
        match gone {
            "views" => std::fs::remove_dir_all(case.path().join("views")).unwrap(),
            ".idx" => std::fs::remove_file(find(case.path(), ".idx")).unwrap(),
            _ => {}
        }
        let what = format!("{kept} of {} bytes, without {gone:?}", whole.len());
        for time in ["first", "second"] {
            let archive = open(case.path(), 1);
            assert_eq!(rules(&archive), [("records-lost", false)], "{what}, {time}");
            assert_eq!(archive.finish_opening(), [], "{what}");
            assert_eq!(captures(&archive), before, "{what}");
            if gone != ".idx" {
                assert_eq!(is_read(&archive, positions[7]), kept > last.offset as usize, "{what}");
            }
            assert!(check(&archive).iter().any(|f| !f.mended && f.rule != "stray"), "{what}, {time}");
            let more = append(&archive, "http://a.example/4", START_MS, "four").positions[0];
            assert!(more.segment > 1, "{what}");
            archive.remove(&Selector::Url("http://a.example/4".into()), "asked").unwrap();
            archive.close().unwrap();
            assert_eq!(std::fs::read(&segment).unwrap(), whole[..kept], "{what}, {time}");
        }
        if gone != ".idx" {
            let archive = Archive::rebuild(case.path(), options(1), true).unwrap();
            assert_eq!(
                (rules(&archive), captures(&archive)),
                (vec![("records-lost", false)], before.clone()),
                "{what}"
            );
        }
        // Put back whole, it is as it was.
        std::fs::write(&segment, &whole).unwrap();
        let archive = Archive::rebuild(case.path(), options(1), false).unwrap();
        assert_eq!((rules(&archive), check(&archive), captures(&archive)), (vec![], vec![], before.clone()), "{what}");
    }
}

#[test]
fn bytes_behind_a_seal_are_ignored_and_said_to_be() {
    let dir = tempfile::tempdir().unwrap();
    unclosed(dir.path());
    let segment = find(dir.path(), "-000001.warc.gz");
    let whole = std::fs::read(&segment).unwrap();
    let longer = [whole.as_slice(), &whole[..]].concat();
    std::fs::write(&segment, &longer).unwrap();
    for _ in 0..2 {
        let archive = open(dir.path(), 1);
        assert_eq!((rules(&archive), captures(&archive).len()), (vec![("torn-tail", false)], 3));
        assert!(!check(&archive).is_empty());
        archive.close().unwrap();
        assert_eq!(std::fs::read(&segment).unwrap(), longer);
    }
}

#[test]
fn whole_records_behind_a_damaged_one_keep_their_names_also_when_the_segment_is_rewritten() {
    let dir = tempfile::tempdir().unwrap();
    unclosed(dir.path());
    let left = dir.path().join("left");
    let (segment, sidecar) = (find(&left, ".warc.gz"), find(&left, ".idx"));
    let name = segment.file_name().unwrap().to_str().unwrap().parse().unwrap();
    let mut reader = SidecarReader::open(&sidecar, name).unwrap().unwrap();
    let entries: Vec<_> = std::iter::from_fn(|| reader.next_frame().unwrap()).flatten().collect();
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[(entries[5].offset + entries[5].length / 2) as usize] ^= 0x10;
    std::fs::write(&segment, &bytes).unwrap();
    // A loss of power left the sidecar no whole frame.
    std::fs::write(&sidecar, &std::fs::read(&sidecar).unwrap()[..40]).unwrap();

    let archive = open(&left, 1);
    assert_eq!(rules(&archive), [("damaged-record", false)]);
    assert_eq!(archive.opened()[0].offset, Some(entries[5].offset));
    assert_eq!(archive.finish_opening(), []);
    let records = |archive: &Archive| captures(archive).iter().map(|c| c.position.record).collect::<Vec<_>>();
    assert_eq!(records(&archive), [2, 8]);
    let removed = archive.remove(&Selector::Url("http://a.example/1".into()), "asked").unwrap();
    assert_eq!(removed.undone, []);
    let is_damage = |archive: &Archive| {
        let found = check(archive);
        !found.is_empty() && found.iter().all(|f| !matches!(f.rule, "seal" | "sidecar"))
    };
    assert!(is_damage(&archive), "{:?}", check(&archive));
    archive.close().unwrap();
    for reparse in [false, true, false] {
        let archive = Archive::rebuild(&left, options(1), reparse).unwrap();
        assert_eq!(records(&archive), [8]);
        assert!(is_damage(&archive), "{:?}", check(&archive));
        archive.close().unwrap();
    }
    std::fs::remove_file(find(&left, "-000001.g1.idx")).unwrap();
    assert_eq!(records(&Archive::rebuild(&left, options(1), false).unwrap()), [8]);
}

#[test]
fn a_seal_never_vouches_for_bytes_that_changed_after_the_one_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path(), 1);
    let kept = append(&archive, "http://a.example/keep", START_MS, "kept").positions[1];
    append(&archive, "http://a.example/secret", START_MS, "secret");
    archive.seal().unwrap();
    archive.settle().unwrap();
    let segment = find(dir.path(), ".warc.gz");
    let place = archive.place(kept).unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[(place.offset + place.length / 2) as usize] ^= 0x10;
    std::fs::write(&segment, &bytes).unwrap();
    let removed = archive.remove(&Selector::Url("http://a.example/secret".into()), "asked").unwrap();
    assert_eq!(removed.undone.iter().map(|finding| finding.rule).collect::<Vec<_>>(), ["removal"]);
    assert_eq!(captures(&archive).len(), 1);
    assert_eq!(std::fs::read(&segment).unwrap(), bytes);
}
