//! One record made ready to be written: a gzip member that holds it and nothing else.
//!
//! A member that holds one whole record already is taken as it stands. Everything else is packed anew: records of plain files and of
//! zstd, records that somebody compressed together; records of ARC files become those of a WARC file.

use crate::failure::{Failure, Result};
use crate::get::read_head;
use skep_archive::{Capture, Key, Stored, cdxj};
use skep_page::Input;
use skep_warc::coding::{self, Bounds};
use skep_warc::digest::{Algorithm, Digest};
use skep_warc::write::{Compression, Encoder, Record, RecordId, WriteError};
use skep_warc::{Head, Options, Reader, date};
use std::fs::File;
use std::io::{self, BufRead, Cursor, Read, Seek, Write};
use std::net::IpAddr;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Blocks up to this size are kept in memory, larger ones in a file without a name, in bytes.
const MEMORY_BYTES_MAX: u64 = 4 << 20;
/// Bytes moved at a time.
const STEP_BYTES: usize = 256 << 10;
/// As far as a title is looked for, in bytes of the page.
const TITLE_SEARCH_BYTES: u64 = 256 << 10;
/// Bytes of a record of notes that are read for a title.
const NOTE_BYTES_MAX: u64 = 16 << 20;

/// The record.
pub struct Ready {
    bytes: Bytes,
    /// How many bytes it takes.
    pub length: u64,
    /// What an index says of it, if it lists it.
    pub line: Option<cdxj::Line>,
    /// Its identifier, as it is written.
    pub id: String,
    /// Milliseconds since 1970.
    pub time_ms: i64,
}

enum Bytes {
    Memory(Arc<[u8]>),
    /// A stretch of a file.
    File {
        file: File,
        from: u64,
    },
}

/// Why a record cannot be taken along. Others can.
pub type Left = String;

/// Makes a record ready; says why where it cannot be. `key` is that of the URL it must be about.
pub fn make(stored: &mut Stored, key: Option<&Key>, encoder: &mut Encoder) -> Result<std::result::Result<Ready, Left>> {
    match as_it_stands(stored, key) {
        Ok(Some(ready)) => return Ok(Ok(ready)),
        Ok(None) => {}
        Err(error) => return Ok(Err(error.to_string())),
    }
    let bytes = match packed_anew(stored, key, encoder) {
        Ok(bytes) => bytes,
        Err(Unready::Left(why)) => return Ok(Err(why)),
        Err(Unready::Failed(error)) => return Err(spooling(error)),
    };
    let length = bytes.length().map_err(spooling)?;
    let mut reader = bytes.reader(length).map_err(spooling)?;
    Ok(look_at(&mut reader, length)
        .map_err(spooling)?
        .map(|(seen, _)| seen.ready(bytes, length))
        .ok_or_else(|| "what was packed anew cannot be read".to_owned()))
}

fn spooling(error: io::Error) -> Failure {
    Failure::new("cannot write a record on its way").because(error).hint("TMPDIR names a folder with more room")
}

/// What a look at a whole record brings.
struct Seen {
    line: Option<cdxj::Line>,
    id: String,
    time_ms: i64,
}

impl Seen {
    fn ready(self, bytes: Bytes, length: u64) -> Ready {
        Ready { bytes, length, line: self.line, id: self.id, time_ms: self.time_ms }
    }
}

/// The record, if it is the only one there, whole, and of a WARC file.
fn look_at(reader: &mut Reader, length: u64) -> io::Result<Option<(Seen, Key)>> {
    let Some(mut record) = reader.next()? else { return Ok(None) };
    let head = record.head();
    let (Some(time_ms), Some(url), false, true) = (head.date_ms(), head.target_uri(), head.is_arc(), head.is_ended())
    else {
        return Ok(None);
    };
    let key = Key::of_bytes(url);
    let id = head.record_id().map(|id| String::from_utf8_lossy(id).into_owned()).unwrap_or_default();
    let declared = head.content_length();
    let line = cdxj::line_of(&mut record)?;
    let end = record.finish()?;
    let whole = !end.damaged && end.length == length && declared == Some(end.block_bytes);
    // Findings: a record in two members, for one, which not everybody can read.
    if !whole || reader.next()?.is_some() || !reader.take_findings().is_empty() {
        return Ok(None);
    }
    Ok(Some((Seen { line, id, time_ms }, key)))
}

fn as_it_stands(stored: &Stored, key: Option<&Key>) -> io::Result<Option<Ready>> {
    let (offset, length) = (stored.offset(), stored.length());
    let file = File::open(stored.path())?;
    let mut first = [0; 2];
    if file.read_at(&mut first, offset)? < 2 || first != [0x1f, 0x8b] {
        return Ok(None);
    }
    let mut reader = Reader::at(stored.path(), offset, Some(length), Options::recover())?;
    let seen = look_at(&mut reader, length)?.filter(|(_, found)| key.is_none_or(|key| key.surt() == found.surt()));
    Ok(seen.map(|(seen, _)| seen.ready(Bytes::File { file, from: offset }, length)))
}

/// Why a record is not ready.
enum Unready {
    Left(Left),
    /// There is no room to pack it.
    Failed(io::Error),
}

fn packed_anew(stored: &mut Stored, key: Option<&Key>, encoder: &mut Encoder) -> std::result::Result<Bytes, Unready> {
    let left = |why: &dyn std::fmt::Display| Unready::Left(why.to_string());
    let mut record = stored.record().map_err(|error| left(&error))?;
    let head = record.head().clone();
    let found = head.target_uri().map(Key::of_bytes);
    if found.is_none() || key.is_some_and(|key| found.as_ref().map(Key::surt) != Some(key.surt())) {
        return Err(left(&"the record there is about something else"));
    }
    let mut block = Spool::default();
    let mut step = vec![0; STEP_BYTES];
    loop {
        match record.read(&mut step).map_err(|error| left(&error))? {
            0 => break,
            count => block.write_all(&step[..count]).map_err(Unready::Failed)?,
        }
    }
    let end = record.finish().map_err(|error| left(&error))?;
    if end.damaged || head.content_length().is_some_and(|declared| declared != block.length) {
        return Err(left(&"it is damaged"));
    }
    let mut out = Spool::default();
    let length = block.length;
    let written = match head.is_arc() {
        true => of_arc(&head, stored.offset()).and_then(|record| match &mut block.file {
            Some(file) => {
                file.rewind().map_err(WriteError::from).and_then(|()| record.encode_stream(encoder, file, &mut out))
            }
            None => record.encode_stream(encoder, &mut Cursor::new(&block.memory), &mut out),
        }),
        false if !head.is_ended() => return Err(left(&"its head has no end")),
        false => block
            .reader()
            .map_err(WriteError::from)
            .and_then(|block| encoder.raw_stream(head.raw(), block, length, &mut out)),
    };
    match written {
        Ok(_) => out.bytes().map_err(Unready::Failed),
        Err(WriteError::Io(error)) => Err(Unready::Failed(error)),
        Err(error) => Err(left(&error)),
    }
}

/// The WARC record that says what a record of an ARC file says.
fn of_arc(head: &Head, offset: u64) -> std::result::Result<Record<'static>, WriteError> {
    let url = head.target_uri().map(|url| String::from_utf8_lossy(url).replace(' ', "%20")).unwrap_or_default();
    let time = date::rfc3339(head.date_ms().unwrap_or_default());
    let id = id_of(&["arc", &url, &time, &offset.to_string()]);
    let record = Record::response(&id, &time, &url, &b""[..]);
    let mime = head.text("Content-type").filter(|mime| !mime.trim().is_empty());
    let record = match (url.starts_with("http"), mime) {
        (true, _) => record,
        (false, Some(mime)) => record.content_type(mime.trim()),
        (false, None) => record.content_type("application/octet-stream"),
    };
    let address = head.text("IP-address").and_then(|text| text.parse::<IpAddr>().ok());
    Ok(match address.filter(|address| !address.is_unspecified()) {
        Some(address) => record.ip_address(address),
        None => record,
    })
}

/// An identifier that is the same whenever it is made of the same.
pub fn id_of(parts: &[&str]) -> RecordId {
    let digest = Digest::of(Algorithm::Sha256, parts.join("\n").as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.as_bytes()[..16]);
    RecordId::uuid(bytes)
}

/// An encoder for records that are packed anew.
pub fn encoder() -> Encoder {
    Encoder::new(Compression::GZIP)
}

/// Bytes that are in memory while they are few.
#[derive(Default)]
struct Spool {
    memory: Vec<u8>,
    file: Option<File>,
    length: u64,
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.file.is_none() && self.length + bytes.len() as u64 > MEMORY_BYTES_MAX {
            let mut file = tempfile::tempfile()?;
            file.write_all(&self.memory)?;
            self.memory = Vec::new();
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.write_all(bytes)?,
            None => self.memory.extend_from_slice(bytes),
        }
        self.length += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Spool {
    fn reader(&mut self) -> io::Result<Box<dyn Read + '_>> {
        Ok(match &mut self.file {
            Some(file) => {
                file.rewind()?;
                Box::new(file)
            }
            None => Box::new(self.memory.as_slice()),
        })
    }

    fn bytes(self) -> io::Result<Bytes> {
        Ok(match self.file {
            Some(file) => Bytes::File { file, from: 0 },
            None => Bytes::Memory(self.memory.into()),
        })
    }
}

impl Bytes {
    fn length(&self) -> io::Result<u64> {
        match self {
            Bytes::Memory(bytes) => Ok(bytes.len() as u64),
            Bytes::File { file, from } => Ok(file.metadata()?.len() - from),
        }
    }

    fn reader(&self, length: u64) -> io::Result<Reader> {
        match self {
            Bytes::Memory(bytes) => Reader::new(Cursor::new(bytes.clone()), Options::recover()),
            Bytes::File { file, from } => Reader::of_file(file.try_clone()?, *from, Some(length), Options::recover()),
        }
    }
}

impl Ready {
    /// Writes it.
    pub fn pour(&self, out: &mut dyn Write) -> io::Result<()> {
        let (file, from) = match &self.bytes {
            Bytes::Memory(bytes) => return out.write_all(bytes),
            Bytes::File { file, from } => (file, *from),
        };
        let mut step = vec![0; STEP_BYTES.min(usize::try_from(self.length).unwrap_or(STEP_BYTES))];
        let mut done = 0;
        while done < self.length {
            let wanted = step.len().min(usize::try_from(self.length - done).unwrap_or(usize::MAX));
            let read = file.read_at(&mut step[..wanted], from + done)?;
            if read == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter meanwhile"));
            }
            out.write_all(&step[..read])?;
            done += read as u64;
        }
        Ok(())
    }

    /// The title of the page that it holds, if it is one and has one. What is wrong with it is no matter here.
    pub fn title(&self, capture: &Capture) -> Option<String> {
        let mut reader = self.bytes.reader(self.length).ok()?;
        let mut record = reader.next().ok()??;
        let url = capture.url.parse().ok()?;
        let (head, begun) = read_head(&mut record, Path::new("")).ok()?;
        let head = head?;
        let rest = Cursor::new(begun).chain(record);
        let mut body = Vec::new();
        let _as_far_as_it_goes =
            coding::decode(&head, rest, Bounds::default()).take(TITLE_SEARCH_BYTES).read_to_end(&mut body);
        skep_page::read(&Input { url: &url, head: Some(&head), body: &body }).title
    }

    /// The title in a record of notes about a visit.
    pub fn noted_title(&self) -> Option<String> {
        let mut reader = self.bytes.reader(self.length).ok()?;
        let record = reader.next().ok()??;
        let line = |line: io::Result<Vec<u8>>| line.ok().and_then(|line| String::from_utf8(line).ok());
        let mut titles = record.take(NOTE_BYTES_MAX).split(b'\n').filter_map(line);
        titles.find_map(|line| line.strip_prefix("title:").map(|title| title.trim().to_owned()))
    }
}
