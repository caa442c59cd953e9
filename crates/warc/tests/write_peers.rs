//! What is written, judged by readers that other people wrote: warcio and FastWARC.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use skep_warc::digest::{Algorithm, Digest};
use skep_warc::write::{Compression, Encoder, Record, RecordId, Revisit};

/// The Python with the third-party readers, or `None` with a word about it.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("SKEP_PYTHON").map(PathBuf::from);
    if python.is_none() {
        eprintln!("third-party checks not run: SKEP_PYTHON is not set");
    }
    python
}

fn run(python: &Path, script: &str, file: &Path) -> Output {
    Command::new(python).arg("-c").arg(script).arg(file).output().expect("the interpreter named by SKEP_PYTHON runs")
}

fn run_well(python: &Path, script: &str, file: &Path) -> String {
    let output = run(python, script, file);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {out}{err}", output.status);
    out.into_owned()
}

const DATE: &str = "2024-05-06T07:08:09Z";
const URI: &str = "http://a.example/page?q=%C3%BC";

fn records() -> Vec<Record<'static>> {
    let id = |n: u8| RecordId::uuid([n; 16]);
    let binary: Vec<u8> = (0..100_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut message =
        b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nSet-Cookie: a\r\nset-cookie: b\r\n\r\n".to_vec();
    message.extend_from_slice(&binary);
    let payload = Digest::of(Algorithm::Sha1, &binary);
    vec![
        Record::warcinfo(&id(1), DATE, &[("software", "a writer"), ("format", "WARC File Format 1.1")])
            .unwrap()
            .filename("a.warc.gz"),
        Record::response(&id(2), DATE, URI, message)
            .warcinfo_id(&id(1))
            .ip_address("2001:db8::1".parse().unwrap())
            .protocol("http/1.1")
            .protocol("tls/1.3"),
        Record::request(&id(3), DATE, URI, b"POST /page HTTP/1.1\r\nHost: a.example\r\n\r\nx=y").concurrent_to(&id(2)),
        Record::metadata(&id(4), DATE, "application/warc-fields", b"via: http://a.example/\r\n")
            .target_uri(URI)
            .concurrent_to(&id(2))
            .concurrent_to(&id(3)),
        Record::revisit(&id(5), DATE, URI, Revisit::IdenticalPayload(payload), b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n")
            .refers_to_target_uri(URI)
            .refers_to_date(DATE),
        Record::revisit(&id(6), DATE, URI, Revisit::ServerNotModified(None), b"HTTP/1.1 304 Not Modified\r\n\r\n")
            .refers_to_target_uri(URI)
            .refers_to_date(DATE),
        Record::resource(&id(7), DATE, "file:///a.txt", "text/plain", b"a file\r\n\r\nWARC/1.1\r\n"),
        Record::conversion(&id(8), DATE, URI, "text/plain", b"converted")
            .refers_to(&id(2))
            .digest_algorithm(Algorithm::Sha256),
        Record::response(&id(9), DATE, "http://a.example/empty", b"HTTP/1.1 204 No Content\r\n\r\n"),
        Record::metadata(&id(10), DATE, "text/plain", b""),
    ]
}

struct File {
    path: tempfile::TempPath,
    offsets: Vec<u64>,
    /// Head and block of each record.
    records: Vec<(String, Vec<u8>)>,
}

fn write(compression: Compression, suffix: &str, records: &[Record<'_>]) -> File {
    let mut encoder = Encoder::new(compression);
    let mut bytes = encoder.prologue();
    let (mut offsets, mut plain) = (Vec::new(), Vec::new());
    for record in records {
        offsets.push(bytes.len() as u64);
        record.encode(&mut encoder, &mut bytes).unwrap();
        let mut one = Vec::new();
        record.encode(&mut Encoder::new(Compression::Plain), &mut one).unwrap();
        let end = memchr::memmem::find(&one, b"\r\n\r\n").unwrap();
        plain.push((String::from_utf8(one[..end].to_vec()).unwrap(), one[end + 4..one.len() - 4].to_vec()));
    }
    let mut file = tempfile::Builder::new().suffix(suffix).tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    File { path: file.into_temp_path(), offsets, records: plain }
}

/// What the scripts below print for a record: its offset, its fields and its block, a line each, `=` after each record.
fn expected(file: &File, offsets: bool) -> String {
    let mut text = String::new();
    for ((head, block), offset) in file.records.iter().zip(&file.offsets) {
        if offsets {
            text.push_str(&format!("{offset}\n"));
        }
        head.split("\r\n").skip(1).for_each(|line| text.push_str(&format!("{line}\n")));
        text.push_str(&format!("{} {}\n=\n", block.len(), Digest::of(Algorithm::Sha256, block).hex()));
    }
    text
}

#[test]
fn warcio_finds_every_digest_right() {
    let Some(python) = python() else { return };
    const CHECK: &str = "import sys; from warcio.cli import main; main(['check', '-v', sys.argv[1]])";
    for (compression, suffix) in [(Compression::GZIP, ".warc.gz"), (Compression::Plain, ".warc")] {
        let file = write(compression, suffix, &records());
        let report = run_well(&python, CHECK, &file.path);
        assert_eq!(report.matches("digest pass").count(), 7, "{report}");
        assert_eq!(report.matches("not checked (revisit)").count(), 2, "{report}");
        assert_eq!(report.matches("not checked").count(), 3, "warcio passes over an empty block: {report}");
    }
}

/// warcio computes the payload digest over the chunked bytes (its issue 74); the standard's authors mean the payload without
/// them. Block digests must pass all the same, and nothing else may be said.
#[test]
fn on_chunked_payloads_warcio_differs_in_the_known_way_only() {
    let Some(python) = python() else { return };
    const CHECK: &str = "import sys; from warcio.cli import main; main(['check', sys.argv[1]])";
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let record = Record::response(&RecordId::uuid([1; 16]), DATE, URI, chunked);
    let file = write(Compression::GZIP, ".warc.gz", &[record]);
    let output = run(&python, CHECK, &file.path);
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!report.contains("block digest failed"), "{report}");
    assert!(output.status.success() || report.contains("payload digest failed"), "{report}");
}

#[test]
fn warcio_reads_the_same_records_at_the_same_offsets() {
    let Some(python) = python() else { return };
    const DUMP: &str = r#"
import sys, hashlib
from warcio.archiveiterator import ArchiveIterator
with open(sys.argv[1], "rb") as f:
    it = ArchiveIterator(f, no_record_parse=True)
    for r in it:
        block = r.raw_stream.read()
        print(it.get_record_offset())
        for name, value in r.rec_headers.headers:
            print(f"{name}: {value}")
        print(len(block), hashlib.sha256(block).hexdigest())
        print("=")
"#;
    for (compression, suffix) in [(Compression::GZIP, ".warc.gz"), (Compression::Plain, ".warc")] {
        let file = write(compression, suffix, &records());
        assert_eq!(run_well(&python, DUMP, &file.path), expected(&file, true));
    }
}

#[test]
fn fastwarc_reads_the_same_records_at_the_same_offsets() {
    let Some(python) = python() else { return };
    const DUMP: &str = r#"
import sys, hashlib
from fastwarc.warc import ArchiveIterator
with open(sys.argv[1], "rb") as f:
    for r in ArchiveIterator(f, parse_http=False):
        print(r.stream_pos)
        for name, value in r.headers.items():
            print(f"{name}: {value}")
        block = r.reader.read()
        print(len(block), hashlib.sha256(block).hexdigest())
        print("=")
"#;
    for (compression, suffix) in
        [(Compression::GZIP, ".warc.gz"), (Compression::Plain, ".warc"), (Compression::ZSTD, ".warc.zst")]
    {
        let file = write(compression.clone(), suffix, &records());
        assert_eq!(run_well(&python, DUMP, &file.path), expected(&file, true), "{compression:?}");
    }
}

#[test]
fn fastwarc_verifies_block_and_payload_digests() {
    let Some(python) = python() else { return };
    const VERIFY: &str = r#"
import sys
from fastwarc.warc import ArchiveIterator
with open(sys.argv[1], "rb") as f:
    for r in ArchiveIterator(f, parse_http=False):
        print(r.verify_block_digest())
with open(sys.argv[1], "rb") as f:
    for r in ArchiveIterator(f, parse_http=True):
        if r.headers.get("WARC-Type") == "response":
            print(r.verify_payload_digest())
"#;
    let file = write(Compression::GZIP, ".warc.gz", &records());
    assert_eq!(run_well(&python, VERIFY, &file.path), "True\n".repeat(records().len() + 2));
}
