//! The sites of the demo over HTTP, on a loopback address: small, and strict about what it reads.

use super::sites::{self, MOMENT_MS, SITES};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a request.
const REQUEST_BYTES_MAX: u64 = 16 << 10;
/// Requests answered at once; more than that are turned away.
const ANSWERING_MAX: u32 = 64;
/// Whoever says nothing for so long is not answered.
const PATIENCE: Duration = Duration::from_secs(5);

/// The sites, as long as this lives.
pub struct Server {
    port: u16,
    ending: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    /// Begins at the first moment of the sites.
    pub fn start() -> std::io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let ending = Arc::new(AtomicBool::new(false));
        let (ends, began) = (ending.clone(), Instant::now());
        let serve = move || {
            let answering = Arc::new(AtomicU32::new(0));
            for stream in listener.incoming() {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(stream), true) = (stream, answering.load(Ordering::Relaxed) < ANSWERING_MAX) else { continue };
                answering.fetch_add(1, Ordering::Relaxed);
                let counted = Arc::clone(&answering);
                let answer = move || {
                    // Whoever went away needs no answer.
                    let _gone = answer(&stream, began.elapsed().as_millis() as u64 / MOMENT_MS);
                    counted.fetch_sub(1, Ordering::Relaxed);
                };
                if std::thread::Builder::new().name("skep-demo-answer".into()).spawn(answer).is_err() {
                    answering.fetch_sub(1, Ordering::Relaxed);
                }
            }
        };
        let thread = std::thread::Builder::new().name("skep-demo".into()).spawn(serve)?;
        Ok(Server { port, ending, thread: Some(thread) })
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        // It waits for the next visitor: this is the last.
        let _rung = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        let _nothing_to_report = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// One request, one answer.
fn answer(stream: &TcpStream, moment: u64) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let Some(asked) = read(stream)? else {
        return write(stream, 400, "", &[], false);
    };
    if !SITES.contains(&asked.host.as_str()) {
        return write(stream, 421, "", &[], false);
    }
    let shown = sites::show(&asked.host, &asked.path, moment);
    let mut digest = DefaultHasher::new();
    shown.body.hash(&mut digest);
    let etag = format!("\"{:016x}\"", digest.finish());
    match shown.status == 200 && asked.knows.as_deref() == Some(&etag) {
        true => write(stream, 304, &etag, &[], false),
        false => write(stream, shown.status, &etag, shown.body.as_bytes(), asked.head_only),
    }
}

struct Asked {
    host: String,
    path: String,
    knows: Option<String>,
    head_only: bool,
}

/// `None` for what is no request.
fn read(stream: &TcpStream) -> std::io::Result<Option<Asked>> {
    let mut lines = BufReader::new(stream.take(REQUEST_BYTES_MAX));
    let mut line = String::new();
    lines.read_line(&mut line)?;
    let mut words = line.split_ascii_whitespace();
    let (Some(method @ ("GET" | "HEAD")), Some(target), Some(_)) = (words.next(), words.next(), words.next()) else {
        return Ok(None);
    };
    let path = target.split('?').next().unwrap_or_default().to_owned();
    let mut asked = Asked { host: String::new(), path, knows: None, head_only: method == "HEAD" };
    loop {
        line.clear();
        if lines.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let Some((name, value)) = line.split_once(':') else { break };
        let value = value.trim();
        if name.eq_ignore_ascii_case("host") {
            asked.host = value.split(':').next().unwrap_or_default().to_ascii_lowercase();
        } else if name.eq_ignore_ascii_case("if-none-match") {
            asked.knows = Some(value.to_owned());
        }
    }
    Ok(Some(asked))
}

fn write(mut stream: &TcpStream, status: u16, etag: &str, body: &[u8], head_only: bool) -> std::io::Result<()> {
    let mut answer = format!("HTTP/1.1 {status} {}\r\nConnection: close\r\n", reason(status)).into_bytes();
    if !etag.is_empty() {
        answer.extend_from_slice(format!("ETag: {etag}\r\n").as_bytes());
    }
    if status != 304 {
        let media = if body.starts_with(b"<") { "text/html; charset=utf-8" } else { "text/plain; charset=utf-8" };
        answer.extend_from_slice(format!("Content-Type: {media}\r\nContent-Length: {}\r\n", body.len()).as_bytes());
    }
    answer.extend_from_slice(b"\r\n");
    if !head_only {
        answer.extend_from_slice(body);
    }
    stream.write_all(&answer)
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        304 => "Not Modified",
        404 => "Not Found",
        421 => "Misdirected Request",
        _ => "Bad Request",
    }
}
