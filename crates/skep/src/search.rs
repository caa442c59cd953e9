//! `skep search`: pages by the words of their titles and texts.

use crate::failure::{Failure, Result, say};
use crate::job::{self, Exit, Tell};
use crate::owner::{self, Owned, Place};
use crate::show::{self, Column, Screen};
use crate::when;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;
use skep_archive::Capture;
use skep_search::{Asked, Query, limits};
use skep_url::{Match, Scan};
use skep_warc::date;

/// Find pages by the words of their titles and texts, also as of a date
#[derive(Args)]
#[command(after_help = "\
All words must be there, in any order and any case, as they are written: nothing is stemmed, whatever the language.
  \"two words\"            next to each other
  title:word             in the title; also title:\"two words\"
  site:example.org       on this site and on all hosts below it; host:news.example.org on this host alone
  -word                  not with it; also -\"two words\", -title:word, -site:example.org
The archive must keep an index of texts: `skep rebuild --text`, `skep add --text` or `skep crawl --text` once.
Each URL is listed once, the best first.
Examples:
  skep search 'woven hive'
  skep search '\"web archive\" -title:news' --at 2019-06
  skep search 'site:example.org bees' --json
Exit code 1 if nothing is found.")]
pub struct Typed {
    /// What to look for; a query that begins with `-` stands behind `--`
    query: String,
    /// Only what was current then; `--at 2019` is the end of 2019
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Only URLs that begin with this
    #[arg(long, value_name = "URL")]
    url_prefix: Option<String>,
    /// Only captures of this collection
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=limits::RESULTS_MAX as u64))]
    limit: u64,
    /// Step over so many
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: u64,
}

/// As meant.
#[derive(Serialize, Deserialize)]
pub struct Job {
    query: String,
    at_ms: Option<i64>,
    url_prefix: Option<String>,
    collection: Option<String>,
    limit: usize,
    skip: usize,
}

const COLUMNS: &[Column] = &[
    ("time", |v| show::text(v, "time")),
    ("title", |v| show::text(v, "title").chars().take(60).collect()),
    ("url", |v| show::text(v, "url")),
    ("passage", |v| show::text(v, "passage")),
];

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let job = Job {
        at_ms: typed.at.as_deref().map(when::latest).transpose()?,
        query: typed.query,
        url_prefix: typed.url_prefix,
        collection: typed.collection,
        limit: typed.limit as usize,
        skip: usize::try_from(typed.skip).unwrap_or(usize::MAX),
    };
    let mut screen = Screen::new(place.json, COLUMNS);
    let exit = owner::perform(place, false, &job::Job::Search(job), &mut screen)?;
    screen.finish()?;
    if exit == Exit::No {
        say("nothing found");
    }
    Ok(exit)
}

pub fn perform(owned: &Owned, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    let query = Query::parse(&job.query).map_err(skep_search::Error::Query)?;
    if !owned.text.is_kept() {
        return Err(skep_search::Error::Off.into());
    }
    let members = match &job.collection {
        None => None,
        Some(name) => Some(crate::stats::members(&owned.archive, name)?),
    };
    let within = job.url_prefix.as_ref().map(|prefix| Scan::of(prefix, Match::Prefix));
    owned.text.settle()?;
    let shows = |capture: &Capture| {
        !capture.is_private() && members.as_ref().is_none_or(|members| members.hold(capture.position))
    };
    let found = owned.text.search(&Asked {
        query: &query,
        at_ms: job.at_ms,
        within: within.as_ref(),
        shows: &shows,
        skip: job.skip,
        limit: job.limit,
    })?;
    for hit in &found.hits {
        tell.line(json!({
            "url": hit.capture.url,
            "time": date::rfc3339(hit.capture.time_ms),
            "title": hit.title,
            "passage": hit.passage.text,
            "marks": hit.passage.marks,
            "first": date::rfc3339(hit.first_ms),
            "last": date::rfc3339(hit.last_ms),
            "captures": hit.captures,
            "position": hit.capture.position.to_string(),
        }))?;
    }
    if found.cut {
        tell.talk("so much was looked at that the rest was left out: more words, or site:, find more");
    }
    if found.more {
        let next = job.skip + found.hits.len();
        tell.talk(&format!("there is more: --skip {next}, or a larger --limit"));
    }
    Ok(if found.hits.is_empty() { Exit::No } else { Exit::Done })
}

/// Waits until the texts of all captures are read, where the archive keeps them.
pub fn read_texts(owned: &Owned, tell: &mut dyn Tell) -> Result<()> {
    if owned.text.is_kept() {
        tell.talk("reading the texts of new captures");
        owned.text.settle()?;
    }
    Ok(())
}

impl From<skep_search::Error> for Failure {
    fn from(error: skep_search::Error) -> Failure {
        match error {
            skep_search::Error::Archive(error) => error.into(),
            error => Failure { hint: error.hint(), ..Failure::new(error.to_string()) },
        }
    }
}
