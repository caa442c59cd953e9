//! DEFLATE for the many small records of a crawl, which are much alike.
//!
//! A general compressor works out a new code for each record and clears tables that are larger than the record; for a few
//! thousand bytes that takes longer than all the rest. This one uses the code that would have been best for the records before, and
//! looks for repetitions in a table that needs no clearing, because what it finds there is compared anyway. What comes out is a
//! DEFLATE block like any other, with its code in front.
//!
//! Records that are alike become about as small as at the lowest level of [`Deflater`](crate::deflate::Deflater), up to a tenth larger:
//! the code has a place for every byte that might come, and that takes room.

mod code;

use code::{Code, Counts, distance_symbol};

/// Longest input: every distance in it is one that DEFLATE has.
pub(crate) const BYTES_MAX: usize = 32 << 10;

/// Entries of the table of places, log2.
const PLACES_LOG: u32 = 12;
/// Shortest and longest repetition.
const MATCH_MIN: usize = 4;
const MATCH_MAX: usize = 258;
/// Bytes read at a time.
const WORD: usize = 8;
/// With so many bits held, one more literal or the end of the block still fits.
const HELD_BITS_MAX: u32 = 48;
/// One record in so many is counted.
const COUNTED_EVERY: u32 = 4;
/// A new code is made of so many counted records; the first ones are made of fewer.
const LEARNED_EVERY: u32 = 32;

/// A compressor that remembers what it saw.
pub(crate) struct Learned {
    code: Box<Code>,
    counts: Counts,
    records: u32,
    counted: u32,
    next: u32,
    /// Where bytes like these were last: anywhere, so it is looked at again.
    places: Box<[u16; 1 << PLACES_LOG]>,
    room: Vec<u8>,
}

impl Learned {
    pub fn new() -> Learned {
        Learned {
            code: Box::new(Code::fixed()),
            counts: Counts::new(),
            records: 0,
            counted: 0,
            next: 1,
            places: Box::new([0; 1 << PLACES_LOG]),
            room: Vec::new(),
        }
    }

    /// Appends `input`, of at most [`BYTES_MAX`] bytes, as one raw DEFLATE stream.
    pub fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) {
        assert!(input.len() <= BYTES_MAX, "every distance is one that DEFLATE has");
        self.records = self.records.wrapping_add(1);
        if self.counted == self.next {
            *self.code = Code::learned(&self.counts);
            self.counts.fade();
            (self.counted, self.next) = (0, (self.next * 2).min(LEARNED_EVERY));
        }
        // Two bytes for a literal at most, a match takes less than its bytes, and words are written whole.
        self.room.resize(self.code.header.len() + 2 * input.len() + 4 * WORD, 0);
        let length = if self.records.is_multiple_of(COUNTED_EVERY) || self.next < LEARNED_EVERY {
            self.counted += 1;
            self.block::<true>(input)
        } else {
            self.block::<false>(input)
        };
        if length < input.len() + 5 {
            out.extend_from_slice(&self.room[..length]);
        } else {
            // What cannot be made smaller is stored, which takes five bytes more than it has.
            let stored = input.len() as u16;
            out.push(1);
            out.extend_from_slice(&stored.to_le_bytes());
            out.extend_from_slice(&(!stored).to_le_bytes());
            out.extend_from_slice(input);
        }
    }

    /// One block into the room; how many bytes it has.
    fn block<const COUNTS: bool>(&mut self, input: &[u8]) -> usize {
        let Learned { code, counts, places, room, .. } = self;
        let code = &**code;
        let header = code.header.len();
        room[..header].copy_from_slice(&code.header);
        let mut bits = BitRow { room, at: header, held: code.header_rest.value.into(), count: code.header_rest.count };
        let mut at = 0;
        // The first byte repeats nothing; so the place 0, which stands in an unused table, is always before the present one.
        if let [first, ..] = input {
            bits.literal(code.literals[usize::from(*first)]);
            if COUNTS {
                counts.literals[usize::from(*first)] += 1;
            }
            at = 1;
        }
        while at + WORD <= input.len() {
            let word = word_at(input, at);
            let place = &mut places[hash(word)];
            let before = usize::from(*place);
            *place = at as u16;
            if before < at && word_at(input, before) as u32 == word as u32 {
                let length = MATCH_MIN + common(input, before + MATCH_MIN, at + MATCH_MIN);
                let distance = at - before;
                let (symbol, extra) = distance_symbol(distance);
                bits.flush();
                bits.put(code.lengths[length - 3]);
                bits.put(code.distances[symbol]);
                bits.put(extra);
                bits.flush();
                if COUNTS {
                    counts.match_of(length, distance);
                }
                // What stands within a repetition is found by its earlier place; what crosses its end is not.
                for inside in [at + 1, at + length - 2] {
                    if inside + WORD <= input.len() {
                        places[hash(word_at(input, inside))] = inside as u16;
                    }
                }
                at += length;
            } else {
                let byte = usize::from(word as u8);
                bits.literal(code.literals[byte]);
                if COUNTS {
                    counts.literals[byte] += 1;
                }
                at += 1;
            }
        }
        for byte in &input[at..] {
            bits.literal(code.literals[usize::from(*byte)]);
            if COUNTS {
                counts.literals[usize::from(*byte)] += 1;
            }
        }
        if COUNTS {
            counts.end();
        }
        bits.put(code.end);
        bits.flush();
        bits.at + usize::from(bits.count > 0)
    }
}

/// Bits on their way into the room.
struct BitRow<'a> {
    room: &'a mut [u8],
    at: usize,
    held: u64,
    count: u32,
}

impl BitRow<'_> {
    /// A literal has 15 bits at most: three of them are written at a time.
    #[inline(always)]
    fn literal(&mut self, bits: code::Bits) {
        self.put(bits);
        if self.count > HELD_BITS_MAX {
            self.flush();
        }
    }

    /// 56 bits fit behind a call of `flush`: a match has 48 at most.
    #[inline(always)]
    fn put(&mut self, bits: code::Bits) {
        self.held |= u64::from(bits.value) << self.count;
        self.count += bits.count;
    }

    #[inline(always)]
    fn flush(&mut self) {
        self.room[self.at..self.at + WORD].copy_from_slice(&self.held.to_le_bytes());
        let whole = self.count & !7;
        self.held >>= whole;
        self.at += (whole / 8) as usize;
        self.count &= 7;
    }
}

#[inline(always)]
fn word_at(input: &[u8], at: usize) -> u64 {
    let mut word = [0; WORD];
    word.copy_from_slice(&input[at..at + WORD]);
    u64::from_le_bytes(word)
}

#[inline(always)]
fn hash(word: u64) -> usize {
    ((word as u32).wrapping_mul(0x9e37_79b1) >> (32 - PLACES_LOG)) as usize
}

/// How many bytes from two places on are the same; `earlier` is before `later`.
#[inline(always)]
fn common(input: &[u8], earlier: usize, later: usize) -> usize {
    let most = (input.len() - later).min(MATCH_MAX - MATCH_MIN);
    let mut same = 0;
    while same + WORD <= most {
        let differ = word_at(input, earlier + same) ^ word_at(input, later + same);
        if differ != 0 {
            return same + (differ.trailing_zeros() / 8) as usize;
        }
        same += WORD;
    }
    while same < most && input[earlier + same] == input[later + same] {
        same += 1;
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deflate::{Deflater, Inflater, Level};
    use std::io::Read;

    /// Compresses and reads back, by two decoders; how many bytes it became.
    fn through(learned: &mut Learned, input: &[u8]) -> usize {
        let mut packed = vec![7];
        learned.compress(input, &mut packed);
        let packed = &packed[1..];
        let mut back = Vec::new();
        let got = Inflater::new().inflate_raw(packed, &mut back, input.len().max(1)).unwrap();
        assert!(back == input && got.consumed == packed.len());
        let mut other = Vec::new();
        flate2::read::DeflateDecoder::new(packed).read_to_end(&mut other).unwrap();
        assert!(other == input);
        packed.len()
    }

    fn chance(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 33
    }

    /// Something like a record: lines that begin alike.
    fn record(number: u64) -> Vec<u8> {
        let mut state = number;
        let mut text =
            format!("WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: <urn:uuid:{:032x}>\r\n\r\n", number * 77);
        for _ in 0..10 + chance(&mut state) % 60 {
            let word = ["chapter", "image", "news", "style"][(chance(&mut state) % 4) as usize];
            text += &format!("outlink: https://www.example.org/{word}/{}.html L\r\n", chance(&mut state) % 5_000);
        }
        text.into_bytes()
    }

    #[test]
    fn records_come_back_and_are_about_as_small_as_from_a_code_of_their_own() {
        let mut learned = Learned::new();
        let (mut ours, mut theirs) = (0, 0);
        for number in 0..400 {
            let record = record(number);
            let length = through(&mut learned, &record);
            if number >= 20 {
                ours += length;
                theirs += Deflater::new(Level::new(1)).compress(&record, &mut Vec::new());
            }
        }
        assert!(ours * 100 < theirs * 115, "{ours} beside {theirs}");
    }

    #[test]
    fn whatever_comes_is_read_back() {
        let mut learned = Learned::new();
        let mut state = 1;
        for round in 0..300usize {
            let length = match round % 6 {
                0 => round / 6,
                1 => BYTES_MAX - round,
                _ => (chance(&mut state) % 5_000) as usize,
            };
            let alphabet = [1, 2, 4, 200, 256][round % 5];
            let input: Vec<u8> = (0..length).map(|_| (chance(&mut state) % alphabet) as u8).collect();
            let packed = through(&mut learned, &input);
            assert!(packed <= length + 5, "{packed} of {length}");
        }
        // Matches as long and as far as they can be, also at the very end.
        let mut far: Vec<u8> = (0..BYTES_MAX).map(|_| chance(&mut state) as u8).collect();
        far.copy_within(..600, BYTES_MAX - 600);
        through(&mut learned, &far);
        through(&mut learned, &vec![b'a'; BYTES_MAX]);
        through(&mut learned, &[]);
    }

    #[test]
    #[should_panic(expected = "every distance")]
    fn more_than_a_window_is_not_taken() {
        Learned::new().compress(&vec![0; BYTES_MAX + 1], &mut Vec::new());
    }
}
