//! Pins: bodies for which revisits of other slices stand, and what is known of them at both ends.
//!
//! A `metadata` record without target, whose block is
//! ```text
//!  skep-pin: 1
//!  role: pin                                beside the body: `pin`, later `unpin`; beside the revisit: `reference`, later `release`
//!  time: 2026-11-15T22:10:04.120Z
//!  position: c41f22ab:1:17                  the record that has the body
//!  original: http://example.com/a
//!  original-time: 2026-11-01T08:00:00Z
//!  referrer: http://example.org/b           whose revisits stand for it
//!  payload: sha1:…
//!  sha256: <64 hexadecimal digits>
//!  length: 1048576
//! ```
//! A pair of body and referrer that has ended never begins again, so that the order in which these records arrive does not matter. Its block is that of
//! the record which began it: who ends it says nothing about what it is. References may come from anybody, so each says what it is in its key, too.
//! ```text
//!  view-pins        | writer 4 BE | segment 4 BE | record 4 BE | BLAKE3 of the referrer 16 |                 ─▶  | 1 | flags 1 | block … |
//!  view-references  | site hash of the referrer 4 BE | BLAKE3 of the referrer 16 | position as above 12 | BLAKE3 of the body 16 |  ─▶  the same
//! ```

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, ErrorKind, Read};
use std::sync::PoisonError;

use skep_url::Key;
use skep_warc::date::{parse_ms, rfc3339};
use skep_warc::write::Record;

use crate::archive::Archive;
use crate::capture::{Digest, Position, WriterKey};
use crate::commit::Append;
use crate::error::{Error, Result};
use crate::finding::Finding;
use crate::identity::{self, hex, unhex};
use crate::layout::SegmentId;
use crate::limits::{PIN_BYTES_MAX, SHARED_BODY_BYTES_MAX, SHARED_BODY_BYTES_MIN, SHARED_URL_BYTES_MAX};
use crate::own::{self, Encoded, FieldsBlock, once};
use crate::read::Stored;
use crate::sidecar::Note;
use crate::views::{Batch, SeenRecord, Views};

const VERSION: &str = "1";
/// How the block of every such record begins.
pub const TITLE: &str = "skep-pin: ";

const PINS: &str = "pins";
const REFERENCES: &str = "references";

/// It has begun …
const BEGUN: u8 = 1;
/// … and it has ended.
const ENDED: u8 = 2;

/// A body, and a URL whose revisits stand for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The record that has the body.
    pub position: Position,
    /// Its URL.
    pub original: String,
    /// Its time, in milliseconds since 1970.
    pub original_ms: i64,
    /// Whose revisits stand for it.
    pub referrer: String,
    /// The digest of the payload as records have it.
    pub payload: Digest,
    /// Its SHA-256.
    pub sha256: [u8; 32],
    /// Its length in bytes.
    pub length: u64,
}

/// What is said of such a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The body must not go.
    Pin,
    /// It may: the referrer has a body of its own, or nobody refers any more.
    Unpin,
    /// A revisit of the referrer stands for the body.
    Reference,
    /// The referrer has a body of its own.
    Release,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Pin => "pin",
            Role::Unpin => "unpin",
            Role::Reference => "reference",
            Role::Release => "release",
        }
    }

    fn from_name(name: &str) -> Option<Role> {
        [Role::Pin, Role::Unpin, Role::Reference, Role::Release].into_iter().find(|role| role.name() == name)
    }

    /// Whether it stands beside the body; else beside the revisit.
    fn is_of_original(self) -> bool {
        matches!(self, Role::Pin | Role::Unpin)
    }
}

impl Pin {
    /// The record that says so.
    pub fn encode(&self, role: Role, now_ms: i64) -> Result<Encoded> {
        let mut block = FieldsBlock::default();
        block
            .line("skep-pin", VERSION)
            .line("role", role.name())
            .line("time", &rfc3339(now_ms))
            .line("position", &self.position.to_string())
            .line("original", &self.original)
            .line("original-time", &rfc3339(self.original_ms))
            .line("referrer", &self.referrer)
            .line("payload", &self.payload.to_string())
            .line("sha256", &hex(&self.sha256))
            .line("length", &self.length.to_string());
        let block = block.as_str().as_bytes();
        if block.len() > PIN_BYTES_MAX {
            return Err(Error::Refused { why: format!("what a pin names has at most {PIN_BYTES_MAX} bytes") });
        }
        let id = identity::record_id(&[b"pin", block]);
        let bytes = own::encode(&Record::metadata(&id, &rfc3339(now_ms), own::FIELDS, block))?;
        Ok(Encoded::new(bytes, Note::Plain))
    }

    /// Reads a block: what is said, and when; an error says what is missing or wrong.
    pub fn parse(block: &[u8]) -> Result<(Role, Pin, i64), String> {
        let lines = own::lines(block)?;
        if once(&lines, "skep-pin")? != VERSION {
            return Err("it is of a version that this program does not know".into());
        }
        let time = |name| parse_ms(once(&lines, name)?.as_bytes()).ok_or(format!("{name} is no time"));
        let wrong = |error: &dyn std::fmt::Display| error.to_string();
        let pin = Pin {
            position: once(&lines, "position")?.parse().map_err(|error: crate::ParseError| wrong(&error))?,
            original: once(&lines, "original")?.to_owned(),
            original_ms: time("original-time")?,
            referrer: once(&lines, "referrer")?.to_owned(),
            payload: once(&lines, "payload")?.parse().map_err(|error: crate::ParseError| wrong(&error))?,
            sha256: unhex(once(&lines, "sha256")?).ok_or("the SHA-256 is none")?,
            length: once(&lines, "length")?.parse().map_err(|_| "the length is no number")?,
        };
        if pin.length > SHARED_BODY_BYTES_MAX {
            return Err(format!("bodies of more than {SHARED_BODY_BYTES_MAX} bytes are not shared"));
        }
        let role = Role::from_name(once(&lines, "role")?).ok_or("a role that this program does not know")?;
        Ok((role, pin, time("time")?))
    }

    fn key(&self, role: Role) -> Vec<u8> {
        match role.is_of_original() {
            true => [&position_key(self.position)[..], &name_of(self.referrer.as_bytes())].concat(),
            false => {
                let time = self.original_ms.to_be_bytes();
                let payload = self.payload.to_string();
                let length = self.length.to_be_bytes();
                let body = [self.original.as_bytes(), b"\n", &time, payload.as_bytes(), &self.sha256, &length].concat();
                [&beside(&self.referrer, self.position)[..], &name_of(&body)].concat()
            }
        }
    }

    /// Whether slices share such a body. Who pins another only keeps it from going.
    fn may_be_shared(&self) -> bool {
        matches!(self.payload, Digest::Sha1(_))
            && (SHARED_BODY_BYTES_MIN..=SHARED_BODY_BYTES_MAX).contains(&self.length)
            && self.original.len().max(self.referrer.len()) <= SHARED_URL_BYTES_MAX
    }

    /// Whether both are about the same record and the same bytes.
    pub(crate) fn is_of_same_body(&self, other: &Pin) -> bool {
        let body = |pin: &Pin| (pin.position, pin.payload, pin.sha256, pin.length);
        body(self) == body(other)
    }
}

/// The name of a URL, or of what a reference says, among others.
fn name_of(text: &[u8]) -> [u8; 16] {
    let mut name = [0; 16];
    name.copy_from_slice(&blake3::hash(text).as_bytes()[..16]);
    name
}

/// How the references of a URL begin …
fn beside_all(referrer: &str) -> Vec<u8> {
    [&Key::of(referrer).site_hash().to_be_bytes()[..], &name_of(referrer.as_bytes())].concat()
}

/// … and those to one record.
fn beside(referrer: &str, position: Position) -> Vec<u8> {
    [beside_all(referrer), position_key(position)].concat()
}

fn position_key(position: Position) -> Vec<u8> {
    [position.writer.0, position.segment, position.record].map(u32::to_be_bytes).concat()
}

/// The flags of a pair, and what it is.
fn pair(value: &[u8]) -> Option<(u8, &[u8])> {
    value.get(1).copied().zip(value.get(2..))
}

fn keyspace(role: Role) -> &'static str {
    if role.is_of_original() { PINS } else { REFERENCES }
}

/// Folds a record that may be about a pin. Who wrote a body pins it, and nobody else: others could keep what is to go from going. That it has ended,
/// each knows from itself alone: others could let go what is needed.
pub(crate) fn fold(record: &SeenRecord<'_>, batch: &mut Batch<'_>) -> Result<()> {
    let (writer, own) = (record.position.writer, batch.listener().own);
    if writer == WriterKey::FOREIGN || record.entry.length > PIN_BYTES_MAX as u64 {
        return Ok(());
    }
    let Some(block) = block_of(record)? else { return Ok(()) };
    // One that makes no sense pins nothing; whoever wrote it has not taken it for one either.
    let Ok((role, pin, _)) = Pin::parse(&block) else { return Ok(()) };
    let flag = match role {
        Role::Pin if writer != pin.position.writer || !pin.may_be_shared() => return Ok(()),
        Role::Unpin if writer != own => return Ok(()),
        Role::Pin | Role::Reference => BEGUN,
        Role::Unpin | Role::Release => ENDED,
    };
    let key = pin.key(role);
    let value = batch.get(keyspace(role), &key)?.unwrap_or_default();
    let (flags, known) = pair(&value).unwrap_or((0, &block[..]));
    let begins = flag == BEGUN && flags & BEGUN == 0;
    let kept = if begins { &block[..] } else { known };
    batch.put(keyspace(role), &key, &[&[1, flags | flag], kept].concat());
    Ok(())
}

/// The block of such a record; `None` for another one, or where its segment was written again meanwhile: then that is folded, too. A file
/// that cannot be opened just now is an error: it is folded when it can, for a pin that is passed over would never be seen again.
fn block_of(record: &SeenRecord<'_>) -> Result<Option<Vec<u8>>> {
    let stored = match record.open() {
        Ok(stored) => stored,
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(block_in(stored))
}

fn block_in(mut stored: Stored) -> Option<Vec<u8>> {
    let mut found = stored.record().ok()?;
    let is_ours =
        found.head().target_uri().is_none() && found.head().get("Content-Type") == Some(own::FIELDS.as_bytes());
    if !is_ours || found.head().content_length().is_none_or(|length| length > PIN_BYTES_MAX as u64) {
        return None;
    }
    let mut block = Vec::new();
    (&mut found as &mut dyn BufRead).take(PIN_BYTES_MAX as u64).read_to_end(&mut block).ok()?;
    block.starts_with(TITLE.as_bytes()).then_some(block)
}

impl Views {
    /// What pins a record, as far as it counts for whoever has this archive, with the time of each in milliseconds since 1970.
    pub fn pins_of(&self, position: Position) -> Result<Vec<(Pin, i64)>> {
        self.pins_behind(&position_key(position))
    }

    /// What pins records of a segment.
    pub(crate) fn pins_in(&self, id: SegmentId) -> Result<BTreeMap<Position, Vec<Pin>>> {
        let mut pins: BTreeMap<Position, Vec<Pin>> = BTreeMap::new();
        for (pin, _) in self.pins_behind(&[id.writer.0, id.number].map(u32::to_be_bytes).concat())? {
            pins.entry(pin.position).or_default().push(pin);
        }
        Ok(pins)
    }

    fn pins_behind(&self, prefix: &[u8]) -> Result<Vec<(Pin, i64)>> {
        let mut pins = Vec::new();
        for item in self.keyspace(PINS)?.prefix(prefix) {
            let (_, value) = item.into_inner()?;
            if let Some((BEGUN, block)) = pair(&value)
                && let Ok((_, pin, time_ms)) = Pin::parse(block)
            {
                pins.push((pin, time_ms));
            }
        }
        Ok(pins)
    }

    /// Of these records, those that something pins.
    pub fn pinned(&self, positions: &[Position]) -> Result<HashSet<Position>> {
        let mut pinned = HashSet::new();
        // Mostly nothing is pinned at all.
        if self.keyspace(PINS)?.iter().next().is_some() {
            for position in positions {
                if !self.pins_of(*position)?.is_empty() {
                    pinned.insert(*position);
                }
            }
        }
        Ok(pinned)
    }

    /// Bodies elsewhere for which revisits of these sites stand: the first `limit` of them behind `after`, and where they stand, for
    /// going on from there.
    pub fn references(
        &self,
        first_site: u32,
        last_site: u32,
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Pin)>> {
        let mut found = Vec::new();
        let from = after.map(|after| [after, &[0]].concat()).unwrap_or_default().max(first_site.to_be_bytes().to_vec());
        for item in self.keyspace(REFERENCES)?.range(from..) {
            let (key, value) = item.into_inner()?;
            let site = key.first_chunk::<4>().map_or(u32::MAX, |site| u32::from_be_bytes(*site));
            if site > last_site || found.len() >= limit {
                break;
            }
            found.extend(reference(&value).map(|pin| (key.to_vec(), pin)));
        }
        Ok(found)
    }

    /// The bodies elsewhere for which revisits of a URL stand.
    pub fn references_of(&self, referrer: &str) -> Result<Vec<Pin>> {
        let mut found = Vec::new();
        for item in self.keyspace(REFERENCES)?.prefix(beside_all(referrer)) {
            let (_, value) = item.into_inner()?;
            found.extend(reference(&value));
        }
        Ok(found)
    }

    /// Whether it is said beside the revisits of a URL that they stand for this body, or stood for it once.
    pub fn refers(&self, pin: &Pin) -> Result<bool> {
        self.any_reference(&pin.referrer, pin.position, |flags, block| {
            flags & BEGUN > 0 && Pin::parse(block).is_ok_and(|(_, found, _)| found.is_of_same_body(pin))
        })
    }

    /// Whether revisits of a URL stood for a record once, and it has got a body of its own: that pair never begins again.
    pub fn has_released(&self, referrer: &str, position: Position) -> Result<bool> {
        self.any_reference(referrer, position, |flags, _| flags & ENDED > 0)
    }

    fn any_reference(&self, referrer: &str, to: Position, so: impl Fn(u8, &[u8]) -> bool) -> Result<bool> {
        for item in self.keyspace(REFERENCES)?.prefix(beside(referrer, to)) {
            let (_, value) = item.into_inner()?;
            if pair(&value).is_some_and(|(flags, block)| so(flags, block)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// What a reference says that has not ended.
fn reference(value: &[u8]) -> Option<Pin> {
    let (BEGUN, block) = pair(value)? else { return None };
    Pin::parse(block).ok().map(|(_, pin, _)| pin)
}

impl Archive {
    /// Pins a body that this archive wrote; synced and seen by the views when this returns. False if it is removed, is none that slices share, or
    /// the pair has ended once: then nobody begins to refer to it. What is pinned already stays so.
    pub fn pin(&self, pin: &Pin) -> Result<bool> {
        if pin.position.writer != self.writer() {
            return Err(Error::Refused {
                why: format!("{} is another writer's; who wrote a body pins it", pin.position),
            });
        }
        // A removal looks for pins under the same lock when what it means is hidden already.
        let _nothing_goes_meanwhile = self.shared.pinning.lock().unwrap_or_else(PoisonError::into_inner);
        let views = self.views();
        let flags = views.get(PINS, &pin.key(Role::Pin))?.and_then(|value| value.get(1).copied()).unwrap_or(0);
        if views.is_hidden(pin.position) || flags & ENDED > 0 || !pin.may_be_shared() {
            return Ok(false);
        }
        if flags & BEGUN == 0 {
            self.append_pin(pin, Role::Pin, &pin.original)?;
        }
        let holds = views.pins_of(pin.position)?.iter().any(|(known, _)| known.referrer == pin.referrer);
        Ok(holds && !views.is_hidden(pin.position))
    }

    /// Says that a body is no longer pinned by this referrer, for this archive alone. Synced and seen when this returns.
    pub fn unpin(&self, pin: &Pin) -> Result<()> {
        self.append_pin(pin, Role::Unpin, &pin.original)
    }

    fn append_pin(&self, pin: &Pin, role: Role, beside: &str) -> Result<()> {
        let record = pin.encode(role, (self.shared.clock)())?;
        let append = Append { site_hash: Key::of(beside).site_hash(), records: vec![record] };
        let told = self.shared.append_and_wait(append)?;
        self.settle_up_to(told.ticket)?;
        self.settle()
    }

    /// Records that still have their block because something pins them: removed here, or blank already in what was to take the place of their
    /// segment.
    pub fn removed_and_pinned(&self) -> Result<Vec<Position>> {
        let mut removed = self.views().hidden_with_block()?;
        removed.extend(self.shared.copies().needed());
        let pinned = self.views().pinned(&removed)?.into_iter();
        // What was let go of is with others.
        Ok(pinned.filter(|position| self.half_of(SegmentId::from(*position)).is_some()).collect())
    }

    /// Goes on with removals that waited for pins. Returns what could not be done.
    pub fn remove_unpinned(&self, positions: Vec<Position>) -> Vec<Finding> {
        self.shared.keeper().blank(positions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(referrer: &str) -> Pin {
        Pin {
            position: Position { writer: WriterKey(7), segment: 1, record: 2 },
            original: "http://a.test/".into(),
            original_ms: 1_000,
            referrer: referrer.into(),
            payload: Digest::Sha1([3; 20]),
            sha256: [4; 32],
            length: 1 << 20,
        }
    }

    #[test]
    fn a_pin_reads_back_whatever_stands_in_its_urls() {
        for role in [Role::Pin, Role::Unpin, Role::Reference, Role::Release] {
            let pin = pin("http://b.test/a\r\nrole: unpin");
            let encoded = pin.encode(role, 5_000).unwrap();
            assert_eq!(encoded.note, Note::Plain);
            let crate::Bytes::Memory(bytes) = encoded.bytes else { panic!("it is small") };
            let described = Encoded::describing(bytes.clone()).unwrap();
            assert_eq!(described.note, Note::Plain, "older programs know nothing of it");
            let mut reader =
                skep_warc::Reader::new(std::io::Cursor::new(bytes), skep_warc::Options::recover()).unwrap();
            let mut block = Vec::new();
            reader.next().unwrap().unwrap().read_to_end(&mut block).unwrap();
            let (read, found, time_ms) = Pin::parse(&block).unwrap();
            assert_eq!((read, time_ms), (role, 5_000));
            assert_eq!(found, Pin { referrer: "http://b.test/a  role: unpin".into(), ..pin });
        }
        assert!(Pin::parse(b"skep-pin: 2\r\n").is_err() && Pin::parse(b"").is_err());
    }
}
