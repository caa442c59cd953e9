//! How fast the stream of changes is, and what it saves an indexer.

use super::best;
use crate::limits;
use crate::long::{self, Options};
use crate::measure;
use crate::table::count;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::Command;

fn say(what: &str, found: f64, least: f64, unit: &str) {
    let held = if found >= least { "reached" } else { "SHORT" };
    println!("{what:<74} {} {unit}: {held} (asked {})", count(found as u64), count(least as u64));
}

/// `cargo xtask bench stream`.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let program = long::build_dist(workspace, "skep", "--example", "stream")?;
    let mut command = Command::new(&program);
    let pages = options.count.unwrap_or(limits::STREAM_PAGES);
    command.args(["--pages", &pages.to_string(), "--lines", &limits::STREAM_LINES.to_string()]);
    command.args(["--seconds", &limits::STREAM_SECONDS.to_string()]);
    let run = measure::measure(&command, limits::BENCH_RUN_MAX, None)?.ok()?;
    let told: Value = serde_json::from_str(run.stdout.trim()).context("no JSON object was printed")?;
    let number = |path: &str| told.pointer(path).and_then(Value::as_f64).with_context(|| format!("no `{path}`"));
    let rate = |part: &str, unit: &str| -> Result<f64> {
        Ok(number(&format!("/{part}/{unit}"))? / number(&format!("/{part}/seconds"))?)
    };
    println!("wall clock on all cores; pages of about 6 kB, each with one paragraph of forty changed\n");
    println!(
        "appended: from the first append until the last event can be read; followed: everything is appended before the clock starts"
    );
    for (part, what, unit, asked) in [
        ("new", "events from captures, pages that are new", "events", 10_000.0),
        ("changed", "events from captures, pages whose text changed", "events", 10_000.0),
        ("checks", "check lines of pages that are as before", "lines", 50_000.0),
    ] {
        let appended = rate(part, unit)?;
        let followed = rate(&format!("{part}_followed"), unit)?;
        println!(
            "{what}: {} a second appended ({:.2} of {:.2} s until all was acknowledged), {} a second followed",
            count(appended as u64),
            number(&format!("/{part}/append_seconds"))?,
            number(&format!("/{part}/seconds"))?,
            count(followed as u64)
        );
        say(&format!("{what}, the slower of both"), appended.min(followed), asked, "a second");
    }
    for part in ["new", "changed", "new_followed", "changed_followed"] {
        let cpu = number(&format!("/{part}/cpu_seconds"))?;
        let threads = cpu / number(&format!("/{part}/seconds"))?;
        println!(
            "  {part}: {:.0} µs of CPU time an event, {threads:.2} cores busy",
            cpu * 1e6 / number(&format!("/{part}/events"))?
        );
    }
    say("replayed to one consumer, as lines of JSON", rate("replay", "events")?, 500_000.0, "a second");
    say("the same over HTTP", rate("replay_http", "events")?, 500_000.0, "a second");
    say("live: captures appended", rate("live", "appended")?, 0.995 * 2_000.0, "a second");
    for kind in ["filtered", "unfiltered"] {
        let at = |name: &str| number(&format!("/live/consumers/{kind}/{name}"));
        println!(
            "live: {kind:<11} {} events heard; half within {} ms, 99 of 100 within {} ms, all within {} ms: {} (asked 1 000)",
            count(at("events")? as u64),
            at("p50_ms")?,
            at("p99_ms")?,
            at("most_ms")?,
            if at("p99_ms")? < 1_000.0 { "reached" } else { "SHORT" },
        );
    }
    Ok(())
}

/// `cargo xtask bench indexer`.
pub fn indexer(workspace: &Workspace, options: &Options) -> Result<()> {
    let program = long::build_dist(workspace, "skep-changes", "--example", "indexer")?;
    let mut command = Command::new(&program);
    let pages = options.count.unwrap_or(limits::INDEXER_PAGES);
    command.args(["--pages", &pages.to_string(), "--seed", &options.seed.to_string()]);
    let run = best(&command, 1, None)?;
    let told: Value = serde_json::from_str(run.stdout.trim()).context("no JSON object was printed")?;
    let number = |name: &str| told[name].as_f64().with_context(|| format!("no `{name}`"));
    println!(
        "{} pages of {} bytes for 30 days, looked at once a day by the archive; {} events, {} texts made by deltas, {} wrong",
        count(pages),
        count(number("page_bytes")? as u64),
        count(number("events")? as u64),
        count(number("applied")? as u64),
        number("wrong")?
    );
    println!("{} pages were born meanwhile, {} died", count(number("born")? as u64), count(number("died")? as u64));
    let (daily, stream, first) = (number("daily")?, number("stream")?, number("first_load")?);
    println!(
        "no side is compressed: every page every day {} bytes, the stream {} bytes",
        count(daily as u64),
        count(stream as u64)
    );
    println!(
        "besides, the texts at the beginning, told whole: {} bytes; with them {:.0} times fewer",
        count(first as u64),
        daily / (stream + first)
    );
    for kind in told["kinds"].as_array().into_iter().flatten() {
        let number = |name: &str| kind[name].as_u64().unwrap_or_default();
        println!(
            "  {:<14} {} events, {} bytes, {} of them text deltas",
            kind["class"].as_str().unwrap_or_default(),
            count(number("events")),
            count(number("bytes")),
            count(number("deltas"))
        );
    }
    say("times fewer bytes for who follows, once it has the texts", daily / stream, 100.0, "times");
    Ok(())
}
