//! The parts of a page that are compared, as they stand there: what is shown, where it leads, what it says of itself, its tags and facts.
//!
//! ```text
//!   at once   one scan, each token shown to all who want something of it; links are resolved in the end, when the base is known
//!   in turn   one scan for each: pages that may meet a bound, a base that comes behind links, feeds and sitemaps
//! ```
//! Both give the same, which tests hold them to.

use std::borrow::Cow;

use encoding_rs::Encoding;

use super::facts::Facts;
use super::rules::Rules;
use super::tags::Tags;
use super::{Linked, normal, selector};
use crate::element::Element;
use crate::links::Links;
use crate::markup::{End, Reader};
use crate::page::{Kind, Page};
use crate::read::{Input, encoding_of, read_as, read_head, scannable};
use crate::resolve::Resolver;
use crate::scan::{Options, Scanner, Tag};
use crate::text::{self, Showing, Text, Watch};
use crate::{limits, sniff, value};

/// What is read of markup to be compared.
#[derive(Debug, PartialEq, Eq)]
pub struct Parts {
    /// What the page says of itself; where it leads is not asked here.
    pub page: Page,
    pub shown: Text,
    /// In the order of the page, as often as they stand there.
    pub links: Vec<Linked>,
    /// What the tags come to.
    pub tags: u64,
    pub description: Option<String>,
    pub facts: Facts,
}

impl Parts {
    pub fn of(input: &Input<'_>, kind: Kind, rules: &Rules) -> Parts {
        let markup = Markup::of(input, kind);
        Parts::at_once(input, kind, &markup, rules).unwrap_or_else(|| Parts::in_turn(input, kind, &markup, rules))
    }

    /// The same, always in turn.
    pub fn of_in_turn(input: &Input<'_>, kind: Kind, rules: &Rules) -> Parts {
        Parts::in_turn(input, kind, &Markup::of(input, kind), rules)
    }

    /// In one scan; `None` for what has to be read in turn.
    fn at_once(input: &Input<'_>, kind: Kind, markup: &Markup<'_>, rules: &Rules) -> Option<Parts> {
        if !matches!(kind, Kind::Html | Kind::Svg) {
            return None;
        }
        let Markup { bytes, charset, declared, xml } = markup;
        let mut page = Page { kind, charset: declared.name(), ..Page::default() };
        let mut links = Links::counted(Resolver::new(input.url, declared), charset);
        read_head(input, &mut page, &mut links);
        let mut reader = Reader::new(charset, &mut page, &mut links);
        let mut showing = Showing::new(charset, limits::TEXT_BYTES_MAX);
        let (mut watcher, mut tags, mut shows) = (Watcher::new(rules, charset, None), Tags::new(charset), true);
        let mut scanner = Scanner::new(bytes, Options { text: true, xml: *xml });
        while let Some(token) = scanner.next() {
            if reader.token(token, &scanner, *xml) == End::BaseComesLate {
                return None;
            }
            tags.token(token, &scanner.tag);
            shows = shows && showing.token(token, &scanner.tag, &mut watcher);
        }
        reader.finish(&scanner);
        if !links.has_room() || !watcher.has_room() {
            return None;
        }
        watcher.resolve(links.resolver());
        page.cut = links.finish().1;
        let (tags, description, facts) = tags.finish();
        Some(Parts { page, shown: showing.finish(), links: watcher.links, tags, description, facts })
    }

    /// One after the other.
    fn in_turn(input: &Input<'_>, kind: Kind, markup: &Markup<'_>, rules: &Rules) -> Parts {
        let Markup { bytes, charset, declared, xml } = markup;
        let mut page = read_as(input, kind, declared);
        let resolver = Resolver::new(input.url, declared);
        let resolver = page.base.as_deref().and_then(|base| resolver.with_base(base)).unwrap_or(resolver);
        let mut watcher = Watcher::new(rules, charset, Some(&resolver));
        let shown = text::watched(bytes, charset, *xml, limits::TEXT_BYTES_MAX, &mut watcher);
        watcher.resolve(&resolver);
        let mut links = watcher.links;
        let named = std::mem::take(&mut page.links);
        if matches!(kind, Kind::Feed | Kind::Sitemap) {
            let url = |link: &crate::Link| Linked { url: normal::address(&link.url).into_owned(), block: 0 };
            links.extend(named.iter().map(url));
        }
        let mut tags = Tags::new(charset);
        let mut scanner = Scanner::new(bytes, Options { text: false, xml: *xml });
        while let Some(token) = scanner.next() {
            tags.token(token, &scanner.tag);
        }
        let (tags, description, facts) = tags.finish();
        Parts { page, shown, links, tags, description, facts }
    }
}

/// A page in which markup can be found.
struct Markup<'a> {
    bytes: Cow<'a, [u8]>,
    /// Of these bytes.
    charset: &'static Encoding,
    /// Of the page as it came.
    declared: &'static Encoding,
    xml: bool,
}

impl<'a> Markup<'a> {
    fn of(input: &Input<'a>, kind: Kind) -> Markup<'a> {
        let declared = encoding_of(input, kind, input.body);
        let (bytes, charset) = scannable(input.body, declared);
        Markup { bytes, charset, declared, xml: kind != Kind::Html || sniff::is_xml(input.head, input.body) }
    }
}

/// Looks on while the text is read: where links stand, and which parts count.
struct Watcher<'a, 'r> {
    charset: &'static Encoding,
    /// What references are resolved against, where that is known already.
    resolver: Option<&'r Resolver>,
    /// References as they stand on the page, and the block that each stands in, or before.
    found: Vec<(&'a [u8], u32)>,
    /// Where others lead.
    links: Vec<Linked>,
    keep: selector::Selectors,
    /// The outermost element that is kept, and how many of its name are open.
    kept: Option<(Element, u32)>,
    ignore: selector::Selectors,
}

impl<'r> Watcher<'_, 'r> {
    fn new(rules: &Rules, charset: &'static Encoding, resolver: Option<&'r Resolver>) -> Self {
        let (keep, ignore) = (rules.keep.clone(), rules.ignore.clone());
        Watcher { charset, resolver, found: Vec::new(), links: Vec::new(), keep, kept: None, ignore }
    }

    /// Whether there is room for another reference.
    fn has_room(&self) -> bool {
        self.found.len() < limits::LINKS_MAX
    }

    /// Resolves what was found.
    fn resolve(&mut self, resolver: &Resolver) {
        let mut url = String::new();
        for (raw, block) in self.found.drain(..).filter(|(raw, _)| raw.len() <= limits::ATTRIBUTE_BYTES_MAX) {
            let plain = memchr::memchr(b'&', raw).is_none() && resolver.plain(raw, &mut url);
            if self.links.len() < limits::LINKS_MAX
                && (plain || resolver.resolve(&value::attribute(raw, self.charset), &mut url))
            {
                self.links.push(Linked { url: normal::address(&url).into_owned(), block });
            }
        }
    }
}

impl<'a> Watch<'a> for Watcher<'a, '_> {
    fn start(&mut self, tag: &Tag<'a>, line: usize, hidden: bool) -> bool {
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
            && let Some(reference) = tag.attribute("href")
        {
            if let Some(resolver) = self.resolver.filter(|_| !self.has_room()) {
                self.resolve(resolver);
            }
            if self.has_room() {
                self.found.push((reference, line as u32));
            }
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

#[cfg(test)]
mod tests {
    use skep_url::Url;
    use skep_warc::http::Head;

    use super::*;

    const PIECES: &[&str] = &[
        "text ",
        "caf\u{e9} &amp; &nbsp;more",
        "<p class=\"a1 b\">one</p>",
        "<P CLASS=x ID=y>",
        "<br/>",
        "<a href='../c?utm_source=x&amp;d=1#e'>link</a>",
        "<a href=\"\">here</a>",
        "<a href=http://other.test/x>",
        "<a href=mailto:a@b>",
        "<area href=/area>",
        "<base href=/base/>",
        "<base href=data:x>",
        "<template><base href=/t/></template>",
        "<title>A title &lt;</title>",
        "<title>",
        "</title>",
        "<svg><title>drawn</title><a href=''>x</a><style>a{b:url(c)}</style><![CDATA[d]]></svg>",
        "<svg>",
        "</svg>",
        "<math><mi>x</mi><style>y</style><a href=z>w</a></math>",
        "<style>@import 'x'; a{background:url(y)}</style>",
        "<p style='background:url(z);display:none'>hidden</p>",
        "<script>var a = '<p>';</script>",
        "<script type='application/ld+json'>{\"price\": 3, \"sku\": \"a\"}</script>",
        "<script type=application/ld+json><!-- <script> </script> -->",
        "<meta name=description content='About  this'>",
        "<meta name=robots content='noindex, nofollow'>",
        "<meta property=product:price:amount content=9>",
        "<meta http-equiv=refresh content='3; url=/later'>",
        "<meta http-equiv=content-language content=de>",
        "<span itemprop=price content=12>12</span>",
        "<link rel=canonical href=canon>",
        "<link rel=canonical href='mailto:x'>",
        "<link rel=stylesheet href=s.css>",
        "<html lang=en-GB>",
        "<iframe srcdoc='&lt;base href=/i/&gt;&lt;a href=x&gt;&lt;style&gt;a{b:url(q)}'></iframe>",
        "<img src=i.png srcset='a 1x, b 2x' alt=x>",
        "<form action=/f><form action=/g></form>",
        "<input type=hidden value=17 name=t>",
        "<pre>\n a\n b </pre>",
        "<li hidden>one<li>two",
        "<!-- comment -->",
        "<!doctype html>",
        "<![CDATA[ raw ]]>",
        "</p>",
        "</div>",
        "<div ",
        "<td>cell<td>cell",
        "<plaintext>",
        "<noscript><a href=n>n</a></noscript>",
        "<textarea><a href=t></textarea>",
        "\0",
    ];

    fn head(fields: &str) -> Head {
        let mut head = Head::new();
        let _ = head.parse_response(format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes(), true);
        head
    }

    #[test]
    fn at_once_and_in_turn_the_same_is_read() {
        let mut state = 11_u64;
        let mut draw = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % bound
        };
        let heads = [
            head(""),
            head("Content-Type: text/html; charset=utf-8\r\n"),
            head("Content-Type: text/html; charset=windows-1251\r\nContent-Language: fr\r\n"),
            head("Content-Type: text/html; charset=shift_jis\r\nLink: </h>; rel=canonical, <x>; rel=next\r\n"),
            head("Content-Type: application/xhtml+xml\r\nX-Robots-Tag: noarchive\r\n"),
            head("Content-Type: image/svg+xml\r\n"),
        ];
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let ruled = Rules::read(&texts(&["p, li, svg"]), &texts(&["[hidden]", "a.x"]), &[]).unwrap();
        let rules = [Rules::default(), Rules::default(), ruled];
        let url = Url::parse("http://example.org/a/b.html?c").unwrap();
        let (mut once, mut turn) = (0, 0);
        for round in 0..30_000 {
            let body: String = (0..draw(14)).map(|_| PIECES[draw(PIECES.len())]).collect();
            let input = Input { url: &url, head: Some(&heads[draw(heads.len())]), body: body.as_bytes() };
            let kind = sniff::kind(input.url, input.head, input.body);
            let (markup, rules) = (Markup::of(&input, kind), &rules[round % 3]);
            let wanted = Parts::in_turn(&input, kind, &markup, rules);
            match Parts::at_once(&input, kind, &markup, rules) {
                Some(found) => {
                    assert_eq!(found, wanted, "{body:?}");
                    once += 1;
                }
                None => turn += 1,
            }
        }
        assert!(once > 20_000 && turn > 1_000, "{once} and {turn}");
    }

    /// What meets a bound is read in turn.
    #[test]
    fn a_page_with_too_many_links_is_not_read_at_once() {
        let url = Url::parse("http://example.org/").unwrap();
        let of = |links: usize| {
            let body: String = (0..links).map(|link| format!("<a href={link}>")).collect();
            let input = Input { url: &url, head: None, body: body.as_bytes() };
            let markup = Markup::of(&input, Kind::Html);
            let found = Parts::at_once(&input, Kind::Html, &markup, &Rules::default());
            let wanted = Parts::in_turn(&input, Kind::Html, &markup, &Rules::default());
            assert!(found.as_ref().is_none_or(|found| *found == wanted));
            (found.is_some(), wanted.links.len())
        };
        assert_eq!(of(limits::LINKS_MAX - 1), (true, limits::LINKS_MAX - 1));
        assert_eq!(of(limits::LINKS_MAX + 10), (false, limits::LINKS_MAX));
    }
}
