//! The commit: record, sync, acknowledge; views follow. Read top to bottom.
//!
//! ```text
//!  append ─▶ lane ─▶ tick: place every record, write ─▶ sync all dirty segments ─▶ sync folders of new ones
//!                      └────────── any error: cut back, tell everybody of this tick
//!                                                       ─▶ acknowledge ─▶ follow: sidecars, then views
//! ```
//! While one tick syncs, the next one gathers, so a lone append is never kept waiting. When many write at once, ticks are at
//! least [`BUSY_TICK_MS`] apart: one sync then serves more of them.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use skep_warc::date::rfc3339;
use skep_warc::write::Record;

use crate::capture::Position;
use crate::catalog::{Catalog, Segment, State};
use crate::closing::Closing;
use crate::error::{Error, Result};
use crate::follow::{Following, SegmentCommit};
use crate::identity::{self, Identity};
use crate::layout::{HalfSlice, Layout, SegmentId, SegmentName};
use crate::limits::{
    BUSY_APPENDS, BUSY_TICK_MS, COMMIT_BYTES_MAX, OPEN_FILES_MAX, PENDING_BYTES_MAX, SYNC_THREADS_MAX,
};
use crate::numbers::Numbers;
use crate::own::{self, Bytes, Encoded};
use crate::queue::Lane;
use crate::segment::{Book, Open};
use crate::settings::{self, ArchiveSettings};
use crate::sidecar::{Entry, Note};

/// Records that belong together: they stand next to each other in one segment, or nowhere.
#[derive(Debug)]
pub struct Append {
    /// Whose slice they go to: the site hash of their URL's key.
    pub site_hash: u32,
    /// The records.
    pub records: Vec<Encoded>,
}

/// What an append is told when its records are synced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledged {
    /// The name of each record, in order.
    pub positions: Vec<Position>,
    /// For waiting until the views have seen them.
    pub ticket: u64,
}

/// Told once, from the committer's thread: it must not take long.
pub type Waiter<T> = Box<dyn FnOnce(Result<T>) + Send>;

/// What the committer is asked to do.
pub enum Work {
    /// Append records.
    Append(Append, Waiter<Acknowledged>),
    /// Close open segments: all, or one if it is open.
    Seal(Option<SegmentId>, Waiter<()>),
    /// Close all open segments and go on with twice as many slices.
    Double(Waiter<u8>),
}

/// The open segments and the one thread that writes to them.
pub struct Committer {
    /// Where files go.
    pub layout: Layout,
    /// Who signs.
    pub identity: Arc<Identity>,
    /// Milliseconds since 1970.
    pub clock: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// Which segment takes what.
    pub book: Book,
    /// Where copies are with others: which numbers were used.
    pub numbers: Option<Numbers>,
    /// What waits.
    pub lane: Arc<Lane<Work>>,
    /// Where acknowledged records go next.
    pub following: Arc<Following>,
    /// What readers know.
    pub catalog: Arc<RwLock<Catalog>>,
    /// The files behind the book.
    pub live: BTreeMap<HalfSlice, Live>,
}

/// An open segment file. `open` runs ahead of what is synced by the records of the tick at work; `mark` is where it
/// was when that tick began.
pub struct Live {
    open: Open,
    path: PathBuf,
    file: Option<File>,
    hasher: blake3::Hasher,
    /// The last of the segment's bytes, not written yet: a tick brings many small records, and one write serves them all.
    pending: Vec<u8>,
    entries: Vec<Entry>,
    mark: Option<(Open, blake3::Hasher)>,
    born: bool,
    sealed: bool,
}

/// The appends of one tick that wait for its end, with the positions they will be told.
type Waiting = Vec<(Waiter<Acknowledged>, Vec<Position>)>;

impl Committer {
    /// Works until the lane is closed, then seals everything.
    pub fn run(mut self) {
        let appends = |first: &Work, next: &Work| matches!((first, next), (Work::Append(..), Work::Append(..)));
        let lane = self.lane.clone();
        while let Some(taken) = lane.take(COMMIT_BYTES_MAX, appends) {
            let began = Instant::now();
            let count = taken.items.len();
            let mut tick = Vec::with_capacity(count);
            for work in taken.items {
                match work {
                    Work::Append(append, waiter) => tick.push((append, waiter)),
                    Work::Seal(which, waiter) => waiter(self.seal(which)),
                    Work::Double(waiter) => waiter(self.double()),
                }
            }
            if !tick.is_empty() {
                self.tick(tick);
            }
            lane.finish(count, taken.bytes);
            if count >= BUSY_APPENDS && taken.bytes < COMMIT_BYTES_MAX / 4 {
                std::thread::sleep(Duration::from_millis(BUSY_TICK_MS).saturating_sub(began.elapsed()));
            }
        }
        // Whoever closes asks for the seal and hears of its failure; here it is only for an archive that is dropped.
        let _recovery_closes_it_otherwise = self.seal(None);
    }

    /// One tick: everything is written and synced and then acknowledged, or nothing is.
    fn tick(&mut self, appends: Vec<(Append, Waiter<Acknowledged>)>) {
        let mut waiting = Waiting::new();
        let mut sealed = Vec::new();
        let mut failed = None;
        for (append, waiter) in appends {
            let placed = match &failed {
                None => self.place(append, &mut sealed),
                Some(error) => Err(Error::clone(error)),
            };
            match placed {
                Ok(positions) => waiting.push((waiter, positions)),
                Err(error) => {
                    waiting.push((waiter, Vec::new()));
                    failed.get_or_insert(error);
                }
            }
        }
        if let Err(error) = self.finish(failed.map_or(Ok(()), Err), sealed, &mut waiting) {
            waiting.into_iter().for_each(|(waiter, _)| waiter(Err(error.clone())));
        }
    }

    /// Syncs and acknowledges what was written, or takes it back.
    fn finish(&mut self, written: Result<()>, mut sealed: Vec<Live>, waiting: &mut Waiting) -> Result<()> {
        let written = written.and_then(|()| self.live.values_mut().chain(&mut sealed).try_for_each(Live::flush));
        if let Err(error) = written {
            self.cut_back(sealed, true);
            return Err(error);
        }
        if let Err(error) = self.sync(&sealed) {
            self.cut_back(sealed, false);
            return Err(error);
        }
        self.acknowledge(std::mem::take(waiting), sealed);
        Ok(())
    }

    /// Writes an append behind the records of its half-slice, closing a full segment and beginning a new one on the way.
    fn place(&mut self, append: Append, sealed: &mut Vec<Live>) -> Result<Vec<Position>> {
        let bytes = append.records.iter().map(|record| record.bytes.length()).sum();
        let route = self.book.route(append.site_hash, append.records.len() as u32, bytes);
        if route.seal {
            sealed.extend(self.close(route.half)?);
        }
        if let Some(name) = route.begin {
            self.begin(route.half, name)?;
        }
        let live = self.live.get_mut(&route.half).ok_or_else(|| no_segment(route.half))?;
        let positions = append.records.into_iter().map(|record| live.write(record)).collect::<Result<_>>()?;
        self.book.grown(live.open);
        Ok(positions)
    }

    /// Begins a segment with its warcinfo.
    fn begin(&mut self, half: HalfSlice, name: SegmentName) -> Result<()> {
        if let Some(numbers) = &mut self.numbers {
            numbers.give_out(name.id.number)?;
        }
        let folder = self.layout.half_slice(half);
        settings::create_folder(&folder)?;
        let path = self.layout.segment(half, name);
        let file = File::options().read(true).write(true).create_new(true).open(&path);
        let file = file.map_err(|error| Error::io("cannot create", &path, error))?;
        let open = Open { name, half, records: 0, bytes: 0 };
        let hasher = blake3::Hasher::new();
        let mark = Some((open, hasher.clone()));
        let live = Live {
            open,
            path,
            file: Some(file),
            hasher,
            pending: Vec::new(),
            entries: Vec::new(),
            mark,
            born: true,
            sealed: false,
        };
        let live = self.live.entry(half).insert_entry(live).into_mut();
        live.write(Encoded::new(warcinfo(name, half, &self.identity, (self.clock)())?, Note::Plain))?;
        Ok(())
    }

    /// Ends a segment with its closing record.
    fn close(&mut self, half: HalfSlice) -> Result<Option<Live>> {
        let Some(live) = self.live.get_mut(&half) else { return Ok(None) };
        live.flush()?;
        let open = live.open;
        let closing = Closing {
            segment: open.name,
            half,
            records: open.records,
            bytes: open.bytes,
            blake3: *live.hasher.finalize().as_bytes(),
            replaces: None,
            removals: Vec::new(),
            instead: None,
        };
        let bytes = closing.encode(&self.identity, (self.clock)())?;
        live.write(Encoded::new(bytes, Note::Closing))?;
        live.sealed = true;
        self.book.gone(half);
        Ok(self.live.remove(&half))
    }

    /// Makes the tick durable: all dirty files at once, then the folders of new ones.
    fn sync(&self, sealed: &[Live]) -> Result<()> {
        let dirty: Vec<&Live> = self.live.values().chain(sealed).filter(|live| live.mark.is_some()).collect();
        let sync = |live: &&Live| -> Result<()> {
            let file = live.file.as_ref().ok_or_else(|| no_segment(live.open.half))?;
            file.sync_data().map_err(|error| Error::io("cannot sync", &live.path, error))
        };
        match dirty.as_slice() {
            [one] => sync(one)?,
            many => {
                let share = many.len().div_ceil(SYNC_THREADS_MAX).max(1);
                std::thread::scope(|scope| {
                    let threads: Vec<_> =
                        many.chunks(share).map(|part| scope.spawn(|| part.iter().try_for_each(sync))).collect();
                    threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(panicked())))
                })?;
            }
        }
        dirty.iter().filter(|live| live.born).try_for_each(|live| settings::sync_folder_of(&live.path))
    }

    /// Everything of this tick is on the disk: readers may see it, waiters are told, sidecars and views follow.
    fn acknowledge(&mut self, waiting: Waiting, sealed: Vec<Live>) {
        let mut commits = Vec::new();
        let mut catalog = self.catalog.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        // Closed segments first: the segment that follows one in the same half-slice is folded after it.
        for mut live in sealed {
            commits.extend(live.commit(&mut catalog));
        }
        for live in self.live.values_mut() {
            commits.extend(live.commit(&mut catalog));
        }
        drop(catalog);
        let tell = |ticket| {
            waiting.into_iter().for_each(|(waiter, positions)| waiter(Ok(Acknowledged { positions, ticket })));
        };
        // A failed view is told to the next append; these records are safe.
        let _failure_is_kept_in_the_lane = self.following.put(commits, tell);
        if self.live.len() > OPEN_FILES_MAX {
            self.live.values_mut().for_each(|live| (live.file, live.pending) = (None, Vec::new()));
        }
    }

    /// Nothing of this tick counts: every file goes back to its last synced length. A file that cannot be cut, or whose
    /// sync failed so that its pages are in doubt, is left to the next recovery and a new one takes its place.
    fn cut_back(&mut self, sealed: Vec<Live>, reuse: bool) {
        let touched: Vec<HalfSlice> =
            self.live.iter().filter(|(_, live)| live.mark.is_some()).map(|(half, _)| *half).collect();
        let touched = touched.into_iter().filter_map(|half| self.live.remove(&half));
        let lives: Vec<Live> = touched.chain(sealed).collect();
        for mut live in lives {
            let Some((open, hasher)) = live.mark.take() else { continue };
            self.book.gone(open.half);
            if live.born {
                // If it stays, recovery finds a segment without records and closes it.
                let _recovery_copes = std::fs::remove_file(&live.path);
                continue;
            }
            live.entries.clear();
            live.pending.clear();
            (live.open, live.hasher, live.sealed) = (open, hasher, false);
            let cut = live.file().and_then(|file| {
                file.set_len(open.bytes)?;
                file.sync_data()
            });
            if cut.is_ok() && reuse {
                self.book.grown(open);
                self.live.insert(open.half, live);
            } else {
                let mut catalog = self.catalog.write().unwrap_or_else(std::sync::PoisonError::into_inner);
                catalog.set_state(open.name.id, State::Unclosed);
            }
        }
    }

    /// Closes all open segments, or one.
    fn seal(&mut self, which: Option<SegmentId>) -> Result<()> {
        let halves: Vec<HalfSlice> =
            self.book.all().filter(|open| which.is_none_or(|id| open.name.id == id)).map(|open| open.half).collect();
        let mut sealed = Vec::new();
        let closed = halves.into_iter().try_for_each(|half| self.close(half).map(|live| sealed.extend(live)));
        self.finish(closed, sealed, &mut Vec::new())
    }

    /// One more bit numbers the slices. Segments stay where they are; their successors go to the new folders.
    fn double(&mut self) -> Result<u8> {
        let bits = self.book.bits() + 1;
        if bits > crate::limits::SLICE_BITS_MAX {
            return Err(Error::Refused {
                why: format!("there are already 2^{} slices, the most there can be", bits - 1),
            });
        }
        self.seal(None)?;
        ArchiveSettings { version: settings::ARCHIVE_VERSION, bits }.store(&self.layout.settings())?;
        self.book.set_bits(bits);
        Ok(bits)
    }
}

impl Live {
    /// Writes one record behind the last.
    fn write(&mut self, record: Encoded) -> Result<Position> {
        if self.mark.is_none() {
            self.mark = Some((self.open, self.hasher.clone()));
        }
        let length = record.bytes.length();
        let offset = self.open.bytes;
        match &record.bytes {
            Bytes::Memory(bytes) => {
                self.pending.extend_from_slice(bytes);
                if self.pending.len() >= PENDING_BYTES_MAX {
                    self.flush_before(offset + length)?;
                }
            }
            Bytes::Spilled { file, length } => {
                self.flush()?;
                let copied = self.copy(file, *length, offset);
                copied.map_err(|error| Error::io("cannot write", &self.path, error))?;
            }
        }
        let id = self.open.name.id;
        let number = self.open.records;
        self.entries.push(Entry::place(id, number, offset, length, record.note.filed_in(Some(self.open.half))));
        self.open.records += 1;
        self.open.bytes += length;
        Ok(Position { writer: id.writer, segment: id.number, record: number })
    }

    /// Writes what is pending.
    fn flush(&mut self) -> Result<()> {
        self.flush_before(self.open.bytes)
    }

    /// The same, where the segment ends behind it at `end`.
    fn flush_before(&mut self, end: u64) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut pending = std::mem::take(&mut self.pending);
        self.hasher.update(&pending);
        let written = self.file().and_then(|file| file.write_all_at(&pending, end - pending.len() as u64));
        // The room is needed again at once, except what a large record took.
        pending.clear();
        pending.shrink_to(PENDING_BYTES_MAX);
        self.pending = pending;
        written.map_err(|error| Error::io("cannot write", &self.path, error))
    }

    fn copy(&mut self, from: &File, length: u64, offset: u64) -> std::io::Result<()> {
        let mut buffer = vec![0; 1 << 16];
        let mut done = 0;
        while done < length {
            let part = (length - done).min(buffer.len() as u64) as usize;
            from.read_exact_at(&mut buffer[..part], done)?;
            self.hasher.update(&buffer[..part]);
            self.file()?.write_all_at(&buffer[..part], offset + done)?;
            done += part as u64;
        }
        Ok(())
    }

    fn file(&mut self) -> std::io::Result<&File> {
        match &mut self.file {
            Some(file) => Ok(file),
            closed => Ok(closed.insert(File::options().read(true).write(true).open(&self.path)?)),
        }
    }

    /// What this tick added, once it is synced; `None` if it added nothing.
    fn commit(&mut self, catalog: &mut Catalog) -> Option<SegmentCommit> {
        self.mark.take()?;
        self.born = false;
        let state = if self.sealed { State::Sealed } else { State::Open };
        let Open { name, half, .. } = self.open;
        catalog.set(Segment { name, half, path: self.path.clone(), state });
        let entries = std::mem::take(&mut self.entries);
        Some(SegmentCommit { name, path: self.path.clone(), entries, sealed: self.sealed, sidecar_bytes: None })
    }
}

/// The first record of a segment.
fn warcinfo(name: SegmentName, half: HalfSlice, identity: &Identity, time_ms: i64) -> Result<Vec<u8>> {
    let segment = name.to_string();
    let (version, writer) = (settings::ARCHIVE_VERSION.to_string(), identity::hex(&identity.public()));
    let about = [
        ("software", concat!("skep/", env!("CARGO_PKG_VERSION"))),
        ("format", "WARC File Format 1.1"),
        ("skep-archive", version.as_str()),
        ("writer", writer.as_str()),
        ("segment", segment.as_str()),
        ("half-slice", &half.folder()),
    ];
    let id = identity::record_id(&[b"warcinfo", &identity.public(), segment.as_bytes()]);
    let record = Record::warcinfo(&id, &rfc3339(time_ms), &about);
    let record = record.map_err(|error| Error::Refused { why: error.to_string() })?;
    own::encode(&record.filename(&segment))
}

fn no_segment(half: HalfSlice) -> Error {
    Error::Refused { why: format!("half-slice {half} has no open segment") }
}

fn panicked() -> Error {
    Error::Refused { why: "a thread that synced a segment panicked".into() }
}
