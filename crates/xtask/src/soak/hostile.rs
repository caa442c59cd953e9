//! All rows of the hostile web in one run of the real binary, with the clocks that a crawl has when nobody shortens them: the
//! test of the binary, asked for more.

use crate::limits;
use crate::long::{self, Options};
use crate::workspace::Workspace;
use anyhow::Result;

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let minutes = (options.minutes.unwrap_or(limits::HOSTILE_MINUTES).ceil() as u64).to_string();
    let seed = options.seed.to_string();
    println!("the hostile web of seed {seed}; it must end by itself within {minutes} minutes");
    let variables = [("SKEP_HOSTILE_MINUTES", minutes.as_str()), ("SKEP_HOSTILE_SEED", seed.as_str())];
    long::test(workspace, "skep", "hostile", "together::all_rows_in_one_run_end_by_themselves", &variables)
}
