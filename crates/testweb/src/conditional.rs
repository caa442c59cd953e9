//! From an answer and the conditions of a request to what is sent: RFC 9110, sections 13 (conditional requests) and 14
//! (ranges), and the choice of an encoding. Pure.

use std::io::Write as _;

use flate2::{Compression, GzBuilder};
use http::header::{self, HeaderMap, HeaderName};
use http::{Method, StatusCode};

use crate::answer::{Answer, Body};
use crate::clock::Time;
use crate::media;

/// What is sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Reply {
    /// Status.
    pub status: u16,
    /// Headers in the order they are sent.
    pub headers: Vec<(HeaderName, String)>,
    /// Body; nothing for HEAD, though its length is told.
    pub body: Body,
}

/// Texts shorter than this are not worth compressing.
const GZIP_BYTES_MIN: u64 = 256;

/// Applies the conditions of a request to an answer. `gzip`: this host compresses.
pub fn reply(method: &Method, request: &HeaderMap, answer: Answer, gzip: bool, now: Time) -> Reply {
    if method != Method::GET && method != Method::HEAD {
        let mut refused = finish(Answer::status(405), Vec::new(), false, now);
        refused.headers.push((header::ALLOW, "GET, HEAD".into()));
        return refused;
    }
    let head = method == Method::HEAD;
    let (answer, mut more) = encode(answer, request, gzip);
    if answer.status != 200 {
        return finish(answer, more, head, now);
    }
    match judge(request, &answer) {
        Judged::Failed => return finish(Answer::status(412), Vec::new(), head, now),
        Judged::NotModified => {
            let unchanged = Answer { status: 304, media_type: None, body: Body::Bytes(bytes::Bytes::new()), ..answer };
            return finish(unchanged, more, head, now);
        }
        Judged::Send => {}
    }
    more.push((header::ACCEPT_RANGES, "bytes".into()));
    // A range of a text that is compressed on the way would be a range of something nobody keeps.
    let encoded = more.iter().any(|(name, _)| name == header::CONTENT_ENCODING);
    let total = answer.body.len();
    match wanted_range(request, &answer).filter(|_| !encoded && !head) {
        None => finish(answer, more, head, now),
        Some(range) => match range.within(total) {
            None => {
                more.push((header::CONTENT_RANGE, format!("bytes */{total}")));
                finish(
                    Answer { etag: answer.etag, last_modified: answer.last_modified, ..Answer::status(416) },
                    more,
                    head,
                    now,
                )
            }
            Some((first, last)) => {
                more.push((header::CONTENT_RANGE, format!("bytes {first}-{last}/{total}")));
                let body = part(&answer.body, first, last - first + 1);
                finish(Answer { status: 206, body, ..answer }, more, head, now)
            }
        },
    }
}

fn finish(answer: Answer, more: Vec<(HeaderName, String)>, head: bool, now: Time) -> Reply {
    // A file may be newer than a virtual moment, and no answer may be older than what it brings.
    let date = answer.last_modified.map_or(now, |modified| modified.max(now));
    let mut headers = vec![(header::DATE, date.http()), (header::SERVER, "skep-testweb".into())];
    headers.extend(answer.media_type.map(|media_type| (header::CONTENT_TYPE, media_type)));
    headers.extend(answer.last_modified.map(|modified| (header::LAST_MODIFIED, modified.http())));
    headers.extend(answer.etag.map(|etag| (header::ETAG, etag)));
    headers.extend(answer.location.map(|location| (header::LOCATION, location)));
    let retry_after = answer.retry_after_seconds.map(|seconds| match answer.retry_after_as_date {
        true => now.plus_ms(i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX)).http(),
        false => seconds.to_string(),
    });
    headers.extend(retry_after.map(|value| (header::RETRY_AFTER, value)));
    headers.extend(more);
    if answer.status != StatusCode::NOT_MODIFIED.as_u16() {
        headers.push((header::CONTENT_LENGTH, answer.body.len().to_string()));
    }
    let body = if head { Body::Bytes(bytes::Bytes::new()) } else { answer.body };
    Reply { status: answer.status, headers, body }
}

fn encode(mut answer: Answer, request: &HeaderMap, gzip: bool) -> (Answer, Vec<(HeaderName, String)>) {
    let text = answer.media_type.as_deref().is_some_and(media::is_text);
    let Body::Bytes(body) = &answer.body else {
        return (answer, Vec::new());
    };
    if !gzip || !text || answer.status != 200 || answer.body.len() < GZIP_BYTES_MIN {
        return (answer, Vec::new());
    }
    let mut headers = vec![(header::VARY, "accept-encoding".to_string())];
    if accepts_gzip(request) && !request.contains_key(header::RANGE) {
        let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::fast());
        encoder.write_all(body).expect("a Vec takes everything");
        answer.body = Body::Bytes(encoder.finish().expect("a Vec takes everything").into());
        // Another encoding is another entity, so it needs another tag.
        answer.etag = answer.etag.map(|etag| format!("{}-gzip\"", etag.trim_end_matches('"')));
        headers.push((header::CONTENT_ENCODING, "gzip".into()));
    }
    (answer, headers)
}

fn accepts_gzip(request: &HeaderMap) -> bool {
    let mut any = None;
    for coding in list(request, header::ACCEPT_ENCODING) {
        let mut fields = coding.split(';').map(str::trim);
        let name = fields.next().unwrap_or_default().to_ascii_lowercase();
        let refused = fields
            .any(|field| field.strip_prefix("q=").is_some_and(|q| q.trim().parse::<f32>().is_ok_and(|q| q <= 0.0)));
        match name.as_str() {
            "gzip" | "x-gzip" => return !refused,
            "*" => any = Some(!refused),
            _ => {}
        }
    }
    any.unwrap_or(false)
}

/// The members of a header that is a list, over all its lines.
fn list(request: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let lines = request.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|member| !member.is_empty())
}

fn one(request: &HeaderMap, name: HeaderName) -> Option<&str> {
    request.get(name)?.to_str().ok().map(str::trim)
}

enum Judged {
    Send,
    NotModified,
    Failed,
}

/// The order of section 13.2.2.
fn judge(request: &HeaderMap, answer: &Answer) -> Judged {
    let modified = answer.last_modified.map(Time::seconds);
    let date = |name| one(request, name).and_then(Time::from_http).map(Time::seconds);
    if request.contains_key(header::IF_MATCH) {
        if !list(request, header::IF_MATCH).any(|tag| tag == "*" || strong_match(tag, answer)) {
            return Judged::Failed;
        }
    } else if let (Some(modified), Some(date)) = (modified, date(header::IF_UNMODIFIED_SINCE))
        && modified > date
    {
        return Judged::Failed;
    }
    if request.contains_key(header::IF_NONE_MATCH) {
        if list(request, header::IF_NONE_MATCH).any(|tag| tag == "*" || weak_match(tag, answer)) {
            return Judged::NotModified;
        }
    } else if let (Some(modified), Some(date)) = (modified, date(header::IF_MODIFIED_SINCE))
        && modified <= date
    {
        return Judged::NotModified;
    }
    Judged::Send
}

fn strong_match(tag: &str, answer: &Answer) -> bool {
    !tag.starts_with("W/") && answer.etag.as_deref() == Some(tag)
}

fn weak_match(tag: &str, answer: &Answer) -> bool {
    answer.etag.as_deref() == Some(tag.strip_prefix("W/").unwrap_or(tag))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Range {
    From(u64, Option<u64>),
    Last(u64),
}

impl Range {
    /// First and last byte of a body of this length; `None` when nothing of it is there.
    fn within(self, total: u64) -> Option<(u64, u64)> {
        match self {
            Range::From(first, last) if first < total => Some((first, last.unwrap_or(u64::MAX).min(total - 1))),
            Range::Last(count) if count > 0 && total > 0 => Some((total.saturating_sub(count), total - 1)),
            _ => None,
        }
    }
}

/// The one range asked for, if it is to be honoured. Several ranges, other units and broken ones are ignored, as
/// section 14.2 allows.
fn wanted_range(request: &HeaderMap, answer: &Answer) -> Option<Range> {
    let text = one(request, header::RANGE)?;
    let number = |digits: &str| digits.parse::<u64>().ok().filter(|_| digits.bytes().all(|d| d.is_ascii_digit()));
    let (first, last) = text.strip_prefix("bytes=")?.trim().split_once('-')?;
    let range = match (first, last) {
        ("", count) => Range::Last(number(count)?),
        (first, "") => Range::From(number(first)?, None),
        (first, last) => Range::From(number(first)?, Some(number(last)?)),
    };
    if matches!(range, Range::From(first, Some(last)) if last < first) {
        return None;
    }
    match one(request, header::IF_RANGE) {
        None => Some(range),
        Some(tag) if tag.starts_with('"') => strong_match(tag, answer).then_some(range),
        Some(date) => {
            let modified = answer.last_modified.map(Time::seconds)?;
            Time::from_http(date).filter(|date| date.seconds() == modified).map(|_| range)
        }
    }
}

fn part(body: &Body, first: u64, length: u64) -> Body {
    match body {
        Body::Bytes(bytes) => Body::Bytes(bytes.slice(first as usize..(first + length) as usize)),
        Body::File { path, offset, .. } => Body::File { path: path.clone(), offset: offset + first, bytes: length },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINCE: Time = Time::from_seconds(784_111_777);

    fn ask(lines: &[(&str, &str)]) -> Reply {
        ask_for("text/plain", "0123456789", lines)
    }

    fn ask_for(media_type: &str, body: &str, lines: &[(&str, &str)]) -> Reply {
        let mut request = HeaderMap::new();
        for (name, value) in lines {
            request.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        let mut answer = Answer::found(media_type, body.to_string(), SINCE);
        answer.etag = Some("\"a\"".into());
        reply(&Method::GET, &request, answer, true, Time::BEGIN)
    }

    fn body(reply: &Reply) -> String {
        String::from_utf8(crate::truth::read(&reply.body).unwrap()).unwrap()
    }

    fn header_of<'r>(reply: &'r Reply, name: &str) -> Option<&'r str> {
        reply.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn conditions_are_judged_in_their_order() {
        let (day, before) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:36 GMT");
        for (lines, status) in [
            (&[("if-none-match", "\"a\"")][..], 304),
            (&[("if-none-match", "W/\"a\"")], 304),
            (&[("if-none-match", "\"x\", \"a\"")], 304),
            (&[("if-none-match", "\"x\""), ("if-none-match", "*")], 304),
            (&[("if-none-match", "\"x\""), ("if-modified-since", day)], 200),
            (&[("if-modified-since", day)], 304),
            (&[("if-modified-since", "Sunday, 06-Nov-94 08:49:37 GMT")], 304),
            (&[("if-modified-since", before)], 200),
            (&[("if-modified-since", "yesterday")], 200),
            (&[("if-match", "\"x\"")], 412),
            (&[("if-match", "W/\"a\"")], 412),
            (&[("if-match", "\"a\""), ("if-none-match", "\"a\"")], 304),
            (&[("if-unmodified-since", before)], 412),
            (&[("if-unmodified-since", day)], 200),
        ] {
            assert_eq!(ask(lines).status, status, "{lines:?}");
        }
        let unchanged = ask(&[("if-none-match", "\"a\"")]);
        assert_eq!((header_of(&unchanged, "etag"), header_of(&unchanged, "content-length")), (Some("\"a\""), None));
    }

    #[test]
    fn ranges() {
        for (range, status, part, told) in [
            ("bytes=2-4", 206, "234", Some("bytes 2-4/10")),
            ("bytes=7-", 206, "789", Some("bytes 7-9/10")),
            ("bytes=-3", 206, "789", Some("bytes 7-9/10")),
            ("bytes=-30", 206, "0123456789", Some("bytes 0-9/10")),
            ("bytes=8-99999999999", 206, "89", Some("bytes 8-9/10")),
            ("bytes=4-2", 200, "0123456789", None),
            ("bytes=0-1,3-4", 200, "0123456789", None),
            ("lines=0-1", 200, "0123456789", None),
            ("bytes=+1-2", 200, "0123456789", None),
        ] {
            let reply = ask(&[("range", range)]);
            assert_eq!((reply.status, body(&reply).as_str(), header_of(&reply, "content-range")), (status, part, told));
        }
        for range in ["bytes=10-", "bytes=-0"] {
            let reply = ask(&[("range", range)]);
            assert_eq!((reply.status, header_of(&reply, "content-range")), (416, Some("bytes */10")));
        }
        assert_eq!(ask(&[("range", "bytes=1-1"), ("if-range", "\"a\"")]).status, 206);
        assert_eq!(ask(&[("range", "bytes=1-1"), ("if-range", "\"x\"")]).status, 200);
        assert_eq!(ask(&[("range", "bytes=1-1"), ("if-range", "Sun, 06 Nov 1994 08:49:37 GMT")]).status, 206);
        assert_eq!(ask(&[("range", "bytes=1-1"), ("if-range", "Sun, 06 Nov 1994 08:49:38 GMT")]).status, 200);
    }

    #[test]
    fn compression_is_another_entity() {
        let text = "x".repeat(1_000);
        let packed = ask_for("text/html", &text, &[("accept-encoding", "br, gzip;q=0.5")]);
        assert_eq!(header_of(&packed, "content-encoding"), Some("gzip"));
        assert_eq!(header_of(&packed, "etag"), Some("\"a-gzip\""));
        assert!(packed.body.len() < 100);
        for accepted in ["gzip;q=0", "br", "*;q=0", ""] {
            let plain = ask_for("text/html", &text, &[("accept-encoding", accepted)]);
            assert_eq!(header_of(&plain, "content-encoding"), None, "{accepted}");
            assert_eq!(header_of(&plain, "vary"), Some("accept-encoding"));
        }
        assert_eq!(header_of(&ask_for("image/png", &text, &[("accept-encoding", "gzip")]), "content-encoding"), None);
        let again = ask_for("text/html", &text, &[("accept-encoding", "gzip"), ("if-none-match", "\"a-gzip\"")]);
        assert_eq!(again.status, 304);
        assert_eq!(ask_for("text/html", &text, &[("accept-encoding", "gzip"), ("if-none-match", "\"a\"")]).status, 200);
    }

    #[test]
    fn head_tells_the_length_and_others_are_refused() {
        let answer = Answer::found("text/plain", "0123456789", SINCE);
        let head = reply(&Method::HEAD, &HeaderMap::new(), answer.clone(), false, Time::BEGIN);
        assert_eq!((head.body.len(), header_of(&head, "content-length")), (0, Some("10")));
        let post = reply(&Method::POST, &HeaderMap::new(), answer, false, Time::BEGIN);
        assert_eq!((post.status, header_of(&post, "allow")), (405, Some("GET, HEAD")));
    }
}
