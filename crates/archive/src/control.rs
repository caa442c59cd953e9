//! The owner's socket: HTTP/1.1 over a Unix socket in the archive's folder. Whoever holds the lock listens; every other
//! command asks.
//!
//! What can be asked is decided by whoever serves. Answers are streams of lines, so that a job can report while it runs.

use std::convert::Infallible;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::error::{Error, Result};
use crate::limits::{ANSWER_LINES_WAITING, ASK_BYTES_MAX, ASKS_AT_ONCE_MAX};

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// `GET`, `POST`, …
    pub method: String,
    /// Path and query, beginning with a slash.
    pub path: String,
    /// The body; usually JSON.
    pub body: Vec<u8>,
}

impl Ask {
    /// A request without body.
    pub fn get(path: &str) -> Ask {
        Ask { method: "GET".into(), path: path.into(), body: Vec::new() }
    }

    /// A request with a body.
    pub fn post(path: &str, body: impl Into<Vec<u8>>) -> Ask {
        Ask { method: "POST".into(), path: path.into(), body: body.into() }
    }
}

/// Answers one request; runs on a thread of its own and may take as long as it likes.
pub type Handler = Arc<dyn Fn(Ask, &mut Answering) + Send + Sync>;

/// The asker went away; there is nobody to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

enum Event {
    Status(u16, &'static str),
    Bytes(Bytes),
}

/// An answer being given.
pub struct Answering {
    events: mpsc::Sender<Event>,
    begun: bool,
}

impl Answering {
    /// Begins the answer. Without it the first line begins one with status 200 and lines of JSON.
    pub fn begin(&mut self, status: u16, content_type: &'static str) -> Result<(), Gone> {
        match std::mem::replace(&mut self.begun, true) {
            true => Ok(()),
            false => self.events.blocking_send(Event::Status(status, content_type)).map_err(|_| Gone),
        }
    }

    /// Sends a line; waits while the asker is slow.
    pub fn line(&mut self, line: &str) -> Result<(), Gone> {
        self.begin(200, "application/x-ndjson")?;
        self.bytes([line.as_bytes(), b"\n"].concat())
    }

    /// Sends bytes as they are.
    pub fn bytes(&mut self, bytes: Vec<u8>) -> Result<(), Gone> {
        self.begin(200, "application/octet-stream")?;
        self.events.blocking_send(Event::Bytes(bytes.into())).map_err(|_| Gone)
    }
}

/// A socket being served. Dropping it stops listening; requests under way are cut off.
pub struct Server {
    path: PathBuf,
    stop: Option<oneshot::Sender<Duration>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Stops listening, and lets requests under way come to their end for so long.
    pub fn finish(mut self, within: Duration) {
        let _already_stopped = self.stop.take().map(|stop| stop.send(within));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _already_stopped = self.stop.take().map(|stop| stop.send(Duration::ZERO));
        let _nothing_to_report = self.thread.take().map(JoinHandle::join);
        // Gone already if the folder was deleted.
        let _best_effort = std::fs::remove_file(&self.path);
    }
}

/// Listens at `path`, replacing a socket that an earlier owner left. Only the user who runs this can connect.
pub fn serve(path: &Path, handler: Handler) -> Result<Server> {
    let wrong = |error| Error::io("cannot listen at", path, error);
    let listener = bind(path).map_err(wrong)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().map_err(wrong)?;
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new().name("skep-control".into()).spawn(move || {
        runtime.block_on(async {
            let at_once = Arc::new(Semaphore::new(ASKS_AT_ONCE_MAX));
            let within = tokio::select! {
                () = accept(listener, handler, at_once.clone()) => Duration::ZERO,
                within = stopped => within.unwrap_or_default(),
            };
            // When every place is free again, everybody has been answered.
            let _or_cut_off = tokio::time::timeout(within, at_once.acquire_many(ASKS_AT_ONCE_MAX as u32)).await;
        });
        // A handler that still runs finishes on its own; nobody hears it any more.
        runtime.shutdown_background();
    });
    Ok(Server { path: path.to_path_buf(), stop: Some(stop), thread: Some(thread.map_err(wrong)?) })
}

/// Binds under another name, makes it private, and only then gives it its name: nobody can connect in between.
fn bind(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let fresh = path.with_file_name(format!("{name}.new"));
    match std::fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let folder = folder_of(path)?;
    let listener = std::os::unix::net::UnixListener::bind(short(&folder, &format!("{name}.new")))?;
    std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(&fresh, path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn folder_of(path: &Path) -> io::Result<std::fs::File> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::open(folder)
}

/// A socket's path may have about a hundred bytes; an archive's folder may be deeper than that.
fn short(folder: &std::fs::File, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))
}

async fn accept(listener: std::os::unix::net::UnixListener, handler: Handler, at_once: Arc<Semaphore>) {
    let Ok(listener) = UnixListener::from_std(listener) else { return };
    loop {
        let Ok(permit) = at_once.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else { continue };
        let handler = handler.clone();
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request| answer(request, handler.clone()));
            // An asker that hangs up in the middle is no concern of ours.
            let _hung_up =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            drop(permit);
        });
    }
}

async fn answer(request: Request<Incoming>, handler: Handler) -> Result<Response<Lines>, Infallible> {
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, ASK_BYTES_MAX).collect().await else {
        return Ok(plain(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large"));
    };
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_string();
    let ask = Ask { method: head.method.to_string(), path, body: body.to_bytes().to_vec() };
    let (events, mut heard) = mpsc::channel(ANSWER_LINES_WAITING);
    tokio::task::spawn_blocking(move || handler(ask, &mut Answering { events, begun: false }));
    match heard.recv().await {
        Some(Event::Status(status, content_type)) => {
            let response = Response::builder().status(status).header("content-type", content_type);
            let fallback = |_| plain(StatusCode::INTERNAL_SERVER_ERROR, "the answer has no valid status");
            Ok(response.body(Lines { first: None, heard: Some(heard) }).unwrap_or_else(fallback))
        }
        _ => Ok(plain(StatusCode::INTERNAL_SERVER_ERROR, "the request was not answered")),
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<Lines> {
    let mut response = Response::new(Lines { first: Some(Bytes::from_static(text.as_bytes())), heard: None });
    *response.status_mut() = status;
    response
}

/// The body of an answer: what the handler sends, as it sends it.
struct Lines {
    first: Option<Bytes>,
    heard: Option<mpsc::Receiver<Event>>,
}

impl Body for Lines {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        let Some(heard) = self.heard.as_mut() else { return Poll::Ready(None) };
        loop {
            return match heard.poll_recv(context) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Some(Event::Bytes(bytes))) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Poll::Ready(Some(Event::Status(..))) => continue,
                Poll::Ready(None) => Poll::Ready(None),
            };
        }
    }
}

/// An answer being heard.
pub struct Answer {
    path: PathBuf,
    runtime: tokio::runtime::Runtime,
    status: u16,
    body: Incoming,
    buffer: Vec<u8>,
    ended: bool,
}

impl Answer {
    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The next line, as soon as it comes; `None` at the end.
    pub fn next_line(&mut self) -> Result<Option<String>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(Some(String::from_utf8_lossy(&line[..end]).into_owned()));
            }
            if !self.more()? {
                let rest = std::mem::take(&mut self.buffer);
                return Ok((!rest.is_empty()).then(|| String::from_utf8_lossy(&rest).into_owned()));
            }
        }
    }

    /// The next bytes, as they come; empty at the end.
    pub fn next_bytes(&mut self) -> Result<Vec<u8>> {
        if self.buffer.is_empty() {
            self.more()?;
        }
        Ok(std::mem::take(&mut self.buffer))
    }

    fn more(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        match self.runtime.block_on(self.body.frame()) {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    self.buffer.extend_from_slice(&data);
                }
                Ok(true)
            }
            Some(Err(error)) => Err(Error::io("the owner broke off at", &self.path, io::Error::other(error))),
            None => {
                self.ended = true;
                Ok(false)
            }
        }
    }
}

/// Asks the owner that listens at `path`; `None` if nobody does.
pub fn ask(path: &Path, ask: Ask) -> Result<Option<Answer>> {
    let wrong = |error| Error::io("cannot ask the owner at", path, error);
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = match folder_of(path) {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(error)),
    };
    let stream = match std::os::unix::net::UnixStream::connect(short(&folder, &name)) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        Err(error) => return Err(wrong(error)),
    };
    stream.set_nonblocking(true).map_err(wrong)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(wrong)?;
    let answered: io::Result<(u16, Incoming)> = runtime.block_on(async {
        let stream = TokioIo::new(UnixStream::from_std(stream)?);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.map_err(io::Error::other)?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(ask.method.as_str())
            .uri(&ask.path)
            .header("host", "archive")
            .body(Full::new(Bytes::from(ask.body)))
            .map_err(io::Error::other)?;
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        Ok((response.status().as_u16(), response.into_body()))
    });
    let (status, body) = answered.map_err(wrong)?;
    Ok(Some(Answer { path: path.to_path_buf(), runtime, status, body, buffer: Vec::new(), ended: false }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn lines(answer: &mut Answer) -> Vec<String> {
        std::iter::from_fn(|| answer.next_line().unwrap()).collect()
    }

    #[test]
    fn questions_are_answered_line_by_line_and_privately() {
        let dir = tempfile::tempdir().unwrap();
        // Deeper than the path of a socket may be.
        let deep = dir.path().join("a".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        let path = deep.join("control");
        std::fs::write(&path, "left by an earlier owner").unwrap();
        let handler = |ask: Ask, answer: &mut Answering| {
            if ask.path == "/none" {
                return;
            }
            if ask.path == "/no" {
                answer.begin(404, "text/plain").unwrap();
            }
            for part in 0..3 {
                answer.line(&format!("{} {} {} {part}", ask.method, ask.path, ask.body.len())).unwrap();
            }
        };
        let server = serve(&path, Arc::new(handler)).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let mut answer = super::ask(&path, Ask::post("/job?x=1", vec![b'x'; 100_000])).unwrap().unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(lines(&mut answer), (0..3).map(|part| format!("POST /job?x=1 100000 {part}")).collect::<Vec<_>>());
        let mut answer = super::ask(&path, Ask::get("/no")).unwrap().unwrap();
        assert_eq!((answer.status(), lines(&mut answer).len()), (404, 3));
        assert_eq!(super::ask(&path, Ask::get("/none")).unwrap().unwrap().status(), 500);
        assert_eq!(
            super::ask(&path, Ask::post("/", vec![0; ASK_BYTES_MAX + 1]))
                .map(|a| a.map(|a| a.status()))
                .unwrap_or(Some(413)),
            Some(413)
        );
        drop(server);
        assert!(super::ask(&path, Ask::get("/")).unwrap().is_none());
        assert!(super::ask(&dir.path().join("nowhere/control"), Ask::get("/")).unwrap().is_none());
    }

    #[test]
    fn a_line_arrives_before_the_next_is_known_and_an_asker_may_leave() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        let (go, wait) = channel::<()>();
        let (tell, told) = channel();
        let (wait, tell) = (std::sync::Mutex::new(wait), std::sync::Mutex::new(tell));
        let handler = move |_: Ask, answer: &mut Answering| {
            answer.line("first").unwrap();
            wait.lock().unwrap().recv().unwrap();
            // More than is let wait: the asker's absence is noticed.
            let left = (0..ANSWER_LINES_WAITING * 1000).try_for_each(|_| answer.line(&"x".repeat(1000)));
            tell.lock().unwrap().send(left).unwrap();
        };
        let _server = serve(&path, Arc::new(handler)).unwrap();
        let mut answer = super::ask(&path, Ask::get("/")).unwrap().unwrap();
        assert_eq!(answer.next_line().unwrap().as_deref(), Some("first"));
        drop(answer);
        go.send(()).unwrap();
        assert_eq!(told.recv().unwrap(), Err(Gone));
    }
}
