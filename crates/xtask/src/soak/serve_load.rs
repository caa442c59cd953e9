//! An hour of everything that a portal is asked for, while a crawl writes into the same archive.

use crate::limits;
use crate::long::{self, Options};
use crate::workspace::Workspace;
use anyhow::Result;

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let seconds = ((options.minutes.unwrap_or(limits::SERVE_LOAD_MINUTES) * 60.0) as u64).to_string();
    println!("{seconds} s");
    let name = "what_is_asked_while_a_crawl_writes_is_answered_whole_and_at_once";
    long::test(workspace, "skep", "load", name, &[("SKEP_LOAD_SECONDS", &seconds)])
}
