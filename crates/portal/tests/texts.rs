//! Texts over real sockets: found by words and dates, within what may be seen, and what is wrong with a query.

mod site;

use serde_json::Value;
use site::{Site, Warc, add};
use skep_archive::{Archive, OpenOptions, Selector};
use skep_portal::{Access, Settings, serve};
use skep_search::Text;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

const HOME: &str = "http://example.org/";

/// An archive that keeps texts, and its portal.
fn site(files: &[(&str, Warc)], access: Access) -> (Site, Arc<Text>) {
    let folder = tempfile::tempdir().unwrap();
    let options = OpenOptions { disk_reserve_bytes: 0, ..OpenOptions::create() };
    let archive = Arc::new(Archive::open(&folder.path().join("archive"), options).unwrap());
    for (collection, warc) in files {
        let path = folder.path().join(format!("{collection}.warc.gz"));
        std::fs::write(&path, &warc.bytes).unwrap();
        add(&archive, collection, &path);
    }
    let text = Arc::new(Text::open(archive.clone()).unwrap());
    text.keep().unwrap();
    text.settle().unwrap();
    let settings = Settings::at(SocketAddr::from(([127, 0, 0, 1], 0)));
    let serving = serve(archive.clone(), Settings { access, text: Some(text.clone()), ..settings }).unwrap();
    (Site { folder, archive, serving, log: Arc::new(Mutex::new(Vec::new())) }, text)
}

fn files() -> Vec<(&'static str, Warc)> {
    let one = Warc::new()
        .page(
            HOME,
            "2014-01-26T20:06:24Z",
            "text/html",
            b"<title>Bees &amp; hives</title><p>woven of straw <b>then</b>",
        )
        .page(HOME, "2016-01-01T00:00:00Z", "text/html", b"<title>Bees</title><p>made of wood now")
        .page("http://example.org/ab", "2015-01-01T00:00:00Z", "text/html", b"<p>bees &lt;script&gt; straw")
        .page("http://blocked.example/", "2015-01-01T00:00:00Z", "text/html", b"<p>blocked bees")
        .page("http://fresh.example/", "2026-01-01T00:00:00Z", "text/html", b"<p>embargoed bees")
        .private("http://example.org/secret", "2015-06-01T00:00:00Z", b"<p>secret bees");
    let two = Warc::new().page(
        "http://other.example/",
        "2015-01-01T00:00:00Z",
        "text/html",
        b"<p>bees of another collection",
    );
    vec![("one", one), ("two", two)]
}

fn rules() -> Access {
    let hash = skep_warc::digest::Digest::of(skep_warc::digest::Algorithm::Sha256, b"key").hex();
    Access::default()
        .with_rules(
            "[[rule]]\nurls = [\"http://blocked.example/*\"]\naction = \"block\"\n\
             [[rule]]\nurls = [\"http://fresh.example/*\"]\naction = \"embargo\"\ndays = 100000",
        )
        .unwrap()
        .with_users(&format!("[[token]]\nsha256 = \"{hash}\"\nmay = \"administer\""))
        .unwrap()
}

fn urls(told: &Value) -> String {
    let mut urls: Vec<&str> =
        told["results"].as_array().unwrap().iter().map(|hit| hit["url"].as_str().unwrap()).collect();
    urls.sort_unstable();
    urls.join(" ")
}

fn found(site: &Site, asked: &str, headers: &[(&str, &str)]) -> Value {
    let got = site.ask("GET", &format!("/api/v1/search/text?{asked}"), headers, b"").is(200);
    serde_json::from_slice(&got.body).unwrap()
}

#[test]
fn texts_are_found_as_of_a_date_and_only_by_those_who_may() {
    let (site, text) = site(&files(), rules());
    let all = "http://example.org/ http://example.org/ab http://other.example/";
    assert_eq!(urls(&found(&site, "q=bees", &[])), all);
    assert_eq!(urls(&found(&site, "q=bees&collection=two", &[])), "http://other.example/");
    assert_eq!(
        urls(&found(&site, "q=bees+-site:other.example&url_prefix=http://example.org/a", &[])),
        "http://example.org/ab"
    );
    assert_eq!(urls(&found(&site, "q=straw&at=2015", &[])), "http://example.org/ http://example.org/ab");
    assert_eq!(urls(&found(&site, "q=straw&at=2016", &[])), "http://example.org/ab");
    let token = [("Authorization", "Bearer key")];
    assert_eq!(urls(&found(&site, "q=secret", &token)), "http://example.org/secret");
    for hidden in ["secret", "blocked", "embargoed"] {
        assert_eq!(urls(&found(&site, &format!("q={hidden}"), &[])), "", "{hidden}");
    }
    let told = found(&site, "q=%22woven+of%22", &[]);
    let hit = &told["results"][0];
    assert_eq!((hit["title"].as_str(), hit["timestamp"].as_str()), (Some("Bees & hives"), Some("20140126200624")));
    assert_eq!(hit["links"]["replay"], "/web/20140126200624/http://example.org/");
    assert_eq!(hit["passage"][0], serde_json::json!({ "text": "woven", "found": true }));
    site.archive.remove(&Selector::Url(HOME.into()), "asked").unwrap();
    assert_eq!(urls(&found(&site, "q=woven", &[])), "");
    text.settle().unwrap();
    assert_eq!(urls(&found(&site, "q=bees", &[])), "http://example.org/ab http://other.example/");
}

#[test]
fn results_come_in_pages() {
    let mut warc = Warc::new();
    for number in 0..45 {
        warc =
            warc.page(&format!("http://example.org/{number}"), "2015-01-01T00:00:00Z", "text/html", b"<p>same words");
    }
    let (site, _text) = site(&[("one", warc)], Access::default());
    let (mut seen, mut after, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let told = found(&site, &format!("q=words{after}"), &[]);
        seen.extend(urls(&told).split(' ').map(str::to_owned));
        pages += 1;
        match told["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!((pages, seen.len()), (3, 45));
}

#[test]
fn pages_mark_what_was_found_and_say_what_is_wrong() {
    let (site, _text) = site(&files(), rules());
    let page = site.get("/search?in=text&q=straw&at=2015-06").is(200).text();
    assert!(page.contains("woven of <mark>straw</mark> then"), "{page}");
    assert!(page.contains("bees &lt;script&gt; <mark>straw</mark>") && !page.contains("<script>"), "{page}");
    assert!(page.contains("href=\"/web/20140126200624/http://example.org/\""), "{page}");
    assert!(site.get("/search?in=text").is(200).text().contains("name=\"at\""));
    assert!(site.get("/search?q=example").is(200).text().contains("/search?in=text&amp;q=example"));
    let wrong = site.get("/search?in=text&q=%22open").is(400).text();
    assert!(wrong.contains("is not closed"), "{wrong}");
    assert!(site.get("/search?in=text&q=a&at=soon").is(400).text().contains("2019-06"));
    assert!(site.get("/search?in=text&q=nothinglikeit").is(200).text().contains("No text here"));
    for (asked, status, told) in [
        ("q=%22open", 400, "not closed"),
        ("q=-bees", 400, "leave out"),
        ("q=inurl:x", 400, "title:word"),
        ("q=!!!", 400, "no word"),
        ("q=bees&after=00", 400, "after"),
        ("q=bees&after=ffffffff", 400, "first 10000"),
        ("q=bees&limit=101", 400, "limit"),
        ("q=bees&at=x", 400, "time"),
    ] {
        let got = site.get(&format!("/api/v1/search/text?{asked}")).is(status);
        assert!(got.text().contains(told), "{asked}: {}", got.text());
    }
}

#[test]
fn without_an_index_the_answer_says_what_to_type() {
    let site = Site::new(&[]);
    let got = site.get("/api/v1/search/text?q=bees").is(404);
    assert!(got.text().contains("skep rebuild --text"), "{}", got.text());
    let page = site.get("/search?in=text&q=bees").is(404).text();
    assert!(page.contains("skep rebuild --text"), "{page}");
}
