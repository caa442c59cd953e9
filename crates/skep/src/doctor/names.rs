//! Asks each name server for a few names and measures how long it takes. A question fits in one datagram:
//!
//! ```text
//!   | id 2 | flags 2: 0100, recursion wanted | 0001 | 0000 | 0000 | 0000 | labels … 00 | 0001 A | 0001 IN |
//! ```
//! and of an answer only its first twelve bytes are looked at: id, flags with the code, and how many answers follow.

use super::Finding;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

pub const PORT: u16 = 53;
/// Names that have been there for decades.
const KNOWN: [&str; 8] = [
    "example.org",
    "example.com",
    "archive.org",
    "debian.org",
    "ietf.org",
    "kernel.org",
    "python.org",
    "wikipedia.org",
];
/// A name that cannot be (RFC 6761): whoever finds it makes answers up.
const IMPOSSIBLE: &str = "no-such-name.invalid";
/// All questions to a server together.
const WAIT: Duration = Duration::from_secs(3);
/// Look-ups longer than this slow a crawl of many hosts down.
const SLOW: Duration = Duration::from_millis(200);
/// Name servers that are asked.
const SERVERS_MAX: usize = 4;
const SYSTEM: &str = "/etc/resolv.conf";

/// One finding for each server.
pub fn findings(given: Vec<SocketAddr>) -> Vec<Finding> {
    let servers =
        if given.is_empty() { servers_in(&std::fs::read_to_string(SYSTEM).unwrap_or_default()) } else { given };
    if servers.is_empty() {
        let advice = format!("write `nameserver ADDRESS` into {SYSTEM}, or crawl with --dns ADDRESS");
        return vec![Finding::change("name server", format!("none in {SYSTEM}"), advice)];
    }
    servers.into_iter().take(SERVERS_MAX).map(|server| judge(server, &ask(server, WAIT))).collect()
}

/// The `nameserver` lines. A zone after an IPv6 address names an interface and is no part of it.
fn servers_in(file: &str) -> Vec<SocketAddr> {
    let address = |line: &str| {
        let mut words = line.split_whitespace();
        (words.next()? == "nameserver").then_some(())?;
        words.next()?.split('%').next()?.parse::<IpAddr>().ok()
    };
    file.lines().filter_map(address).map(|ip| SocketAddr::new(ip, PORT)).collect()
}

/// What a server said.
#[derive(Debug, Default, PartialEq, Eq)]
struct Heard {
    /// How long each known name took, quickest first.
    found: Vec<Duration>,
    /// Names to which it answered with a code instead of an address.
    refused: usize,
    /// It found the impossible name.
    makes_up: bool,
    /// It could not even be asked.
    error: Option<String>,
}

fn ask(server: SocketAddr, wait: Duration) -> Heard {
    let mut heard = Heard::default();
    if let Err(error) = try_ask(server, wait, &mut heard) {
        heard.error = Some(error.to_string());
    }
    heard.found.sort();
    heard
}

/// All questions at once, then whatever comes back in time.
fn try_ask(server: SocketAddr, wait: Duration, heard: &mut Heard) -> std::io::Result<()> {
    let any: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    let names = || KNOWN.iter().copied().chain([IMPOSSIBLE]);
    let began = Instant::now();
    for (id, name) in (0..).zip(names()) {
        socket.send(&question(id, name))?;
    }
    let mut waiting: Vec<u16> = (0..).zip(names()).map(|(id, _)| id).collect();
    let mut datagram = [0; 1_500];
    while !waiting.is_empty() {
        let Some(left) = wait.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) else { break };
        socket.set_read_timeout(Some(left))?;
        let length = match socket.recv(&mut datagram) {
            Ok(length) => length,
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                break;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let Some((id, code, answers)) = answer(&datagram[..length]) else { continue };
        let Some(at) = waiting.iter().position(|waiting| *waiting == id) else { continue };
        waiting.swap_remove(at);
        let has_address = code == 0 && answers > 0;
        match usize::from(id) < KNOWN.len() {
            true if has_address => heard.found.push(began.elapsed()),
            true => heard.refused += 1,
            false => heard.makes_up |= has_address,
        }
    }
    Ok(())
}

fn question(id: u16, name: &str) -> Vec<u8> {
    let mut out = id.to_be_bytes().to_vec();
    out.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        out.push(label.len() as u8);
        out.extend(label.bytes());
    }
    out.extend([0, 0, 1, 0, 1]);
    out
}

/// Id, code and number of answers; `None` for what is no answer.
fn answer(datagram: &[u8]) -> Option<(u16, u8, u16)> {
    let head: &[u8; 12] = datagram.first_chunk()?;
    let pair = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    (head[2] & 0x80 != 0).then(|| (pair(0), head[3] & 0x0f, pair(6)))
}

fn judge(server: SocketAddr, heard: &Heard) -> Finding {
    const WHAT: &str = "name server";
    let other = "another one: `nameserver ADDRESS` in /etc/resolv.conf, or --dns ADDRESS for one crawl";
    let shown = if server.port() == PORT { server.ip().to_string() } else { server.to_string() };
    let Some(middle) = heard.found.get(heard.found.len() / 2) else {
        let why = heard.error.as_deref().unwrap_or(if heard.refused > 0 {
            "it finds none of the names"
        } else {
            "no answer"
        });
        return Finding::change(WHAT, format!("{shown}: {why}"), format!("check the network, or use {other}"));
    };
    let value = format!("{shown}: {} of {} names, {} ms", heard.found.len(), KNOWN.len(), middle.as_millis());
    if heard.makes_up {
        let advice = format!("it answers for names that do not exist, so dead hosts would look alive; use {other}");
        return Finding::change(WHAT, value, advice);
    }
    if heard.found.len() < KNOWN.len() {
        let advice = format!(
            "it leaves questions unanswered when several come at once; use {other}; best is a resolver on this machine"
        );
        return Finding::consider(WHAT, value, advice);
    }
    if *middle > SLOW {
        let advice = "a crawl of many hosts waits for it; a caching resolver on this machine (unbound, systemd-resolved) is quicker";
        return Finding::consider(WHAT, value, advice);
    }
    Finding::fine(WHAT, value)
}

#[cfg(test)]
mod tests {
    use super::super::Verdict::{Change, Consider, Fine};
    use super::*;

    #[test]
    fn servers_are_read_from_the_systems_file() {
        let file = "# made by hand\nsearch example.org\nnameserver 192.0.2.1\n nameserver  fe80::1%eth0 # comment\nnameserver nonsense\nnameserver\n";
        assert_eq!(servers_in(file), ["192.0.2.1:53".parse().unwrap(), "[fe80::1]:53".parse().unwrap()]);
    }

    #[test]
    fn a_question_is_a_question_and_only_an_answer_is_an_answer() {
        let asked = question(0x0102, "a.example");
        assert_eq!(asked, *b"\x01\x02\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x07example\x00\x00\x01\x00\x01");
        assert_eq!(answer(&asked), None, "a question is no answer");
        assert_eq!(answer(b"\x01\x02\x81\x83\x00\x01\x00\x02\x00\x00\x00\x00"), Some((0x0102, 3, 2)));
        assert_eq!(answer(b"short"), None);
    }

    #[test]
    fn servers_are_judged_by_what_they_answer() {
        let server: SocketAddr = "192.0.2.1:53".parse().unwrap();
        let heard = |ms: u64, found: usize| Heard { found: vec![Duration::from_millis(ms); found], ..Heard::default() };
        assert_eq!(judge(server, &heard(20, 8)), Finding::fine("name server", "192.0.2.1: 8 of 8 names, 20 ms"));
        assert_eq!(judge(server, &heard(20, 5)).verdict, Consider);
        assert_eq!(judge(server, &heard(900, 8)).verdict, Consider);
        assert_eq!(judge(server, &Heard { makes_up: true, ..heard(20, 8) }).verdict, Change);
        assert!(judge(server, &Heard::default()).value.ends_with("no answer"));
        assert_eq!(judge(server, &heard(20, 8)).verdict, Fine);
    }

    #[test]
    fn silence_ends_in_time_and_a_closed_port_at_once() {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(ask(silent.local_addr().unwrap(), Duration::from_millis(20)), Heard::default());
        let closed = silent.local_addr().unwrap();
        drop(silent);
        assert!(ask(closed, WAIT).found.is_empty());
    }
}
