//! The head of a WARC record, built in one buffer that is used again for every record.

use std::fmt::Display;
use std::io::Write;

use data_encoding::BASE32;
use skep_archive::Digest;
use skep_warc::RecordKind;
use skep_warc::write::{RecordId, WriteError};

/// Base32 of the longest digest.
const DIGEST_TEXT_BYTES_MAX: usize = 104;

/// The head of a record: [`begin`](RecordHead::begin), fields, [`end`](RecordHead::end).
#[derive(Debug, Default)]
pub struct RecordHead {
    text: Vec<u8>,
}

impl RecordHead {
    /// Begins the head of another record.
    pub fn begin(&mut self, kind: RecordKind, id: &RecordId, date: &str, url: Option<&str>) -> Result<(), WriteError> {
        self.text.clear();
        self.text.extend_from_slice(b"WARC/1.1\r\n");
        self.line("WARC-Type", kind.name().as_bytes());
        self.id("WARC-Record-ID", id);
        self.line("WARC-Date", date.as_bytes());
        url.map_or(Ok(()), |url| self.uri("WARC-Target-URI", url))
    }

    /// A field with a URL.
    pub fn uri(&mut self, name: &str, url: &str) -> Result<(), WriteError> {
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        let good_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
        if !good_scheme || !url.bytes().all(|b| b.is_ascii_graphic() && b != b'<' && b != b'>') {
            return Err(WriteError::BadUri(url.to_owned()));
        }
        self.line(name, url.as_bytes());
        Ok(())
    }

    /// A field with a name of a record.
    pub fn id(&mut self, name: &str, id: &RecordId) {
        self.text.extend_from_slice(name.as_bytes());
        self.text.extend_from_slice(b": <");
        self.text.extend_from_slice(id.as_uri().as_bytes());
        self.text.extend_from_slice(b">\r\n");
    }

    /// A field with a text in visible ASCII.
    pub fn text(&mut self, name: &str, value: &str) -> Result<(), WriteError> {
        if value.is_empty() || !value.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(WriteError::BadValue(name.to_owned()));
        }
        self.line(name, value.as_bytes());
        Ok(())
    }

    /// A field with a value whose text is known to be harmless.
    pub fn display(&mut self, name: &str, value: &dyn Display) {
        let _a_vec_takes_everything = write!(self.text, "{name}: {value}\r\n");
    }

    /// A field that only has to be there.
    pub fn flag(&mut self, name: &str) {
        self.line(name, b"1");
    }

    /// A field with a digest.
    pub fn digest(&mut self, name: &str, digest: &Digest) {
        let mut text = [0; DIGEST_TEXT_BYTES_MAX];
        let text = &mut text[..BASE32.encode_len(digest.bytes().len())];
        BASE32.encode_mut(digest.bytes(), text);
        self.text.extend_from_slice(name.as_bytes());
        self.text.extend_from_slice(b": ");
        self.text.extend_from_slice(digest.label().as_bytes());
        self.text.push(b':');
        self.text.extend_from_slice(text);
        self.text.extend_from_slice(b"\r\n");
    }

    /// Ends the head.
    pub fn end(&mut self, content_type: &str, length: u64) {
        self.line("Content-Type", content_type.as_bytes());
        self.text.extend_from_slice(b"Content-Length: ");
        crate::lines::push_number(&mut self.text, length);
        self.text.extend_from_slice(b"\r\n\r\n");
    }

    /// The head with the empty line at its end.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }

    fn line(&mut self, name: &str, value: &[u8]) {
        self.text.extend_from_slice(name.as_bytes());
        self.text.extend_from_slice(b": ");
        self.text.extend_from_slice(value);
        self.text.extend_from_slice(b"\r\n");
    }
}
