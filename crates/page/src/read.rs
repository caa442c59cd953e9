//! One page, from its bytes to everything it says.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};
use skep_url::Url;
use skep_warc::http::Head;

use crate::links::Links;
use crate::outlinks::{Outlink, Outlinks};
use crate::page::{Cut, Kind, LinkKind, Page};
use crate::resolve::Resolver;
use crate::{charset, css, directives, feed, header, limits, markup, sitemap, sniff};

/// A page as it was fetched.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// Where it was fetched from.
    pub url: &'a Url,
    /// The head of the answer, where there is one.
    pub head: Option<&'a Head>,
    /// Transfer and content encodings removed.
    pub body: &'a [u8],
}

/// Reads a page of any kind. What it is, its media type says; where that says nothing, its first bytes do.
pub fn read(input: &Input<'_>) -> Page {
    with_links(read_apart(input))
}

/// The same with its links apart, for who hands them on: the page itself has none.
pub fn read_apart(input: &Input<'_>) -> (Page, Outlinks) {
    let body = &input.body[..input.body.len().min(limits::PAGE_BYTES_MAX)];
    let kind = sniff::kind(input.url, input.head, body);
    read_apart_as(input, kind, encoding_of(input, kind, body))
}

fn with_links((page, links): (Page, Outlinks)) -> Page {
    Page { links: links.iter().map(Outlink::to_link).collect(), ..page }
}

/// The same for who knows what it is, and in which charset.
pub(crate) fn read_as(input: &Input<'_>, kind: Kind, declared: &'static Encoding) -> Page {
    with_links(read_apart_as(input, kind, declared))
}

fn read_apart_as(input: &Input<'_>, kind: Kind, declared: &'static Encoding) -> (Page, Outlinks) {
    let body = &input.body[..input.body.len().min(limits::PAGE_BYTES_MAX)];
    let xml = sniff::is_xml(input.head, body);
    let mut page = Page { kind, charset: declared.name(), ..Page::default() };
    let resolver = Resolver::new(input.url, declared);
    let (text, encoding) = scannable(if is_text(kind) { body } else { b"" }, declared);
    let mut links = Links::new(input.url.as_str(), resolver, encoding);
    if body.len() < input.body.len() {
        links.note(Cut::Bytes);
    }
    read_head(input, &mut page, &mut links);
    match kind {
        Kind::Html | Kind::Svg => {
            markup::read(&text, xml || kind == Kind::Svg, encoding, &mut page, &mut links);
        }
        Kind::Css => {
            if text.len() > limits::CSS_BYTES_MAX {
                links.note(Cut::Css);
            }
            let text = &text[..text.len().min(limits::CSS_BYTES_MAX)];
            css::links(text, encoding, &mut links);
        }
        Kind::Robots => {
            for sitemap in skep_url::robots::Robots::parse(body).sitemaps() {
                links.reference(&sitemap.url, LinkKind::Sitemap, false);
            }
        }
        Kind::Sitemap => {
            links.set_max(limits::SITEMAP_URLS_MAX);
            let found = sitemap::with_charset(body, declared);
            let entries = found.entries.iter().map(|entry| (&entry.url, LinkKind::Anchor));
            let more = found.more.iter().map(|url| (url, LinkKind::Sitemap));
            let also = found.also.iter().map(|link| (&link.url, link.kind));
            entries.chain(more).chain(also).for_each(|(url, kind)| links.reference(url, kind, false));
            found.cut.into_iter().for_each(|cut| links.note(cut));
        }
        Kind::Feed => {
            let found = feed::with_charset(input.url, body, declared);
            let entries = found.entries.iter().map(|entry| (&entry.url, LinkKind::Feed));
            let also = found.also.iter().map(|link| (&link.url, link.kind));
            entries.chain(also).for_each(|(url, kind)| links.reference(url, kind, false));
            page.title = found.title;
            found.cut.into_iter().for_each(|cut| links.note(cut));
        }
        Kind::Other => {}
    }
    let (links, cut) = links.finish();
    page.cut = cut;
    (page, links)
}

/// What the head of the answer says.
pub(crate) fn read_head(input: &Input<'_>, page: &mut Page, links: &mut Links) {
    if let Some(head) = input.head {
        directives::head(head, page);
        header::links(head, page, links);
    }
}

pub(crate) fn encoding_of(input: &Input<'_>, kind: Kind, body: &[u8]) -> &'static Encoding {
    let declared = input.head.and_then(Head::content_type);
    match kind {
        Kind::Html if sniff::is_xml(input.head, body) => charset::of_xml(body, declared),
        Kind::Html => charset::of_html(body, declared, input.url.host_name()),
        Kind::Svg | Kind::Sitemap | Kind::Feed => charset::of_xml(body, declared),
        Kind::Css => charset::of_css(body, declared),
        Kind::Robots | Kind::Other => UTF_8,
    }
}

/// Is it read here as one text?
fn is_text(kind: Kind) -> bool {
    matches!(kind, Kind::Html | Kind::Svg | Kind::Css)
}

/// Bytes in which markup can be found as it stands, and the charset of what is between it. In UTF-8 and the charsets of one
/// byte per character it can; others are decoded first.
pub(crate) fn scannable<'a>(body: &'a [u8], encoding: &'static Encoding) -> (Cow<'a, [u8]>, &'static Encoding) {
    let body = Encoding::for_bom(body).map_or(body, |(_, length)| &body[length..]);
    if encoding == UTF_8 || encoding.is_single_byte() {
        return (Cow::Borrowed(body), encoding);
    }
    let (text, _) = encoding.decode_without_bom_handling(body);
    let bytes = match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    };
    (bytes, UTF_8)
}
