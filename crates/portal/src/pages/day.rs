//! What changed on a day, site by site.

use super::event;
use super::frame::{self, and_scope, count, encoded, in_scope, link};
use crate::answer::{Answer, escape};
use crate::cdx::params::Params;
use crate::changes::everywhere::{self, Told};
use crate::changes::{may_see, trouble};
use crate::find::Looking;
use crate::limits::{DAY_EVENTS_TOLD, DAY_LOOKED_MAX, DAY_SITES_MAX};
use crate::time;
use crate::trouble::Trouble;
use crate::visit::Visit;
use skep_changes::{Filter, Kept};
use skep_url::{Part, Suffixes, Url};
use skep_warc::date;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

const DAY_MS: i64 = 86_400_000;
/// What can become of a page, in the order of the columns.
const KINDS: [&str; 5] = ["new", "changed", "moved", "gone", "returned"];

/// What happened at one site.
#[derive(Default)]
struct Site {
    by_kind: [u64; KINDS.len()],
    events: u64,
    told: String,
    told_count: usize,
}

/// The page.
pub fn page(look: &Looking<'_>, params: &Params, _: &Visit) -> Result<Answer, Trouble> {
    let today_ms = look.now_ms.div_euclid(DAY_MS) * DAY_MS;
    let digits = params.get("day").map(|day| day.chars().filter(char::is_ascii_digit).collect::<String>());
    let begin_ms = match digits {
        None => today_ms,
        Some(digits) if digits.len() == 8 => time::earliest(&digits).unwrap_or(today_ms),
        Some(_) => return Err(Trouble::bad("A day is written as 2026-11-16.")),
    };
    let before = params.number("before")?.and_then(|number| u64::try_from(number).ok());
    let Day { sites, cut, older, before_ms, after_ms } = Day::of(look, begin_ms, before)?;
    let day = |ms: i64| format!("{}-{}-{}", &time::digits(ms)[..4], &time::digits(ms)[4..6], &time::digits(ms)[6..8]);
    let there = |ms: i64| format!("/changes/day?day={}{}", day(ms), and_scope(look));
    let mut body = in_scope(look);
    body.push_str(&super::live::links(look));
    let ways: Vec<String> = [(before_ms, "The day with changes before"), (after_ms, "The day with changes after")]
        .iter()
        .filter_map(|(ms, told)| Some(link(&there((*ms)?), told)))
        .collect();
    body.push_str(&format!("<p>{}</p>\n", ways.join(" · ")));
    if !sites.is_empty() {
        body.push_str(&table(look, &sites));
    } else if !cut {
        body.push_str("<p>Nothing changed that was noticed.</p>\n");
    }
    if cut {
        let further = older.map(|number| format!("{}&before={number}", there(begin_ms)));
        body.push_str(&told_cut(before.is_some(), sites.is_empty(), further.as_deref()));
    }
    for (name, site) in sites.iter().take(DAY_SITES_MAX) {
        body.push_str(&format!(
            "<details><summary>{}: {} changes</summary><ol class=\"changes\">{}</ol>{}</details>\n",
            escape(name),
            count(site.events),
            site.told,
            match site.events > site.told_count as u64 {
                true => format!("<p>{}</p>", link(&live(look, name), "All of them")),
                false => String::new(),
            }
        ));
    }
    let title = match begin_ms == today_ms {
        true => format!("What changed today, {}", day(begin_ms)),
        false => format!("What changed on {}", day(begin_ms)),
    };
    Ok(frame::page(look, &title, &body))
}

/// Not all events were looked at: how many were, whether some of the day were among them, and the way to the others.
fn told_cut(is_further: bool, is_empty: bool, further: Option<&str>) -> String {
    let which = if is_further { "further" } else { "last" };
    let none = if is_empty { ", and none of them is of this day" } else { "" };
    let further = further.map_or(String::new(), |there| format!(" {}", link(there, "Look at those before them")));
    let looked = count(DAY_LOOKED_MAX as u64);
    format!(
        "<p class=\"soft\">Only the {which} {looked} events were looked at{none}; there may be more.{further}</p>\n"
    )
}

fn live(look: &Looking<'_>, site: &str) -> String {
    format!("/changes/live?host={}{}", encoded(&format!("*.{site}")), and_scope(look))
}

/// A day in the log.
struct Day {
    /// What happened, by site, those with most first.
    sites: Vec<(String, Site)>,
    /// There may be more.
    cut: bool,
    /// What was not looked at here comes before the event of this number.
    older: Option<u64>,
    /// The events next to it, before and after.
    before_ms: Option<i64>,
    after_ms: Option<i64>,
}

impl Day {
    fn of(look: &Looking<'_>, begin_ms: i64, before: Option<u64>) -> Result<Day, Trouble> {
        let (portal, changes) = (look.portal, &look.portal.hub.changes);
        changes.follow(&portal.archive, look.now_ms, &mut |_| ()).map_err(trouble)?;
        let suffixes = Suffixes::compiled();
        let mut sites: HashMap<String, Site> = HashMap::new();
        let (mut before_ms, mut after_ms) = (None, None);
        let mut note = |kept: &Kept<'_>| {
            if kept.time_ms < begin_ms {
                before_ms = before_ms.max(Some(kept.time_ms));
                return;
            }
            if kept.time_ms >= begin_ms.saturating_add(DAY_MS) {
                after_ms = Some(after_ms.map_or(kept.time_ms, |known: i64| known.min(kept.time_ms)));
                return;
            }
            let Ok(url) = Url::parse(kept.url) else { return };
            let site = sites.entry(url.site(&suffixes, Part::Whole).to_owned()).or_default();
            let kind = kept.kind().rsplit('.').next().unwrap_or_default();
            if let Some(column) = KINDS.iter().position(|known| *known == kind) {
                site.by_kind[column] += 1;
            }
            site.events += 1;
            if site.told_count < DAY_EVENTS_TOLD {
                site.told_count += 1;
                site.told.push_str(&event::item(look, kept));
            }
        };
        let others = look.others();
        let mut older = None;
        let every = Filter::default();
        let cut = changes.newest_first(&portal.archive, before, DAY_LOOKED_MAX, &every, |cursor, kept| {
            older = Some(cursor.number);
            let shown =
                look.scope.holds_position(kept.record(), portal) && may_see(portal, look.may, look.now_ms, kept);
            // What happened that day is told by all nodes; what came before it is for the way there.
            if shown && (others.is_none() || kept.time_ms < begin_ms) {
                note(kept);
            }
            ControlFlow::Continue(())
        });
        let mut cut = cut.map_err(trouble)?;
        let older = older.filter(|_| cut);
        if let Some(others) = others {
            let all = everywhere::since(look, others, &date::rfc3339(begin_ms))?;
            // Each capture as it was told last.
            let mut seen = HashSet::new();
            for kept in all.events.iter().rev().filter_map(Told::kept) {
                if seen.insert((kept.key, kept.url)) && every.shows(&kept) {
                    note(&kept);
                }
            }
            cut |= all.cut || all.silent > 0;
        }
        let mut sites: Vec<(String, Site)> = sites.into_iter().collect();
        sites.sort_by(|(a, one), (b, other)| other.events.cmp(&one.events).then_with(|| a.cmp(b)));
        Ok(Day { sites, cut, older, before_ms, after_ms })
    }
}

fn table(look: &Looking<'_>, sites: &[(String, Site)]) -> String {
    let mut out = String::from("<div class=\"wide\"><table><thead><tr><th scope=\"col\">site</th>");
    for kind in KINDS {
        out.push_str(&format!("<th scope=\"col\" class=\"number\">{kind}</th>"));
    }
    out.push_str("</tr></thead><tbody>");
    for (name, site) in sites.iter().take(DAY_SITES_MAX) {
        out.push_str(&format!("<tr><th scope=\"row\" class=\"url\">{}</th>", link(&live(look, name), name)));
        for number in site.by_kind {
            out.push_str(&format!("<td class=\"number\">{}</td>", count(number)));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>\n");
    if sites.len() > DAY_SITES_MAX {
        out.push_str(&format!(
            "<p class=\"soft\">And {} sites more.</p>\n",
            count((sites.len() - DAY_SITES_MAX) as u64)
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::told_cut;

    #[test]
    fn a_day_beyond_the_bound_is_not_said_to_be_empty() {
        let told = told_cut(false, true, Some("/changes/day?day=2024-01-01&before=7"));
        assert!(told.contains("none of them is of this day; there may be more"), "{told}");
        assert!(told.contains("href=\"/changes/day?day=2024-01-01&amp;before=7\""), "{told}");
        let told = told_cut(true, false, None);
        assert!(!told.contains("none of them") && !told.contains("href"), "{told}");
    }
}
