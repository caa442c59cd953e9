//! Visitors that talk nonsense, too much, or not at all; the web goes on.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use skep_testweb::{Behaviour, HostPlan, Plan, Settings, Shape, Web, loopback};

use crate::client::{Client, serve, serve_with};

fn web() -> Web {
    serve(Plan::new(1).host(HostPlan::generated("a.test", Shape::pages(10))))
}

fn lives(web: &Web) {
    assert_eq!(Client::plain(web.address("a.test").unwrap()).get("a.test", "/", &[]).status, 200);
}

#[test]
fn garbage_is_refused() {
    let web = web();
    let address = web.address("a.test").unwrap();
    let mut state = 1u64;
    for round in 0..200 {
        let mut stream = TcpStream::connect(address).unwrap();
        let bytes: Vec<u8> = (0..200)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as u8
            })
            .collect();
        // Every third looks like TLS, every third like HTTP, for a while.
        let start: &[u8] = [&[0x16, 3, 1][..], b"GET / HTTP/1.1\r\n", b""][round % 3];
        let _ = stream.write_all(start);
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    lives(&web);
}

#[test]
fn heads_and_bodies_that_are_too_long_are_refused() {
    let web = web();
    let address = web.address("a.test").unwrap();
    let long = "x".repeat(2 * skep_testweb::limits::REQUEST_HEAD_BYTES_MAX);
    let mut stream = TcpStream::connect(address).unwrap();
    let _ = stream.write_all(format!("GET / HTTP/1.1\r\nHost: a.test\r\nX: {long}\r\n\r\n").as_bytes());
    let mut seen = Vec::new();
    let _ = stream.read_to_end(&mut seen);
    assert!(!seen.starts_with(b"HTTP/1.1 200"));

    let bytes = skep_testweb::limits::REQUEST_BODY_BYTES_MAX + 70_000;
    let mut stream = TcpStream::connect(address).unwrap();
    let _ = stream.write_all(format!("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {bytes}\r\n\r\n").as_bytes());
    let _ = stream.write_all(&vec![b'x'; bytes as usize]);
    let mut seen = Vec::new();
    let _ = stream.read_to_end(&mut seen);
    // The server closes with bytes unread, so the kernel may throw its answer away.
    assert!(seen.is_empty() || seen.starts_with(b"HTTP/1.1 413"));
    assert_eq!(web.requests().last().unwrap().method, "POST");
    lives(&web);
}

#[test]
fn hosts_are_only_where_they_are() {
    let plan = Plan::new(1)
        .host(HostPlan::generated("a.test", Shape::pages(10)))
        .host(HostPlan::generated("b.test", Shape::pages(10)).on(&[loopback(1)]));
    let web = serve(plan);
    let mut client = Client::plain(web.address("a.test").unwrap());
    assert_eq!(client.get("b.test", "/", &[]).status, 421);
    assert_eq!(client.get("unknown.test", "/", &[]).status, 421);
    assert_eq!(client.get("A.TEST:80", "/", &[]).status, 200);
    assert_eq!(client.get("ignored.test", "http://a.test/", &[]).status, 200);
    assert_eq!(client.get("a.test", "/nothing/at/all", &[]).status, 404);
}

#[test]
fn a_web_stops_with_silent_and_slow_visitors() {
    let web = web();
    let address = web.address("a.test").unwrap();
    let silent = TcpStream::connect(address).unwrap();
    let mut half = TcpStream::connect(address).unwrap();
    half.write_all(b"GET / HT").unwrap();
    let mut idle = Client::plain(address);
    idle.get("a.test", "/", &[]);
    let mut held = Client::plain(address);
    web.behave("a.test", Behaviour::hold()).unwrap();
    held.send("GET", "a.test", "/", &[]);
    while web.report().requests < 2 {
        std::thread::yield_now();
    }
    web.stop();
    assert_eq!(idle.rest(), b"");
    assert_eq!(held.receive(false).unwrap().status, 200, "what is in flight is still answered");
    assert!(TcpStream::connect(address).is_err());
    drop((silent, half));
}

#[test]
fn a_port_that_is_taken_is_named() {
    let web = web();
    let port = web.address("a.test").unwrap().port();
    let world = skep_testweb::World::build(Plan::new(1).host(HostPlan::generated("b.test", Shape::pages(1)))).unwrap();
    let refused = Web::start(world, Settings { ports: vec![port], ..Settings::default() }).err().unwrap();
    assert!(refused.to_string().contains("another program listens there"), "{refused}");
}

#[test]
fn ipv6_is_used_where_it_is() {
    let both = ["::1".parse().unwrap(), loopback(0)];
    let plan = Plan::new(1).host(HostPlan::generated("a.test", Shape::pages(3)).on(&both));
    let web = serve_with(plan, Settings::default());
    for address in &web.map().hosts[0].addresses {
        assert_eq!(Client::plain(*address).get("a.test", "/", &[]).status, 200, "{address}");
    }
    assert!(web.map().hosts[0].resolve.contains(&format!("a.test={}", web.map().hosts[0].addresses[0])));
}
