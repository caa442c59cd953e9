//! A server that does what a test says, byte for byte, and a fetcher that finds it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use skep_fetch::{Ask, Dns, Exchange, Fetcher, Settings};
use skep_url::Url;

/// One connection, on the server's side.
pub struct Peer {
    pub stream: TcpStream,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Peer {
    /// Reads one request; `None` when the client has closed.
    pub fn request(&mut self) -> Option<String> {
        let mut bytes = Vec::new();
        let mut byte = [0];
        while !bytes.ends_with(b"\r\n\r\n") {
            match self.stream.read(&mut byte) {
                Ok(1) => bytes.push(byte[0]),
                _ => return None,
            }
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        self.requests.lock().unwrap().push(text.clone());
        Some(text)
    }

    /// Sends bytes; a client that has gone does not matter.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Waits until the client closes.
    pub fn until_closed(&mut self) {
        let mut sink = [0; 4096];
        while matches!(self.stream.read(&mut sink), Ok(1..)) {}
    }
}

/// A server on a loopback address, until the test ends.
pub struct Server {
    pub address: SocketAddr,
    pub connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Calls `script` for each connection, with its number from 0. When it returns, the connection is closed in good order.
    pub fn start(script: impl Fn(usize, &mut Peer) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (connections, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let server = Server { address, connections: connections.clone(), requests: requests.clone() };
        let script = Arc::new(script);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let number = connections.fetch_add(1, Ordering::SeqCst);
                let (script, requests) = (script.clone(), requests.clone());
                std::thread::spawn(move || {
                    let _ = stream.set_nodelay(true);
                    let mut peer = Peer { stream, requests };
                    script(number, &mut peer);
                    // The client's end comes before ours is dropped, so that no reset overtakes the answer.
                    let _ = peer.stream.shutdown(Shutdown::Write);
                    peer.until_closed();
                });
            }
        });
        server
    }

    /// Answers every request of every connection with these bytes.
    pub fn always(answer: impl Into<Vec<u8>>) -> Server {
        let answer = answer.into();
        Server::start(move |_, peer| while peer.request().is_some() && peer.send(&answer) {})
    }

    /// Answers the first request of every connection with these bytes and closes.
    pub fn once(answer: impl Into<Vec<u8>>) -> Server {
        let answer = answer.into();
        Server::start(move |_, peer| {
            peer.request();
            peer.send(&answer);
        })
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn url(&self, path: &str) -> Url {
        Url::parse(&format!("http://a.test{path}")).unwrap()
    }

    /// Settings under which all names below `test` lead here.
    pub fn settings(&self) -> Settings {
        let mut settings = Settings::new("skep-test/1");
        settings.allow_private = true;
        settings.resolve = vec![format!("*.test={}", self.address).parse().unwrap()];
        settings
    }

    pub fn fetcher(&self) -> Fetcher {
        fetcher(self.settings())
    }

    /// One exchange on a session of its own.
    pub async fn get(&self, path: &str) -> Exchange {
        get(self.settings(), &self.url(path)).await
    }
}

pub fn fetcher(settings: Settings) -> Fetcher {
    let dns = Arc::new(Dns::new(&settings).unwrap());
    Fetcher::new(Arc::new(settings), dns).unwrap()
}

pub async fn get(settings: Settings, url: &Url) -> Exchange {
    fetcher(settings).session(url).get(&Ask::new(url)).await
}

/// All bytes of the answer.
pub fn bytes(exchange: &Exchange) -> Vec<u8> {
    exchange.response.bytes(0, u64::MAX).unwrap().into_owned()
}

/// The names of what was odd.
pub fn notes(exchange: &Exchange) -> Vec<&'static str> {
    exchange.notes.iter().map(|note| note.id()).collect()
}

pub fn fault(exchange: &Exchange) -> &'static str {
    exchange.fault.as_ref().map_or("", |fault| fault.id())
}
