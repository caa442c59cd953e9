//! Bodies: transfer encoding removed, however the bytes arrive.

use skep_warc::http::{Body, Head, Rule};
use std::io::{self, BufRead, Read};

/// A reader that hands out at most `step` bytes at a time, as a network or a decompressor would.
struct Crumbs<'a> {
    bytes: &'a [u8],
    step: usize,
}

impl Read for Crumbs<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(into)?;
        self.consume(n);
        Ok(n)
    }
}

impl BufRead for Crumbs<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(&self.bytes[..self.bytes.len().min(self.step)])
    }
    fn consume(&mut self, bytes: usize) {
        self.bytes = &self.bytes[bytes..];
    }
}

fn read(head: &str, body: &[u8], step: usize) -> (Vec<u8>, Vec<Rule>, Vec<u8>) {
    let mut parsed = Head::new();
    parsed.parse_response(format!("HTTP/1.1 200 OK\r\n{head}\r\n").as_bytes(), true);
    let mut reader = Body::new(&parsed, Crumbs { bytes: body, step });
    let mut out = Vec::new();
    reader.read_to_end(&mut out).unwrap();
    let rules = reader.deviations().map(|d| d.rule).collect();
    (out, rules, reader.trailer().to_vec())
}

const CHUNKED: &str = "Transfer-Encoding: chunked\r\n";

#[test]
fn chunked_bodies_of_the_field() {
    use Rule::*;
    let table: &[(&str, &str, &[Rule])] = &[
        ("5\r\nhello\r\n0\r\n\r\n", "hello", &[]),
        ("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world", &[]),
        ("005;name=\"v\"\r\nhello\r\n000;x\r\n\r\n", "hello", &[]),
        ("5 \r\nhello\r\n0\r\n\r\n", "hello", &[]),
        ("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789", &[]),
        ("0\r\n\r\n", "", &[]),
        ("", "", &[]),
        ("5\r\nhello\r\n0\r\nX-Sum: 1\r\nY: 2\r\n\r\n", "hello", &[]),
        ("5\nhello\n0\n\n", "hello", &[ChunkLineEnd]),
        ("5\r\nhello\r\n", "hello", &[ChunkUnended]),
        ("5\r\nhello", "hello", &[ChunkUnended]),
        ("5\r\nhel", "hel", &[ChunkTruncated]),
        ("5\r\nhello\r\n6\r\n wo", "hello wo", &[ChunkTruncated]),
        ("5\r\nhello\r\n6\r\n world", "hello world", &[ChunkUnended]),
        ("5\r\nhello\r\n1", "hello", &[ChunkTruncated]),
        ("5\r\nhello\r\n0\r\n", "hello", &[Trailer]),
        ("5\r\nhello\r\n0", "hello", &[Trailer]),
        ("5\r\nhello\r\n0\r\nno field\r\n\r\n", "hello", &[Trailer, AfterLastChunk]),
        ("5\r\nhello\r\n0\r\n\r\nmore", "hello", &[AfterLastChunk]),
        // The framing breaks in the middle: what follows is given as it stands.
        ("5\r\nhello\r\nzz\r\nrest", "hellozz\r\nrest", &[ChunkSize]),
        ("5\r\nhello\r\n-3\r\nabc", "hello-3\r\nabc", &[ChunkSize]),
        ("5\r\nhello\r\n11111111111111111\r\nabc", "hello11111111111111111\r\nabc", &[ChunkSize]),
        ("5\r\nhello\r\n3\r\nabcdef\r\n0\r\n\r\n", "helloabcdef\r\n0\r\n\r\n", &[ChunkEnd]),
        // Declared, but the body is not chunked.
        ("<html>\r\n<p>", "<html>\r\n<p>", &[NotChunked]),
        ("plain text", "plain text", &[NotChunked]),
        ("bad\r\nis a word in hexadecimal", "is a word in hexadecimal", &[ChunkTruncated]),
        ("bad\nis a word in hexadecimal", "bad\nis a word in hexadecimal", &[ChunkLineEnd, NotChunked]),
        ("add\r\n", "", &[ChunkTruncated]),
        ("a\r\nsome words that go on", "a\r\nsome words that go on", &[NotChunked]),
        ("\r\n5\r\nhello\r\n0\r\n\r\n", "\r\n5\r\nhello\r\n0\r\n\r\n", &[NotChunked]),
    ];
    for (body, wanted, rules) in table {
        for step in [1, 2, 3, 7, 1000] {
            let (out, found, _) = read(CHUNKED, body.as_bytes(), step);
            assert_eq!(String::from_utf8_lossy(&out), *wanted, "{body:?} in steps of {step}");
            assert_eq!(found, *rules, "{body:?} in steps of {step}");
        }
    }
    assert_eq!(read(CHUNKED, b"1\r\nx\r\n0\r\nX-Sum: 1\r\n\r\n", 4).2, b"X-Sum: 1\r\n");
}

#[test]
fn a_body_stored_decoded_passes_even_after_a_long_first_line() {
    let text = [b"e".to_vec(), vec![b'x'; 10_000], b"\r\nend".to_vec()].concat();
    for step in [1, 1000, 100_000] {
        let (out, rules, _) = read(CHUNKED, &text, step);
        assert_eq!(out, text);
        assert_eq!(rules, [Rule::NotChunked]);
    }
}

#[test]
fn large_chunks_stream() {
    let chunk = vec![b'z'; 1 << 20];
    let mut body = Vec::new();
    for _ in 0..8 {
        body.extend_from_slice(b"100000\r\n");
        body.extend_from_slice(&chunk);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"0\r\n\r\n");
    let (out, rules, _) = read(CHUNKED, &body, 4096);
    assert_eq!((out.len(), rules), (8 << 20, vec![]));
    assert!(out.iter().all(|&b| b == b'z'));
}

#[test]
fn other_transfer_encodings() {
    let (out, rules, _) = read("Transfer-Encoding: Chunked\r\n", b"2\r\nhi\r\n0\r\n\r\n", 100);
    assert_eq!((out.as_slice(), rules), (&b"hi"[..], vec![]));
    let (out, rules, _) = read("Transfer-Encoding: gzip, chunked\r\n", b"2\r\nhi\r\n0\r\n\r\n", 100);
    assert_eq!((out.as_slice(), rules), (&b"hi"[..], vec![Rule::TransferCodingUnknown]));
    let (out, rules, _) = read("Transfer-Encoding: identity\r\n", b"2\r\nhi", 100);
    assert_eq!((out.as_slice(), rules), (&b"2\r\nhi"[..], vec![]));
}

#[test]
fn content_length_is_compared_and_not_obeyed() {
    for (length, deviates) in [("5", false), ("3", true), ("50", true)] {
        let (out, rules, _) = read(&format!("Content-Length: {length}\r\n"), b"hello", 2);
        assert_eq!(out, b"hello");
        assert_eq!(rules.contains(&Rule::ContentLengthWrong), deviates, "{length}");
    }
    let mut not_modified = Head::new();
    not_modified.parse_response(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", true);
    let mut body = Body::new(&not_modified, &b""[..]);
    assert_eq!(body.read(&mut [0; 9]).unwrap(), 0);
    assert_eq!(body.deviations().count(), 0);
}
