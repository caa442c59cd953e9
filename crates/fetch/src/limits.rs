//! Every bound of this package, with its unit, and [`Limits`]: those that a caller may set.

// --- clocks ---------------------------------------------------------------------------------------------------------

/// Until a connection stands, all addresses of a host together.
pub const CONNECT_MS: u64 = 10_000;
/// Until a TLS or proxy handshake is done.
pub const HANDSHAKE_MS: u64 = 10_000;
/// From the request to the first byte of the answer.
pub const FIRST_BYTE_MS: u64 = 20_000;
/// Within each such span [`PROGRESS_BYTES`] must come.
pub const PROGRESS_MS: u64 = 10_000;
/// See [`PROGRESS_MS`].
pub const PROGRESS_BYTES: u64 = 1024;
/// A whole answer of text.
pub const TOTAL_MS: u64 = 300_000;
/// A whole answer of a type that may be large: images, films, programs.
pub const TOTAL_LARGE_MS: u64 = 3_600_000;
/// An address is tried this long before the next one is tried beside it.
pub const STAGGER_MS: u64 = 250;

// --- sizes ----------------------------------------------------------------------------------------------------------

/// Body of an HTML page, as sent.
pub const HTML_BYTES_MAX: u64 = 10 << 20;
/// Body of anything else, as sent.
pub const BODY_BYTES_MAX: u64 = 100 << 20;
/// Head of an answer. Browsers stop at 256 KiB, too.
pub const HEAD_BYTES_MAX: usize = 256 << 10;
/// Lines of a head.
pub const HEAD_LINES_MAX: usize = 1_000;
/// Interim (1xx) answers before the final one.
pub const INTERIM_MAX: u32 = 10;
/// Trailer behind the last chunk.
pub const TRAILER_BYTES_MAX: u64 = 16 << 10;
/// Certificates of a server, together.
pub const CHAIN_BYTES_MAX: usize = 64 << 10;
/// An answer grows in memory up to this size, then in a file.
pub const SPOOL_BYTES: usize = 256 << 10;
/// First room for an answer: most fit.
pub const READ_BYTES_FIRST: usize = 16 << 10;
/// Room for one read of a long answer.
pub const READ_BYTES: usize = 64 << 10;
/// Validators (ETag, Last-Modified) longer than this are not sent back.
pub const VALIDATOR_BYTES_MAX: usize = 4_096;
/// Answer of a proxy to CONNECT.
pub const PROXY_HEAD_BYTES_MAX: usize = 16 << 10;
/// TLS sessions kept for resumption, per fetcher.
pub const TLS_SESSIONS_MAX: usize = 1_024;
/// Judged certificate chains remembered, per fetcher.
pub const TLS_VERDICTS_MAX: usize = 1_024;

// --- names ----------------------------------------------------------------------------------------------------------

/// Addresses kept of one answer.
pub const ADDRESSES_MAX: usize = 16;
/// Look-ups at once, per process.
pub const LOOKUPS_MAX: usize = 64;
/// Names waiting for a look-up to begin, per process; who comes later is told to slow down.
pub const LOOKUPS_WAITING_MAX: usize = 16_384;
/// One look-up, both address families, with repetitions.
pub const LOOKUP_MS: u64 = 15_000;
/// How long an exchange waits for a look-up, its time in the queue included.
pub const LOOKUP_WAIT_MS: u64 = 60_000;
/// One question to one name server.
pub const QUESTION_MS: u64 = 4_000;
/// A server that refused is asked again after so long, twice that, and so on.
pub const REFUSED_MS: u64 = 500;
/// So often.
pub const REFUSED_TRIES: u32 = 3;
/// Names in the cache, per process.
pub const NAMES_MAX: usize = 65_536;
/// An answer counts at least so long, whatever its time to live.
pub const FRESH_MS_MIN: u64 = 5 * 60_000;
/// An answer counts at most so long.
pub const FRESH_MS_MAX: u64 = 6 * 3_600_000;
/// "No such name" counts at least so long.
pub const ABSENT_MS_MIN: u64 = 60_000;
/// "No such name" counts at most so long.
pub const ABSENT_MS_MAX: u64 = 10 * 60_000;
/// An answer that is no longer fresh is still used so long when asking again fails.
pub const STALE_MS_MAX: u64 = 24 * 3_600_000;

const _: () = assert!(READ_BYTES_FIRST <= READ_BYTES && READ_BYTES <= SPOOL_BYTES);
const _: () = assert!(HEAD_BYTES_MAX + READ_BYTES < skep_warc::http::limits::HTTP_HEAD_BYTES_MAX); // the parser sees all of a head
const _: () = assert!((REFUSED_MS << REFUSED_TRIES) + REFUSED_TRIES as u64 * REFUSED_MS < LOOKUP_MS);
const _: () = assert!(LOOKUP_MS < LOOKUP_WAIT_MS && QUESTION_MS < LOOKUP_MS);
const _: () = assert!(FRESH_MS_MIN < FRESH_MS_MAX && ABSENT_MS_MIN < ABSENT_MS_MAX && FRESH_MS_MAX < STALE_MS_MAX);
const _: () = assert!(TOTAL_MS < TOTAL_LARGE_MS && CONNECT_MS + HANDSHAKE_MS + FIRST_BYTE_MS < TOTAL_MS);

/// The bounds of an exchange that a caller may set. The defaults are the constants of this module.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Limits {
    /// See [`CONNECT_MS`].
    pub connect_ms: u64,
    /// See [`HANDSHAKE_MS`].
    pub handshake_ms: u64,
    /// See [`FIRST_BYTE_MS`].
    pub first_byte_ms: u64,
    /// See [`PROGRESS_MS`].
    pub progress_ms: u64,
    /// See [`PROGRESS_BYTES`].
    pub progress_bytes: u64,
    /// See [`TOTAL_MS`].
    pub total_ms: u64,
    /// See [`TOTAL_LARGE_MS`].
    pub total_large_ms: u64,
    /// See [`HTML_BYTES_MAX`].
    pub html_bytes_max: u64,
    /// See [`BODY_BYTES_MAX`].
    pub body_bytes_max: u64,
    /// See [`HEAD_BYTES_MAX`]; more than that constant is not honoured.
    pub head_bytes_max: usize,
    /// See [`HEAD_LINES_MAX`].
    pub head_lines_max: usize,
    /// See [`INTERIM_MAX`].
    pub interim_max: u32,
    /// See [`TRAILER_BYTES_MAX`].
    pub trailer_bytes_max: u64,
    /// See [`CHAIN_BYTES_MAX`].
    pub chain_bytes_max: usize,
    /// See [`SPOOL_BYTES`].
    pub spool_bytes: usize,
    /// See [`LOOKUP_WAIT_MS`].
    pub lookup_wait_ms: u64,
}

impl Limits {
    /// No exchange takes longer than this: whoever has not answered by then will not.
    pub fn exchange_ms_max(&self) -> u64 {
        // A connection that stood may turn out to be dead, and is made anew once.
        let reached_ms = self.lookup_wait_ms.saturating_add(self.connect_ms).saturating_add(self.handshake_ms);
        let answered_ms = self.first_byte_ms.saturating_add(self.total_large_ms.max(self.total_ms));
        reached_ms.saturating_mul(2).saturating_add(answered_ms)
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connect_ms: CONNECT_MS,
            handshake_ms: HANDSHAKE_MS,
            first_byte_ms: FIRST_BYTE_MS,
            progress_ms: PROGRESS_MS,
            progress_bytes: PROGRESS_BYTES,
            total_ms: TOTAL_MS,
            total_large_ms: TOTAL_LARGE_MS,
            html_bytes_max: HTML_BYTES_MAX,
            body_bytes_max: BODY_BYTES_MAX,
            head_bytes_max: HEAD_BYTES_MAX,
            head_lines_max: HEAD_LINES_MAX,
            interim_max: INTERIM_MAX,
            trailer_bytes_max: TRAILER_BYTES_MAX,
            chain_bytes_max: CHAIN_BYTES_MAX,
            spool_bytes: SPOOL_BYTES,
            lookup_wait_ms: LOOKUP_WAIT_MS,
        }
    }
}
