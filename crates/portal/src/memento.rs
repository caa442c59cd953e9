//! Memento (RFC 7089): what a capture says about itself, TimeGates and TimeMaps.

use crate::answer;
use crate::cdx::line::Line;
use crate::portal::Scope;
use crate::time;
use crate::visit::Visit;
use axum::http::{HeaderMap, header};
use skep_archive::Capture;

/// The headers of a memento: when it is from, and where the others are.
pub fn describe(headers: &mut HeaderMap, base: &str, scope: &Scope, capture: &Capture) {
    headers.insert("memento-datetime", answer::value(&time::http(capture.time_ms)));
    let (digits, date) = (time::digits(capture.time_ms), time::http(capture.time_ms));
    let (name, url) = (scope.name(), within(&capture.url));
    let own = format!("<{base}/{name}/{digits}mp_/{url}>; rel=\"memento\"; datetime=\"{date}\"; collection=\"{name}\"");
    headers.insert(header::LINK, answer::value(&format!("{}, {own}", relations(base, scope, &capture.url))));
}

/// The original, its TimeGate and its TimeMap.
pub fn relations(base: &str, scope: &Scope, url: &str) -> String {
    let (name, url) = (scope.name(), within(url));
    format!(
        "<{url}>; rel=\"original\", <{base}/{name}/{url}>; rel=\"timegate\", \
         <{base}/{name}/timemap/link/{url}>; rel=\"timemap\"; type=\"application/link-format\""
    )
}

/// A URL as it can stand between angle brackets.
pub fn within(url: &str) -> String {
    url.replace('<', "%3C").replace('>', "%3E").replace('"', "%22").replace(' ', "%20")
}

/// How a TimeMap begins: about which URL it is, and from when on.
pub fn map_head(visit: &Visit, scope: &Scope, first: &Line, url: &str) -> String {
    let (base, name, url) = (&visit.base, scope.name(), within(url));
    let from = time::http(first.capture.time_ms);
    format!(
        "<{base}/{name}/timemap/link/{url}>; rel=\"self\"; type=\"application/link-format\"; from=\"{from}\",\n\
         <{base}/{name}/{url}>; rel=\"timegate\",\n<{url}>; rel=\"original\",\n"
    )
}

/// One memento in a TimeMap.
pub fn map_line(visit: &Visit, scope: &Scope, capture: &Capture) -> String {
    let (base, name, url) = (&visit.base, scope.name(), within(&capture.url));
    let (digits, date) = (time::digits(capture.time_ms), time::http(capture.time_ms));
    format!("<{base}/{name}/{digits}mp_/{url}>; rel=\"memento\"; datetime=\"{date}\"; collection=\"{name}\"")
}
