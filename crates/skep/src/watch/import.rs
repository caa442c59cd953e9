//! Watches of other programs: changedetection.io's JSON and urlwatch's YAML. What they filter by becomes rules in `settings/changes.toml`
//! where it can be; what cannot is said.

mod changedetection;
mod urlwatch;
mod xpath;

use super::Change;
use crate::failure::{Failure, Result, say};
use crate::job::{self as jobs, Exit, Tell};
use crate::owner::{self, Owned, Place};
use crate::{seeds, show};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skep_changes::SiteRules;
use skep_crawl::limits::TAGS_MAX;
use skep_crawl::{Settings, Watch};
use skep_page::limits::SITE_RULES_MAX;
use skep_page::version::Rules;
use std::collections::{BTreeSet, HashSet};
use std::io::Read;
use std::path::Path;

/// Bytes of a file of watches.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// What is not mapped is said so many times; the rest is counted.
const SAID_MAX: usize = 50;
/// The name of what is imported, if nothing else is said.
const NAME: &str = "imported";

/// One watch, as another program has it.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreign {
    /// Empty where it is about something else.
    pub url: String,
    pub title: Option<String>,
    pub tags: Vec<String>,
    pub keep: Vec<String>,
    pub ignore: Vec<String>,
    pub ignore_text: Vec<String>,
    pub every_ms: Option<u64>,
    /// What could not be understood, in words.
    pub left: Vec<String>,
}

/// As meant.
#[derive(Serialize, Deserialize)]
pub struct Job {
    name: String,
    watches: Vec<Foreign>,
    change: Change,
}

/// A pattern for all of a line in which this is found: what others ignore, they ignore line by line.
fn whole_line(flags: &str, expression: &str) -> String {
    let flags = if flags.is_empty() { String::new() } else { format!("(?{flags})") };
    format!("{flags}.*(?:{expression}).*")
}

pub fn run(file: &Path, name: Option<String>, change: Change, place: &Place) -> Result<Exit> {
    let watches = read(file)?;
    let job = Job { name: name.unwrap_or_else(|| NAME.into()), watches, change };
    let name = job.name.clone();
    let mut told = show::Collected::default();
    let exit = owner::perform(place, true, &jobs::Job::Import(Box::new(job)), &mut told)?;
    show::objects(&told.0, place.json, table)?;
    say(&format!("next: `skep watch --name {name}` begins; `settings/changes.toml` in the archive has the rules"));
    Ok(exit)
}

fn table(line: &Value) -> String {
    match line["event"].as_str() {
        Some("left") => format!("not taken over  {}: {}\n", show::text(line, "url"), show::text(line, "what")),
        _ => format!(
            "{} watches, {} with rules, as the watch {}\n",
            show::text(line, "watches"),
            show::text(line, "rules"),
            show::text(line, "name")
        ),
    }
}

/// Reads a file of either kind.
fn read(path: &Path) -> Result<Vec<Foreign>> {
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| Failure::reading(path, error))?;
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| Failure::reading(path, error))?;
    let read =
        if text.trim_start().starts_with(['{', '[']) { changedetection::read(&text) } else { urlwatch::read(&text) };
    let watches = read.map_err(|why| {
        Failure::new(format!("{} holds no watches", path.display()))
            .because(why)
            .hint("changedetection.io keeps them in url-watches.json (in its backups), urlwatch in urls.yaml")
    })?;
    match watches.iter().all(|watch| watch.url.is_empty()) {
        true => Err(Failure::new(format!("{} holds no watch of a URL", path.display()))),
        false => Ok(watches),
    }
}

pub fn perform(owned: &Owned, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    let folder = owned.archive.layout().settings();
    let (mut urls, mut ruled, mut left, mut intervals) = (Vec::new(), Vec::new(), Vec::new(), BTreeSet::new());
    let mut tags: BTreeSet<String> = job.change.tags.iter().cloned().collect();
    let mut known = HashSet::new();
    for watch in &job.watches {
        if watch.url.is_empty() {
            let name = watch.title.clone().unwrap_or_else(|| "a job without a name".into());
            left.extend(watch.left.iter().map(|what| (name.clone(), what.clone())));
            left.push((name, "it names no URL".into()));
            continue;
        }
        let url = match seeds::url(&watch.url) {
            Ok((url, credentials)) => {
                let url = url.as_str().to_owned();
                if credentials.is_some() {
                    left.push((url.clone(), "the name and the password in its address are not kept".into()));
                }
                url
            }
            Err(failure) => {
                left.push((watch.url.clone(), failure.what));
                continue;
            }
        };
        left.extend(watch.left.iter().map(|what| (url.clone(), what.clone())));
        intervals.extend(watch.every_ms);
        tags.extend(watch.tags.iter().map(|tag| tag.replace(',', " ")));
        let rules = usable(watch, &url, &mut left);
        if !(rules.keep.is_empty() && rules.ignore.is_empty() && rules.ignore_text.is_empty()) {
            ruled.push(rules);
        }
        if known.insert(url.clone()) {
            urls.push(url);
        }
    }
    let stored = Settings::load(&folder, &job.name)?;
    let is_new = stored.is_none();
    let mut settings = Settings { name: job.name.clone(), ..stored.unwrap_or_default() };
    if is_new {
        // A watch of theirs is one page.
        settings.depth = Some(0);
    }
    for seed in &settings.seeds {
        known.remove(seed);
    }
    settings.seeds.extend(urls.iter().filter(|url| known.contains(*url)).cloned());
    let mut watch = settings.watch.take().unwrap_or_default();
    if let Some(least) = intervals.first().filter(|_| watch == Watch::default()) {
        watch.every_ms = Some((*least).max(1_000));
        if intervals.len() > 1 {
            let what =
                format!("they are checked at {} different intervals; all are now at the shortest", intervals.len());
            left.push((job.name.clone(), what));
        }
    }
    tags.extend(std::mem::take(&mut watch.tags));
    job.change.apply(&mut watch)?;
    let fits = |tag: &String| Watch { tags: vec![tag.clone()], ..Watch::default() }.check().is_ok();
    let (good, odd): (Vec<String>, Vec<String>) = tags.into_iter().filter(|tag| !tag.is_empty()).partition(fits);
    let too_many = good.iter().skip(TAGS_MAX).chain(&odd);
    left.extend(too_many.map(|tag| (job.name.clone(), format!("the tag {tag:?}: it is too long, or one too many"))));
    watch.tags = good.into_iter().take(TAGS_MAX).collect();
    settings.watch = Some(watch);
    settings.check()?;
    if !ruled.is_empty() {
        skep_changes::Settings::add(&folder, &ruled)?;
    }
    settings.store(&folder)?;
    let all = left.len();
    for (url, what) in left.into_iter().take(SAID_MAX) {
        tell.line(json!({ "event": "left", "url": url, "what": what }))?;
    }
    if all > SAID_MAX {
        tell.talk(&format!("note: {} more remarks of that kind", all - SAID_MAX));
    }
    tell.line(
        json!({ "event": "imported", "name": job.name, "watches": urls.len(), "rules": ruled.len(), "left": all }),
    )?;
    Ok(if all == 0 { Exit::Done } else { Exit::Undone })
}

/// Selectors and patterns of a watch that Skep understands; the others are left, and said.
fn usable(watch: &Foreign, url: &str, left: &mut Vec<(String, String)>) -> SiteRules {
    let fits = |keep: &[String], ignore: &[String], text: &[String]| Rules::read(keep, ignore, text).map(|_| ());
    let mut part = |all: &[String], fits: &dyn Fn(&[String]) -> std::result::Result<(), String>| {
        let (good, bad): (Vec<&String>, Vec<&String>) =
            all.iter().partition(|one| fits(std::slice::from_ref(one)).is_ok());
        left.extend(bad.iter().map(|one| {
            (url.to_owned(), format!("the rule {one:?}: {}", fits(std::slice::from_ref(*one)).unwrap_err()))
        }));
        left.extend(
            good.iter()
                .skip(SITE_RULES_MAX)
                .map(|one| (url.to_owned(), format!("the rule {one:?}: there are more than {SITE_RULES_MAX}"))),
        );
        good.into_iter().take(SITE_RULES_MAX).cloned().collect::<Vec<String>>()
    };
    SiteRules {
        about: SiteRules::for_url(url),
        keep: part(&watch.keep, &|one| fits(one, &[], &[]).map_err(|error| error.to_string())),
        ignore: part(&watch.ignore, &|one| fits(&[], one, &[]).map_err(|error| error.to_string())),
        ignore_text: part(&watch.ignore_text, &|one| fits(&[], &[], one).map_err(|error| error.to_string())),
    }
}

#[cfg(test)]
mod tests;
