//! Bodies by what they are: whether one is the same as another that nobody here sees, and a body of one's own for whoever only referred.
//!
//! ```text
//!  Sum    | SHA-1, SHA-256, BLAKE3 under a key that is new each time | of the payload: the body without its transfer encoding
//! ```

use std::io::{self, BufRead, Read};

use skep_warc::RecordKind;
use skep_warc::digest::{Algorithm, Hasher};
use skep_warc::http::{Body, Head, Parsed};
use skep_warc::write::{Compression, Encoder, Record};

use crate::Key;
use crate::archive::{Archive, Place};
use crate::capture::{Capture, Digest, Position};
use crate::commit::Append;
use crate::describe::PRIVATE;
use crate::error::{Error, Result};
use crate::identity;
use crate::limits::{
    HTTP_HEAD_BYTES_MAX, ORIGINALS_ASKED_MAX, REVISITS_TRIED_MAX, SHARED_BLOCK_BYTES_MAX, SHARED_BODY_BYTES_MAX,
};
use crate::own::Encoded;
use crate::pins::{Pin, Role};
use crate::read::Stored;

/// What a payload comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum {
    /// SHA-1, as records have it.
    pub payload: Digest,
    /// SHA-256.
    pub sha256: [u8; 32],
    /// BLAKE3 under a key: only who has the bytes can know it.
    pub keyed: [u8; 32],
    /// Bytes.
    pub length: u64,
}

impl Sum {
    /// Reads a payload to its end.
    pub fn of(payload: &mut dyn Read, key: &[u8; 32]) -> io::Result<Sum> {
        let (mut sha1, mut sha256) = (Hasher::new(Algorithm::Sha1), Hasher::new(Algorithm::Sha256));
        let mut keyed = blake3::Hasher::new_keyed(key);
        let (mut buffer, mut length) = (vec![0; 1 << 16], 0);
        loop {
            let count = match payload.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let part = &buffer[..count];
            sha1.update(part);
            sha256.update(part);
            keyed.update(part);
            length += count as u64;
        }
        let (mut one, mut other) = ([0; 20], [0; 32]);
        one.copy_from_slice(sha1.finish().as_bytes());
        other.copy_from_slice(sha256.finish().as_bytes());
        Ok(Sum { payload: Digest::Sha1(one), sha256: other, keyed: *keyed.finalize().as_bytes(), length })
    }

    /// That of the record at a place.
    pub(crate) fn at(place: &Place) -> Result<Sum> {
        let (_, sum) = read_payload(&mut Stored::at(place)?, |payload| Sum::of(payload, &[0; 32]))?;
        Ok(sum)
    }

    /// Whether it is that of a body which is pinned.
    pub(crate) fn is_of(&self, pin: &Pin) -> bool {
        (self.payload, self.sha256, self.length) == (pin.payload, pin.sha256, pin.length)
    }
}

/// A body that somebody looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The digest of its payload as records have it.
    pub payload: Digest,
    /// Its SHA-256.
    pub sha256: [u8; 32],
    /// Its length.
    pub length: u64,
    /// Under which it is to be proven.
    pub key: [u8; 32],
}

/// A record that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Same {
    /// The record.
    pub position: Position,
    /// Its URL.
    pub url: String,
    /// Its time, in milliseconds since 1970.
    pub time_ms: i64,
    /// Its id: `urn:uuid:…`.
    pub record: String,
    /// The proof.
    pub keyed: [u8; 32],
}

impl Archive {
    /// A record that was written here, of a site that `fits`, with exactly this body; the earliest that everybody may see. Every byte is read.
    pub fn same_body(&self, wanted: &Wanted, fits: &dyn Fn(u32) -> bool) -> Result<Option<Same>> {
        for found in self.views().digests.originals(&wanted.payload, ORIGINALS_ASKED_MAX)? {
            if found.position.writer != self.writer() || !fits(found.key.site_hash()) {
                continue;
            }
            if let Some(same) = self.same_body_at(found.position, wanted)? {
                return Ok(Some(same));
            }
        }
        Ok(None)
    }

    /// The same of one record, whoever wrote it.
    pub fn same_body_at(&self, position: Position, wanted: &Wanted) -> Result<Option<Same>> {
        if wanted.length > SHARED_BODY_BYTES_MAX {
            return Ok(None);
        }
        // What cannot be read is no such record.
        let Ok(mut stored) = self.read(position) else { return Ok(None) };
        let read = read_payload(&mut stored, |payload| Sum::of(payload, &wanted.key));
        let Ok((told, sum)) = read else { return Ok(None) };
        let is_same = (sum.payload, sum.sha256, sum.length) == (wanted.payload, wanted.sha256, wanted.length);
        Ok(is_same.then_some(Same {
            position,
            url: told.url,
            time_ms: told.time_ms,
            record: told.record,
            keyed: sum.keyed,
        }))
    }

    /// What stands for a body elsewhere gets one of its own: a response of the referrer, of the time of the first of these revisits that has a head
    /// for it, and with that head. `body` is the record that was pinned, wherever it was read; another body is refused. Synced when this returns.
    pub fn write_own_body(&self, pin: &Pin, revisits: &[Capture], body: &mut Stored) -> Result<Position> {
        let refuse = |why: &str| Error::Refused { why: format!("{}: {why}", pin.referrer) };
        let (_, payload) = read_payload(body, |payload| {
            let mut bytes = Vec::with_capacity(pin.length.min(SHARED_BODY_BYTES_MAX) as usize);
            payload.read_to_end(&mut bytes).map(|_| bytes)
        })?;
        let sum = Sum::of(&mut payload.as_slice(), &[0; 32]).map_err(|_| refuse("it cannot be read"))?;
        if !sum.is_of(pin) {
            return Err(refuse("the body is not the one that was pinned"));
        }
        let mut made = Err(refuse("no revisit stands for it"));
        for revisit in revisits.iter().take(REVISITS_TRIED_MAX) {
            made = self.own_response(pin, revisit, &payload);
            if made.is_ok() {
                break;
            }
        }
        let mut records = vec![made?];
        // What ends is what was said here, whatever else whoever brings the body says of the original.
        let references = self.views().references_of(&pin.referrer)?.into_iter();
        for known in references.filter(|known| known.is_of_same_body(pin)).take(REVISITS_TRIED_MAX) {
            records.push(known.encode(Role::Release, (self.shared.clock)())?);
        }
        let append = Append { site_hash: Key::of(&pin.referrer).site_hash(), records };
        let told = self.shared.append_and_wait(append)?;
        self.settle()?;
        told.positions.first().copied().ok_or_else(|| refuse("it was not written"))
    }

    /// A response with the head of a revisit and this payload.
    fn own_response(&self, pin: &Pin, revisit: &Capture, payload: &[u8]) -> Result<Encoded> {
        let refuse = |why: &str| Error::Refused { why: format!("{}: {why}", pin.referrer) };
        if revisit.url != pin.referrer || revisit.digest != Some(pin.payload) {
            return Err(refuse("the revisit stands for another body"));
        }
        let mut stored = self.read(revisit.position)?;
        let path = stored.path().to_path_buf();
        let mut record = stored.record()?;
        let warc = record.head().clone();
        let mut block = Vec::new();
        let read = (&mut record as &mut dyn BufRead).take(HTTP_HEAD_BYTES_MAX as u64 + 1).read_to_end(&mut block);
        read.map_err(|error| Error::io("cannot read", &path, error))?;
        let mut head = Head::new();
        if !matches!(head.parse_response(&block, true), Parsed::Complete { body } if body == block.len()) {
            return Err(refuse("the revisit has no head to go before the body"));
        }
        // How the pieces were cut that came, nobody knows any more.
        match head.is_chunked() {
            true => {
                block.extend_from_slice(format!("{:x}\r\n", payload.len()).as_bytes());
                block.extend_from_slice(payload);
                block.extend_from_slice(b"\r\n0\r\n\r\n");
            }
            false => block.extend_from_slice(payload),
        }
        let text =
            |name| warc.text(name).map(|text| text.into_owned()).ok_or_else(|| refuse("the revisit has no name"));
        let (named, date) = (text("WARC-Record-ID")?, text("WARC-Date")?);
        let id = identity::record_id(&[b"body", named.as_bytes()]);
        let mut made =
            Record::response(&id, &date, &pin.referrer, block.as_slice()).field("WARC-Concurrent-To", &named);
        for name in ["WARC-IP-Address", "WARC-Protocol", "WARC-Cipher-Suite"] {
            for value in warc.get_all(name) {
                made = made.field(name, &String::from_utf8_lossy(value));
            }
        }
        let mut bytes = Vec::new();
        let encoded = made.encode(&mut Encoder::new(Compression::GZIP), &mut bytes);
        encoded.map_err(|error| refuse(&format!("its record cannot be written: {error}")))?;
        let made = Encoded::describing(bytes)?;
        let crate::Note::Capture(capture) = &made.note else { return Err(refuse("its record would be no capture")) };
        if capture.digest != Some(pin.payload) {
            return Err(refuse("the head of the revisit does not go with the body"));
        }
        Ok(made)
    }
}

/// What a record says of itself.
struct Told {
    url: String,
    time_ms: i64,
    record: String,
}

/// Reads the payload of a public, whole HTTP response. A record that is too long for a body which slices share is not looked into.
fn read_payload<T>(stored: &mut Stored, read: impl FnOnce(&mut dyn Read) -> io::Result<T>) -> Result<(Told, T)> {
    let path = stored.path().to_path_buf();
    let refuse = |why: &str| Error::Refused { why: format!("a body that others refer to: {why}") };
    let io = |error| Error::io("cannot read", &path, error);
    let mut record = stored.record()?;
    let warc = record.head();
    if warc.kind() != RecordKind::Response || warc.get(PRIVATE).is_some() || warc.get("WARC-Truncated").is_some() {
        return Err(refuse("the record is not a whole, public response"));
    }
    if warc.content_length().is_none_or(|length| length > SHARED_BLOCK_BYTES_MAX) {
        return Err(refuse("the record is too long"));
    }
    let url = warc.target_uri().map(|url| String::from_utf8_lossy(url).into_owned());
    let id = warc.text("WARC-Record-ID").map(|id| id.trim_matches(['<', '>']).to_owned());
    let told = url.zip(warc.date_ms()).zip(id).map(|((url, time_ms), record)| Told { url, time_ms, record });
    let told = told.ok_or_else(|| refuse("the record does not say what it is"))?;
    let block: &mut dyn BufRead = &mut record;
    let (mut begun, mut head) = (Vec::new(), Head::new());
    let body = loop {
        let part = block.fill_buf().map_err(io)?;
        let (count, ended) = (part.len(), part.is_empty() || begun.len() > HTTP_HEAD_BYTES_MAX);
        begun.extend_from_slice(part);
        block.consume(count);
        match head.parse_response(&begun, ended) {
            Parsed::Complete { body } => break body,
            _ if ended => return Err(refuse("the record holds no HTTP answer")),
            _ => {}
        }
    };
    let rest = begun.get(body..).unwrap_or_default().chain(block);
    let payload = read(&mut Body::new(&head, rest).take(SHARED_BODY_BYTES_MAX + 1)).map_err(io)?;
    match record.finish().map_err(io)?.damaged {
        true => Err(refuse("the record is not whole")),
        false => Ok((told, payload)),
    }
}
