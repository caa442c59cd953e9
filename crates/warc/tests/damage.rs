//! Damaged files: every record whose bytes are intact comes back, everything skipped is reported, nothing panics or hangs.

mod scan;

use scan::{Intact, damage, intact_records};
use skep_warc::{Options, Reader, wacz};
use std::io::{Cursor, ErrorKind, Read, Write};

fn write_gzip(members: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for member in members {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        encoder.write_all(member).unwrap();
        out.extend(encoder.finish().unwrap());
    }
    out
}

fn record(kind: &str, uri: &str, block: &[u8]) -> Vec<u8> {
    let mut out = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{:032x}>\r\nWARC-Date: 2020-01-02T03:04:05Z\r\n\
         WARC-Target-URI: {uri}\r\nContent-Type: application/http\r\nContent-Length: {}\r\n\r\n",
        block.len(),
        block.len()
    )
    .into_bytes();
    out.extend_from_slice(block);
    out.extend_from_slice(b"\r\n\r\n");
    out
}

fn sample_records() -> Vec<Vec<u8>> {
    let mut dice = scan::Dice::new(7);
    (0..20)
        .map(|i| {
            let mut block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\npage {i} ").into_bytes();
            let noise = dice.roll(3000);
            block
                .extend((0..noise).map(|_| if i % 3 == 0 { dice.roll(256) as u8 } else { b'a' + dice.roll(20) as u8 }));
            record("response", &format!("http://a.example/{i}"), &block)
        })
        .collect()
}

/// What the reader returns, from a stream and from a file; both must hold every intact record.
fn read_all(bytes: &[u8]) -> Vec<Intact> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let from_file = collect(Reader::of_file(file, 0, None, Options::strict()).unwrap(), bytes);
    let _ = collect(Reader::new(Cursor::new(bytes.to_vec()), Options::recover()).unwrap(), bytes);
    from_file
}

fn collect(mut reader: Reader, bytes: &[u8]) -> Vec<Intact> {
    let mut out = Vec::new();
    while let Some(mut record) = reader.next().unwrap() {
        let (offset, head) = (record.offset(), record.head().raw().to_vec());
        let mut block = Vec::new();
        record.read_to_end(&mut block).unwrap();
        let end = record.finish().unwrap();
        assert_eq!(end.block_bytes, block.len() as u64);
        assert!(offset + end.length <= bytes.len() as u64, "a record does not end behind the file");
        out.push(Intact { offset, head, block });
    }
    out
}

fn missing(bytes: &[u8]) -> Vec<Intact> {
    let got: std::collections::HashSet<Intact> = read_all(bytes).into_iter().collect();
    intact_records(bytes).into_iter().filter(|r| !got.contains(r)).collect()
}

#[test]
fn every_intact_record_survives_damage_around_it() {
    let records = sample_records();
    let refs: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    let plain = records.concat();
    let gzip = write_gzip(&refs);
    let one_stream = write_gzip(&[&plain]);
    for (name, file) in [("plain", &plain), ("gzip", &gzip), ("one stream", &one_stream)] {
        assert_eq!(read_all(file), intact_records(file), "{name}, undamaged");
        for seed in 0..400 {
            let broken = damage(file, seed);
            let lost = missing(&broken);
            assert!(
                lost.is_empty(),
                "{name}, seed {seed}: lost {:?}",
                lost.iter().map(|r| r.offset).collect::<Vec<_>>()
            );
        }
    }
}

#[test]
fn nothing_is_skipped_in_silence() {
    let records = sample_records();
    let mut file = records[..3].concat();
    file.extend_from_slice(b"this is no record at all");
    file.extend(records[3..].concat());
    let mut reader = Reader::new(Cursor::new(file), Options::recover()).unwrap();
    let mut count = 0;
    while reader.next().unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 20);
    let findings = reader.take_findings();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!((findings[0].rule.id(), findings[0].detail.as_str()), ("garbage", "24 bytes"));
}

/// A package of these files, stored or compressed once more.
fn write_package(files: &[(&str, &[u8])], deflated: bool) -> Vec<u8> {
    let mut package = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let method = if deflated { zip::CompressionMethod::Deflated } else { zip::CompressionMethod::Stored };
    for (name, bytes) in files {
        package.start_file(*name, zip::write::SimpleFileOptions::default().compression_method(method)).unwrap();
        package.write_all(bytes).unwrap();
    }
    package.finish().unwrap().into_inner()
}

/// The records of all files of a package; nothing if its directory cannot be read. Whatever is wrong is an error that says so.
fn read_package(bytes: &[u8]) -> Option<Vec<Intact>> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    // Bytes that cannot be inflated are an InvalidInput to who inflates them.
    let is_told = |error: &std::io::Error| {
        matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof | ErrorKind::InvalidInput)
    };
    let entries = match wacz::archives(file.path()) {
        Ok(entries) => entries,
        Err(error) => {
            assert!(is_told(&error), "{error:?}");
            return None;
        }
    };
    let mut all = Vec::new();
    for entry in entries {
        let _whatever_it_says = entry.name_is_unsafe();
        let mut reader = match entry.reader(file.path(), Options::recover()) {
            Ok(reader) => reader,
            Err(error) => {
                assert!(entry.deflated && is_told(&error), "{error:?}");
                continue;
            }
        };
        loop {
            match reader.next() {
                Ok(Some(mut record)) => {
                    let (offset, head) = (record.offset(), record.head().raw().to_vec());
                    let mut block = Vec::new();
                    let read = record.read_to_end(&mut block);
                    assert!(read.as_ref().err().is_none_or(is_told), "{read:?}");
                    if read.is_ok() && record.finish().is_ok() {
                        all.push(Intact { offset, head, block });
                    }
                }
                Ok(None) => break,
                // A file that is compressed as a whole ends where that breaks.
                Err(error) => {
                    assert!(entry.deflated && is_told(&error), "{error:?}");
                    break;
                }
            }
        }
    }
    Some(all)
}

#[test]
fn a_damaged_package_gives_what_it_has_or_says_why_not() {
    let records = sample_records();
    let refs: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    let (first, second) = (write_gzip(&refs[..10]), records[10..].concat());
    let files: [(&str, &[u8]); 3] =
        [("datapackage.json", b"{}"), ("archive/a.warc.gz", &first), ("archive/b.warc", &second)];
    for deflated in [false, true] {
        let whole = write_package(&files, deflated);
        assert_eq!(read_package(&whole).map(|records| records.len()), Some(20), "undamaged");
        let told = (0..400).filter(|seed| read_package(&damage(&whole, *seed)).is_none()).count();
        assert!((1..400).contains(&told), "{told} without a directory");
    }
    // Damage within a file that is stored: every record around it comes back.
    let whole = write_package(&files, false);
    let at = whole.windows(first.len()).position(|window| window == first).unwrap();
    for seed in 0..200 {
        let mut dice = scan::Dice::new(seed);
        let (mut broken, length) = (whole.clone(), 1 + dice.roll(200));
        let from = at + dice.roll(first.len() - length);
        broken[from..from + length].iter_mut().for_each(|byte| *byte = dice.roll(256) as u8);
        let read: std::collections::HashSet<Intact> = read_package(&broken).expect("a directory").into_iter().collect();
        let inside = intact_records(&broken[at..at + first.len()]);
        let lost = inside.into_iter().map(|record| Intact { offset: record.offset + at as u64, ..record });
        let lost: Vec<u64> = lost.filter(|record| !read.contains(record)).map(|record| record.offset).collect();
        assert!(lost.is_empty(), "seed {seed}: lost {lost:?}");
    }
}
