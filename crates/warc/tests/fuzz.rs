//! The fuzz targets on kept inputs and on seeded mutations of them.

use std::path::Path;

use skep_warc::fuzz::{fuzz_arc_line, fuzz_beginning, fuzz_head, fuzz_records};
use skep_warc::fuzz_http::{fuzz_chunked, fuzz_content_coding, fuzz_http_head};

/// A small generator (xorshift64*), so that a seed names a run for ever.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound.max(1)
    }
}

fn kept(name: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(name);
    let mut inputs: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap()))
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty());
    inputs
}

/// Cuts, flips, zeros, repeats, splices and inserts the words that matter to these formats.
fn mutate(bytes: &mut Vec<u8>, other: &[u8], chance: &mut Chance) {
    const WORDS: [&[u8]; 16] = [
        b"\r\n",
        b"\n",
        b"\r",
        b"\0",
        b":",
        b" ",
        b"\r\n\r\n",
        b"HTTP/1.1 ",
        b"WARC/1.0\r\n",
        b"Content-Length: 9\r\n",
        b"0\r\n\r\n",
        b"ffffffff\r\n",
        b";",
        b"\x1f\x8b\x08\0\0\0\0\0\0\xff",
        b"\x28\xb5\x2f\xfd",
        b"\t",
    ];
    for _ in 0..1 + chance.below(4) {
        let at = chance.below(bytes.len() + 1);
        match chance.below(6) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            2 => {
                let end = (at + chance.below(16)).min(bytes.len());
                bytes[at..end].fill(0);
            }
            3 => {
                let end = (at + chance.below(64)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => {
                let from = chance.below(other.len() + 1);
                bytes.splice(at.., other[from..].iter().copied());
            }
            _ => {
                let word = WORDS[chance.below(WORDS.len())];
                bytes.splice(at..at, word.iter().copied());
            }
        }
    }
}

fn run(name: &str, rounds: u64, target: fn(&[u8])) {
    let inputs = kept(name);
    for (file, bytes) in &inputs {
        eprintln!("{name}/{file}");
        target(bytes);
    }
    for seed in 1..=rounds {
        let mut chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut bytes = inputs[chance.below(inputs.len())].1.clone();
        let other = &inputs[chance.below(inputs.len())].1;
        mutate(&mut bytes, other, &mut chance);
        if let Err(panic) = std::panic::catch_unwind(|| target(&bytes)) {
            eprintln!("{name}, seed {seed}: {bytes:?}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// A piece of an input, very often. What takes time or memory beyond the number of its bytes does not come to an end here.
fn repeat(name: &str, rounds: u64, target: fn(&[u8])) {
    const BYTES: usize = 1 << 20;
    let inputs = kept(name);
    for seed in 1..=rounds {
        let mut chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (file, bytes) = &inputs[chance.below(inputs.len())];
        let at = chance.below(bytes.len());
        let piece = &bytes[at..(at + 1 + chance.below(40)).min(bytes.len())];
        if piece.is_empty() {
            continue;
        }
        eprintln!("{name}/{file}, seed {seed}: {} again and again", piece.escape_ascii());
        target(&[&bytes[..at], &piece.repeat(BYTES / piece.len()), &bytes[at..]].concat());
    }
}

#[test]
fn pieces_repeated_very_often() {
    repeat("head", 60, fuzz_head);
    repeat("http_head", 60, fuzz_http_head);
    repeat("chunked", 60, fuzz_chunked);
    repeat("arc_line", 60, fuzz_arc_line);
    repeat("records", 100, fuzz_records);
}

#[test]
fn http_heads() {
    run("http_head", 20_000, fuzz_http_head);
}

#[test]
fn chunked_bodies() {
    run("chunked", 10_000, fuzz_chunked);
}

#[test]
fn encoded_content() {
    run("content_coding", 3_000, fuzz_content_coding);
}

#[test]
fn records() {
    run("records", 3_000, fuzz_records);
}

#[test]
fn arc_lines() {
    run("arc_line", 50_000, fuzz_arc_line);
}

#[test]
fn heads() {
    run("head", 20_000, fuzz_head);
}

#[test]
fn beginnings_of_compressed_data() {
    run("beginning", 30_000, fuzz_beginning);
}

#[test]
fn short_inputs_of_every_byte() {
    for a in 0..=255u8 {
        for b in [0, 8, 10, 13, 32, 48, 58, 0x1f, 0x8b, 0x9c, 0xff] {
            for target in [
                fuzz_http_head,
                fuzz_chunked,
                fuzz_content_coding,
                fuzz_records,
                fuzz_arc_line,
                fuzz_head,
                fuzz_beginning,
            ] {
                target(&[a, b]);
                target(&[b, a, b, a]);
            }
        }
    }
}
