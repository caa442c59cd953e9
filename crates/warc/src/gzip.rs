//! The header of a gzip member, and what its `sl` field promises.

/// How every member begins.
pub(crate) const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

/// What the `sl` field of a gzip member says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Promise {
    /// Length of the whole member.
    pub member: u64,
    /// Length of what it decodes to.
    pub decoded: u32,
}

/// Whether a member may begin here.
pub(crate) fn begins_gzip(window: &[u8]) -> bool {
    window.starts_with(&GZIP_MAGIC) && window.get(3).is_some_and(|flags| flags & 0xe0 == 0)
}

/// Where the compressed data begins, and what is known of its length.
pub(crate) struct GzipHeader {
    pub length: usize,
    pub promise: Option<Promise>,
}

/// `None` where the header is not one, or not all of it is at hand.
pub(crate) fn gzip_header(window: &[u8]) -> Option<GzipHeader> {
    if !begins_gzip(window) || window.len() < 10 {
        return None;
    }
    let flags = window[3];
    let (mut length, mut promise) = (10, None);
    if flags & 4 != 0 {
        let extra_length = u16::from_le_bytes([*window.get(10)?, *window.get(11)?]) as usize;
        let extra = window.get(12..12 + extra_length)?;
        promise = sl_field(extra);
        length = 12 + extra_length;
    }
    for flag in [8, 16] {
        if flags & flag != 0 {
            length += memchr::memchr(0, window.get(length..)?)? + 1;
        }
    }
    if flags & 2 != 0 {
        length += 2;
    }
    (length <= window.len()).then_some(GzipHeader { length, promise })
}

/// `s l LEN=8 member decoded`; wget 1.14 left LEN out.
fn sl_field(mut extra: &[u8]) -> Option<Promise> {
    let number = |bytes: &[u8], at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let promise = |data: &[u8]| Some(Promise { member: u64::from(number(data, 0)), decoded: number(data, 4) });
    if extra.len() == 10 && extra.starts_with(b"sl") {
        return promise(&extra[2..]);
    }
    while let [a, b, l0, l1, rest @ ..] = extra {
        let length = u16::from_le_bytes([*l0, *l1]) as usize;
        let data = rest.get(..length)?;
        if (a, b) == (&b's', &b'l') && length == 8 {
            return promise(data);
        }
        extra = &rest[length..];
    }
    None
}
