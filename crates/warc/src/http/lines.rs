//! Finding the lines of a head: offsets only, bytes stay where they are.

use memchr::{memchr, memchr2};

use super::limits::HTTP_HEAD_BYTES_MAX;
use super::{Deviations, Rule};

/// Where one field stands in the bytes of a head. A field that is continued on further lines is one span.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldSpan {
    /// First byte of the line.
    pub line: u32,
    /// End of the last line, its line end not included.
    pub end: u32,
    /// Name without white space; empty when the line is no field.
    pub name: (u32, u32),
    /// Value without white space at either end.
    pub value: (u32, u32),
}

/// The lines of one message: `first` is the status or request line.
pub(super) struct Lines {
    pub first: (usize, usize),
    pub first_folded: bool,
    /// Where the head ends and the body begins.
    pub end: usize,
}

pub(super) enum Scan {
    Complete(Lines),
    NeedMore,
    /// Not one line end within the bound.
    Endless,
}

pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Which bytes a field name may hold.
const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"!#$%&'*+-.^_`|~";
    let mut at = 0;
    while at < others.len() {
        table[others[at] as usize] = true;
        at += 1;
    }
    table
};

pub(super) fn trim(bytes: &[u8], mut from: usize, mut to: usize) -> (usize, usize) {
    while from < to && is_space(bytes[from]) {
        from += 1;
    }
    while from < to && is_space(bytes[to - 1]) {
        to -= 1;
    }
    (from, to)
}

/// Splits `bytes` from `start` into the first line and fields, up to the empty line.
///
/// A line ends at LF; the empty line is LF or CRLF directly after a line end, as in browsers. Without an empty line the head
/// ends at the first complete line that cannot be a field, else with the message.
pub(super) fn scan(
    bytes: &[u8],
    start: usize,
    ended: bool,
    fields: &mut Vec<FieldSpan>,
    deviations: &mut Deviations,
) -> Scan {
    let bound = bytes.len().min(HTTP_HEAD_BYTES_MAX);
    let mut first: Option<(usize, usize)> = None;
    let mut first_folded = false;
    let mut no_field: Option<(usize, usize)> = None; // the first complete line without a colon, and the fields before it
    let mut at = start;
    loop {
        let Some(length) = memchr(b'\n', &bytes[at..bound]) else {
            if !ended && bytes.len() < HTTP_HEAD_BYTES_MAX {
                return Scan::NeedMore;
            }
            let cut = bytes.len() > HTTP_HEAD_BYTES_MAX || !ended;
            let end = no_field.map_or(at, |(line, _)| line);
            deviations.forget_from(end);
            deviations.note(if cut { Rule::HeadTooLong } else { Rule::HeadUnended }, end);
            let Some(first) = first else {
                if cut {
                    return Scan::Endless;
                }
                let line = (start, content_end(bytes, start, bound));
                return Scan::Complete(Lines { first: line, first_folded, end: bound });
            };
            if let Some((line, kept)) = no_field {
                fields.truncate(kept);
                return Scan::Complete(Lines { first, first_folded, end: line });
            }
            if !cut && at < bound {
                add_line(bytes, at, bound, fields, deviations);
            }
            return Scan::Complete(Lines { first, first_folded, end: if cut { at } else { bound } });
        };
        let line_end = at + length;
        let end = content_end(bytes, at, line_end);
        if length == 0 || bytes[line_end - 1] != b'\r' {
            deviations.note(Rule::LineEnd, line_end);
        }
        match first {
            None => first = Some((at, end)),
            Some(span) => {
                if length == 0 || (length == 1 && bytes[at] == b'\r') {
                    return Scan::Complete(Lines { first: span, first_folded, end: line_end + 1 });
                }
                if fields.is_empty() && is_blank(bytes[at]) && memchr(b':', &bytes[at..end]).is_none() {
                    first = Some((span.0, end.max(at)));
                    first_folded = true;
                    deviations.note(Rule::StatusFolded, at);
                } else {
                    let is_field = add_line(bytes, at, line_end, fields, deviations);
                    if !is_field && no_field.is_none() {
                        no_field = Some((at, fields.len() - 1));
                    }
                }
            }
        }
        at = line_end + 1;
    }
}

/// Where the content of the line `from..to` ends: carriage returns at its end belong to the line end.
fn content_end(bytes: &[u8], from: usize, mut to: usize) -> usize {
    while from < to && bytes[to - 1] == b'\r' {
        to -= 1;
    }
    to
}

/// Adds the line `at..line_end` as a field, or as a continuation of the field before. False when it is neither.
fn add_line(
    bytes: &[u8],
    at: usize,
    line_end: usize,
    fields: &mut Vec<FieldSpan>,
    deviations: &mut Deviations,
) -> bool {
    let end = content_end(bytes, at, line_end);
    if end + 1 < line_end {
        deviations.note(Rule::BareCr, end);
    }
    let line = &bytes[at..end];
    let mut odd = 0;
    while let Some(found) = memchr2(0, b'\r', &line[odd..]) {
        odd += found;
        deviations.note(if line[odd] == 0 { Rule::Nul } else { Rule::BareCr }, at + odd);
        odd += 1;
    }
    if is_blank(bytes[at])
        && let Some(field) = fields.last_mut()
    {
        deviations.note(Rule::Folded, at);
        // Only this line is looked at: the value may already go over very many blank ones.
        let (from, to) = trim(bytes, at, end);
        field.end = end as u32;
        if field.value.0 == field.value.1 {
            field.value = (from as u32, to as u32);
        } else if from < to {
            field.value.1 = to as u32;
        }
        return true;
    }
    let colon = memchr(b':', line).map(|length| at + length);
    let (name, value) = match colon {
        None => ((at, at), trim(bytes, at, end)),
        Some(colon) => (trim(bytes, at, colon), trim(bytes, colon + 1, end)),
    };
    if name.0 == name.1 {
        deviations.note(Rule::NoColon, at);
    } else if colon != Some(name.1) || name.0 != at {
        deviations.note(Rule::SpaceBeforeColon, at);
    }
    if !bytes[name.0..name.1].iter().all(|&b| TOKEN[usize::from(b)]) {
        deviations.note(Rule::FieldName, at);
    }
    fields.push(FieldSpan {
        line: at as u32,
        end: end as u32,
        name: (name.0 as u32, name.1 as u32),
        value: (value.0 as u32, value.1 as u32),
    });
    colon.is_some()
}
