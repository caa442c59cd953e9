//! Digests in every spelling, and what a declared payload digest was computed over.

use skep_warc::digest::{Algorithm, BlockCheck, Declared, Digest, DigestError, Hasher, Payload, PayloadMatch};

const ABC_SHA1: &str = "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5";

#[test]
fn known_values() {
    for (algorithm, hex) in [
        (Algorithm::Md5, "900150983cd24fb0d6963f7d28e17f72"),
        (Algorithm::Sha1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (Algorithm::Sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            Algorithm::Sha512,
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        ),
    ] {
        let digest = Digest::of(algorithm, b"abc");
        assert_eq!(digest.hex(), hex);
        let mut pieces = Hasher::new(algorithm);
        b"abc".iter().for_each(|b| pieces.update(&[*b]));
        assert_eq!(pieces.finish(), digest);
        assert_eq!(digest.algorithm(), algorithm);
    }
    assert_eq!(Digest::of(Algorithm::Sha1, b"abc").to_string(), ABC_SHA1);
    assert_eq!(
        Digest::of(Algorithm::Sha256, b"").to_string(),
        "sha256:4OYMIQUY7QOBJGX36TEJS35ZEQT24QPEMSNZGTFESWMRW6CSXBKQ===="
    );
    assert_eq!(Digest::of(Algorithm::Sha1, b"").base32(), "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
}

#[test]
fn spellings_of_one_value() {
    for algorithm in Algorithm::ALL {
        let digest = Digest::of(algorithm, b"abc");
        let (base32, hex) = (digest.base32(), digest.hex());
        let base64 = data_encoding::BASE64.encode(digest.as_bytes());
        let url64 = data_encoding::BASE64URL.encode(digest.as_bytes());
        let bare = data_encoding::BASE32_NOPAD.encode(digest.as_bytes());
        for value in [&base32, &base32.to_lowercase(), &hex, &hex.to_uppercase(), &base64, &url64, &bare] {
            for name in
                [algorithm.name().to_owned(), algorithm.name().to_uppercase(), algorithm.name().replace("sha", "sha-")]
            {
                let text = format!("{name}:{value}");
                assert_eq!(Digest::parse(&text), Ok(digest), "{text}");
                assert_eq!(text.parse(), Ok(digest));
            }
        }
        for value in [&hex, &base32, &bare] {
            assert_eq!(Digest::parse(value), Ok(digest), "{value}");
        }
        assert_eq!(Digest::parse(&format!(" {} ", digest)), Ok(digest));
    }
}

#[test]
fn what_is_no_digest() {
    assert_eq!(Digest::parse("sha3-256:abcd"), Err(DigestError::UnknownAlgorithm("sha3-256".into())));
    assert_eq!(Digest::parse("sha1:abcd"), Err(DigestError::BadValue(Algorithm::Sha1)));
    assert_eq!(Digest::parse("sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE1"), Err(DigestError::BadValue(Algorithm::Sha1)));
    for text in ["", ":", "-", "sha1", "not a digest", "€€€€€€€€€€€€"] {
        assert!(Digest::parse(text).is_err(), "{text:?}");
    }
    assert_ne!(Digest::of(Algorithm::Sha1, b"a"), Digest::of(Algorithm::Sha1, b"b"));
    assert_ne!(Digest::of(Algorithm::Sha1, b"a"), Digest::of(Algorithm::Sha256, b"a"));
    assert_eq!(Digest::new(Algorithm::Sha1, &[0; 19]), None);
}

fn check(block: &[u8], payload_over: &[u8], what: Payload, step: usize) -> (Option<bool>, Option<PayloadMatch>) {
    let declared = Declared {
        block: Some(Digest::of(Algorithm::Sha256, block)),
        payload: Some(Digest::of(Algorithm::Sha1, payload_over)),
    };
    let mut check = BlockCheck::new(declared, what);
    block.chunks(step).for_each(|piece| check.update(piece));
    let result = check.finish();
    (result.block, result.payload)
}

#[test]
fn which_bytes_a_payload_digest_belongs_to() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n";
    let chunked = "5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n";
    let block = format!("{head}{chunked}");
    for step in [1, 2, 5, 64, 1000] {
        let run = |over: &str| check(block.as_bytes(), over.as_bytes(), Payload::HttpResponse, step);
        assert_eq!(run("hello, world"), (Some(true), Some(PayloadMatch::Payload)));
        assert_eq!(run(chunked), (Some(true), Some(PayloadMatch::ChunkedBody)));
        assert_eq!(run(&block), (Some(true), Some(PayloadMatch::Block)));
        assert_eq!(run("other"), (Some(true), Some(PayloadMatch::Nothing)));
    }
}

#[test]
fn payloads_of_other_blocks() {
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody";
    assert_eq!(check(response, b"body", Payload::HttpResponse, 10).1, Some(PayloadMatch::Payload));
    let request = b"POST / HTTP/1.1\r\nHost: a\r\n\r\nform";
    assert_eq!(check(request, b"form", Payload::HttpRequest, 10).1, Some(PayloadMatch::Payload));
    let bare = b"<html>HTTP/0.9 knows no head";
    assert_eq!(check(bare, bare, Payload::HttpResponse, 10).1, Some(PayloadMatch::Payload));
    assert_eq!(check(bare, bare, Payload::Block, 10).1, Some(PayloadMatch::Payload));
    let decoded = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nalready decoded";
    assert_eq!(check(decoded, b"already decoded", Payload::HttpResponse, 3).1, Some(PayloadMatch::Payload));
    let cut = b"HTTP/1.1 200 OK\r\nA: b";
    assert_eq!(check(cut, b"", Payload::HttpResponse, 3).1, Some(PayloadMatch::Payload));
}

#[test]
fn nothing_declared_and_wrong_block() {
    let mut nothing = BlockCheck::new(Declared::default(), Payload::HttpResponse);
    nothing.update(b"HTTP/1.1 200 OK\r\n\r\nx");
    let result = nothing.finish();
    assert_eq!((result.block, result.payload, result.block_digest), (None, None, None));
    let declared = Declared::parse(Some("md5:900150983cd24fb0d6963f7d28e17f72"), None).unwrap();
    let mut wrong = BlockCheck::new(declared.clone(), Payload::Block);
    wrong.update(b"abd");
    assert_eq!(wrong.finish().block, Some(false));
    let mut right = BlockCheck::new(declared, Payload::Block);
    right.update(b"abc");
    assert_eq!(right.finish().block, Some(true));
    let mut computed = BlockCheck::compute(Algorithm::Sha1, Payload::HttpResponse);
    computed.update(b"HTTP/1.1 200 OK\r\n\r\nabc");
    assert_eq!(computed.finish().payload_digest.unwrap().to_string(), ABC_SHA1);
}

/// A head that arrives byte by byte, or never ends, costs no more than its length.
#[test]
fn a_head_in_crumbs_is_not_parsed_again_and_again() {
    let mut block = b"HTTP/1.1 200 OK\r\n".to_vec();
    block.extend(b"a:\n".repeat(400_000));
    let declared = Declared { block: None, payload: Some(Digest::of(Algorithm::Sha1, b"")) };
    let mut check = BlockCheck::new(declared, Payload::HttpResponse);
    block.iter().for_each(|b| check.update(&[*b]));
    assert_eq!(check.finish().payload, Some(PayloadMatch::Nothing));
}
