//! Content encodings: gzip, deflate (with or without the zlib wrapper), brotli and zstd, also several on top of each other,
//! decoded as a stream under explicit bounds.
//!
//! What a browser would show is what comes out, with one addition: archives hold bodies that were stored decoded under
//! headers that still say otherwise, and these pass through unchanged. Damaged content gives the bytes up to the damage and a
//! [`Deviation`]; only a body that outgrows its [`Bounds`] is an error, [`BoundError`].
//!
//! ```
//! use skep_warc::coding::{self, Bounds};
//! use skep_warc::http::Head;
//! use std::io::Read;
//!
//! let message = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: identity\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
//! let mut head = Head::new();
//! head.parse_response(message, true);
//! let mut text = String::new();
//! coding::decode(&head, &message[head.raw().len()..], Bounds::DEFAULT).read_to_string(&mut text)?;
//! assert_eq!(text, "hi");
//! # Ok::<(), std::io::Error>(())
//! ```

mod decoder;
mod gzip;
mod layer;

use std::fmt;
use std::io::{self, BufRead, Read};

use crate::http::{Body, Deviation, Deviations, Head, Rule};
use layer::{Layer, Source};

/// Codings on top of each other that are removed; more are left in place.
pub const CODINGS_MAX: usize = 5;

/// Bytes looked at before a body is believed to be encoded as declared.
const PROBE_BYTES: usize = 4096;

/// Bytes decoded at a time.
const STEP_BYTES: usize = 32 << 10;

/// Largest zstd window, log2 of bytes: what RFC 9659 allows on the web and browsers accept.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// Longest gzip header (extra field, name and comment included), in bytes.
const GZIP_HEADER_BYTES_MAX: usize = 128 << 10;

const _: () = assert!(GZIP_HEADER_BYTES_MAX > u16::MAX as usize); // an extra field of any length fits

/// A content coding that can be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// `gzip`, `x-gzip`; one member or several.
    Gzip,
    /// `deflate`: zlib by the standard, raw DEFLATE by some servers.
    Deflate,
    /// `br`.
    Brotli,
    /// `zstd`.
    Zstd,
}

impl Coding {
    /// By its name in Content-Encoding, in any case.
    pub fn from_name(name: &str) -> Option<Coding> {
        match name.to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => Some(Coding::Gzip),
            "deflate" | "x-deflate" => Some(Coding::Deflate),
            "br" => Some(Coding::Brotli),
            "zstd" => Some(Coding::Zstd),
            _ => None,
        }
    }
}

/// How much decoding may give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Most bytes that come out.
    pub output_bytes_max: u64,
    /// Most bytes that come out for each byte that goes in, by each coding.
    pub ratio_max: u64,
    /// The ratio is not looked at before so many bytes came out: a page of zeros is no attack.
    pub ratio_free_bytes: u64,
}

impl Bounds {
    /// 1 GiB; beyond 64 MiB at most a thousandfold (DEFLATE itself ends at 1032).
    pub const DEFAULT: Bounds = Bounds { output_bytes_max: 1 << 30, ratio_max: 1000, ratio_free_bytes: 64 << 20 };
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds::DEFAULT
    }
}

/// Decoding was stopped on purpose. Comes inside an [`io::Error`]; [`BoundError::of`] takes it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundError {
    /// More bytes than allowed.
    TooLarge {
        /// The bound.
        output_bytes_max: u64,
    },
    /// A decompression bomb: out of all proportion.
    Bomb {
        /// The bound.
        ratio_max: u64,
    },
}

impl BoundError {
    /// The bound that an error of reading stands for, if it does.
    pub fn of(error: &io::Error) -> Option<BoundError> {
        error.get_ref().and_then(|inner| inner.downcast_ref::<BoundError>()).copied()
    }
}

impl From<BoundError> for io::Error {
    fn from(error: BoundError) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

impl fmt::Display for BoundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BoundError::TooLarge { output_bytes_max } => {
                write!(f, "decoded content is larger than the {output_bytes_max} bytes allowed")
            }
            BoundError::Bomb { ratio_max } => {
                write!(
                    f,
                    "content decodes to more than {ratio_max} times its size, which looks like a decompression bomb"
                )
            }
        }
    }
}

impl std::error::Error for BoundError {}

/// A body with its content encodings removed.
#[derive(Debug)]
pub struct Decoded<R> {
    source: Source<R>,
    deviations: Deviations,
}

/// The body of a message as a browser sees it: transfer and content encodings removed. `inner` stands behind the head.
pub fn decode<R: BufRead>(head: &Head, inner: R, bounds: Bounds) -> Decoded<Body<R>> {
    let mut deviations = Deviations::default();
    let mut codings = Vec::new();
    for name in head.words("content-encoding") {
        match Coding::from_name(&name) {
            Some(coding) => codings.push(coding),
            None if matches!(name.as_str(), "identity" | "none") => {}
            None => deviations.note(Rule::ContentCodingUnknown, 0),
        }
    }
    let mut decoded = Decoded::new(Body::new(head, inner), &codings, bounds);
    for deviation in deviations.as_slice() {
        decoded.deviations.note_at(deviation.rule, deviation.offset);
    }
    decoded
}

impl<R: BufRead> Decoded<R> {
    /// Removes `codings`, given in the order in which they were applied (that of the header).
    pub fn new(inner: R, codings: &[Coding], bounds: Bounds) -> Decoded<R> {
        let mut decoded = Decoded { source: Source::Base(inner), deviations: Deviations::default() };
        if codings.len() > CODINGS_MAX {
            decoded.deviations.note(Rule::ContentCodingTooMany, 0);
            return decoded;
        }
        for &coding in codings.iter().rev() {
            decoded.source = Source::Layer(Box::new(Layer::new(decoded.source, coding, bounds)));
        }
        decoded
    }

    /// What was odd about the encodings so far; complete once everything is read. Offsets are those of the encoded bytes of the
    /// layer concerned.
    pub fn deviations(&self) -> Vec<Deviation> {
        let mut all = self.deviations.clone();
        self.source.collect(&mut all);
        all.as_slice().to_vec()
    }

    /// The body below, with its own deviations and trailer.
    pub fn body(&self) -> &R {
        self.source.base()
    }
}

impl<R: BufRead> BufRead for Decoded<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.source.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.source.consume(bytes);
    }
}

impl<R: BufRead> Read for Decoded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.source.read(into)
    }
}
