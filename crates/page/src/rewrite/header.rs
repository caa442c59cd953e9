//! The fields in the head of an answer that a replay passes on, changes or keeps to itself.

use super::{Place, link};
use crate::refresh;

/// What becomes of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    /// It is sent as it is.
    Keep,
    /// It is about the connection, the origin or the body as they were, and would mean something else now.
    Drop,
    /// It is sent with another value.
    Value(String),
}

/// Fields that a replay keeps to itself, in lower case. Those of the body's length, coding and digest are the server's to send.
const DROPPED: &[&str] = &[
    "accept-ch",
    "accept-ranges",
    "access-control-allow-credentials",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "access-control-max-age",
    "age",
    "alt-svc",
    "alternate-protocol",
    "attribution-reporting-register-source",
    "attribution-reporting-register-trigger",
    "cache-control",
    "clear-site-data",
    "connection",
    "content-encoding",
    "content-length",
    "content-md5",
    "content-security-policy",
    "content-security-policy-report-only",
    "critical-ch",
    "cross-origin-embedder-policy",
    "cross-origin-embedder-policy-report-only",
    "cross-origin-opener-policy",
    "cross-origin-opener-policy-report-only",
    "cross-origin-resource-policy",
    "digest",
    "etag",
    "expect-ct",
    "expires",
    "feature-policy",
    "keep-alive",
    "link",
    "nel",
    "observe-browsing-topics",
    "origin-agent-cluster",
    "origin-trial",
    "p3p",
    "permissions-policy",
    "pragma",
    "proxy-authenticate",
    "proxy-connection",
    "public-key-pins",
    "public-key-pins-report-only",
    "referrer-policy",
    "report-to",
    "reporting-endpoints",
    "server-timing",
    "service-worker-allowed",
    "set-cookie",
    "set-cookie2",
    "set-login",
    "sourcemap",
    "speculation-rules",
    "status",
    "strict-transport-security",
    "supports-loading-mode",
    "timing-allow-origin",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "use-as-dictionary",
    "vary",
    "via",
    "want-digest",
    "www-authenticate",
    "x-content-security-policy",
    "x-dns-prefetch-control",
    "x-frame-options",
    "x-sourcemap",
    "x-webkit-csp",
    "x-xss-protection",
];

/// What becomes of a field of an archived answer.
pub fn field(place: &Place<'_>, modifier: &str, name: &str, value: &str) -> Field {
    let name = name.to_ascii_lowercase();
    let replayed = |reference: &str| link(place, modifier, reference);
    match name.as_str() {
        "location" | "content-location" => replayed(value).map_or(Field::Drop, Field::Value),
        "refresh" => match refresh::reference(value) {
            Some(reference) => match replayed(reference) {
                Some(address) => {
                    let from = reference.as_ptr() as usize - value.as_ptr() as usize;
                    let address = address.replace('\'', "%27");
                    Field::Value([&value[..from], &address, &value[from + reference.len()..]].concat())
                }
                None => Field::Drop,
            },
            None => Field::Keep,
        },
        name if DROPPED.binary_search(&name).is_ok() => Field::Drop,
        _ => Field::Keep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_fields_are_in_order() {
        assert!(DROPPED.is_sorted());
    }
}
