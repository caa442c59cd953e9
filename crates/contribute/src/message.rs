//! What contributors and nodes say to each other: pure and bounded. How it travels is in `envelope`.
//!
//! ```text
//!  contributor                          node
//!    Hello ──────────────────────────▶  Welcome, or Work: a proof is wanted, or Stop
//!    Ask ────────────────────────────▶  Bundles, or Later, Elsewhere, Stop
//!    Results (digests) ──────────────▶  Want: which bodies, from which byte on
//!    Body (a piece) ─────────────────▶  Taken: how far it has come;  Done: all of the bundle is there, forget it
//! ```
//! What is said together is answered together, one answer for each request, in this order. Whatever is repeated is answered as before: a
//! broken connection costs what was on it.

use std::net::IpAddr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use skep_schedule::Pace;
pub use skep_schedule::hands::Rules;

use crate::limits::{
    BATCH_BUNDLES_MAX, BUNDLE_URLS_MAX, HOLDS_MAX, NAME_BYTES_MAX, PIECE_BYTES_MAX, REQUEST_BYTES_MAX, ROBOTS_HOPS_MAX,
    TEXT_BYTES_MAX, TOGETHER_MAX, URL_BYTES_MAX, WHOLE_BYTES_MAX, WORK_BITS_MAX,
};

/// The version of everything here.
pub const VERSION: u16 = 2;
/// A contributor's number of a file on the way to robots.txt is this and more.
pub const ROBOTS: u16 = BUNDLE_URLS_MAX as u16;

/// What a contributor says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Who it is; `holds`: bundles that it is fetching, or whose results are on its disk. All others that it had are lost.
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
    },
    /// A piece of an exchange: see [`Whole`].
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
    /// Its owner's rules forbid this bundle, and nothing of it was fetched: it is for others. Answered by [`Answer::Later`]. Said alone:
    /// a node that is older than this word refuses all that is said together with it.
    Decline {
        /// Which bundle.
        bundle: u64,
    },
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
    #[serde(with = "crate::tasks")]
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
    /// Its digest is to be that of the bytes under the nonce.
    pub keyed: bool,
    /// Headers, text and links are to be told as well: the node compares more than bytes.
    pub thorough: bool,
}

/// How an exchange is to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct How {
    /// Of the bundle.
    pub nonce: [u8; 16],
    /// See [`Task::keyed`].
    pub keyed: bool,
    /// See [`Task::thorough`].
    pub thorough: bool,
}

impl How {
    /// Everything, with the digest that records have.
    pub const THOROUGH: How = How { nonce: [0; 16], keyed: false, thorough: true };
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
    /// Simhash of the visible text; 0 where it is not to be told.
    pub text: u64,
    /// Digest of the set of links; 0 where it is not to be told.
    pub links: u64,
    /// Digest of the headers that matter; 0 where it is not to be told.
    pub head: u64,
    /// The media type.
    pub mime: String,
    /// Where it was.
    pub address: Option<IpAddr>,
    /// Larger than the contributor takes, or slower than its lease: for the node itself.
    pub too_large: bool,
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
    /// BLAKE3 under the bundle's nonce: an old digest does not tell it.
    Keyed([u8; 16]),
    /// BLAKE3 of the SHA-1 under the bundle's nonce: tells whoever knows the SHA-1 whether it is that one. If it is not, the body follows.
    Short([u8; 8]),
}

impl Digest {
    /// Is it that of a payload with this SHA-1?
    pub fn is_of(&self, sha1: &[u8; 20], nonce: &[u8; 16]) -> bool {
        match self {
            Digest::Plain(digest) => digest == sha1,
            Digest::Short(digest) => *digest == short(nonce, sha1),
            Digest::None | Digest::Keyed(_) => false,
        }
    }
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

fn fits(text: &str) -> bool {
    text.len() <= TEXT_BYTES_MAX
}

fn is_name(text: &str) -> bool {
    text.len() <= NAME_BYTES_MAX
}

/// What is said in one message. No longer list than may be is read, whatever was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Together<T>(pub Vec<T>);

impl<'d, T: Deserialize<'d>> Deserialize<'d> for Together<T> {
    fn deserialize<D: serde::Deserializer<'d>>(from: D) -> Result<Together<T>, D::Error> {
        struct List<T>(std::marker::PhantomData<T>);
        impl<'d, T: Deserialize<'d>> serde::de::Visitor<'d> for List<T> {
            type Value = Together<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "at most {TOGETHER_MAX}")
            }

            fn visit_seq<A: serde::de::SeqAccess<'d>>(self, mut from: A) -> Result<Together<T>, A::Error> {
                let mut all = Vec::new();
                while let Some(one) = from.next_element()? {
                    if all.len() == TOGETHER_MAX {
                        return Err(serde::de::Error::invalid_length(all.len() + 1, &self));
                    }
                    all.push(one);
                }
                Ok(Together(all))
            }
        }
        from.deserialize_seq(List(std::marker::PhantomData))
    }
}

impl Message for Together<Request> {
    /// Results of several bundles and a question for more travel together, and so do bodies; everything else is said alone.
    fn is_bounded(&self) -> bool {
        let all = &self.0;
        let asks = all.iter().filter(|request| matches!(request, Request::Ask { .. })).count();
        let bodies = all.iter().map(|request| if let Request::Body { bytes, .. } = request { bytes.len() } else { 0 });
        let together = |request: &Request| !matches!(request, Request::Hello { .. } | Request::Leave);
        !all.is_empty()
            && (all.len() == 1 || all.iter().all(together))
            && asks <= 1
            && bodies.sum::<usize>() <= PIECE_BYTES_MAX
            && all.iter().all(Message::is_bounded)
    }
}

impl Message for Together<Answer> {
    fn is_bounded(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(Message::is_bounded)
    }
}

impl Message for Request {
    fn is_bounded(&self) -> bool {
        match self {
            Request::Hello { holds, team, .. } => holds.len() <= HOLDS_MAX && team.len() <= 64,
            Request::Ask { bundles } => usize::from(*bundles) <= BATCH_BUNDLES_MAX,
            Request::Results { results, .. } => {
                let mut seen = [false; BUNDLE_URLS_MAX + ROBOTS_HOPS_MAX];
                results.len() <= seen.len()
                    && results.iter().all(|fetched| {
                        let bounded = fetched.url.len() <= URL_BYTES_MAX
                            && is_name(&fetched.mime)
                            && is_name(&fetched.fault)
                            && fetched.length <= WHOLE_BYTES_MAX
                            && fetched.status < 1000;
                        let first = seen.get_mut(usize::from(fetched.number));
                        bounded && first.is_some_and(|seen| !std::mem::replace(seen, true))
                    })
            }
            Request::Body { number, offset, total, bytes, .. } => {
                usize::from(*number) < BUNDLE_URLS_MAX + ROBOTS_HOPS_MAX
                    && bytes.len() <= PIECE_BYTES_MAX
                    && *total <= WHOLE_BYTES_MAX
                    && offset.checked_add(bytes.len() as u64).is_some_and(|end| end <= *total)
            }
            Request::Leave | Request::Decline { .. } => true,
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
            | Answer::Elsewhere { address: text } => fits(text),
            Answer::Work { bits, .. } => *bits <= WORK_BITS_MAX,
            Answer::Taken { .. } | Answer::Done { .. } | Answer::Refused { .. } => true,
        }
    }
}

impl Bundle {
    /// How one of its URLs, or a file on the way to robots.txt, is to be told.
    pub fn how(&self, number: u16) -> How {
        let task = self.urls.get(usize::from(number));
        task.map_or(How::THOROUGH, |task| How { nonce: self.nonce, keyed: task.keyed, thorough: task.thorough })
    }

    pub(crate) fn is_bounded(&self) -> bool {
        let task = |task: &Task| {
            task.url.len() <= URL_BYTES_MAX
                && [&task.etag, &task.last_modified]
                    .iter()
                    .all(|v| v.as_ref().is_none_or(|v| v.len() <= TEXT_BYTES_MAX))
        };
        self.urls.len() <= BUNDLE_URLS_MAX && fits(&self.host) && self.urls.iter().all(task)
    }
}

impl Message for Whole {
    fn is_bounded(&self) -> bool {
        self.head_bytes as usize <= self.response.len()
            && self.response.len() as u64 <= crate::limits::ANSWER_BYTES_MAX + (1 << 20)
            && self.request.len() <= REQUEST_BYTES_MAX
            && self.notes.len() <= 64
            && self.notes.iter().chain([&self.fault.0]).all(|text| is_name(text))
            && fits(&self.fault.1)
            && self.tls.as_ref().is_none_or(|(a, b, c)| fits(a) && fits(b) && c.as_deref().is_none_or(fits))
    }
}

impl Whole {
    /// Bytes of all that it holds.
    pub fn bytes(&self) -> usize {
        let texts = self.notes.iter().chain([&self.fault.0, &self.fault.1]).map(String::len).sum::<usize>();
        let tls = self.tls.as_ref().map_or(0, |(a, b, c)| a.len() + b.len() + c.as_ref().map_or(0, String::len));
        self.request.len() + self.response.len() + texts + tls
    }
}

/// BLAKE3 under a bundle's nonce.
fn under(nonce: &[u8; 16], bytes: &[u8]) -> [u8; 32] {
    let mut key = [0; 32];
    key[..16].copy_from_slice(nonce);
    *blake3::keyed_hash(&key, bytes).as_bytes()
}

/// See [`Digest::Keyed`].
pub fn keyed(nonce: &[u8; 16], payload: &[u8]) -> [u8; 16] {
    first(&under(nonce, payload))
}

/// See [`Digest::Short`].
pub fn short(nonce: &[u8; 16], sha1: &[u8; 20]) -> [u8; 8] {
    first(&under(nonce, sha1))
}

/// The first bytes of a digest.
pub fn first<const N: usize>(digest: &[u8; 32]) -> [u8; N] {
    std::array::from_fn(|at| digest[at])
}

/// What a proof of work for a key is worth, in bits.
pub fn worth(seed: &[u8; 16], key: &[u8; 32], proof: u64) -> u8 {
    let hash = blake3::hash(&[&seed[..], key, &proof.to_le_bytes()].concat());
    let [a, b, c, d, e, f, g, h, ..] = *hash.as_bytes();
    u64::from_be_bytes([a, b, c, d, e, f, g, h]).leading_zeros() as u8
}

/// The proof of work for a key, and how long that takes depends on chance alone.
pub fn prove(seed: &[u8; 16], key: &[u8; 32], bits: u8) -> u64 {
    prove_among(seed, key, bits, 1..u64::MAX).unwrap_or(0)
}

/// The same, if it is one of these numbers.
pub fn prove_among(seed: &[u8; 16], key: &[u8; 32], bits: u8, mut among: std::ops::Range<u64>) -> Option<u64> {
    among.find(|proof| worth(seed, key, *proof) >= bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_refused() {
        let fetched = |number| Fetched { number, ..Fetched::default() };
        let results = |results| Request::Results { bundle: 1, results };
        assert!(results((0..106).map(fetched).collect()).is_bounded());
        assert!(!results(vec![fetched(106)]).is_bounded(), "no such number");
        assert!(!results(vec![fetched(1), fetched(1)]).is_bounded(), "twice");
        assert!(!results(vec![Fetched { url: "x".repeat(URL_BYTES_MAX + 1), ..fetched(0) }]).is_bounded());
        assert!(!results(vec![Fetched { length: 1 << 63, ..fetched(0) }]).is_bounded(), "longer than can be brought");
        let hello = |holds| Request::Hello { version: VERSION, proof: 0, holds: vec![7; holds], team: String::new() };
        assert!(hello(HOLDS_MAX).is_bounded() && !hello(HOLDS_MAX + 1).is_bounded());
        let work = |bits| Answer::Work { bits, seed: [0; 16] };
        assert!(work(WORK_BITS_MAX).is_bounded() && !work(WORK_BITS_MAX + 1).is_bounded());
        let body = |offset, total, bytes| Request::Body { bundle: 1, number: 0, offset, total, bytes };
        assert!(body(5, 10, vec![0; 5]).is_bounded() && !body(6, 10, vec![0; 5]).is_bounded());
        assert!(!body(u64::MAX, u64::MAX, vec![0; 5]).is_bounded());
        let bundle = |urls| Bundle {
            id: 1,
            host: "a.test:80".into(),
            urls: vec![Task { url: "http://a.test/".into(), ..Task::default() }; urls],
            pace: Pace::Fixed(500),
            robots: None,
            lease_ms: 60_000,
            nonce: [0; 16],
        };
        assert!(!Answer::Bundles(vec![bundle(101)]).is_bounded() && Answer::Bundles(vec![bundle(100)]).is_bounded());
    }

    #[test]
    fn some_things_are_said_together_and_others_alone() {
        let (ask, results) = (Request::Ask { bundles: 3 }, Request::Results { bundle: 1, results: Vec::new() });
        let half = Request::Body {
            bundle: 1,
            number: 0,
            offset: 0,
            total: PIECE_BYTES_MAX as u64,
            bytes: vec![0; PIECE_BYTES_MAX / 2],
        };
        assert!(Together(vec![results.clone(), results.clone(), ask.clone()]).is_bounded());
        assert!(Together(vec![half.clone(), half.clone()]).is_bounded());
        assert!(!Together(vec![half.clone(), half.clone(), half]).is_bounded(), "more than a piece at once");
        assert!(!Together(vec![ask.clone(), ask.clone()]).is_bounded(), "asked twice");
        assert!(!Together(vec![Request::Leave, ask]).is_bounded());
        assert!(!Together(Vec::<Request>::new()).is_bounded());
        let read = |count| postcard::from_bytes::<Together<Request>>(&crate::envelope::plain(&vec![&results; count]));
        assert!(read(TOGETHER_MAX).is_ok() && read(TOGETHER_MAX + 1).is_err());
    }

    #[test]
    fn a_short_digest_is_that_of_one_payload_in_one_bundle() {
        let (one, other) = ([1; 20], [2; 20]);
        let digest = Digest::Short(short(&[7; 16], &one));
        assert!(digest.is_of(&one, &[7; 16]) && !digest.is_of(&other, &[7; 16]) && !digest.is_of(&one, &[8; 16]));
        assert!(Digest::Plain(one).is_of(&one, &[0; 16]) && !Digest::None.is_of(&one, &[0; 16]));
    }

    #[test]
    fn proofs_of_work() {
        let proof = prove(&[1; 16], &[2; 32], 8);
        assert!(worth(&[1; 16], &[2; 32], proof) >= 8 && worth(&[1; 16], &[3; 32], proof) < 30);
        assert_eq!(prove_among(&[1; 16], &[2; 32], 8, proof..proof + 5), Some(proof));
        assert_eq!(prove_among(&[1; 16], &[2; 32], 8, 1..proof), None);
    }
}
