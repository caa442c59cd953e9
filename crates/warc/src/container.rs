//! Decoded bytes of a plain, gzip or zstd file, one member at a time.
//!
//! A *member* is a gzip member or a zstd frame; a plain file is one member. The window shows decoded bytes of the current member (and,
//! after `join_next`, of the one before it). Damage is never an error here: it ends the member with a [`Fault`], and the next member is
//! searched for. Only the operating system's errors are errors.
//!
//! ```text
//!   gzip   | 1f 8b 08 | flags | mtime 4 | xfl os | [xlen 2 | s l 8 0 | member length 4 | decoded length 4 | …] | … deflate … | crc 4 | length 4 |
//!   zstd   | 5d 2a 4d 18 | length 4 | dictionary |  then frames  | 28 b5 2f fd | …          (dictionary only as the first frame)
//! ```

mod ahead;
mod gzip;

use self::ahead::Ahead;
use self::gzip::GzipStream;
use crate::beginning::Beginning;
use crate::deflate::Inflater;
use crate::dictionary;
use crate::finding::{Findings, Rule};
use crate::gzip::{GZIP_MAGIC, Promise, begins_gzip, gzip_header};
use crate::limits::*;
use crate::source::Source;
use memchr::memmem;
use std::io;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// Not compressed.
    Plain,
    /// gzip members.
    Gzip,
    /// Zstandard frames.
    Zstd,
}

/// Why a member ended before its proper end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub rule: Rule,
    pub detail: String,
}

enum Decoding {
    /// Plain bytes, straight from the source.
    Plain,
    /// All of the member is in the window.
    Whole,
    /// The beginning of the member is in the window, because the rest may not be wanted. The source still stands at the member's first
    /// byte; its compressed data begins so many bytes behind it.
    Begun(usize),
    Gzip(Box<GzipStream>),
    Zstd,
    /// The member has ended.
    Done,
}

pub(crate) struct Stream {
    pub source: Source,
    container: Container,
    out: Vec<u8>,
    position: usize,
    decoding: Decoding,
    fault: Option<Fault>,
    member_start: u64,
    /// Decoded bytes of the current member that lie before the window.
    member_passed: u64,
    promised: Option<Promise>,
    /// What the member promises of its length was held against what stands there.
    can_step_over: bool,
    ahead: Ahead,
    beginning: Beginning,
    /// A decoder that an earlier member is done with.
    spare: Option<Box<GzipStream>>,
    inflater: Inflater,
    zstd: Option<zstd_safe::DCtx<'static>>,
    probe: Option<flate2::Decompress>,
    heads_first: bool,
}

impl Stream {
    /// Looks at the first bytes and begins the first member; with `heads_first` only the beginning of each member that can be stepped over
    /// is decoded, because the rest of it is likely not wanted.
    pub fn begin(mut source: Source, heads_first: bool, findings: &mut Findings) -> io::Result<Stream> {
        source.fill(4)?;
        let container = sniff(source.window());
        let mut stream = Stream { heads_first, ..Stream::new(source, container) };
        if container == Container::Zstd
            && stream.source.offset() > 0
            && let Some(dictionary) = dictionary::of_file(&stream.source)?
        {
            // One that cannot be loaded makes the first frame fail, which is told.
            let _ = stream.zstd.get_or_insert_with(new_zstd).load_dictionary(&dictionary);
        }
        match container {
            Container::Plain => stream.decoding = Decoding::Plain,
            _ => {
                stream.join_next(findings)?;
            }
        }
        Ok(stream)
    }

    fn new(source: Source, container: Container) -> Stream {
        Stream {
            member_start: source.offset(),
            source,
            container,
            out: Vec::new(),
            position: 0,
            decoding: Decoding::Done,
            fault: None,
            member_passed: 0,
            promised: None,
            can_step_over: false,
            ahead: Ahead::new(),
            beginning: Beginning::new(),
            spare: None,
            inflater: Inflater::new(),
            zstd: None,
            probe: None,
            heads_first: false,
        }
    }

    /// Where the first member that begins a record stands in a source that may begin anywhere.
    pub fn find_member(source: Source) -> io::Result<Option<u64>> {
        let mut unread = Findings::default();
        let mut first = [0u8; 4];
        let got = source.peek(0, &mut first)?.unwrap_or(0);
        let file_start = sniff(&first[..got]);
        let mut stream = Stream::new(source, file_start);
        if file_start == Container::Plain {
            return Ok(None);
        }
        stream.source.fill(PROBE_BYTES)?;
        if stream.source.window().is_empty() {
            return Ok(None);
        }
        let from = stream.source.offset();
        // Zstandard frames may need the dictionary at the beginning of the file to be probed: their parts are not searched for.
        let found = file_start == Container::Gzip && (stream.probe_here(0)? || stream.search(from, &mut unread)?);
        Ok(found.then_some(stream.source.offset()))
    }

    pub fn container(&self) -> Container {
        self.container
    }

    pub fn window(&self) -> &[u8] {
        match self.decoding {
            Decoding::Plain => self.source.window(),
            _ => &self.out[self.position..],
        }
    }

    pub fn consume(&mut self, bytes: usize) {
        self.member_passed += bytes as u64;
        match self.decoding {
            Decoding::Plain => self.source.consume(bytes),
            _ => {
                assert!(bytes <= self.out.len() - self.position);
                self.position += bytes;
            }
        }
    }

    /// Passes over up to `bytes` bytes of the current member without decoding where that is possible; returns how many.
    pub fn pass(&mut self, bytes: u64) -> io::Result<u64> {
        let here = (self.window().len() as u64).min(bytes);
        self.consume(here as usize);
        if here < bytes && matches!(self.decoding, Decoding::Plain) && self.source.can_go_back() {
            // Seeking past the end would turn a truncated block into a complete one: the last byte must be there.
            let mut last = [0u8; 1];
            let target = self.source.offset() + (bytes - here);
            if self.source.peek(target - 1, &mut last)? == Some(1) {
                self.source.go_to(target)?;
                self.member_passed += bytes - here;
                return Ok(bytes);
            }
        }
        Ok(here)
    }

    /// Nothing of the current member follows the window.
    pub fn member_ended(&self) -> bool {
        match self.decoding {
            Decoding::Plain => self.source.ended(),
            Decoding::Whole | Decoding::Done => true,
            _ => false,
        }
    }

    /// Offset of the first byte of the current member; in a plain file, of the window.
    pub fn here(&self) -> u64 {
        match self.decoding {
            Decoding::Plain => self.source.offset(),
            _ => self.member_start,
        }
    }

    /// Where the raw bytes of what has been decoded so far end.
    pub fn raw_end(&self) -> u64 {
        self.source.offset()
    }

    /// Decoded bytes of the member before the window; 0 at the beginning of a member and always in a plain file.
    pub fn inner(&self) -> u64 {
        match self.decoding {
            Decoding::Plain => 0,
            _ => self.member_passed,
        }
    }

    pub fn take_fault(&mut self) -> Option<Fault> {
        if self.window().is_empty() { self.fault.take() } else { None }
    }

    pub fn has_fault(&self) -> bool {
        self.fault.is_some()
    }

    /// Adds bytes of the current member to the window; false when it has no more.
    pub fn more(&mut self) -> io::Result<bool> {
        match self.decoding {
            Decoding::Plain => {
                let before = self.source.window().len();
                self.source.fill(before + STREAM_STEP_BYTES)?;
                Ok(self.source.window().len() > before)
            }
            Decoding::Whole | Decoding::Done => Ok(false),
            Decoding::Begun(_) if self.out.len() < BEGINNING_BYTES_MAX => self.more_beginning(),
            Decoding::Begun(_) => self.decode_all(),
            Decoding::Gzip(_) => self.more_gzip_by(STREAM_STEP_BYTES),
            Decoding::Zstd => self.more_zstd(),
        }
    }

    /// Grows the window to `bytes`, or to the end of the member.
    pub fn reach(&mut self, bytes: usize) -> io::Result<()> {
        while self.window().len() < bytes && self.more()? {}
        Ok(())
    }

    fn make_room(&mut self) {
        if self.position == self.out.len() {
            self.out.clear();
            self.position = 0;
        } else if self.position >= STREAM_STEP_BYTES {
            self.out.drain(..self.position);
            self.position = 0;
        }
    }

    fn end_member(&mut self, fault: Option<(Rule, String)>) {
        if let Decoding::Gzip(state) = std::mem::replace(&mut self.decoding, Decoding::Done) {
            self.spare = Some(state);
        }
        self.fault = fault.map(|(rule, detail)| Fault { rule, detail });
    }

    /// Begins the next member and appends its first bytes to the window. False at the end of the file. What stands between members is
    /// reported; after a fault the next member is searched from just behind the beginning of the damaged one.
    pub fn join_next(&mut self, findings: &mut Findings) -> io::Result<bool> {
        if matches!(self.decoding, Decoding::Plain) {
            return Ok(false);
        }
        self.make_room();
        loop {
            self.source.fill(18)?;
            let window = self.source.window();
            if window.is_empty() {
                return Ok(false);
            }
            let offset = self.source.offset();
            if window[0] == 0 {
                self.skip_zeros(findings)?;
                continue;
            }
            match (sniff(window), self.container) {
                (Container::Gzip, _) if begins_gzip(window) => {
                    self.container = Container::Gzip;
                    self.member_start = offset;
                    self.member_passed = 0;
                    if self.begin_gzip()? {
                        return Ok(true);
                    }
                }
                (Container::Zstd, _) => {
                    self.container = Container::Zstd;
                    self.member_start = offset;
                    self.member_passed = 0;
                    if self.begin_zstd(findings)? {
                        return Ok(true);
                    }
                    continue;
                }
                _ if begins_version(window) => {
                    findings.push(Rule::ContainerSwitch, offset, None, "plain records follow");
                    self.container = Container::Plain;
                    self.out.clear();
                    self.position = 0;
                    self.decoding = Decoding::Plain;
                    self.member_start = offset;
                    return Ok(true);
                }
                _ => {}
            }
            if !self.search(offset, findings)? {
                return Ok(false);
            }
        }
    }

    /// A plain file turned out to go on compressed.
    pub fn switch_if_compressed(&mut self, findings: &mut Findings) -> io::Result<bool> {
        if !matches!(self.decoding, Decoding::Plain) {
            return Ok(false);
        }
        self.source.fill(PROBE_BYTES)?;
        let offset = self.source.offset();
        if sniff(self.source.window()) == Container::Plain || !self.probe_here(0)? {
            return Ok(false);
        }
        findings.push(Rule::ContainerSwitch, offset, None, "compressed records follow");
        self.decoding = Decoding::Done;
        self.join_next(findings)
    }

    /// After damage: goes back to just behind the beginning of the damaged member, if the source can, and finds the next one.
    pub fn search_after_fault(&mut self, findings: &mut Findings) -> io::Result<bool> {
        self.decoding = Decoding::Done;
        self.out.clear();
        self.position = 0;
        let from = self.member_start + 1;
        let allowed = REREAD_BYTES_MIN + REREAD_FACTOR_MAX * self.source.offset();
        if self.source.can_go_back() && self.source.reread <= allowed {
            self.source.go_to(from)?;
        }
        self.search(self.member_start, findings)
    }

    /// Moves the source to the next place where a member begins a record; reports the bytes passed.
    fn search(&mut self, from: u64, findings: &mut Findings) -> io::Result<bool> {
        let magic: &[u8] = match self.container {
            Container::Zstd => &ZSTD_MAGIC,
            _ => &GZIP_MAGIC,
        };
        let finder = memmem::Finder::new(magic);
        let mut step = usize::from(self.source.offset() == from);
        loop {
            self.source.fill(step + READ_BYTES / 2)?;
            let window = self.source.window();
            if window.len() <= step {
                self.source.consume(window.len());
                let passed = self.source.offset() - from;
                if passed > 0 {
                    findings.push(Rule::Garbage, from, None, format!("{passed} bytes to the end of the file"));
                }
                return Ok(false);
            }
            match finder.find(&window[step..]) {
                Some(at) => {
                    self.source.consume(step + at);
                    self.source.fill(PROBE_BYTES)?;
                    if self.probe_here(0)? {
                        let passed = self.source.offset() - from;
                        findings.push(Rule::Garbage, from, None, format!("{passed} bytes"));
                        return Ok(true);
                    }
                    step = 1;
                }
                None if self.source.ended() => {
                    let all = window.len();
                    self.source.consume(all);
                    step = 0;
                }
                None => {
                    let passed = window.len() - magic.len();
                    self.source.consume(passed);
                    step = 0;
                }
            }
        }
    }

    /// Whether a member that decodes, and whose first bytes begin a record, stands in the source `at` bytes ahead.
    fn probe_here(&mut self, at: usize) -> io::Result<bool> {
        let window = &self.source.window()[at..];
        let mut first = [0u8; PROBE_BYTES];
        let got = match sniff(window) {
            Container::Gzip => {
                let Some(header) = gzip_header(window) else { return Ok(false) };
                let probe = self.probe.get_or_insert_with(|| flate2::Decompress::new(false));
                probe.reset(false);
                let _ = probe.decompress(&window[header.length..], &mut first, flate2::FlushDecompress::None);
                probe.total_out() as usize
            }
            Container::Zstd => {
                let context = self.zstd.get_or_insert_with(new_zstd);
                let _ = context.reset(zstd_safe::ResetDirective::SessionOnly);
                let mut output = zstd_safe::OutBuffer::around(&mut first[..]);
                let mut input = zstd_safe::InBuffer::around(window);
                let _ = context.decompress_stream(&mut output, &mut input);
                let got = output.pos();
                let _ = context.reset(zstd_safe::ResetDirective::SessionOnly);
                got
            }
            Container::Plain => return Ok(false),
        };
        let start = first[..got].iter().position(|b| !matches!(b, b'\r' | b'\n')).unwrap_or(got);
        Ok(crate::arc::begins_any_record(&first[start..got]))
    }

    fn skip_zeros(&mut self, findings: &mut Findings) -> io::Result<()> {
        let from = self.source.offset();
        loop {
            let window = self.source.window();
            let zeros = window.iter().position(|&b| b != 0).unwrap_or(window.len());
            let all = zeros == window.len();
            self.source.consume(zeros);
            if !all || self.source.ended() {
                break;
            }
            self.source.fill(READ_BYTES / 2)?;
        }
        findings.push(Rule::ContainerPadding, from, None, format!("{} bytes", self.source.offset() - from));
        Ok(())
    }

    /// False when the frame was not one with content (a dictionary, a skippable frame).
    fn begin_zstd(&mut self, findings: &mut Findings) -> io::Result<bool> {
        let head: [u8; 4] = *self.source.window().first_chunk().expect("sniffed");
        if head == ZSTD_MAGIC {
            let context = self.zstd.get_or_insert_with(new_zstd);
            let _ = context.reset(zstd_safe::ResetDirective::SessionOnly);
            self.decoding = Decoding::Zstd;
            self.more_zstd()?;
            return Ok(true);
        }
        let offset = self.source.offset();
        let Some(length) =
            self.source.window().get(4..8).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize)
        else {
            findings.push(Rule::ContainerTruncated, offset, None, "skippable frame");
            let all = self.source.window().len();
            self.source.consume(all);
            return Ok(false);
        };
        let first = offset == 0 || self.zstd.is_none();
        if head == dictionary::MAGIC && first {
            if length > ZSTD_DICTIONARY_BYTES_MAX {
                findings.push(Rule::DictionaryMissing, offset, None, format!("{length} bytes are more than accepted"));
            } else {
                self.source.fill(8 + length)?;
                let dictionary = self.source.window().get(8..8 + length).and_then(dictionary::unpack);
                let context = self.zstd.get_or_insert_with(new_zstd);
                if dictionary.is_none_or(|d| context.load_dictionary(&d).is_err()) {
                    findings.push(Rule::DictionaryMissing, offset, None, "cannot be loaded");
                }
            }
        }
        self.source.go_to(offset + 8 + length as u64)?;
        Ok(false)
    }

    fn more_zstd(&mut self) -> io::Result<bool> {
        self.make_room();
        let before = self.out.len();
        let step = STREAM_STEP_BYTES;
        self.out.resize(before + step, 0);
        let context = self.zstd.as_mut().expect("made when the frame began");
        let mut made = 0;
        let mut end = None;
        while end.is_none() && made < step {
            self.source.fill(1)?;
            if self.source.window().is_empty() {
                end = Some(Some((Rule::ContainerTruncated, "zstd frame".to_owned())));
                break;
            }
            let mut output = zstd_safe::OutBuffer::around(&mut self.out[before + made..before + step]);
            let mut input = zstd_safe::InBuffer::around(self.source.window());
            let status = context.decompress_stream(&mut output, &mut input);
            let (used, got) = (input.pos(), output.pos());
            self.source.consume(used);
            made += got;
            end = match status {
                Ok(0) => Some(None),
                Ok(_) if used == 0 && got == 0 => {
                    Some(Some((Rule::ContainerDamaged, "zstd frame does not go on".to_owned())))
                }
                Ok(_) => None,
                Err(code) => {
                    let name = zstd_safe::get_error_name(code);
                    let rule = if name.contains("checksum") {
                        Rule::ContainerChecksum
                    } else if name.contains("ictionary") {
                        Rule::DictionaryMissing
                    } else {
                        Rule::ContainerDamaged
                    };
                    Some(Some((rule, name.to_owned())))
                }
            };
        }
        self.out.truncate(before + made);
        if let Some(fault) = end {
            self.end_member(fault);
        }
        Ok(made > 0)
    }
}

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

fn new_zstd() -> zstd_safe::DCtx<'static> {
    let mut context = zstd_safe::DCtx::create();
    let _ = context.set_parameter(zstd_safe::DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX));
    context
}

/// By content, never by name.
pub(crate) fn sniff(first: &[u8]) -> Container {
    match first {
        [0x1f, 0x8b, ..] => Container::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Container::Zstd,
        [low, 0x2a, 0x4d, 0x18, ..] if low & 0xf0 == 0x50 => Container::Zstd,
        _ => Container::Plain,
    }
}

fn begins_version(window: &[u8]) -> bool {
    window.starts_with(b"WARC/")
}
