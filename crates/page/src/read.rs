//! One page, from its bytes to everything it says.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};
use skep_url::Url;
use skep_warc::http::Head;

use crate::links::Links;
use crate::page::{Cut, Kind, LinkKind, Page};
use crate::resolve::Resolver;
use crate::{charset, css, directives, header, limits, markup, sniff};

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
    let body = &input.body[..input.body.len().min(limits::PAGE_BYTES_MAX)];
    let kind = sniff::kind(input.url, input.head, body);
    let (encoding, xml) = (encoding_of(input, kind, body), sniff::is_xml(input.head, body));
    let mut page = Page { kind, charset: encoding.name(), ..Page::default() };
    let Some(resolver) = Resolver::new(input.url.as_str(), encoding) else { return page };
    let (text, encoding) = scannable(body, encoding, kind);
    let mut links = Links::new(input.url.as_str(), resolver, encoding);
    if body.len() < input.body.len() {
        links.note(Cut::Bytes);
    }
    if let Some(head) = input.head {
        directives::head(head, &mut page);
        header::links(head, &mut page, &mut links);
    }
    match kind {
        Kind::Html | Kind::Svg => {
            markup::read(&text, xml || kind == Kind::Svg, encoding, &mut page, &mut links);
        }
        Kind::Css => {
            let text = &text[..text.len().min(limits::CSS_BYTES_MAX)];
            if text.len() < body.len() / 2 {
                links.note(Cut::Css);
            }
            css::links(text, encoding, &mut links);
        }
        Kind::Robots => {
            for sitemap in skep_url::robots::Robots::parse(body).sitemaps() {
                links.reference(&sitemap.url, LinkKind::Sitemap, false);
            }
        }
        Kind::Sitemap | Kind::Feed | Kind::Other => {}
    }
    (page.links, page.cut) = links.finish();
    page
}

fn encoding_of(input: &Input<'_>, kind: Kind, body: &[u8]) -> &'static Encoding {
    let declared = input.head.and_then(Head::content_type);
    match kind {
        Kind::Html if sniff::is_xml(input.head, body) => charset::of_xml(body, declared),
        Kind::Html => charset::of_html(body, declared, input.url.host_name()),
        Kind::Svg | Kind::Sitemap | Kind::Feed => charset::of_xml(body, declared),
        Kind::Css => charset::of_css(body, declared),
        Kind::Robots | Kind::Other => UTF_8,
    }
}

/// Bytes in which markup can be found as it stands, and the charset of what is between it. In UTF-8 and the charsets of one
/// byte per character it can; others are decoded first.
fn scannable<'a>(body: &'a [u8], encoding: &'static Encoding, kind: Kind) -> (Cow<'a, [u8]>, &'static Encoding) {
    let body = Encoding::for_bom(body).map_or(body, |(_, length)| &body[length..]);
    if encoding == UTF_8 || encoding.is_single_byte() || matches!(kind, Kind::Robots | Kind::Other) {
        return (Cow::Borrowed(body), encoding);
    }
    let (text, _) = encoding.decode_without_bom_handling(body);
    let bytes = match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    };
    (bytes, UTF_8)
}
