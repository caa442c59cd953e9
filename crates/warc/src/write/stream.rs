//! Records whose block is too large for memory.

use std::io::{self, Read, Seek, Write};

use super::encoder::RECORD_END;
use super::{Compression, Encoder, Record, WriteError, Written};
use crate::digest::{BlockCheck, Hasher};

/// Blocks up to this size are encoded whole (which is faster and knows its lengths), larger ones stream, in bytes.
pub(super) const WHOLE_BYTES_MAX: usize = 4 << 20;

/// Bytes moved at a time.
const STEP_BYTES: usize = 64 << 10;

impl Encoder {
    /// Writes a record whose head (with the empty line at its end) is given and whose block of `length` bytes is read from
    /// `block`, exactly as they are. On an error the output must be cut back to where the record began.
    pub fn raw_stream(
        &mut self,
        head: &[u8],
        mut block: impl Read,
        length: u64,
        out: &mut impl Write,
    ) -> Result<Written, WriteError> {
        if length <= WHOLE_BYTES_MAX as u64 {
            let mut whole = Vec::with_capacity(length as usize);
            let found = (&mut block).take(length).read_to_end(&mut whole)? as u64;
            if found < length {
                return Err(WriteError::Short { stated: length, found });
            }
            let mut stored = Vec::new();
            let written = self.raw_record(head, &whole, &mut stored);
            out.write_all(&stored)?;
            return Ok(written);
        }
        let record_bytes = head.len() as u64 + length + RECORD_END.len() as u64;
        let mut counted = Counted { out, bytes: 0 };
        match &self.compression {
            Compression::Plain => pour(head, &mut block, length, &mut counted)?,
            Compression::Gzip(_) | Compression::GzipAlike => {
                let level = self.compression.level();
                // The member's length is not known before its end, so there is no `sl` field.
                let level = flate2::Compression::new(u32::from(level.get().min(9)));
                let mut gzip = flate2::GzBuilder::new().write(&mut counted, level);
                pour(head, &mut block, length, &mut gzip)?;
                gzip.finish()?;
            }
            Compression::Zstd { level, dictionary } => {
                let dictionary = dictionary.as_deref().unwrap_or_default();
                let mut frame = zstd::stream::write::Encoder::with_dictionary(&mut counted, *level, dictionary)?;
                frame.include_checksum(true)?;
                frame.include_contentsize(true)?;
                frame.set_pledged_src_size(Some(record_bytes))?;
                pour(head, &mut block, length, &mut frame)?;
                frame.finish()?;
            }
        }
        Ok(Written { stored_bytes: counted.bytes, record_bytes })
    }
}

/// Head, block and record end, in steps.
fn pour(head: &[u8], block: &mut impl Read, length: u64, out: &mut impl Write) -> Result<(), WriteError> {
    out.write_all(head)?;
    let mut buffer = vec![0; STEP_BYTES];
    let mut left = length;
    while left > 0 {
        let wanted = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = read_some(block, &mut buffer[..wanted])?;
        if read == 0 {
            return Err(WriteError::Short { stated: length, found: length - left });
        }
        out.write_all(&buffer[..read])?;
        left -= read as u64;
    }
    out.write_all(RECORD_END)?;
    Ok(())
}

fn read_some(reader: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

impl Record<'_> {
    /// Writes this record with a block that is read twice, from its current position to its end: once for the digests, once
    /// for the bytes. The record's own block is not used. On an error the output must be cut back.
    pub fn encode_stream(
        &self,
        encoder: &mut Encoder,
        block: &mut (impl Read + Seek),
        out: &mut impl Write,
    ) -> Result<Written, WriteError> {
        self.check()?;
        let start = block.stream_position()?;
        let mut check = self.needs_digests().map(|algorithm| BlockCheck::compute(algorithm, self.payload()));
        let mut buffer = vec![0; STEP_BYTES];
        let mut length = 0;
        loop {
            let read = read_some(block, &mut buffer)?;
            if read == 0 {
                break;
            }
            length += read as u64;
            check.iter_mut().for_each(|c| c.update(&buffer[..read]));
        }
        block.seek(io::SeekFrom::Start(start))?;
        let digests = check.map(BlockCheck::finish);
        let head = self.head(length, digests.as_ref())?;
        let Some(digest) = digests.and_then(|d| d.block_digest) else {
            return encoder.raw_stream(&head, block, length, out);
        };
        let mut hashed = Hashed { block, hasher: Hasher::new(digest.algorithm()) };
        let written = encoder.raw_stream(&head, &mut hashed, length, out)?;
        if hashed.hasher.finish() == digest { Ok(written) } else { Err(WriteError::Changed) }
    }

    /// Writes this record with a block of `length` bytes that is read once. Unless digests are turned off, the block digest
    /// must have been given, and so must the payload digest for records that carry one.
    pub fn encode_stream_once(
        &self,
        encoder: &mut Encoder,
        block: impl Read,
        length: u64,
        out: &mut impl Write,
    ) -> Result<Written, WriteError> {
        self.check()?;
        let head = self.head(length, None)?;
        encoder.raw_stream(&head, block, length, out)
    }
}

struct Counted<'a, W> {
    out: &'a mut W,
    bytes: u64,
}

impl<W: Write> Write for Counted<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A reader that keeps a digest of what went through it.
struct Hashed<'a, R> {
    block: &'a mut R,
    hasher: Hasher,
}

impl<R: Read> Read for Hashed<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.block.read(into)?;
        self.hasher.update(&into[..read]);
        Ok(read)
    }
}
