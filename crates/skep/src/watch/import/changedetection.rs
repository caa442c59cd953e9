//! Watches of changedetection.io: the file of all of them, the file of one, or a list of either.

use super::{Foreign, whole_line, xpath};
use serde_json::Value;

/// What changes how a page is seen, so that leaving it out must be told.
const TELLING: &[&str] = &[
    "browser_steps",
    "webdriver_js_execute_code",
    "trigger_text",
    "text_should_not_be_present",
    "extract_text",
    "headers",
    "method",
    "body",
    "proxy",
    "fetch_backend",
    "processor",
    "sort_text_alphabetically",
    "remove_duplicate_lines",
    "conditions",
    "notification_urls",
];
/// The same, where it is switched off: every watch has these.
const USUAL: &[&str] = &["filter_text_added", "filter_text_removed", "filter_text_replaced"];
/// Values that say nothing: what every watch has that nobody changed.
const PLAIN: &[&str] = &["text_json_diff", "system", "html_requests", "GET"];

/// What holds for all watches of a file.
struct Common<'f> {
    /// Groups of watches, each with a title and filters of its own.
    tags: &'f Value,
    application: &'f Value,
    every_ms: Option<u64>,
}

/// Reads the watches.
pub fn read(text: &str) -> Result<Vec<Foreign>, String> {
    let whole: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let application = &whole["settings"]["application"];
    let every_ms = interval_ms(&whole["settings"]["requests"]["time_between_check"]);
    let common = Common { tags: &application["tags"], application, every_ms };
    let one = |watch: &Value| watch["url"].as_str().map(|url| foreign(url, watch, &common));
    let all = match &whole {
        Value::Array(list) => list.iter().filter_map(one).collect(),
        Value::Object(fields) => match fields.get("watching") {
            Some(Value::Object(watching)) => watching.values().filter_map(one).collect(),
            _ => one(&whole).into_iter().collect(),
        },
        _ => Vec::new(),
    };
    Ok(all)
}

/// A list of texts, or one.
fn texts(value: &Value) -> Vec<String> {
    let all: Vec<&str> = match value {
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        Value::String(text) => vec![text],
        _ => Vec::new(),
    };
    all.into_iter().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

fn interval_ms(every: &Value) -> Option<u64> {
    let units: [(&str, u64); 5] =
        [("weeks", 604_800), ("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1)];
    let of = |(unit, seconds): &(&str, u64)| every[*unit].as_u64().unwrap_or(0).saturating_mul(*seconds);
    let seconds = units.iter().map(of).fold(0, u64::saturating_add);
    (seconds > 0).then(|| seconds.saturating_mul(1_000))
}

fn foreign(url: &str, watch: &Value, common: &Common<'_>) -> Foreign {
    let groups: Vec<&Value> = match &watch["tags"] {
        Value::Array(list) => list.iter().filter_map(Value::as_str).map(|tag| &common.tags[tag]).collect(),
        _ => Vec::new(),
    };
    // Its own, those of its groups, and those of all watches.
    let rules = |name: &str, of_all: &str| -> Vec<String> {
        let own = std::iter::once(&watch[name]).chain(groups.iter().map(|group| &group[name]));
        own.chain([&common.application[of_all]]).flat_map(texts).collect()
    };
    let named = |tag: &Value| {
        let text = tag.as_str().unwrap_or_default();
        common.tags[text]["title"].as_str().unwrap_or(text).trim().to_owned()
    };
    let title = ["title", "page_title"].iter().find_map(|name| watch[*name].as_str()).map(str::to_owned);
    let mut made = Foreign { url: url.to_owned(), title, ..Foreign::default() };
    made.tags = match &watch["tags"] {
        Value::Array(list) => list.iter().map(named).filter(|tag| !tag.is_empty()).collect(),
        _ => texts(&watch["tag"])
            .iter()
            .flat_map(|tag| tag.split(',').map(|tag| tag.trim().to_owned()))
            .filter(|tag| !tag.is_empty())
            .collect(),
    };
    for filter in rules("include_filters", "").into_iter().chain(texts(&watch["css_filter"])) {
        match selector(&filter) {
            Ok(selector) => made.keep.push(selector),
            Err(why) => made.left.push(format!("the filter {filter:?}: {why}")),
        }
    }
    for filter in rules("subtractive_selectors", "global_subtractive_selectors") {
        match selector(&filter) {
            Ok(selector) => made.ignore.push(selector),
            Err(why) => made.left.push(format!("the filter {filter:?}: {why}")),
        }
    }
    for text in rules("ignore_text", "global_ignore_text") {
        made.ignore_text.push(pattern(&text));
    }
    let own = Some(&watch["time_between_check"]).filter(|_| watch["time_between_check_use_default"] != true);
    made.every_ms = own.and_then(interval_ms).or(common.every_ms);
    let says = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.trim().is_empty() && !PLAIN.contains(&text.as_str()),
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    };
    let off = USUAL.iter().filter(|name| watch[**name] == false);
    for name in TELLING.iter().filter(|name| says(&watch[**name])).chain(off) {
        made.left.push(format!("`{name}` has no counterpart here"));
    }
    if watch["paused"] == true {
        made.left.push("it was paused, and is watched now".into());
    }
    made
}

/// A filter of theirs as a selector of ours.
fn selector(filter: &str) -> Result<String, String> {
    for prefix in ["xpath:", "xpath1:"] {
        if let Some(path) = filter.strip_prefix(prefix) {
            return xpath::selector(path);
        }
    }
    match filter {
        path if path.starts_with('/') => xpath::selector(path),
        json if json.starts_with("json:") || json.starts_with("jq:") || json.starts_with("jqraw:") => {
            Err("parts of JSON cannot be chosen; JSON is compared as text".into())
        }
        css => Ok(css.strip_prefix("css:").unwrap_or(css).to_owned()),
    }
}

/// Text to ignore, in capitals or not: between slashes it is a regular expression.
fn pattern(text: &str) -> String {
    let expression = text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/'));
    match expression {
        Some((expression, flags)) => {
            let flags: String = "imsx".chars().filter(|flag| flags.contains(*flag)).collect();
            whole_line(&flags, expression)
        }
        None => whole_line("i", &escaped(text)),
    }
}

/// Text as a regular expression that means just it.
pub fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if "\\.+*?()|[]{}^$#&-~".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
