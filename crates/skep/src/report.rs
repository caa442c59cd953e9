//! `skep report`: what a crawl came to.

use crate::failure::{Result, printable, say};
use crate::job::{self, Exit, Tell};
use crate::owner::{self, Owned, Place};
use crate::show::{self, Collected, Column, Screen};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use skep_crawl::Question;

/// Report what a crawl came to: pages, bytes, hosts, errors by class, refusals, traps, the slowest hosts
#[derive(Args)]
#[command(after_help = "\
Without a name: all crawls of the archive, one a line; the whole report if there is only one.
Examples:
  skep report
  skep report example.org-1a2b3c --broken
Exit code 1 if there is no crawl; with --broken, if there are broken links.")]
pub struct Typed {
    /// The crawl's name
    name: Option<String>,
    /// List broken links, with the pages that hold them
    #[arg(long)]
    broken: bool,
}

/// As meant.
#[derive(Serialize, Deserialize)]
pub struct Job {
    name: Option<String>,
    broken: bool,
}

/// Rows of each kind that a table shows; JSON has all.
const ROWS_SHOWN: usize = 12;
/// Pages named for one broken link.
const PAGES_SHOWN: usize = 5;

const COLUMNS: &[Column] = &[
    ("name", |v| show::text(v, "name")),
    ("pass", |v| show::text(v, "pass")),
    ("state", |v| state(v).to_owned()),
    ("visited", |v| show::text(v, "visited")),
    ("waiting", |v| show::text(v, "waiting")),
    ("bytes", |v| show::bytes(v["bytes"].as_u64().unwrap_or(0))),
    ("hosts", |v| show::text(v, "hosts")),
    ("broken", |v| show::text(v, "broken")),
];

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let mut told = Collected::default();
    let broken = typed.broken;
    let job = Job { name: typed.name, broken };
    let exit = owner::perform(place, false, &job::Job::Report(job), &mut told)?;
    let found = told.0;
    match found.len() {
        0 if !broken => say("this archive has no crawl yet; `skep crawl URL` begins one"),
        0 => say("no broken links"),
        _ if broken => show::objects(&found, place.json, broken_link)?,
        1 => show::objects(&found, place.json, table)?,
        _ => {
            let mut screen = Screen::new(place.json, COLUMNS);
            found.into_iter().try_for_each(|report| screen.line(report))?;
            screen.finish()?;
        }
    }
    Ok(exit)
}

pub fn perform(owned: &Owned, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    let found = owned.ask(&Question::Report { name: job.name.clone(), broken: job.broken })?;
    let none = found.is_empty();
    found.into_iter().try_for_each(|report| tell.line(report))?;
    // Broken links are findings, like those of `skep check`.
    Ok(if none == job.broken { Exit::Done } else { Exit::No })
}

fn state(report: &Value) -> &'static str {
    if report["ended"].is_null() { "unfinished" } else { "finished" }
}

/// A report for a person.
pub fn table(report: &Value) -> String {
    let mut out = format!("{}, pass {}, {}\n", show::text(report, "name"), show::text(report, "pass"), state(report));
    let span = match report["ended"].as_str() {
        Some(ended) => format!("{} to {ended}", show::text(report, "begun")),
        None => format!("begun {}", show::text(report, "begun")),
    };
    out += &format!("{span}\n\n");
    for name in ["seeds", "known", "visited", "pages", "hosts", "waiting", "robots", "broken"] {
        if report.get(name).is_some_and(|value| !value.is_null()) {
            out += &format!("{name:<12}{:>14}\n", show::text(report, name));
        }
    }
    out += &format!("{:<12}{:>14}\n", "bytes", show::bytes(report["bytes"].as_u64().unwrap_or(0)));
    for (title, name) in [
        ("status", "status"),
        ("media types", "types"),
        ("errors", "errors"),
        ("refused", "refused"),
        ("traps", "traps"),
    ] {
        out += &counts(title, &report[name]);
    }
    let slowest = report["slowest"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !slowest.is_empty() {
        out += "\nslowest hosts\n";
        for host in slowest.iter().take(ROWS_SHOWN) {
            out += &format!("  {:<40}{:>9} ms\n", cut(&show::text(host, "host")), show::text(host, "ms"));
        }
    }
    out
}

fn counts(title: &str, values: &Value) -> String {
    let Some(values) = values.as_object().filter(|values| !values.is_empty()) else { return String::new() };
    let mut rows: Vec<(&String, u64)> =
        values.iter().map(|(name, count)| (name, count.as_u64().unwrap_or(0))).collect();
    rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut out = format!("\n{title}\n");
    for (name, count) in rows.iter().take(ROWS_SHOWN) {
        out += &format!("  {:<40}{count:>12}\n", cut(name));
    }
    if rows.len() > ROWS_SHOWN {
        out += &format!("  and {} more: --json has them all\n", rows.len() - ROWS_SHOWN);
    }
    out
}

fn cut(text: &str) -> String {
    text.chars().map(printable).take(40).collect()
}

/// What a person can do about refusals that have a remedy.
pub fn hints(report: &Value) -> Vec<&'static str> {
    let counted = |kind: &str, id: &str| report[kind][id].as_u64().is_some_and(|count| count > 0);
    let any = |id: &str| counted("errors", id) || counted("refused", id);
    let mut hints = Vec::new();
    if any("address-refused") {
        hints.push("some hosts are at private addresses, which are not visited: --allow-private visits them (`skep why URL` says which)");
    }
    if any("dns") {
        hints.push("some names could not be resolved: `skep doctor` looks at the name servers");
    }
    if any("local") {
        hints.push("this machine ran out of files, ports or memory: `skep doctor` says which and how to raise it");
    }
    hints
}

fn broken_link(link: &Value) -> String {
    let printed = |text: &str| text.chars().map(printable).collect::<String>();
    let mut out = format!("{}  {}\n", show::text(link, "outcome"), printed(&show::text(link, "url")));
    let pages = link["pages"].as_array().map(Vec::as_slice).unwrap_or_default();
    for page in pages.iter().filter_map(Value::as_str).take(PAGES_SHOWN) {
        out += &format!("     on {}\n", printed(page));
    }
    if pages.len() > PAGES_SHOWN {
        out += &format!("     and on {} more pages: --json has them all\n", pages.len() - PAGES_SHOWN);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_report_says_what_there_is_and_leaves_out_what_there_is_not() {
        let report = json!({
            "name": "a", "pass": 2, "begun": "2026-01-01T00:00:00Z", "ended": null, "seeds": 1, "known": 10, "visited": 7, "pages": 5,
            "bytes": 12_345, "hosts": 1, "waiting": 3, "status": { "200": 5, "404": 2 }, "errors": { "address-refused": 1 },
            "refused": {}, "traps": {}, "robots": 0, "broken": 2, "slowest": [{ "host": "a.test", "ms": 31 }], "types": {}
        });
        let shown = table(&report);
        assert!(shown.starts_with("a, pass 2, unfinished\nbegun 2026-01-01T00:00:00Z\n"), "{shown}");
        assert!(shown.contains("visited                  7\n") && shown.contains("12.3 kB"), "{shown}");
        assert!(shown.contains("a.test") && !shown.contains("traps"), "{shown}");
        assert!(hints(&report)[0].contains("--allow-private"));
        assert!(hints(&json!({})).is_empty());
    }

    #[test]
    fn broken_links_name_their_pages() {
        let pages: Vec<String> = (0..7).map(|n| format!("http://a.test/{n}")).collect();
        let shown = broken_link(&json!({ "url": "http://a.test/gone", "outcome": "404", "pages": pages }));
        assert!(shown.starts_with("404  http://a.test/gone\n     on http://a.test/0\n"), "{shown}");
        assert!(shown.ends_with("and on 2 more pages: --json has them all\n"), "{shown}");
    }
}
