//! What nodes say to each other. A frame is a version and messages; each is refused unread when it is longer than anything
//! an honest node sends.
//!
//! ```text
//! frame  | protocol 2 LE | messages, each in postcard: kind v, fields in order |
//! ```
//! A node says in its record which protocols it speaks; a frame is written in the newest that both sides know. New kinds are added at
//! the end of [`Message`]; one of a kind that this program does not know ends the reading of its frame, and is counted.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::copy::{Extent, Segment};
use crate::epoch::{Epoch, Holders, SignedHolders};
use crate::fact::Fact;
use crate::genesis::{NetworkId, Slice};
use crate::key::{Hash, Key, Signature};
use crate::limits::{
    AUDIT_RANGE_BYTES, AUDIT_RANGES, CHAIN_MAX, EXTENTS_MAX, FACTS_MAX, FRAME_BYTES_MAX, FRAME_MESSAGES_MAX,
    HOLDERS_MAX, PACE_TOLD_MAX, POLITENESS_BYTES_MAX, RECONCILE_BYTES_MAX, REMOVAL_BYTES_MAX, SUMMARIES_MAX,
    WANTED_MAX, WATCHERS,
};
use crate::pace::{AskNumber, Site};
use crate::watch::Vote;

/// The newest protocol that this program speaks …
pub const PROTOCOL: u16 = 4;
/// … and the oldest.
pub const PROTOCOL_OLDEST: u16 = 1;
/// Since then nodes ask each other for captures of many sites …
pub const PROTOCOL_SCAN: u16 = 2;
/// … and links tell of the sites that they come from.
pub const PROTOCOL_SITES: u16 = 2;
/// Since then holders write segments again whose writers are gone …
pub const PROTOCOL_INSTEAD: u16 = 3;
/// … and nodes fetch bundles for whoever leads.
pub const PROTOCOL_FOLLOW: u16 = 3;
/// Since then a site may be split, and who leads its home says whose turn it is to visit it.
pub const PROTOCOL_SPLITS: u16 = 4;
/// Since then slices share large bodies.
pub const PROTOCOL_BODIES: u16 = 4;
/// Since then nodes ask who leads a site whose it is.
pub const PROTOCOL_PROOF: u16 = 4;

/// The protocols that somebody speaks: the newest and the oldest.
pub type Speaks = (u16, u16);

/// What this program speaks.
pub const SPEAKS: Speaks = (PROTOCOL, PROTOCOL_OLDEST);

/// The newest protocol that two understand; nothing if there is none.
pub fn common(one: Speaks, other: Speaks) -> Option<u16> {
    let newest = one.0.min(other.0);
    (newest >= one.1.max(other.1)).then_some(newest)
}

/// State of politeness of the sites of a slice; this package carries it and does not look inside.
pub type Politeness = Arc<[u8]>;

/// A lease is counted in ballots: a term and who asks, so that no two are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ballot {
    /// Higher is newer.
    pub term: u64,
    /// Who asks.
    pub by: Key,
}

/// One piece of an audit: bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The segment.
    pub segment: Segment,
    /// Where the piece begins.
    pub offset: u64,
    /// Its length.
    pub bytes: u32,
}

/// The sealed segments of one slice, summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The slice.
    pub slice: Slice,
    /// Sealed segments.
    pub count: u32,
    /// The sum of their hashes.
    pub sum: [u8; 16],
}

/// What a comparison is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Topic {
    /// The facts of the roster.
    Roster,
    /// The sealed segments of a slice.
    Slice(Slice),
}

/// Why a lease was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// Another one has it, or may still have it.
    Taken,
    /// The epoch is not the newest, or newer than what is known here.
    Epoch,
    /// A higher ballot was seen.
    Ballot,
    /// The holder asked takes itself for absent.
    Unseen,
    /// It holds no copy.
    Stranger,
}

/// Everything that is said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Are you there? With the time by the own clock, and sums of roster and table of holders.
    Ping {
        /// The network, so that strangers notice.
        network: NetworkId,
        /// By the sender's clock, in milliseconds since 1970.
        wall_ms: u64,
        /// The first eight bytes of the roster's digest.
        roster: u64,
        /// The sum of the table of holders.
        table: u64,
    },
    /// Yes.
    Pong {
        /// By the sender's clock, in milliseconds since 1970.
        wall_ms: u64,
        /// The first eight bytes of the roster's digest.
        roster: u64,
        /// The sum of the table of holders.
        table: u64,
    },
    /// Signed facts for the roster.
    Facts(Vec<Fact>),
    /// A watcher has not heard from a node.
    Absent {
        /// The node.
        node: Key,
        /// The sequence of its record.
        sequence: u64,
        /// The vote.
        vote: Vote,
    },
    /// One frame of a range-based reconciliation.
    Reconcile {
        /// Of what.
        topic: Topic,
        /// Whether this is an answer to who began.
        answer: bool,
        /// For the library.
        frame: Vec<u8>,
    },
    /// Facts wanted, by hash.
    FactsAsk(Vec<Hash>),
    /// Sums of parts of the table of holders.
    TableSums(Vec<u64>),
    /// Epochs known, from a slice on.
    TableEpochs {
        /// The first of them.
        from: Slice,
        /// Of this slice and those after it.
        epochs: Vec<Epoch>,
    },
    /// Epochs of a slice, oldest first.
    Epochs(Vec<Arc<SignedHolders>>),
    /// What follows this epoch?
    EpochAsk {
        /// The slice.
        slice: Slice,
        /// The newest epoch known.
        after: Epoch,
    },
    /// Ask such a node about a slice: it should know an epoch that this node only knows of.
    EpochHint {
        /// The slice.
        slice: Slice,
        /// The epoch.
        epoch: Epoch,
        /// Its holders.
        nodes: Vec<Key>,
    },
    /// May I lead?
    LeaseAsk {
        /// The slice.
        slice: Slice,
        /// In which epoch.
        epoch: Epoch,
        /// The ballot; the same one renews.
        ballot: Ballot,
        /// How politely its sites were visited so far.
        politeness: Politeness,
    },
    /// You may, as long as D.
    LeaseGrant {
        /// The slice.
        slice: Slice,
        /// In this epoch.
        epoch: Epoch,
        /// For this ballot.
        ballot: Ballot,
        /// Holders agreed to under an earlier ballot; they must be proposed first.
        accepted: Option<(Ballot, Holders)>,
        /// The newest state of politeness known.
        politeness: Politeness,
    },
    /// You may not.
    LeaseRefuse {
        /// The slice.
        slice: Slice,
        /// The ballot that was asked for.
        ballot: Ballot,
        /// The highest one known.
        highest: u64,
        /// Why.
        why: Refusal,
    },
    /// I no longer lead; another may at once.
    LeaseRelease {
        /// The slice.
        slice: Slice,
        /// The ballot.
        ballot: Ballot,
        /// How politely its sites were visited so far.
        politeness: Politeness,
    },
    /// Shall these hold the slice from now on?
    Propose {
        /// Under which lease.
        ballot: Ballot,
        /// The next epoch.
        holders: Holders,
    },
    /// Yes, signed.
    Agree {
        /// The slice.
        slice: Slice,
        /// The epoch.
        epoch: Epoch,
        /// Under which lease.
        ballot: Ballot,
        /// By a holder of the epoch before, over the new holders.
        signature: Signature,
    },
    /// Too many are absent: shall what remains go on?
    RecoverAsk {
        /// The epoch that would begin.
        holders: Holders,
        /// Bytes that the sender has of the slice.
        bytes: u64,
    },
    /// Yes, signed: nobody here has more.
    RecoverAgree {
        /// The slice.
        slice: Slice,
        /// The epoch.
        epoch: Epoch,
        /// Over the holders.
        signature: Signature,
    },
    /// Copy these, and tell when they are synced: you are to become a holder, or stand in for one.
    Adopt {
        /// The newest epoch.
        epoch: Arc<SignedHolders>,
        /// What to copy.
        extents: Vec<Extent>,
    },
    /// A copy made on request is no longer needed.
    Dismiss {
        /// The slice.
        slice: Slice,
    },
    /// What is synced here of a slice.
    Has {
        /// The slice.
        slice: Slice,
        /// Whether this is all of it, or only what changed.
        whole: bool,
        /// By segment.
        extents: Vec<Extent>,
    },
    /// What do you have of a slice?
    HasAsk {
        /// The slice.
        slice: Slice,
    },
    /// Sealed segments of shared slices, summed up.
    Summaries(Vec<Summary>),
    /// Prove that you hold these bytes.
    Challenge {
        /// The number of the question.
        id: u64,
        /// The slice.
        slice: Slice,
        /// Makes every proof a new one.
        nonce: [u8; 16],
        /// Which bytes.
        ranges: Vec<Range>,
    },
    /// The keyed hash over them; nothing if they are not here.
    Proof {
        /// The number of the question.
        id: u64,
        /// By [`crate::audit::proof_key`].
        digest: Option<Hash>,
    },
    /// Said by nodes of an older kind, and followed by none: see [`crate::instruction`].
    Removal {
        /// The slice.
        slice: Slice,
        /// As the archive signed it.
        bytes: Arc<[u8]>,
    },
    /// Said by nodes of an older kind.
    Removals {
        /// The slice.
        slice: Slice,
        /// Their hashes.
        known: Vec<Hash>,
    },
    /// A holder wants what is missing of a slice to be copied now; for whoever leads.
    Hurry {
        /// The slice.
        slice: Slice,
    },
    /// May I visit a site that is split? For whoever leads its home.
    PaceAsk {
        /// Its hash.
        site: Site,
        /// Which question.
        number: AskNumber,
    },
    /// You may.
    PaceGrant {
        /// The site.
        site: Site,
        /// The question.
        number: AskNumber,
        /// How it was visited so far.
        politeness: Vec<Politeness>,
    },
    /// I no longer visit it.
    PaceBack {
        /// The site.
        site: Site,
        /// The question that was answered.
        number: AskNumber,
        /// How it was visited.
        politeness: Politeness,
    },
}

/// Kinds of messages that each protocol knows, from the first on.
const KINDS: [u32; PROTOCOL as usize] = [29, 29, 29, 32];

/// Why a frame was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// Longer than frames are.
    Long,
    /// A protocol that this program does not speak.
    Protocol(u16),
    /// Not what the protocol says, or more of something than there may be.
    Damaged,
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unreadable::Long => f.write_str("the frame is longer than frames are"),
            Unreadable::Protocol(other) => {
                write!(f, "the frame is of protocol {other}; this node speaks {PROTOCOL_OLDEST} to {PROTOCOL}")
            }
            Unreadable::Damaged => f.write_str("the frame is damaged"),
        }
    }
}

/// How many kinds of messages a protocol knows; what is not known yet knows as many as the newest.
fn kinds(protocol: u16) -> u32 {
    let at = usize::from(protocol.clamp(1, PROTOCOL)) - 1;
    KINDS[at]
}

/// Writes messages as one frame of a protocol.
pub fn encode(messages: &[Message], protocol: u16) -> Vec<u8> {
    let mut bytes = protocol.to_le_bytes().to_vec();
    for message in messages {
        bytes = postcard::to_extend(message, bytes).expect("plain data encodes");
    }
    bytes
}

/// Writes messages as frames of bounded size, in their order, for somebody who speaks this protocol. What it does not know is left out, and
/// a message longer than a frame: nobody would read it.
pub fn frames(messages: &[Message], protocol: u16) -> Vec<Vec<u8>> {
    let mut frames: Vec<Vec<u8>> = Vec::new();
    let mut count = 0;
    for message in messages {
        let bytes = postcard::to_allocvec(message).expect("plain data encodes");
        if bytes.len() + 2 > FRAME_BYTES_MAX || kind_of(&bytes).is_none_or(|kind| kind >= kinds(protocol)) {
            continue;
        }
        let fits = |frame: &&mut Vec<u8>| frame.len() + bytes.len() <= FRAME_BYTES_MAX && count < FRAME_MESSAGES_MAX;
        match frames.last_mut().filter(fits) {
            Some(frame) => frame.extend_from_slice(&bytes),
            None => {
                frames.push([&protocol.to_le_bytes()[..], &bytes].concat());
                count = 0;
            }
        }
        count += 1;
    }
    frames
}

/// The number of a message's kind.
fn kind_of(message: &[u8]) -> Option<u32> {
    postcard::take_from_bytes::<u32>(message).ok().map(|(kind, _)| kind)
}

/// Reads a frame, as far as it is known here what is in it.
pub fn decode(frame: &[u8]) -> Result<Vec<Message>, Unreadable> {
    read(frame, SPEAKS).map(|(messages, _)| messages)
}

/// Reads a frame as somebody does who speaks these protocols; says whether it goes on with a message of a kind that is not known there, and of
/// which nobody knows where it ends.
pub fn read(frame: &[u8], speaks: Speaks) -> Result<(Vec<Message>, bool), Unreadable> {
    if frame.len() > FRAME_BYTES_MAX {
        return Err(Unreadable::Long);
    }
    let (version, mut rest) = frame.split_first_chunk::<2>().ok_or(Unreadable::Damaged)?;
    let version = u16::from_le_bytes(*version);
    if !(speaks.1..=speaks.0).contains(&version) {
        return Err(Unreadable::Protocol(version));
    }
    let mut messages = Vec::new();
    while !rest.is_empty() {
        if kind_of(rest).ok_or(Unreadable::Damaged)? >= kinds(speaks.0) {
            return Ok((messages, true));
        }
        let (message, after) = postcard::take_from_bytes::<Message>(rest).map_err(|_| Unreadable::Damaged)?;
        if messages.len() >= FRAME_MESSAGES_MAX || !message.is_bounded() {
            return Err(Unreadable::Damaged);
        }
        messages.push(message);
        rest = after;
    }
    Ok((messages, false))
}

impl Message {
    /// Whether every list is as short as honest ones are.
    pub fn is_bounded(&self) -> bool {
        let few = |holders: &Holders| holders.nodes.len() <= HOLDERS_MAX;
        let signed = |holders: &SignedHolders| {
            few(&holders.holders)
                && holders.signatures.len() <= HOLDERS_MAX
                && holders.proofs.len() <= HOLDERS_MAX
                && holders.proofs.iter().all(|witnessed| {
                    witnessed.proof.votes.len() <= WATCHERS && witnessed.record.record.watchers.len() <= WATCHERS
                })
        };
        match self {
            Message::Facts(facts) => {
                let votes = |fact: &Fact| match fact {
                    Fact::Absence(proof) => proof.votes.len() <= WATCHERS,
                    _ => true,
                };
                facts.len() <= FACTS_MAX && facts.iter().all(votes)
            }
            Message::Reconcile { frame, .. } => frame.len() <= RECONCILE_BYTES_MAX,
            Message::FactsAsk(hashes) | Message::Removals { known: hashes, .. } => hashes.len() <= WANTED_MAX,
            Message::TableSums(sums) => sums.len() <= WANTED_MAX,
            Message::TableEpochs { epochs, .. } => epochs.len() <= WANTED_MAX,
            Message::Epochs(links) => links.len() <= CHAIN_MAX && links.iter().all(|link| signed(link)),
            Message::EpochHint { nodes, .. } => nodes.len() <= HOLDERS_MAX,
            Message::LeaseAsk { politeness, .. } | Message::LeaseRelease { politeness, .. } => {
                politeness.len() <= POLITENESS_BYTES_MAX
            }
            Message::LeaseGrant { politeness, accepted, .. } => {
                politeness.len() <= POLITENESS_BYTES_MAX && accepted.as_ref().is_none_or(|(_, holders)| few(holders))
            }
            Message::Propose { holders, .. } | Message::RecoverAsk { holders, .. } => few(holders),
            Message::Adopt { epoch, extents } => signed(epoch) && extents.len() <= EXTENTS_MAX,
            Message::Has { extents, .. } => extents.len() <= EXTENTS_MAX,
            Message::Summaries(summaries) => summaries.len() <= SUMMARIES_MAX,
            Message::Challenge { ranges, .. } => {
                let short = |range: &Range| u64::from(range.bytes) <= AUDIT_RANGE_BYTES;
                ranges.len() <= AUDIT_RANGES && ranges.iter().all(short)
            }
            Message::Removal { bytes, .. } => bytes.len() <= REMOVAL_BYTES_MAX,
            Message::PaceGrant { politeness, .. } => {
                let short = |politeness: &Politeness| politeness.len() <= POLITENESS_BYTES_MAX;
                politeness.len() <= PACE_TOLD_MAX && politeness.iter().all(short)
            }
            Message::PaceBack { politeness, .. } => politeness.len() <= POLITENESS_BYTES_MAX,
            Message::Ping { .. }
            | Message::Pong { .. }
            | Message::Absent { .. }
            | Message::EpochAsk { .. }
            | Message::LeaseRefuse { .. }
            | Message::Agree { .. }
            | Message::RecoverAgree { .. }
            | Message::Dismiss { .. }
            | Message::HasAsk { .. }
            | Message::Hurry { .. }
            | Message::PaceAsk { .. }
            | Message::Proof { .. } => true,
        }
    }

    /// The slice it is about, if it is about one.
    pub fn slice(&self) -> Option<Slice> {
        match self {
            Message::EpochAsk { slice, .. }
            | Message::EpochHint { slice, .. }
            | Message::LeaseAsk { slice, .. }
            | Message::LeaseGrant { slice, .. }
            | Message::LeaseRefuse { slice, .. }
            | Message::LeaseRelease { slice, .. }
            | Message::Agree { slice, .. }
            | Message::RecoverAgree { slice, .. }
            | Message::Dismiss { slice }
            | Message::Has { slice, .. }
            | Message::HasAsk { slice }
            | Message::Hurry { slice }
            | Message::Challenge { slice, .. }
            | Message::Removal { slice, .. }
            | Message::Removals { slice, .. } => Some(*slice),
            Message::Propose { holders, .. } | Message::RecoverAsk { holders, .. } => Some(holders.slice),
            Message::Adopt { epoch, .. } => Some(epoch.holders.slice),
            _ => None,
        }
    }
}

/// Any bytes as a frame: read or refused, and what is read is written again as it was.
pub fn fuzz_frame(bytes: &[u8]) {
    if let Ok(messages) = decode(bytes) {
        let again = encode(&messages, PROTOCOL);
        assert_eq!(decode(&again).as_ref(), Ok(&messages), "what is written is read");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roster::tests::network;

    fn samples() -> Vec<(&'static str, Vec<Message>)> {
        let (genesis, seals, record) = network(3);
        let network = genesis.id();
        let key = seals[1].key();
        let holders = Holders {
            network,
            slice: 7,
            epoch: Epoch { generation: 0, number: 1 },
            before: Hash([4; 32]),
            nodes: vec![seals[0].key(), key],
        };
        let ballot = Ballot { term: 3, by: key };
        let signature = seals[0].sign(&holders.ballot());
        let epoch = Arc::new(SignedHolders {
            holders: holders.clone(),
            signatures: vec![(seals[0].key(), signature)],
            proofs: vec![],
        });
        let segment = Segment { writer: 0xc41f_22ab, number: 2, half: 1, generation: 0 };
        let extent = Extent { segment, bytes: 1 << 30, seal: Some(Hash([9; 32])) };
        let vote = Vote::new(&network, &key, 4, 1_800_000_000_000, seals[0].as_ref());
        let politeness: Politeness = Arc::from(&b"polite"[..]);
        let (slice, epoch_number, said) = (7, holders.epoch, politeness.clone());
        vec![
            (
                "ping",
                vec![
                    Message::Ping { network, wall_ms: 1, roster: 2, table: 3 },
                    Message::Pong { wall_ms: 1, roster: 2, table: 3 },
                ],
            ),
            ("facts", vec![Message::Facts(vec![Fact::Record(Arc::new(record(1, 5)))])]),
            ("absent", vec![Message::Absent { node: key, sequence: 4, vote }]),
            (
                "compare",
                vec![
                    Message::Reconcile { topic: Topic::Slice(7), answer: true, frame: vec![0x61, 0, 0, 2, 0] },
                    Message::FactsAsk(vec![Hash([1; 32])]),
                    Message::TableSums(vec![1, u64::MAX]),
                    Message::TableEpochs { from: 0, epochs: vec![epoch_number] },
                    Message::Summaries(vec![Summary { slice, count: 2, sum: [3; 16] }]),
                    Message::Removals { slice, known: vec![Hash([2; 32])] },
                ],
            ),
            (
                "lease",
                vec![
                    Message::LeaseAsk { slice, epoch: epoch_number, ballot, politeness: politeness.clone() },
                    Message::LeaseGrant {
                        slice,
                        epoch: epoch_number,
                        ballot,
                        accepted: Some((ballot, holders.clone())),
                        politeness: politeness.clone(),
                    },
                    Message::LeaseRefuse { slice, ballot, highest: 9, why: Refusal::Taken },
                    Message::LeaseRelease { slice, ballot, politeness },
                ],
            ),
            (
                "epoch",
                vec![
                    Message::Propose { ballot, holders: holders.clone() },
                    Message::Agree { slice, epoch: epoch_number, ballot, signature },
                    Message::RecoverAsk { holders, bytes: 5 },
                    Message::RecoverAgree { slice, epoch: epoch_number, signature },
                    Message::Epochs(vec![epoch.clone()]),
                    Message::EpochAsk { slice, after: epoch_number },
                    Message::EpochHint { slice, epoch: epoch_number, nodes: vec![key] },
                ],
            ),
            (
                "copy",
                vec![
                    Message::Adopt { epoch, extents: vec![extent] },
                    Message::Dismiss { slice },
                    Message::Has { slice, whole: true, extents: vec![extent] },
                    Message::HasAsk { slice },
                    Message::Challenge {
                        id: 1,
                        slice,
                        nonce: [5; 16],
                        ranges: vec![Range { segment, offset: 9, bytes: 4096 }],
                    },
                    Message::Proof { id: 1, digest: None },
                    Message::Removal { slice, bytes: Arc::from(&b"signed"[..]) },
                ],
            ),
            (
                "pace",
                vec![
                    Message::PaceAsk { site: 0xa6c4_1f22, number: 600_000 },
                    Message::PaceGrant { site: 0xa6c4_1f22, number: 600_000, politeness: vec![said.clone()] },
                    Message::PaceBack { site: 0xa6c4_1f22, number: 600_000, politeness: said },
                ],
            ),
        ]
    }

    /// The kept inputs of the fuzzer are frozen frames, of protocol 1 what it knew: what today's code writes, byte for byte.
    #[test]
    fn frames_of_older_protocols_are_written_and_read_as_ever() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/frame");
        for (name, messages) in samples() {
            let frame = encode(&messages, if name == "pace" { PROTOCOL_SPLITS } else { 1 });
            assert_eq!(decode(&frame).as_ref(), Ok(&messages), "{name}");
            if std::env::var_os("SKEP_FREEZE").is_some() {
                std::fs::write(folder.join(name), &frame).expect("the folder is there");
            }
            let frozen = std::fs::read(folder.join(name)).expect("a frozen frame");
            assert!(frozen == frame, "{name} is written otherwise than it was");
        }
    }

    #[test]
    fn what_is_too_long_damaged_or_of_another_protocol_is_refused() {
        assert_eq!(decode(&vec![1; FRAME_BYTES_MAX + 1]), Err(Unreadable::Long));
        assert_eq!(decode(&[]), Err(Unreadable::Damaged));
        assert_eq!(decode(&[9, 0, 1]), Err(Unreadable::Protocol(9)));
        assert_eq!(decode(&[1, 0, 0, 1]), Err(Unreadable::Damaged));
        let many = Message::FactsAsk(vec![Hash::default(); WANTED_MAX + 1]);
        assert_eq!(decode(&encode(&[many], PROTOCOL)), Err(Unreadable::Damaged));
        assert_eq!(
            decode(&encode(&vec![Message::Dismiss { slice: 1 }; FRAME_MESSAGES_MAX + 1], PROTOCOL)),
            Err(Unreadable::Damaged)
        );
    }

    #[test]
    fn what_comes_before_a_message_of_a_newer_kind_is_read() {
        let known = [Message::Dismiss { slice: 1 }, Message::Hurry { slice: 2 }];
        let mut frame = encode(&known, PROTOCOL);
        assert_eq!(read(&frame, SPEAKS), Ok((known.to_vec(), false)));
        frame.extend(postcard::to_allocvec(&(kinds(PROTOCOL), "nobody knows")).expect("plain data encodes"));
        assert_eq!(read(&frame, SPEAKS), Ok((known.to_vec(), true)));
        let last = postcard::to_allocvec(&Message::PaceBack { site: 0, number: 0, politeness: Arc::from(&[][..]) })
            .expect("plain data encodes");
        assert_eq!(u32::from(last[0]) + 1, kinds(PROTOCOL), "all kinds are counted");
    }

    #[test]
    fn two_speak_what_both_understand() {
        assert_eq!(common((2, 1), (1, 1)), Some(1));
        assert_eq!(common((2, 1), (9, 2)), Some(2));
        assert_eq!(common((2, 1), (9, 3)), None);
        let said = [Message::Dismiss { slice: 1 }];
        let frame = frames(&said, 1).remove(0);
        assert_eq!(read(&frame, (1, 1)), Ok((said.to_vec(), false)));
        assert_eq!(read(&frames(&said, 2)[0], (1, 1)), Err(Unreadable::Protocol(2)));
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut chance = crate::Chance::new(6);
        let samples = samples();
        for _ in 0..20_000 {
            let mut frame = encode(&chance.pick(&samples).expect("samples").1, PROTOCOL);
            for _ in 0..1 + chance.below(4) {
                let at = chance.below(frame.len() as u64) as usize;
                match chance.below(3) {
                    0 => frame.truncate(at.max(2)),
                    1 => frame[at] ^= 1 << chance.below(8),
                    _ => frame[at] = chance.number() as u8,
                }
            }
            fuzz_frame(&frame);
        }
    }
}
