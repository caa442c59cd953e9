//! What a server answered, looked at once before it is stored: where its body begins and what its payload's digest is, so
//! that the same payload in the archive can be found before anything is encoded.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::os::unix::fs::FileExt;

use skep_archive::Digest;
use skep_warc::digest::{Algorithm, BlockCheck, Hasher, Payload};
use skep_warc::http::limits::HTTP_HEAD_BYTES_MAX;
use skep_warc::http::{Body, Head, Parsed};

/// Bytes that came, exactly.
#[derive(Debug, Clone, Copy)]
pub enum Block<'a> {
    /// In memory.
    Memory(&'a [u8]),
    /// In a file, from its beginning.
    File(&'a File, u64),
}

impl<'a> Block<'a> {
    /// How many bytes.
    pub fn length(&self) -> u64 {
        match self {
            Block::Memory(bytes) => bytes.len() as u64,
            Block::File(_, length) => *length,
        }
    }

    /// The bytes from the beginning, at most so many.
    fn prefix(&self, bytes_max: usize) -> io::Result<Cow<'a, [u8]>> {
        let length = usize::try_from(self.length()).unwrap_or(usize::MAX).min(bytes_max);
        match self {
            Block::Memory(bytes) => Ok(Cow::Borrowed(&bytes[..length])),
            Block::File(file, _) => {
                let mut bytes = vec![0; length];
                file.read_exact_at(&mut bytes, 0)?;
                Ok(Cow::Owned(bytes))
            }
        }
    }
}

/// A file read from its beginning without moving its cursor.
#[derive(Debug)]
pub struct FromFile<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl<'a> FromFile<'a> {
    /// The first `length` bytes.
    pub fn new(file: &'a File, length: u64) -> FromFile<'a> {
        FromFile { file, at: 0, end: length }
    }
}

impl Read for FromFile<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let wanted = into.len().min(usize::try_from(self.end - self.at).unwrap_or(usize::MAX));
        let read = self.file.read_at(&mut into[..wanted], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// An answer as it will be stored.
#[derive(Debug)]
pub struct Answer<'a> {
    block: Block<'a>,
    head: Option<Cow<'a, Head>>,
    head_bytes: usize,
    payload: Digest,
    /// Known already where it cost next to nothing beside the payload's.
    block_digest: Option<Digest>,
}

impl<'a> Answer<'a> {
    /// Looks at an answer. `head` with its length is what the fetcher made of the first bytes; where it is missing or does
    /// not stand there, the bytes themselves are asked, because whoever reads the record later has nothing else.
    pub fn read(block: Block<'a>, head: Option<&'a Head>, head_bytes: usize) -> io::Result<Answer<'a>> {
        let stands = match head {
            Some(head) => head_bytes == head.raw().len() && block.prefix(head_bytes)? == head.raw(),
            None => false,
        };
        let (head, head_bytes) = match head.filter(|_| stands) {
            Some(head) => (Some(Cow::Borrowed(head)), head_bytes),
            None => {
                let mut head = Head::new();
                match head.parse_response(&block.prefix(HTTP_HEAD_BYTES_MAX + 1)?, true) {
                    Parsed::Complete { body } => (Some(Cow::Owned(head)), body),
                    _ => (None, 0),
                }
            }
        };
        let (payload, block_digest) = match block {
            Block::Memory(bytes) if head.as_ref().is_some_and(|head| head.is_chunked()) => {
                (payload_of(head.as_deref(), &bytes[head_bytes..])?, None)
            }
            Block::Memory(bytes) => {
                // Nearly the same bytes: side by side both digests take little more time than one.
                let (mut payload, mut block) = (Hasher::new(Algorithm::Sha1), Hasher::new(Algorithm::Sha1));
                Hasher::update_both(&mut payload, &bytes[head_bytes..], &mut block, bytes);
                (finished(payload), Some(finished(block)))
            }
            Block::File(file, length) => {
                let (payload, block) = digests_of(FromFile::new(file, length))?;
                (payload, Some(block))
            }
        };
        Ok(Answer { block, head, head_bytes, payload, block_digest })
    }

    /// The bytes.
    pub fn block(&self) -> Block<'a> {
        self.block
    }

    /// The HTTP head; `None` for bytes that are no HTTP.
    pub fn head(&self) -> Option<&Head> {
        self.head.as_deref()
    }

    /// Where the body begins.
    pub fn head_bytes(&self) -> usize {
        self.head_bytes
    }

    /// The digest of the payload: the body without transfer encoding, content encodings kept.
    pub fn payload(&self) -> Digest {
        self.payload
    }

    pub(crate) fn block_digest(&self) -> Option<Digest> {
        self.block_digest
    }

    /// Whether the body gains nothing from being compressed (again).
    pub fn is_compressed(&self) -> bool {
        let Some(head) = self.head() else { return false };
        let encoded = |value: &[u8]| !value.is_empty() && !value.eq_ignore_ascii_case(b"identity");
        head.headers("content-encoding").any(encoded) || head.media_type().is_some_and(is_compressed_type)
    }
}

/// Media types whose formats compress by themselves.
fn is_compressed_type(media_type: &[u8]) -> bool {
    const FAMILIES: [&[u8]; 3] = [b"image/", b"video/", b"audio/"];
    const PLAIN_IN_THEM: [&[u8]; 10] = [
        b"image/svg+xml",
        b"image/svg",
        b"image/bmp",
        b"image/x-ms-bmp",
        b"image/tiff",
        b"image/x-icon",
        b"image/vnd.microsoft.icon",
        b"audio/wav",
        b"audio/x-wav",
        b"audio/midi",
    ];
    const OTHERS: [&[u8]; 17] = [
        b"application/zip",
        b"application/x-zip-compressed",
        b"application/gzip",
        b"application/x-gzip",
        b"application/x-bzip2",
        b"application/x-xz",
        b"application/zstd",
        b"application/x-7z-compressed",
        b"application/vnd.rar",
        b"application/x-rar-compressed",
        b"application/java-archive",
        b"application/epub+zip",
        b"application/x-debian-package",
        b"font/woff",
        b"font/woff2",
        b"application/font-woff",
        b"application/font-woff2",
    ];
    let is = |other: &&[u8]| media_type.eq_ignore_ascii_case(other);
    let family =
        |prefix: &&[u8]| media_type.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    FAMILIES.iter().any(family) && !PLAIN_IN_THEM.iter().any(is)
        || OTHERS.iter().any(is)
        || family(&b"application/vnd.openxmlformats-".as_slice())
        || family(&b"application/vnd.oasis.".as_slice())
}

/// SHA-1, as WARC files have it.
pub fn sha1(bytes: &[u8]) -> Digest {
    let mut hasher = Hasher::new(Algorithm::Sha1);
    hasher.update(bytes);
    finished(hasher)
}

fn finished(hasher: Hasher) -> Digest {
    of_warc(hasher.finish())
}

fn of_warc(digest: skep_warc::digest::Digest) -> Digest {
    let mut bytes = [0; 20];
    bytes.copy_from_slice(digest.as_bytes());
    Digest::Sha1(bytes)
}

pub(crate) fn payload_of(head: Option<&Head>, body: &[u8]) -> io::Result<Digest> {
    let Some(head) = head.filter(|head| head.is_chunked()) else { return Ok(sha1(body)) };
    let mut hasher = Hasher::new(Algorithm::Sha1);
    let mut body = Body::new(head, body);
    loop {
        let part = body.fill_buf()?;
        let length = part.len();
        if length == 0 {
            return Ok(finished(hasher));
        }
        hasher.update(part);
        body.consume(length);
    }
}

/// Payload and block of an answer that is not in memory, in one reading.
fn digests_of(mut block: FromFile<'_>) -> io::Result<(Digest, Digest)> {
    let mut check = BlockCheck::compute(Algorithm::Sha1, Payload::HttpResponse);
    let mut buffer = vec![0; 1 << 16];
    let mut left = block.end;
    while left > 0 {
        let read = match block.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        check.update(&buffer[..read]);
        left -= read as u64;
    }
    let digests = check.finish();
    match (digests.payload_digest, digests.block_digest) {
        (Some(payload), Some(block)) => Ok((of_warc(payload), of_warc(block))),
        _ => Err(io::Error::other("digests that were asked for were not computed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn head_of(bytes: &[u8]) -> (Head, usize) {
        let mut head = Head::new();
        let Parsed::Complete { body } = head.parse_response(bytes, true) else { panic!() };
        (head, body)
    }

    #[test]
    fn the_payload_is_the_body_without_chunks_wherever_the_bytes_are() {
        let plain = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".as_slice();
        let chunked =
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n".as_slice();
        for bytes in [plain, chunked] {
            let (head, body) = head_of(bytes);
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            let of_file = Block::File(&file, bytes.len() as u64);
            for block in [Block::Memory(bytes), of_file] {
                for (head, body) in [(Some(&head), body), (None, 0), (Some(&head), 3)] {
                    let answer = Answer::read(block, head, body).unwrap();
                    assert_eq!(answer.payload(), sha1(b"hello"));
                    assert_eq!(answer.head().and_then(Head::status), Some(200));
                    assert_eq!(answer.head_bytes(), bytes.len() - answer.block().length() as usize + head_of(bytes).1);
                }
            }
            assert_eq!(Answer::read(of_file, None, 0).unwrap().block_digest(), Some(sha1(bytes)));
        }
    }

    #[test]
    fn what_is_no_http_is_all_payload() {
        let answer = Answer::read(Block::Memory(b"SSH-2.0-OpenSSH_9.2p1\r\n"), None, 0).unwrap();
        assert!(answer.head().is_none());
        assert_eq!(answer.payload(), sha1(b"SSH-2.0-OpenSSH_9.2p1\r\n"));
        assert!(Answer::read(Block::Memory(b""), None, 0).unwrap().head().is_none());
    }

    #[test]
    fn a_file_shorter_than_said_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        assert!(Answer::read(Block::File(&file, 10), None, 0).is_err());
    }

    #[test]
    fn what_compresses_itself_is_known() {
        let compressed = |fields: &str| {
            let bytes = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nx");
            Answer::read(Block::Memory(bytes.as_bytes()), None, 0).unwrap().is_compressed()
        };
        assert!(compressed("Content-Type: text/html\r\nContent-Encoding: gzip"));
        assert!(compressed("Content-Type: image/PNG; a=b"));
        assert!(compressed("content-type: application/vnd.openxmlformats-officedocument.wordprocessingml.document"));
        assert!(!compressed("Content-Type: image/svg+xml"));
        assert!(!compressed("Content-Type: text/html\r\nContent-Encoding: identity"));
        assert!(!compressed("Server: x"));
    }
}
