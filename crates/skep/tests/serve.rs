//! `skep serve`: the real binary over real sockets, also while others write.

#[path = "site/portal.rs"]
mod portal;
mod site;

use portal::Portal;
use site::Site;
use site::files::{HOME, Warc};
use std::io::{Read, Write};
use std::net::TcpStream;

#[test]
fn it_serves_until_it_is_told_to_stop() {
    let site = Site::filled();
    let portal = Portal::begin(&site, &[]);
    assert_eq!(portal.get("/health").0, 200);
    let (status, body) = portal.get(&format!("/web/20170101100000id_/{HOME}"));
    assert_eq!((status, body.as_str()), (200, "first"));
    assert_eq!(
        portal
            .get("/added/cdx?url=example.org&limit=2")
            .1
            .lines()
            .filter(|line| line.contains("org,example)/"))
            .count(),
        2
    );
    let (code, log, said) = portal.end();
    assert_eq!(code, 0, "{said}");
    assert!(log.contains("\"GET /health HTTP/1.1\" 200"), "{log}");
    assert!(said.contains("replay.localhost"), "{said}");
    site.is_sound();
}

#[test]
fn others_write_while_it_serves_and_it_serves_what_they_wrote() {
    let site = Site::filled();
    let portal = Portal::begin(&site, &[]);
    site.write("more.warc.gz", Warc::gzip().page("http://more.example/", "2021-01-01T00:00:00Z", "more").bytes);
    assert_eq!(portal.get("/web/20210101000000id_/http://more.example/").0, 404);
    site.skep(&["add", "more.warc.gz"]).exits(0);
    assert_eq!(portal.get("/web/20210101000000id_/http://more.example/").1, "more");
    site.skep(&["remove", "http://more.example/", "--reason", "a test"]).exits(0);
    assert_eq!(portal.get("/web/20210101000000id_/http://more.example/").0, 404);
    assert_eq!(portal.end().0, 0);
}

#[test]
fn a_second_one_is_served_by_the_owner_and_ends_alone() {
    let site = Site::filled();
    let owner = Portal::begin(&site, &[]);
    let guest = Portal::begin(&site, &["--scripts", "no"]);
    assert_ne!(owner.address, guest.address);
    for portal in [&owner, &guest] {
        assert_eq!(portal.get("/health").0, 200);
    }
    let (address, (code, log, said)) = (guest.address.clone(), guest.end());
    assert_eq!(code, 0, "{said}");
    assert!(log.contains("GET /health"), "{log}");
    assert!(TcpStream::connect(&address).is_err(), "it ended");
    assert_eq!(owner.get("/health").0, 200, "the owner goes on");
    // A guest that is killed is not served for ever.
    let mut killed = Portal::begin(&site, &[]);
    killed.child.kill().expect("it is killed");
    killed.child.wait().expect("it is gone");
    while TcpStream::connect(&killed.address).is_ok() {
        std::thread::yield_now();
    }
    assert_eq!(owner.end().0, 0);
    site.is_sound();
}

#[test]
fn what_cannot_be_is_said_before_anything_is_served() {
    let site = Site::filled();
    site.write("rules.toml", "[[rule]]\nurls = [\"a\"]\naction = \"hide\"\n");
    site.write("auth.toml", "reading = \"perhaps\"\n");
    site.skep(&["serve", "--rules", "rules.toml"]).fails("the rules make no sense");
    site.skep(&["serve", "--auth", "auth.toml"]).fails("the file of tokens makes no sense");
    site.skep(&["serve", "--rules", "absent.toml"]).fails("cannot read");
    site.skep(&["serve", "--listen", "nowhere"]).fails("is no address").hints("127.0.0.1:7070");
    site.skep(&["serve", "--tls", "one.pem"]).fails("does not name two files");
    site.skep(&["serve", "--listen", "127.0.0.1:0", "--replay-origin", "replay"]).fails("is not an origin");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    site.skep(&["serve", "--listen", &address]).fails("cannot listen").hints("--listen");
    Site::new().skep(&["serve"]).fails("is not an archive");
}

#[test]
fn a_page_of_another_site_changes_nothing_here() {
    let site = Site::filled();
    let portal = Portal::begin(&site, &[]);
    let post = |more: &str| {
        let mut stream = TcpStream::connect(&portal.address).expect("a connection");
        let head = format!("POST /seen HTTP/1.1\r\nHost: {}\r\n{more}Content-Length: 0\r\n", portal.address);
        write!(stream, "{head}Connection: close\r\n\r\n").expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };
    assert!(post("Origin: https://evil.example\r\n").contains("page of another site"));
    assert!(post("Sec-Fetch-Site: cross-site\r\n").contains("page of another site"));
    assert!(post("").contains("Nobody may write here"));
    assert_eq!(portal.end().0, 0);
}

#[test]
fn rules_hide_from_everybody() {
    let site = Site::filled();
    site.write("rules.toml", "[[rule]]\nurls = [\"*.example.org\"]\naction = \"block\"\n");
    let portal = Portal::begin(&site, &["--rules", "rules.toml"]);
    assert_eq!(portal.get(&format!("/web/20170101100000id_/{HOME}")).0, 404);
    assert_eq!(portal.get("/cdx?url=example.org").1.lines().filter(|line| line.contains("org,example)/")).count(), 0);
    assert_eq!(portal.end().0, 0);
}
