//! Markup as the HTML standard tokenizes it, without building a tree: tags with their attributes, and the text between them.
//!
//! The tokenizer needs to know one thing that only a tree knows: whether it is inside `svg` or `math`, where `<title>` and
//! `<style>` hold markup and `<![CDATA[` holds text. [`Foreign`] remembers that much.
//!
//! Attributes are handed out as they stand: character references are not yet replaced.

use memchr::{memchr, memchr2, memmem};

use crate::element::Element;
use crate::foreign::{Foreign, Space};
use crate::limits;

/// What [`Scanner::next`] came upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// A start tag; [`Scanner::tag`] has it.
    Start,
    /// An end tag; [`Scanner::tag`] has its element.
    End,
    /// Text with character references. Only where it was asked for.
    Text(&'a [u8]),
    /// The content of an element in which markup is text (`script`, `style`, `title`, …): `references` says whether character
    /// references count in it.
    Raw { text: &'a [u8], references: bool },
    /// The content of a CDATA section: text as it stands. Only where text was asked for.
    Cdata(&'a [u8]),
}

/// One attribute as it stands in the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    pub name: &'a [u8],
    pub value: &'a [u8],
}

/// The last tag.
#[derive(Debug, Default)]
pub struct Tag<'a> {
    pub element: Element,
    /// As written.
    pub name: &'a [u8],
    pub space: Space,
    pub attributes: Vec<Attribute<'a>>,
    /// The value of its first `style` attribute.
    pub style: Option<&'a [u8]>,
    pub self_closing: bool,
}

impl<'a> Tag<'a> {
    /// The value of the first attribute of that name, which is given in lower case.
    pub fn attribute(&self, name: &str) -> Option<&'a [u8]> {
        let is = |found: &[u8]| found.len() == name.len() && found.eq_ignore_ascii_case(name.as_bytes());
        self.attributes.iter().find(|attribute| is(attribute.name)).map(|attribute| attribute.value)
    }
}

/// How the text that comes next is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Data,
    /// Until the end tag of this element.
    RawText(Element),
    RcData(Element),
    Script,
    Plain,
}

/// How text is to be handed out, and which rules count.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Hand out text too, not only tags.
    pub text: bool,
    /// XML: no element's content is raw, every element may close itself, CDATA sections are everywhere.
    pub xml: bool,
}

/// The tokenizer.
#[derive(Debug)]
pub struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    mode: Mode,
    foreign: Foreign,
    options: Options,
    /// The last tag that [`Scanner::next`] came upon.
    pub tag: Tag<'a>,
    /// A tag had more attributes than are kept.
    pub attributes_cut: bool,
}

impl<'a> Scanner<'a> {
    /// Begins at the first byte.
    pub fn new(bytes: &'a [u8], options: Options) -> Scanner<'a> {
        let foreign = Foreign::default();
        Scanner { bytes, at: 0, mode: Mode::Data, foreign, options, tag: Tag::default(), attributes_cut: false }
    }

    /// Begins in the middle of a page, for who has only a part of it at hand.
    pub fn resumed(bytes: &'a [u8], foreign: Foreign, options: Options) -> Scanner<'a> {
        let mut scanner = Scanner::new(bytes, options);
        scanner.foreign = foreign;
        scanner
    }

    /// What must be known to go on elsewhere.
    pub fn into_foreign(self) -> Foreign {
        self.foreign
    }

    /// Is the current element foreign, so that CDATA sections count?
    pub fn is_foreign(&self) -> bool {
        self.foreign.is_inside()
    }

    /// Reads the one tag whose name begins at `from`: where it ends, and how what follows is read. `None`: the bytes end first,
    /// and nothing has changed.
    pub fn tag_from(&mut self, from: usize, is_end: bool) -> Option<(usize, Mode)> {
        self.mode = Mode::Data;
        self.tag_at(from, is_end).then_some((self.at, self.mode))
    }

    /// Hands out text from now on, or does not.
    pub fn want_text(&mut self, wanted: bool) {
        self.options.text = wanted;
    }

    /// How far it has read.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The next token; `None` at the end.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<Token<'a>> {
        match self.mode {
            Mode::Data => self.data(),
            mode => Some(self.raw(mode)),
        }
    }

    fn data(&mut self) -> Option<Token<'a>> {
        let mut text_from = self.at;
        loop {
            let rest = &self.bytes[self.at..];
            let Some(offset) = near(b'<', rest) else {
                self.at = self.bytes.len();
                return self.text(text_from, self.at);
            };
            let open = self.at + offset;
            let Some(&next) = self.bytes.get(open + 1) else {
                self.at = self.bytes.len();
                return self.text(text_from, self.at);
            };
            let is_end = next == b'/';
            let is_tag = match next {
                b'a'..=b'z' | b'A'..=b'Z' => true,
                b'/' => self.bytes.get(open + 2).is_some_and(u8::is_ascii_alphabetic),
                b'!' | b'?' => false,
                // No tag: the sign is text, and what follows is looked at again.
                _ => {
                    self.at = open + 1;
                    continue;
                }
            };
            if self.options.text && open > text_from {
                self.at = open;
                return self.text(text_from, open);
            }
            if is_tag {
                if self.tag_at(open + 1 + usize::from(is_end), is_end) {
                    return Some(if is_end { Token::End } else { Token::Start });
                }
                // The tag never ends: nothing follows it.
                self.at = self.bytes.len();
                return None;
            }
            if next == b'/' && open + 2 == self.bytes.len() {
                self.at = self.bytes.len();
                return self.text(open, self.at);
            }
            if let Some(section) = self.declaration(open) {
                return Some(section);
            }
            text_from = self.at;
        }
    }

    fn text(&self, from: usize, to: usize) -> Option<Token<'a>> {
        (self.options.text && from < to).then(|| Token::Text(&self.bytes[from..to]))
    }

    /// Passes over a comment, a doctype, or what stands where those stand; `open` is at `<` before `!`, `?` or `/`.
    fn declaration(&mut self, open: usize) -> Option<Token<'a>> {
        let rest = &self.bytes[open..];
        if let Some(content) = rest.strip_prefix(b"<!--") {
            self.at = open + 4 + comment_end(content);
        } else if rest.starts_with(b"<![CDATA[") && (self.options.xml || self.foreign.is_inside()) {
            let from = open + 9;
            let found = memmem::find(&self.bytes[from..], b"]]>");
            let to = found.map_or(self.bytes.len(), |offset| from + offset);
            self.at = found.map_or(to, |_| to + 3);
            return (self.options.text && from < to).then(|| Token::Cdata(&self.bytes[from..to]));
        } else {
            // A doctype, a processing instruction or a bogus comment: all end with the next sign, quoted or not.
            self.at = memchr(b'>', rest).map_or(self.bytes.len(), |offset| open + offset + 1);
        }
        None
    }

    /// Reads the tag whose name begins at `from`. `false`: the page ends inside it.
    fn tag_at(&mut self, from: usize, is_end: bool) -> bool {
        let bytes = self.bytes;
        let mut at = from;
        let mut packed = 0_u64;
        loop {
            let Some(&byte) = bytes.get(at) else { return false };
            let letter = NAME[byte as usize];
            if letter == 0 {
                break;
            }
            packed = packed << 8 | u64::from(letter);
            at += 1;
        }
        let name = &bytes[from..at];
        self.tag.element = if name.len() <= 8 { Element::of_packed(packed) } else { Element::of_long(name) };
        self.tag.name = name;
        self.tag.attributes.clear();
        self.tag.style = None;
        self.tag.self_closing = false;
        at = if bytes[at] == b'>' {
            at + 1
        } else {
            match self.attributes(at) {
                Some(end) => end,
                None => return false,
            }
        };
        self.at = at;
        if self.options.xml {
            self.tag.space = self.foreign.xml(&self.tag, is_end);
        } else if is_end {
            self.foreign.end(self.tag.element);
        } else {
            self.tag.space = self.foreign.start(&self.tag);
            if self.tag.space == Space::Html {
                self.mode = mode_after(self.tag.element);
            }
        }
        true
    }

    /// Reads attributes up to and with the closing sign, and says where that ends.
    fn attributes(&mut self, mut at: usize) -> Option<usize> {
        let bytes = self.bytes;
        loop {
            // Before an attribute's name.
            let mut solidus = false;
            loop {
                match *bytes.get(at)? {
                    b'\t' | b'\n' | b'\x0c' | b'\r' | b' ' => solidus = false,
                    b'/' => solidus = true,
                    b'>' => {
                        self.tag.self_closing = solidus;
                        return Some(at + 1);
                    }
                    _ => break,
                }
                at += 1;
            }
            let name_from = at;
            // A name may begin with a sign that would otherwise end it.
            at += 1;
            while !ENDS_ATTRIBUTE_NAME[*bytes.get(at)? as usize] {
                at += 1;
            }
            let name = &bytes[name_from..at];
            while matches!(*bytes.get(at)?, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ') {
                at += 1;
            }
            let mut value: &[u8] = b"";
            if bytes[at] == b'=' {
                at += 1;
                while matches!(*bytes.get(at)?, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ') {
                    at += 1;
                }
                match bytes[at] {
                    quote @ (b'"' | b'\'') => {
                        at += 1;
                        let length = near(quote, &bytes[at..])?;
                        value = &bytes[at..at + length];
                        at += length + 1;
                    }
                    b'>' => {}
                    _ => {
                        let value_from = at;
                        while !matches!(*bytes.get(at)?, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ' | b'>') {
                            at += 1;
                        }
                        value = &bytes[value_from..at];
                    }
                }
            }
            if self.tag.attributes.len() < limits::ATTRIBUTES_MAX {
                if name.len() == 5 && self.tag.style.is_none() && name.eq_ignore_ascii_case(b"style") {
                    self.tag.style = Some(value);
                }
                self.tag.attributes.push(Attribute { name, value });
            } else {
                self.attributes_cut = true;
            }
        }
    }

    /// The content of an element in which markup is text.
    fn raw(&mut self, mode: Mode) -> Token<'a> {
        let rest = &self.bytes[self.at..];
        let (length, references) = match mode {
            Mode::Data | Mode::Plain => (rest.len(), false),
            Mode::RawText(element) => (raw_end(rest, element.name()), false),
            Mode::RcData(element) => (raw_end(rest, element.name()), true),
            Mode::Script => (script_end(rest), false),
        };
        self.mode = Mode::Data;
        self.at += length;
        Token::Raw { text: &rest[..length], references }
    }
}

fn mode_after(element: Element) -> Mode {
    match element {
        Element::Script => Mode::Script,
        Element::Title | Element::Textarea => Mode::RcData(element),
        Element::Style | Element::Iframe | Element::Xmp | Element::Noembed | Element::Noframes => {
            Mode::RawText(element)
        }
        Element::Plaintext => Mode::Plain,
        _ => Mode::Data,
    }
}

/// A byte of a name in lower case; zero where it ends the name. A NUL is part of a name, and of none that is known.
const NAME: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'\t' | b'\n' | b'\x0c' | b'\r' | b' ' | b'/' | b'>' => 0,
            0 => 0xff,
            other => other.to_ascii_lowercase(),
        };
        byte += 1;
    }
    table
};

/// Whether a byte ends the name of an attribute that has begun.
const ENDS_ATTRIBUTE_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = NAME[byte] == 0 || byte == b'=' as usize;
        byte += 1;
    }
    table
};

/// Where a byte is that is mostly a few bytes away: those are looked at eight at a time, the rest by `memchr`, whose beginning
/// costs more than that.
#[inline]
pub fn near(byte: u8, bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    let pattern = ONES * u64::from(byte);
    let (words, _) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().take(4).enumerate() {
        // A byte of the difference is zero where they are equal; the lowest such byte gets its highest bit set.
        let difference = u64::from_le_bytes(*word) ^ pattern;
        let zeros = difference.wrapping_sub(ONES) & !difference & (ONES << 7);
        if zeros != 0 {
            return Some(number * 8 + zeros.trailing_zeros() as usize / 8);
        }
    }
    let passed = words.len().min(4) * 8;
    memchr(byte, &bytes[passed..]).map(|offset| passed + offset)
}

/// Where the content after `<!--` ends, its closing signs included.
pub fn comment_end(content: &[u8]) -> usize {
    if content.starts_with(b">") {
        return 1;
    }
    if content.starts_with(b"->") {
        return 2;
    }
    let mut from = 0;
    while let Some(offset) = memchr(b'>', &content[from..]) {
        let at = from + offset;
        if content[..at].ends_with(b"--") || content[..at].ends_with(b"--!") {
            return at + 1;
        }
        from = at + 1;
    }
    content.len()
}

/// Is this, after `</` or `<`, the name, and does the name end there?
fn names(rest: &[u8], name: &str) -> bool {
    let after = rest.get(name.len());
    after.is_some_and(|byte| matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ' | b'/' | b'>'))
        && rest[..name.len()].eq_ignore_ascii_case(name.as_bytes())
}

/// Where the end tag of that name begins.
pub fn raw_end(rest: &[u8], name: &str) -> usize {
    let mut from = 0;
    while let Some(offset) = memchr(b'<', &rest[from..]) {
        let open = from + offset;
        if rest.get(open + 1) == Some(&b'/') && names(&rest[open + 2..], name) {
            return open;
        }
        from = open + 1;
    }
    rest.len()
}

/// Where the script ends. `<!--` inside a script lets `<script>` begin another one, whose end tag does not count:
///
/// ```text
/// script ──"<!--"──▶ escaped ──"<script>"──▶ double escaped
///    ▲                 │ ▲                       │  │
///    ├──────"-->"──────┘ └───────"</script>"─────┘  │
///    └─────────────────────"-->"────────────────────┘        "</script>" ends script and escaped
/// ```
pub fn script_end(rest: &[u8]) -> usize {
    #[derive(PartialEq)]
    enum State {
        Script,
        Escaped,
        DoubleEscaped,
    }
    let mut state = State::Script;
    let mut from = 0;
    // Where the dashes that may end the escape begin to count: those of `<!--` do.
    let mut dashes_from = 0;
    loop {
        let found = match state {
            State::Script => memchr(b'<', &rest[from..]),
            _ => memchr2(b'<', b'>', &rest[from..]),
        };
        let Some(offset) = found else { return rest.len() };
        let at = from + offset;
        from = at + 1;
        if rest[at] == b'>' {
            if rest[dashes_from..at].ends_with(b"--") {
                state = State::Script;
            }
            continue;
        }
        let after = &rest[at + 1..];
        let closes = after.first() == Some(&b'/') && names(&after[1..], "script");
        match state {
            State::Script | State::Escaped if closes => return at,
            State::Script if after.starts_with(b"!--") => {
                state = State::Escaped;
                dashes_from = at + 2;
                from = at + 4;
            }
            State::Escaped if names(after, "script") => state = State::DoubleEscaped,
            State::DoubleEscaped if closes => state = State::Escaped,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::near;

    #[test]
    fn a_byte_is_found_wherever_it_is() {
        for length in 0..80 {
            for at in 0..=length {
                let mut bytes = vec![b'<' ^ 1; length];
                bytes.iter_mut().skip(at).for_each(|byte| *byte = b'<');
                assert_eq!(near(b'<', &bytes), (at < length).then_some(at));
            }
        }
    }
}
