//! URLs by what they contain.
//!
//! A text with a dot and without a blank is first taken for a host, whose URLs stand together in the view. Everything else is looked for
//! from the beginning of the view on, at most [`SEARCH_ROWS_MAX`] captures for one page: then `next` says where to go on.
//! A cursor begins with which of the two it belongs to, and ends with a key. In a network every node looks at sites that it holds, and what they
//! found is told in the order of keys, as far as all of them have looked.

use super::asked::{Asked, bytes_of, cursor_of};
use super::capture::address;
use crate::elsewhere::Elsewhere;
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
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// Parts of the network's archive for which no node answered.
    pub silent: usize,
}

/// Answers.
pub fn search(look: &Looking<'_>, asked: &Asked, _: &Visit) -> Result<Value, Trouble> {
    let found = find(look, asked)?;
    Ok(json!({ "urls": found.hits, "next": found.next, "silent": found.silent }))
}

/// Answers another node, which says where it is to be looked.
pub fn search_here(look: &Looking<'_>, asked: &Asked) -> Result<Value, Trouble> {
    let sought = Sought::of(asked);
    let stage = sought.stages().first().copied().unwrap_or(EVERYWHERE);
    Ok(json!(Said::of(&sought.look_here(look, stage)?)))
}

const IN_HOST: u8 = 0;
const EVERYWHERE: u8 = 1;

/// Looks, wherever sites are held.
pub fn find(look: &Looking<'_>, asked: &Asked) -> Result<Found, Trouble> {
    let sought = Sought::of(asked);
    let mut found = Found { hits: Vec::new(), next: None, silent: 0 };
    if sought.words.is_empty() {
        return Ok(found);
    }
    for stage in sought.stages().iter().copied() {
        let (part, silent) = match look.others() {
            Some(others) => sought.look_everywhere(look, asked, stage, others)?,
            None => (sought.look_here(look, stage)?, 0),
        };
        let next = part.next.map(|key| cursor_of(&[&[stage], key.as_slice()].concat()));
        found = Found { hits: part.hits.into_iter().map(|(_, hit)| hit).collect(), next, silent };
        if !found.hits.is_empty() {
            break;
        }
    }
    Ok(found)
}

/// What is looked for.
struct Sought {
    text: String,
    words: Vec<String>,
    limit: usize,
    /// Where a page before this one ended.
    stage: Option<u8>,
    after: Vec<u8>,
}

/// A part of what was found, by key; and the key that the next page begins behind.
#[derive(Default)]
struct Part {
    hits: Vec<(Vec<u8>, Hit)>,
    next: Option<Vec<u8>>,
}

impl Sought {
    fn of(asked: &Asked) -> Sought {
        let text = asked.text("q").trim().to_lowercase();
        let words = text.split_whitespace().map(str::to_owned).collect();
        let cursor = asked.cursor();
        let (stage, after) = cursor.split_first().map_or((None, &[][..]), |(stage, after)| (Some(*stage), after));
        Sought { words, limit: asked.number("limit", PAGE_ROWS), stage, after: after.to_vec(), text }
    }

    /// The text as a host, with what may follow it.
    fn host(&self) -> Option<&str> {
        let host = self.text.trim_start_matches("https://").trim_start_matches("http://").trim_start_matches("*.");
        (self.words.len() == 1 && host.contains('.')).then_some(host)
    }

    /// Where it is looked for: in the next place if nothing is in the one before.
    fn stages(&self) -> &'static [u8] {
        match (self.stage, self.host()) {
            (Some(EVERYWHERE), _) | (_, None) => &[EVERYWHERE],
            (Some(_), Some(_)) => &[IN_HOST],
            (None, Some(_)) => &[IN_HOST, EVERYWHERE],
        }
    }

    fn look_here(&self, look: &Looking<'_>, stage: u8) -> Result<Part, Trouble> {
        let captures = &look.portal.archive.views().captures;
        let after = self.after.as_slice();
        match self.host().filter(|_| stage == IN_HOST) {
            Some(host) => {
                let key = Key::of(&format!("http://{}/", host.split(['/', '?', '#']).next().unwrap_or_default()));
                let all_of_host = !host.contains(['/', '?']);
                let mut seeking = Seeking::new(look, if all_of_host { Vec::new() } else { vec![host] }, self.limit);
                captures.each(&Match::Domain(key), |row| match row.url_key() <= after {
                    true => ControlFlow::Continue(()),
                    false => seeking.see(row),
                })?;
                Ok(seeking.ended())
            }
            None => {
                let mut seeking = Seeking::new(look, self.words.iter().map(String::as_str).collect(), self.limit);
                // Behind the key, with everything that continues it.
                let start = if after.is_empty() { Vec::new() } else { [after, &[1]].concat() };
                captures.each_between(&start, None, |row| seeking.see(row))?;
                Ok(seeking.ended())
            }
        }
    }

    /// Asks all nodes, each about sites that it holds, for as many as are wanted of all.
    fn look_everywhere(
        &self,
        look: &Looking<'_>,
        asked: &Asked,
        stage: u8,
        others: &dyn Elsewhere,
    ) -> Result<(Part, usize), Trouble> {
        let cursor = cursor_of(&[&[stage], self.after.as_slice()].concat());
        let asked = asked.clone().instead("after", cursor);
        let all = others.everywhere(&|_| format!("/urls?{}", asked.query()));
        let mut parts = vec![self.look_here(&Looking { sites: Some(all.sites()), ..*look }, stage)?];
        let mut silent = all.silent;
        for said in &all.said {
            match serde_json::from_value::<Said>(said.clone()).ok().and_then(Said::part) {
                Some(part) => parts.push(part),
                None => silent += 1,
            }
        }
        Ok((joined(parts, self.limit), silent))
    }
}

/// What several found, in the order of keys, as far as all of them have looked.
fn joined(parts: Vec<Part>, limit: usize) -> Part {
    let until = parts.iter().filter_map(|part| part.next.clone()).min();
    let mut hits: Vec<(Vec<u8>, Hit)> = parts.into_iter().flat_map(|part| part.hits).collect();
    hits.retain(|(key, _)| until.as_ref().is_none_or(|until| key <= until));
    hits.sort_by(|a, b| a.0.cmp(&b.0));
    let cut = hits.len() > limit;
    hits.truncate(limit);
    let next = if cut { hits.last().map(|(key, _)| key.clone()) } else { until };
    Part { hits, next }
}

/// What one node says to another.
#[derive(Serialize, Deserialize)]
struct Said {
    hits: Vec<(String, Hit)>,
    next: Option<String>,
}

impl Said {
    fn of(part: &Part) -> Said {
        let hits = part.hits.iter().map(|(key, hit)| (cursor_of(key), hit.clone())).collect();
        Said { hits, next: part.next.as_deref().map(cursor_of) }
    }

    /// As it was; nothing if a key makes no sense.
    fn part(self) -> Option<Part> {
        let hits = self.hits.into_iter().map(|(key, hit)| Some((bytes_of(&key)?, hit)));
        let next = match self.next {
            Some(next) => Some(bytes_of(&next)?),
            None => None,
        };
        Some(Part { hits: hits.collect::<Option<_>>()?, next })
    }
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
    hits: Vec<(Vec<u8>, Hit)>,
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
        let site = row.url_key().first_chunk().map_or(0, |hash| u32::from_be_bytes(*hash));
        if !self.look.has_site(site) {
            return ControlFlow::Continue(());
        }
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
        let hit = Hit {
            captures: std::mem::take(&mut self.captures),
            earliest: date::rfc3339(self.times_ms.0),
            latest: date::rfc3339(self.times_ms.1),
            links: Links {
                replay: address(&format!("/{scope}/{}/{url}", time::digits(self.times_ms.1))),
                calendar: address(&format!("/{scope}/*/{url}")),
            },
            url,
        };
        self.hits.push((self.key.clone(), hit));
    }

    fn ended(mut self) -> Part {
        if self.next.is_none() {
            self.end_url();
        }
        Part { hits: self.hits, next: self.next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(keys: &[&str], next: Option<&str>) -> Part {
        let links = Links { replay: String::new(), calendar: String::new() };
        let hit = |key: &&str| {
            let (url, links) = ((*key).to_owned(), links.clone());
            (key.as_bytes().to_vec(), Hit { url, captures: 1, earliest: String::new(), latest: String::new(), links })
        };
        Part { hits: keys.iter().map(hit).collect(), next: next.map(|next| next.as_bytes().to_vec()) }
    }

    fn told(part: &Part) -> (Vec<&str>, Option<&str>) {
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        (part.hits.iter().map(|(key, _)| text(key.as_slice())).collect(), part.next.as_deref().map(text))
    }

    #[test]
    fn what_nodes_found_is_told_in_the_order_of_keys_as_far_as_all_have_looked() {
        let all = joined(vec![part(&["b", "d"], None), part(&["a", "c"], None)], 10);
        assert_eq!(told(&all), (vec!["a", "b", "c", "d"], None));
        // The second one stopped at `c`: what lies behind may be more.
        let some = joined(vec![part(&["b", "d"], None), part(&["a", "c"], Some("c"))], 10);
        assert_eq!(told(&some), (vec!["a", "b", "c"], Some("c")));
        let few = joined(vec![part(&["b", "d"], None), part(&["a", "c"], Some("c"))], 2);
        assert_eq!(told(&few), (vec!["a", "b"], Some("b")));
        let none = joined(vec![part(&[], Some("x")), part(&[], Some("w"))], 2);
        assert_eq!(told(&none), (vec![], Some("w")), "nothing so far, and where to go on");
        let said = Said::of(&some).part().unwrap();
        assert_eq!(told(&said), told(&some));
        let wrong = Said { hits: Vec::new(), next: Some("xyz".into()) };
        assert!(wrong.part().is_none());
    }
}
