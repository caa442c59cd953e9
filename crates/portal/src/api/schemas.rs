//! The shapes of answers, as JSON Schema. Nothing may stand in an answer that is not named here.

use crate::limits::{QUERY_CHARS_MAX, SEEDS_MAX, URL_CHARS_MAX};
use serde_json::{Map, Value, json};

/// An object with exactly these fields.
fn object(fields: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let properties: Map<String, Value> =
        fields.iter().map(|(name, shape)| ((*name).to_owned(), shape.clone())).collect();
    json!({ "type": "object", "required": names, "properties": properties, "additionalProperties": false })
}

fn list(of: Value) -> Value {
    json!({ "type": "array", "items": of })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn number() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn any_number() -> Value {
    json!({ "type": "integer" })
}

fn truth() -> Value {
    json!({ "type": "boolean" })
}

fn time() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

fn digits() -> Value {
    json!({ "type": "string", "pattern": "^[0-9]{14}$" })
}

fn one_of(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

/// What may be `null`.
fn perhaps(mut shape: Value) -> Value {
    if let Some(kind) = shape.get("type").cloned() {
        shape["type"] = json!([kind, "null"]);
    }
    shape
}

fn address() -> Value {
    json!({ "type": "string", "format": "uri-reference" })
}

/// Of what is wrong.
pub fn problem() -> Value {
    object(&[("type", text()), ("title", text()), ("status", number()), ("detail", text())])
}

/// A document of its own.
pub fn anything() -> Value {
    json!({ "type": "object" })
}

fn capture() -> Value {
    object(&[
        ("url", text()),
        ("time", time()),
        ("timestamp", digits()),
        ("kind", one_of(&["response", "revisit", "resource", "metadata", "conversion", "request", "other"])),
        ("status", perhaps(number())),
        ("media_type", perhaps(text())),
        ("digest", perhaps(text())),
        ("collection", perhaps(text())),
        ("file", text()),
        ("file_name", text()),
        ("offset", number()),
        ("length", number()),
        ("record", text()),
        ("links", object(&[("replay", address()), ("raw", address()), ("record", address()), ("file", address())])),
    ])
}

pub fn collections() -> Value {
    let collection = object(&[("name", perhaps(text())), ("files", number()), ("bytes", number())]);
    object(&[("collections", list(collection))])
}

pub fn statistics() -> Value {
    let values = || list(object(&[("value", text()), ("captures", number())]));
    object(&[
        ("counted", time()),
        ("captures", number()),
        ("urls", number()),
        ("hosts", number()),
        ("versions", number()),
        ("duplicates", number()),
        ("revisits", number()),
        ("bytes", number()),
        ("earliest", perhaps(time())),
        ("latest", perhaps(time())),
        ("by_host", values()),
        ("by_year", values()),
        ("by_type", values()),
        ("by_status", values()),
        ("silent", number()),
    ])
}

pub fn urls() -> Value {
    let hit = object(&[
        ("url", text()),
        ("captures", number()),
        ("earliest", time()),
        ("latest", time()),
        ("links", object(&[("replay", address()), ("calendar", address())])),
    ]);
    object(&[("urls", list(hit)), ("next", perhaps(text())), ("silent", number())])
}

pub fn texts() -> Value {
    let piece = object(&[("text", text()), ("found", truth())]);
    let result = object(&[
        ("url", text()),
        ("time", time()),
        ("timestamp", digits()),
        ("title", text()),
        ("passage", list(piece)),
        ("first", time()),
        ("last", time()),
        ("captures", number()),
        ("links", object(&[("replay", address()), ("calendar", address())])),
    ]);
    object(&[("results", list(result)), ("cut", truth()), ("next", perhaps(text()))])
}

pub fn url() -> Value {
    let version = object(&[
        ("digest", perhaps(text())),
        ("captures", number()),
        ("earliest", time()),
        ("latest", time()),
        ("status", perhaps(number())),
        ("media_type", perhaps(text())),
        ("also_at", list(text())),
    ]);
    object(&[
        ("url", text()),
        ("key", text()),
        ("captures_total", number()),
        ("cut", truth()),
        ("versions_total", number()),
        ("duplicates_total", number()),
        ("earliest", perhaps(time())),
        ("latest", perhaps(time())),
        ("versions", list(version)),
        ("captures", list(capture())),
        ("next", perhaps(text())),
    ])
}

pub fn completeness() -> Value {
    let counts = object(&[
        ("coherent", number()),
        ("probably_coherent", number()),
        ("violating", number()),
        ("missing", number()),
    ]);
    let part = object(&[
        ("url", text()),
        ("role", text()),
        ("class", one_of(&["coherent", "probably coherent", "violating", "missing"])),
        ("why", text()),
        ("time", perhaps(time())),
        ("apart_seconds", perhaps(any_number())),
        ("replay", perhaps(address())),
    ]);
    object(&[
        ("url", text()),
        ("time", time()),
        ("timestamp", digits()),
        ("earliest", time()),
        ("latest", time()),
        ("span_seconds", number()),
        ("complete", truth()),
        ("counts", counts),
        ("cut", truth()),
        ("parts", list(part)),
    ])
}

pub fn file() -> Value {
    object(&[
        ("file", text()),
        ("name", text()),
        ("collection", perhaps(text())),
        ("kind", text()),
        ("bytes", number()),
        ("modified", perhaps(time())),
        ("state", one_of(&["open", "closed"])),
        ("links", object(&[("captures", address()), ("download", address())])),
    ])
}

pub fn files() -> Value {
    object(&[("files", list(file())), ("next", perhaps(text()))])
}

pub fn captures_of_file() -> Value {
    object(&[("captures", list(capture())), ("next", perhaps(text()))])
}

pub fn registration() -> Value {
    let path =
        json!({ "type": "string", "minLength": 1, "description": "The whole path of the file where the portal runs" });
    let collection = json!({ "type": "string", "minLength": 1, "maxLength": QUERY_CHARS_MAX.min(100), "description": "The collection it goes to" });
    json!({
        "type": "object",
        "required": ["path", "collection"],
        "properties": { "path": path, "collection": collection, "copy": { "type": "boolean", "description": "Copy it into the archive" } },
        "additionalProperties": false,
    })
}

pub fn seeds() -> Value {
    let url = json!({ "type": "string", "minLength": 1, "maxLength": URL_CHARS_MAX, "pattern": "^https?://" });
    json!({
        "type": "object",
        "required": ["urls"],
        "properties": { "urls": { "type": "array", "items": url, "minItems": 1, "maxItems": SEEDS_MAX } },
        "additionalProperties": false,
    })
}

pub fn registered() -> Value {
    object(&[
        ("result", one_of(&["added", "there already"])),
        ("file", text()),
        ("collection", text()),
        ("records", perhaps(number())),
        ("findings", number()),
        ("links", object(&[("file", address())])),
    ])
}
