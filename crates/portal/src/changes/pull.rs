//! Who pulls gets what is there, one event a line.
//!
//! ```text
//!   the log ──▶ lines, on a thread for it, as long as the client takes them ──▶ pieces ──▶ the client
//!      ▲                        └─ it does not: the thread goes ──▶ waits for the client alone ─┐
//!      └────────────────────── behind the last line that was written ◀─────────────────────────┘
//! ```
//! A client that stops reading holds a few pieces and a place in the log, and keeps nobody else from reading. One that is let go sees
//! an answer that was cut off, never one that seems whole.

use super::{Asked, LINES, begin, head, may_see, put, refused, trouble};
use crate::access::May;
use crate::answer::Answer;
use crate::limits::{PIECE_BYTES, PIECE_MS, PIECES_WAITING, STALL_MS};
use crate::portal::Portal;
use crate::reply::{Pieces, Whole};
use axum::body::Body;
use bytes::Bytes;
use skep_changes::{Cursor, From, Settings};
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::{SendTimeoutError, TrySendError};

/// Bytes of a line beyond which a piece has to grow.
const LINE_BYTES: usize = 8 << 10;

/// Answers.
pub async fn pull(portal: Arc<Portal>, asked: Asked, may: May, head_only: bool) -> Answer {
    let (cursor, until, texts) = match begin(&portal, &asked).await {
        Ok(begun) => begun,
        Err(trouble) => return refused(&trouble),
    };
    if head_only {
        return head(LINES);
    }
    let (pieces, coming) = mpsc::channel(PIECES_WAITING);
    let (whole, body) = Pieces::of(coming);
    let left = asked.limit;
    let now_ms = portal.now_ms();
    tokio::spawn(Pull { portal, asked, may, now_ms, texts, cursor, until, left, pieces, whole }.run());
    head(LINES).map(|_| Body::new(body))
}

/// Somebody who pulls.
struct Pull {
    portal: Arc<Portal>,
    asked: Asked,
    may: May,
    now_ms: i64,
    texts: Option<Settings>,
    /// The last event that was written, or passed over.
    cursor: Cursor,
    /// The newest event when it was asked.
    until: u64,
    left: u64,
    pieces: mpsc::Sender<io::Result<Bytes>>,
    whole: Whole,
}

/// Why no more lines are written just now.
enum Paused {
    /// There are no more.
    Done,
    /// The client takes nothing: this comes next.
    Slow(Bytes),
    /// Nobody wants them any more, or they cannot be read.
    Over,
}

impl Pull {
    async fn run(mut self) {
        loop {
            let turns = self.portal.turns.clone();
            let written = turns.some(move || {
                let paused = self.write();
                (self, paused)
            });
            let Some((pull, paused)) = written.await else { return };
            self = pull;
            match paused {
                Paused::Done => return self.whole.say(),
                Paused::Over => return,
                Paused::Slow(piece) => {
                    let sent = self.pieces.send_timeout(Ok(piece), Duration::from_millis(PIECE_MS)).await;
                    if sent.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Writes lines until the client takes no more, or there are none.
    fn write(&mut self) -> Paused {
        let Pull { portal, asked, may, now_ms, texts, cursor, until, left, pieces, .. } = self;
        let mut text = String::new();
        let (mut paused, mut reached) = (None, cursor.clone());
        let read =
            portal.hub.changes.read(&portal.archive, &From::After(cursor.clone()), &asked.filter, |at, event| {
                if at.number > *until || *left == 0 {
                    return ControlFlow::Break(());
                }
                reached.number = at.number;
                if !may_see(portal, *may, *now_ms, event) {
                    return if pieces.is_closed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
                }
                *left -= 1;
                if text.capacity() == 0 {
                    text.reserve(PIECE_BYTES + LINE_BYTES);
                }
                put(portal, texts.as_ref(), at, event, &mut text);
                text.push('\n');
                if text.len() < PIECE_BYTES {
                    return ControlFlow::Continue(());
                }
                paused = send(pieces, std::mem::take(&mut text).into());
                if paused.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        *cursor = reached;
        match (read, paused) {
            (Err(error), _) => {
                portal.note(&trouble(error));
                Paused::Over
            }
            (Ok(_), Some(paused)) => paused,
            (Ok(_), None) if text.is_empty() => Paused::Done,
            (Ok(_), None) => send(pieces, text.into()).unwrap_or(Paused::Done),
        }
    }
}

/// Hands a piece over, unless the client takes none for a moment, or is gone.
fn send(pieces: &mpsc::Sender<io::Result<Bytes>>, piece: Bytes) -> Option<Paused> {
    let piece = match pieces.try_send(Ok(piece)) {
        Ok(()) => return None,
        Err(TrySendError::Closed(_)) => return Some(Paused::Over),
        Err(TrySendError::Full(piece)) => piece,
    };
    let sent = pieces.send_timeout(piece, Duration::from_millis(STALL_MS));
    match tokio::runtime::Handle::current().block_on(sent) {
        Ok(()) => None,
        Err(SendTimeoutError::Closed(_)) => Some(Paused::Over),
        Err(SendTimeoutError::Timeout(piece)) => piece.ok().map(Paused::Slow),
    }
}
