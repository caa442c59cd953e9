//! Memento (RFC 7089): what a capture says about itself, TimeGates and TimeMaps.

use crate::answer::{self, Answer};
use crate::cdx::ask::Ask;
use crate::cdx::line::{Field, Line};
use crate::cdx::out::Text;
use crate::cdx::pywb;
use crate::find::Looking;
use crate::portal::Scope;
use crate::reply::Reply;
use crate::visit::Visit;
use crate::{missing, replay, time};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use skep_archive::cdxj::quoted;
use skep_archive::{Capture, Key};
use skep_url::{Match, Scan};
use std::ops::ControlFlow;

/// Mementos on one page of a TimeMap.
const MAP_LINES_MAX: u64 = 10_000;

/// The headers of a memento: when it is from, and where the others are.
pub fn describe(headers: &mut HeaderMap, base: &str, scope: &Scope, capture: &Capture) {
    headers.insert("memento-datetime", answer::value(&time::http(capture.time_ms)));
    let own = map_line(base, scope, capture);
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
fn within(url: &str) -> String {
    url.replace('<', "%3C").replace('>', "%3E").replace('"', "%22").replace(' ', "%20")
}

/// How a TimeMap begins: about which URL it is, and from when on.
pub fn map_head(base: &str, scope: &Scope, first: &Line, url: &str) -> String {
    let (name, url) = (scope.name(), within(url));
    let from = time::http(first.capture.time_ms);
    format!(
        "<{base}/{name}/timemap/link/{url}>; rel=\"self\"; type=\"application/link-format\"; from=\"{from}\",\n\
         <{base}/{name}/{url}>; rel=\"timegate\",\n<{url}>; rel=\"original\",\n"
    )
}

/// One memento in a TimeMap.
pub fn map_line(base: &str, scope: &Scope, capture: &Capture) -> String {
    let (name, url) = (scope.name(), within(&capture.url));
    let (digits, date) = (time::digits(capture.time_ms), time::http(capture.time_ms));
    format!("<{base}/{name}/{digits}mp_/{url}>; rel=\"memento\"; datetime=\"{date}\"; collection=\"{name}\"")
}

/// A TimeGate: to the capture nearest to the header Accept-Datetime, or the newest.
///
/// A browser is led to the page in its frame. A program gets the capture itself.
pub fn gate(look: &Looking<'_>, url: &str, visit: &Visit, reply: Reply) {
    let moment = match visit.accept_datetime.as_deref() {
        None => time::latest("9999"),
        Some(text) => time::of_http(text),
    };
    let Some(moment) = moment else {
        let told = "The header Accept-Datetime is not a date such as Sun, 26 Jan 2014 20:08:04 GMT.";
        return reply.send(answer::told(StatusCode::BAD_REQUEST, "Not a date", told));
    };
    let found = look.nearest(&Key::of(url), moment).and_then(|found| replay::pick(found, url));
    match found {
        Err(trouble) => replay::refuse(look, &trouble, reply),
        Ok(None) => reply.send(missing::page(look, url)),
        Ok(Some(capture)) => reply.send(led(look, url, visit, &capture)),
    }
}

fn led(look: &Looking<'_>, url: &str, visit: &Visit, capture: &Capture) -> Answer {
    let (scope, digits, date) = (look.scope.name(), time::digits(capture.time_ms), time::http(capture.time_ms));
    let program = visit.accept_datetime.is_some() && visit.destination.is_none();
    let modifier = if program { "id_" } else { "" };
    let mut answer = answer::redirect(StatusCode::FOUND, &format!("/{scope}/{digits}{modifier}/{url}"));
    let memento = format!("<{}/{scope}/{digits}mp_/{}>; rel=\"memento\"; datetime=\"{date}\"", visit.base, within(url));
    let headers = answer.headers_mut();
    headers.insert(header::LINK, answer::value(&format!("{}, {memento}", relations(&visit.base, look.scope, url))));
    headers.insert(header::VARY, HeaderValue::from_static("accept-datetime"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

/// A TimeMap: all captures of a URL, page by page.
pub fn map(look: &Looking<'_>, format: &str, page: usize, url: &str, visit: &Visit, reply: Reply) {
    let media_type = match format {
        "json" => "application/json",
        "cdxj" => "text/x-cdxj",
        _ => "application/link-format",
    };
    let mut head = answer::with(StatusCode::OK, media_type, "");
    head.headers_mut().insert(header::LINK, answer::value(&relations(&visit.base, look.scope, url)));
    head.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-datetime"));
    head.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    if visit.head_only {
        return reply.send(head);
    }
    let mut ask = Ask::of(Scan::of(url, Match::Exact));
    ask.limit = MAP_LINES_MAX;
    ask.offset = (page.max(1) as u64 - 1).saturating_mul(MAP_LINES_MAX);
    let text = Text::new(reply, head);
    let mut first = true;
    let result = look.answer(&ask, &|| text.is_gone(), &mut |line| {
        let told = match format {
            "json" => json_line(visit, look.scope, line, url, first),
            "cdxj" => format!(
                "{} {} {}\n",
                line.text(Field::UrlKey),
                line.text(Field::Timestamp),
                pywb::object(line, None, false)
            ),
            _ => {
                let before = if first { map_head(&visit.base, look.scope, line, url) } else { ",\n".to_owned() };
                format!("{before}{}", map_line(&visit.base, look.scope, &line.capture))
            }
        };
        first = false;
        if text.write(told.as_bytes()).is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    match result {
        Err(trouble) => {
            look.portal.note(&trouble);
            text.fail(trouble.page());
        }
        // Nothing is there: the same as for any other address that leads nowhere.
        Ok(_) if first => text.fail(answer::with(StatusCode::NOT_FOUND, media_type, "")),
        Ok(more) => {
            let next = more.map(|_| {
                let (base, name) = (&visit.base, look.scope.name());
                format!("{base}/{name}/timemap/{format}/{}/{}", page.max(1) + 1, within(url))
            });
            let end = match (format, next) {
                ("json", None) => "]}}\n".to_owned(),
                ("json", Some(next)) => {
                    let mut end = "]},\"pages\":{\"next\":{\"uri\":".to_owned();
                    quoted(&mut end, &next);
                    end + "}}}\n"
                }
                ("cdxj", _) => String::new(),
                (_, None) => "\n".to_owned(),
                (_, Some(next)) => format!(",\n<{next}>; rel=\"timemap\"; type=\"application/link-format\"\n"),
            };
            let _hung_up = text.write(end.as_bytes());
            text.end();
        }
    }
}

fn json_line(visit: &Visit, scope: &Scope, line: &Line, url: &str, first: bool) -> String {
    let (base, name) = (&visit.base, scope.name());
    let mut out = String::new();
    if first {
        out.push_str("{\"original_uri\":");
        quoted(&mut out, url);
        for (field, value) in
            [("self", format!("{base}/{name}/timemap/json/{url}")), ("timegate_uri", format!("{base}/{name}/{url}"))]
        {
            out.push_str(&format!(",\"{field}\":"));
            quoted(&mut out, &value);
        }
        out.push_str(",\"timemap_uri\":{\"link_format\":");
        quoted(&mut out, &format!("{base}/{name}/timemap/link/{url}"));
        out.push_str(",\"json_format\":");
        quoted(&mut out, &format!("{base}/{name}/timemap/json/{url}"));
        out.push_str("},\"mementos\":{\"list\":[");
    } else {
        out.push_str(",\n");
    }
    let capture = &line.capture;
    let date = skep_warc::date::rfc3339(capture.time_ms.div_euclid(1000) * 1000);
    out.push_str(&format!("{{\"datetime\":\"{date}\",\"uri\":"));
    quoted(&mut out, &format!("{base}/{name}/{}mp_/{}", time::digits(capture.time_ms), capture.url));
    out.push('}');
    out
}
