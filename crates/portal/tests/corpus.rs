//! pywb's recorded answers over its sample archive, asked of this portal with the same records.

mod site;

use serde_json::Value;
use site::{Site, add};
use skep_archive::{Archive, OpenOptions};
use skep_portal::{Settings, serve};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The corpora, where they are.
fn corpora() -> Option<PathBuf> {
    let found = std::env::var_os("SKEP_CORPORA").map(PathBuf::from);
    if found.is_none() {
        eprintln!("corpus tests not run: SKEP_CORPORA is not set");
    }
    found
}

/// Which of pywb's files stand in which of its collections.
const FILES: [(&str, &[&str]); 2] = [
    (
        "pywb",
        &[
            "iana.warc.gz",
            "dupes.warc.gz",
            "example.warc.gz",
            "example-extra.warc",
            "example-url-agnostic-orig.warc.gz",
            "example-url-agnostic-revisit.warc.gz",
            "httpbin-resource.warc.gz",
            "missing-status-text.warc",
        ],
    ),
    (
        "cdxj",
        &[
            "iana.warc.gz",
            "dupes.warc.gz",
            "example.warc.gz",
            "example2.warc.gz",
            "example-url-agnostic-orig.warc.gz",
            "example-url-agnostic-revisit.warc.gz",
        ],
    ),
];

/// Requests whose recorded answers say something about that archive's index rather than about the records in it.
const APART: [(&str, &str); 9] = [
    (
        "&showNumPages=true",
        "recorded over an index without pages, which ignores the question; here every index has pages",
    ),
    ("&pageSize=2&page=1", "the same"),
    ("&page=9999", "the same"),
    ("&showPagedIndex=true", "the same"),
    ("&limit=abc", "an internal error there; here the request is said to be wrong"),
    ("example.com?example=1&fl=urlkey,timestamp", "two indexes there list the same records twice"),
    ("/cdxj/cdx?url=http://iana.org/domains/*", "one index there lists a record a second time, without its status"),
    ("/cdxj/cdx?url=http://www.iana.org/&matchType=domain&filter==status:302", "the same"),
    ("/zip/", "the compressed index is not among the records"),
];

fn sample(corpora: &Path) -> Site {
    let folder = tempfile::tempdir().expect("a folder");
    let options = OpenOptions { disk_reserve_bytes: 0, ..OpenOptions::create() };
    let archive = Arc::new(Archive::open(&folder.path().join("archive"), options).expect("an archive"));
    for (collection, names) in FILES {
        let into = folder.path().join(collection);
        std::fs::create_dir_all(&into).expect("a folder");
        for name in names {
            let from = corpora.join("archives/pywb").join(name);
            std::fs::copy(&from, into.join(name)).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
            add(&archive, collection, &into.join(name));
        }
    }
    let serving = serve(archive.clone(), Settings::at(([127, 0, 0, 1], 0).into())).expect("a portal");
    Site { folder, archive, serving, log: Arc::new(Mutex::new(Vec::new())) }
}

fn recorded(corpora: &Path, name: &str) -> Vec<Value> {
    let path = corpora.join("vectors/cdx").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// A line without what is that index's own: where it stands in which index, and columns that are always empty.
fn comparable(line: &str) -> Option<String> {
    let (key, json) = match line.find('{') {
        Some(at) => line.split_at(at),
        None => return Some(line.to_owned()),
    };
    let mut object: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{line}: {error}"));
    let fields = object.as_object_mut().expect("an object");
    let absent = fields
        .get("filename")
        .and_then(Value::as_str)
        .is_some_and(|name| !FILES.iter().any(|(_, names)| names.contains(&name)));
    for name in ["source", "source-coll", "redirect", "robotflags"] {
        fields.remove(name);
    }
    if fields.get("status").and_then(Value::as_str) == Some("-") {
        fields.remove("status");
    }
    (!absent).then(|| format!("{key}{object}"))
}

#[test]
fn the_index_answers_as_pywb_does() {
    let Some(corpora) = corpora() else { return };
    let site = sample(&corpora);
    let (mut compared, mut different) = (0, Vec::new());
    for entry in recorded(&corpora, "pywb-cdx-api.jsonl") {
        let path = entry["path"].as_str().expect("a path");
        let plain = percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned();
        if APART.iter().any(|(part, _)| plain.contains(part)) {
            continue;
        }
        compared += 1;
        let got = site.get(path);
        let told =
            |what: &str, ours: &str, theirs: &str| format!("{plain}\n  {what}\n  ours   {ours}\n  theirs {theirs}");
        if u64::from(got.status) != entry["status"].as_u64().unwrap_or(0) {
            different.push(told("status", &got.status.to_string(), &entry["status"].to_string()));
            continue;
        }
        let media_type = entry["headers"]["Content-Type"].as_str().unwrap_or_default();
        if got.header("content-type") != Some(media_type) {
            different.push(told("media type", got.header("content-type").unwrap_or_default(), media_type));
        }
        let theirs: Vec<String> = entry["body"].as_str().unwrap_or_default().lines().filter_map(comparable).collect();
        let ours: Vec<String> = got.text().lines().filter_map(comparable).collect();
        if theirs != ours {
            let at = theirs.iter().zip(&ours).position(|(a, b)| a != b).unwrap_or(theirs.len().min(ours.len()));
            let line = |lines: &[String]| lines.get(at).cloned().unwrap_or_default();
            let what = format!("line {at} of {} and {}", ours.len(), theirs.len());
            different.push(told(&what, &line(&ours), &line(&theirs)));
        }
    }
    assert!(different.is_empty(), "{} of {compared} differ:\n{}", different.len(), different.join("\n"));
    assert!(compared >= 25, "only {compared} were compared");
}
