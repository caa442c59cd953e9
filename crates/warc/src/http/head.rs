//! The head of a message: first line and fields, in the order, case and number in which they were sent.

use std::borrow::Cow;

use super::limits::{HTTP_HEAD_BYTES_MAX, LEADING_BYTES_MAX, METHOD_BYTES_MAX, PROTOCOL_BYTES_MAX, SNIFF_BYTES};
use super::lines::{FieldSpan, Lines, Scan, is_blank, scan, trim};
use super::{Deviation, Deviations, Rule};

/// What a look at the bytes at hand gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed {
    /// The head is whole; the body begins at this offset of the bytes given.
    Complete {
        /// Offset of the first body byte.
        body: usize,
    },
    /// The head may go on: call again with more bytes (the old ones included).
    NeedMore,
    /// No HTTP/1 head. For a response that is what HTTP/0.9 looks like: everything is body.
    NotHttp,
}

/// A parsed head. Make one and use it again for message after message: it then allocates nothing.
#[derive(Debug, Clone, Default)]
pub struct Head {
    /// All bytes before the body.
    raw: Vec<u8>,
    line: (usize, usize),
    /// Status line: protocol, status, reason. Request line: method, target, protocol.
    parts: [(usize, usize); 3],
    version: Option<(u8, u8)>,
    status: Option<u16>,
    fields: Vec<FieldSpan>,
    deviations: Deviations,
}

impl Head {
    /// An empty head.
    pub fn new() -> Head {
        Head::default()
    }

    /// Reads the head of a response at the start of `bytes`. `ended`: nothing follows these bytes.
    pub fn parse_response(&mut self, bytes: &[u8], ended: bool) -> Parsed {
        self.clear();
        if !ended && bytes.len() < SNIFF_BYTES {
            return Parsed::NeedMore;
        }
        let Some(mut start) = find_status_line(bytes) else { return Parsed::NotHttp };
        if start > 0 {
            self.deviations.note(Rule::LeadingBytes, 0);
        }
        loop {
            let lines = match scan(bytes, start, ended, &mut self.fields, &mut self.deviations) {
                Scan::Complete(lines) => lines,
                Scan::NeedMore => return Parsed::NeedMore,
                Scan::Endless => return Parsed::NotHttp,
            };
            self.read_status_line(bytes, &lines);
            let interim = matches!(self.status, Some(status) if (100..200).contains(&status) && status != 101);
            let rest = &bytes[lines.end..];
            if interim && lines.end < HTTP_HEAD_BYTES_MAX {
                if !ended && rest.len() < SNIFF_BYTES {
                    return Parsed::NeedMore;
                }
                if rest.starts_with(b"HTTP/") {
                    self.deviations.note(Rule::Interim, start);
                    self.fields.clear();
                    start = lines.end;
                    continue;
                }
            }
            return self.complete(bytes, &lines);
        }
    }

    /// Reads the head of a request at the start of `bytes`. `ended`: nothing follows these bytes.
    pub fn parse_request(&mut self, bytes: &[u8], ended: bool) -> Parsed {
        self.clear();
        let method =
            bytes.iter().take(METHOD_BYTES_MAX + 1).position(|&b| !(b.is_ascii_alphanumeric() || b"-_".contains(&b)));
        match method {
            Some(length) if length > 0 && is_blank(bytes[length]) => {}
            None if !ended && bytes.len() <= METHOD_BYTES_MAX => return Parsed::NeedMore,
            _ => return Parsed::NotHttp,
        }
        let lines = match scan(bytes, 0, ended, &mut self.fields, &mut self.deviations) {
            Scan::Complete(lines) => lines,
            Scan::NeedMore => return Parsed::NeedMore,
            Scan::Endless => return Parsed::NotHttp,
        };
        if !self.read_request_line(bytes, &lines) {
            self.clear();
            return Parsed::NotHttp;
        }
        self.complete(bytes, &lines)
    }

    fn clear(&mut self) {
        self.raw.clear();
        self.fields.clear();
        self.deviations.clear();
        self.line = (0, 0);
        self.parts = [(0, 0); 3];
        self.version = None;
        self.status = None;
    }

    fn complete(&mut self, bytes: &[u8], lines: &Lines) -> Parsed {
        self.raw.extend_from_slice(&bytes[..lines.end]);
        self.line = lines.first;
        let mut content_type: Option<&[u8]> = None;
        let mut content_length: Option<&[u8]> = None;
        for field in &self.fields {
            let name = &self.raw[field.name.0 as usize..field.name.1 as usize];
            let value = &self.raw[field.value.0 as usize..field.value.1 as usize];
            let (first, rule) = match name.len() {
                12 if name.eq_ignore_ascii_case(b"content-type") => (&mut content_type, Rule::ContentTypeRepeated),
                14 if name.eq_ignore_ascii_case(b"content-length") => (&mut content_length, Rule::ContentLengthInvalid),
                _ => continue,
            };
            if *first.get_or_insert(value) != value {
                self.deviations.note(rule, field.line as usize);
            }
        }
        if content_length.is_some() && self.content_length().is_none() {
            let offset = self.find("content-length").map_or(0, |field| field.line);
            self.deviations.note(Rule::ContentLengthInvalid, offset as usize);
        }
        Parsed::Complete { body: lines.end }
    }

    /// `HTTP/1.1 200 OK`, and whatever came instead.
    fn read_status_line(&mut self, bytes: &[u8], lines: &Lines) {
        let (from, to) = lines.first;
        let separates = |b: u8| is_blank(b) || (lines.first_folded && matches!(b, b'\r' | b'\n'));
        let word = |mut at: usize| {
            while at < to && separates(bytes[at]) {
                at += 1;
            }
            let end = bytes[at..to].iter().position(|&b| separates(b)).map_or(to, |length| at + length);
            (at, end)
        };
        if let Some(found) = memchr::memchr2(0, b'\r', &bytes[from..to])
            && !lines.first_folded
        {
            self.deviations.note(if bytes[from + found] == 0 { Rule::Nul } else { Rule::BareCr }, from + found);
        }
        let protocol = word(from);
        let well_formed = read_version(&bytes[protocol.0..protocol.1]);
        self.version = well_formed;
        if well_formed.is_none() {
            self.deviations.note(Rule::Version, protocol.0);
        }
        let mut status = word(protocol.1);
        let is_number = |(from, to): (usize, usize)| from < to && bytes[from..to].iter().all(u8::is_ascii_digit);
        if well_formed.is_none() || !is_number(status) {
            // `HTTP/1. 1 200 OK`, `HTTP/1 .1 200 OK`: in a broken line the status is the next word of three digits.
            let next = word(status.1);
            status = [status, next].into_iter().find(|w| w.1 - w.0 == 3 && is_number(*w)).unwrap_or(status);
        }
        let digits_from =
            bytes[status.0..status.1].iter().position(|b| b.is_ascii_alphanumeric()).unwrap_or(0) + status.0;
        let digits = bytes[digits_from..status.1].iter().take_while(|b| b.is_ascii_digit()).count();
        let number = std::str::from_utf8(&bytes[digits_from..digits_from + digits]).ok().and_then(|n| n.parse().ok());
        self.status = number.filter(|&n: &u16| n <= 999);
        if self.status.is_none() || digits_from != status.0 || digits_from + digits != status.1 {
            self.deviations.note(Rule::Status, status.0);
        }
        let reason_from = if self.status.is_some() { digits_from + digits } else { status.0 };
        self.parts = [protocol, status, trim(bytes, reason_from, to)];
    }

    /// `GET /path HTTP/1.1`. False when this is no request line at all.
    fn read_request_line(&mut self, bytes: &[u8], lines: &Lines) -> bool {
        let (from, to) = lines.first;
        let line = &bytes[from..to];
        let method = line.iter().position(|&b| is_blank(b)).unwrap_or(line.len());
        let protocol = memchr::memmem::rfind(line, b" HTTP/").filter(|&at| at >= method);
        let target = trim(bytes, from + method, from + protocol.unwrap_or(line.len()));
        let protocol = protocol.map_or((to, to), |at| trim(bytes, from + at, to));
        self.version = read_version(&bytes[protocol.0..protocol.1]);
        self.parts = [(from, from + method), target, protocol];
        if self.version.is_none() {
            let known: [&[u8]; 9] =
                [b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"TRACE", b"CONNECT"];
            if protocol.0 == protocol.1 && !known.contains(&&line[..method]) {
                return false;
            }
            self.deviations.note(Rule::Version, protocol.0);
        }
        if target.0 == target.1 || bytes[target.0..target.1].iter().any(|&b| is_blank(b)) {
            self.deviations.note(Rule::RequestLine, target.0);
        }
        true
    }

    /// Every byte before the body, exactly as it stood (with interim responses and stray bytes, where there were any).
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// The status or request line without its line end.
    pub fn first_line(&self) -> &[u8] {
        self.span(self.line)
    }

    /// Major and minor version; `None` when missing or malformed.
    pub fn version(&self) -> Option<(u8, u8)> {
        self.version
    }

    /// The status, 0 to 999. `None` where the line has no such number; browsers then assume 200.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// The word that stands where the status should, as index writers copy it.
    pub fn status_word(&self) -> &[u8] {
        self.span(self.parts[1])
    }

    /// What follows the status, often empty.
    pub fn reason(&self) -> &[u8] {
        self.span(self.parts[2])
    }

    /// The method of a request.
    pub fn method(&self) -> &[u8] {
        self.span(self.parts[0])
    }

    /// The target of a request.
    pub fn target(&self) -> &[u8] {
        self.span(self.parts[1])
    }

    /// The fields in order. Lines that are no fields are left out; [`lines`](Self::lines) has them.
    pub fn fields(&self) -> Fields<'_> {
        Fields { head: self, spans: self.fields.iter(), all: false }
    }

    /// All lines after the first, also those without a colon or a name.
    pub fn lines(&self) -> Fields<'_> {
        Fields { head: self, spans: self.fields.iter(), all: true }
    }

    /// The value of the first field of that name, in any case.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.find(name).map(|f| self.value(f))
    }

    /// The values of all fields of that name, in order.
    pub fn headers<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.fields.iter().filter(move |f| self.is_named(f, name)).map(|f| self.value(f))
    }

    /// The comma-separated words of all fields of that name, lower-cased, in order.
    pub(crate) fn words<'a>(&'a self, name: &'a str) -> impl Iterator<Item = String> + 'a {
        self.headers(name)
            .flat_map(|value| value.split(|&b| b == b','))
            .map(|word| word.split(|&b| b == b';').next().unwrap_or(word))
            .map(|word| String::from_utf8_lossy(word).trim().to_ascii_lowercase())
            .filter(|word| !word.is_empty())
    }

    /// Content-Type as it stands (the first, where it is repeated).
    pub fn content_type(&self) -> Option<&[u8]> {
        self.header("content-type")
    }

    /// The media type as it stands, up to the first semicolon or white space: the form in which CDXJ files carry it.
    pub fn media_type(&self) -> Option<&[u8]> {
        let value = self.content_type()?;
        let end = value.iter().position(|&b| b == b';' || b.is_ascii_whitespace() || b == 0x0b).unwrap_or(value.len());
        Some(&value[..end])
    }

    /// The media type in lower case, without parameters. `None` when there is none or it is empty.
    pub fn mime(&self) -> Option<String> {
        let text = String::from_utf8_lossy(self.media_type()?).to_ascii_lowercase();
        (!text.is_empty()).then_some(text)
    }

    /// Content-Length, where it is a number and all repetitions agree.
    pub fn content_length(&self) -> Option<u64> {
        let mut lengths = self.headers("content-length").flat_map(|value| value.split(|&b| b == b','));
        let number =
            |bytes: &[u8]| std::str::from_utf8(bytes.trim_ascii()).ok().and_then(|text| text.parse::<u64>().ok());
        let first = number(lengths.next()?)?;
        lengths.all(|other| number(other) == Some(first)).then_some(first)
    }

    /// The transfer encoding ends with, or contains, `chunked`.
    pub fn is_chunked(&self) -> bool {
        self.words("transfer-encoding").any(|word| word == "chunked")
    }

    /// What is odd about this head, each rule once, with the offset of its first occurrence in the message.
    pub fn deviations(&self) -> &[Deviation] {
        self.deviations.as_slice()
    }

    fn find(&self, name: &str) -> Option<&FieldSpan> {
        self.fields.iter().find(|f| self.is_named(f, name))
    }

    /// Most names have another length: those are not looked at.
    fn is_named(&self, f: &FieldSpan, name: &str) -> bool {
        (f.name.1 - f.name.0) as usize == name.len()
            && f.name.0 < f.name.1
            && self.span((f.name.0 as usize, f.name.1 as usize)).eq_ignore_ascii_case(name.as_bytes())
    }

    fn value(&self, f: &FieldSpan) -> &[u8] {
        self.span((f.value.0 as usize, f.value.1 as usize))
    }

    fn span(&self, (from, to): (usize, usize)) -> &[u8] {
        &self.raw[from..to]
    }
}

/// Where the status line begins: at once or after a few stray bytes. `None`: this is not a response.
fn find_status_line(bytes: &[u8]) -> Option<usize> {
    for at in 0..=LEADING_BYTES_MAX.min(bytes.len()) {
        let rest = &bytes[at..];
        let (Some(word), after) = (rest.get(..4), rest.get(4)) else {
            return (at == 0 && is_other_protocol(rest)).then_some(0);
        };
        // `https://…` and `http://…` begin texts, not responses.
        if word.eq_ignore_ascii_case(b"HTTP")
            && !after.is_some_and(u8::is_ascii_alphanumeric)
            && !rest[4..].starts_with(b"://")
        {
            return Some(at);
        }
        if at == 0 && is_other_protocol(rest) {
            return Some(0);
        }
        if rest[0].is_ascii_alphanumeric() {
            return None;
        }
    }
    None
}

/// `ICY 200 OK` of music servers, `NCSA/1.5.1 200 OK`: a word other than HTTP, then a status of three digits.
fn is_other_protocol(bytes: &[u8]) -> bool {
    let Some(space) = bytes.iter().take(PROTOCOL_BYTES_MAX + 1).position(|&b| b == b' ') else { return false };
    let word = &bytes[..space];
    let named = word == b"ICY" || {
        let mut parts = word.splitn(2, |&b| b == b'/');
        let (name, version) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        !name.is_empty()
            && name.iter().all(u8::is_ascii_uppercase)
            && version.first().is_some_and(u8::is_ascii_digit)
            && version.iter().all(|b| b.is_ascii_digit() || *b == b'.')
    };
    let status = &bytes[space + 1..];
    named
        && status.len() >= 3
        && status[..3].iter().all(u8::is_ascii_digit)
        && status.get(3).is_none_or(|b| matches!(b, b' ' | b'\r' | b'\n'))
}

/// `HTTP/1.1`, `HTTP/2`.
fn read_version(protocol: &[u8]) -> Option<(u8, u8)> {
    let digits = protocol.get(..5).filter(|p| p.eq_ignore_ascii_case(b"HTTP/")).map(|_| &protocol[5..])?;
    match digits {
        [major @ b'0'..=b'9'] => Some((major - b'0', 0)),
        [major @ b'0'..=b'9', b'.', minor @ b'0'..=b'9'] => Some((major - b'0', minor - b'0')),
        _ => None,
    }
}

/// One field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// Name as sent, without white space around it.
    pub name: &'a [u8],
    /// Value as sent, without white space around it; line ends of a folded value are still inside.
    pub value: &'a [u8],
    /// The line or lines as sent, without the last line end.
    pub line: &'a [u8],
    /// Where the line begins in the message.
    pub offset: usize,
}

impl<'a> Field<'a> {
    /// The value on one line: each fold becomes one space.
    pub fn unfolded(&self) -> Cow<'a, [u8]> {
        if memchr::memchr(b'\n', self.value).is_none() {
            return Cow::Borrowed(self.value);
        }
        let mut out = Vec::with_capacity(self.value.len());
        for (number, line) in self.value.split(|&b| b == b'\n').enumerate() {
            let (from, to) = trim(line, 0, line.len());
            if from < to {
                if number > 0 && !out.is_empty() {
                    out.push(b' ');
                }
                out.extend_from_slice(&line[from..to]);
            }
        }
        Cow::Owned(out)
    }
}

/// Iterator over the fields of a head.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    head: &'a Head,
    spans: std::slice::Iter<'a, FieldSpan>,
    all: bool,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let span = self.spans.find(|s| self.all || s.name.0 < s.name.1)?;
        let part = |from: u32, to: u32| self.head.span((from as usize, to as usize));
        Some(Field {
            name: part(span.name.0, span.name.1),
            value: part(span.value.0, span.value.1),
            line: part(span.line, span.end),
            offset: span.line as usize,
        })
    }
}
