//! Bytes of a page become text: decoded, then character references replaced.

use std::borrow::Cow;

use encoding_rs::Encoding;

/// The value of an attribute.
pub fn attribute<'a>(raw: &'a [u8], charset: &'static Encoding) -> Cow<'a, str> {
    let text = decoded(raw, charset);
    if memchr::memchr(b'&', raw).is_none() { text } else { Cow::Owned(htmlize::unescape_attribute(text).into_owned()) }
}

/// Text between tags.
pub fn text<'a>(raw: &'a [u8], charset: &'static Encoding) -> Cow<'a, str> {
    let text = decoded(raw, charset);
    if memchr::memchr(b'&', raw).is_none() { text } else { Cow::Owned(htmlize::unescape(text).into_owned()) }
}

/// Text without character references. A NUL becomes the sign for what cannot be shown, as the HTML standard asks.
pub fn decoded<'a>(raw: &'a [u8], charset: &'static Encoding) -> Cow<'a, str> {
    let (text, _) = charset.decode_without_bom_handling(raw);
    if memchr::memchr(0, raw).is_none() { text } else { Cow::Owned(text.replace('\0', "\u{fffd}")) }
}

/// Bytes of ASCII white space, as HTML and CSS know it.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
}

/// Text with runs of white space as one space, none at either end, at most so many bytes.
pub fn collapsed(text: &str, bytes_max: usize) -> String {
    let mut out = String::new();
    for word in text.split_ascii_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        let room = bytes_max.saturating_sub(out.len());
        out.push_str(&word[..word.floor_char_boundary(room)]);
        if room < word.len() {
            break;
        }
    }
    out.truncate(out.trim_end().len());
    out
}
