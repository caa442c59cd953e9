//! Bodies on their way out: from memory, or in pieces from a thread that may block.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::mpsc;

use crate::answer::Body;
use crate::limits;

/// A body on its way out; `T` is told how much was sent, and is dropped when all of it was, or no more will be.
pub struct Sending<T: Sent> {
    source: Source,
    told: T,
}

enum Source {
    Memory(Option<Bytes>),
    Pieces { pieces: mpsc::Receiver<io::Result<Bytes>>, length: Option<u64> },
}

/// Told how much of a body was sent.
pub trait Sent: Unpin {
    /// Another piece was taken.
    fn sent(&mut self, bytes: usize);
}

impl Sent for () {
    fn sent(&mut self, _: usize) {}
}

impl<T: Sent> Sending<T> {
    /// Sends a body; a file is read piece by piece as the other side takes it.
    pub fn new(body: Body, told: T) -> Sending<T> {
        match body {
            Body::Bytes(bytes) => Sending { source: Source::Memory(Some(bytes).filter(|b| !b.is_empty())), told },
            Body::File { path, offset, bytes } => {
                let mut sending = Sending::pieces(told, move |out| {
                    let mut file = File::open(&path)?;
                    file.seek(SeekFrom::Start(offset))?;
                    let mut part = file.take(bytes);
                    loop {
                        let mut piece = vec![0; limits::FILE_PIECE_BYTES];
                        let n = part.read(&mut piece)?;
                        piece.truncate(n);
                        if n == 0 || !out(piece.into()) {
                            return Ok(());
                        }
                    }
                });
                if let Source::Pieces { length, .. } = &mut sending.source {
                    *length = Some(bytes);
                }
                sending
            }
        }
    }

    /// Sends what `write` gives out, on a thread of its own; `out` says `false` when nobody listens any more.
    pub fn pieces(
        told: T,
        write: impl FnOnce(&mut dyn FnMut(Bytes) -> bool) -> io::Result<()> + Send + 'static,
    ) -> Sending<T> {
        let (sender, pieces) = mpsc::channel(limits::FILE_PIECES);
        tokio::task::spawn_blocking(move || {
            if let Err(e) = write(&mut |piece| sender.blocking_send(Ok(piece)).is_ok()) {
                let _ = sender.blocking_send(Err(e));
            }
        });
        Sending { source: Source::Pieces { pieces, length: None }, told }
    }
}

impl<T: Sent> HttpBody for Sending<T> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = match &mut self.source {
            Source::Memory(bytes) => bytes.take().map(Ok),
            Source::Pieces { pieces, .. } => match pieces.poll_recv(cx) {
                Poll::Ready(piece) => piece,
                Poll::Pending => return Poll::Pending,
            },
        };
        if let Some(Ok(bytes)) = &piece {
            let bytes = bytes.len();
            self.told.sent(bytes);
        }
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.source, Source::Memory(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Memory(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Source::Pieces { length: Some(length), .. } => SizeHint::with_exact(*length),
            Source::Pieces { length: None, .. } => SizeHint::default(),
        }
    }
}
