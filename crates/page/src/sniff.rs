//! What kind of file it is: by its media type, and by its first bytes where that says too little.

use skep_url::Url;
use skep_warc::http::Head;

use crate::limits;
use crate::page::Kind;
use crate::value::is_space;

/// The kind of a file.
pub fn kind(url: &Url, head: Option<&Head>, body: &[u8]) -> Kind {
    let media_type = head.and_then(Head::mime).unwrap_or_default();
    let path = url.request_target().split('?').next().unwrap_or_default();
    let start = beginning(body);
    match media_type.as_str() {
        "text/html" => html_or_xml(start),
        "application/xhtml+xml" => Kind::Html,
        "image/svg+xml" => Kind::Svg,
        "text/css" => Kind::Css,
        "application/rss+xml" | "application/atom+xml" | "application/rdf+xml" | "application/feed+json" => Kind::Feed,
        "application/json" if is_json_feed(start) => Kind::Feed,
        "text/plain" if path == "/robots.txt" => Kind::Robots,
        "text/plain" if is_text_sitemap(path, start) => Kind::Sitemap,
        // Servers say this of files whose kind they do not know.
        "text/plain" | "application/octet-stream" => match root(start) {
            Some(kind @ (Kind::Sitemap | Kind::Feed)) => kind,
            _ => Kind::Other,
        },
        "" | "unknown/unknown" | "application/unknown" | "*/*" => {
            if path == "/robots.txt" && root(start).is_none() && !looks_like_html(start) {
                Kind::Robots
            } else if let Some(kind) = root(start) {
                kind
            } else if looks_like_html(start) {
                Kind::Html
            } else if is_text_sitemap(path, start) {
                Kind::Sitemap
            } else if is_json_feed(start) {
                Kind::Feed
            } else {
                Kind::Other
            }
        }
        "text/xml" | "application/xml" => root(start).unwrap_or(Kind::Other),
        other if other.ends_with("+xml") => root(start).unwrap_or(Kind::Other),
        _ => Kind::Other,
    }
}

/// Does the XML standard count, not the HTML one?
pub fn is_xml(head: Option<&Head>, body: &[u8]) -> bool {
    match head.and_then(Head::media_type) {
        Some(media_type) if !media_type.is_empty() => {
            let media_type = media_type.to_ascii_lowercase();
            media_type.ends_with(b"+xml") || media_type.ends_with(b"/xml")
        }
        _ => matches!(root(beginning(body)), Some(Kind::Svg)),
    }
}

/// The beginning, without byte order mark and white space.
fn beginning(body: &[u8]) -> &[u8] {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let body = body.trim_ascii_start();
    &body[..body.len().min(limits::SNIFF_BYTES)]
}

/// Feeds and sitemaps are sent as HTML too.
fn html_or_xml(start: &[u8]) -> Kind {
    let marks: [&[u8]; 4] = [b"<?xml", b"<urlset", b"<sitemapindex", b"<rss"];
    match root(start) {
        Some(kind @ (Kind::Sitemap | Kind::Feed)) if marks.iter().any(|mark| start.starts_with(mark)) => kind,
        _ => Kind::Html,
    }
}

/// The kind that the first element of markup tells.
fn root(start: &[u8]) -> Option<Kind> {
    let mut rest = start;
    loop {
        rest = rest.trim_ascii_start();
        let after = rest.strip_prefix(b"<")?;
        match after.first()? {
            b'!' if after.starts_with(b"!--") => {
                rest = &after[memchr::memmem::find(after, b"-->")? + 3..];
            }
            b'!' | b'?' => rest = &after[memchr::memchr(b'>', after)? + 1..],
            _ => {
                let end =
                    after.iter().position(|&byte| is_space(byte) || matches!(byte, b'>' | b'/')).unwrap_or(after.len());
                let name = after[..end].to_ascii_lowercase();
                let name = name.rsplit(|&byte| byte == b':').next().unwrap_or(&name);
                return match name {
                    b"urlset" | b"sitemapindex" => Some(Kind::Sitemap),
                    b"rss" | b"feed" | b"rdf" => Some(Kind::Feed),
                    b"svg" => Some(Kind::Svg),
                    b"html" => Some(Kind::Html),
                    _ => None,
                };
            }
        }
    }
}

/// The marks by which browsers know HTML (MIME Sniffing standard), a little more generous.
fn looks_like_html(start: &[u8]) -> bool {
    const MARKS: [&[u8]; 20] = [
        b"<!doctype html",
        b"<html",
        b"<head",
        b"<script",
        b"<iframe",
        b"<h1",
        b"<div",
        b"<font",
        b"<table",
        b"<a",
        b"<style",
        b"<title",
        b"<b",
        b"<body",
        b"<br",
        b"<p",
        b"<!--",
        b"<meta",
        b"<link",
        b"<center",
    ];
    MARKS.iter().any(|mark| {
        start.len() > mark.len()
            && start[..mark.len()].eq_ignore_ascii_case(mark)
            && (*mark == b"<!--" || is_space(start[mark.len()]) || matches!(start[mark.len()], b'>' | b'/'))
    })
}

/// One URL per line, in a file that calls itself a sitemap.
fn is_text_sitemap(path: &str, start: &[u8]) -> bool {
    let named = path.rsplit('/').next().is_some_and(|name| name.to_ascii_lowercase().contains("sitemap"));
    named && (start.starts_with(b"http://") || start.starts_with(b"https://"))
}

fn is_json_feed(start: &[u8]) -> bool {
    start.starts_with(b"{") && memchr::memmem::find(start, b"jsonfeed.org/version/").is_some()
}
