//! gzip as a stream of members.
//!
//! ```text
//!   | 1f 8b | 08 | flags | mtime 4 | xfl | os |  [extra] [name 0] [comment 0] [crc16]  | DEFLATE | crc32 4 LE | length 4 LE |
//! ```
//!
//! Taken apart by hand because browsers give the text whatever the trailer says, and streaming decoders do not.

use flate2::Decompress;

use super::GZIP_HEADER_BYTES_MAX;
use super::decoder::{Progress, inflate_step};
use crate::deflate::crc32;
use crate::http::Rule;

enum Stage {
    Header,
    Deflate,
    Trailer,
    /// Behind a member: the end, another member, or something else.
    Between,
}

pub(super) struct Gzip {
    stage: Stage,
    inflate: Decompress,
    /// Bytes of a header or trailer that came in pieces.
    part: Vec<u8>,
    crc: u32,
    length: u32,
    members: u32,
}

impl Gzip {
    pub fn new() -> Gzip {
        Gzip { stage: Stage::Header, inflate: Decompress::new(false), part: Vec::new(), crc: 0, length: 0, members: 0 }
    }

    pub fn decode(&mut self, input: &[u8], ended: bool, out: &mut [u8]) -> Progress {
        match self.stage {
            Stage::Header => self.header(input, ended),
            Stage::Deflate => {
                let (consumed, produced, status) = inflate_step(&mut self.inflate, input, out);
                self.crc = crc32(self.crc, &out[..produced]);
                self.length = self.length.wrapping_add(produced as u32);
                match status {
                    Ok(true) => self.stage = Stage::Trailer,
                    Ok(false) => {}
                    Err(()) => return Progress::end(consumed, produced, Some(Rule::ContentDamaged)),
                }
                Progress::more(consumed, produced)
            }
            Stage::Trailer => self.trailer(input),
            Stage::Between => {
                if ended {
                    return Progress::end(0, 0, None);
                }
                if input.first() == Some(&0x1f) {
                    self.stage = Stage::Header;
                    return Progress::more(0, 0);
                }
                Progress::end(0, 0, Some(Rule::ContentAfterEnd))
            }
        }
    }

    fn header(&mut self, input: &[u8], ended: bool) -> Progress {
        let before = self.part.len();
        let room = GZIP_HEADER_BYTES_MAX - before;
        self.part.extend_from_slice(&input[..input.len().min(room)]);
        let bad = if self.members > 0 { Rule::ContentAfterEnd } else { Rule::ContentDamaged };
        match header_length(&self.part) {
            Some(Some(length)) => {
                self.part.clear();
                self.inflate.reset(false);
                (self.crc, self.length) = (0, 0);
                self.stage = Stage::Deflate;
                Progress::more(length - before, 0)
            }
            Some(None) if ended && self.members > 0 => Progress::end(0, 0, Some(Rule::ContentAfterEnd)),
            Some(None) if self.part.len() < GZIP_HEADER_BYTES_MAX => Progress::more(self.part.len() - before, 0),
            _ => Progress::end(0, 0, Some(bad)),
        }
    }

    fn trailer(&mut self, input: &[u8]) -> Progress {
        let taken = input.len().min(8 - self.part.len());
        self.part.extend_from_slice(&input[..taken]);
        let mut progress = Progress::more(taken, 0);
        if let Ok(trailer) = <[u8; 8]>::try_from(self.part.as_slice()) {
            let [a, b, c, d, e, f, g, h] = trailer;
            if u32::from_le_bytes([a, b, c, d]) != self.crc || u32::from_le_bytes([e, f, g, h]) != self.length {
                progress.deviation = Some(Rule::ContentChecksum);
            }
            self.part.clear();
            self.members = self.members.saturating_add(1);
            self.stage = Stage::Between;
        }
        progress
    }
}

/// Length of the header at the start of `bytes`; `Some(None)` when more bytes are needed, `None` when this is none.
fn header_length(bytes: &[u8]) -> Option<Option<usize>> {
    let magic = [0x1f, 0x8b, 8];
    let known = bytes.len().min(3);
    if bytes[..known] != magic[..known] || bytes.get(3).is_some_and(|flags| flags & 0xe0 != 0) {
        return None;
    }
    let Some(&flags) = bytes.get(3) else { return Some(None) };
    let mut at = 10;
    if flags & 4 != 0 {
        let Some(length) = bytes.get(at..at + 2) else { return Some(None) };
        at += 2 + usize::from(u16::from_le_bytes([length[0], length[1]]));
    }
    for flag in [8, 16] {
        if flags & flag != 0 {
            let Some(end) = bytes.get(at..).and_then(|rest| memchr::memchr(0, rest)) else { return Some(None) };
            at += end + 1;
        }
    }
    if flags & 2 != 0 {
        at += 2;
    }
    Some((at <= bytes.len()).then_some(at))
}
