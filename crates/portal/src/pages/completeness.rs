//! The parts of an archived page and how far apart in time they are.

use super::frame::{self, count, duration, facts, in_scope, moment};
use crate::answer::{Answer, escape};
use crate::api::completeness;
use crate::cdx::params::Params;
use crate::find::Looking;
use crate::trouble::Trouble;
use crate::visit::Visit;

/// Tells of a page and its parts.
pub fn page(look: &Looking<'_>, params: &Params, _: &Visit) -> Result<Answer, Trouble> {
    let told = completeness::told(look, &super::url::asked(params)?)?;
    let address = crate::api::capture::address(&format!("/{}/{}/{}", look.scope.name(), told.timestamp, told.url));
    let mut body = format!(
        "<p class=\"url\"><a href=\"{}\">{}</a> as of {}</p>\n{}",
        escape(&address),
        escape(&told.url),
        moment(&told.time),
        in_scope(look)
    );
    body.push_str(&facts(&[
        ("coherent", count(told.counts.coherent)),
        ("probably coherent", count(told.counts.probably_coherent)),
        ("violating", count(told.counts.violating)),
        ("missing", count(told.counts.missing)),
        ("apart", duration(told.span_seconds)),
    ]));
    body.push_str(&format!(
        "<p>Page and parts were captured from {} to {}.</p>\n",
        moment(&told.earliest),
        moment(&told.latest)
    ));
    if told.parts.is_empty() {
        body.push_str("<p>It has no parts of its own.</p>\n");
        return Ok(frame::asking(look, "Parts of a page", &told.url, &body, None));
    }
    body.push_str(
        "<div class=\"wide\"><table><thead><tr><th scope=\"col\">part</th><th scope=\"col\">as</th><th scope=\"col\">verdict</th><th scope=\"col\">because</th>\
         <th scope=\"col\">captured</th><th scope=\"col\">from the page</th></tr></thead><tbody>",
    );
    for part in &told.parts {
        let named = match &part.replay {
            Some(address) => format!("<a href=\"{}\">{}</a>", escape(address), escape(&part.url)),
            None => escape(&part.url),
        };
        let wrong = if matches!(part.class, "violating" | "missing") { " class=\"wrong\"" } else { "" };
        let apart = part.apart_seconds.map_or("–".to_owned(), |seconds| match seconds {
            0 => "none".to_owned(),
            s if s < 0 => format!("{} before", duration(s)),
            s => format!("{} after", duration(s)),
        });
        body.push_str(&format!(
            "<tr><th scope=\"row\" class=\"url\">{named}</th><td>{}</td><td{wrong}>{}</td><td>{}</td><td>{}</td><td>{apart}</td></tr>",
            part.role,
            part.class,
            part.why,
            part.time.as_deref().map_or("–".to_owned(), moment),
        ));
    }
    body.push_str("</tbody></table></div>\n");
    if told.cut {
        body.push_str("<p class=\"soft\">The page has more parts than were looked at.</p>\n");
    }
    Ok(frame::asking(look, "Parts of a page", &told.url, &body, None))
}
