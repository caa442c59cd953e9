//! CDXJ lines, record by record. The expected lines are those that cdxj-indexer 1.5.0 wrote for the same bytes.

use skep_archive::cdxj;

/// Records as (fields, block); a line end is `\r\n` in both.
const RECORDS: &[(&str, &str)] = &[
    ("WARC-Type: warcinfo\nContent-Type: application/warc-fields", "software: x\n"),
    (
        "WARC-Type: response\nWARC-Target-URI: http://www.Example.org/a?b=2&a=1\nContent-Type: application/http",
        "HTTP/1.1 200 OK\nContent-Type: text/html; charset=utf-8\nContent-Type: second/one\n\nbody",
    ),
    (
        "WARC-Type: response\nWARC-Target-URI: <https://example.org/in brackets/é>\nWARC-Payload-Digest: sha1:DECLARED",
        "HTTP/1.0 404\nno colon\ncontent-type : TEXT/plain more\n\n",
    ),
    ("WARC-Type: response\nWARC-Target-URI: http://example.org/untyped", "HTTP/1.1 200 OK\nServer: x\n\nbody"),
    ("WARC-Type: response\nWARC-Target-URI: http://example.org/not-http", "<html>without a head"),
    ("WARC-Type: response\nWARC-Target-URI: http://example.org/blank", "\n\nbody"),
    ("WARC-Type: response\nWARC-Target-URI: http://example.org/empty", ""),
    ("WARC-Type: response\nWARC-Target-URI: dns:example.org\nContent-Type: text/dns", "20200102030405\n"),
    (
        "WARC-Type: revisit\nWARC-Target-URI: http://example.org/\nWARC-Payload-Digest: sha1:SAME",
        "HTTP/1.1 304 Not Modified\nContent-Type: text/html\n\n",
    ),
    ("WARC-Type: revisit\nWARC-Target-URI: http://example.org/", ""),
    ("WARC-Type: resource\nWARC-Target-URI: ftp://example.org/f\nContent-Type: text/plain; x", "a file"),
    ("WARC-Type: resource\nWARC-Target-URI: urn:x:y\nContent-Type: application/warc-fields", "a: b\n"),
    ("WARC-Type: metadata\nWARC-Target-URI: http://example.org/\nContent-Type: text/json", "{}"),
    ("WARC-Type: metadata\nWARC-Target-URI: http://example.org/\nContent-Type: application/warc-fields", "a: b\n"),
    ("WARC-Type: metadata\nContent-Type: application/json", "about no URL"),
    ("WARC-Type: request\nWARC-Target-URI: http://example.org/", "POST / HTTP/1.1\n\na=b"),
    ("WARC-Type: conversion\nWARC-Target-URI: http://example.org/\nContent-Type: text/plain", "converted"),
];

const LINES: &str = r#"
- 20200102030405 {"mime": "application/json", "digest": "sha1:XYO5J3IZKT6R23OH6A5PLHLXC336RUA6", "length": "195", "offset": "3301", "filename": "odd.warc"}
dns:example.org 20200102030405 {"url": "dns:example.org", "digest": "sha1:A3C3I7PEYZ25L6RJUWPM44BH6DW732JX", "length": "225", "offset": "1695", "filename": "odd.warc"}
org,example)/ 20200102030405 {"url": "http://example.org/", "mime": "text/json", "digest": "sha1:X4Q2T2H3YWRYI35QLNH2BBM6BEL3EIBP", "length": "215", "offset": "2845", "filename": "odd.warc"}
org,example)/ 20200102030405 {"url": "http://example.org/", "mime": "warc/revisit", "length": "187", "offset": "2202", "filename": "odd.warc"}
org,example)/ 20200102030405 {"url": "http://example.org/", "mime": "warc/revisit", "status": "304", "digest": "sha1:SAME", "length": "274", "offset": "1924", "filename": "odd.warc"}
org,example)/a?a=1&b=2 20200102030405 {"url": "http://www.Example.org/a?b=2&a=1", "mime": "text/html", "status": "200", "digest": "sha1:AIED6RLZ4CFGCJBFYDA2C7XEPLOXQO4U", "length": "323", "offset": "207", "filename": "odd.warc"}
org,example)/blank 20200102030405 {"url": "http://example.org/blank", "digest": "sha1:Z4HILWYSH7LBZDK7RMRK5UCBUJHK5KO2", "length": "201", "offset": "1293", "filename": "odd.warc"}
org,example)/empty 20200102030405 {"url": "http://example.org/empty", "digest": "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", "length": "193", "offset": "1498", "filename": "odd.warc"}
org,example)/f 20200102030405 {"url": "ftp://example.org/f", "mime": "text/plain", "digest": "sha1:5NMZ5SB5HA7Q6JLJDQME6ZLNIA4E7FBV", "length": "223", "offset": "2393", "filename": "odd.warc"}
org,example)/in%20brackets/%c3%a9 20200102030405 {"url": "https://example.org/in%20brackets/\u00e9", "mime": "TEXT/plain", "status": "404", "digest": "sha1:DECLARED", "length": "300", "offset": "534", "filename": "odd.warc"}
org,example)/not-http 20200102030405 {"url": "http://example.org/not-http", "status": "a", "digest": "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", "length": "217", "offset": "1072", "filename": "odd.warc"}
org,example)/untyped 20200102030405 {"url": "http://example.org/untyped", "status": "200", "digest": "sha1:AIED6RLZ4CFGCJBFYDA2C7XEPLOXQO4U", "length": "230", "offset": "838", "filename": "odd.warc"}
"#;

fn file() -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, (fields, block)) in RECORDS.iter().enumerate() {
        let block = block.replace('\n', "\r\n");
        let head = format!(
            "WARC/1.0\n{fields}\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{number:012}>\n\
             WARC-Date: 2020-01-02T03:04:05Z\nContent-Length: {}\n\n",
            block.len()
        );
        bytes.extend_from_slice(format!("{}{block}\r\n\r\n", head.replace('\n', "\r\n")).as_bytes());
    }
    bytes
}

#[test]
fn every_kind_of_record_has_the_line_it_has_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd.warc");
    std::fs::write(&path, file()).unwrap();
    for threads in [1, 2] {
        let (mut lines, mut findings) = (Vec::new(), Vec::new());
        cdxj::index_file(&path, "odd.warc", threads, &mut lines, &mut findings, &|_| ()).unwrap();
        lines.sort();
        assert_eq!(lines.join("\n"), LINES.trim());
    }
}

#[test]
fn lines_are_read_back() {
    let mut captures = 0;
    for line in LINES.trim().lines() {
        let Some(read) = cdxj::parse_line(line).unwrap() else {
            assert!(line.starts_with("- "), "only a record about no URL is no capture: {line}");
            continue;
        };
        assert!(line.contains(&format!("\"offset\": \"{}\"", read.capture.offset)));
        assert_eq!(read.filename, "odd.warc");
        captures += 1;
    }
    assert_eq!(captures, LINES.trim().lines().count() - 1);
}
