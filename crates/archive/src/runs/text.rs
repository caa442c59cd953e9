//! The text of a block, compressed on its own.

use crate::limits::BLOCK_BYTES_MAX;
use std::cell::RefCell;

/// Compression level: blocks are small, so that higher levels gain little and cost writers much.
const LEVEL: i32 = 3;

/// Every look-up pays for decompressing, several microseconds whatever the length; where URLs have many versions the
/// text is a small part of its block and hardly worth it.
const WORTHWHILE: usize = 8;

/// Compresses the texts of blocks, one after another.
pub struct Compressor(Option<zstd::bulk::Compressor<'static>>);

impl Default for Compressor {
    fn default() -> Compressor {
        let compressor = zstd::bulk::Compressor::new(LEVEL).and_then(|mut compressor| {
            // The block knows its length and has its own checksum.
            compressor.include_contentsize(false)?;
            compressor.include_checksum(false)?;
            Ok(compressor)
        });
        Compressor(compressor.ok())
    }
}

impl Compressor {
    /// Appends the text to the rest of its block: compressed, or as it is if compressing would not make the block smaller
    /// by one part in [`WORTHWHILE`]. Returns how many bytes that took.
    pub fn write(&mut self, text: &[u8], out: &mut Vec<u8>) -> usize {
        let compressed = self.0.as_mut().and_then(|compressor| compressor.compress(text).ok());
        let least_saving = (out.len() + text.len()) / WORTHWHILE;
        match compressed {
            Some(compressed) if compressed.len() + least_saving < text.len() => {
                out.extend_from_slice(&compressed);
                compressed.len()
            }
            _ => {
                out.extend_from_slice(text);
                text.len()
            }
        }
    }
}

thread_local! {
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// The text of `length` bytes for what [`Compressor::write`] appended.
pub fn read(stored: &[u8], length: usize) -> Option<Vec<u8>> {
    if length > BLOCK_BYTES_MAX {
        return None;
    }
    if stored.len() == length {
        return Some(stored.to_vec());
    }
    DECOMPRESSOR.with_borrow_mut(|decompressor| {
        if decompressor.is_none() {
            *decompressor = zstd::bulk::Decompressor::new().ok();
        }
        let mut text = Vec::with_capacity(length);
        let found = decompressor.as_mut()?.decompress_to_buffer(stored, &mut text).ok()?;
        (found == length).then_some(text)
    })
}
