//! The bodies of generated items: HTML, CSS, script, text and PNG, each a pure function of item and version.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::{Compression, Crc, write::ZlibEncoder};

use crate::chance::Chance;
use crate::graph::{Element, Link};
use crate::layout::{Alters, Item, Kind, Layout, Version};
use crate::words;

/// Escapes a text for HTML and XML, in content and in quoted attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// The title of a page; it stays the same through its versions.
pub fn title(layout: &Layout, page: u32) -> String {
    words::title(layout.chance_of(Item { kind: Kind::Page, number: page }).at(6))
}

/// An HTML page holding exactly `links`, in their order.
pub fn html(layout: &Layout, page: u32, version: Version, links: &[Link]) -> String {
    let chance = layout.chance_of(Item { kind: Kind::Page, number: page });
    let title = title(layout, page);
    let text_bytes = text_bytes(layout, chance.at(7));
    let mut out = String::with_capacity(text_bytes + 100 * links.len() + 1_000);
    out.push_str("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    let _ = writeln!(out, "<title>{title}</title>");
    let mut body = Vec::new();
    for link in links {
        let to = escape(&link.written);
        let _ = match link.element {
            Element::Stylesheet => writeln!(out, "<link rel=\"stylesheet\" href=\"{to}\">"),
            Element::Script => writeln!(out, "<script src=\"{to}\"></script>"),
            Element::Alternate => writeln!(out, "<link rel=\"alternate\" href=\"{to}\">"),
            _ => {
                body.push((link.element, to));
                Ok(())
            }
        };
    }
    if layout.alters(page) == Alters::Markup {
        let _ = writeln!(out, "<!-- build {} -->", version.number);
    }
    let _ = writeln!(out, "</head>\n<body>\n<h1>{title}</h1>");

    let paragraphs = (text_bytes / 600).max(1);
    let mut body = body.into_iter();
    let per_paragraph = body.len().div_ceil(paragraphs);
    for paragraph in 0..paragraphs {
        let changed = match layout.alters(page) {
            Alters::Text => last_change(version.number, paragraph as u64, paragraphs as u64),
            Alters::Links | Alters::Markup => 0,
        };
        let draw = chance.at(8).at(paragraph as u64).at(changed);
        out.push_str("<p>");
        words::sentences(draw, text_bytes / paragraphs, &mut out);
        for (place, (element, to)) in body.by_ref().take(per_paragraph).enumerate() {
            let word = words::word(chance.at(9).at(paragraph as u64).at(place as u64));
            let _ = match element {
                Element::Img => write!(out, "<img src=\"{to}\" alt=\"{word}\"> "),
                Element::Srcset => write!(out, "<img srcset=\"{to} 2x\" alt=\"{word}\"> "),
                _ => write!(out, "<a href=\"{to}\">{word}</a> "),
            };
        }
        out.push_str("</p>\n");
    }
    out.push_str("</body>\n</html>\n");
    out
}

/// Change `k` of a page alters paragraph `k mod paragraphs`: the latest change up to `version` that did.
fn last_change(version: u64, paragraph: u64, paragraphs: u64) -> u64 {
    let latest = version - version % paragraphs + paragraph;
    if latest <= version { latest } else { latest.saturating_sub(paragraphs) }
}

fn text_bytes(layout: &Layout, chance: Chance) -> usize {
    let (least, most) = layout.shape.text_bytes;
    let room = u64::from(most - least);
    // The cube of an even draw: half of all pages in the lowest eighth.
    let draw = u128::from(chance.at(1).below(1 << 20));
    least as usize + ((u128::from(room) * draw * draw * draw) >> 60) as usize
}

/// A style sheet holding exactly `links`.
pub fn css(version: Version, links: &[Link]) -> String {
    let mut out = String::new();
    for link in links.iter().filter(|link| link.element == Element::Import) {
        let _ = writeln!(out, "@import url(\"{}\");", link.written);
    }
    let _ = writeln!(out, "/* version {} */\nbody {{ margin: 2em; }}", version.number);
    for (place, link) in links.iter().filter(|link| link.element == Element::Background).enumerate() {
        let _ = writeln!(out, "p:nth-child({}) {{ background: url({}); }}", place + 2, link.written);
    }
    out
}

/// A script that needs nothing.
pub fn script(layout: &Layout, number: u32, version: Version) -> String {
    let word = words::word(layout.chance_of(Item { kind: Kind::Script, number }).at(6));
    format!("\"use strict\";\nwindow.{word}{number} = {{ version: {} }};\n", version.number)
}

/// A plain text.
pub fn text(layout: &Layout, number: u32, version: Version) -> String {
    let chance = layout.chance_of(Item { kind: Kind::File, number });
    let mut out = format!("{}\n\n", words::title(chance.at(6)));
    words::sentences(chance.at(8).at(version.number), text_bytes(layout, chance.at(7)), &mut out);
    out.push('\n');
    out
}

/// A small PNG of coloured squares.
///
/// ```text
///   signature 8 | IHDR | IDAT: zlib of rows, each a filter byte 0 and RGB pixels | IEND
///   chunk: | length 4 BE | name 4 | data | CRC-32 of name and data 4 BE |
/// ```
pub fn png(layout: &Layout, number: u32, version: Version) -> Vec<u8> {
    let chance = layout.chance_of(Item { kind: Kind::Image, number });
    let side = 16 << chance.at(6).below(3);
    let chance = chance.at(7).at(version.number);
    let mut rows = Vec::with_capacity(side * (side * 3 + 1));
    for y in 0..side {
        rows.push(0);
        for x in 0..side {
            let square = chance.at((y / 8 * side + x / 8) as u64).bits().to_le_bytes();
            rows.extend_from_slice(&square[..3]);
        }
    }
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::new(6));
    zlib.write_all(&rows).expect("a Vec takes everything");
    let data = zlib.finish().expect("a Vec takes everything");

    let mut header = Vec::new();
    header.extend_from_slice(&(side as u32).to_be_bytes());
    header.extend_from_slice(&(side as u32).to_be_bytes());
    header.extend_from_slice(&[8, 2, 0, 0, 0]);
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    for (name, data) in [(b"IHDR", &header), (b"IDAT", &data), (b"IEND", &Vec::new())] {
        out.extend_from_slice(&(data.len() as u32).to_be_bytes());
        let start = out.len();
        out.extend_from_slice(name);
        out.extend_from_slice(data);
        let mut crc = Crc::new();
        crc.update(&out[start..]);
        out.extend_from_slice(&crc.sum().to_be_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_alters_one_paragraph() {
        for paragraphs in 1..7 {
            for version in 1..40 {
                let of = |v| (0..paragraphs).map(|p| last_change(v, p, paragraphs)).collect::<Vec<_>>();
                let altered = of(version).iter().zip(of(version - 1)).filter(|(a, b)| **a != *b).count();
                assert_eq!(altered, 1, "{version} of {paragraphs}");
            }
        }
    }
}
