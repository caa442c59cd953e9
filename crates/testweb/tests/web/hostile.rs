//! Every row of the hostile web, seen by a client that reads raw bytes; and what the server says it did.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use skep_testweb::{Behaviour, HostPlan, Hostile, Plan, Proof, Robots, Row, Settings, Shape, Side, Web, loopback};

use crate::client::{Client, serve};

/// A web of one host `a.test` with this trouble.
fn web(hostile: Hostile) -> Web {
    let mut host = HostPlan::generated("a.test", Shape::pages(8).frozen()).robots(Robots::Allow);
    host.wildcard = true;
    serve(Plan::new(1).host(host.behaving(Behaviour::hostile(hostile))))
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    // No test waits this long; it only turns a hang into a failure.
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// What the server sends to one request, at most so many bytes, then goes away.
fn taste(web: &Web, host: &str, path: &str, bytes_max: usize) -> Vec<u8> {
    let mut stream = connect(web.address("a.test").unwrap());
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: tester/1.0\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut seen = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    while seen.len() < bytes_max {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(n) => seen.extend_from_slice(&piece[..n]),
        }
    }
    seen
}

fn has(seen: &[u8], wanted: &[u8]) -> bool {
    seen.windows(wanted.len()).any(|window| window == wanted)
}

/// The proof, once nothing is under way any more.
fn settled(web: &Web) -> Proof {
    loop {
        let proof = web.proof("a.test").unwrap();
        if proof.under_way == 0 {
            return proof;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Row and form, the address asked, what must be seen in the first megabyte.
#[rustfmt::skip]
const SEEN: &[(Row, &str, &str, &[u8])] = &[
    (Row::Maze, "maze", "/maze/maze", b"<a href=\"/maze/"),
    (Row::Calendar, "calendar", "/calendar/calendar/2031/12", b"/calendar/calendar/2032/01"),
    (Row::Calendar, "facets", "/calendar/facets?size=1", b"size=1&amp;colour=4"),
    (Row::Segments, "repeating", "/segments/repeating/forum/thread/", b"href=\"forum/thread/\""),
    (Row::Segments, "deepening", "/segments/deepening/x", b"href=\"/segments/deepening/x/"),
    (Row::Sessions, "query", "/sessions/query", b"?PHPSESSID="),
    (Row::Sessions, "path", "/sessions/path", b";jsessionid="),
    (Row::Sessions, "random", "/sessions/random", b"/sessions/random/3?"),
    (Row::Subdomains, "subdomains", "/subdomains/subdomains", b".a.test/\">"),
    (Row::Redirects, "circle", "/redirects/circle/back", b"location: /redirects/circle\r\n"),
    (Row::Redirects, "itself", "/redirects/itself", b"location: /redirects/itself\r\n"),
    (Row::Redirects, "chain", "/redirects/chain/41", b"location: /redirects/chain/42\r\n"),
    (Row::Redirects, "cookie", "/redirects/cookie", b"Set-Cookie: seen=yes"),
    (Row::Redirects, "growing", "/redirects/growing/on", b"location: /redirects/growing/on/on\r\n"),
    (Row::Redirects, "nowhere", "/redirects/nowhere", b"HTTP/1.1 302 Found\r\nServer"),
    (Row::Refreshes, "circle", "/refreshes/circle", b"content=\"0; url=/refreshes/circle/back\""),
    (Row::Refreshes, "chain", "/refreshes/chain/7", b"url=/refreshes/chain/8"),
    (Row::Refreshes, "header", "/refreshes/header", b"Refresh: 0; url=/refreshes/header/1"),
    (Row::Refreshes, "script", "/refreshes/script", b"window.location.href"),
    (Row::Bombs, "gzip", "/bombs/gzip", b"Content-Encoding: gzip\r\n"),
    (Row::Bombs, "deflate", "/bombs/deflate", b"Content-Encoding: deflate\r\n"),
    (Row::Bombs, "br", "/bombs/br", b"Content-Encoding: br\r\n"),
    (Row::Bombs, "zstd", "/bombs/zstd", b"\x28\xb5\x2f\xfd"),
    (Row::Bombs, "image.png", "/bombs/image.png", b"image/png"),
    (Row::Nested, "two", "/nested/two", b"Content-Encoding: gzip, gzip\r\n"),
    (Row::Nested, "three", "/nested/three", b"deflate, gzip, br"),
    (Row::Nested, "ten", "/nested/ten", b"gzip, gzip, gzip, gzip, gzip, gzip, gzip, gzip, gzip, gzip\r\n"),
    (Row::Nested, "bomb", "/nested/bomb", b"gzip, gzip\r\n"),
    (Row::Nested, "list", "/nested/list", b"gzip, br, zstd, gzip"),
    (Row::Mislabelled, "gzip-is-plain", "/mislabelled/gzip-is-plain", b"What is said is not"),
    (Row::Mislabelled, "plain-is-gzip", "/mislabelled/plain-is-gzip", b"\r\n\r\n\x1f\x8b"),
    (Row::Mislabelled, "br-is-gzip", "/mislabelled/br-is-gzip", b"\r\n\r\n\x1f\x8b"),
    (Row::Mislabelled, "deflate-is-raw", "/mislabelled/deflate-is-raw", b"Content-Encoding: deflate"),
    (Row::Mislabelled, "gzip-is-cut", "/mislabelled/gzip-is-cut", b"Content-Length: 60\r\n"),
    (Row::Mislabelled, "gzip-then-more", "/mislabelled/gzip-then-more", b"that is no gzip"),
    (Row::Mislabelled, "unknown", "/mislabelled/unknown", b"x-unheard-of"),
    (Row::Endless, "zeros", "/endless/zeros", &[0; 100_000]),
    (Row::Endless, "chunks", "/endless/chunks", b"\r\n1000\r\nxxx"),
    (Row::Endless, "page", "/endless/page", b"And so on"),
    (Row::Slow, "head", "/slow/head", b"HTTP/1.1 200 OK\r\n"),
    (Row::Slow, "body", "/slow/body", b"Patience"),
    (Row::Slow, "chunks", "/slow/chunks", b"\r\n1\r\nP\r\n1\r\na\r\n"),
    (Row::LengthLong, "closed", "/length-long/closed", b"There should be more"),
    (Row::LengthLong, "held", "/length-long/held", b"There should be more"),
    (Row::LengthShort, "text", "/length-short/text", b"and this is more"),
    (Row::LengthShort, "answer", "/length-short/answer", b"</html>\nHTTP/1.1 200 OK\r\n"),
    (Row::LengthShort, "nothing-declared", "/length-short/nothing-declared", b"Content-Length: 0\r\n\r\n<!DOCTYPE"),
    (Row::Lengths, "and-chunked", "/lengths/and-chunked", b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
    (Row::Lengths, "twice", "/lengths/twice", b"\r\nContent-Length: 7\r\n"),
    (Row::Lengths, "twice-equal", "/lengths/twice-equal", b"Content-Length"),
    (Row::Lengths, "list", "/lengths/list", b", "),
    (Row::Lengths, "negative", "/lengths/negative", b"Content-Length: -1\r\n"),
    (Row::Lengths, "plus", "/lengths/plus", b"Content-Length: +"),
    (Row::Lengths, "huge", "/lengths/huge", b"99999999999999999999"),
    (Row::Lengths, "words", "/lengths/words", b"Content-Length: quite long"),
    (Row::Lengths, "empty", "/lengths/empty", b"Content-Length: \r\n"),
    (Row::Chunks, "no-number", "/chunks/no-number", b"\r\nxyz\r\n"),
    (Row::Chunks, "overflow", "/chunks/overflow", b"\r\nfffffffffffffffffff\r\n"),
    (Row::Chunks, "bare-lf", "/chunks/bare-lf", b"\n0\n\n"),
    (Row::Chunks, "no-last", "/chunks/no-last", b"In pieces"),
    (Row::Chunks, "extension", "/chunks/extension", b";name=xxxxxxxx"),
    (Row::Chunks, "trailers", "/chunks/trailers", b"0\r\nX-Trailer: "),
    (Row::Chunks, "long-size", "/chunks/long-size", b"00000000000000000000000000000"),
    (Row::Headers, "no-colon", "/headers/no-colon", b"\r\na line without any\r\n"),
    (Row::Headers, "nul", "/headers/nul", b"a\0b"),
    (Row::Headers, "bare-lf", "/headers/bare-lf", b"HTTP/1.1 200 OK\nX: y\n"),
    (Row::Headers, "bare-cr", "/headers/bare-cr", b"a\rb"),
    (Row::Headers, "blanks", "/headers/blanks", b"X-Before : b"),
    (Row::Headers, "folded", "/headers/folded", b"a\r\n  b\r\n\tc"),
    (Row::Headers, "many", "/headers/many", b"X-Line: one of many\r\nX-Line"),
    (Row::Headers, "long", "/headers/long", b"X-Long: xxxxxxxxxxxxx"),
    (Row::Headers, "endless", "/headers/endless", b"X-Line: one of ever more\r\n"),
    (Row::Headers, "bytes", "/headers/bytes", b"\xe9t\xe9: summer"),
    (Row::StatusLines, "0.9", "/status-lines/0.9", b"<!DOCTYPE html>"),
    (Row::StatusLines, "icy", "/status-lines/icy", b"ICY 200 OK\r\n"),
    (Row::StatusLines, "2.0", "/status-lines/2.0", b"HTTP/2.0 200"),
    (Row::StatusLines, "garbage", "/status-lines/garbage", b"\x16\x03\x01 what"),
    (Row::StatusLines, "999", "/status-lines/999", b"HTTP/1.1 999 "),
    (Row::StatusLines, "0", "/status-lines/0", b"HTTP/1.1 0 "),
    (Row::StatusLines, "99", "/status-lines/99", b"HTTP/1.1 99 "),
    (Row::StatusLines, "1000", "/status-lines/1000", b"HTTP/1.1 1000 "),
    (Row::StatusLines, "words", "/status-lines/words", b"HTTP/1.1 OK"),
    (Row::StatusLines, "glued", "/status-lines/glued", b"200OK"),
    (Row::StatusLines, "no-reason", "/status-lines/no-reason", b"HTTP/1.1 200\r\n"),
    (Row::StatusLines, "blank-lines", "/status-lines/blank-lines", b"\r\n\r\n\r\nHTTP/1.1 200"),
    (Row::Interim, "flood", "/interim/flood", b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 102"),
    (Row::Interim, "endless", "/interim/endless", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100"),
    (Row::Interim, "upgrade", "/interim/upgrade", b"HTTP/1.1 101 "),
    (Row::Interim, "204-body", "/interim/204-body", b"At last"),
    (Row::Interim, "304-body", "/interim/304-body", b"At last"),
    (Row::Interim, "hints", "/interim/hints", b"HTTP/1.1 103 Early Hints\r\n"),
    (Row::PrivateAddresses, "redirect", "/private-addresses/redirect/8", b"location: http://169.254.169.254/"),
    (Row::PrivateAddresses, "literals", "/private-addresses/literals", b"http://0x7f000001/"),
    (Row::Ports, "links", "/ports/links", b"http://a.test:6379/"),
    (Row::Ports, "redirect", "/ports/redirect/25", b"location: http://a.test:25/"),
    (Row::LongUrls, "links", "/long-urls/links", &[b'x'; 65_536]),
    (Row::LongUrls, "redirect", "/long-urls/redirect", &[b'x'; 65_536]),
    (Row::LongUrls, "schemes", "/long-urls/schemes", b"data:text/html;base64,AAAA"),
    (Row::ControlBytes, "links", "/control-bytes/links", b"HTTP/1.1\r\nX-Injected: yes\r\n\r\n"),
    (Row::ControlBytes, "redirect", "/control-bytes/redirect", b"a\x01b%0d%0aX-Injected"),
    (Row::Credentials, "links", "/credentials/links", b"http://visitor:hunter2@a.test/"),
    (Row::Credentials, "redirect", "/credentials/redirect", b"Location: http://other.a.test/"),
    (Row::Credentials, "demand", "/credentials/demand", b"WWW-Authenticate: Basic"),
    (Row::Cookies, "many", "/cookies/many", b"Set-Cookie: c999=999"),
    (Row::Cookies, "giant", "/cookies/giant", &[b'x'; 500_000]),
    (Row::Cookies, "growing", "/cookies/growing/3", b"Set-Cookie: c4x99="),
    (Row::Cookies, "foreign", "/cookies/foreign", b"Domain=.com"),
    (Row::Markup, "tags", "/markup/tags", b"<b><b><b><b>"),
    (Row::Markup, "nesting", "/markup/nesting", b"<div><div><div>"),
    (Row::Markup, "attribute", "/markup/attribute", &[b'x'; 500_000]),
    (Row::Markup, "attributes", "/markup/attributes", b" a0=x a1=x a2=x"),
    (Row::Markup, "links", "/markup/links", b"<a href=\"/of-a-million/9999\">"),
    (Row::Markup, "comment", "/markup/comment", b"<!-- - <a href"),
    (Row::Markup, "open-tag", "/markup/open-tag", b"/never/closed /never/closed "),
    (Row::Patterns, "text", "/patterns/text", &[b'a'; 10_000]),
    (Row::Patterns, "entities", "/patterns/entities", b"&#x110000;"),
    (Row::Patterns, "css", "/patterns/css", b"@import url(@import url("),
    (Row::Patterns, "srcset", "/patterns/srcset", b"a 1x, ,,,( a 1x"),
    (Row::Patterns, "headers", "/patterns/headers", b"<<<<<<<<<<<<<<<"),
    (Row::Sitemaps, "entities.xml", "/sitemaps/entities.xml", b"<!ENTITY e11 \"&e10;&e10;"),
    (Row::Sitemaps, "external.xml", "/sitemaps/external.xml", b"SYSTEM \"file:///etc/hostname\""),
    (Row::Sitemaps, "itself.xml", "/sitemaps/itself.xml", b"http://a.test/sitemaps/itself.xml"),
    (Row::Sitemaps, "chain.xml", "/sitemaps/chain.xml?hop=5", b"chain.xml?hop=6"),
    (Row::Sitemaps, "nested.xml", "/sitemaps/nested.xml?hop=2", b"nested.xml?hop=30"),
    (Row::Sitemaps, "bomb.xml.gz", "/sitemaps/bomb.xml.gz", b"\r\n\r\n\x1f\x8b"),
    (Row::Sitemaps, "million.xml", "/sitemaps/million.xml", b"/of-a-million/9999.html"),
    (Row::Sitemaps, "foreign.xml", "/sitemaps/foreign.xml", b".foreign.test/"),
    (Row::Charsets, "utf-16", "/charsets/utf-16", b"<\0!\0D\0"),
    (Row::Charsets, "utf-7", "/charsets/utf-7", b"+ADw-script+AD4-"),
    (Row::Charsets, "latin-as-utf-8", "/charsets/latin-as-utf-8", b"charset=utf-8"),
    (Row::Charsets, "utf-8-as-latin", "/charsets/utf-8-as-latin", b"iso-8859-1"),
    (Row::Charsets, "mixed", "/charsets/mixed", b"koi8-r"),
    (Row::Charsets, "unknown", "/charsets/unknown", b"klingon-8"),
    (Row::Charsets, "shift-jis", "/charsets/shift-jis", b"\x83\x65"),
    (Row::SoftMissing, "missing", "/never/there.html", b"HTTP/1.1 200 OK"),
    (Row::Challenges, "moment", "/", b"cf-mitigated: challenge"),
    (Row::Challenges, "proof-of-work", "/", b"anubis_challenge"),
    (Row::Challenges, "denied", "/", b"Access Denied"),
    (Row::Challenges, "captcha", "/", b"g-recaptcha"),
    (Row::Challenges, "cloaked", "/", b"An honest page"),
    (Row::Portal, "page", "/any/thing", b"Network log-in"),
    (Row::Portal, "redirect", "/any/thing", b"location: http://portal.hotel.test/login"),
    (Row::Opaque, "eicar", "/opaque/eicar", b"EICAR-STANDARD"),
    (Row::Opaque, "program.exe", "/opaque/program.exe", b"MZ\x90\0"),
    (Row::Opaque, "page.jpg", "/opaque/page.jpg", b"image/jpeg"),
    (Row::Opaque, "names.tar", "/opaque/names.tar", b"../../../../tmp/escaped\0"),
    (Row::Opaque, "program.html", "/opaque/program.html", b"text/html"),
    (Row::Opaque, "polyglot.gif", "/opaque/polyglot.gif", b"GIF89a/*<!DOCTYPE"),
    (Row::Opaque, "sniff", "/opaque/sniff", b"\0\x01\x02<!DOCTYPE"),
    (Row::Paths, "links", "/paths/links", b"../../../../../../etc/passwd"),
    (Row::Paths, "attachment", "/paths/attachment/0", b"filename=\"../../../../tmp/escaped\""),
    (Row::RobotsSize, "huge", "/robots.txt", b"# a line that says nothing"),
    (Row::RobotsSize, "endless", "/robots.txt", b"# a line that says nothing"),
    (Row::RobotsSize, "slow", "/robots.txt", b"User-agent"),
    (Row::RobotsSize, "binary", "/robots.txt", b"application/octet-stream"),
    (Row::RobotsSize, "html", "/robots.txt", b"<!DOCTYPE html>"),
    (Row::RobotsSize, "bomb", "/robots.txt", b"Content-Encoding: gzip"),
    (Row::RobotsSize, "one-line", "/robots.txt", b"/private/xxxxxxxx"),
    (Row::RobotsRedirects, "itself", "/robots.txt", b"Location: /robots.txt\r\n"),
    (Row::RobotsRedirects, "circle", "/robots.txt?hop=1", b"Location: /robots.txt\r\n"),
    (Row::RobotsRedirects, "chain", "/robots.txt?hop=7", b"Location: /robots.txt?hop=8\r\n"),
    (Row::RobotsRedirects, "elsewhere", "/robots.txt", b"Location: http://row-24-elsewhere.test/robots.txt\r\n"),
    (Row::RobotsRedirects, "cookie", "/robots.txt", b"Set-Cookie: seen=yes"),
    (Row::RobotsRules, "many", "/robots.txt", b"Disallow: /private/20000/*/x$"),
    (Row::RobotsRules, "stars", "/robots.txt", b"*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a"),
];

/// Bytes of a form that a test reads at most.
const TASTE_BYTES: usize = 1 << 20;

#[test]
fn each_form_is_seen_and_proven() {
    for (row, form, path, wanted) in SEEN {
        let whole = row.forms().iter().any(|each| each.name == *form && each.whole);
        let hostile = Hostile { row: *row, form: whole.then(|| form.to_string()), ms: None, bytes: None };
        // Slow ones a thousand times as fast; large ones as large as they are.
        let slow = matches!(row, Row::Slow | Row::LengthLong) || *form == "slow";
        let web = web(if slow { hostile.ms(1) } else { hostile });
        let seen = taste(&web, "a.test", path, TASTE_BYTES);
        let text = String::from_utf8_lossy(&seen[..seen.len().min(400)]);
        assert!(has(&seen, wanted), "{} {form}: {text}", row.name());
        let proof = settled(&web);
        assert_eq!((proof.deeds, proof.requests, proof.connections), (1, 1, 1), "{} {form}", row.name());
        assert_eq!(proof.forms.get(*form), Some(&1), "{} {form}: {:?}", row.name(), proof.forms);
        // A lawful answer counts its body alone, and a redirect may be all head.
        assert!(proof.bytes > 0, "{} {form}", row.name());
        web.stop();
    }
}

/// Forms that other tests below look at, because one answer does not show them.
const ELSEWHERE: &[(Row, &str)] = &[
    (Row::Endless, "radio"),
    (Row::Slow, "first-byte"),
    (Row::Silent, "plain"),
    (Row::Silent, "handshake"),
    (Row::LengthLong, "reset"),
    (Row::Chunks, "cut"),
    (Row::Mirrors, "mirror"),
];

#[test]
fn no_form_of_http_is_left_out() {
    for row in Row::all().filter(|row| row.side() == Side::Http) {
        for form in row.forms() {
            let seen = SEEN.iter().any(|(r, name, ..)| *r == row && *name == form.name);
            let elsewhere = ELSEWHERE.contains(&(row, form.name)) || matches!(row, Row::Refusals | Row::ProviderBan);
            assert!(seen || elsewhere, "{} {}", row.name(), form.name);
        }
    }
}

#[test]
fn the_front_page_leads_to_ordinary_pages_and_into_the_trouble() {
    let web = web(Hostile::new(Row::Redirects));
    let mut client = Client::plain(web.address("a.test").unwrap());
    let front = client.get("a.test", "/", &[]);
    assert_eq!(front.status, 200);
    for form in Row::Redirects.forms() {
        assert!(front.text().contains(&format!("href=\"/redirects/{}\"", form.name)));
    }
    let ordinary: Vec<String> = front
        .text()
        .lines()
        .filter(|l| l.contains(">more<"))
        .filter_map(|l| Some(l.split('"').nth(1)?.into()))
        .collect();
    assert!(!ordinary.is_empty());
    for path in ordinary.iter().map(|path| path.replace("&amp;", "&")) {
        assert_eq!(client.get("a.test", &path, &[]).status, 200, "{path}");
    }
    let proof = web.proof("a.test").unwrap();
    assert_eq!((proof.deeds, proof.connections), (0, 1), "so far nothing is wrong");
}

#[test]
fn one_connection_goes_on_after_raw_answers() {
    let web = web(Hostile::new(Row::Paths));
    let mut client = Client::plain(web.address("a.test").unwrap());
    for _ in 0..3 {
        assert_eq!(client.get("a.test", "/paths/attachment/1", &[]).status, 200);
        assert_eq!(client.get("a.test", "/", &[]).status, 200);
    }
    let proof = web.proof("a.test").unwrap();
    assert_eq!((proof.connections, proof.requests, proof.deeds), (1, 6, 3));
    assert!(web.requests().iter().all(|request| request.status == 200 && request.end_us.is_some()));
}

#[test]
fn what_is_held_is_measured_until_the_visitor_leaves() {
    for (row, path) in
        [(Row::Silent, "/silent/plain"), (Row::Slow, "/slow/first-byte"), (Row::Endless, "/endless/radio")]
    {
        let web = web(Hostile::new(row).ms(if row == Row::Endless { 1 } else { 600_000 }));
        let mut stream = connect(web.address("a.test").unwrap());
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n").as_bytes()).unwrap();
        while web.proof("a.test").unwrap().under_way == 0 {
            std::thread::yield_now();
        }
        if row == Row::Endless {
            stream.read_exact(&mut [0; 50_000]).unwrap();
        }
        std::thread::sleep(Duration::from_millis(30)); // the time that must be found again in the proof
        drop(stream);
        let proof = settled(&web);
        assert_eq!(proof.given_up, 1, "{path}");
        assert!(proof.held_ms >= 30, "{path}: {proof:?}");
        assert_eq!(proof.bytes >= 50_000, row == Row::Endless, "{path}");
        assert!(web.requests()[0].end_us.is_some(), "the auditor knows that it is over");
    }
}

#[test]
fn connections_are_reset() {
    for (row, path) in [(Row::LengthLong, "/length-long/reset"), (Row::Chunks, "/chunks/cut")] {
        let web = web(Hostile::new(row));
        let mut stream = connect(web.address("a.test").unwrap());
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n").as_bytes()).unwrap();
        let end = stream.read_to_end(&mut Vec::new());
        assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset, "{path}");
        assert_eq!(settled(&web).deeds, 1);
    }
}

#[test]
fn a_maze_is_the_same_on_every_visit_and_has_no_end() {
    let web = web(Hostile::new(Row::Maze));
    let mut client = Client::plain(web.address("a.test").unwrap());
    let mut path = "/maze/maze".to_string();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let page = client.get("a.test", &path, &[]).text();
        assert_eq!(page, client.get("a.test", &path, &[]).text());
        let links = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        path = links.filter(|link| link.starts_with("/maze/")).find(|link| !seen.contains(*link)).unwrap().to_string();
        seen.insert(path.clone());
    }
    assert_eq!(web.proof("a.test").unwrap().forms["maze"], 100);
}

#[test]
fn names_below_a_host_answer_and_what_leaks_is_seen() {
    let web = web(Hostile::new(Row::Subdomains));
    let seen = taste(&web, "deep.down.a.test", "/", TASTE_BYTES);
    assert!(has(&seen, b".a.test/\">"));
    assert!(web.map().hosts[0].resolve.iter().any(|line| line.starts_with("*.a.test=127.0.0.1:")));

    let web = self::web(Hostile::new(Row::Credentials));
    let mut client = Client::plain(web.address("a.test").unwrap());
    client.get("other.a.test", "/credentials/arrived", &[]);
    client.get("other.a.test", "/", &[("Cookie", "session=hunter2")]);
    client.get("other.a.test", "/", &[("Authorization", "Basic dmlzaXRvcjpodW50ZXIy")]);
    let forms = web.proof("a.test").unwrap().forms;
    assert_eq!((forms["other-name"], forms["leaked"]), (1, 2));

    let web = self::web(Hostile::new(Row::ControlBytes));
    Client::plain(web.address("a.test").unwrap()).get("a.test", "/x", &[("X-Injected", "yes")]);
    assert_eq!(web.proof("a.test").unwrap().forms["injected"], 1);

    let web = self::web(Hostile::new(Row::Cookies));
    let cookie = "x".repeat(9_000);
    Client::plain(web.address("a.test").unwrap()).get("a.test", "/", &[("Cookie", &cookie)]);
    assert_eq!(web.proof("a.test").unwrap().forms["cookies-returned"], 1);

    let web = self::web(Hostile::new(Row::LongUrls));
    let path = format!("/long-urls/{}", "x".repeat(9_000));
    Client::plain(web.address("a.test").unwrap()).get("a.test", &path, &[]);
    assert_eq!(web.proof("a.test").unwrap().forms["too-long-asked"], 1);

    let web = self::web(Hostile::new(Row::PrivateAddresses));
    let mut client = Client::plain(web.address("a.test").unwrap());
    client.get("loopback.a.test", "/", &[]);
    client.get("rebinding.a.test", "/", &[]);
    client.get("127.0.0.1", "/private-addresses/", &[]);
    assert_eq!(web.proof("a.test").unwrap().forms["reached"], 1);
    assert_eq!(web.proof(skep_testweb::WEB).unwrap().forms["reached-by-address"], 1);
}

#[test]
fn who_comes_to_a_bad_port_is_counted() {
    let address = loopback(222);
    let host = HostPlan::generated("a.test", Shape::pages(3)).on(&[address]).behaving(Behaviour::hostile(Row::Ports));
    let web = serve(Plan::new(1).host(host));
    // Another program may have some of these ports, but hardly all.
    let came =
        [5060, 6000, 6379, 6667, 10080].iter().filter(|port| TcpStream::connect((address, **port)).is_ok()).count();
    assert!(came > 0);
    while web.proof("a.test").unwrap().forms.get("bad-port").copied().unwrap_or(0) < came as u64 {
        std::thread::yield_now();
    }
}

#[test]
fn refusals_come_in_every_form() {
    for form in Row::Refusals.forms() {
        let web = web(Hostile::new(Row::Refusals).form(form.name));
        let mut client = Client::plain(web.address("a.test").unwrap());
        assert_eq!(client.get("a.test", "/robots.txt", &[]).status, 200);
        let refused = (0..5).map(|_| client.get("a.test", "/", &[])).last().unwrap();
        assert_eq!(refused.status, if form.name == "unavailable" { 503 } else { 429 });
        let value = refused.header("retry-after");
        match form.name {
            "bare" => assert_eq!(value, None),
            "seconds" | "unavailable" => assert_eq!(value, Some("2")),
            "year" => assert_eq!(value, Some("31536000")),
            "words" => assert_eq!(value, Some("soon")),
            _ => assert!(value.unwrap().ends_with(" GMT"), "{value:?}"),
        }
        assert!(web.proof("a.test").unwrap().forms[form.name] >= 1);
    }
}

#[test]
fn hosts_on_one_address_ban_together() {
    for form in Row::ProviderBan.forms() {
        let host = |name: &str| {
            let hostile = Hostile::new(Row::ProviderBan).form(form.name).ms(1);
            HostPlan::generated(name, Shape::pages(3)).robots(Robots::Allow).behaving(Behaviour::hostile(hostile))
        };
        let web = serve(Plan::new(1).host(host("a.test")).host(host("b.test")));
        let mut client = Client::plain(web.address("a.test").unwrap());
        (0..20).for_each(|_| assert_eq!(client.get("a.test", "/", &[]).status, 200));
        drop(client);
        let mut stream = connect(web.address("b.test").unwrap());
        stream.write_all(b"GET / HTTP/1.1\r\nHost: b.test\r\nConnection: close\r\n\r\n").unwrap();
        let mut seen = Vec::new();
        let _ = stream.read_to_end(&mut seen);
        match form.name {
            "forbidden" => assert!(seen.starts_with(b"HTTP/1.1 403")),
            "too-many" => assert!(seen.starts_with(b"HTTP/1.1 429")),
            _ => assert!(seen.is_empty()),
        }
        assert_eq!(web.proof("b.test").unwrap().forms[form.name], 1);
    }
}

#[test]
fn the_portal_takes_all_hosts_at_once() {
    let host = |name: &str| HostPlan::generated(name, Shape::pages(3));
    let web = serve(Plan::new(1).host(host("a.test")).host(host("b.test")));
    web.behave("*", Behaviour::hostile(Row::Portal)).unwrap();
    for host in ["a.test", "b.test"] {
        let page = Client::plain(web.address(host).unwrap()).get(host, "/", &[]);
        assert!(page.text().contains("Network log-in"));
    }
    web.behave("*", Behaviour::default()).unwrap();
    assert!(!Client::plain(web.address("a.test").unwrap()).get("a.test", "/", &[]).text().contains("Network log-in"));
}

#[test]
fn the_whole_hostile_web_is_served_at_once() {
    let web = Web::start(skep_testweb::World::build(Plan::hostile(1)).unwrap(), Settings::default()).unwrap();
    let mirror = "row-35-mirrors-03.test";
    let page = Client::plain(web.address(mirror).unwrap()).get(mirror, "/any.html", &[]);
    assert!(page.text().contains("row-35-mirrors-04.test"));
    let mut fronts = 0;
    for place in &web.map().hosts {
        let host = &place.host;
        if place.url.starts_with("https:") || host.contains("-robots-") {
            continue;
        }
        let front = Client::plain(place.addresses[0]).get(host, "/", &[]);
        assert!([200, 403, 503].contains(&front.status) || host.contains("portal"), "{host}: {}", front.status);
        fronts += 1;
    }
    assert!(fronts > 50);
    let proofs = web.proofs();
    assert!(proofs.values().all(|proof| proof.under_way == 0));
}

#[test]
fn wrong_forms_and_rows_are_refused_with_what_there_is() {
    let web = web(Hostile::new(Row::Maze));
    let refused = |hostile| web.behave("a.test", Behaviour::hostile(hostile)).unwrap_err();
    assert!(refused(Hostile::new(Row::Bombs).form("lzma")).contains("it has gzip, deflate, br, zstd"));
    assert!(refused(Hostile::new(Row::ClockJumps)).contains("visitor's clock"));
    assert!(refused(Hostile::new(Row::Slow).ms(u64::MAX)).contains("at most"));
    let json = r#"{"trouble": {"hostile": {"row": "length-long", "form": "held", "ms": 5}}}"#;
    let read: Behaviour = serde_json::from_str(json).unwrap();
    assert_eq!(read, Behaviour::hostile(Hostile::new(Row::LengthLong).form("held").ms(5)));
}
