//! The least that an archiving crawler must do, for `cargo xtask bench crawl`: fetches a list that is known beforehand over 64
//! connections that stay open, hashes each answer, reads its links, compresses it, and writes nothing. What a crawler costs beyond
//! this is its own: finding out what to fetch, records, index, registry, syncing.
//!
//! ```text
//! bareloop ADDR:PORT HOST LIST [ours|field]        LIST: one path a line; each is asked for once
//! ```
//!
//! `ours` reads links with our page reader, so that what is compared is not the parts; `field`, which is there if it is built with the
//! feature of that name, with lol_html and url, the usual choice. SHA-1 and libdeflate at the level of a crawl are in both. The
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

/// How many links a page has; all of them are made whole.
type Reader = fn(&str, &Head, &[u8]) -> Option<u64>;

/// What is shared by the connections; one thread, so nothing is locked.
struct Loop {
    host: String,
    reader: Reader,
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
    let (address, host, list, reader) = match &words[..] {
        [address, host, list] => (address, host, list, "ours"),
        [address, host, list, reader] => (address, host, list, reader.as_str()),
        _ => {
            eprintln!("bareloop ADDR:PORT HOST LIST [ours|field]");
            return ExitCode::from(2);
        }
    };
    let reader: Reader = match reader {
        "ours" => ours,
        #[cfg(feature = "field")]
        "field" => field,
        _ => {
            eprintln!("there is no reader {reader}; `field` needs --features field when this is built");
            return ExitCode::from(2);
        }
    };
    match run(address, host, list, reader) {
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

fn run(address: &str, host: &str, list: &str, reader: Reader) -> std::io::Result<Done> {
    let paths: Vec<String> = std::fs::read_to_string(list)?.lines().map(str::to_owned).collect();
    let shared = Rc::new(Loop {
        host: host.to_owned(),
        reader,
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
        let found = links(&shared, &path, &head, &answer[body_at..], &mut body)?;
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

fn links(shared: &Loop, path: &str, head: &Head, sent: &[u8], body: &mut Vec<u8>) -> std::io::Result<u64> {
    let body = match head.header("content-encoding") {
        None => sent,
        Some(_) => {
            body.clear();
            coding::decode(head, sent, Bounds::DEFAULT).read_to_end(body)?;
            body
        }
    };
    (shared.reader)(&format!("http://{}{path}", shared.host), head, body).ok_or_else(|| odd(path, "not readable"))
}

fn ours(url: &str, head: &Head, body: &[u8]) -> Option<u64> {
    let page = skep_page::read(&Input { url: &url.parse().ok()?, head: Some(head), body });
    Some(std::hint::black_box(page).links.len() as u64)
}

#[cfg(feature = "field")]
fn field(url: &str, head: &Head, body: &[u8]) -> Option<u64> {
    use lol_html::{HtmlRewriter, Settings, element};
    if head.media_type() != Some(b"text/html") {
        return Some(0);
    }
    let base = url::Url::parse(url).ok()?;
    let found = RefCell::new(Vec::new());
    let keep = |value: Option<String>| {
        if let Some(Ok(mut link)) = value.map(|value| base.join(&value)) {
            link.set_fragment(None);
            found.borrow_mut().push(link);
        }
    };
    let handler = element!("a, area, link, img, script, iframe, source, object", |element| {
        for name in ["href", "src", "data"] {
            keep(element.get_attribute(name));
        }
        Ok(())
    });
    let settings = Settings::new().append_element_content_handler(handler);
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| ());
    rewriter.write(body).ok()?;
    rewriter.end().ok()?;
    Some(std::hint::black_box(found).borrow().len() as u64)
}

fn odd(path: &str, what: &str) -> std::io::Error {
    std::io::Error::other(format!("{path}: {what}"))
}
