//! The addresses of style sheets, `style` elements and `style` attributes: `url()`, `@import`, `image-set()`.

use encoding_rs::Encoding;
use memchr::memmem;

use super::address::Addresses;
use super::stream::{End, Step};
use super::wide::Wide;
use crate::css::{SIGNS, is_name, unescaped};
use crate::limits::CSS_NAME_BYTES_MAX;
use crate::value::is_space;

/// A style sheet on its own.
#[derive(Debug)]
pub struct Css {
    pub sheet: Sheet,
    pub addresses: Addresses,
}

impl Step for Css {
    fn step(&mut self, window: &[u8], end: End, out: &mut Vec<u8>) -> usize {
        self.sheet.step(window, end, &mut self.addresses, out)
    }
}

/// Rewrites a whole text, such as the content of a `style` element.
pub fn whole(text: &[u8], charset: &'static Encoding, xml: bool, addresses: &mut Addresses, out: &mut Vec<u8>) {
    Sheet::new(charset, xml).step(text, End::Last, addresses, out);
}

/// What the at-rule that is being read means for an address in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Rule {
    #[default]
    None,
    Import,
    /// Addresses there are names: `@namespace`, `@document`.
    Names,
}

/// Where in a style sheet the window begins.
#[derive(Debug)]
pub struct Sheet {
    charset: &'static Encoding,
    wide: Wide,
    xml: bool,
    rule: Rule,
    functions: u32,
    /// The innermost `image-set(`, in which strings are addresses.
    image_set: Option<u32>,
}

impl Sheet {
    pub fn new(charset: &'static Encoding, xml: bool) -> Sheet {
        let wide = Wide::of(charset);
        Sheet { charset, wide, xml, rule: Rule::None, functions: 0, image_set: None }
    }

    /// See [`Step::step`].
    fn step(&mut self, text: &[u8], end: End, addresses: &mut Addresses, out: &mut Vec<u8>) -> usize {
        let mut copied = 0;
        let mut at = 0;
        // Ends the step before the token at `$from`, unless nothing will follow that could complete it.
        macro_rules! wait {
            ($from:expr) => {
                if end == End::More {
                    out.extend_from_slice(&text[copied..$from]);
                    return $from;
                }
            };
        }
        loop {
            let Some(offset) = text[at..].iter().position(|&byte| SIGNS[byte as usize] || self.wide.is_lead(byte))
            else {
                // A name at the end may be that of a function.
                let tail = name_before(text, text.len());
                wait!(tail);
                out.extend_from_slice(&text[copied..]);
                return text.len();
            };
            let sign_at = at + offset;
            at = sign_at + 1;
            match text[sign_at] {
                lead if self.wide.is_lead(lead) => {
                    if at == text.len() {
                        wait!(name_before(text, sign_at));
                    }
                    at = (at + 1).min(text.len());
                }
                b'/' => match text.get(at) {
                    None => wait!(sign_at),
                    Some(b'*') => match memmem::find(&text[at + 1..], b"*/") {
                        Some(length) => at += 1 + length + 2,
                        None => {
                            wait!(sign_at);
                            at = text.len();
                        }
                    },
                    Some(_) => {}
                },
                b'\\' => {
                    if at == text.len() {
                        wait!(name_before(text, sign_at));
                    }
                    at = (at + 1).min(text.len());
                }
                quote @ (b'"' | b'\'') => {
                    let string = self.string(text, at, quote, end);
                    if string.reaches_end {
                        wait!(sign_at);
                    }
                    let modifier = match self.rule {
                        Rule::Import => Some("cs_"),
                        _ if self.image_set == Some(self.functions) => Some("im_"),
                        _ => None,
                    };
                    if let Some(modifier) = modifier
                        && string.is_closed
                    {
                        if self.rule == Rule::Import {
                            self.rule = Rule::None;
                        }
                        let raw = &text[at..string.to];
                        if let Some(address) = addresses.get(modifier, &unescaped(raw, self.charset)) {
                            out.extend_from_slice(&text[copied..at]);
                            self.put(&address, quote, out);
                            copied = string.to;
                        }
                    }
                    at = string.next;
                }
                b'@' => {
                    let rest = &text[at..];
                    let length = rest.iter().position(|&byte| !is_name(byte)).unwrap_or(rest.len());
                    if length == rest.len() {
                        wait!(sign_at);
                    }
                    self.rule = match &rest[..length.min(CSS_NAME_BYTES_MAX)].to_ascii_lowercase()[..] {
                        b"import" => Rule::Import,
                        b"namespace" | b"document" | b"-moz-document" => Rule::Names,
                        _ => Rule::None,
                    };
                    at += length;
                }
                b'(' => {
                    let name_at = name_before(text, sign_at);
                    match function(&text[name_at..sign_at]) {
                        Function::Url => {
                            let Some(found) = self.url(text, at, end) else {
                                wait!(name_at);
                                at = text.len();
                                continue;
                            };
                            if let Some((from, to, quote)) = found.reference
                                && self.rule != Rule::Names
                            {
                                let modifier = if self.rule == Rule::Import { "cs_" } else { "im_" };
                                self.rule = Rule::None;
                                if let Some(address) =
                                    addresses.get(modifier, &unescaped(&text[from..to], self.charset))
                                {
                                    out.extend_from_slice(&text[copied..from]);
                                    match quote {
                                        Some(quote) => self.put(&address, quote, out),
                                        None => {
                                            out.push(b'"');
                                            self.put(&address, b'"', out);
                                            out.push(b'"');
                                        }
                                    }
                                    copied = to;
                                }
                            }
                            at = found.next;
                        }
                        Function::ImageSet => {
                            self.functions = self.functions.saturating_add(1);
                            self.image_set = Some(self.functions);
                        }
                        Function::Other => self.functions = self.functions.saturating_add(1),
                    }
                }
                b')' => {
                    if self.image_set == Some(self.functions) {
                        self.image_set = None;
                    }
                    self.functions = self.functions.saturating_sub(1);
                }
                _ => {
                    self.rule = Rule::None;
                    self.functions = 0;
                    self.image_set = None;
                }
            }
        }
    }

    /// Writes an address inside quotation marks.
    fn put(&self, address: &str, quote: u8, out: &mut Vec<u8>) {
        for byte in address.bytes() {
            match byte {
                b'\'' if quote == b'\'' => out.extend_from_slice(b"\\'"),
                b'\\' => out.extend_from_slice(b"\\\\"),
                // In XML, the sign would begin a reference.
                b'&' if self.xml => out.extend_from_slice(b"\\26 "),
                byte => out.push(byte),
            }
        }
    }

    /// The string whose content begins at `from`; one that is not closed ends with its line, or with the text.
    fn string(&self, text: &[u8], from: usize, quote: u8, end: End) -> Quoted {
        let mut at = from;
        while let Some(&byte) = text.get(at) {
            if byte == quote {
                return Quoted { to: at, next: at + 1, is_closed: true, reaches_end: false };
            }
            at += match byte {
                b'\n' | b'\r' | b'\x0c' => {
                    return Quoted { to: at, next: at, is_closed: false, reaches_end: false };
                }
                b'\\' if text[at..].starts_with(b"\\\r\n") => 3,
                b'\\' => 2,
                lead if self.wide.is_lead(lead) => 2,
                _ => 1,
            };
        }
        Quoted { to: text.len(), next: text.len(), is_closed: end == End::Last, reaches_end: true }
    }

    /// What stands after `url(`. `None`: the text ends first.
    fn url(&self, text: &[u8], from: usize, end: End) -> Option<Parenthesis> {
        let mut at = from + text[from..].iter().position(|&byte| !is_space(byte))?;
        if let Some(&quote @ (b'"' | b'\'')) = text.get(at) {
            let string = self.string(text, at + 1, quote, end);
            if string.reaches_end && end == End::More {
                return None;
            }
            let reference = string.is_closed.then_some((at + 1, string.to, Some(quote)));
            return Some(Parenthesis { reference, next: string.next });
        }
        let begin = at;
        let mut to = None;
        let mut is_bad = false;
        loop {
            let Some(&byte) = text.get(at) else {
                if end != End::Last {
                    return None;
                }
                break;
            };
            match byte {
                b')' => break,
                b'\\' => at += escape_length(&text[at + 1..]),
                byte if is_space(byte) => {
                    to.get_or_insert(at);
                }
                b'"' | b'\'' | b'(' | 0x01..0x20 | 0x7f => is_bad = true,
                // White space may only stand at the end.
                _ if to.is_some() => is_bad = true,
                lead if self.wide.is_lead(lead) => at += 1,
                _ => {}
            }
            at += 1;
        }
        let close = at.min(text.len());
        let reference = (begin, to.unwrap_or(close).min(close), None);
        Some(Parenthesis { reference: (!is_bad).then_some(reference), next: (close + 1).min(text.len()) })
    }
}

/// A string: its content ends at `to`, what follows it begins at `next`.
struct Quoted {
    to: usize,
    next: usize,
    is_closed: bool,
    reaches_end: bool,
}

/// What stood in parentheses: from, to and quotation mark of an address.
struct Parenthesis {
    reference: Option<(usize, usize, Option<u8>)>,
    next: usize,
}

enum Function {
    Url,
    ImageSet,
    Other,
}

fn function(name: &[u8]) -> Function {
    let plain;
    let name = if name.contains(&b'\\') {
        plain = crate::css::escapes_replaced(&String::from_utf8_lossy(name));
        plain.as_bytes()
    } else {
        name
    };
    let is = |wanted: &str| name.eq_ignore_ascii_case(wanted.as_bytes());
    if is("url") || is("src") {
        Function::Url
    } else if is("image-set") || is("-webkit-image-set") {
        Function::ImageSet
    } else {
        Function::Other
    }
}

/// How much of what follows a backslash belongs to it: a character, or up to six digits and the space that ends them.
fn escape_length(rest: &[u8]) -> usize {
    let digits = rest.iter().take(6).take_while(|byte| byte.is_ascii_hexdigit()).count();
    match digits {
        0 => 1,
        _ if rest[digits..].starts_with(b"\r\n") => digits + 2,
        _ => digits + usize::from(rest.get(digits).is_some_and(|&byte| is_space(byte))),
    }
}

/// Where the name that ends at `to` begins.
fn name_before(text: &[u8], to: usize) -> usize {
    let from = to.saturating_sub(CSS_NAME_BYTES_MAX);
    let before = &text[from..to];
    before.iter().rposition(|&byte| !is_name(byte) && byte != b'\\').map_or(from, |at| from + at + 1)
}
