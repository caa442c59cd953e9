//! The start page.

use super::chart;
use super::frame::{self, bytes, count, encoded, facts, moment};
use crate::answer::{Answer, escape};
use crate::api::{collections, statistics};
use crate::cdx::params::Params;
use crate::find::Looking;
use crate::trouble::Trouble;
use crate::visit::Visit;

/// Collections named here; the page about files has the others.
const SHOWN_MAX: usize = 50;

/// What is in the archive.
pub fn page(look: &Looking<'_>, _: &Params, _: &Visit) -> Result<Answer, Trouble> {
    let (sums, collections) = (statistics::told(look, None)?, collections::all(look));
    let mut body =
        String::from("<p>Type a URL above to see how it was, or words to look for URLs that contain them.</p>\n");
    body.push_str(&facts(&[
        ("captures", count(sums.captures)),
        ("URLs", count(sums.urls)),
        ("hosts", count(sums.hosts)),
        ("versions", count(sums.versions)),
        ("duplicates", count(sums.duplicates)),
        ("stored", bytes(sums.bytes)),
    ]));
    if let (Some(earliest), Some(latest)) = (&sums.earliest, &sums.latest) {
        body.push_str(&format!("<p>From {} to {}.</p>\n", moment(earliest), moment(latest)));
        body.push_str("<h2>Captures by year</h2>\n");
        body.push_str(&chart::years(&sums.by_year, |_| None));
    }
    if !collections.is_empty() {
        body.push_str(
            "<h2>Collections</h2>\n<div class=\"wide\"><table><thead><tr><th scope=\"col\">collection</th><th scope=\"col\" class=\"number\">files</th>\
             <th scope=\"col\" class=\"number\">size</th></tr></thead><tbody>",
        );
        for collection in collections.iter().take(SHOWN_MAX) {
            let named = match &collection.name {
                Some(name) => {
                    format!(
                        "<a href=\"{}\">{}</a>",
                        escape(&format!("/statistics?collection={}", encoded(name))),
                        escape(name)
                    )
                }
                None => "crawled here".to_owned(),
            };
            body.push_str(&format!(
                "<tr><th scope=\"row\">{named}</th><td class=\"number\">{}</td><td class=\"number\">{}</td></tr>",
                count(collection.files),
                bytes(collection.bytes)
            ));
        }
        body.push_str("</tbody></table></div>\n");
    }
    if !sums.by_host.is_empty() {
        body.push_str("<h2>Hosts with most captures</h2>\n");
        let host = |row: &statistics::Tally| {
            (frame::link(&format!("/search?q={}", encoded(&row.value)), &row.value), row.captures)
        };
        let rows: Vec<(String, u64)> = sums.by_host.iter().take(10).map(host).collect();
        body.push_str(&chart::bars("host", &rows));
    }
    Ok(frame::page(look, "What this archive holds", &body))
}
