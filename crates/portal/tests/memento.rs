//! TimeGates and TimeMaps, over real sockets.

mod site;

use serde_json::Value;
use site::{Site, Warc};

fn site() -> Site {
    let warc = Warc::new()
        .page("http://example.org/", "2014-01-26T20:06:24Z", "text/html", b"first")
        .page("http://example.org/", "2014-06-01T00:00:00Z", "text/html", b"second")
        .page("https://www.example.org/", "2015-01-01T00:00:00Z", "text/html", b"third");
    Site::new(&[("crawl", "a.warc.gz", warc.bytes)])
}

fn ask(site: &Site, target: &str, headers: &[(&str, &str)]) -> site::Got {
    site.ask("GET", target, headers, b"")
}

#[test]
fn a_gate_leads_to_the_nearest_capture() {
    let site = site();
    let date = [("Accept-Datetime", "Sun, 02 Feb 2014 00:00:00 GMT")];
    let got = ask(&site, "/web/http://example.org/", &date);
    got.leads_to(302, "/web/20140126200624id_/http://example.org/");
    assert_eq!(got.header("vary"), Some("accept-datetime"));
    let base = format!("http://{}", site.serving.address());
    let link = got.header("link").unwrap();
    for part in [
        "<http://example.org/>; rel=\"original\"".to_owned(),
        format!("<{base}/web/http://example.org/>; rel=\"timegate\""),
        format!("<{base}/web/timemap/link/http://example.org/>; rel=\"timemap\"; type=\"application/link-format\""),
        format!(
            "<{base}/web/20140126200624mp_/http://example.org/>; rel=\"memento\"; datetime=\"Sun, 26 Jan 2014 20:06:24 GMT\""
        ),
    ] {
        assert!(link.contains(&part), "{part} is not in {link}");
    }
    let memento = site.get("/web/20140126200624id_/http://example.org/").is(200);
    assert_eq!(memento.header("memento-datetime"), Some("Sun, 26 Jan 2014 20:06:24 GMT"));
    // A browser sees the page in its frame; without a date the newest.
    let browser = [date[0], ("Sec-Fetch-Dest", "document")];
    ask(&site, "/web/http://example.org/", &browser).leads_to(302, "/web/20140126200624/http://example.org/");
    site.get("/web/example.org").leads_to(302, "/web/20150101000000/http://example.org");
    ask(&site, "/crawl/http://example.org/", &date).leads_to(302, "/crawl/20140126200624id_/http://example.org/");
    ask(&site, "/web/http://example.org/", &[("Accept-Datetime", "Sun, 26 Janu 2014")]).is(400);
    ask(&site, "/web/http://nothing.example/", &date).is(404);
}

#[test]
fn maps_list_all_captures() {
    let site = site();
    let base = format!("http://{}", site.serving.address());
    let got = site.get("/crawl/timemap/link/http://example.org/").is(200);
    assert_eq!(got.header("content-type"), Some("application/link-format"));
    let expected = format!(
        "<{base}/crawl/timemap/link/http://example.org/>; rel=\"self\"; type=\"application/link-format\"; from=\"Sun, 26 Jan 2014 20:06:24 GMT\",\n\
         <{base}/crawl/http://example.org/>; rel=\"timegate\",\n\
         <http://example.org/>; rel=\"original\",\n\
         <{base}/crawl/20140126200624mp_/http://example.org/>; rel=\"memento\"; datetime=\"Sun, 26 Jan 2014 20:06:24 GMT\"; collection=\"crawl\",\n\
         <{base}/crawl/20140601000000mp_/http://example.org/>; rel=\"memento\"; datetime=\"Sun, 01 Jun 2014 00:00:00 GMT\"; collection=\"crawl\",\n\
         <{base}/crawl/20150101000000mp_/https://www.example.org/>; rel=\"memento\"; datetime=\"Thu, 01 Jan 2015 00:00:00 GMT\"; collection=\"crawl\"\n"
    );
    assert_eq!(got.text(), expected);
    let json: Value = serde_json::from_str(&site.get("/web/timemap/json/http://example.org/").is(200).text()).unwrap();
    assert_eq!(json["original_uri"], "http://example.org/");
    let list = json["mementos"]["list"].as_array().unwrap();
    assert_eq!(list.len(), 3);
    assert_eq!(list[0]["datetime"], "2014-01-26T20:06:24Z");
    assert_eq!(list[0]["uri"], format!("{base}/web/20140126200624mp_/http://example.org/"));
    let cdxj = site.get("/crawl/timemap/cdxj/http://example.org/").is(200);
    assert_eq!(cdxj.text(), site.get("/crawl/cdx?url=http://example.org/").text());
    for format in ["link", "json", "cdxj"] {
        assert_eq!(site.get(&format!("/web/timemap/{format}/http://nothing.example/")).is(404).text(), "");
        site.get(&format!("/web/timemap/{format}/2/http://example.org/")).is(404);
    }
    site.get("/web/timemap/link/").is(400);
}

#[test]
fn a_long_map_has_pages() {
    let mut warc = Warc::new();
    for number in 0..10_001u32 {
        let time = format!(
            "2014-01-{:02}T{:02}:{:02}:{:02}Z",
            1 + number / 86_400,
            number / 3600 % 24,
            number / 60 % 60,
            number % 60
        );
        warc = warc.page("http://example.org/", &time, "text/plain", b"x");
    }
    let site = Site::new(&[("crawl", "a.warc.gz", warc.bytes)]);
    let base = format!("http://{}", site.serving.address());
    let first = site.get("/web/timemap/link/http://example.org/").is(200).text();
    let next = format!("{base}/web/timemap/link/2/http://example.org/");
    assert!(first.ends_with(&format!(",\n<{next}>; rel=\"timemap\"; type=\"application/link-format\"\n")));
    assert_eq!(first.matches("rel=\"memento\"").count(), 10_000);
    let second = site.get("/web/timemap/link/2/http://example.org/").is(200).text();
    assert_eq!(second.matches("rel=\"memento\"").count(), 1);
    let json: Value = serde_json::from_str(&site.get("/web/timemap/json/http://example.org/").is(200).text()).unwrap();
    assert_eq!(json["pages"]["next"]["uri"], format!("{base}/web/timemap/json/2/http://example.org/"));
}
