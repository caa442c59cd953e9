//! `skep retain`: keeps of each page the versions that `settings/retention.toml` says, and removes the others by rewriting.

use crate::failure::{Failure, Result, say};
use crate::job::{self, Exit, Tell};
use crate::owner::{self, Owned, Place};
use crate::show::{self, Screen};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;
use skep_changes::Retention;

/// Keep of each page the versions that the settings say; remove the others
#[derive(Args)]
#[command(after_help = "\
What is kept is said in settings/retention.toml in the archive's folder, for all URLs or for those that begin like one:
  version = 1
  [[rule]]
  match = \"https://example.org/\"        # or a host; without it, everything
  keep = \"text\"                         # versions that changed the text; or \"all\"; or a number: the newest so many
  thin = [{ after = \"30d\", every = \"1d\" }, { after = \"1y\", every = \"30d\" }]
The newest good version of a page always stays, captures that are named under `pinned` stay, and bodies that a revisit stands for.
A watch that runs does the same every hour. Removing is for ever: look first with --dry-run. Exit code 1 if nothing is to go.")]
pub struct Typed {
    /// Only say what would go
    #[arg(long)]
    dry_run: bool,
}

/// As meant.
#[derive(Serialize, Deserialize)]
pub struct Job {
    dry_run: bool,
}

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let columns: &[show::Column] = &[
        ("pages", |v| format!("{} pages", show::text(v, "urls"))),
        ("captures", |v| format!("{} captures", show::text(v, "captures"))),
        ("removed", |v| {
            let verb = if v["dry_run"] == true { "would go" } else { "went" };
            format!("{} {verb}, {} bytes", show::text(v, "removed"), show::text(v, "bytes"))
        }),
    ];
    let mut screen = Screen::new(place.json, columns);
    let exit = owner::perform(place, false, &job::Job::Retain(Job { dry_run: typed.dry_run }), &mut screen)?;
    screen.finish()?;
    if exit == Exit::No {
        say("everything stays");
    }
    Ok(exit)
}

pub fn perform(owned: &Owned, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    let (archive, now_ms) = (&*owned.archive, skep_archive::system_clock());
    let Some(retention) = Retention::of(archive)? else {
        return Err(Failure::new("nothing is said about what to keep")
            .hint("write settings/retention.toml in the archive's folder; `skep help retain` shows one"));
    };
    owned.changes.follow(archive, now_ms, &mut |_| ())?;
    let done = owned.changes.retain(archive, &retention, now_ms, job.dry_run)?;
    tell.line(json!({
        "dry_run": job.dry_run,
        "urls": done.urls,
        "captures": done.captures,
        "removed": done.removed,
        "bytes": done.bytes,
    }))?;
    Ok(if done.removed > 0 { Exit::Done } else { Exit::No })
}
