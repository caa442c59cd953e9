//! Read, write, read: every record of real archives keeps every byte of its head and block, under each compression.

use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use skep_warc::write::{Compression, Encoder};
use skep_warc::{Options, Reader};

fn archives(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            archives(&path, into);
        } else if path.file_name().is_some_and(|name| name.to_string_lossy().contains(".warc")) {
            into.push(path);
        }
    }
}

/// Head and block of each WARC record whose block has the length that its head says.
fn read(mut reader: Reader) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut records = Vec::new();
    while let Some(mut record) = reader.next().unwrap() {
        let mut block = Vec::new();
        record.read_to_end(&mut block).unwrap();
        let head = record.head();
        let ended = head.raw().ends_with(b"\n\r\n") || head.raw().ends_with(b"\n\n");
        if !head.is_arc() && ended && head.content_length() == Some(block.len() as u64) {
            records.push((head.raw().to_vec(), block));
        }
    }
    records
}

#[test]
fn real_records_survive_a_copy_byte_for_byte() {
    let Some(folder) = std::env::var_os("SKEP_CORPORA").map(PathBuf::from) else {
        eprintln!("corpus tests not run: SKEP_CORPORA is not set");
        return;
    };
    let mut files = Vec::new();
    archives(&folder.join("archives"), &mut files);
    assert!(files.len() > 50, "{} files", files.len());
    let mut copied = 0;
    for path in files {
        let records = read(Reader::open(&path, Options::recover()).unwrap());
        copied += records.len();
        for compression in [Compression::Plain, Compression::GZIP, Compression::ZSTD] {
            let mut encoder = Encoder::new(compression.clone());
            let mut file = encoder.prologue();
            for (head, block) in &records {
                encoder.raw_record(head, block, &mut file);
            }
            let again = read(Reader::new(Cursor::new(file), Options::recover()).unwrap());
            assert_eq!(again.len(), records.len(), "{} {compression:?}", path.display());
            for (number, (one, other)) in again.iter().zip(&records).enumerate() {
                assert!(one == other, "record {number} of {} {compression:?}", path.display());
            }
        }
    }
    assert!(copied > 3000, "{copied} records");
}
