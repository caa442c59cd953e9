//! A server that says, byte for byte, what a test wants said.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// What is said to a request for a path.
pub struct Said {
    pub bytes: Vec<u8>,
    /// The connection ends with it.
    pub close: bool,
}

/// Listens until the process ends; each connection has a thread. The answer is told the path.
pub fn start(answer: impl Fn(&str) -> Said + Send + Sync + 'static) -> SocketAddr {
    start_hearing(move |head| answer(head.split(' ').nth(1).unwrap_or_default()))
}

/// The same; the answer is told the whole head of the request.
pub fn start_hearing(answer: impl Fn(&str) -> Said + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || serve(stream, &*answer));
        }
    });
    address
}

fn serve(mut stream: TcpStream, answer: &(impl Fn(&str) -> Said + ?Sized)) {
    while let Some(head) = request(&mut stream) {
        let said = answer(&head);
        if stream.write_all(&said.bytes).is_err() {
            return;
        }
        if said.close {
            let _ = stream.shutdown(Shutdown::Write);
            let mut rest = [0; 1024];
            while matches!(stream.read(&mut rest), Ok(1..)) {}
            return;
        }
    }
}

/// The head of the next request.
fn request(stream: &mut TcpStream) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if !matches!(stream.read(&mut byte), Ok(1)) {
            return None;
        }
        head.push(byte[0]);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// A page that links to these paths.
pub fn index(paths: impl IntoIterator<Item = String>) -> Said {
    let links: String = paths.into_iter().map(|path| format!("<a href=\"{path}\">{path}</a>\n")).collect();
    let page = format!("<!DOCTYPE html><title>All of them</title>\n{links}");
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", page.len());
    Said { bytes: [head, page].concat().into_bytes(), close: false }
}

/// Nothing there.
pub fn missing() -> Said {
    Said { bytes: b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(), close: false }
}
