//! Rewriting: the one way in which bytes disappear. A segment is written again with some records blank, or compressed at
//! another level; heads and blocks of everything else keep their bytes, and all records their order and number.
//!
//! ```text
//!  NAME.warc.gz        ─▶  write NAME.g1.warc.gz.part: records copied or compressed again, blank ones encoded,
//!                          a new closing record
//!                          write NAME.g1.idx; sync both
//!                          rename to NAME.g1.warc.gz, sync the folder        from here on the new one counts
//!                          views apply the new one; delete the old one
//! ```
//! A blank record keeps every line of its head except these:
//! ```text
//!  Content-Length: 4711          ─▶  Content-Length: 0, and WARC-Removed-Length: 4711
//!  WARC-Block-Digest: sha1:…     ─▶  WARC-Removed-Block-Digest: sha1:…
//!  WARC-Payload-Digest: sha1:…   ─▶  WARC-Removed-Payload-Digest: sha1:…
//!                                    WARC-Truncated: unspecified, WARC-Removed-By: <urn:uuid:…>   added
//! ```
//! Renaming the digests keeps them on record without making the record wrong: a reader that verifies what stands under the
//! standard's names finds nothing to object to.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use skep_warc::deflate::Level;
use skep_warc::write::{Compression, Encoder, WriteError};

use crate::catalog::{Segment, State};
use crate::closing::Closing;
use crate::error::{Error, Result};
use crate::follow::SegmentCommit;
use crate::identity::Identity;
use crate::keeper::hash;
use crate::layout::{SegmentName, part_of, sidecar_of};
use crate::own;
use crate::read::Stored;
use crate::settings::sync_folder_of;
use crate::sidecar::{Entry, Note, SidecarReader, SidecarWriter};

/// The field that marks a blank record and names the removal.
pub const REMOVED_BY: &str = "WARC-Removed-By";

/// How a segment is to be written again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RewritePlan {
    /// Records that lose their block. A removal must name each of them: it says why.
    pub blank: Vec<u32>,
    /// Compress every record again, at this level.
    pub level: Option<Level>,
}

/// What becomes of a stretch of records.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// These bytes are copied as they stand.
    Copy {
        /// The first byte.
        from: u64,
        /// The byte after the last.
        to: u64,
    },
    /// The entry of this index becomes blank.
    Blank(usize),
    /// The entry of this index is compressed again.
    Again(usize),
}

/// What to do with each record of a sealed segment so that those in `removed` lose their block. The closing record is left
/// out: it is written anew. Blank records stay blank. With `again`, what is kept is compressed again.
pub fn plan(entries: &[Entry], again: bool, mut removed: impl FnMut(&Entry) -> bool) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut end = 0;
    for (index, entry) in entries.iter().enumerate() {
        if entry.offset > end {
            // What is no whole record stays where it is: a scan of the file counts it too.
            copy(&mut steps, end, entry.offset);
        }
        end = entry.end();
        // Record 0 says what the file is; nothing of the web is in it.
        let blank = entry.record > 0 && entry.note != Note::Blank && removed(entry);
        match entry.note {
            Note::Closing => {}
            _ if blank => steps.push(Step::Blank(index)),
            _ if again => steps.push(Step::Again(index)),
            _ => copy(&mut steps, entry.offset, entry.end()),
        }
    }
    steps
}

fn copy(steps: &mut Vec<Step>, from: u64, to: u64) {
    match steps.last_mut() {
        Some(Step::Copy { to: end, .. }) if *end == from => *end = to,
        _ => steps.push(Step::Copy { from, to }),
    }
}

/// The head of the blank form of a record.
pub fn blank_head(raw: &[u8], removal: &str) -> Vec<u8> {
    let text = raw.strip_suffix(b"\r\n\r\n").or(raw.strip_suffix(b"\n\n")).unwrap_or(raw);
    let mut out = Vec::with_capacity(raw.len() + 160);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (line[..colon].to_ascii_lowercase(), &line[colon + 1..]),
            None => (Vec::new(), line),
        };
        let renamed: &[&[u8]] = match name.as_slice() {
            b"content-length" => &[b"Content-Length: 0\r\nWARC-Removed-Length:", value],
            b"warc-block-digest" => &[b"WARC-Removed-Block-Digest:", value],
            b"warc-payload-digest" => &[b"WARC-Removed-Payload-Digest:", value],
            b"warc-truncated" => continue,
            _ => &[line],
        };
        renamed.iter().for_each(|part| out.extend_from_slice(part));
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("WARC-Truncated: unspecified\r\n{REMOVED_BY}: <{removal}>\r\n\r\n").as_bytes());
    out
}

/// A segment written again, ready to take the place of the old one.
pub struct Rewritten {
    /// The new generation.
    pub segment: Segment,
    /// Its records, for the views.
    pub commit: SegmentCommit,
    /// The file that it replaces.
    pub old: PathBuf,
}

/// Writes the next generation of a sealed segment, in which the records that `removals` names are blank: record number to
/// the id of its removal. With a `level` the others are compressed again. When this returns the new file is sealed, synced
/// and in its place; the old one still stands.
pub fn rewrite(
    segment: &Segment,
    removals: &BTreeMap<u32, String>,
    level: Option<Level>,
    identity: &Identity,
    now_ms: i64,
) -> Result<Rewritten> {
    let entries = sealed_entries(segment)?;
    let steps = plan(&entries, level.is_some(), |entry| removals.contains_key(&entry.record));
    let replaces = closing_of(segment, &entries)?.blake3;
    verify(segment, entries.last().map_or(0, |entry| entry.offset), replaces)?;
    let name = SegmentName { generation: segment.name.generation + 1, ..segment.name };
    let path = segment.path.with_file_name(name.to_string());
    let part = part_of(&path);
    let from = File::open(&segment.path).map_err(|error| Error::io("cannot open", &segment.path, error))?;
    let mut output = Output::create(&part)?;
    let mut encoder = Encoder::new(Compression::Gzip(level.unwrap_or_default()));
    let mut written = Vec::with_capacity(entries.len());
    let mut index = 0;
    for step in &steps {
        match *step {
            Step::Copy { from: start, to } => {
                let shift = output.bytes;
                while index < entries.len() && entries[index].offset >= start && entries[index].end() <= to {
                    let entry = &entries[index];
                    let offset = entry.offset - start + shift;
                    written.push(Entry::place(name.id, entry.record, offset, entry.length, entry.note.clone()));
                    index += 1;
                }
                output.copy(&from, &segment.path, start, to)?;
            }
            Step::Blank(at) => {
                let entry = &entries[at];
                let mut stored = Stored::open(&segment.path, entry.offset, entry.length)?;
                let removal = removals.get(&entry.record).map(String::as_str).unwrap_or_default();
                let member = own::encode_head(&blank_head(stored.record()?.head().raw(), removal));
                written.push(Entry::place(name.id, entry.record, output.bytes, member.len() as u64, Note::Blank));
                output.put(&member)?;
                index = at + 1;
            }
            Step::Again(at) => {
                let (entry, offset) = (&entries[at], output.bytes);
                compress_again(&segment.path, entry, &mut encoder, &mut output)?;
                let length = output.bytes - offset;
                written.push(Entry::place(name.id, entry.record, offset, length, entry.note.clone()));
                index = at + 1;
            }
        }
    }
    // Damage that was passed over leaves gaps in the numbers.
    let next = written.last().map_or(0, |entry| entry.record + 1);
    let mut ids: Vec<String> = removals.values().cloned().collect();
    ids.sort();
    ids.dedup();
    let closing = Closing {
        segment: name,
        half: segment.half,
        records: next,
        bytes: output.bytes,
        blake3: *output.hasher.finalize().as_bytes(),
        replaces: Some(replaces),
        removals: ids,
        instead: None,
    };
    let member = closing.encode(identity, now_ms)?;
    written.push(Entry::place(name.id, next, output.bytes, member.len() as u64, Note::Closing));
    output.put(&member)?;
    output.finish()?;

    let sidecar = sidecar_of(&path);
    let mut writer = SidecarWriter::create(&sidecar, name)?;
    writer.append(&written)?;
    writer.sync()?;
    std::fs::rename(&part, &path).map_err(|error| Error::io("cannot rename", &part, error))?;
    sync_folder_of(&path)?;
    let segment_now = Segment { name, half: segment.half, path: path.clone(), state: State::Sealed };
    let sidecar_bytes = Some(writer.length());
    let commit = SegmentCommit { name, path, entries: written, sealed: true, sidecar_bytes };
    Ok(Rewritten { segment: segment_now, commit, old: segment.path.clone() })
}

/// Bytes are copied only as long as they are those that were sealed: the new seal must not vouch for others.
pub fn verify(segment: &Segment, bytes: u64, sealed: [u8; 32]) -> Result<()> {
    let path = &segment.path;
    let found = File::open(path).and_then(|file| hash(&file, bytes));
    if found.map_err(|error| Error::io("cannot read", path, error))? != sealed {
        return Err(Error::damaged(path, 0, "the bytes are not those that were sealed", "`skep check` says more"));
    }
    Ok(())
}

/// Writes a record with the head and block it has, in a new member. One that is not whole is left to those who repair: the
/// new seal must not vouch for it.
fn compress_again(path: &Path, entry: &Entry, encoder: &mut Encoder, output: &mut Output) -> Result<()> {
    let damaged = |what: &str| Error::damaged(path, entry.offset, what.to_string(), "`skep check` says more");
    let mut stored = Stored::open(path, entry.offset, entry.length)?;
    let mut record = stored.record()?;
    let head = record.head().raw().to_vec();
    let length = record.head().content_length().ok_or_else(|| damaged("the record does not say how long it is"))?;
    let to = output.path.clone();
    encoder.raw_stream(&head, &mut record, length, output).map_err(|error| match error {
        WriteError::Io(error) => Error::io("cannot write", &to, error),
        other => damaged(&other.to_string()),
    })?;
    match record.finish() {
        Ok(end) if !end.damaged => Ok(()),
        Ok(_) => Err(damaged("the record is not whole")),
        Err(error) => Err(Error::io("cannot read", path, error)),
    }
}

/// Deletes a replaced segment file and its sidecar, the segment first: a sidecar alone is nothing.
pub fn delete_generation(path: &Path) -> Result<()> {
    for file in [path.to_path_buf(), sidecar_of(path)] {
        match std::fs::remove_file(&file) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io("cannot delete", &file, error)),
        }
    }
    sync_folder_of(path)
}

/// All entries of a sealed segment, or an error if its sidecar does not cover it.
pub fn sealed_entries(segment: &Segment) -> Result<Vec<Entry>> {
    let path = sidecar_of(&segment.path);
    let incomplete = || Error::damaged(&path, 0, "does not describe the whole segment", "open the archive again");
    let mut sidecar = SidecarReader::open(&path, segment.name)?.ok_or_else(incomplete)?;
    let mut entries = Vec::new();
    while let Some(frame) = sidecar.next_frame()? {
        entries.extend(frame);
    }
    match entries.last() {
        Some(Entry { note: Note::Closing, .. }) => Ok(entries),
        _ => Err(incomplete()),
    }
}

/// The closing record of a sealed segment.
pub fn closing_of(segment: &Segment, entries: &[Entry]) -> Result<Closing> {
    closing_and_key(segment, entries).map(|(closing, _)| closing)
}

/// The same, and the whole key that signed it.
pub fn closing_and_key(segment: &Segment, entries: &[Entry]) -> Result<(Closing, [u8; 32])> {
    use std::io::Read;
    let last = entries.last().map_or((0, 0), |entry| (entry.offset, entry.length));
    let mut block = Vec::new();
    let mut stored = Stored::open(&segment.path, last.0, last.1)?;
    stored
        .record()?
        .take(crate::limits::NOTE_BYTES_MAX as u64)
        .read_to_end(&mut block)
        .map_err(|error| Error::io("cannot read", &segment.path, error))?;
    let both = Closing::parse(&block).and_then(|closing| Ok((closing, Closing::signer(&block)?)));
    both.map_err(|what| {
        Error::damaged(&segment.path, last.0, format!("closing record: {what}"), "`skep check` says more")
    })
}

/// A file being written, hashed on the way.
pub struct Output<W = BufWriter<File>> {
    path: PathBuf,
    file: W,
    /// Of what was written so far.
    pub hasher: blake3::Hasher,
    /// How much that is.
    pub bytes: u64,
}

impl Output<std::io::Sink> {
    /// What is written goes nowhere; only its hash and length are wanted.
    pub fn nowhere(path: &Path) -> Output<std::io::Sink> {
        Output { path: path.to_path_buf(), file: std::io::sink(), hasher: blake3::Hasher::new(), bytes: 0 }
    }
}

impl Output {
    /// Begins a file.
    pub fn create(path: &Path) -> Result<Output> {
        let file = File::create(path).map_err(|error| Error::io("cannot create", path, error))?;
        let file = BufWriter::with_capacity(1 << 16, file);
        Ok(Output { path: path.to_path_buf(), file, hasher: blake3::Hasher::new(), bytes: 0 })
    }

    /// Makes it durable.
    pub fn finish(self) -> Result<()> {
        let path = self.path;
        self.file
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)
            .and_then(|file| file.sync_all())
            .map_err(|error| Error::io("cannot write", &path, error))
    }
}

impl<W: Write> Output<W> {
    /// Writes these bytes.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_all(bytes).map_err(|error| Error::io("cannot write", &self.path, error))
    }

    /// Writes what stands between two bytes of another file.
    pub fn copy(&mut self, from: &File, name: &Path, start: u64, to: u64) -> Result<()> {
        let mut buffer = vec![0; 1 << 16];
        let mut at = start;
        while at < to {
            let part = (to - at).min(buffer.len() as u64) as usize;
            from.read_exact_at(&mut buffer[..part], at).map_err(|error| Error::io("cannot read", name, error))?;
            self.put(&buffer[..part])?;
            at += part as u64;
        }
        Ok(())
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WriterKey;
    use crate::layout::SegmentId;

    fn entry(record: u32, note: Note) -> Entry {
        let id = SegmentId { writer: WriterKey(1), number: 1 };
        Entry::place(id, record, u64::from(record) * 10, 10, note)
    }

    #[test]
    fn stretches_are_copied_at_once_and_the_first_and_last_record_are_never_blank() {
        let entries = [
            entry(0, Note::Plain),
            entry(1, Note::Plain),
            entry(2, Note::Plain),
            entry(3, Note::Plain),
            entry(4, Note::Blank),
            entry(5, Note::Closing),
        ];
        assert_eq!(plan(&entries, false, |_| false), [Step::Copy { from: 0, to: 50 }]);
        assert_eq!(
            plan(&entries, false, |entry| entry.record == 2),
            [Step::Copy { from: 0, to: 20 }, Step::Blank(2), Step::Copy { from: 30, to: 50 }]
        );
        assert_eq!(
            plan(&entries, false, |_| true),
            [
                Step::Copy { from: 0, to: 10 },
                Step::Blank(1),
                Step::Blank(2),
                Step::Blank(3),
                Step::Copy { from: 40, to: 50 }
            ]
        );
        let gap = [entries[0].clone(), entries[2].clone(), entries[3].clone()];
        assert_eq!(plan(&gap, false, |_| false), [Step::Copy { from: 0, to: 40 }]);
        assert_eq!(
            plan(&gap, false, |entry| entry.record == 2),
            [Step::Copy { from: 0, to: 20 }, Step::Blank(1), Step::Copy { from: 30, to: 40 }]
        );
        assert_eq!(
            plan(&entries, true, |entry| entry.record == 2),
            [Step::Again(0), Step::Again(1), Step::Blank(2), Step::Again(3), Step::Again(4)]
        );
    }

    #[test]
    fn a_blank_head_keeps_every_other_line() {
        let raw = b"WARC/1.1\r\nWARC-Type: response\r\nwarc-block-digest: sha1:A\r\nWARC-Payload-Digest: sha1:B\r\nX: y\r\n z\r\n\
            WARC-Truncated: length\r\nContent-Length: 12\r\n\r\n";
        let blank = String::from_utf8(blank_head(raw, "urn:uuid:1")).unwrap();
        assert_eq!(
            blank,
            "WARC/1.1\r\nWARC-Type: response\r\nWARC-Removed-Block-Digest: sha1:A\r\nWARC-Removed-Payload-Digest: sha1:B\r\n\
             X: y\r\n z\r\nContent-Length: 0\r\nWARC-Removed-Length: 12\r\nWARC-Truncated: unspecified\r\n\
             WARC-Removed-By: <urn:uuid:1>\r\n\r\n"
        );
    }
}
