//! What a server sent is what the archive holds, byte for byte, from the socket through the crawl into the record; read back by
//! our own reader and by one that other people wrote.

mod web;

use skep_archive::Archive;
use skep_crawl::{Ending, Settings, Speed};
use skep_warc::digest::{Algorithm, Digest};
use skep_warc::{Options, Reader, RecordKind};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use web::scripted::{self, Said};

const HOST: &str = "odd.test";

/// Crawls all of the scripted server; waits between tries are over at once.
fn crawl_all(archive: &Arc<Archive>, address: SocketAddr) {
    let mut fetch = skep_fetch::Settings::new("skep/0 (test)");
    fetch.allow_private = true;
    fetch.resolve = vec![format!("{HOST}={address}").parse().unwrap()];
    let settings = Settings {
        name: "odd".into(),
        seeds: vec![format!("http://{HOST}/")],
        own: vec![HOST.into()],
        pace: Speed::None,
        allow_private: true,
        concurrency: 8,
        ..Settings::default()
    };
    let (ending, _) = web::crawl(archive, settings, fetch, 1);
    assert_eq!(ending, Ending::Finished);
    archive.settle().unwrap();
    let mut findings = Vec::new();
    archive.check(&mut |finding| findings.push(finding)).unwrap();
    // That an answer is no HTTP is found, and is no fault of the archive.
    findings.retain(|finding| finding.rule != "http-malformed");
    assert!(findings.is_empty(), "{findings:?}");
}

/// What a record holds of an answer.
struct Kept {
    kind: RecordKind,
    block: Vec<u8>,
    metadata: String,
}

/// The answers in the archive by path, from the files alone.
fn blocks(archive: &Archive) -> BTreeMap<String, Vec<Kept>> {
    let mut blocks: BTreeMap<String, Vec<Kept>> = BTreeMap::new();
    for segment in archive.segments() {
        let mut reader = Reader::open(&segment.path, Options::recover()).unwrap();
        while let Some(mut record) = reader.next().unwrap() {
            let kind = record.head().kind();
            let url = String::from_utf8_lossy(record.head().target_uri().unwrap_or_default()).into_owned();
            let Some(path) = url.strip_prefix(&format!("http://{HOST}")).map(str::to_owned) else { continue };
            let mut block = Vec::new();
            record.read_to_end(&mut block).unwrap();
            match kind {
                RecordKind::Response | RecordKind::Revisit => {
                    blocks.entry(path).or_default().push(Kept { kind, block, metadata: String::new() });
                }
                RecordKind::Metadata => {
                    if let Some(kept) = blocks.get_mut(&path).and_then(|all| all.last_mut()) {
                        kept.metadata = String::from_utf8_lossy(&block).into_owned();
                    }
                }
                _ => {}
            }
        }
    }
    blocks
}

/// What warcio finds: the SHA-1 of each response's block, by path. `None` where there is no warcio.
fn digests_by_warcio(archive: &Archive) -> Option<BTreeMap<String, String>> {
    let Some(python) = std::env::var_os("SKEP_PYTHON").map(PathBuf::from) else {
        eprintln!("third-party checks not run: SKEP_PYTHON is not set");
        return None;
    };
    const READ: &str = "
import hashlib, sys
from warcio.archiveiterator import ArchiveIterator
for name in sys.argv[1:]:
    with open(name, 'rb') as file:
        for record in ArchiveIterator(file, no_record_parse=True):
            if record.rec_type == 'response':
                print(record.rec_headers.get_header('WARC-Target-URI'), hashlib.sha1(record.raw_stream.read()).hexdigest())
";
    let files = archive.segments().into_iter().map(|segment| segment.path);
    let output = Command::new(python).arg("-c").arg(READ).args(files).output().expect("SKEP_PYTHON runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let prefix = format!("http://{HOST}");
    Some(lines.map(|(url, digest)| (url.replacen(&prefix, "", 1), digest.to_owned())).collect())
}

fn sha1_hex(bytes: &[u8]) -> String {
    Digest::of(Algorithm::Sha1, bytes).hex()
}

/// Numbers from a seed: what failed once can be sent again.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as usize
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len())]
    }

    fn any_case(&mut self, name: &str) -> String {
        name.chars().map(|c| if self.below(2) == 0 { c.to_ascii_uppercase() } else { c }).collect()
    }
}

/// Odd in its status line, in case, order, number, spacing and folding of its fields, in its line ends and in its chunks; and
/// yet an answer. No two have the same payload, which would be kept once.
fn odd_answer(number: u64) -> Said {
    let mut chance = Chance(number);
    let body = format!("<p>{number}</p>").repeat(1 + chance.below(600));
    let status = chance.pick(&[
        "HTTP/1.1 200 OK",
        "HTTP/1.1 200",
        "HTTP/1.1 200 ",
        "HTTP/1.0 200 Fine",
        "HTTP/1.1 200 \u{e9}t\u{e9} \u{2713}",
        "HTTP/1.1 203 Non-Authoritative\tInformation",
        "HTTP/1.1 299 Odd",
        "HTTP/1.1 404 Not  Found",
        "HTTP/1.1 418 I'm a teapot",
    ]);
    let end = if chance.below(5) == 0 { "\n" } else { "\r\n" };
    let spaces = " ".repeat(chance.below(4));
    let mut lines = vec![format!("{}:{spaces}text/html", chance.any_case("content-type"))];
    for _ in 0..chance.below(12) {
        let name = chance.pick(&["set-cookie", "x-odd", "link", "vary", "x_under.score", "date"]).to_owned();
        let name = chance.any_case(&name);
        let fold = ["", " ", "\t", "   "][chance.below(4)];
        let fold = if fold.is_empty() { String::new() } else { format!("{end}{fold}") };
        let value = chance.pick(&["a", "", "\"q\\\"uoted\"", "a,b", "\u{fc}ber"]).to_owned();
        lines.push(format!("{name}:{}{value}{fold}b{}", " ".repeat(chance.below(3)), "\t".repeat(chance.below(3))));
    }
    let framing = chance.below(3);
    match framing {
        0 => lines.push(format!("{}: chunked", chance.any_case("transfer-encoding"))),
        1 => lines.push(format!("{}:{}{}", chance.any_case("content-length"), " ".repeat(chance.below(3)), body.len())),
        _ => lines.push(format!("{}: close", chance.any_case("connection"))),
    }
    let (at, last) = (chance.below(lines.len()), lines.len() - 1);
    lines.swap(at, last);
    let mut answer = format!("{status}{end}{}{end}{end}", lines.join(end));
    if framing == 0 {
        let mut rest = body.as_str();
        while !rest.is_empty() {
            let (chunk, behind) = rest.split_at((1 + chance.below(900)).min(rest.len()));
            let extension = chance.pick(&["", ";x", ";name=value", " ; quoted=\"a;b\"", "  "]);
            answer += &format!("{}{:X}{extension}\r\n{chunk}\r\n", "0".repeat(chance.below(3)), chunk.len());
            rest = behind;
        }
        answer += chance.pick(&["0\r\n\r\n", "000;end\r\nX-Trailer: a\r\n\r\n"]);
    } else {
        answer += &body;
    }
    Said { bytes: answer.into_bytes(), close: framing == 2 || chance.below(4) == 0 }
}

#[test]
fn a_thousand_odd_answers_are_archived_byte_for_byte() {
    const ANSWERS: u64 = 1_000;
    let address = scripted::start(|path| match path.strip_prefix("/odd/").and_then(|number| number.parse().ok()) {
        Some(number) => odd_answer(number),
        None if path == "/" => scripted::index((0..ANSWERS).map(|number| format!("/odd/{number}"))),
        None => scripted::missing(),
    });
    let folder = tempfile::tempdir().unwrap();
    let archive = web::archive(folder.path());
    crawl_all(&archive, address);
    let blocks = blocks(&archive);
    let by_warcio = digests_by_warcio(&archive);
    for number in 0..ANSWERS {
        let path = format!("/odd/{number}");
        let sent = odd_answer(number).bytes;
        let kept = blocks.get(&path).unwrap_or_else(|| panic!("{path} is not there"));
        assert_eq!(kept.len(), 1, "{path} was captured {} times", kept.len());
        assert_eq!(String::from_utf8_lossy(&kept[0].block), String::from_utf8_lossy(&sent), "{path}");
        assert!(kept[0].block == sent && kept[0].kind == RecordKind::Response, "{path}");
        if let Some(by_warcio) = &by_warcio {
            assert_eq!(by_warcio.get(&path), Some(&sha1_hex(&sent)), "{path}");
        }
    }
}

/// Raw answers that nobody here wrote. What comes before or behind the message that was asked for is no part of it; then the
/// metadata says so.
#[test]
fn answers_that_others_broke_are_archived_byte_for_byte() {
    let Some(corpora) = std::env::var_os("SKEP_CORPORA").map(PathBuf::from) else {
        eprintln!("corpus tests not run: SKEP_CORPORA is not set");
        return;
    };
    let mut sent: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let files = |folder: PathBuf| {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<PathBuf>>()
    };
    for path in files(corpora.join("vectors/http")).into_iter().filter(|path| path.is_file()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut bytes = std::fs::read(&path).unwrap();
        if bytes.ends_with(b"Test.") {
            // All have this payload, which would be kept once; with one of its own each is kept whole.
            let end = bytes.len() - 5;
            bytes[end..].copy_from_slice(format!("{:05}", sent.len()).as_bytes());
        }
        sent.insert(format!("/raw/{name}"), bytes);
    }
    assert!(sent.len() > 100, "{} answers", sent.len());
    for path in files(corpora.join("vectors/http/encoded")) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".headers") {
            continue;
        }
        let coding = match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => "gzip",
            Some("br") => "br",
            Some("zst") => "zstd",
            _ => "identity",
        };
        let body = std::fs::read(&path).unwrap();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        sent.insert(format!("/encoded/{name}"), [head.into_bytes(), body].concat());
    }
    let answers = sent.clone();
    let address = scripted::start(move |path| match answers.get(path) {
        Some(bytes) => Said { bytes: bytes.clone(), close: true },
        None if path == "/" => scripted::index(answers.keys().cloned()),
        None => scripted::missing(),
    });
    let folder = tempfile::tempdir().unwrap();
    let archive = web::archive(folder.path());
    crawl_all(&archive, address);
    let blocks = blocks(&archive);
    let by_warcio = digests_by_warcio(&archive);
    let mut cut = 0;
    for (path, sent) in &sent {
        let kept = blocks.get(path).and_then(|all| all.first()).unwrap_or_else(|| panic!("{path} is not there"));
        let shown =
            || format!("{path}: {:?} of {:?}", String::from_utf8_lossy(&kept.block), String::from_utf8_lossy(sent));
        if kept.kind == RecordKind::Revisit {
            // The same payload as that of another answer: the head is kept here, the payload there.
            let payload = sent.strip_prefix(&kept.block[..]).unwrap_or_else(|| panic!("{}", shown()));
            let responses = blocks.values().flatten().filter(|other| other.kind == RecordKind::Response);
            assert!(responses.into_iter().any(|other| other.block.ends_with(payload)), "{}", shown());
            continue;
        }
        if &kept.block != sent {
            cut += 1;
            let said = ["interim", "surplus"].iter().any(|note| kept.metadata.contains(note));
            let within = sent.windows(kept.block.len().max(1)).any(|part| part == kept.block);
            assert!(said && within, "{}", shown());
        }
        if let Some(by_warcio) = &by_warcio {
            assert_eq!(by_warcio.get(path), Some(&sha1_hex(&kept.block)), "{path}");
        }
    }
    eprintln!("{} answers, {cut} of them with something before or behind the message", sent.len());
    assert!(cut < sent.len() / 10, "{cut} of {} answers are cut", sent.len());
}
