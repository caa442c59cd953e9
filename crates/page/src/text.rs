//! The text that a reader would see: blocks on lines of their own, white space collapsed.

use encoding_rs::Encoding;

use crate::element::Element;
use crate::foreign::Space;
use crate::page::{Cut, Kind};
use crate::read::{Input, encoding_of, scannable};
use crate::scan::{Options, Scanner, Tag, Token};
use crate::{limits, sniff, value};

/// What a reader would see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// Lines without white space at either end, none of them empty.
    pub text: String,
    /// The first bound that was met.
    pub cut: Option<Cut>,
}

/// The visible text of an HTML page; nothing for other kinds.
pub fn text(input: &Input<'_>) -> Text {
    let body = &input.body[..input.body.len().min(limits::PAGE_BYTES_MAX)];
    let kind = sniff::kind(input.url, input.head, body);
    if kind != Kind::Html {
        return Text::default();
    }
    let xml = sniff::is_xml(input.head, body);
    let (bytes, encoding) = scannable(body, encoding_of(input, kind, body));
    let mut found = visible(&bytes, encoding, xml, limits::TEXT_BYTES_MAX);
    if body.len() < input.body.len() {
        found.cut.get_or_insert(Cut::Bytes);
    }
    found
}

/// Who looks on while the visible text of a page is read.
pub(crate) trait Watch<'a> {
    /// A start tag came; text inside it begins on this line, counted from 0, unless it is hidden anyway. Is the element shown?
    fn start(&mut self, tag: &Tag<'a>, line: usize, hidden: bool) -> bool;
    /// An end tag came.
    fn end(&mut self, element: Element);
    /// Is text shown that stands here?
    fn shows(&self) -> bool;
}

/// Nobody looks on.
struct Nobody;

impl Watch<'_> for Nobody {
    fn start(&mut self, _: &Tag<'_>, _: usize, _: bool) -> bool {
        true
    }
    fn end(&mut self, _: Element) {}
    fn shows(&self) -> bool {
        true
    }
}

/// The visible text of markup, at most so many bytes.
pub(crate) fn visible(bytes: &[u8], encoding: &'static Encoding, xml: bool, bytes_max: usize) -> Text {
    watched(bytes, encoding, xml, bytes_max, &mut Nobody)
}

/// The same while somebody looks on.
pub(crate) fn watched<'a, W: Watch<'a>>(
    bytes: &'a [u8],
    encoding: &'static Encoding,
    xml: bool,
    bytes_max: usize,
    watch: &mut W,
) -> Text {
    let mut scanner = Scanner::new(bytes, Options { text: true, xml });
    let mut showing = Showing::new(encoding, bytes_max);
    while let Some(token) = scanner.next() {
        if !showing.token(token, &scanner.tag, watch) {
            break;
        }
    }
    showing.finish()
}

/// The visible text of a page as its tokens come.
pub(crate) struct Showing {
    encoding: &'static Encoding,
    out: Writer,
    bytes_max: usize,
    hidden: Option<Hidden>,
    steps: u64,
    cut: Option<Cut>,
}

impl Showing {
    /// Nothing yet, and at most so many bytes.
    pub fn new(encoding: &'static Encoding, bytes_max: usize) -> Showing {
        let out = Writer { text: String::new(), gap: Gap::None, kept_lines: 0, lines: 0, bytes_max };
        Showing { encoding, out, bytes_max, hidden: None, steps: 0, cut: None }
    }

    /// Takes the next token in; the tag is the last one. `false`: a bound was met, and nothing more is shown.
    pub fn token<'a, W: Watch<'a>>(&mut self, token: Token<'a>, tag: &Tag<'a>, watch: &mut W) -> bool {
        let out = &mut self.out;
        self.steps += 1;
        match token {
            Token::Start => {
                let shown = watch.start(tag, out.line_for(tag.element), self.hidden.is_some());
                if let Some(inside) = &mut self.hidden {
                    if inside.start(tag) {
                        return true;
                    }
                    self.hidden = None;
                }
                out.gap_for(tag.element);
                if !shown || is_hidden(tag) {
                    self.hidden = (!tag.self_closing && !is_void(tag.element))
                        .then_some(Hidden { element: tag.element, depth: 1 });
                    return true;
                }
                out.kept_lines += u32::from(matches!(tag.element, Element::Pre | Element::Listing | Element::Xmp));
            }
            Token::End => {
                watch.end(tag.element);
                if let Some(inside) = &mut self.hidden {
                    if !inside.end(tag.element) {
                        self.hidden = None;
                        out.gap_for(tag.element);
                    }
                    return true;
                }
                out.gap_for(tag.element);
                if matches!(tag.element, Element::Pre | Element::Listing | Element::Xmp) {
                    out.kept_lines = out.kept_lines.saturating_sub(1);
                }
            }
            _ if self.hidden.is_some() || !watch.shows() => {}
            Token::Text(raw) | Token::Raw { text: raw, references: true } => {
                out.write(&value::text(raw, self.encoding));
            }
            Token::Cdata(raw) | Token::Raw { text: raw, .. } => out.write(&value::decoded(raw, self.encoding)),
        }
        if out.text.len() >= self.bytes_max {
            self.cut = Some(Cut::Bytes);
        } else if self.steps > limits::STEPS_MAX {
            self.cut = Some(Cut::Work);
        }
        self.cut.is_none()
    }

    /// All of it.
    pub fn finish(self) -> Text {
        Text { text: self.out.text, cut: self.cut }
    }
}

/// An element whose content is not shown, until it ends.
struct Hidden {
    element: Element,
    /// Elements of the same name inside it, itself included.
    depth: u32,
}

impl Hidden {
    /// Takes a start tag inside. `false`: it ends the hidden element, whose own end tag may be left out.
    fn start(&mut self, tag: &Tag<'_>) -> bool {
        use Element::*;
        let ends = match self.element {
            P => tag.element.is_block(),
            Li => tag.element == Li,
            Dd | Dt => matches!(tag.element, Dd | Dt),
            Option | Optgroup => matches!(tag.element, Option | Optgroup),
            Td | Th => matches!(tag.element, Td | Th | Tr),
            Tr => tag.element == Tr,
            Head => tag.element == Body,
            _ => false,
        };
        if tag.element == self.element && !tag.self_closing {
            self.depth = self.depth.saturating_add(1);
        }
        !ends
    }

    /// Takes an end tag inside. `false`: the hidden element ends.
    fn end(&mut self, element: Element) -> bool {
        self.depth -= u32::from(element == self.element);
        self.depth > 0
    }
}

fn is_hidden(tag: &Tag<'_>) -> bool {
    use Element::*;
    match tag.element {
        Script | Style | Template | Noscript | Iframe | Noembed | Noframes | Object | Video | Audio | Math => {
            return true;
        }
        Title | Desc => return tag.space != Space::Math,
        _ => {}
    }
    tag.attributes.iter().any(|attribute| attribute.name.eq_ignore_ascii_case(b"hidden"))
        || tag.style.is_some_and(hides)
}

/// Does a style attribute say `display: none`?
fn hides(style: &[u8]) -> bool {
    style.split(|&byte| byte == b';').any(|declaration| {
        let mut parts = declaration.splitn(2, |&byte| byte == b':');
        let (name, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let value = value.trim_ascii().strip_suffix(b"!important").unwrap_or(value.trim_ascii()).trim_ascii();
        name.trim_ascii().eq_ignore_ascii_case(b"display") && value.eq_ignore_ascii_case(b"none")
            || name.trim_ascii().eq_ignore_ascii_case(b"visibility") && value.eq_ignore_ascii_case(b"hidden")
    })
}

pub(crate) fn is_void(element: Element) -> bool {
    use Element::*;
    matches!(element, Area | Base | Bgsound | Br | Embed | Frame | Hr | Img | Input | Link | Meta | Source | Track)
}

/// What stands between the last text and the next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Space,
    Line,
}

struct Writer {
    text: String,
    gap: Gap,
    /// Open elements in which line ends are kept.
    kept_lines: u32,
    /// Line ends so far.
    lines: usize,
    bytes_max: usize,
}

impl Writer {
    /// The line on which text inside this element begins.
    fn line_for(&self, element: Element) -> usize {
        let breaks = self.gap == Gap::Line || element.is_block();
        self.lines + usize::from(breaks && !self.text.is_empty())
    }

    fn gap_for(&mut self, element: Element) {
        let gap = if element.is_block() || element == Element::Br {
            Gap::Line
        } else if matches!(element, Element::Td | Element::Th | Element::Img | Element::Input | Element::Button) {
            Gap::Space
        } else {
            Gap::None
        };
        self.gap = self.gap.max(gap);
    }

    fn write(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        loop {
            let (from, mut breaks) = (at, false);
            while let Some(&byte) = bytes.get(at).filter(|byte| value::is_space(**byte)) {
                breaks |= matches!(byte, b'\n' | b'\r');
                at += 1;
            }
            if self.kept_lines > 0 && breaks {
                self.gap = Gap::Line;
            } else if at > from {
                self.gap = self.gap.max(Gap::Space);
            }
            if at == bytes.len() || self.text.len() >= self.bytes_max {
                return;
            }
            if !self.text.is_empty() {
                match self.gap {
                    Gap::None => {}
                    Gap::Space => self.text.push(' '),
                    Gap::Line => {
                        self.text.push('\n');
                        self.lines += 1;
                    }
                }
            }
            self.gap = Gap::None;
            let room = self.bytes_max - self.text.len().min(self.bytes_max);
            let rest = &text[at..];
            let mut end = words_end(rest.as_bytes());
            if end > room {
                end = rest.bytes().position(value::is_space).unwrap_or(rest.len());
            }
            self.text.push_str(&rest[..rest.floor_char_boundary(room.min(end))]);
            if end > room {
                // A sign that is longer than the room is left out, and with it all that follows.
                self.bytes_max = self.text.len();
                return;
            }
            at += end;
        }
    }
}

/// Bytes that are looked at together.
const STEP: usize = 32;

/// Where words end that stand one space apart, which is how they are shown.
fn words_end(bytes: &[u8]) -> usize {
    let ends = |byte: u8, next: u8| (byte != b' ' || value::is_space(next)) && value::is_space(byte);
    let mut at = 0;
    // Where two bytes in a row are no more than a space, or one is less, it may be; mostly there are none.
    while let (Some(some), Some(next)) = (bytes.get(at..at + STEP), bytes.get(at + 1..at + 1 + STEP)) {
        let may_end = |(byte, next): (&u8, &u8)| (*byte < b' ') | ((*byte == b' ') & (*next <= b' '));
        if some.iter().zip(next).map(may_end).fold(false, |any, one| any | one) {
            break;
        }
        at += STEP;
    }
    while let Some(&byte) = bytes.get(at) {
        if ends(byte, bytes.get(at + 1).copied().unwrap_or(b' ')) {
            return at;
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// White space is what HTML calls so: other spaces are part of words.
    #[test]
    fn words_stand_one_space_apart_up_to_the_bound() {
        let shown = |text: &str, bytes_max: usize| visible(text.as_bytes(), encoding_rs::UTF_8, false, bytes_max).text;
        for (page, wanted) in [
            ("one two  three\tfour\n five ", "one two three four five"),
            ("<p> a b<p>c  d </p> e", "a b\nc d\ne"),
            ("<pre>one two\n\n three \r\nfour</pre>", "one two\nthree\nfour"),
            ("a\u{a0} \u{a0}b\u{b}c", "a\u{a0} \u{a0}b\u{b}c"),
            ("<b>on</b>e <i> two</i> ", "one two"),
            (" ", ""),
        ] {
            assert_eq!(shown(page, 1_000), wanted, "{page}");
        }
        let words = "Straße zwei  drei vier";
        for bytes_max in 1..words.len() + 2 {
            let cut = shown(words, bytes_max);
            assert!(cut.len() <= bytes_max + 1 && "Straße zwei drei vier".starts_with(&cut), "{bytes_max}: {cut}");
        }
    }
    #[test]
    fn words_end_where_they_end_byte_by_byte() {
        let ends = |bytes: &[u8], at: usize| {
            let next = bytes.get(at + 1);
            value::is_space(bytes[at]) && (bytes[at] != b' ' || next.is_none_or(|next| value::is_space(*next)))
        };
        let mut state = 3_u64;
        for _ in 0..20_000 {
            let mut draw = |bound: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as usize % bound
            };
            let mut bytes = vec![b'a'; draw(100)];
            for _ in 0..draw(6) {
                let at = draw(bytes.len() + 1);
                bytes.splice(at..at, [b' ', b'\n', b'\x0b', 0xc3, b' '][..1 + draw(5)].iter().copied());
            }
            let wanted = (0..bytes.len()).find(|at| ends(&bytes, *at)).unwrap_or(bytes.len());
            assert_eq!(words_end(&bytes), wanted, "{bytes:?}");
        }
    }
}
