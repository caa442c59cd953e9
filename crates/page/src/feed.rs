//! Feeds: RSS, RDF, Atom and JSON Feed. What they announce, and when.

use encoding_rs::Encoding;
use serde::Deserialize;
use skep_url::Url;

use crate::page::{Cut, Link, LinkKind};
use crate::scan::{Options, Scanner, Tag, Token};
use crate::sitemap::{declares_entities, local, push};
use crate::{charset, limits, value};

/// What a feed announces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Feed {
    /// Its title.
    pub title: Option<String>,
    /// The entries, in order; those without a URL are left out.
    pub entries: Vec<Announced>,
    /// The site, other pages of the feed, pictures and enclosures.
    pub also: Vec<Link>,
    /// The first bound that was met.
    pub cut: Option<Cut>,
}

/// One entry of a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    /// Its URL, in WHATWG form.
    pub url: String,
    /// Its title.
    pub title: Option<String>,
    /// When it was published or changed, as written.
    pub updated: Option<String>,
}

/// Reads the feed at `url`.
pub fn feed(url: &Url, bytes: &[u8]) -> Feed {
    with_charset(url, bytes, charset::of_xml(bytes, None))
}

pub(crate) fn with_charset(url: &Url, bytes: &[u8], encoding: &'static Encoding) -> Feed {
    let some = &bytes[..bytes.len().min(limits::FEED_BYTES_MAX)];
    let (text, encoding) = crate::read::scannable(some, encoding);
    let mut reader = Reader { url, encoding, found: Feed::default() };
    if some.len() < bytes.len() {
        reader.found.cut = Some(Cut::Bytes);
    }
    if text.trim_ascii_start().starts_with(b"{") {
        reader.json(&text);
    } else if declares_entities(&text) {
        reader.found.cut = Some(Cut::Xml);
    } else {
        reader.xml(&text);
    }
    reader.found
}

struct Reader<'u> {
    url: &'u Url,
    encoding: &'static Encoding,
    found: Feed,
}

/// The entry that is being read.
#[derive(Default)]
struct Draft {
    url: Option<String>,
    /// Where nothing better is found.
    guid: Option<String>,
    title: Option<String>,
    updated: Option<String>,
}

impl Reader<'_> {
    fn xml(&mut self, text: &[u8]) {
        let mut scanner = Scanner::new(text, Options { text: true, xml: true });
        let mut draft: Option<Draft> = None;
        let mut content = String::new();
        let mut guid_is_link = false;
        while let Some(token) = scanner.next() {
            match token {
                Token::Text(raw) | Token::Raw { text: raw, .. } => push(&mut content, &value::text(raw, self.encoding)),
                Token::Cdata(raw) => push(&mut content, &value::decoded(raw, self.encoding)),
                Token::Start => {
                    content.clear();
                    match &local(scanner.tag.name)[..] {
                        b"item" | b"entry" => draft = Some(Draft::default()),
                        b"link" => self.atom_link(&scanner.tag, draft.as_mut()),
                        b"enclosure" | b"content" => {
                            let name = if scanner.tag.attribute("url").is_some() { "url" } else { "src" };
                            self.attribute(&scanner.tag, name, LinkKind::Media);
                        }
                        b"thumbnail" => self.attribute(&scanner.tag, "url", LinkKind::Image),
                        b"guid" => {
                            let declared = scanner.tag.attribute("ispermalink");
                            guid_is_link = !declared.is_some_and(|value| value.eq_ignore_ascii_case(b"false"));
                        }
                        _ => {}
                    }
                }
                Token::End => {
                    let name = local(scanner.tag.name);
                    match &name[..] {
                        b"item" | b"entry" => {
                            if let Some(draft) = draft.take()
                                && !self.announce(draft)
                            {
                                return;
                            }
                        }
                        b"link" if !content.trim_ascii().is_empty() => {
                            let url = self.resolved(&content);
                            match &mut draft {
                                Some(draft) => draft.url = draft.url.take().or(url),
                                None => self.also(url, LinkKind::Anchor),
                            }
                        }
                        b"guid" if guid_is_link => {
                            if let Some(draft) = &mut draft {
                                draft.guid = Url::parse(content.trim_ascii()).ok().map(|url| url.as_str().to_owned());
                            }
                        }
                        b"title" => {
                            let title = value::collapsed(&content, limits::TITLE_BYTES_MAX);
                            let place = draft.as_mut().map_or(&mut self.found.title, |draft| &mut draft.title);
                            if place.is_none() && !title.is_empty() {
                                *place = Some(title);
                            }
                        }
                        b"updated" | b"pubdate" | b"published" | b"date" | b"modified" => {
                            if let Some(draft) = &mut draft
                                && (name == b"updated" || draft.updated.is_none())
                            {
                                draft.updated = Some(value::collapsed(&content, 64)).filter(|text| !text.is_empty());
                            }
                        }
                        b"logo" | b"icon" => self.also(self.resolved(&content), LinkKind::Image),
                        b"url" if draft.is_none() => self.also(self.resolved(&content), LinkKind::Image),
                        _ => {}
                    }
                    content.clear();
                }
            }
        }
    }

    /// `<link rel=… href=…>`, in Atom and in RSS with a prefix.
    fn atom_link(&mut self, tag: &Tag<'_>, draft: Option<&mut Draft>) {
        let Some(href) = tag.attribute("href") else { return };
        let url = self.resolved(&value::attribute(href, self.encoding));
        match (tag.attribute("rel").unwrap_or(b"alternate"), draft) {
            (b"alternate", Some(draft)) => draft.url = draft.url.take().or(url),
            (b"alternate", None) => self.also(url, LinkKind::Anchor),
            (b"enclosure", _) => self.also(url, LinkKind::Media),
            (b"next" | b"prev" | b"previous" | b"first" | b"last" | b"prev-archive" | b"next-archive", _) => {
                self.also(url, LinkKind::Feed);
            }
            _ => {}
        }
    }

    fn attribute(&mut self, tag: &Tag<'_>, name: &str, kind: LinkKind) {
        if let Some(raw) = tag.attribute(name) {
            self.also(self.resolved(&value::attribute(raw, self.encoding)), kind);
        }
    }

    fn json(&mut self, text: &[u8]) {
        let Ok(file) = serde_json::from_slice::<JsonFeed>(text) else { return };
        self.found.title = file.title.map(|title| value::collapsed(&title, limits::TITLE_BYTES_MAX));
        let pages = [(file.home_page_url, LinkKind::Anchor), (file.next_url, LinkKind::Feed)];
        let pictures = [(file.icon, LinkKind::Image), (file.favicon, LinkKind::Icon)];
        for (reference, kind) in pages.into_iter().chain(pictures) {
            self.also(reference.and_then(|reference| self.resolved(&reference)), kind);
        }
        for item in file.items {
            for (reference, kind) in [(item.image, LinkKind::Image), (item.banner_image, LinkKind::Image)] {
                self.also(reference.and_then(|reference| self.resolved(&reference)), kind);
            }
            for attachment in item.attachments {
                self.also(attachment.url.and_then(|reference| self.resolved(&reference)), LinkKind::Media);
            }
            let url = item.url.or(item.external_url).and_then(|reference| self.resolved(&reference));
            let title = item.title.map(|title| value::collapsed(&title, limits::TITLE_BYTES_MAX));
            let updated = item.date_modified.or(item.date_published).map(|date| value::collapsed(&date, 64));
            if !self.announce(Draft { url, guid: None, title, updated }) {
                return;
            }
        }
    }

    /// Keeps an entry. `false`: there is no room for more.
    fn announce(&mut self, draft: Draft) -> bool {
        let Some(url) = draft.url.or(draft.guid) else { return true };
        if self.found.entries.len() >= limits::FEED_ENTRIES_MAX {
            self.found.cut.get_or_insert(Cut::Entries);
            return false;
        }
        self.found.entries.push(Announced { url, title: draft.title, updated: draft.updated });
        true
    }

    fn also(&mut self, url: Option<String>, kind: LinkKind) {
        if let Some(url) = url
            && self.found.also.len() < limits::FEED_ENTRIES_MAX
        {
            self.found.also.push(Link { url, kind, nofollow: false });
        }
    }

    fn resolved(&self, reference: &str) -> Option<String> {
        let reference = reference.trim_ascii();
        if reference.is_empty() {
            return None;
        }
        self.url.join(reference).ok().map(|url| url.as_str().to_owned())
    }
}

#[derive(Deserialize)]
struct JsonFeed {
    title: Option<String>,
    home_page_url: Option<String>,
    next_url: Option<String>,
    icon: Option<String>,
    favicon: Option<String>,
    #[serde(default)]
    items: Vec<JsonItem>,
}

#[derive(Deserialize)]
struct JsonItem {
    url: Option<String>,
    external_url: Option<String>,
    title: Option<String>,
    image: Option<String>,
    banner_image: Option<String>,
    date_published: Option<String>,
    date_modified: Option<String>,
    #[serde(default)]
    attachments: Vec<JsonAttachment>,
}

#[derive(Deserialize)]
struct JsonAttachment {
    url: Option<String>,
}
