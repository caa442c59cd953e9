//! Archives for tests, and how texts are asked for.
#![allow(dead_code, missing_docs)]

use skep_archive::{Append, Archive, Capture, Encoded, Key, OpenOptions};
use skep_search::{Asked, Document, Found, Query, Text};
use skep_warc::date::rfc3339;
use skep_warc::digest::{Algorithm, Digest};
use skep_warc::write::{Compression, Encoder, Record, RecordId, Revisit};
use std::path::Path;
use std::sync::Arc;

/// 2026-01-01T00:00:00Z.
pub const START_MS: i64 = 1_767_225_600_000;
pub const DAY_MS: i64 = 86_400_000;

pub fn open(folder: &Path) -> Arc<Archive> {
    let options = OpenOptions { secret: Some([7; 32]), disk_reserve_bytes: 0, ..OpenOptions::create() };
    Arc::new(Archive::open(folder, options).unwrap())
}

pub fn keeping(archive: &Arc<Archive>) -> Text {
    let text = Text::open(archive.clone()).unwrap();
    text.keep().unwrap();
    text.settle().unwrap();
    text
}

fn id(url: &str, time_ms: i64) -> RecordId {
    let mut bytes = [2; 16];
    bytes[..8].copy_from_slice(&xxhash_rust::xxh3::xxh3_64(format!("{url} {time_ms}").as_bytes()).to_le_bytes());
    RecordId::uuid(bytes)
}

pub fn encoded(record: &Record<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.encode(&mut Encoder::new(Compression::GZIP), &mut bytes).unwrap();
    bytes
}

pub fn html(title: &str, text: &str) -> String {
    format!("<!doctype html><title>{title}</title><script>unseen()</script><p>{text}</p>")
}

pub fn response(url: &str, time_ms: i64, mime: &str, body: &str) -> Vec<u8> {
    let message = format!("HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    encoded(&Record::response(&id(url, time_ms), &rfc3339(time_ms), url, message.as_bytes()))
}

pub fn revisit(url: &str, time_ms: i64, body: &str) -> Vec<u8> {
    let why = Revisit::IdenticalPayload(Digest::of(Algorithm::Sha1, body.as_bytes()));
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n".as_slice();
    encoded(&Record::revisit(&id(url, time_ms), &rfc3339(time_ms), url, why, head))
}

pub fn append(archive: &Archive, url: &str, record: Vec<u8>) {
    let records = vec![Encoded::describing(record).unwrap()];
    archive.append(Append { site_hash: Key::of(url).site_hash(), records }).unwrap().wait().unwrap();
}

/// A page of day `day`.
pub fn page(archive: &Archive, url: &str, day: i64, title: &str, text: &str) {
    let time_ms = START_MS + day * DAY_MS;
    append(archive, url, response(url, time_ms, "text/html; charset=utf-8", &html(title, text)));
}

pub fn everything(_: &Capture) -> bool {
    true
}

pub fn ask(text: &Text, typed: &str, at_day: Option<i64>, shows: &dyn Fn(&Capture) -> bool) -> Found {
    let query = Query::parse(typed).unwrap();
    let at_ms = at_day.map(|day| START_MS + day * DAY_MS);
    text.search(&Asked { query: &query, at_ms, within: None, shows, skip: 0, limit: 100 }).unwrap()
}

/// The URLs that are found, in order, without their scheme.
pub fn urls(text: &Text, typed: &str, at_day: Option<i64>) -> String {
    let found = ask(text, typed, at_day, &everything);
    let mut urls: Vec<String> =
        found.hits.iter().map(|hit| hit.capture.url.trim_start_matches("http://").to_owned()).collect();
    urls.sort();
    urls.join(" ")
}

/// Every document with this word, as the index has it.
pub fn documents(text: &Text, word: &str) -> Vec<Document> {
    text.settle().unwrap();
    text.all(&Query::parse(word).unwrap()).unwrap()
}

/// Closes everything and builds the views again.
pub fn rebuilt(folder: &Path, archive: Arc<Archive>, text: Text) -> (Arc<Archive>, Text) {
    drop(text);
    Arc::try_unwrap(archive).ok().expect("nobody else has it").close().unwrap();
    let options = OpenOptions { disk_reserve_bytes: 0, ..OpenOptions::default() };
    let archive = Arc::new(Archive::rebuild(folder, options, false).unwrap());
    let text = Text::open(archive.clone()).unwrap();
    assert!(text.is_kept());
    (archive, text)
}
