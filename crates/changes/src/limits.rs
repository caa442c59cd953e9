//! Every bound of this package, with its unit.

/// Captures judged in one batch, which becomes visible as a whole.
pub const BATCH_CAPTURES_MAX: usize = 4_096;

/// Check lines taken in in one batch.
pub const BATCH_LINES_MAX: usize = 16_384;

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

/// A host is down when nobody could reach it for so many milliseconds since its last answer.
pub const HOST_DOWN_MS: i64 = 14 * 86_400_000;

/// So many pages of a host at least make a template …
pub const TEMPLATE_PAGES_MIN: usize = 5;

/// … and more than this share of those visited on the day.
pub const TEMPLATE_SHARE: f64 = 0.3;

/// Places of a page that are looked at; one that changed in more changed all over.
pub const TEMPLATE_PLACES_MAX: usize = 16;

/// Templates of a host that are remembered for a day.
pub const TEMPLATES_MAX: usize = 64;

/// Captures that are remembered for a place that many pages of a host share.
pub const SHARED_POSITIONS_MAX: usize = 65_536;

/// Lines of a text that are compared for a delta; a longer one is told whole.
pub const DELTA_LINES_MAX: usize = 65_536;

/// Bytes of the metadata of a visit that are read for the reason of it.
pub const VISIT_BYTES_MAX: u64 = 64 << 10;

/// Rules of retention.
pub const RETENTION_RULES_MAX: usize = 10_000;
