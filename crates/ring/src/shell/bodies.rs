//! Bodies that slices share. A large one is kept once, where that can be proven; whoever referred to it gets one of its own before it goes.
//! Read top to bottom.
//!
//! ```text
//!  visit     who may have it? ──▶ SameBody: its writer reads every byte, pins, waits for a majority ──▶ another holder proves the same ──▶ revisit
//!  removed   hidden at once ──▶ KeepBody to the holders of each referrer: a body of its own, acknowledged ──▶ unpinned ──▶ written out
//!  looked at whose original is on its last holder, or found nowhere, gets a body of its own while somebody can give it
//! ```
//! Who wrote a body is who takes it away, so only that node pins it; that a pin has ended, each holder finds out for itself. In doubt a body is kept
//! once more.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Read, Seek, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use skep_archive::captures::{Match, Query};
use skep_archive::layout::SegmentId;
use skep_archive::limits::{REVISITS_TRIED_MAX, SHARED_BODY_BYTES_MAX, SHARED_BODY_BYTES_MIN};
use skep_archive::{Capture, CaptureKind, Digest, Key as UrlKey, Pin, Position, Same, Stored, Wanted, WriterKey};
use skep_url::Url;

use super::answers::no;
use super::coming::copy_within;
use super::pool::Pool;
use super::question::{Question, YES, is_yes, position};
use super::{Shell, lock};
use crate::copy::{Segment, writer_of};
use crate::directory::{self, Directory, Name, proof};
use crate::genesis::Slice;
use crate::key::{Hash, Key};
use crate::limits::{
    ANSWER_RECORD_BYTES_MAX, BODIES_AT_ONCE, BODIES_WAITING_MAX, BODY_ASKED_MAX, BODY_HINT_MS_MAX, BODY_MS_MAX,
    LOST_BODIES_MAX, QUESTION_MS_MAX, RECORD_ID_BYTES_MAX, RECORD_OF_BODY_BYTES_MAX, RECORD_OF_BODY_MS_MAX,
    REFERENCES_AT_ONCE, SHARED_URL_BYTES_MAX,
};
use crate::message::PROTOCOL_BODIES;
use crate::node::{Note, What};

/// A body that somebody looks for, or that is to be kept: as it travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    /// SHA-1 of the payload, as records have it.
    pub payload: [u8; 20],
    /// Its SHA-256.
    pub sha256: [u8; 32],
    /// Its length.
    pub length: u64,
    /// The URL whose revisit is to stand for it.
    pub referrer: String,
}

/// A record that has a body, and the proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proven {
    /// Who wrote it, in which segment, which record.
    pub position: (u32, u32, u32),
    /// Its URL.
    pub url: String,
    /// Its time, in milliseconds since 1970.
    pub time_ms: i64,
    /// Its id.
    pub record: String,
    /// By [`crate::directory::proof`].
    pub proof: Hash,
}

/// How it stands with a referrer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owned {
    /// It has a body of its own, which a majority has synced.
    Own,
    /// Nothing of it refers to the body any more, as far as is known there.
    Nobody,
}

/// What a node knows of shared bodies.
pub(super) struct Bodies {
    directory: Mutex<Directory>,
    /// Questions of visits, and what others are told.
    pool: Pool,
    waiting: AtomicUsize,
    /// Bodies that are read for others.
    proving: AtomicUsize,
    /// Who brings a body for a referrer here: each one at a time, for it may bring it slowly …
    bringing: Mutex<HashSet<Key>>,
    /// … and of what was brought, one is written at a time.
    writing: Mutex<()>,
    sums: Mutex<Sums>,
    /// References whose bodies no holder could give when they were looked at last.
    lost: Mutex<HashSet<Vec<u8>>>,
}

/// Shared bodies in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// URLs of slices led here whose revisits stand for bodies of other slices …
    pub referrers: u64,
    /// … and the bytes of these bodies, which are not kept once more.
    pub saved_bytes: u64,
    /// Removed bodies that wait here until those who refer to them have their own.
    pub waiting: u64,
    /// Bodies of their own that referrers got here.
    pub given: u64,
    /// Bodies to which slices led here refer and which no holder can give.
    pub lost: u64,
}

impl Bodies {
    pub fn new() -> Bodies {
        Bodies {
            directory: Mutex::default(),
            pool: Pool::new("skep-body", BODIES_AT_ONCE),
            waiting: AtomicUsize::new(0),
            proving: AtomicUsize::new(0),
            bringing: Mutex::default(),
            writing: Mutex::default(),
            sums: Mutex::default(),
            lost: Mutex::default(),
        }
    }

    pub fn stop(&self) {
        self.pool.stop();
    }

    pub fn sums(&self) -> Sums {
        *lock(&self.sums)
    }
}

/// One of so many at once; gives its place back.
struct Turn<'t>(&'t AtomicUsize);

impl Turn<'_> {
    fn take(count: &AtomicUsize, most: usize) -> Option<Turn<'_>> {
        let before = count.fetch_add(1, Ordering::Relaxed);
        let turn = Turn(count);
        (before < most).then_some(turn)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Somebody brings a body, and no other meanwhile.
struct Bringing<'b>(&'b Mutex<HashSet<Key>>, Key);

impl Bringing<'_> {
    fn begin(who: &Mutex<HashSet<Key>>, node: Key) -> Option<Bringing<'_>> {
        let mut all = lock(who);
        (all.len() < BODIES_AT_ONCE && all.insert(node)).then(|| Bringing(who, node))
    }
}

impl Drop for Bringing<'_> {
    fn drop(&mut self) {
        lock(self.0).remove(&self.1);
    }
}

/// How it stands here with a referrer.
enum Stands {
    /// A record of it has the body itself.
    Own(Position),
    /// These revisits of it stand for the body, the first ones first.
    Refers(Vec<Capture>),
    /// Nothing of it stands for the body.
    Nobody,
}

impl Body {
    /// Whether it is one that slices share.
    fn is_shared(&self) -> bool {
        (SHARED_BODY_BYTES_MIN..=SHARED_BODY_BYTES_MAX).contains(&self.length)
            && self.referrer.len() <= SHARED_URL_BYTES_MAX
    }

    fn wanted(&self, key: [u8; 32]) -> Wanted {
        Wanted { payload: Digest::Sha1(self.payload), sha256: self.sha256, length: self.length, key }
    }

    fn pin(&self, same: &Same) -> Pin {
        Pin {
            position: same.position,
            original: same.url.clone(),
            original_ms: same.time_ms,
            referrer: self.referrer.clone(),
            payload: Digest::Sha1(self.payload),
            sha256: self.sha256,
            length: self.length,
        }
    }

    fn of(pin: &Pin) -> Option<Body> {
        let Digest::Sha1(payload) = pin.payload else { return None };
        Some(Body { payload, sha256: pin.sha256, length: pin.length, referrer: pin.referrer.clone() })
    }
}

fn parts(position: Position) -> (u32, u32, u32) {
    (position.writer.0, position.segment, position.record)
}

// --- a visit brought a body -----------------------------------------------------------------------------------------------

impl Shell {
    /// Looks for a body in slices other than that of its URL, and has it pinned there. `keyed` is its BLAKE3 under `key`, which was drawn for
    /// this. `back` is told in time for whoever waits, or dropped.
    pub fn same_body(
        self: &Arc<Shell>,
        body: Body,
        key: [u8; 32],
        keyed: [u8; 32],
        back: impl FnOnce(Option<Same>) + Send + 'static,
    ) {
        if self.bodies.waiting.load(Ordering::Relaxed) >= BODIES_WAITING_MAX {
            return back(None);
        }
        self.bodies.waiting.fetch_add(1, Ordering::Relaxed);
        let (shell, until) = (self.clone(), Instant::now() + Duration::from_millis(BODY_MS_MAX));
        self.bodies.pool.run(move || {
            shell.bodies.waiting.fetch_sub(1, Ordering::Relaxed);
            back(shell.find_body(&body, key, keyed, until));
        });
    }

    /// A large body is kept here: those are told whom others ask.
    pub fn kept_body(self: &Arc<Shell>, sha256: [u8; 32], length: u64) {
        if self.bodies.waiting.load(Ordering::Relaxed) >= BODIES_WAITING_MAX {
            return;
        }
        self.bodies.waiting.fetch_add(1, Ordering::Relaxed);
        let shell = self.clone();
        self.bodies.pool.run(move || {
            shell.bodies.waiting.fetch_sub(1, Ordering::Relaxed);
            shell.tell_of_body((sha256, length));
        });
    }

    fn tell_of_body(&self, name: Name) {
        let question = Question::KeptBody { sha256: name.0, length: name.1 };
        for node in self.holders_asked(directory::slice_of(&name.0, self.genesis())) {
            if node == self.key {
                lock(&self.bodies.directory).told(name, node);
            } else {
                // A hint that does not arrive costs no more than a second copy.
                let _arrived: Result<(), String> = self.ask_within(node, &question, 0, BODY_HINT_MS_MAX);
            }
        }
    }

    fn find_body(&self, body: &Body, key: [u8; 32], keyed: [u8; 32], until: Instant) -> Option<Same> {
        if !body.is_shared() || !self.everybody_speaks(PROTOCOL_BODIES) {
            return None;
        }
        if self.is_of_split_site(&body.referrer) {
            return None;
        }
        let mut asked = BTreeSet::new();
        let mut ask = |node: Key| {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || asked.len() >= BODY_ASKED_MAX || !asked.insert(node) {
                return None;
            }
            self.have_pinned(node, body, key, keyed, until)
        };
        if let Some(same) = self.writers_of(body).into_iter().find_map(&mut ask) {
            return Some(same);
        }
        let name = (body.sha256, body.length);
        let question = Question::WhoHasBody { sha256: body.sha256, length: body.length };
        self.holders_asked(directory::slice_of(&body.sha256, self.genesis())).into_iter().find_map(|node| {
            let named: Option<Key> = match node == self.key {
                true => lock(&self.bodies.directory).who(&name),
                false => self.ask_within(node, &question, 64, BODY_HINT_MS_MAX).ok().flatten(),
            };
            named.and_then(&mut ask)
        })
    }

    /// Who wrote such a body, as far as is known here: to whom this URL referred before, and who wrote captures with the same payload.
    fn writers_of(&self, body: &Body) -> Vec<Key> {
        let views = self.archive.views();
        let references = views.references_of(&body.referrer).unwrap_or_default().into_iter();
        let mut writers: Vec<u32> = references
            .filter(|pin| (pin.sha256, pin.length) == (body.sha256, body.length))
            .map(|pin| pin.position.writer.0)
            .collect();
        let originals = views.digests.originals(&Digest::Sha1(body.payload), REFERENCES_AT_ONCE).unwrap_or_default();
        writers.extend(originals.into_iter().map(|original| original.position.writer.0));
        let machine = lock(&self.machine);
        let roster = &machine.node.view.roster;
        let there = (0..roster.len() as u32).filter(|index| roster.is_present(*index)).map(|index| roster.key(index));
        let mut nodes: Vec<(usize, Key)> = there
            .chain([self.key])
            .filter_map(|node| Some((writers.iter().position(|writer| *writer == writer_of(&node))?, node)))
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.into_iter().map(|(_, node)| node).collect()
    }

    /// Two holders of a slice that are there, and speak of bodies: this node, if it is one of the first two.
    fn holders_asked(&self, slice: Slice) -> Vec<Key> {
        let machine = lock(&self.machine);
        let roster = &machine.node.view.roster;
        let mut holders = machine.node.view.in_order(slice, &machine.node.view.holders(slice));
        holders.retain(|node| *node == self.key || roster.index(node).is_some_and(|index| roster.is_present(index)));
        holders.truncate(2);
        holders
    }

    fn slice_of_url(&self, url: &str) -> Slice {
        self.slice_of(UrlKey::of(url).site_hash())
    }

    /// What is of a site that is split may be in one of several slices: it refers to no body of others, and no others refer to its.
    fn is_of_split_site(&self, url: &str) -> bool {
        self.splits().of(UrlKey::of(url).site_hash()).is_some()
    }

    fn all_holders(&self, slice: Slice) -> Vec<Key> {
        let machine = lock(&self.machine);
        let view = &machine.node.view;
        view.in_order(slice, &view.holders(slice))
    }

    /// Has a node pin a body that it wrote, if it proves that it has it, and another holder proves that, too. What it says is believed no
    /// further than that.
    fn have_pinned(&self, node: Key, body: &Body, key: [u8; 32], keyed: [u8; 32], until: Instant) -> Option<Same> {
        let proven = self.ask_same(node, body, key, None, until).ok()?;
        let at = proven.position;
        let slice = self.slice_of_url(&proven.url);
        let holders = self.all_holders(slice);
        // As many copies as are asked for here: a slice that is still on its way to more holders is asked another time.
        let is_copied = holders.len() >= self.all_holders(self.slice_of_url(&body.referrer)).len();
        let is_sound = at.0 == writer_of(&node)
            && holders.contains(&node)
            && is_copied
            && slice != self.slice_of_url(&body.referrer)
            && !self.is_of_split_site(&proven.url)
            && proven.url.len() <= SHARED_URL_BYTES_MAX
            && Url::parse(&proven.url).is_ok_and(|url| url.as_str() == proven.url)
            && proven.time_ms >= 0
            && proven.record.len() <= RECORD_ID_BYTES_MAX
            && proven.time_ms <= self.clock.now().wall_ms as i64;
        if !is_sound || proven.proof != proof(&keyed, &node, at) {
            lock(&self.bodies.directory).forget(&(body.sha256, body.length), &node);
            self.note_body(Some(node), "it says that it has a body, and does not prove it");
            return None;
        }
        // A pair that has ended never begins again: nobody would look after the body for this referrer.
        if self.archive.views().has_released(&body.referrer, position(at.0, at.1, at.2)).unwrap_or(true) {
            return None;
        }
        // One node alone may say anything: what it pinned is with another holder, and so is the pin.
        let mut others = holders.iter().filter(|holder| **holder != node).peekable();
        let is_witnessed = others.peek().is_none()
            || others.any(|holder| {
                let seen = self.ask_same(*holder, body, key, Some(at), until);
                // What a revisit will say of it is as little one node's to say as its bytes are.
                let told = |of: &Proven| (of.position, of.url.clone(), of.time_ms, of.record.clone());
                seen.is_ok_and(|seen| told(&seen) == told(&proven) && seen.proof == proof(&keyed, holder, at))
            });
        is_witnessed.then(|| Same {
            position: position(at.0, at.1, at.2),
            url: proven.url,
            time_ms: proven.time_ms,
            record: proven.record,
            keyed,
        })
    }

    fn ask_same(
        &self,
        node: Key,
        body: &Body,
        key: [u8; 32],
        at: Option<(u32, u32, u32)>,
        until: Instant,
    ) -> Result<Proven, String> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("there is no time left".into());
        }
        if node == self.key {
            return self.same_here(self.key, body, key, at);
        }
        if !self.speaks_of_bodies(&node) {
            return Err("it does not know of shared bodies".into());
        }
        let question = Question::SameBody { body: body.clone(), key, at };
        self.ask_within(node, &question, 2 * SHARED_URL_BYTES_MAX as u64, left.as_millis() as u64)
    }

    fn speaks_of_bodies(&self, node: &Key) -> bool {
        self.spoken(node).is_some_and(|protocol| protocol >= PROTOCOL_BODIES)
    }

    /// Asks a node something whose answer is small, and waits for it no longer than this.
    fn ask_within<T: serde::de::DeserializeOwned>(
        &self,
        node: Key,
        question: &Question,
        most: u64,
        patience_ms: u64,
    ) -> Result<T, String> {
        if !self.speaks_of_bodies(&node) {
            return Err("it does not know of shared bodies".into());
        }
        self.ask_for(node, question, most, Duration::from_millis(patience_ms))
    }

    fn note_body(&self, peer: Option<Key>, why: &'static str) {
        self.note(&Note { what: What::Body, peer, slice: None, why });
    }
}

// --- others ask -----------------------------------------------------------------------------------------------------------

impl Shell {
    /// A node keeps a body: a hint.
    pub(super) fn hear_of_body(&self, from: Key, sha256: [u8; 32], length: u64) {
        lock(&self.bodies.directory).told((sha256, length), from);
    }

    /// Who may have a body.
    pub(super) fn who_has_body(&self, sha256: [u8; 32], length: u64) -> Option<Key> {
        lock(&self.bodies.directory).who(&(sha256, length))
    }

    /// A body that was written here is proven and pinned; or the record at a place that was pinned by who wrote it is proven.
    pub(super) fn same_here(
        &self,
        from: Key,
        body: &Body,
        key: [u8; 32],
        at: Option<(u32, u32, u32)>,
    ) -> Result<Proven, String> {
        let referring = self.slice_of_url(&body.referrer);
        if !body.is_shared() {
            return Err("bodies of that length are not shared, nor with URLs of such".into());
        }
        if !self.all_holders(referring).contains(&from) {
            return Err("you do not hold the slice of that URL".into());
        }
        let Some(_turn) = Turn::take(&self.bodies.proving, BODIES_AT_ONCE) else {
            return Err("others are asked for bodies just now".into());
        };
        let wanted = body.wanted(key);
        let told = |same: Same| Proven {
            position: parts(same.position),
            url: same.url,
            time_ms: same.time_ms,
            record: same.record,
            proof: proof(&same.keyed, &self.key, parts(same.position)),
        };
        let wrong = |error: skep_archive::Error| error.to_string();
        if let Some(at) = at {
            self.archive.settle().map_err(wrong)?;
            let place = position(at.0, at.1, at.2);
            let pins = self.archive.views().pins_of(place).map_err(wrong)?;
            let is_pinned = pins.iter().any(|(pin, _)| pin.referrer == body.referrer && pin.sha256 == body.sha256);
            let same = if is_pinned { self.archive.same_body_at(place, &wanted).map_err(wrong)? } else { None };
            return same.map(told).ok_or_else(|| "it is not here, or not pinned".into());
        }
        let fits = |site: u32| {
            let slice = self.slice_of(site);
            slice != referring && self.holds(slice)
        };
        let same = self.archive.same_body(&wanted, &fits).map_err(wrong)?.ok_or("it is not here")?;
        if self.is_of_split_site(&same.url) {
            return Err("its site is split".into());
        }
        if !self.archive.pin(&body.pin(&same)).map_err(wrong)? {
            return Err("it is about to go".into());
        }
        let slice = self.slice_of_url(&same.url);
        if !self.wait_acknowledged(slice, Duration::from_millis(BODY_MS_MAX)) {
            return Err("its pin is not acknowledged yet".into());
        }
        Ok(told(same))
    }

    /// Gives a record that is pinned, removed or not, to who holds the slice that refers to it.
    pub(super) fn give_body(&self, from: Key, place: Position, referrer: &str, out: &mut dyn Write) -> io::Result<()> {
        if !self.all_holders(self.slice_of_url(referrer)).contains(&from) {
            return no(out, "you do not hold the slice of that URL");
        }
        let pins = self.archive.views().pins_of(place).unwrap_or_default();
        if !pins.iter().any(|(pin, _)| pin.referrer == referrer) {
            return no(out, "it is not pinned");
        }
        let place = match self.archive.place(place) {
            Ok(place) if place.length <= ANSWER_RECORD_BYTES_MAX => place,
            _ => return no(out, "it cannot be read"),
        };
        let mut file = std::fs::File::open(&place.path)?;
        file.seek(io::SeekFrom::Start(place.offset))?;
        out.write_all(&[YES])?;
        io::copy(&mut file.take(place.length), out)?;
        out.flush()
    }

    /// A body is to go to which a URL of a slice held here may refer: it gets one of its own, which `from` gives.
    pub(super) fn keep_here(
        &self,
        from: Key,
        body: &Body,
        original: (u32, u32, u32),
        url: &str,
        time_ms: i64,
        writes: bool,
    ) -> Result<Owned, String> {
        if !body.is_shared() || url.len() > SHARED_URL_BYTES_MAX {
            return Err("bodies of that length are not shared, nor with URLs of such".into());
        }
        // Who wrote the original sees to it that it can go, or who leads its slice.
        if original.0 != writer_of(&from) && !self.all_holders(self.slice_of_url(url)).contains(&from) {
            return Err("you do not hold the slice of the original".into());
        }
        let same = Same {
            position: position(original.0, original.1, original.2),
            url: url.to_owned(),
            time_ms,
            record: String::new(),
            keyed: [0; 32],
        };
        self.own_body(&body.pin(&same), if writes { std::slice::from_ref(&from) } else { &[] })
    }

    /// Gives a URL a body of its own, from the first of these nodes that has it. Nothing is locked while anything is waited for.
    fn own_body(&self, pin: &Pin, from: &[Key]) -> Result<Owned, String> {
        let slice = self.slice_of_url(&pin.referrer);
        if !self.holds(slice) {
            return Err("the slice of that URL is not held here".into());
        }
        let mut stands = self.stands(pin, slice)?;
        let (mut from, mut why) = (from.iter(), String::from("nobody was asked"));
        while let Stands::Refers(_) = stands {
            let Some(node) = from.next() else { return Err(why) };
            match self.have_brought(*node, pin, slice) {
                Ok(now) => stands = now,
                Err(said) => why = said,
            }
        }
        match stands {
            Stands::Own(own) => {
                match self.wait_acknowledged_at(slice, own, Duration::from_millis(QUESTION_MS_MAX / 2)) {
                    true => Ok(Owned::Own),
                    false => Err("its own body is not acknowledged yet".into()),
                }
            }
            _ => Ok(Owned::Nobody),
        }
    }

    /// Has a node bring the body, and writes it if it is still wanted then: somebody else may have brought the same.
    fn have_brought(&self, node: Key, pin: &Pin, slice: Slice) -> Result<Stands, String> {
        let Some(_bringing) = Bringing::begin(&self.bodies.bringing, node) else {
            return Err("other bodies are being brought just now".into());
        };
        let mut given = self.fetch_body(node, pin)?;
        let _one_at_a_time = lock(&self.bodies.writing);
        let stands = self.stands(pin, slice)?;
        let Stands::Refers(revisits) = &stands else { return Ok(stands) };
        let written = self.archive.write_own_body(pin, revisits, &mut given).map_err(|error| error.to_string())?;
        lock(&self.bodies.sums).given += 1;
        Ok(Stands::Own(written))
    }

    /// Looks whether a URL has the body itself, and else whether revisits of it stand for it.
    fn stands(&self, pin: &Pin, slice: Slice) -> Result<Stands, String> {
        let wrong = |error: skep_archive::Error| error.to_string();
        // While this is held, no visit begins to refer to it; one that did before is seen, or still holds it.
        let going = self.archive.referred().going([pin.payload]);
        self.archive.settle().map_err(wrong)?;
        let query = Query::new(Match::Exact(UrlKey::of(&pin.referrer)));
        let mut revisits = Vec::new();
        let wanted = Wanted { payload: pin.payload, sha256: pin.sha256, length: pin.length, key: [0; 32] };
        for capture in self.archive.views().captures.query(&query).map_err(wrong)? {
            let capture = capture.map_err(wrong)?;
            if capture.url != pin.referrer || capture.digest != Some(pin.payload) {
                continue;
            }
            match capture.kind {
                // Others hold only what stands in segments of its slice: what came with a file is this node's alone.
                CaptureKind::Response
                    if self.is_in_slice(capture.position, slice)
                        && self.archive.same_body_at(capture.position, &wanted).map_err(wrong)?.is_some() =>
                {
                    return Ok(Stands::Own(capture.position));
                }
                // One that says only that nothing changed has no head to go before a body.
                CaptureKind::Revisit if capture.status != 304 && revisits.len() < REVISITS_TRIED_MAX => {
                    revisits.push(capture);
                }
                _ => {}
            }
        }
        // Whoever asks may say anything of what stands for what: it is said here beside the revisit, or it is not so.
        if !revisits.is_empty() && self.archive.views().refers(pin).map_err(wrong)? {
            return Ok(Stands::Refers(revisits));
        }
        match going.contains(&pin.payload) {
            true => Ok(Stands::Nobody),
            false => Err("a visit is about to refer to it".into()),
        }
    }

    /// Whether a record stands in a segment that holders of a slice have.
    fn is_in_slice(&self, place: Position, slice: Slice) -> bool {
        place.writer != WriterKey::FOREIGN && self.slice_of_record(place) == Some(slice)
    }

    /// In the segments of which slice a record stands, if it is here.
    fn slice_of_record(&self, place: Position) -> Option<Slice> {
        let half = self.archive.half_of(SegmentId::from(place))?;
        (half.bits() == self.genesis().slice_bits).then(|| half.prefix())
    }

    /// The record of a pinned body, from whoever has it.
    fn fetch_body(&self, node: Key, pin: &Pin) -> Result<Stored, String> {
        if node == self.key {
            let place = self.archive.place(pin.position).map_err(|error| error.to_string())?;
            return Stored::at(&place).map_err(|error| error.to_string());
        }
        if !self.speaks_of_bodies(&node) {
            return Err("it does not know of shared bodies".into());
        }
        let question = Question::PinnedBody { position: parts(pin.position), referrer: pin.referrer.clone() };
        let patience = Duration::from_millis(QUESTION_MS_MAX);
        let asked = self.wire.ask(node, &question.encode(), patience);
        let mut answer = asked.map_err(|silence| silence.to_string())?;
        is_yes(&mut answer).map_err(|error| error.to_string())??;
        let mut file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        let length =
            copy_within(&mut answer, &mut file, RECORD_OF_BODY_BYTES_MAX, Duration::from_millis(RECORD_OF_BODY_MS_MAX))
                .map_err(|error| error.to_string())?;
        file.flush().map_err(|error| error.to_string())?;
        Stored::open(file.path(), 0, length).map_err(|error| error.to_string())
    }

    /// Waits until a majority of the holders of a slice has synced a record.
    fn wait_acknowledged_at(&self, slice: Slice, place: Position, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let Ok(end) = self.archive.place(place).map(|place| place.offset + place.length) else { return false };
        let of = |segment: &Segment| (segment.writer, segment.number) == (place.writer.0, place.segment);
        let extents = self.extents(slice).into_iter().filter(|extent| of(&extent.segment));
        let wanted: Vec<(Segment, u64)> = extents.map(|extent| (extent.segment, end.min(extent.bytes))).collect();
        !wanted.is_empty() && self.wait_synced(slice, &wanted, until)
    }
}

// --- now and then ---------------------------------------------------------------------------------------------------------

impl Shell {
    /// Looks after shared bodies until the node stops.
    pub(super) fn tend_bodies(&self) {
        let mut counted = Instant::now();
        let mut after: Option<Vec<u8>> = None;
        let mut of = 0;
        while !self.rest(Duration::from_millis(self.settings.compare_ms)) {
            self.let_pinned_go();
            if Instant::now() >= counted {
                counted = Instant::now() + Duration::from_millis(self.settings.summary_ms);
                of = self.count_references();
            }
            // All of them once in the time of an audit.
            let rounds = self.settings.audit_ms / self.settings.compare_ms.max(1);
            let some = (of / rounds.max(1) + 1).min(REFERENCES_AT_ONCE as u64) as usize;
            after = self.look_at_references(after, some);
        }
    }

    /// Removed bodies to which others refer go when each of these has its own. Whoever has such a body asks for itself, and goes by nobody else's
    /// word; but only who wrote it, or leads its slice, brings it to those who have none.
    fn let_pinned_go(&self) {
        let removed = self.archive.removed_and_pinned().unwrap_or_default();
        lock(&self.bodies.sums).waiting = removed.len() as u64;
        let mut free = Vec::new();
        for place in removed {
            if *lock(&self.stopped) {
                return;
            }
            let own = place.writer == self.archive.writer();
            let brings = own || self.leads_slice_of(place);
            for (pin, since_ms) in self.archive.views().pins_of(place).unwrap_or_default() {
                if self.has_own(&pin, since_ms, brings) && self.archive.unpin(&pin).is_err() {
                    self.note_body(None, "that a body is no longer pinned could not be written");
                }
            }
            match self.archive.views().pins_of(place) {
                Ok(left) if left.is_empty() => free.extend(own.then_some(place)),
                _ => self.note_body(None, "a removed body waits: not everybody who refers to it has its own yet"),
            }
        }
        if !free.is_empty() && !self.archive.remove_unpinned(free).is_empty() {
            self.note_body(None, "a removed body could not be written out yet");
        }
    }

    /// Whether this node leads the slice in whose segments a record stands.
    fn leads_slice_of(&self, place: Position) -> bool {
        let now_ms = self.clock.now().mono_ms;
        let slice = self.slice_of_record(place);
        slice.is_some_and(|slice| lock(&self.machine).node.core.leads(slice, now_ms).is_some())
    }

    /// Asks those who hold the slice of a referrer. True if it has a body of its own, by the word of two of them: one alone may say anything. Or
    /// if all of them say that nothing refers to the body any more, and whoever asked for the pin has had the time to do so. `brings`: who has none
    /// gets it from here.
    fn has_own(&self, pin: &Pin, since_ms: i64, brings: bool) -> bool {
        let Some(body) = Body::of(pin) else { return false };
        let slice = self.slice_of_url(&pin.referrer);
        let mut holders = self.all_holders(slice);
        if let Some(leader) = self.leader(slice) {
            holders.sort_by_key(|holder| *holder != leader);
        }
        let (mut own, mut nobody) = (0, 0);
        for holder in &holders {
            // Who comes after only looks: what the first one wrote may not be there yet.
            let writes = brings && own == 0;
            let said: Result<Owned, String> = match *holder == self.key {
                true => self.own_body(pin, if writes { std::slice::from_ref(&self.key) } else { &[] }),
                false => {
                    let question = Question::KeepBody {
                        body: body.clone(),
                        position: parts(pin.position),
                        url: pin.original.clone(),
                        time_ms: pin.original_ms,
                        writes,
                    };
                    self.ask_within(*holder, &question, 16, QUESTION_MS_MAX)
                }
            };
            match said {
                Ok(Owned::Own) => own += 1,
                Ok(Owned::Nobody) => nobody += 1,
                Err(_) => {}
            }
            if own > 0 && own >= holders.len().min(2) {
                return true;
            }
        }
        let old_ms = (self.clock.now().wall_ms as i64).saturating_sub(since_ms);
        nobody == holders.len() && nobody > 0 && old_ms > 2 * self.settings.lease_ms as i64
    }

    fn led_slices(&self) -> Vec<Slice> {
        let now_ms = self.clock.now().mono_ms;
        let machine = lock(&self.machine);
        let core = &machine.node.core;
        core.holdings().map(|(slice, _)| slice).filter(|slice| core.leads(*slice, now_ms).is_some()).collect()
    }

    fn count_references(&self) -> u64 {
        let (mut referrers, mut saved_bytes) = (0, 0);
        for slice in self.led_slices() {
            let (first, last) = self.sites(slice);
            let mut after: Option<Vec<u8>> = None;
            loop {
                let some = self.archive.views().references(first, last, after.as_deref(), REFERENCES_AT_ONCE);
                let some = some.unwrap_or_default();
                referrers += some.len() as u64;
                saved_bytes = some.iter().fold(saved_bytes, |sum: u64, (_, pin)| sum.saturating_add(pin.length));
                match some.last() {
                    Some((key, _)) => after = Some(key.clone()),
                    None => break,
                }
            }
        }
        let mut sums = lock(&self.bodies.sums);
        (sums.referrers, sums.saved_bytes) = (referrers, saved_bytes);
        referrers
    }

    /// Looks whether the originals are there to which slices refer that are led here. What has one holder left, or none, is kept here from now
    /// on, if anybody can give it. Says from where to go on.
    fn look_at_references(&self, after: Option<Vec<u8>>, some: usize) -> Option<Vec<u8>> {
        let led: BTreeSet<Slice> = self.led_slices().into_iter().collect();
        let mut references = Vec::new();
        for slice in led {
            let ((first, last), left) = (self.sites(slice), some - references.len());
            // One after the other, as their sites follow each other: what is behind is passed over at once.
            references.extend(self.archive.views().references(first, last, after.as_deref(), left).unwrap_or_default());
        }
        let last = references.last().map(|(key, _)| key.clone());
        for (key, pin) in references {
            if *lock(&self.stopped) {
                return last;
            }
            let is_lost = self.is_lost(&pin);
            let lost = {
                let mut lost = lock(&self.bodies.lost);
                let news = match is_lost {
                    true if lost.len() < LOST_BODIES_MAX => lost.insert(key),
                    true => false,
                    false => {
                        lost.remove(&key);
                        false
                    }
                };
                lock(&self.bodies.sums).lost = lost.len() as u64;
                news
            };
            if lost {
                self.note_body(None, "a body to which a page here refers is with none of its holders");
            }
        }
        last
    }

    /// Whether no holder can give a body. One that has a single holder left gets another here, beside its referrer.
    fn is_lost(&self, pin: &Pin) -> bool {
        let slice = self.slice_of_url(&pin.original);
        let holders = self.all_holders(slice);
        let present = {
            let machine = lock(&self.machine);
            let roster = &machine.node.view.roster;
            let there =
                |node: &&Key| **node == self.key || roster.index(node).is_some_and(|index| roster.is_present(index));
            holders.iter().filter(there).count()
        };
        // How many copies there are to be, while so many nodes are there.
        let wanted = usize::from(self.genesis().copies).min(self.others().len() + 1);
        let is_last = present <= 1 && wanted > 1;
        let mut silent = 0;
        let has_it = |node: &Key| -> Result<bool, String> {
            if *node == self.key {
                return Ok(self.archive.place(pin.position).is_ok() && !self.archive.views().is_hidden(pin.position));
            }
            let mut query = Query::new(Match::Exact(UrlKey::of(&pin.original)));
            (query.from_ms, query.to_ms) = (Some(pin.original_ms), Some(pin.original_ms));
            let found = self.captures_at(*node, &query)?;
            Ok(found.iter().any(|capture| capture.position == pin.position && capture.digest == Some(pin.payload)))
        };
        let mut is_there = false;
        for holder in &holders {
            match has_it(holder) {
                Ok(true) => {
                    is_there = true;
                    break;
                }
                Ok(false) => {}
                Err(_) => silent += 1,
            }
        }
        if is_there && !is_last {
            return false;
        }
        match self.own_body(pin, &holders) {
            // Where its last revisit is removed, nothing is lost with the body.
            Ok(Owned::Own | Owned::Nobody) => false,
            Err(_) => !is_there && silent == 0 && !holders.is_empty(),
        }
    }
}
