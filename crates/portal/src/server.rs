//! The shell: sockets, connections, what every answer gets, and the end of it all.

use crate::answer::{self, Answer};
use crate::changes::Hub;
use crate::clients::Clients;
use crate::elsewhere::Asker;
use crate::fresh::Fresh;
use crate::limits::{
    CONNECTIONS_MAX, DRAIN_MS, HANDSHAKE_MS, READS_AT_ONCE_MAX, REQUEST_HEAD_BYTES_MAX, REQUEST_HEAD_MS,
};
use crate::metrics::Route;
use crate::portal::{Origin, Portal};
use crate::proxy::Proxy;
use crate::reply::Turns;
use crate::settings::{Lines, Settings};
use crate::visit::{self, Connection};
use crate::{access::May, log, routes, tls};
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, Response, StatusCode, header};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use skep_archive::Archive;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fmt, io};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

/// Why the portal cannot begin.
#[derive(Debug)]
pub enum Error {
    /// Nobody can listen there.
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// A setting makes no sense.
    Setting {
        /// Which, and why.
        what: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Listen { address, source } => write!(f, "cannot listen at {address}: {source}"),
            Error::Setting { what } => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}

/// A portal that serves. Dropping it stops it.
pub struct Serving {
    address: SocketAddr,
    replay: Origin,
    proxy: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    asker: Asker,
    thread: Option<JoinHandle<()>>,
}

/// Stops a portal, from wherever.
#[derive(Clone)]
pub struct Stop(watch::Sender<bool>);

impl Stop {
    /// No new connections; answers under way come to their end.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Serving {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where archived pages are shown: `scheme://host[:port]`; `None` for the portal's own name.
    pub fn replay_origin(&self) -> Option<&str> {
        match &self.replay {
            Origin::Own => None,
            Origin::Other { origin, .. } => Some(origin),
        }
    }

    /// Where the proxy listens, if there is one.
    pub fn proxy_address(&self) -> Option<SocketAddr> {
        self.proxy
    }

    /// Answers other nodes' portals.
    pub fn asker(&self) -> Asker {
        self.asker.clone()
    }

    /// Whether it has come to its end.
    pub fn has_stopped(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// What stops it.
    pub fn stopper(&self) -> Stop {
        Stop(self.stop.clone())
    }

    /// Waits until it has stopped.
    pub fn wait(mut self) {
        let _panicked_threads_have_said_so = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        let _panicked_threads_have_said_so = self.thread.take().map(JoinHandle::join);
    }
}

/// Serves an archive, on threads of its own, until it is stopped.
pub fn serve(archive: Arc<Archive>, settings: Settings) -> Result<Serving, Error> {
    let listener = bind(settings.listen)?;
    let address = listener.local_addr().map_err(|source| Error::Listen { address: settings.listen, source })?;
    let acceptor = settings.tls.as_ref().map(|(chain, key)| tls::acceptor(chain, key)).transpose()?;
    let replay = replay_origin(&settings, address)?;
    let loopback = address.ip().is_loopback();
    let (stop, stopped) = watch::channel(false);
    let portal = Portal::new(
        archive,
        settings.access.clone(),
        settings.clock.clone(),
        settings.talk.clone(),
        replay.clone(),
        settings.scripts.unwrap_or(loopback),
        Turns::new(READS_AT_ONCE_MAX),
        settings.text.clone(),
        Hub::new(settings.changes.clone()),
        Fresh::new(settings.watches.clone()),
        settings.contributors.clone(),
        settings.elsewhere.clone(),
        stopped.clone(),
    );
    let portal = Arc::new(portal);
    let asker = Asker::new(&portal);
    let (per_second, everybody) = settings.pace();
    let shell = Arc::new(Shell {
        router: routes::portal(portal.clone()),
        replay_router: routes::replay(portal.clone()),
        portal,
        clients: Mutex::new(Clients::new(per_second)),
        everybody,
        // Names that lead here from elsewhere are somebody's trick, unless the portal is meant to be reached from elsewhere.
        own_names_only: loopback && settings.replay_origin.is_none(),
        began: Instant::now(),
        log: settings.log.clone(),
    });
    let failed = |source| Error::Listen { address, source };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(READS_AT_ONCE_MAX + 8)
        .thread_name("skep-portal")
        .build()
        .map_err(failed)?;
    let proxy = match settings.proxy {
        Some(at) => Some((bind(at)?, Arc::new(Proxy::new(shell.portal.clone())?))),
        None => None,
    };
    let proxy_address = proxy.as_ref().and_then(|(listener, _)| listener.local_addr().ok());
    let thread = std::thread::Builder::new().name("skep-portal".into()).spawn(move || {
        runtime.block_on(async {
            let portal = accept(listener, Door::Portal(acceptor), shell.clone(), stopped.clone());
            match proxy {
                Some((listener, proxy)) => {
                    let proxy = accept(listener, Door::Proxy(proxy), shell, stopped);
                    let ((), ()) = tokio::join!(portal, proxy);
                }
                None => portal.await,
            }
        });
        runtime.shutdown_timeout(Duration::from_secs(1));
    });
    Ok(Serving { address, replay, proxy: proxy_address, stop, asker, thread: Some(thread.map_err(failed)?) })
}

pub(crate) fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    let failed = |source| Error::Listen { address, source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// Where archived pages are shown.
fn replay_origin(settings: &Settings, address: SocketAddr) -> Result<Origin, Error> {
    let Some(given) = &settings.replay_origin else {
        if !address.ip().is_loopback() {
            return Ok(Origin::Own);
        }
        let scheme = if settings.tls.is_some() { "https" } else { "http" };
        let host = format!("replay.localhost:{}", address.port());
        return Ok(Origin::Other { origin: format!("{scheme}://{host}"), host });
    };
    let wrong = || Error::Setting { what: format!("{given:?} is not an origin such as https://replay.example.org") };
    let url = skep_url::Url::parse(given).map_err(|_| wrong())?;
    if url.request_target() != "/" {
        return Err(wrong());
    }
    let usual = if url.is_https() { 443 } else { 80 };
    let port = if url.port() == usual { String::new() } else { format!(":{}", url.port()) };
    let host = format!("{}{port}", url.host_name());
    Ok(Origin::Other { origin: format!("{}://{host}", url.scheme()), host })
}

/// What all connections share.
struct Shell {
    portal: Arc<Portal>,
    router: Router,
    replay_router: Router,
    clients: Mutex<Clients>,
    everybody: bool,
    own_names_only: bool,
    began: Instant,
    log: Option<Lines>,
}

/// Which of the portal's sockets a request came to.
#[derive(Clone)]
enum Door {
    /// The portal's own.
    Portal(Option<TlsAcceptor>),
    /// The proxy's.
    Proxy(Arc<Proxy>),
    /// What a browser sends through the proxy to a server that it speaks TLS with.
    Tunnel(Arc<Proxy>, Arc<str>),
}

async fn accept(listener: TcpListener, door: Door, shell: Arc<Shell>, mut stopped: watch::Receiver<bool>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let accepted = async {
            let place = places.clone().acquire_owned().await.ok()?;
            Some((place, listener.accept().await))
        };
        let (place, stream, peer) = tokio::select! {
            accepted = accepted => match accepted {
                Some((place, Ok((stream, peer)))) => (place, stream, peer),
                // Out of descriptors: others have to end first.
                _ => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            },
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        let _smaller_answers_wait_otherwise = stream.set_nodelay(true);
        let tls = matches!(door, Door::Portal(Some(_)));
        let connection = Connection { peer: peer.ip().to_canonical(), tls };
        let (shell, watcher, door) = (shell.clone(), graceful.watcher(), door.clone());
        let mut ending = stopped.clone();
        tokio::spawn(async move {
            shell.portal.metrics.connections(1);
            let own = door.clone();
            let service = service(shell.clone(), connection, door);
            // A client that hangs up in the middle is no concern of ours.
            match own {
                Door::Portal(None) => {
                    let served = builder().serve_connection(TokioIo::new(stream), service);
                    let _hung_up = watcher.watch(served).await;
                }
                Door::Portal(Some(acceptor)) => {
                    let handshake = tokio::time::timeout(Duration::from_millis(HANDSHAKE_MS), acceptor.accept(stream));
                    if let Ok(Ok(stream)) = handshake.await {
                        let served = builder().serve_connection(TokioIo::new(stream), service);
                        let _hung_up = watcher.watch(served).await;
                    }
                }
                Door::Proxy(_) | Door::Tunnel(..) => {
                    let served = builder().serve_connection(TokioIo::new(stream), service).with_upgrades();
                    let mut served = std::pin::pin!(served);
                    let told = tokio::select! {
                        _hung_up = served.as_mut() => false,
                        () = told(&mut ending) => true,
                    };
                    if told {
                        served.as_mut().graceful_shutdown();
                        let _hung_up = served.await;
                    }
                    // Until here the end of it all waits for this connection.
                    drop(watcher);
                }
            }
            shell.portal.metrics.connections(-1);
            drop(place);
        });
    }
    drop(listener);
    let _cut_off_after_that = tokio::time::timeout(Duration::from_millis(DRAIN_MS), graceful.shutdown()).await;
}

/// Waits for the end.
async fn told(stopped: &mut watch::Receiver<bool>) {
    // A sender that is gone says the same.
    drop(stopped.wait_for(|stopped| *stopped).await);
}

fn builder() -> hyper::server::conn::http1::Builder {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(REQUEST_HEAD_MS))
        .max_buf_size(REQUEST_HEAD_BYTES_MAX);
    builder
}

type Answering = Pin<Box<dyn Future<Output = Result<Response<Counted>, Infallible>> + Send>>;

fn service(
    shell: Arc<Shell>,
    connection: Connection,
    door: Door,
) -> impl hyper::service::Service<Request<Incoming>, Response = Response<Counted>, Error = Infallible, Future = Answering>
+ Send
+ 'static {
    // Boxed, for what comes through a tunnel is served by the same function.
    hyper::service::service_fn(move |request| -> Answering {
        Box::pin(answer(shell.clone(), connection, door.clone(), request))
    })
}

/// A browser wants to speak TLS with a server of the past: we are that server.
fn tunnel(shell: &Arc<Shell>, connection: Connection, proxy: &Arc<Proxy>, request: &mut Request<Incoming>) -> Answer {
    let server: Option<Arc<str>> = request.uri().authority().map(|authority| authority.as_str().into());
    let acceptor = server.as_ref().and_then(|server| proxy.acceptor(server));
    let (Some(server), Some(acceptor)) = (server, acceptor) else {
        return answer::told(StatusCode::BAD_REQUEST, "Not a server", "CONNECT needs a name and a port.");
    };
    let (upgraded, shell, proxy) = (hyper::upgrade::on(request), shell.clone(), proxy.clone());
    tokio::spawn(async move {
        let Ok(stream) = upgraded.await else { return };
        let handshake = acceptor.accept(TokioIo::new(stream));
        let handshake = tokio::time::timeout(Duration::from_millis(HANDSHAKE_MS), handshake);
        let Ok(Ok(stream)) = handshake.await else { return };
        let connection = Connection { tls: true, ..connection };
        let service = service(shell, connection, Door::Tunnel(proxy, server));
        let _hung_up = builder().serve_connection(TokioIo::new(stream), service).await;
    });
    Response::new(Body::empty())
}

/// One request: who asks, by which name, how often; then its answer, counted and logged when its last byte is out.
async fn answer(
    shell: Arc<Shell>,
    connection: Connection,
    door: Door,
    mut request: Request<Incoming>,
) -> Result<Response<Counted>, Infallible> {
    let (since, time_ms) = (Instant::now(), shell.portal.now_ms());
    let tunnelled = match &door {
        Door::Proxy(proxy) if request.method() == Method::CONNECT => {
            Some(tunnel(&shell, connection, proxy, &mut request))
        }
        _ => None,
    };
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(connection);
    let text = |name| {
        parts.headers.get(name).map(|value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let mut counting = Counting {
        shell: shell.clone(),
        connection,
        since,
        time_ms,
        method: parts.method.to_string(),
        target: if shell.log.is_some() { parts.uri.to_string() } else { String::new() },
        referer: text(header::REFERER).unwrap_or_default(),
        agent: text(header::USER_AGENT).unwrap_or_default(),
        route: Route::Refused,
        status: 0,
        bytes: 0,
    };
    shell.portal.metrics.in_flight(1);
    let mut answer = match (refused(&shell, &door, connection.peer, &parts), tunnelled) {
        (Some(refused), _) => refused,
        (None, Some(tunnelled)) => routes::counted(tunnelled, Route::Proxy),
        (None, None) => match &door {
            Door::Portal(_) => by_name(&shell, parts, body).await,
            Door::Proxy(proxy) => routes::counted(proxy.answer(connection, &parts, None).await, Route::Proxy),
            Door::Tunnel(proxy, server) => {
                routes::counted(proxy.answer(connection, &parts, Some(server)).await, Route::Proxy)
            }
        },
    };
    counting.route = answer.extensions().get().copied().unwrap_or(counting.route);
    counting.status = answer.status().as_u16();
    let headers = answer.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if !headers.contains_key(header::REFERRER_POLICY) {
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    }
    Ok(answer.map(|body| Counted { body, counting }))
}

/// On the portal's own name everything else, on that of archived pages these.
async fn by_name(shell: &Shell, parts: axum::http::request::Parts, body: Incoming) -> Answer {
    let host = visit::host(&parts.headers, parts.uri.authority().map(|authority| authority.as_str()));
    let on_replay = matches!(&shell.portal.origin, Origin::Other { host: replay, .. } if *replay == host);
    let mut router = if on_replay { shell.replay_router.clone() } else { shell.router.clone() };
    match router.call(Request::from_parts(parts, Body::new(body))).await {
        Ok(answer) => answer,
        Err(never) => match never {},
    }
}

/// Why a request is not even looked at.
fn refused(shell: &Shell, door: &Door, peer: IpAddr, parts: &axum::http::request::Parts) -> Option<Answer> {
    if shell.everybody || !peer.is_loopback() {
        let now_ms = shell.began.elapsed().as_millis() as u64;
        let mut clients = shell.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(seconds) = clients.take(peer, now_ms) {
            let mut answer = answer::told(
                StatusCode::TOO_MANY_REQUESTS,
                "Too many requests",
                "Too many requests came from your address; ask more slowly.",
            );
            answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            return Some(answer);
        }
    }
    let host = visit::host(&parts.headers, parts.uri.authority().map(|authority| authority.as_str()));
    let at_portal = matches!(door, Door::Portal(_));
    if at_portal && shell.own_names_only && !is_own_name(&host) {
        let told = "This portal serves its own machine only and does not answer to this name. \
                    Behind a proxy it is started with --replay-origin.";
        return Some(answer::told(StatusCode::MISDIRECTED_REQUEST, "Not my name", told));
    }
    if at_portal && is_anothers_wish(parts, &host) {
        let told = "A page of another site cannot change anything here, whatever its visitor may do.";
        return Some(answer::told(StatusCode::FORBIDDEN, "Not from there", told));
    }
    // What comes through a tunnel was let in when the tunnel was made.
    let let_in = matches!(door, Door::Tunnel(..)) || at_portal && parts.uri.path() == "/health";
    if !let_in && shell.portal.access.may(&parts.headers) == May::Nothing {
        let (status, name) = match at_portal {
            true => (StatusCode::UNAUTHORIZED, header::WWW_AUTHENTICATE),
            false => (StatusCode::PROXY_AUTHENTICATION_REQUIRED, header::PROXY_AUTHENTICATE),
        };
        let mut answer = answer::told(status, "A token is needed", "Reading this archive needs a token.");
        let asked = HeaderValue::from_static("Basic realm=\"archive\", charset=\"UTF-8\"");
        answer.headers_mut().insert(name, asked);
        return Some(answer);
    }
    None
}

/// Whether a page of another site wants something changed. Browsers send a password that was typed once along with whatever a page
/// sends, and say where the page is from; programs say neither.
fn is_anothers_wish(parts: &axum::http::request::Parts, host: &str) -> bool {
    if parts.method.is_safe() {
        return false;
    }
    let text = |name: &str| parts.headers.get(name).map(HeaderValue::as_bytes);
    match (text("sec-fetch-site"), text("origin")) {
        (Some(from), _) => !matches!(from, b"same-origin" | b"none"),
        (None, Some(origin)) => {
            let name = std::str::from_utf8(origin).ok().and_then(|origin| origin.split_once("://"));
            name.is_none_or(|(_, name)| !name.eq_ignore_ascii_case(host))
        }
        (None, None) => false,
    }
}

/// Whether a name stands for this machine, whoever asks.
fn is_own_name(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A request on its way: counted and logged when it is dropped, which is when its last byte is out or its client gone.
struct Counting {
    shell: Arc<Shell>,
    connection: Connection,
    since: Instant,
    time_ms: i64,
    method: String,
    target: String,
    referer: String,
    agent: String,
    route: Route,
    status: u16,
    bytes: u64,
}

impl Drop for Counting {
    fn drop(&mut self) {
        let took = self.since.elapsed();
        let metrics = &self.shell.portal.metrics;
        metrics.in_flight(-1);
        metrics.answered(self.route, self.status, self.bytes, took);
        if let Some(log) = &self.shell.log {
            let line = log::Line {
                peer: self.connection.peer,
                time_ms: self.time_ms,
                method: &self.method,
                target: &self.target,
                status: self.status,
                bytes: self.bytes,
                referer: &self.referer,
                agent: &self.agent,
                took,
            };
            log(&line.to_string());
        }
    }
}

/// A body whose bytes are counted.
struct Counted {
    body: Body,
    counting: Counting,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &frame {
            self.counting.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_names() {
        for own in
            ["localhost", "localhost:7070", "replay.localhost:1", "127.0.0.1:80", "127.9.9.9", "[::1]:7070", "[::1]"]
        {
            assert!(is_own_name(own), "{own}");
        }
        for other in ["evil.example", "evil.example:7070", "localhost.evil.example", "10.0.0.1", "notlocalhost", ""] {
            assert!(!is_own_name(other), "{other}");
        }
    }

    #[test]
    fn what_pages_of_others_want_is_told_from_what_is_asked_for() {
        let wish = |method: &str, headers: &[(&str, &str)]| {
            let request = headers
                .iter()
                .fold(Request::builder().method(method), |request, (name, value)| request.header(*name, *value));
            is_anothers_wish(&request.body(()).unwrap().into_parts().0, "archive.example:7070")
        };
        for own in [
            &[][..],
            &[("origin", "http://archive.example:7070")],
            &[("origin", "https://Archive.example:7070"), ("sec-fetch-site", "same-origin")],
            &[("sec-fetch-site", "none")],
        ] {
            assert!(!wish("POST", own), "{own:?}");
        }
        for others in [
            &[("origin", "https://evil.example")][..],
            &[("origin", "null")],
            &[("origin", "http://archive.example")],
            &[("sec-fetch-site", "cross-site"), ("origin", "http://archive.example:7070")],
            &[("sec-fetch-site", "same-site")],
        ] {
            assert!(wish("POST", others) && wish("DELETE", others), "{others:?}");
            assert!(!wish("GET", others) && !wish("HEAD", others), "{others:?}");
        }
    }

    #[test]
    fn origins() {
        let of = |listen: &str, given: Option<&str>| {
            let address: SocketAddr = listen.parse().unwrap();
            let settings = Settings { replay_origin: given.map(str::to_owned), ..Settings::at(address) };
            replay_origin(&settings, address)
        };
        let other = |origin: &str, host: &str| Origin::Other { origin: origin.into(), host: host.into() };
        assert_eq!(of("127.0.0.1:7070", None).unwrap(), other("http://replay.localhost:7070", "replay.localhost:7070"));
        assert_eq!(of("192.0.2.1:80", None).unwrap(), Origin::Own);
        assert_eq!(
            of("192.0.2.1:80", Some("https://Replay.example/")).unwrap(),
            other("https://replay.example", "replay.example")
        );
        assert_eq!(
            of("192.0.2.1:80", Some("http://r.example:81")).unwrap(),
            other("http://r.example:81", "r.example:81")
        );
        for wrong in ["replay.example", "ftp://a/", "https://a.example/path", ""] {
            assert!(of("192.0.2.1:80", Some(wrong)).is_err(), "{wrong}");
        }
    }
}
