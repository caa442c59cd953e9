//! Structured data: the facts of a page that programs read, such as a price.

use serde_json::Value;

use crate::limits;
use crate::value;

/// Properties whose values are facts worth telling. Dates of modification are not among them: many pages state the moment of
/// the fetch.
const PROPERTIES: &[&str] = &[
    "availability",
    "datePublished",
    "endDate",
    "eventStatus",
    "highPrice",
    "isbn",
    "jobLocation",
    "lowPrice",
    "offerCount",
    "price",
    "priceCurrency",
    "releaseDate",
    "sku",
    "softwareVersion",
    "startDate",
    "validThrough",
    "version",
];

/// Names of `meta` elements that state the same.
const METAS: &[(&str, &str)] = &[
    ("product:price:amount", "price"),
    ("product:price:currency", "priceCurrency"),
    ("product:availability", "availability"),
    ("og:price:amount", "price"),
    ("og:price:currency", "priceCurrency"),
    ("og:availability", "availability"),
];

/// Facts in the order of the page: property and value.
pub type Facts = Vec<(String, String)>;

/// Reads a `script` of linked data.
pub fn script(text: &str, facts: &mut Facts) {
    if text.len() <= limits::FACTS_SCRIPT_BYTES_MAX
        && let Ok(value) = serde_json::from_str::<Value>(text.trim())
    {
        walk(&value, facts);
    }
}

fn walk(value: &Value, facts: &mut Facts) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| walk(item, facts)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::Array(_) | Value::Object(_) => walk(value, facts),
                    Value::String(text) => property(name, text, facts),
                    Value::Number(number) => property(name, &number.to_string(), facts),
                    Value::Bool(_) | Value::Null => {}
                }
            }
        }
        _ => {}
    }
}

/// Takes the value of a property in, if it is one of those that count.
pub fn property(name: &str, text: &str, facts: &mut Facts) {
    if facts.len() < limits::FACTS_MAX
        && let Some(known) = PROPERTIES.iter().find(|known| known.eq_ignore_ascii_case(name))
    {
        facts.push(((*known).to_owned(), value::collapsed(text, limits::FACT_BYTES_MAX)));
    }
}

/// The same for what a `meta` element says.
pub fn meta(name: &str, text: &str, facts: &mut Facts) {
    if let Some((_, known)) = METAS.iter().find(|(meta, _)| meta.eq_ignore_ascii_case(name)) {
        property(known, text, facts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_found_wherever_they_stand() {
        let mut facts = Facts::new();
        script(
            r#"{"@graph":[{"@type":"Product","name":"x","offers":{"price":12.5,"priceCurrency":"EUR","availability":"InStock"},
               "dateModified":"2026-01-01"}]}"#,
            &mut facts,
        );
        meta("product:price:amount", " 13 ", &mut facts);
        script("{", &mut facts);
        let found: Vec<String> = facts.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(found, ["availability=InStock", "price=12.5", "priceCurrency=EUR", "price=13"]);
    }
}
