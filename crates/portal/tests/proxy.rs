//! The proxy: the past under its own addresses, also those of https.

mod site;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use site::{Got, Site, Warc, ask, converse};
use skep_portal::Settings;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

fn site() -> Site {
    let moved = b"HTTP/1.1 301 Moved\r\nLocation: https://example.org/\r\nStrict-Transport-Security: max-age=9\r\nContent-Length: 0\r\n\r\n";
    let with_cookie = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: a=b\r\nAccess-Control-Allow-Origin: *\r\n\r\n<a href=/x>new</a>";
    let warc = Warc::new()
        .answer("http://example.org/", "2014-01-01T00:00:00Z", moved)
        .page("https://example.org/", "2014-01-01T00:00:01Z", "text/html", b"<a href=/x>old</a>")
        .answer("https://example.org/", "2016-01-01T00:00:00Z", with_cookie);
    Site::with(&[("c", "a.warc.gz", warc.bytes)], |settings| Settings {
        proxy: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        ..settings
    })
}

fn plain(site: &Site, url: &str, headers: &[(&str, &str)]) -> Got {
    ask(site.serving.proxy_address().expect("a proxy"), "GET", url, headers, b"")
}

/// Through a tunnel to a server that proves itself by the proxy's authority.
fn secure(site: &Site, host: &str, path: &str) -> Got {
    let mut stream = TcpStream::connect(site.serving.proxy_address().expect("a proxy")).expect("a connection");
    write!(stream, "CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n").expect("it is sent");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer");
        head.extend(byte);
    }
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
    let authority = plain(site, "http://skep.archive/ca.pem", &[]).is(200);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&authority.body).expect("a certificate")).expect("an authority");
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).expect("a name");
    let client = rustls::ClientConnection::new(Arc::new(config), name).expect("a client");
    converse(rustls::StreamOwned::new(client, stream), host, "GET", path, &[], b"")
}

#[test]
fn the_past_is_under_its_own_addresses() {
    let site = site();
    let moved = plain(&site, "http://example.org/", &[]);
    moved.leads_to(301, "https://example.org/");
    assert_eq!(moved.header("strict-transport-security"), None);
    let new = secure(&site, "example.org", "/").is(200);
    assert_eq!(new.text(), "<a href=/x>new</a>", "nothing is rewritten");
    assert_eq!((new.header("set-cookie"), new.header("access-control-allow-origin")), (None, Some("*")));
    assert_eq!(new.header("memento-datetime"), Some("Fri, 01 Jan 2016 00:00:00 GMT"));
    assert_eq!(new.header("cache-control"), Some("no-store"));
    secure(&site, "example.org", "/nothing").is(404);
    plain(&site, "http://nothing.example/", &[]).is(404);
}

/// Sets the time as a reader does: with what stands on the proxy's own page.
fn set_time(site: &Site, time: &str) {
    let page = plain(site, &format!("http://skep.archive/{time}"), &[]).is(200).text();
    let (_, rest) = page.split_once("name=\"word\" value=\"").expect("a form");
    let (word, _) = rest.split_once('"').expect("a value");
    plain(site, &format!("http://skep.archive/?word={word}&time={time}"), &[]).leads_to(303, "http://skep.archive/");
}

#[test]
fn the_time_can_be_set() {
    let site = site();
    set_time(&site, "2014");
    assert!(plain(&site, "http://skep.archive/", &[]).is(200).text().contains("Wed, 31 Dec 2014"));
    assert_eq!(secure(&site, "example.org", "/").is(200).text(), "<a href=/x>old</a>");
    set_time(&site, "now");
    assert_eq!(secure(&site, "example.org", "/").is(200).text(), "<a href=/x>new</a>");
    plain(&site, "http://skep.archive/whenever", &[]).is(404);
    let wrong = [("Accept-Datetime", "soon")];
    plain(&site, "http://example.org/", &wrong).is(400);
}

#[test]
fn a_page_of_the_past_cannot_set_the_time() {
    let site = site();
    for picture in ["/2014", "/?time=2014", "/?time=2014&word=", "/2014?word=0123456789abcdef0123456789abcdef"] {
        let shown = plain(&site, &format!("http://skep.archive{picture}"), &[]).is(200);
        let policy = shown.header("content-security-policy").unwrap_or_default();
        assert!(policy.contains("frame-ancestors 'self'"), "nor show it as its own: {policy}");
        assert_eq!(shown.header("access-control-allow-origin"), None, "nor read it");
        assert_eq!(secure(&site, "example.org", "/").is(200).text(), "<a href=/x>new</a>", "{picture}");
    }
}

#[test]
fn it_is_a_proxy_and_nothing_else() {
    let site = site();
    plain(&site, "/health", &[]).is(400);
    let proxy = site.serving.proxy_address().unwrap();
    ask(proxy, "POST", "http://example.org/", &[], b"x").is(405);
    // Its authority stays the same.
    let kept = std::fs::read_to_string(site.path("archive/settings/proxy-ca.pem")).unwrap();
    assert!(kept.ends_with(&plain(&site, "http://skep.archive/ca.pem", &[]).is(200).text()));
}

#[test]
fn a_token_opens_it_too() {
    let hash = skep_warc::digest::Digest::of(skep_warc::digest::Algorithm::Sha256, b"key").hex();
    let users = format!("reading = \"token\"\n[[token]]\nsha256 = \"{hash}\"\nmay = \"read\"");
    let site = Site::with(&[], |settings| Settings {
        proxy: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        access: skep_portal::Access::default().with_users(&users).unwrap(),
        ..settings
    });
    let refused = plain(&site, "http://skep.archive/", &[]).is(407);
    assert!(refused.header("proxy-authenticate").is_some());
    plain(&site, "http://skep.archive/", &[("Proxy-Authorization", "Bearer key")]).is(200);
}

#[test]
fn a_portal_can_speak_tls() {
    let key = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (chain, secret) = (folder.path().join("chain.pem"), folder.path().join("key.pem"));
    std::fs::write(&chain, key.cert.pem()).unwrap();
    std::fs::write(&secret, key.signing_key.serialize_pem()).unwrap();
    let site = Site::with(&[], |settings| Settings { tls: Some((chain.clone(), secret.clone())), ..settings });
    let mut roots = rustls::RootCertStore::empty();
    roots.add(key.cert.der().clone()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = rustls::ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
    let stream = TcpStream::connect(site.serving.address()).unwrap();
    let got = converse(rustls::StreamOwned::new(client, stream), "localhost", "GET", "/health", &[], b"");
    assert_eq!(got.status, 200);
    assert_eq!(
        site.serving.replay_origin(),
        Some(format!("https://replay.localhost:{}", site.serving.address().port()).as_str())
    );
    std::fs::write(&secret, "no key").unwrap();
    let mut settings = Settings::at(([127, 0, 0, 1], 0).into());
    settings.tls = Some((chain, secret));
    assert!(skep_portal::serve(site.archive.clone(), settings).is_err());
}
