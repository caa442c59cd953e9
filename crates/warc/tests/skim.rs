//! Skimming: bodies that nobody reads are stepped over where it is certain how long they are, and never to the reader's harm.

use skep_warc::digest::{Algorithm, Digest};
use skep_warc::write::{Compression, Encoder};
use skep_warc::{End, Options, Reader, RecordKind};
use std::io::{BufRead, Cursor, Read, Write};

/// Head and block of a page whose body is text of so many bytes.
fn page(number: usize, body_bytes: usize) -> (Vec<u8>, Vec<u8>) {
    let mut body = String::new();
    while body.len() < body_bytes {
        body.push_str(&format!("<p>paragraph {} of page {number}</p>\r\n", body.len() * 7919 % 1000));
    }
    body.truncate(body_bytes);
    let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Number: {number}\r\n\r\n{body}").into_bytes();
    let head = format!(
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:12345678-0000-0000-0000-0000{number:08x}>\r\n\
         WARC-Date: 2024-01-02T03:04:05Z\r\nWARC-Target-URI: http://a.example/{number}\r\n\
         Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n",
        block.len()
    );
    (head.into_bytes(), block)
}

/// One member for each body length.
fn members(body_bytes: &[usize]) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new(Compression::GZIP);
    let encode = |(number, &bytes): (usize, &usize)| {
        let (head, block) = page(number, bytes);
        let mut member = Vec::new();
        encoder.raw_record(&head, &block, &mut member);
        member
    };
    body_bytes.iter().enumerate().map(encode).collect()
}

const BODIES: [usize; 9] = [0, 10, 300, 5000, 20_000, 90_000, 300, 3_000_000, 700];

#[derive(Debug, PartialEq, Eq)]
struct Seen {
    offset: u64,
    uri: String,
    first: (usize, Digest),
    end: End,
}

/// Every record with the first `read` bytes of its block, and the rules that were broken.
fn see(mut reader: Reader, read: usize) -> (Vec<Seen>, Vec<&'static str>) {
    let mut all = Vec::new();
    while let Some(mut record) = reader.next().unwrap() {
        let (offset, uri) =
            (record.offset(), String::from_utf8_lossy(record.head().target_uri().unwrap_or_default()).into_owned());
        let mut first = Vec::new();
        (&mut record).take(read as u64).read_to_end(&mut first).unwrap();
        let first = (first.len(), Digest::of(Algorithm::Sha1, &first));
        all.push(Seen { offset, uri, first, end: record.finish().unwrap() });
    }
    (all, reader.take_findings().iter().map(|f| f.rule.id()).collect())
}

fn stored(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// Both ways of getting at the bytes.
fn readers(bytes: &[u8], options: &Options) -> [Reader; 2] {
    let file = stored(bytes);
    [
        Reader::open(file.path(), options.clone()).unwrap(),
        Reader::new(Cursor::new(bytes.to_vec()), options.clone()).unwrap(),
    ]
}

#[test]
fn the_same_records_whatever_is_read_of_them() {
    let bytes = members(&BODIES).concat();
    for read in [0, 1, 60, 100, 1000, 10_000, 100_000, usize::MAX >> 1] {
        let [full, _] = readers(&bytes, &Options::recover());
        let expected = see(full, read);
        assert_eq!((expected.0.len(), expected.1.len()), (BODIES.len(), 0));
        for skimming in readers(&bytes, &Options::skim()) {
            assert_eq!(see(skimming, read), expected, "{read} bytes of each");
        }
    }
}

#[test]
fn damage_in_a_body_is_seen_by_whoever_reads_it_and_by_nobody_else() {
    let mut members = members(&BODIES);
    let middle = members[5].len() / 2;
    members[5][middle..middle + 40].fill(0xff);
    let trailer = members[3].len() - 8;
    members[3][trailer] ^= 1;
    let bytes = members.concat();
    for reader in readers(&bytes, &Options::skim()) {
        let (seen, rules) = see(reader, 70);
        assert_eq!((seen.len(), rules), (BODIES.len(), vec![]), "the bodies were not inflated");
    }
    let [full, _] = readers(&bytes, &Options::recover());
    let expected = see(full, 1 << 30);
    assert!(
        expected.1.contains(&"container-checksum") && expected.1.contains(&"container-damaged"),
        "{:?}",
        expected.1
    );
    let file = stored(&bytes);
    assert_eq!(see(Reader::open(file.path(), Options::skim()).unwrap(), 1 << 30), expected);
}

/// Where the `sl` field of a member of this package's writer keeps the member's length and what it decodes to.
const MEMBER_AT: usize = 16;
const DECODED_AT: usize = 20;

fn with_field(member: &[u8], at: usize, value: usize) -> Vec<u8> {
    let mut changed = member.to_vec();
    changed[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
    changed
}

#[test]
fn lengths_that_lie_are_reported_and_not_believed() {
    let honest = members(&[5000, 20_000, 20_001, 9000, 400]);
    let [full, _] = readers(&honest.concat(), &Options::recover());
    let expected = see(full, 80).0;
    let (one, next) = (honest[1].len(), honest[2].len());
    let decoded = u32::from_le_bytes(honest[1][DECODED_AT..DECODED_AT + 4].try_into().unwrap()) as usize;
    let lies = [
        ("outside the file", MEMBER_AT, u32::MAX as usize),
        ("at its end", MEMBER_AT, honest[1..].concat().len()),
        ("just before its end", MEMBER_AT, honest[1..].concat().len() - 2),
        ("to no member", MEMBER_AT, one + 1),
        ("to no member, before", MEMBER_AT, one - 1),
        ("inside its header", MEMBER_AT, 3),
        ("nowhere", MEMBER_AT, 0),
        ("to the member after the next", MEMBER_AT, one + next),
        ("another decoded length", DECODED_AT, decoded + 1),
        ("no decoded length", DECODED_AT, 0),
    ];
    for (lie, at, value) in lies {
        let mut members = honest.clone();
        members[1] = with_field(&honest[1], at, value);
        for (source, reader) in ["file", "stream"].into_iter().zip(readers(&members.concat(), &Options::skim())) {
            let (seen, rules) = see(reader, 80);
            assert_eq!(seen, expected, "{lie}, from a {source}");
            // A stream cannot be asked what stands far ahead; then the field is not used.
            if source == "file" || value < 1 << 20 && lie != "at its end" && lie != "just before its end" {
                assert_eq!(rules, ["member-length-field"], "{lie}, from a {source}");
            }
        }
    }
}

#[test]
fn a_length_that_hides_a_record_of_another_size_is_found_out() {
    // The trailer behind the two members is that of the second, and says its length.
    let honest = members(&[20_000, 30_000, 400]);
    let both = honest[0].len() + honest[1].len();
    let bytes = [with_field(&honest[0], MEMBER_AT, both), honest[1].clone(), honest[2].clone()].concat();
    let [reader, _] = readers(&bytes, &Options::skim());
    let (seen, rules) = see(reader, 0);
    assert_eq!(
        seen.iter().map(|s| s.uri.as_str()).collect::<Vec<_>>(),
        ["http://a.example/0", "http://a.example/1", "http://a.example/2"]
    );
    assert_eq!(rules, ["member-length-field"]);
}

#[test]
fn a_block_that_is_not_as_long_as_declared_is_not_stepped_over() {
    let (head, block) = page(0, 20_000);
    for declared in [block.len() - 100, block.len() + 100] {
        let head = String::from_utf8(head.clone()).unwrap();
        let head = head.replace(&format!("Content-Length: {}", block.len()), &format!("Content-Length: {declared}"));
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(Compression::GZIP);
        encoder.raw_record(head.as_bytes(), &block, &mut bytes);
        bytes.extend(members(&[10, 5000]).concat());
        let [full, _] = readers(&bytes, &Options::recover());
        let expected = see(full, 0);
        assert!(!expected.1.is_empty());
        for reader in readers(&bytes, &Options::skim()) {
            assert_eq!(see(reader, 0), expected, "declared {declared}");
        }
    }
}

#[test]
fn a_file_cut_anywhere_ends_the_same_way() {
    let bytes = members(&[300, 9000, 5000]).concat();
    let last = bytes.len() - members(&[300, 9000, 5000])[2].len();
    for cut in (last..bytes.len()).step_by(7).chain(bytes.len() - 12..bytes.len()) {
        let file = stored(&bytes[..cut]);
        let expected = see(Reader::open(file.path(), Options::recover()).unwrap(), 0);
        let skimmed = see(Reader::open(file.path(), Options::skim()).unwrap(), 0);
        assert_eq!(skimmed.0.len(), expected.0.len(), "cut at {cut}");
        if cut > last {
            assert!(!skimmed.1.is_empty(), "cut at {cut}");
        }
    }
}

#[test]
fn several_records_in_one_member_are_all_seen() {
    let mut encoder = Encoder::new(Compression::GZIP);
    let ((head, mut block), (second_head, second)) = (page(0, 5000), page(1, 6000));
    let first_length = block.len();
    block.extend_from_slice(b"\r\n\r\n");
    block.extend_from_slice(&second_head);
    block.extend_from_slice(&second);
    let mut bytes = Vec::new();
    encoder.raw_record(&head, &block, &mut bytes);
    bytes.extend(members(&[100]).concat());
    for reader in readers(&bytes, &Options::skim()) {
        let (seen, rules) = see(reader, 10);
        assert_eq!(seen.len(), 3);
        assert_eq!(seen[0].end.block_bytes, first_length as u64);
        assert_eq!(rules, ["member-many-records"]);
    }
}

#[test]
fn long_heads_are_read_whole() {
    let mut encoder = Encoder::new(Compression::GZIP);
    let mut bytes = Vec::new();
    for fields in [5, 50, 500] {
        let long: String = (0..fields).map(|n| format!("X-Field-{n}: {}\r\n", n * 104_729 % 10_007)).collect();
        let block = [&vec![b'x'; 30_000][..], b"y"].concat();
        let head = format!("WARC/1.1\r\nWARC-Type: resource\r\n{long}Content-Length: {}\r\n\r\n", block.len());
        encoder.raw_record(head.as_bytes(), &block, &mut bytes);
    }
    for mut reader in readers(&bytes, &Options::skim()) {
        for fields in [5, 50, 500] {
            let mut record = reader.next().unwrap().unwrap();
            assert_eq!((record.head().kind(), record.head().fields().count()), (RecordKind::Resource, fields + 2));
            assert!(record.fill_buf().unwrap().starts_with(b"x"));
        }
        assert!(reader.next().unwrap().is_none());
        assert!(reader.findings().is_empty());
    }
}

#[test]
fn it_is_told_how_many_blocks_were_stepped_over() {
    // Three blocks are at hand with their heads, the others are not.
    let bytes = members(&[0, 100, 5000, 20_000, 3_000_000, 10]).concat();
    for (options, read, expected) in [
        (Options::skim(), 0, 3),
        (Options::skim(), 100, 3),
        (Options::skim(), 15_000, 0),
        (Options::skim(), usize::MAX >> 1, 0),
        (Options::recover(), 0, 0),
    ] {
        for mut reader in readers(&bytes, &options) {
            while let Some(mut record) = reader.next().unwrap() {
                std::io::copy(&mut (&mut record).take(read as u64), &mut std::io::sink()).unwrap();
            }
            assert_eq!(reader.stepped_over(), expected, "{read} bytes of each");
        }
    }
}

// ── members that do not say how long they are ──

/// A record as most programs write it.
fn member(head: &[u8], block: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
    for part in [head, block, b"\r\n\r\n"] {
        encoder.write_all(part).unwrap();
    }
    encoder.finish().unwrap()
}

fn silent_members(body_bytes: &[usize]) -> Vec<Vec<u8>> {
    let encode = |(number, &bytes): (usize, &usize)| {
        let (head, block) = page(number, bytes);
        member(&head, &block, 6)
    };
    body_bytes.iter().enumerate().map(encode).collect()
}

fn stepped_over(mut reader: Reader) -> u64 {
    while reader.next().unwrap().is_some() {}
    reader.stepped_over()
}

fn uris(seen: &[Seen]) -> Vec<&str> {
    seen.iter().map(|seen| seen.uri.as_str()).collect()
}

#[test]
fn the_end_of_a_member_that_does_not_tell_it_is_found() {
    let bytes = silent_members(&BODIES).concat();
    for read in [0, 1, 60, 1000, 100_000, usize::MAX >> 1] {
        let [full, _] = readers(&bytes, &Options::recover());
        let expected = see(full, read);
        assert_eq!((expected.0.len(), expected.1.len()), (BODIES.len(), 0));
        for skimming in readers(&bytes, &Options::skim()) {
            assert_eq!(see(skimming, read), expected, "{read} bytes of each");
        }
    }
    for skimming in readers(&bytes, &Options::skim()) {
        assert_eq!(stepped_over(skimming), 6, "all that are not at hand with their heads");
    }
}

#[test]
fn members_of_one_length_are_all_seen() {
    // Each is much shorter than what it decodes to, so that the ends of several lie where the first one's may be.
    let bytes = silent_members(&[60_000; 40]).concat();
    for reader in readers(&bytes, &Options::skim()) {
        let (seen, rules) = see(reader, 0);
        assert_eq!((seen.len(), rules), (40, vec![]));
    }
}

#[test]
fn a_body_that_holds_records_of_its_own_does_not_pass_them_off_as_the_archive_s() {
    // What the page holds is stored as it stands. It looks like the member's end, a record, and a beginning whose end is the member's.
    let (forged_head, forged_block) = page(66, 9000);
    let forged = member(&forged_head, &forged_block, 6);
    let noise: Vec<u8> = (0..30_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let whole_length = 40_000;
    for forge_last in [false, true] {
        let mut block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n".to_vec();
        block.extend(&noise);
        let head = |block: usize| {
            format!(
                "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/0\r\nContent-Length: {block}\r\n\r\n"
            )
        };
        let declared = whole_length - head(30_000).len() - 4;
        assert_eq!(head(declared).len() + declared + 4, whole_length);
        block.extend((whole_length as u32).to_le_bytes());
        block.extend(&forged);
        if forge_last {
            // Its last record decodes, by what it says, to what the whole member decodes to: the two ends are one.
            block.extend([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1]);
            block.extend([0xff, 0x0f, 0, 0xf0]);
            block.extend(head(declared).as_bytes());
        }
        block.resize(declared, b'.');
        let bytes = [member(head(declared).as_bytes(), &block, 0), silent_members(&[100, 7000])[1].clone()].concat();
        let [full, _] = readers(&bytes, &Options::recover());
        let expected = see(full, 0);
        assert_eq!(uris(&expected.0), ["http://a.example/0", "http://a.example/1"]);
        for reader in readers(&bytes, &Options::skim()) {
            assert_eq!(see(reader, 0), expected, "last one forged: {forge_last}");
        }
    }
}

#[test]
fn a_record_behind_one_that_lost_its_end_is_still_seen() {
    // The two are of one length, so that the second one's trailer would do for the first.
    let mut members = silent_members(&[20_000, 20_000, 400]);
    let cut = members[0].len() - 30;
    members[0].truncate(cut);
    let bytes = members.concat();
    // A stream cannot be looked at again, so what the damage swallowed is lost there, however it is read.
    for ((full, skimming), expected) in
        readers(&bytes, &Options::recover()).into_iter().zip(readers(&bytes, &Options::skim())).zip([3, 2])
    {
        let (full, (seen, rules)) = (see(full, 0).0, see(skimming, 0));
        assert_eq!((full.len(), uris(&seen)), (expected, uris(&full)));
        assert!(!rules.is_empty());
    }
}

#[test]
fn what_follows_the_last_member_is_told() {
    for rest in [&b"garbage at the end"[..], &[0; 600]] {
        let bytes = [silent_members(&[20_000, 9000]).concat(), rest.to_vec()].concat();
        let [full, _] = readers(&bytes, &Options::recover());
        let expected = see(full, 0);
        assert!(!expected.1.is_empty());
        for reader in readers(&bytes, &Options::skim()) {
            assert_eq!(see(reader, 0), expected);
        }
    }
}

#[test]
fn a_file_that_is_one_member_is_read_as_ever() {
    let pages: Vec<(Vec<u8>, Vec<u8>)> = (0..300).map(|number| page(number, 2000 + number)).collect();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    for (head, block) in &pages {
        for part in [head, block, &b"\r\n\r\n".to_vec()] {
            encoder.write_all(part).unwrap();
        }
    }
    let bytes = encoder.finish().unwrap();
    for reader in readers(&bytes, &Options::skim()) {
        assert_eq!(see(reader, 0).0.len(), 300);
    }
}
