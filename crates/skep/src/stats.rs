//! `skep stats`: what an archive, or a collection in it, amounts to.

use crate::failure::{Failure, Result, printable};
use crate::job::{self, Exit, Tell};
use crate::owner::{self, Place};
use crate::show::{self, Collected};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skep_archive::captures::Match;
use skep_archive::{Archive, CaptureKind};
use skep_warc::date;
use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

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
/// Different values counted one by one; the rest is summed.
const VALUES_MAX: usize = 10_000;

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let mut told = Collected::default();
    let exit =
        owner::perform(&place.archive, false, &job::Job::Stats(Job { collection: typed.collection }), &mut told)?;
    show::objects(&told.0, place.json, table)?;
    Ok(exit)
}

pub fn perform(archive: &Archive, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    archive.settle()?;
    let files = match &job.collection {
        None => None,
        Some(name) => {
            let all = archive.collections();
            let numbers: HashSet<u32> =
                all.files().iter().filter(|f| &f.collection == name).map(|f| f.number).collect();
            if numbers.is_empty() {
                let mut names: Vec<&str> = all.files().iter().map(|f| f.collection.as_str()).collect();
                names.dedup();
                let hint = if names.is_empty() {
                    "`skep add --collection NAME FILE…` makes one".to_owned()
                } else {
                    format!("there are: {}", names.join(", "))
                };
                return Err(Failure::new(format!("there is no collection {name:?}")).hint(hint));
            }
            Some(numbers)
        }
    };
    let mut count = Count::default();
    archive.views().captures.each(&Match::All, |row| {
        let position = row.position();
        if files.as_ref().is_none_or(|files| position.writer.0 == 0 && files.contains(&position.segment)) {
            count.add(
                row.surt(),
                row.time_ms(),
                row.status(),
                row.mime(),
                row.kind(),
                row.length(),
                row.digest().map(|d| d.bytes().to_vec()),
            );
        }
        ControlFlow::Continue(())
    })?;
    let captures = count.captures;
    tell.line(count.object())?;
    Ok(if captures == 0 { Exit::No } else { Exit::Done })
}

/// Sums over captures that come in the order of their keys: only one URL's payloads are in memory at a time.
#[derive(Default)]
struct Count {
    captures: u64,
    urls: u64,
    hosts: u64,
    versions: u64,
    duplicates: u64,
    revisits: u64,
    bytes: u64,
    mimes: Values,
    statuses: Values,
    years: Values,
    key: String,
    host: String,
    payloads: HashSet<u64>,
}

#[derive(Default)]
struct Values {
    seen: BTreeMap<String, u64>,
    others: u64,
}

impl Values {
    fn add(&mut self, value: &str) {
        if let Some(count) = self.seen.get_mut(value) {
            *count += 1;
        } else if self.seen.len() < VALUES_MAX {
            self.seen.insert(value.to_owned(), 1);
        } else {
            self.others += 1;
        }
    }

    fn object(self) -> Value {
        let mut object = json!(self.seen);
        if self.others > 0 {
            object["(others)"] = json!(self.others);
        }
        object
    }
}

impl Count {
    fn add(
        &mut self,
        surt: &str,
        time_ms: i64,
        status: u16,
        mime: &str,
        kind: CaptureKind,
        length: u64,
        digest: Option<Vec<u8>>,
    ) {
        self.captures += 1;
        self.bytes += length;
        self.revisits += u64::from(kind == CaptureKind::Revisit);
        if surt != self.key {
            self.urls += 1;
            self.key.clear();
            self.key.push_str(surt);
            self.payloads.clear();
            let host = surt.split(')').next().unwrap_or(surt);
            if host != self.host {
                self.hosts += 1;
                host.clone_into(&mut self.host);
            }
        }
        // Eight bytes of a digest tell the payloads of one URL apart.
        let payload = digest.and_then(|d| d.first_chunk::<8>().map(|b| u64::from_le_bytes(*b)));
        match payload {
            Some(payload) if !self.payloads.insert(payload) => self.duplicates += 1,
            None if kind == CaptureKind::Revisit => self.duplicates += 1,
            _ => self.versions += 1,
        }
        self.mimes.add(if kind == CaptureKind::Revisit && mime.is_empty() {
            "(revisit)"
        } else if mime.is_empty() {
            "(none)"
        } else {
            mime
        });
        match status {
            0 => self.statuses.add("(none)"),
            status => self.statuses.add(&status.to_string()),
        }
        self.years.add(&date::timestamp14(time_ms)[..4]);
    }

    fn object(self) -> Value {
        json!({
            "captures": self.captures, "urls": self.urls, "hosts": self.hosts, "versions": self.versions,
            "duplicates": self.duplicates, "revisits": self.revisits, "bytes": self.bytes,
            "mimes": self.mimes.object(), "statuses": self.statuses.object(), "years": self.years.object(),
        })
    }
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
