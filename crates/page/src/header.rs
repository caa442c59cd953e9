//! The links in the head of an answer: `Location`, `Refresh`, `Link`.

use skep_warc::http::Head;

use crate::limits;
use crate::links::Links;
use crate::page::{LinkKind, Page};
use crate::refresh;
use crate::relation::{self, Relation};

/// Takes the links of a head.
pub fn links(head: &Head, page: &mut Page, links: &mut Links) {
    if matches!(head.status(), Some(300..=399))
        && let Some(location) = head.header("location")
    {
        links.reference(&text(location), LinkKind::Redirect, false);
    }
    if let Some(value) = head.header("refresh")
        && let Some(reference) = refresh::reference(&text(value))
    {
        links.reference(reference, LinkKind::Refresh, false);
    }
    for value in head.headers("link") {
        link_field(&text(value), page, links);
    }
}

/// Values are UTF-8 where they are valid so, else Latin-1, as browsers read them.
fn text(value: &[u8]) -> String {
    let value = &value[..value.len().min(limits::HEADER_BYTES_MAX)];
    match std::str::from_utf8(value) {
        Ok(text) => text.to_owned(),
        Err(_) => value.iter().map(|&byte| char::from(byte)).collect(),
    }
}

/// `<reference>; name=value; name="value", <reference> …` (RFC 8288, section 3).
fn link_field(value: &str, page: &mut Page, links: &mut Links) {
    let mut rest = value;
    while let Some(open) = rest.find('<') {
        let Some(close) = rest[open..].find('>') else { return };
        let reference = &rest[open + 1..open + close];
        let (mut rel, mut media_type, mut shape) = (None, None, None);
        let (parameters, after) = split_parameters(&rest[open + close + 1..]);
        for (name, value) in parameters {
            match name.to_ascii_lowercase().as_str() {
                "rel" => rel = rel.or(Some(value)),
                "type" => media_type = media_type.or(Some(value)),
                "as" => shape = shape.or(Some(value)),
                // The link says something about another page.
                "anchor" => rel = Some("dns-prefetch".to_owned()),
                _ => {}
            }
        }
        rest = after;
        let of = |value: Option<String>| value.unwrap_or_default();
        let rel = of(rel);
        match relation::of(rel.as_bytes(), of(media_type).as_bytes(), of(shape).as_bytes()) {
            Relation::Nothing => {}
            Relation::Link(kind) => {
                if kind == LinkKind::Canonical && page.canonical.is_none() {
                    page.canonical = links.resolved(reference);
                }
                let known = kind.is_embed() || matches!(kind, LinkKind::Canonical | LinkKind::Feed | LinkKind::Sitemap);
                links.reference(
                    reference,
                    if known { kind } else { LinkKind::Header },
                    relation::has_word(rel.as_bytes(), "nofollow"),
                );
            }
        }
    }
}

/// The parameters up to the comma that ends this link, and what follows the comma.
fn split_parameters(text: &str) -> (Vec<(&str, String)>, &str) {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ';']);
        if rest.is_empty() {
            return (found, "");
        }
        if let Some(after) = rest.strip_prefix(',') {
            return (found, after);
        }
        let end = rest.find(['=', ';', ',']).unwrap_or(rest.len());
        let name = rest[..end].trim();
        rest = &rest[end..];
        let mut value = String::new();
        if let Some(after) = rest.strip_prefix('=') {
            rest = after.trim_start_matches([' ', '\t']);
            if let Some(quoted) = rest.strip_prefix('"') {
                let mut characters = quoted.char_indices();
                let mut end = quoted.len();
                while let Some((at, character)) = characters.next() {
                    match character {
                        '"' => {
                            end = at + 1;
                            break;
                        }
                        '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
                        _ => value.push(character),
                    }
                }
                rest = &quoted[end..];
            } else {
                let end = rest.find([';', ',']).unwrap_or(rest.len());
                value.push_str(rest[..end].trim());
                rest = &rest[end..];
            }
        }
        found.push((name, value));
    }
}
