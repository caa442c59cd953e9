//! Which of an archived answer's headers go out again. Pure.
//!
//! Every one goes out under `X-Archive-Orig-`, where no client acts on it. Under its own name goes only what describes the body:
//! cookies, redirects by `Refresh`, policies, reports, alternatives and challenges of a server of the past would act on the
//! archive's own origin today.

use crate::limits::{HEADER_BYTES_MAX, HEADERS_BYTES_MAX};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use skep_warc::http::Head;

/// Headers that describe the body and do nothing else.
const DESCRIBING: &[HeaderName] = &[header::CONTENT_TYPE, header::CONTENT_LANGUAGE, header::CONTENT_DISPOSITION];

/// Copies the headers of an archived answer. `encoded`: the body goes out with its content encoding.
pub fn hand_on(head: &Head, encoded: bool, into: &mut HeaderMap) {
    let mut room = HEADERS_BYTES_MAX;
    for field in head.fields() {
        let value = field.unfolded();
        let value = value.trim_ascii();
        let fits = value.len() <= HEADER_BYTES_MAX && room > value.len() + field.name.len();
        let (Ok(name), true) = (HeaderName::from_bytes(field.name), fits) else { continue };
        let Ok(value) = HeaderValue::from_bytes(value) else { continue };
        room -= value.len() + field.name.len();
        let describes = DESCRIBING.contains(&name) || encoded && name == header::CONTENT_ENCODING;
        if describes && !into.contains_key(&name) {
            into.insert(&name, value.clone());
        }
        if let Ok(kept) = HeaderName::from_bytes(format!("x-archive-orig-{name}").as_bytes()) {
            into.append(kept, value);
        }
    }
}

/// Headers that an answer has under its own address beside those that describe its body: what a page of that origin may do with it.
const WITHIN: &[&str] = &[
    "location",
    "vary",
    "x-frame-options",
    "content-security-policy",
    "access-control-allow-origin",
    "access-control-allow-credentials",
    "access-control-allow-methods",
    "access-control-allow-headers",
    "access-control-expose-headers",
    "timing-allow-origin",
];

/// Copies what only an answer under its own address may have.
pub fn hand_on_under_own_names(head: &Head, into: &mut HeaderMap) {
    for field in head.fields() {
        let value = field.unfolded();
        let name = HeaderName::from_bytes(field.name).ok().filter(|name| WITHIN.contains(&name.as_str()));
        let value = HeaderValue::from_bytes(value.trim_ascii()).ok().filter(|value| value.len() <= HEADER_BYTES_MAX);
        if let (Some(name), Some(value)) = (name, value) {
            into.append(name, value);
        }
    }
}

/// Whether a browser that is led to such a body would run what is in it.
pub fn is_active(media_type: &str) -> bool {
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    matches!(
        media_type.as_str(),
        "text/html"
            | "text/xml"
            | "application/xml"
            | "application/pdf"
            | "text/xsl"
            | "multipart/related"
            | "message/rfc822"
            | "application/x-shockwave-flash"
            | "multipart/x-mixed-replace"
    ) || media_type.ends_with("+xml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_describes_the_body_passes_and_the_rest_is_renamed() {
        let mut head = Head::new();
        head.parse_response(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nContent-Encoding: gzip\r\n\
              Refresh: 0;url=http://live.example/\r\nStrict-Transport-Security: max-age=1\r\nBad\x01Name: x\r\nBad: a\x00b\r\n\
              WWW-Authenticate: Basic\r\nService-Worker-Allowed: /\r\nContent-Type: text/plain\r\nFolded: a\r\n b\r\n\r\n",
            true,
        );
        let mut map = HeaderMap::new();
        hand_on(&head, false, &mut map);
        assert_eq!(map["content-type"], "text/html");
        let ours: Vec<&str> =
            map.keys().map(HeaderName::as_str).filter(|name| !name.starts_with("x-archive-orig-")).collect();
        assert_eq!(ours, ["content-type"]);
        let cookies: Vec<_> = map.get_all("x-archive-orig-set-cookie").iter().collect();
        assert_eq!(cookies, ["a=b", "c=d"]);
        assert_eq!(map["x-archive-orig-folded"], "a b");
        assert_eq!(map["x-archive-orig-refresh"], "0;url=http://live.example/");
        let mut encoded = HeaderMap::new();
        hand_on(&head, true, &mut encoded);
        assert_eq!(encoded["content-encoding"], "gzip");
    }

    #[test]
    fn active_types() {
        for active in ["text/html", "TEXT/HTML; charset=x", "image/svg+xml", "application/xhtml+xml"] {
            assert!(is_active(active), "{active}");
        }
        for passive in ["text/plain", "image/png", "", "text/css", "application/json"] {
            assert!(!is_active(passive), "{passive}");
        }
    }
}
