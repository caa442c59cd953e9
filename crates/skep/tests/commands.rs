//! Every command and every flag of the binary, on files whose content is known.

mod site;

use serde_json::{Value, json};
use site::files::{HOME, Warc, arc, chunked_gzip, digest, gzip, history, message, package, revisits};
use site::{Ran, Site};
use skep_warc::write::Compression;

/// An archive of the history, the revisits in another file.
fn filled() -> Site {
    let site = Site::new();
    site.write("history.warc.gz", history().bytes);
    site.write("revisits.warc.gz", revisits().bytes);
    site.skep(&["add", "history.warc.gz", "revisits.warc.gz"]).exits(0);
    site
}

fn times(ran: &Ran) -> Vec<String> {
    ran.each("time")
}

// ── add ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn adding_tells_what_was_added_and_adding_again_does_nothing() {
    let site = Site::new();
    let path = site.write("history.warc.gz", history().bytes);
    let added = site.skep(&["add", "--json", "history.warc.gz"]).exits(0);
    let whole = path.canonicalize().unwrap().display().to_string();
    assert_eq!(
        added.json(),
        [json!({ "file": whole, "collection": "added", "result": "added", "records": 15, "findings": [] })]
    );
    let again = site.skep(&["add", "history.warc.gz"]).exits(0);
    assert_eq!(again.cells(), [["0", "0", "there already", whole.as_str()]]);
    assert_eq!(site.skep(&["stats", "--json"]).json()[0]["captures"], 12);
    site.is_sound();
}

#[test]
fn a_file_that_changed_since_is_left_out_and_said_so() {
    let site = filled();
    site.write("history.warc.gz", history().page(HOME, "2023-01-01T00:00:00Z", "appended").bytes);
    let added = site.skep(&["add", "history.warc.gz"]).exits(3);
    assert!(added.text().contains("changed since it was added"), "{}", added.text());
    let checked = site.skep(&["check", "--json"]).exits(1);
    assert_eq!(checked.each("rule"), ["collection"]);
    assert!(checked.each("file")[0].ends_with("/history.warc.gz"));
}

#[test]
fn every_kind_of_file_can_be_added_and_read_back() {
    let site = Site::new();
    let page = |compression: Compression, host: &str| {
        Warc::new(compression).info().page(&format!("http://{host}/"), "2010-01-01T00:00:00Z", host).bytes
    };
    let dictionary = Compression::Zstd { level: 3, dictionary: Some(b"WARC/1.1\r\nWARC-Type: response\r\n".to_vec()) };
    site.write("all/plain.warc", page(Compression::Plain, "plain.example"));
    site.write("all/packed.warc.gz", page(Compression::GZIP, "gzip.example"));
    site.write("all/packed.warc.zst", page(Compression::ZSTD, "zstd.example"));
    site.write("all/below/with-dictionary.warc.zst", page(dictionary, "dictionary.example"));
    site.write("all/below/old.arc", arc("http://arc.example/", "20100101000000", "arc.example"));
    site.write("all/below/old.arc.gz", {
        let whole = arc("http://arc-gz.example/", "20100101000000", "arc-gz.example");
        let second = whole.windows(7).position(|w| w == b"http://").unwrap();
        [gzip(&whole[..second]), gzip(&whole[second..])].concat()
    });
    let inside = page(Compression::GZIP, "wacz.example");
    site.write("all/crawl.wacz", package(&[("datapackage.json", b"{}"), ("archive/data.warc.gz", &inside)]));
    site.write("all/readme.txt", "not an archive file");
    let added = site.skep(&["add", "--json", "all"]).exits(0);
    assert_eq!(added.each("result"), ["added"; 7]);
    for host in ["plain", "gzip", "zstd", "dictionary", "arc", "arc-gz", "wacz"] {
        let host = format!("{host}.example");
        assert_eq!(site.skep(&["get", &host]).exits(0).text(), host);
        let record = site.skep(&["get", &host, "--warc"]).exits(0).text();
        assert!(record.contains(&format!("http://{host}/")) && record.contains(&host), "{record}");
    }
    site.is_sound();
    // Nothing of it depends on the views, or on the sidecars.
    for typed in [["rebuild"].as_slice(), &["rebuild", "--reparse"]] {
        site.skep(typed).exits(0);
        assert_eq!(site.skep(&["captures", "*.example", "--json"]).exits(0).json().len(), 7);
        assert_eq!(site.skep(&["get", "wacz.example"]).exits(0).text(), "wacz.example");
    }
}

#[test]
fn an_index_brings_in_the_captures_it_lists() {
    let site = Site::new();
    site.write("files/history.warc.gz", history().bytes);
    let index = site.skep(&["index", "files/history.warc.gz"]).exits(0);
    site.write("files/index.cdxj", &index.out);
    site.skep(&["add", "files/index.cdxj"]).exits(0);
    let listed = site.skep(&["captures", HOME, "--json"]).exits(0);
    assert_eq!(listed.json().len(), 5);
    assert_eq!(site.skep(&["get", HOME]).exits(0).text(), "unpacked");
    assert_eq!(site.skep(&["get", HOME, "--at", "2019"]).exits(0).text(), "second");
    // The same captures as from the file itself, but for their positions: an index does not number records.
    let direct = Site::new();
    direct.write("files/history.warc.gz", history().bytes);
    direct.skep(&["add", "files/history.warc.gz"]).exits(0);
    let facts = |site: &Site| {
        let listed = site.skep(&["captures", "example.org", "--match", "domain", "--json"]).exits(0).json();
        // The lines of an index say `warc/revisit` where the media type of a revisit would stand.
        let fact = |o: &Value| {
            let mime = if o["type"] == "revisit" { Value::Null } else { o["mime"].clone() };
            (["url", "time", "status", "digest", "length", "offset"].map(|f| o[f].clone()), mime)
        };
        listed.iter().map(fact).collect::<Vec<_>>()
    };
    assert_eq!(facts(&site), facts(&direct));
    for typed in [["rebuild"].as_slice(), &["rebuild", "--reparse"]] {
        site.skep(typed).exits(0);
        assert_eq!(facts(&site), facts(&direct), "{typed:?}");
    }
}

#[test]
fn copies_stay_when_the_originals_go() {
    let site = Site::new();
    let original = site.write("gift.warc.gz", history().bytes);
    let package = site.write("gift.wacz", package(&[("archive/a.warc.gz", &revisits().bytes)]));
    site.skep(&["add", "--copy", "--collection", "gifts", "gift.warc.gz", "gift.wacz"]).exits(0);
    std::fs::remove_file(original).unwrap();
    std::fs::remove_file(package).unwrap();
    assert_eq!(site.skep(&["get", HOME, "--at", "2017"]).exits(0).text(), "first");
    assert_eq!(site.skep(&["get", "http://example.org/copy"]).exits(0).text(), "first");
    let listed = site.skep(&["captures", HOME, "--json"]).exits(0);
    let inside = site.archive().canonicalize().unwrap().display().to_string();
    assert!(listed.each("file").iter().all(|file| file.starts_with(&inside)), "{}", listed.text());
    assert_eq!(listed.each("collection"), ["gifts"; 5]);
    site.is_sound();
    site.skep(&["rebuild", "--reparse"]).exits(0);
    assert_eq!(site.skep(&["get", HOME, "--at", "2017"]).exits(0).text(), "first");
}

#[test]
fn without_a_copy_a_lost_original_is_told_of() {
    let site = filled();
    std::fs::remove_file(site.path("history.warc.gz")).unwrap();
    site.skep(&["captures", HOME]).exits(0);
    site.skep(&["get", HOME]).fails("history.warc.gz");
    assert!(site.skep(&["check"]).exits(1).text().contains("history.warc.gz"));
    // What the sidecar knows is not forgotten while the file is away.
    site.skep(&["rebuild"]).exits(0);
    assert_eq!(site.skep(&["captures", HOME, "--json"]).exits(0).json().len(), 5);
}

#[test]
fn a_folder_is_searched_once_and_never_the_archive_itself() {
    let site = Site::new();
    site.write("crawls/a.warc.gz", history().bytes);
    site.write("crawls/deep/er/B.WARC.GZ", revisits().bytes);
    std::os::unix::fs::symlink(site.path("crawls"), site.path("crawls/deep/round")).unwrap();
    std::os::unix::fs::symlink(site.path("crawls"), site.path("crawls/deep/and-round")).unwrap();
    for expected in [["added", "added"], ["there already", "there already"]] {
        let added = site.skep(&["add", "--copy", "--json", "."]).exits(0);
        assert_eq!(added.each("result"), expected, "{}", added.text());
    }
}

// ── captures ─────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_capture_says_everything_about_itself() {
    let site = filled();
    let written = history();
    let listed = site.skep(&["captures", HOME, "--json"]).exits(0).json();
    let second = &listed[1];
    let length = written.offsets[5] - written.offsets[4];
    assert_eq!(
        *second,
        json!({
            "url": HOME, "time": "2018-06-01T12:00:00Z", "status": 200, "mime": "text/html", "digest": digest(b"second"),
            "length": length, "file": site.path("history.warc.gz").canonicalize().unwrap().display().to_string(),
            "offset": written.offsets[4], "position": "00000000:1:4", "type": "response", "key": "org,example)/",
            "collection": "added",
        })
    );
    let kinds: Vec<_> = listed.iter().map(|o| o["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["response", "response", "response", "revisit", "response"]);
    let resource = &site.skep(&["captures", "example.org/notes.txt", "--json"]).exits(0).json()[0];
    assert_eq!((&resource["status"], &resource["mime"]), (&Value::Null, &json!("text/plain")));
    assert_eq!(resource["digest"], digest(b"HTTP/1.1 is a protocol"));
}

#[test]
fn tables_show_the_same_in_columns() {
    let site = filled();
    let shown = site.skep(&["captures", "http://example.org/news/b"]).exits(0);
    let length = history().offsets[10] - history().offsets[9];
    assert_eq!(
        shown.cells(),
        [[
            "2019-01-02T00:00:00Z",
            "404",
            "response",
            "text/html",
            &length.to_string(),
            &digest(b"gone")[5..17],
            "http://example.org/news/b"
        ]]
    );
    let resource = site.skep(&["captures", "http://example.org/notes.txt"]).exits(0).cells();
    assert_eq!(resource[0][1], "-");
}

#[test]
fn captures_of_one_second_are_all_listed() {
    let site = filled();
    let listed =
        site.skep(&["captures", HOME, "--from", "20180601120000", "--to", "20180601120000", "--json"]).exits(0);
    assert_eq!(listed.each("digest"), [digest(b"second"), digest(b"second once more")]);
    assert_eq!(listed.each("time"), ["2018-06-01T12:00:00Z"; 2]);
}

#[test]
fn a_url_can_stand_for_more() {
    let site = filled();
    let count = |typed: &[&str]| {
        let ran = site.skep(&[&["captures", "--json"], typed].concat());
        assert_eq!(ran.code, i32::from(ran.out.is_empty()), "{typed:?}");
        ran.json().len()
    };
    for (typed, expected) in [
        ([HOME].as_slice(), 5),
        (&["example.org"], 5),
        (&["https://www.EXAMPLE.org:443/"], 5),
        (&[HOME, "--match", "exact"], 5),
        (&["http://example.org/news/", "--match", "prefix"], 3),
        (&["http://example.org/n", "--match", "prefix"], 4),
        (&["http://example.org/news*"], 3),
        (&["example.org", "--match", "host"], 12),
        (&["example.org", "--match", "domain"], 13),
        (&["*.example.org"], 13),
        (&["*.shop.example.org"], 1),
        (&["co.uk", "--match", "domain"], 2),
        (&["*.uk"], 2),
        (&["one.co.uk"], 1),
        (&["*.org"], 13),
        (&["http://example.org/absent"], 0),
        (&["example.net", "--match", "domain"], 0),
    ] {
        assert_eq!(count(typed), expected, "{typed:?}");
    }
}

#[test]
fn spans_statuses_and_media_types_narrow_the_list() {
    let site = filled();
    let count = |typed: &[&str]| site.skep(&[&["captures", "*.example.org", "--json"], typed].concat()).json().len();
    for (typed, expected) in [
        (["--from", "2019"].as_slice(), 10),
        (&["--to", "2018"], 3),
        (&["--to", "2018-06"], 3),
        (&["--to", "2018-05"], 1),
        (&["--from", "2019-01-02", "--to", "20190103"], 2),
        (&["--from", "2019-01-01T00:00:01Z", "--to", "2019-01-02"], 1),
        (&["--from", "2030"], 0),
        (&["--status", "404"], 1),
        (&["--status", "304"], 1),
        (&["--mime", "image/png"], 1),
        (&["--mime", "image/*"], 1),
        (&["--mime", "text/*", "--to", "2018"], 3),
        (&["--mime", "text/plain"], 1),
        (&["--limit", "4"], 4),
        (&["--status", "200", "--from", "2019", "--to", "2019", "--mime", "text/html"], 3),
    ] {
        assert_eq!(count(typed), expected, "{typed:?}");
    }
}

#[test]
fn the_list_can_begin_with_the_newest() {
    let site = filled();
    let forward = times(&site.skep(&["captures", HOME, "--json"]).exits(0));
    assert!(forward.is_sorted(), "{forward:?}");
    let backward = times(&site.skep(&["captures", HOME, "--reverse", "--json"]).exits(0));
    assert_eq!(backward, forward.iter().rev().cloned().collect::<Vec<_>>());
    let newest = site.skep(&["captures", HOME, "--reverse", "--limit", "1", "--json"]).exits(0);
    assert_eq!(times(&newest), ["2020-02-02T02:02:02Z"]);
}

#[test]
fn nothing_found_is_said_and_is_the_answer_no() {
    let site = filled();
    for typed in [["captures", "http://nowhere.example/"], ["get", "http://nowhere.example/"]] {
        let ran = site.skep(&typed).exits(1);
        assert_eq!((ran.text(), ran.talk.as_str()), (String::new(), "no capture of http://nowhere.example/\n"));
    }
    site.skep(&["get", "--json", "http://nowhere.example/"]).exits(1);
}

#[test]
fn captures_made_with_secrets_are_answered_only_when_asked_for() {
    let site = Site::new();
    site.write("a.warc.gz", Warc::gzip().private("http://a.example/me", "2020-01-01T00:00:00Z", "secret").bytes);
    site.skep(&["add", "a.warc.gz"]).exits(0);
    site.skep(&["captures", "a.example/me"]).exits(1);
    site.skep(&["get", "a.example/me"]).exits(1);
    site.skep(&["get", "a.example/me", "--at", "2020"]).exits(1);
    assert_eq!(site.skep(&["captures", "a.example/me", "--private", "--json"]).exits(0).json().len(), 1);
    assert_eq!(site.skep(&["get", "a.example/me", "--private"]).exits(0).text(), "secret");
}

// ── get ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_capture_comes_in_every_form() {
    let site = filled();
    let sent = chunked_gzip("unpacked");
    let head = sent.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
    let get = |form: &[&str]| site.skep(&[&["get", HOME], form].concat()).exits(0);
    assert_eq!(get(&[]).text(), "unpacked");
    assert_eq!(get(&["--body"]).text(), "unpacked");
    assert_eq!(get(&["--raw"]).out, sent);
    assert_eq!(get(&["--headers"]).out, &sent[..head]);
    let record = get(&["--warc"]);
    assert!(record.text().starts_with("WARC/1.1\r\nWARC-Type: response\r\n"), "{}", record.text());
    assert!(record.out.ends_with(&[sent.as_slice(), b"\r\n\r\n"].concat()));
    let object = &get(&["--json"]).json()[0];
    assert_eq!(object["time"], "2020-02-02T02:02:02Z");
    assert_eq!(object["headers"][1], json!(["Content-Encoding", "gzip"]));
}

#[test]
fn what_comes_out_as_warc_is_a_warc_file() {
    let site = filled();
    for (url, records) in [(HOME, 1), ("example.org/copy", 2), ("example.org/notes.txt", 1)] {
        let record = site.skep(&["get", url, "--warc"]).exits(0);
        site.write("one.warc", &record.out);
        let checked = site.skep(&["check", "one.warc"]).exits(0);
        assert!(checked.talk.contains(&format!("{records} records")), "{}", checked.talk);
    }
}

#[test]
fn the_capture_nearest_to_a_time_is_taken() {
    let site = filled();
    for (at, expected) in [
        ("1990", "2017-01-01T10:00:00Z"),
        ("2017-01-01T10:00:00Z", "2017-01-01T10:00:00Z"),
        ("2017-09", "2017-01-01T10:00:00Z"),
        ("2017-10", "2018-06-01T12:00:00Z"),
        ("20190101000000", "2019-03-03T03:03:03Z"),
        ("2019-12-31", "2020-02-02T02:02:02Z"),
        ("2999", "2020-02-02T02:02:02Z"),
    ] {
        let got = site.skep(&["get", HOME, "--at", at, "--json"]).exits(0);
        assert_eq!(times(&got), [expected], "{at}");
    }
}

#[test]
fn a_revisit_is_answered_with_the_body_it_stands_for() {
    let site = filled();
    let get = |typed: &[&str]| site.skep(&[&["get"], typed].concat());
    // By the URL and time that it names.
    assert_eq!(get(&[HOME, "--at", "2019-03"]).exits(0).text(), "second");
    // By its digest, in another file and of another URL.
    assert_eq!(get(&["http://example.org/copy"]).exits(0).text(), "first");
    // By name alone: the server said "not modified", without a digest.
    assert_eq!(get(&["http://example.org/news/a", "--at", "2022"]).exits(0).text(), "news a");

    let raw = get(&["http://example.org/copy", "--raw"]).exits(0).text();
    assert!(raw.starts_with("HTTP/1.1 200 OK\r\n") && raw.contains("X-Visit: again\r\n"), "{raw}");
    assert!(raw.ends_with("\r\n\r\nfirst"), "{raw}");
    let headers = get(&["http://example.org/copy", "--headers"]).exits(0).text();
    assert!(headers.ends_with("X-Visit: again\r\n\r\n"), "{headers}");
    let object = &get(&["http://example.org/copy", "--json"]).exits(0).json()[0];
    assert_eq!((&object["type"], &object["original"]["url"]), (&json!("revisit"), &json!(HOME)));
    assert_eq!(object["original"]["time"], "2017-01-01T10:00:00Z");
    let records = get(&["http://example.org/copy", "--warc"]).exits(0).text();
    assert_eq!(records.matches("WARC-Type: ").count(), 2, "{records}");

    get(&["http://example.org/lost"]).fails("is a revisit").hints("--headers");
    assert!(get(&["http://example.org/lost", "--headers"]).exits(0).text().contains("X-Visit"));
    get(&["http://example.org/lost", "--warc"]).exits(0);
}

#[test]
fn a_revisit_without_a_head_borrows_that_of_its_original() {
    let site = Site::new();
    let payload = digest(b"body");
    let bare = format!(
        "WARC/1.0\r\nWARC-Type: revisit\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n\
         WARC-Date: 2021-01-01T00:00:00Z\r\nWARC-Target-URI: http://a.example/\r\nWARC-Payload-Digest: {payload}\r\n\
         WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest\r\nContent-Length: 0\r\n\r\n\r\n\r\n"
    );
    let file = Warc::gzip().page("http://a.example/", "2020-01-01T00:00:00Z", "body").member(bare.as_bytes());
    site.write("a.warc.gz", file.bytes);
    site.skep(&["add", "a.warc.gz"]).exits(0);
    let whole = message("200 OK", "text/html; charset=utf-8", b"body");
    assert_eq!(site.skep(&["get", "a.example"]).exits(0).text(), "body");
    assert_eq!(site.skep(&["get", "a.example", "--raw"]).exits(0).out, whole);
    assert_eq!(site.skep(&["get", "a.example", "--headers"]).exits(0).out, &whole[..whole.len() - 4]);
}

#[test]
fn a_resource_is_its_block_even_where_it_looks_like_a_message() {
    let site = filled();
    for form in ["--body", "--raw"] {
        let got = site.skep(&["get", "http://example.org/notes.txt", form]).exits(0);
        assert_eq!(got.text(), "HTTP/1.1 is a protocol", "{form}");
    }
    assert_eq!(site.skep(&["get", "http://example.org/notes.txt", "--headers"]).exits(0).text(), "");
}

// ── stats ────────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn numbers_are_exact() {
    let site = filled();
    let stats = |typed: &[&str]| site.skep(&[&["stats", "--json"], typed].concat()).exits(0).json().remove(0);
    let bytes: u64 = ["*.example.org", "*.co.uk"]
        .iter()
        .flat_map(|url| site.skep(&["captures", url, "--json"]).exits(0).json())
        .map(|o| o["length"].as_u64().unwrap())
        .sum();
    assert_eq!(
        stats(&[]),
        json!({
            "captures": 15, "urls": 10, "hosts": 4, "versions": 13, "duplicates": 2, "revisits": 4, "bytes": bytes,
            "mimes": { "text/html": 12, "image/png": 1, "text/plain": 1, "(revisit)": 1 },
            "statuses": { "200": 12, "404": 1, "304": 1, "(none)": 1 },
            "years": { "2017": 1, "2018": 2, "2019": 6, "2020": 1, "2021": 2, "2022": 3 },
        })
    );
    let table = site.skep(&["stats"]).exits(0).text();
    let row = |name: &str| {
        let row = table.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default();
        row.split_whitespace().last().unwrap_or_default().to_owned()
    };
    assert_eq!(["captures", "urls", "404", "2019", "image/png"].map(row), ["15", "10", "1", "6", "1"]);

    site.write("more.warc.gz", Warc::gzip().page("http://more.example/", "2001-01-01T00:00:00Z", "more").bytes);
    site.skep(&["add", "--collection", "more", "more.warc.gz"]).exits(0);
    assert_eq!(stats(&["--collection", "more"])["years"], json!({ "2001": 1 }));
    assert_eq!(stats(&["--collection", "added"])["captures"], 15);
    assert_eq!(stats(&[])["captures"], 16);
    site.skep(&["stats", "--collection", "absent"]).fails("there is no collection \"absent\"").hints("added, more");
}

// ── index ────────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn an_index_is_sorted_and_names_where_records_are() {
    let site = Site::new();
    let (first, second) = (history(), revisits());
    site.write("b.warc.gz", &first.bytes);
    site.write("a.warc.gz", &second.bytes);
    let index = site.skep(&["index", "b.warc.gz", "a.warc.gz"]).exits(0).text();
    let lines: Vec<&str> = index.lines().collect();
    assert!(lines.is_sorted());
    assert_eq!(lines.len(), 15, "{index}");
    let home = lines.iter().find(|line| line.starts_with("org,example)/ 20170101100000 ")).unwrap();
    let fields: Value = serde_json::from_str(home.splitn(3, ' ').nth(2).unwrap()).unwrap();
    assert_eq!(fields["offset"], first.offsets[2].to_string());
    assert_eq!(fields["length"], (first.offsets[3] - first.offsets[2]).to_string());
    assert_eq!((&fields["filename"], &fields["status"]), (&json!("b.warc.gz"), &json!("200")));
    for threads in ["1", "2"] {
        assert_eq!(site.skep(&["index", "--threads", threads, "b.warc.gz", "a.warc.gz"]).exits(0).text(), index);
    }
    let cdx = site.skep(&["index", "--format", "cdx11", "b.warc.gz"]).exits(0).text();
    assert!(cdx.starts_with(" CDX N b a m s k r M S V g\n"), "{cdx}");
    let all = site.skep(&["index", "--format", "cdx11", "--all", "b.warc.gz"]).exits(0).text();
    assert!(all.lines().count() > cdx.lines().count());

    let packed = package(&[("archive/b.warc.gz", &first.bytes)]);
    site.write("c.wacz", packed);
    let inside = site.skep(&["index", "c.wacz"]).exits(0).text();
    assert_eq!(inside, site.skep(&["index", "b.warc.gz"]).exits(0).text());
}

#[test]
fn an_index_of_a_damaged_file_has_the_rest_and_says_what_is_wrong() {
    let site = Site::new();
    let mut file = history();
    let hurt = (file.offsets[8] + file.offsets[9]) / 2;
    file.bytes[hurt..hurt + 20].fill(0);
    site.write("hurt.warc.gz", &file.bytes);
    let index = site.skep(&["index", "hurt.warc.gz"]).exits(3);
    assert!(index.talk.contains("hurt.warc.gz") && index.talk.contains("offset"), "{}", index.talk);
    assert!(index.text().contains("uk,co,two)/ "), "{}", index.text());
    let older = site.skep(&["index", "--format", "cdx11", "hurt.warc.gz"]).exits(3);
    assert!(older.talk.contains("hurt.warc.gz") && older.talk.contains("offset"), "{}", older.talk);
    assert!(older.text().contains("uk,co,two)/ "), "{}", older.text());
}

// ── memory ───────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn memory_is_a_size_and_little_of_it_gives_the_same_answers() {
    let site = filled();
    site.skep(&["stats", "--memory", "much"]).fails("not a size");
    let asked = ["captures", HOME, "--json", "--memory", "1MB"];
    let much = site.skep(&asked[..3]).exits(0).json();
    site.skep(&["rebuild", "--memory", "0"]).exits(0);
    assert_eq!(site.skep(&asked).exits(0).json(), much);
}
