//! Charts as SVG: no script, no picture to fetch, and a table of the same figures beside each.

use super::frame::count;
use crate::answer::escape;
use crate::api::statistics::Tally;

/// Bars beside a list of values: (value as markup, captures).
pub fn bars(name: &str, rows: &[(String, u64)]) -> String {
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
    let mut out = format!(
        "<div class=\"wide\"><table><thead><tr><th scope=\"col\">{}</th><th scope=\"col\" class=\"number\">captures</th>\
         <td></td></tr></thead><tbody>",
        escape(name)
    );
    for (value, captures) in rows {
        let width = (*captures as f64 * 100.0 / most as f64).max(0.5);
        out.push_str(&format!(
            "<tr><th scope=\"row\" class=\"url\">{value}</th><td class=\"number\">{}</td><td><svg class=\"bar\" viewBox=\"0 0 100 10\" \
             preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect width=\"{width:.1}\" height=\"10\"/></svg></td></tr>",
            count(*captures)
        ));
    }
    out.push_str("</tbody></table></div>\n");
    out
}

/// Upright bars, one for each year from the first to the last.
pub fn years(rows: &[Tally], address: impl Fn(&str) -> Option<String>) -> String {
    let years: Vec<(i64, u64)> = rows.iter().filter_map(|row| Some((row.value.parse().ok()?, row.captures))).collect();
    let (Some(first), Some(last)) = (years.first().map(|y| y.0), years.last().map(|y| y.0)) else {
        return String::new();
    };
    // A wrong clock made a capture of the year 1: the gap is not drawn.
    let shown: Vec<(i64, u64)> = match last - first < 60 {
        true => (first..=last).map(|year| (year, years.iter().find(|y| y.0 == year).map_or(0, |y| y.1))).collect(),
        false => years,
    };
    let most = shown.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
    let (step, height) = (44, 120.0);
    let width = step * shown.len();
    let mut out = format!(
        "<svg class=\"years\" viewBox=\"0 0 {} 160\" role=\"img\" aria-label=\"Captures by year, {first} to {last}\">",
        width.max(440)
    );
    for (index, (year, captures)) in shown.iter().enumerate() {
        let bar = (*captures as f64 * height / most as f64).max(if *captures > 0 { 1.0 } else { 0.0 });
        let (x, y) = (index * step, 140.0 - bar);
        let drawn = format!(
            "<title>{year}: {} captures</title><rect x=\"{}\" y=\"{y:.1}\" width=\"{}\" height=\"{bar:.1}\"/>\
             <text x=\"{}\" y=\"154\" text-anchor=\"middle\">{year}</text>",
            count(*captures),
            x + 4,
            step - 8,
            x + step / 2
        );
        match address(&format!("{year:04}")).filter(|_| *captures > 0) {
            Some(address) => out.push_str(&format!("<a href=\"{}\">{drawn}</a>", escape(&address))),
            None => out.push_str(&format!("<g>{drawn}</g>")),
        }
    }
    out.push_str("</svg>\n");
    out
}
