//! What the archive, a collection or a host amounts to.

use super::chart;
use super::frame::{self, and_scope, bytes, count, encoded, facts, in_scope, link, moment};
use crate::answer::{Answer, escape};
use crate::api::statistics::{self, Tally};
use crate::cdx::params::Params;
use crate::find::Looking;
use crate::trouble::Trouble;
use crate::visit::Visit;

/// Rows of a chart; the API has them all.
const ROWS: usize = 25;

/// Counts and charts.
pub fn page(look: &Looking<'_>, params: &Params, _: &Visit) -> Result<Answer, Trouble> {
    let host = params.get("host").filter(|host| host.len() <= 300);
    let sums = statistics::everywhere(look, host)?;
    let mut body = in_scope(look);
    if let Some(host) = host {
        let all = format!("/statistics?{}", and_scope(look).trim_start_matches('&'));
        body.push_str(&format!("<p>Of the host <strong>{}</strong>. {}</p>\n", escape(host), link(&all, "All hosts")));
    }
    body.push_str(&facts(&[
        ("captures", count(sums.captures)),
        ("URLs", count(sums.urls)),
        ("hosts", count(sums.hosts)),
        ("versions", count(sums.versions)),
        ("duplicates", count(sums.duplicates)),
        ("revisit records", count(sums.revisits)),
        ("stored", bytes(sums.bytes)),
    ]));
    let (Some(earliest), Some(latest)) = (&sums.earliest, &sums.latest) else {
        body.push_str("<p>There is no capture.</p>\n");
        return Ok(frame::page(look, "Statistics", &body));
    };
    body.push_str(&format!(
        "<p>From {} to {}. Counted at {}.</p>\n",
        moment(earliest),
        moment(latest),
        moment(&sums.counted)
    ));
    if sums.silent > 0 {
        body.push_str(&format!("<p>No node answered for {} parts of the archive.</p>\n", count(sums.silent)));
    }
    body.push_str("<h2>By year</h2>\n");
    body.push_str(&chart::years(&sums.by_year, |_| None));
    let plain = |rows: &[Tally]| -> Vec<(String, u64)> {
        rows.iter().take(ROWS).map(|row| (escape(&row.value), row.captures)).collect()
    };
    let hosts: Vec<(String, u64)> = sums
        .by_host
        .iter()
        .take(ROWS)
        .map(|row| {
            (link(&format!("/statistics?host={}{}", encoded(&row.value), and_scope(look)), &row.value), row.captures)
        })
        .collect();
    body.push_str("<div class=\"columns\">");
    for (title, name, rows) in [
        ("By host", "host", hosts),
        ("By media type", "media type", plain(&sums.by_type)),
        ("By status", "status", plain(&sums.by_status)),
        ("By year, in figures", "year", plain(&sums.by_year)),
    ] {
        body.push_str(&format!("<section><h2>{title}</h2>\n{}</section>", chart::bars(name, &rows)));
    }
    body.push_str("</div>\n");
    Ok(frame::page(look, "Statistics", &body))
}
