//! Runs that were damaged: each byte, each length. An error or the same answer, never a panic, never another answer.

use super::bits::PADDING;
use super::captures_block::{Captures, CapturesBlock};
use super::codec::{BlockParts, Builder, Codec, Rows};
use super::entry;
use super::file::Run;
use super::pairs_block::{LookedFor, Pair, Pairs};
use super::scan::{Blocks, Bounds, Direction, Walk};
use super::sort::RunBuilder;
use crate::limits::BLOCK_ROWS_MAX;
use crate::{Capture, CaptureKind, Digest, Error, Key, Position, Result, WriterKey};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

struct WholeKey;

impl LookedFor for WholeKey {
    fn looked_for(key: &[u8]) -> &[u8] {
        key
    }
}

/// Captures with every oddity a block knows: several algorithms, none, patched URLs, equal times, wide numbers.
fn captures(count: u64) -> Vec<Capture> {
    let mut captures: Vec<Capture> = (0..count)
        .map(|n| {
            let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let page = n / 3;
            let url = if n % 7 == 0 {
                format!("https://www.Example.org/P{page}/")
            } else {
                format!("http://example.org/p{page}")
            };
            Capture {
                key: Key::from_parts(0x0102_0300, &format!("org,example)/p{page}")),
                url,
                time_ms: if n % 5 == 0 { -1 } else { (mixed >> 24) as i64 },
                position: Position {
                    writer: WriterKey((n % 3) as u32),
                    segment: (mixed >> 40) as u32,
                    record: n as u32,
                },
                kind: CaptureKind::from_number((n % 7) as u8).unwrap(),
                status: [200, 404, 0][n as usize % 3],
                mime: ["text/html", "", "image/png"][n as usize % 3].into(),
                digest: match n % 5 {
                    0 => None,
                    1 => Some(Digest::Sha256([n as u8; 32])),
                    2 => Some(Digest::Md5([n as u8; 16])),
                    _ => Some(Digest::Sha1([(n / 4) as u8; 20])),
                },
                offset: if n == 17 { u64::MAX } else { mixed >> 30 },
                length: mixed >> 50,
                flags: (n % 4) as u8,
            }
        })
        .collect();
    captures.sort();
    captures
}

fn entry_of(capture: &Capture) -> (Vec<u8>, Vec<u8>) {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    entry::write(capture, &mut key, &mut value).unwrap();
    (key, value)
}

fn write_captures(path: &Path, captures: &[Capture]) {
    let mut builder: RunBuilder<Captures> = RunBuilder::create(path).unwrap();
    for capture in captures {
        let (key, value) = entry_of(capture);
        builder.push(&Captures::alone(&key, &value).unwrap()).unwrap();
    }
    builder.finish().unwrap();
}

fn read_captures(path: &Path) -> Result<Vec<Capture>> {
    let run = Arc::new(Run::open(path, 1, Captures::NUMBER)?);
    let blocks: Arc<Blocks<Captures>> = Arc::new(Blocks::new(1 << 20));
    let mut walk = Walk::new(blocks, [(run, None)], None, Bounds::prefix(&[]), Direction::Forward, false);
    let mut found = Vec::new();
    while let Some(span) = walk.next_span()? {
        found.extend(span.rows.clone().filter_map(|row| Some(span.block.row(row)?.capture())));
    }
    Ok(found)
}

#[test]
fn captures_come_back_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    for count in [1, 2, BLOCK_ROWS_MAX as u64, BLOCK_ROWS_MAX as u64 + 1, 5_000] {
        let path = folder.path().join(format!("{count}.run"));
        let wanted = captures(count);
        write_captures(&path, &wanted);
        assert_eq!(read_captures(&path).unwrap(), wanted);
    }
}

#[test]
fn an_empty_run_is_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("0.run");
    write_captures(&path, &[]);
    assert_eq!(read_captures(&path).unwrap(), []);
}

#[test]
fn long_urls_make_short_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.run");
    let mut wanted = captures(300);
    for (n, capture) in wanted.iter_mut().enumerate() {
        capture.url = format!("http://{n}.example/{}", "x".repeat(n * 1_500));
    }
    write_captures(&path, &wanted);
    assert!(read_captures(&path).unwrap() == wanted);
    assert!(Run::open(&path, 1, Captures::NUMBER).unwrap().blocks() > 100);
}

#[test]
fn every_flipped_byte_of_a_run_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("1.run");
    let wanted = captures(60);
    write_captures(&path, &wanted);
    let good = std::fs::read(&path).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    for at in 0..good.len() {
        file.write_all_at(&[good[at] ^ (1 << (at % 8))], at as u64).unwrap();
        match read_captures(&path) {
            Ok(found) => assert!(found == wanted, "byte {at} changes the answer"),
            Err(error @ (Error::Damaged { .. } | Error::Newer { .. })) => {
                assert!(error.to_string().contains("1.run"), "{error}");
                assert!(error.hint().is_some());
            }
            Err(error) => panic!("byte {at}: {error}"),
        }
        file.write_all_at(&good[at..=at], at as u64).unwrap();
    }
}

#[test]
fn a_run_cut_short_anywhere_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("1.run");
    write_captures(&path, &captures(300));
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    for length in (0..file.metadata().unwrap().len()).rev() {
        file.set_len(length).unwrap();
        assert!(matches!(read_captures(&path), Err(Error::Damaged { .. })), "{length} bytes");
    }
}

#[test]
fn a_run_cut_short_while_open_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("1.run");
    write_captures(&path, &captures(3_000));
    let run = Arc::new(Run::open(&path, 1, Captures::NUMBER).unwrap());
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(100).unwrap();
    let blocks: Arc<Blocks<Captures>> = Arc::new(Blocks::new(1 << 20));
    let mut walk = Walk::new(blocks, [(run, None)], None, Bounds::prefix(&[]), Direction::Backward, true);
    assert!(matches!(walk.next_span(), Err(Error::Damaged { .. })));
    assert!(matches!(walk.next_span(), Ok(None)));
}

/// Asks a block everything; what it answers does not matter here.
fn ask_all(block: &CapturesBlock) {
    let mut key = Vec::new();
    for row in 0..block.rows() {
        key.clear();
        block.write_key(row, &mut key);
        let _ = Captures::row(block, row).capture();
    }
    for bound in [&[][..], &[1, 2, 3, 0], &key, &[0xff; 40]] {
        assert!(block.search(bound) <= block.rows());
    }
}

/// A block with padding behind it, and its length without.
fn block_of(captures: &[Capture]) -> (Vec<u8>, usize) {
    let mut builder = <Captures as Codec>::Builder::default();
    for capture in captures {
        let (key, value) = entry_of(capture);
        builder.push(&Captures::alone(&key, &value).unwrap()).unwrap();
    }
    let mut parts = BlockParts::default();
    builder.finish(&mut parts).unwrap();
    let length = parts.payload.len();
    parts.payload.extend([0; PADDING]);
    (parts.payload, length)
}

#[test]
fn a_block_that_is_kept_is_smaller_and_answers_the_same() {
    let wanted = captures(120);
    let (payload, length) = block_of(&wanted);
    let whole = Captures::decode(payload.clone(), length, 120).unwrap();
    let mut kept = Captures::decode(payload, length, 120).unwrap();
    kept.slim();
    assert!(kept.weight() + 100 < whole.weight(), "{} of {}", kept.weight(), whole.weight());
    let found: Vec<Capture> = (0..120).map(|row| Captures::row(&kept, row).capture()).collect();
    assert_eq!(found, wanted);
    let mut bounds: Vec<Vec<u8>> = (0..120)
        .flat_map(|row| {
            let mut key = Vec::new();
            kept.write_key(row, &mut key);
            [key.clone(), [key.as_slice(), &[0]].concat(), wanted[row].key.as_bytes().to_vec()]
        })
        .collect();
    bounds.extend([vec![], vec![0xff; 40]]);
    for bound in bounds {
        let first = whole.search(&bound);
        assert_eq!(kept.search(&bound), first);
        for row in 0..=first {
            assert_eq!(kept.search_from(row, &bound), first, "from {row}");
        }
    }
}

#[test]
fn a_forged_block_of_captures_never_panics() {
    let (payload, length) = block_of(&captures(60));
    for at in 0..length {
        for flip in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
            let mut bad = payload.clone();
            bad[at] ^= flip;
            if let Some(mut block) = Captures::decode(bad, length, 60) {
                ask_all(&block);
                block.slim();
                ask_all(&block);
            }
        }
        let mut short = payload[..at].to_vec();
        short.extend([0; PADDING]);
        if let Some(block) = Captures::decode(short, at, 60) {
            ask_all(&block);
        }
    }
}

#[test]
fn pairs_come_back_and_forged_ones_never_panic() {
    let pairs: Vec<(Vec<u8>, Vec<u8>)> =
        (0..120u32).map(|n| (format!("key {n:05}").into_bytes(), vec![n as u8; n as usize % 9])).collect();
    let mut builder = <Pairs<WholeKey> as Codec>::Builder::default();
    for (key, value) in &pairs {
        builder.push(&Pair { key, value }).unwrap();
    }
    let mut parts = BlockParts::default();
    builder.finish(&mut parts).unwrap();
    let length = parts.payload.len();
    parts.payload.extend([0; PADDING]);
    let block = Pairs::<WholeKey>::decode(parts.payload.clone(), length, 120).unwrap();
    for (row, (key, value)) in pairs.iter().enumerate() {
        let pair = Pairs::<WholeKey>::row(&block, row);
        assert_eq!((pair.key, pair.value), (key.as_slice(), value.as_slice()));
        assert_eq!(block.search(key), row);
    }
    for at in 0..length {
        for flip in 1..=255 {
            let mut bad = parts.payload.clone();
            bad[at] ^= flip;
            if let Some(block) = Pairs::<WholeKey>::decode(bad, length, 120) {
                (0..block.rows()).for_each(|row| drop(Pairs::<WholeKey>::row(&block, row).key.to_vec()));
            }
        }
    }
}
