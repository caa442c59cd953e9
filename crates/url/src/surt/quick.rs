//! The key of a URL that is nearly canonical already, in one pass.
//!
//! Most URLs of most archives are: plain ASCII, an ordinary name, no escapes, no dot segments. This pass gives up on
//! everything else; where it answers, it answers what the thorough way answers.

use super::{host, query};

/// Appends the key and says true, or appends something useless and says false.
pub(super) fn key_into(url: &[u8], out: &mut Vec<u8>) -> bool {
    let (rest, default_port): (&[u8], &[u8]) = if let Some(rest) = url.strip_prefix(b"http://") {
        (rest, b":80")
    } else if let Some(rest) = url.strip_prefix(b"https://") {
        (rest, b":443")
    } else {
        return false;
    };
    let Some(rest) = host_into(rest, out) else { return false };
    let rest = rest.strip_prefix(default_port).unwrap_or(rest);
    let Some(rest) = path_into(rest, out) else { return false };
    query_into(rest, out)
}

/// Appends `org,example)` and gives back what follows the host.
fn host_into<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let end =
        rest.iter().position(|b| !b.is_ascii_alphanumeric() && !matches!(b, b'.' | b'-' | b'_')).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    // Without a letter it may be an address in one of its odd forms.
    if !name.iter().any(u8::is_ascii_alphabetic) {
        return None;
    }
    let mut lower = [0u8; 255];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    // Dots at the ends are tidied before `www` is looked for, so such a name is not for this pass.
    if lower.starts_with(b".") || lower.ends_with(b".") {
        return None;
    }
    for (i, label) in host::without_www(lower).rsplit(|&b| b == b'.').enumerate() {
        if label.is_empty() {
            return None;
        }
        if i > 0 {
            out.push(b',');
        }
        out.extend_from_slice(label);
    }
    out.push(b')');
    Some(rest)
}

/// Appends the path and gives back what follows: nothing, `?…` or `#…`.
fn path_into<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    match rest.first() {
        None | Some(b'?' | b'#') => {
            out.push(b'/');
            return Some(rest);
        }
        Some(b'/') => {}
        Some(_) => return None,
    }
    let mut before = 0;
    let mut end = rest.len();
    for (i, &byte) in rest.iter().enumerate() {
        match byte {
            b'?' | b'#' => {
                end = i;
                break;
            }
            // Empty and dot segments, sessions in the path, escapes: the thorough way knows.
            b'/' | b'.' if before == b'/' => return None,
            b'%' | b'(' | 0..=b' ' | 0x7f.. => return None,
            _ => {}
        }
        before = byte;
    }
    let (mut path, rest) = rest.split_at(end);
    if path.len() > 1 {
        path = path.strip_suffix(b"/").unwrap_or(path);
    }
    lower_into(path, out);
    Some(rest)
}

fn query_into(rest: &[u8], out: &mut Vec<u8>) -> bool {
    let Some(rest) = rest.strip_prefix(b"?") else {
        return true; // nothing left, or a fragment, which is no part of a key
    };
    let query = &rest[..memchr::memchr(b'#', rest).unwrap_or(rest.len())];
    if query.iter().any(|b| matches!(b, b'%' | 0..=b' ' | 0x7f..)) {
        return false;
    }
    if query.is_empty() {
        return true;
    }
    let mut lower = query.to_ascii_lowercase();
    lower = query::without_session(&lower).unwrap_or(lower);
    if !lower.is_empty() {
        query::sort(&mut lower);
        out.push(b'?');
        out.append(&mut lower);
    }
    true
}

fn lower_into(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(bytes);
    out[start..].make_ascii_lowercase();
}
