//! Many hosts on few sites and fewer addresses, some slow, some refusing, robots.txt files of every kind: the test of politeness,
//! asked for more. The auditor judges by its own clock.

use crate::limits;
use crate::long::{self, Options};
use crate::workspace::Workspace;
use anyhow::Result;

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let seconds = (options.minutes.unwrap_or(limits::POLITE_MINUTES) * 60.0) as u64;
    let hosts = options.count.unwrap_or(limits::POLITE_HOSTS);
    // The same proportions with fewer hosts.
    let sites = (hosts * limits::POLITE_SITES / limits::POLITE_HOSTS).max(1);
    let addresses = (hosts * limits::POLITE_ADDRESSES / limits::POLITE_HOSTS).max(1);
    println!("{hosts} hosts on {sites} sites and {addresses} addresses for {seconds} s");
    let variables = [
        ("SKEP_POLITE_HOSTS", hosts.to_string()),
        ("SKEP_POLITE_SITES", sites.to_string()),
        ("SKEP_POLITE_ADDRESSES", addresses.to_string()),
        ("SKEP_POLITE_PAGES", limits::POLITE_PAGES.to_string()),
        ("SKEP_POLITE_CONCURRENCY", limits::POLITE_CONCURRENCY.to_string()),
        ("SKEP_POLITE_SECONDS", seconds.to_string()),
    ];
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    long::test(workspace, "skep-crawl", "polite", "a_mixed_and_troubled_web_finds_no_fault_with_us", &variables)
}
