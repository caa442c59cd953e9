//! The few words of a script that would show it where it really runs.
//!
//! Nearly everything that a script can ask of a browser is answered by the client script, which takes the place of functions and
//! properties. Four things it cannot take the place of, and those are changed in the text:
//!
//! ```text
//! location, x.location       skep$location, x.skep$location       neither can be redefined; a property of every object, which
//!                                                                  is `location` again on all but windows and documents
//! window.top, top == x       skep$top(window.top)                 the outermost frame of the page, not the portal's
//! x.postMessage(m, o)        x.skep$post(skep$window).postMessage  whose message it is, and whom it may reach
//! import(x)                  skep$import("URL of the script", x)
//! import "x", … from "x"     the replay of x, as `import` would resolve it
//! import.meta.url            "URL of the script"
//! ```
//!
//! Nothing is wrapped, so declarations stay where they are, strict stays strict, and lines keep their numbers. A name that a script
//! gives to something of its own is changed wherever it stands, and means the same.
//!
//! This is a tokenizer, no parser: where a slash begins a regular expression, and whether a brace opens a block or an object, is
//! told by what stands before. Where that goes wrong, a word is changed or left that should not be, no more.

use encoding_rs::Encoding;
use memchr::memmem;

use super::address::Addresses;
use super::stream::{End, Step};
use super::wide::Wide;
use super::words::{Word, is_part};
use crate::limits::{BRACKETS_MAX, URL_BYTES_MAX};

/// A script on its own.
#[derive(Debug)]
pub struct Script {
    pub text: Tokens,
    pub addresses: Addresses,
}

impl Step for Script {
    fn step(&mut self, window: &[u8], end: End, out: &mut Vec<u8>) -> usize {
        self.text.step(window, end, &mut self.addresses, out)
    }
}

/// Rewrites a whole text, such as the content of a `script` element or of an attribute.
pub fn whole(text: &[u8], charset: &'static Encoding, is_handler: bool, addresses: &mut Addresses, out: &mut Vec<u8>) {
    if has_something(text) {
        let mut tokens = Tokens::new(charset, None);
        tokens.is_handler = is_handler;
        tokens.step(text, End::Last, addresses, out);
    } else {
        out.extend_from_slice(text);
    }
}

/// Most small scripts have nothing to change.
fn has_something(text: &[u8]) -> bool {
    ["location", "top", "postMessage", "import", "from"]
        .iter()
        .any(|word| memmem::find(text, word.as_bytes()).is_some())
}

/// The last token, as far as the meaning of the next depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Start,
    Word(Word),
    /// A number, a string, a regular expression, a template.
    Operand,
    /// `.` or `?.`
    Dot,
    Comma,
    Colon,
    Question,
    Semicolon,
    Assign,
    /// `==`, `!=`, `===`, `!==`
    Equality,
    /// `&&`, `||`, `??`, `!`
    Logic,
    Arrow,
    /// `...`
    Spread,
    Increment,
    OtherOperator,
    OpenParen,
    OpenSquare,
    OpenBrace,
    /// `)`; of `if (…)` and the like, after which a statement begins.
    CloseParen {
        control: bool,
    },
    CloseSquare,
    /// `}`; of an object, or of a block.
    CloseBrace {
        object: bool,
    },
}

/// What an open bracket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Paren {
        control: bool,
    },
    Square,
    Block,
    Object,
    /// The names of `const { a, b } =`, `import { a, b }` and `export { a, b }`.
    Names,
    /// `${` in a template.
    Template,
}

/// Where in a script the window begins.
#[derive(Debug)]
pub struct Tokens {
    wide: Wide,
    /// The URL of the script as a string literal; none for one that stands in a page.
    own: Option<String>,
    before: Before,
    open: Vec<Bracket>,
    /// The window begins inside a template.
    in_template: bool,
    /// The text is that of an attribute such as `onclick`: a name on its own is looked for on the element first, where every
    /// object has a `skep$location`.
    is_handler: bool,
}

impl Tokens {
    /// `own` is the script's URL, where it has one of its own.
    pub fn new(charset: &'static Encoding, own: Option<&str>) -> Tokens {
        Tokens {
            wide: Wide::of(charset),
            own: own.map(literal),
            before: Before::Start,
            open: Vec::new(),
            in_template: false,
            is_handler: false,
        }
    }

    /// See [`Step::step`].
    fn step(&mut self, text: &[u8], end: End, addresses: &mut Addresses, out: &mut Vec<u8>) -> usize {
        let at = self.tokens(text, addresses, out);
        let rest = &text[at..];
        match end {
            End::More => return at,
            End::Full => {
                self.before = Before::Operand;
                out.extend_from_slice(rest);
            }
            // A last word may be one of those that are changed, and is told by what follows: something that ends it, then.
            End::Last => {
                const ENDING: &[u8] = b"\n;\n";
                let tail = [rest, ENDING].concat();
                let at = self.tokens(&tail, addresses, out);
                out.extend_from_slice(&tail[at..]);
                out.truncate(out.len() - ENDING.len());
            }
        }
        text.len()
    }

    /// Rewrites all tokens that do not reach the end of the text, and says where the first that does begins.
    fn tokens(&mut self, text: &[u8], addresses: &mut Addresses, out: &mut Vec<u8>) -> usize {
        let mut edit = Edit { text, copied: 0, out };
        let mut at = 0;
        while at < text.len() {
            let next =
                if self.in_template { self.template(text, at) } else { self.token(text, at, addresses, &mut edit) };
            match next {
                Next::At(next) => at = next,
                Next::End => break,
            }
        }
        edit.copy_to(at);
        at
    }

    fn token(&mut self, text: &[u8], at: usize, addresses: &mut Addresses, edit: &mut Edit<'_>) -> Next {
        let rest = &text[at..];
        let byte = rest[0];
        let second = rest.get(1).copied();
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => Next::At(at + 1),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80.. => self.word(text, at, addresses, edit),
            b'#' => {
                // A private name is the script's own.
                let length = name_length(&rest[1..]);
                if 1 + length == rest.len() {
                    return Next::End;
                }
                self.set(Before::Operand, at + 1 + length)
            }
            b'0'..=b'9' => self.number(text, at),
            b'"' | b'\'' => self.string(text, at, edit),
            b'`' => {
                self.in_template = true;
                Next::At(at + 1)
            }
            b'/' => match second {
                None => Next::End,
                Some(b'/') => line_end(text, at),
                Some(b'*') => found(memmem::find(&rest[2..], b"*/"), at + 2, 2),
                Some(_) if self.operand_ended() => self.set(Before::OtherOperator, at + 1),
                Some(_) => match self.regular_expression(text, at + 1) {
                    Next::At(next) if next == at + 1 => self.set(Before::OtherOperator, next),
                    Next::At(next) => self.set(Before::Operand, next),
                    Next::End => Next::End,
                },
            },
            b'<' if rest.len() < 4 && b"<!--".starts_with(rest) => Next::End,
            // What hid scripts from browsers that knew none is a comment to this day.
            b'<' if rest.starts_with(b"<!--") => line_end(text, at),
            b'.' => match second {
                None => Next::End,
                Some(b'0'..=b'9') => self.number(text, at),
                Some(b'.') if rest.len() < 3 => Next::End,
                Some(b'.') if rest[2] == b'.' => self.set(Before::Spread, at + 3),
                Some(_) => self.set(Before::Dot, at + 1),
            },
            b'?' => match second {
                None => Next::End,
                Some(b'.') if rest.len() < 3 => Next::End,
                Some(b'.') if !rest[2].is_ascii_digit() => self.set(Before::Dot, at + 2),
                Some(b'?') => self.set(Before::Logic, at + 2),
                Some(_) => self.set(Before::Question, at + 1),
            },
            b'=' => match second {
                None => Next::End,
                Some(b'>') => self.set(Before::Arrow, at + 2),
                Some(b'=') if rest.len() < 3 => Next::End,
                Some(b'=') => self.set(Before::Equality, at + 2 + usize::from(rest[2] == b'=')),
                Some(_) => self.set(Before::Assign, at + 1),
            },
            b'!' => match second {
                None => Next::End,
                Some(b'=') if rest.len() < 3 => Next::End,
                Some(b'=') => self.set(Before::Equality, at + 2 + usize::from(rest[2] == b'=')),
                Some(_) => self.set(Before::Logic, at + 1),
            },
            b'&' | b'|' | b'+' | b'-' => match second {
                None => Next::End,
                Some(other) if other == byte => {
                    let before = if matches!(byte, b'&' | b'|') { Before::Logic } else { Before::Increment };
                    self.set(before, at + 2)
                }
                Some(_) => self.set(Before::OtherOperator, at + 1),
            },
            b'(' => {
                let control = self.before == Before::Word(Word::Control);
                self.push(Bracket::Paren { control });
                self.set(Before::OpenParen, at + 1)
            }
            b'[' => {
                self.push(Bracket::Square);
                self.set(Before::OpenSquare, at + 1)
            }
            b'{' => {
                self.push(self.brace());
                self.set(Before::OpenBrace, at + 1)
            }
            b')' => {
                let control = matches!(self.open.pop(), Some(Bracket::Paren { control: true }));
                self.set(Before::CloseParen { control }, at + 1)
            }
            b']' => {
                self.open.pop();
                self.set(Before::CloseSquare, at + 1)
            }
            b'}' => match self.open.pop() {
                Some(Bracket::Template) => {
                    self.in_template = true;
                    Next::At(at + 1)
                }
                bracket => {
                    let object = matches!(bracket, Some(Bracket::Object | Bracket::Names));
                    self.set(Before::CloseBrace { object }, at + 1)
                }
            },
            b',' => self.set(Before::Comma, at + 1),
            b':' => self.set(Before::Colon, at + 1),
            b';' => self.set(Before::Semicolon, at + 1),
            _ => self.set(Before::OtherOperator, at + 1),
        }
    }

    fn set(&mut self, before: Before, next: usize) -> Next {
        self.before = before;
        Next::At(next)
    }

    fn push(&mut self, bracket: Bracket) {
        if self.open.len() < BRACKETS_MAX {
            self.open.push(bracket);
        }
    }

    /// Does a slash divide here?
    fn operand_ended(&self) -> bool {
        matches!(
            self.before,
            Before::Word(Word::Name | Word::Location | Word::Top | Word::Window | Word::PostMessage | Word::From)
                | Before::Operand
                | Before::CloseParen { control: false }
                | Before::CloseSquare
                | Before::CloseBrace { object: true }
                | Before::Increment
        )
    }

    /// What a brace opens here.
    fn brace(&self) -> Bracket {
        let around = self.open.last().copied();
        match self.before {
            Before::Word(Word::Declares | Word::Imports) => Bracket::Names,
            Before::Word(Word::BeforeOperand) => Bracket::Object,
            Before::Comma if around == Some(Bracket::Names) => Bracket::Names,
            Before::Colon => match around {
                Some(Bracket::Names) => Bracket::Names,
                Some(Bracket::Object | Bracket::Paren { .. } | Bracket::Square) => Bracket::Object,
                _ => Bracket::Block,
            },
            // `import a, { b }`
            Before::Comma if around.is_none() => Bracket::Names,
            Before::Comma
            | Before::Assign
            | Before::Equality
            | Before::Logic
            | Before::Question
            | Before::Spread
            | Before::OtherOperator
            | Before::OpenParen
            | Before::OpenSquare => Bracket::Object,
            _ => Bracket::Block,
        }
    }

    fn number(&mut self, text: &[u8], at: usize) -> Next {
        let length = text[at..].iter().position(|&byte| !is_part(byte) && byte != b'.');
        match length {
            None => Next::End,
            Some(length) => self.set(Before::Operand, at + length),
        }
    }

    /// The string at `at`; `x["location"]` is changed as `x.location` is.
    fn string(&mut self, text: &[u8], at: usize, edit: &mut Edit<'_>) -> Next {
        let Some((to, next)) = self.string_end(text, at) else { return Next::End };
        if self.before == Before::OpenSquare && &text[at + 1..to] == b"location" {
            match text.get(next) {
                None => return Next::End,
                Some(b']') => edit.replace(at + 1, to, b"skep$location"),
                Some(_) => {}
            }
        }
        self.set(Before::Operand, next)
    }

    /// Where the content of the string that begins at `at` ends, and where what follows it begins. One that is not closed ends with
    /// its line.
    fn string_end(&self, text: &[u8], at: usize) -> Option<(usize, usize)> {
        let quote = text[at];
        let mut to = at + 1;
        loop {
            match *text.get(to)? {
                byte if byte == quote => return Some((to, to + 1)),
                b'\n' | b'\r' => return Some((to, to)),
                b'\\' if text[to..].starts_with(b"\\\r\n") => to += 3,
                b'\\' => to += 2,
                byte if self.wide.is_lead(byte) => to += 2,
                _ => to += 1,
            }
        }
    }

    /// A template goes on at `at`.
    fn template(&mut self, text: &[u8], mut at: usize) -> Next {
        loop {
            let Some(&byte) = text.get(at) else { return Next::End };
            match byte {
                b'`' => {
                    self.in_template = false;
                    return self.set(Before::Operand, at + 1);
                }
                b'$' if text.get(at + 1) == Some(&b'{') => {
                    self.in_template = false;
                    self.push(Bracket::Template);
                    return self.set(Before::OpenParen, at + 2);
                }
                b'\\' => at += 2,
                byte if self.wide.is_lead(byte) => at += 2,
                _ => at += 1,
            }
        }
    }

    /// Where the regular expression ends whose first character is at `from`: there again, if it is none.
    fn regular_expression(&self, text: &[u8], from: usize) -> Next {
        let mut at = from;
        let mut in_class = false;
        loop {
            let Some(&byte) = text.get(at) else { return Next::End };
            match byte {
                b'\n' | b'\r' => return Next::At(from),
                b'\\' => at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => break,
                byte if self.wide.is_lead(byte) => at += 1,
                _ => {}
            }
            at += 1;
        }
        let flags = name_length(&text[at + 1..]);
        if at + 1 + flags == text.len() { Next::End } else { Next::At(at + 1 + flags) }
    }

    fn word(&mut self, text: &[u8], at: usize, addresses: &mut Addresses, edit: &mut Edit<'_>) -> Next {
        let mut to = at;
        // The second byte of a wide character may be no letter.
        while let Some(&byte) = text.get(to).filter(|&&byte| is_part(byte)) {
            to += 1 + usize::from(self.wide.is_lead(byte));
        }
        if to >= text.len() {
            return Next::End;
        }
        let name = &text[at..to];
        let is_member = self.before == Before::Dot;
        let word = if is_member { Word::of_member(name) } else { Word::of(name) };
        let next = match word {
            Word::Location => self.location(text, at, to, edit),
            Word::Top => self.top(text, at, to, edit),
            Word::Window => self.window(text, at, to, edit),
            Word::PostMessage if is_member => match following(text, to) {
                None => Next::End,
                Some(paren) => {
                    if text[paren] == b'(' {
                        edit.replace(at, to, b"skep$post(skep$window).postMessage");
                    }
                    Next::At(to)
                }
            },
            Word::Imports if name == b"import" => return self.import(text, at, to, addresses, edit),
            Word::From => return self.from(text, to, addresses, edit),
            _ => Next::At(to),
        };
        if let Next::At(to) = next {
            return self.set(Before::Word(word), to);
        }
        next
    }

    fn location(&mut self, text: &[u8], at: usize, to: usize, edit: &mut Edit<'_>) -> Next {
        let Some(after) = following(text, to) else { return Next::End };
        let around = self.open.last().copied();
        let in_braces = matches!(around, Some(Bracket::Block | Bracket::Object));
        let begins_entry = matches!(self.before, Before::OpenBrace | Before::Comma);
        let is_key = in_braces && begins_entry && text[after] == b':';
        // `{ location() {} }`, `get location() {}`: nobody calls what is a location.
        let is_method = self.before != Before::Dot && text[after] == b'(';
        let is_short = around == Some(Bracket::Object) && begins_entry && matches!(text[after], b',' | b'}' | b'=');
        if is_short {
            edit.replace(at, to, b"location:skep$location");
        } else if self.is_handler && self.before != Before::Dot && !is_key && !is_method {
            edit.replace(at, to, b"window.skep$location");
        } else if !is_key && !is_method {
            edit.replace(at, to, b"skep$location");
        }
        Next::At(to)
    }

    /// `top` on its own, where it is surely read and not declared.
    fn top(&mut self, text: &[u8], at: usize, to: usize, edit: &mut Edit<'_>) -> Next {
        let Some(after) = following(text, to) else { return Next::End };
        let rest = &text[after..];
        let is_used = match rest[0] {
            b'.' => !matches!(self.before, Before::Word(Word::Declares)),
            b'=' | b'!' => match rest.get(1) {
                None => return Next::End,
                Some(&second) => second == b'=',
            },
            b';' | b')' | b'&' | b'|' | b'?' | b'}' => matches!(
                self.before,
                Before::Equality | Before::Assign | Before::Logic | Before::Word(Word::BeforeOperand)
            ),
            _ => false,
        };
        if is_used {
            edit.replace(at, to, b"skep$top(top)");
        }
        Next::At(to)
    }

    /// `window.top`, where it is read.
    fn window(&mut self, text: &[u8], at: usize, to: usize, edit: &mut Edit<'_>) -> Next {
        let rest = &text[to..];
        if rest.len() < 5 && b".top".starts_with(&rest[..rest.len().min(4)]) {
            return Next::End;
        }
        if !rest.starts_with(b".top") || is_part(rest[4]) {
            return Next::At(to);
        }
        let member_end = to + 4;
        let Some(after) = following(text, member_end) else { return Next::End };
        let rest = &text[after..];
        // Only where it is surely read: `x.top = 1` and `x.top ||= 1` need it as it is.
        let is_read = match rest[0] {
            b'.' | b';' | b')' | b',' | b'}' | b']' | b'[' | b':' => true,
            b'=' | b'!' | b'&' | b'|' | b'?' if rest.len() < 3 => return Next::End,
            b'=' | b'!' => rest[1] == b'=',
            b'&' | b'|' => rest[1] == rest[0] && rest[2] != b'=',
            b'?' => rest[2] != b'=',
            byte => is_part(byte),
        };
        let is_prefixed = matches!(self.before, Before::Increment | Before::Word(Word::New));
        if is_read && !is_prefixed {
            edit.replace(at, to, [b"skep$top(", &text[at..to]].concat().as_slice());
            edit.replace(member_end, member_end, b")");
            return self.set(Before::Operand, member_end);
        }
        Next::At(to)
    }

    fn import(&mut self, text: &[u8], at: usize, to: usize, addresses: &mut Addresses, edit: &mut Edit<'_>) -> Next {
        let Some(after) = following(text, to) else { return Next::End };
        match text[after] {
            b'(' => {
                let in_object = matches!(self.open.last(), Some(Bracket::Object | Bracket::Names));
                let is_method = in_object && matches!(self.before, Before::OpenBrace | Before::Comma)
                    || self.before == Before::Word(Word::Accessor);
                if is_method {
                    return self.set(Before::Word(Word::Name), to);
                }
                let own = self.own.as_deref().unwrap_or("\"\"");
                edit.replace(at, after + 1, format!("skep$import({own},").as_bytes());
                self.push(Bracket::Paren { control: false });
                self.set(Before::OpenParen, after + 1)
            }
            b'.' => {
                const META: &[u8] = b"import.meta.url";
                let rest = &text[at..];
                if rest.len() <= META.len() && META.starts_with(rest) {
                    return Next::End;
                }
                if let Some(own) = &self.own
                    && rest.starts_with(META)
                    && !is_part(rest[META.len()])
                {
                    edit.replace(at, at + META.len(), own.as_bytes());
                    return self.set(Before::Operand, at + META.len());
                }
                self.set(Before::Word(Word::Name), to)
            }
            b'"' | b'\'' => self.specifier(text, after, addresses, edit),
            _ => self.set(Before::Word(Word::Imports), to),
        }
    }

    /// `from`, which is followed by a string only where something is imported.
    fn from(&mut self, text: &[u8], to: usize, addresses: &mut Addresses, edit: &mut Edit<'_>) -> Next {
        let Some(after) = following(text, to) else { return Next::End };
        let follows_names = matches!(
            self.before,
            Before::CloseBrace { .. } | Before::OtherOperator | Before::Word(Word::Name | Word::Location)
        );
        if follows_names && matches!(text[after], b'"' | b'\'') {
            return self.specifier(text, after, addresses, edit);
        }
        self.set(Before::Word(Word::From), to)
    }

    /// The module that is imported. A bare name is for the page's import map to resolve.
    fn specifier(&mut self, text: &[u8], at: usize, addresses: &mut Addresses, edit: &mut Edit<'_>) -> Next {
        let Some((to, next)) = self.string_end(text, at) else { return Next::End };
        let content = &text[at + 1..to];
        if content.len() <= URL_BYTES_MAX
            && let Ok(name) = std::str::from_utf8(content)
            && !name.contains('\\')
            && let Some(address) = module(name, addresses)
        {
            edit.replace(at, next, literal(&address).as_bytes());
        }
        self.set(Before::Operand, next)
    }
}

/// The replay of a module, if its name is an address.
pub fn module(name: &str, addresses: &mut Addresses) -> Option<String> {
    let is_address = ["/", "./", "../", "http:", "https:"].iter().any(|start| name.starts_with(start));
    if is_address { addresses.get("esm_", name) } else { None }
}

/// A string literal that may stand in a script, in HTML and in XML.
pub fn literal(text: &str) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            ' ' | '!' | '#'..='%' | '('..=';' | '=' | '?'..='[' | ']'..='~' => out.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing into a text never fails.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
    out
}

/// Where the next token begins, or that the text ends inside this one.
enum Next {
    At(usize),
    End,
}

fn found(offset: Option<usize>, from: usize, length: usize) -> Next {
    offset.map_or(Next::End, |offset| Next::At(from + offset + length))
}

fn line_end(text: &[u8], at: usize) -> Next {
    found(memchr::memchr2(b'\n', b'\r', &text[at..]), at, 1)
}

fn name_length(rest: &[u8]) -> usize {
    rest.iter().position(|&byte| !is_part(byte)).unwrap_or(rest.len())
}

/// Where the next token begins after white space and comments. `None`: the text ends first.
fn following(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match text.get(at)? {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => at += 1,
            b'/' => match text.get(at + 1)? {
                b'/' => at += memchr::memchr(b'\n', &text[at..])?,
                b'*' => at += 2 + memmem::find(&text[at + 2..], b"*/")? + 2,
                _ => return Some(at),
            },
            _ => return Some(at),
        }
    }
}

/// What is copied and what is replaced.
struct Edit<'e> {
    text: &'e [u8],
    copied: usize,
    out: &'e mut Vec<u8>,
}

impl Edit<'_> {
    fn copy_to(&mut self, to: usize) {
        self.out.extend_from_slice(&self.text[self.copied..to]);
        self.copied = to;
    }

    fn replace(&mut self, from: usize, to: usize, by: &[u8]) {
        self.copy_to(from);
        self.out.extend_from_slice(by);
        self.copied = to;
    }
}
