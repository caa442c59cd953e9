//! What goes in and what comes out.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use skep_url::Url;
use skep_warc::http::{Head, Rule};
use skep_warc::write::Truncated;

use crate::fault::Fault;
use crate::request;
use crate::spool::Spool;
use crate::tls::Tls;

/// Says of an answer, by its head, how much of its body is of use.
pub trait Wanted: std::fmt::Debug + Sync {
    /// Bytes of body that are read, when fewer than the limits say.
    fn body_bytes_max(&self, head: &Head) -> Option<u64>;
}

/// One question.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// What is asked for.
    pub url: &'a Url,
    /// The ETag of the last capture, sent as `If-None-Match`.
    pub etag: Option<&'a [u8]>,
    /// The Last-Modified of the last capture, sent as `If-Modified-Since`.
    pub last_modified: Option<&'a [u8]>,
    /// The value of `Cookie`.
    pub cookie: Option<&'a str>,
    /// It is what the server itself set a moment ago, and no secret of ours.
    pub cookie_is_theirs: bool,
    /// Bytes of body that are read, when fewer than the limits say.
    pub body_bytes_max: Option<u64>,
    /// The same, where it depends on what comes.
    pub wanted: Option<&'a dyn Wanted>,
}

impl<'a> Ask<'a> {
    /// A plain GET.
    pub fn new(url: &'a Url) -> Ask<'a> {
        Ask {
            url,
            etag: None,
            last_modified: None,
            cookie: None,
            cookie_is_theirs: false,
            body_bytes_max: None,
            wanted: None,
        }
    }
}

/// One exchange: what was sent, what came, and what is to be said about it.
#[derive(Debug, Default)]
pub struct Exchange {
    /// The exact bytes sent; empty when nothing was. [`request_for_record`] is the form to keep.
    pub request: Vec<u8>,
    /// The exact bytes of the final answer, head and body as framed, without interim answers before and surplus bytes behind.
    pub response: Spool,
    /// The head, where there is one.
    pub head: Option<Head>,
    /// Where the body begins in `response`.
    pub head_bytes: usize,
    /// Interim (1xx) heads that came before, as sent.
    pub interim: Vec<u8>,
    /// Bytes that came behind the answer and belong to nothing; they are not kept.
    pub surplus_bytes: u64,
    /// `None`: an answer that is complete and well framed, or cut on purpose at a size (`truncated` then says `Length`).
    pub fault: Option<Fault>,
    /// The answer is not whole: cut at a size, by a clock, or by the other side.
    pub truncated: Option<Truncated>,
    /// Where it came from. Unknown through a proxy.
    pub address: Option<SocketAddr>,
    /// The TLS session, where there was one.
    pub tls: Option<Arc<Tls>>,
    /// How long things took.
    pub timings: Timings,
    /// The connection had carried an exchange before.
    pub reused: bool,
    /// What was odd, each thing once.
    pub notes: Vec<Note>,
    /// The cookie that was sent is the server's own: see [`Ask::cookie_is_theirs`].
    pub cookie_is_theirs: bool,
    /// Headers that the operator gave, and whose values are not kept.
    pub secrets: Arc<[Secret]>,
    /// It was made by others, and brought here.
    pub brought: Option<Brought>,
    /// What others saw from elsewhere that differs by place, a line each.
    pub vantages: Vec<String>,
}

impl Exchange {
    /// The status, when a head was read.
    pub fn status(&self) -> Option<u16> {
        self.head.as_ref()?.status()
    }

    /// Bytes of body, as framed.
    pub fn body_bytes(&self) -> u64 {
        self.response.len().saturating_sub(self.head_bytes as u64)
    }
}

/// A header that the operator gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// In lower case.
    pub name: String,
    /// It was given for some hosts only: what is seen with it is not for everybody.
    pub for_few: bool,
}

/// How long the parts of an exchange took, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    /// Looking up the name; 0 where that was not needed.
    pub resolve_ms: u32,
    /// Connecting, with the proxy's handshake; 0 on a connection that stood.
    pub connect_ms: u32,
    /// The TLS handshake.
    pub tls_ms: u32,
    /// From the request to the first byte.
    pub first_byte_ms: u32,
    /// All of it.
    pub total_ms: u32,
}

/// Something odd about an answer that is no fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Note {
    /// A deviation from HTTP/1.1.
    Http(Rule),
    /// A length and chunks are both declared; the chunks were believed.
    LengthAndChunked,
    /// Content-Length is given more than once, with one value.
    LengthRepeated,
    /// Interim answers came before and were cut off.
    Interim,
    /// Bytes came behind the answer and were cut off.
    Surplus,
    /// The TLS session was not closed properly where its end was the end of the body.
    TlsUnclosed,
    /// The connection that stood was dead; a new one was made.
    Reconnected,
}

impl Note {
    /// A short name for machines; stable.
    pub fn id(self) -> &'static str {
        match self {
            Note::Http(rule) => rule.id(),
            Note::LengthAndChunked => "length-and-chunked",
            Note::LengthRepeated => "length-repeated",
            Note::Interim => "interim",
            Note::Surplus => "surplus",
            Note::TlsUnclosed => "tls-unclosed",
            Note::Reconnected => "reconnected",
        }
    }
}

impl Note {
    /// The note of this [`Note::id`].
    pub fn named(id: &str) -> Option<Note> {
        const OWN: [Note; 6] = [
            Note::LengthAndChunked,
            Note::LengthRepeated,
            Note::Interim,
            Note::Surplus,
            Note::TlsUnclosed,
            Note::Reconnected,
        ];
        let of_http = Rule::ALL.iter().map(|rule| Note::Http(*rule));
        OWN.into_iter().chain(of_http).find(|note| note.id() == id)
    }
}

/// Who made an exchange, where it was not this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brought {
    /// When the request was sent, in milliseconds since 1970, on the clock of whoever keeps the exchange.
    pub time_ms: i64,
    /// The name under which they are known here.
    pub by: String,
    /// Others saw the same.
    pub confirmed: bool,
    /// Somebody of another network found something there, the same or not.
    pub seen_elsewhere: bool,
    /// By another node that holds the slice: it could as well lead there and write the record itself, and needs nobody to confirm it.
    pub by_holder: bool,
}

impl Brought {
    /// Nobody else saw the same, and who says so is not one whom the ring believes anyway.
    pub fn is_word_of_one(&self) -> bool {
        !self.confirmed && !self.by_holder
    }
}

/// A request as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded<'a> {
    /// The bytes, secrets replaced by `redacted`.
    pub bytes: Cow<'a, [u8]>,
    /// Secrets went to the server itself: the capture is private.
    pub private: bool,
}

/// The request in the form in which it is kept: the values of `Cookie`, `Authorization`, `Proxy-*` and of what the operator gave become
/// `redacted`.
pub fn request_for_record(exchange: &Exchange) -> Recorded<'_> {
    request::redact(&exchange.request, &exchange.secrets, exchange.cookie_is_theirs)
}
