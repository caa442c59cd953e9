//! How the view follows the records: what the sidecars name and was not judged yet is judged, URL by URL, in the order of time.
//! One batch holds the events, what is remembered, and how far it got: a kill at any moment loses nothing and tells nothing
//! under two numbers.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use skep_archive::layout::{SegmentName, sidecar_of};
use skep_archive::sidecar::{HEADER_BYTES, SidecarReader};
use skep_archive::{Archive, Batch, Capture, Key, Note, Position, Removal, Stored, WriterKey};
use skep_page::compare::Classes;
use skep_url::Url;
use xxhash_rust::xxh3::xxh3_64;

use crate::at_hand::Hands;
use crate::bodies::Known;
use crate::checks::{self, Check, Checks, Fingerprint, NAMES, Said};
use crate::error::Result;
use crate::event::{Details, Event, Kept};
use crate::hosts::{self, Hosts};
use crate::judge::{Judge, Told, is_judged};
use crate::limits::{BATCH_CAPTURES_MAX, BATCH_LINES_MAX, CLOCK_OFF_MS, REFOLDED_BEFORE, REFOLDED_CAPTURES_MAX};
use crate::log::{self, AGAIN, Changes, MARKS, THINNED, Telling, URLS, told};
use crate::retain;
use crate::settings::Settings;
use crate::side_by_side::side_by_side;
use crate::state::State;
use crate::template::{self, Changed, Placed};

/// What following came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Followed {
    /// Captures that were judged.
    pub captures: u64,
    /// Events that were told.
    pub events: u64,
}

/// How far the view got in a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Mark {
    generation: u32,
    records: u32,
    sidecar_bytes: u64,
}

impl Mark {
    fn encode(self) -> Vec<u8> {
        let mut bytes = vec![1];
        bytes.extend_from_slice(&self.generation.to_le_bytes());
        bytes.extend_from_slice(&self.records.to_le_bytes());
        bytes.extend_from_slice(&self.sidecar_bytes.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Mark> {
        let bytes: &[u8; 17] = bytes.try_into().ok()?;
        let four = |at: usize| bytes[at..at + 4].try_into().map(u32::from_le_bytes).ok();
        let sidecar_bytes = bytes[9..].try_into().map(u64::from_le_bytes).ok()?;
        (bytes[0] == 1).then_some(Mark { generation: four(1)?, records: four(5)?, sidecar_bytes })
    }
}

impl Changes {
    /// Judges what is there and was not judged yet. `now_ms` is when a log that has none begins; `progress` is told now and then.
    pub fn follow(&self, archive: &Archive, now_ms: i64, progress: &mut dyn FnMut(Followed)) -> Result<Followed> {
        let mut quiet = self.following.lock().unwrap_or_else(PoisonError::into_inner);
        let settings = self.settings.of(archive)?;
        archive.settle()?;
        log::begin(archive, now_ms)?;
        let views = archive.views();
        let before = views.commits();
        if *quiet == Some(before) {
            return Ok(Followed::default());
        }
        *quiet = None;
        let mut following = Following {
            archive,
            settings: &settings,
            checks: &*self.checks,
            waiting: Vec::new(),
            bare: HashSet::new(),
            again: BTreeMap::new(),
            removed: Vec::new(),
            marks: Vec::new(),
            commits: 0,
        };
        following.left_over()?;
        let files = files(archive);
        for (name, sidecar) in &files {
            following.notes(*name, sidecar)?;
        }
        let mut done = Followed::default();
        for (name, sidecar) in files {
            following.file(name, sidecar, &mut |some| {
                done.captures += some.captures;
                done.events += some.events;
                progress(done);
            })?;
        }
        loop {
            let some = following.judge()?;
            done.captures += some.captures;
            done.events += some.events;
            if following.again.is_empty() && following.removed.is_empty() {
                break;
            }
            progress(done);
        }
        let commits = following.commits;
        // Nobody else committed meanwhile: there is nothing that was not seen.
        if views.commits() == before + commits {
            *quiet = Some(before + commits);
        }
        Ok(done)
    }
}

/// Every file of records with its sidecar, own segments first.
fn files(archive: &Archive) -> Vec<(SegmentName, PathBuf)> {
    let own = archive.segments().into_iter().map(|segment| (segment.name, sidecar_of(&segment.path)));
    let mut files: Vec<_> = own.collect();
    let collections = archive.collections();
    let layout = archive.layout();
    files.extend(collections.files().iter().map(|file| (file.name(), layout.collection_sidecar(file.number))));
    files
}

/// A URL and its key.
type Named = (Key, String);

struct Following<'f> {
    archive: &'f Archive,
    settings: &'f Settings,
    checks: &'f dyn Checks,
    waiting: Vec<Capture>,
    /// Those among them behind which nothing is noted: what follows them in their file is about something else.
    bare: HashSet<Position>,
    /// URLs that are judged from their beginning.
    again: BTreeMap<Vec<u8>, Named>,
    /// Captures that were removed.
    removed: Vec<Position>,
    marks: Vec<(Vec<u8>, Mark)>,
    commits: u64,
}

/// What judging a URL came to.
struct Judged {
    key: Vec<u8>,
    state: State,
    names: Vec<Fingerprint>,
    host: String,
    captures: Vec<Capture>,
    told: Vec<Told>,
    /// They were judged before: something may have been told of them.
    again: bool,
    /// Captures of which nothing is told, where something may have been before.
    silent: Vec<Position>,
}

impl Following<'_> {
    /// How far the view got in a file, by the mark of this kind, and whether there is more.
    fn mark(&self, kind: &[u8], name: SegmentName, sidecar: &Path) -> Result<Option<(Vec<u8>, Mark, Option<Mark>)>> {
        let key = [kind, &name.id.writer.0.to_be_bytes(), &name.id.number.to_be_bytes()].concat();
        let known = self.archive.views().get(MARKS, &key)?.and_then(|value| Mark::decode(&value));
        // A file that was rewritten has the same records under the same numbers, at other places of its sidecar.
        let mut mark = known.unwrap_or_default();
        if mark.generation != name.generation {
            (mark.generation, mark.sidecar_bytes) = (name.generation, 0);
        }
        let seen = sidecar.metadata().is_ok_and(|facts| facts.len() == mark.sidecar_bytes);
        Ok((!seen).then_some((key, mark, known)))
    }

    /// Takes in what a file has of check lines and removals. All of it comes before any capture is judged: what is known of a URL
    /// at a time must not depend on the order of files.
    fn notes(&mut self, name: SegmentName, sidecar: &Path) -> Result<()> {
        let Some((key, mut mark, known)) = self.mark(b"n", name, sidecar)? else { return Ok(()) };
        let from = mark.sidecar_bytes.max(HEADER_BYTES);
        let Some(mut reader) = SidecarReader::open_at(sidecar, name, from)? else { return Ok(()) };
        let mut batch = self.archive.views().batch();
        let (mut hosts, mut lines) = (Hosts::default(), 0);
        while let Some(entries) = reader.next_frame()? {
            for entry in entries {
                if entry.record < mark.records {
                    continue;
                }
                mark.records = entry.record.saturating_add(1);
                match &entry.note {
                    Note::Checks(block) => {
                        let position =
                            Position { writer: name.id.writer, segment: name.id.number, record: entry.record };
                        lines += self.checked(block, position, &mut hosts, &mut batch)?;
                    }
                    Note::Removal(block) => lines += self.removed(block, name.id.writer, &mut batch)?,
                    _ => {}
                }
            }
            mark.sidecar_bytes = reader.valid_length();
            if lines >= BATCH_LINES_MAX {
                batch.put(MARKS, &key, &mark.encode());
                let full = std::mem::replace(&mut batch, self.archive.views().batch());
                self.host_events(full, std::mem::take(&mut hosts))?;
                lines = 0;
            }
        }
        if known != Some(mark) {
            batch.put(MARKS, &key, &mark.encode());
            self.host_events(batch, hosts)?;
        }
        Ok(())
    }

    fn checked(&mut self, block: &[u8], position: Position, hosts: &mut Hosts, batch: &mut Batch<'_>) -> Result<usize> {
        let Some(checked) = self.checks.read(block) else { return Ok(0) };
        for check in &checked.lines {
            match check.said {
                Said::Same => {
                    checks::keep(batch, check);
                    let page = u64::from_le_bytes(*check.fingerprint.first_chunk().unwrap_or(&[0; 8]));
                    hosts.alive(&checked.host, check.time_ms, position, page);
                    self.late(check, batch)?;
                }
                Said::Unreachable => hosts.failed(&checked.host, check.time_ms, position),
                Said::Nothing => {}
            }
        }
        Ok(checked.lines.len())
    }

    /// What was to be judged again when somebody was killed.
    fn left_over(&mut self) -> Result<()> {
        for item in self.archive.views().keyspace(AGAIN)?.iter() {
            let (key, value) = item.into_inner().map_err(skep_archive::Error::from)?;
            match key.split_first() {
                Some((b'u', row)) => {
                    let url = String::from_utf8_lossy(&value).into_owned();
                    self.again.insert(row.to_vec(), (Key::of(&url), url));
                }
                Some((b'p', position)) => self.removed.extend(log::position_of(position)),
                _ => {}
            }
        }
        Ok(())
    }

    /// A URL is judged again, also if that does not come about now.
    fn judge_again(&mut self, row: Vec<u8>, key: Key, url: &str, batch: &mut Batch<'_>) {
        batch.put(AGAIN, &again_row(b"u", &row), url.as_bytes());
        self.again.insert(row, (key, url.to_owned()));
    }

    /// A check of a page of which a later capture was judged already: it has to be judged again.
    fn late(&mut self, check: &Check, batch: &mut Batch<'_>) -> Result<()> {
        let views = self.archive.views();
        let Some(url) = views.get(NAMES, &check.fingerprint)?.and_then(|url| String::from_utf8(url).ok()) else {
            return Ok(());
        };
        let key = Key::of(&url);
        let row = key_of(&key, &url);
        let newest = views.get(URLS, &row)?.and_then(|value| State::decode(&value)).and_then(|state| state.newest);
        if newest.is_some_and(|(time_ms, _)| time_ms > check.time_ms) {
            self.judge_again(row, key, &url, batch);
        }
        Ok(())
    }

    /// What comes after a removed capture is judged by what came before it; what retention took came before what it left.
    /// Says of how many it is to be taken back.
    fn removed(&mut self, block: &[u8], stands_in: WriterKey, batch: &mut Batch<'_>) -> Result<usize> {
        let Ok(removal) = Removal::parse(block) else { return Ok(0) };
        let thins = removal.reason == retain::REASON;
        let hidden = removal.hides(stands_in, self.archive.listener());
        let count = hidden.len();
        for position in hidden {
            // The head of a removed record stays.
            let Ok(mut stored) = self.archive.place(position).and_then(|place| Stored::at(&place)) else { continue };
            let Ok(record) = stored.record() else { continue };
            let Some(url) = record.head().target_uri().and_then(|uri| std::str::from_utf8(uri).ok()) else { continue };
            let (key, time_ms) = (Key::of(url), record.head().date_ms());
            let row = key_of(&key, url);
            if let Some(time_ms) = time_ms.filter(|_| thins)
                && thinned(batch, &row)?.is_none_or(|earliest_ms| time_ms < earliest_ms)
            {
                batch.put(THINNED, &row, &time_ms.to_be_bytes());
            }
            self.judge_again(row, key, url, batch);
            batch.put(AGAIN, &again_row(b"p", &log::position_key(position)), &[]);
            self.removed.push(position);
        }
        Ok(count)
    }

    /// Makes visible what check lines say, and tells of hosts that are out of reach or back.
    fn host_events(&mut self, mut batch: Batch<'_>, hosts: Hosts) -> Result<()> {
        let days = hosts.join(&batch)?;
        let mut events = Vec::new();
        hosts::outages(self.archive, &mut batch, &days, self.settings.host_down_ms, &mut events)?;
        hosts::write(&mut batch, &days);
        self.tell(batch, &events, &HashSet::new()).map(drop)
    }

    fn file(&mut self, name: SegmentName, sidecar: PathBuf, done: &mut dyn FnMut(Followed)) -> Result<()> {
        let Some((key, mut mark, known)) = self.mark(b"", name, &sidecar)? else { return Ok(()) };
        let from = mark.sidecar_bytes.max(HEADER_BYTES);
        let Some(mut reader) = SidecarReader::open_at(&sidecar, name, from)? else { return Ok(()) };
        while let Some(entries) = reader.next_frame()? {
            for entry in entries {
                if entry.record < mark.records {
                    continue;
                }
                mark.records = entry.record.saturating_add(1);
                if let (Note::Capture(capture), Some(last)) = (&entry.note, self.waiting.last())
                    && last.position
                        == (Position { record: capture.position.record.wrapping_sub(1), ..capture.position })
                    && (&last.url, last.time_ms) != (&capture.url, capture.time_ms)
                {
                    self.bare.insert(last.position);
                }
                if let Note::Capture(capture) = entry.note
                    && is_judged(&capture)
                    && !self.archive.views().is_hidden(capture.position)
                {
                    self.waiting.push(*capture);
                }
            }
            mark.sidecar_bytes = reader.valid_length();
            if self.waiting.len() >= BATCH_CAPTURES_MAX {
                self.marks.push((key.clone(), mark));
                done(self.judge()?);
            }
        }
        if known != Some(mark) {
            self.marks.push((key, mark));
        }
        Ok(())
    }

    /// Judges what waits, and makes it visible with the marks. What is to be judged again comes along in portions: much may be removed at once.
    fn judge(&mut self) -> Result<Followed> {
        let idle = self.waiting.is_empty() && self.marks.is_empty() && self.removed.is_empty();
        if idle && self.again.is_empty() {
            return Ok(Followed::default());
        }
        let mut urls: BTreeMap<Vec<u8>, (Vec<Capture>, Option<Named>)> = BTreeMap::new();
        for capture in std::mem::take(&mut self.waiting) {
            // Wherever they are filed, captures of one URL are judged together.
            let home = self.archive.views().captures.at_home(&capture.key);
            urls.entry(key_of(&home, &capture.url)).or_default().0.push(capture);
        }
        let mut done_again: Vec<Vec<u8>> = Vec::new();
        if !self.again.is_empty() {
            // What comes anew to one of them is not judged by what was there before.
            for (row, (_, named)) in &mut urls {
                *named = self.again.remove(row);
                done_again.extend(named.is_some().then(|| again_row(b"u", row)));
            }
            while urls.len() < BATCH_CAPTURES_MAX
                && let Some((row, named)) = self.again.pop_first()
            {
                done_again.push(again_row(b"u", &row));
                urls.entry(row).or_default().1 = Some(named);
            }
        }
        let bare = std::mem::take(&mut self.bare);
        let (archive, settings, checks, hands) = (self.archive, self.settings, self.checks, &Hands::default());
        let judging = Judging { archive, settings, checks, bare: &bare, hands };
        let work = urls.into_iter().map(|(key, (captures, named))| (key, captures, named)).collect();
        let all = side_by_side(work, |(key, captures, named): Work| judging.url(key, captures, named))?;
        let mut first = HashSet::new();
        let mut batch = self.archive.views().batch();
        done_again.iter().for_each(|row| batch.delete(AGAIN, row));
        let (mut hosts, mut events, mut places) = (Hosts::default(), Vec::new(), Vec::new());
        // What was told of a capture that was removed since is not told any more, and takes part in nothing.
        for position in self.removed.split_off(self.removed.len().saturating_sub(BATCH_CAPTURES_MAX)) {
            batch.delete(AGAIN, &again_row(b"p", &log::position_key(position)));
            places.push(Placed { position, changed: None, again: true });
            events.extend(taken_back(&batch, position)?);
        }
        let mut done = Followed::default();
        for judged in all {
            done.captures += judged.captures.len() as u64;
            let page = match judged.names.first().and_then(|name| name.first_chunk()) {
                Some(name) => u64::from_le_bytes(*name),
                None => judged.captures.first().map_or(0, |capture| xxh3_64(capture.url.as_bytes())),
            };
            for capture in judged.captures.iter().filter(|capture| capture.status > 0) {
                hosts.alive(&judged.host, capture.time_ms, capture.position, page);
            }
            for position in judged.silent {
                places.push(Placed { position, changed: None, again: true });
                events.extend(taken_back(&batch, position)?);
            }
            for Told { event, places: changed } in judged.told {
                let changed = Changed::of(&event, &judged.host, &changed);
                places.push(Placed { position: event.key, changed, again: judged.again });
                if !judged.again {
                    first.insert(event.key);
                }
                events.push(*event);
            }
            if let Some(first) = judged.captures.first().filter(|_| judged.state.newest.is_some()) {
                for name in &judged.names {
                    if batch.get(NAMES, name)?.is_none() {
                        batch.put(NAMES, name, first.url.as_bytes());
                    }
                }
            }
            batch.put(URLS, &judged.key, &judged.state.encode());
        }
        let mut days = hosts.join(&batch)?;
        template::fold(&mut batch, &mut days, places, &mut events)?;
        hosts::outages(self.archive, &mut batch, &days, self.settings.host_down_ms, &mut events)?;
        hosts::write(&mut batch, &days);
        for (key, mark) in self.marks.drain(..) {
            batch.put(MARKS, &key, &mark.encode());
        }
        done.events = self.tell(batch, &events, &first)?;
        Ok(done)
    }

    /// Tells events in the order of time, and makes the batch visible. Of the captures named `first` nothing was told before.
    fn tell(&mut self, mut batch: Batch<'_>, events: &[Event], first: &HashSet<Position>) -> Result<u64> {
        let mut in_order: Vec<&Event> = events.iter().collect();
        in_order.sort_by_key(|event| (event.time_ms, event.key));
        let mut told = 0;
        if !events.is_empty() {
            let mut telling = Telling::begin(self.archive)?;
            for event in in_order {
                told += u64::from(telling.tell(&mut batch, event, first.contains(&event.key))?);
            }
            telling.end(&mut batch);
        }
        batch.commit()?;
        self.commits += 1;
        Ok(told)
    }
}

/// What is needed to judge a URL.
#[derive(Clone, Copy)]
struct Judging<'j> {
    archive: &'j Archive,
    settings: &'j Settings,
    checks: &'j dyn Checks,
    bare: &'j HashSet<Position>,
    hands: &'j Hands,
}

/// What is judged together: the key of a URL, new captures of it, and its name if all of them are meant.
type Work = (Vec<u8>, Vec<Capture>, Option<Named>);

impl Judging<'_> {
    /// Judges captures of a URL; all it has if it is `named`, or if they are not the newest.
    fn url(&self, key: Vec<u8>, mut captures: Vec<Capture>, named: Option<Named>) -> Result<Judged> {
        captures.sort_by_key(order);
        let views = self.archive.views();
        let mut state = views.get(URLS, &key)?.and_then(|value| State::decode(&value)).unwrap_or_default();
        let late = named.is_some()
            || state.newest.is_some_and(|newest| captures.first().is_some_and(|first| order(first) <= newest));
        let mut before = 0;
        if late {
            let named =
                named.or_else(|| captures.first().map(|first| (views.captures.at_home(&first.key), first.url.clone())));
            state = State::default();
            (captures, before) = self.all(captures, named)?;
            captures.retain(|capture| !views.is_hidden(capture.position));
        }
        // Only what has nothing before it asks.
        let thinned_ms = match &state.good {
            None => views.get(THINNED, &key)?.and_then(time_of),
            Some(_) => None,
        };
        let url = captures.first().and_then(|first| Url::parse(&first.url).ok());
        let names = captures.first().map(|first| self.checks.names(self.archive, &first.url)).unwrap_or_default();
        let mut judged = Judged {
            key,
            state,
            names,
            host: url.as_ref().map(|url| url.host().to_string()).unwrap_or_default(),
            captures: Vec::new(),
            told: Vec::new(),
            again: late,
            silent: Vec::new(),
        };
        let misdated = misdated(&captures);
        let bodies = Known { archive: self.archive, bare: self.bare, hands: self.hands };
        let judge = Judge { url: url.as_ref(), bodies: &bodies, settings: self.settings, thinned_ms };
        for capture in &captures {
            if misdated.contains(&capture.position) {
                judged.silent.extend(late.then_some(capture.position));
                continue;
            }
            let checked_ms = match &judged.state.good {
                Some(good) => checks::last_same(self.archive, &judged.names, good.same_ms, capture.time_ms)?,
                None => None,
            };
            let told = judge.visit(&mut judged.state, capture, checked_ms)?;
            if before > 0 {
                before -= 1;
                continue;
            }
            match told {
                Some(told) => judged.told.push(told),
                None if late => judged.silent.push(capture.position),
                None => {}
            }
        }
        judged.captures = captures;
        Ok(judged)
    }

    /// All captures of a URL, these among them, in the order of time. Of very many the newest; those with which they begin only show what was
    /// there before the others, and are as they were told.
    fn all(&self, some: Vec<Capture>, named: Option<Named>) -> Result<(Vec<Capture>, usize)> {
        let Some((key, url)) = named else { return Ok((some, 0)) };
        let mut all = some;
        for capture in self.archive.views().captures.exact(&key)? {
            let capture = capture?;
            if capture.url == url && is_judged(&capture) {
                all.push(capture);
            }
        }
        all.sort_by_key(order);
        all.dedup_by_key(|capture| capture.position);
        let skipped = all.len().saturating_sub(REFOLDED_CAPTURES_MAX);
        Ok((all.split_off(skipped), if skipped > 0 { REFOLDED_BEFORE } else { 0 }))
    }
}

/// Captures dated by a clock that was far ahead: kept before others that are dated long before them, and fewer than those. What comes
/// after them would come before them for years, and each time be told as if it were the other way round. A clock that was behind does no such
/// harm: what it dated is where it is. They are in the order of time.
fn misdated(captures: &[Capture]) -> HashSet<Position> {
    let mut wrong = HashSet::new();
    while let Some(last) = captures.iter().rfind(|capture| !wrong.contains(&capture.position)) {
        let of_it =
            |capture: &&Capture| capture.position.writer == last.position.writer && !wrong.contains(&capture.position);
        // Files from elsewhere are added in any order.
        if last.position.writer == WriterKey::FOREIGN {
            break;
        }
        let before = last.time_ms.saturating_sub(CLOCK_OFF_MS);
        let later: Vec<&Capture> = captures
            .iter()
            .filter(of_it)
            .filter(|capture| capture.position > last.position && capture.time_ms < before)
            .collect();
        let Some(until_ms) = later.iter().map(|capture| capture.time_ms.saturating_add(CLOCK_OFF_MS)).max() else {
            break;
        };
        let ahead: Vec<Position> = captures
            .iter()
            .filter(of_it)
            .filter(|capture| capture.time_ms > until_ms)
            .map(|capture| capture.position)
            .collect();
        if later.len() <= ahead.len() {
            break;
        }
        wrong.extend(ahead);
    }
    wrong
}

fn order(capture: &Capture) -> (i64, Position) {
    (capture.time_ms, capture.position)
}

/// Under which a URL is remembered.
pub(crate) fn key_of(key: &Key, url: &str) -> Vec<u8> {
    let mut bytes = key.as_bytes().to_vec();
    bytes.push(0);
    bytes.extend_from_slice(&xxh3_64(url.as_bytes()).to_be_bytes());
    bytes
}

fn again_row(kind: &[u8], of: &[u8]) -> Vec<u8> {
    [kind, of].concat()
}

/// When the earliest capture of a URL was seen that retention took.
fn thinned(batch: &Batch<'_>, row: &[u8]) -> Result<Option<i64>> {
    Ok(batch.get(THINNED, row)?.and_then(time_of))
}

fn time_of(value: Vec<u8>) -> Option<i64> {
    value.try_into().map(i64::from_be_bytes).ok()
}

/// What was told of a capture and is no longer so.
fn taken_back(batch: &Batch<'_>, key: Position) -> Result<Option<Event>> {
    let Some(value) = told(batch, key)? else { return Ok(None) };
    let before = Kept::decode(&value).filter(|kept| !kept.classes.is_empty());
    Ok(before.map(|kept| Event {
        key,
        classes: Classes::default(),
        share: 0,
        time_ms: kept.time_ms,
        mime: kept.mime.to_owned(),
        url: kept.url.to_owned(),
        details: Details::default(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_read_back() {
        let mark = Mark { generation: 1, records: 2, sidecar_bytes: 1 << 40 };
        assert_eq!(Mark::decode(&mark.encode()), Some(mark));
        assert_eq!((Mark::decode(&[]), Mark::decode(&[2; 17])), (None, None));
    }
}
