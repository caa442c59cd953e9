//! What contributors and nodes say to each other: pure, bounded, signed. The envelope is drawn in docs/formats/contribute.md.
//!
//! ```text
//!  contributor                          node
//!    Hello ──────────────────────────▶  Welcome, or Work: a proof is wanted, or Stop
//!    Ask ────────────────────────────▶  Bundles, or Later, Elsewhere, Stop
//!    Results (digests) ──────────────▶  Want: which bodies, from which byte on
//!    Body (a piece) ─────────────────▶  Taken: how far it has come;  Done: all of the bundle is there, forget it
//! ```
//! Whatever is repeated is answered as before: a broken connection costs what was on it.

use std::net::IpAddr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use skep_schedule::Pace;
pub use skep_schedule::hands::Rules;

use crate::limits::{
    BATCH_BUNDLES_MAX, BUNDLE_URLS_MAX, MESSAGE_BYTES_MAX, PIECE_BYTES_MAX, ROBOTS_HOPS_MAX, TEXT_BYTES_MAX,
    UNPACKED_BYTES_MAX, URL_BYTES_MAX,
};

/// The version of everything here.
pub const VERSION: u16 = 1;
/// A contributor's number of a file on the way to robots.txt is this and more.
pub const ROBOTS: u16 = BUNDLE_URLS_MAX as u16;

/// What a contributor says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Who it is; `holds`: bundles whose results are on its disk. All others that it had are lost.
    Hello {
        /// [`VERSION`].
        version: u16,
        /// The proof of work for its key; 0 if it made none.
        proof: u64,
        /// See above.
        holds: Vec<u64>,
        /// The name of its team, if it has one.
        team: String,
    },
    /// It has room for so many bundles.
    Ask {
        /// How many.
        bundles: u16,
    },
    /// What it saw, digests first.
    Results {
        /// Of which bundle.
        bundle: u64,
        /// In any order; URLs that are not among them were not fetched.
        #[serde(with = "crate::columns")]
        results: Vec<Fetched>,
        /// The sum of its requests: what they took, in milliseconds of its processor.
        cpu_ms: u32,
    },
    /// A piece of an exchange, packed: see [`Whole`].
    Body {
        /// Of which bundle.
        bundle: u64,
        /// Of which of its URLs.
        number: u16,
        /// From which byte on.
        offset: u64,
        /// How many there are.
        total: u64,
        /// The piece.
        #[serde(with = "blob")]
        bytes: Vec<u8>,
    },
    /// It goes; what it has in hand comes back to the node.
    Leave,
}

/// What a node says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// It may ask.
    Welcome {
        /// The name under which it appears in records.
        pseudonym: String,
    },
    /// A proof of work is wanted first: so many leading zero bits of BLAKE3(seed, key, proof).
    Work {
        /// How many.
        bits: u8,
        /// See above.
        seed: [u8; 16],
    },
    /// Something to do.
    Bundles(Vec<Bundle>),
    /// Nothing to do now.
    Later {
        /// When to ask again.
        seconds: u32,
        /// Why.
        why: String,
    },
    /// Another node has work.
    Elsewhere {
        /// Its URL.
        address: String,
    },
    /// No more, ever, or until a person has looked at it.
    Stop {
        /// Why.
        why: String,
    },
    /// These bodies are wanted.
    Want {
        /// Of which bundle.
        bundle: u64,
        /// Which, and from which byte on.
        bodies: Vec<(u16, u64)>,
    },
    /// A piece has come; the next begins here.
    Taken {
        /// Where.
        offset: u64,
    },
    /// Everything of the bundle is there; the contributor forgets it.
    Done {
        /// Which.
        bundle: u64,
    },
    /// The request makes no sense, or is not allowed. What it was about is to be forgotten.
    Refused {
        /// Why.
        why: Refusal,
    },
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The clocks are too far apart; the time is in the envelope.
    Clock,
    /// Not the version spoken here.
    Version,
    /// Hello comes first.
    Unknown,
    /// The bundle is not with this contributor: it lapsed, is done, or never was.
    NotYours,
    /// More, longer or other than can be.
    Nonsense,
    /// The body is not what its digest said.
    Forged,
    /// Too much is on its way already.
    TooMuch,
}

impl Refusal {
    /// For a person.
    pub fn text(self) -> &'static str {
        match self {
            Refusal::Clock => "the clocks are too far apart",
            Refusal::Version => "another version is spoken here",
            Refusal::Unknown => "not introduced",
            Refusal::NotYours => "the bundle lapsed, or is done, or belongs to somebody else",
            Refusal::Nonsense => "the message is longer or other than it can be",
            Refusal::Forged => "the body is not what its digest said",
            Refusal::TooMuch => "too much is on its way already",
        }
    }
}

/// URLs of one host for one contributor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundle {
    /// Its number at this node.
    pub id: u64,
    /// `name:port`, for a person.
    pub host: String,
    /// What to fetch, in this order. The digest that the node has is not told.
    pub urls: Vec<Task>,
    /// The gap between an answer and the next request.
    pub pace: Pace,
    /// What robots.txt asks for, already applied; `None`: it is fetched first, and comes back with the results.
    pub robots: Option<Rules>,
    /// How long it may be out, from giving.
    pub lease_ms: u32,
    /// Keys some of the digests.
    pub nonce: [u8; 16],
}

/// One URL of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The URL.
    pub url: String,
    /// To be sent as `If-None-Match`.
    pub etag: Option<Vec<u8>>,
    /// To be sent as `If-Modified-Since`.
    pub last_modified: Option<Vec<u8>>,
    /// Its digest is to be keyed with the nonce.
    pub keyed: bool,
}

/// What was seen of one URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetched {
    /// Its place in the bundle; [`ROBOTS`] and more on the way to robots.txt.
    pub number: u16,
    /// The URL, where the bundle does not say it.
    pub url: String,
    /// The status; 0 if no head came.
    pub status: u16,
    /// The name of the fault, or nothing.
    pub fault: String,
    /// When the request was sent, by the node's clock, in milliseconds since 1970.
    pub time_ms: i64,
    /// How long the answer took.
    pub took_ms: u32,
    /// Bytes of payload.
    pub length: u64,
    /// Of the payload.
    pub digest: Digest,
    /// Simhash of the visible text.
    #[serde(with = "eight")]
    pub text: u64,
    /// Digest of the set of links.
    #[serde(with = "eight")]
    pub links: u64,
    /// The media type.
    pub mime: String,
    /// Where it was.
    pub address: Option<IpAddr>,
    /// Larger than the contributor takes: for the node itself.
    pub too_large: bool,
}

/// Eight bytes, where every number is as likely as every other: they would be ten otherwise.
mod eight {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(number: &u64, out: S) -> Result<S::Ok, S::Error> {
        number.to_le_bytes().serialize(out)
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<u64, D::Error> {
        <[u8; 8]>::deserialize(from).map(u64::from_le_bytes)
    }
}

/// Bytes that are copied and not gone through one by one; what is written is the same.
pub(crate) mod blob {
    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &[u8], out: S) -> Result<S::Ok, S::Error> {
        out.serialize_bytes(bytes)
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<u8>, D::Error> {
        from.deserialize_byte_buf(Bytes)
    }

    struct Bytes;

    impl Visitor<'_> for Bytes {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("bytes")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }

        fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
            Ok(bytes)
        }
    }
}

/// A digest of a payload: the body without transfer encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Digest {
    /// No payload.
    #[default]
    None,
    /// SHA-1, as records have it.
    Plain([u8; 20]),
    /// BLAKE3 under the bundle's nonce.
    Keyed([u8; 32]),
}

/// An exchange as it was made, byte for byte.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whole {
    /// The request as sent.
    #[serde(with = "blob")]
    pub request: Vec<u8>,
    /// The answer as it came, head and body.
    #[serde(with = "blob")]
    pub response: Vec<u8>,
    /// Where the body begins.
    pub head_bytes: u32,
    /// The name of the fault, or nothing; and its text.
    pub fault: (String, String),
    /// 0 whole, 1 length, 2 time, 3 disconnect, 4 unspecified.
    pub truncated: u8,
    /// What was odd.
    pub notes: Vec<String>,
    /// Protocol, cipher suite, what was wrong with the certificate.
    pub tls: Option<(String, String, Option<String>)>,
    /// Resolving, connecting, TLS, first byte, all of it; in milliseconds.
    pub timings: [u32; 5],
    /// The connection had carried an exchange before.
    pub reused: bool,
    /// Address and port.
    pub address: Option<(IpAddr, u16)>,
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Longer than any.
    TooLong,
    /// Not a message of this kind.
    NotOne,
    /// Its signature does not hold.
    Signature,
    /// Something in it is longer or more than can be.
    Bounds,
}

/// Can be said, if it keeps its bounds.
pub trait Message: Serialize + DeserializeOwned {
    /// Does it?
    fn is_bounded(&self) -> bool;
}

fn short(text: &str) -> bool {
    text.len() <= TEXT_BYTES_MAX
}

impl Message for Request {
    fn is_bounded(&self) -> bool {
        match self {
            Request::Hello { holds, team, .. } => holds.len() <= 4 * BATCH_BUNDLES_MAX && team.len() <= 64,
            Request::Ask { bundles } => usize::from(*bundles) <= BATCH_BUNDLES_MAX,
            Request::Results { results, .. } => {
                let mut seen = [false; BUNDLE_URLS_MAX + ROBOTS_HOPS_MAX];
                results.len() <= seen.len()
                    && results.iter().all(|fetched| {
                        let fits = fetched.url.len() <= URL_BYTES_MAX
                            && short(&fetched.mime)
                            && short(&fetched.fault)
                            && fetched.status < 1000;
                        let first = seen.get_mut(usize::from(fetched.number));
                        fits && first.is_some_and(|seen| !std::mem::replace(seen, true))
                    })
            }
            Request::Body { number, offset, total, bytes, .. } => {
                usize::from(*number) < BUNDLE_URLS_MAX + ROBOTS_HOPS_MAX
                    && bytes.len() <= PIECE_BYTES_MAX
                    && *total <= crate::limits::PACKED_BYTES_MAX
                    && offset.checked_add(bytes.len() as u64).is_some_and(|end| end <= *total)
            }
            Request::Leave => true,
        }
    }
}

impl Message for Answer {
    fn is_bounded(&self) -> bool {
        match self {
            Answer::Bundles(bundles) => bundles.len() <= BATCH_BUNDLES_MAX && bundles.iter().all(Bundle::is_bounded),
            Answer::Want { bodies, .. } => bodies.len() <= BUNDLE_URLS_MAX + ROBOTS_HOPS_MAX,
            Answer::Welcome { pseudonym: text }
            | Answer::Later { why: text, .. }
            | Answer::Stop { why: text }
            | Answer::Elsewhere { address: text } => short(text),
            Answer::Work { bits, .. } => *bits <= 40,
            Answer::Taken { .. } | Answer::Done { .. } | Answer::Refused { .. } => true,
        }
    }
}

impl Bundle {
    fn is_bounded(&self) -> bool {
        let task = |task: &Task| {
            task.url.len() <= URL_BYTES_MAX
                && [&task.etag, &task.last_modified]
                    .iter()
                    .all(|v| v.as_ref().is_none_or(|v| v.len() <= TEXT_BYTES_MAX))
        };
        self.urls.len() <= BUNDLE_URLS_MAX && short(&self.host) && self.urls.iter().all(task)
    }
}

impl Message for Whole {
    fn is_bounded(&self) -> bool {
        self.head_bytes as usize <= self.response.len()
            && self.response.len() as u64 <= crate::limits::ANSWER_BYTES_MAX + (1 << 20)
            && self.request.len() <= 64 << 10
            && self.notes.len() <= 64
            && self.notes.iter().chain([&self.fault.0, &self.fault.1]).all(|text| short(text))
            && self.tls.as_ref().is_none_or(|(a, b, c)| short(a) && short(b) && c.as_deref().is_none_or(short))
    }
}

/// Packs anything: postcard, then zstd.
pub fn pack<T: Serialize>(value: &T) -> Vec<u8> {
    squeeze(&plain(value))
}

/// The first half of it.
pub fn plain<T: Serialize>(value: &T) -> Vec<u8> {
    // Serialising plain data to memory has no way to fail; an empty message is refused by whoever reads it.
    postcard::to_stdvec(value).unwrap_or_default()
}

/// The second half.
pub fn squeeze(plain: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(plain, 3).unwrap_or_default()
}

/// Unpacks what [`pack`] made, up to `bytes_max` bytes of it.
pub fn unpack<T: Message>(packed: &[u8], bytes_max: usize) -> Result<T, Wrong> {
    let mut plain = Vec::new();
    let mut reader = zstd::stream::read::Decoder::with_buffer(packed).map_err(|_| Wrong::NotOne)?;
    reader.window_log_max(27).map_err(|_| Wrong::NotOne)?;
    let read = std::io::Read::read_to_end(&mut std::io::Read::take(&mut reader, bytes_max as u64 + 1), &mut plain);
    if read.map_err(|_| Wrong::NotOne)? > bytes_max {
        return Err(Wrong::TooLong);
    }
    let (value, rest) = postcard::take_from_bytes::<T>(&plain).map_err(|_| Wrong::NotOne)?;
    if !rest.is_empty() {
        return Err(Wrong::NotOne);
    }
    if value.is_bounded() { Ok(value) } else { Err(Wrong::Bounds) }
}

/// An envelope: `magic 4 | key 32 | time 8 | signature 64 | packed message`.
const HEAD: usize = 4 + 32 + 8 + 64;
const TO_NODE: &[u8; 4] = b"SKC1";
const FROM_NODE: &[u8; 4] = b"SKN1";

/// What was in an envelope.
#[derive(Debug)]
pub struct Opened<T> {
    /// Whose it is.
    pub key: [u8; 32],
    /// When, by the clock of whoever sent it.
    pub time_ms: i64,
    /// Names it: an answer is bound to its question by this.
    pub signature: [u8; 64],
    /// What it says.
    pub message: T,
}

fn signed(magic: &[u8; 4], about: &[u8], time_ms: i64, packed: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(4 + 64 + 8 + 32);
    text.extend_from_slice(magic);
    text.extend_from_slice(blake3::hash(about).as_bytes());
    text.extend_from_slice(&time_ms.to_le_bytes());
    text.extend_from_slice(blake3::hash(packed).as_bytes());
    text
}

fn seal(magic: &[u8; 4], about: &[u8], who: &skep_archive::Identity, time_ms: i64, packed: &[u8]) -> Vec<u8> {
    let signature = who.sign(&signed(magic, about, time_ms, packed));
    [&magic[..], &who.public(), &time_ms.to_le_bytes(), &signature, packed].concat()
}

fn open<T: Message>(magic: &[u8; 4], about: &[u8], bytes: &[u8]) -> Result<Opened<T>, Wrong> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(Wrong::TooLong);
    }
    let (head, packed) = bytes.split_at_checked(HEAD).ok_or(Wrong::NotOne)?;
    let (found, head) = head.split_first_chunk::<4>().ok_or(Wrong::NotOne)?;
    let (key, head) = head.split_first_chunk::<32>().ok_or(Wrong::NotOne)?;
    let (time, signature) = head.split_first_chunk::<8>().ok_or(Wrong::NotOne)?;
    let signature: [u8; 64] = signature.try_into().map_err(|_| Wrong::NotOne)?;
    if found != magic {
        return Err(Wrong::NotOne);
    }
    let time_ms = i64::from_le_bytes(*time);
    if !crate::key::verifies(key, &signed(magic, about, time_ms, packed), &signature) {
        return Err(Wrong::Signature);
    }
    Ok(Opened { key: *key, time_ms, signature, message: unpack(packed, UNPACKED_BYTES_MAX)? })
}

/// A request to the node with this key; all zeros before it is known.
pub fn seal_request(request: &Request, node: &[u8; 32], who: &skep_archive::Identity, time_ms: i64) -> Vec<u8> {
    seal(TO_NODE, node, who, time_ms, &pack(request))
}

/// Opens a request to `node`. A first request may not know whom it speaks to.
pub fn open_request(bytes: &[u8], node: &[u8; 32]) -> Result<Opened<Request>, Wrong> {
    match open(TO_NODE, node, bytes) {
        Err(Wrong::Signature) => open::<Request>(TO_NODE, &[0; 32], bytes).and_then(|opened| {
            matches!(opened.message, Request::Hello { .. }).then_some(opened).ok_or(Wrong::Signature)
        }),
        other => other,
    }
}

/// An answer to the request with this signature.
pub fn seal_answer(answer: &Answer, request: &[u8; 64], who: &skep_archive::Identity, time_ms: i64) -> Vec<u8> {
    seal(FROM_NODE, request, who, time_ms, &pack(answer))
}

/// Opens the answer to the request with this signature.
pub fn open_answer(bytes: &[u8], request: &[u8; 64]) -> Result<Opened<Answer>, Wrong> {
    open(FROM_NODE, request, bytes)
}

/// The signature in a sealed request: names it.
pub fn signature_of(sealed: &[u8]) -> [u8; 64] {
    sealed.get(44..HEAD).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; 64])
}

/// BLAKE3 under a bundle's nonce.
pub fn keyed(nonce: &[u8; 16], payload: &[u8]) -> [u8; 32] {
    let mut key = [0; 32];
    key[..16].copy_from_slice(nonce);
    *blake3::keyed_hash(&key, payload).as_bytes()
}

/// What a proof of work for a key is worth, in bits.
pub fn worth(seed: &[u8; 16], key: &[u8; 32], proof: u64) -> u8 {
    let hash = blake3::hash(&[&seed[..], key, &proof.to_le_bytes()].concat());
    let [a, b, c, d, e, f, g, h, ..] = *hash.as_bytes();
    u64::from_be_bytes([a, b, c, d, e, f, g, h]).leading_zeros() as u8
}

/// The proof of work for a key, and how long that takes depends on chance alone.
pub fn prove(seed: &[u8; 16], key: &[u8; 32], bits: u8) -> u64 {
    (1..).find(|proof| worth(seed, key, *proof) >= bits).unwrap_or(0)
}

/// For the fuzzer: what a node and a contributor may be sent.
pub fn fuzz_message(bytes: &[u8]) {
    let _refused = open_request(bytes, &[0; 32]);
    let _refused = open_answer(bytes, &[0; 64]);
    for packed in [bytes, bytes.get(HEAD..).unwrap_or_default()] {
        if let Ok(request) = unpack::<Request>(packed, UNPACKED_BYTES_MAX) {
            assert_eq!(unpack::<Request>(&pack(&request), UNPACKED_BYTES_MAX).as_ref(), Ok(&request));
        }
        if let Ok(answer) = unpack::<Answer>(packed, UNPACKED_BYTES_MAX) {
            assert_eq!(unpack::<Answer>(&pack(&answer), UNPACKED_BYTES_MAX).as_ref(), Ok(&answer));
        }
        if let Ok(whole) = unpack::<Whole>(packed, UNPACKED_BYTES_MAX) {
            assert_eq!(unpack::<Whole>(&pack(&whole), UNPACKED_BYTES_MAX).as_ref(), Ok(&whole));
            drop(crate::seen::exchange(&whole));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skep_archive::Identity;

    fn ask() -> Request {
        Request::Ask { bundles: 3 }
    }

    #[test]
    fn a_request_is_for_one_node_and_an_answer_for_one_request() {
        let (node, volunteer) = (Identity::from_secret([1; 32]), Identity::from_secret([2; 32]));
        let sealed = seal_request(&ask(), &node.public(), &volunteer, 77);
        let opened = open_request(&sealed, &node.public()).unwrap();
        assert_eq!((opened.message, opened.key, opened.time_ms), (ask(), volunteer.public(), 77));
        assert_eq!(open_request(&sealed, &[9; 32]).unwrap_err(), Wrong::Signature, "for somebody else");
        let answer = seal_answer(&Answer::Done { bundle: 7 }, &opened.signature, &node, 78);
        assert_eq!(opened.signature, signature_of(&sealed));
        assert_eq!(open_answer(&answer, &opened.signature).unwrap().message, Answer::Done { bundle: 7 });
        assert_eq!(open_answer(&answer, &[0; 64]).unwrap_err(), Wrong::Signature, "to another question");
        for at in 0..sealed.len() {
            let mut bent = sealed.clone();
            bent[at] ^= 1;
            assert!(open_request(&bent, &node.public()).is_err(), "byte {at}");
            assert!(open_request(&sealed[..at], &node.public()).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn only_a_greeting_may_not_know_whom_it_greets() {
        let (node, volunteer) = (Identity::from_secret([1; 32]), Identity::from_secret([2; 32]));
        let hello = Request::Hello { version: 1, proof: 0, holds: vec![], team: String::new() };
        assert!(open_request(&seal_request(&hello, &[0; 32], &volunteer, 0), &node.public()).is_ok());
        assert!(open_request(&seal_request(&ask(), &[0; 32], &volunteer, 0), &node.public()).is_err());
    }

    #[test]
    fn what_is_too_much_is_refused() {
        let fetched = |number| Fetched { number, ..Fetched::default() };
        let results = |results| Request::Results { bundle: 1, results, cpu_ms: 0 };
        assert!(results((0..106).map(fetched).collect()).is_bounded());
        assert!(!results(vec![fetched(106)]).is_bounded(), "no such number");
        assert!(!results(vec![fetched(1), fetched(1)]).is_bounded(), "twice");
        assert!(!results(vec![Fetched { url: "x".repeat(URL_BYTES_MAX + 1), ..fetched(0) }]).is_bounded());
        let body = |offset, total, bytes| Request::Body { bundle: 1, number: 0, offset, total, bytes };
        assert!(body(5, 10, vec![0; 5]).is_bounded() && !body(6, 10, vec![0; 5]).is_bounded());
        assert!(!body(u64::MAX, u64::MAX, vec![0; 5]).is_bounded());
        assert!(!Answer::Bundles(vec![bundle(101)]).is_bounded() && Answer::Bundles(vec![bundle(100)]).is_bounded());
        let bomb = zstd::bulk::compress(&vec![0; UNPACKED_BYTES_MAX + 1], 3).unwrap();
        assert_eq!(unpack::<Request>(&bomb, UNPACKED_BYTES_MAX).unwrap_err(), Wrong::TooLong);
    }

    fn bundle(urls: usize) -> Bundle {
        Bundle {
            id: 1,
            host: "a.test:80".into(),
            urls: vec![Task { url: "http://a.test/".into(), ..Task::default() }; urls],
            pace: Pace::Fixed(500),
            robots: None,
            lease_ms: 60_000,
            nonce: [0; 16],
        }
    }

    #[test]
    fn an_unchanged_url_costs_few_bytes() {
        let digest = |n: u64| -> [u8; 20] { blake3::hash(&n.to_le_bytes()).as_bytes()[..20].try_into().unwrap() };
        let results = (0..100)
            .map(|number| Fetched {
                number,
                status: 200,
                time_ms: 1_790_000_000_000 + i64::from(number) * 613,
                took_ms: 80 + u32::from(number % 17),
                length: 20_000 + u64::from(number) * 37,
                digest: Digest::Plain(digest(number.into())),
                text: xxhash_rust::xxh3::xxh3_64(&number.to_le_bytes()),
                links: xxhash_rust::xxh3::xxh3_64(&[number as u8]),
                mime: "text/html".into(),
                address: Some("192.0.2.7".parse().unwrap()),
                ..Fetched::default()
            })
            .collect();
        let bytes = pack(&Request::Results { bundle: 7, results, cpu_ms: 100 }).len() + HEAD;
        assert!(bytes < 100 * 46, "{bytes} bytes for a hundred unchanged URLs");
    }

    #[test]
    fn proofs_of_work() {
        let proof = prove(&[1; 16], &[2; 32], 8);
        assert!(worth(&[1; 16], &[2; 32], proof) >= 8 && worth(&[1; 16], &[3; 32], proof) < 30);
    }
}
