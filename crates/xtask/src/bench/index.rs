//! Indexing: `skep index` beside cdxj-indexer on the same file, and what joining an archive costs beyond that. Twice: on a file as others
//! write it, in which the ends of members have to be looked for, and on one whose members say how long they are.

use super::{best, versions};
use crate::limits;
use crate::long::{self, Options};
use crate::material::{self, Pages};
use crate::measure;
use crate::needs;
use crate::table::{Table, count, megabytes, ratio, verdict};
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// What is asked: times cdxj-indexer, and `skep add` within this of `skep index`.
const ASKED_INDEX: f64 = 15.0;
const ASKED_ADD: f64 = 1.5;

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let skep = long::build_dist(workspace, "skep", "--bin", "skep")?;
    needs::venv(workspace)?;
    let both = material::both(workspace, options, limits::PAGES_BYTES_MIN)?;
    versions(workspace, &["cdxj-indexer", "warcio", "surt"])?;
    for pages in &both {
        beside_peer(workspace, options, &skep, pages)?;
    }
    Ok(())
}

fn beside_peer(workspace: &Workspace, options: &Options, skep: &Path, pages: &Pages) -> Result<()> {
    let (folder, file) = (material::folder(workspace)?, &pages.file);
    println!("\nfile: {} ({}), {}", file.display(), megabytes(std::fs::metadata(file)?.len()), pages.what);
    let (ours_at, theirs_at) = (folder.join("index-skep.cdxj"), folder.join("index-peer.cdxj"));
    let mut index = Command::new(skep);
    index.arg("index").arg(file);
    let index = best(&index, options.runs, Some(&ours_at))?;
    let add = best_add(skep, &folder.join("index-archive"), file, options.runs)?;
    let mut peer = Command::new(workspace.target().join("venv/bin/cdxj-indexer"));
    peer.arg("--sort").arg(file);
    let peer = best(&peer, 1, Some(&theirs_at))?;

    let (ours, theirs) = (std::fs::read_to_string(&ours_at)?, std::fs::read_to_string(&theirs_at)?);
    let differing = ours.lines().zip(theirs.lines()).filter(|(one, other)| one != other).count();
    let lines = ours.lines().count();
    println!(
        "lines: {} ours, {} theirs, {differing} differing",
        count(lines as u64),
        count(theirs.lines().count() as u64)
    );

    let mut table = Table::new(&["", "CPU s", "wall s", "memory", "lines/CPU s", "of `skep index`"]);
    for (who, run) in [("skep index", &index), ("skep add", &add), ("cdxj-indexer --sort", &peer)] {
        let cpu = run.cpu.as_secs_f64();
        table.row(&[
            who.to_owned(),
            format!("{cpu:.2}"),
            format!("{:.2}", run.wall.as_secs_f64()),
            megabytes(run.max_rss_bytes),
            count((lines as f64 / cpu) as u64),
            ratio(cpu, index.cpu.as_secs_f64()),
        ]);
    }
    print!("\n{}", table.render());
    let faster = peer.cpu.as_secs_f64() / index.cpu.as_secs_f64();
    let dearer = add.cpu.as_secs_f64() / index.cpu.as_secs_f64();
    println!("\nour bodies, in `skep index` as in `skep add`: {}", pages.unwanted);
    println!("beside cdxj-indexer {faster:.1}×: {}", verdict(faster, ASKED_INDEX));
    let within = if dearer <= ASKED_ADD { "reached" } else { "SHORT" };
    println!("skep add costs {dearer:.2}× of skep index: {within} (asked at most {ASKED_ADD}×)");
    Ok(())
}

/// Adds the file to an archive that was not there before, each time.
fn best_add(skep: &Path, archive: &Path, file: &Path, runs: u32) -> Result<measure::Run> {
    let mut add = Command::new(skep);
    add.arg("add").arg("--archive").arg(archive).arg(file);
    let mut best: Option<measure::Run> = None;
    for _ in 0..runs.max(1) {
        if archive.exists() {
            std::fs::remove_dir_all(archive)?;
        }
        let run = measure::measure(&add, limits::BENCH_RUN_MAX, None)?.ok().context("skep add")?;
        if best.as_ref().is_none_or(|best| run.cpu < best.cpu) {
            best = Some(run);
        }
    }
    std::fs::remove_dir_all(archive)?;
    best.context("no run")
}
