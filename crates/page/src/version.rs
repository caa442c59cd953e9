//! A page as it is compared with itself at another time: what a reader sees, in blocks; what it links to; what it says of itself;
//! and a fingerprint of each, so that most comparisons need no more than that.
//!
//! ```text
//!   bytes ──▶ markup      every tag with what tells it apart, scripts and styles left out
//!         ──▶ text        visible blocks without stamps, counters and names of sessions
//!         ──▶ links       where a reader can go, without what names a visitor or a moment
//!         ──▶ meta        title, description, canonical URL, language, what robots may do
//!         ──▶ facts       price, availability, version: structured data
//! ```

mod blocks;
mod facts;
mod normal;
mod parts;
mod rules;
mod selector;
mod tags;

use std::borrow::Cow;
use std::ops::Range;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

pub use facts::Facts;
pub use normal::RULES;
pub(crate) use normal::words;
pub use rules::{NoRules, Rules};
pub use selector::NoSelector;

use crate::page::{Cut, Kind, Page};
use crate::read::Input;
use crate::{limits, sniff};
use parts::Parts;

/// A page as it is compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Version {
    /// What it is to a reader.
    pub nature: Nature,
    /// The visible text as shown, blocks on lines of their own.
    pub text: String,
    /// Its blocks, in order.
    pub blocks: Vec<Block>,
    /// Where a reader can go, ordered by address, each once.
    pub links: Vec<Linked>,
    /// What it says of itself.
    pub meta: Meta,
    /// Structured data.
    pub facts: Facts,
    /// All of it in a few numbers.
    pub print: Fingerprint,
    /// The first bound that was met.
    pub cut: Option<Cut>,
}

/// What a file is to a reader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Nature {
    /// Markup that shows text: pages, feeds, sitemaps, drawings.
    Page,
    /// Text without markup.
    Text,
    /// Styles and scripts: they change how other pages look.
    Code,
    /// Anything else: its bytes are all there is.
    #[default]
    File,
}

/// One block of visible text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Where it stands in the text.
    pub at: Range<usize>,
    /// What it comes to.
    pub digest: u64,
    /// Words of it.
    pub words: u32,
}

/// A link that a reader can follow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Linked {
    /// The address as compared.
    pub url: String,
    /// The block that it stands in, or before.
    pub block: u32,
}

/// What a page says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meta {
    /// The title.
    pub title: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The URL under which it would like to be known.
    pub canonical: Option<String>,
    /// The language.
    pub language: Option<String>,
    /// What robots are asked to leave: `noindex nofollow`.
    pub robots: String,
}

/// What a version comes to. Equal numbers mean equal parts, as far as 64 bits can tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fingerprint {
    /// The version of the rules it was read by.
    pub rules: u16,
    /// Tags and text.
    pub markup: u64,
    /// The visible text.
    pub text: u64,
    /// The links.
    pub links: u64,
    /// What it says of itself.
    pub meta: u64,
    /// Structured data.
    pub facts: u64,
    /// Words of the text.
    pub words: u32,
}

impl Version {
    /// Reads a page by these rules.
    pub fn read(input: &Input<'_>, rules: &Rules) -> Version {
        Version::with(input, rules, None, Parts::of)
    }

    /// The same, sooner: another version of the page is at hand that was read by the same rules.
    pub fn read_beside(input: &Input<'_>, rules: &Rules, other: &Version) -> Version {
        Version::with(input, rules, Some(other), Parts::of)
    }

    /// The same, one part after the other: what the quick ways are held to.
    pub(crate) fn read_in_turn(input: &Input<'_>, rules: &Rules) -> Version {
        Version::with(input, rules, None, Parts::of_in_turn)
    }

    fn with(
        input: &Input<'_>,
        rules: &Rules,
        beside: Option<&Version>,
        read: fn(&Input<'_>, Kind, &Rules) -> Parts,
    ) -> Version {
        let body = &input.body[..input.body.len().min(limits::PAGE_BYTES_MAX)];
        let kind = sniff::kind(input.url, input.head, body);
        let nature = nature(kind, input, body);
        let mut version = Version { nature, ..Version::default() };
        match nature {
            Nature::Page => version.page(read(&Input { body, ..*input }, kind, rules), rules, beside),
            Nature::Text => {
                let text = String::from_utf8_lossy(&body[..body.len().min(limits::TEXT_BYTES_MAX)]);
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                version.text = lines.collect::<Vec<_>>().join("\n");
                version.divide(rules, beside);
                version.print.markup = version.print.text;
            }
            Nature::Code | Nature::File => version.print.markup = xxh3_64(body),
        }
        if body.len() < input.body.len() {
            version.cut.get_or_insert(Cut::Bytes);
        }
        version.print.rules = RULES;
        version
    }

    fn page(&mut self, parts: Parts, rules: &Rules, beside: Option<&Version>) {
        (self.text, self.cut) = (parts.shown.text, parts.shown.cut.or(parts.page.cut));
        self.divide(rules, beside);
        (self.links, self.facts) = (parts.links, parts.facts);
        self.links.sort_unstable();
        self.links.dedup_by(|later, first| later.url == first.url);
        self.print.links = digest(self.links.iter().map(|link| link.url.as_str()));
        self.meta = meta(parts.page, parts.description);
        let title = self.meta.title.as_deref().map(normal::line).unwrap_or_default();
        let described = self.meta.description.as_deref().map(normal::line).unwrap_or_default();
        let canonical = self.meta.canonical.as_deref().map(normal::address).unwrap_or_default();
        let language = self.meta.language.as_deref().unwrap_or_default();
        self.print.meta = digest([&*title, &*described, &*canonical, language, &self.meta.robots]);
        self.print.facts = digest(self.facts.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]));
        let parts = [parts.tags, self.print.text, self.print.links, self.print.meta, self.print.facts];
        self.print.markup = xxh3_64(&parts.map(u64::to_le_bytes).concat());
    }

    /// Divides the text into blocks; what `beside` has of the same is taken from there.
    fn divide(&mut self, rules: &Rules, beside: Option<&Version>) {
        let divided = blocks::divide(&self.text, rules, beside);
        if divided.cut {
            self.cut.get_or_insert(Cut::Work);
        }
        (self.blocks, self.print.text, self.print.words) = (divided.blocks, divided.digest, divided.words);
    }

    /// The text of a block as shown.
    pub fn shown(&self, block: &Block) -> &str {
        self.text.get(block.at.clone()).unwrap_or_default()
    }

    /// The text of a block as compared, but for the patterns of a site.
    pub(crate) fn compared(&self, block: &Block) -> Cow<'_, str> {
        normal::line(self.shown(block))
    }
}

fn nature(kind: Kind, input: &Input<'_>, body: &[u8]) -> Nature {
    let media_type = input.head.and_then(skep_warc::http::Head::mime).unwrap_or_default();
    match kind {
        Kind::Html | Kind::Svg | Kind::Feed | Kind::Sitemap => Nature::Page,
        Kind::Css => Nature::Code,
        Kind::Robots => Nature::Text,
        Kind::Other if media_type.contains("javascript") || media_type.contains("ecmascript") => Nature::Code,
        Kind::Other => {
            let named = media_type.starts_with("text/") || media_type.ends_with("json") || media_type.ends_with("xml");
            let start = &body[..body.len().min(limits::SNIFF_BYTES)];
            if named && memchr::memchr(0, start).is_none() { Nature::Text } else { Nature::File }
        }
    }
}

fn meta(page: Page, description: Option<String>) -> Meta {
    let asked = [
        ("noarchive", page.directives.noarchive),
        ("nofollow", page.directives.nofollow),
        ("noindex", page.directives.noindex),
        ("nosnippet", page.directives.nosnippet),
    ];
    let robots: Vec<&str> = asked.into_iter().filter_map(|(name, is)| is.then_some(name)).collect();
    Meta {
        title: page.title,
        description,
        canonical: page.canonical,
        language: page.language,
        robots: robots.join(" "),
    }
}

fn digest<'t>(texts: impl IntoIterator<Item = &'t str>) -> u64 {
    let mut all = Xxh3::new();
    for text in texts {
        all.update(text.as_bytes());
        all.update(&[0]);
    }
    all.digest()
}
