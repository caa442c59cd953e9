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

/// Computes block and payload digests of a block that arrives in pieces, holding at most its HTTP head in memory. Both cover nearly the
/// same bytes, so they are computed side by side.
#[derive(Debug)]
pub struct BlockCheck {
    declared: Declared,
    block: Option<Hasher>,
    /// Digest of the whole block in the algorithm of the payload digest, where that differs from `block`'s.
    block_as_payload: Option<Hasher>,
    /// `None` also where the payload is the block and `block` computes its digest.
    payload: Option<Hasher>,
    payload_is_block: bool,
    chunked_body: Option<Hasher>,
    begins_http: Option<bool>,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// The head is not whole: so much of it is there, and this much must be there before it is looked at again.
    Head {
        window: Vec<u8>,
        wanted: usize,
        what: Payload,
    },
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
        let payload_is_block = !http && payload.is_some() && payload == block;
        BlockCheck {
            block: block.map(Hasher::new),
            block_as_payload: payload
                .filter(|p| http && declared.payload.is_some() && block != Some(*p))
                .map(Hasher::new),
            payload: payload.filter(|_| !payload_is_block).map(Hasher::new),
            payload_is_block,
            chunked_body: None,
            begins_http: None,
            place: match payload {
                Some(_) if http => Place::Head { window: Vec::new(), wanted: 1, what },
                _ => Place::Body(None),
            },
            declared,
        }
    }

    /// Takes the next bytes of the block.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.place {
            Place::Body(_) => self.take(bytes, bytes),
            // A head usually arrives whole, and then nothing is copied.
            Place::Head { window, what, .. } if window.is_empty() => {
                let found = body_start(bytes, *what, false);
                self.begins_http = Some(found != Some(Message::OTHER));
                if let Some(Message { start, chunked, .. }) = found {
                    self.begin_body(chunked);
                    self.take(bytes, &bytes[start..]);
                } else {
                    window.extend_from_slice(bytes);
                    self.await_more();
                    self.take(bytes, b"");
                }
            }
            Place::Head { window, wanted, what } => {
                window.extend_from_slice(bytes);
                // One that comes in crumbs is looked at again only when twice as much is there, so that it cannot cost the square of
                // its length.
                if window.len() < *wanted && window.len() <= HTTP_HEAD_BYTES_MAX {
                    return self.take(bytes, b"");
                }
                match body_start(window, *what, false) {
                    Some(Message { start, chunked, .. }) => {
                        let window = std::mem::take(window);
                        self.begin_body(chunked);
                        self.take(bytes, &window[start..]);
                    }
                    None => {
                        self.await_more();
                        self.take(bytes, b"");
                    }
                }
            }
        }
    }

    /// Whether the first bytes began an HTTP message; `None` where nobody looked, because no payload is wanted.
    pub(crate) fn begins_http(&self) -> Option<bool> {
        self.begins_http
    }

    fn await_more(&mut self) {
        if let Place::Head { window, wanted, .. } = &mut self.place {
            *wanted = window.len() * 2;
        }
    }

    fn begin_body(&mut self, chunked: bool) {
        self.place = Place::Body(chunked.then(Chunks::new));
        if chunked && self.declared.payload.is_some() {
            self.chunked_body = self.payload.clone();
        }
    }

    /// These bytes of the block, and those of the body that came with them.
    fn take(&mut self, block: &[u8], body: &[u8]) {
        let chunks = match &mut self.place {
            Place::Body(Some(chunks)) if !body.is_empty() => Some(chunks),
            _ => None,
        };
        // The payload as it stands goes side by side with the block; so does the body with its chunks.
        let beside = if chunks.is_some() { self.chunked_body.as_mut() } else { self.payload.as_mut() };
        match (&mut self.block, &mut self.block_as_payload, beside) {
            (Some(one), None, Some(beside)) | (None, Some(one), Some(beside)) => {
                Hasher::update_both(one, block, beside, body);
            }
            (Some(one), Some(other), Some(beside)) => {
                one.update(block);
                Hasher::update_both(other, block, beside, body);
            }
            (one, other, beside) => {
                [one.as_mut(), other.as_mut()].into_iter().flatten().for_each(|hasher| hasher.update(block));
                beside.into_iter().for_each(|hasher| hasher.update(body));
            }
        }
        if let (Some(chunks), Some(payload)) = (chunks, &mut self.payload) {
            unchunk(chunks, body, payload);
        }
    }

    /// The block is at its end.
    pub fn finish(mut self) -> CheckedDigests {
        if let Place::Head { window, what, .. } = &mut self.place
            && let Some(Message { start, chunked, .. }) = body_start(window, *what, true)
        {
            let window = std::mem::take(window);
            self.begin_body(chunked);
            self.take(b"", &window[start..]);
        }
        if let (Place::Body(Some(chunks)), Some(payload)) = (&mut self.place, &mut self.payload)
            && chunks.finish()
        {
            payload.update(chunks.held());
        }
        let block = self.block.map(Hasher::finish);
        let payload = if self.payload_is_block { block } else { self.payload.map(Hasher::finish) };
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

/// Where the body begins and whether it comes in chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Message {
    http: bool,
    start: usize,
    chunked: bool,
}

impl Message {
    /// No HTTP: all of it is body.
    const OTHER: Message = Message { http: false, start: 0, chunked: false };
}

/// `None` while the head is not whole.
fn body_start(window: &[u8], what: Payload, ended: bool) -> Option<Message> {
    let mut head = Head::new();
    let parsed = match what {
        Payload::HttpRequest => head.parse_request(window, ended),
        _ => head.parse_response(window, ended),
    };
    match parsed {
        Parsed::Complete { body } => Some(Message { http: true, start: body, chunked: head.is_chunked() }),
        Parsed::NotHttp => Some(Message::OTHER),
        Parsed::NeedMore => None,
    }
}

fn unchunk(chunks: &mut Chunks, mut bytes: &[u8], payload: &mut Hasher) {
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
