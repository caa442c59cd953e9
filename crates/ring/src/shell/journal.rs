//! What survives a restart, beside the archive: one file to which is appended, synced before anything that follows leaves the machine.
//!
//! ```text
//!  settings/ring.log   | "skep ring 1\n" | then for each: length 4 LE | first 8 bytes of the BLAKE3 | postcard of what is kept |
//! ```
//! A torn end is cut off: it was not synced, so nothing followed from it. When the file has grown, what still counts is written anew.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::fact::Fact;
use crate::genesis::Slice;
use crate::key::Key;
use crate::limits::{CHAIN_KEPT_MAX, JOURNAL_BYTES_MIN, JOURNAL_ENTRY_BYTES_MAX};
use crate::node::Kept;

const TITLE: &[u8] = b"skep ring 1\n";

/// The file, as far as it is whole.
pub struct Journal {
    path: PathBuf,
    file: File,
    bytes: u64,
    compact_at: u64,
}

impl Journal {
    /// Opens the journal, or makes it; returns what was kept.
    pub fn open(path: &Path) -> io::Result<(Journal, Vec<Kept>)> {
        let kept = match std::fs::read(path) {
            Ok(bytes) => compacted(read(&bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let (file, bytes) = write(path, &kept)?;
        let compact_at = (4 * bytes).max(JOURNAL_BYTES_MIN);
        Ok((Journal { path: path.to_path_buf(), file, bytes, compact_at }, kept))
    }

    /// Appends; durable when this returns.
    pub fn keep(&mut self, kept: &[Kept]) -> io::Result<()> {
        let mut out = Vec::new();
        kept.iter().for_each(|kept| encode(kept, &mut out));
        // Over what an earlier try left half written, for want of room: behind that nothing would ever be read.
        self.file.write_all_at(&out, self.bytes)?;
        self.file.sync_data()?;
        self.bytes += out.len() as u64;
        if self.bytes >= self.compact_at {
            let kept = compacted(read(&std::fs::read(&self.path)?)?);
            (self.file, self.bytes) = write(&self.path, &kept)?;
            self.compact_at = (4 * self.bytes).max(JOURNAL_BYTES_MIN);
        }
        Ok(())
    }
}

fn encode(kept: &Kept, out: &mut Vec<u8>) {
    let bytes = postcard::to_allocvec(kept).expect("plain data encodes");
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(&blake3::hash(&bytes).as_bytes()[..8]);
    out.extend_from_slice(&bytes);
}

fn read(bytes: &[u8]) -> io::Result<Vec<Kept>> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "not a journal of this version");
    let mut rest = bytes.strip_prefix(TITLE).ok_or_else(wrong)?;
    let mut kept = Vec::new();
    while let Some((one, after)) = next(rest) {
        kept.push(one);
        rest = after;
    }
    Ok(kept)
}

fn next(bytes: &[u8]) -> Option<(Kept, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let (entry, rest) = rest.split_at_checked(length).filter(|_| length <= JOURNAL_ENTRY_BYTES_MAX)?;
    let whole = blake3::hash(entry).as_bytes()[..8] == *sum;
    whole.then(|| postcard::from_bytes(entry).ok()).flatten().map(|kept| (kept, rest))
}

/// Writes everything under another name, which then takes the place of the old file.
fn write(path: &Path, kept: &[Kept]) -> io::Result<(File, u64)> {
    let fresh = path.with_extension("log.new");
    let mut out = TITLE.to_vec();
    kept.iter().for_each(|kept| encode(kept, &mut out));
    let mut file = File::create(&fresh)?;
    file.write_all(&out)?;
    file.sync_all()?;
    std::fs::rename(&fresh, path)?;
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok((file, out.len() as u64))
}

/// What still counts, in the order in which it was kept.
fn compacted(kept: Vec<Kept>) -> Vec<Kept> {
    let mut records: HashMap<Key, usize> = HashMap::new();
    let mut absences: HashMap<Key, usize> = HashMap::new();
    let mut promises: HashMap<Slice, usize> = HashMap::new();
    let mut epochs: BTreeMap<Slice, Vec<usize>> = BTreeMap::new();
    let mut stays: Vec<usize> = Vec::new();
    let mut dropped: BTreeMap<Slice, usize> = BTreeMap::new();
    for (at, kept) in kept.iter().enumerate() {
        match kept {
            Kept::Fact(Fact::Record(record)) => drop(records.insert(record.node(), at)),
            Kept::Fact(Fact::Absence(proof)) => drop(absences.insert(proof.node, at)),
            Kept::Fact(_) => stays.push(at),
            Kept::Epoch(link) => {
                dropped.remove(&link.holders.slice);
                epochs.entry(link.holders.slice).or_default().push(at);
            }
            Kept::Promise { slice, .. } => drop(promises.insert(*slice, at)),
            Kept::Dropped { slice } => {
                epochs.remove(slice);
                promises.remove(slice);
                dropped.insert(*slice, at);
            }
        }
    }
    for chain in epochs.values() {
        stays.extend(&chain[chain.len().saturating_sub(CHAIN_KEPT_MAX)..]);
    }
    stays.extend(records.into_values().chain(absences.into_values()).chain(promises.into_values()));
    stays.extend(dropped.into_values());
    stays.sort_unstable();
    let mut stays = stays.into_iter().peekable();
    let counts = |(at, _): &(usize, Kept)| stays.next_if_eq(at).is_some();
    kept.into_iter().enumerate().filter(counts).map(|(_, kept)| kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Ballot;

    #[test]
    fn what_is_kept_is_read_again_and_a_torn_end_is_cut_off() {
        let folder = std::env::temp_dir().join(format!("skep-journal-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("ring.log");
        let promise = |slice, term| Kept::Promise { slice, ballot: Ballot { term, by: Key([7; 32]) }, accepted: None };
        let (mut journal, kept) = Journal::open(&path).unwrap();
        assert!(kept.is_empty());
        journal.keep(&[promise(1, 1), promise(2, 1), Kept::Dropped { slice: 2 }]).unwrap();
        journal.keep(&[promise(1, 2)]).unwrap();
        // A try that the disk cut short, and what was kept when it had room again.
        journal.file.write_all_at(&[9; 5], journal.bytes).unwrap();
        journal.keep(&[promise(3, 1)]).unwrap();
        drop(journal);
        let mut bytes = std::fs::read(&path).unwrap();
        let whole = bytes.clone();
        encode(&promise(1, 3), &mut bytes);
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        let (journal, kept) = Journal::open(&path).unwrap();
        assert_eq!(kept, [Kept::Dropped { slice: 2 }, promise(1, 2), promise(3, 1)]);
        assert!(journal.bytes < whole.len() as u64, "what no longer counts is not written again");
        std::fs::write(&path, b"something else").unwrap();
        assert!(Journal::open(&path).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
