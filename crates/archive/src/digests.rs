//! The digests view: which captures have a body with a given digest, the earliest first.
//!
//! ```text
//!   key    | algorithm 1 | digest … | time 8 | writer 4 | segment 4 | record 4 |      big-endian, times sort as bytes
//!   value  | key of the URL … |
//! ```
//!
//! Every capture with a body has its own entry, so that nothing has to be read before one is put, the order in which
//! records arrive does not matter, and when the earliest is removed the next one is there.

use crate::memory::Room;
use crate::runs::{self, Bounds, Direction, LookedFor, Moment, Pair, Pairs, RunSet};
use crate::{Capture, Digest, Error, Hidden, Key, Position, Result};
use fjall::{Database, OwnedWriteBatch};
use std::path::Path;
use std::sync::{Arc, RwLock};

/// The keyspace of fresh digests in the store of the views.
pub const KEYSPACE: &str = "digests";

/// Keys that begin with a digest, which is what look-ups ask for.
pub(crate) struct DigestKeys;

impl LookedFor for DigestKeys {
    fn looked_for(key: &[u8]) -> &[u8] {
        let width = key.first().and_then(|algorithm| Digest::width(*algorithm)).unwrap_or(0);
        key.get(..1 + width).unwrap_or(key)
    }
}

type Codec = Pairs<DigestKeys>;

/// A capture that has a body with the digest asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Original {
    /// The key of its URL.
    pub key: Key,
    /// Milliseconds since 1970.
    pub time_ms: i64,
    /// The name of its record.
    pub position: Position,
}

/// The digests view.
pub struct Digests {
    set: RunSet<Codec>,
    hidden: Arc<Hidden>,
}

impl Digests {
    /// Opens the view: fresh entries in `store`, runs in `folder`.
    pub fn open(store: &Database, folder: &Path, hidden: Arc<Hidden>, room: Room) -> Result<Digests> {
        Ok(Digests { set: RunSet::open(store, KEYSPACE, folder, room)?, hidden })
    }

    /// Entries are put into the store under this lock.
    pub fn put_under(self, putting: Arc<RwLock<()>>) -> Digests {
        Digests { set: self.set.put_under(putting), ..self }
    }

    /// Key and value to put into the keyspace [`KEYSPACE`]; `None` for a capture without body or digest.
    pub fn entry(&self, capture: &Capture) -> Option<(Vec<u8>, Vec<u8>)> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        write_entry(capture, &mut key, &mut value).then(|| {
            self.set.expect_fresh(1);
            (key, value)
        })
    }

    /// Puts a capture into a batch on the view's store, if it has a body and a digest.
    pub fn put(&self, capture: &Capture, batch: &mut OwnedWriteBatch) {
        if let Some((key, value)) = self.entry(capture) {
            batch.insert(self.set.fresh(), key, value);
        }
    }

    /// Begins to add many captures, in bounded memory.
    pub fn bulk(&self) -> Bulk<'_> {
        Bulk { bulk: self.set.bulk(), key: Vec::new(), value: Vec::new() }
    }

    /// Moves fresh entries into a run if they are many, and merges runs that have become many.
    pub fn tend(&self) -> Result<()> {
        if self.set.wants_move() {
            self.set.move_fresh()?;
        }
        while self.set.merge()? {}
        Ok(())
    }

    /// Whether there is none at all.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.set.walk(Bounds::prefix(&[]), Direction::Forward).next_span()?.is_none())
    }

    /// The earliest capture that has a body with this digest and is not hidden.
    pub fn earliest(&self, digest: &Digest) -> Result<Option<Original>> {
        self.originals(digest, 1).map(|mut originals| originals.pop())
    }

    /// Up to `limit` captures that have a body with this digest, the earliest first.
    pub fn originals(&self, digest: &Digest, limit: usize) -> Result<Vec<Original>> {
        let looked_for = [&[digest.algorithm()], digest.bytes()].concat();
        let mut walk = self.set.find(&looked_for)?.walk(Bounds::prefix(&looked_for), Direction::Forward);
        let hidden = self.hidden.now();
        let mut originals = Vec::new();
        while let Some(span) = walk.next_span()? {
            for row in span.rows.clone() {
                if originals.len() >= limit {
                    return Ok(originals);
                }
                let Some(pair) = span.block.row(row) else { continue };
                let (_, original) = read_entry(pair)?;
                if !hidden.contains(&original.position) {
                    originals.push(original);
                }
            }
        }
        Ok(originals)
    }

    /// Shows every entry that is not hidden, ordered by digest, then time.
    pub fn each(&self, mut look: impl FnMut(Digest, Original)) -> Result<()> {
        let hidden = self.hidden.now();
        let mut walk = self.set.walk(Bounds::prefix(&[]), Direction::Forward);
        while let Some(span) = walk.next_span()? {
            for row in span.rows.clone() {
                let Some(pair) = span.block.row(row) else { continue };
                let (digest, original) = read_entry(pair)?;
                if !hidden.contains(&original.position) {
                    look(digest, original);
                }
            }
        }
        Ok(())
    }
}

fn write_entry(capture: &Capture, key: &mut Vec<u8>, value: &mut Vec<u8>) -> bool {
    let Some(digest) = capture.digest.filter(|_| capture.kind.has_body()) else { return false };
    key.push(digest.algorithm());
    key.extend_from_slice(digest.bytes());
    key.extend_from_slice(&Moment { time_ms: capture.time_ms, position: capture.position }.to_bytes());
    value.extend_from_slice(capture.key.as_bytes());
    true
}

fn read_entry(pair: Pair<'_>) -> Result<(Digest, Original)> {
    let read = || {
        let (digest, moment) = pair.key.split_last_chunk::<20>()?;
        let (algorithm, bytes) = digest.split_first()?;
        let moment = Moment::from_bytes(moment);
        let original =
            Original { key: Key::from_bytes(pair.value)?, time_ms: moment.time_ms, position: moment.position };
        Some((Digest::from_parts(*algorithm, bytes)?, original))
    };
    read().ok_or_else(|| Error::Views { what: "an entry of digests is not what was written".into() })
}

/// Many captures on their way into the view; see [`Digests::bulk`].
pub struct Bulk<'a> {
    bulk: runs::Bulk<'a, Codec>,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'a> Bulk<'a> {
    /// Adds a capture, in any order, if it has a body and a digest.
    pub fn push(&mut self, capture: &Capture) -> Result<()> {
        self.key.clear();
        self.value.clear();
        if write_entry(capture, &mut self.key, &mut self.value) {
            self.bulk.push(&self.key, &self.value)
        } else {
            Ok(())
        }
    }

    /// Puts what was added into `batch`, which the caller commits; then [`Staged::publish`] makes it visible.
    pub fn stage(self, batch: &mut OwnedWriteBatch) -> Result<Staged<'a>> {
        Ok(Staged(self.bulk.stage(batch)?))
    }
}

/// Entries that become part of the view when the batch is committed.
#[must_use = "publish it when the batch is committed"]
pub struct Staged<'a>(runs::Staged<'a, Codec>);

impl Staged<'_> {
    /// Makes the entries visible; the batch they were staged in is committed.
    pub fn publish(self) {
        self.0.publish();
    }
}
