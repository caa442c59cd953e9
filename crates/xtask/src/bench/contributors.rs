//! What contributors cost a node, and themselves: tests of the binary, asked for more. Figures are those of the profile of the tests.

use crate::limits;
use crate::long::{self, Options};
use crate::workspace::Workspace;
use anyhow::Result;

const FILE: &str = "contributors_cost";

/// Bytes at the node of a daily scan, beside what contributors fetch.
pub fn bandwidth(workspace: &Workspace, options: &Options) -> Result<()> {
    let hosts = options.count.unwrap_or(limits::BANDWIDTH_HOSTS).to_string();
    let pages = limits::BANDWIDTH_PAGES.to_string();
    let name = "a_daily_scan_costs_the_node_a_twenty_fifth_of_what_is_fetched";
    let contributors = limits::BANDWIDTH_CONTRIBUTORS.to_string();
    let asked =
        [("SKEP_HOSTS", hosts.as_str()), ("SKEP_PAGES", pages.as_str()), ("SKEP_CONTRIBUTORS", contributors.as_str())];
    long::test(workspace, "skep", FILE, name, &asked)
}

/// URLs handed out and taken back, and the processor time of a contributor beside that of a crawl.
pub fn dispatch(workspace: &Workspace, options: &Options) -> Result<()> {
    let hosts = options.count.unwrap_or(limits::DISPATCH_HOSTS).to_string();
    let pages = limits::DISPATCH_PAGES.to_string();
    let name = "a_node_hands_out_and_takes_back_many_urls";
    long::test(workspace, "skep", FILE, name, &[("SKEP_HOSTS", &hosts), ("SKEP_PAGES", &pages)])?;
    let (hosts, pages) = (limits::BANDWIDTH_HOSTS.to_string(), limits::CONTRIBUTOR_CPU_PAGES.to_string());
    let name = "a_contributor_needs_little_more_of_its_processor_than_a_crawl";
    long::test(workspace, "skep", FILE, name, &[("SKEP_HOSTS", &hosts), ("SKEP_PAGES", &pages)])
}
