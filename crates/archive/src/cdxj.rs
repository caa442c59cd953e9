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
#[derive(Clone, Debug, PartialEq, Eq)]
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
        let mut lines = Vec::new();
        let mut seen = part.start;
        while let Some(mut record) = reader.next()? {
            let (offset, head_bytes) = (record.offset(), record.head().raw().len() as u64);
            let plain = record.is_plain();
            let line = line_of(&mut record)?;
            let end = record.finish()?;
            if let Some(line) = line {
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
    let head = record.head();
    let kind = head.kind();
    let wanted = match kind {
        RecordKind::Response | RecordKind::Revisit => true,
        RecordKind::Resource | RecordKind::Metadata => head.get("Content-Type") != Some(b"application/warc-fields"),
        _ => false,
    };
    let exchanged = matches!(kind, RecordKind::Response | RecordKind::Revisit);
    if !wanted || (exchanged && head.target_uri().is_none()) {
        return Ok(None);
    }
    let Some(time) = head.date_ms() else { return Ok(None) };
    let url = head.target_uri().map(|url| match url.contains(&b' ') {
        true => decode(url).replace(' ', "%20"),
        false => decode(url).into_owned(),
    });
    let declared = head.get("WARC-Payload-Digest").filter(|d| !d.is_empty()).map(|d| decode(d).into_owned());
    let media = if head.is_arc() { None } else { head.get("Content-Type").map(|t| media_type(&decode(t))) };
    let mut line = Line {
        key: url.as_deref().map_or_else(|| NO_KEY.to_owned(), skep_url::surt::key),
        time: date::timestamp14(time),
        mime: if kind == RecordKind::Revisit { Some("warc/revisit".to_owned()) } else { media },
        status: None,
        digest: declared,
        url,
    };
    let http = exchanged && line.url.as_deref().is_some_and(|u| u.starts_with("http:") || u.starts_with("https:"));
    if kind == RecordKind::Response {
        line.mime = None;
    }
    if http {
        let message = read_http(record)?;
        line.status = message.status;
        if kind == RecordKind::Response {
            line.mime = message.content_type.map(|t| media_type(&t));
        }
    }
    if line.digest.is_none() && kind != RecordKind::Revisit {
        line.digest = Some(digest_of(record)?);
    }
    Ok(Some(line))
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

fn media_type(value: &str) -> String {
    value.split(|c: char| c == ';' || is_space(c)).next().unwrap_or_default().to_owned()
}

/// What Python takes for white space: Unicode's, and the four separators of ASCII.
fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

#[derive(Default)]
struct Message {
    status: Option<String>,
    content_type: Option<String>,
}

/// Status and Content-Type as the field's indexer reads them: the first line is taken for a status line whatever it is, lines are
/// fields up to the first that is blank. Leaves the record at the beginning of the body.
fn read_http(record: &mut Record<'_>) -> io::Result<Message> {
    let mut message = Message::default();
    let mut line = Vec::new();
    let mut total = 0;
    let mut first = true;
    let mut fields = 0;
    while total < HTTP_HEAD_BYTES_MAX {
        line.clear();
        let read = read_line(record, &mut line)?;
        total += read;
        if read == 0 && first {
            return Ok(message);
        }
        let text = decode(&line);
        let text = text.trim_end_matches(is_space);
        if first {
            let code = text
                .split_once(' ')
                .map_or("", |(_, rest)| rest.trim_matches(is_space))
                .split(' ')
                .next()
                .unwrap_or_default();
            message.status = Some(code.to_owned());
            first = false;
            if text.is_empty() {
                break;
            }
            continue;
        }
        if text.is_empty() {
            break;
        }
        let Some((name, value)) = text.split_once(':') else { continue };
        fields += 1;
        if message.content_type.is_none() && name.trim_end_matches([' ', '\t']).eq_ignore_ascii_case("content-type") {
            message.content_type = Some(value.trim_start_matches(is_space).to_owned());
        }
    }
    if fields == 0 && message.status.as_deref() == Some("") {
        message.status = None;
    }
    Ok(message)
}

fn read_line(record: &mut Record<'_>, line: &mut Vec<u8>) -> io::Result<usize> {
    let before = line.len();
    loop {
        let here = record.fill_buf()?;
        if here.is_empty() || line.len() > HTTP_HEAD_BYTES_MAX {
            return Ok(line.len() - before);
        }
        let end = here.iter().position(|&b| b == b'\n');
        let count = end.map_or(here.len(), |at| at + 1);
        line.extend_from_slice(&here[..count]);
        record.consume(count);
        if end.is_some() {
            return Ok(line.len() - before);
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
    #[test]
    fn strings_are_ascii() {
        let mut out = String::new();
        super::quoted(&mut out, "a\"\\\u{e9}\u{1f41d}\u{1}\u{7f}");
        assert_eq!(out, "\"a\\\"\\\\\\u00e9\\ud83d\\udc1d\\u0001\\u007f\"");
    }
}
