//! The name server, asked by hand over UDP and TCP: honest where hosts are, and as wrong as a host wants it.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::time::Duration;

use skep_testweb::{Behaviour, HostPlan, Hostile, Plan, Row, Shape, Web, loopback};

use crate::client::{Client, serve};

const A: u16 = 1;
const AAAA: u16 = 28;

#[derive(Debug, PartialEq)]
struct Answer {
    code: u8,
    cut: bool,
    /// Type, TTL and data of each record.
    records: Vec<(u16, u32, Vec<u8>)>,
}

impl Answer {
    fn addresses(&self) -> Vec<IpAddr> {
        let four = |data: &[u8]| <[u8; 4]>::try_from(data).ok().map(IpAddr::from);
        let six = |data: &[u8]| <[u8; 16]>::try_from(data).ok().map(IpAddr::from);
        self.records.iter().filter(|r| r.0 != 5).filter_map(|(_, _, data)| four(data).or_else(|| six(data))).collect()
    }
}

fn question(name: &str, kind: u16) -> Vec<u8> {
    let mut message = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        message.push(label.len() as u8);
        message.extend_from_slice(label.as_bytes());
    }
    message.extend_from_slice(&[0, (kind >> 8) as u8, kind as u8, 0, 1]);
    message
}

fn read(message: &[u8], asked: &[u8]) -> Option<Answer> {
    let two = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
    if message.len() < asked.len() || message[..2] != asked[..2] || message[12..asked.len()] != asked[12..] {
        return None;
    }
    let mut at = asked.len();
    let mut records = Vec::new();
    for _ in 0..two(6) {
        while message[at] != 0 && message[at] < 0xc0 {
            at += 1 + usize::from(message[at]);
        }
        at += if message[at] == 0 { 1 } else { 2 };
        let ttl = u32::from_be_bytes(message[at + 4..at + 8].try_into().unwrap());
        let end = at + 10 + usize::from(two(at + 8));
        records.push((two(at), ttl, message[at + 10..end].to_vec()));
        at = end;
    }
    assert_eq!(at, message.len(), "nothing is left over");
    Some(Answer { code: message[3] & 15, cut: message[2] & 2 != 0, records })
}

/// Sends a question over UDP; every message that comes within `patience`.
fn messages(web: &Web, name: &str, kind: u16, count: usize, patience: Duration) -> Vec<Vec<u8>> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(patience)).unwrap();
    socket.send_to(&question(name, kind), &web.map().dns).unwrap();
    let mut came = Vec::new();
    let mut message = [0; 65_535];
    while came.len() < count
        && let Ok(length) = socket.recv(&mut message)
    {
        came.push(message[..length].to_vec());
    }
    came
}

fn ask(web: &Web, name: &str, kind: u16) -> Answer {
    let came = messages(web, name, kind, 1, Duration::from_secs(60));
    read(&came[0], &question(name, kind)).expect("an answer to the question")
}

fn ask_by_tcp(web: &Web, name: &str, kind: u16) -> Answer {
    let mut stream = TcpStream::connect(&web.map().dns).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let asked = question(name, kind);
    stream.write_all(&(asked.len() as u16).to_be_bytes()).unwrap();
    stream.write_all(&asked).unwrap();
    let mut length = [0; 2];
    stream.read_exact(&mut length).unwrap();
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut message).unwrap();
    read(&message, &asked).unwrap()
}

fn web(hostile: Hostile) -> Web {
    let mut host = HostPlan::generated("a.test", Shape::pages(3)).on(&[loopback(7)]);
    host.wildcard = matches!(hostile.row, Row::PrivateAddresses);
    host.behaviour = Behaviour::hostile(hostile);
    serve(Plan::new(1).host(host).host(HostPlan::generated("b.test", Shape::pages(3)).on(&[loopback(8)])))
}

fn dns(form: &str) -> Web {
    web(Hostile::new(Row::Dns).form(form))
}

#[test]
fn honest_hosts_are_named_honestly() {
    let web = dns("servfail");
    let answer = ask(&web, "B.test", A);
    assert_eq!((answer.code, answer.addresses()), (0, vec![loopback(8)]));
    assert_eq!(answer, ask_by_tcp(&web, "b.test", A));
    assert_eq!(ask(&web, "b.test", AAAA), Answer { code: 0, cut: false, records: vec![] });
    assert_eq!(ask(&web, "b.test", 15).records, vec![], "no mail here");
    assert_eq!(ask(&web, "nobody.test", A).code, 3);
    assert_eq!(ask(&web, "below.b.test", A).code, 3);
    let proof = web.proof("b.test").unwrap();
    assert_eq!(proof.dns["a"], 3);
    assert_eq!(web.proof(skep_testweb::WEB).unwrap().dns["name-error"], 2);
}

#[test]
fn nonsense_is_not_answered_and_the_server_lives() {
    let web = dns("empty");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for length in [0, 1, 11, 12, 20, 600] {
        socket.send_to(&vec![0xff; length], &web.map().dns).unwrap();
        socket.send_to(&vec![0; length], &web.map().dns).unwrap();
    }
    drop(TcpStream::connect(&web.map().dns).unwrap());
    assert_eq!(ask(&web, "b.test", A).addresses(), [loopback(8)]);
}

#[test]
fn each_form_of_the_row_is_seen_and_proven() {
    for (form, check) in [
        ("servfail", (|web| assert_eq!(ask(web, "a.test", A).code, 2)) as fn(&Web)),
        ("refused", |web| assert_eq!(ask(web, "a.test", A).code, 5)),
        ("empty", |web| assert_eq!(ask(web, "a.test", A), Answer { code: 0, cut: false, records: vec![] })),
        ("short-ttl", |web| assert_eq!(ask(web, "a.test", A).records[0].1, 1)),
        ("cname-loop", |web| {
            let answer = ask(web, "a.test", A);
            assert_eq!(answer.records.iter().map(|record| record.0).collect::<Vec<_>>(), [5, 5]);
            assert_eq!(ask(web, "alias-loop.a.test", A).records.len(), 2);
        }),
        ("cname-chain", |web| {
            assert!(ask(web, "a.test", A).records[0].2.starts_with(b"\x07alias-1"));
            assert!(ask(web, "alias-41.a.test", A).records[0].2.starts_with(b"\x08alias-42"));
        }),
        ("many", |web| {
            assert!(ask(web, "a.test", A).cut);
            let addresses = ask_by_tcp(web, "a.test", A).addresses();
            assert_eq!((addresses.len(), addresses[0]), (200, loopback(7)));
        }),
        ("cut", |web| {
            assert!(ask(web, "a.test", A).cut);
            assert_eq!(ask_by_tcp(web, "a.test", A).addresses(), [loopback(7)]);
        }),
        ("garbage", |web| {
            let came = messages(web, "a.test", A, 1, Duration::from_secs(60));
            assert!(came[0].starts_with(&[0x12, 0x34]) && read(&came[0], &question("a.test", A)).is_none());
        }),
        ("forged", |web| {
            let came = messages(web, "a.test", A, 2, Duration::from_secs(60));
            assert_eq!(came[0][..2], [!0x12, !0x34]);
            assert_eq!(read(&came[1], &question("a.test", A)).unwrap().addresses(), [loopback(7)]);
        }),
        ("nothing", |web| assert!(messages(web, "a.test", A, 1, Duration::from_millis(50)).is_empty())),
        ("hijack", |web| assert_eq!(ask(web, "never-registered.example", A).addresses(), [loopback(7)])),
    ] {
        let web = dns(form);
        check(&web);
        assert!(web.proof("a.test").unwrap().dns[form] >= 1, "{form}");
    }
    let web = web(Hostile::new(Row::Dns).form("late").ms(30));
    assert_eq!(ask(&web, "a.test", A).addresses(), [loopback(7)]);
    assert_eq!(web.proof("a.test").unwrap().dns["late"], 1);
}

#[test]
fn names_lead_to_addresses_that_nobody_should_connect_to() {
    let web = web(Hostile::new(Row::PrivateAddresses));
    for (label, kind, address) in [
        ("loopback", A, "127.0.0.1"),
        ("private", A, "10.0.0.1"),
        ("link-local", A, "169.254.7.7"),
        ("metadata", A, "169.254.169.254"),
        ("cgnat", A, "100.64.0.1"),
        ("zero", A, "0.0.0.0"),
        ("mapped", AAAA, "::ffff:127.0.0.1"),
        ("nat64", AAAA, "64:ff9b::7f00:1"),
        ("six", AAAA, "::1"),
        ("unique-local", AAAA, "fd00::1"),
    ] {
        let answer = ask(&web, &format!("{label}.a.test"), kind);
        assert_eq!(answer.addresses(), [address.parse::<IpAddr>().unwrap()], "{label}");
    }
    assert_eq!(ask(&web, "a.test", A).addresses(), [loopback(7)]);
    assert!(ask(&web, "mixed.a.test", A).addresses().contains(&loopback(7)));
    assert!(ask(&web, "mixed.a.test", A).addresses().contains(&"169.254.169.254".parse().unwrap()));
    let changing: Vec<IpAddr> = (0..3).flat_map(|_| ask(&web, "rebinding.a.test", A).addresses()).collect();
    assert_eq!(changing, [loopback(7), "169.254.169.254".parse().unwrap(), loopback(7)]);
    let proof = web.proof("a.test").unwrap();
    assert_eq!((proof.dns["rebinding"], proof.dns["metadata"], proof.requests), (3, 1, 0));
}

#[test]
fn too_many_questions_are_refused_or_not_heard() {
    let web = web(Hostile::new(Row::DnsThrottle).form("refuse"));
    // Some second has more than twenty of them, however slow this machine is, or else nothing is to be refused.
    let codes: Vec<u8> = (0..400).map(|_| ask(&web, "a.test", A).code).collect();
    let refused = codes.iter().filter(|code| **code == 5).count() as u64;
    assert_eq!(web.proof("a.test").unwrap().dns.get("throttled").copied().unwrap_or(0), refused);
    assert!(refused > 0 && codes[0] == 0);
}

#[test]
fn a_black_hole_is_an_address_where_nobody_answers() {
    let mut host = HostPlan::generated("a.test", Shape::pages(3)).on(&[loopback(9)]);
    host.behaviour = Behaviour::hostile(Row::BlackHole);
    let web = serve(Plan::new(1).host(host));
    let four = web.address("a.test").unwrap();
    assert_eq!(ask(&web, "a.test", A).addresses(), [loopback(9)]);
    let six = ask(&web, "a.test", AAAA).addresses()[0];
    assert_eq!(web.proof("a.test").unwrap().dns["aaaa"], 1);
    let refused = TcpStream::connect_timeout(&(six, four.port()).into(), Duration::from_millis(200)).unwrap_err();
    // Where there is no IPv6 at all, the address is unreachable at once.
    let silent = refused.kind() == std::io::ErrorKind::TimedOut;
    assert!(silent || UdpSocket::bind("[::1]:0").is_err(), "{refused}");
    assert_eq!(Client::plain(four).get("a.test", "/", &[]).status, 200);
}
