//! What a host has to say about a path at a moment, before the request's conditions are looked at.

use std::path::PathBuf;

use bytes::Bytes;

use crate::chance;
use crate::clock::Time;

/// The body of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// In memory.
    Bytes(Bytes),
    /// A part of a file, read when it is sent.
    File {
        /// Which file.
        path: PathBuf,
        /// Where the part begins.
        offset: u64,
        /// How long it is.
        bytes: u64,
    },
}

impl Body {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Body::Bytes(body) => body.len() as u64,
            Body::File { bytes, .. } => *bytes,
        }
    }

    /// Nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a host has to say about a path at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// `Content-Type`.
    pub media_type: Option<String>,
    /// The body, as a plain GET brings it.
    pub body: Body,
    /// Entity tag with its quotes.
    pub etag: Option<String>,
    /// `Last-Modified`; counts in whole seconds.
    pub last_modified: Option<Time>,
    /// `Location`, as written.
    pub location: Option<String>,
    /// `Retry-After` in seconds.
    pub retry_after_seconds: Option<u64>,
    /// It is written as the date that is so far off.
    pub retry_after_as_date: bool,
}

impl Answer {
    /// A body with status 200 and validators.
    pub fn found(media_type: &str, body: impl Into<Bytes>, since: Time) -> Answer {
        let body = body.into();
        Answer {
            etag: Some(format!("\"{:016x}\"", chance::hash(&body))),
            last_modified: Some(since),
            ..Answer::plain(200, media_type, body)
        }
    }

    /// A body without validators.
    pub fn plain(status: u16, media_type: &str, body: impl Into<Bytes>) -> Answer {
        Answer {
            status,
            media_type: Some(media_type.into()),
            body: Body::Bytes(body.into()),
            etag: None,
            last_modified: None,
            location: None,
            retry_after_seconds: None,
            retry_after_as_date: false,
        }
    }

    /// A status that explains itself.
    pub fn status(status: u16) -> Answer {
        let reason = http::StatusCode::from_u16(status).ok().and_then(|s| s.canonical_reason()).unwrap_or("No answer");
        let body = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><title>{status} {reason}</title></head>\
             <body><h1>{reason}</h1></body></html>\n"
        );
        Answer::plain(status, "text/html; charset=utf-8", body)
    }

    /// A redirect; `to` as it is to be written.
    pub fn redirect(status: u16, to: &str) -> Answer {
        Answer { location: Some(to.into()), ..Answer::status(status) }
    }
}
