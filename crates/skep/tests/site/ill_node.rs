//! A node that wishes contributors ill.
#![allow(dead_code, missing_docs, reason = "each test takes what it needs")]

use skep_archive::{Identity, system_clock};
use skep_contribute::envelope;
use skep_contribute::message::{Answer, Bundle, Fetched, Request as Asked, Rules, Task};
use skep_schedule::Pace;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A node that wishes contributors ill: says whatever it is told to say.
pub struct IllNode {
    pub address: String,
    /// What contributors brought, by bundle.
    brought: Arc<Mutex<BTreeMap<u64, Vec<Fetched>>>>,
}

/// What it says to a request that comes so often, and at which time it says so.
pub type Says = Box<dyn Fn(&Asked, usize) -> (Answer, i64) + Send + Sync>;

impl IllNode {
    /// `cut`: how many bytes of the first answers are sent, before the connection ends.
    pub fn begin(cut: &'static [usize], says: Says) -> IllNode {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let brought: Arc<Mutex<BTreeMap<u64, Vec<Fetched>>>> = Arc::default();
        let (kept, says) = (brought.clone(), Arc::new(says));
        let counts: Arc<Mutex<(usize, BTreeMap<&'static str, usize>)>> = Arc::default();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, says, counts) = (kept.clone(), says.clone(), counts.clone());
                std::thread::spawn(move || while IllNode::answer(&stream, cut, &kept, &says, &counts).is_some() {});
            }
        });
        IllNode { address, brought }
    }

    /// One message on a connection; `None` when it is over.
    fn answer(
        mut stream: &TcpStream,
        cut: &[usize],
        kept: &Mutex<BTreeMap<u64, Vec<Fetched>>>,
        says: &Says,
        counts: &Mutex<(usize, BTreeMap<&'static str, usize>)>,
    ) -> Option<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).ok()?;
            head.push(byte[0]);
        }
        let text = String::from_utf8(head).ok()?.to_ascii_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok())?;
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        let identity = Identity::from_secret([66; 32]);
        // It answers also for a node that is another one.
        let opened = envelope::open_requests(&body, &identity.public());
        let opened = opened.or_else(|_| envelope::open_requests(&body, &BEYOND)).ok()?;
        let (mut answers, mut time_ms) = (Vec::new(), system_clock());
        for request in &opened.message {
            let name = match request {
                Asked::Hello { .. } => "hello",
                Asked::Ask { .. } => "ask",
                _ => "other",
            };
            if let Asked::Results { bundle, results } = request {
                kept.lock().expect("no panic").insert(*bundle, results.clone());
            }
            let number = {
                let mut counts = counts.lock().expect("no panic");
                let number = counts.1.entry(name).or_default();
                *number += 1;
                *number
            };
            let (answer, at_ms) = says(request, number);
            answers.push(answer);
            time_ms = at_ms;
        }
        let sealed = envelope::seal_answers(&answers, &opened.signature, &identity, time_ms);
        let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", sealed.len()).into_bytes();
        answer.extend(sealed);
        let message = {
            let mut counts = counts.lock().expect("no panic");
            counts.0 += 1;
            counts.0 - 1
        };
        match cut.get(message) {
            Some(bytes) => {
                stream.write_all(&answer[..answer.len().min(*bytes)]).ok()?;
                stream.shutdown(std::net::Shutdown::Both).ok()
            }
            None => stream.write_all(&answer).ok(),
        }
    }

    pub fn brought(&self) -> BTreeMap<u64, Vec<Fetched>> {
        self.brought.lock().expect("no panic").clone()
    }
}

/// The key of a node for which an ill one answers.
pub const BEYOND: [u8; 32] = [7; 32];

pub fn bundle(id: u64, host: &str, urls: &[&str]) -> Bundle {
    Bundle {
        id,
        host: host.to_owned(),
        urls: urls.iter().map(|url| Task { url: (*url).to_owned(), ..Task::default() }).collect(),
        pace: Pace::None,
        robots: Some(Rules::default()),
        lease_ms: 60_000,
        nonce: [1; 16],
    }
}
