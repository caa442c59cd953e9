//! A URL as its difference to what the SURT of its key implies: usually one byte.

use super::bits::{Bytes, put_varint};

/// ```text
///   | form 1 | rest … |
///
///   form   bit 0     https, not http
///          bit 1     `www.` in front of the host
///          bits 2–3  0 the implied URL itself, 1 other case, 2 spliced
///          bit 4     spliced: the place is counted from the front, not from the end
///          bit 5     the SURT itself is implied, as for `dns:` and `urn:`
///
///   other case   | gap varint … |                                 letters whose case changes, each by its distance
///   spliced      | place varint | dropped varint | put in … |     bytes of the implied URL replaced by others
/// ```
const HTTPS: u8 = 1;
const WWW: u8 = 2;
const PATCH: u8 = 3 << 2;
const OTHER_CASE: u8 = 1 << 2;
const SPLICED: u8 = 2 << 2;
const FROM_FRONT: u8 = 1 << 4;
const SURT_ITSELF: u8 = 1 << 5;

/// Writes `com,example)/a` as `https://www.example.com/a`.
fn imply(surt: &str, form: u8, out: &mut Vec<u8>) {
    let host_and_rest = if form & SURT_ITSELF == 0 { surt.split_once(')') } else { None };
    let Some((host, rest)) = host_and_rest else {
        out.extend_from_slice(surt.as_bytes());
        return;
    };
    out.extend_from_slice(if form & HTTPS != 0 { b"https://" } else { b"http://" });
    if form & WWW != 0 {
        out.extend_from_slice(b"www.");
    }
    let (name, port) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
    for (index, label) in name.rsplit(',').enumerate() {
        if index > 0 {
            out.push(b'.');
        }
        out.extend_from_slice(label.as_bytes());
    }
    if let Some(port) = port {
        out.push(b':');
        out.extend_from_slice(port.as_bytes());
    }
    out.extend_from_slice(rest.as_bytes());
}

/// The difference of `url` to what `surt` implies, appended to `out`.
pub fn write(surt: &str, url: &str, out: &mut Vec<u8>) {
    let mut form = 0;
    let after_scheme = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => {
            form |= HTTPS;
            Some(rest)
        }
        (None, rest) => rest,
    };
    match after_scheme {
        Some(rest) if rest.starts_with("www.") => form |= WWW,
        Some(_) => {}
        None => form |= SURT_ITSELF,
    }
    let mut implied = Vec::with_capacity(url.len() + 16);
    imply(surt, form, &mut implied);
    let url = url.as_bytes();
    if implied == url {
        out.push(form);
        return;
    }
    let begin = out.len();
    splice(&implied, url, form, out);
    if implied.eq_ignore_ascii_case(url) {
        let spliced = out.len() - begin;
        let mut toggles = vec![form | OTHER_CASE];
        let mut last = 0;
        for at in (0..url.len()).filter(|at| url[*at] != implied[*at]) {
            put_varint(&mut toggles, (at - last) as u64);
            last = at;
        }
        if toggles.len() < spliced {
            out.truncate(begin);
            out.extend_from_slice(&toggles);
        }
    }
}

fn splice(implied: &[u8], url: &[u8], form: u8, out: &mut Vec<u8>) {
    let front = implied.iter().zip(url).take_while(|(a, b)| a == b).count();
    let back = implied[front..].iter().rev().zip(url[front..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (place, from) = if front < back { (front, FROM_FRONT) } else { (back, 0) };
    out.push(form | SPLICED | from);
    put_varint(out, place as u64);
    put_varint(out, (implied.len() - front - back) as u64);
    out.extend_from_slice(&url[front..url.len() - back]);
}

/// The URL for a form that [`write`] made. Bytes it cannot have made give `None`.
pub fn read(surt: &str, form: &[u8]) -> Option<String> {
    let mut bytes = Bytes(form);
    let form = bytes.u8()?;
    let mut url = Vec::with_capacity(surt.len() + 24);
    imply(surt, form, &mut url);
    match form & PATCH {
        0 if bytes.0.is_empty() => {}
        OTHER_CASE => {
            let mut at = 0;
            while !bytes.0.is_empty() {
                at += bytes.count(url.len())?;
                let letter = url.get_mut(at)?;
                *letter =
                    if letter.is_ascii_uppercase() { letter.to_ascii_lowercase() } else { letter.to_ascii_uppercase() };
            }
        }
        SPLICED => {
            let place = bytes.count(url.len())?;
            let dropped = bytes.count(url.len())?;
            let begin =
                if form & FROM_FRONT != 0 { place } else { url.len().checked_sub(place)?.checked_sub(dropped)? };
            let end = begin.checked_add(dropped).filter(|end| *end <= url.len())?;
            url.splice(begin..end, bytes.0.iter().copied());
        }
        _ => return None,
    }
    String::from_utf8(url).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(surt: &str, url: &str) -> Vec<u8> {
        let mut out = Vec::new();
        write(surt, url, &mut out);
        assert_eq!(read(surt, &out).as_deref(), Some(url), "{surt} {url}");
        out
    }

    #[test]
    fn common_urls_take_one_byte() {
        for (surt, url) in [
            ("com,example)/", "http://example.com/"),
            ("com,example)/", "https://example.com/"),
            ("com,example)/a/b?c=d", "https://www.example.com/a/b?c=d"),
            ("com,example,blog:8080)/x", "http://blog.example.com:8080/x"),
            ("192.0.2.7)/", "http://192.0.2.7/"),
            ("dns:example.com", "dns:example.com"),
            ("urn:uuid:1", "urn:uuid:1"),
        ] {
            assert_eq!(form(surt, url).len(), 1, "{url}");
        }
    }

    #[test]
    fn differences_are_short_and_equal_ones_are_equal_bytes() {
        assert_eq!(form("org,example)/wiki/main_page", "https://example.org/wiki/Main_Page").len(), 3);
        assert_eq!(
            form("com,example)/a", "http://example.com/a/"),
            form("net,other)/long/path", "http://other.net/long/path/")
        );
        assert_eq!(form("com,example)/a", "http://www2.example.com/a").len(), 3 + 5);
        assert_eq!(form("com,example)/?a=1&b=2", "http://example.com/?b=2&a=1").len(), 3 + 7);
    }

    #[test]
    fn odd_urls_round_trip() {
        for (surt, url) in [
            ("", ""),
            ("", "http://"),
            (")", "http://"),
            ("com,example)/", ""),
            ("com,example)/", "HTTP://EXAMPLE.COM/"),
            ("com,example)/%c3%a9", "http://example.com/é"),
            ("com,example)/é", "http://example.com/è"),
            ("com,example,www)/", "http://www.www.example.com/"),
            ("com,example)/", "http://user:pw@example.com:80/#frag"),
            ("x", "completely different and much longer than the key"),
            ("com,example:80:81)/)x)", "https://example.com:80:81/)x)"),
        ] {
            form(surt, url);
        }
    }

    #[test]
    fn damaged_forms_give_an_answer_or_none_but_never_panic() {
        let good = form("com,example)/wiki/main_page", "http://www2.example.com/Wiki/Main");
        for at in 0..good.len() {
            for value in 0..=255 {
                let mut bad = good.clone();
                bad[at] = value;
                let _ = read("com,example)/wiki/main_page", &bad);
                let _ = read("é", &bad[at..]);
            }
        }
    }
}
