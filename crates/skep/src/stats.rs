//! `skep stats`: what an archive, or a collection in it, amounts to.

use crate::failure::{Failure, Result, printable};
use crate::job::{self, Exit, Tell};
use crate::owner::{self, Place};
use crate::show::{self, Collected};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skep_archive::captures::Match;
use skep_archive::runs::Row;
use skep_archive::{Archive, Members, Statistics};
use std::collections::BTreeMap;

/// Count captures, URLs, hosts, versions, duplicates, bytes, media types, statuses and years
#[derive(Args)]
#[command(after_help = "\
versions     captures of a URL whose payload differs from all its earlier ones
duplicates   captures of a URL whose payload was there before, revisits included
Exit code 1 if the archive holds no capture.")]
pub struct Typed {
    /// Only files of this collection
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
}

/// As meant.
#[derive(Serialize, Deserialize)]
pub struct Job {
    collection: Option<String>,
}

/// Kinds of media types, and so on, that a table shows; JSON has all.
const ROWS_SHOWN: usize = 12;

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let mut told = Collected::default();
    let exit = owner::perform(place, false, &job::Job::Stats(Job { collection: typed.collection }), &mut told)?;
    show::objects(&told.0, place.json, table)?;
    Ok(exit)
}

pub fn perform(archive: &Archive, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    archive.settle()?;
    let files = job.collection.as_deref().map(|name| members(archive, name)).transpose()?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let belongs = |row: &Row<'_>| files.as_ref().is_none_or(|files| files.hold(row.position()));
    let stats = Statistics::of(&archive.views().captures, &Match::All, belongs, threads)?;
    let captures = stats.captures;
    tell.line(object(stats))?;
    Ok(if captures == 0 { Exit::No } else { Exit::Done })
}

/// The files of a collection, which must be there.
pub fn members(archive: &Archive, name: &str) -> Result<Members> {
    let all = archive.collections();
    let members = all.members(name);
    if !members.is_empty() {
        return Ok(members);
    }
    let mut names: Vec<&str> = all.files().iter().map(|f| f.collection.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let hint = if names.is_empty() {
        "`skep add --collection NAME FILE…` makes one".to_owned()
    } else {
        format!("there are: {}", names.join(", "))
    };
    Err(Failure::new(format!("there is no collection {name:?}")).hint(hint))
}

fn object(stats: Statistics) -> Value {
    let mut mimes = json!(stats.mimes.seen);
    if stats.mimes.others > 0 {
        mimes["(others)"] = json!(stats.mimes.others);
    }
    let status = |status: &u16| if *status == 0 { "(none)".to_owned() } else { status.to_string() };
    let statuses: BTreeMap<String, u64> = stats.statuses.iter().map(|(code, count)| (status(code), *count)).collect();
    let years: BTreeMap<String, u64> = stats.years.iter().map(|(year, count)| (format!("{year:04}"), *count)).collect();
    json!({
        "captures": stats.captures, "urls": stats.urls, "hosts": stats.hosts, "versions": stats.versions,
        "duplicates": stats.duplicates, "revisits": stats.revisits, "bytes": stats.bytes,
        "mimes": mimes, "statuses": statuses, "years": years,
    })
}

fn table(stats: &Value) -> String {
    let mut out = String::new();
    for name in ["captures", "urls", "hosts", "versions", "duplicates", "revisits"] {
        out += &format!("{name:<12}{:>14}\n", show::text(stats, name));
    }
    out += &format!("{:<12}{:>14}\n", "bytes", show::bytes(stats["bytes"].as_u64().unwrap_or(0)));
    for (title, name, by_count) in
        [("media types", "mimes", true), ("status", "statuses", true), ("years", "years", false)]
    {
        let Some(values) = stats[name].as_object().filter(|v| !v.is_empty()) else { continue };
        let mut rows: Vec<(&String, u64)> = values.iter().map(|(k, v)| (k, v.as_u64().unwrap_or(0))).collect();
        if by_count {
            rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        }
        out += &format!("\n{title}\n");
        for (value, count) in rows.iter().take(if by_count { ROWS_SHOWN } else { usize::MAX }) {
            let shown: String = value.chars().map(printable).take(40).collect();
            out += &format!("  {shown:<40}{count:>12}\n");
        }
        if by_count && rows.len() > ROWS_SHOWN {
            out += &format!("  and {} more: --json has them all\n", rows.len() - ROWS_SHOWN);
        }
    }
    out
}
