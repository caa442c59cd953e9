//! The read loop and its clocks: from the first byte of an answer to its end, a limit or a deadline.

use std::io;
use std::time::Duration;

use skep_warc::http::Head;
use skep_warc::write::Truncated;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Instant, timeout_at};

use crate::broker::Meter;
use crate::exchange::{Note, Wanted};
use crate::fault::{Fault, Stage, is_local};
use crate::limits::{Limits, READ_BYTES, READ_BYTES_FIRST};
use crate::message::{HeadStep, Message, is_html, may_be_large};
use crate::spool::{Spool, Spooling};

/// Room behind the end of a body of known length, so that surplus bytes are seen.
const SURPLUS_ROOM: usize = 256;
/// Smallest room worth a read.
const ROOM_MIN: usize = 2048;

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Received {
    pub response: Spool,
    pub head: Option<Head>,
    pub head_bytes: usize,
    pub interim: Vec<u8>,
    pub surplus_bytes: u64,
    pub fault: Option<Fault>,
    pub truncated: Option<Truncated>,
    pub notes: Vec<Note>,
    /// The connection may carry another exchange.
    pub is_reusable: bool,
    /// The server ended the connection.
    pub is_closed: bool,
    pub first_byte: Option<Instant>,
}

impl Received {
    /// Did the server send too much, too slowly, or what it should not?
    pub fn is_abuse(&self) -> bool {
        self.fault.is_some() || self.truncated.is_some() || self.surplus_bytes > 0
    }
}

/// Which clock is the next to run out, and when.
struct Clocks {
    sent: Instant,
    total: Instant,
    /// The deadline of the present span, and the bytes there were at its beginning; `None` before the first byte.
    span: Option<(Instant, u64)>,
}

impl Clocks {
    fn next(&self, limits: &Limits) -> (Instant, Fault) {
        let (at, fault) = match self.span {
            None => (self.sent + ms(limits.first_byte_ms), Fault::Timeout(Stage::FirstByte)),
            Some((at, _)) => (at, Fault::TooSlow),
        };
        if at <= self.total { (at, fault) } else { (self.total, Fault::Timeout(Stage::Total)) }
    }

    /// All clocks stood still for so long.
    fn wait(&mut self, waited: Duration) {
        self.sent += waited;
        self.total += waited;
        self.span = self.span.map(|(at, bytes)| (at + waited, bytes));
    }

    /// Bytes came: a new span begins when the present one has had its share.
    fn came(&mut self, bytes: u64, now: Instant, limits: &Limits) {
        if self.span.is_none_or(|(_, before)| bytes - before >= limits.progress_bytes) {
            self.span = Some((now + ms(limits.progress_ms), bytes));
        }
    }
}

pub(crate) fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Reads one answer to a request that was sent at `sent`.
pub(crate) async fn receive<S: AsyncRead + Unpin>(
    stream: &mut S,
    limits: &Limits,
    body_bytes_max: Option<u64>,
    wanted: Option<&dyn Wanted>,
    sent: Instant,
    meter: Option<&dyn Meter>,
) -> Received {
    let mut message = Message::new();
    let mut spooling = Spooling::new(READ_BYTES_FIRST);
    let mut clocks = Clocks { sent, total: sent + ms(limits.total_ms), span: None };
    let mut interim = Vec::new();
    let (mut head_bytes, mut surplus_bytes) = (0, 0);
    let (mut body_max, mut body_bytes) = (limits.body_bytes_max, 0);
    let mut judged = 0; // bytes in memory about which the message has decided
    let (mut bytes, mut first_byte) = (0, None);
    let mut truncated = None;
    let (mut is_closed, mut has_failed) = (false, false);

    loop {
        // What do the bytes at hand say?
        while message.is_in_head() && message.fault.is_none() && !spooling.memory.is_empty() {
            match message.read_head(&spooling.memory, is_closed, limits) {
                HeadStep::More | HeadStep::Stop => break,
                // Who says that it is at work gets the time for a first byte again.
                HeadStep::Pause => {
                    clocks = Clocks { sent: Instant::now(), span: None, ..clocks };
                    break;
                }
                HeadStep::Interim(end) => interim.extend(spooling.memory.drain(..end)),
                HeadStep::Body(at) => {
                    (head_bytes, judged) = (at, at);
                    if let Some(head) = message.head() {
                        if is_html(head) {
                            body_max = limits.html_bytes_max;
                        }
                        if may_be_large(head) {
                            clocks.total = sent + ms(limits.total_large_ms);
                        }
                        let of_use = wanted.and_then(|wanted| wanted.body_bytes_max(head));
                        body_max = body_max.min(of_use.unwrap_or(u64::MAX));
                    }
                    body_max = body_max.min(body_bytes_max.unwrap_or(u64::MAX));
                }
            }
        }
        if !message.is_in_head() {
            let new = &spooling.memory[judged..];
            let allowed = usize::try_from(body_max - body_bytes).unwrap_or(usize::MAX).min(new.len());
            let taken = message.read_body(&new[..allowed], limits);
            let is_over = allowed < new.len() && !message.is_ended();
            judged += taken;
            body_bytes += taken as u64;
            if message.is_ended() || is_over {
                surplus_bytes = if is_over { 0 } else { (spooling.memory.len() - judged) as u64 };
                spooling.memory.truncate(judged);
                truncated = is_over.then_some(Truncated::Length);
                break;
            }
            if spooling.memory.len() >= limits.spool_bytes {
                if let Err(error) = spooling.spill() {
                    message.fault.get_or_insert(Fault::LocalResources(error.to_string()));
                    truncated = Some(Truncated::Unspecified);
                    break;
                }
                judged = 0;
            }
        }
        if is_closed || (message.is_in_head() && message.fault.is_some()) {
            break;
        }

        // More of them.
        make_room(&mut spooling.memory, message.left(), limits);
        let room = spooling.memory.capacity() - spooling.memory.len();
        let allowed = match meter {
            None => room,
            Some(meter) => {
                let waited = Instant::now();
                let allowed = meter.take(room).await.min(room);
                // We were slow on purpose; the server was not.
                clocks.wait(waited.elapsed());
                if allowed == 0 {
                    message.fault.get_or_insert(Fault::LocalResources("no more bytes may be read".to_owned()));
                    truncated = (bytes > 0).then_some(Truncated::Unspecified);
                    break;
                }
                allowed
            }
        };
        let (deadline, fault) = clocks.next(limits);
        let mut some = (&mut *stream).take(allowed as u64);
        let read = timeout_at(deadline, some.read_buf(&mut spooling.memory)).await;
        if let Some(meter) = meter {
            meter.back(allowed - read.as_ref().ok().and_then(|read| read.as_ref().ok()).copied().unwrap_or(0));
        }
        match read {
            Ok(Ok(0)) => is_closed = true,
            Ok(Ok(read)) => {
                let now = Instant::now();
                first_byte.get_or_insert(now);
                bytes += read as u64;
                if now > deadline {
                    // This machine slept or was busy: who is slow is told from the next span.
                    clocks.span = None;
                }
                clocks.came(bytes, now, limits);
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                message.note(Note::TlsUnclosed);
                is_closed = true;
            }
            Ok(Err(error)) => {
                if is_local(&error) {
                    message.fault.get_or_insert(Fault::LocalResources(error.to_string()));
                }
                (is_closed, has_failed) = (true, true);
            }
            Err(_) => {
                message.fault.get_or_insert(fault);
                truncated = (bytes > 0).then_some(Truncated::Time);
                break;
            }
        }
    }

    if first_byte.is_none() && is_closed {
        message.fault.get_or_insert(Fault::Closed);
    } else if is_closed && truncated.is_none() {
        truncated = message.finish(has_failed);
    }
    if !interim.is_empty() {
        message.note(Note::Interim);
    }
    if surplus_bytes > 0 {
        message.note(Note::Surplus);
    }
    let is_reusable = message.is_reusable() && !is_closed && truncated.is_none();
    let (response, error) = spooling.finish();
    if let Some(error) = error {
        message.fault.get_or_insert(Fault::LocalResources(error.to_string()));
        truncated.get_or_insert(Truncated::Unspecified);
    }
    let (fault, notes) = (message.fault.take(), std::mem::take(&mut message.notes));
    Received {
        response,
        head: message.into_head(),
        head_bytes,
        interim,
        surplus_bytes,
        fault,
        truncated,
        notes,
        is_reusable,
        is_closed,
        first_byte,
    }
}

/// Room for the next read: for all that is left where that is known and fits.
fn make_room(memory: &mut Vec<u8>, left: Option<u64>, limits: &Limits) {
    let free = memory.capacity() - memory.len();
    match left {
        Some(left) => {
            let wanted =
                usize::try_from(left).unwrap_or(usize::MAX).min(limits.spool_bytes).saturating_add(SURPLUS_ROOM);
            if free < wanted.min(READ_BYTES) {
                memory.reserve_exact(wanted);
            }
        }
        None if free < ROOM_MIN => memory.reserve(READ_BYTES),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;

    /// Runs `server` against the read loop under a clock that jumps from event to event.
    async fn against<F: Future<Output = ()>>(
        limits: &Limits,
        body_bytes_max: Option<u64>,
        server: impl FnOnce(tokio::io::DuplexStream) -> F,
    ) -> (Received, Duration) {
        let (mut ours, theirs) = tokio::io::duplex(1 << 16);
        let began = Instant::now();
        let receiving = async {
            let received = receive(&mut ours, limits, body_bytes_max, None, began, None).await;
            drop(ours);
            (received, began.elapsed())
        };
        tokio::pin!(receiving);
        let mut outcome = None;
        let serving = server(theirs);
        tokio::pin!(serving);
        tokio::select! {
            biased;
            received = &mut receiving => outcome = Some(received),
            () = &mut serving => {}
        }
        match outcome {
            Some(outcome) => outcome,
            None => receiving.await,
        }
    }

    fn head(kind: &str, more: &str) -> String {
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{more}\r\n")
    }

    /// Sends `piece` every `every_ms`, for ever.
    async fn drip(mut stream: tokio::io::DuplexStream, first: String, piece: Vec<u8>, every_ms: u64) {
        let _ = stream.write_all(first.as_bytes()).await;
        while stream.write_all(&piece).await.is_ok() {
            tokio::time::sleep(ms(every_ms)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answers() {
        let limits = Limits::default();
        let (received, took) = against(&limits, None, |stream| async move {
            std::future::pending::<()>().await;
            drop(stream);
        })
        .await;
        assert_eq!(received.fault, Some(Fault::Timeout(Stage::FirstByte)));
        assert_eq!((received.truncated, received.response.len()), (None, 0));
        assert_eq!(took, ms(limits.first_byte_ms));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_drips() {
        let limits = Limits::default();
        for first in
            [head("text/html", "Content-Length: 100000\r\n"), head("text/html", ""), "HTTP/1.1 200 ".to_owned()]
        {
            let length = first.len() as u64;
            let dripping = |stream| drip(stream, first, b"x".to_vec(), 1_000);
            let (received, took) = against(&limits, None, dripping).await;
            assert_eq!((received.fault, received.truncated), (Some(Fault::TooSlow), Some(Truncated::Time)));
            assert_eq!((received.response.len(), took), (length + 10, ms(10_000)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_just_fast_enough_has_until_the_end_of_all_time() {
        let limits = Limits::default();
        for (kind, total_ms) in [("text/html", limits.total_ms), ("video/mp4", limits.total_large_ms)] {
            let first = head(kind, "");
            let dripping = |stream| drip(stream, first, vec![b'x'; 1024], 9_000);
            let (received, took) = against(&limits, None, dripping).await;
            assert_eq!(
                (received.fault, received.truncated),
                (Some(Fault::Timeout(Stage::Total)), Some(Truncated::Time))
            );
            assert_eq!(took, ms(total_ms), "{kind}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn interim_answers_give_the_server_time() {
        let limits = Limits::default();
        let (received, _) = against(&limits, None, |mut stream| async move {
            for _ in 0..3 {
                let _ = stream.write_all(b"HTTP/1.1 102 Processing\r\n\r\n").await;
                tokio::time::sleep(ms(15_000)).await;
                // The next answer shows that the last one has ended.
                let _ = stream.write_all(b"HTTP/1.1 102 Processing\r\n\r\nHTTP/").await;
                tokio::time::sleep(ms(9_000)).await;
                let _ = stream.write_all(b"1.1 102 Processing\r\n\r\n").await;
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
            std::future::pending::<()>().await;
        })
        .await;
        assert_eq!((received.fault, received.head.and_then(|head| head.status())), (None, Some(200)));
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_are_cut_at_their_bound_to_the_byte() {
        let limits =
            Limits { html_bytes_max: 5_000, body_bytes_max: 300_000, spool_bytes: 100_000, ..Limits::default() };
        for (kind, more, asked, wanted) in [
            ("text/html", "", None, 5_000),
            ("text/html; charset=x", "Content-Length: 1000000\r\n", None, 5_000),
            ("application/xhtml+xml", "", Some(10), 10),
            ("image/png", "", None, 300_000),
            ("image/png", "", Some(5_001), 5_001),
        ] {
            let first = head(kind, more);
            let length = first.len() as u64;
            let endless = |stream| drip(stream, first, vec![b'x'; 1_500], 1);
            let (received, _) = against(&limits, asked, endless).await;
            assert_eq!((received.fault, received.truncated), (None, Some(Truncated::Length)), "{kind}");
            assert_eq!(received.response.len(), length + wanted, "{kind}");
            assert_eq!(received.response.as_slice().is_none(), wanted > 100_000, "{kind}");
            assert!(!received.is_reusable);
        }
        // A body that just fits is whole.
        let (received, _) = against(&limits, Some(4), |mut stream| async move {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd").await;
            std::future::pending::<()>().await;
        })
        .await;
        assert_eq!((received.fault, received.truncated, received.is_reusable), (None, None, true));
    }

    #[tokio::test(start_paused = true)]
    async fn long_answers_leave_memory() {
        let limits = Limits { spool_bytes: 10_000, ..Limits::default() };
        let body: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
        for chunked in [false, true] {
            let mut sent = head(
                "image/png",
                if chunked { "Transfer-Encoding: chunked\r\n" } else { "Content-Length: 1000000\r\n" },
            )
            .into_bytes();
            if chunked {
                for chunk in body.chunks(70_000) {
                    sent.extend([format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
                }
                sent.extend_from_slice(b"0\r\n\r\n");
            } else {
                sent.extend_from_slice(&body);
            }
            let all = sent.clone();
            let (received, _) = against(&limits, None, |mut stream| async move {
                let _ = stream.write_all(&all).await;
                std::future::pending::<()>().await;
            })
            .await;
            assert!(received.is_reusable && matches!(received.response, Spool::File { .. }));
            assert!(received.response.bytes(0, u64::MAX).unwrap() == sent);
        }
    }
}
