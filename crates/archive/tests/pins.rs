//! A body to which revisits of other slices refer: proven over its bytes, pinned where it was written, and not written out before those who refer
//! to it have their own.

mod support;

use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

use skep_archive::limits::{SHARED_BLOCK_BYTES_MAX, SHARED_BODY_BYTES_MIN, SHARED_URL_BYTES_MAX};
use skep_archive::{
    Append, Archive, Capture, CaptureKind, Digest, Encoded, Error, Key, OpenOptions, Pin, Position, Role, Selector,
    Stored, Sum, Taking, Wanted,
};
use skep_warc::date::rfc3339;
use skep_warc::write::{Compression, Encoder, Record, RecordId, Revisit};
use skep_warc::{Options, Reader};
use support::*;

const ORIGINAL: &str = "http://a.example/large";
const REFERRER: &str = "http://b.example/too";

fn large() -> String {
    (0..60_000).map(|number| format!("{} ", number * 7919 % 10_007)).collect()
}

fn sum(body: &str) -> Sum {
    Sum::of(&mut body.as_bytes(), &[9; 32]).unwrap()
}

fn wanted(body: &str) -> Wanted {
    let Sum { payload, sha256, length, .. } = sum(body);
    Wanted { payload, sha256, length, key: [9; 32] }
}

/// The pin of what this archive wrote, for a referrer.
fn pinned(archive: &Archive, referrer: &str) -> Pin {
    let same = archive.same_body(&wanted(&large()), &|_| true).unwrap().expect("it was written here");
    assert_eq!(same.keyed, sum(&large()).keyed, "proven over every byte");
    let Sum { payload, sha256, length, .. } = sum(&large());
    let (original, original_ms) = (same.url, same.time_ms);
    Pin { position: same.position, original, original_ms, referrer: referrer.into(), payload, sha256, length }
}

/// An archive with the body.
fn with_body(dir: &Path, secret: u8) -> Archive {
    let archive = Archive::open(dir, OpenOptions { copies: true, ..options(secret) }).unwrap();
    append(&archive, ORIGINAL, START_MS, &large());
    append(&archive, "http://a.example/small", START_MS, "small");
    archive.settle().unwrap();
    archive
}

/// Records of all segments that have this text, whatever the views say.
fn blocks_with(archive: &Archive, text: &str) -> usize {
    let mut found = 0;
    for segment in archive.segments() {
        let mut reader = Reader::open(&segment.path, Options::recover()).unwrap();
        while let Some(mut record) = reader.next().unwrap() {
            let mut block = Vec::new();
            record.read_to_end(&mut block).unwrap();
            found += usize::from(block.windows(text.len()).any(|window| window == text.as_bytes()));
        }
    }
    found
}

/// A part of the body that stands nowhere else.
fn part() -> String {
    large()[1_000..1_200].to_owned()
}

#[test]
fn a_body_is_the_same_by_every_byte_and_only_where_everybody_may_see_all_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let archive = with_body(dir.path(), 1);
    let same = |wanted: &Wanted| archive.same_body(wanted, &|_| true).unwrap();
    assert_eq!(same(&wanted(&large())).expect("it is here").url, ORIGINAL);
    assert!(archive.same_body(&wanted(&large()), &|site| site != Key::of(ORIGINAL).site_hash()).unwrap().is_none());
    // One whose SHA-1 is that of another body would have to have its SHA-256 and its length, too.
    assert_eq!(same(&Wanted { sha256: [1; 32], ..wanted(&large()) }), None);
    assert_eq!(same(&Wanted { length: 1, ..wanted(&large()) }), None);
    let other = same(&Wanted { key: [8; 32], ..wanted(&large()) }).unwrap();
    assert_ne!(other.keyed, sum(&large()).keyed, "a new key asks for a new proof");
    // A record that is private, or was cut off, is none that others may refer to.
    for (field, value) in [("WARC-Skep-Private", "1"), ("WARC-Truncated", "length")] {
        let (url, body) = (format!("http://c.example/{field}"), format!("{field} {}", large()));
        let message = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let mut bytes = Vec::new();
        Record::response(&RecordId::uuid([5; 16]), &rfc3339(START_MS), &url, message.as_bytes())
            .field(field, value)
            .encode(&mut Encoder::new(Compression::GZIP), &mut bytes)
            .unwrap();
        let records = vec![Encoded::describing(bytes).unwrap()];
        // What is private does not even come into an archive of a network.
        match archive.append(Append { site_hash: Key::of(&url).site_hash(), records }) {
            Err(error) => assert!(field == "WARC-Skep-Private" && matches!(error, Error::Private), "{field}: {error}"),
            Ok(pending) => drop(pending.wait().unwrap()),
        }
        archive.settle().unwrap();
        assert_eq!(same(&wanted(&body)), None, "{field}");
    }
    archive.remove(&Selector::Url(ORIGINAL.into()), "asked").unwrap();
    assert_eq!(same(&wanted(&large())), None, "it is removed");
}

#[test]
fn a_body_in_a_record_that_is_too_long_is_none_that_slices_share() {
    let dir = tempfile::tempdir().unwrap();
    let archive = Archive::open(dir.path(), OpenOptions { copies: true, ..options(1) }).unwrap();
    // Cut into pieces of one byte, it takes six times its length.
    let pieces = SHARED_BLOCK_BYTES_MAX as usize / 6;
    for (pieces, is_shared) in [(pieces - 100, true), (pieces + 100, false)] {
        let url = format!("http://a.example/{pieces}");
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let message = format!("{head}{}0\r\n\r\n", "1\r\nx\r\n".repeat(pieces));
        let mut bytes = Vec::new();
        Record::response(&RecordId::uuid([8; 16]), &rfc3339(START_MS), &url, message.as_bytes())
            .encode(&mut Encoder::new(Compression::GZIP), &mut bytes)
            .unwrap();
        let records = vec![Encoded::describing(bytes).unwrap()];
        archive.append(Append { site_hash: Key::of(&url).site_hash(), records }).unwrap().wait().unwrap();
        archive.settle().unwrap();
        let same = archive.same_body(&wanted(&"x".repeat(pieces)), &|_| true).unwrap();
        assert_eq!(same.is_some(), is_shared, "{} bytes", message.len());
    }
}

#[test]
fn what_is_pinned_is_hidden_at_once_and_written_out_when_it_is_no_longer_pinned() {
    let dir = tempfile::tempdir().unwrap();
    let archive = with_body(dir.path(), 1);
    let pin = pinned(&archive, REFERRER);
    assert!(archive.pin(&pin).unwrap() && archive.pin(&pin).unwrap());
    archive.remove(&Selector::Url(ORIGINAL.into()), "asked").unwrap();
    assert!(captures(&archive).iter().all(|capture| capture.url != ORIGINAL), "hidden at once");
    assert!(archive.read(pin.position).is_err());
    assert_eq!(blocks_with(&archive, &part()), 1, "it is needed");
    assert_eq!(archive.removed_and_pinned().unwrap(), [pin.position]);
    let late = Pin { referrer: "http://late.example/".into(), ..pin.clone() };
    assert!(!archive.pin(&late).unwrap(), "nobody begins to refer to what is removed");
    // The next opening finishes what was left to do, and this is not.
    archive.close().unwrap();
    for rebuilt in [false, true] {
        if rebuilt {
            std::fs::remove_dir_all(dir.path().join("views")).unwrap();
        }
        let archive = Archive::open(dir.path(), OpenOptions { copies: true, ..options(1) }).unwrap();
        assert_eq!(archive.finish_opening(), []);
        assert_eq!(archive.removed_and_pinned().unwrap(), [pin.position], "rebuilt: {rebuilt}");
        assert_eq!(blocks_with(&archive, &part()), 1);
        archive.close().unwrap();
    }
}

#[test]
fn it_goes_when_the_pin_ends_and_never_begins_again() {
    let dir = tempfile::tempdir().unwrap();
    let archive = with_body(dir.path(), 1);
    let pin = pinned(&archive, REFERRER);
    assert!(archive.pin(&pin).unwrap());
    archive.remove(&Selector::Url(ORIGINAL.into()), "asked").unwrap();
    archive.unpin(&pin).unwrap();
    assert!(archive.views().pins_of(pin.position).unwrap().is_empty());
    assert_eq!(archive.remove_unpinned(vec![pin.position]), []);
    assert_eq!(blocks_with(&archive, &part()), 0, "nothing keeps it any more");
    assert!(!archive.pin(&pin).unwrap());
    let mut findings = Vec::new();
    archive.check(&mut |finding| findings.push(finding)).unwrap();
    assert_eq!(findings, []);
}

#[test]
fn only_who_wrote_a_body_pins_it_and_ends_its_own_pins() {
    let dir = tempfile::tempdir().unwrap();
    let archive = with_body(dir.path(), 1);
    let pin = pinned(&archive, REFERRER);
    let theirs = Pin { position: Position { writer: skep_archive::WriterKey(7), ..pin.position }, ..pin.clone() };
    assert!(archive.pin(&theirs).is_err());
    // Said all the same, by somebody who only holds a copy, it counts for nobody.
    let said = |pin: &Pin, role| {
        let records = vec![pin.encode(role, START_MS).unwrap()];
        archive.append(Append { site_hash: Key::of(ORIGINAL).site_hash(), records }).unwrap().wait().unwrap();
        archive.settle().unwrap();
    };
    said(&theirs, Role::Pin);
    assert!(archive.views().pins_of(theirs.position).unwrap().is_empty());
    // In whatever order the two are heard of.
    said(&pin, Role::Unpin);
    said(&pin, Role::Pin);
    assert!(archive.views().pins_of(pin.position).unwrap().is_empty());
    assert!(!archive.pin(&pin).unwrap());
}

#[test]
fn what_slices_do_not_share_is_not_pinned() {
    let dir = tempfile::tempdir().unwrap();
    let archive = with_body(dir.path(), 1);
    let pin = pinned(&archive, REFERRER);
    let long = format!("http://b.example/{}", "b".repeat(SHARED_URL_BYTES_MAX));
    let others = [
        Pin { length: SHARED_BODY_BYTES_MIN - 1, ..pin.clone() },
        Pin { payload: Digest::Md5([1; 16]), ..pin.clone() },
        Pin { original: long.clone(), ..pin.clone() },
        Pin { referrer: long, ..pin.clone() },
    ];
    for other in others {
        assert!(!archive.pin(&other).unwrap(), "{other:?}");
        let records = vec![other.encode(Role::Pin, START_MS).unwrap()];
        archive.append(Append { site_hash: Key::of(ORIGINAL).site_hash(), records }).unwrap().wait().unwrap();
        archive.settle().unwrap();
        assert_eq!(archive.views().pins_of(pin.position).unwrap(), [], "{other:?}");
    }
    assert!(archive.pin(&pin).unwrap());
}

/// Copies what an archive wrote and another has not.
fn copied(from: &Archive, to: &Archive) {
    from.settle().unwrap();
    for name in from.segments().into_iter().map(|segment| segment.name) {
        let at = to.copied(name, Taking::Tail).unwrap();
        let piece = from.piece(name, at, u64::MAX).unwrap().filter(|_| name.id.writer == from.writer());
        let Some(piece) = piece else { continue };
        let mut bytes = vec![0; piece.length() as usize];
        from.piece_file(&piece).unwrap().read_exact_at(&mut bytes, piece.from).unwrap();
        let mut copying = to.copy(piece, Taking::Tail).unwrap();
        copying.write(&bytes).unwrap();
        copying.finish().unwrap();
    }
    to.settle().unwrap();
}

#[test]
fn what_somebody_else_says_of_a_pair_neither_ends_it_nor_changes_what_it_is() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (writer, stranger) = (with_body(one.path(), 1), with_body(other.path(), 2));
    let pin = pinned(&writer, REFERRER);
    assert!(writer.pin(&pin).unwrap());
    let forged = Pin {
        original: "http://c.example/".into(),
        original_ms: 0,
        payload: Digest::Sha1([1; 20]),
        sha256: [1; 32],
        length: 1 << 20,
        ..pin.clone()
    };
    let said = |archive: &Archive, pin: &Pin, role: Role, beside: &str| {
        let records = vec![pin.encode(role, 0).unwrap()];
        archive.append(Append { site_hash: Key::of(beside).site_hash(), records }).unwrap().wait().unwrap();
    };
    said(&writer, &pin, Role::Reference, REFERRER);
    writer.settle().unwrap();
    let pins = writer.views().pins_of(pin.position).unwrap();
    assert_eq!(pins.len(), 1);
    for role in [Role::Pin, Role::Unpin] {
        said(&stranger, &forged, role, ORIGINAL);
        said(&stranger, &pin, role, ORIGINAL);
    }
    said(&stranger, &forged, Role::Reference, REFERRER);
    said(&stranger, &forged, Role::Release, REFERRER);
    copied(&stranger, &writer);
    let unchanged = |writer: &Archive| {
        assert_eq!(writer.views().pins_of(pin.position).unwrap(), pins);
        assert_eq!(writer.views().references_of(REFERRER).unwrap(), std::slice::from_ref(&pin));
        assert!(writer.views().refers(&pin).unwrap());
    };
    unchanged(&writer);
    // The stranger goes by its own word, and only there; what it is about is for the writer to say there, too.
    copied(&writer, &stranger);
    assert_eq!(stranger.views().pins_of(pin.position).unwrap(), []);
    assert_eq!(stranger.views().references_of(REFERRER).unwrap(), std::slice::from_ref(&pin));
    writer.close().unwrap();
    std::fs::remove_dir_all(one.path().join("views")).unwrap();
    let writer = Archive::open(one.path(), OpenOptions { copies: true, ..options(1) }).unwrap();
    assert_eq!(writer.finish_opening(), []);
    unchanged(&writer);
}

/// A revisit of the referrer, which stands for the body.
fn refer(archive: &Archive, pin: &Pin, head: &str, time_ms: i64) -> Capture {
    let payload = skep_warc::digest::Digest::parse(&pin.payload.to_string()).unwrap();
    let mut bytes = Vec::new();
    let id = RecordId::uuid([(time_ms % 251) as u8; 16]);
    Record::revisit(&id, &rfc3339(time_ms), REFERRER, Revisit::IdenticalPayload(payload), head.as_bytes())
        .refers_to_target_uri(&pin.original)
        .refers_to_date(&rfc3339(pin.original_ms))
        .ip_address("192.0.2.7".parse().unwrap())
        .protocol("http/1.1")
        .encode(&mut Encoder::new(Compression::GZIP), &mut bytes)
        .unwrap();
    let records = vec![pin.encode(Role::Reference, time_ms).unwrap(), Encoded::describing(bytes).unwrap()];
    archive.append(Append { site_hash: Key::of(REFERRER).site_hash(), records }).unwrap().wait().unwrap();
    captures(archive).into_iter().find(|capture| capture.url == REFERRER && capture.time_ms == time_ms).unwrap()
}

#[test]
fn who_refers_to_a_body_gets_one_of_its_own_with_its_own_head() {
    let heads = [
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Own: yes\r\nContent-Length: {}\r\n\r\n",
            large().len()
        ),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
    ];
    for head in heads {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (from, to) = (with_body(one.path(), 1), open(other.path(), 2));
        let pin = pinned(&from, REFERRER);
        assert!(!to.views().refers(&pin).unwrap());
        // The first of its revisits has no head, by which the others are no worse.
        let revisits =
            [("", 4_000), (head.as_str(), 5_000)].map(|(head, after)| refer(&to, &pin, head, START_MS + after));
        let revisit = &revisits[1];
        assert!(to.views().refers(&pin).unwrap());
        assert!(!to.views().refers(&Pin { sha256: [0; 32], ..pin.clone() }).unwrap());
        assert!(!to.views().refers(&Pin { referrer: ORIGINAL.into(), ..pin.clone() }).unwrap());
        assert!(!to.views().has_released(REFERRER, pin.position).unwrap());
        assert_eq!(to.views().references_of(REFERRER).unwrap(), std::slice::from_ref(&pin));
        assert_eq!(to.views().references(0, u32::MAX, None, 9).unwrap().len(), 1);
        let given = || Stored::at(&from.place(pin.position).unwrap()).unwrap();
        // Another body is not taken, whatever it is said to be.
        let small = from.views().captures.exact(&Key::of("http://a.example/small")).unwrap().next().unwrap().unwrap();
        let mut wrong = Stored::at(&from.place(small.position).unwrap()).unwrap();
        assert!(to.write_own_body(&pin, &revisits, &mut wrong).is_err());
        assert!(to.write_own_body(&Pin { sha256: [0; 32], ..pin.clone() }, &revisits, &mut given()).is_err());
        assert!(to.write_own_body(&pin, &revisits[..1], &mut given()).is_err());

        // Whatever whoever brings it says of the original.
        let brought = Pin { original: "http://c.example/".into(), original_ms: 0, ..pin.clone() };
        let written = to.write_own_body(&brought, &revisits, &mut given()).unwrap();
        assert!(to.views().references_of(REFERRER).unwrap().is_empty(), "it refers to nobody any more");
        assert!(to.views().refers(&pin).unwrap() && to.views().has_released(REFERRER, pin.position).unwrap());
        let own = captures(&to).into_iter().find(|capture| capture.position == written).unwrap();
        assert_eq!((own.kind, own.url.as_str(), own.time_ms), (CaptureKind::Response, REFERRER, revisit.time_ms));
        assert_eq!((own.digest, own.status), (Some(pin.payload), 200));
        assert_eq!(to.same_body_at(written, &wanted(&large())).unwrap().unwrap().keyed, sum(&large()).keyed);
        let mut stored = to.read(written).unwrap();
        let mut record = stored.record().unwrap();
        assert_eq!(record.head().text("WARC-IP-Address").unwrap(), "192.0.2.7");
        let mut block = String::new();
        record.read_to_string(&mut block).unwrap();
        assert!(block.starts_with(&head), "{}", &block[..200]);
        let mut findings = Vec::new();
        to.check(&mut |finding| findings.push(finding)).unwrap();
        assert_eq!(findings, []);
    }
}

#[test]
fn references_of_some_sites_are_those_of_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let archive = with_body(dir.path(), 1);
    let mut referrers: Vec<String> = (0..4).map(|site| format!("http://site{site}.example/")).collect();
    let site = |url: &String| Key::of(url).site_hash();
    referrers.sort_by_key(site);
    for referrer in &referrers {
        let records = vec![pinned(&archive, referrer).encode(Role::Reference, START_MS).unwrap()];
        archive.append(Append { site_hash: site(referrer), records }).unwrap().wait().unwrap();
    }
    archive.settle().unwrap();
    let found = |first: u32, last: u32, after: Option<&[u8]>, limit: usize| -> Vec<(Vec<u8>, String)> {
        let found = archive.views().references(first, last, after, limit).unwrap();
        found.into_iter().map(|(key, pin)| (key, pin.referrer)).collect()
    };
    let names = |found: Vec<(Vec<u8>, String)>| found.into_iter().map(|(_, name)| name).collect::<Vec<_>>();
    let all = found(0, u32::MAX, None, 9);
    let first = &all[0].0;
    assert_eq!(names(found(0, u32::MAX, Some(first), 2)), referrers[1..3]);
    let (from, to) = (site(&referrers[2]), site(&referrers[2]));
    assert_eq!(names(found(from, to, None, 9)), referrers[2..3]);
    assert_eq!(names(found(from, to, Some(first), 9)), referrers[2..3], "what is between belongs to others");
    assert_eq!(names(found(site(&referrers[0]), site(&referrers[1]), Some(&all[2].0), 9)), Vec::<String>::new());
    assert_eq!(names(all), referrers);
}
