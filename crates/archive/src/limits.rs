//! Every bound of this package, with its unit.

use std::time::Duration;

// --- segments -------------------------------------------------------------------------------------------------------

/// A segment is sealed when it has grown to this size, unless the archive was opened with another.
pub const SEGMENT_BYTES_MAX: u64 = 1 << 30;
/// Slices are numbered by at most this many bits of the site hash.
pub const SLICE_BITS_MAX: u8 = 16;
/// Segment files kept open for appending at once; others are opened again when needed.
pub const OPEN_FILES_MAX: usize = 512;

// --- the commit tick ------------------------------------------------------------------------------------------------

/// Bytes of encoded records waiting for the committer; an appender waits when there are more.
pub const QUEUE_BYTES_MAX: u64 = 64 << 20;
/// Bytes one commit takes from the queue, so that a tick stays short under load.
pub const COMMIT_BYTES_MAX: u64 = 16 << 20;
/// A tick with at least so many appends shows that many write at once: the next one gathers for a while before it syncs.
pub const BUSY_APPENDS: usize = 4;
/// From the beginning of one busy tick to that of the next; well within the 50 ms that an append may have to wait.
pub const BUSY_TICK_MS: u64 = 20;
/// Bytes of a segment gathered before they are written, unless the tick ends.
pub const PENDING_BYTES_MAX: usize = 256 << 10;
/// Segments synced at once.
pub const SYNC_THREADS_MAX: usize = 32;
/// Space left free on the disk for sidecars, views and closing records.
pub const DISK_RESERVE_BYTES: u64 = 64 << 20;
/// How long a look at the disk's free space counts …
pub const ROOM_LOOK_EVERY: Duration = Duration::from_secs(1);
/// … while there is so much more than is needed.
pub const ROOM_AMPLE_BYTES: u64 = 1 << 30;
/// Records that one removal names; a larger one becomes several.
pub const REMOVAL_POSITIONS_MAX: usize = 80_000;
/// The reason of a removal.
pub const REASON_BYTES_MAX: usize = 4096;
/// Records of one fetch are dated at most so far apart, in milliseconds; most writers give them one time.
pub const FETCH_MS_MAX: i64 = 60_000;
/// Records of one append; they stand next to each other in one segment.
pub const APPEND_RECORDS_MAX: usize = 1 << 16;

// --- views ----------------------------------------------------------------------------------------------------------

/// Bytes of acknowledged records that the views may be behind; the committer waits when they are.
pub const VIEW_LAG_BYTES_MAX: u64 = 64 << 20;
/// Entries of one frame when a sidecar is written from a segment.
pub const REPLAY_BATCH_ENTRIES: usize = 4096;
/// Entries applied in one batch when views are built from sidecars.
pub const REPLAY_ENTRIES_MAX: usize = 1 << 20;

// --- copies ---------------------------------------------------------------------------------------------------------

/// Segments whose tails are pulled at once without reading their sidecars from the beginning.
pub const COPY_CURSORS_MAX: usize = 4096;
/// Numbers of segments that a node sets aside at once.
pub const NUMBERS_AHEAD: u32 = 64;
/// Records that travel in one piece.
pub const COPY_ENTRIES_MAX: usize = 1 << 16;
/// Generations that holders write instead of a writer are multiples of this; as many of the writer's own fit between them.
pub const INSTEAD_STEP: u32 = 256;
/// Removals, as they were signed, that such a generation names.
pub const INSTEAD_INSTRUCTIONS_BYTES_MAX: usize = 1 << 20;
/// Bytes that a challenge asks for at one place.
pub const STRETCH_BYTES_MAX: u64 = 1 << 20;

// --- bodies that slices share ---------------------------------------------------------------------------------------

/// A shorter payload is kept by every slice that needs it …
pub const SHARED_BODY_BYTES_MIN: u64 = 256 << 10;
/// … and so is a longer one: it is held in memory where it is proven or written again.
pub const SHARED_BODY_BYTES_MAX: u64 = 64 << 20;
/// The block of its record: with its heads, and cut into pieces as it came.
pub const SHARED_BLOCK_BYTES_MAX: u64 = SHARED_BODY_BYTES_MAX + 2 * HTTP_HEAD_BYTES_MAX as u64;
/// The URL of a capture that shares its body.
pub const SHARED_URL_BYTES_MAX: usize = 8 << 10;
/// Revisits that are tried for one whose head goes before a body, and references that end when it is written.
pub const REVISITS_TRIED_MAX: usize = 16;
/// Bodies of which it is remembered that others would let go of them, and that they are needed.
pub const NEEDED_MAX: usize = 4096;
/// Captures of one payload that are looked at for one that was written here.
pub const ORIGINALS_ASKED_MAX: usize = 256;
/// What a pin names: two URLs, most of it.
pub const PIN_BYTES_MAX: usize = 32 << 10;

// --- sidecars -------------------------------------------------------------------------------------------------------

/// A frame of a sidecar; a longer one is damage.
pub const FRAME_BYTES_MAX: usize = 16 << 20;
/// The block of a Skep metadata record that a sidecar repeats; a longer one stays in the segment alone.
pub const NOTE_BYTES_MAX: usize = 4 << 20;
/// Entries of a sidecar from one remembered to the next: what a look-up of a record reads …
pub const STRETCH_ENTRIES: u32 = 64;
/// … and their bytes, from which on they are fewer.
pub const STRETCH_BYTES: u64 = 32 << 10;

// --- runs of sorted entries -----------------------------------------------------------------------------------------

/// Captures in one block of a run: what one look-up reads and checks.
pub const BLOCK_ROWS_MAX: usize = 128;
/// Text of keys and URLs in one block before compression, so that long URLs make short blocks.
pub const BLOCK_TEXT_BYTES_MAX: usize = 64 << 10;
/// A block as stored; a longer one is damage. Room for one entry with the longest key and URL.
pub const BLOCK_BYTES_MAX: usize = 1 << 20;
/// Blocks that share one page of first keys and one filter.
pub const SECTION_BLOCKS: usize = 256;
/// A page as stored; a longer one is damage.
pub const PAGE_BYTES_MAX: usize = 32 << 20;
/// The list of sections at the end of a run; a longer one is damage. Enough for 10^11 captures.
pub const DIRECTORY_BYTES_MAX: usize = 1 << 30;
/// Bits of filter for each distinct key of a section: about one wrong "perhaps" in eighty.
pub const FILTER_BITS_PER_KEY: usize = 10;
/// The key of a URL: its site hash and SURT.
pub const KEY_BYTES_MAX: usize = 4 + skep_url::limits::KEY_SURT_BYTES_MAX;
/// The URL of a capture; a capture with a longer one is not indexed.
pub const URL_BYTES_MAX: usize = 512 << 10;
/// The media type of a capture; a longer one is cut.
pub const MIME_BYTES_MAX: usize = 1 << 10;
/// Entries kept in the store before they move into a run, however much memory there is …
pub const FRESH_ENTRIES_MAX: u64 = 1 << 16;
/// … and however little.
pub const FRESH_ENTRIES_MIN: u64 = 1 << 10;
/// Memory that a fresh entry takes in the store: key, value, what holds them, and later the mark that it has moved.
pub const FRESH_ENTRY_BYTES: u64 = 256;
/// Encoded entries sorted in memory at once when many are added.
pub const BULK_CHUNK_BYTES: usize = 64 << 20;
/// Memory for fresh entries of one view, dead ones included, after which the store writes them to its disk, wherever they are: not
/// much more than the most of them need.
pub const FRESH_TABLE_BYTES_MAX: u64 = 16 << 20;
/// The same for the small tables of the store, whose few values change again and again.
pub const SMALL_TABLE_BYTES_MAX: u64 = 1 << 20;
/// Runs of one size that are merged into one of the next size.
pub const TIER_RUNS: usize = 4;
/// Runs merged in one pass.
pub const MERGE_RUNS_MAX: usize = 64;
/// Memory for what is kept at hand, in all, unless opened with another bound; `memory.rs` shares it out.
pub const CACHE_BYTES: u64 = 256 << 20;
/// More than this is not used, whatever is asked for.
pub const CACHE_BYTES_MAX: u64 = 16 << 30;

// --- statistics -----------------------------------------------------------------------------------------------------

/// Stretches of the captures view that are counted apart: more than threads, so that none waits long for another.
pub const STATISTICS_STRETCHES: usize = 32;
/// Hosts that statistics name; the others are counted.
pub const STATISTICS_HOSTS_MAX: usize = 1000;
/// Different media types counted one by one; the rest is summed.
pub const STATISTICS_VALUES_MAX: usize = 10_000;

// --- settings and control -------------------------------------------------------------------------------------------

/// A settings file; a longer one is damage.
pub const SETTINGS_BYTES_MAX: u64 = 64 << 20;
/// The body of a request to the control socket.
pub const ASK_BYTES_MAX: usize = 16 << 20;
/// Requests to the control socket that are answered at once; others wait.
pub const ASKS_AT_ONCE_MAX: usize = 64;
/// Lines of an answer that wait for a slow client of the control socket.
pub const ANSWER_LINES_WAITING: usize = 256;

/// A page whose tags are looked at for a CDX line; the record of a longer one gets no flags from them.
pub const CDX_HTML_BYTES_MAX: usize = 5 << 20;
/// The part of a record's block that is read to describe it: HTTP status line and headers.
pub const HTTP_HEAD_BYTES_MAX: usize = 1 << 20;

const _: () = assert!(FRESH_ENTRIES_MAX * FRESH_ENTRY_BYTES <= FRESH_TABLE_BYTES_MAX);
const _: () = assert!(COMMIT_BYTES_MAX <= QUEUE_BYTES_MAX);
const _: () = assert!(NOTE_BYTES_MAX < FRAME_BYTES_MAX);
// In hexadecimal, each in a line of its own, and something is said beside them.
const _: () = assert!(3 * INSTEAD_INSTRUCTIONS_BYTES_MAX < NOTE_BYTES_MAX);
// A removal is repeated in the sidecar, or a rebuild would miss it; a selector may be a long URL.
const _: () = assert!(REMOVAL_POSITIONS_MAX * 43 + REASON_BYTES_MAX + URL_BYTES_MAX + 1024 < NOTE_BYTES_MAX);
const _: () = assert!(KEY_BYTES_MAX + 21 <= u16::MAX as usize); // the store takes no longer keys
const _: () = assert!(BLOCK_TEXT_BYTES_MAX + KEY_BYTES_MAX + URL_BYTES_MAX + MIME_BYTES_MAX < BLOCK_BYTES_MAX);

/// Longest line of a CDXJ index that is read.
pub const CDXJ_LINE_BYTES_MAX: usize = 1 << 20;
