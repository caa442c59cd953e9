//! Seeded mutations of the kept inputs, for as long as asked.

use crate::limits;
use crate::long::Options;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let minutes = options.minutes.unwrap_or(limits::FUZZ_MINUTES);
    let found = workspace.target().join("fuzz");
    println!("{minutes} minutes from seed {}", options.seed);
    let mut fuzz = workspace.cargo();
    fuzz.args(["run", "--release", "--quiet", "--package", "xtask", "--example", "fuzz", "--"]);
    fuzz.arg("--seconds").arg((minutes * 60.0).to_string()).arg("--seed").arg(options.seed.to_string());
    fuzz.arg("--found").arg(&found).arg("--root").arg(&workspace.root);
    let status = fuzz.status().context("cargo could not be started")?;
    if !status.success() {
        bail!("fuzzing found something ({status}); inputs are in {}", found.display());
    }
    Ok(())
}
