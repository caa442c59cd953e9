//! From a capture to its title and text.

use crate::limits::{BLOCK_BYTES_MAX, BODY_BYTES_MAX, ORIGINALS_MAX, TEXT_BYTES_MAX, TITLE_BYTES_MAX};
use skep_archive::{Archive, Capture, CaptureKind, Error, Key, Result};
use skep_page::{Input, Kind};
use skep_url::Url;
use skep_warc::coding::{self, Bounds};
use skep_warc::http::{Head, Parsed};
use std::io::{BufRead, Read};
use xxhash_rust::xxh3::Xxh3;

/// What is indexed of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The title; empty where there is none.
    pub title: String,
    /// The text that a reader would see.
    pub text: String,
}

impl Page {
    /// Tells the texts of one URL apart; 0 is that of nothing.
    pub fn hash(&self) -> u64 {
        if self.title.is_empty() && self.text.is_empty() {
            return 0;
        }
        let mut hash = Xxh3::new();
        hash.update(self.title.as_bytes());
        hash.update(&[0]);
        hash.update(self.text.as_bytes());
        hash.digest().max(1)
    }
}

/// Whether a capture may have a text, as far as its line in the index says.
pub fn may_have_text(capture: &Capture) -> bool {
    let kind = matches!(capture.kind, CaptureKind::Response | CaptureKind::Revisit | CaptureKind::Resource);
    let good = matches!(capture.status, 0 | 200..=299) || capture.kind == CaptureKind::Revisit && capture.status == 304;
    let mime = capture.mime.to_ascii_lowercase();
    kind && good && (mime.is_empty() || mime.contains("html") || mime == "text/plain")
}

/// The text of a capture; for a revisit, that of a capture with the same payload. Nothing where there is none.
pub fn page(archive: &Archive, capture: &Capture) -> Result<Option<Page>> {
    if capture.kind != CaptureKind::Revisit {
        return of_record(archive, capture).map(Some);
    }
    let Some(digest) = &capture.digest else { return Ok(None) };
    let views = archive.views();
    let mut failed = None;
    for original in views.digests.originals(digest, ORIGINALS_MAX)? {
        for found in views.captures.closest(&original.key, original.time_ms)? {
            let found = found?;
            if found.time_ms != original.time_ms {
                break;
            }
            if found.position == original.position {
                match of_record(archive, &found) {
                    Ok(page) => return Ok(Some(page)),
                    Err(error) => failed = Some(error),
                }
                break;
            }
        }
    }
    failed.map_or(Ok(None), Err)
}

fn of_record(archive: &Archive, capture: &Capture) -> Result<Page> {
    let mut stored = archive.read_capture(capture)?;
    let path = stored.path().to_path_buf();
    let mut record = stored.record()?;
    if record.head().target_uri().is_some_and(|uri| Key::of_bytes(uri).surt() != capture.key.surt()) {
        let what = "the record here is about something else".to_owned();
        return Err(Error::Record { path, offset: capture.offset, what });
    }
    let mut bytes = Vec::new();
    // What broke off says as much as came.
    let read = (&mut record as &mut dyn BufRead).take(BLOCK_BYTES_MAX).read_to_end(&mut bytes);
    if let Err(error) = read
        .as_ref()
        .map_err(|error| Error::io("cannot read", &path, std::io::Error::new(error.kind(), error.to_string())))
        && bytes.is_empty()
    {
        return Err(error);
    }
    if !capture.is_http() {
        return Ok(of_body(capture, None, &bytes));
    }
    let mut head = Head::new();
    let Parsed::Complete { body } = head.parse_response(&bytes, true) else { return Ok(Page::default()) };
    let mut decoded = Vec::new();
    let bounds = Bounds { output_bytes_max: BODY_BYTES_MAX, ..Bounds::default() };
    let _as_far_as_it_goes = coding::decode(&head, &bytes[body.min(bytes.len())..], bounds).read_to_end(&mut decoded);
    Ok(of_body(capture, Some(&head), &decoded))
}

fn of_body(capture: &Capture, head: Option<&Head>, body: &[u8]) -> Page {
    let Ok(url) = Url::parse(&capture.url) else { return Page::default() };
    let input = Input { url: &url, head, body };
    let page = skep_page::read(&input);
    if page.kind == Kind::Html {
        let title = cut(page.title.unwrap_or_default(), TITLE_BYTES_MAX);
        return Page { title, text: cut(skep_page::text(&input).text, TEXT_BYTES_MAX) };
    }
    if page.kind == Kind::Other && capture.mime.eq_ignore_ascii_case("text/plain") && !body.contains(&0) {
        let part = &body[..body.len().min(TEXT_BYTES_MAX)];
        return Page {
            title: String::new(),
            text: cut(String::from_utf8_lossy(part).trim().to_owned(), TEXT_BYTES_MAX),
        };
    }
    Page::default()
}

fn cut(mut text: String, bytes_max: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}
