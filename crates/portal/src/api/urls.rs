//! URLs by what they contain.
//!
//! A text with a dot and without a blank is first taken for a host, whose URLs stand together in the view. Everything else is looked for
//! from the beginning of the view on, at most [`SEARCH_ROWS_MAX`] captures for one page: then `next` says where to go on.
//! A cursor begins with which of the two it belongs to.

use super::asked::{Asked, cursor_of};
use super::capture::address;
use crate::find::Looking;
use crate::limits::{PAGE_ROWS, SEARCH_ROWS_MAX};
use crate::time;
use crate::trouble::Trouble;
use crate::visit::Visit;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skep_archive::Key;
use skep_archive::captures::Match;
use skep_archive::runs::Row;
use skep_warc::date;
use std::ops::ControlFlow;

/// A URL that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Hit {
    /// The URL, as its first capture has it.
    pub url: String,
    /// Captures of it.
    pub captures: u64,
    /// The first.
    pub earliest: String,
    /// The last.
    pub latest: String,
    /// Where to go from here.
    pub links: Links,
}

/// Addresses on this portal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Links {
    /// The newest capture, or the one that was found.
    pub replay: String,
    /// All captures.
    pub calendar: String,
}

/// Hits, and where the next page begins.
pub struct Found {
    /// The URLs.
    pub hits: Vec<Hit>,
    /// A cursor.
    pub next: Option<String>,
}

/// Answers.
pub fn search(look: &Looking<'_>, asked: &Asked, _: &Visit) -> Result<Value, Trouble> {
    let found = find(look, asked)?;
    Ok(json!({ "urls": found.hits, "next": found.next }))
}

const IN_HOST: u8 = 0;
const EVERYWHERE: u8 = 1;

/// Looks.
pub fn find(look: &Looking<'_>, asked: &Asked) -> Result<Found, Trouble> {
    let text = asked.text("q").trim().to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() {
        return Ok(Found { hits: Vec::new(), next: None });
    }
    let (cursor, limit) = (asked.cursor(), asked.number("limit", PAGE_ROWS));
    let (stage, after) = cursor.split_first().map_or((None, &[][..]), |(stage, after)| (Some(*stage), after));
    let host = text.trim_start_matches("https://").trim_start_matches("http://").trim_start_matches("*.");
    if stage != Some(EVERYWHERE) && words.len() == 1 && host.contains('.') {
        let key = Key::of(&format!("http://{}/", host.split(['/', '?', '#']).next().unwrap_or_default()));
        let all_of_host = !host.contains(['/', '?']);
        let mut seeking = Seeking::new(look, if all_of_host { Vec::new() } else { vec![host] }, limit);
        look.portal.archive.views().captures.each(&Match::Domain(key), |row| match row.url_key() <= after {
            true => ControlFlow::Continue(()),
            false => seeking.see(row),
        })?;
        let found = seeking.ended(IN_HOST);
        if !found.hits.is_empty() || stage.is_some() {
            return Ok(found);
        }
    }
    let mut seeking = Seeking::new(look, words, limit);
    // Behind the key, with everything that continues it.
    let start = if after.is_empty() { Vec::new() } else { [after, &[1]].concat() };
    look.portal.archive.views().captures.each_between(&start, None, |row| seeking.see(row))?;
    Ok(seeking.ended(EVERYWHERE))
}

struct Seeking<'l> {
    look: &'l Looking<'l>,
    words: Vec<&'l str>,
    limit: usize,
    rows: usize,
    key: Vec<u8>,
    fits: bool,
    url: String,
    captures: u64,
    times_ms: (i64, i64),
    hits: Vec<Hit>,
    /// The key that the next page begins behind.
    next: Option<Vec<u8>>,
}

impl<'l> Seeking<'l> {
    fn new(look: &'l Looking<'l>, words: Vec<&'l str>, limit: usize) -> Seeking<'l> {
        Seeking {
            look,
            words,
            limit,
            rows: 0,
            key: Vec::new(),
            fits: false,
            url: String::new(),
            captures: 0,
            times_ms: (0, 0),
            hits: Vec::new(),
            next: None,
        }
    }

    fn see(&mut self, row: &Row<'_>) -> ControlFlow<()> {
        self.rows += 1;
        if row.url_key() != self.key {
            self.end_url();
            if self.hits.len() >= self.limit || self.rows > SEARCH_ROWS_MAX {
                self.next = Some(std::mem::take(&mut self.key));
                return ControlFlow::Break(());
            }
            self.key.clear();
            self.key.extend_from_slice(row.url_key());
            self.url = row.url();
            self.fits = self.words.is_empty() || {
                let lower = self.url.to_lowercase();
                self.words.iter().all(|word| lower.contains(word))
            };
        }
        if self.fits && self.look.counts(row) {
            let time_ms = row.time_ms();
            self.times_ms = if self.captures == 0 { (time_ms, time_ms) } else { (self.times_ms.0, time_ms) };
            self.captures += 1;
        }
        ControlFlow::Continue(())
    }

    fn end_url(&mut self) {
        if self.captures == 0 {
            return;
        }
        let (scope, url) = (self.look.scope.name(), std::mem::take(&mut self.url));
        self.hits.push(Hit {
            captures: std::mem::take(&mut self.captures),
            earliest: date::rfc3339(self.times_ms.0),
            latest: date::rfc3339(self.times_ms.1),
            links: Links {
                replay: address(&format!("/{scope}/{}/{url}", time::digits(self.times_ms.1))),
                calendar: address(&format!("/{scope}/*/{url}")),
            },
            url,
        });
    }

    fn ended(mut self, stage: u8) -> Found {
        if self.next.is_none() {
            self.end_url();
        }
        let next = self.next.map(|key| cursor_of(&[&[stage], key.as_slice()].concat()));
        Found { hits: self.hits, next }
    }
}
