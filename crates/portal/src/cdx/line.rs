//! One line of an index, and what its fields are called.

use crate::portal::{EVERYTHING, Portal};
use crate::time;
use skep_archive::{Capture, CaptureKind, Digest};
use std::borrow::Cow;
use std::sync::Arc;

/// What a line can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    UrlKey,
    Timestamp,
    Url,
    Mime,
    Status,
    Digest,
    Redirect,
    RobotFlags,
    Length,
    Offset,
    Filename,
    Source,
    Collection,
    OriginalLength,
    OriginalOffset,
    OriginalFilename,
    Duplicates,
    Skipped,
    EndTimestamp,
    /// Something that no line here has.
    Unknown,
}

impl Field {
    /// By any of the names that the dialects have for it.
    pub fn of(name: &str) -> Field {
        match name {
            "urlkey" | "key" => Field::UrlKey,
            "timestamp" => Field::Timestamp,
            "original" | "url" => Field::Url,
            "mimetype" | "mime" => Field::Mime,
            "statuscode" | "status" => Field::Status,
            "digest" => Field::Digest,
            "redirect" | "redirecturl" => Field::Redirect,
            "robotflags" => Field::RobotFlags,
            "length" => Field::Length,
            "offset" | "compressedoffset" => Field::Offset,
            "filename" | "file" => Field::Filename,
            "source" => Field::Source,
            "source-coll" => Field::Collection,
            "orig.length" | "originalLength" => Field::OriginalLength,
            "orig.offset" | "originalOffset" => Field::OriginalOffset,
            "orig.filename" | "originalFilename" => Field::OriginalFilename,
            "dupecount" => Field::Duplicates,
            "skipcount" => Field::Skipped,
            "endtimestamp" => Field::EndTimestamp,
            _ => Field::Unknown,
        }
    }

    /// Whether JSON with types has it as a number.
    pub fn is_number(self) -> bool {
        matches!(
            self,
            Field::Timestamp
                | Field::Status
                | Field::Length
                | Field::Offset
                | Field::OriginalLength
                | Field::OriginalOffset
        )
    }
}

/// A capture with what is told of it beside.
pub struct Line {
    pub capture: Capture,
    pub file: Arc<str>,
    pub collection: Option<Arc<str>>,
    /// What a revisit stands for, where that was asked for and is known.
    pub original: Option<Box<(Capture, Arc<str>)>>,
    /// Originals are told of, also where there is none.
    pub resolved: bool,
    pub duplicates: u64,
    pub skipped: u64,
    pub end_timestamp: Option<String>,
}

/// What stands where a field has no value.
pub const NOTHING: &str = "-";

/// A digest as indexes have it: SHA-1 without its name.
pub fn digest(digest: &Digest) -> String {
    let text = digest.to_string();
    text.strip_prefix("sha1:").map_or(text.clone(), str::to_owned)
}

impl Line {
    pub fn of(portal: &Portal, capture: Capture) -> Line {
        let (file, collection) = (portal.file_name(&capture), portal.collection_of(&capture));
        let (original, end_timestamp) = (None, None);
        Line { capture, file, collection, original, resolved: false, duplicates: 0, skipped: 0, end_timestamp }
    }

    /// The value of a field; `None` where there is none.
    pub fn get(&self, field: Field) -> Option<Cow<'_, str>> {
        let capture = &self.capture;
        let revisit = capture.kind == CaptureKind::Revisit;
        Some(match field {
            Field::UrlKey => Cow::Borrowed(capture.key.surt()),
            Field::Timestamp => Cow::Owned(time::digits(capture.time_ms)),
            // A space would be the end of the field.
            Field::Url if capture.url.contains([' ', '\n', '\r', '\t']) => {
                Cow::Owned(capture.url.replace([' ', '\t'], "%20").replace(['\r', '\n'], ""))
            }
            Field::Url => Cow::Borrowed(capture.url.as_str()),
            Field::Mime => match (revisit, &self.original) {
                (true, Some(original)) => Cow::Owned(mime(&original.0)),
                (true, None) => Cow::Borrowed("warc/revisit"),
                (false, _) => Cow::Owned(mime(capture)),
            },
            Field::Status => match (revisit, &self.original) {
                (true, Some(original)) if self.resolved => status(&original.0)?,
                (true, _) => return None,
                (false, _) => status(capture)?,
            },
            Field::Digest => Cow::Owned(digest(capture.digest.as_ref()?)),
            Field::Redirect | Field::RobotFlags | Field::Unknown => return None,
            Field::Length => Cow::Owned(capture.length.to_string()),
            Field::Offset => Cow::Owned(capture.offset.to_string()),
            Field::Filename => Cow::Borrowed(&*self.file),
            Field::Collection => Cow::Borrowed(self.collection.as_deref().unwrap_or(EVERYTHING)),
            Field::Source => Cow::Owned(format!("{}:{}", self.collection.as_deref().unwrap_or(EVERYTHING), self.file)),
            Field::OriginalLength => Cow::Owned(self.original.as_ref()?.0.length.to_string()),
            Field::OriginalOffset => Cow::Owned(self.original.as_ref()?.0.offset.to_string()),
            Field::OriginalFilename => Cow::Borrowed(&*self.original.as_ref()?.1),
            Field::Duplicates => Cow::Owned(self.duplicates.to_string()),
            Field::Skipped => Cow::Owned(self.skipped.to_string()),
            Field::EndTimestamp => Cow::Borrowed(self.end_timestamp.as_deref()?),
        })
    }

    /// The value, or what stands for none.
    pub fn text(&self, field: Field) -> Cow<'_, str> {
        self.get(field).unwrap_or(Cow::Borrowed(NOTHING))
    }
}

fn mime(capture: &Capture) -> String {
    match capture.mime.replace([' ', '\t', '\r', '\n'], "") {
        empty if empty.is_empty() => "unk".to_owned(),
        mime => mime,
    }
}

fn status(capture: &Capture) -> Option<Cow<'static, str>> {
    (capture.status > 0).then(|| Cow::Owned(capture.status.to_string()))
}
