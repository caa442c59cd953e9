//! What was looked for.

use super::frame::{self, and_scope, calendar, count, encoded, in_scope, link, moment, more};
use crate::answer::{self, Answer, escape};
use crate::api::asked::Asked;
use crate::api::urls;
use crate::cdx::params::Params;
use crate::find::Looking;
use crate::limits::{CURSOR_DIGITS_MAX, QUERY_CHARS_MAX};
use crate::trouble::Trouble;
use crate::visit::Visit;
use crate::{address, time};
use axum::http::StatusCode;
use skep_archive::Key;

/// Rows on one page.
const ROWS: usize = 50;

/// URLs that contain words; a whole URL leads to its calendar at once, if it has one.
pub fn page(look: &Looking<'_>, params: &Params, _: &Visit) -> Result<Answer, Trouble> {
    if params.get("in") == Some("text") {
        return super::texts::page(look, params);
    }
    let typed = params.get("q").unwrap_or_default().trim();
    if typed.is_empty() {
        return Ok(answer::redirect(StatusCode::FOUND, "/"));
    }
    let as_url = address::url(typed).ok().filter(|_| !typed.contains(char::is_whitespace));
    let ends = match &as_url {
        Some(url) => look.ends(&Key::of(url))?,
        None => None,
    };
    if let (Some(url), Some(_)) =
        (as_url.as_ref().filter(|_| typed.starts_with("http://") || typed.starts_with("https://")), &ends)
    {
        return Ok(answer::redirect(StatusCode::FOUND, &format!("/{}/*/{url}", look.scope.name())));
    }
    let mut body = in_scope(look);
    if let (Some(url), Some((first, last))) = (&as_url, &ends) {
        body.push_str(&format!(
            "<p>{}: captures from {} to {}</p>\n",
            link(&calendar(look, url), url),
            moment(&skep_warc::date::rfc3339(first.time_ms)),
            link(
                &crate::api::capture::address(&format!("/{}/{}/{url}", look.scope.name(), time::digits(last.time_ms))),
                &skep_warc::date::rfc3339(last.time_ms)
            ),
        ));
    }
    let shortened: String = typed.chars().take(QUERY_CHARS_MAX).collect();
    let cursor = params.get("after").filter(|cursor| {
        cursor.len() <= CURSOR_DIGITS_MAX
            && cursor.len().is_multiple_of(2)
            && cursor.bytes().all(|b| b.is_ascii_hexdigit())
    });
    let mut asked = Asked::default().with("q", &shortened).with("limit", &ROWS.to_string());
    if let Some(cursor) = cursor {
        asked = asked.with("after", cursor);
    }
    let found = urls::find(look, &asked)?;
    match (found.hits.is_empty(), &found.next) {
        (true, None) => body.push_str(&format!("<p>No URL here contains <strong>{}</strong>.</p>\n", escape(typed))),
        (true, Some(_)) => body.push_str("<p>Nothing found so far.</p>\n"),
        (false, _) => {
            body.push_str(
                "<div class=\"wide\"><table><thead><tr><th scope=\"col\">URL</th><th scope=\"col\" class=\"number\">captures</th>\
                 <th scope=\"col\">first</th><th scope=\"col\">last</th></tr></thead><tbody>",
            );
            for hit in &found.hits {
                body.push_str(&format!(
                    "<tr><th scope=\"row\" class=\"url\">{}</th><td class=\"number\">{}</td><td>{}</td><td><a href=\"{}\">{}</a></td></tr>",
                    link(&hit.links.calendar, &hit.url),
                    count(hit.captures),
                    moment(&hit.earliest),
                    escape(&hit.links.replay),
                    moment(&hit.latest),
                ));
            }
            body.push_str("</tbody></table></div>\n");
        }
    }
    if found.silent > 0 {
        body.push_str(&format!("<p>No node answered for {} parts of the archive.</p>\n", count(found.silent as u64)));
    }
    if look.portal.text.as_ref().is_some_and(|text| text.is_kept()) {
        let there = format!("/search?in=text&q={}{}", encoded(&shortened), and_scope(look));
        body.push_str(&format!("<p>{}</p>\n", link(&there, "Look for it in the texts of pages")));
    }
    let next = found.next.map(|next| format!("/search?q={}{}&after={next}", encoded(&shortened), and_scope(look)));
    body.push_str(&more(next));
    Ok(frame::asking(look, &format!("URLs with {shortened}"), typed, &body, None))
}
