//! Answers that break off: asked for again, kept as far as they came, and never taken for the whole.

mod web;

use skep_archive::{Archive, Capture};
use skep_crawl::{Ending, Event, Question, Settings, answer_question};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use web::scripted::{Said, index, missing, start_hearing};

const BODY: usize = 1_000;

/// A page of which so many bytes come before the connection ends.
fn page(came: usize) -> Said {
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nETag: \"one\"\r\nContent-Length: {BODY}\r\n\r\n");
    Said { bytes: [head.into_bytes(), vec![b'x'; came]].concat(), close: came < BODY }
}

/// A site whose page `/page` comes as far as `came` says for each time it is asked for.
fn site(came: &'static [usize]) -> SocketAddr {
    let times = AtomicUsize::new(0);
    start_hearing(move |head| match head.split(' ').nth(1) {
        Some("/") => index(["/page".to_owned()]),
        Some("/page") if head.contains("If-None-Match") => {
            Said { bytes: b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec(), close: false }
        }
        Some("/page") => page(came[times.fetch_add(1, Ordering::Relaxed).min(came.len() - 1)]),
        _ => missing(),
    })
}

fn crawl(archive: &Arc<Archive>, at: SocketAddr) -> Vec<String> {
    let settings = Settings {
        name: "test".into(),
        seeds: vec![format!("http://{at}/")],
        allow_private: true,
        ..Settings::default()
    };
    let mut fetch = skep_fetch::Settings::new("skep/0 (test)");
    fetch.allow_private = true;
    let (ending, events) = web::crawl(archive, settings, fetch, 1);
    assert_eq!(ending, Ending::Finished);
    let outcomes = events.into_iter().filter_map(|event| match event {
        Event::Visited { url, outcome, .. } if url.ends_with("/page") => Some(outcome),
        _ => None,
    });
    outcomes.collect()
}

fn kept(archive: &Arc<Archive>, at: SocketAddr) -> Vec<(u64, Option<String>)> {
    let all = web::captures(archive);
    let pages = all.get(&format!("http://{at}/page")).cloned().unwrap_or_default();
    let one = |capture: Capture| {
        let mut stored = archive.read_capture(&capture).unwrap();
        let record = stored.record().unwrap();
        let truncated = record.head().get("WARC-Truncated").map(|why| String::from_utf8_lossy(why).into_owned());
        (record.head().content_length().unwrap(), truncated)
    };
    pages.into_iter().map(one).collect()
}

fn head_bytes() -> u64 {
    page(0).bytes.len() as u64
}

#[test]
fn what_broke_off_is_asked_for_again_and_then_kept_whole() {
    let (folder, at) = (tempfile::tempdir().unwrap(), site(&[500, BODY]));
    let archive = web::archive(folder.path());
    assert_eq!(crawl(&archive, at), ["cut-off", "200"]);
    let disconnected = Some("disconnect".to_owned());
    assert_eq!(kept(&archive, at), [(head_bytes() + 500, disconnected), (head_bytes() + BODY as u64, None)]);
    web::is_sound(&archive);
}

#[test]
fn what_never_comes_whole_is_kept_as_far_as_it_ever_came() {
    let (folder, at) = (tempfile::tempdir().unwrap(), site(&[500, 300, 700]));
    let archive = web::archive(folder.path());
    assert_eq!(crawl(&archive, at), ["cut-off"; 3]);
    let bytes: Vec<u64> = kept(&archive, at).into_iter().map(|(bytes, _)| bytes - head_bytes()).collect();
    assert_eq!(bytes, [500, 700], "less than what is kept already is not kept");
    let why = answer_question(&archive, &Question::Why { url: format!("http://{at}/page"), name: None }).unwrap();
    assert_eq!((why[0]["fate"].as_str(), why[0]["last"]["outcome"].as_str()), (Some("visited"), Some("cut-off")));
}

#[test]
fn a_half_is_not_asked_about_whether_it_changed() {
    let (folder, at) = (tempfile::tempdir().unwrap(), site(&[500, 500, 500, BODY]));
    let archive = web::archive(folder.path());
    assert_eq!(crawl(&archive, at), ["cut-off"; 3]);
    assert_eq!(crawl(&archive, at), ["200"], "the next pass asks for all of it");
    assert_eq!(kept(&archive, at).last(), Some(&(head_bytes() + BODY as u64, None)));
    assert_eq!(crawl(&archive, at), ["304"], "and then asks whether that changed");
}
