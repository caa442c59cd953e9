//! Session identifiers cut out of paths and queries, and the order of query parameters.

use memchr::memmem;

/// Cuts one session identifier of each known kind out of a query; `None` when there is none.
///
/// Of several of one kind the last goes. What stood before and after closes up, which may leave an empty parameter.
pub(super) fn without_session(query: &[u8]) -> Option<Vec<u8>> {
    let mut lower = query.to_ascii_lowercase();
    // Every kind has an "id" in it, most queries have not.
    memmem::find(&lower, b"id")?;
    let mut kept = query.to_vec();
    let mut cut = |found: fn(&[u8]) -> Option<(usize, usize)>| {
        if let Some((start, end)) = found(&lower) {
            kept.drain(start..end);
            lower.drain(start..end);
        }
    };
    cut(|query| last(query, b"jsessionid=", |rest| run(rest, 32, u8::is_ascii_alphanumeric)));
    cut(|query| last(query, b"phpsessid=", |rest| run(rest, 32, u8::is_ascii_alphanumeric)));
    cut(|query| last(query, b"sid=", |rest| run(rest, 32, u8::is_ascii_alphanumeric)));
    cut(|query| {
        last(query, b"aspsessionid", |rest| {
            let name = run(rest, 8, u8::is_ascii_alphabetic)?;
            let value = rest[name..].strip_prefix(b"=")?;
            Some(name + 1 + run(value, 24, u8::is_ascii_alphabetic)?)
        })
    });
    cut(last_cold_fusion_pair);
    (kept.len() < query.len()).then_some(kept)
}

/// The last place where `name` stands and `value` (given what follows, the length it takes) reaches to a `&`
/// or to the end; with that `&`.
fn last(query: &[u8], name: &[u8], value: impl Fn(&[u8]) -> Option<usize>) -> Option<(usize, usize)> {
    let mut before = query.len();
    while let Some(start) = memmem::rfind(&query[..before], name) {
        let at = start + name.len();
        if let Some(length) = value(&query[at..]) {
            match query.get(at + length) {
                None => return Some((start, at + length)),
                Some(b'&') => return Some((start, at + length + 1)),
                Some(_) => {}
            }
        }
        before = start + name.len() - 1;
    }
    None
}

/// The last `cfid=…&cftoken=…`, both values not empty, with the `&` behind it.
fn last_cold_fusion_pair(query: &[u8]) -> Option<(usize, usize)> {
    const TOKEN: &[u8] = b"&cftoken=";
    let mut before = query.len();
    while let Some(token) = memmem::rfind(&query[..before], TOKEN) {
        let value = token + TOKEN.len();
        let end = memchr::memchr(b'&', &query[value..]).map_or(query.len(), |length| value + length);
        let parameter = memchr::memrchr(b'&', &query[..token]).map_or(0, |and| and + 1);
        // The last byte before the token belongs to the identifier's value, which may not be empty.
        let id = query.get(parameter..token.saturating_sub(1)).and_then(|part| memmem::rfind(part, b"cfid="));
        if let Some(id) = id.filter(|_| end > value) {
            return Some((parameter + id, query.len().min(end + 1)));
        }
        before = token;
    }
    None
}

fn run(bytes: &[u8], length: usize, belongs: fn(&u8) -> bool) -> Option<usize> {
    bytes.get(..length)?.iter().all(belongs).then_some(length)
}

/// Cuts a path segment with an ASP.NET session out of a lower-case path: `/(24 characters)/` and
/// `/(x(24 characters)…)/`, when a name in `.aspx` follows.
pub(super) fn path_without_session(path: &mut Vec<u8>) {
    if memmem::find(path, b".aspx").is_none() {
        return;
    }
    for segment in [lettered_session as fn(&[u8]) -> Option<usize>, bare_session] {
        if let Some((start, end)) = last_session_segment(path, segment) {
            path.drain(start..end);
        }
    }
}

fn last_session_segment(path: &[u8], segment: fn(&[u8]) -> Option<usize>) -> Option<(usize, usize)> {
    // Walking to the left, the next `?` and the next `.aspx` are carried along, so that the walk stays linear.
    let (mut question, mut page, mut seen) = (path.len(), path.len(), path.len());
    for slash in memchr::memrchr_iter(b'/', path) {
        let start = slash + 1;
        let Some(length) = segment(&path[start..]) else { continue };
        let end = start + length;
        if let Some(at) = memchr::memchr(b'?', &path[end..seen.max(end)]) {
            question = end + at;
        }
        let reach = (seen + b".aspx".len()).min(path.len());
        if let Some(at) = path.get(end + 1..reach).and_then(|part| memmem::find(part, b".aspx")) {
            page = end + 1 + at;
        }
        seen = end;
        if page < question && page < path.len() {
            return Some((start, end));
        }
    }
    None
}

/// `(` 24 characters `)/`
fn bare_session(segment: &[u8]) -> Option<usize> {
    let inside = run(segment.strip_prefix(b"(")?, 24, u8::is_ascii_alphanumeric)?;
    segment[1 + inside..].starts_with(b")/").then_some(inside + 3)
}

/// `(` one or more of: letter `(` 24 characters `)`, then `)/`
fn lettered_session(segment: &[u8]) -> Option<usize> {
    let mut at = segment.strip_prefix(b"(").map(|_| 1)?;
    while let [letter, b'(', value @ ..] = &segment[at..] {
        if !letter.is_ascii_alphabetic()
            || run(value, 24, u8::is_ascii_alphanumeric).is_none()
            || value.get(24) != Some(&b')')
        {
            break;
        }
        at += 27;
    }
    (at > 1 && segment[at..].starts_with(b")/")).then_some(at + 2)
}

/// Parameters in order of name, then of value; a name without `=` before the same name with it.
pub(super) fn sort(query: &mut Vec<u8>) {
    if memchr::memchr(b'&', query).is_none() {
        return;
    }
    let mut parameters: Vec<(&[u8], Option<&[u8]>)> = query.split(|&b| b == b'&').map(parameter).collect();
    if parameters.is_sorted() {
        return;
    }
    parameters.sort();
    let mut sorted = Vec::with_capacity(query.len());
    for (i, (name, value)) in parameters.into_iter().enumerate() {
        if i > 0 {
            sorted.push(b'&');
        }
        sorted.extend_from_slice(name);
        if let Some(value) = value {
            sorted.push(b'=');
            sorted.extend_from_slice(value);
        }
    }
    *query = sorted;
}

fn parameter(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'=', text) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789ABCDEF0123456789abcdef";

    #[track_caller]
    fn becomes(query: &str, wanted: &str) {
        let query = query.replace("ID32", ID);
        let kept = without_session(query.as_bytes()).unwrap_or_else(|| query.clone().into_bytes());
        assert_eq!(String::from_utf8_lossy(&kept), wanted.replace("ID32", ID), "{query}");
    }

    #[test]
    fn session_parameters_go() {
        becomes("a=1&JSESSIONID=ID32&b=2", "a=1&b=2");
        becomes("PHPSESSID=ID32&action=profile;u=4221", "action=profile;u=4221");
        becomes("a&sid=ID32", "a&");
        becomes("aspsessionidABCDEFGH=ABCDEFGHABCDEFGHABCDEFGH&b", "b");
        becomes("b&CFID=12&CFTOKEN=34&c", "b&c");
    }

    #[test]
    fn of_two_the_last_goes() {
        becomes("sid=ID32&sid=ID32&z", "sid=ID32&z");
        becomes("cfid=1&cftoken=2&cfid=3&cftoken=4", "cfid=1&cftoken=2&");
    }

    #[test]
    fn what_only_looks_like_one_stays() {
        for query in
            ["sid=1234", "jsessionid=ID32x", "cftoken=1&cfid=2", "cfid=&cftoken=2", "cfid=1&x&cftoken=2", "id=5"]
        {
            becomes(query, query);
        }
    }

    #[test]
    fn session_segments_go_before_aspx_pages_only() {
        for (path, wanted) in [
            ("/(s(4hqa0555fwsecu455xqckv45))/mileg.aspx", "/mileg.aspx"),
            ("/(4hqa0555fwsecu455xqckv45)/mileg.aspx/x", "/mileg.aspx/x"),
            ("/a/(a(4hqa0555fwsecu455xqckv45)s(4hqa0555fwsecu455xqckv45))/b/c.aspx", "/a/b/c.aspx"),
            ("/(4hqa0555fwsecu455xqckv45)/(4hqa0555fwsecu455xqckv45)/m.aspx", "/(4hqa0555fwsecu455xqckv45)/m.aspx"),
            ("/(4hqa0555fwsecu455xqckv45)/m.html", "/(4hqa0555fwsecu455xqckv45)/m.html"),
            ("/(4hqa0555fwsecu455xqckv45)/.aspx", "/(4hqa0555fwsecu455xqckv45)/.aspx"),
            ("/(4hqa0555fwsecu455xqckv45)/a?b.aspx", "/(4hqa0555fwsecu455xqckv45)/a?b.aspx"),
            ("/x.aspx/(4hqa0555fwsecu455xqckv45)/a", "/x.aspx/(4hqa0555fwsecu455xqckv45)/a"),
            ("/(4hqa0555fwsecu455xqckv4)/m.aspx", "/(4hqa0555fwsecu455xqckv4)/m.aspx"),
        ] {
            let mut path = path.as_bytes().to_vec();
            path_without_session(&mut path);
            assert_eq!(String::from_utf8_lossy(&path), wanted);
        }
    }

    #[test]
    fn parameters_are_sorted_by_name_then_value() {
        for (query, wanted) in [
            ("b=1&a=2", "a=2&b=1"),
            ("a=b&a=a", "a=a&a=b"),
            ("a=&b&a", "a&a=&b"),
            ("a=1&", "&a=1"),
            ("b=1&a=2=3&a=2", "a=2&a=2=3&b=1"),
            ("a-b=1&a=2", "a=2&a-b=1"),
        ] {
            let mut query = query.as_bytes().to_vec();
            sort(&mut query);
            assert_eq!(String::from_utf8_lossy(&query), wanted);
        }
    }
}
