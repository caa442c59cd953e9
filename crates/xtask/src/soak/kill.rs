//! A writer is killed again and again, and nothing acknowledged may be missing: the test of the archive, asked for more. Then one
//! kill with a large open segment, for how long opening takes.

use crate::limits;
use crate::long::{self, Options};
use crate::workspace::Workspace;
use anyhow::Result;

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    // The test starts the writer that cargo has put beside it.
    long::build(workspace, "skep-archive", "--example", "writer")?;
    let kills = options.count.unwrap_or(limits::KILLS).to_string();
    let seed = options.seed.to_string();
    println!("{kills} kills from seed {seed}");
    long::test(
        workspace,
        "skep-archive",
        "kill",
        "nothing_acknowledged_is_missing_after_a_kill",
        &[("SKEP_KILLS", &kills), ("SKEP_KILL_SEED", &seed)],
    )?;
    let bytes = limits::KILL_OPEN_BYTES.to_string();
    let opening = "opening_after_a_kill_reads_the_tail_only";
    let most_ms = limits::KILL_OPEN_MS_MAX.to_string();
    let asked = [("SKEP_OPEN_BYTES", bytes.as_str()), ("SKEP_OPEN_MS_MAX", &most_ms)];
    long::test(workspace, "skep-archive", "kill", opening, &asked)
}
