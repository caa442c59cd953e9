//! Files from elsewhere: by reference and by copy, once, and never modified.

mod support;

use std::io::{Read, Write};
use std::path::Path;

use skep_archive::{Added, Addition, Archive, Bytes, Error, Note, Position, Selector, WriterKey};
use skep_warc::write::{Compression, Encoder, Record, RecordId};
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

/// Records as they are, without compression.
fn plain(records: &[Record<'_>]) -> Vec<Vec<u8>> {
    let encode = |record: &Record<'_>| {
        let mut bytes = Vec::new();
        record.encode(&mut Encoder::new(Compression::Plain), &mut bytes).unwrap();
        bytes
    };
    records.iter().map(encode).collect()
}

fn member(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

const DATE: &str = "2026-01-01T00:00:00Z";

fn id(number: u8) -> RecordId {
    RecordId::uuid([number; 16])
}

#[test]
fn records_compressed_together_are_read_one_by_one() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let message = |body: &str| format!("HTTP/1.1 200 OK\r\n\r\n{body}").into_bytes();
    let long = "long ".repeat(400_000);
    let records = [
        Record::request(&id(1), DATE, "http://a.example/1", b"GET /1 HTTP/1.1\r\n\r\n".to_vec()),
        Record::response(&id(2), DATE, "http://a.example/1", message("one")),
        Record::response(&id(3), DATE, "http://a.example/1", message("one, once more")),
        Record::response(&id(4), DATE, "http://a.example/2", message(&long)),
        Record::response(&id(5), DATE, "http://a.example/3", message("three")),
        Record::response(&id(6), DATE, "http://a.example/4", message("four")),
    ];
    let parts = plain(&records);
    // Some together and the last one alone; and, as `gzip FILE` makes it, all in one.
    let files = [[member(&parts[..5].concat()), member(&parts[5])].concat(), member(&parts.concat())];
    for (number, bytes) in files.iter().enumerate() {
        let path = elsewhere.path().join(format!("{number}.warc.gz"));
        std::fs::write(&path, bytes).unwrap();
        let archive = open(&dir.path().join(number.to_string()), 1);
        add(&archive, &path, false);
        let bodies = ["one", "one, once more", long.as_str(), "three", "four"];
        let found = captures(&archive);
        assert_eq!(found.len(), bodies.len());
        for (capture, body) in found.iter().zip(bodies) {
            assert!(block(&archive, capture.position).ends_with(&format!("\r\n\r\n{body}")), "{capture:?}");
            let (mut stored, mut text) = (archive.read_capture(capture).unwrap(), String::new());
            stored.record_of(capture.url.as_bytes()).unwrap().read_to_string(&mut text).unwrap();
            assert!(text.ends_with(&format!("\r\n\r\n{body}")), "{capture:?}");
            assert!(stored.record().is_err());
        }
    }
}

#[test]
fn what_an_index_lists_the_view_lists() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let fields = "application/warc-fields";
    let about = "http://a.example/1";
    let records = [
        Record::response(&id(1), DATE, about, b"HTTP/1.1 200 OK\r\n\r\none".to_vec()),
        Record::metadata(&id(2), DATE, fields, b"via: x\r\n".as_slice()).target_uri(about),
        Record::metadata(&id(3), DATE, "text/anvl", b"via: x\r\n".as_slice()).target_uri(about),
        Record::metadata(&id(4), DATE, "application/warc-fields; charset=utf-8", b"a: b\r\n".as_slice())
            .target_uri(about),
        Record::metadata(&id(5), DATE, "Application/WARC-Fields", b"a: b\r\n".as_slice()).target_uri(about),
        Record::resource(&id(6), DATE, about, fields, b"a: b\r\n".as_slice()),
        Record::resource(&id(7), DATE, about, "text/plain", b"text".as_slice()),
        Record::request(&id(8), DATE, about, b"GET / HTTP/1.1\r\n\r\n".to_vec()),
    ];
    let path = elsewhere.path().join("a.warc");
    std::fs::write(&path, plain(&records).concat()).unwrap();
    let archive = open(dir.path(), 1);
    add(&archive, &path, false);
    let (mut lines, mut findings) = (Vec::new(), Vec::new());
    skep_archive::cdxj::index_file(&path, "a.warc", 1, &mut lines, &mut findings, &|_| ()).unwrap();
    let indexed = lines.iter().map(|line| skep_archive::cdxj::parse_line(line).unwrap().unwrap().capture.offset);
    let (mut indexed, mut listed): (Vec<u64>, Vec<u64>) =
        (indexed.collect(), captures(&archive).iter().map(|capture| capture.offset).collect());
    indexed.sort();
    listed.sort();
    assert_eq!((indexed.len(), &indexed), (5, &listed));
}

#[test]
fn a_package_is_read_in_place_and_read_again() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = elsewhere.path().join("a.wacz");
    let package = |method: zip::CompressionMethod| {
        let mut package = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        for (name, url) in [("archive/a.warc.gz", "http://a.example/"), ("archive/b.warc.gz", "http://b.example/")] {
            let part = elsewhere.path().join("part");
            foreign(&part, &[url]);
            package.start_file(name, zip::write::SimpleFileOptions::default().compression_method(method)).unwrap();
            package.write_all(&std::fs::read(&part).unwrap()).unwrap();
        }
        package.finish().unwrap();
    };
    let archive = open(dir.path(), 1);
    package(zip::CompressionMethod::Deflated);
    let refused = archive.additions().unwrap().add(&path, "c", false, &mut |_| ()).unwrap_err();
    assert!(refused.to_string().contains("compressed a second time"), "{refused}");
    package(zip::CompressionMethod::Stored);
    assert!(matches!(add(&archive, &path, true), Added::New { records: 6, .. }));
    let found = captures(&archive);
    assert_eq!(found.iter().map(|c| c.position.record).collect::<std::collections::BTreeSet<_>>(), [1, 4].into());
    for capture in &found {
        assert!(block(&archive, capture.position).ends_with("body 0"));
    }
    assert_eq!(check(&archive), []);
    archive.close().unwrap();
    std::fs::remove_file(dir.path().join("collections/1.idx")).unwrap();
    let archive = Archive::rebuild(dir.path(), options(1), true).unwrap();
    assert_eq!(captures(&archive), found);
}

#[test]
fn what_came_from_an_index_stays_as_the_index_had_it() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = elsewhere.path().join("a.warc.gz");
    foreign(&path, &["http://a.example/", "http://b.example/"]);
    let (mut lines, mut findings) = (Vec::new(), Vec::new());
    skep_archive::cdxj::index_file(&path, "a.warc.gz", 1, &mut lines, &mut findings, &|_| ()).unwrap();
    let archive = open(dir.path(), 1);
    let mut additions = archive.additions().unwrap();
    let Addition::New(mut adding) = additions.begin(&path, "c", "cdxj", false).unwrap() else { panic!() };
    for (number, line) in lines.iter().enumerate() {
        let capture = skep_archive::cdxj::parse_line(line).unwrap().unwrap().capture;
        adding.push(number as u32, capture.offset, capture.length, Note::Capture(Box::new(capture))).unwrap();
    }
    additions.end(adding).unwrap();
    additions.commit().unwrap();
    drop(additions);
    let found = captures(&archive);
    assert_eq!(found.len(), 2);
    archive.close().unwrap();
    let archive = Archive::rebuild(dir.path(), options(1), true).unwrap();
    assert_eq!((captures(&archive), archive.opened().len()), (found, 0));
    archive.close().unwrap();
    std::fs::remove_file(dir.path().join("collections/1.idx")).unwrap();
    let archive = Archive::rebuild(dir.path(), options(1), true).unwrap();
    assert_eq!(archive.opened().iter().map(|finding| finding.rule).collect::<Vec<_>>(), ["collection-lost"]);
}

#[test]
fn a_capture_that_cannot_be_found_by_its_url_is_told_of() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = elsewhere.path().join("a.warc.gz");
    let long = format!("http://a.example/{}", "x".repeat(skep_archive::limits::URL_BYTES_MAX));
    foreign(&path, &[&long, "http://b.example/"]);
    let archive = open(dir.path(), 1);
    let mut additions = archive.additions().unwrap();
    additions.add(&path, "c", false, &mut |_| ()).unwrap();
    let told = additions.commit().unwrap();
    drop(additions);
    assert_eq!(told.iter().map(|f| (f.rule, f.mended)).collect::<Vec<_>>(), [("unlisted", true)]);
    assert!(told[0].what.starts_with("1 captures"), "{}", told[0].what);
    assert_eq!(captures(&archive).len(), 1);
    let position = Position { writer: WriterKey::FOREIGN, segment: 1, record: 1 };
    assert!(block(&archive, position).ends_with("body 0"));
    archive.close().unwrap();
    let archive = Archive::rebuild(dir.path(), options(1), false).unwrap();
    assert_eq!(archive.opened(), told);
}

#[test]
fn a_prefix_wider_than_a_site_removes_from_all_its_sites() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path(), 1);
    for url in ["http://a.co.uk/", "http://b.c.co.uk/x", "http://d.uk/", "http://co.uk.example/", "urn:a:1", "urn:b:2"]
    {
        append(&archive, url, START_MS, "x");
    }
    let left = || answers(&archive).into_iter().map(|answer| answer.0).collect::<std::collections::BTreeSet<_>>();
    let remove = |prefix: &str| archive.remove(&Selector::Prefix(prefix.into()), "asked").unwrap();
    assert_eq!(remove("http://co.uk").positions.len(), 6);
    assert_eq!(left(), ["http://d.uk/", "http://co.uk.example/", "urn:a:1", "urn:b:2"].map(String::from).into());
    remove("urn:");
    remove("*.uk");
    assert_eq!(left(), ["http://co.uk.example/"].map(String::from).into());
    assert_eq!(check(&archive), []);
}

#[test]
fn a_removal_hides_only_where_its_writer_may_speak() {
    let (dir, elsewhere, file) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let archive = open(dir.path(), 1);
    let ours = append(&archive, "http://a.example/", START_MS, "ours").positions[1];
    let path = file.path().join("a.warc.gz");
    foreign(&path, &["http://a.example/b"]);
    add(&archive, &path, false);
    archive.seal().unwrap();
    let all = captures(&archive);
    assert_eq!(all.len(), 2);

    // Somebody else signs a removal of everything here.
    let other = open(elsewhere.path(), 2);
    other.remove_captures(&all, "because I can").unwrap();
    other.close().unwrap();
    let theirs = tree(&elsewhere.path().join("segments"));
    let (name, bytes) = theirs.iter().find(|(name, _)| name.ends_with(".warc.gz")).unwrap();
    let evil = file.path().join("evil.warc.gz");
    std::fs::write(&evil, bytes).unwrap();
    assert!(matches!(add(&archive, &evil, true), Added::New { .. }));
    assert_eq!(captures(&archive), all);
    archive.close().unwrap();
    let archive = open(dir.path(), 1);
    assert_eq!((archive.finish_opening(), captures(&archive)), (vec![], all.clone()));
    assert!(block(&archive, ours).ends_with("ours"));
    archive.close().unwrap();

    // The same under the name of a segment of ours, or of a third writer.
    let renamed = name
        .rsplit_once('/')
        .map_or(name.as_str(), |(_, name)| name)
        .replace(&name[name.len() - 23..name.len() - 15], "0000abcd");
    let folder = dir.path().join("segments").join(name).parent().unwrap().to_path_buf();
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(&renamed), bytes).unwrap();
    let archive = open(dir.path(), 1);
    assert_eq!(captures(&archive), all);
    assert!(check(&archive).iter().any(|finding| finding.rule == "removal"), "{:?}", check(&archive));
    archive.close().unwrap();
    std::fs::remove_file(folder.join(&renamed)).unwrap();
    std::fs::remove_file(folder.join(renamed.replace(".warc.gz", ".idx"))).unwrap();

    // In a segment of its own it counts, but not for what only this archive has numbered.
    std::fs::write(folder.join(name.rsplit_once('/').unwrap().1), bytes).unwrap();
    let archive = open(dir.path(), 1);
    archive.finish_opening();
    assert_eq!(captures(&archive), [all[1].clone()]);
    assert_eq!(all[1].position.writer, WriterKey::FOREIGN);
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_sidecar_is_written_again_or_told_and_never_passed_over() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let archive = open(dir.path(), 1);
    let (read, indexed) = (elsewhere.path().join("a.warc.gz"), elsewhere.path().join("b.warc.gz"));
    foreign(&read, &["http://a.example/", "http://b.example/"]);
    foreign(&indexed, &["http://c.example/"]);
    add(&archive, &read, false);
    let mut additions = archive.additions().unwrap();
    let Addition::New(mut adding) = additions.begin(&indexed, "c", "cdxj", false).unwrap() else { panic!() };
    let mut capture = captures(&archive)[0].clone();
    (capture.url, capture.key) = ("http://c.example/".into(), skep_archive::Key::of("http://c.example/"));
    adding.push(0, 0, 100, Note::Capture(Box::new(capture))).unwrap();
    additions.end(adding).unwrap();
    additions.commit().unwrap();
    drop(additions);
    let all = captures(&archive);
    assert_eq!((all.len(), check(&archive)), (3, vec![]));

    let [of_read, of_indexed] = [1, 2].map(|number| dir.path().join(format!("collections/{number}.idx")));
    let whole = std::fs::read(&of_indexed).unwrap();
    for sidecar in [&of_read, &of_indexed] {
        flip(sidecar, 60);
        let found = check(&archive);
        assert_eq!(found.iter().map(|f| (&f.path, f.rule)).collect::<Vec<_>>(), [(sidecar, "sidecar")]);
        flip(sidecar, 60);
    }
    flip(&of_indexed, 60);
    let removed = archive.remove(&Selector::Url("http://c.example/".into()), "asked");
    assert!(matches!(removed, Err(Error::Damaged { .. })), "{removed:?}");
    archive.close().unwrap();

    flip(&of_read, 60);
    for reparse in [false, true] {
        let archive = Archive::rebuild(dir.path(), options(1), reparse).unwrap();
        let rules: Vec<_> = archive.opened().iter().map(|f| (f.rule, f.mended)).collect();
        let told: &[_] = if reparse {
            &[("collection-damaged", false)]
        } else {
            &[("sidecar", true), ("collection-damaged", false)]
        };
        assert_eq!(rules, told);
        assert_eq!(captures(&archive), all[..2]);
        assert_eq!(check(&archive).iter().map(|f| (&f.path, f.rule)).collect::<Vec<_>>(), [(&of_indexed, "sidecar")]);
        archive.close().unwrap();
        // Said as long as it is so.
        assert_eq!(open(dir.path(), 1).opened().len(), 1);
    }
    std::fs::write(&of_indexed, &whole[..32]).unwrap();
    let archive = open(dir.path(), 1);
    assert_eq!(captures(&archive), all[..2]);
    drop(archive);
    std::fs::write(&of_indexed, &whole).unwrap();
    let archive = Archive::rebuild(dir.path(), options(1), true).unwrap();
    assert_eq!((captures(&archive), check(&archive)), (all, vec![]));
    drop(archive);
    // Cut at the end of a frame, it is whole and says less.
    std::fs::write(&of_indexed, &whole[..32]).unwrap();
    let archive = open(dir.path(), 1);
    assert_eq!(check(&archive).iter().map(|f| (&f.path, f.rule)).collect::<Vec<_>>(), [(&of_indexed, "sidecar")]);
    assert!(archive.remove(&Selector::Url("http://c.example/".into()), "asked").is_err());
}
