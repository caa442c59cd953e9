//! Programs that other people wrote for other people's archives, and that must not notice whose this one is: pywb with our index, a client of
//! index servers, a Memento client.

#[path = "../../portal/tests/browser/web.rs"]
mod live;
#[path = "site/portal.rs"]
mod portal;
mod python;
mod site;
#[path = "site/web.rs"]
mod web;

use portal::Portal;
use python::{Peers, run, text};
use serde_json::{Value, json};
use site::Site;
use site::files::{HOME, history, revisits};
use skep_testweb::Body;
use skep_warc::digest::{Algorithm, Digest};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Pages that pywb is asked for.
const PAGES: usize = 30;

fn sha256(bytes: &[u8]) -> String {
    Digest::of(Algorithm::Sha256, bytes).hex()
}

/// What pywb shows of a page.
#[derive(serde::Deserialize)]
struct Shown {
    status: u16,
    body: String,
    embeds: Vec<(String, String, u16, String)>,
}

/// Folders below this one that hold files, each once.
fn folders(below: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(below).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            folders(&path, found);
        } else {
            found.insert(below.to_path_buf());
        }
    }
}

#[test]
fn pywb_replays_with_our_index_in_place_of_outbackcdx() {
    let Some(peers) = Peers::find() else { return };
    let site = Site::new();
    let web = web::generated(60);
    web::crawl(&site, &[web::HOME], &web).exits(0);
    site.write("files/history.warc.gz", history().bytes);
    site.write("files/revisits.warc.gz", revisits().bytes);
    site.skep(&["add", "files/history.warc.gz", "files/revisits.warc.gz"]).exits(0);
    let portal = Portal::begin(&site, &[]);

    let now = web.now();
    let truth = |url: &str| -> String {
        let answer = web.world().answer(url, now).expect("one of its hosts").expect("an answer");
        let Body::Bytes(body) = answer.body else { panic!("{url} is not generated") };
        sha256(&body)
    };
    let reachable = web.world().reachable(&[web::HOME], now, |url| url.starts_with(web::HOME)).expect("the truth");
    let is_page = |entry: &&skep_testweb::Entry| {
        entry.status == 200 && entry.media_type.as_deref().is_some_and(|media_type| media_type.starts_with("text/html"))
    };
    let mut asked: Vec<(String, String)> =
        reachable.iter().filter(is_page).take(PAGES).map(|entry| (entry.url.clone(), truth(&entry.url))).collect();
    assert_eq!(asked.len(), PAGES);
    // Each version of a page with a history; the third has no body of its own, and pywb asks the index for the one it had before.
    for (time, body) in
        [("20170101100000", "first"), ("20190303030303", "second"), ("20200202020202", "unpacked"), ("20210601", "one")]
    {
        let url = if body == "one" { "https://one.co.uk/" } else { HOME };
        asked.push((format!("{time} {url}"), sha256(body.as_bytes())));
    }

    let mut places = BTreeSet::from([site.path("files")]);
    folders(&site.archive().join("segments"), &mut places);
    let list: Vec<&str> = asked.iter().map(|(line, _)| line.as_str()).collect();
    let list = site.write("asked", list.join("\n"));
    let mut replay = peers.script("replay.py");
    replay.arg(format!("http://{}/web", portal.address)).args(&places);
    let told = text(&run(replay.stdin(std::fs::File::open(list).expect("a file"))));
    assert_eq!(told.lines().count(), asked.len());
    let mut embeds = 0;
    for ((line, body), told) in asked.iter().zip(told.lines()) {
        let shown: Shown = serde_json::from_str(told).expect("JSON");
        // pywb takes compressed bodies apart only in pages that it rewrites.
        let is_packed = line.starts_with("20200202020202");
        assert_eq!(shown.status, 200, "{line}");
        assert!(is_packed || shown.body == *body, "{line}: {}", shown.body);
        for (url, kind, status, body) in shown.embeds {
            let answer = web.world().entry(&url, now).expect("one of its hosts").expect("an answer");
            if answer.status == 200 {
                assert_eq!((status, body), (200, truth(&url)), "{kind} {url} of {line}");
                embeds += 1;
            }
        }
    }
    assert!(embeds > PAGES, "{embeds} parts of pages");

    let (code, log, said) = portal.end();
    assert_eq!(code, 0, "{said}");
    let lookups = log.lines().filter(|line| line.contains("\"GET /web?url=") && line.contains("\" 200 ")).count();
    assert!(lookups >= asked.len() + embeds, "{lookups} look-ups in our index:\n{log}");
    let others: Vec<&str> = log.lines().filter(|line| !line.contains("\"GET /web?url=")).collect();
    assert!(others.is_empty(), "bodies came from the files: {others:?}");
}

#[test]
fn cdx_toolkit_reads_both_dialects_that_it_knows() {
    let Some(peers) = Peers::find() else { return };
    let site = Site::filled();
    let portal = Portal::begin(&site, &[]);
    let digest = |body: &str| Digest::of(Algorithm::Sha1, body.as_bytes()).base32();
    let times = |told: &Value| -> Vec<String> {
        told.as_array().expect("a list").iter().map(|one| one[0].as_str().expect("a time").to_owned()).collect()
    };
    for source in ["cdx", "added/cdx", "cdx/search/cdx"] {
        let mut script = peers.script("cdx.py");
        script.arg(format!("http://{}/{source}", portal.address)).arg(format!("http://{}/web", portal.address));
        // By itself it waits for three seconds between two requests.
        let told = text(&run(script.env("CDXT_DEFAULT_MIN_RETRY_INTERVAL", "0")));
        let told: Value = serde_json::from_str(&told).expect("JSON");
        eprintln!("{source}: {told}");
        let home = |time: &str, status: &str, body: &str| json!([time, HOME, status, digest(body)]);
        let exact = &told["exact"];
        assert_eq!(exact[0], home("20170101100000", "200", "first"), "{source}");
        assert_eq!(exact[1], home("20180601120000", "200", "second"), "{source}");
        assert_eq!(exact[3], home("20190303030303", "-", "second"), "{source}");
        assert_eq!(exact.as_array().map(Vec::len), Some(5), "{source}");
        assert_eq!(told["few"].as_array().map(Vec::len), Some(2), "{source}");
        assert_eq!(times(&told["between"]), ["20180601120000", "20180601120000", "20190303030303"], "{source}");
        let below = told["below"].as_array().expect("a list");
        assert_eq!(below.len(), 12, "{source}: {below:?}");
        assert!(below.iter().all(|one| one[1].as_str().is_some_and(|url| url.starts_with(HOME))), "{source}");
        assert_eq!(told["domain"].as_array().map(Vec::len), Some(13), "{source}: with the shop");
        assert_eq!(times(&told["filtered"]), ["20190103000000"], "{source}");
        assert_eq!(told["absent"], json!([]), "{source}");
        assert!(told["about"].as_u64().is_some_and(|about| about > 0), "{source}: {}", told["about"]);
        let bodies = &told["bodies"];
        assert_eq!(bodies[0], json!(["20170101100000", sha256(b"first")]), "{source}");
        assert_eq!(bodies[3], json!(["20200202020202", sha256(b"unpacked")]), "{source}");
    }
    assert_eq!(portal.end().0, 0);
}

#[test]
fn a_memento_client_finds_the_version_of_a_date() {
    let Some(peers) = Peers::find() else { return };
    let site = Site::filled();
    let portal = Portal::begin(&site, &[]);
    let page = |url: &str| live::File {
        url: url.to_owned(),
        media_type: "text/html".to_owned(),
        body: b"as it is today".to_vec(),
    };
    let live = live::Web::of(&[page(HOME), page("http://absent.example/")]);
    let ask = |url: &str, dates: &[&str]| -> Vec<Value> {
        let dates = site.write("dates", dates.join("\n"));
        let mut script = peers.script("memento.py");
        script.arg(format!("http://{}/web/", portal.address)).arg(url);
        script.env("HTTP_PROXY", format!("http://127.0.0.1:{}", live.port)).env("NO_PROXY", "127.0.0.1");
        let told = text(&run(script.stdin(std::fs::File::open(dates).expect("a file"))));
        told.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let told = ask(HOME, &["2010-01-01T00:00:00", "2018-07-01T00:00:00", "2019-03-04T00:00:00", "2038-01-01T00:00:00"]);
    let expected = [
        ("2017-01-01T10:00:00", "20170101100000", "first"),
        ("2018-06-01T12:00:00", "20180601120000", "second"),
        ("2019-03-03T03:03:03", "20190303030303", "second"),
        ("2020-02-02T02:02:02", "20200202020202", "unpacked"),
    ];
    for (told, (date, digits, body)) in told.iter().zip(expected) {
        assert_eq!(told["original"], HOME);
        assert_eq!(told["gate"], format!("http://{}/web/{HOME}", portal.address));
        assert_eq!((&told["datetime"], &told["status"]), (&json!(date), &json!(200)), "{told}");
        let memento = told["memento"].as_str().expect("an address");
        assert!(memento.contains(digits) && memento.ends_with(HOME), "{memento}");
        assert_eq!((&told["found again"], &told["is memento"]), (&json!(HOME), &json!(true)), "{told}");
        assert!(told["body"].as_str().is_some_and(|text| text.starts_with(body)), "{told}");
    }
    assert_eq!(told.len(), expected.len());
    let told = ask("http://absent.example/", &["2018-07-01T00:00:00"]);
    assert_eq!(told[0]["memento"], Value::Null, "{}", told[0]);
    assert_eq!(portal.end().0, 0);
}
