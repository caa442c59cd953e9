//! What one line of a block can carry. Whatever a server or a page says, it can neither end its line nor begin another.

/// Appends `name: value` and a line end; nothing where the value is empty. Control characters and the line separators of
/// Unicode become spaces, and what is longer than `bytes_max` is cut between characters.
pub fn push_field(out: &mut Vec<u8>, name: &str, value: &str, bytes_max: usize) {
    push_ended(out, name, value, bytes_max, b"\r\n");
}

/// The same with the shorter line end, for blocks that are no fields by their media type.
pub fn push_line(out: &mut Vec<u8>, name: &str, value: &str, bytes_max: usize) {
    push_ended(out, name, value, bytes_max, b"\n");
}

fn push_ended(out: &mut Vec<u8>, name: &str, value: &str, bytes_max: usize, end: &[u8]) {
    let before = out.len();
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    let start = out.len();
    push_words(out, value, bytes_max);
    if out.len() == start {
        out.truncate(before);
    } else {
        out.extend_from_slice(end);
    }
}

/// Appends a text as it may stand in a value; see [`push_field`].
pub fn push_words(out: &mut Vec<u8>, text: &str, bytes_max: usize) {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let text = text.trim_matches(|c: char| c.is_whitespace() || breaks(c));
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = text[..end].trim_end_matches(|c: char| c.is_whitespace() || breaks(c));
    if !text.contains(breaks) {
        return out.extend_from_slice(text.as_bytes());
    }
    let mut utf8 = [0; 4];
    for c in text.chars() {
        let c = if breaks(c) { ' ' } else { c };
        out.extend_from_slice(c.encode_utf8(&mut utf8).as_bytes());
    }
}

/// Appends a word: everything but visible ASCII is percent-encoded, so that a URL in its fetch form stays as it is and
/// nothing else can end the word.
pub fn push_word(out: &mut Vec<u8>, text: &str) {
    if is_word(text) {
        return out.extend_from_slice(text.as_bytes());
    }
    for byte in text.bytes() {
        if byte.is_ascii_graphic() {
            out.push(byte);
        } else {
            out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Whether a text is a word as it stands.
pub fn is_word(text: &str) -> bool {
    // Looking at all bytes is quicker than stopping at the first that does not fit: nearly all do.
    !text.is_empty() && text.bytes().fold(true, |all, b| all & b.is_ascii_graphic())
}

/// Appends a number in base 10.
pub fn push_number(out: &mut Vec<u8>, number: u64) {
    push_digits(out, number, 10);
}

/// Appends a number in base 36: digits, then small letters.
pub fn push_base36(out: &mut Vec<u8>, number: u64) {
    push_digits(out, number, 36);
}

fn push_digits(out: &mut Vec<u8>, mut number: u64, base: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b"0123456789abcdefghijklmnopqrstuvwxyz"[(number % base) as usize];
        number /= base;
        if number == 0 {
            return out.extend_from_slice(&digits[at..]);
        }
    }
}

/// Reads what [`push_base36`] wrote, in its one spelling.
pub fn base36(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase());
    let one_way = text == "0" || !text.starts_with('0');
    if plain && one_way { u64::from_str_radix(text, 36).ok() } else { None }
}

/// The lines of a block, without their ends.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_terminator('\n').map(|line| line.strip_suffix('\r').unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(value: &str, max: usize) -> String {
        let mut out = Vec::new();
        push_field(&mut out, "title", value, max);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_value_stays_on_its_line() {
        assert_eq!(field(" a\r\nvia: b\u{85}\u{2028}c\0 ", 100), "title: a  via: b  c\r\n");
        assert_eq!(field("äöü", 3), "title: ä\r\n");
        assert_eq!(field("a \u{2029}b", 4), "title: a\r\n");
        assert_eq!(field("\r\n\t ", 100), "");
    }

    #[test]
    fn a_word_has_no_second_one_in_it() {
        let word = |text: &str| {
            let mut out = Vec::new();
            push_word(&mut out, text);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(word("https://a.example/%20?b"), "https://a.example/%20?b");
        assert_eq!(word("a b\nü\u{7f}"), "a%20b%0A%C3%BC%7F");
    }

    #[test]
    fn numbers_have_one_spelling() {
        for number in [0, 1, 35, 36, 46_655, u64::MAX] {
            let mut out = Vec::new();
            push_base36(&mut out, number);
            assert_eq!(base36(std::str::from_utf8(&out).unwrap()), Some(number));
        }
        for wrong in ["", "00", "01", "-1", "+1", "A", " 1", "zzzzzzzzzzzzzz"] {
            assert_eq!(base36(wrong), None, "{wrong}");
        }
    }
}
