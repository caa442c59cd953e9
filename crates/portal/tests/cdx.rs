//! The index in its three dialects, over real sockets.

mod site;

use serde_json::{Value, json};
use site::{Site, Warc, sha1};
use skep_portal::{Access, Settings};
use skep_warc::digest::{Algorithm, Digest};

const A: &[u8] = b"<p>first</p>";
const B: &[u8] = b"<p>second</p>";

fn warc() -> Warc {
    let gone = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\ngone";
    Warc::new()
        .page("http://example.org/", "2014-01-01T00:00:00Z", "text/html", A)
        .same("http://example.org/", "2014-06-01T00:00:00Z", A, Some(("http://example.org/", "2014-01-01T00:00:00Z")))
        .page("https://www.example.org/", "2015-01-01T00:00:00Z", "text/html", B)
        .page("http://example.org/a.png", "2014-01-01T00:00:01Z", "image/png", b"png")
        .answer("http://example.org/gone", "2014-01-01T00:00:02Z", gone)
        .page("http://sub.example.org/x?b=2&a=1", "2016-02-03T04:05:06Z", "text/plain", b"sub")
        .page("http://other.example/", "2014-01-01T00:00:00Z", "text/plain", b"other")
        .private("http://example.org/secret", "2014-01-01T00:00:00Z", b"secret")
}

fn site() -> Site {
    Site::new(&[("crawl", "a.warc.gz", warc().bytes)])
}

fn lines(site: &Site, target: &str) -> Vec<String> {
    site.get(target).is(200).text().lines().map(str::to_owned).collect()
}

/// The named fields of each line, in the dialect of the Internet Archive.
fn archive(site: &Site, query: &str) -> Vec<String> {
    lines(site, &format!("/cdx/search/cdx?{query}"))
}

#[test]
fn the_internet_archives_dialect() {
    let site = site();
    let (a, b) = (sha1(A), sha1(B));
    let all = archive(&site, "url=example.org&fl=urlkey,timestamp,original,mimetype,statuscode,digest");
    assert_eq!(
        all,
        [
            format!("org,example)/ 20140101000000 http://example.org/ text/html 200 {a}"),
            format!("org,example)/ 20140601000000 http://example.org/ warc/revisit - {a}"),
            format!("org,example)/ 20150101000000 https://www.example.org/ text/html 200 {b}"),
        ]
    );
    // Seven fields unless told otherwise, the last the length of the record in its file.
    let seven = archive(&site, "url=http://example.org/");
    assert!(
        seven.iter().all(|line| line.split(' ').count() == 7)
            && seven[0].split(' ').nth(6).unwrap().parse::<u64>().is_ok()
    );
    let times = |query: &str| archive(&site, &format!("url=example.org&fl=timestamp&{query}"));
    assert_eq!(times("from=2014&to=201406"), ["20140101000000", "20140601000000"]);
    assert_eq!(times("from=20140101000001"), ["20140601000000", "20150101000000"]);
    assert_eq!(times("limit=1"), ["20140101000000"]);
    assert_eq!(times("limit=-2"), ["20140601000000", "20150101000000"]);
    assert_eq!(times("fastLatest=true&limit=1"), ["20150101000000"]);
    assert_eq!(times("offset=1&limit=1"), ["20140601000000"]);
    assert_eq!(times("collapse=timestamp:4"), ["20140101000000", "20150101000000"]);
    assert_eq!(times("collapse=digest"), ["20140101000000", "20150101000000"]);
    assert_eq!(times("sort=closest&closest=20140701"), ["20140601000000", "20140101000000", "20150101000000"]);
    assert_eq!(times("filter=statuscode:2.."), ["20140101000000", "20150101000000"]);
    assert_eq!(times("filter=!mimetype:text/.*"), ["20140601000000"]);
    assert_eq!(times("filter=mimetype:text"), [""; 0], "an expression matches all of a value");
    assert_eq!(times("filter=.*second.*").len(), 0);
    assert_eq!(
        archive(&site, "url=example.org&fl=timestamp&collapse=timestamp:4&showSkipCount=true&lastSkipTimestamp=true"),
        ["20140101000000 1 20140601000000", "20150101000000 0 -"]
    );
    assert_eq!(
        archive(&site, "url=example.org&fl=timestamp,mimetype&showDupeCount=true"),
        ["20140101000000 text/html 0", "20140601000000 text/html 1", "20150101000000 text/html 0"]
    );
    let resolved = archive(&site, "url=example.org&fl=timestamp,statuscode&resolveRevisits=true&limit=2");
    assert_eq!(resolved[0], "20140101000000 200 - - -");
    assert!(resolved[1].starts_with("20140601000000 200 ") && resolved[1].ends_with(" 0 a.warc.gz"), "{}", resolved[1]);
}

#[test]
fn scopes_of_matching() {
    let site = site();
    let keys = |query: &str| archive(&site, &format!("{query}&fl=urlkey&collapse=urlkey"));
    assert_eq!(keys("url=example.org&matchType=host"), ["org,example)/", "org,example)/a.png", "org,example)/gone"]);
    assert_eq!(keys("url=example.org/a*"), ["org,example)/a.png"]);
    assert_eq!(keys("url=example.org/g&matchType=prefix"), ["org,example)/gone"]);
    let domain = ["org,example)/", "org,example)/a.png", "org,example)/gone", "org,example,sub)/x?a=1&b=2"];
    assert_eq!(keys("url=*.example.org"), domain);
    assert_eq!(keys("url=example.org&matchType=domain"), domain);
    assert_eq!(keys("url=example.org/secret").len(), 0, "captures made with secrets are not listed");
    assert_eq!(keys("url=nothing.example").len(), 0);
}

#[test]
fn json_and_going_on() {
    let site = site();
    let text = site.get("/cdx/search/cdx?url=example.org&output=json&fl=urlkey,timestamp&limit=2").is(200).text();
    assert_eq!(
        text,
        "[[\"urlkey\",\"timestamp\"],\n[\"org,example)/\",\"20140101000000\"],\n[\"org,example)/\",\"20140601000000\"]]\n"
    );
    assert_eq!(site.get("/cdx/search/cdx?url=nothing.example&output=json").is(200).text(), "[]\n");
    // Page by page through everything of a domain, with a key each time.
    let mut seen = Vec::new();
    let mut key = String::new();
    for _ in 0..20 {
        let page = site
            .get(&format!("/cdx/search/cdx?url=*.example.org&fl=urlkey,timestamp&limit=1&showResumeKey=true{key}"))
            .is(200)
            .text();
        let mut rows = page.lines();
        seen.extend(rows.next().map(str::to_owned));
        match (rows.next(), rows.next()) {
            (Some(""), Some(next)) => key = format!("&resumeKey={next}"),
            _ => break,
        }
    }
    assert_eq!(seen, archive(&site, "url=*.example.org&fl=urlkey,timestamp"));
    let json: Value = serde_json::from_str(
        &site.get("/cdx/search/cdx?url=example.org&output=json&fl=timestamp&limit=1&showResumeKey=true").is(200).text(),
    )
    .unwrap();
    assert_eq!(json[2], json!([]));
    assert!(json[3][0].as_str().unwrap().starts_with("org%2Cexample%29%2F+20140101000000"));
    assert_eq!(site.get("/cdx/search/cdx?url=*.example.org&showNumPages=true").is(200).text(), "1\n");
    assert_eq!(archive(&site, "url=example.org&page=0").len(), 3);
    assert_eq!(archive(&site, "url=example.org&page=1").len(), 0);
    // Behind the last page there is not even an empty list: clients that turn pages stop there.
    let page =
        |url: &str, page: u64| site.get(&format!("/cdx/search/cdx?url={url}&output=json&page={page}")).is(200).text();
    assert_eq!((page("absent.example", 0), page("absent.example", 1)), ("[]\n".to_owned(), String::new()));
    assert_eq!(page("example.org", 1), "");
}

#[test]
fn pywbs_dialect() {
    let site = site();
    let first = &lines(&site, "/crawl/cdx?url=example.org")[0];
    let offset = 0;
    let length = first.split("\"length\": \"").nth(1).unwrap().split('"').next().unwrap();
    let expected = format!(
        "org,example)/ 20140101000000 {{\"url\": \"http://example.org/\", \"mime\": \"text/html\", \"status\": \"200\", \"digest\": \"{}\", \
         \"length\": \"{length}\", \"offset\": \"{offset}\", \"filename\": \"a.warc.gz\", \"source\": \"crawl:a.warc.gz\", \"source-coll\": \"crawl\"}}",
        sha1(A)
    );
    assert_eq!(*first, expected);
    assert_eq!(lines(&site, "/cdx?url=example.org"), lines(&site, "/crawl/cdx?url=example.org"));
    let times = |query: &str| -> Vec<String> {
        lines(&site, &format!("/cdx?url=example.org&output=text&fl=timestamp&{query}"))
    };
    assert_eq!(times("sort=reverse&limit=2"), ["20150101000000", "20140601000000"]);
    assert_eq!(times("closest=20140701&limit=1"), ["20140601000000"]);
    assert_eq!(times("filter=mime:html"), ["20140101000000", "20150101000000"], "contains");
    assert_eq!(times("filter==mime:text"), [""; 0], "equals");
    assert_eq!(times("filter=~mime:text"), ["20140101000000", "20150101000000"], "matches the beginning");
    assert_eq!(times("filter=!~mime:text"), ["20140601000000"]);
    assert_eq!(times("collapseTime=4"), ["20140101000000", "20140601000000", "20150101000000"], "the status differs");
    assert_eq!(times("matchType=domain&sort=reverse&collapseTime=4&limit=2"), ["20160203040506", "20140101000002"]);
    let json = lines(&site, "/cdx?url=example.org&output=json&fields=urlkey,timestamp,status&limit=2");
    assert_eq!(
        json,
        [
            "{\"urlkey\": \"org,example)/\", \"timestamp\": \"20140101000000\", \"status\": \"200\"}",
            "{\"urlkey\": \"org,example)/\", \"timestamp\": \"20140601000000\"}"
        ]
    );
    let link = site.get("/crawl/cdx?url=http://example.org/&output=link").is(200);
    assert_eq!(link.header("content-type"), Some("application/link-format"));
    assert_eq!(link.text().lines().count(), 6);
    let pages = "/cdx?url=*.example.org&showNumPages=true";
    assert_eq!(site.get(pages).is(200).text(), "{\"pages\": 1, \"pageSize\": 10, \"blocks\": 1}");
    let beyond = site.get("/cdx?url=example.org&page=7").is(400);
    assert_eq!(beyond.text(), "{\"message\": \"Page 7 invalid: First Page is 0, Last Page is 0\"}");
    assert_eq!(site.get("/cdx").is(400).text(), "{\"message\": \"The \\\"url\\\" param is required\"}");
    assert_eq!(site.get("/cdx?url=a&matchType=x").is(400).text(), "{\"message\": \"Invalid match_type: x\"}");
}

#[test]
fn outbacks_dialect() {
    let site = site();
    let found = lines(&site, "/crawl?url=http://example.org/");
    assert_eq!(found.len(), 3);
    assert!(
        found[0]
            .starts_with(&format!("org,example)/ 20140101000000 http://example.org/ text/html 200 {} - - ", sha1(A)))
    );
    assert!(found[0].ends_with(" 0 a.warc.gz") && found[0].split(' ').count() == 11, "{}", found[0]);
    assert!(found[1].contains(" warc/revisit - "));
    let got = site.get("/crawl?url=http://example.org/").is(200);
    assert_eq!(
        (got.header("outbackcdx-urlkey"), got.header("content-type")),
        (Some("org,example)/"), Some("text/plain"))
    );
    let times = |query: &str| lines(&site, &format!("/crawl?fl=timestamp&{query}"));
    assert_eq!(times("url=example.org&sort=reverse"), ["20150101000000", "20140601000000", "20140101000000"]);
    assert_eq!(times("url=example.org&sort=closest&closest=20140701&limit=1"), ["20140601000000"]);
    assert_eq!(times("url=example.org&sort=closest&closest="), ["20140101000000", "20140601000000", "20150101000000"]);
    assert_eq!(times("url=example.org&from=2015"), ["20150101000000"]);
    assert_eq!(times("urlkey=org,example)/gone"), ["20140101000002"]);
    assert_eq!(times("url=example.org&filter=!statuscode:200"), ["20140601000000"]);
    assert_eq!(times("url=example.org&filter=~mimetype:html"), ["20140101000000", "20150101000000"]);
    assert_eq!(times("url=example.org&collapseToLast=timestamp:4"), ["20140601000000", "20150101000000"]);
    assert_eq!(times("url=example.org&collapseToFirst=timestamp:4"), ["20140101000000", "20150101000000"]);
    let json: Value = serde_json::from_str(
        &site.get("/crawl?url=example.org&output=json&fl=urlkey,timestamp,status&limit=1").is(200).text(),
    )
    .unwrap();
    assert_eq!(json, json!([["org,example)/", 20_140_101_000_000u64, 200]]));
    let objects: Value = serde_json::from_str(
        &site.get("/crawl?url=example.org&output=jsondict&fl=timestamp,filename&limit=1").is(200).text(),
    )
    .unwrap();
    assert_eq!(objects, json!([{ "timestamp": 20_140_101_000_000u64, "filename": "a.warc.gz" }]));
    site.get("/crawl?url=a&urlkey=b").is(400);
    site.get("/crawl?url=*.example.org&sort=closest&closest=2014").is(400);
    site.get("/nothing?url=example.org").is(404);
}

#[test]
fn what_makes_no_sense_is_said_to_be_so() {
    let site = site();
    for query in [
        "url=a&limit=x",
        "url=a&from=yesterday",
        "url=a&filter=original:(",
        "url=a&filter=original:(?%3Da)b",
        "url=a&filter=original:((((a{100}){100}){100}){100})",
        "url=a&collapse=nothing",
        "url=a&collapse=timestamp:x",
        "url=a&resumeKey=nonsense",
        "url=a&matchType=sideways",
        "",
    ] {
        let got = site.get(&format!("/cdx/search/cdx?{query}")).is(400);
        assert!(got.text().len() < 400 && !got.text().contains("warc"), "{}", got.text());
    }
    // Nothing here takes long, whatever it is given.
    for query in [
        "url=example.org&limit=99999999999999999999999",
        "url=example.org&offset=99999999999999999999999",
        "url=example.org&page=99999999999999999999&pageSize=99999999999999999",
        "url=example.org&filter=original:(a*)*b",
        "url=%00%ff%fe",
        "url=*",
        "url=../../etc/passwd&matchType=prefix",
    ] {
        site.get(&format!("/cdx/search/cdx?{query}")).is(200);
        site.get(&format!("/crawl?{query}"));
        site.get(&format!("/cdx?{query}"));
    }
    site.get("/health").is(200);
}

#[test]
fn a_long_answer_streams() {
    let mut warc = Warc::new();
    for number in 0..4000 {
        warc = warc.page(&format!("http://many.example/{number:05}"), "2014-01-01T00:00:00Z", "text/plain", b"x");
    }
    let site = Site::new(&[("crawl", "a.warc.gz", warc.bytes)]);
    let got = site.get("/cdx/search/cdx?url=many.example&matchType=host").is(200);
    assert!(got.whole && got.header("transfer-encoding").is_some());
    assert_eq!(got.text().lines().count(), 4000);
    assert_eq!(archive(&site, "url=many.example/*&page=1&pageSize=1").len(), 1000);
    assert_eq!(site.get("/cdx/search/cdx?url=many.example/*&showNumPages=true&pageSize=1").text(), "2\n");
    assert_eq!(archive(&site, "url=many.example/*&limit=-3&fl=urlkey")[2], "example,many)/03999");
}

fn writable() -> Site {
    let hash = Digest::of(Algorithm::Sha256, b"pen").hex();
    let users = format!("[[token]]\nsha256 = \"{hash}\"\nmay = \"write\"");
    Site::with(&[("crawl", "a.warc.gz", warc().bytes)], |settings| Settings {
        access: Access::default().with_users(&users).unwrap(),
        ..settings
    })
}

#[test]
fn lines_are_added_and_taken_away_with_a_token() {
    let site = writable();
    let late = Warc::new().page("http://late.example/", "2020-01-01T00:00:00Z", "text/plain", b"late");
    let length = late.bytes.len();
    std::fs::write(site.path("crawl/late.warc.gz"), late.bytes).unwrap();
    let digest = sha1(b"late");
    let beside = format!("- 20200101000000 http://late.example/ text/plain 200 {digest} - - {length} 0 late.warc.gz\n");
    let elsewhere =
        format!("- 20210101000000 http://late.example/ text/plain 200 {digest} - - 99 1234567 far/away.warc.gz\n");
    let both = format!(" CDX N b a m s k r M S V g\n{beside}{elsewhere}");
    let post = |target: &str, token: &str, body: &str| {
        site.ask("POST", target, &[("Authorization", &format!("Bearer {token}"))], body.as_bytes())
    };
    post("/crawl", "pencil", &both).is(403);
    site.ask("POST", "/crawl", &[], both.as_bytes()).is(403);
    assert_eq!(lines(&site, "/crawl?url=late.example").len(), 0);
    assert_eq!(post("/crawl", "pen", &both).is(200).text(), "Added 2 records\n");
    assert_eq!(
        lines(&site, "/crawl?url=late.example&fl=timestamp,filename"),
        ["20200101000000 late.warc.gz", "20210101000000 far/away.warc.gz"]
    );
    assert_eq!(
        site.get("/crawl/20200101000000id_/http://late.example/").is(200).text(),
        "late",
        "its file was beside the others"
    );
    let far = site.get("/crawl/20210101000000id_/http://late.example/").is(502);
    assert!(far.text().contains("index only"), "{}", far.text());
    // The same lines again change nothing.
    assert_eq!(post("/crawl", "pen", &both).is(200).text(), "Added 2 records\n");
    assert_eq!(lines(&site, "/crawl?url=late.example").len(), 2);
    assert_eq!(post("/crawl/delete", "pen", &elsewhere).is(200).text(), "Deleted 1 records\n");
    assert_eq!(lines(&site, "/crawl?url=late.example&fl=timestamp"), ["20200101000000"]);
    assert_eq!(post("/crawl/delete", "pen", &elsewhere).is(200).text(), "Deleted 0 records\n");
    post("/crawl/delete", "pencil", &beside).is(403);
    // A new collection begins with its first line; a wrong line adds nothing.
    assert_eq!(post("/fresh", "pen", &elsewhere).is(200).text(), "Added 1 records\n");
    assert_eq!(lines(&site, "/fresh?url=late.example").len(), 1);
    let wrong = post("/other", "pen", &format!("{elsewhere}nonsense\n")).is(400);
    assert!(wrong.text().starts_with("At line: nonsense"), "{}", wrong.text());
    site.get("/other?url=late.example").is(404);
    for name in ["web", "static", "..%2F..", "a%20b"] {
        post(&format!("/{name}"), "pen", &elsewhere).is(400);
    }
}
