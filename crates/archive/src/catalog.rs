//! Which segments an archive has: in memory, one small entry each.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::capture::WriterKey;
use crate::layout::{Found, HalfSlice, SegmentId, SegmentName};

/// How far along a segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// This process appends to it.
    Open,
    /// Without a closing record: ours from before a crash, soon closed; or another writer's, as far as it was copied.
    Unclosed,
    /// Ends with its closing record and never grows again.
    Sealed,
}

/// A segment of the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The file that counts: the highest generation.
    pub name: SegmentName,
    /// Its half-slice.
    pub half: HalfSlice,
    /// Where it is.
    pub path: PathBuf,
    /// How far along it is.
    pub state: State,
}

/// All segments by writer and number.
#[derive(Debug, Default)]
pub struct Catalog {
    segments: BTreeMap<SegmentId, Segment>,
}

impl Catalog {
    /// The segment, if the archive has it.
    pub fn get(&self, id: SegmentId) -> Option<&Segment> {
        self.segments.get(&id)
    }

    /// Adds a segment or replaces what is known of it.
    pub fn set(&mut self, segment: Segment) {
        self.segments.insert(segment.name.id, segment);
    }

    /// Forgets a segment.
    pub fn remove(&mut self, id: SegmentId) {
        self.segments.remove(&id);
    }

    /// Changes how far along a segment is.
    pub fn set_state(&mut self, id: SegmentId, state: State) {
        if let Some(segment) = self.segments.get_mut(&id) {
            segment.state = state;
        }
    }

    /// All segments, by writer and number.
    pub fn all(&self) -> impl Iterator<Item = &Segment> {
        self.segments.values()
    }

    /// The number after the last that this writer used.
    pub fn next_number(&self, writer: WriterKey) -> u32 {
        let last = SegmentId { writer, number: u32::MAX };
        let first = SegmentId { writer, number: 0 };
        self.segments.range(first..=last).next_back().map_or(1, |(id, _)| id.number.saturating_add(1))
    }
}

/// Of the files found, those that count and those that another generation replaces. `valid` says whether a file ends
/// with a closing record: a generation above 0 without one is no generation, because rewriting seals before it renames.
pub fn choose(found: Vec<Found>, mut valid: impl FnMut(&Found) -> bool) -> Chosen {
    let mut chosen = Chosen::default();
    let mut by_id: BTreeMap<SegmentId, Vec<Found>> = BTreeMap::new();
    for file in found {
        by_id.entry(file.name.id).or_default().push(file);
    }
    for (_, mut files) in by_id {
        files.sort_by_key(|file| std::cmp::Reverse(file.name.generation));
        let counts = match files.len() {
            1 => 0,
            _ => files.iter().position(|file| file.name.generation == 0 || valid(file)).unwrap_or(0),
        };
        let current = files.remove(counts);
        for other in files {
            match other.name.generation <= current.name.generation {
                true => chosen.replaced.push(other),
                false => chosen.invalid.push(other),
            }
        }
        chosen.current.push(current);
    }
    chosen
}

/// The outcome of [`choose`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// One file per segment.
    pub current: Vec<Found>,
    /// Older generations, and second files of the same name in other folders.
    pub replaced: Vec<Found>,
    /// Higher generations that are not sealed.
    pub invalid: Vec<Found>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(number: u32, generation: u32) -> Found {
        let name = SegmentName { id: SegmentId { writer: WriterKey(9), number }, generation };
        Found { half: HalfSlice::of(0, 0), name, path: name.to_string().into(), length: 1 }
    }

    #[test]
    fn the_highest_sealed_generation_counts() {
        let files = || vec![found(1, 0), found(2, 0), found(2, 1), found(2, 2), found(3, 1)];
        let chosen = choose(files(), |_| true);
        assert_eq!(chosen.current, [found(1, 0), found(2, 2), found(3, 1)]);
        assert_eq!((chosen.replaced, chosen.invalid), (vec![found(2, 1), found(2, 0)], vec![]));
        let chosen = choose(files(), |file| file.name.generation < 2);
        assert_eq!(chosen.current, [found(1, 0), found(2, 1), found(3, 1)]);
        assert_eq!((chosen.replaced, chosen.invalid), (vec![found(2, 0)], vec![found(2, 2)]));
    }

    #[test]
    fn numbers_go_on_after_the_last_of_that_writer() {
        let mut catalog = Catalog::default();
        assert_eq!(catalog.next_number(WriterKey(9)), 1);
        let Found { half, name, path, .. } = found(41, 0);
        catalog.set(Segment { name, half, path, state: State::Open });
        assert_eq!((catalog.next_number(WriterKey(9)), catalog.next_number(WriterKey(8))), (42, 1));
    }
}
