//! Records written and read again.

use std::io::{Cursor, Read};

use skep_warc::deflate::Level;
use skep_warc::digest::{Algorithm, Digest};
use skep_warc::write::{Compression, Encoder, Record, RecordId, Revisit, Truncated, WriteError};
use skep_warc::{Options, Reader, RecordKind};

const DATE: &str = "2024-05-06T07:08:09Z";
const URI: &str = "http://a.example/page";

fn id(n: u8) -> RecordId {
    RecordId::uuid([n; 16])
}

fn all_compressions() -> Vec<Compression> {
    let dictionary = b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:HTTP/1.1 200 OK\r\n".repeat(40);
    vec![
        Compression::Plain,
        Compression::GZIP,
        Compression::Gzip(Level::new(1)),
        Compression::Gzip(Level::new(12)),
        Compression::ZSTD,
        Compression::Zstd { level: 19, dictionary: None },
        Compression::Zstd { level: 3, dictionary: Some(dictionary) },
    ]
}

/// One record of every kind, with every field there is.
fn one_of_each() -> Vec<Record<'static>> {
    let payload = Digest::of(Algorithm::Sha1, b"hello");
    vec![
        Record::warcinfo(&id(1), DATE, &[("software", "a writer"), ("format", "WARC File Format 1.1")])
            .unwrap()
            .filename("a.warc.gz"),
        Record::response(
            &id(2),
            "2024-05-06T07:08:09.123456Z",
            URI,
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        )
        .warcinfo_id(&id(1))
        .ip_address("2001:db8::1".parse().unwrap())
        .protocol("h2")
        .protocol("tls/1.3")
        .cipher_suite("TLS_AES_128_GCM_SHA256")
        .identified_payload_type("text/plain")
        .truncated(Truncated::Length),
        Record::request(&id(3), DATE, URI, b"GET /page HTTP/1.1\r\nHost: a.example\r\n\r\n").concurrent_to(&id(2)),
        Record::metadata(&id(4), DATE, "application/warc-fields", b"via: http://a.example/\r\n")
            .target_uri(URI)
            .concurrent_to(&id(2))
            .concurrent_to(&id(3)),
        Record::revisit(&id(5), DATE, URI, Revisit::IdenticalPayload(payload), b"HTTP/1.1 200 OK\r\n\r\n")
            .refers_to(&id(2))
            .refers_to_target_uri(URI)
            .refers_to_date(DATE),
        Record::revisit(&id(6), DATE, URI, Revisit::ServerNotModified(None), b"HTTP/1.1 304 Not Modified\r\n\r\n")
            .refers_to_target_uri(URI)
            .refers_to_date(DATE),
        Record::resource(&id(7), DATE, "file:///a.txt", "text/plain", b"a file"),
        Record::conversion(&id(8), DATE, URI, "text/plain", b"hello, converted").refers_to(&id(2)),
        Record::metadata(&id(9), DATE, "text/plain", b"").field("X-Extra", "any value: with: colons"),
    ]
}

struct Read1 {
    kind: RecordKind,
    head: Vec<u8>,
    block: Vec<u8>,
    offset: u64,
}

fn read_all(file: &[u8]) -> Vec<Read1> {
    let mut reader = Reader::new(Cursor::new(file.to_vec()), Options::strict()).unwrap();
    let mut all = Vec::new();
    while let Some(mut record) = reader.next().unwrap() {
        let mut block = Vec::new();
        record.read_to_end(&mut block).unwrap();
        let head = record.head().raw().to_vec();
        all.push(Read1 { kind: record.head().kind(), head, block, offset: record.offset() });
    }
    let findings = reader.take_findings();
    assert!(findings.is_empty(), "what is written breaks no rule: {findings:?}");
    all
}

#[test]
fn every_kind_reads_back_clean_under_every_compression() {
    for compression in all_compressions() {
        let mut encoder = Encoder::new(compression.clone());
        let mut file = encoder.prologue();
        let mut offsets = Vec::new();
        for record in one_of_each() {
            offsets.push(file.len() as u64);
            let before = file.len();
            let written = record.encode(&mut encoder, &mut file).unwrap();
            assert_eq!(written.stored_bytes, (file.len() - before) as u64);
        }
        let read = read_all(&file);
        assert_eq!(read.iter().map(|r| r.offset).collect::<Vec<_>>(), offsets, "{compression:?}");
        use RecordKind::*;
        let kinds = [Warcinfo, Response, Request, Metadata, Revisit, Revisit, Resource, Conversion, Metadata];
        assert_eq!(read.iter().map(|r| r.kind).collect::<Vec<_>>(), kinds, "{compression:?}");
        assert_eq!(read[1].block, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    }
}

#[test]
fn a_head_is_exactly_this() {
    let mut out = Vec::new();
    Record::response(
        &id(0xab),
        DATE,
        URI,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    )
    .ip_address([192, 0, 2, 1].into())
    .field("X-Note", "first")
    .encode(&mut Encoder::new(Compression::Plain), &mut out)
    .unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "WARC/1.1\r\n\
         WARC-Type: response\r\n\
         WARC-Record-ID: <urn:uuid:abababab-abab-4bab-abab-abababababab>\r\n\
         WARC-Date: 2024-05-06T07:08:09Z\r\n\
         WARC-Target-URI: http://a.example/page\r\n\
         WARC-IP-Address: 192.0.2.1\r\n\
         X-Note: first\r\n\
         WARC-Block-Digest: sha1:BLOCK\r\n\
         WARC-Payload-Digest: sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N\r\n\
         Content-Type: application/http;msgtype=response\r\n\
         Content-Length: 62\r\n\
         \r\n\
         HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n\r\n\r\n"
            .replace(
                "BLOCK",
                &Digest::of(
                    Algorithm::Sha1,
                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
                )
                .base32()
            )
    );
}

fn head_of(record: &Record<'_>) -> String {
    let mut out = Vec::new();
    record.encode(&mut Encoder::new(Compression::Plain), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    text[..text.find("\r\n\r\n").unwrap()].to_owned()
}

#[test]
fn revisits_name_profile_and_digest() {
    let digest = Digest::of(Algorithm::Sha1, b"hello");
    let same = head_of(&Record::revisit(&id(1), DATE, URI, Revisit::IdenticalPayload(digest), b""));
    assert!(same.contains("WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n"));
    assert!(same.contains(&format!("WARC-Payload-Digest: {digest}\r\n")), "the digest of the payload that is not here");
    let not_modified = head_of(&Record::revisit(&id(1), DATE, URI, Revisit::ServerNotModified(None), b""));
    assert!(not_modified.contains("WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified\r\n"));
    assert!(!not_modified.contains("WARC-Payload-Digest"));
}

#[test]
fn digests_by_choice() {
    let message = b"HTTP/1.1 200 OK\r\n\r\nhello";
    let sha256 = head_of(&Record::response(&id(1), DATE, URI, message).digest_algorithm(Algorithm::Sha256));
    assert!(sha256.contains(&format!("WARC-Payload-Digest: {}\r\n", Digest::of(Algorithm::Sha256, b"hello"))));
    assert!(sha256.contains(&format!("WARC-Block-Digest: {}\r\n", Digest::of(Algorithm::Sha256, message))));
    assert!(!head_of(&Record::response(&id(1), DATE, URI, message).without_digests()).contains("Digest"));
    // A request carries a payload digest only when it has a payload.
    assert!(!head_of(&Record::request(&id(1), DATE, URI, b"GET / HTTP/1.1\r\n\r\n")).contains("Payload"));
    assert!(
        head_of(&Record::request(&id(1), DATE, URI, b"POST / HTTP/1.1\r\n\r\na=b"))
            .contains(&format!("WARC-Payload-Digest: {}\r\n", Digest::of(Algorithm::Sha1, b"a=b")))
    );
    // An answer of another protocol is all payload.
    let dns = Record::response(&id(1), DATE, "dns:a.example", b"20240506070809\na.example. 60 IN A 192.0.2.1\n");
    assert!(head_of(&dns.content_type("text/dns")).contains(&format!(
        "WARC-Payload-Digest: {}\r\n",
        Digest::of(Algorithm::Sha1, b"20240506070809\na.example. 60 IN A 192.0.2.1\n")
    )));
}

#[test]
fn identifiers() {
    assert_eq!(id(0).to_string(), "<urn:uuid:00000000-0000-4000-8000-000000000000>");
    assert_eq!(id(0xff).to_string(), "<urn:uuid:ffffffff-ffff-4fff-bfff-ffffffffffff>");
    let bytes = [0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0];
    assert_eq!(RecordId::uuid(bytes).as_uri(), "urn:uuid:12345678-9abc-4ef0-9234-56789abcdef0");
    assert_eq!(RecordId::parse("<urn:uuid:1>").unwrap(), RecordId::parse("urn:uuid:1").unwrap());
    for bad in ["", "<>", "no-scheme", "urn:", ":x", "urn:uuid:a b", "urn:uuid:a\r\nX: y", "<urn:a>b>"] {
        assert!(RecordId::parse(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn nothing_can_break_out_of_a_field() {
    let response = || Record::response(&id(1), DATE, URI, b"HTTP/1.1 200 OK\r\n\r\n");
    let mut out = b"kept".to_vec();
    let mut fails = |record: Record<'_>| {
        let error = record.encode(&mut Encoder::new(Compression::GZIP), &mut out).unwrap_err();
        assert_eq!(out, b"kept", "nothing is appended on an error");
        assert!(!error.to_string().is_empty());
        error
    };
    for value in ["a\r\nWARC-Type: warcinfo", "a\nb", "a\rb", "a\0b", " a", "a ", "", "a\u{85}b", "\u{7f}"] {
        assert!(
            matches!(fails(response().field("X-A", value)), WriteError::BadValue(name) if name == "X-A"),
            "{value:?}"
        );
        assert!(matches!(fails(response().protocol(value)), WriteError::BadValue(_)), "{value:?}");
        assert!(matches!(fails(response().content_type(value)), WriteError::BadValue(_)), "{value:?}");
    }
    for name in ["", "A B", "A:", "A\r\nB", "Ä"] {
        assert!(matches!(fails(response().field(name, "x")), WriteError::BadName(_)), "{name:?}");
    }
    for uri in ["", "a.example", "http://a b/", "http://a/\r\nX: y", "<http://a/>", "http://a/\t", "1a:b"] {
        assert!(matches!(fails(response().target_uri(uri)), WriteError::BadUri(_)), "{uri:?}");
        assert!(
            matches!(fails(response().refers_to_target_uri(uri)), WriteError::BadUri(_) | WriteError::BadValue(_)),
            "{uri:?}"
        );
    }
    for date in [
        "",
        "yesterday",
        "20240506070809",
        "2024-13-01T00:00:00Z",
        "2024-05-06T07:08:09+01:00",
        "2024-05-06T07:08:09Z\r\n",
    ] {
        assert!(matches!(fails(Record::response(&id(1), date, URI, b"")), WriteError::BadDate(_)), "{date:?}");
    }
    for name in ["Content-Length", "content-type", "WARC-TYPE", "WARC-Date", "WARC-Record-ID", "WARC-Block-Digest"] {
        assert!(matches!(fails(response().field(name, "1")), WriteError::Repeated(_)), "{name}");
    }
    assert!(matches!(
        fails(response().truncated(Truncated::Time).truncated(Truncated::Length)),
        WriteError::Repeated(_)
    ));
    assert!(matches!(fails(response().filename("a")), WriteError::NotAllowed(RecordKind::Response, "WARC-Filename")));
    let info = Record::warcinfo(&id(1), DATE, &[]).unwrap().target_uri(URI);
    assert!(matches!(fails(info), WriteError::NotAllowed(RecordKind::Warcinfo, "WARC-Target-URI")));
    assert!(Record::warcinfo(&id(1), DATE, &[("software", "a\r\nb: c")]).is_err());
}

/// `sl`: the whole member from its first byte to the last of its trailer, and the whole record.
#[test]
fn gzip_members_carry_their_lengths() {
    let mut encoder = Encoder::new(Compression::GZIP);
    let mut file = Vec::new();
    for record in one_of_each() {
        let start = file.len();
        let written = record.encode(&mut encoder, &mut file).unwrap();
        let member = &file[start..];
        assert_eq!(&member[..4], [0x1f, 0x8b, 8, 4]);
        assert_eq!(&member[10..16], [12, 0, b's', b'l', 8, 0]);
        let length = |at: usize| u64::from(u32::from_le_bytes(member[at..at + 4].try_into().unwrap()));
        assert_eq!((length(16), length(20)), (written.stored_bytes, written.record_bytes));
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(member).read_to_end(&mut plain).unwrap();
        assert_eq!(plain.len() as u64, written.record_bytes);
        assert!(plain.ends_with(b"\r\n\r\n"));
    }
}

#[test]
fn zstd_frames_carry_size_and_checksum() {
    for record in one_of_each() {
        let mut frame = Vec::new();
        let written = record.encode(&mut Encoder::new(Compression::ZSTD), &mut frame).unwrap();
        assert_eq!(zstd::zstd_safe::get_frame_content_size(&frame).unwrap(), Some(written.record_bytes));
        assert_eq!(zstd::zstd_safe::find_frame_compressed_size(&frame).unwrap(), frame.len());
        assert_eq!(frame[4] & 4, 4, "the checksum flag of the frame header");
    }
}

#[test]
fn a_dictionary_stands_first_and_helps() {
    let dictionary = b"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: <urn:uuid:".repeat(20);
    let mut with = Encoder::new(Compression::Zstd { level: 3, dictionary: Some(dictionary.clone()) });
    let prologue = with.prologue();
    assert_eq!(prologue[..4], [0x5d, 0x2a, 0x4d, 0x18]);
    assert_eq!(prologue[4..8], (dictionary.len() as u32).to_le_bytes());
    assert_eq!(prologue[8..], dictionary);
    let record = Record::metadata(&id(1), DATE, "text/plain", b"x");
    let (mut small, mut large) = (Vec::new(), Vec::new());
    record.encode(&mut with, &mut small).unwrap();
    record.encode(&mut Encoder::new(Compression::ZSTD), &mut large).unwrap();
    assert!(small.len() < large.len());
    assert!(Encoder::new(Compression::ZSTD).prologue().is_empty());
}

/// Whatever was read is written again byte for byte, under any compression.
#[test]
fn copies_are_exact() {
    let odd: &[(&[u8], &[u8])] = &[
        (b"WARC/1.0\r\nwarc-type:   response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 2014-01-01T00:00:00Z\r\nX-Fold: a\r\n b\r\nX-Twice: 1\r\nx-twice: 2\r\nContent-Length: 5\r\n\r\n", b"\0\r\n\xff\n"),
        (b"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: <urn:uuid:2>\r\nWARC-Date: 2014-01-01T00:00:00Z\r\nContent-Length: 0\r\n\r\n", b""),
    ];
    for compression in all_compressions() {
        let mut encoder = Encoder::new(compression.clone());
        let mut file = encoder.prologue();
        for (head, block) in odd {
            encoder.raw_record(head, block, &mut file);
        }
        let mut copy = file.clone();
        for _ in 0..2 {
            let mut reader = Reader::new(Cursor::new(copy), Options::recover()).unwrap();
            let mut encoder = Encoder::new(compression.clone());
            let mut again = encoder.prologue();
            let mut number = 0;
            while let Some(mut record) = reader.next().unwrap() {
                let mut block = Vec::new();
                record.read_to_end(&mut block).unwrap();
                assert_eq!((record.head().raw(), block.as_slice()), odd[number], "{compression:?}");
                encoder.raw_record(record.head().raw(), &block, &mut again);
                number += 1;
            }
            assert_eq!(number, odd.len());
            copy = again;
        }
        assert!(copy == file, "{compression:?}");
    }
}

/// Bytes that do not compress to nothing, without keeping them in memory.
#[derive(Clone)]
struct Noise {
    at: u64,
    length: u64,
}

impl Read for Noise {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = into.len().min((self.length - self.at) as usize).min(10_007);
        for (i, byte) in into[..n].iter_mut().enumerate() {
            let x = self.at + i as u64;
            *byte = (x.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u8 & 0x3f;
        }
        self.at += n as u64;
        Ok(n)
    }
}

impl std::io::Seek for Noise {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        match to {
            std::io::SeekFrom::Start(at) => self.at = at,
            std::io::SeekFrom::Current(by) => self.at = self.at.checked_add_signed(by).unwrap(),
            std::io::SeekFrom::End(by) => self.at = self.length.checked_add_signed(by).unwrap(),
        }
        Ok(self.at)
    }
}

#[test]
fn large_blocks_stream_and_equal_the_whole() {
    for length in [0, 10, 4 << 20, 9 << 20] {
        let noise = Noise { at: 0, length };
        let mut block = Vec::new();
        noise.clone().read_to_end(&mut block).unwrap();
        let record = |block: Vec<u8>| Record::resource(&id(1), DATE, URI, "application/octet-stream", block);
        let mut plain = Vec::new();
        record(block.clone()).encode(&mut Encoder::new(Compression::Plain), &mut plain).unwrap();
        for compression in all_compressions() {
            let mut encoder = Encoder::new(compression.clone());
            let mut file = encoder.prologue();
            let before = file.len() as u64;
            let written = record(vec![]).encode_stream(&mut encoder, &mut noise.clone(), &mut file).unwrap();
            assert_eq!(written.stored_bytes + before, file.len() as u64, "{compression:?}");
            assert_eq!(written.record_bytes, plain.len() as u64);
            // Once, with the digests known beforehand, gives the same bytes.
            let digest = Digest::of(Algorithm::Sha1, &block);
            let mut once = encoder.prologue();
            record(vec![])
                .block_digest(digest)
                .payload_digest(digest)
                .encode_stream_once(&mut encoder, noise.clone(), length, &mut once)
                .unwrap();
            assert!(once == file, "{compression:?}");
            let read = read_all(&file);
            assert_eq!(read.len(), 1, "{compression:?}");
            assert!(plain.starts_with(&read[0].head) && read[0].block == block, "{compression:?} {length}");
            if let Compression::Zstd { .. } = compression {
                let frame = &file[before as usize..];
                assert_eq!(zstd::zstd_safe::get_frame_content_size(frame).unwrap(), Some(written.record_bytes));
            }
        }
    }
}

#[test]
fn streams_that_lie_are_errors() {
    let record = Record::resource(&id(1), DATE, URI, "text/plain", b"");
    let digest = Digest::of(Algorithm::Sha1, b"x");
    for length in [10, 9 << 20] {
        for compression in all_compressions() {
            let mut encoder = Encoder::new(compression);
            let short = Noise { at: 0, length: length - 1 };
            let given = record.clone().block_digest(digest).payload_digest(digest);
            let error = given.encode_stream_once(&mut encoder, short, length, &mut Vec::new()).unwrap_err();
            assert!(matches!(error, WriteError::Short { stated, found } if stated == length && found == length - 1));
        }
    }
    let error = record.encode_stream_once(&mut Encoder::new(Compression::GZIP), &b"x"[..], 1, &mut Vec::new());
    assert!(matches!(error, Err(WriteError::DigestUnknown(_))));
    record
        .clone()
        .without_digests()
        .encode_stream_once(&mut Encoder::new(Compression::GZIP), &b"x"[..], 1, &mut Vec::new())
        .unwrap();

    /// Other bytes each time it is read.
    struct Shifting(Cursor<Vec<u8>>);
    impl Read for Shifting {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(into)
        }
    }
    impl std::io::Seek for Shifting {
        fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
            if matches!(to, std::io::SeekFrom::Start(_)) {
                self.0.get_mut().fill(b'z');
            }
            self.0.seek(to)
        }
    }
    let mut shifting = Shifting(Cursor::new(vec![b'a'; 100]));
    let error = record.encode_stream(&mut Encoder::new(Compression::GZIP), &mut shifting, &mut Vec::new());
    assert!(matches!(error, Err(WriteError::Changed)));
}

#[test]
fn a_stream_begins_where_it_stands() {
    let mut block = Cursor::new(b"skip HTTP/1.1 200 OK\r\n\r\nhello".to_vec());
    block.set_position(5);
    let mut file = Vec::new();
    Record::response(&id(1), DATE, URI, b"")
        .encode_stream(&mut Encoder::new(Compression::GZIP), &mut block, &mut file)
        .unwrap();
    let mut whole = Vec::new();
    Record::response(&id(1), DATE, URI, b"HTTP/1.1 200 OK\r\n\r\nhello")
        .encode(&mut Encoder::new(Compression::GZIP), &mut whole)
        .unwrap();
    assert_eq!(file, whole);
}
