//! How messages travel: packed, signed, for one reader. Drawn in docs/formats/contribute.md.

use serde::Serialize;
use skep_archive::Identity;

use crate::limits::{MESSAGE_BYTES_MAX, UNPACKED_BYTES_MAX};
use crate::message::{Answer, Message, Request, Together, Whole, Wrong};

/// URLs are worth some time: they are most of what goes to contributors.
const URLS_LEVEL: i32 = 12;
/// Digests cannot be made smaller, whatever one tries.
const USUAL_LEVEL: i32 = 3;
/// Whoever lends bandwidth lends little of his processor.
const BODIES_LEVEL: i32 = 1;

/// Packs anything: postcard, then zstd.
pub fn pack<T: Serialize + ?Sized>(value: &T, level: i32) -> Vec<u8> {
    squeeze(&plain(value), level)
}

/// The first half of it.
pub fn plain<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    // Serialising plain data to memory has no way to fail; an empty message is refused by whoever reads it.
    postcard::to_stdvec(value).unwrap_or_default()
}

/// The second half.
fn squeeze(plain: &[u8], level: i32) -> Vec<u8> {
    zstd::bulk::compress(plain, level).unwrap_or_default()
}

/// Unpacks what [`pack`] made, up to `bytes_max` bytes of it.
pub fn unpack<T: Message>(packed: &[u8], bytes_max: usize) -> Result<T, Wrong> {
    let mut plain = Vec::new();
    let mut reader = zstd::stream::read::Decoder::with_buffer(packed).map_err(|_| Wrong::NotOne)?;
    // No message that may be is longer than what is looked back on.
    reader.window_log_max(UNPACKED_BYTES_MAX.ilog2()).map_err(|_| Wrong::NotOne)?;
    let read = std::io::Read::read_to_end(&mut std::io::Read::take(&mut reader, bytes_max as u64 + 1), &mut plain);
    if read.map_err(|_| Wrong::NotOne)? > bytes_max {
        return Err(Wrong::TooLong);
    }
    read_plain(&plain)
}

/// Reads what [`plain`] made.
pub fn read_plain<T: Message>(plain: &[u8]) -> Result<T, Wrong> {
    let (value, rest) = postcard::take_from_bytes::<T>(plain).map_err(|_| Wrong::NotOne)?;
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

fn seal(magic: &[u8; 4], about: &[u8], who: &Identity, time_ms: i64, packed: &[u8]) -> Vec<u8> {
    let signature = who.sign(&signed(magic, about, time_ms, packed));
    [&magic[..], &who.public(), &time_ms.to_le_bytes(), &signature, packed].concat()
}

fn open<T>(
    magic: &[u8; 4],
    about: &[u8],
    bytes: &[u8],
    bytes_max: impl Fn(&[u8; 32]) -> usize,
) -> Result<Opened<Vec<T>>, Wrong>
where
    Together<T>: Message,
{
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
    let Together(message) = unpack(packed, bytes_max(key))?;
    Ok(Opened { key: *key, time_ms, signature, message })
}

/// Requests to the node with this key; all zeros before it is known.
pub fn seal_requests(requests: &[Request], node: &[u8; 32], who: &Identity, time_ms: i64) -> Vec<u8> {
    let bodies = requests.iter().any(|request| matches!(request, Request::Body { .. }));
    let level = if bodies { BODIES_LEVEL } else { USUAL_LEVEL };
    seal(TO_NODE, node, who, time_ms, &pack(requests, level))
}

/// Opens requests to `node`. A first request may not know whom it speaks to.
pub fn open_requests(bytes: &[u8], node: &[u8; 32]) -> Result<Opened<Vec<Request>>, Wrong> {
    open_requests_within(bytes, node, |_| UNPACKED_BYTES_MAX)
}

/// The same, unpacked to no more bytes than whoever signed them may send.
pub fn open_requests_within(
    bytes: &[u8],
    node: &[u8; 32],
    bytes_max: impl Fn(&[u8; 32]) -> usize,
) -> Result<Opened<Vec<Request>>, Wrong> {
    match open(TO_NODE, node, bytes, &bytes_max) {
        Err(Wrong::Signature) => open::<Request>(TO_NODE, &[0; 32], bytes, &bytes_max).and_then(|opened| {
            matches!(opened.message[..], [Request::Hello { .. }]).then_some(opened).ok_or(Wrong::Signature)
        }),
        other => other,
    }
}

/// Who has signed requests to `node`, as far as one can tell without reading them. A first request may not know whom it speaks to.
pub fn sender(bytes: &[u8], node: &[u8; 32]) -> Option<[u8; 32]> {
    let head = bytes.get(..HEAD).filter(|head| head.starts_with(TO_NODE))?;
    let key: [u8; 32] = head[4..36].try_into().ok()?;
    let time_ms = i64::from_le_bytes(head[36..44].try_into().ok()?);
    let signature: [u8; 64] = head[44..].try_into().ok()?;
    let is_about = |about: &[u8]| {
        let text = signed(TO_NODE, about, time_ms, &bytes[HEAD..]);
        crate::key::verifies(&key, &text, &signature)
    };
    (is_about(node) || is_about(&[0; 32])).then_some(key)
}

/// The answers to the requests with this signature.
pub fn seal_answers(answers: &[Answer], requests: &[u8; 64], who: &Identity, time_ms: i64) -> Vec<u8> {
    let urls = answers.iter().any(|answer| matches!(answer, Answer::Bundles(_)));
    let level = if urls { URLS_LEVEL } else { USUAL_LEVEL };
    seal(FROM_NODE, requests, who, time_ms, &pack(answers, level))
}

/// Opens the answers to the requests with this signature.
pub fn open_answers(bytes: &[u8], requests: &[u8; 64]) -> Result<Opened<Vec<Answer>>, Wrong> {
    open(FROM_NODE, requests, bytes, |_| UNPACKED_BYTES_MAX)
}

/// The signature on sealed requests: names them.
pub fn signature_of(sealed: &[u8]) -> [u8; 64] {
    sealed.get(44..HEAD).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; 64])
}

/// For the fuzzer: what a node and a contributor may be sent.
pub fn fuzz_message(bytes: &[u8]) {
    let _refused = open_requests(bytes, &[0; 32]);
    let _refused = open_answers(bytes, &[0; 64]);
    for packed in [bytes, bytes.get(HEAD..).unwrap_or_default()] {
        if let Ok(requests) = unpack::<Together<Request>>(packed, UNPACKED_BYTES_MAX) {
            assert_eq!(read_plain(&plain(&requests)).as_ref(), Ok(&requests));
        }
        if let Ok(answers) = unpack::<Together<Answer>>(packed, UNPACKED_BYTES_MAX) {
            assert_eq!(read_plain(&plain(&answers)).as_ref(), Ok(&answers));
        }
        if let Ok(whole) = unpack::<Whole>(packed, UNPACKED_BYTES_MAX) {
            assert_eq!(read_plain::<Whole>(&plain(&whole)).as_ref(), Ok(&whole));
            drop(crate::seen::exchange(&whole));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{HOLDS_MAX, STRANGER_BYTES_MAX};

    fn ask() -> [Request; 1] {
        [Request::Ask { bundles: 3 }]
    }

    #[test]
    fn a_request_is_for_one_node_and_an_answer_for_one_request() {
        let (node, volunteer) = (Identity::from_secret([1; 32]), Identity::from_secret([2; 32]));
        let sealed = seal_requests(&ask(), &node.public(), &volunteer, 77);
        let opened = open_requests(&sealed, &node.public()).unwrap();
        assert_eq!((&opened.message[..], opened.key, opened.time_ms), (&ask()[..], volunteer.public(), 77));
        assert_eq!(open_requests(&sealed, &[9; 32]).unwrap_err(), Wrong::Signature, "for somebody else");
        assert_eq!(sender(&sealed, &node.public()), Some(volunteer.public()));
        assert_eq!((sender(&sealed, &[9; 32]), sender(&sealed[..99], &node.public())), (None, None));
        let answer = seal_answers(&[Answer::Done { bundle: 7 }], &opened.signature, &node, 78);
        assert_eq!(opened.signature, signature_of(&sealed));
        assert_eq!(open_answers(&answer, &opened.signature).unwrap().message, [Answer::Done { bundle: 7 }]);
        assert_eq!(open_answers(&answer, &[0; 64]).unwrap_err(), Wrong::Signature, "to another question");
        for at in 0..sealed.len() {
            let mut bent = sealed.clone();
            bent[at] ^= 1;
            assert!(open_requests(&bent, &node.public()).is_err(), "byte {at}");
            assert!(open_requests(&sealed[..at], &node.public()).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn only_a_greeting_may_not_know_whom_it_greets() {
        let (node, volunteer) = (Identity::from_secret([1; 32]), Identity::from_secret([2; 32]));
        let hello = [Request::Hello { version: 1, proof: 0, holds: vec![], team: String::new() }];
        assert!(open_requests(&seal_requests(&hello, &[0; 32], &volunteer, 0), &node.public()).is_ok());
        assert!(open_requests(&seal_requests(&ask(), &[0; 32], &volunteer, 0), &node.public()).is_err());
    }

    #[test]
    fn a_bomb_is_no_message() {
        let bomb = zstd::bulk::compress(&vec![0; UNPACKED_BYTES_MAX + 1], 3).unwrap();
        assert_eq!(unpack::<Together<Request>>(&bomb, UNPACKED_BYTES_MAX).unwrap_err(), Wrong::TooLong);
    }

    #[test]
    fn whoever_is_not_known_has_room_for_a_greeting_and_for_nothing_else() {
        let (node, volunteer) = (Identity::from_secret([1; 32]), Identity::from_secret([2; 32]));
        let within = |requests: &[Request], bytes_max: usize| {
            let sealed = seal_requests(requests, &node.public(), &volunteer, 0);
            open_requests_within(&sealed, &node.public(), |_| bytes_max).map(drop)
        };
        let holds = (0..HOLDS_MAX as u64).map(|n| u64::MAX - n).collect();
        let hello = Request::Hello { version: u16::MAX, proof: u64::MAX, holds, team: "b".repeat(64) };
        assert_eq!(within(&[hello], STRANGER_BYTES_MAX), Ok(()));
        let long =
            Request::Body { bundle: 1, number: 1, offset: 0, total: 1 << 20, bytes: vec![0; STRANGER_BYTES_MAX] };
        assert_eq!(within(std::slice::from_ref(&long), UNPACKED_BYTES_MAX), Ok(()));
        assert_eq!(within(&[long], STRANGER_BYTES_MAX), Err(Wrong::TooLong));
    }
}
