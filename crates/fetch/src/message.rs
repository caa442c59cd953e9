//! Where the head of an answer ends, how long its body is, and what is odd about them. Pure: bytes in, verdicts out.
//!
//! ```text
//!   *( interim head )  head  body  surplus
//!
//!   body by status 101, 204, 304          none
//!        else by Transfer-Encoding: chunked   up to the last chunk     (wins over a length)
//!        else by Content-Length               so many bytes
//!        else                                 up to the end of the connection
//! ```

use memchr::memchr;
use skep_warc::http::limits::SNIFF_BYTES;
use skep_warc::http::{Chunks, Head, Parsed, Rule};
use skep_warc::write::Truncated;

use crate::exchange::Note;
use crate::fault::{Break, Fault};
use crate::limits::{HEAD_BYTES_MAX, Limits};

/// What the bytes at hand say about the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadStep {
    /// Nothing yet.
    More,
    /// An interim answer, and nothing behind it yet: the server is still at work.
    Pause,
    /// So many bytes at the start are an interim answer: take them away and ask again.
    Interim(usize),
    /// The body begins at this offset.
    Body(usize),
    /// Go no further.
    Stop,
}

#[derive(Debug)]
enum State {
    /// `searched`: no empty line begins before it. `sniffed`: the first bytes look like HTTP.
    Head {
        searched: usize,
        sniffed: bool,
    },
    Length {
        left: u64,
    },
    Chunks {
        chunks: Box<Chunks>,
        trailer_bytes: u64,
    },
    UntilClose,
    Ended,
}

/// One answer while it is read.
#[derive(Debug)]
pub(crate) struct Message {
    state: State,
    head: Head,
    has_head: bool,
    /// The connection ended inside the head.
    head_cut: bool,
    interim: u32,
    keep_alive: bool,
    pub fault: Option<Fault>,
    pub notes: Vec<Note>,
}

impl Message {
    pub fn new() -> Message {
        Message {
            state: State::Head { searched: 0, sniffed: false },
            head: Head::new(),
            has_head: false,
            head_cut: false,
            interim: 0,
            keep_alive: false,
            fault: None,
            notes: Vec::new(),
        }
    }

    pub fn is_in_head(&self) -> bool {
        matches!(self.state, State::Head { .. })
    }

    pub fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    pub fn head(&self) -> Option<&Head> {
        self.has_head.then_some(&self.head)
    }

    pub fn into_head(self) -> Option<Head> {
        self.has_head.then_some(self.head)
    }

    /// Bytes that must still come, where that is known.
    pub fn left(&self) -> Option<u64> {
        match self.state {
            State::Length { left } => Some(left),
            _ => None,
        }
    }

    /// May the connection carry another exchange? Only after an answer about which nothing at all is odd.
    pub fn is_reusable(&self) -> bool {
        self.is_ended() && self.keep_alive && self.fault.is_none() && self.notes.is_empty()
    }

    pub fn note(&mut self, note: Note) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Looks at all bytes of the answer so far. `ended`: no more will come.
    ///
    /// The parser begins anew each time, so it is asked only when an empty line, the end or the bound is met: a head that comes
    /// byte by byte costs no more than one that comes at once.
    pub fn read_head(&mut self, bytes: &[u8], ended: bool, limits: &Limits) -> HeadStep {
        let State::Head { searched, sniffed } = &mut self.state else { return HeadStep::Body(0) };
        let bytes_max = limits.head_bytes_max.min(HEAD_BYTES_MAX);
        let is_over = bytes.len() > bytes_max;
        let end = end_of_head(bytes, *searched);
        if end.is_none() {
            *searched = bytes.len().saturating_sub(2);
            if !ended && !is_over && (*sniffed || bytes.len() < SNIFF_BYTES) {
                return HeadStep::More;
            }
        }
        *sniffed = true;
        if let Some(end) = end.filter(|_| is_interim(bytes)) {
            let rest = &bytes[end..];
            let start = &rest[..rest.len().min(5)];
            if start.eq_ignore_ascii_case(&b"HTTP/"[..start.len()]) {
                if start.len() < 5 && !ended {
                    return HeadStep::Pause;
                }
                if start.len() == 5 {
                    return self.cut_interim(end, limits);
                }
            }
        }
        match self.head.parse_response(bytes, ended) {
            Parsed::Complete { body } => self.begin_body(body, bytes.len(), ended, body > bytes_max, limits),
            Parsed::NeedMore if is_over => self.unparsed(Fault::HeadTooLarge),
            Parsed::NeedMore => {
                if let (Some(end), State::Head { searched, .. }) = (end, &mut self.state) {
                    *searched = end; // empty lines before the first line
                }
                HeadStep::More
            }
            Parsed::NotHttp => self.unparsed(Fault::Malformed),
        }
    }

    fn cut_interim(&mut self, end: usize, limits: &Limits) -> HeadStep {
        self.interim += 1;
        if self.interim > limits.interim_max {
            self.fault = Some(Fault::InterimFlood);
            return HeadStep::Stop;
        }
        self.state = State::Head { searched: 0, sniffed: false };
        HeadStep::Interim(end)
    }

    /// There is no head to be understood: everything up to the end of the connection is kept.
    fn unparsed(&mut self, fault: Fault) -> HeadStep {
        self.fault = Some(fault);
        self.state = State::UntilClose;
        HeadStep::Body(0)
    }

    fn begin_body(&mut self, body: usize, at_hand: usize, ended: bool, too_long: bool, limits: &Limits) -> HeadStep {
        for deviation in self.head.deviations() {
            self.notes.push(Note::Http(deviation.rule));
            self.head_cut |= deviation.rule == Rule::HeadUnended;
        }
        self.has_head = true;
        if too_long || self.head.lines().count() > limits.head_lines_max {
            self.fault = Some(Fault::HeadTooLarge);
            self.has_head = false;
        } else if self.head.status().is_none() {
            self.fault = Some(Fault::Malformed);
        }
        self.keep_alive = keeps_alive(&self.head);
        let repeated = self.head.headers("content-length").count() > 1
            || self.head.header("content-length").is_some_and(|value| memchr(b',', value).is_some());
        let length = self.head.content_length();
        // The parser is as lenient as a parser of numbers: `+5` is five.
        let is_plain = |value: &[u8]| value.iter().all(|b| b.is_ascii_digit() || matches!(b, b',' | b' ' | b'\t'));
        if !self.head.headers("content-length").all(is_plain) {
            self.note(Note::Http(Rule::ContentLengthInvalid));
        }
        if repeated && length.is_some() {
            self.note(Note::LengthRepeated);
        }
        self.state = match self.head.status() {
            Some(101 | 204 | 304) => {
                self.keep_alive &= self.head.status() != Some(101);
                State::Ended
            }
            Some(100..200) if ended && body == at_hand => {
                self.fault = Some(Fault::Broken(Break::OnlyInterim));
                State::Ended
            }
            Some(100..200) => State::UntilClose, // what follows is no further answer: keep it
            _ if self.head.is_chunked() => {
                if self.head.header("content-length").is_some() {
                    self.note(Note::LengthAndChunked);
                }
                State::Chunks { chunks: Box::default(), trailer_bytes: 0 }
            }
            _ => match length {
                Some(0) => State::Ended,
                Some(left) => State::Length { left },
                None => State::UntilClose,
            },
        };
        HeadStep::Body(body)
    }

    /// Counts the next bytes of the body: how many of them belong to it.
    pub fn read_body(&mut self, bytes: &[u8], limits: &Limits) -> usize {
        match &mut self.state {
            State::Head { .. } | State::Ended => 0,
            State::UntilClose => bytes.len(),
            State::Length { left } => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= taken as u64;
                if *left == 0 {
                    self.state = State::Ended;
                }
                taken
            }
            State::Chunks { chunks, trailer_bytes } => {
                let mut at = 0;
                while at < bytes.len() && !chunks.is_at_end() {
                    use skep_warc::http::Step;
                    let in_trailer = chunks.is_in_trailer();
                    let (Step::Skip(taken) | Step::Body(taken) | Step::Held(taken)) = chunks.step(&bytes[at..]);
                    at += taken;
                    if in_trailer {
                        *trailer_bytes += taken as u64;
                        if *trailer_bytes > limits.trailer_bytes_max {
                            self.fault.get_or_insert(Fault::Broken(Break::Trailer));
                            self.state = State::Ended;
                            return at;
                        }
                    }
                }
                if chunks.is_at_end() {
                    for deviation in chunks.deviations() {
                        self.notes.push(Note::Http(deviation.rule));
                    }
                    self.state = State::Ended;
                }
                at
            }
        }
    }

    /// The connection has ended, in good order unless `failed`: is that the end of the answer?
    pub fn finish(&mut self, failed: bool) -> Option<Truncated> {
        let (broken, truncated) = match std::mem::replace(&mut self.state, State::Ended) {
            State::Head { .. } => (Some(Break::Head), true),
            State::Length { .. } => (Some(Break::Length), true),
            State::Chunks { mut chunks, .. } => {
                let plain = chunks.is_plain();
                chunks.finish();
                for deviation in chunks.deviations() {
                    self.notes.push(Note::Http(deviation.rule));
                }
                (Some(if plain { Break::Chunks } else { Break::ChunksCut }), !plain || failed)
            }
            State::UntilClose if failed => (Some(Break::Connection), true),
            State::UntilClose | State::Ended if self.head_cut => (Some(Break::Head), true),
            State::UntilClose | State::Ended => (None, false),
        };
        self.keep_alive = false;
        if let Some(broken) = broken {
            self.fault.get_or_insert(Fault::Broken(broken));
        }
        truncated.then_some(Truncated::Disconnect)
    }
}

/// Does the server keep the connection?
fn keeps_alive(head: &Head) -> bool {
    let says = |word: &[u8]| {
        head.headers("connection")
            .any(|value| value.split(|&b| b == b',').any(|listed| listed.trim_ascii().eq_ignore_ascii_case(word)))
    };
    match head.version() {
        Some((1, 1)) => !says(b"close"),
        Some((1, 0)) => says(b"keep-alive") && !says(b"close"),
        _ => false,
    }
}

/// Where the first empty line at or behind `from` ends.
fn end_of_head(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(length) = memchr(b'\n', bytes.get(at..)?) {
        at += length + 1;
        match bytes[at..] {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
    None
}

/// `HTTP/1.1 100 Continue` and its kind; 101 is final.
fn is_interim(bytes: &[u8]) -> bool {
    let Some((start, status)) = bytes.get(..13).map(|line| line.split_at(9)) else { return false };
    start[..5].eq_ignore_ascii_case(b"HTTP/")
        && start[8] == b' '
        && status[0] == b'1'
        && status[1..3].iter().all(u8::is_ascii_digit)
        && !status[3].is_ascii_digit()
        && status[..3] != *b"101"
}

/// Is it HTML? Its body has a bound of its own.
pub(crate) fn is_html(head: &Head) -> bool {
    let Some(media) = head.media_type() else { return false };
    media.eq_ignore_ascii_case(b"text/html") || media.eq_ignore_ascii_case(b"application/xhtml+xml")
}

/// Is it of a type that may be large, and may therefore take long?
pub(crate) fn may_be_large(head: &Head) -> bool {
    let media = head.media_type().unwrap_or_default();
    let starts = |prefix: &[u8]| media.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    let ends = |suffix: &[u8]| {
        media.len().checked_sub(suffix.len()).is_some_and(|at| media[at..].eq_ignore_ascii_case(suffix))
    };
    !(media.is_empty() || starts(b"text/") || ends(b"xml") || ends(b"json") || ends(b"javascript"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives the bytes in pieces of every size; the end is the end of the connection if `closes`.
    fn read(bytes: &[u8], piece: usize, closes: bool) -> (Message, usize, usize, Option<Truncated>) {
        let limits = Limits::default();
        let (mut message, mut kept, mut body) = (Message::new(), Vec::new(), 0);
        let mut cut = 0;
        let mut truncated = None;
        let mut pieces = bytes.chunks(piece.max(1));
        loop {
            let next = pieces.next();
            kept.extend_from_slice(next.unwrap_or_default());
            let ended = next.is_none();
            while message.is_in_head() {
                match message.read_head(&kept, ended && closes, &limits) {
                    HeadStep::More | HeadStep::Pause | HeadStep::Stop => break,
                    HeadStep::Interim(end) => {
                        kept.drain(..end);
                        cut += end;
                    }
                    HeadStep::Body(at) => body = at,
                }
            }
            if !message.is_in_head() {
                let at = body;
                body += message.read_body(&kept[at..], &limits);
            }
            if ended {
                if closes && !message.is_ended() || message.head_cut {
                    truncated = message.finish(false);
                }
                return (message, cut, body, truncated);
            }
        }
    }

    #[track_caller]
    fn check(bytes: &str, closes: bool, interim: usize, length: usize, fault: Option<Fault>, notes: &[&str]) {
        for piece in [1, 2, 3, 7, 1000] {
            let (message, cut, end, _) = read(bytes.as_bytes(), piece, closes);
            assert_eq!((cut, end, &message.fault), (interim, length, &fault), "in pieces of {piece}");
            let ids: Vec<&str> = message.notes.iter().map(|note| note.id()).collect();
            assert_eq!(ids, notes, "in pieces of {piece}");
        }
    }

    #[test]
    fn framing_by_length_chunks_and_close() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef", false, 0, 41, None, &[]);
        check("HTTP/1.1 200 OK\r\n\r\nabcdef", true, 0, 25, None, &[]);
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nA: b\r\n\r\n";
        check(&format!("{chunked}surplus"), false, 0, chunked.len(), None, &[]);
        check("HTTP/1.1 204 No\r\nContent-Length: 3\r\n\r\nabc", false, 0, 38, None, &[]);
    }

    #[test]
    fn interim_answers_are_cut() {
        let (interim, answer) =
            ("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        check(&format!("{interim}{interim}{answer}"), false, 2 * interim.len(), answer.len(), None, &[]);
        check(interim, true, 0, interim.len(), Some(Fault::Broken(Break::OnlyInterim)), &[]);
        let flood = interim.repeat(12);
        let (message, cut, ..) = read(flood.as_bytes(), 50, false);
        assert_eq!((message.fault, cut), (Some(Fault::InterimFlood), 10 * interim.len()));
    }

    #[test]
    fn what_breaks_off_says_where() {
        check(
            "HTTP/1.1 200 OK\r\nContent-Len",
            true,
            0,
            28,
            Some(Fault::Broken(Break::Head)),
            &["http-head-unended", "http-no-colon"],
        );
        check("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", true, 0, 41, Some(Fault::Broken(Break::Length)), &[]);
        check("garbage that is no head at all", true, 0, 30, Some(Fault::Malformed), &[]);
    }

    #[test]
    fn only_an_answer_without_oddities_keeps_its_connection() {
        for (bytes, wanted) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", true),
            ("HTTP/1.1 304 Not Modified\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: x, Close\r\n\r\na", false),
            ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", false),
            ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: Keep-Alive\r\n\r\na", true),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false),
            ("HTTP/1.1 200 OK\nContent-Length: 1\r\n\r\na", false),
            ("HTTP/1.1 101 Switching\r\n\r\n", false),
            ("HTTP/2 200 OK\r\nContent-Length: 1\r\n\r\na", false),
        ] {
            assert_eq!(read(bytes.as_bytes(), 1000, false).0.is_reusable(), wanted, "{bytes:?}");
        }
    }

    #[test]
    fn heads_have_bounds() {
        let limits = Limits::default();
        let lines = format!("HTTP/1.1 200 OK\r\n{}Content-Length: 1\r\n\r\nab", "A: b\r\n".repeat(1_000));
        let mut message = Message::new();
        let HeadStep::Body(body) = message.read_head(lines.as_bytes(), false, &limits) else { panic!() };
        assert_eq!(message.fault, Some(Fault::HeadTooLarge));
        assert_eq!(message.read_body(&lines.as_bytes()[body..], &limits), 1); // framed all the same
        assert!(message.into_head().is_none());

        let long = format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(HEAD_BYTES_MAX));
        let mut message = Message::new();
        assert_eq!(message.read_head(long.as_bytes(), false, &limits), HeadStep::Body(0));
        assert_eq!(message.fault, Some(Fault::HeadTooLarge));

        let trailers =
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{}", "A: b\r\n".repeat(10_000));
        assert_eq!(read(trailers.as_bytes(), 1000, false).0.fault, Some(Fault::Broken(Break::Trailer)));
    }
}
