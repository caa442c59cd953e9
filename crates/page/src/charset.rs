//! Which charset a page is in: byte order mark, then what the server says, then what the page says, then a guess.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

use crate::limits;
use crate::value::is_space;

/// The charset of an HTML page. `declared` is the value of `Content-Type`, `host` its server, whose ending hints at a language.
pub fn of_html(body: &[u8], declared: Option<&[u8]>, host: &str) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return encoding;
    }
    if let Some(encoding) = declared.and_then(of_content_type) {
        return encoding;
    }
    let start = &body[..body.len().min(limits::PRESCAN_BYTES)];
    prescan(start).unwrap_or_else(|| guess(body, host))
}

/// The charset of XML, which is UTF-8 unless something says otherwise.
pub fn of_xml(body: &[u8], declared: Option<&[u8]>) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return encoding;
    }
    declared
        .and_then(of_content_type)
        .or_else(|| utf_16_declaration(body))
        .or_else(|| xml_declaration(body))
        .unwrap_or(UTF_8)
}

/// The charset of a style sheet.
pub fn of_css(body: &[u8], declared: Option<&[u8]>) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return encoding;
    }
    if let Some(encoding) = declared.and_then(of_content_type) {
        return encoding;
    }
    let rule = body.strip_prefix(b"@charset \"").map(|rest| &rest[..rest.len().min(limits::PRESCAN_BYTES)]);
    let label = rule.and_then(|rest| rest.split(|&byte| byte == b'"').next());
    label.and_then(Encoding::for_label).map_or(UTF_8, ascii_like)
}

/// The charset that a `Content-Type` names.
pub fn of_content_type(value: &[u8]) -> Option<&'static Encoding> {
    let parameters = value.iter().position(|&byte| byte == b';').map(|at| &value[at + 1..])?;
    for parameter in parameters.split(|&byte| byte == b';') {
        let Some(equals) = parameter.iter().position(|&byte| byte == b'=') else { continue };
        if parameter[..equals].trim_ascii().eq_ignore_ascii_case(b"charset") {
            let label = parameter[equals + 1..].trim_ascii();
            let label = label.strip_prefix(b"\"").unwrap_or(label);
            let label = label.split(|&byte| byte == b'"').next().unwrap_or(label);
            return Encoding::for_label(label);
        }
    }
    None
}

/// What was read as ASCII to get here cannot be in sixteen bits.
fn ascii_like(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding }
}

/// The charset that the beginning of a page declares (HTML standard, "prescan a byte stream to determine its encoding").
pub fn prescan(start: &[u8]) -> Option<&'static Encoding> {
    if let Some(encoding) = utf_16_declaration(start) {
        return Some(encoding);
    }
    let mut at = 0;
    // Nothing but what begins with this sign counts.
    while let Some(offset) = start.get(at..).and_then(|rest| memchr::memchr(b'<', rest)) {
        at += offset;
        let rest = &start[at..];
        if rest.starts_with(b"<!--") {
            // The dashes may be those of the beginning.
            at = memchr::memmem::find(&rest[2..], b"-->").map_or(start.len(), |offset| at + 2 + offset + 3);
            continue;
        }
        if rest.len() > 5 && rest[..5].eq_ignore_ascii_case(b"<meta") && (is_space(rest[5]) || rest[5] == b'/') {
            at += 6;
            if let Some(encoding) = meta(start, &mut at) {
                return Some(encoding);
            }
        } else if let [b'<', b'/', letter, ..] | [b'<', letter, ..] = rest
            && letter.is_ascii_alphabetic()
        {
            at += rest.iter().position(|&byte| is_space(byte) || byte == b'>').unwrap_or(rest.len());
            while raw_attribute(start, &mut at).is_some() {}
        } else if let [b'<', b'!' | b'/' | b'?', ..] = rest {
            at += rest.iter().position(|&byte| byte == b'>').unwrap_or(rest.len());
        }
        at += 1;
    }
    xml_declaration(start)
}

/// The charset of a `meta` element whose attributes begin at `at`.
fn meta(start: &[u8], at: &mut usize) -> Option<&'static Encoding> {
    let (mut got_pragma, mut need_pragma, mut charset) = (false, None, None);
    // Of each that counts, the first does.
    let mut seen = [false; 3];
    while let Some((name, value)) = raw_attribute(start, at) {
        let counted = [&b"http-equiv"[..], b"content", b"charset"].iter().position(|of| name.eq_ignore_ascii_case(of));
        let Some(counted) = counted.filter(|counted| !std::mem::replace(&mut seen[*counted], true)) else { continue };
        match counted {
            0 => got_pragma |= value.eq_ignore_ascii_case(b"content-type"),
            1 => {
                if let Some(encoding) = of_meta_content(&value.to_ascii_lowercase())
                    && charset.is_none()
                {
                    charset = Some(encoding);
                    need_pragma = Some(true);
                }
            }
            _ => {
                charset = Encoding::for_label(value);
                need_pragma = Some(false);
            }
        }
    }
    if need_pragma? && !got_pragma {
        return None;
    }
    let encoding = ascii_like(charset?);
    Some(if encoding == X_USER_DEFINED { WINDOWS_1252 } else { encoding })
}

/// "Get an attribute", as it stands; `None` at the end of the tag.
fn raw_attribute<'s>(start: &'s [u8], at: &mut usize) -> Option<(&'s [u8], &'s [u8])> {
    let byte = |at: usize| start.get(at).copied();
    while byte(*at).is_some_and(|b| is_space(b) || b == b'/') {
        *at += 1;
    }
    if byte(*at)? == b'>' {
        return None;
    }
    let name_from = *at;
    loop {
        let b = byte(*at)?;
        if b == b'=' && *at > name_from || is_space(b) || b == b'/' || b == b'>' {
            break;
        }
        *at += 1;
    }
    let name = &start[name_from..*at];
    while is_space(byte(*at)?) {
        *at += 1;
    }
    if byte(*at)? != b'=' {
        return Some((name, &[]));
    }
    *at += 1;
    while is_space(byte(*at)?) {
        *at += 1;
    }
    let first = byte(*at)?;
    if first == b'"' || first == b'\'' {
        let from = *at + 1;
        let length = memchr::memchr(first, &start[from..]);
        *at = length.map_or(start.len(), |length| from + length + 1);
        return Some((name, &start[from..from + length?]));
    }
    let value_from = *at;
    while !matches!(byte(*at)?, b'>') && !is_space(byte(*at)?) {
        *at += 1;
    }
    Some((name, &start[value_from..*at]))
}

/// "Extract a character encoding from a meta element"; the value is in lower case.
fn of_meta_content(value: &[u8]) -> Option<&'static Encoding> {
    let mut rest = value;
    loop {
        rest = &rest[memchr::memmem::find(rest, b"charset")? + 7..];
        let after = rest.trim_ascii_start();
        if let Some(after) = after.strip_prefix(b"=") {
            rest = after.trim_ascii_start();
            break;
        }
    }
    let label = match rest.first()? {
        &quote @ (b'"' | b'\'') => &rest[1..1 + memchr::memchr(quote, &rest[1..])?],
        _ => rest.split(|&byte| is_space(byte) || byte == b';').next()?,
    };
    Encoding::for_label(label)
}

/// An XML declaration in sixteen bits, whatever it says.
fn utf_16_declaration(start: &[u8]) -> Option<&'static Encoding> {
    if start.starts_with(b"<\0?\0x\0") {
        Some(UTF_16LE)
    } else if start.starts_with(b"\0<\0?\0x") {
        Some(UTF_16BE)
    } else {
        None
    }
}

fn xml_declaration(start: &[u8]) -> Option<&'static Encoding> {
    let start = &start[..start.len().min(limits::PRESCAN_BYTES)];
    let declaration = start.strip_prefix(b"<?xml")?;
    let declaration = &declaration[..memchr::memchr(b'>', declaration)?];
    let after = &declaration[memchr::memmem::find(declaration, b"encoding")? + 8..];
    let after = after.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let &quote @ (b'"' | b'\'') = after.first()? else { return None };
    let label = &after[1..1 + memchr::memchr(quote, &after[1..])?];
    Encoding::for_label(label).map(ascii_like)
}

/// What the bytes look like, where nothing declares them.
fn guess(body: &[u8], host: &str) -> &'static Encoding {
    // ASCII says nothing, however much of it stands before the first other byte.
    let plain = &body[..Encoding::ascii_valid_up_to(body)];
    let first = memchr::memchr(0x1b, plain).unwrap_or(plain.len());
    if first == body.len() {
        return WINDOWS_1252;
    }
    let from = first.saturating_sub(limits::PRESCAN_BYTES);
    let some = &body[from..body.len().min(from + limits::CHARSET_GUESS_BYTES_MAX)];
    let has_escape = memchr::memchr(0x1b, some).is_some();
    if !has_escape && std::str::from_utf8(some).map_or_else(|error| error.error_len().is_none(), |_| true) {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(some, true);
    let ending = host.trim_end_matches('.').rsplit('.').next().filter(|ending| {
        !ending.is_empty() && ending.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    });
    detector.guess(ending.map(str::as_bytes), Utf8Detection::Allow)
}
