//! Copies of segments: a holder pulls what a writer has synced, piece by piece. Read top to bottom.
//!
//! ```text
//!  writer, or any holder                                    another holder
//!  held    which segments of a slice, how far synced   ──▶  what is missing
//!  piece   whole records from a byte on, and what       ──▶  copy: write behind what is there, sync ─▶ views follow
//!          the sidecar says of them; then their bytes        the closing record arrives: BLAKE3 and signature, or dropped
//! ```
//! A copy is always a prefix of the original, cut at a record. The head of a piece, as it travels:
//! ```text
//!  | writer 4 | number 4 | generation 4 | bits 1 | prefix and half 4 | from 8 | to 8 | frame of a sidecar … |     little-endian
//! ```
//! A sealed segment that is damaged, or that its writer wrote again, or a holder instead of it, is copied whole beside the old file and takes
//! its place when its seal has been verified.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::PoisonError;

use crate::archive::{Archive, Place, Shared};
use crate::bodies::Sum;
use crate::capture::{Position, WriterKey};
use crate::catalog::{Segment, State};
use crate::check;
use crate::closing::Closing;
use crate::error::{Error, Result};
use crate::finding::Finding;
use crate::follow::SegmentCommit;
use crate::identity::writer_of;
use crate::instead::{self, Judge};
use crate::layout::{HalfSlice, SegmentId, SegmentName, part_of, sidecar_of};
use crate::limits::{COPY_CURSORS_MAX, COPY_ENTRIES_MAX, FRAME_BYTES_MAX, INSTEAD_STEP, NEEDED_MAX, STRETCH_BYTES_MAX};
use crate::rewrite::{closing_and_key, closing_of, delete_generation, sealed_entries};
use crate::settings;
use crate::sidecar::{self, Entry, HEADER_BYTES, Note, SidecarReader, SidecarWriter};
use crate::views::Mark;

/// A segment as it stands here: whoever has less of it may ask for the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// The file that counts.
    pub name: SegmentName,
    /// Its half-slice.
    pub half: HalfSlice,
    /// How much of it is synced and described: whole records.
    pub bytes: u64,
    /// It ends with its closing record.
    pub sealed: bool,
}

/// Whole records of a segment that travel together; their bytes follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Of which file.
    pub name: SegmentName,
    /// Its half-slice.
    pub half: HalfSlice,
    /// Their first byte.
    pub from: u64,
    /// The byte after the last.
    pub to: u64,
    /// What they are.
    pub entries: Vec<Entry>,
}

const HEAD_BYTES: usize = 33;

/// The head of a piece is never longer.
pub const PIECE_HEAD_BYTES_MAX: usize = HEAD_BYTES + 16 + FRAME_BYTES_MAX;

impl Piece {
    /// The head as it travels.
    pub fn head(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.name.id.writer.0.to_le_bytes());
        out.extend_from_slice(&self.name.id.number.to_le_bytes());
        out.extend_from_slice(&self.name.generation.to_le_bytes());
        out.push(self.half.bits());
        out.extend_from_slice(&(self.half.prefix() << 1 | u32::from(self.half.half())).to_le_bytes());
        out.extend_from_slice(&self.from.to_le_bytes());
        out.extend_from_slice(&self.to.to_le_bytes());
        sidecar::encode_frame(&self.entries, &mut out);
        out
    }

    /// Reads a head; an error says what is wrong with it.
    pub fn parse(head: &[u8]) -> Result<Piece, &'static str> {
        let (fixed, frame) = head.split_at_checked(HEAD_BYTES).ok_or("it is cut short")?;
        let small = |at: usize| u32::from_le_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        let large = |at: usize| u64::from(small(at)) | u64::from(small(at + 4)) << 32;
        let id = SegmentId { writer: WriterKey(small(0)), number: small(4) };
        let (bits, top) = (fixed[12], small(13));
        if bits > crate::limits::SLICE_BITS_MAX || top >> 1 >= 1 << bits {
            return Err("a half-slice that does not exist");
        }
        let half = HalfSlice::of(top << (31 - u32::from(bits)), bits);
        let entries = sidecar::decode_whole_frame(id, frame).ok_or("what it says of its records")?;
        let name = SegmentName { id, generation: small(8) };
        let piece = Piece { name, half, from: large(17), to: large(25), entries };
        piece.is_sound()?;
        Ok(piece)
    }

    /// How many bytes follow the head.
    pub fn length(&self) -> u64 {
        self.to - self.from
    }

    /// Whether the piece ends with the closing record.
    pub fn closes(&self) -> bool {
        self.entries.last().is_some_and(|entry| entry.note == Note::Closing)
    }

    /// Records follow each other, are those of the half-slice, and fill the piece to its end.
    fn is_sound(&self) -> Result<(), &'static str> {
        let mut at = self.from;
        let mut record = None;
        for (index, entry) in self.entries.iter().enumerate() {
            // Damage that was passed over leaves gaps, never overlaps.
            if entry.offset < at || entry.length == 0 || record.is_some_and(|last| entry.record <= last) {
                return Err("its records overlap");
            }
            if entry.note == Note::Closing && index + 1 != self.entries.len() {
                return Err("records behind a closing record");
            }
            if let Note::Capture(capture) = &entry.note
                && HalfSlice::of(capture.key.site_hash(), self.half.bits()) != self.half
            {
                return Err("a record of another slice");
            }
            (at, record) = (entry.end(), Some(entry.record));
        }
        if self.entries.is_empty() || at != self.to || self.from >= self.to {
            return Err("its records do not fill it");
        }
        Ok(())
    }
}

/// How a piece is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Taking {
    /// Behind what is there already.
    Tail,
    /// As part of a whole copy that replaces what is there, once its seal is verified.
    Whole,
}

/// What a copy came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// Bytes of the segment that are synced here now.
    pub bytes: u64,
    /// The seal arrived and holds.
    pub sealed: bool,
}

/// What is kept of copies between pieces: bounded by the segments that grow at once.
#[derive(Default)]
pub(crate) struct Copies {
    growing: HashMap<(SegmentId, Taking), Growing>,
    /// Segments of which a piece is being taken.
    busy: HashSet<SegmentId>,
    /// Where the sidecar goes on for whoever pulls a tail.
    cursors: HashMap<SegmentId, Cursor>,
    /// Whole keys of writers, as far as they are known: a segment's name has four bytes of them, which somebody else may have, too.
    writers: HashMap<WriterKey, [u8; 32]>,
    /// Removals in segments of others hide nothing.
    own_removals_only: bool,
    /// Half-slices of which something came since somebody asked.
    arrived: BTreeSet<HalfSlice>,
    /// Who says which removals bind whoever has a copy.
    pub judge: Option<std::sync::Arc<dyn Judge>>,
    /// Where the records end of segments that holders wrote.
    ends: HashMap<SegmentName, u64>,
    /// Pinned records that are blank in what was to take the place of their segment.
    needed: BTreeSet<Position>,
}

impl Copies {
    /// The file of a segment is another one: nothing goes on that was begun with it.
    pub fn forget(&mut self, id: SegmentId) {
        self.growing.retain(|(begun, _), _| *begun != id);
        self.ends.retain(|name, _| name.id != id);
        self.needed.retain(|position| SegmentId::from(*position) != id);
    }

    /// Pinned records that others would let go of, removed here or not.
    pub fn needed(&self) -> impl Iterator<Item = Position> {
        self.needed.iter().copied()
    }
}

#[derive(Clone, Copy)]
struct Cursor {
    generation: u32,
    /// The byte of the segment …
    bytes: u64,
    /// … whose record is named by the frame that begins here.
    frame: u64,
}

/// A copy as far as it got.
struct Growing {
    name: SegmentName,
    records: u32,
    bytes: u64,
    hasher: blake3::Hasher,
    /// Of a whole copy, which describes itself.
    sidecar: Option<SidecarWriter>,
}

impl Archive {
    /// A writer's whole key: what others sealed under its short name is refused from now on. The first one that is told of a name stays.
    pub fn know_writer(&self, key: [u8; 32]) {
        self.shared.copies().writers.entry(writer_of(&key)).or_insert(key);
    }

    /// From now on a removal that stands in a copy is kept as a record and hides nothing: its writer may have no right to it, and whoever
    /// knows who has removes here what is to be removed.
    pub fn obey_own_removals_only(&self) {
        self.shared.copies().own_removals_only = true;
    }

    /// Half-slices of which others' records came since this was last asked. The views have seen them after [`Archive::settle`].
    pub fn take_arrived(&self) -> BTreeSet<HalfSlice> {
        std::mem::take(&mut self.shared.copies().arrived)
    }

    /// The segments that may hold records of these sites, and how far each is synced here.
    pub fn held(&self, first_site: u32, last_site: u32) -> Result<Vec<Held>> {
        let segments: Vec<Segment> = {
            let catalog = self.shared.catalog();
            let within = |segment: &&Segment| {
                let (first, last) = segment.half.range();
                first <= last_site && first_site <= last
            };
            catalog.all().filter(within).cloned().collect()
        };
        let mut held = Vec::with_capacity(segments.len());
        for segment in segments {
            let mark = self.shared.views.mark(segment.name.id)?;
            let mark = mark.filter(|mark| mark.generation == segment.name.generation);
            let (bytes, sealed) = mark.map_or((0, false), |mark| (mark.bytes, mark.sealed));
            held.push(Held { name: segment.name, half: segment.half, bytes, sealed });
        }
        Ok(held)
    }

    /// The half-slice of a segment; `None` if it is not here.
    pub fn half_of(&self, id: SegmentId) -> Option<HalfSlice> {
        self.shared.catalog().get(id).map(|segment| segment.half)
    }

    /// What the closing record of a sealed segment says, with a signature that holds; `None` if it is not sealed here.
    pub fn closing(&self, id: SegmentId) -> Result<Option<Closing>> {
        let segment = self.shared.catalog().get(id).cloned();
        let Some(segment) = segment.filter(|segment| segment.state == State::Sealed) else { return Ok(None) };
        let entries = sealed_entries(&segment)?;
        closing_of(&segment, &entries).map(Some)
    }

    /// Records of a segment from a byte on, about as many bytes as asked for. `None` if no more is synced here yet.
    pub fn piece(&self, name: SegmentName, from: u64, bytes: u64) -> Result<Option<Piece>> {
        let segment = self.shared.catalog().get(name.id).cloned();
        let segment = segment.ok_or_else(|| Error::NotFound { what: format!("segment {}", name.id) })?;
        if segment.name != name {
            let why = format!("{name} was rewritten; what counts is {}", segment.name);
            return Err(Error::Refused { why });
        }
        let mark = self.shared.views.mark(name.id)?.filter(|mark| mark.generation == name.generation);
        let Some(mark) = mark.filter(|mark| from < mark.bytes) else { return Ok(None) };
        let cursor = self.shared.copies().cursors.get(&name.id).copied();
        let cursor = cursor.filter(|cursor| cursor.generation == name.generation && cursor.bytes <= from);
        let sidecar = sidecar_of(&segment.path);
        let begin = cursor.map_or(HEADER_BYTES, |cursor| cursor.frame);
        let missing = || Error::damaged(&sidecar, 0, "does not describe its segment", "open the archive again");
        let mut reader = SidecarReader::open_at(&sidecar, name, begin)?.ok_or_else(missing)?;
        let mut piece = Piece { name, half: segment.half, from, to: from, entries: Vec::new() };
        let mut notes = 0;
        'frames: while piece.to < mark.bytes {
            let frame = reader.valid_length();
            let Some(entries) = reader.next_frame()? else { break };
            for entry in entries.into_iter().filter(|entry| entry.offset >= from && entry.end() <= mark.bytes) {
                let full = piece.length() + entry.length > bytes
                    || notes + note_bytes(&entry) > FRAME_BYTES_MAX / 2
                    || piece.entries.len() >= COPY_ENTRIES_MAX;
                if full && !piece.entries.is_empty() {
                    self.remember(name, Cursor { generation: name.generation, bytes: piece.to, frame });
                    break 'frames;
                }
                notes += note_bytes(&entry);
                piece.to = entry.end();
                piece.entries.push(entry);
            }
            self.remember(name, Cursor { generation: name.generation, bytes: piece.to, frame });
        }
        Ok((!piece.entries.is_empty()).then_some(piece))
    }

    fn remember(&self, name: SegmentName, cursor: Cursor) {
        let mut copies = self.shared.copies();
        if copies.cursors.len() >= COPY_CURSORS_MAX {
            copies.cursors.clear();
        }
        copies.cursors.insert(name.id, cursor);
    }

    /// The file of a piece, for reading its bytes. Whoever has it open reads on, also when the segment is rewritten meanwhile.
    pub fn piece_file(&self, piece: &Piece) -> Result<File> {
        let path = self.shared.catalog().get(piece.name.id).map(|segment| segment.path.clone());
        let path = path.ok_or_else(|| Error::NotFound { what: format!("segment {}", piece.name.id) })?;
        File::open(&path).map_err(|error| Error::io("cannot open", &path, error))
    }

    /// How much of a copy is here, and so where its next piece begins.
    pub fn copied(&self, name: SegmentName, taking: Taking) -> Result<u64> {
        if let Some(growing) = self.shared.copies().growing.get(&(name.id, taking)).filter(|it| it.name == name) {
            return Ok(growing.bytes);
        }
        if taking == Taking::Whole {
            return Ok(0);
        }
        self.settle()?;
        let mark = self.shared.views.mark(name.id)?.filter(|mark| mark.generation == name.generation);
        Ok(mark.map_or(0, |mark| mark.bytes))
    }

    /// Begins to take a piece of another writer's segment; its bytes are handed to [`Copying::write`].
    pub fn copy(&self, mut piece: Piece, taking: Taking) -> Result<Copying> {
        let refuse = |why: String| Err(Error::Refused { why });
        let shared = &self.shared;
        let id = piece.name.id;
        if shared.read_only {
            return Err(Error::NotWritable { why: "the archive was opened for reading only" });
        }
        if id.writer == WriterKey::FOREIGN || taking == Taking::Tail && id.writer == shared.identity.writer() {
            return refuse(format!("segment {id} is not another writer's"));
        }
        if let Err(what) = piece.is_sound() {
            return refuse(format!("a piece of segment {id}: {what}"));
        }
        shared.take_room(piece.length())?;
        let busy = Busy::take(shared, id)?;
        let known = shared.catalog().get(id).cloned();
        if let Some(known) = &known {
            let stale = piece.name.generation < known.name.generation;
            let whole = taking == Taking::Tail && known.state == State::Sealed;
            let written = known.state == State::Open && id.writer == shared.identity.writer();
            let other = known.half != piece.half || taking == Taking::Tail && known.name != piece.name;
            if stale || whole || written || other {
                return refuse(format!("{} of half-slice {} is here and stays", known.name, known.half));
            }
        }
        if taking == Taking::Tail && piece.name.generation > 0 {
            return refuse(format!("{} was rewritten: it is copied whole", piece.name));
        }
        if taking == Taking::Whole && self.waits_for_pins(&piece)? {
            return refuse(needed(piece.name));
        }
        if id.writer != shared.identity.writer() && shared.copies().own_removals_only {
            let removals = piece.entries.iter_mut().filter(|entry| matches!(entry.note, Note::Removal(_)));
            removals.for_each(|entry| entry.note = Note::Plain);
        }
        let path = known
            .filter(|known| known.name == piece.name)
            .map_or_else(|| shared.layout.segment(piece.half, piece.name), |known| known.path);
        settings::create_folder(&shared.layout.half_slice(piece.half))?;
        let file = if taking == Taking::Whole { part_of(&path) } else { path.clone() };
        if piece.name.generation == 0 && piece.entries.iter().any(|entry| entry.note == Note::Blank) {
            let what = "a record without its block, in a segment that was never rewritten";
            return Err(Error::damaged(&path, piece.from, what, "it is copied again from another holder"));
        }
        let growing = shared.copies().growing.remove(&(id, taking));
        let growing = match growing.filter(|growing| growing.name == piece.name && piece.from > 0) {
            Some(growing) => growing,
            None => Growing::resume(self, &piece, taking, &path)?,
        };
        if growing.bytes != piece.from || piece.entries.first().is_none_or(|entry| entry.record < growing.records) {
            let bytes = growing.bytes;
            shared.copies().growing.insert((id, taking), growing);
            return refuse(format!("the copy of {} goes on at byte {bytes}, not {}", piece.name, piece.from));
        }
        let io = |error| Error::io("cannot write", &file, error);
        let opened = File::options().read(true).write(true).create(true).truncate(false).open(&file).map_err(io)?;
        // Bytes of a piece that did not arrive whole.
        if opened.metadata().map_err(io)?.len() != piece.from {
            opened.set_len(piece.from).map_err(io)?;
        }
        let at = piece.from;
        Ok(Copying {
            shared: shared.clone(),
            piece,
            taking,
            path,
            file: opened,
            writes: file,
            at,
            growing,
            _busy: busy,
        })
    }

    /// Whether records are blank in a piece whose blocks are here and needed: before all of it has come, as far as its bringer says so.
    fn waits_for_pins(&self, piece: &Piece) -> Result<bool> {
        let blank = piece.entries.iter().filter(|entry| entry.note == Note::Blank);
        let blank: Vec<Position> = blank.map(|entry| position(piece.name, entry)).collect();
        let pinned = self.views().pinned(&blank)?;
        if pinned.is_empty() {
            return Ok(false);
        }
        Ok(self.removed_and_pinned()?.iter().any(|removed| pinned.contains(removed)))
    }

    /// What is wrong with the seal of a segment; nothing if it is sealed and whole.
    pub fn verify(&self, id: SegmentId) -> Result<Vec<Finding>> {
        let segment = self.shared.catalog().get(id).cloned();
        let segment = segment.ok_or_else(|| Error::NotFound { what: format!("segment {id}") })?;
        match segment.state {
            State::Sealed => check::seal(&segment),
            _ => Ok(vec![Finding::wrong(&segment.path, None, "seal", "is not sealed")]),
        }
    }

    /// Bytes of a segment, for an answer to a challenge; `None` if they are not here. The closing record of what holders wrote differs by who
    /// signed it: nothing stands there in the answer of any of them.
    pub fn stretch(&self, name: SegmentName, from: u64, bytes: u64) -> Result<Option<Vec<u8>>> {
        if bytes > STRETCH_BYTES_MAX {
            return Err(Error::Refused {
                why: format!("{bytes} bytes of {name} at once; at most {STRETCH_BYTES_MAX}"),
            });
        }
        let segment = self.shared.catalog().get(name.id).cloned().filter(|segment| segment.name == name);
        let mark = self.shared.views.mark(name.id)?.filter(|mark| mark.generation == name.generation);
        let here = mark.is_some_and(|mark| from.checked_add(bytes).is_some_and(|end| end <= mark.bytes));
        let Some(segment) = segment.filter(|_| here) else { return Ok(None) };
        let mut buffer = vec![0; bytes as usize];
        match File::open(&segment.path).and_then(|file| file.read_exact_at(&mut buffer, from)) {
            Ok(()) => {
                let same = self.end_of_records(&segment)?.saturating_sub(from).min(bytes);
                buffer[same as usize..].fill(0);
                Ok(Some(buffer))
            }
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(Error::io("cannot read", &segment.path, error)),
        }
    }

    /// Where the part of a segment ends that is the same at all who have this generation of it.
    fn end_of_records(&self, segment: &Segment) -> Result<u64> {
        if segment.name.generation < INSTEAD_STEP {
            return Ok(u64::MAX);
        }
        if let Some(end) = self.shared.copies().ends.get(&segment.name) {
            return Ok(*end);
        }
        let closing = closing_of(segment, &sealed_entries(segment)?)?;
        let end = if closing.instead.is_some() { closing.bytes } else { u64::MAX };
        let mut copies = self.shared.copies();
        if copies.ends.len() >= COPY_CURSORS_MAX {
            copies.ends.clear();
        }
        copies.ends.insert(segment.name, end);
        Ok(end)
    }

    /// Writes segments of ours again whose records removals of others hide. Returns what could not be done.
    pub fn follow_removals(&self) -> Result<Vec<Finding>> {
        self.settle()?;
        let ours = self.writer();
        let pending =
            self.views().hidden_with_block()?.into_iter().filter(|position| position.writer == ours).collect();
        Ok(self.shared.keeper().blank(pending))
    }
}

fn position(name: SegmentName, entry: &Entry) -> Position {
    Position { writer: name.id.writer, segment: name.id.number, record: entry.record }
}

fn needed(name: SegmentName) -> String {
    format!("revisits elsewhere stand for a body in {name}, and have none of their own yet")
}

/// About what an entry takes in a frame.
fn note_bytes(entry: &Entry) -> usize {
    64 + match &entry.note {
        Note::Capture(capture) => capture.url.len() + capture.key.surt().len() + capture.mime.len(),
        Note::Checks(block) | Note::Heard(block) | Note::Removal(block) => block.len(),
        Note::Plain | Note::Blank | Note::Closing => 0,
    }
}

impl Growing {
    /// The state of a copy of which nothing is remembered: from the beginning, or from what an earlier process left.
    fn resume(archive: &Archive, piece: &Piece, taking: Taking, path: &std::path::Path) -> Result<Growing> {
        let mut growing =
            Growing { name: piece.name, records: 0, bytes: 0, hasher: blake3::Hasher::new(), sidecar: None };
        if taking == Taking::Whole {
            growing.sidecar = Some(SidecarWriter::create(&part_of(&sidecar_of(path)), piece.name)?);
            return Ok(growing);
        }
        archive.settle()?;
        let mark = archive.shared.views.mark(piece.name.id)?.filter(|mark| mark.generation == piece.name.generation);
        let Some(mark) = mark.filter(|mark| mark.bytes > 0) else { return Ok(growing) };
        (growing.records, growing.bytes) = (mark.records, mark.bytes);
        let io = |error| Error::io("cannot read", path, error);
        let mut rest = File::open(path).map_err(io)?.take(mark.bytes);
        growing.hasher.update_reader(&mut rest).map_err(io)?;
        Ok(growing)
    }
}

/// A piece that is being taken. Dropped before [`Copying::finish`], nothing of it counts.
pub struct Copying {
    shared: std::sync::Arc<Shared>,
    piece: Piece,
    taking: Taking,
    /// Where the segment stands, or will.
    path: PathBuf,
    file: File,
    /// The file that is written to.
    writes: PathBuf,
    at: u64,
    growing: Growing,
    _busy: Busy,
}

/// A segment takes one piece at a time, whoever brings it.
pub(crate) struct Busy {
    shared: std::sync::Arc<Shared>,
    id: SegmentId,
}

impl Busy {
    pub fn take(shared: &std::sync::Arc<Shared>, id: SegmentId) -> Result<Busy> {
        match shared.copies().busy.insert(id) {
            true => Ok(Busy { shared: shared.clone(), id }),
            false => Err(Error::Refused { why: format!("a piece of segment {id} is being copied already") }),
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.shared.copies().busy.remove(&self.id);
    }
}

impl Copying {
    /// Takes the next bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() as u64 > self.piece.to - self.at {
            return Err(Error::Refused { why: format!("more bytes than the piece of {} has", self.piece.name) });
        }
        self.file.write_all_at(bytes, self.at).map_err(|error| Error::io("cannot write", &self.writes, error))?;
        // The seal is over everything before the closing record.
        let hashed = match self.piece.entries.last() {
            Some(last) if last.note == Note::Closing => last.offset.saturating_sub(self.at).min(bytes.len() as u64),
            _ => bytes.len() as u64,
        };
        self.growing.hasher.update(&bytes[..hashed as usize]);
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Syncs the piece, verifies the seal if it came, and hands the records to the views. A copy whose seal does not hold is
    /// dropped from its beginning, because nobody knows which of its bytes are wrong: `Error::Damaged`.
    pub fn finish(mut self) -> Result<Copied> {
        if self.at != self.piece.to {
            let why = format!("the piece of {} ends at byte {}, not {}", self.piece.name, self.at, self.piece.to);
            return Err(Error::Refused { why });
        }
        self.file.sync_data().map_err(|error| Error::io("cannot sync", &self.writes, error))?;
        let sealed = self.piece.closes();
        if sealed && let Err(error) = self.verify() {
            self.drop_copy()?;
            return Err(error);
        }
        self.growing.bytes = self.piece.to;
        self.growing.records = self.piece.entries.last().map_or(0, |entry| entry.record + 1);
        let copied = Copied { bytes: self.piece.to, sealed };
        let (shared, half) = (self.shared.clone(), self.piece.half);
        match self.taking {
            Taking::Tail => self.count(sealed)?,
            Taking::Whole => self.gather(sealed)?,
        }
        // Only now: whoever asks and then waits for the views finds it there.
        shared.copies().arrived.insert(half);
        Ok(copied)
    }

    fn verify(&self) -> Result<()> {
        let last = self.piece.entries.last().map_or(0, |entry| entry.offset);
        let state = State::Sealed;
        let stands = Segment { name: self.piece.name, half: self.piece.half, path: self.writes.clone(), state };
        let (closing, key) = closing_and_key(&stands, &self.piece.entries)?;
        let wrong =
            |what: &str| Err(Error::damaged(&self.writes, last, what, "it is copied again from another holder"));
        if closing.segment != self.piece.name || closing.half != self.piece.half || closing.bytes != last {
            return wrong("the closing record is that of another segment");
        }
        if closing.blake3 != *self.growing.hasher.finalize().as_bytes() {
            return wrong("the bytes are not those that were sealed: their BLAKE3 differs");
        }
        if let Some(instead) = &closing.instead {
            return instead::judge(&self.shared, &stands, &closing, instead, key);
        }
        let writer = self.piece.name.id.writer;
        if self.shared.key_of(writer).is_some_and(|known| known != key) {
            return wrong("the closing record is signed by another key than the writer's");
        }
        let Some((known, before, known_key)) = self.sealed_before() else { return Ok(()) };
        match before.instead {
            None if known_key != key => wrong("the closing record is signed by another key than the one before"),
            _ if !continues(&before, &closing) => wrong("it does not replace what is sealed here"),
            Some(_) if !instead::stays_blank(&known, &stands, closing.bytes)? => {
                wrong("it brings back what was removed from all copies")
            }
            _ => Ok(()),
        }
    }

    /// The generation that this copy would take the place of, its seal, and who signed it. What is damaged says nothing.
    fn sealed_before(&self) -> Option<(Segment, Closing, [u8; 32])> {
        let known = self.shared.catalog().get(self.piece.name.id).cloned();
        let known = known.filter(|known| known.state == State::Sealed)?;
        let (closing, key) = closing_and_key(&known, &sealed_entries(&known).ok()?).ok()?;
        Some((known, closing, key))
    }

    /// A tail counts at once.
    fn count(self, sealed: bool) -> Result<()> {
        if self.piece.from == 0 {
            settings::sync_folder_of(&self.path)?;
        }
        let Piece { name, half, entries, .. } = self.piece;
        let state = if sealed { State::Sealed } else { State::Unclosed };
        self.shared.set_segment(Segment { name, half, path: self.path.clone(), state });
        let commit = SegmentCommit { name, path: self.path, entries, sealed, sidecar_bytes: None };
        self.shared.following.put(vec![commit], |_| ())?;
        if !sealed {
            self.shared.copies().growing.insert((name.id, Taking::Tail), self.growing);
        }
        Ok(())
    }

    /// A whole copy counts when its seal holds: it takes the place of what was there.
    fn gather(mut self, sealed: bool) -> Result<()> {
        let Piece { name, half, .. } = self.piece;
        let Some(sidecar) = &mut self.growing.sidecar else { return Ok(()) };
        sidecar.append(&self.piece.entries)?;
        if !sealed {
            self.shared.copies().growing.insert((name.id, Taking::Whole), self.growing);
            return Ok(());
        }
        sidecar.sync()?;
        let sidecar_bytes = Some(sidecar.length());
        let old = self.shared.catalog().get(name.id).map(|segment| segment.path.clone());
        let _one_at_a_time = self.shared.rewriting.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.following.settle()?;
        let lacking = self.lacks_of_what_is_pinned()?;
        if !lacking.is_empty() {
            self.drop_copy()?;
            let mut copies = self.shared.copies();
            let room = NEEDED_MAX.saturating_sub(copies.needed.len());
            copies.needed.extend(lacking.into_iter().take(room));
            return Err(Error::Refused { why: needed(name) });
        }
        for (part, place) in
            [(part_of(&sidecar_of(&self.path)), sidecar_of(&self.path)), (self.writes, self.path.clone())]
        {
            std::fs::rename(&part, &place).map_err(|error| Error::io("cannot rename", &part, error))?;
        }
        settings::sync_folder_of(&self.path)?;
        let segment = Segment { name, half, path: self.path.clone(), state: State::Sealed };
        let entries = sealed_entries(&segment)?;
        self.shared.set_segment(segment);
        let commit = SegmentCommit { name, path: self.path.clone(), entries, sealed, sidecar_bytes };
        self.shared.following.put(vec![commit], |_| ())?;
        self.shared.following.settle()?;
        self.shared.copies().forget(name.id);
        if let Some(old) = old.filter(|old| *old != self.path) {
            delete_generation(&old)?;
        }
        Ok(())
    }

    /// Bodies that are here, are pinned as far as this archive knows, and are not in the copy: that they may go is for nobody else to say.
    fn lacks_of_what_is_pinned(&self) -> Result<Vec<Position>> {
        let name = self.piece.name;
        let pins = self.shared.views.pins_in(name.id)?;
        let mut lacking = Vec::new();
        if pins.is_empty() {
            return Ok(lacking);
        }
        let mut entries = HashMap::new();
        let mut sidecar = SidecarReader::open(&part_of(&sidecar_of(&self.path)), name)?;
        while let Some(frame) = sidecar.as_mut().map(SidecarReader::next_frame).transpose()?.flatten() {
            let pinned = frame.into_iter().filter(|entry| pins.contains_key(&position(name, entry)));
            entries.extend(pinned.map(|entry| (entry.record, (entry.offset, entry.length))));
        }
        for (pinned, pins) in pins {
            // What is not here, or is not what was pinned, does not go with the old file.
            let here = self.shared.place(pinned).and_then(|place| Sum::at(&place)).ok();
            let Some(here) = here.filter(|here| pins.iter().any(|pin| here.is_of(pin))) else { continue };
            let there = entries.get(&pinned.record).map(|(offset, length)| {
                Sum::at(&Place { path: self.writes.clone(), offset: *offset, length: *length, nth: 0 })
            });
            if !matches!(there, Some(Ok(there)) if there == here) {
                lacking.push(pinned);
            }
        }
        Ok(lacking)
    }

    /// Nothing of this copy counts any more. What the views know of it is what will be copied again.
    fn drop_copy(&self) -> Result<()> {
        let io = |error| Error::io("cannot delete", &self.writes, error);
        if self.taking == Taking::Whole {
            let sidecar = part_of(&sidecar_of(&self.path));
            std::fs::remove_file(&self.writes).map_err(io)?;
            return std::fs::remove_file(&sidecar).map_err(|error| Error::io("cannot delete", &sidecar, error));
        }
        self.shared.following.settle()?;
        self.shared.remove_segment(self.piece.name.id);
        delete_generation(&self.path)?;
        let mut batch = self.shared.views.batch();
        let generation = self.piece.name.generation;
        let nothing = Mark { generation, records: 0, bytes: 0, sidecar_bytes: HEADER_BYTES, sealed: false };
        batch.mark(self.piece.name.id, nothing);
        batch.commit()
    }
}

/// Whether a sealed generation may take the place of another: it is the same, or says that it replaces it, or comes later still.
fn continues(before: &Closing, closing: &Closing) -> bool {
    match closing.segment.generation.checked_sub(before.segment.generation) {
        Some(0) => closing.blake3 == before.blake3,
        Some(1) => closing.replaces == Some(before.blake3),
        Some(_) => closing.replaces.is_some(),
        None => false,
    }
}

impl Shared {
    /// The whole key of a writer, if it is known.
    pub(crate) fn key_of(&self, writer: WriterKey) -> Option<[u8; 32]> {
        let own = (writer == self.identity.writer()).then(|| self.identity.public());
        own.or_else(|| self.copies().writers.get(&writer).copied())
    }

    pub(crate) fn copies(&self) -> std::sync::MutexGuard<'_, Copies> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_segment(&self, segment: Segment) {
        self.catalog.write().unwrap_or_else(PoisonError::into_inner).set(segment);
    }

    fn remove_segment(&self, id: SegmentId) {
        self.catalog.write().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

/// Any bytes are the head of a piece or an error; a head reads back as it was.
pub fn fuzz_piece(bytes: &[u8]) {
    if let Ok(piece) = Piece::parse(bytes) {
        assert_eq!(Piece::parse(&piece.head()).as_ref(), Ok(&piece));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Append, Encoded, OpenOptions};
    use skep_warc::write::{Compression, Encoder, Record, RecordId};

    fn open(folder: &std::path::Path, secret: u8) -> Archive {
        let options = OpenOptions { secret: Some([secret; 32]), copies: true, ..OpenOptions::create() };
        Archive::open(folder, OpenOptions { disk_reserve_bytes: 0, ..options }).unwrap()
    }

    fn pull(from: &Archive, to: &Archive, name: SegmentName) -> Result<Copied> {
        let piece = from.piece(name, 0, u64::MAX)?.expect("something is there");
        let mut bytes = vec![0; piece.length() as usize];
        from.piece_file(&piece)?.read_exact_at(&mut bytes, piece.from).unwrap();
        let mut copying = to.copy(piece, Taking::Tail)?;
        copying.write(&bytes)?;
        copying.finish()
    }

    #[test]
    fn what_another_key_sealed_under_a_writers_name_is_refused() {
        let [one, two] = [1, 2].map(|_| tempfile::tempdir().unwrap());
        let (writer, copy) = (open(one.path(), 1), open(two.path(), 2));
        let mut bytes = Vec::new();
        Record::response(
            &RecordId::uuid([1; 16]),
            "2026-01-01T00:00:00Z",
            "http://a.example/",
            b"HTTP/1.1 200 OK\r\n\r\n",
        )
        .encode(&mut Encoder::new(Compression::GZIP), &mut bytes)
        .unwrap();
        let records = vec![Encoded::describing(bytes).unwrap()];
        writer.append(Append { site_hash: 1, records }).unwrap().wait().unwrap();
        writer.seal().unwrap();
        writer.settle().unwrap();
        let name = writer.segments()[0].name;
        // As if somebody had found a key with the same short name.
        copy.shared.copies().writers.insert(writer.writer(), [9; 32]);
        let error = pull(&writer, &copy, name).unwrap_err();
        assert!(matches!(&error, Error::Damaged { what, .. } if what.contains("another key")), "{error}");
        copy.shared.copies().writers.clear();
        copy.know_writer(writer.shared.identity.public());
        copy.know_writer([9; 32]);
        assert!(pull(&writer, &copy, name).unwrap().sealed);
    }

    #[test]
    fn a_generation_follows_the_one_that_it_names() {
        let name = |generation| SegmentName { id: SegmentId { writer: WriterKey(1), number: 1 }, generation };
        let closing = |generation, blake3: u8, replaces: Option<u8>| Closing {
            segment: name(generation),
            half: HalfSlice::of(0, 0),
            records: 1,
            bytes: 1,
            blake3: [blake3; 32],
            replaces: replaces.map(|byte| [byte; 32]),
            removals: Vec::new(),
            instead: None,
        };
        let first = closing(0, 1, None);
        assert!(continues(&first, &closing(0, 1, None)) && !continues(&first, &closing(0, 2, None)));
        assert!(continues(&first, &closing(1, 2, Some(1))) && !continues(&first, &closing(1, 2, Some(3))));
        assert!(!continues(&first, &closing(2, 2, None)) && continues(&first, &closing(2, 2, Some(7))));
        assert!(!continues(&closing(1, 2, Some(1)), &first));
    }
}
