//! The `urls` log: what was heard, in the order of entry numbers.
//!
//! ```text
//!   urls     frame | first entry 8 | length 4 | 64 URLs, front-coded … | checksum 8 |
//!            URL   | shared with the one before: varint | rest: length varint, bytes | via: difference to the one before, zigzag varint |
//!                  | crawl varint | depth varint | kind 1 |
//!   frames   offset of each frame in `urls` 8
//! ```
//! Every frame holds 64 URLs, so the frame of an entry needs no search. Within a frame a URL says how many bytes it shares with
//! the one before it; the first shares none. A via of 0 is none, others are the entry plus one. The frame that is not full yet
//! lives in memory and in the checkpoint.

use super::append::Append;
use super::codec::{Reader, get, put_varint, unzigzag, zigzag};
use super::error::{Error, Result};
use super::limits::{FRAME_KEPT_BYTES_MAX, FRAME_URLS, FRAMES_KEPT, URL_BYTES_MAX};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// What was heard with a URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub url: String,
    pub via: Option<u64>,
    pub crawl: u16,
    pub depth: u16,
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
    /// The last URL in the tail.
    last: Line,
    kept: Vec<Option<(u64, Vec<u8>)>>,
}

const HEAD_BYTES: usize = 12;

impl Urls {
    pub fn open(folder: &Path, written: Written) -> Result<Urls> {
        let log = Append::open(folder.join("urls"), written.urls_bytes)?;
        let frames = Append::open(folder.join("frames"), written.frames_bytes)?;
        let mut last = Line::default();
        let mut reader = Reader::new(&written.tail);
        for _ in 0..written.entries % FRAME_URLS {
            next(&mut reader, &mut last).ok_or_else(|| checkpoint_damaged(folder))?;
        }
        if !reader.is_empty() || written.frames_bytes != written.entries / FRAME_URLS * 8 {
            return Err(checkpoint_damaged(folder));
        }
        let kept = (0..FRAMES_KEPT).map(|_| None).collect();
        Ok(Urls { log, frames, entries: written.entries, tail: written.tail, last, kept })
    }

    pub fn entries(&self) -> u64 {
        self.entries
    }

    pub fn add(&mut self, url: &str, via: Option<u64>, crawl: u16, depth: u16, kind: u8) -> Result<()> {
        let shared = url.bytes().zip(self.last.url.bytes()).take_while(|(a, b)| a == b).count();
        put_varint(&mut self.tail, shared as u64);
        put_varint(&mut self.tail, (url.len() - shared) as u64);
        self.tail.extend_from_slice(&url.as_bytes()[shared..]);
        put_varint(&mut self.tail, zigzag(via_number(via) - via_number(self.last.via)));
        put_varint(&mut self.tail, u64::from(crawl));
        put_varint(&mut self.tail, u64::from(depth));
        self.tail.push(kind);
        self.entries += 1;
        if self.entries.is_multiple_of(FRAME_URLS) {
            return self.end_frame();
        }
        self.last.url.clear();
        self.last.url.push_str(url);
        self.last.via = via;
        Ok(())
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
        self.last = Line::default();
        Ok(())
    }

    pub fn get(&mut self, entry: u64) -> Result<Line> {
        let mut line = Line::default();
        let frame = entry / FRAME_URLS;
        let damaged = damage(self.log.path(), frame);
        let bytes = if frame == self.entries / FRAME_URLS { &self.tail } else { self.frame(frame)? };
        let mut reader = Reader::new(bytes);
        for _ in 0..=entry % FRAME_URLS {
            if next(&mut reader, &mut line).is_none() {
                return Err(damaged());
            }
        }
        Ok(line)
    }

    /// Calls with each entry from the first on, in order, until told to stop.
    pub fn walk(&mut self, from: u64, mut each: impl FnMut(u64, &Line) -> Result<ControlFlow<()>>) -> Result<()> {
        for frame in from / FRAME_URLS..self.entries.div_ceil(FRAME_URLS) {
            let damaged = damage(self.log.path(), frame);
            let first = frame * FRAME_URLS;
            let end = (first + FRAME_URLS).min(self.entries);
            let bytes = if end < first + FRAME_URLS { &self.tail } else { self.frame(frame)? };
            let (mut reader, mut line) = (Reader::new(bytes), Line::default());
            for entry in first..end {
                next(&mut reader, &mut line).ok_or_else(&damaged)?;
                if entry >= from && each(entry, &line)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The URLs of a full frame, from memory or from disk.
    fn frame(&mut self, frame: u64) -> Result<&Vec<u8>> {
        let place = frame as usize % FRAMES_KEPT;
        let held = matches!(&self.kept[place], Some((held, _)) if *held == frame);
        if !held {
            let bytes = self.read_frame(frame)?;
            self.kept[place] = Some((frame, bytes));
        }
        // Long URLs would make the kept frames large: such a one leaves when the next is asked for.
        for (at, kept) in self.kept.iter_mut().enumerate() {
            if at != place && kept.as_ref().is_some_and(|(_, bytes)| bytes.len() > FRAME_KEPT_BYTES_MAX) {
                *kept = None;
            }
        }
        match &self.kept[place] {
            Some((_, bytes)) => Ok(bytes),
            None => Err(damage(self.log.path(), frame)()),
        }
    }

    fn read_frame(&self, frame: u64) -> Result<Vec<u8>> {
        let damaged = damage(self.log.path(), frame);
        let mut offset = [0; 8];
        self.frames.read(frame * 8, &mut offset)?;
        let offset = u64::from_le_bytes(offset);
        let mut head = [0; HEAD_BYTES];
        self.log.read(offset, &mut head)?;
        let length = get(&head, 8, 4) as usize;
        let longest = FRAME_URLS as usize * (URL_BYTES_MAX + 32);
        if get(&head, 0, 8) != frame * FRAME_URLS || length > longest {
            return Err(damaged());
        }
        let mut bytes = vec![0; HEAD_BYTES + length + 8];
        self.log.read(offset, &mut bytes)?;
        let sum_at = HEAD_BYTES + length;
        if xxh3_64(&bytes[..sum_at]) != get(&bytes, sum_at, 8) {
            return Err(damaged());
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
        let kept: usize = self.kept.iter().flatten().map(|(_, bytes)| bytes.capacity()).sum();
        self.log.memory_bytes() + self.frames.memory_bytes() + self.tail.capacity() + kept
    }

    pub fn disk_bytes(&self) -> u64 {
        self.log.length() + self.frames.length()
    }
}

fn damage(path: &Path, frame: u64) -> impl Fn() -> Error + use<> {
    let path: PathBuf = path.to_owned();
    move || Error::damaged(&path, format!("frame {frame} does not match its checksum"))
}

fn checkpoint_damaged(folder: &Path) -> Error {
    Error::damaged(&folder.join("checkpoint"), "its last URLs cannot be read")
}

fn via_number(via: Option<u64>) -> i64 {
    via.map_or(0, |entry| entry as i64 + 1)
}

/// Reads one URL over the one before it.
fn next(reader: &mut Reader<'_>, line: &mut Line) -> Option<()> {
    let shared = usize::try_from(reader.varint()?).ok()?;
    let rest = reader.bytes()?;
    let mut bytes = std::mem::take(&mut line.url).into_bytes();
    if shared > bytes.len() || shared + rest.len() > URL_BYTES_MAX {
        return None;
    }
    bytes.truncate(shared);
    bytes.extend_from_slice(rest);
    // A front-coded URL may be cut within a character; together with the rest it is whole again.
    line.url = String::from_utf8(bytes).ok()?;
    let via = via_number(line.via).checked_add(unzigzag(reader.varint()?))?;
    line.via = u64::try_from(via.checked_sub(1)?).ok();
    if via < 0 {
        return None;
    }
    line.crawl = u16::try_from(reader.varint()?).ok()?;
    line.depth = u16::try_from(reader.varint()?).ok()?;
    line.kind = reader.u8()?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(n: u64) -> Line {
        Line {
            url: format!("https://h{}.example/Käse/{}", n / 7, "ab".repeat(n as usize % 50)),
            via: n.checked_sub(3).filter(|_| !n.is_multiple_of(5)),
            crawl: (n % 3) as u16,
            depth: (n % 400) as u16,
            kind: n as u8,
        }
    }

    fn add(urls: &mut Urls, n: u64) {
        let line = line(n);
        urls.add(&line.url, line.via, line.crawl, line.depth, line.kind).unwrap();
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
            assert!((0..urls.entries()).rev().step_by(7).all(|n| urls.get(n).unwrap() == line(n)));
            let mut at = round;
            urls.walk(at, |entry, found| {
                assert_eq!((entry, found), (at, &line(at)));
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
