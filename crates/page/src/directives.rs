//! What a page asks of crawlers, and what it says about use: `robots` metas, `X-Robots-Tag`, consent signals.

use skep_warc::http::Head;

use crate::limits;
use crate::page::{Directives, Page};
use crate::value;

/// The name under which pages and answers speak to this crawler alone.
pub const AGENT: &str = "skep";

/// Names of fields and metas that state how a page may be used.
const SIGNALS: &[&str] = &[
    "ai-policy",
    "ai-training",
    "ai-usage",
    "content-signal",
    "content-usage",
    "llm-policy",
    "permissions-policy-ai",
    "tdm-policy",
    "tdm-reservation",
];

/// Reads `<meta name=… content=…>`; the name is in lower case.
pub fn meta(name: &str, content: &str, page: &mut Page) {
    let name = name.trim_ascii();
    if name == "robots" || name == AGENT {
        content.split([',', ' ', '\t', '\n']).for_each(|word| word_of(word, &mut page.directives));
    } else if SIGNALS.contains(&name) {
        signal(name, content, page);
    }
}

/// Reads the fields of an answer.
pub fn head(head: &Head, page: &mut Page) {
    for field in head.fields() {
        let name = field.name;
        if name.eq_ignore_ascii_case(b"x-robots-tag") {
            robots_tag(&bounded(&field.unfolded()), &mut page.directives);
        } else if name.eq_ignore_ascii_case(b"content-language") {
            if page.language.is_none() {
                page.language = language(&bounded(&field.unfolded()));
            }
        } else if let Some(known) = SIGNALS.iter().find(|known| name.eq_ignore_ascii_case(known.as_bytes())) {
            signal(known, &bounded(&field.unfolded()), page);
        }
    }
}

/// One language tag, the first of several.
pub fn language(declared: &str) -> Option<String> {
    let first = declared.split(',').next()?.trim();
    let is_tag = !first.is_empty()
        && first.len() <= 64
        && first.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    is_tag.then(|| first.to_owned())
}

fn bounded(value: &[u8]) -> String {
    String::from_utf8_lossy(&value[..value.len().min(limits::HEADER_BYTES_MAX)]).into_owned()
}

/// `noindex, nofollow` for all, `skep: noarchive` for this crawler, `other: …` for another.
fn robots_tag(value: &str, directives: &mut Directives) {
    let mut for_us = true;
    for part in value.split(',') {
        let mut word = part.trim();
        if let Some((agent, rest)) = word.split_once(':') {
            let agent = agent.trim();
            let is_agent =
                !agent.is_empty() && agent.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
            let has_value = ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"];
            if is_agent && !has_value.iter().any(|name| agent.eq_ignore_ascii_case(name)) {
                for_us = agent.eq_ignore_ascii_case(AGENT);
                word = rest;
            }
        }
        if for_us {
            word.split_ascii_whitespace().for_each(|word| word_of(word, directives));
        }
    }
}

fn word_of(word: &str, directives: &mut Directives) {
    match word.trim().to_ascii_lowercase().as_str() {
        "noarchive" | "nocache" => directives.noarchive = true,
        "nofollow" => directives.nofollow = true,
        "noindex" => directives.noindex = true,
        "nosnippet" => directives.nosnippet = true,
        "noimageindex" => directives.noimageindex = true,
        "notranslate" => directives.notranslate = true,
        "noai" => directives.noai = true,
        "noimageai" => directives.noimageai = true,
        "none" => (directives.noindex, directives.nofollow) = (true, true),
        _ => {}
    }
}

/// Keeps a statement, once.
pub fn signal(name: &str, text: &str, page: &mut Page) {
    let entry = (name.to_owned(), value::collapsed(text, limits::SIGNAL_BYTES_MAX));
    if page.signals.len() < limits::SIGNALS_MAX && !page.signals.contains(&entry) {
        page.signals.push(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(value: &str) -> Directives {
        let mut directives = Directives::default();
        robots_tag(value, &mut directives);
        directives
    }

    #[test]
    fn robots_tags_speak_to_all_or_to_one() {
        assert!(tag("noindex, NOFOLLOW").nofollow);
        assert!(tag("skep: noarchive").noarchive);
        assert!(!tag("otherbot: noarchive, nofollow").nofollow);
        assert_eq!(tag("otherbot: noindex, Skep: nofollow"), Directives { nofollow: true, ..Directives::default() });
        assert!(tag("unavailable_after: 25 Jun 2030 15:00:00 PST, noarchive").noarchive);
        assert!(tag("max-snippet: 10, none").noindex);
        assert_eq!(tag(""), Directives::default());
    }

    #[test]
    fn metas_are_read() {
        let mut page = Page::default();
        meta("robots", "noindex,noarchive", &mut page);
        meta("skep", "nofollow", &mut page);
        meta("googlebot", "nosnippet", &mut page);
        meta("tdm-reservation", "1", &mut page);
        meta("tdm-reservation", "1", &mut page);
        meta("description", "tdm", &mut page);
        let wanted = Directives { noindex: true, noarchive: true, nofollow: true, ..Directives::default() };
        assert_eq!(page.directives, wanted);
        assert_eq!(page.signals, [("tdm-reservation".to_owned(), "1".to_owned())]);
    }

    #[test]
    fn languages_are_tags() {
        assert_eq!(language(" de-AT , en").as_deref(), Some("de-AT"));
        assert_eq!(language("<script>"), None);
        assert_eq!(language(""), None);
    }
}
