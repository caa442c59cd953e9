//! The links of style sheets, `style` elements and `style` attributes: `url()`, `@import`, `image-set()`.
//!
//! Only what can begin or end a link is looked at: comments, strings, escapes, at-rules, blocks and functions.

use std::borrow::Cow;

use encoding_rs::Encoding;
use memchr::memmem;

use crate::links::Links;
use crate::page::LinkKind;
use crate::value::{self, is_space};

/// Takes the links of a style sheet.
pub fn links(text: &[u8], charset: &'static Encoding, links: &mut Links) {
    // Without these two there is none.
    if memchr::memchr2(b'(', b'@', text).is_none() {
        return;
    }
    if links.counts() {
        // Each begins with one of these.
        let begins = text.iter().filter(|byte| matches!(byte, b'(' | b'@' | b'"' | b'\'')).count();
        links.count(begins as u64);
        return;
    }
    let mut sheet = Sheet { text, at: 0, rule: Rule::None, blocks: 0, font_block: None, functions: 0, image_set: None };
    while let Some((reference, kind)) = sheet.next() {
        let reference = unescaped(reference, charset);
        // A part of the same document is never fetched.
        if !reference.is_empty() && !reference.starts_with('#') {
            links.reference(&reference, kind, false);
        }
        if links.is_full() {
            return;
        }
    }
}

/// What the at-rule that is being read means for a URL in it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    None,
    Import,
    FontFace,
    /// URLs there are names: `@namespace`, `@document`.
    Names,
}

struct Sheet<'a> {
    text: &'a [u8],
    at: usize,
    rule: Rule,
    blocks: u32,
    /// The block of `@font-face`.
    font_block: Option<u32>,
    functions: u32,
    /// The innermost `image-set(`, in which strings are URLs.
    image_set: Option<u32>,
}

/// Bytes at which something may begin or end.
pub(crate) const SIGNS: [bool; 256] = {
    let mut table = [false; 256];
    let signs = b"/\"'\\@(){};";
    let mut at = 0;
    while at < signs.len() {
        table[signs[at] as usize] = true;
        at += 1;
    }
    table
};

impl<'a> Sheet<'a> {
    /// The next link, still escaped.
    fn next(&mut self) -> Option<(&'a [u8], LinkKind)> {
        loop {
            let rest = &self.text[self.at..];
            let offset = rest.iter().position(|&byte| SIGNS[byte as usize])?;
            let sign_at = self.at + offset;
            self.at = sign_at + 1;
            match self.text[sign_at] {
                b'/' if self.text.get(self.at) == Some(&b'*') => {
                    self.at += 1;
                    let end = memmem::find(&self.text[self.at..], b"*/");
                    self.at = end.map_or(self.text.len(), |offset| self.at + offset + 2);
                }
                b'\\' => self.at = (self.at + 1).min(self.text.len()),
                quote @ (b'"' | b'\'') => {
                    let string = self.string(quote);
                    if self.rule == Rule::Import {
                        self.rule = Rule::None;
                        return Some((string, LinkKind::Import));
                    }
                    if self.image_set == Some(self.functions) {
                        return Some((string, LinkKind::Image));
                    }
                }
                b'@' => {
                    let rest = &self.text[self.at..];
                    let length = rest.iter().position(|&byte| !is_name(byte)).unwrap_or(rest.len());
                    self.rule = match &rest[..length].to_ascii_lowercase()[..] {
                        b"import" if self.blocks == 0 => Rule::Import,
                        b"font-face" => Rule::FontFace,
                        b"namespace" | b"document" | b"-moz-document" => Rule::Names,
                        _ => Rule::None,
                    };
                    self.at += length;
                }
                b'(' => {
                    let found = self.function(sign_at);
                    if found.is_some() {
                        return found;
                    }
                }
                b')' => {
                    if self.image_set == Some(self.functions) {
                        self.image_set = None;
                    }
                    self.functions = self.functions.saturating_sub(1);
                }
                b'{' => {
                    self.blocks = self.blocks.saturating_add(1);
                    if self.rule == Rule::FontFace {
                        self.font_block = Some(self.blocks);
                    }
                    self.end_of_statement();
                }
                b'}' => {
                    if self.font_block == Some(self.blocks) {
                        self.font_block = None;
                    }
                    self.blocks = self.blocks.saturating_sub(1);
                    self.end_of_statement();
                }
                b';' => self.end_of_statement(),
                _ => {}
            }
        }
    }

    fn end_of_statement(&mut self) {
        self.rule = Rule::None;
        self.functions = 0;
        self.image_set = None;
    }

    /// The function whose parenthesis opens at `paren`, if it is or holds a link.
    fn function(&mut self, paren: usize) -> Option<(&'a [u8], LinkKind)> {
        let before = &self.text[..paren];
        let name_from = before.iter().rposition(|&byte| !is_name(byte) && byte != b'\\').map_or(0, |at| at + 1);
        let name = &before[name_from..];
        let is = |wanted: &str| {
            name.eq_ignore_ascii_case(wanted.as_bytes())
                || name.contains(&b'\\')
                    && escapes_replaced(&String::from_utf8_lossy(name)).eq_ignore_ascii_case(wanted)
        };
        if name.len() > 64 {
            self.functions = self.functions.saturating_add(1);
            return None;
        }
        if is("url") || is("src") {
            let reference = self.url()?;
            let kind = match self.rule {
                Rule::Names => return None,
                Rule::Import => LinkKind::Import,
                _ if self.font_block.is_some() => LinkKind::Font,
                _ => LinkKind::Image,
            };
            if self.rule == Rule::Import {
                self.rule = Rule::None;
            }
            return Some((reference, kind));
        }
        self.functions = self.functions.saturating_add(1);
        if is("image-set") || is("-webkit-image-set") {
            self.image_set = Some(self.functions);
        }
        None
    }

    /// What stands between the parentheses of `url(`; the closing one is passed over.
    fn url(&mut self) -> Option<&'a [u8]> {
        while self.text.get(self.at).is_some_and(|&byte| is_space(byte)) {
            self.at += 1;
        }
        if let Some(&quote @ (b'"' | b'\'')) = self.text.get(self.at) {
            self.at += 1;
            let string = self.string(quote);
            self.pass_parenthesis();
            return Some(string);
        }
        let from = self.at;
        let mut to = None;
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b')' => break,
                b'\\' => self.at += 1,
                byte if is_space(byte) => {
                    to.get_or_insert(self.at);
                }
                b'"' | b'\'' | b'(' | 0x01..0x20 | 0x7f => {
                    self.pass_parenthesis();
                    return None;
                }
                // White space may only stand at the end.
                _ if to.is_some() => {
                    self.pass_parenthesis();
                    return None;
                }
                _ => {}
            }
            self.at += 1;
        }
        let end = self.at.min(self.text.len());
        self.at = (end + 1).min(self.text.len());
        Some(&self.text[from..to.unwrap_or(end).min(end)])
    }

    fn pass_parenthesis(&mut self) {
        while let Some(&byte) = self.text.get(self.at) {
            self.at += 1 + usize::from(byte == b'\\');
            if byte == b')' {
                break;
            }
        }
        self.at = self.at.min(self.text.len());
    }

    /// The rest of a string; one that is not closed ends with its line.
    fn string(&mut self, quote: u8) -> &'a [u8] {
        let from = self.at;
        while let Some(&byte) = self.text.get(self.at) {
            if byte == quote {
                self.at += 1;
                return &self.text[from..self.at - 1];
            }
            match byte {
                b'\n' | b'\r' | b'\x0c' => return b"",
                b'\\' if self.text[self.at..].starts_with(b"\\\r\n") => self.at += 3,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at = self.text.len();
        &self.text[from..]
    }
}

/// A NUL stands for a character that cannot be shown, which may be part of a name.
pub fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | 0 | 0x80..)
}

pub fn unescaped<'a>(raw: &'a [u8], charset: &'static Encoding) -> Cow<'a, str> {
    let text = value::decoded(raw, charset);
    if raw.contains(&b'\\') { Cow::Owned(escapes_replaced(&text)) } else { text }
}

/// Replaces `\26 ` and `\(` by what they mean.
pub fn escapes_replaced(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = rest.bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
        if digits > 0 {
            let number = u32::from_str_radix(&rest[..digits], 16).unwrap_or(0);
            out.push(char::from_u32(number).filter(|&c| c != '\0').unwrap_or('\u{fffd}'));
            rest = &rest[digits..];
            rest = rest
                .strip_prefix("\r\n")
                .or_else(|| rest.strip_prefix(|c: char| c.is_ascii() && is_space(c as u8)))
                .unwrap_or(rest);
            continue;
        }
        // An escaped line end inside a string is nothing; any other character is itself.
        if let Some(after) = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix(['\n', '\r', '\x0c'])) {
            rest = after;
        } else if let Some(character) = rest.chars().next() {
            out.push(character);
            rest = &rest[character.len_utf8()..];
        }
    }
    out.push_str(rest);
    out
}
