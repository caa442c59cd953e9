//! Judging the block of a record: its digests and the HTTP message inside.

use crate::digest::{BlockCheck, Declared, Digest, DigestError, Payload, PayloadMatch};
use crate::finding::Rule;
use crate::head::{Head, RecordKind};
use crate::http;
use crate::read::Record;
use std::io::{self, BufRead};

/// What was verified of one record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// The block was compared with a declared digest and is equal.
    pub block: bool,
    /// The payload was compared with a declared digest and is equal.
    pub payload: bool,
    /// A comparison failed.
    pub failed: bool,
}

/// Reads the block of a record to its end, verifies its digests and looks at the HTTP message inside. Deviations become findings of the
/// record's reader.
pub fn check_record(record: &mut Record<'_>) -> io::Result<Verified> {
    let what = payload_of(record.head());
    let declared = declared_digests(record);
    let mut check = BlockCheck::new(declared, what);
    let mut first = what != Payload::Block && record.head().kind() != RecordKind::Revisit;
    loop {
        let block = record.fill_buf()?;
        let count = block.len();
        if count == 0 {
            break;
        }
        check.update(block);
        if std::mem::take(&mut first) && !check.begins_http().unwrap_or_else(|| begins_http(block, what)) {
            record.note(Rule::HttpMalformed, "no status or request line");
        }
        record.consume(count);
    }
    let result = check.finish();
    if result.block == Some(false) {
        record.note(Rule::DigestBlock, result.block_digest.map(|d| format!("computed {d}")).unwrap_or_default());
    }
    match result.payload {
        Some(PayloadMatch::ChunkedBody) => record.note(Rule::DigestPayloadTransfer, ""),
        Some(PayloadMatch::Block) => record.note(Rule::DigestPayload, "it is the digest of the whole block"),
        Some(PayloadMatch::Nothing) => {
            record
                .note(Rule::DigestPayload, result.payload_digest.map(|d| format!("computed {d}")).unwrap_or_default());
        }
        Some(PayloadMatch::Payload) | None => {}
    }
    let payload = matches!(result.payload, Some(PayloadMatch::Payload | PayloadMatch::ChunkedBody));
    let failed =
        result.block == Some(false) || matches!(result.payload, Some(PayloadMatch::Block | PayloadMatch::Nothing));
    Ok(Verified { block: result.block == Some(true), payload, failed })
}

/// Where the payload of a record stands in its block.
pub fn payload_of(head: &Head) -> Payload {
    if head.is_arc() {
        let http = head.target_uri().is_some_and(|uri| uri.get(..4).is_some_and(|s| s.eq_ignore_ascii_case(b"http")));
        return if http { Payload::HttpResponse } else { Payload::Block };
    }
    let media = head.get("Content-Type").unwrap_or_default();
    let http = media.get(..16).is_some_and(|m| m.eq_ignore_ascii_case(b"application/http"));
    match head.kind() {
        RecordKind::Response | RecordKind::Revisit if http => Payload::HttpResponse,
        RecordKind::Request if http => Payload::HttpRequest,
        _ => Payload::Block,
    }
}

fn begins_http(block: &[u8], what: Payload) -> bool {
    let mut head = http::Head::new();
    let parsed = match what {
        Payload::HttpRequest => head.parse_request(block, false),
        _ => head.parse_response(block, false),
    };
    parsed != http::Parsed::NotHttp
}

/// The payload digest of a revisit is that of the record it refers to, and that of a segment that of the whole record: neither can be
/// computed here.
fn declared_digests(record: &mut Record<'_>) -> Declared {
    let elsewhere = record.head().kind() == RecordKind::Revisit
        || record.head().kind() == RecordKind::Continuation
        || record.head().get("WARC-Segment-Number").is_some();
    let mut read = |name: &str| {
        let value = record.head().text(name).filter(|v| !v.is_empty())?.into_owned();
        match Digest::parse(&value) {
            Ok(digest) => Some(digest),
            Err(error) => {
                let rule = if matches!(error, DigestError::UnknownAlgorithm(_)) {
                    Rule::DigestUnknown
                } else {
                    Rule::DigestInvalid
                };
                record.note(rule, format!("{name}: {value}"));
                None
            }
        }
    };
    let block = read("WARC-Block-Digest");
    let payload = read("WARC-Payload-Digest").filter(|_| !elsewhere);
    Declared { block, payload }
}
