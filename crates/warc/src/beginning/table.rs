//! Tables that find the symbol to which the next bits are the code.
//!
//! ```text
//!   entry of a table | 31 ───── 16 | 15 literal | 14 special | 13 subtable | 12 end | 11 ── 8 | 7 ── 0 |
//!     literal          byte          1            0                                   0         bits of its code
//!     length, distance base          0            0                                   extra     bits of its code
//!     subtable         where         0            1            1                      its bits  bits of the first table
//!     end of block                   0            1                          1                  bits of its code
//!     no such code                   0            1            0             0
//! ```

use super::Unreadable;

/// Bits of the longest code of all.
const CODE_BITS_MAX: usize = 15;
/// Both tables with all that may hang below them: 852 entries are the most for 286 codes behind 9 bits, and there are
/// fewer distances.
pub(super) const TABLE_ENTRIES: usize = 1024;
/// Most codes of one alphabet.
pub(super) const CODES_MAX: usize = 288;

pub(super) const LITERAL: u32 = 1 << 15;
pub(super) const SPECIAL: u32 = 1 << 14;
pub(super) const SUBTABLE: u32 = 1 << 13;
pub(super) const END: u32 = 1 << 12;

pub(super) type Table = [u32; TABLE_ENTRIES];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    Complete,
    /// There are bits that are no code.
    Partly,
}

/// A symbol and the length of its code.
#[derive(Clone, Copy)]
pub(super) struct Code(pub u16);

impl Code {
    pub fn new(symbol: u16, length: u8) -> Code {
        Code(symbol << 4 | u16::from(length))
    }
    pub fn symbol(self) -> usize {
        usize::from(self.0 >> 4)
    }
    pub fn length(self) -> usize {
        usize::from(self.0 & 15)
    }
    pub fn less(self, symbols: u16) -> Code {
        Code(self.0 - (symbols << 4))
    }
}

/// How many codes have each length. Whoever reads the lengths counts them, because there it costs next to nothing.
pub(super) type Counts = [u16; CODE_BITS_MAX + 1];

/// Fills a table for these codes, which come in the order of their symbols. `entries` say what each symbol means, without the bits of
/// its code.
pub(super) fn build(
    codes: &[Code],
    counts: &Counts,
    root: u32,
    entries: &[u32],
    table: &mut [u32],
) -> Result<Filled, Unreadable> {
    let mut offsets = [0u16; CODE_BITS_MAX + 2];
    let mut left = 1i32;
    for length in 1..=CODE_BITS_MAX {
        offsets[length + 1] = offsets[length] + counts[length];
        left = 2 * left - i32::from(counts[length]);
        if left < 0 {
            return Err(Unreadable);
        }
    }
    let mut sorted = [0u32; CODES_MAX];
    for code in codes {
        let slot = &mut offsets[code.length()];
        sorted[usize::from(*slot)] = entries[code.symbol()];
        *slot += 1;
    }
    let filled = if left == 0 { Filled::Complete } else { Filled::Partly };
    if filled == Filled::Partly {
        table.fill(SPECIAL);
    }
    let mut symbols = sorted.iter();
    let mut next = || symbols.next().copied().unwrap_or(SPECIAL);
    // Codes are numbered from their highest bit and stand in the stream with that bit first: they are counted up and turned round. The
    // table for codes of one length is twice that of the length before.
    let mut number = 0usize;
    let mut end = 1usize;
    for length in 1..=root {
        // Before the first code there is nothing to double.
        if filled == Filled::Complete && number > 0 {
            double(table, end);
        }
        end *= 2;
        number *= 2;
        for _ in 0..counts[length as usize] {
            let (code, entry) = (turned(number, length), next() | length);
            number += 1;
            if filled == Filled::Complete {
                table[code] = entry;
            } else {
                (code..1 << root).step_by(end).for_each(|at| table[at] = entry);
            }
        }
    }
    let mask = (1usize << root) - 1;
    let (mut prefix, mut start) = (usize::MAX, 0);
    for length in root as usize + 1..=CODE_BITS_MAX {
        number *= 2;
        for done in 0..counts[length] {
            let code = turned(number, length as u32);
            number += 1;
            if code & mask != prefix {
                prefix = code & mask;
                start = end;
                let mut width = length - root as usize;
                // As wide as the longest code with this beginning.
                let mut room = (1i32 << width) - i32::from(counts[length] - done);
                while room > 0 && root as usize + width < CODE_BITS_MAX {
                    width += 1;
                    room = 2 * room - i32::from(counts[root as usize + width]);
                }
                end += 1 << width;
                if end > table.len() {
                    return Err(Unreadable);
                }
                table[prefix] = SPECIAL | SUBTABLE | (start as u32) << 16 | (width as u32) << 8 | root;
            }
            let own = length - root as usize;
            let entry = next() | own as u32;
            (start + (code >> root)..end).step_by(1 << own).for_each(|at| table[at] = entry);
        }
    }
    Ok(filled)
}

/// Entries that are copied at once.
const PIECE: usize = 16;

/// Repeats the first `end` entries behind them, in pieces of one length: tables are small, and calling for a copy of any length costs as
/// much as the copy. What a piece writes too much is written over by the next doubling.
#[inline]
fn double(table: &mut [u32], end: usize) {
    for at in (0..end).step_by(PIECE) {
        let piece: [u32; PIECE] = *table[at..].first_chunk().expect("no table is smaller than a piece");
        table[end + at..end + at + PIECE].copy_from_slice(&piece);
    }
}

/// The lowest `length` bits (up to 16) in the opposite order.
#[inline]
fn turned(number: usize, length: u32) -> usize {
    let both = usize::from(TURNED[number & 0xff]) << 8 | usize::from(TURNED[number >> 8 & 0xff]);
    both >> (16 - length)
}

const TURNED: [u8; 256] = {
    let mut turned = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        turned[byte] = (byte as u8).reverse_bits();
        byte += 1;
    }
    turned
};

pub(super) const PRECODE_ENTRIES: [u32; 19] = {
    let mut entries = [0; 19];
    let mut symbol = 0;
    while symbol < entries.len() {
        entries[symbol] = (symbol as u32) << 16;
        symbol += 1;
    }
    entries
};

pub(super) const LITERAL_ENTRIES: [u32; CODES_MAX] = {
    let mut entries = [SPECIAL; CODES_MAX];
    let mut byte = 0;
    while byte < 256 {
        entries[byte] = LITERAL | (byte as u32) << 16;
        byte += 1;
    }
    entries[256] = SPECIAL | END;
    // Eight lengths without extra bits, then four with each number of them.
    let (mut symbol, mut base) = (257, 3);
    while symbol < 285 {
        let extra = if symbol < 265 { 0 } else { (symbol as u32 - 261) / 4 };
        entries[symbol] = base << 16 | extra << 8;
        base += 1 << extra;
        symbol += 1;
    }
    entries[285] = 258 << 16;
    entries
};

pub(super) const DISTANCE_ENTRIES: [u32; 32] = {
    let mut entries = [SPECIAL; 32];
    let (mut symbol, mut base) = (0, 1);
    while symbol < 30 {
        let extra = if symbol < 4 { 0 } else { (symbol as u32 - 2) / 2 };
        entries[symbol] = base << 16 | extra << 8;
        base += 1 << extra;
        symbol += 1;
    }
    entries
};
