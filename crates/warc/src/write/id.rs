//! Record identifiers: `<urn:uuid:…>`.

use std::fmt;

use super::WriteError;

/// A `WARC-Record-ID`, an absolute URI kept without its angle brackets.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(String);

impl RecordId {
    /// A version 4 UUID from 16 random bytes. Where they come from is the caller's business.
    pub fn uuid(mut random: [u8; 16]) -> RecordId {
        random[6] = random[6] & 0x0f | 0x40;
        random[8] = random[8] & 0x3f | 0x80;
        let n = u128::from_be_bytes(random);
        RecordId(format!(
            "urn:uuid:{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            n >> 96,
            n >> 80 & 0xffff,
            n >> 64 & 0xffff,
            n >> 48 & 0xffff,
            n & 0xffff_ffff_ffff
        ))
    }

    /// An identifier as found in a record, with or without angle brackets.
    pub fn parse(text: &str) -> Result<RecordId, WriteError> {
        let uri = text.trim();
        let uri = uri.strip_prefix('<').and_then(|u| u.strip_suffix('>')).unwrap_or(uri);
        let scheme = uri.split_once(':').map(|(scheme, rest)| scheme.len().min(rest.len())).unwrap_or(0);
        if scheme == 0 || !uri.bytes().all(|b| b.is_ascii_graphic() && b != b'<' && b != b'>') {
            return Err(WriteError::BadId(text.to_owned()));
        }
        Ok(RecordId(uri.to_owned()))
    }

    /// The URI without brackets.
    pub fn as_uri(&self) -> &str {
        &self.0
    }
}

/// With angle brackets, as fields carry it.
impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.0)
    }
}
