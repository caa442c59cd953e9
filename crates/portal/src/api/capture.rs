//! A capture, as lists tell of it.

use super::BASE;
use crate::find::Looking;
use crate::{answer, time};
use serde::Serialize;
use skep_archive::{Capture, Position};
use skep_warc::date;

/// One capture and where it is.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
    /// The URL as it stands in the record.
    pub url: String,
    /// RFC 3339.
    pub time: String,
    /// 14 digits.
    pub timestamp: String,
    /// The type of its record.
    pub kind: &'static str,
    /// The HTTP status.
    pub status: Option<u16>,
    /// The media type.
    pub media_type: Option<String>,
    /// The digest of its payload.
    pub digest: Option<String>,
    /// The collection of its file.
    pub collection: Option<String>,
    /// Its file.
    pub file: String,
    /// What the file is called.
    pub file_name: String,
    /// Where its record begins there.
    pub offset: u64,
    /// Bytes of the record there.
    pub length: u64,
    /// The name of the record.
    pub record: String,
    /// Where to go from here.
    pub links: Links,
}

/// Addresses on this portal.
#[derive(Clone, Debug, Serialize)]
pub struct Links {
    /// The page as it was.
    pub replay: String,
    /// The body as it was fetched.
    pub raw: String,
    /// The record.
    pub record: String,
    /// The file that holds it.
    pub file: String,
}

/// The name of the file that a position is in.
pub fn file_of(position: Position) -> String {
    format!("{}:{}", position.writer, position.segment)
}

/// An address in which anything may stand.
pub fn address(text: &str) -> String {
    answer::location(text).to_str().unwrap_or_default().to_owned()
}

/// Tells of a capture.
pub fn told(look: &Looking<'_>, capture: &Capture) -> Told {
    let (scope, digits, file) = (look.scope.name(), time::digits(capture.time_ms), file_of(capture.position));
    Told {
        time: date::rfc3339(capture.time_ms),
        kind: capture.kind.name(),
        status: (capture.status > 0).then_some(capture.status),
        media_type: (!capture.mime.is_empty()).then(|| capture.mime.clone()),
        digest: capture.digest.map(|digest| digest.to_string()),
        collection: look.portal.collection_of(capture).map(|name| name.to_string()),
        file_name: look.portal.file_name(capture).to_string(),
        offset: capture.offset,
        length: capture.length,
        record: capture.position.to_string(),
        links: Links {
            replay: address(&format!("/{scope}/{digits}/{}", capture.url)),
            raw: address(&format!("/{scope}/{digits}id_/{}", capture.url)),
            record: format!("{BASE}/records/{}", capture.position),
            file: format!("{BASE}/files/{file}"),
        },
        url: capture.url.clone(),
        timestamp: digits,
        file,
    }
}
