//! What owners of sites see and say, and whom people are led to.

use crate::ring::{CRAWL, Ring, TIMES};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

/// Whoever runs the nodes owns this one, so that its file may be looked at again and again …
const HOST: &str = "owned.test";
/// … and not this one.
const OTHER: &str = "other.test";
const FILE: &str = "/.well-known/skep.txt";
/// More than can be fetched at the usual pace before somebody says stop.
const PAGES: usize = 400;

/// A host with many pages, and the file that its owner puts there.
struct Owned {
    at: SocketAddr,
    file: Arc<Mutex<String>>,
    /// Paths that were asked for.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Owned {
    fn serve(address: IpAddr) -> Owned {
        let listener = TcpListener::bind((address, 0)).expect("an address");
        let at = listener.local_addr().expect("an address");
        let (file, asked) = (Arc::<Mutex<String>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (shown, seen) = (file.clone(), asked.clone());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut line = String::new();
                let _gone = BufReader::new(&stream).read_line(&mut line);
                let file = shown.lock().expect("a file").clone();
                let path = line.split(' ').nth(1).unwrap_or_default();
                seen.lock().expect("paths").push(path.to_owned());
                let (status, body) = match path {
                    FILE if !file.is_empty() => ("200 OK", file),
                    FILE | "/robots.txt" => ("404 Not Found", String::new()),
                    path if path.starts_with('/') => {
                        let links: String = (0..PAGES).map(|page| format!("<a href=\"/{page}\">{page}</a>")).collect();
                        ("200 OK", format!("<!DOCTYPE html><title>Mine {path}</title>{links}"))
                    }
                    _ => ("400 Bad Request", String::new()),
                };
                let head =
                    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: text/html\r\nContent-Length: ");
                let _gone = write!(stream, "{head}{}\r\n\r\n{body}", body.len());
            }
        });
        Owned { at, file, asked }
    }

    /// How often pages were asked for, or the file.
    fn asked(&self, file: bool) -> usize {
        let asked = self.asked.lock().expect("paths");
        asked.iter().filter(|path| path.starts_with('/') && (*path == FILE) == file).count()
    }

    fn puts(&self, file: &str) {
        *self.file.lock().expect("a file") = file.to_owned();
    }
}

fn page(host: &str) -> String {
    format!("/owner?host={host}")
}

/// The line that the page of a host shows, once something was taken from it.
fn line(ring: &Ring, node: usize, host: &str) -> String {
    ring.until("something is taken", &[node], |_| ring.get(node, &page(host)).1.contains("skep-owner "));
    let told = ring.get(node, &page(host)).1;
    assert!(told.contains("by so many nodes") && told.contains(FILE), "{told}");
    told.split("<pre>").nth(1).and_then(|rest| rest.split("</pre>").next()).expect("a line").to_owned()
}

/// What a node has written down of what the network crawls.
fn kept(ring: &Ring, node: usize) -> String {
    std::fs::read_to_string(ring.archive(node).join("settings/network-crawls.toml")).expect("crawls")
}

fn crawls(ring: &Ring, name: &str, seeds: &[&str]) {
    ring.skep(0, &[&["crawl", "--network", "--name", name, "--patience", "1"], seeds].concat()).exits(0);
}

fn stops(ring: &Ring, name: &str) {
    ring.skep(0, &["ring", "stop", name]).exits(0);
    ring.until("stopped", &ring.up(), |all| all.iter().all(|one| one["crawl"].is_null()));
}

#[test]
fn an_owner_stops_all_nodes_with_a_file_on_the_host_and_no_later_crawl_begins_again() {
    let mut hosts = Vec::new();
    let mut ring = Ring::told(6, TIMES, |ring| {
        hosts.extend([HOST, OTHER].into_iter().enumerate().map(|(n, _)| Owned::serve(ring.net.web(90 + n as u8))));
        let resolve = |host: &str, owned: &Owned| ["--resolve".to_owned(), format!("{host}={}", owned.at)];
        let own = ["--own".to_owned(), HOST.to_owned()];
        [own, resolve(HOST, &hosts[0]), resolve(OTHER, &hosts[1])].concat()
    });
    let [owned, other] = &hosts[..] else { panic!("two hosts") };
    ring.join();
    ring.settled();
    let seed = |host: &str| format!("http://{host}/");
    crawls(&ring, CRAWL, &[&seed(HOST), &seed(OTHER)]);
    let line_here = line(&ring, 1, HOST);

    // Anybody can say so; only the owner can put a file there.
    let wish = |what: &str| format!("host={HOST}&wish={what}");
    let (status, said) = ring.post(1, "/owner", &wish("stop"));
    assert!(status == 409 && said.contains("There is no file at"), "{status} {said}");
    owned.puts("skep-owner 0000000000000000\n");
    let (status, said) = ring.post(1, "/owner", &wish("stop"));
    assert!(status == 409 && said.contains("does not have the line"), "{status} {said}");
    owned.puts(&format!("# ours\n{line_here}\n"));
    let (status, said) = ring.post(1, "/owner", &wish("stop"));
    assert!(status == 200 && said.contains("No node asks owned.test for anything any more"), "{status} {said}");

    // Whoever leads hears of it and ends, in the middle of what it was about.
    ring.until("all know", &ring.up(), |_| ring.up().iter().all(|node| kept(&ring, *node).contains("pause = true")));
    let is_out = |one: &Value| one["crawl"]["progress"]["out"].as_u64() != Some(0);
    let others = other.asked(false);
    ring.until("the other host goes on", &ring.up(), |_| other.asked(false) >= others + 3);
    let taken = owned.asked(false);
    assert!(taken < PAGES, "everything was taken before anybody could say stop");
    let others = other.asked(false);
    ring.until("the other host goes on", &ring.up(), |_| other.asked(false) >= others + 3);
    assert_eq!(owned.asked(false), taken, "asked after its owner said stop");

    // Anybody has another host looked at once, and not again and again.
    let wish_other = format!("host={OTHER}&wish=stop");
    line(&ring, 1, OTHER);
    let (status, said) = ring.post(1, "/owner", &wish_other);
    assert!(status == 409 && said.contains("There is no file at"), "{status} {said}");
    // Whichever node hears it.
    for node in ring.up() {
        let (status, said) = ring.post(node, "/owner", &wish_other);
        assert!(status == 429 && said.contains("was asked for the file just now"), "{status} {said}");
    }
    assert_eq!(other.asked(true), 1, "{:?}", other.asked.lock());

    // Nobody has to say it again when something else is crawled.
    stops(&ring, CRAWL);
    let first = ring.web.map().hosts[0].url.clone();
    crawls(&ring, "wasps", &["--scope", "all", &seed(HOST), &first]);
    ring.until("the others are crawled", &ring.up(), |all| ring.fetches().len() >= 24 && !all.iter().any(is_out));
    assert_eq!(owned.asked(false), taken, "asked by another crawl after its owner said stop");
    stops(&ring, "wasps");

    // What is said while nobody crawls is remembered.
    let (status, said) = ring.post(0, "/owner", &format!("{}&seconds=30", wish("slow")));
    assert_eq!(status, 200, "{said}");
    crawls(&ring, "ants", &[&seed(HOST)]);
    let slow = |node: usize| {
        let file = kept(&ring, node);
        let ants = file.split("[[crawl]]").find(|crawl| crawl.contains("\"ants\"")).unwrap_or_default().to_owned();
        ants.contains("pace = 30000") && !ants.contains("pause = true")
    };
    ring.until("all know", &ring.up(), |_| ring.up().into_iter().all(slow));
    let (status, said) = ring.post(0, "/owner", &wish("welcome"));
    assert_eq!(status, 200, "{said}");
    ring.until("all know", &ring.up(), |_| !ring.up().into_iter().any(slow));

    // Nobody is promised a budget that nobody would keep.
    let watch = ring.archive(0).with_extension("toml");
    std::fs::write(&watch, "[watch]\nbudget = \"500/day\"\n").expect("a file");
    let config = watch.to_str().expect("a path");
    let typed = ["crawl", "--network", "--name", "ants", "--config", config, &seed(HOST)];
    ring.skep(0, &typed).fails("no budget over all pages").hints("--every 1d");
    let seed = seed(HOST);
    for [flag, bound] in [["--pages", "1000"], ["--bytes", "10MB"]] {
        let typed = ["crawl", "--network", "--name", "ants", flag, bound, &seed];
        ring.skep(0, &typed).fails("no --pages and no --bytes").hints("whoever leads that site");
    }

    // Nobody else's host is asked for anything.
    assert_eq!(ring.post(0, "/owner", "host=elsewhere.test&wish=stop").0, 404);
    assert_eq!(ring.post(0, "/owner", &wish("burn")).0, 400);
    assert_eq!(ring.post(0, "/owner", "host=127.0.0.1:80&wish=stop").0, 400);
}
