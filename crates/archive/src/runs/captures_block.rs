//! A block of captures, column by column.
//!
//! ```text
//!   | rows, keys, URL forms, notes, writers, digest groups, text length, stored text length: varints |
//!   | digest groups: | algorithm 1 | count varint | … |
//!   | time base varint | time unit in ms varint |
//!   | heads of the columns … | writers 4 each | bodies of the columns … | digests … | stored text … |
//!
//!   columns, one number for each distinct key:  bytes shared with the key before, bytes of the rest, rows
//!   columns, one number for each row:           time, writer, segment, record, offset, length, URL form, note, digest
//!   text (zstd; plain if lengths are equal):    rests of keys | URL forms: length varint, bytes | notes
//!   note:                                       kind 1 | status 2 LE | flags 1 | media type: length varint, bytes
//! ```
//!
//! Numbers are stored with the width that the widest of the block needs, so that one row is read without decoding the
//! others. What repeats (URL forms, notes, digests) stands once, and rows refer to it.

use super::bits::{Bytes, Column, PADDING};
use super::captures_builder::CapturesBuilder;
use super::captures_row::Row;
use super::codec::{Codec, Rows};
use super::entry::{self, Moment, unsortable};
use super::text;
use crate::limits::{BLOCK_BYTES_MAX, BLOCK_ROWS_MAX, KEY_BYTES_MAX, MIME_BYTES_MAX};
use crate::{CaptureKind, Digest, Position, WriterKey};
use std::cmp::Ordering;
use std::ops::Range;

/// Runs of captures.
pub struct Captures;

impl Codec for Captures {
    const NUMBER: u8 = 1;
    type Block = CapturesBlock;
    type Builder = CapturesBuilder;
    type Row<'a> = Row<'a>;

    fn decode(bytes: Vec<u8>, length: usize, rows: usize) -> Option<CapturesBlock> {
        CapturesBlock::decode(bytes, length, rows)
    }

    fn row(block: &CapturesBlock, index: usize) -> Row<'_> {
        Row::packed(block, index)
    }

    fn alone<'a>(key: &'a [u8], value: &'a [u8]) -> Option<Row<'a>> {
        entry::read(key, value).map(Row::alone)
    }
}

pub(super) const TIME: usize = 0;
pub(super) const WRITER: usize = 1;
pub(super) const SEGMENT: usize = 2;
pub(super) const RECORD: usize = 3;
pub(super) const OFFSET: usize = 4;
pub(super) const LENGTH: usize = 5;
pub(super) const URL_FORM: usize = 6;
pub(super) const NOTE: usize = 7;
pub(super) const DIGEST: usize = 8;
pub(super) const ROW_COLUMNS: usize = 9;
pub(super) const KEY_COLUMNS: usize = 3;

/// Digests of one algorithm stand together; beyond the last group there is an empty one.
#[derive(Clone, Copy, Default)]
struct DigestGroup {
    algorithm: u8,
    /// Number of the group's first digest.
    first: u32,
    /// Where it stands in the block.
    at: u32,
}

const DIGEST_GROUPS_MAX: usize = 7;

/// A block, checked and laid open. Columns stay packed until a row is asked for. Blocks come and go with every look-up,
/// so that all that has to be laid open shares few allocations.
pub struct CapturesBlock {
    bytes: Vec<u8>,
    /// Where the stored text begins in `bytes`, which nobody asks for again.
    packed_end: usize,
    text: Vec<u8>,
    /// Where the rests of keys end in `text`; they are part of `keys`.
    rests_end: usize,
    rows: usize,
    columns: [Column; ROW_COLUMNS],
    time_base: u64,
    time_unit: u64,
    /// Where the writers stand in `bytes`.
    writers_at: usize,
    writer_count: usize,
    digests: [DigestGroup; DIGEST_GROUPS_MAX + 1],
    keys: Vec<u8>,
    key_count: usize,
    form_count: usize,
    note_count: usize,
    /// First row of each key, and the number of rows; begin of each key in `keys`, and the end; begin of each URL form
    /// in `text`; begin of each note in `text`.
    table: Vec<u32>,
}

impl CapturesBlock {
    fn decode(bytes: Vec<u8>, length: usize, rows: usize) -> Option<CapturesBlock> {
        let mut head = Bytes(bytes.get(..length)?);
        if length + PADDING > bytes.len() || head.count(BLOCK_ROWS_MAX)? != rows || rows == 0 {
            return None;
        }
        let key_count = head.count(rows)?;
        let form_count = head.count(rows)?;
        let note_count = head.count(rows)?;
        let writer_count = head.count(rows)?;
        let group_count = head.count(DIGEST_GROUPS_MAX)?;
        // Rows refer to these without asking again whether there are any.
        if key_count.min(form_count).min(note_count).min(writer_count) == 0 {
            return None;
        }
        let text_length = head.count(BLOCK_BYTES_MAX)?;
        let stored_length = head.count(length)?;
        let mut group_counts = [(0, 0); DIGEST_GROUPS_MAX];
        for group in group_counts.iter_mut().take(group_count) {
            *group = (head.u8()?, head.count(rows)?);
        }
        let (time_base, time_unit) = (head.varint()?, head.varint()?);
        // The bodies begin where the heads and the writers end; that is known after reading them.
        let mut probe = head;
        for _ in 0..KEY_COLUMNS + ROW_COLUMNS {
            probe.varint()?;
            probe.u8()?;
        }
        let writers_at = length - probe.0.len();
        probe.take(writer_count * 4)?;
        let mut at = length - probe.0.len();
        let mut key_columns = [Column::default(); KEY_COLUMNS];
        for column in &mut key_columns {
            *column = Column::read(&mut head, key_count, &mut at, length)?;
        }
        let mut columns = [Column::default(); ROW_COLUMNS];
        for column in &mut columns {
            *column = Column::read(&mut head, rows, &mut at, length)?;
        }
        let mut digests = [DigestGroup::default(); DIGEST_GROUPS_MAX + 1];
        let mut first = 0;
        for (group, (algorithm, count)) in digests.iter_mut().zip(group_counts) {
            *group = DigestGroup { algorithm, first: first as u32, at: at as u32 };
            first += count;
            let width = if algorithm == 0 { 0 } else { Digest::width(algorithm)? };
            at = at.checked_add(width * count).filter(|at| *at <= length)?;
        }
        digests[DIGEST_GROUPS_MAX] = DigestGroup { algorithm: 0, first: first as u32, at: at as u32 };
        if at.checked_add(stored_length)? != length {
            return None;
        }
        let text = text::read(&bytes[at..length], text_length)?;
        let mut block = CapturesBlock {
            bytes,
            packed_end: at,
            text,
            rests_end: 0,
            rows,
            columns,
            time_base,
            time_unit,
            writers_at,
            writer_count,
            digests,
            keys: Vec::new(),
            key_count,
            form_count,
            note_count,
            table: Vec::new(),
        };
        block.read_text(key_columns)?;
        Some(block)
    }

    fn read_text(&mut self, columns: [Column; KEY_COLUMNS]) -> Option<()> {
        let [shared, rest, rows] = columns;
        let mut all_keys = 0u64;
        let mut table = Vec::with_capacity(2 * self.key_count + self.form_count + self.note_count + 2);
        let mut row = 0u64;
        for index in 0..self.key_count {
            table.push(row as u32);
            row = row.checked_add(rows.get(&self.bytes, index)).filter(|row| *row <= self.rows as u64)?;
            let (shared, rest) = (shared.get(&self.bytes, index), rest.get(&self.bytes, index));
            let length = shared.checked_add(rest).filter(|length| *length <= KEY_BYTES_MAX as u64)?;
            all_keys += length;
        }
        if row != self.rows as u64 {
            return None;
        }
        table.push(row as u32);

        let mut text = Bytes(&self.text);
        let mut keys: Vec<u8> = Vec::with_capacity(all_keys as usize);
        let mut last = 0;
        table.push(0);
        for index in 0..self.key_count {
            let shared = shared.get(&self.bytes, index) as usize;
            let begin = keys.len();
            if shared > begin - last {
                return None;
            }
            keys.extend_from_within(last..last + shared);
            keys.extend_from_slice(text.take(rest.get(&self.bytes, index) as usize)?);
            table.push(keys.len() as u32);
            last = begin;
        }
        let whole = self.text.len();
        let rests_end = whole - text.0.len();
        for _ in 0..self.form_count {
            table.push((whole - text.0.len()) as u32);
            let length = text.count(whole)?;
            text.take(length)?;
        }
        for _ in 0..self.note_count {
            table.push((whole - text.0.len()) as u32);
            read_note(&mut text)?;
        }
        let complete = text.0.is_empty();
        (self.keys, self.table, self.rests_end) = (keys, table, rests_end);
        complete.then_some(())
    }

    fn first_row(&self, key: usize) -> usize {
        self.table[key] as usize
    }

    #[inline]
    pub(super) fn key(&self, key: usize) -> &[u8] {
        let begins = &self.table[self.key_count + 1..];
        &self.keys[begins[key] as usize..begins[key + 1] as usize]
    }

    #[inline]
    pub(super) fn number(&self, column: usize, row: usize) -> u64 {
        self.columns[column].get(&self.bytes, row)
    }

    /// The number of the thing a row refers to, of so many. A higher one cannot come out of a block with the right
    /// checksum; it is held down so that a forged block is wrong and not a panic.
    #[inline]
    fn referred(&self, column: usize, row: usize, of: usize) -> usize {
        (self.number(column, row) as usize).min(of - 1)
    }

    pub(super) fn key_of(&self, row: usize) -> usize {
        if self.key_count == self.rows {
            return row;
        }
        self.table[..self.key_count].partition_point(|first| *first as usize <= row).saturating_sub(1)
    }

    pub(super) fn position(&self, row: usize) -> Position {
        let writer = self.writers_at + 4 * self.referred(WRITER, row, self.writer_count);
        Position {
            writer: WriterKey(self.bytes[writer..].first_chunk().map_or(0, |writer| u32::from_le_bytes(*writer))),
            segment: self.number(SEGMENT, row) as u32,
            record: self.number(RECORD, row) as u32,
        }
    }

    fn moment(&self, row: usize) -> Moment {
        Moment { time_ms: self.time_ms(row), position: self.position(row) }
    }

    /// The bytes of a note and of what follows it.
    fn note_bytes(&self, note: usize) -> &[u8] {
        let notes = &self.table[2 * self.key_count + self.form_count + 2..];
        &self.text[notes[note] as usize..]
    }

    pub(super) fn flags_of_note(&self, note: usize) -> u8 {
        self.note_bytes(note).get(3).copied().unwrap_or(0)
    }

    pub(super) fn url_form(&self, row: usize) -> &[u8] {
        let begins = &self.table[2 * self.key_count + 2..];
        let mut form = Bytes(&self.text[begins[self.referred(URL_FORM, row, self.form_count)] as usize..]);
        form.count(BLOCK_BYTES_MAX).and_then(|length| form.take(length)).unwrap_or_default()
    }

    pub(super) fn digest(&self, row: usize) -> Option<Digest> {
        let number = self.number(DIGEST, row);
        let group = self.digests.iter().rev().find(|group| u64::from(group.first) <= number && group.at > 0)?;
        let width = Digest::width(group.algorithm)?;
        let begin = group.at as usize + (number - u64::from(group.first)) as usize * width;
        Digest::from_parts(group.algorithm, self.bytes.get(begin..begin + width)?)
    }

    /// Where `bound` is among the rows of these keys; the row behind them if all are below it.
    fn search_between(&self, mut from: usize, mut to: usize, bound: &[u8]) -> usize {
        let behind = to;
        let mut key_order = Ordering::Greater;
        while from < to {
            let middle = from + (to - from) / 2;
            match compare_key(self.key(middle), bound) {
                Ordering::Less => from = middle + 1,
                order => {
                    to = middle;
                    key_order = order;
                }
            }
        }
        // Of the key behind them only the order is not known.
        if from == behind {
            if from == self.key_count {
                return self.rows;
            }
            key_order = compare_key(self.key(from), bound);
        }
        let (mut low, mut high) = (self.first_row(from), self.first_row(from + 1));
        if key_order == Ordering::Greater {
            return low;
        }
        let tail = &bound[self.key(from).len() + 1..];
        if tail.is_empty() {
            return low;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.moment(middle).to_bytes().as_slice() < tail {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// What counting takes from a block without going through its rows one by one.
impl CapturesBlock {
    /// The keys of URLs among these rows, each with those of the rows that are its own.
    pub fn keys_in(&self, rows: Range<usize>) -> impl Iterator<Item = (&[u8], Range<usize>)> {
        let keys = if rows.is_empty() { 0..0 } else { self.key_of(rows.start)..self.key_of(rows.end - 1) + 1 };
        keys.map(move |key| (self.key(key), self.first_row(key).max(rows.start)..self.first_row(key + 1).min(rows.end)))
    }

    /// The number of a row's note in its block; below [`CapturesBlock::notes`].
    #[inline]
    pub fn note_of(&self, row: usize) -> usize {
        self.referred(NOTE, row, self.note_count)
    }

    /// How many different notes the block has: never more than rows.
    pub fn notes(&self) -> usize {
        self.note_count
    }

    /// A note by its number.
    pub fn note(&self, note: usize) -> Note<'_> {
        read_note(&mut Bytes(self.note_bytes(note))).unwrap_or_default()
    }

    /// The type of record in a note.
    pub fn kind_of_note(&self, note: usize) -> CaptureKind {
        let kind = self.note_bytes(note).first();
        kind.and_then(|kind| CaptureKind::from_number(*kind)).unwrap_or(CaptureKind::Other)
    }

    /// Milliseconds since 1970.
    #[inline]
    pub fn time_ms(&self, row: usize) -> i64 {
        unsortable(self.time_base.wrapping_add(self.number(TIME, row).wrapping_mul(self.time_unit)))
    }

    /// How many bytes a record takes in its file.
    #[inline]
    pub fn length(&self, row: usize) -> u64 {
        self.number(LENGTH, row)
    }
}

/// Kind, status and media type: few different ones in a block.
#[derive(Clone, Copy)]
pub struct Note<'a> {
    pub kind: CaptureKind,
    pub status: u16,
    pub mime: &'a str,
}

impl Default for Note<'_> {
    fn default() -> Self {
        Note { kind: CaptureKind::Other, status: 0, mime: "" }
    }
}

fn read_note<'a>(text: &mut Bytes<'a>) -> Option<Note<'a>> {
    let kind = CaptureKind::from_number(text.u8()?)?;
    let (status, _flags) = (text.u16()?, text.u8()?);
    let length = text.count(MIME_BYTES_MAX)?;
    let mime = std::str::from_utf8(text.take(length)?).ok()?;
    Some(Note { kind, status, mime })
}

/// Compares the entries of one URL key with a bound: equal if the bound lies among them.
fn compare_key(key: &[u8], bound: &[u8]) -> Ordering {
    match bound.get(..key.len()) {
        // The entry's key goes on with a zero byte behind the URL key.
        Some(front) => key.cmp(front).then_with(|| match bound.get(key.len()) {
            Some(0) => Ordering::Equal,
            Some(_) => Ordering::Less,
            None => Ordering::Greater,
        }),
        None => key.cmp(bound),
    }
}

impl Rows for CapturesBlock {
    fn rows(&self) -> usize {
        self.rows
    }

    fn search(&self, bound: &[u8]) -> usize {
        self.search_between(0, self.key_count, bound)
    }

    /// Looks ahead in steps that double: the end of one URL's captures is mostly where the next URL begins.
    fn search_from(&self, row: usize, bound: &[u8]) -> usize {
        if row >= self.rows {
            return self.rows;
        }
        let (mut from, mut step) = (self.key_of(row), 1);
        while from + step < self.key_count && compare_key(self.key(from + step), bound) == Ordering::Less {
            from += step;
            step *= 2;
        }
        self.search_between(from, (from + step).min(self.key_count), bound).max(row)
    }

    fn write_key(&self, row: usize, out: &mut Vec<u8>) {
        entry::write_key(self.key(self.key_of(row)), self.moment(row), out);
    }

    fn slim(&mut self) {
        // Copies, because an allocation that shrinks by less than half seldom gives anything back.
        self.bytes = self.bytes[..self.packed_end + PADDING].to_vec();
        self.text = self.text[self.rests_end..].to_vec();
        let forms_at = 2 * self.key_count + 2;
        self.table[forms_at..].iter_mut().for_each(|begin| *begin -= self.rests_end as u32);
        self.rests_end = 0;
    }

    fn weight(&self) -> usize {
        let held = self.bytes.capacity() + self.text.capacity() + self.keys.capacity() + self.table.capacity() * 4;
        held + size_of::<CapturesBlock>() + 64
    }
}
