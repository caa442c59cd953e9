//! The `urls` log: what was heard, in the order of entry numbers.
//!
//! ```text
//!   urls     frame | first entry 8 | length 4 | 64 URLs, front-coded … | checksum 8 |
//!            URL   | how varint | shared varint | rest: length varint, bytes | crawl varint | kind 1 |
//!            how   bit 0 crawl and kind are those of the URL before and left out; bits 1–4 how far back the URL stands
//!                  with which it shares its beginning, 0 for the one before; the rest: via, as zigzag of its difference
//!   frames   offset of each frame in `urls` 8
//! ```
//! Every frame holds 64 URLs, so the frame of an entry needs no search. A URL shares its beginning with that one of the sixteen
//! before it with which it shares most: links to several hosts are mixed on a page. A via of 0 is none, others are the entry plus one;
//! before the first URL of a frame stands an empty one. The frame that is not full yet lives in memory and in the checkpoint.

use super::append::Append;
use super::codec::{Reader, get, put_bytes, put_varint, unzigzag, zigzag};
use super::error::{Error, Result};
use super::limits::{FRAME_KEPT_BYTES_MAX, FRAME_URLS, FRAMES_KEPT, URL_BYTES_MAX};
use std::ops::{ControlFlow, Range};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// What was heard with a URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub url: String,
    pub via: Option<u64>,
    pub crawl: u16,
    pub kind: u8,
}

/// What a checkpoint says of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Written {
    pub urls_bytes: u64,
    pub frames_bytes: u64,
    pub entries: u64,
    /// The frame that is not full.
    pub tail: Vec<u8>,
}

pub(super) struct Urls {
    log: Append,
    frames: Append,
    entries: u64,
    tail: Vec<u8>,
    /// What the tail says.
    last: Frame,
    /// Frames that were read lately: entries are asked for in nearly the order in which they were heard.
    kept: Vec<Option<(u64, Frame)>>,
}

/// The URLs of a frame and what is kept with each.
#[derive(Default)]
struct Frame {
    texts: Texts,
    abouts: Vec<About>,
}

impl Frame {
    /// Reads so many URLs; nothing if they are not there, or if there are more.
    fn read(bytes: &[u8], urls: u64) -> Option<Frame> {
        let (mut frame, mut reader) = (Frame::default(), Reader::new(bytes));
        for _ in 0..urls {
            next(&mut reader, &mut frame)?;
        }
        reader.is_empty().then_some(frame)
    }

    fn last(&self) -> About {
        self.abouts.last().copied().unwrap_or_default()
    }

    /// An entry as it was heard.
    fn line(&self, index: usize) -> Option<Line> {
        let about = self.abouts.get(index)?;
        let url = std::str::from_utf8(&self.texts.bytes[self.texts.at(index)]).ok()?.to_owned();
        Some(Line { url, via: about.via, crawl: about.crawl, kind: about.kind })
    }

    fn clear(&mut self) {
        self.texts.bytes.clear();
        self.texts.ends.clear();
        self.abouts.clear();
    }

    fn memory_bytes(&self) -> usize {
        self.texts.bytes.capacity()
            + self.texts.ends.capacity() * size_of::<usize>()
            + self.abouts.capacity() * size_of::<About>()
    }
}

const HEAD_BYTES: usize = 12;
/// URLs before one among which it may choose.
const BACK: usize = 16;

/// What is kept with a URL.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct About {
    via: Option<u64>,
    crawl: u16,
    kind: u8,
}

/// The URLs of a frame, one behind the other.
#[derive(Default)]
struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    /// Where the one stands that is so far back; an empty one before the first.
    fn place(&self, distance: usize) -> Range<usize> {
        let Some(index) = self.ends.len().checked_sub(distance + 1) else { return 0..0 };
        self.at(index)
    }

    fn at(&self, index: usize) -> Range<usize> {
        let begin = if index == 0 { 0 } else { self.ends[index - 1] };
        begin..self.ends[index]
    }

    fn back(&self, distance: usize) -> &[u8] {
        &self.bytes[self.place(distance)]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }

    /// How far back that one stands with which a text shares most, and how much.
    fn nearest(&self, text: &[u8]) -> (usize, usize) {
        let mut best = (0, 0);
        for distance in 0..self.ends.len().min(BACK) {
            let shared = shared(self.back(distance), text);
            if shared > best.1 {
                best = (distance, shared);
            }
        }
        best
    }
}

/// How many bytes two texts have in common at their beginning.
fn shared(a: &[u8], b: &[u8]) -> usize {
    let (whole_a, whole_b) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    let equal = whole_a.iter().zip(whole_b).take_while(|(a, b)| a == b).count() * 8;
    equal + a[equal..].iter().zip(&b[equal..]).take_while(|(a, b)| a == b).count()
}

impl Urls {
    pub fn open(folder: &Path, written: Written) -> Result<Urls> {
        let log = Append::open(folder.join("urls"), written.urls_bytes)?;
        let frames = Append::open(folder.join("frames"), written.frames_bytes)?;
        let last = Frame::read(&written.tail, written.entries % FRAME_URLS);
        let last = last.filter(|_| written.frames_bytes == written.entries / FRAME_URLS * 8);
        let last = last.ok_or_else(|| checkpoint_damaged(folder))?;
        let kept = (0..FRAMES_KEPT).map(|_| None).collect();
        Ok(Urls { log, frames, entries: written.entries, tail: written.tail, last, kept })
    }

    pub fn entries(&self) -> u64 {
        self.entries
    }

    pub fn add(&mut self, url: &str, via: Option<u64>, crawl: u16, kind: u8) -> Result<()> {
        let about = About { via, crawl, kind };
        let last = self.last.last();
        let same = About { via: last.via, ..about } == last;
        let (distance, shared) = self.last.texts.nearest(url.as_bytes());
        let step = zigzag(via_number(via) - via_number(last.via));
        put_varint(&mut self.tail, step << 5 | (distance as u64) << 1 | u64::from(same));
        put_varint(&mut self.tail, shared as u64);
        put_bytes(&mut self.tail, &url.as_bytes()[shared..]);
        if !same {
            put_varint(&mut self.tail, u64::from(crawl));
            self.tail.push(kind);
        }
        self.last.texts.push(url.as_bytes());
        self.last.abouts.push(about);
        self.entries += 1;
        if self.entries.is_multiple_of(FRAME_URLS) { self.end_frame() } else { Ok(()) }
    }

    fn end_frame(&mut self) -> Result<()> {
        let mut head = [0; HEAD_BYTES];
        head[..8].copy_from_slice(&(self.entries - FRAME_URLS).to_le_bytes());
        head[8..].copy_from_slice(&(self.tail.len() as u32).to_le_bytes());
        self.tail.splice(..0, head);
        let sum = xxh3_64(&self.tail);
        self.tail.extend_from_slice(&sum.to_le_bytes());
        let at = self.log.append(&self.tail)?;
        self.frames.append(&at.to_le_bytes())?;
        self.tail.clear();
        self.last.clear();
        Ok(())
    }

    pub fn get(&mut self, entry: u64) -> Result<Line> {
        let frame = entry / FRAME_URLS;
        let found = self.frame(frame)?.line((entry % FRAME_URLS) as usize);
        found.ok_or_else(|| self.damaged(frame))
    }

    /// Calls with each entry from the first on, in order, until told to stop.
    pub fn walk(&mut self, from: u64, mut each: impl FnMut(u64, Line) -> Result<ControlFlow<()>>) -> Result<()> {
        for entry in from..self.entries {
            let line = self.get(entry)?;
            if each(entry, line)?.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// What a frame says, from memory or from disk.
    fn frame(&mut self, frame: u64) -> Result<&Frame> {
        if frame == self.entries / FRAME_URLS {
            return Ok(&self.last);
        }
        let place = frame as usize % FRAMES_KEPT;
        if !matches!(&self.kept[place], Some((held, _)) if *held == frame) {
            let read = Frame::read(&self.read_frame(frame)?, FRAME_URLS).ok_or_else(|| self.damaged(frame))?;
            // Long URLs would make the kept frames large: such a one leaves when the next comes.
            let is_large = |(_, kept): &mut (u64, Frame)| kept.memory_bytes() > FRAME_KEPT_BYTES_MAX;
            self.kept.iter_mut().for_each(|kept| drop(kept.take_if(is_large)));
            self.kept[place] = Some((frame, read));
        }
        match &self.kept[place] {
            Some((_, kept)) => Ok(kept),
            None => Err(self.damaged(frame)),
        }
    }

    fn read_frame(&self, frame: u64) -> Result<Vec<u8>> {
        let mut offset = [0; 8];
        self.frames.read(frame * 8, &mut offset)?;
        let offset = u64::from_le_bytes(offset);
        let mut head = [0; HEAD_BYTES];
        self.log.read(offset, &mut head)?;
        let length = get(&head, 8, 4) as usize;
        let longest = FRAME_URLS as usize * (URL_BYTES_MAX + 32);
        if get(&head, 0, 8) != frame * FRAME_URLS || length > longest {
            return Err(self.damaged(frame));
        }
        let mut bytes = vec![0; HEAD_BYTES + length + 8];
        self.log.read(offset, &mut bytes)?;
        let sum_at = HEAD_BYTES + length;
        if xxh3_64(&bytes[..sum_at]) != get(&bytes, sum_at, 8) {
            return Err(self.damaged(frame));
        }
        bytes.truncate(sum_at);
        bytes.drain(..HEAD_BYTES);
        Ok(bytes)
    }

    pub fn sync(&mut self) -> Result<Written> {
        Ok(Written {
            urls_bytes: self.log.sync()?,
            frames_bytes: self.frames.sync()?,
            entries: self.entries,
            tail: self.tail.clone(),
        })
    }

    pub fn memory_bytes(&self) -> usize {
        let kept: usize = self.kept.iter().flatten().map(|(_, kept)| kept.memory_bytes()).sum();
        let last = self.tail.capacity() + self.last.memory_bytes();
        self.log.memory_bytes() + self.frames.memory_bytes() + last + kept
    }

    pub fn disk_bytes(&self) -> u64 {
        self.log.length() + self.frames.length()
    }

    fn damaged(&self, frame: u64) -> Error {
        Error::damaged(self.log.path(), format!("frame {frame} does not match its checksum"))
    }
}

fn checkpoint_damaged(folder: &Path) -> Error {
    Error::damaged(&folder.join("checkpoint"), "its last URLs cannot be read")
}

fn via_number(via: Option<u64>) -> i64 {
    via.map_or(0, |entry| entry as i64 + 1)
}

/// Reads the next URL of a frame.
fn next(reader: &mut Reader<'_>, frame: &mut Frame) -> Option<()> {
    let mut about = frame.last();
    let texts = &mut frame.texts;
    let how = reader.varint()?;
    let shared = usize::try_from(reader.varint()?).ok()?;
    let rest = reader.bytes()?;
    let before = texts.place((how >> 1) as usize % BACK);
    if shared > before.len() || shared.checked_add(rest.len())? > URL_BYTES_MAX {
        return None;
    }
    texts.bytes.extend_from_within(before.start..before.start + shared);
    texts.push(rest);
    let via = via_number(about.via).checked_add(unzigzag(how >> 5))?;
    about.via = u64::try_from(via.checked_sub(1)?).ok();
    if via < 0 {
        return None;
    }
    if how & 1 == 0 {
        about.crawl = u16::try_from(reader.varint()?).ok()?;
        about.kind = reader.u8()?;
    }
    frame.abouts.push(about);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(n: u64) -> Line {
        Line {
            url: format!("https://h{}.example/Käse/{}", n / 7, "ab".repeat(n as usize % 50)),
            via: n.checked_sub(3).filter(|_| !n.is_multiple_of(5)),
            crawl: (n % 3) as u16,
            kind: n as u8,
        }
    }

    fn add(urls: &mut Urls, n: u64) {
        let line = made(n);
        urls.add(&line.url, line.via, line.crawl, line.kind).unwrap();
    }

    #[test]
    fn lines_come_back_one_by_one_in_order_and_after_reopening() {
        let folder = tempfile::tempdir().unwrap();
        let mut written = Written::default();
        for round in 0..6u64 {
            let mut urls = Urls::open(folder.path(), written).unwrap();
            let from = urls.entries();
            (from..from + 333).for_each(|n| add(&mut urls, n));
            let kept = urls.sync().unwrap();
            (from + 333..from + 500).for_each(|n| add(&mut urls, n));
            assert!((0..urls.entries()).rev().step_by(7).all(|n| urls.get(n).unwrap() == made(n)));
            let mut at = round;
            urls.walk(at, |entry, found| {
                assert_eq!((entry, found), (at, made(at)));
                at += 1;
                Ok(ControlFlow::Continue(()))
            })
            .unwrap();
            assert_eq!(at, urls.entries());
            written = kept;
        }
    }

    #[test]
    fn flipped_bytes_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let mut urls = Urls::open(folder.path(), Written::default()).unwrap();
        (0..300).for_each(|n| add(&mut urls, n));
        let written = urls.sync().unwrap();
        let path = folder.path().join("urls");
        let whole = std::fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(13) {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            std::fs::write(&path, bytes).unwrap();
            let mut urls = Urls::open(folder.path(), written.clone()).unwrap();
            assert!(urls.walk(0, |_, _| Ok(ControlFlow::Continue(()))).is_err(), "byte {at}");
        }
    }
}
