//! A segment written again answers as before, whatever stops the writing.

mod support;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use skep_archive::layout::SegmentId;
use skep_archive::{Archive, Closing, Error, Position, RewritePlan, Segment, Selector};
use skep_warc::deflate::Level;
use skep_warc::{Options, Reader};
use support::*;

fn first(archive: &Archive) -> SegmentId {
    SegmentId { writer: archive.writer(), number: 1 }
}

fn smallest() -> RewritePlan {
    RewritePlan { level: Some(Level::new(12)), ..RewritePlan::default() }
}

/// An archive whose first segment gains by compressing it again.
fn archive_in(dir: &Path) -> Archive {
    let archive = open(dir, 1);
    for number in 0..5 {
        let body: String = (0..3000).map(|n| format!("{} ", n * n * (number + 7) % 9973)).collect();
        append(&archive, &format!("http://a.example/{number}"), START_MS + number, &body);
    }
    archive.settle().unwrap();
    archive
}

/// Head and block of every record of a segment but the closing one.
fn records(segment: &Segment) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut reader = Reader::open(&segment.path, Options::strict()).unwrap();
    let mut records = Vec::new();
    while let Some(mut record) = reader.next().unwrap() {
        let mut block = Vec::new();
        record.read_to_end(&mut block).unwrap();
        records.push((record.head().raw().to_vec(), block));
    }
    assert_eq!(reader.take_findings(), []);
    records.pop();
    records
}

fn closing(segment: &Segment) -> Closing {
    let mut reader = Reader::open(&segment.path, Options::recover()).unwrap();
    let mut last = Vec::new();
    while let Some(mut record) = reader.next().unwrap() {
        last.clear();
        record.read_to_end(&mut last).unwrap();
    }
    Closing::parse(&last).unwrap()
}

#[test]
fn compressing_again_changes_places_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_in(dir.path());
    archive.seal().unwrap();
    let (before, before_digests) = (answers(&archive), digests(&archive));
    let old = archive.segments().remove(0);
    let (old_records, old_closing, old_bytes) = (records(&old), closing(&old), std::fs::read(&old.path).unwrap());
    let found_before = captures(&archive);

    let new = archive.rewrite(first(&archive), &smallest()).unwrap();
    assert_eq!((new.name.generation, archive.segments()), (1, vec![new.clone()]));
    assert!(!old.path.exists());
    let new_closing = closing(&new);
    assert_eq!(new_closing.replaces, Some(*blake3::hash(&old_bytes[..old_closing.bytes as usize]).as_bytes()));
    assert_eq!(new_closing.removals, Vec::<String>::new());
    assert!(new_closing.bytes < old_closing.bytes, "{} {}", new_closing.bytes, old_closing.bytes);
    assert_eq!(records(&new), old_records);
    assert_eq!((answers(&archive), digests(&archive), check(&archive)), (before.clone(), before_digests, vec![]));
    // By what was found before the rewriting, and by what is found after it.
    for capture in found_before.iter().chain(&captures(&archive)) {
        let mut stored = archive.read_capture(capture).unwrap();
        stored.record_of(capture.url.as_bytes()).unwrap();
    }
    for record in 0..old_records.len() as u32 {
        let position = Position { writer: archive.writer(), segment: 1, record };
        let mut read = Vec::new();
        archive.read(position).unwrap().record().unwrap().read_to_end(&mut read).unwrap();
        assert_eq!(read, old_records[record as usize].1);
    }
    let live = captures(&archive);
    archive.close().unwrap();
    for reparse in [false, true] {
        let archive = Archive::rebuild(dir.path(), options(1), reparse).unwrap();
        assert_eq!((captures(&archive), check(&archive)), (live.clone(), vec![]));
        archive.close().unwrap();
    }
}

#[test]
fn an_open_segment_is_closed_first_and_the_writer_goes_on_in_another() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_in(dir.path());
    archive.rewrite(first(&archive), &smallest()).unwrap();
    assert_eq!(append(&archive, "http://a.example/new", START_MS, "new").positions[0].segment, 2);
    let again = archive.rewrite(first(&archive), &RewritePlan { level: Some(Level::new(1)), ..Default::default() });
    assert_eq!(again.unwrap().name.generation, 2);
    assert_eq!((answers(&archive).len(), check(&archive)), (6, vec![]));
}

#[test]
fn records_become_blank_only_if_a_removal_says_why() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let archive = archive_in(dir.path());
    let blank = |blank| RewritePlan { blank, level: Some(Level::new(9)) };
    let refused = |archive: &Archive, id, plan: &RewritePlan| match archive.rewrite(id, plan) {
        Err(Error::Refused { why }) => why,
        other => panic!("{other:?}"),
    };
    assert!(refused(&archive, first(&archive), &blank(vec![2])).contains("no removal names"));
    assert!(refused(&archive, first(&archive), &RewritePlan::default()).contains("changes nothing"));
    let unknown = SegmentId { number: 9, ..first(&archive) };
    assert!(matches!(archive.rewrite(unknown, &smallest()), Err(Error::NotFound { .. })));
    archive.remove(&Selector::Url("http://a.example/0".into()), "asked").unwrap();
    let left = answers(&archive);
    let new = archive.rewrite(first(&archive), &blank(vec![1, 2, 3])).unwrap();
    assert_eq!(new.name.generation, 2);
    assert!(records(&new)[1..4].iter().all(|(head, block)| block.is_empty() && contains(head, b"WARC-Removed-By")));
    assert_eq!((answers(&archive), check(&archive)), (left, vec![]));
    archive.close().unwrap();

    copy(dir.path(), other.path(), &["segments"]);
    let theirs = open(other.path(), 2);
    let id = SegmentId { writer: new.name.id.writer, number: 1 };
    assert!(refused(&theirs, id, &smallest()).contains("another writer"));
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_damaged_record_is_not_sealed_again() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_in(dir.path());
    archive.seal().unwrap();
    archive.settle().unwrap();
    let segment = archive.segments().remove(0);
    let mut bytes = std::fs::read(&segment.path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&segment.path, &bytes).unwrap();
    let error = archive.rewrite(first(&archive), &smallest()).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. } | Error::Io { .. } | Error::Record { .. }), "{error:?}");
    assert_eq!(archive.segments(), std::slice::from_ref(&segment));
    assert_eq!(std::fs::read(&segment.path).unwrap(), bytes);
}

#[test]
fn it_may_stop_between_any_two_steps() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_in(dir.path());
    archive.seal().unwrap();
    let wanted = answers(&archive);
    let before = tree(dir.path());
    archive.rewrite(first(&archive), &smallest()).unwrap();
    archive.close().unwrap();
    let after = tree(dir.path());
    let of = |names: &std::collections::BTreeMap<String, Vec<u8>>| -> Vec<String> {
        names.keys().filter(|name| name.starts_with("segments/")).cloned().collect()
    };
    // Sorted, the sidecar comes before the segment, in both generations.
    let (old, new) = (of(&before), of(&after));
    assert_eq!((old.len(), new.len()), (2, 2));
    let whole = &after[&new[1]];
    let cuts = [0, whole.len() / 3, whole.len()];
    let parts: Vec<Option<usize>> = cuts.into_iter().map(Some).collect();
    // What is left of the old generation, of the new one, and of the unfinished one; and which generation then counts.
    let mut stages: Vec<(usize, usize, Option<usize>, u32)> = vec![(2, 0, None, 0), (2, 2, None, 1), (1, 2, None, 1)];
    stages.push((0, 2, None, 1));
    stages.extend(parts.iter().map(|part| (2, 0, *part, 0)));
    stages.extend(parts.iter().map(|part| (2, 1, *part, 0)));
    for (old_left, new_left, part, generation) in stages {
        let case = tempfile::tempdir().unwrap();
        copy(dir.path(), case.path(), &["settings"]);
        let write = |name: &str, bytes: &[u8]| {
            let path: PathBuf = case.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        old.iter().take(old_left).for_each(|name| write(name, &before[name]));
        new.iter().take(new_left).for_each(|name| write(name, &after[name]));
        if let Some(bytes) = part {
            write(&format!("{}.part", new[1]), &whole[..bytes]);
        }
        let stage = format!("old {old_left} new {new_left} part {part:?}");
        let archive = open(case.path(), 1);
        assert_eq!((archive.finish_opening(), archive.opened()), (vec![], &[][..]), "{stage}");
        assert_eq!((answers(&archive), check(&archive)), (wanted.clone(), vec![]), "{stage}");
        assert_eq!(archive.segments()[0].name.generation, generation, "{stage}");
        // Whoever asked asks again.
        let again = archive.rewrite(first(&archive), &smallest()).unwrap();
        assert_eq!(again.name.generation, generation + 1);
        assert_eq!((answers(&archive), check(&archive)), (wanted.clone(), vec![]), "{stage}");
        archive.close().unwrap();
        assert_eq!(tree(&case.path().join("segments")).len(), 2, "{stage}");
    }
}

#[test]
fn others_read_what_was_written_again() {
    let Some(python) = std::env::var_os("SKEP_PYTHON") else {
        eprintln!("third-party checks not run: SKEP_PYTHON is not set");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_in(dir.path());
    archive.remove(&Selector::Url("http://a.example/1".into()), "asked").unwrap();
    let new = archive.rewrite(first(&archive), &smallest()).unwrap();
    let script = "import sys\nfrom warcio.archiveiterator import ArchiveIterator\n\
        for r in ArchiveIterator(open(sys.argv[1], 'rb'), check_digests='raise'):\n print(r.rec_type, len(r.content_stream().read()))";
    let output = Command::new(python).arg("-c").arg(script).arg(&new.path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen = String::from_utf8(output.stdout).unwrap();
    assert_eq!(seen.lines().count(), 1 + 5 * 3 + 2, "{seen}");
    assert_eq!(seen.lines().filter(|line| *line == "response 0").count(), 1, "{seen}");
    let check = Command::new(std::env::var_os("SKEP_PYTHON").unwrap())
        .args(["-c", "import sys; from warcio.cli import main; sys.exit(main(sys.argv[1:]))", "check"])
        .arg(&new.path)
        .output()
        .unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
}
