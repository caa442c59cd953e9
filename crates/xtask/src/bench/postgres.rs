//! The database bridge: changes a second into PostgreSQL, by the sink that users have, beside what HyperDog's databases took.

use crate::limits;
use crate::long::{self, Options};
use crate::measure;
use crate::needs;
use crate::table::count;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::process::Command;

/// Versions of each page: the first is an insert into `urls`, the others are updates.
const ROUNDS: u64 = 4;

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    if !needs::has_postgresql() {
        needs::programs(&[("initdb", "postgresql")])?;
    }
    let program = long::build_dist(workspace, "skep-changes", "--example", "postgres")?;
    let changes = options.count.unwrap_or(limits::POSTGRES_CHANGES);
    let mut command = Command::new(&program);
    command.args([(changes / ROUNDS).to_string(), ROUNDS.to_string()]);
    let run = measure::measure(&command, limits::BENCH_RUN_MAX, None)?.ok().context("the bridge")?;
    let told = |name: &str| -> Result<&str> {
        let found = run.stdout.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        found.with_context(|| format!("no {name}"))
    };
    let per_s: f64 = told("changes_per_s")?.parse()?;
    println!("PostgreSQL {} on this machine, every commit synced; {}", told("version")?, told("settings")?);
    println!(
        "{} changes of {} URLs, read from the log of an archive; each is a row of `changes` and an upsert of `urls`; {} links\n",
        count(told("changes")?.parse()?),
        count(told("urls")?.parse()?),
        count(told("links")?.parse()?)
    );
    println!("skep, PostgreSQL              {:>9} changes/s, for {} s", count(per_s as u64), told("seconds")?);
    println!("HyperDog, MySQL (2000)        {:>9} inserts/s into a simple table", count(2_000));
    println!("HyperDog, SQL Server 7 (2000) {:>9} inserts/s into a simple table\n", count(800));
    let least = limits::POSTGRES_CHANGES_PER_S_MIN;
    let verdict = if per_s >= least { "reached" } else { "SHORT" };
    println!("{} changes/s: {verdict} (asked {})", count(per_s as u64), count(least as u64));
    Ok(())
}
