//! A block of pairs: byte keys, front-coded, and byte values.
//!
//! ```text
//!   | rows varint | text length varint | stored text length varint | heads of the columns … | bodies … | stored text … |
//!
//!   columns, one number for each row:          bytes shared with the key before, bytes of the rest, bytes of the value
//!   text (zstd; plain if the lengths are equal): rests of keys | values
//! ```

use super::bits::{Bytes, Column, PADDING, put_varint};
use super::codec::{BlockParts, Builder, Codec, Rows, filter_hash};
use super::file::{Strings, shared_prefix};
use super::text;
use crate::limits::{BLOCK_BYTES_MAX, BLOCK_ROWS_MAX, BLOCK_TEXT_BYTES_MAX};
use crate::{Error, Result};
use std::marker::PhantomData;

/// Which front part of a key exact look-ups ask for.
pub trait LookedFor: Send + Sync + 'static {
    fn looked_for(key: &[u8]) -> &[u8];
}

/// Runs of pairs.
pub struct Pairs<K>(PhantomData<K>);

/// A key and its value.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
}

impl<K: LookedFor> Codec for Pairs<K> {
    const NUMBER: u8 = 2;
    type Block = PairsBlock;
    type Builder = PairsBuilder<K>;
    type Row<'a> = Pair<'a>;

    fn decode(bytes: Vec<u8>, length: usize, rows: usize) -> Option<PairsBlock> {
        PairsBlock::decode(&bytes, length, rows)
    }

    fn row(block: &PairsBlock, index: usize) -> Pair<'_> {
        Pair { key: block.keys.get(index), value: block.values.get(index) }
    }

    fn alone<'a>(key: &'a [u8], value: &'a [u8]) -> Option<Pair<'a>> {
        Some(Pair { key, value })
    }
}

/// A block, checked and laid open.
pub struct PairsBlock {
    keys: Strings,
    values: Strings,
}

impl PairsBlock {
    fn decode(bytes: &[u8], length: usize, rows: usize) -> Option<PairsBlock> {
        let mut head = Bytes(bytes.get(..length)?);
        if length + PADDING > bytes.len() || head.count(BLOCK_ROWS_MAX)? != rows || rows == 0 {
            return None;
        }
        let text_length = head.count(BLOCK_BYTES_MAX)?;
        let stored_length = head.count(length)?;
        let mut probe = head;
        for _ in 0..3 {
            probe.varint()?;
            probe.u8()?;
        }
        let mut at = length - probe.0.len();
        let shared = Column::read(&mut head, rows, &mut at, length)?;
        let rest = Column::read(&mut head, rows, &mut at, length)?;
        let value = Column::read(&mut head, rows, &mut at, length)?;
        if at.checked_add(stored_length)? != length {
            return None;
        }
        let text = text::read(&bytes[at..length], text_length)?;
        let mut text = Bytes(&text);
        let mut block = PairsBlock { keys: Strings::default(), values: Strings::default() };
        let mut key: Vec<u8> = Vec::new();
        for row in 0..rows {
            let shared = usize::try_from(shared.get(bytes, row)).ok().filter(|shared| *shared <= key.len())?;
            key.truncate(shared);
            key.extend_from_slice(text.take(usize::try_from(rest.get(bytes, row)).ok()?)?);
            if key.len() > usize::from(u16::MAX) {
                return None;
            }
            block.keys.push(&key);
        }
        for row in 0..rows {
            block.values.push(text.take(usize::try_from(value.get(bytes, row)).ok()?)?);
        }
        text.0.is_empty().then_some(block)
    }
}

impl Rows for PairsBlock {
    fn rows(&self) -> usize {
        self.keys.len()
    }

    fn search(&self, bound: &[u8]) -> usize {
        self.keys.partition_point(|key| key < bound)
    }

    fn write_key(&self, row: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(self.keys.get(row));
    }

    fn weight(&self) -> usize {
        self.keys.weight() + self.values.weight() + 128
    }
}

/// Collects pairs for one block.
pub struct PairsBuilder<K> {
    first: Vec<u8>,
    last: Vec<u8>,
    columns: [Vec<u64>; 3],
    rests: Vec<u8>,
    values: Vec<u8>,
    hashes: Vec<u64>,
    compressor: text::Compressor,
    kind: PhantomData<K>,
}

impl<K> Default for PairsBuilder<K> {
    fn default() -> PairsBuilder<K> {
        PairsBuilder {
            first: Vec::new(),
            last: Vec::new(),
            columns: Default::default(),
            rests: Vec::new(),
            values: Vec::new(),
            hashes: Vec::new(),
            compressor: text::Compressor::default(),
            kind: PhantomData,
        }
    }
}

impl<K: LookedFor> Builder<Pairs<K>> for PairsBuilder<K> {
    fn push(&mut self, pair: &Pair<'_>) -> Result<()> {
        if pair.key.len() > usize::from(u16::MAX) || pair.value.len() > BLOCK_TEXT_BYTES_MAX {
            let why = format!("a pair of {} and {} bytes is too long for a run", pair.key.len(), pair.value.len());
            return Err(Error::Refused { why });
        }
        let shared = if self.rows() == 0 {
            self.first.clear();
            self.first.extend_from_slice(pair.key);
            0
        } else {
            shared_prefix(&self.last, pair.key)
        };
        let hash = filter_hash(K::looked_for(pair.key));
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
        self.columns[0].push(shared as u64);
        self.columns[1].push((pair.key.len() - shared) as u64);
        self.columns[2].push(pair.value.len() as u64);
        self.rests.extend_from_slice(&pair.key[shared..]);
        self.values.extend_from_slice(pair.value);
        self.last.truncate(shared);
        self.last.extend_from_slice(&pair.key[shared..]);
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.rows() >= BLOCK_ROWS_MAX || self.rests.len() + self.values.len() >= BLOCK_TEXT_BYTES_MAX
    }

    fn rows(&self) -> usize {
        self.columns[0].len()
    }

    fn finish(&mut self, out: &mut BlockParts) -> Result<()> {
        out.first.clear();
        out.first.extend_from_slice(&self.first);
        out.hashes.clear();
        out.hashes.append(&mut self.hashes);
        let (mut head, mut body) = (Vec::new(), Vec::new());
        for column in &self.columns {
            Column::write(column, &mut head, &mut body);
        }
        self.rests.append(&mut self.values);
        let stored_length = self.compressor.write(&self.rests, &mut body);
        out.payload.clear();
        for count in [self.rows(), self.rests.len(), stored_length] {
            put_varint(&mut out.payload, count as u64);
        }
        out.payload.extend_from_slice(&head);
        out.payload.extend_from_slice(&body);
        self.columns.iter_mut().for_each(Vec::clear);
        self.rests.clear();
        Ok(())
    }
}
