//! `skep rebuild`: drops the views and builds them again.

use crate::failure::{Failure, Result, say};
use crate::job::{Exit, Tell};
use crate::owner::{self, Place};
use crate::search;
use crate::show::{self, Column, Screen};
use clap::Args;
use serde_json::json;
use skep_archive::captures::Match;
use skep_archive::{Archive, OpenOptions};
use skep_changes::sink::{KnownUrl, read_back};
use skep_crawl::{BringBack, BroughtBack, Remembered};
use std::ops::ControlFlow;

/// Drop the views and build them again from the records
#[derive(Args)]
#[command(after_help = "\
The views (what is found where) hold nothing that is not in the segments and collections. They are built again from the sidecars
beside the files; --reparse reads the files themselves and writes the sidecars again, which takes longer. What was added by a CDXJ index
stays as the index had it. An index of texts, where the archive keeps one, is built again too; --text makes the archive keep one from now on.
--from-postgres brings URLs back that a database knows to which a sink carried changes (`skep sink add postgres`): they are recorded as heard, and when they
were last seen as a check, in the crawl that --name names; what their payload came to is recorded too, so that pages that are still as they were do
not count as changed. `skep crawl --name NAME` then looks at them again, and keeps them.")]
pub struct Typed {
    /// Read every record again instead of the sidecars
    #[arg(long)]
    pub reparse: bool,
    /// Keep an index of the texts of all pages, for `skep search`
    #[arg(long)]
    pub text: bool,
    /// Bring back the URLs that this database knows: postgresql://user@host/name
    #[arg(long, value_name = "URL")]
    pub from_postgres: Option<String>,
    /// The schema of its tables
    #[arg(long, value_name = "NAME", requires = "from_postgres")]
    pub schema: Option<String>,
    /// The crawl that gets them; made if there is none
    #[arg(long, value_name = "NAME", requires = "from_postgres", default_value = "from-postgres")]
    pub name: String,
}

const COLUMNS: &[Column] = &[("rebuilt", |v| {
    let [captures, segments, files] = ["captures", "segments", "files"].map(|name| show::text(v, name));
    let texts = v["texts"].as_u64().map_or(String::new(), |texts| format!(", {texts} texts"));
    let back = v["urls"].as_u64().map_or(String::new(), |urls| {
        let (seen, left_out) = (show::text(v, "seen"), show::text(v, "left_out"));
        format!(
            "; {urls} URLs brought back into {}, {seen} of them seen before, {} with a digest, {left_out} left out",
            show::text(v, "crawl"),
            show::text(v, "digests")
        )
    });
    format!("{captures} captures of {segments} segments and {files} added files{texts}{back}")
})];

pub fn run(typed: &Typed, place: &Place) -> Result<Exit> {
    let archive = match &typed.from_postgres {
        // Whoever lost everything has no archive yet.
        Some(_) if !place.archive.join("settings").is_dir() => {
            Archive::open(&place.archive, OpenOptions { create: true, ..place.options() })?
        }
        _ => Archive::rebuild(&place.archive, place.options(), typed.reparse)?,
    };
    owner::as_owner(archive, |owned| {
        let archive = &*owned.archive;
        let back = match &typed.from_postgres {
            Some(url) => Some(bring_back(archive, url, typed)?),
            None => None,
        };
        if typed.text {
            owned.text.keep()?;
        }
        archive.settle()?;
        let mut captures: u64 = 0;
        archive.views().captures.each(&Match::All, |_| {
            captures += 1;
            ControlFlow::Continue(())
        })?;
        let undone = archive.finish_opening();
        for finding in undone.iter().filter(|f| !f.mended) {
            say(&format!("left undone: {finding}"));
        }
        let (segments, files) = (archive.segments().len(), archive.collections().files().len());
        let mut screen = Screen::new(place.json, COLUMNS);
        search::read_texts(owned, &mut screen)?;
        let mut rebuilt = json!({ "captures": captures, "segments": segments, "files": files });
        if owned.text.is_kept() {
            rebuilt["texts"] = json!(owned.text.documents()?);
        }
        if let Some(back) = back {
            rebuilt["crawl"] = json!(typed.name);
            (rebuilt["urls"], rebuilt["seen"]) = (json!(back.urls), json!(back.seen));
            (rebuilt["digests"], rebuilt["left_out"]) = (json!(back.digests), json!(back.left_out));
        }
        screen.line(rebuilt)?;
        screen.finish()?;
        Ok(if undone.iter().chain(archive.opened()).all(|f| f.mended) { Exit::Done } else { Exit::Undone })
    })
}

fn bring_back(archive: &Archive, url: &str, typed: &Typed) -> Result<BroughtBack> {
    let mut back = BringBack::begin(archive, &typed.name)?;
    let mut failed = None;
    let read = read_back(url, typed.schema.as_deref(), |known| {
        let KnownUrl { url, last_seen_ms, gone, status, digest } = known;
        if failed.is_none() {
            failed = back.put(&Remembered { url, seen_ms: last_seen_ms, gone, status, digest }).err();
        }
    });
    read.map_err(|why| {
        Failure::new("the database does not answer")
            .because(why)
            .hint("--from-postgres postgresql://user:password@host/name, and --schema if there is one")
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    Ok(back.finish()?)
}
