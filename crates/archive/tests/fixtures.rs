//! Archives written by every released version open with today's code. `examples/fixture.rs` made them.

mod support;

use skep_archive::{Archive, State};
use std::path::{Path, PathBuf};
use support::*;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

fn lines(archive: &Archive) -> Vec<String> {
    let line = |(url, time, position, status, digest)| format!("{position} {time} {status} {digest:?} {url}");
    answers(archive).into_iter().map(line).collect()
}

#[test]
fn version_1_opens_and_answers_as_it_did() {
    let dir = tempfile::tempdir().unwrap();
    copy(&fixture("v1"), dir.path(), &["segments", "settings", "collections"]);
    let wanted = std::fs::read_to_string(fixture("v1.txt")).unwrap();
    let archive = open(dir.path(), 7);
    assert_eq!(archive.opened(), []);
    assert_eq!(archive.finish_opening(), []);
    assert_eq!(lines(&archive), wanted.lines().collect::<Vec<_>>());
    assert!(archive.segments().iter().all(|segment| segment.state == State::Sealed));
    assert_eq!(check(&archive), []);
    let live = captures(&archive);
    for capture in &live {
        let mut stored = archive.read(capture.position).unwrap();
        stored.record_of(capture.url.as_bytes()).unwrap();
    }
    archive.close().unwrap();
    // What today's code makes of the records is what the sidecars of that version say.
    let archive = Archive::rebuild(dir.path(), options(7), true).unwrap();
    assert_eq!(captures(&archive), live);
}

#[test]
fn version_1_damaged_gives_what_is_whole_and_says_what_is_not() {
    let dir = tempfile::tempdir().unwrap();
    copy(&fixture("v1-damaged"), dir.path(), &["segments", "settings", "collections"]);
    let archive = open(dir.path(), 7);
    assert_eq!(archive.opened().iter().map(|f| (f.rule, f.mended)).collect::<Vec<_>>(), [("torn-tail", true)]);
    archive.finish_opening();
    // The torn record was the metadata of the last fetch, so every capture is still there.
    let wanted = std::fs::read_to_string(fixture("v1.txt")).unwrap();
    assert_eq!(lines(&archive), wanted.lines().collect::<Vec<_>>());
    let rules: Vec<_> = check(&archive).iter().map(|finding| finding.rule).collect();
    assert!(rules.contains(&"seal"), "{rules:?}");
}
