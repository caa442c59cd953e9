//! What an exchange comes to, for others: its digests; and the exchange itself in a form that travels.

use std::borrow::Cow;
use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;

use skep_fetch::{Exchange, Fault, Note, Spool, Timings, Tls};
use skep_page::Input;
use skep_url::Url;
use skep_warc::coding::{self, Bounds};
use skep_warc::digest::{Algorithm, Hasher};
use skep_warc::http::{Body, Head, Parsed};
use skep_warc::write::Truncated;
use xxhash_rust::xxh3::xxh3_64;

use crate::limits::ANSWER_BYTES_MAX;
use crate::message::{self, Digest, Fetched, How, Whole};

/// What a payload comes to, whoever fetched it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The status; 0 if no head came.
    pub status: u16,
    /// SHA-1 of the payload.
    pub digest: [u8; 20],
    /// Bytes of payload.
    pub length: u64,
    /// Simhash of the visible text; 0 where there is none, or nobody asks.
    pub text: u64,
    /// Digest of the set of links; 0 where there are none, or nobody asks.
    pub links: u64,
    /// Digest of the headers that matter; 0 where there is no head, or nobody asks.
    pub head: u64,
}

/// Text and links are read from this much of a page, decoded.
const READ_BYTES_MAX: u64 = 4 << 20;

/// The payload: the body without transfer encoding.
pub fn payload<'b>(head: Option<&Head>, body: &'b [u8]) -> Cow<'b, [u8]> {
    let Some(head) = head.filter(|head| head.is_chunked()) else { return Cow::Borrowed(body) };
    let mut payload = Vec::new();
    // What came before the damage is the payload of a damaged body.
    let _as_far_as_it_goes = Body::new(head, body).read_to_end(&mut payload);
    Cow::Owned(payload)
}

/// SHA-1, as records have it.
pub fn sha1(bytes: &[u8]) -> [u8; 20] {
    let mut hasher = Hasher::new(Algorithm::Sha1);
    hasher.update(bytes);
    let mut digest = [0; 20];
    digest.copy_from_slice(hasher.finish().as_bytes());
    digest
}

/// What an exchange comes to.
pub fn look(url: &Url, exchange: &Exchange, how: &How) -> (Seen, Digest) {
    let mut seen = Seen { status: exchange.status().unwrap_or(0), ..Seen::default() };
    if let Some(head) = exchange.head.as_ref().filter(|_| how.thorough && seen.status != 304) {
        seen.head = headers(head);
    }
    let bytes = exchange.response.bytes(0, ANSWER_BYTES_MAX + (1 << 20)).unwrap_or_default();
    if bytes.is_empty() || seen.status == 304 {
        return (seen, Digest::None);
    }
    let body = bytes.get(exchange.head_bytes..).unwrap_or_default();
    let payload = payload(exchange.head.as_ref(), body);
    (seen.length, seen.digest) = (payload.len() as u64, sha1(&payload));
    let digest = match how {
        How { keyed: true, nonce, .. } => Digest::Keyed(message::keyed(nonce, &payload)),
        How { thorough: false, nonce, .. } => Digest::Short(message::short(nonce, &seen.digest)),
        How { .. } => Digest::Plain(seen.digest),
    };
    if let Some(head) = exchange.head.as_ref().filter(|_| how.thorough) {
        let mut decoded = Vec::new();
        let bounds = Bounds { output_bytes_max: READ_BYTES_MAX, ..Bounds::default() };
        let _as_far_as_it_goes = coding::decode(head, body, bounds).read_to_end(&mut decoded);
        let input = Input { url, head: Some(head), body: &decoded };
        let page = skep_page::read(&input);
        if page.kind == skep_page::Kind::Html {
            seen.text = simhash(&skep_page::text(&input).text);
        }
        // A set: the order in which a page names its links says nothing.
        seen.links = page.links.iter().fold(0u64, |sum, link| sum.wrapping_add(xxh3_64(link.url.as_bytes())));
    }
    (seen, digest)
}

/// What decides what a page means beside its bytes: where it leads, how it is read, who may show it.
const HEADERS: [&str; 6] = ["location", "content-type", "content-encoding", "x-robots-tag", "refresh", "link"];

/// Digest of the headers that matter, never 0. Two who saw the same page were told the same of it.
pub fn headers(head: &Head) -> u64 {
    let mut text = Vec::new();
    for (number, name) in HEADERS.iter().enumerate() {
        for value in head.headers(name) {
            text.push(number as u8);
            text.extend_from_slice(value.trim_ascii());
            text.push(b'\n');
        }
    }
    u64::from_le_bytes(message::first(blake3::hash(&text).as_bytes())).max(1)
}

/// Does a head say anything of that?
pub fn has_headers(head: &Head) -> bool {
    HEADERS.iter().any(|name| head.header(name).is_some())
}

/// Charikar's simhash of the words of a text, in pairs: texts that are nearly the same differ in few bits. Numbers are passed over.
pub fn simhash(text: &str) -> u64 {
    let mut votes = Votes { few: [0; 8], since: 0, ones: [0; 64], all: 0 };
    let is_word = |word: &&str| word.chars().any(char::is_alphabetic);
    let mut words = text.split(|c: char| !c.is_alphanumeric()).filter(is_word);
    let Some(first) = words.next() else { return 0 };
    let (mut before, mut alone) = (xxh3_64(first.as_bytes()), true);
    for word in words {
        let hash = xxh3_64(word.as_bytes());
        votes.add(hash ^ before.rotate_left(17));
        (before, alone) = (hash, false);
    }
    if alone {
        votes.add(before);
    }
    votes.majority()
}

/// How often each of 64 bits was set. Eight bits of a hash are counted at once, in the eight bytes of a word.
struct Votes {
    few: [u64; 8],
    since: u32,
    ones: [u32; 64],
    all: u32,
}

/// Each bit of a byte in a byte of its own.
const SPREAD: [u64; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[byte] |= (byte as u64 >> bit & 1) << (8 * bit);
            bit += 1;
        }
        byte += 1;
    }
    table
};

impl Votes {
    fn add(&mut self, hash: u64) {
        for (few, byte) in self.few.iter_mut().zip(hash.to_le_bytes()) {
            *few += SPREAD[usize::from(byte)];
        }
        (self.since, self.all) = (self.since + 1, self.all.saturating_add(1));
        if self.since == u32::from(u8::MAX) {
            self.carry();
        }
    }

    /// Before a byte is full.
    fn carry(&mut self) {
        let few = self.few.iter_mut().flat_map(|few| std::mem::take(few).to_le_bytes());
        self.ones.iter_mut().zip(few).for_each(|(ones, more)| *ones = ones.saturating_add(more.into()));
        self.since = 0;
    }

    fn majority(mut self) -> u64 {
        self.carry();
        let all = u64::from(self.all);
        let set = self.ones.iter().enumerate().filter(|(_, ones)| 2 * u64::from(**ones) > all);
        set.fold(0, |hash, (bit, _)| hash | 1 << bit)
    }
}

/// The line about an exchange that goes to the node first.
pub fn fetched(number: u16, url: &Url, exchange: &Exchange, how: &How) -> Fetched {
    let (seen, digest) = look(url, exchange, how);
    let too_large = exchange.truncated == Some(Truncated::Length);
    Fetched {
        number,
        url: String::new(),
        status: seen.status,
        fault: exchange.fault.as_ref().map(|fault| fault.id().to_owned()).unwrap_or_default(),
        time_ms: 0,
        took_ms: exchange.timings.total_ms,
        length: seen.length,
        digest,
        text: seen.text,
        links: seen.links,
        head: seen.head,
        mime: exchange.head.as_ref().and_then(Head::mime).unwrap_or_default().chars().take(100).collect(),
        address: exchange.address.map(|address| address.ip()),
        too_large,
    }
}

/// An exchange, as it travels. Memory only: a contributor keeps no files of pages.
pub fn whole(exchange: &Exchange) -> Whole {
    let response = exchange.response.bytes(0, ANSWER_BYTES_MAX + (1 << 20)).unwrap_or_default().into_owned();
    let t = exchange.timings;
    Whole {
        request: skep_fetch::request_for_record(exchange).bytes.into_owned(),
        head_bytes: exchange.head_bytes.min(response.len()) as u32,
        response,
        fault: exchange
            .fault
            .as_ref()
            .map(|fault| {
                let text: String = match fault {
                    Fault::PortRefused(port) => port.to_string(),
                    other => other.to_string().chars().take(200).collect(),
                };
                (fault.id().to_owned(), text)
            })
            .unwrap_or_default(),
        truncated: match exchange.truncated {
            None => 0,
            Some(Truncated::Length) => 1,
            Some(Truncated::Time) => 2,
            Some(Truncated::Disconnect) => 3,
            Some(Truncated::Unspecified) => 4,
        },
        notes: exchange.notes.iter().map(|note| note.id().to_owned()).collect(),
        tls: exchange.tls.as_ref().map(|tls| {
            let fault = tls.fault.as_ref().map(|fault| fault.chars().take(500).collect());
            (tls.protocol.to_owned(), tls.cipher_suite.clone(), fault)
        }),
        timings: [t.resolve_ms, t.connect_ms, t.tls_ms, t.first_byte_ms, t.total_ms],
        reused: exchange.reused,
        address: exchange.address.map(|address| (address.ip(), address.port())),
    }
}

/// The exchange that travelled; `None` if it is none: a head that is not where it should be, a fault that nobody knows.
pub fn exchange(whole: &Whole) -> Option<Exchange> {
    let fault = match whole.fault.0.as_str() {
        "" => None,
        id => Some(Fault::named(id, &whole.fault.1)?),
    };
    let mut head = Head::new();
    let (head, head_bytes) = match head.parse_response(&whole.response, true) {
        Parsed::Complete { body } if body == whole.head_bytes as usize => (Some(head), body),
        // What the contributor's reader took for no head is no head.
        _ if whole.head_bytes == 0 => (None, 0),
        _ => return None,
    };
    let [resolve_ms, connect_ms, tls_ms, first_byte_ms, total_ms] = whole.timings;
    let tls = match &whole.tls {
        None => None,
        Some((protocol, cipher_suite, fault)) => Some(Arc::new(Tls {
            protocol: match protocol.as_str() {
                "tls/1.3" => "tls/1.3",
                "tls/1.2" => "tls/1.2",
                _ => return None,
            },
            cipher_suite: cipher_suite.clone(),
            fault: fault.clone(),
            chain_bytes: 0,
            resumed: false,
        })),
    };
    Some(Exchange {
        request: whole.request.clone(),
        response: Spool::Memory(whole.response.clone()),
        head,
        head_bytes,
        fault,
        truncated: match whole.truncated {
            0 => None,
            1 => Some(Truncated::Length),
            2 => Some(Truncated::Time),
            3 => Some(Truncated::Disconnect),
            _ => Some(Truncated::Unspecified),
        },
        address: whole.address.map(|(ip, port)| SocketAddr::new(ip, port)),
        tls,
        timings: Timings { resolve_ms, connect_ms, tls_ms, first_byte_ms, total_ms },
        reused: whole.reused,
        notes: whole.notes.iter().filter_map(|id| Note::named(id)).collect(),
        ..Exchange::default()
    })
}

/// The exchange of a URL that did not change, or that brought nothing: what was said of it is all there is.
pub fn bare(fetched: &Fetched, unchanged: bool) -> Option<Exchange> {
    let mut exchange = Exchange {
        fault: match fetched.fault.as_str() {
            "" => None,
            id => Some(Fault::named(id, "")?),
        },
        address: fetched.address.map(|ip| SocketAddr::new(ip, 0)),
        timings: Timings { total_ms: fetched.took_ms, ..Timings::default() },
        ..Exchange::default()
    };
    if unchanged {
        let response = b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec();
        let mut head = Head::new();
        head.parse_response(&response, true);
        (exchange.head, exchange.head_bytes) = (Some(head), response.len());
        exchange.response = Spool::Memory(response);
        exchange.fault = None;
    }
    Some(exchange)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole_of(response: &[u8], head_bytes: usize) -> Whole {
        Whole { response: response.to_vec(), head_bytes: head_bytes as u32, ..Whole::default() }
    }

    #[test]
    fn an_exchange_comes_back_as_it_went() {
        let text =
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
        let body = text.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
        let mut sent = whole_of(text, body);
        sent.tls = Some(("tls/1.3".into(), "TLS_AES_128_GCM_SHA256".into(), None));
        sent.notes = vec!["interim".into()];
        sent.fault = ("too-slow".into(), String::new());
        sent.truncated = 2;
        let made = exchange(&sent).unwrap();
        let again = whole(&made);
        assert_eq!(again.response, sent.response);
        assert_eq!(
            (again.notes, again.tls, again.truncated, again.fault.0),
            (sent.notes, sent.tls, 2, "too-slow".into())
        );
        let url = Url::parse("http://a.test/").unwrap();
        let (seen, digest) = look(&url, &made, &How::THOROUGH);
        assert_eq!((seen.length, digest), (5, Digest::Plain(sha1(b"hello"))));
        let under = |nonce, keyed| look(&url, &made, &How { nonce: [nonce; 16], keyed, thorough: false }).1;
        assert_ne!(under(1, true), under(2, true));
        assert!(under(1, false) != under(2, false) && under(1, false).is_of(&sha1(b"hello"), &[1; 16]));
    }

    #[test]
    fn what_does_not_fit_together_is_no_exchange() {
        assert!(exchange(&whole_of(b"HTTP/1.1 200 OK\r\n\r\nhello", 3)).is_none());
        let fault = Whole { fault: ("made-up".into(), String::new()), ..Whole::default() };
        assert!(exchange(&fault).is_none());
    }

    #[test]
    fn texts_that_are_nearly_the_same_have_nearly_the_same_hash() {
        let words: Vec<String> = (0..400).map(|n| format!("word{}", xxh3_64(&[n as u8, 7]) % 997)).collect();
        let text = words.join(" ");
        let near = text.replacen(&words[17], "another", 1);
        let other: String = (0..400).map(|n| format!("thing{} ", xxh3_64(&[n as u8, 9]) % 997)).collect();
        assert!((simhash(&text) ^ simhash(&near)).count_ones() <= 6);
        assert!((simhash(&text) ^ simhash(&other)).count_ones() > 12);
        assert_eq!(simhash("visitor 17 of 40"), simhash("visitor 9 of 12"), "numbers are noise");
    }
}
