//! A crawl of 20,000 pages is killed 50 times, in two passes: the test of the binary, asked for more.

use crate::limits;
use crate::long::{self, Options};
use crate::workspace::Workspace;
use anyhow::Result;

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let kills = options.count.unwrap_or(limits::CRAWL_KILLS);
    // Each kill needs pages that are still to be fetched.
    let pages = (kills * (limits::CRAWL_KILL_PAGES / limits::CRAWL_KILLS)).to_string();
    let (kills, seed) = (kills.to_string(), options.seed.to_string());
    println!("{kills} kills over {pages} pages from seed {seed}");
    let variables = [("SKEP_CRAWL_KILLS", &*kills), ("SKEP_CRAWL_PAGES", &*pages), ("SKEP_CRAWL_SEED", &*seed)];
    let name = "a_crawl_that_is_killed_again_and_again_ends_as_if_nothing_had_been";
    long::test(workspace, "skep", "kills", name, &variables)
}
