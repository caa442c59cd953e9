//! Lines against those of the Internet Archive's own indexer, for archives that nobody here wrote. They are read where `SKEP_CORPORA`
//! says they are.

use std::path::{Path, PathBuf};

use skep_archive::cdx::{self, Options};

/// Lines that may differ, with the reason: a clause of the specification, or the indexer's own known fault. At most one in fifty.
const EXCEPTIONS: &[(&str, usize, &str)] = &[];

fn folder() -> Option<PathBuf> {
    let Some(corpora) = std::env::var_os("SKEP_CORPORA") else {
        eprintln!("corpus tests not run: SKEP_CORPORA is not set");
        return None;
    };
    Some(Path::new(&corpora).join("archives/CDX-Writer"))
}

fn lines_of(path: &Path, options: Options) -> Vec<String> {
    let mut out = Vec::new();
    cdx::write_file(path, options, &mut out).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let text = [cdx::HEADER.as_bytes(), b"\n", &out].concat();
    let chunks = text.utf8_chunks();
    let text: String =
        chunks.map(|c| c.valid().chars().chain(c.invalid().iter().map(|&b| stand_in(b))).collect::<String>()).collect();
    text.lines().map(str::to_owned).collect()
}

/// For a byte that is no UTF-8, as Rust's text can hold it.
fn stand_in(byte: u8) -> char {
    char::from_u32(0xe000 + u32::from(byte)).expect("a character for private use")
}

/// The expected text escapes such bytes as lone surrogates, `\udc80` to `\udcff`.
fn expected(folder: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(folder.join("expected-cdx.json")).expect("the expected lines");
    serde_json::from_str(&text.replace(r"\udc", r"\ue0")).expect("the expected lines are JSON")
}

#[test]
fn lines_equal_those_of_the_field() {
    let Some(folder) = folder() else { return };
    let expected = expected(&folder);
    let (mut files, mut lines, mut differing) = (0, 0, Vec::new());
    for (group, all) in [("warcs_defaults", false), ("warcs_all_records", true)] {
        for (file, text) in expected[group].as_object().expect("a group of files") {
            let wanted: Vec<&str> = text.as_str().expect("text").lines().collect();
            let found = lines_of(&folder.join(file), Options { all });
            files += 1;
            lines += wanted.len() - 1;
            for at in 0..wanted.len().max(found.len()) {
                let (wanted, found) = (wanted.get(at).copied(), found.get(at).map(String::as_str));
                let excepted = EXCEPTIONS.iter().any(|(name, line, _)| name == file && *line == at);
                if wanted != found && !excepted {
                    differing.push(format!("{group}/{file} line {at}\n  wanted {wanted:?}\n  found  {found:?}"));
                }
            }
        }
    }
    assert!(files > 0 && lines > 0, "nothing to compare with");
    assert!(EXCEPTIONS.len() * 50 <= lines, "{} exceptions of {lines} lines", EXCEPTIONS.len());
    assert!(differing.is_empty(), "{} of {lines} lines differ:\n{}", differing.len(), differing.join("\n"));
    eprintln!("{lines} lines of {files} files are equal");
}

#[test]
fn every_line_of_every_archive_has_eleven_columns() {
    let Some(folder) = folder() else { return };
    let archives = folder.parent().expect("the folder of all archives").to_owned();
    let (mut folders, mut files) = (vec![archives], 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of archives") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if [".arc", ".warc"].iter().any(|kind| name.contains(kind)) {
                files += 1;
                for line in &lines_of(&path, Options { all: true })[1..] {
                    let line = line.strip_suffix(&name).expect("the name of the file in the last column");
                    assert_eq!(line.split(' ').count(), 11, "{}: {line}", path.display());
                    assert!(!line.contains("  "), "{}: {line}", path.display());
                }
            }
        }
    }
    assert!(files > 50, "{files} files");
}
