//! `/changes/feed.atom`: what happened last, for feed readers; filtered as the stream is. An entry's id is made of the key of its event and the
//! archive's own, so that one that is told again, by whichever log, is the same entry.

use super::event::{gist, percent};
use super::frame::{and_scope, encoded};
use crate::answer::{self, Answer};
use crate::cdx::params::Params;
use crate::changes::{filter, may_see, trouble};
use crate::find::Looking;
use crate::limits::{FEED_ENTRIES, LIVE_LOOKED_MAX};
use crate::trouble::Trouble;
use crate::visit::Visit;
use axum::http::{HeaderValue, StatusCode, header};
use skep_changes::{Event, Filter};
use skep_warc::date;
use std::fmt::Write;
use std::ops::ControlFlow;

const ATOM: &str = "application/atom+xml; charset=utf-8";
const NAMES: &[&str] = &["host", "prefix", "class", "min_change", "mime", "watch", "collection"];

/// The feed.
pub fn page(look: &Looking<'_>, params: &Params, visit: &Visit) -> Result<Answer, Trouble> {
    if let Some(name) = params.names().find(|name| !NAMES.contains(name)) {
        return Err(Trouble::bad(format!("there is no parameter {name:?}; there are {}", NAMES.join(", "))));
    }
    let filter = filter(params)?;
    let (portal, changes) = (look.portal, &look.portal.hub.changes);
    changes.follow(&portal.archive, look.now_ms, &mut |_| ()).map_err(trouble)?;
    let mut events = Vec::new();
    let read = changes.newest_first(&portal.archive, None, LIVE_LOOKED_MAX, &filter, |_, kept| {
        if look.scope.holds_position(kept.key, portal) && may_see(portal, look.may, look.now_ms, kept) {
            events.extend(kept.event());
        }
        if events.len() < FEED_ENTRIES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    read.map_err(trouble)?;
    let mut answer = answer::with(StatusCode::OK, ATOM, write(look, visit, &filter, &events));
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
    Ok(answer)
}

fn write(look: &Looking<'_>, visit: &Visit, filter: &Filter, events: &[Event]) -> String {
    let archive = look.portal.archive.writer();
    let base = &visit.base;
    let query = visit.target.split_once('?').map_or("", |(_, query)| query);
    let of = [&filter.watch, &filter.host, &filter.prefix].into_iter().flatten().next();
    let of = of.map_or(String::new(), |of| format!(" of {of}"));
    // A feed without entries has always been as it is.
    let updated = date::rfc3339(events.iter().map(|event| event.time_ms).max().unwrap_or(0));
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n\
         <title>Changes{}</title>\n<id>urn:skep:{archive}:changes?{}</id>\n<updated>{updated}</updated>\n\
         <author><name>Skep</name></author>\n\
         <link rel=\"self\" type=\"application/atom+xml\" href=\"{}\"/>\n\
         <link rel=\"alternate\" type=\"text/html\" href=\"{}\"/>\n",
        xml(&of),
        xml(query),
        xml(&format!("{base}{}", visit.target)),
        xml(&format!("{base}/changes/live?{query}")),
    );
    for event in events {
        let history = format!("{base}/history?url={}{}", encoded(&event.url), and_scope(look));
        let time = date::rfc3339(event.time_ms);
        let _in_memory = write!(
            out,
            "<entry>\n<id>urn:skep:{archive}:{}</id>\n<title>{}</title>\n<updated>{time}</updated>\n\
             <link rel=\"alternate\" type=\"text/html\" href=\"{}\"/>\n<link rel=\"related\" href=\"{}\"/>\n",
            event.key,
            xml(&title(event)),
            xml(&history),
            xml(&event.url),
        );
        for class in event.classes.iter() {
            let _in_memory = writeln!(out, "<category term=\"{}\"/>", class.name());
        }
        let _in_memory = writeln!(out, "<summary>{}</summary>\n</entry>", xml(gist(event).unwrap_or_default()));
    }
    out.push_str("</feed>\n");
    out
}

fn title(event: &Event) -> String {
    let classes: Vec<&str> = event.classes.iter().map(|class| class.name()).collect();
    let share = if event.share > 0 { format!(" {}", percent(event.share)) } else { String::new() };
    let title = event.details.meta.as_ref().and_then(|meta| meta.title.as_deref()).unwrap_or(&event.url);
    format!("{}{share}: {title}", classes.join(" "))
}

/// Text as XML can have it: not every character can stand in a document, in whatever disguise.
fn xml(text: &str) -> String {
    let allowed = |c: char| !matches!(c, '\u{fffe}' | '\u{ffff}');
    answer::escape(&text.chars().map(|c| if allowed(c) { c } else { '\u{fffd}' }).collect::<String>())
}
