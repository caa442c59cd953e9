//! `skep add`: files from elsewhere join the archive.

use crate::failure::{Failure, Result};
use crate::job::{self, Exit, Tell};
use crate::owner::{self, Owned, Place};
use crate::search;
use crate::show::{self, Column, Screen};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;
use skep_archive::{Added, Adding, Addition, Additions, Archive, Note, cdxj};
use skep_warc::wacz;
use std::collections::{HashMap, HashSet, VecDeque};
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Index ARC, WARC, WACZ or CDXJ files into the archive
#[derive(Args)]
#[command(after_help = "\
Files stay where they are and are never changed; --copy puts copies into the archive. A folder stands for all archive files below it.
A CDXJ index brings in the captures it lists, without reading the WARC files it names (they must be where the index is). Adding a file again
does nothing. --text makes the archive keep an index of the texts of all its pages, from now on, for `skep search`. Exit code 3 if something
was left out, or a file is damaged.
Examples:
  skep add crawl.warc.gz
  skep add --collection elections-2019 /srv/crawls/2019/
  skep add --copy gift.wacz")]
pub struct Typed {
    /// Files or folders
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The collection they belong to
    #[arg(long, value_name = "NAME", default_value = "added")]
    collection: String,
    /// Copy the files into the archive
    #[arg(long)]
    copy: bool,
    /// Keep an index of the texts of all pages in the archive
    #[arg(long)]
    text: bool,
}

/// As meant: absolute paths of files.
#[derive(Serialize, Deserialize)]
pub struct Job {
    files: Vec<PathBuf>,
    collection: String,
    copy: bool,
    #[serde(default)]
    text: bool,
}

const COLUMNS: &[Column] = &[
    ("records", |v| show::text(v, "records")),
    ("findings", |v| v["findings"].as_array().map_or(0, Vec::len).to_string()),
    ("result", |v| show::text(v, "result")),
    ("file", |v| show::text(v, "file")),
];

/// WARC files that one CDXJ index may name.
const FILES_PER_INDEX_MAX: usize = 800;
/// Files whose records wait for one commit.
const FILES_PER_COMMIT: usize = 64;
const ENDINGS: [&str; 8] = ["warc", "warc.gz", "warc.zst", "arc", "arc.gz", "wacz", "cdxj", "warc.open"];

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let name_is_fine =
        !typed.collection.is_empty() && typed.collection.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
    if !name_is_fine {
        return Err(Failure::new(format!("{:?} cannot name a collection", typed.collection))
            .hint("letters, digits, `-`, `_` and `.` can"));
    }
    let mut files = Vec::new();
    for path in &typed.files {
        let path = path.canonicalize().map_err(|error| Failure::reading(path, error))?;
        match path.metadata().map_err(|error| Failure::reading(&path, error))? {
            meta if meta.is_dir() => find_below(&path, &place.archive, &mut files)?,
            meta if meta.is_file() => files.push(path),
            // A pipe would be waited for, a device read for ever, and neither could be read a second time.
            _ => return Err(Failure::new(format!("{} is not a file", path.display()))),
        }
    }
    if files.is_empty() {
        return Err(
            Failure::new("there is no archive file").hint(format!("archive files end in .{}", ENDINGS.join(", .")))
        );
    }
    let job = Job { files, collection: typed.collection, copy: typed.copy, text: typed.text };
    let mut screen = Screen::new(place.json, COLUMNS);
    let exit = owner::perform(place, true, &job::Job::Add(job), &mut screen);
    screen.finish()?;
    exit
}

/// Archive files below a folder, in the order of their names. Links may lead in circles; and what the archive keeps itself is not from
/// elsewhere.
fn find_below(folder: &Path, archive: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let mut seen: HashSet<PathBuf> = archive.canonicalize().into_iter().collect();
    let mut waiting = VecDeque::from([folder.to_path_buf()]);
    let mut found = Vec::new();
    while let Some(folder) = waiting.pop_front() {
        let folder = folder.canonicalize().map_err(|error| Failure::reading(&folder, error))?;
        if !seen.insert(folder.clone()) {
            continue;
        }
        let failed = |error| Failure::reading(&folder, error);
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().map(|n| n.to_string_lossy().to_lowercase()).unwrap_or_default();
            if path.is_dir() {
                waiting.push_back(path);
            } else if path.is_file()
                && ENDINGS.iter().any(|e| name.strip_suffix(e).is_some_and(|stem| stem.ends_with('.')))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    files.append(&mut found);
    Ok(())
}

pub fn perform(owned: &Owned, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    if job.text {
        owned.text.keep()?;
    }
    let exit = add(&owned.archive, job, tell)?;
    search::read_texts(owned, tell)?;
    Ok(exit)
}

fn add(archive: &Archive, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    let total: u64 = job.files.iter().filter_map(|p| p.metadata().ok()).map(|m| m.len()).sum();
    let mut additions = archive.additions()?;
    let mut exit = Exit::Done;
    let mut done = 0;
    for (index, path) in job.files.iter().enumerate() {
        let outcome = add_one(&mut additions, path, job, &mut |bytes| tell.progress(done + bytes, total));
        done += path.metadata().map_or(0, |m| m.len());
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(failure) if job.files.len() > 1 && !failure.reader_left => {
                Outcome { result: told(failure), undone: true, ..Outcome::default() }
            }
            Err(failure) => {
                additions.commit()?;
                return Err(failure);
            }
        };
        if outcome.undone {
            exit = Exit::Undone;
        }
        tell.line(json!({
            "file": path.display().to_string(),
            "collection": job.collection,
            "result": outcome.result,
            "records": outcome.records,
            "findings": outcome.findings,
        }))?;
        for finding in &outcome.findings {
            tell.talk(&format!("{}: {finding}", path.display()));
        }
        if index % FILES_PER_COMMIT == FILES_PER_COMMIT - 1 {
            commit(&mut additions, tell)?;
        }
    }
    commit(&mut additions, tell)?;
    Ok(exit)
}

/// A failure in one line: what, because of what, and what to type next.
fn told(failure: Failure) -> String {
    let because = failure.because.map_or(String::new(), |why| format!(": {why}"));
    let hint = failure.hint.map_or(String::new(), |hint| format!("; {hint}"));
    format!("{}{because}{hint}", failure.what)
}

fn commit(additions: &mut Additions<'_>, tell: &mut dyn Tell) -> Result<()> {
    additions.commit()?.iter().for_each(|finding| tell.talk(&finding.to_string()));
    Ok(())
}

#[derive(Default)]
struct Outcome {
    result: String,
    records: u64,
    findings: Vec<String>,
    undone: bool,
}

fn add_one(additions: &mut Additions<'_>, path: &Path, job: &Job, progress: &mut dyn FnMut(u64)) -> Result<Outcome> {
    let named = |ending: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending));
    if named("cdxj") {
        return add_index(additions, path, job, progress);
    }
    refuse_packed_twice(path)?;
    Ok(match additions.add(path, &job.collection, job.copy, progress)? {
        Added::Already(_) => Outcome { result: "there already".into(), ..Outcome::default() },
        Added::Changed(_) => changed(),
        Added::New { records, findings, damaged, .. } => Outcome {
            result: if damaged { "added, but for what is damaged".into() } else { "added".into() },
            records,
            undone: damaged,
            findings,
        },
    })
}

/// Files of a package are read where they are, each record by its place. Where the package compresses a file as a whole there are no such places:
/// finding the last record would mean unpacking all others, each time.
fn refuse_packed_twice(path: &Path) -> Result<()> {
    let failed = |error| Failure::reading(path, error);
    if !wacz::is_package(path).map_err(failed)? {
        return Ok(());
    }
    let inside = wacz::archives(path).map_err(failed)?;
    let Some(packed) = inside.iter().find(|entry| entry.deflated) else { return Ok(()) };
    let folder = path.with_extension("");
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', "'\\''"));
    let why =
        format!("the package compresses {} a second time, so that no record of it has a place of its own", packed.name);
    let (package, folder) = (quoted(path), quoted(&folder));
    Err(Failure::new(format!("{} cannot be read where it is", path.display()))
        .because(why)
        .hint(format!("`unzip {package} 'archive/*' -d {folder}` unpacks it; then `skep add {folder}`")))
}

fn changed() -> Outcome {
    Outcome {
        result: "left out: it changed since it was added; files of an archive must not change".into(),
        undone: true,
        ..Outcome::default()
    }
}

/// An index: the captures it lists, in the files it names.
fn add_index(additions: &mut Additions<'_>, path: &Path, job: &Job, progress: &mut dyn FnMut(u64)) -> Result<Outcome> {
    let failed = |error| Failure::reading(path, error);
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut files: HashMap<String, Option<(Adding, u32)>> = HashMap::new();
    let mut outcome = Outcome::default();
    let mut read = 0;
    let mut lines = BufReader::new(std::fs::File::open(path).map_err(failed)?);
    let mut line = Vec::new();
    for number in 0u64.. {
        let bytes = cdxj::read_bounded_line(&mut lines, &mut line).map_err(failed)?;
        if bytes == 0 {
            break;
        }
        read += bytes;
        let parsed = match std::str::from_utf8(&line) {
            Ok(text) => cdxj::parse_line(text),
            Err(_) => Err("the line is not UTF-8".to_owned()),
        };
        let imported = match parsed {
            Ok(Some(imported)) => imported,
            Ok(None) => continue,
            Err(why) => {
                outcome.findings.push(format!("line {}: {why}", number + 1));
                outcome.undone = true;
                if outcome.findings.len() > 100 {
                    return Err(Failure::new(format!("{} is not a CDXJ index", path.display())).because(why));
                }
                continue;
            }
        };
        if !files.contains_key(&imported.filename) {
            if files.len() >= FILES_PER_INDEX_MAX {
                return Err(Failure::new(format!("{} names more than {FILES_PER_INDEX_MAX} files", path.display()))
                    .hint("add the WARC files themselves"));
            }
            let begun = begin_named(additions, folder, &imported.filename, job, &mut outcome)?;
            files.insert(imported.filename.clone(), begun);
        }
        let Some(Some((adding, next))) = files.get_mut(&imported.filename) else { continue };
        let mut capture = imported.capture;
        let rest = adding.file().size.saturating_sub(capture.offset);
        if rest == 0 {
            outcome.findings.push(format!(
                "line {}: offset {} is behind the end of {}",
                number + 1,
                capture.offset,
                imported.filename
            ));
            outcome.undone = true;
            continue;
        }
        capture.length = if capture.length == 0 { rest } else { capture.length.min(rest) };
        let (offset, length) = (capture.offset, capture.length);
        adding.push(*next, offset, length, Note::Capture(Box::new(capture)))?;
        *next += 1;
        progress(read);
    }
    for (adding, _) in files.into_values().flatten() {
        outcome.records += additions.end(adding)?;
    }
    outcome.result = if outcome.undone { "added, but for what is told above".into() } else { "added".into() };
    Ok(outcome)
}

fn begin_named(
    additions: &mut Additions<'_>,
    folder: &Path,
    name: &str,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<Option<(Adding, u32)>> {
    // A name in an index is somebody else's word: it must not lead out of the index's folder.
    let inside = Path::new(name).components().all(|c| matches!(c, std::path::Component::Normal(_)));
    let path = folder.join(name);
    if !inside || !path.is_file() {
        outcome.findings.push(format!("{name} is not beside the index; its captures are left out"));
        outcome.undone = true;
        return Ok(None);
    }
    Ok(match additions.begin(&path, &job.collection, "cdxj", job.copy)? {
        Addition::New(adding) => Some((adding, 0)),
        Addition::Already(_) => None,
        Addition::Changed(_) => {
            outcome.findings.push(format!("{name} changed since it was added"));
            outcome.undone = true;
            None
        }
    })
}
