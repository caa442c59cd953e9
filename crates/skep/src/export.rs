//! `skep export`: a part of the archive, in a form that others take.

mod files;
mod index;
mod names;
mod output;
mod package;
mod pages;
mod pour;
mod ready;
mod walk;
mod warcs;

use crate::failure::{Failure, Result, say};
use crate::job::{self, Exit, Tell};
use crate::node::originals::Originals;
use crate::owner::{self, Place};
use crate::show::{self, Column, Screen};
use crate::{amount, serve, when};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use serde_json::json;
use skep_archive::{Archive, Selection};
use skep_url::{Match, Scan};
use std::path::{Path, PathBuf};

/// Write a part of the archive to a file: WACZ, WARC, an index, or the site itself as a folder
#[derive(Args)]
#[command(after_help = "\
--format:
  wacz   one package with records, index and list of pages, for ReplayWeb.page, pywb and others; `skep add` takes it back
  warc   records as they stand, in one .warc.gz, or several of 1 GiB (NAME-00001.warc.gz and so on)
  cdxj   the index, sorted, as `skep index` writes it; -o - is standard output
  files  a folder with the site: the newest answer of every URL (as of --to, if that is given), its bytes as they were, under names
         that a web server would look for; skep-manifest.jsonl says where each came from
What was asked and noted when a page was fetched goes with it, and so does the capture that a revisit refers to, wherever it is. Removed
captures, and those made with secrets, are left behind. The same part of the same archive gives the same bytes. Nothing is written over:
the file appears when it is whole. Exit code 1 if nothing is selected; 3 if something of it could not be read.
Examples:
  skep export --format wacz -o site.wacz
  skep export --format warc --url-prefix https://example.org/news/ --from 2019 --to 2020 -o news.warc.gz
  skep export --format files --url-prefix https://example.org/ --to 2019 -o site-in-2019
  skep export --format cdxj --collection elections-2019 -o - | head")]
pub struct Typed {
    /// What to write
    #[arg(long, value_enum, value_name = "wacz|warc|cdxj|files", hide_possible_values = true)]
    format: Format,
    /// Where to
    #[arg(short, long, value_name = "FILE|DIR")]
    output: PathBuf,
    /// Only files that were added to this collection
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
    /// Only URLs that begin so; `*.example.org` for a domain and all below it
    #[arg(long, value_name = "P")]
    url_prefix: Option<String>,
    /// Not before this time (2019, 2019-06, 2019-06-01T12:00:00Z, 20190601120000)
    #[arg(long, value_name = "T")]
    from: Option<String>,
    /// Not after it; `--to 2019` includes all of 2019
    #[arg(long, value_name = "T")]
    to: Option<String>,
    /// What may be given away: a TOML file with rules by URL and date, as `skep serve` takes it
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Begin another WARC file after so many bytes
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    warc_size: String,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    Wacz,
    Warc,
    Cdxj,
    Files,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Format::Wacz => "wacz",
            Format::Warc => "warc",
            Format::Cdxj => "cdxj",
            Format::Files => "files",
        }
    }
}

/// As meant: an absolute path, or none for standard output.
#[derive(Serialize, Deserialize)]
pub struct Job {
    format: Format,
    output: Option<PathBuf>,
    collection: Option<String>,
    url_prefix: Option<String>,
    from_ms: Option<i64>,
    to_ms: Option<i64>,
    rules: Option<String>,
    warc_bytes: u64,
    /// What moments of rules are compared with.
    now_ms: i64,
}

/// What was written, for the summary.
#[derive(Default)]
pub struct Summary {
    pub files: Vec<PathBuf>,
    pub bytes: u64,
    pub captures: u64,
    pub records: u64,
    /// Captures outside of what was selected that revisits inside refer to.
    pub originals: u64,
    pub pages: Option<u64>,
    /// Records that could not be read.
    pub left_out: u64,
    /// Revisits whose original is nowhere.
    pub without_original: u64,
}

const COLUMNS: &[Column] = &[
    ("captures", |v| show::text(v, "captures")),
    ("records", |v| show::text(v, "records")),
    ("bytes", |v| show::bytes(v["bytes"].as_u64().unwrap_or(0))),
    ("left out", |v| show::text(v, "left_out")),
    ("file", |v| show::text(v, "file")),
];

/// The smallest WARC files that can be asked for: room for a warcinfo record and a page.
const WARC_BYTES_MIN: u64 = 4096;

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let job = typed.meant()?;
    let to_screen = job.output.is_none();
    let mut screen = Screen::new(place.json, COLUMNS);
    let exit = owner::perform(place, false, &job::Job::Export(Box::new(job)), &mut screen);
    screen.finish()?;
    if matches!(exit, Ok(Exit::No)) && !to_screen {
        say("nothing is selected, nothing was written");
    }
    exit
}

impl Typed {
    fn meant(self) -> Result<Job> {
        let read = |path: &PathBuf| std::fs::read_to_string(path).map_err(|error| Failure::reading(path, error));
        let rules = self.rules.as_ref().map(read).transpose()?;
        serve::access(None, rules.as_deref())?;
        let warc_bytes = amount::bytes(&self.warc_size)?;
        if warc_bytes < WARC_BYTES_MIN {
            return Err(Failure::new(format!("--warc-size {} is too small", self.warc_size)).hint("1GiB is usual"));
        }
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Ok(Job {
            output: place_of(&self.output, self.format)?,
            format: self.format,
            collection: self.collection,
            url_prefix: self.url_prefix,
            from_ms: self.from.as_deref().map(when::earliest).transpose()?,
            to_ms: self.to.as_deref().map(when::latest).transpose()?,
            rules,
            warc_bytes,
            now_ms: i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
        })
    }
}

/// The absolute path that was typed; `None` for standard output.
fn place_of(typed: &Path, format: Format) -> Result<Option<PathBuf>> {
    if typed == Path::new("-") {
        if format != Format::Cdxj {
            return Err(Failure::new(format!("{} cannot be written to standard output", format.name()))
                .hint("-o FILE names a file"));
        }
        return Ok(None);
    }
    let Some(name) = typed.file_name() else {
        return Err(Failure::new(format!("{} names no file", typed.display())).hint("-o site.wacz, for example"));
    };
    let folder = typed.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().map_err(|error| Failure::reading(folder, error))?;
    let whole = folder.join(name);
    output::is_free(&whole)?;
    Ok(Some(whole))
}

pub fn perform(archive: &Archive, others: &Originals, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    let selection = job.selection();
    if let Some(name) = &job.collection {
        is_there(archive, name)?;
    }
    let access = serve::access_to(archive, None, job.rules.as_deref())?;
    archive.settle()?;
    let mut walk = walk::Walk::new(archive, selection, access, job.now_ms, others.clone())?;
    if walk.is_empty() {
        return Ok(Exit::No);
    }
    let summary = match (job.format, &job.output) {
        (Format::Cdxj, output) => index::write(&mut walk, output.as_deref(), tell)?,
        (Format::Wacz, Some(output)) => package::write(&mut walk, job, output, tell)?,
        (Format::Files, Some(output)) => files::write(&mut walk, output, tell)?,
        (Format::Warc, Some(output)) => warcs::write(&mut walk, job, output, tell)?,
        (_, None) => return Err(Failure::new("no file is named")),
    };
    // Rules may have kept back all of it.
    if summary.records == 0 && summary.left_out == 0 {
        return Ok(Exit::No);
    }
    if summary.without_original > 0 {
        tell.talk(&format!(
            "note: {} revisits refer to captures that are not in this archive, or not to be given away",
            summary.without_original
        ));
    }
    if let Some(output) = &job.output {
        tell.line(json!({
            "file": output.display().to_string(),
            "files": summary.files.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
            "format": job.format.name(),
            "bytes": summary.bytes,
            "captures": summary.captures,
            "records": summary.records,
            "originals": summary.originals,
            "pages": summary.pages,
            "left_out": summary.left_out,
            "without_original": summary.without_original,
        }))?;
    }
    Ok(if summary.left_out > 0 { Exit::Undone } else { Exit::Done })
}

impl Job {
    fn selection(&self) -> Selection {
        Selection {
            scan: self.url_prefix.as_deref().map(|prefix| Scan::of(prefix, Match::Prefix)),
            from_ms: self.from_ms,
            to_ms: self.to_ms,
            collection: self.collection.clone(),
        }
    }

    /// What was selected, for whoever reads the file.
    fn description(&self) -> String {
        let mut out = match &self.collection {
            Some(name) => format!("captures of the collection {name}"),
            None => "captures".to_owned(),
        };
        let time = |ms: i64| skep_warc::date::rfc3339(ms);
        let prefix = self.url_prefix.as_ref().map(|prefix| format!(" of {prefix}"));
        let from = self.from_ms.map(|ms| format!(" from {}", time(ms)));
        let to = self.to_ms.map(|ms| format!(" to {}", time(ms)));
        [prefix, from, to].into_iter().flatten().for_each(|part| out.push_str(&part));
        out.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
    }
}

fn is_there(archive: &Archive, name: &str) -> Result<()> {
    let collections = archive.collections();
    let names: std::collections::BTreeSet<&str> =
        collections.files().iter().map(|file| file.collection.as_str()).collect();
    if names.contains(name) {
        return Ok(());
    }
    let failure = Failure::new(format!("there is no collection {name:?}"));
    Err(match names.is_empty() {
        true => failure.hint("nothing was added to this archive; without --collection everything is meant"),
        false => failure.hint(format!("there are {}", names.into_iter().collect::<Vec<_>>().join(", "))),
    })
}
