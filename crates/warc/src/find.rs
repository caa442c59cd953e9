//! Where records begin and heads end, in bytes that may be damaged.

use crate::arc;
use crate::limits::{FIRST_FIELD_BYTES_MAX, RETURNS_MAX, VERSION_LINE_BYTES_MAX};
use memchr::memmem;

/// How a field of WARC's own begins; in any case.
const OWN_FIELD: &[u8] = b"WARC-";

/// Which format a file has shown to be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Unknown,
    Warc,
    Arc,
}

pub(crate) fn first_line(window: &[u8]) -> &[u8] {
    &window[..memchr::memchr(b'\n', window).unwrap_or(window.len())]
}

/// Length of a head with its empty line. A version line inside it means that the head before was never ended.
pub(crate) fn head_end(window: &[u8], from: usize) -> Option<usize> {
    memchr::memchr_iter(b'\n', &window[from..]).find_map(|at| ends_after(window, from + at + 1))
}

/// Where a head ends whose last line ends before `next`, if it is the last.
fn ends_after(window: &[u8], next: usize) -> Option<usize> {
    // Some files were converted from line end to line end until they had too many.
    let returns = window[next..].iter().take(RETURNS_MAX).take_while(|b| **b == b'\r').count();
    match &window[next + returns..] {
        [b'\n', ..] => Some(next + returns + 1),
        rest if returns == 0 && rest.starts_with(b"WARC/") => Some(next),
        _ => None,
    }
}

/// From where to look for the end of a head when more bytes have come behind these, in which it does not end.
pub(crate) fn searched(window: &[u8]) -> usize {
    window.len().saturating_sub(RETURNS_MAX + b"\nWARC/".len())
}

/// Where, from `from` on, a record begins at the start of a line.
pub(crate) fn find_record(window: &[u8], from: usize, family: Family) -> Option<usize> {
    let warc = if family == Family::Arc { None } else { find_warc(window, from) };
    let arc = if family == Family::Warc { None } else { find_arc(window, from, warc.unwrap_or(window.len())) };
    arc.or(warc)
}

/// Usually at the start of a line; behind damage the line before may have lost its end, so a head that is unmistakable counts anywhere.
fn find_warc(window: &[u8], from: usize) -> Option<usize> {
    let mut ahead = Ahead { window, decided: (0, false), searched: 0 };
    memmem::find_iter(window.get(from..)?, b"WARC/")
        .map(|at| from + at)
        .find(|&at| begins_head(&window[at..]) && (at == 0 || window[at - 1] == b'\n' || ahead.has_type(at)))
}

/// A version line, then a named field.
pub(crate) fn begins_head(bytes: &[u8]) -> bool {
    let line = first_line(&bytes[..bytes.len().min(VERSION_LINE_BYTES_MAX)]);
    let version = line.strip_suffix(b"\r").unwrap_or(line);
    let digits = version.get(5..).unwrap_or_default();
    let plausible = version.starts_with(b"WARC/")
        && (3..=5).contains(&digits.len())
        && digits.iter().all(|b| b.is_ascii_digit() || *b == b'.');
    let rest = bytes.get(line.len() + 1..).unwrap_or_default();
    let name = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'-').count();
    plausible && name > 0 && rest.get(name) == Some(&b':')
}

/// The lines ahead in a window that is searched from front to back. They are looked at once, however many version lines stand before them.
struct Ahead<'w> {
    window: &'w [u8],
    /// Where a line ends behind which a field of WARC's own stands, or a head ends; and whether it is the field.
    decided: (usize, bool),
    /// Lines that end before this are known to decide nothing.
    searched: usize,
}

impl Ahead<'_> {
    /// Whether a field of WARC's own stands in the head that begins at `at`, not far behind.
    fn has_type(&mut self, at: usize) -> bool {
        let until = self.window.len().min(at + FIRST_FIELD_BYTES_MAX);
        if self.decided.0 < at {
            let from = self.searched.max(at).min(until);
            let mut lines = memchr::memchr_iter(b'\n', &self.window[from..until]).map(|line| from + line);
            let decided = lines.find_map(|line| {
                let name = self.window.get(line + 1..line + 1 + OWN_FIELD.len()).unwrap_or_default();
                let own = name.eq_ignore_ascii_case(OWN_FIELD);
                (own || ends_after(self.window, line + 1).is_some()).then_some((line, own))
            });
            self.searched = decided.map_or(until, |(line, _)| line + 1);
            self.decided = decided.unwrap_or_default();
        }
        (at..until).contains(&self.decided.0) && self.decided.1
    }
}

fn find_arc(window: &[u8], from: usize, before: usize) -> Option<usize> {
    let mut at = from;
    loop {
        if (at == 0 || window.get(at - 1) == Some(&b'\n'))
            && at < before
            && arc::parse(first_line(&window[at..])).is_some()
        {
            return Some(at);
        }
        at += memchr::memchr(b'\n', window.get(at..before)?)? + 1;
    }
}

/// Length without the line ends that close a record.
pub(crate) fn trim_record_end(block: &[u8], family: Family) -> usize {
    let ends: &[&[u8]] =
        if family == Family::Arc { &[b"\r\n", b"\n"] } else { &[b"\r\n\r\n", b"\n\n", b"\r\n", b"\n"] };
    ends.iter().find(|e| block.ends_with(e)).map_or(block.len(), |e| block.len() - e.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_in_the_middle_of_a_line_is_found_by_a_field_of_warc() {
        let find = |text: &[u8]| find_record(text, 0, Family::Warc);
        assert_eq!(find(b"xWARC/1.0\nWARC-Type: a\n\n"), Some(1));
        assert_eq!(find(b"xWARC/1.0\r\nA: b\r\nwarc-type: a\r\n\r\n"), Some(1));
        assert_eq!(find(b"xWARC/1.0\na: b\n\nWARC-Type: a\n"), None, "behind the end of the head");
        assert_eq!(find(b"xWARC/1.0\na: b\nWARC/1.0\nb: c\n\n"), Some(15), "the first has none before the second");
        assert_eq!(find(b"xWARC/1.0\na:xWARC/1.0\nb:\n\nxWARC/1.0\na: b\nWARC-Type: a\n\n"), Some(27));
        let far = [b"xWARC/1.0\na:".as_slice(), &[b'b'; FIRST_FIELD_BYTES_MAX], b"\nWARC-Type: a"].concat();
        assert_eq!(find(&far), None, "too far behind");
        assert!(!begins_head(b"WARC/1.0") && begins_head(b"WARC/10.01\r\na:"), "a version line has an end");
    }

    /// What begins like a record very often and is none takes as long as its bytes, not as their square.
    #[test]
    fn many_version_lines_are_passed_in_one_go() {
        for piece in [&b"xWARC/1.0\na:"[..], b"WARC/", b"xWARC/1.0\r\n", b"xWARC/1.0\na:\n"] {
            let window = piece.repeat(crate::limits::LOOKAHEAD_BYTES / piece.len());
            assert_eq!(find_record(&window, 1, Family::Warc), None, "{}", piece.escape_ascii());
        }
    }
}
