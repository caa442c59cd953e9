//! The reader: records one after another, out of whole, odd and broken files.
//!
//! One path serves both modes. Framing faults (what was skipped, cut or doubtful) are always reported; in strict mode each head is also
//! held against the standard (`rules.rs`). [`Reader::next`] reads top to bottom: finish the record before, find where the next one
//! begins, read its head, decide how long its block is.

use crate::container::{Container, Stream};
use crate::find::{Family, begins_head, find_record, first_line, head_end, searched, trim_record_end};
use crate::finding::{Finding, Findings, Rule};
use crate::head::Head;
use crate::limits::*;
use crate::options::Options;
use crate::source::Source;
use crate::{arc, rules};
use memchr::memmem;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    /// So many bytes are left.
    Known(u64),
    /// The length is not known: up to the next record; so many bytes are already known to belong to it.
    Search(usize),
    Ended,
}

/// Two line ends.
const RECORD_END_BYTES: u64 = 4;

/// Where a finished record ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Raw bytes from the record's offset to the next record or the end of its member.
    pub length: u64,
    /// Bytes of the block that were there.
    pub block_bytes: u64,
    /// The block, or the compressed data it came from, is not whole.
    pub damaged: bool,
}

/// Reads ARC and WARC records from a file or stream.
pub struct Reader {
    stream: Stream,
    options: Options,
    findings: Findings,
    family: Family,
    head: Head,
    number: u64,
    offset: u64,
    inner: u64,
    records: u64,
    block: Block,
    block_bytes: u64,
    damaged: bool,
    /// A record was handed out and its end has not been looked for.
    open: bool,
    last_end: End,
    member_records: (u64, u64),
    stepped_over: u64,
    /// Bytes from here on that belong to one head in which several are fused: each of them ends where the next begins.
    fused: usize,
    /// Bytes from here on in which no head ends.
    unended: usize,
    /// Records that begin at or behind this offset belong to somebody else.
    stop: u64,
}

impl Reader {
    /// A file, by content: plain, gzip or zstd; ARC or WARC. (Packages: see [`crate::wacz`].)
    pub fn open(path: impl AsRef<Path>, options: Options) -> io::Result<Reader> {
        Reader::at(path, 0, None, options)
    }

    /// The bytes of a file from `offset`, `length` of them.
    pub fn at(path: impl AsRef<Path>, offset: u64, length: Option<u64>, options: Options) -> io::Result<Reader> {
        Reader::of_file(File::open(path)?, offset, length, options)
    }

    /// The same of an open file.
    pub fn of_file(file: File, offset: u64, length: Option<u64>, options: Options) -> io::Result<Reader> {
        let limit = length.map_or(u64::MAX, |n| offset.saturating_add(n));
        Reader::of_source(Source::file(file, offset, limit)?, options)
    }

    /// Any stream, such as standard input. Damage in it is survived too, but what was read cannot be looked at again.
    pub fn new(stream: impl Read + Send + 'static, options: Options) -> io::Result<Reader> {
        Reader::of_source(Source::stream(Box::new(stream)), options)
    }

    fn of_source(source: Source, options: Options) -> io::Result<Reader> {
        let mut findings = Findings::default();
        let heads_first = options.skim || !options.filter.is_empty();
        let stream = Stream::begin(source, heads_first, &mut findings)?;
        let end = End { length: 0, block_bytes: 0, damaged: false };
        Ok(Reader {
            stream,
            options,
            findings,
            family: Family::Unknown,
            head: Head::default(),
            number: 0,
            offset: 0,
            inner: 0,
            records: 0,
            block: Block::Ended,
            block_bytes: 0,
            damaged: false,
            open: false,
            last_end: end,
            member_records: (u64::MAX, 0),
            stepped_over: 0,
            fused: 0,
            unended: 0,
            stop: u64::MAX,
        })
    }

    /// Ends before the first record that begins at or behind `offset`, which then belongs to the reader of the next part.
    pub fn stop_at(&mut self, offset: u64) {
        self.stop = offset;
    }

    /// The next record, or `None` at the end.
    #[allow(clippy::should_implement_trait)] // it lends: an iterator could not
    pub fn next(&mut self) -> io::Result<Option<Record<'_>>> {
        self.finish()?;
        loop {
            if !self.find_start()? {
                return Ok(None);
            }
            if self.stream.here() >= self.stop {
                return Ok(None);
            }
            if !self.read_head()? {
                continue;
            }
            self.number = self.records;
            self.records += 1;
            self.open = true;
            if self.options.strict {
                rules::check_head(&self.head, self.offset, self.number, &mut self.findings);
            }
            self.note_head_faults();
            if !self.options.filter.wants(&self.head) {
                self.skip_unwanted()?;
                continue;
            }
            self.plan_block()?;
            return Ok(Some(Record { reader: self }));
        }
    }

    /// The record that [`Reader::next`] lent last, once more: for whoever looked at it to decide whether it is the one.
    pub fn current(&mut self) -> Option<Record<'_>> {
        self.open.then_some(Record { reader: self })
    }

    /// What was found so far and not yet taken.
    pub fn findings(&self) -> &[Finding] {
        self.findings.as_slice()
    }

    /// Takes what was found since the last call.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        self.findings.take()
    }

    /// Findings beyond those that could be kept.
    pub fn findings_dropped(&self) -> u64 {
        self.findings.dropped()
    }

    /// Records met so far, unwanted ones included.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Records whose block was not inflated to its end, and so not verified: only if the options allow it, see [`Options::skim`].
    pub fn stepped_over(&self) -> u64 {
        self.stepped_over
    }

    /// How the file is compressed.
    pub fn container(&self) -> Container {
        self.stream.container()
    }

    /// Raw offset up to which the file has been read.
    pub fn raw_offset(&self) -> u64 {
        self.stream.raw_end()
    }

    /// Where the record that would come next begins, once the last one is finished.
    pub fn next_offset(&self) -> u64 {
        self.stream.here()
    }

    fn note(&mut self, rule: Rule, detail: impl Into<String>) {
        let record = self.open.then_some(self.number);
        let offset = if self.open { self.offset } else { self.stream.here() };
        self.findings.push(rule, offset, record, detail);
    }

    // ── where the next record begins ──

    /// Brings the window to the first byte of a record; false at the end of the file.
    fn find_start(&mut self) -> io::Result<bool> {
        loop {
            self.skip_line_ends()?;
            if self.stream.window().is_empty() {
                if self.stream.more()? {
                    continue;
                }
                if !self.enter_next_member()? {
                    if self.records == 0 && self.options.strict && self.findings.as_slice().is_empty() {
                        self.findings.push(Rule::FileEmpty, 0, None, "");
                    }
                    return Ok(false);
                }
                continue;
            }
            if self.record_begins()? {
                return Ok(true);
            }
            if self.stream.switch_if_compressed(&mut self.findings)? {
                continue;
            }
            self.skip_garbage()?;
        }
    }

    fn skip_line_ends(&mut self) -> io::Result<()> {
        loop {
            let window = self.stream.window();
            let count = window.iter().position(|b| !matches!(b, b'\r' | b'\n')).unwrap_or(window.len());
            let all = count == window.len();
            self.stream.consume(count);
            if !all || !self.stream.more()? {
                return Ok(());
            }
        }
    }

    fn enter_next_member(&mut self) -> io::Result<bool> {
        if let Some(fault) = self.stream.take_fault() {
            self.note(fault.rule, fault.detail);
            if !self.stream.search_after_fault(&mut self.findings)? {
                return Ok(false);
            }
        }
        let more = self.stream.join_next(&mut self.findings)?;
        let empty = more && self.stream.container() != Container::Plain && self.stream.window().is_empty();
        if empty && !self.stream.more()? && !self.stream.has_fault() {
            self.note(Rule::MemberEmpty, "");
        }
        Ok(more)
    }

    /// Whether a record begins at the window.
    fn record_begins(&mut self) -> io::Result<bool> {
        self.stream.reach(5)?;
        let window = self.stream.window();
        if window.len() >= 5 && window[..5].eq_ignore_ascii_case(b"WARC/") {
            return Ok(true);
        }
        if self.family == Family::Warc {
            return Ok(false);
        }
        self.reach_line_end()?;
        Ok(arc::parse(first_line(self.stream.window())).is_some())
    }

    fn reach_line_end(&mut self) -> io::Result<()> {
        while memchr::memchr(b'\n', self.stream.window()).is_none()
            && self.stream.window().len() < ARC_LINE_BYTES_MAX
            && self.stream.more()?
        {}
        Ok(())
    }

    /// Passes over bytes up to the next record of this member, or its end. Returns how many.
    fn skip_garbage(&mut self) -> io::Result<u64> {
        let from = self.stream.here();
        let mut passed = 0u64;
        let mut step = 1;
        loop {
            let found = find_record(self.stream.window(), step, self.family);
            let window = self.stream.window().len();
            if let Some(at) = found {
                self.stream.consume(at);
                passed += at as u64;
                break;
            }
            // A record's first lines may straddle the end of the window: keep enough of it to see them whole.
            let keep = if self.stream.member_ended() { 0 } else { ARC_LINE_BYTES_MAX.min(window - 1) };
            self.stream.consume(window - keep);
            passed += (window - keep) as u64;
            step = 0;
            if !self.stream.more()? {
                let rest = self.stream.window().len();
                if let Some(at) = find_record(self.stream.window(), 0, self.family) {
                    self.stream.consume(at);
                    passed += at as u64;
                } else {
                    self.stream.consume(rest);
                    passed += rest as u64;
                }
                break;
            }
        }
        self.findings.push(Rule::Garbage, from, None, format!("{passed} bytes"));
        Ok(passed)
    }

    // ── its head ──

    /// False when what looked like a record has no head that could be read; it was then passed over.
    fn read_head(&mut self) -> io::Result<bool> {
        self.offset = self.stream.here();
        self.inner = self.stream.inner();
        self.damaged = false;
        let window = self.stream.window();
        if window.len() >= 5 && window[..5].eq_ignore_ascii_case(b"WARC/") {
            let Some(length) = self.head_length()? else {
                self.findings.push(Rule::HeadTooLong, self.offset, None, format!("more than {HEAD_BYTES_MAX} bytes"));
                let unended = self.stream.window().len();
                let passed = self.skip_garbage()?;
                self.unended = unended.saturating_sub(usize::try_from(passed).unwrap_or(usize::MAX));
                return Ok(false);
            };
            let length = self.read_warc_head(length);
            self.stream.consume(length);
            self.family = Family::Warc;
        } else {
            let window = self.stream.window();
            let line = first_line(window);
            let length = (line.len() + 1).min(window.len());
            let Some(parsed) = arc::parse(line) else { return Ok(false) };
            self.unended = 0;
            self.head.read_arc(&parsed, &window[..length]);
            self.stream.consume(length);
            self.family = Family::Arc;
        }
        self.count_in_member();
        Ok(true)
    }

    /// Damage can fuse the beginning of one head with another, mid-line. Two identifiers give it away; the head then ends where the other
    /// record begins, and so do all others up to the common end, which is not looked at again for each of them.
    fn read_warc_head(&mut self, length: usize) -> usize {
        let fused = std::mem::take(&mut self.fused) > 0;
        let raw = &self.stream.window()[..length];
        if !fused {
            self.head.read_warc(raw);
            if ["WARC-Record-ID", "Content-Length"].iter().all(|name| self.head.get_all(name).count() < 2) {
                return length;
            }
        }
        let other = memmem::find_iter(&raw[1..], b"WARC/").map(|at| at + 1).find(|&at| begins_head(&raw[at..]));
        match other {
            Some(at) => {
                self.head.read_warc(&raw[..at]);
                self.fused = length - at;
                at
            }
            None => {
                if fused {
                    self.head.read_warc(raw);
                }
                length
            }
        }
    }

    /// Bytes up to and with the empty line; where there is none, up to the next record or the end of what belongs together.
    fn head_length(&mut self) -> io::Result<Option<usize>> {
        if self.fused > 0 {
            return Ok(Some(self.fused));
        }
        let unended = std::mem::take(&mut self.unended);
        let mut from = searched(&self.stream.window()[..unended.min(self.stream.window().len())]);
        loop {
            let window = self.stream.window();
            if let Some(length) = head_end(window, from) {
                return Ok(Some(length));
            }
            if window.len() > HEAD_BYTES_MAX {
                return Ok(None);
            }
            from = searched(window);
            if self.stream.more()? {
                continue;
            }
            // The member ends inside the head: it may go on in the next one.
            let before = self.stream.window().len();
            if self.stream.has_fault() || !self.stream.join_next(&mut self.findings)? {
                return Ok(Some(before));
            }
            if find_record(&self.stream.window()[before..], 0, self.family) == Some(0) {
                return Ok(Some(before));
            }
            self.findings.push(Rule::MemberSplitsRecord, self.offset, None, "in its head");
        }
    }

    fn count_in_member(&mut self) {
        if self.stream.container() == Container::Plain {
            return;
        }
        if self.member_records.0 == self.offset {
            self.member_records.1 += 1;
            if self.member_records.1 == 2 {
                self.findings.push(Rule::MemberManyRecords, self.offset, Some(self.records), "");
            }
        } else {
            self.member_records = (self.offset, 1);
        }
    }

    fn note_head_faults(&mut self) {
        let faults = self.head.faults;
        if faults == Default::default() {
            return;
        }
        let version = self.head.version();
        if faults.unended {
            self.note(Rule::HeadUnended, "");
            self.damaged = true;
        }
        if faults.line_without_colon {
            self.note(Rule::HeadLine, "");
        }
        if !self.options.strict {
            return;
        }
        if faults.version_line {
            let known = matches!(version, crate::Version::Warc(0, 17 | 18) | crate::Version::Warc(1, 0 | 1));
            let line = String::from_utf8_lossy(crate::head::trim(first_line(self.head.raw()))).into_owned();
            self.note(if known { Rule::VersionLine } else { Rule::Version }, line);
        }
        if faults.line_feed_only {
            self.note(Rule::HeadLineEnd, "");
        }
        if faults.characters {
            self.note(Rule::HeadCharacters, "");
        }
        if faults.arc_line {
            self.note(Rule::ArcLine, String::from_utf8_lossy(first_line(self.head.raw())).into_owned());
        }
    }

    // ── its block ──

    fn skip_unwanted(&mut self) -> io::Result<()> {
        self.block_bytes = 0;
        self.plan_block()?;
        self.finish()
    }

    /// Decides how long the block is: as declared where a record's end stands there, else up to the next record.
    fn plan_block(&mut self) -> io::Result<()> {
        self.block_bytes = 0;
        if self.head.faults.unended && !self.stream.window().is_empty() {
            // Another record begins where the head breaks off: there is no block.
            self.block = Block::Known(0);
            return Ok(());
        }
        let Some(declared) = self.head.content_length() else {
            let value = self.head.get(if self.head.is_arc() { "Archive-length" } else { "Content-Length" });
            let (rule, detail) = match value {
                Some(value) => (Rule::LengthInvalid, String::from_utf8_lossy(value).into_owned()),
                None => (Rule::LengthMissing, String::new()),
            };
            self.note(rule, detail);
            self.block = Block::Search(0);
            return Ok(());
        };
        self.block = Block::Known(declared);
        if self.stream.find_end(self.decoded_length(declared), &mut self.findings)? {
            return Ok(()); // the member says the same: nothing to doubt, and nothing to decode yet
        }
        self.stream.want_all()?;
        let ahead = declared.saturating_add(BEHIND_BYTES as u64);
        if ahead > LOOKAHEAD_BYTES as u64 {
            return self.plan_long_block(declared);
        }
        self.stream.reach(ahead as usize)?;
        let declared = declared as usize;
        let window = self.stream.window();
        if window.len() >= declared {
            let after = &window[declared..];
            let ended = self.stream.member_ended();
            if self.ends_here(after, ended) {
                return Ok(());
            }
            let inside = find_record(window, 0, self.family).filter(|&at| at < declared + BEHIND_BYTES);
            return self.distrust(declared as u64, inside);
        }
        // The member is shorter than the block. In a plain file that is the end of the file.
        let inside = find_record(window, 0, self.family);
        match inside {
            Some(_) => self.distrust(declared as u64, inside),
            None => Ok(()),
        }
    }

    /// How long a member is that holds what was read of it, the rest of the block and the record's end.
    fn decoded_length(&self, left: u64) -> u64 {
        self.stream.inner().saturating_add(left).saturating_add(RECORD_END_BYTES)
    }

    /// A block too long to look behind: a plain file can be asked what stands there, anything else is believed.
    fn plan_long_block(&mut self, declared: u64) -> io::Result<()> {
        if self.stream.container() != Container::Plain {
            return Ok(());
        }
        let mut after = [0u8; BEHIND_BYTES];
        let Some(got) = self.stream.source.peek(self.stream.source.offset().saturating_add(declared), &mut after)?
        else {
            return Ok(());
        };
        if self.ends_here(&after[..got], got < after.len()) && got > 0 {
            return Ok(());
        }
        self.note(Rule::LengthDoubtful, format!("{declared}"));
        self.damaged = true;
        self.block = Block::Search(0);
        Ok(())
    }

    fn distrust(&mut self, declared: u64, inside: Option<usize>) -> io::Result<()> {
        self.damaged = true;
        match inside {
            Some(at) => {
                let length = trim_record_end(&self.stream.window()[..at], self.family);
                let rule = if (length as u64) < declared { Rule::LengthTooLarge } else { Rule::LengthDoubtful };
                self.note(rule, format!("declared {declared}, found {length}"));
                self.block = Block::Known(length as u64);
            }
            None => self.note(Rule::LengthDoubtful, format!("{declared}")),
        }
        Ok(())
    }

    /// Whether a record may end before these bytes: line ends, then the end of the member or another record.
    fn ends_here(&self, after: &[u8], ended: bool) -> bool {
        if after.starts_with(b"\r\n\r\n") && self.family != Family::Arc {
            return true;
        }
        let rest = &after[after.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count()..];
        if rest.is_empty() {
            return ended || !after.is_empty();
        }
        // A piece of a head is enough here: it only has to agree with one as far as it goes.
        match self.family {
            Family::Arc => arc::begins_any_record(rest),
            _ => begins_head(rest) || (after.len() > rest.len() && arc::begins_any_record(rest)),
        }
    }

    /// Bytes of the block at hand; empty at its end.
    fn fill_block(&mut self) -> io::Result<usize> {
        loop {
            match self.block {
                Block::Ended | Block::Known(0) => return Ok(0),
                Block::Known(left) => {
                    let here = self.stream.window().len();
                    if here > 0 {
                        return Ok(here.min(usize::try_from(left).unwrap_or(usize::MAX)));
                    }
                    if self.stream.more()? {
                        continue;
                    }
                    if !self.go_on_in_next_member(left)? {
                        self.block = Block::Ended;
                        return Ok(0);
                    }
                }
                Block::Search(known) if known > 0 => return Ok(known),
                Block::Search(_) => self.search_block_end()?,
            }
        }
    }

    /// The member ended, the block did not.
    fn go_on_in_next_member(&mut self, left: u64) -> io::Result<bool> {
        self.damaged = true;
        if self.stream.has_fault() {
            // The fault itself is reported when the next member is looked for.
            self.note(Rule::BlockTruncated, format!("{left} bytes are missing"));
            return Ok(false);
        }
        if self.stream.container() == Container::Plain || !self.stream.join_next(&mut self.findings)? {
            self.note(Rule::BlockTruncated, format!("{left} bytes are missing"));
            return Ok(false);
        }
        self.stream.reach(PROBE_BYTES)?;
        if find_record(self.stream.window(), 0, self.family) == Some(0) {
            self.note(Rule::LengthTooLarge, format!("{left} bytes are missing"));
            return Ok(false);
        }
        self.damaged = false;
        self.note(Rule::MemberSplitsRecord, "in its block");
        Ok(true)
    }

    fn search_block_end(&mut self) -> io::Result<()> {
        self.stream.reach(2 * ARC_LINE_BYTES_MAX)?;
        let window = self.stream.window();
        self.block = match find_record(window, 0, self.family) {
            Some(at) => Block::Known(trim_record_end(&window[..at], self.family) as u64),
            None if self.stream.member_ended() => Block::Known(trim_record_end(window, self.family) as u64),
            None => Block::Search(window.len() - ARC_LINE_BYTES_MAX),
        };
        Ok(())
    }

    fn consume_block(&mut self, bytes: usize) {
        self.stream.consume(bytes);
        self.block_bytes += bytes as u64;
        self.block = match self.block {
            Block::Known(left) => Block::Known(left - bytes as u64),
            Block::Search(known) => Block::Search(known - bytes),
            Block::Ended => Block::Ended,
        };
    }

    /// Passes over what is left of the record, up to the next one.
    fn finish(&mut self) -> io::Result<()> {
        if !self.open {
            return Ok(());
        }
        if let Block::Known(left) = self.block {
            if left > 0 && self.stream.can_step_over() {
                self.stream.step_over()?;
                self.stepped_over += 1;
                self.end_record(left);
                return Ok(());
            }
            let passed = self.stream.pass(left)?;
            self.block_bytes += passed;
            self.block = Block::Known(left - passed);
        }
        loop {
            let here = self.fill_block()?;
            if here == 0 {
                break;
            }
            self.consume_block(here);
        }
        self.damaged |= self.stream.has_fault();
        self.finish_end()?;
        self.end_record(0);
        Ok(())
    }

    fn end_record(&mut self, stepped_over: u64) {
        self.block = Block::Ended;
        self.block_bytes += stepped_over;
        let raw_end =
            if self.stream.container() == Container::Plain { self.stream.here() } else { self.stream.raw_end() };
        self.last_end =
            End { length: raw_end.saturating_sub(self.offset), block_bytes: self.block_bytes, damaged: self.damaged };
        self.open = false;
    }

    /// The line ends behind the block.
    fn finish_end(&mut self) -> io::Result<()> {
        self.stream.reach(8)?;
        let window = self.stream.window();
        let ends = window.iter().take(8).take_while(|b| matches!(b, b'\r' | b'\n')).count();
        let proper = match self.family {
            Family::Arc => ends >= 1 || window.is_empty(),
            _ => window[..ends] == *b"\r\n\r\n",
        };
        if !proper && !self.damaged && (self.options.strict || ends == 0) {
            let rule = if ends > 4 { Rule::EndExtra } else { Rule::EndMissing };
            if ends > 4 || !(self.family == Family::Arc && ends == 0) {
                self.note(rule, "");
            }
        }
        self.skip_line_ends()
    }
}

/// One record, lent by its reader. Reading from it reads the block as it stands in the file.
pub struct Record<'r> {
    reader: &'r mut Reader,
}

impl Record<'_> {
    /// The head as it stands.
    pub fn head(&self) -> &Head {
        &self.reader.head
    }
    /// Where the record, or the member that holds it, begins in the file.
    pub fn offset(&self) -> u64 {
        self.reader.offset
    }
    /// Decoded bytes before it in its member; 0 unless a member holds several records.
    pub fn inner_offset(&self) -> u64 {
        self.reader.inner
    }
    /// Whether it stands in the file uncompressed.
    pub fn is_plain(&self) -> bool {
        self.reader.stream.container() == Container::Plain
    }
    /// Its number in the file, counted from 0.
    pub fn number(&self) -> u64 {
        self.reader.number
    }
    /// Passes over what was not read and tells where the record ends.
    pub fn finish(self) -> io::Result<End> {
        self.reader.finish()?;
        Ok(self.reader.last_end)
    }
    /// Findings can be added by whoever judges the block.
    pub fn note(&mut self, rule: Rule, detail: impl Into<String>) {
        self.reader.note(rule, detail);
    }
    /// The whole block if it is at hand without reading on, which is so for blocks up to the look-ahead.
    pub fn whole_block(&self) -> Option<&[u8]> {
        match self.reader.block {
            Block::Known(left) => self.reader.stream.window().get(..usize::try_from(left).ok()?),
            _ => None,
        }
    }
}

impl Read for Record<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let here = self.fill_buf()?;
        let count = here.len().min(into.len());
        into[..count].copy_from_slice(&here[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Record<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let count = self.reader.fill_block()?;
        Ok(&self.reader.stream.window()[..count])
    }
    fn consume(&mut self, bytes: usize) {
        self.reader.consume_block(bytes);
    }
}

/// Where, from `offset` on and within `length` bytes, a compressed member begins a record.
pub(crate) fn next_member(file: File, offset: u64, length: u64) -> io::Result<Option<u64>> {
    Stream::find_member(Source::file(file, offset, offset.saturating_add(length))?)
}
