//! A capture and the words it is made of: what the captures view answers and what sidecars store.

use crate::Key;
use std::fmt;
use std::str::FromStr;

/// The first four bytes of the BLAKE3 of a writer's public key; names the writer in file names and positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriterKey(pub u32);

impl WriterKey {
    /// The writer of files that were added from elsewhere.
    pub const FOREIGN: WriterKey = WriterKey(0);
}

impl fmt::Display for WriterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// What was wrong with a text that should have been a position, a writer key or a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    wanted: &'static str,
    found: String,
}

impl ParseError {
    fn new(wanted: &'static str, found: &str) -> ParseError {
        ParseError { wanted, found: found.chars().take(120).collect() }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not {}", self.found, self.wanted)
    }
}

impl std::error::Error for ParseError {}

impl FromStr for WriterKey {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<WriterKey, ParseError> {
        let plain = text.len() == 8 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        match u32::from_str_radix(text, 16) {
            Ok(value) if plain => Ok(WriterKey(value)),
            _ => Err(ParseError::new("a writer key of 8 lower-case hex digits such as c41f22ab", text)),
        }
    }
}

/// The name of a record for ever: it does not change when its segment is rewritten, moved or merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Who wrote the segment.
    pub writer: WriterKey,
    /// The segment's number, counted per writer; for foreign files the file's number in this archive.
    pub segment: u32,
    /// The record's ordinal in its segment; 0 is the warcinfo of a segment of our own.
    pub record: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.writer, self.segment, self.record)
    }
}

impl FromStr for Position {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Position, ParseError> {
        let wrong = || ParseError::new("a position WRITER:SEGMENT:RECORD such as c41f22ab:1:17", text);
        let number = |part: Option<&str>| -> Option<u32> {
            let part = part?;
            // `u32::from_str` takes "+1"; a position has one spelling only.
            if part.bytes().all(|b| b.is_ascii_digit()) { part.parse().ok() } else { None }
        };
        let mut parts = text.split(':');
        let writer = parts.next().and_then(|part| part.parse().ok()).ok_or_else(wrong)?;
        let segment = number(parts.next()).ok_or_else(wrong)?;
        let record = number(parts.next()).ok_or_else(wrong)?;
        if parts.next().is_some() {
            return Err(wrong());
        }
        Ok(Position { writer, segment, record })
    }
}

/// The type of the record that holds a capture. The numbers are stored; they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CaptureKind {
    /// `response`: what a server answered.
    Response = 0,
    /// `revisit`: the same payload was captured before.
    Revisit = 1,
    /// `resource`: bytes without an exchange.
    Resource = 2,
    /// `metadata`.
    Metadata = 3,
    /// `conversion`: another form of a capture.
    Conversion = 4,
    /// `request`: what was asked.
    Request = 5,
    /// Any other type.
    Other = 6,
}

impl CaptureKind {
    /// The kind stored as this number.
    pub fn from_number(number: u8) -> Option<CaptureKind> {
        Some(match number {
            0 => CaptureKind::Response,
            1 => CaptureKind::Revisit,
            2 => CaptureKind::Resource,
            3 => CaptureKind::Metadata,
            4 => CaptureKind::Conversion,
            5 => CaptureKind::Request,
            6 => CaptureKind::Other,
            _ => return None,
        })
    }

    /// The number stored for this kind.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The value of `WARC-Type`; `other` where the archive does not distinguish further.
    pub fn name(self) -> &'static str {
        match self {
            CaptureKind::Response => "response",
            CaptureKind::Revisit => "revisit",
            CaptureKind::Resource => "resource",
            CaptureKind::Metadata => "metadata",
            CaptureKind::Conversion => "conversion",
            CaptureKind::Request => "request",
            CaptureKind::Other => "other",
        }
    }

    /// The kind for a value of `WARC-Type`.
    pub fn from_name(name: &str) -> CaptureKind {
        match name.to_ascii_lowercase().as_str() {
            "response" => CaptureKind::Response,
            "revisit" => CaptureKind::Revisit,
            "resource" => CaptureKind::Resource,
            "metadata" => CaptureKind::Metadata,
            "conversion" => CaptureKind::Conversion,
            "request" => CaptureKind::Request,
            _ => CaptureKind::Other,
        }
    }

    /// Whether the record itself holds the body, so that a revisit may refer to it.
    pub fn has_body(self) -> bool {
        matches!(self, CaptureKind::Response | CaptureKind::Resource)
    }
}

impl fmt::Display for CaptureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A payload digest. Shown as `label:BASE32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Digest {
    /// MD5.
    Md5([u8; 16]),
    /// SHA-1, the convention of WARC files.
    Sha1([u8; 20]),
    /// SHA-256.
    Sha256([u8; 32]),
    /// SHA-384.
    Sha384([u8; 48]),
    /// SHA-512.
    Sha512([u8; 64]),
    /// BLAKE3.
    Blake3([u8; 32]),
}

impl Digest {
    /// The number stored for the algorithm; it never changes.
    pub fn algorithm(&self) -> u8 {
        match self {
            Digest::Md5(_) => 1,
            Digest::Sha1(_) => 2,
            Digest::Sha256(_) => 3,
            Digest::Sha384(_) => 4,
            Digest::Sha512(_) => 5,
            Digest::Blake3(_) => 6,
        }
    }

    /// The label in front of the colon.
    pub fn label(&self) -> &'static str {
        match self {
            Digest::Md5(_) => "md5",
            Digest::Sha1(_) => "sha1",
            Digest::Sha256(_) => "sha256",
            Digest::Sha384(_) => "sha384",
            Digest::Sha512(_) => "sha512",
            Digest::Blake3(_) => "blake3",
        }
    }

    /// The digest itself.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Digest::Md5(b) => b,
            Digest::Sha1(b) => b,
            Digest::Sha256(b) | Digest::Blake3(b) => b,
            Digest::Sha384(b) => b,
            Digest::Sha512(b) => b,
        }
    }

    /// How many bytes a digest of this algorithm has; `None` for a number that was never given out.
    pub fn width(algorithm: u8) -> Option<usize> {
        Some(match algorithm {
            1 => 16,
            2 => 20,
            3 | 6 => 32,
            4 => 48,
            5 => 64,
            _ => return None,
        })
    }

    /// The digest with this algorithm number and these bytes, if the width is right.
    pub fn from_parts(algorithm: u8, bytes: &[u8]) -> Option<Digest> {
        Some(match algorithm {
            1 => Digest::Md5(bytes.try_into().ok()?),
            2 => Digest::Sha1(bytes.try_into().ok()?),
            3 => Digest::Sha256(bytes.try_into().ok()?),
            4 => Digest::Sha384(bytes.try_into().ok()?),
            5 => Digest::Sha512(bytes.try_into().ok()?),
            6 => Digest::Blake3(bytes.try_into().ok()?),
            _ => return None,
        })
    }

    fn algorithm_of_label(label: &str) -> Option<u8> {
        let plain: String = label.chars().filter(|c| *c != '-' && *c != '_').collect::<String>().to_ascii_lowercase();
        Some(match plain.as_str() {
            "md5" => 1,
            "sha1" => 2,
            "sha256" => 3,
            "sha384" => 4,
            "sha512" => 5,
            "blake3" => 6,
            _ => return None,
        })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.label(), base32(self.bytes()))
    }
}

impl FromStr for Digest {
    type Err = ParseError;

    /// Reads what tools write: any case of the label, with or without hyphen; base32 or hex; padding or none; a bare
    /// 32-character base32 value, as CDX files have it, is SHA-1.
    fn from_str(text: &str) -> Result<Digest, ParseError> {
        let wrong = || ParseError::new("a digest such as sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", text);
        let text = text.trim();
        let (algorithm, value) = match text.split_once(':') {
            Some((label, value)) => (Digest::algorithm_of_label(label).ok_or_else(wrong)?, value.trim()),
            None => (2, text),
        };
        let width = Digest::width(algorithm).ok_or_else(wrong)?;
        let value = value.trim_end_matches('=');
        // Hex is told from base32 by its length, which never coincides for one algorithm.
        let bytes = if value.len() == width * 2 { unhex(value) } else { unbase32(value) };
        bytes.and_then(|bytes| Digest::from_parts(algorithm, &bytes)).ok_or_else(wrong)
    }
}

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// RFC 4648 base32; padded with `=` as the RFC says (SHA-1 needs none).
fn base32(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(5) * 8);
    for group in bytes.chunks(5) {
        let mut word = [0u8; 8];
        word[3..3 + group.len()].copy_from_slice(group);
        let bits = u64::from_be_bytes(word);
        let digits = (group.len() * 8).div_ceil(5);
        for digit in 0..8 {
            if digit < digits {
                out.push(BASE32[(bits >> (35 - 5 * digit)) as usize & 31] as char);
            } else {
                out.push('=');
            }
        }
    }
    out
}

fn unbase32(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 5 / 8);
    let (mut bits, mut held) = (0u32, 0u32);
    for byte in text.bytes() {
        let value = match byte.to_ascii_uppercase() {
            upper @ b'A'..=b'Z' => upper - b'A',
            digit @ b'2'..=b'7' => digit - b'2' + 26,
            _ => return None,
        };
        bits = (bits << 5) | u32::from(value);
        held += 5;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    Some(out)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect();
    Some(digits?.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// The capture was made with secrets: never copied to others, never answered without a token.
pub const FLAG_PRIVATE: u8 = 1;
/// The record's block is an HTTP message.
pub const FLAG_HTTP: u8 = 2;

/// One fetch of one URL at one time, and where its record is.
///
/// Captures are ordered by (key, time, position): two captures of one millisecond both survive, because no two records
/// have the same position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// What the capture is sorted and found by.
    pub key: Key,
    /// The URL as it stands in the record.
    pub url: String,
    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub time_ms: i64,
    /// The name of the record.
    pub position: Position,
    /// The type of the record.
    pub kind: CaptureKind,
    /// The HTTP status; 0 where there is none.
    pub status: u16,
    /// The media type without parameters; empty where there is none.
    pub mime: String,
    /// The payload digest.
    pub digest: Option<Digest>,
    /// Where the record begins in its file.
    pub offset: u64,
    /// How many bytes the record takes in its file, as compressed there.
    pub length: u64,
    /// [`FLAG_PRIVATE`], [`FLAG_HTTP`].
    pub flags: u8,
}

impl Capture {
    /// Whether the capture was made with secrets.
    pub fn is_private(&self) -> bool {
        self.flags & FLAG_PRIVATE != 0
    }

    /// Whether the record's block is an HTTP message.
    pub fn is_http(&self) -> bool {
        self.flags & FLAG_HTTP != 0
    }
}

/// Captures as they travel between nodes: for each `| key length 4 | key | value length 4 | value |`, little-endian, in the bytes of the
/// view's own entries.
impl Capture {
    /// Appends it as it travels; says no if it cannot be indexed.
    pub fn write(&self, out: &mut Vec<u8>) -> bool {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        if crate::runs::write_entry(self, &mut key, &mut value).is_err() {
            return false;
        }
        for part in [key, value] {
            out.extend_from_slice(&(part.len() as u32).to_le_bytes());
            out.extend_from_slice(&part);
        }
        true
    }

    /// Reads the first of those that travel together, and what follows it.
    pub fn read(bytes: &[u8]) -> Option<(Capture, &[u8])> {
        fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
            let (length, rest) = bytes.split_first_chunk::<4>()?;
            rest.split_at_checked(u32::from_le_bytes(*length) as usize)
        }
        let (key, rest) = part(bytes)?;
        let (value, rest) = part(rest)?;
        Some((crate::runs::read_entry(key, value)?.capture()?, rest))
    }
}

impl PartialOrd for Capture {
    fn partial_cmp(&self, other: &Capture) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Capture {
    /// The order of the captures view. Consistent with equality inside one archive, where a position has one capture.
    fn cmp(&self, other: &Capture) -> std::cmp::Ordering {
        (self.key.as_bytes(), self.time_ms, self.position).cmp(&(other.key.as_bytes(), other.time_ms, other.position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_have_one_spelling() {
        let position = Position { writer: WriterKey(0xc41f22ab), segment: 1, record: 17 };
        assert_eq!(position.to_string(), "c41f22ab:1:17");
        assert_eq!("c41f22ab:1:17".parse(), Ok(position));
        for wrong in [
            "",
            "c41f22ab:1",
            "c41f22ab:1:17:2",
            "C41F22AB:1:17",
            "c41f22ab:+1:17",
            "c41f22:1:17",
            "c41f22ab:1:4294967296",
        ] {
            assert!(wrong.parse::<Position>().is_err(), "{wrong}");
        }
        let first = Position { writer: WriterKey(1), segment: 9, record: 9 };
        let second = Position { writer: WriterKey(2), segment: 0, record: 0 };
        assert!(first < second);
    }

    #[test]
    fn digests_are_read_leniently_and_written_one_way() {
        let sha1 = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ";
        let digest: Digest = sha1.parse().unwrap();
        assert_eq!(digest.to_string(), sha1);
        assert_eq!(digest.bytes().len(), 20);
        for same in [
            "SHA-1:3i42h3s6nnfq2msvx7xzkyayscx5qbyj",
            "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
            " sha1: 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ ",
            "sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "sha1:DA39A3EE5E6B4B0D3255BFEF95601890AFD80709",
        ] {
            assert_eq!(same.parse::<Digest>().unwrap(), digest, "{same}");
        }
        let sha256 =
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".parse::<Digest>().unwrap();
        assert_eq!(sha256.to_string(), "sha256:4OYMIQUY7QOBJGX36TEJS35ZEQT24QPEMSNZGTFESWMRW6CSXBKQ====");
        assert_eq!(sha256.to_string().parse(), Ok(sha256));
        for wrong in [
            "",
            "sha1:",
            "sha1:short",
            "crc32:abcd",
            "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBY1",
            "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJAAAA",
        ] {
            assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
        }
        for algorithm in 1..=6 {
            let width = Digest::width(algorithm).unwrap();
            let digest = Digest::from_parts(algorithm, &vec![0xa7; width]).unwrap();
            assert_eq!(digest.algorithm(), algorithm);
            assert_eq!(digest.to_string().parse(), Ok(digest));
            assert!(Digest::from_parts(algorithm, &vec![0; width + 1]).is_none());
        }
    }

    #[test]
    fn kinds_round_trip() {
        for number in 0..=6 {
            let kind = CaptureKind::from_number(number).unwrap();
            assert_eq!(kind.number(), number);
            assert_eq!(CaptureKind::from_name(kind.name()), kind);
        }
        assert_eq!(CaptureKind::from_number(7), None);
        assert_eq!(CaptureKind::from_name("Response"), CaptureKind::Response);
    }
}
