//! Which segment a record goes to, and when one is full: decided here, done in `commit`.

use std::collections::BTreeMap;

use crate::capture::WriterKey;
use crate::layout::{HalfSlice, SegmentId, SegmentName};

/// A segment that takes more records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open {
    /// Its name; an open segment was never rewritten.
    pub name: SegmentName,
    /// Its half-slice.
    pub half: HalfSlice,
    /// Records in it.
    pub records: u32,
    /// Bytes in it.
    pub bytes: u64,
}

/// What has to be done for an append, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The half-slice the records go to.
    pub half: HalfSlice,
    /// Its open segment is full: close it first.
    pub seal: bool,
    /// There is no open segment (any more): begin this one.
    pub begin: Option<SegmentName>,
}

/// The open segments of one writer.
#[derive(Debug, Clone)]
pub struct Book {
    writer: WriterKey,
    bits: u8,
    next: u32,
    bytes_max: u64,
    open: BTreeMap<HalfSlice, Open>,
}

impl Book {
    /// A writer that has no open segment and used the numbers below `next`.
    pub fn new(writer: WriterKey, bits: u8, next: u32, bytes_max: u64) -> Book {
        Book { writer, bits, next, bytes_max, open: BTreeMap::new() }
    }

    /// Where `records` records of `bytes` bytes about this site go. Numbers are used once, even if the segment never
    /// comes to be: a file half-written by a failed commit then cannot be mistaken for its successor.
    pub fn route(&mut self, site_hash: u32, records: u32, bytes: u64) -> Route {
        let half = HalfSlice::of(site_hash, self.bits);
        let full = |open: &Open| {
            open.records > 1 && open.bytes.saturating_add(bytes) > self.bytes_max
                || open.records.checked_add(records).is_none_or(|records| records == u32::MAX)
        };
        let seal = self.open.get(&half).is_some_and(full);
        let begin = (seal || !self.open.contains_key(&half)).then(|| {
            let name = SegmentName { id: SegmentId { writer: self.writer, number: self.next }, generation: 0 };
            self.next += 1;
            name
        });
        Route { half, seal, begin }
    }

    /// Says that a segment is now as long as this.
    pub fn grown(&mut self, open: Open) {
        self.open.insert(open.half, open);
    }

    /// Says that the half-slice has no open segment any more.
    pub fn gone(&mut self, half: HalfSlice) -> Option<Open> {
        self.open.remove(&half)
    }

    /// All open segments.
    pub fn all(&self) -> impl Iterator<Item = Open> + '_ {
        self.open.values().copied()
    }

    /// From now on slices are numbered by this many bits. Every segment must have been sealed.
    pub fn set_bits(&mut self, bits: u8) {
        debug_assert!(self.open.is_empty());
        self.bits = bits;
    }

    /// How many bits number a slice.
    pub fn bits(&self) -> u8 {
        self.bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_share_a_segment_until_it_is_full_and_halves_are_kept_apart() {
        let mut book = Book::new(WriterKey(1), 0, 5, 100);
        let first = book.route(0, 2, 60);
        assert_eq!((first.seal, first.begin.map(|name| name.id.number)), (false, Some(5)));
        let name = first.begin.unwrap();
        book.grown(Open { name, half: first.half, records: 3, bytes: 80 });
        assert_eq!(book.route(1, 1, 20), Route { half: first.half, seal: false, begin: None });
        let other = book.route(0x8000_0000, 1, 20);
        assert_eq!((other.half.half(), other.begin.map(|name| name.id.number)), (1, Some(6)));
        let full = book.route(2, 1, 21);
        assert_eq!((full.seal, full.begin.map(|name| name.id.number)), (true, Some(7)));
    }

    #[test]
    fn what_is_larger_than_a_segment_gets_one_of_its_own() {
        let mut book = Book::new(WriterKey(1), 4, 1, 100);
        let route = book.route(0, 1, 1000);
        book.grown(Open { name: route.begin.unwrap(), half: route.half, records: 1, bytes: 50 });
        assert!(!book.route(0, 1, 1000).seal);
    }

    #[test]
    fn record_numbers_never_overflow() {
        let mut book = Book::new(WriterKey(1), 0, 1, u64::MAX);
        let route = book.route(0, 1, 1);
        book.grown(Open { name: route.begin.unwrap(), half: route.half, records: u32::MAX - 3, bytes: 1 });
        assert!(!book.route(0, 2, 1).seal);
        assert!(book.route(0, 3, 1).seal);
    }
}
