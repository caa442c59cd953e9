//! What nodes ask each other, beside what their machines say. A question is postcard; an answer begins with one byte: yes, and what was
//! asked for follows; or no, and why.

use std::io::{self, Read};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use skep_archive::captures::{Match, Place, Query};
use skep_archive::runs::Direction;
use skep_archive::{CaptureKind, Key as UrlKey, Position, WriterKey};

use super::bodies::Body;
use super::coming::copy_within;
use crate::copy::Segment;
use crate::fact::{Fact, SignedRecord};
use crate::genesis::{Genesis, Slice};
use crate::instruction::SignedInstruction;
use crate::key::{Hash, Key};
use crate::limits::{ANSWER_CAPTURES_MAX, QUESTION_MS_MAX, REFUSAL_BYTES_MAX, URL_BYTES_MAX};

/// An answer follows.
pub const YES: u8 = 1;
/// A reason follows.
pub const NO: u8 = 0;

/// What is asked. New kinds are added at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// A node that has a ticket, and says so in its record, wants to be a member. Answered by [`Welcome`].
    Join(Arc<SignedRecord>),
    /// Whole records of a segment from a byte on: pieces, each `| head length 4 LE | head | bytes |`.
    Pull {
        /// The segment.
        segment: Segment,
        /// The first byte.
        from: u64,
        /// As far as this, if there is as much.
        to: u64,
    },
    /// Links for slices that whoever is asked leads: see [`crate::links`]. Answered by [`Taken`].
    Links(Vec<u8>),
    /// Captures, as [`skep_archive::Capture::write`] writes them.
    Captures(Wanted),
    /// One record: its bytes as they stand in the file.
    Record {
        /// Who wrote it.
        writer: u32,
        /// In which segment.
        segment: u32,
        /// Which one.
        record: u32,
    },
    /// Crawls of the network, unsigned: asked by nodes of an older kind, and answered by none.
    Crawls(Vec<(String, u64)>),
    /// A crawl, unsigned: refused, see [`Question::Instruct`].
    Crawl(Crawl),
    /// A removal, unsigned: refused, see [`Question::Instruct`].
    Remove {
        /// `url`, `prefix` or `digest`, and what.
        selector: String,
        /// Why.
        reason: String,
    },
    /// What the portal of a node asks that of another; this package carries it and does not look inside. Answered in the portal's words.
    Portal {
        /// What is asked.
        target: String,
        /// About sites of these slices only.
        slices: Vec<Slice>,
    },
    /// Instructions that are not among these. Answered by [`SignedInstruction`]s.
    Instructions(Vec<Hash>),
    /// An instruction that is new. Answered by how many records it hid there, 8 bytes LE.
    Instruct(Arc<SignedInstruction>),
    /// What waits at a node for contributors. This package carries the answer and does not look inside.
    Bundles,
    /// What a contributor says to the node that is asked, where he knows only the one that asks. Carried as it is, and so is the answer.
    Contributor {
        /// The address from which he speaks to the node that asks.
        address: IpAddr,
        /// What he says.
        message: Vec<u8>,
    },
    /// Captures of many sites: of these slices, in this order. Answered like [`Question::Captures`]; behind the last capture stands 0, 4 bytes,
    /// and how many of the slices were looked through to their end, 4 bytes LE.
    Scan {
        /// Which captures, and how many at once.
        wanted: Wanted,
        /// All of them are held by whoever is asked.
        slices: Vec<Slice>,
        /// Behind this one: key, time, record.
        after: Option<After>,
    },
    /// Whoever leads a slice wants another holder to fetch something for it. This package carries it, and the answer as it comes, and does
    /// not look inside.
    Follow {
        /// The slice.
        slice: Slice,
        /// What is wanted.
        message: Vec<u8>,
    },
    /// Whoever asks keeps a body: a hint for others. Answered by nothing.
    KeptBody {
        /// Its SHA-256.
        sha256: [u8; 32],
        /// Its length.
        length: u64,
    },
    /// Who may have a body. Answered by a [`Key`], or nothing.
    WhoHasBody {
        /// Its SHA-256.
        sha256: [u8; 32],
        /// Its length.
        length: u64,
    },
    /// Prove a body that you wrote, and pin it for a URL of a slice that whoever asks holds; or prove one at a place that is pinned for it.
    /// Answered by [`super::Proven`], when the pin is acknowledged.
    SameBody {
        /// The body, and the URL.
        body: Body,
        /// Under which it is to be proven; drawn for this.
        key: [u8; 32],
        /// Writer, segment, record of one that is pinned.
        at: Option<(u32, u32, u32)>,
    },
    /// A body is to go: its referrer gets one of its own, which whoever asks gives. Answered by [`super::Owned`].
    KeepBody {
        /// The body, and the referrer.
        body: Body,
        /// Writer, segment, record of the original …
        position: (u32, u32, u32),
        /// … its URL …
        url: String,
        /// … and its time.
        time_ms: i64,
        /// Where it has none yet, one is written; else it is only looked for.
        writes: bool,
    },
    /// A record that is pinned for a URL of a slice that whoever asks holds, removed or not: its bytes as they stand in the file.
    PinnedBody {
        /// Writer, segment, record.
        position: (u32, u32, u32),
        /// The URL.
        referrer: String,
    },
    /// Whether a file on a host proves whose it is: whoever is asked leads its site. Answered by [`super::Proof`].
    Proof {
        /// The host.
        host: String,
    },
}

/// A capture behind which an answer goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct After {
    key: (u32, String),
    time_ms: i64,
    position: (u32, u32, u32),
}

impl After {
    /// The place; `None` if it makes no sense.
    pub fn place(&self) -> Option<Place> {
        let ((hash, surt), (writer, segment, record)) = (&self.key, self.position);
        let key = (surt.len() <= URL_BYTES_MAX).then(|| UrlKey::from_parts(*hash, surt))?;
        Some(Place { key, time_ms: self.time_ms, position: position(writer, segment, record) })
    }
}

/// What a new member needs to know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Welcome {
    /// What the network is.
    pub genesis: Genesis,
    /// By which URLs have fingerprints; known to members only.
    pub secret: [u8; 32],
    /// Times that are not those by default, by name, in milliseconds.
    pub times: Vec<(String, u64)>,
    /// Who is there.
    pub facts: Vec<Fact>,
}

/// What became of links.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// All of them are safe here; else none was taken.
    pub taken: bool,
    /// Who leads, where it is not the node that was asked.
    pub leaders: Vec<(Slice, Key)>,
}

/// A crawl, as nodes of an older kind told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crawl {
    /// Its name.
    pub name: String,
    /// Higher is newer.
    pub version: u64,
    /// Whether it goes on.
    pub runs: bool,
    /// Its settings; this package carries them and does not look inside.
    pub settings: String,
}

/// A query for captures, as it travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    matching: u8,
    keys: Vec<(u32, String)>,
    from_ms: Option<i64>,
    to_ms: Option<i64>,
    status: Option<u16>,
    mime: Option<String>,
    kinds: Vec<u8>,
    limit: u64,
    backward: bool,
}

impl Wanted {
    /// The query as it travels.
    pub fn of(query: &Query) -> Wanted {
        let key = |key: &UrlKey| (key.site_hash(), key.surt().to_owned());
        let (matching, keys) = match &query.matching {
            Match::Exact(one) => (0, vec![key(one)]),
            Match::Prefix(one) => (1, vec![key(one)]),
            Match::Host(one) => (2, vec![key(one)]),
            Match::Domain(one) => (3, vec![key(one)]),
            Match::Range(from, to) => (4, vec![key(from), key(to)]),
            Match::All => (5, Vec::new()),
        };
        Wanted {
            matching,
            keys,
            from_ms: query.from_ms,
            to_ms: query.to_ms,
            status: query.status,
            mime: query.mime.clone(),
            kinds: query.kinds.iter().map(|kind| kind.number()).collect(),
            limit: query.limit.unwrap_or(ANSWER_CAPTURES_MAX).min(ANSWER_CAPTURES_MAX),
            backward: query.direction == Direction::Backward,
        }
    }

    /// The query; `None` if it makes no sense.
    pub fn query(&self) -> Option<Query> {
        let key = |at: usize| {
            let (site_hash, surt) = self.keys.get(at).filter(|(_, surt)| surt.len() <= URL_BYTES_MAX)?;
            Some(UrlKey::from_parts(*site_hash, surt))
        };
        let matching = match self.matching {
            0 => Match::Exact(key(0)?),
            1 => Match::Prefix(key(0)?),
            2 => Match::Host(key(0)?),
            3 => Match::Domain(key(0)?),
            4 => Match::Range(key(0)?, key(1)?),
            5 => Match::All,
            _ => return None,
        };
        let mut query = Query::new(matching);
        (query.from_ms, query.to_ms, query.status) = (self.from_ms, self.to_ms, self.status);
        query.mime.clone_from(&self.mime);
        query.kinds = self.kinds.iter().map(|kind| CaptureKind::from_number(*kind)).collect::<Option<_>>()?;
        query.limit = Some(self.limit.min(ANSWER_CAPTURES_MAX));
        if self.backward {
            query.direction = Direction::Backward;
        }
        Some(query)
    }
}

impl Question {
    /// Asks for a record by its name.
    pub fn record(position: Position) -> Question {
        Question::Record { writer: position.writer.0, segment: position.segment, record: position.record }
    }

    /// Asks for captures of many sites.
    pub fn scan(wanted: Wanted, slices: Vec<Slice>, after: Option<&Place>) -> Question {
        let after = after.map(|after| After {
            key: (after.key.site_hash(), after.key.surt().to_owned()),
            time_ms: after.time_ms,
            position: (after.position.writer.0, after.position.segment, after.position.record),
        });
        Question::Scan { wanted, slices, after }
    }

    /// As it travels.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("plain data encodes")
    }

    /// Reads one; `None` if it is none that is known here.
    pub fn decode(bytes: &[u8]) -> Option<Question> {
        let (question, rest) = postcard::take_from_bytes(bytes).ok()?;
        rest.is_empty().then_some(question)
    }
}

/// The position that a question names.
pub fn position(writer: u32, segment: u32, record: u32) -> Position {
    Position { writer: WriterKey(writer), segment, record }
}

/// Reads the first byte of an answer, and the reason where it is no.
pub fn is_yes(answer: &mut dyn Read) -> io::Result<Result<(), String>> {
    let mut first = [0];
    answer.read_exact(&mut first)?;
    if first[0] == YES {
        return Ok(Ok(()));
    }
    let mut why = Vec::new();
    let patience = Duration::from_millis(QUESTION_MS_MAX);
    copy_within(&mut answer.take(REFUSAL_BYTES_MAX), &mut why, REFUSAL_BYTES_MAX, patience)?;
    Ok(Err(String::from_utf8_lossy(&why).into_owned()))
}

/// Any bytes are a question or not; what is read is written again as it was.
pub fn fuzz_question(bytes: &[u8]) {
    if let Some(question) = Question::decode(bytes) {
        assert_eq!(Question::decode(&question.encode()), Some(question.clone()));
        if let Question::Captures(wanted) = &question
            && let Some(query) = wanted.query()
        {
            assert_eq!(Wanted::of(&query).query(), Some(query));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_questions_are_read_and_written_again() {
        let mut read = 0;
        for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/question")).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            fuzz_question(&bytes);
            read += u32::from(Question::decode(&bytes).is_some());
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << (at % 8);
                fuzz_question(&changed);
                fuzz_question(&bytes[..at]);
            }
        }
        assert_eq!(read, 11);
    }
}
