//! Records and archives for tests: small, and the same every time.
#![allow(dead_code, missing_docs)]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use skep_archive::captures::{Match, Query};
use skep_archive::{Acknowledged, Append, Archive, Capture, Encoded, Finding, Key, OpenOptions, Position};
use skep_warc::date::rfc3339;
use skep_warc::write::{Compression, Encoder, Record, RecordId};

/// 2026-01-01T00:00:00Z.
pub const START_MS: i64 = 1_767_225_600_000;

/// A clock that ticks a second each time it is looked at.
pub fn options(secret: u8) -> OpenOptions {
    let clock = AtomicI64::new(START_MS);
    OpenOptions {
        secret: Some([secret; 32]),
        disk_reserve_bytes: 0,
        clock: Arc::new(move || clock.fetch_add(1000, Ordering::SeqCst)),
        ..OpenOptions::create()
    }
}

pub fn open(dir: &Path, secret: u8) -> Archive {
    Archive::open(dir, options(secret)).unwrap()
}

fn id(url: &str, time_ms: i64, kind: u8) -> RecordId {
    let mut bytes = [kind; 16];
    let hash = xxhash_rust::xxh3::xxh3_64(format!("{url} {time_ms}").as_bytes());
    bytes[..8].copy_from_slice(&hash.to_le_bytes());
    RecordId::uuid(bytes)
}

fn encode(record: &Record<'_>) -> Encoded {
    let mut bytes = Vec::new();
    record.encode(&mut Encoder::new(Compression::GZIP), &mut bytes).unwrap();
    Encoded::describing(bytes).unwrap()
}

/// What one fetch leaves: request, response, metadata.
pub fn fetch(url: &str, time_ms: i64, body: &str) -> Append {
    fetch_of(url, time_ms, body, false)
}

/// The same; private, where it was made with secrets.
pub fn fetch_of(url: &str, time_ms: i64, body: &str, is_private: bool) -> Append {
    let date = rfc3339(time_ms);
    let (asked, got, noted) = (id(url, time_ms, 1), id(url, time_ms, 2), id(url, time_ms, 3));
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", url.split('/').nth(2).unwrap_or_default());
    let response = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let encode = |record: Record<'_>| match is_private {
        true => encode(&record.field(skep_archive::PRIVATE, "cookie")),
        false => encode(&record),
    };
    let records = vec![
        encode(Record::request(&asked, &date, url, request.as_bytes()).concurrent_to(&got)),
        encode(Record::response(&got, &date, url, response.as_bytes())),
        encode(
            Record::metadata(&noted, &date, "application/warc-fields", b"via: http://example.org/\r\n".as_slice())
                .target_uri(url)
                .concurrent_to(&got),
        ),
    ];
    Append { site_hash: Key::of(url).site_hash(), records }
}

pub fn append(archive: &Archive, url: &str, time_ms: i64, body: &str) -> Acknowledged {
    archive.append(fetch(url, time_ms, body)).unwrap().wait().unwrap()
}

/// Everything the captures view answers, in order.
pub fn captures(archive: &Archive) -> Vec<Capture> {
    archive.settle().unwrap();
    archive.views().captures.query(&Query::new(Match::All)).unwrap().map(Result::unwrap).collect()
}

/// The captures apart from where they stand in their file, which rewriting may change.
pub fn answers(archive: &Archive) -> Vec<(String, i64, Position, u16, Option<String>)> {
    let line = |c: Capture| (c.url, c.time_ms, c.position, c.status, c.digest.map(|d| d.to_string()));
    captures(archive).into_iter().map(line).collect()
}

/// Everything the digests view knows.
pub fn digests(archive: &Archive) -> Vec<(String, i64, Position)> {
    let mut all = Vec::new();
    archive
        .views()
        .digests
        .each(|digest, first| all.push((digest.to_string(), first.time_ms, first.position)))
        .unwrap();
    all
}

pub fn check(archive: &Archive) -> Vec<Finding> {
    let mut findings = Vec::new();
    archive.check(&mut |finding| findings.push(finding)).unwrap();
    findings
}

pub fn block(archive: &Archive, position: Position) -> String {
    let mut text = String::new();
    archive.read(position).unwrap().record().unwrap().read_to_string(&mut text).unwrap();
    text
}

/// All files under a folder with their bytes.
pub fn tree(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_string();
                files.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// Copies `segments`, `settings`, `collections` and, if wanted, `views`: what `cp -r` does.
pub fn copy(from: &Path, to: &Path, parts: &[&str]) {
    for part in parts {
        for (name, bytes) in tree(&from.join(part)) {
            let path = to.join(part).join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
    }
}
