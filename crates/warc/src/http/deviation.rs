//! What an HTTP message inside an archive does differently from the specification.

use std::fmt;

macro_rules! deviations {
    ($($name:ident $id:literal $text:literal;)*) => {
        /// A way in which a message deviates. The identifier is stable and meant for machines.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule { $(#[doc = $text] $name,)* }

        impl Rule {
            /// All of them, for documentation and tests.
            pub const ALL: &'static [Rule] = &[$(Rule::$name,)*];

            /// Stable identifier.
            pub fn id(self) -> &'static str {
                match self { $(Rule::$name => $id,)* }
            }

            /// One sentence for a person.
            pub fn text(self) -> &'static str {
                match self { $(Rule::$name => $text,)* }
            }
        }
    };
}

deviations! {
    LeadingBytes "http-leading-bytes" "bytes stand before the status line";
    Version "http-version" "the protocol version is missing or malformed";
    Status "http-status" "the status is missing or malformed; browsers then assume 200";
    StatusFolded "http-status-folded" "the status line is continued on the next line";
    RequestLine "http-request-line" "the request line is malformed";
    Interim "http-interim" "interim (1xx) responses stand before the final one";
    LineEnd "http-line-end" "a line of the head ends with LF instead of CRLF";
    BareCr "http-bare-cr" "a carriage return stands inside a line of the head";
    Nul "http-nul" "a line of the head holds a NUL byte, which browsers refuse";
    NoColon "http-no-colon" "a line of the head is no field: it has no colon or no name";
    FieldName "http-field-name" "a field name holds characters that are not allowed there";
    SpaceBeforeColon "http-space-before-colon" "white space stands around a field name";
    Folded "http-folded" "a field is continued on the next line";
    HeadUnended "http-head-unended" "no empty line ends the head";
    HeadTooLong "http-head-too-long" "the head is longer than accepted and was cut";
    ContentTypeRepeated "http-content-type-repeated" "Content-Type is repeated with another value";
    ContentLengthInvalid "http-content-length-invalid" "Content-Length is not a number or is repeated with another value";
    ContentLengthWrong "http-content-length-wrong" "the body does not have the length that Content-Length gives";
    NotChunked "http-not-chunked" "Transfer-Encoding says chunked, but the body is not";
    ChunkSize "http-chunk-size" "a chunk size is malformed; the bytes from there on are given as they stand";
    ChunkEnd "http-chunk-end" "a chunk is not followed by a line end; the bytes from there on are given as they stand";
    ChunkLineEnd "http-chunk-line-end" "a chunk line ends with LF instead of CRLF";
    ChunkTruncated "http-chunk-truncated" "the body ends in the middle of a chunk";
    ChunkUnended "http-chunk-unended" "the last chunk is missing";
    Trailer "http-trailer" "the trailer behind the last chunk is malformed or cut off";
    AfterLastChunk "http-after-last-chunk" "bytes follow the last chunk and were left out";
    TransferCodingUnknown "http-transfer-coding-unknown" "a transfer coding other than chunked is declared and was left in place";
    ContentCodingUnknown "http-content-coding-unknown" "a content coding is unknown and was left in place";
    ContentCodingTooMany "http-content-coding-too-many" "more content codings are declared than accepted; none was removed";
    ContentAlreadyDecoded "http-content-already-decoded" "a content coding is declared, but the body is already decoded";
    ContentDamaged "http-content-damaged" "encoded content is damaged; the bytes up to there are given";
    ContentTruncated "http-content-truncated" "encoded content is cut off; the bytes up to there are given";
    ContentChecksum "http-content-checksum" "decoded content does not match its checksum or length";
    ContentAfterEnd "http-content-after-end" "bytes follow the encoded content and were left out";
    ContentWindow "http-content-window" "the zstd window is larger than the 8 MiB that browsers accept";
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// One deviation and where it was first met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deviation {
    /// In which way.
    pub rule: Rule,
    /// Offset of the first occurrence: in the message for the head, in the body as it stood before decoding for the rest.
    pub offset: u64,
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} at offset {}", self.rule.id(), self.rule.text(), self.offset)
    }
}

/// The deviations of one message, each rule once: bounded by the number of rules, whatever the input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Deviations(Vec<Deviation>);

impl Deviations {
    pub fn note(&mut self, rule: Rule, offset: usize) {
        self.note_at(rule, offset as u64);
    }

    pub fn note_at(&mut self, rule: Rule, offset: u64) {
        if self.0.iter().all(|d| d.rule != rule) {
            self.0.push(Deviation { rule, offset });
        }
    }

    /// Drops what was noted at `offset` or behind it, where that turned out not to belong to the head.
    pub fn forget_from(&mut self, offset: usize) {
        self.0.retain(|d| d.offset < offset as u64);
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn as_slice(&self) -> &[Deviation] {
        &self.0
    }
}
