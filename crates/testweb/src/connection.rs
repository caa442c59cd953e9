//! The stream of one connection, watched: when the first byte of each request came in, and when the last byte of each
//! answer went out.
//!
//! A behaviour that breaks HTTP itself takes the stream here, after the sniff and before hyper.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
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

/// A stream that keeps its [`Watch`].
pub struct WatchedStream<S, E: Ending> {
    stream: S,
    watch: Arc<Watch<E>>,
}

impl<S, E: Ending> WatchedStream<S, E> {
    /// Watches a stream.
    pub fn new(stream: S, watch: Arc<Watch<E>>) -> Self {
        WatchedStream { stream, watch }
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
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.watch.came(Instant::now());
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin, E: Ending> AsyncWrite for WatchedStream<S, E> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.watch.about_to_send();
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(&polled, bytes.len());
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.watch.about_to_send();
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.wrote(&polled, pieces.iter().map(|piece| piece.len()).sum());
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.watch.about_to_send();
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        match polled {
            Poll::Ready(_) => self.watch.sent(),
            Poll::Pending => self.watch.held_up(),
        }
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
