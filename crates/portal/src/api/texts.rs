//! Pages by the words of their titles and texts.
//!
//! A cursor is how many results the pages before had. What may be seen is asked of each capture before it becomes part of the answer.

use super::asked::{Asked, cursor_of};
use super::capture::address;
use super::urls::Links;
use crate::find::Looking;
use crate::limits::TEXTS_ROWS;
use crate::time;
use crate::trouble::Trouble;
use crate::visit::Visit;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skep_search::{Passage, Query};
use skep_url::{Match, Scan};
use skep_warc::date;

/// A page that was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hit {
    /// The URL.
    pub url: String,
    /// A capture with this text: RFC 3339.
    pub time: String,
    /// The same in 14 digits.
    pub timestamp: String,
    /// The title; empty where there is none.
    pub title: String,
    /// A part of the text, in pieces.
    pub passage: Vec<Piece>,
    /// From when …
    pub first: String,
    /// … until when the URL was seen with this text.
    pub last: String,
    /// Captures in that time.
    pub captures: u64,
    /// Where to go from here.
    pub links: Links,
}

/// A piece of a passage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Piece {
    /// The text.
    pub text: String,
    /// It was looked for.
    pub found: bool,
}

/// Hits, and where the next page begins.
pub struct Found {
    /// The pages.
    pub hits: Vec<Hit>,
    /// Not everything could be looked at.
    pub cut: bool,
    /// A cursor.
    pub next: Option<String>,
}

/// Answers.
pub fn search(look: &Looking<'_>, asked: &Asked, _: &Visit) -> Result<Value, Trouble> {
    Ok(everywhere(look, asked)?.told())
}

/// Answers for what is here.
pub fn search_here(look: &Looking<'_>, asked: &Asked) -> Result<Value, Trouble> {
    Ok(find(look, asked)?.told())
}

impl Found {
    fn told(&self) -> Value {
        json!({ "results": self.hits, "cut": self.cut, "next": self.next })
    }
}

/// What another node said.
#[derive(Deserialize)]
struct Said {
    results: Vec<Hit>,
    cut: bool,
    next: Option<String>,
}

/// Looks at all nodes of the network, each of which looks at sites that it holds: as much from each, the best of each first. Where a
/// page ends is the same number of results into each of their answers.
pub fn everywhere(look: &Looking<'_>, asked: &Asked) -> Result<Found, Trouble> {
    let Some(others) = look.others() else { return find(look, asked) };
    let limit = asked.number("limit", TEXTS_ROWS);
    let each = |nodes: usize| asked.clone().instead("limit", limit.div_ceil(nodes).max(1).to_string());
    let all = others.everywhere(&|nodes| format!("/search/text?{}", each(nodes).query()));
    let here = find(&Looking { sites: Some(all.sites()), ..*look }, &each(all.nodes))?;
    let mut found = Found { hits: Vec::new(), cut: here.cut || all.silent > 0, next: here.next };
    let mut lists = vec![here.hits.into_iter()];
    for said in all.said {
        // Where texts are not kept, nothing is found.
        let Ok(said) = serde_json::from_value::<Said>(said) else { continue };
        found.cut |= said.cut;
        found.next = found.next.or(said.next);
        lists.push(said.results.into_iter());
    }
    loop {
        let before = found.hits.len();
        found.hits.extend(lists.iter_mut().filter_map(Iterator::next));
        if found.hits.len() == before {
            return Ok(found);
        }
    }
}

/// Looks.
pub fn find(look: &Looking<'_>, asked: &Asked) -> Result<Found, Trouble> {
    let text = look.portal.text.as_ref().ok_or(skep_search::Error::Off)?;
    let cursor = asked.cursor();
    let skip = match (cursor.as_slice(), cursor.first_chunk::<4>()) {
        ([], _) => 0,
        ([_, _, _, _], Some(bytes)) => u32::from_be_bytes(*bytes) as usize,
        _ => return Err(Trouble::bad("after is not what `next` said on the page before.")),
    };
    let query = Query::parse(asked.text("q")).map_err(skep_search::Error::Query)?;
    let within = asked.get("url_prefix").map(|prefix| Scan::of(prefix, Match::Prefix));
    let limit = asked.number("limit", TEXTS_ROWS);
    let found = text.search(&skep_search::Asked {
        query: &query,
        at_ms: asked.latest("at"),
        within: within.as_ref(),
        shows: &|capture| look.shows(capture),
        skip,
        limit,
    })?;
    let reached = skip + found.hits.len();
    let next = (found.more && reached < skep_search::limits::REACH_MAX)
        .then(|| cursor_of(&u32::try_from(reached).unwrap_or(u32::MAX).to_be_bytes()));
    let hits = found.hits.into_iter().map(|hit| told(look, hit)).collect();
    Ok(Found { hits, cut: found.cut, next })
}

fn told(look: &Looking<'_>, hit: skep_search::Hit) -> Hit {
    let (scope, digits, url) = (look.scope.name(), time::digits(hit.capture.time_ms), hit.capture.url);
    Hit {
        time: date::rfc3339(hit.capture.time_ms),
        title: hit.title,
        passage: pieces(&hit.passage),
        first: date::rfc3339(hit.first_ms),
        last: date::rfc3339(hit.last_ms),
        captures: hit.captures,
        links: Links {
            replay: address(&format!("/{scope}/{digits}/{url}")),
            calendar: address(&format!("/{scope}/*/{url}")),
        },
        timestamp: digits,
        url,
    }
}

fn pieces(passage: &Passage) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut put = |from: usize, to: usize, found: bool| {
        if let Some(text) = passage.text.get(from..to).filter(|text| !text.is_empty()) {
            pieces.push(Piece { text: text.to_owned(), found });
        }
    };
    let mut at = 0;
    for (from, to) in &passage.marks {
        put(at, *from, false);
        put(*from, *to, true);
        at = *to;
    }
    put(at, passage.text.len(), false);
    pieces
}
