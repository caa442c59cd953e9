//! Who lends bandwidth to this archive, now and ever, and how much they are believed.

use super::frame::{self, bytes, count, facts, moment};
use crate::answer::{Answer, escape};
use crate::cdx::params::Params;
use crate::find::Looking;
use crate::trouble::Trouble;
use crate::visit::Visit;
use serde_json::Value;
use std::collections::BTreeMap;

/// The page.
pub fn page(look: &Looking<'_>, _: &Params, _: &Visit) -> Result<Answer, Trouble> {
    let Some(node) = &look.portal.contributors else {
        let body = "<p>This archive takes no contributors. <code>skep serve --contributors</code> hands bundles out, and \
                    <code>skep contribute URL</code> takes them.</p>\n";
        return Ok(frame::page(look, "Contributors", body));
    };
    let report = node.report();
    let number = |value: &Value, name: &str| value[name].as_u64().unwrap_or(0);
    let list: Vec<&Value> = report["contributors"].as_array().into_iter().flatten().collect();
    let sum = |name: &str| list.iter().map(|one| number(one, name)).sum::<u64>();
    let mut body = facts(&[
        ("there now", count(number(&report, "there"))),
        ("ever", count(list.len() as u64)),
        ("bundles waiting", count(number(&report["bundles"], "waiting"))),
        ("bundles out", count(number(&report["bundles"], "out"))),
        ("pages fetched", count(sum("urls"))),
        ("bytes fetched", bytes(sum("bytes"))),
        ("pages confirmed", count(sum("confirmed"))),
    ]);
    body.push_str(
        "<p><code>skep contribute URL</code>, with the address of this portal, lends bandwidth to it.</p>\n<table>\n<tr><th>name</th><th>team</th>\
         <th>trust</th><th>pages</th><th>bytes</th><th>confirmed</th><th>by place</th><th>lies</th><th>credit</th><th>last seen</th></tr>\n",
    );
    let mut ordered = list.clone();
    ordered.sort_by_key(|one| std::cmp::Reverse(number(one, "credit")));
    for one in ordered.into_iter().take(SHOWN) {
        let text = |name: &str| escape(one[name].as_str().unwrap_or_default());
        body.push_str(&format!(
            "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            text("name"),
            text("team"),
            text("trust"),
            count(number(one, "urls")),
            bytes(number(one, "bytes")),
            count(number(one, "confirmed")),
            count(number(one, "by-place")),
            count(number(one, "lies")),
            count(number(one, "credit")),
            moment(one["last"].as_str().unwrap_or_default()),
        ));
    }
    body.push_str("</table>\n");
    body.push_str(&teams(&list));
    Ok(frame::page(look, "Contributors", &body))
}

/// Contributors in the table; `skep contributors` lists all.
const SHOWN: usize = 500;

fn teams(list: &[&Value]) -> String {
    let mut teams: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for one in list {
        let name = one["team"].as_str().filter(|name| !name.is_empty());
        if let Some(name) = name {
            let team = teams.entry(name).or_default();
            *team = (team.0 + 1, team.1 + one["credit"].as_u64().unwrap_or(0));
        }
    }
    if teams.is_empty() {
        return String::new();
    }
    let mut ordered: Vec<_> = teams.into_iter().collect();
    ordered.sort_by_key(|(_, (_, credit))| std::cmp::Reverse(*credit));
    let rows: String = ordered
        .iter()
        .take(SHOWN)
        .map(|(name, (members, credit))| {
            format!("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", escape(name), count(*members), count(*credit))
        })
        .collect();
    format!("<h2>Teams</h2>\n<table>\n<tr><th>team</th><th>members</th><th>credit</th></tr>\n{rows}</table>\n")
}
