//! The control server: map, truth, audit, clock and behaviours over HTTP, for tests in any language. It is not audited.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::answer::Body;
use crate::audit::Auditor;
use crate::clock::Time;
use crate::hostile::{Form, Row, Side};
use crate::limits;
use crate::policy::Policy;
use crate::sending::Sending;
use crate::server::{Shared, told_to_stop};

const HELP: &str = "\
GET  /map                          where each host answers
GET  /authority.pem                the certificate to trust
GET  /truth[?at=TIME][&host=NAME]  every URL with status, size, digest, links: one JSON object per line
GET  /entry?url=URL[&at=TIME]      the truth about one URL
GET  /audit, /audit.txt            what the auditor found, as JSON or as a table
GET  /requests                     the requests it still keeps, one JSON object per line
POST /audit                        forget all; a JSON policy in the body is the new one
GET  /clock                        what the clock shows and how fast it runs
POST /clock?to=TIME&speed=N        set it (either or both)
POST /behaviour?host=NAME          a JSON behaviour in the body, e.g. {\"delay_ms\": 200}; NAME `*` is all hosts
GET  /rows                         the rows of the hostile web: number, name, what it does, how it is proven, forms
GET  /proofs[?host=NAME]           what the server knows of its misdeeds: connections, bytes, time, forms
POST /proofs                       forget them
POST /stop                         stop serving
TIME is 2020-01-31T10:00:00Z or 20200131100000.
";

type Reply = Response<Sending<()>>;

/// Answers until told to stop.
pub(crate) async fn accept(shared: Arc<Shared>, listener: TcpListener, mut stopped: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        let taken = tokio::select! {
            taken = listener.accept() => taken,
            () = told_to_stop(&mut stopped) => break,
        };
        let Ok((stream, _)) = taken else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let (shared, mut stopped) = (shared.clone(), stopped.clone());
        connections.spawn(async move {
            let service = service_fn(|request| {
                let shared = shared.clone();
                async move { Ok::<_, Infallible>(answer(shared, request).await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(Duration::from_millis(limits::REQUEST_HEAD_MS))
                .max_buf_size(limits::REQUEST_HEAD_BYTES_MAX)
                .serve_connection(TokioIo::new(stream), service);
            let mut connection = std::pin::pin!(connection);
            let told = tokio::select! {
                _ = connection.as_mut() => false,
                () = told_to_stop(&mut stopped) => true,
            };
            if told {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
        });
        while connections.try_join_next().is_some() {}
    }
    while connections.join_next().await.is_some() {}
}

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Reply {
    let (parts, body) = request.into_parts();
    let asked = |name: &str| parameter(parts.uri.query().unwrap_or_default(), name);
    let at = match asked("at").map(|at| at.parse::<Time>()) {
        None => shared.now(std::time::Instant::now()),
        Some(Ok(at)) => at,
        Some(Err(e)) => return refuse(&e.to_string()),
    };
    let get = parts.method == Method::GET;
    match (get, parts.uri.path()) {
        (true, "/") => text("text/plain; charset=utf-8", HELP.into()),
        (true, "/map") => json(&shared.map),
        (true, "/authority.pem") => text("application/x-pem-file", shared.authority.pem().into()),
        (true, "/truth") => {
            let host = asked("host");
            if let Some(name) = host.as_deref().filter(|name| shared.world.host(name).is_none()) {
                return refuse(&format!("there is no host `{name}`"));
            }
            lines(move |out| truth_lines(&shared, at, host.as_deref(), out))
        }
        (true, "/entry") => {
            let url = asked("url").unwrap_or_default();
            let entry = tokio::task::spawn_blocking(move || shared.world.entry(&url, at)).await;
            match entry {
                Ok(Some(Ok(entry))) => json(&entry),
                Ok(Some(Err(e))) => refuse(&e.to_string()),
                Ok(None) => refuse("that URL is of no host here"),
                Err(e) => refuse(&e.to_string()),
            }
        }
        (true, "/audit") => json(&shared.auditor().report()),
        (true, "/audit.txt") => text("text/plain; charset=utf-8", shared.auditor().report().table()),
        (true, "/requests") => {
            let requests: Vec<_> = shared.auditor().requests().cloned().collect();
            lines(move |out| {
                for request in requests {
                    if !out(line(&request)?) {
                        break;
                    }
                }
                Ok(())
            })
        }
        (false, "/audit") => match read::<Policy>(body).await {
            Ok(policy) => {
                let mut auditor = shared.auditor();
                let policy = policy.unwrap_or_else(|| auditor.policy.clone());
                *auditor = Auditor::new(policy);
                json(&auditor.policy)
            }
            Err(e) => refuse(&e),
        },
        (true, "/rows") => json(&Row::all().map(RowLine::from).collect::<Vec<_>>()),
        (true, "/proofs") => match asked("host") {
            None => json(&shared.proofs.all()),
            Some(host) => match shared.proofs.of(&host) {
                Some(proof) => json(&proof),
                None => refuse(&format!("there is no host `{host}`")),
            },
        },
        (false, "/proofs") => {
            shared.proofs.clear();
            json(&shared.proofs.all())
        }
        (true, "/clock") => clock(&shared),
        (false, "/clock") => {
            let to = asked("to").map(|to| to.parse::<Time>()).transpose();
            let speed = asked("speed").map(|speed| speed.parse::<f64>()).transpose();
            match (to, speed) {
                (Ok(to), Ok(speed)) => shared.set_clock(to, speed),
                (Err(e), _) => return refuse(&e.to_string()),
                (_, Err(e)) => return refuse(&format!("`speed` is no number: {e}")),
            }
            clock(&shared)
        }
        (false, "/behaviour") => match read(body).await {
            Ok(behaviour) => match shared.behave(&asked("host").unwrap_or_default(), behaviour.unwrap_or_default()) {
                Ok(()) => text("text/plain; charset=utf-8", "done\n".into()),
                Err(e) => refuse(&e),
            },
            Err(e) => refuse(&e),
        },
        (false, "/stop") => {
            let _ = shared.stop.send(true);
            text("text/plain; charset=utf-8", "stopping\n".into())
        }
        _ => refuse("there is nothing at that address; GET / lists what is"),
    }
}

#[derive(Serialize)]
struct RowLine {
    number: usize,
    name: &'static str,
    side: Side,
    does: &'static str,
    proof: &'static str,
    forms: &'static [Form],
}

impl From<Row> for RowLine {
    fn from(row: Row) -> RowLine {
        RowLine {
            number: row.number(),
            name: row.name(),
            side: row.side(),
            does: row.does(),
            proof: row.proof(),
            forms: row.forms(),
        }
    }
}

#[derive(Serialize)]
struct ClockNow {
    now: Time,
    speed: f64,
}

fn clock(shared: &Shared) -> Reply {
    let now = shared.now(std::time::Instant::now());
    let speed = shared.clock().speed;
    json(&ClockNow { now, speed })
}

/// The truth as lines of JSON, handed out one by one.
pub(crate) fn truth_lines(
    shared: &Shared,
    at: Time,
    host: Option<&str>,
    out: &mut dyn FnMut(Bytes) -> bool,
) -> io::Result<()> {
    let hosts = shared.world.hosts().iter().filter(|here| host.is_none_or(|name| here.plan.name == name));
    for entry in hosts.flat_map(|host| host.truth(at)) {
        if !out(line(&entry?)?) {
            break;
        }
    }
    Ok(())
}

fn line(value: &impl Serialize) -> io::Result<Bytes> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line.into())
}

/// A JSON body; nothing at all is `None`.
async fn read<T: serde::de::DeserializeOwned>(body: Incoming) -> Result<Option<T>, String> {
    let body = Limited::new(body, limits::REQUEST_BODY_BYTES_MAX as usize).collect().await;
    let body = body.map_err(|e| e.to_string())?.to_bytes();
    if body.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(&body).map(Some).map_err(|e| e.to_string())
}

/// A parameter of the query, percent-decoded.
fn parameter(query: &str, name: &str) -> Option<String> {
    let (_, value) = query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name)?;
    let mut out = Vec::new();
    let mut bytes = value.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next().unwrap_or(b'?')).to_digit(16);
                out.push((digit()? * 16 + digit()?) as u8);
            }
            b'+' => out.push(b' '),
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).ok()
}

fn text(media_type: &'static str, body: String) -> Reply {
    let mut response = Response::new(Sending::new(Body::Bytes(body.into()), ()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

fn json(value: &impl Serialize) -> Reply {
    match serde_json::to_string(value) {
        Ok(body) => text("application/json", body + "\n"),
        Err(e) => refuse(&e.to_string()),
    }
}

fn lines(write: impl FnOnce(&mut dyn FnMut(Bytes) -> bool) -> io::Result<()> + Send + 'static) -> Reply {
    let mut response = Response::new(Sending::pieces((), write));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/jsonl"));
    response
}

fn refuse(because: &str) -> Reply {
    let mut response = text("text/plain; charset=utf-8", format!("{because}\n"));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}
