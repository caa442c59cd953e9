//! Views: what is folded from records. One batch serves them all and says in the same breath how far it got, so a view
//! is never ahead of, behind, or at odds with the others.
//!
//! ```text
//!  keyspace applied   | writer 4 BE | number 4 BE |  ─▶  | 1 | generation 4 | records 4 | bytes 8 | sidecar 8 | sealed 1 |
//!  keyspace view-hidden | writer 4 BE | number 4 BE | record 4 BE |  ─▶  | 1 | blank 1 | record id of the removal … |
//!  keyspaces view-pins, view-references: see `pins.rs`
//!  keyspaces of other views: named by them
//! ```

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use fjall::{Database, Keyspace, Readable as _};

use crate::capture::{Capture, CaptureKind, Position, WriterKey};
use crate::captures::{self, Captures};
use crate::digests::{self, Digests};
use crate::error::{Error, Result};
use crate::hidden::Hidden;
use crate::layout::SegmentId;
use crate::memory::Shares;
use crate::own;
use crate::pins;
use crate::read::Stored;
use crate::remove::{self, Listener, Removal};
use crate::runs::small_table;
use crate::sidecar::{Entry, Note};

/// The keyspace of records that removals hide.
const HIDDEN: &str = "hidden";

/// Something folded from records. `apply` is called once for each record that the archive has, in the order of each
/// segment; again from the beginning after a rebuild; and again for a whole segment after it was rewritten, so applying a
/// record twice must give what applying it once gives.
pub trait View: Send + Sync {
    /// The name of the view.
    fn name(&self) -> &'static str;

    /// Folds one record into the batch.
    fn apply(&self, record: &SeenRecord<'_>, batch: &mut Batch<'_>) -> Result<()>;
}

/// A record as views see it.
#[derive(Debug, Clone, Copy)]
pub struct SeenRecord<'r> {
    /// Its name.
    pub position: Position,
    /// The file it is in.
    pub path: &'r Path,
    /// What the sidecar says of it.
    pub entry: &'r Entry,
}

impl SeenRecord<'_> {
    /// Opens the record itself, for views to which the sidecar does not say enough.
    pub fn open(&self) -> Result<Stored> {
        Stored::open(self.path, self.entry.offset, self.entry.length)
    }
}

/// How far the views got in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Which generation of the segment.
    pub generation: u32,
    /// Records applied.
    pub records: u32,
    /// The byte of the segment after the last of them.
    pub bytes: u64,
    /// The byte of the sidecar after the frame that named the last of them.
    pub sidecar_bytes: u64,
    /// The segment is sealed and its sidecar is synced: neither needs to be looked at again.
    pub sealed: bool,
}

impl Mark {
    fn encode(self) -> Vec<u8> {
        let mut bytes = vec![1];
        bytes.extend_from_slice(&self.generation.to_le_bytes());
        bytes.extend_from_slice(&self.records.to_le_bytes());
        bytes.extend_from_slice(&self.bytes.to_le_bytes());
        bytes.extend_from_slice(&self.sidecar_bytes.to_le_bytes());
        bytes.push(self.sealed.into());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Mark> {
        let bytes: &[u8; 26] = bytes.try_into().ok()?;
        let small = |at: usize| bytes[at..at + 4].try_into().map(u32::from_le_bytes).ok();
        let large = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        (bytes[0] == 1).then_some(())?;
        Some(Mark {
            generation: small(1)?,
            records: small(5)?,
            bytes: large(9)?,
            sidecar_bytes: large(17)?,
            sealed: bytes[25] == 1,
        })
    }
}

/// The store of all views.
pub struct Views {
    folder: PathBuf,
    /// Whose removals count.
    listener: Listener,
    store: Database,
    applied: Keyspace,
    named: Mutex<HashMap<String, Keyspace>>,
    hidden: Arc<Hidden>,
    registered: Vec<Box<dyn View>>,
    commits: AtomicU64,
    /// Written to while a batch is put in: the store counts it as visible as soon as its workers have moved something else, however
    /// little of it is there.
    visible: Arc<RwLock<()>>,
    /// Captures by URL and time.
    pub captures: Captures,
    /// Payloads by digest.
    pub digests: Digests,
}

impl Views {
    /// Opens the store in `folder`, making it if need be. Views keep their shares of memory.
    pub fn open(folder: &Path, listener: Listener, registered: Vec<Box<dyn View>>, shares: &Shares) -> Result<Views> {
        let making = begin_making(folder)?;
        let store = Database::builder(folder.join("store")).worker_threads(2).cache_size(shares.store_bytes).open()?;
        let hidden = Arc::new(Hidden::default());
        let visible = Arc::<RwLock<()>>::default();
        let views = Views {
            folder: folder.to_path_buf(),
            listener,
            applied: store.keyspace("applied", small_table)?,
            named: Mutex::new(HashMap::new()),
            hidden: hidden.clone(),
            registered,
            commits: AtomicU64::new(0),
            captures: Captures::open(&store, &folder.join(captures::KEYSPACE), hidden.clone(), shares.captures)?
                .put_under(visible.clone()),
            digests: Digests::open(&store, &folder.join(digests::KEYSPACE), hidden.clone(), shares.digests)?
                .put_under(visible.clone()),
            visible,
            store,
        };
        for item in views.keyspace(HIDDEN)?.iter() {
            hidden.hide(position_of(&item.key()?));
        }
        if let Some(making) = making {
            std::fs::remove_file(&making).map_err(|error| Error::io("cannot delete", &making, error))?;
        }
        Ok(views)
    }

    /// The folder of the views.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A batch that becomes visible as a whole, or not at all.
    pub fn batch(&self) -> Batch<'_> {
        Batch {
            views: self,
            direct: self.store.batch(),
            pending: HashMap::new(),
            hide: Vec::new(),
            bulk: None,
            entries: 0,
        }
    }

    /// The same for many records that no view has seen yet: captures and digests go into sorted runs at once.
    pub fn bulk(&self) -> Batch<'_> {
        Batch { bulk: Some((self.captures.bulk(), self.digests.bulk())), ..self.batch() }
    }

    /// Whose removals count.
    pub fn listener(&self) -> Listener {
        self.listener
    }

    /// How many batches were committed since the views were opened: as long as it stays the same, nothing is new.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }

    /// How far the views got in a segment.
    pub fn mark(&self, id: SegmentId) -> Result<Option<Mark>> {
        Ok(self.applied.get(segment_key(id))?.and_then(|value| Mark::decode(&value)))
    }

    /// Whether a removal hides this record.
    pub fn is_hidden(&self, position: Position) -> bool {
        self.hidden.contains(&position)
    }

    /// How many records removals hide.
    pub fn hidden_records(&self) -> usize {
        self.hidden.now().len()
    }

    /// Hidden records of which the archive still has the block, as far as the views know.
    pub fn hidden_with_block(&self) -> Result<Vec<Position>> {
        let mut positions = Vec::new();
        for item in self.keyspace(HIDDEN)?.iter() {
            let (key, value) = item.into_inner()?;
            if value.get(1) != Some(&1) {
                positions.extend(position_of(&key));
            }
        }
        Ok(positions)
    }

    /// The record id of the removal that hides a record; empty if none is known.
    pub fn removal_of(&self, position: Position) -> Result<String> {
        let value = self.get(HIDDEN, &position_key(position))?.unwrap_or_default();
        Ok(String::from_utf8_lossy(value.get(2..).unwrap_or_default()).into_owned())
    }

    /// A value of a view's own keyspace.
    pub fn get(&self, keyspace: &str, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.named(keyspace)?.get(key)?.map(|value| value.to_vec()))
    }

    /// A view's own keyspace as it is now, for reading; it is written through batches.
    pub fn keyspace(&self, name: &str) -> Result<Table> {
        let keyspace = self.named(name)?;
        let _no_batch_halfway = self.visible.read().unwrap_or_else(PoisonError::into_inner);
        Ok(Table { keyspace, snapshot: self.store.snapshot() })
    }

    fn named(&self, name: &str) -> Result<Keyspace> {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keyspace) = named.get(name) {
            return Ok(keyspace.clone());
        }
        let keyspace = self.store.keyspace(&format!("view-{name}"), small_table)?;
        named.insert(name.to_string(), keyspace.clone());
        Ok(keyspace)
    }

    /// Moves fresh entries of captures and digests into runs where there are many. May take its time.
    pub fn tend(&self) -> Result<()> {
        self.captures.tend()?;
        self.digests.tend()
    }

    /// Makes everything applied so far survive a loss of power.
    pub fn persist(&self) -> Result<()> {
        Ok(self.store.persist(fjall::PersistMode::SyncAll)?)
    }
}

/// A keyspace as it was at one moment: of every batch all or nothing. Walked as it stands, it would show a batch while that is put in,
/// and who remembers how far he got would step over the rest.
pub struct Table {
    keyspace: Keyspace,
    snapshot: fjall::Snapshot,
}

impl Table {
    /// All entries.
    pub fn iter(&self) -> fjall::Iter {
        self.snapshot.iter(&self.keyspace)
    }

    /// Entries between two keys.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl std::ops::RangeBounds<K>) -> fjall::Iter {
        self.snapshot.range(&self.keyspace, range)
    }

    /// Entries whose keys begin with this.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> fjall::Iter {
        self.snapshot.prefix(&self.keyspace, prefix)
    }
}

/// Changes to views that become visible together. Reading through the batch sees its own changes.
pub struct Batch<'v> {
    views: &'v Views,
    direct: fjall::OwnedWriteBatch,
    pending: HashMap<(String, Vec<u8>), Option<Vec<u8>>>,
    hide: Vec<Position>,
    bulk: Option<(captures::Bulk<'v>, digests::Bulk<'v>)>,
    entries: usize,
}

impl Batch<'_> {
    /// Whose removals count.
    pub fn listener(&self) -> Listener {
        self.views.listener
    }

    /// Sets a value of a view's keyspace.
    pub fn put(&mut self, keyspace: &str, key: &[u8], value: &[u8]) {
        self.pending.insert((keyspace.to_string(), key.to_vec()), Some(value.to_vec()));
    }

    /// Deletes a value of a view's keyspace.
    pub fn delete(&mut self, keyspace: &str, key: &[u8]) {
        self.pending.insert((keyspace.to_string(), key.to_vec()), None);
    }

    /// A value as it will be when this batch is committed.
    pub fn get(&self, keyspace: &str, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.pending.get(&(keyspace.to_string(), key.to_vec())) {
            Some(value) => Ok(value.clone()),
            None => self.views.get(keyspace, key),
        }
    }

    /// Folds a record into every view. Says whether the captures view could take it: what cannot be indexed (a URL of a
    /// megabyte) is kept all the same, and read by position.
    pub fn apply(&mut self, path: &Path, id: SegmentId, entry: &Entry) -> Result<bool> {
        let views = self.views;
        let position = Position { writer: id.writer, segment: id.number, record: entry.record };
        self.entries += 1;
        let mut taken = true;
        match &entry.note {
            Note::Capture(capture) if is_listed(capture) => match self.list(capture) {
                Ok(()) => {}
                Err(Error::Refused { .. }) => taken = false,
                Err(error) => return Err(error),
            },
            Note::Removal(block) => self.hide(block, id.writer)?,
            Note::Blank => {
                let mut value = self.get(HIDDEN, &position_key(position))?.unwrap_or(vec![1, 1]);
                value[1] = 1;
                self.put(HIDDEN, &position_key(position), &value);
                self.hide.push(position);
            }
            Note::Plain => pins::fold(&SeenRecord { position, path, entry }, self)?,
            _ => {}
        }
        let record = SeenRecord { position, path, entry };
        views.registered.iter().try_for_each(|view| view.apply(&record, self))?;
        Ok(taken)
    }

    fn list(&mut self, capture: &Capture) -> Result<()> {
        match &mut self.bulk {
            Some((captures, digests)) => {
                captures.push(capture)?;
                digests.push(capture)
            }
            None => {
                self.views.captures.put(capture, &mut self.direct)?;
                self.views.digests.put(capture, &mut self.direct);
                Ok(())
            }
        }
    }

    /// Records folded so far.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Hides what a removal may hide that stands in a segment of this writer. One whose signature does not hold hides nothing;
    /// `check` reports it.
    fn hide(&mut self, block: &[u8], stands_in: WriterKey) -> Result<()> {
        let Ok(removal) = Removal::parse(block) else { return Ok(()) };
        let id = remove::record_id(block);
        for position in removal.hides(stands_in, self.views.listener) {
            let key = position_key(position);
            // A record that is blank already stays so, in whatever order removal and rewriting are met.
            let blank = self.get(HIDDEN, &key)?.and_then(|value| value.get(1).copied()).unwrap_or(0);
            self.put(HIDDEN, &key, &[&[1, blank], id.as_uri().as_bytes()].concat());
            self.hide.push(position);
        }
        Ok(())
    }

    /// Says how far the views are in a segment once this batch is committed.
    pub fn mark(&mut self, id: SegmentId, mark: Mark) {
        self.direct.insert(&self.views.applied, segment_key(id), mark.encode());
    }

    /// The segment is not here any more.
    pub fn unmark(&mut self, id: SegmentId) {
        self.direct.remove(&self.views.applied, segment_key(id));
    }

    /// Makes the batch visible.
    pub fn commit(mut self) -> Result<()> {
        for ((keyspace, key), value) in std::mem::take(&mut self.pending) {
            let keyspace = self.views.named(&keyspace)?;
            match value {
                Some(value) => self.direct.insert(&keyspace, key, value),
                None => self.direct.remove(&keyspace, key),
            }
        }
        let staged = match self.bulk.take() {
            Some((captures, digests)) => Some((captures.stage(&mut self.direct)?, digests.stage(&mut self.direct)?)),
            None => None,
        };
        {
            let _nobody_looks = self.views.visible.write().unwrap_or_else(PoisonError::into_inner);
            self.direct.commit()?;
        }
        if let Some((captures, digests)) = staged {
            captures.publish();
            digests.publish();
        }
        self.views.hidden.hide(self.hide);
        self.views.commits.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// A store that was not made to its end, because the disk was full or the process was killed, cannot be opened again: it is
/// made anew. While a store is being made, a file beside it says so; its path is returned, to be deleted in the end.
fn begin_making(folder: &Path) -> Result<Option<PathBuf>> {
    let making = folder.join("making");
    if making.exists() {
        std::fs::remove_dir_all(folder).map_err(|error| Error::io("cannot delete", folder, error))?;
    }
    if folder.join("store").exists() {
        return Ok(None);
    }
    crate::settings::create_folder(folder)?;
    std::fs::write(&making, "").map_err(|error| Error::io("cannot write", &making, error))?;
    Ok(Some(making))
}

/// Whether the captures view lists it: what an index of its file lists, and conversions. Fields about a URL (links, timings)
/// are no captures of it; metadata and resources in any other form are.
pub fn is_listed(capture: &Capture) -> bool {
    match capture.kind {
        CaptureKind::Response | CaptureKind::Revisit | CaptureKind::Conversion => true,
        CaptureKind::Resource | CaptureKind::Metadata => capture.mime != own::FIELDS,
        CaptureKind::Request | CaptureKind::Other => false,
    }
}

fn segment_key(id: SegmentId) -> Vec<u8> {
    [id.writer.0.to_be_bytes(), id.number.to_be_bytes()].concat()
}

fn position_key(position: Position) -> Vec<u8> {
    [position.writer.0, position.segment, position.record].map(u32::to_be_bytes).concat()
}

fn position_of(key: &[u8]) -> Option<Position> {
    let part = |at: usize| key.get(at..at + 4)?.try_into().map(u32::from_be_bytes).ok();
    Some(Position { writer: WriterKey(part(0)?), segment: part(4)?, record: part(8)? })
}

impl From<Position> for SegmentId {
    fn from(position: Position) -> SegmentId {
        SegmentId { writer: position.writer, number: position.segment }
    }
}

/// An error of a view that cannot fold a record.
pub fn cannot_fold(record: &SeenRecord<'_>, what: impl Into<String>) -> Error {
    Error::Record { path: record.path.to_path_buf(), offset: record.entry.offset, what: what.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_positions_read_back() {
        let mark = Mark { generation: 1, records: 2, bytes: 1 << 40, sidecar_bytes: 4, sealed: true };
        assert_eq!(Mark::decode(&mark.encode()), Some(mark));
        assert_eq!((Mark::decode(&[]), Mark::decode(&[2; 26])), (None, None));
        let position = Position { writer: WriterKey(0xffff_fffe), segment: 1, record: u32::MAX };
        assert_eq!(position_of(&position_key(position)), Some(position));
        assert_eq!(position_of(&[1; 11]), None);
    }
}
