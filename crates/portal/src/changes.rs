//! `GET /changes`: the stream of changes. Who pulls gets what is there, one event a line; who accepts server-sent events stays and gets
//! the rest as it happens.
//!
//! ```text
//!   archive ──▶ follow (one thread, while somebody stays) ──▶ recent events ──▶ each consumer, at its own pace
//!                                                └───────────────▶ the log, for who is further behind
//! ```
//! Nothing is kept for a consumer but its place: a slow one slows nobody but itself. What all nodes of a network tell goes the same way, only
//! that it comes from their logs, and that who is too far behind is let go, to go on by time.

pub mod everywhere;
mod pull;

use crate::access::May;
use crate::answer::{self, Answer};
use crate::cdx::params::Params;
use crate::limits::{
    CHANGES_ASK_MS, CHANGES_OVERLAP_MS, CHANGES_RECENT_BYTES, CHANGES_RECENT_MAX, CHANGES_STEP_BYTES, CHANGES_STEP_MAX,
    CHANGES_STILL_MS, CHANGES_TICK_MS, PIECE_BYTES, PIECE_MS,
};
use crate::metrics::Route;
use crate::portal::{Portal, Scope};
use crate::reply::{Pieces, Whole};
use crate::routes::{counted, look};
use crate::trouble::Trouble;
use crate::visit::Visit;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use bytes::Bytes;
use serde_json::json;
use skep_archive::{Capture, CaptureKind, Key, Position};
use skep_changes::{Changes, Cursor, Delta, Error, Filter, From, Kept, Settings};
use skep_page::compare::{Class, Classes};
use skep_warc::date;
use std::collections::{HashSet, VecDeque};
use std::fmt::Display;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

const LINES: &str = "application/x-ndjson";
const EVENTS: &str = "text/event-stream";
const NAMES: &[&str] = &["since", "host", "prefix", "class", "min_change", "mime", "watch", "delta", "limit", "nodes"];

/// What those who stay share.
pub struct Hub {
    /// The view.
    pub changes: Arc<Changes>,
    /// What is in the log of this archive.
    here: Lately,
    /// What all nodes of a network tell.
    everywhere: Lately,
    /// How far they were heard for that.
    heard: Mutex<everywhere::Heard>,
}

/// What came lately, for those who stay.
struct Lately {
    recent: Mutex<Recent>,
    newest: watch::Sender<u64>,
    following: AtomicBool,
}

/// The newest events of the log.
#[derive(Default)]
struct Recent {
    node: String,
    /// Every event with a greater number is here.
    since: u64,
    /// In the order of the log, as many together as were seen at once.
    parts: VecDeque<Arc<Vec<Frame>>>,
    events: usize,
    bytes: usize,
}

/// An event as all who stay get it: read and written once, however many they are.
struct Frame {
    number: u64,
    key: Position,
    classes: Classes,
    was: Classes,
    share: u16,
    time_ms: i64,
    mime: Box<str>,
    url: Box<str>,
    details: Box<str>,
    value: Box<[u8]>,
    host: Box<str>,
    /// As a server-sent event.
    text: String,
}

impl Frame {
    fn of(number: u64, id: &dyn Display, cursor: &Cursor, kept: &Kept<'_>) -> Frame {
        let host = skep_url::Url::parse(kept.url).map(|url| url.host_name().into()).unwrap_or_default();
        let mut text = String::with_capacity(kept.value.len() + 512);
        frame(id, cursor, kept, None, &mut text);
        let Kept { key, classes, was, share, time_ms, mime, url, details, value } = *kept;
        let (mime, url, details) = (mime.into(), url.into(), details.into());
        Frame { number, key, classes, was, share, time_ms, mime, url, details, value: value.into(), host, text }
    }

    /// About so many.
    fn bytes(&self) -> usize {
        self.text.len() + self.value.len() + self.details.len()
    }

    fn kept(&self) -> Kept<'_> {
        Kept {
            key: self.key,
            classes: self.classes,
            was: self.was,
            share: self.share,
            time_ms: self.time_ms,
            mime: &self.mime,
            url: &self.url,
            details: &self.details,
            value: &self.value,
        }
    }
}

/// Events that are handed on together.
#[derive(Default)]
struct Part {
    frames: Vec<Frame>,
    bytes: usize,
}

impl Part {
    /// Another one. Says whether there is room for more.
    fn add(&mut self, cursor: &Cursor, kept: &Kept<'_>) -> ControlFlow<()> {
        self.put(Frame::of(cursor.number, cursor, cursor, kept))
    }

    fn put(&mut self, frame: Frame) -> ControlFlow<()> {
        self.bytes += frame.bytes();
        self.frames.push(frame);
        if self.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn is_full(&self) -> bool {
        self.frames.len() >= CHANGES_STEP_MAX || self.bytes >= CHANGES_STEP_BYTES
    }
}

/// Appends a server-sent event.
fn frame(id: &dyn Display, cursor: &Cursor, kept: &Kept<'_>, delta: Option<&Delta>, out: &mut String) {
    use std::fmt::Write;
    let _in_memory = write!(out, "id: {id}\ndata: ");
    kept.json_with(cursor, delta, out);
    out.push_str("\n\n");
}

impl Hub {
    /// For a portal of the archive that this view is of.
    pub fn new(changes: Arc<Changes>) -> Hub {
        let lately =
            || Lately { recent: Mutex::default(), newest: watch::channel(0).0, following: AtomicBool::new(false) };
        Hub { changes, here: lately(), everywhere: lately(), heard: Mutex::default() }
    }

    fn lately(&self, everywhere: bool) -> &Lately {
        if everywhere { &self.everywhere } else { &self.here }
    }

    /// Keeps up with the log, or with those of all nodes, for as long as somebody stays.
    fn join(&self, portal: &Arc<Portal>, everywhere: bool) -> watch::Receiver<u64> {
        let lately = self.lately(everywhere);
        let heard = lately.newest.subscribe();
        if !lately.following.swap(true, Ordering::AcqRel) {
            let portal = portal.clone();
            tokio::spawn(async move {
                loop {
                    let shared = portal.clone();
                    let done = tokio::task::spawn_blocking(move || match everywhere {
                        true => everywhere::hear(&shared),
                        false => shared.hub.step(&shared),
                    });
                    if let Ok(Err(trouble)) = done.await {
                        portal.note(&trouble);
                    }
                    let tick_ms = if everywhere { CHANGES_ASK_MS } else { CHANGES_TICK_MS };
                    tokio::time::sleep(Duration::from_millis(tick_ms)).await;
                    let lately = portal.hub.lately(everywhere);
                    if lately.newest.receiver_count() == 0 {
                        lately.following.store(false, Ordering::Release);
                        // Somebody may have come in between, and found it taken care of.
                        let come = lately.newest.receiver_count() > 0;
                        if !come || lately.following.swap(true, Ordering::AcqRel) {
                            return;
                        }
                    }
                }
            });
        }
        heard
    }

    fn step(&self, portal: &Portal) -> Result<(), Trouble> {
        self.changes.follow(&portal.archive, portal.now_ms(), &mut |_| ()).map_err(trouble)?;
        let newest = self.changes.newest(&portal.archive).map_err(trouble)?;
        let mut recent = self.here.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.node != newest.node {
            *recent = Recent { node: newest.node.clone(), since: newest.number, ..Recent::default() };
        }
        let known = recent.parts.back().and_then(|part| part.last()).map_or(recent.since, |frame| frame.number);
        drop(recent);
        let from = From::After(Cursor { number: known, ..newest });
        let all = Filter { classes: Some(Classes(u32::MAX)), ..Filter::default() };
        let mut part = Part::default();
        let mut more = true;
        let mut from = from;
        while more {
            let reached = self.changes.read(&portal.archive, &from, &all, |cursor, kept| part.add(cursor, kept));
            more = part.is_full();
            let reached = reached.map_err(trouble)?;
            let number = reached.number;
            from = From::After(reached);
            self.here.remember(std::mem::take(&mut part));
            self.here.tell(number);
        }
        Ok(())
    }
}

impl Lately {
    /// Says up to which event it is there.
    fn tell(&self, number: u64) {
        self.newest.send_if_modified(|newest| std::mem::replace(newest, number) != number);
    }

    fn remember(&self, part: Part) {
        if part.frames.is_empty() {
            return;
        }
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.events += part.frames.len();
        recent.bytes += part.bytes;
        recent.parts.push_back(Arc::new(part.frames));
        while recent.events > CHANGES_RECENT_MAX || recent.bytes > CHANGES_RECENT_BYTES {
            let Some(old) = recent.parts.pop_front() else { return };
            recent.events -= old.len();
            recent.bytes -= old.iter().map(Frame::bytes).sum::<usize>();
            recent.since = old.last().map_or(recent.since, |frame| frame.number);
        }
    }

    /// Events after a place: the next part that holds some, which may begin before it. `None` for who is further behind than is
    /// remembered.
    fn after(&self, cursor: &Cursor) -> Option<Arc<Vec<Frame>>> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.node != cursor.node || cursor.number < recent.since {
            return None;
        }
        let ends_before = |part: &Arc<Vec<Frame>>| part.last().is_none_or(|frame| frame.number <= cursor.number);
        let at = recent.parts.partition_point(ends_before);
        Some(recent.parts.get(at).cloned().unwrap_or_default())
    }
}

/// Why the stream cannot be told.
pub fn trouble(error: Error) -> Trouble {
    match error {
        Error::Archive(error) => error.into(),
        Error::Rules(_) | Error::Retention(_) | Error::Sink { .. } => Trouble {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            told: "The rules for changes make no sense; the reason is in the log.".into(),
            log: Some(error.to_string()),
        },
        Error::ForeignCursor { .. } | Error::CursorTooOld { .. } => {
            Trouble { status: StatusCode::GONE, ..Trouble::bad(told(&error)) }
        }
        Error::CursorAhead { .. } => Trouble::bad(told(&error)),
    }
}

fn told(error: &Error) -> String {
    match error.hint() {
        Some(hint) => format!("{}: {error}; {hint}", error.id()),
        None => format!("{}: {error}", error.id()),
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
struct Asked {
    from: From,
    filter: Filter,
    /// With what leads from the text that was told before to that of each event.
    delta: bool,
    limit: u64,
    /// Of all nodes, not only what is in the log of this one.
    all_nodes: bool,
}

impl Asked {
    fn of(params: &Params, headers: &HeaderMap) -> Result<Asked, Trouble> {
        if let Some(name) = params.names().find(|name| !NAMES.contains(name)) {
            return Err(Trouble::bad(format!("there is no parameter {name:?}; there are {}", NAMES.join(", "))));
        }
        let mut asked =
            Asked { from: From::Start, filter: Filter::default(), delta: false, limit: u64::MAX, all_nodes: false };
        let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()).filter(|text| !text.is_empty());
        if let Some(since) = last.or_else(|| params.get("since")) {
            match (since.parse::<Cursor>(), date::parse_ms(since.as_bytes())) {
                _ if since == "now" => asked.from = From::End,
                (Ok(cursor), _) => asked.from = From::After(cursor),
                (Err(_), Some(time_ms)) => asked.filter.since_ms = Some(time_ms),
                (Err(_), None) => {
                    let told = format!(
                        "since={since} is neither a cursor such as c41f22ab:17 nor a time such as 2026-11-16T10:00:00Z nor now"
                    );
                    return Err(Trouble::bad(told));
                }
            }
        }
        asked.filter = Filter { since_ms: asked.filter.since_ms, ..filter(params)? };
        asked.delta = match params.get("delta") {
            None | Some("") => false,
            Some("text") => true,
            Some(other) => return Err(Trouble::bad(format!("delta={other} is not known; there is delta=text"))),
        };
        if asked.delta {
            asked.filter = asked.filter.with_text();
        }
        if let Some(limit) = params.number("limit")? {
            asked.limit = u64::try_from(limit).map_err(|_| Trouble::bad("limit is a number from 0 on"))?;
        }
        asked.all_nodes = match params.get("nodes") {
            None | Some("") => false,
            Some("all") if !matches!(asked.from, From::Start) => {
                let told = "nodes=all goes by time: a cursor is a place in the log of one node";
                return Err(Trouble::bad(format!("{told}; since=2026-11-16T10:00:00Z begins then")));
            }
            Some("all") => true,
            Some(other) => return Err(Trouble::bad(format!("nodes={other} is not known; there is nodes=all"))),
        };
        Ok(asked)
    }
}

/// Which events are wanted, by the parameters that the stream and the pages about it share.
pub fn filter(params: &Params) -> Result<Filter, Trouble> {
    let host = |text: &str| {
        let wrong =
            |why| Trouble::bad(format!("host={text} is no host: {why}; it looks like example.org or *.example.org"));
        skep_changes::host(text.trim()).map_err(wrong)
    };
    let mut filter = Filter {
        host: params.get("host").map(host).transpose()?,
        prefix: params.get("prefix").map(str::to_owned),
        mime: params.get("mime").filter(|mime| !mime.is_empty()).map(str::to_owned),
        watch: params.get("watch").filter(|watch| !watch.is_empty()).map(str::to_owned),
        ..Filter::default()
    };
    for name in params.all("class").flat_map(|names| names.split(',')).filter(|name| !name.is_empty()) {
        let wrong = || {
            let all: Vec<&str> = Class::ALL.iter().map(|class| class.name()).collect();
            Trouble::bad(format!("{name:?} is no class; there are text, all, {}", all.join(", ")))
        };
        let named = Classes::from_name(name).ok_or_else(wrong)?;
        filter.classes = Some(Classes(filter.classes.unwrap_or_default().0 | named.0));
    }
    if let Some(text) = params.get("min_change") {
        let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
        let wrong = || Trouble::bad(format!("min_change={text} is not a share from 0 to 1"));
        filter.share_min = (share.ok_or_else(wrong)? * 10_000.0).round() as u16;
    }
    Ok(filter)
}

/// Answers.
pub async fn stream(State(portal): State<Arc<Portal>>, request: Request<Body>) -> Answer {
    let (visit, parts, _) = Visit::apart(&portal, request);
    let query = visit.target.split_once('?').map_or("", |(_, query)| query).to_owned();
    let asked = match Asked::of(&Params::of(&query), &parts.headers) {
        Ok(asked) => asked,
        Err(trouble) => return counted(refused(&trouble), Route::Api),
    };
    let accepts = |media_type: &str| {
        let accepted = parts.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        accepted.flat_map(|value| value.split(',')).any(|one| one.trim().starts_with(media_type))
    };
    let answer = match accepts(EVENTS) && !visit.head_only {
        true if asked.all_nodes && portal.elsewhere.is_some() => {
            let goes_on = parts.headers.contains_key("last-event-id");
            stay_for_all(portal, asked, query, goes_on, visit.may)
        }
        true => stay(portal, asked, visit.may).await,
        false if asked.all_nodes && portal.elsewhere.is_some() && !visit.head_only => {
            look(&portal, Scope::Everything, visit, move |look, visit, reply| {
                let query = visit.target.split_once('?').map_or("", |(_, query)| query);
                if let Some(others) = look.others() {
                    everywhere::lines(look, &asked, query, others, reply);
                }
            })
            .await
        }
        false => pull::pull(portal, asked, visit.may, visit.head_only).await,
    };
    counted(answer, Route::Api)
}

fn refused(trouble: &Trouble) -> Answer {
    answer::json(trouble.status, &json!({ "error": trouble.told }))
}

fn head(media_type: &'static str) -> Answer {
    let mut head = Response::new(Body::empty());
    head.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    head.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    head
}

/// Whether whoever asks may see the capture of an event.
pub fn may_see(portal: &Portal, may: May, now_ms: i64, event: &Kept<'_>) -> bool {
    if !portal.access.has_rules() {
        return true;
    }
    let capture = Capture {
        key: Key::of(event.url),
        url: event.url.to_owned(),
        time_ms: event.time_ms,
        position: event.record(),
        kind: CaptureKind::Response,
        status: 0,
        mime: String::new(),
        digest: None,
        offset: 0,
        length: 0,
        flags: 0,
    };
    portal.access.shows(&capture, may, now_ms)
}

/// The rules by which texts are read, if texts are asked for.
fn texts(portal: &Portal, asked: &Asked) -> Result<Option<Settings>, Trouble> {
    match asked.delta {
        true => Settings::of(&portal.archive).map(Some).map_err(trouble),
        false => Ok(None),
    }
}

/// Appends an event as told, with the delta of its text if texts are asked for.
fn put(portal: &Portal, texts: Option<&Settings>, cursor: &Cursor, event: &Kept<'_>, out: &mut String) {
    // What cannot be read is told without its text: `skep check` says what is wrong with the archive.
    let delta = texts.and_then(|settings| Delta::of(&portal.archive, settings, event).ok().flatten());
    event.json_with(cursor, delta.as_ref(), out);
}

/// Where whoever asks begins, once the log is up to date, and the newest event there is; and by which rules texts are read.
async fn begin(portal: &Arc<Portal>, asked: &Asked) -> Result<(Cursor, u64, Option<Settings>), Trouble> {
    let shared = portal.clone();
    let (from, filter) = (asked.from.clone(), asked.filter.clone());
    let begun = tokio::task::spawn_blocking(move || {
        let changes = &shared.hub.changes;
        changes.follow(&shared.archive, shared.now_ms(), &mut |_| ())?;
        Ok((changes.first(&shared.archive, &from, &filter)?, changes.newest(&shared.archive)?.number))
    });
    let texts = texts(portal, asked);
    let begun = match begun.await {
        Ok(begun) => begun.map_err(trouble).and_then(|(cursor, newest)| Ok((cursor, newest, texts?))),
        Err(panicked) => Err(Trouble {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            told: "no answer".into(),
            log: Some(panicked.to_string()),
        }),
    };
    begun.inspect_err(|trouble| portal.note(trouble))
}

/// What is there and what comes, as server-sent events.
async fn stay(portal: Arc<Portal>, asked: Asked, may: May) -> Answer {
    let (cursor, _, texts) = match begin(&portal, &asked).await {
        Ok(begun) => begun,
        Err(trouble) => return refused(&trouble),
    };
    let (pieces, coming) = mpsc::channel(1);
    let (whole, body) = Pieces::of(coming);
    let newest = portal.hub.join(&portal, false);
    let (left, told) = (asked.limit, None);
    tokio::spawn(Consumer { portal, asked, may, texts, cursor, left, pieces, newest, whole, told }.run());
    head(EVENTS).map(|_| Body::new(body))
}

/// The same of all nodes. Its places are times: who goes on hears some of it once more, under the same keys.
fn stay_for_all(portal: Arc<Portal>, mut asked: Asked, query: String, goes_on: bool, may: May) -> Answer {
    if asked.delta {
        return refused(&Trouble::bad("delta=text goes with a stream of one node, or with nodes=all asked for once"));
    }
    if goes_on {
        asked.filter.since_ms = asked.filter.since_ms.map(|since_ms| since_ms.saturating_sub(CHANGES_OVERLAP_MS));
    }
    let (pieces, coming) = mpsc::channel(1);
    let (whole, body) = Pieces::of(coming);
    let newest = portal.hub.join(&portal, true);
    let cursor = Cursor { node: String::new(), number: *newest.borrow() };
    let (left, told, texts) = (asked.limit, Some(HashSet::new()), None);
    let consumer = Consumer { portal, asked, may, texts, cursor, left, pieces, newest, whole, told };
    tokio::spawn(consumer.run_for_all(query));
    head(EVENTS).map(|_| Body::new(body))
}

/// Somebody who stays.
struct Consumer {
    portal: Arc<Portal>,
    asked: Asked,
    may: May,
    texts: Option<Settings>,
    cursor: Cursor,
    /// Events that are still wanted.
    left: u64,
    pieces: mpsc::Sender<std::io::Result<Bytes>>,
    newest: watch::Receiver<u64>,
    whole: Whole,
    /// Where all nodes are heard: what was told of what was there before.
    told: Option<HashSet<everywhere::Name>>,
}

impl Consumer {
    /// First what all nodes told since a time, then what comes.
    async fn run_for_all(mut self, query: String) {
        if self.catch_up(&query).await.is_some() {
            self.run().await;
        }
    }

    async fn catch_up(&mut self, query: &str) -> Option<()> {
        let mut text = String::from(": changes of all nodes\n\n");
        self.send(&mut text).await?;
        let mut since_ms = self.asked.filter.since_ms.unwrap_or(0);
        loop {
            self.asked.filter.since_ms = Some(since_ms);
            // What is told twice has the same key: who was away for long knows better than can be remembered here.
            if let Some(known) = self.told.as_mut().filter(|known| known.len() > CHANGES_RECENT_MAX) {
                known.clear();
            }
            let (portal, asked, query, may) = (self.portal.clone(), self.asked.clone(), query.to_owned(), self.may);
            let read = tokio::task::spawn_blocking(move || {
                everywhere::behind(&portal, &asked, &query, may).inspect_err(|trouble| portal.note(trouble)).ok()
            });
            let all = read.await.ok().flatten()?;
            if all.silent > 0 {
                text.push_str(": not all nodes answer\n\n");
            }
            for told in &all.events {
                let Some(kept) = told.kept() else { continue };
                since_ms = kept.time_ms;
                let is_new = self.told.as_mut().is_none_or(|known| known.insert(everywhere::name(&kept)));
                if self.left > 0 && is_new {
                    self.left -= 1;
                    frame(&date::rfc3339(kept.time_ms), &told.cursor, &kept, None, &mut text);
                }
                if text.len() >= PIECE_BYTES {
                    self.send(&mut text).await?;
                }
            }
            self.send(&mut text).await?;
            if self.left == 0 {
                self.whole.say();
                return None;
            }
            // Where more happened in a moment than is told at once, nobody comes past it by time.
            if !all.cut || self.asked.filter.since_ms == Some(since_ms) {
                self.asked.filter.since_ms = None;
                return Some(());
            }
        }
    }

    async fn run(mut self) {
        let mut ending = self.portal.ending.clone();
        // The first bytes tell the client that it is heard.
        let mut text = String::from(": changes\n\n");
        loop {
            self.newest.borrow_and_update();
            let some = match self.portal.hub.lately(self.told.is_some()).after(&self.cursor) {
                Some(some) => some,
                None if self.told.is_some() => return,
                None => match self.behind().await {
                    Some(some) => some,
                    None => return,
                },
            };
            let skip = some.partition_point(|frame| frame.number <= self.cursor.number);
            let caught_up = skip == some.len();
            let now_ms = self.portal.now_ms();
            for told in &some[skip..] {
                if self.left == 0 {
                    break;
                }
                self.cursor.number = told.number;
                let event = told.kept();
                let known = self.told.as_ref().is_some_and(|known| known.contains(&everywhere::name(&event)));
                if !known
                    && self.asked.filter.admits_of(&event, Some(&told.host))
                    && (event.classes.is_empty() || !self.portal.archive.views().is_hidden(event.record()))
                    && may_see(&self.portal, self.may, now_ms, &event)
                {
                    self.left -= 1;
                    match self.texts.is_some() {
                        false => text.push_str(&told.text),
                        true => match self.with_text(&told.value).await {
                            Some(told) => text.push_str(&told),
                            None => return,
                        },
                    }
                }
                if text.len() >= PIECE_BYTES && self.send(&mut text).await.is_none() {
                    return;
                }
            }
            if self.send(&mut text).await.is_none() {
                return;
            }
            if self.left == 0 {
                return self.whole.say();
            }
            if caught_up {
                tokio::select! {
                    more = self.newest.changed() => if more.is_err() { return },
                    () = tokio::time::sleep(Duration::from_millis(CHANGES_STILL_MS)) => text.push_str(": still\n\n"),
                    () = self.pieces.closed() => return,
                    _ = ending.wait_for(|ending| *ending) => return self.whole.say(),
                }
            }
        }
    }

    /// Events out of the log, for who is further behind than is remembered.
    async fn behind(&self) -> Option<Arc<Vec<Frame>>> {
        let (portal, from) = (self.portal.clone(), From::After(self.cursor.clone()));
        let read = tokio::task::spawn_blocking(move || {
            let mut some = Part::default();
            let all = Filter { classes: Some(Classes(u32::MAX)), ..Filter::default() };
            let read = portal.hub.changes.read(&portal.archive, &from, &all, |cursor, kept| some.add(cursor, kept));
            match read {
                Ok(_) => Some(Arc::new(some.frames)),
                Err(error) => {
                    portal.note(&trouble(error));
                    None
                }
            }
        });
        read.await.ok().flatten()
    }

    /// An event with the delta of its text, which is read from the records.
    async fn with_text(&self, value: &[u8]) -> Option<String> {
        let (portal, cursor, value) = (self.portal.clone(), self.cursor.clone(), value.to_vec());
        let texts = self.texts.clone()?;
        let read = tokio::task::spawn_blocking(move || {
            let kept = Kept::decode(&value)?;
            let delta = Delta::of(&portal.archive, &texts, &kept).ok().flatten();
            let mut text = String::new();
            frame(&cursor, &cursor, &kept, delta.as_ref(), &mut text);
            Some(text)
        });
        read.await.ok().flatten()
    }

    /// Sends what is there; `None` if the client is gone, or has not taken anything for long.
    async fn send(&self, text: &mut String) -> Option<()> {
        if text.is_empty() {
            return Some(());
        }
        let piece = Bytes::from(std::mem::take(text));
        self.pieces.send_timeout(Ok(piece), Duration::from_millis(PIECE_MS)).await.ok()
    }
}
