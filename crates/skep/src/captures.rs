//! `skep captures`: what the archive has of a URL, a host, a domain.

use crate::failure::{Failure, Result, say};
use crate::job::{self, Exit, Tell};
use crate::owner::{self, Place};
use crate::show::{self, Column, Screen};
use crate::when;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skep_archive::captures::{Match, Query};
use skep_archive::{Archive, Capture};
use skep_url::Scan;
use skep_warc::date;
use std::collections::HashMap;

/// List captures of a URL, or of everything below it
#[derive(Args)]
#[command(after_help = "\
Examples:
  skep captures https://example.org/                      every capture of one page
  skep captures 'example.org/news*' --from 2019 --to 2020  a part of a site, two years
  skep captures '*.example.org' --status 404 --json        dead links on all its hosts
Exit code 1 if there is none.")]
pub struct Typed {
    /// The URL; `*.host` and `prefix*` are understood too
    url: String,
    /// How much the URL stands for
    #[arg(
        long = "match",
        value_enum,
        default_value = "exact",
        value_name = "exact|prefix|host|domain",
        hide_possible_values = true
    )]
    matching: Matching,
    /// Not before this time (2019, 2019-06, 2019-06-01T12:00:00Z, 20190601120000)
    #[arg(long, value_name = "T")]
    from: Option<String>,
    /// Not after it; `--to 2019` includes all of 2019
    #[arg(long, value_name = "T")]
    to: Option<String>,
    /// Only this HTTP status
    #[arg(long, value_name = "N")]
    status: Option<u16>,
    /// Only this media type; `image/*` for all of a kind
    #[arg(long, value_name = "M")]
    mime: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Newest first
    #[arg(long)]
    reverse: bool,
    /// Also captures that were made with secrets
    #[arg(long)]
    private: bool,
}

#[derive(Clone, Copy, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Matching {
    Exact,
    Prefix,
    Host,
    Domain,
}

/// As meant.
#[derive(Serialize, Deserialize)]
pub struct Job {
    url: String,
    matching: Matching,
    from_ms: Option<i64>,
    to_ms: Option<i64>,
    status: Option<u16>,
    mime: Option<String>,
    limit: Option<u64>,
    reverse: bool,
    private: bool,
}

pub const COLUMNS: &[Column] = &[
    ("time", |v| show::text(v, "time")),
    ("status", |v| show::text(v, "status")),
    ("type", |v| show::text(v, "type")),
    ("mime", |v| show::text(v, "mime")),
    ("length", |v| show::text(v, "length")),
    ("digest", |v| show::text(v, "digest").trim_start_matches("sha1:").chars().take(12).collect()),
    ("url", |v| show::text(v, "url")),
];

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let job = Job {
        from_ms: typed.from.as_deref().map(when::earliest).transpose()?,
        to_ms: typed.to.as_deref().map(when::latest).transpose()?,
        url: typed.url,
        matching: typed.matching,
        status: typed.status,
        mime: typed.mime,
        limit: typed.limit,
        reverse: typed.reverse,
        private: typed.private,
    };
    let mut screen = Screen::new(place.json, COLUMNS);
    let what = format!("no capture of {}", job.url);
    let exit = owner::perform(place, false, &job::Job::Captures(job), &mut screen)?;
    screen.finish()?;
    if exit == Exit::No {
        say(&what);
    }
    Ok(exit)
}

pub fn perform(archive: &Archive, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    let mut query = Query::new(match_of(&job.url, job.matching));
    (query.from_ms, query.to_ms, query.status) = (job.from_ms, job.to_ms, job.status);
    query.mime.clone_from(&job.mime);
    if job.reverse {
        query.direction = skep_archive::runs::Direction::Backward;
    }
    archive.settle()?;
    let mut objects = Objects::new(archive);
    let mut left = job.limit.unwrap_or(u64::MAX);
    let mut found = false;
    for capture in archive.views().captures.query(&query)? {
        let capture = capture?;
        if capture.is_private() && !job.private {
            continue;
        }
        if left == 0 {
            break;
        }
        left -= 1;
        found = true;
        tell.line(objects.of(&capture)?)?;
    }
    Ok(if found { Exit::Done } else { Exit::No })
}

/// What a typed URL asks for. Keys of one site are one stretch of the view; a question over many sites looks at every capture.
pub fn match_of(url: &str, matching: Matching) -> Match {
    let kind = match matching {
        Matching::Exact => skep_url::Match::Exact,
        Matching::Prefix => skep_url::Match::Prefix,
        Matching::Host => skep_url::Match::Host,
        Matching::Domain => skep_url::Match::Domain,
    };
    Match::of(&Scan::of(url, kind))
}

/// Turns captures into objects; remembers the names of files.
pub struct Objects<'a> {
    archive: &'a Archive,
    files: HashMap<(u32, u32), (String, Option<String>)>,
}

impl<'a> Objects<'a> {
    pub fn new(archive: &'a Archive) -> Objects<'a> {
        Objects { archive, files: HashMap::new() }
    }

    pub fn of(&mut self, capture: &Capture) -> Result<Value> {
        let position = capture.position;
        let file = (position.writer.0, position.segment);
        if !self.files.contains_key(&file) {
            let path = self.archive.file_of(position).map_err(Failure::from)?;
            let collection = match position.writer.0 {
                0 => self.archive.collections().get(position.segment).map(|f| f.collection.clone()),
                _ => None,
            };
            self.files.insert(file, (path.display().to_string(), collection));
        }
        let (path, collection) = &self.files[&file];
        let mut object = json!({
            "url": capture.url,
            "time": date::rfc3339(capture.time_ms),
            "status": (capture.status > 0).then_some(capture.status),
            "mime": (!capture.mime.is_empty()).then_some(&capture.mime),
            "digest": capture.digest.as_ref().map(ToString::to_string),
            "length": capture.length,
            "file": path,
            "offset": capture.offset,
            "position": position.to_string(),
            "type": capture.kind.name(),
            "key": capture.key.surt(),
        });
        if let Some(collection) = collection {
            object["collection"] = json!(collection);
        }
        Ok(object)
    }
}
