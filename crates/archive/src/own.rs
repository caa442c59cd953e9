//! The records an archive writes about itself: how they look, apart from what they say.

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
pub fn encode(
    kind: skep_warc::RecordKind,
    id: &str,
    time_ms: i64,
    more: &[(&str, &str)],
    block: &[u8],
) -> Result<Vec<u8>> {
    let mut head = format!(
        "WARC/1.1\r\nWARC-Type: {}\r\nWARC-Record-ID: <{id}>\r\nWARC-Date: {}\r\n",
        kind.name(),
        skep_warc::date::rfc3339(time_ms)
    );
    for (name, value) in more {
        if value.chars().any(char::is_control) {
            return Err(Error::Refused { why: format!("{name} holds a control character") });
        }
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Type: {FIELDS}\r\nContent-Length: {}\r\n\r\n", block.len()));
    let mut record = head.into_bytes();
    record.extend_from_slice(block);
    record.extend_from_slice(b"\r\n\r\n");
    Ok(member(&record))
}

/// One gzip member that holds one record, with the lengths of both in the `sl` field.
pub fn member(record: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 12, 0, b's', b'l', 8, 0];
    out.extend_from_slice(&[0; 8]);
    skep_warc::deflate::Deflater::new(skep_warc::deflate::Level::DEFAULT).compress(record, &mut out);
    out.extend_from_slice(&skep_warc::deflate::crc32(0, record).to_le_bytes());
    out.extend_from_slice(&(record.len() as u32).to_le_bytes());
    let lengths = [out.len() as u32, record.len() as u32];
    out[16..20].copy_from_slice(&lengths[0].to_le_bytes());
    out[20..24].copy_from_slice(&lengths[1].to_le_bytes());
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
