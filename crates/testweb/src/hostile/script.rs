//! What is put on the wire, byte for byte: an answer as data, so that a misbehaviour is decided purely and only played by
//! the server.

use bytes::Bytes;

use crate::limits;

/// An answer that is sent as it stands, without HTTP's rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    /// What is sent, in order.
    pub steps: Vec<Step>,
    /// What becomes of the connection.
    pub then: Then,
    /// The status that a reader would see; 0 when there is none.
    pub status: u16,
    /// What it means as a robots.txt: status, and as much of the body as counts.
    pub robots: Option<(u16, Bytes)>,
    /// `Retry-After` in seconds from now, as far as it has a meaning.
    pub retry_after_seconds: Option<u64>,
}

/// A part of what is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// These bytes.
    Send(Bytes),
    /// These bytes, again and again, with a pause after each time; [`ENDLESS`] times for ever.
    Repeat { bytes: Bytes, times: u64, every_ms: u64 },
    /// `before`, a number from 0 up, `after`: so many times.
    Count { before: Bytes, after: Bytes, times: u64 },
    /// One byte at a time.
    Drip { bytes: Bytes, every_ms: u64 },
}

/// As often as anyone listens.
pub(crate) const ENDLESS: u64 = u64::MAX;

/// What becomes of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Open for the next request.
    Keep,
    /// Closed.
    Close,
    /// Broken off with a reset.
    Reset,
    /// Open and silent for so long, then closed.
    Hold { ms: u64 },
}

impl Script {
    /// These bytes, then the end.
    pub fn raw(status: u16, bytes: impl Into<Bytes>) -> Script {
        Script {
            steps: vec![Step::Send(bytes.into())],
            then: Then::Close,
            status,
            robots: None,
            retry_after_seconds: None,
        }
    }

    /// A lawful answer of known length with any headers; the connection stays open.
    pub fn answer(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Script {
        let body = body.as_ref();
        let mut bytes = head(status, headers);
        bytes.truncate(bytes.len() - 2);
        bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        bytes.extend_from_slice(body);
        Script::raw(status, bytes).then(Then::Keep)
    }

    /// A body of unknown length that ends with the connection.
    pub fn stream(status: u16, headers: &[(&str, &str)]) -> Script {
        let mut bytes = head(status, headers);
        bytes.truncate(bytes.len() - 2);
        bytes.extend_from_slice(b"Connection: close\r\n\r\n");
        Script::raw(status, bytes)
    }

    /// Nothing at all, for so long.
    pub fn silence(ms: u64) -> Script {
        Script { steps: Vec::new(), ..Script::raw(0, Bytes::new()) }.then(Then::Hold { ms })
    }

    /// With more bytes.
    pub fn send(mut self, bytes: impl Into<Bytes>) -> Script {
        self.steps.push(Step::Send(bytes.into()));
        self
    }

    /// With bytes that come again and again. Short ones are sent many at a time, unless there is a pause between them.
    pub fn repeat(mut self, bytes: impl Into<Bytes>, times: u64, every_ms: u64) -> Script {
        let bytes = bytes.into();
        let together = (limits::FILE_PIECE_BYTES / bytes.len().max(1)) as u64;
        if every_ms > 0 || together < 2 || times < 2 {
            self.steps.push(Step::Repeat { bytes, times, every_ms });
            return self;
        }
        let block = bytes.repeat(together.min(times) as usize);
        if times == ENDLESS {
            self.steps.push(Step::Repeat { bytes: block.into(), times, every_ms });
            return self;
        }
        let left = times % together.min(times);
        self.steps.push(Step::Repeat { times: times / together.min(times), bytes: block.into(), every_ms });
        self.steps.push(Step::Send(bytes.repeat(left as usize).into()));
        self
    }

    /// With numbered lines.
    pub fn count(mut self, before: impl Into<Bytes>, after: impl Into<Bytes>, times: u64) -> Script {
        self.steps.push(Step::Count { before: before.into(), after: after.into(), times });
        self
    }

    /// With bytes that come one by one.
    pub fn drip(mut self, bytes: impl Into<Bytes>, every_ms: u64) -> Script {
        self.steps.push(Step::Drip { bytes: bytes.into(), every_ms });
        self
    }

    /// With this end.
    pub fn then(self, then: Then) -> Script {
        Script { then, ..self }
    }

    /// As a robots.txt with this meaning.
    pub fn meaning(self, status: u16, body: impl Into<Bytes>) -> Script {
        Script { robots: Some((status, body.into())), ..self }
    }

    /// The bytes it sends; `None` when it never ends.
    #[cfg(test)]
    pub fn length(&self) -> Option<u64> {
        let mut length = 0;
        for step in &self.steps {
            length += match step {
                Step::Send(bytes) | Step::Drip { bytes, .. } => bytes.len() as u64,
                Step::Repeat { times: ENDLESS, .. } => return None,
                Step::Repeat { bytes, times, .. } => bytes.len() as u64 * times,
                Step::Count { .. } => panic!("not asked of numbered lines"),
            };
        }
        Some(length)
    }
}

/// A head with its closing blank line.
pub(crate) fn head(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let reason = http::StatusCode::from_u16(status).ok().and_then(|s| s.canonical_reason()).unwrap_or("Odd");
    let mut head = format!("HTTP/1.1 {status} {reason}\r\nServer: skep-testweb\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    head.into_bytes()
}

/// A page of HTML.
pub(crate) fn page(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\n\
         <body><h1>{title}</h1>\n{body}</body></html>\n"
    )
}

/// The media type of [`page`].
pub(crate) const HTML: (&str, &str) = ("Content-Type", "text/html; charset=utf-8");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_pieces_are_sent_together_and_none_is_lost() {
        for times in [0, 1, 2, 9_362, 9_363, 10_000_000] {
            let script = Script::raw(200, "").repeat("<b>x</b>", times, 0);
            assert_eq!(script.length(), Some(8 * times), "{times}");
        }
        assert_eq!(Script::raw(200, "").repeat("x", ENDLESS, 0).length(), None);
        assert_eq!(Script::raw(200, "").repeat("x", 5, 1).steps.len(), 2);
    }

    #[test]
    fn an_answer_says_how_long_it_is() {
        let script = Script::answer(200, &[HTML], "hello");
        let Step::Send(bytes) = &script.steps[0] else { panic!("one piece") };
        assert!(bytes.ends_with(b"Content-Length: 5\r\n\r\nhello"));
        assert_eq!(script.then, Then::Keep);
    }
}
