//! Verifying the digests of a record while its block streams by.

use super::{Algorithm, Digest, DigestError, Hasher};
use crate::http::limits::HTTP_HEAD_BYTES_MAX;
use crate::http::{Chunks, Head, Parsed, Step};

/// What a block holds, which decides where its payload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// An HTTP response: the payload is the body without transfer encoding, content encodings kept.
    HttpResponse,
    /// An HTTP request: likewise.
    HttpRequest,
    /// Anything else: the payload is the whole block.
    Block,
}

/// Digests to compare with, as the record declares them.
#[derive(Debug, Clone, Default)]
pub struct Declared {
    /// WARC-Block-Digest.
    pub block: Option<Digest>,
    /// WARC-Payload-Digest.
    pub payload: Option<Digest>,
}

impl Declared {
    /// From the field values; the first that cannot be read is an error.
    pub fn parse(block: Option<&str>, payload: Option<&str>) -> Result<Declared, DigestError> {
        Ok(Declared { block: block.map(Digest::parse).transpose()?, payload: payload.map(Digest::parse).transpose()? })
    }
}

/// Which bytes a declared payload digest belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PayloadMatch {
    /// The payload as the standard means it.
    Payload,
    /// The body with its chunks still in place: the usual mistake of older writers.
    ChunkedBody,
    /// The whole block, head included.
    Block,
    /// None of these.
    Nothing,
}

/// What a check gave. Both `None` when nothing was declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedDigests {
    /// Whether the block matches its digest.
    pub block: Option<bool>,
    /// What the payload digest matches.
    pub payload: Option<PayloadMatch>,
    /// The block's digest as computed, where one was declared.
    pub block_digest: Option<Digest>,
    /// The payload's digest as computed, where one was declared.
    pub payload_digest: Option<Digest>,
}

/// Computes block and payload digests of a block that arrives in pieces, holding at most its HTTP head in memory.
#[derive(Debug)]
pub struct BlockCheck {
    declared: Declared,
    block: Option<Hasher>,
    /// Digest of the whole block in the algorithm of the payload digest, where that differs from `block`'s.
    block_as_payload: Option<Hasher>,
    payload: Option<Hasher>,
    chunked_body: Option<Hasher>,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Head { window: Vec<u8>, wanted: usize, head: Head, what: Payload },
    Body(Option<Chunks>),
}

impl BlockCheck {
    /// A check against what was declared.
    pub fn new(declared: Declared, what: Payload) -> BlockCheck {
        BlockCheck::computing(
            declared.clone(),
            declared.block.map(|d| d.algorithm()),
            declared.payload.map(|d| d.algorithm()),
            what,
        )
    }

    /// Nothing to compare: computes both digests for a record about to be written.
    pub fn compute(algorithm: Algorithm, what: Payload) -> BlockCheck {
        BlockCheck::computing(Declared::default(), Some(algorithm), Some(algorithm), what)
    }

    fn computing(
        declared: Declared,
        block: Option<Algorithm>,
        payload: Option<Algorithm>,
        what: Payload,
    ) -> BlockCheck {
        let http = what != Payload::Block;
        BlockCheck {
            block: block.map(Hasher::new),
            block_as_payload: payload
                .filter(|p| http && declared.payload.is_some() && block != Some(*p))
                .map(Hasher::new),
            payload: payload.map(Hasher::new),
            chunked_body: None,
            place: match payload {
                Some(_) if http => Place::Head { window: Vec::new(), wanted: 1, head: Head::new(), what },
                _ => Place::Body(None),
            },
            declared,
        }
    }

    /// Takes the next bytes of the block.
    pub fn update(&mut self, bytes: &[u8]) {
        for hasher in [&mut self.block, &mut self.block_as_payload].into_iter().flatten() {
            hasher.update(bytes);
        }
        match &mut self.place {
            Place::Body(_) => self.body(bytes),
            Place::Head { window, wanted, .. } => {
                window.extend_from_slice(bytes);
                if window.len() >= *wanted || window.len() > HTTP_HEAD_BYTES_MAX {
                    // A head usually arrives whole. One that comes in crumbs is looked at again only when twice as much
                    // is there, so that it cannot cost the square of its length.
                    *wanted = window.len() * 2;
                    self.head(false);
                }
            }
        }
    }

    fn head(&mut self, ended: bool) {
        let Place::Head { window, head, what, .. } = &mut self.place else { return };
        let parsed = match what {
            Payload::HttpRequest => head.parse_request(window, ended),
            _ => head.parse_response(window, ended),
        };
        let (start, chunked) = match parsed {
            Parsed::Complete { body } => (body, head.is_chunked()),
            Parsed::NotHttp => (0, false),
            Parsed::NeedMore => return,
        };
        let window = std::mem::take(window);
        self.place = Place::Body(chunked.then(Chunks::new));
        if chunked && self.declared.payload.is_some() {
            self.chunked_body = self.payload.clone();
        }
        self.body(&window[start..]);
    }

    fn body(&mut self, mut bytes: &[u8]) {
        let Some(payload) = &mut self.payload else { return };
        let Place::Body(chunks) = &mut self.place else { return };
        let Some(chunks) = chunks else { return payload.update(bytes) };
        if let Some(hasher) = &mut self.chunked_body {
            hasher.update(bytes);
        }
        while !bytes.is_empty() {
            let taken = match chunks.step(bytes) {
                Step::Skip(taken) => taken,
                Step::Body(taken) => {
                    payload.update(&bytes[..taken]);
                    taken
                }
                Step::Held(taken) => {
                    payload.update(chunks.held());
                    taken
                }
            };
            bytes = &bytes[taken..];
        }
    }

    /// The block is at its end.
    pub fn finish(mut self) -> CheckedDigests {
        self.head(true);
        if let (Place::Body(Some(chunks)), Some(payload)) = (&mut self.place, &mut self.payload)
            && chunks.finish()
        {
            payload.update(chunks.held());
        }
        let block = self.block.map(Hasher::finish);
        let payload = self.payload.map(Hasher::finish);
        let whole = self.block_as_payload.map(Hasher::finish).or(block);
        let chunked = self.chunked_body.map(Hasher::finish);
        CheckedDigests {
            block: self.declared.block.map(|declared| Some(declared) == block),
            payload: self.declared.payload.map(|declared| match Some(declared) {
                d if d == payload => PayloadMatch::Payload,
                d if d == chunked => PayloadMatch::ChunkedBody,
                d if d == whole => PayloadMatch::Block,
                _ => PayloadMatch::Nothing,
            }),
            block_digest: block,
            payload_digest: payload,
        }
    }
}
