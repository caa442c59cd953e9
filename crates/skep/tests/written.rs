//! What Skep writes, in the hands of others: whole archives checked by warcio, read by warcio and FastWARC, replayed by pywb.

mod python;

use python::{Peers, difference, run, skep_index, text};
use skep_archive::{Append, Archive, Encoded, Key, OpenOptions, Selector};
use skep_warc::digest::{Algorithm, Digest};
use skep_warc::write::{Compression, Encoder, Record, RecordId, Revisit};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// One page: fetched from `url` at `date`.
struct Page {
    url: String,
    date: String,
    /// What the server sent before the body.
    head: String,
    body: Vec<u8>,
    /// Of an earlier page with the same body.
    seen: Option<(String, String)>,
}

impl Page {
    /// As pywb's paths and CDX lines have it.
    fn timestamp(&self) -> String {
        self.date.chars().filter(char::is_ascii_digit).collect()
    }
}

fn page(url: &str, day: u8, media: &str, body: impl Into<Vec<u8>>) -> Page {
    let body = body.into();
    let date = format!("2023-05-{day:02}T06:07:08Z");
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: {}\r\n\r\n", body.len());
    Page { url: url.into(), date, head, body, seen: None }
}

fn pages() -> Vec<Page> {
    let noise: Vec<u8> = (0..200_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let home = "<html><head><title>Home</title></head><body><a href=\"http://b.example/\">b</a></body></html>";
    let mut again = page("http://a.example/", 9, "text/html", home);
    again.seen = Some(("http://a.example/".into(), "2023-05-01T06:07:08Z".into()));
    vec![
        page("http://a.example/", 1, "text/html", home),
        page("http://b.example/", 2, "text/html; charset=utf-8", "<p>Grüße, 日本</p>"),
        page("https://c.example/noise.bin", 3, "application/octet-stream", noise),
        page("http://d.example/empty", 4, "text/plain", ""),
        page("http://e.example/caf%C3%A9?b=2&a=1", 5, "text/html", "<p>a query</p>"),
        page("http://f.example/script.js", 6, "text/javascript", "location = \"http://a.example/\";\r\n\r\n"),
        page("http://g.example/style.css", 7, "text/css", "body { background: url(http://a.example/bee.png) }"),
        page("http://h.example/in-two-versions", 7, "text/plain", "the first"),
        page("http://h.example/in-two-versions", 8, "text/plain", "the second"),
        page("http://i.example/looks-like-warc", 8, "text/plain", "\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\n\r\n"),
        again,
    ]
}

/// The records of one visit, and what each of them holds in plain form.
fn records(page: &Page, number: u8) -> Vec<Record<'static>> {
    let id = |kind: u8| RecordId::uuid([number, kind, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]);
    let (url, date) = (&page.url, &page.date);
    let asked = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", url.split('/').nth(2).unwrap_or_default()).into_bytes();
    let got = match &page.seen {
        None => Record::response(&id(1), date, url, [page.head.as_bytes(), &page.body].concat()),
        Some((earlier_url, earlier_date)) => {
            let why = Revisit::IdenticalPayload(Digest::of(Algorithm::Sha1, &page.body));
            Record::revisit(&id(1), date, url, why, page.head.clone().into_bytes())
                .refers_to_target_uri(earlier_url)
                .refers_to_date(earlier_date)
        }
    };
    // A record about no URL, with a media type that nobody else knows, must be in nobody's way.
    let checks = Record::metadata(&id(3), date, skep_archive::CHECKS, b"\x00\x01 opaque".as_slice());
    vec![
        Record::request(&id(0), date, url, asked).concurrent_to(&id(1)),
        got.ip_address([192, 0, 2, number].into()).protocol("http/1.1"),
        Record::metadata(&id(2), date, "application/warc-fields", b"via: http://a.example/\r\n".as_slice())
            .target_uri(url)
            .concurrent_to(&id(1)),
        checks,
    ]
}

/// An archive of 16 slices whose segments are so small that there are several of them.
fn archive(folder: &Path, secret: u8) -> Archive {
    let options = OpenOptions {
        bits: 4,
        segment_bytes_max: 100_000,
        secret: Some([secret; 32]),
        disk_reserve_bytes: 0,
        ..OpenOptions::create()
    };
    Archive::open(folder, options).unwrap()
}

fn fill(archive: &Archive, pages: &[Page]) {
    for (number, page) in pages.iter().enumerate() {
        let encode = |record: &Record<'_>| {
            let mut bytes = Vec::new();
            record.encode(&mut Encoder::new(Compression::GZIP), &mut bytes).unwrap();
            Encoded::describing(bytes).unwrap()
        };
        let records = records(page, number as u8).iter().map(encode).collect();
        let append = Append { site_hash: Key::of(&page.url).site_hash(), records };
        archive.append(append).unwrap().wait().unwrap();
    }
}

/// The WARC files under a folder, by name.
fn segments(folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.join("segments")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(".warc.gz") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// What dump.py prints, from Skep's own reader.
fn dump(files: &[PathBuf]) -> String {
    let mut told = String::new();
    for file in files {
        let mut reader = skep_warc::Reader::open(file, skep_warc::Options::strict()).unwrap();
        while let Some(mut record) = reader.next().unwrap() {
            let mut block = Vec::new();
            record.read_to_end(&mut block).unwrap();
            let fields = record.head().fields().map(|(name, value)| {
                format!("{}: {}\n", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
            });
            told.push_str(&format!("{}\n{}", record.offset(), fields.collect::<String>()));
            told.push_str(&block_line(&block));
        }
        assert_eq!(reader.take_findings(), [], "{}", file.display());
    }
    told
}

fn block_line(block: &[u8]) -> String {
    format!("{} {}\n=\n", block.len(), Digest::of(Algorithm::Sha256, block).hex())
}

/// What dump.py must print somewhere for a record that was handed over: fields and block, without the offset.
fn expected(record: &Record<'_>) -> String {
    let mut bytes = Vec::new();
    record.encode(&mut Encoder::new(Compression::Plain), &mut bytes).unwrap();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let fields: String = head.split("\r\n").skip(1).map(|line| format!("{line}\n")).collect();
    fields + &block_line(&bytes[end + 4..bytes.len() - 4])
}

#[test]
fn segments_pass_warcios_check_also_after_a_removal() {
    let Some(peers) = Peers::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let written = archive(folder.path(), 1);
    fill(&written, &pages());
    written.seal().unwrap();
    let check = || {
        let files = segments(folder.path());
        let output = run(peers.program("warcio").args(["check", "--verbose"]).args(&files));
        (text(&output), files.len())
    };
    let (report, count) = check();
    assert!(count >= 5, "{count} segments");
    // Each page has four records with right digests; only what a revisit refers to cannot be checked.
    let passed = report.matches("digest pass").count();
    assert!(passed >= 4 * (pages().len() - 1) + 2 * count, "{passed}: {report}");
    assert_eq!(report.matches("not checked (revisit)").count(), 1, "{report}");

    written.remove(&Selector::Url("http://b.example/".into()), "asked").unwrap();
    written.close().unwrap();
    let (report, _) = check();
    assert!(report.contains(".g1.warc.gz"), "a segment was rewritten: {report}");
}

/// warcio takes the payload digest over the chunked bytes, where the standard means the payload: then it must be the payload digest that
/// it finds fault with, and nothing else.
#[test]
fn on_chunked_bodies_warcio_finds_fault_with_nothing_but_the_payload_digest() {
    let Some(peers) = Peers::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let written = archive(folder.path(), 1);
    let mut chunked = page("http://a.example/", 1, "text/plain", "5\r\nhello\r\n0\r\n\r\n");
    chunked.head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".into();
    fill(&written, &[chunked]);
    written.close().unwrap();
    let files = segments(folder.path());
    assert!(dump(&files).contains(&Digest::of(Algorithm::Sha1, b"hello").to_string()), "the digest of the payload");
    let output = run(peers.program("warcio").arg("check").args(&files));
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let faults: Vec<&str> = report.lines().filter(|line| line.contains("failed")).collect();
    assert_eq!(faults.len(), 1, "{report}");
    assert!(faults[0].contains("payload digest failed"), "{report}");
}

#[test]
fn warcio_and_fastwarc_read_what_was_handed_over() {
    let Some(peers) = Peers::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let written = archive(folder.path(), 1);
    fill(&written, &pages());
    written.close().unwrap();
    let files = segments(folder.path());
    let ours = dump(&files);
    for reader in ["warcio", "fastwarc"] {
        let theirs = text(&run(peers.script("dump.py").arg(reader).args(&files)));
        assert!(ours == theirs, "{reader}\n{}", difference(&ours, &theirs));
        for (number, page) in pages().iter().enumerate() {
            for record in records(page, number as u8) {
                let expected = expected(&record);
                assert!(theirs.contains(&expected), "{reader} does not have\n{expected}");
            }
        }
    }
}

#[test]
fn segments_are_indexed_as_cdxj_indexer_does() {
    let Some(peers) = Peers::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let written = archive(folder.path(), 1);
    fill(&written, &pages());
    written.close().unwrap();
    let files = segments(folder.path());
    let theirs = text(&run(peers.program("cdxj-indexer").arg("--sort").args(&files)));
    let (ours, code) = skep_index(&files);
    assert!(ours == theirs, "{}", difference(&ours, &theirs));
    assert_eq!(code, Some(0));
    assert_eq!(ours.lines().filter(|line| line.starts_with("example,")).count(), pages().len(), "{ours}");
}

/// Two archives in one folder, by `cp -r` and no more: every record of both is there for anybody.
#[test]
fn merged_folders_are_read_whole() {
    let Some(peers) = Peers::find() else { return };
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let pages = pages();
    let (first, second) = pages.split_at(6);
    for (folder, secret, part) in [(&one, 1, first), (&two, 2, second)] {
        let written = archive(folder.path(), secret);
        fill(&written, part);
        written.close().unwrap();
    }
    let sorted = |files: &[PathBuf]| {
        let told = text(&run(peers.script("dump.py").arg("warcio").args(files)));
        let mut records: Vec<String> = told.split("=\n").map(str::to_owned).collect();
        records.sort();
        records
    };
    let apart = sorted(&[segments(one.path()), segments(two.path())].concat());
    text(&run(std::process::Command::new("cp").arg("-r").arg(two.path().join("segments")).arg(one.path())));
    assert_eq!(sorted(&segments(one.path())), apart);
    for url in pages.iter().map(|page| &page.url) {
        let target = format!("WARC-Target-URI: {url}\n");
        assert!(apart.iter().any(|record| record.contains(&target)), "{url}");
    }
}

/// pywb on a port of this machine, ended when the test ends.
struct Wayback {
    child: Child,
    port: u16,
    log: PathBuf,
}

/// How long pywb may take until it answers; it imports much, and the machine may be busy.
const WAYBACK_SECONDS_MAX: u64 = 180;

impl Wayback {
    fn start(peers: &Peers, folder: &Path) -> Wayback {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = folder.join("wayback.log");
        let file = std::fs::File::create(&log).unwrap();
        let mut wayback = peers.program("wayback");
        wayback.args(["--bind", "127.0.0.1", "--port"]).arg(port.to_string()).current_dir(folder);
        let child = wayback.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        let mut wayback = Wayback { child, port, log };
        let end = Instant::now() + Duration::from_secs(WAYBACK_SECONDS_MAX);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let told = || std::fs::read_to_string(&wayback.log).unwrap_or_default();
            assert!(wayback.child.try_wait().unwrap().is_none(), "pywb ended: {}", told());
            assert!(Instant::now() < end, "pywb does not listen: {}", told());
            std::thread::sleep(Duration::from_millis(100));
        }
        wayback
    }

    /// Head and body of an answer.
    fn get(&self, path: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n", self.port).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let body = answer.split_off(end + 4);
        (String::from_utf8_lossy(&answer).into_owned(), body)
    }
}

impl Drop for Wayback {
    fn drop(&mut self) {
        let _it_may_have_ended = self.child.kill();
        let _it_is_gone = self.child.wait();
    }
}

#[test]
fn pywb_replays_every_page() {
    let Some(peers) = Peers::find() else { return };
    let (folder, wayback) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let written = archive(folder.path(), 1);
    fill(&written, &pages());
    written.close().unwrap();
    let manager = |arguments: &[&str], files: &[PathBuf]| {
        let mut manager = peers.program("wb-manager");
        text(&run(manager.args(arguments).args(files).current_dir(wayback.path())));
    };
    manager(&["init", "kept"], &[]);
    manager(&["add", "kept"], &segments(folder.path()));
    let wayback = Wayback::start(&peers, wayback.path());
    let pages = pages();
    assert!(pages.len() >= 10 && pages.iter().any(|page| page.seen.is_some()));
    for page in pages {
        let path = format!("/kept/{}id_/{}", page.timestamp(), page.url);
        let (head, body) = wayback.get(&path);
        let status = head.split(' ').nth(1).unwrap_or_default();
        assert_eq!(status, "200", "{path}: {head}{}", String::from_utf8_lossy(&body));
        assert!(head.contains(&page.timestamp()), "the capture of that second: {head}");
        assert!(body == page.body, "{path}: {head}{}", String::from_utf8_lossy(&body));
    }
}
