//! `skep why`: the fate of a URL.

use crate::failure::{Result, printable, say};
use crate::job::{self, Exit, Tell};
use crate::owner::{self, Owned, Place};
use crate::seeds;
use crate::show::{self, Collected};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use skep_crawl::Question;

/// Tell the fate of a URL: fetched, queued, refused by which rule, robots line, budget or trap
#[derive(Args)]
#[command(after_help = "\
A crawl that runs answers itself; otherwise the archive does. Without https:// or http:// both are looked for.
Examples:
  skep why https://example.org/private/
  skep why example.org/news --name news-2026 --json
Exit code 1 if no crawl has ever heard of it.")]
pub struct Typed {
    /// The URL
    url: String,
    /// Only in this crawl
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// As meant: the first of these URLs that any crawl knows.
#[derive(Serialize, Deserialize)]
pub struct Job {
    urls: Vec<String>,
    name: Option<String>,
}

const UNKNOWN: &str = "unknown";

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let (url, _) = seeds::url(&typed.url)?;
    let mut urls = vec![url.as_str().to_owned()];
    if !typed.url.contains("://") {
        urls.push(url.as_str().replacen("https://", "http://", 1));
    }
    let mut told = Collected::default();
    let exit = owner::perform(place, false, &job::Job::Why(Job { urls, name: typed.name }), &mut told)?;
    if exit == Exit::No && told.0.is_empty() {
        say(&format!("no crawl has heard of {url}"));
    }
    show::objects(&told.0, place.json, table)?;
    Ok(exit)
}

pub fn perform(owned: &Owned, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    let mut unknown = Vec::new();
    for url in &job.urls {
        let fates = owned.ask(&Question::Why { url: url.clone(), name: job.name.clone() })?;
        let (known, not): (Vec<Value>, Vec<Value>) = fates.into_iter().partition(|fate| fate["fate"] != UNKNOWN);
        if !known.is_empty() {
            known.into_iter().try_for_each(|fate| tell.line(fate))?;
            return Ok(Exit::Done);
        }
        unknown.extend(not);
    }
    unknown.into_iter().take(1).try_for_each(|fate| tell.line(fate))?;
    Ok(Exit::No)
}

/// One fate, for a person: the sentence first.
fn table(fate: &Value) -> String {
    let mut out = format!("{}\n", show::text(fate, "url"));
    let mut row = |name: &str, text: String| {
        if text != "-" && !text.is_empty() {
            out += &format!("  {name:<10}{}\n", text.chars().map(printable).collect::<String>());
        }
    };
    row("fate", format!("{}: {}", show::text(fate, "fate"), show::text(fate, "because")));
    for name in ["rule", "crawl", "heard", "via", "depth", "redirects"] {
        row(name, show::text(fate, name));
    }
    let notes: Vec<&str> = fate["notes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    row("notes", notes.join(", "));
    let last = &fate["last"];
    if last.is_object() {
        row("last", format!("{} {}", show::text(last, "time"), show::text(last, "outcome")));
    }
    if fate["failures"].as_u64().is_some_and(|failures| failures > 0) {
        row("failures", show::text(fate, "failures"));
    }
    row("next", show::text(fate, "next"));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_fate_is_a_sentence_and_its_circumstances() {
        let fate = json!({
            "crawl": "a", "url": "http://a.test/x", "fate": "visited", "because": "it answered 200", "depth": 1, "redirects": 0,
            "via": "http://a.test/", "heard": "2026-01-01T00:00:00Z", "last": { "time": "2026-01-01T00:00:01Z", "outcome": "200" },
            "failures": 0, "next": null
        });
        let table = table(&fate);
        assert!(table.starts_with("http://a.test/x\n  fate      visited: it answered 200\n"), "{table}");
        assert!(
            table.contains("  via       http://a.test/\n") && table.contains("  last      2026-01-01T00:00:01Z 200\n")
        );
        assert!(!table.contains("failures") && !table.contains("next"));
    }
}
