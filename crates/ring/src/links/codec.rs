//! A batch of links as it travels.
//!
//! ```text
//!  batch    | version 1 | crawl s | bytes v | zstd with the dictionary below, of those bytes: |
//!           | links v | attributes, 1 each | sites, 1 each that has one | shared v, 1 each | rests, each ended by 0a |
//!  attribute  depth in bits 0 to 3 (15: 15 or more), 4: needed by its page, 5: the page no longer has the link, 6: has a site
//! ```
//! `v` is an unsigned LEB128 number, `s` a length `v` and as many bytes. Links stand in the order of their URLs; `shared` is how many
//! bytes a URL has in common with the one before, the rest follows. Each column is alike in itself, which is what zstd lives on.
//!
//! Since version 2 an escape is one byte: `%80` to `%FF` are the bytes 80 to ff, and the escapes of [`ESCAPED`] are the bytes that no
//! URL in fetch form has and no end of one is, 00 to 1f without 0a. Text in a query, as in links that carry a whole program, is a sixth
//! shorter by that. Version 1, where every byte stands for itself, is still read.
//!
//! Version 3 is version 2 with sites: a batch without any is written in version 2, and one for a node that does not know of them, too.
//!
//! The dictionary is part of the format: it was trained on home pages of Debian's packages, on links of documentation and on
//! addresses of our own making, as `docs/formats/copies.md` says. Another one is another version.

use zstd::dict::{DecoderDictionary, EncoderDictionary};

use super::{Batch, Link, Refused, is_link};
use crate::limits::{BATCH_BYTES_MAX, BATCH_CRAWL_BYTES_MAX, BATCH_LINKS_MAX, BATCH_TEXT_BYTES_MAX};

const VERSION: u8 = 3;
const VERSION_WITHOUT_SITES: u8 = 2;
/// The oldest that is read.
const VERSION_OLDEST: u8 = 1;
/// Where a step up costs more time than it saves bytes; see `cargo xtask bench forward`.
const LEVEL: i32 = 16;
const DICTIONARY: &[u8] = include_bytes!("../links.dict");
/// Depths from here on are one.
const DEPTH_MAX: u16 = 15;
const NEEDED: u8 = 1 << 4;
const GONE: u8 = 1 << 5;
const SITE: u8 = 1 << 6;
/// What is often escaped in URLs, in the order of the bytes that stand for it.
const ESCAPED: &[u8] = b" \n\"<>[]{}|\\^`/:;=?@&+$,#%!'()*";
const _: () = assert!(ESCAPED.len() < 32);

/// The byte that stands for an escape.
fn packed_escape(escaped: u8) -> Option<u8> {
    if escaped >= 0x80 {
        return Some(escaped);
    }
    let at = ESCAPED.iter().position(|byte| *byte == escaped)? as u8;
    // The line feed ends a URL.
    Some(if at < b'\n' { at } else { at + 1 })
}

/// What is escaped by a byte; nothing if it stands for itself, or for nothing.
fn escaped_by(packed: u8) -> Option<u8> {
    match packed {
        0x80.. => Some(packed),
        b'\n' => None,
        _ => ESCAPED.get(usize::from(if packed < b'\n' { packed } else { packed - 1 })).copied(),
    }
    .filter(|_| !packed.is_ascii_graphic())
}

/// A URL with one byte for each escape that has one.
fn pack(url: &str, packed: &mut Vec<u8>) {
    packed.clear();
    let mut rest = url.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digit = |at: usize| behind.get(at).copied().filter(|byte| !byte.is_ascii_lowercase());
        let value = |digit: u8| (digit as char).to_digit(16);
        let escape = digit(0).and_then(value).zip(digit(1).and_then(value)).filter(|_| *first == b'%');
        match escape.and_then(|(high, low)| packed_escape((high * 16 + low) as u8)) {
            Some(byte) => {
                packed.push(byte);
                rest = &rest[3..];
            }
            None => {
                packed.push(*first);
                rest = behind;
            }
        }
    }
}

/// The URL again; nothing if a byte stands for nothing.
fn unpack(packed: &[u8]) -> Option<String> {
    let mut url = String::with_capacity(packed.len() + 16);
    for byte in packed {
        if byte.is_ascii_graphic() {
            url.push(*byte as char);
        } else {
            let escaped = escaped_by(*byte)?;
            url.push('%');
            for half in [escaped >> 4, escaped & 15] {
                url.push(char::from_digit(u32::from(half), 16)?.to_ascii_uppercase());
            }
        }
    }
    Some(url)
}

/// Writes and reads batches; keeps the dictionary ready.
pub struct Codec {
    writing: EncoderDictionary<'static>,
    reading: DecoderDictionary<'static>,
}

impl Default for Codec {
    fn default() -> Codec {
        Codec { writing: EncoderDictionary::copy(DICTIONARY, LEVEL), reading: DecoderDictionary::copy(DICTIONARY) }
    }
}

impl Codec {
    /// A batch as it is sent. Sorts its links and drops repetitions, and what [`is_link`] refuses. `TooLarge` if the rest does not fit.
    pub fn encode(&self, batch: &mut Batch) -> Result<Vec<u8>, Refused> {
        batch.links.retain(|link| is_link(&link.url));
        batch.links.sort_unstable();
        batch.links.dedup_by(|a, b| a.url == b.url && a.gone == b.gone && a.site == b.site);
        let text: usize = batch.links.iter().map(|link| link.url.len()).sum();
        let crawl = batch.crawl.as_bytes();
        if batch.links.len() > BATCH_LINKS_MAX || text > BATCH_TEXT_BYTES_MAX || crawl.len() > BATCH_CRAWL_BYTES_MAX {
            return Err(Refused::TooLarge);
        }
        let mut plain = Vec::with_capacity(text + 2 * batch.links.len() + 8);
        put_number(batch.links.len() as u64, &mut plain);
        plain.extend(batch.links.iter().map(attribute_of));
        plain.extend(batch.links.iter().filter_map(|link| link.site));
        let mut rests = Vec::with_capacity(text + batch.links.len());
        let (mut last, mut packed) = (Vec::new(), Vec::new());
        for link in &batch.links {
            pack(&link.url, &mut packed);
            let shared = last.iter().zip(&packed).take_while(|(a, b)| a == b).count();
            put_number(shared as u64, &mut plain);
            rests.extend_from_slice(&packed[shared..]);
            rests.push(b'\n');
            std::mem::swap(&mut last, &mut packed);
        }
        plain.append(&mut rests);
        let sites = batch.links.iter().any(|link| link.site.is_some());
        let mut out = vec![if sites { VERSION } else { VERSION_WITHOUT_SITES }];
        put_number(crawl.len() as u64, &mut out);
        out.extend_from_slice(crawl);
        put_number(plain.len() as u64, &mut out);
        let packed = zstd::bulk::Compressor::with_prepared_dictionary(&self.writing)
            .and_then(|mut packer| {
                use zstd::zstd_safe::CParameter;
                // What the frame could say of itself stands before it.
                packer.set_parameter(CParameter::ContentSizeFlag(false))?;
                packer.set_parameter(CParameter::DictIdFlag(false))?;
                packer.compress(&plain)
            })
            .map_err(|_| Refused::Malformed("zstd"))?;
        out.extend_from_slice(&packed);
        if out.len() > BATCH_BYTES_MAX {
            return Err(Refused::TooLarge);
        }
        Ok(out)
    }

    /// Reads a batch. Memory is bounded by the limits, whatever the bytes say.
    pub fn decode(&self, bytes: &[u8]) -> Result<Batch, Refused> {
        if bytes.len() > BATCH_BYTES_MAX {
            return Err(Refused::TooLarge);
        }
        let mut head = Fields { rest: bytes };
        let version = head.take(1, "it is empty")?[0];
        if !(VERSION_OLDEST..=VERSION).contains(&version) {
            return Err(Refused::Newer(version));
        }
        let crawl = head.number("the length of its crawl")?;
        if crawl > BATCH_CRAWL_BYTES_MAX as u64 {
            return Err(Refused::TooLarge);
        }
        let crawl = head.take(crawl as usize, "its crawl")?;
        let crawl = std::str::from_utf8(crawl).map_err(|_| Refused::Malformed("its crawl is not UTF-8"))?.to_owned();
        let length = head.number("its length")?;
        if length > (BATCH_TEXT_BYTES_MAX + BATCH_LINKS_MAX * 5 + 16) as u64 {
            return Err(Refused::TooLarge);
        }
        let plain = zstd::bulk::Decompressor::with_prepared_dictionary(&self.reading)
            .and_then(|mut unpacker| unpacker.decompress(head.rest, length as usize))
            .map_err(|_| Refused::Malformed("what is compressed"))?;
        if plain.len() as u64 != length {
            return Err(Refused::Malformed("its length is another"));
        }
        Ok(Batch { crawl, links: read_links(&plain, version)? })
    }
}

fn attribute_of(link: &Link) -> u8 {
    let flag = |is: bool, bit: u8| if is { bit } else { 0 };
    link.depth.min(DEPTH_MAX) as u8
        | flag(link.needed, NEEDED)
        | flag(link.gone, GONE)
        | flag(link.site.is_some(), SITE)
}

fn read_links(plain: &[u8], version: u8) -> Result<Vec<Link>, Refused> {
    let mut fields = Fields { rest: plain };
    let count = fields.number("how many links")?;
    if count > BATCH_LINKS_MAX as u64 {
        return Err(Refused::TooLarge);
    }
    let attributes = fields.take(count as usize, "attributes")?;
    let known = NEEDED | GONE | DEPTH_MAX as u8 | if version >= VERSION { SITE } else { 0 };
    if attributes.iter().any(|attribute| attribute & !known != 0) {
        return Err(Refused::Malformed("an attribute"));
    }
    let with_site = attributes.iter().filter(|attribute| **attribute & SITE != 0).count();
    let mut sites = fields.take(with_site, "sites")?.iter().copied();
    let mut shared = Vec::with_capacity(count as usize);
    for _ in 0..count {
        shared.push(fields.number("what is shared")? as usize);
    }
    let mut links: Vec<Link> = Vec::with_capacity(count as usize);
    let (mut text, mut last) = (0, Vec::new());
    for (attribute, shared) in attributes.iter().zip(shared) {
        let end = fields.rest.iter().position(|byte| *byte == b'\n').ok_or(Refused::Malformed("a URL without end"))?;
        let rest = fields.take(end, "a URL")?;
        fields.take(1, "the end of a URL")?;
        last.truncate(shared);
        if last.len() < shared {
            return Err(Refused::Malformed("more is shared than there is"));
        }
        last.extend_from_slice(rest);
        let url = match version {
            1 => String::from_utf8(last.clone()).ok(),
            _ => unpack(&last),
        };
        let url = url.ok_or(Refused::Malformed("a URL with a byte that stands for nothing"))?;
        text += url.len();
        if text > BATCH_TEXT_BYTES_MAX {
            return Err(Refused::TooLarge);
        }
        if !is_link(&url) {
            return Err(Refused::Malformed("a URL that is none"));
        }
        let link = Link {
            url,
            depth: u16::from(attribute & DEPTH_MAX as u8),
            needed: attribute & NEEDED != 0,
            gone: attribute & GONE != 0,
            site: if attribute & SITE != 0 { sites.next() } else { None },
        };
        if links.last().is_some_and(|last| last.url > link.url) {
            return Err(Refused::Malformed("links out of order"));
        }
        links.push(link);
    }
    match fields.rest.is_empty() {
        true => Ok(links),
        false => Err(Refused::Malformed("more than its links")),
    }
}

fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// What is left to read; an error names what should have stood there.
struct Fields<'b> {
    rest: &'b [u8],
}

impl<'b> Fields<'b> {
    fn take(&mut self, count: usize, what: &'static str) -> Result<&'b [u8], Refused> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Refused::Malformed(what))?;
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self, what: &'static str) -> Result<u64, Refused> {
        let mut number = 0;
        for shift in (0..28).step_by(7) {
            let byte = self.take(1, what)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Refused::Malformed(what))
    }
}

/// Any bytes are a batch or an error, and a batch reads back as it was.
pub fn fuzz_links(bytes: &[u8]) {
    thread_local! {
        static CODEC: Codec = Codec::default();
    }
    CODEC.with(|codec| {
        if let Ok(batch) = codec.decode(bytes) {
            let mut again = batch.clone();
            if let Ok(written) = codec.encode(&mut again) {
                assert_eq!(codec.decode(&written).as_ref(), Ok(&again));
            }
        }
        // The same without zstd in the way: mutations of a compressed stream seldom get past it.
        for version in [1, VERSION] {
            if let Ok(links) = read_links(bytes, version) {
                assert!(links.len() <= BATCH_LINKS_MAX && links.iter().all(|link| is_link(&link.url)));
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::LINK_BYTES_MAX;

    fn link(url: &str) -> Link {
        Link { url: url.into(), depth: 1, needed: false, gone: false, site: None }
    }

    fn batch(urls: &[&str]) -> Batch {
        Batch { crawl: "docs".into(), links: urls.iter().map(|url| link(url)).collect() }
    }

    #[test]
    fn a_batch_reads_back_sorted_and_each_link_once() {
        let codec = Codec::default();
        let mut sent =
            batch(&["http://b.example/x", "http://a.example/1", "http://a.example/1", "not in fetch form", ""]);
        sent.links.push(Link { url: "http://a.example/gone".into(), depth: 400, needed: true, gone: true, site: None });
        let message = codec.encode(&mut sent).unwrap();
        let read = codec.decode(&message).unwrap();
        let urls: Vec<_> = read.links.iter().map(|link| link.url.as_str()).collect();
        assert_eq!(urls, ["http://a.example/1", "http://a.example/gone", "http://b.example/x"]);
        assert_eq!(
            read.links[1],
            Link { url: "http://a.example/gone".into(), depth: 15, needed: true, gone: true, site: None }
        );
        assert_eq!(read.crawl, "docs");
        let mut none = Batch::default();
        assert_eq!(codec.decode(&codec.encode(&mut none).unwrap()), Ok(none));
    }

    #[test]
    fn bytes_that_are_no_batch_are_refused_and_say_why() {
        let codec = Codec::default();
        let whole = codec.encode(&mut batch(&["http://a.example/1", "http://a.example/2"])).unwrap();
        for cut in 0..whole.len() {
            assert!(codec.decode(&whole[..cut]).is_err(), "{cut}");
        }
        assert_eq!(codec.decode(&[9]), Err(Refused::Newer(9)));
        assert_eq!(codec.decode(&vec![1; BATCH_BYTES_MAX + 1]), Err(Refused::TooLarge));
        // Says it unpacks to more than a batch may have.
        assert_eq!(codec.decode(&[1, 0, 0xff, 0xff, 0xff, 0x7f, 0]), Err(Refused::TooLarge));
        for (plain, why) in [
            (&b"\x01\x00\x05http://a/\n"[..], Refused::Malformed("more is shared than there is")),
            (b"\x01\x80\x00http://a/\n", Refused::Malformed("an attribute")),
            (b"\x01\x00\x00http://a b\n", Refused::Malformed("a URL with a byte that stands for nothing")),
            (b"\x01\x00\x00\n", Refused::Malformed("a URL that is none")),
            (b"\x01\x00\x00http://a/", Refused::Malformed("a URL without end")),
            (b"\x02\x00\x00\x00\x00http://b/\nhttp://a/\n", Refused::Malformed("links out of order")),
            (b"\x01\x00\x00http://a/\nmore", Refused::Malformed("more than its links")),
        ] {
            assert_eq!(read_links(plain, VERSION), Err(why));
        }
    }

    /// The kept inputs of the fuzzer are frozen batches: those of the first version are read for ever.
    #[test]
    fn frozen_batches_are_read_as_ever() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/links");
        let codec = Codec::default();
        let mut pages =
            batch(&["https://a.example/", "https://www.a.example/docs/index.html", "https://b.example/?q=1"]);
        pages.links.push(Link {
            url: "https://b.example/logo.png".into(),
            depth: 3,
            needed: true,
            gone: false,
            site: None,
        });
        pages.links.push(Link { url: "https://b.example/old".into(), depth: 0, needed: false, gone: true, site: None });
        for (name, mut sent) in [("pages", pages), ("none", Batch::default())] {
            let written = codec.encode(&mut sent).unwrap();
            if std::env::var_os("SKEP_FREEZE").is_some() {
                std::fs::write(folder.join(name), &written).unwrap();
            }
            let frozen = std::fs::read(folder.join(name)).unwrap();
            assert_eq!(codec.decode(&frozen), Ok(sent), "{name}");
        }
    }

    #[test]
    fn a_batch_that_is_too_large_is_not_sent() {
        let codec = Codec::default();
        let mut many = Batch {
            links: (0..=BATCH_LINKS_MAX).map(|n| link(&format!("http://a/{n}"))).collect(),
            ..Batch::default()
        };
        assert_eq!(codec.encode(&mut many), Err(Refused::TooLarge));
        many.links.pop();
        assert!(codec.encode(&mut many).is_ok());
        assert!(!is_link(&"x".repeat(LINK_BYTES_MAX + 1)));
    }

    #[test]
    fn escapes_are_packed_and_come_back_as_they_were() {
        let every: String = (0..=255).map(|byte| format!("%{byte:02X}")).collect();
        let odd = "http://a.example/%7e%2f%c3%A4%C3%A4%2F%20%%2%zz%0A%00";
        let mut packed = Vec::new();
        for url in
            [format!("http://a.example/{every}"), odd.to_owned(), "%".to_owned(), "http://a/%E3%81%82".to_owned()]
        {
            pack(&url, &mut packed);
            assert!(!packed.contains(&b'\n'));
            assert_eq!(unpack(&packed).as_deref(), Some(url.as_str()));
        }
        assert_eq!(packed.len(), "http://a/".len() + 3);
        assert_eq!(unpack(&[0x1f]), None);
        assert_eq!(unpack(b"\n"), None);
    }

    #[test]
    fn sites_travel_where_there_are_any() {
        let codec = Codec::default();
        let of = |site: Option<u8>, gone: bool| Link { site, gone, ..link("http://a.example/1") };
        let links =
            vec![of(Some(7), false), of(Some(9), false), of(None, false), of(Some(7), true), of(Some(7), false)];
        let mut sent = Batch { crawl: "docs".into(), links };
        let message = codec.encode(&mut sent).unwrap();
        assert_eq!((message[0], sent.links.len()), (VERSION, 4));
        assert_eq!(codec.decode(&message), Ok(sent));
        let plain = codec.encode(&mut batch(&["http://a.example/1"])).unwrap();
        assert_eq!(plain[0], VERSION_WITHOUT_SITES);
        assert_eq!(read_links(b"\x01\x40\x07\x00http://a/\n", 2), Err(Refused::Malformed("an attribute")));
        assert_eq!(read_links(b"\x01\x40", 3), Err(Refused::Malformed("sites")));
    }

    /// What the first version wrote, byte for byte: links one after the other, nothing packed.
    #[test]
    fn batches_of_the_first_version_are_read() {
        let plain = b"\x02\x02\x02\x00\x09http://a/%20\nb\n";
        let urls = |version| {
            read_links(plain, version).map(|links| links.into_iter().map(|link| link.url).collect::<Vec<_>>())
        };
        assert_eq!(urls(1), Ok(vec!["http://a/%20".to_owned(), "http://a/b".to_owned()]));
        assert_eq!(urls(1), urls(2));
        assert!(read_links(b"\x01\x02\x00http://a/\xc3\n", 1).is_err());
        let packed = read_links(b"\x01\x02\x00http://a/\x00\x0b\xc3\xa4\n", 2).unwrap();
        assert_eq!(packed[0].url, "http://a/%20%5C%C3%A4");
    }
}
