//! Looking up: exact and closest-in-time among millions of captures, beside pywb's index over the same CDXJ and the same URLs.
//! One process each, files warm.

use super::{best, peer, versions};
use crate::limits;
use crate::long::{self, Options};
use crate::material;
use crate::measure::Run;
use crate::needs;
use crate::table::{Table, count, megabytes, ratio, verdict};
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::process::Command;

/// What is asked: times pywb's look-ups per second.
const ASKED: f64 = 20.0;

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let lookup = long::build_dist(workspace, "skep-archive", "--example", "lookup")?;
    needs::venv(workspace)?;
    let captures = options.count.unwrap_or(limits::LOOKUP_CAPTURES);
    let folder = material::folder(workspace)?.join(format!("lookup-{captures}"));
    std::fs::create_dir_all(&folder)?;
    let (cdxj, urls) = (folder.join("captures.cdxj"), folder.join("urls"));
    versions(workspace, &["pywb", "surt"])?;

    let look_up = || {
        let mut command = Command::new(&lookup);
        command.arg(folder.join("view")).args(["--captures", &captures.to_string()]);
        command.args(["--cache-mb", &limits::LOOKUP_CACHE_MB.to_string()]);
        command.args(["--look-ups", &limits::LOOKUPS.to_string()]);
        command
    };
    if !cdxj.is_file() {
        println!("building the view and its CDXJ (minutes, once)");
        let part = folder.join("captures.part");
        let mut build = look_up();
        let built = best(build.arg("--cdxj").arg(&part).arg("--urls").arg(&urls), 1, None)?;
        std::fs::rename(&part, &cdxj)?;
        println!(
            "built in {:.0} s of CPU, peak {:.0} MB",
            told(&built, "build_cpu_s")?,
            told(&built, "build_peak_mb")?
        );
    }
    // A process of its own, so that its memory is that of looking up.
    let ours = best(&look_up(), 1, None)?;
    // Other work may have driven it out of memory: a peer that waits for the disk is no measure.
    std::io::copy(&mut std::fs::File::open(&cdxj)?, &mut std::io::sink())?;
    let mut theirs = peer(workspace, "pywb_lookup.py");
    theirs.arg(&cdxj).arg(&urls).args(["--seconds", &limits::LOOKUP_PEER_SECONDS.to_string()]);
    let theirs = best(&theirs, 1, None)?;

    println!("{} captures, {} of CDXJ", count(captures), megabytes(std::fs::metadata(&cdxj)?.len()));
    let mut table = Table::new(&["", "exact/s", "closest/s", "memory"]);
    for (who, run) in [("skep", &ours), ("pywb", &theirs)] {
        table.row(&[
            who.to_owned(),
            count(told(run, "exact_per_s")? as u64),
            count(told(run, "closest_per_s")? as u64),
            megabytes(run.max_rss_bytes),
        ]);
    }
    let times = |name: &str| -> Result<f64> { Ok(told(&ours, name)? / told(&theirs, name)?) };
    let (exact, closest) = (times("exact_per_s")?, times("closest_per_s")?);
    table.row(&["skep is".into(), ratio(exact, 1.0), ratio(closest, 1.0)]);
    print!("\n{}", table.render());
    let per_capture = told(&ours, "bytes_per_capture")?;
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

/// A number in the JSON object that a program printed.
fn told(run: &Run, name: &str) -> Result<f64> {
    let object: serde_json::Value = serde_json::from_str(run.stdout.trim()).context("no JSON object was printed")?;
    object[name].as_f64().with_context(|| format!("no number `{name}` in {object}"))
}
