//! Through proxies, small ones, which the tests play themselves.

use std::io::Read as _;

use skep_fetch::{Ask, Proxy, Settings, request_for_record};
use skep_url::Url;

use crate::secure;
use crate::server::{Server, bytes, fault, fetcher, get};

const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

fn through(kind: &str, server: &Server) -> Settings {
    let mut settings = Settings::new("skep-test/1");
    settings.proxy = Some(format!("{kind}{}", server.address).parse::<Proxy>().unwrap());
    settings
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

#[tokio::test]
async fn http_through_an_http_proxy() {
    let proxy = Server::always(ANSWER);
    let (fetcher, url) = (fetcher(through("http://user:secret@", &proxy)), url("http://example.org/a?b"));
    let mut session = fetcher.session(&url);
    for number in 0..2 {
        let exchange = session.get(&Ask::new(&url)).await;
        assert_eq!((fault(&exchange), bytes(&exchange)), ("", ANSWER.as_bytes().to_vec()));
        assert_eq!((exchange.reused, exchange.address), (number > 0, None));
        let kept = request_for_record(&exchange);
        let kept_text = String::from_utf8_lossy(&kept.bytes);
        assert!(kept_text.contains("Proxy-Authorization: redacted\r\n") && !kept.private, "{kept_text}");
    }
    assert!(session.resolved().is_none());
    let request = &proxy.requests()[0];
    assert!(request.starts_with("GET http://example.org/a?b HTTP/1.1\r\nHost: example.org\r\n"), "{request}");
    assert!(request.contains("Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n"));
    assert_eq!(proxy.connections(), 1);
}

#[tokio::test]
async fn https_through_an_http_proxy() {
    let config = secure::any_config();
    let proxy = Server::start(move |_, peer| {
        peer.request();
        peer.send("HTTP/1.1 200 Connection established\r\nVia: us\r\n\r\n");
        secure::speak(config.clone(), &mut peer.stream, ANSWER);
    });
    let exchange = get(through("http://user:secret@", &proxy), &url("https://example.org/")).await;
    assert_eq!((fault(&exchange), bytes(&exchange)), ("", ANSWER.as_bytes().to_vec()));
    assert!(exchange.tls.is_some());
    let request = &proxy.requests()[0];
    assert!(request.starts_with("CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n"), "{request}");
    assert!(request.contains("Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n"));
    assert!(!String::from_utf8_lossy(&exchange.request).contains("Proxy-"));
}

#[tokio::test]
async fn http_proxies_that_do_not_lead_through() {
    for (answer, wanted) in [
        ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "proxy-credentials"),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", "proxy-refused"),
        ("220 mail.example ESMTP\r\n\r\n", "proxy-protocol"),
        ("", "proxy-protocol"),
    ] {
        let proxy = Server::once(answer);
        assert_eq!(fault(&get(through("http://", &proxy), &url("https://example.org/")).await), wanted);
    }
    let wants_another = Server::once("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 4\r\n\r\nwho?");
    let exchange = get(through("http://", &wants_another), &url("http://example.org/")).await;
    assert_eq!(fault(&exchange), "proxy-credentials");
    assert!(exchange.response.is_empty(), "it is no answer of the server's");
    let mut settings = Settings::new("x");
    settings.proxy = Some("http://127.0.0.1:1".parse().unwrap());
    assert_eq!(fault(&get(settings, &url("http://example.org/")).await), "proxy-unreachable");
    let silent = Server::start(|_, peer| peer.until_closed());
    let mut impatient = through("socks5://", &silent);
    impatient.limits.handshake_ms = 50;
    assert_eq!(fault(&get(impatient, &url("http://example.org/")).await), "proxy-timeout");
}

/// Plays a SOCKS5 proxy and the server behind it; `wants_user` as `user:secret`.
fn socks(wants_user: bool, reply: u8) -> Server {
    Server::start(move |_, peer| {
        let read = |peer: &mut crate::server::Peer, count: usize| {
            let mut bytes = vec![0; count];
            peer.stream.read_exact(&mut bytes).map(|()| bytes).unwrap_or_default()
        };
        let greeting = read(peer, 2);
        let methods = read(peer, usize::from(greeting[1]));
        if wants_user {
            if !methods.contains(&2) {
                peer.send([5, 0xff]);
                return;
            }
            peer.send([5, 2]);
            if read(peer, 13) != b"\x01\x04user\x06secret" {
                peer.send([1, 1]);
                return;
            }
            peer.send([1, 0]);
        } else {
            peer.send([5, 0]);
        }
        let head = read(peer, 4);
        let target = match head[3] {
            1 => read(peer, 4),
            4 => read(peer, 16),
            _ => {
                let length = read(peer, 1)[0];
                read(peer, length.into())
            }
        };
        let port = read(peer, 2);
        peer.send([5, reply, 0, 1, 0, 0, 0, 0, 0, 0]);
        if reply == 0 {
            peer.request();
            let body = format!("{} {}", String::from_utf8_lossy(&target), u16::from_be_bytes([port[0], port[1]]));
            peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        }
    })
}

#[tokio::test]
async fn through_a_socks_proxy() {
    for (kind, wants_user) in [("socks5://", false), ("socks5://user:secret@", false), ("socks5://user:secret@", true)]
    {
        let proxy = socks(wants_user, 0);
        let exchange = get(through(kind, &proxy), &url("http://example.org:8080/")).await;
        assert_eq!(fault(&exchange), "");
        assert!(bytes(&exchange).ends_with(b"\r\n\r\nexample.org 8080"));
        assert_eq!(exchange.address, None);
        assert!(String::from_utf8_lossy(&exchange.request).starts_with("GET / HTTP/1.1\r\n"));
    }
    for (kind, wants_user, reply, wanted) in [
        ("socks5://", true, 0, "proxy-credentials"),
        ("socks5://user:wrong1@", true, 0, "proxy-credentials"),
        ("socks5://", false, 5, "proxy-refused"),
    ] {
        let proxy = socks(wants_user, reply);
        assert_eq!(fault(&get(through(kind, &proxy), &url("http://example.org/")).await), wanted);
    }
}

#[tokio::test]
async fn a_proxy_is_no_way_around_the_gate() {
    for kind in ["http://", "socks5://"] {
        let proxy = Server::always(ANSWER);
        for target in
            ["http://127.0.0.1/", "https://10.0.0.1/", "http://localhost/", "http://[::1]/", "http://169.254.169.254/"]
        {
            assert_eq!(fault(&get(through(kind, &proxy), &url(target)).await), "address-refused", "{target}");
        }
        for name in ["router", "router.", "printer.local", "metadata.google.internal", "wiki.corp", "nas.home.arpa"] {
            let target = format!("http://{name}/");
            assert_eq!(fault(&get(through(kind, &proxy), &url(&target)).await), "address-refused", "{target}");
        }
        assert_eq!(fault(&get(through(kind, &proxy), &url("http://example.org:22/")).await), "port-refused");
        assert_eq!(proxy.connections(), 0);
    }
    let proxy = Server::always(ANSWER);
    let mut settings = through("http://", &proxy);
    settings.private_hosts = vec!["wiki.corp".to_owned()];
    assert_eq!(fault(&get(settings.clone(), &url("http://wiki.corp/")).await), "", "named by the operator");
    assert_eq!(fault(&get(settings.clone(), &url("http://router/")).await), "address-refused");
    settings.allow_private = true;
    for target in ["http://router/", "http://locals.example/", "http://hidden.onion/"] {
        assert_eq!(fault(&get(settings.clone(), &url(target)).await), "", "{target}");
    }
}
