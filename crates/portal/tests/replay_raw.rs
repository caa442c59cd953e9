//! `id_`: archived answers as they were fetched, over real sockets.

mod site;

use site::{Site, Warc, add};
use skep_portal::{Access, Settings};

const HOME: &str = "http://example.org/";

fn long_body() -> Vec<u8> {
    (0..3_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn site() -> Site {
    let chunked = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nSet-Cookie: a=b\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    let moved = b"HTTP/1.1 301 Moved\r\nLocation: ../there?x=1#y\r\nContent-Length: 0\r\n\r\n";
    let gone = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\ngone";
    let odd = b"HTTP 200 Document follows\nContent-type: text/plain\n\nodd";
    let one = Warc::new()
        .page(HOME, "2014-01-26T20:06:24Z", "text/html; charset=utf-8", b"<p>first</p>")
        .page(HOME, "2015-03-01T00:00:00Z", "text/html", b"<p>second</p>")
        .answer("http://example.org/chunked", "2014-01-26T20:06:25Z", chunked)
        .answer("http://example.org/a/moved", "2014-01-26T20:06:25Z", moved)
        .answer("http://example.org/gone", "2014-01-26T20:06:25Z", gone)
        .answer("http://example.org/odd", "2014-01-26T20:06:25Z", odd)
        .page("http://example.org/long", "2014-01-26T20:06:25Z", "video/mp4", &long_body())
        .resource("urn:note:1", "2014-01-26T20:06:25Z", "text/plain", b"a note")
        .private("http://example.org/secret", "2014-01-26T20:06:25Z", b"secret");
    let two = Warc::new()
        .same(HOME, "2016-01-01T00:00:00Z", b"<p>first</p>", Some((HOME, "2014-01-26T20:06:24Z")))
        .same(HOME, "2017-01-01T00:00:00Z", b"<p>second</p>", None)
        .not_modified(HOME, "2018-01-01T00:00:00Z", "2015-03-01T00:00:00Z")
        .same("http://example.org/orphan", "2017-01-01T00:00:00Z", b"nowhere", None);
    Site::new(&[("one", "one.warc.gz", one.bytes), ("two", "two.warc.gz", two.bytes)])
}

#[test]
fn an_answer_comes_back_as_it_was_fetched() {
    let site = site();
    let got = site.get("/web/20140126200624id_/http://example.org/").is(200);
    assert_eq!(got.text(), "<p>first</p>");
    assert_eq!(got.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(got.header("x-archive-orig-x-made"), Some("then"));
    assert_eq!(got.header("x-archive-orig-content-length"), Some("12"));
    assert_eq!(got.header("content-disposition"), Some("attachment"), "a page must not run on the portal's origin");
    assert!(got.header("content-security-policy").is_some_and(|policy| policy.contains("sandbox")));
    assert_eq!(got.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(got.header("memento-datetime"), Some("Sun, 26 Jan 2014 20:06:24 GMT"));
    assert!(got.header("link").is_some_and(|link| link.starts_with("<http://example.org/>; rel=\"original\"")));
    assert!(got.header("x-made").is_none());

    let chunked = site.get("/web/20140126200625id_/http://example.org/chunked").is(200);
    assert_eq!(chunked.text(), "abcde");
    assert_eq!(chunked.header("x-archive-orig-set-cookie"), Some("a=b"));
    assert_eq!(chunked.header("set-cookie"), None);
    assert_eq!(chunked.header("content-disposition"), None);

    let gone = site.get("/web/20140126200625id_/http://example.org/gone").is(404);
    assert_eq!(gone.text(), "gone");
    assert_eq!(site.get("/web/20140126200625id_/http://example.org/odd").is(200).text(), "odd");
    assert_eq!(site.get("/web/20140126200625id_/urn:note:1").is(200).text(), "a note");
    site.get("/web/20140126200625id_/http://example.org/a/moved")
        .leads_to(301, "/web/20140126200625id_/http://example.org/there?x=1");
}

#[test]
fn a_time_leads_to_the_nearest_capture() {
    let site = site();
    for (asked, exact) in [
        ("2014", "20150301000000"),
        ("20140127", "20140126200624"),
        ("20140126200625", "20140126200624"),
        ("19960101000000", "20140126200624"),
        ("2099", "20180101000000"),
    ] {
        site.get(&format!("/web/{asked}id_/{HOME}")).leads_to(302, &format!("/web/{exact}id_/{HOME}"));
    }
    site.get("/web/id_/example.org").leads_to(302, "/web/20180101000000id_/http://example.org");
    // In a collection, what it holds.
    site.get("/one/2099id_/http://example.org/").leads_to(302, "/one/20150301000000id_/http://example.org/");
}

#[test]
fn revisits_are_answered_with_what_they_stand_for_across_collections() {
    let site = site();
    let named = site.get("/two/20160101000000id_/http://example.org/").is(200);
    assert_eq!(named.text(), "<p>first</p>");
    assert_eq!(named.header("x-archive-orig-x-visit"), Some("again"), "what the server said that time");
    assert_eq!(named.header("memento-datetime"), Some("Fri, 01 Jan 2016 00:00:00 GMT"));
    assert_eq!(site.get("/web/20170101000000id_/http://example.org/").is(200).text(), "<p>second</p>");
    let unchanged = site.get("/web/20180101000000id_/http://example.org/").is(200);
    assert_eq!(unchanged.text(), "<p>second</p>");
    let orphan = site.get("/web/20170101000000id_/http://example.org/orphan").is(404);
    assert!(orphan.text().contains("earlier capture"), "{}", orphan.text());
}

#[test]
fn parts_and_heads_of_bodies() {
    let site = site();
    let long = long_body();
    let target = "/web/20140126200625id_/http://example.org/long";
    let whole = site.get(target).is(200);
    assert!(whole.whole && whole.body == long);
    let head = site.ask("HEAD", target, &[], b"").is(200);
    assert!(head.body.is_empty() && head.header("content-type") == Some("video/mp4"));
    for (range, first, last) in [
        ("bytes=0-9", 0, 9),
        ("bytes=2999990-", 2_999_990, 2_999_999),
        ("bytes=-5", 2_999_995, 2_999_999),
        ("bytes=100000-2900000", 100_000, 2_900_000),
    ] {
        let part = site.ask("GET", target, &[("Range", range)], b"").is(206);
        assert_eq!(part.header("content-range"), Some(format!("bytes {first}-{last}/3000000").as_str()));
        assert!(part.whole && part.body == long[first..=last], "{range}");
    }
    let none = site.ask("GET", target, &[("Range", "bytes=3000000-")], b"").is(416);
    assert_eq!(none.header("content-range"), Some("bytes */3000000"));
    let short = "/web/20140126200625id_/http://example.org/chunked";
    let part = site.ask("GET", short, &[("Range", "bytes=1-3")], b"").is(206);
    assert_eq!((part.text().as_str(), part.header("content-range")), ("bcd", Some("bytes 1-3/5")));
    let head = site.ask("HEAD", short, &[], b"").is(200);
    assert_eq!((head.header("content-length"), head.body.len()), (Some("5"), 0));
    // What is no range is none; an error has no parts.
    assert_eq!(site.ask("GET", short, &[("Range", "lines=1")], b"").is(200).text(), "abcde");
    let gone = "/web/20140126200625id_/http://example.org/gone";
    assert_eq!(site.ask("GET", gone, &[("Range", "bytes=0-0")], b"").is(404).text(), "gone");
}

#[test]
fn what_is_missing_is_said_with_what_is_there() {
    let site = site();
    let missing = site.get("/web/2014id_/http://example.org/not/%3Cscript%3Ethere").is(404);
    let text = missing.text();
    assert!(text.contains("There is no capture of") && text.contains("http://example.org/chunked"), "{text}");
    assert!(!text.contains("/secret") && !text.contains("<script"), "{text}");
    assert!(site.get("/web/2014id_/http://other.example/").is(404).text().contains("Nothing else of its host"));
    // Captures made with secrets are not there.
    site.get("/web/2014id_/http://example.org/secret").is(404);
    for (target, status) in [
        ("/web/2014id_/", 400),
        ("/web/2014id_/../../../etc/passwd", 400),
        ("/nothing/2014id_/http://example.org/", 404),
        ("/nothing", 404),
        ("/web", 404),
    ] {
        assert_eq!(site.get(target).status, status, "{target}");
    }
    assert_eq!(
        site.ask("DELETE", "/web/2014id_/http://example.org/", &[], b"").is(405).header("allow"),
        Some("GET, HEAD")
    );
}

#[test]
fn damage_is_an_error_and_tells_no_path() {
    let site = site();
    let path = site.path("one/one.warc.gz");
    let mut bytes = std::fs::read(&path).unwrap();
    // In the middle of the first record's compressed bytes.
    bytes[300..320].fill(0xff);
    std::fs::write(&path, &bytes).unwrap();
    let damaged = site.get("/web/20140126200624id_/http://example.org/");
    assert_eq!(damaged.status, 502, "{}", damaged.text());
    let text = damaged.text();
    assert!(
        text.contains("damaged") && !text.contains("warc") && !text.contains(&site.folder.path().display().to_string()),
        "{text}"
    );
    std::fs::remove_file(&path).unwrap();
    let lost = site.get("/web/20140126200625id_/http://example.org/chunked").is(502);
    assert!(!lost.text().contains("warc"), "{}", lost.text());
    // A revisit whose original cannot be read is no better off.
    site.get("/web/20160101000000id_/http://example.org/").is(502);
}

#[test]
fn a_long_body_that_is_damaged_is_cut_off() {
    let site = site();
    let path = site.path("one/one.warc.gz");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.len() - 20_000;
    bytes[at..at + 2000].fill(0);
    std::fs::write(&path, &bytes).unwrap();
    let got = site.get("/web/20140126200625id_/http://example.org/long").is(200);
    assert!(!got.whole, "{} bytes came and nothing said that some are missing", got.body.len());
}

#[test]
fn rules_hide_and_tokens_open() {
    let warc = Warc::new()
        .page("http://example.org/open", "2014-01-01T00:00:00Z", "text/plain", b"open")
        .page("http://example.org/shut", "2014-01-01T00:00:00Z", "text/plain", b"shut")
        .private("http://example.org/secret", "2014-01-01T00:00:00Z", b"secret");
    let hash = skep_warc::digest::Digest::of(skep_warc::digest::Algorithm::Sha256, b"key").hex();
    let access = || {
        Access::default()
            .with_rules("[[rule]]\nurls = [\"http://example.org/shut\"]\naction = \"block\"")
            .unwrap()
            .with_users(&format!("reading = \"token\"\n[[token]]\nsha256 = \"{hash}\"\nmay = \"administer\""))
            .unwrap()
    };
    let site = Site::with(&[("c", "a.warc.gz", warc.bytes)], |settings| Settings { access: access(), ..settings });
    let asked = site.get("/web/2014id_/http://example.org/open").is(401);
    assert!(asked.header("www-authenticate").is_some());
    site.get("/health").is(200);
    let with = |target: &str| site.ask("GET", target, &[("Authorization", "Bearer key")], b"");
    assert_eq!(with("/web/20140101000000id_/http://example.org/open").is(200).text(), "open");
    with("/web/20140101000000id_/http://example.org/shut").is(404);
    assert_eq!(with("/web/20140101000000id_/http://example.org/secret").is(200).text(), "secret");
}

#[test]
fn what_is_added_while_serving_is_there_and_what_is_removed_is_gone() {
    let site = site();
    let late = Warc::new().page("http://late.example/", "2020-01-01T00:00:00Z", "text/plain", b"late");
    std::fs::write(site.path("late.warc.gz"), late.bytes).unwrap();
    site.get("/late/20200101000000id_/http://late.example/").is(404);
    add(&site.archive, "late", &site.path("late.warc.gz"));
    assert_eq!(site.get("/late/20200101000000id_/http://late.example/").is(200).text(), "late");
    site.archive.remove(&skep_archive::Selector::Url("http://late.example/".into()), "a test").unwrap();
    site.get("/late/20200101000000id_/http://late.example/").is(404);
}

#[test]
fn what_was_acknowledged_is_answered_at_once() {
    let site = site();
    for number in 0..200 {
        let (url, time) = (format!("http://fresh.example/{number}"), "2021-01-01T00:00:00Z");
        let bytes = Warc::new().page(&url, time, "text/plain", url.as_bytes()).bytes;
        let append = skep_archive::Append {
            site_hash: skep_archive::Key::of(&url).site_hash(),
            records: vec![skep_archive::Encoded::describing(bytes).unwrap()],
        };
        site.archive.append(append).unwrap().wait().unwrap();
        assert_eq!(site.get(&format!("/web/20210101000000id_/{url}")).is(200).text(), url);
    }
}

#[test]
fn an_address_leads_to_the_capture_of_its_second() {
    let url = "http://often.example/";
    let warc = Warc::new()
        .page(url, "2021-01-01T00:00:21.900Z", "text/plain", b"nearer to the beginning of the next second")
        .page(url, "2021-01-01T00:00:22.500Z", "text/plain", b"of that second");
    let site = Site::new(&[("often", "often.warc.gz", warc.bytes)]);
    assert_eq!(site.get(&format!("/web/20210101000022id_/{url}")).is(200).text(), "of that second");
    let listed = site.get(&format!("/web?url={url}&closest=20210101000022&sort=closest&limit=1")).text();
    assert!(listed.contains(" 20210101000022 "), "{listed}");
}

#[test]
fn of_two_captures_in_one_second_the_newest_is_shown() {
    let url = "http://hurried.example/";
    let warc = Warc::new()
        .page(url, "2021-01-01T00:00:22.100Z", "text/plain", b"first")
        .page(url, "2021-01-01T00:00:22.900Z", "text/plain", b"second")
        .page(url, "2021-01-01T00:00:28Z", "text/plain", b"later");
    let site = Site::new(&[("hurried", "hurried.warc.gz", warc.bytes)]);
    assert_eq!(site.get(&format!("/web/20210101000022id_/{url}")).is(200).text(), "second");
    // And of two seconds that are equally far the older one, as everywhere.
    let led = site.get(&format!("/web/20210101000025id_/{url}")).is(302);
    assert!(led.header("location").is_some_and(|to| to.contains("/20210101000022id_/")), "{}", led.text());
}
