//! What all nodes of a network tell since a time: each of sites that it holds, none twice, in the order of their times.
//!
//! A cursor is a place in the log of one node, so who asks all of them goes on by time. Where there is more than a node tells at once,
//! only what is not newer than the last that it told is told at all: whoever asks again from there on misses nothing.

use super::{Asked, head, refused, texts, trouble};
use crate::cdx::params::Params;
use crate::elsewhere::Elsewhere;
use crate::find::Looking;
use crate::limits::CHANGES_EVERYWHERE_MAX;
use crate::reply::Reply;
use crate::trouble::Trouble;
use axum::http::{HeaderMap, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skep_archive::Key;
use skep_changes::{Cursor, Delta, From, Kept};
use std::ops::ControlFlow;

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
}

impl Told {
    /// The event.
    pub fn kept(&self) -> Option<Kept<'_>> {
        Kept::decode(&self.value)
    }

    fn time_ms(&self) -> i64 {
        self.kept().map_or(i64::MAX, |kept| kept.time_ms)
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
    let everywhere = others.everywhere(&|_| format!("/changes?{query}"));
    let here = part(&Looking { sites: Some(everywhere.sites()), ..*look }, asked)?;
    let mut all = All { silent: everywhere.silent, ..All::default() };
    let mut until_ms = i64::MAX;
    let mut join = |part: Vec<Told>, cut: bool| {
        if let Some(last) = part.last().filter(|_| cut) {
            until_ms = until_ms.min(last.time_ms());
            all.cut = true;
        }
        all.events.extend(part);
    };
    join(here.0, here.1);
    for said in everywhere.said {
        // Who says something else is of another version, and is done without.
        let Ok(Said { events, cut }) = serde_json::from_value(said) else { continue };
        join(events.into_iter().filter_map(Told::heard).collect(), cut);
    }
    all.events.retain(|told| told.time_ms() <= until_ms);
    all.events.sort_by_cached_key(|told| (told.time_ms(), told.cursor.node.clone(), told.cursor.number));
    Ok(all)
}

/// Answers another node.
pub fn answer(look: &Looking<'_>, query: &str) -> Result<Value, Trouble> {
    let asked = Asked::of(&Params::of(query), &HeaderMap::new())?;
    let (events, cut) = part(look, &asked)?;
    Ok(json!(Said { events: events.iter().map(Told::said).collect(), cut }))
}

/// The oldest of what is here of some sites, and whether there is more.
fn part(look: &Looking<'_>, asked: &Asked) -> Result<(Vec<Told>, bool), Trouble> {
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
    Ok((events, cut))
}
