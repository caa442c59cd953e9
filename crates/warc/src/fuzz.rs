//! Targets for fuzzing: plain functions over bytes that must never panic, hang or grow. Tests run them on kept inputs and seeded
//! mutations; a long run tries as many as there is time for.

use crate::beginning::{Beginning, Progress};
use crate::{Options, Reader, check_record};
use std::io::{BufRead, Cursor};

/// Any bytes as an archive file, from a stream, in both modes and skimmed.
pub fn fuzz_records(bytes: &[u8]) {
    let mut counts = Vec::new();
    for options in [Options::recover(), Options::strict()] {
        let mut reader = Reader::new(Cursor::new(bytes.to_vec()), options).expect("a stream in memory does not fail");
        let mut count = 0u64;
        while let Some(mut record) = reader.next().expect("a stream in memory does not fail") {
            check_record(&mut record).expect("a stream in memory does not fail");
            assert!(record.fill_buf().expect("at its end").is_empty());
            assert!(record.offset() <= bytes.len() as u64);
            record.finish().expect("a stream in memory does not fail");
            count += 1;
        }
        assert!(count <= bytes.len() as u64, "a record takes at least a byte");
        counts.push(count);
    }
    assert_eq!(counts[0], counts[1], "both modes see the same records");
    let mut reader =
        Reader::new(Cursor::new(bytes.to_vec()), Options::skim()).expect("a stream in memory does not fail");
    while let Some(record) = reader.next().expect("a stream in memory does not fail") {
        record.finish().expect("a stream in memory does not fail");
    }
    assert!(reader.records() <= bytes.len() as u64, "a record takes at least a byte");
}

/// Any bytes as an ARC record line.
pub fn fuzz_arc_line(bytes: &[u8]) {
    let line = &bytes[..memchr::memchr(b'\n', bytes).unwrap_or(bytes.len())];
    if let Some(parsed) = crate::arc::parse(line) {
        let total: usize =
            [parsed.url, parsed.address, parsed.date, parsed.mime, parsed.length].iter().map(|f| f.len()).sum();
        assert!(total <= line.len() + 20, "fields come from the line");
        assert!(!parsed.url.is_empty());
    }
}

/// Any bytes as the head of a record, and as a date.
pub fn fuzz_head(bytes: &[u8]) {
    let head = crate::Head::parse_warc(bytes);
    assert_eq!(head.raw(), bytes);
    for (name, value) in head.fields() {
        assert!(!name.contains(&b'\n') && !value.contains(&b'\n'));
    }
    let _ = (head.kind(), head.content_length(), head.target_uri(), head.date_ms());
    if let Some(ms) = crate::date::parse_ms(bytes) {
        assert_eq!(crate::date::parse_ms(crate::date::rfc3339(ms).as_bytes()), Some(ms));
    }
}

/// Any bytes as a DEFLATE stream of which only the beginning is wanted: the same bytes as from a decoder for whole streams, and an end
/// or a refusal where that one ends or refuses.
pub fn fuzz_beginning(bytes: &[u8]) {
    let mut whole = vec![0; FUZZ_DECODED_BYTES_MAX];
    let mut reference = flate2::Decompress::new(false);
    let status = reference.decompress(bytes, &mut whole, flate2::FlushDecompress::Finish);
    let ended = matches!(status, Ok(flate2::Status::StreamEnd));
    whole.truncate(reference.total_out() as usize);
    let mut beginning = Beginning::new();
    for step in [1, 300, FUZZ_DECODED_BYTES_MAX] {
        beginning.start();
        let mut out = Vec::new();
        let end = loop {
            let wanted = out.len() + step;
            match beginning.more(bytes, &mut out, wanted) {
                Ok(Progress::More) if out.len() < FUZZ_DECODED_BYTES_MAX => {}
                other => break other,
            }
        };
        let common = out.len().min(whole.len());
        assert_eq!(out[..common], whole[..common], "steps of {step}");
        match end {
            Ok(Progress::Ended { consumed }) => {
                assert!(ended || whole.len() == FUZZ_DECODED_BYTES_MAX, "ended where the other did not");
                assert!(!ended || (consumed as u64, out.len()) == (reference.total_in(), whole.len()));
            }
            Ok(Progress::More) => assert!(!ended || whole.len() == FUZZ_DECODED_BYTES_MAX),
            Err(_) => assert!(!ended, "refused what the other takes"),
        }
    }
}

/// Decoded bytes that a fuzz target compares.
const FUZZ_DECODED_BYTES_MAX: usize = 64 << 10;
