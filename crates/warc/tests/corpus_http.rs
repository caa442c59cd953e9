//! Broken HTTP responses and encoded bodies that other people collected.

use std::io::Read;
use std::path::PathBuf;

use skep_warc::coding::{Bounds, decode};
use skep_warc::digest::{BlockCheck, Declared, Payload, PayloadMatch};
use skep_warc::http::{Head, Parsed, Rule};
use skep_warc::{Options, Reader, RecordKind};

fn corpus() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("SKEP_CORPORA") else {
        eprintln!("corpus tests not run: SKEP_CORPORA is not set");
        return None;
    };
    Some(PathBuf::from(folder).join("vectors/http"))
}

fn read(path: PathBuf) -> Vec<u8> {
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// In each file of the `parsing_` family one character stands at one place of a small response. What a browser shows is
/// the body, except where that character ends the head earlier or makes the first line something else.
#[test]
fn broken_responses_give_the_body_that_a_browser_shows() {
    let Some(folder) = corpus() else { return };
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "asis") {
            continue;
        }
        files += 1;
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let message = read(path);
        let mut head = Head::new();
        let parsed = head.parse_response(&message, true);
        let Some(place) = name.strip_prefix("parsing_") else {
            let Parsed::Complete { body } = parsed else { panic!("{name}: {parsed:?}") };
            assert_eq!(head.mime().as_deref(), Some("image/png"), "{name}");
            assert!(message[body..].starts_with(b"\x89PNG"), "{name}");
            assert!(head.deviations().iter().any(|d| d.rule == Rule::Nul), "{name}");
            continue;
        };
        if place.ends_with("_in-http") {
            assert_eq!(parsed, Parsed::NotHttp, "{name}: no browser takes this for HTTP/1");
            continue;
        }
        let Parsed::Complete { body } = parsed else { panic!("{name}: {parsed:?}") };
        assert_eq!(head.raw(), &message[..body], "{name}: bytes kept");
        let wanted: &[u8] = match place {
            // A line feed there makes an empty line.
            "LF_after-reason" | "LF_leading" => b"X-Frame-Options:DENY\r\nContent-Length: 5\r\n\r\nTest.",
            "LF_after-value" => b"Content-Length: 5\r\n\r\nTest.",
            _ => b"Test.",
        };
        assert_eq!(String::from_utf8_lossy(&message[body..]), String::from_utf8_lossy(wanted), "{name}");
        // Where no number can be found browsers go on with 200; this reader says that there is none.
        let no_number = ["LF_after-dot", "LF_after-slash", "LF_before-dot", "LF_before-num", "LF_before-slash"];
        assert_eq!(head.status(), (!no_number.contains(&place)).then_some(200), "{name}: {:?}", head.first_line());
        let mut out = Vec::new();
        decode(&head, &message[body..], Bounds::DEFAULT).read_to_end(&mut out).unwrap();
        assert_eq!(out, wanted, "{name}");
    }
    assert_eq!(files, 103, "files of the corpus");
}

#[test]
fn encoded_bodies_decode_as_in_a_browser() {
    let Some(folder) = corpus() else { return };
    let folder = folder.join("encoded");
    let body = |name: &str| -> (Vec<u8>, Vec<Rule>) {
        let headers = String::from_utf8(read(folder.join(format!("{name}.headers")))).unwrap();
        let mut head = Head::new();
        head.parse_response(format!("HTTP/1.1 200 OK\n{}\n\n", headers.trim_end()).as_bytes(), true);
        let bytes = read(folder.join(name));
        let mut reader = decode(&head, &bytes[..], Bounds::DEFAULT);
        let mut out = Vec::new();
        reader.read_to_end(&mut out).unwrap();
        (out, reader.deviations().iter().map(|d| d.rule).collect())
    };
    for family in ["big.text", "foo.octetstream", "foo.text", "hello.html"] {
        let (first, deviations) = body(&format!("{family}.gz"));
        assert_eq!(deviations, [], "{family}");
        assert!(first.len() > 5, "{family}");
        for coding in ["br", "zst"] {
            let (other, deviations) = body(&format!("{family}.{coding}"));
            assert!(other == first, "{family}.{coding}: {} bytes, gzip gave {}", other.len(), first.len());
            assert_eq!(deviations, [], "{family}.{coding}");
        }
    }
    assert_eq!(body("big.text.br").0.len(), 27_000_000);
    assert_eq!(body("big.window.zst"), (vec![], vec![Rule::ContentWindow]));
}

/// Digests of real archives: nearly all payload digests are over the payload as the standard means it, some over the chunked
/// body, and those that match nothing are the ones that other tools refuse too.
#[test]
fn payload_digests_of_real_archives() {
    let Some(folder) = std::env::var_os("SKEP_CORPORA").map(PathBuf::from) else {
        eprintln!("corpus tests not run: SKEP_CORPORA is not set");
        return;
    };
    let mut counts = std::collections::HashMap::new();
    for project in
        ["pywb", "acid", "warcio.js", "replayweb.page", "outbackcdx", "webarchive-test-suite", "whirlwind-python"]
    {
        let project = folder.join("archives").join(project);
        for entry in std::fs::read_dir(&project).unwrap_or_else(|e| panic!("{}: {e}", project.display())) {
            let path = entry.unwrap().path();
            if !path.to_string_lossy().contains(".warc") {
                continue;
            }
            let mut reader = Reader::open(&path, Options::recover()).unwrap();
            while let Some(mut record) = reader.next().unwrap() {
                if record.head().kind() != RecordKind::Response {
                    continue;
                }
                let Some(payload) = record.head().text("WARC-Payload-Digest").map(|t| t.into_owned()) else { continue };
                let Ok(declared) = Declared::parse(None, Some(&payload)) else { continue };
                let mut check = BlockCheck::new(declared, Payload::HttpResponse);
                let mut buffer = [0; 4096];
                loop {
                    match record.read(&mut buffer).unwrap() {
                        0 => break,
                        n => check.update(&buffer[..n]),
                    }
                }
                *counts.entry(check.finish().payload.unwrap()).or_insert(0) += 1;
            }
        }
    }
    let count = |what| counts.get(&what).copied().unwrap_or(0);
    assert!(count(PayloadMatch::Payload) >= 480, "{counts:?}");
    assert!(count(PayloadMatch::ChunkedBody) >= 6, "{counts:?}");
    assert!(count(PayloadMatch::Nothing) <= 2, "{counts:?}");
}
