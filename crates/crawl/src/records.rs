//! The records of a visit, ready to be appended: what was asked, what came, what is known about it.
//!
//! ```text
//! dns        resource   once per host, where the answer of the resolver is new
//! request    request    as sent, secrets redacted            concurrent to the answer
//! answer     response   every byte that came; or
//!            revisit    the head alone, for a payload that the archive has, or a 304
//! metadata   metadata   see `metadata`                       concurrent to the answer
//! ```
//! What a sidecar says of each record follows from what is known while it is made; the record is not read again.

use std::io::{self, Read};
use std::net::IpAddr;
use std::path::PathBuf;

use skep_archive::{
    Append, Bytes, CHECKS, Capture, CaptureKind, Digest, Encoded, FLAG_HTTP, FLAG_PRIVATE, HEARD, Key, Note, PRIVATE,
    Position,
};
use skep_warc::RecordKind;
use skep_warc::date::{is_w3c_utc, rfc3339};
use skep_warc::deflate::Level;
use skep_warc::http::{self, Parsed};
use skep_warc::write::{Compression, Encoder, RecordId, Truncated, WriteError};

use crate::answer::{Answer, Block, FromFile, sha1};
use crate::limits::{ENCODED_IN_MEMORY_BYTES_MAX, WRAPPED_RECORD_BYTES_MAX};
use crate::metadata::Metadata;
use crate::record_head::RecordHead;

const HTTP_RESPONSE: &str = "application/http;msgtype=response";
/// What came was no HTTP at all: a record that calls it HTTP would be a damaged one.
const NOT_HTTP: &str = "application/octet-stream";
const HTTP_REQUEST: &str = "application/http;msgtype=request";
const FIELDS: &str = "application/warc-fields";

/// One exchange and what is known about it.
#[derive(Debug)]
pub struct Visit<'a> {
    /// The URL as fetched.
    pub url: &'a str,
    /// Its key: whose slice the records go to, and where they are found.
    pub key: &'a Key,
    /// When the request was sent, in milliseconds since 1970.
    pub time_ms: i64,
    /// The request as sent, its secrets redacted.
    pub request: Option<&'a [u8]>,
    /// Secrets were sent: the capture is private.
    pub private: bool,
    /// What came.
    pub answer: &'a Answer<'a>,
    /// The server's address.
    pub address: Option<IpAddr>,
    /// `http/1.1`, `tls/1.3`: a field each.
    pub protocols: &'a [&'a str],
    /// The TLS cipher suite.
    pub cipher: Option<&'a str>,
    /// Why not everything came.
    pub truncated: Option<Truncated>,
    /// The capture that holds the payload already. Without an HTTP head this is passed over and all bytes are stored.
    pub original: Option<Original<'a>>,
    /// What is known besides.
    pub metadata: Option<&'a Metadata<'a>>,
    /// The resolver's answer, if it is to be kept with this visit.
    pub dns: Option<Dns<'a>>,
}

/// The capture that a revisit refers to.
#[derive(Debug, Clone, Copy)]
pub struct Original<'a> {
    /// Why the payload is not stored again.
    pub why: Same,
    /// Its URL.
    pub url: &'a str,
    /// Its time, in milliseconds since 1970.
    pub time_ms: i64,
    /// Its record, where that is known: `urn:uuid:…`.
    pub record: Option<&'a RecordId>,
    /// The digest of its payload, for a 304; for the same payload that of the answer counts.
    pub payload: Option<Digest>,
}

/// Why a payload is not stored again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Same {
    /// The same payload came.
    Payload,
    /// The server said so (304).
    NotModified,
}

/// What a resolver answered.
#[derive(Debug, Clone, Copy)]
pub struct Dns<'a> {
    /// The host asked for.
    pub host: &'a str,
    /// When, in milliseconds since 1970.
    pub time_ms: i64,
    /// The answer as `text/dns`.
    pub text: &'a str,
}

/// Makes records; keeps its compressors and buffers from visit to visit. One per worker.
#[derive(Debug)]
pub struct Encoders {
    deflating: Encoder,
    wrapping: Encoder,
    /// For what we say ourselves: record after record begins and goes on in the same way.
    own: Encoder,
    head: RecordHead,
    /// A block that is made here, or read from a file.
    block: Vec<u8>,
    stored: Vec<u8>,
    request: http::Head,
    spill: PathBuf,
}

impl Encoders {
    /// Encoders that compress what gains from it at `level`, and put records too large for memory into unnamed files in
    /// the folder `spill`.
    pub fn new(level: Level, spill: PathBuf) -> Encoders {
        Encoders {
            deflating: Encoder::new(Compression::Gzip(level)),
            wrapping: Encoder::new(Compression::Gzip(Level::STORED)),
            own: Encoder::new(Compression::GzipAlike),
            head: RecordHead::default(),
            block: Vec::new(),
            stored: Vec::new(),
            request: http::Head::new(),
            spill,
        }
    }

    /// The records of a visit. `ids` gives random bytes for their names.
    pub fn visit(&mut self, visit: &Visit<'_>, ids: &mut dyn FnMut() -> [u8; 16]) -> Result<Append, WriteError> {
        let about = About {
            url: visit.url,
            key: visit.key.clone(),
            time_ms: visit.time_ms,
            date: date(visit.time_ms)?,
            private: visit.private,
        };
        let answer_id = RecordId::uuid(ids());
        let mut records = Vec::with_capacity(4);
        if let Some(dns) = &visit.dns {
            records.push(self.dns_record(dns, ids)?.1);
        }
        if let Some(request) = visit.request {
            records.push(self.request(&about, request, &RecordId::uuid(ids()), &answer_id)?);
        }
        records.push(self.answer(&about, visit, &answer_id)?);
        if let Some(metadata) = visit.metadata {
            records.push(self.metadata(&about, metadata, &RecordId::uuid(ids()), &answer_id)?);
        }
        Ok(Append { site_hash: visit.key.site_hash(), records })
    }

    /// What a resolver answered, alone.
    pub fn dns(&mut self, dns: &Dns<'_>, ids: &mut dyn FnMut() -> [u8; 16]) -> Result<Append, WriteError> {
        let (site_hash, record) = self.dns_record(dns, ids)?;
        Ok(Append { site_hash, records: vec![record] })
    }

    /// A record of checks with this block; see [`crate::checks`].
    pub fn checks(&mut self, site_hash: u32, time_ms: i64, block: Vec<u8>, id: [u8; 16]) -> Result<Append, WriteError> {
        self.own(site_hash, time_ms, CHECKS, block, Note::Checks, id)
    }

    /// A record of heard URLs with this block; see [`crate::heard`].
    pub fn heard(&mut self, site_hash: u32, time_ms: i64, block: Vec<u8>, id: [u8; 16]) -> Result<Append, WriteError> {
        self.own(site_hash, time_ms, HEARD, block, Note::Heard, id)
    }

    fn own(
        &mut self,
        site_hash: u32,
        time_ms: i64,
        media_type: &str,
        block: Vec<u8>,
        note: fn(Vec<u8>) -> Note,
        id: [u8; 16],
    ) -> Result<Append, WriteError> {
        self.head.begin(RecordKind::Metadata, &RecordId::uuid(id), &date(time_ms)?, None)?;
        self.head.digest("WARC-Block-Digest", &sha1(&block));
        self.head.end(media_type, block.len() as u64);
        let bytes = self.encode(&block, How::Own);
        let note = if block.len() <= skep_archive::limits::NOTE_BYTES_MAX { note(block) } else { Note::Plain };
        Ok(Append { site_hash, records: vec![Encoded::new(bytes, note)] })
    }

    fn dns_record(&mut self, dns: &Dns<'_>, ids: &mut dyn FnMut() -> [u8; 16]) -> Result<(u32, Encoded), WriteError> {
        let url = format!("dns:{}", dns.host);
        let about =
            About { url: &url, key: Key::of(&url), time_ms: dns.time_ms, date: date(dns.time_ms)?, private: false };
        let digest = sha1(dns.text.as_bytes());
        self.head.begin(RecordKind::Resource, &RecordId::uuid(ids()), &about.date, Some(&url))?;
        self.head.digest("WARC-Block-Digest", &digest);
        self.head.digest("WARC-Payload-Digest", &digest);
        self.head.end("text/dns", dns.text.len() as u64);
        let note = about.note(CaptureKind::Resource, 0, "text/dns".into(), Some(digest), false);
        Ok((about.key.site_hash(), Encoded::new(self.encode(dns.text.as_bytes(), How::Own), note)))
    }

    fn request(
        &mut self,
        about: &About<'_>,
        request: &[u8],
        id: &RecordId,
        answer: &RecordId,
    ) -> Result<Encoded, WriteError> {
        let parsed = self.request.parse_request(request, true);
        let body = match parsed {
            Parsed::Complete { body } => &request[body..],
            _ => request,
        };
        // A request without body has no payload worth a digest.
        let payload = (!body.is_empty()).then(|| match parsed {
            Parsed::Complete { .. } => crate::answer::payload_of(Some(&self.request), body),
            _ => Ok(sha1(body)),
        });
        let payload = payload.transpose()?;
        self.head.begin(RecordKind::Request, id, &about.date, Some(about.url))?;
        self.head.id("WARC-Concurrent-To", answer);
        about.finish(&mut self.head);
        self.head.digest("WARC-Block-Digest", &sha1(request));
        if let Some(digest) = &payload {
            self.head.digest("WARC-Payload-Digest", digest);
        }
        self.head.end(HTTP_REQUEST, request.len() as u64);
        let is_http = matches!(parsed, Parsed::Complete { .. });
        let note = about.note(CaptureKind::Request, 0, "application/http".into(), payload, is_http);
        Ok(Encoded::new(self.encode(request, How::Own), note))
    }

    /// The response, or the revisit that stands for it.
    fn answer(&mut self, about: &About<'_>, visit: &Visit<'_>, id: &RecordId) -> Result<Encoded, WriteError> {
        let answer = visit.answer;
        let original = visit.original.as_ref().filter(|_| answer.head().is_some());
        let (kind, record) = match original {
            Some(_) => (CaptureKind::Revisit, RecordKind::Revisit),
            None => (CaptureKind::Response, RecordKind::Response),
        };
        self.head.begin(record, id, &about.date, Some(about.url))?;
        if let Some(original) = original {
            self.original(original)?;
        }
        if let Some(address) = visit.address {
            self.head.display("WARC-IP-Address", &address);
        }
        for protocol in visit.protocols {
            self.head.text("WARC-Protocol", protocol)?;
        }
        if let Some(cipher) = visit.cipher {
            self.head.text("WARC-Cipher-Suite", cipher)?;
        }
        if let Some(truncated) = visit.truncated {
            self.head.text("WARC-Truncated", truncated.name())?;
        }
        about.finish(&mut self.head);

        let payload = match original {
            Some(Original { why: Same::NotModified, payload, .. }) => *payload,
            _ => Some(answer.payload()),
        };
        let (status, mime) = match answer.head() {
            Some(head) => (head.status().unwrap_or(0), head.mime().unwrap_or_default()),
            None => (0, NOT_HTTP.into()),
        };
        let note = about.note(kind, status, mime, payload, answer.head().is_some());
        let head_only = original.and(answer.head()).map(|head| Block::Memory(head.raw()));
        let block = head_only.unwrap_or(answer.block());
        let block_digest = answer.block_digest().filter(|_| original.is_none());
        let mut whole = std::mem::take(&mut self.block);
        let content_type = if answer.head().is_some() { HTTP_RESPONSE } else { NOT_HTTP };
        let how = if answer.is_compressed() { How::Wrapped } else { How::Deflated };
        let encoded = self.answer_block(content_type, block, block_digest, payload, how, &mut whole);
        self.block = whole;
        Ok(Encoded { bytes: encoded?, note })
    }

    fn original(&mut self, original: &Original<'_>) -> Result<(), WriteError> {
        let profile = match original.why {
            Same::Payload => "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest",
            Same::NotModified => "http://netpreserve.org/warc/1.1/revisit/server-not-modified",
        };
        self.head.uri("WARC-Profile", profile)?;
        self.head.uri("WARC-Refers-To-Target-URI", original.url)?;
        self.head.text("WARC-Refers-To-Date", &date(original.time_ms)?)?;
        if let Some(id) = original.record {
            self.head.id("WARC-Refers-To", id);
        }
        Ok(())
    }

    /// Ends the head of an answer and encodes it: in memory, or in a file if it is large and came in one.
    fn answer_block(
        &mut self,
        content_type: &str,
        block: Block<'_>,
        digest: Option<Digest>,
        payload: Option<Digest>,
        how: How,
        whole: &mut Vec<u8>,
    ) -> Result<Bytes, WriteError> {
        let bytes = match block {
            Block::Memory(bytes) => Some(bytes),
            Block::File(_, length) if length > ENCODED_IN_MEMORY_BYTES_MAX => None,
            Block::File(file, length) => {
                whole.clear();
                let found = FromFile::new(file, length).read_to_end(whole)? as u64;
                if found < length {
                    return Err(WriteError::Short { stated: length, found });
                }
                Some(whole.as_slice())
            }
        };
        let digest = match (digest, bytes) {
            (Some(digest), _) => digest,
            (None, Some(bytes)) => sha1(bytes),
            (None, None) => return Err(WriteError::DigestUnknown("WARC-Block-Digest")),
        };
        self.head.digest("WARC-Block-Digest", &digest);
        if let Some(payload) = &payload {
            self.head.digest("WARC-Payload-Digest", payload);
        }
        self.head.end(content_type, block.length());
        match (bytes, block) {
            (Some(bytes), _) => Ok(Bytes::Memory(self.encode(bytes, how))),
            (None, Block::Memory(bytes)) => Ok(Bytes::Memory(self.encode(bytes, how))),
            (None, Block::File(file, length)) => self.spill(FromFile::new(file, length), length, how),
        }
    }

    fn spill(&mut self, block: FromFile<'_>, length: u64, how: How) -> Result<Bytes, WriteError> {
        let mut file = tempfile::tempfile_in(&self.spill).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot make a temporary file in {}: {error}", self.spill.display()))
        })?;
        let encoder = if how == How::Wrapped { &mut self.wrapping } else { &mut self.deflating };
        let written = encoder.raw_stream(self.head.as_bytes(), block, length, &mut file)?;
        Ok(Bytes::Spilled { file, length: written.stored_bytes })
    }

    fn metadata(
        &mut self,
        about: &About<'_>,
        metadata: &Metadata<'_>,
        id: &RecordId,
        answer: &RecordId,
    ) -> Result<Encoded, WriteError> {
        let mut block = std::mem::take(&mut self.block);
        block.clear();
        metadata.write(&mut block);
        let digest = sha1(&block);
        self.head.begin(RecordKind::Metadata, id, &about.date, Some(about.url))?;
        self.head.id("WARC-Concurrent-To", answer);
        about.finish(&mut self.head);
        self.head.digest("WARC-Block-Digest", &digest);
        self.head.end(FIELDS, block.len() as u64);
        let bytes = self.encode(&block, How::Own);
        self.block = block;
        // One page with many links must not hold its memory for the life of the encoder.
        self.block.shrink_to(ENCODED_IN_MEMORY_BYTES_MAX as usize);
        Ok(Encoded::new(bytes, about.note(CaptureKind::Metadata, 0, FIELDS.into(), Some(digest), false)))
    }

    /// One gzip member of the head at hand and this block.
    fn encode(&mut self, block: &[u8], how: How) -> Vec<u8> {
        let head = self.head.as_bytes();
        let small = head.len() + block.len() <= WRAPPED_RECORD_BYTES_MAX;
        if how == How::Wrapped || small {
            let mut bytes = Vec::new();
            self.wrapping.raw_record(head, block, &mut bytes);
            return bytes;
        }
        self.stored.clear();
        let encoder = if how == How::Own { &mut self.own } else { &mut self.deflating };
        encoder.raw_record(head, block, &mut self.stored);
        // A copy of the right size: the record waits for its commit, the room it was made in is needed again.
        let bytes = self.stored.as_slice().to_vec();
        self.stored.shrink_to(ENCODED_IN_MEMORY_BYTES_MAX as usize);
        bytes
    }
}

/// How a record that is not small is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// It gains from being compressed.
    Deflated,
    /// It gains nothing.
    Wrapped,
    /// We wrote it.
    Own,
}

/// What the records of one visit share.
struct About<'a> {
    url: &'a str,
    key: Key,
    time_ms: i64,
    date: String,
    private: bool,
}

impl About<'_> {
    fn finish(&self, head: &mut RecordHead) {
        if self.private {
            head.flag(PRIVATE);
        }
    }

    fn note(&self, kind: CaptureKind, status: u16, mime: String, digest: Option<Digest>, is_http: bool) -> Note {
        let private = if self.private { FLAG_PRIVATE } else { 0 };
        Note::Capture(Box::new(Capture {
            key: self.key.clone(),
            url: self.url.to_owned(),
            time_ms: self.time_ms,
            position: Position::default(),
            kind,
            status,
            mime,
            digest,
            offset: 0,
            length: 0,
            flags: private | if is_http { FLAG_HTTP } else { 0 },
        }))
    }
}

fn date(time_ms: i64) -> Result<String, WriteError> {
    let date = rfc3339(time_ms);
    if is_w3c_utc(date.as_bytes(), true) { Ok(date) } else { Err(WriteError::BadDate(date)) }
}
