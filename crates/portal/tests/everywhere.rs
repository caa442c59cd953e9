//! What happens at other nodes of a network, as the portal of one of them tells it.

mod site;

use serde_json::Value;
use site::{Site, Warc, add};
use skep_archive::captures::Query;
use skep_archive::{Archive, Capture, Key, Stored};
use skep_portal::{Asker, Elsewhere, Everywhere, Scanned, Settings, Unheard, Wish};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

const NEAR: &str = "http://near.test/";
const FAR: &str = "http://far.test/";

/// One site is with another node, which answers unless it is silent.
#[derive(Default)]
struct Other {
    node: OnceLock<(Arc<Archive>, Asker)>,
    is_silent: AtomicBool,
    /// It says that there is more.
    has_more: AtomicBool,
    /// What it was asked last, and about which sites, if only about some.
    asked: Mutex<(String, Option<BTreeSet<u32>>)>,
}

fn is_far(site_hash: u32) -> bool {
    site_hash == Key::of(FAR).site_hash()
}

impl Elsewhere for Other {
    fn is_elsewhere(&self, site_hash: u32) -> bool {
        is_far(site_hash)
    }
    fn captures(&self, _: u32, query: &Query) -> Result<Vec<Capture>, String> {
        let found = self.node.get().unwrap().0.views().captures.query(query).and_then(Iterator::collect);
        found.map_err(|error| error.to_string())
    }
    fn record(&self, capture: &Capture) -> Result<Stored, String> {
        self.node.get().unwrap().0.read_capture(capture).map_err(|error| error.to_string())
    }
    fn scan(&self, _: &Query) -> Scanned {
        Scanned { captures: Box::new(std::iter::empty()), silent: 1 }
    }
    fn portal_of(&self, _: u32) -> Option<String> {
        None
    }
    fn everywhere(&self, target: &dyn Fn(usize) -> String) -> Everywhere {
        let here = Box::new(|hash| !is_far(hash));
        if self.is_silent.load(Ordering::Relaxed) {
            return Everywhere { name: 1, here, said: Vec::new(), nodes: 1, silent: 1 };
        }
        *self.asked.lock().unwrap() = (target(2), None);
        let mut said = self.node.get().unwrap().1.answer(&target(2), 2, &is_far).unwrap();
        if self.has_more.load(Ordering::Relaxed) {
            said["cut"] = true.into();
        }
        Everywhere { name: 1, here, said: vec![said], nodes: 2, silent: 0 }
    }
    fn everywhere_of(&self, sites: &BTreeSet<u32>, target: &dyn Fn(usize) -> String) -> Everywhere {
        let told = self.everywhere(target);
        self.asked.lock().unwrap().1 = Some(sites.clone());
        told
    }
    fn owner_proof(&self, _: &str) -> (String, String) {
        Default::default()
    }
    fn owner_wish(&self, _: &str, _: Wish) -> Result<String, Unheard> {
        Ok(String::new())
    }
    fn status(&self) -> Value {
        Value::Null
    }
    fn seed(&self, _: Vec<String>) -> Result<Value, String> {
        Ok(Value::Null)
    }
    fn metrics(&self) -> Vec<(&'static str, &'static str, u64)> {
        Vec::new()
    }
}

fn page(warc: Warc, url: &str, time: &str, said: &str) -> Warc {
    let filler: String = (0..40).map(|n| format!("<p>Paragraph {n} stays as it is.</p>")).collect();
    let body = format!("<title>A page</title>{filler}<p>{said}</p>");
    warc.page(url, time, "text/html; charset=utf-8", body.as_bytes())
}

/// The portal that is asked, the node that has the other site, and the way there.
fn two() -> (Site, Site, Arc<Other>) {
    let other = Arc::new(Other::default());
    let told = other.clone();
    let near = page(Warc::new(), NEAR, "2024-01-02T00:00:00Z", "near");
    let near =
        Site::with(&[("c", "near.warc.gz", near.bytes)], |settings| Settings { elsewhere: Some(told), ..settings });
    let far = page(Warc::new(), FAR, "2024-01-01T00:00:00Z", "one");
    let far = Site::new(&[("c", "far.warc.gz", page(far, FAR, "2024-01-03T00:00:00Z", "two").bytes)]);
    assert!(other.node.set((far.archive.clone(), far.serving.asker())).is_ok());
    (near, far, other)
}

fn comes(site: &Site, url: &str, time: &str, said: &str) {
    let path = site.path(&format!("{}.warc.gz", &time[..10]));
    std::fs::write(&path, page(Warc::new(), url, time, said).bytes).unwrap();
    add(&site.archive, "c", &path);
}

#[test]
fn the_live_page_tells_what_happened_at_all_nodes() {
    let (near, _far, other) = two();
    let html = near.get("/changes/live").is(200).text();
    let rows: Vec<&str> = html.split("<li>").skip(1).collect();
    let of: Vec<bool> = rows.iter().map(|row| row.contains(FAR)).collect();
    assert_eq!(of, [true, false, true], "the newest first: {html}");
    let attribute =
        |name: &str| html.split(&format!("{name}=\"")).nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert_eq!(attribute("data-seen").split(' ').count(), 3, "{html}");
    assert!(attribute("data-stream").contains("nodes=all&amp;since=20"), "{html}");
    let filtered = near.get("/changes/live?class=text").is(200).text();
    assert_eq!(filtered.matches("<li>").count(), 1, "{filtered}");
    let older = near.get("/changes/live?until=1704153600000").is(200).text();
    assert!(older.matches("<li>").count() == 1 && !older.contains("live.js"), "what came before the second: {older}");

    other.is_silent.store(true, Ordering::Relaxed);
    let html = near.get("/changes/live").is(200).text();
    assert!(html.matches("<li>").count() == 1 && html.contains("No node answered for 1 parts"), "{html}");
}

#[test]
fn the_history_of_what_is_with_others_is_told_by_them_or_said_to_be_missing() {
    let (near, far, other) = two();
    comes(&far, "http://far.test/below", "2024-01-02T00:00:00Z", "below");
    let asked = format!("/history?url={FAR}");
    let html = near.get(&asked).is(200).text();
    assert_eq!(html.matches("<section class=\"change\">").count(), 2, "{html}");
    assert!(!html.contains("class=\"wrong\"") && !html.contains("do not answer"), "{html}");
    assert!(!html.contains("Not all that changed"), "{html}");
    // Only who holds this page is asked, and only about this page: pages below it leave its newest changes their room.
    let (target, sites) = other.asked.lock().unwrap().clone();
    assert_eq!(sites, Some(BTreeSet::from([Key::of(FAR).site_hash()])));
    let said = other.node.get().unwrap().1.answer(&target, 2, &is_far).unwrap();
    assert_eq!((said["events"].as_array().unwrap().len(), &said["cut"]), (2, &Value::Bool(false)), "{said}");
    // That there is more is something else than that nobody answers.
    other.has_more.store(true, Ordering::Relaxed);
    let html = near.get(&asked).is(200).text();
    assert!(html.contains("more than other nodes tell at once") && !html.contains("do not answer"), "{html}");
    assert_eq!(html.matches("<section class=\"change\">").count(), 2, "{html}");
    other.has_more.store(false, Ordering::Relaxed);
    other.is_silent.store(true, Ordering::Relaxed);
    let html = near.get(&asked).is(200).text();
    assert!(html.contains("do not answer just now") && !html.contains("Nothing changed"), "{html}");
    assert!(!html.contains("tell at once"), "{html}");
}

/// A client that stays.
struct Staying(std::io::Lines<BufReader<TcpStream>>);

impl Staying {
    fn begin(site: &Site, query: &str, fields: &str) -> Staying {
        let mut stream = TcpStream::connect(site.serving.address()).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        let asked =
            format!("GET /changes?nodes=all{query} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n");
        stream.write_all(format!("{asked}{fields}Connection: close\r\n\r\n").as_bytes()).unwrap();
        let mut lines = BufReader::new(stream).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "HTTP/1.1 200 OK");
        Staying(lines)
    }

    /// The id of the next event, its key, and of what it tells.
    fn next(&mut self) -> (String, String, String) {
        let mut wanted = |prefix: &str| loop {
            let line = self.0.next().unwrap().unwrap();
            if let Some(rest) = line.strip_prefix(prefix) {
                return rest.to_owned();
            }
        };
        let id = wanted("id: ");
        let event: Value = serde_json::from_str(&wanted("data: ")).unwrap();
        (id, event["key"].as_str().unwrap().to_owned(), event["subject"].as_str().unwrap().to_owned())
    }
}

#[test]
fn who_stays_hears_of_all_nodes_each_event_once_and_goes_on_by_time() {
    let (near, far, other) = two();
    let mut staying = Staying::begin(&near, "", "");
    let mut told: Vec<_> = (0..3).map(|_| staying.next()).collect();
    let urls: Vec<&str> = told.iter().map(|(_, _, url)| url.as_str()).collect();
    assert_eq!(urls, [FAR, NEAR, FAR], "by time");
    assert_eq!(told[1].0, "2024-01-02T00:00:00Z");
    // What comes, wherever it comes; also when its time is an earlier one, because it was copied late.
    comes(&far, FAR, "2024-02-01T00:00:00Z", "three");
    told.push(staying.next());
    assert_eq!(told[3].2, FAR);
    comes(&near, "http://near.test/late", "2023-01-01T00:00:00Z", "late");
    told.push(staying.next());
    assert_eq!(told[4].2, "http://near.test/late");
    // Who was silent for a while is heard when it is back, from where it was.
    other.is_silent.store(true, Ordering::Relaxed);
    comes(&far, "http://far.test/later", "2024-03-01T00:00:00Z", "later");
    comes(&near, NEAR, "2024-03-02T00:00:00Z", "four");
    told.push(staying.next());
    assert_eq!(told[5].2, NEAR);
    other.is_silent.store(false, Ordering::Relaxed);
    told.push(staying.next());
    assert_eq!(told[6].2, "http://far.test/later");
    let each: BTreeSet<_> = told.iter().collect();
    assert_eq!(each.len(), told.len(), "{told:?}");

    // Another one goes on from one of them, at any node, and hears that one again.
    let mut again = Staying::begin(&near, "", &format!("Last-Event-ID: {}\r\n", told[3].0));
    assert_eq!([again.next(), again.next(), again.next()], [told[3].clone(), told[6].clone(), told[5].clone()]);
    let mut last = Staying::begin(&near, "&since=2024-02-15T00:00:00Z&host=near.test&limit=1", "");
    assert_eq!(last.next(), told[5]);
    assert!(last.0.map(|line| line.unwrap()).all(|line| !line.starts_with("id: ")), "as many as were wanted");
    for (query, about) in [("delta=text", "delta=text goes"), ("since=abcdefgh:1", "goes by time")] {
        let stay = [("Accept", "text/event-stream")];
        let wrong = near.ask("GET", &format!("/changes?nodes=all&{query}"), &stay, b"").is(400).text();
        assert!(wrong.contains(about), "{wrong}");
    }
}
