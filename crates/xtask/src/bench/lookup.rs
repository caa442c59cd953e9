//! Looking up: exact and closest-in-time among millions of captures, beside pywb's index over the same CDXJ. One process
//! each, files warm.

use super::{best, peer, versions};
use crate::limits;
use crate::long::{self, Options};
use crate::material;
use crate::measure;
use crate::needs;
use crate::table::{Table, count, megabytes, ratio, verdict};
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// What is asked: times pywb's look-ups per second.
const ASKED: f64 = 20.0;

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    needs::venv(workspace)?;
    let captures = options.count.unwrap_or(limits::LOOKUP_CAPTURES);
    let made = material::captures(workspace, captures, options.seed)?;
    long::build(workspace)?;
    println!("index: {} captures, {}", count(made.captures), megabytes(std::fs::metadata(&made.cdxj)?.len()));
    versions(workspace, &["pywb", "surt"])?;

    let archive = material::folder(workspace)?.join(format!("lookup-archive-{captures}-{}", options.seed));
    if archive.exists() {
        std::fs::remove_dir_all(&archive)?;
    }
    let mut add = Command::new(workspace.target().join("release/skep"));
    add.arg("add").arg("--archive").arg(&archive).arg(&made.cdxj);
    let add = measure::measure(&add, limits::BENCH_RUN_MAX, None)?.ok().context("skep add")?;
    println!(
        "skep add: {:.1} s CPU, {:.1} s, {}",
        add.cpu.as_secs_f64(),
        add.wall.as_secs_f64(),
        megabytes(add.max_rss_bytes)
    );
    let per_capture = size(&archive.join("views/captures"))? as f64 / captures as f64;

    let seconds = limits::LOOKUP_SECONDS.to_string();
    let mut ours = Command::new(workspace.target().join("release/examples/lookup"));
    ours.arg(&archive).arg(&made.urls).args(["--seconds", &seconds]);
    let ours = best(&ours, 1, None)?;
    let mut theirs = peer(workspace, "pywb_lookup.py");
    theirs.arg(&made.cdxj).arg(&made.urls).args(["--seconds", &seconds]);
    let theirs = best(&theirs, 1, None)?;

    let mut table = Table::new(&["", "exact/s", "closest/s", "found", "memory"]);
    for (who, run) in [("skep", &ours), ("pywb", &theirs)] {
        table.row(&[
            who.to_owned(),
            count(run.figure("exact_per_second")?),
            count(run.figure("closest_per_second")?),
            format!("{} %", run.figure("found_percent")?),
            megabytes(run.max_rss_bytes),
        ]);
    }
    let times = |name: &str| -> Result<f64> { Ok(ours.figure(name)? as f64 / theirs.figure(name)? as f64) };
    let (exact, closest) = (times("exact_per_second")?, times("closest_per_second")?);
    table.row(&["skep is".into(), ratio(exact, 1.0), ratio(closest, 1.0)]);
    print!("\n{}", table.render());
    let within = |held: bool| if held { "reached" } else { "SHORT" };
    println!("\nexact    {}", verdict(exact, ASKED));
    println!("closest  {}", verdict(closest, ASKED));
    println!(
        "on disk  {per_capture:.1} bytes per capture: {} (asked at most {})",
        within(per_capture <= limits::LOOKUP_BYTES_PER_CAPTURE_MAX),
        limits::LOOKUP_BYTES_PER_CAPTURE_MAX
    );
    println!(
        "memory   {}: {} (asked at most {})",
        megabytes(ours.max_rss_bytes),
        within(ours.max_rss_bytes <= limits::LOOKUP_RSS_BYTES_MAX),
        megabytes(limits::LOOKUP_RSS_BYTES_MAX)
    );
    Ok(())
}

/// Bytes of all files in a folder.
fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).with_context(|| format!("{} cannot be listed", folder.display()))? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() { size(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}
