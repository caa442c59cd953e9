//! What a page wants of robots, as indexes flag it: `A` noarchive, `F` nofollow, `I` noindex.
//!
//! Tags are found the way the indexes in the field were made, with patterns rather than a parser, so that a page is flagged now as
//! it was then: every `<meta …>` before the first `</head>`, comments and scripts included; `name` and `content` anywhere in it.

use std::fmt;

/// The flags of one page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    archive: bool,
    follow: bool,
    index: bool,
}

impl Flags {
    /// Takes a list of directives, from a tag or a header.
    pub(super) fn add(&mut self, directives: &[u8]) {
        for directive in directives.split(|&b| b == b',') {
            match directive.trim_ascii().to_ascii_lowercase().as_slice() {
                b"noarchive" => self.archive = true,
                b"nofollow" => self.follow = true,
                b"noindex" => self.index = true,
                _ => {}
            }
        }
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (flag, letter) in [(self.archive, "A"), (self.follow, "F"), (self.index, "I")] {
            f.write_str(if flag { letter } else { "" })?;
        }
        Ok(())
    }
}

/// Adds what the tags of a page say.
pub(super) fn scan(html: &[u8], flags: &mut Flags) {
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'<', &html[at..]) {
        at += found + 1;
        let rest = &html[at..];
        if begins(rest, b"/head>") {
            return;
        }
        if !begins(rest, b"meta") {
            continue;
        }
        // A tag that is never closed is none, and no later one can be closed either.
        let Some(end) = memchr::memchr(b'>', rest) else { return };
        let tag = &rest[4..=end];
        if tag.len() > 1
            && attribute(tag, &[b"name", b"http-equiv"]).is_some_and(|name| name.eq_ignore_ascii_case(b"robots"))
            && let Some(content) = attribute(tag, &[b"content"])
        {
            flags.add(content);
        }
        at += end + 1;
    }
}

fn begins(text: &[u8], lower: &[u8]) -> bool {
    text.get(..lower.len()).is_some_and(|text| text.eq_ignore_ascii_case(lower))
}

/// The value of the first of these attributes in what follows a tag's name, its `>` included.
fn attribute<'a>(tag: &'a [u8], names: &[&[u8]]) -> Option<&'a [u8]> {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (0..tag.len()).find_map(|at| {
        // `<metaname=…` is no tag with a name: the letters before count.
        let before = if at == 0 { b'a' } else { tag[at - 1] };
        if word(before) {
            return None;
        }
        let name = names.iter().find(|name| begins(&tag[at..], name))?;
        let rest = skip_space(&tag[at + name.len()..]).strip_prefix(b"=")?;
        value(skip_space(rest))
    })
}

fn value(text: &[u8]) -> Option<&[u8]> {
    if let [quote @ (b'"' | b'\''), inner @ ..] = text {
        let line = &inner[..memchr::memchr(b'\n', inner).unwrap_or(inner.len())];
        let closing = memchr::memchr_iter(*quote, line).find(|&end| inner.get(end + 1).is_some_and(|&b| ends_value(b)));
        if let Some(end) = closing {
            return Some(&inner[..end]);
        }
    }
    // No quotes, or none that close: up to what ends a bare value.
    Some(&text[..text.iter().position(|&b| ends_value(b))?])
}

fn ends_value(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b'/' | b'>')
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn skip_space(text: &[u8]) -> &[u8] {
    &text[text.iter().take_while(|&&b| is_space(b)).count()..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn flags(html: &str, wanted: &str) {
        let mut flags = Flags::default();
        scan(html.as_bytes(), &mut flags);
        assert_eq!(flags.to_string(), wanted, "{html}");
    }

    #[test]
    fn tags_in_every_spelling() {
        flags(r#"<meta name="robots" content="noindex">"#, "I");
        flags("<META CONTENT=NOINDEX NAME=ROBOTS>", "I");
        flags("<meta name='robots' content='noindex, NoFollow ,noarchive'/>", "AFI");
        flags("<meta\nname = robots\ncontent = nofollow\n>", "F");
        flags(r#"<meta name="robots" content="noindex"><meta name="robots" content="nofollow">"#, "FI");
        flags(r#"<meta http-equiv="robots" content="noarchive" />"#, "A");
        flags(r#"<!-- <meta name="robots" content="noindex"> -->"#, "I");
    }

    #[test]
    fn what_is_no_such_tag() {
        flags(r#"<meta name="robots" content="index, follow, none">"#, "");
        flags(r#"<meta name="robots">"#, "");
        flags(r#"<meta name=" robots" content="noindex">"#, "");
        flags(r#"<meta name="googlebot" content="noindex">"#, "");
        flags(r#"</HEAD><meta name="robots" content="noindex">"#, "");
        flags(r#"<meta name="robots" content="noindex""#, "");
        flags("<meta><p name=robots content=noindex>", "");
        flags(r#"<metaname="robots" content="noindex">"#, "");
    }

    #[test]
    fn quotes_that_do_not_close_on_their_line() {
        flags("<meta name=robots content=\"x,\nnoindex\">", "");
        flags("<meta name=robots content=\"noindex,\nnofollow\">", "");
        flags(r#"<meta name="robots" content="noarchive"data-x="y">"#, "");
        flags(r#"<meta name=robots content=noindex,nofollow>"#, "FI");
        flags(r#"<meta name=robots content=noindex/nofollow>"#, "I");
    }
}
