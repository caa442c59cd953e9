//! Which links belong to the crawl: scope, depth, types. Pure; what it remembers of hosts it could compute again.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use skep_page::LinkKind;
use skep_url::scope::Rule;
use skep_url::{Scope, Suffixes, Url};

use crate::error::Result;
use crate::hops::Hops;
use crate::limits::{HOST_MEMOS_MAX, URL_BYTES_MAX};
use crate::settings::{Settings, Type, rule_of};

/// Why a link is not taken. The number is kept in the registry, beside those of outcomes, which are below 1,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Refusal {
    /// No rule takes it in.
    Scope = 1001,
    /// An `exclude` pattern throws it out.
    Excluded = 1002,
    /// Too many links from a seed.
    Depth = 1003,
    /// Of a type that is not wanted.
    Type = 1004,
    /// One redirect too many.
    Redirects = 1005,
    /// Longer than any URL needs to be.
    Long = 1006,
    /// Not a URL that can be fetched.
    NotFetchable = 1007,
}

impl Refusal {
    /// The refusal with this number.
    pub fn from_number(number: u16) -> Option<Refusal> {
        use Refusal::{Depth, Excluded, Long, NotFetchable, Redirects, Scope, Type};
        [Scope, Excluded, Depth, Type, Redirects, Long, NotFetchable]
            .into_iter()
            .find(|refusal| *refusal as u16 == number)
    }

    /// A short name.
    pub fn id(self) -> &'static str {
        match self {
            Refusal::Scope => "out-of-scope",
            Refusal::Excluded => "excluded",
            Refusal::Depth => "too-deep",
            Refusal::Type => "type",
            Refusal::Redirects => "redirects",
            Refusal::Long => "too-long",
            Refusal::NotFetchable => "not-fetchable",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Scope => "no rule of the crawl takes it in",
            Refusal::Excluded => "a rule of the crawl excludes it",
            Refusal::Depth => "it is more links away from a seed than the crawl goes",
            Refusal::Type => "it is of a type that the crawl does not want",
            Refusal::Redirects => "it came after too many redirects in a row",
            Refusal::Long => "it is longer than 8,192 bytes",
            Refusal::NotFetchable => "it is no URL that can be fetched",
        })
    }
}

/// In which order the URLs of a host are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// What a page needs to be shown.
    Embed,
    /// Seeds, redirects, sitemaps and feeds.
    First,
    /// Pages.
    Page,
}

/// The link is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// How far from a seed.
    pub hops: Hops,
    /// When.
    pub rank: Rank,
}

/// The rules of a crawl, ready to be asked many times.
pub struct Rules {
    settings: Arc<Settings>,
    scope: Scope,
    /// No rule looks at more than the host: then the host decides.
    by_host: bool,
    hosts: HashMap<Box<str>, bool>,
    /// The last of them: most links of a page lead to its own host.
    last: (String, bool),
    /// Where seeds redirected to; the scope says how much that takes in.
    learned: Vec<String>,
}

impl Rules {
    /// Makes the rules of these settings ready. `learned` is where seeds redirected to.
    pub fn new(settings: Arc<Settings>, learned: Vec<String>) -> Result<Rules> {
        let suffixes = Suffixes::compiled();
        let scope = settings.scope()?;
        let mut rules = scope.rules().to_vec();
        for url in learned.iter().filter_map(|url| Url::parse(url).ok()) {
            let rule = rule_of(&url, settings.scope, &suffixes);
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        let scope =
            Scope::new(rules, suffixes).map_err(|error| crate::error::Error::Settings { what: error.to_string() })?;
        let by_host = scope
            .rules()
            .iter()
            .all(|rule| matches!(rule, Rule::All | Rule::Host { .. } | Rule::Site(_) | Rule::Domain(_)));
        Ok(Rules { settings, scope, by_host, hosts: HashMap::new(), last: Default::default(), learned })
    }

    /// Where seeds redirected to.
    pub fn learned(&self) -> &[String] {
        &self.learned
    }

    /// The settings behind the rules.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// A seed redirects to another host: that is where the crawl was meant to go.
    pub fn learn(&mut self, url: &Url) -> Result<()> {
        let is_known = self.learned.iter().any(|known| known == url.as_str());
        if !is_known && !self.scope.decide(url).inside {
            let mut learned = std::mem::take(&mut self.learned);
            learned.push(url.as_str().to_owned());
            *self = Rules::new(self.settings.clone(), learned)?;
        }
        Ok(())
    }

    /// Whether a URL that was heard of earlier belongs to the crawl as the rules are now. `hops` is how far it is itself.
    pub fn judge(&mut self, url: &str, kind: LinkKind, hops: Hops) -> Result<(), Refusal> {
        // Whoever types a seed means it.
        if hops == Hops::SEED && kind == LinkKind::Anchor {
            return Ok(());
        }
        let moved = hops.depth == 0 && kind == LinkKind::Redirect;
        if !self.is_inside(url) && (!(kind.is_embed() || moved) || self.is_excluded(url)) {
            return Err(if self.is_excluded(url) { Refusal::Excluded } else { Refusal::Scope });
        }
        self.is_near_and_wanted(url, kind, hops)
    }

    /// Whether a serialised URL is within the scope. Quick where the host decides.
    pub fn is_inside(&mut self, url: &str) -> bool {
        if !self.by_host {
            return Url::parse(url).is_ok_and(|url| self.scope.decide(&url).inside);
        }
        if !self.last.0.is_empty() && is_of(url, &self.last.0) {
            return self.last.1;
        }
        let origin = origin(url);
        let inside = match self.hosts.get(origin) {
            Some(inside) => *inside,
            None => {
                let inside = Url::parse(url).is_ok_and(|url| self.scope.decide(&url).inside);
                if self.hosts.len() >= HOST_MEMOS_MAX {
                    self.hosts.clear();
                }
                self.hosts.insert(origin.into(), inside);
                inside
            }
        };
        self.last.0.clear();
        self.last.0.push_str(origin);
        self.last.1 = inside;
        inside
    }

    /// Whether a link is taken. `from` is how far the page is that holds it, `page_inside` whether that page is in scope.
    pub fn admit(&mut self, url: &str, kind: LinkKind, from: Hops, page_inside: bool) -> Result<Taken, Refusal> {
        if url.len() > URL_BYTES_MAX {
            return Err(Refusal::Long);
        }
        let hops = hops_over(kind, from).ok_or(Refusal::Redirects)?;
        // What a page needs to be shown belongs to it wherever it is; but not a frame in a frame of strangers.
        let belongs = kind.is_embed() && (page_inside || kind != LinkKind::Frame);
        if !self.is_inside(url) && (!belongs || self.is_excluded(url)) {
            return Err(if self.is_excluded(url) { Refusal::Excluded } else { Refusal::Scope });
        }
        self.is_near_and_wanted(url, kind, hops)?;
        let rank = match kind {
            kind if kind.is_embed() => Rank::Embed,
            LinkKind::Redirect | LinkKind::Refresh | LinkKind::Sitemap | LinkKind::Feed => Rank::First,
            _ => Rank::Page,
        };
        Ok(Taken { hops, rank })
    }

    fn is_near_and_wanted(&self, url: &str, kind: LinkKind, hops: Hops) -> Result<(), Refusal> {
        if self.settings.depth.is_some_and(|depth| hops.depth > depth) {
            return Err(Refusal::Depth);
        }
        if !self.settings.types.is_empty() && !self.is_wanted(url, kind) {
            return Err(Refusal::Type);
        }
        Ok(())
    }

    fn is_excluded(&self, url: &str) -> bool {
        !self.by_host
            && Url::parse(url).is_ok_and(
                |url| matches!(self.scope.decide(&url), verdict if !verdict.inside && verdict.rule.is_some()),
            )
    }

    /// The verdict of the scope in words.
    pub fn explain(&self, url: &Url) -> String {
        self.scope.decide(url).to_string()
    }

    fn is_wanted(&self, url: &str, kind: LinkKind) -> bool {
        is_among(&self.settings.types, type_of(url, kind))
    }
}

/// Pages hold the links: without them there is nothing else to find.
fn is_among(types: &[Type], this: Type) -> bool {
    this == Type::Html || types.contains(&this)
}

/// Whether an answer is of one of these types, as far as its own says.
pub fn is_of_types(types: &[Type], mime: &str) -> bool {
    types.is_empty() || type_of_answer(mime).is_none_or(|came| is_among(types, came))
}

/// How far from a seed a link of this kind leads; `None` when it is one redirect too many.
pub fn hops_over(kind: LinkKind, from: Hops) -> Option<Hops> {
    match kind {
        LinkKind::Redirect | LinkKind::Refresh => from.redirected(),
        kind if kind.is_embed() => Some(from.beside()),
        LinkKind::Sitemap | LinkKind::Feed => Some(from.beside()),
        _ => Some(from.deeper()),
    }
}

/// Whether a serialised URL is of this origin.
pub fn is_of(url: &str, origin: &str) -> bool {
    url.strip_prefix(origin).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#']))
}

/// `scheme://host:port` of a serialised URL.
pub fn origin(url: &str) -> &str {
    let bytes = url.as_bytes();
    let colon = bytes.iter().position(|byte| matches!(byte, b':' | b'/' | b'?' | b'#')).unwrap_or(0);
    let from = if bytes[colon..].starts_with(b"://") { colon + 3 } else { 0 };
    let end = bytes[from..].iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    &url[..end.map_or(url.len(), |at| from + at)]
}

/// What a link probably leads to, before it is fetched.
pub fn type_of(url: &str, kind: LinkKind) -> Type {
    match kind {
        LinkKind::Image | LinkKind::Icon => return Type::Image,
        LinkKind::Style | LinkKind::Import => return Type::Style,
        LinkKind::Script => return Type::Script,
        LinkKind::Font => return Type::Font,
        LinkKind::Media => return Type::Media,
        LinkKind::Feed | LinkKind::Sitemap => return Type::Data,
        LinkKind::Frame => return Type::Html,
        _ => {}
    }
    let path = &url[origin(url).len()..];
    let path = path.split(['?', '#']).next().unwrap_or("");
    let name = path.rsplit('/').next().unwrap_or("");
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("png" | "jpg" | "jpeg" | "gif" | "webp" | "avif" | "svg" | "ico" | "bmp" | "tif" | "tiff") => Type::Image,
        Some("css") => Type::Style,
        Some("js" | "mjs") => Type::Script,
        Some("woff" | "woff2" | "ttf" | "otf" | "eot") => Type::Font,
        Some(
            "mp3" | "mp4" | "webm" | "ogg" | "oga" | "ogv" | "wav" | "avi" | "mov" | "m4a" | "m4v" | "flac" | "mkv",
        ) => Type::Media,
        Some(
            "pdf" | "ps" | "doc" | "docx" | "odt" | "xls" | "xlsx" | "ods" | "ppt" | "pptx" | "odp" | "rtf" | "epub",
        ) => Type::Document,
        Some("json" | "xml" | "rss" | "atom" | "csv" | "txt") => Type::Data,
        Some(
            "zip" | "gz" | "tgz" | "bz2" | "xz" | "7z" | "rar" | "tar" | "exe" | "dmg" | "iso" | "deb" | "rpm" | "apk"
            | "jar" | "bin",
        ) => Type::Other,
        _ => Type::Html,
    }
}

/// What came, by its media type; nothing where that says nothing.
pub fn type_of_answer(mime: &str) -> Option<Type> {
    let (kind, name) = mime.split_once('/')?;
    let ends = |ending: &str| name == ending || name.strip_suffix(ending).is_some_and(|before| before.ends_with('+'));
    let begins = |beginnings: &[&str]| beginnings.iter().any(|beginning| name.starts_with(beginning));
    Some(match (kind, name) {
        ("text", "html") | ("application", "xhtml+xml") => Type::Html,
        ("image", _) => Type::Image,
        ("text", "css") => Type::Style,
        ("text" | "application", "javascript" | "x-javascript" | "ecmascript") => Type::Script,
        ("font", _) => Type::Font,
        ("application", "vnd.ms-fontobject") => Type::Font,
        ("application", _) if begins(&["font-", "x-font-"]) => Type::Font,
        ("audio" | "video", _) => Type::Media,
        ("application", "pdf" | "postscript" | "rtf" | "msword" | "epub+zip") | ("text", "rtf") => Type::Document,
        ("application", _)
            if begins(&["vnd.openxmlformats-", "vnd.oasis.opendocument", "vnd.ms-excel", "vnd.ms-powerpoint"]) =>
        {
            Type::Document
        }
        ("application", "octet-stream" | "x-unknown") => return None,
        ("text", _) => Type::Data,
        _ if ends("json") || ends("xml") => Type::Data,
        _ => Type::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(settings: Settings) -> Rules {
        Rules::new(
            Arc::new(Settings { name: "t".into(), seeds: vec!["http://a.test/in/".into()], ..settings }),
            Vec::new(),
        )
        .unwrap()
    }

    const HERE: Hops = Hops { depth: 2, redirects: 0 };

    #[test]
    fn what_a_page_needs_comes_along_from_anywhere() {
        let mut rules = rules(Settings::default());
        assert_eq!(rules.admit("http://b.test/x", LinkKind::Anchor, HERE, true), Err(Refusal::Scope));
        let image = rules.admit("http://b.test/x.png", LinkKind::Image, HERE, true).unwrap();
        assert_eq!((image.hops.depth, image.rank), (2, Rank::Embed));
        assert!(rules.admit("http://b.test/frame", LinkKind::Frame, HERE, true).is_ok());
        assert_eq!(rules.admit("http://c.test/frame", LinkKind::Frame, HERE, false), Err(Refusal::Scope));
        assert!(rules.admit("http://c.test/font.woff", LinkKind::Font, HERE, false).is_ok());
        assert_eq!(rules.admit("http://a.test/y", LinkKind::Anchor, HERE, true).unwrap().hops.depth, 3);
    }

    #[test]
    fn excluded_is_excluded_also_for_what_a_page_needs() {
        let mut rules = rules(Settings { exclude: vec!["*/ads/*".into()], ..Settings::default() });
        assert_eq!(rules.admit("http://b.test/ads/1.png", LinkKind::Image, HERE, true), Err(Refusal::Excluded));
        assert!(rules.admit("http://b.test/1.png", LinkKind::Image, HERE, true).is_ok());
        assert_eq!(rules.admit("http://a.test/ads/", LinkKind::Anchor, HERE, true), Err(Refusal::Excluded));
    }

    #[test]
    fn depth_types_and_redirects_have_ends() {
        let mut rules = rules(Settings { depth: Some(2), types: vec![Type::Html], ..Settings::default() });
        assert_eq!(rules.admit("http://a.test/deep", LinkKind::Anchor, HERE, true), Err(Refusal::Depth));
        assert_eq!(rules.admit("http://a.test/x.png", LinkKind::Image, HERE, true), Err(Refusal::Type));
        let mut hops = Hops::SEED;
        let mut count = 0;
        while let Ok(taken) = rules.admit("http://a.test/r", LinkKind::Redirect, hops, true) {
            hops = taken.hops;
            count += 1;
        }
        assert_eq!(count, 10);
    }

    #[test]
    fn a_seed_that_redirects_takes_the_crawl_along() {
        let mut rules = rules(Settings::default());
        assert!(!rules.is_inside("https://www.a.test/"));
        rules.learn(&Url::parse("https://www.a.test/").unwrap()).unwrap();
        assert!(rules.is_inside("https://www.a.test/x") && rules.is_inside("http://a.test/x"));
    }

    #[test]
    fn what_was_heard_of_earlier_goes_by_the_rules_of_now() {
        let settings = Settings { exclude: vec!["*/ads/*".into()], depth: Some(3), ..Settings::default() };
        let mut rules = rules(settings);
        for (url, kind, depth, wanted) in [
            ("http://a.test/x", LinkKind::Anchor, 3, Ok(())),
            ("http://a.test/x", LinkKind::Anchor, 4, Err(Refusal::Depth)),
            ("http://b.test/x", LinkKind::Anchor, 1, Err(Refusal::Scope)),
            ("http://b.test/x", LinkKind::Image, 1, Ok(())),
            ("http://b.test/ads/x", LinkKind::Image, 1, Err(Refusal::Excluded)),
            ("http://a.test/ads/x", LinkKind::Anchor, 1, Err(Refusal::Excluded)),
            ("http://b.test/ads/seed", LinkKind::Anchor, 0, Ok(())),
            ("http://b.test/moved", LinkKind::Redirect, 0, Ok(())),
        ] {
            assert_eq!(rules.judge(url, kind, Hops { depth, redirects: 0 }), wanted, "{url} {kind:?} {depth}");
        }
    }

    #[test]
    fn what_came_is_of_the_types_that_are_wanted_or_of_none() {
        let images = [Type::Image];
        for mime in ["image/png", "image/svg+xml", "text/html", "application/xhtml+xml", "", "application/octet-stream"]
        {
            assert!(is_of_types(&images, mime), "{mime}");
        }
        for (mime, came) in [
            ("application/pdf", Type::Document),
            ("application/vnd.oasis.opendocument.text", Type::Document),
            ("text/css", Type::Style),
            ("application/javascript", Type::Script),
            ("font/woff2", Type::Font),
            ("application/font-woff", Type::Font),
            ("video/mp4", Type::Media),
            ("application/rss+xml", Type::Data),
            ("application/json", Type::Data),
            ("text/plain", Type::Data),
            ("application/zip", Type::Other),
        ] {
            assert_eq!(type_of_answer(mime), Some(came), "{mime}");
            assert!(!is_of_types(&images, mime) && is_of_types(&[came], mime) && is_of_types(&[], mime), "{mime}");
        }
    }

    #[test]
    fn origins_and_types_are_read_off_the_url() {
        assert_eq!(origin("http://a.test:81/x?y"), "http://a.test:81");
        assert_eq!(origin("http://a.test?y"), "http://a.test");
        assert_eq!(type_of("http://a.test/x.PDF?z=1.png", LinkKind::Anchor), Type::Document);
        assert_eq!(type_of("http://a.test/", LinkKind::Anchor), Type::Html);
        assert_eq!(type_of("http://a.test/archive.v2/list", LinkKind::Anchor), Type::Html);
    }
}
