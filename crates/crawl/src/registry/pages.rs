//! Files that are changed in place, page by page, and that go back to the last checkpoint when they are opened.
//!
//! Pages live in a cache of fixed size. A changed page stays there until room is needed or a checkpoint comes; then all changed
//! pages are written at once, and before that, for each page that the last checkpoint has and that was not yet changed on disk
//! since, its old bytes go to the journal, which is synced first (see `journal`). So at any moment the files on disk plus the
//! journal are the last checkpoint.
//!
//! ```text
//!   page   | content 4,080 | checkpoint under which it was written 8 | checksum 8 |
//! ```
//! The checksum is seeded with file and page number: a page in a wrong place does not pass for another.

use super::append::open_at_least;
use super::codec::{get, set};
use super::error::{Error, Result};
use super::journal::Journal;
use super::limits::{PAGE_BYTES, PAGES_MIN};
use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasherDefault, Hasher};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes of a page that its user has.
pub(super) const CONTENT_BYTES: usize = PAGE_BYTES - 16;
const WRITTEN_AT: usize = CONTENT_BYTES;
const CHECKSUM_AT: usize = CONTENT_BYTES + 8;

/// The files, in the order in which checkpoints and journals number them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum In {
    States,
    Hosts,
    Queues,
    Memories,
}

pub(super) const FILES: [(In, &str); 4] =
    [(In::States, "states"), (In::Hosts, "hosts"), (In::Queues, "queues"), (In::Memories, "memories")];

struct PageFile {
    file: File,
    path: PathBuf,
    pages: u64,
    /// Pages that the last checkpoint has.
    checkpointed: u64,
    /// One bit for each of those whose old bytes are in the journal.
    journaled: Vec<u64>,
}

/// One page in memory.
#[derive(Clone, Copy)]
struct Held {
    file: In,
    page: u64,
    changed: bool,
    /// Used since the hand passed.
    used: bool,
}

pub(super) struct Pages {
    files: Vec<PageFile>,
    journal: Journal,
    /// The checkpoint that stands.
    checkpoint: u64,
    held: Vec<Held>,
    bytes: Vec<u8>,
    places: HashMap<u64, u32, BuildHasherDefault<Mixed>>,
    room: usize,
    hand: usize,
}

impl Pages {
    /// Opens the files as the checkpoint of this number left them: the journal is undone, and what was added since cut off.
    pub fn open(folder: &Path, checkpoint: u64, pages: [u64; FILES.len()], room_bytes: usize) -> Result<Pages> {
        let (mut journal, undo) = Journal::open(folder.join("journal"), checkpoint)?;
        let mut files = Vec::new();
        for ((_, name), pages) in FILES.into_iter().zip(pages) {
            let path = folder.join(name);
            let length = pages.checked_mul(PAGE_BYTES as u64);
            let length = length.ok_or_else(|| Error::damaged(&folder.join("checkpoint"), "a file is too long"))?;
            let file = open_at_least(&path, length)?;
            files.push(PageFile {
                file,
                path,
                pages,
                checkpointed: pages,
                journaled: vec![0; pages.div_ceil(64) as usize],
            });
        }
        for entry in undo {
            let (number, page, bytes) = entry?;
            let Some(file) = files.get(usize::from(number)).filter(|file| page < file.checkpointed) else {
                return Err(Error::damaged(journal.path(), "it names a page that the checkpoint does not have"));
            };
            file.write(page, &bytes)?;
        }
        for file in &files {
            file.file.sync_data().map_err(|error| Error::io("cannot sync", &file.path, error))?;
        }
        journal.clear()?;
        let room = (room_bytes / PAGE_BYTES).max(PAGES_MIN);
        Ok(Pages {
            files,
            journal,
            checkpoint,
            held: Vec::with_capacity(room),
            // Taken from the system as pages come: a small crawl, or a command that only asks, has few.
            bytes: Vec::with_capacity(room * PAGE_BYTES),
            places: HashMap::with_capacity_and_hasher(room * 2, BuildHasherDefault::default()),
            room,
            hand: 0,
        })
    }

    pub fn path(&self, file: In) -> &Path {
        &self.files[file as usize].path
    }

    /// Pages of a file.
    pub fn count(&self, file: In) -> u64 {
        self.files[file as usize].pages
    }

    pub fn read(&mut self, file: In, page: u64) -> Result<&[u8]> {
        let place = self.place(file, page)?;
        Ok(&self.bytes[place * PAGE_BYTES..][..CONTENT_BYTES])
    }

    pub fn change(&mut self, file: In, page: u64) -> Result<&mut [u8]> {
        let place = self.place(file, page)?;
        self.held[place].changed = true;
        Ok(&mut self.bytes[place * PAGE_BYTES..][..CONTENT_BYTES])
    }

    /// Adds an empty page at the end of a file and says its number.
    pub fn add(&mut self, file: In) -> Result<u64> {
        let place = self.free_place()?;
        let page = self.files[file as usize].pages;
        self.files[file as usize].pages += 1;
        self.bytes[place * PAGE_BYTES..][..PAGE_BYTES].fill(0);
        self.hold(place, Held { file, page, changed: true, used: true });
        Ok(page)
    }

    fn place(&mut self, file: In, page: u64) -> Result<usize> {
        if let Some(place) = self.places.get(&id(file, page)) {
            let place = *place as usize;
            self.held[place].used = true;
            return Ok(place);
        }
        if page >= self.files[file as usize].pages {
            return Err(Error::damaged(self.path(file), format!("page {page} is named, but beyond its end")));
        }
        let place = self.free_place()?;
        let bytes = &mut self.bytes[place * PAGE_BYTES..][..PAGE_BYTES];
        let of = &self.files[file as usize];
        of.read(page, bytes)?;
        if get(bytes, CHECKSUM_AT, 8) != checksum(bytes, id(file, page)) {
            return Err(Error::damaged(&of.path, format!("page {page} does not match its checksum")));
        }
        // Written after the checkpoint, but neither by us nor undone: the journal lost something.
        if page < of.checkpointed && !of.is_journaled(page) && get(bytes, WRITTEN_AT, 8) > self.checkpoint {
            return Err(Error::damaged(&of.path, format!("page {page} is younger than the checkpoint")));
        }
        self.hold(place, Held { file, page, changed: false, used: true });
        Ok(place)
    }

    fn hold(&mut self, place: usize, held: Held) {
        self.held[place] = held;
        self.places.insert(id(held.file, held.page), place as u32);
    }

    /// A place for another page: the first that was not used since the hand last passed.
    fn free_place(&mut self) -> Result<usize> {
        if self.held.len() < self.room {
            self.held.push(NOTHING);
            self.bytes.resize(self.held.len() * PAGE_BYTES, 0);
            return Ok(self.held.len() - 1);
        }
        loop {
            let place = self.hand;
            self.hand = (self.hand + 1) % self.room;
            let held = &mut self.held[place];
            if held.used {
                held.used = false;
                continue;
            }
            if held.changed {
                self.write_changed()?;
            }
            let held = std::mem::replace(&mut self.held[place], NOTHING);
            if held.page != NOTHING.page {
                self.places.remove(&id(held.file, held.page));
            }
            return Ok(place);
        }
    }

    /// Writes all changed pages, the old bytes of each to the journal first.
    fn write_changed(&mut self) -> Result<()> {
        let mut changed: Vec<usize> = (0..self.held.len()).filter(|place| self.held[*place].changed).collect();
        changed.sort_unstable_by_key(|place| id(self.held[*place].file, self.held[*place].page));
        let mut old = [0; PAGE_BYTES];
        for place in &changed {
            let Held { file, page, .. } = self.held[*place];
            let of = &self.files[file as usize];
            if page < of.checkpointed && !of.is_journaled(page) {
                of.read(page, &mut old)?;
                self.journal.append(self.checkpoint, file as u8, page, &old)?;
            }
        }
        self.journal.sync()?;
        for place in changed {
            let Held { file, page, .. } = self.held[place];
            let bytes = &mut self.bytes[place * PAGE_BYTES..][..PAGE_BYTES];
            set(bytes, WRITTEN_AT, 8, self.checkpoint + 1);
            let sum = checksum(bytes, id(file, page));
            set(bytes, CHECKSUM_AT, 8, sum);
            let of = &mut self.files[file as usize];
            of.write(page, bytes)?;
            if page < of.checkpointed {
                of.journaled[page as usize / 64] |= 1 << (page % 64);
            }
            self.held[place].changed = false;
        }
        Ok(())
    }

    /// Makes everything durable; what it returns is for the checkpoint.
    pub fn sync(&mut self) -> Result<[u64; FILES.len()]> {
        self.write_changed()?;
        for file in &self.files {
            file.file.sync_data().map_err(|error| Error::io("cannot sync", &file.path, error))?;
        }
        Ok(FILES.map(|(file, _)| self.count(file)))
    }

    /// Called when the checkpoint of this number stands: from now on it is what the files go back to.
    pub fn checkpointed(&mut self, checkpoint: u64) -> Result<()> {
        self.checkpoint = checkpoint;
        for file in &mut self.files {
            file.checkpointed = file.pages;
            file.journaled.clear();
            file.journaled.resize(file.pages.div_ceil(64) as usize, 0);
        }
        self.journal.clear()
    }

    pub fn memory_bytes(&self) -> usize {
        let journaled: usize = self.files.iter().map(|file| file.journaled.capacity() * 8).sum();
        self.bytes.capacity() + self.held.capacity() * size_of::<Held>() + self.places.capacity() * 13 + journaled
    }

    pub fn disk_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.pages * PAGE_BYTES as u64).sum()
    }
}

const NOTHING: Held = Held { file: In::States, page: u64::MAX, changed: false, used: false };

impl PageFile {
    fn read(&self, page: u64, into: &mut [u8]) -> Result<()> {
        self.file
            .read_exact_at(into, page * PAGE_BYTES as u64)
            .map_err(|error| Error::io("cannot read", &self.path, error))
    }

    fn write(&self, page: u64, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all_at(bytes, page * PAGE_BYTES as u64)
            .map_err(|error| Error::io("cannot write", &self.path, error))
    }

    fn is_journaled(&self, page: u64) -> bool {
        self.journaled[page as usize / 64] >> (page % 64) & 1 == 1
    }
}

fn id(file: In, page: u64) -> u64 {
    (file as u64) << 56 | page
}

fn checksum(bytes: &[u8], id: u64) -> u64 {
    xxh3_64_with_seed(&bytes[..CHECKSUM_AT], id)
}

/// Page numbers are ours, not a stranger's: one multiplication spreads them well enough.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}
