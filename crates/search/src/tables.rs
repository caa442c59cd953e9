//! What is known of texts beside the index of words, in the store of the views. Every batch is written after the index has the documents
//! it speaks of, so that after a crash a document may be made once more, which changes nothing, but none is missing.
//!
//! ```text
//!  keyspace text-marks      | writer 4 BE | number 4 BE |  ─▶  | generation 4 | records 4 | sidecar 8 |     numbers little-endian
//!                           | "version" |                  ─▶  | 1 |
//!  keyspace text-payloads   | algorithm 1 | digest … |     ─▶  | hash of the text 8 |                      0: it has none
//!                           | ff | position 12 BE |        ─▶  the same, for a capture without digest
//!  keyspace text-documents  | document 16 |                ─▶  | time 8 |        of the first capture of this URL with this text
//!  keyspace text-waiting    | algorithm 1 | digest … | position 12 BE |  ─▶  | time 8 | key of the URL … |
//!                                                              a revisit whose payload is not here yet
//! ```

use crate::limits::CLEARED_AT_ONCE;
use skep_archive::layout::SegmentId;
use skep_archive::sidecar::HEADER_BYTES;
use skep_archive::{Batch, Capture, Digest, Key, Position, Result, Views, WriterKey};
use xxhash_rust::xxh3::xxh3_128;

const MARKS: &str = "text-marks";
const PAYLOADS: &str = "text-payloads";
const DOCUMENTS: &str = "text-documents";
const WAITING: &str = "text-waiting";
const VERSION: (&[u8], [u8; 1]) = (b"version", [1]);
const WITHOUT_DIGEST: u8 = 0xff;

/// How far a segment or file has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Which generation.
    pub generation: u32,
    /// The number of the next record.
    pub records: u32,
    /// Where the frame of its sidecar begins that may name it.
    pub sidecar_bytes: u64,
}

impl Mark {
    /// The beginning of a generation.
    pub fn beginning(generation: u32) -> Mark {
        Mark { generation, records: 0, sidecar_bytes: HEADER_BYTES }
    }
}

fn segment_key(id: SegmentId) -> Vec<u8> {
    [id.writer.0.to_be_bytes(), id.number.to_be_bytes()].concat()
}

fn position_bytes(position: Position) -> Vec<u8> {
    [position.writer.0, position.segment, position.record].map(u32::to_be_bytes).concat()
}

/// By what the text of a payload is known.
pub fn payload_key(digest: Option<&Digest>, position: Position) -> Vec<u8> {
    match digest {
        Some(digest) => [&[digest.algorithm()], digest.bytes()].concat(),
        None => [&[WITHOUT_DIGEST], position_bytes(position).as_slice()].concat(),
    }
}

/// The name of a document: one for each text of each URL.
pub fn document(key: &Key, text: u64) -> [u8; 16] {
    xxh3_128(&[key.as_bytes(), &text.to_le_bytes()].concat()).to_be_bytes()
}

fn number(value: &[u8]) -> Option<u64> {
    value.try_into().ok().map(u64::from_le_bytes)
}

/// Whether the tables are of this version.
pub fn are_known(views: &Views) -> Result<bool> {
    Ok(views.get(MARKS, VERSION.0)?.as_deref() == Some(&VERSION.1))
}

/// Says that they are.
pub fn begin(views: &Views) -> Result<()> {
    let mut batch = views.batch();
    batch.put(MARKS, VERSION.0, &VERSION.1);
    batch.commit()
}

/// Empties all tables: everything will be read again.
pub fn clear(views: &Views) -> Result<()> {
    let mut batch = views.batch();
    batch.delete(MARKS, VERSION.0);
    batch.commit()?;
    for name in [MARKS, PAYLOADS, DOCUMENTS, WAITING] {
        loop {
            let mut batch = views.batch();
            let mut some = false;
            for item in views.keyspace(name)?.iter().take(CLEARED_AT_ONCE) {
                batch.delete(name, &item.key()?);
                some = true;
            }
            if !some {
                break;
            }
            batch.commit()?;
        }
    }
    Ok(())
}

/// How far a segment or file has been read.
pub fn mark(views: &Views, id: SegmentId) -> Result<Option<Mark>> {
    let Some(value) = views.get(MARKS, &segment_key(id))? else { return Ok(None) };
    let small = |at: usize| value.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    let mark = || Some(Mark { generation: small(0)?, records: small(4)?, sidecar_bytes: number(value.get(8..)?)? });
    Ok(mark())
}

/// Says how far it has been.
pub fn set_mark(batch: &mut Batch<'_>, id: SegmentId, mark: Mark) {
    let numbers = [mark.generation, mark.records].map(u32::to_le_bytes).concat();
    batch.put(MARKS, &segment_key(id), &[numbers, mark.sidecar_bytes.to_le_bytes().to_vec()].concat());
}

/// The hash of a capture's text; nothing if it has not been read.
pub fn text_of(views: &Views, capture: &Capture) -> Result<Option<u64>> {
    let value = views.get(PAYLOADS, &payload_key(capture.digest.as_ref(), capture.position))?;
    Ok(value.and_then(|value| number(&value)))
}

/// The same with what a batch is about to change.
pub fn text(batch: &Batch<'_>, payload: &[u8]) -> Result<Option<u64>> {
    Ok(batch.get(PAYLOADS, payload)?.and_then(|value| number(&value)))
}

/// Remembers the text of a payload.
pub fn set_text(batch: &mut Batch<'_>, payload: &[u8], text: u64) {
    batch.put(PAYLOADS, payload, &text.to_le_bytes());
}

/// The time that a document is of; nothing if there is no such document.
pub fn time(batch: &Batch<'_>, document: &[u8]) -> Result<Option<i64>> {
    Ok(batch.get(DOCUMENTS, document)?.and_then(|value| number(&value)).map(|time| time as i64))
}

/// Remembers a document.
pub fn set_time(batch: &mut Batch<'_>, document: &[u8], time_ms: i64) {
    batch.put(DOCUMENTS, document, &(time_ms as u64).to_le_bytes());
}

/// Forgets a document.
pub fn forget(batch: &mut Batch<'_>, document: &[u8]) {
    batch.delete(DOCUMENTS, document);
}

/// How many documents there are.
pub fn documents(views: &Views) -> Result<u64> {
    Ok(views.keyspace(DOCUMENTS)?.iter().count() as u64)
}

/// Remembers a revisit until its payload comes.
pub fn wait(batch: &mut Batch<'_>, revisit: &Capture) {
    let payload = payload_key(revisit.digest.as_ref(), revisit.position);
    let key = [payload, position_bytes(revisit.position)].concat();
    let value = [&(revisit.time_ms as u64).to_le_bytes(), revisit.key.as_bytes()].concat();
    batch.put(WAITING, &key, &value);
}

/// A revisit that waited.
pub struct Waited {
    name: Vec<u8>,
    /// Its position.
    pub position: Position,
    /// The key of its URL.
    pub key: Key,
    /// Its time.
    pub time_ms: i64,
}

/// The revisits that wait for a payload.
pub fn waiting(views: &Views, payload: &[u8]) -> Result<Vec<Waited>> {
    let mut found = Vec::new();
    for item in views.keyspace(WAITING)?.prefix(payload) {
        let (name, value) = item.into_inner()?;
        let waited = || {
            let (time, key) = value.split_first_chunk::<8>()?;
            let part = |at: usize| name.get(payload.len() + at..payload.len() + at + 4)?.try_into().ok();
            let [writer, segment, record] = [part(0)?, part(4)?, part(8)?].map(u32::from_be_bytes);
            let position = Position { writer: WriterKey(writer), segment, record };
            let time_ms = u64::from_le_bytes(*time) as i64;
            Some(Waited { name: name.to_vec(), position, key: Key::from_bytes(key)?, time_ms })
        };
        found.extend(waited());
    }
    Ok(found)
}

/// It need not wait any more.
pub fn stop_waiting(batch: &mut Batch<'_>, waited: &Waited) {
    batch.delete(WAITING, &waited.name);
}
