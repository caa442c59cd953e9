//! Markup with its addresses led to the replay: every byte that is no address stays as it is, in whatever charset.

use encoding_rs::{Encoding, UTF_8};
use memchr::{memchr, memmem};

use super::address::Addresses;
use super::attribute::{self, Meaning};
use super::stream::{End, Step};
use super::{Place, css, importmap, script};
use crate::element::Element;
use crate::foreign::{Foreign, Space};
use crate::limits;
use crate::scan::{self, Attribute, Mode, Options, Scanner, Tag};
use crate::{refresh, srcset, value};

/// Markup, as far as it was read.
#[derive(Debug)]
pub struct Html {
    addresses: Addresses,
    charset: &'static Encoding,
    xml: bool,
    /// Scripts run: they are rewritten, and ours runs before them.
    scripts: bool,
    is_ours_in: bool,
    is_base_known: bool,
    foreign: Foreign,
    inside: Inside,
    /// Pages around this one.
    depth: u8,
    /// The new value of the attribute at hand.
    value: String,
}

/// What is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Markup,
    /// The content of an element in which markup is text.
    Raw {
        element: Element,
        is_script: bool,
        content: Content,
    },
    /// Text to the end.
    Plain,
}

/// What the content of an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Text,
    Style,
    Script,
    ImportMap,
    /// What would make a browser fetch on its own.
    Dropped,
}

/// What becomes of an attribute.
#[derive(PartialEq, Eq)]
enum Edit {
    Keep,
    Drop,
    /// It gets the value in [`Html::value`].
    Change,
    /// The same, and that is an address: ASCII, of whose signs only one must be escaped.
    Lead,
}

/// Where what is read goes. What stays as it is waits to be copied together.
struct Passing<'w, 'o> {
    window: &'w [u8],
    copied: usize,
    out: &'o mut Vec<u8>,
}

impl Passing<'_, '_> {
    /// Everything before `at` stays as it is. What is written next comes behind it.
    fn keep(&mut self, at: usize) -> &mut Vec<u8> {
        self.out.extend_from_slice(&self.window[self.copied..at]);
        self.copied = at;
        self.out
    }

    /// What stands before `at` was written otherwise, or is dropped.
    fn pass_over(&mut self, at: usize) {
        self.copied = at;
    }
}

impl Step for Html {
    fn step(&mut self, window: &[u8], end: End, out: &mut Vec<u8>) -> usize {
        let options = Options { text: false, xml: self.xml };
        let mut scanner = Scanner::resumed(window, std::mem::take(&mut self.foreign), options);
        let mut passing = Passing { window, copied: 0, out };
        let done = self.read(&mut scanner, end, &mut passing);
        passing.keep(done);
        self.foreign = scanner.into_foreign();
        done
    }
}

impl Html {
    pub fn new(place: &Place<'_>, charset: &'static Encoding, xml: bool, depth: u8) -> Html {
        Html {
            addresses: Addresses::new(place, charset),
            charset,
            xml,
            scripts: place.scripts,
            is_ours_in: !place.scripts,
            is_base_known: false,
            foreign: Foreign::default(),
            inside: Inside::Markup,
            depth,
            value: String::new(),
        }
    }

    fn read<'w>(&mut self, scanner: &mut Scanner<'w>, end: End, passing: &mut Passing<'w, '_>) -> usize {
        let window = passing.window;
        let mut at = 0;
        while at < window.len() {
            let next = match self.inside {
                Inside::Markup => {
                    let Some(length) = scan::near(b'<', &window[at..]) else { return window.len() };
                    at += length;
                    self.markup(scanner, at, end, passing)
                }
                Inside::Raw { .. } => self.raw(at, end, passing),
                Inside::Plain => Some(window.len()),
            };
            match next {
                Some(next) => at = next,
                None if end == End::More => return at,
                None => return window.len(),
            }
        }
        at
    }

    /// Passes the tag or declaration on that begins here. `None`: the window ends inside.
    fn markup<'w>(
        &mut self,
        scanner: &mut Scanner<'w>,
        at: usize,
        end: End,
        passing: &mut Passing<'w, '_>,
    ) -> Option<usize> {
        let window = passing.window;
        let rest = &window[at..];
        let after = match *rest.get(1)? {
            b'a'..=b'z' | b'A'..=b'Z' => return self.start(scanner, at, passing),
            b'/' => match rest.get(2)? {
                b'a'..=b'z' | b'A'..=b'Z' => scanner.tag_from(at + 2, true)?.0,
                _ => at + memchr(b'>', rest)? + 1,
            },
            b'!' => {
                if rest.len() < 9 && end == End::More {
                    return None;
                }
                if let Some(content) = rest.strip_prefix(b"<!--") {
                    let length = scan::comment_end(content);
                    let found = &content[..length];
                    let is_closed =
                        found.ends_with(b"-->") || found.ends_with(b"--!>") || matches!(found, b">" | b"->");
                    // One that is not closed ends where the page does.
                    if !is_closed {
                        return None;
                    }
                    at + 4 + length
                } else if rest.starts_with(b"<![CDATA[") && (self.xml || scanner.is_foreign()) {
                    at + memmem::find(rest, b"]]>")? + 3
                } else {
                    at + memchr(b'>', rest)? + 1
                }
            }
            b'?' => {
                let after = at + memchr(b'>', rest)? + 1;
                if self.xml && rest.starts_with(b"<?xml-stylesheet") {
                    self.sheet_instruction(&window[at..after], passing.keep(at));
                    passing.pass_over(after);
                }
                after
            }
            _ => at + 1,
        };
        Some(after)
    }

    fn start<'w>(&mut self, scanner: &mut Scanner<'w>, at: usize, passing: &mut Passing<'w, '_>) -> Option<usize> {
        let window = passing.window;
        let (after, mode) = scanner.tag_from(at + 1, false)?;
        let tag = &scanner.tag;
        let mut ours_follows = false;
        if !self.is_ours_in {
            match tag.element {
                Element::Html => {}
                Element::Head => ours_follows = true,
                Element::Svg if self.xml => ours_follows = true,
                // XML of other kinds has no scripts.
                Element::Other(_) if self.xml => self.is_ours_in = true,
                _ => self.put_ours(passing.keep(at)),
            }
        }
        for attribute in &tag.attributes {
            if attribute.value.is_empty() {
                continue;
            }
            let edit = self.edit(tag, attribute);
            if edit == Edit::Keep {
                continue;
            }
            let name_at = offset(window, attribute.name);
            let mut value_at = offset(window, attribute.value);
            let mut value_end = value_at + attribute.value.len();
            if matches!(window[value_at - 1], b'"' | b'\'') {
                value_at -= 1;
                value_end += 1;
            }
            let kept = if edit == Edit::Drop { name_at } else { value_at };
            let out = passing.keep(kept);
            match edit {
                Edit::Keep | Edit::Drop => {}
                Edit::Change => put_value(&self.value, out),
                Edit::Lead => put_address(&self.value, out),
            }
            passing.pass_over(value_end);
        }
        if ours_follows && !tag.self_closing {
            self.put_ours(passing.keep(after));
        }
        self.inside = self.content(tag, mode);
        Some(after)
    }

    /// Our own script, before any of the page. What it must know stands in its attributes: they need no script of their own, and
    /// mean the same in XML.
    fn put_ours(&mut self, out: &mut Vec<u8>) {
        self.is_ours_in = true;
        let addresses = &self.addresses;
        out.extend_from_slice(b"<script");
        if self.xml {
            out.extend_from_slice(b" xmlns=\"http://www.w3.org/1999/xhtml\"");
        }
        let source = format!("{}/-/replay.js", addresses.origin());
        for (name, text) in [
            (" src=", source.as_str()),
            (" data-skep-prefix=", addresses.prefix()),
            (" data-skep-time=", addresses.time()),
            (" data-skep-url=", addresses.base()),
        ] {
            out.extend_from_slice(name.as_bytes());
            put_value(text, out);
        }
        out.extend_from_slice(b"></script>");
    }

    /// How what follows a start tag is read.
    fn content(&self, tag: &Tag<'_>, mode: Mode) -> Inside {
        let is_whole = mode != Mode::Data || (self.xml || tag.space == Space::Svg) && !tag.self_closing;
        let content = match tag.element {
            Element::Style if is_whole => Content::Style,
            Element::Script if is_whole => match attribute::script_type(tag) {
                attribute::ScriptType::Script if self.scripts => Content::Script,
                attribute::ScriptType::ImportMap => Content::ImportMap,
                attribute::ScriptType::Rules => Content::Dropped,
                _ => Content::Text,
            },
            _ => Content::Text,
        };
        match mode {
            Mode::Plain => Inside::Plain,
            Mode::Data if content == Content::Text => Inside::Markup,
            // Inside svg and in XML, such content may hold CDATA sections, and ends where it says so all the same.
            Mode::Data => Inside::Raw { element: tag.element, is_script: false, content },
            Mode::Script => Inside::Raw { element: tag.element, is_script: true, content },
            Mode::RawText(element) | Mode::RcData(element) => Inside::Raw { element, is_script: false, content },
        }
    }

    /// Passes the content of an element on, up to its end tag.
    fn raw(&mut self, at: usize, end: End, passing: &mut Passing<'_, '_>) -> Option<usize> {
        let Inside::Raw { element, is_script, content } = self.inside else { return Some(at) };
        let rest = &passing.window[at..];
        let length = if is_script { scan::script_end(rest) } else { scan::raw_end(rest, element.name()) };
        let is_complete = length < rest.len();
        if !is_complete && end != End::Last {
            if content == Content::Text && !is_script {
                // Nothing is changed, so nothing need be held but what may be the end tag.
                let keep = rest.len().min(element.name().len() + 2);
                let safe = rest.len() - keep;
                return (safe > 0).then_some(at + safe);
            }
            if end == End::More {
                return None;
            }
            // Too long to be looked at; its end is searched for all the same.
            self.inside = Inside::Raw { element, is_script: false, content: Content::Text };
            return Some(at);
        }
        let text = &rest[..length];
        if content != Content::Text {
            let out = passing.keep(at);
            match content {
                Content::Text | Content::Dropped => {}
                Content::Style => css::whole(text, self.charset, self.xml, &mut self.addresses, out),
                Content::Script => script::whole(text, self.charset, false, &mut self.addresses, out),
                Content::ImportMap => importmap::rewrite(text, &mut self.addresses, out),
            }
            passing.pass_over(at + length);
        }
        self.inside = Inside::Markup;
        Some(at + length)
    }

    fn edit(&mut self, tag: &Tag<'_>, attribute: &Attribute<'_>) -> Edit {
        let meaning = attribute::meaning(tag, attribute.name);
        match meaning {
            Meaning::Nothing => return Edit::Keep,
            Meaning::Dropped => return Edit::Drop,
            _ => {}
        }
        let text = value::attribute(attribute.value, self.charset);
        self.value.clear();
        let new = match meaning {
            Meaning::Nothing | Meaning::Dropped => None,
            Meaning::Address(modifier) => {
                if self.addresses.write(modifier, &text, &mut self.value) {
                    return Edit::Lead;
                }
                self.script_address(&text)
            }
            Meaning::Base => {
                let new = self.addresses.get("mp_", &text);
                // Only the first counts, for itself as for what follows.
                if !self.is_base_known {
                    self.is_base_known = true;
                    self.addresses.set_base(&text);
                }
                new
            }
            Meaning::SourceSet => self.source_set(&text),
            Meaning::Style => self.style(&text),
            Meaning::Handler => self.script(&text, true),
            Meaning::Page => self.inner_page(&text),
            Meaning::Refresh => self.refresh(&text),
        };
        match new {
            Some(new) => {
                self.value = new;
                Edit::Change
            }
            None => Edit::Keep,
        }
    }

    /// `javascript:…`, which is no address at all.
    fn script_address(&mut self, text: &str) -> Option<String> {
        const SCHEME: &str = "javascript:";
        let trimmed = text.trim_start_matches(|c: char| c <= ' ');
        let start = trimmed.get(..SCHEME.len())?;
        if !start.eq_ignore_ascii_case(SCHEME) {
            return None;
        }
        self.script(&trimmed[SCHEME.len()..], false).map(|script| format!("{SCHEME}{script}"))
    }

    fn source_set(&mut self, text: &str) -> Option<String> {
        let mut out = String::new();
        let mut copied = 0;
        for candidate in srcset::candidates(text) {
            let from = candidate.as_ptr() as usize - text.as_ptr() as usize;
            let mut address = String::new();
            if self.addresses.write("im_", candidate, &mut address) {
                out.push_str(&text[copied..from]);
                out.push_str(&address);
                copied = from + candidate.len();
            }
        }
        out.push_str(&text[copied..]);
        (copied > 0).then_some(out)
    }

    fn style(&mut self, text: &str) -> Option<String> {
        text.contains('(')
            .then(|| changed(text, |out| css::whole(text.as_bytes(), UTF_8, false, &mut self.addresses, out)))?
    }

    fn script(&mut self, text: &str, is_handler: bool) -> Option<String> {
        if !self.scripts {
            return None;
        }
        changed(text, |out| script::whole(text.as_bytes(), UTF_8, is_handler, &mut self.addresses, out))
    }

    fn inner_page(&mut self, text: &str) -> Option<String> {
        if self.depth >= limits::INNER_PAGES_MAX {
            return None;
        }
        let url = self.addresses.base().parse().ok()?;
        let place =
            Place { prefix: self.addresses.prefix(), time: self.addresses.time(), url: &url, scripts: self.scripts };
        let mut inner = Html::new(&place, UTF_8, false, self.depth + 1);
        changed(text, |out| {
            inner.step(text.as_bytes(), End::Last, out);
        })
    }

    fn refresh(&mut self, text: &str) -> Option<String> {
        let reference = refresh::reference(text)?;
        let address = self.addresses.get("mp_", reference)?.replace('\'', "%27");
        let from = reference.as_ptr() as usize - text.as_ptr() as usize;
        Some([&text[..from], &address, &text[from + reference.len()..]].concat())
    }

    /// `<?xml-stylesheet href="…"?>`
    fn sheet_instruction(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let found = memmem::find(text, b"href=").and_then(|at| {
            let quote = *text.get(at + 5).filter(|&&byte| matches!(byte, b'"' | b'\''))?;
            let length = memchr(quote, &text[at + 6..])?;
            let reference = value::attribute(&text[at + 6..at + 6 + length], self.charset);
            Some((at + 5, at + 6 + length + 1, self.addresses.get("cs_", &reference)?))
        });
        match found {
            Some((from, to, address)) => {
                out.extend_from_slice(&text[..from]);
                put_value(&address, out);
                out.extend_from_slice(&text[to..]);
            }
            None => out.extend_from_slice(text),
        }
    }
}

/// What was written, if it differs. Only text that was cut inside a character could be no text, and none is.
fn changed(text: &str, write: impl FnOnce(&mut Vec<u8>)) -> Option<String> {
    let mut out = Vec::with_capacity(text.len() + 128);
    write(&mut out);
    String::from_utf8(out).ok().filter(|new| new != text)
}

/// Where a part begins in the whole.
fn offset(whole: &[u8], part: &[u8]) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}

/// Writes an address in quotation marks.
fn put_address(address: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = address.as_bytes();
    while let Some(at) = memchr(b'&', rest) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(b"&amp;");
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Writes a value in quotation marks, in ASCII, which all charsets here share.
fn put_value(text: &str, out: &mut Vec<u8>) {
    use std::io::Write;
    out.push(b'"');
    let is_plain =
        |byte: u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r') && !matches!(byte, b'&' | b'"' | b'<' | b'>');
    let mut rest = text;
    loop {
        let length = rest.bytes().position(|byte| !is_plain(byte)).unwrap_or(rest.len());
        out.extend_from_slice(&rest.as_bytes()[..length]);
        let mut characters = rest[length..].chars();
        match characters.next() {
            None => break,
            Some('&') => out.extend_from_slice(b"&amp;"),
            Some('"') => out.extend_from_slice(b"&quot;"),
            Some('<') => out.extend_from_slice(b"&lt;"),
            Some('>') => out.extend_from_slice(b"&gt;"),
            // Writing into a vector never fails.
            Some(other) => {
                let _ = write!(out, "&#{};", u32::from(other));
            }
        }
        rest = characters.as_str();
    }
    out.push(b'"');
}
