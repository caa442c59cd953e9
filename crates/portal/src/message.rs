//! A capture's record, opened: the head of its HTTP message, and its body as a stream.

use crate::limits::MESSAGE_HEAD_BYTES_MAX;
use crate::portal::{POSTED, Portal};
use crate::trouble::Trouble;
use skep_archive::{Capture, Key};
use skep_warc::http::{self, Parsed};
use skep_warc::{Head, Record};
use std::io::{self, BufRead, Read};
use std::path::Path;

/// The block of a record from where the body begins.
pub struct Source<'r> {
    begun: Vec<u8>,
    at: usize,
    record: Record<'r>,
}

impl Source<'_> {
    /// The head of the WARC record.
    pub fn record_head(&self) -> &Head {
        self.record.head()
    }

    /// Everything was read: was all of it there?
    pub fn end(self) -> Result<(), Trouble> {
        let end = self.record.finish().map_err(|error| Trouble::reading(&error))?;
        match end.damaged {
            false => Ok(()),
            true => Err(Trouble::damaged(
                "The record of this capture is damaged: not all of it is there.",
                "a record is not whole",
            )),
        }
    }
}

impl BufRead for Source<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at < self.begun.len() { Ok(&self.begun[self.at..]) } else { self.record.fill_buf() }
    }

    fn consume(&mut self, bytes: usize) {
        if self.at < self.begun.len() { self.at += bytes } else { self.record.consume(bytes) }
    }
}

impl Read for Source<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let here = self.fill_buf()?;
        let count = here.len().min(into.len());
        into[..count].copy_from_slice(&here[..count]);
        self.consume(count);
        Ok(count)
    }
}

/// Opens the record of a capture and hands over the head of its message, if it holds one, and what follows.
pub fn open<T>(
    portal: &Portal,
    capture: &Capture,
    with: impl FnOnce(Option<http::Head>, Source<'_>) -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    let mut stored = portal.read(capture)?;
    if stored
        .path()
        .parent()
        .and_then(Path::parent)
        .is_some_and(|above| above.ends_with(Path::new("collections").join(POSTED)))
    {
        let told = "This capture is known by its index only; the file that holds it is not here.";
        return Err(Trouble::damaged(told, "a capture was asked for whose file is not here"));
    }
    let mut record = stored.record()?;
    // The place came from an index, which may be stale or somebody else's word.
    let about = record.head().target_uri().map(Key::of_bytes);
    if about.is_some_and(|key| key.surt() != capture.key.surt()) {
        return Err(Trouble::damaged(
            "The index names a record that is about something else.",
            "an index names the wrong record",
        ));
    }
    if !capture.is_http() {
        return with(None, Source { begun: Vec::new(), at: 0, record });
    }
    let (head, begun) = read_head(&mut record).map_err(|error| Trouble::reading(&error))?;
    with(head, Source { begun, at: 0, record })
}

/// The head of the message and what of the body was read with it; no head where there is none, then all that was read.
fn read_head(record: &mut Record<'_>) -> io::Result<(Option<http::Head>, Vec<u8>)> {
    let mut head = http::Head::new();
    let mut bytes = Vec::new();
    loop {
        let part = record.fill_buf()?;
        let (count, ended) = (part.len(), part.is_empty() || bytes.len() > MESSAGE_HEAD_BYTES_MAX);
        bytes.extend_from_slice(part);
        record.consume(count);
        match head.parse_response(&bytes, ended) {
            Parsed::Complete { body } => {
                let rest = bytes.split_off(body.min(bytes.len()));
                return Ok((Some(head), rest));
            }
            Parsed::NotHttp => return Ok((None, bytes)),
            Parsed::NeedMore if ended => return Ok((None, bytes)),
            Parsed::NeedMore => {}
        }
    }
}
