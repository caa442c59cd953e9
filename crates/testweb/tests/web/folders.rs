//! A folder of real files as a host.

use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use skep_testweb::{HostPlan, Plan, Web};
use tempfile::TempDir;

use crate::client::{Client, Response, serve};

fn write(path: &Path, body: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, body).unwrap();
    let time = UNIX_EPOCH + Duration::from_secs(784_111_777);
    fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

fn web() -> (TempDir, Web) {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("root");
    write(&outer.path().join("secret.txt"), "secret");
    write(&root.join("index.html"), "<h1>Home</h1>");
    write(&root.join("docs/index.htm"), "<h1>Docs</h1>");
    write(&root.join("docs/a b.css"), "p {}");
    write(&root.join("empty/nothing.bin"), "");
    write(&root.join("robots.txt"), "User-agent: *\nDisallow: /docs/\n");
    // Larger than the pieces it is sent in.
    write(&root.join("large.png"), (0..300_000u32).map(|n| (n % 251) as u8).collect::<Vec<_>>());
    std::os::unix::fs::symlink("../secret.txt", root.join("escape.txt")).unwrap();
    let web = serve(Plan::new(1).host(HostPlan::folder("files.test", &root)));
    (outer, web)
}

fn get(web: &Web, path: &str, headers: &[(&str, &str)]) -> Response {
    Client::plain(web.address("files.test").unwrap()).get("files.test", path, headers)
}

#[test]
fn files_folders_and_what_is_not_there() {
    let (_keep, web) = web();
    for (path, status, kind) in [
        ("/", 200, "text/html"),
        ("/index.html", 200, "text/html"),
        ("/docs/", 200, "text/html"),
        ("/docs/a%20b.css", 200, "text/css"),
        ("/docs/a%20b.css?x=1", 200, "text/css"),
        ("/empty/nothing.bin", 200, "application/octet-stream"),
        ("/robots.txt", 200, "text/plain"),
        ("/empty/", 404, ""),
        ("/nothing", 404, ""),
        ("/index.html/", 404, ""),
        ("/index.html/x", 404, ""),
        ("/../secret.txt", 404, ""),
        ("/docs/%2e%2e/index.html", 404, ""),
        ("/escape.txt", 404, ""),
        ("/%00", 404, ""),
    ] {
        let seen = get(&web, path, &[]);
        assert_eq!(seen.status, status, "{path}");
        if status == 200 {
            assert_eq!(seen.header("content-type"), Some(kind), "{path}");
        }
    }
    assert_eq!(get(&web, "/docs", &[]).header("location"), Some("/docs/"));
    assert_eq!(get(&web, "/docs?x=1", &[]).header("location"), Some("/docs/?x=1"));
}

#[test]
fn conditions_and_ranges_of_files() {
    let (_keep, web) = web();
    let whole = get(&web, "/large.png", &[]);
    assert_eq!((whole.body.len(), whole.header("accept-ranges")), (300_000, Some("bytes")));
    assert_eq!(whole.header("last-modified"), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
    let etag = whole.header("etag").unwrap();

    let part = get(&web, "/large.png", &[("range", "bytes=100000-250000"), ("if-range", etag)]);
    assert_eq!((part.status, part.header("content-range")), (206, Some("bytes 100000-250000/300000")));
    assert_eq!(part.body, whole.body[100_000..=250_000]);
    let last = get(&web, "/large.png", &[("range", "bytes=-5")]);
    assert_eq!(last.body, whole.body[299_995..]);
    assert_eq!(get(&web, "/large.png", &[("range", "bytes=300000-")]).status, 416);

    for (name, value, status) in [
        ("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT", 304),
        ("if-modified-since", "Sun, 06 Nov 1994 08:49:36 GMT", 200),
        ("if-none-match", etag, 304),
        ("if-none-match", "\"other\"", 200),
    ] {
        assert_eq!(get(&web, "/large.png", &[(name, value)]).status, status, "{name} {value}");
    }
    let mut client = Client::plain(web.address("files.test").unwrap());
    client.send("HEAD", "files.test", "/large.png", &[]);
    let head = client.receive(true).unwrap();
    assert_eq!((head.status, head.header("content-length")), (200, Some("300000")));
    assert_eq!(client.get("files.test", "/", &[]).text(), "<h1>Home</h1>");
}

#[test]
fn the_truth_lists_all_files() {
    let (_keep, web) = web();
    let truth: Vec<_> = web.world().truth(web.now()).map(|entry| entry.unwrap()).collect();
    let paths: Vec<_> = truth.iter().map(|entry| entry.url.strip_prefix("http://files.test").unwrap()).collect();
    assert_eq!(
        paths,
        [
            "/robots.txt",
            "/",
            "/docs/",
            "/docs/a%20b.css",
            "/docs/index.htm",
            "/empty/nothing.bin",
            "/escape.txt",
            "/index.html",
            "/large.png"
        ]
    );
    for entry in truth {
        let path = entry.url.strip_prefix("http://files.test").unwrap();
        let seen = get(&web, path, &[]);
        assert_eq!((seen.status, seen.body.len() as u64), (entry.status, entry.bytes), "{path}");
    }
}
