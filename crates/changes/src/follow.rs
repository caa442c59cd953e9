//! How the view follows the records: what the sidecars name and was not judged yet is judged, URL by URL, in the order of time.
//! One batch holds the events, what is remembered, and how far it got: a kill at any moment loses nothing and tells nothing
//! under two numbers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::PoisonError;

use skep_archive::layout::{SegmentName, sidecar_of};
use skep_archive::sidecar::{HEADER_BYTES, SidecarReader};
use skep_archive::{Archive, Batch, Capture, Key, Note, Position};
use skep_page::compare::Classes;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::Result;
use crate::event::{Details, Event, Kept};
use crate::judge::{Judge, is_judged};
use crate::limits::{BATCH_CAPTURES_MAX, REFOLDED_CAPTURES_MAX};
use crate::log::{Changes, MARKS, Telling, URLS, told};
use crate::settings::Settings;
use crate::state::State;

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
        let _one_at_a_time = self.following.lock().unwrap_or_else(PoisonError::into_inner);
        let settings = Settings::of(archive)?;
        archive.settle()?;
        let mut following = Following { archive, settings: &settings, now_ms, waiting: Vec::new(), marks: Vec::new() };
        let mut done = Followed::default();
        for (name, sidecar) in files(archive) {
            following.file(name, sidecar, &mut |some| {
                done.captures += some.captures;
                done.events += some.events;
                progress(done);
            })?;
        }
        let rest = following.judge()?;
        Ok(Followed { captures: done.captures + rest.captures, events: done.events + rest.events })
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

struct Following<'f> {
    archive: &'f Archive,
    settings: &'f Settings,
    now_ms: i64,
    waiting: Vec<Capture>,
    marks: Vec<(Vec<u8>, Mark)>,
}

impl Following<'_> {
    fn file(&mut self, name: SegmentName, sidecar: PathBuf, done: &mut dyn FnMut(Followed)) -> Result<()> {
        let key = [name.id.writer.0.to_be_bytes(), name.id.number.to_be_bytes()].concat();
        let known = self.archive.views().get(MARKS, &key)?.and_then(|value| Mark::decode(&value));
        // A file that was rewritten has the same records under the same numbers, at other places of its sidecar.
        let mut mark = known.unwrap_or_default();
        if mark.generation != name.generation {
            (mark.generation, mark.sidecar_bytes) = (name.generation, 0);
        }
        if sidecar.metadata().is_ok_and(|facts| facts.len() == mark.sidecar_bytes) {
            return Ok(());
        }
        let from = mark.sidecar_bytes.max(HEADER_BYTES);
        let Some(mut reader) = SidecarReader::open_at(&sidecar, name, from)? else { return Ok(()) };
        while let Some(entries) = reader.next_frame()? {
            for entry in entries {
                if entry.record < mark.records {
                    continue;
                }
                mark.records = entry.record.saturating_add(1);
                if let Note::Capture(capture) = entry.note
                    && is_judged(&capture)
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

    /// Judges what waits, and makes it visible with the marks.
    fn judge(&mut self) -> Result<Followed> {
        if self.waiting.is_empty() && self.marks.is_empty() {
            return Ok(Followed::default());
        }
        let mut batch = self.archive.views().batch();
        let mut done = Followed { captures: self.waiting.len() as u64, events: 0 };
        let mut urls: BTreeMap<Vec<u8>, Vec<Capture>> = BTreeMap::new();
        for capture in std::mem::take(&mut self.waiting) {
            urls.entry(url_key(&capture)).or_default().push(capture);
        }
        let mut events = Vec::new();
        for (key, mut captures) in urls {
            captures.sort_by_key(order);
            let mut state = batch.get(URLS, &key)?.and_then(|value| State::decode(&value)).unwrap_or_default();
            let late = state.newest.is_some_and(|newest| captures.first().is_some_and(|first| order(first) <= newest));
            if late {
                (state, captures) = (State::default(), self.all(captures)?);
            }
            let judge = Judge { bodies: self.archive, settings: self.settings };
            for capture in &captures {
                match judge.visit(&mut state, capture)? {
                    Some(event) => events.push(event),
                    None if late => events.extend(taken_back(&batch, capture.position)?),
                    None => {}
                }
            }
            batch.put(URLS, &key, &state.encode());
        }
        events.sort_by_key(|event| (event.time_ms, event.key));
        let mut telling = Telling::begin(self.archive, &mut batch, self.now_ms)?;
        for event in &events {
            done.events += u64::from(telling.tell(&mut batch, event)?);
        }
        telling.end(&mut batch);
        for (key, mark) in self.marks.drain(..) {
            batch.put(MARKS, &key, &mark.encode());
        }
        batch.commit()?;
        Ok(done)
    }

    /// All captures of a URL, these among them, in the order of time.
    fn all(&self, some: Vec<Capture>) -> Result<Vec<Capture>> {
        let Some((key, url)) = some.first().map(|first| (first.key.clone(), first.url.clone())) else {
            return Ok(some);
        };
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
        Ok(all.split_off(skipped))
    }
}

fn order(capture: &Capture) -> (i64, Position) {
    (capture.time_ms, capture.position)
}

fn url_key(capture: &Capture) -> Vec<u8> {
    key_of(&capture.key, &capture.url)
}

/// Under which a URL is remembered.
pub(crate) fn key_of(key: &Key, url: &str) -> Vec<u8> {
    let mut bytes = key.as_bytes().to_vec();
    bytes.push(0);
    bytes.extend_from_slice(&xxh3_64(url.as_bytes()).to_be_bytes());
    bytes
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
