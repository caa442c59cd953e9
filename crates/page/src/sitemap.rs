//! Sitemaps and sitemap indexes (sitemaps.org), as XML or as text with one URL per line.
//!
//! Real files have wrong namespaces, unescaped ampersands and missing declarations, so the markup is read as leniently as HTML.
//! Entities of a file's own are never expanded; a file that declares some is refused.

use encoding_rs::Encoding;
use skep_url::Url;

use crate::page::{Cut, Link, LinkKind};
use crate::scan::{Options, Scanner, Token};
use crate::{charset, limits, value};

/// What a sitemap lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sitemap {
    /// The pages, in order.
    pub entries: Vec<Entry>,
    /// Other sitemaps, where this is an index.
    pub more: Vec<String>,
    /// Pictures, films and other languages of the pages.
    pub also: Vec<Link>,
    /// The first bound that was met.
    pub cut: Option<Cut>,
}

/// One page of a sitemap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its URL, in WHATWG form.
    pub url: String,
    /// When it last changed, as written.
    pub lastmod: Option<String>,
}

/// Reads a sitemap, decompressed.
pub fn sitemap(bytes: &[u8]) -> Sitemap {
    with_charset(bytes, charset::of_xml(bytes, None))
}

pub(crate) fn with_charset(bytes: &[u8], encoding: &'static Encoding) -> Sitemap {
    let mut found = Sitemap::default();
    let some = &bytes[..bytes.len().min(limits::SITEMAP_BYTES_MAX)];
    if some.len() < bytes.len() {
        found.cut = Some(Cut::Bytes);
    }
    let (text, encoding) = crate::read::scannable(some, encoding);
    if text.trim_ascii_start().starts_with(b"<") {
        if declares_entities(&text) {
            found.cut = Some(Cut::Xml);
            return found;
        }
        xml(&text, encoding, &mut found);
    } else {
        lines(&text, encoding, &mut found);
    }
    found
}

/// Does the document type declare entities?
pub(crate) fn declares_entities(text: &[u8]) -> bool {
    let start = &text[..text.len().min(limits::SNIFF_BYTES * 16)];
    memchr::memmem::find(start, b"<!ENTITY").is_some()
}

/// The part of a name behind its prefix, in lower case.
pub(crate) fn local(name: &[u8]) -> Vec<u8> {
    name.rsplit(|&byte| byte == b':').next().unwrap_or(name).to_ascii_lowercase()
}

fn xml(text: &[u8], encoding: &'static Encoding, found: &mut Sitemap) {
    let mut scanner = Scanner::new(text, Options { text: true, xml: true });
    // The text since the last tag.
    let mut content = String::new();
    let (mut in_index, mut taken, mut lastmod) = (false, false, None);
    while let Some(token) = scanner.next() {
        match token {
            Token::Text(raw) | Token::Raw { text: raw, .. } => push(&mut content, &value::text(raw, encoding)),
            Token::Cdata(raw) => push(&mut content, &value::decoded(raw, encoding)),
            Token::Start => {
                content.clear();
                match &local(scanner.tag.name)[..] {
                    b"url" if !is_extension(scanner.tag.name) => (taken, lastmod) = (false, None),
                    b"sitemap" => (taken, lastmod, in_index) = (false, None, true),
                    b"sitemapindex" => in_index = true,
                    b"link" => {
                        if let Some(href) = scanner.tag.attribute("href") {
                            also(&value::attribute(href, encoding), LinkKind::Alternate, found);
                        }
                    }
                    _ => {}
                }
            }
            Token::End => {
                let name = scanner.tag.name;
                match &local(name)[..] {
                    b"loc" if is_extension(name) => also(&content, LinkKind::Image, found),
                    b"thumbnail_loc" => also(&content, LinkKind::Image, found),
                    b"content_loc" => also(&content, LinkKind::Media, found),
                    b"player_loc" => also(&content, LinkKind::Frame, found),
                    b"lastmod" => lastmod = Some(value::collapsed(&content, 64)).filter(|text| !text.is_empty()),
                    b"loc" => taken |= list(&content, in_index, found),
                    b"url" | b"sitemap" if !is_extension(name) => {
                        // Some leave `loc` out, and the URL stands there alone.
                        taken |= !taken && list(&content, in_index, found);
                        if taken
                            && !in_index
                            && let Some(entry) = found.entries.last_mut()
                        {
                            entry.lastmod = lastmod.take();
                        }
                    }
                    _ => {}
                }
                content.clear();
                if found.cut == Some(Cut::Entries) {
                    return;
                }
            }
        }
    }
}

/// Keeps a URL that the file lists. `false`: it is none.
fn list(reference: &str, in_index: bool, found: &mut Sitemap) -> bool {
    let Some(url) = absolute(reference) else { return false };
    if in_index && found.more.len() < limits::SITEMAP_INDEX_MAX {
        found.more.push(url);
    } else if !in_index && found.entries.len() < limits::SITEMAP_URLS_MAX {
        found.entries.push(Entry { url, lastmod: None });
    } else {
        found.cut.get_or_insert(Cut::Entries);
    }
    true
}

fn is_extension(name: &[u8]) -> bool {
    let prefix = name.split(|&byte| byte == b':').next().unwrap_or_default().to_ascii_lowercase();
    name.contains(&b':') && matches!(&prefix[..], b"image" | b"video" | b"news" | b"mobile" | b"xhtml")
}

pub(crate) fn push(content: &mut String, text: &str) {
    let room = limits::XML_TEXT_BYTES_MAX.saturating_sub(content.len());
    content.push_str(&text[..text.floor_char_boundary(room)]);
}

fn also(reference: &str, kind: LinkKind, found: &mut Sitemap) {
    if found.also.len() < limits::SITEMAP_URLS_MAX
        && let Some(url) = absolute(reference)
    {
        found.also.push(Link { url, kind, nofollow: false });
    }
}

fn absolute(reference: &str) -> Option<String> {
    Url::parse(reference.trim_ascii()).ok().map(|url| url.as_str().to_owned())
}

fn lines(text: &[u8], encoding: &'static Encoding, found: &mut Sitemap) {
    for line in text.split(|&byte| byte == b'\n' || byte == b'\r') {
        if line.len() > limits::URL_BYTES_MAX {
            continue;
        }
        list(&value::decoded(line, encoding), false, found);
        if found.cut == Some(Cut::Entries) {
            return;
        }
    }
}
