//! From the bytes of a record to the bytes of a file.

use crate::deflate::{Deflater, Level, crc32};
use crate::learned::{self, Learned};

/// Highest zstd level used: beyond it windows outgrow the 8 MiB that the draft for WARC allows.
const ZSTD_LEVEL_MAX: i32 = 19;

/// How the records of a file are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compression {
    /// As they are.
    Plain,
    /// One gzip member per record, with its lengths in an `sl` field.
    Gzip(Level),
    /// The same for small records that are much alike: about as small as at the lowest level, in half the time.
    GzipAlike,
    /// One zstd frame per record, with content size and checksum.
    Zstd {
        /// 1 (fast) to 19 (small).
        level: i32,
        /// A dictionary, which then stands at the beginning of the file: see [`Encoder::prologue`].
        dictionary: Option<Vec<u8>>,
    },
}

impl Compression {
    /// gzip at the usual level.
    pub const GZIP: Compression = Compression::Gzip(Level::DEFAULT);
    /// zstd at its usual level, without dictionary.
    pub const ZSTD: Compression = Compression::Zstd { level: 3, dictionary: None };

    /// The level of DEFLATE for what is streamed.
    pub(super) fn level(&self) -> Level {
        match self {
            Compression::Gzip(level) => *level,
            _ => Level::LOWEST,
        }
    }
}

/// Length of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Bytes in the file: where the record began, plus this, is where the next one begins.
    pub stored_bytes: u64,
    /// Bytes of the record itself: head, block and the two line ends behind it.
    pub record_bytes: u64,
}

/// A stored block of DEFLATE holds so much.
const STORED_BYTES_MAX: usize = u16::MAX as usize;

/// What follows the block of every record.
pub(super) const RECORD_END: &[u8] = b"\r\n\r\n";

/// Encodes record after record; keeps its tables and buffers in between.
pub struct Encoder {
    pub(super) compression: Compression,
    coder: Coder,
    /// The record in one piece, as whole-buffer compressors want it.
    whole: Vec<u8>,
}

enum Coder {
    Plain,
    Gzip(Deflater),
    /// With what was learned from the records before; a long record is left to the other.
    Alike(Box<Learned>, Deflater),
    Zstd(zstd::bulk::Compressor<'static>),
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").field("compression", &self.compression).finish_non_exhaustive()
    }
}

impl Encoder {
    /// An encoder for one kind of file.
    pub fn new(compression: Compression) -> Encoder {
        let compression = match compression {
            Compression::Zstd { level, dictionary } => {
                Compression::Zstd { level: level.clamp(1, ZSTD_LEVEL_MAX), dictionary }
            }
            other => other,
        };
        let coder = match &compression {
            Compression::Plain => Coder::Plain,
            Compression::Gzip(level) => Coder::Gzip(Deflater::new(*level)),
            Compression::GzipAlike => Coder::Alike(Box::new(Learned::new()), Deflater::new(Level::LOWEST)),
            Compression::Zstd { level, dictionary } => {
                let mut compressor = match dictionary {
                    Some(bytes) => zstd::bulk::Compressor::with_dictionary(*level, bytes),
                    None => zstd::bulk::Compressor::new(*level),
                }
                .expect("a zstd level within range");
                compressor.include_checksum(true).expect("zstd knows checksums");
                compressor.include_contentsize(true).expect("zstd knows content sizes");
                Coder::Zstd(compressor)
            }
        };
        Encoder { compression, coder, whole: Vec::new() }
    }

    /// How it compresses.
    pub fn compression(&self) -> &Compression {
        &self.compression
    }

    /// What must stand at the very beginning of the file: the dictionary, if there is one, in a skippable frame.
    ///
    /// ```text
    ///   | 5D 2A 4D 18 | length 4 LE | dictionary |
    /// ```
    pub fn prologue(&self) -> Vec<u8> {
        match &self.compression {
            Compression::Zstd { dictionary: Some(dictionary), .. } => {
                let length = u32::try_from(dictionary.len()).expect("a dictionary is far below 4 GiB");
                [&0x184D_2A5D_u32.to_le_bytes(), &length.to_le_bytes(), dictionary.as_slice()].concat()
            }
            _ => Vec::new(),
        }
    }

    /// Appends a record whose head (with the empty line at its end) and block are given, exactly as they are.
    pub fn raw_record(&mut self, head: &[u8], block: &[u8], out: &mut Vec<u8>) -> Written {
        let before = out.len();
        let record_bytes = head.len() + block.len() + RECORD_END.len();
        let parts = [head, block, RECORD_END];
        if let Coder::Plain = self.coder {
            out.reserve(record_bytes);
            parts.iter().for_each(|part| out.extend_from_slice(part));
        } else if self.compression == Compression::Gzip(Level::STORED) && record_bytes <= STORED_BYTES_MAX {
            stored_member(&parts, record_bytes, out);
        } else {
            self.whole.clear();
            self.whole.reserve(record_bytes);
            parts.iter().for_each(|part| self.whole.extend_from_slice(part));
            match &mut self.coder {
                Coder::Plain => {}
                Coder::Alike(learned, _) if self.whole.len() <= learned::BYTES_MAX => {
                    gzip_member(&self.whole, out, |record, out| learned.compress(record, out));
                }
                Coder::Gzip(deflater) | Coder::Alike(_, deflater) => {
                    gzip_member(&self.whole, out, |record, out| _ = deflater.compress(record, out));
                }
                Coder::Zstd(compressor) => {
                    // A frame of zstd's own bound always has room.
                    out.extend_from_slice(
                        &compressor.compress(&self.whole).expect("zstd compresses into its own bound"),
                    );
                }
            }
            // One huge record must not hold its memory for the life of the encoder.
            if self.whole.capacity() > super::stream::WHOLE_BYTES_MAX {
                self.whole = Vec::new();
            }
        }
        Written { stored_bytes: (out.len() - before) as u64, record_bytes: record_bytes as u64 }
    }
}

/// One gzip member, with the lengths that let a reader step over it.
///
/// ```text
///   | 1f 8b 08 | flags 04 | mtime 0 ×4 | xfl 0 | os ff |
///   | extra length 12 2 LE | 's' 'l' | 8 2 LE | member length 4 LE | record length 4 LE |
///   | DEFLATE | crc32 4 LE | record length mod 2^32 4 LE |
/// ```
///
/// The member length counts everything from `1f` to the last byte of the trailer, as wget wrote it first. The field is left
/// out when a length does not fit in 32 bits.
fn gzip_member(record: &[u8], out: &mut Vec<u8>, deflate: impl FnOnce(&[u8], &mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&MEMBER_HEAD);
    deflate(record, out);
    out.extend_from_slice(&crc32(0, record).to_le_bytes());
    out.extend_from_slice(&(record.len() as u32).to_le_bytes());
    match (u32::try_from(out.len() - start), u32::try_from(record.len())) {
        (Ok(member), Ok(plain)) => set_lengths(&mut out[start..], member, plain),
        _ => {
            out[start + 3] = 0;
            out.drain(start + FIXED_BYTES..start + MEMBER_HEAD.len());
        }
    }
}

/// The same for a record that is only wrapped, in one stored block; it is put together where it will stand.
fn stored_member(parts: &[&[u8]], record_bytes: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.reserve_exact(MEMBER_HEAD.len() + STORED_HEAD_BYTES + record_bytes + TRAILER_BYTES);
    out.extend_from_slice(&MEMBER_HEAD);
    let length = record_bytes as u16;
    out.push(1);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&(!length).to_le_bytes());
    let mut crc = 0;
    for part in parts {
        crc = crc32(crc, part);
        out.extend_from_slice(part);
    }
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(&u32::from(length).to_le_bytes());
    let member = (out.len() - start) as u32;
    set_lengths(&mut out[start..], member, length.into());
}

/// Bytes before the extra field, of a stored block before its content, and behind the DEFLATE data.
const FIXED_BYTES: usize = 10;
const STORED_HEAD_BYTES: usize = 5;
const TRAILER_BYTES: usize = 8;
const MEMBER_HEAD: [u8; 24] = [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 12, 0, b's', b'l', 8, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn set_lengths(member: &mut [u8], member_bytes: u32, record_bytes: u32) {
    member[16..20].copy_from_slice(&member_bytes.to_le_bytes());
    member[20..24].copy_from_slice(&record_bytes.to_le_bytes());
}
