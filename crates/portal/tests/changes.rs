//! The stream of changes over HTTP: pulled line by line, and as server-sent events.

mod site;

use serde_json::Value;
use site::{Got, Site, Warc, add};
use skep_archive::{Append, Encoded, Key};
use skep_changes::Delta;
use skep_portal::{Access, Settings};
use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

fn body(said: &str) -> Vec<u8> {
    let filler: String = (0..40).map(|n| format!("<p>Paragraph {n} stays as it is.</p>")).collect();
    format!("<title>A page</title>{filler}<p>{said}</p>").into_bytes()
}

fn page(warc: Warc, url: &str, time: &str, said: &str) -> Warc {
    warc.page(url, time, "text/html; charset=utf-8", &body(said))
}

fn files() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let warc = page(Warc::new(), "http://example.org/a", "2024-01-01T00:00:00Z", "one");
    let warc = page(warc, "http://example.org/a", "2024-02-01T00:00:00Z", "two");
    let warc = page(warc, "http://other.example/b", "2024-01-15T00:00:00Z", "b");
    vec![("c", "a.warc.gz", warc.bytes)]
}

fn events(got: &Got) -> Vec<Value> {
    got.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn who_pulls_gets_what_is_there() {
    let site = Site::new(&files());
    let got = site.get("/changes").is(200);
    assert_eq!(got.header("content-type"), Some("application/x-ndjson"));
    let all = events(&got);
    let told: Vec<&str> = all.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(told, ["page.new", "page.new", "page.changed"]);
    assert_eq!(all[2]["data"]["text"]["snippet"], "two");
    let count = |query: &str| events(&site.get(&format!("/changes?{query}")).is(200)).len();
    assert_eq!((count("host=other.example"), count("host=Other.Example")), (1, 1));
    assert_eq!(count("class=text"), 1);
    assert_eq!(count("class=links,text&min_change=0.5"), 0);
    assert_eq!(count("prefix=example.org/"), 2);
    assert_eq!(count("since=2024-01-10T00:00:00Z"), 2);
    assert_eq!(count(&format!("since={}", all[1]["cursor"].as_str().unwrap())), 1);
    assert_eq!(count("limit=2"), 2);
    assert_eq!((count("mime=text/*"), count("mime=image/*"), count("mime=text/html&class=text")), (3, 0, 1));
    let with_text = events(&site.get("/changes?delta=text").is(200));
    let texts: Vec<Delta> = with_text.iter().map(|event| Delta::read(&event["data"]["delta"]).unwrap()).collect();
    let first = texts[0].apply("").unwrap();
    assert!(first.ends_with("one\n") && texts[2].apply(&first).unwrap().ends_with("stays as it is.\ntwo\n"));
    assert_eq!(with_text[2]["data"]["delta"]["lines"], serde_json::json!([40, -1, "two"]));
    assert!(all[2]["data"]["delta"].is_null(), "only for who asks");
    for event in &with_text {
        for (name, value) in event.as_object().unwrap().iter().filter(|(name, _)| *name != "data") {
            let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
            assert!(is_plain && value.is_string(), "an attribute of a CloudEvent is of a simple type: {name}");
        }
    }
    for (query, about) in [
        ("color=red", "color"),
        ("since=yesterday", "yesterday"),
        ("class=tekst", "tekst"),
        ("min_change=5", "min_change"),
        ("limit=-1", "limit"),
        ("host=other.example:8080", "whatever their port"),
        ("delta=page", "page"),
    ] {
        let wrong = site.get(&format!("/changes?{query}")).is(400).text();
        assert!(wrong.contains(about), "{wrong}");
    }
    assert!(site.get("/changes?since=abc:1").is(410).text().contains("foreign-cursor"));
    let ahead = all[2]["cursor"].as_str().unwrap().replace(":3", ":4");
    assert!(site.get(&format!("/changes?since={ahead}")).is(400).text().contains("cursor-ahead"));
    assert!(site.ask("HEAD", "/changes", &[], b"").is(200).body.is_empty());
}

#[test]
fn who_may_not_see_a_capture_does_not_hear_of_it() {
    let access = Access::default().with_rules("[[rule]]\nurls = [\"*.example.org\"]\naction = \"block\"").unwrap();
    let site = Site::with(&files(), |settings| Settings { access, ..settings });
    let told = events(&site.get("/changes").is(200));
    assert_eq!(told.iter().map(|event| &event["subject"]).collect::<Vec<_>>(), ["http://other.example/b"]);
}

/// A client that stays.
struct Staying {
    lines: std::io::Lines<BufReader<TcpStream>>,
}

impl Staying {
    fn begin(site: &Site, fields: &str) -> Staying {
        Staying::asking(site, "/changes", fields)
    }

    fn asking(site: &Site, target: &str, fields: &str) -> Staying {
        let mut stream = TcpStream::connect(site.serving.address()).unwrap();
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{fields}Connection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "HTTP/1.1 200 OK");
        Staying { lines }
    }

    fn next(&mut self) -> (String, Value) {
        let mut wanted = |prefix: &str| loop {
            let line = self.lines.next().unwrap().unwrap();
            if let Some(rest) = line.strip_prefix(prefix) {
                return rest.to_owned();
            }
        };
        let id = wanted("id: ");
        (id, serde_json::from_str(&wanted("data: ")).unwrap())
    }
}

#[test]
fn who_stays_hears_of_what_comes_and_goes_on_where_it_was() {
    let site = Site::new(&files());
    let mut staying = Staying::begin(&site, "");
    let seen: Vec<(String, Value)> = (0..3).map(|_| staying.next()).collect();
    assert_eq!(seen[2].1["type"], "page.changed");
    assert!(seen.iter().all(|(id, event)| event["cursor"] == id.as_str()));
    let path = site.path("later.warc.gz");
    std::fs::write(&path, page(Warc::new(), "http://example.org/a", "2024-03-01T00:00:00Z", "three").bytes).unwrap();
    add(&site.archive, "c", &path);
    let (id, event) = staying.next();
    assert_eq!(event["data"]["text"]["snippet"], "three");
    // Another one goes on behind the second event, and hears the same.
    let mut again = Staying::begin(&site, &format!("Last-Event-ID: {}\r\n", seen[1].0));
    assert_eq!(again.next(), seen[2]);
    assert_eq!(again.next(), (id, event));
    // Those who stay do not keep the portal from ending.
    site.serving.stopper().stop();
    let _the_rest = staying.lines.by_ref().take_while(Result::is_ok).count();
    site.serving.wait();
}

#[test]
fn who_heard_of_what_is_removed_hears_that_it_is_taken_back() {
    let site = Site::new(&files());
    let mut staying = Staying::asking(&site, "/changes?class=text", "");
    let mut with_text = Staying::asking(&site, "/changes?delta=text&prefix=example.org/", "");
    let (cursor, heard) = staying.next();
    let of_both: Vec<Value> = (0..2).map(|_| with_text.next().1).collect();
    assert_eq!((&heard["type"], &of_both[1]["key"]), (&"page.changed".into(), &heard["key"]));
    let known = site.archive.views().captures.exact(&Key::of("http://example.org/a")).unwrap();
    let newest = known.map(Result::unwrap).last().unwrap();
    site.archive.remove_captures(&[newest], "asked").unwrap();
    for stays in [&mut staying, &mut with_text] {
        let (_, event) = stays.next();
        assert_eq!((&event["type"], &event["key"]), (&"page.withdrawn".into(), &heard["key"]));
        assert_eq!((&event["subject"], &event["data"]["delta"]), (&"http://example.org/a".into(), &Value::Null));
    }
    // So does who pulls: whatever was asked for, if that was among it.
    let last = |query: &str| {
        let told = events(&site.get(&format!("/changes?{query}")).is(200));
        told.last().is_some_and(|event| event["type"] == "page.withdrawn" && event["key"] == heard["key"])
    };
    for query in ["", "class=text", "class=all", "delta=text", "min_change=0.9", "since=2024-02-20T00:00:00Z"] {
        assert!(last(query), "{query}");
    }
    for query in ["class=links", "class=new", "host=other.example", "mime=image/*"] {
        assert!(!last(query), "{query}");
    }
    let behind = events(&site.get(&format!("/changes?class=text&since={cursor}")).is(200));
    assert_eq!(behind.len(), 1, "{behind:?}");
}

#[test]
fn who_stays_for_so_many_hears_so_many() {
    let site = Site::new(&files());
    let asked = |query: &str| {
        let mut stream = TcpStream::connect(site.serving.address()).unwrap();
        let accept = "Host: localhost\r\nAccept: text/event-stream\r\nConnection: close";
        write!(stream, "GET /changes?{query} HTTP/1.1\r\n{accept}\r\n\r\n").unwrap();
        let mut told = String::new();
        stream.read_to_string(&mut told).unwrap();
        assert!(told.ends_with("\r\n0\r\n\r\n"), "it ends well: {told}");
        told.matches("\nid: ").count()
    };
    assert_eq!((asked("limit=2"), asked("limit=0"), asked("limit=1&class=text")), (2, 0, 1));
}

/// A client that is killed in the middle of whatever it reads, and begins again behind the last event that it has whole.
#[test]
fn a_client_that_is_killed_a_hundred_times_sees_every_key_in_order() {
    const CAPTURES: usize = 3_000;
    const URLS: usize = 50;
    let site = Site::new(&[]);
    let archive = site.archive.clone();
    let writer = std::thread::spawn(move || {
        let site_hash = Key::of("http://example.org/").site_hash();
        for part in 0..CAPTURES / 20 {
            let records = (part * 20..part * 20 + 20).map(|number| {
                let url = format!("http://example.org/{}", number % URLS);
                let time = skep_warc::date::rfc3339(1_767_225_600_000 + number as i64 * 60_000);
                Encoded::describing(page(Warc::new(), &url, &time, &format!("version {number}")).bytes).unwrap()
            });
            archive.append(Append { site_hash, records: records.collect() }).unwrap().wait().unwrap();
        }
    });
    let mut chance = 7_u64;
    let mut below = |bound: usize| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (chance >> 33) as usize % bound
    };
    let (mut cursor, mut keys) = (None::<String>, BTreeSet::new());
    let mut newest: HashMap<String, String> = HashMap::new();
    let mut kills = 0;
    while keys.len() < CAPTURES {
        // A life: at first of some thousand bytes, in the end as long as it takes.
        let life = if kills < 100 { 1 + below(16_000) } else { usize::MAX };
        let stream = TcpStream::connect(site.serving.address()).unwrap();
        let from = cursor.as_ref().map_or(String::new(), |cursor| format!("Last-Event-ID: {cursor}\r\n"));
        let request = format!(
            "GET /changes?class=all HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{from}Connection: close\r\n\r\n"
        );
        (&stream).write_all(request.as_bytes()).unwrap();
        let mut bytes = 0;
        let mut lines = BufReader::new(&stream).lines();
        while bytes < life && keys.len() < CAPTURES {
            let line = lines.next().unwrap().unwrap();
            bytes += line.len();
            // What came of the last line before the kill is lost to it.
            let Some(event) = line.strip_prefix("data: ").filter(|_| bytes < life) else { continue };
            let event: Value = serde_json::from_str(event).unwrap();
            let text = |name: &str| event[name].as_str().unwrap().to_owned();
            let before = newest.insert(text("subject"), text("time"));
            // It begins again behind what it had: what comes is never older than that.
            assert!(before.is_none_or(|before| before <= text("time")), "in order per URL");
            keys.insert(text("key"));
            cursor = Some(text("cursor"));
        }
        kills += 1;
    }
    assert!(kills > 100, "{kills}");
    writer.join().unwrap();
    assert_eq!(keys.len(), CAPTURES, "every capture is an event");
}

/// Clients that read the head of the answer and then nothing, more than may read at once, with far more to come than anybody should hold for them.
#[test]
fn clients_that_stop_reading_hold_little_keep_nobody_waiting_and_go_on_where_they_were() {
    const EVENTS: usize = 300;
    const STALLED: usize = 264;
    let site = Site::with(&[], |settings| Settings { requests_per_second: Some(0), ..settings });
    let site_hash = Key::of("http://example.org/").site_hash();
    let append = |from: usize, count: usize| {
        let records = (from..from + count).map(|number| {
            // Each event names fifty links of seven hundred bytes.
            let link = |n: usize| format!("<a href=\"/{number}/{n}/{}\">{n}</a>", "x".repeat(700));
            let body = format!("<title>{number}</title><p>A page.</p>{}", (0..50).map(link).collect::<String>());
            let time = skep_warc::date::rfc3339(1_767_225_600_000 + number as i64 * 1_000);
            let url = format!("http://example.org/{number}");
            Encoded::describing(Warc::new().page(&url, &time, "text/html", body.as_bytes()).bytes).unwrap()
        });
        site.archive.append(Append { site_hash, records: records.collect() }).unwrap().wait().unwrap();
    };
    append(0, EVENTS);
    let memory_bytes = || {
        let told = std::fs::read_to_string("/proc/self/statm").unwrap();
        told.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4_096
    };
    let begin = |accept: &str, since: Option<&str>| {
        let mut stream = TcpStream::connect(site.serving.address()).unwrap();
        let since = since.map_or(String::new(), |cursor| format!("?since={cursor}"));
        let request =
            format!("GET /changes{since} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut reader = BufReader::with_capacity(1, stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "HTTP/1.1 200 OK\r\n");
        reader
    };
    assert_eq!(events(&site.get("/changes").is(200)).len(), EVENTS);
    let before = memory_bytes();
    let (lines, staying) = ("application/x-ndjson", "text/event-stream");
    let mut stalled: Vec<_> = (0..STALLED).map(|n| begin(if n % 8 == 0 { staying } else { lines }, None)).collect();
    let held = memory_bytes().saturating_sub(before);
    assert!(held < 600 << 20, "{held} bytes for {STALLED} clients, each with ten million bytes to come");
    // Others get what they ask for, and hear of what comes.
    let all = events(&site.get("/changes").is(200));
    let newest = all.last().unwrap()["cursor"].as_str().unwrap();
    let mut live = Staying::begin(&site, &format!("Last-Event-ID: {newest}\r\n"));
    append(EVENTS, 1);
    assert_eq!(live.next().1["subject"], format!("http://example.org/{EVENTS}"));
    // Whoever reads again has missed nothing; one that was let go meanwhile asks from where it is.
    for (at, accept) in [(0, staying), (1, lines)] {
        let mut reader = BufReader::new(stalled[at].get_ref().try_clone().unwrap());
        let (mut seen, mut cursor) = (Vec::new(), None::<String>);
        while seen.len() < EVENTS {
            let mut line = String::new();
            if !matches!(reader.read_line(&mut line), Ok(1..)) {
                reader = BufReader::new(begin(accept, cursor.as_deref()).into_inner());
                continue;
            }
            let event = line.trim_end().strip_prefix("data: ").unwrap_or(line.trim_end());
            if let Some(event) = serde_json::from_str::<Value>(event).ok().filter(Value::is_object) {
                cursor = event["cursor"].as_str().map(str::to_owned);
                seen.push(event["subject"].as_str().unwrap().to_owned());
            }
        }
        let wanted: Vec<String> = (0..EVENTS).map(|number| format!("http://example.org/{number}")).collect();
        assert_eq!(seen, wanted, "{accept}");
    }
    stalled.clear();
}
