//! An entry on its own: the bytes that a fresh capture has in the store and while many are sorted.

use super::bits::{Bytes, put_varint};
use super::url_form;
use crate::limits::{KEY_BYTES_MAX, MIME_BYTES_MAX, URL_BYTES_MAX};
use crate::{Capture, CaptureKind, Digest, Error, Key, Position, Result, WriterKey};

/// Bytes behind the URL key in an entry's key.
///
/// ```text
///   key    | site hash 4 | SURT … | 00 | time 8 | writer 4 | segment 4 | record 4 |     all big-endian
///   value  | version 1 | kind 1 | status 2 | flags 1 | digest: algorithm 1, bytes … | offset varint | length varint
///          | media type: length varint, bytes | URL as difference to the SURT … |
///
///   time   milliseconds since 1970 with the sign bit flipped, so that bytes sort as times do
/// ```
pub const TAIL_BYTES: usize = 21;
const VERSION: u8 = 1;

/// The part of the key behind the zero byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    pub time_ms: i64,
    pub position: Position,
}

impl Moment {
    pub fn to_bytes(self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..8].copy_from_slice(&sortable(self.time_ms).to_be_bytes());
        bytes[8..12].copy_from_slice(&self.position.writer.0.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.position.segment.to_be_bytes());
        bytes[16..].copy_from_slice(&self.position.record.to_be_bytes());
        bytes
    }

    pub fn from_bytes(bytes: &[u8; 20]) -> Moment {
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let time = (u64::from(word(0)) << 32) | u64::from(word(4));
        Moment {
            time_ms: unsortable(time),
            position: Position { writer: WriterKey(word(8)), segment: word(12), record: word(16) },
        }
    }
}

/// Times as numbers without sign, in the same order.
pub fn sortable(time_ms: i64) -> u64 {
    time_ms as u64 ^ (1 << 63)
}

/// The time for what [`sortable`] made of it.
pub fn unsortable(time: u64) -> i64 {
    (time ^ (1 << 63)) as i64
}

/// The key of an entry: unique, and sorted as captures are.
pub fn write_key(url_key: &[u8], moment: Moment, out: &mut Vec<u8>) {
    out.extend_from_slice(url_key);
    out.push(0);
    out.extend_from_slice(&moment.to_bytes());
}

/// The key of a URL and the moment, from an entry's key.
pub fn split_key(key: &[u8]) -> Option<(&[u8], Moment)> {
    let (url_key, tail) = key.split_at_checked(key.len().checked_sub(TAIL_BYTES)?)?;
    let moment: &[u8; 20] = tail.strip_prefix(&[0])?.try_into().ok()?;
    (url_key.len() >= 4).then(|| (url_key, Moment::from_bytes(moment)))
}

/// The SURT in a key of a URL.
pub fn surt_of(url_key: &[u8]) -> &str {
    std::str::from_utf8(url_key.get(4..).unwrap_or_default()).unwrap_or_default()
}

/// What a key of a URL must be to be stored and sorted; foreign files bring URLs of any kind.
fn check(capture: &Capture) -> Result<()> {
    let key = capture.key.as_bytes();
    let why = if key.len() > KEY_BYTES_MAX || capture.url.len() > URL_BYTES_MAX {
        format!("its URL has {} bytes; at most {URL_BYTES_MAX} can be indexed", capture.url.len())
    } else if key[4..].contains(&0) {
        "the key of its URL has a zero byte".to_string()
    } else {
        return Ok(());
    };
    Err(Error::Refused { why: format!("the capture at {} cannot be indexed: {why}", capture.position) })
}

/// Appends key and value of a capture's entry.
pub fn write(capture: &Capture, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<()> {
    check(capture)?;
    write_key(capture.key.as_bytes(), Moment { time_ms: capture.time_ms, position: capture.position }, key);
    value.push(VERSION);
    value.push(capture.kind.number());
    value.extend_from_slice(&capture.status.to_be_bytes());
    value.push(capture.flags);
    match &capture.digest {
        Some(digest) => {
            value.push(digest.algorithm());
            value.extend_from_slice(digest.bytes());
        }
        None => value.push(0),
    }
    put_varint(value, capture.offset);
    put_varint(value, capture.length);
    let mime = &capture.mime[..capture.mime.floor_char_boundary(MIME_BYTES_MAX)];
    put_varint(value, mime.len() as u64);
    value.extend_from_slice(mime.as_bytes());
    url_form::write(capture.key.surt(), &capture.url, value);
    Ok(())
}

/// An entry, read but not copied.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    pub url_key: &'a [u8],
    pub moment: Moment,
    pub kind: CaptureKind,
    pub status: u16,
    pub flags: u8,
    pub mime: &'a str,
    pub digest: Option<Digest>,
    pub offset: u64,
    pub length: u64,
    pub url_form: &'a [u8],
}

/// Reads what [`write`] wrote; `None` if these bytes cannot be that.
pub fn read<'a>(key: &'a [u8], value: &'a [u8]) -> Option<Entry<'a>> {
    let (url_key, moment) = split_key(key)?;
    let mut value = Bytes(value);
    if value.u8()? != VERSION {
        return None;
    }
    let kind = CaptureKind::from_number(value.u8()?)?;
    let status = u16::from_be_bytes(value.array()?);
    let flags = value.u8()?;
    let digest = match value.u8()? {
        0 => None,
        algorithm => Some(Digest::from_parts(algorithm, value.take(Digest::width(algorithm)?)?)?),
    };
    let offset = value.varint()?;
    let length = value.varint()?;
    let mime_bytes = value.count(MIME_BYTES_MAX)?;
    let mime = std::str::from_utf8(value.take(mime_bytes)?).ok()?;
    Some(Entry { url_key, moment, kind, status, flags, mime, digest, offset, length, url_form: value.0 })
}

impl Entry<'_> {
    /// The capture; `None` if its URL cannot be read.
    pub fn capture(&self) -> Option<Capture> {
        Some(Capture {
            key: key_of(self.url_key),
            url: url_form::read(surt_of(self.url_key), self.url_form)?,
            time_ms: self.moment.time_ms,
            position: self.moment.position,
            kind: self.kind,
            status: self.status,
            mime: self.mime.to_owned(),
            digest: self.digest,
            offset: self.offset,
            length: self.length,
            flags: self.flags,
        })
    }
}

/// The key of a URL from the bytes that sort.
pub fn key_of(url_key: &[u8]) -> Key {
    let site_hash = url_key.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    Key::from_parts(site_hash, surt_of(url_key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(surt: &str, time_ms: i64, record: u32) -> Capture {
        Capture {
            key: Key::from_parts(7, surt),
            url: format!("https://{surt}/Ünicode"),
            time_ms,
            position: Position { writer: WriterKey(0xc41f22ab), segment: 3, record },
            kind: CaptureKind::Revisit,
            status: 404,
            mime: "text/html".into(),
            digest: Some(Digest::Sha1([9; 20])),
            offset: 1 << 40,
            length: 12_345,
            flags: 3,
        }
    }

    #[test]
    fn keys_sort_as_captures_do() {
        let mut captures = Vec::new();
        for surt in ["a)/", "a)/!", "a)/a", "a)/ab", "b)/"] {
            for time_ms in [i64::MIN, -5, -1, 0, 1, 1_700_000_000_000, i64::MAX] {
                captures.extend([0, 1, u32::MAX].map(|record| capture(surt, time_ms, record)));
            }
        }
        let keys: Vec<Vec<u8>> = captures
            .iter()
            .map(|capture| {
                let (mut key, mut value) = (Vec::new(), Vec::new());
                write(capture, &mut key, &mut value).unwrap();
                let entry = read(&key, &value).unwrap();
                assert_eq!(entry.url_key, capture.key.as_bytes());
                assert_eq!(entry.moment, Moment { time_ms: capture.time_ms, position: capture.position });
                assert_eq!(url_form::read(surt_of(entry.url_key), entry.url_form).as_deref(), Some(&*capture.url));
                key
            })
            .collect();
        assert!(captures.is_sorted() && keys.is_sorted());
    }

    #[test]
    fn what_cannot_be_indexed_is_refused() {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for bad in [Capture { url: "x".repeat(URL_BYTES_MAX + 1), ..capture("a)/", 0, 0) }, capture("a\0b", 0, 0)] {
            assert!(matches!(write(&bad, &mut key, &mut value), Err(Error::Refused { .. })));
        }
        assert!(key.is_empty() && value.is_empty());
        let odd = Capture { mime: "é".repeat(MIME_BYTES_MAX), ..capture("a)/", 0, 0) };
        write(&odd, &mut key, &mut value).unwrap();
        assert_eq!(read(&key, &value).unwrap().mime.len(), MIME_BYTES_MAX);
    }

    #[test]
    fn damaged_entries_are_none_or_something_but_never_panic() {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        write(&capture("com,example)/", 5, 6), &mut key, &mut value).unwrap();
        for at in 0..value.len() {
            for byte in 0..=255 {
                let mut bad = value.clone();
                bad[at] = byte;
                let _ = read(&key, &bad);
            }
            let _ = read(&key, &value[..at]);
        }
        for end in 0..key.len() {
            let _ = read(&key[..end], &value);
        }
    }
}
