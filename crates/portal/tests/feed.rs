//! The feed of changes, as a reader of feeds gets it: parsed by somebody else's parser.

mod site;

use serde_json::Value;
use site::{Site, Warc, add};
use skep_portal::{Access, Settings};
use std::io::Write;
use std::process::{Command, Stdio};

fn page(warc: Warc, url: &str, time: &str, title: &str, said: &str) -> Warc {
    let filler: String = (0..40).map(|n| format!("<p>Paragraph {n} stays as it is.</p>")).collect();
    let body = format!("<title>{title}</title>{filler}<p>{said}</p>");
    warc.page(url, time, "text/html; charset=utf-8", body.as_bytes())
}

fn files() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let warc = page(Warc::new(), "http://example.org/a?x=1&y=2", "2024-01-01T00:00:00Z", "A", "one");
    let odd = "]]&gt; &amp; &lt;b&gt; \u{b}\u{fffe} zwei";
    let warc = page(warc, "http://example.org/a?x=1&y=2", "2024-02-01T00:00:00Z", "A &lt;&amp;&gt; B", odd);
    let warc = page(warc, "http://other.example/b", "2024-01-15T00:00:00Z", "B", "b");
    vec![("c", "a.warc.gz", warc.bytes)]
}

/// What Python's reader of XML makes of it; that it is a feed is checked there.
fn read(text: &str) -> Value {
    let script = "
import json, sys, xml.etree.ElementTree as tree
atom = '{http://www.w3.org/2005/Atom}'
feed = tree.fromstring(sys.stdin.buffer.read())
assert feed.tag == atom + 'feed', feed.tag
for one in [feed, *feed.iter(atom + 'entry')]:
    for name in ['id', 'title', 'updated']:
        assert len(one.findall(atom + name)) == 1, name
    assert one.find(atom + 'id').text.startswith('urn:skep:')
text = lambda one, name: one.find(atom + name).text
link = lambda one, rel: [l.get('href') for l in one.findall(atom + 'link') if l.get('rel') == rel][0]
print(json.dumps({'self': link(feed, 'self'), 'updated': text(feed, 'updated'), 'title': text(feed, 'title'), 'entries': [
    {**{n: text(e, n) for n in ['id', 'title', 'updated', 'summary']}, 'page': link(e, 'related'), 'history': link(e, 'alternate'),
     'classes': [c.get('term') for c in e.findall(atom + 'category')]} for e in feed.iter(atom + 'entry')]}))
";
    let mut python = Command::new("python3");
    let mut child = python.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3");
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{text}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_feed_has_what_happened_last_under_ids_that_stay() {
    let site = Site::new(&files());
    let got = site.get("/changes/feed.atom").is(200);
    assert_eq!(got.header("content-type"), Some("application/atom+xml; charset=utf-8"));
    let feed = read(&got.text());
    let entries = feed["entries"].as_array().unwrap().clone();
    assert_eq!(entries.len(), 3);
    assert_eq!(feed["updated"], "2024-02-01T00:00:00Z");
    let newest = &entries[0];
    assert_eq!(newest["page"], "http://example.org/a?x=1&y=2");
    assert!(newest["title"].as_str().unwrap().ends_with("A <&> B"), "{newest}");
    assert!(newest["summary"].as_str().unwrap().contains("zwei"), "{newest}");
    assert_eq!(newest["classes"][0], "text.minor");
    // The way to the history leads there.
    let history = newest["history"].as_str().unwrap().split_once("/history").unwrap().1.to_owned();
    assert!(site.get(&format!("/history{history}")).is(200).text().contains("zwei"));
    let of_host = read(&site.get("/changes/feed.atom?host=other.example&class=new").is(200).text());
    assert_eq!(of_host["entries"].as_array().unwrap().len(), 1);
    assert!(of_host["self"].as_str().unwrap().ends_with("/changes/feed.atom?host=other.example&class=new"));
    assert_eq!(of_host["title"], "Changes of other.example");
    // What comes later stands in front, and the others are the entries they were.
    let more = page(Warc::new(), "http://other.example/b", "2024-03-01T00:00:00Z", "B", "more");
    let elsewhere = tempfile::tempdir().unwrap();
    let path = elsewhere.path().join("more.warc.gz");
    std::fs::write(&path, &more.bytes).unwrap();
    add(&site.archive, "c", &path);
    let later = read(&site.get("/changes/feed.atom").is(200).text());
    let ids = |entries: &[Value]| entries.iter().map(|entry| entry["id"].clone()).collect::<Vec<_>>();
    let later = later["entries"].as_array().unwrap();
    assert_eq!(ids(&later[1..]), ids(&entries));
    assert!(
        read(&site.get("/changes/feed.atom?host=nobody.example").is(200).text())["entries"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    for (query, about) in [("color=red", "color"), ("class=tekst", "tekst")] {
        assert!(site.get(&format!("/changes/feed.atom?{query}")).is(400).text().contains(about));
    }
}

#[test]
fn a_feed_tells_nobody_what_they_may_not_see() {
    let access = Access::default().with_rules("[[rule]]\nurls = [\"*.example.org\"]\naction = \"block\"").unwrap();
    let site = Site::with(&files(), |settings| Settings { access, ..settings });
    let feed = read(&site.get("/changes/feed.atom").is(200).text());
    let pages: Vec<&str> =
        feed["entries"].as_array().unwrap().iter().filter_map(|entry| entry["page"].as_str()).collect();
    assert_eq!(pages, ["http://other.example/b"]);
}
