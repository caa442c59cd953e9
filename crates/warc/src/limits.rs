//! Every bound of this package, with its unit.

/// Longest record head (version line and named fields) that is accepted.
pub const HEAD_BYTES_MAX: usize = 1 << 20;
/// Longest version line of a WARC head that is taken for one where heads are searched for, its line end included.
pub const VERSION_LINE_BYTES_MAX: usize = 12;
/// Bytes in which a head that begins in the middle of a line must show what it is.
pub const FIRST_FIELD_BYTES_MAX: usize = 4 << 10;
/// Carriage returns before a line feed that still count as one line end.
pub const RETURNS_MAX: usize = 64;
/// Longest ARC record line that is accepted.
pub const ARC_LINE_BYTES_MAX: usize = 64 << 10;
/// How many decoded bytes the reader keeps in memory to look ahead: a record up to this size is checked against its declared length
/// before it is handed out; a longer one streams.
pub const LOOKAHEAD_BYTES: usize = 4 << 20;
/// Decoded bytes that a streaming member adds to the window at a time.
pub const STREAM_STEP_BYTES: usize = 128 << 10;
/// Decoded bytes of a member whose rest may not be wanted: most heads. Where they do not suffice, half as many
/// again follow, and so on.
pub const BEGINNING_BYTES: usize = 576;
/// Decoded bytes past which a member is decoded as a whole sooner than a little further: its head, and that of the HTTP message, are
/// nearly always shorter.
pub const BEGINNING_BYTES_MAX: usize = 8 << 10;
/// Raw bytes at hand for the beginning of a member.
pub const BEGINNING_RAW_BYTES: usize = 32 << 10;
/// Members in a row whose end is looked for in vain before a file is read without looking.
pub const LOOKS_IN_VAIN_MAX: u32 = 64;
/// Raw bytes read from the file at a time.
pub const READ_BYTES: usize = 1 << 20;
/// Raw bytes that must be at hand before a member is inflated in one go; below it the window is filled up first.
pub const WHOLE_MEMBER_BYTES_MIN: usize = 256 << 10;
/// Most raw bytes gathered for inflating a member in one go.
pub const WHOLE_MEMBER_BYTES_MAX: usize = LOOKAHEAD_BYTES + (64 << 10);
/// Decoded bytes that decide whether a gzip member or zstd frame found by searching begins a record.
pub const PROBE_BYTES: usize = 512;
/// Bytes behind a declared block that decide whether the record ends there.
pub const BEHIND_BYTES: usize = 512;
/// A file is cut into parts for several cores that are at least so long.
pub const PART_BYTES_MIN: u64 = 4 << 20;
/// Findings kept until the caller takes them; more are only counted.
pub const FINDINGS_MAX: usize = 10_000;
/// Bytes of a value that a finding repeats.
pub const DETAIL_BYTES_MAX: usize = 1 << 10;
/// Going back to look for records inside damaged data reads bytes again; past this many times the file's own length it stops going back.
pub const REREAD_FACTOR_MAX: u64 = 8;
/// Every file may be read again for at least this many bytes.
pub const REREAD_BYTES_MIN: u64 = 64 << 20;
/// Largest dictionary accepted in a zstd file's leading frame.
pub const ZSTD_DICTIONARY_BYTES_MAX: usize = 64 << 20;
/// Largest zstd window (log2) that is decoded; the draft for WARC allows 23.
pub const ZSTD_WINDOW_LOG_MAX: u32 = 27;

const _: () = assert!(HEAD_BYTES_MAX < LOOKAHEAD_BYTES); // a head always fits the window
const _: () = assert!(STREAM_STEP_BYTES * 2 < LOOKAHEAD_BYTES); // a step always finds room
const _: () = assert!(BEHIND_BYTES >= PROBE_BYTES); // an ARC line cut off there still counts
const _: () = assert!(ARC_LINE_BYTES_MAX < STREAM_STEP_BYTES);
