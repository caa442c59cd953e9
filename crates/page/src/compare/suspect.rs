//! What came instead of a page: a test for robots, an outage, a wall, an empty shell. It never counts as a change.

use skep_url::Url;
use skep_warc::http::Head;

use crate::challenge;
use crate::version::{Fingerprint, Nature, Version};

/// The reason for a page that lost nearly all of its text. The only one that becomes a change if it stays.
pub const NEAR_EMPTY: &str = "near-empty";

/// A page with fewer words than one in twenty of those before, and than so many, is nearly empty.
const FEW_WORDS: u32 = 30;
/// A page had at least so many before.
const MANY_WORDS: u32 = 100;

/// Titles of pages that say that nothing is there, whatever the status.
const NOTHING_HERE: &[&str] = &[
    "404",
    "404 not found",
    "error 404",
    "file not found",
    "not found",
    "page not found",
    "page unavailable",
    "seite nicht gefunden",
    "page non trouvée",
    "página no encontrada",
    "site not found",
    "account suspended",
    "domain for sale",
    "site under maintenance",
    "maintenance",
    "under maintenance",
    "service unavailable",
    "temporarily unavailable",
    "log in",
    "login",
    "sign in",
];

/// Says why an answer with a body is no page to be compared, if it is none. `before` is what was there the last time.
pub fn suspect(
    status: u16,
    head: &Head,
    body: &[u8],
    version: &Version,
    before: Option<&Fingerprint>,
) -> Option<&'static str> {
    if let Some(kind) = challenge(status, head, body) {
        return Some(kind);
    }
    match status {
        200..=299 => {}
        401 | 407 => return Some("login"),
        402 | 403 | 451 => return Some("refused"),
        429 => return Some("busy"),
        _ => return Some("outage"),
    }
    if version.nature != Nature::Page {
        return None;
    }
    let before = before?;
    let words = version.print.words;
    let title = version.meta.title.as_deref().unwrap_or_default().trim().to_lowercase();
    let says_nothing = |name: &&str| title == **name || title.strip_prefix(*name).is_some_and(begins_apart);
    if version.print.meta != before.meta
        && words < before.words.max(MANY_WORDS)
        && NOTHING_HERE.iter().any(says_nothing)
    {
        return Some("soft-404");
    }
    (before.words >= MANY_WORDS && words < FEW_WORDS && words < before.words / 20).then_some(NEAR_EMPTY)
}

/// Does a redirect lead from a page to the start page of its own host? Many hosts send everybody there who asks for what is not
/// there any more.
pub fn leads_home(url: &Url, target: &Url) -> bool {
    let name = |url: &Url| url.host_name().strip_prefix("www.").unwrap_or(url.host_name()).to_owned();
    let path = url.request_target().split(['?', '#']).next().unwrap_or_default();
    // Another name of the start page.
    let is_start = ["/index", "/default", "/home"].iter().any(|start| {
        path.strip_prefix(start).is_some_and(|rest| (rest.is_empty() || rest.starts_with('.')) && !rest.contains('/'))
    });
    target.request_target() == "/" && path != "/" && !is_start && name(url) == name(target)
}

/// Does what follows a title stand apart from it, as the name of the site does?
fn begins_apart(rest: &str) -> bool {
    rest.trim_start().starts_with(['|', '-', '–', '—', '·', ':', '!'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_that_are_not_the_start_page_itself_lead_home() {
        let leads = |from: &str, to: &str| leads_home(&Url::parse(from).unwrap(), &Url::parse(to).unwrap());
        assert!(leads("http://a.test/news/1", "http://a.test/"));
        assert!(leads("http://a.test/news/1?page=2", "https://www.a.test/"));
        for (from, to) in [
            ("http://a.test/", "https://a.test/"),
            ("http://a.test/?from=mail", "http://a.test/"),
            ("http://a.test/index.html", "http://a.test/"),
            ("http://a.test/home", "http://a.test/"),
            ("http://a.test/news/1", "http://a.test/news/"),
            ("http://a.test/news/1", "http://a.test/?missing=1"),
            ("http://a.test/news/1", "http://b.test/"),
        ] {
            assert!(!leads(from, to), "{from} {to}");
        }
        assert!(leads("http://a.test/homes/1", "http://a.test/"));
    }
}
