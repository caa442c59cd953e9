//! The read loop and its clocks: from the first byte of an answer to its end, a limit or a deadline.

use std::io;
use std::time::Duration;

use skep_warc::http::Head;
use skep_warc::write::Truncated;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Instant, timeout_at};

use crate::exchange::Note;
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
    sent: Instant,
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
                HeadStep::Interim(end) => {
                    interim.extend(spooling.memory.drain(..end));
                    clocks = Clocks { sent: Instant::now(), span: None, ..clocks };
                }
                HeadStep::Body(at) => {
                    (head_bytes, judged) = (at, at);
                    if let Some(head) = message.head() {
                        if is_html(head) {
                            body_max = limits.html_bytes_max;
                        }
                        if may_be_large(head) {
                            clocks.total = sent + ms(limits.total_large_ms);
                        }
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
        let (deadline, fault) = clocks.next(limits);
        match timeout_at(deadline, stream.read_buf(&mut spooling.memory)).await {
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
