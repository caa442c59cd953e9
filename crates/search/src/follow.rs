//! The texts follow the records: what sidecars name and has not been read yet is read, and becomes findable batch by batch.
//!
//! ```text
//!  a batch   read records ─▶ words into the index ─▶ commit the index ─▶ tables and marks in one batch of the store
//! ```
//! What is read twice, after a crash or because a segment was rewritten, comes out the same: a document has its name from its URL and its
//! text, and replaces the one of that name. In which order records come does not matter either.

use crate::error::{Error, Result};
use crate::extract::{self, Page};
use crate::index::{Document, Index};
use crate::limits::{BATCH_ENTRIES, BATCH_TEXT_BYTES};
use crate::tables::{self, Mark};
use skep_archive::layout::SegmentId;
use skep_archive::sidecar::SidecarReader;
use skep_archive::{Archive, Batch, Capture, CaptureKind, Entry, Key, Note, Position, Removal, Stored};
use std::collections::{HashMap, HashSet};
use tantivy::IndexWriter;

/// Reads on until everything is read or `stopped` says so; `false` if it was stopped. `writer` is made when it is needed.
pub fn follow(
    archive: &Archive,
    index: &Index,
    writer: &mut Option<IndexWriter>,
    stopped: &dyn Fn() -> bool,
) -> Result<bool> {
    let own = archive.segments().into_iter().map(|segment| segment.name.id);
    let added = archive.collections().files().iter().map(|file| file.name().id).collect::<Vec<_>>();
    let mut follower = Follower::new(archive, index, writer);
    for id in own.chain(added) {
        if stopped() {
            break;
        }
        follower.file(id, stopped)?;
    }
    follower.commit()?;
    Ok(!stopped())
}

struct Follower<'f> {
    archive: &'f Archive,
    index: &'f Index,
    writer: &'f mut Option<IndexWriter>,
    batch: Batch<'f>,
    /// Revisits of this batch whose payload is not here yet.
    waiting: HashMap<Vec<u8>, Vec<Capture>>,
    entries: usize,
    text_bytes: usize,
    /// Documents were put or deleted.
    written: bool,
    /// Documents were deleted because their captures were removed.
    removed: bool,
    /// Something is to be committed.
    changed: bool,
}

impl<'f> Follower<'f> {
    fn new(archive: &'f Archive, index: &'f Index, writer: &'f mut Option<IndexWriter>) -> Follower<'f> {
        Follower {
            archive,
            index,
            writer,
            batch: archive.views().batch(),
            waiting: HashMap::new(),
            entries: 0,
            text_bytes: 0,
            written: false,
            removed: false,
            changed: false,
        }
    }

    /// Reads on in a segment or file, as far as the other views are.
    fn file(&mut self, id: SegmentId, stopped: &dyn Fn() -> bool) -> Result<()> {
        let views = self.archive.views();
        let Some(seen) = views.mark(id)? else { return Ok(()) };
        let known = tables::mark(views, id)?.filter(|mark| mark.generation == seen.generation);
        let mut mark = known.unwrap_or(Mark::beginning(seen.generation));
        if known.is_some() && mark.records >= seen.records {
            return Ok(());
        }
        let (sidecar, name) = self.archive.sidecar(id)?;
        if name.generation != seen.generation {
            // It has just been rewritten; the other views go first.
            return Ok(());
        }
        let Some(mut reader) = SidecarReader::open_at(&sidecar, name, mark.sidecar_bytes)? else { return Ok(()) };
        while reader.valid_length() < seen.sidecar_bytes {
            mark.sidecar_bytes = reader.valid_length();
            let Some(entries) = reader.next_frame()? else { break };
            let done = mark.records;
            for entry in entries.iter().filter(|entry| entry.record >= done) {
                if stopped() {
                    self.mark(id, mark);
                    return Ok(());
                }
                self.entry(id, entry)?;
                mark.records = entry.record.saturating_add(1);
                if self.entries >= BATCH_ENTRIES || self.text_bytes >= BATCH_TEXT_BYTES {
                    self.mark(id, mark);
                    self.commit()?;
                }
            }
        }
        let (records, sidecar_bytes) = (mark.records.max(seen.records), reader.valid_length());
        self.mark(id, Mark { records, sidecar_bytes, ..mark });
        Ok(())
    }

    fn mark(&mut self, id: SegmentId, mark: Mark) {
        tables::set_mark(&mut self.batch, id, mark);
        self.changed = true;
    }

    fn entry(&mut self, id: SegmentId, entry: &Entry) -> Result<()> {
        match &entry.note {
            Note::Capture(capture) if extract::may_have_text(capture) => {
                self.entries += 1;
                self.capture(capture)
            }
            Note::Removal(block) => {
                let listener = self.archive.listener();
                let hides = |removal: Removal| removal.hides(id.writer, listener);
                self.gone(&Removal::parse(block).map(hides).unwrap_or_default().into_iter().collect())
            }
            Note::Blank => {
                let position = Position { writer: id.writer, segment: id.number, record: entry.record };
                self.gone(&HashSet::from([position]))
            }
            _ => Ok(()),
        }
    }

    fn capture(&mut self, capture: &Capture) -> Result<()> {
        let views = self.archive.views();
        if views.is_hidden(capture.position) {
            return Ok(());
        }
        let payload = tables::payload_key(capture.digest.as_ref(), capture.position);
        if let Some(text) = tables::text(&self.batch, &payload)? {
            return self.document(&capture.key, capture.time_ms, text, None, || extract::page(self.archive, capture));
        }
        // A record that cannot be read has no text; `check` reports it.
        let page = match extract::page(self.archive, capture) {
            Ok(Some(page)) => page,
            Ok(None) if capture.kind == CaptureKind::Revisit && capture.digest.is_some() => {
                self.waiting.entry(payload).or_default().push(capture.clone());
                return Ok(());
            }
            Ok(None) | Err(_) => return Ok(()),
        };
        let text = page.hash();
        tables::set_text(&mut self.batch, &payload, text);
        self.document(&capture.key, capture.time_ms, text, Some(&page), || Ok(None))?;
        for waited in self.waiting.remove(&payload).unwrap_or_default() {
            self.document(&waited.key, waited.time_ms, text, Some(&page), || Ok(None))?;
        }
        for waited in tables::waiting(views, &payload)? {
            if !views.is_hidden(waited.position) {
                self.document(&waited.key, waited.time_ms, text, Some(&page), || Ok(None))?;
            }
            tables::stop_waiting(&mut self.batch, &waited);
        }
        Ok(())
    }

    /// A URL showed a text at a time: makes its document, unless there is one of that time or an earlier one.
    fn document(
        &mut self,
        key: &Key,
        time_ms: i64,
        text: u64,
        page: Option<&Page>,
        read: impl FnOnce() -> skep_archive::Result<Option<Page>>,
    ) -> Result<()> {
        let name = tables::document(key, text);
        if text == 0 || tables::time(&self.batch, &name)?.is_some_and(|known| known <= time_ms) {
            return Ok(());
        }
        let read = match page {
            Some(_) => None,
            None => read().ok().flatten(),
        };
        let Some(page) = page.or(read.as_ref()) else { return Ok(()) };
        self.put(&name, &Document { key: key.clone(), text, time_ms }, page)
    }

    fn put(&mut self, name: &[u8; 16], document: &Document, page: &Page) -> Result<()> {
        let index = self.index;
        index.put(self.writer()?, name, document, page)?;
        tables::set_time(&mut self.batch, name, document.time_ms);
        self.text_bytes += page.text.len() + page.title.len();
        Ok(())
    }

    fn writer(&mut self) -> Result<&IndexWriter> {
        self.written = true;
        match &mut *self.writer {
            Some(writer) => Ok(writer),
            none => Ok(none.insert(self.index.writer()?)),
        }
    }

    /// Captures were removed: a document goes with the last capture that had its text.
    fn gone(&mut self, removed: &HashSet<Position>) -> Result<()> {
        if self.written {
            // The index tells of a URL's documents what was committed.
            self.changed = true;
            self.commit()?;
        }
        let keys: HashSet<Vec<u8>> = removed.iter().filter_map(|position| self.key_of(*position)).collect();
        for key in keys.iter().filter_map(|key| Key::from_bytes(key)) {
            for document in self.index.of_url(&key)? {
                self.look_again(&document, removed)?;
            }
        }
        Ok(())
    }

    fn look_again(&mut self, document: &Document, removed: &HashSet<Position>) -> Result<()> {
        let name = tables::document(&document.key, document.text);
        let mut first: Option<Capture> = None;
        for capture in self.archive.views().captures.exact(&document.key)? {
            let capture = capture?;
            let payload = tables::payload_key(capture.digest.as_ref(), capture.position);
            let stays = !removed.contains(&capture.position) && extract::may_have_text(&capture);
            if stays && tables::text(&self.batch, &payload)? == Some(document.text) {
                first = Some(capture);
                break;
            }
        }
        let Some(first) = first else {
            let index = self.index;
            index.delete(self.writer()?, &name);
            tables::forget(&mut self.batch, &name);
            self.removed = true;
            return Ok(());
        };
        // The first capture with this text may be what was removed.
        if first.time_ms != document.time_ms
            && let Ok(Some(page)) = extract::page(self.archive, &first)
        {
            self.put(&name, &Document { time_ms: first.time_ms, ..document.clone() }, &page)?;
        }
        Ok(())
    }

    /// The key of a removed record's URL, from its head, which stays.
    fn key_of(&self, position: Position) -> Option<Vec<u8>> {
        let mut stored = Stored::at(&self.archive.place(position).ok()?).ok()?;
        let record = stored.record().ok()?;
        Some(self.archive.filed(position, Key::of_bytes(record.head().target_uri()?)).into_bytes())
    }

    fn commit(&mut self) -> Result<()> {
        let index = self.index;
        if self.written {
            let writer = self.writer.as_mut().ok_or_else(|| Error::Index("there is no writer".to_owned()))?;
            writer.commit()?;
            if self.removed {
                index.purge(writer)?;
            }
            index.reload()?;
        }
        for revisit in self.waiting.drain().flat_map(|(_, revisits)| revisits) {
            tables::wait(&mut self.batch, &revisit);
        }
        let batch = std::mem::replace(&mut self.batch, self.archive.views().batch());
        if self.changed {
            batch.commit()?;
        }
        (self.entries, self.text_bytes) = (0, 0);
        (self.written, self.removed, self.changed) = (false, false, false);
        Ok(())
    }
}
