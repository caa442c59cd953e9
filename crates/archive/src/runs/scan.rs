//! Walking over runs and fresh entries as if they were one sorted list, in either direction.
//!
//! The walk yields *spans*: rows of one block that stand together also in the merged order. Where one run rules, a span
//! is a whole block and merging costs nothing; where runs interleave, a span may be one row.

use super::bits::PADDING;
use super::codec::{Codec, Rows};
use super::file::{Page, Run};
use crate::{Error, Result};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::ops::Range;
use std::sync::Arc;

/// Entries taken from the store at a time.
const FRESH_CHUNK: usize = 256;

/// Which way a scan walks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Keys ascending, oldest first within a key.
    #[default]
    Forward,
    /// Keys descending, newest first within a key.
    Backward,
}

/// What the cache keeps: pages and blocks, each found by the number of its run.
pub enum Kept<C: Codec> {
    Page(Arc<Page>),
    Block(Arc<C::Block>),
}

impl<C: Codec> Clone for Kept<C> {
    fn clone(&self) -> Kept<C> {
        match self {
            Kept::Page(page) => Kept::Page(page.clone()),
            Kept::Block(block) => Kept::Block(block.clone()),
        }
    }
}

#[derive(Clone)]
pub struct ByMemory;

impl<C: Codec> Weighter<(u64, u64), Kept<C>> for ByMemory {
    fn weight(&self, _: &(u64, u64), kept: &Kept<C>) -> u64 {
        match kept {
            Kept::Page(page) => page.weight() as u64,
            Kept::Block(block) => block.weight() as u64,
        }
    }
}

/// Decoded blocks and pages, bounded in bytes.
pub struct Blocks<C: Codec> {
    cache: Cache<(u64, u64), Kept<C>, ByMemory>,
}

/// Pages are numbered above all blocks.
const PAGES: u64 = 1 << 32;

impl<C: Codec> Blocks<C> {
    pub fn new(bytes: u64) -> Blocks<C> {
        // The first number only sizes the table at the start: a decoded block has about 16 kB.
        Blocks { cache: Cache::with_weighter((bytes as usize >> 14).max(16), bytes, ByMemory) }
    }

    pub fn page(&self, run: &Run, section: usize) -> Result<Arc<Page>> {
        let name = (run.number(), PAGES + section as u64);
        if let Some(Kept::Page(page)) = self.cache.get(&name) {
            return Ok(page);
        }
        let page = Arc::new(run.page(section)?);
        self.cache.insert(name, Kept::Page(page.clone()));
        Ok(page)
    }

    fn block(&self, run: &Run, spot: &Spot, keep: bool) -> Result<Arc<C::Block>> {
        let name = (run.number(), u64::from(spot.block));
        if let Some(Kept::Block(found)) = self.cache.get(&name) {
            return Ok(found);
        }
        let Spot { section, page, block } = spot;
        let (bytes, rows) = run.block(*section, page, *block, PADDING)?;
        let length = bytes.len() - PADDING;
        let mut decoded = C::decode(bytes, length, rows).ok_or_else(|| {
            run.damaged(run.block_offset(*section, page, *block), "a block has the right checksum but makes no sense")
        })?;
        if keep {
            decoded.slim();
        }
        let decoded = Arc::new(decoded);
        if keep {
            self.cache.insert(name, Kept::Block(decoded.clone()));
        }
        Ok(decoded)
    }

    /// The last block that begins at or before `key`, or the first block.
    fn locate(&self, run: &Run, key: &[u8]) -> Result<Spot> {
        let section = run.section_of(key);
        let page = self.page(run, section)?;
        let block = run.block_of(section, &page, key);
        Ok(Spot { section, page, block })
    }

    fn spot(&self, run: &Run, block: u32) -> Result<Spot> {
        let section = run.section_of_block(block);
        Ok(Spot { section, page: self.page(run, section)?, block })
    }

    /// Where entries whose key begins with `looked_for` begin in this run, if they may be there.
    pub fn find(&self, run: &Run, looked_for: &[u8], hash: u64) -> Result<Option<Spot>> {
        if run.blocks() == 0 {
            return Ok(None);
        }
        let spot = self.locate(run, looked_for)?;
        Ok(run.may_contain(spot.section, &spot.page, spot.block, looked_for, hash).then_some(spot))
    }
}

/// A block of a run, and the page that knows it.
#[derive(Clone)]
pub struct Spot {
    section: usize,
    page: Arc<Page>,
    block: u32,
}

/// Fresh entries as the store gave them, in ascending order.
pub struct FreshRows {
    entries: Vec<(fjall::Slice, fjall::Slice)>,
}

impl FreshRows {
    fn search(&self, bound: &[u8]) -> usize {
        self.entries.partition_point(|(key, _)| &**key < bound)
    }
}

/// Rows that a span stands in.
pub enum AnyBlock<C: Codec> {
    Packed(Arc<C::Block>),
    Fresh(Arc<FreshRows>),
}

impl<C: Codec> Clone for AnyBlock<C> {
    fn clone(&self) -> AnyBlock<C> {
        match self {
            AnyBlock::Packed(block) => AnyBlock::Packed(block.clone()),
            AnyBlock::Fresh(rows) => AnyBlock::Fresh(rows.clone()),
        }
    }
}

impl<C: Codec> AnyBlock<C> {
    fn search(&self, bound: &[u8]) -> usize {
        match self {
            AnyBlock::Packed(block) => block.search(bound),
            AnyBlock::Fresh(rows) => rows.search(bound),
        }
    }

    fn write_key(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            AnyBlock::Packed(block) => block.write_key(row, out),
            AnyBlock::Fresh(rows) => out.extend_from_slice(&rows.entries[row].0),
        }
    }

    /// A row; `None` only for a fresh entry that no writer made.
    pub fn row(&self, row: usize) -> Option<C::Row<'_>> {
        match self {
            AnyBlock::Packed(block) => Some(C::row(block, row)),
            AnyBlock::Fresh(rows) => rows.entries.get(row).and_then(|(key, value)| C::alone(key, value)),
        }
    }
}

/// Rows of one block that stand together in the merged order.
pub struct Span<C: Codec> {
    pub block: AnyBlock<C>,
    pub rows: Range<usize>,
}

/// The half-open range of entry keys that a scan covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub start: Vec<u8>,
    /// `None`: to the end.
    pub end: Option<Vec<u8>>,
}

impl Bounds {
    /// Every key that begins with `prefix`.
    pub fn prefix(prefix: &[u8]) -> Bounds {
        let mut end = prefix.to_vec();
        while end.last() == Some(&0xff) {
            end.pop();
        }
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        Bounds { start: prefix.to_vec(), end: (!end.is_empty()).then_some(end) }
    }

    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }
}

enum Source {
    Run { run: Arc<Run>, next: Option<Spot> },
    Fresh { entries: Box<dyn Iterator<Item = fjall::Guard> + Send> },
}

/// One sorted list in the merge, with the rows of its current block that are left.
struct Cursor<C: Codec> {
    source: Source,
    block: Option<AnyBlock<C>>,
    left: Range<usize>,
    /// Key of the next row to be yielded.
    head: Vec<u8>,
}

/// The walk itself. Holds one block of each run that has entries in range.
pub struct Walk<C: Codec> {
    blocks: Arc<Blocks<C>>,
    bounds: Bounds,
    direction: Direction,
    /// Newest first: of entries with equal keys the first cursor's counts.
    cursors: Vec<Cursor<C>>,
    /// Blocks of long scans would only push out what look-ups need.
    keep: bool,
    begun: bool,
    failed: bool,
}

impl<C: Codec> Walk<C> {
    /// Walks over `fresh` (ascending or descending as `direction` says, already within bounds) and runs, newest first.
    /// A run may come with a spot that is known not to be behind the bounds.
    pub fn new(
        blocks: Arc<Blocks<C>>,
        runs: impl IntoIterator<Item = (Arc<Run>, Option<Spot>)>,
        fresh: Option<Box<dyn Iterator<Item = fjall::Guard> + Send>>,
        bounds: Bounds,
        direction: Direction,
        keep: bool,
    ) -> Walk<C> {
        let cursor = |source| Cursor { source, block: None, left: 0..0, head: Vec::new() };
        let mut cursors = Vec::new();
        if !bounds.is_empty() {
            cursors.extend(fresh.map(|entries| cursor(Source::Fresh { entries })));
            cursors.extend(runs.into_iter().map(|(run, next)| cursor(Source::Run { run, next })));
        }
        Walk { blocks, bounds, direction, cursors, keep, begun: false, failed: false }
    }

    /// The next span, or `None` at the end. After an error there is nothing more.
    pub fn next_span(&mut self) -> Result<Option<Span<C>>> {
        if self.failed {
            return Ok(None);
        }
        let span = self.advance();
        self.failed = span.is_err();
        span
    }

    fn advance(&mut self) -> Result<Option<Span<C>>> {
        if !self.begun {
            self.begun = true;
            for index in 0..self.cursors.len() {
                self.begin(index)?;
            }
            self.cursors.retain(|cursor| cursor.block.is_some());
        }
        let Some(chosen) = self.nearest(None) else { return Ok(None) };
        self.skip_equals(chosen)?;
        let other = self.nearest(Some(chosen));
        let cursor = &self.cursors[chosen];
        let Some(block) = cursor.block.clone() else { return Ok(None) };
        let left = cursor.left.clone();
        let rows = match (other, self.direction) {
            (None, _) => left,
            (Some(other), Direction::Forward) => {
                left.start..block.search(&self.cursors[other].head).clamp(left.start + 1, left.end)
            }
            // The smallest key above the other's head: a row equal to that head must be left, to be skipped as one.
            (Some(other), Direction::Backward) => {
                let above = [self.cursors[other].head.as_slice(), &[0]].concat();
                block.search(&above).clamp(left.start, left.end - 1)..left.end
            }
        };
        match self.direction {
            Direction::Forward => self.cursors[chosen].left.start = rows.end,
            Direction::Backward => self.cursors[chosen].left.end = rows.start,
        }
        self.refill(chosen)?;
        self.cursors.retain(|cursor| cursor.block.is_some());
        Ok(Some(Span { block, rows }))
    }

    /// The cursor whose head comes next; of equals the newest.
    fn nearest(&self, except: Option<usize>) -> Option<usize> {
        let mut best: Option<usize> = None;
        for (index, cursor) in self.cursors.iter().enumerate() {
            if cursor.block.is_none() || Some(index) == except {
                continue;
            }
            let nearer = best.is_none_or(|best| match self.direction {
                Direction::Forward => cursor.head < self.cursors[best].head,
                Direction::Backward => cursor.head > self.cursors[best].head,
            });
            if nearer {
                best = Some(index);
            }
        }
        best
    }

    /// Steps over entries of older runs that the chosen cursor's next entry replaces.
    fn skip_equals(&mut self, chosen: usize) -> Result<()> {
        for index in chosen + 1..self.cursors.len() {
            if self.cursors[index].block.is_some() && self.cursors[index].head == self.cursors[chosen].head {
                match self.direction {
                    Direction::Forward => self.cursors[index].left.start += 1,
                    Direction::Backward => self.cursors[index].left.end -= 1,
                }
                self.refill(index)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, index: usize) -> Result<()> {
        let Walk { blocks, bounds, direction, cursors, .. } = self;
        if let Source::Run { run, next } = &mut cursors[index].source {
            let bound = match direction {
                Direction::Forward => Some(&bounds.start),
                Direction::Backward => bounds.end.as_ref(),
            };
            let known = next.take().filter(|spot| {
                let after = run.next_first(spot.section, &spot.page, spot.block);
                after.is_none_or(|after| bound.is_some_and(|bound| bound.as_slice() < after))
            });
            *next = match (known, bound) {
                _ if run.blocks() == 0 => None,
                (Some(spot), _) => Some(spot),
                (None, Some(bound)) => Some(blocks.locate(run, bound)?),
                (None, None) => Some(blocks.spot(run, run.blocks() - 1)?),
            };
        }
        self.refill(index)
    }

    /// Loads further blocks until the cursor has a row or its source is at its end.
    fn refill(&mut self, index: usize) -> Result<()> {
        let Walk { blocks, bounds, direction, cursors, keep, .. } = self;
        let cursor = &mut cursors[index];
        while cursor.left.is_empty() {
            cursor.block = None;
            match &mut cursor.source {
                Source::Run { run, next } => {
                    let Some(spot) = next.take() else { return Ok(()) };
                    let block = blocks.block(run, &spot, *keep)?;
                    let begin = block.search(&bounds.start);
                    let end = bounds.end.as_ref().map_or(block.rows(), |end| block.search_from(begin, end));
                    let following = match direction {
                        Direction::Forward => {
                            Some(spot.block + 1).filter(|next| end == block.rows() && *next < run.blocks())
                        }
                        Direction::Backward => spot.block.checked_sub(1).filter(|_| begin == 0),
                    };
                    *next = match following {
                        Some(number) if run.section_of_block(number) == spot.section => {
                            Some(Spot { block: number, ..spot })
                        }
                        Some(number) => Some(blocks.spot(run, number)?),
                        None => None,
                    };
                    cursor.left = begin..end.max(begin);
                    cursor.block = Some(AnyBlock::Packed(block));
                }
                Source::Fresh { entries } => {
                    let mut chunk = Vec::new();
                    for guard in entries.take(FRESH_CHUNK) {
                        let (key, value) = guard.into_inner()?;
                        if C::alone(&key, &value).is_none() {
                            return Err(Error::Views { what: "a fresh entry is not what was written".into() });
                        }
                        chunk.push((key, value));
                    }
                    if chunk.is_empty() {
                        return Ok(());
                    }
                    if *direction == Direction::Backward {
                        chunk.reverse();
                    }
                    cursor.left = 0..chunk.len();
                    cursor.block = Some(AnyBlock::Fresh(Arc::new(FreshRows { entries: chunk })));
                }
            }
        }
        let next_row = match direction {
            Direction::Forward => cursor.left.start,
            Direction::Backward => cursor.left.end - 1,
        };
        cursor.head.clear();
        if let Some(block) = &cursor.block {
            block.write_key(next_row, &mut cursor.head);
        }
        Ok(())
    }
}
