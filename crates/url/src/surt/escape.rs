//! Percent escapes as the CDX world writes them: undone as often as they can be, then written once.

use std::borrow::Cow;

/// Decodes percent escapes until none is left, so that `%2525` and `%` meet.
///
/// Escapes cannot overlap (each begins with `%`, which is no hexadecimal digit), so the order of decoding does not
/// matter and one pass with look-back reaches what repeated passes reach, in linear time.
pub fn unescape(input: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'%', input) else { return Cow::Borrowed(input) };
    let mut out = Vec::with_capacity(input.len());
    out.extend_from_slice(&input[..first]);
    for &byte in &input[first..] {
        out.push(byte);
        while let [.., b'%', high, low] = out[..] {
            let (Some(high), Some(low)) = (hex(high), hex(low)) else { break };
            out.truncate(out.len() - 3);
            out.push(high << 4 | low);
        }
    }
    Cow::Owned(out)
}

/// Appends `input` with every byte escaped that may not stand in a key: controls, space, `#`, `%` and non-ASCII.
pub(super) fn escape_into(input: &[u8], out: &mut Vec<u8>) {
    for &byte in input {
        if stands(byte) && byte != b'#' && byte != b'%' {
            out.push(byte);
        } else {
            push_escape(byte, out);
        }
    }
}

/// Appends text that is no URL we understand, made safe for a line of text: controls, space and non-ASCII escaped.
pub(super) fn printable_into(input: &[u8], out: &mut Vec<u8>) {
    for &byte in input {
        if stands(byte) {
            out.push(byte);
        } else {
            push_escape(byte, out);
        }
    }
}

fn stands(byte: u8) -> bool {
    (0x21..0x7f).contains(&byte)
}

fn push_escape(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.extend_from_slice(&[b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

/// The value of a hexadecimal digit.
pub(crate) fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_to_the_bottom() {
        for (input, wanted) in [
            ("", ""),
            ("%", "%"),
            ("%2", "%2"),
            ("%25", "%"),
            ("%2525252525", "%"),
            ("%25%32%35", "%"),
            ("%2%35", "%"),
            ("%%34%31", "A"),
            ("%zz%41", "%zzA"),
            ("a%2", "a%2"),
            ("%25zz", "%zz"),
        ] {
            assert_eq!(unescape(input.as_bytes()), wanted.as_bytes(), "{input}");
        }
    }

    /// What the one pass replaces: decode once, again and again, until nothing changes.
    fn passes(input: &[u8]) -> Vec<u8> {
        let mut now = input.to_vec();
        loop {
            let (mut next, mut i) = (Vec::new(), 0);
            while i < now.len() {
                match now[i..] {
                    [b'%', high, low, ..] if hex(high).is_some() && hex(low).is_some() => {
                        next.push(hex(high).unwrap_or(0) << 4 | hex(low).unwrap_or(0));
                        i += 3;
                    }
                    _ => {
                        next.push(now[i]);
                        i += 1;
                    }
                }
            }
            if next == now {
                return now;
            }
            now = next;
        }
    }

    #[test]
    fn one_pass_equals_repeated_passes() {
        let mut state = 7u64;
        for _ in 0..20_000 {
            let input: Vec<u8> = (0..24)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    b"%%%%2223355aFz"[(state >> 33) as usize % 14]
                })
                .collect();
            assert_eq!(unescape(&input), passes(&input), "{}", String::from_utf8_lossy(&input));
        }
    }
}
