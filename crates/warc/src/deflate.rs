//! Whole-buffer DEFLATE and gzip through libdeflate, which is two to three times faster than any streaming decoder
//! when the input lies in memory.
//!
//! This is one of two files of the package with `unsafe` (the other is `digest/lanes.rs`): libdeflate is a C library, and the two
//! safe crates around it either hide how much input a member consumed or insist on zeroed output. Every pointer handed over here
//! comes from a slice or from the spare capacity of a `Vec`, together with its true length, and no pointer outlives the call.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;

use libdeflate_sys as c;

/// Room tried first when the output buffer brings none of its own, in bytes.
const FIRST_ROOM_BYTES: usize = 64 * 1024;

/// The same in times of all that is at hand, where that is less.
const FIRST_ROOM_TIMES: usize = 8;

/// How much the room grows when a member did not fit: each retry inflates from the start, so few large steps.
const ROOM_GROWTH: usize = 4;

/// What one gzip member gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inflated {
    /// Bytes of input that the member took, header and trailer included.
    pub consumed: usize,
    /// Bytes appended to the output.
    pub produced: usize,
}

/// Why a member was not inflated. The output is left as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InflateError {
    /// The member holds more than the allowed number of bytes.
    InsufficientSpace,
    /// Not a gzip member, damaged, or cut off: with the whole input at hand libdeflate does not tell these apart.
    BadData,
}

impl fmt::Display for InflateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InflateError::InsufficientSpace => "gzip member is larger than allowed",
            InflateError::BadData => "gzip member is damaged or cut off",
        })
    }
}

impl std::error::Error for InflateError {}

/// A reusable decompressor (about 11 KiB of tables; make one per thread).
pub struct Inflater(NonNull<c::libdeflate_decompressor>);

// SAFETY: the decompressor is plain memory owned by this value, without ties to a thread.
unsafe impl Send for Inflater {}

impl fmt::Debug for Inflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inflater")
    }
}

impl Default for Inflater {
    fn default() -> Self {
        Self::new()
    }
}

impl Inflater {
    /// A new decompressor.
    pub fn new() -> Self {
        // SAFETY: no arguments; null means out of memory.
        Inflater(NonNull::new(unsafe { c::libdeflate_alloc_decompressor() }).expect("memory for a decompressor"))
    }

    /// Inflates the gzip member at the start of `input` and appends its bytes, at most `max_out` of them, to `out`.
    ///
    /// The CRC and the length in the trailer are verified. What follows the member in `input` is not looked at. Spare
    /// capacity of `out` is used before it grows, so a buffer that is cleared and reused soon needs one pass per member.
    pub fn inflate_gzip_member(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        max_out: usize,
    ) -> Result<Inflated, InflateError> {
        self.grow_until_it_fits(input.len(), out, max_out, |d, room, space, consumed, produced| {
            // SAFETY: `input` and the `space` bytes at `room` are valid for the call; libdeflate reads only the first and
            // reads back from the second only what it wrote there.
            unsafe {
                c::libdeflate_gzip_decompress_ex(
                    d,
                    input.as_ptr().cast::<c_void>(),
                    input.len(),
                    room.cast::<c_void>(),
                    space,
                    consumed,
                    produced,
                )
            }
        })
    }

    /// Inflates a raw DEFLATE stream at the start of `input`, as [`inflate_gzip_member`](Self::inflate_gzip_member) does
    /// for a gzip member. No checksum is involved.
    pub fn inflate_raw(&mut self, input: &[u8], out: &mut Vec<u8>, max_out: usize) -> Result<Inflated, InflateError> {
        self.grow_until_it_fits(input.len(), out, max_out, |d, room, space, consumed, produced| {
            // SAFETY: as above.
            unsafe {
                c::libdeflate_deflate_decompress_ex(
                    d,
                    input.as_ptr().cast::<c_void>(),
                    input.len(),
                    room.cast::<c_void>(),
                    space,
                    consumed,
                    produced,
                )
            }
        })
    }

    fn grow_until_it_fits(
        &mut self,
        input_bytes: usize,
        out: &mut Vec<u8>,
        max_out: usize,
        call: impl Fn(*mut c::libdeflate_decompressor, *mut u8, usize, *mut usize, *mut usize) -> c::libdeflate_result,
    ) -> Result<Inflated, InflateError> {
        // A short record that is read by its place asks for little.
        let first = input_bytes.saturating_mul(FIRST_ROOM_TIMES).clamp(FIRST_ROOM_BYTES / 64, FIRST_ROOM_BYTES);
        let mut wanted = (out.capacity() - out.len()).max(first).min(max_out);
        loop {
            out.reserve(wanted);
            let room = out.spare_capacity_mut();
            let space = room.len().min(max_out);
            let (mut consumed, mut produced) = (0usize, 0usize);
            let result = call(self.0.as_ptr(), room.as_mut_ptr().cast::<u8>(), space, &mut consumed, &mut produced);
            match result {
                c::libdeflate_result_LIBDEFLATE_SUCCESS => {
                    assert!(produced <= space, "libdeflate wrote past its room");
                    // SAFETY: libdeflate initialised `produced` bytes of the spare capacity.
                    unsafe { out.set_len(out.len() + produced) };
                    return Ok(Inflated { consumed, produced });
                }
                c::libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE if space < max_out => {
                    wanted = space.saturating_mul(ROOM_GROWTH).min(max_out);
                }
                c::libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE => return Err(InflateError::InsufficientSpace),
                _ => return Err(InflateError::BadData),
            }
        }
    }
}

impl Drop for Inflater {
    fn drop(&mut self) {
        // SAFETY: allocated by libdeflate in `new`, freed once.
        unsafe { c::libdeflate_free_decompressor(self.0.as_ptr()) }
    }
}

/// Compression level of libdeflate, 1 (fast) to 12 (small), or none at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(u8);

impl Level {
    /// Nothing is compressed, only wrapped: for what is compressed already, and for the small, where setting up the tables
    /// costs more than the bytes are worth.
    pub const STORED: Level = Level(0);

    /// The fastest that compresses at all.
    pub const LOWEST: Level = Level(1);

    /// About 125 MB/s per core; what most archives use.
    pub const DEFAULT: Level = Level(6);

    /// A level from 1 to 12; values outside are brought to the nearer end.
    pub fn new(level: u8) -> Level {
        Level(level.clamp(1, 12))
    }

    /// The number.
    pub fn get(self) -> u8 {
        self.0
    }
}

impl Default for Level {
    fn default() -> Self {
        Level::DEFAULT
    }
}

/// A reusable compressor.
pub struct Deflater(NonNull<c::libdeflate_compressor>);

// SAFETY: plain memory owned by this value, without ties to a thread.
unsafe impl Send for Deflater {}

impl fmt::Debug for Deflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Deflater")
    }
}

impl Deflater {
    /// A new compressor.
    pub fn new(level: Level) -> Self {
        // SAFETY: the level is within libdeflate's range; null then means out of memory.
        let compressor = unsafe { c::libdeflate_alloc_compressor(i32::from(level.0)) };
        Deflater(NonNull::new(compressor).expect("memory for a compressor"))
    }

    /// Compresses `input` as one raw DEFLATE stream, appended to `out`. Returns how many bytes were appended.
    pub fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) -> usize {
        // SAFETY: the compressor is alive; the call only computes.
        let bound = unsafe { c::libdeflate_deflate_compress_bound(self.0.as_ptr(), input.len()) };
        out.reserve(bound);
        let room = out.spare_capacity_mut();
        // SAFETY: both buffers are valid for the lengths given.
        let written = unsafe {
            c::libdeflate_deflate_compress(
                self.0.as_ptr(),
                input.as_ptr().cast::<c_void>(),
                input.len(),
                room.as_mut_ptr().cast::<c_void>(),
                room.len(),
            )
        };
        assert!(0 < written && written <= room.len(), "the bound of libdeflate holds");
        // SAFETY: libdeflate initialised `written` bytes of the spare capacity.
        unsafe { out.set_len(out.len() + written) };
        written
    }
}

impl Drop for Deflater {
    fn drop(&mut self) {
        // SAFETY: allocated by libdeflate in `new`, freed once.
        unsafe { c::libdeflate_free_compressor(self.0.as_ptr()) }
    }
}

/// CRC-32 as gzip uses it, continued from `crc` (0 to begin).
pub fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    if bytes.is_empty() {
        return crc; // libdeflate takes a null pointer for "begin"; an empty slice's pointer is not null, but why rely on it
    }
    // SAFETY: the slice is valid for its length.
    unsafe { c::libdeflate_crc32(crc, bytes.as_ptr().cast::<c_void>(), bytes.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn member(bytes: &[u8]) -> Vec<u8> {
        let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        e.write_all(bytes).unwrap();
        e.finish().unwrap()
    }

    #[test]
    fn takes_one_member_and_says_how_much_it_took() {
        let mut input = member(b"first");
        let length = input.len();
        input.extend(member(b"second"));
        let (mut i, mut out) = (Inflater::new(), b"kept ".to_vec());
        let got = i.inflate_gzip_member(&input, &mut out, 100).unwrap();
        assert_eq!(got, Inflated { consumed: length, produced: 5 });
        assert_eq!(out, b"kept first");
    }

    #[test]
    fn grows_up_to_the_bound_and_not_beyond() {
        let big = vec![7u8; 1_000_000];
        let input = member(&big);
        let mut i = Inflater::new();
        let mut out = Vec::new();
        assert_eq!(i.inflate_gzip_member(&input, &mut out, 999_999), Err(InflateError::InsufficientSpace));
        assert!(out.is_empty());
        assert_eq!(i.inflate_gzip_member(&input, &mut out, 1_000_000).unwrap().produced, 1_000_000);
        assert_eq!(out, big);
    }

    #[test]
    fn a_small_bound_holds_even_when_the_buffer_has_more_room() {
        let input = member(b"0123456789");
        let mut out = Vec::with_capacity(1000);
        assert_eq!(Inflater::new().inflate_gzip_member(&input, &mut out, 9), Err(InflateError::InsufficientSpace));
    }

    #[test]
    fn damage_and_cuts_are_bad_data() {
        let input = member(b"some text that is long enough to be cut");
        let mut i = Inflater::new();
        let mut out = Vec::new();
        for cut in 0..input.len() {
            assert_eq!(
                i.inflate_gzip_member(&input[..cut], &mut out, 1000),
                Err(InflateError::BadData),
                "cut at {cut}"
            );
        }
        let mut flipped = input.clone();
        let crc = input.len() - 8;
        flipped[crc] ^= 1;
        assert_eq!(i.inflate_gzip_member(&flipped, &mut out, 1000), Err(InflateError::BadData));
        assert!(out.is_empty());
    }

    #[test]
    fn deflate_and_inflate_agree_at_every_level() {
        let text: Vec<u8> = (0..50_000u32).flat_map(|n| (n * n).to_le_bytes()).collect();
        for level in std::iter::once(Level::STORED).chain((1..=12).map(Level::new)) {
            let mut packed = Vec::new();
            let n = Deflater::new(level).compress(&text, &mut packed);
            assert_eq!(n, packed.len());
            let mut back = Vec::new();
            let got = Inflater::new().inflate_raw(&packed, &mut back, text.len()).unwrap();
            assert_eq!(got, Inflated { consumed: packed.len(), produced: text.len() });
            assert_eq!(back, text);
        }
        let mut packed = Vec::new();
        assert!(Deflater::new(Level::DEFAULT).compress(b"", &mut packed) > 0);
    }

    #[test]
    fn crc_is_gzips() {
        assert_eq!(crc32(0, b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(crc32(0, b"1234"), b"56789"), 0xCBF4_3926);
        assert_eq!(crc32(5, b""), 5);
    }
}
