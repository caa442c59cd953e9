//! What all nodes of a network tell since a time: each of sites that it holds, none twice, in the order of their times.
//!
//! A cursor is a place in the log of one node, so who asks all of them goes on by time. Where there is more than a node tells at once,
//! only what is not newer than the last that it told is told at all: whoever asks again from there on misses nothing.
//!
//! ```text
//!   /changes          the oldest since a time                    for who asks once, and for who stays: what was there before
//!   /changes/news     what came to a log since the last time     for who stays: each node is told where in its log that was
//!   /changes/newest   the newest                                 for the live page
//!   /changes/url      the newest of one URL                      for its history
//! ```
//! Every question says how much room there is for the answer, so that all answers together fit: where an answer is cut, the asker goes on.
//! News go by places in logs, not by time: clocks of nodes differ, and what is copied late is news, too. Who answers for other sites than the
//! last time tells some of its log once more; what was handed on already is known by its key.

use super::{Asked, Frame, Part, head, refused, texts, trouble};
use crate::access::May;
use crate::cdx::params::Params;
use crate::elsewhere::Elsewhere;
use crate::find::Looking;
use crate::limits::{
    CAPTURES_OF_URL_MAX, CHANGES_AGAIN_MAX, CHANGES_ANSWER_BYTES, CHANGES_ANSWERS_BYTES, CHANGES_ASKED_MS_MAX,
    CHANGES_EVERYWHERE_MAX, CHANGES_PLACES_BYTES_MAX, CHANGES_RECENT_MAX, CHANGES_STEP_MAX, LIVE_LOOKED_MAX, LIVE_ROWS,
};
use crate::pages::frame::encoded;
use crate::portal::{Portal, Scope};
use crate::reply::Reply;
use crate::trouble::Trouble;
use axum::http::{HeaderMap, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skep_archive::captures::{Match, Query};
use skep_archive::runs::Direction;
use skep_archive::{Key, Position};
use skep_changes::{Cursor, Delta, Filter, From, Kept};
use skep_page::compare::Classes;
use skep_warc::date;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// What an event takes in an answer beside itself.
const EVENT_BYTES: u64 = 64;

/// A question for so many nodes.
fn question(what: &str, query: &str, nodes: usize) -> String {
    let room = CHANGES_ANSWERS_BYTES / nodes.max(2) as u64;
    format!("/changes{what}?room={room}&{query}")
}

/// The room that there is for the answer, and what is asked.
fn room_in(query: &str) -> (u64, &str) {
    let told = query.strip_prefix("room=").map(|rest| rest.split_once('&').unwrap_or((rest, "")));
    match told.map(|(room, query)| (room.parse(), query)) {
        Some((Ok(room), query)) => (room, query),
        _ => (CHANGES_ANSWER_BYTES, query),
    }
}

/// As many of the first as there is room for; what happened in one moment stays together, for who goes on does so by time. Says whether
/// there were more.
fn keep_within(events: &mut Vec<Told>, room: u64) -> bool {
    let mut taken = 0;
    let fits = |told: &&Told| {
        taken += told.bytes();
        taken <= room
    };
    let mut kept = events.iter().take_while(fits).count().max(1);
    while kept < events.len() && events[kept].time_ms() == events[kept - 1].time_ms() {
        kept += 1;
    }
    let cut = kept < events.len();
    events.truncate(kept);
    cut
}

/// An event of some node.
pub struct Told {
    pub cursor: Cursor,
    value: Vec<u8>,
    delta: Option<Delta>,
}

/// What they tell together.
#[derive(Default)]
pub struct All {
    /// By time.
    pub events: Vec<Told>,
    /// There is more.
    pub cut: bool,
    /// Parts of the network for which nobody answered.
    pub silent: usize,
}

/// As it travels.
#[derive(Serialize, Deserialize)]
struct Said {
    events: Vec<(String, String, Option<Value>)>,
    cut: bool,
    /// The place in its log from where there is more to tell, and for which sites it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<String>,
}

impl Said {
    fn of(events: &[Told], cut: bool, place: Option<String>) -> Said {
        Said { events: events.iter().map(Told::said).collect(), cut, place }
    }

    /// Who says something else is of another version, and is done without.
    fn heard(said: Value) -> Option<(Vec<Told>, bool, Option<String>)> {
        let Said { events, cut, place } = serde_json::from_value(said).ok()?;
        Some((events.into_iter().filter_map(Told::heard).collect(), cut, place))
    }
}

/// By what an event is known again, whichever node tells it: what is told anew of a record is of other classes, and records of files that
/// were added at two nodes may have the same key.
pub type Name = (Position, u32, u64);

/// The name of an event.
pub fn name(kept: &Kept<'_>) -> Name {
    let mut hash = DefaultHasher::new();
    (kept.url, kept.time_ms).hash(&mut hash);
    (kept.key, kept.classes.0, hash.finish())
}

impl Told {
    /// The event.
    pub fn kept(&self) -> Option<Kept<'_>> {
        Kept::decode(&self.value)
    }

    fn time_ms(&self) -> i64 {
        self.kept().map_or(i64::MAX, |kept| kept.time_ms)
    }

    /// About so many bytes of an answer.
    fn bytes(&self) -> u64 {
        let delta = self.delta.as_ref().map_or(0, |delta| delta.json().len());
        (self.value.len().div_ceil(3) * 4 + self.cursor.node.len() + delta) as u64 + EVENT_BYTES
    }

    fn said(&self) -> (String, String, Option<Value>) {
        let delta = self.delta.as_ref().and_then(|delta| serde_json::from_str(&delta.json()).ok());
        (self.cursor.to_string(), STANDARD_NO_PAD.encode(&self.value), delta)
    }

    fn heard((cursor, value, delta): (String, String, Option<Value>)) -> Option<Told> {
        let value = STANDARD_NO_PAD.decode(value).ok()?;
        Kept::decode(&value)?;
        Some(Told { cursor: cursor.parse().ok()?, value, delta: delta.as_ref().and_then(Delta::read) })
    }
}

/// `GET /changes?nodes=all`: one event a line. `Skep-Silent` says for how many slices nobody answered, `Skep-Cut` that there is more.
pub(super) fn lines(look: &Looking<'_>, asked: &Asked, query: &str, others: &dyn Elsewhere, reply: Reply) {
    let all = match of_all(look, asked, query, others) {
        Ok(all) => all,
        Err(trouble) => {
            look.portal.note(&trouble);
            return reply.send(refused(&trouble));
        }
    };
    let mut begun = head(super::LINES);
    begun.headers_mut().insert(crate::cdx::out::SILENT, HeaderValue::from(all.silent));
    begun.headers_mut().insert("skep-cut", HeaderValue::from_static(if all.cut { "yes" } else { "no" }));
    let mut sink = reply.begin(begun);
    let mut line = String::new();
    for told in all.events.iter().take(usize::try_from(asked.limit).unwrap_or(usize::MAX)) {
        let Some(kept) = told.kept() else { continue };
        line.clear();
        kept.json_with(&told.cursor, told.delta.as_ref(), &mut line);
        line.push('\n');
        if sink.write(line.as_bytes()).is_err() {
            return;
        }
    }
    let _client_left = sink.end();
}

/// What happened since a time, wherever its sites are held.
pub fn since(look: &Looking<'_>, others: &dyn Elsewhere, time: &str) -> Result<All, Trouble> {
    let query = format!("since={time}");
    of_all(look, &Asked::of(&Params::of(&query), &HeaderMap::new())?, &query, others)
}

fn of_all(look: &Looking<'_>, asked: &Asked, query: &str, others: &dyn Elsewhere) -> Result<All, Trouble> {
    let everywhere = others.everywhere(&|nodes| question("", query, nodes));
    let here = part(&Looking { sites: Some(everywhere.sites()), ..*look }, asked, u64::MAX)?;
    let mut joined = Joined::of(CHANGES_EVERYWHERE_MAX);
    joined.join(here.0, here.1);
    for (events, cut, _) in everywhere.said.into_iter().filter_map(Said::heard) {
        joined.join(events, cut);
    }
    Ok(All { silent: everywhere.silent, ..joined.end() })
}

/// What several tell, each the oldest that it has: no more is kept than is told at once, however many they are.
struct Joined {
    all: All,
    most: usize,
    /// Up to this time everything is here.
    until_ms: i64,
}

impl Joined {
    fn of(most: usize) -> Joined {
        Joined { all: All::default(), most, until_ms: i64::MAX }
    }

    fn join(&mut self, part: Vec<Told>, cut: bool) {
        if let Some(last) = part.last().filter(|_| cut) {
            self.until_ms = self.until_ms.min(last.time_ms());
            self.all.cut = true;
        }
        self.all.events.extend(part);
        if self.all.events.len() >= 2 * self.most {
            self.thin();
        }
    }

    fn thin(&mut self) {
        let All { events, cut, .. } = &mut self.all;
        events.retain(|told| told.time_ms() <= self.until_ms);
        events.sort_by_cached_key(|told| (told.time_ms(), told.cursor.node.clone(), told.cursor.number));
        if events.len() > self.most {
            events.truncate(self.most);
            *cut = true;
            // Of what follows nothing is told that would stand behind what was left out.
            self.until_ms = events.last().map_or(self.until_ms, Told::time_ms);
        }
    }

    fn end(mut self) -> All {
        self.thin();
        self.all
    }
}

/// What happened to a URL whose captures are with others, filed at these sites: what is told of each capture, the newest ones where it is
/// too much.
pub fn of_url(others: &dyn Elsewhere, url: &str, sites: &BTreeSet<u32>) -> All {
    let everywhere = others.everywhere_of(sites, &|nodes| question("/url", &format!("url={}", encoded(url)), nodes));
    let mut all = All { silent: everywhere.silent, ..All::default() };
    for (events, cut, _) in everywhere.said.into_iter().filter_map(Said::heard) {
        all.events.extend(events.into_iter().filter(|told| told.kept().is_some_and(|kept| kept.url == url)));
        all.cut |= cut;
    }
    all
}

/// The same of the captures that are here.
fn of_url_here(look: &Looking<'_>, url: &str, room: u64) -> Result<(Vec<Told>, bool), Trouble> {
    let (portal, changes) = (look.portal, &look.portal.hub.changes);
    changes.follow(&portal.archive, look.now_ms, &mut |_| ()).map_err(trouble)?;
    // What is found by its capture is known by its record; its place in the log nobody asks for.
    let cursor = changes.newest(&portal.archive).map_err(trouble)?;
    let query = Query { direction: Direction::Backward, ..Query::new(Match::Exact(Key::of(url))) };
    let (mut events, mut taken) = (Vec::new(), 0);
    for (looked, capture) in portal.query_here(&query)?.enumerate() {
        let capture = capture?;
        if looked >= CAPTURES_OF_URL_MAX || events.len() >= CHANGES_EVERYWHERE_MAX || taken >= room {
            return Ok((events, true));
        }
        if capture.url != url || !look.has_site(capture.key.site_hash()) {
            continue;
        }
        let value = changes.last_of(&portal.archive, capture.position).map_err(trouble)?;
        let is_told = |value: &Vec<u8>| {
            Kept::decode(value)
                .is_some_and(|kept| !kept.classes.is_silent() && super::may_see(portal, look.may, look.now_ms, &kept))
        };
        let Some(value) = value.filter(is_told) else { continue };
        let told = Told { cursor: cursor.clone(), value, delta: None };
        taken += told.bytes();
        events.push(told);
    }
    Ok((events, false))
}

/// What there is since the time that is asked for, for who is about to hear of what comes: until then nothing is missed.
pub(super) fn behind(portal: &Portal, asked: &Asked, query: &str, may: May) -> Result<All, Trouble> {
    let Some(others) = portal.elsewhere.as_deref() else { return Ok(All::default()) };
    hear(portal)?;
    let is_where = |pair: &str| ["since", "limit", "nodes"].contains(&pair.split('=').next().unwrap_or_default());
    let what = query.split('&').filter(|pair| !is_where(pair)).collect::<Vec<_>>().join("&");
    let query = format!("since={}&{what}", date::rfc3339(asked.filter.since_ms.unwrap_or(0)));
    let scope = Scope::Everything;
    let look = Looking { portal, scope: &scope, may, now_ms: portal.now_ms(), sites: None };
    of_all(&look, asked, &query, others)
}

/// How far all nodes were heard.
#[derive(Default)]
pub struct Heard {
    /// The places in their logs, by the names of these.
    places: BTreeMap<String, String>,
    last: Option<Instant>,
    /// What was handed on lately, also in its order.
    known: HashSet<Name>,
    order: VecDeque<Name>,
    /// How many were, in all.
    number: u64,
}

impl Heard {
    /// The places, as they go with the question. None where they would lead back too far: then it begins anew.
    fn places(&mut self) -> String {
        if self.last.is_none_or(|last| last.elapsed() > Duration::from_millis(CHANGES_ASKED_MS_MAX)) {
            self.places.clear();
        }
        while self.places.values().map(|place| place.len() + 1).sum::<usize>() > CHANGES_PLACES_BYTES_MAX {
            self.places.pop_first();
        }
        self.places.values().cloned().collect::<Vec<_>>().join(",")
    }

    fn reached(&mut self, place: String) {
        if let Some((cursor, _)) = place_of(&place) {
            self.places.insert(cursor.node, place);
        }
    }

    fn is_new(&mut self, name: Name) -> bool {
        let is_new = self.known.insert(name);
        if is_new {
            self.order.push_back(name);
        }
        if self.order.len() > CHANGES_RECENT_MAX
            && let Some(old) = self.order.pop_front()
        {
            self.known.remove(&old);
        }
        is_new
    }
}

/// A place in the log of a node, and a name of the sites for which it answered.
fn place_of(text: &str) -> Option<(Cursor, u64)> {
    let (cursor, sites) = text.split_once('@')?;
    Some((cursor.parse().ok()?, u64::from_str_radix(sites, 16).ok()?))
}

/// Hears what all nodes have to tell since they were asked last, and hands it to those who stay. Everybody gets it, so nobody hears of what
/// only some may see.
pub(super) fn hear(portal: &Portal) -> Result<(), Trouble> {
    let Some(others) = portal.elsewhere.as_deref() else { return Ok(()) };
    let mut heard = portal.hub.heard.lock().unwrap_or_else(PoisonError::into_inner);
    let places = heard.places();
    let everywhere = others.everywhere(&|nodes| question("/news", &format!("after={places}"), nodes));
    let scope = Scope::Everything;
    let sites = Some(everywhere.sites());
    let look = Looking { portal, scope: &scope, may: May::Read, now_ms: portal.now_ms(), sites };
    let (mut events, place) = news(&look, &places, u64::MAX)?;
    heard.reached(place);
    for (told, _, place) in everywhere.said.into_iter().filter_map(Said::heard) {
        events.extend(told);
        if let Some(place) = place {
            heard.reached(place);
        }
    }
    heard.last = Some(Instant::now());
    events.sort_by_cached_key(|told| (told.time_ms(), told.cursor.node.clone(), told.cursor.number));
    let lately = &portal.hub.everywhere;
    let mut part = Part::default();
    for told in &events {
        let Some(kept) = told.kept().filter(|kept| heard.is_new(name(kept))) else { continue };
        heard.number += 1;
        let frame = Frame::of(heard.number, &date::rfc3339(kept.time_ms), &told.cursor, &kept);
        if part.put(frame).is_break() {
            lately.remember(std::mem::take(&mut part));
        }
    }
    lately.remember(part);
    lately.tell(heard.number);
    Ok(())
}

/// What came to the log here of some sites since it was asked last, and the place up to which that goes.
fn news(look: &Looking<'_>, places: &str, room: u64) -> Result<(Vec<Told>, String), Trouble> {
    let (portal, changes) = (look.portal, &look.portal.hub.changes);
    changes.follow(&portal.archive, look.now_ms, &mut |_| ()).map_err(trouble)?;
    let newest = changes.newest(&portal.archive).map_err(trouble)?;
    let sites = look.sites.map_or(0, |sites| sites.name);
    let known = places.split(',').filter_map(place_of).find(|(cursor, _)| cursor.node == newest.node);
    let number = match known {
        _ if places.is_empty() => newest.number,
        Some((cursor, before)) if before == sites => cursor.number,
        Some((cursor, _)) => cursor.number.saturating_sub(CHANGES_AGAIN_MAX),
        None => newest.number.saturating_sub(CHANGES_AGAIN_MAX),
    };
    let from = From::After(Cursor { number, ..newest });
    // Retention may have taken what is wanted out of the log.
    let from = if changes.check(&portal.archive, &from).is_ok() { from } else { From::End };
    let every = Filter { classes: Some(Classes(u32::MAX)), ..Filter::default() };
    let (mut events, mut taken) = (Vec::new(), 0);
    let reached = changes.read(&portal.archive, &from, &every, |cursor, kept| {
        if look.has_site(portal.archive.filed(kept.key, Key::of(kept.url)).site_hash())
            && super::may_see(portal, look.may, look.now_ms, kept)
        {
            let told = Told { cursor: cursor.clone(), value: kept.value.to_vec(), delta: None };
            taken += told.bytes();
            events.push(told);
        }
        let is_full = events.len() >= CHANGES_EVERYWHERE_MAX || taken >= room;
        if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    Ok((events, format!("{}@{sites:x}", reached.map_err(trouble)?)))
}

/// The newest of what all nodes tell, the newest first; before a time, if one is given. `query` says which.
pub fn newest(look: &Looking<'_>, others: &dyn Elsewhere, query: &str, until_ms: Option<i64>) -> Result<All, Trouble> {
    let query = format!("until={}{query}", until_ms.unwrap_or(i64::MAX));
    let everywhere = others.everywhere(&|nodes| question("/newest", &query, nodes));
    let here = Looking { sites: Some(everywhere.sites()), ..*look };
    let (events, cut) = newest_here(&here, &Params::of(&query))?;
    let mut all = All { events, cut, silent: everywhere.silent };
    for (events, cut, _) in everywhere.said.into_iter().filter_map(Said::heard) {
        all.events.extend(events);
        all.cut |= cut | thin_to_newest(&mut all.events);
    }
    Ok(all)
}

/// The same of what is here. Where very many became known at once, those that became known last are looked at.
fn newest_here(look: &Looking<'_>, params: &Params) -> Result<(Vec<Told>, bool), Trouble> {
    let (portal, changes) = (look.portal, &look.portal.hub.changes);
    changes.follow(&portal.archive, look.now_ms, &mut |_| ()).map_err(trouble)?;
    let (filter, until_ms) = (super::filter(params)?, params.number("until")?.unwrap_or(i64::MAX));
    let mut events = Vec::new();
    let cut = changes.newest_first(&portal.archive, None, LIVE_LOOKED_MAX, &filter, |cursor, kept| {
        if kept.time_ms < until_ms
            && look.has_site(portal.archive.filed(kept.key, Key::of(kept.url)).site_hash())
            && super::may_see(portal, look.may, look.now_ms, kept)
        {
            events.push(Told { cursor: cursor.clone(), value: kept.value.to_vec(), delta: None });
        }
        if events.len() < CHANGES_STEP_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let cut = cut.map_err(trouble)? | thin_to_newest(&mut events);
    Ok((events, cut))
}

/// As many as a page has rows, the newest first; what happened in one moment stays together. Says whether there were more.
fn thin_to_newest(events: &mut Vec<Told>) -> bool {
    events.sort_by_cached_key(|told| (Reverse(told.time_ms()), told.cursor.node.clone(), told.cursor.number));
    let Some(last_ms) = events.get(LIVE_ROWS - 1).map(Told::time_ms) else { return false };
    let before = events.len();
    events.retain(|told| told.time_ms() >= last_ms);
    events.len() < before
}

/// Answers another node.
pub fn answer(look: &Looking<'_>, what: &str, query: &str) -> Result<Value, Trouble> {
    let (room, query) = room_in(query);
    let params = Params::of(query);
    let said = match what {
        "" => {
            let (events, cut) = part(look, &Asked::of(&params, &HeaderMap::new())?, room)?;
            Said::of(&events, cut, None)
        }
        "/news" => {
            let (events, place) = news(look, params.get("after").unwrap_or_default(), room)?;
            Said::of(&events, false, Some(place))
        }
        "/newest" => {
            let (events, cut) = newest_here(look, &params)?;
            Said::of(&events, cut, None)
        }
        "/url" => {
            let (events, cut) = of_url_here(look, params.get("url").unwrap_or_default(), room)?;
            Said::of(&events, cut, None)
        }
        _ => return Err(Trouble::missing("Nodes do not ask each other this.")),
    };
    Ok(json!(said))
}

/// The oldest of what is here of some sites, and whether there is more.
fn part(look: &Looking<'_>, asked: &Asked, room: u64) -> Result<(Vec<Told>, bool), Trouble> {
    let (portal, changes) = (look.portal, &look.portal.hub.changes);
    changes.follow(&portal.archive, look.now_ms, &mut |_| ()).map_err(trouble)?;
    let texts = texts(portal, asked)?;
    let (mut events, mut cut): (Vec<Told>, bool) = (Vec::new(), false);
    let mut thin = |events: &mut Vec<Told>| {
        events.sort_by_key(Told::time_ms);
        cut |= events.len() > CHANGES_EVERYWHERE_MAX;
        events.truncate(CHANGES_EVERYWHERE_MAX);
    };
    let read = changes.read(&portal.archive, &From::Start, &asked.filter, |cursor, kept| {
        if look.has_site(portal.archive.filed(kept.key, Key::of(kept.url)).site_hash())
            && super::may_see(portal, look.may, look.now_ms, kept)
        {
            events.push(Told { cursor: cursor.clone(), value: kept.value.to_vec(), delta: None });
            // The log is in the order in which things became known.
            if events.len() >= 2 * CHANGES_EVERYWHERE_MAX {
                thin(&mut events);
            }
        }
        ControlFlow::Continue(())
    });
    read.map_err(trouble)?;
    thin(&mut events);
    if let Some(settings) = texts {
        for told in &mut events {
            let delta = told.kept().and_then(|kept| Delta::of(&portal.archive, &settings, &kept).ok().flatten());
            told.delta = delta;
        }
    }
    let cut = cut | keep_within(&mut events, room);
    Ok((events, cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a node tells: what happened at these times.
    fn part(node: &str, times: &[i64]) -> Vec<Told> {
        let told = |(number, time_ms): (usize, &i64)| {
            let mut value = vec![0; 29];
            value[0] = 1;
            value[7..15].copy_from_slice(&time_ms.to_le_bytes());
            Told { cursor: Cursor { node: node.into(), number: number as u64 }, value, delta: None }
        };
        times.iter().enumerate().map(told).collect()
    }

    fn joined(parts: &[(&[i64], bool)]) -> (Vec<i64>, bool) {
        let mut joined = Joined::of(4);
        for (number, (times, cut)) in parts.iter().enumerate() {
            joined.join(part(&format!("node{number}"), times), *cut);
            assert!(joined.all.events.len() < 8, "it grows with their number");
        }
        let all = joined.end();
        (all.events.iter().map(Told::time_ms).collect(), all.cut)
    }

    #[test]
    fn an_answer_keeps_to_its_room_and_who_asks_goes_on_behind_it() {
        let asked = question("/news", "after=x", 4);
        let (room, query) = room_in(asked.strip_prefix("/changes/news?").unwrap());
        assert_eq!((room, query), (CHANGES_ANSWERS_BYTES / 4, "after=x"));
        assert_eq!(room_in("after=x"), (CHANGES_ANSWER_BYTES, "after=x"));
        let one = part("node", &[1])[0].bytes();
        let said = serde_json::to_string(&Said::of(&part("node", &[1, 2, 3]), true, None)).unwrap().len() as u64;
        assert!(said <= 3 * one, "{said} bytes are said, {one} were expected of each");
        let within = |times: &[i64], room: u64| {
            let mut events = part("node", times);
            let cut = keep_within(&mut events, room);
            (events.iter().map(Told::time_ms).collect::<Vec<_>>(), cut)
        };
        assert_eq!(within(&[1, 2, 3], 3 * one), (vec![1, 2, 3], false));
        assert_eq!(within(&[1, 2, 3], 2 * one), (vec![1, 2], true));
        assert_eq!(within(&[1, 2, 3], 0), (vec![1], true), "else nobody would ever go on");
        assert_eq!(within(&[1, 1, 1, 2], one), (vec![1, 1, 1], true), "a moment is one");
        assert_eq!(within(&[], 0), (vec![], false));
    }

    #[test]
    fn what_many_tell_is_the_oldest_of_it_and_whole_up_to_its_last() {
        assert_eq!(joined(&[(&[1, 5], false), (&[2, 4], false)]), (vec![1, 2, 4, 5], false));
        // Of one that has more to tell nothing is known behind its last.
        assert_eq!(joined(&[(&[1, 5], false), (&[2, 4], true)]), (vec![1, 2, 4], true));
        // Nor behind the last that is kept, whoever comes later.
        let many: [(&[i64], bool); 4] =
            [(&[1, 10, 20, 30], false), (&[2, 11, 21, 31], false), (&[3, 40, 50], false), (&[12, 60], false)];
        assert_eq!(joined(&many), (vec![1, 2, 3, 10], true));
        assert_eq!(
            joined(&[(&[10, 20, 30, 40], false), (&[11, 21, 31, 41], false), (&[5, 6], true)]),
            (vec![5, 6], true)
        );
        assert_eq!(joined(&[(&[1, 2, 3, 4], false), (&[], true)]), (vec![1, 2, 3, 4], false));
    }
}
