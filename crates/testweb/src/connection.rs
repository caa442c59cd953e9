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

/// What is known of a connection, shared between its stream and its requests. `E` is dropped when the answer it
/// belongs to has been handed to the kernel, or the connection is gone.
pub struct Watch<E>(Mutex<Watched<E>>);

struct Watched<E> {
    first_byte: Option<Instant>,
    last_byte: Instant,
    ending: Option<E>,
}

impl<E> Watch<E> {
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

    /// The answer is complete as far as HTTP goes; `ending` lives until its bytes are out.
    pub fn ends(&self, ending: E) {
        let before = self.lock().ending.replace(ending);
        drop(before);
    }

    fn flushed(&self) {
        let ended = self.lock().ending.take();
        drop(ended); // outside the lock: it takes others
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
pub struct WatchedStream<S, E> {
    stream: S,
    watch: Arc<Watch<E>>,
}

impl<S, E> WatchedStream<S, E> {
    /// Watches a stream.
    pub fn new(stream: S, watch: Arc<Watch<E>>) -> Self {
        WatchedStream { stream, watch }
    }
}

impl<S, E> Drop for WatchedStream<S, E> {
    fn drop(&mut self) {
        self.watch.flushed();
    }
}

impl<S: AsyncRead + Unpin, E> AsyncRead for WatchedStream<S, E> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.watch.came(Instant::now());
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin, E> AsyncWrite for WatchedStream<S, E> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        if polled.is_ready() {
            self.watch.flushed();
        }
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
