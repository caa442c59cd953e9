//! The links of HTML, XHTML and SVG, with title, language, canonical URL and what `meta` elements say.

use encoding_rs::{Encoding, UTF_8};

use crate::directives;
use crate::element::Element;
use crate::foreign::Space;
use crate::links::Links;
use crate::page::{Cut, LinkKind, Page};
use crate::relation::{self, Relation};
use crate::scan::{Options, Scanner, Tag, Token};
use crate::{css, limits, refresh, srcset, value};

/// Reads the markup into `page` and `links`.
pub fn read(bytes: &[u8], xml: bool, charset: &'static Encoding, page: &mut Page, links: &mut Links) {
    let (links_before, canonical_before) = (links.so_far().clone(), page.canonical.clone());
    if Reader::new(charset, page, links).run(bytes, xml) == End::BaseComesLate {
        // Links stood before the base that counts for them. It is rare, so they are read again instead of being kept back.
        links.restart(&links_before);
        page.canonical = canonical_before;
        Reader { base: true, ..Reader::new(charset, page, links) }.run(bytes, xml);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Done,
    BaseComesLate,
}

/// Reads markup as its tokens come.
pub struct Reader<'r> {
    charset: &'static Encoding,
    page: &'r mut Page,
    links: &'r mut Links,
    /// The base is known.
    base: bool,
    /// This is a page inside a page.
    is_inner: bool,
    form_open: bool,
    templates_open: u32,
    css_bytes: usize,
    /// References that others resolved before.
    references_before: u64,
    /// What was opened last, if nothing was closed since.
    last: Element,
    position: usize,
}

impl<'r> Reader<'r> {
    pub fn new(charset: &'static Encoding, page: &'r mut Page, links: &'r mut Links) -> Reader<'r> {
        let references_before = links.references();
        Reader {
            charset,
            page,
            links,
            base: false,
            is_inner: false,
            form_open: false,
            templates_open: 0,
            css_bytes: 0,
            references_before,
            last: Element::default(),
            position: 0,
        }
    }

    fn run(&mut self, bytes: &[u8], xml: bool) -> End {
        let mut scanner = Scanner::new(bytes, Options { text: xml, xml });
        while let Some(token) = scanner.next() {
            if self.token(token, &scanner, xml) == End::BaseComesLate {
                return End::BaseComesLate;
            }
            scanner.want_text(xml || self.is_drawn_style(&scanner.tag));
            if self.links.is_full() {
                break;
            }
        }
        self.finish(&scanner);
        End::Done
    }

    /// Inside svg, the content of a style sheet is text like any other.
    fn is_drawn_style(&self, tag: &Tag<'_>) -> bool {
        self.last == Element::Style && tag.space == Space::Svg
    }

    /// Takes the next token in. Text is looked at where it counts, whether it is handed out elsewhere or not.
    pub fn token(&mut self, token: Token<'_>, scanner: &Scanner<'_>, xml: bool) -> End {
        match token {
            Token::Start => {
                self.last = scanner.tag.element;
                if self.start(&scanner.tag) == End::BaseComesLate {
                    return End::BaseComesLate;
                }
            }
            Token::End => {
                match scanner.tag.element {
                    Element::Form => self.form_open = false,
                    Element::Template => self.templates_open = self.templates_open.saturating_sub(1),
                    _ => {}
                }
                self.last = Element::default();
            }
            Token::Raw { text, .. } if self.last == Element::Title => self.title(text),
            Token::Raw { text, .. } if self.last == Element::Style => self.style(text, self.charset),
            Token::Raw { .. } => {}
            Token::Text(text) if self.last == Element::Title && xml => self.title(text),
            Token::Text(text) if self.last == Element::Style && (xml || self.is_drawn_style(&scanner.tag)) => {
                self.style(value::text(text, self.charset).as_bytes(), UTF_8);
            }
            Token::Cdata(text) if self.last == Element::Style && (xml || self.is_drawn_style(&scanner.tag)) => {
                self.style(text, self.charset);
            }
            Token::Text(_) | Token::Cdata(_) => {}
        }
        self.links.charge((scanner.position() - self.position) as u64);
        self.position = scanner.position();
        End::Done
    }

    /// The page ends.
    pub fn finish(&mut self, scanner: &Scanner<'_>) {
        if scanner.attributes_cut {
            self.links.note(Cut::Attributes);
        }
    }

    fn start(&mut self, tag: &Tag<'_>) -> End {
        if let Some(style) = tag.style
            && memchr::memchr(b'(', style).is_some()
            && let Some(text) = self.links.value(style)
        {
            self.style(text.as_bytes(), UTF_8);
        }
        match tag.space {
            Space::Html => self.html(tag),
            Space::Svg => {
                self.svg(tag);
                End::Done
            }
            Space::Math => {
                self.link(tag, "href", LinkKind::Anchor);
                End::Done
            }
        }
    }

    fn html(&mut self, tag: &Tag<'_>) -> End {
        match tag.element {
            Element::A => self.anchor(tag, LinkKind::Anchor),
            Element::Area => self.anchor(tag, LinkKind::Area),
            Element::Base => return self.base(tag),
            Element::Link => self.relation(tag),
            Element::Img | Element::Image => {
                self.link(tag, "src", LinkKind::Image);
                self.srcset(tag, "srcset", LinkKind::Image);
                self.link(tag, "data-src", LinkKind::Guess);
                self.srcset(tag, "data-srcset", LinkKind::Guess);
            }
            Element::Source => {
                self.link(tag, "src", LinkKind::Media);
                self.srcset(tag, "srcset", LinkKind::Image);
                self.link(tag, "data-src", LinkKind::Guess);
                self.srcset(tag, "data-srcset", LinkKind::Guess);
            }
            Element::Iframe | Element::Frame => {
                self.link(tag, "src", LinkKind::Frame);
                self.inner_page(tag);
                self.link(tag, "data-src", LinkKind::Guess);
            }
            Element::Video | Element::Audio => {
                self.link(tag, "src", LinkKind::Media);
                self.link(tag, "poster", LinkKind::Image);
                self.link(tag, "data-src", LinkKind::Guess);
            }
            Element::Track | Element::Bgsound => self.link(tag, "src", LinkKind::Media),
            Element::Embed => self.link(tag, "src", LinkKind::Object),
            Element::Object => self.link(tag, "data", LinkKind::Object),
            Element::Script => self.link(tag, "src", LinkKind::Script),
            Element::Form => self.form(tag),
            Element::Input if tag.attribute("type").is_some_and(|kind| kind.eq_ignore_ascii_case(b"image")) => {
                self.link(tag, "src", LinkKind::Image);
            }
            Element::Body
            | Element::Table
            | Element::Tbody
            | Element::Tfoot
            | Element::Thead
            | Element::Tr
            | Element::Td
            | Element::Th => self.link(tag, "background", LinkKind::Image),
            Element::Html => self.language(tag.attribute("lang").or_else(|| tag.attribute("xml:lang"))),
            Element::Meta => self.meta(tag),
            Element::Template if !tag.self_closing => self.templates_open = self.templates_open.saturating_add(1),
            _ => {}
        }
        End::Done
    }

    fn svg(&mut self, tag: &Tag<'_>) {
        let kind = match tag.element {
            Element::A => LinkKind::Anchor,
            Element::Image | Element::FeImage | Element::Use => LinkKind::Image,
            Element::Script => LinkKind::Script,
            _ => return,
        };
        // The newer name counts where both stand.
        let name = if tag.attribute("href").is_some() { "href" } else { "xlink:href" };
        self.link(tag, name, kind);
    }

    /// A frame may hold its page in an attribute; what that links to, this page does.
    fn inner_page(&mut self, tag: &Tag<'_>) {
        if self.is_inner {
            return;
        }
        if let Some(markup) = tag.attribute("srcdoc").and_then(|raw| self.links.value(raw)) {
            let outer = self.links.set_charset(UTF_8);
            let mut page = Page::default();
            let inner = Reader::new(UTF_8, &mut page, self.links);
            Reader { is_inner: true, base: true, css_bytes: self.css_bytes, ..inner }.run(markup.as_bytes(), false);
            self.links.set_charset(outer);
        }
    }

    fn link(&mut self, tag: &Tag<'_>, name: &str, kind: LinkKind) {
        if let Some(raw) = tag.attribute(name)
            && !raw.is_empty()
        {
            self.links.attribute(raw, kind, false);
        }
    }

    fn anchor(&mut self, tag: &Tag<'_>, kind: LinkKind) {
        if let Some(raw) = tag.attribute("href") {
            let nofollow = tag.attribute("rel").is_some_and(|rel| relation::has_word(rel, "nofollow"));
            self.links.attribute(raw, kind, nofollow);
        }
    }

    fn srcset(&mut self, tag: &Tag<'_>, name: &str, kind: LinkKind) {
        if let Some(raw) = tag.attribute(name)
            && let Some(set) = self.links.value(raw)
        {
            for candidate in srcset::candidates(&set) {
                self.links.reference(candidate, kind, false);
            }
        }
    }

    fn base(&mut self, tag: &Tag<'_>) -> End {
        if self.base || self.templates_open > 0 {
            return End::Done;
        }
        let Some(reference) = tag.attribute("href").and_then(|raw| self.links.value(raw)) else { return End::Done };
        self.base = true;
        // One that cannot be fetched from, such as `data:`, does not count.
        let Some(resolver) = self.links.resolver().with_base(&reference) else { return End::Done };
        self.page.base = Some(resolver.base().to_owned());
        self.links.set_resolver(resolver);
        if self.links.references() == self.references_before { End::Done } else { End::BaseComesLate }
    }

    fn relation(&mut self, tag: &Tag<'_>) {
        let rel = tag.attribute("rel").unwrap_or_default();
        let (kind, shape) = (tag.attribute("type").unwrap_or_default(), tag.attribute("as").unwrap_or_default());
        match relation::of(rel, kind, shape) {
            Relation::Link(link) => {
                self.link(tag, "href", link);
                if link == LinkKind::Image {
                    self.srcset(tag, "imagesrcset", LinkKind::Image);
                }
                if link == LinkKind::Canonical
                    && self.page.canonical.is_none()
                    && let Some(reference) = tag.attribute("href").and_then(|raw| self.links.value(raw))
                {
                    self.page.canonical = self.links.resolved(&reference);
                }
            }
            Relation::Nothing => {}
        }
    }

    fn form(&mut self, tag: &Tag<'_>) {
        // A form inside a form is no form.
        if self.form_open && self.templates_open == 0 {
            return;
        }
        self.form_open = self.templates_open == 0;
        let method = tag.attribute("method").unwrap_or_default();
        if !method.eq_ignore_ascii_case(b"post") && !method.eq_ignore_ascii_case(b"dialog") {
            self.link(tag, "action", LinkKind::Form);
        }
    }

    fn meta(&mut self, tag: &Tag<'_>) {
        let Some(content) = tag.attribute("content").and_then(|raw| self.links.value(raw)) else { return };
        if let Some(pragma) = tag.attribute("http-equiv") {
            if pragma.eq_ignore_ascii_case(b"refresh") {
                if let Some(reference) = refresh::reference(&content) {
                    self.links.reference(reference, LinkKind::Refresh, false);
                }
            } else if pragma.eq_ignore_ascii_case(b"content-language") {
                self.language(Some(content.as_bytes()));
            }
        }
        if let Some(name) = tag.attribute("name").and_then(|raw| self.links.value(raw)) {
            directives::meta(&name.to_ascii_lowercase(), &content, self.page);
        }
    }

    fn language(&mut self, declared: Option<&[u8]>) {
        if self.page.language.is_none()
            && let Some(declared) = declared
        {
            self.page.language = directives::language(&value::attribute(declared, self.charset));
        }
    }

    fn title(&mut self, raw: &[u8]) {
        if self.page.title.is_none() {
            let some = &raw[..raw.len().min(limits::TITLE_BYTES_MAX * 16)];
            let title = value::collapsed(&value::text(some, self.charset), limits::TITLE_BYTES_MAX);
            self.page.title = (!title.is_empty()).then_some(title);
        }
    }

    fn style(&mut self, text: &[u8], charset: &'static Encoding) {
        let room = limits::CSS_BYTES_MAX - self.css_bytes;
        if text.len() > room {
            self.links.note(Cut::Css);
        }
        let text = &text[..text.len().min(room)];
        self.css_bytes += text.len();
        self.links.charge(text.len() as u64);
        css::links(text, charset, self.links);
    }
}
