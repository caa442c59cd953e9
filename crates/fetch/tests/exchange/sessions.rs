//! Connections are kept while all is well, and only then.

use skep_fetch::Ask;

use crate::server::{Server, bytes, fault, notes};

const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello";

#[tokio::test]
async fn one_connection_carries_many_exchanges() {
    let server = Server::always(ANSWER);
    let url = server.url("/x?y=1");
    let mut session = server.fetcher().session(&url);
    for number in 0..5 {
        let exchange = session.get(&Ask::new(&url)).await;
        assert_eq!((fault(&exchange), exchange.status(), exchange.reused), ("", Some(200), number > 0));
        assert_eq!(bytes(&exchange), ANSWER.as_bytes());
        assert_eq!(exchange.head_bytes, ANSWER.len() - 5);
        assert_eq!(exchange.address, Some(server.address));
        assert_eq!(exchange.request, server.requests()[number].as_bytes());
    }
    assert_eq!(server.connections(), 1);
    assert!(server.requests()[0].starts_with("GET /x?y=1 HTTP/1.1\r\nHost: a.test\r\nUser-Agent: skep-test/1\r\n"));
}

#[tokio::test]
async fn a_connection_that_died_is_made_anew_once() {
    // The server takes the second request of each connection and closes instead of answering.
    let server = Server::start(|_, peer| {
        peer.request();
        peer.send(ANSWER);
        peer.request();
    });
    let url = server.url("/");
    let mut session = server.fetcher().session(&url);
    assert!(!session.get(&Ask::new(&url)).await.reused);
    let second = session.get(&Ask::new(&url)).await;
    assert_eq!((fault(&second), second.reused, notes(&second)), ("", false, vec!["reconnected"]));
    assert_eq!((server.connections(), server.requests().len()), (2, 3));

    // A fresh connection that dies is a fault, not a reason to try again and again.
    let server = Server::start(|_, peer| drop(peer.request()));
    let exchange = server.get("/").await;
    assert_eq!((fault(&exchange), server.connections(), exchange.response.len()), ("closed", 1, 0));
    assert!(!exchange.request.is_empty());
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_not_used() {
    let server = Server::once(ANSWER);
    let url = server.url("/");
    let mut session = server.fetcher().session(&url);
    for _ in 0..3 {
        let exchange = session.get(&Ask::new(&url)).await;
        assert_eq!((fault(&exchange), bytes(&exchange)), ("", ANSWER.as_bytes().to_vec()));
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn an_oddity_ends_the_connection() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
        "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello surplus",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 204 No Content\r\n\r\nhello",
    ] {
        let server = Server::always(answer);
        let url = server.url("/");
        let mut session = server.fetcher().session(&url);
        session.get(&Ask::new(&url)).await;
        let second = session.get(&Ask::new(&url)).await;
        assert_eq!((fault(&second), second.reused, server.connections()), ("", false, 2), "{answer:?}");
    }
}

#[tokio::test]
async fn a_session_follows_a_url_to_another_server() {
    let server = Server::always(ANSWER);
    let (one, two) = (server.url("/1"), skep_url::Url::parse("http://b.test:8080/2").unwrap());
    let mut session = server.fetcher().session(&one);
    session.get(&Ask::new(&one)).await;
    session.get(&Ask::new(&two)).await;
    let requests = server.requests();
    assert!(requests[0].contains("Host: a.test\r\n") && requests[1].contains("Host: b.test:8080\r\n"), "{requests:?}");
    assert_eq!(server.connections(), 2);
}
