//! Files from elsewhere: by reference and by copy, once, and never modified.

mod support;

use std::path::Path;

use skep_archive::{Added, Archive, Bytes, Error, Selector, WriterKey};
use support::*;

fn foreign(path: &Path, urls: &[&str]) {
    let mut bytes = Vec::new();
    for (number, url) in urls.iter().enumerate() {
        for record in fetch(url, START_MS + number as i64, &format!("body {number}")).records {
            let Bytes::Memory(part) = record.bytes else { panic!() };
            bytes.extend(part);
        }
    }
    std::fs::write(path, bytes).unwrap();
}

fn add(archive: &Archive, path: &Path, copy: bool) -> Added {
    let mut additions = archive.additions().unwrap();
    let added = additions.add(path, "from elsewhere", copy, &mut |_| ()).unwrap();
    additions.commit().unwrap();
    added
}

#[test]
fn a_file_is_added_once_read_in_place_and_noticed_when_it_changes() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = elsewhere.path().join("a.warc.gz");
    foreign(&path, &["http://a.example/", "http://b.example/"]);
    let bytes = std::fs::read(&path).unwrap();
    let archive = open(dir.path(), 1);
    append(&archive, "http://a.example/", START_MS + 50, "ours");
    assert!(matches!(add(&archive, &path, false), Added::New { records: 6, .. }));
    assert!(matches!(add(&archive, &path, false), Added::Already(_)));
    let found = answers(&archive);
    assert_eq!(found.len(), 3);
    let theirs: Vec<_> = found.iter().filter(|a| a.2.writer == WriterKey::FOREIGN).map(|a| a.2).collect();
    assert_eq!(theirs.iter().map(|p| (p.segment, p.record)).collect::<Vec<_>>().len(), 2);
    for position in &theirs {
        assert!(block(&archive, *position).contains("body "));
        assert_eq!(archive.file_of(*position).unwrap(), path.canonicalize().unwrap());
    }
    assert_eq!(check(&archive), []);
    let live = captures(&archive);
    archive.close().unwrap();
    for reparse in [false, true] {
        let archive = Archive::rebuild(dir.path(), options(1), reparse).unwrap();
        assert_eq!(captures(&archive), live);
    }

    // Removing hides; the file stays as it is.
    let archive = open(dir.path(), 1);
    let removed = archive.remove(&Selector::Url("http://a.example/".into()), "asked").unwrap();
    assert_eq!((removed.positions.len(), removed.only_hidden.len()), (6, 3));
    assert_eq!(captures(&archive).len(), 1);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);

    foreign(&path, &["http://a.example/", "http://b.example/", "http://c.example/"]);
    assert!(matches!(add(&archive, &path, false), Added::Changed(_)));
    assert_eq!(check(&archive).iter().map(|f| f.rule).collect::<Vec<_>>(), ["collection"]);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(check(&archive).iter().map(|f| f.rule).collect::<Vec<_>>(), ["collection"]);
    // Its captures are still known after a rebuild, from the sidecar.
    archive.close().unwrap();
    let archive = Archive::rebuild(dir.path(), options(1), true).unwrap();
    assert_eq!(captures(&archive).len(), 1);
}

#[test]
fn a_copy_needs_the_original_no_more() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = elsewhere.path().join("a.warc.gz");
    foreign(&path, &["http://a.example/"]);
    let archive = open(dir.path(), 1);
    assert!(matches!(add(&archive, &path, true), Added::New { .. }));
    assert!(matches!(add(&archive, &path, true), Added::Already(_)));
    std::fs::remove_file(&path).unwrap();
    let position = captures(&archive)[0].position;
    assert!(block(&archive, position).ends_with("body 0"));
    assert!(archive.file_of(position).unwrap().ends_with("collections/files/1-a.warc.gz"));
    assert_eq!(check(&archive), []);
    // An archive with copies may be moved.
    archive.close().unwrap();
    let moved = elsewhere.path().join("moved");
    std::fs::rename(dir.path(), &moved).unwrap();
    let archive = open(&moved, 1);
    assert!(block(&archive, position).ends_with("body 0"));
    std::fs::create_dir(dir.path()).unwrap();
}

#[test]
fn what_is_no_archive_file_is_refused() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let archive = open(dir.path(), 1);
    let mut additions = archive.additions().unwrap();
    let text = elsewhere.path().join("notes.txt");
    std::fs::write(&text, "not an archive file\n").unwrap();
    let mut add = |path: &Path| additions.add(path, "c", false, &mut |_| ()).map(|_| ());
    assert!(matches!(add(&text), Err(Error::Refused { .. })));
    assert!(add(&elsewhere.path().join("missing")).unwrap_err().is_missing_file());
    assert!(matches!(add(elsewhere.path()), Err(Error::Io { .. } | Error::Refused { .. })));
    additions.commit().unwrap();
    assert!(archive.collections().files().is_empty());
}
