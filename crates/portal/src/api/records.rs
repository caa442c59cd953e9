//! Records themselves: one, or all that match, as a WARC file of one gzip member each.
//!
//! A record that stands alone in its gzip member is sent as it is stored. Others are compressed on the way: those of plain files, of files
//! with several records in a member, of packages, and of files that are known by an index, which may not name all records of a member.

use super::asked::Asked;
use super::files::attached;
use crate::cdx::ask;
use crate::find::Looking;
use crate::limits::COPIED_BYTES_MAX;
use crate::reply::{Reply, Sink};
use crate::trouble::Trouble;
use crate::visit::Visit;
use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use skep_archive::captures::{Match, Query};
use skep_archive::{Capture, CaptureKind, Error, Position, WriterKey};
use skep_url::{Key, Scan};
use skep_warc::date;
use skep_warc::write::{Compression, Encoder, RecordId};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;

fn head(name: &str) -> axum::http::Response<Body> {
    let mut head = Response::new(Body::empty());
    let headers = head.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/warc"));
    headers.insert(header::CONTENT_DISPOSITION, attached(name));
    head
}

/// Whether the record of a capture may be sent: any kind that is listed.
fn may_send(look: &Looking<'_>, capture: &Capture) -> bool {
    look.scope.holds(capture, look.portal) && look.portal.access.shows(capture, look.may, look.now_ms)
}

/// Sends all that match.
pub fn stream(look: &Looking<'_>, asked: &Asked, visit: &Visit, reply: &mut Option<Reply>) -> Result<(), Trouble> {
    let kind = skep_url::Match::parse(asked.text("match")).unwrap_or(skep_url::Match::Exact);
    let matching = asked.get("url").map_or(Match::All, |url| ask::matching(&Scan::of(url, kind)));
    let mut query = Query::new(matching);
    (query.from_ms, query.to_ms) = (asked.earliest("from"), asked.latest("to"));
    query.kinds = asked.get("kind").map(CaptureKind::from_name).into_iter().collect();
    query.mime = asked.get("type").map(str::to_owned);
    query.status = asked.get("status").and_then(|status| status.parse().ok());
    let (captures, silent) = match look.others() {
        Some(_) => look.portal.spread(&query)?,
        None => (look.portal.query_here(&query)?, 0),
    };
    let Some(reply) = reply.take() else { return Ok(()) };
    let mut begun = head("records.warc.gz");
    crate::cdx::out::say_silent(&mut begun, silent);
    if visit.head_only {
        reply.send(begun);
        return Ok(());
    }
    let mut sink = reply.begin(begun);
    let mut sending = Sending::new();
    let mut left = asked.number("limit", usize::MAX);
    for capture in captures {
        let capture = match capture {
            Ok(capture) => capture,
            Err(error) => {
                sink.cut(io::Error::other("the captures view cannot be read"));
                return Err(error);
            }
        };
        if left == 0 || sink.is_gone() {
            break;
        }
        if !may_send(look, &capture) {
            continue;
        }
        left -= 1;
        match sending.record(look, &capture, &mut sink) {
            Ok(()) => {}
            // One that cannot be read is left out, and the log says so; one that breaks off ends the answer.
            Err(Failed::Before(trouble)) => look.portal.note(&trouble),
            Err(Failed::Within(error)) => {
                sink.cut(error);
                return Ok(());
            }
        }
    }
    let _hung_up = sink.end();
    Ok(())
}

/// Sends one record.
pub fn one(look: &Looking<'_>, asked: &Asked, visit: &Visit, reply: &mut Option<Reply>) -> Result<(), Trouble> {
    let missing = || Trouble::missing("There is no such record here.");
    let position: Position = asked.text("record").parse().map_err(|_| missing())?;
    let capture = capture_at(look, position)?.ok_or_else(missing)?;
    let name = format!("{}.warc.gz", position.to_string().replace(':', "-"));
    if visit.head_only {
        crate::reply::tell(reply, head(&name));
        return Ok(());
    }
    let mut out = Vec::new();
    let mut sending = Sending::new();
    if let Some(whole) = sending.stored(look, &capture) {
        out = whole;
    } else if capture.length <= COPIED_BYTES_MAX {
        sending.encode(look, &capture, &mut out).map_err(|failed| match failed {
            Failed::Before(trouble) => trouble,
            Failed::Within(error) => Trouble::reading(&error),
        })?;
    } else if let Some(reply) = reply.take() {
        let mut sink = reply.begin(head(&name));
        match sending.record(look, &capture, &mut sink) {
            Ok(()) => drop(sink.end()),
            Err(Failed::Before(trouble)) => {
                sink.cut(io::Error::other("the record cannot be read"));
                return Err(trouble);
            }
            Err(Failed::Within(error)) => sink.cut(error),
        }
        return Ok(());
    }
    let mut answer = head(&name);
    answer.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(out.len()));
    crate::reply::tell(reply, answer.map(|_| Body::from(out)));
    Ok(())
}

/// The capture at a position, if it may be seen: what its record says of itself leads to its entry in the view.
fn capture_at(look: &Looking<'_>, position: Position) -> Result<Option<Capture>, Trouble> {
    let archive = &look.portal.archive;
    let mut stored = match archive.read(position) {
        Err(Error::NotFound { .. }) => return Ok(None),
        other => other?,
    };
    let record = stored.record()?;
    let Some((key, time_ms)) = record.head().target_uri().map(Key::of_bytes).zip(record.head().date_ms()) else {
        return Ok(None);
    };
    for capture in archive.views().captures.closest(&key, time_ms)? {
        let capture = capture?;
        if capture.time_ms.abs_diff(time_ms) > 1000 {
            break;
        }
        if capture.position == position {
            return Ok(Some(capture).filter(|capture| may_send(look, capture)));
        }
    }
    Ok(None)
}

enum Failed {
    /// Nothing was sent of it.
    Before(Trouble),
    /// Something was.
    Within(io::Error),
}

/// Sends record after record; of one file after another the last stays open.
struct Sending {
    encoder: Encoder,
    file: Option<(WriterKey, u32, Option<File>)>,
}

struct Out<'s>(&'s mut Sink);

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sending {
    fn new() -> Sending {
        Sending { encoder: Encoder::new(Compression::GZIP), file: None }
    }

    fn record(&mut self, look: &Looking<'_>, capture: &Capture, sink: &mut Sink) -> Result<(), Failed> {
        match self.stored(look, capture) {
            Some(member) => sink.write(&member).map_err(|gone| Failed::Within(gone.into())),
            None => self.encode(look, capture, &mut Out(sink)),
        }
    }

    /// The member as it is stored, if it holds this record alone.
    fn stored(&mut self, look: &Looking<'_>, capture: &Capture) -> Option<Vec<u8>> {
        if capture.length > COPIED_BYTES_MAX || capture.length < 20 {
            return None;
        }
        let archive = &look.portal.archive;
        let place = archive.place(capture.position).ok()?;
        if (place.offset, place.nth) != (capture.offset, 0) {
            return None;
        }
        let behind = Position { record: capture.position.record.checked_add(1)?, ..capture.position };
        if archive.place(behind).is_ok_and(|behind| behind.offset == place.offset) {
            return None;
        }
        let (writer, segment) = (capture.position.writer, capture.position.segment);
        if !matches!(self.file, Some((w, s, _)) if (w, s) == (writer, segment)) {
            let trusted = writer != WriterKey::FOREIGN
                || archive.collections().get(segment).is_some_and(|file| file.kind == "warc");
            self.file = Some((writer, segment, trusted.then(|| File::open(&place.path).ok()).flatten()));
        }
        let file = self.file.as_ref()?.2.as_ref()?;
        let mut member = vec![0; place.length as usize];
        file.read_exact_at(&mut member, place.offset).ok()?;
        member.starts_with(&[0x1f, 0x8b, 8]).then_some(member)
    }

    /// The record, compressed on the way. Those of ARC files become responses.
    fn encode(&mut self, look: &Looking<'_>, capture: &Capture, out: &mut impl Write) -> Result<(), Failed> {
        let mut stored = look.portal.read(capture).map_err(Failed::Before)?;
        let mut record = stored.record().map_err(|error| Failed::Before(error.into()))?;
        let about = record.head().target_uri().map(Key::of_bytes);
        let length = record.head().content_length();
        let (Some(length), true) = (length, about.is_none_or(|key| key.surt() == capture.key.surt())) else {
            return Err(Failed::Before(Trouble::damaged(
                "The record of this capture is damaged.",
                format!("{} is not the record that the index says", capture.position),
            )));
        };
        let head = match record.head().is_arc() {
            true => warc_head(capture, length),
            false => record.head().raw().to_vec(),
        };
        let written = self.encoder.raw_stream(&head, record.by_ref(), length, out);
        written.map(|_| ()).map_err(|error| Failed::Within(io::Error::other(error.to_string())))
    }
}

/// The head that a WARC file would have for a record of an ARC file. Its name comes from its position, so that it is always the same.
fn warc_head(capture: &Capture, length: u64) -> Vec<u8> {
    let mut seed = [0; 16];
    seed[..4].copy_from_slice(&capture.position.segment.to_be_bytes());
    seed[4..8].copy_from_slice(&capture.position.record.to_be_bytes());
    seed[8..].copy_from_slice(&capture.time_ms.to_be_bytes());
    let (id, time) = (RecordId::uuid(seed), date::rfc3339(capture.time_ms));
    let (kind, content) = match capture.is_http() {
        true => ("response", "application/http; msgtype=response"),
        false if capture.mime.is_empty() => ("resource", "application/octet-stream"),
        false => ("resource", capture.mime.as_str()),
    };
    format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {}\r\nWARC-Date: {time}\r\nWARC-Record-ID: <{}>\r\n\
         Content-Type: {content}\r\nContent-Length: {length}\r\n\r\n",
        capture.url,
        id.as_uri().trim_matches(['<', '>']),
    )
    .into_bytes()
}
