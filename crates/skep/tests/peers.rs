//! Indexes and offsets, held against cdxj-indexer, warcio and FastWARC, on files that warcio and wget write during the test.

mod python;

use python::{Peers, difference, places, skep_index};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Every file: the same index byte for byte, the same offsets as both readers, the same lengths.
fn agree(peers: &Peers, files: &[PathBuf]) {
    for (file, judged) in files.iter().zip(peers.judge(files)) {
        let name = file.display();
        assert_eq!(judged.why, None, "{name}: the peers read it");
        let (index, code) = skep_index(&[file]);
        let theirs = judged.index.expect("an index");
        assert!(index == theirs, "{name}\n{}", difference(&index, &theirs));
        assert_eq!(code, Some(0), "{name} is well formed");
        let ours = places(file);
        assert_eq!(Some(&ours), judged.warcio.as_ref(), "{name}: warcio");
        assert_eq!(Some(ours.iter().map(|place| place.0).collect()), judged.fastwarc, "{name}: FastWARC");
    }
}

#[test]
fn files_of_warcios_writer_are_indexed_as_its_own_indexer_does() {
    let Some(peers) = Peers::find() else { return };
    for seed in [1, 2] {
        let folder = tempfile::tempdir().unwrap();
        let files = peers.make(folder.path(), seed, 300);
        assert_eq!(files.len(), 8);
        agree(&peers, &files);
    }
}

/// Several files make one index in one order, in which a line stands once, however often its file was named.
#[test]
fn several_files_make_one_index() {
    let Some(peers) = Peers::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let files = peers.make(folder.path(), 3, 40);
    let named = [&files[..], &files[..2]].concat();
    let theirs = python::text(&python::run(peers.program("cdxj-indexer").arg("--sort").args(&named)));
    let (ours, _) = skep_index(&named);
    assert!(ours == theirs, "{}", difference(&ours, &theirs));
}

/// A site with what wget meets every day, on a free port. It answers until the test ends.
fn site() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // A visitor that leaves early is no concern of the site.
            let _left_early = stream.and_then(answer);
        }
    });
    address
}

fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let path = first.split(' ').nth(1).unwrap_or_default();
    let page = |links: &str| format!("Content-Type: text/html; charset=utf-8\r\n\r\n<title>t</title>{links}");
    let links = "/a.html /moved /chunked /copy?x=1&amp;X=2 /caf%C3%A9/ /none /plain.txt /untyped /empty";
    let links: String = links.split(' ').map(|path| format!("<a href=\"{path}\">x</a>")).collect();
    let (status, rest) = match path {
        "/" => ("200 OK", page(&links)),
        "/a.html" => ("200 OK", page("<a href=\"/b.html\">b</a>")),
        "/b.html" | "/copy?x=1&X=2" => ("200 Fine", page("the same twice")),
        "/moved" => ("301 Moved Permanently", "Location: /a.html\r\nContent-Length: 0\r\n\r\n".into()),
        "/chunked" => {
            let chunks =
                "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
            ("200 OK", chunks.into())
        }
        "/caf%C3%A9/" => ("200", "Content-Type: text/html\r\n\r\ncafé".into()),
        "/plain.txt" => ("200 OK", "content-type: text/plain\r\nContent-Length: 4\r\n\r\nabcd".into()),
        "/untyped" => ("200 OK", "Server: odd\r\n\r\nwithout a type".into()),
        "/empty" => ("204 No Content", "\r\n".into()),
        _ => ("404 Not Found", page("nothing here")),
    };
    let mut stream = stream;
    write!(stream, "HTTP/1.1 {status}\r\nConnection: close\r\n{rest}")
}

/// Runs wget over the site; it names what it writes `NAME.warc` or `NAME.warc.gz`.
fn wget(folder: &Path, site: SocketAddr, name: &str, more: &[&str]) {
    let status = Command::new("wget")
        .args("--quiet --recursive --level=3 --execute=robots=off --no-proxy --tries=1 --timeout=30".split(' '))
        .arg(format!("--warc-file={name}"))
        .args(more)
        .arg(format!("http://{site}/"))
        .current_dir(folder)
        .stdin(Stdio::null())
        .status()
        .expect("wget is installed");
    // 8: the server answered with an error, as it does for one page.
    assert_eq!(status.code(), Some(8), "{name}");
}

#[test]
fn files_of_wget_are_indexed_as_cdxj_indexer_does() {
    let Some(peers) = Peers::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let site = site();
    wget(folder.path(), site, "packed", &["--warc-cdx", "--warc-header=operator: a test"]);
    wget(folder.path(), site, "plain", &["--no-warc-compression"]);
    wget(folder.path(), site, "again", &["--warc-dedup=packed.cdx"]);
    let files: Vec<PathBuf> =
        ["packed.warc.gz", "plain.warc", "again.warc.gz"].iter().map(|name| folder.path().join(name)).collect();
    agree(&peers, &files);
    let (again, _) = skep_index(&files[2..]);
    assert!(again.contains("\"warc/revisit\""), "wget found its pages again: {again}");
    assert!(again.contains("caf%C3%A9"), "{again}");

    // wget's own index names the same places.
    let cdx = std::fs::read_to_string(folder.path().join("packed.cdx")).unwrap();
    let offsets: Vec<u64> = cdx.lines().skip(1).map(|line| line.split(' ').nth(8).unwrap().parse().unwrap()).collect();
    let (ours, _) = skep_index(&files[..1]);
    assert!(offsets.len() >= 10, "{cdx}");
    for offset in offsets {
        assert!(ours.contains(&format!("\"offset\": \"{offset}\"")), "{offset}: {ours}");
    }
}
