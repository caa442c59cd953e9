//! A writer is killed again and again, and nothing acknowledged may be missing: the test of the archive, asked for more. Then one
//! kill with a large open segment, for how long opening takes.

use crate::limits;
use crate::long::{self, Options};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    // The test starts the writer that cargo has put beside it.
    long::build(workspace, "skep-archive", "--example", "writer")?;
    let kills = options.count.unwrap_or(limits::KILLS).to_string();
    let seed = options.seed.to_string();
    println!("{kills} kills from seed {seed}");
    test(
        workspace,
        "nothing_acknowledged_is_missing_after_a_kill",
        &[("SKEP_KILLS", &kills), ("SKEP_KILL_SEED", &seed)],
    )?;
    let bytes = limits::KILL_OPEN_BYTES.to_string();
    test(workspace, "opening_after_a_kill_reads_the_tail_only", &[("SKEP_OPEN_BYTES", &bytes)])
}

/// One test of the archive under `cargo test`, which sets it no time limit and shows what it prints.
fn test(workspace: &Workspace, name: &str, variables: &[(&str, &str)]) -> Result<()> {
    let mut test = workspace.cargo();
    test.args(["test", "--release", "--quiet", "--package", "skep-archive", "--test", "kill", "--"]);
    test.args(["--exact", name, "--nocapture"]).envs(variables.iter().copied());
    if !test.status().context("cargo could not be started")?.success() {
        bail!("{name} failed; what it says is above");
    }
    Ok(())
}
