//! What whoever leads a slice asks of another node that holds it, and what that one answers: pure and bounded. The ring carries it.
//!
//! ```text
//!  leader                                    follower
//!    Room ─────────────────────────────────▶  Room: a ticket, or Busy
//!    Measure (ticket, time, a URL) ────────▶  Measured: how long connecting took
//!    Fetch (ticket, a bundle) ─────────────▶  Exchange, Exchange, …, Over
//!
//!  answer   | length 4 LE | part | length 4 LE | part | …        each part in postcard
//! ```
//! A ticket is the moment at which the follower gave it, by its own clock. It counts the time that it was granted from there, and uses four
//! fifths of it; the leader counts from when it asked with the ticket, which was later, and waits for all of it. However long a
//! question was under way, and whatever the clocks on the wall say, the follower has stopped when the leader goes on.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use crate::envelope;
use crate::limits::{FOLLOW_PART_BYTES_MAX, FOLLOW_QUESTION_BYTES_MAX, TEXT_BYTES_MAX, URL_BYTES_MAX};
use crate::message::{Bundle, Message, Whole};

/// What is asked, about what all crawl under this name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The crawl.
    pub crawl: String,
    /// What.
    pub asked: Asked,
}

/// See [`Question`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Asked {
    /// Is there room for something?
    Room,
    /// How long does connecting to the server of this URL take? It is connected to once at most, and not if that is known.
    Measure {
        /// As it was given.
        ticket: u64,
        /// For so long nobody else asks the site.
        grant_ms: u32,
        /// Whose server.
        url: String,
    },
    /// Fetch these. Robots rules are applied to them already.
    Fetch {
        /// As it was given.
        ticket: u64,
        /// With the time for which nobody else asks the site.
        bundle: Bundle,
    },
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// There is room.
    Room {
        /// See the module.
        ticket: u64,
    },
    /// As much is going on as can be; nothing was asked of the site.
    Busy,
    /// Connecting takes so long; `None`: there is no way.
    Measured {
        /// In milliseconds.
        took_ms: Option<u32>,
        /// The site was connected to just now. Else it was known.
        now: bool,
    },
    /// One URL of the bundle, as it was fetched.
    Exchange {
        /// Its place in the bundle.
        number: u16,
        /// How long before this was said the request was sent, in milliseconds.
        ago_ms: u32,
        /// All of it.
        whole: Whole,
    },
    /// Nothing is under way any more.
    Over {
        /// There is something among the rest that whoever leads may get, and this node did not.
        unable: bool,
    },
}

impl Message for Question {
    fn is_bounded(&self) -> bool {
        self.crawl.len() <= TEXT_BYTES_MAX
            && match &self.asked {
                Asked::Room => true,
                Asked::Measure { url, .. } => url.len() <= URL_BYTES_MAX,
                Asked::Fetch { bundle, .. } => bundle.is_bounded(),
            }
    }
}

impl Message for Part {
    fn is_bounded(&self) -> bool {
        match self {
            Part::Exchange { whole, .. } => whole.is_bounded(),
            Part::Room { .. } | Part::Busy | Part::Measured { .. } | Part::Over { .. } => true,
        }
    }
}

impl Question {
    /// As it travels; `None` where that is more than is carried.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let bytes = envelope::plain(self);
        (!bytes.is_empty() && bytes.len() <= FOLLOW_QUESTION_BYTES_MAX).then_some(bytes)
    }

    /// Reads one; `None` if it is none.
    pub fn decode(bytes: &[u8]) -> Option<Question> {
        (bytes.len() <= FOLLOW_QUESTION_BYTES_MAX).then(|| envelope::read_plain(bytes).ok()).flatten()
    }
}

/// Writes a part of an answer.
pub fn write(part: &Part, out: &mut dyn Write) -> io::Result<()> {
    let bytes = envelope::plain(part);
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length > 0);
    let length = length.ok_or_else(|| io::Error::other("a part without an end"))?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&bytes)?;
    out.flush()
}

/// Reads a part of an answer.
pub fn read(from: &mut dyn Read) -> io::Result<Part> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    let damaged = || io::Error::from(io::ErrorKind::InvalidData);
    if length > FOLLOW_PART_BYTES_MAX {
        return Err(damaged());
    }
    let mut bytes = Vec::new();
    // Room is made for what comes, not for what was said to come.
    from.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    envelope::read_plain(&bytes).map_err(|_| damaged())
}

/// Any bytes are a question or an answer, or not; what is read is written again as it was.
pub fn fuzz_follow(bytes: &[u8]) {
    if let Some(question) = Question::decode(bytes) {
        let again = question.encode().map(|bytes| Question::decode(&bytes));
        assert_eq!(again, Some(Some(question)));
    }
    let mut rest = bytes;
    while let Ok(part) = read(&mut rest) {
        let mut again = Vec::new();
        write(&part, &mut again).expect("memory takes it");
        assert_eq!(read(&mut &again[..]).ok(), Some(part));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Task;
    use skep_schedule::Pace;

    fn bundle(urls: usize) -> Bundle {
        Bundle {
            id: 0,
            host: "a.test:80".into(),
            urls: vec![Task { url: "http://a.test/".into(), ..Task::default() }; urls],
            pace: Pace::Polite,
            robots: None,
            lease_ms: 60_000,
            nonce: [0; 16],
        }
    }

    #[test]
    fn what_is_said_is_read_again_and_what_is_damaged_is_refused() {
        let crawl = || "bees".to_owned();
        let questions = [
            Question { crawl: crawl(), asked: Asked::Room },
            Question { crawl: crawl(), asked: Asked::Measure { ticket: 7, grant_ms: 9, url: "http://a.test/".into() } },
            Question { crawl: crawl(), asked: Asked::Fetch { ticket: 7, bundle: bundle(3) } },
        ];
        for question in questions {
            let bytes = question.encode().unwrap();
            assert_eq!(Question::decode(&bytes), Some(question));
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << (at % 8);
                fuzz_follow(&changed);
                fuzz_follow(&bytes[..at]);
            }
        }
        let whole = Whole { response: b"HTTP/1.1 200 OK\r\n\r\nhello".to_vec(), head_bytes: 19, ..Whole::default() };
        let parts = [
            Part::Room { ticket: u64::MAX },
            Part::Busy,
            Part::Measured { took_ms: None, now: true },
            Part::Exchange { number: 3, ago_ms: 40, whole },
            Part::Over { unable: true },
        ];
        let mut bytes = Vec::new();
        parts.iter().for_each(|part| write(part, &mut bytes).unwrap());
        let mut from = &bytes[..];
        for part in &parts {
            assert_eq!(read(&mut from).unwrap(), *part);
        }
        assert_eq!(read(&mut from).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            fuzz_follow(&changed);
            fuzz_follow(&bytes[..at]);
        }
    }

    #[test]
    fn kept_inputs_are_read() {
        let kept = |name: &str| {
            std::fs::read(format!("{}/fuzz/follow/{name}", env!("CARGO_MANIFEST_DIR"))).expect("a kept input")
        };
        let asked = |name: &str| Question::decode(&kept(name)).expect("a question").asked;
        assert_eq!(asked("room"), Asked::Room);
        assert!(matches!(asked("measure"), Asked::Measure { ticket: 123_456, grant_ms: 12_000, .. }));
        let Asked::Fetch { bundle, .. } = asked("fetch") else { panic!("another question") };
        assert_eq!((bundle.urls.len(), bundle.urls[1].etag.as_deref()), (2, Some(&b"\"x\""[..])));
        let bytes = kept("fetched");
        let mut from = &bytes[..];
        assert!(matches!(read(&mut from), Ok(Part::Exchange { number: 1, ago_ms: 40, .. })));
        assert!(matches!(read(&mut from), Ok(Part::Over { unable: true })) && from.is_empty());
        let bytes = kept("measured-and-busy");
        let mut from = &bytes[..];
        assert_eq!((0..4).filter(|_| read(&mut from).is_ok()).count(), 4);
    }

    #[test]
    fn what_is_too_much_is_refused() {
        let fetch = |urls| Question { crawl: "bees".into(), asked: Asked::Fetch { ticket: 0, bundle: bundle(urls) } };
        assert!(fetch(100).is_bounded() && !fetch(101).is_bounded());
        assert!(!Question { crawl: "x".repeat(TEXT_BYTES_MAX + 1), asked: Asked::Room }.is_bounded());
        let long = |url| Question { crawl: String::new(), asked: Asked::Measure { ticket: 0, grant_ms: 0, url } };
        assert!(!long("x".repeat(URL_BYTES_MAX + 1)).is_bounded());
        let mut endless = &u32::MAX.to_le_bytes()[..];
        assert_eq!(read(&mut endless).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
