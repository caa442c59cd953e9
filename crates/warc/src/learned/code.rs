//! A code of DEFLATE as an encoder wants it: for each literal, length and distance the bits to write, and the header that says so.

/// Literals, the end of the block, and lengths.
pub(super) const LITERALS: usize = 286;
/// Distances.
pub(super) const DISTANCES: usize = 30;
/// Where the lengths begin among the literals.
const LENGTHS_AT: usize = 257;
/// The end of the block.
const END: usize = 256;

/// Longest code of a literal or a distance, and of a code length, in bits.
const CODE_BITS_MAX: u8 = 15;
const LENGTH_CODE_BITS_MAX: u8 = 7;

/// The order in which the lengths of the code for code lengths are written (RFC 1951, 3.2.7).
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
/// Says: the length before, three to six times again.
const AGAIN: usize = 16;

/// How often each symbol was seen.
#[derive(Clone)]
pub(super) struct Counts {
    pub literals: [u32; LITERALS],
    pub distances: [u32; DISTANCES],
}

impl Counts {
    /// Every symbol once: whatever comes, there is a code for it.
    pub fn new() -> Counts {
        Counts { literals: [1; LITERALS], distances: [1; DISTANCES] }
    }

    pub fn match_of(&mut self, length: usize, distance: usize) {
        self.literals[LENGTHS_AT + length_symbol(length)] += 1;
        self.distances[distance_symbol(distance).0] += 1;
    }

    pub fn end(&mut self) {
        self.literals[END] += 1;
    }

    /// What was seen longer ago counts for less.
    pub fn fade(&mut self) {
        self.literals.iter_mut().chain(&mut self.distances).for_each(|count| *count = (*count / 2).max(1));
    }
}

/// Bits to write, the first of them lowest.
#[derive(Clone, Copy, Default)]
pub(super) struct Bits {
    pub value: u32,
    pub count: u32,
}

/// The bits of every symbol, and how a block with this code begins.
pub(super) struct Code {
    /// Whole bytes, then what is left of a byte.
    pub header: Vec<u8>,
    pub header_rest: Bits,
    pub literals: [Bits; 256],
    /// By length less three; what tells lengths of one symbol apart is in it.
    pub lengths: [Bits; 256],
    /// By symbol.
    pub distances: [Bits; DISTANCES],
    pub end: Bits,
}

impl Code {
    /// The code that every decoder knows and no header describes.
    pub fn fixed() -> Code {
        let mut lengths = [8; 288];
        lengths[144..256].fill(9);
        lengths[256..280].fill(7);
        Code::of(&lengths, &[5; 32], (Vec::new(), Bits { value: 0b011, count: 3 }))
    }

    /// The best code for symbols that come as often as these did.
    pub fn learned(counts: &Counts) -> Code {
        let literals = code_lengths(&counts.literals, CODE_BITS_MAX);
        let distances = code_lengths(&counts.distances, CODE_BITS_MAX);
        let header = header(&literals, &distances);
        Code::of(&literals, &distances, header)
    }

    fn of(literal_lengths: &[u8], distance_lengths: &[u8], header: (Vec<u8>, Bits)) -> Code {
        let (literals, distances) = (canonical(literal_lengths), canonical(distance_lengths));
        let mut code = Code {
            header: header.0,
            header_rest: header.1,
            literals: [Bits::default(); 256],
            lengths: [Bits::default(); 256],
            distances: [Bits::default(); DISTANCES],
            end: literals[END],
        };
        code.literals.copy_from_slice(&literals[..256]);
        code.distances.copy_from_slice(&distances[..DISTANCES]);
        for (at, bits) in code.lengths.iter_mut().enumerate() {
            let symbol = length_symbol(at + 3);
            let (base, extra) = length_range(symbol);
            let found = literals[LENGTHS_AT + symbol];
            *bits = Bits { value: found.value | ((at + 3 - base) as u32) << found.count, count: found.count + extra };
        }
        code
    }
}

/// The symbol of a length of 3 to 258, counted from the first length.
fn length_symbol(length: usize) -> usize {
    match length {
        258 => 28,
        3..=10 => length - 3,
        _ => {
            let above = (length - 3) as u32;
            let extra = above.ilog2() - 2;
            (4 * extra + (above >> extra)) as usize
        }
    }
}

/// The first length of a symbol, and how many bits tell its lengths apart.
fn length_range(symbol: usize) -> (usize, u32) {
    match symbol {
        28 => (258, 0),
        0..=7 => (symbol + 3, 0),
        _ => {
            let extra = symbol / 4 - 1;
            (((4 + symbol % 4) << extra) + 3, extra as u32)
        }
    }
}

/// The symbol of a distance of 1 to 32,768, what tells it from others of that symbol, and in how many bits.
#[inline(always)]
pub(super) fn distance_symbol(distance: usize) -> (usize, Bits) {
    let above = (distance as u32).wrapping_sub(1);
    if above < 4 {
        return (above as usize, Bits::default());
    }
    let extra = above.ilog2() - 1;
    let symbol = 2 * extra + (above >> extra);
    (symbol as usize, Bits { value: above & ((1 << extra) - 1), count: extra })
}

/// How long the code of each symbol is; those that never come have none.
fn code_lengths(counts: &[u32], bits_max: u8) -> Vec<u8> {
    let mut counts: Vec<u64> = counts.iter().map(|count| u64::from(*count)).collect();
    loop {
        let lengths = huffman(&counts);
        if lengths.iter().all(|length| *length <= bits_max) {
            return lengths;
        }
        // Rare symbols become less rare until their codes are short enough; equal counts make codes of nine bits at most.
        counts.iter_mut().filter(|count| **count > 0).for_each(|count| *count = *count / 2 + 1);
    }
}

/// Huffman's algorithm with two queues: leaves by count, and joined nodes, which come in that order by themselves.
fn huffman(counts: &[u64]) -> Vec<u8> {
    let mut leaves: Vec<usize> = (0..counts.len()).filter(|symbol| counts[*symbol] > 0).collect();
    leaves.sort_by_key(|symbol| counts[*symbol]);
    let mut weights: Vec<u64> = leaves.iter().map(|symbol| counts[*symbol]).collect();
    let mut parents = vec![0; 2 * leaves.len()];
    let (mut leaf, mut node) = (0, leaves.len());
    while weights.len() + 1 < 2 * leaves.len() {
        let joined = weights.len();
        let mut weight = 0;
        for _ in 0..2 {
            let takes_leaf = leaf < leaves.len() && (node >= joined || weights[leaf] <= weights[node]);
            let least = if takes_leaf { &mut leaf } else { &mut node };
            weight += weights[*least];
            parents[*least] = joined;
            *least += 1;
        }
        weights.push(weight);
    }
    let mut depths = vec![0; weights.len()];
    for at in (0..weights.len().saturating_sub(1)).rev() {
        depths[at] = depths[parents[at]] + 1;
    }
    let mut lengths = vec![0; counts.len()];
    leaves.iter().zip(depths).for_each(|(symbol, depth)| lengths[*symbol] = depth);
    lengths
}

/// The codes that belong to these lengths (RFC 1951, 3.2.2), turned round as they are written.
fn canonical(lengths: &[u8]) -> Vec<Bits> {
    let mut next = 0u32;
    let mut codes = vec![Bits::default(); lengths.len()];
    for length in 1..=CODE_BITS_MAX {
        for (code, _) in codes.iter_mut().zip(lengths).filter(|(_, of)| **of == length) {
            *code = Bits { value: next.reverse_bits() >> (32 - u32::from(length)), count: length.into() };
            next += 1;
        }
        next <<= 1;
    }
    codes
}

/// How a last block with this code begins: whole bytes, and the bits behind them.
fn header(literals: &[u8], distances: &[u8]) -> (Vec<u8>, Bits) {
    // Lengths one after the other, repetitions shortened.
    let mut said: Vec<(usize, Bits)> = Vec::new();
    let mut rest = [literals, distances].concat();
    rest.reverse();
    while let Some(length) = rest.pop() {
        said.push((length.into(), Bits::default()));
        let mut again = rest.iter().rev().take_while(|next| **next == length).count();
        while again >= 3 {
            let times = again.min(6);
            said.push((AGAIN, Bits { value: times as u32 - 3, count: 2 }));
            rest.truncate(rest.len() - times);
            again -= times;
        }
    }
    // Two symbols at least: decoders refuse a code that leaves bits without a meaning.
    let mut counts = [0; ORDER.len()];
    (counts[0], counts[AGAIN]) = (1, 1);
    said.iter().for_each(|(symbol, _)| counts[*symbol] += 1);
    let lengths = code_lengths(&counts, LENGTH_CODE_BITS_MAX);
    let codes = canonical(&lengths);
    let used = ORDER.iter().rposition(|symbol| lengths[*symbol] > 0).map_or(4, |last| (last + 1).max(4));

    let mut out = BitWriter::default();
    out.put(0b101, 3);
    out.put(literals.len() as u32 - 257, 5);
    out.put(distances.len() as u32 - 1, 5);
    out.put(used as u32 - 4, 4);
    ORDER[..used].iter().for_each(|symbol| out.put(lengths[*symbol].into(), 3));
    for (symbol, extra) in said {
        out.put(codes[symbol].value, codes[symbol].count);
        out.put(extra.value, extra.count);
    }
    (out.bytes, Bits { value: out.held, count: out.count })
}

/// Bits into bytes, without haste.
#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    held: u32,
    count: u32,
}

impl BitWriter {
    fn put(&mut self, value: u32, count: u32) {
        self.held |= value << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push(self.held as u8);
            self.held >>= 8;
            self.count -= 8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_lengths_and_distances_are_those_of_the_specification() {
        let firsts = [
            3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195,
            227, 258,
        ];
        for length in 3..=258 {
            let symbol = length_symbol(length);
            assert_eq!(symbol, firsts.iter().rposition(|first| *first <= length).unwrap(), "{length}");
            let (base, extra) = length_range(symbol);
            assert!(base == firsts[symbol] && length - base < 1 << extra, "{length}");
        }
        let firsts = [
            1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073,
            4097, 6145, 8193, 12289, 16385, 24577,
        ];
        for distance in 1..=32_768 {
            let (symbol, extra) = distance_symbol(distance);
            assert_eq!(symbol, firsts.iter().rposition(|first| *first <= distance).unwrap(), "{distance}");
            assert_eq!(firsts[symbol] + extra.value as usize, distance);
            assert!(extra.value < 1 << extra.count);
        }
    }

    #[test]
    fn codes_are_complete_and_short_enough_whatever_the_counts() {
        let mut steep = [1u32; LITERALS];
        let mut before = (1u32, 1u32);
        for count in &mut steep[..40] {
            *count = before.1;
            before = (before.1, before.0.saturating_add(before.1));
        }
        for counts in [steep, [1; LITERALS], std::array::from_fn(|at| at as u32 + 1)] {
            let lengths = code_lengths(&counts, CODE_BITS_MAX);
            let sum: u32 = lengths.iter().map(|length| 1 << (CODE_BITS_MAX - length)).sum();
            assert_eq!(sum, 1 << CODE_BITS_MAX, "every row of bits means something");
        }
    }
}
