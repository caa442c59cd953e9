//! CDXJ: one line a capture, `key time {"url": …}`, as `cdxj-indexer` writes it and every replay tool reads it.
//!
//! ```text
//!   org,example)/ 20200102030405 {"url": "http://example.org/", "mime": "text/html", "status": "200", "digest": "sha1:…",
//!                                 "length": "1043", "offset": "333", "filename": "example.warc.gz"}
//! ```
//! Lines are made from the record, not from the captures view, so that a file can be indexed without an archive, and so that every
//! field is byte for byte what the field's own indexer gives: the digest as the record declares it (else SHA-1 over the body as it
//! stands), the media type as sent up to the first `;` or space, the status as sent.

use std::borrow::Cow;
use std::io::{self, BufRead};
use std::path::Path;

use serde_json::Value;
use skep_warc::digest::{Algorithm, Hasher};
use skep_warc::{Options, Part, Reader, Record, RecordKind, date, read_parts};

use crate::capture::{Capture, CaptureKind, FLAG_HTTP, Position};
use crate::limits::{CDXJ_LINE_BYTES_MAX, HTTP_HEAD_BYTES_MAX};

/// What an index says of one record, apart from where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// The SURT, or `-` for a record without target.
    pub key: String,
    /// 14 digits.
    pub time: String,
    /// The target as the record has it.
    pub url: Option<String>,
    /// The media type as sent.
    pub mime: Option<String>,
    /// The status as sent.
    pub status: Option<String>,
    /// The payload digest as declared or computed.
    pub digest: Option<String>,
}

/// Stands for the key of a record that is about no URL.
const NO_KEY: &str = "-";

/// Indexes a file: sorted lines in `out`, one after another. `findings` is told what is wrong with the file, `progress` how many of its
/// bytes were read. The file is skimmed: a body whose digest the record declares is not inflated where its end is certain.
pub fn index_file(
    path: &Path,
    filename: &str,
    threads: usize,
    out: &mut Vec<String>,
    findings: &mut Vec<skep_warc::Finding>,
    progress: &(dyn Fn(u64) + Sync),
) -> io::Result<()> {
    let read = |reader: &mut Reader, part: Part| {
        let (mut lines, mut line) = (Vec::new(), Line::default());
        let mut seen = part.start;
        while let Some(mut record) = reader.next()? {
            let (offset, head_bytes) = (record.offset(), record.head().raw().len() as u64);
            let plain = record.is_plain();
            let is_indexed = line.become_of(&mut record)?;
            let end = record.finish()?;
            if is_indexed {
                // In a plain file the line ends between records belong to none.
                let length = if plain { head_bytes + end.block_bytes } else { end.length };
                lines.push(line.text(offset, length, filename));
            }
            progress((offset + end.length).saturating_sub(seen));
            seen = offset + end.length;
        }
        Ok((lines, reader.take_findings()))
    };
    read_parts(path, threads, &Options::skim(), read, |(lines, found)| {
        out.extend(lines);
        findings.extend(found);
        Ok(())
    })
}

/// The line of a record; `None` for types that are not indexed, for records without date, and for exchanges without target.
pub fn line_of(record: &mut Record<'_>) -> io::Result<Option<Line>> {
    let mut line = Line::default();
    Ok(line.become_of(record)?.then_some(line))
}

impl Line {
    /// As [`line_of`], in the room of another record's line. False where there is none.
    fn become_of(&mut self, record: &mut Record<'_>) -> io::Result<bool> {
        let head = record.head();
        let kind = head.kind();
        let wanted = match kind {
            RecordKind::Response | RecordKind::Revisit => true,
            RecordKind::Resource | RecordKind::Metadata => head.get("Content-Type") != Some(b"application/warc-fields"),
            _ => false,
        };
        let exchanged = matches!(kind, RecordKind::Response | RecordKind::Revisit);
        let target = head.target_uri();
        if !wanted || (exchanged && target.is_none()) {
            return Ok(false);
        }
        let Some(time) = head.date_ms() else { return Ok(false) };
        let url = target.map(|url| match url.contains(&b' ') {
            true => Cow::Owned(decode(url).replace(' ', "%20")),
            false => decode(url),
        });
        self.key = url.as_deref().map_or_else(|| NO_KEY.to_owned(), skep_url::surt::key);
        let http = exchanged && url.as_deref().is_some_and(|u| u.starts_with("http:") || u.starts_with("https:"));
        put(&mut self.url, url);
        put(&mut self.digest, head.get("WARC-Payload-Digest").filter(|digest| !digest.is_empty()).map(decode));
        self.time = date::timestamp14(time);
        match kind {
            RecordKind::Revisit => put(&mut self.mime, Some("warc/revisit".into())),
            RecordKind::Response => self.mime = None,
            _ if head.is_arc() => self.mime = None,
            _ => self.mime = head.get("Content-Type").map(|sent| media_type(&decode(sent)).to_owned()),
        }
        self.status = None;
        if http {
            let message = read_http(record)?;
            self.status = message.status;
            if kind == RecordKind::Response {
                self.mime = message.content_type;
            }
        }
        if self.digest.is_none() && kind != RecordKind::Revisit {
            self.digest = Some(digest_of(record)?);
        }
        Ok(true)
    }
}

fn put(field: &mut Option<String>, value: Option<Cow<'_, str>>) {
    match (value, field) {
        (Some(value), Some(field)) => {
            field.clear();
            field.push_str(&value);
        }
        (value, field) => *field = value.map(Cow::into_owned),
    }
}

impl Line {
    /// The whole line, without its line end.
    pub fn text(&self, offset: u64, length: u64, filename: &str) -> String {
        // Most lines need no more room than this: nothing is escaped.
        let fields = [&self.url, &self.mime, &self.status, &self.digest];
        let fields_bytes: usize = fields.into_iter().flatten().map(|field| field.len() + 16).sum();
        let mut out =
            String::with_capacity(self.key.len() + self.time.len() + fields_bytes + filename.len() + LINE_REST_BYTES);
        out.push_str(&self.key);
        out.push(' ');
        out.push_str(&self.time);
        out.push_str(" {");
        let fields = [("url", &self.url), ("mime", &self.mime), ("status", &self.status), ("digest", &self.digest)];
        for (name, value) in fields.into_iter().filter_map(|(name, value)| value.as_ref().map(|value| (name, value))) {
            out.push('"');
            out.push_str(name);
            out.push_str("\": ");
            quoted(&mut out, value);
            out.push_str(", ");
        }
        use std::fmt::Write;
        let _ = write!(out, "\"length\": \"{length}\", \"offset\": \"{offset}\", \"filename\": ");
        quoted(&mut out, filename);
        out.push('}');
        out
    }
}

/// Bytes of a line beside its key, time, fields and file name: names, marks, length and offset.
const LINE_REST_BYTES: usize = 96;

/// A string with everything but ASCII escaped, as Python's `json` writes it.
pub fn quoted(out: &mut String, text: &str) {
    use std::fmt::Write;
    out.push('"');
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\') {
        out.push_str(text);
        out.push('"');
        return;
    }
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

/// UTF-8 where it is, else every byte is a character.
fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|&b| char::from(b)).collect()),
    }
}

fn media_type(value: &str) -> &str {
    value.split(|c: char| c == ';' || is_space(c)).next().unwrap_or_default()
}

/// What Python takes for white space: Unicode's, and the four separators of ASCII.
fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

#[derive(Default)]
struct Message {
    status: Option<String>,
    content_type: Option<String>,
    fields: usize,
    ended: bool,
}

/// Status and media type as the field's indexer reads them: the first line is taken for a status line whatever it is, lines are
/// fields up to the first that is blank. Leaves the record at the beginning of the body.
fn read_http(record: &mut Record<'_>) -> io::Result<Message> {
    let mut message = Message::default();
    let mut total = 0;
    while total < HTTP_HEAD_BYTES_MAX && !message.ended {
        let here = record.fill_buf()?;
        let read = match memchr::memchr(b'\n', here) {
            Some(end) => {
                message.line(&here[..=end]);
                record.consume(end + 1);
                end + 1
            }
            None => {
                let line = read_line(record)?;
                if line.is_empty() && message.status.is_none() {
                    return Ok(message);
                }
                message.line(&line);
                line.len()
            }
        };
        total += read;
    }
    if message.fields == 0 && message.status.as_deref() == Some("") {
        message.status = None;
    }
    Ok(message)
}

impl Message {
    fn line(&mut self, line: &[u8]) {
        let line = trimmed(line);
        if self.status.is_none() {
            let text = decode(line);
            let rest = text.split_once(' ').map_or("", |(_, rest)| rest.trim_matches(is_space));
            self.status = Some(rest.split(' ').next().unwrap_or_default().to_owned());
        } else if let Some(colon) = memchr::memchr(b':', line) {
            self.fields += 1;
            let (name, value) = (&line[..colon], &line[colon + 1..]);
            if self.content_type.is_none() && is_content_type(name) {
                let value = decode(value);
                self.content_type = Some(media_type(value.trim_start_matches(is_space)).to_owned());
            }
        }
        self.ended = line.is_empty();
    }
}

fn is_content_type(name: &[u8]) -> bool {
    let spaces = name.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    name[..name.len() - spaces].eq_ignore_ascii_case(b"content-type")
}

/// A line without the white space at its end.
fn trimmed(line: &[u8]) -> &[u8] {
    let is_ascii_space = |byte: &&u8| matches!(byte, b'\t'..=b'\r' | b' ' | 0x1c..=0x1f);
    let ascii = line.iter().rev().take_while(is_ascii_space).count();
    let line = &line[..line.len() - ascii];
    match line.last() {
        Some(last) if !last.is_ascii() => match std::str::from_utf8(line) {
            Ok(text) => text.trim_end_matches(is_space).as_bytes(),
            // Every byte is a character: those above ASCII that are spaces.
            Err(_) => {
                let spaces = line.iter().rev().take_while(|byte| is_space(char::from(**byte))).count();
                &line[..line.len() - spaces]
            }
        },
        _ => line,
    }
}

/// A line of which there may be more than is at hand.
fn read_line(record: &mut Record<'_>) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let here = record.fill_buf()?;
        if here.is_empty() || line.len() > HTTP_HEAD_BYTES_MAX {
            return Ok(line);
        }
        let end = memchr::memchr(b'\n', here);
        let count = end.map_or(here.len(), |at| at + 1);
        line.extend_from_slice(&here[..count]);
        record.consume(count);
        if end.is_some() {
            return Ok(line);
        }
    }
}

fn digest_of(record: &mut Record<'_>) -> io::Result<String> {
    let mut hasher = Hasher::new(Algorithm::Sha1);
    loop {
        let here = record.fill_buf()?;
        let count = here.len();
        if count == 0 {
            return Ok(hasher.finish().to_string());
        }
        hasher.update(here);
        record.consume(count);
    }
}

/// What a line of somebody's CDXJ says: the capture, and the name of the file that holds its record.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// With the position of nothing yet.
    pub capture: Capture,
    /// As the index names it.
    pub filename: String,
}

/// Reads the next line, its end included, and says how many bytes it has; 0 at the end. Of one that is longer than lines may be, no
/// more is kept than shows that it is.
pub fn read_bounded_line(from: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let mut bytes = 0;
    loop {
        let here = match from.fill_buf() {
            Ok(here) => here,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let end = memchr::memchr(b'\n', here);
        let count = end.map_or(here.len(), |at| at + 1);
        let room = (CDXJ_LINE_BYTES_MAX + 1).saturating_sub(line.len());
        line.extend_from_slice(&here[..count.min(room)]);
        from.consume(count);
        bytes += count as u64;
        if end.is_some() || count == 0 {
            return Ok(bytes);
        }
    }
}

/// Reads a line of a CDXJ index. `Ok(None)` for lines that are no captures (headers, blank lines, records about no URL); an error says
/// what is wrong.
pub fn parse_line(line: &str) -> Result<Option<Imported>, String> {
    let line = line.trim_end_matches(['\r', '\n']);
    if line.trim().is_empty() || line.starts_with('!') || line.starts_with(" CDX") {
        return Ok(None);
    }
    if line.len() > CDXJ_LINE_BYTES_MAX {
        return Err(format!("the line is longer than {CDXJ_LINE_BYTES_MAX} bytes"));
    }
    let mut parts = line.splitn(3, ' ');
    let (Some(key), Some(time), Some(json)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("not `key time {…}`".to_owned());
    };
    let time_ms = date::parse_ms(time.as_bytes()).ok_or_else(|| format!("{time} is not a time"))?;
    let fields: Value = serde_json::from_str(json).map_err(|error| format!("not JSON: {error}"))?;
    let text = |name: &str| match fields.get(name) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let number = |name: &str| text(name).and_then(|t| t.parse::<u64>().ok());
    let url = match text("url").or_else(|| text("original")) {
        None if key == NO_KEY => return Ok(None),
        url => url.unwrap_or_else(|| key.to_owned()),
    };
    let filename = text("filename").ok_or("no filename")?;
    let offset = number("offset").ok_or("no offset")?;
    let mime = text("mime").or_else(|| text("mimetype")).unwrap_or_default();
    let status = text("status").or_else(|| text("statuscode")).and_then(|s| s.parse().ok()).unwrap_or(0);
    let kind = match mime.as_str() {
        "warc/revisit" => CaptureKind::Revisit,
        _ if status == 0 => CaptureKind::Resource,
        _ => CaptureKind::Response,
    };
    let capture = Capture {
        key: skep_url::Key::of(&url),
        time_ms,
        position: Position::default(),
        kind,
        status,
        mime: if kind == CaptureKind::Revisit { String::new() } else { mime },
        digest: text("digest").and_then(|d| d.parse().ok()),
        offset,
        length: number("length").unwrap_or(0),
        flags: if status > 0 { FLAG_HTTP } else { 0 },
        url,
    };
    Ok(Some(Imported { capture, filename }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_end_takes_no_more_room_than_a_line_may() {
        let long = vec![b'a'; 3 * CDXJ_LINE_BYTES_MAX];
        let mut from = io::Cursor::new([b"one\n".as_slice(), &long, b"\ntwo"].concat());
        let mut line = Vec::new();
        assert_eq!((read_bounded_line(&mut from, &mut line).unwrap(), line.as_slice()), (4, b"one\n".as_slice()));
        assert_eq!(read_bounded_line(&mut from, &mut line).unwrap(), long.len() as u64 + 1);
        assert_eq!(line.len(), CDXJ_LINE_BYTES_MAX + 1);
        assert!(parse_line(std::str::from_utf8(&line).unwrap()).is_err());
        assert_eq!((read_bounded_line(&mut from, &mut line).unwrap(), line.as_slice()), (3, b"two".as_slice()));
        assert_eq!(read_bounded_line(&mut from, &mut line).unwrap(), 0);
    }

    #[test]
    fn strings_are_ascii() {
        let mut out = String::new();
        super::quoted(&mut out, "a\"\\\u{e9}\u{1f41d}\u{1}\u{7f}");
        assert_eq!(out, "\"a\\\"\\\\\\u00e9\\ud83d\\udc1d\\u0001\\u007f\"");
    }
}
