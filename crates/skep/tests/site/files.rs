//! Files to add: written with the project's own writer, and by hand where that refuses to write badly.

use skep_warc::deflate::{Deflater, Level, crc32};
use skep_warc::digest::{Algorithm, Digest};
use skep_warc::write::{Compression, Encoder, Record, RecordId, Revisit};

/// A WARC file being written.
pub struct Warc {
    encoder: Encoder,
    pub bytes: Vec<u8>,
    /// Where each record begins.
    pub offsets: Vec<usize>,
    seed: u8,
}

impl Warc {
    pub fn gzip() -> Warc {
        Warc::new(Compression::GZIP)
    }

    pub fn new(compression: Compression) -> Warc {
        let encoder = Encoder::new(compression);
        Warc { bytes: encoder.prologue(), encoder, offsets: Vec::new(), seed: 1 }
    }

    fn id(&self, what: u8) -> RecordId {
        let mut random = [self.seed; 16];
        random[0] = what;
        random[8..].copy_from_slice(&(self.offsets.len() as u64).to_be_bytes());
        RecordId::uuid(random)
    }

    fn put(mut self, record: &Record<'_>) -> Warc {
        self.offsets.push(self.bytes.len());
        record.encode(&mut self.encoder, &mut self.bytes).expect("a good record");
        self
    }

    pub fn info(self) -> Warc {
        let record = Record::warcinfo(&self.id(1), "2017-01-01T00:00:00Z", &[("software", "a test")]);
        self.put(&record.expect("good fields"))
    }

    /// A response, as it came.
    pub fn answer(self, url: &str, time: &str, message: &[u8]) -> Warc {
        let record = Record::response(&self.id(2), time, url, message);
        self.put(&record)
    }

    /// A page that was there.
    pub fn page(self, url: &str, time: &str, body: &str) -> Warc {
        self.answer(url, time, &message("200 OK", "text/html; charset=utf-8", body.as_bytes()))
    }

    pub fn request(self, url: &str, time: &str) -> Warc {
        let record = Record::request(&self.id(3), time, url, b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n".as_slice());
        self.put(&record)
    }

    pub fn metadata(self, url: &str, time: &str) -> Warc {
        let record = Record::metadata(&self.id(4), time, "application/warc-fields", b"fetchTimeMs: 12\r\n".as_slice());
        self.put(&record.target_uri(url))
    }

    pub fn resource(self, url: &str, time: &str, mime: &str, bytes: &[u8]) -> Warc {
        let record = Record::resource(&self.id(5), time, url, mime, bytes);
        self.put(&record)
    }

    /// The body that came is one that was stored before, perhaps where `refers` says.
    pub fn same_as(self, url: &str, time: &str, body: &str, refers: Option<(&str, &str)>) -> Warc {
        let why = Revisit::IdenticalPayload(Digest::of(Algorithm::Sha1, body.as_bytes()));
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

    /// A capture that was made with secrets.
    pub fn private(self, url: &str, time: &str, body: &str) -> Warc {
        let message = message("200 OK", "text/html", body.as_bytes());
        let record =
            Record::response(&self.id(8), time, url, message.as_slice()).field(skep_archive::PRIVATE, "cookie");
        self.put(&record)
    }

    /// Bytes that are put into the file as they are, in a gzip member of their own.
    pub fn member(mut self, record: &[u8]) -> Warc {
        self.offsets.push(self.bytes.len());
        self.bytes.extend(gzip(record));
        self
    }
}

pub fn message(status: &str, mime: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {mime}\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// A message whose body was compressed and then sent in two chunks.
pub fn chunked_gzip(body: &str) -> Vec<u8> {
    let packed = gzip(body.as_bytes());
    let (first, second) = packed.split_at(packed.len() / 2);
    let mut out =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
            .to_vec();
    for part in [first, second] {
        out.extend(format!("{:x}\r\n", part.len()).into_bytes());
        out.extend(part);
        out.extend(b"\r\n");
    }
    out.extend(b"0\r\n\r\n");
    out
}

/// One gzip member.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    Deflater::new(Level::DEFAULT).compress(bytes, &mut out);
    out.extend(crc32(0, bytes).to_le_bytes());
    out.extend((bytes.len() as u32).to_le_bytes());
    out
}

/// `sha1:BASE32` of a payload.
pub fn digest(payload: &[u8]) -> String {
    format!("sha1:{}", Digest::of(Algorithm::Sha1, payload).base32())
}

pub const HOME: &str = "http://example.org/";

/// Six years of a few hosts. What is in it is listed in the tests that count it.
pub fn history() -> Warc {
    let png = message("200 OK", "image/png", b"\x89PNG not really");
    let gone = message("404 Not Found", "text/html", b"gone");
    Warc::gzip()
        .info()
        .request(HOME, "2017-01-01T10:00:00Z")
        .page(HOME, "2017-01-01T10:00:00Z", "first")
        .metadata(HOME, "2017-01-01T10:00:00Z")
        .page(HOME, "2018-06-01T12:00:00Z", "second")
        .page(HOME, "2018-06-01T12:00:00Z", "second once more")
        .same_as(HOME, "2019-03-03T03:03:03Z", "second", Some((HOME, "2018-06-01T12:00:00Z")))
        .answer(HOME, "2020-02-02T02:02:02Z", &chunked_gzip("unpacked"))
        .page("http://example.org/news/a", "2019-01-01T00:00:00Z", "news a")
        .answer("http://example.org/news/b", "2019-01-02T00:00:00Z", &gone)
        .answer("http://example.org/logo.png", "2019-01-03T00:00:00Z", &png)
        .page("http://shop.example.org/", "2019-02-01T00:00:00Z", "shop")
        .resource("http://example.org/notes.txt", "2019-04-01T00:00:00Z", "text/plain", b"HTTP/1.1 is a protocol")
        .page("https://one.co.uk/", "2021-01-01T00:00:00Z", "one")
        .page("https://two.co.uk/", "2021-01-02T00:00:00Z", "two")
}

/// Captures without a body of their own, in a file of their own.
pub fn revisits() -> Warc {
    Warc::gzip()
        .same_as("http://example.org/copy", "2022-05-05T00:00:00Z", "first", None)
        .same_as("http://example.org/lost", "2022-05-06T00:00:00Z", "nobody has this", None)
        .not_modified("http://example.org/news/a", "2022-05-07T00:00:00Z", "2019-01-01T00:00:00Z")
}

/// An ARC file of one page.
pub fn arc(url: &str, time: &str, body: &str) -> Vec<u8> {
    let about = "1 0 A test\nURL IP-address Archive-date Content-type Archive-length\n\n";
    let message = message("200 OK", "text/html", body.as_bytes());
    let mut out = format!("filedesc://old.arc 0.0.0.0 {time} text/plain {}\n{about}\n", about.len()).into_bytes();
    out.extend(format!("{url} 192.0.2.7 {time} text/html {}\n", message.len()).into_bytes());
    out.extend(message);
    out.push(b'\n');
    out
}

/// A ZIP file of stored entries, which is what a WACZ package is.
///
/// ```text
///   | local head 30 | name | bytes |  …  | directory entry 46 | name |  …  | end of directory 22 |
/// ```
pub fn package(entries: &[(&str, &[u8])]) -> Vec<u8> {
    zipped(entries, false)
}

/// The same of entries that the package compresses, if only in name.
pub fn packed_package(entries: &[(&str, &[u8])]) -> Vec<u8> {
    zipped(entries, true)
}

fn zipped(entries: &[(&str, &[u8])], deflated: bool) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in entries {
        let start = out.len() as u32;
        // DEFLATE may hand bytes on as they are: one block, its length, and that inverted.
        let block = (bytes.len() as u16).to_le_bytes();
        let before = [&[1][..], &block, &block.map(|byte| !byte)].concat();
        let before = if deflated { before } else { Vec::new() };
        let method = if deflated { 8 } else { 0 };
        let mut about = vec![20, 0, 0, 0, method, 0, 0, 0, 0x21, 0];
        about.extend(crc32(0, bytes).to_le_bytes());
        about.extend(((before.len() + bytes.len()) as u32).to_le_bytes());
        about.extend((bytes.len() as u32).to_le_bytes());
        about.extend((name.len() as u16).to_le_bytes());
        about.extend([0, 0]);
        out.extend(b"PK\x03\x04");
        out.extend(&about);
        out.extend(name.as_bytes());
        out.extend(&before);
        out.extend(*bytes);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&about);
        directory.extend([0; 10]);
        directory.extend(start.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (start, count) = (out.len() as u32, entries.len() as u16);
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    out
}
