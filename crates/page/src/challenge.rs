//! Pages that test whether a person asks, in place of the page that was asked for.
//!
//! Such an answer is kept, but it is no content: its links are not followed and it is no change. Being wrong the other way
//! loses a page, so every rule needs a mark that only the tester itself puts there: a field of the answer, or markup
//! that documentation about it would have escaped; words count only on short pages with an error status.

use std::sync::LazyLock;

use aho_corasick::packed::Searcher;
use encoding_rs::UTF_8;
use memchr::memmem;
use skep_warc::http::Head;

use crate::scan::{Options, Scanner, Token};
use crate::{limits, text, value};

/// Visible text of a page that is nothing but a test, in bytes.
const WORDS_BYTES_MAX: usize = 1_500;

/// Titles of such pages, in lower case.
const TITLES: &[&str] = &[
    "access denied",
    "are you a robot?",
    "attention required! | cloudflare",
    "bot verification",
    "captcha",
    "checking your browser",
    "checking your browser before accessing",
    "ddos protection",
    "human verification",
    "just a moment...",
    "making sure you're not a bot!",
    "one moment, please...",
    "pardon our interruption",
    "please verify you are a human",
    "please wait...",
    "robot check",
    "security check",
    "verify you are human",
    "verifying you are human",
];

/// Whether a page may have one of [`TITLES`] or of [`MARKS_OF_A_GOOD_ANSWER`], without reading its markup: all are looked for in one pass.
fn is_worth_a_close_look(body: &[u8]) -> bool {
    static SEARCHER: LazyLock<Option<Searcher>> =
        LazyLock::new(|| Searcher::new(MARKS_OF_A_GOOD_ANSWER.into_iter().chain(["<ti", "<tI", "<Ti", "<TI"])));
    let beginning = &body[..body.len().min(TITLE_WITHIN_BYTES)];
    match &*SEARCHER {
        Some(searcher) => searcher.find_iter(body).any(|found| {
            found.pattern().as_usize() < MARKS_OF_A_GOOD_ANSWER.len() || has_such_a_title(beginning, found.start())
        }),
        // A processor without wide registers.
        None => {
            memchr::memchr_iter(b'<', beginning).any(|at| has_such_a_title(beginning, at))
                || MARKS_OF_A_GOOD_ANSWER.iter().any(|mark| memmem::find(body, mark.as_bytes()).is_some())
        }
    }
}

/// Whether the tag that begins here begins a title that may be one of [`TITLES`].
fn has_such_a_title(beginning: &[u8], at: usize) -> bool {
    let tag = beginning.get(at + 1..).unwrap_or_default();
    tag.get(..5).is_some_and(|name| name.eq_ignore_ascii_case(b"title")) && {
        let text = tag.split(|byte| *byte == b'>').nth(1).unwrap_or_default();
        let text = text.split(|byte| *byte == b'<').next().unwrap_or_default();
        // A character written otherwise than as itself is for the close look.
        let title = String::from_utf8_lossy(text).split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        title.contains('&') || TITLES.contains(&title.as_str())
    }
}

/// Titles of tests stand near the beginning.
const TITLE_WITHIN_BYTES: usize = 16 << 10;

/// Without one of these, or a title above, no answer with status 200 is a test. They stand in markup and scripts, where ASCII is written as it is.
const MARKS_OF_A_GOOD_ANSWER: [&str; 6] =
    ["anubis_challenge", "_cf_chl_opt", "ddos-guard", "sec-if-cpt-container", "bm-verify=", "_Incapsula_Resource"];

/// Who tests, where this answer is a test.
pub fn challenge(status: u16, head: &Head, body: &[u8]) -> Option<&'static str> {
    by_head(head).or_else(|| {
        let refused = matches!(status, 202 | 401 | 403 | 405 | 406 | 428 | 429 | 468 | 503 | 512);
        if body.len() > limits::CHALLENGE_BYTES_MAX || !(refused || status == 200) {
            return None;
        }
        // Nearly every answer is a page: only one that has a mark at all is looked at closely.
        if !refused && !is_worth_a_close_look(body) {
            return None;
        }
        let marks = Marks::of(body);
        by_markup(&marks, refused, head).or_else(|| by_words(&marks, refused, body))
    })
}

/// Fields that say it outright.
fn by_head(head: &Head) -> Option<&'static str> {
    let is = |name: &str, words: &[&str]| {
        let value = head.header(name).unwrap_or_default();
        words.iter().any(|word| value.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
    };
    if is("cf-mitigated", &["challenge"]) {
        Some("cloudflare")
    } else if is("x-vercel-mitigated", &["challenge"]) {
        Some("vercel")
    } else if is("x-amzn-waf-action", &["challenge", "captcha"]) {
        Some("aws-waf")
    } else {
        None
    }
}

/// What stands in the markup itself: ids and addresses of scripts and frames, and the text of scripts.
struct Marks {
    title: String,
    /// Values of `id`, `class`, `src`, `action` and `content`, and inline scripts, each on a line.
    markup: Vec<u8>,
    links: usize,
}

impl Marks {
    fn of(body: &[u8]) -> Marks {
        let mut marks = Marks { title: String::new(), markup: Vec::new(), links: 0 };
        let mut scanner = Scanner::new(body, Options::default());
        let mut last = crate::element::Element::default();
        while let Some(token) = scanner.next() {
            match token {
                Token::Start => {
                    last = scanner.tag.element;
                    marks.links += usize::from(last == crate::element::Element::A);
                    for name in ["id", "class", "src", "action", "content"] {
                        if let Some(value) = scanner.tag.attribute(name) {
                            marks.markup.extend_from_slice(name.as_bytes());
                            marks.markup.push(b'=');
                            marks.markup.extend_from_slice(value);
                            marks.markup.push(b'\n');
                        }
                    }
                }
                Token::Raw { text, .. } if last == crate::element::Element::Title && marks.title.is_empty() => {
                    marks.title = value::collapsed(&value::text(text, UTF_8), limits::TITLE_BYTES_MAX).to_lowercase();
                }
                Token::Raw { text, .. } if last == crate::element::Element::Script => {
                    marks.markup.extend_from_slice(text)
                }
                _ => {}
            }
        }
        marks
    }

    fn has(&self, mark: &str) -> bool {
        memmem::find(&self.markup, mark.as_bytes()).is_some()
    }
}

fn by_markup(marks: &Marks, refused: bool, head: &Head) -> Option<&'static str> {
    let server = head.header("server").unwrap_or_default().to_ascii_lowercase();
    let few_links = marks.links <= 8;
    if marks.has("id=anubis_challenge") {
        return Some("anubis");
    }
    if marks.has("_cf_chl_opt") && few_links && (refused || marks.title == "just a moment...") {
        return Some("cloudflare");
    }
    if marks.has("/.well-known/ddos-guard/js-challenge/") || marks.has("check.ddos-guard.net/check.js") && refused {
        return few_links.then_some("ddos-guard");
    }
    if marks.has("id=sec-if-cpt-container") || marks.has("bm-verify=") && few_links {
        return Some("akamai");
    }
    if marks.has("_Incapsula_Resource") && few_links && marks.title.is_empty() {
        return Some("incapsula");
    }
    if !refused || !few_links {
        return None;
    }
    if marks.has("captcha-delivery.com") {
        Some("datadome")
    } else if marks.has("id=px-captcha") || marks.has("_pxAppId") {
        Some("perimeterx")
    } else if (server.starts_with(b"akamai") || is_timed_by_akamai(head)) && marks.title == "access denied" {
        Some("akamai")
    } else if marks.has("hcaptcha.com/1/api.js") {
        Some("hcaptcha")
    } else if marks.has("google.com/recaptcha/") || marks.has("recaptcha.net/recaptcha/") {
        Some("recaptcha")
    } else if ["class=g-recaptcha", "class=h-captcha", "class=cf-turnstile"].iter().any(|widget| marks.has(widget)) {
        Some("captcha")
    } else {
        None
    }
}

/// `Server-Timing: ak_p; …` stands in answers that Akamai gives itself, also where the name of the server is hidden.
fn is_timed_by_akamai(head: &Head) -> bool {
    head.header("server-timing").is_some_and(|timing| timing.trim_ascii().starts_with(b"ak_p"))
}

fn by_words(marks: &Marks, refused: bool, body: &[u8]) -> Option<&'static str> {
    // Servers refuse with "Access Denied" for other reasons too; that alone is no test.
    let named = marks.title != "access denied" && TITLES.contains(&marks.title.as_str());
    if !named || marks.links > 3 {
        return None;
    }
    let words = text::visible(body, UTF_8, false, WORDS_BYTES_MAX).text;
    // A page that was found is a test only if a script does all the work.
    (words.len() < WORDS_BYTES_MAX && (refused || words.len() < 400 && marks.has("src="))).then_some("generic")
}
