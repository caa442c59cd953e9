//! Pages with their addresses led back into the archive, the frame around them, and what they may do.

mod site;

use site::{Got, Site, Warc};
use skep_portal::Settings;

const PAGE: &[u8] = b"<!doctype html><html><head><link rel=stylesheet href=/style.css></head><body><img src=a.png><a href='http://other.example/x?y&amp;z'>there</a></body></html>";

fn warc() -> Warc {
    let moved = b"HTTP/1.1 301 Moved\r\nLocation: https://example.org/\r\nContent-Length: 0\r\n\r\n";
    let away = b"HTTP/1.1 302 Found\r\nLocation: /page.html\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n";
    Warc::new()
        .answer("http://example.org/", "2014-06-01T00:00:00Z", moved)
        .page("https://example.org/", "2014-06-01T00:00:01Z", "text/html", PAGE)
        .page("http://example.org/page.html", "2015-01-01T00:00:00Z", "text/html; charset=utf-8", PAGE)
        .answer("http://example.org/away", "2014-06-01T00:00:00Z", away)
        .page(
            "http://example.org/style.css",
            "2013-01-01T00:00:00Z",
            "text/css",
            b"/* old */ p { background: url(b.png) }",
        )
        .page("http://example.org/style.css", "2016-01-01T00:00:00Z", "text/css", b"/* new */")
        .page("http://example.org/late.css", "2016-01-01T00:00:00Z", "text/css", b"/* late */")
        .page("http://example.org/a.png", "2014-06-01T00:00:00Z", "image/png", b"\x89PNG")
        .page("http://example.org/s.js", "2014-06-01T00:00:00Z", "text/plain", b"location.href")
}

fn site() -> Site {
    Site::new(&[("crawl", "a.warc.gz", warc().bytes)])
}

#[test]
fn the_portals_name_leads_to_that_of_archived_pages() {
    let site = site();
    let origin = site.serving.replay_origin().unwrap().to_owned();
    assert_eq!(origin, format!("http://replay.localhost:{}", site.serving.address().port()));
    for modifier in ["mp_", "if_", "im_", "js_", "cs_"] {
        let target = format!("/web/20150101000000{modifier}/http://example.org/page.html?a=b");
        site.get(&target).leads_to(307, &format!("{origin}{target}"));
    }
}

#[test]
fn a_page_keeps_its_time_and_its_links_stay_in_the_archive() {
    let site = site();
    let origin = site.serving.replay_origin().unwrap().to_owned();
    let got = site.replay("/web/20150301000000mp_/http://example.org/page.html").is(200);
    let text = got.text();
    for part in [
        format!("{origin}/web/20150301000000cs_/http://example.org/style.css"),
        format!("{origin}/web/20150301000000im_/http://example.org/a.png"),
        format!("{origin}/web/20150301000000mp_/http://other.example/x?y&amp;z"),
        format!("{origin}/-/replay.js"),
    ] {
        assert!(text.contains(&part), "{part} is not in {text}");
    }
    assert_eq!(got.header("memento-datetime"), Some("Thu, 01 Jan 2015 00:00:00 GMT"));
    assert!(
        got.header("content-location")
            .is_some_and(|own| own.ends_with("/web/20150101000000mp_/http://example.org/page.html"))
    );
    assert_eq!(got.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(got.header("x-archive-orig-x-made"), Some("then"));
    assert_eq!(got.header("content-length"), Some(text.len().to_string().as_str()));
    // A part is the newest that is not newer than the page, else the next one; what is not there is missing.
    let css = |time: &str, name: &str| site.replay(&format!("/web/{time}cs_/http://example.org/{name}"));
    let old = css("20150301000000", "style.css").is(200);
    assert!(
        old.text().contains("old")
            && old.text().contains(&format!("{origin}/web/20150301000000im_/http://example.org/b.png"))
    );
    assert!(css("20160101000000", "style.css").is(200).text().contains("new"));
    assert!(css("20150301000000", "late.css").is(200).text().contains("late"));
    assert_eq!(css("20150301000000", "none.css").is(404).text(), "not in this archive\n");
    let png = site.replay("/web/20150301000000im_/http://example.org/a.png").is(200);
    assert_eq!((png.body.as_slice(), png.header("content-type")), (b"\x89PNG".as_slice(), Some("image/png")));
    // A script that was sent as text ran then, so it must run now.
    let script = site.replay("/web/20150301000000js_/http://example.org/s.js").is(200);
    assert_eq!(script.header("content-type"), Some("text/javascript"));
    assert_eq!(script.text(), "skep$location.href");
}

#[test]
fn redirects_stay_inside_and_circles_are_left() {
    let site = site();
    let origin = site.serving.replay_origin().unwrap().to_owned();
    let away = site.replay("/web/20140601000000mp_/http://example.org/away");
    away.leads_to(302, &format!("{origin}/web/20140601000000mp_/http://example.org/page.html"));
    assert_eq!((away.header("cache-control"), away.header("set-cookie")), (Some("no-store"), None));
    // http leads to https, which is the same page here.
    let home = site.replay("/web/20140601000000mp_/http://example.org/").is(200);
    assert!(home.text().contains("there"));
}

fn policy(got: &Got) -> String {
    got.header("content-security-policy").expect("a policy").to_owned()
}

#[test]
fn a_page_may_ask_the_archive_and_nobody_else() {
    let site = site();
    let origin = site.serving.replay_origin().unwrap().to_owned();
    let got = site.replay("/web/20150101000000mp_/http://example.org/page.html").is(200);
    let text = policy(&got);
    assert!(
        text.contains(&format!("connect-src {origin} data: blob:;"))
            && text.contains(&format!("form-action {origin};")),
        "{text}"
    );
    assert!(text.contains("sandbox allow-scripts allow-same-origin allow-forms"), "{text}");
    assert!(!text.contains("ws:") && !text.contains('*') && !text.contains("top-navigation"), "{text}");
    assert!(got.header("permissions-policy").is_some_and(|denied| denied.contains("camera=()")));
    let worker = format!("replay.localhost:{}", site.serving.address().port());
    let headers = [("Host", worker.as_str()), ("Service-Worker", "script")];
    site.ask("GET", "/web/20140601000000js_/http://example.org/s.js", &headers, b"").is(404);
    // Also what is missing or wrong there may do nothing.
    assert!(policy(&site.replay("/web/2014mp_/http://nothing.example/").is(404)).contains("sandbox"));
}

#[test]
fn scripts_do_not_run_where_others_can_come() {
    let site = Site::with(&[("crawl", "a.warc.gz", warc().bytes)], |settings| Settings {
        replay_origin: Some("https://replay.example".into()),
        scripts: Some(false),
        ..settings
    });
    let got = site
        .ask("GET", "/web/20150101000000mp_/http://example.org/page.html", &[("Host", "replay.example")], b"")
        .is(200);
    assert!(policy(&got).contains("script-src 'none'") && !policy(&got).contains("allow-scripts"), "{}", policy(&got));
    assert!(!got.text().contains("/-/replay.js"));
    site.ask("GET", "/web/20150101000000mp_/http://example.org/page.html", &[("Host", "archive.example")], b"")
        .leads_to(307, "https://replay.example/web/20150101000000mp_/http://example.org/page.html");
}

#[test]
fn what_got_past_the_rewriting_is_led_back() {
    let site = site();
    let host = format!("replay.localhost:{}", site.serving.address().port());
    let referer = format!("http://{host}/web/20150101000000mp_/http://example.org/dir/page.html");
    let got = site.ask("GET", "/style.css?v=1", &[("Host", &host), ("Referer", &referer)], b"");
    got.leads_to(307, "/web/20150101000000mp_/http://example.org/style.css?v=1");
    site.ask("GET", "/style.css", &[("Host", &host), ("Referer", "http://elsewhere.example/")], b"").is(404);
    site.ask("GET", "/style.css", &[("Host", &host)], b"").is(404);
    assert!(site.ask("GET", "/-/replay.js", &[("Host", &host)], b"").is(200).body.len() > 1000);
}

#[test]
fn the_frame_says_when_and_leads_on() {
    let warc = Warc::new()
        .page("http://example.org/", "2013-01-01T00:00:00Z", "text/html", b"a")
        .page("http://example.org/", "2014-01-01T00:00:00Z", "text/html", b"b")
        .page("http://example.org/", "2015-01-01T00:00:00Z", "text/html", b"c");
    let site = Site::new(&[("crawl", "a.warc.gz", warc.bytes)]);
    let origin = site.serving.replay_origin().unwrap().to_owned();
    site.get("/web/201402/http://example.org/").leads_to(302, "/web/20140101000000/http://example.org/");
    let frame = site.get("/web/20140101000000/http://example.org/").is(200);
    let text = frame.text();
    for part in [
        "Wed, 01 Jan 2014 00:00:00 GMT".to_owned(),
        format!("src=\"{origin}/web/20140101000000mp_/http://example.org/\""),
        "href=\"/web/20130101000000/http://example.org/\"".to_owned(),
        "href=\"/web/20150101000000/http://example.org/\"".to_owned(),
        "href=\"/web/*/http://example.org/\"".to_owned(),
    ] {
        assert!(text.contains(&part), "{part} is not in {text}");
    }
    assert_eq!(frame.header("memento-datetime"), Some("Wed, 01 Jan 2014 00:00:00 GMT"));
    assert!(policy(&frame).contains("script-src 'self'") && policy(&frame).contains(&format!("frame-src {origin};")));
    let hostile = site.get("/web/20140101000000/http://example.org/?\"><script>alert(1)</script>");
    assert!(!hostile.text().contains("<script>alert"), "{}", hostile.text());
    let versions = site.get("/web/*/http://example.org/").is(200).text();
    assert_eq!(versions.matches("<li>").count(), 3);
}
