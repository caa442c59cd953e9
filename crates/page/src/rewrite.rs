//! A page as it was, with its addresses led to a replay.
//!
//! ```text
//! <prefix><time><modifier>/<url>        http://replay.localhost:7070/web/20140716200357im_/http://example.org/a.png
//! ```
//!
//! | modifier | what asks | what is rewritten |
//! |---|---|---|
//! | none | a person: the page in a frame that tells about it | by what it is |
//! | `mp_` | a link, a form | by what it is |
//! | `if_` | a frame, an object | by what it is |
//! | `im_` | an image, a font, a film | nothing, unless it is a page |
//! | `cs_` | a style sheet | as a style sheet |
//! | `js_`, `esm_` | a script, a module | as a script |
//! | `wkr_`, `wkm_` | a worker, one that is a module | as a script; ours is loaded before it |
//! | `xr_` | a request by a script | nothing |
//! | `id_` | whoever wants the record itself | nothing |
//!
//! Rewriting is byte for byte: what is no address stays as it is, whatever its charset. It takes pieces of any size, holds back at most
//! [`limits::HELD_BYTES_MAX`](crate::limits::HELD_BYTES_MAX), and never fails: what it cannot make sense of passes as it is. That no
//! address escapes is not its task alone: the policy that a replay is sent with lets nothing out.
//!
//! ```
//! use skep_page::rewrite::{Kind, Place, Rewriter, charset};
//!
//! let url = "http://example.org/a/".parse().unwrap();
//! let place = Place { prefix: "http://replay.localhost:7070/web/", time: "20140716200357", url: &url, scripts: false };
//! let body = b"<img src='b.png?c&amp;d' alt=caf\xe9>";
//! let mut rewriter = Rewriter::new(Kind::Html, &place, charset(Kind::Html, None, body, &url));
//! let mut out = Vec::new();
//! rewriter.write(body, &mut out);
//! rewriter.end(&mut out);
//! assert_eq!(
//!     out,
//!     b"<img src=\"http://replay.localhost:7070/web/20140716200357im_/http://example.org/a/b.png?c&amp;d\" alt=caf\xe9>"
//! );
//! ```

mod address;
mod attribute;
mod css;
mod html;
mod importmap;
mod script;
mod stream;
mod transcode;
mod wide;
mod words;

pub use encoding_rs::Encoding as Charset;
use encoding_rs::UTF_8;
use skep_url::Url;

use address::Addresses;
use css::{Css, Sheet};
use html::Html;
use script::{Script, Tokens};
use stream::Stream;
use transcode::Transcoder;

/// Where a page is replayed.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// What every replayed address begins with, such as `http://replay.localhost:7070/web/`.
    pub prefix: &'a str,
    /// The time of the page, 14 digits.
    pub time: &'a str,
    /// The page's own URL, in the past.
    pub url: &'a Url,
    /// Scripts run there: they are rewritten, and the client script is loaded before them.
    pub scripts: bool,
}

/// What is rewritten how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A page.
    Html,
    /// XHTML, SVG, and XML that may have a style sheet.
    Xml,
    /// A style sheet.
    Css,
    /// A script.
    Script,
    /// A script that is a module.
    Module,
    /// A script that runs as a worker.
    Worker,
    /// A module that runs as a worker.
    ModuleWorker,
    /// Bytes pass unchanged.
    Other,
}

/// What a body is rewritten as: by the modifier it was asked for with, its media type (without parameters) and its first bytes.
pub fn kind(modifier: &str, media_type: &str, first_bytes: &[u8]) -> Kind {
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let start = first_bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first_bytes).trim_ascii_start();
    let is_markup = start.starts_with(b"<");
    let by_type = || match media_type.as_str() {
        "text/html" => Kind::Html,
        "application/xhtml+xml" | "image/svg+xml" | "text/xml" | "application/xml" => Kind::Xml,
        "text/css" => Kind::Css,
        other if attribute::is_script(other.as_bytes()) => Kind::Script,
        "" | "unknown/unknown" | "application/unknown" | "*/*" if is_html(start) => Kind::Html,
        _ => Kind::Other,
    };
    let is_data = media_type.ends_with("json") || media_type == "application/wasm";
    let script = |kind| match by_type() {
        Kind::Css => Kind::Css,
        _ if is_data || is_markup => Kind::Other,
        _ => kind,
    };
    match modifier {
        "id_" | "xr_" => Kind::Other,
        "im_" => match by_type() {
            Kind::Html => Kind::Html,
            _ => Kind::Other,
        },
        "cs_" if !is_markup => Kind::Css,
        "js_" => script(Kind::Script),
        "esm_" => script(Kind::Module),
        "wkr_" => script(Kind::Worker),
        "wkm_" => script(Kind::ModuleWorker),
        _ => by_type(),
    }
}

/// Does it look like a page, where nobody says what it is?
fn is_html(start: &[u8]) -> bool {
    const MARKS: [&[u8]; 12] = [
        b"<!doctype html",
        b"<html",
        b"<head",
        b"<body",
        b"<script",
        b"<title",
        b"<table",
        b"<a",
        b"<p",
        b"<div",
        b"<h1",
        b"<!--",
    ];
    MARKS.iter().any(|mark| {
        start.len() > mark.len()
            && start[..mark.len()].eq_ignore_ascii_case(mark)
            && (matches!(start[mark.len()], b' ' | b'>' | b'\t' | b'\r' | b'\n') || *mark == b"<!--")
    })
}

/// The charset of a body, from the value of its `Content-Type` and from its first bytes, of which 1,024 are enough.
pub fn charset(kind: Kind, content_type: Option<&[u8]>, first_bytes: &[u8], url: &Url) -> &'static Charset {
    match kind {
        Kind::Html => crate::charset::of_html(first_bytes, content_type, url.host_name()),
        Kind::Xml => crate::charset::of_xml(first_bytes, content_type),
        Kind::Css => crate::charset::of_css(first_bytes, content_type),
        Kind::Script | Kind::Module | Kind::Worker | Kind::ModuleWorker | Kind::Other => {
            let mark = Charset::for_bom(first_bytes).map(|(charset, _)| charset);
            mark.or_else(|| content_type.and_then(crate::charset::of_content_type)).unwrap_or(UTF_8)
        }
    }
}

/// The replay of an address that stands at a place. `None`: it stays as it is, for it leads nowhere (`#top`, `data:`, `mailto:`)
/// or to a replay already.
pub fn link(place: &Place<'_>, modifier: &str, raw: &str) -> Option<String> {
    Addresses::new(place, UTF_8).get(modifier, raw)
}

/// Rewrites one body, in pieces of any size.
#[derive(Debug)]
pub struct Rewriter {
    body: Body,
    transcoder: Option<Transcoder>,
    /// What goes before the body.
    before: String,
    /// The first bytes, until a byte order mark has passed.
    first: Option<Vec<u8>>,
}

#[derive(Debug)]
enum Body {
    Html(Box<Stream<Html>>),
    Css(Box<Stream<Css>>),
    Script(Box<Stream<Script>>),
    Other,
}

impl Body {
    fn write(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Body::Html(stream) => stream.write(bytes, out),
            Body::Css(stream) => stream.write(bytes, out),
            Body::Script(stream) => stream.write(bytes, out),
            Body::Other => out.extend_from_slice(bytes),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        match self {
            Body::Html(stream) => stream.end(out),
            Body::Css(stream) => stream.end(out),
            Body::Script(stream) => stream.end(out),
            Body::Other => {}
        }
    }
}

/// The sign in front of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

impl Rewriter {
    /// A body of that kind, at that place, in that charset.
    pub fn new(kind: Kind, place: &Place<'_>, charset: &'static Charset) -> Rewriter {
        let transcoder = (kind != Kind::Other && transcode::is_needed(charset)).then(|| Transcoder::new(charset));
        // References are resolved as the page would resolve them, whatever it is rewritten in.
        let addresses = Addresses::new(place, charset);
        let charset = if transcoder.is_some() { UTF_8 } else { charset };
        let own = place.url.as_str();
        let script = |addresses, own| {
            let text = Tokens::new(charset, Some(own));
            Body::Script(Box::new(Stream::new(Script { text, addresses })))
        };
        let ours = script::literal(&format!("{}/-/replay.js", addresses.origin()));
        let before = match kind {
            Kind::Worker if place.scripts => format!("importScripts({ours});"),
            Kind::ModuleWorker if place.scripts => format!("import {ours};"),
            _ => String::new(),
        };
        let body = match kind {
            Kind::Html => Body::Html(Box::new(Stream::new(Html::new(place, charset, false, 0)))),
            Kind::Xml => Body::Html(Box::new(Stream::new(Html::new(place, charset, true, 0)))),
            Kind::Css => Body::Css(Box::new(Stream::new(Css { sheet: Sheet::new(charset, false), addresses }))),
            Kind::Script | Kind::Module | Kind::Worker | Kind::ModuleWorker if place.scripts => script(addresses, own),
            _ => Body::Other,
        };
        Rewriter { body, transcoder, before, first: Some(Vec::new()) }
    }

    /// Takes the next piece in, and appends what is ready.
    pub fn write(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        let Some(mut first) = self.first.take() else { return self.put(piece, false, out) };
        if self.before.is_empty() {
            return self.put(piece, false, out);
        }
        first.extend_from_slice(piece);
        if first.len() < MARK.len() && MARK.starts_with(&first) {
            self.first = Some(first);
            return;
        }
        self.begin(&first, out);
    }

    /// Appends the rest.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(first) = self.first.take() {
            self.begin(&first, out);
        }
        self.put(b"", true, out);
    }

    /// What goes before the body stands behind its byte order mark, and on the same line.
    fn begin(&mut self, first: &[u8], out: &mut Vec<u8>) {
        let rest = first.strip_prefix(MARK).unwrap_or(first);
        out.extend_from_slice(&first[..first.len() - rest.len()]);
        let before = std::mem::take(&mut self.before);
        match &mut self.transcoder {
            Some(transcoder) => transcoder.encode(before.as_bytes(), false, out),
            None => out.extend_from_slice(before.as_bytes()),
        }
        self.put(rest, false, out);
    }

    fn put(&mut self, piece: &[u8], last: bool, out: &mut Vec<u8>) {
        let Some(transcoder) = &mut self.transcoder else {
            self.body.write(piece, out);
            if last {
                self.body.end(out);
            }
            return;
        };
        let text = transcoder.decode(piece, last);
        let mut rewritten = Vec::with_capacity(text.len() + text.len() / 4);
        self.body.write(text.as_bytes(), &mut rewritten);
        if last {
            self.body.end(&mut rewritten);
        }
        transcoder.encode(&rewritten, last, out);
    }
}
