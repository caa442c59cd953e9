//! Paths against patterns: `*` is any run of characters, `$` at the end is the end.
//!
//! A pattern is a chain of literals between its stars. The first must begin the path, each next one is looked for behind
//! the one before: taking the first place found never loses a match, so no pattern takes more than one walk over the path.

use std::borrow::Cow;

use memchr::memmem;

use crate::surt::escape::hex;

/// What follows `Allow:` or `Disallow:`, prepared.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// Escapes in upper case, bytes that are not ASCII escaped.
    written: Box<[u8]>,
    /// With escapes of ordinary characters undone, if that makes a difference and the rule is a `Disallow`.
    plain: Option<Box<[u8]>>,
    /// `Allow: /a/index.html` also means `/a/` itself; the length of `/a/`.
    folder: Option<usize>,
    disallow: bool,
}

/// Path and query of a URL, in the two spellings patterns are compared with.
pub(super) struct Path<'a> {
    written: Cow<'a, [u8]>,
    plain: Option<Vec<u8>>,
}

impl Pattern {
    pub(super) fn new(value: &[u8], allow: bool) -> Pattern {
        let mut written = Vec::with_capacity(value.len());
        for byte in value {
            if byte.is_ascii() {
                written.push(*byte);
            } else {
                written.extend_from_slice(format!("%{byte:02X}").as_bytes());
            }
        }
        upper_escapes(&mut written);
        let folder =
            memchr::memrchr(b'/', &written).filter(|&slash| allow && written[slash..].starts_with(b"/index.htm"));
        Pattern {
            plain: if allow { None } else { unescaped(&written).map(Vec::into_boxed_slice) },
            folder: folder.map(|slash| slash + 1),
            written: written.into(),
            disallow: !allow,
        }
    }

    /// How much the match weighs; the heaviest rule decides. An empty pattern matches nothing.
    pub(super) fn matches(&self, path: &Path<'_>) -> Option<usize> {
        if self.written.is_empty() {
            return None;
        }
        if glob(&self.written, &path.written) {
            return Some(self.written.len());
        }
        if self.disallow && (self.plain.is_some() || path.plain.is_some()) {
            let pattern = self.plain.as_deref().unwrap_or(&self.written);
            let plain = path.plain.as_deref().unwrap_or(&path.written);
            return glob(pattern, plain).then_some(self.written.len());
        }
        let folder = self.folder?;
        let exactly = [&self.written[..folder], b"$"].concat();
        glob(&exactly, &path.written).then_some(exactly.len())
    }
}

impl Path<'_> {
    pub(super) fn of(url: &str) -> Path<'_> {
        let mut written = path_and_query(url.as_bytes());
        if memchr::memchr(b'%', &written).is_some() {
            upper_escapes(written.to_mut());
        }
        Path { plain: unescaped(&written), written }
    }

    pub(super) fn is_robots_txt(&self) -> bool {
        *self.written == *b"/robots.txt"
    }
}

/// From the first `/`, `?` or `;` behind the host to the fragment; `/` when there is nothing.
fn path_and_query(url: &[u8]) -> Cow<'_, [u8]> {
    let url = &url[..memchr::memchr(b'#', url).unwrap_or(url.len())];
    let scheme_end = memmem::find(url, b"://").filter(|&at| !url[..at].iter().any(|b| matches!(b, b'/' | b'?' | b';')));
    let behind = match scheme_end {
        Some(at) => &url[at + 3..],
        None => url.strip_prefix(b"//").unwrap_or(url),
    };
    match behind.iter().position(|b| matches!(b, b'/' | b'?' | b';')) {
        None => Cow::Borrowed(b"/"),
        Some(at) if behind[at] == b'/' => Cow::Borrowed(&behind[at..]),
        Some(at) => Cow::Owned([b"/", &behind[at..]].concat()),
    }
}

fn upper_escapes(bytes: &mut [u8]) {
    let mut i = 0;
    while let Some(at) = memchr::memchr(b'%', &bytes[i..]) {
        i += at + 1;
        if let Some(digits) = bytes.get_mut(i..i + 2)
            && digits.iter().all(u8::is_ascii_hexdigit)
        {
            digits.make_ascii_uppercase();
        }
    }
}

/// With escapes of unreserved characters undone (RFC 9309, section 2.2.2); `None` when there are none.
fn unescaped(bytes: &[u8]) -> Option<Vec<u8>> {
    memchr::memchr(b'%', bytes)?;
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [byte, tail @ ..] = rest {
        let escaped = match rest {
            [b'%', high, low, ..] => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        match escaped {
            Some(character) if character.is_ascii_alphanumeric() || b"-._~".contains(&character) => {
                out.push(character);
                rest = &rest[3..];
            }
            _ => {
                out.push(*byte);
                rest = tail;
            }
        }
    }
    (out.len() < bytes.len()).then_some(out)
}

fn glob(pattern: &[u8], path: &[u8]) -> bool {
    let (pattern, to_the_end) = pattern.strip_suffix(b"$").map_or((pattern, false), |pattern| (pattern, true));
    let mut literals = pattern.split(|&b| b == b'*');
    let first = literals.next().unwrap_or_default();
    let Some(mut rest) = path.strip_prefix(first) else { return false };
    let Some(last) = literals.next_back() else { return !to_the_end || rest.is_empty() };
    for literal in literals {
        let Some(at) = memmem::find(rest, literal) else { return false };
        rest = &rest[at + literal.len()..];
    }
    if to_the_end { rest.ends_with(last) } else { memmem::find(rest, last).is_some() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The textbook way, for comparison: all places of the path that a prefix of the pattern can end at.
    fn slow_glob(pattern: &[u8], path: &[u8]) -> bool {
        let mut ends = vec![false; path.len() + 1];
        ends[0] = true;
        for (i, &p) in pattern.iter().enumerate() {
            if p == b'$' && i + 1 == pattern.len() {
                return ends[path.len()];
            }
            let mut next = vec![false; path.len() + 1];
            for at in 0..=path.len() {
                if p == b'*' {
                    next[at] = ends[at] || (at > 0 && next[at - 1]);
                } else if at > 0 {
                    next[at] = ends[at - 1] && path[at - 1] == p;
                }
            }
            ends = next;
        }
        ends.contains(&true)
    }

    #[test]
    fn one_walk_equals_the_textbook() {
        let mut state = 11u64;
        let mut pick = |from: &[u8], most: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let length = (state >> 40) as usize % (most + 1);
            (0..length)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    from[(state >> 33) as usize % from.len()]
                })
                .collect::<Vec<u8>>()
        };
        for _ in 0..100_000 {
            let (pattern, path) = (pick(b"aab/**$", 8), pick(b"aab/$", 12));
            assert_eq!(
                glob(&pattern, &path),
                slow_glob(&pattern, &path),
                "{} {}",
                String::from_utf8_lossy(&pattern),
                String::from_utf8_lossy(&path)
            );
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let pattern = b"/*a".repeat(10_000);
        assert!(!glob(&pattern, &b"/a".repeat(9_999)));
        assert!(glob(&pattern, &b"/a".repeat(10_000)));
    }

    #[test]
    fn path_and_query_of_anything() {
        for (url, wanted) in [
            ("", "/"),
            ("http://a", "/"),
            ("http://a/b?c#d", "/b?c"),
            ("http://a?c", "/?c"),
            ("http://a;c", "/;c"),
            ("http://a#/b", "/"),
            ("//a/b", "/b"),
            ("a/b", "/b"),
            ("/b/http://c", "/b/http://c"),
            ("a", "/"),
        ] {
            assert_eq!(path_and_query(url.as_bytes()), wanted.as_bytes(), "{url}");
        }
    }
}
