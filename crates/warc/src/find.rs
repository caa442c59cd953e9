//! Where records begin and heads end, in bytes that may be damaged.

use crate::arc;
use memchr::memmem;

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
    let mut at = from;
    while let Some(found) = memchr::memchr(b'\n', &window[at..]) {
        let next = at + found + 1;
        // Some files were converted from line end to line end until they had too many.
        let returns = window[next..].iter().take_while(|b| **b == b'\r').count();
        match &window[next + returns..] {
            [b'\n', ..] => return Some(next + returns + 1),
            rest if returns == 0 && rest.starts_with(b"WARC/") => return Some(next),
            _ => at = next,
        }
    }
    None
}

/// Where, from `from` on, a record begins at the start of a line.
pub(crate) fn find_record(window: &[u8], from: usize, family: Family) -> Option<usize> {
    let warc = if family == Family::Arc { None } else { find_warc(window, from) };
    let arc = if family == Family::Warc { None } else { find_arc(window, from, warc.unwrap_or(window.len())) };
    arc.or(warc)
}

/// Usually at the start of a line; behind damage the line before may have lost its end, so a head that is unmistakable counts anywhere.
fn find_warc(window: &[u8], from: usize) -> Option<usize> {
    memmem::find_iter(window.get(from..)?, b"WARC/")
        .map(|at| from + at)
        .find(|&at| begins_head(&window[at..]) && (at == 0 || window[at - 1] == b'\n' || has_type(&window[at..])))
}

/// A version line, then a named field.
pub(crate) fn begins_head(bytes: &[u8]) -> bool {
    let line = first_line(bytes);
    let version = line.strip_suffix(b"\r").unwrap_or(line);
    let digits = version.get(5..).unwrap_or_default();
    let plausible = version.starts_with(b"WARC/")
        && (3..=5).contains(&digits.len())
        && digits.iter().all(|b| b.is_ascii_digit() || *b == b'.');
    let rest = bytes.get(line.len() + 1..).unwrap_or_default();
    let name = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'-').count();
    plausible && name > 0 && rest.get(name) == Some(&b':')
}

fn has_type(bytes: &[u8]) -> bool {
    let head = &bytes[..head_end(bytes, 0).unwrap_or(bytes.len().min(4096))];
    memmem::find(&head.to_ascii_lowercase(), b"\nwarc-").is_some()
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
