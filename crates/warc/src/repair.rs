//! Repair: every record that can be had, written anew, one gzip member each. The damaged file itself is never touched.

use crate::deflate::Level;
use crate::finding::Finding;
use crate::head::Head;
use crate::read::{Reader, Record};
use crate::write::{Compression, Encoder};
use std::io::{self, Read, Seek, Write};

/// What a repair came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Records written.
    pub records: u64,
    /// Of these, records whose head had to be changed, because its length was wrong or it was not ended.
    pub changed: u64,
    /// Records whose block is not whole; they say so in `WARC-Truncated`.
    pub truncated: u64,
    /// What was wrong with the file.
    pub findings: Vec<Finding>,
}

/// Block bytes held in memory; a longer block goes through a temporary file, because its length must be known before it is written.
const HELD_BYTES_MAX: u64 = 4 << 20;

/// Reads everything and writes what is whole, or can be made whole, to `out`.
pub fn repair(reader: &mut Reader, out: &mut dyn Write) -> io::Result<Repaired> {
    let mut encoder = Encoder::new(Compression::Gzip(Level::DEFAULT));
    let mut repaired = Repaired::default();
    while let Some(mut record) = reader.next()? {
        let mut block = Held::read(&mut record)?;
        let head = record.head().clone();
        let end = record.finish()?;
        let declared = head.content_length();
        let short = declared.is_some_and(|n| n > end.block_bytes) && end.damaged;
        repaired.truncated += u64::from(short);
        let raw = if declared == Some(end.block_bytes) && head.is_ended() {
            head.raw().to_vec()
        } else {
            repaired.changed += 1;
            corrected(&head, end.block_bytes, short)
        };
        repaired.records += 1;
        block.write(&raw, head.is_arc(), &mut encoder, out)?;
        repaired.findings.append(&mut reader.take_findings());
        repaired.findings.truncate(crate::limits::FINDINGS_MAX);
    }
    repaired.findings.append(&mut reader.take_findings());
    out.flush()?;
    Ok(repaired)
}

/// The head with the length that the block has, every other field as it stood.
fn corrected(head: &Head, length: u64, truncated: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(head.raw().len() + 64);
    if head.is_arc() {
        let values: Vec<&[u8]> = head.fields().map(|(_, value)| value).collect();
        let (_, kept) = values.split_last().unwrap_or((&&b""[..], &[]));
        out.extend(kept.join(&b' '));
        out.extend_from_slice(format!(" {length}\n").as_bytes());
        return out;
    }
    let version = match head.version() {
        version @ crate::Version::Warc(..) => version.to_string(),
        _ => "WARC/1.0".to_owned(),
    };
    out.extend_from_slice(version.as_bytes());
    out.extend_from_slice(b"\r\n");
    let mut line = |name: &[u8], value: &[u8]| {
        out.extend_from_slice(name);
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    };
    for (name, value) in head.fields().filter(|(name, _)| !name.eq_ignore_ascii_case(b"Content-Length")) {
        line(name, value);
    }
    if truncated && head.get("WARC-Truncated").is_none() {
        line(b"WARC-Truncated", b"unspecified");
    }
    line(b"Content-Length", length.to_string().as_bytes());
    out.extend_from_slice(b"\r\n");
    out
}

/// A block whose length is known.
struct Held {
    first: Vec<u8>,
    rest: Option<std::fs::File>,
    rest_bytes: u64,
}

impl Held {
    fn read(record: &mut Record<'_>) -> io::Result<Held> {
        let mut first = Vec::new();
        record.by_ref().take(HELD_BYTES_MAX).read_to_end(&mut first)?;
        let mut held = Held { first, rest: None, rest_bytes: 0 };
        if held.first.len() as u64 == HELD_BYTES_MAX {
            let mut file = tempfile::tempfile()?;
            held.rest_bytes = io::copy(record, &mut file)?;
            file.rewind()?;
            held.rest = Some(file);
        }
        Ok(held)
    }

    fn write(&mut self, head: &[u8], arc: bool, encoder: &mut Encoder, out: &mut dyn Write) -> io::Result<()> {
        if arc {
            let mut member = flate2::write::GzEncoder::new(out, flate2::Compression::new(6));
            member.write_all(head)?;
            member.write_all(&self.first)?;
            if let Some(rest) = &mut self.rest {
                io::copy(rest, &mut member)?;
            }
            member.write_all(b"\n")?;
            return member.finish().map(|_| ());
        }
        match &mut self.rest {
            None => {
                let mut bytes = Vec::new();
                encoder.raw_record(head, &self.first, &mut bytes);
                out.write_all(&bytes)
            }
            Some(rest) => {
                let length = self.first.len() as u64 + self.rest_bytes;
                let mut block = self.first.as_slice().chain(rest);
                encoder.raw_stream(head, &mut block, length, &mut { out }).map(|_| ()).map_err(io::Error::other)
            }
        }
    }
}
