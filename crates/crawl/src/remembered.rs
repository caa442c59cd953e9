//! What the archive remembers of a URL or of a payload, for conditional requests and for revisit records.

use std::io::{BufRead, Read};
use std::sync::Arc;

use skep_archive::captures::{Match, Query};
use skep_archive::runs::Direction;
use skep_archive::{Archive, Capture, CaptureKind, Digest, Key, Position, Referring};
use skep_url::Url;
use skep_warc::coding::{self, Bounds};
use skep_warc::http::{Head, Parsed};

use crate::error::Result;
use crate::limits::{META_BYTES_MAX, ROBOTS_BYTES_MAX};
use crate::links::{self, LinkSet};
use crate::metadata;
use crate::payloads::{Before, Claim, Payloads, Whose};
use crate::sharing;
use crate::validators::Since;

/// The archive, asked about the past; and what happened a moment ago, which its views may not show yet.
pub struct Remembered {
    archive: Arc<Archive>,
    payloads: Arc<Payloads>,
    /// Into how many slices a network divides it, as a power of two: each has all the bodies that its records need.
    bits: u8,
}

/// A capture with the same payload, to which a revisit refers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Original {
    /// Its URL.
    pub url: String,
    /// Milliseconds since 1970.
    pub time_ms: i64,
}

/// What the archive has of a payload.
#[derive(Debug)]
pub enum Payload {
    /// This capture has it, and it stays while somebody is about to refer to it.
    Known(Original, Referring),
    /// None has; whoever holds the claim will.
    New(Option<Claim>),
}

/// The last time a URL was captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Previous {
    /// Milliseconds since 1970, of the capture that has the body.
    pub time_ms: i64,
    /// Milliseconds since 1970, of the newest record of any kind about this URL.
    pub newest_ms: i64,
    /// Its URL as it stands in the record.
    pub url: String,
    /// Its name; the metadata record stands behind it.
    pub position: Position,
    /// Its payload.
    pub digest: Option<Digest>,
    /// `ETag` as sent.
    pub etag: Option<Vec<u8>>,
    /// `Last-Modified` as sent.
    pub last_modified: Option<Vec<u8>>,
    /// How it stands with them, and with the page since.
    pub since: Since,
}

impl Previous {
    /// An unchanged page deserves a record again.
    pub fn is_old(&self, now_ms: i64) -> bool {
        now_ms - self.newest_ms >= crate::judge::REVISIT_MS
    }
}

/// The head of a capture, where it is whole.
enum Whole {
    Yes(Option<Head>),
    No,
}

/// Not whole for another reason than that we wanted no more of it.
fn broke_off(truncated: Option<&[u8]>) -> bool {
    truncated.is_some_and(|why| why != b"length")
}

/// Payloads longer than this are not read again for a keyed digest.
const KEYED_BYTES_MAX: u64 = 1 << 20;
/// Heads longer than this are not read for their validators.
const HEAD_BYTES_MAX: u64 = 256 << 10;
/// Captures looked at before giving up the search for one with a body.
const CAPTURES_LOOKED_AT: u64 = 64;
/// Captures of one payload looked at before it is kept anew.
const ORIGINALS_LOOKED_AT: usize = 4;
/// The same, of all slices of a network.
const ORIGINALS_OF_SLICES: usize = 256;
/// The field of a record that is not whole.
const TRUNCATED: &str = "WARC-Truncated";

impl Remembered {
    /// What this archive remembers.
    pub fn new(archive: Arc<Archive>) -> Remembered {
        // What cannot be looked at is looked up, and then says so.
        let is_all = archive.views().digests.is_empty().unwrap_or(false);
        // An archive whose settings cannot be read is opened by nobody.
        let bits = sharing::shared_bits(&archive.layout().settings()).ok().flatten().unwrap_or(0);
        Remembered { archive, payloads: Payloads::new(is_all), bits }
    }

    /// The newest public capture of a URL that brought a body, and its validators. One that broke off is none: whoever asked by its
    /// validators would be told that nothing changed, and never see the rest.
    pub fn previous(&self, url: &str, key: &Key) -> Result<Option<Previous>> {
        let query = Query {
            direction: Direction::Backward,
            kinds: vec![CaptureKind::Response, CaptureKind::Revisit],
            limit: Some(CAPTURES_LOOKED_AT),
            ..Query::new(Match::Exact(key.clone()))
        };
        let (mut newest_ms, mut since) = (None, Since::default());
        for capture in self.archive.views().captures.query(&query)? {
            let capture = capture?;
            // What stands in another place of a site that is split is for those who hold that one.
            if capture.url != url || capture.key != *key {
                continue;
            }
            let is_newest = newest_ms.is_none();
            let newest_ms = *newest_ms.get_or_insert(capture.time_ms);
            since.look(&capture, is_newest, || self.metadata_of(url, capture.position));
            if capture.kind == CaptureKind::Response
                && capture.status == 200
                && !capture.is_private()
                && since.is_page(|| self.metadata_of(url, capture.position))
            {
                let Whole::Yes(head) = self.http_head(&capture)? else { continue };
                let header = |name| head.as_ref().and_then(|head: &Head| head.header(name)).map(<[u8]>::to_vec);
                return Ok(Some(Previous {
                    time_ms: capture.time_ms,
                    newest_ms,
                    etag: header("etag"),
                    last_modified: header("last-modified"),
                    position: capture.position,
                    digest: capture.digest,
                    url: capture.url,
                    since,
                }));
            }
        }
        Ok(None)
    }

    /// BLAKE3 of a payload under a key: only who has the bytes can know it.
    pub fn keyed(&self, previous: &Previous, key: &[u8; 32]) -> Option<[u8; 32]> {
        let mut stored = self.archive.read(previous.position).ok()?;
        let mut record = stored.record_of(previous.url.as_bytes()).ok()?;
        let mut bytes = Vec::new();
        let read = (&mut record as &mut dyn BufRead).take(KEYED_BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
        if read as u64 > KEYED_BYTES_MAX {
            return None;
        }
        let mut head = Head::new();
        let Parsed::Complete { body } = head.parse_response(&bytes, true) else { return None };
        let mut payload = Vec::new();
        skep_warc::http::Body::new(&head, &bytes[body..]).read_to_end(&mut payload).ok()?;
        Some(*blake3::keyed_hash(key, &payload).as_bytes())
    }

    /// The links that a page had when it was captured last, and how many differences led to them.
    pub fn links(&self, previous: &Previous) -> Option<(LinkSet, u8)> {
        links::restore(previous.time_ms, &mut |time_ms| {
            let position = match time_ms == previous.time_ms {
                true => previous.position,
                false => self.position_at(&previous.url, time_ms)?,
            };
            self.metadata_of(&previous.url, position).map(|meta| meta.links)
        })
    }

    /// What was odd about the newest answer of a URL, certificate included.
    pub fn notes(&self, url: &str) -> Option<Vec<String>> {
        let query = Query {
            direction: Direction::Backward,
            kinds: vec![CaptureKind::Response, CaptureKind::Revisit],
            limit: Some(CAPTURES_LOOKED_AT),
            ..Query::new(Match::Exact(Key::of(url)))
        };
        let mut captures = self.archive.views().captures.query(&query).ok()?;
        let newest = captures.find_map(|capture| capture.ok().filter(|capture| capture.url == url))?;
        let meta = self.metadata_of(url, newest.position)?;
        let fault = meta.tls_fault.map(|fault| format!("certificate: {fault}"));
        Some(fault.into_iter().chain(meta.notes).collect())
    }

    /// The metadata of a capture stands behind its answer.
    fn metadata_of(&self, url: &str, answer: Position) -> Option<metadata::Meta> {
        let mut stored = self.archive.read(Position { record: answer.record + 1, ..answer }).ok()?;
        let mut record = stored.record_of(url.as_bytes()).ok()?;
        let mut block = Vec::new();
        (&mut record as &mut dyn BufRead).take(META_BYTES_MAX as u64).read_to_end(&mut block).ok()?;
        metadata::parse(&block).ok()
    }

    /// The answer of a URL at exactly this moment.
    fn position_at(&self, url: &str, time_ms: i64) -> Option<Position> {
        let query = Query {
            kinds: vec![CaptureKind::Response, CaptureKind::Revisit],
            from_ms: Some(time_ms),
            to_ms: Some(time_ms),
            ..Query::new(Match::Exact(Key::of(url)))
        };
        let mut found = self.archive.views().captures.query(&query).ok()?;
        found.find_map(|capture| capture.ok().filter(|capture| capture.url == url)).map(|capture| capture.position)
    }

    /// The body of the newest answer of a URL since then, decoded: time, status, bytes.
    pub fn body_since(&self, url: &Url, from_ms: i64) -> Result<Option<(i64, u16, Vec<u8>)>> {
        let query = Query {
            direction: Direction::Backward,
            kinds: vec![CaptureKind::Response],
            from_ms: Some(from_ms),
            limit: Some(1),
            ..Query::new(Match::Exact(url.key()))
        };
        let Some(capture) = self.archive.views().captures.query(&query)?.next().transpose()? else { return Ok(None) };
        if capture.url != url.as_str() {
            return Ok(None);
        }
        let mut stored = self.archive.read_capture(&capture)?;
        let mut bytes = Vec::new();
        let mut record = stored.record()?;
        let unreadable =
            |error| skep_archive::Error::io("cannot read the record of", std::path::Path::new(url.as_str()), error);
        // One that broke off does not say all that its host says; one that was cut at a length does, as far as anybody reads.
        if broke_off(record.head().get(TRUNCATED)) {
            return Ok(None);
        }
        (&mut record as &mut dyn BufRead)
            .take(ROBOTS_BYTES_MAX + HEAD_BYTES_MAX)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        let mut head = Head::new();
        let Parsed::Complete { body } = head.parse_response(&bytes, true) else { return Ok(None) };
        let bounds = Bounds { output_bytes_max: ROBOTS_BYTES_MAX, ..Bounds::default() };
        let mut decoded = Vec::new();
        // A body that was cut off still says what came before.
        let _as_far_as_it_goes = coding::decode(&head, &bytes[body..], bounds).read_to_end(&mut decoded);
        Ok(Some((capture.time_ms, capture.status, decoded)))
    }

    /// Bytes of the newest answer of a URL, if that broke off: what came of it the last time.
    pub fn half_bytes(&self, url: &Url) -> Option<u64> {
        let query = Query {
            direction: Direction::Backward,
            kinds: vec![CaptureKind::Response],
            limit: Some(1),
            ..Query::new(Match::Exact(url.key()))
        };
        let newest = self.archive.views().captures.query(&query).ok()?.next()?.ok()?;
        let mut stored = self.archive.read_capture(&newest).ok().filter(|_| newest.url == url.as_str())?;
        let record = stored.record().ok()?;
        let head = record.head();
        broke_off(head.get(TRUNCATED)).then(|| head.content_length())?
    }

    fn http_head(&self, capture: &Capture) -> Result<Whole> {
        let mut stored = self.archive.read_capture(capture)?;
        let mut record = stored.record()?;
        if broke_off(record.head().get(TRUNCATED)) {
            return Ok(Whole::No);
        }
        let mut bytes = Vec::new();
        let mut head = Head::new();
        let mut limited = (&mut record as &mut dyn BufRead).take(HEAD_BYTES_MAX);
        let unreadable =
            |error| skep_archive::Error::io("cannot read the record of", std::path::Path::new(&capture.url), error);
        loop {
            let had = bytes.len();
            let more = limited.fill_buf().map_err(unreadable)?;
            bytes.extend_from_slice(more);
            let taken = more.len();
            limited.consume(taken);
            let ended = bytes.len() == had;
            match head.parse_response(&bytes, ended) {
                Parsed::Complete { .. } => return Ok(Whole::Yes(Some(head))),
                _ if ended => return Ok(Whole::Yes(None)),
                _ => {}
            }
        }
    }

    /// A capture with this payload that can stand in for its body, in the slice of the URL that has it now; or else the right to be that capture.
    pub async fn original(&self, digest: &Digest, key: &Key) -> Result<Payload> {
        let slice = sharing::slice_of(key.site_hash(), self.bits);
        let Digest::Sha1(bytes) = digest else { return Ok(Payload::New(None)) };
        // One that is about to go is kept anew.
        let Some(referring) = self.archive.referred().hold(*digest) else { return Ok(Payload::New(None)) };
        let is_there = |position| !self.archive.views().is_hidden(position);
        let (claim, before) = match self.payloads.whose((*bytes, slice), is_there).await {
            Whose::Known(original) => return Ok(Payload::Known(original, referring)),
            Whose::Ours(claim, before) => (claim, before),
        };
        let found = if before == Before::Perhaps { self.original_in_archive(digest, slice)? } else { None };
        Ok(match found {
            Some(original) => Payload::Known(original, referring),
            None => Payload::New(Some(claim)),
        })
    }

    /// Holds the body of a capture that is found as it was; nothing where it went meanwhile.
    pub fn refer(&self, previous: &Previous) -> Option<Referring> {
        let referring = self.archive.referred().hold(previous.digest?)?;
        (!self.archive.views().is_hidden(previous.position)).then_some(referring)
    }

    /// The earliest capture with this payload that can still be read, whose payload others may see, and that is whole.
    fn original_in_archive(&self, digest: &Digest, slice: u32) -> Result<Option<Original>> {
        let known = if self.bits > 0 { ORIGINALS_OF_SLICES } else { ORIGINALS_LOOKED_AT };
        let found = self.archive.views().digests.originals(digest, known)?.into_iter();
        let of_slice = found.filter(|found| sharing::slice_of(found.key.site_hash(), self.bits) == slice);
        for found in of_slice.take(ORIGINALS_LOOKED_AT) {
            let Ok(mut stored) = self.archive.read(found.position) else { continue };
            let Ok(record) = stored.record() else { continue };
            let head = record.head();
            if head.get(skep_archive::PRIVATE).is_some() || head.get(TRUNCATED).is_some() {
                continue;
            }
            if let Some(url) = head.target_uri() {
                return Ok(Some(Original { url: String::from_utf8_lossy(url).into_owned(), time_ms: found.time_ms }));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skep_archive::{Append, Encoded, Note, OpenOptions};
    use skep_warc::write::{Compression, Encoder, Record, RecordId};

    fn page(url: &str) -> Append {
        let mut bytes = Vec::new();
        let response = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nbees";
        Record::response(&RecordId::uuid([2; 16]), "2026-11-15T22:10:04Z", url, response)
            .encode(&mut Encoder::new(Compression::GZIP), &mut bytes)
            .unwrap();
        Append { site_hash: Key::of(url).site_hash(), records: vec![Encoded::describing(bytes).unwrap()] }
    }

    #[tokio::test]
    async fn in_a_network_a_body_is_looked_for_in_the_slice_that_needs_it() {
        let (url, elsewhere) = ("http://bees.example/", "http://wasps.example/");
        let folder = tempfile::tempdir().unwrap();
        let archive = Arc::new(Archive::open(folder.path(), OpenOptions::create()).unwrap());
        archive.append(page(url)).unwrap().wait().unwrap();
        archive.settle().unwrap();
        let kept = archive.views().captures.exact(&Key::of(url)).unwrap().next().unwrap().unwrap();
        let digest = kept.digest.expect("a payload");
        let is_known = async |remembered: &Remembered, url: &str| {
            matches!(remembered.original(&digest, &Key::of(url)).await.unwrap(), Payload::Known(..))
        };
        let alone = Remembered::new(archive.clone());
        assert!(is_known(&alone, url).await && is_known(&alone, elsewhere).await);

        sharing::share(&archive.layout().settings(), [1; 32], 16).unwrap();
        let shared = Remembered::new(archive);
        assert!(is_known(&shared, url).await);
        assert!(!is_known(&shared, elsewhere).await, "the copies of one slice stand for themselves");
    }

    #[tokio::test]
    async fn nobody_refers_to_a_body_that_is_about_to_go() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Arc::new(Archive::open(folder.path(), OpenOptions::create()).unwrap());
        let (url, mut bytes) = ("http://a.test/", Vec::new());
        let message = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nbody";
        let id = RecordId::uuid([1; 16]);
        let record = Record::response(&id, "2026-01-01T00:00:00Z", url, message.as_slice());
        record.encode(&mut Encoder::new(Compression::GZIP), &mut bytes).unwrap();
        let made = Encoded::describing(bytes).unwrap();
        let Note::Capture(capture) = &made.note else { panic!("a capture") };
        let digest = capture.digest.unwrap();
        let append = Append { site_hash: Key::of(url).site_hash(), records: vec![made] };
        archive.append(append).unwrap().wait().unwrap();
        archive.settle().unwrap();
        let remembered = Remembered::new(archive.clone());
        let previous = remembered.previous(url, &Key::of(url)).unwrap().unwrap();
        let known = remembered.original(&digest, &Key::of(url)).await.unwrap();
        assert!(matches!(&known, Payload::Known(original, _) if original.url == url));
        assert!(!archive.referred().going([digest]).contains(&digest), "somebody refers to it");
        drop((known, remembered.refer(&previous).unwrap()));
        let going = archive.referred().going([digest]);
        assert!(going.contains(&digest));
        assert!(matches!(remembered.original(&digest, &Key::of(url)).await.unwrap(), Payload::New(None)));
        assert!(remembered.refer(&previous).is_none());
        archive.remove(&skep_archive::Selector::Url(url.into()), "test").unwrap();
        drop(going);
        assert!(remembered.refer(&previous).is_none(), "it is gone");
    }
}
