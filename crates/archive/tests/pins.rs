//! A body to which revisits of other slices refer: proven over its bytes, pinned where it was written, and not written out before those who refer
//! to it have their own.

mod support;

use std::io::Read;
use std::path::Path;

use skep_archive::{
    Append, Archive, Capture, CaptureKind, Encoded, Error, Key, OpenOptions, Pin, Position, Role, Selector, Stored,
    Sum, Wanted,
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

/// A revisit of the referrer, which stands for the body.
fn refer(archive: &Archive, pin: &Pin, head: &str) -> Capture {
    let time_ms = START_MS + 5_000;
    let payload = skep_warc::digest::Digest::parse(&pin.payload.to_string()).unwrap();
    let mut bytes = Vec::new();
    let id = RecordId::uuid([6; 16]);
    Record::revisit(&id, &rfc3339(time_ms), REFERRER, Revisit::IdenticalPayload(payload), head.as_bytes())
        .refers_to_target_uri(&pin.original)
        .refers_to_date(&rfc3339(pin.original_ms))
        .ip_address("192.0.2.7".parse().unwrap())
        .protocol("http/1.1")
        .encode(&mut Encoder::new(Compression::GZIP), &mut bytes)
        .unwrap();
    let records = vec![pin.encode(Role::Reference, time_ms).unwrap(), Encoded::describing(bytes).unwrap()];
    archive.append(Append { site_hash: Key::of(REFERRER).site_hash(), records }).unwrap().wait().unwrap();
    captures(archive).into_iter().find(|capture| capture.url == REFERRER).unwrap()
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
        let revisit = refer(&to, &pin, &head);
        assert_eq!(to.views().references_of(REFERRER).unwrap(), std::slice::from_ref(&pin));
        assert_eq!(to.views().references(0, u32::MAX, None, 9).unwrap().len(), 1);
        let given = || Stored::at(&from.place(pin.position).unwrap()).unwrap();
        // Another body is not taken, whatever it is said to be.
        let small = from.views().captures.exact(&Key::of("http://a.example/small")).unwrap().next().unwrap().unwrap();
        let mut wrong = Stored::at(&from.place(small.position).unwrap()).unwrap();
        assert!(to.write_own_body(&pin, &revisit, &mut wrong).is_err());
        assert!(to.write_own_body(&Pin { sha256: [0; 32], ..pin.clone() }, &revisit, &mut given()).is_err());

        let written = to.write_own_body(&pin, &revisit, &mut given()).unwrap();
        assert!(to.views().references_of(REFERRER).unwrap().is_empty(), "it refers to nobody any more");
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
