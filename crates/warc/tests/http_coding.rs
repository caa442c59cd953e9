//! Content encodings: each coding, stacked, already decoded, damaged, and too much.

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use skep_warc::coding::{BoundError, Bounds, Coding, Decoded, decode};
use skep_warc::http::{Head, Rule};
use std::io::{Read, Write};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut e = GzEncoder::new(Vec::new(), Compression::default());
    e.write_all(bytes).unwrap();
    e.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut e = ZlibEncoder::new(Vec::new(), Compression::default());
    e.write_all(bytes).unwrap();
    e.finish().unwrap()
}

fn raw(bytes: &[u8]) -> Vec<u8> {
    let mut e = DeflateEncoder::new(Vec::new(), Compression::default());
    e.write_all(bytes).unwrap();
    e.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

/// Brotli with uncompressed meta-blocks only, written bit by bit: window of 16 bits, then per block
/// `last 0, nibbles 00, length-1 in 16 bits, uncompressed 1`, padding, bytes; at the end `last 1, empty 1`.
fn brotli_stored(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut first = true;
    for block in bytes.chunks(65_536) {
        let window = u32::from(first); // one bit 0 says 16 bits
        let header = (((block.len() as u32 - 1) << 3) | (1 << 19)) << window;
        out.extend_from_slice(&header.to_le_bytes()[..3]);
        out.extend_from_slice(block);
        first = false;
    }
    out.push(if first { 0b110 } else { 0b11 });
    out
}

/// "the quick brown fox jumps over the lazy dog, " eight times, at quality 11.
const BROTLI_TEXT: &[u8] = &[
    0x1b, 0x67, 0x01, 0x00, 0x8c, 0x94, 0x6e, 0xe6, 0x22, 0xa8, 0x93, 0xa5, 0x7a, 0xeb, 0x5f, 0x23, 0x14, 0x8d, 0x80,
    0x7c, 0x43, 0x0b, 0x83, 0x0d, 0x38, 0x70, 0x48, 0x20, 0x6f, 0x24, 0xbc, 0xaf, 0x6c, 0x13, 0x6d, 0x76, 0x9c, 0x6c,
    0x51, 0x61, 0xe9, 0xb0, 0xb1, 0x9c, 0x7a, 0xf5, 0x87, 0x49, 0x01, 0x00,
];

fn text() -> Vec<u8> {
    (0..20_000).map(|n: u32| b"the quick brown fox "[(n % 20) as usize] ^ ((n / 977) as u8 & 3)).collect()
}

fn run(codings: &[Coding], body: &[u8]) -> (Vec<u8>, Vec<Rule>) {
    let mut reader = Decoded::new(body, codings, Bounds::DEFAULT);
    let mut out = Vec::new();
    reader.read_to_end(&mut out).unwrap();
    (out, reader.deviations().iter().map(|d| d.rule).collect())
}

#[test]
fn each_coding() {
    let text = text();
    for (coding, body) in [
        (Coding::Gzip, gzip(&text)),
        (Coding::Deflate, zlib(&text)),
        (Coding::Deflate, raw(&text)),
        (Coding::Brotli, brotli_stored(&text)),
        (Coding::Zstd, zstd(&text)),
    ] {
        assert!(run(&[coding], &body) == (text.clone(), vec![]), "{coding:?}");
    }
    let fox = b"the quick brown fox jumps over the lazy dog, ".repeat(8);
    assert_eq!(run(&[Coding::Brotli], BROTLI_TEXT), (fox, vec![]));
}

#[test]
fn empty_content_in_each_coding() {
    for (coding, body) in [
        (Coding::Gzip, gzip(b"")),
        (Coding::Deflate, zlib(b"")),
        (Coding::Deflate, raw(b"")),
        (Coding::Brotli, brotli_stored(b"")),
        (Coding::Zstd, zstd(b"")),
        (Coding::Gzip, vec![]),
        (Coding::Deflate, vec![]),
        (Coding::Brotli, vec![]),
        (Coding::Zstd, vec![]),
    ] {
        assert_eq!(run(&[coding], &body), (vec![], vec![]), "{coding:?} {body:?}");
    }
}

#[test]
fn several_members_and_frames_are_one_body() {
    let body = [gzip(b"one "), gzip(b""), gzip(b"two")].concat();
    assert_eq!(run(&[Coding::Gzip], &body), (b"one two".to_vec(), vec![]));
    let body = [zstd(b"one "), vec![0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3], zstd(b"two")].concat();
    assert_eq!(run(&[Coding::Zstd], &body), (b"one two".to_vec(), vec![]));
}

#[test]
fn a_gzip_header_with_everything_in_it() {
    let plain = gzip(b"text");
    let mut body = plain[..10].to_vec();
    body[3] = 2 | 4 | 8 | 16;
    body.extend_from_slice(&[5, 0, 1, 2, 3, 4, 5]);
    body.extend_from_slice(b"name\0comment\0\x12\x34");
    body.extend_from_slice(&plain[10..]);
    assert_eq!(run(&[Coding::Gzip], &body), (b"text".to_vec(), vec![]));
}

#[test]
fn stacked_codings_come_off_in_reverse() {
    let text = text();
    let body = zstd(&gzip(&brotli_stored(&zlib(&text))));
    assert!(run(&[Coding::Deflate, Coding::Brotli, Coding::Gzip, Coding::Zstd], &body) == (text.clone(), vec![]));
    assert!(run(&[Coding::Gzip, Coding::Gzip], &gzip(&gzip(&text))) == (text.clone(), vec![]));
    // Declared twice, applied once.
    assert!(run(&[Coding::Gzip, Coding::Gzip], &gzip(&text)) == (text.clone(), vec![Rule::ContentAlreadyDecoded]));
    assert_eq!(run(&[Coding::Gzip; 6], b"x"), (b"x".to_vec(), vec![Rule::ContentCodingTooMany]));
}

#[test]
fn a_body_stored_decoded_passes() {
    let page = b"<!DOCTYPE html>\n<title>Decoded</title>\n".repeat(300);
    let json = b"{\"a\": [1, 2, 3]}".to_vec();
    let words = b"It was the best of times, it was the worst of times. ".repeat(100);
    let digits = b"3.14159265358979323846264338327950288419716939937510".repeat(200);
    for body in [page, json, words, digits, b"a".to_vec(), b"\n\n\n".to_vec(), vec![0xff; 5000], vec![b' '; 5000]] {
        for coding in [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd] {
            let shown = String::from_utf8_lossy(&body[..body.len().min(20)]).into_owned();
            assert!(run(&[coding], &body) == (body.clone(), vec![Rule::ContentAlreadyDecoded]), "{coding:?} {shown:?}");
        }
    }
}

#[test]
fn cut_content_gives_what_it_can() {
    let text = text();
    for (coding, body) in [
        (Coding::Gzip, gzip(&text)),
        (Coding::Deflate, zlib(&text)),
        (Coding::Deflate, raw(&text)),
        (Coding::Brotli, brotli_stored(&text)),
        (Coding::Zstd, zstd(&text)),
    ] {
        let (out, rules) = run(&[coding], &body[..body.len() - 1]);
        assert!(text.starts_with(&out), "{coding:?}");
        assert_eq!(rules, [Rule::ContentTruncated], "{coding:?}");
        if coding != Coding::Zstd {
            assert!(out.len() > text.len() * 9 / 10, "{coding:?} gave {}", out.len());
        }
        // Every cut ends, and gives a prefix or the bytes themselves.
        for cut in (0..body.len()).step_by(97) {
            let (out, _) = run(&[coding], &body[..cut]);
            assert!(text.starts_with(&out) || out == body[..cut], "{coding:?} cut at {cut}");
        }
    }
}

#[test]
fn damage_is_named_and_bytes_before_it_are_given() {
    let text = text();
    let mut body = gzip(&text);
    let crc = body.len() - 8;
    body[crc] ^= 1;
    assert!(run(&[Coding::Gzip], &body) == (text.clone(), vec![Rule::ContentChecksum]));
    let body = [gzip(b"text"), b"\0\0junk".to_vec()].concat();
    assert_eq!(run(&[Coding::Gzip], &body), (b"text".to_vec(), vec![Rule::ContentAfterEnd]));
    let body = [gzip(b"text"), vec![0x1f, 0x8b]].concat();
    assert_eq!(run(&[Coding::Gzip], &body), (b"text".to_vec(), vec![Rule::ContentAfterEnd]));
    let body = [zlib(b"text"), b"junk".to_vec()].concat();
    assert_eq!(run(&[Coding::Deflate], &body), (b"text".to_vec(), vec![Rule::ContentAfterEnd]));
    let body = [zstd(b"text"), b"junk".to_vec()].concat();
    assert_eq!(run(&[Coding::Zstd], &body), (b"text".to_vec(), vec![Rule::ContentAfterEnd]));
    let mut body = gzip(&[text.clone(), vec![1; 100_000], text.clone()].concat());
    let end = body.len();
    body[end - 40..end - 20].fill(0xff);
    let (out, rules) = run(&[Coding::Gzip], &body);
    assert!(out.starts_with(&text));
    assert!(rules == [Rule::ContentDamaged] || rules == [Rule::ContentChecksum], "{rules:?}");
}

#[test]
fn a_window_beyond_what_browsers_take_is_refused() {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(24).unwrap();
    encoder.include_contentsize(false).unwrap();
    encoder.write_all(&vec![7; 20 << 20]).unwrap();
    let (out, rules) = run(&[Coding::Zstd], &encoder.finish().unwrap());
    assert_eq!((out.len(), rules), (0, vec![Rule::ContentWindow]));
}

#[test]
fn bounds_are_typed_errors_and_stay() {
    let zeros = vec![0; 3 << 20];
    for body in [gzip(&zeros), zstd(&zeros)] {
        let coding = if body[0] == 0x1f { Coding::Gzip } else { Coding::Zstd };
        let bounds = Bounds { output_bytes_max: 1 << 20, ..Bounds::DEFAULT };
        let mut reader = Decoded::new(&body[..], &[coding], bounds);
        let error = reader.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(BoundError::of(&error), Some(BoundError::TooLarge { output_bytes_max: 1 << 20 }));
        assert!(reader.read(&mut [0; 10]).is_err(), "an exceeded bound does not turn into an end");

        let bounds = Bounds { ratio_max: 50, ratio_free_bytes: 1 << 20, ..Bounds::DEFAULT };
        let error = Decoded::new(&body[..], &[coding], bounds).read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(BoundError::of(&error), Some(BoundError::Bomb { ratio_max: 50 }));
        // The same ratio below the free allowance is no attack.
        let bounds = Bounds { ratio_max: 50, ratio_free_bytes: 4 << 20, ..Bounds::DEFAULT };
        assert_eq!(Decoded::new(&body[..], &[coding], bounds).read_to_end(&mut Vec::new()).unwrap(), zeros.len());
    }
    // A bomb in a bomb: the inner layer is bounded too.
    let nested = gzip(&gzip(&vec![0; 200 << 20]));
    let error = Decoded::new(&nested[..], &[Coding::Gzip, Coding::Gzip], Bounds::DEFAULT).read_to_end(&mut Vec::new());
    assert_eq!(error.map_err(|e| BoundError::of(&e)), Err(Some(BoundError::Bomb { ratio_max: 1000 })));
}

#[test]
fn a_message_is_decoded_by_its_headers() {
    let text = text();
    let packed = gzip(&text);
    let mut body = format!("{:x}\r\n", packed.len()).into_bytes();
    body.extend_from_slice(&packed);
    body.extend_from_slice(b"\r\n0\r\n\r\n");
    for (fields, rules) in [
        ("Content-Encoding: gzip\r\n", vec![]),
        ("content-encoding: X-GZIP\r\n", vec![]),
        ("Content-Encoding: gzip;q=1, identity\r\n", vec![]),
        ("Content-Encoding: utf-8\r\nContent-Encoding: gzip\r\n", vec![Rule::ContentCodingUnknown]),
    ] {
        let mut head = Head::new();
        head.parse_response(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{fields}\r\n").as_bytes(), true);
        let mut reader = decode(&head, &body[..], Bounds::DEFAULT);
        let mut out = Vec::new();
        reader.read_to_end(&mut out).unwrap();
        assert!(out == text, "{fields}");
        assert_eq!(reader.deviations().iter().map(|d| d.rule).collect::<Vec<_>>(), rules, "{fields}");
        assert_eq!(reader.body().deviations().count(), 0);
    }
}
