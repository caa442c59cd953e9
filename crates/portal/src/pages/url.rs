//! A URL in detail: its versions, and every capture with the place of its record.

use super::frame::{self, and_scope, calendar, count, encoded, facts, in_scope, link, moment, more};
use crate::address;
use crate::answer::{Answer, escape};
use crate::api::asked::Asked;
use crate::api::{capture, url};
use crate::cdx::params::Params;
use crate::find::Looking;
use crate::trouble::Trouble;
use crate::visit::Visit;

/// Versions in the list.
const VERSIONS: usize = 200;

/// The parameters of a page about a URL, as the API has them.
pub fn asked(params: &Params) -> Result<Asked, Trouble> {
    let url = address::url(params.get("url").unwrap_or_default()).map_err(|wrong| Trouble::bad(wrong.told()))?;
    let mut asked = Asked::default().with("url", &url);
    let digits = |text: &&str| (4..=14).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    for name in ["from", "to", "time"] {
        if let Some(value) = params.get(name) {
            let value = Some(value).filter(digits);
            asked =
                asked.with(name, value.ok_or_else(|| Trouble::bad(format!("{name} is a time of 4 to 14 digits.")))?);
        }
    }
    let cursor =
        |text: &&str| text.len() <= 80 && text.len().is_multiple_of(2) && text.bytes().all(|b| b.is_ascii_hexdigit());
    if let Some(after) = params.get("after").filter(cursor) {
        asked = asked.with("after", after);
    }
    Ok(asked)
}

/// Tells of a URL.
pub fn page(look: &Looking<'_>, params: &Params, _: &Visit) -> Result<Answer, Trouble> {
    let asked = asked(params)?;
    let told = url::told(look, &asked)?;
    let (url, scope) = (told.url.as_str(), and_scope(look));
    let mut body = format!("<p class=\"url\"><code>{}</code></p>\n{}", escape(url), in_scope(look));
    body.push_str(&facts(&[
        ("captures", count(told.captures_total)),
        ("versions", count(told.versions_total)),
        ("duplicates", count(told.duplicates_total)),
    ]));
    if let (Some(earliest), Some(latest)) = (&told.earliest, &told.latest) {
        body.push_str(&format!(
            "<p>From {} to {}. {} · {}</p>\n",
            moment(earliest),
            moment(latest),
            link(&calendar(look, url), "Calendar"),
            link(&super::event::history(look, url), "What changed")
        ));
    }
    body.push_str(
        "<h2>Versions</h2>\n<div class=\"wide\"><table><thead><tr><th scope=\"col\">first</th><th scope=\"col\">last</th>\
         <th scope=\"col\" class=\"number\">captures</th><th scope=\"col\">status</th><th scope=\"col\">media type</th><th scope=\"col\">payload</th>\
         <th scope=\"col\">differences</th></tr></thead><tbody>",
    );
    let mut before: Option<String> = None;
    for version in told.versions.iter().take(VERSIONS) {
        let digits: String = version.earliest.chars().filter(char::is_ascii_digit).take(14).collect();
        let compared = before.as_ref().map_or("–".to_owned(), |before| {
            link(&format!("/compare?url={}{scope}&a={before}&b={digits}", encoded(url)), "from the version before")
        });
        let also: Vec<String> = version.also_at.iter().map(|other| link(&calendar(look, other), other)).collect();
        let also = if also.is_empty() {
            String::new()
        } else {
            format!("<br><span class=\"soft\">also at</span> {}", also.join(", "))
        };
        body.push_str(&format!(
            "<tr><th scope=\"row\"><a href=\"{}\">{}</a></th><td>{}</td><td class=\"number\">{}</td><td>{}</td><td>{}</td><td class=\"url\"><code>{}</code>{also}</td><td>{compared}</td></tr>",
            escape(&capture::address(&format!("/{}/{digits}/{url}", look.scope.name()))),
            moment(&version.earliest),
            moment(&version.latest),
            count(version.captures),
            version.status.map_or("–".to_owned(), |status| status.to_string()),
            escape(version.media_type.as_deref().unwrap_or("–")),
            escape(version.digest.as_deref().unwrap_or("unknown")),
        ));
        before = Some(digits);
    }
    body.push_str("</tbody></table></div>\n");
    if told.versions_total > VERSIONS as u64 {
        body.push_str("<p class=\"soft\">There are more versions; the API lists them.</p>\n");
    }
    body.push_str("<h2>Captures</h2>\n");
    body.push_str(&captures(&told.captures, Some(&format!("/completeness?url={}{scope}", encoded(url)))));
    let span: String = ["from", "to"].iter().filter_map(|name| Some(format!("&{name}={}", asked.get(name)?))).collect();
    body.push_str(&more(told.next.map(|next| format!("/url?url={}{scope}{span}&after={next}", encoded(url)))));
    Ok(frame::asking(look, "Versions and captures", url, &body, None))
}

/// A table of captures.
pub fn captures(rows: &[capture::Told], completeness: Option<&str>) -> String {
    let named = completeness.is_none();
    let mut out = format!(
        "<div class=\"wide\"><table><thead><tr><th scope=\"col\">time</th>{}<th scope=\"col\">kind</th><th scope=\"col\">status</th>\
         <th scope=\"col\">media type</th><th scope=\"col\">file</th><th scope=\"col\" class=\"number\">offset</th>\
         <th scope=\"col\" class=\"number\">bytes</th><th scope=\"col\">get</th></tr></thead><tbody>",
        if named { "<th scope=\"col\">URL</th>" } else { "" }
    );
    for row in rows {
        let url = if named { format!("<td class=\"url\">{}</td>", escape(&row.url)) } else { String::new() };
        let parts = completeness.map_or(String::new(), |address| {
            format!(" <a href=\"{}&amp;time={}\">parts</a>", escape(address), row.timestamp)
        });
        out.push_str(&format!(
            "<tr><th scope=\"row\"><a href=\"{}\">{}</a></th>{url}<td>{}</td><td>{}</td><td>{}</td><td class=\"url\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>\
             <td><a href=\"{}\">body</a> <a href=\"{}\">record</a>{parts}</td></tr>",
            escape(&row.links.replay),
            moment(&row.time),
            row.kind,
            row.status.map_or("–".to_owned(), |status| status.to_string()),
            escape(row.media_type.as_deref().unwrap_or("–")),
            link(&format!("/files/{}", row.file), &row.file_name),
            row.offset,
            count(row.length),
            escape(&row.links.raw),
            escape(&row.links.record),
        ));
    }
    out.push_str("</tbody></table></div>\n");
    out
}
