//! Links to slices of others, those that a crawl of real pages hears. Bytes per URL as they travel: what leaves the site goes to the other
//! four of five nodes, in the order in which it was heard. And how many go the whole way in a minute: from the engines of two nodes to that of a
//! third, which leads them all; a link counts when it is recorded, synced and copied by a majority of the three.

use super::best;
use super::crawl::nginx::{Host, Nginx};
use crate::limits;
use crate::long::{self, Options};
use crate::material;
use crate::measure;
use crate::needs;
use crate::table::{Table, count};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Package and where its pages are: documentations whose links lead to many places. Of the links of Rust's that leave, most carry a whole
/// program in the query.
const PARTS: [(&str, &str); 7] = [
    ("python3.11-doc", "usr/share/doc/python3.11/html"),
    ("git-doc", "usr/share/doc/git"),
    ("sqlite3-doc", "usr/share/doc/sqlite3"),
    ("debian-handbook", "usr/share/doc/debian-handbook/html/en-US"),
    ("postgresql-doc-15", "usr/share/doc/postgresql-doc-15/html"),
    ("python-django-doc", "usr/share/doc/python-django-doc/html"),
    ("rust-doc", "usr/share/doc/rust-doc/html"),
];

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let archive = crawled(workspace)?;
    let links = options.count.unwrap_or(limits::FORWARD_LINKS);
    let program = long::build_dist(workspace, "xtask", "--example", "forward")?;
    let mut command = Command::new(program);
    command.arg(&archive).arg(links.to_string());
    let run = best(&command, 1, None)?;
    let figures: serde_json::Value = serde_json::from_str(run.stdout.trim()).context("no JSON object was printed")?;
    let told = |name: &str| figures[name].as_f64().with_context(|| format!("no number `{name}` in {figures}"));
    let (staying, leaving) = (told("staying")?, told("leaving")?);
    println!(
        "{} pages with {} links, of which {:.0} % stay on the site; bytes per URL in batches of",
        count(told("pages")? as u64),
        count((staying + leaving) as u64),
        100.0 * staying / (staying + leaving)
    );
    let mut table = Table::new(&["different links that leave", "", "characters", "10", "100", "1,000"]);
    for (name, what) in [("all", "all"), ("short", "up to 256 characters")] {
        let figure = |size: &str| told(&format!("{name}_{size}")).map(|value| format!("{value:.1}"));
        let links = count(told(&format!("{name}_links"))? as u64);
        table.row(&[what.into(), links, figure("chars")?, figure("10")?, figure("100")?, figure("1000")?]);
    }
    print!("{}", table.render());
    let verdict = |what: String, held: bool, asked: String| {
        println!("{what}: {} (asked {asked})", if held { "reached" } else { "SHORT" });
    };
    for (size, most) in [("100", limits::FORWARD_BYTES_100_MAX), ("1000", limits::FORWARD_BYTES_1000_MAX)] {
        let bytes = told(&format!("all_{size}"))?;
        verdict(format!("{bytes:.1} bytes per URL in batches of {size}"), bytes <= most, format!("at most {most}"));
    }
    whole_way(&told, &verdict)
}

/// A node sends as many links as it takes in, and follows as many as it has followed. So what three nodes do here for a link is what one node does
/// for one in a network of many, and the two cores that they share are its two.
fn whole_way(told: &dyn Fn(&str) -> Result<f64>, verdict: &dyn Fn(String, bool, String)) -> Result<()> {
    let (links, seconds) = (told("way_links")?, told("way_s")?);
    let (send, receive) = (told("way_send_cpu_s")?, told("way_receive_cpu_s")?);
    let (send_engine, receive_engine) = (told("way_send_engine_s")?, told("way_receive_engine_s")?);
    println!(
        "\n{} links the whole way in {} batches, {:.0} ms each from sending to its acknowledgement, {} of them tried again; {} are known there",
        count(links as u64),
        count(told("way_batches")? as u64),
        told("way_batch_ms")?,
        count(told("way_again")? as u64),
        count(told("way_known")? as u64)
    );
    let mut table = Table::new(&["", "CPU seconds", "links per CPU minute", "of it the engine's thread"]);
    let sides = [
        ("two nodes that send and follow", send, send_engine),
        ("one node that takes in", receive, receive_engine),
        ("together", send + receive, send_engine + receive_engine),
    ];
    for (who, cpu, engine) in sides {
        let per_minute = count((60.0 * links / cpu) as u64);
        table.row(&[who.into(), format!("{cpu:.1}"), per_minute, format!("{engine:.1}")]);
    }
    print!("{}", table.render());
    let (clock, cpu) = (60.0 * links / seconds, 60.0 * 2.0 * links / (send + receive));
    // One thread does both at a node, however many cores it has.
    let engine = 60.0 * links / (send_engine + receive_engine);
    println!(
        "a minute: {} by the clock, {} by two cores' time, {} by one engine's",
        count(clock as u64),
        count(cpu as u64),
        count(engine as u64)
    );
    let (per_minute, least) = (clock.min(cpu).min(engine), limits::FORWARD_LINKS_PER_MINUTE_MIN);
    verdict(
        format!("{} links acknowledged per minute and node on two cores, the least of these", count(per_minute as u64)),
        per_minute >= least,
        format!("at least {}", count(least as u64)),
    );
    Ok(())
}

/// The archive of a crawl over the documentation, made once.
fn crawled(workspace: &Workspace) -> Result<PathBuf> {
    let folder = material::folder(workspace)?;
    let archive = folder.join("forward-archive");
    if archive.is_dir() {
        return Ok(archive);
    }
    let site = folder.join("forward-site");
    if !site.is_dir() {
        make_site(workspace, &site)?;
    }
    println!("crawling {} (minutes, once)", site.display());
    let part = archive.with_extension("part");
    let server = folder.join("forward-server");
    for gone in [&part, &server] {
        if gone.exists() {
            std::fs::remove_dir_all(gone)?;
        }
    }
    std::fs::create_dir_all(&server)?;
    let skep = long::build(workspace, "skep", "--bin", "skep")?;
    let hosts = [Host { name: "127.0.0.1", root: &site }];
    let nginx = Nginx::start(&needs::nginx(workspace)?, &server, &hosts, false)?;
    let mut crawl = Command::new(skep);
    crawl.arg("crawl").arg(format!("http://{}/", nginx.address())).arg("--archive").arg(&part);
    crawl.args(["--own", "127.0.0.1", "--pace", "none", "--allow-private"]);
    let run = measure::measure(&crawl, limits::CRAWL_RUN_MAX, None)?;
    nginx.stop()?;
    // 3: some pages that are linked to are not in the package.
    if !matches!(run.exit, 0 | 3) {
        run.ok()?;
        bail!("an exit code that is not expected");
    }
    std::fs::rename(&part, &archive)?;
    Ok(archive)
}

/// One site with a folder for each documentation.
fn make_site(workspace: &Workspace, site: &Path) -> Result<()> {
    let part = site.with_extension("part");
    if part.exists() {
        std::fs::remove_dir_all(&part)?;
    }
    std::fs::create_dir_all(&part)?;
    let mut links = String::new();
    for (package, inside) in PARTS {
        let from = needs::files_of(workspace, package)?.join(inside);
        let copied = Command::new("cp").args(["-r", "-L"]).arg(&from).arg(part.join(package)).status()?;
        // A link of the package into another that is not there.
        if !copied.success() && !part.join(package).is_dir() {
            bail!("{} could not be copied", from.display());
        }
        let mut pages: Vec<String> = std::fs::read_dir(part.join(package))?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.ends_with(".html"))
            .collect();
        pages.sort();
        links.extend(pages.iter().map(|page| format!("<li><a href=\"{package}/{page}\">{package}</a></li>\n")));
    }
    std::fs::write(
        part.join("index.html"),
        format!("<!DOCTYPE html><title>Documentation</title><ul>\n{links}</ul>\n"),
    )?;
    std::fs::rename(&part, site)?;
    Ok(())
}
