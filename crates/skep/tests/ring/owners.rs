//! What owners of sites see and say, and whom people are led to.

use crate::ring::{CRAWL, Ring};
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

const HOST: &str = "owned.test";

/// A host with one page, and the file that its owner puts there.
struct Owned {
    at: SocketAddr,
    file: Arc<Mutex<String>>,
}

impl Owned {
    fn serve(address: IpAddr) -> Owned {
        let listener = TcpListener::bind((address, 0)).expect("an address");
        let (at, file) = (listener.local_addr().expect("an address"), Arc::<Mutex<String>>::default());
        let shown = file.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut line = String::new();
                let _gone = BufReader::new(&stream).read_line(&mut line);
                let file = shown.lock().expect("a file").clone();
                let (status, body) = match line.split(' ').nth(1).unwrap_or_default() {
                    "/" => ("200 OK", "<!DOCTYPE html><title>Mine</title>".to_owned()),
                    "/.well-known/skep.txt" if !file.is_empty() => ("200 OK", file),
                    _ => ("404 Not Found", String::new()),
                };
                let head =
                    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: text/html\r\nContent-Length: ");
                let _gone = write!(stream, "{head}{}\r\n\r\n{body}", body.len());
            }
        });
        Owned { at, file }
    }
}

#[test]
fn an_owner_sees_what_was_taken_and_stops_all_nodes_with_a_file_on_the_host() {
    let mut ring = Ring::new(1);
    let owned = Owned::serve(ring.net.web(90));
    let resolve = format!("{HOST}={}", owned.at);
    ring.stop(0);
    ring.start(0, &["--resolve", &resolve]);
    let seed = format!("http://{HOST}/");
    let typed = ["crawl", "--network", &seed, "--name", CRAWL, "--patience", "1"];
    ring.skep(0, &typed).exits(0);
    let page = format!("/owner?host={HOST}");
    ring.until("something is taken", &[0], |_| ring.get(0, &page).1.contains("skep-owner "));
    let told = ring.get(0, &page).1;
    let line = told.split("<pre>").nth(1).and_then(|rest| rest.split("</pre>").next()).expect("a line").to_owned();
    assert!(told.contains("by so many nodes") && told.contains("/.well-known/skep.txt"), "{told}");

    // Anybody can say so; only the owner can put a file there.
    let wish = format!("host={HOST}&wish=stop");
    let (status, said) = ring.post(0, "/owner", &wish);
    assert!(status == 409 && said.contains("There is no file at"), "{status} {said}");
    *owned.file.lock().expect("a file") = "skep-owner 0000000000000000\n".into();
    let (status, said) = ring.post(0, "/owner", &wish);
    assert!(status == 409 && said.contains("does not have the line"), "{status} {said}");
    *owned.file.lock().expect("a file") = format!("# ours\n{line}\n");
    let (status, said) = ring.post(0, "/owner", &wish);
    assert!(status == 200 && said.contains("No node asks owned.test for anything any more"), "{status} {said}");
    let kept = || std::fs::read_to_string(ring.archive(0).join("settings/network-crawls.toml")).expect("crawls");
    assert!(kept().contains("pause = true"), "{}", kept());
    let (status, said) = ring.post(0, "/owner", &format!("host={HOST}&wish=slow&seconds=30"));
    assert!(status == 200 && kept().contains("pace = \"30s\"") || kept().contains("30000"), "{said} {}", kept());
    assert_eq!(ring.post(0, "/owner", &format!("host={HOST}&wish=welcome")).0, 200);
    assert!(!kept().contains("pause = true"), "{}", kept());
    // Nobody else's host is asked for anything.
    assert_eq!(ring.post(0, "/owner", "host=elsewhere.test&wish=stop").0, 404);
    assert_eq!(ring.post(0, "/owner", &format!("host={HOST}&wish=burn")).0, 400);
    assert_eq!(ring.post(0, "/owner", "host=127.0.0.1:80&wish=stop").0, 400);
}
