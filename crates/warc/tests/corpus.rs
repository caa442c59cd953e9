//! Real archives that nobody here wrote. They are read where `SKEP_CORPORA` says they are.

mod scan;

use scan::{damage, intact_records};
use skep_warc::{Options, Reader};
use std::collections::HashMap;
use std::io::{BufRead, Read, Write};
use std::path::{Path, PathBuf};

/// The corpora, or `None` with a word on standard error.
fn corpora() -> Option<PathBuf> {
    let Some(dir) = std::env::var_os("SKEP_CORPORA") else {
        eprintln!("corpus tests not run: SKEP_CORPORA is not set");
        return None;
    };
    Some(PathBuf::from(dir).join("archives"))
}

struct Row {
    file: String,
    kind: String,
    by_warcio: String,
    by_fastwarc: String,
}

fn catalogue(dir: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(dir.join("catalogue.tsv")).expect("the catalogue is there");
    let rows = text.lines().skip(1).map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let field = |i: usize| fields.get(i).unwrap_or(&"").to_string();
        Row { file: field(0), kind: field(2), by_warcio: field(4), by_fastwarc: field(5) }
    });
    rows.filter(|row| row.kind != "WACZ").collect()
}

fn count(mut reader: Reader) -> (u64, usize) {
    let mut count = 0;
    while let Some(mut record) = reader.next().expect("only the system's errors are errors") {
        loop {
            let here = record.fill_buf().unwrap().len();
            if here == 0 {
                break;
            }
            record.consume(here);
        }
        count += 1;
    }
    (count, reader.findings().len())
}

#[test]
fn every_archive_gives_the_records_that_both_readers_see() {
    let Some(dir) = corpora() else { return };
    let rows = catalogue(&dir);
    assert!(rows.len() > 150);
    for row in rows {
        let reader =
            Reader::open(dir.join(&row.file), Options::recover()).unwrap_or_else(|e| panic!("{}: {e}", row.file));
        let (ours, findings) = count(reader);
        if row.by_warcio == row.by_fastwarc && !row.by_warcio.is_empty() {
            assert_eq!(ours.to_string(), row.by_warcio, "{}", row.file);
        } else if let Ok(theirs) = row.by_warcio.parse::<u64>() {
            assert!(ours >= theirs, "{}: {ours} records, warcio has {theirs}", row.file);
        }
        assert!(findings < 1000, "{}", row.file);
    }
}

#[test]
fn skimming_sees_the_records_that_reading_sees() {
    let Some(dir) = corpora() else { return };
    let list = |path: &Path, options| {
        let mut reader = Reader::open(path, options).unwrap();
        let mut all = Vec::new();
        while let Some(mut record) = reader.next().unwrap() {
            let (offset, head) = (record.offset(), record.head().raw().to_vec());
            let mut first = Vec::new();
            (&mut record).take(100).read_to_end(&mut first).unwrap();
            all.push((offset, head, first, record.finish().unwrap().block_bytes));
        }
        all
    };
    for row in catalogue(&dir) {
        let path = dir.join(&row.file);
        let (read, skimmed) = (list(&path, Options::recover()), list(&path, Options::skim()));
        assert!(read == skimmed, "{}: {} records, skimming {}", row.file, read.len(), skimmed.len());
    }
}

#[test]
fn every_intact_record_of_every_archive_is_returned() {
    let Some(dir) = corpora() else { return };
    for row in catalogue(&dir) {
        let bytes = std::fs::read(dir.join(&row.file)).unwrap();
        let lost = lost_records(&bytes, &dir.join(&row.file));
        assert_eq!(lost, Vec::<u64>::new(), "{}", row.file);
    }
}

fn lost_records(bytes: &[u8], path: &Path) -> Vec<u64> {
    let mut got: HashMap<(u64, Vec<u8>), Vec<u8>> = HashMap::new();
    let mut reader = Reader::open(path, Options::recover()).unwrap();
    while let Some(mut record) = reader.next().unwrap() {
        let key = (record.offset(), record.head().raw().to_vec());
        let mut block = Vec::new();
        record.read_to_end(&mut block).unwrap();
        got.insert(key, block);
    }
    let lost = intact_records(bytes).into_iter().filter(|r| got.get(&(r.offset, r.head.clone())) != Some(&r.block));
    lost.map(|r| r.offset).collect()
}

/// Damages of each archive; those of one archive are independent, so they are spread over several tests that run side by side.
fn damaged(part: usize, parts: usize) {
    let Some(dir) = corpora() else { return };
    let scratch = tempfile::tempdir().unwrap();
    for (i, row) in catalogue(&dir).into_iter().enumerate() {
        if i % parts != part {
            continue;
        }
        let bytes = std::fs::read(dir.join(&row.file)).unwrap();
        for seed in 0..500u64 {
            let broken = damage(&bytes, seed);
            let path = scratch.path().join("broken");
            std::fs::File::create(&path).unwrap().write_all(&broken).unwrap();
            count(Reader::open(&path, Options::strict()).unwrap());
            // The brute-force scan is slow by nature: on large files only some of the damages are held against it.
            if bytes.len() < 20_000 || (seed % 100 == 0 && bytes.len() < 1_000_000) {
                let lost = lost_records(&broken, &path);
                assert_eq!(lost, Vec::<u64>::new(), "{} damaged with seed {seed}", row.file);
            }
        }
    }
}

#[test]
fn damaged_archives_a() {
    damaged(0, 4);
}

#[test]
fn damaged_archives_b() {
    damaged(1, 4);
}

#[test]
fn damaged_archives_c() {
    damaged(2, 4);
}

#[test]
fn damaged_archives_d() {
    damaged(3, 4);
}

/// The names of the validation files say what a validator must say.
#[test]
fn strict_mode_gives_the_verdicts_of_the_validation_set() {
    let Some(dir) = corpora() else { return };
    let mut judged = 0;
    for folder in ["jhove", "webarchive"] {
        for entry in std::fs::read_dir(dir.join(folder)).expect("the validation set is there") {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let expected = match name.split('-').next() {
                Some("valid") => true,
                Some("invalid") => false,
                _ => continue,
            };
            let mut reader = Reader::open(&path, Options::strict()).unwrap();
            while let Some(mut record) = reader.next().unwrap() {
                skep_warc::check_record(&mut record).unwrap();
            }
            let against: Vec<String> = reader
                .take_findings()
                .iter()
                .filter(|f| f.rule.severity() > skep_warc::Severity::Notice)
                .map(ToString::to_string)
                .collect();
            assert_eq!(against.is_empty(), expected, "{name}: {against:#?}");
            judged += 1;
        }
    }
    assert!(judged >= 30, "{judged}");
}

#[test]
fn packages_hold_the_records_the_catalogue_counts() {
    let Some(dir) = corpora() else { return };
    for (file, expected) in
        [("pywb/valid_example_1.wacz", 4), ("replayweb.page/example.wacz", 29), ("replayweb.page/iframetest.wacz", 5)]
    {
        let path = dir.join(file);
        assert!(skep_warc::wacz::is_package(&path).unwrap(), "{file}");
        let entries = skep_warc::wacz::archives(&path).unwrap();
        let records: u64 = entries.iter().map(|e| count(e.reader(&path, Options::recover()).unwrap()).0).sum();
        assert_eq!(records, expected, "{file}");
    }
}
