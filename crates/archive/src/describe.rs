//! What a record is, told from the record alone: the same whether it is appended, found after a crash, or added from
//! elsewhere.

use std::io::{self, BufRead, Read};

use skep_warc::digest::{Algorithm, Hasher};
use skep_warc::http::{self, Parsed};
use skep_warc::{Head, RecordKind};

use crate::capture::{Capture, CaptureKind, Digest, FLAG_HTTP, FLAG_PRIVATE, Position};
use crate::limits::{HTTP_HEAD_BYTES_MAX, NOTE_BYTES_MAX};
use crate::own;
use crate::rewrite::REMOVED_BY;
use crate::sidecar::Note;
use crate::{closing, remove};

/// The head field of captures that were made with secrets.
pub const PRIVATE: &str = "WARC-Skep-Private";

/// Describes a record. `block` is read as far as needed: not at all where the head says everything, to its end where
/// the payload digest has to be computed.
pub fn describe(head: &Head, block: &mut dyn BufRead) -> io::Result<Note> {
    if head.get(REMOVED_BY).is_some() {
        return Ok(Note::Blank);
    }
    let media_type = media_type(head);
    if head.kind() == RecordKind::Metadata && head.target_uri().is_none() {
        return about_the_archive(head, &media_type, block);
    }
    Ok(capture(head, &media_type, block)?.map_or(Note::Plain, |capture| Note::Capture(Box::new(capture))))
}

/// Metadata that is about no URL: closing, removal, checks, heard URLs.
fn about_the_archive(head: &Head, media_type: &str, block: &mut dyn BufRead) -> io::Result<Note> {
    let known = matches!(media_type, own::FIELDS | own::CHECKS | own::HEARD);
    if !known || head.content_length().is_none_or(|length| length > NOTE_BYTES_MAX as u64) {
        return Ok(Note::Plain);
    }
    let mut bytes = Vec::new();
    block.take(NOTE_BYTES_MAX as u64).read_to_end(&mut bytes)?;
    Ok(match media_type {
        own::CHECKS => Note::Checks(bytes),
        own::HEARD => Note::Heard(bytes),
        _ if bytes.starts_with(closing::TITLE.as_bytes()) => Note::Closing,
        _ if bytes.starts_with(remove::TITLE.as_bytes()) => Note::Removal(bytes),
        _ => Note::Plain,
    })
}

/// Which kind of capture a record may be.
pub fn kind_of(head: &Head) -> Option<CaptureKind> {
    Some(match head.kind() {
        RecordKind::Response => CaptureKind::Response,
        RecordKind::Revisit => CaptureKind::Revisit,
        RecordKind::Resource => CaptureKind::Resource,
        RecordKind::Metadata => CaptureKind::Metadata,
        RecordKind::Conversion => CaptureKind::Conversion,
        RecordKind::Request => CaptureKind::Request,
        RecordKind::Other => CaptureKind::Other,
        RecordKind::Warcinfo | RecordKind::Continuation | RecordKind::ArcHeader => return None,
    })
}

/// The capture that a record about a URL holds; `None` for a record without URL or date. Its position, offset and length
/// are those of nothing yet.
pub fn capture(head: &Head, media_type: &str, block: &mut dyn BufRead) -> io::Result<Option<Capture>> {
    let Some(kind) = kind_of(head) else { return Ok(None) };
    let (Some(url), Some(time_ms)) = (head.target_uri(), head.date_ms()) else { return Ok(None) };
    let mut capture = Capture {
        key: skep_url::Key::of_bytes(url),
        url: String::from_utf8_lossy(url).into_owned(),
        time_ms,
        position: Position::default(),
        kind,
        status: 0,
        mime: media_type.to_string(),
        digest: head.text("WARC-Payload-Digest").and_then(|text| text.parse().ok()),
        offset: 0,
        length: 0,
        flags: if head.get(PRIVATE).is_some() { FLAG_PRIVATE } else { 0 },
    };
    let exchanged = matches!(kind, CaptureKind::Response | CaptureKind::Revisit | CaptureKind::Request);
    let is_http = exchanged && (media_type == "application/http" || head.is_arc() && url.starts_with(b"http"));
    if is_http && kind == CaptureKind::Request {
        // Nothing more is told of a request, so it is not read: whoever wants it finds out.
        capture.flags |= FLAG_HTTP;
    } else if is_http {
        read_http(&mut capture, block)?;
    } else if capture.digest.is_none() && !matches!(kind, CaptureKind::Request | CaptureKind::Revisit) {
        capture.digest = Some(digest_of(block)?);
    }
    Ok(Some(capture))
}

fn read_http(capture: &mut Capture, block: &mut dyn BufRead) -> io::Result<()> {
    let mut bytes = Vec::new();
    let mut head = http::Head::new();
    let body = loop {
        let part = block.fill_buf()?;
        let (count, ended) = (part.len(), part.is_empty() || bytes.len() > HTTP_HEAD_BYTES_MAX);
        bytes.extend_from_slice(part);
        block.consume(count);
        match head.parse_response(&bytes, ended) {
            Parsed::Complete { body } => break body,
            _ if ended => return Ok(()),
            _ => {}
        }
    };
    capture.flags |= FLAG_HTTP;
    capture.status = head.status().unwrap_or(0);
    capture.mime = head.mime().unwrap_or_default();
    if capture.digest.is_none() && capture.kind != CaptureKind::Revisit {
        let rest = bytes.get(body..).unwrap_or_default().chain(block);
        capture.digest = Some(digest_of(&mut http::Body::new(&head, rest))?);
    }
    Ok(())
}

fn digest_of(from: &mut dyn Read) -> io::Result<Digest> {
    let mut hasher = Hasher::new(Algorithm::Sha1);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => hasher.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let mut sha1 = [0; 20];
    sha1.copy_from_slice(hasher.finish().as_bytes());
    Ok(Digest::Sha1(sha1))
}

/// The media type of the block, lower-case and without parameters. Fields are only what is called so to the letter: indexes
/// list every other spelling, so it must stay another one.
fn media_type(head: &Head) -> String {
    let text = head.text("Content-Type").unwrap_or_default();
    let media_type = text.split([';', ' ', '\t']).next().unwrap_or_default().to_ascii_lowercase();
    if media_type == own::FIELDS { text.into_owned() } else { media_type }
}
