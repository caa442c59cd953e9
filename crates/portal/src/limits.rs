//! Every bound of this package, with its unit.

// --- connections and requests ---------------------------------------------------------------------------------------

/// Connections served at once; others wait to be accepted.
pub const CONNECTIONS_MAX: usize = 4096;
/// The head of a request must have come by then.
pub const REQUEST_HEAD_MS: u64 = 15_000;
/// Bytes of a request's head.
pub const REQUEST_HEAD_BYTES_MAX: usize = 256 << 10;
/// A TLS handshake must be over by then.
pub const HANDSHAKE_MS: u64 = 10_000;
/// After a stop, answers under way may take so long to come to their end.
pub const DRAIN_MS: u64 = 10_000;
/// Requests a second of one client, unless the settings say otherwise.
pub const REQUESTS_PER_SECOND: u32 = 200;
/// A client that was quiet may ask so many seconds' worth of requests at once: a page has many parts.
pub const BURST_SECONDS: u32 = 10;
/// Clients remembered for their pace; when there are more, those that were quiet longest are forgotten.
pub const CLIENTS_MAX: usize = 1 << 16;
/// The body of a request.
pub const BODY_BYTES_MAX: usize = 64 << 20;
/// A request's body must have come by then.
pub const BODY_MS: u64 = 120_000;
/// Requests whose bodies are in memory at once; others wait.
pub const BODIES_AT_ONCE_MAX: usize = 4;

/// Servers of the past whose certificates the proxy remembers.
pub const HOSTS_MAX: usize = 1024;

// --- reading the archive --------------------------------------------------------------------------------------------

/// Threads that read the archive at once; others wait.
pub const READS_AT_ONCE_MAX: usize = 256;
/// How long a request waits for its turn to read before it is turned away.
pub const TURN_MS: u64 = 20_000;
/// A body up to this size is read as a whole before the answer begins: its damage is told by the status.
pub const WHOLE_BODY_BYTES_MAX: usize = 256 << 10;
/// Bytes of a streamed answer sent at a time.
pub const PIECE_BYTES: usize = 64 << 10;
/// Pieces of one answer that wait for a slow client.
pub const PIECES_WAITING: usize = 4;
/// Whoever writes for a client that takes nothing for so long does something else meanwhile.
pub const STALL_MS: u64 = 100;
/// A client that does not take the next piece within this time is let go.
pub const PIECE_MS: u64 = 30_000;
/// The head of a stored message.
pub const MESSAGE_HEAD_BYTES_MAX: usize = 1 << 20;
/// Captures looked at before one is found that can be shown, from the wanted time outward.
pub const CANDIDATES_MAX: usize = 10_000;
/// Captures that redirect to themselves, or cannot be read, stepped over before giving up.
pub const STEPS_ASIDE_MAX: usize = 16;
/// Captures with the payload of a revisit that are tried.
pub const ORIGINALS_MAX: usize = 16;
/// URLs that a page about a missing one suggests.
pub const SUGGESTIONS_MAX: usize = 10;
/// Captures looked at for suggestions.
pub const SUGGESTION_ROWS_MAX: usize = 5_000;
/// The URL of a replay address.
pub const URL_BYTES_MAX: usize = 64 << 10;
/// The value of a stored header that is handed on; longer ones are left out.
pub const HEADER_BYTES_MAX: usize = 8 << 10;
/// All stored headers of one answer that are handed on, so that the answer stays within what clients read.
pub const HEADERS_BYTES_MAX: usize = 48 << 10;

// --- catalogue ------------------------------------------------------------------------------------------------------

/// Rows of a list on one page, unless asked otherwise.
pub const PAGE_ROWS: usize = 100;
/// Rows of a list on one page at most.
pub const PAGE_ROWS_MAX: usize = 1000;
/// Characters of a text that is looked for.
pub const QUERY_CHARS_MAX: usize = 200;
/// Characters of a URL in a parameter; even escaped, twelve bytes each, they fit into the first line of a request.
pub const URL_CHARS_MAX: usize = 4 << 10;
/// Seeds that are taken at once.
pub const SEEDS_MAX: usize = 1_000;
/// Hexadecimal digits of a cursor: the longest key and what stands in front of it.
pub const CURSOR_DIGITS_MAX: usize = 2 * (skep_archive::limits::KEY_BYTES_MAX + 1);
/// The body of a request that adds a file.
pub const REGISTRATION_BYTES_MAX: usize = 64 << 10;
/// Captures looked at for one page of a search.
pub const SEARCH_ROWS_MAX: usize = 3_000_000;
/// Results of a search in texts on one page, unless asked otherwise.
pub const TEXTS_ROWS: usize = 20;
/// Captures of one URL that are looked at.
pub const CAPTURES_OF_URL_MAX: usize = 200_000;
/// Versions of one URL that are told.
pub const VERSIONS_TOLD_MAX: usize = 1000;
/// Other URLs with the same payload that are told.
pub const ALSO_AT_MAX: usize = 5;
/// Hosts that statistics tell.
pub const HOSTS_TOLD_MAX: usize = 100;
/// Years, media types and statuses that statistics tell.
pub const VALUES_TOLD_MAX: usize = 1000;
/// Statistics kept in memory.
pub const KEPT_MAX: usize = 64;
/// How long statistics count while nothing changes; rules may end or begin by the hour.
pub const KEPT_MS: u128 = 60_000;
/// While captures come in, statistics are counted again after so many times as long as counting took,
pub const KEPT_TIMES: u128 = 10;
/// and at the latest after this long, however busy the machine is.
pub const KEPT_CHANGING_MS_MAX: u128 = 30_000;
/// Parts of one page that are looked at.
pub const PARTS_MAX: usize = 1000;
/// Style sheets that are read for what they bring along.
pub const STYLES_READ_MAX: usize = 20;
/// Bytes of a page or style sheet that are read for its parts.
pub const PART_BODY_BYTES_MAX: u64 = 16 << 20;
/// A part captured so soon after its page was captured with it.
pub const SOON_MS: i64 = 5 * 60 * 1000;
/// A record up to this size is copied in one piece.
pub const COPIED_BYTES_MAX: u64 = 16 << 20;

// --- the stream of changes ------------------------------------------------------------------------------------------

/// How often the archive is looked at for more, while somebody stays.
pub const CHANGES_TICK_MS: u64 = 200;
/// After so long without an event a client hears that the portal is still there.
pub const CHANGES_STILL_MS: u64 = 15_000;
/// Events remembered for those who stay; who is further behind reads the log.
pub const CHANGES_RECENT_MAX: usize = 16_384;
/// Events that a node tells at once of what it holds, where all nodes are asked.
pub const CHANGES_EVERYWHERE_MAX: usize = 10_000;
/// What all nodes say to one such question takes no more than this …
pub const CHANGES_ANSWERS_BYTES: u64 = 48 << 20;
/// … and what one says that is not told how much room there is.
pub const CHANGES_ANSWER_BYTES: u64 = 4 << 20;
/// All nodes are asked what is new so often, while somebody stays for what all of them tell.
pub const CHANGES_ASK_MS: u64 = 1_000;
/// When nobody wanted to know for so long, the next who does begins with what comes from then on.
pub const CHANGES_ASKED_MS_MAX: u64 = 60_000;
/// Bytes of the places in the logs of nodes that go with this question.
pub const CHANGES_PLACES_BYTES_MAX: usize = 12 << 10;
/// A node that answers for other sites than before tells so many events of its log once more.
pub const CHANGES_AGAIN_MAX: u64 = 1_024;
/// Who goes on by time with what all nodes tell goes on so long before it: their clocks may be ten minutes apart.
pub const CHANGES_OVERLAP_MS: i64 = 660_000;
/// Bytes of these; events of pages with many links are large.
pub const CHANGES_RECENT_BYTES: usize = 64 << 20;
/// Events handed to one client at a time.
pub const CHANGES_STEP_MAX: usize = 1_024;
/// Bytes from which on a client gets no more of them at a time.
pub const CHANGES_STEP_BYTES: usize = 1 << 20;

// --- pages ----------------------------------------------------------------------------------------------------------

/// Bytes of a capture that are compared with another.
pub const COMPARED_BYTES_MAX: u64 = 8 << 20;
/// Versions to choose from when two are compared: the newest.
pub const COMPARED_CHOICES_MAX: usize = 500;
/// Events on the page of the stream; what comes pushes out what is older.
pub const LIVE_ROWS: usize = 100;
/// The stream of all nodes begins so long before their page was made.
pub const LIVE_OVERLAP_MS: i64 = 5_000;
/// Entries of a feed.
pub const FEED_ENTRIES: usize = 100;
/// Events looked at for one page of the stream.
pub const LIVE_LOOKED_MAX: usize = 100_000;
/// Events looked at for the page of a day: the newest.
pub const DAY_LOOKED_MAX: usize = 200_000;
/// Sites on the page of a day.
pub const DAY_SITES_MAX: usize = 500;
/// Events of one site on the page of a day.
pub const DAY_EVENTS_TOLD: usize = 20;
/// How long an answer of the watches about themselves is repeated, in milliseconds.
pub const FRESH_KEPT_MS: i64 = 2_000;
/// Events on one page of a URL's history.
pub const HISTORY_ROWS: usize = 20;
/// Ways of writing a URL for each of which the nodes that hold it are asked what happened to it.
pub const HISTORY_SPELLINGS_MAX: usize = 4;
/// Of these, events whose texts are read and compared.
pub const HISTORY_DIFFERENCES_MAX: usize = 10;
/// Links told of one event in a URL's history, those that came and those that went each.
pub const HISTORY_LINKS_TOLD: usize = 50;

const _: () = assert!(PAGE_ROWS <= PAGE_ROWS_MAX);
const _: () = assert!(PIECE_BYTES <= WHOLE_BODY_BYTES_MAX);
const _: () = assert!(HEADER_BYTES_MAX <= HEADERS_BYTES_MAX);

/// Bytes of a rule for a site, as it is sent.
pub const RULE_BYTES_MAX: usize = 16 << 10;

/// Characters of one part of it.
pub const RULE_CHARS_MAX: usize = 2_000;

/// How long it may take to come.
pub const RULE_MS: u64 = 10_000;

/// Seeds that the page of a watch names; the others are counted.
pub const SEEDS_SHOWN_MAX: usize = 50;

// --- owners of sites ---------------------------------------------------------------------------------------------------

/// Characters of the name of a host.
pub const HOST_CHARS_MAX: usize = 253;
/// Captures of a host that are looked at for its pace.
pub const OWNER_ROWS_MAX: usize = 20_000;
