//! The index as OutbackCDX answers: `/COLLECTION?url=`.

use super::ask::{Ask, Order};
use super::filter::{FILTERS_MAX, Filter};
use super::internet_archive::collapse;
use super::line::{Field, Line};
use super::out::Text;
use super::params::Params;
use crate::answer::{self, Answer};
use crate::find::Looking;
use crate::reply::Reply;
use crate::time;
use crate::trouble::Trouble;
use crate::visit::Visit;
use axum::http::StatusCode;
use skep_archive::Key;
use skep_archive::cdxj::quoted;
use skep_url::{Match, Scan};
use std::ops::ControlFlow;

const FIELDS: &str =
    "urlkey,timestamp,original,mimetype,statuscode,digest,redirecturl,robotflags,length,offset,filename";

/// An error as text.
pub fn error(trouble: &Trouble) -> Answer {
    answer::text(trouble.status, &trouble.told)
}

fn scan(params: &Params) -> Result<Scan, Trouble> {
    let named = params.get("matchType").map(str::to_ascii_lowercase);
    let kind = match named.as_deref() {
        None | Some("default" | "exact" | "range") => Match::Exact,
        Some(name) => Match::parse(name)
            .ok_or_else(|| Trouble::bad(format!("matchType={name} is none of exact, prefix, host, domain, range")))?,
    };
    match (params.get("url"), params.get("urlkey")) {
        (Some(url), None) => {
            let mut scan = Scan::of(url, kind);
            if named.as_deref() == Some("range") {
                scan = from_here_on(&scan.start);
            }
            Ok(scan)
        }
        (None, Some(key)) => Ok(match kind {
            _ if named.as_deref() == Some("range") => from_here_on(key),
            Match::Exact => exact(key),
            _ => below(key, kind),
        }),
        _ => Err(Trouble::bad("exactly one of 'url' or 'urlkey' is required")),
    }
}

fn exact(key: &str) -> Scan {
    let site_hash = Some(Key::of_surt(key).site_hash());
    Scan { start: key.to_owned(), end: key.to_owned(), site_hash, kind: Match::Exact }
}

/// Every key from this one on, within its site, where the order of keys is that of text.
fn from_here_on(key: &str) -> Scan {
    let site_hash = Some(Key::of_surt(key).site_hash());
    Scan { start: key.to_owned(), end: "\u{7f}".to_owned(), site_hash, kind: Match::Prefix }
}

fn below(key: &str, kind: Match) -> Scan {
    let host = key.split(')').next().unwrap_or(key);
    let (start, end) = match kind {
        Match::Host => (format!("{host})/"), format!("{host}*")),
        Match::Domain => (format!("{host})/"), format!("{host}-")),
        _ => (key.to_owned(), format!("{key}\u{7f}")),
    };
    Scan { start, end, site_hash: Some(Key::of_surt(key).site_hash()), kind }
}

fn ask(params: &Params) -> Result<Ask, Trouble> {
    let mut ask = Ask::of(scan(params)?);
    let exact = ask.scan.kind == Match::Exact;
    ask.from_ms = params.moment("from", time::earliest)?;
    ask.to_ms = params.moment("to", time::latest)?;
    let closest = params.moment("closest", time::earliest)?;
    let sort = params.get("sort").map(str::to_ascii_lowercase);
    ask.order = match (sort.as_deref(), closest) {
        (Some("closest"), Some(moment)) if exact => Order::Closest(moment),
        (Some("closest"), Some(_)) => {
            return Err(Trouble::bad("sort=closest is currently only implemented for exact matches"));
        }
        // Some clients ask for the closest to nothing.
        (Some("closest") | None | Some("default"), _) => Order::Forward,
        (Some("reverse"), _) => Order::Reverse,
        (Some(other), _) => return Err(Trouble::bad(format!("sort={other} is none of closest, reverse"))),
    };
    ask.limit = match params.number("limit")? {
        None => u64::MAX,
        Some(limit) => {
            u64::try_from(limit).map_err(|_| Trouble::bad(format!("limit={limit} is not a number of lines")))?
        }
    };
    ask.filters = params
        .all("filter")
        .take(FILTERS_MAX)
        .filter(|spec| !spec.is_empty())
        .map(Filter::outback)
        .collect::<Result<_, _>>()?;
    if let Some(spec) = params.get("collapseToFirst").or_else(|| params.get("collapse")) {
        ask.collapse = vec![collapse(spec)?];
    } else if let Some(spec) = params.get("collapseToLast") {
        (ask.collapse, ask.keep_last) = (vec![collapse(spec)?], true);
    }
    let fields = params.get("fl").unwrap_or(FIELDS);
    ask.resolve = ["originalLength", "originalOffset", "originalFilename"].iter().any(|name| fields.contains(name));
    Ok(ask)
}

/// Answers a request.
pub fn answer(look: &Looking<'_>, params: &Params, visit: &Visit, reply: Reply) {
    let ask = match ask(params) {
        Ok(ask) => ask,
        Err(trouble) => return reply.send(error(&trouble)),
    };
    let (json, objects) = (params.get("output") == Some("json"), params.get("output") == Some("jsondict"));
    let media_type = if json || objects { "application/json" } else { "text/plain" };
    let mut head = answer::with(StatusCode::OK, media_type, "");
    super::open_to_all(&mut head);
    head.headers_mut().insert("outbackcdx-urlkey", answer::value(&ask.scan.start));
    if visit.head_only {
        return reply.send(head);
    }
    let fields: Vec<(String, Field)> = params
        .get("fl")
        .unwrap_or(FIELDS)
        .split(',')
        .map(|name| (name.trim().to_owned(), Field::of(name.trim())))
        .collect();
    if let Some((unknown, _)) = fields.iter().find(|(_, field)| *field == Field::Unknown) {
        return reply.send(error(&Trouble::bad(format!("no such field: {unknown}"))));
    }
    let text = Text::new(reply, head);
    let mut first = true;
    let result = look.answer(&ask, &|| text.is_gone(), &mut |line| {
        if first {
            text.silent(ask.silent.get());
        }
        let mut told = String::new();
        if json || objects {
            told.push(if first { '[' } else { ',' });
            element(&mut told, line, &fields, objects);
        } else {
            told = fields.iter().map(|(_, field)| line.text(*field)).collect::<Vec<_>>().join(" ");
            told.push('\n');
        }
        first = false;
        match text.write(told.as_bytes()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    match result {
        Err(trouble) => {
            look.portal.note(&trouble);
            text.fail(error(&trouble));
        }
        Ok(_) => {
            text.silent(ask.silent.get());
            if json || objects {
                let _hung_up = text.write(if first { b"[]".as_slice() } else { b"]" });
            }
            text.end();
        }
    }
}

/// One line as an array or an object; numbers are numbers.
fn element(out: &mut String, line: &Line, fields: &[(String, Field)], object: bool) {
    out.push(if object { '{' } else { '[' });
    for (index, (name, field)) in fields.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        if object {
            quoted(out, name);
            out.push(':');
        }
        match line.get(*field) {
            Some(value) if field.is_number() => out.push_str(&value),
            None if field.is_number() => out.push('0'),
            value => quoted(out, &value.unwrap_or(super::line::NOTHING.into())),
        }
    }
    out.push(if object { '}' } else { ']' });
}
