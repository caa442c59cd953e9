//! Shows the demo as any watch, and prints a short tour once there is something to be seen.

use super::sites::{EDITED, MOMENT_MS};
use crate::crawl::{Live, Voice};
use crate::failure::Result;
use crate::job::Tell;
use crate::owner::Place;
use serde_json::{Value, json};

/// Who leads through it.
pub struct Guide {
    live: Live,
    json: bool,
    archive: String,
    portal: String,
    versions: u32,
    toured: bool,
}

/// There is a difference to be seen when a page was kept so often.
const VERSIONS: u32 = 2;

impl Guide {
    pub fn new(place: &Place) -> Guide {
        Guide {
            live: Live::new(place.json),
            json: place.json,
            archive: place.archive.display().to_string(),
            portal: String::new(),
            versions: 0,
            toured: false,
        }
    }

    pub fn voice(&self) -> Voice {
        self.live.voice()
    }

    /// Title, and where or what to type.
    fn stations(&self) -> [(&'static str, String); 7] {
        let (portal, page) = (&self.portal, EDITED);
        let query = page.replace(':', "%3A").replace('/', "%2F");
        [
            ("a page, as it was kept last", format!("{portal}web/2099/{page}")),
            ("its versions", format!("{portal}web/*/{page}")),
            ("a difference, word by word", format!("{portal}compare?url={query}")),
            ("all its changes", format!("{portal}history?url={query}")),
            ("the stream of changes, live", format!("{portal}changes/live")),
            ("why it was fetched", format!("skep why {page} --archive {}", self.archive)),
            ("when it is looked at again", format!("skep schedule {page} --archive {}", self.archive)),
        ]
    }

    fn tour(&mut self) -> Result<()> {
        self.toured = true;
        let stations = self.stations();
        if self.json {
            let stations: Vec<Value> =
                stations.iter().map(|(title, place)| json!({ "title": title, "place": place })).collect();
            return self.live.line(json!({ "event": "tour", "stations": stations }));
        }
        let mut text = format!(
            "\nThree small sites on this machine change every few seconds ({} s and more). They were crawled, every version is kept,\n\
             and every page is looked at again each second. Open in a browser, or type:\n\n",
            MOMENT_MS / 1_000
        );
        for (number, (title, place)) in stations.iter().enumerate() {
            text += &format!("  {}. {title}\n       {place}\n", number + 1);
        }
        text += "\nThe same for a site of yours: skep watch https://example.org/\nCtrl-C ends the demo.\n";
        let voice = self.live.voice();
        // Line by line: within a line, whatever controls a terminal is taken out.
        text.lines().for_each(|line| voice.say(line));
        Ok(())
    }
}

impl Tell for Guide {
    fn line(&mut self, value: Value) -> Result<()> {
        match value["event"].as_str() {
            Some("serving") => self.portal = value["portal"].as_str().unwrap_or_default().to_owned(),
            Some("visited") if value["url"] == EDITED && value["outcome"] == "200" => self.versions += 1,
            _ => {}
        }
        self.live.line(value)?;
        if self.versions >= VERSIONS && !self.toured {
            self.tour()?;
        }
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.live.bytes(bytes)
    }

    fn talk(&mut self, text: &str) {
        self.live.talk(text);
    }

    fn progress(&mut self, done: u64, of: u64) {
        self.live.progress(done, of);
    }
}
