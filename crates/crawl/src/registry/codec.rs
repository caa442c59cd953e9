//! Numbers as bytes: little-endian, and varints of seven bits a byte, lowest first.

/// Reads what was written; `None` where the bytes end or mean nothing.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return None;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A count of things of which each takes at least this many bytes, so that a wrong one cannot ask for much memory.
    pub fn count(&mut self, each_bytes: usize) -> Option<usize> {
        let count = usize::try_from(self.varint()?).ok()?;
        (count.checked_mul(each_bytes)? <= self.bytes.len()).then_some(count)
    }

    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.count(1)?;
        self.take(count)
    }
}

pub(super) fn put_varint(into: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

pub(super) fn put_bytes(into: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(into, bytes.len() as u64);
    into.extend_from_slice(bytes);
}

/// Small differences of either sign as small numbers.
pub(super) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

pub(super) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// The number in a field of up to eight bytes.
pub(super) fn get(bytes: &[u8], at: usize, width: usize) -> u64 {
    let mut value = [0; 8];
    value[..width].copy_from_slice(&bytes[at..at + width]);
    u64::from_le_bytes(value)
}

/// Writes a number into a field of up to eight bytes; the field must be wide enough.
pub(super) fn set(bytes: &mut [u8], at: usize, width: usize, value: u64) {
    debug_assert!(width == 8 || value >> (width * 8) == 0, "{value} in {width} bytes");
    bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [0, 1, 127, 128, 300, 1 << 35, u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            assert_eq!(Reader::new(&bytes).varint(), Some(value));
            assert_eq!(Reader::new(&bytes[..bytes.len() - 1]).varint(), None);
        }
        for value in [0, 1, -1, i64::MAX, i64::MIN] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
    }

    #[test]
    fn nonsense_is_no_number() {
        assert_eq!(Reader::new(&[0xff; 12]).varint(), None);
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0x7f, 1]).bytes(), None);
    }
}
