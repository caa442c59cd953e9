//! How fresh the archive is now: what its watches believe, and what waits to be looked at.

use super::frame::{self, count, duration, facts, moment};
use crate::answer::{Answer, escape};
use crate::cdx::params::Params;
use crate::find::Looking;
use crate::fresh::Watched;
use crate::trouble::Trouble;
use crate::visit::Visit;
use skep_warc::date;

/// The page.
pub fn page(look: &Looking<'_>, _: &Params, _: &Visit) -> Result<Answer, Trouble> {
    let watches = look.portal.fresh.now(look.now_ms)?;
    let mut body = super::live::links(look);
    if watches.is_empty() {
        body.push_str(
            "<p>Nothing here is watched. <code>skep watch URL</code> keeps an archive up to date, and this page then tells how well.</p>\n",
        );
    }
    if watches.len() > 1 {
        let pages: u64 = watches.iter().map(|watch| watch.pages).sum();
        let fresh: f64 = watches.iter().map(|watch| watch.fresh * watch.pages as f64).sum();
        body.push_str(&facts(&[
            ("up to date, as far as is believed", share(fresh / pages.max(1) as f64)),
            ("pages known", count(pages)),
            ("overdue", count(watches.iter().map(|watch| watch.overdue).sum())),
        ]));
    }
    for watch in watches.iter() {
        body.push_str(&section(watch, look.now_ms, watches.len() > 1));
    }
    if !watches.is_empty() {
        body.push_str(
            "<p class=\"soft\">A page is believed to be up to date by how often it changed before and how long ago it was looked at. <em>Waiting</em> is \
             not due yet, <em>overdue</em> waits for the budget or for its host's turn, <em>out</em> is being fetched.</p>\n",
        );
    }
    Ok(frame::page(look, "How fresh it is", &body))
}

fn share(share: f64) -> String {
    format!("{:.1} %", 100.0 * share.clamp(0.0, 1.0))
}

fn section(watch: &Watched, now_ms: i64, named: bool) -> String {
    let mut out = if named { format!("<h2>{}</h2>\n", escape(&watch.name)) } else { String::new() };
    out.push_str(&facts(&[
        ("up to date, as far as is believed", share(watch.fresh)),
        ("pages known", count(watch.pages)),
        ("waiting", count(watch.waiting)),
        ("overdue", count(watch.overdue)),
        ("out", count(watch.out)),
        ("bundles overdue", count(watch.overdue_bundles)),
    ]));
    if let Some(oldest_ms) = watch.oldest_check_ms {
        let ago = duration(now_ms.saturating_sub(oldest_ms) / 1_000);
        out.push_str(&format!("<p>The oldest check was {ago} ago, at {}.</p>\n", moment(&date::rfc3339(oldest_ms))));
    }
    if watch.sampled < watch.pages {
        out.push_str(&format!("<p class=\"soft\">By a sample of {} pages.</p>\n", count(watch.sampled)));
    }
    let tags: Vec<String> = watch.tags.iter().map(|tag| format!("<code>{}</code>", escape(tag))).collect();
    let tags = if tags.is_empty() { String::new() } else { format!(" Tags: {}.", tags.join(", ")) };
    out.push_str(&format!(
        "<p>Watch <code>{}</code>, policy {}.{tags}</p>\n",
        escape(&watch.name),
        escape(&watch.policy)
    ));
    out
}
