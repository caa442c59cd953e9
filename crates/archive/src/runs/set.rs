//! The runs of one view and its fresh entries, kept consistent through crashes.
//!
//! ```text
//!   fresh entries   keyspace named as the view; moved into a run when there are many
//!   list of runs    keyspace `runs`:  key | view | `/` | number 8 BE |   value | version 1 | age 8 BE |
//!   files           <number, at least 8 digits>.run in the view's folder
//! ```
//!
//! The order of every change: write and sync the run's file, sync its folder; then one atomic batch that lists it and
//! unlists or deletes what it replaces; then, when that batch is on disk, delete replaced files. After a crash the list
//! is right, and files it does not name are orphans, deleted on opening. Runs are ordered by age: of entries with equal
//! keys the youngest counts, and only neighbours in age are merged.

use super::codec::{Codec, filter_hash};
use super::file::{Run, RunFacts};
use super::scan::{Blocks, Bounds, Direction, Spot, Walk};
use super::sort::{Chunk, RunBuilder, remove};
use crate::limits::{BULK_CHUNK_BYTES, FRESH_TABLE_BYTES_MAX, MERGE_RUNS_MAX, SMALL_TABLE_BYTES_MAX, TIER_RUNS};
use crate::memory::Room;
use crate::{Error, Result};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode, Readable};
use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

const LIST_VERSION: u8 = 1;

/// A run and its place in the order of age.
#[derive(Clone)]
struct Listed {
    run: Arc<Run>,
    age: u64,
}

/// All runs of one view, with its fresh entries.
pub struct RunSet<C: Codec> {
    name: &'static str,
    folder: PathBuf,
    store: Database,
    fresh: Keyspace,
    list: Keyspace,
    /// Youngest first. Readers take this and a snapshot of the store together, so that an entry on its way from the
    /// store into a run is seen once.
    runs: RwLock<Arc<Vec<Listed>>>,
    fresh_entries: AtomicU64,
    /// More than these move into a run; the unit in which runs are measured.
    fresh_entries_max: u64,
    next_number: AtomicU64,
    blocks: Arc<Blocks<C>>,
    /// Held while fresh entries move into a run.
    moving: Mutex<()>,
    /// Written to by whoever puts entries into the store, while a batch is put in.
    putting: Arc<RwLock<()>>,
    /// Held while runs are merged.
    merging: Mutex<()>,
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing under these locks is left half done by a panic: what counts is in the store.
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a table of few values is made in the store.
pub(crate) fn small_table() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default().max_memtable_size(SMALL_TABLE_BYTES_MAX)
}

/// How a table of fresh entries is made in the store, which keeps to this for ever. What counts is usually [`Room::fresh_entries`].
fn fresh_table() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default().max_memtable_size(FRESH_TABLE_BYTES_MAX)
}

impl<C: Codec> RunSet<C> {
    /// Opens the runs of the view `name`, whose files are in `folder`; deletes files that the list does not name.
    pub fn open(store: &Database, name: &'static str, folder: &Path, room: Room) -> Result<RunSet<C>> {
        std::fs::create_dir_all(folder).map_err(|error| Error::io("cannot create", folder, error))?;
        let fresh = store.keyspace(name, fresh_table)?;
        let list = store.keyspace("runs", small_table)?;
        let mut runs = Vec::new();
        for guard in list.prefix(list_key(name, None)) {
            let (key, value) = guard.into_inner()?;
            let number = key.last_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes));
            let age = value.strip_prefix(&[LIST_VERSION]).and_then(|age| age.try_into().ok()).map(u64::from_be_bytes);
            let (Some(number), Some(age)) = (number, age) else {
                return Err(Error::Views { what: format!("the list of runs of {name} is not what was written") });
            };
            let run = Arc::new(Run::open(&run_path(folder, number), number, C::NUMBER)?);
            runs.push(Listed { run, age });
        }
        runs.sort_by_key(|listed| std::cmp::Reverse(listed.age));
        delete_orphans(folder, &runs)?;
        let newest = runs.iter().map(|listed| listed.age.max(listed.run.number())).max().unwrap_or(0);
        let fresh_entries = fresh.len()? as u64;
        Ok(RunSet {
            name,
            folder: folder.to_path_buf(),
            store: store.clone(),
            fresh,
            list,
            runs: RwLock::new(Arc::new(runs)),
            fresh_entries: AtomicU64::new(fresh_entries),
            fresh_entries_max: room.fresh_entries,
            next_number: AtomicU64::new(newest + 1),
            blocks: Arc::new(Blocks::new(room.block_bytes)),
            moving: Mutex::new(()),
            putting: Arc::default(),
            merging: Mutex::new(()),
        })
    }

    /// Entries are put into the store under this lock; without it, none may be put while fresh ones move into a run.
    pub fn put_under(self, putting: Arc<RwLock<()>>) -> RunSet<C> {
        RunSet { putting, ..self }
    }

    /// The keyspace of the fresh entries.
    pub fn fresh(&self) -> &Keyspace {
        &self.fresh
    }

    /// To be called for each entry *before* it is put into the store: readers ask the store only if it may hold some.
    pub fn expect_fresh(&self, entries: u64) {
        self.fresh_entries.fetch_add(entries, Ordering::SeqCst);
    }

    /// What the runs hold, youngest first.
    pub fn facts(&self) -> Vec<RunFacts> {
        self.runs().iter().map(|listed| listed.run.facts()).collect()
    }

    /// About how many entries are in the store.
    pub fn fresh_entries(&self) -> u64 {
        self.fresh_entries.load(Ordering::SeqCst)
    }

    fn runs(&self) -> Arc<Vec<Listed>> {
        self.runs.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn look(&self) -> (Arc<Vec<Listed>>, Option<fjall::Snapshot>) {
        let runs = self.runs.read().unwrap_or_else(PoisonError::into_inner);
        let snapshot = (self.fresh_entries() > 0).then(|| self.store.snapshot());
        (runs.clone(), snapshot)
    }

    fn fresh_in(
        &self,
        snapshot: &fjall::Snapshot,
        bounds: &Bounds,
        direction: Direction,
    ) -> Option<Box<dyn Iterator<Item = fjall::Guard> + Send>> {
        if bounds.is_empty() {
            return None;
        }
        let entries = match &bounds.end {
            Some(end) => snapshot.range(&self.fresh, bounds.start.as_slice()..end.as_slice()),
            None => snapshot.range(&self.fresh, bounds.start.as_slice()..),
        };
        Some(match direction {
            Direction::Forward => Box::new(entries),
            Direction::Backward => Box::new(entries.rev()),
        })
    }

    /// Walks over all entries in bounds.
    pub fn walk(&self, bounds: Bounds, direction: Direction) -> Walk<C> {
        let (runs, snapshot) = self.look();
        let fresh = snapshot.and_then(|snapshot| self.fresh_in(&snapshot, &bounds, direction));
        let runs = runs.iter().map(|listed| (listed.run.clone(), None));
        Walk::new(self.blocks.clone(), runs, fresh, bounds, direction, false)
    }

    /// Where entries whose key begins with `looked_for`, as the codec splits keys, may be. Several walks over them see
    /// the same entries.
    pub fn find(&self, looked_for: &[u8]) -> Result<Found<'_, C>> {
        let (runs, snapshot) = self.look();
        let hash = filter_hash(looked_for);
        let mut found = Found { set: self, runs: Vec::new(), snapshot };
        for listed in runs.iter() {
            if let Some(spot) = self.blocks.find(&listed.run, looked_for, hash)? {
                found.runs.push((listed.run.clone(), Some(spot)));
            }
        }
        Ok(found)
    }

    fn take_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::SeqCst)
    }

    fn path(&self, number: u64) -> PathBuf {
        run_path(&self.folder, number)
    }

    /// Makes a finished file ready to be listed.
    fn admit(&self, number: u64, age: u64) -> Result<Listed> {
        let path = self.path(number);
        let admitted = sync_folder(&self.folder).and_then(|()| Run::open(&path, number, C::NUMBER));
        let run = Arc::new(admitted.inspect_err(|_| remove(&path))?);
        Ok(Listed { run, age })
    }

    fn list_in(&self, batch: &mut OwnedWriteBatch, listed: &Listed) {
        let value = [&[LIST_VERSION], listed.age.to_be_bytes().as_slice()].concat();
        batch.insert(&self.list, list_key(self.name, Some(listed.run.number())), value);
    }

    /// Whether there are enough fresh entries for a run.
    pub fn wants_move(&self) -> bool {
        self.fresh_entries() > self.fresh_entries_max
    }

    /// Moves all fresh entries into a run. Appending may go on meanwhile.
    pub fn move_fresh(&self) -> Result<()> {
        let _moving = held(&self.moving);
        // A snapshot that is taken while a batch is put in may show the part of it that is there, and later all of it.
        let snapshot = {
            let _nobody_puts = self.putting.read().unwrap_or_else(PoisonError::into_inner);
            self.store.snapshot()
        };
        match self.write_fresh(&snapshot)? {
            Some(listed) => self.replace_fresh(&snapshot, listed),
            None => Ok(()),
        }
    }

    /// Writes the entries that were fresh at one moment into a run; `None` if there were none.
    fn write_fresh(&self, snapshot: &fjall::Snapshot) -> Result<Option<Listed>> {
        let number = self.take_number();
        let path = self.path(number);
        let mut builder: RunBuilder<C> = RunBuilder::create(&path)?;
        let mut moved = 0;
        for guard in snapshot.iter(&self.fresh) {
            let (key, value) = guard.into_inner()?;
            let Some(row) = C::alone(&key, &value) else {
                return Err(Error::Views { what: format!("a fresh entry of {} is not what was written", self.name) });
            };
            builder.push(&row)?;
            moved += 1;
        }
        if moved == 0 {
            return Ok(None);
        }
        builder.finish()?;
        self.admit(number, number).map(Some)
    }

    /// Lets a run take the place of the entries that were fresh at that moment. An entry that was put again since, because its segment
    /// was rewritten, stays: it is younger than the run. Where the snapshot shows more than the run took, all stay, and move another time.
    fn replace_fresh(&self, snapshot: &fjall::Snapshot, listed: Listed) -> Result<()> {
        let mut batch = self.store.batch().durability(Some(PersistMode::SyncAll));
        let nobody_puts = self.putting.read().unwrap_or_else(PoisonError::into_inner);
        let mut moved = 0;
        for guard in snapshot.iter(&self.fresh) {
            let (key, value) = guard.into_inner()?;
            if self.fresh.get(&key)?.is_some_and(|now| now == value) {
                batch.remove(&self.fresh, key);
            }
            moved += 1;
        }
        if moved != listed.run.facts().entries {
            remove(listed.run.path());
            return Ok(());
        }
        self.list_in(&mut batch, &listed);
        let mut runs = self.runs.write().unwrap_or_else(PoisonError::into_inner);
        // A failed commit may be on disk all the same, so that its file stays; if it is not, the file is an orphan.
        batch.commit()?;
        let mut changed = runs.to_vec();
        changed.insert(0, listed);
        *runs = Arc::new(changed);
        self.fresh_entries.fetch_sub(moved, Ordering::SeqCst);
        drop((runs, nobody_puts));
        // What moved would stay in the store's memory, dead, until as much again has come.
        self.fresh.rotate_memtable()?;
        Ok(())
    }

    /// Merges runs of similar size, if there are enough of them. Returns whether it did; call again until it does not.
    pub fn merge(&self) -> Result<bool> {
        let _merging = held(&self.merging);
        match self.due_for_merge() {
            Some(old) => self.merge_into_one(&old, |_| true).map(|()| true),
            None => Ok(false),
        }
    }

    /// Moves all fresh entries and merges all runs into one, without the rows that `keep` refuses.
    pub fn compact(&self, keep: impl Fn(&C::Row<'_>) -> bool) -> Result<()> {
        let _merging = held(&self.merging);
        self.move_fresh()?;
        while self.runs().len() > MERGE_RUNS_MAX {
            let oldest = self.runs().iter().rev().take(MERGE_RUNS_MAX).rev().cloned().collect::<Vec<_>>();
            self.merge_into_one(&oldest, &keep)?;
        }
        self.merge_into_one(&self.runs().to_vec(), keep)
    }

    /// The youngest neighbours of one size or below, if they are [`TIER_RUNS`] or more.
    fn due_for_merge(&self) -> Option<Vec<Listed>> {
        let runs = self.runs();
        let tier = |listed: &Listed| {
            let units = (listed.run.facts().entries / self.fresh_entries_max).max(1);
            units.ilog(TIER_RUNS as u64)
        };
        let highest = runs.iter().map(tier).max()?;
        for wanted in 0..=highest {
            for window in runs.split(|listed| tier(listed) > wanted) {
                if window.len() >= TIER_RUNS {
                    // The oldest of them: their neighbours on the other side are the larger ones.
                    let from = window.len().saturating_sub(MERGE_RUNS_MAX);
                    return Some(window[from..].to_vec());
                }
            }
        }
        None
    }

    fn merge_into_one(&self, old: &[Listed], keep: impl Fn(&C::Row<'_>) -> bool) -> Result<()> {
        let Some(age) = old.iter().map(|listed| listed.age).max() else { return Ok(()) };
        let number = self.take_number();
        let path = self.path(number);
        let merged = self.write_merged(&path, old.iter().map(|listed| listed.run.clone()), keep)?;
        let gone: HashSet<u64> = old.iter().map(|listed| listed.run.number()).collect();
        let mut batch = self.store.batch().durability(Some(PersistMode::SyncAll));
        for number in &gone {
            batch.remove(&self.list, list_key(self.name, Some(*number)));
        }
        let listed = if merged.entries > 0 { Some(self.admit(number, age)?) } else { None };
        match &listed {
            Some(listed) => self.list_in(&mut batch, listed),
            None => remove(&path),
        }
        let mut runs = self.runs.write().unwrap_or_else(PoisonError::into_inner);
        // A failed commit may be on disk all the same, so that its file stays; if it is not, the file is an orphan.
        batch.commit()?;
        let mut changed: Vec<Listed> =
            runs.iter().filter(|listed| !gone.contains(&listed.run.number())).cloned().chain(listed).collect();
        changed.sort_by_key(|listed| std::cmp::Reverse(listed.age));
        *runs = Arc::new(changed);
        drop(runs);
        // Walks that are under way keep the files open; the names can go.
        old.iter().for_each(|listed| remove(listed.run.path()));
        Ok(())
    }

    fn write_merged(
        &self,
        path: &Path,
        runs: impl IntoIterator<Item = Arc<Run>>,
        keep: impl Fn(&C::Row<'_>) -> bool,
    ) -> Result<RunFacts> {
        let all = Bounds::prefix(&[]);
        let runs = runs.into_iter().map(|run| (run, None));
        let mut walk = Walk::new(self.blocks.clone(), runs, None, all, Direction::Forward, false);
        let mut builder: RunBuilder<C> = RunBuilder::create(path)?;
        while let Some(span) = walk.next_span()? {
            for row in span.rows.clone() {
                if let Some(row) = span.block.row(row).filter(&keep) {
                    builder.push(&row)?;
                }
            }
        }
        builder.finish()
    }

    /// Begins to add many entries at once.
    pub fn bulk(&self) -> Bulk<'_, C> {
        Bulk { set: self, chunk: Chunk::default(), chunk_bytes: BULK_CHUNK_BYTES, written: Vec::new() }
    }
}

/// Where the entries of one key may be, at one moment.
pub struct Found<'a, C: Codec> {
    set: &'a RunSet<C>,
    runs: Vec<(Arc<Run>, Option<Spot>)>,
    snapshot: Option<fjall::Snapshot>,
}

impl<C: Codec> Found<'_, C> {
    /// Walks over entries in bounds, which must lie within what was looked for.
    pub fn walk(&self, bounds: Bounds, direction: Direction) -> Walk<C> {
        let fresh = self.snapshot.as_ref().and_then(|snapshot| self.set.fresh_in(snapshot, &bounds, direction));
        Walk::new(self.set.blocks.clone(), self.runs.iter().cloned(), fresh, bounds, direction, true)
    }
}

/// Many entries on their way into one run. Nothing of it is visible, and nothing stays after a crash, until it is staged
/// and the batch is committed.
///
/// Meant for entries that the view does not hold yet: a fresh entry with an equal key would win over them.
pub struct Bulk<'a, C: Codec> {
    set: &'a RunSet<C>,
    chunk: Chunk,
    chunk_bytes: usize,
    written: Vec<Arc<Run>>,
}

impl<'a, C: Codec> Bulk<'a, C> {
    /// Sorts in chunks of this many bytes instead of the usual bound.
    pub fn chunk_bytes(mut self, bytes: usize) -> Self {
        self.chunk_bytes = bytes;
        self
    }

    /// Adds an entry, in any order.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.chunk.push(key, value);
        if self.chunk.weight() >= self.chunk_bytes { self.write_chunk() } else { Ok(()) }
    }

    fn write_chunk(&mut self) -> Result<()> {
        self.chunk.sort();
        let number = self.set.take_number();
        let path = self.set.path(number);
        let mut builder: RunBuilder<C> = RunBuilder::create(&path)?;
        for (key, value) in self.chunk.iter() {
            let Some(row) = C::alone(key, value) else {
                return Err(Error::Refused { why: format!("an entry of {} is not one", self.set.name) });
            };
            builder.push(&row)?;
        }
        builder.finish()?;
        self.chunk.clear();
        let run = Run::open(&path, number, C::NUMBER).inspect_err(|_| remove(&path))?;
        self.written.push(Arc::new(run));
        if self.written.len() >= MERGE_RUNS_MAX { self.merge_written() } else { Ok(()) }
    }

    fn merge_written(&mut self) -> Result<()> {
        let number = self.set.take_number();
        let path = self.set.path(number);
        // Youngest first, so that of equal entries the last one counts.
        self.set.write_merged(&path, self.written.iter().rev().cloned(), |_| true)?;
        let run = Run::open(&path, number, C::NUMBER).inspect_err(|_| remove(&path))?;
        for old in std::mem::replace(&mut self.written, vec![Arc::new(run)]) {
            remove(old.path());
        }
        Ok(())
    }

    /// Puts what was added into `batch`: a run, or fresh entries if they are few. The caller commits the batch, with
    /// whatever must become true at the same moment, and then calls [`Staged::publish`].
    pub fn stage(mut self, batch: &mut OwnedWriteBatch) -> Result<Staged<'a, C>> {
        let set = self.set;
        if self.written.is_empty() && (self.chunk.len() as u64) < set.fresh_entries_max / 4 {
            set.expect_fresh(self.chunk.len() as u64);
            for (key, value) in self.chunk.iter() {
                batch.insert(&set.fresh, key, value);
            }
            return Ok(Staged { set, listed: None });
        }
        if self.chunk.len() > 0 {
            self.write_chunk()?;
        }
        self.chunk = Chunk::default();
        if self.written.len() > 1 {
            self.merge_written()?;
        }
        let Some(run) = self.written.pop() else { return Ok(Staged { set, listed: None }) };
        let listed = set.admit(run.number(), run.number())?;
        set.list_in(batch, &listed);
        Ok(Staged { set, listed: Some(listed) })
    }
}

impl<C: Codec> Drop for Bulk<'_, C> {
    fn drop(&mut self) {
        self.written.iter().for_each(|run| remove(run.path()));
    }
}

/// A run that becomes part of its view when the batch is committed.
#[must_use = "publish it when the batch is committed"]
pub struct Staged<'a, C: Codec> {
    set: &'a RunSet<C>,
    listed: Option<Listed>,
}

impl<C: Codec> Staged<'_, C> {
    /// Makes the run visible; the batch it was staged in is committed.
    pub fn publish(mut self) {
        let Some(listed) = self.listed.take() else { return };
        let mut runs = self.set.runs.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = runs.to_vec();
        changed.push(listed);
        changed.sort_by_key(|listed| std::cmp::Reverse(listed.age));
        *runs = Arc::new(changed);
    }
}

impl<C: Codec> Drop for Staged<'_, C> {
    fn drop(&mut self) {
        if let Some(listed) = &self.listed {
            remove(listed.run.path());
        }
    }
}

fn list_key(name: &str, number: Option<u64>) -> Vec<u8> {
    let mut key = name.as_bytes().to_vec();
    key.push(b'/');
    key.extend(number.iter().flat_map(|number| number.to_be_bytes()));
    key
}

fn run_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:08}.run"))
}

fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| Error::io("cannot sync", folder, error))
}

fn delete_orphans(folder: &Path, runs: &[Listed]) -> Result<()> {
    let listed: HashSet<&Path> = runs.iter().map(|listed| listed.run.path()).collect();
    let failed = |error| Error::io("cannot read", folder, error);
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "run") && !listed.contains(path.as_path()) {
            remove(&path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digests::DigestKeys;
    use crate::memory::Shares;
    use crate::runs::Pairs;

    #[test]
    fn an_entry_that_a_run_did_not_take_does_not_go_with_those_that_it_took() {
        let dir = tempfile::tempdir().unwrap();
        let store = Database::builder(dir.path().join("store")).open().unwrap();
        let room = Shares::of(1 << 20).digests;
        let set: RunSet<Pairs<DigestKeys>> = RunSet::open(&store, "digests", &dir.path().join("runs"), room).unwrap();
        let put = |number: u8| {
            set.expect_fresh(1);
            set.fresh.insert([&[2][..], &[number; 20], &[0; 20]].concat(), "value").unwrap();
        };
        put(1);
        let listed = set.write_fresh(&store.snapshot()).unwrap().unwrap();
        put(2);
        // The store shows more of it than it did.
        set.replace_fresh(&store.snapshot(), listed).unwrap();
        assert_eq!((set.fresh_entries(), set.facts().len()), (2, 0), "nothing moved");
        set.move_fresh().unwrap();
        let in_runs: u64 = set.facts().iter().map(|run| run.entries).sum();
        assert_eq!((set.fresh_entries(), in_runs), (0, 2));
    }

    #[test]
    fn an_entry_that_is_put_again_while_it_moves_keeps_its_new_value() {
        let dir = tempfile::tempdir().unwrap();
        let store = Database::builder(dir.path().join("store")).open().unwrap();
        let room = Shares::of(1 << 20).digests;
        let set: RunSet<Pairs<DigestKeys>> = RunSet::open(&store, "digests", &dir.path().join("runs"), room).unwrap();
        let put = |number: u8, value: &str| {
            set.expect_fresh(1);
            set.fresh.insert([&[2][..], &[number; 20], &[0; 20]].concat(), value).unwrap();
        };
        put(1, "old");
        put(2, "two");
        let snapshot = store.snapshot();
        let listed = set.write_fresh(&snapshot).unwrap().unwrap();
        put(1, "new");
        set.replace_fresh(&snapshot, listed).unwrap();
        assert_eq!((set.fresh_entries(), set.fresh.len().unwrap()), (1, 1));
        for _ in 0..2 {
            let mut walk = set.walk(Bounds::prefix(&[]), Direction::Forward);
            let mut values = Vec::new();
            while let Some(span) = walk.next_span().unwrap() {
                let of_row = |row| String::from_utf8(span.block.row(row).unwrap().value.to_vec()).unwrap();
                values.extend(span.rows.clone().map(of_row));
            }
            assert_eq!(values, ["new", "two"]);
            set.move_fresh().unwrap();
        }
    }
}
