//! The least that an archiving crawler must do, for `cargo xtask bench crawl`: fetches a list that is known beforehand over 64
//! connections that stay open, hashes each answer, reads its links, compresses it, and writes nothing. What a crawler costs beyond
//! this is its own: finding out what to fetch, records, index, registry, syncing.
//!
//! ```text
//! bareloop ADDR:PORT HOST LIST        LIST: one path a line; each is asked for once
//! ```
//!
//! The parts are ours (page reader, SHA-1, libdeflate at the level of a crawl), so that the parts are not what is compared. The
//! client knows no more of HTTP than this server needs, which is less than any crawler can do with.

use skep_page::Input;
use skep_warc::coding::{self, Bounds};
use skep_warc::deflate::{Deflater, Level, crc32};
use skep_warc::digest::{Algorithm, Hasher};
use skep_warc::http::{Head, Parsed};
use std::cell::RefCell;
use std::io::Read;
use std::process::ExitCode;
use std::rc::Rc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CONNECTIONS: usize = 64;

/// As in a crawl: answers that come compressed are wrapped as they are, others are compressed at this level.
const LEVEL: u8 = 1;

/// What is shared by the connections; one thread, so nothing is locked.
struct Loop {
    host: String,
    paths: RefCell<std::vec::IntoIter<String>>,
    deflater: RefCell<Deflater>,
    done: RefCell<Done>,
}

#[derive(Default)]
struct Done {
    answers: u64,
    links: u64,
    wire_bytes: u64,
    packed_bytes: u64,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, host, list] = &words[..] else {
        eprintln!("bareloop ADDR:PORT HOST LIST");
        return ExitCode::from(2);
    };
    match run(address, host, list) {
        Ok(done) => {
            let Done { answers, links, wire_bytes, packed_bytes } = done;
            println!("answers={answers} links={links} wire_bytes={wire_bytes} packed_bytes={packed_bytes}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(address: &str, host: &str, list: &str) -> std::io::Result<Done> {
    let paths: Vec<String> = std::fs::read_to_string(list)?.lines().map(str::to_owned).collect();
    let shared = Rc::new(Loop {
        host: host.to_owned(),
        paths: RefCell::new(paths.into_iter()),
        deflater: RefCell::new(Deflater::new(Level::new(LEVEL))),
        done: RefCell::default(),
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, async {
        let mut running = Vec::new();
        for _ in 0..CONNECTIONS {
            running.push(tokio::task::spawn_local(connection(address.to_owned(), Rc::clone(&shared))));
        }
        for one in running {
            one.await??;
        }
        Ok::<(), std::io::Error>(())
    })?;
    Ok(shared.done.take())
}

/// One connection, until the list is used up.
async fn connection(address: String, shared: Rc<Loop>) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(&address).await?;
    stream.set_nodelay(true)?;
    let (mut request, mut answer, mut head) = (String::new(), Vec::with_capacity(64 << 10), Head::new());
    let (mut body, mut packed) = (Vec::new(), Vec::new());
    loop {
        let Some(path) = shared.paths.borrow_mut().next() else { return Ok(()) };
        request.clear();
        let host = &shared.host;
        request.push_str(&format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: bareloop\r\nAccept-Encoding: gzip\r\n\r\n"
        ));
        stream.write_all(request.as_bytes()).await?;
        answer.clear();
        let body_at = loop {
            if stream.read_buf(&mut answer).await? == 0 {
                return Err(odd(&path, "the connection ended"));
            }
            if let Parsed::Complete { body } = head.parse_response(&answer, false) {
                break body;
            }
        };
        let length = head.content_length().ok_or_else(|| odd(&path, "no Content-Length"))? as usize;
        while answer.len() < body_at + length {
            if stream.read_buf(&mut answer).await? == 0 {
                return Err(odd(&path, "the connection ended within a body"));
            }
        }
        let found = links(&shared.host, &path, &head, &answer[body_at..], &mut body)?;
        hash(&answer, &answer[body_at..]);
        packed.clear();
        if head.header("content-encoding").is_some() {
            packed.extend_from_slice(&answer);
        } else {
            shared.deflater.borrow_mut().compress(&answer, &mut packed);
        }
        std::hint::black_box(crc32(0, &answer));
        let mut done = shared.done.borrow_mut();
        done.answers += 1;
        done.links += found;
        done.wire_bytes += answer.len() as u64;
        done.packed_bytes += packed.len() as u64;
    }
}

/// Block and payload, as a record has them.
fn hash(block: &[u8], payload: &[u8]) {
    let (mut one, mut other) = (Hasher::new(Algorithm::Sha1), Hasher::new(Algorithm::Sha1));
    Hasher::update_both(&mut one, block, &mut other, payload);
    std::hint::black_box((one.finish(), other.finish()));
}

fn links(host: &str, path: &str, head: &Head, sent: &[u8], body: &mut Vec<u8>) -> std::io::Result<u64> {
    let url = format!("http://{host}{path}").parse().map_err(|_| odd(path, "no URL"))?;
    let body = match head.header("content-encoding") {
        None => sent,
        Some(_) => {
            body.clear();
            coding::decode(head, sent, Bounds::DEFAULT).read_to_end(body)?;
            body
        }
    };
    let page = skep_page::read(&Input { url: &url, head: Some(head), body });
    Ok(std::hint::black_box(page).links.len() as u64)
}

fn odd(path: &str, what: &str) -> std::io::Error {
    std::io::Error::other(format!("{path}: {what}"))
}
