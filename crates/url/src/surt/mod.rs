//! SURT: the sort-friendly form of a URL under which the CDX world files captures.
//!
//! ```text
//! http://www.Example.org:80/Path/?b=2&a=1#top   →   org,example)/path?a=1&b=2
//! ```
//! The form is the one the Internet Archive's indexes use, byte for byte, since an index line is found only by
//! the exact key: `www` goes, everything is lower case, parameters are sorted, session identifiers are cut, escapes
//! are undone as far as they go and written once. A URL without a host (`mailto:`, `urn:`, `dns:`) keeps its scheme in front.
//!
//! Keys are printable ASCII without space, whatever comes in.

pub mod escape;
mod host;
mod query;
mod quick;

use escape::{escape_into, printable_into, unescape};

/// The key of a URL, as CDX indexes write it; `-` for nothing.
pub fn key(url: &str) -> String {
    key_of_bytes(url.as_bytes())
}

/// The key of whatever stands where an archive has a URL. Bytes that are no UTF-8 are escaped one by one, as a browser
/// escapes a link on a page that is not in UTF-8; so the link finds the capture.
pub fn key_of_bytes(url: &[u8]) -> String {
    let mut out = Vec::with_capacity(url.len() + 8);
    key_into(url, &mut out);
    text(out)
}

/// Appends the key of `url` to `out`.
pub(crate) fn key_into(url: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    if !quick::key_into(url, out) {
        out.truncate(start);
        thorough_key_into(url, Form::default(), out);
    }
}

/// The quick way and the thorough way give one key.
pub(crate) fn assert_ways_agree(url: &[u8]) {
    let (mut quick, mut thorough) = (Vec::new(), Vec::new());
    if quick::key_into(url, &mut quick) {
        thorough_key_into(url, Form::default(), &mut thorough);
        assert_eq!(text(quick), text(thorough), "{}", String::from_utf8_lossy(url));
    }
}

/// What may differ from the usual key; the default is the form of CDX indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// `http://(org,example)/` instead of `org,example)/`.
    pub scheme: bool,
    /// `org,example,)/` instead of `org,example)/`.
    pub trailing_comma: bool,
    /// Drop a leading `www`, `www1`, ….
    pub strip_www: bool,
    /// Write the query in lower case.
    pub lower_query: bool,
}

impl Default for Form {
    fn default() -> Form {
        Form { scheme: false, trailing_comma: false, strip_www: true, lower_query: true }
    }
}

/// The key in another form than the one of CDX indexes.
pub fn key_in(url: &str, form: Form) -> String {
    let mut out = Vec::with_capacity(url.len() + 16);
    thorough_key_into(url.as_bytes(), form, &mut out);
    text(out)
}

fn thorough_key_into(url: &[u8], form: Form, out: &mut Vec<u8>) {
    if url.is_empty() {
        return out.push(b'-');
    }
    // The name of an ARC file is a name, not an address: it keeps its upper case.
    if url.starts_with(b"filedesc") {
        return printable_into(url, out);
    }
    match Parts::of_bytes(url) {
        Some(mut parts) => {
            parts.escape_minimally();
            parts.fold(form);
            parts.surt_into(form, out);
        }
        None if url.trim_ascii().is_empty() => out.push(b'-'),
        // A port that is no number: indexers file such a URL under itself.
        None => printable_into(url, out),
    }
}

fn text(ascii: Vec<u8>) -> String {
    String::from_utf8(ascii).unwrap_or_else(|bytes| String::from_utf8_lossy(bytes.as_bytes()).into_owned())
}

/// A URL in its parts, on the way to its key. Credentials are not kept: no key has any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    scheme: Vec<u8>,
    /// Empty when there is none.
    host: Vec<u8>,
    /// 0 when there is none.
    port: u16,
    path: Vec<u8>,
    query: Option<Vec<u8>>,
    fragment: Option<Vec<u8>>,
}

impl Parts {
    /// Splits a URL. `None` for blank text and for a port that is no number.
    pub fn of(url: &str) -> Option<Parts> {
        Parts::of_bytes(url.as_bytes())
    }

    fn of_bytes(url: &[u8]) -> Option<Parts> {
        let mut url: Vec<u8> = trim(url).iter().copied().filter(|b| !matches!(b, b'\t' | b'\r' | b'\n')).collect();
        if url.is_empty() {
            return None;
        }
        if scheme_length(&url).is_none() {
            url.splice(..0, *b"http://");
        }
        let rest = without_repeated_scheme(&url);
        let (scheme, rest) = rest.split_at(scheme_length(rest)?);
        let rest = &rest[1..];
        let (rest, fragment) = split_at_byte(rest, b'#');
        let (rest, query) = split_at_byte(rest, b'?');
        let (authority, path) = match rest.strip_prefix(b"//") {
            Some(rest) => rest.split_at(memchr::memchr(b'/', rest).unwrap_or(rest.len())),
            None => (&rest[..0], rest),
        };
        let (host, port) = host_and_port(authority)?;
        let mut parts = Parts {
            scheme: scheme.to_vec(),
            host: host.to_vec(),
            port,
            path: path.to_vec(),
            query: query.map(<[u8]>::to_vec),
            fragment: fragment.map(<[u8]>::to_vec),
        };
        if parts.host.is_empty() && scheme.starts_with(b"http") {
            parts.take_host_from_path();
        }
        Some(parts)
    }

    /// `http:/example.org/`, `http:example.org` and `http:////example.org/` all mean `example.org`.
    fn take_host_from_path(&mut self) {
        let slashes = self.path.iter().take_while(|&&b| b == b'/').count();
        let rest = &self.path[slashes..];
        if rest.is_empty() {
            self.path.truncate(1);
            return;
        }
        let (host, path) = rest.split_at(memchr::memchr(b'/', rest).unwrap_or(rest.len()));
        (self.host, self.path) = (host.to_vec(), if path.is_empty() { b"/".to_vec() } else { path.to_vec() });
    }

    /// The first step to a key: one spelling for each escape, host and path; upper case, `www` and order stay.
    pub fn escape_minimally(&mut self) {
        let escaped = |bytes: &[u8]| {
            let mut out = Vec::with_capacity(bytes.len());
            escape_into(bytes, &mut out);
            out
        };
        self.fragment = None;
        self.query = self.query.take().map(|query| escaped(&unescape(&query)));
        self.host = escaped(&host::canonical(&self.host).to_ascii_lowercase());
        let path = unescape(&self.path);
        self.path = if self.host.is_empty() { escaped(&path) } else { escaped(&without_dots(&path)) };
    }

    /// The second step: what usually makes no difference is made to make none.
    pub fn fold(&mut self, form: Form) {
        self.host.make_ascii_lowercase();
        if form.strip_www {
            self.host = host::without_www(&self.host).to_vec();
        }
        let default_port = match self.scheme.to_ascii_lowercase().as_slice() {
            b"http" => 80,
            b"https" => 443,
            _ => 0,
        };
        if self.port == default_port {
            self.port = 0;
        }
        self.path.make_ascii_lowercase();
        query::path_without_session(&mut self.path);
        if self.path.len() > 1 && self.path.ends_with(b"/") {
            self.path.pop();
        }
        self.query = self.query.take().map(|mut query| {
            query = query::without_session(&query).unwrap_or(query);
            if form.lower_query {
                query.make_ascii_lowercase();
            }
            query::sort(&mut query);
            query
        });
        self.query.take_if(|query| query.is_empty());
    }

    /// The parts as a URL again.
    pub fn url(&self) -> String {
        let mut out = self.scheme.clone();
        out.push(b':');
        if !self.host.is_empty() {
            out.extend_from_slice(b"//");
            out.extend_from_slice(&self.host);
            self.port_into(&mut out);
        }
        self.tail_into(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    fn surt_into(&self, form: Form, out: &mut Vec<u8>) {
        if self.host.is_empty() {
            out.extend_from_slice(&self.scheme);
            out.push(b':');
        } else {
            if form.scheme {
                out.extend_from_slice(&self.scheme);
                out.extend_from_slice(b"://(");
            }
            for (i, label) in self.host.rsplit(|&b| b == b'.').enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(label);
            }
            self.port_into(out);
            if form.trailing_comma {
                out.push(b',');
            }
            out.push(b')');
        }
        self.tail_into(out);
    }

    fn port_into(&self, out: &mut Vec<u8>) {
        if self.port != 0 {
            out.push(b':');
            out.extend_from_slice(self.port.to_string().as_bytes());
        }
    }

    fn tail_into(&self, out: &mut Vec<u8>) {
        let query = self.query.as_deref();
        let something = query.is_some_and(|query| !query.is_empty()) || self.fragment.is_some();
        match self.path.as_slice() {
            b"" if something => out.push(b'/'),
            path => out.extend_from_slice(path),
        }
        match query {
            Some(b"") if self.fragment.is_none() => out.push(b'?'),
            None | Some(b"") => {}
            Some(query) => {
                out.push(b'?');
                out.extend_from_slice(query);
            }
        }
        if let Some(fragment) = &self.fragment {
            out.push(b'#');
            out.extend_from_slice(fragment);
        }
    }
}

/// White space of ASCII, the vertical tab included, gone at both ends.
fn trim(bytes: &[u8]) -> &[u8] {
    let blank = |b: &u8| matches!(b, b' ' | 0x09..=0x0d);
    let start = bytes.iter().position(|b| !blank(b)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|b| !blank(b)).map_or(start, |last| last + 1);
    &bytes[start..end]
}

/// Length of the scheme in front of a colon, if there is one.
fn scheme_length(url: &[u8]) -> Option<usize> {
    let colon = url.iter().position(|&b| !b.is_ascii_alphanumeric() && !matches!(b, b'+' | b'-' | b'.'))?;
    (url[colon] == b':' && url[0].is_ascii_alphabetic()).then_some(colon)
}

/// `http://https://example.org/` was meant as `https://example.org/`.
fn without_repeated_scheme(url: &[u8]) -> &[u8] {
    let inside = |url: &'_ [u8]| [&b"http://"[..], b"https://"].iter().find(|s| url.starts_with(s)).map(|s| s.len());
    let mut url = url;
    while let Some(length) = inside(url) {
        if inside(&url[length..]).is_none() {
            break;
        }
        url = &url[length..];
    }
    url
}

fn split_at_byte(bytes: &[u8], byte: u8) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(byte, bytes) {
        Some(at) => (&bytes[..at], Some(&bytes[at + 1..])),
        None => (bytes, None),
    }
}

/// Host and port of `user:password@host:port`; `None` when the port is no number of 16 bits. Colons at the end say nothing.
fn host_and_port(authority: &[u8]) -> Option<(&[u8], u16)> {
    let authority = &authority[..authority.iter().rposition(|&b| b != b':').map_or(0, |last| last + 1)];
    let address = &authority[memchr::memrchr(b'@', authority).map_or(0, |at| at + 1)..];
    let (host, port) = match memchr::memchr(b'[', address) {
        Some(open) => {
            let (host, behind) = split_at_byte(&address[open + 1..], b']');
            (host, behind.and_then(|behind| split_at_byte(behind, b':').1))
        }
        None => split_at_byte(address, b':'),
    };
    let port = match port {
        None | Some(b"") => 0,
        Some(digits) if digits.iter().all(u8::is_ascii_digit) => {
            digits.iter().try_fold(0u16, |n, d| n.checked_mul(10)?.checked_add(u16::from(d - b'0')))?
        }
        Some(_) => return None,
    };
    Some((host, port))
}

/// The path with `.` and `..` resolved and empty segments left out, except one at the end.
fn without_dots(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in path.split(|&b| b == b'/').skip(1) {
        match segment {
            b"." => {}
            // One `..` too many stays: the server decides what it means.
            b".." => {
                if kept.pop().is_none() {
                    kept.push(segment);
                }
            }
            _ => kept.push(segment),
        }
    }
    let mut out = Vec::with_capacity(path.len() + 1);
    out.push(b'/');
    if let Some((last, leading)) = kept.split_last() {
        for segment in leading.iter().filter(|segment| !segment.is_empty()) {
            out.extend_from_slice(segment);
            out.push(b'/');
        }
        out.extend_from_slice(last);
    }
    out
}
