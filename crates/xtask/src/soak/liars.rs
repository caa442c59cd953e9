//! Liars among contributors, in many worlds: the test of the package, asked for more.

use crate::limits;
use crate::long::{self, Options};
use crate::workspace::Workspace;
use anyhow::Result;

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let seeds = options.count.unwrap_or(limits::LIARS_SEEDS).to_string();
    println!("{seeds} worlds");
    let name = "liars_are_caught_honest_work_is_confirmed_and_nothing_altered_is";
    long::test(workspace, "skep-contribute", "liars", name, &[("SKEP_SEEDS", &seeds)])
}
