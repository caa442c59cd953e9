//! The sidecar of a segment: what each record is and where it stands, so that nobody needs to read the bodies.
//!
//! ```text
//!  file    | "skep-idx" 8 | version 2 | 0 2 | writer 4 | number 4 | generation 4 | check 8 | frame | frame | …
//!  frame   | length 4 | entries 4 | entry … (length bytes) | check 8 |           one per commit, or more
//!  entry   | record v | offset v | length v | note 1 | fields of the note |
//!  note 0  plain      nothing more is known, or nothing more matters
//!  note 1  capture    | site hash 4 BE | SURT s | URL s | time ms z | kind 1 | status v | mime s |
//!                     | digest algorithm 1, 0 none | digest … | flags 1 |
//!  note 2  checks     | block s |        a Skep metadata record whose block later packages read
//!  note 3  heard      | block s |
//!  note 4  removal    | block s |        positions that are hidden from now on
//!  note 5  blank      removed: headers without a block
//!  note 6  closing    the last record of a sealed segment
//! ```
//! Numbers are little-endian unless said otherwise; `v` is an unsigned LEB128 number, `z` the same zigzag-coded, `s` a
//! length `v` and as many bytes. A check is the XXH3-64 of everything in the header or frame before it. A frame is
//! written only after the records it names are synced, so a frame that verifies vouches for them. A tail that does not
//! verify is dropped and written again from the segment.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::capture::{Capture, CaptureKind, Digest, Position};
use crate::error::{Error, Result};
use crate::layout::{HalfSlice, SegmentId, SegmentName};
use crate::limits::FRAME_BYTES_MAX;
use crate::{Key, WriterKey};

const MAGIC: &[u8; 8] = b"skep-idx";
const VERSION: u16 = 1;
/// Length of the header of every sidecar.
pub const HEADER_BYTES: u64 = 32;
/// Length and count at the beginning of every frame.
const FRAME_HEAD_BYTES: usize = 8;
/// Its end.
const FRAME_CHECK_BYTES: usize = 8;
/// What to type when a sidecar is damaged.
pub(crate) const REBUILD: &str = "`skep rebuild --reparse` writes the sidecars again";

/// What is known of a record without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// Nothing more is known, or nothing more matters.
    Plain,
    /// A record about a URL. Not all are listed by the captures view: requests are not.
    Capture(Box<Capture>),
    /// Results of checks that brought nothing; the block as it stands in the record.
    Checks(Vec<u8>),
    /// URLs heard of; the block as it stands in the record.
    Heard(Vec<u8>),
    /// A removal; the block as it stands in the record.
    Removal(Vec<u8>),
    /// A removed record: its headers without a block.
    Blank,
    /// The closing record of a sealed segment.
    Closing,
}

impl Note {
    /// The same of a record that stands in this half-slice; `None` for a file that was added from elsewhere.
    pub fn filed_in(mut self, half: Option<HalfSlice>) -> Note {
        if let (Note::Capture(capture), Some(half)) = (&mut self, half) {
            capture.key = half.file(capture.key.clone());
        }
        self
    }
}

/// One record of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its ordinal in the segment.
    pub record: u32,
    /// Where it begins.
    pub offset: u64,
    /// How many bytes it has, as compressed there.
    pub length: u64,
    /// What it is.
    pub note: Note,
}

impl Entry {
    /// An entry whose capture, if it is one, names this place.
    pub fn place(id: SegmentId, record: u32, offset: u64, length: u64, mut note: Note) -> Entry {
        if let Note::Capture(capture) = &mut note {
            capture.position = Position { writer: id.writer, segment: id.number, record };
            capture.offset = offset;
            capture.length = length;
        }
        Entry { record, offset, length, note }
    }

    /// The byte after the record.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

/// The header that every sidecar of this segment file begins with.
pub fn header(name: SegmentName) -> [u8; HEADER_BYTES as usize] {
    let mut header = [0; HEADER_BYTES as usize];
    header[..8].copy_from_slice(MAGIC);
    header[8..10].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&name.id.writer.0.to_le_bytes());
    header[16..20].copy_from_slice(&name.id.number.to_le_bytes());
    header[20..24].copy_from_slice(&name.generation.to_le_bytes());
    let check = xxh3_64(&header[..24]);
    header[24..].copy_from_slice(&check.to_le_bytes());
    header
}

/// Appends one frame that holds `entries` to `out`.
pub fn encode_frame(entries: &[Entry], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    for entry in entries {
        encode_entry(entry, out);
    }
    let length = (out.len() - start - 8) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&(entries.len() as u32).to_le_bytes());
    let check = xxh3_64(&out[start..]);
    out.extend_from_slice(&check.to_le_bytes());
}

fn encode_entry(entry: &Entry, out: &mut Vec<u8>) {
    put_number(entry.record.into(), out);
    put_number(entry.offset, out);
    put_number(entry.length, out);
    match &entry.note {
        Note::Plain => out.push(0),
        Note::Capture(capture) => {
            out.push(1);
            out.extend_from_slice(&capture.key.site_hash().to_be_bytes());
            put_bytes(capture.key.surt().as_bytes(), out);
            put_bytes(capture.url.as_bytes(), out);
            put_number((capture.time_ms << 1 ^ capture.time_ms >> 63) as u64, out);
            out.push(capture.kind.number());
            put_number(capture.status.into(), out);
            put_bytes(capture.mime.as_bytes(), out);
            match &capture.digest {
                None => out.push(0),
                Some(digest) => {
                    out.push(digest.algorithm());
                    out.extend_from_slice(digest.bytes());
                }
            }
            out.push(capture.flags);
        }
        Note::Checks(block) => put_block(2, block, out),
        Note::Heard(block) => put_block(3, block, out),
        Note::Removal(block) => put_block(4, block, out),
        Note::Blank => out.push(5),
        Note::Closing => out.push(6),
    }
}

fn put_block(note: u8, block: &[u8], out: &mut Vec<u8>) {
    out.push(note);
    put_bytes(block, out);
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_number(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads the fields of entries back; every method is `None` when the bytes end too early or mean nothing.
struct Fields<'b> {
    rest: &'b [u8],
}

impl<'b> Fields<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part {
                return None;
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    fn text(&mut self) -> Option<&'b str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// Which record, where it begins, how long it is: what every entry begins with.
    fn place(&mut self) -> Option<(u32, u64, u64)> {
        Some((u32::try_from(self.number()?).ok()?, self.number()?, self.number()?))
    }

    fn entry(&mut self, id: SegmentId) -> Option<Entry> {
        let (record, offset, length) = self.place()?;
        let note = match self.byte()? {
            0 => Note::Plain,
            1 => Note::Capture(Box::new(self.capture()?)),
            2 => Note::Checks(self.bytes()?.to_vec()),
            3 => Note::Heard(self.bytes()?.to_vec()),
            4 => Note::Removal(self.bytes()?.to_vec()),
            5 => Note::Blank,
            6 => Note::Closing,
            _ => return None,
        };
        Some(Entry::place(id, record, offset, length, note))
    }

    /// Goes past a note without reading it.
    fn skip_note(&mut self) -> Option<()> {
        match self.byte()? {
            0 | 5 | 6 => {}
            1 => {
                self.take(4)?;
                let _passed =
                    (self.bytes()?, self.bytes()?, self.number()?, self.byte()?, self.number()?, self.bytes()?);
                match self.byte()? {
                    0 => {}
                    algorithm => drop(self.take(Digest::width(algorithm)?)?),
                }
                self.byte()?;
            }
            2..=4 => drop(self.bytes()?),
            _ => return None,
        }
        Some(())
    }

    fn capture(&mut self) -> Option<Capture> {
        let site_hash = u32::from_be_bytes(self.take(4)?.try_into().ok()?);
        let key = Key::from_parts(site_hash, self.text()?);
        let url = self.text()?.to_string();
        let time = self.number()?;
        let kind = CaptureKind::from_number(self.byte()?)?;
        let status = u16::try_from(self.number()?).ok()?;
        let mime = self.text()?.to_string();
        let digest = match self.byte()? {
            0 => None,
            algorithm => Some(Digest::from_parts(algorithm, self.take(Digest::width(algorithm)?)?)?),
        };
        Some(Capture {
            key,
            url,
            time_ms: (time >> 1) as i64 ^ -((time & 1) as i64),
            position: Position { writer: WriterKey(0), segment: 0, record: 0 },
            kind,
            status,
            mime,
            digest,
            offset: 0,
            length: 0,
            flags: self.byte()?,
        })
    }
}

/// What a frame holds, without its head and check.
fn body_of(frame: &[u8]) -> &[u8] {
    &frame[FRAME_HEAD_BYTES..frame.len() - FRAME_CHECK_BYTES]
}

/// Reads the entries of a frame's payload.
fn decode_frame(id: SegmentId, count: u32, payload: &[u8]) -> Option<Vec<Entry>> {
    let mut fields = Fields { rest: payload };
    let mut entries = Vec::with_capacity(count.min(65_536) as usize);
    for _ in 0..count {
        entries.push(fields.entry(id)?);
    }
    fields.rest.is_empty().then_some(entries)
}

/// Reads the entries of one frame that stands alone, if it verifies.
pub fn decode_whole_frame(id: SegmentId, frame: &[u8]) -> Option<Vec<Entry>> {
    let (checked, check) = frame.split_last_chunk::<FRAME_CHECK_BYTES>()?;
    let (head, payload) = checked.split_first_chunk::<FRAME_HEAD_BYTES>()?;
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let right = number(0) as usize == payload.len() && xxh3_64(checked).to_le_bytes() == *check;
    right.then(|| decode_frame(id, number(4), payload)).flatten()
}

/// Where a record stands, and where the sidecar says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Its ordinal in the segment.
    pub record: u32,
    /// Where it begins.
    pub offset: u64,
    /// How many bytes it has.
    pub length: u64,
    /// The byte of the sidecar at which its entry begins.
    pub at: u64,
    /// Entries of the same frame from there on, this one included.
    pub left: u32,
}

/// Reads where records stand from a stretch of a sidecar that begins at `at` with an entry, of whose frame so many are `left`, and
/// that verified when it was read whole. `false` if this is not what stands there any more.
pub fn each_placed(stretch: &[u8], at: u64, mut left: u32, mut look: impl FnMut(&Placed) -> ControlFlow<()>) -> bool {
    let mut fields = Fields { rest: stretch };
    while !fields.rest.is_empty() {
        if left == 0 {
            // The check of this frame; length and count of the next.
            let Some(frame) = fields.take(FRAME_CHECK_BYTES + FRAME_HEAD_BYTES) else { return false };
            left = u32::from_le_bytes([frame[12], frame[13], frame[14], frame[15]]);
            continue;
        }
        let at = at + (stretch.len() - fields.rest.len()) as u64;
        let Some((record, offset, length)) = fields.place() else { return false };
        if look(&Placed { record, offset, length, at, left }).is_break() {
            return true;
        }
        left -= 1;
        if fields.skip_note().is_none() {
            return false;
        }
    }
    true
}

/// Reads a sidecar frame by frame, up to the first that does not verify.
#[derive(Debug)]
pub struct SidecarReader {
    path: PathBuf,
    input: BufReader<File>,
    name: SegmentName,
    valid: u64,
    torn: Option<String>,
}

impl SidecarReader {
    /// Opens the sidecar at `path` of the segment file `name`. `None` if there is none, or none that belongs to it.
    pub fn open(path: &Path, name: SegmentName) -> Result<Option<SidecarReader>> {
        SidecarReader::open_at(path, name, HEADER_BYTES)
    }

    /// The same, beginning at a frame boundary that an earlier reader reached.
    pub fn open_at(path: &Path, name: SegmentName, from: u64) -> Result<Option<SidecarReader>> {
        use std::io::{Seek, SeekFrom};
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("cannot open", path, error)),
        };
        let mut input = BufReader::with_capacity(1 << 16, file);
        let mut found = [0; HEADER_BYTES as usize];
        match input.read_exact(&mut found) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(Error::io("cannot read", path, error)),
        }
        if &found[..8] == MAGIC && xxh3_64(&found[..24]).to_le_bytes() == found[24..] {
            let version = u16::from_le_bytes([found[8], found[9]]);
            if version > VERSION {
                let (found, known) = (version.into(), VERSION.into());
                return Err(Error::Newer { path: path.to_path_buf(), found, known });
            }
        }
        if found != header(name) {
            return Ok(None);
        }
        if from != HEADER_BYTES {
            input.seek(SeekFrom::Start(from)).map_err(|error| Error::io("cannot read", path, error))?;
        }
        Ok(Some(SidecarReader { path: path.to_path_buf(), input, name, valid: from, torn: None }))
    }

    /// The entries of the next frame; `None` at the end, or where the sidecar stops to verify.
    pub fn next_frame(&mut self) -> Result<Option<Vec<Entry>>> {
        let Some((count, frame)) = self.next_whole()? else { return Ok(None) };
        let Some(entries) = decode_frame(self.name.id, count, body_of(&frame)) else {
            return self.tear("a frame holds something that is no entry");
        };
        self.valid += frame.len() as u64;
        Ok(Some(entries))
    }

    /// Shows where the records of the next frame stand; `false` at the end, or where the sidecar stops to verify.
    pub fn next_placed(&mut self, mut look: impl FnMut(&Placed)) -> Result<bool> {
        let Some((count, frame)) = self.next_whole()? else { return Ok(false) };
        let mut shown = 0;
        let whole = each_placed(body_of(&frame), self.valid + FRAME_HEAD_BYTES as u64, count, |placed| {
            shown += 1;
            look(placed);
            ControlFlow::Continue(())
        });
        if !whole || shown != count {
            return self.tear("a frame holds something that is no entry").map(|_: Option<()>| false);
        }
        self.valid += frame.len() as u64;
        Ok(true)
    }

    /// The next frame that verifies, and how many entries it says it has.
    fn next_whole(&mut self) -> Result<Option<(u32, Vec<u8>)>> {
        if self.torn.is_some() {
            return Ok(None);
        }
        let mut frame = vec![0; FRAME_HEAD_BYTES];
        match self.fill(&mut frame)? {
            0 => return Ok(None),
            FRAME_HEAD_BYTES => {}
            _ => return self.tear("the last frame is cut short"),
        }
        let number = |at: usize| u32::from_le_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
        let (length, count) = (number(0) as usize, number(4));
        if length > FRAME_BYTES_MAX {
            return self.tear("a frame says it is longer than frames are");
        }
        frame.resize(FRAME_HEAD_BYTES + length + FRAME_CHECK_BYTES, 0);
        if self.fill(&mut frame[FRAME_HEAD_BYTES..])? < length + FRAME_CHECK_BYTES {
            return self.tear("the last frame is cut short");
        }
        let (checked, check) = frame.split_at(FRAME_HEAD_BYTES + length);
        if xxh3_64(checked).to_le_bytes() != check {
            return self.tear("a frame does not match its check");
        }
        Ok(Some((count, frame)))
    }

    /// The length up to which the sidecar verified so far; always a frame boundary.
    pub fn valid_length(&self) -> u64 {
        self.valid
    }

    /// Why reading stopped before the end of the file, if it did.
    pub fn torn(&self) -> Option<Error> {
        self.torn.as_ref().map(|what| Error::damaged(&self.path, self.valid, what, REBUILD))
    }

    fn tear<T>(&mut self, what: &str) -> Result<Option<T>> {
        self.torn = Some(what.to_string());
        Ok(None)
    }

    /// Fills as much of `buffer` as the file still has.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.input.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("cannot read", &self.path, error)),
            }
        }
        Ok(filled)
    }
}

/// Appends frames to a sidecar.
#[derive(Debug)]
pub struct SidecarWriter {
    path: PathBuf,
    file: File,
    length: u64,
    buffer: Vec<u8>,
}

impl SidecarWriter {
    /// Begins the sidecar of `name` at `path`, replacing whatever is there.
    pub fn create(path: &Path, name: SegmentName) -> Result<SidecarWriter> {
        let create = || -> std::io::Result<File> {
            let mut file = File::options().write(true).create(true).truncate(true).open(path)?;
            file.write_all(&header(name))?;
            Ok(file)
        };
        let file = create().map_err(|error| Error::io("cannot write", path, error))?;
        Ok(SidecarWriter { path: path.to_path_buf(), file, length: HEADER_BYTES, buffer: Vec::new() })
    }

    /// Goes on with a sidecar after the frame boundary `valid`; what stands behind it is dropped.
    pub fn resume(path: &Path, valid: u64) -> Result<SidecarWriter> {
        use std::io::{Seek, SeekFrom};
        let resume = || -> std::io::Result<File> {
            let mut file = File::options().write(true).open(path)?;
            file.set_len(valid)?;
            file.seek(SeekFrom::Start(valid))?;
            Ok(file)
        };
        let file = resume().map_err(|error| Error::io("cannot write", path, error))?;
        Ok(SidecarWriter { path: path.to_path_buf(), file, length: valid, buffer: Vec::new() })
    }

    /// Appends entries as one frame, or as many as their size asks for.
    pub fn append(&mut self, entries: &[Entry]) -> Result<()> {
        use std::io::{Seek, SeekFrom};
        self.buffer.clear();
        let mut from = 0;
        let mut bytes = 0;
        for (index, entry) in entries.iter().enumerate() {
            let size = weight(entry);
            if bytes > 0 && bytes + size > FRAME_BYTES_MAX / 2 {
                encode_frame(&entries[from..index], &mut self.buffer);
                (from, bytes) = (index, 0);
            }
            bytes += size;
        }
        if from < entries.len() {
            encode_frame(&entries[from..], &mut self.buffer);
        }
        if let Err(error) = self.file.write_all(&self.buffer) {
            // Half a frame would only be dropped by the next reader; without it this writer can go on.
            let _reader_copes =
                self.file.set_len(self.length).and_then(|()| self.file.seek(SeekFrom::Start(self.length)));
            return Err(Error::io("cannot write", &self.path, error));
        }
        self.length += self.buffer.len() as u64;
        Ok(())
    }

    /// The length of the file: a frame boundary.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Makes what was appended durable.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|error| Error::io("cannot sync", &self.path, error))
    }
}

/// Roughly the bytes an entry takes in a frame, never too few.
fn weight(entry: &Entry) -> usize {
    64 + match &entry.note {
        Note::Capture(capture) => 128 + capture.key.surt().len() + capture.url.len() + capture.mime.len(),
        Note::Checks(block) | Note::Heard(block) | Note::Removal(block) => block.len() + 10,
        Note::Plain | Note::Blank | Note::Closing => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> SegmentName {
        SegmentName { id: SegmentId { writer: WriterKey(0xc41f_22ab), number: 7 }, generation: 0 }
    }

    fn sample() -> Vec<Entry> {
        let capture = |time_ms, digest| {
            Note::Capture(Box::new(Capture {
                key: Key::from_parts(0x0102_0304, "com,example)/ä"),
                url: "http://example.com/ä".into(),
                time_ms,
                position: Position { writer: WriterKey(0), segment: 0, record: 0 },
                kind: CaptureKind::Response,
                status: 404,
                mime: "text/html".into(),
                digest,
                offset: 0,
                length: 0,
                flags: 3,
            }))
        };
        let notes = [
            Note::Plain,
            capture(1_700_000_000_123, Digest::from_parts(2, &[9; 20])),
            capture(-5, None),
            capture(i64::MAX, Digest::from_parts(3, &[1; 32])),
            capture(i64::MIN, None),
            Note::Checks(b"checks".to_vec()),
            Note::Heard(vec![]),
            Note::Removal(vec![0, 255]),
            Note::Blank,
            Note::Closing,
        ];
        let place = |(record, note)| Entry::place(name().id, record as u32, record as u64 * 1000, 1000, note);
        notes.into_iter().enumerate().map(place).collect()
    }

    fn read_all(path: &Path) -> (Vec<Entry>, u64, bool) {
        let mut reader = SidecarReader::open(path, name()).unwrap().expect("a sidecar");
        let mut entries = Vec::new();
        while let Some(frame) = reader.next_frame().unwrap() {
            entries.extend(frame);
        }
        (entries, reader.valid_length(), reader.torn().is_some())
    }

    #[test]
    fn every_note_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.idx");
        let entries = sample();
        let mut writer = SidecarWriter::create(&path, name()).unwrap();
        writer.append(&entries[..4]).unwrap();
        writer.append(&entries[4..]).unwrap();
        writer.append(&[]).unwrap();
        assert_eq!(read_all(&path), (entries, path.metadata().unwrap().len(), false));
    }

    #[test]
    fn cut_anywhere_it_reads_up_to_the_last_whole_frame_and_can_be_resumed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.idx");
        let entries = sample();
        let mut writer = SidecarWriter::create(&path, name()).unwrap();
        let mut ends = vec![(HEADER_BYTES, 0)];
        for (index, entry) in entries.iter().enumerate() {
            writer.append(std::slice::from_ref(entry)).unwrap();
            ends.push((writer.length, index + 1));
        }
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            if (cut as u64) < HEADER_BYTES {
                assert!(SidecarReader::open(&path, name()).unwrap().is_none());
                continue;
            }
            let &(end, count) = ends.iter().rev().find(|(end, _)| *end <= cut as u64).unwrap();
            assert_eq!(read_all(&path), (entries[..count].to_vec(), end, end != cut as u64));
            SidecarWriter::resume(&path, end).unwrap().append(&entries[count..]).unwrap();
            assert_eq!(read_all(&path).0, entries);
        }
    }

    #[test]
    fn no_flipped_bit_passes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.idx");
        SidecarWriter::create(&path, name()).unwrap().append(&sample()).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &flipped).unwrap();
            if let Ok(Some(mut reader)) = SidecarReader::open(&path, name()) {
                assert!(reader.next_frame().unwrap().is_none(), "bit {bit}");
                assert!(reader.torn().is_some(), "bit {bit}");
            }
        }
    }

    #[test]
    fn a_sidecar_of_another_segment_is_none_and_a_newer_one_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.idx");
        SidecarWriter::create(&path, name()).unwrap();
        let other = SegmentName { generation: 1, ..name() };
        assert!(SidecarReader::open(&path, other).unwrap().is_none());
        let mut newer = header(name());
        newer[8] = 2;
        let check = xxh3_64(&newer[..24]);
        newer[24..].copy_from_slice(&check.to_le_bytes());
        std::fs::write(&path, newer).unwrap();
        assert!(matches!(SidecarReader::open(&path, name()), Err(Error::Newer { found: 2, known: 1, .. })));
    }

    #[test]
    fn much_at_once_becomes_several_frames() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.idx");
        let block = vec![7; 3 << 20];
        let entries: Vec<Entry> = (0..9)
            .map(|record| Entry::place(name().id, record, u64::from(record), 1, Note::Heard(block.clone())))
            .collect();
        SidecarWriter::create(&path, name()).unwrap().append(&entries).unwrap();
        assert_eq!(read_all(&path).0, entries);
    }
}
