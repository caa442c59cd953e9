//! What all pages have in common, and the small pieces of markup that many need.

use crate::answer::{self, Answer, escape};
use crate::find::Looking;
use crate::portal::{EVERYTHING, Scope};
use axum::http::{HeaderValue, StatusCode, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/').remove(b':');

/// A value in the query of an address.
pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, KEPT).to_string()
}

/// A page. `body` is markup.
pub fn page(look: &Looking<'_>, title: &str, body: &str) -> Answer {
    framing(look, title, body, None)
}

/// A page with frames that show archived pages of this origin.
pub fn framing(look: &Looking<'_>, title: &str, body: &str, frames: Option<&str>) -> Answer {
    asking(look, title, "", body, frames)
}

/// A page with a script of ours, which may ask this portal and nobody else.
pub fn scripted(look: &Looking<'_>, title: &str, body: &str, script: &'static str) -> Answer {
    whole(look, title, "", body, None, Some(script))
}

/// A page with a script of ours beside a frame that shows an archived page of this origin.
pub fn picking(look: &Looking<'_>, title: &str, body: &str, frames: &str, script: &'static str) -> Answer {
    whole(look, title, "", body, Some(frames), Some(script))
}

/// A page whose search box holds what was looked for.
pub fn asking(look: &Looking<'_>, title: &str, asked: &str, body: &str, frames: Option<&str>) -> Answer {
    whole(look, title, asked, body, frames, None)
}

fn whole(
    look: &Looking<'_>,
    title: &str,
    asked: &str,
    body: &str,
    frames: Option<&str>,
    script: Option<&'static str>,
) -> Answer {
    let (asked, shown) = (escape(asked), escape(title));
    let (within, hidden) = match look.scope {
        Scope::Everything => (String::new(), String::new()),
        Scope::Collection(name) => (
            format!("?collection={}", encoded(name)),
            format!("<input type=\"hidden\" name=\"collection\" value=\"{}\">", escape(name)),
        ),
    };
    let texts = match look.portal.text.as_ref().is_some_and(|text| text.is_kept()) {
        true => format!("<a href=\"{}\">Texts</a>", escape(&format!("/search?in=text{}", and_scope(look)))),
        false => String::new(),
    };
    let within = escape(&within);
    let run = script.map_or(String::new(), |script| format!("<script src=\"{script}\" defer></script>"));
    let page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{shown} – Skep</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <link rel=\"stylesheet\" href=\"/-/style.css\">{run}</head>\n<body><a class=\"skip\" href=\"#main\">Skip to the content</a>\
         <header class=\"top\"><a class=\"brand\" href=\"/\">Skep</a>\
         <form action=\"/search\" role=\"search\"><label class=\"unseen\" for=\"q\">A URL, a host or words of a URL</label>\
         <input id=\"q\" name=\"q\" type=\"search\" value=\"{asked}\" maxlength=\"2000\" placeholder=\"A URL, a host or words of a URL\" autocomplete=\"off\" \
         autocapitalize=\"none\" spellcheck=\"false\" required>{hidden}<button>Find</button></form>\
         <nav aria-label=\"Main\"><a href=\"/changes/live{within}\">Changes</a>{texts}<a href=\"/statistics{within}\">Statistics</a><a href=\"/files{within}\">Files</a><a href=\"/api\">API</a></nav></header>\n\
         <main id=\"main\"><h1>{shown}</h1>\n{body}</main>\n\
         <footer class=\"bottom\">An archive kept with Skep. Every page here can also be asked for through the <a href=\"/api\">API</a>.</footer></body></html>\n"
    );
    let mut answer = answer::with(StatusCode::OK, "text/html; charset=utf-8", page);
    let frames = frames.map_or(String::new(), |origin| format!("; frame-src {origin}"));
    let runs = if script.is_some() { "; script-src 'self'; connect-src 'self'" } else { "" };
    let policy = format!(
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'{frames}{runs}"
    );
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, answer::value(&policy));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

/// `&collection=NAME`, where a page is about one.
pub fn and_scope(look: &Looking<'_>) -> String {
    match look.scope {
        Scope::Everything => String::new(),
        Scope::Collection(name) => format!("&collection={}", encoded(name)),
    }
}

/// Names a collection, where a page is about one.
pub fn in_scope(look: &Looking<'_>) -> String {
    match look.scope.name() {
        EVERYTHING => String::new(),
        name => format!("<p>In the collection <strong>{}</strong>. <a href=\"/\">Everything</a></p>", escape(name)),
    }
}

/// A link; address and text are escaped.
pub fn link(address: &str, text: &str) -> String {
    format!("<a href=\"{}\">{}</a>", escape(address), escape(text))
}

/// The calendar of a URL.
pub fn calendar(look: &Looking<'_>, url: &str) -> String {
    crate::api::capture::address(&format!("/{}/*/{url}", look.scope.name()))
}

/// `1234567` → `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes as people say them.
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    let (mut value, mut unit) = (number as f64, 0);
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{number} bytes") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// A duration as people say it.
pub fn duration(seconds: i64) -> String {
    match seconds.abs() {
        0..120 => format!("{} seconds", seconds.abs()),
        s @ 120..7_200 => format!("{} minutes", s / 60),
        s @ 7_200..172_800 => format!("{} hours", s / 3_600),
        s @ 172_800..63_072_000 => format!("{} days", s / 86_400),
        s => format!("{:.1} years", s as f64 / 31_557_600.0),
    }
}

/// `2014-01-26T20:06:24Z` → `2014-01-26 20:06:24`, as the content of an element `time`.
pub fn moment(rfc3339: &str) -> String {
    let shown = rfc3339.replace('T', " ");
    format!("<time datetime=\"{rfc3339}\">{}</time>", shown.trim_end_matches('Z'))
}

/// Figures with their names.
pub fn facts(facts: &[(&str, String)]) -> String {
    let items: Vec<String> =
        facts.iter().map(|(name, value)| format!("<li><b>{}</b>{}</li>", escape(value), escape(name))).collect();
    format!("<ul class=\"facts\">{}</ul>\n", items.concat())
}

/// Where the next page is, if there is one.
pub fn more(address: Option<String>) -> String {
    address.map_or(String::new(), |address| format!("<p><a rel=\"next\" href=\"{}\">More</a></p>\n", escape(&address)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_said_as_people_say_them() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([999, 1500, 5_000_000_000].map(bytes), ["999 bytes", "1.5 kB", "5.0 GB"]);
        assert_eq!(
            [-90, 7_199, 90_000, 63_072_000].map(duration),
            ["90 seconds", "119 minutes", "25 hours", "2.0 years"]
        );
        assert_eq!(encoded("http://a/?b=c&d #e\u{e9}"), "http://a/%3Fb%3Dc%26d%20%23e%C3%A9");
    }
}
