//! What the standard asks of a head (ISO 28500, WARC 1.0 and 1.1, section 5 and 6): which fields each type must, may and must not have,
//! and the form of their values.

use crate::date;
use crate::finding::{Findings, Rule};
use crate::head::{Head, RecordKind, Version, trim};
use RecordKind::*;

struct Judge<'a> {
    head: &'a Head,
    offset: u64,
    number: u64,
    findings: &'a mut Findings,
}

/// Holds a head against the standard.
pub(crate) fn check_head(head: &Head, offset: u64, number: u64, findings: &mut Findings) {
    let mut judge = Judge { head, offset, number, findings };
    if head.is_arc() {
        judge.arc();
        return;
    }
    judge.mandatory();
    judge.presence();
    judge.forms();
    judge.segments();
    judge.content_type();
}

/// Types whose records must not, and must, have a field; `None` in the second: no type must.
const PRESENCE: &[(&str, &[RecordKind], &[RecordKind])] = &[
    ("WARC-Target-URI", &[Warcinfo], &[Response, Resource, Request, Revisit, Conversion, Continuation]),
    ("WARC-Concurrent-To", &[Warcinfo, Conversion, Continuation], &[]),
    ("WARC-IP-Address", &[Warcinfo, Conversion, Continuation], &[]),
    ("WARC-Refers-To", &[Warcinfo, Response, Resource, Request, Continuation], &[]),
    ("WARC-Refers-To-Target-URI", &[Warcinfo, Response, Resource, Request, Continuation, Metadata, Conversion], &[]),
    ("WARC-Refers-To-Date", &[Warcinfo, Response, Resource, Request, Continuation, Metadata, Conversion], &[]),
    ("WARC-Warcinfo-ID", &[Warcinfo], &[]),
    ("WARC-Filename", &[Response, Resource, Request, Metadata, Revisit, Conversion, Continuation], &[]),
    ("WARC-Profile", &[], &[Revisit]),
    (
        "WARC-Segment-Origin-ID",
        &[Warcinfo, Response, Resource, Request, Metadata, Revisit, Conversion],
        &[Continuation],
    ),
    ("WARC-Segment-Number", &[], &[Continuation]),
    ("WARC-Segment-Total-Length", &[Warcinfo, Response, Resource, Request, Metadata, Revisit, Conversion], &[]),
];

/// Fields that may stand more than once.
const REPEATABLE: &[&str] = &["WARC-Concurrent-To", "WARC-Protocol"];

const DEFINED: &[&str] = &[
    "WARC-Type",
    "WARC-Record-ID",
    "WARC-Date",
    "Content-Length",
    "Content-Type",
    "WARC-Concurrent-To",
    "WARC-Block-Digest",
    "WARC-Payload-Digest",
    "WARC-IP-Address",
    "WARC-Refers-To",
    "WARC-Refers-To-Target-URI",
    "WARC-Refers-To-Date",
    "WARC-Target-URI",
    "WARC-Truncated",
    "WARC-Warcinfo-ID",
    "WARC-Filename",
    "WARC-Profile",
    "WARC-Identified-Payload-Type",
    "WARC-Segment-Origin-ID",
    "WARC-Segment-Number",
    "WARC-Segment-Total-Length",
];

impl Judge<'_> {
    fn say(&mut self, rule: Rule, detail: impl Into<String>) {
        self.findings.push(rule, self.offset, Some(self.number), detail);
    }

    fn about(&mut self, rule: Rule, name: &str, value: &[u8]) {
        self.say(rule, format!("{name}: {}", String::from_utf8_lossy(value)));
    }

    fn mandatory(&mut self) {
        for name in ["WARC-Type", "WARC-Record-ID", "WARC-Date"] {
            if self.head.get(name).is_none() {
                self.say(Rule::FieldMissing, name);
            }
        }
        for name in DEFINED {
            let values: Vec<&[u8]> = self.head.get_all(name).collect();
            if values.iter().any(|v| v.is_empty()) {
                self.say(Rule::FieldEmpty, *name);
            }
            if values.len() > 1 && !REPEATABLE.contains(name) {
                self.say(Rule::FieldRepeated, *name);
            }
        }
        if self.head.kind() == Other && self.head.get("WARC-Type").is_some_and(|t| !t.is_empty()) {
            let value = self.head.get("WARC-Type").unwrap_or_default().to_vec();
            self.about(Rule::TypeUnknown, "WARC-Type", &value);
        }
    }

    fn presence(&mut self) {
        let kind = self.head.kind();
        for (name, never, always) in PRESENCE {
            let there = self.head.get(name).is_some();
            if there && never.contains(&kind) {
                self.say(Rule::FieldNotAllowed, format!("{name} in {}", kind.name()));
            }
            if !there && always.contains(&kind) {
                self.say(Rule::FieldMissing, format!("{name} in {}", kind.name()));
            }
        }
        if self.head.get("WARC-Profile").is_some() && !matches!(kind, Revisit | Other) {
            self.say(Rule::FieldAdvised, format!("WARC-Profile in {}", kind.name()));
        }
    }

    fn forms(&mut self) {
        let latest = self.head.version() == Version::Warc(1, 1);
        for name in ["WARC-Date", "WARC-Refers-To-Date"] {
            let value = self.head.get(name).unwrap_or_default().to_vec();
            if !value.is_empty() && !date::is_w3c_utc(&value, latest) {
                self.about(Rule::DateInvalid, name, &value);
            }
        }
        for name in
            ["WARC-Record-ID", "WARC-Concurrent-To", "WARC-Refers-To", "WARC-Warcinfo-ID", "WARC-Segment-Origin-ID"]
        {
            let values: Vec<Vec<u8>> = self.head.get_all(name).filter(|v| !v.is_empty()).map(<[u8]>::to_vec).collect();
            for value in values {
                let inner = value.strip_prefix(b"<").and_then(|v| v.strip_suffix(b">"));
                if !inner.is_some_and(is_uri) {
                    self.about(Rule::UriInvalid, name, &value);
                }
            }
        }
        for name in ["WARC-Target-URI", "WARC-Refers-To-Target-URI", "WARC-Profile"] {
            let value = self.head.get(name).unwrap_or_default().to_vec();
            let inner = value.strip_prefix(b"<").and_then(|v| v.strip_suffix(b">")).unwrap_or(&value);
            if !value.is_empty() && !is_uri(inner) {
                self.about(Rule::UriInvalid, name, &value);
            }
        }
        let profile = self.head.get("WARC-Profile").unwrap_or_default().to_vec();
        let known =
            [&b"identical-payload-digest"[..], b"server-not-modified", b"uri-agnostic-identical-payload-digest"];
        if self.head.kind() == Revisit && !profile.is_empty() && !known.iter().any(|k| profile.ends_with(k)) {
            self.about(Rule::ProfileUnknown, "WARC-Profile", &profile);
        }
        let address = self.head.get("WARC-IP-Address").unwrap_or_default().to_vec();
        let parsed = std::str::from_utf8(&address).ok().and_then(|a| a.parse::<std::net::IpAddr>().ok());
        if !address.is_empty() && parsed.is_none() {
            self.about(Rule::AddressInvalid, "WARC-IP-Address", &address);
        }
        for name in ["WARC-Segment-Number", "WARC-Segment-Total-Length"] {
            let value = self.head.get(name).unwrap_or_default().to_vec();
            if !value.is_empty() && number(&value).is_none() {
                self.about(Rule::NumberInvalid, name, &value);
            }
        }
        let truncated = self.head.get("WARC-Truncated").unwrap_or_default().to_vec();
        if !truncated.is_empty() && !matches!(&truncated[..], b"length" | b"time" | b"disconnect" | b"unspecified") {
            self.about(Rule::FieldAdvised, "WARC-Truncated", &truncated);
        }
        for name in ["WARC-Block-Digest", "WARC-Payload-Digest"] {
            let value = self.head.get(name).unwrap_or_default().to_vec();
            if !value.is_empty() && !is_labelled_digest(&value) {
                self.about(Rule::DigestInvalid, name, &value);
            }
        }
    }

    fn segments(&mut self) {
        let Some(value) = self.head.get("WARC-Segment-Number").and_then(number) else { return };
        let fits = match self.head.kind() {
            Continuation => value > 1,
            Other => true,
            _ => value == 1,
        };
        if !fits {
            self.say(Rule::SegmentNumber, format!("{value} in {}", self.head.kind().name()));
        }
    }

    fn content_type(&mut self) {
        let kind = self.head.kind();
        let value = self.head.get("Content-Type").unwrap_or_default().to_vec();
        if value.is_empty() {
            if self.head.get("Content-Type").is_none()
                && self.head.content_length().is_some_and(|n| n > 0)
                && kind != Continuation
            {
                self.say(Rule::FieldAdvised, "Content-Type is missing");
            }
            return;
        }
        if kind == Continuation {
            self.say(Rule::FieldNotAllowed, "Content-Type in continuation");
        }
        if !is_media_type(&value) {
            self.about(Rule::ContentTypeInvalid, "Content-Type", &value);
            return;
        }
        let lower = value.to_ascii_lowercase();
        let media = trim(lower.split(|&b| b == b';').next().unwrap_or_default());
        let message = |name: &[u8]| {
            memchr::memmem::find(&lower, b"msgtype=").is_none_or(|at| {
                let after = &lower[at + 8..];
                after.strip_prefix(b"\"").unwrap_or(after).starts_with(name)
            })
        };
        let fits = match kind {
            Warcinfo => media == b"application/warc-fields",
            Request if media == b"application/http" => message(b"request"),
            Response if media == b"application/http" => message(b"response"),
            _ => true,
        };
        if !fits {
            self.about(Rule::ContentTypeUnexpected, "Content-Type", &value);
        }
    }

    fn arc(&mut self) {
        let date = self.head.date_text().unwrap_or_default().to_vec();
        if date.len() != 14 || date::parse_ms(&date).is_none() {
            self.about(Rule::DateInvalid, "Archive-date", &date);
        }
        if self.number == 0 && self.head.kind() != ArcHeader {
            self.say(Rule::ArcHeader, "the file does not begin with filedesc:");
        }
        let address = self.head.get("IP-address").unwrap_or_default().to_vec();
        if std::str::from_utf8(&address).ok().and_then(|a| a.parse::<std::net::IpAddr>().ok()).is_none() {
            self.about(Rule::AddressInvalid, "IP-address", &address);
        }
        let url = self.head.target_uri().unwrap_or_default().to_vec();
        if !is_uri(&url) {
            self.about(Rule::UriInvalid, "URL", &url);
        }
    }
}

fn number(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok().filter(|v| v.bytes().all(|b| b.is_ascii_digit())).and_then(|v| v.parse().ok())
}

/// A scheme, a colon, and something behind it without white space, control characters or characters no URI may hold.
fn is_uri(value: &[u8]) -> bool {
    let Some(colon) = value.iter().position(|&b| b == b':') else { return false };
    let (scheme, rest) = (&value[..colon], &value[colon + 1..]);
    scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
        && !rest.is_empty()
        && !rest.iter().any(|&b| b <= b' ' || b == 0x7f || matches!(b, b'<' | b'>' | b'"'))
}

/// `algorithm:value`; what the value is worth is decided when the digest is verified.
fn is_labelled_digest(value: &[u8]) -> bool {
    let Some(colon) = value.iter().position(|&b| b == b':') else { return false };
    let (label, digest) = (&value[..colon], &value[colon + 1..]);
    !label.is_empty() && !digest.is_empty() && !digest.iter().any(|b| b.is_ascii_whitespace() || b.is_ascii_control())
}

/// `type/subtype` and parameters.
fn is_media_type(value: &[u8]) -> bool {
    let token =
        |t: &[u8]| !t.is_empty() && t.iter().all(|b| b.is_ascii_graphic() && !br#"()<>@,;:\"/[]?="#.contains(b));
    let media = trim(value.split(|&b| b == b';').next().unwrap_or_default());
    let mut halves = media.splitn(2, |&b| b == b'/');
    halves.next().is_some_and(token) && halves.next().is_some_and(token)
}
