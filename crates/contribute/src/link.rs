//! Speaks to a node: over HTTPS, or over plain HTTP on this machine only; each answer signed by the key that was seen first.

use std::cell::Cell;
use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::Request as HttpRequest;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use skep_archive::Identity;
use skep_url::Url;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::book::unhex;
use crate::broker::is_refused_at;
use crate::envelope;
use crate::key;
use crate::limits::{MESSAGE_BYTES_MAX, PORTS, SHUNNED_MAX};
use crate::message::{Answer, Refusal, Request};
use crate::neighbours;
use crate::node::hex;
use crate::own_network::OwnNetwork;
use crate::pipe::Setup;
use crate::trust::Key;
use crate::work::Whose;

/// Where a node takes messages.
pub const PATH: &str = "/contribute";
/// The header in which it says from where the contributor speaks.
pub const SEEN_FROM: &str = "skep-seen-from";
/// One message and its answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why nothing came of a message.
#[derive(Debug)]
pub enum NoAnswer {
    /// The node cannot be reached, or broke off: try again.
    Broken(String),
    /// Trying again changes nothing until a person does something.
    Never(String),
}

/// A link to a node.
pub struct Link {
    /// The node.
    pub node: Url,
    /// The key of another one, to which it speaks through that.
    beyond: Option<Key>,
    /// The one that the owner named: it may be anywhere.
    home: Url,
    /// Nodes that want nothing of us.
    shunned: HashSet<Key>,
    /// The owner lets private addresses and other ports be reached, also where the node advises it.
    allow_private: bool,
    folder: PathBuf,
    identity: Identity,
    pinned: Option<[u8; 32]>,
    /// Ahead of our clock is theirs, in milliseconds.
    pub offset_ms: i64,
    from: Option<IpAddr>,
    /// From where it speaks, as the node sees it: where it is behind a router, the address of that.
    pub seen_from: Option<IpAddr>,
    tls: Arc<rustls::ClientConfig>,
    connection: Option<SendRequest<Full<Bytes>>>,
    /// Bytes that went over its connections, both ways, since somebody asked.
    bytes: Rc<Cell<u64>>,
}

impl Link {
    /// To this node, with the key in this folder, by the owner's rules.
    pub fn new(node: &Url, folder: PathBuf, setup: &Setup) -> Result<Link, String> {
        check(node)?;
        let identity = key::own(&folder)?;
        let pinned = key::pinned(&folder, node.as_str())?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(pem) = &setup.roots_pem {
            let given = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
            roots.add_parsable_certificates(given);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Link {
            node: node.clone(),
            beyond: None,
            home: node.clone(),
            shunned: HashSet::new(),
            allow_private: setup.allow_private,
            folder,
            identity,
            pinned,
            offset_ms: 0,
            from: setup.from,
            seen_from: None,
            tls: Arc::new(tls),
            connection: None,
            bytes: Rc::default(),
        })
    }

    /// Bytes that went over the line since this was last asked, whatever came of them: to agree on keys, to say something, and to hear it.
    pub fn spent(&self) -> u64 {
        self.bytes.take()
    }

    /// Our public key.
    pub fn key(&self) -> [u8; 32] {
        self.identity.public()
    }

    /// By what results for this node are known; zeros before it has answered.
    pub fn whose(&self) -> Whose {
        self.pinned.as_ref().map_or([0; 8], crate::message::first)
    }

    /// The node to which it speaks, for a person.
    pub fn name(&self) -> String {
        match &self.beyond {
            Some(node) => format!("{}, through {}", &hex(node)[..8], self.node),
            None => self.node.to_string(),
        }
    }

    /// Does it speak to the node that the owner named?
    pub fn is_home(&self) -> bool {
        self.beyond.is_none() && self.is_of_owner()
    }

    /// Is it the owner who named whom it connects to?
    fn is_of_owner(&self) -> bool {
        self.node.as_str() == self.home.as_str()
    }

    /// Does it speak through another node, which passes on less at once?
    pub fn is_through(&self) -> bool {
        self.beyond.is_some()
    }

    /// Back to the node that the owner named.
    pub fn go_home(&mut self) -> Result<(), String> {
        self.to(self.home.clone())
    }

    /// The node to which it speaks wants nothing of us: home, and not there again.
    pub fn shun(&mut self) -> Result<(), String> {
        if let Some(key) = self.pinned.filter(|_| self.shunned.len() < SHUNNED_MAX) {
            self.shunned.insert(key);
        }
        self.go_home()
    }

    /// Goes to another node, as this one advised: to its address, or through this one. What holds for sites holds for an address: no node leads
    /// into its owner's network.
    pub fn go(&mut self, address: &str) -> Result<(), String> {
        if let Some(key) = address.strip_prefix(PATH).and_then(|rest| rest.strip_prefix('/')) {
            let key = unhex(key).ok_or_else(|| format!("{address:?} is no node"))?;
            if self.shunned.contains(&key) {
                return Err(format!("{} wanted nothing of us", &hex(&key)[..8]));
            }
            if key::pinned(&self.folder, self.home.as_str())? == Some(key) {
                return self.go_home();
            }
            // Whoever answers has to be that one.
            (self.beyond, self.pinned) = (Some(key), Some(key));
            return Ok(());
        }
        let node = Url::parse(address).map_err(|_| format!("{address:?} is no URL"))?;
        check(&node)?;
        let ports = [PORTS[0], PORTS[1], self.home.port()];
        let of_owner = node.address().is_some_and(|ip| !self.admits(ip));
        if of_owner || is_refused_at(&node, &ports, self.allow_private).is_some() {
            return Err(format!("{node} is refused by its owner's rules"));
        }
        if key::pinned(&self.folder, node.as_str())?.is_some_and(|key| self.shunned.contains(&key)) {
            return Err(format!("{node} wanted nothing of us"));
        }
        self.to(node)
    }

    fn admits(&self, ip: IpAddr) -> bool {
        let is_public = || skep_url::address::class(ip) == skep_url::address::Class::Public;
        self.allow_private || is_public() && !OwnNetwork::look().seen_from(self.seen_from).holds(ip)
    }

    fn to(&mut self, node: Url) -> Result<(), String> {
        self.pinned = key::pinned(&self.folder, node.as_str())?;
        if node.as_str() != self.node.as_str() {
            self.connection = None;
        }
        (self.node, self.beyond) = (node, None);
        Ok(())
    }

    /// Says some things and hears an answer to each. A clock that is off is corrected once.
    pub async fn say(&mut self, requests: &[Request], now_ms: impl Fn() -> i64) -> Result<Vec<Answer>, NoAnswer> {
        let mut answers = self.once(requests, &now_ms).await?;
        if answers == [Answer::Refused { why: Refusal::Clock }] {
            answers = self.once(requests, &now_ms).await?;
        }
        if answers.len() != requests.len() {
            // What makes no sense as a whole is refused as a whole.
            let why = match answers[..] {
                [Answer::Refused { why }] => why.text(),
                _ => "the node answers something else than it was asked",
            };
            return Err(NoAnswer::Broken(why.into()));
        }
        Ok(answers)
    }

    async fn once(&mut self, requests: &[Request], now_ms: &impl Fn() -> i64) -> Result<Vec<Answer>, NoAnswer> {
        let node = self.pinned.unwrap_or([0; 32]);
        let sealed = envelope::seal_requests(requests, &node, &self.identity, now_ms().saturating_add(self.offset_ms));
        let signature = envelope::signature_of(&sealed);
        let bytes = match timeout(PATIENCE, self.post(sealed)).await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(why)) => {
                self.connection = None;
                return Err(NoAnswer::Broken(why));
            }
            Err(_) => {
                self.connection = None;
                return Err(NoAnswer::Broken("no answer in time".into()));
            }
        };
        let opened = envelope::open_answers(&bytes, &signature)
            .map_err(|wrong| NoAnswer::Broken(format!("what answered is no node of this kind ({wrong:?})")))?;
        match self.pinned {
            None => {
                key::pin(&self.folder, self.home.as_str(), self.node.as_str(), &opened.key).map_err(NoAnswer::Never)?;
                self.pinned = Some(opened.key);
            }
            Some(pinned) if pinned != opened.key => {
                if self.is_through() {
                    return Err(NoAnswer::Broken(format!("another node than {} answers", self.name())));
                }
                return Err(NoAnswer::Never(format!(
                    "{} shows another key than the one it had: somebody else answers in its name, or it was set up anew; if that is \
                     so, remove its line from {}",
                    self.node,
                    self.folder.join(key::NODES).display()
                )));
            }
            Some(_) => {}
        }
        self.offset_ms = opened.time_ms.saturating_sub(now_ms());
        Ok(opened.message)
    }

    async fn post(&mut self, body: Vec<u8>) -> Result<Bytes, String> {
        let body = Bytes::from(body);
        // A connection that stood may have been closed meanwhile: then a new one is made, once.
        if let Some(mut connection) = self.connection.take()
            && connection.ready().await.is_ok()
            && let Ok(bytes) = self.exchange(&mut connection, body.clone()).await
        {
            self.connection = Some(connection);
            return Ok(bytes);
        }
        let mut connection = self.connect().await.map_err(|error| format!("cannot reach {}: {error}", self.node))?;
        let bytes = self.exchange(&mut connection, body).await?;
        self.connection = Some(connection);
        Ok(bytes)
    }

    async fn exchange(&mut self, connection: &mut SendRequest<Full<Bytes>>, body: Bytes) -> Result<Bytes, String> {
        let host = match self.node.port() == if self.node.is_https() { 443 } else { 80 } {
            true => self.node.host_name().to_owned(),
            false => format!("{}:{}", self.node.host_name(), self.node.port()),
        };
        let path = self.beyond.as_ref().map_or_else(|| PATH.to_owned(), neighbours::through);
        let request =
            HttpRequest::post(path).header("host", host).body(Full::new(body)).map_err(|error| error.to_string())?;
        let answer = connection.send_request(request).await.map_err(|error| error.to_string())?;
        let status = answer.status();
        if !status.is_success() {
            return Err(match status.as_u16() {
                _ if self.is_through() => format!("{} answered {status}", self.name()),
                404 => format!("{} takes no contributors; it has to be started with --contributors", self.node),
                _ => format!("{} answered {status}", self.node),
            });
        }
        let seen_from = answer.headers().get(SEEN_FROM).and_then(|value| value.to_str().ok()?.parse().ok());
        self.seen_from = seen_from.or(self.seen_from);
        let body =
            Limited::new(answer.into_body(), MESSAGE_BYTES_MAX).collect().await.map_err(|error| error.to_string())?;
        Ok(body.to_bytes())
    }

    async fn connect(&self) -> io::Result<SendRequest<Full<Bytes>>> {
        let host = self.node.host_name();
        let found: Vec<SocketAddr> = match self.node.address() {
            Some(ip) => vec![SocketAddr::new(ip, self.node.port())],
            None => tokio::net::lookup_host((host, self.node.port())).await?.collect(),
        };
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in found {
            if !self.is_of_owner() && !self.admits(address.ip()) {
                last = io::Error::other("its address is refused by its owner's rules");
                continue;
            }
            // What is not protected by TLS stays on this machine, whatever a name resolves to.
            if !self.node.is_https() && !address.ip().is_loopback() {
                last = io::Error::other("plain HTTP is for this machine only");
                continue;
            }
            match self.dial(address).await {
                Ok(socket) => return self.shake(socket).await,
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn dial(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        if let Some(from) = self.from.filter(|from| from.is_ipv4() == address.is_ipv4()) {
            socket.bind(SocketAddr::new(from, 0))?;
        }
        timeout(Duration::from_secs(15), socket.connect(address)).await?
    }

    async fn shake(&self, socket: TcpStream) -> io::Result<SendRequest<Full<Bytes>>> {
        let _smaller_messages_wait_otherwise = socket.set_nodelay(true);
        let socket = Counted { inner: socket, bytes: self.bytes.clone() };
        if !self.node.is_https() {
            return begin(TokioIo::new(socket)).await;
        }
        let name = ServerName::try_from(self.node.host_name().to_owned()).map_err(io::Error::other)?;
        let connector = tokio_rustls::TlsConnector::from(self.tls.clone());
        begin(TokioIo::new(connector.connect(name, socket).await?)).await
    }
}

/// A connection whose bytes are counted as they go, below encryption.
struct Counted<S> {
    inner: S,
    bytes: Rc<Cell<u64>>,
}

impl<S> Counted<S> {
    fn count(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_add(bytes as u64));
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, into))?;
        self.count(into.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write(cx, bytes))?;
        self.count(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

async fn begin<S>(io: S) -> io::Result<SendRequest<Full<Bytes>>>
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin + 'static,
{
    let (sender, connection) = handshake(io).await.map_err(io::Error::other)?;
    tokio::task::spawn_local(async move {
        let _ended = connection.await;
    });
    Ok(sender)
}

/// HTTPS, or plain HTTP to this machine.
pub fn check(node: &Url) -> Result<(), String> {
    let here = node.address().map_or(node.host_name() == "localhost", |ip| ip.is_loopback());
    match node.is_https() || here {
        true => Ok(()),
        false => Err(format!("{node} is not https, and not on this machine")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(allow_private: bool) -> (tempfile::TempDir, Link) {
        let folder = tempfile::tempdir().unwrap();
        let home = Url::parse("http://127.0.0.1:7070/").unwrap();
        let setup = Setup { allow_private, ..Setup::default() };
        let link = Link::new(&home, folder.path().to_path_buf(), &setup).unwrap();
        (folder, link)
    }

    #[test]
    fn a_node_leads_nobody_into_his_own_network() {
        let (_folder, mut link) = link(false);
        for address in [
            "https://192.168.1.1/",
            "https://192.168.1.1:22/",
            "https://[fd00::1]/",
            "https://169.254.169.254/",
            "http://127.0.0.1:631/",
            "https://127.0.0.1:7070/",
            "https://router/",
            "https://printer.local/",
            "https://example.org:22/",
            "http://example.org/",
            "ftp://example.org/",
            "nonsense",
        ] {
            assert!(link.go(address).is_err(), "{address}");
            assert!(link.is_home(), "{address}");
        }
        for address in ["https://example.org/", "https://example.org:7070/"] {
            link.go(address).unwrap();
            assert!(!link.is_home(), "{address}");
        }
        link.go_home().unwrap();
        assert!(link.is_home());
    }

    #[test]
    fn its_own_router_is_his_network_too() {
        let (_folder, mut link) = link(false);
        link.seen_from = "93.184.215.14".parse().ok();
        assert!(link.go("https://93.184.215.14/").is_err() && link.is_home());
        link.go("https://93.184.215.15/").unwrap();
    }

    #[test]
    fn what_makes_no_sense_costs_as_much_as_it_is_long() {
        use std::io::{Read, Write};
        const LONG: usize = 300_000;
        let (_folder, mut link) = link(false);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let node = format!("http://{}/", listener.local_addr().unwrap());
        (link.node, link.home) = (Url::parse(&node).unwrap(), Url::parse(&node).unwrap());
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4_096];
            let read = stream.read(&mut request).unwrap();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG}\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(&vec![7; LONG]).unwrap();
            read
        });
        let said = tokio::task::LocalSet::new();
        let said = said.run_until(async { Ok(link.say(&[Request::Ask { bundles: 1 }], || 0).await.is_err()) });
        assert!(crate::block_on(said).unwrap(), "it is no answer");
        let read = answering.join().unwrap();
        assert!(link.spent() >= (read + LONG) as u64);
        assert_eq!(link.spent(), 0, "and is counted once");
    }

    #[test]
    fn through_a_node_it_speaks_to_another_and_to_none_that_wants_nothing_of_it() {
        let (_folder, mut link) = link(false);
        let (one, other) = (neighbours::through(&[1; 32]), neighbours::through(&[2; 32]));
        link.go(&one).unwrap();
        assert!(!link.is_home() && link.is_through());
        assert_eq!((link.pinned, link.node.as_str()), (Some([1; 32]), "http://127.0.0.1:7070/"));
        link.go(&other).unwrap();
        assert_eq!(link.pinned, Some([2; 32]), "from one to the next");
        link.shun().unwrap();
        assert!(link.is_home() && link.go(&other).is_err() && link.go(&one).is_ok());
        let home = "http://127.0.0.1:7070/";
        key::pin(&link.folder, home, home, &[3; 32]).unwrap();
        link.go(&neighbours::through(&[3; 32])).unwrap();
        assert!(link.is_home(), "that is where it began");
        for address in ["/contribute", "/contribute/", "/contribute/07", "/contribute/../x", "/other/00"] {
            assert!(link.go(address).is_err() && link.is_home(), "{address}");
        }
    }

    #[test]
    fn a_name_that_leads_there_is_not_followed() {
        let (_folder, mut link) = link(false);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // As if a name with a dot had resolved to it.
        link.node = Url::parse(&format!("https://localhost:{port}/")).unwrap();
        let tried = crate::block_on(async { Ok(link.connect().await.err().map(|error| error.to_string())) }).unwrap();
        assert!(tried.is_some_and(|why| why.contains("owner's rules")));
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "nobody came");
    }

    #[test]
    fn whose_owner_allows_it_goes_anywhere_but_in_the_clear_only_on_his_machine() {
        let (_folder, mut link) = link(true);
        for address in ["https://192.168.1.1:8443/", "http://127.0.0.1:7071/"] {
            link.go(address).unwrap();
        }
        assert!(link.go("http://192.168.1.1/").is_err());
    }
}
