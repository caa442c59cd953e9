//! The beginning of a DEFLATE stream, a few hundred bytes at a time.
//!
//! Whoever wants no more of a record than its head gets it here without paying for the body: the decoder stops as soon as enough is
//! there and goes on from the same place when asked again. It reads what zlib reads and refuses what zlib refuses; its tables are
//! small, because for a short output building them costs as much as using them. libdeflate, stopped by too small a room, leaves most of
//! the same bytes behind, but builds larger tables (an eighth more time for a head), cannot go on, and does not say how far it came.

mod table;

use table::*;

/// Bits that find most literals and lengths at once.
const LITERAL_BITS: u32 = 9;
/// Bits that find most distances at once.
const DISTANCE_BITS: u32 = 7;
/// Bits of the longest code for code lengths.
const PRECODE_BITS: u32 = 7;
/// Bits that may follow a code for code lengths.
const EXTRA_BITS_MAX: u32 = 7;
/// Ends a block.
const END_SYMBOL: u16 = 256;
/// Longest repetition.
const MATCH_BYTES_MAX: usize = 258;
/// Repetitions are copied in steps of this, which may write a little more than asked.
const COPY_BYTES: usize = 16;

/// What a call gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// As much as was asked for is there.
    More,
    /// The stream is at its end; it took so many bytes of input.
    Ended {
        /// Bytes of input.
        consumed: usize,
    },
}

/// The stream is damaged, or the input ends too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

#[derive(Clone, Copy)]
enum Stage {
    BlockStart,
    Codes,
    /// Bytes left of a stored block.
    Stored(usize),
    Ended,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Codes {
    None,
    Fixed,
    Dynamic,
}

/// A decoder that stops and goes on.
pub(crate) struct Beginning {
    bits: Bits,
    stage: Stage,
    last_block: bool,
    /// Which codes the tables hold.
    codes: Codes,
    literals: Box<Table>,
    distances: Box<Table>,
}

impl Beginning {
    pub fn new() -> Beginning {
        Beginning {
            bits: Bits::default(),
            stage: Stage::BlockStart,
            last_block: false,
            codes: Codes::None,
            literals: Box::new([SPECIAL; TABLE_ENTRIES]),
            distances: Box::new([SPECIAL; TABLE_ENTRIES]),
        }
    }

    /// A new stream follows.
    pub fn start(&mut self) {
        self.bits = Bits::default();
        self.stage = Stage::BlockStart;
        self.last_block = false;
    }

    /// Decodes until `out`, which holds all that this stream gave so far and nothing else, has at least `wanted` bytes, and rarely many
    /// more. `input` begins at the stream's first byte each time.
    pub fn more(&mut self, input: &[u8], out: &mut Vec<u8>, wanted: usize) -> Result<Progress, Unreadable> {
        let mut made = out.len();
        out.resize(wanted.max(made) + MATCH_BYTES_MAX + COPY_BYTES, 0);
        let result = self.run(input, out, &mut made, wanted);
        out.truncate(made);
        self.bits.give_back();
        result
    }

    fn run(&mut self, input: &[u8], out: &mut [u8], made: &mut usize, wanted: usize) -> Result<Progress, Unreadable> {
        loop {
            match self.stage {
                Stage::BlockStart => self.block_start(input)?,
                Stage::Codes => {
                    let ended = self.codes(input, out, made, wanted)?;
                    if !ended {
                        return Ok(Progress::More);
                    }
                    self.end_block();
                }
                Stage::Stored(0) => self.end_block(),
                Stage::Stored(left) => {
                    if *made >= wanted {
                        return Ok(Progress::More);
                    }
                    let count = left.min(wanted - *made);
                    let from = input.get(self.bits.at..self.bits.at + count).ok_or(Unreadable)?;
                    out[*made..*made + count].copy_from_slice(from);
                    *made += count;
                    self.bits.at += count;
                    self.stage = Stage::Stored(left - count);
                }
                Stage::Ended => return Ok(Progress::Ended { consumed: self.bits.consumed() }),
            }
        }
    }

    fn end_block(&mut self) {
        self.stage = if self.last_block { Stage::Ended } else { Stage::BlockStart };
    }

    fn block_start(&mut self, input: &[u8]) -> Result<(), Unreadable> {
        self.bits.refill(input);
        self.last_block = self.bits.take(1) == 1;
        match self.bits.take(2) {
            0 => {
                let at = self.bits.consumed();
                let &[a, b, not_a, not_b] = input.get(at..).and_then(<[u8]>::first_chunk::<4>).ok_or(Unreadable)?;
                if (a, b) != (!not_a, !not_b) {
                    return Err(Unreadable);
                }
                self.bits = Bits { at: at + 4, ..Bits::default() };
                self.stage = Stage::Stored(u16::from_le_bytes([a, b]) as usize);
            }
            1 => {
                self.fixed_codes();
                self.stage = Stage::Codes;
            }
            2 => {
                self.dynamic_codes(input)?;
                self.stage = Stage::Codes;
            }
            _ => return Err(Unreadable),
        }
        self.bits.check(input)
    }

    fn fixed_codes(&mut self) {
        if self.codes == Codes::Fixed {
            return;
        }
        let lengths = |symbol: u16| match symbol {
            0..144 | 280.. => 8,
            144..256 => 9,
            _ => 7,
        };
        let literals: [Code; CODES_MAX] = std::array::from_fn(|at| Code::new(at as u16, lengths(at as u16)));
        let distances: [Code; 32] = std::array::from_fn(|at| Code::new(at as u16, 5));
        let counts = |codes: &[Code]| {
            let mut counts = Counts::default();
            codes.iter().for_each(|code| counts[code.length()] += 1);
            counts
        };
        build(&literals, &counts(&literals), LITERAL_BITS, &LITERAL_ENTRIES, &mut self.literals[..])
            .and_then(|_| {
                build(&distances, &counts(&distances), DISTANCE_BITS, &DISTANCE_ENTRIES, &mut self.distances[..])
            })
            .expect("complete codes");
        self.codes = Codes::Fixed;
    }

    fn dynamic_codes(&mut self, input: &[u8]) -> Result<(), Unreadable> {
        const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
        self.codes = Codes::None;
        let bits = &mut self.bits;
        bits.refill(input);
        let literals = bits.take(5) as usize + 257;
        let distances = bits.take(5) as usize + 1;
        let precodes = bits.take(4) as usize + 4;
        if literals > 286 || distances > 30 {
            return Err(Unreadable);
        }
        let (mut lengths, mut counts) = ([0u8; ORDER.len()], Counts::default());
        for &symbol in &ORDER[..precodes] {
            bits.refill(input);
            lengths[symbol] = bits.take(3) as u8;
            counts[usize::from(lengths[symbol])] += 1;
        }
        let mut precode = [SPECIAL; 1 << PRECODE_BITS];
        let (mut codes, mut count) = ([Code(0); CODES_MAX + 32], 0);
        for (symbol, &length) in lengths.iter().enumerate() {
            codes[count] = Code::new(symbol as u16, length);
            count += usize::from(length > 0);
        }
        if build(&codes[..count], &counts, PRECODE_BITS, &PRECODE_ENTRIES, &mut precode)? != Filled::Complete {
            return Err(Unreadable);
        }
        // The lengths of both alphabets come as one row. Most are 0, and those are not kept.
        let (literals, total) = (literals as u16, (literals + distances) as u16);
        let (mut literal_counts, mut distance_counts) = (Counts::default(), Counts::default());
        let (mut symbol, mut last, mut has_end) = (0u16, None, false);
        (count, codes[0]) = (0, Code(0));
        while symbol < total {
            if bits.count < PRECODE_BITS + EXTRA_BITS_MAX {
                bits.refill(input);
            }
            let entry = precode[bits.peek(PRECODE_BITS)];
            bits.drop(entry & 0xff);
            let (length, repeated) = match entry >> 16 {
                length @ 0..16 => {
                    has_end |= symbol == END_SYMBOL && length > 0;
                    codes[count] = Code::new(symbol, length as u8);
                    count += usize::from(length > 0);
                    let counts = if symbol < literals { &mut literal_counts } else { &mut distance_counts };
                    counts[length as usize] += 1;
                    last = Some(length as u8);
                    symbol += 1;
                    continue;
                }
                16 => (last.ok_or(Unreadable)?, 3 + bits.take(2) as u16),
                17 => (0, 3 + bits.take(3) as u16),
                _ => (0, 11 + bits.take(7) as u16),
            };
            last = Some(length);
            let end = symbol + repeated;
            // A repetition may run from one alphabet into the other, but not past both.
            if end > total {
                return Err(Unreadable);
            }
            if length > 0 {
                has_end |= (symbol..end).contains(&END_SYMBOL);
                let of_literals = literals.clamp(symbol, end) - symbol;
                literal_counts[usize::from(length)] += of_literals;
                distance_counts[usize::from(length)] += repeated - of_literals;
                for symbol in symbol..end {
                    codes[count] = Code::new(symbol, length);
                    count += 1;
                }
            }
            symbol = end;
        }
        if !has_end {
            return Err(Unreadable);
        }
        let codes = &mut codes[..count];
        let split = codes.partition_point(|code| code.symbol() < usize::from(literals));
        let (literal_codes, distance_codes) = codes.split_at_mut(split);
        distance_codes.iter_mut().for_each(|code| *code = code.less(literals));
        for (codes, counts, root, entries, table) in [
            (literal_codes, &literal_counts, LITERAL_BITS, &LITERAL_ENTRIES[..], &mut self.literals),
            (distance_codes, &distance_counts, DISTANCE_BITS, &DISTANCE_ENTRIES[..], &mut self.distances),
        ] {
            // Bits that are no code are an error only where they are met, but only a lone code of one bit, or none, may leave any.
            let alone = codes.iter().all(|code| code.length() == 1);
            if build(codes, counts, root, entries, &mut table[..])? == Filled::Partly && !alone {
                return Err(Unreadable);
            }
        }
        self.codes = Codes::Dynamic;
        Ok(())
    }

    /// True at the end of the block.
    fn codes(&mut self, input: &[u8], out: &mut [u8], made: &mut usize, wanted: usize) -> Result<bool, Unreadable> {
        let (mut bits, mut at) = (self.bits, *made);
        let (literals, distances) = (&self.literals, &self.distances);
        let ended = loop {
            if at >= wanted {
                break false;
            }
            bits.refill(input);
            let mut entry = literals[bits.peek(LITERAL_BITS)];
            // Up to three literals of the first table are sure to be there.
            if entry & LITERAL != 0 {
                bits.drop(entry & 0xff);
                out[at] = (entry >> 16) as u8;
                at += 1;
                entry = literals[bits.peek(LITERAL_BITS)];
                if entry & LITERAL != 0 {
                    bits.drop(entry & 0xff);
                    out[at] = (entry >> 16) as u8;
                    at += 1;
                    entry = literals[bits.peek(LITERAL_BITS)];
                    if entry & LITERAL != 0 {
                        bits.drop(entry & 0xff);
                        out[at] = (entry >> 16) as u8;
                        at += 1;
                        bits.check(input)?;
                        continue;
                    }
                }
                bits.refill(input);
            }
            if entry & SPECIAL != 0 {
                entry = below(entry, literals, &mut bits);
                if entry & SPECIAL != 0 {
                    if entry & END == 0 {
                        return Err(Unreadable);
                    }
                    bits.drop(entry & 0xff);
                    bits.check(input)?;
                    break true;
                }
                if entry & LITERAL != 0 {
                    bits.drop(entry & 0xff);
                    out[at] = (entry >> 16) as u8;
                    at += 1;
                    bits.check(input)?;
                    continue;
                }
            }
            let length = bits.value(entry);
            let mut entry = distances[bits.peek(DISTANCE_BITS)];
            if entry & SPECIAL != 0 {
                entry = below(entry, distances, &mut bits);
                if entry & SPECIAL != 0 {
                    return Err(Unreadable);
                }
            }
            let distance = bits.value(entry);
            bits.check(input)?;
            if distance > at {
                return Err(Unreadable);
            }
            repeat(out, at, distance, length);
            at += length;
        };
        (self.bits, *made) = (bits, at);
        Ok(ended)
    }
}

/// The entry that a first table's entry leads to: itself, unless it stands for a subtable.
#[inline]
fn below(entry: u32, table: &Table, bits: &mut Bits) -> u32 {
    if entry & SUBTABLE == 0 {
        return entry;
    }
    bits.drop(entry & 0xff);
    table[((entry >> 16) as usize + bits.peek((entry >> 8) & 0xf)) & (TABLE_ENTRIES - 1)]
}

/// Appends `length` bytes that stand `distance` bytes before `at`; there is room for `COPY_BYTES` more.
#[inline]
fn repeat(out: &mut [u8], at: usize, distance: usize, length: usize) {
    if distance >= COPY_BYTES {
        let mut done = 0;
        while done < length {
            let from = at + done - distance;
            let piece: [u8; COPY_BYTES] = *out[from..].first_chunk().expect("before `at`, and there is room behind it");
            out[at + done..at + done + COPY_BYTES].copy_from_slice(&piece);
            done += COPY_BYTES;
        }
    } else {
        for to in at..at + length {
            out[to] = out[to - distance];
        }
    }
}

/// The newest bits of the input, lowest first.
#[derive(Clone, Copy, Default)]
struct Bits {
    buffer: u64,
    /// How many of them count.
    count: u32,
    /// The byte of the input that comes next. Past its end come zeros; [`Bits::check`] tells when one of them was used.
    at: usize,
}

impl Bits {
    /// At least 56 bits are there after this.
    #[inline]
    fn refill(&mut self, input: &[u8]) {
        if let Some(next) = input.get(self.at..).and_then(<[u8]>::first_chunk::<8>) {
            self.buffer |= u64::from_le_bytes(*next) << (self.count & 63);
            self.at += ((63 - self.count) >> 3) as usize;
            self.count |= 56;
        } else {
            while self.count < 56 {
                let byte = input.get(self.at).copied().unwrap_or(0);
                self.buffer |= u64::from(byte) << self.count;
                self.at += 1;
                self.count += 8;
            }
        }
    }

    #[inline]
    fn peek(&self, bits: u32) -> usize {
        (self.buffer & ((1 << bits) - 1)) as usize
    }

    #[inline]
    fn drop(&mut self, bits: u32) {
        self.buffer >>= bits & 63;
        self.count = self.count.wrapping_sub(bits);
    }

    #[inline]
    fn take(&mut self, bits: u32) -> u32 {
        let value = self.peek(bits) as u32;
        self.drop(bits);
        value
    }

    /// Base and extra bits of a length or distance.
    #[inline]
    fn value(&mut self, entry: u32) -> usize {
        self.drop(entry & 0xff);
        (entry >> 16) as usize + self.take((entry >> 8) & 0xf) as usize
    }

    /// Bytes of the input that were begun to be used.
    fn consumed(&self) -> usize {
        self.at - (self.count >> 3) as usize
    }

    /// Whole bytes that were not used are read again, perhaps from an input that has more of them.
    fn give_back(&mut self) {
        self.at = self.consumed();
        self.count &= 7;
        self.buffer &= (1 << self.count) - 1;
    }

    #[inline]
    fn check(&self, input: &[u8]) -> Result<(), Unreadable> {
        if self.at > input.len() && self.consumed() > input.len() { Err(Unreadable) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deflate::{Deflater, Level};

    /// Text with heads, words and noise, so that every kind of code and block occurs.
    fn text(length: usize) -> Vec<u8> {
        let mut out = b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/\r\n".to_vec();
        let mut chance = 88_172_645_463_325_252u64;
        while out.len() < length {
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            match chance % 5 {
                0 => out.extend_from_slice(&chance.to_le_bytes()),
                1 => out.extend_from_slice(&[b'a'; 40]),
                2 => out.extend_from_slice(b"<a href=\"http://www.example/path\">word</a>\r\n"),
                3 => out.extend_from_within((chance >> 8) as usize % out.len()..),
                _ => out.extend_from_slice(format!("{chance}").as_bytes()),
            }
            out.truncate(length);
        }
        out
    }

    fn packed(level: u8, text: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        Deflater::new(Level::new(level)).compress(text, &mut packed);
        packed
    }

    #[test]
    fn any_beginning_of_any_length_at_every_level() {
        let mut beginning = Beginning::new();
        for length in [0, 1, 100, 3000, 70_000] {
            let text = text(length);
            for level in 1..=12 {
                let packed = packed(level, &text);
                for step in [1, 7, 640, 5000, 100_000] {
                    beginning.start();
                    let mut out = Vec::new();
                    let mut wanted = step;
                    let consumed = loop {
                        match beginning.more(&packed, &mut out, wanted).unwrap() {
                            Progress::Ended { consumed } => break consumed,
                            Progress::More => {
                                assert!((wanted..wanted + MATCH_BYTES_MAX + 2).contains(&out.len()));
                                assert_eq!(out, text[..out.len()]);
                                wanted = out.len() + step;
                            }
                        }
                    };
                    assert_eq!(out, text, "{length} bytes, level {level}, steps of {step}");
                    assert_eq!(consumed, packed.len());
                }
            }
        }
    }

    #[test]
    fn stored_blocks_stop_anywhere() {
        let text = text(100_000);
        let mut encoder = flate2::Compress::new(flate2::Compression::none(), false);
        let mut packed = Vec::with_capacity(200_000);
        encoder.compress_vec(&text, &mut packed, flate2::FlushCompress::Finish).unwrap();
        let (mut beginning, mut out) = (Beginning::new(), Vec::new());
        for wanted in [1, 2, 65_534, 65_535, 65_536, 99_999] {
            assert_eq!(beginning.more(&packed, &mut out, wanted), Ok(Progress::More));
            assert_eq!(out, text[..wanted]);
        }
        assert_eq!(beginning.more(&packed, &mut out, 200_000), Ok(Progress::Ended { consumed: packed.len() }));
        assert_eq!(out, text);
    }

    #[test]
    fn an_input_that_ends_early_is_unreadable_but_only_where_it_ends() {
        let text = text(2000);
        let packed = packed(6, &text);
        let mut beginning = Beginning::new();
        for cut in 0..packed.len() {
            beginning.start();
            let mut out = Vec::new();
            assert_eq!(beginning.more(&packed[..cut], &mut out, 3000), Err(Unreadable), "cut at {cut}");
            assert!(text.starts_with(&out));
            // More of it may come.
            beginning.start();
            out.clear();
            if beginning.more(&packed[..cut], &mut out, 300).is_ok() {
                assert!(matches!(beginning.more(&packed, &mut out, 3000), Ok(Progress::Ended { .. })), "cut at {cut}");
                assert_eq!(out, text);
            }
        }
    }

    #[test]
    fn what_is_no_code_is_refused() {
        let refused = |input: &[u8]| Beginning::new().more(input, &mut Vec::new(), 100) == Err(Unreadable);
        assert!(refused(&[0b111]), "block type 3");
        assert!(refused(&[1, 5, 0, 0, 0, 1, 2, 3, 4, 5]), "stored lengths that disagree");
        assert!(refused(&[0b011, 0b10]), "a distance before the beginning, or no end");
        assert!(refused(&[0xfd, 0xff, 0xff, 0xff, 0xff]), "too many codes");
        assert!(refused(&[0b101, 0, 0, 0, 0, 0, 0, 0]), "a code for lengths that has none");
    }
}
