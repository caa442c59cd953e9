//! The body of a message with its transfer encoding removed, as a stream.

use std::io::{self, BufRead, Read};

use super::{Chunks, Deviation, Deviations, Head, Rule, Step};

/// A body as the payload digest of a WARC record sees it: chunking removed, content encodings kept.
///
/// Content-Length is not obeyed (the record knows its own length) but compared. Nothing about the body is an error:
/// [`deviations`](Self::deviations) tells afterwards what was odd.
#[derive(Debug)]
pub struct Body<R> {
    inner: R,
    chunks: Option<Chunks>,
    /// Bytes at the start of the inner buffer that are body.
    ready: usize,
    /// Bytes of `chunks.held()` not yet handed out.
    held: usize,
    declared: Option<u64>,
    stored: u64,
    ended: bool,
    deviations: Deviations,
}

impl<R: BufRead> Body<R> {
    /// The body of the message with that head; `inner` stands at the first byte after the head.
    pub fn new(head: &Head, inner: R) -> Body<R> {
        let mut body = Body::plain(inner);
        if head.is_chunked() {
            body.chunks = Some(Chunks::new());
        } else {
            body.declared = head.content_length();
        }
        if head.words("transfer-encoding").any(|word| word != "chunked" && word != "identity") {
            body.deviations.note(Rule::TransferCodingUnknown, 0);
        }
        // These carry the length that a full answer would have had.
        if matches!(head.status(), Some(100..200 | 204 | 304)) {
            body.declared = None;
        }
        body
    }

    /// A body without transfer encoding.
    pub fn plain(inner: R) -> Body<R> {
        Body {
            inner,
            chunks: None,
            ready: 0,
            held: 0,
            declared: None,
            stored: 0,
            ended: false,
            deviations: Deviations::default(),
        }
    }

    /// What was odd so far; complete once the body is read to its end.
    pub fn deviations(&self) -> impl Iterator<Item = &Deviation> {
        self.deviations.as_slice().iter().chain(self.chunks.iter().flat_map(|c| c.deviations()))
    }

    /// Trailer fields behind the last chunk, as they stood.
    pub fn trailer(&self) -> &[u8] {
        self.chunks.as_ref().map_or(&[], |c| c.trailer())
    }

    /// The reader below.
    pub fn into_inner(self) -> R {
        self.inner
    }

    fn take(&mut self, bytes: usize) {
        self.inner.consume(bytes);
        self.stored += bytes as u64;
    }

    fn finish(&mut self) {
        self.ended = true;
        if let Some(chunks) = &mut self.chunks
            && chunks.finish()
        {
            self.held = chunks.held().len();
        }
        if self.declared.is_some_and(|declared| declared != self.stored) {
            self.deviations.note_at(Rule::ContentLengthWrong, self.stored);
        }
    }
}

impl<R: BufRead> BufRead for Body<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.held == 0 && self.ready == 0 && !self.ended {
            let input = self.inner.fill_buf()?;
            if input.is_empty() {
                self.finish();
                break;
            }
            let Some(chunks) = &mut self.chunks else {
                self.ready = input.len();
                break;
            };
            match chunks.step(input) {
                Step::Skip(bytes) => self.take(bytes),
                Step::Body(bytes) => self.ready = bytes,
                Step::Held(bytes) => {
                    self.held = chunks.held().len();
                    self.take(bytes);
                }
            }
        }
        if self.held > 0 {
            let held = self.chunks.as_ref().map_or(&[][..], |c| c.held());
            return Ok(&held[held.len() - self.held..]);
        }
        if self.ready > 0 {
            let input = self.inner.fill_buf()?;
            return Ok(&input[..self.ready.min(input.len())]);
        }
        Ok(&[])
    }

    fn consume(&mut self, bytes: usize) {
        if self.held > 0 {
            self.held -= bytes;
        } else {
            self.ready -= bytes;
            self.take(bytes);
        }
    }
}

impl<R: BufRead> Read for Body<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut ready = self.fill_buf()?;
        let read = ready.read(into)?;
        self.consume(read);
        Ok(read)
    }
}
