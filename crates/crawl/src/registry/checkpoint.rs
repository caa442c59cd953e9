//! The checkpoint: one small file that says what of the others counts. It is written beside the old one and takes its place in one
//! step, so there is always exactly one.
//!
//! ```text
//!   | magic 8 | version 4 | number 8 | key check 16 | urls: bytes, bytes of frames, entries, tail | pages of states, hosts, queues, memories |
//!   | bytes of names, hosts | seen-set of URLs, of hosts: next file, in runs, runs (id, keys) …, log (id, keys, checksum) |
//!   | free blocks: blocks, first |
//!   | crawls (pass, eight counts) … | out: entry … | marks: segment 8 8, records … | extra | checksum 8 |
//! ```
//! Numbers without a width are varints; texts and lists begin with their length.

use super::codec::{Reader, put_bytes, put_varint};
use super::error::{Error, Result};
use super::limits::{CHECKPOINT_BYTES_MAX, CRAWLS_MAX};
use super::pages::FILES;
use super::queues::Free;
use super::{Counts, Crawl, seen, urls};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"skepreg\0";
/// The first had no memories, the second kept the depth where it could not change.
const VERSION: u32 = 3;

/// How far a segment was folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The segment: whatever two numbers name it for the caller.
    pub segment: (u64, u64),
    /// Records of it that were folded.
    pub records: u32,
}

/// What the last checkpoint kept for the caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Checkpoints are counted from one.
    pub number: u64,
    /// How far each segment was folded.
    pub marks: Vec<Mark>,
    /// The caller's own bytes.
    pub extra: Vec<u8>,
    /// Entries that were out; they wait again.
    pub out: Vec<u64>,
}

/// Everything a checkpoint holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Image {
    pub checkpoint: Checkpoint,
    pub key_check: u128,
    pub urls: urls::Written,
    pub pages: [u64; FILES.len()],
    pub names_bytes: u64,
    pub hosts: u64,
    pub seen_urls: seen::Written,
    pub seen_hosts: seen::Written,
    pub free: Free,
    pub crawls: Vec<Crawl>,
}

/// Reads the checkpoint of a folder; `None` if there is none.
pub(super) fn read(folder: &Path, key_check: u128) -> Result<Option<Image>> {
    let path = folder.join("checkpoint");
    let length = match std::fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("cannot look at", &path, error)),
        Ok(metadata) => metadata.len(),
    };
    if length > CHECKPOINT_BYTES_MAX {
        return Err(Error::damaged(&path, "it is larger than a checkpoint can be"));
    }
    let bytes = std::fs::read(&path).map_err(|error| Error::io("cannot read", &path, error))?;
    let Some((content, sum)) = bytes.split_last_chunk::<8>() else {
        return Err(Error::damaged(&path, "it ends too early"));
    };
    if xxh3_64(content) != u64::from_le_bytes(*sum) || !content.starts_with(MAGIC) {
        return Err(Error::damaged(&path, "it does not match its checksum"));
    }
    let mut reader = Reader::new(&content[MAGIC.len()..]);
    let found = reader.u32().unwrap_or(0);
    if found > VERSION {
        return Err(Error::Newer { path, found, known: VERSION });
    }
    if found < VERSION {
        return Err(Error::Older { path });
    }
    let image = decode(&mut reader).filter(|_| reader.is_empty());
    let image = image.ok_or_else(|| Error::damaged(&path, "it cannot be read"))?;
    if image.key_check != key_check {
        return Err(Error::OtherKey { path });
    }
    Ok(Some(image))
}

/// Puts a checkpoint in the place of the one before. Everything that it names must be durable.
pub(super) fn write(folder: &Path, image: &Image) -> Result<()> {
    let (part, path) = (folder.join("checkpoint.part"), folder.join("checkpoint"));
    let bytes = encode(image);
    let written = File::create(&part).and_then(|mut file| {
        file.write_all(&bytes)?;
        file.sync_all()
    });
    written.map_err(|error| Error::io("cannot write", &part, error))?;
    // The names of new runs must be as durable as the checkpoint that mentions them.
    sync_folder(folder)?;
    std::fs::rename(&part, &path).map_err(|error| Error::io("cannot rename", &part, error))?;
    sync_folder(folder)
}

fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder).and_then(|file| file.sync_all()).map_err(|error| Error::io("cannot sync", folder, error))
}

fn encode(image: &Image) -> Vec<u8> {
    let mut bytes = Vec::new();
    let into = &mut bytes;
    into.extend_from_slice(MAGIC);
    into.extend_from_slice(&VERSION.to_le_bytes());
    into.extend_from_slice(&image.checkpoint.number.to_le_bytes());
    into.extend_from_slice(&image.key_check.to_le_bytes());
    for number in [image.urls.urls_bytes, image.urls.frames_bytes, image.urls.entries] {
        put_varint(into, number);
    }
    put_bytes(into, &image.urls.tail);
    image.pages.iter().for_each(|pages| put_varint(into, *pages));
    put_varint(into, image.names_bytes);
    put_varint(into, image.hosts);
    for seen in [&image.seen_urls, &image.seen_hosts] {
        put_varint(into, seen.next_file);
        put_varint(into, seen.in_runs);
        put_varint(into, seen.runs.len() as u64);
        for (id, keys) in &seen.runs {
            put_varint(into, *id);
            put_varint(into, *keys);
        }
        let (id, keys, sum) = seen.fresh;
        [id, keys, sum].into_iter().for_each(|number| put_varint(into, number));
    }
    put_varint(into, image.free.blocks.into());
    put_varint(into, image.free.first.into());
    put_varint(into, image.crawls.len() as u64);
    for crawl in &image.crawls {
        put_varint(into, crawl.pass.into());
        crawl.counts.stored().into_iter().for_each(|count| put_varint(into, count));
    }
    put_varint(into, image.checkpoint.out.len() as u64);
    image.checkpoint.out.iter().for_each(|entry| put_varint(into, *entry));
    put_varint(into, image.checkpoint.marks.len() as u64);
    for mark in &image.checkpoint.marks {
        into.extend_from_slice(&mark.segment.0.to_le_bytes());
        into.extend_from_slice(&mark.segment.1.to_le_bytes());
        put_varint(into, mark.records.into());
    }
    put_bytes(into, &image.checkpoint.extra);
    let sum = xxh3_64(into);
    into.extend_from_slice(&sum.to_le_bytes());
    bytes
}

fn decode(reader: &mut Reader<'_>) -> Option<Image> {
    let mut image = Image::default();
    image.checkpoint.number = reader.u64()?;
    image.key_check = u128::from_le_bytes(reader.take(16)?.try_into().ok()?);
    image.urls = urls::Written {
        urls_bytes: reader.varint()?,
        frames_bytes: reader.varint()?,
        entries: reader.varint()?,
        tail: reader.bytes()?.to_vec(),
    };
    for pages in &mut image.pages {
        *pages = reader.varint()?;
    }
    image.names_bytes = reader.varint()?;
    image.hosts = reader.varint()?;
    for seen in [&mut image.seen_urls, &mut image.seen_hosts] {
        (seen.next_file, seen.in_runs) = (reader.varint()?, reader.varint()?);
        for _ in 0..reader.count(2)? {
            seen.runs.push((reader.varint()?, reader.varint()?));
        }
        seen.fresh = (reader.varint()?, reader.varint()?, reader.varint()?);
    }
    image.free.blocks = u32::try_from(reader.varint()?).ok()?;
    image.free.first = u32::try_from(reader.varint()?).ok()?;
    let crawls = reader.count(9)?;
    if crawls > CRAWLS_MAX {
        return None;
    }
    for _ in 0..crawls {
        let pass = u16::try_from(reader.varint()?).ok()?;
        let mut stored = [0; 8];
        for count in &mut stored {
            *count = reader.varint()?;
        }
        image.crawls.push(Crawl { pass, counts: Counts::from_stored(stored) });
    }
    for _ in 0..reader.count(1)? {
        image.checkpoint.out.push(reader.varint()?);
    }
    for _ in 0..reader.count(17)? {
        let segment = (reader.u64()?, reader.u64()?);
        image.checkpoint.marks.push(Mark { segment, records: u32::try_from(reader.varint()?).ok()? });
    }
    image.checkpoint.extra = reader.bytes()?.to_vec();
    Some(image)
}
