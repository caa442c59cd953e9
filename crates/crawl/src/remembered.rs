//! What the archive remembers of a URL or of a payload, for conditional requests and for revisit records.

use std::collections::HashMap;
use std::io::{BufRead, Read};
use std::sync::{Arc, Mutex, PoisonError};

use skep_archive::captures::{Match, Query};
use skep_archive::runs::Direction;
use skep_archive::{Archive, Capture, CaptureKind, Digest, Key, Position};
use skep_url::Url;
use skep_warc::coding::{self, Bounds};
use skep_warc::http::{Head, Parsed};

use crate::error::Result;
use crate::limits::{META_BYTES_MAX, RECENT_DIGESTS_MAX, ROBOTS_BYTES_MAX};
use crate::links::{self, LinkSet};
use crate::metadata;
use crate::validators::Since;

/// The archive, asked about the past; and what happened a moment ago, which its views may not show yet.
pub struct Remembered {
    archive: Arc<Archive>,
    recent: Mutex<Recent>,
}

/// Two generations: when the young one is full, the old one is forgotten.
#[derive(Default)]
struct Recent {
    /// Nothing was there before, and nothing was forgotten since: what is not here is nowhere.
    is_all: bool,
    young: HashMap<[u8; 20], Original>,
    old: HashMap<[u8; 20], Original>,
}

/// A capture with the same payload, to which a revisit refers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Original {
    /// Its URL.
    pub url: String,
    /// Milliseconds since 1970.
    pub time_ms: i64,
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

/// Payloads longer than this are not read again for a keyed digest.
const KEYED_BYTES_MAX: u64 = 1 << 20;
/// Heads longer than this are not read for their validators.
const HEAD_BYTES_MAX: u64 = 256 << 10;
/// Captures looked at before giving up the search for one with a body.
const CAPTURES_LOOKED_AT: u64 = 64;

impl Remembered {
    /// What this archive remembers.
    pub fn new(archive: Arc<Archive>) -> Remembered {
        // What cannot be looked at is looked up, and then says so.
        let is_all = archive.views().digests.is_empty().unwrap_or(false);
        Remembered { archive, recent: Mutex::new(Recent { is_all, ..Recent::default() }) }
    }

    /// The newest public capture of a URL that brought a body, and its validators.
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
            if capture.url != url {
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
                let head = self.http_head(&capture)?;
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
        if record.head().get("WARC-Truncated").is_some_and(|why| why != b"length") {
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

    fn http_head(&self, capture: &Capture) -> Result<Option<Head>> {
        let mut stored = self.archive.read_capture(capture)?;
        let mut record = stored.record()?;
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
                Parsed::Complete { .. } => return Ok(Some(head)),
                _ if ended => return Ok(None),
                _ => {}
            }
        }
    }

    /// The earliest known capture with this payload.
    pub fn original(&self, digest: &Digest) -> Result<Option<Original>> {
        let Digest::Sha1(bytes) = digest else { return Ok(None) };
        {
            let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(original) = recent.young.get(bytes).or_else(|| recent.old.get(bytes)) {
                return Ok(Some(original.clone()));
            }
            if recent.is_all {
                return Ok(None);
            }
        }
        let Some(found) = self.archive.views().digests.earliest(digest)? else { return Ok(None) };
        // Only a record that can still be read, and whose payload others may see, can stand in for a body.
        let Ok(mut stored) = self.archive.read(found.position) else { return Ok(None) };
        let Ok(record) = stored.record() else { return Ok(None) };
        let private = record.head().get(skep_archive::PRIVATE).is_some();
        let url = record.head().target_uri().map(|uri| String::from_utf8_lossy(uri).into_owned());
        Ok(url.filter(|_| !private).map(|url| Original { url, time_ms: found.time_ms }))
    }

    /// A payload was kept just now.
    pub fn keep(&self, digest: &Digest, url: &str, time_ms: i64) {
        let Digest::Sha1(bytes) = digest else { return };
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.young.len() >= RECENT_DIGESTS_MAX {
            recent.is_all &= recent.old.is_empty();
            recent.old = std::mem::take(&mut recent.young);
        }
        recent.young.entry(*bytes).or_insert_with(|| Original { url: url.to_string(), time_ms });
    }
}
