//! CDX in its eleven-column form: one line a record, as the Internet Archive's own indexer writes it.
//!
//! ```text
//!   CDX N            b        a             m          s       k       r         M      S       V       g
//!       massaged URL date     original URL  media type status  digest  redirect  flags  length  offset  file
//!
//!   org,example)/a   20200102030405 http://example.org/a text/html 200 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - I 1043 333 a.warc.gz
//! ```
//! - *digest*: the one a response declares, `sha1:` taken off; for ARC records, whose lines declare none, SHA-1 over the body as it
//!   stands, transfer encoding included; for records that hold no HTTP response, over the block.
//! - *media type*: for WARC responses what the server sent, up to the first `;`, if it is lower case and well formed, else `unk`; for ARC
//!   what the record line says; `warc/TYPE` for records that hold no document.
//! - *redirect* is always `-`: what stood there could not be read back, and nothing reads it.
//! - *flags*: `A`, `F`, `I` for noarchive, nofollow, noindex (see `robots.rs`), `P` for a page behind a login form.
//! - *length*: of the compressed member; `-` in files that are not compressed.
//!
//! A line is bytes, not text: the original URL is given as the record has it.

mod robots;

use std::borrow::Cow;
use std::io::{self, BufRead, Write};
use std::path::Path;

use skep_url::surt;
use skep_warc::digest::{Algorithm, Hasher};
use skep_warc::{Finding, Head, Reader, Record, RecordKind, date};

use crate::limits::{CDX_HTML_BYTES_MAX, HTTP_HEAD_BYTES_MAX};

/// The first line of a file of such lines. Its space makes it sort before all of them.
pub const HEADER: &str = " CDX N b a m s k r M S V g";

/// What stands behind the file's name in the URL column of a `warcinfo` record. Readers of such indexes know it.
const WARCINFO_SOFTWARE: &str = "archive-commons.0.0.1-SNAPSHOT-20120112102659-python";

/// Which records get a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Every record, not only those that hold a document: requests, metadata, DNS answers, not modified, the head of the file.
    pub all: bool,
}

/// What became of a file.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Records met.
    pub records: u64,
    /// Lines written.
    pub lines: u64,
    /// What is wrong with the file.
    pub findings: Vec<Finding>,
}

/// Writes the lines of one file in the order of its records; [`HEADER`] is the caller's, since one header serves many files. The file
/// column has the name of the file without its folders.
pub fn write_file(path: &Path, options: Options, out: &mut dyn Write) -> io::Result<Written> {
    let file = path.file_name().unwrap_or_default().as_encoded_bytes();
    let mut reader = Reader::open(path, skep_warc::Options::recover())?;
    let mut written = Written::default();
    while let Some(record) = reader.next()? {
        if let Some(line) = line(record, file, options)? {
            out.write_all(&line)?;
            out.write_all(b"\n")?;
            written.lines += 1;
        }
    }
    written.records = reader.records();
    written.findings = reader.take_findings();
    Ok(written)
}

/// The line of one record, without its line end; `None` for a record that has none. `file` is what stands in the last column.
pub fn line(mut record: Record<'_>, file: &[u8], options: Options) -> io::Result<Option<Vec<u8>>> {
    let Some(kind) = Kind::of(record.head(), options) else { return Ok(None) };
    let head = record.head();
    let url = match kind {
        Kind::Warcinfo => [b"warcinfo:/", file, b"/", WARCINFO_SOFTWARE.as_bytes()].concat(),
        _ => head.target_uri().map_or_else(|| b"-".to_vec(), original_url),
    };
    let key = match kind {
        Kind::Warcinfo => url.clone(),
        _ => surt::key_of_bytes(&url).into_bytes(),
    };
    let time = timestamp(head);
    let Some(told) = kind.tell(&mut record, options)? else { return Ok(None) };
    let (offset, plain) = (record.offset(), record.is_plain());
    let length = record.finish()?.length;
    let length = if plain { "-".to_owned() } else { length.to_string() };
    let columns: [&[u8]; 11] = [
        &key,
        time.as_bytes(),
        &url,
        &told.mime,
        &told.status,
        &told.digest,
        b"-",
        told.flags.as_bytes(),
        length.as_bytes(),
        &offset.to_string().into_bytes(),
        file,
    ];
    Ok(Some(columns.map(|column| if column.is_empty() { b"-" } else { column }).join(&b' ')))
}

/// What a line says of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Response,
    Revisit,
    /// A file fetched over FTP.
    Transferred,
    /// A document that no protocol wraps.
    Resource,
    Warcinfo,
    ArcHeader,
    Other,
}

/// The columns that depend on the kind; empty ones become `-`.
#[derive(Debug, Default)]
struct Told {
    mime: Vec<u8>,
    status: Vec<u8>,
    digest: Vec<u8>,
    flags: String,
}

impl Kind {
    /// `None` for a record that gets no line, as far as its head tells.
    fn of(head: &Head, options: Options) -> Option<Kind> {
        // The proxy of an archive wrote records of nothing with a length below zero.
        let length = head.get(if head.is_arc() { "Archive-length" } else { "Content-Length" });
        if length.is_some_and(|length| length.starts_with(b"-") && length != b"-0") {
            return None;
        }
        let url = head.target_uri().unwrap_or_default();
        let profile = head.get("WARC-Profile").unwrap_or_default();
        let kind = match head.kind() {
            RecordKind::Response if head.get("Content-Type") != Some(b"text/dns") => Some(Kind::Response),
            RecordKind::Revisit if !profile.ends_with(b"/revisit/server-not-modified") => Some(Kind::Revisit),
            RecordKind::Resource if url.starts_with(b"ftp://") => Some(Kind::Transferred),
            // Crawlers keep their logs as resources under schemes of their own.
            RecordKind::Resource if url.starts_with(b"http://") || url.starts_with(b"https://") => Some(Kind::Resource),
            _ => None,
        };
        kind.or_else(|| options.all.then(|| Kind::without_document(head)))
    }

    fn without_document(head: &Head) -> Kind {
        match head.kind() {
            RecordKind::Response => Kind::Response,
            RecordKind::Revisit => Kind::Revisit,
            RecordKind::Warcinfo => Kind::Warcinfo,
            RecordKind::ArcHeader => Kind::ArcHeader,
            _ => Kind::Other,
        }
    }

    /// Reads as much of the block as its columns need.
    fn tell(self, record: &mut Record<'_>, options: Options) -> io::Result<Option<Told>> {
        let head = record.head();
        let told = match self {
            Kind::Response => return response(record, options),
            Kind::Revisit => Told { mime: b"warc/revisit".to_vec(), digest: declared_digest(head), ..Told::default() },
            Kind::Transferred => {
                let mime = word(head.get("Content-Type"));
                let declared = [declared_digest(head), digest_value(head.get("WARC-Block-Digest"))];
                let digest = match declared.into_iter().find(|digest| !digest.is_empty()) {
                    Some(digest) => digest,
                    None => sha1(b"", record)?,
                };
                // What FTP servers answer when a transfer is complete; the record does not hold the answer.
                Told { mime, status: b"226".to_vec(), digest, ..Told::default() }
            }
            Kind::Resource => {
                let mime = word(head.get("Content-Type"));
                Told { mime, digest: sha1(b"", record)?, ..Told::default() }
            }
            Kind::Warcinfo => Told { mime: b"warc-info".to_vec(), digest: sha1(b"", record)?, ..Told::default() },
            Kind::ArcHeader => {
                skip_line(record)?; // the version
                skip_line(record)?; // the names of the fields
                Told { mime: b"warc/filedesc".to_vec(), digest: sha1(b"", record)?, ..Told::default() }
            }
            Kind::Other => {
                let mime = [b"warc/", word(head.get("WARC-Type")).as_slice()].concat();
                Told { mime, digest: sha1(b"", record)?, ..Told::default() }
            }
        };
        Ok(Some(told))
    }
}

/// `None` for an answer without a document.
fn response(record: &mut Record<'_>, options: Options) -> io::Result<Option<Told>> {
    let (http, rest) = read_http_head(record)?;
    let head = record.head();
    let status = status(&http);
    let (versioned, code) = status.unwrap_or((true, b""));
    if code == b"304" && !options.all {
        return Ok(None);
    }
    // What the proxy of an archive kept when it could not reach a server.
    if head.get("IP-address") == Some(b"0.0.0.0") && !versioned && matches!(code, b"502" | b"504") {
        return Ok(None);
    }
    let declares_http = is_http_response(head.get("Content-Type").unwrap_or_default());
    let fields = rest.then_some(http.as_slice());
    let mime = if declares_http {
        fields.and_then(|http| header(http, b"content-type")).map_or_else(unknown, sent_type)
    } else {
        line_type(head.get("Content-Type"))
    };
    let digest = match fields {
        None if !declares_http => Vec::new(), // what was declared is a payload, and there is none to be seen
        _ => declared_digest(head),
    };
    let mut flags = robots::Flags::default();
    if let Some(tag) = fields.and_then(|http| header(http, b"x-robots-tag")) {
        flags.add(tag);
    }
    let form = head.get("WARC-Simple-Form-Province-Status").map(|status| status.split(|&b| b == b',').next());
    let login = form.flatten().and_then(number).is_some_and(|attempts| attempts > 0);
    let scan = rest && mime == b"text/html" && head.content_length().is_none_or(|n| n <= CDX_HTML_BYTES_MAX as u64);
    let told = Told { mime, status: code.to_vec(), digest, ..Told::default() };
    let begun: &[u8] = if rest { b"" } else { &http };
    let (digest, html) = read_body(begun, record, told.digest.is_empty(), scan)?;
    robots::scan(&html, &mut flags);
    let flags = format!("{flags}{}", if login { "P" } else { "" });
    Ok(Some(Told { digest: digest.unwrap_or(told.digest), flags, ..told }))
}

/// Reads the rest of a block for its digest, for its HTML, for both or for neither.
fn read_body(
    begun: &[u8],
    block: &mut dyn BufRead,
    digest: bool,
    mut scan: bool,
) -> io::Result<(Option<Vec<u8>>, Vec<u8>)> {
    let mut hasher = digest.then(|| Hasher::new(Algorithm::Sha1));
    let mut html = Vec::new();
    if let Some(hasher) = &mut hasher {
        hasher.update(begun);
    }
    while hasher.is_some() || scan {
        let part = block.fill_buf()?;
        if part.is_empty() {
            break;
        }
        if let Some(hasher) = &mut hasher {
            hasher.update(part);
        }
        if scan && html.len() + part.len() <= CDX_HTML_BYTES_MAX {
            html.extend_from_slice(part);
        } else if scan {
            (scan, html) = (false, Vec::new());
        }
        let count = part.len();
        block.consume(count);
    }
    Ok((hasher.map(|hasher| hasher.finish().base32().into_bytes()), html))
}

fn sha1(begun: &[u8], block: &mut dyn BufRead) -> io::Result<Vec<u8>> {
    let (digest, _) = read_body(begun, block, true, false)?;
    Ok(digest.unwrap_or_default())
}

fn skip_line(block: &mut dyn BufRead) -> io::Result<()> {
    loop {
        let part = block.fill_buf()?;
        let end = part.iter().position(|&b| b == b'\n');
        let count = end.map_or(part.len(), |at| at + 1);
        block.consume(count);
        if end.is_some() || count == 0 {
            return Ok(());
        }
    }
}

// ── the HTTP head ──

/// The head of an HTTP response, with true: what is left to read is its body, even if that is nothing because the head never ends. Or, with
/// false, the beginning of something else: what does not begin as HTTP does, or has no end of its head within the bound.
fn read_http_head(block: &mut dyn BufRead) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    loop {
        let part = block.fill_buf()?;
        if part.is_empty() {
            let is_http = bytes.starts_with(b"HTTP");
            return Ok((bytes, is_http));
        }
        let (before, count) = (bytes.len(), part.len().min(HTTP_HEAD_BYTES_MAX));
        bytes.extend_from_slice(&part[..count]);
        if bytes.len() >= 4 && !bytes.starts_with(b"HTTP") {
            block.consume(count);
            return Ok((bytes, false));
        }
        if let Some(end) = empty_line(&bytes, before.saturating_sub(2)) {
            block.consume(end - before);
            bytes.truncate(end);
            return Ok((bytes, true));
        }
        block.consume(count);
        if bytes.len() >= HTTP_HEAD_BYTES_MAX {
            return Ok((bytes, false));
        }
    }
}

/// Where, behind the first empty line that ends from `from` on, the rest begins. Lines end as servers end them: with a line feed, perhaps
/// with a carriage return before it.
fn empty_line(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr::memchr(b'\n', &bytes[at..])? + 1;
        match bytes[at..] {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
}

/// Whether a version is named, and the code: `HTTP/1.1 200 OK`, `HTTP 200`.
fn status(http: &[u8]) -> Option<(bool, &[u8])> {
    let rest = http.strip_prefix(b"HTTP")?;
    let (versioned, rest) = match rest {
        [b'/', major, b'.', minor, rest @ ..] if major.is_ascii_digit() && minor.is_ascii_digit() => (true, rest),
        _ => (false, rest),
    };
    let rest = rest.strip_prefix(b" ")?;
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    (digits > 0).then(|| (versioned, &rest[..digits]))
}

/// The first value of a field, unless nothing at all follows its colon. `name` in lower case.
fn header<'a>(http: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    http.split(|b| matches!(b, b'\n' | b'\r')).find_map(|line| {
        let (found, value) = line.split_at_checked(name.len())?;
        let value = value.strip_prefix(b":").filter(|value| !value.is_empty())?;
        found.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
    })
}

/// `application/http; msgtype=response`, with or without the space.
fn is_http_response(media_type: &[u8]) -> bool {
    let lower = media_type.to_ascii_lowercase();
    lower.strip_prefix(b"application/http;").is_some_and(|rest| rest.trim_ascii_start() == b"msgtype=response")
}

// ── columns ──

fn unknown() -> Vec<u8> {
    b"unk".to_vec()
}

/// A media type as a server sent it.
fn sent_type(value: &[u8]) -> Vec<u8> {
    let end = memchr::memchr(b';', value).filter(|&at| at > 0).unwrap_or(value.len());
    let value = &value[..end];
    let known = |b: &u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'+' | b'/');
    if !value.is_empty() && value.iter().all(known) { value.to_vec() } else { unknown() }
}

/// A media type as the line of an ARC record has it. Some have a parameter behind a space; it is left out, since columns have none.
fn line_type(value: Option<&[u8]>) -> Vec<u8> {
    let value = value.unwrap_or_default();
    let end = value.iter().position(u8::is_ascii_whitespace);
    let value = match end {
        Some(end) => value[..end].strip_suffix(b";").unwrap_or(&value[..end]),
        None => value,
    };
    if value.is_empty() || value == b"no-type" || !value.is_ascii() { unknown() } else { value.to_vec() }
}

/// A value as one column can hold it.
fn word(value: Option<&[u8]>) -> Vec<u8> {
    let value = value.unwrap_or_default();
    let end = value.iter().position(u8::is_ascii_whitespace).unwrap_or(value.len());
    value[..end].strip_suffix(b";").unwrap_or(&value[..end]).to_vec()
}

fn declared_digest(head: &Head) -> Vec<u8> {
    digest_value(head.get("WARC-Payload-Digest"))
}

/// A digest without the name of the usual algorithm; any other keeps its own.
fn digest_value(value: Option<&[u8]>) -> Vec<u8> {
    let value = word(value);
    value.strip_prefix(b"sha1:").map(<[u8]>::to_vec).unwrap_or(value)
}

fn number(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.trim().parse().ok()
}

/// The URL as the record has it; what would end a column or a line is escaped, and a carriage return left out, as browsers do.
fn original_url(url: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(url.len());
    for &byte in url {
        match byte {
            b'\r' => {}
            b' ' | b'\n' | 0x08 | 0x0c => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out
}

/// 14 digits, or `-`. What an ARC line has there is cut or filled with zeros, not judged: a date that never was is still the name of the
/// capture in every index made before.
fn timestamp(head: &Head) -> Cow<'static, str> {
    head.date_text().and_then(|text| timestamp_of(text, head)).map_or(Cow::Borrowed("-"), Cow::Owned)
}

fn timestamp_of(text: &[u8], head: &Head) -> Option<String> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let tail = &text[digits..];
    let letters = tail.iter().all(u8::is_ascii_alphabetic);
    match digits {
        14..=18 if letters => String::from_utf8(text[..14].to_vec()).ok(),
        10 | 12 if tail.is_empty() => Some(format!("{:0<14}", String::from_utf8_lossy(text))),
        _ if digits == text.len() || text.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) => None,
        _ => head.date_ms().map(date::timestamp14),
    }
}
