//! One event of the stream of changes, as people read it. The script of the live page draws the same: `assets/live.js`.

use super::frame::{and_scope, encoded, link, moment};
use crate::answer::escape;
use crate::find::Looking;
use skep_changes::{Event, Kept};
use skep_warc::date;

/// The history of a URL.
pub fn history(look: &Looking<'_>, url: &str) -> String {
    format!("/history?url={}{}", encoded(url), and_scope(look))
}

/// Names of classes, and the share of the words that changed.
pub fn classes(event: &Event) -> String {
    let names: Vec<String> = event.classes.iter().map(|class| format!("<b>{}</b>", class.name())).collect();
    match event.share {
        0 => names.join(" "),
        share => format!("{} {}", names.join(" "), percent(share)),
    }
}

/// A share in ten thousandths, as people say it.
pub fn percent(share: u16) -> String {
    match share {
        1..100 => format!("{:.2} %", f64::from(share) / 100.0),
        share => format!("{:.0} %", f64::from(share) / 100.0),
    }
}

/// What can be said of it in a line: what came, where it leads, why it is no page.
pub fn gist(event: &Event) -> Option<&str> {
    let details = &event.details;
    let came = details.text.as_ref().map(|text| text.snippet.as_str()).filter(|text| !text.is_empty());
    let title = details.meta.as_ref().and_then(|meta| meta.title.as_deref());
    came.or(details.http.redirect.as_deref()).or(details.reason.as_deref()).or(title)
}

/// An item of a list.
pub fn item(look: &Looking<'_>, kept: &Kept<'_>) -> String {
    let Some(event) = kept.event() else { return String::new() };
    let gist = gist(&event).map_or(String::new(), |gist| format!("<p class=\"soft\">{}</p>", escape(gist)));
    format!(
        "<li><p class=\"url\" data-key=\"{}\">{} <span>{}</span> {}</p>{gist}</li>",
        kept.key_text(),
        moment(&date::rfc3339(event.time_ms)),
        classes(&event),
        link(&history(look, &event.url), &event.url),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_said_as_people_say_them() {
        assert_eq!([1, 99, 100, 310, 10_000].map(percent), ["0.01 %", "0.99 %", "1 %", "3 %", "100 %"]);
    }
}
