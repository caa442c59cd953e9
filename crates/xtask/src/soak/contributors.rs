//! Contributors of the real binary, asked for more than a test may take.

use crate::limits;
use crate::long::{self, Options};
use crate::workspace::Workspace;
use anyhow::Result;

/// Twenty of them, killed at random: of one node, then of a ring of three.
pub fn many(workspace: &Workspace, options: &Options) -> Result<()> {
    let count = options.count.unwrap_or(limits::CONTRIBUTORS).to_string();
    let pages = limits::CONTRIBUTORS_PAGES.to_string();
    println!("{count} contributors, {pages} pages on each of as many hosts");
    let name = "six_contributors_make_the_archive_that_we_would_have_made_and_killing_them_loses_nothing";
    let asked = [("SKEP_CONTRIBUTORS", count.as_str()), ("SKEP_PAGES", pages.as_str())];
    long::test(workspace, "skep", "contributors", name, &asked)?;
    let pages = limits::CONTRIBUTORS_RING_PAGES.to_string();
    println!("{count} contributors of three nodes, {pages} pages on each of 12 hosts");
    let name = "contributors_of_three_nodes_make_the_archive_that_one_would_have_made_and_killing_them_loses_nothing";
    let asked = [("SKEP_CONTRIBUTORS", count.as_str()), ("SKEP_PAGES", pages.as_str())];
    long::test(workspace, "skep", "ring_contributors", name, &asked)
}

/// Rate, connections and quota, for ten minutes.
pub fn limits(workspace: &Workspace, options: &Options) -> Result<()> {
    let minutes = options.minutes.unwrap_or(limits::CONTRIBUTOR_LIMITS_MINUTES);
    let seconds = ((minutes * 60.0) as u64).to_string();
    println!("{seconds} s at 200 kB/s and two connections");
    let name = "rate_connections_and_quota_hold_as_seen_from_outside";
    long::test(workspace, "skep", "contributors_limits", name, &[("SKEP_SECONDS", &seconds)])
}
