//! A crawl that knows millions of URLs is killed, and goes on at once: the test of the binary, asked for more. And a node comes to lead slices of
//! which it has copies, and soon knows what others knew: the test of the engine, asked for more.

use crate::limits;
use crate::long::{self, Options};
use crate::workspace::Workspace;
use anyhow::Result;

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let urls = options.count.unwrap_or(limits::RESTART_URLS).to_string();
    let seconds = limits::RESTART_SECONDS_MAX.to_string();
    println!("{urls} URLs, {seconds} s");
    let name = "a_crawl_that_knows_many_urls_soon_goes_on_after_a_kill";
    long::test(workspace, "skep", "kills", name, &[("SKEP_RESTART_URLS", &urls), ("SKEP_RESTART_SECONDS", &seconds)])?;

    let urls = options.count.unwrap_or(limits::TAKE_OVER_URLS).to_string();
    let seconds = limits::TAKE_OVER_SECONDS_MAX.to_string();
    println!("{urls} URLs that another node wrote of, {seconds} s");
    let name = "who_comes_to_lead_soon_knows_what_others_wrote";
    let asked = [("SKEP_TAKE_OVER_URLS", &*urls), ("SKEP_TAKE_OVER_SECONDS", &*seconds)];
    long::test(workspace, "skep-crawl", "together", name, &asked)
}
