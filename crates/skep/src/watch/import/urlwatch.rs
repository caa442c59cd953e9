//! Jobs of urlwatch: a YAML file with one document for each.

use super::{Foreign, whole_line, xpath};
use yaml_rust2::parser::{Event, MarkedEventReceiver, Parser};
use yaml_rust2::scanner::Marker;
use yaml_rust2::{Yaml, YamlLoader};

/// What is compared here anyway.
const NEEDLESS: &[&str] = &["html2text", "strip", "striplines", "format-json", "beautify", "strip_empty_lines"];
/// What of a job says nothing about how its page is seen.
const SILENT: &[&str] =
    &["name", "url", "navigate", "filter", "note", "kind", "user_visible_url", "index_number", "tags", "enabled"];

/// Reads the jobs.
pub fn read(text: &str) -> Result<Vec<Foreign>, String> {
    let wrong = |error: yaml_rust2::ScanError| error.to_string();
    // An alias may stand for a text that has aliases in turn: a small file could become a very large one.
    let mut aliases = Aliases(false);
    Parser::new_from_str(text).load(&mut aliases, true).map_err(wrong)?;
    if aliases.0 {
        return Err("it has aliases (`*name`), which are not read; write what they stand for".into());
    }
    let documents = YamlLoader::load_from_str(text).map_err(wrong)?;
    Ok(documents.iter().flat_map(jobs).collect())
}

struct Aliases(bool);

impl MarkedEventReceiver for Aliases {
    fn on_event(&mut self, event: Event, _: Marker) {
        self.0 |= matches!(event, Event::Alias(_));
    }
}

/// A document is a job, or a list of them.
fn jobs(document: &Yaml) -> Vec<Foreign> {
    match document {
        Yaml::Array(list) => list.iter().filter_map(job).collect(),
        one => job(one).into_iter().collect(),
    }
}

fn job(job: &Yaml) -> Option<Foreign> {
    let text = |name: &str| job[name].as_str().map(str::to_owned);
    job.as_hash()?;
    let url = text("url").or(text("navigate")).unwrap_or_default();
    let mut made = Foreign { url, title: text("name"), ..Foreign::default() };
    if job["enabled"].as_bool() == Some(false) {
        made.left.push("it was switched off, and is watched now".into());
    }
    if text("navigate").is_some() {
        made.left.push("it was seen through a browser; here it is fetched as it is".into());
    }
    made.tags = match &job["tags"] {
        Yaml::Array(tags) => tags.iter().filter_map(Yaml::as_str).map(str::to_owned).collect(),
        Yaml::String(tags) => tags.split(',').map(|tag| tag.trim().to_owned()).collect(),
        _ => Vec::new(),
    };
    match &job["filter"] {
        // Once it was one text: `css:main,html2text`.
        Yaml::String(filters) => filters.split(',').for_each(|filter| {
            let (name, value) = filter.trim().split_once(':').unwrap_or((filter.trim(), ""));
            take(name, &Yaml::String(value.into()), &mut made);
        }),
        Yaml::Array(filters) => filters.iter().for_each(|filter| match filter {
            Yaml::String(name) => take(name, &Yaml::Null, &mut made),
            Yaml::Hash(fields) => {
                fields.iter().for_each(|(name, value)| take(name.as_str().unwrap_or_default(), value, &mut made))
            }
            _ => {}
        }),
        _ => {}
    }
    for (name, _) in job.as_hash().into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        if !SILENT.contains(&name) {
            made.left.push(format!("`{name}` has no counterpart here"));
        }
    }
    Some(made)
}

fn take(name: &str, value: &Yaml, made: &mut Foreign) {
    let text = |value: &Yaml| value.as_str().map(str::to_owned).or(value.as_i64().map(|number| number.to_string()));
    let part = |field: &str| text(value).or_else(|| text(&value[field]));
    let keeps = |how: &str| part(how).filter(|text| !text.is_empty());
    match name {
        "css" | "cssselect" => {
            made.keep.extend(keeps("selector"));
            made.ignore.extend(text(&value["exclude"]));
        }
        "xpath" => match keeps("path").map(|path| xpath::selector(&path).map_err(|why| (path, why))) {
            Some(Ok(selector)) => made.keep.push(selector),
            Some(Err((path, why))) => made.left.push(format!("the filter xpath {path:?}: {why}")),
            None => {}
        },
        "element-by-id" => made.keep.extend(keeps("id").map(|id| format!("#{id}"))),
        "element-by-class" => made.keep.extend(keeps("class").map(|class| format!(".{class}"))),
        "element-by-tag" => made.keep.extend(keeps("tag")),
        "grepi" => made.ignore_text.extend(keeps("re").map(|expression| whole_line("", &expression))),
        needless if NEEDLESS.contains(&needless) => {}
        other => made.left.push(format!("the filter `{other}` has no counterpart here")),
    }
}
