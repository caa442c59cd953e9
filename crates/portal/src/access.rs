//! Who may see what: the one place that index, replay, search and export ask.
//!
//! Rules are read from a file; the first that fits a capture decides, and what no rule fits is shown:
//! ```toml
//! [[rule]]
//! urls = ["*.example.org", "http://example.com/private*"]   # a URL, everything below a prefix, a domain
//! from = "2019"                                              # captures from then on …
//! to = "2020"                                                # … up to then, both included
//! action = "block"                                           # allow, block, embargo
//! days = 365                                                 # embargo: hidden until so long after the capture
//! until = "2030-01-01"                                       # the rule ends by itself
//! ```
//! Captures made with secrets are shown to nobody but a token that may administer, whatever the rules say.

use crate::time;
use axum::http::{HeaderMap, header};
use serde::Deserialize;
use skep_archive::runs::Row;
use skep_archive::{Capture, FLAG_PRIVATE};
use skep_url::{Match, Scan};
use skep_warc::digest::{Algorithm, Digest};
use std::sync::Arc;

const DAY_MS: i64 = 86_400_000;

/// Who may see what, and who may change anything.
#[derive(Clone, Default)]
pub struct Access {
    rules: Arc<[Rule]>,
    users: Option<Arc<Users>>,
}

/// What somebody may do. Each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum May {
    /// Nothing.
    Nothing,
    /// See what is public.
    Read,
    /// Add captures and take some away.
    Write,
    /// Everything, also see captures that were made with secrets.
    Administer,
}

#[derive(Clone)]
struct Rule {
    scans: Vec<Scan>,
    from_ms: i64,
    to_ms: i64,
    until_ms: i64,
    action: Action,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Allow,
    Block,
    Embargo(i64),
}

struct Users {
    anybody: May,
    tokens: Vec<([u8; 32], May)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    /// Where the file is one of an archive's settings.
    #[serde(default, rename = "version")]
    _version: u32,
    #[serde(default)]
    rule: Vec<TypedRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TypedRule {
    urls: Vec<String>,
    from: Option<String>,
    to: Option<String>,
    until: Option<String>,
    action: String,
    days: Option<u32>,
    /// For whoever reads the file.
    #[serde(default, rename = "reason")]
    _reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UsersFile {
    #[serde(default = "public")]
    reading: String,
    #[serde(default)]
    token: Vec<TypedToken>,
}

fn public() -> String {
    "public".to_owned()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TypedToken {
    /// For whoever reads the file.
    #[serde(default, rename = "name")]
    _name: String,
    sha256: String,
    may: May,
}

/// `2019-06-01` and `20190601` are both times.
fn digits_of(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '-' | ':' | 'T' | 'Z')).collect()
}

impl TypedRule {
    fn meant(&self, number: usize) -> Result<Rule, String> {
        let wrong = |what: String| format!("rule {number}: {what}");
        let moment = |text: &Option<String>, read: fn(&str) -> Option<i64>, otherwise: i64| match text {
            None => Ok(otherwise),
            Some(text) => {
                read(&digits_of(text)).ok_or_else(|| wrong(format!("{text:?} is not a time such as 2019-06-01")))
            }
        };
        if self.urls.is_empty() {
            return Err(wrong("it names no URL; `urls = [\"*\"]` means all".to_owned()));
        }
        let action = match (self.action.as_str(), self.days) {
            ("allow", None) => Action::Allow,
            ("block", None) => Action::Block,
            ("embargo", Some(days)) => Action::Embargo(i64::from(days) * DAY_MS),
            ("embargo", None) => return Err(wrong("an embargo needs `days = N`".to_owned())),
            ("allow" | "block", Some(_)) => return Err(wrong("only an embargo has `days`".to_owned())),
            (other, _) => return Err(wrong(format!("{other:?} is not one of allow, block, embargo"))),
        };
        Ok(Rule {
            scans: self.urls.iter().map(|url| everything(url).unwrap_or_else(|| Scan::of(url, Match::Exact))).collect(),
            from_ms: moment(&self.from, time::earliest, i64::MIN)?,
            to_ms: moment(&self.to, time::latest, i64::MAX)?,
            until_ms: moment(&self.until, time::earliest, i64::MAX)?,
            action,
        })
    }
}

fn everything(url: &str) -> Option<Scan> {
    let all = Scan { start: String::new(), end: "\u{7f}".to_owned(), site_hash: None, kind: Match::Prefix };
    (url.trim() == "*").then_some(all)
}

impl Rule {
    fn fits(&self, capture: &Capture, now_ms: i64) -> bool {
        now_ms < self.until_ms
            && (self.from_ms..=self.to_ms).contains(&capture.time_ms)
            && self.scans.iter().any(|scan| scan.contains_key(&capture.key))
    }
}

impl Access {
    /// With the rules of a file, behind those that are there; an error says what is wrong with it.
    pub fn with_rules(mut self, text: &str) -> Result<Access, String> {
        let file: RulesFile = toml::from_str(text).map_err(|error| error.to_string())?;
        let rules: Result<Vec<Rule>, String> =
            file.rule.iter().zip(1..).map(|(rule, number)| rule.meant(number)).collect();
        self.rules = self.rules.iter().cloned().chain(rules?).collect();
        Ok(self)
    }

    /// With the tokens of a file; an error says what is wrong with it.
    ///
    /// ```toml
    /// reading = "public"        # or "token": then also reading needs one
    /// [[token]]
    /// name = "indexer"
    /// sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"   # printf %s TOKEN | sha256sum
    /// may = "write"             # read, write, administer
    /// ```
    pub fn with_users(mut self, text: &str) -> Result<Access, String> {
        let file: UsersFile = toml::from_str(text).map_err(|error| error.to_string())?;
        let anybody = match file.reading.as_str() {
            "public" => May::Read,
            "token" => May::Nothing,
            other => return Err(format!("reading = {other:?} is neither \"public\" nor \"token\"")),
        };
        let token = |token: &TypedToken| {
            let digest = Digest::parse(&format!("sha256:{}", token.sha256.trim()));
            let bytes = digest.ok().and_then(|digest| <[u8; 32]>::try_from(digest.as_bytes()).ok());
            let told =
                || format!("{:?} is not the SHA-256 of a token: `printf %s TOKEN | sha256sum` gives it", token.sha256);
            Ok((bytes.ok_or_else(told)?, token.may))
        };
        let tokens: Result<Vec<_>, String> = file.token.iter().map(token).collect();
        self.users = Some(Arc::new(Users { anybody, tokens: tokens? }));
        Ok(self)
    }

    /// What the sender of these headers may do: by a token in `Authorization`, as bearer or as a password.
    pub fn may(&self, headers: &HeaderMap) -> May {
        let Some(users) = &self.users else { return May::Read };
        let Some(token) = token_of(headers) else { return users.anybody };
        let hash = Digest::of(Algorithm::Sha256, token.as_bytes());
        // Hashes are compared, so how long it takes says nothing about the token.
        let known = users.tokens.iter().find(|(known, _)| known.as_slice() == hash.as_bytes());
        known.map_or(users.anybody, |(_, may)| (*may).max(users.anybody))
    }

    /// Whether anybody can be allowed to write.
    pub fn has_writers(&self) -> bool {
        self.users.as_ref().is_some_and(|users| users.tokens.iter().any(|(_, may)| *may >= May::Write))
    }

    /// Whether a capture is shown to somebody who may do so much.
    pub fn shows(&self, capture: &Capture, may: May, now_ms: i64) -> bool {
        if capture.is_private() && may < May::Administer {
            return false;
        }
        match self.rules.iter().find(|rule| rule.fits(capture, now_ms)).map(|rule| rule.action) {
            None | Some(Action::Allow) => true,
            Some(Action::Block) => false,
            Some(Action::Embargo(ms)) => capture.time_ms.saturating_add(ms) <= now_ms,
        }
    }
}

impl Access {
    /// Whether there are rules at all.
    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    /// The same for a capture that is read where it stands: most archives have no rules, and then it need not be copied out.
    pub fn shows_row(&self, row: &Row<'_>, may: May, now_ms: i64) -> bool {
        match self.rules.is_empty() {
            true => may >= May::Administer || row.flags() & FLAG_PRIVATE == 0,
            false => self.shows(&row.capture(), may, now_ms),
        }
    }
}

fn token_of(headers: &HeaderMap) -> Option<String> {
    // To a proxy, a browser sends it under another name.
    let sent = headers.get(header::PROXY_AUTHORIZATION).or_else(|| headers.get(header::AUTHORIZATION));
    let value = sent?.to_str().ok()?;
    let (scheme, rest) = value.split_once(' ')?;
    match scheme.to_ascii_lowercase().as_str() {
        "bearer" => Some(rest.trim().to_owned()),
        "basic" => {
            let bytes = base64(rest.trim())?;
            let text = String::from_utf8(bytes).ok()?;
            text.split_once(':').map(|(_, password)| password.to_owned())
        }
        _ => None,
    }
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut held) = (0u32, 0u32);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use skep_archive::{CaptureKind, FLAG_PRIVATE, Key, Position};

    fn capture(url: &str, digits: &str) -> Capture {
        Capture {
            key: Key::of(url),
            url: url.to_owned(),
            time_ms: time::earliest(digits).unwrap(),
            position: Position::default(),
            kind: CaptureKind::Response,
            status: 200,
            mime: String::new(),
            digest: None,
            offset: 0,
            length: 0,
            flags: 0,
        }
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let rules = r#"
            [[rule]]
            urls = ["http://example.org/open"]
            action = "allow"
            [[rule]]
            urls = ["*.example.org"]
            from = "2019"
            to = "2019-06"
            action = "block"
            reason = "asked by the owner"
            [[rule]]
            urls = ["http://news.example/a*"]
            action = "embargo"
            days = 10
            [[rule]]
            urls = ["*"]
            from = "2024"
            until = "2025"
            action = "block"
        "#;
        let access = Access::default().with_rules(rules).unwrap();
        let now = time::earliest("20240601").unwrap();
        let shows = |url: &str, digits: &str| access.shows(&capture(url, digits), May::Read, now);
        assert!(shows("http://example.org/open", "20190301"));
        assert!(!shows("http://www.example.org/x", "20190301"));
        assert!(!shows("http://a.b.example.org/x", "20190630235959"));
        assert!(shows("http://example.org/x", "20190701"));
        assert!(shows("http://example.orgs/x", "20190301"));
        assert!(!shows("http://news.example/abc", "20240523"), "within the embargo");
        assert!(shows("http://news.example/abc", "20240521"), "after the embargo");
        assert!(!shows("http://other.example/", "20240101"));
        let later = time::earliest("2025").unwrap();
        assert!(access.shows(&capture("http://other.example/", "20240101"), May::Read, later), "the rule has ended");
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told() {
        let wrong = |text: &str| Access::default().with_rules(text).err().unwrap();
        assert!(wrong("[[rule]]\nurls = [\"a\"]\naction = \"hide\"").contains("allow, block, embargo"));
        assert!(wrong("[[rule]]\nurls = []\naction = \"block\"").contains("rule 1"));
        assert!(wrong("[[rule]]\nurls = [\"a\"]\naction = \"embargo\"").contains("days"));
        assert!(wrong("[[rule]]\nurls = [\"a\"]\naction = \"block\"\nfrom = \"soon\"").contains("soon"));
        assert!(wrong("[[rule]]\nurl = \"a\"\naction = \"block\"").contains("url"));
        assert!(
            Access::default()
                .with_users("[[token]]\nsha256 = \"x\"\nmay = \"read\"")
                .err()
                .unwrap()
                .contains("sha256sum")
        );
        assert!(Access::default().with_users("reading = \"no\"").is_err());
    }

    #[test]
    fn tokens_open_what_they_say() {
        let hash = Digest::of(Algorithm::Sha256, b"open sesame").hex();
        let file = format!("reading = \"token\"\n[[token]]\nsha256 = \"{hash}\"\nmay = \"administer\"");
        let access = Access::default().with_users(&file).unwrap();
        let headers = |value: &str| HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())]);
        assert_eq!(access.may(&HeaderMap::new()), May::Nothing);
        assert_eq!(access.may(&headers("Bearer open sesame")), May::Administer);
        assert_eq!(access.may(&headers("Bearer open")), May::Nothing);
        assert_eq!(access.may(&headers("Basic dXNlcjpvcGVuIHNlc2FtZQ==")), May::Administer);
        assert_eq!(access.may(&headers("Basic !")), May::Nothing);
        assert!(access.has_writers() && !Access::default().has_writers());
        let private = Capture { flags: FLAG_PRIVATE, ..capture("http://a.example/", "2019") };
        assert!(!access.shows(&private, May::Write, 0) && access.shows(&private, May::Administer, 0));
    }
}
