//! The calendar of a URL: how often it was captured on each day, and on which days it was something new.

use super::chart;
use super::frame::{self, and_scope, count, encoded, facts, in_scope, link};
use crate::answer::escape;
use crate::api::asked::Asked;
use crate::api::capture::address;
use crate::api::statistics::Tally;
use crate::api::url;
use crate::find::Looking;
use crate::reply::Reply;
use crate::{missing, replay, time};
use skep_archive::Capture;
use std::collections::BTreeMap;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// What happened on one day.
#[derive(Clone, Debug, Default)]
struct Day {
    captures: u64,
    versions: u64,
    /// The capture that the day leads to: the first new one, else the first.
    digits: String,
    new: bool,
}

/// Answers `/COLLECTION/*/URL`.
pub fn page(look: &Looking<'_>, url: &str, reply: Reply) {
    let asked = Asked::default().with("url", url);
    match url::captures(look, &asked) {
        Err(trouble) => replay::refuse(look, &trouble, reply),
        Ok((captures, _)) if captures.is_empty() => reply.send(missing::page(look, url)),
        Ok((captures, cut)) => reply.send(frame::asking(look, "Calendar", url, &body(look, url, &captures, cut), None)),
    }
}

fn body(look: &Looking<'_>, url: &str, captures: &[Capture], cut: bool) -> String {
    let firsts = url::firsts(captures);
    // (year, month) → days.
    let mut months: BTreeMap<(i64, u32), BTreeMap<u32, Day>> = BTreeMap::new();
    let mut years: BTreeMap<i64, u64> = BTreeMap::new();
    for (index, capture) in captures.iter().enumerate() {
        let digits = time::digits(capture.time_ms);
        let part = |from: usize, to: usize| digits.get(from..to).and_then(|part| part.parse::<u32>().ok()).unwrap_or(0);
        let (year, new) = (i64::from(part(0, 4)), firsts[index] == index);
        let day = months.entry((year, part(4, 6))).or_default().entry(part(6, 8)).or_default();
        if day.captures == 0 || new && !day.new {
            (day.digits, day.new) = (digits, new);
        }
        day.captures += 1;
        day.versions += u64::from(new);
        *years.entry(year).or_default() += 1;
    }
    let versions = firsts.iter().enumerate().filter(|(index, first)| index == *first).count() as u64;
    let total = captures.len() as u64;
    let details = format!("/url?url={}{}", encoded(url), and_scope(look));
    let mut out = format!("<p class=\"url\"><code>{}</code></p>\n{}", escape(url), in_scope(look));
    out.push_str(&facts(&[
        ("captures", count(total)),
        ("versions", count(versions)),
        ("duplicates", count(total - versions)),
    ]));
    out.push_str(&format!(
        "<p>{} · {}</p>\n",
        link(&details, "Versions, duplicates and every capture"),
        link(&super::event::history(look, url), "What changed")
    ));
    if cut {
        out.push_str("<p class=\"soft\">There are more captures than are shown here.</p>\n");
    }
    let values: Vec<Tally> =
        years.iter().map(|(year, captures)| Tally { value: format!("{year:04}"), captures: *captures }).collect();
    out.push_str(&chart::years(&values, |year| Some(format!("#y{year}"))));
    let newest = years.keys().next_back().copied();
    for (year, captures) in years.iter().rev() {
        let open = if Some(*year) == newest || years.len() <= 3 { " open" } else { "" };
        out.push_str(&format!(
            "<details id=\"y{year:04}\"{open}><summary>{year:04}: {} captures</summary><div class=\"months\">",
            count(*captures)
        ));
        for ((_, month), days) in months.range((*year, 0)..=(*year, 12)) {
            out.push_str(&table(look, url, *year, *month, days));
        }
        out.push_str("</div></details>\n");
    }
    out.push_str("<p class=\"soft\">A dashed frame: nothing that had not been captured before.</p>\n");
    out
}

fn table(look: &Looking<'_>, url: &str, year: i64, month: u32, days: &BTreeMap<u32, Day>) -> String {
    let name = MONTHS.get(month as usize - 1).copied().unwrap_or_default();
    let mut out = format!("<table><caption>{name} {year:04}</caption><thead><tr>");
    for (short, long) in [
        ("Mo", "Monday"),
        ("Tu", "Tuesday"),
        ("We", "Wednesday"),
        ("Th", "Thursday"),
        ("Fr", "Friday"),
        ("Sa", "Saturday"),
        ("Su", "Sunday"),
    ] {
        out.push_str(&format!("<th scope=\"col\" abbr=\"{long}\">{short}</th>"));
    }
    out.push_str("</tr></thead><tbody><tr>");
    let begin_ms = time::earliest(&format!("{year:04}{month:02}")).unwrap_or(0);
    // 1970-01-01 was a Thursday.
    let blank = (begin_ms.div_euclid(86_400_000) + 3).rem_euclid(7);
    out.push_str(&"<td></td>".repeat(blank as usize));
    let mut column = blank;
    let last: u32 = time::latest(&format!("{year:04}{month:02}"))
        .and_then(|ms| time::digits(ms).get(6..8).and_then(|day| day.parse().ok()))
        .unwrap_or(31);
    for number in 1..=last {
        if column == 7 {
            out.push_str("</tr><tr>");
            column = 0;
        }
        column += 1;
        match days.get(&number) {
            None => out.push_str(&format!("<td class=\"soft\">{number}</td>")),
            Some(day) => out.push_str(&cell(look, url, &format!("{year:04}{month:02}{number:02}"), number, day)),
        }
    }
    out.push_str(&"<td></td>".repeat((7 - column) as usize));
    out.push_str("</tr></tbody></table>");
    out
}

fn cell(look: &Looking<'_>, url: &str, digits: &str, number: u32, day: &Day) -> String {
    let to = match day.captures {
        1 => address(&format!("/{}/{}/{url}", look.scope.name(), day.digits)),
        _ => format!("/url?url={}{}&from={digits}&to={digits}", encoded(url), and_scope(look)),
    };
    let captures = if day.captures == 1 { "1 capture".to_owned() } else { format!("{} captures", count(day.captures)) };
    let told = match day.versions {
        0 => format!("{captures}, nothing new"),
        1 => format!("{captures}, 1 new version"),
        n => format!("{captures}, {n} new versions"),
    };
    let same = if day.versions == 0 { " class=\"same\"" } else { "" };
    format!(
        "<td><a href=\"{}\"{same} title=\"{told}\">{number}<small aria-hidden=\"true\">{}</small><span class=\"unseen\">: {told}</span></a></td>",
        escape(&to),
        count(day.captures)
    )
}
