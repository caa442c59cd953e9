//! The key of a URL that is nearly canonical already, in one pass.
//!
//! Most URLs of most archives are: plain ASCII, an ordinary name or address, no escapes, no dot segments. This pass gives up
//! on everything else; where it answers, it answers what the thorough way answers.

use std::net::Ipv4Addr;

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
    let Some(rest) = port_into(rest, default_port, out) else { return false };
    out.push(b')');
    let Some(rest) = path_into(rest, out) else { return false };
    query_into(rest, out)
}

/// Appends `org,example` and gives back what follows the host.
fn host_into<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let end =
        rest.iter().position(|b| !b.is_ascii_alphanumeric() && !matches!(b, b'.' | b'-' | b'_')).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    // Without a letter it may be an address in one of its odd forms; only the plain one, `127.0.0.1`, is for this pass.
    if !name.iter().any(u8::is_ascii_alphabetic) {
        std::str::from_utf8(name).ok()?.parse::<Ipv4Addr>().ok()?;
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
    Some(rest)
}

/// Appends `:8080`, or nothing for the port of the scheme, and gives back what follows.
fn port_into<'a>(rest: &'a [u8], default_port: &[u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let Some(digits) = rest.strip_prefix(b":") else { return Some(rest) };
    let length = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    let (port, rest) = rest.split_at(1 + length);
    if port == default_port {
        return Some(rest);
    }
    // A port that would be written otherwise than it stands, or that is none, is not for this pass.
    let plain = matches!(port, [b':', b'1'..=b'9', ..]) && std::str::from_utf8(&port[1..]).ok()?.parse::<u16>().is_ok();
    plain.then(|| {
        out.extend_from_slice(port);
        rest
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_ports_are_for_this_pass_where_they_are_plain() {
        let plain = [
            "http://127.0.0.1/a",
            "http://127.0.0.1:8080/",
            "https://www.a.example:8443/x?b=1&a=2",
            "http://a.example:80/x",
        ];
        let odd = [
            "http://127.1/a",
            "http://0127.0.0.1/a",
            "http://127.0.0.1./a",
            "http://256.0.0.1/a",
            "http://a.example:080/",
            "http://a.example:0/",
            "http://a.example:65536/",
            "http://a.example:/",
            "http://a.example:80a/",
        ];
        for (url, is_plain) in plain.iter().map(|url| (url, true)).chain(odd.iter().map(|url| (url, false))) {
            assert_eq!(key_into(url.as_bytes(), &mut Vec::new()), is_plain, "{url}");
            crate::surt::assert_ways_agree(url.as_bytes());
        }
        assert_eq!(crate::surt::key("http://127.0.0.1:8080/A"), "1,0,0,127:8080)/a");
    }
}
