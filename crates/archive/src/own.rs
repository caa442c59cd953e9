//! The records an archive writes about itself: how they look, apart from what they say.

use std::io::BufRead;

use skep_warc::deflate::Level;
use skep_warc::write::{Compression, Encoder, Record};
use skep_warc::{Options, Reader};

use crate::describe::describe;
use crate::error::{Error, Result};
use crate::sidecar::Note;

/// Media type of the blocks of warcinfo, closing and removal records.
pub const FIELDS: &str = "application/warc-fields";
/// Media type of a record of checks; its block is opaque here.
pub const CHECKS: &str = "application/vnd.skep.checks";
/// Media type of a record of heard URLs; its block is opaque here.
pub const HEARD: &str = "application/vnd.skep.heard";

/// A record ready to be appended: one gzip member, and what a sidecar says of it.
#[derive(Debug)]
pub struct Encoded {
    /// The compressed record.
    pub bytes: Bytes,
    /// What it is.
    pub note: Note,
}

/// The bytes of an encoded record.
#[derive(Debug)]
pub enum Bytes {
    /// In memory.
    Memory(Vec<u8>),
    /// In a file of its own (usually without a name), from its beginning: for what is too large for memory.
    Spilled {
        /// The file.
        file: std::fs::File,
        /// How many bytes count.
        length: u64,
    },
}

impl Bytes {
    /// How many bytes the record has.
    pub fn length(&self) -> u64 {
        match self {
            Bytes::Memory(bytes) => bytes.len() as u64,
            Bytes::Spilled { length, .. } => *length,
        }
    }
}

impl Encoded {
    /// A record that is in memory.
    pub fn new(bytes: Vec<u8>, note: Note) -> Encoded {
        Encoded { bytes: Bytes::Memory(bytes), note }
    }

    /// A record that is in memory, described by reading it: for callers that know no more than its bytes.
    pub fn describing(bytes: Vec<u8>) -> Result<Encoded> {
        let wrong = |what: String| Error::Refused { why: format!("not one whole record: {what}") };
        let read = || -> std::io::Result<Option<(Note, u64, bool)>> {
            let mut reader = Reader::new(std::io::Cursor::new(bytes.clone()), Options::recover())?;
            let Some(mut record) = reader.next()? else { return Ok(None) };
            let head = record.head().clone();
            let note = describe(&head, &mut record as &mut dyn BufRead)?;
            let end = record.finish()?;
            Ok(Some((note, end.length, end.damaged)))
        };
        match read().map_err(|error| wrong(error.to_string()))? {
            Some((note, length, false)) if length == bytes.len() as u64 => Ok(Encoded::new(bytes, note)),
            Some((_, length, damaged)) => Err(wrong(format!("{length} of {} bytes, damaged: {damaged}", bytes.len()))),
            None => Err(wrong("no record".into())),
        }
    }
}

/// A block in the form `name: value`, a line each, as `application/warc-fields` has it.
#[derive(Debug, Default)]
pub struct FieldsBlock {
    text: String,
}

impl FieldsBlock {
    /// Adds a line. Line breaks and other control characters in the value become spaces, so that a reason or a URL can
    /// never forge a line.
    pub fn line(&mut self, name: &str, value: &str) -> &mut FieldsBlock {
        let value: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.text.push_str(name);
        self.text.push_str(": ");
        self.text.push_str(value.trim());
        self.text.push_str("\r\n");
        self
    }

    /// What was written so far.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// The lines of such a block as name and value; a line without a colon is an error that quotes it.
pub fn lines(block: &[u8]) -> Result<Vec<(&str, &str)>, String> {
    let text = std::str::from_utf8(block).map_err(|_| "the block is not UTF-8".to_string())?;
    let mut lines = Vec::new();
    for line in text.split_terminator('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let (name, value) = line.split_once(':').ok_or_else(|| format!("the line {line:?} has no colon"))?;
        lines.push((name, value.trim()));
    }
    Ok(lines)
}

/// The one value of a line that must be there once.
pub fn once<'l>(lines: &[(&'l str, &'l str)], name: &str) -> Result<&'l str, String> {
    let mut found = lines.iter().filter(|(have, _)| *have == name).map(|(_, value)| *value);
    match (found.next(), found.next()) {
        (Some(value), None) => Ok(value),
        (None, _) => Err(format!("{name} is missing")),
        (Some(_), Some(_)) => Err(format!("{name} stands twice")),
    }
}

/// Encodes a record of the archive's own.
pub fn encode(record: &Record<'_>) -> Result<Vec<u8>> {
    encode_by(record, Compression::GZIP)
}

/// The same without compressing it: its bytes and its length follow from what it says, whoever writes it with whichever program.
pub fn wrap(record: &Record<'_>) -> Result<Vec<u8>> {
    encode_by(record, Compression::Gzip(Level::STORED))
}

fn encode_by(record: &Record<'_>, compression: Compression) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let encoded = record.encode(&mut Encoder::new(compression), &mut out);
    encoded
        .map_err(|error| Error::Refused { why: format!("a record of the archive's own cannot be written: {error}") })?;
    Ok(out)
}

/// The blank form of a record: a head, and no block.
pub fn encode_head(head: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Encoder::new(Compression::GZIP).raw_record(head, b"", &mut out);
    out
}

/// The same without compressing it.
pub fn wrap_head(head: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Encoder::new(Compression::Gzip(Level::STORED)).raw_record(head, b"", &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_forge_a_line() {
        let mut block = FieldsBlock::default();
        block.line("reason", "asked\r\nsignature: 00\u{85}").line("time", "now");
        assert_eq!(block.as_str(), "reason: asked  signature: 00\r\ntime: now\r\n");
        let lines = lines(block.as_str().as_bytes()).unwrap();
        assert_eq!(lines, [("reason", "asked  signature: 00"), ("time", "now")]);
        assert_eq!(once(&lines, "time"), Ok("now"));
        assert_eq!(once(&lines, "signature"), Err("signature is missing".into()));
    }

    #[test]
    fn a_block_that_is_no_list_of_fields_says_so() {
        assert!(lines(b"a: b\r\nrubbish").unwrap_err().contains("rubbish"));
        assert!(lines(&[0xff]).unwrap_err().contains("UTF-8"));
        let twice = lines(b"a: 1\na: 2\n").unwrap();
        assert_eq!(once(&twice, "a"), Err("a stands twice".into()));
    }
}
