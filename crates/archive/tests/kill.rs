//! SIGKILL of a writer at random points: nothing acknowledged is missing, and the archive checks clean.
//!
//! `SKEP_KILLS` sets how often (10 by default; a soak asks for 1,000), `SKEP_KILL_SEED` where to begin.

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use skep_archive::{Archive, OpenOptions, Position};
use support::*;

/// The example beside this test's binary.
fn writer() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let path = here.parent().unwrap().parent().unwrap().join("examples").join("writer");
    assert!(path.is_file(), "{} is missing; `cargo build --examples` makes it", path.display());
    path
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |value| value.parse().expect("a number"))
}

/// Runs a writer until it has told `lines` lines, kills it, and returns all it told.
fn run_and_kill(dir: &Path, seed: u64, lines: usize) -> Vec<String> {
    let mut child = Command::new(writer())
        .arg(dir)
        .args(["--threads", "3", "--bits", "1", "--segment-bytes", "400000", "--seed", &seed.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap());
    let mut all = Vec::new();
    let mut line = String::new();
    while all.len() < lines && told.read_line(&mut line).unwrap() > 0 {
        all.push(std::mem::take(&mut line));
    }
    child.kill().unwrap();
    // What it told before the signal reached it counts too.
    while told.read_line(&mut line).unwrap() > 0 {
        all.push(std::mem::take(&mut line));
    }
    assert!(!child.wait().unwrap().success());
    all.retain(|line| line.ends_with('\n'));
    all
}

#[test]
fn nothing_acknowledged_is_missing_after_a_kill() {
    let (kills, mut seed) = (number("SKEP_KILLS", 10), number("SKEP_KILL_SEED", 1));
    let dir = tempfile::tempdir().unwrap();
    let mut told: BTreeMap<Position, String> = BTreeMap::new();
    let mut slowest_ms = 0;
    for kill in 0..kills {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let lines = 1 + (seed >> 33) as usize % 120;
        for line in run_and_kill(dir.path(), kill, lines) {
            let (position, rest) = line.trim().split_once(' ').unwrap();
            let before = told.insert(position.parse().unwrap(), rest.to_string());
            assert_eq!(before, None, "{position} was given out twice");
        }
        // A whole check of all earlier kills would make a long soak quadratic; the end has one.
        let begun = Instant::now();
        let archive =
            Archive::open(dir.path(), OpenOptions { disk_reserve_bytes: 0, ..OpenOptions::default() }).unwrap();
        slowest_ms = slowest_ms.max(begun.elapsed().as_millis());
        let recent: Vec<_> = told.iter().rev().take(400).map(|(position, rest)| (*position, rest.clone())).collect();
        verify(&archive, &recent);
        assert!(archive.opened().iter().all(|finding| finding.mended), "{:?}", archive.opened());
        if kill % 100 == 99 {
            // A soak would fill the disk; what is verified may go.
            verify(&archive, &told.clone().into_iter().collect::<Vec<_>>());
            assert_eq!(archive.finish_opening(), []);
            assert_eq!(check(&archive), []);
            drop(archive);
            std::fs::remove_dir_all(dir.path().join("segments")).unwrap();
            std::fs::remove_dir_all(dir.path().join("views")).unwrap();
            told.clear();
        }
    }
    if !told.is_empty() {
        let archive = Archive::open(dir.path(), OpenOptions::default()).unwrap();
        assert_eq!(archive.finish_opening(), []);
        verify(&archive, &told.clone().into_iter().collect::<Vec<_>>());
        assert_eq!(check(&archive), []);
        let listed = captures(&archive);
        assert!(listed.len() >= told.len());
    }
    println!("{kills} kills; the slowest opening afterwards took {slowest_ms} ms");
}

/// Every record is there, and so is its payload.
fn verify(archive: &Archive, told: &[(Position, String)]) {
    archive.settle().unwrap();
    for (position, rest) in told {
        let (digest, url) = rest.split_once(' ').unwrap();
        let mut stored = archive.read(*position).unwrap();
        let mut record = stored.record_of(url.as_bytes()).unwrap();
        assert_eq!(record.head().text("WARC-Payload-Digest").as_deref(), Some(digest), "{position}");
        let verified = skep_warc::check_record(&mut record).unwrap();
        assert!(verified.payload && !verified.failed, "{position}");
    }
}

/// How long opening takes with a segment of `SKEP_OPEN_BYTES` bytes that a kill left open; small by default, a gigabyte in
/// a soak. Prints the figure; a soak also says how long it may be, with `SKEP_OPEN_MS_MAX`.
#[test]
fn opening_after_a_kill_reads_the_tail_only() {
    let bytes = number("SKEP_OPEN_BYTES", 8 << 20);
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(writer())
        .arg(dir.path())
        .args(["--threads", "4", "--bits", "0", "--bytes", "200000", "--segment-bytes", &(u64::MAX / 4).to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap());
    let (mut lines, mut line) = (0, String::new());
    // Sites fall into two halves; each is to be about as long as asked for.
    while lines * 200_000 < bytes * 2 && told.read_line(&mut line).unwrap() > 0 {
        lines += 1;
        line.clear();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let segments: u64 = tree_bytes(&dir.path().join("segments"));
    let begun = Instant::now();
    let archive = Archive::open(dir.path(), OpenOptions { disk_reserve_bytes: 0, ..OpenOptions::default() }).unwrap();
    let open_ms = begun.elapsed().as_millis();
    let begun = Instant::now();
    assert_eq!(archive.finish_opening(), []);
    archive.settle().unwrap();
    let closed_ms = begun.elapsed().as_millis();
    assert!(captures(&archive).len() as u64 >= lines);
    println!("{segments} bytes in open segments: opened in {open_ms} ms, closed behind it in {closed_ms} ms more");
    let most_ms = number("SKEP_OPEN_MS_MAX", u64::MAX);
    assert!(open_ms <= u128::from(most_ms), "opened in {open_ms} ms, at most {most_ms} asked for");
}

fn tree_bytes(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { tree_bytes(&path) } else { path.metadata().unwrap().len() }).sum()
}

/// A file-size limit makes writes fail in the middle of a record, as a full disk does.
#[test]
fn a_write_that_fails_harms_nothing_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    // Above the 64 MiB that the store of the views reserves for its journal; `ulimit` counts in kilobytes.
    let script = "trap '' XFSZ; ulimit -f 70000; exec \"$0\" \"$@\"";
    let output = Command::new("bash")
        .args(["-c", script])
        .arg(writer())
        .arg(dir.path())
        .args(["--bytes", "3000000", "--threads", "2", "--bits", "0", "--appends", "80", "--errors-are-fine"])
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("failed: cannot write"), "{errors}");
    let told: Vec<(Position, String)> = told
        .lines()
        .map(|line| line.split_once(' ').map(|(position, rest)| (position.parse().unwrap(), rest.to_string())).unwrap())
        .collect();
    assert!(told.len() > 20, "{} records, {errors}", told.len());
    let archive = Archive::open(dir.path(), OpenOptions { disk_reserve_bytes: 0, ..OpenOptions::default() }).unwrap();
    assert_eq!(archive.finish_opening(), []);
    verify(&archive, &told);
    assert_eq!(check(&archive), []);
}
