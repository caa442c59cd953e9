//! `skep changes` and `skep diff`, by the binary.

mod site;

use site::Site;
use site::files::{Warc, message};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

const PAGE: &str = "http://example.org/terms";

fn body(rows: &[&str]) -> String {
    let filler: String = (0..30).map(|n| format!("<p>Clause {n} of the terms stays as it is.</p>")).collect();
    let shown: String = rows.iter().map(|row| format!("<p>{row}</p>")).collect();
    format!("<title>Terms</title>{filler}{shown}<p>The end.</p>")
}

fn versions() -> Vec<u8> {
    Warc::gzip()
        .info()
        .page(PAGE, "2024-01-01T00:00:00Z", &body(&["You may keep three cats & one dog."]))
        .page(PAGE, "2024-02-01T00:00:00Z", &body(&["You may keep three cats & one dog.", "<!-- build 2 -->"]))
        .page(
            PAGE,
            "2024-03-01T00:00:00Z",
            &body(&["You may keep seven cats & one dog.", "<a href=/cats>About cats</a>"]),
        )
        .page("http://other.example/", "2024-01-05T00:00:00Z", "<p>elsewhere</p>")
        .answer(PAGE, "2024-04-01T00:00:00Z", &message("503 Busy", "text/html", b"busy"))
        .bytes
}

fn filled() -> Site {
    let site = Site::new();
    site.write("terms.warc.gz", versions());
    site.skep(&["add", "terms.warc.gz"]).exits(0);
    site
}

#[test]
fn changes_are_told_filtered_and_gone_on_from() {
    let site = filled();
    site.skep(&["changes", "--host", "example.org:8080"]).fails("example.org:8080").hints("--prefix");
    let all = site.skep(&["changes", "--json"]).exits(0);
    let types: Vec<String> = all.each("type");
    assert_eq!(types, ["page.new", "page.new", "page.changed"]);
    let changed = &all.json()[2];
    assert_eq!((changed["subject"].as_str(), changed["specversion"].as_str()), (Some(PAGE), Some("1.0")));
    assert_eq!(changed["data"]["classes"], serde_json::json!(["text.minor", "links"]));
    assert_eq!(changed["data"]["links"]["added"], serde_json::json!(["http://example.org/cats"]));
    assert_eq!(changed["data"]["window"], serde_json::json!(["2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"]));
    assert_eq!(changed["data"]["meta"]["title"], "Terms");
    assert!(changed["key"].as_str().unwrap().starts_with("00000000:1:"), "{changed}");
    let cursor = all.json()[1]["cursor"].as_str().unwrap().to_owned();
    assert_eq!(site.skep(&["changes", "--json", "--since", &cursor]).exits(0).each("type"), ["page.changed"]);
    assert_eq!(site.skep(&["changes", "--json", "--since", "2024-02"]).exits(0).each("type"), ["page.changed"]);
    assert_eq!(site.skep(&["changes", "--json", "--host", "other.example"]).exits(0).json().len(), 1);
    assert_eq!(site.skep(&["changes", "--json", "--prefix", "example.org/t"]).exits(0).json().len(), 2);
    assert_eq!(site.skep(&["changes", "--json", "--class", "links"]).exits(0).json().len(), 1);
    let silent = site.skep(&["changes", "--json", "--class", "markup", "--class", "suspect"]).exits(0);
    assert_eq!(silent.each("type"), ["page.changed", "page.suspect"]);
    assert_eq!(site.skep(&["changes", "--json", "--class", "text", "--min-change", "0.1%"]).exits(0).json().len(), 1);
    assert!(
        site.skep(&["changes", "--class", "text", "--min-change", "50%"]).exits(1).talk.contains("no change that fits")
    );
    let table = site.skep(&["changes", "--class", "text"]).exits(0).text();
    assert!(
        table.starts_with("2024-03-01T00:00:00Z") && table.contains(PAGE) && table.contains("seven cats"),
        "{table}"
    );
    site.skep(&["changes", "--class", "texts"]).fails("texts").hints("text.major");
    site.skep(&["changes", "--min-change", "many"]).fails("many").hints("1%");
    site.skep(&["changes", "--since", "yesterday"]).fails("yesterday").hints("2019");
    site.skep(&["changes", "--since", "abc:3"]).fails("abc:3").hints("by time");
    site.skep(&["changes", "--since", &cursor.replace(":2", ":99")]).fails(":99").hints("newest");
    site.is_sound();
    // What is built again is another stream with the same events.
    site.skep(&["rebuild"]).exits(0);
    site.skep(&["changes", "--since", &cursor]).fails(&cursor).hints("by time");
    assert_eq!(site.skep(&["changes", "--json"]).exits(0).each("key"), all.each("key"));
}

#[test]
fn what_comes_later_is_told_to_who_follows() {
    let site = filled();
    let mut following =
        site.command(&["changes", "--follow", "--json", "--class", "text"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut next = || -> serde_json::Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let first = next();
    assert_eq!(first["time"], "2024-03-01T00:00:00Z");
    // The one who follows owns the archive; it adds the file for the other, and tells what came of it.
    let later = Warc::gzip().info().page(PAGE, "2024-05-01T00:00:00Z", &body(&["You may keep no cats."])).bytes;
    site.write("later.warc.gz", later);
    site.skep(&["add", "later.warc.gz"]).exits(0);
    let told = next();
    assert_eq!((told["time"].as_str(), told["subject"].as_str()), (Some("2024-05-01T00:00:00Z"), Some(PAGE)));
    // What goes is taken back for who heard of it, and for nobody else.
    site.skep(&["remove", PAGE, "--reason", "asked"]).exits(0);
    for heard in [first, told] {
        let back = next();
        assert_eq!((&back["type"], &back["key"]), (&"page.withdrawn".into(), &heard["key"]));
    }
    let table = site.skep(&["changes", "--class", "text", "--min-change", "50%"]).exits(0).text();
    assert!(table.contains("withdrawn") && table.contains(PAGE) && table.contains("taken back"), "{table}");
    site.skep(&["changes", "--class", "gone"]).exits(1);
    let process = rustix::process::Pid::from_child(&following);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    assert!(following.wait().unwrap().success());
    site.is_sound();
}

#[test]
fn differences_are_marked_word_by_word() {
    let site = filled();
    let text = site.skep(&["diff", PAGE]).exits(0).text();
    let wanted = "--- 2024-02-01T00:00:00Z\n+++ 2024-03-01T00:00:00Z\n  … 27 lines are the same\n";
    assert!(text.starts_with(wanted), "{text}");
    assert!(
        text.contains("- You may keep [-three-] cats & one dog.\n+ You may keep {+seven+} cats & one dog.\n"),
        "{text}"
    );
    assert!(text.contains("+ {+About cats+}\n") && text.contains("+ link http://example.org/cats\n"), "{text}");
    assert!(
        site.skep(&["diff", PAGE, "--from", "2024-01", "--to", "2024-02"])
            .exits(1)
            .text()
            .contains("lines are the same")
    );
    let object = &site.skep(&["diff", PAGE, "--json"]).exits(0).json()[0];
    assert_eq!((object["words_added"].as_u64(), object["words_removed"].as_u64()), (Some(3), Some(1)));
    assert_eq!(object["classes"], serde_json::json!(["text.minor", "links"]));
    assert_eq!(object["changed"][0]["old"][1], serde_json::json!({ "text": "three", "marked": true }));
    site.skep(&["diff", PAGE, "--html", "d.html"]).exits(0);
    let html = std::fs::read_to_string(site.path("d.html")).unwrap();
    assert!(html.contains("You may keep <del>three</del> cats &amp; one dog."), "{html}");
    assert!(html.contains("You may keep <ins>seven</ins> cats &amp; one dog."), "{html}");
    assert!(site.skep(&["diff", "http://other.example/"]).exits(1).talk.contains("not two versions"));
    site.skep(&["diff", PAGE, "--from", "long ago"]).fails("long ago");
}

#[test]
fn a_difference_is_one_that_a_reader_sees_where_there_is_any() {
    let site = Site::new();
    let noisy = |n: u32| body(&["You may keep seven cats.", &format!("<!-- build {n} -->")]);
    let mut warc = Warc::gzip().info().page(PAGE, "2024-01-01T00:00:00Z", &body(&["You may keep three cats."]));
    for n in 2..9 {
        warc = warc.page(PAGE, &format!("2024-0{n}-01T00:00:00Z"), &noisy(n));
    }
    site.write("terms.warc.gz", warc.bytes);
    site.skep(&["add", "terms.warc.gz"]).exits(0);
    let text = site.skep(&["diff", PAGE]).exits(0).text();
    assert!(text.starts_with("--- 2024-01-01T00:00:00Z\n+++ 2024-08-01T00:00:00Z\n"), "{text}");
    assert!(text.contains("[-three-]") && text.contains("{+seven+}"), "{text}");
    let text = site.skep(&["diff", PAGE, "--from", "2024-07-01", "--to", "2024-08-01"]).exits(1).text();
    assert!(text.starts_with("--- 2024-07-01T00:00:00Z\n"), "who names both gets both: {text}");
}
