//! Sorting many entries in bounded memory, and writing sorted rows as a run.

use super::codec::{BlockParts, Builder, Codec};
use super::file::{RunFacts, RunWriter};
use crate::{Error, Result};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Writes rows, which come in order, as one run. A run that is not finished leaves no file.
pub struct RunBuilder<C: Codec> {
    writer: Option<RunWriter>,
    path: PathBuf,
    builder: C::Builder,
    parts: BlockParts,
}

impl<C: Codec> RunBuilder<C> {
    pub fn create(path: &Path) -> Result<RunBuilder<C>> {
        let writer = Some(RunWriter::create(path)?);
        Ok(RunBuilder {
            writer,
            path: path.to_path_buf(),
            builder: C::Builder::default(),
            parts: BlockParts::default(),
        })
    }

    pub fn push(&mut self, row: &C::Row<'_>) -> Result<()> {
        self.builder.push(row)?;
        if self.builder.is_full() { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> Result<()> {
        let rows = self.builder.rows();
        self.builder.finish(&mut self.parts)?;
        match &mut self.writer {
            Some(writer) => writer.block(&self.parts.first, &self.parts.payload, rows, &self.parts.hashes),
            None => Ok(()),
        }
    }

    /// Ends the run and syncs its file.
    pub fn finish(mut self) -> Result<RunFacts> {
        if self.builder.rows() > 0 {
            self.end_block()?;
        }
        let Some(writer) = self.writer.take() else {
            return Err(Error::Refused { why: "a run was finished twice".into() });
        };
        writer.finish(C::NUMBER).inspect_err(|_| remove(&self.path))
    }
}

impl<C: Codec> Drop for RunBuilder<C> {
    fn drop(&mut self) {
        if self.writer.take().is_some() {
            remove(&self.path);
        }
    }
}

/// Removes a file nobody refers to. If that fails it stays as an orphan, which the next opening removes.
pub fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}

/// Entries side by side, to be sorted.
#[derive(Default)]
pub struct Chunk {
    bytes: Vec<u8>,
    entries: Vec<Place>,
}

struct Place {
    /// The first bytes of the key: most comparisons need no more.
    front: u64,
    begin: usize,
    key: u32,
    value: u32,
}

impl Chunk {
    /// Memory taken by what is in it.
    pub fn weight(&self) -> usize {
        self.bytes.len() + self.entries.len() * size_of::<Place>()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        let mut front = [0; 8];
        let known = key.len().min(8);
        front[..known].copy_from_slice(&key[..known]);
        self.entries.push(Place {
            front: u64::from_be_bytes(front),
            begin,
            key: key.len() as u32,
            value: value.len() as u32,
        });
    }

    /// Sorts by key; of equal keys the one pushed last is kept.
    pub fn sort(&mut self) {
        let Chunk { bytes, entries } = self;
        let key = |place: &Place| &bytes[key_range(place)];
        entries.sort_unstable_by(|a, b| {
            a.front.cmp(&b.front).then_with(|| key(a).cmp(key(b))).then_with(|| b.begin.cmp(&a.begin))
        });
        entries.dedup_by(|later, kept| later.front == kept.front && key(later) == key(kept));
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|place| {
            let key = key_range(place);
            (&self.bytes[key.clone()], &self.bytes[key.end..key.end + place.value as usize])
        })
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }
}

fn key_range(place: &Place) -> Range<usize> {
    place.begin..place.begin + place.key as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_sort_by_key_and_keep_the_last_of_equals() {
        let mut chunk = Chunk::default();
        for (key, value) in
            [("b", "1"), ("abcdefghi", "2"), ("a", "3"), ("abcdefgh", "4"), ("b", "5"), ("a", ""), ("", "7")]
        {
            chunk.push(key.as_bytes(), value.as_bytes());
        }
        chunk.sort();
        let found: Vec<(&[u8], &[u8])> = chunk.iter().collect();
        let wanted: [(&[u8], &[u8]); 5] =
            [(b"", b"7"), (b"a", b""), (b"abcdefgh", b"4"), (b"abcdefghi", b"2"), (b"b", b"5")];
        assert_eq!(found, wanted);
    }
}
