//! Writes the archive that stands in `fixtures/`: run once for each version of the formats, then kept for ever.
//!
//! ```text
//! cargo run --release -p skep-archive --example fixture -- crates/archive/fixtures/v1
//! ```
//! Makes `v1` (two slices, a sealed segment, a rewritten one, one left open by a crash, a file copied from elsewhere), beside it
//! `v1-damaged` (the same with a torn tail, a torn sidecar and a flipped bit), and `v1.txt` with the answers.

#[path = "../tests/support/mod.rs"]
mod support;

use std::path::Path;

use skep_archive::{Archive, OpenOptions, Selector};
use support::*;

fn main() {
    let target = std::env::args().nth(1).expect("usage: fixture FOLDER");
    let target = Path::new(&target);
    let damaged = target.with_file_name(format!("{}-damaged", target.file_name().unwrap().to_str().unwrap()));
    for folder in [target, &damaged] {
        if folder.exists() {
            std::fs::remove_dir_all(folder).unwrap();
        }
    }
    let work = tempfile::tempdir().unwrap();
    let foreign = foreign(work.path());
    let dir = work.path().join("archive");
    let with_slices = || OpenOptions { bits: 1, ..options(7) };

    let archive = Archive::open(&dir, with_slices()).unwrap();
    append(&archive, "http://example.com/", START_MS, "one");
    append(&archive, "http://example.com/secret", START_MS + 1, "to be removed");
    append(&archive, "http://example.org/ä?b=2&a=1", START_MS + 2, "two");
    archive.remove(&Selector::Url("http://example.com/secret".into()), "a fixture").unwrap();
    let mut additions = archive.additions().unwrap();
    additions.add(&foreign, "fixture", true, &mut |_| ()).unwrap();
    additions.commit().unwrap();
    drop(additions);
    archive.close().unwrap();

    let archive = Archive::open(&dir, with_slices()).unwrap();
    append(&archive, "http://example.com/", START_MS + 3, "three");
    archive.settle().unwrap();
    // As a crash would leave it: the last segment is not closed.
    copy(&dir, target, &["segments", "settings", "collections"]);
    let lines: String = answers(&archive)
        .into_iter()
        .map(|(url, time, position, status, digest)| format!("{position} {time} {status} {digest:?} {url}\n"))
        .collect();
    std::fs::write(target.with_extension("txt"), lines).unwrap();
    drop(archive);
    let list = target.join("settings/collections.toml");
    let text = std::fs::read_to_string(&list).unwrap();
    let here = foreign.canonicalize().unwrap();
    std::fs::write(&list, text.replace(here.to_str().unwrap(), "/elsewhere/foreign.warc.gz")).unwrap();

    copy(target, &damaged, &["segments", "settings", "collections"]);
    let names: Vec<String> = tree(&damaged.join("segments")).into_keys().collect();
    let change = |ending: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let name = names.iter().find(|name| name.ends_with(ending)).unwrap_or_else(|| panic!("{ending} of {names:?}"));
        let path = damaged.join("segments").join(name);
        let mut bytes = std::fs::read(&path).unwrap();
        change(&mut bytes);
        std::fs::write(path, bytes).unwrap();
    };
    let open = names
        .iter()
        .filter(|name| name.ends_with(".warc.gz"))
        .max_by_key(|name| name.rsplit('/').next().map(String::from))
        .unwrap();
    change(open, &|bytes| bytes.truncate(bytes.len() - 7));
    change(&open.replace(".warc.gz", ".idx"), &|bytes| bytes.truncate(bytes.len() - 9));
    change(".g1.warc.gz", &|bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    });
}

/// A small WARC file of somebody else's.
fn foreign(dir: &Path) -> std::path::PathBuf {
    let path = dir.join("foreign.warc.gz");
    let mut bytes = Vec::new();
    for (number, body) in ["alpha", "beta"].into_iter().enumerate() {
        let append = fetch("http://elsewhere.example/", START_MS - 1000 * (number as i64 + 1), body);
        for record in append.records {
            let skep_archive::Bytes::Memory(part) = record.bytes else { unreachable!("made in memory") };
            bytes.extend(part);
        }
    }
    std::fs::write(&path, bytes).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    let modified = std::time::UNIX_EPOCH + std::time::Duration::from_millis(START_MS as u64);
    file.set_modified(modified).unwrap();
    path
}
