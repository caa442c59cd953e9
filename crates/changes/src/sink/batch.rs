//! What a sink is to carry next, read from the log.

use std::collections::HashSet;
use std::ops::ControlFlow;

use serde::Deserialize;
use skep_archive::{Archive, Position};
use skep_page::compare::{Class, Classes};
use skep_url::Url;

use super::postgres::Rows;
use super::state::State;
use crate::at_hand::Hands;
use crate::bodies::{Bodies, Known};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::event::{Details, HOST, Kept, Place, TEMPLATE};
use crate::filter::Filter;
use crate::limits::SINK_OVERLAP_MS;
use crate::log::{Changes, From};
use crate::retain;
use crate::settings::Settings;
use crate::told::key_text;

/// An event on its way out.
#[derive(Debug, Clone)]
pub struct Told {
    pub number: u64,
    pub key: Position,
    pub kind: &'static str,
    pub classes: Classes,
    pub share: u16,
    pub time_ms: i64,
    pub url: String,
    /// As JSON.
    pub details: String,
    /// The whole event as told, in one line of JSON.
    pub line: String,
    /// Where the page leads, if it is compared with nothing and whoever carries it wants to know: its event does not name all of it.
    pub links: Vec<String>,
}

/// Where its capture is, of the details of an event.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Stands {
    archive: Place,
}

impl Told {
    fn of(cursor: &Cursor, kept: &Kept<'_>) -> Told {
        let mut line = String::with_capacity(kept.details.len() + 512);
        kept.json(cursor, &mut line);
        Told {
            number: cursor.number,
            key: kept.key,
            kind: kept.kind(),
            classes: kept.classes,
            share: kept.share,
            time_ms: kept.time_ms,
            url: kept.url.to_owned(),
            details: kept.details.to_owned(),
            line,
            links: Vec::new(),
        }
    }

    /// Reads where a new page leads. One that cannot be read leads nowhere.
    fn find_links(&mut self, bodies: &dyn Bodies, settings: &Settings) -> Result<()> {
        let Ok(url) = Url::parse(&self.url) else { return Ok(()) };
        let Stands { archive: place } = serde_json::from_str(&self.details).unwrap_or_default();
        let body = place.body.as_deref().and_then(|body| body.parse().ok()).unwrap_or(self.key);
        if let Some(body) = bodies.at(body)? {
            self.links = body.version(&url, settings).links.into_iter().map(|link| link.url).collect();
        }
        Ok(())
    }

    /// The details, read.
    pub fn read(&self) -> Details {
        serde_json::from_str(&self.details).unwrap_or_default()
    }

    /// The key as the stream has it.
    pub fn key_text(&self) -> String {
        key_text(self.key)
    }

    /// Whether it is about a host, and not about the page of its record.
    pub fn is_of_host(&self) -> bool {
        self.key.record & (HOST | TEMPLATE) != 0
    }

    /// Whether its event cannot say which links came: the page is new, or the versions before it went, and with them the links they brought.
    fn is_compared_with_nothing(&self) -> bool {
        let is_left = || self.classes == Classes::of(Class::Bytes) && self.details.contains(retain::TOLD);
        self.classes.contains(Class::New) || is_left()
    }

    /// Whether it takes another event back.
    pub fn takes_back(&self) -> bool {
        self.classes.is_empty()
    }
}

/// Some events, and how far they reach.
#[derive(Debug)]
pub struct Batch {
    pub node: String,
    pub events: Vec<Told>,
    /// What the cursor is once all of them are acknowledged.
    pub upto: u64,
    /// There is more.
    pub more: bool,
    /// As rows of a database, if it goes to one.
    pub rows: Option<Rows>,
}

/// How much at once, and what else a carrier wants to know.
#[derive(Debug, Clone, Copy)]
pub struct Portion {
    pub events: usize,
    pub bytes: usize,
    /// An event that comes a second time does no harm there, however much later.
    pub idempotent: bool,
    /// Where new pages lead is wanted.
    pub links: bool,
}

/// Reads what comes behind the cursor. What has to be decided about a cursor that the log does not know is decided here, and
/// left in the state.
pub fn read(
    archive: &Archive,
    changes: &Changes,
    state: &mut State,
    filter: &Filter,
    takes_back: bool,
    portion: Portion,
) -> Result<Batch> {
    let from = place(archive, changes, state, portion.idempotent)?;
    let mut batch = Batch { node: from.node.clone(), events: Vec::new(), upto: from.number, more: false, rows: None };
    let (mut bytes, mut looked) = (0, from.number);
    // Everything is looked at here, so that the cursor also moves over what nobody wants.
    let everything = Filter { classes: Classes::from_name("all"), ..Filter::default() };
    let upto = changes.read(archive, &From::After(from), &everything, |cursor, kept| {
        if batch.events.len() >= portion.events || bytes >= portion.bytes {
            batch.more = true;
            return ControlFlow::Break(());
        }
        looked = cursor.number;
        let in_time = cursor.number > state.since_until || state.since_ms.is_none_or(|since| kept.time_ms >= since);
        let wanted = if takes_back { filter.admits(kept) } else { filter.shows(kept) };
        if wanted && in_time {
            let told = Told::of(cursor, kept);
            bytes += told.line.len() + told.details.len();
            batch.events.push(told);
        }
        ControlFlow::Continue(())
    })?;
    batch.upto = if batch.more { looked } else { upto.number };
    if portion.links {
        let (settings, bare, hands) = (Settings::of(archive)?, HashSet::new(), Hands::default());
        let bodies = Known { archive, bare: &bare, hands: &hands };
        for told in batch.events.iter_mut().filter(|told| told.is_compared_with_nothing()) {
            told.find_links(&bodies, &settings)?;
        }
    }
    Ok(batch)
}

/// Where reading goes on.
fn place(archive: &Archive, changes: &Changes, state: &mut State, idempotent: bool) -> Result<Cursor> {
    let newest = changes.newest(archive)?;
    let start = Cursor { number: 0, ..newest.clone() };
    let Some(text) = state.cursor.as_deref() else { return Ok(start) };
    let cursor: Cursor = text.parse().map_err(|_| Error::Sink {
        what: format!("{text:?} is no cursor"),
        hint: "`skep sink replay NAME --since …` says from where it goes on".to_owned(),
    })?;
    match changes.check(archive, &From::After(cursor.clone())) {
        Ok(cursor) => Ok(cursor),
        // Nothing had been told when the sink was made.
        Err(Error::ForeignCursor { .. }) if cursor.number == 0 && state.seen_ms.is_none() => {
            state.since_until = if state.since_ms.is_some() { newest.number } else { 0 };
            state.cursor = Some(start.to_string());
            Ok(start)
        }
        Err(Error::ForeignCursor { .. } | Error::CursorAhead { .. }) => {
            // The log was built again. Where an event that comes again does no harm all of them do; elsewhere one goes on by time.
            let had_ms = state.seen_ms.or(state.from_ms).filter(|_| !idempotent);
            state.since_ms = had_ms.map(|had_ms| had_ms.saturating_sub(SINK_OVERLAP_MS));
            state.since_until = newest.number;
            state.cursor = Some(start.to_string());
            Ok(start)
        }
        Err(Error::CursorTooOld { shown, oldest }) => {
            state.error = Some(format!("the events after {shown} are no longer kept; went on from {oldest}"));
            Ok(Cursor { number: oldest.number.saturating_sub(1), ..oldest })
        }
        Err(other) => Err(other),
    }
}
