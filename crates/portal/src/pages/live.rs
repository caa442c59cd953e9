//! The stream of changes as it runs. Without a script the page shows what happened last; with ours the rest comes by itself.

use super::event;
use super::frame::{self, and_scope, count, encoded, in_scope, link};
use crate::answer::{Answer, escape};
use crate::cdx::params::Params;
use crate::changes::{everywhere, filter, may_see, trouble};
use crate::elsewhere::Elsewhere;
use crate::find::Looking;
use crate::limits::{LIVE_LOOKED_MAX, LIVE_OVERLAP_MS, LIVE_ROWS, QUERY_CHARS_MAX};
use crate::portal::Scope;
use crate::trouble::Trouble;
use crate::visit::Visit;
use axum::http::StatusCode;
use skep_changes::Filter;
use skep_page::compare::{Class, Classes};
use skep_warc::date;
use std::ops::ControlFlow;

/// What can be chosen: the value of the parameter, and what it is called.
const CLASSES: &[(&str, &str)] = &[
    ("", "everything but noise"),
    ("text", "text"),
    ("new", "new pages"),
    ("gone,returned,moved", "gone, returned, moved"),
    ("links", "links"),
    ("data", "structured data and files"),
    ("meta", "titles and the like"),
    ("host", "whole hosts"),
    ("all", "everything, noise too"),
];
const SHARES: &[(&str, &str)] = &[("", "any"), ("0.01", "1 %"), ("0.05", "5 %"), ("0.2", "20 %"), ("0.5", "50 %")];

/// What is wanted, as typed; it goes into the form and into the address of the stream.
struct Wanted<'p> {
    host: &'p str,
    prefix: &'p str,
    class: &'p str,
    min_change: &'p str,
    mime: &'p str,
    watch: &'p str,
}

impl<'p> Wanted<'p> {
    fn of(params: &'p Params) -> Wanted<'p> {
        let text = |name: &str| params.get(name).unwrap_or_default().trim();
        Wanted {
            host: text("host"),
            prefix: text("prefix"),
            class: text("class"),
            min_change: text("min_change"),
            mime: text("mime"),
            watch: text("watch"),
        }
    }

    fn query(&self) -> String {
        let pairs = [
            ("host", self.host),
            ("prefix", self.prefix),
            ("class", self.class),
            ("min_change", self.min_change),
            ("mime", self.mime),
            ("watch", self.watch),
        ];
        let given = pairs.iter().filter(|(_, value)| !value.is_empty());
        given.map(|(name, value)| format!("&{name}={}", encoded(value))).collect()
    }
}

/// The page.
pub fn page(look: &Looking<'_>, params: &Params, _: &Visit) -> Result<Answer, Trouble> {
    let wanted = Wanted::of(params);
    let mut body = in_scope(look);
    body.push_str(&links(look));
    body.push_str(&form(look, &wanted));
    let wrong = |told: &str, mut body: String| {
        body.push_str(&format!("<p class=\"wrong\">{}</p>\n", escape(told)));
        let mut answer = frame::page(look, "Changes, live", &body);
        *answer.status_mut() = StatusCode::BAD_REQUEST;
        Ok(answer)
    };
    let filter = match filter(params) {
        Ok(filter) => filter,
        Err(trouble) => return wrong(&trouble.told, body),
    };
    let query = wanted.query();
    let told = match look.others() {
        Some(others) => told_by_all(look, others, &query, params.number("until")?)?,
        None => {
            let before = params.number("before")?.and_then(|number| u64::try_from(number).ok());
            let changes = &look.portal.hub.changes;
            changes.follow(&look.portal.archive, look.now_ms, &mut |_| ()).map_err(trouble)?;
            told(look, before, &filter)?
        }
    };
    // Only the newest page goes on by itself, and only a stream of everything is that of a collection.
    let is_live = params.get("before").or(params.get("until")).is_none() && *look.scope == Scope::Everything;
    let again = format!("/changes/live?{}", query.trim_start_matches('&'));
    body.push_str(&format!(
        "<p id=\"state\" class=\"soft\" role=\"status\">{}</p>\n",
        match is_live {
            true => format!("As it was when this page was made. {}", link(&again, "Look again")),
            false => link(&again, "The newest changes"),
        }
    ));
    body.push_str(&format!(
        "<ol id=\"changes\" class=\"changes\" data-stream=\"/changes?{}{}\" data-seen=\"{}\" data-wanted=\"{}\" \
         data-rows=\"{LIVE_ROWS}\">{}</ol>\n",
        told.stream,
        escape(&query),
        told.seen.trim_start(),
        names(filter.wanted(), " "),
        told.rows
    ));
    if told.rows.is_empty() {
        body.push_str("<p id=\"none\">Nothing of that kind happened so far.</p>\n");
    }
    if told.silent > 0 {
        body.push_str(&format!("<p>No node answered for {} parts of the archive.</p>\n", count(told.silent as u64)));
    }
    let older = told.next.map(|place| format!("/changes/live?{place}{}{query}", and_scope(look)));
    body.push_str(&older.map_or(String::new(), |older| format!("<p>{}</p>\n", link(&older, "Older"))));
    match is_live {
        true => Ok(frame::scripted(look, "Changes, live", &body, "/-/live.js")),
        false => Ok(frame::page(look, "Changes", &body)),
    }
}

#[derive(Default)]
struct Told {
    rows: String,
    /// Where the page of those before them begins.
    next: Option<String>,
    /// Where the stream of what comes begins.
    stream: String,
    /// By what they are known again, where the stream may tell of them once more.
    seen: String,
    /// Parts of a network for which nobody answered.
    silent: usize,
}

/// The newest of what all nodes of a network tell.
fn told_by_all(
    look: &Looking<'_>,
    others: &dyn Elsewhere,
    query: &str,
    until_ms: Option<i64>,
) -> Result<Told, Trouble> {
    let all = everywhere::newest(look, others, query, until_ms)?;
    let since = date::rfc3339(look.now_ms.saturating_sub(LIVE_OVERLAP_MS));
    let stream = format!("nodes=all&amp;since={since}");
    let mut told = Told { stream, silent: all.silent, ..Told::default() };
    let mut last_ms = None;
    for kept in all.events.iter().filter_map(everywhere::Told::kept) {
        told.rows.push_str(&event::item(look, &kept));
        let (time, classes) = (date::rfc3339(kept.time_ms), names(kept.classes, ","));
        told.seen.push_str(&format!(" {}|{time}|{classes}", kept.key_text()));
        last_ms = Some(kept.time_ms);
    }
    told.next = last_ms.filter(|_| all.cut).map(|last_ms| format!("until={last_ms}"));
    Ok(told)
}

fn told(look: &Looking<'_>, before: Option<u64>, filter: &Filter) -> Result<Told, Trouble> {
    let portal = look.portal;
    let newest = portal.hub.changes.newest(&portal.archive).map_err(trouble)?;
    let (mut told, mut count, mut last) = (Told { stream: format!("since={newest}"), ..Told::default() }, 0, 0);
    let mut next = None;
    let cut = portal.hub.changes.newest_first(&portal.archive, before, LIVE_LOOKED_MAX, filter, |cursor, kept| {
        if !look.scope.holds_position(kept.record(), portal) || !may_see(portal, look.may, look.now_ms, kept) {
            return ControlFlow::Continue(());
        }
        if count == LIVE_ROWS {
            next = Some(last);
            return ControlFlow::Break(());
        }
        (count, last) = (count + 1, cursor.number);
        told.rows.push_str(&event::item(look, kept));
        ControlFlow::Continue(())
    });
    // Those who look for something rare go on from where looking stopped.
    if cut.map_err(trouble)? && next.is_none() {
        next = before.unwrap_or(newest.number + 1).checked_sub(LIVE_LOOKED_MAX as u64);
    }
    told.next = next.map(|number| format!("before={number}"));
    Ok(told)
}

fn names(classes: Classes, between: &str) -> String {
    classes.iter().map(Class::name).collect::<Vec<_>>().join(between)
}

/// Where else changes are told.
pub fn links(look: &Looking<'_>) -> String {
    let scope = and_scope(look);
    let scope = scope.trim_start_matches('&');
    let within = if scope.is_empty() { String::new() } else { format!("?{scope}") };
    format!(
        "<p>{} · {} · {} · {} · {}</p>\n",
        link(&format!("/changes/live{within}"), "Live"),
        link(&format!("/changes/day{within}"), "Today, site by site"),
        link(&format!("/changes/feed.atom{within}"), "Feed"),
        link("/watches", "Watches"),
        link("/freshness", "How fresh it is"),
    )
}

fn form(look: &Looking<'_>, wanted: &Wanted<'_>) -> String {
    let hidden = match look.scope {
        Scope::Everything => String::new(),
        Scope::Collection(name) => format!("<input type=\"hidden\" name=\"collection\" value=\"{}\">", escape(name)),
    };
    let choice = |name: &str, label: &str, choices: &[(&str, &str)], chosen: &str| {
        let mut out = format!("<label>{label} <select name=\"{name}\">");
        for (value, called) in choices {
            let selected = if *value == chosen { " selected" } else { "" };
            out.push_str(&format!("<option value=\"{value}\"{selected}>{called}</option>"));
        }
        if !choices.iter().any(|(value, _)| *value == chosen) {
            out.push_str(&format!("<option value=\"{0}\" selected>{0}</option>", escape(chosen)));
        }
        out + "</select></label> "
    };
    format!(
        "<form class=\"filters\" action=\"/changes/live\">{hidden}\
         <label>Host <input name=\"host\" value=\"{}\" maxlength=\"{QUERY_CHARS_MAX}\" placeholder=\"any, or *.example.org\" autocapitalize=\"none\" \
         spellcheck=\"false\"></label> <label>URL begins with <input name=\"prefix\" value=\"{}\" maxlength=\"2000\" placeholder=\"anything\" \
         autocapitalize=\"none\" spellcheck=\"false\"></label> {}{}<label>Type <input name=\"mime\" value=\"{}\" maxlength=\"100\" \
         placeholder=\"any, or image/*\" autocapitalize=\"none\" spellcheck=\"false\"></label> <label>Watch <input name=\"watch\" value=\"{}\" \
         maxlength=\"100\" placeholder=\"any\" autocapitalize=\"none\" spellcheck=\"false\"></label> <button>Filter</button></form>\n",
        escape(wanted.host),
        escape(wanted.prefix),
        choice("class", "What", CLASSES, wanted.class),
        choice("min_change", "At least", SHARES, wanted.min_change),
        escape(wanted.mime),
        escape(wanted.watch),
    )
}
