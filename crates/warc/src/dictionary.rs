//! The dictionary of a zstd file: a skippable frame at its very beginning, which every later frame needs.
//!
//! ```text
//!   | 5D 2A 4D 18 | length 4 LE | dictionary, or a zstd frame that holds it |
//! ```

use crate::limits::ZSTD_DICTIONARY_BYTES_MAX;
use crate::source::Source;
use std::io;

pub(crate) const MAGIC: [u8; 4] = [0x5d, 0x2a, 0x4d, 0x18];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The dictionary that a frame's content is, or holds.
pub(crate) fn unpack(content: &[u8]) -> Option<Vec<u8>> {
    match content.starts_with(&ZSTD_MAGIC) {
        true => zstd::bulk::decompress(content, ZSTD_DICTIONARY_BYTES_MAX).ok(),
        false => Some(content.to_vec()),
    }
}

/// The dictionary of a file that is read from somewhere in its middle; `None` where it has none that can be used.
pub(crate) fn of_file(source: &Source) -> io::Result<Option<Vec<u8>>> {
    let mut head = [0; 8];
    if source.peek(0, &mut head)? != Some(head.len()) || head[..4] != MAGIC {
        return Ok(None);
    }
    let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
    if length > ZSTD_DICTIONARY_BYTES_MAX {
        return Ok(None);
    }
    let mut content = vec![0; length];
    let whole = source.peek(head.len() as u64, &mut content)? == Some(length);
    Ok(if whole { unpack(&content) } else { None })
}
