//! A receiver of webhooks on a real socket, which answers as the test says and keeps what it took.
#![allow(dead_code, missing_docs, reason = "each test takes what it needs")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Came {
    pub line: String,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

/// What becomes of a request.
pub enum Answer {
    /// A status, and more header lines.
    Status(u16, &'static str),
    /// Nothing, and the connection ends.
    Break,
    /// Nothing, and it stays open until the receiver ends.
    Stall,
}

pub struct Receiver {
    pub address: SocketAddr,
    taken: Arc<Mutex<Vec<Came>>>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// `answer` says what becomes of each request, by its number; what is answered with 2xx is kept.
    pub fn start(mut answer: impl FnMut(usize, &Came) -> Answer + Send + 'static) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let taken = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&taken);
        let thread = std::thread::spawn(move || {
            let (mut count, mut stalled) = (0, Vec::new());
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { break };
                let Some(came) = read(&mut stream) else { break };
                if came.line.starts_with("END ") {
                    break;
                }
                match answer(count, &came) {
                    Answer::Status(status, more) => {
                        if (200..300).contains(&status) {
                            kept.lock().unwrap().push(came);
                        }
                        let _gone = write!(stream, "HTTP/1.1 {status} X\r\n{more}Content-Length: 2\r\n\r\nok");
                    }
                    Answer::Break => drop(stream),
                    Answer::Stall => stalled.push(stream),
                }
                count += 1;
            }
        });
        Receiver { address, taken, thread: Some(thread) }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn taken(&self) -> Vec<Came> {
        self.taken.lock().unwrap().clone()
    }

    /// Keys of all events that were taken, in their order.
    pub fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        for came in self.taken() {
            let events: Vec<serde_json::Value> = serde_json::from_slice(&came.body).expect("an array");
            keys.extend(events.iter().map(|event| event["key"].as_str().expect("a key").to_owned()));
        }
        keys
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Ok(mut stream) = TcpStream::connect(self.address) {
            let _told = stream.write_all(b"END / HTTP/1.1\r\n\r\n");
        }
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

fn read(stream: &mut TcpStream) -> Option<Came> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut headers = HashMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Came { line: line.trim().to_owned(), headers, body })
}
