//! Record identifiers: `<urn:uuid:…>`.

use std::fmt;

use super::WriteError;

/// A `WARC-Record-ID`, an absolute URI kept without its angle brackets.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(String);

const HEX: &[u8; 16] = b"0123456789abcdef";

impl RecordId {
    /// A version 4 UUID from 16 random bytes. Where they come from is the caller's business.
    pub fn uuid(mut random: [u8; 16]) -> RecordId {
        random[6] = random[6] & 0x0f | 0x40;
        random[8] = random[8] & 0x3f | 0x80;
        let mut uri = *b"urn:uuid:00000000-0000-0000-0000-000000000000";
        let mut at = "urn:uuid:".len();
        for byte in random {
            at += usize::from(uri[at] == b'-');
            uri[at] = HEX[usize::from(byte >> 4)];
            uri[at + 1] = HEX[usize::from(byte & 15)];
            at += 2;
        }
        RecordId(str::from_utf8(&uri).expect("digits are text").to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_of_random_bytes_says_that_it_is_one() {
        let id = RecordId::uuid([0xff; 16]);
        assert_eq!(id.as_uri(), "urn:uuid:ffffffff-ffff-4fff-bfff-ffffffffffff");
        let id = RecordId::uuid(std::array::from_fn(|at| at as u8 * 16 + at as u8));
        assert_eq!(id.as_uri(), "urn:uuid:00112233-4455-4677-8899-aabbccddeeff");
    }
}
