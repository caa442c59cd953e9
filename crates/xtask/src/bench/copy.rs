//! Segments copied from one node to another, verified, beside the same bytes over a bare stream and over TLS on TCP; then what copying
//! costs a crawl.

use super::best;
use crate::limits;
use crate::long::{self, Options};
use crate::table::Table;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::process::Command;

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let megabytes = options.count.unwrap_or(limits::COPY_MEGABYTES);
    let program = long::build(workspace, "xtask", "--example", "copy")?;
    let mut command = Command::new(program);
    command.arg(megabytes.to_string());
    let run = best(&command, 1, None)?;
    let figures: serde_json::Value = serde_json::from_str(run.stdout.trim()).context("no JSON object was printed")?;
    let told = |name: &str| figures[name].as_f64().with_context(|| format!("no number `{name}` in {figures}"));
    println!("{megabytes} MiB from one node to another on this machine; both ends are counted");
    let mut table = Table::new(&["way", "MiB per CPU second", "MiB per second"]);
    for (name, what) in
        [("tls", "TLS on TCP"), ("quic", "a bare stream of iroh"), ("copy", "segments, verified and synced")]
    {
        let figure = |of: &str| told(&format!("{name}_{of}")).map(|value| format!("{value:.0}"));
        table.row(&[what.into(), figure("per_cpu_s")?, figure("per_s")?]);
    }
    print!("{}", table.render());
    let share = told("copy_per_cpu_s")? / told("quic_per_cpu_s")?;
    let held = share >= limits::COPY_SHARE_MIN;
    let verdict = if held { "reached" } else { "SHORT" };
    println!(
        "copying: {share:.2} of a bare stream per CPU second: {verdict} (asked at least {})",
        limits::COPY_SHARE_MIN
    );
    super::ring::run(workspace)
}
