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
