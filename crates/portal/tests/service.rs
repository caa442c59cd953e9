//! What every server needs: health, metrics, log, pace, names, TLS, a graceful end.

mod site;

use site::{Site, Warc};
use skep_portal::Settings;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

fn files() -> Vec<u8> {
    Warc::new().page("http://example.org/", "2014-01-01T00:00:00Z", "text/plain", b"hello").bytes
}

#[test]
fn health_metrics_and_log() {
    let site = Site::new(&[("c", "a.warc.gz", files())]);
    assert_eq!(site.get("/health").is(200).text(), "{\"captures\":1,\"status\":\"ok\"}");
    site.get("/web/20140101000000id_/http://example.org/").is(200);
    let metrics = site.get("/metrics").is(200);
    assert_eq!(metrics.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = metrics.text();
    assert!(text.contains("skep_portal_requests_total{route=\"replay\",status=\"2xx\"} 1\n"), "{text}");
    assert!(text.contains("skep_portal_response_bytes_total{route=\"replay\"} 5\n"), "{text}");
    assert!(text.contains("skep_captures 1\n"), "{text}");
    let log = site.log.lock().unwrap().clone();
    assert!(
        log.iter().any(|line| line.contains("\"GET /web/20140101000000id_/http://example.org/ HTTP/1.1\" 200 5 ")),
        "{log:?}"
    );
}

#[test]
fn whoever_asks_too_often_is_told_to_wait() {
    let site = Site::with(&[], |settings| Settings { requests_per_second: Some(1), ..settings });
    let statuses: Vec<u16> = (0..12).map(|_| site.get("/health").status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 10, "{statuses:?}");
    let refused = site.get("/health").is(429);
    assert_eq!(refused.header("retry-after"), Some("1"));
}

#[test]
fn names_that_others_made_lead_nowhere() {
    let site = Site::new(&[("c", "a.warc.gz", files())]);
    let with = |host: &str, target: &str| site.ask("GET", target, &[("Host", host)], b"");
    with("evil.example", "/health").is(421);
    with("localhost", "/health").is(200);
    // Where archived pages are shown, there is neither portal nor API.
    let replay = site.serving.replay_origin().unwrap().trim_start_matches("http://").to_owned();
    for target in ["/", "/health", "/metrics", "/cdx?url=example.org", "/api/v1/collections"] {
        with(&replay, target).is(404);
    }
    let public =
        Site::with(&[], |settings| Settings { replay_origin: Some("https://replay.example".into()), ..settings });
    public.ask("GET", "/health", &[("Host", "archive.example")], b"").is(200);
    public.ask("GET", "/health", &[("Host", "replay.example")], b"").is(404);
}

#[test]
fn what_is_no_http_ends_the_connection_and_nothing_else() {
    let site = Site::new(&[("c", "a.warc.gz", files())]);
    for sent in [
        b"\x16\x03\x01\x02\x00\x01\x00".as_slice(),
        b"GET\r\n\r\n",
        b"GET /web/\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /web/2014id_/http://a\x00b HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET /web/20140101000000id_/%00%ff%f0%9f HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(site.serving.address()).unwrap();
        stream.write_all(sent).unwrap();
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{:?}", String::from_utf8_lossy(&answer));
    }
    site.get("/health").is(200);
}

#[test]
fn it_stops_when_its_answers_are_out() {
    let body: Vec<u8> = (0..8_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let warc = Warc::new().page("http://example.org/", "2014-01-01T00:00:00Z", "application/octet-stream", &body);
    let site = Site::new(&[("c", "a.warc.gz", warc.bytes)]);
    let mut stream = TcpStream::connect(site.serving.address()).unwrap();
    stream
        .write_all(
            b"GET /web/20140101000000id_/http://example.org/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        )
        .unwrap();
    let mut first = [0; 1];
    stream.read_exact(&mut first).unwrap();
    site.serving.stopper().stop();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(rest.ends_with(b"\r\n0\r\n\r\n") && rest.len() > body.len(), "the answer under way came to its end");
    let Site { serving, archive, .. } = site;
    let address = serving.address();
    serving.wait();
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
    assert!(Arc::try_unwrap(archive).is_ok(), "nobody holds the archive any more");
}
