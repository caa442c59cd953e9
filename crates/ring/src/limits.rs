//! Every bound of this package, with its unit.

// --- a network ------------------------------------------------------------------------------------------------------

/// A network has at most two to the power of this many slices.
pub const SLICE_BITS_MAX: u8 = 20;
/// Copies wanted of a slice.
pub const COPIES_MAX: u8 = 7;
/// Holders in one epoch: all copies, and one more while one replaces another.
pub const HOLDERS_MAX: usize = COPIES_MAX as usize + 2;
/// The name of a network.
pub const NAME_BYTES_MAX: usize = 64;
/// The zone of a node.
pub const ZONE_BYTES_MAX: usize = 32;
/// Keys that may admit.
pub const ADMISSION_KEYS_MAX: usize = 16;
/// Nodes named in a ticket.
pub const BOOTSTRAP_MAX: usize = 8;
/// A ticket, before it is written as text.
pub const TICKET_BYTES_MAX: usize = 4096;
/// Capacity that a node may declare: 1 PB.
pub const CAPACITY_GB_MAX: u32 = 1_000_000;
/// Nodes of a network that a roster takes in: their numbers fit into two bytes, and one stands for nobody.
pub const NODES_MAX: usize = 65_535;

// --- records --------------------------------------------------------------------------------------------------------

/// Addresses that a node tells.
pub const ADDRESSES_MAX: usize = 4;
/// A relay's or portal's URL in a record.
pub const RECORD_URL_BYTES_MAX: usize = 128;
/// Watchers of a node, in a network that has so many others.
pub const WATCHERS: usize = 8;
/// Positions on the ring per terabyte declared; a node has at least one, and at most …
pub const POSITIONS_PER_TB: u32 = 64;
/// … so many.
pub const POSITIONS_MAX: u32 = 1024;
/// A record may be dated so far ahead of one's own clock, in milliseconds; beyond it, it is from the future.
pub const AHEAD_MS_MAX: u64 = 10 * 60 * 1000;
/// A node whose clock differs from those of its peers by more than this does not lead, in milliseconds.
pub const CLOCK_OFF_MS_MAX: i64 = 10 * 60 * 1000;
/// Peers whose clocks are compared with one's own.
pub const CLOCKS_MAX: usize = 32;
/// Nodes that news is passed on to at once.
pub const SPREAD: usize = 4;

// --- messages -------------------------------------------------------------------------------------------------------

/// A frame of messages; a longer one is refused unread.
pub const FRAME_BYTES_MAX: usize = 256 << 10;
/// Messages in one frame.
pub const FRAME_MESSAGES_MAX: usize = 1024;
/// Facts in one message.
pub const FACTS_MAX: usize = 128;
/// Names asked for in one message.
pub const WANTED_MAX: usize = 2048;
/// One frame of a reconciliation.
pub const RECONCILE_BYTES_MAX: usize = 48 << 10;
/// State of politeness of the sites of one slice.
pub const POLITENESS_BYTES_MAX: usize = 32 << 10;
/// Segments named in one message; more come in several.
pub const EXTENTS_MAX: usize = 1024;
/// Segments of one slice that a node keeps count of.
pub const SLICE_SEGMENTS_MAX: usize = 65_536;
/// Slices summed up in one message.
pub const SUMMARIES_MAX: usize = 1024;
/// Ranges of one audit.
pub const AUDIT_RANGES: usize = 64;
/// Bytes of one range of an audit.
pub const AUDIT_RANGE_BYTES: u64 = 4096;
/// Epochs sent at once to who lags behind.
pub const CHAIN_MAX: usize = 32;
/// Epochs of a slice that a holder keeps; older ones are summed up by the oldest kept.
pub const CHAIN_KEPT_MAX: usize = 64;
/// Questions for the right to visit one site that may still be answered.
pub const PACE_ASKS_MAX: usize = 16;
/// How often a turn is granted again to who has it, while others wait: two hours of a long download.
pub const PACE_AGAIN_MAX: u32 = 16;
/// Nodes that wait for their turn at one site.
pub const PACE_QUEUE_MAX: usize = 1024;
/// What is told of how a site was visited: by who visited last, and by who leads its home.
pub const PACE_TOLD_MAX: usize = 2;
/// Bytes of a signed removal.
pub const REMOVAL_BYTES_MAX: usize = 16 << 10;
/// Requests under way at once: bytes pulled …
pub const PULLS_MAX: usize = 16;
/// … of which those from one peer leave room for others, however long it makes this node wait …
pub const PULLS_PER_PEER_MAX: usize = PULLS_MAX / 2;
/// … and challenges waiting for an answer.
pub const AUDITS_MAX: usize = 64;
/// … and hashes for one peer that are made at once.
pub const PEER_ANSWERS_MAX: usize = 16;
/// Messages taken from one peer per second; more are dropped and counted …
pub const PEER_MESSAGES_PER_S: u64 = 500;
/// … once it has used up this many at once.
pub const PEER_MESSAGES_BURST: u64 = 20_000;
/// The same from all together who are not known: each of these may cost as much as looking at one record …
pub const STRANGERS_MESSAGES_PER_S: u64 = 200;
/// … and so many at once.
pub const STRANGERS_MESSAGES_BURST: u64 = 2_000;

const _: () = assert!(RECONCILE_BYTES_MAX < FRAME_BYTES_MAX && POLITENESS_BYTES_MAX < FRAME_BYTES_MAX);
const _: () = assert!(FACTS_MAX * 1500 < FRAME_BYTES_MAX); // the largest fact is a record with an invitation
const _: () = assert!(WANTED_MAX * 32 < FRAME_BYTES_MAX);
const _: () = assert!(EXTENTS_MAX * 64 < FRAME_BYTES_MAX);
const _: () = assert!(SUMMARIES_MAX * 40 < FRAME_BYTES_MAX);

// --- the way to others ----------------------------------------------------------------------------------------------

/// A connection is there within this time, or a node is not reached.
pub const CONNECT_MS_MAX: u64 = 10_000;
/// A connection over which nothing came for so long has ended …
pub const CONNECTION_IDLE_MS_MAX: u64 = 30_000;
/// … so something goes over it this often.
pub const CONNECTION_KEEP_MS: u64 = 10_000;
/// Nodes and other callers whose connections are kept.
pub const PEERS_MAX: usize = 65_536;
/// Frames that wait for one node; further ones are dropped.
pub const FRAMES_WAITING_MAX: usize = 1_024;
/// Questions of one node that are answered at once …
pub const STREAMS_PER_PEER_MAX: u32 = 64;
/// … and of all.
pub const ANSWERS_AT_ONCE_MAX: usize = 128;
/// Of these, questions of one node …
pub const ANSWERS_PER_PEER_MAX: usize = 32;
/// … and, beside them, of those who are no nodes yet.
pub const STRANGERS_AT_ONCE_MAX: usize = 8;
/// Connections of those who are no nodes yet.
pub const STRANGERS_KEPT_MAX: usize = 256;
/// A question of one who is no node yet: a signed record.
pub const STRANGER_QUESTION_BYTES_MAX: usize = 16 << 10;
/// It has come whole within this time.
pub const STRANGER_MS_MAX: u64 = 5_000;
/// Bytes of one answer that are under way.
pub const STREAM_WINDOW_BYTES: u32 = 8 << 20;
/// A question as sent; a longer one is refused unread. The longest are batches of links.
pub const QUESTION_BYTES_MAX: usize = BATCH_BYTES_MAX + (64 << 10);
/// A question has come whole within this time, and no part of an answer waits longer for whoever asked.
pub const QUESTION_MS_MAX: u64 = 30_000;
/// What came of a look whose a host is, as it is told another node.
pub const PROOF_BYTES_MAX: u64 = 4 << 10;

const _: () = assert!(CONNECTION_KEEP_MS < CONNECTION_IDLE_MS_MAX / 2);

// --- the shell --------------------------------------------------------------------------------------------------------

/// One entry of the journal: an epoch with the proofs of a recovery is the longest.
pub const JOURNAL_ENTRY_BYTES_MAX: usize = FRAME_BYTES_MAX;
/// A journal below this size is left as it is; above, what still counts is written anew when it has grown fourfold.
pub const JOURNAL_BYTES_MIN: u64 = 4 << 20;
/// The longest URL that is asked for.
pub const URL_BYTES_MAX: usize = 64 << 10;
/// What a new member is told: the facts of the roster are most of it.
pub const WELCOME_BYTES_MAX: u64 = 64 << 20;
/// Events that wait for the machine; what peers say beyond it is dropped.
pub const EVENTS_WAITING_MAX: usize = 16_384;
/// Events that are handled before what follows from them is done.
pub const EVENTS_AT_ONCE_MAX: usize = 256;
/// Bytes of a segment that travel as one piece.
pub const PULL_PIECE_BYTES: u64 = 4 << 20;
/// Bytes that are read from a segment at once.
pub const PULL_READ_BYTES: usize = 256 << 10;
/// Hashes for audits that are made at once.
pub const HASHES_AT_ONCE: usize = 2;
/// A URL that is not where URLs of its site go is asked for in all places of it, where these are no more; elsewhere in those that are held here.
pub const PLACES_ASKED_MAX: usize = 32;
/// A holder that has not answered for so long is hedged by another.
pub const HEDGE_MS: u64 = 700;
/// By so much a ballot may be above all that were heard of before: a try a second for a hundred years.
pub const TERM_STEP_MAX: u64 = 1 << 32;
/// Why a question is not answered, in words.
pub const REFUSAL_BYTES_MAX: u64 = 1 << 10;
/// An answer that is read as a whole.
pub const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// It has come within this time, once it has begun.
pub const ANSWER_MS_MAX: u64 = 30_000;
/// No answer may come slower than this once its beginning was waited for: sixteen pulls at once over a line of 2 Mbit/s come faster.
pub const ANSWER_SLOW_BYTES_PER_MS: u64 = 16;
/// A record of others has come within this time, or nobody waits for it any more.
pub const RECORD_MS_MAX: u64 = 2 * QUESTION_MS_MAX;
/// Bytes that are pulled have come within this time …
pub const PULL_MS_MAX: u64 = 300_000;
/// … and as long as they take at this pace, which is slow for anybody.
pub const PULL_SLOW_BYTES_PER_MS: u64 = 100;
/// What a new member is told has come within this time.
pub const WELCOME_MS_MAX: u64 = 300_000;
/// What all nodes together say to one question.
pub const EVERYWHERE_BYTES_MAX: u64 = 64 << 20;
/// What one of them says.
pub const EVERYWHERE_ANSWER_BYTES_MAX: u64 = EVERYWHERE_BYTES_MAX / 2;
/// Nodes that are asked at once about everything …
pub const EVERYWHERE_AT_ONCE_MAX: usize = 32;
/// … each of which begins to answer within this time, or another holder is asked …
pub const EVERYWHERE_MS_MAX: u64 = 10_000;
/// … so many times.
pub const EVERYWHERE_ROUNDS_MAX: usize = 3;
/// What a contributor says through a node to another, and what is answered.
pub const CONTRIBUTOR_BYTES_MAX: usize = BATCH_BYTES_MAX;
/// A node that does not say so soon what waits there for contributors is asked again later.
pub const BUNDLES_MS_MAX: u64 = 3_000;
/// A holder that looks through its slices says after so long how far it got …
pub const SCAN_MS_MAX: u64 = 1_500;
/// … and one that has not begun to answer after so long is left for another, as long as there is one.
pub const SCAN_HEDGE_MS: u64 = 3_000;
/// Captures of many sites that one node is asked for at once …
pub const SCAN_PAGE_CAPTURES: u64 = 4_000;
/// … or so many bytes of them …
pub const SCAN_PAGE_BYTES: usize = 4 << 20;
/// … and the first time, when most may not be needed.
pub const SCAN_PAGE_CAPTURES_FIRST: u64 = 200;
/// What one portal asks another, as text.
pub const TARGET_BYTES_MAX: usize = 16 << 10;
/// Captures in one answer.
pub const ANSWER_CAPTURES_MAX: u64 = 100_000;
/// Bytes of one record that is answered.
pub const ANSWER_RECORD_BYTES_MAX: u64 = 4 << 30;
/// Settings of a network's crawl, as they travel.
pub const CRAWL_BYTES_MAX: usize = 1 << 20;
/// Instructions that a node keeps …
pub const INSTRUCTIONS_MAX: usize = 16_384;
/// … their bytes …
pub const INSTRUCTIONS_BYTES_MAX: usize = 32 << 20;
/// … and of them those that one owner signed who did not make the network.
pub const OWNER_INSTRUCTIONS_BYTES_MAX: usize = 4 << 20;
/// Why something is removed.
pub const REASON_BYTES_MAX: usize = 4 << 10;
/// How often a damaged copy is looked for in segments that are sealed: one of them at a time.
pub const SCRUB_STEP_MS: u64 = 1_000;

// --- bodies that slices share ---------------------------------------------------------------------------------------

/// A visit has its answer, or none, within this time …
pub const BODY_MS_MAX: u64 = 3_500;
/// … of which a hint takes no more than this.
pub const BODY_HINT_MS_MAX: u64 = 700;
/// Bodies that are looked for at once, and that are read for others at once.
pub const BODIES_AT_ONCE: usize = 8;
/// Visits that wait for that; for further ones a body is kept once more.
pub const BODIES_WAITING_MAX: usize = 64;
/// Nodes that are asked for one body.
pub const BODY_ASKED_MAX: usize = 3;
/// Hints about bodies in one generation: 100 bytes each.
pub const BODY_HINTS_MAX: usize = 32_768;
/// The record of a body that is shared, with its heads: it may lie there as little packed as it came.
pub const RECORD_OF_BODY_BYTES_MAX: u64 = 2 * skep_archive::limits::SHARED_BODY_BYTES_MAX + (1 << 20);
/// How long it may take to bring one.
pub const RECORD_OF_BODY_MS_MAX: u64 = 4 * QUESTION_MS_MAX;
/// The URL of a capture that shares its body.
pub const SHARED_URL_BYTES_MAX: usize = skep_archive::limits::SHARED_URL_BYTES_MAX;
/// The id of its record.
pub const RECORD_ID_BYTES_MAX: usize = 256;
/// References of which it is remembered that their bodies are lost.
pub const LOST_BODIES_MAX: usize = 10_000;
/// References that are looked at, or read, at once.
pub const REFERENCES_AT_ONCE: usize = 256;

// --- relays ---------------------------------------------------------------------------------------------------------

/// Relays of other nodes that a node looks at; it is reached through the nearest of them.
pub const RELAYS_MAX: usize = 4;
/// Whether who serves a relay answers at its address is looked at this often, where it has not yet …
pub const RELAY_MEET_MS: u64 = 30_000;
/// … for so many relays.
pub const RELAYS_MET_AT_ONCE_MAX: usize = 16;
/// A node that is out of view for so long while it is reached by somebody else's relay leaves that one …
pub const RELAY_MUTE_MS: u64 = 120_000;
/// … for so long.
pub const RELAY_LEFT_MS: u64 = 15 * 60_000;
/// A node that has lost its relay for so long says so, in milliseconds.
pub const RELAY_LOST_MS: u64 = 60_000;
/// Connections to a relay of which it is not yet known whose they are …
pub const RELAY_UNPROVEN_MAX: usize = 256;
/// … of which so many come from one address (of IPv6, from one network of 64 bits) …
pub const RELAY_UNPROVEN_PER_ADDRESS_MAX: usize = 8;
/// … and so many from one network: a /24, of IPv6 a /48 …
pub const RELAY_UNPROVEN_PER_NETWORK_MAX: usize = 32;
/// … for so long, in milliseconds.
pub const RELAY_PROVE_MS_MAX: u64 = 10_000;
/// Connections of one node to a relay.
pub const RELAY_CONNECTIONS_PER_NODE_MAX: usize = 4;
/// What a relay takes over each connection, in bytes a second.
pub const RELAY_BYTES_PER_S_MAX: u32 = 16 << 20;
/// Keys that a relay need not unpack again.
pub const RELAY_KEYS_KEPT: usize = 4096;
/// A connection that could not be taken is followed by a pause, in milliseconds.
pub const ACCEPT_PAUSE_MS: u64 = 100;

// --- links to slices of others --------------------------------------------------------------------------------------

/// A link in a batch; a longer one is not forwarded. As long as a URL that is fetched may be.
pub const LINK_BYTES_MAX: usize = 8 << 10;
/// Links in one batch.
pub const BATCH_LINKS_MAX: usize = 10_000;
/// Text of the links of one batch, before front coding and compression.
pub const BATCH_TEXT_BYTES_MAX: usize = 2 << 20;
/// A batch as sent; a longer one is refused unread.
pub const BATCH_BYTES_MAX: usize = 1 << 20;
/// The name of the crawl in a batch.
pub const BATCH_CRAWL_BYTES_MAX: usize = 255;
/// Links that a sender may bring at once …
pub const SENDER_LINKS_BURST: u64 = 200_000;
/// … and per second from then on: a million a minute.
pub const SENDER_LINKS_PER_S: u64 = 16_667;
/// Senders whose budgets are kept.
pub const SENDERS_MAX: usize = 65_536;

// What is known is told in one question, and everything that is known in one answer.
const _: () = assert!(INSTRUCTIONS_MAX * 32 < QUESTION_BYTES_MAX && INSTRUCTIONS_BYTES_MAX < ANSWER_BYTES_MAX as usize);
// The fullest batch with the longest link still fits.
const _: () = assert!(BATCH_TEXT_BYTES_MAX > 2 * LINK_BYTES_MAX);
// A piece comes whole at the slowest pace.
const _: () = assert!(PULL_PIECE_BYTES / ANSWER_SLOW_BYTES_PER_MS < PULL_MS_MAX);
const _: () = assert!(SCAN_MS_MAX < SCAN_HEDGE_MS && SCAN_HEDGE_MS < EVERYWHERE_MS_MAX);
const _: () = assert!(SENDER_LINKS_BURST >= BATCH_LINKS_MAX as u64);
