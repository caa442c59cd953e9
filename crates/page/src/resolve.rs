//! References become URLs, as a browser on the page would make them.
//!
//! Most references are a few plain characters below a known folder. Those are put together by hand; all others go through the
//! `url` crate. Both ways give the same, which tests hold them to.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};

use encoding_rs::{EncoderResult, Encoding, UTF_8};
use skep_url::Url;
use url::Position;

use crate::limits;

/// Everything that references on one page are resolved against.
#[derive(Debug)]
pub struct Resolver {
    /// The base, in WHATWG form.
    text: String,
    /// The same, parsed when it is first needed.
    base: OnceCell<Option<url::Url>>,
    /// The base up to its path.
    origin_end: usize,
    /// The base up to and with the last slash of its path.
    folder_end: usize,
    path_end: usize,
    /// The crate takes a segment such as `c:` for a drive, above which it does not climb.
    has_drive: bool,
    /// How queries are written, where not in UTF-8.
    encoding: Option<&'static Encoding>,
    /// Other origins that this page names in their own form: what follows them needs no parser either.
    elsewhere: RefCell<Vec<String>>,
}

/// Other origins that are remembered.
const ELSEWHERE_MAX: usize = 8;

/// What a byte may be in a reference that needs no parser: part of a path, part of a query, neither.
const PATH: u8 = 1;
const QUERY: u8 = 2;

const PLAIN: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => PATH | QUERY,
            b'-' | b'_' | b'.' | b'~' | b'!' | b'$' | b'&' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b'@'
            | b'/' | b'%' => PATH | QUERY,
            // Before a path, a colon may end a scheme.
            b':' | b'?' => QUERY,
            _ => 0,
        };
        byte += 1;
    }
    table
};

impl Resolver {
    /// References stand on a page with this URL and charset.
    pub fn new(url: &Url, charset: &'static Encoding) -> Resolver {
        let encoding = Some(charset.output_encoding()).filter(|&encoding| encoding != UTF_8);
        Resolver::of(url.as_str().to_owned(), encoding)
    }

    /// The text is in WHATWG form, `http` or `https`, without fragment and credentials.
    fn of(text: String, encoding: Option<&'static Encoding>) -> Resolver {
        let host = text.find("://").map_or(0, |colon| colon + 3);
        let origin_end = text[host..].find('/').map_or(text.len(), |slash| host + slash);
        let path_end = text[origin_end..].find('?').map_or(text.len(), |mark| origin_end + mark);
        let folder_end = text[..path_end].rfind('/').map_or(path_end, |slash| slash + 1);
        let has_drive = text[origin_end..path_end].contains([':', '|']);
        Resolver {
            text,
            base: OnceCell::new(),
            origin_end,
            folder_end,
            path_end,
            has_drive,
            encoding,
            elsewhere: RefCell::default(),
        }
    }

    /// The same page, which names another base: the reference is resolved against its own URL. `None`: nothing can be fetched
    /// from there.
    pub fn with_base(&self, reference: &str) -> Option<Resolver> {
        self.parse(reference).map(|base| Resolver::of(base.into(), self.encoding))
    }

    /// The base, in WHATWG form.
    pub fn base(&self) -> &str {
        &self.text
    }

    /// Writes the URL of a plain ASCII reference. `false`: it is not plain, and nothing is written.
    pub fn plain(&self, reference: &[u8], out: &mut String) -> bool {
        let Ok(reference) = std::str::from_utf8(reference.trim_ascii()) else { return false };
        let text = self.text.as_str();
        let elsewhere = self.elsewhere.borrow();
        let mut origin = &text[..self.origin_end];
        let mut rest = reference;
        // One that repeats a known origin stands below it.
        let mut absolute = false;
        if reference.starts_with("http") {
            let known = std::iter::once(origin).chain(elsewhere.iter().map(String::as_str));
            for known in known {
                if let Some(path) = reference.strip_prefix(known)
                    && path.starts_with('/')
                {
                    (origin, rest, absolute) = (known, path, true);
                    break;
                }
            }
        }
        let bytes = rest.as_bytes();
        let path_length = bytes.iter().position(|&byte| PLAIN[byte as usize] & PATH == 0).unwrap_or(bytes.len());
        let length = match bytes.get(path_length) {
            None => path_length,
            Some(b'#') => path_length,
            Some(b'?') => {
                let query = &bytes[path_length..];
                let end = query.iter().position(|&byte| PLAIN[byte as usize] & QUERY == 0).unwrap_or(query.len());
                if !matches!(query.get(end), None | Some(b'#')) {
                    return false;
                }
                path_length + end
            }
            Some(_) => return false,
        };
        let (mut path, query) = (&rest[..path_length], &rest[path_length..length]);
        let mut folder = &text[..self.folder_end];
        if path.is_empty() {
            let keep = if query.is_empty() { text.len() } else { self.path_end };
            folder = &text[..keep];
        } else if path.starts_with('/') {
            if path.starts_with("//") && !absolute {
                return false;
            }
            folder = origin;
        } else {
            loop {
                if let Some(above) = path.strip_prefix("../") {
                    if self.has_drive {
                        return false;
                    }
                    path = above;
                    // The folder ends with a slash, and at least one slash stays.
                    let without = &folder[..folder.len() - 1];
                    if without.len() > self.origin_end {
                        folder = &folder[..without.rfind('/').map_or(self.origin_end, |slash| slash) + 1];
                    }
                } else if let Some(here) = path.strip_prefix("./") {
                    path = here;
                } else {
                    break;
                }
            }
        }
        if has_dot_segment(path.as_bytes()) {
            return false;
        }
        out.clear();
        out.push_str(folder);
        out.push_str(path);
        out.push_str(query);
        out.len() <= limits::URL_BYTES_MAX
    }

    /// Writes the URL of any reference. `false`: it is none that can be fetched.
    pub fn resolve(&self, reference: &str, out: &mut String) -> bool {
        if self.plain(reference.as_bytes(), out) {
            return true;
        }
        let Some(url) = self.parse(reference) else { return false };
        out.clear();
        out.push_str(url.as_str());
        let origin = &url[..Position::BeforePath];
        let mut elsewhere = self.elsewhere.borrow_mut();
        if elsewhere.len() < ELSEWHERE_MAX
            && reference.strip_prefix(origin).is_some_and(|path| path.starts_with('/'))
            && !elsewhere.iter().any(|known| known == origin)
        {
            elsewhere.push(origin.to_owned());
        }
        true
    }

    fn parse(&self, reference: &str) -> Option<url::Url> {
        if reference.len() > limits::URL_BYTES_MAX || has_other_scheme(reference) {
            return None;
        }
        // However many slashes there are, a host follows; the crate stumbles over the third.
        let trimmed = reference.trim_start_matches(|c: char| c <= ' ');
        let rest = trimmed.trim_start_matches(['/', '\\']);
        let absolute;
        let mut text = reference;
        if trimmed.len() - rest.len() > 2 {
            absolute = format!("{}//{rest}", &self.text[..self.text.find("//").unwrap_or(0)]);
            text = &absolute;
        }
        // One that says where it is needs no base, which is then not parsed.
        let base = match has_own_origin(trimmed) {
            true => None,
            false => Some(self.base.get_or_init(|| url::Url::parse(&self.text).ok()).as_ref()?),
        };
        let encode = for_any(|query| encode_query(query, self.encoding.unwrap_or(UTF_8)).into());
        let options = url::Url::options().base_url(base);
        let options = if self.encoding.is_some() { options.encoding_override(Some(&encode)) } else { options };
        let mut url = options.parse(text).ok()?;
        if !is_fetched(&url) {
            return None;
        }
        clean(&mut url);
        (url.as_str().len() <= limits::URL_BYTES_MAX).then_some(url)
    }
}

/// Does it begin with a scheme, and not with one that is fetched?
fn has_other_scheme(reference: &str) -> bool {
    let trimmed = reference.trim_start_matches(|c: char| c <= ' ');
    let end = trimmed.bytes().position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')));
    let Some(end) = end.filter(|&end| trimmed.as_bytes()[end] == b':') else { return false };
    let scheme = &trimmed[..end];
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && !scheme.eq_ignore_ascii_case("http")
        && !scheme.eq_ignore_ascii_case("https")
}

/// Does it begin with a scheme that is fetched and the two slashes behind it?
fn has_own_origin(reference: &str) -> bool {
    ["http://", "https://"]
        .iter()
        .any(|start| reference.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start)))
}

/// Tells the compiler that a closure takes text of any lifetime.
fn for_any<F: Fn(&str) -> Cow<'_, [u8]>>(encode: F) -> F {
    encode
}

fn is_fetched(url: &url::Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// Removes what is never sent, or never shown.
fn clean(url: &mut url::Url) {
    url.set_fragment(None);
    if !url.username().is_empty() || url.password().is_some() {
        // Both only fail without a host, which http and https always have.
        let _ = url.set_password(None);
        let _ = url.set_username("");
    }
}

/// Might a segment of this path be `.` or `..`, escaped or not?
fn has_dot_segment(path: &[u8]) -> bool {
    let mut at_start = true;
    let mut bytes = path.iter();
    while let Some(&byte) = bytes.next() {
        if at_start && byte == b'.' || byte == b'%' && bytes.as_slice().starts_with(b"2") {
            return true;
        }
        at_start = byte == b'/';
    }
    false
}

/// A query in the page's charset; what that lacks is written as an escaped character reference, as browsers do.
fn encode_query(query: &str, encoding: &'static Encoding) -> Vec<u8> {
    let mut encoder = encoding.new_encoder();
    let mut out = Vec::with_capacity(query.len() + 16);
    let mut rest = query;
    let mut buffer = [0; 1_024];
    loop {
        let (result, read, written) = encoder.encode_from_utf8_without_replacement(rest, &mut buffer, true);
        out.extend_from_slice(&buffer[..written]);
        rest = &rest[read..];
        match result {
            EncoderResult::InputEmpty => return out,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(character) => {
                out.extend_from_slice(format!("%26%23{}%3B", u32::from(character)).as_bytes());
            }
        }
    }
}
