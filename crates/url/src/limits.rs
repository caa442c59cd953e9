//! Every bound of this package, with its unit.

/// Longest URL that is accepted for fetching. Servers are asked to take at least 8,000 (RFC 9110, section 4.1).
pub const URL_BYTES_MAX: usize = 8_192;

/// Longest SURT inside a [`crate::Key`]. A longer one is cut and ends in a digest of the whole, so that two
/// different URLs never share a key and no store meets a key it cannot hold.
pub const KEY_SURT_BYTES_MAX: usize = 16_384;

/// A site is split by at most this many bits of its URLs' hashes: into 1,024 places.
pub const SPLIT_BITS_MAX: u8 = 10;

/// Bytes of robots.txt that are read; RFC 9309, section 2.5, asks for at least 500 KiB.
pub const ROBOTS_BYTES_MAX: usize = 500 * 1024;

/// Longest line of robots.txt that is read; what follows on that line is ignored, as Google's parser does
/// (eight times the 2,083 bytes that browsers once allowed for a URL).
pub const ROBOTS_LINE_BYTES_MAX: usize = 2_083 * 8;

/// Redirects followed for robots.txt; RFC 9309, section 2.3.1.2, asks for at least five.
pub const ROBOTS_REDIRECT_HOPS_MAX: u32 = 5;

/// How long a fetched robots.txt counts; RFC 9309, section 2.4.
pub const ROBOTS_FRESH_SECONDS: u64 = 24 * 60 * 60;

/// How long "disallow everything" counts after 429 or 5xx before robots.txt is asked for again.
pub const ROBOTS_ERROR_RETRY_SECONDS: u64 = 60 * 60;

/// After so long without an answer, RFC 9309, section 2.3.1.4, lets a crawler treat robots.txt as absent.
pub const ROBOTS_UNREACHABLE_GIVE_UP_SECONDS: u64 = 30 * 24 * 60 * 60;

/// Longest Crawl-delay that is obeyed; a larger one is cut to this.
pub const ROBOTS_CRAWL_DELAY_SECONDS_MAX: f64 = 24.0 * 60.0 * 60.0;

/// Sitemap lines kept of one robots.txt.
pub const ROBOTS_SITEMAPS_MAX: usize = 10_000;

/// Rules kept of one scope.
pub const SCOPE_RULES_MAX: usize = 100_000;

/// Compiled size of one regular expression in a scope rule.
pub const SCOPE_REGEX_BYTES_MAX: usize = 1 << 20;

/// Bytes of a public suffix list that are read; the real one has a third of a megabyte.
pub const SUFFIX_LIST_BYTES_MAX: usize = 16 << 20;

/// Labels of a name, from its end, that are looked up in a public suffix list; its longest rules have five.
pub const SUFFIX_LABELS_MAX: usize = 8;

const _: () = assert!(KEY_SURT_BYTES_MAX >= 2 * URL_BYTES_MAX); // what can be fetched has a key with its whole SURT, mostly
const _: () = assert!(ROBOTS_LINE_BYTES_MAX < ROBOTS_BYTES_MAX);
const _: () = assert!(ROBOTS_ERROR_RETRY_SECONDS < ROBOTS_FRESH_SECONDS);
