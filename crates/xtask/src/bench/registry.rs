//! The registry: links checked against millions of known URLs, beside a store of full URLs. One process each, files warm.

use super::best;
use crate::limits;
use crate::long::{self, Options};
use crate::material;
use crate::measure::Run;
use crate::table::{Table, count, megabytes};
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::process::Command;

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let program = long::build_dist(workspace, "skep-crawl", "--example", "registry")?;
    let urls = options.count.unwrap_or(limits::REGISTRY_URLS);
    let folder = material::folder(workspace)?.join("registry");
    let measured = |peer: Option<&str>| -> Result<Run> {
        // Always from nothing: filling is part of what is measured.
        let _ = std::fs::remove_dir_all(&folder);
        let mut command = Command::new(&program);
        command.arg(&folder).args(["--urls", &urls.to_string()]);
        command.args(["--checks", &limits::REGISTRY_CHECKS.to_string()]);
        if let Some(peer) = peer {
            command.args(["--peer", peer, "--seconds", &limits::REGISTRY_PEER_SECONDS.to_string()]);
        }
        let run = best(&command, 1, None);
        let _ = std::fs::remove_dir_all(&folder);
        run
    };
    let ours = measured(None)?;
    let theirs = measured(Some("fjall"))?;

    println!(
        "{} URLs of {:.0} characters; 40 links a page, 36 of them known; checks per second and core",
        count(urls),
        told(&ours, "url_chars")?
    );
    println!("near: known links as pages have them; any: each known URL as likely as any other\n");
    let (few, many) = (count(urls / 10), count(urls));
    let mut table = Table::new(&[
        "",
        &format!("near, {few}"),
        &format!("near, {many}"),
        &format!("any, {few}"),
        &format!("any, {many}"),
        "new/s",
        "bytes/URL",
        "memory",
    ]);
    for (who, run) in [("skep", &ours), ("fjall, URLs alone", &theirs)] {
        let mut row = vec![who.to_owned()];
        for name in ["few_near_per_s", "many_near_per_s", "few_any_per_s", "many_any_per_s", "fill_per_s"] {
            // What a peer did not come to.
            row.push(told(run, name).map_or("-".to_owned(), |value| count(value as u64)));
        }
        row.push(format!("{:.1}", told(run, "bytes_per_url")?));
        row.push(megabytes(run.max_rss_bytes));
        table.row(&row);
    }
    print!("{}", table.render());
    let filled = told(&theirs, "filled")? as u64;
    if filled < urls {
        let seconds = limits::REGISTRY_PEER_SECONDS;
        println!("fjall was given {seconds} s to be filled and came to {} URLs", count(filled));
    }

    let verdict = |name: &str, found: String, held: bool, asked: String| {
        println!("{name:<10} {found}: {} (asked {asked})", if held { "reached" } else { "SHORT" });
    };
    println!();
    for (name, few, many) in [("near", "few_near_per_s", "many_near_per_s"), ("any", "few_any_per_s", "many_any_per_s")]
    {
        let (few, many) = (told(&ours, few)?, told(&ours, many)?);
        let least = limits::REGISTRY_CHECKS_PER_S_MIN;
        verdict(name, format!("{} checks/s", count(many as u64)), many >= least, count(least as u64).to_string());
        let most = limits::REGISTRY_COST_RATIO_MAX;
        verdict(
            "",
            format!("{:.2} × the cost among a tenth", few / many),
            few / many <= most,
            format!("at most {most}"),
        );
    }
    let bytes = told(&ours, "bytes_per_url")?;
    let most = limits::REGISTRY_BYTES_PER_URL_MAX;
    verdict("on disk", format!("{bytes:.1} bytes per URL"), bytes <= most, format!("at most {most}"));
    let most = limits::REGISTRY_RSS_BYTES_MAX;
    verdict(
        "memory",
        megabytes(ours.max_rss_bytes),
        ours.max_rss_bytes <= most,
        format!("at most {}", megabytes(most)),
    );
    let (open_s, open_urls) = (told(&ours, "open_s")?, told(&ours, "open_urls")? as u64);
    let most = limits::REGISTRY_OPEN_SECONDS_MAX;
    let opened = format!("{open_s:.2} s with {} URLs", count(open_urls));
    verdict("opening", opened, open_s < most, format!("less than {most} s"));
    Ok(())
}

/// A number in the JSON object that a program printed.
fn told(run: &Run, name: &str) -> Result<f64> {
    let object: serde_json::Value = serde_json::from_str(run.stdout.trim()).context("no JSON object was printed")?;
    object[name].as_f64().with_context(|| format!("no number `{name}` in {object}"))
}
