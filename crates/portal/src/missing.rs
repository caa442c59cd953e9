//! The page about a URL that is not here: what is there instead.

use crate::answer::{self, Answer, escape};
use crate::find::Looking;
use crate::limits::{SUGGESTION_ROWS_MAX, SUGGESTIONS_MAX};
use axum::http::StatusCode;
use skep_archive::captures::{Match, Query};
use skep_archive::{Capture, Key};

/// Says that nothing is here of a URL, and what is here of its host.
pub fn page(look: &Looking<'_>, url: &str) -> Answer {
    let others = others(look, url).unwrap_or_default();
    let mut body = format!("<p>There is no capture of <code>{}</code> here", escape(url));
    let scope = look.scope.name();
    if scope != crate::portal::EVERYTHING {
        body.push_str(&format!(" in the collection <code>{}</code>", escape(scope)));
    }
    body.push_str(".</p>");
    if others.is_empty() {
        body.push_str("<p>Nothing else of its host is here either.</p>");
    } else {
        body.push_str("<p>Of its host there is:</p><ul>");
        for capture in others {
            let digits = crate::time::digits(capture.time_ms);
            let address = escape(&format!("/{scope}/{digits}/{}", capture.url));
            body.push_str(&format!("<li><a href=\"{address}\">{}</a>", escape(&capture.url)));
        }
        body.push_str("</ul>");
    }
    answer::page(StatusCode::NOT_FOUND, "Not in this archive", &body)
}

/// The first captures of other URLs of the host.
fn others(look: &Looking<'_>, url: &str) -> Option<Vec<Capture>> {
    let key = Key::of(url);
    if !key.surt().contains(")/") {
        return None;
    }
    let rows = look.portal.query(&Query::new(Match::Host(key))).ok()?;
    let mut others: Vec<Capture> = Vec::new();
    for capture in rows.take(SUGGESTION_ROWS_MAX) {
        let capture = capture.ok()?;
        let seen = others.last().is_some_and(|last| last.key == capture.key);
        if !seen && look.shows(&capture) {
            others.push(capture);
        }
        if others.len() >= SUGGESTIONS_MAX {
            break;
        }
    }
    Some(others)
}
