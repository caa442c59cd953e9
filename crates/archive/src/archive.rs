//! The archive: everything a caller does with one.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::capture::{Capture, Position, WriterKey};
use crate::catalog::{Catalog, Segment};
use crate::collections::Collections;
use crate::commit::{Acknowledged, Append, Waiter, Work};
use crate::copy::Copies;
use crate::describe::PRIVATE;
use crate::error::{Error, Result};
use crate::finding::Finding;
use crate::follow::Following;
use crate::identity::Identity;
use crate::keeper::Keeper;
use crate::layout::{Layout, SegmentId, SegmentName, sidecar_of};
use crate::limits::{
    APPEND_RECORDS_MAX, CACHE_BYTES, DISK_RESERVE_BYTES, ROOM_AMPLE_BYTES, ROOM_LOOK_EVERY, SEGMENT_BYTES_MAX,
};
use crate::lock::Lock;
use crate::own::Encoded;
use crate::places::Places;
use crate::queue::Lane;
use crate::read::Stored;
use crate::referred::Referred;
use crate::remove::Listener;
use crate::rewrite::RewritePlan;
use crate::sidecar::Note;
use crate::views::{View, Views};

/// Milliseconds since 1970, from wherever the caller takes the time.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// How to open an archive.
pub struct OpenOptions {
    /// Make the archive if the folder holds none.
    pub create: bool,
    /// Append nothing and leave segments as they are. Views and sidecars are still brought up to date.
    pub read_only: bool,
    /// 2^bits slices, for an archive that is made.
    pub bits: u8,
    /// A segment is sealed at this size.
    pub segment_bytes_max: u64,
    /// Space left free on the disk.
    pub disk_reserve_bytes: u64,
    /// Memory for what is kept at hand, in all; a busy server has more of it than a command. Half of it is left to others:
    /// [`Archive::others_bytes`].
    pub cache_bytes: u64,
    /// The time.
    pub clock: Clock,
    /// Segments of other writers are copies that this process makes: what stands behind their last whole record is cut off
    /// and copied again. Without it they are left as they are.
    pub copies: bool,
    /// The writer's secret, for an archive that has none yet; by default a random one.
    pub secret: Option<[u8; 32]>,
    /// Views beside captures and digests.
    pub views: Vec<Box<dyn View>>,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions {
            create: false,
            read_only: false,
            bits: 0,
            segment_bytes_max: SEGMENT_BYTES_MAX,
            disk_reserve_bytes: DISK_RESERVE_BYTES,
            cache_bytes: CACHE_BYTES,
            clock: Arc::new(system_clock),
            copies: false,
            secret: None,
            views: Vec::new(),
        }
    }
}

impl OpenOptions {
    /// Opens the archive, or makes it.
    pub fn create() -> OpenOptions {
        OpenOptions { create: true, ..OpenOptions::default() }
    }

    /// Opens the archive for reading.
    pub fn read_only() -> OpenOptions {
        OpenOptions { read_only: true, ..OpenOptions::default() }
    }
}

/// The system's clock.
pub fn system_clock() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}

/// An open archive. One process at a time has one open on a folder; its methods may be called from many threads.
pub struct Archive {
    pub(crate) shared: Arc<Shared>,
    pub(crate) opened: Vec<Finding>,
    pub(crate) threads: Vec<JoinHandle<()>>,
    pub(crate) keeper: Mutex<Option<JoinHandle<Vec<Finding>>>>,
    pub(crate) _lock: Lock,
}

/// What the archive's threads share.
pub(crate) struct Shared {
    pub layout: Layout,
    pub identity: Arc<Identity>,
    pub clock: Clock,
    pub read_only: bool,
    pub disk_reserve_bytes: u64,
    pub catalog: Arc<RwLock<Catalog>>,
    pub collections: RwLock<Collections>,
    pub lane: Arc<Lane<Work>>,
    pub following: Arc<Following>,
    pub views: Arc<Views>,
    pub places: Places,
    /// Memory left to others beside the archive.
    pub others_bytes: u64,
    /// Bodies that records on their way stand for, and bodies that are about to go.
    pub referred: Arc<Referred>,
    /// Held while segments are rewritten: by a removal, or by the keeper that finishes one.
    pub rewriting: Mutex<()>,
    /// Held while a body is pinned, and while it is asked which of those that are removed may go.
    pub pinning: Mutex<()>,
    /// Held by whoever adds files to collections.
    pub adding: Mutex<()>,
    /// It is one of a network: whoever holds its slices has copies of all that is appended.
    pub joint: bool,
    /// Copies of segments that grow.
    pub copies: Mutex<Copies>,
    /// Free bytes on the disk when it was last looked at, less what was appended since.
    pub room: Mutex<Option<(Instant, u64)>>,
}

/// An append that is on its way to the disk.
#[derive(Debug)]
pub struct Pending {
    answer: Receiver<Result<Acknowledged>>,
}

impl Pending {
    /// Waits until the records are synced.
    pub fn wait(self) -> Result<Acknowledged> {
        self.answer.recv().unwrap_or(Err(Error::NotWritable { why: "the archive was closed meanwhile" }))
    }
}

/// Where a record is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// Where in it.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
    /// How many records stand before it in the same compressed member: none, unless somebody compressed several together.
    pub nth: u32,
}

impl Archive {
    /// Who writes here.
    pub fn writer(&self) -> WriterKey {
        self.shared.identity.writer()
    }

    /// Whose removals count here.
    pub fn listener(&self) -> Listener {
        self.shared.views.listener()
    }

    /// The paths of this archive.
    pub fn layout(&self) -> &Layout {
        &self.shared.layout
    }

    /// Of the memory that may be kept at hand, the half that the archive leaves to whoever folds its records beside it.
    pub fn others_bytes(&self) -> u64 {
        self.shared.others_bytes
    }

    /// What opening it found and mended.
    pub fn opened(&self) -> &[Finding] {
        &self.opened
    }

    /// The views.
    pub fn views(&self) -> &Views {
        &self.shared.views
    }

    /// Bodies that records on their way stand for, and bodies that are about to go.
    pub fn referred(&self) -> &Arc<Referred> {
        &self.shared.referred
    }

    /// Every segment as it stands now, by writer and number.
    pub fn segments(&self) -> Vec<Segment> {
        self.shared.catalog().all().cloned().collect()
    }

    /// The files of collections as they stand now.
    pub fn collections(&self) -> Collections {
        self.shared.collections.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Hands records over. They are safe once [`Pending::wait`] says so; waits here only while too much is on its way.
    pub fn append(&self, append: Append) -> Result<Pending> {
        let (tell, answer) = sync_channel(1);
        // Nobody listens any more if the caller gave up waiting; the records are kept all the same.
        self.append_then(append, Box::new(move |result| drop(tell.send(result))))?;
        Ok(Pending { answer })
    }

    /// The same for callers that cannot wait: `waiter` is told, from the committer's thread.
    pub fn append_then(&self, append: Append, waiter: Waiter<Acknowledged>) -> Result<()> {
        self.shared.append_then(append, waiter)
    }

    /// Closes all open segments; what is appended later begins new ones.
    pub fn seal(&self) -> Result<()> {
        self.shared.seal(None)
    }

    /// Twice as many slices from now on. Returns how many bits number them.
    pub fn double(&self) -> Result<u8> {
        let (tell, answer) = sync_channel(1);
        self.shared.order(Work::Double(Box::new(move |result| drop(tell.send(result)))))?;
        answer.recv().unwrap_or(Err(Error::NotWritable { why: "the archive is being closed" }))
    }

    /// Writes a segment of ours again: with some records blank, or compressed at another level. Closes it first if it is
    /// open. Positions, order, heads and the blocks that stay are what they were; the closing record names what it
    /// replaces. Returns the new generation, which counts from now on, also after a crash at any moment.
    pub fn rewrite(&self, segment: SegmentId, plan: &RewritePlan) -> Result<Segment> {
        self.shared.keeper().rewrite(segment, plan)
    }

    /// Whether the disk has room for more than what is kept free.
    pub fn has_room(&self) -> Result<bool> {
        Ok(free_bytes(self.shared.layout.root())? > self.shared.disk_reserve_bytes)
    }

    /// Waits until the views have seen everything acknowledged so far.
    pub fn settle(&self) -> Result<()> {
        self.shared.following.settle()
    }

    /// Waits until the views have seen what this ticket stands for.
    pub fn settle_up_to(&self, ticket: u64) -> Result<()> {
        self.shared.following.wait_for(ticket)
    }

    /// Waits until what opening left to be done is done: closing segments after a crash, finishing removals. Returns
    /// what could not be done.
    pub fn finish_opening(&self) -> Vec<Finding> {
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        keeper.and_then(|keeper| keeper.join().ok()).unwrap_or_default()
    }

    /// The place of a record.
    pub fn place(&self, position: Position) -> Result<Place> {
        self.shared.place(position)
    }

    /// A record by its name, from wherever it stands now. A hidden record is not found.
    pub fn read(&self, position: Position) -> Result<Stored> {
        if self.shared.views.is_hidden(position) {
            return Err(Error::NotFound { what: format!("{position} was removed and") });
        }
        Stored::at(&self.shared.place(position)?)
    }

    /// Whether a record is private; so is one in whose compressed member another is, for they are given away together.
    pub fn is_private(&self, position: Position) -> Result<bool> {
        let place = self.shared.place(position)?;
        let mut stored = Stored::at(&Place { nth: 0, ..place })?;
        match position.writer == WriterKey::FOREIGN {
            true => stored.any(&|head| head.get(PRIVATE).is_some()),
            // Of ours each is a member of its own.
            false => Ok(stored.record()?.head().get(PRIVATE).is_some()),
        }
    }

    /// The record of a capture, by the place that the view gave. The record proves itself when it is read with
    /// [`Stored::record_of`].
    pub fn read_capture(&self, capture: &Capture) -> Result<Stored> {
        let (path, _, name) = self.shared.file(capture.position.into())?;
        if name.generation > 0 {
            // The capture may have been found before its segment was rewritten.
            return Stored::at(&self.shared.place(capture.position)?);
        }
        Stored::of(&path, capture)
    }

    /// The file that holds the records of a segment, or of a file from elsewhere.
    pub fn file_of(&self, position: Position) -> Result<PathBuf> {
        self.shared.file(position.into()).map(|(path, _, _)| path)
    }

    /// The sidecar of a segment or file from elsewhere, and the name in it.
    pub fn sidecar(&self, id: SegmentId) -> Result<(PathBuf, SegmentName)> {
        self.shared.file(id).map(|(_, sidecar, name)| (sidecar, name))
    }

    /// Seals what is open, waits for the views, and lets go of the archive.
    pub fn close(mut self) -> Result<()> {
        self.finish_opening();
        let sealed = if self.shared.read_only { Ok(()) } else { self.seal() };
        let settled = self.settle();
        self.stop();
        let persisted = self.shared.views.persist();
        sealed.and(settled).and(persisted)
    }

    fn stop(&mut self) {
        self.finish_opening();
        self.shared.lane.close();
        // The committer ends first: it still hands over what it seals.
        let mut threads = std::mem::take(&mut self.threads).into_iter();
        if !self.shared.read_only {
            let _panicked_threads_have_said_so = threads.next().map(JoinHandle::join);
        }
        self.shared.following.close();
        threads.for_each(|thread| drop(thread.join()));
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    pub fn catalog(&self) -> std::sync::RwLockReadGuard<'_, Catalog> {
        self.catalog.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn append_then(&self, append: Append, waiter: Waiter<Acknowledged>) -> Result<()> {
        if append.records.is_empty() || append.records.len() > APPEND_RECORDS_MAX {
            let why = format!("{} records at once; 1 to {APPEND_RECORDS_MAX} can be appended", append.records.len());
            return Err(Error::Refused { why });
        }
        let is_private = |record: &Encoded| matches!(&record.note, Note::Capture(capture) if capture.is_private());
        if self.joint && append.records.iter().any(is_private) {
            return Err(Error::Private);
        }
        let bytes: u64 = append.records.iter().map(|record| record.bytes.length()).sum();
        if let Some(error) = self.following.failure() {
            return Err(error);
        }
        self.take_room(bytes)?;
        self.order_sized(Work::Append(append, waiter), bytes)
    }

    /// Leaves the reserve free. The disk is looked at once in a while, and for every append when it is nearly full.
    pub fn take_room(&self, bytes: u64) -> Result<()> {
        let needed = self.disk_reserve_bytes.saturating_add(bytes);
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        let left = match *room {
            Some((looked, left))
                if looked.elapsed() < ROOM_LOOK_EVERY && left > needed.saturating_add(ROOM_AMPLE_BYTES) =>
            {
                left
            }
            _ => {
                let left = free_bytes(self.layout.root())?;
                *room = Some((Instant::now(), left));
                left
            }
        };
        if left < needed {
            return Err(Error::DiskFull { path: self.layout.root().to_path_buf() });
        }
        if let Some((_, left)) = &mut *room {
            *left -= bytes;
        }
        Ok(())
    }

    pub fn append_and_wait(&self, append: Append) -> Result<Acknowledged> {
        let (tell, answer) = sync_channel(1);
        self.append_then(append, Box::new(move |result| drop(tell.send(result))))?;
        Pending { answer }.wait()
    }

    /// Closes all open segments, or one if it is open.
    pub fn seal(&self, which: Option<SegmentId>) -> Result<()> {
        let (tell, answer) = sync_channel(1);
        self.order(Work::Seal(which, Box::new(move |result| drop(tell.send(result)))))?;
        answer.recv().unwrap_or(Err(Error::NotWritable { why: "the archive is being closed" }))
    }

    pub fn order(&self, work: Work) -> Result<()> {
        self.order_sized(work, 0)
    }

    fn order_sized(&self, work: Work, bytes: u64) -> Result<()> {
        if self.read_only {
            return Err(Error::NotWritable { why: "the archive was opened for reading only" });
        }
        self.lane.put(work, bytes).map(|_| ())
    }

    /// The file of a segment or foreign file, its sidecar, and the name in the sidecar.
    pub fn file(&self, id: SegmentId) -> Result<(PathBuf, PathBuf, SegmentName)> {
        let unknown = || Error::NotFound { what: format!("segment {id}") };
        if id.writer == WriterKey::FOREIGN {
            let collections = self.collections.read().unwrap_or_else(PoisonError::into_inner);
            let file = collections.get(id.number).ok_or_else(unknown)?;
            let sidecar = self.layout.collection_sidecar(id.number);
            return Ok((file.location(&self.layout), sidecar, file.name()));
        }
        let catalog = self.catalog();
        let segment = catalog.get(id).ok_or_else(unknown)?;
        Ok((segment.path.clone(), sidecar_of(&segment.path), segment.name))
    }

    pub fn place(&self, position: Position) -> Result<Place> {
        let find = || -> Result<Option<Place>> {
            let (path, sidecar, name) = self.file(position.into())?;
            let found = self.places.find(&sidecar, name, position.record)?;
            Ok(found.map(|(offset, length, nth)| Place { path, offset, length, nth }))
        };
        if let Some(place) = find()? {
            return Ok(place);
        }
        // Acknowledged a moment ago: the sidecar follows.
        self.following.settle()?;
        find()?.ok_or_else(|| Error::NotFound { what: format!("record {position}") })
    }

    pub fn keeper(self: &Arc<Shared>) -> Keeper {
        Keeper { shared: self.clone() }
    }
}

/// Free bytes on the disk that holds `path`, for programs without privileges.
fn free_bytes(path: &Path) -> Result<u64> {
    let facts = rustix::fs::statvfs(path).map_err(|error| Error::io("cannot look at", path, error.into()))?;
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}
