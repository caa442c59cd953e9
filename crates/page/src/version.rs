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

mod facts;
mod normal;
mod rules;
mod selector;

use std::borrow::Cow;
use std::ops::Range;

use encoding_rs::{Encoding, UTF_8};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

pub use facts::Facts;
pub use normal::RULES;
pub(crate) use normal::words;
pub use rules::{NoRules, Rules};
pub use selector::NoSelector;

use crate::element::Element;
use crate::links::Links;
use crate::page::{Cut, Kind, Page};
use crate::read::{Input, encoding_of, read_as, scannable};
use crate::resolve::Resolver;
use crate::scan::{Options, Scanner, Tag, Token};
use crate::text::{self, Watch};
use crate::{limits, sniff, value};

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
        let body = &input.body[..input.body.len().min(limits::PAGE_BYTES_MAX)];
        let kind = sniff::kind(input.url, input.head, body);
        let nature = nature(kind, input, body);
        let mut version = Version { nature, ..Version::default() };
        match nature {
            Nature::Page => version.page(input, kind, body, rules),
            Nature::Text => {
                let text = String::from_utf8_lossy(&body[..body.len().min(limits::TEXT_BYTES_MAX)]);
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                version.text = lines.collect::<Vec<_>>().join("\n");
                version.divide(rules);
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

    fn page(&mut self, input: &Input<'_>, kind: Kind, body: &[u8], rules: &Rules) {
        let declared = encoding_of(input, kind, body);
        let page = read_as(&Input { body, ..*input }, kind, declared);
        let xml = kind != Kind::Html || sniff::is_xml(input.head, body);
        let (bytes, encoding) = scannable(body, declared);
        let resolver = Resolver::new(input.url, declared);
        let resolver = page.base.as_deref().and_then(|base| resolver.with_base(base)).unwrap_or(resolver);
        let mut watcher = Watcher {
            links: Links::new(input.url.as_str(), resolver, encoding),
            found: Vec::new(),
            keep: rules.keep.clone(),
            kept: None,
            ignore: rules.ignore.clone(),
        };
        let shown = text::watched(&bytes, encoding, xml, limits::TEXT_BYTES_MAX, &mut watcher);
        (self.text, self.cut) = (shown.text, shown.cut.or(page.cut));
        self.divide(rules);
        self.links = watcher.found;
        if matches!(kind, Kind::Feed | Kind::Sitemap) {
            let url = |link: &crate::Link| Linked { url: normal::address(&link.url).into_owned(), block: 0 };
            self.links.extend(page.links.iter().map(url));
        }
        self.links.sort();
        self.links.dedup_by(|later, first| later.url == first.url);
        self.print.links = digest(self.links.iter().map(|link| link.url.as_str()));
        let (tags, description) = tags(&bytes, xml, encoding, &mut self.facts);
        self.meta = meta(page, description);
        let title = self.meta.title.as_deref().map(normal::line).unwrap_or_default();
        let described = self.meta.description.as_deref().map(normal::line).unwrap_or_default();
        let canonical = self.meta.canonical.as_deref().map(normal::address).unwrap_or_default();
        let language = self.meta.language.as_deref().unwrap_or_default();
        self.print.meta = digest([&*title, &*described, &*canonical, language, &self.meta.robots]);
        self.print.facts = digest(self.facts.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]));
        let parts = [tags, self.print.text, self.print.links, self.print.meta, self.print.facts];
        self.print.markup = xxh3_64(&parts.map(u64::to_le_bytes).concat());
    }

    /// Divides the text into blocks.
    fn divide(&mut self, rules: &Rules) {
        let mut at = 0;
        let mut all = Xxh3::new();
        for line in self.text.split('\n') {
            let range = at..at + line.len();
            at = range.end + 1;
            if self.blocks.len() >= limits::BLOCKS_MAX {
                self.cut.get_or_insert(Cut::Work);
                break;
            }
            let mut compared = normal::line(line);
            for pattern in &rules.patterns {
                if pattern.is_match(&compared) {
                    compared = pattern.replace_all(&compared, "").into_owned().into();
                }
            }
            let compared = compared.trim();
            let digest = if compared.is_empty() { 0 } else { xxh3_64(compared.as_bytes()) };
            let words = normal::count_words(compared) as u32;
            if digest != 0 {
                all.update(&digest.to_le_bytes());
            }
            self.print.words = self.print.words.saturating_add(words);
            self.blocks.push(Block { at: range, digest, words });
        }
        self.print.text = all.digest();
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

/// Looks on while the text is read: where links stand, and which parts count.
struct Watcher {
    links: Links,
    found: Vec<Linked>,
    keep: selector::Selectors,
    /// The outermost element that is kept, and how many of its name are open.
    kept: Option<(Element, u32)>,
    ignore: selector::Selectors,
}

impl Watch for Watcher {
    fn start(&mut self, tag: &Tag<'_>, line: usize, hidden: bool) -> bool {
        let opens = !tag.self_closing && !text::is_void(tag.element);
        match &mut self.kept {
            Some((element, depth)) if *element == tag.element && opens => *depth += 1,
            Some(_) => {}
            None => {
                if !self.keep.is_empty() && self.keep.start(tag, opens) && opens {
                    self.kept = Some((tag.element, 1));
                }
            }
        }
        let shown = self.ignore.is_empty() || !self.ignore.start(tag, opens);
        if shown
            && !hidden
            && self.shows()
            && matches!(tag.element, Element::A | Element::Area)
            && self.found.len() < limits::LINKS_MAX
            && let Some(reference) = tag.attribute("href").and_then(|raw| self.links.value(raw))
            && let Some(url) = self.links.resolved(&reference)
        {
            self.found.push(Linked { url: normal::address(&url).into_owned(), block: line as u32 });
        }
        shown
    }

    fn end(&mut self, element: Element) {
        if let Some((kept, depth)) = &mut self.kept
            && *kept == element
        {
            *depth -= 1;
            if *depth == 0 {
                self.kept = None;
            }
        }
        if self.kept.is_none() {
            self.keep.end(element);
        }
        self.ignore.end(element);
    }

    fn shows(&self) -> bool {
        self.keep.is_empty() || self.kept.is_some()
    }
}

/// What the tags come to, and the description of the page. Facts are collected on the way.
fn tags(bytes: &[u8], xml: bool, charset: &'static Encoding, facts: &mut Facts) -> (u64, Option<String>) {
    let mut scanner = Scanner::new(bytes, Options { text: false, xml });
    let (mut all, mut linked_data, mut description) = (Xxh3::new(), false, None);
    let mut scratch = Vec::new();
    while let Some(token) = scanner.next() {
        match token {
            Token::Start => {
                let tag = &scanner.tag;
                let decoded = |name: &str| tag.attribute(name).map(|raw| value::attribute(raw, charset));
                linked_data = tag.element == Element::Script
                    && tag
                        .attribute("type")
                        .is_some_and(|kind| kind.trim_ascii().to_ascii_lowercase().starts_with(b"application/ld+json"));
                if let Some(name) = decoded("itemprop")
                    && let Some(content) = decoded("content").or_else(|| decoded("href"))
                {
                    facts::property(&name, content.rsplit('/').next().unwrap_or(&content), facts);
                }
                if tag.element == Element::Meta
                    && let (Some(name), Some(content)) = (decoded("name").or(decoded("property")), decoded("content"))
                {
                    if name.eq_ignore_ascii_case("description") && description.is_none() {
                        description = Some(value::collapsed(&content, limits::TITLE_BYTES_MAX));
                    }
                    facts::meta(&name, &content, facts);
                }
                if !matches!(tag.element, Element::Script | Element::Style | Element::Noscript | Element::Meta) {
                    scratch.clear();
                    write_tag(tag, &mut scratch);
                    all.update(&scratch);
                }
            }
            Token::Raw { text, .. } if linked_data => {
                facts::script(&value::decoded(text, UTF_8), facts);
                linked_data = false;
            }
            _ => {}
        }
    }
    (all.digest(), description)
}

fn lower(name: &[u8]) -> Cow<'_, [u8]> {
    match name.iter().any(u8::is_ascii_uppercase) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    }
}

/// A start tag without what is made anew for each answer.
fn write_tag(tag: &Tag<'_>, out: &mut Vec<u8>) {
    out.extend(tag.name.iter().map(u8::to_ascii_lowercase));
    let mut attributes: Vec<(Cow<'_, [u8]>, &[u8])> =
        tag.attributes.iter().map(|attribute| (lower(attribute.name), attribute.value)).collect();
    attributes.sort();
    let hidden =
        tag.element == Element::Input && tag.attribute("type").is_some_and(|kind| kind.eq_ignore_ascii_case(b"hidden"));
    for (name, value) in attributes {
        match &*name {
            b"nonce" | b"integrity" | b"style" | b"id" | b"for" | b"srcset" | b"sizes" => continue,
            b"value" if hidden => continue,
            name if name.starts_with(b"data-") || name.starts_with(b"on") || name.starts_with(b"aria-") => continue,
            _ => {}
        }
        out.push(b' ');
        out.extend_from_slice(&name);
        out.push(b'=');
        match &*name {
            b"class" => {
                let chosen = value.split(u8::is_ascii_whitespace).filter(|class| !class.iter().any(u8::is_ascii_digit));
                chosen.for_each(|class| out.extend_from_slice(class));
            }
            b"href" if matches!(tag.element, Element::A | Element::Area) => {}
            b"src" | b"href" | b"action" => {
                out.extend_from_slice(value.split(|byte| *byte == b'?').next().unwrap_or_default());
            }
            _ => out.extend_from_slice(value),
        }
    }
    out.push(b'\n');
}
