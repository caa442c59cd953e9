//! The frame of both long chores: a register of names, the options they share, and how their programs are built.

use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::time::Instant;

/// A long run that can be asked for by name.
pub struct Entry {
    pub name: &'static str,
    pub what: &'static str,
    pub run: fn(&Workspace, &Options) -> Result<()>,
}

/// What can be said of a long run; each uses what it understands.
#[derive(clap::Args)]
pub struct Options {
    /// Which one; leave it out to see the list
    pub name: Option<String>,
    /// How long, in minutes
    #[arg(long)]
    pub minutes: Option<f64>,
    /// How many: kills, captures, megabytes
    #[arg(long)]
    pub count: Option<u64>,
    /// The same seed gives the same run
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How often each program is measured; the least disturbed run counts
    #[arg(long, default_value_t = 3)]
    pub runs: u32,
    /// Measure on this archive instead of one made from Debian's documentation
    #[arg(long)]
    pub file: Option<PathBuf>,
    /// Count our instructions with valgrind as well (slow)
    #[arg(long)]
    pub instructions: bool,
}

/// Runs the one that was named, or lists them all.
pub fn run(chore: &str, all: &[Entry], workspace: &Workspace, options: &Options) -> Result<()> {
    let Some(name) = &options.name else {
        for entry in all {
            println!("cargo xtask {chore} {:<10}  {}", entry.name, entry.what);
        }
        return Ok(());
    };
    let Some(entry) = all.iter().find(|entry| entry.name == name) else {
        let names: Vec<&str> = all.iter().map(|entry| entry.name).collect();
        bail!("there is no {chore} called `{name}`; there are {}", names.join(", "));
    };
    let began = Instant::now();
    println!("{chore} {}: {}", entry.name, entry.what);
    let done = (entry.run)(workspace, options).with_context(|| format!("{chore} {name}"));
    println!("{chore} {} took {:.0} s", entry.name, began.elapsed().as_secs_f64());
    done
}

/// Builds a program of ours in the profile of the tests and says where it is: `("skep", "--bin", "skep")`.
pub fn build(workspace: &Workspace, package: &str, kind: &str, name: &str) -> Result<PathBuf> {
    build_as(workspace, "release", package, kind, name, &[])
}

/// The same in the profile in which programs are given away, which is the one to measure.
pub fn build_dist(workspace: &Workspace, package: &str, kind: &str, name: &str) -> Result<PathBuf> {
    build_as(workspace, "dist", package, kind, name, &[])
}

/// An example of the chores' own with the parts of the field, which nobody else has a use for.
pub fn build_field(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    build_as(workspace, "dist", "xtask", "--example", name, &["--features", "xtask/field"])
}

fn build_as(
    workspace: &Workspace,
    profile: &str,
    package: &str,
    kind: &str,
    name: &str,
    more: &[&str],
) -> Result<PathBuf> {
    let mut build = workspace.cargo();
    // Of the whole workspace: for a single package cargo chooses other features of what it depends on, and builds all of that anew.
    build.args(["build", "--profile", profile, "--quiet", "--workspace", kind, name]).args(more);
    if !build.status().context("cargo could not be started")?.success() {
        bail!("{name} of {package} could not be built; the compiler's messages are above");
    }
    let folder = workspace.target().join(profile);
    Ok(if kind == "--example" { folder.join("examples") } else { folder }.join(name))
}

/// One test of a package under `cargo test`, which sets it no time limit and shows what it prints: a soak is a test that is asked
/// for more.
pub fn test(workspace: &Workspace, package: &str, file: &str, name: &str, variables: &[(&str, &str)]) -> Result<()> {
    let mut test = workspace.cargo();
    test.args(["test", "--release", "--quiet", "--workspace", "--test", file, "--"]);
    test.args(["--exact", name, "--nocapture"]).envs(variables.iter().copied());
    if !test.status().context("cargo could not be started")?.success() {
        bail!("{name} of {package} failed; what it says is above");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_unique_and_described() {
        for all in [crate::bench::ALL, crate::soak::ALL] {
            for (index, entry) in all.iter().enumerate() {
                assert!(!entry.what.is_empty());
                assert!(all[index + 1..].iter().all(|other| other.name != entry.name), "{}", entry.name);
            }
        }
    }
}
