//! Answers that are made here: pages that say what is wrong, redirects, small texts. None tells a path of this machine.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use std::fmt::Write;

/// What goes to a client.
pub type Answer = Response<Body>;

/// Text with the characters of markup escaped.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A body with its media type.
pub fn with(status: StatusCode, media_type: &'static str, body: impl Into<Body>) -> Answer {
    let mut answer = Response::new(body.into());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    answer
}

/// Plain text, with a line end.
pub fn text(status: StatusCode, told: &str) -> Answer {
    with(status, "text/plain; charset=utf-8", format!("{told}\n"))
}

/// JSON.
pub fn json(status: StatusCode, value: &serde_json::Value) -> Answer {
    with(status, "application/json; charset=utf-8", value.to_string())
}

/// A value for a header: what cannot stand in one is escaped.
pub fn value(text: &str) -> HeaderValue {
    let mut safe = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            0x21..=0x7e => safe.push(char::from(byte)),
            b' ' => safe.push(' '),
            _ => drop(write!(safe, "%{byte:02X}")),
        }
    }
    HeaderValue::from_str(&safe).unwrap_or(HeaderValue::from_static(""))
}

/// An address for the header Location: spaces escaped as well.
pub fn location(text: &str) -> HeaderValue {
    value(&text.replace(' ', "%20"))
}

/// Sends a client elsewhere.
pub fn redirect(status: StatusCode, to: &str) -> Answer {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::LOCATION, location(to));
    answer
}

/// The style of pages that are made here: one column, light or dark as the reader has it.
const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem;color:#1d2125;background:#fff}\
h1{font-size:1.4rem}code,li{overflow-wrap:anywhere}a{color:#0b57d0}\
@media(prefers-color-scheme:dark){body{color:#e3e5e8;background:#15181b}a{color:#8ab4f8}}";

/// A page that says what is the matter. `body` is markup.
pub fn page(status: StatusCode, title: &str, body: &str) -> Answer {
    let title = escape(title);
    let page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"robots\" content=\"noindex\">\
         <style>{STYLE}</style></head><body><main><h1>{title}</h1>{body}</main></body></html>\n"
    );
    let mut answer = with(status, "text/html; charset=utf-8", page);
    let policy =
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'";
    answer.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    answer
}

/// A page with one paragraph of text.
pub fn told(status: StatusCode, title: &str, what: &str) -> Answer {
    page(status, title, &format!("<p>{}</p>", escape(what)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_its_place() {
        assert_eq!(escape("<a b=\"c\">'&\u{1}"), "&lt;a b=&quot;c&quot;&gt;&#39;&amp;\u{fffd}");
        assert_eq!(location("/web/2014/http://a/b c\r\nX: y\u{e9}"), "/web/2014/http://a/b%20c%0D%0AX:%20y%C3%A9");
    }
}
