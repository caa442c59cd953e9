//! From a thread that reads the archive to a client: first the head of the answer, then pieces of its body as they are read.

use crate::answer::{self, Answer};
use crate::limits::{PIECE_BYTES, PIECE_MS, PIECES_WAITING, TURN_MS};
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use bytes::Bytes;
use http_body::Frame;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot};

/// Where a reading thread puts its answer. Dropped without one, the client gets a 500.
pub struct Reply {
    tell: oneshot::Sender<Answer>,
}

/// The client is gone, or too slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

impl From<Gone> for io::Error {
    fn from(_: Gone) -> io::Error {
        io::Error::new(io::ErrorKind::BrokenPipe, "the client went away")
    }
}

impl Reply {
    /// The whole answer.
    pub fn send(self, answer: Answer) {
        // Nobody waits any more if the client hung up.
        let _hung_up = self.tell.send(answer);
    }

    /// Whether the client went away.
    pub fn is_gone(&self) -> bool {
        self.tell.is_closed()
    }

    /// The head of an answer; its body follows.
    pub fn begin(self, head: Answer) -> Sink {
        let (pieces, coming) = mpsc::channel(PIECES_WAITING);
        let (whole, body) = Pieces::of(coming);
        self.send(head.map(|_| Body::new(body)));
        Sink { pieces, held: Vec::new(), whole }
    }
}

/// The whole answer, unless one was given already.
pub fn tell(reply: &mut Option<Reply>, answer: Answer) {
    if let Some(reply) = reply.take() {
        reply.send(answer);
    }
}

/// Takes the body of an answer. Must be ended: an answer that is not is cut off, so that nobody takes a part for the whole.
pub struct Sink {
    pieces: mpsc::Sender<io::Result<Bytes>>,
    held: Vec<u8>,
    whole: Whole,
}

impl Sink {
    /// More of the body; waits while the client is slow.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.held.extend_from_slice(bytes);
        if self.held.len() < PIECE_BYTES {
            return Ok(());
        }
        self.flush()
    }

    /// Sends what is held.
    pub fn flush(&mut self) -> Result<(), Gone> {
        if self.held.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::take(&mut self.held));
        self.held.reserve(PIECE_BYTES);
        match self.pieces.try_send(Ok(piece)) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(Gone),
            Err(mpsc::error::TrySendError::Full(piece)) => {
                let sent = self.pieces.send_timeout(piece, Duration::from_millis(PIECE_MS));
                tokio::runtime::Handle::current().block_on(sent).map_err(|_| Gone)
            }
        }
    }

    /// Whether the client went away: for work that finds nothing to send for a long time.
    pub fn is_gone(&self) -> bool {
        self.pieces.is_closed()
    }

    /// That was all.
    pub fn end(mut self) -> Result<(), Gone> {
        self.flush()?;
        self.whole.say();
        Ok(())
    }

    /// The rest cannot be had: the connection is cut.
    pub fn cut(mut self, why: io::Error) {
        if self.flush().is_ok() {
            let _hung_up = self.pieces.blocking_send(Err(why));
        }
    }
}

/// Says that an answer was written to its end, before whoever writes it goes.
#[derive(Clone, Debug)]
pub struct Whole(Arc<AtomicBool>);

impl Whole {
    /// That was all.
    pub fn say(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The body of an answer, piece by piece as it comes. One that was not written to its end does not end well: a client that was too slow, and was
/// let go, never takes a part for the whole.
pub struct Pieces {
    coming: mpsc::Receiver<io::Result<Bytes>>,
    whole: Whole,
}

impl Pieces {
    /// What comes; and what says that it came to its end.
    pub fn of(coming: mpsc::Receiver<io::Result<Bytes>>) -> (Whole, Pieces) {
        let whole = Whole(Arc::new(AtomicBool::new(false)));
        (whole.clone(), Pieces { coming, whole })
    }
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let whole = self.whole.0.clone();
        self.coming.poll_recv(context).map(|piece| match piece {
            Some(piece) => Some(piece.map(Frame::data)),
            None if whole.load(Ordering::Acquire) => None,
            None => Some(Err(io::Error::other("the client was too slow, or the rest could not be read"))),
        })
    }
}

/// Those who may read at once.
#[derive(Clone)]
pub struct Turns(Arc<Semaphore>);

impl Turns {
    /// So many at once.
    pub fn new(at_once: usize) -> Turns {
        Turns(Arc::new(Semaphore::new(at_once)))
    }

    /// Does blocking work on a thread for it, when it is its turn; nothing comes of it if that does not come.
    pub async fn some<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let turn = tokio::time::timeout(Duration::from_millis(TURN_MS), self.0.clone().acquire_owned()).await;
        let turn = turn.ok()?.ok()?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(turn);
            done
        });
        done.await.ok()
    }

    /// Does blocking work on a thread for it, when it is its turn, and gives the answer as soon as its head is there.
    pub async fn take(&self, work: impl FnOnce(Reply) + Send + 'static) -> Answer {
        let turn = tokio::time::timeout(Duration::from_millis(TURN_MS), self.0.clone().acquire_owned()).await;
        let Ok(Ok(turn)) = turn else { return busy() };
        let (tell, told) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            work(Reply { tell });
            drop(turn);
        });
        let unanswered = |_| {
            answer::told(
                StatusCode::INTERNAL_SERVER_ERROR,
                "No answer",
                "The request could not be answered; the reason is in the log.",
            )
        };
        told.await.unwrap_or_else(unanswered)
    }
}

fn busy() -> Answer {
    let mut answer = answer::told(
        StatusCode::SERVICE_UNAVAILABLE,
        "Busy",
        "Too many requests are being answered; ask again in a moment.",
    );
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Body as _;

    fn begun() -> (Sink, Pin<Box<Body>>) {
        let (tell, mut told) = oneshot::channel();
        let sink = Reply { tell }.begin(answer::text(StatusCode::OK, ""));
        (sink, Box::pin(told.try_recv().expect("a head").into_body()))
    }

    #[test]
    fn an_answer_that_was_not_written_to_its_end_does_not_end_well() {
        for is_whole in [true, false] {
            let (mut sink, mut body) = begun();
            sink.write(&[b'x'; PIECE_BYTES]).unwrap();
            match is_whole {
                true => sink.end().unwrap(),
                false => drop(sink),
            }
            let mut context = Context::from_waker(std::task::Waker::noop());
            assert!(matches!(body.as_mut().poll_frame(&mut context), Poll::Ready(Some(Ok(_)))));
            let end = body.as_mut().poll_frame(&mut context);
            assert_eq!(matches!(end, Poll::Ready(None)), is_whole);
            assert_eq!(matches!(end, Poll::Ready(Some(Err(_)))), !is_whole);
        }
    }
}
