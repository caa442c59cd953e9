//! What a visit leaves, judged by a reader that other people wrote: warcio.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use skep_archive::Bytes;
use skep_crawl::answer::{Answer, Block};
use skep_crawl::links::{Link, Links};
use skep_crawl::metadata::Metadata;
use skep_crawl::records::{Dns, Encoders, Original, Same, Visit};
use skep_warc::deflate::Level;

#[test]
fn warcio_reads_every_record_and_finds_every_digest_right() {
    let Some(python) = std::env::var_os("SKEP_PYTHON").map(PathBuf::from) else {
        eprintln!("third-party checks not run: SKEP_PYTHON is not set");
        return;
    };
    let url = "https://www.example.org/page?q=%C3%BC";
    let page = [b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n".as_slice(), &b"<p>hello ".repeat(1000)].concat();
    let zipped = b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\nnot really brotli".to_vec();
    let urls: Vec<String> = (0..40).map(|n| format!("https://www.example.org/{n}")).collect();
    let links: Vec<Link<'_>> = urls.iter().map(|url| Link { url, code: "L", nofollow: false }).collect();
    let metadata = Metadata { crawl: "docs", links: Links::Full(&links), ..Metadata::default() };
    let original = Original { why: Same::Payload, url, time_ms: 1_000, record: None, payload: None };
    let dns =
        Dns { host: "www.example.org", time_ms: 5, text: "19700101000000\nwww.example.org.\t300\tIN\tA\t192.0.2.1\n" };

    let mut encoders = Encoders::new(Level::new(1), std::env::temp_dir());
    let mut next = 0;
    let mut ids = || {
        next += 1;
        [next; 16]
    };
    let mut file = tempfile::Builder::new().suffix(".warc.gz").tempfile().unwrap();
    for (bytes, original, dns) in [(&page, None, Some(dns)), (&zipped, None, None), (&page, Some(original), None)] {
        let answer = Answer::read(Block::Memory(bytes), None, 0).unwrap();
        let visit = Visit {
            url,
            key: &skep_url::Key::of(url),
            time_ms: 1_778_052_489_123,
            request: Some(b"GET /page?q=%C3%BC HTTP/1.1\r\nHost: www.example.org\r\n\r\n"),
            private: false,
            answer: &answer,
            address: Some("2001:db8::1".parse().unwrap()),
            protocols: &["http/1.1", "tls/1.3"],
            cipher: Some("TLS_AES_128_GCM_SHA256"),
            truncated: None,
            original,
            metadata: Some(&metadata),
            dns,
        };
        for record in encoders.visit(&visit, &mut ids).unwrap().records {
            let Bytes::Memory(bytes) = record.bytes else { panic!("a small record is in memory") };
            file.write_all(&bytes).unwrap();
        }
    }
    const CHECK: &str = "import sys; from warcio.cli import main; main(['check', '-v', sys.argv[1]])";
    let output = Command::new(python).arg("-c").arg(CHECK).arg(file.path()).output().expect("SKEP_PYTHON runs");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(report.matches("digest pass").count(), 9, "{report}");
    assert_eq!(report.matches("not checked (revisit)").count(), 1, "{report}");
}
