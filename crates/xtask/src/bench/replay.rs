//! Serving: pages led back into the archive, and records as they are, per second and process, beside pywb over the same files; and what
//! rewriting costs beside a bare pass of lol_html.

use super::best;
use super::served::{self, Load, Served};
use crate::long::{self, Options};
use crate::table::{Table, count, megabytes, ratio, verdict};
use crate::workspace::Workspace;
use anyhow::Result;
use std::process::Command;

/// What is asked: times pywb, and times lol_html at most.
const ASKED_PAGES: f64 = 20.0;
const ASKED_RAW: f64 = 50.0;
const REWRITING_MAX: f64 = 1.5;
/// And of the index: times pywb.
const ASKED_INDEX: f64 = 20.0;

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let served = Served::make(workspace, options)?;
    served::versions(workspace)?;
    let ours = |modifier: &str| paths(&served, |time, url| format!("/web/{time}{modifier}/{url}"));
    let theirs = |modifier: &str| paths(&served, |time, url| format!("/bench/{time}{modifier}/{url}"));
    let skep = served.skep(workspace)?;
    let (our_pages, our_raw) = (skep.load(workspace, &ours("mp_"))?, skep.load(workspace, &ours("id_"))?);
    drop(skep);
    let pywb = served.pywb(workspace)?;
    let (their_pages, their_raw) = (pywb.load(workspace, &theirs("mp_"))?, pywb.load(workspace, &theirs("id_"))?);
    drop(pywb);
    println!("{} pages, asked for over 8 connections", count(served.pages.len() as u64));
    compare(&[("page", our_pages, their_pages), ("record", our_raw, their_raw)]);
    println!("\npages    {}", verdict(our_pages.per_second / their_pages.per_second, ASKED_PAGES));
    println!("p99      {}", verdict(their_pages.p99_ms / our_pages.p99_ms, ASKED_PAGES));
    println!("records  {}", verdict(our_raw.per_second / their_raw.per_second, ASKED_RAW));
    rewriting(workspace, &served)
}

pub fn index(workspace: &Workspace, options: &Options) -> Result<()> {
    let served = Served::make(workspace, options)?;
    served::versions(workspace)?;
    let exact = |path: &str| paths(&served, |_, url| format!("{path}?url={url}&output=json"));
    let closest =
        |path: &str| paths(&served, |time, url| format!("{path}?url={url}&closest={time}&limit=1&output=json"));
    let skep = served.skep(workspace)?.portal();
    let (our_exact, our_closest) = (skep.load(workspace, &exact("/cdx"))?, skep.load(workspace, &closest("/cdx"))?);
    drop(skep);
    let pywb = served.pywb(workspace)?;
    let (their_exact, their_closest) =
        (pywb.load(workspace, &exact("/bench/cdx"))?, pywb.load(workspace, &closest("/bench/cdx"))?);
    compare(&[("exact", our_exact, their_exact), ("closest", our_closest, their_closest)]);
    println!("\nexact    {}", verdict(our_exact.per_second / their_exact.per_second, ASKED_INDEX));
    println!("closest  {}", verdict(our_closest.per_second / their_closest.per_second, ASKED_INDEX));
    Ok(())
}

fn paths(served: &Served, path: impl Fn(&str, &str) -> String) -> Vec<String> {
    served.pages.iter().map(|page| path(&page.time, &page.url)).collect()
}

fn compare(rows: &[(&str, Load, Load)]) {
    let mut table = Table::new(&["", "", "per second", "p99 ms", "us CPU each", "memory"]);
    for (what, ours, theirs) in rows {
        for (who, load) in [("skep", ours), ("pywb", theirs)] {
            table.row(&[
                (*what).to_owned(),
                who.to_owned(),
                count(load.per_second as u64),
                format!("{:.2}", load.p99_ms),
                format!("{:.0}", load.cpu_us_each),
                megabytes(load.memory_bytes),
            ]);
        }
        let faster = ratio(ours.per_second, theirs.per_second);
        let cheaper = ratio(theirs.cpu_us_each, ours.cpu_us_each);
        table.row(&["".into(), "skep is".into(), faster, ratio(theirs.p99_ms, ours.p99_ms), cheaper]);
    }
    print!("\n{}", table.render());
}

fn rewriting(workspace: &Workspace, served: &Served) -> Result<()> {
    let mut rewrite = Command::new(long::build_field(workspace, "rewrite")?);
    let run = best(rewrite.arg(&served.warc).arg("5"), 1, None)?;
    let (ours, bytes) = (run.figure("ours_us")? as f64, run.figure("bytes")? as f64);
    println!("\nrewriting {:.0} MB per CPU second", bytes / ours);
    for (pass, name) in [("that looks at addresses", "looking_us"), ("that looks at nothing", "idle_us")] {
        let theirs = run.figure(name)? as f64;
        let times = ours / theirs;
        let held = if times <= REWRITING_MAX { "reached" } else { "SHORT" };
        let speed = bytes / theirs;
        println!(
            "{times:.2}× the CPU of a pass of lol_html {pass} ({speed:.0} MB): {held} (asked at most {REWRITING_MAX}×)"
        );
    }
    Ok(())
}
