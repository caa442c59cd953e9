//! Charsets in which the second byte of a character may look like ASCII: there, a backslash or a quotation mark is none.

use encoding_rs::{BIG5, Encoding, GB18030, GBK, SHIFT_JIS};

/// Which bytes begin a character of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wide {
    /// None: UTF-8, single bytes, and charsets whose second bytes are never ASCII.
    Never,
    ShiftJis,
    /// Big5, GBK and GB18030.
    Chinese,
}

impl Wide {
    pub fn of(charset: &'static Encoding) -> Wide {
        if charset == SHIFT_JIS {
            Wide::ShiftJis
        } else if charset == BIG5 || charset == GBK || charset == GB18030 {
            Wide::Chinese
        } else {
            Wide::Never
        }
    }

    /// Is what follows this byte part of the same character?
    #[inline]
    pub fn is_lead(self, byte: u8) -> bool {
        match self {
            Wide::Never => false,
            Wide::ShiftJis => matches!(byte, 0x81..=0x9f | 0xe0..=0xfc),
            Wide::Chinese => matches!(byte, 0x81..=0xfe),
        }
    }
}
