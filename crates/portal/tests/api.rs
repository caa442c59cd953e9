//! The catalogue API over real sockets: what is there, what is not shown, and what is wrong with a request.

mod site;

use serde_json::Value;
use site::{Got, Site, Warc};
use skep_portal::{Access, Settings};
use skep_warc::{Options, Reader};

const HOME: &str = "http://example.org/";

fn site() -> Site {
    Site::with(&files(), |settings| settings)
}

fn files() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let page = br#"<link rel=stylesheet href=/s.css><img src=/same.png><img src=/soon.png><img src=/late.png><img src=/kept.png>
        <img src=/old.png><img src=/gone.png><img src=/modified.png>"#;
    let dated = |modified: &str| {
        format!("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nLast-Modified: {modified}\r\nContent-Length: 1\r\n\r\n.")
            .into_bytes()
    };
    let one = Warc::new()
        .page(HOME, "2014-01-26T20:06:24Z", "text/html", b"<p>first</p>")
        .page(HOME, "2015-03-01T12:00:00Z", "text/html", b"<p>second</p>")
        .same(HOME, "2016-01-01T00:00:00Z", b"<p>first</p>", Some((HOME, "2014-01-26T20:06:24Z")))
        .page("http://mirror.example.org/", "2014-02-01T00:00:00Z", "text/html", b"<p>first</p>")
        .page("http://example.org/page", "2015-06-01T00:00:00Z", "text/html", page)
        .page("http://example.org/s.css", "2015-06-01T00:00:00Z", "text/css", b"a{background:url(/deep.png)}")
        .page("http://example.org/same.png", "2015-06-01T00:00:00Z", "image/png", b"same")
        .page("http://example.org/soon.png", "2015-06-01T00:02:00Z", "image/png", b"soon")
        .page("http://example.org/late.png", "2015-07-01T00:00:00Z", "image/png", b"late")
        .page("http://example.org/deep.png", "2014-06-01T00:00:00Z", "image/png", b"deep")
        .page("http://example.org/deep.png", "2016-06-01T00:00:00Z", "image/png", b"deep")
        .page("http://example.org/old.png", "2015-05-01T00:00:00Z", "image/png", b"old")
        .answer("http://example.org/kept.png", "2015-08-01T00:00:00Z", &dated("Thu, 01 Jan 2015 00:00:00 GMT"))
        .answer("http://example.org/modified.png", "2015-08-01T00:00:00Z", &dated("Wed, 01 Jul 2015 00:00:00 GMT"))
        .private("http://example.org/secret", "2015-06-01T00:00:00Z", b"secret");
    let two = Warc::new()
        .page("http://other.example/a/Report?x=1", "2020-01-01T00:00:00Z", "application/pdf", b"pdf")
        .page("http://other.example/b/report", "2021-01-01T00:00:00Z", "text/plain", b"text");
    vec![("one", "one.warc.gz", one.bytes), ("two", "two.warc.gz", two.bytes)]
}

fn json(got: Got) -> Value {
    assert_eq!(got.header("content-type"), Some("application/json"), "{}", got.text());
    serde_json::from_slice(&got.body).unwrap()
}

fn api(site: &Site, target: &str) -> Value {
    json(site.get(&format!("/api/v1{target}")).is(200))
}

#[track_caller]
fn wrong(got: Got, status: u16, told: &str) {
    let got = got.is(status);
    assert_eq!(got.header("content-type"), Some("application/problem+json"));
    let problem: Value = serde_json::from_slice(&got.body).unwrap();
    assert_eq!(problem["status"], status);
    assert!(problem["detail"].as_str().unwrap().contains(told), "{problem}");
}

fn texts(list: &Value, name: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item[name].as_str().unwrap_or("-").to_owned()).collect()
}

fn records(bytes: Vec<u8>) -> Vec<(String, String)> {
    let mut reader = Reader::new(std::io::Cursor::new(bytes), Options::recover()).unwrap();
    let mut found = Vec::new();
    while let Some(mut record) = reader.next().unwrap() {
        let url = String::from_utf8_lossy(record.head().target_uri().unwrap()).into_owned();
        let mut block = String::new();
        std::io::Read::read_to_string(&mut record, &mut block).unwrap();
        found.push((url, block));
    }
    assert!(reader.take_findings().is_empty());
    found
}

#[test]
fn collections_files_and_what_is_in_them() {
    let site = site();
    let collections = api(&site, "/collections");
    assert_eq!(texts(&collections["collections"], "name"), ["one", "two"]);
    let files = api(&site, "/files?collection=two");
    assert_eq!(texts(&files["files"], "name"), ["two.warc.gz"]);
    let first = api(&site, "/files?limit=1");
    assert_eq!(texts(&first["files"], "name"), ["one.warc.gz"]);
    let second = api(&site, &format!("/files?limit=1&after={}", first["next"].as_str().unwrap()));
    assert_eq!((texts(&second["files"], "name"), &second["next"]), (vec!["two.warc.gz".to_owned()], &Value::Null));
    assert_eq!(api(&site, "/files/00000000:2")["kind"], "warc");

    let mut seen = Vec::new();
    let mut next = String::new();
    loop {
        let page = api(&site, &format!("/files/00000000:1/captures?limit=4{next}"));
        seen.extend(texts(&page["captures"], "url"));
        match page["next"].as_str() {
            Some(cursor) => next = format!("&after={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), 14, "{seen:?}");
    assert!(!seen.iter().any(|url| url.contains("secret")));

    let two = site.get("/api/v1/files/00000000:2/download").is(200);
    assert_eq!(two.body, std::fs::read(site.path("two/two.warc.gz")).unwrap());
    assert_eq!(two.header("content-disposition"), Some("attachment; filename=\"two.warc.gz\""));
    wrong(site.get("/api/v1/files/00000000:1/download"), 403, "may not be shown");
    let head = site.ask("HEAD", "/api/v1/files/00000000:2/download", &[], b"").is(200);
    assert!(head.body.is_empty());
    for text in [collections.to_string(), files.to_string(), first.to_string()] {
        assert!(!text.contains(&site.folder.path().display().to_string()), "{text}");
    }
}

#[test]
fn a_url_with_its_versions_and_duplicates() {
    let site = site();
    let told = api(&site, "/url?url=http://example.org/");
    assert_eq!(
        [&told["captures_total"], &told["versions_total"], &told["duplicates_total"]].map(|n| n.as_u64().unwrap()),
        [3, 2, 1]
    );
    let first = &told["versions"][0];
    assert_eq!(
        (first["captures"].as_u64(), first["also_at"][0].as_str()),
        (Some(2), Some("http://mirror.example.org/"))
    );
    assert_eq!(first["latest"], "2016-01-01T00:00:00Z");
    let capture = &told["captures"][0];
    assert_eq!(capture["links"]["replay"], "/web/20140126200624/http://example.org/");
    assert_eq!((capture["file_name"].as_str(), capture["offset"].as_u64()), (Some("one.warc.gz"), Some(0)));
    let raw = site.get(capture["links"]["raw"].as_str().unwrap()).is(200);
    assert_eq!(raw.text(), "<p>first</p>");
    let record = records(site.get(capture["links"]["record"].as_str().unwrap()).is(200).body);
    assert!(record.len() == 1 && record[0].1.ends_with("<p>first</p>"), "{record:?}");

    let page = api(&site, "/url?url=http://example.org/&limit=2");
    let rest = api(&site, &format!("/url?url=http://example.org/&limit=2&after={}", page["next"].as_str().unwrap()));
    assert_eq!(
        (texts(&page["captures"], "kind"), texts(&rest["captures"], "kind")),
        (vec!["response".to_owned(); 2], vec!["revisit".to_owned()])
    );
    assert_eq!(api(&site, "/url?url=http://example.org/&from=2015&to=2015")["captures_total"], 1);
    wrong(site.get("/api/v1/url?url=http://example.org/&collection=two"), 404, "no capture");
    wrong(site.get("/api/v1/url?url=http://example.org/secret"), 404, "no capture");
}

#[test]
fn urls_by_what_they_contain() {
    let site = site();
    let urls = |query: &str| texts(&api(&site, &format!("/urls?{query}"))["urls"], "url");
    assert_eq!(urls("q=REPORT").len(), 2);
    assert_eq!(urls("q=report+other+x%3D1"), ["http://other.example/a/Report?x=1"]);
    assert_eq!(urls("q=report&collection=one"), [""; 0]);
    assert_eq!(urls("q=other.example").len(), 2);
    assert_eq!(urls("q=example.org").len(), 11, "the host and what is below it");
    assert_eq!(urls("q=secret"), [""; 0]);
    assert_eq!(urls("q=%20"), [""; 0]);
    for q in ["example", "example.org"] {
        let mut seen = Vec::new();
        let mut next = String::new();
        loop {
            let page = api(&site, &format!("/urls?q={q}&limit=3{next}"));
            seen.extend(texts(&page["urls"], "url"));
            match page["next"].as_str() {
                Some(cursor) => next = format!("&after={cursor}"),
                None => break,
            }
        }
        let (count, all) = (seen.len(), urls(&format!("q={q}&limit=1000")));
        assert_eq!((seen, count), (all.clone(), all.len()));
    }
}

#[test]
fn statistics_count_what_may_be_seen() {
    let site = site();
    let all = api(&site, "/statistics");
    assert_eq!([&all["captures"], &all["urls"], &all["duplicates"]].map(|n| n.as_u64().unwrap()), [16, 13, 2]);
    assert_eq!(all["by_host"][0]["value"], "example.org");
    let two = api(&site, "/statistics?collection=two");
    assert_eq!(
        (texts(&two["by_year"], "value"), &two["captures"]),
        (vec!["2020".to_owned(), "2021".into()], &2.into())
    );
    assert_eq!(api(&site, "/statistics?host=mirror.example.org")["captures"], 1);
    let late = Warc::new().page("http://late.example/", "2022-01-01T00:00:00Z", "text/plain", b"late");
    std::fs::write(site.path("late.warc.gz"), late.bytes).unwrap();
    site::add(&site.archive, "late", &site.path("late.warc.gz"));
    assert_eq!(api(&site, "/statistics?collection=late")["captures"], 1);
    site.archive.remove(&skep_archive::Selector::Url("http://late.example/".into()), "a test").unwrap();
    // Sums may be as old as counting them took, ten times.
    let begun = std::time::Instant::now();
    while api(&site, "/statistics?collection=late")["captures"] != 0 {
        assert!(begun.elapsed().as_secs() < 60);
    }
}

#[test]
fn rules_hold_for_every_question() {
    let rules = "[[rule]]\nurls = [\"*.example.org\"]\naction = \"block\"";
    let access = Access::default().with_rules(rules).unwrap();
    let site = Site::with(&files(), |settings| Settings { access, ..settings });
    assert_eq!(api(&site, "/statistics")["captures"], 2);
    assert_eq!(texts(&api(&site, "/urls?q=example.org")["urls"], "url"), [""; 0]);
    assert_eq!(texts(&api(&site, "/files/00000000:1/captures")["captures"], "url"), [""; 0]);
    wrong(site.get("/api/v1/url?url=http://example.org/"), 404, "no capture");
    wrong(site.get("/api/v1/completeness?url=http://example.org/page"), 404, "no capture");
    wrong(site.get("/api/v1/records/00000000:1:0"), 404, "no such record");
    wrong(site.get("/api/v1/files/00000000:1/download"), 403, "may not be shown");
    assert_eq!(records(site.get("/api/v1/records").is(200).body).len(), 2);
}

#[test]
fn the_parts_of_a_page_and_their_times() {
    let site = site();
    let told = api(&site, "/completeness?url=http://example.org/page&time=20150601000000");
    let parts: Vec<(String, String)> =
        texts(&told["parts"], "url").into_iter().zip(texts(&told["parts"], "why")).collect();
    let why = |name: &str| parts.iter().find(|(url, _)| url.ends_with(name)).map(|(_, why)| why.as_str());
    for (name, expected) in [
        ("/s.css", "same time"),
        ("/same.png", "same time"),
        ("/soon.png", "soon after"),
        ("/late.png", "after"),
        ("/deep.png", "unchanged"),
        ("/old.png", "before"),
        ("/kept.png", "not modified since"),
        ("/modified.png", "modified after"),
        ("/gone.png", "missing"),
    ] {
        assert_eq!(why(name), Some(expected), "{name}");
    }
    assert_eq!(parts.len(), 9);
    assert_eq!(
        told["counts"],
        serde_json::json!({ "coherent": 4, "probably_coherent": 2, "violating": 2, "missing": 1 })
    );
    assert_eq!((told["complete"].as_bool(), told["earliest"].as_str()), (Some(false), Some("2014-06-01T00:00:00Z")));
    assert_eq!(told["latest"], "2015-08-01T00:00:00Z");
    assert_eq!(told["span_seconds"], 426 * 86_400);
    let plain = api(&site, "/completeness?url=http://other.example/b/report");
    assert_eq!((plain["complete"].as_bool(), plain["span_seconds"].as_i64()), (Some(true), Some(0)));
}

#[test]
fn records_stream_as_a_warc_file() {
    let site = site();
    let stream = |query: &str| {
        let got = site.get(&format!("/api/v1/records?{query}")).is(200);
        assert!(got.whole && got.header("content-type") == Some("application/warc"));
        records(got.body)
    };
    assert_eq!(stream("").len(), 16);
    assert_eq!(stream("url=example.org&match=domain").len(), 14);
    assert_eq!(stream("url=http://example.org/&match=host&type=image/*&from=2015&to=2015").len(), 6);
    assert_eq!(stream("kind=revisit").len(), 1);
    assert_eq!(stream("limit=3").len(), 3);
    assert_eq!(stream("url=http://nothing.example/").len(), 0);
    assert!(stream("collection=two").iter().all(|(url, _)| url.starts_with("http://other.example/")));
    // A plain file is compressed on the way; the same records come out.
    let plain = Site::new(&[("plain", "plain.warc", gunzip(&files()[1].2))]);
    let sent = plain.get("/api/v1/records").is(200).body;
    assert!(sent.starts_with(&[0x1f, 0x8b]));
    assert_eq!(records(sent), stream("collection=two"));
}

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut reader = Reader::new(std::io::Cursor::new(bytes.to_vec()), Options::recover()).unwrap();
    let mut plain = Vec::new();
    while let Some(mut record) = reader.next().unwrap() {
        plain.extend_from_slice(record.head().raw());
        std::io::Read::read_to_end(&mut record, &mut plain).unwrap();
        plain.extend_from_slice(b"\r\n\r\n");
    }
    plain
}

#[test]
fn files_are_added_with_a_token() {
    let hash = |token: &[u8]| skep_warc::digest::Digest::of(skep_warc::digest::Algorithm::Sha256, token).hex();
    let users = format!(
        "[[token]]\nsha256 = \"{}\"\nmay = \"administer\"\n[[token]]\nsha256 = \"{}\"\nmay = \"write\"",
        hash(b"key"),
        hash(b"small")
    );
    let access = Access::default().with_users(&users).unwrap();
    let site = Site::with(&[], |settings| Settings { access, ..settings });
    let path = site.path("new.warc.gz");
    std::fs::write(&path, &files()[1].2).unwrap();
    let body = serde_json::json!({ "path": path, "collection": "new" }).to_string();
    let post = |token: &str, kind: &str, body: &str| {
        let authorization = format!("Bearer {token}");
        let headers = [("Authorization", authorization.as_str()), ("Content-Type", kind)];
        site.ask("POST", "/api/v1/files", &headers, body.as_bytes())
    };
    wrong(site.ask("POST", "/api/v1/files", &[("Content-Type", "application/json")], body.as_bytes()), 401, "token");
    wrong(post("small", "application/json", &body), 403, "may not");
    wrong(post("key", "text/plain", &body), 415, "application/json");
    wrong(post("key", "application/json", "{"), 400, "body");
    wrong(post("key", "application/json", "{\"path\":\"a\",\"collection\":\"b\",\"x\":1}"), 400, "x");
    wrong(post("key", "application/json", "{\"path\":\"relative\",\"collection\":\"b\"}"), 400, "slash");
    wrong(post("key", "application/json", "{\"path\":\"/nothing/there\",\"collection\":\"b\"}"), 404, "no such file");
    wrong(post("key", "application/json", "{\"path\":\"/\",\"collection\":\"b\"}"), 422, "");
    wrong(post("key", "application/json", "{\"path\":\"/x\",\"collection\":\"..\"}"), 400, "cannot name");
    let added = json(post("key", "application/json", &body).is(201));
    assert_eq!((added["result"].as_str(), added["records"].as_u64()), (Some("added"), Some(2)));
    assert_eq!(json(post("key", "application/json", &body).is(200))["result"], "there already");
    assert_eq!(api(&site, "/statistics?collection=new")["captures"], 2);
}

#[test]
fn what_is_wrong_is_said_and_nothing_breaks() {
    let site = site();
    for (target, status, told) in [
        ("/api/v1", 404, "/api says"),
        ("/api/v1/", 404, "/api says"),
        ("/api/v1/nothing", 404, "/api says"),
        ("/api/v1/url", 400, "url is missing"),
        ("/api/v1/url?url=", 400, "cannot be"),
        ("/api/v1/url?url=..%2F..%2Fetc%2Fpasswd", 404, "no capture"),
        ("/api/v1/urls?q=a&limit=1001", 400, "from 1 to 1000"),
        ("/api/v1/urls?q=a&q=b", 400, "twice"),
        ("/api/v1/urls?q=a&colection=b", 400, "no parameter"),
        ("/api/v1/statistics?collection=nothing", 404, "no collection"),
        ("/api/v1/statistics?collection=web", 404, "no collection"),
        ("/api/v1/files/..%2F..%2Fetc", 400, "a file such as"),
        ("/api/v1/files/00000000:99", 404, "no such file"),
        ("/api/v1/files/00000000:9999999999", 404, "no such file"),
        ("/api/v1/files/00000000:9999999999/captures", 404, "no such file"),
        ("/api/v1/records/00000000:1:9999", 404, "no such record"),
        ("/api/v1/records/00000000:1:14", 404, "no such record"),
        ("/api/v1/records?match=regex", 400, "exact, prefix"),
        ("/api/v1/records?status=1000", 400, "from 0 to 999"),
        ("/api/v1/completeness?url=http://example.org/&time=soon", 400, "4 to 14 digits"),
    ] {
        wrong(site.get(target), status, told);
    }
    assert_eq!(site.ask("DELETE", "/api/v1/files", &[], b"").is(405).header("allow"), Some("GET, POST, HEAD"));
    std::fs::remove_file(site.path("two/two.warc.gz")).unwrap();
    let lost = site.get("/api/v1/files/00000000:2/download").is(502);
    assert!(!lost.text().contains("two.warc.gz"), "{}", lost.text());
    assert_eq!(records(site.get("/api/v1/records").is(200).body).len(), 14, "what cannot be read is left out");
}

#[test]
fn the_document_names_every_question() {
    let site = site();
    let document = api(&site, "/openapi.json");
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(paths.len(), 15);
    assert!(paths["/files"]["post"]["security"].is_array());
    for (path, operations) in paths {
        for (_, operation) in operations.as_object().unwrap() {
            assert!(operation["summary"].is_string() && operation["responses"]["200"].is_object(), "{path}");
        }
    }
}
