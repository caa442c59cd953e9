//! One capture of a block, or one alone, behind the same questions.

use super::captures_block::{CapturesBlock, LENGTH, Note, OFFSET};
use super::entry::{self, Entry};
use super::url_form;
use crate::{Capture, CaptureKind, Digest, Position};

/// One capture, read where it stands. Only what is asked for is decoded.
pub struct Row<'a>(Place<'a>);

enum Place<'a> {
    Packed(&'a CapturesBlock, usize),
    Alone(Entry<'a>),
}

impl<'a> Row<'a> {
    /// A row of a block.
    pub(crate) fn packed(block: &'a CapturesBlock, row: usize) -> Row<'a> {
        Row(Place::Packed(block, row))
    }

    /// An entry by itself.
    pub(super) fn alone(entry: Entry<'a>) -> Row<'a> {
        Row(Place::Alone(entry))
    }

    /// The bytes of the URL's key: site hash and SURT.
    pub fn url_key(&self) -> &[u8] {
        match &self.0 {
            Place::Packed(block, row) => block.key(block.key_of(*row)),
            Place::Alone(entry) => entry.url_key,
        }
    }

    /// The SURT of the URL.
    pub fn surt(&self) -> &str {
        entry::surt_of(self.url_key())
    }

    /// Milliseconds since 1970.
    pub fn time_ms(&self) -> i64 {
        match &self.0 {
            Place::Packed(block, row) => block.time_ms(*row),
            Place::Alone(entry) => entry.moment.time_ms,
        }
    }

    /// The name of the record.
    pub fn position(&self) -> Position {
        match &self.0 {
            Place::Packed(block, row) => block.position(*row),
            Place::Alone(entry) => entry.moment.position,
        }
    }

    /// The type of the record.
    pub fn kind(&self) -> CaptureKind {
        match &self.0 {
            Place::Packed(block, row) => block.kind_of_note(block.note_of(*row)),
            Place::Alone(entry) => entry.kind,
        }
    }

    /// The HTTP status; 0 where there is none.
    pub fn status(&self) -> u16 {
        match &self.0 {
            Place::Packed(block, row) => block.note(block.note_of(*row)).status,
            Place::Alone(entry) => entry.status,
        }
    }

    /// The flags of a [`Capture`].
    pub fn flags(&self) -> u8 {
        match &self.0 {
            Place::Packed(block, row) => block.flags_of_note(block.note_of(*row)),
            Place::Alone(entry) => entry.flags,
        }
    }

    /// The media type; empty where there is none.
    pub fn mime(&self) -> &str {
        match &self.0 {
            Place::Packed(block, row) => block.note(block.note_of(*row)).mime,
            Place::Alone(entry) => entry.mime,
        }
    }

    /// The payload digest.
    pub fn digest(&self) -> Option<Digest> {
        match &self.0 {
            Place::Packed(block, row) => block.digest(*row),
            Place::Alone(entry) => entry.digest,
        }
    }

    /// Where the record begins in its file.
    pub fn offset(&self) -> u64 {
        match &self.0 {
            Place::Packed(block, row) => block.number(OFFSET, *row),
            Place::Alone(entry) => entry.offset,
        }
    }

    /// How many bytes the record takes in its file.
    pub fn length(&self) -> u64 {
        match &self.0 {
            Place::Packed(block, row) => block.number(LENGTH, *row),
            Place::Alone(entry) => entry.length,
        }
    }

    pub(super) fn url_form(&self) -> &[u8] {
        match &self.0 {
            Place::Packed(block, row) => block.url_form(*row),
            Place::Alone(entry) => entry.url_form,
        }
    }

    /// The URL as it stands in the record.
    pub fn url(&self) -> String {
        url_form::read(self.surt(), self.url_form()).unwrap_or_default()
    }

    /// A copy of everything. Key and note are looked up once, which is most of what a look-up pays for a row.
    pub fn capture(&self) -> Capture {
        let url_key = self.url_key();
        let key = entry::key_of(url_key);
        let url = url_form::read(key.surt(), self.url_form()).unwrap_or_default();
        let (note, flags) = match &self.0 {
            Place::Packed(block, row) => {
                let note = block.note_of(*row);
                (block.note(note), block.flags_of_note(note))
            }
            Place::Alone(entry) => (Note { kind: entry.kind, status: entry.status, mime: entry.mime }, entry.flags),
        };
        Capture {
            key,
            url,
            time_ms: self.time_ms(),
            position: self.position(),
            kind: note.kind,
            status: note.status,
            mime: note.mime.to_string(),
            digest: self.digest(),
            offset: self.offset(),
            length: self.length(),
            flags,
        }
    }
}
