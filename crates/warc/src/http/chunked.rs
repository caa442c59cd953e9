//! Chunked bodies, as a machine over pieces of bytes.
//!
//! ```text
//!   body   = *chunk last-chunk trailer
//!   chunk  = size-in-hex [ ";" extension ] CRLF  size × byte  CRLF
//!   last   = "0" [ ";" extension ] CRLF
//!   trailer = *( field CRLF ) CRLF
//! ```
//!
//! Archives also hold bodies that are declared chunked but were stored decoded. The first chunk is therefore held back until
//! the line end behind it proves the framing; without that proof every byte is handed out as it stands.

use memchr::memchr;

use super::limits::{CHUNK_LINE_BYTES_MAX, CHUNK_PROOF_BYTES_MAX, TRAILER_BYTES_MAX};
use super::{Deviation, Deviations, Rule};

/// What the next bytes of the input are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// So many bytes are framing: drop them.
    Skip(usize),
    /// So many bytes are body.
    Body(usize),
    /// So many bytes were taken, and [`Chunks::held`] is body now, before anything that follows.
    Held(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the line with a chunk's size.
    Size,
    /// In the first chunk, held back.
    Proof {
        left: usize,
    },
    /// Behind the first chunk, still held back.
    ProofEnd,
    Data {
        left: u64,
    },
    DataEnd,
    Trailer,
    /// Behind the end of the body.
    After,
    /// Not, or no longer, chunked.
    Plain,
}

/// Takes the framing off a chunked body.
///
/// Call [`step`](Self::step) with the bytes at hand until they are used up, then with the next ones, and
/// [`finish`](Self::finish) at the end. At most 64 KiB are kept inside.
#[derive(Debug, Clone)]
pub struct Chunks {
    state: State,
    offset: u64,
    /// Still before the proof that the body is chunked.
    unproven: bool,
    line: Vec<u8>,
    line_offset: u64,
    held: Vec<u8>,
    /// Where the first chunk's data begins in `held`: before it stands its size line.
    held_data: usize,
    held_from: usize,
    trailer: Vec<u8>,
    deviations: Deviations,
}

impl Default for Chunks {
    fn default() -> Chunks {
        Chunks::new()
    }
}

impl Chunks {
    /// At the start of a body.
    pub fn new() -> Chunks {
        Chunks {
            state: State::Size,
            offset: 0,
            unproven: true,
            line: Vec::new(),
            line_offset: 0,
            held: Vec::new(),
            held_data: 0,
            held_from: 0,
            trailer: Vec::new(),
            deviations: Deviations::default(),
        }
    }

    /// Judges the start of `input`, which follows directly on what the steps before have taken.
    pub fn step(&mut self, input: &[u8]) -> Step {
        let step = self.judge(input);
        let (Step::Skip(taken) | Step::Body(taken) | Step::Held(taken)) = step;
        self.offset += taken as u64;
        step
    }

    /// Body bytes that were held back; valid after [`Step::Held`] or a `true` from [`finish`](Self::finish).
    pub fn held(&self) -> &[u8] {
        &self.held[self.held_from..]
    }

    /// Trailer fields as they stood, without the empty line.
    pub fn trailer(&self) -> &[u8] {
        &self.trailer
    }

    /// What was odd, with offsets in the chunked body.
    pub fn deviations(&self) -> &[Deviation] {
        self.deviations.as_slice()
    }

    /// The empty line behind the last chunk was met: what follows belongs to something else.
    pub fn is_at_end(&self) -> bool {
        self.state == State::After
    }

    /// Behind the last chunk, in the trailer.
    pub fn is_in_trailer(&self) -> bool {
        self.state == State::Trailer
    }

    /// The framing was not, or is no longer, that of chunks: all that follows is body.
    pub fn is_plain(&self) -> bool {
        self.state == State::Plain
    }

    fn judge(&mut self, input: &[u8]) -> Step {
        match self.state {
            State::Size => self.size_line(input),
            State::Proof { left } => {
                let taken = left.min(input.len());
                self.held.extend_from_slice(&input[..taken]);
                self.state = if taken == left { State::ProofEnd } else { State::Proof { left: left - taken } };
                self.line.clear();
                Step::Skip(taken)
            }
            State::ProofEnd | State::DataEnd => self.data_end(input),
            State::Data { left } => {
                let taken = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
                let left = left - taken as u64;
                self.state = if left == 0 { State::DataEnd } else { State::Data { left } };
                self.line.clear();
                Step::Body(taken)
            }
            State::Trailer => self.trailer_line(input),
            State::After => {
                if !input.is_empty() {
                    self.deviations.note_at(Rule::AfterLastChunk, self.offset);
                }
                Step::Skip(input.len())
            }
            State::Plain => Step::Body(input.len()),
        }
    }

    /// Gathers bytes up to and with LF into `line`: how many were taken, and whether the line is whole.
    fn gather(&mut self, input: &[u8]) -> (usize, bool) {
        if self.line.is_empty() {
            self.line_offset = self.offset;
        }
        let room = CHUNK_LINE_BYTES_MAX - self.line.len();
        let window = &input[..input.len().min(room)];
        let (taken, whole) = memchr(b'\n', window).map_or((window.len(), false), |at| (at + 1, true));
        self.line.extend_from_slice(&window[..taken]);
        (taken, whole)
    }

    fn size_line(&mut self, input: &[u8]) -> Step {
        let (taken, whole) = self.gather(input);
        if !whole && self.line.len() < CHUNK_LINE_BYTES_MAX {
            return Step::Skip(taken);
        }
        let Some(size) = read_size(&self.line).filter(|_| whole) else {
            self.give_up(if self.unproven { Rule::NotChunked } else { Rule::ChunkSize });
            return Step::Held(taken);
        };
        if !self.line.ends_with(b"\r\n") {
            self.deviations.note_at(Rule::ChunkLineEnd, self.line_offset);
        }
        self.state = match usize::try_from(size) {
            Ok(0) => State::Trailer,
            Ok(left) if self.unproven && left <= CHUNK_PROOF_BYTES_MAX => {
                self.held.clear();
                self.held.extend_from_slice(&self.line);
                self.held_data = self.held.len();
                State::Proof { left }
            }
            _ => State::Data { left: size },
        };
        if !matches!(self.state, State::Proof { .. }) {
            self.unproven = false;
        }
        self.line.clear();
        Step::Skip(taken)
    }

    fn data_end(&mut self, input: &[u8]) -> Step {
        let Some(&byte) = input.first() else { return Step::Skip(0) };
        if self.line.is_empty() {
            self.line_offset = self.offset;
        }
        self.line.push(byte);
        match self.line.as_slice() {
            b"\r" => Step::Skip(1),
            b"\n" | b"\r\n" => {
                if self.line.len() == 1 {
                    self.deviations.note_at(Rule::ChunkLineEnd, self.line_offset);
                }
                self.line.clear();
                let proven = self.state == State::ProofEnd;
                self.state = State::Size;
                self.unproven = false;
                if proven {
                    self.held_from = self.held_data;
                    return Step::Held(1);
                }
                Step::Skip(1)
            }
            _ => {
                if self.state == State::ProofEnd {
                    self.held.extend_from_slice(&self.line);
                    self.held_from = 0;
                    self.state = State::Plain;
                    self.deviations.note_at(Rule::NotChunked, 0);
                } else {
                    self.give_up(Rule::ChunkEnd);
                }
                Step::Held(1)
            }
        }
    }

    fn trailer_line(&mut self, input: &[u8]) -> Step {
        let (taken, whole) = self.gather(input);
        if !whole && self.line.len() < CHUNK_LINE_BYTES_MAX {
            return Step::Skip(taken);
        }
        if self.line == b"\r\n" || self.line == b"\n" {
            self.state = State::After;
        } else {
            if !whole || memchr(b':', &self.line).is_none() {
                self.deviations.note_at(Rule::Trailer, self.line_offset);
                self.state = State::After;
            }
            if self.trailer.len() + self.line.len() <= TRAILER_BYTES_MAX {
                self.trailer.extend_from_slice(&self.line);
            }
        }
        self.line.clear();
        Step::Skip(taken)
    }

    /// The framing is broken at the current line: it and all that follows is body.
    fn give_up(&mut self, rule: Rule) {
        self.deviations.note_at(rule, self.line_offset);
        self.held = std::mem::take(&mut self.line);
        self.held_from = 0;
        self.state = State::Plain;
    }

    /// The input is at its end. True when [`held`](Self::held) is a last piece of body.
    pub fn finish(&mut self) -> bool {
        let state = std::mem::replace(&mut self.state, State::After);
        match state {
            State::Size if self.line.is_empty() => {
                // No byte at all is what a HEAD request or a 304 leaves behind.
                if !self.unproven {
                    self.deviations.note_at(Rule::ChunkUnended, self.offset);
                }
                false
            }
            State::Size if self.unproven && read_size(&self.line) != Some(0) => {
                self.give_up(Rule::NotChunked);
                true
            }
            State::Size => {
                let is_last = read_size(&self.line) == Some(0);
                self.deviations.note_at(if is_last { Rule::Trailer } else { Rule::ChunkTruncated }, self.line_offset);
                false
            }
            State::Proof { .. } | State::ProofEnd => {
                let declared = self.held[..self.held_data].ends_with(b"\r\n");
                let rule = match state {
                    _ if !declared => Rule::NotChunked,
                    State::ProofEnd => Rule::ChunkUnended,
                    _ => Rule::ChunkTruncated,
                };
                self.deviations.note_at(rule, if declared { self.offset } else { 0 });
                if declared {
                    self.held_from = self.held_data;
                } else {
                    self.held_from = 0;
                    self.held.append(&mut self.line); // a carriage return that waited for its line feed
                }
                true
            }
            State::Data { .. } => {
                self.deviations.note_at(Rule::ChunkTruncated, self.offset);
                false
            }
            State::DataEnd => {
                self.deviations.note_at(Rule::ChunkUnended, self.offset);
                false
            }
            State::Trailer => {
                self.deviations.note_at(Rule::Trailer, self.offset);
                false
            }
            State::After | State::Plain => false,
        }
    }
}

/// The number at the start of a size line.
fn read_size(line: &[u8]) -> Option<u64> {
    let number = line.split(|&b| b == b';').next().unwrap_or(line).trim_ascii();
    if number.is_empty() || number.len() > 16 || !number.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(number).ok()?, 16).ok()
}
