//! Indexes and offsets of real archives, held against the programs that the field uses.

mod python;

use python::{Judged, Peers, difference, places, skep_index};
use std::path::PathBuf;

/// Files on which Skep and cdxj-indexer 1.5.0 differ, and why. All of them are malformed, apart from the two that vary the case of
/// what has no case.
const DIFFERENT: &[(&str, &str)] = &[
    ("CDX-Writer/hex_instead_of_date.arc.gz", "there is no date; the peer makes up one in the year 2999"),
    ("CDX-Writer/transposed_header.arc.gz", "date and address change places; the peer dates it to the year 2999"),
    ("ipwb/HTTP204.warc", "Content-Length is too small; the peer counts by it"),
    ("warcio.js/example-bad-length.warc", "Content-Length is one too small; the peer counts by it"),
    ("warcio/example-trunc.warc", "Content-Length is two too small; the peer counts by it"),
    ("jhove/valid-warcfile-upper-lower-case.warc", "WARC-Type is RESPONSE; types have no case, the peer knows one"),
    ("webarchive/valid-warcfile-upper-lower-case.warc", "the same file"),
    ("webarchive/invalid-warcheaderfieldpolicy-11.warc", "ends where a block should begin; the peer ends before it"),
    ("webarchive/invalid-warcheaderfieldpolicy-12.warc", "the same"),
    ("webarchive/invalid-warcheaderfieldpolicy-13.warc", "the same"),
];

/// Files in which warcio gives a record another length, and why; it begins at the same byte.
const NO_LENGTHS: &[(&str, &str)] = &[
    ("jhove/invalid-warcfile-lonely-monkeys-lf-line-endings.warc", "there is no Content-Length"),
    ("pywb/example.warc", "the Content-Length of a request is three too small; the peer counts by it"),
    ("warcio/example.arc", "the first record declares a byte less than its two lines, which the peer reads whole"),
    ("warcio/example-space-in-url.arc", "the same"),
];

/// Files of the catalogue with what the peers say of them, and whether it counts the same records for both readers.
struct Row {
    file: String,
    path: PathBuf,
    both_readers_agree: bool,
    judged: Judged,
}

fn rows() -> Option<Vec<Row>> {
    let Some(corpora) = std::env::var_os("SKEP_CORPORA") else {
        eprintln!("corpus tests not run: SKEP_CORPORA is not set");
        return None;
    };
    let peers = Peers::find()?;
    let folder = PathBuf::from(corpora).join("archives");
    let catalogue = std::fs::read_to_string(folder.join("catalogue.tsv")).expect("the catalogue is there");
    let lines: Vec<Vec<&str>> = catalogue.lines().skip(1).map(|line| line.split('\t').collect()).collect();
    let lines: Vec<Vec<&str>> = lines.into_iter().filter(|fields| fields[2] != "WACZ").collect();
    let paths: Vec<PathBuf> = lines.iter().map(|fields| folder.join(fields[0])).collect();
    paths.iter().for_each(|path| assert!(path.is_file(), "{} is missing", path.display()));
    let judged = peers.judge(&paths);
    let row = |((fields, path), judged): ((Vec<&str>, PathBuf), Judged)| Row {
        file: fields[0].to_owned(),
        path,
        both_readers_agree: fields[4] == fields[5],
        judged,
    };
    Some(lines.into_iter().zip(paths).zip(judged).map(row).collect())
}

#[test]
fn every_file_that_cdxj_indexer_takes_has_the_same_index() {
    let Some(rows) = rows() else { return };
    let mut equal = 0;
    for Row { file, path, judged, .. } in &rows {
        let (ours, code) = skep_index(&[path]);
        assert!(matches!(code, Some(0 | 3)), "{file}: exit code {code:?}");
        let Some(theirs) = &judged.index else { continue };
        match DIFFERENT.iter().find(|(name, _)| name == file) {
            None => assert!(ours == *theirs, "{file}\n{}", difference(&ours, theirs)),
            Some((_, why)) => assert!(ours != *theirs, "{file} is listed as different ({why}), and it is not"),
        }
        equal += usize::from(ours == *theirs);
    }
    assert!(equal >= 140, "only {equal} of {} files", rows.len());
}

#[test]
fn records_begin_where_the_other_readers_find_them() {
    let Some(rows) = rows() else { return };
    let (mut with_both, mut with_one, mut wrong) = (0, 0, Vec::new());
    for Row { file, path, judged, both_readers_agree } in &rows {
        let ours = places(path);
        let offsets: Vec<u64> = ours.iter().map(|place| place.0).collect();
        let as_warcio = |theirs: &Vec<(u64, u64)>| {
            let lengths = NO_LENGTHS.iter().all(|(name, _)| name != file);
            if lengths { ours == *theirs } else { theirs.iter().map(|place| place.0).eq(offsets.iter().copied()) }
        };
        let equal = match (&judged.warcio, &judged.fastwarc) {
            (Some(warcio), Some(fastwarc)) if *both_readers_agree => {
                with_both += 1;
                as_warcio(warcio) && offsets == *fastwarc
            }
            // Only one of them reads ARC, only the other zstd.
            (Some(warcio), None) if DIFFERENT.iter().all(|(name, _)| name != file) => {
                with_one += 1;
                as_warcio(warcio)
            }
            (None, Some(fastwarc)) if file.ends_with(".zst") => {
                with_one += 1;
                offsets == *fastwarc
            }
            _ => true,
        };
        if !equal {
            wrong.push(format!("{file}\nskep: {ours:?}\npeers: {judged:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(with_both >= 100 && with_one >= 25, "{with_both} files with both, {with_one} with one");
}
