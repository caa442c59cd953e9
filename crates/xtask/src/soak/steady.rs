//! Half an hour of passes over hosts that change and fail: memory, descriptors and threads stay what they are.

use crate::limits;
use crate::long::{self, Options};
use crate::workspace::Workspace;
use anyhow::Result;

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    // The test starts the crawler that cargo has put beside it.
    long::build(workspace, "skep-crawl", "--example", "steady")?;
    let seconds = ((options.minutes.unwrap_or(limits::STEADY_MINUTES) * 60.0) as u64).to_string();
    println!("{seconds} s");
    let name = "what_a_long_crawl_holds_does_not_grow";
    long::test(workspace, "skep-crawl", "steady", name, &[("SKEP_STEADY_SECONDS", &seconds)])
}
