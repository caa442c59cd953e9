//! An archive whose captures are typed in by the tests.
#![allow(dead_code, missing_docs)]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use skep_archive::{Append, Archive, Bytes, CHECKS, Encoded, Key, OpenOptions, Position};
use skep_changes::{Changes, Check, Checked, Checks, Cursor, Event, Filter, Fingerprint, From, Said};
use skep_page::compare::Classes;
use skep_warc::date::rfc3339;
use skep_warc::write::{Compression, Encoder, Record, RecordId, Revisit};

/// 2026-01-01T00:00:00Z.
pub const START_MS: i64 = 1_767_225_600_000;
pub const DAY_MS: i64 = 86_400_000;

pub fn options() -> OpenOptions {
    OpenOptions { secret: Some([7; 32]), disk_reserve_bytes: 0, clock: Arc::new(|| START_MS), ..OpenOptions::create() }
}

pub fn open(folder: &Path) -> Archive {
    Archive::open(folder, options()).unwrap()
}

/// An archive in a folder of its own, which goes with it, and what is told of it.
pub fn fresh(changes: Changes) -> (tempfile::TempDir, Archive, Changes) {
    let folder = tempfile::tempdir().unwrap();
    let archive = open(folder.path());
    (folder, archive, changes)
}

/// A record of what a server answered.
pub fn answer(url: &str, time_ms: i64, status: u16, fields: &str, body: &str) -> Encoded {
    let mut id = [1; 16];
    id[..8].copy_from_slice(&xxhash_rust::xxh3::xxh3_64(format!("{url} {time_ms}").as_bytes()).to_le_bytes());
    let message = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: text/html; charset=utf-8\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut bytes = Vec::new();
    let (id, date) = (RecordId::uuid(id), rfc3339(time_ms));
    let record = Record::response(&id, &date, url, message.as_bytes());
    record.encode(&mut Encoder::new(Compression::GZIP), &mut bytes).unwrap();
    Encoded::describing(bytes).unwrap()
}

/// A record of an answer whose body was stored before.
pub fn revisit(url: &str, time_ms: i64, digest: &skep_archive::Digest) -> Encoded {
    let mut id = [6; 16];
    id[..8].copy_from_slice(&xxhash_rust::xxh3::xxh3_64(format!("{url} {time_ms}").as_bytes()).to_le_bytes());
    let mut bytes = Vec::new();
    let why = Revisit::IdenticalPayload(digest.to_string().parse().unwrap());
    let (id, date) = (RecordId::uuid(id), rfc3339(time_ms));
    let record =
        Record::revisit(&id, &date, url, why, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n".as_slice());
    record.encode(&mut Encoder::new(Compression::GZIP), &mut bytes).unwrap();
    Encoded::describing(bytes).unwrap()
}

/// A record of what is noted of a visit: it stands behind what came of it.
pub fn noted(url: &str, time_ms: i64, fields: &str) -> Encoded {
    let mut id = [4; 16];
    id[..8].copy_from_slice(&xxhash_rust::xxh3::xxh3_64(format!("{url} {time_ms}").as_bytes()).to_le_bytes());
    let (id, date) = (RecordId::uuid(id), rfc3339(time_ms));
    let record = Record::metadata(&id, &date, "application/warc-fields", fields.as_bytes()).target_uri(url);
    let mut bytes = Vec::new();
    record.encode(&mut Encoder::new(Compression::GZIP), &mut bytes).unwrap();
    Encoded::describing(bytes).unwrap()
}

pub fn append(archive: &Archive, url: &str, records: Vec<Encoded>) {
    archive.append(Append { site_hash: Key::of(url).site_hash(), records }).unwrap().wait().unwrap();
}

pub fn page(archive: &Archive, url: &str, time_ms: i64, body: &str) {
    append(archive, url, vec![answer(url, time_ms, 200, "", body)]);
}

/// Check lines as these tests write them: the host, then `fingerprint time what`.
pub struct TestChecks;

pub fn fingerprint(url: &str) -> Fingerprint {
    xxhash_rust::xxh3::xxh3_128(url.as_bytes()).to_le_bytes()
}

impl Checks for TestChecks {
    fn read(&self, block: &[u8]) -> Option<Checked> {
        let mut lines = std::str::from_utf8(block).ok()?.lines();
        let host = lines.next()?.to_owned();
        let line = |line: &str| {
            let mut words = line.split(' ');
            let fingerprint = u128::from_str_radix(words.next()?, 16).ok()?.to_le_bytes();
            let time_ms = words.next()?.parse().ok()?;
            let said = match words.next()? {
                "same" => Said::Same,
                fault => Said::of_fault(fault),
            };
            Some(Check { fingerprint, time_ms, said })
        };
        Some(Checked { host, lines: lines.map(line).collect::<Option<_>>()? })
    }

    fn names(&self, _: &Archive, url: &str) -> Vec<Fingerprint> {
        vec![fingerprint(url)]
    }
}

/// A record of checks of URLs of one host.
pub fn checks(archive: &Archive, host: &str, lines: &[(&str, i64, &str)]) {
    let mut block = format!("{host}\n");
    for (url, time_ms, what) in lines {
        block.push_str(&format!("{:032x} {time_ms} {what}\n", u128::from_le_bytes(fingerprint(url))));
    }
    let mut id = [2; 16];
    id[..8].copy_from_slice(&xxhash_rust::xxh3::xxh3_64(block.as_bytes()).to_le_bytes());
    let (id, date) = (RecordId::uuid(id), rfc3339(lines.first().map_or(0, |line| line.1)));
    let mut bytes = Vec::new();
    let record = Record::metadata(&id, &date, CHECKS, block.as_bytes());
    record.encode(&mut Encoder::new(Compression::GZIP), &mut bytes).unwrap();
    let url = lines.first().map_or("http://example.org/", |line| line.0);
    append(archive, url, vec![Encoded::describing(bytes).unwrap()]);
}

/// The same records as a file from elsewhere.
pub fn foreign(path: &Path, records: Vec<Encoded>) {
    let mut all = Vec::new();
    for record in records {
        let Bytes::Memory(bytes) = record.bytes else { panic!("small records are in memory") };
        all.extend(bytes);
    }
    std::fs::write(path, all).unwrap();
}

pub fn add(archive: &Archive, path: &Path) {
    let mut additions = archive.additions().unwrap();
    additions.add(path, "from elsewhere", false, &mut |_| ()).unwrap();
    additions.commit().unwrap();
}

pub fn follow(changes: &Changes, archive: &Archive) -> u64 {
    changes.follow(archive, START_MS, &mut |_| ()).unwrap().events
}

/// Everything, also what is silent.
pub fn all() -> Filter {
    Filter { classes: Some(Classes(u32::MAX)), ..Filter::default() }
}

/// Every event of the log with its cursor; those that take another back among them.
pub fn events(changes: &Changes, archive: &Archive, from: &From) -> Vec<(Cursor, Event)> {
    let mut events = Vec::new();
    let mut take = |filter: &Filter| {
        changes.read(archive, from, filter, |cursor, kept| {
            events.push((cursor.clone(), kept.event().unwrap()));
            ControlFlow::Continue(())
        })
    };
    take(&all()).unwrap();
    events
}

/// A page of many paragraphs, these among them.
pub fn text(paragraphs: &[&str]) -> String {
    let filler: String = (0..30).map(|n| format!("<p>{}</p>", words(n, 12))).collect();
    let shown: String = paragraphs.iter().map(|text| format!("<p>{text}</p>")).collect();
    format!("<!doctype html><title>A page</title>{filler}{shown}<footer>end</footer>")
}

/// What the log says in the end of each capture.
pub fn outcome(changes: &Changes, archive: &Archive) -> BTreeMap<Position, Event> {
    let mut last = BTreeMap::new();
    for (_, event) in events(changes, archive, &From::Start) {
        last.insert(event.key, event);
    }
    last.retain(|_, event| !event.classes.is_empty());
    last
}

/// What an event is told as.
pub fn told_as(event: &Event) -> String {
    event.details.classes.join(" ")
}

pub fn words(seed: u64, count: usize) -> String {
    const WORDS: &[&str] = &[
        "amber", "bridge", "candle", "delta", "ember", "forest", "garden", "harbour", "island", "jacket", "kettle",
        "lantern", "meadow", "needle", "orchard", "paper", "quarry", "river", "saddle", "timber", "umbrella", "valley",
        "window", "yellow", "zebra",
    ];
    let mut chance = Chance(seed);
    (0..count).map(|_| WORDS[chance.below(WORDS.len())]).collect::<Vec<_>>().join(" ")
}

pub struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }

    pub fn percent(&mut self, share: usize) -> bool {
        self.below(100) < share
    }
}
