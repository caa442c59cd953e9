//! Answers that HTTP libraries refuse, drop or misread: here every byte of the message is kept, and the verdict says what was odd.

use skep_warc::write::Truncated;

use crate::server::{Server, bytes, fault, notes};

/// A body longer than any buffer, as it stands or in chunks.
fn body() -> Vec<u8> {
    (0..200_000u32).map(|n| b"abcdefghij klmnopqrstuvwxyz\n"[n as usize % 28]).collect()
}

fn chunks(body: &[u8], line_end: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for chunk in body.chunks(50_000) {
        out.extend_from_slice(format!("{:x}{line_end}", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(line_end.as_bytes());
    }
    out
}

#[derive(Clone, Copy)]
enum Sends {
    /// The body as it stands, then the end of the connection.
    Body,
    /// The body in chunks, with the last one.
    Chunks,
    /// The body in chunks of which each line ends with LF alone.
    BareChunks,
    /// The body in chunks, without the last one.
    Endless,
    Nothing,
}

/// What is kept.
#[derive(Clone, Copy)]
enum Keeps {
    Everything,
    /// All but so many bytes at the start, which are interim answers.
    AllBut(usize),
    /// The head alone; what follows it belongs to nothing.
    Head,
    /// The head and so many bytes.
    HeadAnd(usize),
}

struct Case(&'static str, &'static [u8], Sends, Keeps, Option<u16>, &'static str, &'static [&'static str]);

use Keeps::*;
use Sends::*;

const INTERIM: &[u8] = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case("length not a number", b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", Body, Everything, Some(200), "", &["http-content-length-invalid"]),
    Case("length negative", b"HTTP/1.1 200 OK\r\nContent-Length: -200000\r\n\r\n", Body, Everything, Some(200), "", &["http-content-length-invalid"]),
    Case("length with a plus", b"HTTP/1.1 200 OK\r\nContent-Length: +200000\r\n\r\n", Body, Everything, Some(200), "", &["http-content-length-invalid"]),
    Case("length empty", b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", Body, Everything, Some(200), "", &["http-content-length-invalid"]),
    Case("length over 64 bits", b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", Body, Everything, Some(200), "", &["http-content-length-invalid"]),
    Case("length in hexadecimal", b"HTTP/1.1 200 OK\r\nContent-Length: 0x30d40\r\n\r\n", Body, Everything, Some(200), "", &["http-content-length-invalid"]),
    Case("lengths that differ", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 200000\r\n\r\n", Body, Everything, Some(200), "", &["http-content-length-invalid"]),
    Case("lengths that differ, in one field", b"HTTP/1.1 200 OK\r\nContent-Length: 5, 200000\r\n\r\n", Body, Everything, Some(200), "", &["http-content-length-invalid"]),
    Case("length listed twice", b"HTTP/1.1 200 OK\r\nContent-Length: 200000, 200000\r\n\r\n", Body, Everything, Some(200), "", &["length-repeated"]),
    Case("length given twice", b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\nContent-Length: 200000\r\n\r\n", Body, Everything, Some(200), "", &["length-repeated"]),
    Case("length and chunks", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", Chunks, Everything, Some(200), "", &["length-and-chunked"]),
    Case("status glued to its reason", b"HTTP/1.1 200OK\r\n\r\n", Body, Everything, Some(200), "", &["http-status"]),
    Case("two spaces before the status", b"HTTP/1.1  200 OK\r\n\r\n", Body, Everything, Some(200), "", &[]),
    Case("status 1000", b"HTTP/1.1 1000 Much\r\n\r\n", Body, Everything, None, "malformed", &["http-status"]),
    Case("status 99", b"HTTP/1.1 99 Little\r\n\r\n", Body, Everything, Some(99), "", &[]),
    Case("status 000", b"HTTP/1.1 000 None\r\n\r\n", Body, Everything, Some(0), "", &[]),
    Case("status in words", b"HTTP/1.1 fine OK\r\n\r\n", Body, Everything, None, "malformed", &["http-status"]),
    Case("status missing", b"HTTP/1.1\r\n\r\n", Body, Everything, None, "malformed", &["http-status"]),
    Case("status 999", b"HTTP/1.1 999 Denied\r\n\r\n", Body, Everything, Some(999), "", &[]),
    Case("no reason", b"HTTP/1.1 200\r\n\r\n", Body, Everything, Some(200), "", &[]),
    Case("reason in Latin-1", b"HTTP/1.1 200 \xe9t\xe9\r\n\r\n", Body, Everything, Some(200), "", &[]),
    Case("reason in UTF-8", "HTTP/1.1 200 été\r\n\r\n".as_bytes(), Body, Everything, Some(200), "", &[]),
    Case("empty lines before the status line", b"\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", Body, Everything, Some(200), "", &["http-leading-bytes"]),
    Case("lines end with LF", b"HTTP/1.1 200 OK\nServer: x\n\n", Body, Everything, Some(200), "", &["http-line-end"]),
    Case("HTTP/1.2", b"HTTP/1.2 200 OK\r\n\r\n", Body, Everything, Some(200), "", &[]),
    Case("HTTP/2.0", b"HTTP/2.0 200 OK\r\n\r\n", Body, Everything, Some(200), "", &[]),
    Case("HTTP/2", b"HTTP/2 200 OK\r\n\r\n", Body, Everything, Some(200), "", &[]),
    Case("HTTP/3.0", b"HTTP/3.0 200 OK\r\n\r\n", Body, Everything, Some(200), "", &[]),
    Case("no version", b"HTTP 200 OK\r\n\r\n", Body, Everything, Some(200), "", &["http-version"]),
    Case("lower-case protocol", b"http/1.1 200 OK\r\n\r\n", Body, Everything, Some(200), "", &[]),
    Case("ICY", b"ICY 200 OK\r\nicy-name: radio\r\n\r\n", Body, Everything, Some(200), "", &["http-version"]),
    Case("a body alone", b"<html>as in the beginning", Body, Everything, None, "malformed", &[]),
    Case("something else", b"SSH-2.0-OpenSSH_9.2\r\n", Body, Everything, None, "malformed", &[]),
    Case("space before the colon", b"HTTP/1.1 200 OK\r\nServer : x\r\n\r\n", Body, Everything, Some(200), "", &["http-space-before-colon"]),
    Case("no colon", b"HTTP/1.1 200 OK\r\nServer x\r\n\r\n", Body, Everything, Some(200), "", &["http-no-colon"]),
    Case("space in a name", b"HTTP/1.1 200 OK\r\nThe Server: x\r\n\r\n", Body, Everything, Some(200), "", &["http-field-name"]),
    Case("UTF-8 in a name", "HTTP/1.1 200 OK\r\nSérver: x\r\n\r\n".as_bytes(), Body, Everything, Some(200), "", &["http-field-name"]),
    Case("empty name", b"HTTP/1.1 200 OK\r\n: x\r\n\r\n", Body, Everything, Some(200), "", &["http-no-colon"]),
    Case("folded field", b"HTTP/1.1 200 OK\r\nServer: x\r\n\ty\r\n\r\n", Body, Everything, Some(200), "", &["http-folded"]),
    Case("NUL in a value", b"HTTP/1.1 200 OK\r\nServer: x\0y\r\n\r\n", Body, Everything, Some(200), "", &["http-nul"]),
    Case("bare CR in a value", b"HTTP/1.1 200 OK\r\nServer: x\ry\r\n\r\n", Body, Everything, Some(200), "", &["http-bare-cr"]),
    Case("UTF-8 in a value", "HTTP/1.1 200 OK\r\nServer: été\r\n\r\n".as_bytes(), Body, Everything, Some(200), "", &[]),
    Case("chunk size that is none", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Body, Everything, Some(200), "broken-chunks", &["http-not-chunked"]),
    Case("chunk size that is none, later", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz\r\n", Body, Everything, Some(200), "broken-chunks", &["http-chunk-size"]),
    Case("chunk lines end with LF", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", BareChunks, Everything, Some(200), "", &["http-chunk-line-end"]),
    Case("no last chunk", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Endless, Everything, Some(200), "broken-chunks-cut", &["http-chunk-unended"]),
    Case("body too short", b"HTTP/1.1 200 OK\r\nContent-Length: 200001\r\n\r\n", Body, Everything, Some(200), "broken-length", &[]),
    Case("body too long", b"HTTP/1.1 200 OK\r\nContent-Length: 199990\r\n\r\n", Body, HeadAnd(199_990), Some(200), "", &["surplus"]),
    Case("gzip and chunks", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", Chunks, Everything, Some(200), "", &[]),
    Case("transfer encoding identity", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n", Body, Everything, Some(200), "", &[]),
    Case("100 before 200", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", Body, AllBut(25), Some(200), "", &["interim"]),
    Case("102 and a body instead of an answer", b"HTTP/1.1 102 Processing\r\n\r\n", Body, Everything, Some(102), "", &[]),
    Case("101 unasked", b"HTTP/1.1 101 Switching\r\n\r\n", Body, Head, Some(101), "", &["surplus"]),
    Case("204 with a body", b"HTTP/1.1 204 No Content\r\n\r\n", Body, Head, Some(204), "", &["surplus"]),
    Case("304 with a body", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 200000\r\n\r\n", Body, Head, Some(304), "", &["surplus"]),
    Case("end inside the head", b"HTTP/1.1 200 OK\r\nServer: x", Nothing, Everything, Some(200), "broken-head", &["http-head-unended"]),
    Case("end after an interim answer", b"HTTP/1.1 100 Continue\r\n\r\n", Nothing, Everything, Some(100), "broken-only-interim", &[]),
    Case("no byte", b"", Nothing, Everything, None, "closed", &[]),
];

async fn run(name: &str, head: &[u8], sends: Sends, keeps: Keeps, status: Option<u16>, wanted: &str, odd: &[&str]) {
    let mut sent = head.to_vec();
    match sends {
        Body => sent.extend(body()),
        Chunks => sent.extend([chunks(&body(), "\r\n"), b"0\r\n\r\n".to_vec()].concat()),
        BareChunks => sent.extend([chunks(&body(), "\n"), b"0\n\n".to_vec()].concat()),
        Endless => sent.extend(chunks(&body(), "\r\n")),
        Nothing => {}
    }
    let kept = match keeps {
        Everything => &sent[..],
        AllBut(interim) => &sent[interim..],
        Head => head,
        HeadAnd(body) => &sent[..head.len() + body],
    };
    let answer = sent.clone();
    let server = Server::once(answer);
    let exchange = server.get("/").await;
    assert!(bytes(&exchange) == kept, "{name}: {} bytes of {}", exchange.response.len(), kept.len());
    assert_eq!((exchange.status(), fault(&exchange)), (status, wanted), "{name}");
    assert_eq!(notes(&exchange), odd, "{name}");
    if let AllBut(interim) = keeps {
        assert_eq!(exchange.interim, &sent[..interim], "{name}");
    }
    let cut = matches!(wanted, "broken-length" | "broken-chunks-cut" | "broken-head");
    assert_eq!(exchange.truncated, cut.then_some(Truncated::Disconnect), "{name}");
}

#[tokio::test]
async fn every_byte_is_kept() {
    for Case(name, head, sends, keeps, status, wanted, odd) in CASES {
        run(name, head, *sends, *keeps, *status, wanted, odd).await;
    }
}

#[tokio::test]
async fn long_heads() {
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-Header: value\r\n".repeat(150));
    run("150 headers", many.as_bytes(), Body, Everything, Some(200), "", &[]).await;
    let endless = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-Header: value\r\n".repeat(2_000));
    run("2,000 headers", endless.as_bytes(), Body, Everything, None, "head-too-large", &[]).await;
    let large = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "y".repeat(600_000));
    run("a header of 600 kB", large.as_bytes(), Body, Everything, None, "head-too-large", &[]).await;
}

#[tokio::test]
async fn interim_answers_are_kept_apart_and_counted() {
    let answer = [&INTERIM.repeat(3)[..], b"HTTP/1.1 200 OK\r\n\r\n"].concat();
    run("three hints", &answer, Body, AllBut(3 * INTERIM.len()), Some(200), "", &["interim"]).await;
    let server = Server::once(INTERIM.repeat(1_000));
    let exchange = server.get("/").await;
    assert_eq!((fault(&exchange), exchange.interim.len()), ("interim-flood", 10 * INTERIM.len()));
}
