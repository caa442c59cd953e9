//! Writing a block of captures; the block is drawn beside its reader.

use super::bits::{Column, put_varint};
use super::captures_block::{Captures, DIGEST, KEY_COLUMNS, RECORD, ROW_COLUMNS, SEGMENT, TIME, WRITER};
use super::captures_row::Row;
use super::codec::{BlockParts, Builder, filter_hash};
use super::entry::{self, Moment, sortable, unsortable};
use super::file::{Strings, shared_prefix};
use super::text;
use crate::limits::{BLOCK_ROWS_MAX, BLOCK_TEXT_BYTES_MAX};
use crate::{Digest, Position, Result, WriterKey};
use std::collections::HashMap;
use std::hash::Hash;
use xxhash_rust::xxh3::Xxh3DefaultBuilder;

/// Things that repeat, numbered in the order in which they came.
struct Numbered<T> {
    numbers: HashMap<T, u32, Xxh3DefaultBuilder>,
    list: Vec<T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Numbered<T> {
        Numbered { numbers: HashMap::default(), list: Vec::new() }
    }
}

impl<T: Hash + Eq + Clone> Numbered<T> {
    fn number<Q>(&mut self, thing: &Q) -> u64
    where
        T: std::borrow::Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = T> + ?Sized,
    {
        if let Some(number) = self.numbers.get(thing) {
            return u64::from(*number);
        }
        let number = self.list.len() as u32;
        self.numbers.insert(thing.to_owned(), number);
        self.list.push(thing.to_owned());
        u64::from(number)
    }

    fn clear(&mut self) {
        self.numbers.clear();
        self.list.clear();
    }
}

/// Collects captures for one block.
#[derive(Default)]
pub struct CapturesBuilder {
    keys: Strings,
    key_columns: [Vec<u64>; KEY_COLUMNS],
    columns: [Vec<u64>; ROW_COLUMNS],
    writers: Numbered<u32>,
    forms: Numbered<Vec<u8>>,
    notes: Numbered<Vec<u8>>,
    digests: Numbered<Option<Digest>>,
    hashes: Vec<u64>,
    text: Vec<u8>,
    text_bytes: usize,
    note: Vec<u8>,
    head: Vec<u8>,
    stored: Vec<u8>,
    compressor: text::Compressor,
}

impl CapturesBuilder {
    fn push_key(&mut self, key: &[u8]) {
        let keys = self.keys.len();
        if keys > 0 && self.keys.get(keys - 1) == key {
            if let Some(rows) = self.key_columns[2].last_mut() {
                *rows += 1;
            }
            return;
        }
        let shared = if keys > 0 { shared_prefix(self.keys.get(keys - 1), key) } else { 0 };
        self.keys.push(key);
        self.key_columns[0].push(shared as u64);
        self.key_columns[1].push((key.len() - shared) as u64);
        self.key_columns[2].push(1);
        self.text.extend_from_slice(&key[shared..]);
        self.text_bytes += key.len() - shared;
        let looked_for = [key, &[0]].concat();
        self.hashes.push(filter_hash(&looked_for));
    }

    /// Renumbers the digests so that those of one algorithm stand together, and says how many of each there are.
    fn group_digests(&mut self) -> Vec<(u8, usize)> {
        let algorithm = |digest: &Option<Digest>| digest.map_or(0, |digest| digest.algorithm());
        let list = &self.digests.list;
        let mut order: Vec<usize> = (0..list.len()).collect();
        order.sort_by_key(|number| algorithm(&list[*number]));
        let mut groups: Vec<(u8, usize)> = Vec::new();
        let mut renumbered = vec![0u64; list.len()];
        for (new, old) in order.iter().enumerate() {
            renumbered[*old] = new as u64;
            let found = algorithm(&list[*old]);
            match groups.last_mut() {
                Some((last, count)) if *last == found => *count += 1,
                _ => groups.push((found, 1)),
            }
        }
        for number in &mut self.columns[DIGEST] {
            *number = renumbered[*number as usize];
        }
        self.digests.list = order.iter().map(|old| self.digests.list[*old]).collect();
        groups
    }
}

impl Builder<Captures> for CapturesBuilder {
    fn push(&mut self, row: &Row<'_>) -> Result<()> {
        self.push_key(row.url_key());
        self.note.clear();
        self.note.push(row.kind().number());
        self.note.extend_from_slice(&row.status().to_le_bytes());
        self.note.push(row.flags());
        put_varint(&mut self.note, row.mime().len() as u64);
        self.note.extend_from_slice(row.mime().as_bytes());
        let position = row.position();
        let forms = self.forms.list.len();
        let numbers = [
            sortable(row.time_ms()),
            self.writers.number(&position.writer.0),
            u64::from(position.segment),
            u64::from(position.record),
            row.offset(),
            row.length(),
            self.forms.number(row.url_form()),
            self.notes.number(self.note.as_slice()),
            self.digests.number(&row.digest()),
        ];
        if self.forms.list.len() > forms {
            self.text_bytes += row.url_form().len();
        }
        for (column, number) in self.columns.iter_mut().zip(numbers) {
            column.push(number);
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.rows() >= BLOCK_ROWS_MAX || self.text_bytes >= BLOCK_TEXT_BYTES_MAX
    }

    fn rows(&self) -> usize {
        self.columns[TIME].len()
    }

    fn finish(&mut self, out: &mut BlockParts) -> Result<()> {
        let first_moment = Moment {
            time_ms: unsortable(self.columns[TIME][0]),
            position: Position {
                writer: WriterKey(self.writers.list[self.columns[WRITER][0] as usize]),
                segment: self.columns[SEGMENT][0] as u32,
                record: self.columns[RECORD][0] as u32,
            },
        };
        out.first.clear();
        entry::write_key(self.keys.get(0), first_moment, &mut out.first);
        out.hashes.clear();
        out.hashes.append(&mut self.hashes);

        let time_base = self.columns[TIME].iter().copied().min().unwrap_or(0);
        let whole_seconds = self.columns[TIME].iter().all(|time| (time - time_base) % 1000 == 0);
        let time_unit = if whole_seconds { 1000 } else { 1 };
        for time in &mut self.columns[TIME] {
            *time = (*time - time_base) / time_unit;
        }
        let groups = self.group_digests();
        for form in &self.forms.list {
            put_varint(&mut self.text, form.len() as u64);
            self.text.extend_from_slice(form);
        }
        for note in &self.notes.list {
            self.text.extend_from_slice(note);
        }

        let payload = &mut out.payload;
        payload.clear();
        self.head.clear();
        self.stored.clear();
        for column in self.key_columns.iter().chain(&self.columns) {
            Column::write(column, &mut self.head, &mut self.stored);
        }
        for digest in self.digests.list.iter().flatten() {
            self.stored.extend_from_slice(digest.bytes());
        }
        let stored_text = self.compressor.write(&self.text, &mut self.stored);
        for count in [
            self.columns[TIME].len(),
            self.keys.len(),
            self.forms.list.len(),
            self.notes.list.len(),
            self.writers.list.len(),
            groups.len(),
            self.text.len(),
            stored_text,
        ] {
            put_varint(payload, count as u64);
        }
        for (algorithm, count) in groups {
            payload.push(algorithm);
            put_varint(payload, count as u64);
        }
        put_varint(payload, time_base);
        put_varint(payload, time_unit);
        payload.extend_from_slice(&self.head);
        for writer in &self.writers.list {
            payload.extend_from_slice(&writer.to_le_bytes());
        }
        payload.extend_from_slice(&self.stored);

        self.keys.clear();
        self.key_columns.iter_mut().for_each(Vec::clear);
        self.columns.iter_mut().for_each(Vec::clear);
        self.writers.clear();
        self.forms.clear();
        self.notes.clear();
        self.digests.clear();
        self.text.clear();
        self.text_bytes = 0;
        Ok(())
    }
}
