//! Every bound of the registry, with its unit.

/// Bytes of a URL that the registry takes; what is longer is no URL that anybody fetches.
pub const URL_BYTES_MAX: usize = 16_384;

/// Bytes of a host's key and of a site's name, each.
pub const HOST_BYTES_MAX: usize = 4_096;

/// Entry numbers stand in five bytes.
pub const ENTRIES_MAX: u64 = (1 << 40) - 1;

/// Hosts stand in four bytes.
pub const HOSTS_MAX: u64 = u32::MAX as u64 - 1;

/// Crawls of one archive.
pub const CRAWLS_MAX: usize = 65_536;

/// Known URLs whose text is kept because they were asked for lately.
pub const FAMILIAR_URLS: usize = 1 << 12;

/// Bytes of such a URL; a longer one is looked up each time.
pub const FAMILIAR_URL_BYTES_MAX: usize = 256;

/// Entries that count as recent: several times what all visits that are under way at once can tell of.
pub const RECENT_ENTRIES: u64 = 1 << 16;

/// URLs in one frame of the `urls` log.
pub const FRAME_URLS: u64 = 64;

/// Frames of the `urls` log that are kept in memory after they were read.
pub const FRAMES_KEPT: usize = 64;

/// A larger frame (long URLs) is read each time instead of being kept.
pub const FRAME_KEPT_BYTES_MAX: usize = 128 << 10;

/// Memory for what is kept at hand, unless opened with another bound.
pub const MEMORY_BYTES: usize = 128 << 20;

/// Bytes of an append-only file that wait in memory before they are written.
pub const APPEND_BUFFER_BYTES: usize = 256 << 10;

/// Bytes of a page of `states`, `hosts` and `queues`.
pub const PAGE_BYTES: usize = 4_096;

/// The least number of pages in memory: no operation holds more than one at a time.
pub const PAGES_MIN: usize = 8;

/// Fingerprints in one block of a run.
pub const BLOCK_KEYS: usize = 24;

/// Bytes of one block of a run.
pub const BLOCK_BYTES: usize = 512;

/// Fences kept in memory for one run; a longer run has one for several blocks and is searched between them.
pub const FENCES_PER_RUN_MAX: usize = 1 << 20;

/// Bits of a run's filter for each fingerprint: about one wrong "perhaps" in a hundred.
pub const FILTER_BITS_PER_KEY: u64 = 10;

/// Runs of one level that are merged into one of the next.
pub const RUNS_PER_LEVEL: usize = 4;

/// Fingerprints that each merge takes on for each one that is added. One would do: a merge must end before as many runs of its
/// level have come again as it merges.
pub const MERGE_KEYS_PER_INSERT: u64 = 4;

/// Blocks that a merge reads at a time from each run.
pub const MERGE_BLOCKS: usize = 128;

/// Entries that wait for a retry and are looked at by one `take` before the rest must wait for the next.
pub const RETRIES_LOOKED_AT_MAX: u32 = 256;

/// Entries of one queue block.
pub const QUEUE_BLOCK_ENTRIES: usize = 24;

/// Bytes of one queue block.
pub const QUEUE_BLOCK_BYTES: usize = 128;

/// Bytes of a checkpoint that is believed; what is larger is damaged.
pub const CHECKPOINT_BYTES_MAX: u64 = 1 << 30;

const _: () = assert!(BLOCK_KEYS * 21 + 8 == BLOCK_BYTES);
const _: () = assert!(QUEUE_BLOCK_ENTRIES * 5 + 4 <= QUEUE_BLOCK_BYTES);
const _: () = assert!(MERGE_KEYS_PER_INSERT > 1);
