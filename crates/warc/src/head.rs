//! The head of a record exactly as it stands, and what its fields say.

use crate::date;
use std::borrow::Cow;
use std::ops::Range;

/// Which format, and which version of it, a record is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// `WARC/major.minor`.
    Warc(u8, u8),
    /// An ARC record line of five fields.
    Arc1,
    /// An ARC record line of ten fields.
    Arc2,
    /// A version line that could not be read.
    Unknown,
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            // The drafts before 1.0 counted in hundredths.
            Version::Warc(0, minor) => write!(f, "WARC/0.{minor}"),
            Version::Warc(major, minor) => write!(f, "WARC/{major}.{minor}"),
            Version::Arc1 => write!(f, "ARC/1"),
            Version::Arc2 => write!(f, "ARC/2"),
            Version::Unknown => write!(f, "unknown"),
        }
    }
}

/// The type of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    /// Describes the records that follow.
    Warcinfo,
    /// A server's answer.
    Response,
    /// A file that no protocol wraps.
    Resource,
    /// What was sent.
    Request,
    /// About another record.
    Metadata,
    /// An abbreviated response: the payload stands elsewhere.
    Revisit,
    /// Another form of a record.
    Conversion,
    /// The next piece of a segmented record.
    Continuation,
    /// The `filedesc:` record at the beginning of an ARC file.
    ArcHeader,
    /// Not one of the standard's.
    Other,
}

impl RecordKind {
    /// The name in `WARC-Type`; `arc_header` and `other` have none there.
    pub fn name(self) -> &'static str {
        match self {
            RecordKind::Warcinfo => "warcinfo",
            RecordKind::Response => "response",
            RecordKind::Resource => "resource",
            RecordKind::Request => "request",
            RecordKind::Metadata => "metadata",
            RecordKind::Revisit => "revisit",
            RecordKind::Conversion => "conversion",
            RecordKind::Continuation => "continuation",
            RecordKind::ArcHeader => "arc_header",
            RecordKind::Other => "other",
        }
    }

    /// By the value of `WARC-Type`, in any case.
    pub fn from_name(name: &[u8]) -> RecordKind {
        use RecordKind::*;
        [Warcinfo, Response, Resource, Request, Metadata, Revisit, Conversion, Continuation]
            .into_iter()
            .find(|kind| name.eq_ignore_ascii_case(kind.name().as_bytes()))
            .unwrap_or(Other)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    name: Range<u32>,
    value: Range<u32>,
}

/// Deviations met while a head was parsed; the reader turns them into findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeadFaults {
    pub version_line: bool,
    pub line_feed_only: bool,
    pub line_without_colon: bool,
    pub characters: bool,
    pub unended: bool,
    pub arc_line: bool,
}

/// The head of one record: version, named fields in their order, as written.
#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    /// The raw head, then unfolded values and names that do not stand in it.
    text: Vec<u8>,
    raw_length: usize,
    version: Version,
    fields: Vec<Field>,
    pub(crate) faults: HeadFaults,
}

impl Clone for Head {
    fn clone(&self) -> Head {
        let mut head = Head::default();
        head.clone_from(self);
        head
    }

    /// Keeps the memory that the other head had.
    fn clone_from(&mut self, from: &Head) {
        let Head { text, raw_length, version, fields, faults } = from;
        self.text.clone_from(text);
        self.fields.clone_from(fields);
        (self.raw_length, self.version, self.faults) = (*raw_length, *version, *faults);
    }
}

impl Default for Head {
    fn default() -> Head {
        Head {
            text: Vec::new(),
            raw_length: 0,
            version: Version::Unknown,
            fields: Vec::new(),
            faults: HeadFaults::default(),
        }
    }
}

impl Head {
    /// Parses a WARC head: version line, fields, and the empty line if it is there. Never fails; deviations are noted and every byte is
    /// kept in [`raw`](Head::raw).
    pub fn parse_warc(raw: &[u8]) -> Head {
        let mut head = Head::default();
        head.read_warc(raw);
        head
    }

    pub(crate) fn read_warc(&mut self, raw: &[u8]) {
        self.start(raw);
        // Nearly every head is plain ASCII: one pass over all of it spares looking closely at each line.
        let odd = raw.iter().fold(false, |odd, &b| odd | ((b < b' ') & (b != b'\r') & (b != b'\n')) | (b >= 0x7f));
        let mut at = 0;
        let mut first = true;
        while at < raw.len() {
            let end = memchr::memchr(b'\n', &raw[at..]).map(|i| at + i);
            let line_end = end.unwrap_or(raw.len());
            let returns = raw[at..line_end].iter().rev().take_while(|b| **b == b'\r').count();
            let line = &raw[at..line_end - returns];
            self.faults.line_feed_only |= returns != 1 && end.is_some();
            if first {
                self.version = parse_version(line).unwrap_or(Version::Unknown);
                self.faults.version_line = !is_version_line(line);
                first = false;
            } else if line.is_empty() {
                return;
            } else if matches!(line[0], b' ' | b'\t') && !self.fields.is_empty() {
                self.unfold(at..at + line.len());
            } else {
                self.add_line(at, line, odd);
            }
            at = end.map_or(raw.len(), |e| e + 1);
        }
        self.faults.unended = true;
    }

    fn start(&mut self, raw: &[u8]) {
        self.text.clear();
        self.text.extend_from_slice(raw);
        self.raw_length = raw.len();
        self.fields.clear();
        self.version = Version::Unknown;
        self.faults = HeadFaults::default();
    }

    fn add_line(&mut self, at: usize, line: &[u8], odd: bool) {
        let Some(colon) = memchr::memchr(b':', line).filter(|&c| c > 0) else {
            self.faults.line_without_colon = true;
            return;
        };
        let name = trim(&line[..colon]);
        let value = trim(&line[colon + 1..]);
        if odd {
            let control = line.iter().any(|&b| (b < b' ' && b != b'\t') || b == 0x7f);
            self.faults.characters |= control || !name.is_ascii() || std::str::from_utf8(value).is_err();
        }
        self.faults.characters |= colon != name.len() || memchr::memchr2(b' ', b'\t', name).is_some();
        let value_at = at + colon + 1 + offset_in(&line[colon + 1..], value);
        let name_at = at + offset_in(line, name);
        self.fields.push(Field {
            name: name_at as u32..(name_at + name.len()) as u32,
            value: value_at as u32..(value_at + value.len()) as u32,
        });
    }

    /// A continuation line: the value becomes the two parts joined by one space, kept behind the raw head. A value that is continued again
    /// stands at the very end and grows there, so that a head of nothing but such lines costs no more than its bytes.
    fn unfold(&mut self, line: Range<usize>) {
        let Some(last) = self.fields.last() else { return };
        let value = last.value.start as usize..last.value.end as usize;
        let mut kept = last.value.start;
        if value.start < self.raw_length || value.end != self.text.len() {
            kept = self.text.len() as u32;
            self.text.extend_from_within(value.clone());
        }
        let more = trim(&self.text[line.clone()]);
        let more_at = line.start + offset_in(&self.text[line], more);
        let more = more_at..more_at + more.len();
        if !value.is_empty() && !more.is_empty() {
            self.text.push(b' ');
        }
        self.text.extend_from_within(more);
        self.fields.last_mut().expect("checked").value = kept..self.text.len() as u32;
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<u32> {
        let from = self.text.len();
        self.text.extend_from_slice(bytes);
        from as u32..self.text.len() as u32
    }

    pub(crate) fn read_arc(&mut self, line: &crate::arc::Line<'_>, raw: &[u8]) {
        self.start(raw);
        self.version = line.version;
        self.faults.arc_line = line.deviates;
        for (name, value) in line.fields() {
            let name = self.keep(name.as_bytes());
            let value = self.keep(value);
            self.fields.push(Field { name, value });
        }
    }

    /// The bytes as they stand in the file, the empty line included.
    pub fn raw(&self) -> &[u8] {
        &self.text[..self.raw_length]
    }

    /// Whether an empty line ends it, as it should.
    pub fn is_ended(&self) -> bool {
        !self.faults.unended
    }

    /// Format and version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether this is the head of an ARC record.
    pub fn is_arc(&self) -> bool {
        matches!(self.version, Version::Arc1 | Version::Arc2)
    }

    /// Names and values in their order; names as written, values trimmed and unfolded.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter().map(|f| (self.slice(&f.name), self.slice(&f.value)))
    }

    fn slice(&self, range: &Range<u32>) -> &[u8] {
        &self.text[range.start as usize..range.end as usize]
    }

    /// The first value of a field, by its name in any case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.fields.iter().find(|f| self.is_named(f, name)).map(|f| self.slice(&f.value))
    }

    /// All values of a field.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.fields.iter().filter(move |f| self.is_named(f, name)).map(|f| self.slice(&f.value))
    }

    fn is_named(&self, field: &Field, name: &str) -> bool {
        (field.name.end - field.name.start) as usize == name.len()
            && self.slice(&field.name).eq_ignore_ascii_case(name.as_bytes())
    }

    /// The first value of a field as text; bytes that are not UTF-8 are replaced.
    pub fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.get(name).map(String::from_utf8_lossy)
    }

    /// The record type.
    pub fn kind(&self) -> RecordKind {
        match self.version {
            Version::Arc1 | Version::Arc2 => {
                if self.get("URL").is_some_and(|url| url.starts_with(b"filedesc:")) {
                    RecordKind::ArcHeader
                } else {
                    RecordKind::Response
                }
            }
            _ => self.get("WARC-Type").map_or(RecordKind::Other, RecordKind::from_name),
        }
    }

    /// The declared length of the block, if it is a number.
    pub fn content_length(&self) -> Option<u64> {
        let value = self.get(if self.is_arc() { "Archive-length" } else { "Content-Length" })?;
        std::str::from_utf8(value).ok().filter(|v| v.bytes().all(|b| b.is_ascii_digit())).and_then(|v| v.parse().ok())
    }

    /// The target as written, without the angle brackets that some writers put around it.
    pub fn target_uri(&self) -> Option<&[u8]> {
        let value = self.get(if self.is_arc() { "URL" } else { "WARC-Target-URI" })?;
        let inner = value.strip_prefix(b"<").and_then(|v| v.strip_suffix(b">")).unwrap_or(value);
        (!inner.is_empty()).then_some(inner)
    }

    /// The date as written.
    pub fn date_text(&self) -> Option<&[u8]> {
        self.get(if self.is_arc() { "Archive-date" } else { "WARC-Date" })
    }

    /// The date in milliseconds since 1970, read as leniently as archives in the field need.
    pub fn date_ms(&self) -> Option<i64> {
        date::parse_ms(self.date_text()?)
    }

    /// The record's identifier without angle brackets.
    pub fn record_id(&self) -> Option<&[u8]> {
        let value = self.get("WARC-Record-ID")?;
        Some(value.strip_prefix(b"<").and_then(|v| v.strip_suffix(b">")).unwrap_or(value))
    }
}

fn offset_in(outer: &[u8], inner: &[u8]) -> usize {
    inner.as_ptr() as usize - outer.as_ptr() as usize
}

/// Without the white space around it.
pub(crate) fn trim(bytes: &[u8]) -> &[u8] {
    bytes.trim_ascii()
}

/// `WARC/x.y` with nothing else on the line, of a version that exists; in any case, as literals of the standard's grammar are.
fn is_version_line(line: &[u8]) -> bool {
    [&b"WARC/0.17"[..], b"WARC/0.18", b"WARC/1.0", b"WARC/1.1"].iter().any(|known| line.eq_ignore_ascii_case(known))
}

fn parse_version(line: &[u8]) -> Option<Version> {
    let rest = line.get(5..).filter(|_| line[..5].eq_ignore_ascii_case(b"WARC/"))?;
    let text = std::str::from_utf8(trim(rest)).ok()?;
    let mut parts = text.split('.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?.parse().ok()?;
    Some(Version::Warc(major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::HEAD_BYTES_MAX;

    #[test]
    fn a_value_continued_on_many_lines_is_kept_once() {
        let raw = b"WARC/1.1\r\nA: x\r\nB:\r\n \r\n\tb\r\n  c \r\nC: d\r\n e\r\n\r\n";
        let head = Head::parse_warc(raw);
        let fields: Vec<_> = head.fields().collect();
        assert_eq!(fields, [(&b"A"[..], &b"x"[..]), (b"B", b"b c"), (b"C", b"d e")]);
        for line in [" a\r\n", " \n", "\ta\n"] {
            let raw = format!("WARC/1.1\r\nA: x\r\n{}\r\n", line.repeat(HEAD_BYTES_MAX / line.len()));
            let head = Head::parse_warc(raw.as_bytes());
            assert!(head.text.len() <= 2 * raw.len(), "{} bytes for {}", head.text.len(), raw.len());
        }
    }
}
