//! Which fingerprints are known, and the number of each: a table of the newest in memory, sorted runs of the others on disk.
//!
//! Numbers are dense and given in the order of adding, so the table is a list (the index of a fingerprint says its number) and
//! a hash table of indices. The same list is a log on disk, from which it is read back. When the list is full it becomes a run. Runs of one size are merged, step by step, while further
//! fingerprints are added. Fingerprints that were found on disk stand in a small cache, because links repeat.

use super::append::Append;
use super::blocks::Blocks;
use super::error::{Error, Result};
use super::filter::Filter;
use super::fingerprint::Fingerprint;
use super::limits::{BLOCK_KEYS, FENCES_PER_RUN_MAX, MERGE_KEYS_PER_INSERT, RUNS_PER_LEVEL};
use super::merge::Merge;
use super::run::{Run, Writer};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3Default;

/// How much memory it may use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Fingerprints in the table.
    pub active_keys: usize,
    /// Fingerprints in the cache of those found on disk.
    pub recent_keys: usize,
    /// Bytes of filters; runs beyond that are searched without.
    pub filter_bytes: usize,
    /// Bytes of blocks of runs.
    pub block_bytes: usize,
}

/// What a checkpoint says of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// Id and number of fingerprints of each run.
    pub runs: Vec<(u64, u64)>,
    /// The number of the next file.
    pub next_file: u64,
    /// Fingerprints in runs.
    pub in_runs: u64,
    /// The log of those in the table: its id, how many there are, and the checksum over them.
    pub fresh: (u64, u64, u64),
}

pub(super) struct Seen {
    folder: PathBuf,
    name: &'static str,
    room: Room,
    /// The number of the first fingerprint in the table.
    base: u64,
    active: Vec<Fingerprint>,
    /// The same on disk: fingerprints one behind the other, 16 bytes each.
    fresh: Append,
    fresh_id: u64,
    fresh_sum: Xxh3Default,
    /// By fingerprint: index into the table plus one, in the low bits, and above them bits of the fingerprint, so that another one is
    /// mostly told apart without a look into the table; zero is free. Its length is a power of two and grows with the table, so that
    /// what little a small crawl knows stays close together.
    slots: Vec<u32>,
    index_mask: u32,
    /// Fingerprints found in runs lately, each with its number plus one. Empty until there is a run.
    recent: Vec<Recent>,
    runs: Vec<Run>,
    next_file: u64,
    /// At most one for each level.
    merges: Vec<Merge>,
    blocks: Blocks,
    /// Runs written since the last checkpoint, and files that it names but the next one will not.
    unsynced: Vec<u64>,
    given_up: Vec<PathBuf>,
}

/// High half, low half, number plus one: zero is nobody.
type Recent = [u64; 3];

/// A merge goes on after this many were added: often enough to be unnoticed, seldom enough to cost nothing itself.
const STEP_EVERY: usize = 16;

/// Slots of an empty table; a power of two.
const SLOTS_FIRST: usize = 1 << 12;

impl Seen {
    /// Opens what a checkpoint says.
    pub fn open(folder: &Path, name: &'static str, room: Room, written: &Written) -> Result<Seen> {
        let active_keys = room.active_keys.clamp(BLOCK_KEYS, 1 << 30);
        let room = Room { active_keys, ..room };
        let (fresh_id, fresh_keys, fresh_sum) = written.fresh;
        let fresh_bytes = fresh_keys.checked_mul(16);
        let fresh_bytes = fresh_bytes.ok_or_else(|| Error::damaged(&folder.join("checkpoint"), "a log is too long"))?;
        let mut seen = Seen {
            folder: folder.to_owned(),
            name,
            room,
            base: written.in_runs,
            active: Vec::with_capacity(active_keys),
            fresh: Append::open(fresh_path(folder, name, fresh_id), fresh_bytes)?,
            fresh_id,
            fresh_sum: Xxh3Default::new(),
            slots: vec![0; SLOTS_FIRST],
            index_mask: (active_keys as u32 + 1).next_power_of_two() - 1,
            recent: Vec::new(),
            runs: Vec::new(),
            next_file: written.next_file,
            merges: Vec::new(),
            blocks: Blocks::new(room.block_bytes),
            unsynced: Vec::new(),
            given_up: Vec::new(),
        };
        for &(id, keys) in &written.runs {
            let left = room.filter_bytes.saturating_sub(seen.filter_bytes());
            seen.runs.push(Run::open(&seen.path(id), id, keys, left, FENCES_PER_RUN_MAX)?);
        }
        let keys = written.runs.iter().try_fold(0u64, |sum, (_, keys)| sum.checked_add(*keys));
        if keys != Some(written.in_runs) {
            return Err(Error::damaged(&folder.join("checkpoint"), "its runs do not hold what it says"));
        }
        seen.sweep()?;
        seen.begin_merges()?;
        seen.remember(fresh_keys, fresh_sum)?;
        Ok(seen)
    }

    /// Reads the table back from its log.
    fn remember(&mut self, keys: u64, sum: u64) -> Result<()> {
        let mut left = keys;
        let mut at = 0;
        let fits = keys <= self.room.active_keys as u64;
        let mut log = None;
        if !fits {
            // Less memory than last time: what does not fit becomes runs, under a new log.
            let fresh = self.next_fresh()?;
            log = Some(std::mem::replace(&mut self.fresh, fresh));
        }
        let mut read_sum = Xxh3Default::new();
        let mut bytes = vec![0; 65_536];
        while left > 0 {
            let part = &mut bytes[..(left.min(4_096) * 16) as usize];
            log.as_ref().unwrap_or(&self.fresh).read(at, part)?;
            read_sum.update(part);
            for key in part.as_chunks().0 {
                let key = u128::from_le_bytes(*key);
                match fits {
                    true => self.put(key),
                    false => _ = self.add(key)?,
                }
            }
            at += part.len() as u64;
            left -= part.len() as u64 / 16;
        }
        if read_sum.digest() != sum && keys > 0 {
            let path = log.as_ref().unwrap_or(&self.fresh).path();
            return Err(Error::damaged(path, "it does not match its checksum"));
        }
        match log {
            Some(log) => self.given_up.push(log.path().to_owned()),
            None => self.fresh_sum = read_sum,
        }
        Ok(())
    }

    /// A new, empty log. The one before stays until a checkpoint no longer names it.
    fn next_fresh(&mut self) -> Result<Append> {
        self.fresh_id = self.claim();
        self.fresh_sum = Xxh3Default::new();
        Append::open(fresh_path(&self.folder, self.name, self.fresh_id), 0)
    }

    fn path(&self, id: u64) -> PathBuf {
        self.folder.join(format!("{}-{id:08}.run", self.name))
    }

    /// The number the next fingerprint gets.
    pub fn next(&self) -> u64 {
        self.base + self.active.len() as u64
    }

    pub fn find(&mut self, key: Fingerprint) -> Result<Option<u64>> {
        if self.runs.is_empty() {
            return Ok(self.slot(key).1.map(|index| self.base + index as u64));
        }
        if self.recent.is_empty() {
            self.recent.resize(self.room.recent_keys.next_power_of_two().max(1), [0; 3]);
        }
        let (high, low) = ((key >> 64) as u64, key as u64);
        let recent = low as usize & (self.recent.len() - 1);
        if let [found_high, found_low, number @ 1..=u64::MAX] = self.recent[recent]
            && (found_high, found_low) == (high, low)
        {
            return Ok(Some(number - 1));
        }
        if let Some(index) = self.slot(key).1 {
            return Ok(Some(self.base + index as u64));
        }
        for run in &self.runs {
            if let Some(number) = run.find(key, &mut self.blocks)? {
                self.recent[recent] = [high, low, number + 1];
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// The slot where a fingerprint is or would be, and its index if it is there.
    fn slot(&self, key: Fingerprint) -> (usize, Option<usize>) {
        let mask = self.slots.len() - 1;
        // Other bits than the cache uses, so that those who share a place there do not share one here.
        let mut slot = (key >> 32) as usize & mask;
        let tag = self.tag(key);
        loop {
            let held = self.slots[slot];
            if held == 0 {
                return (slot, None);
            }
            let index = (held & self.index_mask) as usize - 1;
            if held & !self.index_mask == tag && self.active[index] == key {
                return (slot, Some(index));
            }
            slot = (slot + 1) & mask;
        }
    }

    fn tag(&self, key: Fingerprint) -> u32 {
        (key >> 96) as u32 & !self.index_mask
    }

    /// Adds a fingerprint that is not known and says its number.
    pub fn add(&mut self, key: Fingerprint) -> Result<u64> {
        if self.active.len() == self.room.active_keys {
            self.flush()?;
        }
        let bytes = key.to_le_bytes();
        self.fresh.append(&bytes)?;
        self.fresh_sum.update(&bytes);
        self.put(key);
        if self.active.len().is_multiple_of(STEP_EVERY) {
            self.step(MERGE_KEYS_PER_INSERT * STEP_EVERY as u64)?;
        }
        Ok(self.next() - 1)
    }

    fn put(&mut self, key: Fingerprint) {
        if (self.active.len() + 1) * 3 / 2 > self.slots.len() {
            self.grow();
        }
        let slot = self.slot(key).0;
        self.active.push(key);
        self.slots[slot] = self.active.len() as u32 | self.tag(key);
    }

    /// Twice as many slots.
    fn grow(&mut self) {
        let count = self.slots.len() * 2;
        self.slots.clear();
        self.slots.resize(count, 0);
        for index in 0..self.active.len() {
            let key = self.active[index];
            let slot = self.slot(key).0;
            self.slots[slot] = (index as u32 + 1) | self.tag(key);
        }
    }

    /// Writes the table as a run and empties it.
    fn flush(&mut self) -> Result<()> {
        let keys = self.active.len();
        // The top of each fingerprint beside its index: eight bytes to sort instead of sixteen and a look aside.
        let index_bits = usize::BITS - keys.leading_zeros();
        let mask = (1u64 << index_bits) - 1;
        let top = |key: Fingerprint| ((key >> 64) as u64) & !mask;
        let mut order: Vec<u64> = self.active.iter().enumerate().map(|(at, key)| top(*key) | at as u64).collect();
        order.sort_unstable_by(|a, b| {
            (a & !mask)
                .cmp(&(b & !mask))
                .then_with(|| self.active[(a & mask) as usize].cmp(&self.active[(b & mask) as usize]))
        });
        let filter = self.filter_for(keys as u64);
        let id = self.claim();
        let mut writer = Writer::create(self.path(id), id, 0, filter)?;
        for at in order {
            let at = (at & mask) as usize;
            writer.push(self.active[at], self.base + at as u64)?;
        }
        let run = writer.finish(FENCES_PER_RUN_MAX)?;
        self.adopt(run)?;
        self.base += keys as u64;
        self.active.clear();
        self.slots.fill(0);
        let fresh = self.next_fresh()?;
        self.given_up.push(std::mem::replace(&mut self.fresh, fresh).path().to_owned());
        Ok(())
    }

    /// Takes a finished run in; larger runs first, because a fingerprint is more often there.
    fn adopt(&mut self, run: Run) -> Result<()> {
        self.unsynced.push(run.id);
        let at = self.runs.partition_point(|other| other.keys >= run.keys);
        self.runs.insert(at, run);
        self.begin_merges()
    }

    fn claim(&mut self) -> u64 {
        self.next_file += 1;
        self.next_file - 1
    }

    /// An empty filter for so many keys, if the memory for filters allows it once larger runs gave up theirs.
    fn filter_for(&mut self, keys: u64) -> Option<Filter> {
        let bytes = Filter::bytes_for(keys);
        if bytes > self.room.filter_bytes {
            return None;
        }
        for at in 0..self.runs.len() {
            if self.filter_bytes() + bytes <= self.room.filter_bytes {
                break;
            }
            self.runs[at].filter = None;
        }
        (self.filter_bytes() + bytes <= self.room.filter_bytes).then(|| Filter::new(keys))
    }

    fn filter_bytes(&self) -> usize {
        let held: usize = self.runs.iter().filter_map(|run| run.filter.as_ref()).map(Filter::bytes).sum();
        held + self.merges.iter().map(|merge| merge.writer().filter_bytes()).sum::<usize>()
    }

    /// Begins to merge the runs of every level that has enough. Each level has its own merge, so that a long one does not keep
    /// the small runs waiting, whose number it would let grow.
    fn begin_merges(&mut self) -> Result<()> {
        let highest = self.runs.iter().map(|run| run.level).max().unwrap_or_default();
        for level in 0..=highest {
            let of_level = |run: &&Run| run.level == level;
            let merging = self.merges.iter().any(|merge| merge.level == level);
            if merging || self.runs.iter().filter(of_level).count() < RUNS_PER_LEVEL {
                continue;
            }
            let keys = self.runs.iter().filter(of_level).map(|run| run.keys).sum();
            let filter = self.filter_for(keys);
            let id = self.claim();
            let inputs: Vec<&Run> = self.runs.iter().filter(of_level).collect();
            self.merges.push(Merge::begin(&inputs, self.path(id), id, level, filter)?);
        }
        Ok(())
    }

    /// Each merge goes on by so many fingerprints.
    fn step(&mut self, count: u64) -> Result<()> {
        let mut at = 0;
        while at < self.merges.len() {
            let merge = &mut self.merges[at];
            let inputs: Vec<&Run> =
                merge.inputs.iter().filter_map(|id| self.runs.iter().find(|run| run.id == *id)).collect();
            if !merge.step(&inputs, count)? {
                at += 1;
                continue;
            }
            let merge = self.merges.swap_remove(at);
            let ids = merge.inputs.clone();
            let run = merge.finish(FENCES_PER_RUN_MAX)?;
            for gone in self.runs.extract_if(.., |run| ids.contains(&run.id)) {
                self.given_up.push(gone.path().to_owned());
            }
            self.unsynced.retain(|id| !ids.contains(id));
            self.adopt(run)?;
        }
        Ok(())
    }

    /// Makes the runs durable; what it returns is for the checkpoint.
    pub fn sync(&mut self) -> Result<Written> {
        for run in self.runs.iter().filter(|run| self.unsynced.contains(&run.id)) {
            run.sync()?;
        }
        self.unsynced.clear();
        let runs = self.runs.iter().map(|run| (run.id, run.keys)).collect();
        let fresh = (self.fresh_id, self.fresh.sync()? / 16, self.fresh_sum.digest());
        Ok(Written { runs, next_file: self.next_file, in_runs: self.base, fresh })
    }

    /// Called when the checkpoint stands: files that it no longer names are deleted.
    pub fn checkpointed(&mut self) -> Result<()> {
        for path in self.given_up.drain(..) {
            std::fs::remove_file(&path).map_err(|error| Error::io("cannot delete", &path, error))?;
        }
        Ok(())
    }

    /// Deletes what the last checkpoint does not name: the work of a process that ended before its next one.
    fn sweep(&self) -> Result<()> {
        let failed = |error| Error::io("cannot list", &self.folder, error);
        let named: Vec<&Path> = self.runs.iter().map(Run::path).chain([self.fresh.path()]).collect();
        for file in std::fs::read_dir(&self.folder).map_err(failed)? {
            let path = file.map_err(failed)?.path();
            let ours = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| {
                let ending = name.strip_prefix(self.name).filter(|rest| rest.starts_with('-'));
                ending.is_some_and(|rest| rest.ends_with(".run") || rest.ends_with(".new"))
            });
            if ours && !named.contains(&path.as_path()) {
                std::fs::remove_file(&path).map_err(|error| Error::io("cannot delete", &path, error))?;
            }
        }
        Ok(())
    }

    pub fn memory_bytes(&self) -> usize {
        self.active.capacity() * 16
            + self.slots.len() * 4
            + self.recent.len() * size_of::<Recent>()
            + self.fresh.memory_bytes()
            + self.blocks.memory_bytes()
            + self.runs.iter().map(Run::memory_bytes).sum::<usize>()
            + self.merges.iter().map(Merge::memory_bytes).sum::<usize>()
    }

    pub fn disk_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.file_bytes).sum::<u64>() + self.fresh.length()
    }
}

fn fresh_path(folder: &Path, name: &str, id: u64) -> PathBuf {
    folder.join(format!("{name}-{id:08}.new"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { active_keys: 100, recent_keys: 64, filter_bytes: 2_000, block_bytes: 4_096 };

    fn key(n: u64) -> Fingerprint {
        u128::from_be_bytes(blake3::hash(&n.to_le_bytes()).as_bytes()[..16].try_into().unwrap())
    }

    #[test]
    fn everything_added_is_found_and_nothing_else_through_merges_and_reopening() {
        let folder = tempfile::tempdir().unwrap();
        let mut written = Written::default();
        let mut count = 0;
        for round in 1..12u64 {
            // Now and then with less memory than before.
            let room = Room { active_keys: if round % 3 == 0 { 60 } else { 100 }, ..ROOM };
            let mut seen = Seen::open(folder.path(), "t", room, &written).unwrap();
            assert_eq!(seen.next(), count);
            for n in count..count + round * 700 {
                assert_eq!(seen.find(key(n)).unwrap(), None);
                assert_eq!(seen.add(key(n)).unwrap(), n);
                assert_eq!(seen.find(key(n / 2)).unwrap(), Some(n / 2));
            }
            count += round * 700;
            assert!((0..count).all(|n| seen.find(key(n)).unwrap() == Some(n)));
            assert!((count..count + 1_000).all(|n| seen.find(key(n)).unwrap().is_none()));
            assert!(seen.filter_bytes() <= ROOM.filter_bytes);
            assert!(seen.runs.len() < 20, "{} runs", seen.runs.len());
            written = seen.sync().unwrap();
            seen.checkpointed().unwrap();
        }
        let files = std::fs::read_dir(folder.path()).unwrap().count();
        assert!(files <= written.runs.len() + 4, "{files} files, {} runs", written.runs.len());
    }

    #[test]
    fn a_missing_run_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let mut seen = Seen::open(folder.path(), "t", ROOM, &Written::default()).unwrap();
        (0..150).for_each(|n| assert_eq!(seen.add(key(n)).unwrap(), n));
        let written = seen.sync().unwrap();
        std::fs::remove_file(seen.runs[0].path()).unwrap();
        let error = Seen::open(folder.path(), "t", ROOM, &written).err().unwrap();
        assert!(error.to_string().contains("skep rebuild"), "{error}");
    }
}
