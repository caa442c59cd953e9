//! The bytes of an answer are kept as they were sent, whatever they are.

use crate::server::{Server, bytes, fault, notes};

/// Sends the answer in pieces of several sizes; all that belongs to the message is kept, in every case.
async fn check(answer: &str, kept: &str, wanted_fault: &str, wanted_notes: &[&str]) {
    let (sent, surplus) = (answer.as_bytes().to_vec(), answer.len() - kept.len());
    for piece in [usize::MAX, 5] {
        let sent = sent.clone();
        let server = Server::start(move |_, peer| {
            peer.request();
            for part in sent.chunks(piece.min(sent.len())) {
                peer.send(part);
            }
        });
        let exchange = server.get("/").await;
        assert_eq!(String::from_utf8_lossy(&bytes(&exchange)), kept, "{answer:?}");
        assert_eq!(fault(&exchange), wanted_fault, "{answer:?}");
        if piece > 5 {
            assert_eq!(notes(&exchange), wanted_notes, "{answer:?}");
            assert_eq!(exchange.surplus_bytes + exchange.interim.len() as u64, surplus as u64, "{answer:?}");
        }
    }
}

async fn whole(answer: &str, wanted_notes: &[&str]) {
    check(answer, answer, "", wanted_notes).await;
}

#[tokio::test]
async fn odd_but_whole() {
    whole("HTTP/1.1 200 OK\r\nX-a: 1\r\nX-A: 2\r\nx-A:3\r\nContent-Length: 2\r\n\r\nab", &[]).await;
    whole("HTTP/1.1 200 OK\r\nX: a\r\n  folded\r\nContent-Length: 2\r\n\r\nab", &["http-folded"]).await;
    whole(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;name=\"va;lue\"\r\nabc\r\n0002 \r\nde\r\n0;last\r\nTrailer: x\r\n\r\n",
        &[],
    )
    .await;
    whole("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", &[]).await;
    whole("HTTP/1.0 200 OK\r\n\r\neverything up to the end", &[]).await;
    whole("HTTP/1.1 999 Request denied\r\nContent-Length: 2\r\n\r\nab", &[]).await;
}

/// Numbers from a seed: what failed once can be sent again.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn any_case(&mut self, name: &str) -> String {
        name.chars().map(|c| if self.below(2) == 0 { c.to_ascii_uppercase() } else { c }).collect()
    }
}

/// Odd in case, order, number, spacing and folding of its fields and in its chunks, and yet an answer.
fn odd_answer(seed: u64) -> String {
    let mut chance = Chance(seed);
    let body = "<p>".repeat(chance.below(2_000) as usize);
    let (kind, length) = (chance.any_case("content-type"), chance.any_case("content-length"));
    let mut lines = vec![format!("{kind}:{}text/html", " ".repeat(chance.below(4) as usize))];
    for _ in 0..chance.below(12) {
        let name = ["set-cookie", "x-odd", "link", "vary"][chance.below(4) as usize];
        let name = chance.any_case(name);
        let fold = ["", "\r\n ", "\r\n\t", "\r\n   "][chance.below(4) as usize];
        lines.push(format!("{name}: a{fold}b\u{e9}{}", "\t".repeat(chance.below(3) as usize)));
    }
    let chunked = chance.below(2) == 0;
    lines.push(if chunked {
        chance.any_case("transfer-encoding") + ": chunked"
    } else {
        format!("{length}: {}", body.len())
    });
    let last = lines.len() - 1;
    let at = chance.below(lines.len() as u64) as usize;
    lines.swap(at, last);
    let mut answer = format!("HTTP/1.1 200 {}\r\n{}\r\n\r\n", chance.any_case("ok"), lines.join("\r\n"));
    if !chunked {
        return answer + &body;
    }
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (chunk, behind) = rest.split_at((1 + chance.below(900) as usize).min(rest.len()));
        let extension = ["", ";x", ";name=value", " ; quoted=\"a;b\""][chance.below(4) as usize];
        answer += &format!("{}{:x}{extension}\r\n{chunk}\r\n", "0".repeat(chance.below(3) as usize), chunk.len());
        rest = behind;
    }
    answer + ["0\r\n\r\n", "000;end\r\nX-Trailer: a\r\n\r\n"][chance.below(2) as usize]
}

#[tokio::test]
async fn a_thousand_odd_answers() {
    let server = Server::start(|_, peer| {
        while let Some(request) = peer.request() {
            let seed = request.split(['/', ' ']).nth(2).and_then(|word| word.parse().ok()).unwrap_or(0);
            peer.send(odd_answer(seed));
        }
    });
    let fetcher = server.fetcher();
    let mut session = fetcher.session(&server.url("/"));
    for seed in 0..1_000 {
        let exchange = session.get(&skep_fetch::Ask::new(&server.url(&format!("/{seed}")))).await;
        assert_eq!(String::from_utf8_lossy(&bytes(&exchange)), odd_answer(seed), "seed {seed}");
        assert_eq!((fault(&exchange), exchange.surplus_bytes), ("", 0), "seed {seed}");
    }
    assert!(server.connections() > 1 && server.connections() < 1_000); // oddities end a connection, and only they
}
