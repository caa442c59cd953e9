//! Programs of other people, run from their own Python environment, and what they say of archive files.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The environment that holds warcio, FastWARC, cdxj-indexer and pywb.
pub struct Peers {
    python: PathBuf,
}

/// What the peers say of one file; `None` where one of them gives up.
#[derive(Debug, serde::Deserialize)]
pub struct Judged {
    /// The text of `cdxj-indexer --sort`.
    pub index: Option<String>,
    /// Offset and length of every record.
    pub warcio: Option<Vec<(u64, u64)>>,
    /// Offset of every record.
    pub fastwarc: Option<Vec<u64>>,
    /// What the first to fail said.
    pub why: Option<String>,
}

impl Peers {
    /// The peers, or `None` with a word about it.
    pub fn find() -> Option<Peers> {
        let python = std::env::var_os("SKEP_PYTHON").map(PathBuf::from);
        if python.is_none() {
            eprintln!("third-party checks not run: SKEP_PYTHON is not set");
        }
        python.map(|python| Peers { python })
    }

    /// The interpreter with one of the scripts beside this file.
    pub fn script(&self, name: &str) -> Command {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
        let mut command = Command::new(&self.python);
        command.arg(folder.join(name));
        command
    }

    /// A program that stands beside the interpreter.
    pub fn program(&self, name: &str) -> Command {
        Command::new(self.python.with_file_name(name))
    }

    /// Asks the peers about many files at once, which is much faster than one by one.
    pub fn judge(&self, files: &[PathBuf]) -> Vec<Judged> {
        let mut child = self
            .script("judge.py")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the interpreter named by SKEP_PYTHON runs");
        let mut names = child.stdin.take().expect("piped");
        let list: String = files.iter().map(|file| format!("{}\n", file.display())).collect();
        let asking = std::thread::spawn(move || names.write_all(list.as_bytes()));
        let output = child.wait_with_output().expect("the judge ends");
        asking.join().expect("no panic").expect("the judge reads every name");
        let told = text(&output);
        let judged: Vec<Judged> =
            told.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect();
        assert_eq!(judged.len(), files.len());
        judged
    }

    /// Files of every odd kind, written by warcio; the same for the same seed.
    pub fn make(&self, folder: &Path, seed: u64, records: usize) -> Vec<PathBuf> {
        text(&run(self.script("make.py").arg(folder).arg(seed.to_string()).arg(records.to_string())));
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
        files.sort();
        files
    }
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// What a command that succeeded wrote to standard output.
pub fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// `skep index FILE...`: what it writes, and its exit code.
pub fn skep_index<P: AsRef<Path>>(files: &[P]) -> (String, Option<i32>) {
    let output = run(Command::new(env!("CARGO_BIN_EXE_skep")).arg("index").args(files.iter().map(AsRef::as_ref)));
    (String::from_utf8(output.stdout).expect("UTF-8"), output.status.code())
}

/// Offset and length of every record as Skep's reader finds them; the length as indexes give it: of the whole gzip member, and in a
/// plain file without the line ends that follow.
pub fn places(file: &Path) -> Vec<(u64, u64)> {
    let mut reader = skep_warc::Reader::open(file, skep_warc::Options::recover()).expect("readable");
    let mut found = Vec::new();
    while let Some(record) = reader.next().expect("only the system's errors are errors") {
        let (offset, head_bytes, plain) = (record.offset(), record.head().raw().len() as u64, record.is_plain());
        let end = record.finish().expect("readable");
        found.push((offset, if plain { head_bytes + end.block_bytes } else { end.length }));
    }
    found
}

/// The first line that differs, for a message that can be read.
pub fn difference(ours: &str, theirs: &str) -> String {
    let mut pairs = ours.lines().zip(theirs.lines());
    match pairs.find(|(a, b)| a != b) {
        Some((a, b)) => format!("skep: {a}\npeer: {b}"),
        None => format!("skep has {} lines, the peer {}", ours.lines().count(), theirs.lines().count()),
    }
}
