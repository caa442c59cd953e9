//! Media types by file name, and paths as URLs write them.

/// The media type of a file name; `application/octet-stream` when nothing is known.
pub fn of(name: &str) -> &'static str {
    let extension = name.rsplit('/').next().unwrap_or(name).rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension.to_ascii_lowercase().as_str() {
        "html" | "htm" => "text/html",
        "xhtml" => "application/xhtml+xml",
        "css" => "text/css",
        "js" | "mjs" => "text/javascript",
        "json" | "map" => "application/json",
        "xml" | "xsl" => "application/xml",
        "rss" => "application/rss+xml",
        "atom" => "application/atom+xml",
        "txt" | "text" | "log" | "md" => "text/plain",
        "csv" => "text/csv",
        "ics" => "text/calendar",
        "vtt" => "text/vtt",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "svg" => "image/svg+xml",
        "ico" => "image/vnd.microsoft.icon",
        "bmp" => "image/bmp",
        "tif" | "tiff" => "image/tiff",
        "woff" => "font/woff",
        "woff2" => "font/woff2",
        "ttf" => "font/ttf",
        "otf" => "font/otf",
        "mp3" => "audio/mpeg",
        "ogg" | "oga" => "audio/ogg",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        "pdf" => "application/pdf",
        "ps" | "eps" => "application/postscript",
        "rtf" => "application/rtf",
        "epub" => "application/epub+zip",
        "zip" => "application/zip",
        "gz" | "tgz" => "application/gzip",
        "bz2" => "application/x-bzip2",
        "xz" => "application/x-xz",
        "zst" => "application/zstd",
        "tar" => "application/x-tar",
        "wasm" => "application/wasm",
        "warc" => "application/warc",
        _ => "application/octet-stream",
    }
}

/// Whether a body of this type is worth compressing.
pub fn is_text(media_type: &str) -> bool {
    let kind = media_type.split(';').next().unwrap_or(media_type).trim();
    kind.starts_with("text/")
        || kind.ends_with("+xml")
        || matches!(kind, "application/json" | "application/xml" | "application/javascript")
}

/// The names of a URL's path below the root, decoded; `None` for a path that names no file: one that is not
/// absolute, climbs, or holds a NUL, a line end or an encoded slash.
pub fn segments(path: &str) -> Option<Vec<Vec<u8>>> {
    let path = path.split(['?', '#']).next()?.strip_prefix('/')?;
    let names = path.split('/').map(decode).collect::<Option<Vec<_>>>()?;
    let last = names.len() - 1;
    let lawful = names.iter().enumerate().all(|(place, name)| {
        (place == last || !name.is_empty())
            && name != b"."
            && name != b".."
            && !name.iter().any(|byte| matches!(byte, 0 | b'\n' | b'\r' | b'/'))
    });
    lawful.then_some(names)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        out.push((digit(bytes.next())? * 16 + digit(bytes.next())?) as u8);
    }
    Some(out)
}

/// A path of raw names as a URL writes it, each byte that needs it encoded.
pub fn encode(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len());
    for &byte in path {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(of("a/b.c/INDEX.HTML"), "text/html");
        assert_eq!(of("a.b/README"), "application/octet-stream");
        assert!(is_text("text/html; charset=utf-8") && is_text("image/svg+xml") && !is_text("image/png"));
    }

    #[test]
    fn paths_that_climb_name_nothing() {
        for path in ["", "x", "/..", "/a/../b", "/%2e%2E/x", "/a//b", "/a%00", "/a%2fb", "/a%0Ab", "/a%", "/a%zz"] {
            assert_eq!(segments(path), None, "{path}");
        }
        assert_eq!(segments("/a%20b/c?x=/../"), Some(vec![b"a b".to_vec(), b"c".to_vec()]));
        assert_eq!(segments("/a/"), Some(vec![b"a".to_vec(), b"".to_vec()]));
        assert_eq!(encode("a b/é?".as_bytes()), "a%20b/%C3%A9%3F");
    }
}
