//! Lines of eleven columns, for records of our own making: one case for each rule of each column.

use std::io::Write;

use skep_archive::cdx::{self, Options};
use skep_warc::digest::{Algorithm, Digest};

const DEFAULT: Options = Options { all: false };
const ALL: Options = Options { all: true };
const OF_NOTHING: &str = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ";

fn write(name: &str, bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::File::create(&path).unwrap().write_all(bytes).unwrap();
    (folder, path)
}

fn lines_of(name: &str, bytes: &[u8], options: Options) -> Vec<Vec<u8>> {
    let (_folder, path) = write(name, bytes);
    let mut out = Vec::new();
    let written = cdx::write_file(&path, options, &mut out).unwrap();
    let lines: Vec<Vec<u8>> =
        out.split_inclusive(|&b| b == b'\n').map(|line| line[..line.len() - 1].to_vec()).collect();
    assert_eq!(written.lines, lines.len() as u64);
    lines
}

/// The columns of the only line.
#[track_caller]
fn columns(name: &str, bytes: &[u8], options: Options) -> [String; 11] {
    let lines = lines_of(name, bytes, options);
    let [line] = &lines[..] else { panic!("{} lines", lines.len()) };
    let columns: Vec<String> = line.split(|&b| b == b' ').map(|c| String::from_utf8_lossy(c).into_owned()).collect();
    columns.try_into().unwrap_or_else(|columns: Vec<_>| panic!("{} columns: {columns:?}", columns.len()))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    // A stored block: what is tested is where members begin and end, not how they are packed.
    let length = u16::try_from(bytes.len()).unwrap();
    let crc = bytes.iter().fold(!0u32, |crc, &b| {
        (0..8).fold(crc ^ u32::from(b), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    });
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 1];
    out.extend(length.to_le_bytes());
    out.extend((!length).to_le_bytes());
    out.extend(bytes);
    out.extend((!crc).to_le_bytes());
    out.extend(u32::from(length).to_le_bytes());
    out
}

fn sha1(bytes: &[u8]) -> String {
    Digest::of(Algorithm::Sha1, bytes).base32()
}

fn arc(line: &str, block: &[u8]) -> Vec<u8> {
    [format!("{line} {}\n", block.len()).as_bytes(), block, b"\n"].concat()
}

fn arc_page(url: &str, date: &str, block: &str) -> Vec<u8> {
    arc(&format!("{url} 192.0.2.1 {date} text/html"), block.as_bytes())
}

fn warc(fields: &str, block: &[u8]) -> Vec<u8> {
    let fields = fields.trim().lines().map(|line| format!("{}\r\n", line.trim())).collect::<String>();
    let head =
        format!("WARC/1.0\r\nWARC-Date: 2020-01-02T03:04:05Z\r\n{fields}Content-Length: {}\r\n\r\n", block.len());
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

fn warc_response(more: &str, block: &str) -> Vec<u8> {
    let fields = format!(
        "WARC-Type: response\nWARC-Target-URI: http://www.example.org/A\nContent-Type: application/http; msgtype=response\n{more}"
    );
    warc(&fields, block.as_bytes())
}

#[test]
fn a_file_of_two_members() {
    let version = "1 0 Example\nURL IP-address Archive-date Content-type Archive-length\n";
    let first = gzip(&arc("filedesc://a.arc 0.0.0.0 20000101000000 text/plain", version.as_bytes()));
    let page = gzip(&arc_page("http://www.Example.org:80/A?b&a", "20000102030405", "HTTP/1.0 200 OK\r\n\r\n<p>"));
    let file = [first.as_slice(), &page].concat();
    let found = lines_of("a.arc.gz", &file, ALL);
    assert_eq!(
        String::from_utf8_lossy(&found[0]),
        format!(
            "filedesc://a.arc 20000101000000 filedesc://a.arc warc/filedesc - {OF_NOTHING} - - {} 0 a.arc.gz",
            first.len()
        )
    );
    let line = format!(
        "org,example)/a?a&b 20000102030405 http://www.Example.org:80/A?b&a text/html 200 {} - - {} {} a.arc.gz",
        sha1(b"<p>"),
        page.len(),
        first.len()
    );
    assert_eq!(String::from_utf8_lossy(&found[1]), line);
    assert_eq!(lines_of("a.arc.gz", &file, DEFAULT), [line.into_bytes()]);
}

#[test]
fn a_plain_file_has_offsets_but_no_lengths() {
    let page = arc_page("http://a.example/", "20000102030405", "HTTP/1.0 200 OK\n\nx");
    let found = lines_of("a.arc", &[page.as_slice(), &page].concat(), DEFAULT);
    assert!(found[0].ends_with(b" - - - 0 a.arc"), "{}", String::from_utf8_lossy(&found[0]));
    assert!(found[1].ends_with(format!(" - - - {} a.arc", page.len()).as_bytes()));
}

#[test]
fn dates_of_arc_lines() {
    for (date, wanted) in [
        ("20000102030405", "20000102030405"),
        ("200001020304", "20000102030400"),
        ("2000010203", "20000102030000"),
        ("201512000000000", "20151200000000"),
        ("2000082305410049", "20000823054100"),
        ("200009180023002953", "20000918002300"),
        ("20160211000000jpg", "20160211000000"),
        ("a0d1fdddf3165d0447b1f7a285c61c1c9", "-"),
    ] {
        let found = columns("a.arc", &arc_page("http://a.example/", date, "HTTP/1.0 200 OK\n\nx"), DEFAULT);
        assert_eq!(found[1], wanted, "{date}");
    }
}

#[test]
fn dates_of_warc_records() {
    for (date, wanted) in [
        ("2019-11-18T12:56:03.352903999Z", "20191118125603"),
        ("2019-11-18T12:56:03Z", "20191118125603"),
        ("2019-11", "20191101000000"),
        ("2019-13-45T12:56:03Z", "-"),
    ] {
        let record = String::from_utf8(warc_response("", "HTTP/1.1 200 OK\r\n\r\n")).unwrap();
        let found = columns("a.warc", record.replace("2020-01-02T03:04:05Z", date).as_bytes(), DEFAULT);
        assert_eq!(found[1], wanted, "{date}");
    }
}

#[test]
fn lines_of_arc_files_that_lack_fields_or_have_too_many() {
    let block = b"HTTP/1.0 200 OK\n\nx";
    for (line, url, mime) in [
        ("http://a.example/ 192.0.2.1 20000102030405", "http://a.example/", "unk"),
        ("http://a.example/ 192.0.2.1 20000102030405 no-type", "http://a.example/", "unk"),
        ("http://a.example/ 192.0.2.1 20000102030405 imag\u{e9}", "http://a.example/", "unk"),
        ("http://a.example/ 192.0.2.1 20000102030405 text/html; charset=utf-8", "http://a.example/", "text/html"),
        ("http://a.example/ 192.0.2.1 20000102030405 text/html;charset=x", "http://a.example/", "text/html;charset=x"),
        ("http://a.example/ 20000102030405 192.0.2.1 text/plain", "http://a.example/", "text/plain"),
        ("http://a.example/b c 192.0.2.1 20000102030405 text/html", "http://a.example/b%20c", "text/html"),
        ("http://a.example/ 192.0.2.1 20000102030405 text/html 200 x - 0 a.arc", "http://a.example/", "text/html"),
        ("http://a.example/ a.example 20000102030405 text/html", "http://a.example/", "text/html"),
    ] {
        let found = columns("a.arc", &arc(line, block), DEFAULT);
        assert_eq!((found[1].as_str(), found[2].as_str()), ("20000102030405", url), "{line}");
        assert_eq!((found[3].as_str(), found[4].as_str(), found[5].as_str()), (mime, "200", &*sha1(b"x")), "{line}");
    }
}

#[test]
fn urls_are_kept_but_for_what_ends_a_column() {
    for (url, key, original) in [
        ("http://a.example/x\ry", "example,a)/xy", "http://a.example/xy"),
        ("http://a.example/x\u{c}y", "example,a)/x%0cy", "http://a.example/x%0Cy"),
        ("http://JavaScript:f('b.html')", "http://JavaScript:f('b.html')", "http://JavaScript:f('b.html')"),
    ] {
        let found = columns("a.arc", &arc_page(url, "20000102030405", "HTTP/1.0 200 OK\n\nx"), DEFAULT);
        assert_eq!((found[0].as_str(), found[2].as_str()), (key, original));
    }
    let line =
        [b"http://a.example/\xce\xd2 192.0.2.1 20000102030405 text/html".as_slice(), b" 18\nHTTP/1.0 200 OK\n\nx\n"];
    let found = lines_of("a.arc", &line.concat(), DEFAULT);
    assert!(
        found[0].starts_with(b"example,a)/%ce%d2 20000102030405 http://a.example/\xce\xd2 text/html "),
        "{found:?}"
    );
}

#[test]
fn angle_brackets_are_no_part_of_a_url() {
    let record = String::from_utf8(warc_response("", "HTTP/1.1 200 OK\r\n\r\n")).unwrap();
    let found =
        columns("a.warc", record.replace("http://www.example.org/A", "<http://b.example/>").as_bytes(), DEFAULT);
    assert_eq!((found[0].as_str(), found[2].as_str()), ("example,b)/", "http://b.example/"));
}

#[test]
fn media_types_and_codes_as_servers_send_them() {
    for (block, mime, code) in [
        ("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n", "text/html", "200"),
        ("HTTP/1.1 200 OK\ncontent-type:image/svg+xml\n\n", "image/svg+xml", "200"),
        ("HTTP/1.1 200 OK\r\nContent-Type: text/HTML\r\n\r\n", "unk", "200"),
        ("HTTP/1.1 200 OK\r\nContent-Type: \r\n\r\n", "unk", "200"),
        ("HTTP/1.1 200 OK\r\nContent-Type:\r\nContent-Type: a/b\r\n\r\n", "a/b", "200"),
        ("HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Type: c/d\r\n\r\n", "a/b", "200"),
        ("HTTP/1.1 200 OK\r\nContent-Type: text/html ;x\r\n\r\n", "unk", "200"),
        ("HTTP/1.1 302 D\u{e9}plac\u{e9}\r\nLocation: /A\r\n\r\n", "unk", "302"),
        ("HTTP 200 OK\r\n\r\n", "unk", "200"),
        ("HTTP/1.1 OK\r\n\r\n", "unk", "-"),
        ("ICY 200 OK\r\nContent-Type: a/b\r\n\r\n", "unk", "-"),
        ("", "unk", "-"),
    ] {
        let found = columns("a.warc", &warc_response("", block), DEFAULT);
        assert_eq!((found[3].as_str(), found[4].as_str(), found[6].as_str()), (mime, code, "-"), "{block}");
    }
}

#[test]
fn digests_declared_and_computed() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    let digest = |more: &str, block: &str| columns("a.warc", &warc_response(more, block), DEFAULT)[5].clone();
    assert_eq!(digest("WARC-Payload-Digest: sha1:ABC", chunked), "ABC");
    assert_eq!(digest("WARC-Payload-Digest: ABC", chunked), "ABC");
    assert_eq!(digest("WARC-Payload-Digest: md5:ABC", chunked), "md5:ABC");
    assert_eq!(digest("", chunked), sha1(b"1\r\nx\r\n0\r\n\r\n"));
    assert_eq!(digest("", "HTTP/1.1 200 OK\r\nA: b\r\n"), OF_NOTHING, "a head that never ends");
    assert_eq!(digest("", "not HTTP\r\n\r\nx"), sha1(b"not HTTP\r\n\r\nx"));
    // Without the media type of an HTTP message there may be no payload, so a digest of it says nothing.
    let fields = "WARC-Type: response\nWARC-Target-URI: http://a.example/\nWARC-Payload-Digest: sha1:ABC";
    let found = columns("a.warc", &warc(fields, b"x"), DEFAULT);
    assert_eq!((found[3].as_str(), found[4].as_str(), found[5].as_str()), ("unk", "-", &*sha1(b"x")));
    assert_eq!(columns("a.warc", &warc(fields, b"HTTP/1.1 200 OK\r\n\r\nx"), DEFAULT)[5], "ABC");
}

#[test]
fn bodies_larger_than_what_is_kept_of_them() {
    let body = "x".repeat(6 << 20);
    let page = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<meta name=robots content=noindex>{body}");
    let found = columns("a.warc", &warc_response("", &page), DEFAULT);
    assert_eq!(found[5], sha1(page.split_once("\r\n\r\n").unwrap().1.as_bytes()));
    assert_eq!(found[7], "-", "the tags of so long a page are not looked for");
    let endless = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{body}");
    let found = columns("a.warc", &warc_response("", &endless), DEFAULT);
    assert_eq!((found[3].as_str(), found[4].as_str(), found[5].as_str()), ("unk", "200", &*sha1(endless.as_bytes())));
}

#[test]
fn flags_from_header_page_and_login_form() {
    let page = |more: &str, field: &str, html: &str| {
        let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{field}\r\n{html}");
        columns("a.warc", &warc_response(more, &block), DEFAULT)[7].clone()
    };
    assert_eq!(page("", "", "<html>"), "-");
    assert_eq!(page("", "", "<head><meta name=robots content=noindex></head>"), "I");
    assert_eq!(page("", "X-Robots-Tag: noarchive, nofollow\r\n", "<meta name=robots content=noindex>"), "AFI");
    assert_eq!(page("WARC-Payload-Digest: sha1:A", "", "<meta name=robots content=nofollow>"), "F");
    assert_eq!(page("WARC-Simple-Form-Province-Status: 1,1,http://(org,example,)/", "", ""), "P");
    assert_eq!(page("WARC-Simple-Form-Province-Status: 0,0,", "", ""), "-");
    let text = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nx-robots-tag: noindex\r\n\r\n<meta name=robots content=nofollow>";
    assert_eq!(columns("a.warc", &warc_response("", text), DEFAULT)[7], "I", "only HTML has tags");
    let arc = arc_page("http://a.example/", "20000102030405", "HTTP/1.0 200 OK\n\n<meta name=robots content=nofollow>");
    assert_eq!(columns("a.arc", &arc, DEFAULT)[7], "F");
}

#[test]
fn records_without_a_document_have_lines_only_when_all_are_wanted() {
    let block = b"a: b\r\n";
    let cases: [(Vec<u8>, [&str; 5]); 8] = [
        (warc("WARC-Type: warcinfo", block), {
            let url = "warcinfo:/a.warc/archive-commons.0.0.1-SNAPSHOT-20120112102659-python";
            [url, url, "warc-info", "-", "*"]
        }),
        (
            warc("WARC-Type: request\nWARC-Target-URI: http://b.example/\nContent-Type: application/http", block),
            ["example,b)/", "http://b.example/", "warc/request", "-", "*"],
        ),
        (
            warc("WARC-Type: metadata\nWARC-Target-URI: http://b.example/\nContent-Type: image/png", block),
            ["example,b)/", "http://b.example/", "warc/metadata", "-", "*"],
        ),
        (
            warc("WARC-Type: resource\nWARC-Target-URI: screenshot:http://b.example/x", block),
            ["screenshot:http://b.example/x", "screenshot:http://b.example/x", "warc/resource", "-", "*"],
        ),
        (
            warc("WARC-Type: response\nWARC-Target-URI: dns:b.example\nContent-Type: text/dns", block),
            ["dns:b.example", "dns:b.example", "text/dns", "-", "*"],
        ),
        (
            arc("dns:b.example 192.0.2.1 20000102030405 text/dns", block),
            ["dns:b.example", "dns:b.example", "text/dns", "-", "*"],
        ),
        (
            warc_response("WARC-Payload-Digest: sha1:A", "HTTP/1.1 304 Not Modified\r\n\r\n"),
            ["org,example)/a", "http://www.example.org/A", "unk", "304", "A"],
        ),
        (
            warc(
                "WARC-Type: revisit\nWARC-Target-URI: http://b.example/\nWARC-Profile: http://netpreserve.org/warc/1.0/revisit/server-not-modified",
                b"",
            ),
            ["example,b)/", "http://b.example/", "warc/revisit", "-", "-"],
        ),
    ];
    for (record, [key, url, mime, code, digest]) in cases {
        assert_eq!(lines_of("a.warc", &record, DEFAULT), Vec::<Vec<u8>>::new(), "{url}");
        let found = columns("a.warc", &record, ALL);
        let digest = if digest == "*" { sha1(block) } else { digest.to_owned() };
        assert_eq!([&found[0], &found[2], &found[3], &found[4], &found[5]], [key, url, mime, code, &digest], "{url}");
    }
}

#[test]
fn revisits_and_resources() {
    let profile = "WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest";
    let http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    let target = "WARC-Target-URI: http://b.example/";
    for (record, mime, code, digest) in [
        (
            warc(&format!("WARC-Type: revisit\n{target}\n{profile}\nWARC-Payload-Digest: sha1:A"), http),
            "warc/revisit",
            "-",
            "A",
        ),
        (warc(&format!("WARC-Type: revisit\n{target}\n{profile}"), http), "warc/revisit", "-", "-"),
        (
            warc(&format!("WARC-Type: resource\n{target}\nContent-Type: a/b\nWARC-Payload-Digest: sha1:A"), b""),
            "a/b",
            "-",
            OF_NOTHING,
        ),
        (
            warc("WARC-Type: resource\nWARC-Target-URI: ftp://b.example/\nContent-Type: a/b", b""),
            "a/b",
            "226",
            OF_NOTHING,
        ),
        (
            warc("WARC-Type: resource\nWARC-Target-URI: ftp://b.example/\nWARC-Block-Digest: sha1:B", b""),
            "-",
            "226",
            "B",
        ),
        (
            warc(
                "WARC-Type: resource\nWARC-Target-URI: ftp://b.example/\nWARC-Block-Digest: sha1:B\nWARC-Payload-Digest: sha1:A",
                b"",
            ),
            "-",
            "226",
            "A",
        ),
    ] {
        for options in [DEFAULT, ALL] {
            let found = columns("a.warc", &record, options);
            assert_eq!(found[0], "example,b)/");
            assert_eq!([&found[3], &found[4], &found[5]], [mime, code, digest]);
        }
    }
}

#[test]
fn what_a_proxy_kept_of_failures_is_no_capture() {
    let failed = |status: &str| arc("http://a.example/ 0.0.0.0 20000102030405 unk", status.as_bytes());
    for options in [DEFAULT, ALL] {
        assert!(lines_of("a.arc", &failed("HTTP 502 Bad Gateway\n\n"), options).is_empty());
        assert!(lines_of("a.arc", &failed("HTTP 504 Gateway Timeout\n\n"), options).is_empty());
        assert_eq!(lines_of("a.arc", &failed("HTTP/1.0 502 Bad Gateway\n\n"), options).len(), 1);
        assert_eq!(lines_of("a.arc", &failed("HTTP 404 Not Found\n\n"), options).len(), 1);
        let nothing = b"http://a.example/ 192.0.2.1 20000102030405 text/html -1\n";
        assert!(lines_of("a.arc", nothing, options).is_empty());
    }
}

#[test]
fn what_is_wrong_with_a_file_is_told() {
    let page = warc_response("", "HTTP/1.1 200 OK\r\n\r\n");
    let (_folder, path) = write("a.warc", &[page.as_slice(), b"rubbish\r\n", &page].concat());
    let mut out = Vec::new();
    let written = cdx::write_file(&path, DEFAULT, &mut out).unwrap();
    assert_eq!((written.records, written.lines), (2, 2));
    assert!(!written.findings.is_empty());
}
