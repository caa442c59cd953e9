//! Who lends bandwidth to this archive, now and ever, and how much they are believed: a board that is made anew while somebody looks.

use super::frame::{self, bytes, count, facts, moment};
use crate::answer::{Answer, escape};
use crate::cdx::params::Params;
use crate::find::Looking;
use crate::trouble::Trouble;
use crate::visit::Visit;
use serde_json::Value;

/// Rows of a table; `skep contributors` lists all.
const SHOWN: usize = 500;

/// The page.
pub fn page(look: &Looking<'_>, _: &Params, _: &Visit) -> Result<Answer, Trouble> {
    let Some(node) = &look.portal.contributors else {
        let body = "<p>This archive takes no contributors. <code>skep serve --contributors</code> hands bundles out, and \
                    <code>skep contribute URL</code> takes them.</p>\n";
        return Ok(frame::page(look, "Contributors", body));
    };
    let report = node.report();
    let list: Vec<&Value> = report["contributors"].as_array().into_iter().flatten().collect();
    let sum = |name: &str| list.iter().map(|one| number(one, name)).sum::<u64>();
    let now = facts(&[
        ("there now", count(number(&report, "there"))),
        ("ever", count(list.len() as u64)),
        ("bundles waiting", count(number(&report["bundles"], "waiting"))),
        ("bundles out", count(number(&report["bundles"], "out"))),
        ("pages fetched", count(sum("urls"))),
        ("of them to check others", count(sum("checks"))),
        ("bytes fetched", bytes(sum("bytes"))),
        ("pages confirmed", count(sum("confirmed"))),
        ("credit", count(sum("credit"))),
    ]);
    let body = format!(
        "<p><code>skep contribute URL</code>, with the address of this portal, lends bandwidth to it.</p>\n<div id=\"board\" \
         aria-live=\"off\">\n{now}{}{}</div>\n",
        teams(&report),
        people(list)
    );
    Ok(frame::scripted(look, "Contributors", &body, "/-/board.js"))
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or(0)
}

fn text(value: &Value, name: &str) -> String {
    escape(value[name].as_str().unwrap_or_default())
}

fn table(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let heads: String = heads.iter().map(|head| format!("<th>{head}</th>")).collect();
    let row = |cells: Vec<String>| -> String {
        let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
        format!("<tr>{cells}</tr>\n")
    };
    format!("<table>\n<tr>{heads}</tr>\n{}</table>\n", rows.map(row).collect::<String>())
}

fn people(mut list: Vec<&Value>) -> String {
    list.sort_by_key(|one| std::cmp::Reverse((one["there"] == true, number(one, "credit"))));
    let rows = list.into_iter().take(SHOWN).map(|one| {
        vec![
            format!("<code>{}</code>", text(one, "name")),
            text(one, "team"),
            if one["there"] == true { "now".into() } else { moment(one["last"].as_str().unwrap_or_default()) },
            text(one, "trust"),
            count(number(one, "urls")),
            bytes(number(one, "bytes")),
            count(number(one, "confirmed")),
            count(number(one, "checks")),
            count(number(one, "by-place")),
            count(number(one, "lies")),
            count(number(one, "credit")),
        ]
    });
    let heads = [
        "name",
        "team",
        "there",
        "trust",
        "pages",
        "bytes",
        "confirmed",
        "checks of others",
        "by place",
        "lies",
        "credit",
    ];
    format!("<h2>Contributors</h2>\n{}", table(&heads, rows))
}

fn teams(report: &Value) -> String {
    let teams: Vec<&Value> = report["teams"].as_array().into_iter().flatten().take(SHOWN).collect();
    if teams.is_empty() {
        return String::new();
    }
    let rows = teams.into_iter().map(|team| {
        vec![
            text(team, "team"),
            count(number(team, "members")),
            count(number(team, "there")),
            count(number(team, "urls")),
            bytes(number(team, "bytes")),
            count(number(team, "credit")),
        ]
    });
    let heads = ["team", "members", "there now", "pages", "bytes", "credit"];
    format!("<h2>Teams</h2>\n{}", table(&heads, rows))
}
