//! Replay: from an address to the capture that is meant, and out again. Read top to bottom.
//!
//! `id_` is answered here, on any name: the archived answer as it was fetched, without its transfer encoding. Pages with their
//! links led back into the archive are in `rewritten.rs`, the frame around them in `frame.rs`.

use crate::address::At;
use crate::answer::{self, Answer};
use crate::find::{self, Looking};
use crate::limits::{STEPS_ASIDE_MAX, WHOLE_BODY_BYTES_MAX};
use crate::message::{self, Source};
use crate::range::{self, Wanted};
use crate::reply::{Reply, Sink, tell};
use crate::trouble::Trouble;
use crate::visit::Visit;
use crate::{headers, memento, missing, time};
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use skep_archive::{Capture, CaptureKind, Key};
use skep_url::Url;
use skep_warc::http::{Body as Payload, Head};
use std::io::{BufRead, Read};

/// Answers an address with the modifier `id_`.
pub fn raw(look: &Looking<'_>, at: &At, visit: &Visit, reply: Reply) {
    let found = look.nearest(&Key::of(&at.url), at.time_ms).and_then(|found| pick(found, &at.url));
    match found {
        Err(trouble) => refuse(look, &trouble, reply),
        Ok(None) => reply.send(missing::page(look, &at.url)),
        Ok(Some(capture)) if time::digits(capture.time_ms) != at.digits => {
            reply.send(to_exact(look, at, &capture));
        }
        Ok(Some(capture)) => {
            let mut reply = Some(reply);
            let head = |shown: &Shown<'_>| raw_head(look, &capture, visit, shown);
            if let Err(trouble) = deliver(look, &capture, visit, &mut reply, &head) {
                // The answer may have begun; then its end said what there was to say.
                look.portal.note(&trouble);
                tell(&mut reply, trouble.page());
            }
        }
    }
}

/// Tells a client what is wrong, and the log why.
pub fn refuse(look: &Looking<'_>, trouble: &Trouble, reply: Reply) {
    look.portal.note(trouble);
    reply.send(trouble.page());
}

/// To the address of the capture that was found.
pub fn to_exact(look: &Looking<'_>, at: &At, capture: &Capture) -> Answer {
    let (scope, digits) = (look.scope.name(), time::digits(capture.time_ms));
    let mut answer = answer::redirect(StatusCode::FOUND, &format!("/{scope}/{digits}{}/{}", at.modifier, at.url));
    let headers = answer.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

/// Of captures made in one second, the one that is about exactly this URL; then one that is no redirect.
pub fn pick(found: impl Iterator<Item = Result<Capture, Trouble>>, url: &str) -> Result<Option<Capture>, Trouble> {
    let wanted = Url::parse(url).ok();
    let rank = |capture: &Capture| {
        let exact = capture.url == url || wanted.is_some() && Url::parse(&capture.url).ok() == wanted;
        (!exact, (300..400).contains(&capture.status))
    };
    let mut best: Option<Capture> = None;
    for capture in found.take(STEPS_ASIDE_MAX) {
        let capture = capture?;
        match &best {
            Some(first) if first.time_ms.div_euclid(1000) != capture.time_ms.div_euclid(1000) => break,
            Some(first) if rank(first) <= rank(&capture) => {}
            _ => best = Some(capture),
        }
    }
    Ok(best)
}

/// What a capture is shown with.
pub struct Shown<'a> {
    /// The status it was answered with then.
    pub status: StatusCode,
    /// The head of that answer; none for a document that was put into the archive without one.
    pub head: Option<&'a Head>,
    /// The head that came with the body: that of the original, where the capture is a revisit.
    pub body_head: Option<&'a Head>,
    /// The media type, with its parameters.
    pub media_type: String,
}

/// Opens a capture, and for a revisit the one that it stands for. A failure gives back what was to be done with it.
pub fn open<T, F>(look: &Looking<'_>, capture: &Capture, with: F) -> Result<T, Trouble>
where
    F: FnOnce(&Shown<'_>, Source<'_>) -> Result<T, Trouble>,
{
    let portal = look.portal;
    if capture.kind != CaptureKind::Revisit {
        return message::open(portal, capture, |head, source| with(&shown(capture, None, head.as_ref()), source));
    }
    let (head, named) = message::open(portal, capture, |head, source| Ok((head, find::named(source.record_head()))))?;
    let visible = |original: &Capture| look.portal.access.shows(original, look.may, look.now_ms);
    let original = find::original(portal, capture, named.as_ref(), visible)?.ok_or_else(|| {
        Trouble::missing("Nothing had changed when this was fetched, and the earlier capture that it refers to is not in this archive.")
    })?;
    // What the server said this time, unless that was only that nothing changed.
    let head = head.filter(|head| head.status().is_some_and(|status| status != 304));
    message::open(portal, &original, |body_head, source| {
        let shown = shown(&original, head.as_ref(), body_head.as_ref());
        with(&shown, source)
    })
}

fn shown<'a>(capture: &Capture, head: Option<&'a Head>, body_head: Option<&'a Head>) -> Shown<'a> {
    let head = head.or(body_head);
    let status = head.and_then(Head::status).unwrap_or(200);
    // Interim answers cannot stand alone; a status that is none is taken for 200, as browsers do.
    let status = if status < 200 { 200 } else { status };
    let declared = head.and_then(Head::content_type).map(|value| String::from_utf8_lossy(value).trim().to_owned());
    let media_type = match (head, declared) {
        (_, Some(declared)) if !declared.is_empty() => declared,
        (None, _) => capture.mime.clone(),
        _ => String::new(),
    };
    Shown { status: StatusCode::from_u16(status).unwrap_or(StatusCode::OK), head, body_head, media_type }
}

/// The body without its transfer encoding.
pub fn payload<'s>(head: Option<&'s Head>, source: &'s mut (dyn BufRead + 's)) -> Box<dyn BufRead + 's> {
    match head {
        Some(head) => Box::new(Payload::new(head, source)),
        None => Box::new(source),
    }
}

/// Reads up to a bound; says whether that was all.
pub fn read_whole(body: &mut dyn BufRead, bytes_max: usize) -> Result<(Vec<u8>, bool), Trouble> {
    let mut whole = Vec::new();
    body.take(bytes_max as u64 + 1).read_to_end(&mut whole).map_err(|error| Trouble::reading(&error))?;
    let all = whole.len() <= bytes_max;
    Ok((whole, all))
}

/// Delivers a capture's body as it came, without its transfer encoding, whole or in part, under the head that `head` makes. An error
/// leaves `reply` to be told of it.
pub fn deliver(
    look: &Looking<'_>,
    capture: &Capture,
    visit: &Visit,
    reply: &mut Option<Reply>,
    head: &dyn Fn(&Shown<'_>) -> Answer,
) -> Result<(), Trouble> {
    Exact { look, capture, visit, head }.deliver(reply)
}

/// One capture on its way out.
struct Exact<'a> {
    look: &'a Looking<'a>,
    capture: &'a Capture,
    visit: &'a Visit,
    head: &'a dyn Fn(&Shown<'_>) -> Answer,
}

/// How a first look at a body ended.
enum Seen {
    /// All of it.
    Whole(Answer, Vec<u8>),
    /// It was streamed.
    Sent,
    /// It is long and only a part of it is wanted.
    Long(Answer, u64),
}

/// The head of an answer with the modifier `id_`.
fn raw_head(look: &Looking<'_>, capture: &Capture, visit: &Visit, shown: &Shown<'_>) -> Answer {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = shown.status;
    let headers = answer.headers_mut();
    if let Some(head) = shown.head {
        headers::hand_on(head, false, headers);
    }
    // The body is the original's: so is the way it is encoded.
    let coding = shown.body_head.and_then(|head| head.header("content-encoding"));
    if let Some(coding) = coding.and_then(|value| HeaderValue::from_bytes(value).ok()) {
        headers.insert(header::CONTENT_ENCODING, coding);
    }
    let media_type = if shown.media_type.is_empty() { "application/octet-stream" } else { &shown.media_type };
    headers.insert(header::CONTENT_TYPE, answer::value(media_type));
    if headers::is_active(media_type) {
        headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    }
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Some(to) = shown.head.and_then(|head| redirected(head, &capture.url)) {
        let (scope, digits) = (look.scope.name(), time::digits(capture.time_ms));
        headers.insert(header::LOCATION, answer::location(&format!("/{scope}/{digits}id_/{to}")));
    }
    memento::describe(headers, &visit.base, look.scope, capture);
    answer
}

impl Exact<'_> {
    fn deliver(&self, reply: &mut Option<Reply>) -> Result<(), Trouble> {
        let first = open(self.look, self.capture, |shown, mut source| {
            let head = (self.head)(shown);
            let mut body = payload(shown.body_head, &mut source);
            let (whole, all) = read_whole(&mut body, WHOLE_BODY_BYTES_MAX)?;
            if all {
                drop(body);
                source.end()?;
                return Ok(Seen::Whole(head, whole));
            }
            let partial = self.visit.range.is_some() && head.status() == StatusCode::OK;
            if partial {
                let rest = std::io::copy(&mut body, &mut std::io::sink()).map_err(|error| Trouble::reading(&error))?;
                return Ok(Seen::Long(head, whole.len() as u64 + rest));
            }
            let Some(reply) = reply.take() else { return Ok(Seen::Sent) };
            if self.visit.head_only {
                reply.send(head);
                return Ok(Seen::Sent);
            }
            let sink = self.stream(reply, head, &whole, &mut body, u64::MAX);
            drop(body);
            if let Some(sink) = sink {
                finish(self.look, source, sink);
            }
            Ok(Seen::Sent)
        })?;
        match first {
            Seen::Whole(head, whole) => tell(reply, self.part(head, whole)),
            Seen::Long(head, length) => self.long_part(head, length, reply)?,
            Seen::Sent => {}
        }
        Ok(())
    }

    /// All of a body that is at hand, or the part of it that is wanted.
    fn part(&self, head: Answer, whole: Vec<u8>) -> Answer {
        let length = whole.len() as u64;
        let wanted = if head.status() == StatusCode::OK {
            range::wanted(self.visit.range.as_deref(), length)
        } else {
            Wanted::Whole
        };
        let bytes = Bytes::from(whole);
        let (mut head, bytes) = match wanted {
            Wanted::Whole => (head, bytes),
            Wanted::Part { first, last } => {
                (partial(head, first, last, length), bytes.slice(first as usize..last as usize + 1))
            }
            Wanted::Unsatisfiable => (unsatisfiable(length), Bytes::new()),
        };
        head.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(bytes.len()));
        head.map(|_| Body::from(bytes))
    }

    /// A part of a long body: read once more, from the beginning.
    fn long_part(&self, head: Answer, length: u64, reply: &mut Option<Reply>) -> Result<(), Trouble> {
        let (mut head, first, last) = match range::wanted(self.visit.range.as_deref(), length) {
            Wanted::Unsatisfiable => {
                tell(reply, unsatisfiable(length));
                return Ok(());
            }
            Wanted::Whole => (head, 0, length - 1),
            Wanted::Part { first, last } => (partial(head, first, last, length), first, last),
        };
        head.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(last - first + 1));
        if self.visit.head_only {
            tell(reply, head);
            return Ok(());
        }
        open(self.look, self.capture, |shown, mut source| {
            let mut body = payload(shown.body_head, &mut source);
            let skipped = std::io::copy(&mut (&mut body).take(first), &mut std::io::sink());
            skipped.map_err(|error| Trouble::reading(&error))?;
            if let Some(reply) = reply.take() {
                let sink = self.stream(reply, head, &[], &mut body, last - first + 1);
                // Whoever hung up does not miss the end.
                let _hung_up = sink.map(Sink::end);
            }
            Ok(())
        })
    }

    /// Sends what was read and what follows, up to so many bytes of it. What is left to do is to end it.
    fn stream(&self, reply: Reply, head: Answer, begun: &[u8], body: &mut dyn BufRead, left: u64) -> Option<Sink> {
        let mut sink = reply.begin(head);
        sink.write(begun).ok()?;
        pour(self.look, body, sink, left)
    }
}

/// Sends a body, up to so many bytes of it; `None` if it broke off.
pub fn pour(look: &Looking<'_>, body: &mut dyn BufRead, mut sink: Sink, mut left: u64) -> Option<Sink> {
    loop {
        let here = match body.fill_buf() {
            Ok(here) => here,
            Err(error) => {
                look.portal.note(&Trouble::reading(&error));
                sink.cut(error);
                return None;
            }
        };
        let count = here.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if count == 0 {
            return Some(sink);
        }
        sink.write(&here[..count]).ok()?;
        left -= count as u64;
        body.consume(count);
    }
}

/// Ends an answer whose body was read to its end: with the end, or cut off if not all of it was there.
pub fn finish(look: &Looking<'_>, source: Source<'_>, sink: Sink) {
    match source.end() {
        Ok(()) => drop(sink.end()),
        Err(trouble) => {
            look.portal.note(&trouble);
            sink.cut(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the record is not whole"));
        }
    }
}

fn partial(mut head: Answer, first: u64, last: u64, length: u64) -> Answer {
    *head.status_mut() = StatusCode::PARTIAL_CONTENT;
    head.headers_mut().insert(header::CONTENT_RANGE, answer::value(&format!("bytes {first}-{last}/{length}")));
    head
}

fn unsatisfiable(length: u64) -> Answer {
    let mut answer = answer::text(StatusCode::RANGE_NOT_SATISFIABLE, &format!("the body has {length} bytes"));
    answer.headers_mut().insert(header::CONTENT_RANGE, answer::value(&format!("bytes */{length}")));
    answer
}

/// Where an archived answer leads.
pub fn redirected(head: &Head, from: &str) -> Option<String> {
    if !head.status().is_some_and(|status| (300..400).contains(&status)) {
        return None;
    }
    let to = String::from_utf8_lossy(head.header("location")?).trim().to_owned();
    let base = Url::parse(from).ok()?;
    base.join(&to).ok().map(|url| url.as_str().to_owned())
}
