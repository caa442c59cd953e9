//! A record about to be written: its fields, checked as a whole.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::net::IpAddr;

use super::{Encoder, RecordId, WriteError, Written};
use crate::RecordKind;
use crate::date::is_w3c_utc;
use crate::digest::{Algorithm, BlockCheck, CheckedDigests, Digest, Payload};

const HTTP_RESPONSE: &str = "application/http;msgtype=response";
const HTTP_REQUEST: &str = "application/http;msgtype=request";
const WARC_FIELDS: &str = "application/warc-fields";

/// Fields that the writer computes or has a parameter for; they cannot be added by name.
const OWN_FIELDS: [&str; 8] = [
    "WARC-Type",
    "WARC-Record-ID",
    "WARC-Date",
    "WARC-Target-URI",
    "WARC-Block-Digest",
    "WARC-Payload-Digest",
    "Content-Type",
    "Content-Length",
];

/// Fields of the standard that may stand only once.
const SINGLE_FIELDS: [&str; 11] = [
    "WARC-Refers-To",
    "WARC-Refers-To-Target-URI",
    "WARC-Refers-To-Date",
    "WARC-IP-Address",
    "WARC-Truncated",
    "WARC-Warcinfo-ID",
    "WARC-Filename",
    "WARC-Profile",
    "WARC-Identified-Payload-Type",
    "WARC-Cipher-Suite",
    "WARC-Segment-Number",
];

/// Why a block is shorter than what was fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncated {
    /// Longer than the writer wanted.
    Length,
    /// It took too long.
    Time,
    /// The connection broke.
    Disconnect,
    /// Some other reason.
    Unspecified,
}

impl Truncated {
    /// The value of `WARC-Truncated`.
    pub fn name(self) -> &'static str {
        match self {
            Truncated::Length => "length",
            Truncated::Time => "time",
            Truncated::Disconnect => "disconnect",
            Truncated::Unspecified => "unspecified",
        }
    }
}

/// Why a capture is stored without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revisit {
    /// The payload is the one with this digest, stored before.
    IdenticalPayload(Digest),
    /// The server said so (304); the payload digest of the earlier capture, where it is known.
    ServerNotModified(Option<Digest>),
}

impl Revisit {
    fn profile(self) -> &'static str {
        match self {
            Revisit::IdenticalPayload(_) => "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest",
            Revisit::ServerNotModified(_) => "http://netpreserve.org/warc/1.1/revisit/server-not-modified",
        }
    }
}

/// A record about to be written. Fields are written in the order in which they were set.
#[derive(Debug, Clone)]
pub struct Record<'a> {
    kind: RecordKind,
    id: RecordId,
    date: String,
    target_uri: Option<String>,
    content_type: Cow<'static, str>,
    fields: Vec<(Cow<'static, str>, String)>,
    block: Cow<'a, [u8]>,
    algorithm: Option<Algorithm>,
    block_digest: Option<Digest>,
    payload_digest: Option<Digest>,
}

impl<'a> Record<'a> {
    fn new(
        kind: RecordKind,
        id: &RecordId,
        date: &str,
        content_type: &str,
        block: impl Into<Cow<'a, [u8]>>,
    ) -> Record<'a> {
        Record {
            kind,
            id: id.clone(),
            date: date.to_owned(),
            target_uri: None,
            content_type: Cow::Owned(content_type.to_owned()),
            fields: Vec::new(),
            block: block.into(),
            algorithm: Some(Algorithm::Sha1),
            block_digest: None,
            payload_digest: None,
        }
    }

    /// Describes the records that follow: software, operator, robots policy and the like, as names and values.
    pub fn warcinfo(id: &RecordId, date: &str, about: &[(&str, &str)]) -> Result<Record<'static>, WriteError> {
        let mut block = String::new();
        for (name, value) in about {
            check_field(name, value)?;
            let _ = write!(block, "{name}: {value}\r\n");
        }
        Ok(Record::new(RecordKind::Warcinfo, id, date, WARC_FIELDS, block.into_bytes()))
    }

    /// An HTTP request as it was sent.
    pub fn request(id: &RecordId, date: &str, uri: &str, message: impl Into<Cow<'a, [u8]>>) -> Record<'a> {
        Record::new(RecordKind::Request, id, date, HTTP_REQUEST, message).target_uri(uri)
    }

    /// An HTTP response as it came. For other protocols change [`content_type`](Self::content_type).
    pub fn response(id: &RecordId, date: &str, uri: &str, message: impl Into<Cow<'a, [u8]>>) -> Record<'a> {
        Record::new(RecordKind::Response, id, date, HTTP_RESPONSE, message).target_uri(uri)
    }

    /// A capture whose payload is stored elsewhere; `head` is the HTTP head that came this time.
    ///
    /// Say where the payload is with [`refers_to_target_uri`](Self::refers_to_target_uri) and
    /// [`refers_to_date`](Self::refers_to_date): replay finds it by these.
    pub fn revisit(id: &RecordId, date: &str, uri: &str, why: Revisit, head: impl Into<Cow<'a, [u8]>>) -> Record<'a> {
        let mut record = Record::new(RecordKind::Revisit, id, date, HTTP_RESPONSE, head).target_uri(uri);
        record.payload_digest = match why {
            Revisit::IdenticalPayload(digest) => Some(digest),
            Revisit::ServerNotModified(digest) => digest,
        };
        record.with("WARC-Profile", why.profile())
    }

    /// About another record ([`refers_to`](Self::refers_to), [`concurrent_to`](Self::concurrent_to)) or a URI.
    pub fn metadata(id: &RecordId, date: &str, content_type: &str, block: impl Into<Cow<'a, [u8]>>) -> Record<'a> {
        Record::new(RecordKind::Metadata, id, date, content_type, block)
    }

    /// A file that no protocol wraps.
    pub fn resource(
        id: &RecordId,
        date: &str,
        uri: &str,
        content_type: &str,
        block: impl Into<Cow<'a, [u8]>>,
    ) -> Record<'a> {
        Record::new(RecordKind::Resource, id, date, content_type, block).target_uri(uri)
    }

    /// Another form of the record that [`refers_to`](Self::refers_to) names.
    pub fn conversion(
        id: &RecordId,
        date: &str,
        uri: &str,
        content_type: &str,
        block: impl Into<Cow<'a, [u8]>>,
    ) -> Record<'a> {
        Record::new(RecordKind::Conversion, id, date, content_type, block).target_uri(uri)
    }

    fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.fields.push((Cow::Borrowed(name), value.to_string()));
        self
    }

    /// The URI that was captured, as it was fetched.
    pub fn target_uri(mut self, uri: &str) -> Self {
        self.target_uri = Some(uri.to_owned());
        self
    }

    /// Media type of the block, where it is not the usual one of the type of record.
    pub fn content_type(mut self, content_type: &str) -> Self {
        self.content_type = Cow::Owned(content_type.to_owned());
        self
    }

    /// A record of the same exchange. May be repeated.
    pub fn concurrent_to(self, id: &RecordId) -> Self {
        self.with("WARC-Concurrent-To", id)
    }

    /// Address of the server.
    pub fn ip_address(self, address: IpAddr) -> Self {
        self.with("WARC-IP-Address", address)
    }

    /// A protocol in use, such as `h2` or `tls/1.3`. May be repeated.
    pub fn protocol(self, protocol: &str) -> Self {
        self.with("WARC-Protocol", protocol)
    }

    /// The TLS cipher suite.
    pub fn cipher_suite(self, suite: &str) -> Self {
        self.with("WARC-Cipher-Suite", suite)
    }

    /// The block is not all there was.
    pub fn truncated(self, why: Truncated) -> Self {
        self.with("WARC-Truncated", why.name())
    }

    /// The record that this one is about.
    pub fn refers_to(self, id: &RecordId) -> Self {
        self.with("WARC-Refers-To", id)
    }

    /// Target of the record that this one is about.
    pub fn refers_to_target_uri(self, uri: &str) -> Self {
        self.with("WARC-Refers-To-Target-URI", uri)
    }

    /// Date of the record that this one is about.
    pub fn refers_to_date(self, date: &str) -> Self {
        self.with("WARC-Refers-To-Date", date)
    }

    /// The warcinfo record that describes this one.
    pub fn warcinfo_id(self, id: &RecordId) -> Self {
        self.with("WARC-Warcinfo-ID", id)
    }

    /// Name of the file, for a warcinfo record.
    pub fn filename(self, name: &str) -> Self {
        self.with("WARC-Filename", name)
    }

    /// Media type of the payload as found by looking at it.
    pub fn identified_payload_type(self, media_type: &str) -> Self {
        self.with("WARC-Identified-Payload-Type", media_type)
    }

    /// Any further field.
    pub fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((Cow::Owned(name.to_owned()), value.to_owned()));
        self
    }

    /// Digests are computed with this algorithm instead of SHA-1.
    pub fn digest_algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = Some(algorithm);
        self
    }

    /// No digests are computed; those given are still written.
    pub fn without_digests(mut self) -> Self {
        self.algorithm = None;
        self
    }

    /// The block's digest, where it is known.
    pub fn block_digest(mut self, digest: Digest) -> Self {
        self.block_digest = Some(digest);
        self
    }

    /// The payload's digest, where it is known.
    pub fn payload_digest(mut self, digest: Digest) -> Self {
        self.payload_digest = Some(digest);
        self
    }

    /// Appends the record to `out`. On an error nothing is appended.
    pub fn encode(&self, encoder: &mut Encoder, out: &mut Vec<u8>) -> Result<Written, WriteError> {
        self.check()?;
        let digests = self.needs_digests().map(|algorithm| {
            let mut check = BlockCheck::compute(algorithm, self.payload());
            check.update(&self.block);
            check.finish()
        });
        let head = self.head(self.block.len() as u64, digests.as_ref())?;
        Ok(encoder.raw_record(&head, &self.block, out))
    }

    /// Where the payload is.
    pub(super) fn payload(&self) -> Payload {
        let http = self.content_type.trim_start().to_ascii_lowercase().starts_with("application/http");
        match self.kind {
            RecordKind::Request if http => Payload::HttpRequest,
            RecordKind::Response if http => Payload::HttpResponse,
            _ => Payload::Block,
        }
    }

    fn carries_payload_digest(&self) -> bool {
        use RecordKind::{Conversion, Request, Resource, Response};
        matches!(self.kind, Request | Response | Resource | Conversion)
    }

    /// The algorithm to compute with, unless all digests are there or none is wanted.
    pub(super) fn needs_digests(&self) -> Option<Algorithm> {
        let payload_missing = self.carries_payload_digest() && self.payload_digest.is_none();
        self.algorithm.filter(|_| self.block_digest.is_none() || payload_missing)
    }

    /// Everything that can be wrong with a record before a byte is written.
    pub(super) fn check(&self) -> Result<(), WriteError> {
        if !is_w3c_utc(self.date.as_bytes(), true) {
            return Err(WriteError::BadDate(self.date.clone()));
        }
        match (&self.target_uri, self.kind) {
            (Some(_), RecordKind::Warcinfo) => return Err(WriteError::NotAllowed(self.kind, "WARC-Target-URI")),
            (Some(uri), _) => check_uri(uri)?,
            (None, RecordKind::Warcinfo | RecordKind::Metadata) => {}
            (None, _) => return Err(WriteError::Missing(self.kind, "WARC-Target-URI")),
        }
        check_field("Content-Type", &self.content_type)?;
        for (position, (name, value)) in self.fields.iter().enumerate() {
            check_field(name, value)?;
            let is = |other: &str| name.eq_ignore_ascii_case(other);
            let earlier = || self.fields[..position].iter().any(|(other, _)| is(other));
            if OWN_FIELDS.into_iter().any(is) || (SINGLE_FIELDS.into_iter().any(is) && earlier()) {
                return Err(WriteError::Repeated(name.to_string()));
            }
            if is("WARC-Refers-To-Target-URI") || is("WARC-Profile") {
                check_uri(value)?;
            }
            if is("WARC-Refers-To-Date") && !is_w3c_utc(value.as_bytes(), true) {
                return Err(WriteError::BadDate(value.clone()));
            }
            if is("WARC-Filename") && self.kind != RecordKind::Warcinfo {
                return Err(WriteError::NotAllowed(self.kind, "WARC-Filename"));
            }
        }
        Ok(())
    }

    /// The head with the empty line at its end.
    pub(super) fn head(&self, length: u64, digests: Option<&CheckedDigests>) -> Result<Vec<u8>, WriteError> {
        let block_digest = self.block_digest.or(digests.and_then(|d| d.block_digest));
        let mut payload_digest = self.payload_digest;
        if payload_digest.is_none() && self.carries_payload_digest() {
            payload_digest = digests.and_then(|d| d.payload_digest);
            if self.algorithm.is_some() && payload_digest.is_none() {
                return Err(WriteError::DigestUnknown("WARC-Payload-Digest"));
            }
            // A request without body has no payload worth a digest.
            if self.kind == RecordKind::Request && payload_digest.is_some_and(|d| d == Digest::of(d.algorithm(), b"")) {
                payload_digest = None;
            }
        }
        if self.algorithm.is_some() && block_digest.is_none() {
            return Err(WriteError::DigestUnknown("WARC-Block-Digest"));
        }
        let mut head = format!(
            "WARC/1.1\r\nWARC-Type: {}\r\nWARC-Record-ID: {}\r\nWARC-Date: {}\r\n",
            self.kind.name(),
            self.id,
            self.date
        );
        let mut put = |name: &str, value: &dyn std::fmt::Display| {
            let _ = write!(head, "{name}: {value}\r\n");
        };
        if let Some(uri) = &self.target_uri {
            put("WARC-Target-URI", uri);
        }
        for (name, value) in &self.fields {
            put(name, value);
        }
        if let Some(digest) = block_digest {
            put("WARC-Block-Digest", &digest);
        }
        if let Some(digest) = payload_digest {
            put("WARC-Payload-Digest", &digest);
        }
        put("Content-Type", &self.content_type);
        put("Content-Length", &length);
        head.push_str("\r\n");
        Ok(head.into_bytes())
    }
}

/// A field that reads back as it was written and cannot pass for two.
fn check_field(name: &str, value: &str) -> Result<(), WriteError> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(WriteError::BadName(name.to_owned()));
    }
    if value.is_empty()
        || value.trim_matches([' ', '\t']) != value
        || value.chars().any(|c| c.is_control() && c != '\t')
    {
        return Err(WriteError::BadValue(name.to_owned()));
    }
    Ok(())
}

/// An absolute URI as far as a field can be broken by it: a scheme, and no space, control character or bracket.
fn check_uri(uri: &str) -> Result<(), WriteError> {
    let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
    let good_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    if !good_scheme || uri.chars().any(|c| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>')) {
        return Err(WriteError::BadUri(uri.to_owned()));
    }
    Ok(())
}
