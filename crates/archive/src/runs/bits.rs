//! Numbers in as few bytes as they need: variable-length integers, and columns of equally wide numbers.

/// Seven bits a byte, lowest first; the high bit says that another byte follows.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes that are taken from the front; `None` when there are too few or they mean nothing.
#[derive(Clone, Copy)]
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N).and_then(|bytes| bytes.try_into().ok())
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for (index, byte) in self.0.iter().enumerate().take(10) {
            let part = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit only.
            if index == 9 && part > 1 {
                return None;
            }
            value |= part << (7 * index);
            if byte & 0x80 == 0 {
                self.0 = &self.0[index + 1..];
                return Some(value);
            }
        }
        None
    }

    /// A varint that counts or measures something of at most `max`.
    pub fn count(&mut self, max: usize) -> Option<usize> {
        self.varint().and_then(|value| usize::try_from(value).ok()).filter(|value| *value <= max)
    }
}

/// Bytes that must follow the last column in memory, so that a number is read with one load.
pub const PADDING: usize = 16;

/// Where a column of equally wide numbers stands in its block. Any number of it is read without reading the others.
///
/// ```text
///   head   | base varint | width 1 |          number n = base + bits n·width .. (n+1)·width of the body, lowest first
///   body   | ⌈count·width / 8⌉ bytes |
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Column {
    at: usize,
    base: u64,
    width: u32,
}

impl Column {
    /// Writes the head of a column for these values and appends the body to `body`.
    pub fn write(values: &[u64], head: &mut Vec<u8>, body: &mut Vec<u8>) {
        let base = values.iter().copied().min().unwrap_or(0);
        let most = values.iter().copied().max().unwrap_or(0) - base;
        let width = u64::BITS - most.leading_zeros();
        put_varint(head, base);
        head.push(width as u8);
        let (mut held, mut bits) = (0u128, 0u32);
        for value in values {
            held |= u128::from(value - base) << bits;
            bits += width;
            while bits >= 8 {
                body.push(held as u8);
                held >>= 8;
                bits -= 8;
            }
        }
        if bits > 0 {
            body.push(held as u8);
        }
    }

    /// Reads the head of a column of `count` numbers; the body begins at `*at`, which moves behind it. The caller has
    /// made sure that `end` bytes and [`PADDING`] are there.
    pub fn read(head: &mut Bytes<'_>, count: usize, at: &mut usize, end: usize) -> Option<Column> {
        let base = head.varint()?;
        let width = u32::from(head.u8()?);
        if width > u64::BITS {
            return None;
        }
        let column = Column { at: *at, base, width };
        *at = at.checked_add(count.checked_mul(width as usize)?.div_ceil(8))?;
        (*at <= end).then_some(column)
    }

    /// Number `index` of the column.
    #[inline]
    pub fn get(&self, block: &[u8], index: usize) -> u64 {
        let bit = index * self.width as usize;
        let byte = self.at + bit / 8;
        let shift = (bit % 8) as u32;
        let value = if self.width <= 56 {
            let word = u64::from_le_bytes(block[byte..byte + 8].try_into().unwrap_or_default());
            (word >> shift) & ((1 << self.width) - 1)
        } else {
            let word = u128::from_le_bytes(block[byte..byte + 16].try_into().unwrap_or_default());
            ((word >> shift) & ((1u128 << self.width) - 1)) as u64
        };
        self.base.wrapping_add(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_and_reject_what_is_too_long() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            let mut bytes = Bytes(&out);
            assert_eq!(bytes.varint(), Some(value));
            assert!(bytes.0.is_empty());
            assert_eq!(Bytes(&out[..out.len() - 1]).varint(), None);
        }
        assert_eq!(Bytes(&[0xff; 10]).varint(), None);
        assert_eq!(Bytes(&[0xff; 11]).varint(), None);
        assert_eq!(Bytes(&[200, 1]).count(100), None);
    }

    #[test]
    fn columns_of_every_width_round_trip() {
        for width in 0..=64u32 {
            let most = if width == 64 { u64::MAX } else { (1u64 << width) - 1 };
            let base = if width == 64 { 0 } else { 5u64.min(u64::MAX - most) };
            let values: Vec<u64> = (0..67u64)
                .map(|i| base + (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & most))
                .chain([base, base + most])
                .collect();
            let (mut head, mut block) = (Vec::new(), vec![0xaa; 3]);
            Column::write(&values, &mut head, &mut block);
            let end = block.len();
            block.extend([0; PADDING]);
            let mut at = 3;
            let column = Column::read(&mut Bytes(&head), values.len(), &mut at, end).unwrap();
            assert_eq!(at, end);
            let found: Vec<u64> = (0..values.len()).map(|index| column.get(&block, index)).collect();
            assert_eq!(found, values, "width {width}");
            let mut at = 3;
            assert_eq!(Column::read(&mut Bytes(&head), values.len() + 9, &mut at, end).is_none(), width > 0);
        }
    }
}
