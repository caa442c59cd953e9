//! An archive made on the spot, the portal that serves it, and a client that sends exactly what it is told to.
#![allow(dead_code, missing_docs)]

use skep_archive::{Archive, OpenOptions};
use skep_portal::{Serving, Settings, serve};
use skep_warc::digest::{Algorithm, Digest};
use skep_warc::write::{Compression, Encoder, Record, RecordId, Revisit};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// A WARC file being written.
pub struct Warc {
    encoder: Encoder,
    pub bytes: Vec<u8>,
    pub offsets: Vec<usize>,
}

impl Warc {
    pub fn new() -> Warc {
        Warc { encoder: Encoder::new(Compression::GZIP), bytes: Vec::new(), offsets: Vec::new() }
    }

    fn id(&self, what: u8) -> RecordId {
        let mut random = [what; 16];
        random[8..].copy_from_slice(&(self.bytes.len() as u64).to_be_bytes());
        RecordId::uuid(random)
    }

    fn put(mut self, record: &Record<'_>) -> Warc {
        self.offsets.push(self.bytes.len());
        record.encode(&mut self.encoder, &mut self.bytes).expect("a good record");
        self
    }

    /// A response, as it came.
    pub fn answer(self, url: &str, time: &str, message: &[u8]) -> Warc {
        let record = Record::response(&self.id(2), time, url, message);
        self.put(&record)
    }

    /// A response of a type.
    pub fn page(self, url: &str, time: &str, mime: &str, body: &[u8]) -> Warc {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nContent-Length: {}\r\nX-Made: then\r\n\r\n",
            body.len()
        );
        self.answer(url, time, &[head.as_bytes(), body].concat())
    }

    /// The body that came is one that was stored before, perhaps where `refers` says.
    pub fn same(self, url: &str, time: &str, body: &[u8], refers: Option<(&str, &str)>) -> Warc {
        let why = Revisit::IdenticalPayload(Digest::of(Algorithm::Sha1, body));
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Visit: again\r\n\r\n";
        let mut record = Record::revisit(&self.id(6), time, url, why, head.as_slice());
        if let Some((url, time)) = refers {
            record = record.refers_to_target_uri(url).refers_to_date(time);
        }
        self.put(&record)
    }

    /// The server said that nothing changed since then.
    pub fn not_modified(self, url: &str, time: &str, since: &str) -> Warc {
        let head = b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n";
        let record = Record::revisit(&self.id(7), time, url, Revisit::ServerNotModified(None), head.as_slice())
            .refers_to_target_uri(url)
            .refers_to_date(since);
        self.put(&record)
    }

    pub fn resource(self, url: &str, time: &str, mime: &str, bytes: &[u8]) -> Warc {
        let record = Record::resource(&self.id(5), time, url, mime, bytes);
        self.put(&record)
    }

    pub fn private(self, url: &str, time: &str, body: &[u8]) -> Warc {
        let message = [b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n".as_slice(), body].concat();
        let record =
            Record::response(&self.id(8), time, url, message.as_slice()).field(skep_archive::PRIVATE, "cookie");
        self.put(&record)
    }
}

pub fn sha1(body: &[u8]) -> String {
    Digest::of(Algorithm::Sha1, body).base32()
}

/// An archive with a portal in front of it.
pub struct Site {
    pub folder: TempDir,
    pub archive: Arc<Archive>,
    pub serving: Serving,
    pub log: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// Files as (collection, name, bytes), served as usual.
    pub fn new(files: &[(&str, &str, Vec<u8>)]) -> Site {
        Site::with(files, |settings| settings)
    }

    pub fn with(files: &[(&str, &str, Vec<u8>)], change: impl FnOnce(Settings) -> Settings) -> Site {
        let folder = tempfile::tempdir().expect("a folder");
        let options = OpenOptions { disk_reserve_bytes: 0, ..OpenOptions::create() };
        let archive = Arc::new(Archive::open(&folder.path().join("archive"), options).expect("an archive"));
        for (collection, name, bytes) in files {
            let path = folder.path().join(collection).join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(&path, bytes).expect("a file");
            add(&archive, collection, &path);
        }
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = log.clone();
        let mut settings = Settings::at(SocketAddr::from(([127, 0, 0, 1], 0)));
        settings.log = Some(Arc::new(move |line: &str| lines.lock().unwrap().push(line.to_owned())));
        let serving = serve(archive.clone(), change(settings)).expect("a portal");
        Site { folder, archive, serving, log }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn get(&self, target: &str) -> Got {
        self.ask("GET", target, &[], b"")
    }

    /// Where archived pages are shown.
    pub fn replay(&self, target: &str) -> Got {
        let host = format!("replay.localhost:{}", self.serving.address().port());
        self.ask("GET", target, &[("Host", &host)], b"")
    }

    pub fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
        ask(self.serving.address(), method, target, headers, body)
    }
}

pub fn add(archive: &Archive, collection: &str, path: &Path) {
    let mut additions = archive.additions().expect("additions");
    additions.add(path, collection, false, &mut |_| ()).expect("a file that can be added");
    additions.commit().expect("a commit");
}

/// What came back.
pub struct Got {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The body ended where its head said that it would.
    pub whole: bool,
}

impl Got {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn is(self, status: u16) -> Got {
        assert_eq!(self.status, status, "{:?}\n{}", self.headers, self.text());
        self
    }

    #[track_caller]
    pub fn leads_to(&self, status: u16, location: &str) {
        assert_eq!((self.status, self.header("location")), (status, Some(location)), "{}", self.text());
    }
}

pub fn ask(address: SocketAddr, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
    let stream = TcpStream::connect(address).expect("a connection");
    converse(stream, &address.to_string(), method, target, headers, body)
}

/// Sends a request over any stream and reads the answer to its end.
pub fn converse(
    mut stream: impl Read + Write,
    host: &str,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Got {
    let mut request = format!("{method} {target} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        request.push_str(&format!("Host: {host}\r\n"));
    }
    headers.iter().for_each(|(name, value)| request.push_str(&format!("{name}: {value}\r\n")));
    if !body.is_empty() || method == "POST" {
        request.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).expect("a request is sent");
    stream.write_all(body).expect("a body is sent");
    let mut bytes = Vec::new();
    // A connection that is cut ends what there is.
    let cut = stream.read_to_end(&mut bytes).is_err();
    parse(&bytes, method == "HEAD", cut)
}

fn parse(bytes: &[u8], head_only: bool, cut: bool) -> Got {
    let end = bytes
        .windows(4)
        .position(|w| w == b"\r\n\r\n")
        .unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(bytes)));
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<(String, String)> =
        lines.filter_map(|line| line.split_once(':')).map(|(n, v)| (n.to_owned(), v.trim().to_owned())).collect();
    let rest = &bytes[end + 4..];
    let of = |name: &str| headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.clone());
    let (body, whole) = match (of("transfer-encoding"), of("content-length")) {
        _ if head_only => (rest.to_vec(), rest.is_empty()),
        (Some(_), _) => unchunked(rest),
        (None, Some(length)) => (rest.to_vec(), rest.len() == length.parse::<usize>().unwrap()),
        (None, None) => (rest.to_vec(), !cut),
    };
    Got { status, headers, body, whole }
}

fn unchunked(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap().trim(), 16).unwrap();
        rest = &rest[end + 2..];
        if size == 0 {
            return (body, true);
        }
        let Some(chunk) = rest.get(..size) else { break };
        body.extend_from_slice(chunk);
        rest = rest.get(size + 2..).unwrap_or_default();
    }
    (body, false)
}
