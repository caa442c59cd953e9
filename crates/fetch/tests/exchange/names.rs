//! Names are asked for once, kept for a while, and what they lead to is judged when it is connected to.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

use skep_fetch::{Ask, Dns, DnsFault, Fault, Fetcher, Settings};
use skep_url::{Url, address};

use crate::server::{Server, fault, get};

/// A name server that knows these IPv4 addresses; names it does not know do not exist.
///
/// ```text
///   question  id 2 | flags 2 | counts 4 × 2 | name | type 2 | class 2
///   answer    the same with flags 8180 or 8183, then  c0 0c | type 2 | class 2 | ttl 4 | 00 04 | address 4
/// ```
struct NameServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl NameServer {
    fn start(names: &[(&str, &[&str])]) -> NameServer {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let names: HashMap<String, Vec<Ipv4Addr>> = names
            .iter()
            .map(|(name, addresses)| (name.to_string(), addresses.iter().map(|a| a.parse().unwrap()).collect()))
            .collect();
        let log = asked.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                let question = &buffer[..length];
                let (mut name, mut at) = (String::new(), 12);
                while question[at] != 0 {
                    let label = &question[at + 1..at + 1 + usize::from(question[at])];
                    name.push_str(&String::from_utf8_lossy(label).to_ascii_lowercase());
                    name.push('.');
                    at += 1 + usize::from(question[at]);
                }
                let name = name.trim_end_matches('.').to_owned();
                let is_v4 = question[at + 1..at + 3] == [0, 1];
                log.lock().unwrap().push(name.clone());
                let known = names.get(&name);
                let found: &[Ipv4Addr] = known.filter(|_| is_v4).map_or(&[], |found| found);
                let mut answer = question[..2].to_vec();
                answer.extend([0x81, if known.is_some() { 0x80 } else { 0x83 }, 0, 1]);
                answer.extend((found.len() as u16).to_be_bytes());
                answer.extend([0; 4]);
                answer.extend(&question[12..at + 5]);
                for address in found {
                    answer.extend([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 2, 88, 0, 4]);
                    answer.extend(address.octets());
                }
                let _ = socket.send_to(&answer, from);
            }
        });
        NameServer { address, asked }
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::new("skep-test/1");
        settings.name_servers = vec![self.address];
        settings
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

#[tokio::test]
async fn a_name_is_asked_for_once_and_its_answer_is_told() {
    let server = Server::always("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let names = NameServer::start(&[("www.example.org", &["127.0.0.1"])]);
    let mut settings = names.settings();
    settings.allow_private = true;
    let dns = Arc::new(Dns::new(&settings).unwrap());
    let fetcher = Fetcher::new(Arc::new(settings), dns).unwrap();
    let url = url(&format!("http://www.example.org:{}/", server.address.port()));
    let mut sessions: Vec<_> = (0..20).map(|_| fetcher.session(&url)).collect();
    let local = tokio::task::LocalSet::new();
    let tasks: Vec<_> = sessions
        .drain(..)
        .map(|mut session| {
            let url = url.clone();
            local.spawn_local(async move {
                let exchange = session.get(&Ask::new(&url)).await;
                (fault(&exchange), session.resolved().cloned().unwrap())
            })
        })
        .collect();
    local.await;
    for task in tasks {
        let (fault, resolved) = task.await.unwrap();
        assert_eq!((fault, resolved.addresses), ("", vec!["127.0.0.1".parse().unwrap()]));
        let (date, records) = resolved.text.split_once('\n').unwrap();
        assert!(date.len() == 14 && date.bytes().all(|b| b.is_ascii_digit()), "{date}");
        assert_eq!(records, "www.example.org.\t600\tIN\tA\t127.0.0.1\n");
    }
    assert_eq!(names.asked().len(), 2); // one question per family
    let mut session = fetcher.session(&url);
    session.get(&Ask::new(&url)).await;
    assert!(session.resolved().unwrap().from_cache);
    assert_eq!(names.asked().len(), 2);
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused() {
    let server = Server::always("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let names = NameServer::start(&[
        ("inside.example", &["127.0.0.1"]),
        ("cloud.example", &["169.254.169.254"]),
        ("nowhere.example", &["0.0.0.0"]),
        ("empty.example", &[]),
    ]);
    let port = server.address.port();
    for (host, wanted) in [
        ("inside.example", Fault::AddressRefused(address::Class::Loopback)),
        ("cloud.example", Fault::AddressRefused(address::Class::Metadata)),
        ("nowhere.example", Fault::NoAddress),
        ("empty.example", Fault::NoAddress),
        ("absent.example", Fault::Dns(DnsFault::NotFound)),
    ] {
        let exchange = get(names.settings(), &url(&format!("http://{host}:{port}/"))).await;
        assert_eq!(exchange.fault, Some(wanted), "{host}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn of_many_addresses_some_are_kept_and_the_dead_are_passed_by() {
    let server = Server::always("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let many: Vec<String> = (2..40).map(|n| format!("127.0.1.{n}")).collect();
    let mut many: Vec<&str> = many.iter().map(String::as_str).collect();
    many.insert(3, "127.0.0.1");
    let names = NameServer::start(&[("many.example", &many)]);
    let mut settings = names.settings();
    settings.allow_private = true;
    let dns = Arc::new(Dns::new(&settings).unwrap());
    let fetcher = Fetcher::new(Arc::new(settings), dns).unwrap();
    let url = url(&format!("http://many.example:{}/", server.address.port()));
    let mut session = fetcher.session(&url);
    let exchange = session.get(&Ask::new(&url)).await;
    assert_eq!((fault(&exchange), exchange.address), ("", Some(server.address)));
    assert_eq!(session.resolved().unwrap().addresses.len(), 16);
}

#[tokio::test]
async fn names_of_this_machine_are_never_asked_for() {
    let names = NameServer::start(&[("localhost", &["127.0.0.1"]), ("a.localhost", &["127.0.0.1"])]);
    for host in ["localhost", "a.localhost"] {
        assert_eq!(fault(&get(names.settings(), &url(&format!("http://{host}/"))).await), "address-refused");
    }
    assert!(names.asked().is_empty());
}

#[tokio::test]
async fn name_servers_that_do_not_answer() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut settings = Settings::new("skep-test/1");
    settings.name_servers = vec![silent.local_addr().unwrap()];
    settings.limits.lookup_wait_ms = 100;
    let exchange = get(settings, &url("http://a.example/")).await;
    assert_eq!(exchange.fault, Some(Fault::Dns(DnsFault::Timeout)));
}
