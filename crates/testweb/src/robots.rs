//! The robots.txt of a host, in the forms in which the web writes it.

use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::clock::Time;
use crate::limits;

/// What a host answers at `/robots.txt`. Paths refer to the sections of generated hosts.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Robots {
    /// Whatever the host itself has there: a file of a folder or history; on a generated host, 404.
    #[default]
    Own,
    /// Everything is allowed, in words.
    Allow,
    /// Everything is forbidden.
    DisallowAll,
    /// These prefixes are forbidden to all.
    Disallow(Vec<String>),
    /// Everything is allowed, at this many seconds apart.
    CrawlDelay(u32),
    /// Only the named agent is allowed; all others are not.
    Only(String),
    /// Groups, wildcards, ends, longer allows, comments, unknown lines: a careful file.
    Careful,
    /// The same rules after a byte order mark, with CRLF, odd case, blanks and broken lines.
    Messy,
    /// A page of HTML with status 200.
    Html,
    /// This status with a short body: 404, 403, 429, 500, 503 …
    Status(u16),
    /// This many redirects on the same host, then `/private/` is forbidden. More than five are too many.
    Redirect(u32),
    /// A redirect to this address, perhaps on another host.
    RedirectTo(String),
    /// A redirect to itself.
    Loop,
    /// `/private/` is forbidden at once and `/news/` after this many bytes of comments.
    Huge(usize),
    /// These very bytes.
    Text(String),
}

/// The variants that a generated world mixes, and how often each comes in a hundred.
pub(crate) const MIX: [(u32, &str); 12] = [
    (30, "allow"),
    (14, "disallow"),
    (10, "careful"),
    (8, "own"),
    (8, "crawl-delay"),
    (6, "messy"),
    (6, "redirect"),
    (4, "html"),
    (4, "403"),
    (4, "huge"),
    (3, "disallow-all"),
    (3, "500"),
];

impl Robots {
    /// The variant a mixed world gives a host for a draw of 0 to 99.
    pub fn mixed(draw: u32) -> Robots {
        let mut left = draw % 100;
        for (share, name) in MIX {
            if left >= share {
                left -= share;
                continue;
            }
            return match name {
                "allow" => Robots::Allow,
                "disallow" => Robots::Disallow(vec!["/private/".into(), "/search/".into()]),
                "careful" => Robots::Careful,
                "crawl-delay" => Robots::CrawlDelay(1),
                "messy" => Robots::Messy,
                "redirect" => Robots::Redirect(2),
                "html" => Robots::Html,
                "403" => Robots::Status(403),
                "huge" => Robots::Huge(600_000),
                "disallow-all" => Robots::DisallowAll,
                "500" => Robots::Status(500),
                _ => Robots::Own,
            };
        }
        Robots::Own
    }

    /// The answer at a path, if this path belongs to the robots.txt; `sitemap` is named in files that allow anything.
    pub fn answer(&self, path: &str, sitemap: Option<&str>, begin: Time) -> Option<Answer> {
        let hop = match path {
            "/robots.txt" => 0,
            other => {
                other.strip_prefix("/robots-")?.strip_suffix(".txt")?.parse::<u32>().ok().filter(|hop| *hop > 0)?
            }
        };
        if let Robots::Redirect(hops) = self {
            return match hop {
                hop if hop < *hops => Some(Answer::redirect(302, &format!("/robots-{}.txt", hop + 1))),
                hop if hop == *hops => Some(text("User-agent: *\nDisallow: /private/\n".into(), sitemap, begin)),
                _ => None,
            };
        }
        if hop > 0 {
            return None;
        }
        Some(match self {
            Robots::Own | Robots::Redirect(_) => return None,
            Robots::Allow => text("User-agent: *\nDisallow:\n".into(), sitemap, begin),
            Robots::DisallowAll => text("User-agent: *\nDisallow: /\n".into(), None, begin),
            Robots::Disallow(paths) => {
                let lines: String = paths.iter().map(|path| format!("Disallow: {path}\n")).collect();
                text(format!("User-agent: *\n{lines}"), sitemap, begin)
            }
            Robots::CrawlDelay(seconds) => {
                text(format!("User-agent: *\nCrawl-delay: {seconds}\nDisallow:\n"), sitemap, begin)
            }
            Robots::Only(agent) => {
                text(format!("User-agent: {agent}\nDisallow:\n\nUser-agent: *\nDisallow: /\n"), sitemap, begin)
            }
            Robots::Careful => text(CAREFUL.into(), sitemap, begin),
            Robots::Messy => text(MESSY.into(), sitemap, begin),
            Robots::Html => Answer::plain(
                200,
                "text/html; charset=utf-8",
                "<!DOCTYPE html>\n<title>Welcome</title>\n<p>Disallow: / is what this page does not mean.\n",
            ),
            Robots::Status(status) => Answer::status(*status),
            Robots::RedirectTo(to) => Answer::redirect(301, to),
            Robots::Loop => Answer::redirect(302, "/robots.txt"),
            Robots::Huge(bytes) => {
                let mut out = String::from("User-agent: *\nDisallow: /private/\n");
                let end = (*bytes).min(limits::ROBOTS_BYTES_MAX);
                while out.len() < end {
                    out.push_str(
                        "# a line that says nothing, again and again, until the file is far too long for anyone\n",
                    );
                }
                out.push_str("Disallow: /news/\n");
                text(out, None, begin)
            }
            Robots::Text(body) => text(body.clone(), None, begin),
        })
    }

    /// The paths this variant answers, `/robots.txt` first.
    pub fn paths(&self) -> Vec<String> {
        let hops = if let Robots::Redirect(hops) = self { *hops } else { 0 };
        let more = (1..=hops).map(|hop| format!("/robots-{hop}.txt"));
        std::iter::once("/robots.txt".to_string()).chain(more).collect()
    }
}

fn text(mut body: String, sitemap: Option<&str>, since: Time) -> Answer {
    if let Some(url) = sitemap {
        body.push_str(&format!("\nSitemap: {url}\n"));
    }
    Answer::found("text/plain; charset=utf-8", body, since)
}

/// Sections `private` and `search` are closed except one place in each; addresses with `lang=` are closed.
const CAREFUL: &str = "\
# Rules for everyone
User-agent: *
Disallow: /private/
Allow: /private/view?
Disallow: /search   # prefix, not folder
Allow: /search/*.html$
Disallow: /*lang=
Unknown-line: is ignored
Crawl-delay: 1

User-agent: badbot
User-agent: worsebot
Disallow: /
";

const MESSY: &str = "\u{feff}user-AGENT : *\r\n\
   DISALLOW :/private/  \r\n\
this line has no colon\r\n\
Disallow\r\n\
: no name\r\n\
allow:/private/view?\r\n\
dissallow: /search\r\n\
Disallow: /%73earch/\r\r\n\
\tDisallow:\t/*lang=\t# comment\r\n\
Allow: relative-without-slash";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_is_complete() {
        assert_eq!(MIX.iter().map(|(share, _)| share).sum::<u32>(), 100);
        assert_eq!(Robots::mixed(0), Robots::Allow);
        assert_eq!(Robots::mixed(99), Robots::Status(500));
        assert!((0..100).any(|draw| Robots::mixed(draw) == Robots::Huge(600_000)));
    }

    #[test]
    fn redirects_end() {
        let robots = Robots::Redirect(2);
        let at = |path| robots.answer(path, None, Time::BEGIN);
        assert_eq!(at("/robots.txt").unwrap().location.unwrap(), "/robots-1.txt");
        assert_eq!(at("/robots-1.txt").unwrap().location.unwrap(), "/robots-2.txt");
        assert_eq!(at("/robots-2.txt").unwrap().status, 200);
        assert!(at("/robots-3.txt").is_none() && at("/robots-0.txt").is_none() && at("/robots-x.txt").is_none());
    }

    #[test]
    fn huge_is_huge() {
        let answer = Robots::Huge(600_000).answer("/robots.txt", None, Time::BEGIN).unwrap();
        assert!(answer.body.len() > 600_000);
    }
}
