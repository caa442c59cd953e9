//! Encodings that explode, nest and lie: rows 8 to 10.

use std::io::Write as _;

use bytes::Bytes;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use flate2::{Compress, Compression, Crc, FlushCompress};

use super::script::{self, HTML, Script};
use super::{Act, Asked, Hostile, Row};

/// What a bomb decodes to, unless said otherwise.
const BOMB_BYTES: u64 = 1 << 30;
/// Zeros that one repeated piece of a deflate bomb stands for.
const PIECE_BYTES: usize = 1 << 20;

pub(super) fn bombs(hostile: &Hostile, asked: &Asked) -> Option<Act> {
    let (form, _) = asked.form(Row::Bombs)?;
    let bytes = hostile.bytes_or(BOMB_BYTES);
    let (coding, body) = match form {
        "deflate" => ("deflate", zlib_bomb(bytes)),
        "br" => ("br", brotli_bomb(bytes)),
        "zstd" => ("zstd", zstd_bomb(bytes)),
        _ => ("gzip", gzip_bomb(bytes)),
    };
    let media = if form == "image.png" { ("Content-Type", "image/png") } else { HTML };
    Act::script(form, Script::answer(200, &[media, ("Content-Encoding", coding)], body))
}

pub(super) fn nested(hostile: &Hostile, asked: &Asked) -> Option<Act> {
    let (form, _) = asked.form(Row::Nested)?;
    let page = script::page("Nested", "<p>Deep inside.</p>\n<a href=\"/\">home</a>\n").into_bytes();
    let wrap = |times: usize, body: Vec<u8>| (0..times).fold(body, |body, _| gzip(&body));
    let (coding, body) = match form {
        "two" => ("gzip, gzip".to_string(), wrap(2, page)),
        "three" => ("deflate, gzip, br".to_string(), brotli_stored(&gzip(&zlib(&page)))),
        "ten" => (["gzip"; 10].join(", "), wrap(10, page)),
        "bomb" => ("gzip, gzip".to_string(), gzip(&gzip_bomb(hostile.bytes_or(BOMB_BYTES)))),
        // A list that nobody means: the body is plain.
        _ => (["gzip, br, zstd"; 1_000].join(", "), page),
    };
    Act::script(form, Script::answer(200, &[HTML, ("Content-Encoding", &coding)], body))
}

pub(super) fn mislabelled(asked: &Asked) -> Option<Act> {
    let (form, _) = asked.form(Row::Mislabelled)?;
    let page = script::page("Labels", &"<p>What is said is not what is sent.</p>\n<a href=\"/\">home</a>\n".repeat(20));
    let page = page.as_bytes();
    let (coding, body) = match form {
        "gzip-is-plain" => (Some("gzip"), page.to_vec()),
        "plain-is-gzip" => (None, gzip(page)),
        "br-is-gzip" => (Some("br"), gzip(page)),
        "deflate-is-raw" => (Some("deflate"), raw_deflate(page)),
        "gzip-is-cut" => (Some("gzip"), gzip(page)[..60].to_vec()),
        "gzip-then-more" => (Some("gzip"), [gzip(page), b"and something that is no gzip".to_vec()].concat()),
        _ => (Some("x-unheard-of"), page.to_vec()),
    };
    let mut headers = vec![HTML];
    headers.extend(coding.map(|coding| ("Content-Encoding", coding)));
    Act::script(form, Script::answer(200, &headers, body))
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).expect("a Vec takes everything");
    encoder.finish().expect("a Vec takes everything")
}

fn zlib(body: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).expect("a Vec takes everything");
    encoder.finish().expect("a Vec takes everything")
}

fn raw_deflate(body: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).expect("a Vec takes everything");
    encoder.finish().expect("a Vec takes everything")
}

/// Deflated zeros, flushed so that the piece can be repeated byte for byte and still be one lawful stream.
fn zeros(bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes / 500 + 64);
    let mut compress = Compress::new(Compression::best(), false);
    let input = vec![0; bytes];
    // The capacity is more than enough, so one call takes everything and cannot fail.
    let _ = compress.compress_vec(&input, &mut out, FlushCompress::Full);
    out
}

/// The end of a deflate stream: an empty last block of fixed codes.
const DEFLATE_END: [u8; 2] = [0x03, 0x00];

fn deflated_bomb(bytes: u64) -> (Vec<u8>, Crc) {
    let (piece, mut crc) = (zeros(PIECE_BYTES), Crc::new());
    let mut piece_crc = Crc::new();
    piece_crc.update(&vec![0; PIECE_BYTES]);
    let mut out = Vec::new();
    for _ in 0..bytes / PIECE_BYTES as u64 {
        out.extend_from_slice(&piece);
        crc.combine(&piece_crc);
    }
    let rest = (bytes % PIECE_BYTES as u64) as usize;
    if rest > 0 {
        out.extend_from_slice(&zeros(rest));
        crc.update(&vec![0; rest]);
    }
    out.extend_from_slice(&DEFLATE_END);
    (out, crc)
}

pub(super) fn gzip_bomb(bytes: u64) -> Vec<u8> {
    let (deflated, crc) = deflated_bomb(bytes);
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    out.extend_from_slice(&deflated);
    out.extend_from_slice(&crc.sum().to_le_bytes());
    out.extend_from_slice(&(bytes as u32).to_le_bytes());
    out
}

fn zlib_bomb(bytes: u64) -> Vec<u8> {
    let mut out = vec![0x78, 0xda];
    out.extend_from_slice(&deflated_bomb(bytes).0);
    // Adler-32 of n zeros: the low half stays 1, the high half counts them.
    out.extend_from_slice(&((((bytes % 65_521) as u32) << 16) | 1).to_be_bytes());
    out
}

/// ```text
/// frame | 28 b5 2f fd | 00 no size, no checksum | 50 window of 1 MiB | blocks … |
/// block | size << 3 | 1 run of one byte << 1 | last, 3 bytes LE | 00 |
/// ```
fn zstd_bomb(bytes: u64) -> Vec<u8> {
    const BLOCK_BYTES: u64 = 128 * 1024;
    let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x50];
    let mut left = bytes;
    loop {
        let size = left.min(BLOCK_BYTES);
        left -= size;
        let header = (size as u32) << 3 | 1 << 1 | u32::from(left == 0);
        out.extend_from_slice(&header.to_le_bytes()[..3]);
        out.push(0);
        if left == 0 {
            return out;
        }
    }
}

/// Bits, the lowest first, as deflate and brotli pack them.
#[derive(Default)]
struct Bits {
    out: Vec<u8>,
    count: usize,
}

impl Bits {
    fn put(&mut self, value: u64, width: usize) {
        for place in 0..width {
            if self.count.is_multiple_of(8) {
                self.out.push(0);
            }
            let bit = (value >> place & 1) as u8;
            *self.out.last_mut().expect("a byte was begun") |= bit << (self.count % 8);
            self.count += 1;
        }
    }
}

/// Meta-blocks of one command each: one literal zero, then a copy of it from one byte back (RFC 7932, section 9.2).
fn brotli_bomb(bytes: u64) -> Vec<u8> {
    const META_BLOCK_BYTES: u64 = 1 << 24;
    const COPY_CODE_BASE: u64 = 2_118; // copy length code 23
    let mut bits = Bits::default();
    bits.put(0b1111, 4); // window of 16 MiB
    for _ in 0..bytes.div_ceil(META_BLOCK_BYTES) {
        bits.put(0, 1); // not the last
        bits.put(2, 2); // length in six nibbles
        bits.put(META_BLOCK_BYTES - 1, 24);
        bits.put(0, 1); // compressed
        bits.put(0, 3); // one block type of each kind
        bits.put(0, 6); // no postfix bits, no direct distances
        bits.put(0, 2); // context mode
        bits.put(0, 2); // one tree of each kind
        for (symbol, width) in [(0, 8), (399, 10), (16, 6)] {
            bits.put(1, 2); // a simple code
            bits.put(0, 2); // of one symbol: literal 0; insert 1 and copy code 23; distance 1 or 2
            bits.put(symbol, width);
        }
        bits.put(META_BLOCK_BYTES - 1 - COPY_CODE_BASE, 24);
        bits.put(0, 1); // distance 1
    }
    bits.put(0b11, 2); // the last, and empty
    bits.out
}

/// Bytes as they are, within brotli.
fn brotli_stored(body: &[u8]) -> Vec<u8> {
    let mut bits = Bits::default();
    bits.put(0b1111, 4);
    for piece in body.chunks(1 << 16) {
        bits.put(0, 1); // not the last
        bits.put(0, 2); // length in four nibbles
        bits.put(piece.len() as u64 - 1, 16);
        bits.put(1, 1); // stored, from the next whole byte on
        bits.count = bits.out.len() * 8;
        bits.out.extend_from_slice(piece);
        bits.count += piece.len() * 8;
    }
    bits.put(0b11, 2);
    bits.out
}

/// A sitemap that explodes.
pub(super) fn gzip_file(bytes: u64) -> Bytes {
    gzip_bomb(bytes).into()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, copy, sink};

    use super::*;

    /// Decodes and counts; every byte must be zero.
    fn count(mut reader: impl Read) -> u64 {
        let (mut total, mut piece) = (0, vec![0; 1 << 16]);
        loop {
            let n = reader.read(&mut piece).unwrap();
            if n == 0 {
                return total;
            }
            assert!(piece[..n].iter().all(|byte| *byte == 0));
            total += n as u64;
        }
    }

    #[test]
    fn bombs_decode_to_what_they_promise() {
        for bytes in [1, 5 << 20, (3 << 20) + 17] {
            assert_eq!(count(flate2::read::GzDecoder::new(&gzip_bomb(bytes)[..])), bytes);
            assert_eq!(count(flate2::read::ZlibDecoder::new(&zlib_bomb(bytes)[..])), bytes);
        }
        let bomb = brotli_bomb(40 << 20);
        assert_eq!(count(brotli_decompressor::Decompressor::new(&bomb[..], 4_096)), 48 << 20);
        let bomb = zstd_bomb((3 << 20) + 17);
        assert_eq!(count(zstd::stream::read::Decoder::new(&bomb[..]).unwrap()), (3 << 20) + 17);
    }

    #[test]
    fn a_gibibyte_is_small() {
        assert!(gzip_bomb(BOMB_BYTES).len() < 1_200_000);
        assert!(zstd_bomb(BOMB_BYTES).len() < 40_000);
        assert!(brotli_bomb(BOMB_BYTES).len() < 1_000);
    }

    #[test]
    fn three_layers_come_off_again() {
        let body = brotli_stored(&gzip(&zlib(b"hello")));
        let layer = brotli_decompressor::Decompressor::new(&body[..], 4_096);
        let layer = flate2::read::GzDecoder::new(layer);
        let mut text = String::new();
        flate2::read::ZlibDecoder::new(layer).read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
        let long = brotli_stored(&vec![7; 200_000]);
        assert_eq!(copy(&mut brotli_decompressor::Decompressor::new(&long[..], 4_096), &mut sink()).unwrap(), 200_000);
    }
}
