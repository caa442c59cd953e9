//! A URL as the path of a file: `https://example.org/a/b?c=d` is `example.org/a/b%3Fc=d`.
//!
//! A path is relative, has no `..`, no empty part and no character that a file system gives a meaning to; what cannot stand in it is
//! percent-encoded, and what is too long ends in a hash. A URL that ends in a slash is the `index.html` below it.

use skep_url::Url;
use skep_warc::digest::{Algorithm, Digest};

/// Bytes of one part of a path; file systems take 255, and some marks are put behind it.
const PART_BYTES_MAX: usize = 200;
/// Bytes of a whole path; systems take 4096 with the folder it is in.
const PATH_BYTES_MAX: usize = 1500;
/// Bytes of an ending that is kept when a name is cut.
const ENDING_BYTES_MAX: usize = 12;
/// Hex digits that stand for what was cut.
const HASH_DIGITS: usize = 16;
/// Where paths go that are too long as a whole.
const LONG: &str = "_long";
/// Names that are devices on some systems, whatever their ending.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "com", "lpt"];

/// The path for a URL with a body of this media type; `None` for what is not of the web.
pub fn path_of(url: &str, mime: &str) -> Option<String> {
    let whole = url.split('#').next().unwrap_or_default();
    let parsed: Url = whole.parse().ok()?;
    let rest = parsed.as_str().split_once("://")?.1;
    let (host, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    };
    let mut parts: Vec<String> = vec![part(&host.replace(':', "_"), parsed.as_str())];
    let mut names: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let last = names.pop().unwrap_or_default();
    for name in names {
        parts.push(part(&decoded(name), parsed.as_str()));
    }
    let mut name = if last.is_empty() { index(mime).to_owned() } else { decoded(last) };
    if let Some(query) = query {
        name.push('?');
        name.push_str(&decoded(query));
    }
    parts.push(part(&name, parsed.as_str()));
    let path = parts.join("/");
    if path.len() <= PATH_BYTES_MAX {
        return Some(path);
    }
    Some(format!("{}/{LONG}/{}{}", parts[0], hash(parsed.as_str()), ending(&parts[parts.len() - 1])))
}

/// What a folder's own page is called.
pub fn index(mime: &str) -> &'static str {
    match mime.to_ascii_lowercase().as_str() {
        "" | "text/html" | "application/xhtml+xml" => "index.html",
        "text/plain" => "index.txt",
        "text/css" => "index.css",
        "application/json" | "application/feed+json" => "index.json",
        "application/pdf" => "index.pdf",
        "image/svg+xml" => "index.svg",
        mime if mime.ends_with("xml") => "index.xml",
        mime if mime.contains("javascript") => "index.js",
        _ => "index",
    }
}

/// The n-th name for a path that others have taken: `a/b~2.html`.
pub fn another(path: &str, number: u32) -> String {
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
    let end = ending(name);
    let stem = &name[..name.len() - end.len()];
    let slash = if folder.is_empty() { "" } else { "/" };
    format!("{folder}{slash}{stem}~{number}{end}")
}

/// Percent-encoding undone where it stands for text.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// A part of a path, as it may stand in one.
fn part(text: &str, url: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let dots = text.chars().all(|c| c == '.');
    let count = text.chars().count();
    for (position, c) in text.chars().enumerate() {
        // Some systems drop a dot or a space at the end of a name.
        let at_end = position + 1 == count && matches!(c, '.' | ' ');
        let harmful = c.is_control() || "/\\:*?\"<>|".contains(c) || (dots && c == '.') || at_end;
        if harmful {
            let mut bytes = [0; 4];
            c.encode_utf8(&mut bytes).bytes().for_each(|byte| out.push_str(&format!("%{byte:02X}")));
        } else {
            out.push(c);
        }
    }
    let stem = out.split('.').next().unwrap_or_default().trim_end_matches(|c: char| c.is_ascii_digit());
    if out.is_empty() || DEVICES.iter().any(|device| stem.eq_ignore_ascii_case(device)) {
        out.insert(0, '_');
    }
    if out.len() > PART_BYTES_MAX {
        let end = ending(&out).to_owned();
        let room = PART_BYTES_MAX - end.len() - HASH_DIGITS - 1;
        // Two names that are cut at the same place must stay two.
        let hash = hash(&format!("{url}\n{out}"));
        out.truncate(out.floor_char_boundary(room));
        out = format!("{out}~{hash}{end}");
    }
    out
}

/// `.html` of a name, if it is short; that of the name before a query.
fn ending(name: &str) -> &str {
    match name.rfind('.').filter(|at| *at > 0) {
        Some(at)
            if name.len() - at <= ENDING_BYTES_MAX && name[at + 1..].bytes().all(|b| b.is_ascii_alphanumeric()) =>
        {
            &name[at..]
        }
        _ => "",
    }
}

fn hash(text: &str) -> String {
    let mut hex = Digest::of(Algorithm::Sha256, text.as_bytes()).hex();
    hex.truncate(HASH_DIGITS);
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_becomes_a_path_that_a_server_would_look_for() {
        let html = |url: &str| path_of(url, "text/html").unwrap();
        assert_eq!(html("https://example.org"), "example.org/index.html");
        assert_eq!(html("https://example.org:8080/a/b.html#top"), "example.org_8080/a/b.html");
        assert_eq!(html("http://example.org/caf%C3%A9/"), "example.org/café/index.html");
        assert_eq!(html("http://example.org/a?b=c/d&e=%20"), "example.org/a%3Fb=c%2Fd&e=%20");
        assert_eq!(html("http://example.org/?q"), "example.org/index.html%3Fq");
        assert_eq!(path_of("http://example.org/feed/", "application/rss+xml").unwrap(), "example.org/feed/index.xml");
        assert_eq!(path_of("dns:example.org", ""), None);
        assert_eq!(path_of("urn:uuid:1", ""), None);
    }

    #[test]
    fn no_url_leads_out_of_the_folder_or_has_a_meaning_for_the_system() {
        let long = format!("http://a.example/{}.html", "x".repeat(5000));
        let deep = format!("http://a.example/{}", "abc/".repeat(2000));
        let odd = [
            "http://a.example/../../etc/passwd",
            "http://a.example/%2e%2e/%2e%2e/etc",
            "http://a.example/a%2F..%2F..%2Fb",
            "http://a.example/..%5C..%5Cb",
            "http://a.example//a///b",
            "http://a.example/%00%0a",
            "http://a.example/C:%5Cx",
            "http://a.example/...",
            "http://a.example/nul.html",
            "http://a.example/end.",
            "http://a.example/%FF%FE",
            long.as_str(),
            deep.as_str(),
        ];
        let mut seen = std::collections::BTreeSet::new();
        for url in odd {
            let path = path_of(url, "text/html").unwrap_or_else(|| panic!("{url}"));
            assert!(path.len() <= PATH_BYTES_MAX, "{url}: {path}");
            for part in path.split('/') {
                assert!(!part.is_empty() && part.len() <= 255 && part != "." && part != "..", "{url}: {path}");
                assert!(!part.contains(['\\', ':', '\0', '\n']) && !part.ends_with(['.', ' ']), "{url}: {path}");
                assert!(!part.starts_with("nul."), "{url}: {path}");
            }
            assert!(path.starts_with("a.example/"), "{url}: {path}");
            assert!(seen.insert(path), "{url}");
        }
        let other = format!("http://a.example/{}y.html", "x".repeat(5000));
        assert_ne!(path_of(&long, ""), path_of(&other, ""), "what is cut at the same place stays two");
        assert!(path_of(&long, "").unwrap().ends_with(".html"));
    }

    #[test]
    fn a_taken_path_gets_a_number_before_its_ending() {
        assert_eq!(another("a.example/b.html", 2), "a.example/b~2.html");
        assert_eq!(another("a.example/b", 3), "a.example/b~3");
        assert_eq!(another("a.example/.htaccess", 2), "a.example/.htaccess~2");
    }
}
