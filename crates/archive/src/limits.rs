//! Every bound of this package, with its unit.

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
/// The longest the committer lets the first record of a tick wait for company.
pub const COMMIT_TICK_MS: u64 = 50;
/// Segments synced at once.
pub const SYNC_THREADS_MAX: usize = 32;
/// Space left free on the disk for sidecars, views and closing records.
pub const DISK_RESERVE_BYTES: u64 = 64 << 20;
/// Records of one append; they stand next to each other in one segment.
pub const APPEND_RECORDS_MAX: usize = 1 << 16;

// --- views ----------------------------------------------------------------------------------------------------------

/// Bytes of acknowledged records that the views may be behind; the committer waits when they are.
pub const VIEW_LAG_BYTES_MAX: u64 = 64 << 20;
/// Entries applied in one batch when views are built from sidecars.
pub const REPLAY_BATCH_ENTRIES: usize = 4096;

// --- sidecars -------------------------------------------------------------------------------------------------------

/// A frame of a sidecar; a longer one is damage.
pub const FRAME_BYTES_MAX: usize = 16 << 20;
/// The block of a Skep metadata record that a sidecar repeats; a longer one stays in the segment alone.
pub const NOTE_BYTES_MAX: usize = 4 << 20;
/// Memory for tables that say where the records of a segment begin.
pub const TABLES_BYTES_MAX: usize = 64 << 20;

// --- settings and control -------------------------------------------------------------------------------------------

/// A settings file; a longer one is damage.
pub const SETTINGS_BYTES_MAX: u64 = 64 << 20;
/// The body of a request to the control socket.
pub const ASK_BYTES_MAX: usize = 16 << 20;
/// Lines of an answer that wait for a slow client of the control socket.
pub const ANSWER_LINES_WAITING: usize = 256;

/// The part of a record's block that is read to describe it: HTTP status line and headers.
pub const HTTP_HEAD_BYTES_MAX: usize = 1 << 20;

const _: () = assert!(COMMIT_BYTES_MAX <= QUEUE_BYTES_MAX);
const _: () = assert!(NOTE_BYTES_MAX < FRAME_BYTES_MAX);
