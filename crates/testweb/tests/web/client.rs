//! A small HTTP/1.1 client over plain sockets, and what tests need around it.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use skep_testweb::{Plan, Settings, Web, World};

pub fn serve(plan: Plan) -> Web {
    serve_with(plan, Settings::default())
}

pub fn serve_with(plan: Plan, settings: Settings) -> Web {
    Web::start(World::build(plan).unwrap(), settings).unwrap()
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

pub trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// One connection, kept alive.
pub struct Client {
    stream: BufReader<Box<dyn Stream>>,
}

impl Client {
    pub fn plain(address: SocketAddr) -> Client {
        Client { stream: BufReader::new(Box::new(connect(address))) }
    }

    /// Verifies the host's certificate against an authority.
    pub fn secure(address: SocketAddr, host: &str, authority_pem: &str) -> io::Result<Client> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority_pem.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(host.to_string()).unwrap();
        let mut tls = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = connect(address);
        while tls.is_handshaking() {
            tls.complete_io(&mut stream)?;
        }
        Ok(Client { stream: BufReader::new(Box::new(StreamOwned::new(tls, stream))) })
    }

    pub fn get(&mut self, host: &str, path: &str, headers: &[(&str, &str)]) -> Response {
        self.send("GET", host, path, headers);
        self.receive(false).unwrap()
    }

    pub fn send(&mut self, method: &str, host: &str, path: &str, headers: &[(&str, &str)]) {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("user-agent")) {
            head += "User-Agent: tester/1.0\r\n";
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        self.write(format!("{head}\r\n").as_bytes());
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
        self.stream.get_mut().flush().unwrap();
    }

    pub fn receive(&mut self, head: bool) -> io::Result<Response> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status line");
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            let before = headers.insert(name.to_ascii_lowercase(), value.trim().to_string());
            assert!(before.is_none(), "{name} twice");
        }
        let mut body = Vec::new();
        if headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked") {
            loop {
                let mut size = String::new();
                self.stream.read_line(&mut size)?;
                let size = usize::from_str_radix(size.trim(), 16).expect("a chunk size");
                let mut chunk = vec![0; size + 2];
                self.stream.read_exact(&mut chunk)?;
                body.extend_from_slice(&chunk[..size]);
                if size == 0 {
                    break;
                }
            }
        } else if !head && status != 304 {
            let length = headers.get("content-length").and_then(|length| length.parse().ok()).expect("a length");
            body.resize(length, 0);
            self.stream.read_exact(&mut body)?;
        }
        Ok(Response { status, headers, body })
    }

    /// Reads until the server closes.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let _ = self.stream.read_to_end(&mut rest);
        rest
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    // No test waits this long; it only turns a hang into a failure.
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Connections to all hosts of a web, opened when first used.
pub struct Visitor<'w> {
    web: &'w Web,
    clients: BTreeMap<String, Client>,
}

impl<'w> Visitor<'w> {
    pub fn new(web: &'w Web) -> Visitor<'w> {
        Visitor { web, clients: BTreeMap::new() }
    }

    pub fn get(&mut self, url: &str, headers: &[(&str, &str)]) -> Response {
        let parsed = url::Url::parse(url).unwrap();
        let host = parsed.host_str().unwrap().to_string();
        let path = &parsed[url::Position::BeforePath..url::Position::AfterQuery];
        let client = self.clients.entry(format!("{} {host}", parsed.scheme())).or_insert_with(|| {
            let address = self.web.address(&host).unwrap_or_else(|| panic!("no host {host}"));
            match parsed.scheme() {
                "https" => Client::secure(address, &host, self.web.authority_pem()).unwrap(),
                _ => Client::plain(address),
            }
        });
        client.get(&host, path, headers)
    }
}
