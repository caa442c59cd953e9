//! Targets for fuzzing: plain functions over bytes that must never panic, hang or grow. Tests run them on kept inputs and seeded
//! mutations; a long run tries as many as there is time for.

use crate::{Options, Reader, check_record};
use std::io::{BufRead, Cursor};

/// Any bytes as an archive file, from a stream and in both modes.
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
