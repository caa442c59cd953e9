//! What contributors and nodes say to each other: what it costs, and that what was said once is still understood.

use skep_archive::Identity;
use skep_contribute::envelope::{pack, seal_answers, seal_requests, unpack};
use skep_contribute::limits::UNPACKED_BYTES_MAX;
use skep_contribute::message::{self, Answer, Bundle, Digest, Fetched, Request, Task, Together};
use skep_schedule::Pace;

/// What goes out and what comes back, for a hundred URLs of one host of which none has changed.
#[test]
fn an_unchanged_url_costs_few_bytes() {
    let hash = |n: u64| xxhash_rust::xxh3::xxh3_64(&n.to_le_bytes());
    let keyed = |n: u64| -> [u8; 16] { std::array::from_fn(|at| hash(n << 8 | at as u64) as u8) };
    let results = (0..100)
        .map(|number| Fetched {
            number,
            status: 200,
            time_ms: 1_790_000_000_000 + i64::from(number) * 613 + (hash(u64::from(number)) % 16) as i64,
            took_ms: 80 + (hash(7 + u64::from(number)) % 16) as u32,
            length: 4_000 + hash(9 + u64::from(number)) % 36_000,
            digest: match number.is_multiple_of(10) {
                true => Digest::Keyed(keyed(u64::from(number))),
                false => Digest::Short(hash(11 + u64::from(number)).to_le_bytes()),
            },
            mime: "text/html".into(),
            address: Some("192.0.2.7".parse().unwrap()),
            ..Fetched::default()
        })
        .collect();
    let who = Identity::from_secret([2; 32]);
    let back = seal_requests(&[Request::Results { bundle: 7, results }], &[1; 32], &who, 0).len();
    assert!(back < 100 * 17, "{back} bytes for a hundred unchanged URLs");
    let words = ["garden", "harbour", "winter", "letters", "stone", "market", "bridge", "yellow"];
    let word = |n: u64| words[(n % 8) as usize];
    let urls = (0..100).map(|number| {
        let h = hash(number);
        let url = format!("https://www.town.example/{}/{}-{}-{}.html", word(h), word(h >> 8), word(h >> 16), h >> 48);
        Task { url, keyed: number.is_multiple_of(10), ..Task::default() }
    });
    let bundle = Bundle {
        id: 7,
        host: "www.town.example:443".into(),
        urls: urls.collect(),
        pace: Pace::Fixed(500),
        robots: Some(Default::default()),
        lease_ms: 60_000,
        nonce: [5; 16],
    };
    let out = seal_answers(&[Answer::Bundles(vec![bundle])], &[0; 64], &who, 0).len();
    assert!(out < 100 * 14, "{out} bytes for a hundred URLs");
}

/// Messages as they were made once; the fuzzer begins with them.
fn kept() -> Vec<(&'static str, Vec<u8>, Together<Request>)> {
    let keep = |name: &'static str, requests: Vec<Request>| {
        let file = std::fs::read(format!("{}/fuzz/message/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap_or_default();
        (name, file, Together(requests))
    };
    let fetched = Fetched {
        number: 100,
        url: "http://a.test/robots.txt".into(),
        status: 404,
        fault: "too-slow".into(),
        time_ms: 1_790_000_000_000,
        took_ms: 80,
        length: 9,
        digest: Digest::Plain([1; 20]),
        text: 3,
        links: 4,
        head: 5,
        mime: "text/plain".into(),
        address: Some("2001:db8::1".parse().unwrap()),
        too_large: true,
    };
    let line = |number, digest| Fetched { number, status: 200, digest, ..Fetched::default() };
    let results = vec![fetched, line(0, Digest::Short([2; 8])), line(1, Digest::Keyed([3; 16])), line(2, Digest::None)];
    let body = |offset| Request::Body { bundle: 7, number: 1, offset, total: 12, bytes: b"hello ".to_vec() };
    let hello = Request::Hello { version: 1, proof: 9, holds: vec![7, 8], team: "bees".into() };
    vec![
        keep("hello", vec![hello]),
        keep("ask", vec![Request::Ask { bundles: 30 }]),
        keep("results", vec![Request::Results { bundle: 7, results }, Request::Ask { bundles: 1 }]),
        keep("body", vec![body(0), body(6)]),
        keep("leave", vec![Request::Leave]),
    ]
}

fn kept_answers() -> Vec<(&'static str, Vec<u8>, Together<Answer>)> {
    let keep = |name: &'static str, answers: Vec<Answer>| {
        let file = std::fs::read(format!("{}/fuzz/message/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap_or_default();
        (name, file, Together(answers))
    };
    let task = |n: u8| Task {
        url: format!("http://a.test/{n}"),
        etag: (n == 1).then(|| b"\"one\"".to_vec()),
        last_modified: (n == 2).then(|| b"Tue, 17 Nov 2026 04:50:00 GMT".to_vec()),
        keyed: n == 1,
        thorough: n == 2,
    };
    let bundle = Bundle {
        id: 7,
        host: "a.test:80".into(),
        urls: (0..3).map(task).collect(),
        pace: Pace::Fixed(500),
        robots: Some(message::Rules { crawl_delay_ms: Some(2_000) }),
        lease_ms: 60_000,
        nonce: [5; 16],
    };
    vec![
        keep("bundles", vec![Answer::Bundles(vec![bundle])]),
        keep("want", vec![Answer::Want { bundle: 7, bodies: vec![(1, 0), (100, 6)] }, Answer::Done { bundle: 8 }]),
    ]
}

#[test]
fn what_was_said_once_is_still_understood() {
    let mut strange = Vec::new();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for (name, file, meant) in kept() {
        if unpack::<Together<Request>>(&file, UNPACKED_BYTES_MAX).as_ref() != Ok(&meant) {
            strange.push(format!("{name} {}", hex(&pack(&meant, 3))));
        }
    }
    for (name, file, meant) in kept_answers() {
        if unpack::<Together<Answer>>(&file, UNPACKED_BYTES_MAX).as_ref() != Ok(&meant) {
            strange.push(format!("{name} {}", hex(&pack(&meant, 3))));
        }
    }
    assert!(strange.is_empty(), "these say something else now; as they would be said today:\n{}", strange.join("\n"));
}
