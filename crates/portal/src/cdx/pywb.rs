//! The index as pywb answers: `/cdx` and `/COLLECTION/cdx`.

use super::ask::{Ask, Collapse, Order};
use super::filter::{FILTERS_MAX, Filter};
use super::line::{Field, Line};
use super::out::Text;
use super::params::Params;
use crate::answer::{self, Answer};
use crate::find::Looking;
use crate::memento;
use crate::reply::Reply;
use crate::time;
use crate::trouble::Trouble;
use crate::visit::Visit;
use axum::http::StatusCode;
use skep_archive::CaptureKind;
use skep_archive::cdxj::quoted;
use skep_url::{Match, Scan};
use std::ops::ControlFlow;

/// Lines without `limit`.
const LIMIT: u64 = 100_000;
/// Blocks of a page without `pageSize`.
const PAGE_BLOCKS: u64 = 10;

/// What a line tells, in order.
const FIELDS: [(&str, Field); 11] = [
    ("urlkey", Field::UrlKey),
    ("timestamp", Field::Timestamp),
    ("url", Field::Url),
    ("mime", Field::Mime),
    ("status", Field::Status),
    ("digest", Field::Digest),
    ("length", Field::Length),
    ("offset", Field::Offset),
    ("filename", Field::Filename),
    ("source", Field::Source),
    ("source-coll", Field::Collection),
];

/// What a line of plain text tells: a CDX line of eleven fields.
const TEXT_FIELDS: [Field; 11] = [
    Field::UrlKey,
    Field::Timestamp,
    Field::Url,
    Field::Mime,
    Field::Status,
    Field::Digest,
    Field::Redirect,
    Field::RobotFlags,
    Field::Length,
    Field::Offset,
    Field::Filename,
];

const ORIGINALS: [(&str, Field); 3] = [
    ("orig.length", Field::OriginalLength),
    ("orig.offset", Field::OriginalOffset),
    ("orig.filename", Field::OriginalFilename),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Cdxj,
    Json,
    Text,
    Link,
}

/// An error in the form in which pywb gives it.
pub fn error(trouble: &Trouble) -> Answer {
    let mut body = String::from("{\"message\": ");
    quoted(&mut body, &trouble.told);
    body.push('}');
    answer::with(trouble.status, "application/json; charset=utf-8", body)
}

/// The canonical name of a field, as lines have it.
fn name_of(name: &str) -> &str {
    match name {
        "original" => "url",
        "mimetype" => "mime",
        "statuscode" => "status",
        "redirecturl" => "redirect",
        other => other,
    }
}

/// What is asked.
fn ask(params: &Params) -> Result<Ask, Trouble> {
    let url = params.get("url").ok_or_else(|| Trouble::bad("The \"url\" param is required"))?;
    let kind = match params.get("matchType") {
        None => Match::Exact,
        Some(name) => Match::parse(name).ok_or_else(|| Trouble::bad(format!("Invalid match_type: {name}")))?,
    };
    let mut ask = Ask::of(Scan::of(url, kind));
    ask.from_ms = params.moment("from", time::earliest)?;
    ask.to_ms = params.moment("to", time::latest)?;
    ask.limit = match params.number("limit")? {
        None => LIMIT,
        Some(limit) if limit > 0 => limit.unsigned_abs(),
        Some(limit) => return Err(Trouble::bad(format!("limit={limit} is not a number of lines"))),
    };
    ask.order = match (params.get("sort"), params.moment("closest", time::earliest)?) {
        (Some("reverse"), _) => Order::Reverse,
        (None | Some("closest"), Some(moment)) if ask.scan.kind == Match::Exact => Order::Closest(moment),
        _ => Order::Forward,
    };
    ask.filters = params.all("filter").take(FILTERS_MAX).map(Filter::pywb).collect::<Result<_, _>>()?;
    if let Some(count) = params.number("collapseTime")?.filter(|count| *count > 0) {
        let count = usize::try_from(count).unwrap_or(14);
        ask.collapse = vec![Collapse { fields: vec![(Field::Timestamp, Some(count)), (Field::Status, None)] }];
    }
    ask.resolve = params.is("resolveRevisits");
    Ok(ask)
}

/// Answers a request.
pub fn answer(look: &Looking<'_>, params: &Params, visit: &Visit, reply: Reply) {
    let result = prepare(look, params, visit, &reply);
    match result {
        Err(trouble) => {
            look.portal.note(&trouble);
            reply.send(error(&trouble));
        }
        Ok(Prepared::Told(answer)) => reply.send(answer),
        Ok(Prepared::Ask(ask)) => lines(look, params, visit, &ask, reply),
    }
}

enum Prepared {
    Told(Answer),
    Ask(Box<Ask>),
}

/// What is asked, with its page worked out.
fn prepare(look: &Looking<'_>, params: &Params, visit: &Visit, reply: &Reply) -> Result<Prepared, Trouble> {
    let mut ask = ask(params)?;
    let page = params.number("page")?;
    if page.is_none() && !params.is("showNumPages") {
        return Ok(Prepared::Ask(Box::new(ask)));
    }
    let size = params.number("pageSize")?.filter(|size| *size > 0).map_or(PAGE_BLOCKS, i64::unsigned_abs);
    let blocks = look.blocks(&ask, &|| reply.is_gone())?;
    let pages = blocks.div_ceil(size);
    if params.is("showNumPages") {
        let told = format!("{{\"pages\": {pages}, \"pageSize\": {size}, \"blocks\": {blocks}}}");
        let mut told = answer::with(StatusCode::OK, form(params, visit).media_type(), told);
        super::out::say_silent(&mut told, ask.silent.get());
        return Ok(Prepared::Told(told));
    }
    let page = page.unwrap_or(0);
    let last = pages.saturating_sub(1);
    let Some(page) = u64::try_from(page).ok().filter(|page| *page <= last) else {
        return Err(Trouble::bad(format!("Page {page} invalid: First Page is 0, Last Page is {last}")));
    };
    ask.blocks = Some((page.saturating_mul(size), (page + 1).saturating_mul(size)));
    Ok(Prepared::Ask(Box::new(ask)))
}

fn form(params: &Params, _visit: &Visit) -> Form {
    match params.get("output") {
        Some("json") => Form::Json,
        Some("text") => Form::Text,
        Some("link") => Form::Link,
        _ => Form::Cdxj,
    }
}

impl Form {
    fn media_type(self) -> &'static str {
        match self {
            Form::Cdxj => "text/x-cdxj",
            Form::Json => "text/x-ndjson",
            Form::Text => "text/plain",
            Form::Link => "application/link-format",
        }
    }
}

fn lines(look: &Looking<'_>, params: &Params, visit: &Visit, ask: &Ask, reply: Reply) {
    let form = form(params, visit);
    let mut head = answer::with(StatusCode::OK, form.media_type(), "");
    super::open_to_all(&mut head);
    if visit.head_only {
        return reply.send(head);
    }
    let wanted: Option<Vec<(String, Field)>> = params.get("fields").or_else(|| params.get("fl")).map(|list| {
        list.split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(|name| (name_of(name).to_owned(), Field::of(name)))
            .collect()
    });
    let text = Text::new(reply, head);
    let mut first = true;
    let result = look.answer(ask, &|| text.is_gone(), &mut |line| {
        if first {
            text.silent(ask.silent.get());
        }
        let told = match form {
            Form::Cdxj => format!(
                "{} {} {}\n",
                line.text(Field::UrlKey),
                line.text(Field::Timestamp),
                object(line, wanted.as_deref(), false)
            ),
            Form::Json => format!("{}\n", object(line, wanted.as_deref(), true)),
            Form::Text => plain(line, wanted.as_deref()),
            Form::Link => {
                let before = if first {
                    memento::map_head(&visit.base, look.scope, line, params.get("url").unwrap_or_default())
                } else {
                    ",\n".to_owned()
                };
                format!("{before}{}", memento::map_line(&visit.base, look.scope, &line.capture))
            }
        };
        first = false;
        match text.write(told.as_bytes()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    match result {
        Ok(_) => {
            text.silent(ask.silent.get());
            if form == Form::Link && !first {
                let _hung_up = text.write(b"\n");
            }
            text.end();
        }
        Err(trouble) => {
            look.portal.note(&trouble);
            text.fail(error(&trouble));
        }
    }
}

/// A line's fields as an object.
pub fn object(line: &Line, wanted: Option<&[(String, Field)]>, with_key: bool) -> String {
    let mut out = String::from("{");
    let mut put = |name: &str, field: Field| {
        let of_original = matches!(field, Field::OriginalLength | Field::OriginalOffset | Field::OriginalFilename);
        let value = match line.get(field) {
            Some(value) => value,
            // What was asked for and is not known is said; other fields are simply not there.
            None if of_original && line.resolved => super::line::NOTHING.into(),
            None => return,
        };
        // A revisit has the status of its original only where it was indexed with one, which here it never is.
        let untold = field == Field::Status && line.capture.kind == CaptureKind::Revisit;
        if untold || !with_key && matches!(field, Field::UrlKey | Field::Timestamp) {
            return;
        }
        if out.len() > 1 {
            out.push_str(", ");
        }
        quoted(&mut out, name);
        out.push_str(": ");
        quoted(&mut out, &value);
    };
    match wanted {
        Some(wanted) => wanted.iter().for_each(|(name, field)| put(name, *field)),
        None => {
            FIELDS.iter().for_each(|(name, field)| put(name, *field));
            ORIGINALS.iter().filter(|_| line.resolved).for_each(|(name, field)| put(name, *field));
        }
    }
    out.push('}');
    out
}

fn plain(line: &Line, wanted: Option<&[(String, Field)]>) -> String {
    let values: Vec<_> = match wanted {
        Some(wanted) => wanted.iter().map(|(_, field)| line.text(*field)).collect(),
        None => TEXT_FIELDS.iter().map(|field| line.text(*field)).collect(),
    };
    format!("{}\n", values.join(" "))
}
