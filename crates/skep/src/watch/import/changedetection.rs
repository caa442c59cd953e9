//! Watches of changedetection.io: the file of all of them, the file of one, or a list of either.

use super::{Foreign, xpath};
use serde_json::Value;

/// What of a watch is taken over, or means nothing without being told.
const KNOWN: &[&str] = &[
    "url",
    "title",
    "page_title",
    "tag",
    "tags",
    "include_filters",
    "subtractive_selectors",
    "css_filter",
    "ignore_text",
    "time_between_check",
    "time_between_check_use_default",
    "paused",
];
/// What changes how a page is seen, so that leaving it out must be told.
const TELLING: &[&str] = &[
    "browser_steps",
    "webdriver_js_execute_code",
    "trigger_text",
    "text_should_not_be_present",
    "extract_text",
    "headers",
    "body",
    "proxy",
    "processor",
    "filter_text_added",
    "sort_text_alphabetically",
    "remove_duplicate_lines",
    "conditions",
    "notification_urls",
];

/// Reads the watches.
pub fn read(text: &str) -> Result<Vec<Foreign>, String> {
    let whole: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let tags = &whole["settings"]["application"]["tags"];
    let named = |tag: &Value| {
        let text = tag.as_str().unwrap_or_default();
        tags[text]["title"].as_str().unwrap_or(text).trim().to_owned()
    };
    let one = |watch: &Value| watch["url"].as_str().map(|url| foreign(url, watch, &named));
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

fn foreign(url: &str, watch: &Value, named: &dyn Fn(&Value) -> String) -> Foreign {
    let texts = |name: &str| -> Vec<String> {
        match &watch[name] {
            Value::Array(list) => list.iter().filter_map(Value::as_str).map(|text| text.trim().to_owned()).collect(),
            Value::String(text) => vec![text.trim().to_owned()],
            _ => Vec::new(),
        }
    };
    let filled = |list: Vec<String>| list.into_iter().filter(|text| !text.is_empty());
    let title = ["title", "page_title"].iter().find_map(|name| watch[*name].as_str()).map(str::to_owned);
    let mut made = Foreign { url: url.to_owned(), title, ..Foreign::default() };
    made.tags = match &watch["tags"] {
        Value::Array(list) => list.iter().map(named).filter(|tag| !tag.is_empty()).collect(),
        _ => texts("tag")
            .iter()
            .flat_map(|tag| tag.split(',').map(|tag| tag.trim().to_owned()))
            .filter(|tag| !tag.is_empty())
            .collect(),
    };
    for filter in filled(texts("include_filters")).chain(filled(texts("css_filter"))) {
        match selector(&filter) {
            Ok(selector) => made.keep.push(selector),
            Err(why) => made.left.push(format!("the filter {filter:?}: {why}")),
        }
    }
    for filter in filled(texts("subtractive_selectors")) {
        match selector(&filter) {
            Ok(selector) => made.ignore.push(selector),
            Err(why) => made.left.push(format!("the filter {filter:?}: {why}")),
        }
    }
    for text in filled(texts("ignore_text")) {
        made.ignore_text.push(pattern(&text));
    }
    let every = &watch["time_between_check"];
    let seconds: u64 = [("weeks", 604_800), ("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1)]
        .iter()
        .map(|(unit, seconds)| every[*unit].as_u64().unwrap_or(0).saturating_mul(*seconds))
        .fold(0, u64::saturating_add);
    made.every_ms = (seconds > 0).then(|| seconds.saturating_mul(1_000));
    let says = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.trim().is_empty() && text != "text_json_diff" && text != "system",
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    };
    for name in TELLING.iter().filter(|name| !KNOWN.contains(name) && says(&watch[**name])) {
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

/// Text to ignore: between slashes it is a regular expression.
fn pattern(text: &str) -> String {
    let expression = text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/'));
    match expression {
        Some((expression, flags)) if flags.contains('i') => format!("(?i){expression}"),
        Some((expression, _)) => expression.to_owned(),
        None => escaped(text),
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
