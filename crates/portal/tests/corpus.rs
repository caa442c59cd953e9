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

/// The recorded answers name the server they came from.
const THEIRS: &str = "http://127.0.0.1:18080";

#[test]
fn mementos_are_as_pywb_has_them() {
    let Some(corpora) = corpora() else { return };
    let site = sample(&corpora);
    let ours = format!("http://{}", site.serving.address());
    let replay = site.serving.replay_origin().expect("a name for archived pages").to_owned();
    let mut different = Vec::new();
    let mut compared = 0;
    for entry in recorded(&corpora, "pywb-memento.jsonl") {
        let path = entry["path"].as_str().expect("a path");
        let asked: Vec<(&str, &str)> = entry["req"]
            .as_object()
            .expect("headers")
            .iter()
            .map(|(n, v)| (n.as_str(), v.as_str().unwrap_or_default()))
            .collect();
        let gate = !asked.is_empty();
        let memento = path.contains("mp_/");
        let mut got = site.ask("GET", path, &asked, b"");
        if memento {
            // Archived pages are under another name here.
            got.leads_to(307, &format!("{replay}{path}"));
            got = site.replay(path);
        }
        compared += 1;
        let status = entry["status"].as_u64().unwrap_or(0);
        // A TimeGate answers with the page in its frame there, and leads to it here.
        let expected = if gate && status == 200 { 302 } else { status };
        if u64::from(got.status) != expected {
            different.push(format!("{path}: {} where {expected} was meant", got.status));
            continue;
        }
        let base = if memento { &replay } else { &ours };
        for (name, theirs) in entry["headers"].as_object().expect("headers") {
            let theirs = theirs.as_str().unwrap_or_default().replace(THEIRS, base);
            let looked_at = match name.as_str() {
                "Memento-Datetime" | "Link" | "Content-Location" | "Vary" => status == 200,
                "Content-Type" => !gate && status == 200,
                // What the reader there makes up where a header is wrong or missing is its own.
                "X-Archive-Orig-Content-Length" => theirs != "-1",
                other => other.starts_with("X-Archive-Orig-"),
            };
            if looked_at && got.header(name) != Some(theirs.as_str()) {
                different.push(format!("{path}: {name}\n  ours   {:?}\n  theirs {theirs:?}", got.header(name)));
            }
        }
        if let Some(body) = entry["body"].as_str().filter(|_| !memento && !gate) {
            let theirs: Vec<String> = body.replace(THEIRS, &ours).lines().filter_map(comparable).collect();
            let lines: Vec<String> = got.text().lines().filter_map(comparable).collect();
            if theirs != lines {
                different.push(format!("{path}: {lines:#?}\n  theirs {theirs:#?}"));
            }
        }
    }
    assert!(different.is_empty(), "{} of {compared} differ:\n{}", different.len(), different.join("\n"));
    assert_eq!(compared, 24);
}
