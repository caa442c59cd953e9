//! The index as the Internet Archive's CDX server answers: `/cdx/search/cdx`.

use super::ask::{Ask, Collapse, Order, Resume};
use super::filter::{FILTERS_MAX, Filter};
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
use skep_archive::cdxj::quoted;
use skep_archive::{Key, Position};
use skep_url::{Match, Scan};
use std::ops::ControlFlow;

/// Lines of one answer at most.
const LINES_MAX: u64 = 150_000;
/// Blocks of a page, unless `pageSize` says fewer.
const PAGE_BLOCKS: u64 = 50;

const FIELDS: [&str; 7] = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"];

/// An error as text.
pub fn error(trouble: &Trouble) -> Answer {
    answer::text(trouble.status, &trouble.told)
}

fn ask(params: &Params) -> Result<Ask, Trouble> {
    let url = params.get("url").ok_or_else(|| Trouble::bad("The parameter url is needed, as in ?url=example.org"))?;
    let kind = match params.get("matchType") {
        None => Match::Exact,
        Some(name) => Match::parse(name)
            .ok_or_else(|| Trouble::bad(format!("matchType={name} is none of exact, prefix, host, domain")))?,
    };
    let mut ask = Ask::of(Scan::of(url, kind));
    ask.from_ms = params.moment("from", time::earliest)?;
    ask.to_ms = params.moment("to", time::latest)?;
    ask.offset = params.number("offset")?.map_or(0, |offset| u64::try_from(offset).unwrap_or(0));
    let limit = params.number("limit")?;
    let newest = params.is("fastLatest");
    ask.from_end = newest || limit.is_some_and(|limit| limit < 0);
    ask.limit = limit.map_or(if newest { 1 } else { LINES_MAX }, i64::unsigned_abs).min(LINES_MAX);
    let closest = params.moment("closest", time::earliest)?.filter(|_| ask.scan.kind == Match::Exact);
    if let (Some("closest") | None, Some(moment)) = (params.get("sort"), closest) {
        ask.order = Order::Closest(moment);
    }
    if params.get("sort") == Some("reverse") {
        ask.order = Order::Reverse;
    }
    ask.filters = params
        .all("filter")
        .take(FILTERS_MAX)
        .filter(|spec| !spec.is_empty())
        .map(Filter::internet_archive)
        .collect::<Result<_, _>>()?;
    for spec in params.all("collapse").take(FILTERS_MAX).filter(|spec| !spec.is_empty()) {
        ask.collapse.push(collapse(spec)?);
    }
    ask.resolve = params.is("resolveRevisits");
    ask.count_duplicates = params.is("showDupeCount");
    ask.count_skipped = params.is("showSkipCount") || params.is("lastSkipTimestamp");
    ask.after = params.get("resumeKey").map(resume).transpose()?;
    Ok(ask)
}

/// `field` or `field:N`.
pub fn collapse(spec: &str) -> Result<Collapse, Trouble> {
    let (name, count) = spec.split_once(':').map_or((spec, None), |(name, count)| (name, Some(count)));
    let count = match count {
        None => None,
        Some(text) => Some(
            text.parse::<usize>()
                .map_err(|_| Trouble::bad(format!("collapse={spec}: {text:?} is not a number of characters")))?,
        ),
    };
    match Field::of(name) {
        Field::Unknown => Err(Trouble::bad(format!("collapse={spec}: there is no field {name}"))),
        field => Ok(Collapse { fields: vec![(field, count)] }),
    }
}

/// A key to go on from, as this server writes it: `urlkey timestamp position!`; without a position, everything of that second has been told. Of
/// a site that is split it ends in ` ~place!`, because the order over many sites is that of places.
fn resume(text: &str) -> Result<Resume, Trouble> {
    // Some clients escape the key once more; one that makes sense as it is may have signs in its URL that look like that.
    let again = || percent_encoding::percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let read = read_resume(text).or_else(|| read_resume(&again()));
    read.ok_or_else(|| Trouble::bad("The resumeKey is not one that was given here"))
}

fn read_resume(text: &str) -> Option<Resume> {
    let mut parts = text.strip_suffix('!')?.split(' ');
    let (key, digits) = (parts.next()?, parts.next()?);
    if digits.len() != 14 || !digits.bytes().all(|b| b.is_ascii_digit()) || key.is_empty() {
        return None;
    }
    let (mut key, mut position) = (Key::of_surt(key), None);
    for part in parts {
        match part.strip_prefix('~') {
            Some(place) => key = key.at_place(u32::from_str_radix(place, 16).ok()?),
            None => position = Some(part.parse::<Position>().ok()?),
        }
    }
    Some(Resume { key, digits: digits.to_owned(), position })
}

/// Escaped as forms are.
fn resume_key(resume: &Resume) -> String {
    let position = resume.position.map(|position| format!(" {position}")).unwrap_or_default();
    let place = Some(resume.key.site_hash()).filter(|place| *place != Key::of_surt(resume.key.surt()).site_hash());
    let place = place.map(|place| format!(" ~{place:08x}")).unwrap_or_default();
    let text = format!("{} {}{position}{place}!", resume.key.surt(), resume.digits);
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'*' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Answers a request.
pub fn answer(look: &Looking<'_>, params: &Params, visit: &Visit, reply: Reply) {
    match prepare(look, params, &reply) {
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

fn prepare(look: &Looking<'_>, params: &Params, reply: &Reply) -> Result<Prepared, Trouble> {
    let mut ask = ask(params)?;
    let page = params.number("page")?.and_then(|page| u64::try_from(page).ok());
    let size =
        params.number("pageSize")?.filter(|size| *size > 0).map_or(PAGE_BLOCKS, i64::unsigned_abs).min(PAGE_BLOCKS);
    let pages = || -> Result<u64, Trouble> { Ok(look.blocks(&ask, &|| reply.is_gone())?.div_ceil(size).max(1)) };
    if params.is("showNumPages") {
        let mut told = answer::text(StatusCode::OK, &pages()?.to_string());
        super::out::say_silent(&mut told, ask.silent.get());
        return Ok(Prepared::Told(told));
    }
    if let Some(page) = page {
        // Whoever turns page after page stops where there is nothing at all, not even an empty list.
        if page > 0 && page >= pages()? {
            let json = params.get("output") == Some("json");
            let kind = if json { "application/json" } else { "text/plain" };
            return Ok(Prepared::Told(answer::with(StatusCode::OK, kind, "")));
        }
        ask.blocks = Some((page.saturating_mul(size), page.saturating_add(1).saturating_mul(size)));
    }
    Ok(Prepared::Ask(Box::new(ask)))
}

fn lines(look: &Looking<'_>, params: &Params, visit: &Visit, ask: &Ask, reply: Reply) {
    let json = params.get("output") == Some("json");
    let mut head = answer::with(StatusCode::OK, if json { "application/json" } else { "text/plain" }, "");
    super::open_to_all(&mut head);
    if visit.head_only {
        return reply.send(head);
    }
    let mut fields: Vec<String> = match params.get("fl") {
        Some(list) => list.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect(),
        None => FIELDS.map(str::to_owned).to_vec(),
    };
    let extra = [
        (ask.resolve, ["orig.length", "orig.offset", "orig.filename"].as_slice()),
        (ask.count_duplicates, &["dupecount"]),
        (params.is("showSkipCount"), &["skipcount"]),
        (params.is("lastSkipTimestamp"), &["endtimestamp"]),
    ];
    for (wanted, names) in extra {
        fields.extend(names.iter().filter(|_| wanted).map(|name| (*name).to_owned()));
    }
    let wanted: Vec<Field> = fields.iter().map(|name| Field::of(name)).collect();
    let text = Text::new(reply, head);
    let mut first = true;
    let result = look.answer(ask, &|| text.is_gone(), &mut |line| {
        if first {
            text.silent(ask.silent.get());
        }
        let mut told = String::new();
        if json {
            if first {
                told.push('[');
                array(&mut told, fields.iter().map(String::as_str));
            }
            told.push_str(",\n");
            row(&mut told, line, &wanted);
        } else {
            told = wanted.iter().map(|field| line.text(*field)).collect::<Vec<_>>().join(" ");
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
        Ok(more) => {
            text.silent(ask.silent.get());
            let key = more.filter(|_| params.is("showResumeKey")).map(|resume| resume_key(&resume));
            let end = match (json, first, key) {
                (true, true, _) => "[]\n".to_owned(),
                (true, false, None) => "]\n".to_owned(),
                (true, false, Some(key)) => format!(",\n[],\n[\"{key}\"]]\n"),
                (false, _, None) => String::new(),
                (false, _, Some(key)) => format!("\n{key}\n"),
            };
            let _hung_up = text.write(end.as_bytes());
            text.end();
        }
    }
}

fn row(out: &mut String, line: &Line, fields: &[Field]) {
    out.push('[');
    for (index, field) in fields.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        quoted(out, &line.text(*field));
    }
    out.push(']');
}

fn array<'a>(out: &mut String, values: impl Iterator<Item = &'a str>) {
    out.push('[');
    for (index, value) in values.enumerate() {
        if index > 0 {
            out.push(',');
        }
        quoted(out, value);
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resume_keys_come_back() {
        let keys = ["http://www.example.org/a?b=c&d", "http://www.example.org/a%252Bb+c?d=%2B+e"].map(Key::of);
        let position = Some("c41f22ab:1:17".parse().unwrap());
        let placed = keys[0].clone().at_place(7);
        for (key, position) in [
            (&keys[0], None),
            (&keys[0], position),
            (&keys[1], None),
            (&keys[1], position),
            (&placed, None),
            (&placed, position),
        ] {
            let resume_from = Resume { key: key.clone(), digits: "20140126200624".into(), position };
            let text = resume_key(&resume_from);
            assert!(text.bytes().all(|b| b.is_ascii_graphic()), "{text}");
            assert_eq!(resume(&text).unwrap(), resume_from, "escaped once more");
            let once = percent_encoding::percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
            assert_eq!(resume(&once).unwrap(), resume_from);
        }
        for wrong in ["", "!", "a b!", "a 2014!", "org,example)/ 20140126200624", "org,example)/ 20140126200624 x!"] {
            assert!(resume(wrong).is_err(), "{wrong}");
        }
    }
}
