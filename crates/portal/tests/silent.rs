//! What is shown while other nodes of a network are silent.

mod site;

use serde_json::Value;
use site::{Site, Warc};
use skep_archive::captures::Query;
use skep_archive::{Archive, Capture, Key, Stored};
use skep_portal::{Elsewhere, Everywhere, Scanned, Settings, Unheard, Wish};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// One site is with others, who are gone as soon as they have brought a record of it.
#[derive(Default)]
struct Leaving {
    archive: OnceLock<Arc<Archive>>,
    are_gone: AtomicBool,
}

const FAR: &str = "http://far.test/";

impl Leaving {
    fn archive(&self) -> &Archive {
        self.archive.get().expect("an archive")
    }
}

impl Elsewhere for Leaving {
    fn is_elsewhere(&self, site_hash: u32) -> bool {
        site_hash == Key::of(FAR).site_hash()
    }
    fn captures(&self, _: u32, query: &Query) -> Result<Vec<Capture>, String> {
        if self.are_gone.load(Ordering::Relaxed) {
            return Err("gone".into());
        }
        let views = self.archive().views();
        let found = views.captures.query(query).and_then(Iterator::collect);
        found.map_err(|error| error.to_string())
    }
    fn record(&self, capture: &Capture) -> Result<Stored, String> {
        self.are_gone.store(true, Ordering::Relaxed);
        self.archive().read_capture(capture).map_err(|error| error.to_string())
    }
    fn scan(&self, _: &Query) -> Scanned {
        Scanned { captures: Box::new(std::iter::empty()), silent: 1 }
    }
    fn portal_of(&self, _: u32) -> Option<String> {
        None
    }
    fn everywhere(&self, _: &dyn Fn(usize) -> String) -> Everywhere {
        Everywhere { name: 0, here: Box::new(|_| true), said: Vec::new(), nodes: 1, silent: 1 }
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

#[test]
fn what_a_revisit_stands_for_is_shown_from_here_while_others_are_silent() {
    let (here, first, again) = ("http://example.org/", "2014-01-01T00:00:00Z", "2016-01-01T00:00:00Z");
    let warc = Warc::new().page(here, first, "text/html", b"<p>first").same(FAR, again, b"<p>first", None);
    let warc = warc.same(FAR, "2017-01-01T00:00:00Z", b"<p>nowhere", None);
    let files = [("one", "one.warc.gz", warc.bytes)];
    for (target, status) in
        [("/web/20160101000000id_/http://far.test/", 200), ("/web/20170101000000id_/http://far.test/", 502)]
    {
        let others = Arc::new(Leaving::default());
        let told = others.clone();
        let site = Site::with(&files, |settings| Settings { elsewhere: Some(told), ..settings });
        assert!(others.archive.set(site.archive.clone()).is_ok());
        let got = site.get(target).is(status);
        assert!(others.are_gone.load(Ordering::Relaxed), "{}", got.text());
        assert!(status == 502 || got.text() == "<p>first", "{}", got.text());
    }
}
