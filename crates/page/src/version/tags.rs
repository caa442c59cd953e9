//! What the tags of a page come to, its description, and the facts it states.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};
use xxhash_rust::xxh3::Xxh3;

use super::facts::{self, Facts};
use crate::element::Element;
use crate::scan::{Attribute, Tag, Token};
use crate::{limits, value};

/// Bytes that are put together before they are hashed.
const HASHED_AT_ONCE: usize = 4 << 10;

/// Collected as tokens come.
pub struct Tags {
    charset: &'static Encoding,
    all: Xxh3,
    /// Tags that are not in the hash yet.
    written: Vec<u8>,
    /// The text that comes next is linked data.
    linked_data: bool,
    description: Option<String>,
    facts: Facts,
}

impl Tags {
    pub fn new(charset: &'static Encoding) -> Tags {
        let written = Vec::with_capacity(HASHED_AT_ONCE + 512);
        Tags { charset, all: Xxh3::new(), written, linked_data: false, description: None, facts: Facts::new() }
    }

    /// Takes the next token in; the tag is the last one.
    pub fn token(&mut self, token: Token<'_>, tag: &Tag<'_>) {
        match token {
            Token::Start => self.start(tag),
            Token::Raw { text, .. } if self.linked_data => {
                facts::script(&value::decoded(text, UTF_8), &mut self.facts);
                self.linked_data = false;
            }
            _ => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        self.linked_data = tag.element == Element::Script
            && tag
                .attribute("type")
                .is_some_and(|kind| kind.trim_ascii().to_ascii_lowercase().starts_with(b"application/ld+json"));
        let decoded = |name: &str| tag.attribute(name).map(|raw| value::attribute(raw, self.charset));
        if let Some(name) = decoded("itemprop")
            && let Some(content) = decoded("content").or_else(|| decoded("href"))
        {
            facts::property(&name, content.rsplit('/').next().unwrap_or(&content), &mut self.facts);
        }
        if tag.element == Element::Meta
            && let (Some(name), Some(content)) = (decoded("name").or(decoded("property")), decoded("content"))
        {
            if name.eq_ignore_ascii_case("description") && self.description.is_none() {
                self.description = Some(value::collapsed(&content, limits::TITLE_BYTES_MAX));
            }
            facts::meta(&name, &content, &mut self.facts);
        }
        if !matches!(tag.element, Element::Script | Element::Style | Element::Noscript | Element::Meta) {
            write_tag(tag, &mut self.written);
            if self.written.len() >= HASHED_AT_ONCE {
                self.all.update(&self.written);
                self.written.clear();
            }
        }
    }

    /// What the tags come to, the description, and the facts.
    pub fn finish(mut self) -> (u64, Option<String>, Facts) {
        self.all.update(&self.written);
        (self.all.digest(), self.description, self.facts)
    }
}

fn lower(name: &[u8]) -> Cow<'_, [u8]> {
    match name.iter().any(u8::is_ascii_uppercase) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    }
}

/// A start tag without what is made anew for each answer, its attributes in order.
fn write_tag(tag: &Tag<'_>, out: &mut Vec<u8>) {
    out.extend(tag.name.iter().map(u8::to_ascii_lowercase));
    match tag.attributes.as_slice() {
        [] => {}
        [Attribute { name, value }] => write_attribute(tag, &lower(name), value, out),
        several => {
            let mut ordered: Vec<(Cow<'_, [u8]>, &[u8])> =
                several.iter().map(|attribute| (lower(attribute.name), attribute.value)).collect();
            ordered.sort_unstable();
            ordered.iter().for_each(|(name, value)| write_attribute(tag, name, value, out));
        }
    }
    out.push(b'\n');
}

/// The name is in lower case.
fn write_attribute(tag: &Tag<'_>, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    match name {
        b"nonce" | b"integrity" | b"style" | b"id" | b"for" | b"srcset" | b"sizes" => return,
        b"value" if is_hidden_input(tag) => return,
        name if name.starts_with(b"data-") || name.starts_with(b"on") || name.starts_with(b"aria-") => return,
        _ => {}
    }
    out.push(b' ');
    out.extend_from_slice(name);
    out.push(b'=');
    match name {
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

fn is_hidden_input(tag: &Tag<'_>) -> bool {
    tag.element == Element::Input && tag.attribute("type").is_some_and(|kind| kind.eq_ignore_ascii_case(b"hidden"))
}
