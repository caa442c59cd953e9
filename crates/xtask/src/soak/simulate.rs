//! The ring at its full size: 20,000 nodes and 2^18 slices, by the binary itself. A broken rule is its exit code.

use crate::limits;
use crate::long::{self, Options};
use crate::workspace::Workspace;
use anyhow::{Result, ensure};
use std::process::Command;

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let skep = long::build(workspace, "skep", "--bin", "skep")?;
    let nodes = options.count.unwrap_or(limits::SIMULATE_NODES).to_string();
    let seed = options.seed.to_string();
    for life in ["365", "90"] {
        let words = ["simulate", "--nodes", &nodes, "--slices", "2^18", "--days", "2", "--life", life, "--seed", &seed];
        println!("skep {}", words.join(" "));
        let status = Command::new(&skep).args(words).status()?;
        ensure!(status.success(), "a rule was broken, see above");
    }
    Ok(())
}
