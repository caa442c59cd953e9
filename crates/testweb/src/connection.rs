//! The stream of one connection, watched: when the first byte of each request came in, and when the last byte of each
//! answer went out.
//!
//! A behaviour that breaks HTTP itself takes the stream from its [`Seat`] while hyper waits for an answer, writes what it
//! likes, and gives it back or not; what hyper then writes as the answer goes nowhere.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// An answer that is complete as far as HTTP goes and only has to be sent. Dropped when its bytes are out, or the
/// connection is gone.
///
/// A visitor can act on an answer before the call that sent it has returned. So that nobody is accused of having been
/// early, the answer counts as over *before* what may be its last bytes are sent, and comes back when they were not.
pub trait Ending {
    /// What may be its last bytes are about to be sent.
    fn about_to_send(&mut self);
    /// They were not the last, or not all were taken.
    fn held_up(&mut self);
}

/// What is known of a connection, shared between its stream and its requests.
pub struct Watch<E>(Mutex<Watched<E>>);

struct Watched<E> {
    first_byte: Option<Instant>,
    last_byte: Instant,
    ending: Option<E>,
}

impl<E: Ending> Watch<E> {
    /// A connection opened at this moment.
    pub fn new(opened: Instant) -> Arc<Watch<E>> {
        Arc::new(Watch(Mutex::new(Watched { first_byte: None, last_byte: opened, ending: None })))
    }

    /// When the first byte of the request came that is being looked at now. A request that came in one piece with the one
    /// before has no piece of its own; then it is when the last piece came.
    pub fn take_first_byte(&self) -> Instant {
        let mut watched = self.lock();
        watched.first_byte.take().unwrap_or(watched.last_byte)
    }

    /// The bytes since the head were the request's body, not the next request.
    pub fn body_was_read(&self) {
        self.lock().first_byte = None;
    }

    /// The answer is complete as far as HTTP goes.
    pub fn ends(&self, ending: E) {
        let before = self.lock().ending.replace(ending);
        drop(before);
    }

    fn about_to_send(&self) {
        if let Some(ending) = &mut self.lock().ending {
            ending.about_to_send();
        }
    }

    fn held_up(&self) {
        if let Some(ending) = &mut self.lock().ending {
            ending.held_up();
        }
    }

    fn sent(&self) {
        let ended = self.lock().ending.take();
        drop(ended);
    }

    fn came(&self, now: Instant) {
        let mut watched = self.lock();
        watched.last_byte = now;
        watched.first_byte.get_or_insert(now);
    }

    fn lock(&self) -> MutexGuard<'_, Watched<E>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the stream of a connection sits: with HTTP, unless it was taken.
pub struct Seat<S>(Arc<Mutex<Seated<S>>>);

struct Seated<S> {
    stream: Option<S>,
    /// It will not come back.
    gone: bool,
    mute: Mute,
    waiting: Option<Waker>,
}

/// What HTTP writes is thrown away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mute {
    No,
    /// Until it has written something and flushes it, which is one answer.
    OneAnswer {
        wrote: bool,
    },
}

impl<S> Clone for Seat<S> {
    fn clone(&self) -> Self {
        Seat(self.0.clone())
    }
}

impl<S> Seat<S> {
    /// A stream in its seat.
    pub fn new(stream: S) -> Seat<S> {
        Seat(Arc::new(Mutex::new(Seated { stream: Some(stream), gone: false, mute: Mute::No, waiting: None })))
    }

    /// Takes the stream from HTTP.
    pub fn take(&self) -> Option<S> {
        self.lock().stream.take()
    }

    /// HTTP goes on with the stream; its own answer to the request is not sent.
    pub fn give_back(&self, stream: S) {
        let mut seated = self.lock();
        seated.stream = Some(stream);
        seated.mute = Mute::OneAnswer { wrote: false };
        let waiting = seated.waiting.take();
        drop(seated);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// The stream does not come back: HTTP finds the connection closed.
    pub fn leave_empty(&self) {
        let mut seated = self.lock();
        seated.gone = true;
        let waiting = seated.waiting.take();
        drop(seated);
        waiting.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, Seated<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Seated<S> {
    /// The stream, if what HTTP writes shall go out.
    fn writable(&mut self) -> Option<&mut S> {
        match &mut self.mute {
            Mute::No => self.stream.as_mut(),
            Mute::OneAnswer { wrote } => {
                *wrote = true;
                None
            }
        }
    }
}

/// A stream in its [`Seat`] that keeps its [`Watch`].
pub struct WatchedStream<S, E: Ending> {
    seat: Seat<S>,
    watch: Arc<Watch<E>>,
}

impl<S, E: Ending> WatchedStream<S, E> {
    /// Watches a stream.
    pub fn new(seat: Seat<S>, watch: Arc<Watch<E>>) -> Self {
        WatchedStream { seat, watch }
    }

    fn wrote(&self, polled: &Poll<io::Result<usize>>, offered: usize) {
        if !matches!(polled, Poll::Ready(Ok(taken)) if *taken == offered) {
            self.watch.held_up();
        }
    }
}

impl<S, E: Ending> Drop for WatchedStream<S, E> {
    fn drop(&mut self) {
        self.watch.sent();
    }
}

impl<S: AsyncRead + Unpin, E: Ending> AsyncRead for WatchedStream<S, E> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let mut seated = self.seat.lock();
        let Some(stream) = seated.stream.as_mut() else {
            if seated.gone {
                return Poll::Ready(Ok(()));
            }
            seated.waiting = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let polled = Pin::new(stream).poll_read(cx, buf);
        drop(seated);
        if buf.filled().len() > before {
            self.watch.came(Instant::now());
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin, E: Ending> AsyncWrite for WatchedStream<S, E> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut seated = self.seat.lock();
        let Some(stream) = seated.writable() else {
            return Poll::Ready(Ok(bytes.len()));
        };
        self.watch.about_to_send();
        let polled = Pin::new(stream).poll_write(cx, bytes);
        drop(seated);
        self.wrote(&polled, bytes.len());
        polled
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let offered = pieces.iter().map(|piece| piece.len()).sum();
        let mut seated = self.seat.lock();
        let Some(stream) = seated.writable() else {
            return Poll::Ready(Ok(offered));
        };
        self.watch.about_to_send();
        let polled = Pin::new(stream).poll_write_vectored(cx, pieces);
        drop(seated);
        self.wrote(&polled, offered);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.seat.lock().stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut seated = self.seat.lock();
        if seated.mute == (Mute::OneAnswer { wrote: true }) {
            seated.mute = Mute::No;
        }
        let Some(stream) = seated.stream.as_mut() else {
            return Poll::Ready(Ok(()));
        };
        self.watch.about_to_send();
        let polled = Pin::new(stream).poll_flush(cx);
        drop(seated);
        match polled {
            Poll::Ready(_) => self.watch.sent(),
            Poll::Pending => self.watch.held_up(),
        }
        polled
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.seat.lock().stream.as_mut() {
            Some(stream) => Pin::new(stream).poll_shutdown(cx),
            None => Poll::Ready(Ok(())),
        }
    }
}
