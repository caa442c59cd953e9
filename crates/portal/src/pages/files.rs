//! The files of the archive, and what is in one.

use super::frame::{self, and_scope, bytes, count, encoded, in_scope, link, moment, more};
use crate::answer::{Answer, escape};
use crate::api::asked::Asked;
use crate::api::files;
use crate::cdx::params::Params;
use crate::find::Looking;
use crate::trouble::Trouble;
use crate::visit::Visit;

fn paged(params: &Params) -> Asked {
    let cursor =
        |text: &&str| text.len() <= 32 && text.len().is_multiple_of(2) && text.bytes().all(|b| b.is_ascii_hexdigit());
    match params.get("after").filter(cursor) {
        Some(after) => Asked::default().with("after", after),
        None => Asked::default(),
    }
}

/// All files.
pub fn list(look: &Looking<'_>, params: &Params, _: &Visit) -> Result<Answer, Trouble> {
    let (rows, next) = files::page(look, &paged(params));
    let mut body = in_scope(look);
    if rows.is_empty() {
        body.push_str("<p>There is no file.</p>\n");
        return Ok(frame::page(look, "Files", &body));
    }
    body.push_str(
        "<div class=\"wide\"><table><thead><tr><th scope=\"col\">file</th><th scope=\"col\">collection</th><th scope=\"col\">kind</th>\
         <th scope=\"col\" class=\"number\">size</th><th scope=\"col\">modified</th><th scope=\"col\">get</th></tr></thead><tbody>",
    );
    for row in &rows {
        let collection = match &row.collection {
            Some(name) => link(&format!("/files?collection={}", encoded(name)), name),
            None => "crawled here".to_owned(),
        };
        body.push_str(&format!(
            "<tr><th scope=\"row\" class=\"url\">{}</th><td>{collection}</td><td>{}</td><td class=\"number\">{}</td><td>{}</td><td>{}</td></tr>",
            link(&format!("/files/{}", row.file), &row.name),
            escape(&row.kind),
            bytes(row.bytes),
            row.modified.as_deref().map_or("–".to_owned(), moment),
            link(&row.links.download, "download"),
        ));
    }
    body.push_str("</tbody></table></div>\n");
    body.push_str(&more(next.map(|next| format!("/files?after={next}{}", and_scope(look)))));
    Ok(frame::page(look, "Files", &body))
}

/// What is in one file.
pub fn one(look: &Looking<'_>, params: &Params, visit: &Visit) -> Result<Answer, Trouble> {
    let path = visit.target.split('?').next().unwrap_or_default();
    let name = percent_encoding::percent_decode_str(path.rsplit('/').next().unwrap_or_default()).decode_utf8_lossy();
    let told = files::one(look, &name)?;
    let (captures, next) = files::captures_page(look, &paged(params).with("file", &name))?;
    let mut body = format!(
        "<p>{}, {} ({} bytes), {}. {}</p>\n",
        told.collection
            .as_ref()
            .map_or("Crawled here".to_owned(), |name| format!("In the collection {}", escape(name))),
        bytes(told.bytes),
        count(told.bytes),
        escape(&told.kind),
        link(&told.links.download, "Download"),
    );
    match captures.is_empty() {
        true => body.push_str("<p>There is no capture in it that can be shown.</p>\n"),
        false => body.push_str(&super::url::captures(&captures, None)),
    }
    body.push_str(&more(next.map(|next| format!("/files/{}?after={next}", told.file))));
    Ok(frame::page(look, &told.name, &body))
}
