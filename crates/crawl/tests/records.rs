//! The records of a visit, as whoever reads them later finds them.

use std::io::{BufRead, Cursor, Read, Write};

use skep_archive::{Append, Bytes, CaptureKind, Note, describe};
use skep_crawl::answer::{Answer, Block};
use skep_crawl::checks::{self, Check, Outcome};
use skep_crawl::heard::{Batch, Heard, Put};
use skep_crawl::limits::ENCODED_IN_MEMORY_BYTES_MAX;
use skep_crawl::links::{Link, Links};
use skep_crawl::metadata::{Metadata, Timings, parse};
use skep_crawl::records::{Dns, Encoders, Original, Same, Visit};
use skep_warc::deflate::Level;
use skep_warc::write::{RecordId, Truncated};
use skep_warc::{Options, Reader, Rule, check_record};

const URL: &str = "https://www.example.org/a?b=c";
const TIME_MS: i64 = 1_778_052_489_123;

static KEY: std::sync::LazyLock<skep_url::Key> = std::sync::LazyLock::new(|| skep_url::Key::of(URL));

fn encoders() -> Encoders {
    Encoders::new(Level::new(1), std::env::temp_dir())
}

fn ids() -> impl FnMut() -> [u8; 16] {
    let mut next = 0;
    move || {
        next += 1;
        [next; 16]
    }
}

fn visit<'a>(answer: &'a Answer<'a>, metadata: &'a Metadata<'a>) -> Visit<'a> {
    Visit {
        url: URL,
        key: &KEY,
        time_ms: TIME_MS,
        request: Some(b"GET /a?b=c HTTP/1.1\r\nHost: www.example.org\r\n\r\n"),
        private: false,
        answer,
        address: Some([192, 0, 2, 1].into()),
        protocols: &["http/1.1", "tls/1.3"],
        cipher: Some("TLS_AES_128_GCM_SHA256"),
        truncated: None,
        original: None,
        metadata: Some(metadata),
        dns: None,
    }
}

/// A record as read: its head as text, and its block.
struct Read1 {
    head: String,
    block: Vec<u8>,
}

/// Reads every record, holds it against the standard and its digests, and compares what a sidecar will say of it with what
/// it would say after reading it.
fn read(append: Append) -> Vec<Read1> {
    let mut all = Vec::new();
    for encoded in append.records {
        let length = encoded.bytes.length();
        let bytes = match encoded.bytes {
            Bytes::Memory(bytes) => bytes,
            Bytes::Spilled { mut file, .. } => {
                let mut bytes = Vec::new();
                std::io::Seek::rewind(&mut file).unwrap();
                file.read_to_end(&mut bytes).unwrap();
                bytes
            }
        };
        assert_eq!(bytes.len() as u64, length);
        let mut reader = Reader::new(Cursor::new(bytes.clone()), Options::strict()).unwrap();
        let mut record = reader.next().unwrap().unwrap();
        let head = record.head().clone();
        let note = describe(&head, &mut record as &mut dyn BufRead).unwrap();
        record.finish().unwrap();
        assert_eq!(encoded.note, note);

        let mut reader = Reader::new(Cursor::new(bytes.clone()), Options::strict()).unwrap();
        let mut record = reader.next().unwrap().unwrap();
        let verified = check_record(&mut record).unwrap();
        assert!(verified.block && !verified.failed, "{verified:?}");
        let end = record.finish().unwrap();
        assert!(!end.damaged);
        assert!(reader.next().unwrap().is_none());
        // What is odd about the answer itself is not the record's fault.
        let findings = reader.take_findings().into_iter().filter(|finding| finding.rule != Rule::HttpMalformed);
        assert_eq!(findings.map(|finding| finding.to_string()).collect::<Vec<_>>(), [""; 0]);
        let mut reader = Reader::new(Cursor::new(bytes), Options::strict()).unwrap();
        let mut block = Vec::new();
        reader.next().unwrap().unwrap().read_to_end(&mut block).unwrap();
        all.push(Read1 { head: String::from_utf8(head.raw().to_vec()).unwrap(), block });
    }
    all
}

fn field<'r>(record: &'r Read1, name: &str) -> Vec<&'r str> {
    record.head.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).collect()
}

fn notes(append: &Append) -> Vec<CaptureKind> {
    let kind = |note: &Note| match note {
        Note::Capture(capture) => capture.kind,
        other => panic!("{other:?}"),
    };
    append.records.iter().map(|record| kind(&record.note)).collect()
}

fn page(fields: &str, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\nContent-Type: text/HTML; charset=utf-8\r\n{fields}\r\n").as_bytes(), body].concat()
}

#[test]
fn a_visit_is_request_response_and_metadata() {
    let bytes = page("", &b"<p>hello ".repeat(1000));
    let answer = Answer::read(Block::Memory(&bytes), None, 0).unwrap();
    let links = [Link { url: "https://www.example.org/b", code: "L", nofollow: true }];
    let metadata = Metadata {
        crawl: "docs",
        depth: 3,
        via: Some("https://www.example.org/"),
        verdict: "200",
        timings: Timings { total_ms: Some(184), ..Timings::default() },
        links: Links::Full(&links),
        ..Metadata::default()
    };
    let append = encoders().visit(&visit(&answer, &metadata), &mut ids()).unwrap();
    assert_eq!(append.site_hash, KEY.site_hash());
    assert_eq!(notes(&append), [CaptureKind::Request, CaptureKind::Response, CaptureKind::Metadata]);
    assert!(append.records[1].bytes.length() < 1000, "a page is compressed");
    let Note::Capture(capture) = &append.records[1].note else { panic!() };
    assert_eq!((capture.status, capture.mime.as_str(), capture.digest), (200, "text/html", Some(answer.payload())));
    let records = read(append);
    assert_eq!(records[1].block, bytes);
    assert_eq!(field(&records[1], "WARC-Protocol"), ["http/1.1", "tls/1.3"]);
    assert_eq!(field(&records[1], "WARC-Cipher-Suite"), ["TLS_AES_128_GCM_SHA256"]);
    assert_eq!(field(&records[1], "WARC-IP-Address"), ["192.0.2.1"]);
    assert_eq!(field(&records[1], "WARC-Date"), ["2026-05-06T07:28:09.123Z"]);
    let id = field(&records[1], "WARC-Record-ID");
    assert_eq!(field(&records[0], "WARC-Concurrent-To"), id);
    assert_eq!(field(&records[2], "WARC-Concurrent-To"), id);
    let meta = parse(&records[2].block).unwrap();
    assert_eq!((meta.crawl.as_str(), meta.depth, meta.links.links.len()), ("docs", 3, 1));
}

#[test]
fn every_answer_is_described_as_it_will_be_read() {
    let chunked = b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".to_vec();
    let answers: &[(Vec<u8>, Option<Truncated>)] = &[
        (page("", b""), None),
        (page("Content-Length: 10\r\n", b"hell"), Some(Truncated::Disconnect)),
        (chunked.clone(), None),
        (chunked[..60].to_vec(), Some(Truncated::Time)),
        (b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec(), None),
        (b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nno colon here\nand more".to_vec(), None),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nx".to_vec(), None),
        (b"HTTP/1.1 200OK\r\n\r\nx".to_vec(), None),
        (b"ICY 200 OK\r\n\r\nx".to_vec(), None),
        (b"HTTP/1.1 200 OK".to_vec(), Some(Truncated::Length)),
        (b"<html>no head at all</html>".to_vec(), None),
        (b"SSH-2.0-x\r\n".to_vec(), None),
        (b"H".to_vec(), None),
        (b"".to_vec(), None),
        (page("X: ", &vec![b'a'; 2 << 20]), None),
        (vec![b'\n'; 2 << 20], None),
    ];
    let metadata = Metadata::default();
    let mut encoders = encoders();
    for (bytes, truncated) in answers {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        for block in [Block::Memory(bytes), Block::File(&file, bytes.len() as u64)] {
            let answer = Answer::read(block, None, 0).unwrap();
            for private in [false, true] {
                let visit = Visit { truncated: *truncated, private, ..visit(&answer, &metadata) };
                let records = read(encoders.visit(&visit, &mut ids()).unwrap());
                assert_eq!(records[1].block, *bytes);
                assert_eq!(field(&records[1], "WARC-Truncated").len(), usize::from(truncated.is_some()));
                assert!(records.iter().all(|r| field(r, "WARC-Skep-Private").len() == usize::from(private)));
            }
        }
    }
}

#[test]
fn a_known_payload_becomes_a_revisit() {
    let bytes = page("ETag: x\r\n", b"the same");
    let answer = Answer::read(Block::Memory(&bytes), None, 0).unwrap();
    let metadata = Metadata::default();
    let id = RecordId::uuid([9; 16]);
    let original = Original {
        why: Same::Payload,
        url: "https://example.org/first",
        time_ms: 5_000,
        record: Some(&id),
        payload: None,
    };
    let append =
        encoders().visit(&Visit { original: Some(original), ..visit(&answer, &metadata) }, &mut ids()).unwrap();
    assert_eq!(notes(&append)[1], CaptureKind::Revisit);
    let records = read(append);
    assert_eq!(records[1].block, bytes[..bytes.len() - 8]);
    assert_eq!(field(&records[1], "WARC-Payload-Digest"), [answer.payload().to_string()]);
    assert!(field(&records[1], "WARC-Profile")[0].ends_with("/identical-payload-digest"));
    assert_eq!(field(&records[1], "WARC-Refers-To-Date"), ["1970-01-01T00:00:05Z"]);
    assert_eq!(field(&records[1], "WARC-Refers-To-Target-URI"), ["https://example.org/first"]);
    assert_eq!(field(&records[1], "WARC-Refers-To"), [id.to_string()]);

    let unchanged = b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n";
    let not_modified = Answer::read(Block::Memory(unchanged), None, 0).unwrap();
    for payload in [None, Some(answer.payload())] {
        let original = Original { why: Same::NotModified, payload, record: None, ..original };
        let visit = Visit { original: Some(original), ..visit(&not_modified, &metadata) };
        let records = read(encoders().visit(&visit, &mut ids()).unwrap());
        assert_eq!(records[1].block, unchanged);
        assert!(field(&records[1], "WARC-Profile")[0].ends_with("/server-not-modified"));
        assert_eq!(field(&records[1], "WARC-Payload-Digest").len(), usize::from(payload.is_some()));
    }

    let no_http = Answer::read(Block::Memory(b"SSH-2.0"), None, 0).unwrap();
    let visit = Visit { original: Some(original), ..visit(&no_http, &metadata) };
    let append = encoders().visit(&visit, &mut ids()).unwrap();
    assert_eq!(notes(&append)[1], CaptureKind::Response, "without a head there is nothing to revisit with");
    assert_eq!(read(append)[1].block, b"SSH-2.0");
}

#[test]
fn what_is_large_goes_through_a_file() {
    let length = ENCODED_IN_MEMORY_BYTES_MAX as usize + 1;
    let body: Vec<u8> = (0..length as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 22) as u8).collect();
    let metadata = Metadata::default();
    for fields in ["", "Content-Encoding: br\r\n"] {
        let bytes = page(fields, &body);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let answer = Answer::read(Block::File(&file, bytes.len() as u64), None, 0).unwrap();
        let append = encoders().visit(&visit(&answer, &metadata), &mut ids()).unwrap();
        assert!(matches!(append.records[1].bytes, Bytes::Spilled { .. }));
        assert!(read(append)[1].block == bytes);

        let original = Original { why: Same::Payload, url: URL, time_ms: 0, record: None, payload: None };
        let visit = Visit { original: Some(original), ..visit(&answer, &metadata) };
        assert!(read(encoders().visit(&visit, &mut ids()).unwrap())[1].block.len() < 200);
    }
    let nowhere = std::path::PathBuf::from("/nonexistent/folder");
    let bytes = page("", &body);
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    let answer = Answer::read(Block::File(&file, bytes.len() as u64), None, 0).unwrap();
    let error = Encoders::new(Level::new(1), nowhere).visit(&visit(&answer, &metadata), &mut ids()).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/folder"), "{error}");
}

#[test]
fn what_is_compressed_or_small_is_only_wrapped() {
    let body = b"compressible ".repeat(1000);
    let metadata = Metadata::default();
    let stored = |fields: &str| {
        let bytes = page(fields, &body);
        let answer = Answer::read(Block::Memory(&bytes), None, 0).unwrap();
        let append = encoders().visit(&visit(&answer, &metadata), &mut ids()).unwrap();
        append.records.iter().map(|record| record.bytes.length()).collect::<Vec<_>>()
    };
    assert!(stored("")[1] < 2_000);
    let wrapped = stored("Content-Encoding: gzip\r\n");
    assert!(wrapped[1] > 13_000, "what came compressed is not compressed again");
    assert!(wrapped[0] > 400 && wrapped[2] > 400, "small records are not compressed: {wrapped:?}");
}

#[test]
fn nothing_breaks_out_of_a_head() {
    let answer = Answer::read(Block::Memory(b"HTTP/1.1 200 OK\r\n\r\n"), None, 0).unwrap();
    let metadata = Metadata::default();
    let base = || visit(&answer, &metadata);
    let evil = "http://a.example/\r\nWARC-Type: response";
    let original = Original { why: Same::Payload, url: evil, time_ms: 0, record: None, payload: None };
    for visit in [
        Visit { url: evil, ..base() },
        Visit { url: "no-scheme", ..base() },
        Visit { url: "http://a.example/<x>", ..base() },
        Visit { protocols: &["http/1.1\r\nx"], ..base() },
        Visit { cipher: Some("a\nb"), ..base() },
        Visit { original: Some(original), ..base() },
        Visit { time_ms: i64::MAX / 1000, ..base() },
        Visit { dns: Some(Dns { host: "a\r\nb", time_ms: 0, text: "" }), ..base() },
    ] {
        assert!(encoders().visit(&visit, &mut ids()).is_err(), "{visit:?}");
    }
}

#[test]
fn the_resolvers_answer_is_a_resource() {
    let dns = Dns {
        host: "www.example.org",
        time_ms: TIME_MS,
        text: "20260506072809\nwww.example.org.\t300\tIN\tA\t192.0.2.1\n",
    };
    let append = encoders().dns(&dns, &mut ids()).unwrap();
    assert_eq!(append.site_hash, skep_url::Key::of(URL).site_hash(), "in the slice of its site");
    assert_eq!(notes(&append), [CaptureKind::Resource]);
    let records = read(append);
    assert_eq!(field(&records[0], "WARC-Target-URI"), ["dns:www.example.org"]);
    assert_eq!(field(&records[0], "Content-Type"), ["text/dns"]);
    assert_eq!(records[0].block, dns.text.as_bytes());

    let answer = Answer::read(Block::Memory(b"HTTP/1.1 200 OK\r\n\r\n"), None, 0).unwrap();
    let metadata = Metadata::default();
    let visit = Visit { dns: Some(dns), request: None, ..visit(&answer, &metadata) };
    let append = encoders().visit(&visit, &mut ids()).unwrap();
    assert_eq!(notes(&append), [CaptureKind::Resource, CaptureKind::Response, CaptureKind::Metadata]);
    read(append);
}

#[test]
fn checks_and_heard_urls_are_repeated_in_the_sidecar() {
    let checks: Vec<Check> = (0..100)
        .map(|n| Check {
            fingerprint: [n; 16],
            time_ms: TIME_MS + i64::from(n) * 700,
            outcome: Outcome::NotModified,
            failures: 0,
        })
        .collect();
    let (block, count) = checks::encode("docs", "example.org:443", &checks);
    assert_eq!(count, 100);
    let append = encoders().checks(3, TIME_MS, block.clone(), [1; 16]).unwrap();
    assert!(matches!(&append.records[0].note, Note::Checks(noted) if *noted == block));
    let records = read(append);
    assert_eq!(checks::parse(&records[0].block).unwrap().checks, checks);

    let mut batch = Batch::new("docs");
    for n in 0..1000 {
        let url = format!("https://example.org/section-{}/article-{:x}.html", n / 30, n * 7_919);
        let heard = Heard { url: &url, depth: 1, class: "page", source: Some("https://example.org/sitemap.xml") };
        assert_eq!(batch.put(&heard), Put::Taken);
    }
    let block = batch.finish();
    let append = encoders().heard(3, TIME_MS, block.clone(), [1; 16]).unwrap();
    assert!(append.records[0].bytes.length() <= 25 * 1000, "{}", append.records[0].bytes.length());
    assert!(matches!(&append.records[0].note, Note::Heard(noted) if *noted == block));
    assert_eq!(read(append)[0].block, block);
}
