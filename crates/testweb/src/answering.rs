//! From an open connection to an audited answer: the flow of one request, read top to bottom.

use std::convert::Infallible;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use skep_url::robots;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::answer::{Answer, Body};
use crate::audit::{Arrival, Departure, Ticket};
use crate::clock::Time;
use crate::conditional::{self, Reply};
use crate::connection::{Ending, Seat, Watch, WatchedStream};
use crate::handshake;
use crate::hostile::script::Script;
use crate::hostile::{Act, Asked, What};
use crate::limits;
use crate::plan::Scheme;
use crate::playing::{self, Ended, Peer, Told};
use crate::proof;
use crate::sending::{Sending, Sent};
use crate::server::{Shared, told_to_stop};
use crate::world::Host;

/// First byte of a TLS handshake record; no HTTP method begins with it.
const TLS_HANDSHAKE: u8 = 0x16;

/// Takes connections on one address until told to stop.
pub(crate) async fn accept(shared: Arc<Shared>, mut listener: TcpListener, mut stopped: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    let mut cut = shared.cut.subscribe();
    loop {
        if *cut.borrow_and_update() {
            let Ok(address) = listener.local_addr() else { break };
            drop(listener);
            connections.abort_all();
            while connections.join_next().await.is_some() {}
            tokio::select! {
                _ = cut.wait_for(|cut| !cut) => {}
                () = told_to_stop(&mut stopped) => break,
            }
            match crate::server::bind(address) {
                Ok(again) => listener = again,
                Err(_) => break,
            }
        }
        let permit = tokio::select! {
            permit = shared.connections.clone().acquire_owned() => permit,
            () = told_to_stop(&mut stopped) => break,
        };
        let taken = tokio::select! {
            taken = listener.accept() => taken,
            _ = cut.changed() => continue,
            () = told_to_stop(&mut stopped) => break,
        };
        let Ok((stream, _)) = taken else {
            // Out of descriptors, or the peer left before it was taken: let others finish first.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let (shared, stopped) = (shared.clone(), stopped.clone());
        connections.spawn(async move {
            let _permit = permit;
            // A peer that breaks off or talks nonsense is that peer's affair.
            let _ = connection(shared, stream, stopped).await;
        });
        while connections.try_join_next().is_some() {}
    }
    while connections.join_next().await.is_some() {}
}

async fn connection(shared: Arc<Shared>, stream: TcpStream, mut stopped: watch::Receiver<bool>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let ends = Ends { at: stream.local_addr()?.ip(), from: stream.peer_addr()?.ip() };
    let _open = Open::new(shared.clone(), ends.at);
    let patience = Duration::from_millis(limits::REQUEST_HEAD_MS);
    let mut first = [0];
    let sniffed = tokio::select! {
        sniffed = timeout(patience, stream.peek(&mut first)) => sniffed??,
        () = told_to_stop(&mut stopped) => 0,
    };
    if sniffed == 0 {
        return Ok(());
    }
    if first[0] == TLS_HANDSHAKE {
        match handshake::take(&shared, stream, stopped.clone()).await? {
            Some((stream, proven)) => talk(shared, stream, ends, true, proven, stopped).await,
            None => Ok(()),
        }
    } else {
        talk(shared, stream, ends, false, false, stopped).await
    }
}

/// Speaks HTTP until the peer leaves, is silent for too long, or the web stops. `proven`: the connection is in the proofs.
async fn talk(
    shared: Arc<Shared>,
    stream: impl Peer,
    ends: Ends,
    secure: bool,
    proven: bool,
    mut stopped: watch::Receiver<bool>,
) -> io::Result<()> {
    let watch = Watch::new(Instant::now());
    let seat = Seat::new(stream);
    let stream = TokioIo::new(WatchedStream::new(seat.clone(), watch.clone()));
    let asked = Arc::new(AtomicBool::new(proven));
    let service = service_fn(|request| {
        let (shared, watch, seat) = (shared.clone(), watch.clone(), seat.clone());
        let first = !asked.swap(true, Ordering::Relaxed);
        async move { Ok::<_, Infallible>(answer(shared, watch, seat, ends, secure, first, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(limits::REQUEST_HEAD_MS))
        .max_buf_size(limits::REQUEST_HEAD_BYTES_MAX)
        .max_headers(limits::REQUEST_HEADERS_MAX)
        .auto_date_header(false)
        .serve_connection(stream, service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        done = connection.as_mut() => done.map_err(io::Error::other),
        () = told_to_stop(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await.map_err(io::Error::other)
        }
    }
}

/// One request: noted, judged, answered; its end is noted when the last byte is out. `first`: of its connection.
async fn answer<S: Peer>(
    shared: Arc<Shared>,
    watch: Arc<Watch<Passage>>,
    seat: Seat<S>,
    ends: Ends,
    secure: bool,
    first: bool,
    request: Request<Incoming>,
) -> Response<Sending<Passing>> {
    let address = ends.at;
    let first_byte = watch.take_first_byte();
    let now = shared.now(first_byte);
    let name = host_name(&request);
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_string();
    let world = shared.world.clone();
    let named = world.host(&name);
    let host = named.filter(|host| host.plan.addresses.contains(&address));
    let robots = path.split('?').next() == Some("/robots.txt")
        || host.is_some_and(|host| host.plan.robots.answer(&path, None, now).is_some());
    let mut passage = Passage::begin(&shared, &request, first_byte, ends, secure, &name, &path, robots);
    if let Some(host) = named {
        passage.host_of_plan = host.plan.name.clone();
        shared.proofs.note(&host.plan.name, |proof| {
            proof.requests += 1;
            proof.connections += u64::from(first);
        });
    } else if name.parse::<IpAddr>().is_ok() || name.starts_with('[') || name == "localhost" {
        shared.proofs.count(proof::WEB, "reached-by-address");
    }

    let (parts, body) = request.into_parts();
    let refuse = |status| conditional::reply(&Method::GET, &HeaderMap::new(), Answer::status(status), false, now);
    if !body.is_end_stream() && drain(body).await.is_err() {
        return send(watch, passage, refuse(413), true);
    }
    watch.body_was_read();
    let Some(host) = host else {
        if let Some(host) = named.filter(|host| host.plan.wildcard && host.plan.name != name) {
            shared.proofs.count(&host.plan.name, "reached");
        }
        return send(watch, passage, refuse(421), false);
    };

    let behaviour = shared.behaviour_to_answer(&host.plan.name).await;
    if behaviour.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(behaviour.delay_ms)).await;
    }
    let number = shared.count(&host.plan.name);
    let number_at_address = shared.count_at(address);
    let elsewhere = host.plan.scheme == Scheme::Https && !secure; // it is redirected first
    if let Some(hostile) = behaviour.as_hostile().filter(|_| !elsewhere) {
        let asked = Asked {
            host: &name,
            name: &host.plan.name,
            port: port_of(&host.base),
            scheme: if host.base.starts_with("https:") { "https://" } else { "http://" },
            path: &path,
            headers: &parts.headers,
            number,
            number_at_address,
            chance: host.chance,
            ordinary: &host.ordinary(now),
            now,
            begin: host.begin(),
        };
        if let Some(Act { form, what }) = hostile.act(&asked) {
            if let Some(form) = form {
                passage.misdeed(form);
            }
            return match what {
                What::Script(script) => perform(&shared, watch, seat, passage, script).await,
                What::Answer(said) => {
                    passage.learned = (path == "/robots.txt").then(|| match &said.body {
                        Body::Bytes(body) => rules(said.status, body),
                        Body::File { .. } => rules(said.status, b""),
                    });
                    send(
                        watch,
                        passage,
                        conditional::reply(&parts.method, &parts.headers, said, host.plan.gzip, now),
                        false,
                    )
                }
            };
        }
    }
    let instead = behaviour.instead(number);
    let (said, learned) = match instead {
        Some(refusal) => {
            let learned = (path == "/robots.txt").then(|| rules(refusal.status, b""));
            (Ok(refusal), learned)
        }
        None => ask(&shared, host, secure, &path, now).await,
    };
    passage.learned = learned;
    let said = said.unwrap_or_else(|e| Answer::plain(500, "text/plain; charset=utf-8", format!("{e}\n")));
    passage.retry_after_seconds = said.retry_after_seconds;
    if said.retry_after_as_date {
        // A date is written in whole seconds, so up to one less is meant.
        passage.retry_after_seconds = said.retry_after_seconds.map(|seconds| seconds.saturating_sub(1));
    }
    send(watch, passage, conditional::reply(&parts.method, &parts.headers, said, host.plan.gzip, now), false)
}

/// Plays a script instead of an answer. What is returned goes nowhere.
async fn perform<S: Peer>(
    shared: &Shared,
    watch: Arc<Watch<Passage>>,
    seat: Seat<S>,
    mut passage: Passage,
    script: Script,
) -> Response<Sending<Passing>> {
    passage.status = script.status;
    passage.retry_after_seconds = script.retry_after_seconds;
    passage.learned = script.robots.as_ref().map(|(status, body)| rules(*status, body));
    let mut close = true;
    if let Some(stream) = seat.take() {
        let (stream, ended) = playing::play(stream, &script, &mut passage, shared.stop.subscribe()).await;
        passage.given_up = ended == Ended::GivenUp;
        drop(passage);
        match stream {
            Some(stream) => {
                seat.give_back(stream);
                close = false;
            }
            None => seat.leave_empty(),
        }
    }
    let nothing = Body::Bytes(bytes::Bytes::new());
    let mut response = Response::new(Sending::new(nothing, Passing { watch, passage: None }));
    if close {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// `:PORT` of a base, or nothing.
fn port_of(base: &str) -> &str {
    base.rfind(':').map(|at| &base[at..]).filter(|port| !port.starts_with("://")).unwrap_or_default()
}

/// What the host says, and, when its robots.txt was asked, the rules that the visitor now knows.
async fn ask(
    shared: &Arc<Shared>,
    host: &Host,
    secure: bool,
    path: &str,
    now: Time,
) -> (io::Result<Answer>, Option<robots::Policy>) {
    let ask = move |host: &Host, shared: &Shared, path: &str| {
        let learned = (path == "/robots.txt").then(|| match shared.world.robots(secure, host, now) {
            Ok((status, body)) => rules(status, &body),
            Err(_) => rules(500, b""),
        });
        (host.answer(secure, path, now), learned)
    };
    if !host.blocks() {
        return ask(host, shared, path);
    }
    let (shared, name, path) = (shared.clone(), host.plan.name.clone(), path.to_string());
    let asked = tokio::task::spawn_blocking(move || {
        let host = shared.world.host(&name)?;
        Some(ask(host, &shared, &path))
    });
    match asked.await {
        Ok(Some(said)) => said,
        Ok(None) => (Ok(Answer::status(421)), None),
        Err(e) => (Err(io::Error::other(e)), None),
    }
}

/// The rules that an answer to the question for robots.txt makes.
fn rules(status: u16, body: &[u8]) -> robots::Policy {
    robots::Policy::of(robots::Answer::Response { status, body, retry_after_seconds: None, failing_for_seconds: 0 })
}

fn send(watch: Arc<Watch<Passage>>, mut passage: Passage, reply: Reply, close: bool) -> Response<Sending<Passing>> {
    passage.status = reply.status;
    let mut response = Response::new(Sending::new(reply.body, Passing { watch, passage: Some(passage) }));
    *response.status_mut() =
        http::StatusCode::from_u16(reply.status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in reply.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().append(name, value);
        }
    }
    if close {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The host a request names, without port, in lower case.
fn host_name(request: &Request<Incoming>) -> String {
    let named = || request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let authority = request.uri().authority().map(|authority| authority.as_str()).or_else(named).unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let name = match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => authority,
    };
    name.chars().take(253).collect::<String>().to_ascii_lowercase()
}

async fn drain(mut body: Incoming) -> io::Result<()> {
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(io::Error::other)?;
        bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
        if bytes > limits::REQUEST_BODY_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
    Ok(())
}

/// The two ends of a connection.
#[derive(Clone, Copy)]
struct Ends {
    at: IpAddr,
    from: IpAddr,
}

/// Counts a connection while it lives.
struct Open {
    shared: Arc<Shared>,
    address: IpAddr,
}

impl Open {
    fn new(shared: Arc<Shared>, address: IpAddr) -> Open {
        shared.auditor().connection(address, true);
        Open { shared, address }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.auditor().connection(self.address, false);
    }
}

/// A request on its way through, from its arrival in the auditor to its departure.
struct Passage {
    shared: Arc<Shared>,
    ticket: Option<Ticket>,
    secure: bool,
    host: String,
    learned: Option<robots::Policy>,
    status: u16,
    bytes: u64,
    retry_after_seconds: Option<u64>,
    left: bool,
    host_of_plan: String,
    misdeed: bool,
    given_up: bool,
    began: Instant,
}

impl Passage {
    fn begin(
        shared: &Arc<Shared>,
        request: &Request<Incoming>,
        first_byte: Instant,
        ends: Ends,
        secure: bool,
        host: &str,
        path: &str,
        robots: bool,
    ) -> Passage {
        let agent = request.headers().get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        let arrival = Arrival {
            at_us: shared.us(first_byte),
            now: shared.now(first_byte),
            address: ends.at,
            from: ends.from,
            secure,
            host,
            site: shared.site(host),
            method: request.method().as_str(),
            path,
            agent,
            robots,
        };
        let ticket = Some(shared.auditor().arrive(arrival));
        Passage {
            shared: shared.clone(),
            ticket,
            secure,
            host: host.into(),
            learned: None,
            status: 0,
            bytes: 0,
            retry_after_seconds: None,
            left: false,
            host_of_plan: String::new(),
            misdeed: false,
            given_up: false,
            began: first_byte,
        }
    }

    /// What follows is a misdeed, and proven as one.
    fn misdeed(&mut self, form: &str) {
        self.misdeed = true;
        self.shared.proofs.begin(&self.host_of_plan, form);
    }

    fn took(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        if self.misdeed {
            self.shared.proofs.note(&self.host_of_plan, |proof| proof.bytes += bytes as u64);
        }
    }
}

impl Told for Passage {
    fn sent(&mut self, bytes: usize) {
        self.took(bytes);
    }

    fn last(&mut self) {
        self.about_to_send();
    }
}

impl Ending for Passage {
    fn about_to_send(&mut self) {
        let (false, Some(ticket)) = (self.left, &self.ticket) else {
            return;
        };
        let now = Instant::now();
        let mut auditor = self.shared.auditor();
        if let Some(rules) = self.learned.take() {
            auditor.learn(self.secure, &self.host, rules, self.shared.now(now));
        }
        let departure = Departure { at_us: self.shared.us(now), status: self.status, bytes: self.bytes };
        auditor.leave(ticket, departure, self.retry_after_seconds);
        drop(auditor);
        self.left = true;
    }

    fn held_up(&mut self) {
        if let (true, Some(ticket)) = (self.left, &self.ticket) {
            self.shared.auditor().come_back(ticket);
            self.left = false;
        }
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        self.about_to_send(); // one that was given up has not left yet
        if self.misdeed {
            let held_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.shared.proofs.end(&self.host_of_plan, held_ms, self.given_up);
        }
        let Some(ticket) = self.ticket.take() else {
            return;
        };
        let mut auditor = self.shared.auditor();
        let line = auditor.depart(ticket, self.status, self.bytes).and_then(|request| serde_json::to_vec(request).ok());
        drop(auditor);
        if let (Some(mut line), Some(log)) = (line, self.shared.log().as_mut()) {
            line.push(b'\n');
            let _ = log.write_all(&line);
        }
    }
}

/// Keeps the passage with the body, and hands it to the connection when the body is done.
struct Passing {
    watch: Arc<Watch<Passage>>,
    passage: Option<Passage>,
}

impl Sent for Passing {
    fn sent(&mut self, bytes: usize) {
        if let Some(passage) = &mut self.passage {
            passage.took(bytes);
        }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        if let Some(passage) = self.passage.take() {
            self.watch.ends(passage);
        }
    }
}
