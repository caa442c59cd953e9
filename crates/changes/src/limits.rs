//! Every bound of this package, with its unit.

/// Captures judged in one batch, which becomes visible as a whole.
pub const BATCH_CAPTURES_MAX: usize = 4_096;

/// Bytes of a body, decoded, that are read to be compared.
pub const BODY_BYTES_MAX: u64 = 16 << 20;

/// A body may become so many times larger by decoding …
pub const DECODE_RATIO_MAX: u64 = 1_000;

/// … from so many bytes on.
pub const RATIO_FROM_BYTES: u64 = 16 << 20;

/// Texts that are remembered of a URL, to know when one comes back.
pub const TEXTS_REMEMBERED: usize = 8;

/// Captures of a URL that are judged again when one of an earlier time becomes known; of a URL with more, the newest.
pub const REFOLDED_CAPTURES_MAX: usize = 4_096;

/// Links named in an event, added and removed each; the others are counted.
pub const EVENT_LINKS_MAX: usize = 50;

/// Facts named in an event; the others are counted.
pub const EVENT_FACTS_MAX: usize = 16;

/// Bytes of new text shown in an event.
pub const SNIPPET_BYTES_MAX: usize = 280;

/// Bytes of a URL in an event; longer ones are cut in lists of links, and a page with one is not watched.
pub const URL_BYTES_MAX: usize = 16 << 10;

/// Captures that a body may stand in, when the first ones cannot be read.
pub const ORIGINALS_MAX: usize = 4;

/// Sites with rules of their own.
pub const SITES_MAX: usize = 10_000;

/// A page that is not found any more is gone after so many failures …
pub const GONE_FAILURES: u32 = 3;

/// … over so many milliseconds; a server that says "gone" itself is believed at the second time.
pub const GONE_MS: i64 = 7 * 86_400_000;

/// Failures after which HyperDog dropped a page, for those who choose it.
pub const FIVE_FAILURES: u32 = 5;

/// A page that lost nearly all of its text is believed at this visit in a row.
pub const EMPTY_BELIEVED: u32 = 3;
